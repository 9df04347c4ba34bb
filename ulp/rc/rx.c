// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Datagrams of the peer: see conn.h. The handler of a queue calls krc_message(), never concurrently
 * for one connection. It copies data without the connection's lock: krc_stop_work() waits for an
 * RCU grace period before it flushes, so the memory stays.
 */
#include <linux/bitmap.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include "conn.h"

/* --- placing --- */

static void krc_place_recv(const struct krc_rwr *r, u32 offset, const void *data, u32 len)
{
	const struct krc_sge *sge;
	u32 n;

	for (sge = r->sge; len; sge++) {
		if (offset >= sge->len) {
			offset -= sge->len;
			continue;
		}
		n = min(len, sge->len - offset);
		memcpy((void *)(uintptr_t)sge->addr + offset, data, n);
		data += n;
		len -= n;
		offset = 0;
	}
}

/* Message number n takes receive n, which was posted, or the peer wouldn't have the credit. */
static int krc_place_send(struct krc_conn *c, const struct krc_dgram *d)
{
	const struct krc_rwr *r = krc_rwr_at(c, d->number);
	u32 posted;

	spin_lock_irq(&c->lock);
	posted = c->posted;
	spin_unlock_irq(&c->lock);
	if (d->number - c->filled >= posted - c->filled)
		return -EPROTO;
	if (d->total > r->room)
		return -EMSGSIZE;
	krc_place_recv(r, d->offset, d->data, d->len);
	return 0;
}

static int krc_place_write(struct krc_conn *c, const struct krc_dgram *d)
{
	struct krc_mr *mr;

	mr = krc_mr_use(c, d->rkey, d->addr + d->offset, d->len, KRC_ACCESS_REMOTE_WRITE);
	if (!mr)
		return -EACCES;
	krc_mr_copy(mr, d->addr + d->offset, d->data, d->len);
	krc_mr_put(mr);
	return 0;
}

static int krc_place_nothing(struct krc_conn *c, const struct krc_dgram *d)
{
	return 0;
}

static int (* const krc_places[KRC_TYPES])(struct krc_conn *c, const struct krc_dgram *d) = {
	[KRC_SEND]	= krc_place_send,
	[KRC_WRITE]	= krc_place_write,
	[KRC_READ]	= krc_place_nothing,
	[KRC_KEYS]	= krc_place_nothing,
};

/* --- keys of the peer --- */

/*
 * Keep a key by the index of its region, unless there is a newer one of the region: datagrams come
 * in any order. Two regions with the same slot take it from each other.
 */
static void krc_take_key(struct krc_conn *c, const struct krc_key *key)
{
	struct krc_key *slot = krc_key_slot(c, key->rkey);

	lockdep_assert_held(&c->lock);
	if (KRC_KEY_INDEX(slot->rkey) != KRC_KEY_INDEX(key->rkey) ||
	    (s32)(key->gen - slot->gen) > 0)
		*slot = *key;
}

/*
 * A key is of use only with the peer's address, so whatever it is, it names memory of the peer's
 * machine. Return: 0 or -EPROTO.
 */
static int krc_take_keys(struct krc_conn *c, const struct krc_dgram *d)
{
	const struct krc_wire_key *wire = d->keys;
	struct krc_key keys[KRC_KEYS_MAX];
	unsigned int i;

	if (!c->can_rma)
		return -EPROTO;
	for (i = 0; i < d->nkeys; i++)
		if (krc_parse_key(&wire[i], &keys[i]))
			return -EPROTO;
	spin_lock_irq(&c->lock);
	for (i = 0; i < d->nkeys; i++)
		krc_take_key(c, &keys[i]);
	spin_unlock_irq(&c->lock);
	return 0;
}

/* --- delivery, in order --- */

static int krc_deliver_send(struct krc_conn *c, const struct krc_early *e)
{
	struct krc_rwr *r = krc_rwr_at(c, c->filled);

	if (e->number != c->filled || e->offset != c->rx_at)
		return -EPROTO;
	c->rx_at += e->len;
	if (!(e->flags & KRC_LAST))
		return 0;
	r->bytes = c->rx_at;
	c->rx_at = 0;
	if (e->flags & KRC_INV) {
		if (krc_mr_invalidate(c, e->key, true, &r->turn))
			return -EACCES;
		r->inv = true;
		r->key = e->key;
	}
	c->filled++;
	return 0;
}

static int krc_deliver_read(struct krc_conn *c, const struct krc_early *e)
{
	if (c->serve_head - c->serve_tail >= c->ird)
		return -EPROTO;
	*krc_served_at(c, c->serve_head++) = (struct krc_served) {
		.number	= e->number,
		.key	= e->key,
		.addr	= e->addr,
		.total	= e->len,
	};
	return 0;
}

/* The peer's device would have written this much, if it could. */
static int krc_deliver_write(struct krc_conn *c, const struct krc_early *e)
{
	if (e->flags & KRC_LAST && e->offset + e->len >= krc_rma_min)
		c->only_read = 0;
	return 0;
}

static int krc_deliver(struct krc_conn *c, const struct krc_early *e)
{
	switch (e->type) {
	case KRC_SEND:
		return krc_deliver_send(c, e);
	case KRC_WRITE:
		return krc_deliver_write(c, e);
	case KRC_READ:
		return krc_deliver_read(c, e);
	}
	return 0;
}

