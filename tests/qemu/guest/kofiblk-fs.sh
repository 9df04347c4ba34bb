#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma fio mkfs.ext4 fsck.ext4 mkfs.xfs xfs_repair mkfs.btrfs btrfs fstrim blkdiscard
# modules: null_blk configfs hmac sha256_generic crc32c_generic ext4 xfs btrfs
# full: yes
# timeout: 400
#
# Filesystems on a disk are made, used, trimmed, unmounted, checked and read again.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

# A path that is the same in the host's root.
MNT=/host/tmp/mnt

server_starts()
{
	check "a RAM disk is created" ram_disk n0 384
	check "the server is loaded" serve_one
}

client_starts()
{
	mkdir -p $MNT
	check "the client's module is loaded" modprobe kofiblk
	check "the client attaches a disk" attach disk0 client=b,keep_alive_tmo=20
	check "fio reads what it wrote, and zeroes where it trimmed" fio --rw=randtrimwrite --bs=16k --size=2m \
		--fsync=16 --verify=crc32c
	check "the disk supports discards" [ "$(cat "/sys/block/$DISK/queue/discard_max_bytes")" -gt 0 ]
}

fill()
{
	for i in 1 2 3; do
		cp -r /tmp/tree $MNT/$i || return
	done
	rm -r $MNT/2
	sync
	for i in 1 3; do
		mv $MNT/$i/f9 $MNT/$i/f-moved && rm $MNT/$i/f1? || return
	done
}

# same DIRECTORY: check that it has the files of fill()
same()
{
	for same_file in "$1"/f*; do
		case $same_file in
		*/f-moved) same_name=f9 ;;
		*) same_name=${same_file##*/} ;;
		esac
		cmp "$same_file" /tmp/tree/"$same_name" || return
	done
	set -- "$1"/*
	[ $# = 30 ]
}

all_same()
{
	same $MNT/1 && same $MNT/3 && [ ! -e $MNT/2 ]
}

# filesystem NAME MKFS CHECK: commands without the disk as their argument
filesystem()
{
	# shellcheck disable=SC2086
	check "$1: made" host $2 "/dev/$DISK"
	check "$1: mounted" mount -t "$1" -o discard "/dev/$DISK" $MNT
	check "$1: written to" fill
	check "$1: written to by fio" by_fio
	check "$1: trimmed" host fstrim /tmp/mnt
	check "$1: unmounted" umount $MNT
	# shellcheck disable=SC2086
	check "$1: fsck finds no error" host $3 "/dev/$DISK"
	check "$1: mounted again" mount -t "$1" "/dev/$DISK" $MNT
	check "$1: files have the data written" all_same
	check "$1: unmounted again" umount $MNT
}

# Forty files, from empty ones to half a megabyte.
tree()
{
	mkdir -p /tmp/tree
	for i in $(seq 40); do
		dd if=/dev/urandom of=/tmp/tree/f"$i" bs=$((i * i * i * 8)) count=1 2> /dev/null ||
			return
	done
}

# by_fio: use O_DIRECT and fsync, in several files
by_fio()
{
	host fio --name=files --directory=/tmp/mnt --nrfiles=4 --size=4m --rw=randwrite \
		--bsrange=4k-64k --blockalign=4k --direct=1 --ioengine=libaio --iodepth=16 \
		--fsync=16 --verify=crc32c --verify_fatal=1 --unlink=1 --minimal > /tmp/fio.out
}

filesystems()
{
	check "files are written and read" tree
	filesystem ext4 "mkfs.ext4 -q -F" "fsck.ext4 -f -n"
	filesystem xfs "mkfs.xfs -q -f" "xfs_repair -n"
	filesystem btrfs "mkfs.btrfs -q -f" "btrfs check"
	rm -r /tmp/tree
	check "the disk is detached" detach
	check "the client's module is unloaded" rmmod kofiblk
	check "the client leaves nothing open" nothing_open
}

load_fabric
at server server_starts
meet serving
at client client_starts
at client filesystems
meet client-gone
at server check "the server is unloaded" server_gone
at server check "the server leaves nothing open" nothing_open
at server check "the RAM disk is removed" ram_gone n0
meet end
unload_fabric
