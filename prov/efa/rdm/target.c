// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reads and writes by peers that arrive as packets, because the peer's device or this one has no
 * RDMA for them. The CPU carries them out in the packet's handler, so neither the ULP nor a reader
 * of its queue has to do anything.
 *
 * A request that fits into one packet is finished at once: its answer stays in a send slot until
 * the peer has it. A longer one is an operation, with a part of struct kefa_target for the memory
 * that it names. Each packet looks up that memory again by its key: see mr_key.c.
 *
 * A request isn't answered if its key, access or range is wrong, as the protocol has no answer for
 * that. A request that lacks a send slot, an operation or room in the completion queue is kept in
 * kefa_rdm.asked until the pump can handle it: asked.c. Requests may overtake each other: the
 * protocol has no order for them.
 */
#include <linux/slab.h>
#include "../dma.h"
#include "atomic.h"
#include "target.h"
#include "tx.h"

/* --- allocation --- */

/**
 * kefa_targets_init() - allocate what operations of peers need
 * @rdm: the endpoint, about to be enabled
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_targets_init(struct kefa_rdm *rdm)
{
	u32 i;

	if (!kefa_far_serves(rdm, FI_REMOTE_READ) && !kefa_far_serves(rdm, FI_REMOTE_WRITE))
		return 0;
	rdm->targets = kcalloc(KEFA_TARGETS, sizeof(*rdm->targets), GFP_KERNEL);
	if (!rdm->targets)
		return -ENOMEM;
	for (i = 0; i < KEFA_TARGETS; i++)
		list_add_tail(&rdm->targets[i].list, &rdm->targets_free);
	rdm->ntargets = KEFA_TARGETS;
	return 0;
}

/**
 * kefa_targets_fini() - undo kefa_targets_init()
 * @rdm: the endpoint, without operations
 *
 * Context: Process context.
 */
void kefa_targets_fini(struct kefa_rdm *rdm)
{
	kfree(rdm->targets);
	rdm->targets = NULL;
	rdm->ntargets = 0;
	INIT_LIST_HEAD(&rdm->targets_free);
}

/* --- memory --- */

/**
 * kefa_target_fault() - count a packet that names memory which the peer may not access
 * @rdm: the endpoint
 * @peer: sender of the packet
 * @fault: the reason
 *
 * Context: Under kefa_ep.lock.
 * Return: false.
 */
bool kefa_target_fault(struct kefa_rdm *rdm, struct kefa_rpeer *peer, enum kefa_fault fault)
{
	static const u8 drops[] = {
		[KEFA_FAULT_KEY]	= KEFA_DROP_KEY,
		[KEFA_FAULT_ACCESS]	= KEFA_DROP_ACCESS,
		[KEFA_FAULT_RANGE]	= KEFA_DROP_RANGE,
	};

	kefa_rdm_drop(rdm, peer, drops[fault]);
	return false;
}

/*
 * Keys can be guessed, and a request that is refused costs its sender nothing. All requests to a
 * region that was closed meanwhile have the same key.
 */
static void kefa_target_guess(struct kefa_rdm *rdm, struct kefa_rpeer *peer, u64 key)
{
	const u8 hash = hsiphash_2u32(lower_32_bits(key), upper_32_bits(key),
				      &rdm->peers.by_src.seed);

	if (!(peer->flags & KEFA_RPEER_IMPLICIT) || peer->wrong == hash)
		return;
	peer->wrong = hash;
	if (++peer->faults > KEFA_FAULTS_MAX)
		kefa_rdm_kill(rdm, peer, EACCES, 0);
}

/**
 * kefa_target_check() - check all memory that a request names, before any of it is accessed
 * @rdm: the endpoint
 * @peer: sender of the request
 * @pkt: the request
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE, or both
 * @mem: takes KEFA_IOV_MAX entries at most
 *
 * Context: Under kefa_ep.lock.
 * Return: whether the peer may access it; if not, the request was counted.
 */
