// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Grants: a region of the device, by which the device of the peer writes to the memory of a krc_mr,
 * or reads it.
 *
 *	FREE -- begin --> REGISTERING --> VALID -- end --> INVALIDATING --> FREE
 *
 * A queue has a pool of grants, which grows while they are asked for. A registration without one is
 * as good: the peer sends its data by datagrams. So it waits for nothing.
 *
 * The region has its grant until the device can't reach the memory any more: that is, until the
 * device has invalidated it; or, if that fails, until the grant is closed.
 *
 * The device repeats the keys of a grant after KRC_GRANT_KEYS registrations. So none may become
 * valid again while the peer can still use it. A peer that invalidates the region has finished, as
 * a message is sent after the writes before it. Otherwise a write may come at any time:
 * - A ULP that invalidates its region may have given up the request. Such a grant is used for as
 *   long as its keys are new, and then closed.
 * - A grant that ends with its connection or its region is closed at once.
 * Closing destroys the device's region (FI_RETIRE), so that a late write fails; or else it tells
 * that the peer may still write. Then nobody uses the memory before the device was reset.
 *
 * Registrations and invalidations are posted without locks, with interrupts on: a grant waits in
 * krc_queue.grants_todo for krc_grants_go().
 */
#include <linux/jiffies.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "conn.h"

#define KRC_GRANTS_STEP		32	/* by which the pool of a queue grows */
#define KRC_GRANTS_RETRY_SECS	10	/* after which the pool tries again to grow */
#define KRC_GRANT_KEYS		16	/* registrations after which a device repeats a key */

unsigned int krc_rma_min = 8192;
/* Time in which the driver resets a device that was removed. */
unsigned int krc_reset_ms = 60000;

/* The next grant of the pool; or NULL, and the pool grows. */
static struct krc_grant *krc_grant_take(struct krc_queue *q)
{
	struct krc_grant *g;

	lockdep_assert_held(&q->lock);
	g = list_first_entry_or_null(&q->grants, struct krc_grant, list);
	if (g)
		list_del(&g->list);
	else if (q->ngrants < q->grants_max && !q->grants_short)
		mod_delayed_work(krc_grant_wq, &q->grants_work, 0);
	return g;
}

/* A registration takes a new key. With the last one that doesn't repeat, the grant is closed. */
static void krc_grant_use_key(struct krc_grant *g)
{
	g->drop = g->keys && !--g->keys;
}

/**
 * krc_grant_begin() - let the peer's device reach a region, if a grant is free
 * @c: the connection, locked
 * @mr: the region, locked, which has become valid
 *
 * krc_granted() follows. The connection runs next.
 * Return: true, or false if there is none.
 */
bool krc_grant_begin(struct krc_conn *c, struct krc_mr *mr)
{
	struct krc_queue *q = c->queue;
	struct krc_grant *g;

	lockdep_assert_held(&c->lock);
	lockdep_assert_held(&mr->lock);
	spin_lock(&q->lock);
	g = krc_grant_take(q);
	if (g) {
		g->conn = c;
		g->mr = mr;
		g->access = mr->map.access & krc_grantable(c);
		g->failed = false;
		krc_grant_use_key(g);
		WRITE_ONCE(g->state, KRC_GRANT_REGISTERING);
		list_add_tail(&g->list, &q->grants_todo);
	}
	spin_unlock(&q->lock);
	if (!g)
		return false;
	mr->grant = g;
	c->grants++;
	return true;
}

static void krc_grant_invalidate(struct krc_grant *g)
{
	struct krc_queue *q = g->queue;

	lockdep_assert_held(&g->mr->lock);
	WRITE_ONCE(g->state, KRC_GRANT_INVALIDATING);
	spin_lock(&q->lock);
	list_add_tail(&g->list, &q->grants_todo);
	spin_unlock(&q->lock);
}

/* It isn't used again. */
static void krc_grant_drop(struct krc_grant *g)
{
	lockdep_assert_held(&g->mr->lock);
	g->drop = true;
}

