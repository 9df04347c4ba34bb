// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages and writes of kofi_rc: datagrams that arrive in any order, the window, credits, and the
 * order of completions.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include "crew.h"
#include "rc_scene.h"

#define PIECES	5

/* The next permutation in lexical order. Return: false after the last one. */
static bool permute(unsigned int *p, unsigned int n)
{
	unsigned int i = n - 1, j = n - 1;

	while (i && p[i - 1] >= p[i])
		i--;
	if (!i)
		return false;
	while (p[j] <= p[i - 1])
		j--;
	swap(p[i - 1], p[j]);
	for (j = n - 1; i < j; i++, j--)
		swap(p[i], p[j]);
	return true;
}

/* Post receives of b, of 512 bytes each, and tell a. Their ids are the numbers from @id on. */
static void give(struct kunit *test, u64 id, unsigned int n)
{
	for (; n--; id++)
		KUNIT_ASSERT_EQ(test, rc_recv(&rc->b, id, rc->b.memory + (id % 16) * 512, 512), 0);
	while (rc->b.nsent)
		rc_arrive(&rc->b, 0);
	rc->a.c.peer_credits = rc->b.c.posted;
}

static u8 krc_type(const struct krc_buf *buf)
{
	return ((const struct krc_wire_dgram *)buf->head)->type;
}

/* Five messages in each of the 120 orders: receives complete in order, with the right data. */
static void seq_orders(struct kunit *test)
{
	unsigned int i, j, order[PIECES] = { 0, 1, 2, 3, 4 }, base = 0;
	struct krc_buf *bufs[PIECES];

	rc_connect(test);
	do {
		give(test, base, PIECES);
		for (i = 0; i < PIECES; i++)
			KUNIT_ASSERT_EQ(test, rc_send(&rc->a, base + i, rc->a.memory + base + i,
						      300 + i), 0);
		KUNIT_ASSERT_EQ(test, rc->a.nsent, PIECES);
		for (i = 0; i < PIECES; i++)
			bufs[i] = rc_nth(&rc->a, i);
		rc->b.n = 0;
		rc->b.seen = 0;
		for (i = 0; i < PIECES; i++)
			rc_deliver(&rc->a, bufs[order[i]]);
		KUNIT_ASSERT_EQ(test, rc->b.n, PIECES);
		for (i = 0; i < PIECES; i++) {
			RC_EXPECT(test, &rc->b, i, base + i, 0);
			KUNIT_EXPECT_EQ(test, rc->b.log[i].bytes, 300 + i);
			j = (base + i) % 16;
			KUNIT_EXPECT_EQ(test, memcmp(rc->b.memory + j * 512,
						     rc->a.memory + base + i, 300 + i), 0);
		}
		rc->a.n = 0;
		rc->a.seen = 0;
		for (i = 0; i < PIECES; i++)
			rc_end(&rc->a, bufs[order[i]], 0);
		rc_runs();
		/* Sends complete in the order in which they were posted. */
		for (i = 0; i < PIECES; i++)
			RC_EXPECT(test, &rc->a, i, base + i, 0);
		base += PIECES;
	} while (permute(order, PIECES));
	KUNIT_EXPECT_EQ(test, base, 120U * PIECES);
	KUNIT_EXPECT_EQ(test, rc->a.stops + rc->b.stops, 0U);
}

/* A message of many datagrams, the last of which comes first. */
static void seq_segments(struct kunit *test)
{
	u32 len = 20000;
	u8 *to = rc->b.memory;

	rc_connect(test);
	rc_recv(&rc->b, 1, to, len);
	rc_all();
	rc_send(&rc->a, 2, rc->a.memory + 1, len);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 5U);
	while (rc->a.nsent > 1) {
		rc_arrive(&rc->a, rc->a.nsent - 1);
		KUNIT_EXPECT_EQ(test, rc->b.n, 0U);
		KUNIT_EXPECT_EQ(test, rc->a.n, 0U);
	}
	rc_arrive(&rc->a, 0);
	RC_EXPECT(test, &rc->b, 0, 1, 0);
	RC_EXPECT(test, &rc->a, 0, 2, 0);
	KUNIT_EXPECT_EQ(test, rc->b.log[0].bytes, len);
	KUNIT_EXPECT_EQ(test, memcmp(to, rc->a.memory + 1, len), 0);
}

