#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# full: yes
# host-root: yes
# host-tools: rdma ip python3
# modules: dummy
# kmemleak: yes
# timeout: 200
#
# Failing allocations: those for a soft device and for its objects fail in turn. Then one in
# six of those for messages fails, including the network's, as messages use UDP.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

TEST=/sys/kernel/debug/efa_verbs_conformance
SIM=/sys/kernel/debug/efasim

# Code that runs in workers, and code that other tasks call.
in_worker()
{
	symbols efasim | {
		while read -r address name; do
			[ "$name" != efasim_dev_work ] || break
		done
		read -r next _
		echo "0x$address 0x$next"
	}
}

counter()
{
	sed -n "s/^$2 //p" "$SIM/$1/counters"
}

probe()
{
	echo "es0 life" > $TEST/probe
}

# Fail each allocation of a device's calls in turn, and print how many failed.
each_of_life()
{
	points=0
	noticed=0
	while [ $points -lt 300 ]; do
		echo $((points + 1)) > /proc/self/fail-nth
		probe
		read -r left < /proc/self/fail-nth
		echo 0 > /proc/self/fail-nth
		[ "$left" = 0 ] || break
		points=$((points + 1))
		! grep -q -- -12 $TEST/probe || noticed=$((noticed + 1))
	done
	echo "$points $noticed"
}

run()
{
	echo "es0 es1 $1" > $TEST/run
	grep "^#" $TEST/results
	grep -q "^ok .* $1 " $TEST/results
}

modprobe efasim udp_only=1
modprobe efa_verbs_conformance messages=200
host ip link add d0 type dummy
host ip address add 10.9.9.9/24 dev d0
ip link set d0 mtu 9000 up

# shellcheck disable=SC2046
only $(in_module efasim)
answer=$(host python3 - es0 d0 efasim < /bed/guest/efasim-nomem.py)
note "devices that were refused, were made, had another result: $answer"
check "devices are refused with ENOMEM" [ "${answer%% *}" -gt 30 ]
check "no device has another result" [ "${answer##* }" = 0 ]
check "refused devices leave nothing" [ -z "$(ls /sys/class/infiniband)$(ls $SIM)" ]

check "es0 is created" host rdma link add es0 type efasim netdev d0
probe
clean=$(cat $TEST/probe)
answer=$(each_of_life)
note "allocations of a device's calls, and those that made a call fail: $answer"
check "failed allocations make a device's calls fail" [ "${answer##* }" -gt 5 ]
probe
check "the calls succeed again: $clean" [ "$(cat $TEST/probe)" = "$clean" ]

check "es1 is created" host rdma link add es1 type efasim netdev d0
# shellcheck disable=SC2046
only $(in_worker)
for knob in $KNOBS; do
	fault_on "$knob" 16
done
for case in many_messages rdma_read rdma_write; do
	check "$case succeeds with little memory" run $case
done
for knob in $KNOBS; do
	fault_off "$knob"
done
only_everywhere
for dev in es0 es1; do
	check "$dev: no_memory counts failed allocations" [ "$(counter $dev no_memory)" -gt 0 ]
	check "$dev: sock_errors counts packets that the network had no memory for" \
		[ "$(counter $dev sock_errors)" -gt 0 ]
	check "$dev is deleted" host rdma link delete $dev
done
host ip link del d0
