#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12
# more: yes
# host-root: yes
# host-tools: rdma
# timeout: 180
#
# An open fabric pins its provider, users pin the core, and nothing else is pinned. Otherwise
# modules can be unloaded in any order.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

# A provider's number of users doesn't show it: each call of fi_getinfo() is a user for a moment.
fabric_open()
{
	grep -qs '^fabric' /sys/kernel/debug/kofi/objects
}

gone()
{
	for module; do
		[ ! -d "/sys/module/$module" ] || return 1
	done
}

modprobe kofi_loop
refuse "the core can't be unloaded before a provider" rmmod kofi
modprobe kofi_soak threads=4 seconds=60 &
soak=$!
check "a fabric is open" wait_for 60 fabric_open
refuse "a provider can't be unloaded while a fabric is open" rmmod kofi_loop
# Let traffic go on after the refused rmmod.
sleep 2
echo 0 > /sys/module/kofi_soak/parameters/seconds
check "the refused rmmod hasn't disturbed the traffic" wait $soak
check "no fabric is open any more" grep -q 'users: 0' /sys/kernel/debug/kofi/providers
check "the provider is unloaded while the ULP is still loaded" rmmod kofi_loop
refuse "the core can't be unloaded before a ULP" rmmod kofi
check "the ULP is unloaded" rmmod kofi_soak
check "the core is unloaded" rmmod kofi

# in_order MODULE...: load all modules, and unload them in this order
in_order()
{
	modprobe kofi_loop && modprobe kofi_hello && modprobe kofi_soak threads=1 ||
		return 1
	for module; do
		rmmod "kofi_$module" || return 1
	done
	rmmod kofi && gone kofi_loop kofi_hello kofi_soak kofi
}

check "unloaded in the order loop, soak, hello" in_order loop soak hello
check "unloaded in the order hello, soak, loop" in_order hello soak loop
if at_length; then
	check "unloaded in the order loop, hello, soak" in_order loop hello soak
	check "unloaded in the order soak, loop, hello" in_order soak loop hello
	check "unloaded in the order soak, hello, loop" in_order soak hello loop
	check "unloaded in the order hello, loop, soak" in_order hello loop soak
fi

# Load and unload a provider while a reader of debugfs looks for providers all the time.
TIMES=$(at_length && echo 10 || echo 3)
modprobe kofi
(while [ -d /sys/module/kofi ]; do cat /sys/kernel/debug/kofi/*; done) > /dev/null 2>&1 &
for _ in $(seq "$TIMES"); do
	modprobe kofi_loop
	until rmmod kofi_loop 2> /dev/null; do :; done
done
check "a provider is loaded and unloaded $TIMES times while debugfs is read" gone kofi_loop
until rmmod kofi 2> /dev/null; do :; done
wait
check "the core is unloaded, too" gone kofi

# link: create a soft device for the EFA provider
link()
{
	ip link set lo up && modprobe efasim && host rdma link add es0 type efasim netdev lo
}

# in_efa_order MODULE...: load the EFA provider, its device and a ULP, and unload in this order
in_efa_order()
{
	link && modprobe kofi_efa && modprobe kofi_hello || return 1
	for module; do
		[ "$module" != efasim ] || host rdma link delete es0 || return 1
		rmmod "$module" || return 1
	done
	rmmod kofi && gone efasim kofi_efa kofi_hello kofi
}

check "unloaded in the order efasim, kofi_efa, kofi_hello" in_efa_order efasim kofi_efa kofi_hello
check "unloaded in the order kofi_hello, kofi_efa, efasim" in_efa_order kofi_hello kofi_efa efasim
if at_length; then
	check "unloaded in the order efasim, kofi_hello, kofi_efa" in_efa_order efasim kofi_hello kofi_efa
	check "unloaded in the order kofi_efa, efasim, kofi_hello" in_efa_order kofi_efa efasim kofi_hello
	check "unloaded in the order kofi_efa, kofi_hello, efasim" in_efa_order kofi_efa kofi_hello efasim
	check "unloaded in the order kofi_hello, efasim, kofi_efa" in_efa_order kofi_hello efasim kofi_efa
fi

link
modprobe kofi_efa
modprobe kofi_efa_test
# This case has its fabric open until the device is removed.
echo "es0 es0 removal 1" > /sys/kernel/debug/kofi_efa_test/run &
cases=$!
check "a fabric of the EFA provider is open" wait_for 60 fabric_open
refuse "the EFA provider can't be unloaded while a fabric is open" rmmod kofi_efa
refuse "the soft device's module can't be unloaded, either" rmmod efasim
check "the device is deleted under the ULP" host rdma link delete es0
wait $cases
check "the soft device's module is unloaded before the provider" rmmod efasim
check "the provider is unloaded before the ULP" rmmod kofi_efa
check "the ULP is unloaded last" rmmod kofi_efa_test
