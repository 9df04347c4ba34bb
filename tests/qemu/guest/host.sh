#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# more: yes
# host-root: yes
# host-tools: python3
# timeout: 120
#
# Programs of the host run in the guest, on the guest's kernel.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

release=$(host python3 -c 'import os; print(os.uname().release)')
check "the host's python3 sees this kernel" [ "$release" = "$(uname -r)" ]
refuse "the host's files can't be changed" touch /host/etc/kofi-bed
host touch /tmp/shared/file
check "/tmp/shared is the same directory for both" [ -e /tmp/shared/file ]

# See bed/boot.py for the reason; the guest may crash with it, once in some hundred boots.
check "the CPU's features are known" grep -qw cx8 /proc/cpuinfo
refuse "the CPU has no cmpxchg16b" grep -qw cx16 /proc/cpuinfo
