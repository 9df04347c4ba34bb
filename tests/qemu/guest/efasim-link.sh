#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1
# more: test stock-6.12
# full: stock-6.1
# host-root: yes
# host-tools: rdma
# timeout: 90
#
# Soft EFA devices are added and removed: by name, several on one netdev, with rdma(8).
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

rdma()
{
	host rdma "$@"
}

# shows PATTERN ARGUMENT...
shows()
{
	shows_what=$1
	shift
	rdma "$@" | grep -q "$shows_what"
}

gid()
{
	cat "/sys/class/infiniband/$1/ports/1/gids/0"
}

# The names of counters in the driver's sources.
DEVICE_COUNTERS="alloc_mr_err alloc_pd_err alloc_ucontext_err cmds_err completed_cmds
create_ah_err create_cq_err create_qp_err get_dma_mr_err keep_alive_rcvd mmap_err
no_completion_cmds reg_mr_err submitted_cmds"
PORT_COUNTERS="impaired_remote_conn_events rdma_read_bytes rdma_read_resp_bytes
rdma_read_wr_err rdma_read_wrs rdma_write_bytes rdma_write_recv_bytes rdma_write_wr_err
rdma_write_wrs recv_bytes recv_wrs retrans_bytes retrans_pkts retrans_timeout_events
rx_bytes rx_drops rx_pkts send_bytes send_wrs tx_bytes tx_pkts
unresponsive_remote_events"

# has_counters DIRECTORY NAME...: check for exactly these counters, in alphabetical order
has_counters()
{
	has_dir=/sys/class/infiniband/es0/$1
	shift
	for has_file in "$has_dir"/*; do
		has_name=${has_file##*/}
		[ "$has_name" != lifespan ] || continue
		[ "$has_name" = "$1" ] || return
		shift
	done
	[ $# = 0 ]
}

devices()
{
	find /sys/class/infiniband -mindepth 1 -maxdepth 1 | wc -l
}

ip link set lo up
check "a link type loads its module" rdma link add es0 type efasim netdev lo
check "a second device on the same netdev" rdma link add es1 type efasim netdev lo
refuse "a second device of the same name is refused" rdma link add es0 type efasim netdev lo
check "there are two devices" [ "$(devices)" = 2 ]
check "rdma link shows it" shows "link es0/1.*ACTIVE" link show
check "rdma dev shows it" shows "es1:" dev show es1
check "rdma statistic has the port's counters" \
	shows rdma_read_resp_bytes statistic show link es0/1
# shellcheck disable=SC2086
check "the device's counters have the driver's names" \
	has_counters hw_counters $DEVICE_COUNTERS
# shellcheck disable=SC2086
check "the port's counters have the driver's names" has_counters ports/1/hw_counters $PORT_COUNTERS
check "the GIDs differ" [ "$(gid es0)" != "$(gid es1)" ]
refuse "the module can't be unloaded while there are devices" rmmod efasim
check "a device is deleted" rdma link delete es0
check "there is one device" [ "$(devices)" = 1 ]
check "it can be created again" rdma link add es0 type efasim netdev lo
check "a knob unplugs es0" sh -c 'echo 1 > /sys/kernel/debug/efasim/es0/remove'
check "es0 is removed" wait_for 20 [ ! -e /sys/class/infiniband/es0 ]
check "es1 is deleted" rdma link delete es1

echo 300 > /sys/module/efasim/parameters/mtu
check "limits are taken at creation" rdma link add small type efasim netdev lo
check "the device with limits is deleted" rdma link delete small
echo 100 > /sys/module/efasim/parameters/mtu
refuse "an invalid limit is refused" rdma link add small type efasim netdev lo
check "the module is unloaded" modprobe -r efasim
