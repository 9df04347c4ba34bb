#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1
# full: yes
# guests: 2
# host-root: yes
# host-tools: rdma
# timeout: 900
#
# pingpong between two kernels over the EFA provider and soft devices on a bad network: a whole
# run, a run by an IPv6 address, devices of either side that are removed during a run and come
# back, and modules that are unloaded at any time, also while devices are slow and a session is
# being set up.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

DIR=/sys/kernel/debug/kofi_pingpong
SIM=/sys/kernel/debug/efasim/es0
SESSIONS=/sys/kernel/debug/kofi_cm/sessions
SIDE=$([ "$ROLE" = a ] && echo server || echo client)
KNOBS="reorder delay duplicate drop rnr"

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

state()
{
	cat "$DIR/$SIDE/state" 2> /dev/null
}

# wait_while STATE SECONDS
wait_while()
{
	for _ in $(seq $(($2 * 10))); do
		[ "$(state)" = "$1" ] || return 0
		usleep 100000
	done
	echo "# still $1"
	return 1
}

# ended STATE: check that the client's run ends in this state
ended()
{
	wait_while waiting 20 && wait_while running 150 && [ "$(state)" = "$1" ] &&
		return 0
	cat "$DIR/client/results"
	return 1
}

# number WORDS: print the number before these words
number()
{
	sed -n "s/.*[ ,]*\b\([0-9][0-9]*\) $1.*/\1/p" "$DIR/$SIDE/results" | head -n 1
}

# limit WORD: print the number after this word
limit()
{
	sed -n "s/^longest .*\b$1 \([0-9]*\).*/\1/p" "$DIR/$SIDE/results"
}

server()
{
	check "a server at $1" modprobe kofi_pingpong role=server addr="$1" prov=efa
}

# client ADDRESS [PARAMETER...]
client()
{
	client_addr=$1
	shift
	check "a client of $client_addr" modprobe kofi_pingpong role=client \
		addr="$client_addr" prov=efa "$@"
}

