/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For providers only: completion queues, counters, event queues, and what a direction
 * of an endpoint has of them. Symbols are in the namespace KOFI_PROVIDER.
 */
#ifndef KOFI_QUEUES_H
#define KOFI_QUEUES_H

#include <linux/atomic.h>
#include <linux/lockdep.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <kofi/domain.h>
#include <kofi/eq.h>
#include <kofi/fabric.h>

/* work.c */

bool kofi_in_handler(void);

/**
 * struct kofi_notifier - the part of a queue that tells its reader
 * @list: among all queues, for kofi_in_handler(); kofi_notifiers_lock
 * @lock: the queue's, protects @armed, @running and @again
 * @call: calls the queue's handler, or NULL
 * @wait: who sleeps in an sread
 * @work: calls the handler where the caller can't, or shouldn't once more
 * @armed: the handler is to be called when something comes
 * @running: the handler is being called, or @work is queued to do it
 * @again: and something came meanwhile
 * @runner: who is calling the handler; set and cleared by that task
 */
struct kofi_notifier {
	struct list_head	list;
	spinlock_t		*lock;	/* the queue's */
	void			(*call)(struct kofi_notifier *notifier);
	wait_queue_head_t	wait;
	struct work_struct	work;
	bool			armed;
	bool			running;
	bool			again;
	struct task_struct	*runner;
};

void kofi_notify(struct kofi_notifier *notifier, bool in_worker);

/* cq.c, source.c */

struct kofi_cq_slot;

/**
 * struct kofi_source - an endpoint, as a completion queue knows it
 * @list: in kofi_cq.sources; kofi_cq.sources_lock to change
 * @poll: write the completions that the device has. Doesn't wait for a lock, unless
 *	its argument last is set: then the reader sleeps if there are none, so that
 *	the next one must be told of by kofi_cq_poke() or kofi_cq_notify(). Called in
 *	process context, under RCU, by several readers at a time; returns whether there
 *	were any, and may then leave events off, as it is called again before anybody
 *	sleeps
 * @arg: for it
 */
struct kofi_source {
	struct list_head	list;
	bool			(*poll)(void *arg, bool last);
	void			*arg;
};

/**
 * struct kofi_cq - a completion queue, for providers to embed or use
 * @cq_fid: the object
 * @attr: as opened
 * @lock: protects @ring to @room and what @notifier says. Taken in process
 *	and softirq context, inside any lock of a provider's
 * @ring: completions to be read
 * @mask: its size, a power of two, less 1
 * @head: next slot to be read
 * @tail: next slot to be written
 * @signals: calls of fi_cq_signal() that no waiter has answered
 * @err_data: the last error's, from fi_cq_readerr() to the next read
 * @room: a refused post may succeed now, and no sleeper has been told; @lock
 * @wanted: a post was refused for want of an entry, and nobody has been told since
 * @credits: entries that posts may still reserve
 * @reserve: entries left for completions that nobody posted
 * @starved: the reserve was empty when it was asked for
 * @replenished: the provider's, see struct kofi_cq_config
 * @sources_lock: protects changes of @sources, which are read under RCU, and @nsources.
 *	Taken in process context
 * @sources: kofi_source, where completions come from
 * @nsources: how many there are; written under @sources_lock
 * @sleepers: readers that sleep, or are about to
 * @poked: one of them is to poll the sources
 * @spin_ns: for so long one who is about to sleep polls first; nanoseconds
 * @notifier: sleepers and handler
 *
 * Each completion finds its slot reserved, so that a queue can't overrun: a
 * post takes a credit and fails with -EAGAIN when there is none; what comes
 * unsolicited draws on a reserve of its own, which posts can't eat.
 */
struct kofi_cq {
	struct fid_cq		cq_fid;
	struct fi_cq_attr	attr;
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
	atomic_t		starved;
	void			(*replenished)(struct kofi_cq *cq);
	spinlock_t		sources_lock;	/* protects changes of sources, nsources */
	struct list_head	sources;
	unsigned int		nsources;
	atomic_t		sleepers;
	bool			poked;
	u32			spin_ns;
	struct kofi_notifier	notifier;
};

/* Entries of a completion queue if nobody says how many, and at most. */
#define KOFI_CQ_SIZE		1024
#define KOFI_CQ_MAX_SIZE	65536

