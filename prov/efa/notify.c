// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events of the device, and notifications of readers, of handlers and of ULPs whose posts were
 * refused.
 */
#include <linux/lockdep.h>
#include "io.h"
#include "kefa.h"

static bool kefa_ep_poke(struct kefa_ep *ep)
{
	struct kofi_cq *tx = ep->tx.base.cq, *rx = ep->rx.base.cq;

	return (tx && kofi_cq_poke(tx)) || (rx && rx != tx && kofi_cq_poke(rx));
}

static __always_inline void __kefa_ep_wake(struct kefa_ep *ep)
{
	if (ep->by_readers && kefa_ep_poke(ep))
		return;
	/* A reader polls, so don't arm the queue again. */
	if (ep->by_readers && READ_ONCE(ep->polled))
		queue_delayed_work(kefa_wq, &ep->idle, msecs_to_jiffies(KEFA_WATCH_MS));
	else
		kefa_ep_kick(ep);
}

/**
 * kefa_ep_event() - handle the device's event for an endpoint
 * @arg: the endpoint
 *
 * Context: Hard interrupt.
 */
void kefa_ep_event(void *arg)
{
	struct kefa_ep *ep = arg;

	atomic64_inc(&ep->events);
	__kefa_ep_wake(ep);
}

/**
 * kefa_ep_wake() - have an endpoint handle what came by another way than the device
 * @ep: the endpoint, enabled, with a kind that polls for it
 *
 * Context: Any.
 */
void kefa_ep_wake(struct kefa_ep *ep)
{
	__kefa_ep_wake(ep);
}

/**
 * kefa_ep_news() - collect pending notifications
 * @ep: the endpoint
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: the notifications, for kefa_ep_tell() after releasing the lock.
 */
struct kefa_news kefa_ep_news(struct kefa_ep *ep)
{
	struct kefa_side *sides[] = { &ep->tx, &ep->rx };
	struct kefa_news news = { };
	int i;

	lockdep_assert_held(&ep->lock);
	for (i = 0; i < ARRAY_SIZE(sides); i++) {
		if (sides[i]->notify)
			news.cq[i] = sides[i]->base.cq;
		sides[i]->notify = false;
		if (unlikely(sides[i]->room)) {
			news.room[i] = true;
			sides[i]->room = false;
			sides[i]->wanted = false;
		}
	}
	if (news.cq[0] == news.cq[1])
		news.cq[1] = NULL;
	return news;
}

/* Nobody waits at a queue for sends without handler and wait object. */
static noinline void kefa_ep_tell_tx_room(struct kefa_ep *ep)
{
	kofi_side_tell_room(ep->split && !ep->tells_tx ? &ep->rx.base : &ep->tx.base);
}

/**
 * kefa_ep_tell() - notify readers of completions, and of room for refused posts
 * @ep: the endpoint
 * @news: notifications to send
 * @in_worker: the caller is the endpoint's worker or softirq, so handlers may be called
 *
 * Context: Process context, or softirq context if @in_worker is false or with kefa_ep.softirq;
 * without kefa_ep.lock.
 */
void kefa_ep_tell(struct kefa_ep *ep, struct kefa_news news, bool in_worker)
{
	int i;

	if (unlikely(news.room[0]))
		kefa_ep_tell_tx_room(ep);
	if (unlikely(news.room[1]))
		kofi_side_tell_room(&ep->rx.base);
	for (i = 0; i < ARRAY_SIZE(news.cq); i++) {
		if (news.cq[i] && in_worker)
			kofi_cq_notify_worker(news.cq[i]);
		else if (news.cq[i])
			kofi_cq_notify(news.cq[i]);
	}
}

/**
 * kefa_ep_unlock_tell() - release the lock, then send pending notifications
 * @ep: the endpoint
 * @in_worker: the caller is the endpoint's worker or softirq
 *
 * Not inlined, so that callers without notifications don't need a struct kefa_news and a
 * stack protector.
 *
 * Context: Process or softirq context, under kefa_ep.lock, which is released.
 */
noinline void kefa_ep_unlock_tell(struct kefa_ep *ep, bool in_worker)
	__releases(&ep->lock)
{
	struct kefa_news news = kefa_ep_news(ep);

	if (in_worker && !ep->by_readers && (news.cq[0] || news.cq[1]))
		ep->worker = current;
	spin_unlock_bh(&ep->lock);
	kefa_ep_tell(ep, news, in_worker);
}

/**
 * kefa_ep_idle() - check whether readers still poll, or poll for sends
 * @work: kefa_ep.idle
 *
 * Context: Process context.
 */
void kefa_ep_idle(struct work_struct *work)
{
	struct kefa_ep *ep = container_of(to_delayed_work(work), struct kefa_ep, idle);

	spin_lock_bh(&ep->lock);
	ep->watched = false;
	ep->tx_late = ep->split;
	spin_unlock_bh(&ep->lock);
	kefa_ep_kick(ep);
}

/**
 * kefa_ep_want_tx() - have the next completion of a send noticed
 * @ep: the endpoint, enabled, with kefa_ep.split
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_ep_want_tx(struct kefa_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	if (ep->tx_armed)
		return;
	ep->tx_armed = true;
	if (kefa_hw_arm_tx(&ep->hq) > 0)
		kefa_ep_kick(ep);
}

/**
 * kefa_ep_awaits_tx() - check whether somebody waits for sends without polling for them
 * @ep: the endpoint, with kefa_ep.split
 *
 * If nobody can be notified of sends, readers wait for them, which mostly poll.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: whether completions of sends need events.
 */
