#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# alone: yes
# full: yes
# guests: 2
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: fi_pingpong
# settings: DEBIAN13= LIBFABRIC=
# modules: efa ib_uverbs
# mem: 1536M
# timeout: 1200
#
# rdm-versions with libfabric of Debian testing, or of the root that LIBFABRIC names, in place of
# Debian 13's, and some messages of these two to each other.
# shellcheck source=tests/qemu/guest/rdm-versions.sh
. /bed/guest/rdm-versions.sh
