// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Connections, their work requests and references: see conn.h. */
#include <linux/bitmap.h>
#include <linux/irqflags.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "conn.h"

#define KRC_SLOTS	65536	/* connections, because an index has 16 bits in a cookie */

/* Connections that datagrams may be for. Looked up under RCU. */
static DEFINE_XARRAY_FLAGS(krc_slots, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
static u32 krc_slots_next;

struct workqueue_struct *krc_wq;
struct workqueue_struct *krc_stop_wq;
struct workqueue_struct *krc_grant_wq;
atomic64_t krc_counts[KRC_COUNTS];

/* --- queues --- */

static void krc_queue_work(struct work_struct *work)
{
	krc_queue_run(container_of(work, struct krc_queue, work));
}

/**
 * krc_queue_init() - initialize a queue
 * @q: the queue
 */
void krc_queue_init(struct krc_queue *q)
{
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->free);
	INIT_LIST_HEAD(&q->starved);
	INIT_LIST_HEAD(&q->dirty);
	INIT_WORK(&q->work, krc_queue_work);
	spin_lock_init(&q->bvecs_lock);
	krc_grants_init(q);
}

static struct krc_conn *krc_dirty_take(struct krc_queue *q)
{
	struct krc_conn *c;

	spin_lock_irq(&q->lock);
	c = list_first_entry_or_null(&q->dirty, struct krc_conn, dirty);
	if (c)
		list_del_init(&c->dirty);
	spin_unlock_irq(&q->lock);
	return c;
}

/**
 * krc_queue_run() - run the connections of a queue to which something has happened
 * @q: the queue
 *
 * Context: Process or softirq, without locks of the ULP.
 */
void krc_queue_run(struct krc_queue *q)
{
	struct krc_conn *c;

	while ((c = krc_dirty_take(q))) {
		krc_run(c);
		krc_conn_put(c);
	}
}

/**
 * krc_conn_dirty() - have a connection run by the handler of its queue
 * @c: the connection, of a queue, whose handler is the caller
 *
 * Context: Any.
 */
void krc_conn_dirty(struct krc_conn *c)
{
	struct krc_queue *q = c->queue;
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	if (list_empty(&c->dirty))
		list_add_tail(&krc_conn_get(c)->dirty, &q->dirty);
	spin_unlock_irqrestore(&q->lock, flags);
}

/**
 * krc_conn_kick() - have a connection run soon
 * @c: the connection
 *
 * Context: Any.
 */
void krc_conn_kick(struct krc_conn *c)
{
	if (!READ_ONCE(c->queue))
		return;
	krc_conn_dirty(c);
	queue_work(krc_wq, &c->queue->work);
}

/**
 * krc_conn_push() - handle work requests that were posted
 * @c: the connection, with a reference of the caller's
 *
 * Context: Any, with or without interrupts.
 */
void krc_conn_push(struct krc_conn *c)
{
	/* Datagrams can't be sent without interrupts. */
	if (irqs_disabled() && READ_ONCE(c->queue)) {
		krc_conn_kick(c);
		return;
	}
	krc_run_turns(c);
	krc_up_notify_later(c);
}

/* --- connections --- */

static int krc_rings_alloc(struct krc_conn *c, const struct krc_conn_attr *attr)
{
	struct krc_swr *w;

	c->sq_size = roundup_pow_of_two(max(attr->sends, 1U));
	c->sq_stride = struct_size(w, sge, attr->send_sges);
	c->rq_size = roundup_pow_of_two(max(attr->recvs, 1U));
	c->sq = kvcalloc(c->sq_size, c->sq_stride, GFP_KERNEL);
	c->rq = kvcalloc(c->rq_size, sizeof(*c->rq), GFP_KERNEL);
	return c->sq && c->rq ? 0 : -ENOMEM;
}

static void krc_conn_free(struct krc_conn *c)
{
	kvfree(c->sq);
	kvfree(c->rq);
	kvfree(c->early);
	kvfree(c->keys);
	bitmap_free(c->tx_sent);
	bitmap_free(c->rx_have);
	kfree(c->reads);
	kfree(c->served);
}

/**
 * krc_conn_init() - initialize a connection
 * @c: the connection, zeroed
 * @attr: its properties
 *
 * Context: Process, sleeps.
 * Return: 0 or -ENOMEM.
 */
int krc_conn_init(struct krc_conn *c, const struct krc_conn_attr *attr)
{
	refcount_set(&c->refs, 1);
	init_completion(&c->released);
	c->mrs = attr->mrs;
	c->pd = attr->pd;
	c->max_recv = attr->recvs;
	c->max_send = attr->sends;
	spin_lock_init(&c->lock);
	INIT_LIST_HEAD(&c->mrs_owned);
	INIT_LIST_HEAD(&c->dirty);
	INIT_LIST_HEAD(&c->starved);
	INIT_WORK(&c->stop_work, krc_stop_work);
	init_waitqueue_head(&c->idle);
	init_completion(&c->flushed);
	if (!krc_rings_alloc(c, attr))
		return 0;
	krc_conn_free(c);
	return -ENOMEM;
}

