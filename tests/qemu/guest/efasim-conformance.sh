#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12
# more: yes
# host-root: yes
# host-tools: rdma ip
# modules: dummy
# kmemleak: yes
# timeout: 300
#
# The soft device passes the conformance test: between two devices, over UDP, and with faults. Of
# the first generation, which has no RDMA read, it passes the cases that concern completion queues.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/efa.sh
. /bed/efa.sh

# Some cases do what would crash Amazon's driver.
TELL_TALES_MEANT=driver_crash_avoided
TEST=/sys/kernel/debug/efa_verbs_conformance

# injected DEVICE KNOB: print the number of injected faults
injected()
{
	while read -r knob _ count; do
		[ "$knob" = "$2" ] && echo "$count"
	done < "$SIM/$1/faults/injected"
}

remove()
{
	check "delete es0" host rdma link delete es0
	check "delete es1" host rdma link delete es1
}

ip link set lo up
modprobe efasim
modprobe efa_verbs_conformance unsafe=1 messages="$(at_length && echo 2000 || echo 500)"
create lo
run "two devices" es0 es1
at_length && run "one device" es0 es0 many_messages

set_faults reorder=300 duplicate=50 drop=30 delay=50 rnr=20 no_memory=30
run "with faults" es0 es1 many_messages
run "with faults" es0 es1 rdma_read
for knob in reorder duplicate drop delay rnr no_memory; do
	check "$knob did something" [ "$(($(injected es0 $knob) + $(injected es1 $knob)))" -gt 0 ]
done
set_faults reorder=100 duplicate=0 drop=0 delay=0 rnr=0 no_memory=0
remove

# Devices without RDMA read have completion queues of two rings.
echo 0 > /sys/module/efasim/parameters/rdma_read
create lo
for case in poll_order cq_create event_once missed_events destroyed_qp_costs_a_poll \
		no_qp_no_completions many_messages; do
	run "first generation" es0 es1 $case
done
remove
echo 1 > /sys/module/efasim/parameters/rdma_read

# The same over UDP, within this kernel.
echo 1 > /sys/module/efasim/parameters/udp_only
host ip link add d0 type dummy
host ip address add 10.9.9.9/24 dev d0
ip link set d0 up
create d0
run "by UDP" es0 es1
remove
ip link del d0
