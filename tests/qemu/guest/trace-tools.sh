#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# modules: configfs hmac sha256_generic crc32c_generic
# host-root: yes
# host-tools: rdma bpftrace perf trace-cmd
# mem: 2G
# full: yes
# timeout: 400
#
# The recipes of Documentation/tracing.rst with perf, trace-cmd and bpftrace of the host.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

TEST=/sys/kernel/debug/kofi_efa_test
OUT=/tmp/shared

# with WHAT COMMAND...: run a tool of the host while cases run
with()
{
	with_what=$1
	shift
	(cd $OUT && host "$@" > $OUT/out 2>&1; echo "$?" > $OUT/status) &
	with_pid=$!
	while kill -0 $with_pid 2> /dev/null; do
		for case in msg_sizes wrong_peer rma; do
			echo "es0 es1 $case" > $TEST/run
		done
	done
	wait
	sed 's/^/# /' $OUT/out
	check "$with_what" [ "$(cat $OUT/status)" = 0 ]
}

# says WHAT PATTERN: check that the tool's output matches
says()
{
	check "$1" grep -qE "$2" $OUT/out
}

mount -o bind /sys/kernel/debug /host/sys/kernel/debug
mount -o bind /sys/kernel/tracing /host/sys/kernel/tracing
ip link set lo up
modprobe efasim
modprobe kofi_efa
check "es0 comes" host rdma link add es0 type efasim netdev lo
check "es1 comes" host rdma link add es1 type efasim netdev lo
modprobe kofi_efa_test

with "perf stat" perf stat -a -e 'kofi_efa:*' sleep 8
says "counts completions" '[1-9][0-9]* +kofi_efa:kefa_done'
with "perf record" perf record -q -a -o $OUT/perf.data -e kofi_efa:kefa_error sleep 8
host perf script -i $OUT/perf.data > $OUT/out 2>&1
says "keeps failures" 'kofi_efa:kefa_error: dev=es0 .*status=9'
with "trace-cmd" trace-cmd record -q -o $OUT/trace.dat -e kofi_efa:kefa_mr sleep 8
host trace-cmd report -i $OUT/trace.dat > $OUT/out 2>&1
says "reports registrations" 'kefa_mr: +dev=es1 key=0x[0-9a-f]+ reg'
# shellcheck disable=SC2016
with "bpftrace, latency" bpftrace -e '
tracepoint:kofi_efa:kefa_post { @at[args->qpn, args->slot] = nsecs; }
tracepoint:kofi_efa:kefa_done /@at[args->qpn, args->slot]/ {
	@us[args->qpn] = hist((nsecs - @at[args->qpn, args->slot]) / 1000);
	delete(@at[args->qpn, args->slot]);
}
tracepoint:kofi_efa:kefa_error { @errors[args->err, args->status] = count(); }
tracepoint:kofi_efa:kefa_refused { @refused[args->ret] = count(); }
interval:s:5 { exit(); }
END { clear(@at); }'
says "shows a histogram" '@us\[[0-9]+\]'
says "counts failures by status" '@errors\[104, 9\]: [1-9]'
# shellcheck disable=SC2016
with "bpftrace, the core" bpftrace -e '
tracepoint:kofi:kofi_getinfo_entry { @entries[str(args->provider), str(args->why)] = count(); }
tracepoint:kofi:kofi_node_open { @opened = count(); }
tracepoint:kofi:kofi_node_close { @closed = count(); }
interval:s:5 { exit(); }'
says "counts objects" '@opened: [1-9]'
# There is no disk: this only checks that the events have these fields.
modprobe -a kofiblk kofiblk_srv
# shellcheck disable=SC2016
with "bpftrace, the block device" bpftrace -e '
tracepoint:kofiblk:kofiblk_command { @at[str(args->disk), args->queue, args->id] = nsecs; }
tracepoint:kofiblk:kofiblk_reply /@at[str(args->disk), args->queue, args->id]/ {
	@us[args->op] = hist((nsecs - @at[str(args->disk), args->queue, args->id]) / 1000);
	delete(@at[str(args->disk), args->queue, args->id]);
}
tracepoint:kofiblk_srv:kofiblk_srv_cmd { @commands[args->op] = count(); }
tracepoint:kofiblk_srv:kofiblk_srv_reply { @replies[args->status] = count(); }
interval:s:5 { exit(); }
END { clear(@at); }'
umount /host/sys/kernel/tracing
umount /host/sys/kernel/debug
rmmod kofi_efa_test
check "the provider goes" rmmod kofi_efa
check "es0 goes" host rdma link delete es0
check "es1 goes" host rdma link delete es1