/* Pieces of memory: short ones are copied, one is sent from where it is, and none is left out. */
static void seq_pieces(struct kunit *test)
{
	static const u32 lens[][4] = {
		{ 64, 0, 0, 0 }, { 64, 512, 0, 0 }, { 64, 64, 64, 64 }, { 200, 200, 200, 200 },
		{ 0, 0, 0, 0 }, { 0, 5, 0, 7 }, { 5000, 1, 5000, 1 }, { 64, 4096, 4096, 1 },
		{ KRC_COPY, KRC_COPY, 1, 1 }, { KRC_COPY + 1, 1, 4496, 3 },
	};
	struct krc_swr w = { .op = KRC_OP_SEND, .flags = KRC_F_SIGNALED, .nsge = 4 };
	unsigned int i, j, at;
	struct krc_sge sge[4];
	u8 *to = rc->b.memory;

	rc_connect(test);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		rc_recv(&rc->b, i, to, RC_MEMORY);
		rc_all();
		w.total = 0;
		for (j = 0; j < 4; j++) {
			sge[j] = (struct krc_sge) {
				.addr = (uintptr_t)rc->a.memory + j * 8192, .len = lens[i][j],
			};
			w.total += lens[i][j];
		}
		w.id = i;
		rc_post(&rc->a, &w, sge);
		rc_all();
		RC_EXPECT(test, &rc->b, i, i, 0);
		KUNIT_EXPECT_EQ(test, rc->b.log[i].bytes, w.total);
		for (j = 0, at = 0; j < 4; at += lens[i][j++])
			KUNIT_EXPECT_EQ_MSG(test, memcmp(to + at, rc->a.memory + j * 8192,
							 lens[i][j]), 0, "%u %u", i, j);
	}
}

/* A receive of several pieces takes a message across their borders. */
static void seq_scattered(struct kunit *test)
{
	struct krc_rwr r = { .id = 1, .room = 300 + 0 + 5000 + 100, .nsge = 4 };
	static const u32 lens[] = { 300, 0, 5000, 100 };
	u32 i, at;

	rc_connect(test);
	for (i = 0; i < 4; i++)
		r.sge[i] = (struct krc_sge){ (uintptr_t)rc->b.memory + i * 8192, lens[i] };
	spin_lock_irq(&rc->b.c.lock);
	KUNIT_EXPECT_EQ(test, krc_rq_add(&rc->b.c, &r), 0);
	spin_unlock_irq(&rc->b.c.lock);
	krc_conn_push(&rc->b.c);
	rc_all();
	rc_send(&rc->a, 2, rc->a.memory, 5350);
	rc_all();
	RC_EXPECT(test, &rc->b, 0, 1, 0);
	for (i = 0, at = 0; i < 4; at += lens[i++])
		KUNIT_EXPECT_EQ(test, memcmp(rc->b.memory + i * 8192, rc->a.memory + at,
					     min(lens[i], 5350 - at)), 0);
}

/* Datagrams overtake the oldest one, while counters pass their end. */
static void seq_overtaken(struct kunit *test)
{
	struct krc_buf *first;
	unsigned int i;

	rc_connect(test);
	rc->a.c.tx_seq = -5;
	rc->a.c.tx_una = -5;
	rc->b.c.rx_next = -5;
	give(test, 0, 1);
	rc_send(&rc->a, 0, rc->a.memory, 10);
	first = rc_nth(&rc->a, 0);
	for (i = 1; i < RC_RECVS; i++) {
		give(test, i, 1);
		KUNIT_ASSERT_EQ(test, rc_send(&rc->a, i, rc->a.memory, 10), 0);
		KUNIT_ASSERT_EQ(test, rc->a.nsent, 2U);
		rc_arrive(&rc->a, 1);
	}
	KUNIT_EXPECT_EQ(test, rc->a.c.tx_seq - rc->a.c.tx_una, RC_RECVS + 0U);
	KUNIT_EXPECT_EQ(test, rc->a.n, 0U);
	KUNIT_EXPECT_EQ(test, rc->b.n, 0U);
	rc_deliver(&rc->a, first);
	KUNIT_EXPECT_EQ(test, rc->b.n, RC_RECVS + 0U);
	rc_end(&rc->a, first, 0);
	rc_runs();
	KUNIT_EXPECT_EQ(test, rc->a.n, RC_RECVS + 0U);
	KUNIT_EXPECT_EQ(test, rc->a.c.tx_seq, rc->a.c.tx_una);
}

