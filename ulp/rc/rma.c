// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Transfers by the device: writes to memory of the peer, and reads of it, for which the peer has
 * announced a key. See conn.h.
 *
 * A transfer holds the memory of its work request. The request isn't complete, and the connection
 * isn't fenced, before the transfer has ended.
 *
 * A write begins ahead of its turn, a read in its turn. What the device reads must be what was
 * written before. So a read waits for the device's writes; and after data for the same key was sent
 * by datagrams, of which nobody tells when they are placed, reads of that key go by datagrams, too.
 */
#include <linux/kernel.h>
#include "conn.h"

/* A key of the device is known for the memory of a work request. */
static bool krc_rma_key(const struct krc_conn *c, const struct krc_swr *w)
{
	const struct krc_key *key = krc_key_slot(c, w->key);

	return KRC_KEY_INDEX(w->key) && key->rkey == w->key && key->key != KRC_NO_KEY &&
	       w->total && w->total <= c->queue->max_rma;
}

/* Slots of the device that a transfer of so many pieces takes. */
static u32 krc_rma_slots(u32 pieces)
{
	return min_t(u32, pieces, KRC_RMA_PIECES);
}

/*
 * The device's slots are divided, so that datagrams, registrations and invalidations don't wait for
 * transfers of peers that are dead. Of the slots for transfers, a connection may have at most as
 * many as it leaves. Return: true, or false if it must not have them now.
 */
static bool krc_rma_slots_get(struct krc_conn *c, u32 pieces)
{
	struct krc_queue *q = c->queue;
	u32 n = krc_rma_slots(pieces);
	bool got;

	lockdep_assert_held(&c->lock);
	spin_lock(&q->lock);
	got = c->rma_slots + n <= q->rma_slots;
	if (got)
		q->rma_slots -= n;
	spin_unlock(&q->lock);
	if (got)
		c->rma_slots += n;
	return got;
}

static void krc_rma_slots_put(struct krc_conn *c, u32 pieces)
{
	struct krc_queue *q = c->queue;
	u32 n = krc_rma_slots(pieces);

	lockdep_assert_held(&c->lock);
	c->rma_slots -= n;
	spin_lock(&q->lock);
	q->rma_slots += n;
	spin_unlock(&q->lock);
}

static void krc_rma_begin(struct krc_conn *c, struct krc_swr *w, struct krc_turn *turn)
{
	const struct krc_key *key = krc_key_slot(c, w->key);

	w->rma.iov.addr = w->raddr + key->delta;
	w->rma.iov.key = key->key;
	w->conn = c;
	w->started = true;
	w->issued = true;
	w->parts = 1;
	c->rmas++;
	turn->rmas[turn->nrmas++] = w;
}

/* --- writes --- */

static bool krc_swr_is_plain(const struct krc_swr *w)
{
	unsigned int i;

	for (i = 0; i < w->nsge; i++)
		if (w->sge[i].key)
			return false;
	return true;
}

/**
 * krc_rma_write() - have the device write, if it can
 * @c: the connection, locked, whose device writes
 * @w: the WRITE, which may have to wait for its turn
 * @turn: the turn, with room for the write
 *
 * Return: false if the write must wait until another transfer of the connection is complete. If
 * there is none, others have the slots, and the data is sent by datagrams.
 */
bool krc_rma_write(struct krc_conn *c, struct krc_swr *w, struct krc_turn *turn)
{
	lockdep_assert_held(&c->lock);
	if (!krc_rma_key(c, w) || w->flags & KRC_F_FENCE || !krc_swr_is_plain(w))
		return true;
	if (!krc_rma_slots_get(c, w->nsge))
		return !c->rmas;
	krc_rma_begin(c, w, turn);
	return true;
}

/**
 * krc_writes_done() - check whether the device has carried out what was to be written
 * @c: the connection, locked
 *
 * Return: true if it has carried out all writes before the request at krc_conn.next.
 */
bool krc_writes_done(struct krc_conn *c)
{
	struct krc_swr *w;

	lockdep_assert_held(&c->lock);
	if (!c->rmas)
		return true;
	if ((s32)(c->tail - c->written) > 0)
		c->written = c->tail;
	for (; c->written != c->next; c->written++) {
		w = krc_swr_at(c, c->written);
		if (w->op == KRC_OP_WRITE && w->started && w->parts)
			return false;
	}
	return true;
}

/**
 * krc_key_written() - remember that data for a key was sent by datagrams
 * @c: the connection, locked
 * @rkey: the key
 */
