#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12 stock-6.1
# more: stock-6.12
# full: stock-6.1
# installed: yes
# timeout: 90
# modules: configfs hmac sha256_generic crc32c_generic null_blk
#
# The files of make modules_install install suffice for a module that was built outside of the
# tree. They are in /installed, and the bed's own modules are removed.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

release=$(uname -r)
rm -rf "/lib/modules/$release/updates"
cp -r "/installed/lib/modules/$release/updates" "/lib/modules/$release/"
find "/lib/modules/$release/updates" -name '*.xz' -exec unxz {} +
check "depmod" depmod "$release"
check "make modules_install has let modprobe know the modules" \
	grep -q '^updates/kofi/.*kofi_efa.ko' "/installed/lib/modules/$release/modules.dep"

refuse "make modules_install reports no error" \
	grep -i -e error -e warning -e skipping /installed/install.log
check "make modules_install says that it has run depmod" \
	grep -q "^depmod: done for $release" /installed/install.log
check "make modules_install says that it has signed nothing" \
	grep -q "^The modules aren't signed: " /installed/install.log

check "the product is installed, and nothing else" [ \
	"$(cd "/lib/modules/$release/updates/kofi" && find . -name '*.ko' | sed 's,.*/,,' | sort | xargs)" = \
	"efasim.ko kofi.ko kofi_cm.ko kofi_efa.ko kofi_loop.ko kofi_msg.ko kofi_pingpong.ko kofi_rc.ko kofi_ulp.ko kofiblk.ko kofiblk_common.ko kofiblk_srv.ko" ]
for file in sbin/kofi_info sbin/kofiblk sbin/kofiblk-server sbin/kofiblk-config; do
	check "/usr/local/$file" [ -x "/installed/usr/local/$file" ]
done
pages=/installed/usr/local/share/man/man3
check "a call's manual page tells its result" grep -q '^.SH "RETURN"' "$pages/fi_cq_read.3kofi"
check "a call of sessions has a page" [ -e "$pages/kcm_connect.3kofi" ]
refuse "a structure has none" [ -e "$pages/fi_info.3kofi" ]

check "the core is loaded" modprobe kofi
refuse "without a provider the ULP isn't loaded" insmod /installed/my_ulp/my_ulp.ko
check "the log names the module to load" \
	sh -c 'dmesg | grep "my_ulp: no provider has reliable datagrams: try modprobe kofi_loop"'
check "a provider is loaded" modprobe kofi_loop
check "a ULP built outside the tree is loaded" insmod /installed/my_ulp/my_ulp.ko
check "the ULP has received its message" sh -c 'dmesg | grep "my_ulp: received: hello, fabric"'
check "the ULP is unloaded" rmmod my_ulp
check "nothing is left open" nothing_open

check "an EFA function loads the provider" \
	modprobe pci:v00001D0Fd0000EFA1sv00001D0Fsd0000EFA1bc02sc00i00
check "the provider was loaded" [ -d /sys/module/kofi_efa ]

# The commands of the systemd units, without systemd.
server=/installed/usr/local/sbin/kofiblk-server
check "udev's rules are installed" [ -e /installed/usr/local/lib/udev/rules.d/60-kofiblk.rules ]
for unit in kofiblk@ kofiblk kofiblk-server; do
	check "$unit.service runs what is installed" \
		grep -q '^ExecStart=/usr/local/sbin/kofiblk' "/installed/usr/local/lib/systemd/system/$unit.service"
done
mkdir -p /etc/kofiblk
truncate -s 16M /tmp/disk
cat > /etc/kofiblk/server.sh << END
mkdir exports/disk0 ports/1
echo /tmp/disk > exports/disk0/path
echo 7c9f5f6a-2b0e-4f6c-9d3a-0123456789ab > exports/disk0/uuid
echo 1 > exports/disk0/allow_any
echo 1 > exports/disk0/enable
echo 127.0.0.1 > ports/1/addr
echo loop > ports/1/prov
ln -s exports/disk0 ports/1/exports/disk0
echo 1 > ports/1/enable
END
config=/sys/kernel/config/kofiblk
for time in first second; do
	check "the server is started, the $time time" sh "$server" start
	check "the server exports the disk" [ "$(cat $config/exports/disk0/enable)$(cat $config/ports/1/enable)" = 11 ]
	refuse "starting it once more fails" sh "$server" start
	check "the server still exports the disk" [ "$(cat $config/exports/disk0/enable)$(cat $config/ports/1/enable)" = 11 ]
	check "the server stops" sh "$server" stop
	check "the server exports nothing any more" \
		[ -z "$(find $config/exports $config/ports -mindepth 1)" ]
done
check "stopping it again succeeds" sh "$server" stop
echo false >> /etc/kofiblk/server.sh
refuse "the server isn't started by a script that fails" sh "$server" start
check "the server exports nothing then" [ -z "$(find $config/exports $config/ports -mindepth 1)" ]
