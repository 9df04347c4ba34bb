#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1
# more: test stock-6.12
# full: stock-6.1
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
check "the soft device's module is loaded" modprobe efasim
check "a device is created" host rdma link add es0 type efasim netdev lo
check "another device is created" host rdma link add es1 type efasim netdev lo
check "the provider is loaded" modprobe kofi_efa
check "the provider's tests are loaded" modprobe kofi_efa_test
check "the provider has both devices" [ "$(domains)" = "es0 es1" ]
gid=$(gid es0)
check "the first device is renamed" host rdma dev set es0 name rdmap0s6
check "the provider uses the new name" [ "$(domains)" = "es1 rdmap0s6" ]
check "the new name's file shows the device" [ "$(gid rdmap0s6)" = "$gid" ]
refuse "there is no file of the old name" [ -e $STATE/es0 ]
check "the second device gets the first one's old name" host rdma dev set es1 name es0
check "the provider uses both names" [ "$(domains)" = "es0 rdmap0s6" ]
refuse "the old name's file doesn't show the first device" [ "$(gid es0)" = "$gid" ]
echo "rdmap0s6 es0 msg_sizes" > $TEST/run
tap "between the two" $TEST/results
check "the first device is deleted by its new name" host rdma link delete rdmap0s6
check "the second device stays" [ "$(domains)" = es0 ]
refuse "there is no file of the first device" [ -e $STATE/rdmap0s6 ]
check "the second device is deleted" host rdma link delete es0
check "the provider's tests are unloaded" rmmod kofi_efa_test
check "nothing is left open" nothing_open
check "the provider is unloaded" modprobe -r kofi_efa
check "the soft device's module is unloaded" modprobe -r efasim
