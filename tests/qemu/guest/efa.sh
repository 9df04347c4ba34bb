#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1 stock-newest
# more: yes
# host-root: yes
# host-tools: rdma ip
# modules: dummy
# timeout: 400
# kmemleak: yes
#
# The EFA provider on soft devices: every case between two devices and on a single one, with
# and without faults; devices that are removed under load and come back.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

TEST=/sys/kernel/debug/kofi_efa_test
SIM=/sys/kernel/debug/efasim
ROUNDS=2
DEAD_ROUNDS=1
# Number of operations: most of the depth of an endpoint.
DEPTH=512

# run WHAT DEVICE PEER [CASE [NUMBER]]: its TAP lines become ours
run()
{
	run_what=$1
	shift
	# In a shell of its own: the end of a job is a signal to this one, which would
	# end the wait that the case is in.
	(echo "$*" > $TEST/run)
	tap "$run_what" $TEST/results
}

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

set_faults()
{
	for device in es0 es1; do
		for setting in "$@"; do
			echo "${setting#*=}" > "$SIM/$device/faults/${setting%%=*}"
		done
	done
}

create()
{
	check "es0 comes" host rdma link add es0 type efasim netdev "${1:-lo}"
	check "es1 comes" host rdma link add es1 type efasim netdev "${1:-lo}"
}

# come_back: retry, as a name becomes free some time after its device has disappeared
come_back()
{
	check "es0 is back" wait_for 20 host rdma link add es0 type efasim netdev lo
	check "es1 is back" wait_for 20 host rdma link add es1 type efasim netdev lo
}

gone()
{
	[ ! -e /sys/class/infiniband/es0 ] && [ ! -e /sys/class/infiniband/es1 ]
}

ip link set lo up
modprobe efasim
modprobe kofi_efa
create
modprobe kofi_efa_test
run "two devices" es0 es1
at_length && run "one device" es0 es0

set_faults reorder=300 duplicate=50 drop=30 delay=50 rnr=20
run "with faults" es0 es1
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

# dies: the device stops answering commands, but works otherwise
dies()
{
	set_faults admin_timeout_ms=300 admin_timeout=1
}

# deep: check that both ends have that many outstanding operations
deep()
{
	[ "$(cat $TEST/depth)" -ge $DEPTH ]
}

# dead: print the number of devices that stopped answering the provider. The counters of
# injected faults are removed with the device.
dead()
{
	dmesg | grep -c "es[01]: kofi_efa: the device doesn't answer"
}

# removal ROUND DEAD: two devices are removed at full depth, and come back; DEAD of them,
# 0 or 2, are dead by then
removal()
{
	# Slow enough for posted operations to pile up.
	set_faults delay=1000 delay_us=20000
	dead_before=$(dead)
	(
		wait_for 30 deep
		filled=$?
		[ "$2" = 0 ] || dies
		echo 1 > $SIM/es0/remove
		echo 1 > $SIM/es1/remove
		exit $filled
	) &
	remover=$!
	run "removal, round $1" es0 es1 removal 64
	check "the queues were full, round $1" wait $remover
	check "both are gone, round $1" wait_for 60 gone
	check "$2 were dead, round $1" [ $(($(dead) - dead_before)) = "$2" ]
	come_back
}

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
