#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# full: yes
# guests: 2
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: rdma fi_info
# modules: efa ib_uverbs
# mem: 1536M
# timeout: 600
#
# Between two guests, a kernel's verbs in one and a process on a PCI function in the other:
# fabric efa against libfabric, by a bad network; then the process is killed under load and its
# driver reset.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/interop.sh
. /bed/interop.sh

# meet NAME [VALUE]: with the other guest; its value and ours are in $met
meet()
{
	met=$(barrier "$@") || exit 1
}

at()
{
	at_role=$1
	shift
	[ "$at_role" != "$ROLE" ] || "$@"
}

# set_faults DEVICE 0|1
set_faults()
{
	for setting in reorder=200 duplicate=50 drop=20; do
		echo $((${setting#*=} * $2)) > "$SIM/$1/faults/${setting%%=*}"
	done
}

verbs_up()
{
	modprobe efasim unresponsive_ms=20000
	host rdma link add es0 type efasim netdev eth0
	modprobe kofi_efa
	check "the kernel's endpoint" modprobe kofi_echo domain=es0 max_size=4194304 slots=32
	name=$(cat $ECHO/name)
}

process_up()
{
	export FI_EFA_USE_DEVICE_RDMA=1 FI_ECHO_MAX=4194304
	cp /bed/tools/fi_echo $OUT
	set_up_process eth0 unresponsive_ms=20000
	name=-
}

# talk WHAT ARGUMENT...: the process does so with the kernel
talk()
{
	talk_what=$1
	shift
	host $OUT/fi_echo efa_0-rdm "$kernel" "$@" > $OUT/log 2>&1
	talk_status=$?
	check "$talk_what" [ $talk_status = 0 ]
	[ $talk_status = 0 ] || sed 's/^/# /' $OUT/log
}

# messages: how many have come back
messages()
{
	awk '$1 == "recv_wrs" { print $2 }' $SIM/pci0/counters
}

more_messages()
{
	[ "$(messages)" -gt "$1" ]
}

# The driver resets the function when it goes, while the kernel still sends to the process.
reset_under_load()
{
	host $OUT/fi_echo efa_0-rdm "$kernel" forever > $OUT/log 2>&1 &
	check "messages are being exchanged" wait_for 60 more_messages $(($(messages) + 100))
	killall -9 fi_echo
	check "the driver is unloaded" wait_for 60 rmmod efa 2> /dev/null
	check "the driver is loaded again" modprobe efa
	check "the device is back" wait_for 20 [ -e /dev/infiniband/uverbs0 ]
}

nothing_failed()
{
	check "no operation failed" [ "$(cat $ECHO/failed)" = 0 ]
}

note_failures()
{
	note "$(cat $ECHO/failed) operations failed, as a peer had gone"
}

if [ "$ROLE" = a ]; then verbs_up; else process_up; fi
meet up "$name"
kernel=${met%% *}
at b talk "messages of all sizes" sizes 0 8 9000 65537 1048576 4194304
at b talk "many at a time" many 64
meet talked
if [ "$ROLE" = a ]; then set_faults es0 1; else set_faults pci0 1; fi
meet bad-network
at b talk "many, by a bad network" many 64
meet by-bad-network
if [ "$ROLE" = a ]; then set_faults es0 0; else set_faults pci0 0; fi
at a nothing_failed
at b reset_under_load
meet was-reset
at b talk "many, after the reset" many 64
meet over
at a note_failures
at a sed 's/^/# /' "$EFA"
at a check "unload the ULP" rmmod kofi_echo
at a check "unload the provider" rmmod kofi_efa
at a check "delete es0" host rdma link delete es0
at b check "unload the driver" rmmod efa
check "unload" rmmod efasim
