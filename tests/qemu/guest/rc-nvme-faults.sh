#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma nvme fio
# modules: null_blk configfs nvme_rdma nvmet_rdma hmac sha256_generic crc32c_generic
# more: yes
# timeout: 900
#
# NVMe over fabrics on kofi_rc while the target's port, devices and a peer go and come back. The
# data is right afterwards, and everything can be unloaded.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/rc.sh
. /bed/rc.sh

# on ROLE COMMAND...: run a command on one guest, while the other one has load
on()
{
	barrier "before-$2-$1" > /dev/null
	on_role=$1
	shift
	[ "$ROLE" != "$on_role" ] || "$@"
	barrier "after-$1-$on_role" > /dev/null
	[ "$ROLE" = a ] || check "I/O goes on after $1 on $on_role" goes_on
}

port_returns()
{
	check "the target's port is removed" port_down
	sleep 3
	check "the target's port is back" port_up
}

# The host's keep-alive fails, so it ends its connections, whose datagrams don't end by themselves.
falls_silent()
{
	faults unresponsive=1
	sleep 30
	faults unresponsive=0
}

# Datagrams to a silent peer don't end before the device is given up.
SIM_OPTIONS=unresponsive_ms=60000
RC_OPTIONS=revoke_s=10
nvme_up
if [ "$ROLE" = b ]; then
	check "the host connects with 2 queues" to_server connect -n "$NQN" -i 2 -c 2 -l 600 -k 5
	check "the disk is there" wait_for 20 has_disk nvme0n1
	load_begins
	check "I/O begins" goes_on
fi
on a port_returns
on a device_returns
on b device_returns
on a falls_silent
barrier faults > /dev/null
if [ "$ROLE" = b ]; then
	check "all data was right" load_ends
	load_begins
	check "I/O goes on" goes_on
	check "the link is deleted under load" host rdma link delete rc0
	check "the controller is gone" wait_for 60 disk_gone
	: > /tmp/load.stop
	wait "$load_pid"
	check "a link is created again" host rdma link add rc0 type kofi_rc netdev eth0
	check "the host connects again" to_server connect -n "$NQN" -i 2
	check "the disk is there again" wait_for 20 has_disk nvme0n1
	check "its data is right" fio --rw=randwrite --bsrange=512-256k --size=8m
	check "the host disconnects" nvme disconnect -n "$NQN"
fi
nvme_down
