/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The queue pair on which a domain registers memory: mrq.c. */
#ifndef KEFA_MRQ_H
#define KEFA_MRQ_H

#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <kofi/provider.h>
#include "../../compat/bh.h"
#include "hw.h"

struct kefa_domain;
struct kefa_mr;
enum kefa_mr_state;

enum {
	/* Maximum outstanding registrations of a domain, within the device's limit. */
	KEFA_MR_DEPTH		= 256,
	/* Checks for progress, at this interval in seconds, until a device counts as silent. */
	KEFA_MR_LOOKS		= 4,
	KEFA_MR_LOOK_S		= 10,
};

/**
 * struct kefa_mr_end - a request that succeeded, and that has a completion
 * @context: the ULP's context
 * @len: number of registered bytes
 */
struct kefa_mr_end {
	void	*context;
	size_t	len;
};

/**
 * struct kefa_mrq_calls - handlers that the worker, or the softirq, must call
 * @n: number of @cqs
 * @cqs: their completion queues. The claims keep these open, so the owner of this structure reads
 *	it without the lock; it alone changes it
 */
struct kefa_mrq_calls {
	unsigned int	n;
	struct kofi_cq	*cqs[KEFA_POLL_BATCH];
};

/**
 * struct kefa_mrq - the queue pair on which a domain registers memory
 * @lock: protects all members but @room, @work, @soft, @bh, @revoke, @map_retry, @watch, @source,
 *	@done and @looks
 * @hq: the queue pair
 * @open: the queue pair accepts posts
 * @depth: maximum number of outstanding work requests
 * @nbusy: number of outstanding work requests, each with a slot; see kofi_cq_share()
 * @free: indices of free slots, from @nbusy on
 * @busy: by slot, the region whose work request is outstanding, or NULL
 * @gen: number of work requests posted, which distinguishes uses of a slot
 * @wr: the work request that is being posted
 * @wcs: completions being processed
 * @awaited: number of completion queues whose readers sleep or have a handler, of outstanding
 *	requests without a completion, and 1 if @wanting isn't empty. If it is 0, only polling
 *	readers wait, and no events are enabled
 * @reader: the reader that polls, if it can take completions, see struct kofi_cq_reader
 * @ended: requests to report in @ended_cq
 * @end: end of @ended
 * @ended_cq: completion queue of @ended
 * @wanting: regions whose posts were refused with -EAGAIN and whose ULPs haven't been
 *	notified since
 * @late: regions that were invalidated, or destroyed instead, and whose memory the device still
 *	writes to for peers
 * @nsleepy: number of completion queues whose handlers may sleep
 * @nsoft: number of completion queues whose handlers may be called in softirqs
 * @softirq: no handler may sleep, so @soft serves the queue pair instead of @work
 * @serving: the worker or the softirq polls, and will call these handlers; or NULL
 * @calls: handlers that the worker must call
 * @soft_calls: those that the softirq must call. It may run while @work does
 * @room: tasks that wait for a slot or for a region
 * @work: polls and calls handlers
 * @soft: does the same in softirqs
 * @bh: runs @soft
 * @revoke: destroys regions whose invalidation failed, and replaces them
 * @map_retry: notifies ULPs some time after a post failed for lack of DMA space
 * @watch: checks whether registrations complete
 * @source: what readers of completion queues of regions poll
 * @done: number of completions at the last run of @watch; used only by @watch
 * @looks: number of runs of @watch without progress; used only by @watch
 * @stats: counters
 */
struct kefa_mrq {
	spinlock_t		lock;	/* protects all members but those listed above */
	struct kefa_hw_qp	hq;
	bool			open;
	u32			depth;
	u32			nbusy;
	u16			free[KEFA_MR_DEPTH];
	struct kefa_mr		*busy[KEFA_MR_DEPTH];
	u32			gen;
	struct kefa_wr		wr;
	struct ib_wc		wcs[KEFA_POLL_BATCH];
	u32			awaited;
	struct kofi_cq_reader	*reader;
	struct kefa_mr_end	ended[KEFA_POLL_BATCH];
	struct kefa_mr_end	*end;
	struct kofi_cq		*ended_cq;
	struct list_head	wanting;
	struct list_head	late;
	u32			nsleepy;
	u32			nsoft;
	bool			softirq;
	struct kefa_mrq_calls	*serving;
	struct kefa_mrq_calls	calls;
	struct kefa_mrq_calls	soft_calls;
	wait_queue_head_t	room;
	struct work_struct	work;
	struct work_struct	soft;
	struct compat_bh	bh;
	struct work_struct	revoke;
	struct delayed_work	map_retry;
	struct delayed_work	watch;
	struct kofi_source	source;
	u32			done;
	u8			looks;
	struct kefa_mr_stats {
		u64	regs;
		u64	invals;
		u64	revoked;
		u64	again;
		u64	map_failed;
		u64	bounced;
		u64	unreachable;
		u64	dry;
		u64	errors;
		u64	stale;
	} stats;
};

int kefa_mrq_start(struct kefa_domain *dom);
void kefa_mrq_stop(struct kefa_domain *dom);
void kefa_mrq_fail_all(struct kefa_domain *dom);
void kefa_mr_go(struct kefa_mr *mr, enum kefa_mr_state state);
int kefa_mrq_reg(struct kefa_mr *mr, u64 access);
int kefa_mrq_inval(struct kefa_mr *mr);
void kefa_mrq_revoked(struct kefa_mr *mr, int err);
void kefa_mrq_unread(struct kefa_mr *mr);
unsigned int kefa_mrq_poll(struct kefa_mrq *mrq);

/* mrq_serve.c */

void kefa_mrq_event(void *arg);
void kefa_mrq_kick(struct kefa_mrq *mrq);
void kefa_mrq_work(struct work_struct *work);
void kefa_mrq_soft(struct work_struct *work);
void kefa_mrq_notify(struct kefa_mrq *mrq, struct kofi_cq *cq);
void kefa_mrq_wake(struct kefa_mrq *mrq);
void kefa_mrq_await(struct kefa_mrq *mrq);
void kefa_mrq_catch_up(struct kefa_mrq *mrq);
bool kefa_mrq_read(void *arg, bool last, struct kofi_cq_reader *reader);
void kefa_mrq_join(struct kefa_mr *mr);
void kefa_mrq_leave(struct kefa_mr *mr);

/* mrq.c */

int kefa_mrq_room(struct kefa_mrq *mrq);
void kefa_mrq_unwant(struct kefa_mr *mr);
void kefa_mrq_again(struct kefa_mr *mr, bool dma);
void kefa_mrq_want_region(struct kefa_mr *mr);
void kefa_mrq_replaced(struct kefa_mrq *mrq, bool failed);

/**
 * kefa_mrq_count() - count an event
 * @mrq: the queue pair
 * @counter: a counter of @mrq
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
