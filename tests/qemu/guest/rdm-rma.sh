#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# full: yes
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: fi_info rdma
# modules: efa ib_uverbs
# mem: 3G
# timeout: 2400
#
# Reads and writes of the kernel's fabric efa and Debian 12's libfabric (1.17) in both directions,
# of 1 byte to 64 MiB, with RDMA at both ends, at one, and at none; thresholds by which each
# sub-protocol is used, a bad network, and processes that are killed during each.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/interop.sh
. /bed/interop.sh

FAR=/sys/module/kofi_far/parameters
PARAMETERS=/sys/module/kofi_efa/parameters
TABLE=/tmp/table

# far WHAT ARGUMENT...: run fi_far with these arguments
far()
{
	far_what=$1
	shift
	theirs $OUT/fi_far efa_0-rdm "$@" > $OUT/log 2>&1
	far_status=$?
	check "$far_what" [ $far_status = 0 ]
	[ $far_status = 0 ] || sed 's/^/# /' $OUT/log
}

# able NONE|READ|ALL: have the provider use these operations of the device
able()
{
	echo "$1" > $PARAMETERS/rdma
	echo es0 > /sys/kernel/debug/kofi_efa/probe
}

# begin SIZE: have the kernel open an endpoint, and register so many bytes
begin()
{
	modprobe kofi_far domain=es0 size="$1"
}

idle()
{
	[ "$(counted ops)" = 0 ] && [ "$(counted kept)" = 0 ]
}

# end: have the kernel close its endpoint
end()
{
	check "all operations have ended" wait_for 5 idle
	check "every writer was known" [ "$(cat $FAR/strange)" = 0 ]
	awk '$1 == "sent" || $1 == "received" { for (i = 2; i < NF; i += 2) print $1, $i, $(i + 1) }' \
		"$EFA" >> $TABLE
	check "unload the ULP" rmmod kofi_far
	check "nothing is left open" nothing_open
}

# came TYPE..., went TYPE..., neither TYPE...: check that such packets were received from libfabric,
# or sent to it, or neither
came()
{
	for type in "$@"; do
		check "$type came from libfabric" [ "0$(counted_of received "$type")" -gt 0 ]
	done
}

went()
{
	for type in "$@"; do
		check "$type was sent to libfabric" [ "0$(counted_of sent "$type")" -gt 0 ]
	done
}

neither()
{
	for type in "$@"; do
		check "$type was neither sent nor received" \
			[ -z "$(counted_of sent "$type")$(counted_of received "$type")" ]
	done
}

# is_2: succeeds unless libfabric is 1.17
is_2()
{
	[ "$ROOT" ]
}

# shellcheck disable=SC2119 # without parameters
set_up
cp /bed/tools/fi_far $OUT
export FI_FAR_DIR=$FAR

# All sizes, with the default thresholds.
export FI_EFA_USE_DEVICE_RDMA=0
begin 67125248
far "without RDMA" sizes 1 2 100 8000 9000 65535 65536 1048576 67108864
came EAGER_RTW DC_EAGER_RTW LONGCTS_RTW DC_LONGCTS_RTW SHORT_RTR LONGCTS_RTR READRSP CTS CTSDATA \
	RECEIPT
went EAGER_RTW DC_EAGER_RTW LONGCTS_RTW DC_LONGCTS_RTW SHORT_RTR LONGCTS_RTR READRSP CTS CTSDATA \
	RECEIPT
neither LONGREAD_RTW EOR
far "many at a time, without RDMA" many 400
check "the device took no part" grep -q " reads 0 writes 0 unread" "$EFA"
end

export FI_EFA_USE_DEVICE_RDMA=1
begin 67125248
far "with RDMA" sizes 1 9000 65536 1048576 67108864
far "many at a time, with RDMA" many 400
neither LONGCTS_RTR
# 1.17 has no writes by the device: the target reads.
is_2 || came LONGREAD_RTW
end

# Ends of which one can't.
able none
begin 1048576
far "the kernel has no RDMA" sizes 1 9000 70000 1000000
came LONGCTS_RTR
went LONGCTS_RTW LONGCTS_RTR
end
able read
begin 1048576
far "the kernel can only read" sizes 1 9000 70000 1000000
came LONGREAD_RTW
went LONGREAD_RTW EOR
neither LONGCTS_RTR
end

# Another threshold of reads by the target.
export FI_EFA_INTER_MIN_READ_WRITE_SIZE=300000
echo 300000 > $PARAMETERS/inter_min_read_write_size
begin 1048576
far "another threshold" sizes 299999 300000
came LONGCTS_RTW LONGREAD_RTW
went LONGCTS_RTW LONGREAD_RTW
end
unset FI_EFA_INTER_MIN_READ_WRITE_SIZE
echo 65536 > $PARAMETERS/inter_min_read_write_size