/* A message, a write, a read, and requests for a region, each with the last number of all. */
static void requests_wrap(struct kunit *test)
{
	const u32 access = KRC_ACCESS_REMOTE_WRITE | KRC_ACCESS_REMOTE_READ;
	struct krc_conn *c = &rc->a.c;
	struct krc_mr *mr, *own;
	unsigned int i;

	rc_connect(test);
	mr = rc_mr(test, &rc->b, rc->b.memory, 4);
	own = rc_mr(test, &rc->a, rc->a.memory, 4);
	rc_reg(&rc->b, 1, mr, 0, 4 * PAGE_SIZE, access);
	give(test, 2, 1);
	for (i = 0; i < 5; i++) {
		c->head = U32_MAX;
		c->next = U32_MAX;
		c->tail = U32_MAX;
		if (i == 0)
			rc_send(&rc->a, i, rc->a.memory, 100);
		else if (i == 1)
			rc_write(&rc->a, i, rc->a.memory, 100, rc_key(mr), 0);
		else if (i == 2)
			rc_read(&rc->a, i, rc->a.memory, 100, rc_key(mr), 0);
		else if (i == 3)
			rc_reg(&rc->a, i, own, 0, 4 * PAGE_SIZE, access);
		else
			rc_inval(&rc->a, i, rc_key(own));
		rc_all();
		RC_EXPECT(test, &rc->a, i, i, 0);
		KUNIT_EXPECT_EQ(test, c->tail, 0U);
	}
	KUNIT_EXPECT_EQ(test, rc->a.stops + rc->b.stops, 0U);
}

/* The peer's reads pass their last number, and their limit isn't a power of two. */
static void reads_wrap(struct kunit *test)
{
	struct krc_mr *mr;
	LIST_HEAD(taken);
	unsigned int i;

	rc_connect(test);
	mr = rc_mr(test, &rc->b, rc->b.memory, 4);
	rc_reg(&rc->b, 1, mr, 0, 4 * PAGE_SIZE, KRC_ACCESS_REMOTE_READ);
	memset(rc->b.memory, 1, 3 * PAGE_SIZE);
	rc->b.c.ird = 3;
	rc->b.c.serve_head = -2;
	rc->b.c.serve_tail = -2;
	/* None is served before all have come. */
	rc_take_bufs(&rc->b, &taken, 0);
	for (i = 0; i < 3; i++)
		rc_read(&rc->a, i, rc->a.memory + i * PAGE_SIZE, PAGE_SIZE, rc_key(mr),
			i * PAGE_SIZE);
	KUNIT_ASSERT_EQ(test, rc->a.nsent, 3U);
	while (rc->a.nsent)
		rc_arrive(&rc->a, 0);
	rc_give_bufs(&rc->b, &taken);
	krc_run(&rc->b.c);
	rc_all();
	for (i = 0; i < 3; i++)
		RC_EXPECT(test, &rc->a, i, i, 0);
	KUNIT_EXPECT_EQ(test, memcmp(rc->a.memory, rc->b.memory, 3 * PAGE_SIZE), 0);
	KUNIT_EXPECT_EQ(test, rc->a.stops + rc->b.stops, 0U);
}

/* While the oldest datagram isn't sent, the window is full. */
static void seq_window_full(struct kunit *test)
{
	struct krc_buf *first;

	rc_connect(test);
	rc->a.c.window = 8;
	rc->b.c.window = 8;
	rc_recv(&rc->b, 0, rc->b.memory, RC_MEMORY);
	rc_all();
	rc_send(&rc->a, 0, rc->a.memory, 65000);
	KUNIT_EXPECT_EQ(test, rc->a.total, 8U);
	first = rc_nth(&rc->a, 0);
	rc_deliver(&rc->a, first);
	while (rc->a.nsent > 1)
		rc_arrive(&rc->a, 1);
	KUNIT_EXPECT_EQ(test, rc->a.total, 8U);
	rc_end(&rc->a, first, 0);
	rc_runs();
	KUNIT_EXPECT_EQ(test, rc->a.total, 15U);
	rc_all();
	RC_EXPECT(test, &rc->b, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, memcmp(rc->b.memory, rc->a.memory, 65000), 0);
}

