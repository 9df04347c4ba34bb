#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12
# more: test
# full: stock-6.12
# guests: 2
# host-root: yes
# host-tools: rdma python3
# mem: 1G
# timeout: 300
#
# Soft devices of two kernels: messages, RDMA, network faults, a peer that falls silent, one
# that restarts, an absent one, and hostile datagrams.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

TEST=/sys/kernel/debug/efa_verbs_conformance
SIM=/sys/kernel/debug/efasim/es0
PORT=47790

counter()
{
	while read -r name value; do
		[ "$name" = "$1" ] && echo "$value"
	done < $SIM/counters
}

counted()
{
	[ "$(counter "$1")" -gt 0 ]
}

# injected KNOB: check that the fault was injected
injected()
{
	grep -q "^$1 [0-9]* [1-9]" $SIM/faults/injected
}

faults()
{
	for setting in "$@"; do
		echo "${setting#*=}" > "$SIM/faults/${setting%%=*}"
	done
}

# run WHAT: run every case with TARGET, and print its TAP lines
run()
{
	check "$1: begun" sh -c "echo 'es0 $TARGET' > $TEST/run"
	tap "$1" $TEST/results
}

create()
{
	host rdma link add es0 type efasim netdev eth0
	cat /sys/class/infiniband/es0/ports/1/gids/0
}

# meet NAME: start b's server for a's next runs, and set TARGET in a
meet()
{
	[ "$ROLE" = a ] || echo es0 > $TEST/serve
	meet_gid=$(cat /sys/class/infiniband/es0/ports/1/gids/0)
	meet_served=$([ "$ROLE" = a ] || cat $TEST/serve)
	meet_values=$(barrier "$1" "${meet_served:-$meet_gid}")
	[ "$ROLE" = a ] || echo "${meet_values%% *}" > $TEST/peer
	TARGET=${meet_values##* }
	barrier "$1-met" > /dev/null
}

# status_of_one: print the status of a single message to TARGET
status_of_one()
{
	echo "es0 $TARGET one" > $TEST/run
	while read -r hash word value; do
		[ "$hash $word" = "# status" ] && echo "$value"
	done < $TEST/results
}

# restart: remove and add this guest's device
restart()
{
	echo stop > $TEST/serve
	host rdma link delete es0
	create > /dev/null
}

# A time-out for peers that is long enough for a slow, busy host.
modprobe efasim unresponsive_ms=60000
modprobe efa_verbs_conformance messages="$(at_length && echo 3000 || echo 500)"
create > /dev/null
faults seed=42

meet plain
if [ "$ROLE" = a ]; then
	run plain
fi
barrier plain-done > /dev/null

meet faulty
faults reorder=200 duplicate=50 drop=20 delay=50 rnr=20 no_memory=30
if [ "$ROLE" = a ]; then
	run "with faults"
	check "packets were sent again" counted retrans_pkts
	for knob in reorder duplicate drop delay no_memory; do
		check "$knob did something" injected $knob
	done
fi
barrier faulty-done > /dev/null
if [ "$ROLE" = b ]; then
	check "copies were recognised" counted rx_duplicates
	check "rnr did something" injected rnr
fi
faults reorder=100 duplicate=0 drop=0 delay=0 rnr=0 no_memory=0

# Messages to a peer that restarted go to its new incarnation.
barrier restart > /dev/null
former=$TARGET
[ "$ROLE" = a ] || restart
meet again
if [ "$ROLE" = a ]; then
	check "the new life of a peer answers at once" [ "$(status_of_one)" = 0 ]
	check "the restart is counted" [ "$(counter peer_restarts)" = 1 ]
	TARGET=$former
	check "a queue pair of its former life: status 9" [ "$(status_of_one)" = 9 ]
fi
barrier again-done > /dev/null

# Active work with its old incarnation ends.
meet cut
[ "$ROLE" = a ] || faults rnr=1000
barrier cut-now > /dev/null
if [ "$ROLE" = a ]; then
	check "a peer that restarted in mid-operation: status 8" [ "$(status_of_one)" = 8 ]
	check "the second restart is counted" [ "$(counter peer_restarts)" = 2 ]
else
	check "a's message finds no receive" wait_for 20 injected rnr
	faults unresponsive=1
	restart
fi
meet uncut
[ "$ROLE" = b ] || check "the restarted peer answers" [ "$(status_of_one)" = 0 ]

# Hostile datagrams, which b sends to a.
barrier shoot > /dev/null
if [ "$ROLE" = b ]; then
	check "shots" host python3 - "$(ip_of a)" $PORT < /bed/guest/efasim-shoot.py
fi
barrier shot > /dev/null
if [ "$ROLE" = a ]; then
	for name in short magic version type flags length field source; do
		check "wire_$name is counted" wait_for 20 counted wire_$name
	done
fi
meet after
[ "$ROLE" = b ] || check "the device has survived" [ "$(status_of_one)" = 0 ]
barrier survived > /dev/null

# The device's netdev goes down, and up again.
if [ "$ROLE" = b ]; then
	ip link set eth0 down
	sleep 1
	ip link set eth0 up
fi
barrier up > /dev/null
[ "$ROLE" = b ] || check "the peer answers after its link was down" [ "$(status_of_one)" = 0 ]
note "$(tr '\n' ' ' < $SIM/counters)"

# A silent and an absent peer: with the long time-out both take long. From here on a's device
# has a shorter one.
silence()
{
	barrier hush > /dev/null
	if [ "$ROLE" = a ]; then
		echo 12000 > /sys/module/efasim/parameters/unresponsive_ms
		restart
	fi
	meet silent
	[ "$ROLE" = b ] || check "a peer that answers" [ "$(status_of_one)" = 0 ]
	barrier silent-begin > /dev/null
	[ "$ROLE" = a ] || faults unresponsive=1
	barrier silent-now > /dev/null
	if [ "$ROLE" = a ]; then
		check "a peer that fell silent: status 13" [ "$(status_of_one)" = 13 ]
		check "the event is counted" counted unresponsive_remote_events
	fi
	barrier silent-done > /dev/null
	[ "$ROLE" = a ] || faults unresponsive=0
	barrier silent-over > /dev/null
	if [ "$ROLE" = a ]; then
		check "the silent peer answers again" [ "$(status_of_one)" = 0 ]
		TARGET=fe80::baae:0:ffff:a00:63/1/1/1/1
		check "absent peer: status 15" [ "$(status_of_one)" = 15 ]
	fi
}

if at_length; then
	silence
fi
barrier finished > /dev/null
echo stop > $TEST/serve
check "delete" host rdma link delete es0
