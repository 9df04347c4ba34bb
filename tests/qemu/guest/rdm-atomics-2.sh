#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# alone: yes
# full: yes
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: rdma
# modules: efa ib_uverbs
# settings: DEBIAN13=
# mem: 3G
# timeout: 1200
#
# rdm-atomics with libfabric and rdma-core of Debian 13, unpacked on the host.
# shellcheck source=tests/qemu/guest/rdm-atomics.sh
. /bed/guest/rdm-atomics.sh