/**
 * krc_grant_end() - end a grant, because its region isn't valid any more
 * @g: the grant, whose region is locked
 * @by: the connection that runs next; or NULL: the caller calls krc_grants_go(), and the grant is
 *	closed
 * @finished: the peer has finished with it
 */
void krc_grant_end(struct krc_grant *g, const struct krc_conn *by, bool finished)
{
	lockdep_assert_held(&g->mr->lock);
	if (!by)
		krc_grant_drop(g);
	/* While it registers, krc_granted() follows, and the peer has no key. */
	if (g->state != KRC_GRANT_VALID)
		return;
	/* One of them is spare. */
	if (!finished && !g->keys)
		g->keys = KRC_GRANT_KEYS - 2;
	krc_grant_invalidate(g);
	if (by && by != g->conn)
		krc_conn_kick(g->conn);
}

/**
 * krc_grants_go() - have the device register and invalidate what waits for that
 * @q: the queue
 *
 * Context: Process or softirq, without locks.
 */
void krc_grants_go(struct krc_queue *q)
{
	struct krc_grant *g;
	unsigned long flags;

	while (!list_empty_careful(&q->grants_todo)) {
		spin_lock_irqsave(&q->lock, flags);
		g = list_first_entry_or_null(&q->grants_todo, struct krc_grant, list);
		if (g)
			list_del_init(&g->list);
		spin_unlock_irqrestore(&q->lock, flags);
		if (g)
			krc_net_grant(g);
	}
}

/* The device doesn't reach the memory any more. The connection and the region are locked. */
static void krc_grant_over(struct krc_grant *g)
{
	struct krc_conn *c = g->conn;
	struct krc_mr *mr = g->mr;

	lockdep_assert_held(&c->lock);
	lockdep_assert_held(&mr->lock);
	g->mr = NULL;
	g->conn = NULL;
	WRITE_ONCE(g->state, KRC_GRANT_FREE);
	mr->grant = NULL;
	krc_mr_ungranted(mr, c);
	/* The connection may be freed as soon as it has none and isn't locked. */
	if (!--c->grants)
		wake_up(&c->idle);
}

/* Put a grant that is over into the pool, or have it closed. */
static void krc_grant_put(struct krc_queue *q, struct krc_grant *g)
{
	lockdep_assert_held(&q->lock);
	list_add_tail(&g->list, g->drop ? &q->grants_over : &q->grants);
	if (g->drop)
		mod_delayed_work(krc_grant_wq, &q->grants_work, 0);
}

/* A grant is over, for which its region waits. @again: it is put into the pool, or closed. */
static void krc_grant_release(struct krc_grant *g, bool again)
{
	struct krc_conn *c = g->conn;
	struct krc_queue *q = g->queue;
	struct krc_mr *mr = g->mr;
	unsigned long flags;

	rcu_read_lock();
	spin_lock_irqsave(&c->lock, flags);
	spin_lock(&mr->lock);
	krc_conn_dirty(c);
	krc_grant_over(g);
	if (again) {
		spin_lock(&q->lock);
		krc_grant_put(q, g);
		spin_unlock(&q->lock);
	}
	spin_unlock(&mr->lock);
	spin_unlock_irqrestore(&c->lock, flags);
	rcu_read_unlock();
}

/* Have a grant closed, for which its region waits. */
static void krc_grant_fail(struct krc_grant *g)
{
	struct krc_queue *q = g->queue;
	struct krc_mr *mr = g->mr;
	unsigned long flags;

	/* Under RCU: the grant may be closed, and its region freed, as soon as it isn't locked. */
	rcu_read_lock();
	spin_lock_irqsave(&mr->lock, flags);
	krc_grant_drop(g);
	spin_lock(&q->lock);
	krc_grant_put(q, g);
	spin_unlock(&q->lock);
	spin_unlock_irqrestore(&mr->lock, flags);
	rcu_read_unlock();
}

