#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# guests: 2
# alone: yes
# more: yes
# mem: 1G
# host-root: yes
# host-tools: rdma
# modules: null_blk configfs hmac sha256_generic crc32c_generic crc32c_intel libcrc32c
# settings: FABRIC=efa
# timeout: 600
#
# kofiblk.sh on fabric efa.
# shellcheck source=tests/qemu/guest/kofiblk.sh
. /bed/guest/kofiblk.sh
