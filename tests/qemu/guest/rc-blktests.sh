#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# full: yes
# alone: yes
# mem: 2G
# host-root: yes
# host-tools: rdma nvme fio bash losetup jq uuidgen getopt gawk
# modules: dummy loop configfs nvme_rdma nvmet_rdma rdma_rxe hmac sha256_generic crc32c_generic crc32_generic
# settings: BLKTESTS= BLKTESTS_RUN=nvme
# timeout: 7200
#
# The nvme group of blktests, from the copy in the directory BLKTESTS, on kofi_rc and on mainline's
# soft RDMA device. No test that passes on the latter fails on kofi_rc.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

OUT=/tmp/shared

# Programs that come before the host's. Modules are loaded from the guest's directory, and stay, but
# for rdma_rxe. The tests want a siw device for each network device without a link, so the soft
# device's is hidden, and delete all links after each.
stand_ins()
{
	mkdir -p $OUT/modules $OUT/links
	cp "$(modinfo -n rdma_rxe)" $OUT/rdma_rxe.ko
	cat > $OUT/modules/modprobe <<-'EOF'
		#!/bin/bash
		remove=
		for arg; do
			case $arg in
			-r | --remove) remove=1 ;;
			-*) ;;
			siw) exit 0 ;;
			rdma_rxe)
				[ -z "$remove" ] || exec /usr/sbin/rmmod rdma_rxe
				[ -d /sys/module/rdma_rxe ] || exec /usr/sbin/insmod /tmp/shared/rdma_rxe.ko
				exit 0 ;;
			*) [ -n "$remove" ] || [ -d "/sys/module/${arg//-/_}" ]; exit ;;
			esac
		done
	EOF
	cat > $OUT/links/rdma <<-'EOF'
		#!/bin/bash
		case "$1 $2 $5" in
		"link  ") /usr/bin/rdma link | grep -v '^link es0/'; exit ;;
		"link add siw") exec /usr/bin/rdma link add "$3" type kofi_rc netdev "$7" ;;
		esac
		exec /usr/bin/rdma "$@"
	EOF
	# The host's has no daemon here, and says so in the output that blktests compares.
	printf '#!/bin/sh\nexit 0\n' > $OUT/modules/udevadm
	chmod +x $OUT/modules/modprobe $OUT/modules/udevadm $OUT/links/rdma
}

# blktests NAME DIRECTORIES SETTING...: results are lines "nvme/002 passed"
blktests()
{
	blktests_name=$1
	blktests_path=$2
	shift 2
	host env PATH="$blktests_path:/usr/sbin:/usr/bin:/sbin:/bin" NVMET_TRTYPES=rdma \
		NVMET_BLKDEV_TYPES=device NVME_IMG_SIZE=64M NVME_NUM_ITER=10 \
		MODPROBE_PATIENT_RM_TIMEOUT_SECONDS=1 "$@" \
		bash -c "cd '$BLKTESTS' && ./check -o $OUT/$blktests_name $BLKTESTS_RUN" \
		> $OUT/log 2>&1
	tr '\r' '\n' < $OUT/log | sed "s/^/# $blktests_name: /"
	sed -n 's|^\(nvme/[0-9]*\) .*\[\(passed\|failed\)\].*|\1 \2|p' $OUT/log |
		sort -u > "$OUT/$blktests_name.results"
	check "there are results on $blktests_name" [ -s "$OUT/$blktests_name.results" ]
}

check "modules are loaded" modprobe -a dummy loop nvmet_rdma nvme_rdma ib_uverbs udp_tunnel \
	ip6_udp_tunnel crc32_generic efasim kofi_efa kofi_rc
stand_ins
# Programs of the host see its own view of /sys, and bash needs /dev/fd.
ln -s /proc/self/fd /dev/fd
mount -t configfs configfs /sys/kernel/config 2> /dev/null
mount -t configfs configfs /host/sys/kernel/config
check "a network device is created" ip link add bt type dummy
ip addr add 10.9.3.1/24 dev bt
ip link set bt up
check "a soft device is created" host rdma link add es0 type efasim netdev bt
blktests kofi_rc $OUT/links:$OUT/modules
check "the soft device is deleted" host rdma link delete es0
blktests rxe $OUT/modules USE_RXE=1
sed -n 's/ failed//p' $OUT/kofi_rc.results > $OUT/failed
while read -r failed; do
	refuse "$failed fails on rxe as well, or doesn't fail on kofi_rc" \
		grep -qx "$failed passed" $OUT/rxe.results
done < $OUT/failed
