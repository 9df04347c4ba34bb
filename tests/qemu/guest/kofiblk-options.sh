#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12 stock-6.1
# guests: 2
# smp: 4
# mem: 1G
# host-root: yes
# host-tools: rdma fio mkfs.ext4
# modules: null_blk configfs hmac sha256_generic crc32c_generic crc32c_intel ext4
# full: yes
# timeout: 500
#
# Options: end-to-end checksums, separate protection domains, files without the server's page
# cache, polled queues. And less usual disks and networks: blocks of 4 KiB, four queues, IPv6,
# another network namespace.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

SIX="[fd00::1]:4420"
MNT=/host/tmp/mnt
PATIENT="reconnect_delay=1,keep_alive_tmo=60"

large_blocks()
{
	ram_dir=/sys/kernel/config/nullb/n4
	mkdir "$ram_dir" || return
	for setting in size=64 memory_backed=1 blocksize=4096 power=1; do
		echo "${setting#*=}" > "$ram_dir/${setting%%=*}" || return
	done
	[ -e /dev/n4 ] || ln -s "nullb$(cat "$ram_dir/index")" /dev/n4
}

a_file()
{
	mkdir -p $MNT && host mkfs.ext4 -q -F /dev/n0 && mount -t ext4 /dev/n0 $MNT &&
		truncate -s 32M $MNT/file
}

# cached: print the size of the server's page cache in KiB
cached()
{
	sed -n 's/^Cached: *\([0-9]*\) kB/\1/p' /proc/meminfo
}

port_six()
{
	mkdir $CONFIG/ports/6 && echo fd00::1 > $CONFIG/ports/6/addr &&
		echo 1 > $CONFIG/ports/6/own_domains || return
	for name in blocks file secret; do
		ln -s $CONFIG/exports/$name $CONFIG/ports/6/exports/$name || return
	done
	echo 1 > $CONFIG/ports/6/enable
}

server_starts()
{
	check "a RAM disk is created" ram_disk n0 64
	check "a RAM disk with blocks of 4 KiB is created" large_blocks
	check "a file on the RAM disk is created" a_file
	check "the server's module is loaded" modprobe kofiblk_srv
	check "the disk with large blocks is exported" export_add blocks /dev/n4 uuid=$UUID allow_any=1
	check "the file is exported with direct I/O" \
		export_add file $MNT/file direct=1 allow_any=1
	refuse "changing direct is refused while the export is in use" sh -c "echo 0 > $CONFIG/exports/file/direct"
	check "a read-only export for two clients is created" export_add secret $MNT/file read_only=1
	check "the first client is allowed" allow secret one "$SECRET"
	check "the second client is allowed" allow secret two "$OTHER_SECRET"
	check "a port is created" port_up blocks file secret
	check "a port with IPv6 and a domain for each secret is created" port_six
	port_elsewhere
}

# In a container, the addresses of ports and servers would be those of another network.
port_elsewhere()
{
	mkdir $CONFIG/ports/7 && ip_of a > $CONFIG/ports/7/addr && echo 4427 > $CONFIG/ports/7/port
	check "another port is made" [ -e $CONFIG/ports/7/enable ]
	refuse "it isn't enabled from another network namespace" unshare -n sh -c "echo 1 > $CONFIG/ports/7/enable"
	check "it is enabled from this one" sh -c "echo 1 > $CONFIG/ports/7/enable"
	check "it is disabled" unshare -n sh -c "echo 0 > $CONFIG/ports/7/enable"
	rmdir $CONFIG/ports/7
}

