#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# more: yes
# guests: 2
# host-root: yes
# host-tools: rdma
# timeout: 600
#
# pingpong with datagrams between two kernels over the EFA provider and soft devices: on a good
# network with each prefix that a device may have, and on one that drops, repeats, delays and
# reorders them.
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

# number WORDS: print the number before these words
number()
{
	sed -n "s/.*[ ,]*\b\([0-9][0-9]*\) $1.*/\1/p" "$DIR/$SIDE/results" | head -n 1
}

# over: the client's run has ended
over()
{
	case $(cat $DIR/client/state) in
	"done"|failed) ;;
	*) return 1 ;;
	esac
}

# run NAME PARAMETER...: run the client
run()
{
	run_name=$1
	shift
	check "a client, $run_name" modprobe kofi_pingpong role=client addr="$a" prov=efa "$@"
	check "the run ends, $run_name" wait_for 150 over
	sed 's/^/# /' $DIR/client/results
}

# well NAME PARAMETER...: the same, with results that are as they should be
well()
{
	run "$@"
	check "the run ends well, $1" [ "$(cat $DIR/client/state)" = "done" ]
	check "data was checked, $1" [ "$(number checked)" -gt 0 ]
	check "no byte was wrong, $1" [ "$(number bad)" = 0 ]
}

# longest: the results have a datagram of no bytes, and one of the limit
longest()
{
	limit=$(sed -n 's/^longest message \([0-9]*\).*/\1/p' $DIR/client/results)
	check "the limit is the device's" [ "$limit" -gt 8000 ]
	check "a datagram of 0 bytes" grep -q "^send  *0 " $DIR/client/results
	check "a datagram of the limit" grep -q "^send  *$limit " $DIR/client/results
	check "the run used fabric efa" grep -q "^provider efa, fabric efa," $DIR/client/results
}

serve()
{
	check "a server" modprobe kofi_pingpong role=server addr="$a" prov=efa "$@"
}

forget()
{
	check "$1" rmmod kofi_pingpong
	check "nothing is open: $1" wait_for 5 nothing_open
}

check "the soft device's module is loaded" modprobe efasim
check "a device is created" host rdma link add es0 type efasim netdev eth0
check "the provider is loaded" modprobe kofi_efa
a=$(ip_of a)

# --- what a device writes in front of a datagram ---
for room in 40 0; do
	echo $room > $SIM/faults/ud_header
	echo es0 > /sys/kernel/debug/kofi_efa/probe
	meet "room-$room"
	at server serve dgram=1
	meet "server-$room"
	at client well "$room bytes in front" dgram=1 iterations=16 memory=256
	at client longest
	meet "ended-$room"
	at client forget "with $room bytes in front"
	meet "client-$room"
	at server forget "the server, with $room bytes in front"
done
# A device with anything else isn't used for datagrams.
echo 16 > $SIM/faults/ud_header
echo es0 > /sys/kernel/debug/kofi_efa/probe
at client run "16 bytes in front" dgram=1
at client check "there are no datagrams" grep -q "no fabric with DGRAM endpoints" $DIR/client/results
at client forget "with 16 bytes in front"
echo 40 > $SIM/faults/ud_header
echo es0 > /sys/kernel/debug/kofi_efa/probe

# --- a bad network ---
while read -r setting; do
	echo "${setting#* }" > "$SIM/faults/${setting% *}"
done << END
seed 7
reorder 100
delay 50
duplicate 50
drop 50
END
meet bad
at server serve dgram=1
meet bad-server
at client well "a bad network" dgram=1 iterations=40 sizes=0,8,1000,8900 memory=256
meet bad-ended
check "datagrams were lost" [ "$(number lost)" -gt 0 ]
check "datagrams were repeated or late" [ "$(number "late or repeated")" -gt 0 ]
check "no byte was wrong" [ "$(number bad)" = 0 ]
for knob in reorder delay duplicate drop; do
	check "$knob did something" grep -q "^$knob [0-9]* [1-9]" $SIM/faults/injected
done
meet bad-checked
at client forget "after a bad network"

# --- another type of endpoint ---
at client run "reliable messages" iterations=8 sizes=64 timeout=3
at client check "it can't reach the server of datagrams" [ "$(cat $DIR/client/state)" = failed ]
at client forget "reliable messages"
meet other
at server forget "the server"

meet end
check "what ULPs share is unloaded" rmmod kofi_cm kofi_ulp
check "the provider is unloaded" modprobe -r kofi_efa
check "the device is deleted" host rdma link delete es0
check "the soft device's module is unloaded" modprobe -r efasim
