#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma fio
# modules: null_blk configfs hmac sha256_generic crc32c_generic
# full: yes
# timeout: 300
#
# A client has no receives any more, as if its machine had crashed but not its device. Its
# session ends, and it gets no other one, although it tries again and again. Another client, on the
# same queues of the server, isn't affected.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

DEAF=/sys/kernel/debug/efasim/es1

server_starts()
{
	check "a RAM disk is created" ram_disk n0 64
	check "the server is loaded" serve_one /dev/n0
}

client_starts()
{
	check "the client's module is loaded" modprobe kofiblk
	check "the client attaches a disk" attach disk0 client=c0,domain=es0,reconnect_delay=1,keep_alive_tmo=60
	check "the first disk is $DISK" [ "$DISK" = kofiblk0 ]
	check "another device is created" host rdma link add es1 type efasim netdev eth0
	check "another client attaches a disk" wait_for 20 \
		attach disk0 client=c1,domain=es1,reconnect_delay=1,keep_alive_tmo=2
	check "the second disk is $DISK" [ "$DISK" = kofiblk1 ]
}

# not_heard COUNT: check that the deaf client's device has refused that many messages
not_heard()
{
	[ "$(sed -n 's/^rnr [0-9]* //p' $DEAF/faults/injected)" -ge "$1" ]
}

# attempts_after N: whether the disk has tried to connect more than N times
attempts_after()
{
	[ "$(counter attempts)" -gt "$1" ]
}

client_is_deaf()
{
	DISK=kofiblk0
	load_begins --name=job --size=16m --bsrange=512-64k --blockalign=512
	DISK=kofiblk1
	check "both are live" state_is live
	echo 1000 > $DEAF/faults/rnr
	dd if=/dev/kofiblk1 of=/dev/null bs=4k count=1 iflag=direct 2> /tmp/dd &
	reader=$!
	check "replies find no receive" wait_for 20 not_heard 50
	for was in 1 2 3; do
		check "the deaf one tries to come back: $was" wait_for 60 attempts_after $was
	done
	check "and gets no session" [ "$(attribute reconnects)" = 0 ]
	DISK=kofiblk0
	check "the other client kept its session" [ "$(attribute reconnects)" = 0 ]
	was=$(counter requests)
	check "the other client's requests are handled" wait_for 20 requests_after $((was + 100))
	echo 0 > $DEAF/faults/rnr
	DISK=kofiblk1
	check "all reads of the deaf client end" wait $reader
	check "the deaf client has a session" wait_for 40 state_is live
	DISK=kofiblk0
	load_ends
	check "the other client still has its first session" [ "$(attribute reconnects)" = 0 ]
	check "the module is unloaded with both disks" rmmod kofiblk
	check "the client leaves nothing open" nothing_open
	check "the deaf client's device is deleted" host rdma link delete es1
}

server_ends()
{
	refuse "the server closed no device" sh -c "dmesg | grep 'end, closing device'"
	check "the server is unloaded" server_gone
	check "the server leaves nothing open" nothing_open
	check "the RAM disk is removed" ram_gone n0
}

load_fabric
at server server_starts
meet serving
at client client_starts
at client client_is_deaf
meet client-gone
at server server_ends
meet end
unload_fabric
