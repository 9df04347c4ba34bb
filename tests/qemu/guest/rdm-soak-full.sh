#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# alone: yes
# full: yes
# host-root: yes
# host-tools: rdma
# settings: SECONDS_EACH=120 MAX_LEN=4194304
# mem: 3G
# timeout: 5400
# kmemleak: yes
#
# rdm-soak with messages of 4 MiB, and two minutes for each part.
# shellcheck source=tests/qemu/guest/rdm-soak.sh
. /bed/guest/rdm-soak.sh
