#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# full: yes
# host-root: yes
# host-tools: rdma ip
# timeout: 1200
#
# A million atomic operations of four endpoints of fabric efa on one word, and of the CPU.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/efa.sh
. /bed/efa.sh

ip link set lo up
modprobe efasim
modprobe kofi_efa
create lo
modprobe kofi_efa_test
run "a million" es0 es1 atomic_sums 250000
run "a target that is removed in between" es0 es1 atomic_removed 30000
set_faults reorder=300 duplicate=50 drop=30 rnr=20
run "with faults" es0 es1 atomic_sums 3000
set_faults reorder=0 duplicate=0 drop=0 rnr=0
check "delete es0" host rdma link delete es0
check "delete es1" host rdma link delete es1
modprobe -r kofi_efa_test
check "the provider unloads" modprobe -r kofi_efa
check "the devices' driver unloads" modprobe -r efasim
