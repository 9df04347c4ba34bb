#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# more: yes
# host-root: yes
# host-tools: rdma
# settings: MESSAGES=100000
# timeout: 300
#
# A hundred thousand messages between two devices with reordering, delay, duplicates and loss:
# each arrives once, intact.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

TEST=/sys/kernel/debug/efa_verbs_conformance
SIM=/sys/kernel/debug/efasim

ip link set lo up
modprobe efasim
modprobe efa_verbs_conformance messages="$MESSAGES"
for device in es0 es1; do
	check "create $device" host rdma link add $device type efasim netdev lo
	for setting in seed=3 reorder=200 delay=20 duplicate=20 drop=5; do
		echo "${setting#*=}" > "$SIM/$device/faults/${setting%%=*}"
	done
done
echo "es0 es1 many_messages" > $TEST/run
grep "^#" $TEST/results
check "$(grep "^ok\|^not" $TEST/results)" grep -q "^# $MESSAGES messages" $TEST/results
check "the case has passed" grep -q "^ok .* many_messages" $TEST/results
for knob in reorder delay duplicate drop; do
	check "$knob did something" grep -q "^$knob [0-9]* [1-9]" $SIM/es0/faults/injected
done
check "delete es0" host rdma link delete es0
check "delete es1" host rdma link delete es1
