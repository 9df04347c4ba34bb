// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Datagrams for work requests and for reads of the peer, and completions: see conn.h. krc_run()
 * does all that can be done for a connection. Datagrams are built under the connection's lock, at
 * most KRC_TURN of them, and sent without it, as are transfers by the device (rma.c).
 */
#include <linux/minmax.h>
#include <linux/string.h>
#include "conn.h"

/* --- datagrams --- */

/*
 * Number of datagrams that a connection may have: at most as many as it leaves. Those that are
 * spare go to connections that have none, so it takes many peers that don't take their datagrams
 * to stop the others. A connection that may have no more has one, after which it runs again.
 */
static u32 krc_bufs_max(const struct krc_queue *q)
{
	u32 nfree = READ_ONCE(q->nfree);

	return nfree > KRC_BUFS_SPARE ? max(nfree - KRC_BUFS_SPARE, KRC_BUFS_MIN + 0U) : 1;
}

static struct krc_buf *krc_buf_get(struct krc_conn *c)
{
	struct krc_queue *q = c->queue;
	struct krc_buf *buf = NULL;

	lockdep_assert_held(&c->lock);
	spin_lock(&q->lock);
	if (c->bufs < krc_bufs_max(q)) {
		buf = list_first_entry_or_null(&q->free, struct krc_buf, list);
		if (buf) {
			list_del(&buf->list);
			WRITE_ONCE(q->nfree, q->nfree - 1);
			/* It may have no use for another one, which somebody else waits for. */
			list_del_init(&c->starved);
		} else if (list_empty(&c->starved)) {
			list_add_tail(&c->starved, &q->starved);
		}
	}
	spin_unlock(&q->lock);
	if (!buf)
		return NULL;
	c->bufs++;
	buf->conn = c;
	buf->mr = NULL;
	buf->swr = NULL;
	buf->counted = false;
	buf->piece_len = 0;
	buf->head_len = KRC_HDR;
	return buf;
}

/**
 * krc_queue_feed() - have a connection run that waits for a datagram
 * @q: the queue, locked, with a datagram that is free
 */
void krc_queue_feed(struct krc_queue *q)
{
	struct krc_conn *c;

	lockdep_assert_held(&q->lock);
	c = list_first_entry_or_null(&q->starved, struct krc_conn, starved);
	if (!c)
		return;
	list_del_init(&c->starved);
	if (list_empty(&c->dirty))
		list_add_tail(&krc_conn_get(c)->dirty, &q->dirty);
	queue_work(krc_wq, &q->work);
}

static void krc_buf_free(struct krc_buf *buf)
{
	struct krc_queue *q = buf->queue;
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	list_add(&buf->list, &q->free);
	WRITE_ONCE(q->nfree, q->nfree + 1);
	krc_queue_feed(q);
	spin_unlock_irqrestore(&q->lock, flags);
}

/* A datagram that was built, but not sent, because its work request is wrong. */
static void krc_buf_drop(struct krc_conn *c, struct krc_buf *buf)
{
	krc_mr_put(buf->mr);
	krc_buf_free(buf);
	c->bufs--;
}

/* Complete a datagram's header, and have it sent. */
static void krc_turn_add(struct krc_conn *c, struct krc_turn *turn, struct krc_buf *buf,
			 struct krc_dgram *d)
{
	d->cookie = c->peer_cookie;
	d->credits = c->posted;
	c->told = c->posted;
	if (buf->counted) {
		buf->seq = c->tx_seq++;
		d->seq = buf->seq;
	}
	krc_build((struct krc_wire_dgram *)buf->head, d);
	list_add_tail(&buf->list, &turn->bufs);
	turn->n++;
}

static bool krc_window_full(const struct krc_conn *c)
{
	return c->tx_seq - c->tx_una >= c->window;
}

/* The datagrams before the oldest one that isn't sent have left the window. */
static void krc_window_sent(struct krc_conn *c, u32 seq)
{
	__set_bit(seq & (c->window - 1), c->tx_sent);
	while (c->tx_una != c->tx_seq && test_bit(c->tx_una & (c->window - 1), c->tx_sent))
		__clear_bit(c->tx_una++ & (c->window - 1), c->tx_sent);
}