/**
 * krc_conn_fini() - undo krc_conn_init()
 * @c: the connection
 *
 * Context: Process, sleeps until all work requests are flushed and all references are put.
 */
void krc_conn_fini(struct krc_conn *c)
{
	krc_stop(c, KRC_BY_ULP, 0);
	krc_wait_flushed(c);
	krc_conn_put(c);
	wait_for_completion(&c->released);
	krc_conn_free(c);
}

static const u8 krc_nexts[] = {
	[KRC_NEW]	= BIT(KRC_OPEN) | BIT(KRC_LIVE) | BIT(KRC_STOPPED),
	[KRC_OPEN]	= BIT(KRC_LIVE) | BIT(KRC_STOPPED),
	[KRC_LIVE]	= BIT(KRC_STOPPED),
	[KRC_STOPPED]	= BIT(KRC_FENCED),
	[KRC_FENCED]	= 0,
};

/**
 * krc_conn_go() - change a connection's state
 * @c: the connection, locked
 * @state: the new state
 */
void krc_conn_go(struct krc_conn *c, enum krc_state state)
{
	lockdep_assert_held(&c->lock);
	WARN_ON_ONCE(!(krc_nexts[c->state] & BIT(state)));
	WRITE_ONCE(c->state, state);
}

/**
 * krc_conn_prepare() - allocate what a connection needs to be opened
 * @c: the connection, new
 * @ird: reads of the peer that are served at a time
 * @ord: reads that are made at a time, at most
 *
 * Context: Process, sleeps.
 * Return: 0; -ENOMEM; -EBUSY if there are too many connections; -EISCONN if it was called before;
 * or -ENOTCONN if the connection was stopped.
 */
int krc_conn_prepare(struct krc_conn *c, u32 ird, u32 ord)
{
	bool stopped;
	u32 slot;
	u64 cookie;

	if (c->early)
		return -EISCONN;
	c->window = KRC_WINDOW;
	c->ird = clamp(ird, 1U, KRC_READS_MAX);
	c->ord = clamp(ord, 1U, KRC_READS_MAX);
	c->early = kvcalloc(2 * KRC_WINDOW, sizeof(*c->early), GFP_KERNEL);
	c->tx_sent = bitmap_zalloc(KRC_WINDOW, GFP_KERNEL);
	c->rx_have = bitmap_zalloc(2 * KRC_WINDOW, GFP_KERNEL);
	c->reads = kcalloc(c->ord, sizeof(*c->reads), GFP_KERNEL);
	c->served = kcalloc(krc_served_size(c), sizeof(*c->served), GFP_KERNEL);
	c->keys = kvcalloc(KRC_KEY_SLOTS, sizeof(*c->keys), GFP_KERNEL);
	if (!c->keys || !c->early || !c->tx_sent || !c->rx_have || !c->reads || !c->served)
		return -ENOMEM;
	/* An empty entry, which krc_conn_open() replaces. */
	if (xa_alloc_cyclic_irq(&krc_slots, &slot, NULL, XA_LIMIT(0, KRC_SLOTS - 1),
				&krc_slots_next, GFP_KERNEL) < 0)
		return -EBUSY;
	do
		cookie = (get_random_u64() << 16) | slot;
	while (!(cookie >> 16));
	/* Under the lock, so that krc_conn_forget() comes later. */
	spin_lock_irq(&c->lock);
	stopped = c->state != KRC_NEW;
	if (!stopped)
		c->cookie = cookie;
	spin_unlock_irq(&c->lock);
	if (!stopped)
		return 0;
	xa_erase_irq(&krc_slots, slot);
	return -ENOTCONN;
}

/**
 * krc_conn_describe() - get what the peer has to know of a connection
 * @c: the connection, prepared
 * @side: result, without its datagram, port and private data
 *
 * Context: Process.
 */
void krc_conn_describe(struct krc_conn *c, struct krc_side *side)
{
	spin_lock_irq(&c->lock);
	c->told = c->posted;
	*side = (struct krc_side) {
		.cookie		= c->cookie,
		.credits	= c->posted,
		.window		= c->window,
		.ird		= c->ird,
		.ord		= c->ord,
	};
	spin_unlock_irq(&c->lock);
}

/**
 * krc_conn_open() - begin to take datagrams of the peer
 * @c: the connection, prepared and described
 * @peer: the peer
 * @live: the peer is ready, too
 *
 * Context: Process, sleeps.
 * Return: 0; -ENOTCONN if the connection was stopped; -EMSGSIZE if this side can't send datagrams
 * of KRC_DATAGRAM_MIN; or -ENOMEM.
 */