/* Without a receive a message waits; its receive is announced at once. */
static void credit_waits(struct kunit *test)
{
	rc_connect(test);
	rc_send(&rc->a, 1, rc->a.memory, 10);
	rc_send(&rc->a, 2, rc->a.memory, 10);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 0U);
	rc_recv(&rc->b, 3, rc->b.memory, 512);
	KUNIT_EXPECT_EQ(test, rc->b.nsent, 1U);
	rc_arrive(&rc->b, 0);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 1U);
	rc_all();
	RC_EXPECT(test, &rc->b, 0, 3, 0);
	KUNIT_EXPECT_EQ(test, rc->a.n, 1U);
	rc_recv(&rc->b, 4, rc->b.memory, 512);
	rc_all();
	RC_EXPECT(test, &rc->a, 1, 2, 0);
	RC_EXPECT(test, &rc->b, 1, 4, 0);
}

/* A peer that can send is told of many receives at a time, or along with other datagrams. */
static void credit_thrift(struct kunit *test)
{
	unsigned int i;

	rc_connect(test);
	rc_recv(&rc->b, 0, rc->b.memory, 512);
	rc_all();
	KUNIT_EXPECT_EQ(test, rc->b.total, 1U);
	for (i = 1; i < 8; i++)
		rc_recv(&rc->b, i, rc->b.memory, 512);
	KUNIT_EXPECT_EQ(test, rc->b.total, 1U);
	rc_recv(&rc->b, 8, rc->b.memory, 512);
	KUNIT_EXPECT_EQ(test, rc->b.total, 2U);
	rc_all();
	KUNIT_EXPECT_EQ(test, rc->a.c.peer_credits, 9U);
	/* A message of b tells it, too. */
	rc_recv(&rc->b, 9, rc->b.memory, 512);
	rc_recv(&rc->a, 10, rc->a.memory, 512);
	rc_all();
	rc_send(&rc->b, 11, rc->b.memory, 1);
	rc_all();
	KUNIT_EXPECT_EQ(test, rc->a.c.peer_credits, 10U);
	KUNIT_EXPECT_EQ(test, rc->b.total, 3U);
}

/* More messages than receives, for long: each finds its receive. */
static void credit_scarce(struct kunit *test)
{
	unsigned int i, n;

	rc_connect(test);
	for (i = 0; i < 200; i++) {
		n = i % 3;
		rc->a.n = 0;
		rc->b.n = 0;
		rc_send(&rc->a, i, rc->a.memory + i, 100);
		while (n--)
			rc_runs();
		rc_recv(&rc->b, i, rc->b.memory, 100);
		rc_all();
		RC_EXPECT(test, &rc->b, 0, i, 0);
		RC_EXPECT(test, &rc->a, 0, i, 0);
	}
}

/* The passive side takes messages before it may send. */
static void open_is_quiet(struct kunit *test)
{
	struct krc_side a, b;
	struct krc_peer peer = { .queue = &rc->b.q, .max_msg = 8928 };

	KUNIT_ASSERT_EQ(test, krc_conn_prepare(&rc->a.c, 4, 4), 0);
	krc_conn_describe(&rc->a.c, &a);
	a.datagram = 4608;
	a.credits = 1;
	peer.side = a;
	rc_recv(&rc->b, 1, rc->b.memory, 512);
	KUNIT_ASSERT_EQ(test, krc_conn_prepare(&rc->b.c, 4, 4), 0);
	KUNIT_ASSERT_EQ(test, krc_conn_open(&rc->b.c, &peer, false), 0);
	krc_conn_describe(&rc->b.c, &b);
	b.datagram = 4608;
	KUNIT_EXPECT_EQ(test, b.credits, 1U);
	peer = (struct krc_peer){ .queue = &rc->a.q, .max_msg = 8928, .side = b };
	KUNIT_ASSERT_EQ(test, krc_conn_open(&rc->a.c, &peer, true), 0);
	rc_send(&rc->b, 2, rc->b.memory, 1);
	rc_send(&rc->a, 3, rc->a.memory, 1);
	rc_all();
	RC_EXPECT(test, &rc->b, 0, 1, 0);
	KUNIT_EXPECT_EQ(test, rc->b.total, 0U);
	rc_recv(&rc->a, 4, rc->a.memory, 512);
	krc_conn_live(&rc->b.c);
	KUNIT_EXPECT_EQ(test, rc->b.total, 1U);
	rc_all();
	RC_EXPECT(test, &rc->a, 1, 4, 0);
}

