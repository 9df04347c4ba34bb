#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-newest
# more: test
# full: stock-newest
# cmdline: memmap=64M$0x20000000
# host-root: yes
# host-tools: rdma ibv_devinfo
# modules: efa ib_uverbs
# timeout: 120
# kmemleak: yes
#
# The kernel's EFA driver on PCI functions of the soft device: it finds them, binds, unbinds
# and binds again, and libibverbs recognizes them.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

DEVICES=/sys/bus/pci/devices
BDF=10000:00:00.0
SIM=/sys/kernel/debug/efasim

devices()
{
	find /sys/class/infiniband -mindepth 1 -maxdepth 1 | wc -l
}

# keep_alive: print the driver's counter of keep-alive events
kept_alive()
{
	[ "$(cat /sys/class/infiniband/efa_0/hw_counters/keep_alive_rcvd)" -gt 0 ]
}

refuse "memory that isn't reserved is refused" modprobe efasim pci=lo pci_mem=0x10000000
refuse "an unknown netdev is refused" modprobe efasim pci=nowhere pci_mem=0x20000000
check "two functions are created" modprobe efasim pci=lo,lo pci_mem=0x20000000
check "the functions are on the bus" [ "$(cat $DEVICES/$BDF/vendor)" = 0x1d0f ]
check "the driver loads" modprobe efa
check "the driver has both devices" wait_for 20 [ "$(devices)" = 2 ]
modprobe ib_uverbs
note "$(host rdma link)"
check "a link is up" sh -c 'chroot /host rdma link | grep -q "efa_0/1.*ACTIVE"'
check "keep-alive events arrive" wait_for 20 kept_alive
note "$(host ibv_devinfo -v)"
check "ibv_devinfo shows the device" sh -c 'chroot /host ibv_devinfo -d efa_0 | grep -q PORT_ACTIVE'
for round in 1 2 3; do
	check "unload $round" rmmod efa
	check "load again $round" modprobe efa
	check "both are back $round" wait_for 20 [ "$(devices)" = 2 ]
done
echo 0 > $SIM/pci0/plug
check "one is unplugged" [ "$(devices)" = 1 ]
echo 1 > $SIM/pci0/plug
check "the device is back after a rescan" [ "$(devices)" = 2 ]
check "the bus is removed under the driver" rmmod efasim
check "no device is left" [ "$(devices)" = 0 ]
check "the bus is created again" modprobe efasim pci=lo pci_mem=0x20000000 pci_device=0xefa2
check "the driver has the new device" wait_for 20 [ "$(devices)" = 1 ]
limit=/sys/module/efasim/parameters
check "a completion queue has room for both queues of a queue pair" \
	[ $(($(cat $limit/max_sq_depth) + $(cat $limit/max_rq_depth))) -le "$(cat $limit/max_cq_depth)" ]
check "unload the driver" rmmod efa
check "unload" rmmod efasim
