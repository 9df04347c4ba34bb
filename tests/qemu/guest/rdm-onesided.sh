#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# full: yes
# guests: 2
# host-root: yes
# host-tools: rdma
# timeout: 1200
#
# Reads and writes of fabric efa between two kernels, on soft devices on a bad network: by the
# devices, by packets, read by the target, and with an end that can't; a silent peer, devices that
# are removed in the middle, and regions that are closed in the middle.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

DIR=/sys/kernel/debug/kofi_pingpong
SIM=/sys/kernel/debug/efasim/es0
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
	wait_while waiting 20 && wait_while running 200 && [ "$(state)" = "$1" ] && return 0
	cat "$DIR/client/results"
	return 1
}

# number WORDS: print the number before these words
number()
{
	sed -n "s/.*[ ,]*\b\([0-9][0-9]*\) $1.*/\1/p" "$DIR/$SIDE/results" | head -n 1
}

# counter NAME: print a counter of the device
counter()
{
	awk -v name="$1" '$1 == name { print $2 }' $SIM/counters
}

server()
{
	check "a server" modprobe kofi_pingpong role=server addr="$a" prov=efa fabric=efa timeout=20
}

# client PARAMETER...
client()
{
	check "a client" modprobe kofi_pingpong role=client addr="$a" prov=efa fabric=efa \
		timeout=20 "$@"
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
	check "a device is created" wait_for 20 add
	set_faults
}

# able NONE|READ|ALL: have the provider use these operations of the device
able()
{
	echo "$1" > /sys/module/kofi_efa/parameters/rdma
	echo es0 > /sys/kernel/debug/kofi_efa/probe
}

unplug()
{
	echo 1 > $SIM/remove
	check "the device is gone" wait_for 20 [ ! -e /sys/class/infiniband/es0 ]
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

# used WHAT COUNTER BEFORE YES|NO: check whether the device has counted more than before
used()
{
	used_by=$(($(counter "$2") - $3))
	note "$1: $2 $used_by"
	if [ "$4" = yes ]; then
		check "$1: the device took part, $2" [ $used_by -gt 0 ]
	else
		check "$1: the device took no part, $2" [ $used_by = 0 ]
	fi
}

# run_all WHAT: all operations, whose data is checked
run_all()
{
	client iterations=8 sizes=0,1,500,8000,9000,70000,300000
	check "the run ends well: $1" ended "done"
	sed 's/^/# /' "$DIR/client/results"
	for operation in write read writedata; do
		check "$operation of 300000 bytes: $1" \
			grep -q "^$operation  *300000 " "$DIR/client/results"
	done
	check "data was checked: $1" [ "$(number checked)" -gt 0 ]
	check "no byte was wrong: $1" [ "$(number bad)" = 0 ]
	forget "$1"
}

# way SERVER'S-RDMA CLIENT'S-RDMA READS WRITES: whether the client's device reads and writes
way()
{
	way="RDMA $1 at the server, $2 at the client"
	at server able "$1"
	at client able "$2"
	reads=$(counter rdma_read_wrs) writes=$(counter rdma_write_wrs)
	at server server
	meet "way-$1-$2"
	at client run_all "$way"
	meet "way-$1-$2-ended"
	at client used "$way" rdma_read_wrs "$reads" "$3"
	at client used "$way" rdma_write_wrs "$writes" "$4"
	# The server reads long writes if it can read and one of the devices can't write.
	at server used "$way" rdma_read_wrs "$reads" "$([ "$1$2" = readread ] && echo yes || echo no)"
	at server forget "the server, $way"
}

# disturbed OPERATION SIZE: begin a run that takes long, as it has the size many times
disturbed()
{
	disturbed_sizes=$2
	for _ in $(seq 31); do
		disturbed_sizes=$disturbed_sizes,$2
	done
	client iterations=1000000 operations="$1" sizes="$disturbed_sizes"
	check "a long run has begun: $1 of $2 bytes" wait_while waiting 20
	sleep 1
}

# fails WHAT
fails()
{
	check "the run fails: $1" ended failed
	grep '^error:' "$DIR/client/results"
	forget "$1"
}

check "the soft device's module is loaded" modprobe efasim unresponsive_ms=3000
create
check "the provider is loaded" modprobe kofi_efa
check "the device was probed" wait_for 20 grep -q '^queue_pairs 0' $SIM/memory
a=$(ip_of a)
meet loaded

way all all yes yes
way none none no no
way read read yes no
way all none no no
way none all no no
for knob in $KNOBS; do
	check "$knob did something" grep -q "^$knob [0-9]* [1-9]" $SIM/faults/injected
done

# --- a peer that falls silent ---
# silent RDMA OPERATION SIZE
silent()
{
	able "$1"
	at server server
	meet "silent-$1-$2"
	at client disturbed "$2" "$3"
	meet "silent-$1-$2-on"
	at server sh -c "echo 1 > $SIM/faults/unresponsive"
	at client fails "the server is silent, $2 of $3 bytes, RDMA $1"
	meet "silent-$1-$2-failed"
	at server sh -c "echo 0 > $SIM/faults/unresponsive"
	at server waits "after silence"
	at server forget "the server, after silence"
}

silent none read 20000
silent none write 500
silent all write 20000
silent all read 100

# --- devices that are removed ---
# removal SIDE RDMA OPERATION SIZE
removal()
{
	able "$2"
	at server server
	meet "removal-$1-$3"
	at client disturbed "$3" "$4"
	meet "removal-$1-$3-on"
	at "$1" unplug
	at client fails "the $1's device is removed, $3 of $4 bytes, RDMA $2"
	at server waits "the $1's device is removed"
	meet "removal-$1-$3-gone"
	at "$1" create
	at "$1" check "the device was probed" wait_for 20 grep -q '^queue_pairs 0' $SIM/memory
	at server forget "the server, after a removal"
	meet "removal-$1-$3-ended"
}

removal server none write 20000
removal client none read 20000
removal server all read 20000
removal client all write 500

# --- regions that are closed while the peer reads and writes them ---
able none
for operation in write read writedata; do
	at server server
	meet "close-$operation"
	at client disturbed $operation 20000
	meet "close-$operation-on"
	at server forget "the server in the middle of $operation"
	at client fails "the server ends in the middle of $operation"
	meet "close-$operation-ended"
done
way none none no no

meet end
check "what ULPs share is unloaded" rmmod kofi_cm kofi_ulp
check "the provider is unloaded" modprobe -r kofi_efa
check "the device is deleted" host rdma link delete es0
check "the soft device's module is unloaded" modprobe -r efasim
