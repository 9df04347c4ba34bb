#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# guests: 2
# timeout: 60
#
# Features that tests with two guests need: addresses, large frames, barriers.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

other=$([ "$ROLE" = a ] && echo b || echo a)

check "both guests are there" barrier start >/dev/null
check "the other guest answers" ping -c 3 -W 10 "$(ip_of "$other")"
check "frames of 9000 bytes get through" ping -c 3 -W 10 -s 8900 "$(ip_of "$other")"
check "the MTU is 9000" grep -qx 9000 /sys/class/net/eth0/mtu
values=$(barrier values "from-$ROLE")
check "barriers exchange values" [ "$values" = "from-a from-b" ]
