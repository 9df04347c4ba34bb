#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# full: test
# host-root: yes
# host-tools: rdma
# mem: 3G
# timeout: 420
# kmemleak: yes
#
# 16 messages of 1 MiB at a time by fabric efa, between two endpoints, mixed with short ones
# of 8 more threads; of both kinds some have their receive come late. Every byte is checked. The
# network does one thing after the other, and the device has few regions; each sub-protocol is
# taken, and what the device had before it has after.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

SIM=/sys/kernel/debug/efasim/es0
EFA=/sys/kernel/debug/kofi_efa/es0
TYPES="EAGER_TAGRTM MEDIUM_TAGRTM LONGCTS_TAGRTM CTS CTSDATA DC_EAGER_TAGRTM DC_MEDIUM_TAGRTM
DC_LONGCTS_TAGRTM RECEIPT LONGREAD_TAGRTM EOR"

# How long each takes, and how long messages are: rdm-soak-full has two minutes, and 4 MiB.
SECONDS_EACH=${SECONDS_EACH:-4}
MAX_LEN=${MAX_LEN:-1048576}

# sum LINE WORD: the figure behind the word in such lines, of all endpoints
sum()
{
	awk -v line="$1" -v word="$2" '$1 == line {
		for (i = 1; i < NF; i++) if ($i == word) n += $(i + 1) } END { print n + 0 }' "$EFA"
}

# missing: types of packets that no endpoint has sent yet
missing()
{
	for type in $TYPES; do
		[ "$(sum sent "$type")" -gt 0 ] || echo "$type"
	done
}

all_seen()
{
	[ -z "$(missing)" ]
}

# What the device has, but for what is under way.
device_has()
{
	grep -E '^(queue_pairs|completion_queues|regions|handles) ' $SIM/memory | tr '\n' ' '
}

report()
{
	dmesg | grep 'kofi_soak:' | tail -n 1 | sed 's/.*kofi_soak: //'
}

# taken: packets that all endpoints have received so far, and messages that they have read
taken()
{
	awk '$1 == "received" { for (i = 3; i <= NF; i += 2) n += $i }
		$1 == "sources" { for (i = 1; i < NF; i++) if ($i == "reads") n += $(i + 1) }
		END { print n + 0 }' "$EFA"
}

# traffic WHAT: lets it go on for SECONDS_EACH, and looks at parts of that whether it does
traffic()
{
	slice=$((SECONDS_EACH < 30 ? SECONDS_EACH : 30))
	left=$SECONDS_EACH
	while [ "$left" -gt 0 ]; do
		before=$(taken)
		sleep "$slice"
		now=$(taken)
		check "$1: it goes on: $((now - before)) packets and reads in $slice s" \
			[ "$now" -gt "$before" ]
		left=$((left - slice))
	done
}

# soak WHAT [KNOB=VALUE...]: with these knobs set
soak()
{
	what=$1
	shift
	for knob in "$@"; do
		echo "${knob#*=}" > "$SIM/faults/${knob%%=*}"
	done
	had=$(device_has)
	modprobe kofi_soak provider=efa fabric=efa rma=0 threads=24 share=24 longs=16 \
		max_len="$MAX_LEN" seconds=3600 &
	soak=$!
	check "$what: there is traffic" wait_for 60 [ -e /sys/module/kofi_soak/parameters/seconds ]
	check "$what: packets of all types" wait_for 200 all_seen
	note "missing: $(missing)"
	traffic "$what"
	sed 's/^/# /' "$EFA"
	check "$what: nobody died" [ "$(sum deaths deaths)" = 0 ]
	echo 0 > /sys/module/kofi_soak/parameters/seconds
	check "$what: every byte was right" wait $soak
	note "$(report)"
	for knob in "$@"; do
		note "$knob: $(sed -n "s/^${knob%%=*} [0-9]* //p" "$SIM/faults/injected") times"
		check "$what: ${knob%%=*} did something" \
			[ "$(sed -n "s/^${knob%%=*} [0-9]* //p" "$SIM/faults/injected")" -gt 0 ]
		echo 0 > "$SIM/faults/${knob%%=*}"
	done
	check "$what: nothing is open after it" nothing_open
	check "$what: the device has what it had: $had" [ "$(device_has)" = "$had" ]
	rmmod kofi_soak
}

ip link set lo up
modprobe efasim
check "create es0" host rdma link add es0 type efasim netdev lo
modprobe kofi_efa
check "the device was probed" wait_for 20 grep -q '^queue_pairs 0' $SIM/memory
soak "reorder" reorder=300
soak "delay" delay=50
soak "drop" drop=5
soak "rnr" rnr=100
# There is room for eleven regions more: one endpoint has eight, and the other three.
soak "few regions" mr_limit=$(($(sed -n 's/^regions //p' $SIM/memory) + 11))
echo 200000 > /sys/module/kofi_efa/parameters/runt_size
TYPES="$TYPES RUNTREAD_TAGRTM"
soak "runts"
check "unload the provider" rmmod kofi_efa
check "delete es0" host rdma link delete es0
check "unload efasim" rmmod efasim
