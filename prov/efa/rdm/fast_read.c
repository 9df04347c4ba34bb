// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fast path of messages that their receiver reads. At the sender, the completion of the
 * registration sends the request from the same slot, and the EOR posts the invalidation. At the
 * receiver, the request of a message that is one piece at both ends posts the read, and the
 * completion of the read ends the receive and sends the EOR from the same slot. No such packet is
 * kept, and no operation waits for the pump.
 *
 * Anything else takes the slow path of longread.c and source.c. Nothing changes before it is known
 * which way is taken.
 */
#include "../trace.h"
#include "fast.h"

/* --- slots --- */

/* Like kefa_ts_hold(), but there is room before the doorbell. */
static __always_inline struct kefa_wr *kefa_read_hold(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct kefa_ep *ep = &rdm->ep;
	struct kefa_wr *wr = &ep->wrs[ep->nheld];

	kefa_ts_set_state(rdm, ts, KEFA_TS_POSTED);
	ep->held[ep->nheld++] = wr;
	return wr;
}

/* Send a packet from a slot whose work request is over. Return: the work request. */
static __always_inline struct kefa_wr *kefa_read_slot_again(struct kefa_rdm *rdm,
							    struct kefa_ts *ts, u8 type, u16 len)
{
	struct kefa_rpeer *peer = ts->peer;
	struct kefa_wr *wr;

	ts->what = KEFA_TS_PACKET;
	ts->seg.len = 0;
	ts->type = type;
	ts->len = len;
	kefa_ts_renew(ts);
	rdm->stats.sent[type]++;
	wr = kefa_read_hold(rdm, ts);
	kefa_wr_send(wr, ts->id, peer->ah->ah, kefa_rpeer_qpn(peer), kefa_rpeer_connid(peer));
	return wr;
}

/* --- sender --- */

/* Write the request. Return: its length. */
static u16 kefa_read_request(struct kefa_ts *ts, const struct kefa_rdm *rdm,
			     const struct kefa_rop *rop, bool tagged)
{
	struct kefa_longread_tagrtm_hdr *hdr = (void *)ts->hdr;
	struct kefa_req_opt_connid_hdr *opt = (void *)&hdr->tag + (tagged ? sizeof(hdr->tag) : 0);
	struct kefa_rma_iov *iov = (void *)(opt + 1);

	*(__le32 *)hdr = cpu_to_le32(KEFA_RTM_FIRST(LONGREAD, tagged));
	hdr->hdr.msg_id = cpu_to_le32(rop->msg_id);
	hdr->hdr.msg_length = cpu_to_le64(rop->total);
	hdr->hdr.send_id = cpu_to_le32(kefa_rop_id(&rdm->rops, rop));
	hdr->hdr.read_iov_count = cpu_to_le32(1);
	if (tagged)
		hdr->tag = cpu_to_le64(rop->tag);
	opt->connid = cpu_to_le32(rdm->self.connid);
	kefa_source_iov(rop, iov);
	return (u8 *)(iov + 1) - ts->hdr;
}

/* Return: whether a registered message can be sent now, with a request of the usual form. */
static bool kefa_read_may_send(struct kefa_rdm *rdm, const struct kefa_rop *rop)
{
	struct kefa_rpeer *peer = rop->peer;

	return rop->state == KEFA_ROP_REG && !(rop->flags & KEFA_ROP_DC) &&
	       !(rop->cq_flags & (FI_REMOTE_CQ_DATA | FI_RMA)) && !rdm->lim.runt &&
	       list_first_entry(&peer->wait, struct kefa_rop, peer_link) == rop &&
	       kefa_may_send(rdm, peer) && !peer->owes &&
	       !(peer->flags & KEFA_RPEER_APART) &&
	       kefa_shake_signs(peer) == KEFA_SIGNS_CONNID;
}

