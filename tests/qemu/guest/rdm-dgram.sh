#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# full: yes
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: fi_pingpong rdma
# modules: efa ib_uverbs
# mem: 3G
# timeout: 600
#
# The kernel's datagrams against libfabric's fi_pingpong, which compares what it gets, over a PCI
# function of the soft device: with libfabric as the side that begins, of all sizes up to the MTU, and
# with the kernel.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

# shellcheck source=tests/qemu/interop.sh
. /bed/interop.sh

# packets: print the number of packets that a device has received
packets()
{
	awk '$1 == "recv_wrs" { print $2 }' "$SIM/$1/counters"
}

# shellcheck disable=SC2119 # without parameters
set_up
cp /bed/guest/rdm-pingpong.py $OUT
modprobe kofi_echo domain=es0 dgram=1 max_size=8928 slots=32
check "the kernel has an endpoint of datagrams" [ "$(cat $ECHO/name | wc -c)" = 65 ]

# pingpong [ARGUMENT...]: run fi_pingpong against it
pingpong()
{
	host python3 /tmp/shared/rdm-pingpong.py > $OUT/server 2>&1 &
	pingpong_server=$!
	check "the server is ready: $*" wait_for 20 grep -q ready $OUT/server
	theirs timeout 100 fi_pingpong -p efa -e dgram -c "$@" 127.0.0.1 > $OUT/log 2>&1
	check "fi_pingpong got all its datagrams back: $*" [ $? = 0 ]
	sed 's/^/# /' $OUT/log
	check "the server has served it: $*" wait $pingpong_server
	sed 's/^/# /' $OUT/server
}

# begin SIZE COUNT: the same with the kernel as the side that begins
begin()
{
	theirs timeout 100 fi_pingpong -p efa -e dgram -c -I "$2" -S "$1" > $OUT/log 2>&1 &
	begin_server=$!
	host python3 /tmp/shared/rdm-pingpong.py "$1" "$2" > $OUT/client 2>&1
	check "the kernel got its $2 datagrams of $1 bytes back" [ $? = 0 ]
	sed 's/^/# /' $OUT/client
	check "fi_pingpong got what it expected" wait $begin_server
	sed 's/^/# /' $OUT/log
}

pingpong -I 20 -S 64
pingpong -I 5 -S all
begin 64 20
begin 2500 5
for device in es0 pci0; do
	check "$device received datagrams" [ "$(packets $device)" -gt 100 ]
done
check "no operation failed" [ "$(cat $ECHO/failed)" = 0 ]
check "datagrams were sent back" [ "$(cat $ECHO/echoed)" -gt 100 ]
check "unload the ULP" rmmod kofi_echo
tear_down
