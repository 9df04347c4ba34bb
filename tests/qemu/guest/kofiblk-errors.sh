#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma fio dmsetup python3 blkdiscard
# modules: null_blk configfs hmac sha256_generic crc32c_generic scsi_debug sd_mod dm_thin_pool dm_delay
# full: yes
# timeout: 500
#
# Errors of a server's disk are reported at the client as at the server. Disks that are
# read-only, are partitioned, change their size, or write late; and devices without RDMA write.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

# Positions of bad blocks of scsi_debug and null_blk, in units of 4 KiB.
MEDIUM=582
BAD=100

read_at()
{
	dd if="$1" of=/dev/null bs=4k skip="$2" count=1 iflag=direct
}

write_at()
{
	dd if=/dev/zero of="$1" bs=4k seek="$2" count=1 conv=notrunc oflag=direct
}

# --- the server's disks ---

# A pool of 1 MiB for a disk of 8 MiB.
thin_disk()
{
	ram_disk meta 4 && ram_disk data 1 || return
	dmsetup create pool --table \
		"0 2048 thin-pool /dev/meta /dev/data 128 0 1 error_if_no_space" &&
		dmsetup message pool 0 "create_thin 0" &&
		dmsetup create thin --table "0 16384 thin /dev/mapper/pool 0"
}

thin_gone()
{
	dmsetup remove thin && dmsetup remove pool && ram_gone meta &&
		ram_gone data && rmmod dm_thin_pool
}

scsi_disk()
{
	modprobe sd_mod
	modprobe scsi_debug dev_size_mb=8 opts=2
	wait_for 20 [ -b /dev/sda ]
}

bad_blocks()
{
	ram_disk n1 8 && echo "+$((BAD * 8))-$((BAD * 8 + 7))" > /sys/kernel/config/nullb/n1/badblocks
}

small_filesystem()
{
	mkdir -p /tmp/small && mount -t tmpfs -o size=1m small /tmp/small &&
		truncate -s 8M /tmp/small/file
}

write_protected()
{
	ram_disk n2 8 && blockdev --setro /dev/n2
}

# fill PATH: write until there is no more room
fill()
{
	dd if=/dev/zero of="$1" bs=64k conv=notrunc oflag=direct 2> /dev/null
	return 0
}

# The errors of each export at the server itself.
local_answers()
{
	fill /dev/mapper/thin
	fill /tmp/small/file
	echo "medium:$(errno_of read_at /dev/sda $MEDIUM)"
	echo "badread:$(errno_of read_at /dev/n1 $BAD)"
	echo "badwrite:$(errno_of write_at /dev/n1 $BAD)"
	echo "thin:$(errno_of write_at /dev/mapper/thin 1024)"
	echo "small:$(errno_of write_at /tmp/small/file 1024)"
	echo "protected:$(errno_of write_at /dev/n2 0)"
}

server_starts()
{
	check "a RAM disk is created" ram_disk n0 32
	check "a disk with bad blocks is created" bad_blocks
	check "a disk with a bad medium is created" scsi_disk
	check "a disk with more blocks than memory is created" thin_disk
	check "a write-protected disk is created" write_protected
	check "a slow disk is created" slow_disk
	check "a file on a small filesystem is created" small_filesystem
	truncate -s 8M /tmp/file
	answers=$(local_answers | tr '\n' ' ')
	check "the server's module is loaded" modprobe kofiblk_srv
	check "the exports are created" exports
}

exports()
{
	export_add disk0 /dev/n0 uuid=$UUID allow_any=1 &&
		export_add bad /dev/n1 allow_any=1 &&
		export_add medium /dev/sda allow_any=1 &&
		export_add thin /dev/mapper/thin allow_any=1 &&
		export_add protected /dev/n2 allow_any=1 read_only=1 &&
		export_add small /tmp/small/file allow_any=1 &&
		export_add file /tmp/file allow_any=1 &&
		export_add slow /dev/mapper/slow allow_any=1 || return
	port_up disk0 bad medium thin protected small file slow
}

server_ends()
{
	check "the server is unloaded" server_gone
	check "the server leaves nothing open" nothing_open
	umount /tmp/small
	rm /tmp/file
	check "the thin disk is removed" thin_gone
	check "the slow disk is removed" slow_gone
	check "the RAM disks are removed" ram_disks_gone
	check "the bad disk is removed" rmmod scsi_debug
	rmmod sd_mod
}

ram_disks_gone()
{
	ram_gone n0 && ram_gone n1 && ram_gone n2
}

# --- errors, at the client ---

