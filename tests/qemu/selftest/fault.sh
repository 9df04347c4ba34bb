#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# A knob that is on and injects nothing, then one that is left on.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
fault_on failslab 100 space=2000000000
true
fault_off failslab
fault_on failslab 100 space=2000000000
