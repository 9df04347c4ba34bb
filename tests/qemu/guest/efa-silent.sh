#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1
# host-root: yes
# host-tools: rdma
# full: yes
# timeout: 300
# kmemleak: yes
#
# A device accepts registrations but doesn't complete them: it is given up, so that tasks that
# wait for it get an error. Other devices work, and the device is used again when it comes
# back.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

TEST=/sys/kernel/debug/kofi_efa_test
FAULTS=/sys/kernel/debug/efasim/es0/faults

given_up()
{
	dmesg | grep -q "es0: kofi_efa: the device is given up"
}

offered()
{
	grep -q "name: $1\$" /sys/kernel/debug/kofi/info
}

ip link set lo up
modprobe efasim
modprobe kofi_efa
check "es0 is created" host rdma link add es0 type efasim netdev lo
check "es1 is created" host rdma link add es1 type efasim netdev lo
check "es2 is created" host rdma link add es2 type efasim netdev lo
modprobe kofi_efa_test
check "es0 is offered" offered es0

# Each registration takes a random time of up to ten minutes. With this seed the first eight
# take more than two, provided that no other random numbers are drawn.
echo 600000000 > $FAULTS/reg_delay_us
echo 0 > $FAULTS/reorder
echo 84 > $FAULTS/seed
echo "es1 es0 rma" > $TEST/run &
waiter=$!
check "es0 is given up" wait_for 120 given_up
check "the task that waited for the device has ended" wait $waiter
check "the task has an error" grep -q "^not ok" $TEST/results
check "es0 isn't offered" eval "! offered es0"
check "es1 is offered" offered es1
echo "es1 es2 rma" > $TEST/run
tap "es1, to es2" $TEST/results

check "delete es0" host rdma link delete es0
check "es0 is created again" wait_for 20 host rdma link add es0 type efasim netdev lo
check "es0 is offered again" wait_for 20 offered es0
echo "es1 es0 rma" > $TEST/run
tap "es1, to es0" $TEST/results
for device in es0 es1 es2; do
	check "delete $device" host rdma link delete $device
done
modprobe -r kofi_efa_test
check "the provider unloads" modprobe -r kofi_efa
check "the devices' driver unloads" modprobe -r efasim
