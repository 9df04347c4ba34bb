#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# more: yes
# host-root: yes
# host-tools: rdma
# mem: 2G
# cmdline: swiotlb=force
# timeout: 240
#
# Both fabrics with bounce buffers for all DMA mappings, where a missing sync shows stale data:
# messages by plain calls, copied or not, in one packet or in several. Fabric efa has no regions
# there, also not for reads and writes by packets, which would need none of the device.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/efa.sh
. /bed/efa.sh

SIM=/sys/kernel/debug/efasim/es0
RUN=/sys/kernel/debug/kofi_pingpong/client

over()
{
	case $(cat $RUN/state) in
	done|failed*|stopped*|ended*) return 0;;
	esac
	return 1
}

# exchanges NAME PARAMETER...: run kofi_pingpong, which checks the data
exchanges()
{
	ran=$1
	shift
	check "$ran: the run begins" modprobe kofi_pingpong role=both prov=efa timeout=10 "$@"
	wait_for 60 over
	check "$ran: the run ends well: $(cat $RUN/state)" [ "$(cat $RUN/state)" = "done" ]
	sed 's/^/# /' $RUN/results
	rmmod kofi_pingpong
}

ip link set lo up
check "the soft device's module is loaded" modprobe efasim
check "a device is created" host rdma link add es0 type efasim netdev lo
check "the provider is loaded" modprobe kofi_efa
check "the device was probed" wait_for 20 grep -q '^queue_pairs 0' $SIM/memory
exchanges "fabric efa, tagged" fabric=efa tagged=1 iterations=24 sizes=0,100,400,5000,100000
exchanges "fabric efa" fabric=efa iterations=24 sizes=100,5000
# Memory that is bounced can't be registered, so there is no RMA.
exchanges "fabric efa-direct" fabric=efa-direct iterations=24 sizes=0,20,100,4000
check "the provider's cases are loaded" modprobe kofi_efa_test
for rdma in auto none; do
	echo $rdma > /sys/module/kofi_efa/parameters/rdma
	echo es0 > /sys/kernel/debug/kofi_efa/probe
	run "RDMA $rdma" es0 es0 far_bounced
done
rmmod kofi_efa_test
check "the device is deleted" host rdma link delete es0
check "the provider is unloaded" rmmod kofi_efa
check "the soft device's module is unloaded" rmmod efasim
