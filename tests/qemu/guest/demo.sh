#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12 stock-6.1 stock-newest
# more: stock-6.12
# full: stock-6.1 stock-newest
# guests: 2
# host-root: yes
# host-tools: rdma python3
# timeout: 300
#
# make demo: two kernels as the distribution ships them, a soft EFA device in
# each, and kernel modules that move data from one to the other over them. Each
# step is shown before it is done and must succeed.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

PINGPONG=/sys/kernel/debug/kofi_pingpong
EFASIM=/sys/kernel/debug/efasim/es0
OPERATIONS=${OPERATIONS:-$([ "$LEVEL" = more ] && echo 50 || echo 200)}
SERVER=$(ip_of a)
SIDE=$([ "$ROLE" = a ] && echo server || echo client)

title()
{
	echo
	echo "== $*"
}

# explain EXPECTED: print further information on a failure
explain()
{
	note "guest $ROLE, the $SIDE: expected that $1"
	[ ! -e $PINGPONG ] || grep -h '^error:' $PINGPONG/*/results
	note "the end of the kernel's log, which is in the log of the console:"
	dmesg | tail -n 12 | sed 's/^/#     /'
}

# step COMMAND...
step()
{
	echo "\$ $*"
	if "$@"; then
		ok "$*"
	else
		not_ok "$* (status $?)"
		explain "this command succeeds"
	fi
}

# expect WHAT COMMAND...: the command must succeed
expect()
{
	expect_what=$1
	shift
	if "$@"; then
		ok "$expect_what"
	else
		not_ok "$expect_what"
		explain "$expect_what"
	fi
}

# set_fault KNOB VALUE
set_fault()
{
	echo "\$ echo $2 > $EFASIM/faults/$1"
	echo "$2" > $EFASIM/faults/"$1" || not_ok "fault $1"
}

# meet NAME: wait for the other guest, and for its output to be read
meet()
{
	barrier "$1" > /dev/null || exit 1
	usleep 300000
}

# in_turn FUNCTION: call it at the server, then at the client
in_turn()
{
	[ "$ROLE" = a ] || meet "$1"
	"$1"
	[ "$ROLE" = b ] || meet "$1"
	meet "$1-done"
}

rdma()
{
	host rdma "$@"
}

info()
{
	mount -o bind /sys/kernel/debug /host/sys/kernel/debug
	tool kofi_info -p efa
	info_status=$?
	umount /host/sys/kernel/debug
	return $info_status
}

load()
{
	title "Guest $ROLE, the $SIDE, at $IP: $(uname -sr), as Debian ships it"
	step modprobe efasim
	step rdma link add es0 type efasim netdev eth0
	set_fault seed $((42 + ${#SIDE}))
	set_fault reorder 200
	set_fault delay 20
	step modprobe kofi
	step modprobe kofi_efa
	dmesg | sed -n 's/^\[[^]]*\] .*\(es0: kofi_efa: .*\)/    \1/p'
}

# state: print the state of this side
state()
{
	cat "$PINGPONG/$SIDE/state" 2> /dev/null
}

# number WORDS: print the number before these words in the results
number()
{
	sed -n "s/.*[ ,]*\b\([0-9][0-9]*\) $1.*/\1/p" "$PINGPONG/$SIDE/results" | head -n 1
}

# rows FROM: print the table, from a line on
rows()
{
	sed -n '/latency, us/,$p' "$PINGPONG/$SIDE/results" | tail -n +"$1"
}

# watch_rows: print the lines of the client's results as they come, until the run has ended
watch_rows()
{
	shown=0
	while :; do
		watch_state=$(state)
		rows $((shown + 1)) > /tmp/rows
		cat /tmp/rows
		shown=$((shown + $(wc -l < /tmp/rows)))
		case $watch_state in
		waiting | running) usleep 300000 ;;
		*) return ;;
		esac
	done
}

injected()
{
	while read -r knob value count; do
		case $knob in
		reorder | delay) echo "    $knob: probability $value/1000, done to $count packets" ;;
		esac
	done < $EFASIM/faults/injected
}

# has_injected KNOB
has_injected()
{
	grep -q "^$1 [0-9]* [1-9]" $EFASIM/faults/injected
}

server_loads_pingpong()
{
	title "The server waits for a client"
	step modprobe kofi_pingpong role=server addr="$SERVER" prov=efa
}

client_runs_pingpong()
{
	title "The client connects, then checks and measures each kind of operation by size"
	note "the latencies are mostly those of two emulated computers, not of kOFI or EFA"
	step modprobe kofi_pingpong role=client addr="$SERVER" prov=efa iterations="$OPERATIONS"
	watch_rows
}

judge()
{
	title "Results of the $SIDE"
	sed -n '/checked/{p;q}' "$PINGPONG/$SIDE/results"
	injected
	if [ "$ROLE" = b ]; then
		expect "the run ended well" [ "$(state)" = "done" ]
		for operation in send write read writedata; do
			expect "$operation of 0 bytes was done" grep -q "^$operation  *0 " "$PINGPONG/client/results"
			expect "$operation was done in more than five sizes" \
				[ "$(grep -c "^$operation " "$PINGPONG/client/results")" -gt 5 ]
		done
	fi
	expect "data was checked" [ "$(number checked)" -gt 0 ]
	expect "no byte was wrong" [ "$(number bad)" = 0 ]
	expect "packets were reordered" has_injected reorder
	expect "packets were delayed" has_injected delay
	expect "no session failed" [ "$(grep -c '^error:' "$PINGPONG/$SIDE/results")" = 0 ]
}

unload()
{
	title "The $SIDE unloads everything"
	step rmmod kofi_pingpong
	step rmmod kofi_cm
	step rmmod kofi_ulp
	expect "nothing is open" nothing_open
	step rmmod kofi_efa
	step rmmod kofi
	step rdma link delete es0
	step rmmod efasim
}

in_turn load
if [ "$ROLE" = b ]; then
	title "The fabrics that modules of this kernel can use now (kofi_info -p efa)"
	expect "kofi_info shows the device" info
fi
meet ready
[ "$ROLE" = b ] || server_loads_pingpong
meet serving
[ "$ROLE" = a ] || client_runs_pingpong
meet ran
in_turn judge
in_turn unload
