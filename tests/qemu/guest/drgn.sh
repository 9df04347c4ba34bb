#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# more: yes
# host-root: yes
# host-tools: rdma drgn
# mem: 1G
# timeout: 300
#
# tools/kefa_dump.py shows the endpoints of both fabrics while pingpong uses them.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

cp "/lib/modules/$(uname -r)/updates/kofi_efa.ko" /bed/tools/kefa_dump.py /tmp/shared

# dumped PATTERN...: check that the script runs, and prints lines of these patterns
dumped()
{
	host drgn -q -s /tmp/shared/kofi_efa.ko /tmp/shared/kefa_dump.py es0 > /tmp/dump 2>&1 || return
	for pattern in "$@"; do
		grep -qE "$pattern" /tmp/dump || return
	done
}

# dump WHAT PATTERN...: operations can have ended while the script looks for them
dump()
{
	dump_what=$1
	shift
	check "$dump_what" wait_for 1 dumped "$@"
	sed 's/^/# /' /tmp/dump
}

ip link set lo up
modprobe efasim
modprobe kofi_efa
check "es0 comes" host rdma link add es0 type efasim netdev lo
dumped nothing
check "a device without endpoints is printed" [ "$(cat /tmp/dump)" = es0 ]
# Long messages, as short ones take no operation; 32 measurements, as each ends soon.
sizes=100000,100000,100000,100000
sizes=$sizes,$sizes
sizes=$sizes,$sizes
modprobe kofi_pingpong prov=efa fabric=efa tagged=1 sizes=$sizes,$sizes iterations=1000000
dump "peers, operations and slots of fabric efa are printed" '^  efa qp [0-9]+: ENABLED ' \
	'^    peer [0-9]+ READY .* connid 0x[0-9a-f]+ addr [0-9]+ next [1-9]' \
	'^    op [0-9]+ [A-Z_]+ LONGCTS_TAGRTM_PKT peer [0-9]+ ' '^    ops: .* [1-9][0-9]* posted receives' \
	'^    send slot [0-9]+ POSTED PACKET .* peer [0-9]+ ' '^    receive slots: .* [1-9][0-9]* POSTED'
check "debugfs has as many endpoints" \
	[ "$(grep -c '^  ep qp' /sys/kernel/debug/kofi_efa/es0)" = "$(grep -c '^  efa qp' /tmp/dump)" ]
check "pingpong ends" rmmod kofi_pingpong
modprobe kofi_pingpong prov=efa fabric=efa-direct iterations=1000000
dump "operations of fabric efa-direct are printed" '^  efa-direct qp [0-9]+: ENABLED ' \
	'^    op [0-9]+ POSTED ' '^    ops: [1-9][0-9]* posted receives'
check "pingpong ends" rmmod kofi_pingpong
check "the provider goes" rmmod kofi_efa
check "es0 goes" host rdma link delete es0