/**
 * struct kofi_cq_config - what a provider decides about a completion queue
 * @default_size: for fi_cq_attr.size 0
 * @max_size: above it fi_cq_open() fails with -EINVAL
 * @reserve: entries for completions that nobody posted
 * @replenished: called by a reader who made room after
 *	kofi_cq_reserve_unsolicited() had failed, in process or softirq context: have
 *	what was left lying picked up, by a worker. May be NULL
 */
struct kofi_cq_config {
	u32	default_size;
	u32	max_size;
	u32	reserve;
	void	(*replenished)(struct kofi_cq *cq);
};

int kofi_cq_init(struct kofi_cq *cq, struct fi_cq_attr *attr,
		 const struct kofi_cq_config *config);
void kofi_cq_fini(struct kofi_cq *cq);
int kofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		 struct fid_cq **cq, void *context);
void kofi_cq_add_err(struct kofi_cq *cq, const struct fi_cq_err_entry *entry,
		     bool unsolicited);
void kofi_cq_unreserve_unsolicited(struct kofi_cq *cq, unsigned int n);
void kofi_cq_check_recvs(const struct kofi_cq *tx, const struct kofi_cq *rx,
			 size_t recvs);
int kofi_cq_want(struct kofi_cq *cq);
void kofi_cq_gave(struct kofi_cq *cq);
void kofi_cq_tell_room(struct kofi_cq *cq);
bool kofi_cq_poke(struct kofi_cq *cq);

/**
 * struct kofi_cq_slot - a completion in the ring
 * @entry: an error, or what fi_cq_read() stores, from the beginning as far as the
 *	format goes; then its err is 0, and no more of it is valid but src_addr
 * @unsolicited: the slot is the reserve's
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
 * Return: the slot, whose contents are old; or NULL, as somebody didn't reserve.
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
 * Context: Process or softirq context; doesn't sleep. Nothing else of the queue
 * may be called until kofi_cq_end().
 */
static inline void kofi_cq_begin(struct kofi_cq *cq)
	__acquires(&cq->lock)
{
	spin_lock_bh(&cq->lock);
}

/**
 * kofi_cq_end() - end what kofi_cq_begin() began
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
 * kofi_cq_begin_nested() - kofi_cq_begin() under a lock of the provider's
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
 * kofi_cq_end_nested() - end what kofi_cq_begin_nested() began
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
 * kofi_cq_add_slot() - the part of kofi_cq_add() and kofi_cq_write_unsolicited()
 * that is the same
 * @cq: the completion queue
 * @entry: the completion, as the longest format has it
 * @src_addr: who sent the message, or FI_ADDR_NOTAVAIL
 * @unsolicited: it uses up the reserve
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
	/* By its fields, so that a caller's isn't put together in memory first. */
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
 * @entry: the completion, as the longest format has it
 * @src_addr: who sent the message, or FI_ADDR_NOTAVAIL
 *
 * As kofi_cq_write(), of which it is the part that isn't locking.
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
 * kofi_cq_write() - report that an operation completed
 * @cq: the completion queue
 * @entry: the completion, as the longest format has it
 * @src_addr: who sent the message, or FI_ADDR_NOTAVAIL
 *
 * Uses up a kofi_cq_reserve(). kofi_cq_notify() is due after a batch.
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
 * kofi_cq_write_unsolicited() - report something that nobody posted
 * @cq: the completion queue
 * @entry: the completion, as the longest format has it
 * @src_addr: who sent it, or FI_ADDR_NOTAVAIL
 *
 * Uses up a kofi_cq_reserve_unsolicited(). kofi_cq_notify() is due after a batch.
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
 * @entry: the error; its err isn't 0. Its err_data is NULL or from kmalloc(), and the
 *	queue's from here on
 *
 * Uses up a kofi_cq_reserve(). kofi_cq_notify() is due after a batch.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_cq_write_err(struct kofi_cq *cq,
				     const struct fi_cq_err_entry *entry)
{
	kofi_cq_add_err(cq, entry, false);
}

/**
 * kofi_cq_write_err_unsolicited() - report a failure of something that nobody posted
 * @cq: the completion queue
 * @entry: as for kofi_cq_write_err()
 *
 * Uses up a kofi_cq_reserve_unsolicited(). kofi_cq_notify() is due after a batch.
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
 * Each success is followed by one kofi_cq_write(), kofi_cq_write_err() or
 * kofi_cq_unreserve(). After a failure the queue's reader is told, once, when there
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
 * kofi_cq_unreserve_some() - give entries back that no completion will use
 * @cq: the completion queue
 * @n: how many; may be 0
 *
 * Context: Process or softirq context, but not between kofi_cq_begin() and
 * kofi_cq_end(); doesn't sleep.
 */
