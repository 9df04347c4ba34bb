// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Handling of the device's completions. The most frequent eager messages take a fast path: a sent
 * message that is its own operation, and a message that arrives in its turn from a known peer.
 * They are reported together, which also frees their slots, so that the completion queue's lock is
 * taken only once. All other completions are handled by fast_medium.c, or by tx.c and msg.c, after
 * a report, so that the ULP gets its completions in order.
 */
#include "fast.h"
#include "msg.h"

/**
 * kefa_eager_init() - initialize the lists of messages to report, and prepared work requests
 * @rdm: the endpoint, about to be enabled
 *
 * Context: Process context.
 */
void kefa_eager_init(struct kefa_rdm *rdm)
{
	struct kefa_ep *ep = &rdm->ep;
	unsigned int i;

	rdm->sent_tail = &rdm->sent;
	rdm->taken_tail = &rdm->taken;
	for (i = 0; i < ARRAY_SIZE(ep->recvs); i++) {
		kefa_recv_wr_init(&ep->recvs[i], ep->dom->pd);
		ep->recvs[i].wr.num_sge = 1;
		ep->recvs[i].sge[0].length = rdm->stride;
	}
}

/* --- the report --- */

/* Report a message without a completion, or one that isn't described as it is. */
static __always_inline void kefa_odd_add(struct kofi_cq_batch *batch, u8 how,
					 struct fi_cq_tagged_entry entry, fi_addr_t src)
{
	if (how & KEFA_ROP_QUIET) {
		batch->quiet++;
		return;
	}
	kefa_as_msg(&entry.flags, &entry.tag);
	kofi_cq_batch_add(batch, &entry, src);
}

static __always_inline void kefa_sent_add(struct kofi_cq_batch *batch, void *arg, unsigned int n)
{
	const struct kefa_rdm *rdm = arg;
	const struct kefa_ts *ts;

	for (ts = rdm->sent; n; n--, ts = ts->next) {
		const struct fi_cq_tagged_entry entry = {
			.op_context	= ts->context,
			.flags		= ts->cq_flags,
			.len		= ts->total,
			.tag		= ts->tag,
		};

		if (unlikely(ts->how))
			kefa_odd_add(batch, ts->how, entry, FI_ADDR_NOTAVAIL);
		else
			kofi_cq_batch_add(batch, &entry, FI_ADDR_NOTAVAIL);
	}
}

static void kefa_sent_report(struct kefa_rdm *rdm)
{
	const unsigned int n = rdm->nsent;
	struct kefa_side *side = &rdm->ep.tx;
	const struct kefa_ts *ts;
	unsigned int i;

	kofi_cq_report(side->base.cq, rdm->ep.reader, n, &side->notify, kefa_sent_add, rdm);
	for (ts = rdm->sent, i = 0; side->base.counted && i < n; i++, ts = ts->next)
		kofi_side_count(&side->base, ts->cq_flags, ts->total, false);
	*rdm->sent_tail = rdm->ts_free;
	rdm->ts_free = rdm->sent;
	rdm->sent_tail = &rdm->sent;
	rdm->nsent = 0;
	rdm->ts_nfree += n;
	side->nfree += n;
	side->room |= side->wanted;
}

static __always_inline void kefa_taken_add(struct kofi_cq_batch *batch, void *arg, unsigned int n)
{
	const struct kefa_rop *rop;
	struct kefa_rdm *rdm = arg;

	for (rop = rdm->taken; n; n--, rop = rop->next) {
		const bool wants_src = !batch->to || batch->to->src_addr;
		struct fi_cq_tagged_entry entry = {
			.op_context	= rop->context,
			.flags		= rop->cq_flags,
			.len		= rop->total,
			.tag		= rop->tag,
		};

		if (unlikely(rop->flags & (KEFA_ROP_QUIET | KEFA_ROP_AS_MSG))) {
			if (rop->flags & KEFA_ROP_QUIET) {
				batch->quiet++;
				continue;
			}
			/* As kefa_as_msg(): there are only messages here. */
			entry.flags = (entry.flags & ~FI_TAGGED) | FI_MSG;
			entry.tag = 0;
		}
		kofi_cq_batch_add(batch, &entry,
				  wants_src ? kefa_rop_src(rdm, rop) : FI_ADDR_NOTAVAIL);
	}
}

