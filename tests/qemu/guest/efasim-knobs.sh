#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# full: yes
# host-root: yes
# host-tools: rdma ip
# modules: dummy
# kmemleak: yes
# timeout: 200
#
# Every knob and every limit of a soft device that concerns commands: its effect, and its
# counter.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

TEST=/sys/kernel/debug/efa_verbs_conformance
SIM=/sys/kernel/debug/efasim
PARAMETERS=/sys/module/efasim/parameters

# probe DEVICE WHAT [COUNT [ARGUMENT]]
probe()
{
	echo "$*" > $TEST/probe && cat $TEST/probe
}

# expect DESCRIPTION ANSWER PROBE...
expect()
{
	expect_what=$1
	expect_answer=$2
	shift 2
	expect_got=$(probe "$@")
	check "$expect_what: $expect_got" [ "$expect_got" = "$expect_answer" ]
}

fault()
{
	echo "$2" > "$SIM/es0/faults/$1"
}

# injected KNOB
injected()
{
	sed -n "s/^$1 [0-9]* //p" $SIM/es0/faults/injected
}

counter()
{
	sed -n "s/^$1 //p" $SIM/es0/counters
}

# did_something KNOB
did_something()
{
	check "$1 has counted an effect" [ "$(injected "$1")" -gt 0 ]
}

create()
{
	host rdma link add es0 type efasim netdev lo
}

remove()
{
	host rdma link delete es0
}

# case_fails CASE, case_passes CASE: run a case from the device to itself
run_case()
{
	echo "es0 es0 $1" > $TEST/run
	grep -q "^ok .* $1 " $TEST/results
}

case_fails()
{
	! run_case "$1" && grep -q "^not ok .* $1 " $TEST/results
}

# with PARAMETER=VALUE... DESCRIPTION COMMAND...: run it on a device with these parameters
with()
{
	with_reset=
	while :; do
		case $1 in
		*=*) ;;
		*) break ;;
		esac
		with_file=$PARAMETERS/${1%%=*}
		with_reset="$with_reset $with_file=$(cat "$with_file")"
		echo "${1#*=}" > "$with_file"
		shift
	done
	if create; then
		"$@"
		remove
	else
		not_ok "no device for: $*"
	fi
	# shellcheck disable=SC2086
	reset $with_reset
}

reset()
{
	for reset_item in "$@"; do
		echo "${reset_item#*=}" > "${reset_item%%=*}"
	done
}

# refused PARAMETER=VALUE: a device with this parameter can't be created
refused()
{
	refused_file=$PARAMETERS/${1%%=*}
	refused_old=$(cat "$refused_file")
	echo "${1#*=}" > "$refused_file"
	refuse "a device with $1 is refused" create
	echo "$refused_old" > "$refused_file"
}

seconds()
{
	read -r seconds_up _ < /proc/uptime
	echo "${seconds_up%.*}${seconds_up#*.}"
}

# distinct: print the number of distinct numbers in the answer
distinct()
{
	echo "$answer" | tr ' ' '\n' | sort -u | grep -c .
}

ip link set lo up
modprobe efasim
modprobe efa_verbs_conformance
check "es0 is created" create

for kind in ah qp mr; do
	fault ${kind}_limit 3
done
expect "ah_limit=3 permits 3 address handles" "3 -12" es0 ah 10
expect "qp_limit=3 permits 3 queue pairs" "3 -12" es0 qp 10
# The protection domain has a region of its own.
expect "mr_limit=3 permits 2 more regions" "2 -12" es0 mr 10
for kind in ah qp mr; do
	did_something ${kind}_limit
	fault ${kind}_limit 0
	expect "${kind}_limit=0 is no limit" "10 0" es0 $kind 10
done

answer=$(probe es0 numbers 3)
check "queue pair numbers aren't reused at once: $answer" [ "$(distinct)" = 3 ]
fault qpn_reuse 1
answer=$(probe es0 numbers 3)
check "qpn_reuse=1: a queue pair number is reused at once: $answer" [ "$(distinct)" = 1 ]
did_something qpn_reuse
fault qpn_reuse 0

# Each command between creation and removal of a device fails in turn.
probe es0 open
clean=$(probe es0 life)
case $clean in
*=-* | *again*) not_ok "a device's commands succeed: $clean" ;;
*) ok "a device's commands succeed: $clean" ;;
esac
errors=$(counter cmds_err)
points=0
hidden=0
while [ $points -lt 100 ]; do
	fault admin_fail_nth $((points + 1))
	answer=$(probe es0 life)
	[ "$(cat $SIM/es0/faults/admin_fail_nth)" = 0 ] || break
	points=$((points + 1))
	[ "$answer" != "$clean" ] || hidden=$((hidden + 1))
done
fault admin_fail_nth 0
# Destroying a handle or a completion queue always succeeds, as in the driver.
check "admin_fail_nth: $points commands failed, $hidden without an error for the caller" [ $hidden = 2 ]
check "each failure was counted as injected" [ "$(injected admin_fail_nth)" = $points ]
check "each failure was counted in cmds_err" [ $(($(counter cmds_err) - errors)) -ge $points ]
check "the device's commands succeed again" [ "$(probe es0 life)" = "$clean" ]
probe es0 close

fault admin_timeout_ms 5000
fault admin_timeout 1
begun=$(seconds)
expect "a command without an answer fails" "0 -62" es0 cq 1
took=$(($(seconds) - begun))
check "the command fails after admin_timeout_ms: ${took}0 ms" [ $took -ge 500 ]
begun=$(seconds)
expect "the next command fails" "0 -19" es0 cq 1
took=$(($(seconds) - begun))
check "the next command fails at once: ${took}0 ms" [ $took -lt 500 ]
check "no_completion_cmds counts one command" [ "$(counter no_completion_cmds)" = 1 ]
did_something admin_timeout
check "the dead device is deleted" remove

