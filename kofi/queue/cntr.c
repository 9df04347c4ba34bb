// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Counters: a value, an error value, and the tasks that wait for them. */
#include <linux/sched.h>
#include <linux/slab.h>
#include "queue.h"

static struct kofi_cntr *to_kofi_cntr(struct fid_cntr *cntr)
{
	return container_of(cntr, struct kofi_cntr, cntr_fid);
}

static void kofi_cntr_changed(struct fid_cntr *cntr)
{
	if (wq_has_sleeper(&to_kofi_cntr(cntr)->wait))
		wake_up_all(&to_kofi_cntr(cntr)->wait);
}

static u64 kofi_cntr_read(struct fid_cntr *cntr)
{
	return atomic64_read(&to_kofi_cntr(cntr)->value);
}

static u64 kofi_cntr_readerr(struct fid_cntr *cntr_fid)
{
	struct kofi_cntr *cntr = to_kofi_cntr(cntr_fid);
	u64 errors = atomic64_read(&cntr->errors);

	WRITE_ONCE(cntr->known_errors, errors);
	return errors;
}

static int kofi_cntr_add(struct fid_cntr *cntr, u64 value)
{
	atomic64_add(value, &to_kofi_cntr(cntr)->value);
	kofi_cntr_changed(cntr);
	return 0;
}

static int kofi_cntr_adderr(struct fid_cntr *cntr, u64 value)
{
	atomic64_add(value, &to_kofi_cntr(cntr)->errors);
	kofi_cntr_changed(cntr);
	return 0;
}

static int kofi_cntr_set(struct fid_cntr *cntr, u64 value)
{
	atomic64_set(&to_kofi_cntr(cntr)->value, value);
	kofi_cntr_changed(cntr);
	return 0;
}

static int kofi_cntr_seterr(struct fid_cntr *cntr, u64 value)
{
	/* fi_cntr_wait() reports only errors that the ULP doesn't know, and it sets this value. */
	WRITE_ONCE(to_kofi_cntr(cntr)->known_errors, value);
	atomic64_set(&to_kofi_cntr(cntr)->errors, value);
	kofi_cntr_changed(cntr);
	return 0;
}

/* Store the result of a wait. Decide it only once, because a counter may be set back. */
static bool kofi_cntr_ready(struct kofi_cntr *cntr, u64 threshold, int *ret)
{
	if (kofi_cntr_read(&cntr->cntr_fid) >= threshold)
		*ret = 0;
	else if (atomic64_read(&cntr->errors) != READ_ONCE(cntr->known_errors))
		*ret = -FI_EAVAIL;
	else if (kofi_fid_dead(&cntr->cntr_fid.fid))
		*ret = -ENODEV;
	else if (READ_ONCE(cntr->room) && xchg(&cntr->room, false))
		*ret = -EAGAIN;
	else
		*ret = -ETIMEDOUT;
	return *ret != -ETIMEDOUT;
}

static int kofi_cntr_wait(struct fid_cntr *cntr_fid, u64 threshold, int timeout)
{
	struct kofi_cntr *cntr = to_kofi_cntr(cntr_fid);
	long left;
	int ret;

	ret = kofi_wait_begin(cntr->attr.wait_obj, timeout, &left);
	if (ret)
		return ret;
	left = wait_event_interruptible_timeout(cntr->wait,
						kofi_cntr_ready(cntr, threshold,
								&ret),
						left);
	return left < 0 ? -EINTR : ret;
}

static const struct fi_ops_cntr kofi_cntr_ops = {
	.read		= kofi_cntr_read,
	.readerr	= kofi_cntr_readerr,
	.add		= kofi_cntr_add,
	.adderr		= kofi_cntr_adderr,
	.set		= kofi_cntr_set,
	.seterr		= kofi_cntr_seterr,
	.wait		= kofi_cntr_wait,
};

/**
 * kofi_cntr_done() - count an operation that completed
 * @cntr: the counter
 * @len: bytes transferred
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kofi_cntr_done(struct kofi_cntr *cntr, size_t len)
{
	kofi_cntr_add(&cntr->cntr_fid,
		      cntr->attr.events == FI_CNTR_EVENTS_BYTES ? len : 1);
}
EXPORT_SYMBOL_NS_GPL(kofi_cntr_done, KOFI_PROVIDER);

/**
 * kofi_cntr_failed() - count an operation that failed
 * @cntr: the counter
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kofi_cntr_failed(struct kofi_cntr *cntr)
{
	kofi_cntr_adderr(&cntr->cntr_fid, 1);
}
EXPORT_SYMBOL_NS_GPL(kofi_cntr_failed, KOFI_PROVIDER);

/**
 * kofi_cntr_tell_room() - tell a waiter that a refused post may succeed now
 * @cntr: a counter of the endpoint
 *
 * Does for an endpoint without a completion queue what kofi_cq_tell_room() does for others:
 * one fi_cntr_wait() returns -EAGAIN.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kofi_cntr_tell_room(struct kofi_cntr *cntr)
{
	WRITE_ONCE(cntr->room, true);
	kofi_cntr_changed(&cntr->cntr_fid);
}
EXPORT_SYMBOL_NS_GPL(kofi_cntr_tell_room, KOFI_PROVIDER);

/**
 * kofi_cntr_init() - prepare a counter that a provider embeds
 * @cntr: the counter, zeroed; the provider sets cntr_fid.fid.ops
 * @attr: from fi_cntr_open()
 *
 * Context: Process context.
 */
void kofi_cntr_init(struct kofi_cntr *cntr, const struct fi_cntr_attr *attr)
{
	cntr->attr = *attr;
	cntr->cntr_fid.ops = &kofi_cntr_ops;
	init_waitqueue_head(&cntr->wait);
	cntr->cntr_fid.fid.wait = &cntr->wait;
}
EXPORT_SYMBOL_NS_GPL(kofi_cntr_init, KOFI_PROVIDER);

static int kofi_cntr_close(struct fid *fid)
{
	kfree(container_of(fid, struct kofi_cntr, cntr_fid.fid));
	return 0;
}

static const struct fi_ops kofi_cntr_fid_ops = {
	.close = kofi_cntr_close,
};

/**
 * kofi_cntr_open() - open a counter
 * @domain: the domain
 * @attr: from fi_cntr_open()
 * @cntr: takes the counter
 * @context: the caller's context
 *
 * Serves as a provider's fi_ops_domain.cntr_open.
 *
 * Context: Process context; sleeps. Allocates in the caller's scope.
 * Return: 0, or -ENOMEM.
 */
int kofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		   struct fid_cntr **cntr, void *context)
{
	struct kofi_cntr *new;

	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	new->cntr_fid.fid.ops = &kofi_cntr_fid_ops;
	kofi_cntr_init(new, attr);
	*cntr = &new->cntr_fid;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kofi_cntr_open, KOFI_PROVIDER);
