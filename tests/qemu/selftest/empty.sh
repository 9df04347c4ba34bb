#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Nothing is tested at all.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
note "no result"
