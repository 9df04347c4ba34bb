// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reads and writes of peers' memory by packets: what differs from messages. A request names the
 * memory (rma_iov), has no number and no order, and needs no receive. A write sends its data as a
 * message does. A read gets its first data by a READRSP, and grants the rest.
 *
 * A peer doesn't answer a request whose key, access or range it refuses, and a process with
 * libfabric may make no progress for as long as it likes. Both look the same, so an operation
 * without progress for kefa_rdm.far_checks fails.
 */
#include "rdm.h"

/**
 * kefa_far_check() - check the peer's memory in a request of the ULP
 * @req: the request, with FI_RMA
 *
 * Context: Any.
 * Return: 0, -EINVAL, or -FI_EBADFLAGS.
 */
int kefa_far_check(const struct kofi_req *req)
{
	u64 sum = 0, end;
	size_t i;

	if (req->what & FI_READ && req->flags & (FI_INJECT | FI_REMOTE_CQ_DATA))
		return -FI_EBADFLAGS;
	if (!req->rma || !req->rma_count || req->rma_count > KEFA_IOV_MAX)
		return -EINVAL;
	for (i = 0; i < req->rma_count; i++)
		if (check_add_overflow(req->rma[i].addr, (u64)req->rma[i].len, &end) ||
		    check_add_overflow(sum, (u64)req->rma[i].len, &sum))
			return -EINVAL;
	return sum == iov_iter_count(&req->iter) ? 0 : -EINVAL;
}

/**
 * kefa_far_hold() - store the peer's memory in an operation
 * @rop: the operation
 * @req: the request. If it has several pieces, their array must not change until the completion
 *
 * Context: Any.
 */
void kefa_far_hold(struct kefa_rop *rop, const struct kofi_req *req)
{
	rop->more |= KEFA_ROP_FAR;
	rop->msg_id = 0;
	rop->far.n = req->rma_count;
	if (rop->far.n > 1) {
		rop->far.list = req->rma;
		return;
	}
	rop->far.addr = req->rma->addr;
	rop->far.key = req->rma->key;
}

/**
 * kefa_far_iov() - describe the peer's memory to the peer
 * @rop: the operation, with KEFA_ROP_FAR
 * @iov: takes KEFA_IOV_MAX entries at most, in the byte order of the wire
 *
 * Context: Any.
 */
void kefa_far_iov(const struct kefa_rop *rop, struct kefa_rma_iov *iov)
{
	const struct fi_rma_iov one = {
		.addr = rop->far.addr, .len = rop->total, .key = rop->far.key,
	};
	const struct fi_rma_iov *from = rop->far.n > 1 ? rop->far.list : &one;
	u32 i;

	for (i = 0; i < rop->far.n; i++) {
		iov[i].addr = cpu_to_le64(from[i].addr);
		iov[i].len = cpu_to_le64(from[i].len);
		iov[i].key = cpu_to_le64(from[i].key);
	}
}

/* --- writes --- */

/**
 * kefa_rtw_fill() - set the fields of a write's request
 * @rdm: the endpoint
 * @rop: the write
 * @pkt: the request, with rma_iov
 *
 * Serves as kefa_pkt_ops.fill.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rtw_fill(const struct kefa_rdm *rdm, const struct kefa_rop *rop, struct kefa_pkt *pkt)
{
	pkt->send_id = kefa_rop_id(&rdm->rops, rop);
	pkt->msg_length = rop->total;
	pkt->credit_request = rdm->lim.credits;
	pkt->cq_data = rop->data;
}

/* --- reads --- */

/**
 * kefa_far_window() - get the window that a read's request grants
 * @rdm: the endpoint
 * @total: length of the read
 *
 * libfabric fills its READRSP even if that is more than the window, and then sends nothing more.
 *
 * Context: Any.
 * Return: the window.
 */
u32 kefa_far_window(const struct kefa_rdm *rdm, u64 total)
{
	return total ? max_t(u64, kefa_grant(&rdm->lim, total),
			     min_t(u64, total, kefa_readrsp_room(&rdm->lim))) : 0;
}

/**
 * kefa_rtr_fill() - set the fields of a read's request
 * @rdm: the endpoint
 * @rop: the read, with its first window
 * @pkt: the request, with rma_iov
 *
 * Serves as kefa_pkt_ops.fill.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rtr_fill(const struct kefa_rdm *rdm, const struct kefa_rop *rop, struct kefa_pkt *pkt)
{
	pkt->recv_id = kefa_rop_id(&rdm->rops, rop);
	pkt->msg_length = rop->total;
	pkt->recv_length = rop->window;
}

/* All data has arrived. A dishonest peer has sent it before the CTS that is due. */
static void kefa_far_whole(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (rop->owes) {
		list_del_init(&rop->link);
		rop->owes = 0;
	}
	kefa_rdm_end_tx(rdm, rop, 0, 0);
}

