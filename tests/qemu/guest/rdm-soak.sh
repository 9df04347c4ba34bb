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
# 16 threads send messages of 1 MiB by fabric efa between two endpoints, and 8 more threads send
# short ones; some receives are posted late. Every byte is checked. Each part has one fault of the
# network, or few regions in the device; one does without the device. Each sub-protocol must be used, and the device must have
# the same objects after each part as before.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

SIM=/sys/kernel/debug/efasim/es0
EFA=/sys/kernel/debug/kofi_efa/es0
LOCAL=/sys/module/kofi_efa/parameters/local_transfer
TYPES="EAGER_TAGRTM MEDIUM_TAGRTM LONGCTS_TAGRTM CTS CTSDATA DC_EAGER_TAGRTM DC_MEDIUM_TAGRTM
DC_LONGCTS_TAGRTM RECEIPT LONGREAD_TAGRTM EOR"

# Seconds for each part, and the longest message. rdm-soak-full sets two minutes and 4 MiB.
SECONDS_EACH=${SECONDS_EACH:-4}
MAX_LEN=${MAX_LEN:-1048576}

# sum LINE WORD: add up the numbers after a word in lines that begin with LINE, of all endpoints
sum()
{
	awk -v line="$1" -v word="$2" '$1 == line {
		for (i = 1; i < NF; i++) if ($i == word) n += $(i + 1) } END { print n + 0 }' "$EFA"
}

# missing: print the types of packets that no endpoint has sent yet
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

# device_has: print the numbers of the device's objects
device_has()
{
	grep -E '^(queue_pairs|completion_queues|regions|handles) ' $SIM/memory | tr '\n' ' '
}

report()
{
	dmesg | grep 'kofi_soak:' | tail -n 1 | sed 's/.*kofi_soak: //'
}

# taken: print the number of packets received and of messages read by all endpoints so far
taken()
{
	awk '$1 == "received" { for (i = 3; i <= NF; i += 2) n += $i }
		$1 == "sources" { for (i = 1; i < NF; i++) if ($i == "reads") n += $(i + 1) }
		END { print n + 0 }' "$EFA"
}

# traffic WHAT: let the traffic go on for SECONDS_EACH, and check each slice for progress
traffic()
{
	slice=$((SECONDS_EACH < 30 ? SECONDS_EACH : 30))
	left=$SECONDS_EACH
	while [ "$left" -gt 0 ]; do
		before=$(taken)
		sleep "$slice"
		now=$(taken)
		check "$1: progress: $((now - before)) packets and reads in $slice s" \
			[ "$now" -gt "$before" ]
		left=$((left - slice))
	done
}

# soak WHAT [KNOB=VALUE...]: run the soak with these faults
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
	[ "$what" != local ] ||
		check "local: packets did without the device" [ "$(sum sources local)" -gt 0 ]
	check "$what: no peer was declared dead" [ "$(sum deaths deaths)" = 0 ]
	echo 0 > /sys/module/kofi_soak/parameters/seconds
	check "$what: every byte was right" wait $soak
	note "$(report)"
	for knob in "$@"; do
		note "$knob: $(sed -n "s/^${knob%%=*} [0-9]* //p" "$SIM/faults/injected") times"
		check "$what: ${knob%%=*} was injected" \
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
check "the bed has endpoints use the device" grep -q N $LOCAL
echo 1 > $LOCAL
ALL_TYPES=$TYPES
TYPES=${TYPES%LONGREAD*}
soak "local"
TYPES=$ALL_TYPES
echo 0 > $LOCAL
# There is room for eleven more regions, so one endpoint gets eight and the other one three.
soak "few regions" mr_limit=$(($(sed -n 's/^regions //p' $SIM/memory) + 11))
echo 200000 > /sys/module/kofi_efa/parameters/runt_size
TYPES="$TYPES RUNTREAD_TAGRTM"
soak "runts"
check "unload the provider" rmmod kofi_efa
check "delete es0" host rdma link delete es0
check "unload efasim" rmmod efasim
