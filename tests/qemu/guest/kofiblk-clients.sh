#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# smp: 2
# mem: 1G
# host-root: yes
# host-tools: rdma fio
# modules: null_blk configfs hmac sha256_generic crc32c_generic
# full: yes
# timeout: 300
#
# Three concurrent clients of one export, each with its own part of it, over two queues; limits
# of a session; and a client that connects and disconnects without affecting others.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

SESSIONS=/sys/kernel/debug/kofiblk_srv/sessions
TRACING=/sys/kernel/tracing
MEMORY=262144
# A guest that isn't scheduled for some seconds must not lose its session.
PATIENT="reconnect_delay=1,keep_alive_tmo=60"

server_starts()
{
	check "a RAM disk is created" ram_disk n0 64
	check "a server for three clients is loaded" serve_one /dev/n0 max_sessions=3 max_memory=$MEMORY
	mount -t tracefs tracefs $TRACING 2> /dev/null
	echo 1 > $TRACING/events/kofiblk_srv/kofiblk_srv_cmd/enable
}

# seen COUNT FIELD: check that FIELD of COUNT sessions is above 0
seen()
{
	[ "$(grep -c " $2=[1-9]" $SESSIONS)" = "$1" ]
}

# most FIELD: print its maximum over all sessions
most()
{
	sed -n "s/.* $1=\([0-9]*\).*/\1/p" $SESSIONS | sort -n | tail -n 1
}

server_watches()
{
	touch /tmp/watching
	(
		most=0
		while [ -e /tmp/watching ]; do
			now=$(most memory)
			[ "${now:-0}" -le "$most" ] || most=$now
			usleep 20000
		done
		echo "$most" > /tmp/most
	) &
	watcher=$!
	meet loaded
	check "each session had to wait for memory" seen 3 waits
	rm /tmp/watching
	wait $watcher
	read -r most < /tmp/most
	check "each session had memory: $most" [ "$most" -gt 0 ]
	check "no session had more memory than permitted" [ "$most" -le $MEMORY ]
	echo 0 > $TRACING/events/kofiblk_srv/kofiblk_srv_cmd/enable
	check "there were commands on the first queue" grep -q "queue=0 .* write" $TRACING/trace
	check "there were commands on the second queue" grep -q "queue=1 .* write" $TRACING/trace
	echo > $TRACING/trace
}

hw_queues()
{
	# shellcheck disable=SC2012
	ls "/sys/block/$1/mq" | wc -l
}

client_starts()
{
	check "the client's module is loaded" modprobe kofiblk
	for i in 0 1 2; do
		check "a disk for client $i" attach disk0 "client=c$i,$PATIENT"
		check "the disk is $DISK" [ "$DISK" = kofiblk$i ]
		check "the disk has two queues" [ "$(hw_queues "$DISK")" = 2 ]
	done
	refuse "a fourth client is refused" attach disk0 client=c3
}

# Each client writes and reads its own 16 MiB.
together()
{
	set --
	for i in 0 1 2; do
		set -- "$@" --name=c$i --filename=/dev/kofiblk$i --offset=$((i * 16))m
	done
	host fio --direct=1 --ioengine=libaio --iodepth=32 --verify=crc32c --size=4m \
		--rw=randwrite --bsrange=512-128k --blockalign=512 --verify_fatal=1 \
		--verify_dump=0 --minimal "$@" > /tmp/fio.out 2>&1 && return
	tail -n 20 /tmp/fio.out | cut -c 1-300 | sed 's/^/# /'
	return 1
}

# sum DISK: print checksums of the parts of all clients
sum()
{
	for i in 0 1 2; do
		dd if="/dev/$1" bs=1M skip=$((i * 16)) count=2 iflag=direct 2> /dev/null
	done | md5sum
}

client_loads()
{
	check "three clients write and read concurrently" together
	meet loaded
	check "the second client reads what the first wrote" [ "$(sum kofiblk0)" = "$(sum kofiblk1)" ]
	check "the third client reads what the first wrote" [ "$(sum kofiblk0)" = "$(sum kofiblk2)" ]
}

comes_and_goes()
{
	DISK=kofiblk0
	for _ in $(seq 20); do
		was=$(attribute reconnects)
		echo 1 > /sys/block/kofiblk0/kofiblk/reset
		wait_for 20 session_after "$was" || return
	done
}

disturbs()
{
	together &
	others=$!
	check "one client is reset repeatedly" comes_and_goes
	check "the other clients write and read meanwhile" wait $others
	for DISK in kofiblk1 kofiblk2; do
		check "$DISK had one session all the time" [ "$(attribute reconnects)" = 0 ]
	done
	DISK=kofiblk1
	check "one client detaches its disk" detach
	DISK=kofiblk2
	check "another client's session is live" state_is live
	# Wait until the server has noticed it.
	check "a new client attaches a disk" wait_for 20 attach disk0 client=c4
	check "the module is unloaded with all its disks" rmmod kofiblk
	check "the client leaves nothing open" nothing_open
}

load_fabric
at server server_starts
meet serving
at client client_starts
at server server_watches
at client client_loads
at client disturbs
meet client-gone
at server check "the server is unloaded" server_gone
at server check "the server leaves nothing open" nothing_open
at server check "the RAM disk is removed" ram_gone n0
meet end
unload_fabric
