#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# One result is bad, and so is the exit status.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
check "good" true
check "broken on purpose" false
nobody_has_this
refuse "what can't be run" env nobody_has_this
exit 3
