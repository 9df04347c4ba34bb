#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# full: yes
# host-root: yes
# host-tools: rdma ip
# modules: dummy
# cmdline: swiotlb=force
# timeout: 300
#
# The conformance test with bounce buffers for all DMA mappings, which detects a missing map,
# sync or unmap.
# shellcheck source=tests/qemu/guest/efasim-conformance.sh
. /bed/guest/efasim-conformance.sh