/* --- work requests --- */

/* Memory at the current position of a work request. Return: NULL if a key isn't valid. */
static void *krc_memory_at(struct krc_conn *c, const struct krc_sge *sge, u32 *len,
			   struct krc_mr **mr)
{
	u64 addr = sge->addr + c->at_off;

	*mr = NULL;
	if (!sge->key)
		return (void *)(uintptr_t)addr;
	*mr = krc_mr_use(c, sge->key, addr, *len, 0);
	return *mr ? krc_mr_piece(*mr, addr, len) : NULL;
}

static void krc_position_add(struct krc_conn *c, const struct krc_sge *sge, u32 len)
{
	c->at += len;
	c->at_off += len;
	if (c->at_off < sge->len)
		return;
	c->at_off = 0;
	c->at_sge++;
}

/*
 * Put the next bytes of a work request into a datagram: short pieces are copied behind the header,
 * then one piece is sent from where it is. Return: the number of bytes, or -EINVAL.
 */
static int krc_gather(struct krc_conn *c, const struct krc_swr *w, struct krc_buf *buf)
{
	u32 len, room = c->room - (buf->head_len - KRC_HDR), copied = 0;
	const struct krc_sge *sge;
	struct krc_mr *mr;
	void *from;

	while (c->at_sge < w->nsge && room && !buf->piece_len) {
		sge = &w->sge[c->at_sge];
		len = min(sge->len - c->at_off, room);
		if (len) {
			from = krc_memory_at(c, sge, &len, &mr);
			if (!from)
				return -EINVAL;
			if (len <= KRC_COPY - copied) {
				memcpy(buf->head + buf->head_len + copied, from, len);
				copied += len;
				krc_mr_put(mr);
			} else {
				buf->piece = from;
				buf->piece_len = len;
				buf->mr = mr;
			}
			room -= len;
		}
		krc_position_add(c, sge, len);
	}
	buf->head_len += copied;
	return copied + buf->piece_len;
}

/* Add the keys for the peer. */
static void krc_gather_keys(const struct krc_conn *c, struct krc_buf *buf)
{
	struct krc_wire_key *wire = (struct krc_wire_key *)(buf->head + KRC_HDR);
	unsigned int i;

	for (i = 0; i < c->nnews; i++)
		krc_build_key(&wire[i], &c->news[i]);
	buf->head_len = KRC_HDR + c->nnews * sizeof(*wire);
}

/*
 * Build the next datagram of a message or a write, without its header. Return: the datagram, or
 * an error pointer: -EAGAIN, -EINVAL.
 */
static struct krc_buf *krc_issue_piece(struct krc_conn *c, struct krc_swr *w, struct krc_dgram *d)
{
	struct krc_buf *buf;
	int ret;

	buf = krc_window_full(c) ? NULL : krc_buf_get(c);
	if (!buf)
		return ERR_PTR(-EAGAIN);
	d->offset = c->at;
	d->total = w->total;
	if (d->nkeys)
		krc_gather_keys(c, buf);
	ret = krc_gather(c, w, buf);
	if (ret < 0) {
		krc_buf_drop(c, buf);
		return ERR_PTR(ret);
	}
	if (c->at == w->total) {
		d->flags = KRC_LAST;
		w->issued = true;
	}
	buf->counted = true;
	buf->swr = w;
	w->parts++;
	return buf;
}

/* Functions for operations build one datagram. Return: 0, -EAGAIN to wait, or a negative errno. */

static int krc_issue_send(struct krc_conn *c, struct krc_swr *w, struct krc_turn *turn)
{
	struct krc_dgram d = { .type = KRC_SEND, .number = c->tx_msgs, .nkeys = c->nnews };
	struct krc_buf *buf;

	if ((s32)(c->peer_credits - c->tx_msgs) <= 0 || !krc_writes_done(c))
		return -EAGAIN;
	if (w->flags & KRC_F_INV && krc_rma_reads(c, w->key))
		return -EAGAIN;
	buf = krc_issue_piece(c, w, &d);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	c->nnews = 0;
	if (w->issued) {
		c->tx_msgs++;
		if (w->flags & KRC_F_INV) {
			d.flags |= KRC_INV;
			d.arg = w->key;
		}
	}
	krc_turn_add(c, turn, buf, &d);
	return 0;
}

