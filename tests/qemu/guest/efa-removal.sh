#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1
# host-root: yes
# host-tools: rdma
# full: yes
# timeout: 400
# kmemleak: yes
#
# Two soft devices are removed at full depth, with messages and RMA in flight, and come back,
# twenty times, five of them with a dead admin queue.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/efa.sh
. /bed/efa.sh

ROUNDS=20
# In one of this number of rounds the admin queues are dead.
DEAD=4

ip link set lo up
modprobe efasim
modprobe kofi_efa
create lo
modprobe kofi_efa_test
for round in $(seq $ROUNDS); do
	removal "$round" $((round % DEAD ? 0 : 2))
done
run "after all that" es0 es1 msg_sizes
check "delete es0" host rdma link delete es0
check "delete es1" host rdma link delete es1
modprobe -r kofi_efa_test
check "the provider unloads" modprobe -r kofi_efa
check "the devices' driver unloads" modprobe -r efasim
