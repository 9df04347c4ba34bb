// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event queues. They are the core's, whoever the provider is, because the one
 * event that must never be lost is the core's: each binding of a domain has room
 * of its own for the news that the device went away.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include "queue.h"

#define KOFI_EQ_SIZE		64
#define KOFI_EQ_MAX_SIZE	4096

/**
 * struct kofi_eq - an event queue
 * @eq_fid: the object
 * @attr: as opened
 * @lock: protects what follows, and every event that is in one of the lists
 * @events: to be read
 * @room: those of @all that are in no use
 * @lost: an event found no room
 * @notifier: sleepers and handler
 * @all: as many events as the queue's size says
 */
struct kofi_eq {
	struct fid_eq		eq_fid;
	struct fi_eq_attr	attr;
	spinlock_t		lock;	/* protects what follows */
	struct list_head	events;
	struct list_head	room;
	bool			lost;
	struct kofi_notifier	notifier;
	struct kofi_eq_event	all[];
};

static struct kofi_eq *to_kofi_eq(struct fid_eq *eq)
{
	return container_of(eq, struct kofi_eq, eq_fid);
}

static struct kofi_eq_event *kofi_eq_first(struct kofi_eq *eq,
					   struct list_head *list)
{
	lockdep_assert_held(&eq->lock);
	return list_first_entry_or_null(list, struct kofi_eq_event, list);
}

/* What was kept for one event isn't for others: see struct kofi_bind. */
static int kofi_eq_put(struct kofi_eq *eq, struct kofi_eq_event *kept,
		       const struct kofi_eq_event *from)
{
	struct kofi_eq_event *to;
	bool lost;

	spin_lock_bh(&eq->lock);
	to = kept ?: kofi_eq_first(eq, &eq->room);
	lost = !to && from->event == FI_DEVICE_ARRIVED;
	eq->lost |= lost;
	if (to) {
		list_del(&to->list);
		*to = *from;
		to->kept = kept;
		list_add_tail(&to->list, &eq->events);
	}
	spin_unlock_bh(&eq->lock);
	if (to || lost)
		kofi_notify(&eq->notifier, false);
	return to ? 0 : -EAGAIN;
}

static void kofi_eq_pop(struct kofi_eq *eq, struct kofi_eq_event *event)
{
	lockdep_assert_held(&eq->lock);
	if (event->kept)
		list_del_init(&event->list);
	else
		list_move(&event->list, &eq->room);
}

static int kofi_eq_put_entry(struct fid_eq *eq, u32 what, u32 id,
			     const void *buf, size_t len)
{
	struct kofi_eq_event event = { .event = what, .len = len, .id = id };

	if (len != sizeof(event.entry) || what == FI_DEVICE_REMOVED ||
	    what == FI_DEVICE_ARRIVED)
		return -EINVAL;
	memcpy(&event.entry, buf, sizeof(event.entry));
	return kofi_eq_put(to_kofi_eq(eq), NULL, &event);
}

/**
 * fi_eq_read() - read an event
 * @eq: the event queue
 * @event: takes what it is
 * @buf: takes the entry
 * @len: room at @buf
 * @flags: FI_PEEK to leave the event in the queue, or 0
 *
 * fi_eq(3).
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: bytes of the entry, -EAGAIN when there is none, -FI_EAVAIL when an
 * error is at the head, -FI_EOVERRUN once after events were lost,
 * -FI_ETOOSMALL, -FI_EBADFLAGS.
 */