static int krc_issue_write(struct krc_conn *c, struct krc_swr *w, struct krc_turn *turn)
{
	struct krc_dgram d = { .type = KRC_WRITE, .rkey = w->key, .addr = w->raddr };
	struct krc_buf *buf;

	if (!w->total) {
		w->issued = true;
		return 0;
	}
	buf = krc_issue_piece(c, w, &d);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	krc_key_written(c, w->key);
	krc_turn_add(c, turn, buf, &d);
	return 0;
}

/* A free slot, which there is. */
static struct krc_read *krc_read_get(struct krc_conn *c, struct krc_swr *w)
{
	u32 slot;

	for (slot = 0; c->reads[slot].swr; slot++)
		;
	c->nreads++;
	c->reads[slot].swr = w;
	c->reads[slot].number = KRC_READ_NUMBER(c->read_gen++, slot);
	return &c->reads[slot];
}

/* The sink of a READ with KRC_F_INV is its first piece. */
static int krc_issue_read(struct krc_conn *c, struct krc_swr *w, struct krc_turn *turn)
{
	struct krc_dgram d = {
		.type = KRC_READ, .rkey = w->key, .addr = w->raddr, .total = w->total,
	};
	struct krc_read *read;
	struct krc_buf *buf;
	int ret;

	if (w->flags & KRC_F_INV)
		w->sink = w->sge[0].key;
	if (!w->total) {
		w->issued = true;
		return krc_read_end(c, w);
	}
	/* The peer serves none at all. */
	if (!c->ord)
		return -EINVAL;
	if (c->nreads >= c->ord || !krc_writes_done(c))
		return -EAGAIN;
	ret = krc_rma_read(c, w, turn);
	if (ret <= 0)
		return ret;
	if (krc_window_full(c))
		return -EAGAIN;
	buf = krc_buf_get(c);
	if (!buf)
		return -EAGAIN;
	read = krc_read_get(c, w);
	d.number = read->number;
	buf->counted = true;
	buf->swr = w;
	w->parts++;
	w->issued = true;
	krc_turn_add(c, turn, buf, &d);
	return 0;
}

/* Send keys, to have room for more of them. Return: 0 or -EAGAIN. */
static int krc_issue_keys(struct krc_conn *c, struct krc_turn *turn)
{
	struct krc_dgram d = { .type = KRC_KEYS, .nkeys = c->nnews };
	struct krc_buf *buf;

	buf = krc_window_full(c) ? NULL : krc_buf_get(c);
	if (!buf)
		return -EAGAIN;
	krc_gather_keys(c, buf);
	buf->counted = true;
	c->nnews = 0;
	krc_turn_add(c, turn, buf, &d);
	return 0;
}

/* Return: as krc_mr_register(), but not 1. */
static int krc_reg_begin(struct krc_conn *c, struct krc_swr *w)
{
	int ret = krc_mr_register(c, &w->map, w->grant, &w->turn);

	if (ret < 0)
		return ret;
	w->started = true;
	w->tell = ret && krc_grantable(c);
	return 0;
}

/* The peer is told of the key before the ULP can tell it of the region. */
static int krc_issue_reg(struct krc_conn *c, struct krc_swr *w, struct krc_turn *turn)
{
	struct krc_key key;
	int ret;

	ret = w->started ? 0 : krc_reg_begin(c, w);
	if (!ret && w->tell && c->nnews == KRC_KEYS_MAX)
		ret = krc_issue_keys(c, turn);
	if (ret)
		return ret == -EBUSY ? -EAGAIN : ret;
	if (w->tell) {
		ret = krc_mr_key(c, &w->turn, &key);
		if (ret < 0)
			return ret;
		if (ret)
			c->news[c->nnews++] = key;
	}
	w->issued = true;
	return 0;
}