/* All datagrams of a queue are in use: a connection goes on when one is free. */
static void buffers_run_out(struct kunit *test)
{
	struct rc_side *other;
	LIST_HEAD(taken);

	rc_connect(test);
	give(test, 0, 2);
	other = rc_another(test, &rc->a);
	rc_take_bufs(&rc->a, &taken, 1);
	rc_send(other, 1, rc->a.memory, 10);
	rc_send(&rc->a, 1, rc->a.memory, 10);
	rc_send(&rc->a, 2, rc->a.memory, 10);
	KUNIT_EXPECT_EQ(test, other->nsent, 1U);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 0U);
	KUNIT_EXPECT_FALSE(test, list_empty(&rc->a.c.starved));
	rc_end(other, rc_nth(other, 0), 0);
	rc_runs();
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 1U);
	KUNIT_EXPECT_TRUE(test, list_empty(&rc->a.c.starved));
	rc_arrive(&rc->a, 0);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 1U);
	rc_all();
	KUNIT_EXPECT_EQ(test, rc->a.n, 2U);
	rc_give_bufs(&rc->a, &taken);
}

/*
 * All datagrams are in use, and connections get those that were to be for others, as their handler
 * runs them first. They have no use for another one, so those others get it.
 */
static void buffers_taken_early(struct kunit *test)
{
	struct rc_side *holders[2], *waiters[2], *fast[2];
	LIST_HEAD(taken);
	unsigned int i;

	rc_connect(test);
	rc_take_bufs(&rc->a, &taken, 2);
	for (i = 0; i < 2; i++) {
		holders[i] = rc_another(test, &rc->a);
		rc_send(holders[i], i, rc->a.memory, 10);
	}
	KUNIT_ASSERT_EQ(test, rc->a.q.nfree, 0U);
	for (i = 0; i < 2; i++) {
		waiters[i] = rc_another(test, &rc->a);
		rc_send(waiters[i], i, rc->a.memory, 10);
	}
	for (i = 0; i < 2; i++) {
		fast[i] = rc_another(test, &rc->a);
		rc_send(fast[i], i, rc->a.memory, 10);
	}
	/* A datagram comes for one, and then the send of another one's ends. */
	for (i = 0; i < 2; i++) {
		krc_conn_dirty(&fast[i]->c);
		rc_end(holders[i], rc_nth(holders[i], 0), 0);
		flush_work(&rc->a.q.work);
		KUNIT_ASSERT_EQ(test, fast[i]->nsent, 1U);
		KUNIT_ASSERT_EQ(test, waiters[i]->nsent, 0U);
	}
	for (i = 0; i < 2; i++) {
		rc_end(fast[i], rc_nth(fast[i], 0), 0);
		rc_runs();
	}
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, waiters[i]->nsent, 1U);
		KUNIT_EXPECT_TRUE(test, list_empty(&waiters[i]->c.starved));
	}
	rc_give_bufs(&rc->a, &taken);
}

/* However much a connection sends, it leaves as many datagrams as it has, and those to spare. */
static void buffers_are_shared(struct kunit *test)
{
	rc_connect(test);
	rc_recv(&rc->b, 0, rc->b.memory, RC_MEMORY);
	rc_all();
	rc->a.c.room = 512;
	rc_send(&rc->a, 0, rc->a.memory, 60000);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, (RC_BUFS - KRC_BUFS_SPARE) / 2U);
	rc_all();
	RC_EXPECT(test, &rc->a, 0, 0, 0);
	RC_EXPECT(test, &rc->b, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, rc->a.q.nfree, RC_BUFS + 0U);
}

