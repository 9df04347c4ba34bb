#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# full: yes
# guests: 2
# cmdline: memmap=32M$0x20000000
# modules: ib_uverbs null_blk configfs hmac sha256_generic crc32c_generic crc32c_intel libcrc32c
# settings: EFA_KO=
# mem: 1G
# timeout: 900
#
# pingpong and kofiblk between two kernels, each with Amazon's own driver. Not on the
# test kernel: pingpong writes with data round a completion queue, see efa-amazon.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh
# shellcheck source=tests/qemu/efa_ko.sh
. /bed/efa_ko.sh

PINGPONG=/sys/kernel/debug/kofi_pingpong

pingpong_state()
{
	cat "$PINGPONG/$SIDE/state" 2> /dev/null
}

# pingpong_is STATE...
pingpong_is()
{
	pingpong_now=$(pingpong_state)
	for state in "$@"; do
		[ "$pingpong_now" = "$state" ] && return 0
	done
	return 1
}

whole_run()
{
	check "the client is loaded" modprobe kofi_pingpong role=client addr="$(ip_of a)" prov=efa
	check "the client's run ends" wait_for 300 pingpong_is "done" failed
	check "the client's run has succeeded" pingpong_is "done"
	sed 's/^/# /' "$PINGPONG/client/results"
}

# written_and_read MEGABYTES: what was written to the disk is read from it
written_and_read()
{
	dd if=/dev/urandom of=/tmp/data bs=1M count="$1" 2> /dev/null
	dd if=/tmp/data of="/dev/$DISK" bs=128k oflag=direct conv=fsync 2> /dev/null || return
	dd if="/dev/$DISK" bs=64k count=$(($1 * 16)) iflag=direct 2> /dev/null | cmp - /tmp/data
}

# unbound: the server's driver lets go of its function, and takes it again
unbound()
{
	function_of 0 > $DRIVER/unbind
	check "the device is gone" wait_for 60 gone
	function_of 0 > $DRIVER/bind
	check "the device is back" wait_for 60 there 0
}

amazon_up eth0
check "the provider is loaded" modprobe kofi_efa
meet loaded

at server check "the server is loaded" modprobe kofi_pingpong role=server addr="$(ip_of a)" prov=efa
meet listens
at client whole_run
meet ran
check "pingpong is unloaded" rmmod kofi_pingpong

at server check "a RAM disk is created" ram_disk n0 64
at server check "the server's module is loaded" modprobe kofiblk_srv
at server check "an export is created" export_add disk0 /dev/n0 uuid=$UUID
at server check "the client is allowed" allow disk0 b "$SECRET"
at server check "a port is created" port_up disk0
meet serving
at client check "the client's module is loaded" modprobe kofiblk
at client check "the client attaches a disk" attach disk0 "client=b,secret=$SECRET,reconnect_delay=1"
at client check "data is written and read back" written_and_read 16
meet written
at server unbound
meet unbound
at client check "the disk is live again" wait_for 60 state_is live
at client check "data is written and read back after the server's device came back" written_and_read 16
at client check "the disk is detached" detach
at client check "the client's module is unloaded" rmmod kofiblk
meet client-gone
at server check "the server is unloaded" server_gone
at server check "the RAM disk is removed" ram_gone n0
meet end
check "nothing is left open" nothing_open
check "the common modules are unloaded" rmmod kofiblk_common kofi_cm kofi_ulp
check "the provider is unloaded" modprobe -r kofi_efa
amazon_down
