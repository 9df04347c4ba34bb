/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Delays for peers that had no receive posted: backoff.c. */
#ifndef KEFA_RDM_BACKOFF_H
#define KEFA_RDM_BACKOFF_H

#include <linux/ktime.h>
#include <linux/spinlock.h>
#include <linux/timerqueue.h>

/* Range of the first delay, unless a parameter sets it. As in libfabric. */
#define KEFA_BACKOFF_FIRST_MIN_US	40
#define KEFA_BACKOFF_FIRST_MAX_US	120

/**
 * struct kefa_backoff - delay of a peer, embedded in it; initially 0
 * @timer: end of the delay; in kefa_backoffs.queue while @waiting
 * @delay_us: length of the last delay, or 0 if the peer has received a packet since
 * @waiting: the delay runs: only answers are sent to the peer
 * @checks: number of checks by target.c that have found answers to the peer waiting since it has
 *	received a packet
 */
struct kefa_backoff {
	struct timerqueue_node	timer;
	u32			delay_us;
	bool			waiting;
	u8			checks;
};

/**
 * struct kefa_backoffs - delays of an endpoint's peers
 * @lock: lock of the endpoint, protects this structure and each peer's struct kefa_backoff
 * @queue: running delays, sorted by their end
 * @first_us: first delay; 0 for a random one, so that not all senders come back at once
 * @max_us: longest delay
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
