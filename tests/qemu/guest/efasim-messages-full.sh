#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# host-root: yes
# host-tools: rdma
# settings: MESSAGES=100000
# full: yes
# timeout: 1800
#
# efasim-messages with the checks of the test kernel.
# shellcheck source=tests/qemu/guest/efasim-messages.sh
. /bed/guest/efasim-messages.sh