bool kefa_target_check(struct kefa_rdm *rdm, struct kefa_rpeer *peer, const struct kefa_pkt *pkt,
		       u64 access, struct kefa_named *mem)
{
	enum kefa_fault fault;
	u32 i;

	if (kefa_pkt_atomic(pkt->row) ? access & ~rdm->ep.caps : !kefa_far_serves(rdm, access)) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_TYPE);
		return false;
	}
	for (i = 0; i < pkt->rma_iov_count; i++) {
		mem[i] = (struct kefa_named) {
			.addr	= le64_to_cpu(pkt->rma_iov[i].addr),
			.len	= le64_to_cpu(pkt->rma_iov[i].len),
			.key	= le64_to_cpu(pkt->rma_iov[i].key),
		};
		fault = kefa_mr_check(rdm->ep.dom, &mem[i], access);
		if (fault == KEFA_FAULT_KEY)
			kefa_target_guess(rdm, peer, mem[i].key);
		if (fault)
			return kefa_target_fault(rdm, peer, fault);
	}
	return true;
}

/* Copy to or from the memory at @off. Return: false if one of its regions has been closed. */
static bool kefa_target_move(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
			     const struct kefa_named *mem, u64 off, void *data, size_t len,
			     bool write)
{
	const enum kefa_fault fault = write ? kefa_mr_write(rdm->ep.dom, mem, off, data, len) :
					      kefa_mr_read(rdm->ep.dom, mem, off, data, len);

	return fault ? kefa_target_fault(rdm, peer, fault) : true;
}

/**
 * kefa_target_write() - write the data of a packet
 * @rdm: the endpoint
 * @peer: sender of the packet
 * @mem: memory of the write, as kefa_target_check() has set it
 * @pkt: the packet
 * @off: offset of the data in the write
 *
 * Context: Under kefa_ep.lock.
 * Return: false if one of the regions has been closed since.
 */
bool kefa_target_write(struct kefa_rdm *rdm, struct kefa_rpeer *peer, const struct kefa_named *mem,
		       const struct kefa_pkt *pkt, u64 off)
{
	rdm->ep.stats.rx_bytes += pkt->data_len;
	return kefa_target_move(rdm, peer, mem, off, (void *)pkt->data, pkt->data_len, true);
}

/* --- completions --- */

/**
 * kefa_target_room() - take an entry of the completion queue for a write, if it needs one
 * @rdm: the endpoint
 * @peer: the peer, or NULL if it is unknown
 * @flags: flags of the write's request
 *
 * Messages that wait for an entry go first. Peers in no address vector leave half of the entries to
 * the others.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it has one, or needs none.
 */
bool kefa_target_room(struct kefa_rdm *rdm, const struct kefa_rpeer *peer, u16 flags)
{
	if (!(flags & KEFA_REQ_OPT_CQ_DATA_HDR) || !rdm->ep.rx.base.cq)
		return true;
	if (!list_empty(&rdm->fair.untold))
		return false;
	if ((!peer || peer->flags & KEFA_RPEER_IMPLICIT) && !kefa_cq_half(rdm))
		return false;
	return kefa_cq_room(rdm);
}

/**
 * kefa_target_unroom() - undo kefa_target_room()
 * @rdm: the endpoint
 * @data: the write has remote CQ data
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_target_unroom(struct kefa_rdm *rdm, bool data)
{
	if (data && rdm->ep.rx.base.cq)
		kofi_cq_unreserve_unsolicited(rdm->ep.rx.base.cq, 1);
}

/**
 * kefa_target_tell() - notify the ULP of a write that has ended
 * @rdm: the endpoint
 * @src: address of the peer
 * @len: length of the write
 * @data: the write has remote CQ data, and so an entry from kefa_target_room()
 * @value: the data
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_target_tell(struct kefa_rdm *rdm, fi_addr_t src, u64 len, bool data, u64 value)
{
	const struct fi_cq_tagged_entry entry = {
		.flags	= FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len	= len,
		.data	= value,
	};
	struct kefa_side *side = &rdm->ep.rx;

	kofi_side_count(&side->base, FI_WRITE, len, false);
	if (!data || !side->base.cq)
		return;
	kofi_cq_write_unsolicited(side->base.cq, &entry, rdm->ep.caps & FI_SOURCE ?
				  src : FI_ADDR_NOTAVAIL);
	side->notify = true;
}

/* --- answers without an operation --- */

