#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma nvme fio
# modules: null_blk configfs nvme_rdma nvmet_rdma hmac sha256_generic crc32c_generic
# more: yes
# timeout: 300
#
# NVMe over fabrics on kofi_rc, all of whose data goes by messages. The target could have its device
# write, but the host doesn't grant that.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/rc.sh
. /bed/rc.sh

# shellcheck disable=SC2034 # used by rc.sh
[ "$ROLE" = a ] || RC_OPTIONS="rma=0"
nvme_up
if [ "$ROLE" = b ]; then
	check "the host connects" to_server connect -n "$NQN" -i 2
	check "the disk is there" wait_for 20 has_disk nvme0n1
	check "reads and writes up to 1 MiB" fio --rw=randrw --bsrange=512-1m --size=8m
	check "nothing of that was a violation" counted violations 0
	check "no memory was registered" counted grants 0
fi
barrier written > /dev/null
[ "$ROLE" = b ] || check "no device has written" counted writes 0
[ "$ROLE" = b ] || check "no device has read" counted reads 0
if [ "$ROLE" = b ]; then
	check "the host disconnects" nvme disconnect -n "$NQN"
	check "the disk is gone" wait_for 20 disk_gone
fi
nvme_down
