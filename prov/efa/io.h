/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Posting and polling: common functions of both fabrics. */
#ifndef KEFA_IO_H
#define KEFA_IO_H

#include <linux/preempt.h>
#include "ep.h"

/**
 * kefa_ep_unlock_news() - release the lock, then send pending notifications
 * @ep: the endpoint
 *
 * For calls of the ULP, most of which have no notifications.
 *
 * Context: Process or softirq context, under kefa_ep.lock, which is released.
 */
static __always_inline void kefa_ep_unlock_news(struct kefa_ep *ep)
	__releases(&ep->lock)
{
	lockdep_assert_held(&ep->lock);
	if (likely(!(ep->tx.notify | ep->rx.notify | ep->tx.room | ep->rx.room)))
		spin_unlock_bh(&ep->lock);
	else
		kefa_ep_unlock_tell(ep, false);
}

/**
 * kefa_ep_holds() - check whether posts are held back, to share a doorbell
 * @ep: the endpoint
 *
 * Posts of handlers are held: the worker posts them after the handlers have returned. Those of
 * softirqs that interrupt a handler in process context aren't, as it may sleep.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: true if posts are held back.
 */
static __always_inline bool kefa_ep_holds(const struct kefa_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	return unlikely(ep->worker) && ep->worker == current &&
	       !!in_serving_softirq() == ep->softirq;
}

/**
 * kefa_ep_again() - refuse a post with -EAGAIN
 * @ep: the endpoint, enabled
 * @side: the direction
 * @dma: DMA space is lacking, else a slot, a copy buffer or the like
 *
 * Completions free slots and copy buffers, and then the worker notifies the ULP. They don't
 * necessarily free DMA space, so a timer notifies the ULP of that.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: -EAGAIN.
 */
static inline int kefa_ep_again(struct kefa_ep *ep, struct kefa_side *side, bool dma)
{
	lockdep_assert_held(&ep->lock);
	ep->stats.again++;
	side->wanted = true;
	if (unlikely(ep->split) && side == &ep->tx)
		kefa_ep_want_tx(ep);
	if (dma) {
		ep->stats.map_failed++;
		queue_delayed_work(kefa_wq, &ep->map_retry,
				   msecs_to_jiffies(KEFA_MAP_RETRY_MS));
	}
	return -EAGAIN;
}

/**
 * kefa_ep_watch() - schedule a check whether readers still poll, or a poll for sends
 * @ep: the endpoint
 * @ms: time until then, in milliseconds
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static inline void kefa_ep_watch(struct kefa_ep *ep, unsigned int ms)
{
	if (ep->watched)
		return;
	ep->watched = true;
	queue_delayed_work(kefa_wq, &ep->idle, msecs_to_jiffies(ms));
}

/*
 * Return: whether the polling reader is the only one that waits for completions. A handler waits,
 * too, because the reader may leave completions to it. A reader that goes to sleep is counted
 * first and then polls under the endpoint's lock, so it finds completions that were written under
 * the lock before.
 * @self: number of sleepers that the polling reader itself counts as.
 */
static inline bool kefa_ep_only_reader(struct kefa_ep *ep, int self)
{
	struct kofi_cq *cq = ep->tx.base.cq;

	lockdep_assert_held(&ep->lock);
	if (cq != ep->rx.base.cq || ep->tx.room || ep->rx.room || cq->notifier.call ||
	    kofi_cq_sleepers(cq) > self)
		return false;
	ep->tx.notify = false;
	ep->rx.notify = false;
	return true;
}

/* Each context notifies of the completions that it polls, so do nothing if none were found. */
static __always_inline void __kefa_ep_read_end(struct kefa_ep *ep, bool found, int self)
	__releases(&ep->lock)
{
	if (found && unlikely(!kefa_ep_only_reader(ep, self)))
		kefa_ep_unlock_tell(ep, false);
	else
		spin_unlock_bh(&ep->lock);
}

#endif /* KEFA_IO_H */
