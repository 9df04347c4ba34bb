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
# The kernel's fabric efa against Debian 12's libfabric (1.17), each sub-protocol in both
# directions, with messages of 1 byte to 64 MiB, thresholds by which each sub-protocol is used,
# refused reads and missing regions, and processes that are killed during messages of each.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

# shellcheck source=tests/qemu/interop.sh
. /bed/interop.sh

PARAMETERS=/sys/module/kofi_efa/parameters
TABLE=/tmp/table

# parameters NAME=VALUE...: set the provider's parameters for endpoints that are opened later
parameters()
{
	for parameter in "$@"; do
		echo "${parameter#*=}" > "$PARAMETERS/${parameter%%=*}"
	done
}

# begin MAX_SIZE SLOTS: have the kernel open an endpoint
begin()
{
	modprobe kofi_echo domain=es0 max_size="$1" slots="$2"
	export FI_ECHO_MAX="$1"
	idle_ops=$2
}

# count_all: add the packets that each side has sent to the table
count_all()
{
	awk '$1 == "sent" || $1 == "received" { for (i = 2; i < NF; i += 2) print $1, $i, $(i + 1) }' \
		"$EFA" >> $TABLE
}

# idle: the endpoint has only its posted receives, and keeps no message
idle()
{
	[ "$(counted ops)" = "$idle_ops" ] && [ "$(counted kept)" = 0 ]
}

# end: have the kernel close its endpoint
end()
{
	check "all operations have ended" wait_for 5 idle
	count_all
	check "unload the ULP" rmmod kofi_echo
	check "nothing is left open" nothing_open
}

# came TYPE..., went TYPE...: check that such packets were received from libfabric, or sent to it
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

# shellcheck disable=SC2119 # without parameters
set_up
# is_2: succeeds unless libfabric is 1.17
is_2()
{
	[ "$ROOT" ]
}

# pingpong: run libfabric's fi_pingpong, which compares what comes back. With tagged messages it
# can't choose fabric efa-direct.
pingpong()
{
	host python3 /tmp/shared/rdm-pingpong.py > $OUT/server 2>&1 &
	pingpong_server=$!
	check "the server is ready" wait_for 20 grep -q ready $OUT/server
	theirs fi_pingpong -p efa -e rdm -m tagged -c -I 3 -S all 127.0.0.1 > $OUT/log 2>&1
	check "fi_pingpong got all its messages back" [ $? = 0 ]
	sed 's/^/# /' $OUT/log
	check "the server has served it" wait $pingpong_server
	sed 's/^/# /' $OUT/server
}

# All sizes with the default thresholds.
export FI_EFA_USE_DEVICE_RDMA=0
begin 67108864 4
talk "without RDMA" sizes 1 2 100 8000 9000 65536 65537 1048575 1048576 4194304 67108864
came LONGCTS_MSGRTM LONGCTS_TAGRTM DC_LONGCTS_MSGRTM DC_LONGCTS_TAGRTM CTS CTSDATA RECEIPT
went LONGCTS_MSGRTM LONGCTS_TAGRTM DC_LONGCTS_TAGRTM CTS CTSDATA RECEIPT
cp /bed/guest/rdm-pingpong.py $OUT
pingpong
check "no message was read" [ -z "$(counted_of sent EOR)$(counted_of received EOR)" ]
check "no operation failed" [ "$(cat $ECHO/failed)" = 0 ]
end

export FI_EFA_USE_DEVICE_RDMA=1
begin 67108864 4
talk "with RDMA" sizes 1 65537 1048576 4194304 67108864
came LONGREAD_MSGRTM LONGREAD_TAGRTM EOR
went LONGREAD_MSGRTM LONGREAD_TAGRTM EOR
check "no operation failed" [ "$(cat $ECHO/failed)" = 0 ]
end

# Small messages by all sub-protocols. There are no runts with delivery complete.
export FI_EFA_INTER_MAX_MEDIUM_MESSAGE_SIZE=16384 FI_EFA_INTER_MIN_READ_MESSAGE_SIZE=100000
parameters inter_max_medium_message_size=16384 inter_min_read_message_size=100000
begin 1048576 8
talk "small thresholds" sizes 1 9000 16384 16385 50000 99999 100000 1000000
came EAGER_MSGRTM EAGER_TAGRTM MEDIUM_MSGRTM MEDIUM_TAGRTM LONGCTS_MSGRTM LONGCTS_TAGRTM \
	LONGREAD_MSGRTM LONGREAD_TAGRTM DC_EAGER_MSGRTM DC_EAGER_TAGRTM DC_MEDIUM_MSGRTM \
	DC_MEDIUM_TAGRTM DC_LONGCTS_MSGRTM DC_LONGCTS_TAGRTM CTS CTSDATA EOR RECEIPT HANDSHAKE
went EAGER_MSGRTM EAGER_TAGRTM MEDIUM_MSGRTM MEDIUM_TAGRTM LONGCTS_MSGRTM LONGCTS_TAGRTM \
	LONGREAD_MSGRTM LONGREAD_TAGRTM DC_EAGER_TAGRTM DC_MEDIUM_TAGRTM DC_LONGCTS_TAGRTM \
	CTS CTSDATA EOR RECEIPT HANDSHAKE
check "no operation failed" [ "$(cat $ECHO/failed)" = 0 ]
end

export FI_EFA_RUNT_SIZE=20000
parameters runt_size=20000
begin 1048576 8
talk "with runts" sizes 100000 100001 300000 1000000
came RUNTREAD_MSGRTM RUNTREAD_TAGRTM EOR
went RUNTREAD_MSGRTM RUNTREAD_TAGRTM EOR
check "no operation failed" [ "$(cat $ECHO/failed)" = 0 ]
end