# attach_six EXPORT [OPTION=VALUE,...]
attach_six()
{
	DISK=
	exec 5<> /dev/kofiblk-control || return
	! echo "addr=$SIX,host_id=$HOST_ID,export=$1${2:+,$2}" >&5 || read -r DISK <&5
	exec 5>&-
	DISK=${DISK#disk=}
	[ -b "/dev/$DISK" ]
}

# stat NAME
stat()
{
	cat "/sys/block/$DISK/kofiblk_stats/$1"
}

writes_and_reads()
{
	fio --rw=randrw --bs="$1" --size=8m --verify=crc32c --randseed="$2"
}

# Each of several endpoints registers the memory of its requests itself, and the domains none.
registers_itself()
{
	awk '$1 == "regs" && $3 == "invals" { domains += $2 + $4 }
		$1 == "regs" && $3 == "done" { endpoints += $2 }
		END { exit domains > 0 || endpoints < 100 }' /sys/kernel/debug/kofi_efa/es0
}

# Print the number of domains of kernel modules on the device.
domains()
{
	host rdma resource show pd dev es0 | grep -c "\[kofi_efa\]"
}

no_domains()
{
	[ "$(domains)" = 0 ]
}

blocks()
{
	refuse "no disk is attached from another network namespace" unshare -n sh -c ": <> /dev/kofiblk-control"
	check "the client attaches the disk with large blocks by IPv6 with checksums" \
		attach_six blocks "client=b,checksum=1,$PATIENT"
	check "the disk has blocks of 4 KiB" [ "$(cat "/sys/block/$DISK/queue/logical_block_size")" = 4096 ]
	check "the disk has four queues" [ "$(find "/sys/block/$DISK/mq/" -mindepth 1 -maxdepth 1 | wc -l)" = 4 ]
	check "pages are stable while they are written" \
		[ "$(cat "/sys/block/$DISK/queue/stable_writes")" = 1 ]
	check "the disk has checksums" [ "$(attribute checksum)" = 1 ]
	six_disk=$DISK
	refuse "the export isn't attached by the server's other address, too" attach blocks client=b
	DISK=$six_disk
	check "the disk keeps a session" wait_for 40 state_is live
	check "the disk's wwid is the export's uuid" [ "$(attribute wwid)" = uuid.$UUID ]
	check "small requests succeed" writes_and_reads 4k 1
	check "large requests succeed" writes_and_reads 128k 2
	check "their memory is registered by the queues of the disk" registers_itself
	check "no checksum was wrong" [ "$(stat checksum_errors)" = 0 ]
	check "requests are counted" [ "$(stat requests)" -gt 100 ]
	check "no request is refused" [ "$(stat refused)" = 0 ]
	before
	echo 1 > "/sys/block/$DISK/kofiblk/reset"
	check "the client has another session" wait_for 40 session_after "$was"
	check "requests succeed in that session" writes_and_reads 4k 3
	check "the disk is detached" detach
}

file()
{
	check "the client attaches the file with checksums" attach file "client=b,checksum=1,$PATIENT"
	meet file
	check "the file can be written and read" writes_and_reads 64k 4
	check "parts of its blocks can be written and read" writes_and_reads 4k 5
	meet written
	check "no checksum was wrong" [ "$(stat checksum_errors)" = 0 ]
	check "the disk is detached" detach
}

# polls ARGUMENT...: run fio with requests that fio polls for
polls()
{
	fio --ioengine=io_uring --hipri=1 --iodepth=8 --rw=randrw --size=8m --verify=crc32c "$@"
}

polled()
{
	check "the client attaches a disk with a polled queue" \
		attach blocks "client=b,poll_queues=1,$PATIENT"
	check "the server grants it" [ "$(attribute poll_queues)" = 1 ]
	check "it is one of four" [ "$(attribute queues)" = 4 ]
	check "the disk can be polled" [ "$(cat "/sys/block/$DISK/queue/io_poll")" = 1 ]
	check "small requests succeed that are polled for" polls --bs=4k --randseed=6
	check "large requests succeed that are polled for" polls --bs=128k --randseed=7
	check "other requests succeed" writes_and_reads 64k 8
	load_begins --name=job --ioengine=io_uring --hipri=1 --iodepth=8 --bsrange=4k-64k \
		--blockalign=4k --size=4m
	for session in second third fourth; do
		before
		echo 1 > "/sys/block/$DISK/kofiblk/reset"
		comes_back "the reset for the $session session"
	done
	load_ends
	check "no request has timed out" [ "$(stat timeouts)" = 0 ]
	check "the disk is detached" detach
}

file_is_direct()
{
	meet file
	sync
	echo 3 > /proc/sys/vm/drop_caches
	cached_before=$(cached)
	meet written
	cached_more=$(($(cached) - cached_before))
	check "the server's page cache has none of it: $cached_more KiB" [ $cached_more -lt 4096 ]
}

separate()
{
	for one in one two; do
		secret=$SECRET
		[ $one = one ] || secret=$OTHER_SECRET
		check "client $one attaches a disk in its own domain" \
			attach_six secret "client=$one,secret=$secret,own_domain=1,$PATIENT"
	done
	check "disks of the same server address share a domain" [ "$(domains)" = 1 ]
	check "the client attaches a disk by the server's other address" attach file "client=b,own_domain=1,$PATIENT"
	check "the other address has another domain" [ "$(domains)" = 2 ]
	check "the client attaches a disk without own_domain" attach blocks "client=b,$PATIENT"
	check "disks without own_domain have a third domain" [ "$(domains)" = 3 ]
	meet separate
	meet separated
	for disk in /sys/block/kofiblk*; do
		DISK=${disk##*/}
		check "$DISK can be read" dd if="/dev/$DISK" of=/dev/null bs=64k count=8 iflag=direct
		check "$DISK is detached" detach
	done
	# A disk releases its domain some time after it has disappeared.
	check "all domains are closed" wait_for 20 no_domains
}

are_separate()
{
	meet separate
	check "each secret has a domain, and all others have one" [ "$(domains)" = 3 ]
	meet separated
}

load_fabric
at server server_starts
at client check "the client's module is loaded" modprobe kofiblk
meet serving
at client blocks
at client polled
at client file
at server file_is_direct
at client separate
at server are_separate
at client check "the client's module is unloaded" rmmod kofiblk
at client check "the client leaves nothing open" nothing_open
meet client-gone
at server check "the server is unloaded" server_gone
at server check "the server leaves nothing open" nothing_open
at server umount $MNT
at server check "the file and the disk with large blocks are removed" sh -c \
	"echo 0 > /sys/kernel/config/nullb/n4/power && rmdir /sys/kernel/config/nullb/n4 && rm -f /dev/n4"
at server check "the RAM disk is removed" ram_gone n0
meet end
unload_fabric
