#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# alone: yes
# full: yes
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: fi_info rdma
# modules: efa ib_uverbs
# mem: 3G
# timeout: 2400
# kmemleak: yes
#
# rdm-protocols on the test kernel, which finds errors of memory and locking.
# shellcheck source=tests/qemu/guest/rdm-protocols.sh
. /bed/guest/rdm-protocols.sh