/**
 * kefa_target_may_answer() - check whether an answer may be sent to a peer now, and has a slot
 * @rdm: the endpoint
 * @peer: the peer
 *
 * If not, the completion of another packet or the end of the peer's delay has the pump run.
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: whether it may.
 */
bool kefa_target_may_answer(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	/* Nothing is posted any more by an endpoint that is being closed. */
	if (rdm->ep.state != KEFA_EP_ENABLED)
		return false;
	kefa_tx_ready(rdm, 1);
	if (peer->backoff.waiting)
		return false;
	/* A HANDSHAKE goes before everything else. */
	if (peer->owes & KEFA_OWES_HANDSHAKE && !kefa_send_debt(rdm, peer))
		return false;
	return rdm->ts_nfree;
}

/**
 * kefa_target_receipt() - send the RECEIPT for a request that was carried out
 * @rdm: the endpoint
 * @peer: the peer, for which kefa_target_may_answer() returned true
 * @send_id: id of the peer's operation
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 */
void kefa_target_receipt(struct kefa_rdm *rdm, struct kefa_rpeer *peer, u32 send_id)
{
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_RECEIPT_PKT),
		.send_id	= send_id,
	};

	kefa_shake_sign(&rdm->self, peer, &pkt);
	kefa_tx_control(rdm, peer, NULL, &pkt);
}

/* --- operations --- */

/* Return: whether a peer has less than its share of operations. */
static bool kefa_target_share(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	u32 i, n = 0;

	for (i = 0; i < KEFA_TARGETS; i++)
		n += rdm->targets[i].rop && rdm->targets[i].rop->peer == peer;
	return n < KEFA_TARGETS_PEER;
}

/**
 * kefa_target_may_begin() - check whether an operation of a peer may begin
 * @rdm: the endpoint
 * @peer: the peer
 *
 * An operation may have given back its struct kefa_target, and still wait until the peer takes its
 * answer. There may be any number of these, so those that the ULP's sends and receives will need
 * are left to them.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it may; if not, the request has to wait.
 */
bool kefa_target_may_begin(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	const struct kefa_rops *rops = &rdm->rops;

	lockdep_assert_held(&rdm->ep.lock);
	return rops->size - rops->used > rdm->ep.tx.nfree + rdm->ep.rx.nfree &&
	       !list_empty(&rdm->targets_free) && kefa_target_share(rdm, peer);
}

/**
 * kefa_target_begin() - begin an operation of a peer
 * @rdm: the endpoint
 * @peer: the peer
 * @pkt: the request
 * @mem: memory that it names
 * @state: first state of the operation
 *
 * Context: Under kefa_ep.lock.
 * Return: the operation; NULL if kefa_target_may_begin() returns false.
 */
struct kefa_rop *kefa_target_begin(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				   const struct kefa_pkt *pkt, const struct kefa_named *mem,
				   enum kefa_rop_state state)
{
	struct kefa_target *target;
	struct kefa_rop *rop;

	if (!kefa_target_may_begin(rdm, peer))
		return NULL;
	target = list_first_entry(&rdm->targets_free, struct kefa_target, list);
	rop = kefa_rdm_take_rop(rdm, NULL, state);
	list_del_init(&target->list);
	rdm->ntargets--;
	target->rop = rop;
	target->n = pkt->rma_iov_count;
	target->idle = 0;
	target->seen = 0;
	memcpy(target->mem, mem, target->n * sizeof(*mem));
	rop->target = target;
	rop->more = KEFA_ROP_TARGET;
	rop->flags = KEFA_ROP_TOLD | (pkt->row->flags & KEFA_ROW_DC ? KEFA_ROP_DC : 0);
	rop->peer = peer;
	peer->nops++;
	rop->type = pkt->row->type;
	rop->total = pkt->msg_length;
	kefa_silent_arm(rdm);
	return rop;
}

/**
 * kefa_target_end() - free the memory of a peer's operation, which may go on without it
 * @rdm: the endpoint
 * @rop: the operation, with KEFA_ROP_TARGET
 * @told: the completion for the ULP was written, or there is none
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_target_end(struct kefa_rdm *rdm, struct kefa_rop *rop, bool told)
{
	struct kefa_target *target = rop->target;

	lockdep_assert_held(&rdm->ep.lock);
	if (!target)
		return;
	if (!told)
		kefa_target_unroom(rdm, rop->cq_flags & FI_REMOTE_CQ_DATA);
	target->rop = NULL;
	list_add_tail(&target->list, &rdm->targets_free);
	rdm->ntargets++;
	rop->target = NULL;
	/* A request may wait for it. */
	rdm->waits |= !list_empty(&rdm->asked);
}

