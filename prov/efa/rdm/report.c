// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Common parts of sends and receives: the ULP's memory, and completions. The completion frees the
 * ULP's slot, although the operation may continue until a peer has got its answer, or the device
 * has finished a work request.
 */
#include <linux/uio.h>
#include "../dma.h"
#include "atomic.h"
#include "rdm.h"

/**
 * kefa_rop_hold() - store a description of a request's buffer in its operation
 * @rop: the operation
 * @req: the request. If its buffer is an array of segments, the array must not change until the
 *	completion
 *
 * Context: Any.
 * Return: false if the buffer can't be described.
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
 * kefa_rop_iter() - get an iterator over a part of an operation's buffer
 * @rop: the operation
 * @dir: ITER_SOURCE or ITER_DEST
 * @off: offset of the part in the buffer
 * @len: length of the part, which must be inside the buffer
 * @iter: takes the iterator
 * @kvec: memory that @iter may point to
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
 * @side: side of the endpoint with the ULP's slot, which is taken, too; NULL for an operation that
 *	the ULP hasn't posted
 * @state: first state of the operation
 *
 * Context: Under kefa_ep.lock.
 * Return: the operation, or NULL if none is free.
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

/* Give back the ULP's slot. A message in a multi-receive buffer has none. */
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
	struct fi_cq_err_entry e = {
		.op_context	= rop->context,
		.flags		= rop->cq_flags,
		.len		= rop->total,
		.data		= rop->data,
		.tag		= rop->tag,
		.err		= rop->err,
		.prov_errno	= rop->prov,
		.src_addr	= kefa_rpeer_addr(rop->peer),
	};

	/* Reads and writes of connections have one as well. */
	if (rop->flags & KEFA_ROP_AS_MSG) {
		kefa_as_msg(&e.flags, &e.tag);
		e.tag = 0;
	}
	kefa_rdm_write(side, &e, rop->flags & KEFA_ROP_QUIET, false);
}

