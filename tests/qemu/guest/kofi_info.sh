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
check "the error message names the command to run" says "modprobe kofi"
modprobe kofi
# The host's /sys has no debugfs yet.
check "without debugfs: ENOENT" status 2
check "the error message names the command to run" says "mount -t debugfs"
mount -o bind /sys/kernel/debug /host/sys/kernel/debug
check "without a provider: ENODATA" status 61 -p loop
check "the error message names the module to load" says "no provider is loaded (modprobe kofi-prov-loop"
check "the named module is loaded" modprobe kofi-prov-loop

check "the short form is printed" status 0
cat said
check "the short form names the provider" says "provider: loop"
check "the short form names both domains" [ "$(grep -c 'domain: loop[01]' said)" = 2 ]
check "the long form is printed" status 0 -v
check "the long form is the text of the core" [ "$(grep -v '^---' said)" = "$(cat /sys/kernel/debug/kofi/info)" ]
check "JSON" status 0 --json -d loop1
check "JSON has only the requested domain" [ "$(grep -c '"name": "loop1"' said)" = 2 ]
check "an endpoint type without entries: ENODATA" status 61 -t FI_EP_DGRAM
check "the list of providers is printed" status 0 -l
cat said
check "the list names the modules" says "module: kofi_loop"
check "the versions are printed" status 0 --version
check "the module's version is printed" says "kofi: 0.1"

echo 0 > /sys/kernel/debug/kofi_loop/loop0/present
check "entries are printed after a device was removed" status 0
check "only the other domain is printed" [ "$(grep domain said)" = "    domain: loop1" ]

check "as another user: EACCES" [ "$(host setpriv --reuid 65534 --clear-groups /tmp/shared/kofi_info 2>&1; echo $?)" = "kofi_info: /sys/kernel/debug/kofi/providers: only root may read this
13" ]
umount /host/sys/kernel/debug