static void kefa_taken_report(struct kefa_rdm *rdm)
{
	const unsigned int n = rdm->ntaken;
	struct kefa_side *side = &rdm->ep.rx;
	const struct kefa_rop *rop;
	unsigned int i;

	kofi_cq_report(side->base.cq, rdm->ep.reader, n, &side->notify, kefa_taken_add, rdm);
	for (rop = rdm->taken, i = 0; side->base.counted && i < n; i++, rop = rop->next)
		kofi_side_count(&side->base, rop->cq_flags, rop->total, false);
	kefa_rops_put(&rdm->rops, rdm->taken, rdm->taken_tail, n);
	rdm->taken_tail = &rdm->taken;
	rdm->ntaken = 0;
	side->nfree += n;
	side->room |= side->wanted;
	rdm->ep.tx.room |= rdm->ep.tx.wanted;
}

static __always_inline void kefa_eager_report(struct kefa_rdm *rdm)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (rdm->nsent)
		kefa_sent_report(rdm);
	if (rdm->ntaken)
		kefa_taken_report(rdm);
}

/* --- sent messages --- */

/* Return: false if the completion wasn't handled, because the fast path isn't for it. */
static __always_inline bool kefa_eager_sent(struct kefa_rdm *rdm, const struct ib_wc *wc)
{
	struct kefa_ts *ts = &rdm->ts[lower_32_bits(wc->wr_id)];
	struct kefa_rpeer *peer;

	if (unlikely(lower_32_bits(wc->wr_id) >= rdm->nts || ts->id != wc->wr_id ||
		     ts->state != KEFA_TS_POSTED))
		return false;
	if (unlikely(ts->whole != KEFA_WHOLE_PACKET))
		return ts->whole ? kefa_far_done(rdm, ts, wc) :
		       ts->shared ? kefa_part_sent(rdm, ts, wc) : kefa_read_sent(rdm, ts, wc);
	if (unlikely(ts->again || ts->err))
		return false;
	peer = ts->peer;
	if (unlikely(kefa_wc_failed(wc) || peer->backoff.delay_us ||
		     peer->state >= KEFA_RPEER_DYING))
		return false;
	if (unlikely(!list_empty(&peer->wait) || peer->owes))
		kefa_rdm_todo(rdm, peer);
	if (ts->seg.len) {
		kefa_dma_unmap(rdm->ep.dma, ts->seg.dma, ts->seg.len, DMA_TO_DEVICE);
		ts->seg.len = 0;
	}
	kefa_ts_arrived(ts);
	ts->whole = KEFA_WHOLE_NOT;
	kefa_ts_release(rdm, ts);
	kefa_ts_report(rdm, ts);
	return true;
}

/* --- received messages --- */

/**
 * kefa_eager_cut() - complete a receive whose message was truncated, with an error
 * @rdm: the endpoint
 * @rop: the receive, with its message
 * @peer: sender of the message
 *
 * Context: Under kefa_ep.lock.
 */
noinline void kefa_eager_cut(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_rpeer *peer)
{
	kefa_eager_report(rdm);
	kefa_rop_unlist(rop);
	peer->nops++;
	rop->flags |= KEFA_ROP_OVER;
	kefa_rdm_tell_rx(rdm, rop, 0, 0);
	kefa_rdm_end(rdm, rop);
}

/**
 * kefa_eager_scatter() - copy data of a message into a receive of several pieces
 * @rop: the receive
 * @data: the data
 * @off: offset of the data in the message
 * @len: length of the data; @off + @len is at most the length of the receive
 *
 * Context: Under kefa_ep.lock.
 */
