// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event queues, which belong to the core. An event is allocated when it is written. An
 * event that must not be lost is written into memory that was reserved when its object was
 * opened or bound.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include "queue.h"

#define KOFI_EQ_SIZE		64
#define KOFI_EQ_MAX_SIZE	4096

/* kofi_eq_event.event of an error, for fi_eq_readerr(). */
#define KOFI_EQ_ERROR		U32_MAX

/**
 * struct kofi_eq_event - an event in a queue, or memory reserved for one
 * @list: in kofi_eq.events
 * @event: enum fi_eq_event, an event of the provider, or KOFI_EQ_ERROR
 * @id: fid.id of the object that the event is about, or 0
 * @len: size of @entry in bytes
 * @reserved: the event was reserved and doesn't count against the queue's size
 * @release: frees the resources of @entry if it is dropped unread, or NULL
 * @entry: the entry for fi_eq_read(), which begins with a fid
 */
struct kofi_eq_event {
	struct list_head	list;
	u32			event;
	u32			id;
	size_t			len;
	bool			reserved;
	kofi_eq_release_t	release;
	u8			entry[] __aligned(sizeof(u64));
};

/**
 * struct kofi_eq - an event queue
 * @eq_fid: the object
 * @attr: attributes with which the queue was opened
 * @lock: protects @events, @used, @lost, @err_data and the state of @notifier
 * @events: unread events
 * @used: number of @events that count against the queue's size
 * @lost: an event was lost because the queue was full
 * @err_data: error data that fi_eq_readerr() returned, kept until the next read
 * @notifier: sleepers and handler
 */
struct kofi_eq {
	struct fid_eq		eq_fid;
	struct fi_eq_attr	attr;
	spinlock_t		lock;	/* protects events, used, lost, err_data, notifier */
	struct list_head	events;
	size_t			used;
	bool			lost;
	void			*err_data;
	struct kofi_notifier	notifier;
};

static struct kofi_eq *to_kofi_eq(struct fid_eq *eq)
{
	return container_of(eq, struct kofi_eq, eq_fid);
}

static struct kofi_eq_event *kofi_eq_alloc(size_t len, gfp_t gfp)
{
	struct kofi_eq_event *event;

	event = kzalloc(struct_size(event, entry, len), gfp);
	if (event)
		event->len = len;
	return event;
}

/* Queue an event. It is dropped when @about is closed, unless @about is NULL. */
static int kofi_eq_put(struct fid_eq *eq_fid, struct kofi_eq_event *room, u32 what,
		       const struct fid *about, const void *entry, size_t len,
		       kofi_eq_release_t release)
{
	struct kofi_eq_event *event = room ?: kofi_eq_alloc(len, GFP_ATOMIC);
	struct kofi_eq *eq = to_kofi_eq(eq_fid);
	bool full;

	if (!event)
		return -ENOMEM;
	event->event = what;
	event->id = about ? about->id : 0;
	event->len = len;
	event->release = release;
	memcpy(event->entry, entry, len);
	spin_lock_bh(&eq->lock);
	full = !event->reserved && eq->used >= eq->attr.size;
	if (!full) {
		eq->used += !event->reserved;
		list_add_tail(&event->list, &eq->events);
	}
	spin_unlock_bh(&eq->lock);
	if (full)
		kfree(event);
	else
		kofi_notify(&eq->notifier, false);
	return full ? -EAGAIN : 0;
}

/* Remove an event from the queue. */
static void kofi_eq_take(struct kofi_eq *eq, struct kofi_eq_event *event)
{
	lockdep_assert_held(&eq->lock);
	list_del(&event->list);
	eq->used -= !event->reserved;
}

static bool kofi_eq_is_cores(u32 what)
{
	return what == FI_DEVICE_REMOVED || what == FI_DEVICE_ARRIVED ||
	       what == KOFI_EQ_ERROR;
}

/* Error data of fi_eq_readerr() is valid until the next read, so free it here. */
static struct kofi_eq_event *kofi_eq_read_begin(struct kofi_eq *eq)
	__acquires(&eq->lock)
{
	spin_lock_bh(&eq->lock);
	kfree(eq->err_data);
	eq->err_data = NULL;
	return list_first_entry_or_null(&eq->events, struct kofi_eq_event, list);
}

/**
 * fi_eq_read() - read an event
 * @eq: the event queue
 * @event: takes the kind of the event
 * @buf: takes the entry
 * @len: size of @buf
 * @flags: FI_PEEK to leave the event in the queue, or 0
 *
 * Without FI_PEEK the caller takes over resources that the entry owns, such as the fi_info
 * of a connection request. fi_eq(3).
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: size of the entry, -EAGAIN when there is none, -FI_EAVAIL when an
 * error is at the head, -FI_EOVERRUN once after events were lost,
 * -FI_ETOOSMALL when the entry is longer than @len and stays, -FI_EBADFLAGS.
 */
