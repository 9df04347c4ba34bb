#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# alone: yes
# full: yes
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: fi_info rdma
# modules: efa ib_uverbs
# mem: 3G
# timeout: 900
#
# The kernel's fabric efa against Debian 12's libfabric (1.17), which runs on a PCI function of the
# soft device, over the same network: sizes, sub-protocols, faults, unexpected messages, a process
# that is killed, and many processes.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

# shellcheck source=tests/qemu/interop.sh
. /bed/interop.sh

# Set by rdm-libfabric-full, for parts that take minutes.
FULL=${FULL:-}

# faults 0|1: have the network lose, reorder and repeat packets, and report missing receives, or not
faults()
{
	for device in es0 pci0; do
		for setting in reorder=300 duplicate=50 drop=20 rnr=50; do
			[ "$1" = 1 ] || note "$device: $(cat "$SIM/$device/faults/${setting%%=*}")" \
				"of 1000 ${setting%%=*}"
			echo $((${setting#*=} * $1)) > "$SIM/$device/faults/${setting%%=*}"
		done
	done
}

# shellcheck disable=SC2119 # without parameters
set_up
modprobe kofi_echo domain=es0
check "the kernel has an endpoint" [ "$(cat $ECHO/name | wc -c)" = 65 ]

talk "messages of all sizes" sizes 0 1 8 100 1000 4096 8000 9000 16384 30000 65536
for type in EAGER_MSGRTM EAGER_TAGRTM MEDIUM_MSGRTM MEDIUM_TAGRTM DC_EAGER_MSGRTM \
	    DC_MEDIUM_TAGRTM RECEIPT HANDSHAKE; do
	check "$type came from libfabric" [ "$(counted_of received $type)" -gt 0 ]
done
for type in EAGER_MSGRTM MEDIUM_TAGRTM DC_EAGER_TAGRTM DC_MEDIUM_TAGRTM RECEIPT HANDSHAKE; do
	check "$type was sent to libfabric" [ "$(counted_of sent $type)" -gt 0 ]
done
talk "many at a time" many 300
check "no operation failed" [ "$(cat $ECHO/failed)" = 0 ]

# The devices hide the network's faults, except that messages arrive out of order.
faults 1
talk "many, over a bad network" many 150
check "packets came early" [ "$(counted early)" -gt 0 ]
faults 0

# unexpected COUNT: send messages while the kernel has no receive for them, which it posts later
unexpected()
{
	unexpected_log=$OUT/log
	echo 1 > $ECHO/hold
	mkfifo $OUT/go
	theirs sh -c "$OUT/fi_echo efa_0-rdm $(cat $ECHO/name) unexpected $1 < $OUT/go" \
		> "$unexpected_log" 2>&1 &
	unexpected_waits=$!
	exec 9> $OUT/go
	check "$1 messages are sent" wait_for 120 grep -q "^sent: $1" "$unexpected_log"
	note "unexpected $(counted unexpected), kept $(counted kept) bytes"
	check "most of them wait" [ "$(counted unexpected)" -gt $(($1 * 9 / 10)) ]
	echo 0 > $ECHO/hold
	exec 9>&-
	check "all of them come back" wait $unexpected_waits
	sed 's/^/# /' "$unexpected_log"
	check "the kernel keeps none of them" [ "$(counted kept)" = 0 ]
}

# processes TIMES: run five processes at once, so that they reuse queue pair numbers
processes()
{
	processes_n=0
	while [ $processes_n -lt "$1" ]; do
		for i in 1 2 3 4 5; do
			theirs $OUT/fi_echo efa_0-rdm "$(cat $ECHO/name)" sizes 8 9000 \
				> $OUT/log$i 2>&1 &
		done
		wait
		for i in 1 2 3 4 5; do
			grep -q "same: 9000" $OUT/log$i && continue
			sed 's/^/# /' $OUT/log$i
			return 1
		done
		processes_n=$((processes_n + 1))
	done
}

if [ "$FULL" ]; then unexpected 10000; else unexpected 500; fi

# A process is killed, and another one gets its queue pair number.
theirs $OUT/fi_echo efa_0-rdm "$(cat $ECHO/name)" forever > $OUT/log 2>&1 &
sleep 8
killall -9 fi_echo
talk "a process after the killed one" sizes 8 20000
failed=$(cat $ECHO/failed)
note "$failed operations failed, as a process was killed"
if [ "$FULL" ]; then
	check "50 processes get their messages back" processes 10
	check "no other operation failed" [ "$(cat $ECHO/failed)" = "$failed" ]
fi

# granted_both_ways: check that long messages went by long-CTS in both directions
granted_both_ways()
{
	for type in LONGCTS_MSGRTM LONGCTS_TAGRTM DC_LONGCTS_MSGRTM DC_LONGCTS_TAGRTM CTS CTSDATA; do
		check "$type came from libfabric" [ "$(counted_of received $type)" -gt 0 ]
	done
	for type in LONGCTS_MSGRTM LONGCTS_TAGRTM DC_LONGCTS_TAGRTM CTS CTSDATA; do
		check "$type was sent to libfabric" [ "$(counted_of sent $type)" -gt 0 ]
	done
}

sed 's/^/# /' "$EFA"
check "unload the ULP" rmmod kofi_echo

# Messages that go by long-CTS.
modprobe kofi_echo domain=es0 max_size=4194304 slots=32
export FI_ECHO_MAX=4194304
if [ "$FULL" ]; then long="65537 66000 100000 262144 1048575 4194304"; else long="65537 700001"; fi
# shellcheck disable=SC2086
talk "long messages" sizes $long
granted_both_ways
talk "many, short and long" many 40
faults 1
talk "many, short and long, over a bad network" many 24
faults 0
check "no message was read" [ -z "$(counted_of received EOR)" ]

# Messages that the receiver reads.
export FI_EFA_USE_DEVICE_RDMA=1
talk "messages that are read" sizes 1048575 1048576 4194304
for type in LONGREAD_MSGRTM LONGREAD_TAGRTM EOR; do
	check "$type came from libfabric" [ "$(counted_of received $type)" -gt 0 ]
	check "$type was sent to libfabric" [ "$(counted_of sent $type)" -gt 0 ]
done
faults 1
talk "messages that are read, over a bad network" sizes 1048577
faults 0
check "no operation failed" [ "$(cat $ECHO/failed)" = 0 ]
check "the kernel keeps no message" [ "$(counted kept)" = 0 ]
sed 's/^/# /' "$EFA"
check "unload the ULP again" rmmod kofi_echo
tear_down
