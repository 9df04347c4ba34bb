#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# full: yes
# host-root: yes
# host-tools: rdma ip tc
# modules: dummy veth sch_netem
# kmemleak: yes
# timeout: 600
#
# Faults of the network below a soft device, under traffic: full sockets, a link that is down,
# a lost carrier, removal of the netdev. es0 is on v0; es1 is at the other end of the cable on
# v1, in its own namespace.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

TEST=/sys/kernel/debug/efa_verbs_conformance
SIM=/sys/kernel/debug/efasim
PARAMETERS=/sys/module/efasim/parameters
# Time after which a peer is given up, in ms: for cases that expect it, and for cases in which
# no peer must be given up.
SILENCE=2000
PATIENCE=20000

there()
{
	host ip netns exec n1 "$@"
}

# wait_for COMMAND...: retry it for 20 s
wait_for()
{
	for _ in $(seq 200); do
		"$@" 2> /dev/null && return
		usleep 100000
	done
	return 1
}

counter()
{
	sed -n "s/^$2 //p" "$SIM/$1/counters"
}

gid()
{
	cat "/sys/class/infiniband/$1/ports/1/gids/0"
}

cable()
{
	host ip link add v0 type veth peer name v1
	host ip link set v1 netns n1
	host ip address add 10.8.0.1/24 dev v0
	there ip address add 10.8.0.2/24 dev v1
	host ip link set v0 mtu 9000 up
	there ip link set v1 mtu 9000 up
}

devices()
{
	check "es0 is created" host rdma link add es0 type efasim netdev v0
	check "es1 is created" there rdma link add es1 type efasim netdev v1
}

meet()
{
	echo es1 > $TEST/serve
	TARGET=$(cat $TEST/serve)
	gid es0 > $TEST/peer
}

# run CASE: run it from es0 to es1's server
run()
{
	echo "es0 $TARGET $1" > $TEST/run
	grep "^#" $TEST/results
	grep -q "^ok .* $1" $TEST/results
}

# status: print the status of a message
status()
{
	run one | sed -n 's/^# status //p'
}

# expect_status DESCRIPTION STATUS
expect_status()
{
	expect_got=$(status)
	check "$1: status $expect_got" [ "$expect_got" = "$2" ]
}

# patience MS: create both devices anew with this time-out for peers
patience()
{
	echo "$1" > $PARAMETERS/unresponsive_ms
	echo stop > $TEST/serve
	check "es0 is deleted, to set the time-out to $1 ms" host rdma link delete es0
	check "es1 is deleted, to set the time-out to $1 ms" host rdma link delete es1
	devices
	meet
}

gone()
{
	for device in "$@"; do
		[ ! -e "/sys/class/infiniband/$device" ] || return 1
	done
}

no_devices()
{
	[ -z "$(ls /sys/class/infiniband)" ]
}

modprobe efasim unresponsive_ms=$PATIENCE udp_only=1
modprobe efa_verbs_conformance messages=2000
host ip netns add n1
cable

# A small buffer fills up the receiver's socket. Packets that wait for the hardware address of
# an absent host fill up the sender's.
echo 20000 > $PARAMETERS/sock_buf
devices
meet
check "messages pass sockets with buffers for two packets" run remote_messages
check "RDMA passes sockets with buffers for two packets" run remote_rdma
drops=$(($(counter es0 sock_drops) + $(counter es1 sock_drops)))
check "a receiver's socket dropped packets: $drops" [ $drops -gt 0 ]
patience $SILENCE
TARGET=fe80::baae:0:ffff:a08:63/1/1/1/1
refuse "RDMA to an absent peer fails" run remote_rdma
check "RDMA to an absent peer ends with status 15" grep -q "(got 15)" $TEST/results
check "the sender's socket refused packets: $(counter es0 sock_errors)" [ "$(counter es0 sock_errors)" -gt 0 ]
echo stop > $TEST/serve
check "es0 is deleted" host rdma link delete es0
check "es1 is deleted" host rdma link delete es1
echo 8388608 > $PARAMETERS/sock_buf
echo $PATIENCE > $PARAMETERS/unresponsive_ms