noinline void kefa_eager_scatter(const struct kefa_rop *rop, const void *data, u64 off, u64 len)
{
	struct iov_iter __uninitialized iter;
	struct kvec __uninitialized kvec;

	kefa_rop_iter(rop, ITER_DEST, off, len, &iter, &kvec);
	/*
	 * With CONFIG_HARDENED_USERCOPY, copy_to_iter() refuses data in an object of a slab cache
	 * that isn't meant for user space, by BUG(). The data of a local peer may be in one.
	 */
	WARN_ON_ONCE(_copy_to_iter(data, len, &iter) != len);
}

/*
 * Keep an unexpected message, or drop it. @e isn't a pointer, so that the caller can keep it in
 * registers. Return: whether its receive slot can be posted again.
 */
static noinline bool kefa_eager_keep(struct kefa_rdm *rdm, struct kefa_rs *rs,
				     struct kefa_rpeer *peer, struct kefa_eager e)
{
	struct kefa_held *kept;

	if (kefa_msg_unwanted(rdm, kefa_eager_what(&e), e.tag)) {
		rdm->ep.stats.rx_bytes += e.len;
		return true;
	}
	kept = kefa_keep_packet(rdm, &rs->held, peer);
	rdm->stats.unexpected++;
	kofi_match_msg_init(&kept->msg, kefa_eager_what(&e), kefa_msg_src(rdm, peer), e.tag);
	kofi_match_wait(&rdm->match, &kept->msg);
	kept->where = KEFA_HELD_UNEXP;
	kept->total = e.len;
	kept->parts = e.len;
	kept->done = e.len;
	return kept != &rs->held;
}

static __always_inline struct kefa_rs *kefa_rs_of(struct kefa_rdm *rdm, const struct ib_wc *wc)
{
	const u32 n = lower_32_bits(wc->wr_id) & ~KEFA_RS_ID;
	struct kefa_rs *rs = likely(n < rdm->nrs) ? rdm->rs[n] : NULL;

	if (unlikely(!rs || rs->id != wc->wr_id || rs->state != KEFA_RS_POSTED))
		return NULL;
	if (unlikely(kefa_wc_failed(wc) || wc->opcode == IB_WC_RECV_RDMA_WITH_IMM ||
		     wc->byte_len > rdm->stride))
		return NULL;
	return rs;
}

/*
 * Have another fast path handle a packet. An empty packet has the type of one that was in the
 * buffer before, which the parsers notice by its length.
 */
static __always_inline bool kefa_other_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs,
					       const struct ib_wc *wc)
{
	switch (*(const u8 *)rs->held.buf) {
	case KEFA_MEDIUM_MSGRTM_PKT:
	case KEFA_MEDIUM_TAGRTM_PKT:
		return kefa_part_arrived(rdm, rs, wc);
	case KEFA_EOR_PKT:
	case KEFA_LONGREAD_MSGRTM_PKT:
	case KEFA_LONGREAD_TAGRTM_PKT:
		return kefa_read_arrived(rdm, rs, wc);
	case KEFA_EAGER_RTW_PKT:
	case KEFA_SHORT_RTR_PKT:
	case KEFA_READRSP_PKT:
		return kefa_far_arrived(rdm, rs, wc);
	case KEFA_FETCH_RTA_PKT:
		return kefa_fetch_arrived(rdm, rs, wc);
	case KEFA_ATOMRSP_PKT:
		return kefa_atomrsp_arrived(rdm, rs, wc);
	default:
		return false;
	}
}

