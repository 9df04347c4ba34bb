/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations and common functions of the fast paths. */
#ifndef KEFA_RDM_FAST_H
#define KEFA_RDM_FAST_H

#include "../io.h"
#include "../trace.h"
#include "fast_parse.h"
#include "rdm.h"
#include "tx.h"

/* fast_medium.c */

bool kefa_part_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc);
bool kefa_part_sent(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct ib_wc *wc);

/* fast_read.c */

bool kefa_read_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc);
bool kefa_read_sent(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct ib_wc *wc);

/* fast_far.c */

bool kefa_far_done(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct ib_wc *wc);
bool kefa_far_sent(struct kefa_rdm *rdm, struct kefa_ts *ts);
bool kefa_far_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc);

/* source.c */

struct kefa_source *kefa_source_one(struct kefa_rdm *rdm, void *buf, size_t len);
void kefa_source_post(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_source *s);
void kefa_source_valid(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_source_end(struct kefa_rdm *rdm, struct kefa_rop *rop);

/**
 * kefa_rpeer_usual() - check that nothing has to be done about a peer that has sent a packet
 * @peer: the peer
 *
 * Context: Under kefa_ep.lock.
 * Return: whether the peer is alive, has sent a packet before, and is sure to be the one that the
 * completion reports.
 */
static __always_inline bool kefa_rpeer_usual(const struct kefa_rpeer *peer)
{
	return peer->state >= KEFA_RPEER_KNOWN && peer->state <= KEFA_RPEER_READY &&
	       peer->flags & KEFA_RPEER_SURE;
}

/**
 * kefa_wc_from() - check that a packet was sent by a peer
 * @wc: completion of the packet
 * @peer: the peer
 * @connid: connid in the packet
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it was; false also if the device doesn't know the sender's address handle.
 */
static __always_inline bool kefa_wc_from(const struct ib_wc *wc, const struct kefa_rpeer *peer,
					 u32 connid)
{
	return wc->slid != KEFA_NO_SLID && kefa_rpeer_slid(peer) == wc->slid &&
	       kefa_rpeer_qpn(peer) == wc->src_qp && kefa_rpeer_connid(peer) == connid;
}

/* Return: kind of the message for kofi_match_find(). */
static __always_inline u64 kefa_eager_what(const struct kefa_eager *e)
{
	return e->tagged ? FI_TAGGED : FI_MSG;
}

/**
 * kefa_turn_of() - find the sender of a message
 * @rdm: the endpoint
 * @wc: the packet's completion
 * @e: contents of the packet
 *
 * Context: Under kefa_ep.lock.
 * Return: the peer; NULL unless it passes kefa_rpeer_usual(), and the message is the next in order.
 */
static __always_inline struct kefa_rpeer *kefa_turn_of(struct kefa_rdm *rdm,
						       const struct ib_wc *wc,
						       const struct kefa_eager *e)
{
	struct kefa_rpeer *peer;

	peer = kefa_peers_known(&rdm->peers, wc->slid, wc->src_qp, e->connid);
	if (unlikely(!peer || !kefa_rpeer_usual(peer)))
		return NULL;
	if (unlikely(rdm->ordered && e->msg_id != peer->order.exp_id))
		return NULL;
	return peer;
}

/**
 * kefa_may_begin() - check whether a peer may begin one more message in several packets
 * @rdm: the endpoint
 * @peer: the peer
 *
 * While only a few receives wait for the rest of their message, every peer may.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it may. If not, the message waits as if its turn hadn't come.
 */
static __always_inline bool kefa_may_begin(const struct kefa_rdm *rdm,
					   const struct kefa_rpeer *peer)
{
	const struct kefa_side *side = &rdm->ep.rx;
	const size_t posted = side->base.size - side->nfree;

	lockdep_assert_held(&rdm->ep.lock);
	return likely(!rdm->fair.begun ||
		      2 * rdm->fair.begun < min_t(size_t, posted, KEFA_RDM_SPARE_OPS)) ||
	       kefa_fair_may_begin(rdm, peer);
}

/**
 * kefa_arrived() - account for a packet of a known peer: counter, trace and sign of life
 * @rdm: the endpoint
 * @peer: the sender
 * @type: type of the packet
 * @e: contents of the packet
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_arrived(struct kefa_rdm *rdm, struct kefa_rpeer *peer, u8 type,
					 const struct kefa_eager *e)
{
	peer->flags &= ~KEFA_RPEER_SILENT;
	if (unlikely(peer->flags & KEFA_RPEER_IMPLICIT))
		kefa_peers_heard(&rdm->peers, peer);
	rdm->stats.received[type]++;
	trace_kefa_packet(&rdm->ep, peer, type, e->msg_id, e->len, false);
}

/**
 * kefa_rop_received() - complete a receive whose id no peer knows, with the next report
 * @rdm: the endpoint
 * @rop: the receive, with source, length and tag of its message, which fits into the buffer and has
 *	no CQ data
 *
 * Context: Under kefa_ep.lock. The report is due.
 */
static __always_inline void kefa_rop_received(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_FREE);
	*rdm->taken_tail = rop;
	rdm->taken_tail = &rop->next;
	rdm->ntaken++;
}

