#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# full: yes
# guests: 2
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: fi_pingpong
# settings: DEBIAN13=
# modules: efa ib_uverbs
# mem: 1536M
# timeout: 1200
#
# Processes of two guests, each on a PCI function: libfabric of Debian 12 (1.17) and of Debian 13
# (2.1) with each other. fi_pingpong compares messages of 1 byte to 4 MiB, with and without RDMA,
# with either version as the server, some of them by a bad network. Processes that are killed leave
# nothing behind.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/interop.sh
. /bed/interop.sh

PCI0=$SIM/pci0
NEWEST=$ROOT
# fi_pingpong's port in the kernel's table of sockets, while its server listens.
LISTENS=':B9E8 00000000:0000 0A '
SIZES="1 64 1024 8192 65536 1048576 4194304"

counter()
{
	awk -v name="$1" '$1 == name { print $2 }' $PCI0/counters
}

listens()
{
	grep -q "$LISTENS" /proc/net/tcp
}

# use 12|13|new: run programs of this version of Debian, or of the newest one, from now on
use()
{
	case $1 in
	12) ROOT= ;;
	13) ROOT=$DEBIAN13 ;;
	new) ROOT=$NEWEST ;;
	esac
}

# pingpong msg|tagged|direct|dgram ARGUMENT...: run libfabric's fi_pingpong
pingpong()
{
	case $1 in
	# Version 2 would choose fabric efa-direct, which 1.17 doesn't have.
	msg) pingpong_kind="-e rdm${ROOT:+ -f efa}" ;;
	# efa-direct has no tagged messages.
	tagged) pingpong_kind="-e rdm -m tagged" ;;
	direct) pingpong_kind="-e rdm -f efa-direct" ;;
	dgram) pingpong_kind="-e dgram" ;;
	esac
	shift
	# shellcheck disable=SC2086
	theirs fi_pingpong -p efa $pingpong_kind "$@"
}

# acknowledged COUNT: fi_pingpong's table has one size, and each of its messages came back
acknowledged()
{
	awk -v count="$1" '$2 == count && $3 == "=" count { n++ } END { exit n != 1 }' $OUT/log
}

# serve ARGUMENT...: run a server until it has ended, or the client has failed, which the server
# doesn't notice
serve()
{
	pingpong "$@" > $OUT/log 2>&1 &
	serve_pid=$!
	check "$what: the server listens" wait_for 60 listens
	barrier listens > /dev/null
	[ "$(barrier ended)" = "- 0" ] || killall fi_pingpong
	wait $serve_pid
}

# call ARGUMENT...: run a client
call()
{
	barrier listens > /dev/null
	pingpong "$@" "$(ip_of a)" > $OUT/log 2>&1
	call_status=$?
	barrier ended $call_status > /dev/null
	return $call_status
}

# compare COUNT SIZE KIND: exchange so many messages of this size, and compare them
compare()
{
	what="$3, $2 bytes, from $client to $server, RDMA $FI_EFA_USE_DEVICE_RDMA"
	if [ "$ROLE" = a ]; then
		serve "$3" -c -I "$1" -S "$2"
	else
		call "$3" -c -I "$1" -S "$2"
	fi
	status=$?
	check "$what" [ $status = 0 ]
	check "$what: each came back" acknowledged "$1"
	sed 's/^/# /' $OUT/log
	note "uptime $(cut -d ' ' -f 1 /proc/uptime)"
}

# versions SERVER CLIENT: run libfabric SERVER in guest a, and CLIENT in guest b
versions()
{
	server=$1 client=$2
	if [ "$ROLE" = a ]; then use "$server"; else use "$client"; fi
}

# sizes KIND: compare messages of all sizes
sizes()
{
	for size in $SIZES; do
		compare 2 "$size" "$1"
	done
}

# exist: succeeds if the device has objects of processes
exist()
{
	grep -Eq '^(queue_pairs|completion_queues|regions|handles) [1-9]' $PCI0/memory
}

none_exist()
{
	! exist
}

received()
{
	[ "$(counter recv_wrs)" -gt "$1" ]
}

# killed: exchange messages until both processes are killed
killed()
{
	before=$(counter recv_wrs)
	if [ "$ROLE" = a ]; then
		pingpong msg -I 1000000 -S 65536 > $OUT/log 2>&1 &
		check "the server listens" wait_for 60 listens
		barrier to-be-killed > /dev/null
	else
		barrier to-be-killed > /dev/null
		pingpong msg -I 1000000 -S 65536 "$(ip_of a)" > $OUT/log 2>&1 &
	fi
	check "messages are on their way" wait_for 60 received $((before + 50))
	check "the device has the process' objects" exist
	killall -9 fi_pingpong
	wait $!
	check "it was killed" [ $? = 137 ]
	check "it leaves nothing" wait_for 10 none_exist
	barrier was-killed > /dev/null
}

# set_faults 0|1: have the network lose, reorder and repeat packets, or not
set_faults()
{
	for setting in reorder=200 duplicate=50 drop=20; do
		echo $((${setting#*=} * $1)) > "$PCI0/faults/${setting%%=*}"
	done
}

# did_something KNOB
did_something()
{
	check "$1 did something" grep -q "^$1 [0-9]* [1-9]" $PCI0/faults/injected
}

set_up_process eth0 unresponsive_ms=60000
for libfabric in 12 new; do
	use $libfabric
	note "$(theirs fi_info --version | head -n 1)"
	check "libfabric $libfabric has a provider" \
		eval 'theirs fi_info -p efa | grep -q "type: FI_EP_RDM"'
done
export FI_EFA_USE_DEVICE_RDMA=0
versions 12 new
sizes msg
versions new 12
sizes tagged
check "no message was read" [ "$(counter rdma_read_wrs)" = 0 ]
export FI_EFA_USE_DEVICE_RDMA=1
versions 12 new
sizes tagged
reads=$(counter rdma_read_wrs)
check "long messages were read" [ "$reads" -gt 0 ]
versions new 12
sizes msg
check "long messages were read, the other way" [ "$(counter rdma_read_wrs)" -gt "$reads" ]
versions new new
compare 2 4194304 msg
compare 5 1000 direct
if [ "$LIBFABRIC" ]; then
	versions 13 new
	compare 2 4194304 tagged
	compare 5 1000 direct
	versions new 13
	compare 2 4194304 msg
fi

# Lost datagrams aren't sent again, so datagrams need a good network.
versions 12 new
compare 10 1000 dgram
versions new 12
compare 10 1000 dgram

set_faults 1
barrier bad-network > /dev/null
compare 2 65536 msg
versions 12 new
compare 2 1048576 tagged
check "packets were sent again" [ "$(counter retrans_pkts)" -gt 0 ]
for knob in reorder duplicate drop; do
	did_something $knob
done
check "no address was wrong" [ "$(counter bad_dma_address)" = 0 ]
check "no key was wrong" [ "$(counter bad_lkey)$(counter bad_rkey)" = 00 ]

# The regions of a process that is killed may go before its queue pairs.
versions 12 new
killed
versions new 12
killed
set_faults 0
compare 2 65536 msg

note "$(tr '\n' ' ' < $PCI0/counters)"
check "unload the driver" rmmod efa
check "unload" rmmod efasim
