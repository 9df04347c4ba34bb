#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# host-root: yes
# host-tools: rdma ip python3
# modules: dummy hmac sha256_generic crc32c_generic crc32c_intel
# full: yes
# timeout: 600
#
# A client's server can send any data over TCP and over the fabric. Invalid messages are
# refused, end at most the session, and reach only memory that was registered for the server.
# With checksums, the client agrees with a server that computes them by their definition, and
# doesn't accept data with a wrong one.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

no_disks()
{
	[ -z "$(ls -d /sys/block/kofiblk* 2> /dev/null)" ]
}

check "the soft device's module is loaded" modprobe efasim
ip link set lo up
# A device on the loopback netdev only reaches this kernel.
check "a network is created" host ip link add d0 type dummy
check "the network has an address for the kernel's device" host ip address add 10.9.0.1/24 dev d0
check "the network has an address for the impostor" host ip address add 10.9.0.2/24 dev d0
check "the network is up" host ip link set d0 mtu 9000 up
check "a device is created" host rdma link add es0 type efasim netdev d0
check "the provider is loaded" modprobe kofi_efa
check "the client is loaded" modprobe kofiblk

# shellcheck disable=SC2094 # another file
host python3 - < /bed/guest/kofiblk-impostor.py > /tmp/impostor 2>&1
tap impostor /tmp/impostor
grep -v "^ok\|^not ok\|^1\.\." /tmp/impostor | head -n 30 | sed 's/^/# /'
check "no disk is left" no_disks
check "wrong checksums are in the log" \
	sh -c "dmesg | grep -q 'reached the client with a wrong checksum'"
check "the client's module is unloaded" rmmod kofiblk
check "nothing is left open" wait_for 5 nothing_open
check "the common modules are unloaded" rmmod kofiblk_common kofi_cm kofi_ulp
check "the provider is unloaded" modprobe -r kofi_efa
check "the device is deleted" host rdma link delete es0
host ip link delete d0
check "the soft device's module is unloaded" modprobe -r efasim