/* Return: false if the completion wasn't handled, because the fast path isn't for it. */
static __always_inline bool kefa_eager_arrived(struct kefa_rdm *rdm, const struct ib_wc *wc)
{
	struct kefa_rs *rs = kefa_rs_of(rdm, wc);
	struct kefa_eager __uninitialized e;
	struct kofi_match_recv *recv;
	struct kefa_rpeer *peer;
	bool again = true;

	if (unlikely(!rs))
		return false;
	kefa_dma_sync_for_cpu(rdm->ep.dma, rs->dma, wc->byte_len, DMA_FROM_DEVICE);
	if (unlikely(!kefa_eager_parse(rs->held.buf, wc->byte_len, &e)))
		return kefa_other_arrived(rdm, rs, wc);
	peer = kefa_turn_of(rdm, wc, &e);
	if (unlikely(!peer))
		return false;
	recv = kofi_match_find(&rdm->match, kefa_eager_what(&e), kefa_msg_src(rdm, peer), e.tag);
	/* The match hasn't removed a multi-receive buffer, so msg.c will find it again. */
	if (unlikely(recv && recv->link.multi))
		return false;
	kefa_rs_take(rdm, rs);
	kefa_arrived(rdm, peer, e.tagged ? KEFA_EAGER_TAGRTM_PKT : KEFA_EAGER_MSGRTM_PKT, &e);
	if (likely(recv)) {
		kefa_eager_take(rdm, container_of(recv, struct kefa_rop, recv), peer, &e);
	} else {
		rs->held.len = wc->byte_len;
		rs->held.src_qpn = wc->src_qp;
		rs->held.slid = wc->slid;
		again = kefa_eager_keep(rdm, rs, peer, e);
	}
	if (likely(again))
		kefa_rs_again(rdm, rs);
	kefa_eager_begun(rdm, peer);
	return true;
}

/* --- all completions --- */

/**
 * kefa_rdm_report() - write the completions of the messages that fast paths have handled
 * @rdm: the endpoint
 *
 * Call this before writing any other completion, so that completions keep their order.
 *
 * Context: Under kefa_ep.lock.
 */
noinline void kefa_rdm_report(struct kefa_rdm *rdm)
{
	kefa_eager_report(rdm);
}

static noinline void kefa_wc_slow(struct kefa_rdm *rdm, const struct ib_wc *wc)
{
	kefa_eager_report(rdm);
	if (lower_32_bits(wc->wr_id) & KEFA_RS_ID)
		kefa_rdm_received(rdm, wc);
	else
		kefa_ts_done(rdm, wc);
	/* Before the next completion is handled, so that completions keep their order. */
	if (unlikely(rdm->reap))
		kefa_rdm_reap(rdm);
}

/**
 * kefa_rdm_wcs() - handle completions of the device
 * @rdm: the endpoint, with a queue pair
 * @n: number of completions in kefa_ep.wcs
 *
 * Context: Under kefa_ep.lock. kefa_rdm_pump() is due.
 */
void kefa_rdm_wcs(struct kefa_rdm *rdm, unsigned int n)
{
	const struct ib_wc *wc;
	unsigned int i;
	bool done;

	if (unlikely(rdm->reap))
		kefa_rdm_reap(rdm);
	rdm->nagain = 0;
	for (i = 0; i < n; i++) {
		wc = &rdm->ep.wcs[i];
		done = lower_32_bits(wc->wr_id) & KEFA_RS_ID ? kefa_eager_arrived(rdm, wc) :
							       kefa_eager_sent(rdm, wc);
		if (unlikely(!done))
			kefa_wc_slow(rdm, wc);
	}
	kefa_eager_report(rdm);
	if (rdm->ep.nrecvs)
		kefa_rx_give(rdm);
}

/**
 * kefa_rdm_poll() - poll for completions of the device, and handle them
 * @ep: the endpoint, with a queue pair
 * @budget: number of completions after which polling stops
 *
 * Serves as kefa_ep_kind.poll.
 *
 * Context: Process or softirq context, under kefa_ep.lock. kefa_rdm_pump() is due.
 * Return: number of completions.
 */
unsigned int kefa_rdm_poll(struct kefa_ep *ep, unsigned int budget)
{
	struct kefa_rdm *rdm = to_kefa_rdm(ep);
	unsigned int n, done = 0;

	lockdep_assert_held(&ep->lock);
	do {
		n = kefa_hw_poll(&ep->hq, ep->wcs, KEFA_POLL_BATCH);
		if (n)
			kefa_rdm_wcs(rdm, n);
		done += n;
	} while (n == KEFA_POLL_BATCH && done < budget);
	return done;
}
