#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# A guest test must not skip a case that can't run on its kernel.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
ok "something # SKIP no reason"