/**
 * kefa_ts_tell() - write the completion of a message that is its own operation
 * @rdm: the endpoint
 * @ts: slot with the whole message, which the device doesn't use any more
 *
 * This is the general function; fast_eager.c reports most messages, many at a time.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_ts_tell(struct kefa_rdm *rdm, const struct kefa_ts *ts)
{
	struct fi_cq_err_entry e = {
		.op_context	= ts->context,
		.flags		= ts->cq_flags,
		.len		= ts->total,
		.tag		= ts->tag,
		.err		= ts->err,
		.prov_errno	= ts->prov,
		.src_addr	= kefa_rpeer_addr(ts->peer),
	};
	struct kefa_side *side = &rdm->ep.tx;

	lockdep_assert_held(&rdm->ep.lock);
	rdm->ep.stats.errors += !!ts->err;
	if (ts->how & KEFA_ROP_AS_MSG)
		kefa_as_msg(&e.flags, &e.tag);
	if (side->base.cq)
		kefa_rdm_write(side, &e, ts->how & KEFA_ROP_QUIET, false);
	kofi_side_count(&side->base, ts->cq_flags, ts->total, ts->err);
	side->nfree++;
	side->room |= side->wanted;
}

/* Write the completion of a send, successful or not according to @err. */
static void kefa_rdm_tell_tx(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_side *side = &rdm->ep.tx;

	lockdep_assert_held(&rdm->ep.lock);
	if (rop->flags & KEFA_ROP_TOLD)
		return;
	rop->flags |= KEFA_ROP_TOLD;
	if (unlikely(rop->more & KEFA_ROP_ATOMIC))
		kefa_atomic_release(rdm, rop);
	rdm->ep.stats.errors += !!rop->err;
	if (likely(side->base.cq && !rop->err &&
		   !(rop->flags & (KEFA_ROP_QUIET | KEFA_ROP_AS_MSG)))) {
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

/* Return: whether this was the last message of a multi-receive buffer, which releases it. */
static bool kefa_multi_last(struct kefa_rop *part)
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

/**
 * kefa_cq_room() - take an entry of the completion queue for an unsolicited completion
 * @rdm: the endpoint, with a queue for receives
 *
 * Context: Under kefa_ep.lock.
 * Return: whether an entry was taken. If not, kefa_rdm_replenished() queues the worker.
 */
bool kefa_cq_room(struct kefa_rdm *rdm)
{
	struct kofi_cq *cq = rdm->ep.rx.base.cq;

	return !kofi_cq_reserve_unsolicited(cq) || !kofi_cq_starve(cq, &rdm->waiter);
}

/**
 * kefa_cq_half() - check whether half of the entries for unsolicited completions are free
 * @rdm: the endpoint, with a queue for receives
 *
 * Context: Under kefa_ep.lock.
 * Return: whether they are. If not, kefa_rdm_replenished() queues the worker when one is free.
 */
bool kefa_cq_half(struct kefa_rdm *rdm)
{
	struct kofi_cq *cq = rdm->ep.rx.base.cq;

	if (atomic_read(&cq->reserve) > KEFA_CQ_RESERVE / 2)
		return true;
	kofi_cq_await(cq, &rdm->waiter);
	return atomic_read(&cq->reserve) > KEFA_CQ_RESERVE / 2;
}

/*
 * Take an entry of the completion queue for a message in a multi-receive buffer. The last message
 * uses the entry that was reserved when the buffer was posted. Return: false if the message has to
 * wait for an entry, behind other messages that wait. If the endpoint is closed there will be none,
 * so the completion isn't written.
 */
static bool kefa_part_room(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	const bool open = rdm->ep.state == KEFA_EP_ENABLED;
	const struct kefa_rop *multi = rop->parent;
	struct list_head *untold = &rdm->fair.untold;

	if (!rdm->ep.rx.base.cq)
		return true;
	if (list_empty(untold) || untold->next == &rop->peer_link || !open)
		if ((multi->wrs == 1 && multi->flags & KEFA_ROP_SPENT) || kefa_cq_room(rdm))
			return true;
	if (!open) {
		rop->flags |= KEFA_ROP_QUIET;
		return true;
	}
	if (list_empty(&rop->peer_link)) {
		list_add_tail(&rop->peer_link, untold);
		rdm->stats.starved++;
		rdm->waits = true;
	}
	return false;
}

static void kefa_rdm_tell_part(struct kefa_rdm *rdm, struct kefa_rop *rop,
			       struct fi_cq_err_entry *e)
{
	const bool last = kefa_multi_last(rop);
	struct kefa_rop *multi = rop->parent;
	struct kefa_side *side = &rdm->ep.rx;

	e->buf = rop->buf.base;
	e->op_context = multi->context;
	if (last)
		e->flags |= FI_MULTI_RECV;
	/* The peer may have been removed while the completion waited. */
	if (rop->peer->state == KEFA_RPEER_GONE)
		e->src_addr = FI_ADDR_NOTAVAIL;
	if (side->base.cq && !(rop->flags & KEFA_ROP_QUIET))
		kefa_rdm_write(side, e, multi->flags & KEFA_ROP_QUIET && !last, !last);
	if (last)
		kefa_multi_done(rdm, multi);
}

/* Write the completion of a receive unless it is a plain one that has its whole message. */
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
	/* A multi-receive buffer without arriving messages is full or was cancelled: release it. */
	if (rop->flags & KEFA_ROP_MULTI)
		e.flags |= FI_MULTI_RECV;
	else if (rop->flags & KEFA_ROP_AS_MSG)
		kefa_as_msg(&e.flags, &e.tag);
	if (side->base.cq)
		kefa_rdm_write(side, &e, rop->flags & KEFA_ROP_QUIET, false);
	kefa_rdm_give_back(side, rop);
}

/**
 * kefa_rdm_tell_rx() - write the completion of a receive, unless it was written before
 * @rdm: the endpoint
 * @rop: the receive, or a message in a multi-receive buffer
 * @err: positive errno; 0 if the message has arrived, even if it was truncated
 * @prov: status of the device
 *
 * The completion of a message in a multi-receive buffer may have to wait in kefa_fair.untold.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_tell_rx(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 prov)
{
	const u8 odd = KEFA_ROP_PART | KEFA_ROP_MULTI | KEFA_ROP_QUIET | KEFA_ROP_AS_MSG;
	const u64 len = err ? 0 : min(rop->total, rop->buf.len);
	const fi_addr_t src = kefa_rop_src(rdm, rop);
	struct kefa_side *side = &rdm->ep.rx;

	lockdep_assert_held(&rdm->ep.lock);
	if (rop->flags & KEFA_ROP_TOLD)
		return;
	if (unlikely(rop->flags & KEFA_ROP_PART)) {
		rop->err = err;
		rop->prov = prov;
		if (!kefa_part_room(rdm, rop))
			return;
		list_del_init(&rop->peer_link);
	}
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

/**
 * kefa_rdm_tell_untold() - write the completions that wait for room in the completion queue
 * @rdm: the endpoint
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_tell_untold(struct kefa_rdm *rdm)
{
	struct kefa_rop *rop;

	lockdep_assert_held(&rdm->ep.lock);
	while (!list_empty(&rdm->fair.untold)) {
		rop = list_first_entry(&rdm->fair.untold, struct kefa_rop, peer_link);
		kefa_rdm_tell_rx(rdm, rop, rop->err, rop->prov);
		if (!(rop->flags & KEFA_ROP_TOLD))
			return;
		kefa_rdm_end(rdm, rop);
	}
}

/* Write the completion, as the device is done with the buffer; but not while peers can read it. */
static void kefa_rdm_tell(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (unlikely(!(rop->flags & KEFA_ROP_TX)))
		kefa_rdm_tell_rx(rdm, rop, rop->err, rop->prov);
	else if (likely(!rop->source))
		kefa_rdm_tell_tx(rdm, rop);
}

/**
 * kefa_rdm_end() - free an operation that has ended, and write its completion if necessary
 * @rdm: the endpoint
 * @rop: the operation; if it has ended it must be in no list
 *
 * Call this after the end of the operation's protocol, which sets KEFA_ROP_OVER, and after the end
 * of each of its work requests. Whatever the peer has said, the completion of a send must wait
 * until neither the device nor the peer reads the ULP's memory any more. The completion of a
 * receive that was being read must wait for the end of the reads.
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
 * kefa_rdm_end_tx() - end the protocol of a send
 * @rdm: the endpoint
 * @rop: the send, not in kefa_rpeer.wait. If its protocol has ended already, @err is ignored
 * @err: positive errno, or 0
 * @prov: status of the device
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
 * kefa_rdm_unposted() - end a receive that was removed from the match without a message
 * @rdm: the endpoint
 * @rop: the receive, in KEFA_ROP_LISTED
 * @err: positive errno
 *
 * If messages are still arriving in a multi-receive buffer, the last of them releases the buffer.
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
	/* Not for a multi-receive buffer with messages, which has them in @wrs. */
	kefa_rop_unlist(rop);
	rop->flags |= KEFA_ROP_OVER;
	kefa_rdm_tell_rx(rdm, rop, err, 0);
	kefa_rdm_end(rdm, rop);
}

