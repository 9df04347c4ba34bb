// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What sends and receives have in common: the ULP's memory, and what the ULP is told. The
 * ULP's slot is free again with the completion, though the operation may go on: a peer is
 * still to get its answer, or the device has a work request.
 */
#include <linux/uio.h>
#include "../dma.h"
#include "rdm.h"

/**
 * kefa_rop_hold() - keep what is known of a request's memory
 * @rop: the operation
 * @req: the request; its array of segments, if it is one, stays as it is
 *
 * Context: Any.
 * Return: whether it can be kept.
 */
bool kefa_rop_hold(struct kefa_rop *rop, const struct kofi_req *req)
{
	const struct iov_iter *iter = &req->iter;
	struct kefa_rbuf *buf = &rop->buf;

	buf->len = iov_iter_count(iter);
	buf->skip = 0;
	buf->segs = 0;
	buf->bvec = iov_iter_is_bvec(iter);
	if (!buf->len)
		return true;
	/* Plain calls describe their buffer on the stack. */
	if (!buf->bvec && iter->nr_segs == 1) {
		buf->base = iter->kvec->iov_base + iter->iov_offset;
		return true;
	}
	buf->base = buf->bvec ? (void *)iter->bvec : (void *)iter->kvec;
	buf->skip = iter->iov_offset;
	buf->segs = iter->nr_segs;
	return iter->iov_offset <= U32_MAX && iter->nr_segs <= U16_MAX;
}

/**
 * kefa_rop_iter() - a part of an operation's memory
 * @rop: the operation
 * @dir: ITER_SOURCE or ITER_DEST
 * @off: where in it
 * @len: bytes, no more than there are
 * @iter: set to the part
 * @kvec: what @iter may point to
 *
 * Context: Any.
 */
void kefa_rop_iter(const struct kefa_rop *rop, unsigned int dir, u64 off, u64 len,
		   struct iov_iter *iter, struct kvec *kvec)
{
	const struct kefa_rbuf *buf = &rop->buf;

	if (!buf->segs) {
		kvec->iov_base = buf->base + off;
		kvec->iov_len = len;
		iov_iter_kvec(iter, dir, kvec, 1, len);
		return;
	}
	off += buf->skip;
	if (buf->bvec)
		iov_iter_bvec(iter, dir, buf->base, buf->segs, off + len);
	else
		iov_iter_kvec(iter, dir, buf->base, buf->segs, off + len);
	iov_iter_advance(iter, off);
}

/**
 * kefa_rdm_take_rop() - begin an operation
 * @rdm: the endpoint
 * @side: whose slots it takes one of; NULL for what the ULP hasn't asked for
 * @state: its first state
 *
 * Context: Under kefa_ep.lock.
 * Return: the operation, or NULL if there is none for now.
 */
struct kefa_rop *kefa_rdm_take_rop(struct kefa_rdm *rdm, struct kefa_side *side,
				   enum kefa_rop_state state)
{
	struct kefa_rop *rop;

	if (side && !side->nfree)
		return NULL;
	rop = kefa_rop_take(&rdm->rops, state);
	if (rop && side)
		side->nfree--;
	return rop;
}

/* A part of a multi-receive buffer has none of the ULP's slots. */
static void kefa_rdm_give_back(struct kefa_side *side, const struct kefa_rop *rop)
{
	if (!(rop->flags & KEFA_ROP_PART))
		side->nfree++;
	side->room |= side->wanted;
}

static void kefa_rdm_write(struct kefa_side *side, const struct fi_cq_err_entry *e, bool quiet,
			   bool unsolicited)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context	= e->op_context,
		.flags		= e->flags,
		.len		= e->len,
		.buf		= e->buf,
		.data		= e->data,
		.tag		= e->tag,
	};
	struct kofi_cq *cq = side->base.cq;

	if (e->err && unsolicited)
		kofi_cq_write_err_unsolicited(cq, e);
	else if (e->err)
		kofi_cq_write_err(cq, e);
	else if (quiet && unsolicited)
		kofi_cq_unreserve_unsolicited(cq, 1);
	else if (quiet)
		kofi_cq_unreserve(cq);
	else if (unsolicited)
		kofi_cq_write_unsolicited(cq, &entry, e->src_addr);
	else
		kofi_cq_write(cq, &entry, e->src_addr);
	side->notify |= e->err || !quiet;
}

static noinline void kefa_rdm_tell_tx_how(struct kefa_side *side, const struct kefa_rop *rop)
{
	const struct fi_cq_err_entry e = {
		.op_context	= rop->context,
		.flags		= rop->cq_flags,
		.len		= rop->total,
		.data		= rop->data,
		.tag		= rop->tag,
		.err		= rop->err,
		.prov_errno	= rop->prov,
		.src_addr	= FI_ADDR_NOTAVAIL,
	};

	kefa_rdm_write(side, &e, rop->flags & KEFA_ROP_QUIET, false);
}

