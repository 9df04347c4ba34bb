// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The end of a connection. ULPs reuse memory as soon as its work request is flushed, so there is
 * one rule: no work request is flushed, and no region becomes free, while the peer, the device or
 * a copy of ours can still reach its memory.
 *
 *	1. The state is KRC_STOPPED: nothing is sent, delivered or completed any more. The peer is
 *	   told, and so is the ULP.
 *	2. Datagrams don't find the connection. After an RCU grace period, no copy into a receive,
 *	   a region or the memory of a read goes on.
 *	3. Its regions are invalidated; those that have a grant by the device, too.
 *	4. When that has ended, and the datagrams and transfers of the ULP's memory, nobody reaches
 *	   that memory: the state is KRC_FENCED, and the work requests are flushed.
 *
 * A datagram can be outstanding for as long as the device tries to send it. After krc_revoke_ms
 * the device is given up, which ends all its operations.
 */
#include <linux/jiffies.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include "conn.h"

unsigned int krc_revoke_ms = 30000;

/**
 * krc_stop_locked() - begin the end of a connection
 * @c: the connection, locked
 * @cause: the cause
 * @err: 0 or a negative errno, for the log
 *
 * Nothing happens if it has begun before.
 */
void krc_stop_locked(struct krc_conn *c, enum krc_cause cause, int err)
{
	lockdep_assert_held(&c->lock);
	if (c->state >= KRC_STOPPED)
		return;
	c->cause = cause;
	c->err = err;
	krc_conn_go(c, KRC_STOPPED);
	queue_work(krc_stop_wq, &c->stop_work);
}

/**
 * krc_stop() - begin the end of a connection
 * @c: the connection
 * @cause: the cause
 * @err: 0 or a negative errno, for the log
 *
 * Nothing happens if it has begun before.
 * Context: Any.
 */
void krc_stop(struct krc_conn *c, enum krc_cause cause, int err)
{
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	krc_stop_locked(c, cause, err);
	spin_unlock_irqrestore(&c->lock, flags);
}

/* The peer's reads hold regions; none is served any more. */
static void krc_unserve(struct krc_conn *c)
{
	struct krc_served *s;

	spin_lock_irq(&c->lock);
	for (; c->serve_tail != c->serve_head; c->serve_tail++) {
		s = krc_served_at(c, c->serve_tail);
		krc_mr_put(s->mr);
		s->mr = NULL;
	}
	spin_unlock_irq(&c->lock);
}

/* If the connection was to have a datagram that has become free, another one gets it. */
static void krc_unstarve(struct krc_conn *c)
{
	struct krc_queue *q = c->queue;

	spin_lock_irq(&q->lock);
	list_del_init(&c->starved);
	if (q->nfree)
		krc_queue_feed(q);
	spin_unlock_irq(&q->lock);
}

static bool krc_is_idle(struct krc_conn *c)
{
	bool idle;

	/* Under the lock, after which krc_sent() and grants don't use the connection. */
	spin_lock_irq(&c->lock);
	idle = !c->bufs && !c->rmas && !c->grants;
	spin_unlock_irq(&c->lock);
	return idle;
}

static void krc_wait_idle(struct krc_conn *c)
{
	if (wait_event_timeout(c->idle, krc_is_idle(c), msecs_to_jiffies(krc_revoke_ms)))
		return;
	krc_count(KRC_COUNT_LOST);
	krc_net_lost(c->queue);
	while (!wait_event_timeout(c->idle, krc_is_idle(c), KRC_STUCK_SECS * HZ))
		pr_err_ratelimited("kofi_rc: a device that was given up still has memory of requests: reset it\n");
}

/**
 * krc_stop_work() - the end of a connection
 * @work: krc_conn.stop_work
 *
 * Context: Process, sleeps.
 */
void krc_stop_work(struct work_struct *work)
{
	struct krc_conn *c = container_of(work, struct krc_conn, stop_work);
	unsigned int noio = memalloc_noio_save();

	krc_up_stopped(c, c->cause, c->err);
	krc_conn_forget(c);
	if (c->queue) {
		synchronize_rcu();
		krc_mrs_revoke(c);
		krc_unserve(c);
		krc_unstarve(c);
		krc_wait_idle(c);
	}
	spin_lock_irq(&c->lock);
	krc_conn_go(c, KRC_FENCED);
	spin_unlock_irq(&c->lock);
	krc_run(c);
	krc_up_flushed(c);
	memalloc_noio_restore(noio);
	complete_all(&c->flushed);
}

/**
 * krc_wait_flushed() - wait until a connection's work requests are flushed
 * @c: the connection, stopped
 *
 * Context: Process, sleeps.
 */
void krc_wait_flushed(struct krc_conn *c)
{
	wait_for_completion(&c->flushed);
}