/* Return: whether a peer has too many messages that are dropped, as each keeps an operation. */
static bool kefa_sinks_overdue(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	u32 i, n = 0;

	for (i = 0; i < rdm->rops.size; i++)
		n += rdm->rops.ops[i].state == KEFA_ROP_SINK && rdm->rops.ops[i].peer == peer;
	return n > KEFA_OWED_MAX;
}

/**
 * kefa_rdm_abandoned() - complete a cancelled receive whose memory isn't written to any more
 * @rdm: the endpoint
 * @rop: the receive
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_abandoned(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	kefa_rdm_tell_rx(rdm, rop, ECANCELED, 0);
	rop->buf.len = 0;
}

/* Return: whether the device may still write to the memory of a receive with a peer. */
static bool kefa_rop_reads(const struct kefa_rop *rop)
{
	if (rop->state == KEFA_ROP_READING)
		return rop->wrs;
	/* The message is in the table when its last read has ended: then it has a READ_NACK. */
	return rop->state == KEFA_ROP_NACKED && rop->wrs && hlist_unhashed(&rop->msg.node);
}

/**
 * kefa_rdm_abandon() - cancel a receive whose message is arriving
 * @rdm: the endpoint, enabled
 * @rop: a receive with a peer, not of a multi-receive buffer
 *
 * The rest of the message is received and dropped, because its sender waits for grants and answers.
 * The completion waits for the device's reads, which write to the ULP's memory.
 *
 * Context: Under kefa_ep.lock. The pump is due.
 * Return: false if it's too late, or if the receive was cancelled before.
 */
bool kefa_rdm_abandon(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_rpeer *peer = rop->peer;
	const u8 state = rop->state;

	lockdep_assert_held(&rdm->ep.lock);
	if (rop->flags & KEFA_ROP_TOLD || rop->err ||
	    !(BIT(state) & (BIT(KEFA_ROP_DATA_RX) | BIT(KEFA_ROP_READING) | BIT(KEFA_ROP_NACKED))))
		return false;
	rop->err = ECANCELED;
	kefa_rop_unhold(rdm, rop);
	if (!kefa_rop_reads(rop))
		kefa_rdm_abandoned(rdm, rop);
	/* This one waits for the request that is repeated. */
	if (state == KEFA_ROP_NACKED)
		return true;
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_SINK);
	if (state == KEFA_ROP_READING) {
		/* It may have had more to read. */
		list_del_init(&rop->link);
		if (!rop->wrs)
			kefa_rop_whole(rdm, rop);
	}
	if (kefa_sinks_overdue(rdm, peer)) {
		rdm->stats.cut++;
		kefa_rdm_kill(rdm, peer, ENOBUFS, 0);
	}
	return true;
}

/**
 * kefa_rdm_owe() - note that an answer of an operation is due
 * @rdm: the endpoint
 * @rop: the operation, in kefa_rdm.owing or in none of the engine's lists
 * @what: the answer, KEFA_ROP_OWES_CTS and so on
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_owe(struct kefa_rdm *rdm, struct kefa_rop *rop, u8 what)
{
	lockdep_assert_held(&rdm->ep.lock);
	rop->owes |= what;
	rdm->waits = true;
	if (list_empty(&rop->link))
		list_add_tail(&rop->link, &rdm->owing);
}