with max_qp=5 expect "max_qp=5 is the limit" "5 -12" es0 qp 10
with max_cq=3 expect "max_cq=3 is the limit" "3 -12" es0 cq 10
with max_mr=4 expect "max_mr=4 leaves 3 regions" "3 -12" es0 mr 10
with max_mr_pages=100 expect "max_mr_pages=100 permits 3 regions of 30 pages" "3 -12" es0 mr 10 30
with max_ah=2 expect "max_ah=2 is the limit" "2 -12" es0 ah 10
with max_pd=3 expect "max_pd=3 is the limit" "3 -12" es0 pd 10
with max_sq_depth=64 expect "max_sq_depth=64 refuses a depth of 65" "0 -22" es0 qp 1 65
with max_sq_depth=64 expect "max_sq_depth=64 permits a depth of 64" "1 0" es0 qp 1 64
with max_rq_depth=64 expect "max_rq_depth=64 refuses a depth of 65" "0 -22" es0 rq 1 65
with max_rq_depth=64 expect "max_rq_depth=64 permits a depth of 64" "1 0" es0 rq 1 64
with max_cq_depth=64 expect "max_cq_depth=64 refuses a depth of 65" "0 -22" es0 cq 1 65
with max_cq_depth=64 expect "max_cq_depth=64 permits a depth of 64" "1 0" es0 cq 1 64
with min_sq_depth=32 check "min_sq_depth=32 makes a queue deeper than requested" case_fails send_queue_full
with mtu=1000 check "mtu=1000: the largest message passes" run_case send_largest
with max_rdma_size=100 check "max_rdma_size=100: a longer read fails" case_fails rdma_read
with rdma_read=0 check "rdma_read=0: an RDMA read fails" case_fails rdma_read
with rdma_read=0 check "rdma_read=0: a send succeeds" run_case send_plain
with rdma_write=0 check "rdma_write=0: an RDMA write fails" case_fails rdma_write
with rdma_write=0 check "rdma_write=0: an RDMA read succeeds" run_case rdma_read

# A device talks to itself, and then to a second one.
two_peers()
{
	check "max_peers=1: the first peer is reached" run_case send_plain
	host rdma link add es1 type efasim netdev lo
	echo "es0 es1 send_plain" > $TEST/run
	check "max_peers=1: a second peer can't be reached" grep -q "^not ok" $TEST/results
	check "peers_full is counted" [ "$(counter peers_full)" -gt 0 ]
	host rdma link delete es1
}
with max_peers=1 two_peers

port_in_gid()
{
	grep -q "^fe80:0000:0000:$1:" /sys/class/infiniband/es0/ports/1/gids/0
}
host ip link add d0 type dummy
host ip address add 10.9.9.9/24 dev d0
ip link set d0 up
create()
{
	host rdma link add es0 type efasim netdev d0
}
with port=50000 check "port=50000 is in the GID" port_in_gid c350

for value in max_qp=0 max_qp=32769 max_pd=0 max_sq_depth=0 max_sq_depth=32769 \
		max_rq_depth=0 max_rq_depth=32769 min_sq_depth=5000 max_cq_depth=0 \
		max_cq_depth=65536 max_rdma_size=4294967295 unresponsive_ms=0 \
		max_mr=1048575 max_ah=65535 max_peers=0 mtu=255 mtu=9217 sock_buf=4095; do
	refused $value
done

# The same seed gives the same faults, for messages that are sent one by one.
check "es0 is created" create
fault seed 5
check "the seed can be read back" [ "$(cat $SIM/es0/faults/seed)" = 5 ]
fault delay 1000
fault delay_us 300000
fault reorder 0
begun=$(seconds)
check "a delayed message arrives" run_case send_plain
took=$(($(seconds) - begun))
check "delay_us=300000 delays the message: ${took}0 ms" [ $took -ge 55 ]
did_something delay
fault delay 0
# The first device may have drawn any number of random numbers.
fault seed 5
fault reg_delay_us 1000000
fault slid_lag_us 1
begun=$(seconds)
check "key_life passes with a slow registration" run_case key_life
took=$(($(seconds) - begun))
check "reg_delay_us delays the registration: ${took}0 ms" [ $took -ge 20 ]
did_something reg_delay_us
fault reg_delay_us 0
fault rnr_timer_us 300000
begun=$(seconds)
check "a message to a peer without a receive fails" run_case rnr_finite
took=$(($(seconds) - begun))
check "rnr_timer_us delays the failure: ${took}0 ms" [ $took -ge 25 ]
fault rnr_timer_us 500
for room in 0 40; do
	fault ud_header $room
	check "ud_header=$room: a datagram arrives" run_case ud_send
	check "ud_header=$room: the datagram has $room bytes in front" grep -q "# $room bytes in front" $TEST/results
done
did_something ud_header
for flushed in 0 1000; do
	fault err_flush $flushed
	check "err_flush=$flushed: a queue pair fails" run_case err_may_flush
	check "err_flush=$flushed: $((flushed / 200)) of 5 requests are flushed" grep -q "# $((flushed / 200)) of 5 requests flushed" $TEST/results
done
did_something err_flush
fault frwr_copy 1000
check "frwr_copy: an RDMA read succeeds with copied page lists" run_case rdma_read
did_something frwr_copy
did_something admin_delay_us
fault slid_lag_us 60000000
check "slid_lag_us: completions have no number for a new handle" case_fails slid_names_the_device
did_something slid_lag_us
check "es0 is deleted" remove
ip link del d0