ssize_t fi_eq_read(struct fid_eq *eq, u32 *event, void *buf, size_t len,
		   u64 flags)
{
	struct kofi_eq *keq = to_kofi_eq(eq);
	struct kofi_eq_event *first;
	ssize_t ret;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	spin_lock_bh(&keq->lock);
	first = kofi_eq_first(keq, &keq->events);
	if (keq->lost) {
		keq->lost = false;
		ret = -FI_EOVERRUN;
	} else if (!first) {
		keq->notifier.armed = true;
		ret = -EAGAIN;
	} else if (first->is_err) {
		ret = -FI_EAVAIL;
	} else if (len < first->len) {
		ret = -FI_ETOOSMALL;
	} else {
		ret = first->len;
		*event = first->event;
		memcpy(buf, &first->entry, first->len);
		if (!(flags & FI_PEEK))
			kofi_eq_pop(keq, first);
	}
	spin_unlock_bh(&keq->lock);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(fi_eq_read, KOFI);

/**
 * fi_eq_readerr() - read the error at the head
 * @eq: the event queue
 * @buf: takes it
 * @flags: FI_PEEK to leave the error in the queue, or 0
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: bytes of the entry, -EAGAIN when there is no error at the head,
 * -FI_EBADFLAGS.
 */
ssize_t fi_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf,
		      u64 flags)
{
	struct kofi_eq *keq = to_kofi_eq(eq);
	struct kofi_eq_event *first;
	ssize_t ret = -EAGAIN;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	spin_lock_bh(&keq->lock);
	first = kofi_eq_first(keq, &keq->events);
	if (first && first->is_err) {
		*buf = first->err;
		ret = sizeof(*buf);
		if (!(flags & FI_PEEK))
			kofi_eq_pop(keq, first);
	}
	spin_unlock_bh(&keq->lock);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(fi_eq_readerr, KOFI);

/**
 * fi_eq_write() - put an event of one's own into the queue
 * @eq: the event queue, opened with FI_WRITE
 * @event: what it is
 * @buf: struct fi_eq_entry
 * @len: its size
 * @flags: must be 0
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: bytes taken, -EAGAIN when the queue is full, -EINVAL, -FI_EBADFLAGS.
 */
ssize_t fi_eq_write(struct fid_eq *eq, u32 event, const void *buf, size_t len,
		    u64 flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	if (!(to_kofi_eq(eq)->attr.flags & FI_WRITE))
		return -EINVAL;
	/* What fid a ULP puts into its own event is its own affair. */
	return kofi_eq_put_entry(eq, event, 0, buf, len) ?: len;
}
EXPORT_SYMBOL_NS_GPL(fi_eq_write, KOFI);

static bool kofi_eq_ready(struct kofi_eq *eq)
{
	bool ready;

	spin_lock_bh(&eq->lock);
	ready = eq->lost || !list_empty(&eq->events);
	spin_unlock_bh(&eq->lock);
	return ready;
}

/**
 * fi_eq_sread() - wait for an event and read it
 * @eq: the event queue, opened with FI_WAIT_UNSPEC
 * @event: takes what it is
 * @buf: takes the entry
 * @len: room at @buf
 * @timeout: milliseconds; negative waits for ever
 * @flags: as for fi_eq_read()
 *
 * Context: Process context; sleeps. Not from a completion handler.
 * Return: as fi_eq_read(), where -EAGAIN says that time ran out; -EINTR,
 * -EDEADLK, -EOPNOTSUPP for a queue that nobody can wait for.
 */
ssize_t fi_eq_sread(struct fid_eq *eq, u32 *event, void *buf, size_t len,
		    int timeout, u64 flags)
{
	struct kofi_eq *keq = to_kofi_eq(eq);
	ssize_t ret;
	long left;

	ret = kofi_wait_begin(keq->attr.wait_obj, timeout, &left);
	if (ret)
		return ret;
	/* Another reader may have been faster. */
	do {
		left = wait_event_interruptible_timeout(keq->notifier.wait,
							kofi_eq_ready(keq),
							left);
		if (left < 0)
			return -EINTR;
		ret = fi_eq_read(eq, event, buf, len, flags);
	} while (ret == -EAGAIN && left);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(fi_eq_sread, KOFI);

/**
 * kofi_eq_write_event() - report an event
 * @eq: the event queue
 * @event: what it is; a provider's own begin at 0x20000
 * @buf: struct fi_eq_entry; its fid is an open object or NULL
 * @len: its size
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, -EAGAIN when the queue is full, -EINVAL.
 */
int kofi_eq_write_event(struct fid_eq *eq, u32 event, const void *buf,
			size_t len)
{
	const struct fi_eq_entry *entry = buf;

	if (len != sizeof(*entry))
		return -EINVAL;
	return kofi_eq_put_entry(eq, event, entry->fid ? entry->fid->id : 0, buf, len);
}
EXPORT_SYMBOL_NS_GPL(kofi_eq_write_event, KOFI_PROVIDER);

/**
 * kofi_eq_write_err() - report an error
 * @eq: the event queue
 * @entry: the error; its fid is an open object or NULL
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or -EAGAIN when the queue is full.
 */
int kofi_eq_write_err(struct fid_eq *eq, const struct fi_eq_err_entry *entry)
{
	const struct kofi_eq_event event = {
		.len	= sizeof(event.err),
		.is_err	= true,
		.id	= entry->fid ? entry->fid->id : 0,
		.err	= *entry,
	};

	return kofi_eq_put(to_kofi_eq(eq), NULL, &event);
}
EXPORT_SYMBOL_NS_GPL(kofi_eq_write_err, KOFI_PROVIDER);

/**
 * kofi_eq_device() - report that a device came or went
 * @fid: the event queue
 * @what: FI_DEVICE_ARRIVED or FI_DEVICE_REMOVED
 * @kept: an event that was kept for this, or NULL to use the queue's room
 * @about: the fabric or domain
 * @domain_name: the device
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kofi_eq_device(struct fid *fid, u32 what, struct kofi_eq_event *kept,
		    struct fid *about, const char *domain_name)
{
	struct kofi_eq *eq = container_of(fid, struct kofi_eq, eq_fid.fid);
	struct kofi_eq_event event = {
		.event	= what,
		.len	= sizeof(event.device),
		.id	= about->id,
		.device	= { .fid = about, .context = about->context },
	};

	strscpy(event.device.domain_name, domain_name,
		sizeof(event.device.domain_name));
	kofi_eq_put(eq, kept, &event);
}

/**
 * kofi_eq_forget() - drop what is queued about an object that was closed
 * @fid: the event queue
 * @id: the object's
 *
 * Nobody shall read of an object that isn't there any more, and nobody needs to
 * in order to make room.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kofi_eq_forget(struct fid *fid, u32 id)
{
	struct kofi_eq *eq = container_of(fid, struct kofi_eq, eq_fid.fid);
	struct kofi_eq_event *event, *next;

	spin_lock_bh(&eq->lock);
	list_for_each_entry_safe(event, next, &eq->events, list)
		if (event->id == id)
			kofi_eq_pop(eq, event);
	spin_unlock_bh(&eq->lock);
}

static void kofi_eq_call(struct kofi_notifier *notifier)
{
	struct kofi_eq *eq = container_of(notifier, struct kofi_eq, notifier);

	eq->attr.handler(&eq->eq_fid, eq->attr.handler_context);
}

static int kofi_eq_close(struct fid *fid)
{
	struct kofi_eq *eq = container_of(fid, struct kofi_eq, eq_fid.fid);

	kofi_notifier_fini(&eq->notifier);
	kvfree(eq);
	return 0;
}

static const struct fi_ops kofi_eq_fid_ops = {
	.close = kofi_eq_close,
};

/**
 * kofi_eq_open() - make an event queue, for the core to publish
 * @attr: from fi_eq_open(); takes the size if that was left open
 * @eq: takes the event queue
 *
 * Context: Process context; sleeps. Allocates in the caller's scope.
 * Return: 0, -EINVAL for a size above the limit, -ENOMEM.
 */
int kofi_eq_open(struct fi_eq_attr *attr, struct fid_eq **eq)
{
	size_t size = attr->size ?: KOFI_EQ_SIZE, i;
	struct kofi_eq *new;

	if (size > KOFI_EQ_MAX_SIZE)
		return -EINVAL;
	new = kvzalloc(struct_size(new, all, size), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	attr->size = size;
	new->eq_fid.fid.ops = &kofi_eq_fid_ops;
	new->attr = *attr;
	spin_lock_init(&new->lock);
	INIT_LIST_HEAD(&new->events);
	INIT_LIST_HEAD(&new->room);
	for (i = 0; i < size; i++)
		list_add(&new->all[i].list, &new->room);
	kofi_notifier_init(&new->notifier, &new->lock,
			   attr->handler ? kofi_eq_call : NULL);
	*eq = &new->eq_fid;
	return 0;
}
