#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12 test
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma nvme fio
# modules: null_blk configfs nvme_rdma nvmet_rdma hmac sha256_generic crc32c_generic
# more: stock-6.12
# full: test
# timeout: 400
#
# NVMe over fabrics of the kernel, between two guests, on kofi_rc: discovery, reads and writes of all
# sizes, namespaces that come.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/rc.sh
. /bed/rc.sh

nvme_up
if [ "$ROLE" = b ]; then
	check "the subsystem is discovered" discovers
	check "the host connects with 2 queues" to_server connect -n "$NQN" -i 2
	check "the disk is there" wait_for 20 has_disk nvme0n1
	check "writes within commands" fio --rw=randwrite --bsrange=512-4k --size=2m
	check "reads and writes up to 1 MiB" fio --rw=randrw --bsrange=512-1m --size=24m
	check "zeroes are written" nvme write-zeroes /dev/nvme0n1 -s 0 -c 63
	check "blocks are deallocated" nvme dsm /dev/nvme0n1 -d -s 64 -b 64
	check "nothing of that was a violation" counted violations 0
	check "the device has registered memory" counted_some grants
fi
barrier written > /dev/null
[ "$ROLE" = b ] || check "the target's device has written" counted_some writes
[ "$ROLE" = b ] || check "the target's device has read" counted_some reads
[ "$ROLE" = b ] || check "a namespace is added" namespace 2
barrier added > /dev/null
if [ "$ROLE" = b ]; then
	check "the host finds the namespace" wait_for 20 has_disk nvme0n2
	check "the host disconnects" nvme disconnect -n "$NQN"
	check "the disk is gone" wait_for 20 disk_gone
fi
nvme_down