static inline void kofi_cq_unreserve_some(struct kofi_cq *cq, unsigned int n)
{
	if (!n)
		return;
	atomic_add(n, &cq->credits);
	/* Pairs with kofi_cq_want(): either it finds the entries, or we find it. */
	smp_mb__after_atomic();
	if (unlikely(atomic_read(&cq->wanted)))
		kofi_cq_gave(cq);
}

/**
 * kofi_cq_unreserve() - give an entry back that no completion will use
 * @cq: the completion queue
 *
 * Context: As kofi_cq_unreserve_some().
 */
static inline void kofi_cq_unreserve(struct kofi_cq *cq)
{
	kofi_cq_unreserve_some(cq, 1);
}

/**
 * kofi_cq_reserve_unsolicited() - take an entry for what nobody posted
 * @cq: the completion queue
 *
 * Success is followed by kofi_cq_write_unsolicited(), kofi_cq_write_err_unsolicited() or
 * kofi_cq_unreserve_unsolicited(). On failure the packet stays
 * where it is until the queue has been read, of which the provider hears by
 * struct kofi_cq_config.replenished.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or -EAGAIN.
 */
static inline int kofi_cq_reserve_unsolicited(struct kofi_cq *cq)
{
	if (atomic_dec_if_positive(&cq->reserve) >= 0)
		return 0;
	atomic_set(&cq->starved, 1);
	/* A reader adds to the reserve and then looks at starved. */
	smp_mb();
	return atomic_dec_if_positive(&cq->reserve) < 0 ? -EAGAIN : 0;
}

/**
 * kofi_cq_sleepers() - how many readers sleep until there is a completion?
 * @cq: the completion queue
 *
 * Readers are counted before they have the sources polled for the last time, and then sleep
 * only if the queue is empty.
 *
 * Context: Any. Tells for sure only under a lock that a source's poll takes, too.
 * Return: the number of those who do, or are about to.
 */
static inline int kofi_cq_sleepers(const struct kofi_cq *cq)
{
	return atomic_read(&cq->sleepers);
}

/**
 * kofi_cq_notify() - wake sleepers and have the handler called
 * @cq: the completion queue, written to before
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_cq_notify(struct kofi_cq *cq)
{
	kofi_notify(&cq->notifier, false);
}

/**
 * kofi_cq_notify_worker() - wake sleepers and call the handler right here
 * @cq: the completion queue, written to before
 *
 * Context: Process context, in a workqueue, with no lock held; may sleep.
 */
static inline void kofi_cq_notify_worker(struct kofi_cq *cq)
{
	kofi_notify(&cq->notifier, true);
}

/* cntr.c */

/**
 * struct kofi_cntr - a counter, for providers to embed or use
 * @cntr_fid: the object
 * @attr: as opened
 * @value: what has completed
 * @errors: what has failed
 * @known_errors: @errors as fi_cntr_readerr() returned it last
 * @room: a refused post may succeed now, and no sleeper has been told
 * @wait: who sleeps in fi_cntr_wait()
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

/* ep.c */

/**
 * enum kofi_side_cntr - what the counters of a direction count
 * @KOFI_CNTR_MSG: messages
 * @KOFI_CNTR_READ: reads, of the sending side
 * @KOFI_CNTR_WRITE: writes, likewise
 * @KOFI_CNTRS: how many there are
 */
enum kofi_side_cntr {
	KOFI_CNTR_MSG,
	KOFI_CNTR_READ,
	KOFI_CNTR_WRITE,
	KOFI_CNTRS,
};

/**
 * struct kofi_side - one direction of an endpoint, for providers to embed
 * @cq: where it completes, or NULL
 * @op_flags: flags of calls that carry none
 * @known: those that may be among them
 * @cntr: counters by enum kofi_side_cntr, or NULL
 * @size: operations that can be outstanding
 * @selective: only operations with FI_COMPLETION complete
 * @counted: there is a counter
 * @source: the endpoint for @cq, from kofi_ep_add_source() on
 *
 * The provider sets @op_flags, @known and @size; the rest is kofi_ep_bind()'s.
 */
