#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12
# more: stock-6.12
# full: test
# guests: 2
# mem: 1024M
# host-root: yes
# host-tools: rdma tc
# modules: sch_netem
# timeout: 3000
#
# Thousands of connections between two kernels over fabric efa and four completion queues: a message
# on each, connections that either side ends, a network that loses packets while connections are
# made, and devices that are removed.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

PARAM=/sys/module/kofi_crowd/parameters
SIM=/sys/kernel/debug/efasim/es0
SIDE=$([ "$ROLE" = a ] && echo server || echo client)
QUEUES=4

# The test kernel's checkers take most of the time, and of the memory.
case $(uname -r) in
*-kofi-test*) COUNT=1000 KILLS=200 ;;
*) COUNT=10000 KILLS=1000 ;;
esac
REMOVED=1000

meet()
{
	barrier "$1" > /dev/null || exit 1
}

at()
{
	at_side=$1
	shift
	[ "$at_side" != "$SIDE" ] || "$@"
}

add()
{
	host rdma link add es0 type efasim netdev eth0
}

run()
{
	echo "$*" > $PARAM/run
}

# told: what the module has logged since the last call
told()
{
	dmesg | sed -n 's/.*kofi_crowd: /# /p' | tail -n "${1:-1}"
}

# is PARAMETER NUMBER
is()
{
	[ "$(cat "$PARAM/$1")" = "$2" ]
}

qps()
{
	sed -n 's/^queue_pairs //p' $SIM/memory
}

few_qps()
{
	used=$(qps)
	note "$SIDE: $(cat $PARAM/live) connections with $used queue pairs"
	# The provider may have some of its own.
	[ "$used" -ge $QUEUES ] && [ "$used" -le $((QUEUES + 4)) ]
}

begin()
{
	meet "device-$1"
	at server check "a server: $1" modprobe kofi_crowd prov=efa queues=$QUEUES
	meet "server-$1"
	at client check "a client: $1" modprobe kofi_crowd prov=efa queues=$QUEUES peer="$a"
}

finish()
{
	meet "finish-$1"
	check "the $SIDE is unloaded: $1" rmmod kofi_crowd
	check "nothing is open: $1" wait_for 20 nothing_open
}

check "the soft device's module is loaded" modprobe efasim
check "a device is created" add
check "the provider is loaded" modprobe kofi_efa
a=$(ip_of a)

# --- many ---
begin many
at client check "$COUNT connections" run open $COUNT
at client told
meet many
at server check "the server has all of them" wait_for 60 is live $COUNT
check "the $SIDE shares queue pairs" few_qps
meet shared
at client check "a message on each" run echo
at client told
at client check "each has come back" is echoed $COUNT
at client check "$KILLS ends, with a connection after each" run kill $KILLS
at client told
at client check "all are closed" run close
meet closed
at server check "the server has closed all" wait_for 120 is live 0
meet drained

# --- a network that loses packets ---
at client check "packets are lost" host tc qdisc add dev eth0 root netem loss 30%
at client run open 100
at client note "with loss: $(cat $PARAM/live) of 100 connections"
at client check "no packets are lost" host tc qdisc del dev eth0 root
at client check "what there was is closed" run close
at client check "connections can be made again" wait_for 60 run open 100
at client check "with messages" run echo
at client check "these are closed, too" run close
finish many

# --- devices that are removed ---
for side in server client; do
	begin "$side"
	at client check "$REMOVED connections: $side" run open $REMOVED
	meet "on-$side"
	at server check "the server has them: $side" wait_for 60 is live $REMOVED
	meet "off-$side"
	at $side sh -c "echo 1 > $SIM/remove"
	at $side check "the $side's device is gone" wait_for 20 [ ! -e /sys/class/infiniband/es0 ]
	# The client notices ends when it runs a command.
	at client run close
	at server check "all connections have ended: $side" wait_for 120 is live 0
	finish "$side"
	at $side check "the device is created again" wait_for 20 add
done
begin again
at client check "connections after the devices have returned" run open 100
at client check "messages over them" run echo
finish again

meet end
check "the module for connections is unloaded" rmmod kofi_msg
check "what ULPs share is unloaded" rmmod kofi_cm kofi_ulp
check "the provider is unloaded" modprobe -r kofi_efa
check "the device is deleted" host rdma link delete es0
check "the soft device's module is unloaded" modprobe -r efasim
