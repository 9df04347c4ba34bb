/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For providers only: completion queues, counters and event queues. Symbols are in the
 * namespace KOFI_PROVIDER.
 */
#ifndef KOFI_QUEUES_H
#define KOFI_QUEUES_H

#include <linux/atomic.h>
#include <linux/lockdep.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <kofi/domain.h>
#include <kofi/eq.h>
#include <kofi/fabric.h>

/* work.c */

bool kofi_in_handler(void);

/**
 * struct kofi_notifier - the part of a queue that notifies its reader
 * @list: in the list of all queues, for kofi_in_handler(); under kofi_notifiers_lock
 * @lock: the queue's lock; protects @armed, @running and @again
 * @call: calls the queue's handler; NULL without a handler
 * @wait: tasks that sleep in fi_cq_sread() or fi_eq_sread()
 * @work: calls the handler if the notifying task must not call it
 * @armed: the next entry causes a call of the handler
 * @running: the handler is being called, @work is queued to call it, or a task has claimed the call
 * @again: entries came while @running was set, so the handler must be called again
 * @softirq: the handler is called in softirq context, or with softirqs off
 * @left: with @softirq, number of entries that the handler may still read in this call; written by
 *	the caller of the handler, and in the handler
 * @runner: task that is calling the handler, or that a softirq which calls it has interrupted; set
 *	and cleared by the caller
 */
struct kofi_notifier {
	struct list_head	list;
	spinlock_t		*lock;	/* the queue's lock */
	void			(*call)(struct kofi_notifier *notifier);
	wait_queue_head_t	wait;
	struct work_struct	work;
	bool			armed;
	bool			running;
	bool			again;
	bool			softirq;
	u32			left;
	struct task_struct	*runner;
};

/* Number of entries that a handler with FI_CQ_SOFTIRQ reads in one call. */
#define KOFI_SOFT_BUDGET	256

void kofi_notify(struct kofi_notifier *notifier, bool in_worker);
bool kofi_notify_claim(struct kofi_notifier *notifier, bool unarmed);
void kofi_notify_claimed(struct kofi_notifier *notifier);

/* cq.c, source.c */

struct kofi_cq_reader;
struct kofi_cq_slot;

/**
 * struct kofi_source - a source of completions: an endpoint, or what else readers poll
 * @list: in kofi_cq.sources, for an endpoint; changed under kofi_cq.sources_lock
 * @poll: write the completions that the device has, and return whether there were any.
 *	Called in process context, under RCU, by several readers concurrently. Must not wait
 *	for a lock unless the argument last is true. With last, the reader sleeps if there
 *	were no completions, so the next one must be reported by kofi_cq_poke() or
 *	kofi_cq_notify(). If there were completions, events may stay off, because the reader
 *	polls again before it sleeps. Completions may be given to the argument reader, if it
 *	isn't NULL, see struct kofi_cq_reader
 * @arg: first argument of @poll
 */
struct kofi_source {
	struct list_head	list;
	bool			(*poll)(void *arg, bool last, struct kofi_cq_reader *reader);
	void			*arg;
};

/**
 * struct kofi_cq_reader - a reader that found a completion queue empty, and polls its sources
 * @cq: the completion queue
 * @buf: where the next completion goes, in the queue's format
 * @size: size of a completion in that format
 * @src_addr: where the sender of its message goes, or NULL
 * @room: number of completions that still fit into @buf
 *
 * kofi_cq_report() may give the reader completions directly, which costs less than to write them
 * to the queue and read them from there. Errors and unsolicited completions are always written to
 * the queue.
 */
struct kofi_cq_reader {
	struct kofi_cq	*cq;
	void		*buf;
	size_t		size;
	fi_addr_t	*src_addr;
	size_t		room;
};

/**
 * struct kofi_cq_waiter - an endpoint that may wait for the reserve of a completion queue
 * @list: in kofi_cq.waiters, or empty; under kofi_cq.lock
 * @replenished: the reserve has an entry again, and the waiter has left the list. Called once
 *	for each wait, under kofi_cq.lock, in process or softirq context; typically queues a
 *	worker that processes the waiting packets
 *
 * The provider initializes both members.
 */
