#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# alone: yes
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: fi_info rdma
# modules: efa ib_uverbs
# settings: FULL=1
# mem: 3G
# timeout: 900
# kmemleak: yes
# full: yes
#
# rdm-libfabric with 10000 unexpected messages, and 50 processes.
# shellcheck source=tests/qemu/guest/rdm-libfabric.sh
. /bed/guest/rdm-libfabric.sh
