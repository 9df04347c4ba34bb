#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# more: yes
# host-root: yes
# host-tools: python3 setpriv
# timeout: 90
#
# kofi_info on a real kernel: its output, and its error messages.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

# status STATUS ARGUMENT...: check kofi_info's exit status; its output goes to said
status()
{
	want=$1
	shift
	tool kofi_info "$@" > said 2>&1
	have=$?
	[ $have = "$want" ] || { note "status $have"; cat said; return 1; }
}

# says TEXT: check the output for a text
says()
{
	grep -qF -- "$1" said || { cat said; return 1; }
}

check "without the module: ENODEV" status 19
check "and what to do" says "modprobe kofi"
modprobe kofi
# The host's /sys has no debugfs yet.
check "without debugfs: ENOENT" status 2
check "and what to do" says "mount -t debugfs"
mount -o bind /sys/kernel/debug /host/sys/kernel/debug
check "without a provider: ENODATA" status 61 -p loop
check "and how to have one" says "no provider is loaded (modprobe kofi-prov-loop"
check "which does it" modprobe kofi-prov-loop

check "the short form" status 0
cat said
check "names the provider" says "provider: loop"
check "and both domains" [ "$(grep -c 'domain: loop[01]' said)" = 2 ]
check "the long form" status 0 -v
check "says what the core says" [ "$(grep -v '^---' said)" = "$(cat /sys/kernel/debug/kofi/info)" ]
check "JSON" status 0 --json -d loop1
check "of one of them" [ "$(grep -c '"name": "loop1"' said)" = 2 ]
check "an endpoint type that isn't there" status 61 -t FI_EP_DGRAM
check "the providers" status 0 -l
cat said
check "with their modules" says "module: kofi_loop"
check "the versions" status 0 --version
check "of the module too" says "kofi: 0.1"

echo 0 > /sys/kernel/debug/kofi_loop/loop0/present
check "without a device" status 0
check "the other is left" [ "$(grep domain said)" = "    domain: loop1" ]

check "as somebody else: EACCES" [ "$(host setpriv --reuid 65534 --clear-groups /tmp/shared/kofi_info 2>&1; echo $?)" = "kofi_info: /sys/kernel/debug/kofi/providers: only root may read this
13" ]
umount /host/sys/kernel/debug