/**
 * kefa_ts_tell() - tell the ULP that a message of one packet has ended
 * @rdm: the endpoint
 * @ts: the packet, of a whole message, which the device hasn't got any more
 *
 * Those that were sent, and have nothing special about them, eager.c reports together.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_ts_tell(struct kefa_rdm *rdm, const struct kefa_ts *ts)
{
	const struct fi_cq_err_entry e = {
		.op_context	= ts->context,
		.flags		= ts->cq_flags,
		.len		= ts->total,
		.tag		= ts->tag,
		.err		= ts->err,
		.prov_errno	= ts->prov,
		.src_addr	= FI_ADDR_NOTAVAIL,
	};
	struct kefa_side *side = &rdm->ep.tx;

	lockdep_assert_held(&rdm->ep.lock);
	rdm->ep.stats.errors += !!ts->err;
	if (side->base.cq)
		kefa_rdm_write(side, &e, ts->quiet, false);
	kofi_side_count(&side->base, ts->cq_flags, ts->total, ts->err);
	side->nfree++;
	side->room |= side->wanted;
}

/* A send has ended, by its @err. */
static void kefa_rdm_tell_tx(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_side *side = &rdm->ep.tx;

	lockdep_assert_held(&rdm->ep.lock);
	if (rop->flags & KEFA_ROP_TOLD)
		return;
	rop->flags |= KEFA_ROP_TOLD;
	rdm->ep.stats.errors += !!rop->err;
	if (likely(side->base.cq && !rop->err && !(rop->flags & KEFA_ROP_QUIET))) {
		kofi_cq_write(side->base.cq, &(struct fi_cq_tagged_entry) {
			.op_context	= rop->context,
			.flags		= rop->cq_flags,
			.len		= rop->total,
			.data		= rop->data,
			.tag		= rop->tag,
		}, FI_ADDR_NOTAVAIL);
		side->notify = true;
	} else if (side->base.cq) {
		kefa_rdm_tell_tx_how(side, rop);
	}
	kofi_side_count(&side->base, rop->cq_flags, rop->total, rop->err);
	kefa_rdm_give_back(side, rop);
}

/* The last message of a multi-receive buffer gives it back. */
static bool kefa_multi_last(struct kefa_rdm *rdm, struct kefa_rop *part)
{
	struct kefa_rop *multi = part->parent;

	multi->wrs--;
	return !multi->wrs && multi->flags & KEFA_ROP_SPENT;
}

static void kefa_multi_done(struct kefa_rdm *rdm, struct kefa_rop *multi)
{
	multi->flags |= KEFA_ROP_TOLD | KEFA_ROP_OVER;
	kefa_rdm_give_back(&rdm->ep.rx, multi);
	kefa_rdm_end(rdm, multi);
}

static void kefa_rdm_tell_part(struct kefa_rdm *rdm, struct kefa_rop *rop,
			       struct fi_cq_err_entry *e)
{
	const bool last = kefa_multi_last(rdm, rop);
	struct kefa_rop *multi = rop->parent;
	struct kefa_side *side = &rdm->ep.rx;

	e->buf = rop->buf.base;
	e->op_context = multi->context;
	if (last)
		e->flags |= FI_MULTI_RECV;
	/* What the buffer's post has reserved is for the one that gives it back. */
	if (last && side->base.cq)
		kofi_cq_unreserve_unsolicited(side->base.cq, 1);
	if (side->base.cq)
		kefa_rdm_write(side, e, multi->flags & KEFA_ROP_QUIET && !last, !last);
	if (last)
		kefa_multi_done(rdm, multi);
}

/* It has failed, is a part of something, is quiet, or the message was too long. */
static noinline void kefa_rdm_tell_rx_how(struct kefa_rdm *rdm, struct kefa_rop *rop, u64 len,
					  fi_addr_t src, int err, u32 prov)
{
	struct kefa_side *side = &rdm->ep.rx;
	const bool cut = !err && rop->total > len;
	struct fi_cq_err_entry e = {
		.op_context	= rop->context,
		.flags		= rop->cq_flags,
		.len		= len,
		.data		= rop->data,
		.tag		= rop->tag,
		.olen		= cut ? rop->total - len : 0,
		.err		= cut ? FI_ETRUNC : err,
		.prov_errno	= prov,
		.src_addr	= src,
	};

	rdm->ep.stats.errors += !!e.err;
	kofi_side_count(&side->base, rop->cq_flags, len, e.err);
	if (rop->flags & KEFA_ROP_PART) {
		kefa_rdm_tell_part(rdm, rop, &e);
		return;
	}
	/* A multi-receive buffer that took all it could, or was cancelled. */
	if (rop->flags & KEFA_ROP_MULTI)
		e.flags |= FI_MULTI_RECV;
	if (side->base.cq)
		kefa_rdm_write(side, &e, rop->flags & KEFA_ROP_QUIET, false);
	kefa_rdm_give_back(side, rop);
}

