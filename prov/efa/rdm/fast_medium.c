// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fast path of messages in several packets.
 *
 * Receiving: the packets of a medium message differ only in the offset of their data. The first one
 * finds a receive. A later one is expected to belong to kefa_rdm.part, the message that began last.
 * Sending: each packet has a send slot, and the operation completes with its last packet.
 *
 * Any other packet takes the slow path, which also judges errors. So nothing is changed before it
 * is certain that the fast path can take the packet.
 */
#include "fast.h"

/* --- receiving --- */

static u8 kefa_part_type(const struct kefa_part *p)
{
	return p->e.tagged ? KEFA_MEDIUM_TAGRTM_PKT : KEFA_MEDIUM_MSGRTM_PKT;
}

/* Return: whether a packet is another one of the message of @rop, by header and completion. */
static bool kefa_part_of(const struct kefa_rop *rop, const struct kefa_part *p,
			 const struct ib_wc *wc)
{
	return rop->state == KEFA_ROP_DATA_RX && rop->type == kefa_part_type(p) &&
	       rop->msg_id == p->e.msg_id && rop->total == p->total &&
	       p->e.len <= rop->total - rop->done &&
	       kefa_wc_from(wc, rop->peer, p->e.connid);
}

/* Complete a receive that has all data of its message. */
static void kefa_part_last(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_rpeer *peer = rop->peer;

	if (unlikely(rop->flags & ~(KEFA_ROP_QUIET | KEFA_ROP_AS_MSG) ||
		     rop->cq_flags & FI_REMOTE_CQ_DATA || rop->total > rop->buf.len ||
		     rop->owes || !list_empty(&rop->link) ||
		     peer->state == KEFA_RPEER_GONE)) {
		kefa_rdm_report(rdm);
		kefa_rop_whole(rdm, rop);
		return;
	}
	kefa_rop_waited(rdm, rop);
	kefa_index_del(&rdm->msgs, &rop->msg);
	peer->nops--;
	kefa_rop_received(rdm, rop);
}

static void kefa_part_put(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_rs *rs,
			  const struct kefa_part *p)
{
	kefa_rs_take(rdm, rs);
	kefa_arrived(rdm, rop->peer, rop->type, &p->e);
	kefa_rop_put(rdm, rop, p->e.data, p->off, p->e.len);
	kefa_rs_again(rdm, rs);
}

/* Give the receive @rop the message that this packet belongs to. */
static void kefa_part_begin(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_rpeer *peer,
			    const struct kefa_part *p)
{
	kefa_rop_unlist(rop);
	rop->peer = peer;
	peer->nops++;
	rop->type = kefa_part_type(p);
	rop->msg_id = p->e.msg_id;
	rop->total = p->total;
	rop->tag = p->e.tag;
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_DATA_RX);
	kefa_index_add(&rdm->msgs, &rop->msg, kefa_rop_key(peer->id, p->e.msg_id));
	kefa_rop_wait(rdm, rop);
	rdm->part = rop;
}

/*
 * Take the first packet of a message. Return false, with nothing changed, if no receive matches or
 * if it is a multi-receive.
 */
static bool kefa_part_first(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct kefa_part *p,
			    const struct ib_wc *wc)
{
	struct kofi_match_recv *recv;
	struct kefa_rpeer *peer;
	struct kefa_rop *rop;

	/* An early packet may belong to this message; without order, it may already have begun. */
	if (!rdm->ordered || !list_empty(&rdm->early) || p->e.len == p->total)
		return false;
	peer = kefa_turn_of(rdm, wc, &p->e);
	if (!peer || !kefa_may_begin(rdm, peer))
		return false;
	recv = kofi_match_find(&rdm->match, kefa_eager_what(&p->e), kefa_msg_src(rdm, peer),
			       p->e.tag);
	if (!recv || recv->link.multi)
		return false;
	rop = container_of(recv, struct kefa_rop, recv);
	kefa_part_begin(rdm, rop, peer, p);
	kefa_part_put(rdm, rop, rs, p);
	kefa_order_begun(&peer->order);
	return true;
}

/**
 * kefa_part_arrived() - take a packet of a medium message
 * @rdm: the endpoint, enabled
 * @rs: the packet's receive slot, unchanged by kefa_eager_arrived()
 * @wc: completion of the receive
 *
 * Context: Under kefa_ep.lock. The report and kefa_rx_give() are due.
 * Return: true if it was taken; false, with nothing changed, if it takes the slow path.
 */
bool kefa_part_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc)
{
	struct kefa_rop *rop = rdm->part;
	struct kefa_part __uninitialized p;

	lockdep_assert_held(&rdm->ep.lock);
	if (!kefa_part_parse(rs->held.buf, wc->byte_len, &p))
		return false;
	if (!rop || !kefa_part_of(rop, &p, wc))
		return kefa_part_first(rdm, rs, &p, wc);
	kefa_part_put(rdm, rop, rs, &p);
	if (rop->done == rop->total)
		kefa_part_last(rdm, rop);
	return true;
}

/* --- sending --- */

/* Not inlined, nor is kefa_part_over(): most packets need neither. */
static noinline void kefa_part_todo(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	kefa_rdm_todo(rdm, peer);
}

/* Complete a message, all packets of which were sent, by the slot @ts of the last one. */
static noinline bool kefa_part_over(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_ts *ts)
{
	kefa_dma_unmap(rdm->ep.dma, rop->dma, rop->total, DMA_TO_DEVICE);
	rop->mapped = false;
	if (unlikely(rop->more & KEFA_ROP_FAR))
		kefa_sent_far(rdm, rop, ts);
	else
		kefa_sent_all(rdm, rop, ts);
	return true;
}

/* Return: whether a packet was sent without an error, and its operation awaits only such ones. */
static __always_inline bool kefa_part_plain(const struct kefa_ts *ts, const struct ib_wc *wc)
{
	const struct kefa_rpeer *peer = ts->peer;
	const struct kefa_rop *rop = ts->rop;

	if (ts->again || kefa_wc_failed(wc))
		return false;
	return rop->state == KEFA_ROP_POSTED && !(rop->flags & KEFA_ROP_OVER) &&
	       !peer->backoff.delay_us && peer->state < KEFA_RPEER_DYING;
}

/**
 * kefa_part_sent() - complete a packet of a message in several packets
 * @rdm: the endpoint, with a queue pair
 * @ts: the packet's send slot, in KEFA_TS_POSTED, with kefa_ts.shared
 * @wc: completion of the send
 *
 * Context: Under kefa_ep.lock. The report is due.
 * Return: true if that was done; false, with nothing changed, if it takes the slow path.
 */
bool kefa_part_sent(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct ib_wc *wc)
{
	struct kefa_rpeer *peer;
	struct kefa_rop *rop;

	lockdep_assert_held(&rdm->ep.lock);
	if (!kefa_part_plain(ts, wc))
		return false;
	kefa_ts_arrived(ts);
	peer = ts->peer;
	rop = ts->rop;
	ts->seg.len = 0;
	ts->rop = NULL;
	ts->shared = false;
	kefa_ts_release(rdm, ts);
	if (!list_empty(&peer->wait) || peer->owes)
		kefa_part_todo(rdm, peer);
	if (!--rop->wrs)
		return kefa_part_over(rdm, rop, ts);
	kefa_ts_unused(rdm, ts);
	return true;
}