static int krc_issue_inval(struct krc_conn *c, struct krc_swr *w, struct krc_turn *turn)
{
	int ret = krc_mr_invalidate(c, w->key, false, &w->turn);

	if (ret)
		return ret;
	w->ending = true;
	w->issued = true;
	return 0;
}

static int (* const krc_issues[])(struct krc_conn *c, struct krc_swr *w, struct krc_turn *turn) = {
	[KRC_OP_SEND]	= krc_issue_send,
	[KRC_OP_WRITE]	= krc_issue_write,
	[KRC_OP_READ]	= krc_issue_read,
	[KRC_OP_REG]	= krc_issue_reg,
	[KRC_OP_INVAL]	= krc_issue_inval,
};

/* --- what begins ahead of its turn --- */

/*
 * A region that the next request reads into isn't for the peer, although on iWARP that takes the
 * right to write.
 */
static bool krc_reg_is_sink(const struct krc_conn *c, u32 i)
{
	const struct krc_swr *w = krc_swr_at(c, i), *next = krc_swr_at(c, i + 1);

	return i + 1 != c->head && next->op == KRC_OP_READ && next->nsge &&
	       next->sge[0].key == w->map.key;
}

/* If the region can't be registered yet, it will be in its turn. */
static void krc_start_reg(struct krc_conn *c, struct krc_swr *w)
{
	w->grant = w->map.length >= krc_rma_min && w->map.access & krc_grantable(c) &&
		   c->only_read < KRC_ONLY_READ && !krc_reg_is_sink(c, c->ahead);
	if (w->grant)
		krc_reg_begin(c, w);
}

/*
 * The device registers and writes as soon as it is asked to. Data that is written may arrive before
 * what was sent earlier, as with datagrams. But a region isn't registered ahead of invalidations,
 * of which one may be its own.
 */
static void krc_start(struct krc_conn *c, struct krc_turn *turn)
{
	struct krc_swr *w;
	u32 n;

	if ((s32)(c->next - c->ahead) > 0)
		c->ahead = c->next;
	for (n = 0; c->ahead != c->head && n < KRC_TURN; n++, c->ahead++) {
		w = krc_swr_at(c, c->ahead);
		if (w->op == KRC_OP_INVAL)
			break;
		if (w->op == KRC_OP_WRITE && c->can_write && !krc_rma_write(c, w, turn))
			break;
		if (w->op == KRC_OP_REG)
			krc_start_reg(c, w);
	}
	turn->more = n == KRC_TURN;
}

/* Leaves half of the turn to reads of the peer. Return: 0, or the error of a work request. */
static int krc_issue(struct krc_conn *c, struct krc_turn *turn)
{
	struct krc_swr *w;
	int ret;

	while (c->next != c->head && turn->n < KRC_TURN / 2) {
		w = krc_swr_at(c, c->next);
		if (w->flags & KRC_F_FENCE && c->nreads)
			break;
		/* krc_start() comes first, and stops at these. */
		if (c->can_rma && c->next == c->ahead && w->op != KRC_OP_INVAL)
			break;
		/* The device may write already. */
		ret = w->issued ? 0 : krc_issues[w->op](c, w, turn);
		if (ret == -EAGAIN)
			break;
		if (ret) {
			w->err = ret;
			return ret;
		}
		if (!w->issued)
			continue;
		c->next++;
		c->at_sge = 0;
		c->at_off = 0;
		c->at = 0;
		/* Requests behind it may begin now: krc_start(). */
		if (w->op == KRC_OP_INVAL && c->can_rma) {
			turn->more = true;
			break;
		}
	}
	return 0;
}

/**
 * krc_read_end() - handle the end of a read's data
 * @c: the connection, locked
 * @w: the read
 *
 * Return: 0, or -EINVAL if its sink can't be invalidated.
 */
int krc_read_end(struct krc_conn *c, struct krc_swr *w)
{
	lockdep_assert_held(&c->lock);
	w->read = true;
	if (!(w->flags & KRC_F_INV))
		return 0;
	w->ending = true;
	return krc_mr_invalidate(c, w->sink, false, &w->turn);
}

/* --- reads of the peer --- */

static void krc_serve_end(struct krc_conn *c, struct krc_served *s)
{
	krc_mr_put(s->mr);
	s->mr = NULL;
	c->serve_tail++;
}