/* All data of a write has arrived. */
static void kefa_target_whole(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	const bool sunk = rop->state == KEFA_ROP_SINK;
	const bool data = rop->cq_flags & FI_REMOTE_CQ_DATA;

	/* A dishonest peer has sent the data before its CTS, which isn't due any more. */
	if (rop->owes) {
		list_del_init(&rop->link);
		rop->owes = 0;
	}
	if (!sunk)
		kefa_target_tell(rdm, kefa_rpeer_addr(rop->peer), rop->total, data, rop->data);
	kefa_target_end(rdm, rop, !sunk);
	if (rop->flags & KEFA_ROP_DC && !sunk && !kefa_rpeer_dead(rop->peer)) {
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_OWES);
		kefa_rdm_owe(rdm, rop, KEFA_ROP_OWES_RECEIPT);
		kefa_rdm_overdue_kill(rdm, rop->peer);
		return;
	}
	rop->flags |= KEFA_ROP_OVER;
	kefa_rdm_end(rdm, rop);
}

/* Take data of a write. If a region was closed, take and drop it all, so that the peer ends. */
static void kefa_target_take(struct kefa_rdm *rdm, struct kefa_rop *rop,
			     const struct kefa_pkt *pkt, u64 off)
{
	rop->done += pkt->data_len;
	if (rop->state == KEFA_ROP_SINK)
		return;
	if (!kefa_target_write(rdm, rop->peer, rop->target->mem, pkt, off))
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_SINK);
}

/**
 * kefa_target_data() - take a packet of data that may belong to a peer's write
 * @rdm: the endpoint
 * @peer: sender of the packet
 * @pkt: the packet
 * @rop: the operation that the packet names, or NULL
 *
 * Context: Under kefa_ep.lock. The pump is due.
 */
void kefa_target_data(struct kefa_rdm *rdm, struct kefa_rpeer *peer, const struct kefa_pkt *pkt,
		      struct kefa_rop *rop)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (!rop || rop->peer != peer || !kefa_target_awaits(rop)) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_STATE);
		return;
	}
	if (pkt->data_len > rop->window || pkt->seg_offset > rop->total - pkt->data_len) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_LENGTH);
		return;
	}
	rop->window -= pkt->data_len;
	kefa_target_take(rdm, rop, pkt, pkt->seg_offset);
	if (rop->done == rop->total)
		kefa_target_whole(rdm, rop);
	else if (!rop->window)
		kefa_rop_grant(rdm, rop);
}

/* --- writes --- */

/* Carry out a write whose data is all in its packet. */
static enum kefa_took kefa_write_now(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				     const struct kefa_pkt *pkt, const struct kefa_named *mem)
{
	const bool data = pkt->flags & KEFA_REQ_OPT_CQ_DATA_HDR;
	const bool dc = pkt->row->flags & KEFA_ROW_DC;

	if (dc && !kefa_target_may_reply(rdm, peer))
		return KEFA_TOOK_NOT;
	if (!kefa_target_room(rdm, peer, pkt->flags))
		return KEFA_TOOK_NOT;
	if (!kefa_target_write(rdm, peer, mem, pkt, 0)) {
		kefa_target_unroom(rdm, data);
		return KEFA_TOOK_DONE;
	}
	kefa_target_tell(rdm, kefa_rpeer_addr(peer), pkt->msg_length, data, pkt->cq_data);
	if (dc)
		kefa_target_receipt(rdm, peer, pkt->send_id);
	return KEFA_TOOK_DONE;
}

static enum kefa_took kefa_eager_rtw_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					      const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_named mem[KEFA_IOV_MAX];

	/* It only asks for a HANDSHAKE, which is due by now. */
	if (!pkt->rma_iov_count)
		return KEFA_TOOK_DONE;
	if (!kefa_target_check(rdm, peer, pkt, FI_REMOTE_WRITE, mem))
		return KEFA_TOOK_DONE;
	return kefa_write_now(rdm, peer, pkt, mem);
}