struct kofi_cq_waiter {
	struct list_head	list;
	void			(*replenished)(struct kofi_cq_waiter *waiter);
};

/**
 * struct kofi_cq - a completion queue, for providers to embed or use
 * @cq_fid: the object
 * @attr: attributes with which the queue was opened
 * @entry_size: size of a completion in the queue's format
 * @lock: protects @ring to @room and the state of @notifier. Taken in process
 *	and softirq context, inside the locks of a provider
 * @ring: slots of the completions to be read
 * @mask: number of slots, a power of two, minus 1
 * @head: next slot to be read
 * @tail: next slot to be written
 * @signals: number of calls of fi_cq_signal() that haven't made a task return
 * @err_data: error data that fi_cq_readerr() returned, kept until the next read
 * @room: a refused post may succeed now, and no sleeper has been notified; under @lock
 * @wanted: a post was refused for lack of an entry, and the reader hasn't been notified
 * @credits: number of entries that posts may still reserve
 * @reserve: number of entries left for unsolicited completions
 * @waiters: list of struct kofi_cq_waiter, which found @reserve empty; under @lock
 * @sources_lock: protects @nsources, @nshared and changes of @sources, which readers walk under
 *	RCU. Taken in process context
 * @sources: list of struct kofi_source, the endpoints
 * @nsources: number of @sources; written under @sources_lock
 * @busy: number of outstanding operations of @shared, or a constant 0: see kofi_cq_share()
 * @shared: a source that several completion queues have in common
 * @nshared: number of uses of @shared; under @sources_lock
 * @sleepers: number of readers that sleep or are about to
 * @poked: a sleeping reader must poll the sources
 * @spin_ns: time in nanoseconds for which a reader polls before it sleeps
 * @notifier: sleepers and handler
 *
 * Each completion has a reserved slot, so the queue can't overrun. A post takes a credit,
 * and fails with -EAGAIN when there is none. Unsolicited completions take entries from a
 * separate reserve, which posts can't use.
 */
struct kofi_cq {
	struct fid_cq		cq_fid;
	struct fi_cq_attr	attr;
	size_t			entry_size;
	spinlock_t		lock;	/* protects ring to room, notifier */
	struct kofi_cq_slot	*ring;
	u32			mask;
	u32			head;
	u32			tail;
	u32			signals;
	void			*err_data;
	bool			room;
	atomic_t		wanted;
	atomic_t		credits;
	atomic_t		reserve;
	struct list_head	waiters;
	spinlock_t		sources_lock;	/* protects changes of sources to nshared */
	struct list_head	sources;
	unsigned int		nsources;
	const u32		*busy;
	struct kofi_source	*shared;
	unsigned int		nshared;
	atomic_t		sleepers;
	bool			poked;
	u32			spin_ns;
	struct kofi_notifier	notifier;
};

/* Default and maximum number of entries of a completion queue. */
#define KOFI_CQ_SIZE		1024
#define KOFI_CQ_MAX_SIZE	65536

/**
 * struct kofi_cq_config - a provider's configuration of a completion queue
 * @default_size: number of entries if fi_cq_attr.size is 0
 * @max_size: largest number of entries; fi_cq_open() fails with -EINVAL above it
 * @reserve: number of entries for unsolicited completions
 */
struct kofi_cq_config {
	u32	default_size;
	u32	max_size;
	u32	reserve;
};

int kofi_cq_init(struct kofi_cq *cq, struct fi_cq_attr *attr,
		 const struct kofi_cq_config *config);
void kofi_cq_fini(struct kofi_cq *cq);
int kofi_cq_alloc(struct fi_cq_attr *attr, const struct kofi_cq_config *config,
		  struct fid_cq **cq);
int kofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		 struct fid_cq **cq, void *context);
void kofi_cq_add_err(struct kofi_cq *cq, const struct fi_cq_err_entry *entry,
		     bool unsolicited);
void kofi_cq_unreserve_unsolicited(struct kofi_cq *cq, unsigned int n);
void kofi_cq_check_recvs(const struct kofi_cq *tx, const struct kofi_cq *rx,
			 size_t recvs);
int kofi_cq_want(struct kofi_cq *cq);
void kofi_cq_tell_room(struct kofi_cq *cq);
bool kofi_cq_poke(struct kofi_cq *cq);
bool kofi_cq_is_polled(const struct kofi_cq *cq);
bool kofi_cq_share(struct kofi_cq *cq, struct kofi_source *source, const u32 *busy);
bool kofi_cq_unshare(struct kofi_cq *cq);

/**
 * struct kofi_cq_slot - a completion in the ring
 * @entry: an error, or, if its err is 0, a completion: then only the members that
 *	struct fi_cq_tagged_entry has as well, and src_addr, are valid
 * @unsolicited: the slot belongs to the reserve for unsolicited completions
 */
struct kofi_cq_slot {
	struct fi_cq_err_entry	entry;
	bool			unsolicited;
};

/**
 * kofi_cq_next() - the slot of the next completion
 * @cq: the completion queue
 *
 * Context: Under kofi_cq.lock.
 * Return: the slot, with old contents; or NULL if the caller reserved no entry.
 */
static inline struct kofi_cq_slot *kofi_cq_next(struct kofi_cq *cq)
{
	lockdep_assert_held(&cq->lock);
	if (WARN_ON_ONCE(cq->tail - cq->head > cq->mask))
		return NULL;
	return &cq->ring[cq->tail++ & cq->mask];
}

/**
 * kofi_cq_begin() - begin to write completions
 * @cq: the completion queue
 *
 * Context: Process or softirq context; doesn't sleep. Only kofi_cq_add() may be called for
 * the queue until kofi_cq_end().
 */
static inline void kofi_cq_begin(struct kofi_cq *cq)
	__acquires(&cq->lock)
{
	spin_lock_bh(&cq->lock);
}

/**
 * kofi_cq_end() - stop writing completions after kofi_cq_begin()
 * @cq: the completion queue
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_cq_end(struct kofi_cq *cq)
	__releases(&cq->lock)
{
	spin_unlock_bh(&cq->lock);
}

/**
 * kofi_cq_begin_nested() - kofi_cq_begin() under a lock of the provider
 * @cq: the completion queue
 *
 * Context: Softirq context, or process context with bottom halves off, which
 * stay off until kofi_cq_end_nested().
 */
static inline void kofi_cq_begin_nested(struct kofi_cq *cq)
	__acquires(&cq->lock)
{
	if (IS_ENABLED(CONFIG_PROVE_LOCKING))
		WARN_ON_ONCE(!in_softirq());
	spin_lock(&cq->lock);
}

/**
 * kofi_cq_end_nested() - stop writing completions after kofi_cq_begin_nested()
 * @cq: the completion queue
 *
 * Context: As kofi_cq_begin_nested().
 */
static inline void kofi_cq_end_nested(struct kofi_cq *cq)
	__releases(&cq->lock)
{
	spin_unlock(&cq->lock);
}

/**
 * kofi_cq_add_slot() - common part of kofi_cq_add() and kofi_cq_write_unsolicited()
 * @cq: the completion queue
 * @entry: the completion, in the longest format
 * @src_addr: sender of the message, or FI_ADDR_NOTAVAIL
 * @unsolicited: the completion uses an entry of the reserve
 *
 * Context: Between kofi_cq_begin() and kofi_cq_end().
 */
