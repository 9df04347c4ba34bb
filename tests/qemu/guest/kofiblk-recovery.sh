#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12 stock-6.1
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma fio
# modules: null_blk configfs hmac sha256_generic crc32c_generic
# full: yes
# timeout: 400
#
# While data is written, read and compared, the server is stopped and started, falls silent, or
# loses its device, as does the client, and connections are reset. Users of the disk notice
# nothing. After that, a server that doesn't come back.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

RESETS=100

server_starts()
{
	check "a RAM disk is created" ram_disk n0 64
	check "the server is loaded" serve_one
}

client_starts()
{
	check "the client's module is loaded" modprobe kofiblk
	check "the client attaches a disk" attach disk0 \
		client=b,reconnect_delay=1,keep_alive_tmo=5,ctrl_loss_tmo=60
	load_begins --name=job --bsrange=512-64k --blockalign=512 --size=4m
}

# mishap WHAT COMMAND...: run it at the server
mishap()
{
	at client before
	meet "before $1"
	mishap_what=$1
	shift
	at server "$@"
	meet "after $mishap_what"
	at client comes_back "$mishap_what"
}

restarts()
{
	check "the server is unloaded in use" server_gone
	check "the server is loaded again" serve_one
}

not_live()
{
	! state_is live
}

# The connection stays, but messages are lost.
falls_silent()
{
	echo 1 > "$SIM/faults/unresponsive"
	meet silent
	meet noticed
	echo 0 > "$SIM/faults/unresponsive"
}

notices()
{
	meet silent
	check "the client notices the loss of its session" wait_for 40 not_live
	meet noticed
}

silence()
{
	at client before
	meet "before silence"
	at server falls_silent
	at client notices
	at client comes_back "silence"
}

link_down()
{
	ip link set eth0 down
	meet down
	meet missed
	ip link set eth0 up
}

cable()
{
	at client before
	meet "before the cable is pulled"
	at server link_down
	at client misses
	at client comes_back "the cable was out"
}

misses()
{
	meet down
	check "the client notices the absence of the server" wait_for 40 not_live
	meet missed
}

swap_device()
{
	check "the $SIDE's device is removed" device_down
	check "the $SIDE's device is back" device_back
}

client_device()
{
	before
	swap_device
	comes_back "the client's device was away"
}

# A device is removed while it is being opened.
flaps()
{
	before
	for pause in 1 2 4 8 16 32 64 128; do
		device_down || break
		device_back || break
		echo 1 > "/sys/block/$DISK/kofiblk/reset"
		usleep $((pause * 1000))
	done
	check "the client's device is removed and created repeatedly" [ "$pause" = 128 ]
	comes_back "that"
}

resets()
{
	before
	for _ in $(seq $RESETS); do
		one=$(attribute reconnects)
		echo 1 > "/sys/block/$DISK/kofiblk/reset"
		wait_for 20 session_after "$one" || break
	done
	check "$RESETS resets" [ "$(attribute reconnects)" -ge $((was + RESETS)) ]
}

read_disk()
{
	dd if="/dev/$DISK" of=/dev/null bs=4k count=1 iflag=direct
}

# --- the server stays away ---

fails_fast()
{
	echo 1 > "/sys/block/$DISK/kofiblk/fast_io_fail_tmo"
	# Long, so that no attempt to connect notices the removal.
	echo 600 > "/sys/block/$DISK/kofiblk/reconnect_delay"
	meet leaves
	meet left
	check "there is no session" wait_for 20 state_is connecting
	answer=$(errno_of read_disk)
	check "I/O fails: $answer" [ "$answer" = Link_has_been_severed ]
	check "a device that isn't in use is removed" device_down
	check "the unused device is created again" device_back
	meet returns
	meet returned
	before
	echo 1 > "/sys/block/$DISK/kofiblk/reset"
	check "the client has another session" wait_for 20 session_after "$was"
	answer=$(errno_of read_disk)
	check "I/O succeeds again: $answer" [ "$answer" = success ]
	echo 1 > "/sys/block/$DISK/kofiblk/reconnect_delay"
}

leaves_and_returns()
{
	meet leaves
	check "the server is unloaded" server_gone
	meet left
	meet returns
	check "the server is loaded again" serve_one
	meet returned
}

given_up()
{
	check "a disk without a server is given up" wait_for 20 disk_gone
	check "the client's module is unloaded" rmmod kofiblk
	check "the client leaves nothing open" nothing_open
}

load_fabric
at server server_starts
meet serving
at client client_starts
mishap "a restart" restarts
silence
cable
at client client_device
mishap "the server's device was away" swap_device
at client flaps
at client resets
at client load_ends
at server leaves_and_returns
at client fails_fast
at client sh -c "echo 2 > /sys/block/$DISK/kofiblk/ctrl_loss_tmo"
meet last
at server check "the server is unloaded at the end" server_gone
at server check "the server leaves nothing open" nothing_open
at client given_up
at server check "the RAM disk is removed" ram_gone n0
meet end
unload_fabric