static void kefa_trigger_unsend(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	peer->owes |= KEFA_OWES_TRIGGER;
}

/**
 * kefa_rtw_completed() - handle the delivery of a write's request at its initiator
 * @rdm: the endpoint
 * @rop: the write. If it waits for an answer, such as a RECEIPT, it isn't in KEFA_ROP_POSTED
 *
 * Serves as kefa_pkt_ops.completed.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rtw_completed(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	kefa_rtm_ops.completed(rdm, rop);
}

const struct kefa_pkt_ops kefa_eager_rtw_ops = {
	.fill		= kefa_rtw_fill,
	.completed	= kefa_rtw_completed,
	.unsend_alone	= kefa_trigger_unsend,
	.received	= kefa_eager_rtw_received,
};

/*
 * Begin a write whose data comes in several packets. The request may have been kept before; then
 * @held->done bytes are in their place, and the packet has none any more.
 */
static enum kefa_took kefa_longcts_rtw_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
						const struct kefa_pkt *pkt, struct kefa_held *held)
{
	const u64 before = held->where == KEFA_HELD_ASKED ? held->done : 0;
	struct kefa_named mem[KEFA_IOV_MAX];
	struct kefa_rop *rop;

	if (!kefa_target_check(rdm, peer, pkt, FI_REMOTE_WRITE, mem))
		return KEFA_TOOK_DONE;
	if (before && !kefa_asked_same(held, pkt, mem)) {
		kefa_target_fault(rdm, peer, KEFA_FAULT_KEY);
		return KEFA_TOOK_DONE;
	}
	/* libfabric has sent all data at once if it first asked us to read it. */
	if (before + pkt->data_len == pkt->msg_length)
		return kefa_write_now(rdm, peer, pkt, mem);
	/* In this order, because an entry that is given back has others tried again. */
	if (!kefa_target_may_begin(rdm, peer) || !kefa_target_room(rdm, peer, pkt->flags))
		return KEFA_TOOK_NOT;
	rop = kefa_target_begin(rdm, peer, pkt, mem, KEFA_ROP_DATA_RX);
	rop->remote_id = pkt->send_id;
	rop->done = before;
	if (pkt->flags & KEFA_REQ_OPT_CQ_DATA_HDR) {
		rop->cq_flags = FI_REMOTE_CQ_DATA;
		rop->data = pkt->cq_data;
	}
	kefa_target_take(rdm, rop, pkt, 0);
	kefa_rop_grant(rdm, rop);
	return KEFA_TOOK_DONE;
}

const struct kefa_pkt_ops kefa_longcts_rtw_ops = {
	.fill		= kefa_rtw_fill,
	.completed	= kefa_rtw_completed,
	.received	= kefa_longcts_rtw_received,
};

/* --- reads --- */

/* Return: whether the data was read; if not, the region was closed. */
static bool kefa_slice_read(struct kefa_rdm *rdm, struct kefa_ts *ts,
			    const struct kefa_slice *slice)
{
	void *to = (ts->copy ? ts->copy->data : ts->hdr) + slice->hdr;

	return kefa_target_move(rdm, ts->peer, slice->mem, slice->off, to, ts->len - slice->hdr,
				false);
}

/*
 * Take a slot for a packet to a reader in the same kernel, which copies the data out of the region.
 * The end of the registration waits for that. Return: the slot; or NULL if there is none for now,
 * or the data is in several places.
 */
static struct kefa_ts *kefa_target_lend(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					const struct kefa_slice *slice, u32 len)
{
	u64 in = slice->off;
	const struct kefa_named *mem = kefa_named_at(slice->mem, &in);
	struct kefa_ts *ts = len <= mem->len - in ? kefa_ts_take(rdm, peer, false) : NULL;

	if (!ts)
		return NULL;
	ts->len = slice->hdr;
	if (kefa_mr_reach(rdm->ep.dom, mem, FI_REMOTE_READ, in, len, &ts->seg, &ts->mr)) {
		ts->seg.len = 0;
		kefa_ts_free(rdm, ts);
		return NULL;
	}
	ts->shared = true;
	ts->lends = true;
	if (ts->seg.len == len)
		return ts;
	kefa_ts_free(rdm, ts);
	return NULL;
}

