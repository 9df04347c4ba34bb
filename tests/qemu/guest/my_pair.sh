#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# more: yes
# guests: 2
# host-root: yes
# host-tools: rdma
# installed: yes
# timeout: 120
# modules: hmac sha256_generic
#
# samples/template/my_pair.c, built outside of the tree: two machines meet and exchange a greeting,
# whichever is loaded first, and again after either is loaded anew.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

SECRET=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
WRONG=f00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f

meet()
{
	barrier "$1" > /dev/null || exit 1
}

# load SECRET: as the server at guest a, as the client at guest b
load()
{
	if [ "$ROLE" = a ]; then
		insmod /installed/my_ulp/my_pair.ko secret="$1"
	else
		insmod /installed/my_ulp/my_pair.ko secret="$1" peer="$(ip_of a):7472"
	fi
}

# said TEXT COUNT: the log has a line with the text that often, soon
said()
{
	for _ in $(seq 200); do
		[ "$(dmesg | grep -c "my_pair: $1")" != "$2" ] || return 0
		usleep 100000
	done
	return 1
}

greeting=$([ "$ROLE" = a ] && echo "hello, fabric" || echo "hello, machine")
for module in kofi_efa kofi_cm efasim; do
	check "$module is loaded" modprobe $module
done
check "a device is added" host rdma link add es0 type efasim netdev eth0
meet devices

[ "$ROLE" = b ] || check "the server is loaded first" load $SECRET
meet server
[ "$ROLE" = a ] || check "the client is loaded" load $SECRET
check "the greeting has arrived" said "received: $greeting" 1
meet greeted

[ "$ROLE" = b ] || check "the server is unloaded" rmmod my_pair
[ "$ROLE" = a ] || check "the client has noticed" said "the other machine is gone" 1
meet gone
[ "$ROLE" = b ] || check "the server is loaded again" load $SECRET
check "the greeting has arrived again" said "received: $greeting" 2
meet again

[ "$ROLE" = a ] || check "the client is unloaded" rmmod my_pair
[ "$ROLE" = b ] || check "the server has noticed" said "the other machine is gone" 2
[ "$ROLE" = a ] || check "a client with a wrong secret is loaded" load $WRONG
[ "$ROLE" = a ] || sleep 3
check "no greeting has arrived" said "received: $greeting" 2
meet wrong
check "the module is unloaded" rmmod my_pair
check "nothing is left open" nothing_open
check "the device is deleted" host rdma link delete es0
