// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: a ring that can't overrun, because a slot for each completion is
 * reserved in advance, usually when its operation is posted. Errors keep their place among
 * the completions: fi_cq_read() returns -FI_EAVAIL while an error is at the head.
 */
#include <linux/log2.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "queue.h"

/*
 * Each format has the layout of the first part of the longest one, and that of an error entry, so
 * kofi_cq_give() can read a slot and write any format as a struct fi_cq_tagged_entry. All members
 * have the same size, so the last ones show it.
 */
#define KOFI_SAME_PLACE(type, field)				\
	static_assert(offsetof(struct type, field) ==		\
		      offsetof(struct fi_cq_err_entry, field))
KOFI_SAME_PLACE(fi_cq_msg_entry, len);
KOFI_SAME_PLACE(fi_cq_data_entry, data);
KOFI_SAME_PLACE(fi_cq_tagged_entry, tag);

static const size_t kofi_cq_entry_size[] = {
	[FI_CQ_FORMAT_CONTEXT]	= sizeof(struct fi_cq_entry),
	[FI_CQ_FORMAT_MSG]	= sizeof(struct fi_cq_msg_entry),
	[FI_CQ_FORMAT_DATA]	= sizeof(struct fi_cq_data_entry),
	[FI_CQ_FORMAT_TAGGED]	= sizeof(struct fi_cq_tagged_entry),
};

static struct kofi_cq *to_kofi_cq(struct fid_cq *cq)
{
	return container_of(cq, struct kofi_cq, cq_fid);
}

static struct kofi_cq_slot *kofi_cq_head(struct kofi_cq *cq)
{
	lockdep_assert_held(&cq->lock);
	return cq->head == cq->tail ? NULL : &cq->ring[cq->head & cq->mask];
}

/* Lock the queue. Error data of fi_cq_readerr() is valid until the next read, so free it here. */
static void kofi_cq_read_begin(struct kofi_cq *cq)
	__acquires(&cq->lock)
{
	spin_lock_bh(&cq->lock);
	if (unlikely(cq->err_data)) {
		kfree(cq->err_data);
		cq->err_data = NULL;
	}
}

/**
 * kofi_cq_unreserve_unsolicited() - give back entries of the reserve
 * @cq: the completion queue
 * @n: number of entries
 *
 * Calls kofi_cq_waiter.replenished of all waiters.
 *
 * Context: Process or softirq context, but not between kofi_cq_begin() and
 * kofi_cq_end(); doesn't sleep.
 */
noinline void kofi_cq_unreserve_unsolicited(struct kofi_cq *cq, unsigned int n)
{
	struct kofi_cq_waiter *waiter, *next;

	atomic_add(n, &cq->reserve);
	/* Pairs with kofi_cq_starve(), which adds a waiter and then looks at reserve. */
	smp_mb__after_atomic();
	if (likely(list_empty(&cq->waiters)))
		return;
	spin_lock_bh(&cq->lock);
	list_for_each_entry_safe(waiter, next, &cq->waiters, list) {
		list_del_init(&waiter->list);
		waiter->replenished(waiter);
	}
	spin_unlock_bh(&cq->lock);
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_unreserve_unsolicited, KOFI_PROVIDER);

/* Give back the entries of completions that a reader has taken. */
static __always_inline void kofi_cq_release(struct kofi_cq *cq, unsigned int posted,
					    unsigned int unsolicited)
{
	kofi_cq_unreserve_some(cq, posted);
	if (unlikely(unsolicited))
		kofi_cq_unreserve_unsolicited(cq, unsolicited);
}

/*
 * Give the reader completions from the ring until one is an error. @reader is a copy, because the
 * compiler must assume that writes to the buffer change what it doesn't keep in registers.
 * Return: the number of completions.
 */
