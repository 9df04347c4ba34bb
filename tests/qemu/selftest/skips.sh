#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What a guest test can't do there, it must not pass over.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
ok "something # SKIP no reason"