/*
 * Take a slot for a packet to a reader, and copy @len bytes of data behind the headers. The data is
 * copied, so that neither the slot nor the packet depends on the region.
 * Return: the slot; NULL if there is none for now; or an ERR_PTR() if the region was closed.
 */
static struct kefa_ts *kefa_target_slot(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					const struct kefa_slice *slice, u32 len)
{
	struct kefa_ts *ts = NULL;

	if (peer->flags & KEFA_RPEER_LOCAL && slice->hdr + len > KEFA_TS_ROOM)
		ts = kefa_target_lend(rdm, peer, slice, len);
	if (ts)
		return ts;
	ts = kefa_target_ts(rdm, peer, slice->hdr + len);
	if (!ts)
		return NULL;
	if (ts->copy)
		*kefa_slice_of(ts) = *slice;
	if (!kefa_slice_read(rdm, ts, slice)) {
		kefa_ts_free(rdm, ts);
		return ERR_PTR(-EACCES);
	}
	return ts;
}

/**
 * kefa_target_post() - send an answer with data
 * @rdm: the endpoint
 * @ts: slot of the answer, with the data
 * @rop: operation of the peer, or NULL
 * @pkt: contents of the headers
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 */
void kefa_target_post(struct kefa_rdm *rdm, struct kefa_ts *ts, struct kefa_rop *rop,
		      struct kefa_pkt *pkt)
{
	kefa_shake_sign(&rdm->self, ts->peer, pkt);
	ts->type = pkt->row->type;
	ts->rop = rop;
	kefa_target_serves(ts);
	if (rop)
		rop->wrs++;
	kefa_ts_seal(rdm, ts, pkt);
	rdm->stats.sent[ts->type]++;
	if (!ts->lends)
		rdm->stats.copied += pkt->seg_length;
	rdm->ep.stats.tx_bytes += pkt->seg_length;
	kefa_ts_post(rdm, ts);
}

/* End the operation of a reader, which gets no more data. */
static void kefa_target_give_up(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	list_del_init(&rop->link);
	kefa_target_end(rdm, rop, true);
	if (rop->state != KEFA_ROP_DYING)
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_DYING);
	rop->flags |= KEFA_ROP_OVER;
	kefa_rdm_end(rdm, rop);
}

/**
 * kefa_target_one() - send a packet of data that a reader has granted
 * @rdm: the endpoint, enabled, which can hold one more work request
 * @rop: operation of a reader, in KEFA_ROP_DATA_TX
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: false if there is no slot or copy buffer for now. If the region was closed, the operation
 * has ended: the reader gets no more.
 */
bool kefa_target_one(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	const u32 len = min_t(u64, kefa_data_room(&rdm->lim), rop->done - rop->sent);
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_CTSDATA_PKT),
		.recv_id	= rop->remote_id,
		.seg_offset	= rop->sent,
		.seg_length	= len,
	};
	struct kefa_slice slice = { .off = rop->sent };
	struct kefa_ts *ts;

	if (!kefa_target_may_post(rdm, rop->peer))
		return false;
	kefa_shake_sign(&rdm->self, rop->peer, &pkt);
	slice.hdr = kefa_hdr_len(pkt.row, pkt.flags, 0, 0);
	memcpy(slice.mem, rop->target->mem, sizeof(slice.mem));
	ts = kefa_target_slot(rdm, rop->peer, &slice, len);
	if (!ts)
		return false;
	if (IS_ERR(ts)) {
		kefa_target_give_up(rdm, rop);
		return true;
	}
	rop->sent += len;
	kefa_target_post(rdm, ts, rop, &pkt);
	return true;
}

/**
 * kefa_target_was_read() - count data that was delivered to a reader
 * @rdm: the endpoint
 * @len: length of the read in bytes
 *
 * Until then the data may be read from the region again, so the ULP mustn't change it.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_target_was_read(struct kefa_rdm *rdm, u64 len)
{
	kofi_side_count(&rdm->ep.rx.base, FI_READ, len, false);
}

/**
 * kefa_target_sent() - handle the delivery of data to a reader
 * @rdm: the endpoint
 * @rop: operation of the reader
 *
 * Serves as kefa_pkt_ops.completed.
 *
 * Context: Under kefa_ep.lock. The pump is due.
 */
