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
# Root directories on the host with libfabric of Debian 13, and of Debian testing or another one.
DEBIAN13=${DEBIAN13:-}
LIBFABRIC=${LIBFABRIC:-}
# The one that is used; empty for the host's own.
ROOT=${LIBFABRIC:-$DEBIAN13}

# counted WORD: print the number after a word in the endpoint's debugfs file
counted()
{
	awk -v word="$1" '{ for (i = 1; i < NF; i++) if ($i == word) { print $(i + 1); exit } }' \
		"$EFA"
}

# counted_of LINE WORD: print the number after a word in a line that begins with LINE
counted_of()
{
	awk -v line="$1" -v word="$2" '$1 == line {
		for (i = 2; i < NF; i++) if ($i == word) { print $(i + 1); exit } }' "$EFA"
}

# theirs COMMAND...: run a program that uses libfabric
theirs()
{
	if [ "$ROOT" ]; then
		chroot "/host$ROOT" /usr/bin/env PATH=/usr/local/bin:/usr/bin "$@"
	else
		host "$@"
	fi
}

# set_up_theirs: mount what libfabric's processes need in their roots
set_up_theirs()
{
	[ "$ROOT" ] || mount -o bind /sys/kernel/debug /host/sys/kernel/debug
	for root in $DEBIAN13 $LIBFABRIC; do
		for dir in proc sys dev sys/kernel/debug; do
			mount -o bind "/$dir" "/host$root/$dir"
		done
		mount -t tmpfs tmpfs "/host$root/tmp"
		mkdir -p "/host$root$OUT"
		mount -o bind $OUT "/host$root$OUT"
	done
}

# talk WHAT ARGUMENT...: run fi_echo with these arguments against the kernel's endpoint
talk()
{
	talk_what=$1
	shift
	theirs $OUT/fi_echo efa_0-rdm "$(cat $ECHO/name)" "$@" > $OUT/log 2>&1
	talk_status=$?
	check "$talk_what" [ $talk_status = 0 ]
	[ $talk_status = 0 ] || sed 's/^/# /' $OUT/log
}

# set_up_process NETDEV [PARAMETER=VALUE...]: give libfabric's processes a PCI function on a netdev
set_up_process()
{
	set_up_netdev=$1
	shift
	# Registering the memory of 16384 receives takes a process in a guest several seconds.
	export FI_EFA_ENABLE_SHM_TRANSFER=0 FI_EFA_FORK_SAFE=0 FI_EFA_RX_SIZE=1024
	mkdir -p /dev/shm
	set_up_theirs
	modprobe efasim pci="$set_up_netdev" pci_mem=0x20000000 "$@"
	modprobe efa
	modprobe ib_uverbs
	check "the process has a device" wait_for 20 [ -e /dev/infiniband/uverbs0 ]
}

# set_up [PARAMETER=VALUE...]: create a device for each side, and load what both need
set_up()
{
	export FI_ECHO_COUNTERS=$EFA
	cp /bed/tools/fi_echo $OUT
	set_up_process lo "$@"
	host rdma link add es0 type efasim netdev lo
	modprobe kofi_efa
	note "$(theirs fi_info --version | head -n 1)"
}

# tear_down: unload all modules
tear_down()
{
	check "unload the provider" rmmod kofi_efa
	check "delete es0" host rdma link delete es0
	check "unload the driver" rmmod efa
	check "unload" rmmod efasim
	check "unload the core" rmmod kofi
}
