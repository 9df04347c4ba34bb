#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# full: yes
# guests: 2
# host-root: yes
# host-tools: rdma python3
# mem: 1G
# timeout: 300
#
# A fast sender and a slow receiver in two kernels, and a flood that ignores the window: memory
# use stays limited on both sides.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

TEST=/sys/kernel/debug/efa_verbs_conformance
SIM=/sys/kernel/debug/efasim/es0
PARAMETERS=/sys/module/efa_verbs_conformance/parameters
WINDOWS=128		# two lanes of 64 packets
PACKET=10000		# bytes that one takes, at most

slab()
{
	while read -r slab_name slab_kb _; do
		[ "$slab_name" != Slab: ] || echo "$slab_kb"
	done < /proc/meminfo
}

# Print current memory use: NAME VALUE lines, Slab in kB, sockets in pages
held()
{
	cat $SIM/memory /proc/meminfo
	sed -n 's/^UDP: .*mem /sockets /p' /proc/net/sockstat
}

# watch FILE: record the maximum of each until FILE.stop appears; -1 for missing values
watch()
{
	samples=0
	in_flight=-1
	responses=-1
	packet_bytes=-1
	delayed=-1
	slab=-1
	sockets=-1
	while [ ! -e "$1.stop" ]; do
		held > "$1.held"
		while read -r name value _; do
			case $name in
			in_flight) in_flight=$((value > in_flight ? value : in_flight)) ;;
			responses) responses=$((value > responses ? value : responses)) ;;
			packet_bytes) packet_bytes=$((value > packet_bytes ? value : packet_bytes)) ;;
			delayed) delayed=$((value > delayed ? value : delayed)) ;;
			Slab:) slab=$((value > slab ? value : slab)) ;;
			sockets) sockets=$((value > sockets ? value : sockets)) ;;
			esac
		done < "$1.held"
		samples=$((samples + 1))
		usleep 100000
	done
	echo "$samples $in_flight $responses $packet_bytes $delayed $slab $sockets" > "$1"
}

watch_start()
{
	slab_before=$(slab)
	rm -f /tmp/watch /tmp/watch.stop
	watch /tmp/watch &
	watch_pid=$!
}

# within VALUE LIMIT
within()
{
	[ "$1" -ge 0 ] && [ "$1" -le "$2" ]
}

# watch_end DESCRIPTION PEERS SLAB-KB: check that memory use never exceeded that of PEERS
watch_end()
{
	touch /tmp/watch.stop
	wait $watch_pid
	read -r samples in_flight responses bytes delayed slab sockets < /tmp/watch
	note "$1: $samples samples, at most $in_flight in flight, $responses responses, $bytes bytes, $delayed delayed, slab $slab_before to $slab kB, sockets $sockets pages"
	check "$1: watched" [ "$samples" -gt 3 ]
	check "$1: in flight" within "$in_flight" $(($2 * WINDOWS))
	check "$1: responses" within "$responses" $(($2 * 64))
	check "$1: bytes" within "$bytes" $(($2 * (WINDOWS + 64) * PACKET))
	check "$1: delayed" within "$delayed" 1024
	check "$1: slab" within "$slab" $((slab_before + $3))
	# Two buffers of 8 MB, and one packet beyond that.
	check "$1: sockets" within "$sockets" 4200
}

modprobe efasim
modprobe efa_verbs_conformance messages=400
check "create" host rdma link add es0 type efasim netdev eth0
value=$(cat /sys/class/infiniband/es0/ports/1/gids/0)
if [ "$ROLE" = b ]; then
	echo 20000 > $PARAMETERS/serve_us
	echo es0 > $TEST/serve
	value=$(cat $TEST/serve)
fi
values=$(barrier meet "$value")
[ "$ROLE" = a ] || echo "${values%% *}" > $TEST/peer
barrier met > /dev/null

watch_start
if [ "$ROLE" = a ]; then
	echo "es0 ${values##* } remote_messages" > $TEST/run
	grep "^#" $TEST/results
	check "messages to a slow receiver" grep -q "^ok .* remote_messages" $TEST/results
fi
barrier sent > /dev/null
watch_end "slow receiver" 1 16384
if [ "$ROLE" = a ]; then
	check "messages were in flight" [ "$in_flight" -gt 0 ]
	check "the sender was told to wait" grep -q "^rnr_nak_rcvd [1-9]" $SIM/counters
fi

barrier flood > /dev/null
watch_start
if [ "$ROLE" = b ]; then
	host python3 - "$(ip_of a)" 47790 flood 15 < /bed/guest/efasim-shoot.py
fi
barrier flooded > /dev/null
watch_end "flood" 10 131072
# Packets are dropped by the device; or by the socket, if the device is too slow for a flood.
held_back()
{
	grep -q "^rx_busy [1-9]" $SIM/counters ||
		[ "$(awk '/^Udp: [0-9]/ { print $6 }' /proc/net/snmp)" -gt 0 ]
}

# After all packets that are still in the socket.
answers()
{
	echo "es0 ${values##* } one" > $TEST/run
	grep -q "^# status 0" $TEST/results
}

if [ "$ROLE" = a ]; then
	check "reads had responses" [ "$responses" -gt 0 ]
	check "strangers were held back" held_back
	check "the peer still answers" wait_for 60 answers
fi
barrier over > /dev/null
echo stop > $TEST/serve
check "delete" host rdma link delete es0