# A very bad network.
devices
meet
host tc qdisc add dev v0 root netem delay 1ms 1ms loss 5% duplicate 5% reorder 20%
there tc qdisc add dev v1 root netem delay 1ms 1ms loss 5% duplicate 5% corrupt 1%
check "messages pass a bad network" run remote_messages
check "RDMA passes a bad network" run remote_rdma
host tc qdisc del dev v0 root
there tc qdisc del dev v1 root

heard()
{
	ping -c 1 -W 1 10.8.0.2 > /dev/null
}

# After an outage it may take a second each until a queue is released and until a hardware
# address is requested again. A time-out of two seconds would be too short for that.
network_is_back()
{
	check "the network works again" wait_for heard
}

carrier()
{
	[ "$(cat /sys/class/net/v0/carrier)" = 1 ]
}

# break_it: start traffic, so that the caller breaks the network during it
break_it()
{
	run remote_messages > /dev/null &
	break_pid=$!
	usleep 300000
}

# ended DESCRIPTION: check that the run has ended by itself, with an error
ended()
{
	wait $break_pid
	check "$1: traffic ends with status 13" grep -q "vendor_err, 0 (got 13)\|vendor_err == 0 (got 13)" $TEST/results
}

# An outage shorter than the time-out isn't noticed.
meet
break_it
ip link set v0 down
usleep 300000
ip link set v0 up
wait $break_pid
grep "^#" $TEST/results
check "traffic survives a short outage" grep -q "^ok .* remote_messages" $TEST/results

patience $SILENCE
echo 200000 > /sys/module/efa_verbs_conformance/parameters/messages
break_it
host ip link set v0 down
ended "es0's link is set down"
expect_status "es0's link is still down" 13
check "sock_errors counts what can't be sent" [ "$(counter es0 sock_errors)" -gt 0 ]
host ip link set v0 up
network_is_back
expect_status "es0's link is up again" 0

break_it
there ip link set v1 down
ended "es1's link is set down"
check "es0's netdev has no carrier" [ "$(cat /sys/class/net/v0/carrier)" = 0 ]
there ip link set v1 up
check "es0's netdev has a carrier again" wait_for carrier
network_is_back
expect_status "es1's link is up again" 0

# The netdev is removed, with open queue pairs and traffic.
for round in 1 2; do
	meet
	break_it
	host ip link del v0
	check "round $round: both devices are removed with their netdevs" wait_for gone es0 es1
	wait $break_pid
	check "round $round: the netdevs are removed" [ ! -e /sys/class/net/v0 ]
	cable
	network_is_back
	devices
	meet
	expect_status "round $round: new devices work" 0
done

# The same by an administrator, while both work: the test releases it when its run has ended.
echo 2000 > /sys/module/efa_verbs_conformance/parameters/messages
meet
break_it
host rdma link delete es0
check "es0 is deleted under traffic" gone es0
wait $break_pid
echo stop > $TEST/serve
check "es1 is deleted" host rdma link delete es1

# A netdev that leaves its namespace, which ends while the device is in use: the device
# lets go of the namespace at once, and goes when its users do.
sockets()
{
	host ip netns exec n2 cat /proc/net/udp | grep -c :
}
for round in 1 2 3; do
	host ip netns add n2
	host ip link add d0 type dummy
	host ip link set d0 netns n2
	host ip netns exec n2 ip address add 10.6.0.1/24 dev d0
	host ip netns exec n2 ip link set d0 up
	host ip netns exec n2 rdma link add es2 type efasim netdev d0
	check "round $round: the device has a socket in its namespace" [ "$(sockets)" = 1 ]
	echo "es2 es2 many_messages" > $TEST/run &
	break_pid=$!
	usleep 100000
	host ip netns exec n2 ip link set d0 netns 1
	check "round $round: the device has no socket after its netdev has left" [ "$(sockets)" = 0 ]
	host ip netns del n2
	wait "$break_pid"
	check "round $round: the device is removed" wait_for gone es2
	ip link del d0
done

# Netdevs that go while devices are being made: none may hold the other for ever.
for round in $(seq 10); do
	host ip link add d0 type dummy
	host ip address add 10.7.0.1/24 dev d0
	host rdma link add "es$round" type efasim netdev d0 2> /dev/null &
	host ip link del d0
	wait "$!"
done
check "no device is left" wait_for no_devices
check "no netdev is left" [ ! -e /sys/class/net/d0 ]
host ip link del v0
host ip netns del n1
