# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# Functions for the tests of kofiblk. Guest a exports disks, and the others attach them. The
# server's functions are called only in guest a, and the client's only in the others. FABRIC is the
# fabric of both, if it isn't the default one.

CONFIG=/sys/kernel/config/kofiblk
SIM=/sys/kernel/debug/efasim/es0
# shellcheck disable=SC2034 # used by the tests
SECRET=7d0bd6a4f5a13c1f0d2a5b8e9c6f4e3d2c1b0a99887766554433221100ffeedd
# shellcheck disable=SC2034
OTHER_SECRET=00112233445566778899aabbccddeeff7d0bd6a4f5a13c1f0d2a5b8e9c6f4e3d
# The client's machine keeps this id after a crash.
HOST_ID=3f1c7a52-9d44-4b0e-8f7b-5e2d6c8a9b10
UUID=7c9f5f6a-2b0e-4f6c-9d3a-0123456789ab
SERVER=$(ip_of a):4420
SIDE=$([ "$ROLE" = a ] && echo server || echo client)

# meet NAME: wait at a barrier for the other guests
meet()
{
	barrier "$1" > /dev/null || exit 1
}

# at SIDE COMMAND...: run it only at the server, or only at the client
at()
{
	at_side=$1
	shift
	[ "$at_side" != "$SIDE" ] || "$@"
}

# device_up: create a soft device on a network that reorders, delays and drops packets
device_up()
{
	host rdma link add es0 type efasim netdev eth0 || return
	while read -r knob value; do
		echo "$value" > "$SIM/faults/$knob"
	done << END
seed 7
reorder 200
delay 20
drop 2
END
}

device_gone()
{
	[ ! -e /sys/class/infiniband/es0 ]
}

# device_down: unplug the device, and wait until its users have closed it
device_down()
{
	echo 1 > "$SIM/remove" && wait_for 20 device_gone
}

# device_back: create the device again, which fails until the name is free
device_back()
{
	wait_for 20 device_up
}

load_fabric()
{
	check "the soft device's module is loaded" modprobe efasim
	check "a device is created" device_up
	check "the provider is loaded" modprobe kofi_efa
}

unload_fabric()
{
	check "the common modules are unloaded" rmmod kofiblk_common kofi_cm kofi_ulp
	check "the provider is unloaded" modprobe -r kofi_efa
	check "the device is deleted" host rdma link delete es0
	check "the soft device's module is unloaded" modprobe -r efasim
}

# --- the server ---

# configfs_up: mount configfs, after a module with a subsystem was loaded
configfs_up()
{
	mkdir -p /sys/kernel/config
	grep -q ' /sys/kernel/config ' /proc/mounts ||
		mount -t configfs configfs /sys/kernel/config
}

# ram_disk NAME MEGABYTES: create a null_blk with memory, as /dev/NAME
ram_disk()
{
	modprobe null_blk nr_devices=0
	configfs_up || return
	ram_dir=/sys/kernel/config/nullb/$1
	mkdir "$ram_dir" || return
	for setting in size=$2 memory_backed=1 discard=1 blocksize=512 power=1; do
		echo "${setting#*=}" > "$ram_dir/${setting%%=*}" || return
	done
	ram_name=nullb$(cat "$ram_dir/index")
	[ -e "/dev/$1" ] || ln -s "$ram_name" "/dev/$1"
}

