#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# alone: yes
# mem: 384M
# host-root: yes
# host-tools: rdma mkfs.ext4 fsck.ext4
# modules: null_blk configfs hmac sha256_generic crc32c_generic ext4
# full: yes
# timeout: 300
#
# A filesystem full of dirty pages, with hardly any free memory at the client: the pages are
# written, also when a new session must be set up for that.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

MNT=/tmp/mnt
# MiB
FILE=32
LEFT=48

server_starts()
{
	check "a RAM disk is created" ram_disk n0 128
	check "the server is loaded" serve_one
}

# meminfo NAME: print it in MiB
meminfo()
{
	echo $(($(sed -n "s/^$1: *\([0-9]*\) kB/\1/p" /proc/meminfo) / 1024))
}

client_starts()
{
	check "the client's module is loaded" modprobe kofiblk
	check "the client attaches a disk" attach disk0 \
		client=b,reconnect_delay=1,keep_alive_tmo=20,max_io=131072
	check "mkfs.ext4" host mkfs.ext4 -q -F "/dev/$DISK"
	mkdir -p $MNT /tmp/hog
	check "mount" mount -t ext4 "/dev/$DISK" $MNT
	mount -t tmpfs -o size=100% hog /tmp/hog
	# A soft device receives by UDP, which needs the usual memory reserve of a network.
	# Other settings delay writeback as long as possible.
	echo 8192 > /proc/sys/vm/min_free_kbytes
	echo 90 > /proc/sys/vm/dirty_ratio
	echo 80 > /proc/sys/vm/dirty_background_ratio
	echo 360000 > /proc/sys/vm/dirty_expire_centisecs
}

# dirty NAME: write a file of dirty pages
dirty()
{
	dd if=/dev/urandom of="$MNT/$1" bs=1M count=$FILE 2> /dev/null
}

# hog: allocate all memory but this amount
hog()
{
	hog_size=$(($(meminfo MemAvailable) - LEFT))
	note "$hog_size MiB go, $(meminfo Dirty) MiB are dirty"
	dd if=/dev/zero of=/tmp/hog/hog bs=1M count=$hog_size 2> /dev/null
	note "$(meminfo MemAvailable) MiB are available, $(meminfo Dirty) dirty"
}

written()
{
	! kill -0 "$syncing" 2> /dev/null
}

pressure()
{
	check "a file is written to the page cache" dirty one
	check "the file's pages are dirty" [ "$(meminfo Dirty)" -gt $((FILE / 2)) ]
	one=$(md5sum < $MNT/one)
	check "nearly all memory is used" hog
	check "another file is written to the page cache" dirty two
	was=$(attribute reconnects)
	echo 1 > "/sys/block/$DISK/kofiblk/reset"
	sync &
	syncing=$!
	check "all dirty pages are written" wait_for 120 written
	check "the client has another session" wait_for 20 session_after "$was"
	note "$(meminfo Dirty) MiB are dirty"
	two=$(md5sum < $MNT/two)
	rm /tmp/hog/hog
	check "no process was killed for memory" sh -c "! dmesg | grep -i 'out of memory'"
	check "umount" umount $MNT
	check "fsck finds nothing" host fsck.ext4 -f -n "/dev/$DISK"
	check "mount again" mount -t ext4 "/dev/$DISK" $MNT
	check "the first file has its data" [ "$(md5sum < $MNT/one)" = "$one" ]
	check "the second file has its data" [ "$(md5sum < $MNT/two)" = "$two" ]
	check "no request failed" [ "$(counter failures)" = 0 ]
}

client_ends()
{
	check "umount again" umount $MNT
	umount /tmp/hog
	check "the disk is detached" detach
	check "the client's module is unloaded" rmmod kofiblk
	check "the client leaves nothing open" nothing_open
}

load_fabric
at server server_starts
meet serving
at client client_starts
at client pressure
at client client_ends
meet client-gone
at server check "the server is unloaded" server_gone
at server check "the server leaves nothing open" nothing_open
at server check "the RAM disk is removed" ram_gone n0
meet end
unload_fabric