static inline void kofi_cq_add_slot(struct kofi_cq *cq,
				    const struct fi_cq_tagged_entry *entry,
				    fi_addr_t src_addr, bool unsolicited)
{
	struct kofi_cq_slot *slot = kofi_cq_next(cq);

	if (unlikely(!slot))
		return;
	/* Copying single members lets the compiler elide the caller's entry. */
	slot->entry.op_context = entry->op_context;
	slot->entry.flags = entry->flags;
	slot->entry.len = entry->len;
	slot->entry.buf = entry->buf;
	slot->entry.data = entry->data;
	slot->entry.tag = entry->tag;
	slot->entry.src_addr = src_addr;
	slot->entry.err = 0;
	slot->unsolicited = unsolicited;
}

/**
 * kofi_cq_add() - write one of several completions
 * @cq: the completion queue
 * @entry: the completion, in the longest format
 * @src_addr: sender of the message, or FI_ADDR_NOTAVAIL
 *
 * As kofi_cq_write(), but without locking.
 *
 * Context: Between kofi_cq_begin() and kofi_cq_end().
 */
static inline void kofi_cq_add(struct kofi_cq *cq,
			       const struct fi_cq_tagged_entry *entry,
			       fi_addr_t src_addr)
{
	kofi_cq_add_slot(cq, entry, src_addr, false);
}

/**
 * kofi_cq_give() - give a reader a completion; providers call kofi_cq_report()
 * @reader: the reader, with room
 * @entry: the completion, in the longest format
 * @src_addr: sender of the message, or FI_ADDR_NOTAVAIL
 *
 * Context: As kofi_cq_report().
 */
static inline void kofi_cq_give(struct kofi_cq_reader *reader,
				const struct fi_cq_tagged_entry *entry, fi_addr_t src_addr)
{
	struct fi_cq_tagged_entry *to = reader->buf;

	/* Each format has the layout of the first part of the longest one. */
	switch (reader->size) {
	case sizeof(struct fi_cq_tagged_entry):
		to->tag = entry->tag;
		fallthrough;
	case sizeof(struct fi_cq_data_entry):
		to->buf = entry->buf;
		to->data = entry->data;
		fallthrough;
	case sizeof(struct fi_cq_msg_entry):
		to->flags = entry->flags;
		to->len = entry->len;
		fallthrough;
	default:
		to->op_context = entry->op_context;
	}
	reader->buf += reader->size;
	if (reader->src_addr)
		*reader->src_addr++ = src_addr;
	reader->room--;
}

/**
 * kofi_cq_write() - report that an operation completed
 * @cq: the completion queue
 * @entry: the completion, in the longest format
 * @src_addr: sender of the message, or FI_ADDR_NOTAVAIL
 *
 * Uses an entry from kofi_cq_reserve(). Call kofi_cq_notify() after a batch.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_cq_write(struct kofi_cq *cq,
				 const struct fi_cq_tagged_entry *entry,
				 fi_addr_t src_addr)
{
	kofi_cq_begin(cq);
	kofi_cq_add(cq, entry, src_addr);
	kofi_cq_end(cq);
}

/**
 * kofi_cq_write_unsolicited() - report an unsolicited completion
 * @cq: the completion queue
 * @entry: the completion, in the longest format
 * @src_addr: sender, or FI_ADDR_NOTAVAIL
 *
 * Uses an entry from kofi_cq_reserve_unsolicited(). Call kofi_cq_notify() after a batch.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_cq_write_unsolicited(struct kofi_cq *cq,
					     const struct fi_cq_tagged_entry *entry,
					     fi_addr_t src_addr)
{
	kofi_cq_begin(cq);
	kofi_cq_add_slot(cq, entry, src_addr, true);
	kofi_cq_end(cq);
}

/**
 * kofi_cq_write_err() - report that an operation failed
 * @cq: the completion queue
 * @entry: the error, with an err other than 0. Its err_data is NULL or from kmalloc(), and
 *	belongs to the queue afterwards
 *
 * Uses an entry from kofi_cq_reserve(). Call kofi_cq_notify() after a batch.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_cq_write_err(struct kofi_cq *cq,
				     const struct fi_cq_err_entry *entry)
{
	kofi_cq_add_err(cq, entry, false);
}

/**
 * kofi_cq_write_err_unsolicited() - report an unsolicited failure
 * @cq: the completion queue
 * @entry: as for kofi_cq_write_err()
 *
 * Uses an entry from kofi_cq_reserve_unsolicited(). Call kofi_cq_notify() after a batch.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_cq_write_err_unsolicited(struct kofi_cq *cq,
						 const struct fi_cq_err_entry *entry)
{
	kofi_cq_add_err(cq, entry, true);
}

/**
 * kofi_cq_reserve() - reserve an entry for an operation that is being posted
 * @cq: the completion queue
 *
 * After each success the caller calls kofi_cq_write(), kofi_cq_write_err() or
 * kofi_cq_unreserve() once. After a failure the queue's reader is notified once when there
 * is room again: see kofi_cq_tell_room().
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or -EAGAIN.
 */