static __always_inline size_t kofi_cq_copy(const struct kofi_cq *cq, struct kofi_cq_reader reader,
					   unsigned int *unsolicited)
{
	const struct kofi_cq_slot *slot, *ring = cq->ring;
	const u32 head = cq->head, mask = cq->mask;
	const size_t count = min_t(size_t, reader.room, cq->tail - head);
	size_t n;

	for (n = 0; n < count; n++) {
		slot = &ring[(head + n) & mask];
		if (unlikely(slot->entry.err))
			break;
		kofi_cq_give(&reader, (const void *)&slot->entry, slot->entry.src_addr);
		*unsolicited += slot->unsolicited;
	}
	return n;
}

/* As kofi_cq_copy(), which is inlined for the longer formats, so that the size is a constant. */
static __always_inline size_t kofi_cq_take(const struct kofi_cq *cq, struct kofi_cq_reader reader,
					   unsigned int *unsolicited)
{
	if (reader.size == sizeof(struct fi_cq_tagged_entry))
		return kofi_cq_copy(cq, reader, unsolicited);
	if (reader.size == sizeof(struct fi_cq_data_entry))
		return kofi_cq_copy(cq, reader, unsolicited);
	return kofi_cq_copy(cq, reader, unsolicited);
}

static ssize_t kofi_cq_readfrom(struct fid_cq *cq_fid, void *buf, size_t count,
				fi_addr_t *src_addr)
{
	struct kofi_cq *cq = to_kofi_cq(cq_fid);
	unsigned int unsolicited = 0;
	ssize_t n, ret;

	/* An empty queue: poll the devices, except in a handler, whose worker has polled them. */
	if (READ_ONCE(cq->head) == READ_ONCE(cq->tail)) {
		if (in_task() && READ_ONCE(cq->notifier.runner) != current) {
			n = kofi_cq_poll(cq, buf, count, src_addr);
			if (n)
				return n;
		} else if (in_serving_softirq() && READ_ONCE(cq->notifier.runner) != current &&
			   kofi_cq_shared_busy(cq)) {
			n = kofi_cq_poll_shared(cq, buf, count, src_addr);
			if (n)
				return n;
		}
		/* If the queue has a handler, continue below and arm it under the lock. */
		if (!cq->attr.handler && READ_ONCE(cq->head) == READ_ONCE(cq->tail))
			return -EAGAIN;
	}
	kofi_cq_read_begin(cq);
	n = kofi_cq_take(cq, kofi_cq_reader_init(cq, buf, count, src_addr), &unsolicited);
	cq->head += n;
	ret = n;
	if (!n && !kofi_cq_head(cq)) {
		cq->notifier.armed = true;
		ret = -EAGAIN;
	} else if (!n && kofi_cq_head(cq)->entry.err) {
		ret = -FI_EAVAIL;
	}
	spin_unlock_bh(&cq->lock);

	kofi_cq_release(cq, n - unsolicited, unsolicited);
	return ret;
}

static ssize_t kofi_cq_readerr(struct fid_cq *cq_fid,
			       struct fi_cq_err_entry *buf, u64 flags)
{
	const struct fi_cq_err_entry into = *buf;
	struct kofi_cq *cq = to_kofi_cq(cq_fid);
	struct kofi_cq_slot *slot;
	bool unsolicited;

	if (flags)
		return -FI_EBADFLAGS;
	kofi_cq_read_begin(cq);
	slot = kofi_cq_head(cq);
	if (!slot || !slot->entry.err) {
		spin_unlock_bh(&cq->lock);
		return -EAGAIN;
	}
	*buf = slot->entry;
	cq->err_data = buf->err_data;
	kofi_err_data(into.err_data, into.err_data_size, &buf->err_data, &buf->err_data_size);
	unsolicited = slot->unsolicited;
	cq->head++;
	spin_unlock_bh(&cq->lock);

	kofi_cq_release(cq, !unsolicited, unsolicited);
	return 1;
}

