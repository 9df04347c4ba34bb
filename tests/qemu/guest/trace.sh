#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1
# more: test stock-6.12
# full: stock-6.1
# host-root: yes
# host-tools: rdma
# timeout: 120
#
# The EFA provider's tracepoints, by tracefs alone: each event must be recorded, with the fields
# that Documentation/tracing.rst describes.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

TEST=/sys/kernel/debug/kofi_efa_test
TRACE=/sys/kernel/tracing
EVENTS=$TRACE/events/kofi_efa
GID='gid=fe80:[0-9a-f:]*'
# shellcheck disable=SC2016
LATENCY='hist:keys=qpn,slot:us=common_timestamp.usecs-$at:onmatch(kofi_efa.kefa_post).post_us($us,qpn)'

# run CASE
run()
{
	echo "es0 es1 $1" > $TEST/run
	tap "$1" $TEST/results
}

# shows WHAT PATTERN: check that the trace matches
shows()
{
	check "$1" grep -qE "$2" $TRACE/trace
}

# count PATTERN: print the number of lines in the trace that match
count()
{
	grep -cE "$1" $TRACE/trace
}

ip link set lo up
modprobe efasim
modprobe kofi_efa
echo 8192 > $TRACE/buffer_size_kb
echo > $TRACE/trace
echo 1 > $EVENTS/enable
check "es0 comes" host rdma link add es0 type efasim netdev lo
check "es1 comes" host rdma link add es1 type efasim netdev lo
modprobe kofi_efa_test

run rma
run wrong_peer
run msg_full
check "es0 goes" host rdma link delete es0
echo 0 > $EVENTS/enable
shows "a device that arrives" 'kefa_device: dev=es0 arrived'
shows "a device that goes" 'kefa_device: dev=es0 removed'
shows "an endpoint that is enabled" 'kefa_ep: dev=es0 qp=[0-9]+ enabled err=0 tx=0 rx=0'
shows "an endpoint that is closed" 'kefa_ep: dev=es0 qp=[0-9]+ stopped err=125 tx=[0-9]+ rx=[0-9]+'
shows "an address" "kefa_peer: dev=es0 peer=0 inserted $GID qp=[0-9]+ ret=0"
shows "an address that goes" "kefa_peer: dev=es0 peer=0 removed $GID qp=[0-9]+ ret=0"
shows "an address handle" "kefa_ah: dev=es0 $GID created ret=0"
shows "an address handle that goes" "kefa_ah: dev=es0 $GID destroyed ret=0"
shows "a region from the device" 'kefa_refill: dev=es1 pages=[0-9]+ regions=0 ret=0'
shows "a registration" 'kefa_mr: dev=es1 key=0x[0-9a-f]+ reg len=1048576 status=0'
shows "its end" 'kefa_mr: dev=es1 key=0x[0-9a-f]+ inval len=1048576 status=0'
shows "a write" 'kefa_post: dev=es0 qp=[0-9]+ op=[0-9]+ write\|rma peer=0 len=4096 wrs=1'
shows "a read that is done" 'kefa_done: dev=es0 qp=[0-9]+ op=[0-9]+ read\|rma len=4096 err=0 status=0'
shows "a failure" 'kefa_error: dev=es0 qp=[0-9]+ op=[0-9]+ send\|msg len=64 err=104 status=9'
shows "a post that was refused" 'kefa_refused: dev=es0 qp=[0-9]+ send\|msg peer=0 len=64 ret=-11'
check "as many completions as posts" [ "$(count kefa_post:)" = "$(count kefa_done:)" ]
check "a failure is a completion" [ "$(count 'kefa_done:.*err=104')" = "$(count 'kefa_error:.*err=104')" ]

# The recipes for tracefs.
check "es0 comes back" host rdma link add es0 type efasim netdev lo
echo > $TRACE/trace
echo 'status != 0' > $EVENTS/kefa_done/filter
echo 1 > $EVENTS/kefa_done/enable
run msg_sizes
check "a filter for failures shows no success" [ "$(count kefa_done:)" = 0 ]
run wrong_peer
shows "but failures" 'kefa_done:.*status=9'
echo 0 > $EVENTS/kefa_done/enable
echo 0 > $EVENTS/kefa_done/filter
# The test kernel has no histograms; distributions' kernels must have them.
if ! uname -r | grep -q kofi-test; then
	echo 'hist:keys=dev,qpn:vals=len' > $EVENTS/kefa_done/trigger
	echo 'post_us u64 us; u32 qpn' > $TRACE/synthetic_events
	echo 'hist:keys=qpn,slot:at=common_timestamp.usecs' > $EVENTS/kefa_post/trigger
	echo "$LATENCY" >> $EVENTS/kefa_done/trigger
	echo 'hist:keys=us.log2' > $TRACE/events/synthetic/post_us/trigger
	run msg_sizes
	check "bytes by endpoint" grep -q 'dev: es1.*hitcount: *[1-9]' $EVENTS/kefa_done/hist
	check "a histogram of latencies" grep -q 'us: ~ 2^[0-9]* *} hitcount: *[1-9]' \
		$TRACE/events/synthetic/post_us/hist
	cat $TRACE/events/synthetic/post_us/hist
	echo '!hist:keys=us.log2' > $TRACE/events/synthetic/post_us/trigger
	echo "!$LATENCY" >> $EVENTS/kefa_done/trigger
	echo '!hist:keys=qpn,slot:at=common_timestamp.usecs' >> $EVENTS/kefa_post/trigger
	echo '!hist:keys=dev,qpn:vals=len' >> $EVENTS/kefa_done/trigger
	echo '!post_us' >> $TRACE/synthetic_events
fi
rmmod kofi_efa_test
check "the provider goes" rmmod kofi_efa
check "es0 goes, too" host rdma link delete es0
check "es1 goes" host rdma link delete es1
