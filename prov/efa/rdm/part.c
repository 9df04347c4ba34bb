// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fast path of messages in several packets. A medium message that arrives has many of them,
 * each says where its data belongs, and nothing else differs: the first one takes a receive, and
 * the others are those of the message that began last. Of a message that is sent each packet has
 * a slot, and the operation ends with the last.
 *
 * A packet that isn't exactly such a one goes the usual way, which judges it. Nothing changes
 * before that is known.
 */
#include "arrive.h"
#include "part.h"
#include "read.h"

/* --- arriving --- */

static u8 kefa_part_type(const struct kefa_part *p)
{
	return p->e.tagged ? KEFA_MEDIUM_TAGRTM_PKT : KEFA_MEDIUM_MSGRTM_PKT;
}

/* Is the packet one more of that message, by what its header and its completion say? */
static bool kefa_part_of(const struct kefa_rop *rop, const struct kefa_part *p,
			 const struct ib_wc *wc)
{
	return rop->state == KEFA_ROP_DATA_RX && rop->type == kefa_part_type(p) &&
	       rop->msg_id == p->e.msg_id && rop->total == p->total &&
	       p->e.len <= rop->total - rop->done &&
	       kefa_wc_from(wc, rop->peer, p->e.connid);
}

/* That is all of the message. */
static void kefa_part_last(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_rpeer *peer = rop->peer;

	if (unlikely(rop->flags & ~KEFA_ROP_QUIET || rop->cq_flags & FI_REMOTE_CQ_DATA ||
		     rop->total > rop->buf.len || rop->owes || !list_empty(&rop->link) ||
		     peer->state == KEFA_RPEER_GONE)) {
		kefa_rdm_report(rdm);
		kefa_rop_whole(rdm, rop);
		return;
	}
	kefa_index_del(&rdm->msgs, &rop->msg);
	peer->nops--;
	kefa_took(rdm, rop);
}

static void kefa_part_put(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_rs *rs,
			  const struct kefa_part *p)
{
	rs->state = KEFA_RS_TAKEN;
	rdm->nposted--;
	kefa_arrived(rdm, rop->peer, rop->type, &p->e);
	kefa_rop_put(rdm, rop, p->e.data, p->off, p->e.len);
	kefa_rs_again(rdm, rs);
}

/* The receive has the message of which that is a part. */
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
	kefa_silent_arm(rdm);
	rdm->part = rop;
}

/*
 * The first packet of a message. If there is no receive for it, or that is one for several
 * messages, all stays as it is.
 */
static bool kefa_part_first(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct kefa_part *p,
			    const struct ib_wc *wc)
{
	struct kofi_match_key __uninitialized key;
	struct kofi_match_recv *recv;
	struct kefa_rpeer *peer;
	struct kefa_rop *rop;

	/* Early packets may be of this message. Without an order any may have come of it. */
	if (!rdm->ordered || !list_empty(&rdm->early) || p->e.len == p->total)
		return false;
	peer = kefa_turn_of(rdm, wc, &p->e);
	if (!peer)
		return false;
	recv = kofi_match_find(&rdm->match, &key, p->e.tagged ? FI_TAGGED : FI_MSG,
			       kefa_msg_src(rdm, peer), p->e.tag);
	if (!recv || recv->link.multi)
		return false;
	rop = container_of(recv, struct kefa_rop, recv);
	kefa_part_begin(rdm, rop, peer, p);
	kefa_part_put(rdm, rop, rs, p);
	peer->order.exp_id++;
	return true;
}

/**
 * kefa_part_arrived() - take a packet of a medium message
 * @rdm: the endpoint, enabled
 * @rs: the slot that the packet is in, as kefa_eager_arrived() has found it
 * @wc: its completion
 *
 * Context: Under kefa_ep.lock. The report and kefa_rx_give() are due.
 * Return: whether it has been taken; if not, all is as it was.
 */
bool kefa_part_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc)
{
	struct kefa_rop *rop = rdm->part;
	struct kefa_part __uninitialized p;

	lockdep_assert_held(&rdm->ep.lock);
	if (!kefa_part_parse(rs->held.buf, wc->byte_len, &p))
		return kefa_read_arrived(rdm, rs, wc);
	if (!rop || !kefa_part_of(rop, &p, wc))
		return kefa_part_first(rdm, rs, &p, wc);
	kefa_part_put(rdm, rop, rs, &p);
	if (rop->done == rop->total)
		kefa_part_last(rdm, rop);
	return true;
}

/* --- sent --- */

/* Not inline, as is the end: most packets need neither. */
static noinline void kefa_part_todo(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	kefa_rdm_todo(rdm, peer);
}

/* All packets of it have gone, and nothing else is to come. The last one's slot reports it. */
static noinline bool kefa_part_over(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_ts *ts)
{
	kefa_dma_unmap(rdm->ep.dma, rop->dma, rop->total, DMA_TO_DEVICE);
	rop->mapped = false;
	kefa_sent_all(rdm, rop, ts);
	return true;
}

/* Is it one of several that share a mapping, and does its operation wait for nothing else? */
static __always_inline bool kefa_part_plain(const struct kefa_ts *ts, const struct ib_wc *wc)
{
	const struct kefa_rpeer *peer = ts->peer;
	const struct kefa_rop *rop = ts->rop;

	if (ts->again || kefa_wc_failed(wc))
		return false;
	return rop->state == KEFA_ROP_POSTED && !(rop->flags & KEFA_ROP_OVER) &&
	       !peer->backoff.delay_us && peer->state != KEFA_RPEER_GONE;
}

/**
 * kefa_part_sent() - the device is done with a packet of an operation
 * @rdm: the endpoint, with a queue pair
 * @ts: its slot, in KEFA_TS_POSTED, with kefa_ts.shared
 * @wc: its completion
 *
 * Context: Under kefa_ep.lock. The report is due.
 * Return: whether it was one of a message of which only such packets are waited for, and that was
 * all that there is to be done; if not, all is as it was.
 */
bool kefa_part_sent(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct ib_wc *wc)
{
	struct kefa_rpeer *peer;
	struct kefa_rop *rop;

	lockdep_assert_held(&rdm->ep.lock);
	if (!kefa_part_plain(ts, wc))
		return false;
	kefa_order_arrived(&ts->out);
	peer = ts->peer;
	rop = ts->rop;
	ts->seg.len = 0;
	ts->rop = NULL;
	ts->shared = false;
	kefa_ts_set_state(rdm, ts, KEFA_TS_FREE);
	ts->id += KEFA_OP_USE;
	peer->wrs--;
	if (!list_empty(&peer->wait) || peer->owes)
		kefa_part_todo(rdm, peer);
	if (!--rop->wrs)
		return kefa_part_over(rdm, rop, ts);
	kefa_ts_unused(rdm, ts);
	return true;
}