/* Send the next data of the oldest read. Return: false if it must wait. */
static bool krc_serve_piece(struct krc_conn *c, struct krc_served *s, struct krc_turn *turn)
{
	struct krc_dgram d = { .type = KRC_DATA, .number = s->number, .total = s->total };
	struct krc_buf *buf = NULL;
	u32 len;

	/* However many reads there are, messages and credits have some datagrams, or the next. */
	if (!c->bufs || c->bufs + KRC_BUFS_KEPT < krc_bufs_max(c->queue))
		buf = krc_buf_get(c);
	if (!buf)
		return false;
	if (!s->mr)
		s->mr = krc_mr_use(c, s->key, s->addr, s->total, KRC_ACCESS_REMOTE_READ);
	if (!s->mr) {
		/* The answer still goes out, but it is the last one: a peer doesn't try keys. */
		d.flags = KRC_FAILED;
		krc_serve_end(c, s);
		krc_count(KRC_COUNT_VIOLATIONS);
		krc_stop_locked(c, KRC_BY_VIOLATION, -EACCES);
	} else {
		len = min(s->total - s->done, c->room);
		d.offset = s->done;
		buf->piece = krc_mr_piece(s->mr, s->addr + s->done, &len);
		buf->piece_len = len;
		buf->mr = s->mr;
		krc_mr_hold(s->mr);
		s->done += len;
		if (s->done == s->total) {
			d.flags = KRC_LAST;
			krc_serve_end(c, s);
		}
	}
	krc_turn_add(c, turn, buf, &d);
	return true;
}

static void krc_serve(struct krc_conn *c, struct krc_turn *turn)
{
	while (c->state == KRC_LIVE && c->serve_tail != c->serve_head && turn->n < KRC_TURN)
		if (!krc_serve_piece(c, krc_served_at(c, c->serve_tail), turn))
			break;
}

/* --- credits --- */

/**
 * krc_credit_due() - check whether the peer should be told of receives
 * @c: the connection, locked
 *
 * Return: true if many were posted, or if the peer can send no message before it is told.
 */
bool krc_credit_due(const struct krc_conn *c)
{
	u32 news = c->posted - c->told;

	return news && (news >= max(8U, c->max_recv / 4) || (s32)(c->told - c->filled) <= 0);
}

static void krc_credit(struct krc_conn *c, struct krc_turn *turn)
{
	struct krc_dgram d = { .type = KRC_CREDIT };
	struct krc_buf *buf;

	if (!krc_credit_due(c))
		return;
	buf = krc_buf_get(c);
	if (!buf)
		return;
	buf->head_len = KRC_HDR_SHORT;
	krc_turn_add(c, turn, buf, &d);
}

/* --- completions --- */

static bool krc_swr_done(const struct krc_conn *c, const struct krc_swr *w)
{
	return w->issued && !w->parts && !w->err && (w->op != KRC_OP_READ || w->read) &&
	       !(w->ending && krc_mr_busy(c->mrs, &w->turn));
}

static bool krc_rwr_done(const struct krc_conn *c, const struct krc_rwr *r)
{
	return !(r->inv && krc_mr_busy(c->mrs, &r->turn));
}

/* Complete in order, up to the first that isn't done. */
static void krc_retire(struct krc_conn *c)
{
	struct krc_swr *w;

	while (c->tail != c->next) {
		w = krc_swr_at(c, c->tail);
		if (!krc_swr_done(c, w))
			break;
		if (w->flags & KRC_F_SIGNALED)
			krc_up_sent(c, w, 0);
		c->tail++;
	}
	while (c->done != c->filled && !c->holds && krc_rwr_done(c, krc_rwr_at(c, c->done)))
		krc_up_received(c, krc_rwr_at(c, c->done++), 0);
}

static void krc_flush_send(struct krc_conn *c)
{
	struct krc_swr *w = krc_swr_at(c, c->tail++);

	if (!c->flushing && krc_swr_done(c, w)) {
		if (w->flags & KRC_F_SIGNALED)
			krc_up_sent(c, w, 0);
		return;
	}
	c->flushing = true;
	krc_up_sent(c, w, w->err ?: -ECANCELED);
}

