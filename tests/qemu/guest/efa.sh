#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1 stock-newest
# more: yes
# host-root: yes
# host-tools: rdma ip
# modules: dummy
# timeout: 500
# kmemleak: yes
#
# The EFA provider on soft devices: every case between two devices and on a single one, with
# and without faults; devices that are removed under load and come back. Regions of fabric efa are
# closed under load, by each way that reads and writes may go.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/efa.sh
. /bed/efa.sh

ROUNDS=2
DEAD_ROUNDS=1

# injected KNOB: print the number of injected faults of both devices
injected()
{
	injected_sum=0
	for device in es0 es1; do
		while read -r knob _ count; do
			[ "$knob" = "$1" ] && injected_sum=$((injected_sum + count))
		done < "$SIM/$device/faults/injected"
	done
	echo $injected_sum
}

ip link set lo up
modprobe efasim
modprobe kofi_efa
create lo
modprobe kofi_efa_test
run "two devices" es0 es1
at_length && run "one device" es0 es0

# able NONE|READ|ALL|AUTO: have the provider use these operations of the devices from now on
able()
{
	echo "$1" > /sys/module/kofi_efa/parameters/rdma
	for device in es0 es1; do
		echo $device > /sys/kernel/debug/kofi_efa/probe
	done
}

# far WHAT CASE...: reads and writes of fabric efa by packets, read by the target, by the devices
far()
{
	far_what=$1
	shift
	# Nothing answers a packet with a wrong key.
	echo 2 > /sys/module/kofi_efa/parameters/rma_timeout
	for able in none read all; do
		able $able
		for far in "$@"; do
			run "$far_what, RDMA $able" es0 es1 "$far"
		done
	done
	able auto
	echo 30 > /sys/module/kofi_efa/parameters/rma_timeout
}

far "two devices" far_sizes far_data far_refused far_closed

set_faults reorder=300 duplicate=50 drop=30 delay=50 rnr=20
run "with faults" es0 es1
far "with faults" far_closed
for knob in reorder duplicate drop delay rnr; do
	check "$knob did something" [ "$(injected $knob)" -gt 0 ]
done
set_faults reorder=0 duplicate=0 drop=0 delay=0 rnr=0
cat /sys/kernel/debug/kofi_efa/es0

# A flood of one peer leaves another one a quarter of its rate. One whose messages nobody
# receives is cut off when they use up the budget.
budget=$(cat /sys/module/kofi_efa/parameters/rx_budget)
echo 1048576 > /sys/module/kofi_efa/parameters/rx_budget
run "a flood" es0 es1 rdm_flood
run "a flood" es0 es1 rdm_flood_of_a_stranger
echo "$budget" > /sys/module/kofi_efa/parameters/rx_budget
set_faults reorder=100

for round in $(seq $ROUNDS); do
	removal "$round" 0
done
for round in $(seq $DEAD_ROUNDS); do
	removal "dead $round" 2
done
run "after all that" es0 es1 msg_sizes
check "delete es0" host rdma link delete es0
check "delete es1" host rdma link delete es1

# Connect the devices by UDP, as between two kernels, so that one can fall silent.
echo 1 > /sys/module/efasim/parameters/udp_only
echo 3000 > /sys/module/efasim/parameters/unresponsive_ms
host ip link add d0 type dummy
host ip address add 10.9.9.9/24 dev d0
ip link set d0 up
create d0
run "apart" es0 es1 peer_flood
echo 1 > $SIM/es1/faults/unresponsive
run "es1 is silent" es0 es1 peer_silent
check "unresponsive did something" [ "$(injected unresponsive)" -gt 0 ]
echo 0 > $SIM/es1/faults/unresponsive
run "es1 is back" es0 es1 msg_sizes
check "delete es0 again" host rdma link delete es0
check "delete es1 again" host rdma link delete es1
ip link del d0
modprobe -r kofi_efa_test
check "the provider unloads" modprobe -r kofi_efa
check "the devices' driver unloads" modprobe -r efasim
