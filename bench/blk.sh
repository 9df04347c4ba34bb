# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# For guest.sh: create the measured block devices. Each is on top of a null_blk without memory,
# which costs nothing, and both its ends are in this kernel. Only one exists at a time, so that
# timers of another aren't counted. None has an I/O scheduler.
# shellcheck source=tests/qemu/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

NVMET=/sys/kernel/config/nvmet
SUBSYSTEM=$NVMET/subsystems/bench
PORT=$NVMET/ports/1
BLK=				# the device that exists

# settings DIRECTORY NAME=VALUE...: write attributes of configfs, in this order
settings()
{
	settings_dir=$1
	shift
	for setting in "$@"; do
		echo "${setting#*=}" > "$settings_dir/${setting%%=*}" || return
	done
}

# Load all modules at once and keep them: the host finds functions by address, and no
# address may belong to another module later.
blk_modules()
{
	modprobe null_blk nr_devices=0 &&
		modprobe -a nvme-loop nvmet-tcp nvme-tcp nvmet-rdma nvme-rdma kofi_rc \
			kofiblk_srv kofiblk && configfs_up
}

store_up()
{
	store_dir=/sys/kernel/config/nullb/store
	mkdir "$store_dir" && settings "$store_dir" size=1024 blocksize=512 power=1 ||
		return
	STORE=/dev/store
}

store_down()
{
	settings /sys/kernel/config/nullb/store power=0 &&
		rmdir /sys/kernel/config/nullb/store
}

no_schedulers()
{
	for scheduler in /sys/block/*/queue/scheduler; do
		grep -q '\[none\]' "$scheduler" || echo none > "$scheduler" || return
	done
}

# --- nvme ---

# nvme_up TYPE [SETTING-OF-THE-PORT...]: set up target and host. With multipath the host shows one
# disk for a namespace, and hides the disk of each path.
nvme_up()
{
	nvme_type=$1
	shift
	mkdir "$SUBSYSTEM" "$SUBSYSTEM/namespaces/1" "$PORT" &&
		settings "$SUBSYSTEM" attr_allow_any_host=1 &&
		settings "$SUBSYSTEM/namespaces/1" device_path="$STORE" enable=1 &&
		settings "$PORT" addr_trtype="$nvme_type" "$@" &&
		ln -s "$SUBSYSTEM" "$PORT/subsystems/bench"
}

# nvme_connect OPTION,...
nvme_connect()
{
	echo "nqn=bench,keep_alive_tmo=0,$1" > /dev/nvme-fabrics &&
		wait_for 20 test -b /dev/nvme0n1
}

no_nvme()
{
	[ ! -e /sys/class/nvme/nvme0 ] && [ ! -e /sys/block/nvme0n1 ]
}

nvme_down()
{
	echo 1 > /sys/class/nvme/nvme0/delete_controller && wait_for 20 no_nvme || return
	rm "$PORT/subsystems/bench" && rmdir "$PORT" &&
		settings "$SUBSYSTEM/namespaces/1" enable=0 &&
		rmdir "$SUBSYSTEM/namespaces/1" "$SUBSYSTEM"
}

# --- the devices ---
disk_null_blk()
{
	DISK=${STORE#/dev/}
}

disk_nvme_loop()
{
	DISK=nvme0n1
	nvme_up loop && nvme_connect transport=loop
}

disk_nvme_tcp()
{
	DISK=nvme0n1
	nvme_up tcp addr_adrfam=ipv4 addr_traddr=127.0.0.1 addr_trsvcid=4421 &&
		nvme_connect transport=tcp,traddr=127.0.0.1,trsvcid=4421
}

# nvme_rdma_up ADDRESS: by the RDMA device that belongs to it
nvme_rdma_up()
{
	DISK=nvme0n1
	nvme_up rdma addr_adrfam=ipv4 addr_traddr="$1" addr_trsvcid=4420 &&
		nvme_connect "transport=rdma,traddr=$1,trsvcid=4420"
}

disk_nvme_rxe()
{
	nvme_rdma_up 10.9.0.1
}

# The link uses one device for both sides.
disk_nvme_rdma()
{
	ip link add rc-net type dummy && ip addr add 10.9.2.1/24 dev rc-net &&
		ip link set rc-net up && rdma link add rc0 type kofi_rc netdev rc-net &&
		nvme_rdma_up 10.9.2.1
}

gone_nvme_rdma()
{
	nvme_down && rdma link delete rc0 && ip link del rc-net
}

# The server uses one device, the client the other.
# disk_kofiblk [OPTION=VALUE,...]
disk_kofiblk()
{
	ip addr add "${SERVER%:*}/32" dev lo
	serve_one "$STORE" domain=es0 && attach disk0 "client=bench,domain=es1${1:+,$1}"
}

disk_kofiblk_polled()
{
	disk_kofiblk poll_queues=1
}

disk_kofiblk_efa()
{
	FABRIC=efa
	disk_kofiblk
	set -- $?
	# shellcheck disable=SC2034 # used by kofiblk.sh
	FABRIC=
	return "$1"
}

gone_kofiblk()
{
	detach && serve_none && ip addr del "${SERVER%:*}/32" dev lo
}

# blk_only NAME: set up this device and no other, or none
blk_only()
{
	[ "$1" != "$BLK" ] || return 0
	case $BLK in
	"" | null_blk) ;;
	kofiblk*) check "$BLK goes" gone_kofiblk ;;
	nvme-rdma) check "nvme-rdma goes" gone_nvme_rdma ;;
	*) check "$BLK goes" nvme_down ;;
	esac
	if [ -n "$BLK" ]; then
		rm "/dev/$BLK"
		check "the store goes" store_down
	fi
	BLK=$1
	[ -n "$BLK" ] || return 0
	[ -d /sys/module/kofiblk ] || check "block devices' modules" blk_modules
	check "a store" store_up
	check "$BLK comes" "disk_$(echo "$BLK" | tr - _)"
	check "no I/O schedulers" no_schedulers
	ln -s "$DISK" "/dev/$BLK"
}