int krc_conn_open(struct krc_conn *c, const struct krc_peer *peer, bool live)
{
	int ret = -ENOTCONN;

	if (peer->max_msg < KRC_DATAGRAM_MIN)
		return -EMSGSIZE;
	spin_lock_irq(&c->lock);
	if (c->state == KRC_NEW) {
		/* Under the lock, so that krc_conn_forget() comes later. The entry is there. */
		xa_lock(&krc_slots);
		ret = xa_err(__xa_store(&krc_slots, (u16)c->cookie, c, GFP_ATOMIC));
		xa_unlock(&krc_slots);
	}
	if (!ret) {
		WRITE_ONCE(c->queue, peer->queue);
		c->peer = peer->addr;
		c->peer_cookie = peer->side.cookie;
		c->peer_credits = peer->side.credits;
		c->window = min_t(u32, c->window, peer->side.window);
		c->ord = min_t(u32, c->ord, peer->side.ird);
		c->room = min_t(size_t, peer->side.datagram, peer->max_msg) - KRC_HDR;
		c->can_write = peer->queue->can_write && peer->side.features & KRC_CAN_WRITE;
		c->can_read = peer->queue->can_read && peer->side.features & KRC_CAN_READ;
		c->can_rma = c->can_write || c->can_read;
		krc_conn_go(c, live ? KRC_LIVE : KRC_OPEN);
	}
	spin_unlock_irq(&c->lock);
	/* Receives that were posted since krc_conn_describe() may have to be announced. */
	if (!ret)
		krc_conn_push(c);
	return ret;
}

/**
 * krc_conn_live() - begin to send
 * @c: the connection
 *
 * Nothing happens if it was stopped.
 * Context: Process.
 */
void krc_conn_live(struct krc_conn *c)
{
	spin_lock_irq(&c->lock);
	if (c->state == KRC_OPEN)
		krc_conn_go(c, KRC_LIVE);
	spin_unlock_irq(&c->lock);
	krc_conn_push(c);
}

/**
 * krc_conn_hold() - keep messages from the ULP, which doesn't know of the connection yet
 * @c: the connection, not open yet
 *
 * They are in receives that the ULP has posted, so they take no other memory. If the connection
 * ends first, these receives are flushed.
 * Context: Process.
 */
void krc_conn_hold(struct krc_conn *c)
{
	spin_lock_irq(&c->lock);
	c->holds = true;
	spin_unlock_irq(&c->lock);
}

/**
 * krc_conn_release() - give messages to the ULP, which knows of the connection now
 * @c: the connection, with a reference of the caller's
 *
 * Context: Process.
 */
void krc_conn_release(struct krc_conn *c)
{
	spin_lock_irq(&c->lock);
	c->holds = false;
	spin_unlock_irq(&c->lock);
	krc_conn_kick(c);
}

/**
 * krc_conn_find() - find the connection of a datagram
 * @q: the queue that it has come to
 * @cookie: the datagram's cookie
 *
 * Context: RCU.
 * Return: the connection, which takes datagrams; or NULL.
 */
struct krc_conn *krc_conn_find(struct krc_queue *q, u64 cookie)
{
	struct krc_conn *c = xa_load(&krc_slots, (u16)cookie);
	enum krc_state state;

	if (!c || c->queue != q || c->cookie != cookie)
		return NULL;
	state = READ_ONCE(c->state);
	return state == KRC_OPEN || state == KRC_LIVE ? c : NULL;
}

/**
 * krc_conn_forget() - have datagrams find a connection no more
 * @c: the connection, stopped
 *
 * Its handler may use it until an RCU grace period has passed.
 * Context: Process.
 */
void krc_conn_forget(struct krc_conn *c)
{
	if (c->cookie)
		xa_erase_irq(&krc_slots, (u16)c->cookie);
}

/**
 * krc_conn_exit() - free what all connections share
 *
 * Context: Process. There are no connections.
 */
void krc_conn_exit(void)
{
	WARN_ON_ONCE(!xa_empty(&krc_slots));
	xa_destroy(&krc_slots);
}

/* --- work requests --- */

/**
 * krc_sq_next() - get the next free work request
 * @c: the connection, locked
 *
 * The caller fills it in, and increments krc_conn.head.
 * Return: the work request, cleared; or NULL if there is none.
 */
struct krc_swr *krc_sq_next(struct krc_conn *c)
{
	struct krc_swr *w = krc_swr_at(c, c->head);

	lockdep_assert_held(&c->lock);
	if (c->head - c->tail >= c->max_send)
		return NULL;
	memset(w, 0, offsetof(struct krc_swr, conn));
	return w;
}

/**
 * krc_rq_add() - add a receive
 * @c: the connection, locked
 * @r: the receive
 *
 * Return: 0 or -ENOMEM.
 */
int krc_rq_add(struct krc_conn *c, const struct krc_rwr *r)
{
	lockdep_assert_held(&c->lock);
	if (c->posted - c->done >= c->max_recv)
		return -ENOMEM;
	*krc_rwr_at(c, c->posted) = *r;
	c->posted++;
	return 0;
}
