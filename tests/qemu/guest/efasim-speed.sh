#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# full: yes
# guests: 2
# host-root: yes
# host-tools: rdma
# timeout: 300
#
# The software device is fast enough for long tests: 64 MiB go between two guests within 10 s, in
# messages that the receiver reads, and 50 endpoints share a device.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

RESULTS=/sys/kernel/debug/kofi_pingpong/client/results
STATE=/sys/kernel/debug/kofi_pingpong/client/state

# meet NAME: wait for the other guest
meet()
{
	barrier "$1" > /dev/null || exit 1
}

has_ended()
{
	[ "$(cat $STATE)" != waiting ] && [ "$(cat $STATE)" != running ]
}

# rate: print the data rate of the sends in MB/s
rate()
{
	awk '$1 == "send" { print $7 }' $RESULTS
}

# fast: 64 MiB take no more than 10 s
fast()
{
	rate | awk '{ n += $1 >= 6.72 } END { exit n != 1 }'
}

client()
{
	check "a client" modprobe kofi_pingpong role=client addr="$(ip_of a)" prov=efa fabric=efa \
		sizes=1048576 iterations=64 check=0
	check "the run ends" wait_for 120 has_ended
	check "nothing failed" [ "$(cat $STATE)" = "done" ]
	sed 's/^/# /' $RESULTS
	check "64 messages of 1 MiB: $(rate) MB/s" fast
}

modprobe efasim
host rdma link add es0 type efasim netdev eth0
modprobe kofi_efa
meet loaded

[ "$ROLE" = b ] || check "a server" modprobe kofi_pingpong role=server addr="$(ip_of a)" prov=efa \
	fabric=efa
meet server
[ "$ROLE" = a ] || client
meet ended
check "unload pingpong" rmmod kofi_pingpong

check "50 endpoints" modprobe kofi_soak provider=efa fabric=efa rma=0 threads=25 share=1 \
	seconds=3 max_len=8000
note "$(dmesg | grep 'kofi_soak:' | tail -n 1)"
check "unload the soak" rmmod kofi_soak
check "unload the provider" rmmod kofi_efa
check "delete the device" host rdma link delete es0