/* Peers don't take their datagrams: another connection still has one for whatever it does. */
static void buffers_are_spare(struct kunit *test)
{
	struct rc_side *other;
	struct krc_mr *mr;
	unsigned int i;

	rc_connect(test);
	mr = rc_mr(test, &rc->a, rc->a.memory, 4);
	rc_reg(&rc->a, 1, mr, 0, 16384, KRC_ACCESS_REMOTE_READ);
	rc_recv(&rc->b, 2, rc->b.memory, 512);
	rc_all();
	for (i = 0; i < RC_OTHERS; i++) {
		other = rc_another(test, &rc->a);
		other->c.room = 512;
		rc_send(other, i, rc->a.memory, 60000);
		KUNIT_EXPECT_GT(test, other->nsent, 0U);
	}
	rc_send(&rc->a, 3, rc->a.memory, 10);
	KUNIT_ASSERT_EQ(test, rc->a.nsent, 1U);
	rc_recv(&rc->a, 4, rc->a.memory, 512);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 1U);
	rc_arrive(&rc->a, 0);
	KUNIT_ASSERT_EQ(test, rc->a.nsent, 1U);
	KUNIT_EXPECT_EQ(test, krc_type(rc_nth(&rc->a, 0)), KRC_CREDIT);
	/* Data of a read is sent piece by piece. */
	rc_read(&rc->b, 5, rc->b.memory, 16384, rc_key(mr), 0);
	rc_all();
	RC_EXPECT(test, &rc->a, 1, 3, 0);
	RC_EXPECT(test, &rc->b, 1, 5, 0);
}

/* A message isn't behind all the data of a read that the peer makes. */
static void message_beside_reads(struct kunit *test)
{
	struct krc_mr *mr;

	rc_connect(test);
	mr = rc_mr(test, &rc->b, rc->b.memory, 15);
	rc_reg(&rc->b, 1, mr, 0, 60000, KRC_ACCESS_REMOTE_READ);
	rc_recv(&rc->a, 2, rc->a.memory + 65000, 500);
	rc_all();
	rc->b.c.room = 512;
	rc_read(&rc->a, 3, rc->a.memory, 60000, rc_key(mr), 0);
	rc_arrive(&rc->a, 0);
	KUNIT_EXPECT_LT(test, rc->b.nsent, (RC_BUFS - KRC_BUFS_SPARE) / 2U);
	rc_send(&rc->b, 4, rc->b.memory, 100);
	KUNIT_ASSERT_EQ(test, krc_type(rc_nth(&rc->b, rc->b.nsent - 1)), KRC_SEND);
	rc_all();
	RC_EXPECT(test, &rc->b, 1, 4, 0);
	KUNIT_EXPECT_EQ(test, rc->a.n, 2U);
}

/* Datagrams are as long as the peer takes them and this side can send them. */
static void room_of_both(struct kunit *test)
{
	static const struct {
		u32	theirs, ours;
		int	ret;
		u32	room;
	} sides[] = {
		{ 8928, 1024, 0, 1024 }, { 1024, 8928, 0, 1024 }, { 4608, 4608, 0, 4608 },
		{ 4608, 1023, -EMSGSIZE, 0 },
	};
	struct krc_peer peer = { .queue = &rc->a.q, .side = { .cookie = 1, .window = 64 } };
	unsigned int i;

	KUNIT_ASSERT_EQ(test, krc_conn_prepare(&rc->a.c, 4, 4), 0);
	for (i = 0; i < ARRAY_SIZE(sides); i++) {
		peer.side.datagram = sides[i].theirs;
		peer.max_msg = sides[i].ours;
		rc->a.c.state = KRC_NEW;
		rc->a.c.room = 0;
		KUNIT_EXPECT_EQ(test, krc_conn_open(&rc->a.c, &peer, true), sides[i].ret);
		if (!sides[i].ret)
			KUNIT_EXPECT_EQ(test, rc->a.c.room, sides[i].room - KRC_HDR);
	}
}

/* Receives that are posted while the connection is set up are announced when it is open. */
static void credits_of_setup(struct kunit *test)
{
	struct krc_side side;
	struct krc_peer peer = {
		.queue = &rc->a.q, .max_msg = 4608,
		.side = { .cookie = 1, .datagram = 4608, .window = 64 },
	};

	KUNIT_ASSERT_EQ(test, krc_conn_prepare(&rc->a.c, 4, 4), 0);
	krc_conn_describe(&rc->a.c, &side);
	KUNIT_EXPECT_EQ(test, side.credits, 0U);
	rc_recv(&rc->a, 1, rc->a.memory, 100);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 0U);
	KUNIT_ASSERT_EQ(test, krc_conn_open(&rc->a.c, &peer, true), 0);
	KUNIT_ASSERT_EQ(test, rc->a.nsent, 1U);
	KUNIT_EXPECT_EQ(test, krc_type(rc_nth(&rc->a, 0)), KRC_CREDIT);
}