static noinline bool kefa_read_registered(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct kefa_rop *rop = ts->rop;
	struct kefa_rpeer *peer = ts->peer;
	const bool tagged = rop->cq_flags & FI_TAGGED;
	struct kefa_wr *wr;
	u16 len;

	if (unlikely(!kefa_read_may_send(rdm, rop)))
		return false;
	kefa_source_valid(rdm, rop);
	list_del_init(&rop->peer_link);
	if (unlikely(kefa_rpeer_waits(peer)))
		kefa_rdm_todo(rdm, peer);
	rop->msg_id = kefa_order_give(&peer->order);
	kefa_ts_order(ts, rop->msg_id);
	rop->type = tagged ? KEFA_LONGREAD_TAGRTM_PKT : KEFA_LONGREAD_MSGRTM_PKT;
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_ACK);
	kefa_silent_arm(rdm);
	len = kefa_read_request(ts, rdm, rop, tagged);
	kefa_dma_sync_for_device(rdm->ep.dma, ts->dma, len, DMA_TO_DEVICE);
	wr = kefa_read_slot_again(rdm, ts, rop->type, len);
	kefa_wr_sge(wr, ts->dma, len);
	trace_kefa_packet(&rdm->ep, peer, rop->type, rop->msg_id, rop->total, true);
	return true;
}

/* The request was delivered. */
static noinline bool kefa_read_requested(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct kefa_rpeer *peer = ts->peer;
	struct kefa_rop *rop = ts->rop;

	/* After a READ_NACK this may be the last completion that the operation waits for. */
	if (!(kefa_pkt_rows[ts->type].flags & KEFA_ROW_READ) || ts->seg.len || ts->copy ||
	    rop->flags & KEFA_ROP_OVER ||
	    (rop->state != KEFA_ROP_ACK && rop->state != KEFA_ROP_INVAL))
		return false;
	kefa_ts_arrived(ts);
	rop->wrs--;
	kefa_read_slot_over(rdm, ts);
	kefa_ts_unused(rdm, ts);
	return kefa_read_slot_todo(rdm, peer);
}

/* The request was delivered, or the EOR of a receive that has ended. */
static __always_inline bool kefa_read_delivered(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	if (ts->rop)
		return ts->type == KEFA_SHORT_RTR_PKT || ts->type == KEFA_FETCH_RTA_PKT ?
		       kefa_far_sent(rdm, ts) : kefa_read_requested(rdm, ts);
	if (ts->type != KEFA_EOR_PKT)
		return kefa_far_sent(rdm, ts);
	kefa_read_slot_over(rdm, ts);
	kefa_ts_unused(rdm, ts);
	return kefa_read_slot_todo(rdm, ts->peer);
}

/* Handle an EOR. Return: false if the slow path must handle it; then nothing has changed. */
static bool kefa_read_ended(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc,
			    const struct kefa_eor_hdr *eor)
{
	static const struct kefa_eager nothing;
	struct kefa_rop *rop = kefa_rop_find(&rdm->rops, le32_to_cpu(eor->send_id));

	if (unlikely(!rop || rop->state != KEFA_ROP_ACK || !rop->source ||
		     !(kefa_pkt_rows[rop->type].flags & KEFA_ROW_READ) ||
		     !kefa_rpeer_usual(rop->peer) ||
		     !kefa_wc_from(wc, rop->peer, le32_to_cpu(eor->connid))))
		return false;
	if (unlikely(!rdm->ts_nfree || rdm->ep.nheld == KEFA_HELD_MAX))
		return false;
	kefa_rs_take(rdm, rs);
	kefa_arrived(rdm, rop->peer, KEFA_EOR_PKT, &nothing);
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_INVAL);
	kefa_source_inval(rdm, rop);
	kefa_rs_again(rdm, rs);
	return true;
}

static noinline bool kefa_read_invalidated(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct kefa_rop *rop = ts->rop;

	if (unlikely(rop->state != KEFA_ROP_INVAL || rop->owes || rop->total > U32_MAX ||
		     rop->cq_flags & (FI_REMOTE_CQ_DATA | FI_RMA) ||
		     !(kefa_pkt_rows[rop->type].flags & KEFA_ROW_READ)))
		return false;
	kefa_source_end(rdm, rop);
	kefa_read_slot_over(rdm, ts);
	kefa_read_slot_todo(rdm, ts->peer);
	rop->wrs--;
	if (likely(!rop->wrs)) {
		kefa_sent_all(rdm, rop, ts);
		return true;
	}
	/* The completion of its request is outstanding. */
	rop->flags |= KEFA_ROP_OVER;
	kefa_ts_unused(rdm, ts);
	return true;
}

