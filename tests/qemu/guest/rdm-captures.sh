#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# full: test
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: fi_info
# modules: efa ib_uverbs
# mem: 3G
# timeout: 600
#
# Record what Debian 12's libfabric (1.17) sends: two endpoints of a process on a PCI function
# of the soft device do one operation of each kind, by each sub-protocol, and the device's trace
# events show the packets. The shortest packet of each type and set of flags is printed for
# make captures.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

# shellcheck source=tests/qemu/interop.sh
. /bed/interop.sh

TRACE=/sys/kernel/tracing
TYPES=/tmp/types

# seen: print length and bytes of the shortest packet of each type and set of flags in the trace
seen()
{
	awk '/ efasim_msg: / {
		for (i = 1; i <= NF; i++) {
			if ($i ~ /^len=/) len = substr($i, 5) + 0
			if ($i ~ /^data=/) data = substr($i, 6)
		}
		key = substr(data, 1, 2) substr(data, 5, 4)
		if (!(key in best) || len < best[key]) { best[key] = len; bytes[key] = data }
	} END { for (key in best) print best[key], bytes[key] }' $TRACE/trace
}

# record WHAT KIND...: have fi_kinds do operations of these kinds, and record their packets
record()
{
	record_what=$1
	shift
	echo > $TRACE/trace
	theirs $OUT/fi_kinds efa_0-rdm "$@" > $OUT/log 2>&1
	record_status=$?
	check "$record_what" [ $record_status = 0 ]
	[ $record_status = 0 ] || sed 's/^/# /' $OUT/log
	check "$record_what: the trace lost nothing" \
		grep -qE '^# entries-in-buffer/entries-written: ([0-9]+)/\1 ' $TRACE/trace
	seen > $OUT/seen
	while read -r len bytes; do
		note "capture $len $bytes"
		echo $((0x$(echo "$bytes" | cut -c 1-2))) >> $TYPES
	done < $OUT/seen
}

# has TYPE...: check that packets of these types were recorded
has()
{
	for type in "$@"; do
		check "there is a packet of type $type" grep -qx "$type" $TYPES
	done
}

: > $TYPES
cp /bed/tools/fi_kinds $OUT
# Without RDMA writes in the device, libfabric writes by messages.
set_up_process lo rdma_write=0
note "libfabric $(theirs fi_info --version | awk '/^libfabric:/ { print $2 }')"
echo 65536 > $TRACE/buffer_size_kb
echo 1 > $TRACE/events/efasim/efasim_msg/enable

record "everything by messages" msg rma atomic
# CTS, CTSDATA, READRSP, ATOMRSP, HANDSHAKE, RECEIPT; eager, medium, long-CTS; writes, reads,
# atomics; with delivery complete
has 3 4 5 8 9 10 64 65 66 67 68 69 70 71 72 73 74 75 76 133 134 135 136 137 138 139 140 141
export FI_EFA_USE_DEVICE_RDMA=1
record "long messages and writes are read" msg rma
has 7 128 129 130
# For host memory, libfabric sends runts only if this is set.
export FI_EFA_RUNT_SIZE=16384
record "with a runt" msg

check "unload the driver" rmmod efa
check "unload" rmmod efasim
