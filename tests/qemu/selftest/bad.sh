#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# One result is bad, and so is the exit status.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
check "good" true
check "broken on purpose" false
exit 3
