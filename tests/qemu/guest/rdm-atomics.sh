#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# full: yes
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: fi_info rdma
# modules: efa ib_uverbs
# mem: 3G
# timeout: 1200
#
# Atomic operations of the kernel's fabric efa and Debian 12's libfabric (1.17) in both directions:
# each kind, type and operation, a bad network, what the kernel refuses, and a process that is
# killed.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/interop.sh
. /bed/interop.sh

FAR=/sys/module/kofi_far/parameters

# atoms WHAT ARGUMENT...: run fi_atoms with these arguments
atoms()
{
	atoms_what=$1
	shift
	theirs $OUT/fi_atoms efa_0-rdm "$@" > $OUT/log 2>&1
	atoms_status=$?
	check "$atoms_what" [ $atoms_status = "${atoms_expected:-0}" ]
	sed 's/^/# /' $OUT/log
}

idle()
{
	[ "$(counted ops)" = 0 ] && [ "$(counted kept)" = 0 ]
}

# end: have the kernel close its endpoint
end()
{
	check "all operations have ended" wait_for 5 idle
	check "unload the ULP" rmmod kofi_far
	check "nothing is left open" nothing_open
}

# faults 0|1
faults()
{
	for device in es0 pci0; do
		for setting in reorder=300 duplicate=50 drop=20 rnr=50; do
			echo $((${setting#*=} * $1)) > "$SIM/$device/faults/${setting%%=*}"
		done
	done
}

# shellcheck disable=SC2119 # without parameters
set_up
cp /bed/tools/fi_atoms $OUT
export FI_FAR_DIR=$FAR
modprobe kofi_far domain=es0 size=131072

atoms "each operation of each type" cells
for type in WRITE_RTA DC_WRITE_RTA FETCH_RTA COMPARE_RTA ATOMRSP; do
	check "$type came from libfabric" [ "0$(counted_of received $type)" -gt 20 ]
	check "$type was sent to libfabric" [ "0$(counted_of sent $type)" -gt 20 ]
done
check "none was dropped" [ "0$(counted_of dropped type)" -eq 0 ]
atoms "many at a time" many 3000
faults 1
atoms "many at a time, in a bad network" many 1000
faults 0
atoms "what the kernel refuses" wrong
check "a type that doesn't exist, or elements that aren't aligned, were dropped" \
	[ "0$(counted_of dropped type)" -ge 1 ]
check "a wrong key was dropped" [ "0$(counted_of dropped key)" -eq 1 ]
atoms_expected=137
atoms "a process is killed" die 50
check "all operations end" wait_for 5 idle
atoms_expected=0
atoms "a process after the killed one" many 100
end
tear_down
