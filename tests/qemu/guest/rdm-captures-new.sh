#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# alone: yes
# full: test
# cmdline: memmap=32M$0x20000000
# host-root: yes
# settings: LIBFABRIC=
# modules: efa ib_uverbs
# mem: 3G
# timeout: 600
#
# rdm-captures with libfabric and rdma-core of Debian testing, or of the root that LIBFABRIC names.
# shellcheck source=tests/qemu/guest/rdm-captures.sh
. /bed/guest/rdm-captures.sh
