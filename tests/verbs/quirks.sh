#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
#   quirks.sh [CASE...]
#
# Removes one quirk of the real device from the software device at a time, and expects
# the named case of the conformance test to fail. A case that still passes doesn't test
# the quirk.

set -u

TOP=$(realpath "$(dirname "$0")/../..")
# shellcheck source=scripts/common.sh
. "$TOP/scripts/common.sh"
WORK=$KOFI_CACHE/quirks/$(echo "$TOP" | md5sum | cut -c 1-8)

# CASE FILE SED-EXPRESSION [PARAMETER=VALUE of the module]
QUIRKS='
unsignaled_refused	verbs/post.c	s/qp->sig_type != IB_SIGNAL_ALL_WR/false/
flags_refused	verbs/post.c	s/~(IB_SEND_SIGNALED . IB_SEND_INLINE)/0/
sge_limits	verbs/post.c	s/(is_send(wr) . qp->sq.max_sge : 1)/qp->sq.max_sge/
send_queue_full	verbs/post.c	/qp->sq.posted - qp->sq.completed/{n;s/-ENOMEM/-EAGAIN/}
ud_sends_only	verbs/post.c	s/IB_QPT_UD && !is_send(wr)/IB_QPT_UD \&\& false/
inline_limit	verbs/qp.c	s/cap->max_inline_data > EFASIM_INLINE_LEN/false/
qp_states	verbs/qp.c	s/if (mask & ~MODIFY_MASK)/if (false)/
ah_sleeps	verbs/main.c	s/if (attr->flags & RDMA_CREATE_AH_SLEEPABLE)/if (true)/
no_global_rkey	verbs/mr.c	s/if (access & ~IB_ACCESS_LOCAL_WRITE)/if (false)/
no_handler_no_events	verbs/cq.c	s/cq->has_events = cq->ibcq.comp_handler;/cq->has_events = true;/
solicited_refused	verbs/cq.c	s/if (flags & IB_CQ_SOLICITED)/if (false)/
event_once	verbs/cq.c	s/irq_work_queue(&cq->irq);/cq_event(\&cq->irq);/
missed_events	verbs/cq.c	s/return !cq_empty(cq);/return 0 * !cq_empty(cq);/
destroyed_qp_costs_a_poll	verbs/cq.c	/EFASIM_S_cqe_of_dead_qp/{n;s/-EINVAL/0/}
no_qp_no_completions	verbs/cq.c	s/if (sub->ref_cnt)/if (true)/
poll_order	main.c	s/limits.rdma_read ? 1 :/false ? 1 :/
poll_order	verbs/cq.c	s/sub\[cq->next_poll\]/sub[i]/	rdma_read=0
recv_length_has_16_bits	verbs/post.c	s/cpu_to_le16(sge->length)/cpu_to_le16(min(sge->length, 65535U))/
sqd_waits	request.c	s/qp->state == EFASIM_QPS_RTS &&/qp->state != EFASIM_QPS_ERR \&\&/
send_largest	request.c	s/op->len > dev->limits.mtu ?/false ?/
rnr_finite	request.c	s/if (!op->rnr_left)/if (false)/
key_generations	mr.c	s/mr->key != key || mr->pdn != pdn/mr->pdn != pdn/
key_must_advance	mr.c	s/mr->used && mr->key == wqe->reg.lkey/false/
keys_belong_to_a_pd	mr.c	s/mr->key != key || mr->pdn != pdn/mr->key != key/
target_must_know_initiator	respond.c	s/if (!efasim_dev_find_ah(dev, (.qp)->pdn, pkt->src_gid))/if (false)/
bad_qkey	respond.c	s/qp->qkey != pkt->qkey/false/
'

guest_test()
{
	cat << EOF
#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# host-root: yes
# host-tools: rdma
# timeout: 120
. /bed/lib.sh
ip link set lo up
modprobe efasim $2
modprobe efa_verbs_conformance
host rdma link add es0 type efasim netdev lo
host rdma link add es1 type efasim netdev lo
echo "es0 es1 $1" > /sys/kernel/debug/efa_verbs_conformance/run
grep -E "^#|ok " /sys/kernel/debug/efa_verbs_conformance/results
host rdma link delete es0
host rdma link delete es1
EOF
}

# fresh: copies the tree again, so that a build redoes only what a quirk changes
fresh()
{
	mkdir -p "$WORK"
	rsync -rlp --checksum --delete --exclude /.git "$TOP"/ "$WORK"/
}

try()
{
	local case=$1 file=$2 edit=$3 parameter=$4 out
	fresh
	sed -i "$edit" "$WORK/sim/$file"
	if cmp -s "$TOP/sim/$file" "$WORK/sim/$file"; then
		echo "not ok - $case: $file doesn't have the quirk"
		return 1
	fi
	guest_test "$case" "$parameter" > "$WORK/tests/qemu/guest/efasim-quirk.sh"
	chmod +x "$WORK/tests/qemu/guest/efasim-quirk.sh"
	out=$(cd "$WORK" && python3 -B tests/qemu/bed check efasim-quirk 2>&1)
	if grep -q "not ok .*- $case" <<< "$out"; then
		echo "ok - $case fails without its quirk"
		return 0
	fi
	echo "not ok - $case didn't fail with $edit"
	tail -n 15 <<< "$out" | sed 's/^/# /'
	return 1
}

try_all()
{
	local failed=0 tried=0 case file edit parameter
	for case in "$@"; do
		grep -q "^$case"$'\t' <<< "$QUIRKS" || die "no quirk is for a case $case"
	done
	while IFS=$'\t' read -r case file edit parameter; do
		[ -n "$case" ] || continue
		[ $# = 0 ] || [[ " $* " == *" $case "* ]] || continue
		tried=$((tried + 1))
		try "$case" "$file" "$edit" "$parameter" || failed=$((failed + 1))
	done <<< "$QUIRKS"
	echo "$tried quirks, $failed undetected"
	[ "$tried" -gt 0 ] && [ "$failed" = 0 ]
}

# Locked, because another run would undo the edit.
locked "quirks-${WORK##*/}" try_all "$@"