/* --- receiver --- */

/* Have the slow path read the message of a receive. */
static noinline void kefa_read_keep(struct kefa_rdm *rdm, struct kefa_rop *rop,
				    struct kefa_rs *rs, const struct ib_wc *wc)
{
	kefa_rdm_report(rdm);
	rs->held.len = wc->byte_len;
	rs->held.src_qpn = wc->src_qp;
	rs->held.slid = wc->slid;
	rop->held = kefa_keep_packet(rdm, &rs->held, rop->peer);
	if (rop->held != &rs->held)
		kefa_rs_again(rdm, rs);
	kefa_rop_read(rdm, rop);
}

/*
 * Read the whole message with one work request, as kefa_read_may_read() allowed.
 * Return: false if that isn't possible.
 */
static bool kefa_read_at_once(struct kefa_rdm *rdm, struct kefa_rop *rop,
			      const struct kefa_read *r)
{
	struct kefa_rpeer *peer = rop->peer;
	struct kefa_ep *ep = &rdm->ep;
	struct kefa_wr *wr;
	struct kefa_ts *ts;

	if (unlikely(rop->buf.segs || r->total > rop->buf.len || !kefa_one_piece(rop->buf.base)))
		return false;
	ts = kefa_ts_pop(rdm, peer);
	ts->what = KEFA_TS_READ;
	if (unlikely(!kefa_seg_map(ep, &ts->seg, virt_to_phys(rop->buf.base), r->total,
				   DMA_FROM_DEVICE))) {
		ts->seg.len = 0;
		kefa_ts_free(rdm, ts);
		ep->stats.map_failed++;
		return false;
	}
	ts->rop = rop;
	rop->wrs = 1;
	rop->sent = r->total;
	rdm->stats.reads++;
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_READING);
	wr = kefa_read_hold(rdm, ts);
	kefa_wr_rdma(wr, ts->id, false, peer->ah->ah, kefa_rpeer_qpn(peer),
		     kefa_rpeer_connid(peer), r->addr, r->key);
	kefa_wr_sge(wr, ts->seg.dma, r->total);
	return true;
}

/* Return: whether a message of a peer can be read now, before those that wait. */
static bool kefa_read_may_read(struct kefa_rdm *rdm, const struct kefa_rpeer *peer,
			       const struct kefa_read *r)
{
	return rdm->self.features & KEFA_FEATURE_RDMA_READ && r->total <= rdm->lim.read_segment &&
	       list_empty(&rdm->reading) && rdm->ep.nheld < KEFA_HELD_MAX &&
	       !peer->backoff.delay_us && kefa_may_stream(rdm, peer);
}

/* Begin a message. Return: false if the slow path must handle it; then nothing has changed. */
static __always_inline bool kefa_read_begin(struct kefa_rdm *rdm, struct kefa_rs *rs,
					    const struct kefa_read *r, const struct ib_wc *wc)
{
	struct kofi_match_recv *recv;
	struct kefa_rpeer *peer;
	struct kefa_rop *rop;

	/* Messages that arrived early may be the next ones. */
	if (unlikely(!list_empty(&rdm->early)))
		return false;
	peer = kefa_turn_of(rdm, wc, &r->e);
	if (unlikely(!peer || !kefa_may_begin(rdm, peer) || !kefa_read_may_read(rdm, peer, r)))
		return false;
	recv = kofi_match_find(&rdm->match, kefa_eager_what(&r->e), kefa_msg_src(rdm, peer),
			       r->e.tag);
	if (unlikely(!recv || recv->link.multi))
		return false;
	rop = container_of(recv, struct kefa_rop, recv);
	kefa_rs_take(rdm, rs);
	if (rdm->ordered)
		kefa_order_begun(&peer->order);
	kefa_rop_unlist(rop);
	rop->peer = peer;
	peer->nops++;
	rop->type = r->type;
	rop->msg_id = r->e.msg_id;
	rop->remote_id = r->send_id;
	rop->total = r->total;
	rop->tag = r->e.tag;
	kefa_arrived(rdm, peer, r->type, &r->e);
	if (likely(kefa_read_at_once(rdm, rop, r)))
		kefa_rs_again(rdm, rs);
	else
		kefa_read_keep(rdm, rop, rs, wc);
	return true;
}

