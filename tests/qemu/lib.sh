# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# Functions for guest tests, sourced by each tests/qemu/guest/*.sh. ROLE is a (b, c in the
# other guests), GUESTS the number of guests, IP and IP6 are this guest's addresses. LIFE
# is 1 and increases each time the guest is killed.

tap_count=0

ok()
{
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $*"
}

not_ok()
{
	tap_count=$((tap_count + 1))
	echo "not ok $tap_count - $*"
}

# check DESCRIPTION COMMAND...
check()
{
	check_what=$1
	shift
	if "$@"; then
		ok "$check_what"
	else
		not_ok "$check_what (status $?: $*)"
	fi
}

# refuse DESCRIPTION COMMAND...: the command must exist and fail, but not die of a signal
refuse()
{
	refuse_what=$1
	shift
	"$@"
	refuse_status=$?
	if [ $refuse_status -gt 0 ] && [ $refuse_status -lt 126 ]; then
		ok "$refuse_what"
	else
		not_ok "$refuse_what (status $refuse_status: $*)"
	fi
}

# wait_for SECONDS COMMAND...: repeats the command until it succeeds
wait_for()
{
	wait_tries=$(($1 * 10))
	shift
	for _ in $(seq $wait_tries); do
		"$@" && return 0
		usleep 100000
	done
	return 1
}

# nothing_open: succeeds if no object of kOFI is open. Files in debugfs have no size.
nothing_open()
{
	open_objects=$(cat /sys/kernel/debug/kofi/objects) && [ -z "$open_objects" ]
}

# tap WHAT FILE: repeats the TAP lines of a test in the kernel
tap()
{
	tap_plan=none
	tap_before=$tap_count
	while read -r line; do
		case $line in
		1..*) tap_plan=$line ;;
		"ok "*) ok "$1: ${line#ok * - }" ;;
		"not ok "*) not_ok "$1: ${line#not ok * - }" ;;
		"#"*) echo "$line" ;;
		esac
	done < "$2"
	tap_results=$((tap_count - tap_before))
	check "$1: there were results" [ $tap_results -gt 0 ]
	check "$1: the run ended: $tap_plan" [ "$tap_plan" = 1..$tap_results ]
}

note()
{
	echo "# $*"
}

# Counters of a software EFA device that stay 0 unless its user makes a mistake. A device
# logs them when it is removed; for present devices the counters are read. A test that
# provokes some of them on purpose lists them in TELL_TALES_MEANT.
TELL_TALES="driver_crash_avoided mr_remap_live cq_overflow cqe_of_reused_qpn recv_without_sge"
TELL_TALES_MEANT=
tell_tales_begin="bed: tell-tales from here on: $$"
echo "$tell_tales_begin" > /dev/kmsg

tell_tales()
{
	for tell_tale in $TELL_TALES; do
		case " $TELL_TALES_MEANT " in
		*" $tell_tale "*) continue ;;
		esac
		tell_tales_found=$(
			dmesg | awk -v begin="$tell_tales_begin" -v tale=": $tell_tale " '
				index($0, begin) { found = "" }
				/efasim: tell-tale of / && index($0, tale) { found = found $0 }
				END { print found }'
			grep "^$tell_tale [1-9]" /sys/kernel/debug/efasim/*/counters 2> /dev/null
		)
		[ -z "$tell_tales_found" ] || not_ok "$tell_tale isn't 0: $tell_tales_found"
	done
}

# init sets tap_ended after the test's last line. Without it, a test that exits early could
# not be distinguished from a short one.
at_exit()
{
	tell_tales
	[ -n "${tap_ended-run by hand}" ] || not_ok "ended before its last line"
}
trap at_exit EXIT

# at_length: succeeds if there is time for long tests, which is the case in make check-full, and on
# Debian's kernels, which have no checkers, in make check-more
at_length()
{
	case $LEVEL in
	check) return 1 ;;
	more) case $(uname -r) in *-kofi-test*) return 1 ;; esac ;;
	esac
}

# ip_of ROLE
ip_of()
{
	case $1 in
	a) echo 10.0.0.1 ;;
	b) echo 10.0.0.2 ;;
	c) echo 10.0.0.3 ;;
	esac
}

# barrier NAME [VALUE]: waits until every guest has reached it, and prints the guests'
# values in the order of their roles. If a guest is gone or at another barrier, it fails
# and prints "not ok" in place of the values.
barrier()
{
	echo "barrier $1 ${2:--}" >&4
	read -r barrier_answer <&4 || return 1
	case $barrier_answer in
	"go $1 "*) echo "${barrier_answer#go "$1" }" ;;
	*) not_ok "barrier $1: $barrier_answer" >&3; return 1 ;;
	esac
}

# kill_guest ROLE: power failure of a guest, which then boots again, for tests with
# "# lives:". Only its drive survives; its test starts again with the next LIFE. Guests at
# a barrier keep waiting.
kill_guest()
{
	echo "kill $1" >&4
	read -r kill_answer <&4 || return
	[ "$kill_answer" != "killed $1" ] || return 0
	echo "# kill_guest $1: $kill_answer"
	return 1
}

# host COMMAND...: runs a program of the host, for tests with "# host-root: yes"
host()
{
	chroot /host /usr/bin/env PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# tool NAME [ARGUMENT...]: runs a program of tools/, for tests with "# host-root: yes"
tool()
{
	tool_path=/tmp/shared/$1
	cp "/bed/tools/$1" "$tool_path"
	shift
	host "$tool_path" "$@"
}

FAULTS=/sys/kernel/debug

# fault_on KNOB PERCENT [SETTING=VALUE...]: turns on fault injection (failslab,
# fail_page_alloc, ...)
fault_on()
{
	fault_dir=$FAULTS/$1
	fault_percent=$2
	shift 2
	for fault_setting in "$@"; do
		echo "${fault_setting#*=}" > "$fault_dir/${fault_setting%%=*}"
	done
	echo 1000000 > "$fault_dir/times"
	echo "$fault_percent" > "$fault_dir/probability"
}

# fault_off KNOB: turns off fault injection; prints "not ok" if nothing was injected
fault_off()
{
	echo 0 > "$FAULTS/$1/probability"
	fault_hits=$((1000000 - $(cat "$FAULTS/$1/times")))
	echo -1 > "$FAULTS/$1/times"
	if [ "$fault_hits" -gt 0 ]; then
		ok "$1 made $fault_hits allocations or calls fail"
	else
		not_ok "$1 was on and injected nothing"
	fi
}

KNOBS="failslab fail_page_alloc"

# symbols MODULE: print the symbols of the module's code, in order
symbols()
{
	awk -v "module=[$1]" '$4 == module && tolower($2) == "t" { print $1, $3 }' /proc/kallsyms | sort
}

# in_module MODULE: print the bounds of the module's code
in_module()
{
	symbols "$1" | sed -n '1s/ .*//p;$s/ .*//p' | {
		read -r first
		read -r last
		echo "0x$first 0x$last"
	}
}

# only START END: fail only allocations that are called from code in between
only()
{
	for knob in $KNOBS; do
		echo "$1" > "$FAULTS/$knob/require-start"
		echo "$2" > "$FAULTS/$knob/require-end"
	done
}

only_everywhere()
{
	only 0 0xffffffffffffffff
}
