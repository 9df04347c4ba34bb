#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# more: test
# host-root: yes
# host-tools: rdma
# mem: 3G
# timeout: 300
# kmemleak: yes
#
# Messages of up to 2 MiB by fabric efa, from 8 threads, mixed with short ones and with some
# whose receive comes late; every byte is checked. The network does one thing after the other.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

SIM=/sys/kernel/debug/efasim/es0
EFA=/sys/kernel/debug/kofi_efa/es0
TYPES="EAGER_TAGRTM MEDIUM_TAGRTM LONGCTS_TAGRTM CTS CTSDATA DC_EAGER_TAGRTM DC_MEDIUM_TAGRTM
DC_LONGCTS_TAGRTM RECEIPT LONGREAD_TAGRTM EOR"

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

report()
{
	dmesg | grep 'kofi_soak:' | tail -n 1 | sed 's/.*kofi_soak: //'
}

# soak WHAT KNOB=VALUE...: with these knobs set
soak()
{
	what=$1
	shift
	for knob in "$@"; do
		echo "${knob#*=}" > "$SIM/${knob%%=*}"
	done
	modprobe kofi_soak provider=efa fabric=efa rma=0 threads=8 max_len=2097152 seconds=600 &
	soak=$!
	check "$what: there is traffic" wait_for 60 [ -e /sys/module/kofi_soak/parameters/seconds ]
	check "$what: packets of all types" wait_for 90 all_seen
	note "missing: $(missing)"
	sleep 4
	sed 's/^/# /' "$EFA"
	check "$what: nobody died" [ "$(sum deaths deaths)" = 0 ]
	for knob in "$@"; do
		note "$knob: $(cat "$SIM/${knob%%=*}")"
	done
	echo 0 > /sys/module/kofi_soak/parameters/seconds
	check "$what: every byte was right" wait $soak
	note "$(report)"
	for knob in "$@"; do
		echo 0 > "$SIM/${knob%%=*}"
	done
	check "$what: nothing is open after it" nothing_open
	rmmod kofi_soak
}

ip link set lo up
modprobe efasim
check "create es0" host rdma link add es0 type efasim netdev lo
modprobe kofi_efa fabric_efa=1
soak "calm"
soak "reorder" faults/reorder=300
soak "delay" faults/delay=50
echo 1 > /sys/module/kofi_efa/parameters/read_regions
soak "one region"
check "unload the provider" rmmod kofi_efa
check "delete es0" host rdma link delete es0
check "unload efasim" rmmod efasim
