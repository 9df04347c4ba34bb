# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# Functions for tests on two soft devices, es0 and es1, with the module kofi_efa_test or another one
# that runs cases (TEST).

TEST=/sys/kernel/debug/kofi_efa_test
SIM=/sys/kernel/debug/efasim
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

set_faults()
{
	for device in es0 es1; do
		for setting in "$@"; do
			echo "${setting#*=}" > "$SIM/$device/faults/${setting%%=*}"
		done
	done
}

# create NETDEV
create()
{
	check "es0 comes" host rdma link add es0 type efasim netdev "$1"
	check "es1 comes" host rdma link add es1 type efasim netdev "$1"
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