/* Memory that the device can't reach says nothing of the grant. Any other error does. */
static void krc_grant_refused(struct krc_grant *g, int err)
{
	struct krc_conn *c = g->conn;

	if (err != -EOPNOTSUPP && err != -EINVAL && err != -EMSGSIZE && err != -ECANCELED) {
		/* It may have registered when it was given up: closing the grant tells. */
		krc_grant_fail(g);
		return;
	}
	/* Until it runs, the connection isn't freed. The caller may be no handler. */
	krc_conn_get(c);
	krc_grant_release(g, true);
	krc_conn_kick(c);
	krc_conn_put(c);
}

/**
 * krc_granted() - handle the end of a registration by the device
 * @g: the grant, from krc_net_grant(), with its key if there is no error
 * @err: 0 or a negative errno
 *
 * After an error the region is valid without it.
 * Context: Process or softirq. Without an error, the caller is the handler of the queue.
 */
void krc_granted(struct krc_grant *g, int err)
{
	struct krc_conn *c = g->conn;
	struct krc_mr *mr = g->mr;
	unsigned long flags;

	krc_count(err ? KRC_COUNT_UNGRANTED : KRC_COUNT_GRANTS);
	if (err) {
		krc_grant_refused(g, err);
		return;
	}
	/* Under RCU: the region's owner may free it as soon as it isn't locked. */
	rcu_read_lock();
	spin_lock_irqsave(&c->lock, flags);
	spin_lock(&mr->lock);
	if (mr->state == KRC_MR_VALID)
		WRITE_ONCE(g->state, KRC_GRANT_VALID);
	else
		krc_grant_invalidate(g);
	krc_conn_dirty(c);
	spin_unlock(&mr->lock);
	spin_unlock_irqrestore(&c->lock, flags);
	rcu_read_unlock();
}

/**
 * krc_grant_revoked() - handle the end of an invalidation by the device
 * @g: the grant, from krc_net_grant()
 * @err: 0 or a negative errno
 *
 * Context: Process or softirq. Without an error, the caller is the handler of the queue.
 */
void krc_grant_revoked(struct krc_grant *g, int err)
{
	if (!err) {
		krc_grant_release(g, true);
		return;
	}
	/*
	 * The device refuses, or it is gone or was given up: the peer may reach the memory until it
	 * is closed.
	 */
	g->failed = err != -ENODEV && err != -ECANCELED;
	if (g->failed) {
		krc_count(KRC_COUNT_LOST);
		krc_net_lost(g->queue);
	}
	krc_grant_fail(g);
}

/* --- the pool --- */

static struct krc_grant *krc_grant_next_over(struct krc_queue *q)
{
	struct krc_grant *g;

	spin_lock_irq(&q->lock);
	g = list_first_entry_or_null(&q->grants_over, struct krc_grant, list);
	if (g)
		list_del_init(&g->list);
	spin_unlock_irq(&q->lock);
	return g;
}

/* Return: whether the peer's device may reach the memory of a grant that isn't invalidated. */
static bool krc_grant_reaches(struct krc_grant *g)
{
	if (!g->failed)
		return false;
	if (!krc_net_gone(g))
		return true;
	/* Its driver resets it after all users have been told. */
	if (!g->gone) {
		g->gone = true;
		g->since = jiffies;
	}
	return time_before(jiffies, g->since + msecs_to_jiffies(krc_reset_ms));
}

/* Return: 0; or an error, with which the grant stays open. */
static int krc_grant_try_close(struct krc_grant *g)
{
	int err = krc_net_close(g);

	if (err != -EIO)
		return err;
	/* The provider tells this once. After a failed invalidation it is nothing new. */
	if (g->failed)
		return krc_net_close(g);
	g->failed = true;
	return err;
}

/*
 * Close a grant. If the device may still reach its memory, nobody may use that memory, so try again
 * later: when the device was reset. Return: true or false.
 */
