#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1
# host-root: yes
# host-tools: rdma
# full: yes
# timeout: 400
# kmemleak: yes
#
# Two soft devices go away at full depth, messages and RMA in flight, and come
# back, twenty times, five of them with an admin queue that is dead.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

TEST=/sys/kernel/debug/kofi_efa_test
SIM=/sys/kernel/debug/efasim
ROUNDS=20
# Every so many rounds the admin queues are dead.
DEAD=4
# Operations: most of what there is room for at an end.
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
	check "es0 comes" host rdma link add es0 type efasim netdev lo
	check "es1 comes" host rdma link add es1 type efasim netdev lo
}

# come_back: a name is free only a while after its device can't be seen any more
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
# dies: no command is answered any more, though the device goes on otherwise
dies()
{
	set_faults admin_timeout_ms=300 admin_timeout=1
}

# deep: both ends have so much outstanding
deep()
{
	[ "$(cat $TEST/depth)" -ge $DEPTH ]
}

# dead: how many devices didn't answer the provider any more. What was injected goes
# with the device.
dead()
{
	dmesg | grep -c "es[01]: kofi_efa: the device doesn't answer"
}

# removal ROUND DEAD: two devices go, at full depth, and come back; DEAD, 0 or 2, of
# them are dead by then
removal()
{
	# So slow that what is posted piles up.
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
	removal "$round" $((round % DEAD ? 0 : 2))
done
run "after all that" es0 es1 msg_sizes
check "delete es0" host rdma link delete es0
check "delete es1" host rdma link delete es1
modprobe -r kofi_efa_test
check "the provider unloads" modprobe -r kofi_efa
check "the devices' driver unloads" modprobe -r efasim
