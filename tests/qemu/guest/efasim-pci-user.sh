#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: test
# full: test
# cmdline: memmap=64M$0x20000000
# host-root: yes
# host-tools: rdma ibv_ud_pingpong ib_send_bw ib_read_bw fi_info fi_pingpong
# modules: efa ib_uverbs
# mem: 1G
# timeout: 900
#
# Third-party programs on PCI functions of the soft device: libibverbs' example, perftest on
# SRD, libfabric. A process that is killed leaves nothing behind.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh

SIM=/sys/kernel/debug/efasim/pci0
OUT=/tmp/shared

counter()
{
	awk -v name="$1" '$1 == name { print $2 }' "$SIM/counters"
}

# queues: print the number of queue pairs of the device
queues()
{
	awk '$1 == "queue_pairs" { print $2 }' $SIM/memory
}

busy()
{
	[ "$(queues)" -gt 1 ]
}

# statistic NAME: print a counter as the driver reports it
statistic()
{
	host rdma statistic show link efa_0/1 | grep -o "$1 [0-9]*" | cut -d ' ' -f 2
}

# listening: succeeds if a program listens for TCP connections
listening()
{
	grep -q '^ *[0-9]*: [0-9A-F:]* [0-9A-F:]* 0A ' /proc/net/tcp /proc/net/tcp6
}

# both DESCRIPTION COMMAND...: run a server, and a client with the server's address
both()
{
	both_what=$1
	shift
	host "$@" > $OUT/server 2>&1 &
	both_server=$!
	wait_for 60 listening
	if host "$@" 127.0.0.1 > $OUT/client 2>&1 && wait $both_server; then
		ok "$both_what"
	else
		not_ok "$both_what"
		sed 's/^/# server: /' $OUT/server
		sed 's/^/# client: /' $OUT/client
		kill $both_server 2> /dev/null
	fi
	tail -n 2 $OUT/client | sed 's/^/# /'
}

export FI_EFA_ENABLE_SHM_TRANSFER=0 FI_EFA_FORK_SAFE=0 FI_EFA_RX_SIZE=1024

mkdir -p /dev/shm

modprobe efasim pci=lo,lo pci_mem=0x20000000
modprobe efa
modprobe ib_uverbs
wait_for 20 [ -e /dev/infiniband/uverbs1 ]

both "datagrams" ibv_ud_pingpong -d efa_0 -g 0 -n 100 -s 1024
both "datagrams with events" ibv_ud_pingpong -d efa_0 -g 0 -n 100 -s 1024 -e
both "perftest: SRD" ib_send_bw -d efa_0 -x 0 -c SRD -n 500 -s 4096 -F
both "perftest: RDMA read" ib_read_bw -d efa_0 -x 0 -c SRD -n 100 -s 65536 -F
check "the device read" [ "$(counter rdma_read_wrs)" -gt 0 ]
check "rdma statistic: the reads" [ "$(statistic rdma_read_wrs)" = "$(counter rdma_read_wrs)" ]
check "rdma statistic: packets" [ "$(statistic tx_pkts)" -gt 0 ]
check "libfabric has a provider for it" sh -c 'chroot /host fi_info -p efa | grep -q "type: FI_EP_RDM"'
both "libfabric: reliable" fi_pingpong -p efa -e rdm -c -I 10 -S 65536
both "libfabric: datagrams" fi_pingpong -p efa -e dgram -I 20
reads_before=$(counter rdma_read_wrs)
FI_EFA_USE_DEVICE_RDMA=1
export FI_EFA_USE_DEVICE_RDMA
both "libfabric: reliable, the device reads" fi_pingpong -p efa -e rdm -c -I 5 -S 1048576
check "the device has read data" [ "$(counter rdma_read_wrs)" -gt "$reads_before" ]

# A process that is killed during transfers leaves nothing behind.
host fi_pingpong -p efa -e rdm -I 1000000 > $OUT/server 2>&1 &
sleep 3
host fi_pingpong -p efa -e rdm -I 1000000 127.0.0.1 > $OUT/client 2>&1 &
check "both have queue pairs" wait_for 30 busy
sleep 1

# The function is unplugged during transfers; that ends when the processes have exited.
echo 0 > $SIM/plug &
pull=$!
sleep 2
killall -9 fi_pingpong
check "the device is removed after the processes are dead" wait $pull
check "there is no device" [ ! -e /sys/class/infiniband/efa_0 ]
echo 1 > $SIM/plug
check "the device is back" [ -e /sys/class/infiniband/efa_0 ]
check "no queue pair is left" [ "$(queues)" = 0 ]
both "it works as before" ibv_ud_pingpong -d efa_0 -g 0 -n 10 -s 1024

check "no address was wrong" [ "$(counter bad_dma_address)" = 0 ]
check "no key was wrong" [ "$(counter bad_lkey)$(counter bad_rkey)" = 00 ]
note "$(tr '\n' ' ' < $SIM/counters)"
check "unload the driver" rmmod efa
check "unload" rmmod efasim

# The first generation has completion queues of two rings, and no RDMA.
modprobe efasim pci=lo,lo pci_mem=0x20000000 pci_device=0xefa0
modprobe efa
check "devices of the first generation" wait_for 20 [ -e /dev/infiniband/uverbs1 ]
both "first generation: datagrams with events" ibv_ud_pingpong -d efa_0 -g 0 -n 100 -s 1024 -e
both "first generation: perftest" ib_send_bw -d efa_0 -x 0 -c SRD -n 500 -s 4096 -F
FI_EFA_USE_DEVICE_RDMA=0
both "first generation: libfabric" fi_pingpong -p efa -e rdm -c -I 5 -S 1048576
check "unload the driver again" rmmod efa
check "unload again" rmmod efasim