/* Requests without a completion are silent, and later ones wait for them. */
static void retire_unsignaled(struct kunit *test)
{
	const struct krc_sge sge = { (uintptr_t)rc->a.memory, 10 };
	struct krc_swr w = { .id = 1, .op = KRC_OP_SEND, .nsge = 1, .total = 10 };

	rc_connect(test);
	give(test, 0, 2);
	rc_post(&rc->a, &w, &sge);
	rc_send(&rc->a, 2, rc->a.memory, 10);
	rc_arrive(&rc->a, 1);
	KUNIT_EXPECT_EQ(test, rc->a.n, 0U);
	KUNIT_EXPECT_EQ(test, rc->b.n, 0U);
	rc_arrive(&rc->a, 0);
	KUNIT_EXPECT_EQ(test, rc->a.n, 1U);
	RC_EXPECT(test, &rc->a, 0, 2, 0);
	KUNIT_EXPECT_EQ(test, rc->b.n, 2U);
}

/* A write of nothing needs neither a key nor a datagram, but keeps its place. */
static void write_of_nothing(struct kunit *test)
{
	rc_connect(test);
	give(test, 0, 1);
	rc_send(&rc->a, 1, rc->a.memory, 10);
	rc_write(&rc->a, 2, rc->a.memory, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 1U);
	KUNIT_EXPECT_EQ(test, rc->a.n, 0U);
	rc_arrive(&rc->a, 0);
	RC_EXPECT(test, &rc->a, 0, 1, 0);
	RC_EXPECT(test, &rc->a, 1, 2, 0);
}

/* The send queue holds as much as was asked for, and no more. */
static void queues_are_full(struct kunit *test)
{
	unsigned int i;

	rc_connect(test);
	for (i = 0; i < RC_SENDS; i++)
		KUNIT_ASSERT_EQ(test, rc_send(&rc->a, i, rc->a.memory, 1), 0);
	KUNIT_EXPECT_EQ(test, rc_send(&rc->a, i, rc->a.memory, 1), -ENOMEM);
	for (i = 0; i < RC_RECVS; i++)
		KUNIT_ASSERT_EQ(test, rc_recv(&rc->b, i, rc->b.memory, 1), 0);
	KUNIT_EXPECT_EQ(test, rc_recv(&rc->b, i, rc->b.memory, 1), -ENOMEM);
	rc_all();
	KUNIT_EXPECT_EQ(test, rc->a.n, RC_RECVS);
	KUNIT_EXPECT_EQ(test, rc->b.n, RC_RECVS);
}

/* Work requests that are posted with interrupts off are handled by a work item. */
static void posted_without_interrupts(struct kunit *test)
{
	const struct krc_sge sge = { (uintptr_t)rc->a.memory, 10 };
	const struct krc_swr from = {
		.id = 1, .op = KRC_OP_SEND, .flags = KRC_F_SIGNALED, .nsge = 1, .total = 10,
	};
	struct krc_swr *w;
	unsigned long flags;
	unsigned int sent;

	rc_connect(test);
	give(test, 0, 1);
	local_irq_save(flags);
	spin_lock(&rc->a.c.lock);
	w = krc_sq_next(&rc->a.c);
	*w = from;
	w->sge[0] = sge;
	rc->a.c.head++;
	spin_unlock(&rc->a.c.lock);
	krc_conn_push(&rc->a.c);
	sent = rc->a.nsent;
	local_irq_restore(flags);
	KUNIT_EXPECT_EQ(test, sent, 0U);
	rc_runs();
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 1U);
}

/* The handler of a queue, in a softirq: a datagram arrives, and its send completes. */
static struct {
	struct tasklet_struct	soft;
	struct rc_side		*from;
	struct krc_buf		*buf;
	u8			*copy;
	size_t			len;
} handler;

static void handle(struct tasklet_struct *soft)
{
	krc_message(&handler.from->peer->q, handler.copy, handler.len);
	krc_queue_run(&handler.from->peer->q);
	rc_end(handler.from, handler.buf, 0);
	krc_queue_run(&handler.from->q);
}

/* All datagrams arrive, in softirqs alone. */
static void all_in_softirqs(struct kunit *test)
{
	while (rc->a.nsent || rc->b.nsent) {
		handler.from = rc->a.nsent ? &rc->a : &rc->b;
		handler.buf = rc_nth(handler.from, 0);
		handler.len = handler.buf->head_len + handler.buf->piece_len;
		handler.copy = kmalloc(handler.len, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, handler.copy);
		memcpy(handler.copy, handler.buf->head, handler.buf->head_len);
		if (handler.buf->piece_len)
			memcpy(handler.copy + handler.buf->head_len, handler.buf->piece,
			       handler.buf->piece_len);
		kofi_in_softirq(&handler.soft, handle);
		kfree(handler.copy);
	}
}

