// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event queues. They are the core's, whoever the provider is, because the one
 * event that must never be lost is the core's: each domain that is bound holds
 * a slot for the news that its device went away.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "kofi.h"

#define KOFI_EQ_SIZE		64
#define KOFI_EQ_MAX_SIZE	4096
/* Domains that can be bound to a queue, with removals that nobody has read. */
#define KOFI_EQ_MAX_HELD	64

/**
 * struct kofi_eq_slot - an event in the ring
 * @event: what it is
 * @len: bytes of the entry
 * @is_err: it is for fi_eq_readerr()
 * @held: the slot was held for it
 * @id: of the object's node, or 0
 * @entry: an event
 * @device: an event of a device
 * @err: an error
 */
struct kofi_eq_slot {
	u32				event;
	u8				len;
	bool				is_err;
	bool				held;
	u32				id;
	union {
		struct fi_eq_entry		entry;
		struct fi_eq_device_entry	device;
		struct fi_eq_err_entry		err;
	};
};

/**
 * struct kofi_eq - an event queue
 * @eq_fid: the object
 * @attr: as opened
 * @lock: protects what follows
 * @ring: events to be read
 * @mask: its size, a power of two, less 1
 * @head: next slot to be read
 * @tail: next slot to be written
 * @used: slots in use, but for held ones
 * @held: slots that are held or were
 * @lost: an event found no room
 * @notifier: sleepers and handler
 */
struct kofi_eq {
	struct fid_eq		eq_fid;
	struct fi_eq_attr	attr;
	spinlock_t		lock;	/* protects what follows */
	struct kofi_eq_slot	*ring;
	u32			mask;
	u32			head;
	u32			tail;
	u32			used;
	u32			held;
	bool			lost;
	struct kofi_notifier	notifier;
};

static struct kofi_eq *to_kofi_eq(struct fid_eq *eq)
{
	return container_of(eq, struct kofi_eq, eq_fid);
}

static int kofi_eq_put(struct kofi_eq *eq, const struct kofi_eq_slot *slot)
{
	int ret = 0;

	spin_lock_bh(&eq->lock);
	if (!slot->held && eq->used == eq->attr.size)
		ret = -EAGAIN;
	else
		eq->ring[eq->tail++ & eq->mask] = *slot;
	if (!ret && !slot->held)
		eq->used++;
	spin_unlock_bh(&eq->lock);
	if (!ret)
		kofi_notify(&eq->notifier, false);
	return ret;
}

static struct kofi_eq_slot *kofi_eq_at(struct kofi_eq *eq, u32 index)
{
	lockdep_assert_held(&eq->lock);
	return &eq->ring[index & eq->mask];
}

static struct kofi_eq_slot *kofi_eq_head(struct kofi_eq *eq)
{
	return eq->head == eq->tail ? NULL : kofi_eq_at(eq, eq->head);
}

static void kofi_eq_release(struct kofi_eq *eq, const struct kofi_eq_slot *slot)
{
	lockdep_assert_held(&eq->lock);
	if (slot->held)
		eq->held--;
	else
		eq->used--;
}

static void kofi_eq_pop(struct kofi_eq *eq)
{
	kofi_eq_release(eq, kofi_eq_at(eq, eq->head++));
}

/* An event will name an object, whose close has to know. */
static u32 kofi_eq_name(const struct fid *fid)
{
	if (!fid || IS_ERR_OR_NULL(fid->node))
		return 0;
	WRITE_ONCE(fid->node->told, true);
	return fid->node->id;
}