static inline int kofi_cq_reserve(struct kofi_cq *cq)
{
	if (IS_ENABLED(CONFIG_PROVE_LOCKING))
		WARN_ON_ONCE(in_hardirq() || irqs_disabled());
	if (likely(atomic_dec_if_positive(&cq->credits) >= 0))
		return 0;
	return kofi_cq_want(cq);
}

/**
 * kofi_cq_unreserve_some() - give back entries that no completion will use
 * @cq: the completion queue
 * @n: number of entries; may be 0
 *
 * Context: Process or softirq context, but not between kofi_cq_begin() and
 * kofi_cq_end(); doesn't sleep.
 */
static inline void kofi_cq_unreserve_some(struct kofi_cq *cq, unsigned int n)
{
	if (!n)
		return;
	atomic_add(n, &cq->credits);
	/* Pairs with kofi_cq_want(), which sets wanted and then looks at credits. */
	smp_mb__after_atomic();
	if (unlikely(atomic_read(&cq->wanted)) && atomic_xchg(&cq->wanted, 0))
		kofi_cq_tell_room(cq);
}

/**
 * struct kofi_cq_batch - completions that kofi_cq_report() reports together
 * @cq: the completion queue, locked unless the completions are given to @to
 * @to: a copy of the reader, which the compiler can keep in registers; NULL if the completions
 *	are written to @cq
 * @quiet: number of operations without a completion
 */
struct kofi_cq_batch {
	struct kofi_cq		*cq;
	struct kofi_cq_reader	*to;
	unsigned int		quiet;
};

/**
 * kofi_cq_batch_add() - report an operation of a batch
 * @batch: the batch
 * @entry: the completion, in the longest format
 * @src_addr: sender of the message, or FI_ADDR_NOTAVAIL
 *
 * For an operation without a completion the callback raises kofi_cq_batch.quiet instead.
 *
 * Context: In the callback of kofi_cq_report().
 */
static __always_inline void kofi_cq_batch_add(struct kofi_cq_batch *batch,
					      const struct fi_cq_tagged_entry *entry,
					      fi_addr_t src_addr)
{
	if (batch->to)
		kofi_cq_give(batch->to, entry, src_addr);
	else
		kofi_cq_add(batch->cq, entry, src_addr);
}

/**
 * kofi_cq_report() - report operations that succeeded
 * @cq: the completion queue, or NULL
 * @reader: argument of kofi_source.poll, or NULL
 * @n: number of operations, each with an entry from kofi_cq_reserve()
 * @notify: set to true if the caller has to call kofi_cq_notify()
 * @add: calls kofi_cq_batch_add() for each operation. It is inlined twice, so that each copy
 *	knows whether it gives or writes
 * @arg: argument of @add
 *
 * Gives the completions to the reader if it has room for all and the queue is empty, because
 * completions in the queue come first. The caller's own earlier completions are seen there
 * without the queue's lock, and those of other sources have no order relative to the caller's.
 * Otherwise writes them to the queue, under one lock. The entries of quiet operations are
 * given back.
 *
 * Context: Under the lock under which the source writes all its completions, in softirq context,
 * or in process context with bottom halves off.
 */
