#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12 test
# guests: 2
# host-root: yes
# host-tools: rdma
# full: yes
# settings: SOAK=10000000
# timeout: 21600
#
# SOAK messages of mixed sizes between two guests with all faults, in rounds of at most a
# million. Each arrives once, intact, and memory use returns to what it was before. A kernel
# with checks gets a twentieth of them.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

TEST=/sys/kernel/debug/efa_verbs_conformance
FAULTS=/sys/kernel/debug/efasim/es0/faults
ROUND=1000000

slab()
{
	while read -r name kb _; do
		[ "$name" = Slab: ] && echo "$kb"
	done < /proc/meminfo
}

now()
{
	read -r up _ < /proc/uptime
	echo "${up%.*}"
}

# round NUMBER MESSAGES: send them from a to b, which starts a new server
round()
{
	round_value=$(cat /sys/class/infiniband/es0/ports/1/gids/0)
	if [ "$ROLE" = b ]; then
		echo es0 > $TEST/serve
		round_value=$(cat $TEST/serve)
	fi
	round_values=$(barrier "meet-$1" "$round_value")
	[ "$ROLE" = a ] || echo "${round_values%% *}" > $TEST/peer
	barrier "met-$1" > /dev/null
	if [ "$ROLE" = a ]; then
		round_begun=$(now)
		echo "$2" > /sys/module/efa_verbs_conformance/parameters/messages
		echo "es0 ${round_values##* } remote_messages" > $TEST/run
		check "$2 messages arrived once and whole" \
			grep -q "^ok .* remote_messages" $TEST/results
		note "$(sed -n "s,^# ,,p" $TEST/results), $(($(now) - round_begun)) s"
	fi
	barrier "sent-$1" > /dev/null
}

# A guest of a busy host may be silent for long.
modprobe efasim unresponsive_ms=60000
modprobe efa_verbs_conformance
check "create" host rdma link add es0 type efasim netdev eth0
for setting in seed=7 reorder=200 delay=20 duplicate=20 drop=5 rnr=5 no_memory=2; do
	echo "${setting#*=}" > "$FAULTS/${setting%%=*}"
done

[ ! -e /sys/kernel/debug/kmemleak ] || SOAK=$((SOAK / 20))
number=0
left=$SOAK
begun=$(now)
before=$(slab)
while [ "$left" -gt 0 ]; do
	number=$((number + 1))
	messages=$((left < ROUND ? left : ROUND))
	left=$((left - messages))
	round $number $messages
done
after=$(slab)
seconds=$(($(now) - begun))
note "$SOAK messages in $seconds s, $((SOAK / (seconds + 1))) a second"
check "slab grew by less than 32 MB: $before to $after kB" [ $((after - before)) -lt 32768 ]
for knob in reorder delay duplicate drop no_memory; do
	check "$knob did something" grep -q "^$knob [0-9]* [1-9]" $FAULTS/injected
done
[ "$ROLE" = a ] || check "rnr did something" grep -q "^rnr [0-9]* [1-9]" $FAULTS/injected
echo stop > $TEST/serve
check "delete" host rdma link delete es0
