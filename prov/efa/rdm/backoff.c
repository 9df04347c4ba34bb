// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Delays for peers that aren't ready: the device has retried, and reports that the peer had no
 * receive posted (RNR). The first time, such a packet is sent again at once. The second time, a
 * delay begins, during which nothing is sent to the peer. It doubles each time that the peer
 * still isn't ready, up to a limit.
 *
 * The caller notes whether a packet was sent again already, and runs a timer for
 * kefa_backoff_next().
 */
#include <linux/minmax.h>
#include <linux/random.h>
#include "backoff.h"

/**
 * kefa_backoffs_init() - initialize an endpoint's delays
 * @all: delays of the endpoint
 * @lock: lock of the endpoint
 * @first_us: first delay in microseconds, or 0 for a random one
 * @max_us: longest delay in microseconds
 *
 * Context: Any.
 */
void kefa_backoffs_init(struct kefa_backoffs *all, spinlock_t *lock, u32 first_us, u32 max_us)
{
	all->lock = lock;
	timerqueue_init_head(&all->queue);
	all->first_us = first_us;
	all->max_us = max(max_us, 1U);
}

static u32 kefa_backoff_first(const struct kefa_backoffs *all)
{
	const u32 range = KEFA_BACKOFF_FIRST_MAX_US - KEFA_BACKOFF_FIRST_MIN_US + 1;

	return all->first_us ?: KEFA_BACKOFF_FIRST_MIN_US + get_random_u32() % range;
}

/**
 * kefa_backoff_begin() - begin a peer's delay, unless it has begun
 * @all: delays of the endpoint
 * @b: delay of the peer
 * @now: current time
 *
 * Further packets that were in flight come back while the delay runs, and don't change it.
 *
 * Context: Under the endpoint's lock.
 */
void kefa_backoff_begin(struct kefa_backoffs *all, struct kefa_backoff *b, ktime_t now)
{
	u64 delay;

	lockdep_assert_held(all->lock);
	if (b->waiting)
		return;
	delay = b->delay_us ? 2ULL * b->delay_us : kefa_backoff_first(all);
	b->delay_us = min_t(u64, delay, all->max_us);
	b->waiting = true;
	timerqueue_init(&b->timer);
	b->timer.expires = ktime_add_us(now, b->delay_us);
	timerqueue_add(&all->queue, &b->timer);
}

static void kefa_backoff_stop(struct kefa_backoffs *all, struct kefa_backoff *b)
{
	if (!b->waiting)
		return;
	timerqueue_del(&all->queue, &b->timer);
	b->waiting = false;
}

/**
 * kefa_backoff_arrived() - note that a packet that was sent again has arrived
 * @all: delays of the endpoint
 * @b: delay of the peer
 *
 * Other packets may have come back meanwhile, so a running delay continues. The next one has the
 * first length again.
 *
 * Context: Under the endpoint's lock.
 */
void kefa_backoff_arrived(struct kefa_backoffs *all, struct kefa_backoff *b)
{
	lockdep_assert_held(all->lock);
	b->delay_us = 0;
	b->checks = 0;
}

/**
 * kefa_backoff_end() - cancel the delay of a peer that is dead or removed
 * @all: delays of the endpoint
 * @b: delay of the peer
 *
 * Context: Under the endpoint's lock.
 */
void kefa_backoff_end(struct kefa_backoffs *all, struct kefa_backoff *b)
{
	lockdep_assert_held(all->lock);
	kefa_backoff_stop(all, b);
	b->delay_us = 0;
	b->checks = 0;
}

/**
 * kefa_backoff_due() - end one delay that is over
 * @all: delays of the endpoint
 * @now: current time
 *
 * The peer's next delay is longer, unless kefa_backoff_arrived() is called.
 *
 * Context: Under the endpoint's lock.
 * Return: the delay of a peer, which isn't waiting any more, or NULL if none is over.
 */
struct kefa_backoff *kefa_backoff_due(struct kefa_backoffs *all, ktime_t now)
{
	struct timerqueue_node *first = timerqueue_getnext(&all->queue);
	struct kefa_backoff *b;

	lockdep_assert_held(all->lock);
	if (!first || ktime_after(first->expires, now))
		return NULL;
	b = container_of(first, struct kefa_backoff, timer);
	kefa_backoff_stop(all, b);
	return b;
}

/**
 * kefa_backoff_next() - get the time at which the next delay is over
 * @all: delays of the endpoint
 *
 * Context: Under the endpoint's lock.
 * Return: the time, or KTIME_MAX if no peer is waiting.
 */
ktime_t kefa_backoff_next(const struct kefa_backoffs *all)
{
	struct rb_node *first = rb_first_cached(&all->queue.rb_root);

	lockdep_assert_held(all->lock);
	return first ? rb_entry(first, struct timerqueue_node, node)->expires : KTIME_MAX;
}
