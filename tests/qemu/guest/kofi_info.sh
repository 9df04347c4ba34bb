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
check "a capability that doesn't exist is wrong usage" status 2 -c FI_RAM
check "--why: ENODATA" status 61 --why -c FI_FENCE
check "--why names the capability" says "loop, loop, loop1: --caps has FI_FENCE, the entry lacks it"
check "the versions are printed" status 0 --version
check "the module's version is printed" says "kofi: 0.1"

echo 0 > /sys/kernel/debug/kofi_loop/loop0/present
check "entries are printed after a device was removed" status 0
check "only the other domain is printed" [ "$(grep domain said)" = "    domain: loop1" ]

check "as another user: EACCES" [ "$(host setpriv --reuid 65534 --clear-groups /tmp/shared/kofi_info 2>&1; echo $?)" = "kofi_info: /sys/kernel/debug/kofi/providers: only root may read this
13" ]
umount /host/sys/kernel/debug

# A ULP's hints.
TRACE=/sys/kernel/tracing
echo 'module kofi +p' > /sys/kernel/debug/dynamic_debug/control
echo 1 > $TRACE/events/kofi/enable
modprobe kofi_pingpong prov=nonsense
sleep 1
modprobe -r kofi_pingpong
modprobe kofi_pingpong prov=loop domain=loop7
sleep 1
modprobe -r kofi_pingpong
check "the log names the provider that is missing" \
	sh -c 'dmesg | grep "kofi: no provider is called nonsense, and modprobe kofi-prov-nonsense failed"'
check "the log says so once" [ "$(dmesg | grep -c 'no provider is called nonsense')" = 1 ]
check "the log says which field of an entry doesn't match" \
	sh -c 'dmesg | grep "kofi: fi_getinfo: provider loop, fabric loop, domain loop1: fi_domain_attr.name is loop1, the hints have loop7"'
check "the trace says which field of an entry doesn't match" \
	grep -q 'kofi_getinfo_entry: provider=loop fabric=loop domain=loop1 mismatch=fi_domain_attr.name offer=loop1 hint=loop7' $TRACE/trace
check "the trace says which provider isn't there" \
	grep -q 'kofi_getinfo_provider: provider=nonsense ret=-19' $TRACE/trace
