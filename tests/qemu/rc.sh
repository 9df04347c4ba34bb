# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# Functions for tests of kofi_rc with the kernel's NVMe over fabrics: guest a is the target, b the
# host. The network reorders, delays and drops datagrams, and receives aren't always ready.

SIM=/sys/kernel/debug/efasim/es0
NVMET=/sys/kernel/config/nvmet
NQN=nqn.2026-11.example:disk
SUBSYS=$NVMET/subsystems/$NQN
HOST_ID=0b6e9d3c-5a1f-4e07-9d2b-7d5e1c2a4f10
SERVER=$(ip_of a)

faults()
{
	for setting in "$@"; do
		echo "${setting#*=}" > "$SIM/faults/${setting%%=*}"
	done
}

# injected KNOB: check that the fault was injected
injected()
{
	grep -q "^$1 [0-9]* [1-9]" $SIM/faults/injected
}

# counted COUNTER N: check that a counter of kofi_rc has this value
counted()
{
	grep -qx "$1 $2" /sys/kernel/debug/kofi_rc/counters
}

counted_some()
{
	grep -q "^$1 [1-9]" /sys/kernel/debug/kofi_rc/counters
}

load_link()
{
	# shellcheck disable=SC2086
	check "the soft device's module is loaded" modprobe efasim ${SIM_OPTIONS-}
	check "a device is created" host rdma link add es0 type efasim netdev eth0
	check "the provider is loaded" modprobe kofi_efa
	# shellcheck disable=SC2086
	check "kofi_rc is loaded" modprobe kofi_rc ${RC_OPTIONS-}
	check "a link is created" host rdma link add rc0 type kofi_rc netdev eth0
	check "its port is active" grep -q ACTIVE /sys/class/infiniband/rc0/ports/1/state
	faults seed=42 reorder=100 delay=20 drop=5 rnr=20
}

unload_link()
{
	faults reorder=0 delay=0 drop=0 rnr=0
	check "the link is deleted" host rdma link delete rc0
	check "kofi_rc and its libraries are unloaded" rmmod kofi_rc kofi_cm kofi_ulp
	check "the provider and the core are unloaded" rmmod kofi_efa kofi
	check "the device is deleted" host rdma link delete es0
	check "the soft device's module is unloaded" rmmod efasim
}

# --- the target ---

ram_disk()
{
	modprobe null_blk nr_devices=0 || return
	mkdir -p /sys/kernel/config
	mount -t configfs configfs /sys/kernel/config
	for disk in 0 1; do
		mkdir /sys/kernel/config/nullb/n$disk || return
		for setting in size=64 memory_backed=1 discard=1 blocksize=512 power=1; do
			echo "${setting#*=}" > "/sys/kernel/config/nullb/n$disk/${setting%%=*}" ||
				return
		done
		[ -e /dev/n$disk ] ||
			ln -s "nullb$(cat /sys/kernel/config/nullb/n$disk/index)" /dev/n$disk
	done
}

# namespace NUMBER: add a namespace on a RAM disk
namespace()
{
	mkdir "$SUBSYS/namespaces/$1" || return
	printf %s "/dev/n$(($1 - 1))" > "$SUBSYS/namespaces/$1/device_path" &&
		echo 1 > "$SUBSYS/namespaces/$1/enable"
}

port_up()
{
	mkdir $NVMET/ports/1 || return
	for setting in addr_trtype=rdma addr_adrfam=ipv4 "addr_traddr=$SERVER" addr_trsvcid=4420; do
		printf %s "${setting#*=}" > "$NVMET/ports/1/${setting%%=*}" || return
	done
	ln -s "$SUBSYS" $NVMET/ports/1/subsystems/$NQN
}

target_up()
{
	modprobe nvmet_rdma && mkdir "$SUBSYS" && echo 1 > "$SUBSYS/attr_allow_any_host" &&
		namespace 1 && port_up
}

port_down()
{
	rm $NVMET/ports/1/subsystems/$NQN && rmdir $NVMET/ports/1
}

