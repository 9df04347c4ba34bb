#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# more: yes
# host-root: yes
# host-tools: rdma ip
# modules: dummy
# cmdline: swiotlb=force
# timeout: 300
#
# The conformance test where every DMA mapping is a bounce buffer: a missing map,
# sync or unmap shows.
# shellcheck source=tests/qemu/guest/efasim-conformance.sh
. /bed/guest/efasim-conformance.sh