static __always_inline void kofi_cq_report(struct kofi_cq *cq, struct kofi_cq_reader *reader,
					   unsigned int n, bool *notify,
					   void (*add)(struct kofi_cq_batch *batch, void *arg,
						       unsigned int n),
					   void *arg)
{
	struct kofi_cq_batch batch = { .cq = cq };

	if (reader && reader->cq == cq && reader->room >= n &&
	    READ_ONCE(cq->head) == READ_ONCE(cq->tail)) {
		struct kofi_cq_reader to = *reader;

		batch.to = &to;
		add(&batch, arg, n);
		reader->buf = to.buf;
		reader->src_addr = to.src_addr;
		reader->room = to.room;
		kofi_cq_unreserve_some(reader->cq, batch.quiet);
	} else if (cq) {
		kofi_cq_begin_nested(cq);
		add(&batch, arg, n);
		kofi_cq_end_nested(cq);
		*notify |= batch.quiet < n;
		kofi_cq_unreserve_some(cq, batch.quiet);
	}
}

/**
 * kofi_cq_unreserve() - give back an entry that no completion will use
 * @cq: the completion queue
 *
 * Context: As kofi_cq_unreserve_some().
 */
static inline void kofi_cq_unreserve(struct kofi_cq *cq)
{
	kofi_cq_unreserve_some(cq, 1);
}

/**
 * kofi_cq_reserve_unsolicited() - reserve an entry for an unsolicited completion
 * @cq: the completion queue
 *
 * After success the caller calls kofi_cq_write_unsolicited(),
 * kofi_cq_write_err_unsolicited() or kofi_cq_unreserve_unsolicited() once. After a failure
 * the packet must wait, see kofi_cq_starve().
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or -EAGAIN.
 */
static inline int kofi_cq_reserve_unsolicited(struct kofi_cq *cq)
{
	return atomic_dec_if_positive(&cq->reserve) < 0 ? -EAGAIN : 0;
}

/**
 * kofi_cq_await() - wait for the reserve
 * @cq: the completion queue
 * @waiter: called when the reserve has another entry. The caller looks at kofi_cq.reserve again
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_cq_await(struct kofi_cq *cq, struct kofi_cq_waiter *waiter)
{
	kofi_cq_begin(cq);
	list_move_tail(&waiter->list, &cq->waiters);
	kofi_cq_end(cq);
	/* Pairs with kofi_cq_unreserve_unsolicited(). */
	smp_mb();
}

/**
 * kofi_cq_starve() - wait for the reserve after kofi_cq_reserve_unsolicited() failed
 * @cq: the completion queue
 * @waiter: called when the reserve has an entry, even after success
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0 if an entry was reserved after all, or -EAGAIN.
 */
static inline int kofi_cq_starve(struct kofi_cq *cq, struct kofi_cq_waiter *waiter)
{
	kofi_cq_await(cq, waiter);
	return kofi_cq_reserve_unsolicited(cq);
}

/**
 * kofi_cq_forget() - stop waiting after kofi_cq_starve()
 * @cq: the completion queue, or NULL
 * @waiter: the waiter, in the queue's list or in none
 *
 * Context: Process or softirq context; doesn't sleep. The waiter isn't called afterwards.
 */
static inline void kofi_cq_forget(struct kofi_cq *cq, struct kofi_cq_waiter *waiter)
{
	if (!cq)
		return;
	kofi_cq_begin(cq);
	list_del_init(&waiter->list);
	kofi_cq_end(cq);
}

/**
 * kofi_cq_sleepers() - count the readers that sleep until there is a completion
 * @cq: the completion queue
 *
 * A reader counts itself before it polls the sources for the last time, and then sleeps
 * only if the queue is empty.
 *
 * Context: Any. Reliable only under a lock that the source's poll takes as well.
 * Return: number of readers that sleep or are about to.
 */
static inline int kofi_cq_sleepers(const struct kofi_cq *cq)
{
	return atomic_read(&cq->sleepers);
}

