#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12
# alone: yes
# more: stock-6.12
# full: test
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: rdma
# modules: efa ib_uverbs
# settings: DEBIAN13=
# mem: 3G
# timeout: 900
# kmemleak: yes
#
# rdm-libfabric with libfabric and rdma-core of Debian 13, unpacked on the host.
# shellcheck source=tests/qemu/guest/rdm-libfabric.sh
. /bed/guest/rdm-libfabric.sh