struct kofi_side {
	struct kofi_cq		*cq;
	u64			op_flags;
	u64			known;
	struct kofi_cntr	*cntr[KOFI_CNTRS];
	u32			size;
	bool			selective;
	bool			counted;
	struct kofi_source	source;
};

int kofi_ep_bind(struct kofi_side *tx, struct kofi_side *rx, struct fid *bfid,
		 u64 flags);
int kofi_ep_opsflag(struct kofi_side *tx, struct kofi_side *rx, int command,
		    u64 *arg);
void kofi_ep_add_source(struct kofi_side *tx, struct kofi_side *rx,
			bool (*poll)(void *arg, bool last), void *arg);
void kofi_ep_del_source(struct kofi_side *tx, struct kofi_side *rx);

/**
 * kofi_side_quiet() - does an operation complete without a word if it succeeds?
 * @side: its direction
 * @flags: its own, with those of kofi_req_flags()
 *
 * Context: Any.
 * Return: whether it does, unless kofi_req.quiet says so.
 */
static inline bool kofi_side_quiet(const struct kofi_side *side, u64 flags)
{
	return side->selective && !(flags & FI_COMPLETION);
}

/**
 * kofi_side_reserve() - reserve an entry where an operation will complete
 * @side: its direction
 *
 * Context: As kofi_cq_reserve().
 * Return: 0, or -EAGAIN.
 */
static inline int kofi_side_reserve(const struct kofi_side *side)
{
	return side->cq ? kofi_cq_reserve(side->cq) : 0;
}

/**
 * kofi_side_unreserve() - undo kofi_side_reserve()
 * @side: the direction
 *
 * Context: As kofi_cq_unreserve_some().
 */
static inline void kofi_side_unreserve(const struct kofi_side *side)
{
	if (side->cq)
		kofi_cq_unreserve(side->cq);
}

/**
 * kofi_copy_out() - hand out an option's value or an address
 * @to: the caller's buffer
 * @len: its size; takes that of the value
 * @from: the value
 * @size: its size
 *
 * fi_getopt() and fi_getname(): all of it, or none.
 *
 * Context: Any.
 * Return: 0, or -FI_ETOOSMALL.
 */
static inline int kofi_copy_out(void *to, size_t *len, const void *from, size_t size)
{
	size_t room = *len;

	*len = size;
	if (room < size)
		return -FI_ETOOSMALL;
	memcpy(to, from, size);
	return 0;
}

/**
 * kofi_side_count() - have a counter count an operation
 * @side: its direction
 * @what: kofi_req.what
 * @len: bytes transferred
 * @failed: it did
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_side_count(const struct kofi_side *side, u64 what, size_t len,
				   bool failed)
{
	struct kofi_cntr *cntr = side->cntr[what & FI_READ ? KOFI_CNTR_READ :
					    what & FI_WRITE ? KOFI_CNTR_WRITE :
							      KOFI_CNTR_MSG];

	if (cntr && failed)
		kofi_cntr_failed(cntr);
	else if (cntr)
		kofi_cntr_done(cntr, len);
}

/**
 * kofi_side_tell_room() - tell a ULP that a refused post may succeed now
 * @side: the direction whose posts were refused
 *
 * By the completion queue, and of a direction without one by its counters.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_side_tell_room(const struct kofi_side *side)
{
	int i;

	if (side->cq)
		kofi_cq_tell_room(side->cq);
	for (i = 0; !side->cq && i < KOFI_CNTRS; i++)
		if (side->cntr[i])
			kofi_cntr_tell_room(side->cntr[i]);
}

/* eq.c */

struct kofi_eq_event;

/**
 * typedef kofi_eq_release_t - frees what an event owns that nobody will read
 * @entry: the queue's copy of the entry
 *
 * See kofi_eq_write_event().
 */
typedef void (*kofi_eq_release_t)(void *entry);

struct kofi_eq_event *kofi_eq_reserve(size_t len);
void kofi_eq_unreserve(struct kofi_eq_event *room);
int kofi_eq_write_event(struct fid_eq *eq, struct kofi_eq_event *room, u32 event,
			const void *buf, size_t len, kofi_eq_release_t release);
int kofi_eq_write_err(struct fid_eq *eq, const struct fi_eq_err_entry *entry);

#endif /* KOFI_QUEUES_H */
