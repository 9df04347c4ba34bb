#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1
# more: stock-6.12
# full: test stock-6.1
# host-root: yes
# host-tools: python3
# timeout: 550
#
# Both sides of pingpong in one kernel, over the loopback provider: a whole run, then runs that
# are disturbed by removal of the device, by unloading, and by hostile peers.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

DIR=/sys/kernel/debug/kofi_pingpong

# state SIDE
state()
{
	cat "$DIR/$1/state" 2> /dev/null
}

# wait_while SIDE STATE SECONDS
wait_while()
{
	for _ in $(seq $(($3 * 10))); do
		[ "$(state "$1")" = "$2" ] || return 0
		usleep 100000
	done
	echo "# still $2"
	return 1
}

# ended STATE: check that the client's run ends in this state
ended()
{
	wait_while client waiting 20 && wait_while client running 150 &&
		[ "$(state client)" = "$1" ]
}

# number SIDE WORD: print the number before the word
number()
{
	sed -n "s/.*[ ,]*\b\([0-9][0-9]*\) $2.*/\1/p" "$DIR/$1/results" | head -n 1
}

was_refused()
{
	grep -q '^proto [1-9]' /sys/kernel/debug/kofi_cm/counters
}

check "the loopback provider is loaded" modprobe kofi_loop

# --- a whole run ---
check "both sides start" modprobe kofi_pingpong prov=loop iterations=40
check "the run ends well" ended "done"
sed 's/^/# /' "$DIR/client/results"
for operation in send write read writedata; do
	check "$operation of 0 bytes" grep -q "^$operation  *0 " "$DIR/client/results"
	check "$operation of the limit" grep -q "^$operation  *1048576 " "$DIR/client/results"
done
check "data was checked" [ "$(number client checked)" -gt 0 ]
check "data was checked at the server" [ "$(number server checked)" -gt 0 ]
check "no byte was wrong" [ "$(number client bad)" = 0 ]
check "no byte was wrong at the server" [ "$(number server bad)" = 0 ]
check "the JSON names the state" grep -q '"state": "done"' "$DIR/client/results.json"
check "the module is unloaded" rmmod kofi_pingpong

# --- a test of writes that takes longer than the timeout ---
check "both sides start with a short timeout" modprobe kofi_pingpong prov=loop timeout=3 \
	iterations=30000 operations=write sizes=0
check "the run ends well with a short timeout" ended "done"
grep "^error\|^write" "$DIR/client/results"
check "the module is unloaded with a short timeout" rmmod kofi_pingpong

# --- the device goes away in the middle, and the server lives on ---
modprobe kofi_pingpong prov=loop domain=loop1 iterations=1000000 sizes=64
check "a long run has begun" wait_while client waiting 20
usleep 500000
echo 0 > /sys/kernel/debug/kofi_loop/loop1/present
check "a removal ends the run" ended failed
grep error: "$DIR/client/results"
# The error is that of the device; or the server loses the device first, and then outstanding
# operations fail, posts find no peer, or the server reports its failure.
why='device\|endpoint went away\|host unreachable\|because it failed'
check "the error names the removal" grep -q "^error: .*\($why\)" "$DIR/client/results"
check "the server waits for the next client" wait_while server running 20
echo 1 > /sys/kernel/debug/kofi_loop/loop1/present
check "nothing is left open" nothing_open
check "the module is unloaded after a removal" rmmod kofi_pingpong

# --- connections ---
check "both sides start, connected" modprobe kofi_pingpong prov=loop connected=1 iterations=40
check "the run ends well, connected" ended "done"
sed 's/^/# /' "$DIR/client/results"
check "the results say so" grep -q "^longest .*, connected$" "$DIR/client/results"
check "a send of 0 bytes, connected" grep -q "^send  *0 " "$DIR/client/results"
check "a send of the limit, connected" grep -q "^send  *1048576 " "$DIR/client/results"
check "a write of the limit, connected" grep -q "^write  *1048576 " "$DIR/client/results"
check "a read of the limit, connected" grep -q "^read  *1048576 " "$DIR/client/results"
check "writes with data, connected" grep -q "^writedata " "$DIR/client/results"
check "data was checked, connected" [ "$(number client checked)" -gt 0 ]
check "no byte was wrong, connected" [ "$(number client bad)" = 0 ]
check "no byte was wrong at the server, connected" [ "$(number server bad)" = 0 ]
check "the module is unloaded, connected" rmmod kofi_pingpong
check "nothing is left open, connected" nothing_open
check "the module for connections is unloaded" rmmod kofi_msg