/* Deliver all that has its turn. Return: 0 or a negative errno. */
static int krc_deliver_all(struct krc_conn *c)
{
	u32 i, mask = 2 * c->window - 1;
	int ret;

	lockdep_assert_held(&c->lock);
	/* A connection that was stopped gets nothing any more. */
	if (c->state > KRC_LIVE)
		return 0;
	while (test_bit(c->rx_next & mask, c->rx_have)) {
		i = c->rx_next++ & mask;
		__clear_bit(i, c->rx_have);
		ret = krc_deliver(c, &c->early[i]);
		if (ret)
			return ret;
	}
	return 0;
}

static int krc_take_counted(struct krc_conn *c, const struct krc_dgram *d)
{
	u32 i = d->seq & (2 * c->window - 1);
	int ret;

	if (d->seq - c->rx_next >= 2 * c->window || test_bit(i, c->rx_have))
		return -EPROTO;
	ret = krc_places[d->type](c, d);
	if (!ret && d->nkeys)
		ret = krc_take_keys(c, d);
	if (ret)
		return ret;
	c->early[i] = (struct krc_early) {
		.type	= d->type,
		.flags	= d->flags,
		.number	= d->number,
		.offset	= d->offset,
		.len	= d->type == KRC_READ ? d->total : d->len,
		.key	= d->type == KRC_READ ? d->rkey : d->arg,
		.addr	= d->addr,
	};
	__set_bit(i, c->rx_have);
	spin_lock_irq(&c->lock);
	ret = krc_deliver_all(c);
	spin_unlock_irq(&c->lock);
	return ret;
}

/* --- data of reads --- */

static struct krc_swr *krc_swr_of_read(struct krc_conn *c, const struct krc_dgram *d)
{
	u32 slot = KRC_READ_SLOT(d->number);
	struct krc_read *read = &c->reads[slot];
	struct krc_swr *w = NULL;

	spin_lock_irq(&c->lock);
	if (slot < c->ord && read->number == d->number)
		w = read->swr;
	spin_unlock_irq(&c->lock);
	return w && w->total == d->total ? w : NULL;
}

static int krc_place_data(struct krc_conn *c, const struct krc_swr *w, const struct krc_dgram *d)
{
	const struct krc_sge *sink = &w->sge[0];
	u64 addr = sink->addr + d->offset;
	struct krc_mr *mr;

	if (!sink->key) {
		memcpy((void *)(uintptr_t)addr, d->data, d->len);
		return 0;
	}
	mr = krc_mr_use(c, sink->key, addr, d->len, KRC_ACCESS_LOCAL_WRITE);
	if (!mr)
		return -EINVAL;
	krc_mr_copy(mr, addr, d->data, d->len);
	krc_mr_put(mr);
	return 0;
}

/* The read itself fails, which ends the connection. */
static void krc_read_fail(struct krc_conn *c, struct krc_swr *w, int err)
{
	w->err = err;
	krc_stop_locked(c, KRC_BY_REQUEST, err);
}

/* Return: 0 or -EPROTO. */
static int krc_read_add(struct krc_conn *c, struct krc_swr *w, const struct krc_dgram *d)
{
	int err;

	lockdep_assert_held(&c->lock);
	if (d->len > w->total - w->got)
		return -EPROTO;
	w->got += d->len;
	if (w->got < w->total)
		return 0;
	c->reads[KRC_READ_SLOT(d->number)].swr = NULL;
	c->nreads--;
	err = krc_read_end(c, w);
	if (err)
		krc_read_fail(c, w, err);
	return 0;
}

static int krc_take_data(struct krc_conn *c, const struct krc_dgram *d)
{
	struct krc_swr *w = krc_swr_of_read(c, d);
	int err, ret = 0;

	if (!w)
		return -EPROTO;
	err = d->flags & KRC_FAILED ? -EREMOTEIO : krc_place_data(c, w, d);
	spin_lock_irq(&c->lock);
	/* After the connection's end, the work request may be flushed. */
	if (c->state == KRC_LIVE) {
		if (err)
			krc_read_fail(c, w, err);
		else
			ret = krc_read_add(c, w, d);
	}
	spin_unlock_irq(&c->lock);
	return ret;
}

/* --- datagrams --- */

static void krc_take_credits(struct krc_conn *c, u32 credits)
{
	spin_lock_irq(&c->lock);
	if ((s32)(credits - c->peer_credits) > 0)
		c->peer_credits = credits;
	spin_unlock_irq(&c->lock);
}

/* Return: 0, or a negative errno if the peer has violated the protocol. */
static int krc_take(struct krc_conn *c, const struct krc_dgram *d)
{
	krc_take_credits(c, d->credits);
	switch (d->type) {
	case KRC_CREDIT:
		return 0;
	case KRC_DATA:
		return krc_take_data(c, d);
	}
	return krc_take_counted(c, d);
}

/**
 * krc_message() - handle a datagram
 * @q: the queue that it has come to
 * @buf: the datagram
 * @len: its length
 *
 * Context: Process or softirq. Never concurrently for one queue.
 */
void krc_message(struct krc_queue *q, const void *buf, size_t len)
{
	struct krc_dgram d = {};
	struct krc_conn *c;
	int ret;

	ret = krc_parse(buf, len, &d);
	rcu_read_lock();
	c = krc_conn_find(q, d.cookie);
	if (!c) {
		krc_count(ret ? KRC_COUNT_INVALID : KRC_COUNT_STRAY);
	} else {
		ret = ret ?: krc_take(c, &d);
		if (ret) {
			krc_count(KRC_COUNT_VIOLATIONS);
			krc_stop(c, KRC_BY_VIOLATION, ret);
		} else {
			krc_conn_dirty(c);
		}
	}
	rcu_read_unlock();
}