# ram_gone NAME: remove the null_blk
ram_gone()
{
	ram_dir=/sys/kernel/config/nullb/$1
	echo 0 > "$ram_dir/power" && rmdir "$ram_dir" && rm -f "/dev/$1" || return
	for ram_dir in /sys/kernel/config/nullb/*/; do
		[ ! -d "$ram_dir" ] || return 0
	done
	rmmod null_blk
}

# There is no udev, so dmsetup creates /dev/mapper/NAME itself.
dmsetup()
{
	host env DM_DISABLE_UDEV=1 dmsetup "$@"
}

# slow_disk [MS]: create /dev/mapper/slow, a disk that reads at once and writes later, 15 s unless MS
# is given
slow_disk()
{
	ram_disk n3 8 && modprobe dm_delay && dmsetup create slow --table "$(slow_table "${1:-15000}")"
}

slow_table()
{
	echo "0 16384 delay /dev/n3 0 0 /dev/n3 0 $1"
}

slow_gone()
{
	dmsetup remove slow && ram_gone n3 && rmmod dm_delay
}

# export_add NAME PATH [ATTRIBUTE=VALUE...]: create and enable an export
export_add()
{
	export_dir=$CONFIG/exports/$1
	mkdir "$export_dir" || return
	echo "$2" > "$export_dir/path" || return
	cat /proc/sys/kernel/random/uuid > "$export_dir/uuid"
	shift 2
	for setting in "$@"; do
		echo "${setting#*=}" > "$export_dir/${setting%%=*}" || return
	done
	echo 1 > "$export_dir/enable"
}

# allow EXPORT CLIENT [SECRET]: allow a client to attach an export
allow()
{
	mkdir "$CONFIG/exports/$1/clients/$2" || return
	[ -z "$3" ] || echo "$3" > "$CONFIG/exports/$1/clients/$2/secret"
}

# port_up EXPORT-OR-ATTRIBUTE=VALUE...: create and enable a port with these
port_up()
{
	port_dir=$CONFIG/ports/1
	mkdir "$port_dir" && ip_of a > "$port_dir/addr" && echo 4420 > "$port_dir/port" ||
		return
	[ -z "$FABRIC" ] || echo "$FABRIC" > "$port_dir/fabric" || return
	for item in "$@"; do
		case $item in
		*=*) echo "${item#*=}" > "$port_dir/${item%%=*}" || return ;;
		*) ln -s "$CONFIG/exports/$item" "$port_dir/exports/$item" || return ;;
		esac
	done
	echo 1 > "$port_dir/enable"
}

# serve_one [PATH [ATTRIBUTE=VALUE...]]: export PATH or /dev/n0 as disk0 to any client, at a
# port with these attributes
serve_one()
{
	modprobe kofiblk_srv && configfs_up &&
		export_add disk0 "${1:-/dev/n0}" uuid=$UUID allow_any=1 || return
	shift $(($# > 0))
	port_up disk0 "$@"
}

# disabled DIRECTORY: disable a port or export, and wait until its sessions have ended
disabled()
{
	until echo 0 2> /dev/null > "$1/enable"; do
		[ -e "$1/enable" ] || return
	done
}

# serve_none: remove all ports and exports
serve_none()
{
	for port_dir in "$CONFIG"/ports/*; do
		[ -d "$port_dir" ] || continue
		disabled "$port_dir"
		for link in "$port_dir"/exports/*; do
			[ ! -L "$link" ] || rm "$link"
		done
		rmdir "$port_dir"
	done
	for export_dir in "$CONFIG"/exports/*; do
		[ -d "$export_dir" ] || continue
		disabled "$export_dir"
		for client in "$export_dir"/clients/*; do
			[ ! -d "$client" ] || rmdir "$client"
		done
		rmdir "$export_dir"
	done
}

# server_gone: remove all ports and exports, and unload the module
server_gone()
{
	serve_none
	rmmod kofiblk_srv
}

# under_way: whether a request of the export "slow" is at its store
under_way()
{
	grep -q " export=slow .* io=[1-9]" /sys/kernel/debug/kofiblk_srv/sessions
}

# --- the client ---

# attach EXPORT [OPTION=VALUE,...]: attach a disk, without the tool, which starts slowly.
# The disk's name is in $DISK.
attach()
{
	DISK=
	exec 5<> /dev/kofiblk-control || return
	! echo "addr=$SERVER,host_id=$HOST_ID,export=$1${FABRIC:+,fabric=$FABRIC}${2:+,$2}" >&5 ||
		read -r DISK <&5
	exec 5>&-
	DISK=${DISK#disk=}
	[ -b "/dev/$DISK" ]
}

# attribute NAME: print an attribute of the disk
attribute()
{
	cat "/sys/block/$DISK/kofiblk/$1" 2> /dev/null
}

state_is()
{
	[ "$(attribute state)" = "$1" ]
}

# session_after N: whether the disk has reconnected more than N times, and is live
session_after()
{
	[ "$(attribute reconnects)" -gt "$1" ] 2> /dev/null && state_is live
}

# counter NAME: print a counter of the disk
counter()
{
	sed -n "s/^$1 //p" "/sys/kernel/debug/kofiblk/$DISK/counters" 2> /dev/null
}

disk_gone()
{
	[ ! -e "/sys/block/$DISK" ]
}

# detach: detach the disk, and wait until it is removed
detach()
{
	echo 1 > "/sys/block/$DISK/kofiblk/delete" && wait_for 30 disk_gone
}

# give_up: remove the disk, as after a long time without a server
give_up()
{
	echo 1 > "/sys/block/$DISK/kofiblk/reset" && wait_for 20 disk_gone
}

# fio_jobs ARGUMENT...: run fio on the disk; arguments before the first --name are for all jobs
fio_jobs()
{
	host fio --filename="/dev/$DISK" --direct=1 --ioengine=libaio --iodepth=32 \
		--verify_fatal=1 --verify_dump=0 --group_reporting --minimal \
		"$@" > /tmp/fio.out 2>&1 && return
	tail -n 20 /tmp/fio.out | cut -c 1-300 | sed 's/^/# /'
	return 1
}

# fio ARGUMENT...: run one job of fio on the disk
fio()
{
	fio_jobs --name=job "$@"
}

# requests_after N: whether there were more than N requests
requests_after()
{
	[ "$(counter requests)" -gt "$1" ] 2> /dev/null
}

# load_begins ARGUMENT...: run fio_jobs repeatedly in the background, with new data each time
load_begins()
{
	rm -f /tmp/load.stop
	(
		load_runs=0
		while [ ! -e /tmp/load.stop ]; do
			load_runs=$((load_runs + 1))
			fio_jobs --rw=randwrite --verify=crc32c --loops=4 \
				--randseed=$load_runs "$@" || exit
		done
		note "$load_runs runs of fio"
	) &
	LOAD=$!
	load_requests=$(counter requests)
	check "requests are being made" wait_for 60 requests_after $((load_requests + 100))
}

# before: store the number of sessions, for comes_back
before()
{
	was=$(attribute reconnects)
}

# comes_back WHAT: check for a new session since before, and that the load continues
comes_back()
{
	check "the client has a new session after $1" wait_for 40 session_after "$was"
	requests=$(counter requests)
	check "requests are handled after $1" wait_for 40 requests_after $((requests + 100))
}

# reads_ahead: print the number of failed readaheads. They fail when their session ends, and the
# page cache then reads again what it needs.
reads_ahead()
{
	dmesg | grep -c "error, dev $DISK, .*(READ) flags 0x8[0-9a-f]\{4\} "
}

load_ends()
{
	touch /tmp/load.stop
	check "all data read was the data written" wait "$LOAD"
	check "no request was refused" [ "$(counter refused)" = 0 ]
	check "no request failed, except readaheads" [ "$(counter failures)" = "$(reads_ahead)" ]
	note "$(counter replays) requests were sent again"
}

# errno_of COMMAND...: print the end of its first error message, with _ for blanks; or "success"
errno_of()
{
	if errno_text=$("$@" 2>&1 > /dev/null); then
		echo success
	else
		errno_text=${errno_text%%"
"*}
		echo "${errno_text##*: }" | tr ' ' _
	fi
}

# pattern FILE KIB SEED: write a pattern that differs between seeds
pattern()
{
	awk -v n="$2" -v seed="$3" 'BEGIN {
		for (i = 0; i < n * 64; i++) printf "%015d\n", (seed * 7919 + i * 104729) % 999999937
	}' > "$1"
}

# --- messages that the peer never gets ---

ORPHANS=/proc/sys/net/ipv4/tcp_orphan_retries

# Without acknowledgement of the last bytes, a socket is FIN-WAIT-1, LAST-ACK or CLOSING.
tcp_forgot()
{
	! awk '$4 ~ /^(04|09|0B)$/ { found = 1 } END { exit !found }' /proc/net/tcp
}

# network_gone: what this machine sends from now on is lost for good, as when it crashes
network_gone()
{
	echo 1 > $ORPHANS
	ip link set eth0 down
}

# TCP would send the last bytes of a closed connection when the network is back.
network_back()
{
	check "what couldn't be sent is given up" wait_for 30 tcp_forgot
	ip link set eth0 up
	echo 0 > $ORPHANS
}