# same EXPORT NAME COMMAND POSITION: check that it fails as at the server
same()
{
	# Also for a disk that has just been removed.
	attach "$1" client=b || not_ok "no disk of $1"
	same_here=$(errno_of "$3" "/dev/$DISK" "$4")
	same_there=$(echo "$said" | tr ' ' '\n' | sed -n "s/^$2://p")
	check "the client reports $2 as the disk does: $same_there" [ "$same_here" = "$same_there" ]
	refuse "the client reports an error for $2" [ "$same_here" = success ]
	detach || not_ok "$DISK doesn't go"
}

errors()
{
	same medium medium read_at $MEDIUM
	same bad badread read_at $BAD
	same bad badwrite write_at $BAD
	same thin thin write_at 1024
	same small small write_at 1024
	same protected protected write_at 0
}

by_tool()
{
	check "the tool connects" sh -c '. /bed/lib.sh; tool kofiblk connect \
		--client tool --host-id '"$HOST_ID $SERVER"' disk0 > /tmp/connected'
	DISK=$(sed 's,/dev/,,' /tmp/connected)
	check "the tool lists the disk" sh -c \
		". /bed/lib.sh; tool kofiblk list | grep -q $DISK"
	check "the tool disconnects" tool kofiblk disconnect "$DISK"
	check "the disk is gone" disk_gone
}

# --- sizes, at both ---

# size_is MEGABYTES
size_is()
{
	[ "$(cat "/sys/block/$DISK/size")" = $(($1 * 2048)) ]
}

# resize MEGABYTES
resize()
{
	truncate -s "$1M" /tmp/file && echo 1 > $CONFIG/exports/file/resize
}

grows()
{
	# shellcheck disable=SC2016
	uevent sh -c '[ "$RESIZE" != 1 ] || echo $DEVNAME >> /tmp/resized' &
	listener=$!
	check "the client attaches a file as a disk" attach file client=b
	check "the disk is as large as the file" size_is 8
	meet grow
	check "the disk grows with the file" wait_for 20 size_is 16
	check "listeners get an event" wait_for 20 grep -q "$DISK" /tmp/resized
	kill $listener
	pattern /tmp/p 64 3
	dd if=/tmp/p of="/dev/$DISK" bs=64k seek=255 conv=notrunc,fsync 2> /dev/null
	meet grown
	meet cut
	answer=$(errno_of read_at "/dev/$DISK" 4000)
	check "a read beyond the file's end fails: $answer" \
		[ "$answer" = Input/output_error ]
	meet shrink
	check "the disk shrinks with the file" wait_for 20 size_is 4
	check "the rest of the disk can be read" read_at "/dev/$DISK" 1023
	check "the disk is detached" detach
}

is_resized()
{
	meet grow
	check "the file grows" resize 16
	meet grown
	pattern /tmp/p 64 3
	dd if=/tmp/file bs=64k skip=255 2> /dev/null | cmp - /tmp/p
	check "data written at the new end can be read" [ $? = 0 ]
	# The client isn't notified yet.
	truncate -s 4M /tmp/file
	meet cut
	meet shrink
	check "the file shrinks" resize 4
}

# --- a disk that writes late ---

writes_late()
{
	meet write
	check "a write is outstanding at the slow disk" wait_for 60 under_way
	meet under-way
	meet write-unheard
	check "another write is outstanding" wait_for 60 under_way
	meet under-way-unheard
}

# in_flight N: check that the slow disk has more outstanding requests
in_flight()
{
	sed -n 's/.* export=slow .* in_flight=\([0-9]*\) .*/\1/p' \
		/sys/kernel/debug/kofiblk_srv/sessions |
		awk -v least="$1" '{ sum += $1 } END { exit sum <= least }'
}

is_stuck()
{
	meet discard
	check "as many requests wait for the slow disk as it has threads" \
		wait_for 60 in_flight 255
	meet stuck
	meet read
	check "all of these requests still wait" in_flight 255
}

# Writes that are small enough to be one command each, with a thread at the server; as many
# at a time as possible.
discards()
{
	echo 4096 > "/sys/block/$1/queue/discard_max_bytes"
	echo 0 > "/sys/block/$1/queue/wbt_lat_usec"
	host blkdiscard -l 512K "/dev/$1"
}

# Requests that wait for a slow disk don't delay those of another disk.
others_go_on()
{
	check "the client attaches another disk" attach disk0 client=other
	other=$DISK
	pids=
	disks=
	for i in 1 2; do
		check "the client attaches slow disk $i" attach slow client=s$i,depth=128
		disks="$disks $DISK"
		discards "$DISK" &
		pids="$pids $!"
	done
	meet discard
	meet stuck
	check "the other disk can be read meanwhile" read_at "/dev/$other" 0
	meet read
	for pid in $pids; do
		check "slow request $pid is done" wait "$pid"
	done
	for DISK in $other $disks; do
		check "$DISK is detached" detach
	done
}