/**
 * kefa_rdm_tell_rx() - tell the ULP that a receive has ended
 * @rdm: the endpoint
 * @rop: the receive, or a part of one; nothing happens if the ULP knows
 * @err: positive errno; 0 if the message is there, though it may have been too long
 * @prov: and the device's status
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_tell_rx(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 prov)
{
	const u8 odd = KEFA_ROP_PART | KEFA_ROP_MULTI | KEFA_ROP_QUIET;
	const u64 len = err ? 0 : min(rop->total, rop->buf.len);
	const fi_addr_t src = kefa_rop_src(rdm, rop);
	struct kefa_side *side = &rdm->ep.rx;

	lockdep_assert_held(&rdm->ep.lock);
	if (rop->flags & KEFA_ROP_TOLD)
		return;
	rop->flags |= KEFA_ROP_TOLD;
	if (unlikely(err || rop->total > len || rop->flags & odd || !side->base.cq)) {
		kefa_rdm_tell_rx_how(rdm, rop, len, src, err, prov);
		return;
	}
	kofi_cq_write(side->base.cq, &(struct fi_cq_tagged_entry) {
		.op_context	= rop->context,
		.flags		= rop->cq_flags,
		.len		= len,
		.data		= rop->data,
		.tag		= rop->tag,
	}, src);
	side->notify = true;
	kofi_side_count(&side->base, rop->cq_flags, len, false);
	kefa_rdm_give_back(side, rop);
}

/* The device has nothing to do with the ULP's memory any more, but for what peers can reach. */
static void kefa_rdm_tell(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (unlikely(!(rop->flags & KEFA_ROP_TX)))
		kefa_rdm_tell_rx(rdm, rop, rop->err, rop->prov);
	else if (likely(!rop->source))
		kefa_rdm_tell_tx(rdm, rop);
}

/**
 * kefa_rdm_end() - is an operation over?
 * @rdm: the endpoint
 * @rop: the operation, in no list if it is
 *
 * Called when its protocol is over, with KEFA_ROP_OVER, and when a packet of it is. The ULP is
 * told of a send here, and not before the device is done with the ULP's memory: whatever the
 * peer has said, packets of the send may still be read from there, or by the peer itself. So it
 * is with a receive that was being read.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_end(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	const u8 told = rop->flags & (KEFA_ROP_OVER | KEFA_ROP_TOLD);
	struct kefa_rpeer *peer = rop->peer;

	if (rop->mapped && !rop->wrs) {
		kefa_dma_unmap(rdm->ep.dma, rop->dma, rop->total, DMA_TO_DEVICE);
		rop->mapped = false;
	}
	if (told == KEFA_ROP_OVER && !rop->wrs)
		kefa_rdm_tell(rdm, rop);
	if (!kefa_rop_end(&rdm->rops, rop))
		return;
	rdm->ep.tx.room |= rdm->ep.tx.wanted;
	rdm->ep.rx.room |= rdm->ep.rx.wanted;
	if (!peer)
		return;
	peer->nops--;
	kefa_rdm_put_wr(rdm, peer);
}

/**
 * kefa_rdm_end_tx() - the protocol of a send is over
 * @rdm: the endpoint
 * @rop: the send, in no list of its peer's; nothing changes if it is over already
 * @err: positive errno, or 0
 * @prov: and the device's status
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_end_tx(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 prov)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (!(rop->flags & KEFA_ROP_OVER)) {
		rop->flags |= KEFA_ROP_OVER;
		rop->err = err;
		rop->prov = prov;
	}
	kefa_rdm_end(rdm, rop);
}

/**
 * kefa_rdm_unposted() - a receive takes no more messages
 * @rdm: the endpoint
 * @rop: the receive, in KEFA_ROP_LISTED, not in the match any more
 * @err: positive errno
 *
 * The messages that a multi-receive buffer has taken complete first, and the last gives it
 * back.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_unposted(struct kefa_rdm *rdm, struct kefa_rop *rop, int err)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (rop->flags & KEFA_ROP_MULTI && rop->wrs) {
		rop->flags |= KEFA_ROP_SPENT;
		return;
	}
	rop->flags |= KEFA_ROP_OVER;
	kefa_rdm_tell_rx(rdm, rop, err, 0);
	kefa_rdm_end(rdm, rop);
}

/**
 * kefa_rdm_owe() - have an operation send an answer
 * @rdm: the endpoint
 * @rop: the operation, in none of the engine's lists or that of those that owe
 * @what: KEFA_ROP_OWES_CTS and so on
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_owe(struct kefa_rdm *rdm, struct kefa_rop *rop, u8 what)
{
	lockdep_assert_held(&rdm->ep.lock);
	rop->owes |= what;
	if (list_empty(&rop->link))
		list_add_tail(&rop->link, &rdm->owing);
}