void krc_key_written(struct krc_conn *c, u32 rkey)
{
	struct krc_key *key = krc_key_slot(c, rkey);

	lockdep_assert_held(&c->lock);
	if (key->rkey == rkey)
		key->written = true;
}

/* --- reads --- */

/* Replace a sink by its memory, neighbours as one piece. Return: false if there is no room. */
static bool krc_sink_resolve(const struct krc_conn *c, struct krc_swr *w, const struct krc_mr *mr)
{
	const struct krc_sge sink = w->sge[0];
	struct krc_sge *last = NULL;
	u32 done, len;
	u64 at;

	w->nsge = 0;
	for (done = 0; done < w->total; done += len) {
		len = w->total - done;
		at = (uintptr_t)krc_mr_piece(mr, sink.addr + done, &len);
		if (last && at == last->addr + last->len) {
			last->len += len;
			continue;
		}
		if (w->nsge == krc_swr_room(c))
			return false;
		last = &w->sge[w->nsge++];
		*last = (struct krc_sge){ .addr = at, .len = len };
	}
	return true;
}

/**
 * krc_rma_read() - have the device read, if it can
 * @c: the connection, locked
 * @w: the READ, of which it is the turn
 * @turn: the turn
 *
 * Return: 0 if the device reads; 1 if the data must come by datagrams; -EAGAIN to wait; or -EINVAL
 * if the sink isn't valid.
 */
int krc_rma_read(struct krc_conn *c, struct krc_swr *w, struct krc_turn *turn)
{
	const struct krc_sge sink = w->sge[0];
	bool fits = true;

	lockdep_assert_held(&c->lock);
	if (!c->can_read || !krc_rma_key(c, w) || krc_key_slot(c, w->key)->written)
		return 1;
	if (turn->nrmas == ARRAY_SIZE(turn->rmas)) {
		turn->more = true;
		return -EAGAIN;
	}
	if (sink.key) {
		w->mr = krc_mr_use(c, sink.key, sink.addr, w->total, KRC_ACCESS_LOCAL_WRITE);
		if (!w->mr)
			return -EINVAL;
		fits = krc_sink_resolve(c, w, w->mr);
	}
	if (!fits || !krc_rma_slots_get(c, w->nsge)) {
		krc_mr_put(w->mr);
		w->mr = NULL;
		w->sge[0] = sink;
		w->nsge = 1;
		return fits && c->rmas ? -EAGAIN : 1;
	}
	c->nreads++;
	krc_rma_begin(c, w, turn);
	return 0;
}

/**
 * krc_rma_reads() - check whether the device is reading by a key
 * @c: the connection, locked
 * @rkey: the peer's key
 *
 * Return: true or false.
 */
bool krc_rma_reads(const struct krc_conn *c, u32 rkey)
{
	const struct krc_swr *w;
	u32 i;

	lockdep_assert_held(&c->lock);
	for (i = c->tail; c->rmas && i != c->next; i++) {
		w = krc_swr_at(c, i);
		if (w->op == KRC_OP_READ && w->started && w->parts && w->key == rkey)
			return true;
	}
	return false;
}

/* After the connection's end the request is flushed. */
static void krc_rma_read_done(struct krc_conn *c, struct krc_swr *w)
{
	c->nreads--;
	if (c->state != KRC_LIVE || w->err)
		return;
	w->err = krc_read_end(c, w);
	if (w->err)
		krc_stop_locked(c, KRC_BY_REQUEST, w->err);
}

/**
 * krc_rma_done() - handle the end of a transfer by the device
 * @w: the work request, from krc_net_rma()
 * @err: 0 or a negative errno
 *
 * Context: Process or softirq.
 */
void krc_rma_done(struct krc_swr *w, int err)
{
	struct krc_conn *c = w->conn;
	unsigned long flags;

	krc_count(w->op == KRC_OP_READ ? KRC_COUNT_READS : KRC_COUNT_WRITES);
	krc_mr_put(w->mr);
	spin_lock_irqsave(&c->lock, flags);
	w->parts--;
	w->err = w->err ?: err;
	if (err)
		krc_stop_locked(c, KRC_BY_FAULT, err);
	else
		krc_conn_dirty(c);
	if (w->op == KRC_OP_READ)
		krc_rma_read_done(c, w);
	krc_rma_slots_put(c, w->nsge);
	/* As in krc_sent(). */
	if (!--c->rmas)
		wake_up(&c->idle);
	spin_unlock_irqrestore(&c->lock, flags);
}
