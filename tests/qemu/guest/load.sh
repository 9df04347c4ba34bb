#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12 stock-6.1 stock-newest
# more: yes
# modules: crc32c_generic
# timeout: 60
#
# Load each module twice on each kernel. Other tests load the suites.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

ours=$(grep -v '_kunit$' /bed/modules)

for round in first second; do
	for module in $ours; do
		check "$module, $round time" modprobe "$module"
	done
	for module in $(echo "$ours" | tac); do
		[ ! -d "/sys/module/$module" ] || modprobe -r "$module"
	done
	for module in $ours; do
		check "$module is gone, $round time" [ ! -d "/sys/module/$module" ]
	done
done
