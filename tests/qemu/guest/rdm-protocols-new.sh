#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# alone: yes
# full: yes
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: rdma
# modules: efa ib_uverbs
# settings: LIBFABRIC=
# mem: 3G
# timeout: 2400
#
# rdm-protocols with libfabric and rdma-core of Debian testing, or of the root that LIBFABRIC names.
# shellcheck source=tests/qemu/guest/rdm-protocols.sh
. /bed/guest/rdm-protocols.sh
