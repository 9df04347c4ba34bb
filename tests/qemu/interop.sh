# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# For the tests with libfabric: the kernel's endpoint is on the soft device es0, and the process
# has a PCI function of the soft device.

# shellcheck disable=SC2034 # used by the tests
SIM=/sys/kernel/debug/efasim
EFA=/sys/kernel/debug/kofi_efa/es0
ECHO=/sys/module/kofi_echo/parameters
OUT=/tmp/shared
# Where the host has libfabric of Debian 13.
DEBIAN13=${DEBIAN13:-}

# counted WORD: the number behind it in the endpoint's lines of debugfs
counted()
{
	awk -v word="$1" '{ for (i = 1; i < NF; i++) if ($i == word) { print $(i + 1); exit } }' \
		"$EFA"
}

# counted_of LINE WORD: the same in one line
counted_of()
{
	awk -v line="$1" -v word="$2" '$1 == line {
		for (i = 2; i < NF; i++) if ($i == word) { print $(i + 1); exit } }' "$EFA"
}

# theirs COMMAND...: a program that uses libfabric
theirs()
{
	if [ "$DEBIAN13" ]; then
		chroot "/host$DEBIAN13" /usr/bin/env PATH=/usr/bin "$@"
	else
		host "$@"
	fi
}

# A root of its own, with the guest's files where it looks for them.
set_up_theirs()
{
	[ "$DEBIAN13" ] || mount -o bind /sys/kernel/debug /host/sys/kernel/debug
	[ "$DEBIAN13" ] || return 0
	for dir in proc sys dev sys/kernel/debug; do
		mount -o bind "/$dir" "/host$DEBIAN13/$dir"
	done
	mount -t tmpfs tmpfs "/host$DEBIAN13/tmp"
	mkdir -p "/host$DEBIAN13$OUT"
	mount -o bind $OUT "/host$DEBIAN13$OUT"
}

# talk WHAT ARGUMENT...: a process of libfabric's does so
talk()
{
	talk_what=$1
	shift
	theirs $OUT/fi_echo efa_0-rdm "$(cat $ECHO/name)" "$@" > $OUT/log 2>&1
	talk_status=$?
	check "$talk_what" [ $talk_status = 0 ]
	[ $talk_status = 0 ] || sed 's/^/# /' $OUT/log
}

# set_up: both sides have a device
set_up()
{
	export FI_EFA_ENABLE_SHM_TRANSFER=0 FI_EFA_FORK_SAFE=0 FI_ECHO_COUNTERS=$EFA
	mkdir -p /dev/shm
	cp /bed/tools/fi_echo $OUT
	set_up_theirs
	# libfabric 2.1 divides the depth by the segments, posts as many receives at once, and
	# has memory for 8192 of them.
	modprobe efasim pci=lo pci_mem=0x20000000 max_rq_depth=16384
	modprobe efa
	modprobe ib_uverbs
	host rdma link add es0 type efasim netdev lo
	modprobe kofi_efa
	check "the process has a device" wait_for 20 [ -e /dev/infiniband/uverbs0 ]
	note "$(theirs fi_info --version | head -n 1)"
}

# tear_down: all modules go
tear_down()
{
	check "unload the provider" rmmod kofi_efa
	check "delete es0" host rdma link delete es0
	check "unload the driver" rmmod efa
	check "unload" rmmod efasim
	check "unload the core" rmmod kofi
}
