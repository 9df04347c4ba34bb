#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# alone: yes
# full: yes
# mem: 1G
# host-root: yes
# host-tools: rdma fio
# modules: null_blk configfs hmac sha256_generic crc32c_generic
# settings: FABRIC=efa
# timeout: 400
#
# kofiblk-recovery.sh on fabric efa.
# shellcheck source=tests/qemu/guest/kofiblk-recovery.sh
. /bed/guest/kofiblk-recovery.sh
