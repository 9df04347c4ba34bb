#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# host-root: yes
# host-tools: rdma
# full: yes
# timeout: 7200
#
# Ten million messages of mixed sizes between two guests with all faults on,
# each once and whole; and memory is what it was before.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

TEST=/sys/kernel/debug/efa_verbs_conformance
FAULTS=/sys/kernel/debug/efasim/es0/faults
MESSAGES=10000000

slab()
{
	while read -r name kb _; do
		[ "$name" = Slab: ] && echo "$kb"
	done < /proc/meminfo
}

modprobe efasim
modprobe efa_verbs_conformance messages=$MESSAGES
check "create" host rdma link add es0 type efasim netdev eth0
for setting in seed=7 reorder=200 delay=20 duplicate=20 drop=5 rnr=5 no_memory=2; do
	echo "${setting#*=}" > "$FAULTS/${setting%%=*}"
done

gid=$(cat /sys/class/infiniband/es0/ports/1/gids/0)
if [ "$ROLE" = b ]; then
	echo es0 > $TEST/serve
	gid=$(cat $TEST/serve)
fi
values=$(barrier meet "$gid")
[ "$ROLE" = a ] || echo "${values%% *}" > $TEST/peer
before=$(slab)
barrier met > /dev/null

if [ "$ROLE" = a ]; then
	echo "es0 ${values##* } remote_messages" > $TEST/run
	check "$MESSAGES messages arrived once and whole" \
		grep -q "^ok .* remote_messages" $TEST/results
	note "$(cat $TEST/results)"
fi
barrier sent > /dev/null
after=$(slab)
check "slab grew by less than 32 MB: $before to $after kB" [ $((after - before)) -lt 32768 ]
for knob in reorder delay duplicate drop no_memory; do
	check "$knob did something" grep -q "^$knob [0-9]* [1-9]" $FAULTS/injected
done
[ "$ROLE" = a ] || check "rnr did something" grep -q "^rnr [0-9]* [1-9]" $FAULTS/injected
echo stop > $TEST/serve
check "delete" host rdma link delete es0