# Writes to a removed disk must not take effect after later writes.
late_write()
{
	pattern /tmp/p 64 5
	check "the client attaches a slow disk" attach slow client=b,ctrl_loss_tmo=0
	dd if=/tmp/p of="/dev/$DISK" bs=64k oflag=direct 2> /dev/null &
	meet write
	meet under-way
	check "the disk is removed" give_up
	wait $!
	check "the slow disk is attached again" wait_for 60 attach slow client=b
	dd if="/dev/$DISK" bs=64k count=1 iflag=direct 2> /dev/null | cmp - /tmp/p
	check "the slow disk has the data of the outstanding write" [ $? = 0 ]
	check "the disk is detached" detach
}

# Nor if the server doesn't hear that it was: it has the session still, with all that
# is under way.
late_write_unheard()
{
	pattern /tmp/p 64 6
	check "the client attaches the slow disk once more" attach slow client=b,ctrl_loss_tmo=0,keep_alive_tmo=60
	dd if=/tmp/p of="/dev/$DISK" bs=64k oflag=direct 2> /dev/null &
	meet write-unheard
	meet under-way-unheard
	network_gone
	check "the disk is removed, without a message to the server" give_up
	wait $!
	network_back
	check "the slow disk is attached again after that" wait_for 60 attach slow client=b
	dd if="/dev/$DISK" bs=64k count=1 iflag=direct 2> /dev/null | cmp - /tmp/p
	check "the slow disk has that write's data, too" [ $? = 0 ]
	check "the disk is detached, too" detach
}

# --- partitions ---

partitioned()
{
	check "the client attaches a disk to be partitioned" attach disk0 client=b
	# The disk has no limit of its own: the server writes the zeroes before it replies.
	check "the limit of WRITE ZEROES is that of data" \
		[ "$(cat "/sys/block/$DISK/queue/write_zeroes_max_bytes")" = 4194304 ]
	fdisk "/dev/$DISK" > /dev/null << END
o
n
p
1

+8M
n
p
2


w
END
	check "partitions are created" wait_for 20 [ -b "/dev/${DISK}p2" ]
	pattern /tmp/p 256 4
	dd if=/tmp/p of="/dev/${DISK}p2" bs=64k conv=fsync 2> /dev/null
	check "the disk is detached" detach
	refuse "the partitions are removed" [ -e "/dev/${DISK}p2" ]
	check "the client attaches the disk again" attach disk0 client=b
	check "the partitions are found" wait_for 20 [ -b "/dev/${DISK}p2" ]
	dd if="/dev/${DISK}p2" bs=64k count=4 2> /dev/null | cmp - /tmp/p
	check "the partition has the data" [ $? = 0 ]
	check "the disk is detached again" detach
}

# --- without RDMA write ---

# generation RDMA-WRITE: a device of it
generation()
{
	check "the $SIDE's device is removed" device_down
	echo "$1" > /sys/module/efasim/parameters/rdma_write
	check "a device of another generation is created" device_back
}

reset_often()
{
	for _ in 1 2 3 4 5 6 7 8; do
		was=$(attribute reconnects)
		echo 1 > "/sys/block/$DISK/kofiblk/reset"
		wait_for 20 session_after "$was" || return
	done
}

fetches()
{
	[ "$(attribute rdma_write)" = "$1" ]
}

fetched()
{
	[ "$(counter fetches)" -gt 0 ]
}

without_write()
{
	check "the client attaches a disk" attach disk0 \
		client=b,reconnect_delay=1,keep_alive_tmo=5,ctrl_loss_tmo=60
	load_begins --name=job --bsrange=512-128k --blockalign=512 --size=2m
	was=$(attribute reconnects)
	generation 0
	check "the client has a session without RDMA write" wait_for 40 session_after "$was"
	check "the client doesn't use RDMA write" fetches 0
	check "the session is reset repeatedly" reset_often
	check "data was fetched" wait_for 60 fetched
	was=$(attribute reconnects)
	generation 1
	check "the client has a session with RDMA write" wait_for 40 session_after "$was"
	check "the client uses RDMA write again" fetches 1
	meet server-without
	meet server-is-without
	check "the client has a session with a server without RDMA write" wait_for 40 fetches 0
	wait_for 40 state_is live
	check "the session is reset repeatedly again" reset_often
	load_ends
	check "the disk without RDMA write is detached" detach
}

server_without()
{
	meet server-without
	generation 0
	meet server-is-without
}

load_fabric
at server server_starts
said=$(barrier serving "${answers:--}")
at client check "the client's module is loaded" modprobe kofiblk
at client errors
at client by_tool
at server is_resized
at client grows
at server writes_late
at client late_write
at client late_write_unheard
at server is_stuck
at client others_go_on
at client partitioned
at server server_without
at client without_write
at client check "the client's module is unloaded" rmmod kofiblk
at client check "the client leaves nothing open" nothing_open
meet client-gone
at server server_ends
echo 1 > /sys/module/efasim/parameters/rdma_write
meet end
unload_fabric