/* Return: whether a sleep ends. A signal, and a notification of room, ends only one sleep. */
static bool kofi_cq_ready(struct kofi_cq *cq, u32 want, bool *signaled, bool *room)
{
	struct kofi_cq_slot *slot;
	bool ready;

	*room = false;
	*signaled = false;
	/* Without the lock: a writer of these fields wakes the sleepers after the change. */
	if (READ_ONCE(cq->head) == READ_ONCE(cq->tail) && !READ_ONCE(cq->room) &&
	    !READ_ONCE(cq->signals) && !kofi_fid_dead(&cq->cq_fid.fid))
		return false;
	spin_lock_bh(&cq->lock);
	slot = kofi_cq_head(cq);
	*room = cq->room;
	cq->room = false;
	*signaled = !*room && cq->signals;
	cq->signals -= *signaled;
	ready = *room || *signaled || cq->tail - cq->head >= want ||
		(slot && slot->entry.err) || kofi_fid_dead(&cq->cq_fid.fid);
	spin_unlock_bh(&cq->lock);
	return ready;
}

static bool kofi_cq_poked(struct kofi_cq *cq)
{
	return READ_ONCE(cq->poked) && xchg(&cq->poked, false);
}

/*
 * The sources have completions, but not for this reader: polling may go on for any time. Return:
 * as wait_event_interruptible_timeout(), for a sleep that is to end at @end.
 */
static long kofi_cq_left(long left, unsigned long end)
{
	cond_resched();
	if (signal_pending(current))
		return -ERESTARTSYS;
	return left == MAX_SCHEDULE_TIMEOUT ? left : max((long)(end - jiffies), 0L);
}

/*
 * Poll for a while if polling has found completions before; then sleep until kofi_cq_ready(), a
 * signal or the timeout. A reader sleeps only if no source has a completion; the sources then
 * report the next one. Return: as wait_event_interruptible_timeout().
 */
static long kofi_cq_doze(struct kofi_cq *cq, u32 want, bool *signaled, bool *room,
			 long left)
{
	bool ready = kofi_cq_ready(cq, want, signaled, room), found, relied_on = false;
	u32 spin = left ? kofi_cq_spin_max() : 0;
	const unsigned long end = jiffies + left;
	u64 start = 0;

	if (!ready && kofi_cq_spin(cq, spin))
		ready = kofi_cq_ready(cq, want, signaled, room);
	if (ready)
		return left;
	if (spin)
		start = ktime_get_ns();
	atomic_inc(&cq->sleepers);
	do {
		found = kofi_cq_poll_last(cq, relied_on);
		ready = kofi_cq_ready(cq, want, signaled, room);
		if (ready)
			break;
		/* Sources with completions didn't enable events. */
		relied_on = found;
		if (found) {
			left = kofi_cq_left(left, end);
			continue;
		}
		left = wait_event_interruptible_timeout(cq->notifier.wait,
							(ready = kofi_cq_ready(cq, want,
									       signaled,
									       room)) ||
							(relied_on = kofi_cq_poked(cq)),
							left);
	} while (!ready && left > 0);
	if (spin)
		WRITE_ONCE(cq->spin_ns, kofi_spin_next(cq->spin_ns, spin,
						       ktime_get_ns() - start));
	atomic_dec(&cq->sleepers);
	/* Pairs with kofi_cq_poke(), which may have left completions to this reader. */
	smp_mb__after_atomic();
	if (kofi_cq_poked(cq) && kofi_cq_poll_last(cq, true)) {
		/* The source left its completions to this reader: notify other readers. */
		kofi_cq_notify(cq);
		found = true;
	}
	/* A source that found completions didn't enable events: have another reader poll it. */
	if (found)
		kofi_cq_poke(cq);
	return left;
}

