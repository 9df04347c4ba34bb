#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The guest's part of what libfabric costs: a process with both ends on a PCI function of the
# soft device, by the libfabric of Debian 12 ("host") and of Debian 13 ("theirs"). Prints what the
# host needs.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/interop.sh
. /bed/interop.sh

export FI_EFA_ENABLE_SHM_TRANSFER=0 FI_EFA_FORK_SAFE=0 FI_EFA_USE_DEVICE_RDMA=1
mkdir -p /dev/shm
cp /bed/tools/fi_kinds $OUT
set_up_theirs
modprobe efasim pci=lo pci_mem=0x20000000 seed=1
echo 0 > $SIM/pci0/faults/reorder
modprobe efa
modprobe ib_uverbs
check "the process has a device" wait_for 20 [ -e /dev/infiniband/uverbs0 ]
{
	for whose in host theirs; do
		check "what it costs by $whose" $whose $OUT/fi_kinds efa_0-rdm cost cost-device
		FI_EFA_USE_DEVICE_RDMA=0
		check "what packets cost by $whose" $whose $OUT/fi_kinds efa_0-rdm cost-packets
		FI_EFA_USE_DEVICE_RDMA=1
	done
} > /tmp/results 2>&1
cat /tmp/results
grep -i ' [tw] ' /proc/kallsyms
check "unload the driver" rmmod efa
check "unload" rmmod efasim
