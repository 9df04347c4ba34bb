#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1 stock-newest
# more: test stock-6.12
# full: stock-6.1 stock-newest
# timeout: 120
#
# The sample with connections, in one kernel: a whole run, and modules that are unloaded at any
# time, with their connections open.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

# back NUMBER: so many messages have come back, and are right
back()
{
	dmesg | grep -q "kofi_mirror: $1 messages came back, 0 of them wrong"
}

# failed: a client has said that its connection failed
failed()
{
	dmesg | grep -q "kofi_mirror: a connection failed:"
}

refuse "without a provider the sample isn't loaded" modprobe kofi_mirror
check "a mirror without a client" modprobe kofi_mirror prov=loop
check "the module for connections was loaded" [ -d /sys/module/kofi_msg ]
refuse "the module for connections is in use" rmmod kofi_msg
check "it is unloaded" rmmod kofi_mirror
check "nothing is left open" nothing_open
check "a mirror of itself" modprobe kofi_mirror prov=loop peer=127.0.0.1 count=3000
check "all messages come back" wait_for 60 back 3000
check "it is unloaded with a connection" rmmod kofi_mirror
check "nothing is left open after a connection" nothing_open
for delay in 0 5000 20000 100000 400000; do
	check "loaded for $delay us" modprobe kofi_mirror prov=loop peer=127.0.0.1 count=1000000
	usleep $delay
	check "unloaded after $delay us" rmmod kofi_mirror
	check "nothing is open, $delay us" nothing_open
done
# It listens at all addresses of this machine.
check "a mirror by another address" modprobe kofi_mirror prov=loop peer=127.0.0.2 count=10
check "all come back by another address" wait_for 20 back 10
check "it is unloaded once more" rmmod kofi_mirror
check "a mirror without a route" modprobe kofi_mirror prov=loop peer=192.0.2.1
check "its client fails" wait_for 20 failed
check "it is unloaded without a connection" rmmod kofi_mirror
refuse "a peer that is no address" modprobe kofi_mirror prov=loop peer=somebody
check "nothing is left open at the end" nothing_open
check "the module for connections is unloaded" rmmod kofi_msg
