#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.1 stock-newest
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma
# modules: null_blk configfs hmac sha256_generic crc32c_generic crc32c_intel libcrc32c
# full: stock-6.1 stock-newest
# timeout: 600
#
# kofiblk between two kernels over the EFA provider and soft devices: connecting, data, a
# server that comes back, a disk that is removed during use. Longer tests are in kofiblk-*.sh.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

MINE="client=b,secret=$SECRET,reconnect_delay=1,keep_alive_tmo=20"

serve()
{
	check "the server's module is loaded" modprobe kofiblk_srv
	check "an export with a secret is created" export_add disk0 /dev/n0 uuid=$UUID
	check "the client is allowed" allow disk0 b "$SECRET"
	check "a port is created" port_up disk0
}

server_starts()
{
	check "a RAM disk is created" ram_disk n0 64
	serve
}

# --- connecting ---

# fails WHAT ERROR COMMAND...: check that it fails with the error that the manual documents
fails()
{
	fails_what=$1
	fails_how=$2
	shift 2
	fails_text=$(errno_of "$@")
	check "$fails_what: $fails_text" [ "$fails_text" = "$fails_how" ]
}

connects()
{
	check "the client's module is loaded" modprobe kofiblk
	fails "no such export" No_such_file_or_directory attach nothing client=b
	fails "no secret" Permission_denied attach disk0 client=b
	fails "another secret" Permission_denied \
		attach disk0 "client=b,secret=$OTHER_SECRET"
	fails "another client" Permission_denied attach disk0 "client=c,secret=$SECRET"
	fails "a secret that is none" Invalid_argument \
		attach disk0 "client=b,secret=correct horse battery"
	fails "an option that isn't one" Invalid_argument \
		attach disk0 "client=b,secret=$SECRET,what=1"
	other=efa
	[ "$FABRIC" != efa ] || other=efa-direct
	fails "another fabric" Operation_not_supported attach disk0 "$MINE,fabric=$other"
	check "the log says which fabric the server uses" \
		sh -c "dmesg | grep -q 'refused by $SERVER: the server uses fabric ${FABRIC:-efa-direct}, '"
	fails "a port without a listener" Connection_refused sh -c \
		"echo addr=${SERVER%:*}:4421,host_id=$HOST_ID,export=disk0 > /dev/kofiblk-control"
	check "the log says which step failed" \
		sh -c "dmesg | grep -q 'no session with ${SERVER%:*}:4421: TCP connection: -111'"
	check "the client attaches a disk" attach disk0 "$MINE"
	check "the disk is live" state_is live
	check "the disk has the size of the store" [ "$(cat "/sys/block/$DISK/size")" = $((64 * 2048)) ]
	check "the disk's blocks have the size of the store's" \
		[ "$(cat "/sys/block/$DISK/queue/logical_block_size")" = 512 ]
	check "the disk supports discards" [ "$(cat "/sys/block/$DISK/queue/discard_max_bytes")" -gt 0 ]
	check "the server uses RDMA writes" [ "$(attribute rdma_write)" = 1 ]
	fails "the same, written otherwise" Operation_already_in_progress sh -c \
		"echo addr=[::ffff:${SERVER%:*}]:4420,host_id=$HOST_ID,export=disk0,client=b,secret=$SECRET > /dev/kofiblk-control"
	fails "twice the same" Operation_already_in_progress attach disk0 "client=b,secret=$SECRET"
}

# --- data ---

# part NUMBER BYTES COUNT [FLAG]: write and read 16 MiB of the disk, in units of BYTES
part()
{
	part_file=/tmp/part$1
	part_seek=$(($1 * 16777216 / $2))
	while [ ! -e /tmp/load.stop ]; do
		dd if=/dev/urandom of="$part_file" bs="$2" count="$3" 2> /dev/null
		dd if="$part_file" of="/dev/$DISK" bs="$2" seek=$part_seek \
			conv=notrunc,fsync ${4:+"$4"} 2> /dev/null || exit
		dd if="/dev/$DISK" bs="$2" skip=$part_seek count="$3" iflag=direct 2> /dev/null |
			cmp - "$part_file" || exit
	done
}

# parts: run all parts concurrently. Without fio, which is slow to start here.
parts()
{
	part 0 131072 4 oflag=direct &
	part_0=$!
	part 1 4096 8 oflag=direct &
	part_1=$!
	part 2 512 8 oflag=direct &
	part_2=$!
	# Through the page cache, with unaligned ends.
	part 3 25088 4 &
	wait $part_0 && wait $part_1 && wait $part_2 && wait $!
}

# counted NAME: check that the counter isn't 0
counted()
{
	[ "$(counter "$1")" -gt 0 ] 2> /dev/null
}

data()
{
	rm -f /tmp/load.stop
	parts &
	LOAD=$!
	check "requests are being made" wait_for 60 requests_after 50
	check "commands carried data" wait_for 60 counted inlined
	check "replies carried data" wait_for 60 counted inline_reads
	check "data was transferred by RMA" wait_for 60 counted registrations
	check "RDMA writes with immediate data were replies" wait_for 60 counted immediates
}

# --- a server that comes back ---
restart()
{
	check "the server is unloaded in use" server_gone
	serve
}

resets()
{
	check "the client has another session" wait_for 40 session_after 0
	for _ in 1 2 3; do
		was=$(attribute reconnects)
		echo 1 > "/sys/block/$DISK/kofiblk/reset"
		check "the client has another session after a reset" wait_for 40 session_after "$was"
	done
}

# --- the end ---
disconnects()
{
	dd if="/dev/$DISK" of=/dev/null bs=64k iflag=direct 2> /dev/null &
	reader=$!
	usleep 200000
	check "a disk is detached in use" detach
	wait "$reader"
	check "the disk's device node is removed" wait_for 20 [ ! -b "/dev/$DISK" ]
	check "the client attaches a disk once more" attach disk0 "$MINE"
	check "the module is unloaded with its disk" rmmod kofiblk
	check "the client leaves nothing open" nothing_open
}

load_fabric
at server server_starts
meet serving
at client connects
at client data
meet loaded
at server restart
meet restarted
at client resets
at client load_ends
at client disconnects
meet client-gone
at server check "the server is unloaded" server_gone
at server check "the server leaves nothing open" nothing_open
at server check "the RAM disk is removed" ram_gone n0
meet end
unload_fabric