/**
 * kefa_ring() - ring the doorbell, unless more work requests will follow
 * @rdm: the endpoint
 * @nheld: number of work requests that were held before the last one
 * @alone: the last one is the only one, and none will follow
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_ring(struct kefa_rdm *rdm, unsigned int nheld, bool alone)
{
	struct kefa_ep *ep = &rdm->ep;
	int ret;

	if (!alone) {
		ep->nheld = nheld + 1;
		if (!kefa_ep_holds(ep))
			kefa_tx_flush(rdm);
		return;
	}
	ep->stats.doorbells++;
	ret = kefa_hw_post_send(&ep->hq, ep->held, 1);
	if (unlikely(ret))
		kefa_tx_refused(rdm, 1, -ret);
}

/**
 * kefa_ts_report() - complete a sent message with the next report
 * @rdm: the endpoint
 * @ts: slot with the fields of the completion; the report puts it into the list of free ones
 *
 * Context: Under kefa_ep.lock. The report is due.
 */
static __always_inline void kefa_ts_report(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	*rdm->sent_tail = ts;
	rdm->sent_tail = &ts->next;
	rdm->nsent++;
}

/**
 * kefa_sent_all() - report a message that has an operation, all of whose work requests are over
 * @rdm: the endpoint
 * @rop: the operation, which ends
 * @ts: slot of the last work request, in KEFA_TS_FREE, in no list
 *
 * Context: Under kefa_ep.lock. The report is due.
 */
static inline void kefa_sent_all(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_ts *ts)
{
	ts->context = rop->context;
	ts->cq_flags = rop->cq_flags;
	ts->tag = rop->tag;
	ts->total = rop->total;
	ts->how = rop->flags & (KEFA_ROP_QUIET | KEFA_ROP_AS_MSG);
	kefa_ts_report(rdm, ts);
	rop->peer->nops--;
	rop->flags |= KEFA_ROP_OVER | KEFA_ROP_TOLD;
	kefa_rop_end(&rdm->rops, rop);
	rdm->ep.rx.room |= rdm->ep.rx.wanted;
}

/**
 * kefa_rpeer_waits() - check whether something waits for a slot to be sent to a peer
 * @peer: the peer
 *
 * Context: Under kefa_ep.lock.
 * Return: whether something does.
 */
static inline bool kefa_rpeer_waits(const struct kefa_rpeer *peer)
{
	if (unlikely(peer->owes))
		return true;
	return !list_empty(&peer->wait) &&
	       list_first_entry(&peer->wait, struct kefa_rop, peer_link)->state != KEFA_ROP_REG;
}

/**
 * kefa_read_slot_over() - end the use of a slot whose last work request is over
 * @rdm: the endpoint
 * @ts: the slot, without a copy buffer. kefa_read_slot_todo() is due
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_read_slot_over(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	ts->rop = NULL;
	ts->seg.len = 0;
	ts->what = KEFA_TS_PACKET;
	kefa_ts_release(rdm, ts);
}

/* Have the pump send what waits for a slot. Return: true. */
static noinline bool kefa_read_slot_wanted(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	kefa_rdm_todo(rdm, peer);
	return true;
}

/**
 * kefa_read_slot_todo() - use a free slot for what waits for a peer
 * @rdm: the endpoint
 * @peer: the peer
 *
 * Context: Under kefa_ep.lock.
 * Return: true, for callers that end with a tail call.
 */
static __always_inline bool kefa_read_slot_todo(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	return unlikely(kefa_rpeer_waits(peer)) ? kefa_read_slot_wanted(rdm, peer) : true;
}

#endif /* KEFA_RDM_FAST_H */