static bool krc_grant_close(struct krc_queue *q, struct krc_grant *g)
{
	struct krc_conn *c = g->conn;

	if (krc_grant_reaches(g) || krc_grant_try_close(g)) {
		krc_count(KRC_COUNT_STUCK);
		return false;
	}
	if (c) {
		/* Until it runs, the connection isn't freed. */
		krc_conn_get(c);
		krc_grant_release(g, false);
		krc_conn_kick(c);
		krc_conn_put(c);
	}
	kfree(g);
	spin_lock_irq(&q->lock);
	q->ngrants--;
	spin_unlock_irq(&q->lock);
	return true;
}

/* Return: true if there are some that can't be closed yet. */
static bool krc_grants_close(struct krc_queue *q)
{
	struct krc_grant *g;
	LIST_HEAD(stuck);

	while ((g = krc_grant_next_over(q)))
		if (!krc_grant_close(q, g))
			list_add(&g->list, &stuck);
	if (list_empty(&stuck))
		return false;
	/* Once for all of them. */
	krc_net_stuck(q);
	spin_lock_irq(&q->lock);
	list_splice_tail(&stuck, &q->grants_over);
	spin_unlock_irq(&q->lock);
	return true;
}

/* Return: 0 or a negative errno. */
static int krc_grants_add(struct krc_queue *q)
{
	struct krc_grant *g = kzalloc(sizeof(*g), GFP_KERNEL);
	int ret;

	if (!g)
		return -ENOMEM;
	g->queue = q;
	ret = krc_net_open_grant(g);
	if (ret) {
		kfree(g);
		return ret;
	}
	spin_lock_irq(&q->lock);
	list_add_tail(&g->list, &q->grants);
	q->ngrants++;
	spin_unlock_irq(&q->lock);
	return 0;
}

/*
 * Let the pool grow if it is empty. Others may have all regions of the device, and give some back.
 * Return: true if it should try again later.
 */
static bool krc_grants_grow(struct krc_queue *q)
{
	bool empty = list_empty_careful(&q->grants), again = false;
	unsigned int n;
	int ret = 0;

	for (n = 0; empty && n < KRC_GRANTS_STEP && q->ngrants < q->grants_max && !ret; n++)
		ret = krc_grants_add(q);
	spin_lock_irq(&q->lock);
	/* The device is gone, or has no such regions. */
	if (ret == -ENODEV || ret == -EOPNOTSUPP || ret == -EMSGSIZE)
		q->grants_max = q->ngrants;
	else
		again = ret;
	q->grants_short = again;
	spin_unlock_irq(&q->lock);
	return again;
}

static void krc_grants_work(struct work_struct *work)
{
	struct krc_queue *q = container_of(to_delayed_work(work), struct krc_queue, grants_work);
	unsigned int noio = memalloc_noio_save();
	bool stuck = krc_grants_close(q);
	bool again = krc_grants_grow(q);

	if (again || stuck)
		queue_delayed_work(krc_grant_wq, &q->grants_work,
				   (again ? KRC_GRANTS_RETRY_SECS : KRC_STUCK_SECS) * HZ);
	memalloc_noio_restore(noio);
}

/**
 * krc_grants_init() - initialize the grants of a queue, of which there are none
 * @q: the queue
 */
void krc_grants_init(struct krc_queue *q)
{
	INIT_LIST_HEAD(&q->grants);
	INIT_LIST_HEAD(&q->grants_todo);
	INIT_LIST_HEAD(&q->grants_over);
	INIT_DELAYED_WORK(&q->grants_work, krc_grants_work);
	q->grants_max = KRC_GRANTS_MAX;
}

/**
 * krc_grants_fini() - close the grants of a queue
 * @q: the queue, without connections
 *
 * Context: Process, sleeps.
 */
void krc_grants_fini(struct krc_queue *q)
{
	struct krc_grant *g;

	cancel_delayed_work_sync(&q->grants_work);
	spin_lock_irq(&q->lock);
	list_splice_tail_init(&q->grants, &q->grants_over);
	spin_unlock_irq(&q->lock);
	/* None has memory. */
	while ((g = krc_grant_next_over(q)))
		if (WARN_ON_ONCE(!krc_grant_close(q, g)))
			break;
}