target_down()
{
	port_down || return
	for dir in "$SUBSYS"/namespaces/*; do
		echo 0 > "$dir/enable" && rmdir "$dir" || return
	done
	rmdir "$SUBSYS" && rmmod nvmet_rdma || return
	for disk in 0 1; do
		echo 0 > /sys/kernel/config/nullb/n$disk/power
		rmdir /sys/kernel/config/nullb/n$disk || return
	done
	rmmod null_blk
}

# --- the host ---

nvme()
{
	host nvme "$@" > /tmp/nvme.out 2>&1 && return
	sed 's/^/# /' /tmp/nvme.out
	return 1
}

to_server()
{
	to_server_command=$1
	shift
	nvme "$to_server_command" -t rdma -a "$SERVER" -s 4420 -q "$NQN-b" -I $HOST_ID "$@"
}

discovers()
{
	to_server discover && grep -q "subnqn: *$NQN" /tmp/nvme.out
}

fio()
{
	has_disk nvme0n1 || return
	# The disk may go at any moment; a file in its place would stay.
	host fio --name=job --filename=/dev/nvme0n1 --allow_file_create=0 --direct=1 \
		--ioengine=libaio --iodepth=32 --verify=crc32c --verify_fatal=1 \
		--verify_dump=0 --group_reporting --minimal \
		"$@" > /tmp/fio.out 2>&1 && return
	tail -n 20 /tmp/fio.out | cut -c 1-300 | sed 's/^/# /'
	return 1
}

has_disk()
{
	[ -b "/dev/$1" ]
}

disk_gone()
{
	[ ! -e /sys/class/nvme/nvme0 ]
}

# target_ready: the target on a, and the host's module on b
target_ready()
{
	if [ "$ROLE" = a ]; then
		check "RAM disks are created" ram_disk
		check "the target is up" target_up
	fi
	barrier up > /dev/null
	[ "$ROLE" = a ] || check "the host's module is loaded" modprobe nvme_rdma
}

nvme_up()
{
	load_link
	target_ready
}

# nvme_down: everything is unloaded; b has disconnected
nvme_down()
{
	barrier ended > /dev/null
	for knob in reorder delay drop rnr; do
		check "$knob did something" injected $knob
	done
	if [ "$ROLE" = a ]; then
		check "the target is down" target_down
	else
		check "the host's module is unloaded" rmmod nvme_rdma
	fi
	barrier down > /dev/null
	unload_link
}

# --- load ---

# load_begins: write and verify repeatedly in the background, until load_ends
load_begins()
{
	rm -f /tmp/load.stop /tmp/load.failed
	(
		while [ ! -e /tmp/load.stop ]; do
			fio --rw=randwrite --bsrange=512-256k --size=8m || : > /tmp/load.failed
			echo run >> /tmp/load.runs
		done
	) &
	load_pid=$!
}

load_runs()
{
	[ ! -e /tmp/load.runs ] && echo 0 && return
	grep -c run /tmp/load.runs
}

# more_runs N: check that fio has ended more than N times
more_runs()
{
	[ "$(load_runs)" -gt "$1" ]
}

# goes_on: wait for runs of fio that have begun after now
goes_on()
{
	wait_for 90 more_runs $(($(load_runs) + 1))
}

# load_ends: check that all data was right
load_ends()
{
	: > /tmp/load.stop
	wait "$load_pid"
	[ ! -e /tmp/load.failed ]
}

port_is()
{
	grep -q "$1" /sys/class/infiniband/rc0/ports/1/state
}

# device_returns: this guest's device is removed, and comes back after a while
device_returns()
{
	echo 1 > $SIM/remove
	check "the link's port is down" wait_for 20 port_is DOWN
	sleep 3
	check "the device is back" wait_for 20 host rdma link add es0 type efasim netdev eth0
	check "the link's port is active again" wait_for 20 port_is ACTIVE
	faults seed=43 reorder=100 delay=20 drop=5 rnr=20
}
