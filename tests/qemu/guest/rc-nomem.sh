#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# full: yes
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma nvme fio python3
# modules: null_blk configfs nvme_rdma nvmet_rdma
# kmemleak: yes
# timeout: 600
#
# Failing allocations of kofi_rc: those for a link fail in turn. Then some of those for connections
# and for data fail at both ends, while a host connects, writes and verifies, and disconnects.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/rc.sh
. /bed/rc.sh

# shellcheck disable=SC2046
only_kofi_rc()
{
	only $(in_module kofi_rc)
}

links_are_refused()
{
	check "the link is deleted for now" host rdma link delete rc0
	only_kofi_rc
	answer=$(host python3 - rc0 eth0 kofi_rc < /bed/guest/efasim-nomem.py)
	only_everywhere
	note "links that were refused, were made, had another result: $answer"
	check "links are refused with ENOMEM" [ "${answer%% *}" -gt 5 ]
	check "no link has another result" [ "${answer##* }" = 0 ]
	check "the link is created again" host rdma link add rc0 type kofi_rc netdev eth0
	check "its port is active again" wait_for 10 \
		grep -q ACTIVE /sys/class/infiniband/rc0/ports/1/state
}

# come_and_go N: connect, write, verify and disconnect N times. Connecting may fail, and no data may
# be wrong.
come_and_go()
{
	connected=0
	refused=0
	wrong=0
	for _ in $(seq "$1"); do
		if to_server connect -n "$NQN" -i 2 -c 1 > /dev/null && wait_for 10 has_disk nvme0n1; then
			connected=$((connected + 1))
			fio --rw=randwrite --bsrange=512-128k --size=2m || wrong=$((wrong + 1))
		else
			refused=$((refused + 1))
		fi
		nvme disconnect -n "$NQN" > /dev/null
		wait_for 30 disk_gone || break
	done
}

load_link
links_are_refused
target_ready
only_kofi_rc
# A queue of NVMe takes some hundred allocations, for its regions most of all.
for knob in $KNOBS; do
	fault_on "$knob" 100 interval=1009
done
barrier short > /dev/null
if [ "$ROLE" = b ]; then
	come_and_go 12
	note "connected $connected times, refused $refused times"
	check "the host connects with little memory" [ "$connected" -gt 0 ]
	check "it can't each time" [ "$refused" -gt 0 ]
	check "no data is wrong" [ "$wrong" = 0 ]
	check "the last disk is gone" disk_gone
fi
barrier enough > /dev/null
fault_off failslab
echo 0 > $FAULTS/fail_page_alloc/probability
only_everywhere
if [ "$ROLE" = b ]; then
	come_and_go 1
	check "with enough memory the host connects" [ "$connected $wrong" = "1 0" ]
fi
nvme_down