ssize_t fi_eq_read(struct fid_eq *eq, u32 *event, void *buf, size_t len,
		   u64 flags)
{
	struct kofi_eq *keq = to_kofi_eq(eq);
	struct kofi_eq_event *first;
	ssize_t ret;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	first = kofi_eq_read_begin(keq);
	if (keq->lost) {
		keq->lost = false;
		ret = -FI_EOVERRUN;
	} else if (!first) {
		keq->notifier.armed = true;
		ret = -EAGAIN;
	} else if (first->event == KOFI_EQ_ERROR) {
		ret = -FI_EAVAIL;
	} else if (len < first->len) {
		ret = -FI_ETOOSMALL;
	} else {
		ret = first->len;
		*event = first->event;
		memcpy(buf, first->entry, first->len);
		if (!(flags & FI_PEEK)) {
			kofi_eq_take(keq, first);
			kfree(first);
		}
	}
	spin_unlock_bh(&keq->lock);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(fi_eq_read, KOFI);

/**
 * fi_eq_readerr() - read the error at the head
 * @eq: the event queue
 * @buf: takes the error; err_data_size, and err_data if that isn't 0, are inputs, see
 *	struct fi_eq_err_entry
 * @flags: FI_PEEK to leave the error in the queue, or 0
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: size of the entry, -EAGAIN when there is no error at the head,
 * -FI_EBADFLAGS.
 */
ssize_t fi_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf,
		      u64 flags)
{
	struct kofi_eq *keq = to_kofi_eq(eq);
	const struct fi_eq_err_entry into = *buf;
	struct kofi_eq_event *first;
	ssize_t ret = -EAGAIN;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	first = kofi_eq_read_begin(keq);
	if (first && first->event == KOFI_EQ_ERROR) {
		memcpy(buf, first->entry, sizeof(*buf));
		ret = sizeof(*buf);
		if (!(flags & FI_PEEK)) {
			keq->err_data = buf->err_data;
			kofi_eq_take(keq, first);
			kfree(first);
		}
		kofi_err_data(into.err_data, into.err_data_size, &buf->err_data,
			      &buf->err_data_size);
	}
	spin_unlock_bh(&keq->lock);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(fi_eq_readerr, KOFI);

/**
 * fi_eq_write() - write an event of the ULP
 * @eq: the event queue, opened with FI_WRITE
 * @event: kind of the event
 * @buf: struct fi_eq_entry
 * @len: size of @buf
 * @flags: must be 0
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: @len, -EAGAIN when the queue is full, -ENOMEM, -EINVAL, -FI_EBADFLAGS.
 */
ssize_t fi_eq_write(struct fid_eq *eq, u32 event, const void *buf, size_t len,
		    u64 flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	if (!(to_kofi_eq(eq)->attr.flags & FI_WRITE) || len != sizeof(struct fi_eq_entry) ||
	    kofi_eq_is_cores(event))
		return -EINVAL;
	/* A ULP's event may contain any fid, so don't dereference it. */
	return kofi_eq_put(eq, NULL, event, NULL, buf, len, NULL) ?: len;
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
 * @event: takes the kind of the event
 * @buf: takes the entry
 * @len: size of @buf
 * @timeout: milliseconds; negative waits for ever
 * @flags: as for fi_eq_read()
 *
 * Context: Process context; sleeps. Not from a completion handler.
 * Return: as fi_eq_read(), where -EAGAIN means that the timeout expired; -EINTR,
 * -EDEADLK, -EOPNOTSUPP for a queue without a wait object.
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
	/* Repeat if another reader took the event. */
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
 * kofi_eq_reserve() - reserve memory for an event that must not be lost
 * @len: largest size of the entry in bytes
 *
 * kofi_eq_write_event() uses the memory, for any event queue; kofi_eq_unreserve() frees it.
 *
 * Context: Process context; sleeps. Allocates in the caller's scope.
 * Return: the memory, or NULL.
 */
struct kofi_eq_event *kofi_eq_reserve(size_t len)
{
	struct kofi_eq_event *room = kofi_eq_alloc(len, GFP_KERNEL);

	if (room)
		room->reserved = true;
	return room;
}
EXPORT_SYMBOL_NS_GPL(kofi_eq_reserve, KOFI_PROVIDER);

/**
 * kofi_eq_write_event() - report an event
 * @eq: the event queue
 * @room: memory from kofi_eq_reserve(), for an event that must not be lost; belongs to the
 *	queue after success. Or NULL
 * @event: kind of the event; events of providers begin at 0x20000
 * @buf: the entry, which begins with the fid of an open object or NULL, like struct
 *	fi_eq_entry
 * @len: size of the entry, at most the size reserved
 * @release: frees the resources that the entry owns, or NULL
 *
 * The reader takes over the resources that the entry owns. If the object or the queue is
 * closed before the event is read, the core calls @release with the queue's copy of the
 * entry, in process context, with no lock held. On failure the caller keeps the resources.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, -EINVAL; without @room also -EAGAIN when the queue is full, or -ENOMEM.
 */
int kofi_eq_write_event(struct fid_eq *eq, struct kofi_eq_event *room, u32 event,
			const void *buf, size_t len, kofi_eq_release_t release)
{
	if (len < sizeof(struct fid *) || kofi_eq_is_cores(event) || (room && len > room->len))
		return -EINVAL;
	return kofi_eq_put(eq, room, event, *(struct fid * const *)buf, buf, len, release);
}
EXPORT_SYMBOL_NS_GPL(kofi_eq_write_event, KOFI_PROVIDER);

static void kofi_eq_release_err(void *entry)
{
	kfree(((struct fi_eq_err_entry *)entry)->err_data);
}

/**
 * kofi_eq_write_err() - report an error
 * @eq: the event queue
 * @room: memory from kofi_eq_reserve(), for at least struct fi_eq_err_entry, for an error that must
 *	not be lost; belongs to the queue after success. Or NULL
 * @entry: the error, with the fid of an open object or NULL. Its err_data is NULL or from
 *	kmalloc(), and belongs to the queue after success
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, -EINVAL when @room is too small; without @room also -EAGAIN when the queue is full, or
 * -ENOMEM.
 */
int kofi_eq_write_err(struct fid_eq *eq, struct kofi_eq_event *room,
		      const struct fi_eq_err_entry *entry)
{
	if (room && room->len < sizeof(*entry))
		return -EINVAL;
	return kofi_eq_put(eq, room, KOFI_EQ_ERROR, entry->fid, entry, sizeof(*entry),
			   kofi_eq_release_err);
}
EXPORT_SYMBOL_NS_GPL(kofi_eq_write_err, KOFI_PROVIDER);

/**
 * kofi_eq_device() - report that a device arrived or was removed
 * @fid: the event queue
 * @what: FI_DEVICE_ARRIVED or FI_DEVICE_REMOVED
 * @room: memory reserved for the event; with NULL the event is lost if the queue is full
 * @about: the fabric or domain
 * @domain_name: name of the device
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kofi_eq_device(struct fid *fid, u32 what, struct kofi_eq_event *room,
		    struct fid *about, const char *domain_name)
{
	struct kofi_eq *eq = container_of(fid, struct kofi_eq, eq_fid.fid);
	struct fi_eq_device_entry entry = { .fid = about, .context = about->context };

	strscpy(entry.domain_name, domain_name, sizeof(entry.domain_name));
	if (!kofi_eq_put(&eq->eq_fid, room, what, about, &entry, sizeof(entry), NULL))
		return;
	spin_lock_bh(&eq->lock);
	eq->lost = true;
	spin_unlock_bh(&eq->lock);
	kofi_notify(&eq->notifier, false);
}

/**
 * kofi_eq_forget() - remove the events about a closed object from a queue
 * @fid: the event queue
 * @id: fid.id of the object
 * @dropped: takes the events, for kofi_eq_drop()
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kofi_eq_forget(struct fid *fid, u32 id, struct list_head *dropped)
{
	struct kofi_eq *eq = container_of(fid, struct kofi_eq, eq_fid.fid);
	struct kofi_eq_event *event, *next;

	spin_lock_bh(&eq->lock);
	list_for_each_entry_safe(event, next, &eq->events, list) {
		if (event->id != id)
			continue;
		kofi_eq_take(eq, event);
		list_add_tail(&event->list, dropped);
	}
	spin_unlock_bh(&eq->lock);
}

/**
 * kofi_eq_drop() - free unread events and the resources that they own
 * @dropped: the events, from kofi_eq_forget()
 *
 * Context: Process context, with no lock held: calls providers; sleeps.
 */
void kofi_eq_drop(struct list_head *dropped)
{
	struct kofi_eq_event *event, *next;

	list_for_each_entry_safe(event, next, dropped, list) {
		if (event->release)
			event->release(event->entry);
		kfree(event);
	}
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
	kofi_eq_drop(&eq->events);
	kfree(eq->err_data);
	kfree(eq);
	return 0;
}

static const struct fi_ops kofi_eq_fid_ops = {
	.close = kofi_eq_close,
};

/**
 * kofi_eq_open() - allocate an event queue, for the core to publish
 * @attr: from fi_eq_open(); a size of 0 is replaced by the actual one
 * @eq: takes the event queue
 *
 * Context: Process context; sleeps. Allocates in the caller's scope.
 * Return: 0, -EINVAL for a size above the limit, -ENOMEM.
 */
int kofi_eq_open(struct fi_eq_attr *attr, struct fid_eq **eq)
{
	struct kofi_eq *new;

	if (attr->size > KOFI_EQ_MAX_SIZE)
		return -EINVAL;
	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	attr->size = attr->size ?: KOFI_EQ_SIZE;
	new->eq_fid.fid.ops = &kofi_eq_fid_ops;
	new->attr = *attr;
	spin_lock_init(&new->lock);
	INIT_LIST_HEAD(&new->events);
	kofi_notifier_init(&new->notifier, &new->lock,
			   attr->handler ? kofi_eq_call : NULL);
	*eq = &new->eq_fid;
	return 0;
}
