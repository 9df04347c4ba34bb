#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1 stock-newest
# more: test stock-6.12 stock-newest
# full: stock-6.1
# timeout: 60
#
# The sample, and loading of its provider: a provider that is requested by name is loaded, and
# can't be unloaded while an object of it is open.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

refuse "without a provider the sample isn't loaded" modprobe kofi_hello
refuse "an unknown provider can't be loaded" modprobe kofi_hello provider=nobody
check "no provider was loaded" [ ! -d /sys/module/kofi_loop ]

check "the sample is loaded with a provider's name" modprobe kofi_hello provider=loop
check "the provider was loaded" [ -d /sys/module/kofi_loop ]
check "the provider has carried the message" sh -c 'dmesg | grep "kofi_hello: received .Hello, fabric!. on loop0 of provider loop"'
check "the sample is unloaded" rmmod kofi_hello
check "the sample is loaded with any provider" modprobe kofi_hello
check "the sample is unloaded again" rmmod kofi_hello