bool kefa_ep_awaits_tx(const struct kefa_ep *ep)
{
	const struct kofi_side *tx = &ep->tx.base;

	lockdep_assert_held(&ep->lock);
	if (ep->tells_tx)
		return ep->nawaited;
	return tx->cq && !kofi_cq_is_polled(tx->cq) && (!tx->lazy || ep->nawaited);
}

/**
 * kefa_ep_tx_posted() - note that an operation of the sending side is posted, or about to be
 * @ep: the endpoint, enabled, with kefa_ep.split
 * @awaited: somebody waits for it. Its end decrements kefa_ep.nawaited
 *
 * The worker polls after its handlers have posted, and then arms the queue itself.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_ep_tx_posted(struct kefa_ep *ep, bool awaited)
{
	lockdep_assert_held(&ep->lock);
	ep->nawaited += awaited;
	if (kefa_ep_holds(ep))
		return;
	if (kefa_ep_awaits_tx(ep))
		kefa_ep_want_tx(ep);
	else if (!ep->tx_armed)
		kefa_ep_watch(ep, KEFA_LAZY_MS);
}

/**
 * kefa_ep_hurry() - begin to wait for what is outstanding, but not for what is posted later
 * @ep: the endpoint, with kefa_ep.split
 *
 * Work requests may end in any order, so each has the epoch in which it was posted. There are two:
 * another one begins when the previous one's work requests have ended.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_ep_hurry(struct kefa_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	ep->tx_hurry_more = ep->tx_hurry;
	if (ep->tx_hurry)
		return;
	ep->tx_epoch = !ep->tx_epoch;
	ep->tx_hurry = ep->tx.base.size - ep->tx.nfree;
}

/**
 * kefa_ep_expedite() - have the ends of outstanding sends noticed
 * @ep_fid: the endpoint
 *
 * Serves as fi_ops_ep.expedite.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kefa_ep_expedite(struct fid_ep *ep_fid)
{
	struct kefa_ep *ep = to_kefa_ep(ep_fid);

	spin_lock_bh(&ep->lock);
	if (ep->split && ep->state == KEFA_EP_ENABLED && ep->tx.nfree != ep->tx.base.size) {
		kefa_ep_hurry(ep);
		kefa_ep_want_tx(ep);
	}
	spin_unlock_bh(&ep->lock);
}

/**
 * kefa_ep_cq_full() - refuse a post because the completion queue is full
 * @ep: the endpoint
 * @side: the direction
 *
 * The queue notifies the ULP when a reader has freed entries. That doesn't help a ULP that waits
 * while completions are still with the device, which raises no event for them.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: -EAGAIN, -ENODEV, -FI_EOPBADSTATE.
 */
int kefa_ep_cq_full(struct kefa_ep *ep, struct kefa_side *side)
{
	const bool lonely = ep->split && side == &ep->tx && !ep->tells_tx;
	int ret;

	spin_lock_bh(&ep->lock);
	ret = kefa_not_enabled(ep);
	if (!ret && ep->split && side == &ep->tx && side->nfree != side->base.size) {
		ret = kefa_ep_again(ep, side, false);
	} else if (!ret) {
		side->wanted |= lonely;
		ep->stats.again++;
		ret = -EAGAIN;
	}
	/*
	 * The queue can tell nobody to read what it has, or that others have freed entries. That
	 * for receives can, but not at once: its handler may be the one that was refused.
	 */
	if (ret == -EAGAIN && lonely)
		queue_delayed_work(kefa_wq, &ep->map_retry, msecs_to_jiffies(KEFA_MAP_RETRY_MS));
	spin_unlock_bh(&ep->lock);
	return ret;
}

/**
 * kefa_ep_arm() - make sure that an event or a reader will notice later completions
 * @ep: the endpoint, enabled
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: true if there are completions already; if false, an event will come or a reader
 * polls.
 */
bool kefa_ep_arm(struct kefa_ep *ep)
{
	if (ep->by_readers && ep->polled) {
		WRITE_ONCE(ep->polled, false);
		kefa_ep_watch(ep, KEFA_WATCH_MS);
		return false;
	}
	return kefa_hw_arm(&ep->hq) > 0;
}

/**
 * kefa_ep_read_end() - release the lock after polling for a reader of fabric efa
 * @ep: the endpoint
 * @found: there were completions, or something else has left notifications
 * @self: number of sleepers that the reader counts as
 *
 * Context: Process context, under kefa_ep.lock, which is released.
 */
void kefa_ep_read_end(struct kefa_ep *ep, bool found, int self)
	__releases(&ep->lock)
{
	__kefa_ep_read_end(ep, found, self);
}

/**
 * kefa_ep_map_retry() - notify a ULP whose post failed for lack of DMA space
 * @work: kefa_ep.map_retry
 *
 * Context: Process context.
 */
void kefa_ep_map_retry(struct work_struct *work)
{
	struct kefa_ep *ep = container_of(to_delayed_work(work), struct kefa_ep,
					  map_retry);

	spin_lock_bh(&ep->lock);
	ep->tx.room |= ep->tx.wanted;
	ep->rx.room |= ep->rx.wanted;
	if (ep->state == KEFA_EP_ENABLED && ep->kind->retry)
		ep->kind->retry(ep);
	spin_unlock_bh(&ep->lock);
	kefa_ep_kick(ep);
}
