/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations and common functions of the fast paths. */
#ifndef KEFA_RDM_FAST_H
#define KEFA_RDM_FAST_H

#include "../io.h"
#include "../trace.h"
#include "fast_parse.h"
#include "rdm.h"
#include "tx.h"

/* fast_eager.c */

void kefa_eager_cut(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_rpeer *peer);
void kefa_eager_scatter(const struct kefa_rop *rop, const void *data, u64 off, u64 len);

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

/* fast_atomic.c */

bool kefa_fetch_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc);
bool kefa_atomrsp_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc);

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
 * kefa_eager_take() - copy a message into its receive
 * @rdm: the endpoint
 * @rop: the receive, removed from the match
 * @peer: sender of the message
 * @e: the message
 *
 * Context: Under kefa_ep.lock. The report is due.
 */
static __always_inline void kefa_eager_take(struct kefa_rdm *rdm, struct kefa_rop *rop,
					    struct kefa_rpeer *peer,
					    const struct kefa_eager *e)
{
	const u64 len = min_t(u64, e->len, rop->buf.len);

	if (likely(!rop->buf.segs))
		kefa_copy_data(rop->buf.base, e->data, len);
	else
		kefa_eager_scatter(rop, e->data, 0, len);
	rdm->ep.stats.rx_bytes += e->len;
	rop->peer = peer;
	rop->total = e->len;
	rop->tag = e->tag;
	if (unlikely(e->len > len)) {
		kefa_eager_cut(rdm, rop, peer);
		return;
	}
	kefa_rop_received(rdm, rop);
}

/**
 * kefa_eager_begun() - handle the messages that have waited for a message to have its turn
 * @rdm: the endpoint
 * @peer: sender of the message, which has had it
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_eager_begun(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	if (unlikely(!rdm->ordered))
		return;
	kefa_order_begun(&peer->order);
	if (unlikely(!list_empty(&rdm->early))) {
		kefa_rdm_report(rdm);
		kefa_rdm_drain(rdm, peer);
	}
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
 * kefa_sent_far() - as kefa_sent_all(), for a read, write or atomic operation
 * @rdm: the endpoint
 * @rop: the operation, which ends
 * @ts: slot of the last work request, in KEFA_TS_FREE, in no list
 *
 * The tag of a connection's operation isn't for the completion.
 *
 * Context: Under kefa_ep.lock. The report is due.
 */
static inline void kefa_sent_far(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_ts *ts)
{
	rop->tag = 0;
	kefa_sent_all(rdm, rop, ts);
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

/* --- requests and answers of fast_far.c and fast_atomic.c --- */

/**
 * kefa_far_peer() - find a peer to which a packet or work request can be posted at once
 * @rdm: the endpoint
 * @addr: address of the peer
 *
 * Context: Under kefa_ep.lock.
 * Return: the peer, or NULL.
 */
static __always_inline struct kefa_rpeer *kefa_far_peer(const struct kefa_rdm *rdm, fi_addr_t addr)
{
	struct kefa_rpeer *peer = kefa_peers_at(&rdm->peers, addr);

	if (unlikely(!peer || !kefa_shake_ready(&rdm->self, peer) || peer->owes ||
		     peer->flags & KEFA_RPEER_APART || !list_empty(&peer->wait) ||
		     !kefa_may_take(rdm, peer, 0)))
		return NULL;
	return peer;
}

/**
 * kefa_far_wr() - add a work request to those that wait for the doorbell
 * @rdm: the endpoint
 * @ts: slot of the work request
 * @nheld: number of work requests that wait, less than KEFA_HELD_MAX
 *
 * Context: Under kefa_ep.lock.
 * Return: the work request, to be filled in.
 */
static __always_inline struct kefa_wr *kefa_far_wr(struct kefa_rdm *rdm, struct kefa_ts *ts,
						   unsigned int nheld)
{
	struct kefa_ep *ep = &rdm->ep;
	struct kefa_wr *wr = &ep->wrs[nheld];

	kefa_ts_set_state(rdm, ts, KEFA_TS_POSTED);
	ep->held[nheld] = wr;
	return wr;
}

/**
 * kefa_far_post() - add a packet that has its header and its data to those that wait
 * @rdm: the endpoint
 * @ts: slot of the packet
 * @type: enum kefa_pkt_type
 * @nheld: number of work requests that wait for the doorbell, less than KEFA_HELD_MAX
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_far_post(struct kefa_rdm *rdm, struct kefa_ts *ts, u8 type,
					  unsigned int nheld)
{
	struct kefa_wr *wr = kefa_far_wr(rdm, ts, nheld);
	struct kefa_rpeer *peer = ts->peer;
	const dma_addr_t dma = ts->copy ? ts->copy->dma : ts->dma;

	ts->type = type;
	rdm->stats.sent[type]++;
	kefa_wr_send(wr, ts->id, peer->ah->ah, kefa_rpeer_qpn(peer), kefa_rpeer_connid(peer));
	kefa_dma_sync_for_device(rdm->ep.dma, dma, ts->len, DMA_TO_DEVICE);
	kefa_wr_sge(wr, dma, ts->len);
	if (ts->seg.len)
		kefa_wr_sge(wr, ts->seg.dma, ts->seg.len);
}

/**
 * kefa_far_tail() - write what follows the fixed header of a request for one piece of memory
 * @rdm: the endpoint
 * @iov: the end of the fixed header
 * @addr: address of the memory
 * @len: length of the memory
 * @key: key of the memory
 *
 * Context: Under kefa_ep.lock.
 * Return: where the data goes.
 */
static __always_inline void *kefa_far_tail(const struct kefa_rdm *rdm, struct kefa_rma_iov *iov,
					   u64 addr, u64 len, u64 key)
{
	struct kefa_req_opt_connid_hdr *opt = (void *)(iov + 1);

	iov->addr = cpu_to_le64(addr);
	iov->len = cpu_to_le64(len);
	iov->key = cpu_to_le64(key);
	opt->connid = cpu_to_le32(rdm->self.connid);
	return opt + 1;
}

/**
 * kefa_far_took() - account for a packet that was handled, and post its receive slot again
 * @rdm: the endpoint
 * @rs: slot of the packet
 * @peer: the sender
 * @type: enum kefa_pkt_type
 * @len: length of the data
 *
 * Context: Under kefa_ep.lock. kefa_rx_give() is due.
 * Return: true, for callers that end with a tail call.
 */
static __always_inline bool kefa_far_took(struct kefa_rdm *rdm, struct kefa_rs *rs,
					  struct kefa_rpeer *peer, u8 type, u32 len)
{
	const struct kefa_eager e = { .len = len };

	kefa_rs_take(rdm, rs);
	kefa_arrived(rdm, peer, type, &e);
	kefa_rs_again(rdm, rs);
	return true;
}

#endif /* KEFA_RDM_FAST_H */
