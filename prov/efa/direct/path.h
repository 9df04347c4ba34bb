/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Posting and completing: common functions of the fast path (plain.c) and of post.c. */
#ifndef KEFA_PATH_H
#define KEFA_PATH_H

#include "../io.h"
#include "../mem.h"
#include "../trace.h"
#include "direct.h"

/* Return: whether a transition between states is valid. */
static __always_inline bool kefa_op_may(enum kefa_op_state from,
					enum kefa_op_state to)
{
	switch (to) {
	case KEFA_OP_FREE:
		return from != KEFA_OP_FREE;
	case KEFA_OP_POSTED:
		return from != KEFA_OP_POSTED;
	case KEFA_OP_PARTS:
		return from == KEFA_OP_POSTED || from == KEFA_OP_RNR;
	case KEFA_OP_RNR:
		return from == KEFA_OP_POSTED;
	default:
		return false;
	}
}

/**
 * kefa_op_set_state() - change the state of an operation
 * @ep: the endpoint
 * @op: the operation
 * @state: the new state
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static __always_inline void kefa_op_set_state(struct kefa_ep *ep,
					      struct kefa_op *op,
					      enum kefa_op_state state)
{
	lockdep_assert_held(&ep->lock);
	WARN_ON_ONCE(!kefa_op_may(op->state, state));
	op->state = state;
}

/* Return: the slots of a direction. */
static __always_inline struct kefa_slots *kefa_slots_of(struct kefa_ep *ep,
							const struct kefa_side *side)
{
	struct kefa_direct *direct = to_kefa_direct(ep);

	return side == &ep->tx ? &direct->tx : &direct->rx;
}

/**
 * kefa_op_begin() - begin an operation of one work request
 * @ep: the endpoint
 * @side: direction of the operation
 * @op: the direction's first free slot; the caller sets context, flags, length, address
 *	handle, memory and quiet
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static __always_inline void kefa_op_begin(struct kefa_ep *ep,
					  struct kefa_side *side,
					  struct kefa_op *op)
{
	lockdep_assert_held(&ep->lock);
	kefa_op_set_state(ep, op, KEFA_OP_POSTED);
	kefa_slots_of(ep, side)->first = op->next;
	side->nfree--;
}

/**
 * kefa_op_release() - free the slot of an operation, or of a part of one
 * @ep: the endpoint
 * @side: direction of the operation
 * @op: the operation
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static __always_inline void kefa_op_release(struct kefa_ep *ep,
					    struct kefa_side *side,
					    struct kefa_op *op)
{
	struct kefa_slots *slots = kefa_slots_of(ep, side);

	kefa_op_set_state(ep, op, KEFA_OP_FREE);
	op->id += KEFA_OP_USE;
	op->next = slots->first;
	slots->first = op;
	side->nfree++;
}

/**
 * kefa_op_end() - queue an operation that ended for kefa_direct_report()
 * @ep: the endpoint
 * @slots: slots of the direction of the operation
 * @op: the operation
 *
 * The report frees the slot.
 *
 * Context: Process or softirq context, under kefa_ep.lock until the report.
 */
static __always_inline void kefa_op_end(struct kefa_ep *ep, struct kefa_slots *slots,
					struct kefa_op *op)
{
	kefa_op_set_state(ep, op, KEFA_OP_FREE);
	op->id += KEFA_OP_USE;
	*slots->ended_tail = op;
	slots->ended_tail = &op->next;
	slots->nended++;
}

/* Return: whether data of an operation fits into the work request. */
static __always_inline bool kefa_goes_inline(u64 what, size_t len)
{
	return what & FI_SEND && len && len <= KEFA_MAX_INLINE;
}

/**
 * kefa_direct_wr() - get the work request for a slot
 * @ep: the endpoint, with fewer than KEFA_HELD_MAX held work requests
 * @op: the slot
 * @nheld: kefa_ep.nheld
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: the work request, in kefa_ep.held; the caller counts it in nheld, or posts it.
 */
static __always_inline struct kefa_wr *kefa_direct_wr(struct kefa_ep *ep,
						      const struct kefa_op *op,
						      unsigned int nheld)
{
	struct kefa_wr *wr = &ep->wrs[nheld];

	if (unlikely(to_kefa_direct(ep)->again))
		wr = kefa_rnr_wr(ep, op);
	ep->held[nheld] = wr;
	return wr;
}

/**
 * kefa_wr_to() - begin the work request of an operation or a part of one
 * @wr: the work request
 * @op: the operation, or the part
 * @ud: kefa_direct.ud
 * @what: kofi_req.what
 * @peer: the peer
 * @raddr: for a read or write, address in the peer's memory
 * @rkey: for a read or write, key of the peer's memory
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static __always_inline void kefa_wr_to(struct kefa_wr *wr, const struct kefa_op *op,
				       bool ud, u64 what, const struct kefa_peer *peer,
				       u64 raddr, u32 rkey)
{
	struct ib_ah *ah = peer->key.ah->ah;

	if (ud)
		kefa_wr_send_ud(wr, op->id, ah, peer->key.qpn, peer->key.qkey);
	else if (what & FI_SEND)
		kefa_wr_send(wr, op->id, ah, peer->key.qpn, peer->key.qkey);
	else
		kefa_wr_rdma(wr, op->id, what & FI_WRITE, ah, peer->key.qpn,
			     peer->key.qkey, raddr, rkey);
}

/**
 * kefa_side_quiet() - how an operation's success is reported
 * @side: direction of the operation
 * @flags: flags of the operation, including those from kofi_req_flags()
 *
 * Context: Any.
 * Return: enum kefa_quiet.
 */