/* Take data of a read that fits into its window. */
static void kefa_far_take(struct kefa_rdm *rdm, struct kefa_rop *rop, const struct kefa_pkt *pkt)
{
	kefa_far_served(rop);
	rop->window -= pkt->data_len;
	kefa_rop_put(rdm, rop, pkt->data, pkt->seg_offset, pkt->data_len);
	if (rop->done == rop->total)
		kefa_far_whole(rdm, rop);
	else if (!rop->window && rop->more & KEFA_ROP_RSP)
		kefa_rop_grant(rdm, rop);
}

/**
 * kefa_far_data() - take a packet of data that follows a READRSP, or overtakes it
 * @rdm: the endpoint
 * @pkt: the packet
 * @rop: a read from the packet's sender, for which kefa_far_awaits() returned true
 *
 * Context: Under kefa_ep.lock. The pump is due.
 */
void kefa_far_data(struct kefa_rdm *rdm, const struct kefa_pkt *pkt, struct kefa_rop *rop)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (pkt->data_len > rop->window || pkt->seg_offset > rop->total - pkt->data_len)
		kefa_rdm_drop(rdm, rop->peer, KEFA_DROP_LENGTH);
	else
		kefa_far_take(rdm, rop, pkt);
}

static enum kefa_took kefa_readrsp_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					    const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_rop *rop = kefa_rop_find(&rdm->rops, pkt->recv_id);

	if (!rop || rop->peer != peer || !kefa_far_awaits(rop) || rop->more & KEFA_ROP_RSP) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_STATE);
		return KEFA_TOOK_DONE;
	}
	if (pkt->data_len > rop->window) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_LENGTH);
		return KEFA_TOOK_DONE;
	}
	rop->more |= KEFA_ROP_RSP;
	rop->remote_id = pkt->send_id;
	kefa_far_take(rdm, rop, pkt);
	return KEFA_TOOK_DONE;
}

/* At the other end it may be completed after the data that follows. */
const struct kefa_pkt_ops kefa_readrsp_ops = {
	.completed	= kefa_target_sent,
	.received	= kefa_readrsp_received,
};

/* --- the time limit --- */

/**
 * kefa_far_waits() - check whether an operation waits for its peer, and not for the device
 * @rop: the operation
 *
 * It can be failed at any time: what the peer sends for it later finds no operation.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it is a read, write or atomic operation of the ULP that waits.
 */
bool kefa_far_waits(const struct kefa_rop *rop)
{
	const u32 its_turn = BIT(KEFA_ROP_GRANT) | BIT(KEFA_ROP_ACK) | BIT(KEFA_ROP_DATA_RX);

	return BIT(rop->state) & its_turn && rop->more & KEFA_ROP_FAR && !rop->wrs &&
	       !kefa_rpeer_dead(rop->peer);
}

/* Return: the number of checks that an operation may wait. */
static u32 kefa_far_limit(const struct kefa_rdm *rdm, const struct kefa_rop *rop)
{
	if (!(kefa_row_of(rop->type)->flags & KEFA_ROW_READ))
		return rdm->far_checks;
	return min_t(u64, rdm->far_checks + rop->total / KEFA_FAR_SLOWEST, U8_MAX);
}

/**
 * kefa_far_check_time() - end operations whose peers haven't answered for too long
 * @rdm: the endpoint, enabled
 *
 * Called each KEFA_SILENT_MS while operations wait for peers. An operation of which the device has
 * a packet doesn't count: the packet's completion tells about the peer. A peer may serve operations
 * in turn, so one that makes progress with earlier ones has more time. Nobody tells of the progress
 * of a write that the peer reads, so it has time for its length.
 *
 * Context: Under kefa_ep.lock. kefa_rdm_pump() is due.
 */
void kefa_far_check_time(struct kefa_rdm *rdm)
{
	struct kefa_rop *rop;
	u32 i;

	lockdep_assert_held(&rdm->ep.lock);
	for (i = 0; i < rdm->rops.size && rdm->far_checks; i++) {
		rop = &rdm->rops.ops[i];
		if (!kefa_far_waits(rop))
			continue;
		rop->idle = rop->peer->served > kefa_far_age(rop) ? 1 : rop->idle + 1;
		if (rop->idle < kefa_far_limit(rdm, rop))
			continue;
		rdm->stats.timed_out++;
		kefa_rop_fail(rdm, rop, ETIMEDOUT, 0);
	}
	for (i = 0; i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (kefa_far_waits(rop))
			rop->peer->served = 0;
		/* In a free operation the count doesn't matter. */
		if (rop->more & KEFA_ROP_FAR)
			rop->msg_id++;
	}
}
