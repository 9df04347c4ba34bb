#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# guests: 2
# lives: 3
# drive: 8M
# timeout: 400
# more: yes
#
# Guests are killed and come back, each with its drive and its address. Guests that wait for
# them don't notice.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

DRIVE_HAS=

# Written data is on the drive, though it wasn't flushed.
drive_write()
{
	printf '%-4096s' "$1" | dd of=/dev/vda bs=4096 oflag=direct 2> /dev/null
}

drive_read()
{
	DRIVE_HAS=$(dd if=/dev/vda bs=4096 count=1 iflag=direct 2> /dev/null |
		tr -d '\0' | sed 's/ *$//')
}

drive_size()
{
	[ "$(cat /sys/block/vda/size)" = $((8 * 2048)) ]
}

# lives NAME A B: check that both guests run in these lives, and wait for each other
lives()
{
	lives_seen=$(barrier "$1" "$LIFE")
	check "$1: lives $lives_seen" [ "$lives_seen" = "$2 $3" ]
	barrier "$1-said" > /dev/null
}

if [ "$LIFE" = 1 ]; then
	former=
else
	former=$ROLE$((LIFE - 1))
fi
check "the drive has its size" drive_size
drive_read
check "the drive has the data of the previous life: $DRIVE_HAS" [ "$DRIVE_HAS" = "$former" ]
check "the drive is written to" drive_write "$ROLE$LIFE"

case $ROLE$LIFE in
a1)
	lives begun 1 1
	refuse "killing an unknown guest is refused" kill_guest c
	check "b is killed" kill_guest b
	lives back 1 2
	check "b answers" ping -c 3 -q "$(ip_of b)"
	barrier answered > /dev/null
	barrier killed
	not_ok "a wasn't killed"
	;;
b1)
	lives begun 1 1
	barrier killed
	not_ok "b wasn't killed"
	;;
b2)
	lives back 1 2
	barrier answered > /dev/null
	usleep 500000
	check "a is killed" kill_guest a
	lives again 2 2
	lives end 3 2
	;;
a2)
	lives again 2 2
	kill_guest a
	not_ok "a didn't kill itself"
	;;
a3)
	check "b answers once more" ping -c 3 -q "$(ip_of b)"
	refuse "killing a guest in its last life is refused" kill_guest a
	lives end 3 2
	;;
*)
	not_ok "guest $ROLE has life $LIFE"
	;;
esac