void kefa_target_sent(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (rop->wrs || rop->state != KEFA_ROP_POSTED)
		return;
	kefa_target_end(rdm, rop, true);
	kefa_target_was_read(rdm, rop->total);
	rop->flags |= KEFA_ROP_OVER;
}

/**
 * kefa_target_park() - free the copy buffer of a packet that waits for a peer
 * @rdm: the endpoint
 * @ts: slot of the packet, with data for a reader in a copy buffer
 *
 * Context: Under kefa_ep.lock. The pump is due.
 */
void kefa_target_park(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	memcpy(ts->hdr, ts->copy->data, kefa_slice_of(ts)->hdr);
	kefa_copy_free(&rdm->ep, ts->copy);
	ts->copy = NULL;
}

/**
 * kefa_target_again() - make a packet again that kefa_target_park() has taken apart
 * @rdm: the endpoint
 * @ts: slot of the packet, in no list; freed if the packet isn't needed or the region was closed
 *
 * Context: Under kefa_ep.lock.
 * Return: 0; -EAGAIN if no copy buffer is free; or -ECANCELED if the slot was freed.
 */
int kefa_target_again(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	const struct kefa_slice *slice = kefa_slice_of(ts);
	struct kefa_rop *rop = ts->rop;

	if (!rop || rop->state != KEFA_ROP_DYING) {
		if (!kefa_slice_copy(rdm, ts))
			return -EAGAIN;
		memcpy(ts->copy->data, ts->hdr, slice->hdr);
		if (kefa_slice_read(rdm, ts, slice)) {
			rdm->stats.copied += ts->len - slice->hdr;
			kefa_dma_sync_for_device(rdm->ep.dma, ts->copy->dma, ts->len,
						 DMA_TO_DEVICE);
			return 0;
		}
	}
	kefa_ts_free(rdm, ts);
	if (rop) {
		rop->wrs--;
		kefa_target_give_up(rdm, rop);
	}
	return -ECANCELED;
}

/**
 * kefa_target_may_stream() - check whether an answer with data may be sent to a peer now
 * @rdm: the endpoint
 * @peer: the peer
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: whether it may. If not, the pump tries again.
 */
bool kefa_target_may_stream(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	return kefa_target_may_answer(rdm, peer) && kefa_may_stream(rdm, peer) &&
	       kefa_target_may_post(rdm, peer);
}

static enum kefa_took kefa_rtr_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					const struct kefa_pkt *pkt, struct kefa_held *held)
{
	const u64 window = kefa_granted(pkt->recv_length, pkt->msg_length);
	const u32 len = min_t(u64, window, kefa_readrsp_room(&rdm->lim));
	struct kefa_pkt rsp = {
		.row		= kefa_row_of(KEFA_READRSP_PKT),
		.recv_id	= pkt->recv_id,
		.seg_length	= len,
	};
	struct kefa_slice slice = { .hdr = sizeof(struct kefa_readrsp_hdr) };
	const bool whole = len == pkt->msg_length;
	struct kefa_rop *rop = NULL;
	struct kefa_ts *ts;

	if (!kefa_target_check(rdm, peer, pkt, FI_REMOTE_READ, slice.mem))
		return KEFA_TOOK_DONE;
	if (!kefa_target_may_stream(rdm, peer) || kefa_rpeer_dead(peer) ||
	    (!whole && !kefa_target_may_begin(rdm, peer)))
		return KEFA_TOOK_NOT;
	ts = kefa_target_slot(rdm, peer, &slice, len);
	if (IS_ERR_OR_NULL(ts))
		return ts ? KEFA_TOOK_DONE : KEFA_TOOK_NOT;
	if (!whole) {
		rop = kefa_target_begin(rdm, peer, pkt, slice.mem, KEFA_ROP_DATA_TX);
		rop->remote_id = pkt->recv_id;
		rop->sent = len;
		rop->done = window;
		rsp.send_id = kefa_rop_id(&rdm->rops, rop);
	}
	kefa_target_post(rdm, ts, rop, &rsp);
	if (rop)
		kefa_stream_begun(rdm, rop);
	return KEFA_TOOK_DONE;
}

