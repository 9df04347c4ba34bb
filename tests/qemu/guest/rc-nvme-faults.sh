#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma nvme fio python3
# modules: null_blk configfs nvme_rdma nvmet_rdma hmac sha256_generic crc32c_generic
# more: yes
# timeout: 900
#
# NVMe over fabrics on kofi_rc while the target's port, devices and a peer go and come back. The
# data is right afterwards, and everything can be unloaded.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/rc.sh
. /bed/rc.sh

# on ROLE COMMAND...: run a command on one guest, while the other one has load
on()
{
	barrier "before-$2-$1" > /dev/null
	on_role=$1
	shift
	[ "$ROLE" != "$on_role" ] || "$@"
	barrier "after-$1-$on_role" > /dev/null
	[ "$ROLE" = a ] || check "I/O goes on after $1 on $on_role" goes_on
}

port_returns()
{
	check "the target's port is removed" port_down
	sleep 3
	check "the target's port is back" port_up
}

# The host's keep-alive fails, so it ends its connections, whose datagrams don't end by themselves.
falls_silent()
{
	faults unresponsive=1
	sleep 30
	faults unresponsive=0
}

# watches: read in 8 threads until reads fail, or the disk has no bytes any more. Then the memory is
# the reader's own, so it fills the memory, and checks at the end that nothing else has written to it.
watches()
{
	rm -f /host/tmp/watch.stop
	host python3 - > /tmp/watch 2>&1 <<- END &
		import mmap, os, threading, time
		SIZE, FILL = 256 << 10, bytes([0x5a])
		disk = os.open("/dev/nvme0n1", os.O_RDONLY | os.O_DIRECT)
		def reads(buf, at):
		    try:
		        while os.preadv(disk, [buf], at) == SIZE:
		            pass
		    except OSError:
		        pass
		    buf[:] = FILL * SIZE
		bufs = [mmap.mmap(-1, SIZE) for i in range(8)]
		threads = [threading.Thread(target=reads, args=(buf, i * SIZE))
		           for i, buf in enumerate(bufs)]
		for thread in threads:
		    thread.start()
		print("reads", flush=True)
		for thread in threads:
		    thread.join()
		os.close(disk)
		print("failed", flush=True)
		while not os.path.exists("/tmp/watch.stop"):
		    time.sleep(0.2)
		os._exit(any(buf[:] != FILL * SIZE for buf in bufs))
	END
	watch_pid=$!
	wait_for 30 grep -q reads /tmp/watch
}

reads_failed()
{
	wait_for "$1" grep -q failed /tmp/watch && return
	sed 's/^/# /' /tmp/watch
	return 1
}

# memory_stays SECONDS: check that nobody has written to the memory of failed reads since then
memory_stays()
{
	sleep "$1"
	: > /host/tmp/watch.stop
	wait "$watch_pid"
}

# strays: packets for queue pairs that aren't there any more
strays()
{
	sed -n "s/^bad_qpn //p" $SIM/counters
}

more_strays()
{
	[ "$(strays)" -gt "$1" ]
}

# fails_soon: after 2 seconds without a connection. nvme-cli has no option for that yet
fails_soon()
{
	echo 2 > /sys/class/nvme/nvme0/fast_io_fail_tmo
}

# The host's requests fail while the target's device has data for them, and sends it later.
late_writes()
{
	check "the host connects once more" to_server connect -n "$NQN" -i 2 -k 5 -c 2 -l 600
	check "the disk is there once more" wait_for 20 has_disk nvme0n1
	check "requests fail soon" fails_soon
	check "reads begin" watches
	sleep 2
	faults unresponsive=1
	check "reads fail" reads_failed 90
	strays_before=$(strays)
	faults unresponsive=0
	check "the memory of failed reads stays as it is" memory_stays 10
	check "the target's device has sent until now" more_strays "$strays_before"
	check "the host disconnects at last" nvme disconnect -n "$NQN"
}

# The memory of reads that fail by themselves is the reader's, too.
early_end()
{
	for round in 1 2 3; do
		check "the host connects, $round" to_server connect -n "$NQN" -i 2
		check "the disk is there, $round" wait_for 20 has_disk nvme0n1
		check "reads begin, $round" watches
		sleep 1
		check "the host disconnects under load, $round" nvme disconnect -n "$NQN"
		check "reads fail, $round" reads_failed 30
		check "the memory stays as it is, $round" memory_stays 2
	done
}

# serves_by_worker: have the host's connections served by workers instead of softirqs from now on
serves_by_worker()
{
	seconds_before=$(seconds)
	check "the host had queues for softirqs" [ "$seconds_before" -gt 0 ]
	check "the host's link is deleted" host rdma link delete rc0
	check "the host's kofi_rc is unloaded" rmmod kofi_rc
	# shellcheck disable=SC2086
	check "it is loaded without softirqs" modprobe kofi_rc $RC_OPTIONS softirq_initiators=0
	check "the host's link is created" host rdma link add rc0 type kofi_rc netdev eth0
	check "it has no queues for softirqs" [ "$(seconds)" = "$seconds_before" ]
}

# Print how often kofi_rc has opened a device with queues for softirqs.
seconds()
{
	dmesg | grep -c "kofi_rc uses .*, with second ones for softirqs"
}

# Datagrams to a silent peer don't end before the device is given up. The target doesn't do so, so
# that it still sends when the host's reads have failed.
SIM_OPTIONS=unresponsive_ms=60000
[ "$ROLE" = a ] && RC_OPTIONS=revoke_s=60 || RC_OPTIONS=revoke_s=10
nvme_up
if [ "$ROLE" = b ]; then
	check "the host connects with 2 queues" to_server connect -n "$NQN" -i 2 -c 2 -l 600 -k 5
	check "the disk is there" wait_for 20 has_disk nvme0n1
	load_begins
	check "I/O begins" goes_on
fi
on a port_returns
on a device_returns
on b device_returns
on a falls_silent
barrier faults > /dev/null
if [ "$ROLE" = b ]; then
	check "all data was right" load_ends
	load_begins
	check "I/O goes on" goes_on
	check "the link is deleted under load" host rdma link delete rc0
	check "the controller is gone" wait_for 60 disk_gone
	: > /tmp/load.stop
	wait "$load_pid"
	check "a link is created again" host rdma link add rc0 type kofi_rc netdev eth0
	check "the host connects again" to_server connect -n "$NQN" -i 2
	check "the disk is there again" wait_for 20 has_disk nvme0n1
	check "its data is right" fio --rw=randwrite --bsrange=512-256k --size=8m
	check "the host disconnects" nvme disconnect -n "$NQN"
	early_end
	late_writes
	serves_by_worker
	check "the host connects, and is served by workers" \
		to_server connect -n "$NQN" -i 2 -c 2 -l 600 -k 5
	check "the disk is there by workers" wait_for 20 has_disk nvme0n1
	load_begins
	check "I/O begins by workers" goes_on
fi
on b device_returns
if [ "$ROLE" = b ]; then
	check "all data was right by workers" load_ends
	check "the host disconnects from workers" nvme disconnect -n "$NQN"
	early_end
fi
nvme_down