static ssize_t kofi_cq_sreadfrom(struct fid_cq *cq_fid, void *buf,
				 size_t count, fi_addr_t *src_addr,
				 const void *cond, int timeout)
{
	struct kofi_cq *cq = to_kofi_cq(cq_fid);
	bool signaled = false, room = false, dead;
	u32 want = 1;
	ssize_t ret;
	long left;

	ret = kofi_wait_begin(cq->attr.wait_obj, timeout, &left);
	if (ret)
		return ret;
	if (cq->attr.wait_cond == FI_CQ_COND_THRESHOLD)
		want = clamp_t(size_t, (size_t)cond, 1, cq->attr.size);

	/* Repeat if another reader took the completions. */
	do {
		left = kofi_cq_doze(cq, want, &signaled, &room, left);
		if (left < 0)
			return -EINTR;
		/* -EAGAIN reports the room, even if there are completions. */
		if (room)
			return -EAGAIN;
		dead = kofi_fid_dead(&cq_fid->fid);
		ret = kofi_cq_readfrom(cq_fid, buf, count, src_addr);
	} while (ret == -EAGAIN && left && !signaled && !dead);
	return ret == -EAGAIN && dead ? -ENODEV : ret;
}

static int kofi_cq_signal(struct fid_cq *cq_fid)
{
	struct kofi_cq *cq = to_kofi_cq(cq_fid);

	if (cq->attr.wait_obj == FI_WAIT_NONE)
		return -EOPNOTSUPP;
	spin_lock_bh(&cq->lock);
	cq->signals++;
	spin_unlock_bh(&cq->lock);
	wake_up_all(&cq->notifier.wait);
	return 0;
}

static const struct fi_ops_cq kofi_cq_ops = {
	.readfrom	= kofi_cq_readfrom,
	.readerr	= kofi_cq_readerr,
	.sreadfrom	= kofi_cq_sreadfrom,
	.signal		= kofi_cq_signal,
};

/* --- FI_CQ_SOFTIRQ --- */

/* Return: whether a handler that the core bounds is the caller. */
static bool kofi_cq_in_soft_call(const struct kofi_cq *cq)
{
	return READ_ONCE(cq->notifier.runner) == current;
}

/* The handler has read as much as one call may, and returns. Call it again for what it leaves. */
static noinline ssize_t kofi_cq_read_no_more(struct kofi_cq *cq)
{
	kofi_cq_read_begin(cq);
	if (kofi_cq_head(cq))
		cq->notifier.again = true;
	else
		cq->notifier.armed = true;
	spin_unlock_bh(&cq->lock);
	return -EAGAIN;
}

static ssize_t kofi_cq_soft_readfrom(struct fid_cq *cq_fid, void *buf, size_t count,
				     fi_addr_t *src_addr)
{
	struct kofi_cq *cq = to_kofi_cq(cq_fid);
	ssize_t n;

	if (!kofi_cq_in_soft_call(cq))
		return kofi_cq_readfrom(cq_fid, buf, count, src_addr);
	if (unlikely(!cq->notifier.left))
		return kofi_cq_read_no_more(cq);
	n = kofi_cq_readfrom(cq_fid, buf, min_t(size_t, count, cq->notifier.left), src_addr);
	if (n > 0)
		cq->notifier.left -= n;
	return n;
}

static ssize_t kofi_cq_soft_readerr(struct fid_cq *cq_fid, struct fi_cq_err_entry *buf, u64 flags)
{
	struct kofi_cq *cq = to_kofi_cq(cq_fid);
	ssize_t n = kofi_cq_readerr(cq_fid, buf, flags);

	if (n == 1 && kofi_cq_in_soft_call(cq) && cq->notifier.left)
		cq->notifier.left--;
	return n;
}

/* Other queues' readers don't pay for the bound. */
static const struct fi_ops_cq kofi_cq_soft_ops = {
	.readfrom	= kofi_cq_soft_readfrom,
	.readerr	= kofi_cq_soft_readerr,
	.sreadfrom	= kofi_cq_sreadfrom,
	.signal		= kofi_cq_signal,
};

