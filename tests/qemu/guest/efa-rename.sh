#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1
# more: stock-6.12 stock-6.1
# host-root: yes
# host-tools: rdma
# timeout: 90
#
# udev renames devices when they appear, so a new device may get a name that another one had
# just before. The provider must follow the renames.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

STATE=/sys/kernel/debug/kofi_efa
TEST=/sys/kernel/debug/kofi_efa_test
INFO=/sys/kernel/debug/kofi/info

# domains: list the domains of fi_getinfo(), each in both fabrics
domains()
{
	sed -n '/fi_domain_attr/,/fi_fabric_attr/s/^ *name: //p' $INFO | sort -u | xargs
}

gid()
{
	sed -n 's/.*: gid \([^ ]*\) .*/\1/p' "$STATE/$1"
}

ip link set lo up
check "the soft device's driver" modprobe efasim
check "a device" host rdma link add es0 type efasim netdev lo
check "and another" host rdma link add es1 type efasim netdev lo
check "the provider" modprobe kofi_efa
check "its tests" modprobe kofi_efa_test
check "it has the devices" [ "$(domains)" = "es0 es1" ]
gid=$(gid es0)
check "one gets another name" host rdma dev set es0 name rdmap0s6
check "that is what it is called" [ "$(domains)" = "es1 rdmap0s6" ]
check "and where it is looked into" [ "$(gid rdmap0s6)" = "$gid" ]
refuse "the file of the old name is gone" [ -e $STATE/es0 ]
check "its name is the other's" host rdma dev set es1 name es0
check "and both are told apart" [ "$(domains)" = "es0 rdmap0s6" ]
refuse "they are two" [ "$(gid es0)" = "$gid" ]
echo "rdmap0s6 es0 msg_sizes" > $TEST/run
tap "between the two" $TEST/results
check "one goes by its new name" host rdma link delete rdmap0s6
check "and the other stays" [ "$(domains)" = es0 ]
refuse "nothing is left of the first" [ -e $STATE/rdmap0s6 ]
check "the other goes" host rdma link delete es0
check "the tests go" rmmod kofi_efa_test
check "nothing is open" nothing_open
check "the provider goes" modprobe -r kofi_efa
check "the driver goes" modprobe -r efasim
