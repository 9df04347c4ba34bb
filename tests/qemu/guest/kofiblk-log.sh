#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma fio dmsetup mkfs.ext4 e2fsck debugfs python3
# modules: null_blk configfs hmac sha256_generic crc32c_generic ext4 dm_log_writes
# full: yes
# timeout: 400
#
# Flushed data is on the disk, whenever the power fails. The disk that the server exports logs
# all writes. Data that the client's filesystem believes to be stable has passed the client,
# the protocol and the server by then, any of which could have lost a flush. A log at the
# client would only show what the block layer requested. kofiblk-replay.py replays and checks
# the log.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

# A path that is the same in the host's root.
MNT=/host/tmp/mnt
MEGABYTES=48
ROUNDS=6
CHECKS=25

logged_disk()
{
	ram_disk n0 $MEGABYTES && ram_disk n1 256 && modprobe dm_log_writes &&
		dmsetup create logged --table \
			"0 $((MEGABYTES * 2048)) log-writes /dev/n0 /dev/n1"
}

logged_gone()
{
	ram_gone n0 && ram_gone n1 && rmmod dm_log_writes
}

server_starts()
{
	check "a disk that logs its writes is created" logged_disk
	check "the server is loaded" serve_one /dev/mapper/logged
}

client_starts()
{
	mkdir -p $MNT
	check "the client's module is loaded" modprobe kofiblk
	check "the client attaches a disk" attach disk0 client=b,reconnect_delay=1,keep_alive_tmo=10
	check "the disk has a write cache" [ "$(cat "/sys/block/$DISK/queue/write_cache")" = "write back" ]
	check "the disk has FUA" [ "$(cat "/sys/block/$DISK/queue/fua")" = 1 ]
	check "mkfs.ext4" host mkfs.ext4 -q -F "/dev/$DISK"
	check "mount" mount -t ext4 -o discard "/dev/$DISK" $MNT
	sync
}

# mark TEXT: write a mark to the server's log
mark()
{
	dmsetup message logged 0 mark "$1"
}

# Files that are written, renamed and removed all the time, but not checked.
churn()
{
	churn_round=0
	while [ ! -e /tmp/churn.stop ]; do
		churn_round=$((churn_round + 1))
		mkdir $MNT/d$churn_round
		cp $MNT/r*-[12] $MNT/d$churn_round
		mv $MNT/d$churn_round $MNT/moved$churn_round
		[ $((churn_round % 3)) != 0 ] || rm -r $MNT/moved*
		usleep 100000
	done 2> /dev/null
}

# In KiB, the same as in kofiblk-replay.py
write_round()
{
	round_file=0
	for round_kib in 1 5 33 130; do
		round_name=$MNT/r$1-$round_file
		pattern "$round_name" $round_kib $((10 * $1 + round_file)) &&
			sync "$round_name" || return
		round_file=$((round_file + 1))
	done
}

rounds()
{
	rm -f /tmp/churn.stop
	at client churn &
	churning=$!
	for round in $(seq $ROUNDS); do
		at client check "files of round $round, each flushed" write_round "$round"
		meet "written $round"
		at server check "the log is marked" mark "round$round"
		meet "marked $round"
		# The end of a session must not lose a flush.
		at client sh -c "echo 1 > /sys/block/$DISK/kofiblk/reset"
	done
	touch /tmp/churn.stop
	wait $churning
}

client_ends()
{
	check "the client had several sessions" [ "$(attribute reconnects)" -gt 0 ]
	check "umount" umount $MNT
	check "the disk is detached" detach
	check "the client's module is unloaded" rmmod kofiblk
	check "the client leaves nothing open" nothing_open
}

server_ends()
{
	check "the server is unloaded" server_gone
	check "the server leaves nothing open" nothing_open
	check "the log is complete" dmsetup remove logged
	mkdir -p /tmp/shared/replay
	# shellcheck disable=SC2094 # another file
	host python3 - /dev/n1 /tmp/shared/replay $MEGABYTES $CHECKS $ROUNDS \
		< /bed/guest/kofiblk-replay.py > /tmp/replay 2>&1
	tap "the log" /tmp/replay
	grep -v "^ok\|^not ok\|^1\.\.\|^#" /tmp/replay | sed 's/^/# /'
	rm -r /tmp/shared/replay
	check "the RAM disks are removed" logged_gone
}

load_fabric
at server server_starts
meet serving
at client client_starts
meet mounted
at server check "the log is marked after mkfs" mark made
meet made
rounds
at client client_ends
meet client-gone
at server server_ends
meet end
unload_fabric
