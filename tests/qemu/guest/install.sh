#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12 stock-6.1
# more: stock-6.1
# installed: yes
# timeout: 60
#
# What make modules_install install put there is enough for a module of one's own, which
# was built outside the tree: /installed holds it, and none of the bed's modules is left.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

release=$(uname -r)
rm -rf "/lib/modules/$release/updates"
cp -r "/installed/lib/modules/$release/updates" "/lib/modules/$release/"
find "/lib/modules/$release/updates" -name '*.xz' -exec unxz {} +
check "depmod" depmod "$release"

check "the product is installed, and nothing else" [ \
	"$(cd "/lib/modules/$release/updates/kofi" && find . -name '*.ko' | sed 's,.*/,,' | sort | xargs)" = \
	"efasim.ko kofi.ko kofi_efa.ko kofi_loop.ko kofi_pingpong.ko kofiblk.ko kofiblk_common.ko kofiblk_srv.ko" ]
for file in sbin/kofi_info sbin/kofiblk; do
	check "/usr/local/$file" [ -x "/installed/usr/local/$file" ]
done

check "the core" modprobe kofi
refuse "without a provider there is nothing to talk over" insmod /installed/my_ulp/my_ulp.ko
check "and the log says what to do" \
	sh -c 'dmesg | grep "my_ulp: no provider has reliable datagrams: try modprobe kofi_loop"'
check "a provider" modprobe kofi_loop
check "a module of one's own" insmod /installed/my_ulp/my_ulp.ko
check "received its message" sh -c 'dmesg | grep "my_ulp: received: hello, fabric"'
check "and goes" rmmod my_ulp
check "nothing is left open" nothing_open