# Windows of one packet.
export FI_EFA_TX_MIN_CREDITS=1 FI_EFA_USE_DEVICE_RDMA=0
echo 1 > $PARAMETERS/tx_min_credits
begin 1048576
far "one packet at a time" sizes 9000 100000
end
unset FI_EFA_TX_MIN_CREDITS
echo 32 > $PARAMETERS/tx_min_credits

# Refused reads, of which the NACK tells. 1.17 has none.
if is_2; then
	export FI_EFA_USE_DEVICE_RDMA=1
	begin 1048576
	echo 1000 > $SIM/pci0/faults/deny_read
	there_before=$(cat $FAR/failed)
	theirs $OUT/fi_far efa_0-rdm sizes 70000 > $OUT/log 2>&1
	echo 0 > $SIM/pci0/faults/deny_read
	note "$(tail -n 1 $OUT/log), $(($(cat $FAR/failed) - there_before)) failed"
	went READ_NACK
	end
fi

# A bad network.
able auto
# faults 0|1
faults()
{
	for device in es0 pci0; do
		for setting in reorder=300 duplicate=50 drop=20 rnr=50; do
			echo $((${setting#*=} * $1)) > "$SIM/$device/faults/${setting%%=*}"
		done
	done
}
for FI_EFA_USE_DEVICE_RDMA in 0 1; do
	export FI_EFA_USE_DEVICE_RDMA
	begin 1048576
	faults 1
	far "a bad network, RDMA $FI_EFA_USE_DEVICE_RDMA" sizes 1 9000 100000
	far "many, a bad network, RDMA $FI_EFA_USE_DEVICE_RDMA" many 80
	faults 0
	end
done

# now: print the hundredths of a second since the guest's start
now()
{
	read -r now_up _ < /proc/uptime
	echo "${now_up%.*}${now_up#*.}"
}

# killed RDMA sent|received TYPE OPERATION SIZE: as in rdm-protocols.sh
killed()
{
	export FI_EFA_USE_DEVICE_RDMA="$1"
	shift
	theirs $OUT/fi_far efa_0-rdm die "$@" > $OUT/log 2>&1
	killed_status=$?
	killed_then=$(now)
	check "killed when $2 was $1" [ $killed_status = 137 ]
	[ $killed_status = 137 ] || sed 's/^/# /' $OUT/log
	check "all operations end, $2 $1" wait_for 5 idle
	killed_took=$(($(now) - killed_then))
	note "after $killed_took hundredths of a second, $(cat $FAR/failed) have failed by now"
	check "they end within two seconds, $2 $1" [ $killed_took -le 250 ]
}

begin 8388608
killed 0 received EAGER_RTW write 100
killed 0 received DC_EAGER_RTW writedc 100
killed 0 sent RECEIPT writedc 100
killed 0 received LONGCTS_RTW write 4000000
killed 0 received DC_LONGCTS_RTW writedc 4000000
killed 0 sent CTS write 4000000
killed 0 received CTSDATA write 4000000
killed 0 received SHORT_RTR read 100
killed 0 received LONGCTS_RTR read 4000000
killed 0 sent READRSP read 4000000
killed 0 received CTS read 4000000
killed 0 sent CTSDATA read 4000000
killed 0 sent DC_EAGER_RTW kwrite 100
killed 0 received RECEIPT kwrite 100
killed 0 sent LONGCTS_RTW kwritedata 4000000
killed 0 sent DC_LONGCTS_RTW kwrite 4000000
killed 0 received CTS kwrite 4000000
killed 0 sent CTSDATA kwrite 4000000
killed 0 sent SHORT_RTR kread 100
killed 0 sent LONGCTS_RTR kread 4000000
killed 0 received READRSP kread 4000000
killed 0 sent CTS kread 4000000
killed 0 received CTSDATA kread 4000000
far "another process" sizes 8 20000 200000
end
able read
begin 8388608
killed 1 received LONGREAD_RTW write 4000000
killed 1 sent EOR write 4000000
killed 1 sent LONGREAD_RTW kwrite 4000000
killed 1 received EOR kwrite 4000000
far "a process after the killed ones" sizes 8 20000 200000
end

able auto
note "packets of each type, from libfabric and to it:"
sort $TABLE | awk '{ n[$2, $1] += $3; type[$2] } END {
	for (t in type) print "# " t, n[t, "received"] + 0, n[t, "sent"] + 0 }' | sort
tear_down