const struct kefa_pkt_ops kefa_rtr_ops = {
	.fill		= kefa_rtr_fill,
	.received	= kefa_rtr_received,
};

/* --- checks --- */

/* Return: whether a request of another peer waits, and streams have used up the slots for data. */
static bool kefa_slots_wanted(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	const struct kefa_held *held;

	if (rdm->ts_nfree > rdm->ts_ctl + rdm->nts / KEFA_TX_REQUESTS)
		return false;
	list_for_each_entry(held, &rdm->asked, link)
		if (held->len && held->peer != peer)
			return true;
	list_for_each_entry(held, &rdm->due, due)
		if (held->peer != peer)
			return true;
	return false;
}

/*
 * Free the slots of answers that wait for a peer, which gets none of them: those to requests of one
 * packet. The answer to a message isn't one of them.
 */
static void kefa_answers_cut(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	struct kefa_ts *ts, *next;
	bool cut = false;

	list_for_each_entry_safe(ts, next, &rdm->parked, list) {
		if (ts->peer != peer || !ts->serves || ts->rop)
			continue;
		kefa_ts_free(rdm, ts);
		cut = true;
	}
	rdm->stats.target_cut += cut;
	peer->backoff.checks = 0;
}

/* End the wait for peers that take no answers. Return: whether there are such peers. */
static bool kefa_answers_check(struct kefa_rdm *rdm)
{
	struct rb_node *n, *next;
	struct kefa_rpeer *peer;
	bool more = false;

	for (n = rb_first_cached(&rdm->backoffs.queue.rb_root); n; n = next) {
		next = rb_next(n);
		peer = container_of(n, struct kefa_rpeer, backoff.timer.node);
		if (!peer->answers)
			continue;
		more = true;
		if (peer->backoff.checks < rdm->fair.stall) {
			peer->backoff.checks++;
		} else if (peer->flags & KEFA_RPEER_IMPLICIT) {
			rdm->stats.stalled++;
			kefa_rdm_kill(rdm, peer, ETIMEDOUT, 0);
		} else if (kefa_slots_wanted(rdm, peer)) {
			kefa_answers_cut(rdm, peer);
		}
	}
	return more;
}

/**
 * kefa_targets_check() - end operations of peers that make no progress, and answers that wait
 * @rdm: the endpoint, enabled
 *
 * Called each KEFA_SILENT_MS while there are any. A peer in no address vector dies. Of the
 * operations of other peers one ends if requests wait, and its peer gets no answer; nor does a peer
 * that takes none, if requests wait for the slots.
 *
 * Context: Under kefa_ep.lock. kefa_rdm_pump() is due.
 * Return: whether there are operations of peers, requests that wait, or answers that wait.
 */
bool kefa_targets_check(struct kefa_rdm *rdm)
{
	bool more = kefa_answers_check(rdm), cut = list_empty(&rdm->asked);
	struct kefa_target *target;
	struct kefa_rop *rop;
	u32 i;

	lockdep_assert_held(&rdm->ep.lock);
	for (i = 0; rdm->targets && i < KEFA_TARGETS; i++) {
		target = &rdm->targets[i];
		rop = target->rop;
		if (!rop || kefa_rpeer_dead(rop->peer))
			continue;
		target->idle = target->seen == rop->done + rop->sent ? target->idle + 1 : 0;
		target->seen = rop->done + rop->sent;
		if (target->idle < rdm->fair.stall)
			continue;
		/* Nothing may wait now, and something later. */
		target->idle = rdm->fair.stall;
		if (rop->peer->flags & KEFA_RPEER_IMPLICIT) {
			rdm->stats.stalled++;
			kefa_rdm_kill(rdm, rop->peer, ETIMEDOUT, 0);
		} else if (!cut && kefa_tx_unpark(rdm, rop)) {
			rdm->stats.target_cut++;
			cut = true;
			kefa_rop_fail(rdm, rop, ETIMEDOUT, 0);
		}
	}
	return more || !list_empty(&rdm->asked) || !list_empty(&rdm->due) ||
	       (rdm->targets && rdm->ntargets < KEFA_TARGETS);
}
