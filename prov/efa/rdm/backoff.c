// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Peers that aren't ready. The device has tried, and reports that the peer had no receive
 * posted (RNR). A packet that this happens to is sent again at once the first time. When it
 * happens again the peer is given time: a short one at first, twice as much each time that
 * it still isn't ready, up to a limit. All that is to be sent to it waits meanwhile.
 *
 * Whether a packet's first time is over, and a timer for kefa_backoff_next(), are the
 * caller's.
 */
#include <linux/minmax.h>
#include <linux/random.h>
#include "backoff.h"

/**
 * kefa_backoffs_init() - begin with no peer
 * @all: of the endpoint
 * @lock: the endpoint's
 * @first_us: the first delay, or 0 for a random one
 * @max_us: the longest delay
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
 * kefa_backoff_begin() - a peer wasn't ready again
 * @all: of the endpoint
 * @b: the peer's
 * @now: the time
 *
 * Packets that were under way when it began come back one by one. They change nothing.
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
 * kefa_backoff_arrived() - a packet that was sent again has arrived
 * @all: of the endpoint
 * @b: the peer's
 *
 * Others may have come back meanwhile: what began goes on, and the next delay is a first one.
 *
 * Context: Under the endpoint's lock.
 */
void kefa_backoff_arrived(struct kefa_backoffs *all, struct kefa_backoff *b)
{
	lockdep_assert_held(all->lock);
	b->delay_us = 0;
}

/**
 * kefa_backoff_end() - the peer goes away
 * @all: of the endpoint
 * @b: the peer's
 *
 * Context: Under the endpoint's lock.
 */
void kefa_backoff_end(struct kefa_backoffs *all, struct kefa_backoff *b)
{
	lockdep_assert_held(all->lock);
	kefa_backoff_stop(all, b);
	b->delay_us = 0;
}

/**
 * kefa_backoff_due() - whose time is over?
 * @all: of the endpoint
 * @now: the time
 *
 * Its next delay is longer, until kefa_backoff_arrived().
 *
 * Context: Under the endpoint's lock.
 * Return: a peer's, which isn't waiting any more, or NULL if there is no other.
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
 * kefa_backoff_next() - when to look again
 * @all: of the endpoint
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