/* Messages, a read, a write and the end of the region's validity, with handlers in softirqs. */
static void seq_in_softirqs(struct kunit *test)
{
	u8 *from = rc->a.memory, *to = rc->b.memory;
	const u32 len = 3 * PAGE_SIZE;
	struct krc_mr *mr;

	rc_connect(test);
	mr = rc_mr(test, &rc->b, to, 8);
	rc_recv(&rc->b, 1, to + 8 * PAGE_SIZE, 4096);
	rc_reg(&rc->b, 2, mr, 0x5000, 8 * PAGE_SIZE,
	       KRC_ACCESS_REMOTE_WRITE | KRC_ACCESS_REMOTE_READ | KRC_ACCESS_LOCAL_WRITE);
	all_in_softirqs(test);
	rc_write(&rc->a, 3, from, len, rc_key(mr), 0x5000);
	rc_read(&rc->a, 4, from + 8 * PAGE_SIZE, len, rc_key(mr), 0x5000);
	all_in_softirqs(test);
	rc_send_inv(&rc->a, 5, from, 100, rc_key(mr));
	all_in_softirqs(test);
	KUNIT_EXPECT_EQ(test, memcmp(to, from, len), 0);
	KUNIT_EXPECT_EQ(test, memcmp(from + 8 * PAGE_SIZE, from, len), 0);
	KUNIT_EXPECT_EQ(test, memcmp(to + 8 * PAGE_SIZE, from, 100), 0);
	RC_EXPECT(test, &rc->a, 0, 3, 0);
	RC_EXPECT(test, &rc->a, 1, 4, 0);
	RC_EXPECT(test, &rc->a, 2, 5, 0);
	RC_EXPECT(test, &rc->b, 0, 2, 0);
	RC_EXPECT(test, &rc->b, 1, 1, 0);
	KUNIT_EXPECT_TRUE(test, rc->b.log[1].inv);
	KUNIT_EXPECT_EQ(test, rc->a.stops + rc->b.stops, 0U);
	/* An access that isn't allowed ends the connection, by a work item. */
	rc_recv(&rc->b, 6, to + 8 * PAGE_SIZE, 4096);
	all_in_softirqs(test);
	rc_write(&rc->a, 7, from, len, rc_key(mr), 0x5000);
	all_in_softirqs(test);
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, rc->b.cause, KRC_BY_VIOLATION);
	RC_EXPECT(test, &rc->b, 2, 6, -ECANCELED);
}

static struct kunit_case seq_cases[] = {
	KUNIT_CASE(seq_orders),
	KUNIT_CASE(seq_segments),
	KUNIT_CASE(seq_pieces),
	KUNIT_CASE(seq_scattered),
	KUNIT_CASE(seq_overtaken),
	KUNIT_CASE(requests_wrap),
	KUNIT_CASE(reads_wrap),
	KUNIT_CASE(seq_window_full),
	KUNIT_CASE(credit_waits),
	KUNIT_CASE(credit_thrift),
	KUNIT_CASE(credit_scarce),
	KUNIT_CASE(open_is_quiet),
	KUNIT_CASE(buffers_run_out),
	KUNIT_CASE(buffers_taken_early),
	KUNIT_CASE(buffers_are_shared),
	KUNIT_CASE(buffers_are_spare),
	KUNIT_CASE(message_beside_reads),
	KUNIT_CASE(room_of_both),
	KUNIT_CASE(credits_of_setup),
	KUNIT_CASE(retire_unsignaled),
	KUNIT_CASE(write_of_nothing),
	KUNIT_CASE(queues_are_full),
	KUNIT_CASE(posted_without_interrupts),
	KUNIT_CASE(seq_in_softirqs),
	{}
};

static struct kunit_suite seq_suite = {
	.name		= "kofi_rc_seq",
	.init		= rc_scene_init,
	.exit		= rc_scene_exit,
	.suite_init	= rc_suite_init,
	.suite_exit	= rc_suite_exit,
	.test_cases	= seq_cases,
};

kunit_test_suite(seq_suite);

MODULE_DESCRIPTION("KUnit tests of kofi_rc");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
