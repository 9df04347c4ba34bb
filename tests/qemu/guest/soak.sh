#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test stock-6.12
# more: yes
# timeout: 120
#
# 16 threads exchange messages, and every byte is checked: first undisturbed, then while devices
# are removed and brought back.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

REMOVALS=$(at_length && echo 16 || echo 4)
CALM=$(at_length && echo 3 || echo 2)

present()
{
	echo "$2" > "/sys/kernel/debug/kofi_loop/$1/present"
}

# all_open: each group of four threads has opened its two fabrics, and traffic begins
all_open()
{
	[ "$(grep -c '^fabric' /sys/kernel/debug/kofi/objects)" = 8 ]
}

report()
{
	dmesg | grep 'kofi_soak:' | tail -n 1 | sed 's/.*kofi_soak: //'
}

# number WORDS: print the number before these words in the report
number()
{
	report | sed -n "s/.*[ ,]\([0-9]*\) $1.*/\1/p"
}

check "16 threads, $CALM s" modprobe kofi_soak threads=16 seconds="$CALM"
note "$(report)"
check "no round was ended by a removal" [ "$(number 'rounds ended')" = 0 ]
check "invalidated keys were refused" \
	[ "$(cat /sys/kernel/debug/kofi_loop/loop*/refused | sort -n | tail -n 1)" -gt 0 ]
check "nothing is open after it" nothing_open
check "the module goes" rmmod kofi_soak

# Run until told to end. The priority is raised because the threads leave little CPU time.
renice -n -10 $$ > /dev/null
modprobe kofi_soak threads=16 seconds=90 &
soak=$!
# A thread ends if its device is absent when it is opened.
check "all ends are open" wait_for 60 all_open
removals=0
while [ $removals -lt "$REMOVALS" ] && kill -0 $soak; do
	for device in loop0 loop1; do
		usleep 300000
		present $device 0
		removals=$((removals + 1))
		usleep 100000
		present $device 1
	done
done
check "the threads are still running" kill -0 $soak
echo 0 > /sys/module/kofi_soak/parameters/seconds
check "16 threads, $removals removals" wait $soak
note "$(report)"
check "removals ended rounds" [ "$(number 'rounds ended')" -ge "$removals" ]
check "nothing is open after it" nothing_open
check "the module goes" rmmod kofi_soak
