#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# alone: yes
# full: yes
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: rdma
# modules: efa ib_uverbs
# settings: DEBIAN13=
# mem: 3G
# timeout: 600
#
# Debian 13's libfabric (2.1) on a device with unsolicited write receives, which the kernel's queue
# pairs lack: it refuses to write with data, unless it is told not to use them.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/interop.sh
. /bed/interop.sh

FAR=/sys/module/kofi_far/parameters

# far: all operations of 5000 bytes in both directions
far()
{
	modprobe kofi_far domain=es0 size=1048576
	theirs $OUT/fi_far efa_0-rdm sizes 5000 > $OUT/log 2>&1
	far_status=$?
	sed 's/^/# /' $OUT/log
	check "unload the ULP" rmmod kofi_far
}

set_up unsolicited=1
cp /bed/tools/fi_far $OUT
export FI_FAR_DIR=$FAR FI_EFA_USE_DEVICE_RDMA=1
far
check "a write with data is refused" grep -q "^writedata: Operation not supported" $OUT/log
export FI_EFA_USE_UNSOLICITED_WRITE_RECV=0
far
check "it goes without them" [ $far_status = 0 ]
check "nothing is left open" nothing_open
tear_down
