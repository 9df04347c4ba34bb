/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The queue pair on which a domain registers memory: mrq.c. */
#ifndef KEFA_MRQ_H
#define KEFA_MRQ_H

#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <kofi/provider.h>
#include "hw.h"

struct kefa_domain;
struct kefa_mr;
enum kefa_mr_state;

enum {
	/* Registrations of a domain that can be outstanding, if the device can. */
	KEFA_MR_DEPTH		= 256,
	/* Looks at them, of so many seconds, after which a device is silent. */
	KEFA_MR_LOOKS		= 4,
	KEFA_MR_LOOK_S		= 10,
};

/**
 * struct kefa_mrq - the queue pair on which a domain registers memory
 * @lock: protects all but @room, @work, @watch and what is that one's
 * @hq: the queue pair
 * @open: it can be posted to
 * @depth: work requests that can be outstanding
 * @nfree: slots of those that aren't
 * @free: they
 * @busy: by slot, whose work request is outstanding, or NULL
 * @gen: how many were posted; tells uses of a slot apart
 * @wr: the work request that is being posted
 * @wcs: completions that are being looked at
 * @wanting: regions whose posts were refused for now, and whose ULPs haven't been told
 *	since that they may succeed
 * @untold: a completion queue that was written to, and whose reader wasn't told
 * @room: who waits for a slot, or for a region
 * @work: polls
 * @revoke: destroys regions that weren't invalidated, and makes others
 * @map_retry: has those who found no DMA space told after a while
 * @watch: looks whether anything completes; the next two are its own
 * @done: what had completed when it looked last
 * @looks: times that nothing had, though something was outstanding
 * @stats: counters
 */
struct kefa_mrq {
	spinlock_t		lock;	/* protects all but room and the workers' */
	struct kefa_hw_qp	hq;
	bool			open;
	u16			depth;
	u16			nfree;
	u16			free[KEFA_MR_DEPTH];
	struct kefa_mr		*busy[KEFA_MR_DEPTH];
	u32			gen;
	struct kefa_wr		wr;
	struct ib_wc		wcs[KEFA_POLL_BATCH];
	struct list_head	wanting;
	struct kofi_cq		*untold;
	wait_queue_head_t	room;
	struct work_struct	work;
	struct work_struct	revoke;
	struct delayed_work	map_retry;
	struct delayed_work	watch;
	u32			done;
	u8			looks;
	struct kefa_mr_stats {
		u64	regs;
		u64	invals;
		u64	revoked;
		u64	again;
		u64	map_failed;
		u64	bounced;
		u64	dry;
		u64	errors;
		u64	stale;
	} stats;
};

int kefa_mrq_start(struct kefa_domain *dom);
void kefa_mrq_stop(struct kefa_domain *dom);
void kefa_mrq_fail_all(struct kefa_domain *dom);
void kefa_mr_go(struct kefa_mr *mr, enum kefa_mr_state state);
int kefa_mr_ib_access(u64 access);
int kefa_mrq_reg(struct kefa_mr *mr, u64 access);
int kefa_mrq_inval(struct kefa_mr *mr);
void kefa_mrq_revoked(struct kefa_mr *mr, int err);
int kefa_mrq_room(struct kefa_mrq *mrq);
void kefa_mrq_again(struct kefa_mr *mr, bool dma);

/**
 * kefa_mrq_count() - count an event
 * @mrq: the queue pair
 * @counter: one of its counters
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kefa_mrq_count(struct kefa_mrq *mrq, u64 *counter)
{
	spin_lock_bh(&mrq->lock);
	(*counter)++;
	spin_unlock_bh(&mrq->lock);
}

#endif /* KEFA_MRQ_H */