/**
 * kofi_cq_add_err() - common part of kofi_cq_write_err() and kofi_cq_write_err_unsolicited()
 * @cq: the completion queue
 * @entry: the error
 * @unsolicited: the error uses an entry of the reserve
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kofi_cq_add_err(struct kofi_cq *cq, const struct fi_cq_err_entry *entry,
		     bool unsolicited)
{
	struct kofi_cq_slot *slot;

	kofi_cq_begin(cq);
	slot = kofi_cq_next(cq);
	if (slot) {
		slot->entry = *entry;
		slot->entry.err = entry->err ?: FI_EOTHER;
		slot->unsolicited = unsolicited;
	} else {
		kfree(entry->err_data);
	}
	kofi_cq_end(cq);
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_add_err, KOFI_PROVIDER);

/**
 * kofi_cq_check_recvs() - warn if receives can keep an endpoint from sending
 * @tx: completion queue of the endpoint's sends, or NULL
 * @rx: completion queue of the endpoint's receives, or NULL
 * @recvs: maximum number of posted receives
 *
 * A posted receive keeps its entry of the queue reserved until a message arrives, so receives
 * can take all entries of a queue that sends use as well.
 *
 * Context: Process context, when the endpoint is enabled.
 */
void kofi_cq_check_recvs(const struct kofi_cq *tx, const struct kofi_cq *rx,
			 size_t recvs)
{
	if (rx && rx == tx && recvs >= rx->attr.size)
		pr_warn_ratelimited("kofi: %zu posted receives can reserve all %zu entries of a completion queue that sends use as well: open a larger queue\n",
				    recvs, rx->attr.size);
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_check_recvs, KOFI_PROVIDER);

/**
 * kofi_cq_want() - slow part of kofi_cq_reserve()
 * @cq: the completion queue
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or -EAGAIN; then kofi_cq_tell_room() will be called.
 */
int kofi_cq_want(struct kofi_cq *cq)
{
	atomic_set(&cq->wanted, 1);
	/* Pairs with kofi_cq_unreserve_some(). */
	smp_mb();
	return atomic_dec_if_positive(&cq->credits) < 0 ? -EAGAIN : 0;
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_want, KOFI_PROVIDER);

/**
 * kofi_cq_tell_room() - tell a reader that a refused post may succeed now
 * @cq: the completion queue of the operation
 *
 * The core calls this when entries are free again, after a post was refused for lack of one. A
 * provider that refused a post for another reason calls it when the post may succeed. The queue's
 * handler is called, or one fi_cq_sread() returns -EAGAIN.
 *
 * Context: Process or softirq context; doesn't sleep. Not between kofi_cq_begin()
 * and kofi_cq_end().
 */
void kofi_cq_tell_room(struct kofi_cq *cq)
{
	if (!cq->notifier.call) {
		spin_lock_bh(&cq->lock);
		cq->room = true;
		spin_unlock_bh(&cq->lock);
	}
	kofi_notify_room(&cq->notifier);
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_tell_room, KOFI_PROVIDER);

static void kofi_cq_call(struct kofi_notifier *notifier)
{
	struct kofi_cq *cq = container_of(notifier, struct kofi_cq, notifier);

	cq->attr.handler(&cq->cq_fid, cq->attr.handler_context);
}

/**
 * kofi_cq_init() - prepare a completion queue that a provider embeds
 * @cq: the completion queue, zeroed; the provider sets cq_fid.fid.ops
 * @attr: from fi_cq_open(); unspecified attributes are replaced by the actual ones
 * @config: the provider's limits
 *
 * Context: Process context; sleeps. Allocates in the caller's scope.
 * Return: 0, -EINVAL for a size above the limit, -ENOMEM.
 */
