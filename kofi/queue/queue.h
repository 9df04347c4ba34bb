/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues, counters, event queues, and the work items that run their handlers:
 * declarations for the core. Providers use <kofi/queue.h> and
 * <kofi/side.h>. Of the core's objects the queues
 * know only struct fid.
 */
#ifndef KOFI_QUEUE_H
#define KOFI_QUEUE_H

#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <kofi/provider.h>

/**
 * kofi_fid_dead() - check whether an object's device went away
 * @fid: the object
 *
 * Context: Any.
 * Return: true if the device went away.
 */
static inline bool kofi_fid_dead(const struct fid *fid)
{
	return READ_ONCE(fid->dead);
}

/**
 * kofi_err_data() - pass a provider's error data to the reader
 * @buf: the reader's buffer, if @room isn't 0
 * @room: size of @buf, or 0 if the reader uses the queue's buffer
 * @data: the queue's buffer with the data; set to @buf if the data was copied there
 * @size: size of the data; set to the number of bytes copied
 *
 * fi_cq(3), fi_eq(3).
 *
 * Context: Under the queue's lock, which keeps @data valid.
 */
static inline void kofi_err_data(void *buf, size_t room, void **data, size_t *size)
{
	if (!room)
		return;
	*size = min(*size, room);
	memcpy(buf, *data, *size);
	*data = buf;
}

/* work.c */

void kofi_notifier_setup(struct kofi_notifier *notifier, spinlock_t *lock,
			 void (*call)(struct kofi_notifier *notifier));
void kofi_notifier_work(struct work_struct *work);

/**
 * kofi_notifier_init() - prepare the notifying part of a queue
 * @notifier: the notifier
 * @lock: the queue's lock
 * @call: calls the queue's handler, or NULL without a handler
 *
 * A macro, so that lockdep can distinguish handlers of different kinds of queues.
 *
 * Context: Process context.
 */
#define kofi_notifier_init(notifier, lock, call)			\
do {									\
	struct kofi_notifier *__notifier = (notifier);			\
									\
	kofi_notifier_setup(__notifier, lock, call);			\
	INIT_WORK(&__notifier->work, kofi_notifier_work);		\
} while (0)

void kofi_notifier_fini(struct kofi_notifier *notifier);
void kofi_notify_room(struct kofi_notifier *notifier);
int kofi_wait_begin(enum fi_wait_obj wait_obj, int timeout, long *left);
int kofi_work_start(void);
void kofi_work_stop(void);

/**
 * kofi_cq_reader_init() - describe what a reader has room for
 * @cq: the completion queue
 * @buf: the reader's buffer
 * @count: number of completions that fit into it
 * @src_addr: the reader's buffer for senders, or NULL
 *
 * Context: Any.
 * Return: the reader.
 */
static __always_inline struct kofi_cq_reader
kofi_cq_reader_init(struct kofi_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	return (struct kofi_cq_reader) {
		.cq		= cq,
		.buf		= buf,
		.size		= cq->entry_size,
		.src_addr	= src_addr,
		.room		= count,
	};
}

/* source.c */

extern const u32 kofi_never_busy;

size_t kofi_cq_poll(struct kofi_cq *cq, void *buf, size_t count, fi_addr_t *src_addr);

/**
 * kofi_cq_shared_busy() - check whether the shared source has outstanding operations
 * @cq: the completion queue
 *
 * Context: Any.
 * Return: whether it has.
 */
static __always_inline bool kofi_cq_shared_busy(const struct kofi_cq *cq)
{
	/* Pairs with kofi_cq_share(). */
	return READ_ONCE(*smp_load_acquire(&cq->busy));
}

size_t kofi_cq_poll_shared(struct kofi_cq *cq, void *buf, size_t count, fi_addr_t *src_addr);
bool kofi_cq_poll_last(struct kofi_cq *cq, bool always);
/* Shortest time to poll: polling for less costs little more than reading the clock. */
#define KOFI_SPIN_LEAST_NS	2000

/**
 * kofi_spin_next() - adapt a reader's polling time to the time that it slept
 * @spin: previous polling time in nanoseconds
 * @max: longest polling time in nanoseconds
 * @slept: time in nanoseconds for which the reader slept
 *
 * Context: Any.
 * Return: twice @spin if polling up to @max would have avoided the sleep; otherwise half.
 */
static inline u32 kofi_spin_next(u32 spin, u32 max, u64 slept)
{
	if (slept < max)
		return min_t(u64, max_t(u64, 2ULL * spin, KOFI_SPIN_LEAST_NS), max);
	return spin > KOFI_SPIN_LEAST_NS ? spin / 2 : 0;
}

u32 kofi_cq_spin_max(void);
bool kofi_cq_spin(struct kofi_cq *cq, u32 max);

/* eq.c */

int kofi_eq_open(struct fi_eq_attr *attr, struct fid_eq **eq);
void kofi_eq_forget(struct fid *fid, u32 id, struct list_head *dropped);
void kofi_eq_drop(struct list_head *dropped);
void kofi_eq_device(struct fid *fid, u32 what, struct kofi_eq_event *room,
		    struct fid *about, const char *domain_name);

#endif /* KOFI_QUEUE_H */
