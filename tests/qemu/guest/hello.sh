#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1 stock-newest
# more: stock-6.12 stock-6.1 stock-newest
# timeout: 60
#
# The sample, and loading of its provider: a provider that is requested by name is loaded, and
# can't be unloaded while an object of it is open.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

refuse "without a provider there is nothing to talk over" modprobe kofi_hello
refuse "a provider that doesn't exist can't be had" modprobe kofi_hello provider=nobody
check "no provider was loaded" [ ! -d /sys/module/kofi_loop ]

check "hello asks for a provider by name" modprobe kofi_hello provider=loop
check "which was loaded" [ -d /sys/module/kofi_loop ]
check "and carried the message" sh -c 'dmesg | grep "kofi_hello: received .Hello, fabric!. on loop0 of provider loop"'
check "the sample goes" rmmod kofi_hello
check "any provider will do" modprobe kofi_hello
check "the sample goes again" rmmod kofi_hello
