#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Guest b is killed after it went wrong, comes back, and then dies although nobody
# asked for that.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
case $ROLE$LIFE in
b1)
	modprobe kofi_bed_kunit fail=warn
	check "broken in a life that is killed" false
	barrier broken
	barrier killed
	;;
b2)
	check "b is back: $(barrier back "$LIFE")" true
	echo c > /proc/sysrq-trigger
	;;
a1)
	barrier broken
	check "b is killed" kill_guest b
	barrier back
	barrier dead
	check "the dead is killed" kill_guest b
	;;
esac