int kofi_cq_init(struct kofi_cq *cq, struct fi_cq_attr *attr,
		 const struct kofi_cq_config *config)
{
	size_t size = attr->size ?: config->default_size;
	u32 ring;

	if (size > config->max_size)
		return -EINVAL;
	ring = roundup_pow_of_two(size + config->reserve);
	cq->ring = kvcalloc(ring, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	attr->size = size;
	if (attr->format == FI_CQ_FORMAT_UNSPEC)
		attr->format = FI_CQ_FORMAT_CONTEXT;
	cq->attr = *attr;
	cq->entry_size = kofi_cq_entry_size[attr->format];
	cq->mask = ring - 1;
	cq->cq_fid.ops = attr->flags & FI_CQ_SOFTIRQ ? &kofi_cq_soft_ops : &kofi_cq_ops;
	spin_lock_init(&cq->lock);
	atomic_set(&cq->credits, size);
	atomic_set(&cq->reserve, config->reserve);
	INIT_LIST_HEAD(&cq->waiters);
	spin_lock_init(&cq->sources_lock);
	INIT_LIST_HEAD(&cq->sources);
	cq->busy = &kofi_never_busy;
	kofi_notifier_init(&cq->notifier, &cq->lock,
			   attr->handler ? kofi_cq_call : NULL);
	cq->notifier.softirq = attr->flags & FI_CQ_SOFTIRQ;
	cq->cq_fid.fid.wait = &cq->notifier.wait;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_init, KOFI_PROVIDER);

/**
 * kofi_cq_fini() - undo kofi_cq_init()
 * @cq: the completion queue, which gets no more completions or notifications
 *
 * Context: Process context; sleeps until the handler has returned.
 */
void kofi_cq_fini(struct kofi_cq *cq)
{
	/* Endpoints pin their queues, and remove their sources before they are closed. */
	WARN_ON_ONCE(!list_empty(&cq->sources) || cq->nshared);
	kofi_notifier_fini(&cq->notifier);
	for (; cq->head != cq->tail; cq->head++)
		if (cq->ring[cq->head & cq->mask].entry.err)
			kfree(cq->ring[cq->head & cq->mask].entry.err_data);
	kfree(cq->err_data);
	kvfree(cq->ring);
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_fini, KOFI_PROVIDER);

static int kofi_cq_close(struct fid *fid)
{
	struct kofi_cq *cq = container_of(fid, struct kofi_cq, cq_fid.fid);

	kofi_cq_fini(cq);
	kfree(cq);
	return 0;
}

static const struct fi_ops kofi_cq_fid_ops = {
	.close = kofi_cq_close,
};

/**
 * kofi_cq_alloc() - open a completion queue that is only a struct kofi_cq
 * @attr: from fi_cq_open()
 * @config: the provider's limits
 * @cq: takes the completion queue
 *
 * Context: Process context; sleeps. Allocates in the caller's scope.
 * Return: 0, -EINVAL, -ENOMEM.
 */
int kofi_cq_alloc(struct fi_cq_attr *attr, const struct kofi_cq_config *config,
		  struct fid_cq **cq)
{
	struct kofi_cq *new;
	int ret;

	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	new->cq_fid.fid.ops = &kofi_cq_fid_ops;
	ret = kofi_cq_init(new, attr, config);
	if (ret) {
		kfree(new);
		return ret;
	}
	*cq = &new->cq_fid;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_alloc, KOFI_PROVIDER);

/**
 * kofi_cq_open() - kofi_cq_alloc() without a reserve and with the default limits
 * @domain: the domain
 * @attr: from fi_cq_open()
 * @cq: takes the completion queue
 * @context: the caller's context
 *
 * Serves as a provider's fi_ops_domain.cq_open.
 *
 * Context: Process context; sleeps. Allocates in the caller's scope.
 * Return: 0, -EINVAL, -ENOMEM.
 */
int kofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		 struct fid_cq **cq, void *context)
{
	static const struct kofi_cq_config config = {
		.default_size	= KOFI_CQ_SIZE,
		.max_size	= KOFI_CQ_MAX_SIZE,
	};

	return kofi_cq_alloc(attr, &config, cq);
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_open, KOFI_PROVIDER);