static __always_inline u8 kefa_side_quiet(const struct kefa_side *side, u64 flags)
{
	return flags & FI_COMPLETION ? KEFA_TOLD : side->unflagged;
}

/**
 * kefa_op_awaited() - check whether somebody waits for an operation of the sending side
 * @op: the operation, of an endpoint with kefa_ep.split
 *
 * Registrations are waited for even if they have no completion.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: whether it is counted in kefa_ep.nawaited.
 */
static inline bool kefa_op_awaited(const struct kefa_op *op)
{
	return op->has_mr || op->quiet == KEFA_TOLD;
}

/**
 * kefa_op_unhurry() - note the end of a work request, for fi_expedite()
 * @ep: the endpoint
 * @op: slot of the work request, of the sending side
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static inline void kefa_op_unhurry(struct kefa_ep *ep, const struct kefa_op *op)
{
	if (unlikely(ep->tx_hurry))
		ep->tx_hurry -= op->epoch != ep->tx_epoch;
}

/**
 * kefa_direct_tx_posted() - kefa_ep_tx_posted() for an operation
 * @ep: the endpoint, enabled, with kefa_ep.split
 * @op: the operation, of the sending side
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static inline void kefa_direct_tx_posted(struct kefa_ep *ep, struct kefa_op *op)
{
	op->epoch = ep->tx_epoch;
	kefa_ep_tx_posted(ep, kefa_op_awaited(op));
}

/**
 * kefa_direct_tx_ended() - undo kefa_direct_tx_posted()
 * @ep: the endpoint, with kefa_ep.split
 * @op: the operation, not yet cleared
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static inline void kefa_direct_tx_ended(struct kefa_ep *ep, const struct kefa_op *op)
{
	ep->nawaited -= kefa_op_awaited(op);
	kefa_op_unhurry(ep, op);
}

/**
 * kefa_direct_tx_head() - initialize the head of a send, read or write, and count it
 * @ep: the endpoint
 * @op: slot of the first work request
 * @what: kofi_req.what
 * @len: length in bytes
 * @ah: the peer's address handle
 * @context: the caller's context
 * @quiet: enum kefa_quiet
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static __always_inline void kefa_direct_tx_head(struct kefa_ep *ep, struct kefa_op *op,
						u64 what, size_t len, struct kefa_ah *ah,
						void *context, u8 quiet)
{
	op->context = context;
	op->flags = what;
	op->len = len;
	op->ah = ah;
	op->quiet = quiet;
	ep->stats.tx_bytes += len;
	if (what & FI_SEND)
		ep->stats.sends++;
	else if (what & FI_READ)
		ep->stats.reads++;
	else
		ep->stats.writes++;
}

/**
 * kefa_direct_ring() - post held work requests
 * @ep: the endpoint, enabled
 * @n: number of work requests in @ep->held to post
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static inline void kefa_direct_ring(struct kefa_ep *ep, unsigned int n)
{
	int ret;

	lockdep_assert_held(&ep->lock);
	ep->stats.doorbells++;
	ret = kefa_hw_post_send(&ep->hq, ep->held, n);
	if (unlikely(ret))
		kefa_direct_refused(ep, n, ret);
}

/**
 * kefa_direct_posted() - post the held work requests, unless they wait for more posts
 * @ep: the endpoint, enabled, after a work request was added
 * @more: another post follows at once
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static __always_inline void kefa_direct_posted(struct kefa_ep *ep, bool more)
{
	bool holds = kefa_ep_holds(ep);

	if (ep->nheld == KEFA_HELD_MAX || (!more && !holds))
		kefa_direct_flush(ep);
	else if (!holds)
		kefa_ep_kick_held(ep);
}

/**
 * kefa_direct_rx_post() - post a receive
 * @ep: the endpoint, enabled
 * @wr: the first free entry of @ep->recvs, complete except for the id
 * @op: the operation, with its memory
 * @what: kofi_req.what
 * @context: the caller's context
 * @quiet: enum kefa_quiet
 * @more: another receive follows at once
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static __always_inline void kefa_direct_rx_post(struct kefa_ep *ep, struct kefa_recv_wr *wr,
						struct kefa_op *op,
						u64 what, void *context, u8 quiet, bool more)
{
	int ret;

	lockdep_assert_held(&ep->lock);
	op->context = context;
	op->flags = what;
	op->data = 0;
	op->len = 0;
	op->quiet = quiet;
	trace_kefa_post(ep, op, FI_ADDR_UNSPEC);
	ep->stats.recvs++;
	wr->wr.wr_id = op->id;
	if (unlikely(wr != ep->recvs || more || kefa_ep_holds(ep))) {
		kefa_direct_rx_hold(ep, more);
		return;
	}
	ret = kefa_hw_post_recv(&ep->hq, wr, 1);
	if (unlikely(ret))
		kefa_direct_rx_refused(ep, 1, ret);
}

#endif /* KEFA_PATH_H */
