#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1
# more: test
# full: stock-6.12 stock-6.1
# guests: 2
# host-root: yes
# host-tools: rdma
# timeout: 900
#
# Connections between two kernels over fabric efa and soft devices on a bad network: the sample and
# pingpong, devices of either side that are removed, and modules that are unloaded at any time.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

DIR=/sys/kernel/debug/kofi_pingpong
SIM=/sys/kernel/debug/efasim/es0
SIDE=$([ "$ROLE" = a ] && echo server || echo client)

# meet NAME: wait for the other guest
meet()
{
	barrier "$1" > /dev/null || exit 1
}

# at SERVER-OR-CLIENT COMMAND...: run it only there
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

set_faults()
{
	while read -r setting; do
		echo "${setting#* }" > "$SIM/faults/${setting% *}"
	done << END
seed 7
reorder 200
delay 20
duplicate 30
drop 10
rnr 30
END
}

# back NUMBER: so many messages have come back, and are right
back()
{
	dmesg | grep -q "kofi_mirror: $1 messages came back, 0 of them wrong"
}

# forget MODULE TEXT
forget()
{
	check "$1 is unloaded, $2" rmmod "$1"
	check "nothing is open, $2" wait_for 10 nothing_open
}

# state STATE: the client's run of pingpong is in this state
state()
{
	[ "$(cat $DIR/client/state)" = "$1" ]
}

begun()
{
	[ "$(cat $DIR/client/state)" != waiting ]
}

over()
{
	state "done" || state failed
}

client()
{
	check "a client of pingpong" modprobe kofi_pingpong role=client addr="$a" prov=efa \
		connected=1 "$@"
}

check "the soft device's module is loaded" modprobe efasim
check "a device is created" add
set_faults
check "the provider is loaded" modprobe kofi_efa
a=$(ip_of a)

# --- the sample ---
at server check "a mirror" modprobe kofi_mirror prov=efa
meet mirror
at client check "a client of the mirror" modprobe kofi_mirror prov=efa peer="$a" count=2000
at client check "all messages come back" wait_for 120 back 2000
at client forget kofi_mirror "after a whole run"
# The server still serves after clients that end at any time.
for delay in 0 20000 100000 400000; do
	at client check "a client for $delay us" modprobe kofi_mirror prov=efa peer="$a" \
		count=1000000
	at client usleep $delay
	at client forget kofi_mirror "after $delay us"
done
at client check "another client of the mirror" modprobe kofi_mirror prov=efa peer="$a" count=500
at client check "all messages come back again" wait_for 120 back 500
meet mirror-served
at server forget kofi_mirror "while a client has a connection"
meet mirror-unloaded
at client forget kofi_mirror "after the server has gone"

# --- pingpong ---
at server check "a server of pingpong" modprobe kofi_pingpong role=server addr="$a" prov=efa \
	connected=1
meet pingpong
whole()
{
	client iterations=24 memory=128
	check "the run ends" wait_for 200 over
	sed 's/^/# /' $DIR/client/results
	check "the run ends well" state "done"
	check "the run used fabric efa" grep -q "^provider efa, fabric efa," $DIR/client/results
	check "the run used connections" grep -q "^longest .*, connected$" $DIR/client/results
	forget kofi_pingpong "after $1"
}
at client whole "a whole run"
meet whole

# --- devices that are removed ---
for side in server client; do
	at client client iterations=1000000 sizes=64
	at client check "a long run has begun: $side" wait_for 30 begun
	at client sleep 1
	meet "on-$side"
	at $side sh -c "echo 1 > $SIM/remove"
	at $side check "the $side's device is gone" wait_for 20 [ ! -e /sys/class/infiniband/es0 ]
	at client check "the run ends: $side" wait_for 60 over
	at client grep "^error:" $DIR/client/results
	at client check "the run has failed: $side" state failed
	at client forget kofi_pingpong "after removal of the $side's device"
	at $side check "the device is created again" wait_for 20 add
	at $side set_faults
	meet "back-$side"
	at client whole "return of the $side's device"
	meet "ended-$side"
done
at server forget kofi_pingpong "the server"

meet end
check "the module for connections is unloaded" rmmod kofi_msg
check "what ULPs share is unloaded" rmmod kofi_cm kofi_ulp
check "the provider is unloaded" modprobe -r kofi_efa
check "the device is deleted" host rdma link delete es0
check "the soft device's module is unloaded" modprobe -r efasim