modprobe kofi_pingpong prov=loop domain=loop1 connected=1 iterations=1000000 sizes=64
check "a long run has begun, connected" wait_while client waiting 20
usleep 500000
echo 0 > /sys/kernel/debug/kofi_loop/loop1/present
check "a removal ends the run, connected" ended failed
grep error: "$DIR/client/results"
check "the server waits for the next client, connected" wait_while server running 20
echo 1 > /sys/kernel/debug/kofi_loop/loop1/present
check "the module is unloaded after a removal, connected" rmmod kofi_pingpong
check "nothing is left open after it, connected" nothing_open

for delay in 0 10000 50000 200000; do
	check "loaded for $delay us, connected" modprobe kofi_pingpong prov=loop connected=1 \
		iterations=100000 sizes=0,65536
	usleep $delay
	check "unloaded after $delay us, connected" rmmod kofi_pingpong
	check "nothing is open, $delay us, connected" nothing_open
done
check "the module for connections is unloaded again" rmmod kofi_msg

# --- hostile clients ---
listens()
{
	nc 127.0.0.1 7471 < /dev/null > /dev/null 2>&1
}

# hostile CASE
hostile()
{
	host python3 - "$1" 127.0.0.1 7471 < /bed/guest/pingpong-hostile.py
}

check "the module is loaded as server only" modprobe kofi_pingpong prov=loop role=server timeout=5
check "the server listens" wait_for 10 listens
head -c 4096 /dev/urandom | nc -w 2 127.0.0.1 7471 > /dev/null 2>&1
check "garbage is refused" wait_for 20 was_refused
check "no session is left" wait_while server running 20
check "nothing is open after it" nothing_open
check "the module is unloaded after garbage" rmmod kofi_pingpong

check "the module is loaded as server again" modprobe kofi_pingpong prov=loop role=server
check "the server listens again" wait_for 10 listens
check "too many messages end a session" hostile notes
check "the server waits for the next client again" wait_while server running 20
check "the messages were counted" [ "$(number server refused)" -gt 0 ]
check "nothing is open after too many messages" nothing_open
check "the module is unloaded after too many messages" rmmod kofi_pingpong

# --- hostile servers ---
for case in memory guard; do
	hostile $case &
	server=$!
	check "the module is loaded as client only: $case" modprobe kofi_pingpong prov=loop role=client
	check "the client refuses a server without memory: $case" wait $server
	check "the module is unloaded after such a server: $case" rmmod kofi_pingpong
	check "nothing is open after such a server: $case" nothing_open
done

# --- unloading at any time ---
for delay in 0 10000 50000 200000 700000; do
	check "loaded for $delay us" \
		modprobe kofi_pingpong prov=loop iterations=100000 sizes=0,65536
	usleep $delay
	check "unloaded after $delay us" rmmod kofi_pingpong
	check "nothing is open, $delay us" nothing_open
done

# --- invalid configurations ---
refuse "an unknown role is refused" modprobe kofi_pingpong role=observer
refuse "0 iterations are refused" modprobe kofi_pingpong iterations=0
refuse "an unknown operation is refused" modprobe kofi_pingpong operations=write,wrote
refuse "tags of connections are refused" modprobe kofi_pingpong connected=1 tagged=1
check "the module is loaded with an unknown provider" modprobe kofi_pingpong prov=nosuch timeout=2
check "the run fails" ended failed
check "the module is unloaded without a provider" rmmod kofi_pingpong
