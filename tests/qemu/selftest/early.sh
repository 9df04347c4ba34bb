#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# It ends well, but before it has tested anything that could fail.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
check "good" true
[ "$ROLE" = nobody ] || exit 0
check "not reached" false
