#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma fio
# modules: null_blk configfs hmac sha256_generic crc32c_generic crc32c_intel libcrc32c
# kmemleak: yes
# full: yes
# timeout: 600
#
# Allocations fail, first at one side and then at the other, while data is written, read and
# compared, and sessions begin and end.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

KNOBS="failslab fail_page_alloc"
ROUNDS=4

server_starts()
{
	check "a RAM disk is created" ram_disk n0 32
	# With all its memory, as the disk itself must not fail.
	dd if=/dev/zero of=/dev/n0 bs=1M oflag=direct 2> /dev/null
	check "the server is loaded" serve_one
}

# bounds_of MODULE: set text and end
bounds_of()
{
	text=$(cat "/sys/module/$1/sections/.text")
	end=$(printf %#x $((text + $(sed -n "s/^$1 \([0-9]*\) .*/\1/p" /proc/modules))))
}

# Fail only allocations that are called, directly or not, from MODULE, and not those of the
# provider: to open a device takes so many that nearly no attempt would succeed.
# faults_on MODULE PERCENT
faults_on()
{
	bounds_of kofi_efa
	set -- "$@" reject-start="$text" reject-end="$end"
	bounds_of "$1"
	percent=$2
	shift 2
	for knob in $KNOBS; do
		fault_on "$knob" "$percent" stacktrace-depth=32 require-start="$text" \
			require-end="$end" "$@"
	done
}

# A connection needs few allocations, so none of one side may fail.
faults_off()
{
	hits=0
	for knob in $KNOBS; do
		echo 0 > "$FAULTS/$knob/probability"
		hits=$((hits + 1000000 - $(cat "$FAULTS/$knob/times")))
		echo -1 > "$FAULTS/$knob/times"
		echo 0 > "$FAULTS/$knob/require-start"
		echo 0xffffffffffffffff > "$FAULTS/$knob/require-end"
		echo 0 > "$FAULTS/$knob/reject-start"
		echo 0 > "$FAULTS/$knob/reject-end"
	done
	check "$hits allocations failed" [ "$hits" -gt 0 ]
}

client_starts()
{
	check "the client's module is loaded" modprobe kofiblk
	check "the client attaches a disk" attach disk0 client=b,reconnect_delay=1,keep_alive_tmo=20,depth=16
	load_begins --name=job --bsrange=512-64k --blockalign=512 --size=512k
}

# Sessions end, and begin in spite of failures.
sessions()
{
	for _ in $(seq $ROUNDS); do
		was=$(attribute reconnects)
		echo 1 > "/sys/block/$DISK/kofiblk/reset"
		check "the client has another session" wait_for 120 session_after "$was"
	done
}

client_fails()
{
	faults_on kofiblk 10
	sessions
	faults_off
}

server_fails()
{
	faults_on kofiblk_srv 2
	meet server-fails
	meet server-failed
	faults_off
}

in_spite_of_server()
{
	meet server-fails
	sessions
	meet server-failed
}

client_ends()
{
	load_ends
	check "the disk is detached" detach
	check "the client's module is unloaded" rmmod kofiblk
	check "the client leaves nothing open" nothing_open
}

load_fabric
at server server_starts
meet serving
at client client_starts
at client client_fails
meet client-failed
at server server_fails
at client in_spite_of_server
at client client_ends
meet client-gone
at server check "the server is unloaded" server_gone
at server check "the server leaves nothing open" nothing_open
at server check "the RAM disk is removed" ram_gone n0
meet end
unload_fabric
