#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make demo: what kOFI does, on a kernel as the distribution ships it. Each step
# is shown before it is done and must succeed.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

step()
{
	echo
	echo "\$ $*"
	check "$*" "$@"
}

step uname -r
step modprobe kofi
step lsmod
step modprobe -r kofi
