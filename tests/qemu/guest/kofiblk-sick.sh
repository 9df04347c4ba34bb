#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma fio
# modules: null_blk configfs hmac sha256_generic crc32c_generic
# full: yes
# timeout: 700
#
# A device of the server falls silent, then one of the client, each beside another one. TCP goes on
# working. The disks and sessions that the silent device isn't used for aren't affected, although
# they share the other side's device with those that wait for it. Nobody waits for the devices: a disk
# can't be attached, reads fail if they may, and a client comes back with other endpoints.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

ES1=/sys/kernel/debug/efasim/es1

# Requests to a silent peer take longer than either side waits for a device that does nothing.
load_two()
{
	check "the soft device's module is loaded" modprobe efasim unresponsive_ms=1000000
	check "a device is created" device_up
	check "another device is created" host rdma link add es1 type efasim netdev eth0
	check "the provider is loaded" modprobe kofi_efa
}

# A port for each device.
server_starts()
{
	check "a RAM disk is created" ram_disk n0 64
	check "another RAM disk is created" ram_disk n1 64
	check "the server is loaded" serve_one /dev/n0 domain=es0
	check "another disk is exported" export_add disk1 /dev/n1 allow_any=1
	port_dir=$CONFIG/ports/2
	mkdir "$port_dir" && ip_of a > "$port_dir/addr" && echo 4421 > "$port_dir/port" &&
		echo es1 > "$port_dir/domain"
	ln -s "$CONFIG/exports/disk1" "$port_dir/exports/disk1"
	check "another port is enabled" sh -c "echo 1 > $port_dir/enable"
}

# silent FLAG: make the device es1 silent, or not
silent()
{
	echo "$1" > $ES1/faults/unresponsive
}

# healthy WHAT: check that the first disk didn't notice
healthy()
{
	other=$DISK
	DISK=kofiblk0
	requests=$(counter requests)
	check "the other disk's requests are handled $1" wait_for 20 requests_after $((requests + 100))
	check "the other disk kept its session $1" [ "$(attribute reconnects)" = 0 ]
	DISK=$other
}

read_one()
{
	dd if="/dev/$DISK" of=/dev/null bs=64k count=4 iflag=direct 2> /dev/null
}

not_live()
{
	! state_is live
}

# sick SIDE: the device es1 of a side, which the second disk uses, falls silent for longer than
# either side lets a device do nothing
sick()
{
	before
	read_one &
	reader=$!
	meet "$1-silent"
	at "$1" silent 1
	read_one &
	another=$!
	check "the session ends if a device of the $1 is silent" wait_for 60 not_live
	sleep 70
	healthy "while the device is silent"
	at "$1" silent 0
	meet "$1-again"
	check "the disk has a session again" wait_for 120 session_after "$was"
	check "all its reads end" wait $reader $another
	healthy "after the device was silent"
}

# seconds: print the time since the guest has booted
seconds()
{
	cut -d . -f 1 /proc/uptime
}

# The server's device is silent before a disk is attached. Each attempt leaves messages to it.
half_dead()
{
	meet half-dead
	meet half-dead-silent
	for again in 1 2 3; do
		began=$(seconds)
		refuse "no disk of a silent device is attached: $again" attach disk1 client=c1,domain=es0,"$quick"
		took=$(($(seconds) - began))
		check "the attempt ends in time: $took s" [ $took -lt 30 ]
	done
	healthy "after attempts at a silent device"
	meet half-dead-again
}

# Reads that may fail don't wait for the device to give up.
fails_fast()
{
	check "a disk whose I/O may fail is attached" wait_for 60 \
		attach disk1 client=c1,domain=es0,fast_io_fail_tmo=5,"$quick"
	meet fast-silent
	meet fast-silent-now
	began=$(seconds)
	refuse "a read fails" read_one
	took=$(($(seconds) - began))
	check "it fails in time: $took s" [ $took -lt 30 ]
	healthy "after a read has failed"
	meet fast-again
	check "the disk has a session again after the failure" wait_for 120 state_is live
	check "it is read" read_one
	check "the disk is detached after the failure" detach
}

# reads_on: read until there is a file
reads_on()
{
	while [ ! -e /tmp/read.stop ] && read_one; do :; done
}

# As if the client's machine had crashed: its old endpoints don't answer, but it has others. The
# server's device still sends to the old ones.
comes_elsewhere()
{
	rm -f /tmp/read.stop
	reads_on &
	reader=$!
	sleep 1
	silent 1
	check "the session ends if the device is silent" wait_for 60 not_live
	touch /tmp/read.stop
	check "the disk is removed" detach
	wait $reader
	began=$(seconds)
	check "the disk is attached by another device" wait_for 60 attach disk0 client=c2,domain=es0,"$quick"
	took=$(($(seconds) - began))
	check "the server doesn't keep the client waiting: $took s" [ $took -lt 30 ]
	check "it is read by the other device" read_one
	healthy "after the client came back"
	silent 0
	check "it is detached" detach
}

client_runs()
{
	check "the client's module is loaded" modprobe kofiblk
	quick=reconnect_delay=1,keep_alive_tmo=4
	check "the client attaches a disk" attach disk0 client=c0,domain=es0,$quick
	load_begins --name=job --size=16m --bsrange=512-64k --blockalign=512
	SERVER=$(ip_of a):4421
	half_dead
	check "it attaches a disk of the other device" wait_for 60 attach disk1 client=c1,domain=es0,"$quick"
	sick server
	check "that disk is detached" detach
	fails_fast
	SERVER=$(ip_of a):4420
	meet client-sick
	check "a disk is attached by another device of the client" attach disk0 client=c2,domain=es1,$quick
	sick client
	comes_elsewhere
	DISK=kofiblk0
	load_ends
	refuse "the client didn't close the device that works" sh -c "dmesg | grep 'end, closing device es0'"
	check "the client's module is unloaded" rmmod kofiblk
	check "the client leaves nothing open" nothing_open
}

server_runs()
{
	meet half-dead
	silent 1
	meet half-dead-silent
	meet half-dead-again
	silent 0
	meet server-silent
	silent 1
	meet server-again
	silent 0
	meet fast-silent
	silent 1
	meet fast-silent-now
	meet fast-again
	silent 0
	meet client-sick
	meet client-silent
	meet client-again
}

server_ends()
{
	refuse "the server didn't close the device that works" sh -c "dmesg | grep 'end, closing device es0'"
	check "the server is unloaded" server_gone
	check "the server leaves nothing open" nothing_open
	check "the RAM disk is removed" ram_gone n0
	check "the other RAM disk is removed" ram_gone n1
}

load_two
at server server_starts
meet serving
at server server_runs
at client client_runs
meet client-gone
at server server_ends
meet end
check "the other device is deleted" host rdma link delete es1
unload_fabric