/* Complete a receive whose message was read. Its slot sends the EOR, and has all data for it. */
static noinline bool kefa_read_came(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct kefa_eor_hdr *eor = (void *)ts->hdr;
	struct kefa_rpeer *peer = ts->peer;
	struct kefa_rop *rop = ts->rop;
	const u32 len = ts->seg.len;
	struct kefa_wr *wr;

	/* A read by the slow path has the request that it may be repeated from. */
	if (unlikely(rop->state != KEFA_ROP_READING || rop->held || rop->total != len ||
		     rop->flags & ~(KEFA_ROP_QUIET | KEFA_ROP_AS_MSG) ||
		     rop->cq_flags & FI_REMOTE_CQ_DATA || peer->owes))
		return false;
	kefa_dma_unmap(rdm->ep.dma, ts->seg.dma, len, DMA_FROM_DEVICE);
	rdm->ep.stats.rx_bytes += len;
	*(__le32 *)eor = cpu_to_le32(KEFA_EAGER_FIRST(KEFA_EOR_PKT));
	eor->send_id = cpu_to_le32(rop->remote_id);
	eor->recv_id = cpu_to_le32(kefa_rop_id(&rdm->rops, rop));
	eor->connid = cpu_to_le32(rdm->self.connid);
	ts->rop = NULL;
	wr = kefa_read_slot_again(rdm, ts, KEFA_EOR_PKT, sizeof(*eor));
	kefa_wr_inline(wr, eor, sizeof(*eor));
	rop->gen++;
	rop->wrs = 0;
	peer->nops--;
	kefa_rop_received(rdm, rop);
	return true;
}

/* --- packets and completions --- */

/**
 * kefa_read_arrived() - handle a request of a message that is read, or an EOR
 * @rdm: the endpoint, enabled
 * @rs: slot of the packet, as found by kefa_eager_arrived()
 * @wc: completion of the packet
 *
 * Context: Under kefa_ep.lock. The report and kefa_rx_give() are due.
 * Return: whether the packet was handled; if not, nothing has changed.
 */
bool kefa_read_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc)
{
	struct kefa_read __uninitialized r;
	const struct kefa_eor_hdr *eor;

	lockdep_assert_held(&rdm->ep.lock);
	if (unlikely(rdm->ep.state != KEFA_EP_ENABLED))
		return false;
	eor = kefa_eor_parse(rs->held.buf, wc->byte_len);
	if (eor)
		return kefa_read_ended(rdm, rs, wc, eor);
	return kefa_read_parse(rs->held.buf, wc->byte_len, &r) && kefa_read_begin(rdm, rs, &r, wc);
}

/**
 * kefa_read_sent() - handle the completion of a work request for a message that is read
 * @rdm: the endpoint, with a queue pair
 * @ts: slot of the work request, in KEFA_TS_POSTED, neither a whole message nor shared
 * @wc: completion of the work request
 *
 * Context: Under kefa_ep.lock. The report and kefa_tx_flush() are due.
 * Return: whether the completion was handled; if not, nothing has changed.
 */
bool kefa_read_sent(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct ib_wc *wc)
{
	const struct kefa_rpeer *peer = ts->peer;

	lockdep_assert_held(&rdm->ep.lock);
	/* Nothing can be posted by an endpoint that is being closed. */
	if (unlikely(ts->again || kefa_wc_failed(wc) || peer->backoff.delay_us ||
		     peer->state >= KEFA_RPEER_DYING || rdm->ep.state != KEFA_EP_ENABLED))
		return false;
	if (ts->what == KEFA_TS_PACKET)
		return kefa_read_delivered(rdm, ts);
	if (ts->what == KEFA_TS_INVAL)
		return kefa_read_invalidated(rdm, ts);
	/* The others send a packet from the same slot. */
	if (unlikely(rdm->ep.nheld == KEFA_HELD_MAX))
		return false;
	if (ts->what == KEFA_TS_READ)
		return kefa_read_came(rdm, ts);
	return ts->what == KEFA_TS_REG && kefa_read_registered(rdm, ts);
}
