/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Posting and completing: what the short way and the long one have in common. */
#ifndef KEFA_PATH_H
#define KEFA_PATH_H

#include "ep.h"

/* Whether one may come from one state to another. */
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
 * kefa_op_set_state() - go from one state to another
 * @ep: the endpoint
 * @op: the operation
 * @state: where to
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

/**
 * kefa_op_begin() - begin an operation of one work request
 * @ep: the endpoint
 * @side: of which direction
 * @op: its first free slot; context, flags, length, address handle, memory and
 *	quiet are the caller's to set
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static __always_inline void kefa_op_begin(struct kefa_ep *ep,
					  struct kefa_side *side,
					  struct kefa_op *op)
{
	lockdep_assert_held(&ep->lock);
	kefa_op_set_state(ep, op, KEFA_OP_POSTED);
	side->first = op->next;
	if (!--side->nfree)
		side->tail = &side->first;
}

/**
 * kefa_op_release() - free the slot of an operation, or of a part of one
 * @ep: the endpoint
 * @side: its direction
 * @op: the operation
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static __always_inline void kefa_op_release(struct kefa_ep *ep,
					    struct kefa_side *side,
					    struct kefa_op *op)
{
	kefa_op_set_state(ep, op, KEFA_OP_FREE);
	op->id += KEFA_OP_USE;
	/* The oldest is taken next, so that ids come back late. */
	*side->tail = op;
	side->tail = &op->next;
	side->nfree++;
}

/**
 * kefa_ep_ring() - post work requests
 * @ep: the endpoint, enabled
 * @n: how many of those in @ep->held
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static inline void kefa_ep_ring(struct kefa_ep *ep, unsigned int n)
{
	int ret;

	lockdep_assert_held(&ep->lock);
	ep->stats.doorbells++;
	if (unlikely(ep->again))
		kefa_rnr_save(ep, n);
	ret = kefa_hw_post_send(&ep->hq, ep->held, n);
	if (unlikely(ret))
		kefa_ep_refused(ep, n, ret);
}

/**
 * kefa_rx_post() - give a receive to the device
 * @ep: the endpoint, enabled, with all but the id in its work request
 * @op: the operation
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static inline void kefa_rx_post(struct kefa_ep *ep, struct kefa_op *op)
{
	int ret;

	lockdep_assert_held(&ep->lock);
	ep->stats.recvs++;
	ep->recv.wr.wr_id = op->id;
	ret = kefa_hw_post_recv(&ep->hq, &ep->recv.wr);
	if (unlikely(ret))
		kefa_rx_refused(ep, op, ret);
}

#endif /* KEFA_PATH_H */