# The whole message is its runt, unless it is longer or another one is being read. libfabric's send
# ends with its last packet then: an EOR would end another operation.
export FI_EFA_RUNT_SIZE=300000 FI_EFA_INTER_MIN_READ_MESSAGE_SIZE=9000
begin 1048576 8
talk "whole runts, one at a time" sizes 9000 16000 20000 100000 262144
talk "whole runts, many at a time" many 300
came RUNTREAD_MSGRTM RUNTREAD_TAGRTM
went EOR
check "no operation failed" [ "$(cat $ECHO/failed)" = 0 ]
end
export FI_EFA_INTER_MIN_READ_MESSAGE_SIZE=100000

# refused kernel|libfabric: messages that can't be read must arrive, with and without runts
refused()
{
	for runt in 0 20000; do
		export FI_EFA_RUNT_SIZE=$runt
		parameters runt_size=$runt
		begin 1048576 8
		"refused_by_$1"
		end
	done
}

# libfabric's device refuses the kernel's reads.
refused_by_kernel()
{
	echo 1000 > $SIM/pci0/faults/deny_read
	talk "messages that the kernel can't read, runts of $runt" sizes 100000 300000
	echo 0 > $SIM/pci0/faults/deny_read
	went READ_NACK
	check "no operation failed" [ "$(cat $ECHO/failed)" = 0 ]
}

# regions: print the number of regions of the process's device
regions()
{
	sed -n "s/^regions //p" $SIM/pci0/memory
}

# libfabric can't register its buffer, as its device has no region left.
refused_by_libfabric()
{
	rm -f $OUT/go
	mkfifo $OUT/go
	theirs sh -c "FI_ECHO_NO_DESC=1 $OUT/fi_echo efa_0-rdm $(cat $ECHO/name) sizes 100000 300000 \
		< $OUT/go" > $OUT/log 2>&1 &
	refused_waits=$!
	exec 9> $OUT/go
	check "the process is ready" wait_for 60 grep -q ready $OUT/log
	note "$(regions) regions"
	regions > $SIM/pci0/faults/mr_limit
	exec 9>&-
	check "messages that libfabric can't read, runts of $runt" wait $refused_waits
	sed 's/^/# /' $OUT/log
	echo 0 > $SIM/pci0/faults/mr_limit
	came READ_NACK
	check "no operation failed" [ "$(cat $ECHO/failed)" = 0 ]
}

if is_2; then
	refused kernel
	refused libfabric
fi

# now: print the hundredths of a second since the guest's start
now()
{
	read -r now_up _ < /proc/uptime
	echo "${now_up%.*}${now_up#*.}"
}

# killed RDMA RUNT sent|received TYPE SIZE: have the process killed when the kernel has sent or
# received such a packet. All operations with it must end within two seconds: at most one until
# the kernel asks the silent peer for a sign of life, and another one. The last half second is for
# the guest: its timer may be late, and the completions are noticed by looking for them.
killed()
{
	export FI_EFA_USE_DEVICE_RDMA="$1" FI_EFA_RUNT_SIZE="$2"
	shift 2
	theirs $OUT/fi_echo efa_0-rdm "$(cat $ECHO/name)" die "$@" > $OUT/log 2>&1
	killed_status=$?
	killed_then=$(now)
	check "killed when $2 was $1" [ $killed_status = 137 ]
	[ $killed_status = 137 ] || sed 's/^/# /' $OUT/log
	check "all operations end, $2 $1" wait_for 5 idle
	killed_took=$(($(now) - killed_then))
	note "after $killed_took hundredths of a second, $(cat $ECHO/failed) have failed by now"
	check "they end within two seconds, $2 $1" [ $killed_took -le 250 ]
}

parameters runt_size=0
begin 4194304 8
killed 0 0 sent HANDSHAKE 8
killed 0 0 received EAGER_TAGRTM 8
killed 0 0 received DC_EAGER_TAGRTM 8
killed 0 0 received RECEIPT 8
killed 0 0 received MEDIUM_TAGRTM 16384
killed 0 0 sent DC_MEDIUM_TAGRTM 16384
killed 0 0 received LONGCTS_TAGRTM 1000000
killed 0 0 sent CTS 4000000
killed 0 0 received CTSDATA 4000000
killed 0 0 sent LONGCTS_TAGRTM 1000000
killed 0 0 received CTS 4000000
killed 0 0 sent CTSDATA 4000000
killed 1 0 received LONGREAD_TAGRTM 4000000
killed 1 0 sent LONGREAD_TAGRTM 4000000
killed 1 0 sent EOR 1000000
killed 1 0 received EOR 1000000
killed 1 20000 received RUNTREAD_TAGRTM 1000000
if is_2; then
	echo 1000 > $SIM/pci0/faults/deny_read
	killed 1 0 sent READ_NACK 1000000
	echo 0 > $SIM/pci0/faults/deny_read
fi
export FI_EFA_USE_DEVICE_RDMA=1 FI_EFA_RUNT_SIZE=0
talk "another process" sizes 8 20000 200000
end
parameters runt_size=20000
begin 4194304 8
killed 1 0 sent RUNTREAD_TAGRTM 1000000
talk "a process after the killed one" sizes 8 20000 200000
end

note "packets of each type, from libfabric and to it:"
sort $TABLE | awk '{ n[$2, $1] += $3; type[$2] } END {
	for (t in type) print "# " t, n[t, "received"] + 0, n[t, "sent"] + 0 }' | sort
tear_down
