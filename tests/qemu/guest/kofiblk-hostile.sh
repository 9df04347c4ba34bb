#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12
# more: yes
# host-root: yes
# host-tools: rdma python3
# modules: configfs hmac sha256_generic crc32c_generic
# timeout: 300
#
# Any host that can reach kofiblk's TCP port can send any data. Invalid messages are refused,
# and other clients are still served.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

CONFIG=/sys/kernel/config/kofiblk
# The same as in kofiblk-hostile.py.
SECRET=7d0bd6a4f5a13c1f0d2a5b8e9c6f4e3d2c1b0a99887766554433221100ffeedd
# FI_ADDR_EFA
FORMAT=12

# serve NAME...: export a file by these names, all but "hidden" on the port
serve()
{
	mkdir "$CONFIG/ports/1" || return
	echo 127.0.0.1 > "$CONFIG/ports/1/addr"
	for name in "$@"; do
		export_dir=$CONFIG/exports/$name
		mkdir "$export_dir" && echo /tmp/disk > "$export_dir/path" &&
			mkdir "$export_dir/clients/host" || return
		echo "$SECRET" > "$export_dir/clients/host/secret"
		refuse "an export without a uuid" sh -c "echo 1 > $export_dir/enable"
		cat /proc/sys/kernel/random/uuid > "$export_dir/uuid"
		echo 1 > "$export_dir/enable" || return
		[ "$name" = hidden ] || ln -s "$export_dir" "$CONFIG/ports/1/exports/$name"
	done
	echo 1 > "$CONFIG/ports/1/enable"
}

# The number of connections of the crowd, so that another one needs some to be refused.
few_sessions()
{
	echo 0 > "$CONFIG/ports/1/enable" && echo 20 > "$CONFIG/ports/1/max_sessions" &&
		echo 1 > "$CONFIG/ports/1/enable"
}

no_sessions()
{
	[ "$(grep -c client= /sys/kernel/debug/kofiblk_srv/sessions)" = 0 ]
}

gone()
{
	rm "$CONFIG/ports/1/exports/disk0" && rmdir "$CONFIG/ports/1" || return
	for name in "$@"; do
		rmdir "$CONFIG/exports/$name/clients/host" "$CONFIG/exports/$name" || return
	done
}

dd if=/dev/zero of=/tmp/disk bs=1M count=4 2> /dev/null
check "the soft device's module is loaded" modprobe efasim
ip link set lo up
check "a device is created" host rdma link add es0 type efasim netdev lo
check "the provider is loaded" modprobe kofi_efa
mkdir -p /sys/kernel/config
modprobe configfs
grep -q ' /sys/kernel/config ' /proc/mounts || mount -t configfs configfs /sys/kernel/config
check "the server is loaded" modprobe kofiblk_srv
check "exports and a port are created" serve disk0 hidden

refuse "changing a path in use is refused" \
	sh -c "echo /tmp/other > $CONFIG/exports/disk0/path"
refuse "an export's name with a blank" mkdir "$CONFIG/exports/a b"
for secret in short "correct horse battery staple, correct horse battery staple" \
	"${SECRET%?}" "${SECRET%??}"; do
	refuse "a secret like \"$secret\"" \
		sh -c "echo '$secret' > $CONFIG/exports/disk0/clients/host/secret"
done
refuse "the module while it is configured" rmmod kofiblk_srv

# shellcheck disable=SC2094 # another file
host python3 - 127.0.0.1 4420 $FORMAT < /bed/guest/kofiblk-hostile.py > /tmp/hostile 2>&1
tap hostile /tmp/hostile
grep -v "^ok\|^not ok\|^1\.\." /tmp/hostile | head -n 20 | sed 's/^/# /'
check "no session is left" wait_for 20 no_sessions

# The first session waits for the device, and sessions of the same export wait behind it. That
# takes half a minute, so it is only run on the other kernel.
crowd()
{
	check "the port accepts few sessions" few_sessions
	echo 20000 > /sys/kernel/debug/efasim/es0/faults/admin_timeout_ms
	echo 1 > /sys/kernel/debug/efasim/es0/faults/admin_timeout
	# shellcheck disable=SC2094 # another file
	host python3 - 127.0.0.1 4420 $FORMAT 16 < /bed/guest/kofiblk-hostile.py \
		> /tmp/crowd 2>&1
	tap crowd /tmp/crowd
	grep -v "^ok\|^not ok\|^1\.\." /tmp/crowd | head -n 20 | sed 's/^/# /'
	check "no session of the crowd is left" wait_for 60 no_sessions
}

uname -r | grep -q kofi-test || crowd
check "all exports and ports are removed" gone disk0 hidden
check "the server is unloaded" rmmod kofiblk_srv
check "nothing is left open" wait_for 5 nothing_open
modprobe -r kofi_efa
host rdma link delete es0