static int kofi_eq_put_entry(struct fid_eq *eq, u32 event, u32 id,
			     const void *buf, size_t len)
{
	struct kofi_eq_slot slot = { .event = event, .len = len, .id = id };

	if (len != sizeof(slot.entry) || event == FI_DEVICE_REMOVED ||
	    event == FI_DEVICE_ARRIVED)
		return -EINVAL;
	memcpy(&slot.entry, buf, sizeof(slot.entry));
	return kofi_eq_put(to_kofi_eq(eq), &slot);
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
	struct kofi_eq_slot *slot;
	ssize_t ret;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	spin_lock_bh(&keq->lock);
	slot = kofi_eq_head(keq);
	if (keq->lost) {
		keq->lost = false;
		ret = -FI_EOVERRUN;
	} else if (!slot) {
		keq->notifier.armed = true;
		ret = -EAGAIN;
	} else if (slot->is_err) {
		ret = -FI_EAVAIL;
	} else if (len < slot->len) {
		ret = -FI_ETOOSMALL;
	} else {
		ret = slot->len;
		*event = slot->event;
		memcpy(buf, &slot->entry, slot->len);
		if (!(flags & FI_PEEK))
			kofi_eq_pop(keq);
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
	struct kofi_eq_slot *slot;
	ssize_t ret = -EAGAIN;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	spin_lock_bh(&keq->lock);
	slot = kofi_eq_head(keq);
	if (slot && slot->is_err) {
		*buf = slot->err;
		ret = sizeof(*buf);
		if (!(flags & FI_PEEK))
			kofi_eq_pop(keq);
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
	ready = eq->lost || kofi_eq_head(eq);
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
 * fi_eq_strerror() - say what a provider's error means
 * @eq: the event queue
 * @prov_errno: from the error entry
 * @err_data: NULL
 * @buf: takes the text, cut to @len; or NULL
 * @len: room at @buf
 *
 * Context: Any.
 * Return: the text.
 */
const char *fi_eq_strerror(struct fid_eq *eq, int prov_errno,
			   const void *err_data, char *buf, size_t len)
{
	return kofi_strerror(&eq->fid, prov_errno, buf, len);
}
EXPORT_SYMBOL_NS_GPL(fi_eq_strerror, KOFI);

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
	return kofi_eq_put_entry(eq, event, kofi_eq_name(entry->fid), buf, len);
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
	const struct kofi_eq_slot slot = {
		.len	= sizeof(slot.err),
		.is_err	= true,
		.id	= kofi_eq_name(entry->fid),
		.err	= *entry,
	};

	return kofi_eq_put(to_kofi_eq(eq), &slot);
}
EXPORT_SYMBOL_NS_GPL(kofi_eq_write_err, KOFI_PROVIDER);

/**
 * kofi_eq_hold() - hold a slot for the removal of a domain's device
 * @fid: the event queue
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or -ENOSPC when too many are held.
 */
int kofi_eq_hold(struct fid *fid)
{
	struct kofi_eq *eq = container_of(fid, struct kofi_eq, eq_fid.fid);
	int ret = -ENOSPC;

	spin_lock_bh(&eq->lock);
	if (eq->held < KOFI_EQ_MAX_HELD) {
		eq->held++;
		ret = 0;
	}
	spin_unlock_bh(&eq->lock);
	return ret;
}

/**
 * kofi_eq_drop() - undo kofi_eq_hold()
 * @fid: the event queue
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kofi_eq_drop(struct fid *fid)
{
	struct kofi_eq *eq = container_of(fid, struct kofi_eq, eq_fid.fid);

	spin_lock_bh(&eq->lock);
	eq->held--;
	spin_unlock_bh(&eq->lock);
}

/**
 * kofi_eq_device() - report that a device came or went
 * @fid: the event queue
 * @event: FI_DEVICE_ARRIVED, or FI_DEVICE_REMOVED to use up a kofi_eq_hold()
 * @about: the fabric or domain
 * @domain_name: the device
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kofi_eq_device(struct fid *fid, u32 event, struct fid *about,
		    const char *domain_name)
{
	struct kofi_eq *eq = container_of(fid, struct kofi_eq, eq_fid.fid);
	struct kofi_eq_slot slot = {
		.event	= event,
		.len	= sizeof(slot.device),
		.held	= event == FI_DEVICE_REMOVED,
		.id	= kofi_eq_name(about),
		.device	= { .fid = about, .context = about->context },
	};

	strscpy(slot.device.domain_name, domain_name,
		sizeof(slot.device.domain_name));
	if (!kofi_eq_put(eq, &slot))
		return;
	spin_lock_bh(&eq->lock);
	eq->lost = true;
	spin_unlock_bh(&eq->lock);
	kofi_notify(&eq->notifier, false);
}

/**
 * kofi_eq_forget() - drop what is queued about an object that was closed
 * @fid: the event queue
 * @id: of the object's node
 *
 * Nobody shall read of an object that isn't there any more, and nobody needs to
 * in order to make room.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kofi_eq_forget(struct fid *fid, u32 id)
{
	struct kofi_eq *eq = container_of(fid, struct kofi_eq, eq_fid.fid);
	u32 from, to;

	spin_lock_bh(&eq->lock);
	for (from = eq->head, to = from; from != eq->tail; from++) {
		if (kofi_eq_at(eq, from)->id == id)
			kofi_eq_release(eq, kofi_eq_at(eq, from));
		else
			*kofi_eq_at(eq, to++) = *kofi_eq_at(eq, from);
	}
	eq->tail = to;
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
	kvfree(eq->ring);
	kfree(eq);
	return 0;
}

static const struct fi_ops kofi_eq_fid_ops = {
	.close = kofi_eq_close,
};

static struct kofi_eq *kofi_eq_alloc(struct fi_eq_attr *attr)
{
	struct kofi_eq *eq;
	u32 ring;

	eq = kzalloc(sizeof(*eq), GFP_KERNEL);
	if (!eq)
		return NULL;
	if (!attr->size)
		attr->size = KOFI_EQ_SIZE;
	ring = roundup_pow_of_two(attr->size + KOFI_EQ_MAX_HELD);
	eq->ring = kvcalloc(ring, sizeof(*eq->ring), GFP_KERNEL);
	if (!eq->ring) {
		kfree(eq);
		return NULL;
	}
	eq->eq_fid.fid.ops = &kofi_eq_fid_ops;
	eq->attr = *attr;
	eq->mask = ring - 1;
	spin_lock_init(&eq->lock);
	kofi_notifier_init(&eq->notifier, &eq->lock,
			   attr->handler ? kofi_eq_call : NULL);
	return eq;
}

/**
 * fi_eq_open() - open an event queue
 * @fabric: the fabric
 * @attr: what it shall be; takes the size if that was left open
 * @eq: takes the event queue
 * @context: the caller's
 *
 * fi_eq(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EINVAL, -FI_EBADFLAGS, -EDEADLK, -ENOMEM.
 */
int fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
	       struct fid_eq **eq, void *context)
{
	struct kofi_node *node;
	struct kofi_eq *new;
	int ret;

	if (!fabric || !attr || !eq || attr->wait_obj > FI_WAIT_UNSPEC ||
	    attr->size > KOFI_EQ_MAX_SIZE)
		return -EINVAL;
	if (attr->flags & ~FI_WRITE)
		return -FI_EBADFLAGS;
	ret = kofi_enter(&fabric->fid, FI_CLASS_FABRIC);
	if (ret)
		return ret;
	node = kofi_node_alloc(fabric->fid.node, FI_CLASS_EQ);
	if (IS_ERR(node))
		return PTR_ERR(node);
	new = kofi_eq_alloc(attr);
	if (!new) {
		kofi_node_free(node);
		return -ENOMEM;
	}
	kofi_node_publish(node, &new->eq_fid.fid, FI_CLASS_EQ, context);
	*eq = &new->eq_fid;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(fi_eq_open, KOFI);
