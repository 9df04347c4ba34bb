#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# guests: 2
# alone: yes
# lives: 6
# drive: 64M
# drive-writes: 40
# mem: 1G
# host-root: yes
# host-tools: rdma fio
# modules: configfs hmac sha256_generic crc32c_generic crc32c_intel libcrc32c
# kmemleak: yes
# full: yes
# settings: FABRIC=efa
# timeout: 1200
#
# kofiblk-crash.sh on fabric efa.
# shellcheck source=tests/qemu/guest/kofiblk-crash.sh
. /bed/guest/kofiblk-crash.sh