forget()
{
	check "$1" rmmod kofi_pingpong
	check "nothing is open: $1" nothing_open
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

create()
{
	check "a device is created" add
	set_faults
}

# come_back: retry, as a name becomes free some time after its device has disappeared
come_back()
{
	check "a device is created again" wait_for 20 add
	set_faults
}

# unplug SIDE
unplug()
{
	at "$1" sh -c "echo 1 > $SIM/remove"
	at "$1" check "the $1's device is gone" wait_for 20 [ ! -e /sys/class/infiniband/es0 ]
}

waits()
{
	check "the server waits for the next client: $1" wait_for 40 is_waiting
	check "nothing is open at the server: $1" wait_for 5 nothing_open
}

is_waiting()
{
	[ "$(state)" = waiting ]
}

check "the soft device's module is loaded" modprobe efasim
create
check "the provider is loaded" modprobe kofi_efa
a=$(ip_of a)
meet loaded

# --- a whole run ---
whole()
{
	check "the run ends well" ended "done"
	sed 's/^/# /' "$DIR/client/results"
	for operation in send write read writedata; do
		longest=$(limit buffer)
		[ $operation != send ] || longest=$(limit message)
		check "$operation of 0 bytes" grep -q "^$operation  *0 " "$DIR/client/results"
		check "$operation of the limit" \
			grep -q "^$operation  *$longest " "$DIR/client/results"
	done
}

data()
{
	check "data was checked, $1" [ "$(number checked)" -gt 0 ]
	check "no byte was wrong, $1" [ "$(number bad)" = 0 ]
}

at server server "$a"
meet whole
at client client "$a" iterations=24 memory=128
at client whole
meet whole-ended
data "a whole run"
for knob in $KNOBS; do
	check "$knob did something" grep -q "^$knob [0-9]* [1-9]" $SIM/faults/injected
done
at client forget "after a whole run"
at server forget "the server, too"

# --- a server's IPv6 address ---
short()
{
	client "$1" iterations=24 sizes=0,100,5000
	check "the run ends well: $2" ended "done"
	data "$2"
	forget "$2"
}

at server server fd00::1
meet ipv6
at client short fd00::1 "by IPv6"
meet ipv6-ended
at server forget "the server of IPv6"

# --- fabric efa, with tags ---
tagged()
{
	client "$a" fabric=efa tagged=1 iterations=24
	check "the run with tags ends well" ended "done"
	sed 's/^/# /' "$DIR/client/results"
	check "the run used fabric efa" grep -q "^provider efa, fabric efa," "$DIR/client/results"
	check "the run used tags" grep -q "^longest .*, tagged$" "$DIR/client/results"
	check "a send of the limit with a tag" \
		grep -q "^send  *$(limit buffer) " "$DIR/client/results"
	data "with tags"
	forget "with tags"
}

at server check "a server with tags" modprobe kofi_pingpong role=server addr="$a" \
	prov=efa fabric=efa tagged=1
meet tagged
at client tagged
meet tagged-ended
at server forget "the server of tags"

# --- devices that are removed ---
disturbed()
{
	client "$a" iterations=1000000 sizes=64
	check "a long run has begun: $1" wait_while waiting 20
	sleep 1
}

fails()
{
	check "a removal ends the run: $1" ended failed
	grep '^error:' "$DIR/client/results"
	# The loss of a peer may be noticed before its last message.
	check "the error names the removal: $1" grep -q "^error: .*$2" "$DIR/client/results"
	forget "$1"
}

at server server "$a"
for side in server client; do
	word=$([ $side = client ] && echo device || echo "device\|connection reset")
	meet "before-$side"
	at client disturbed "$side"
	meet "on-$side"
	unplug "$side"
	at client fails "$side" "$word"
	at server waits "$side"
	meet "gone-$side"
	at "$side" come_back
	meet "back-$side"
	at client short "$a" "after the $side's device came back"
	meet "ended-$side"
	at server waits "$side came back"
done

# --- unloading at any time ---
for delay in 0 20000 100000 400000 1000000; do
	meet "unload-$delay"
	at client client "$a" iterations=100000 sizes=0,8000
	usleep $delay
	at client forget "the client after $delay us"
	at server waits "after $delay us"
done
meet unloaded
at client disturbed "the server's unloading"
meet unload-server
at server forget "the server in mid-run"
at client check "the client's run fails" ended failed
at client forget "after the server's unloading"

# --- unloading while a session is being set up, with slow devices ---
# slow MICROSECONDS: the longest time that a command of the device takes, as the next one does
slow()
{
	echo 31 > "$SIM/faults/seed"
	echo "$1" > "$SIM/faults/admin_delay_us"
}

# session STATE
session()
{
	grep -q " pingpong .*: $1," "$SESSIONS"
}

looks_for_server()
{
	session waiting || session connecting
}

# An address vector is closed before its domain.
domain_is_closing()
{
	objects=$(cat /sys/kernel/debug/kofi/objects)
	case $objects in
	*domain*) return 1 ;;
	*fabric*) return 0 ;;
	esac
	return 1
}

# unload: begin to unload
unload()
{
	rmmod kofi_pingpong &
	unloader=$!
}

unloaded()
{
	slow 1000
	check "unloaded: $1" wait "$unloader"
	check "nothing is open: $1" nothing_open
}

# While it closes its objects, a client still tries to reach the server.
close_slowly()
{
	client "$a" iterations=24
	check "the client looks for the server" wait_for 20 looks_for_server
	slow 3000000
	unload
	check "the client closes its domain" wait_for 90 domain_is_closing
	slow 10000000
}

be_accepted()
{
	check "the server accepts the client meanwhile" wait_for 20 session live
	check "the client still closes its domain" domain_is_closing
	unloaded "a client that was accepted too late"
}

at client close_slowly
meet closing
at server server "$a"
at client be_accepted
meet accepted
at server waits "a client was accepted too late"

# ask: a client of a server that opens its objects
ask()
{
	client "$a" iterations=24
	check "the client asks the server: $1" wait_for 20 session "auth sent"
}

for side in client server; do
	at server slow 1000000
	meet "ask-$side"
	at client ask "before the $side's unloading"
	meet "asked-$side"
	at server check "the server is being asked: $side" wait_for 5 session asked
	meet "seen-$side"
	at "$side" unload
	at "$side" unloaded "the $side, while the server opens its objects"
	meet "unloaded-$side"
	at server slow 1000
	[ $side = server ] || at server waits "the client was unloaded"
done
at client forget "the client of a server that was unloaded"

meet end
check "what ULPs share is unloaded" rmmod kofi_cm kofi_ulp
check "the provider is unloaded" modprobe -r kofi_efa
check "the device is deleted" host rdma link delete es0
check "the soft device's module is unloaded" modprobe -r efasim