/* A receive that has its message is complete, unless that waits for a region, or for the ULP. */
static void krc_flush_recv(struct krc_conn *c)
{
	struct krc_rwr *r = krc_rwr_at(c, c->done);

	if (c->done == c->filled || c->holds || !krc_rwr_done(c, r)) {
		c->filled = c->done + 1;
		krc_up_received(c, r, -ECANCELED);
	} else {
		krc_up_received(c, r, 0);
	}
	c->done++;
}

/*
 * Nobody reaches memory of the connection any more: complete everything, sends first, but not too
 * much with interrupts off. Return: true if there is more.
 */
static bool krc_flush(struct krc_conn *c)
{
	u32 n = KRC_FLUSH;

	for (; c->tail != c->head && n; n--)
		krc_flush_send(c);
	for (; c->tail == c->head && c->done != c->posted && n; n--)
		krc_flush_recv(c);
	c->next = c->head;
	return c->tail != c->head || c->done != c->posted;
}

/* Return: true if there is more to do. */
static bool krc_turn_build(struct krc_conn *c, struct krc_turn *turn)
{
	int ret;

	lockdep_assert_held(&c->lock);
	switch (c->state) {
	case KRC_LIVE:
		if (c->can_rma)
			krc_start(c, turn);
		ret = krc_issue(c, turn);
		if (ret)
			krc_stop_locked(c, KRC_BY_REQUEST, ret);
		krc_serve(c, turn);
		krc_credit(c, turn);
		fallthrough;
	case KRC_OPEN:
		krc_retire(c);
		break;
	case KRC_FENCED:
		return krc_flush(c);
	default:
		break;
	}
	return turn->n >= KRC_TURN / 2 || turn->more;
}

/**
 * krc_run_turns() - do all that can be done for a connection, but call no handlers
 * @c: the connection
 *
 * Context: Process or softirq; with interrupts off only if krc_conn.queue isn't set.
 */
void krc_run_turns(struct krc_conn *c)
{
	struct krc_buf *buf, *next;
	struct krc_turn turn;
	unsigned long flags;
	bool more;
	u32 i;

	do {
		INIT_LIST_HEAD(&turn.bufs);
		turn.n = 0;
		turn.nrmas = 0;
		turn.more = false;
		spin_lock_irqsave(&c->lock, flags);
		more = krc_turn_build(c, &turn);
		spin_unlock_irqrestore(&c->lock, flags);
		list_for_each_entry_safe(buf, next, &turn.bufs, list)
			krc_net_send(buf);
		for (i = 0; i < turn.nrmas; i++)
			krc_net_rma(turn.rmas[i]);
		if (READ_ONCE(c->queue))
			krc_grants_go(c->queue);
	} while (more);
}

/**
 * krc_run() - do all that can be done for a connection
 * @c: the connection, with a reference of the caller's
 *
 * Context: Process or softirq, without locks of the ULP.
 */
void krc_run(struct krc_conn *c)
{
	krc_run_turns(c);
	krc_up_notify(c);
}

/**
 * krc_sent() - handle the end of a datagram
 * @buf: the datagram, from krc_net_send()
 * @err: 0 or a negative errno
 *
 * Context: Process or softirq.
 */
void krc_sent(struct krc_buf *buf, int err)
{
	struct krc_conn *c = buf->conn;
	struct krc_swr *w = buf->swr;
	bool counted = buf->counted;
	u32 seq = buf->seq;
	unsigned long flags;

	krc_mr_put(buf->mr);
	krc_buf_free(buf);
	spin_lock_irqsave(&c->lock, flags);
	if (counted)
		krc_window_sent(c, seq);
	if (w) {
		w->parts--;
		w->err = w->err ?: err;
	}
	if (err)
		krc_stop_locked(c, KRC_BY_FAULT, err);
	else
		krc_conn_dirty(c);
	/* The connection may be freed as soon as it has no datagram and isn't locked. */
	if (!--c->bufs)
		wake_up(&c->idle);
	spin_unlock_irqrestore(&c->lock, flags);
}
