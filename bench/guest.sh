#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The guest's part of the benchmarks: runs the tests of /bed/tests, one per line,
# and prints what the host needs. The guest prints only after all tests, because
# interaction with the host takes time that differs between runs.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=bench/blk.sh
. /bed/blk.sh
# shellcheck source=tests/qemu/efa_ko.sh
. /bed/efa_ko.sh

PATH=$PATH:/usr/bin:/usr/sbin
BENCH=/sys/kernel/debug/kofi_bench
DEVICES=/sys/kernel/debug/efasim
LOCAL=/sys/module/kofi_efa/parameters/local_transfer

# device NAME TYPE NETDEV
device()
{
	check "$1 comes" rdma link add "$1" type "$2" netdev "$3" 2>&1
}

# Turn off delays and reordering of the device.
no_faults()
{
	for knob in reorder reg_delay_us slid_lag_us; do
		echo 0 > "$DEVICES/$1/faults/$knob"
	done
}

# Wait until the provider has probed the devices.
wait_for_provider()
{
	for _ in $(seq 100); do
		[ -e /sys/kernel/debug/kofi_efa/es0 ] && return
		sleep 0.1
	done
}

soft_devices()
{
	modprobe efasim seed=1 max_qp=4096 max_cq=8192 max_pd=4096
	modprobe kofi_efa
	device es0 efasim lo
	device es1 efasim lo
	no_faults es0
	no_faults es1
}

# The same names, with Amazon's driver on PCI functions of the soft device.
amazon_devices()
{
	ip link set lo up
	modprobe efasim seed=1 max_qp=4096 max_cq=8192 max_pd=4096 pci=lo,lo pci_mem=0x20000000
	amazon_up lo lo
	rdma dev set efa_0 name es0
	rdma dev set efa_1 name es1
	modprobe kofi_efa
	no_faults pci0
	no_faults pci1
}

set_up()
{
	if [ -e /bed/efa.ko ]; then
		amazon_devices
	else
		soft_devices
	fi
	wait_for_provider
	modprobe dummy numdummies=1
	ip addr add 10.9.0.1/24 dev dummy0
	ip link set dummy0 mtu 9000 up
	ip link set lo up
	modprobe rdma_rxe
	device rxe0 rxe dummy0
	for module in kofi_bench kofi_bench_verbs kofi_bench_efa kofi_bench_tcp \
		kofi_bench_blk kofi_bench_match kofi_bench_rdm kofi_bench_tag; do
		check "$module" modprobe $module
	done
}

run_tests()
{
	while read -r line; do
		case $line in
		"blk "*) disk=${line#blk } ;;
		*) disk= ;;
		esac
		blk_only "${disk%% *}"
		case $line in
		"rdmlocal "*) echo 1 ;;
		*) echo 0 ;;
		esac > $LOCAL
		echo "test $line"
		if echo "$line" > $BENCH/run; then
			cat $BENCH/results
		else
			not_ok "$line"
		fi
	done < /bed/tests
	blk_only ""
}

{
	set_up
	run_tests
	ok "all tests ran"
} > /tmp/results
cat /tmp/results
grep -i ' [tw] ' /proc/kallsyms
if [ -e /bed/efa.ko ]; then
	rmmod efa
else
	rdma link delete es0
	rdma link delete es1
fi
rdma link delete rxe0
