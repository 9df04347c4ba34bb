#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# more: yes
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma nvme mkfs.ext4 fsck.ext4
# modules: null_blk configfs nvme_rdma nvmet_rdma ext4 hmac sha256_generic crc32c_generic
# timeout: 400
#
# make demo-nvme: the kernel's own NVMe over fabrics between two kernels as the distribution ships
# them, over soft EFA devices. One exports a disk, the other one makes a filesystem on it. Each
# step is shown before it is done and must succeed.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/rc.sh
. /bed/rc.sh

MNT=/host/tmp/mnt

title()
{
	echo
	echo "== $*"
}

# step COMMAND...
step()
{
	echo "\$ $*"
	if "$@"; then
		ok "$*"
	else
		not_ok "$* (status $?)"
		dmesg | tail -n 12 | sed 's/^/#     /'
	fi
}

# meet NAME: wait for the other guest, and for its output to be read
meet()
{
	barrier "$1" > /dev/null || exit 1
	usleep 300000
}

rdma()
{
	host rdma "$@"
}

# nvme ARGUMENT...: the command of nvme-cli, with its output
nvme()
{
	host nvme "$@"
}

link_up()
{
	title "Guest $ROLE at $IP: $(uname -sr), as Debian ships it"
	step modprobe efasim
	step rdma link add es0 type efasim netdev eth0
	step modprobe kofi_efa
	step modprobe kofi_rc
	step rdma link add rc0 type kofi_rc netdev eth0
	step rdma link show rc0/1
	faults seed=42 reorder=100 delay=20
}

copy_tree()
{
	mkdir -p $MNT/tree && cp -r /bed/. $MNT/tree/
}

same_tree()
{
	for same_file in $(cd /bed && find . -type f); do
		cmp "/bed/$same_file" "$MNT/tree/$same_file" || return
	done
}

target()
{
	title "Guest a exports a disk with nvmet"
	step ram_disk
	step target_up
}

initiator()
{
	title "Guest b connects with nvme-cli, and makes a filesystem"
	step modprobe nvme_rdma
	step nvme discover -t rdma -a "$SERVER" -s 4420 -q "$NQN-b" -I "$HOST_ID"
	step nvme connect -t rdma -a "$SERVER" -s 4420 -q "$NQN-b" -I "$HOST_ID" -n "$NQN" -i 2
	step wait_for 20 has_disk nvme0n1
	mkdir -p $MNT
	step host mkfs.ext4 -q /dev/nvme0n1
	step mount -t ext4 /dev/nvme0n1 $MNT
	step copy_tree
	step umount $MNT
	step host fsck.ext4 -f -n /dev/nvme0n1
	step mount -t ext4 /dev/nvme0n1 $MNT
	step same_tree
	step umount $MNT
	step nvme disconnect -n "$NQN"
}

[ "$ROLE" = a ] || meet a-is-up
link_up
[ "$ROLE" = a ] && target && meet a-is-up
[ "$ROLE" = b ] && initiator
meet used
check "the devices have reordered packets" injected reorder
if [ "$ROLE" = a ]; then
	check "the target is down" target_down
else
	check "the host's module is unloaded" rmmod nvme_rdma
fi
meet down
unload_link