/**
 * kofi_cq_alone() - check that no sleeper or handler waits for a completion
 * @cq: the completion queue, or NULL
 *
 * Context: The result is certain only under a lock that the poll function of a source takes.
 * Return: true if kofi_cq_notify() would have no effect for what was written under that lock.
 */
static inline bool kofi_cq_alone(const struct kofi_cq *cq)
{
	return !cq || (!cq->notifier.call && !kofi_cq_sleepers(cq));
}

/**
 * kofi_cq_notify() - wake sleepers and queue a call of the handler
 * @cq: the completion queue, after a write
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_cq_notify(struct kofi_cq *cq)
{
	kofi_notify(&cq->notifier, false);
}

/**
 * kofi_cq_notify_worker() - wake sleepers and call the handler directly
 * @cq: the completion queue, after a write
 *
 * Context: Process context, in a workqueue, with no lock held; may sleep. With FI_CQ_SOFTIRQ also
 * softirq context.
 */
static inline void kofi_cq_notify_worker(struct kofi_cq *cq)
{
	kofi_notify(&cq->notifier, true);
}

/**
 * kofi_cq_claim() - wake sleepers, and claim the call of the handler
 * @cq: the completion queue, after a write
 *
 * Context: Process or softirq context; doesn't sleep. See kofi_notify_claim().
 * Return: true if the caller must call kofi_cq_notify_claimed().
 */
static inline bool kofi_cq_claim(struct kofi_cq *cq)
{
	return kofi_notify_claim(&cq->notifier, false);
}

/**
 * kofi_cq_notify_claimed() - call the handler after kofi_cq_claim() returned true
 * @cq: the completion queue
 *
 * Context: Process context, in a workqueue, with no lock held; may sleep. With FI_CQ_SOFTIRQ also
 * softirq context.
 */
static inline void kofi_cq_notify_claimed(struct kofi_cq *cq)
{
	kofi_notify_claimed(&cq->notifier);
}

/* cntr.c */

/**
 * struct kofi_cntr - a counter, for providers to embed or use
 * @cntr_fid: the object
 * @attr: attributes with which the counter was opened
 * @value: number of completed operations, or bytes
 * @errors: number of failed operations
 * @known_errors: value of @errors that fi_cntr_readerr() returned last
 * @room: a refused post may succeed now, and no sleeper has been notified
 * @wait: tasks that sleep in fi_cntr_wait()
 */
struct kofi_cntr {
	struct fid_cntr		cntr_fid;
	struct fi_cntr_attr	attr;
	atomic64_t		value;
	atomic64_t		errors;
	u64			known_errors;
	bool			room;
	wait_queue_head_t	wait;
};

void kofi_cntr_init(struct kofi_cntr *cntr, const struct fi_cntr_attr *attr);
int kofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		   struct fid_cntr **cntr, void *context);
void kofi_cntr_done(struct kofi_cntr *cntr, size_t len);
void kofi_cntr_failed(struct kofi_cntr *cntr);
void kofi_cntr_tell_room(struct kofi_cntr *cntr);

/* eq.c */

struct kofi_eq_event;

/**
 * typedef kofi_eq_release_t - frees the resources of an event that is dropped unread
 * @entry: the queue's copy of the entry
 *
 * See kofi_eq_write_event().
 */
typedef void (*kofi_eq_release_t)(void *entry);

struct kofi_eq_event *kofi_eq_reserve(size_t len);
int kofi_eq_write_event(struct fid_eq *eq, struct kofi_eq_event *room, u32 event,
			const void *buf, size_t len, kofi_eq_release_t release);
int kofi_eq_write_err(struct fid_eq *eq, struct kofi_eq_event *room,
		      const struct fi_eq_err_entry *entry);

/**
 * kofi_eq_unreserve() - free memory that was reserved and not used
 * @room: from kofi_eq_reserve(), or NULL
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_eq_unreserve(struct kofi_eq_event *room)
{
	kfree(room);
}

#endif /* KOFI_QUEUES_H */
