#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make demo: what kOFI does, on a kernel as the distribution ships it. Each step
# is shown before it is done and must succeed.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

title()
{
	echo
	echo "== $*"
}

step()
{
	echo "\$ $*"
	check "$*" "$@"
}

# said MODULE: what it printed since it was loaded
said()
{
	dmesg | sed -n "s/^\[[^]]*\] $1: /    /p"
}

# run MODULE [PARAMETER...]: a module that does its work when it is loaded
run()
{
	echo "\$ modprobe $*"
	module=$1
	if modprobe "$@"; then
		said "$module"
		ok "modprobe $*"
		rmmod "$module"
	else
		said "$module"
		not_ok "modprobe $*"
		note "Why is said above; all that the kernel said, at last:"
		dmesg | tail -n 20 | sed 's/^/#     /'
	fi
}

# The table comes from a program of the host's python3, if there is one.
info()
{
	if [ -x /host/usr/bin/python3 ]; then
		mount -o bind /sys/kernel/debug /host/sys/kernel/debug
		tool kofi_info "$@"
		info_status=$?
		umount /host/sys/kernel/debug
		return $info_status
	fi
	note "no python3 for kofi_info; what it would have read:"
	cat /sys/kernel/debug/kofi/info
}

title "This is $(uname -sr), as Debian ships it"
title "The core, and a provider that needs no hardware: it stays within this kernel"
step modprobe kofi
step modprobe kofi_loop

title "What modules of this kernel can communicate over now (kofi_info)"
check "kofi_info" info

title "The smallest ULP finds a provider and sends itself a message (samples/hello)"
run kofi_hello

title "Each kind of operation by size; every byte is compared (samples/sizes)"
run kofi_sizes

title "16 threads for 5 seconds, while a device is pulled out and put back"
(
	for _ in 1 2 3 4 5 6; do
		usleep 500000
		echo 0 > /sys/kernel/debug/kofi_loop/loop0/present
		usleep 200000
		echo 1 > /sys/kernel/debug/kofi_loop/loop0/present
	done
) &
run kofi_soak threads=16 seconds=5
wait

title "And everything goes again"
step rmmod kofi_loop
step rmmod kofi
