#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.1
# guests: 2
# lives: 6
# drive: 64M
# drive-writes: 40
# mem: 1G
# host-root: yes
# host-tools: rdma fio
# modules: configfs hmac sha256_generic crc32c_generic crc32c_intel libcrc32c
# kmemleak: yes
# full: yes
# timeout: 1200
#
# The server's machine crashes under load, again and again, and then the client's.
#
# The server's store is its drive. In general a crash may lose writes that were completed but
# not flushed. Here it doesn't: completed writes of the drive are in a file of the host, which
# doesn't crash. The server writes without its page cache and replies when the drive has
# completed, so all writes that the client got replies to must be there afterwards. The client
# sends the others again. So fio, which compares what it reads with what it wrote last, must
# find no difference and get no error. The drive is slow, so that a crash finds outstanding
# writes, which a server that replies too early loses. All blocks of a job have the same size,
# because only then fio can distinguish the latest data of a block from older data.
# The client can't know that this drive keeps unflushed data, so a flush after a crash must
# fail. Therefore fio doesn't flush. kofiblk-log tests that flushes reach the drive.
#
# A client that crashes leaves each of its writes done or not, by block, and nothing of
# itself at the server.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

SESSIONS=/sys/kernel/debug/kofiblk_srv/sessions
SERVER_KILLS=5
CLIENT_KILLS=4
# Size of the file that fio writes until the client is killed.
MEGABYTES=4

# pause: up to two seconds
pause()
{
	pause_ms=$(($(od -An -N2 -tu2 /dev/urandom) % 2000))
	note "$pause_ms ms later"
	usleep $((pause_ms * 1000))
}

# --- the server crashes ---

# client_attaches KEEP_ALIVE
client_attaches()
{
	check "the client attaches a disk" attach disk0 \
		"client=b,reconnect_delay=1,keep_alive_tmo=$1,ctrl_loss_tmo=300"
}

# Data within commands and data by RMA; read at once, or when all is written.
checked_load()
{
	load_begins --randrepeat=0 \
		--name=small --bs=4k --size=512k \
		--name=medium --bs=16k --offset=16m --size=1m --verify_backlog=16 \
		--name=large --bs=128k --offset=32m --size=4m
}

# By the block device's own fsync.
flush()
{
	dd if=/dev/null of="/dev/$DISK" conv=fsync,notrunc
}

server_crashes()
{
	checked_load
	for kill in $(seq $SERVER_KILLS); do
		before
		pause
		check "the server is killed" kill_guest a
		meet serving
		comes_back "crash $kill"
	done
	load_ends
	check "requests were repeated" [ "$(counter replays)" -gt 0 ]
	check "each crash may have lost something" [ "$(counter losses)" = $SERVER_KILLS ]
	refuse "a flush after the losses fails" flush
	check "the losses are accepted" sh -c "echo 0 > /sys/block/$DISK/kofiblk/lost"
	check "the next flush succeeds" flush
	check "the disk is detached" detach
}

# --- the client crashes ---

# fio_blocks ARGUMENT...: with blocks that tell where they belong, and their checksum
fio_blocks()
{
	fio_jobs --verify=crc32c --verify_interval=4096 --size=${MEGABYTES}m --name=blocks "$@"
}

client_fills()
{
	check "each block is written" fio_blocks --rw=write --bs=64k --do_verify=0 \
		--end_fsync=1
}

writes_until_killed()
{
	fio_blocks --rw=randwrite --bsrange=4k-128k --blockalign=4k --do_verify=0 \
		--randseed="$LIFE" --loops=1000000 &
	load_requests=$(counter requests)
	check "requests are being made" wait_for 60 requests_after $((load_requests + 100))
	meet loading
	wait $!
	not_ok "fio ended before the client"
}

client_is_back()
{
	meet back
	client_attaches $((LIFE % 2 ? 120 : 5))
	meet attached
	check "each block is old or new" fio_blocks --rw=read --bs=64k
}

client_ends()
{
	check "the disk is detached" detach
	check "the client's module is unloaded" rmmod kofiblk
	check "the client leaves nothing open" nothing_open
}

# sessions COUNT: succeed if the server has this number of sessions
sessions()
{
	[ "$(grep -c "^client=" $SESSIONS)" = "$1" ]
}

# Some clients come back when nothing is left of them, others as soon as they can.
client_crashes()
{
	for kill in $(seq $CLIENT_KILLS); do
		meet loading
		pause
		sed 's/^/# /' $SESSIONS
		check "the client is killed" kill_guest b
		if [ $((kill % 2)) = 0 ]; then
			check "the killed client's session ends" wait_for 60 sessions 0
			check "the session's resources are freed" wait_for 20 nothing_open
		fi
		meet back
		meet attached
		check "the new client's session is the only one" wait_for 60 sessions 1
	done
}

server_ends()
{
	check "no client violated the protocol" \
		sh -c "! dmesg | grep 'kofiblk_srv: b at [0-9.:]* violates the protocol'"
	check "the server is unloaded" server_gone
	check "the server leaves nothing open" nothing_open
}

load_fabric
if [ "$SIDE" = server ]; then
	check "a server in life $LIFE" serve_one /dev/vda max_sessions=2
	meet serving
	if [ "$LIFE" -gt $SERVER_KILLS ]; then
		client_crashes
	else
		meet loading
	fi
else
	check "the client's module is loaded" modprobe kofiblk
	if [ "$LIFE" = 1 ]; then
		meet serving
		client_attaches 5
		server_crashes
		client_attaches 120
		client_fills
	else
		client_is_back
	fi
	[ "$LIFE" -gt $CLIENT_KILLS ] || writes_until_killed
	client_ends
fi
meet client-gone
at server server_ends
meet end
unload_fabric
