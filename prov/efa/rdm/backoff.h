/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Peers that are given time, as they had no receive posted: backoff.c. */
#ifndef KEFA_RDM_BACKOFF_H
#define KEFA_RDM_BACKOFF_H

#include <linux/ktime.h>
#include <linux/spinlock.h>
#include <linux/timerqueue.h>

/* The first delay, if nobody chose one, is between these. As in libfabric. */
#define KEFA_BACKOFF_FIRST_MIN_US	40
#define KEFA_BACKOFF_FIRST_MAX_US	120

/**
 * struct kefa_backoff - the time a peer is given, to be embedded; all 0 to begin with
 * @timer: when it is over; in kefa_backoffs.queue while @waiting
 * @delay_us: the last one, or 0 if the peer has received since
 * @waiting: nothing is sent to the peer but answers
 */
struct kefa_backoff {
	struct timerqueue_node	timer;
	u32			delay_us;
	bool			waiting;
};

/**
 * struct kefa_backoffs - the peers of an endpoint that are given time
 * @lock: the endpoint's, protects all of this and the peers' part
 * @queue: whose time is over first
 * @first_us: the first delay; 0 for a random one, so that not all senders come back at once
 * @max_us: no delay is longer
 */
struct kefa_backoffs {
	spinlock_t		*lock;	/* the endpoint's */
	struct timerqueue_head	queue;
	u32			first_us;
	u32			max_us;
};

void kefa_backoffs_init(struct kefa_backoffs *all, spinlock_t *lock, u32 first_us, u32 max_us);
void kefa_backoff_begin(struct kefa_backoffs *all, struct kefa_backoff *b, ktime_t now);
void kefa_backoff_arrived(struct kefa_backoffs *all, struct kefa_backoff *b);
void kefa_backoff_end(struct kefa_backoffs *all, struct kefa_backoff *b);
struct kefa_backoff *kefa_backoff_due(struct kefa_backoffs *all, ktime_t now);
ktime_t kefa_backoff_next(const struct kefa_backoffs *all);

#endif /* KEFA_RDM_BACKOFF_H */
