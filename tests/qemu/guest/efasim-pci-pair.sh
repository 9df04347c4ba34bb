#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# full: test
# guests: 2
# cmdline: memmap=32M$0x20000000
# host-root: yes
# host-tools: ibv_ud_pingpong ib_send_bw fi_pingpong
# modules: efa ib_uverbs
# timeout: 240
#
# Programs of two kernels, each on a PCI function of its kernel's soft device.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

SIM=/sys/kernel/debug/efasim/pci0
OUT=/tmp/shared

counter()
{
	awk -v name="$1" '$1 == name { print $2 }' "$SIM/counters"
}

# between NAME COMMAND...: run a server in a and a client in b
between()
{
	between_what=$1
	shift
	barrier "$between_what" > /dev/null
	if [ "$ROLE" = a ]; then
		host "$@" > $OUT/log 2>&1
	else
		sleep 3
		host "$@" "$(ip_of a)" > $OUT/log 2>&1
	fi
	between_status=$?
	check "$between_what" [ $between_status = 0 ]
	tail -n 3 $OUT/log | sed 's/^/# /'
}

export FI_EFA_ENABLE_SHM_TRANSFER=0 FI_EFA_FORK_SAFE=0 FI_EFA_RX_SIZE=1024
mkdir -p /dev/shm

modprobe efasim pci=eth0 pci_mem=0x20000000 unresponsive_ms=60000
modprobe efa
modprobe ib_uverbs
check "the device is there" wait_for 20 [ -e /dev/infiniband/uverbs0 ]

between datagrams ibv_ud_pingpong -d efa_0 -g 0 -n 50 -s 1024 -e
between srd ib_send_bw -d efa_0 -x 0 -c SRD -n 200 -s 8192 -F
between libfabric fi_pingpong -p efa -e rdm -c -I 10 -S 65536
check "packets went by the network" [ "$(counter tx_datagrams)" -gt 0 ]

# Programs don't notice packets that are lost, duplicated and reordered.
for setting in reorder=200 duplicate=50 drop=20; do
	echo "${setting#*=}" > "$SIM/faults/${setting%%=*}"
done
between faults fi_pingpong -p efa -e rdm -c -I 10 -S 65536
check "packets were sent again" [ "$(counter retrans_pkts)" -gt 0 ]
barrier finished > /dev/null
note "$(tr '\n' ' ' < $SIM/counters)"
check "unload the driver" rmmod efa
check "unload" rmmod efasim
