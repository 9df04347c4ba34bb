// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reads of kofi_rc by the device: their data is what was written before, sinks stay valid until
 * they end, and a region isn't invalidated by a message while the device reads.
 */
#include <linux/string.h>
#include "crew.h"
#include "rc_scene.h"

#define IOVA	0x456ULL
#define LEN	60000
#define SINK	0x10
#define READS	(KRC_ACCESS_LOCAL_WRITE | KRC_ACCESS_REMOTE_READ)
#define BOTH	(READS | KRC_ACCESS_REMOTE_WRITE)

/* The initiator's memory, which is where data comes from. */
static u8 *at(u64 addr)
{
	return rc->b.memory + addr;
}

/* b registers a region, and tells a by a message. */
static void offer(struct kunit *test, struct krc_mr *mr, u32 access)
{
	rc_recv(&rc->a, 201, rc->a.memory + LEN + 2048, 512);
	rc_all();
	KUNIT_ASSERT_EQ(test, rc_reg(&rc->b, 100, mr, IOVA, LEN, access), 0);
	if (rc->b.ntodo)
		rc_grant_end(&rc->b, 0, 0);
	rc_send(&rc->b, 101, rc->b.memory + LEN + 1024, 64);
	rc_all();
	rc->a.n = 0;
	rc->b.n = 0;
}

static struct krc_mr *offered(struct kunit *test, u32 access)
{
	struct krc_mr *mr = rc_mr(test, &rc->b, rc->b.memory, RC_MR_PAGES);

	memset(rc->a.memory, 0, RC_MEMORY);
	offer(test, mr, access);
	return mr;
}

static struct krc_mr *connected(struct kunit *test, u32 access)
{
	rc_connect_reads(test, 4, true);
	return offered(test, access);
}

/* A READ_WITH_INV of a, whose sink is a region. */
static void read_to(u64 id, const struct krc_mr *sink, u32 len, u32 key, u64 addr)
{
	const struct krc_swr w = {
		.id = id, .op = KRC_OP_READ, .flags = KRC_F_SIGNALED | KRC_F_INV, .nsge = 1,
		.total = len, .key = key, .raddr = addr,
	};
	const struct krc_sge sge = { .addr = SINK, .len = len, .key = rc_key(sink) };

	rc_post(&rc->a, &w, &sge);
}

/* A region of a, whose pages begin with the last one of so many. */
static struct krc_mr *sink_of(struct kunit *test, u32 pages)
{
	struct krc_mr *mr = rc_mr(test, &rc->a, rc->a.memory, 1);
	u32 i;

	krc_mr_map_begin(mr);
	for (i = pages; i--;)
		WARN_ON(krc_mr_map_page(mr, (uintptr_t)rc->a.memory + i * PAGE_SIZE));
	krc_mr_map_end(mr);
	rc_reg(&rc->a, 300, mr, SINK, pages * PAGE_SIZE - SINK, KRC_ACCESS_LOCAL_WRITE);
	return mr;
}

static bool sunk(const struct krc_mr *sink, u32 len, const u8 *from)
{
	u64 addr = SINK;
	u32 n;

	for (; len; len -= n, addr += n, from += n) {
		n = min_t(u32, len, PAGE_SIZE - (addr & ~PAGE_MASK));
		if (memcmp((u8 *)(uintptr_t)sink->pages[addr >> PAGE_SHIFT] + (addr & ~PAGE_MASK),
			   from, n))
			return false;
	}
	return true;
}

/* No datagram asks for the data. */
static void reads_device(struct kunit *test)
{
	struct krc_mr *mr = connected(test, BOTH);
	unsigned int sent = rc->a.total;

	rc_read(&rc->a, 1, rc->a.memory + 5, 9000, rc_key(mr), IOVA + 77);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
	KUNIT_EXPECT_EQ(test, rc->a.n, 0U);
	rc_rma_end(&rc->a, 0, 0);
	RC_EXPECT(test, &rc->a, 0, 1, 0);
	KUNIT_EXPECT_EQ(test, memcmp(rc->a.memory + 5, at(IOVA + 77), 9000), 0);
	KUNIT_EXPECT_EQ(test, rc->a.memory[4] | rc->a.memory[5 + 9000], 0);
	KUNIT_EXPECT_EQ(test, rc->a.total, sent);
	KUNIT_EXPECT_EQ(test, rc->a.c.nreads, 0U);
	KUNIT_EXPECT_EQ(test, rc->a.c.rma_slots, 0U);
	KUNIT_EXPECT_EQ(test, rc->a.q.rma_slots, RC_SLOTS + 0U);
}

/* A sink of scattered pages takes a piece for each; it is free when the read has ended. */
static void reads_to_region(struct kunit *test)
{
	struct krc_mr *mr = connected(test, READS), *sink = sink_of(test, 3);

	read_to(1, sink, 9000, rc_key(mr), IOVA + 5);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
	KUNIT_EXPECT_EQ(test, rc->a.rmas[0]->nsge, 3U);
	KUNIT_EXPECT_EQ(test, rc->a.c.rma_slots, 3U);
	KUNIT_EXPECT_EQ(test, sink->users, 1U);
	rc_inval(&rc->a, 2, rc_key(sink));
	KUNIT_EXPECT_EQ(test, sink->state, KRC_MR_INVALIDATING);
	rc_rma_end(&rc->a, 0, 0);
	KUNIT_EXPECT_EQ(test, sink->state, KRC_MR_FREE);
	KUNIT_EXPECT_TRUE(test, sunk(sink, 9000, at(IOVA + 5)));
	RC_EXPECT(test, &rc->a, 1, 1, 0);
	RC_EXPECT(test, &rc->a, 2, 2, 0);
}

static void reads_invalidate(struct kunit *test)
{
	struct krc_mr *mr = connected(test, READS), *sink = sink_of(test, 4);

	read_to(1, sink, 9000, rc_key(mr), IOVA + 5);
	KUNIT_EXPECT_EQ(test, sink->state, KRC_MR_VALID);
	rc_rma_end(&rc->a, 0, 0);
	RC_EXPECT(test, &rc->a, 1, 1, 0);
	KUNIT_EXPECT_EQ(test, sink->state, KRC_MR_FREE);
	KUNIT_EXPECT_TRUE(test, sunk(sink, 9000, at(IOVA + 5)));
	KUNIT_EXPECT_EQ(test, rc->a.stops, 0U);
}

/* Neighbours are one piece. A sink of more pieces than a request has is filled by datagrams. */
static void reads_pieces(struct kunit *test)
{
	struct krc_mr *mr = connected(test, READS), *sink = rc_mr(test, &rc->a, rc->a.memory, 8);

	rc_reg(&rc->a, 300, sink, SINK, 8 * PAGE_SIZE - SINK, KRC_ACCESS_LOCAL_WRITE);
	read_to(1, sink, 30000, rc_key(mr), IOVA);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
	KUNIT_EXPECT_EQ(test, rc->a.rmas[0]->nsge, 1U);
	rc_rma_end(&rc->a, 0, 0);
	KUNIT_EXPECT_TRUE(test, sunk(sink, 30000, at(IOVA)));
	sink = sink_of(test, krc_swr_room(&rc->a.c) + 1);
	read_to(2, sink, krc_swr_room(&rc->a.c) * PAGE_SIZE, rc_key(mr), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
	rc_all();
	RC_EXPECT(test, &rc->a, 3, 2, 0);
	KUNIT_EXPECT_TRUE(test, sunk(sink, krc_swr_room(&rc->a.c) * PAGE_SIZE, at(IOVA)));
}

/* A read comes after the device's writes, and after those by datagrams. */
static void reads_what_was_written(struct kunit *test)
{
	struct krc_mr *mr = connected(test, BOTH), *other;
	unsigned int i;

	memset(rc->a.memory, 0x77, 9000);
	rc_write(&rc->a, 1, rc->a.memory, 9000, rc_key(mr), IOVA);
	rc_read(&rc->a, 2, rc->a.memory + 20000, 9000, rc_key(mr), IOVA);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
	KUNIT_EXPECT_EQ(test, rc->a.rmas[0]->op, KRC_OP_WRITE);
	rc_rma_end(&rc->a, 0, 0);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
	rc_rma_end(&rc->a, 0, 0);
	KUNIT_EXPECT_EQ(test, rc->a.memory[20000 + 8999], 0x77);
	/* Others have all slots. */
	rc->a.q.rma_slots = 0;
	rc_write(&rc->a, 3, rc->a.memory + 100, 100, rc_key(mr), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 1U);
	rc->a.q.rma_slots = RC_SLOTS;
	for (i = 0; i < 2; i++) {
		rc_read(&rc->a, 4, rc->a.memory + 20000, 9000, rc_key(mr), IOVA);
		KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
		rc_all();
	}
	KUNIT_EXPECT_EQ(test, rc->a.n, 5U);
	/* That is so for this registration alone. */
	other = offered(test, READS);
	rc_read(&rc->a, 5, rc->a.memory, 9000, rc_key(other), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 1U);
}

/* A message that invalidates a region waits until the device has read it. Others don't. */
static void reads_before_invalidation(struct kunit *test)
{
	struct krc_mr *mr = connected(test, READS);

	rc_recv(&rc->b, 400, rc->b.memory + LEN + 2048, 512);
	rc_recv(&rc->b, 401, rc->b.memory + LEN + 2048, 512);
	rc_all();
	rc->a.c.peer_credits = rc->b.c.posted;
	rc_read(&rc->a, 1, rc->a.memory, 9000, rc_key(mr), IOVA);
	rc_send(&rc->a, 2, rc->a.memory + 10000, 16);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 1U);
	rc_send_inv(&rc->a, 3, rc->a.memory + 10000, 16, rc_key(mr));
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 1U);
	rc_rma_end(&rc->a, 0, 0);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 2U);
	rc_all();
	KUNIT_ASSERT_EQ(test, rc->b.ntodo, 1U);
	rc_grant_end(&rc->b, 0, 0);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
	KUNIT_EXPECT_EQ(test, rc->a.n, 3U);
	KUNIT_EXPECT_EQ(test, rc->a.stops + rc->b.stops, 0U);
}

/* A fence waits for them, and no more are made than the peer serves. */
static void reads_are_counted(struct kunit *test)
{
	struct krc_mr *mr = connected(test, READS);
	struct krc_swr w = {
		.id = 9, .op = KRC_OP_WRITE, .flags = KRC_F_SIGNALED | KRC_F_FENCE,
	};
	const struct krc_sge none = {};
	unsigned int i;

	for (i = 0; i < 6; i++)
		rc_read(&rc->a, i, rc->a.memory + 2000 * i, 2000, rc_key(mr), IOVA + 2000 * i);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, rc->a.c.ord);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 4U);
	rc_post(&rc->a, &w, &none);
	for (i = 0; i < 6; i++) {
		KUNIT_EXPECT_EQ(test, rc->a.n, i);
		rc_rma_end(&rc->a, 0, 0);
	}
	KUNIT_EXPECT_EQ(test, rc->a.n, 7U);
	RC_EXPECT(test, &rc->a, 6, 9, 0);
	KUNIT_EXPECT_EQ(test, memcmp(rc->a.memory, at(IOVA), 12000), 0);
}

/* More than fit into a turn. */
static void reads_many(struct kunit *test)
{
	struct krc_mr *mr = connected(test, READS);
	const unsigned int n = KRC_TURN + 5;
	unsigned int i, sent = rc->a.total;

	rc->a.c.ord = RC_SENDS;
	spin_lock_irq(&rc->a.c.lock);
	rc->a.c.can_rma = false;
	spin_unlock_irq(&rc->a.c.lock);
	/* They wait for a message that has no receive. */
	rc_send(&rc->a, 99, rc->a.memory, 16);
	for (i = 0; i < n; i++)
		rc_read(&rc->a, i, rc->a.memory + 2000 * i, 2000, rc_key(mr), IOVA + 2000 * i);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
	spin_lock_irq(&rc->a.c.lock);
	rc->a.c.can_rma = true;
	spin_unlock_irq(&rc->a.c.lock);
	rc_recv(&rc->b, 400, rc->b.memory + LEN + 2048, 512);
	rc_all();
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, n);
	while (rc->a.nrmas)
		rc_rma_end(&rc->a, rc->a.nrmas - 1, 0);
	KUNIT_EXPECT_EQ(test, rc->a.n, n + 1);
	KUNIT_EXPECT_EQ(test, rc->a.total, sent + 1);
	KUNIT_EXPECT_EQ(test, memcmp(rc->a.memory, at(IOVA), 2000 * n), 0);
}

/* They share slots with writes. A connection without any asks by datagrams if it has none. */
static void reads_slots(struct kunit *test)
{
	struct krc_mr *mr = connected(test, BOTH);

	rc->a.q.rma_slots = 2;
	rc_read(&rc->a, 1, rc->a.memory, 2000, rc_key(mr), IOVA);
	rc_read(&rc->a, 2, rc->a.memory + 2000, 2000, rc_key(mr), IOVA + 2000);
	rc_write(&rc->a, 3, rc->a.memory + 4000, 2000, rc_key(mr), IOVA + 4000);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 0U);
	rc_rma_end(&rc->a, 0, 0);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
	rc_rma_end(&rc->a, 0, 0);
	while (rc->a.nrmas)
		rc_rma_end(&rc->a, 0, 0);
	KUNIT_EXPECT_EQ(test, rc->a.n, 3U);
	rc->a.q.rma_slots = 0;
	rc_read(&rc->a, 4, rc->a.memory, 4000, rc_key(mr), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
	rc_all();
	RC_EXPECT(test, &rc->a, 3, 4, 0);
	KUNIT_EXPECT_EQ(test, memcmp(rc->a.memory, at(IOVA), 4000), 0);
}

/* A peer whose device doesn't read gets no key for that, and asks by datagrams. */
static void reads_not_offered(struct kunit *test)
{
	struct krc_mr *mr;

	rc_connect_rma(test, 4);
	mr = offered(test, READS);
	KUNIT_EXPECT_NULL(test, mr->grant);
	rc_read(&rc->a, 1, rc->a.memory, 9000, rc_key(mr), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
	rc_all();
	mr = offered(test, BOTH);
	KUNIT_ASSERT_NOT_NULL(test, mr->grant);
	KUNIT_EXPECT_EQ(test, mr->grant->access, KRC_ACCESS_REMOTE_WRITE);
	rc_read(&rc->a, 2, rc->a.memory, 9000, rc_key(mr), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
	rc_all();
	KUNIT_EXPECT_EQ(test, memcmp(rc->a.memory, at(IOVA), 9000), 0);
}

/* Some devices read, and don't write. */
static void reads_alone(struct kunit *test)
{
	struct krc_mr *mr;

	rc_connect_reads(test, 4, false);
	mr = offered(test, BOTH);
	KUNIT_ASSERT_NOT_NULL(test, mr->grant);
	KUNIT_EXPECT_EQ(test, mr->grant->access, KRC_ACCESS_REMOTE_READ);
	rc_read(&rc->a, 1, rc->a.memory, 9000, rc_key(mr), IOVA);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
	rc_rma_end(&rc->a, 0, 0);
	KUNIT_EXPECT_EQ(test, memcmp(rc->a.memory, at(IOVA), 9000), 0);
	rc_write(&rc->a, 2, rc->a.memory + 10000, 9000, rc_key(mr), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
	rc_all();
	KUNIT_EXPECT_EQ(test, memcmp(rc->a.memory + 10000, at(IOVA), 9000), 0);
	KUNIT_EXPECT_EQ(test, rc->a.n, 2U);
}

/* One device writes, and the other one doesn't: the key that is for reads isn't used for writes. */
static void reads_mixed(struct kunit *test)
{
	struct krc_mr *mr;

	rc->a.q.can_write = true;
	rc_connect_reads(test, 4, false);
	mr = offered(test, BOTH);
	KUNIT_ASSERT_NOT_NULL(test, mr->grant);
	KUNIT_EXPECT_EQ(test, mr->grant->access, KRC_ACCESS_REMOTE_READ);
	memset(rc->a.memory, 0x77, 9000);
	rc_write(&rc->a, 1, rc->a.memory, 9000, rc_key(mr), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
	rc_all();
	RC_EXPECT(test, &rc->a, 0, 1, 0);
	KUNIT_EXPECT_EQ(test, memcmp(at(IOVA), rc->a.memory, 9000), 0);
	KUNIT_EXPECT_EQ(test, rc->a.stops + rc->b.stops, 0U);
}

/* Regions that are only read keep their grants, and so do those that are read by datagrams. */
static void reads_learn_nothing(struct kunit *test)
{
	struct krc_mr *mr = connected(test, BOTH);
	unsigned int i;

	for (i = 0; i < 2 * KRC_ONLY_READ; i++) {
		rc->a.q.rma_slots = i & 1 ? RC_SLOTS : 0;
		rc_read(&rc->a, 1, rc->a.memory, 9000, rc_key(mr), IOVA);
		KUNIT_ASSERT_EQ(test, rc->a.nrmas, i & 1);
		if (i & 1)
			rc_rma_end(&rc->a, 0, 0);
		rc_all();
		rc->a.q.rma_slots = RC_SLOTS;
		rc_inval(&rc->b, 102, rc_key(mr));
		KUNIT_ASSERT_EQ(test, rc->b.ntodo, 1U);
		rc_grant_end(&rc->b, 0, 0);
		flush_delayed_work(&rc->b.q.grants_work);
		offer(test, mr, BOTH);
		KUNIT_ASSERT_NOT_NULL(test, mr->grant);
	}
}

/* The peer's device refuses: the read fails, and with it the connection. */
static void reads_refused(struct kunit *test)
{
	struct krc_mr *mr = connected(test, READS), *sink = sink_of(test, 3);

	read_to(1, sink, 9000, rc_key(mr), IOVA + LEN - 8999);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
	rc_rma_end(&rc->a, 0, 0);
	krc_wait_flushed(&rc->a.c);
	RC_EXPECT(test, &rc->a, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, rc->a.cause, KRC_BY_FAULT);
	KUNIT_EXPECT_EQ(test, sink->state, KRC_MR_FREE);
}

static void reads_no_sink(struct kunit *test)
{
	struct krc_mr *mr = connected(test, READS), *sink = sink_of(test, 2);

	read_to(1, sink, 9000, rc_key(mr), IOVA);
	KUNIT_EXPECT_EQ(test, rc->a.nrmas, 0U);
	krc_wait_flushed(&rc->a.c);
	RC_EXPECT(test, &rc->a, 1, 1, -EINVAL);
	KUNIT_EXPECT_EQ(test, rc->a.cause, KRC_BY_REQUEST);
}

/* The device still reads when the connection ends: its memory isn't given back until it has. */
static void reads_at_end(struct kunit *test)
{
	struct krc_mr *mr = connected(test, READS), *sink = sink_of(test, 3);

	read_to(1, sink, 9000, rc_key(mr), IOVA);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
	krc_stop(&rc->a.c, KRC_BY_ULP, 0);
	synchronize_rcu();
	msleep(30);
	KUNIT_EXPECT_EQ(test, sink->state, KRC_MR_INVALIDATING);
	KUNIT_EXPECT_EQ(test, rc->a.flushes, 0U);
	KUNIT_EXPECT_EQ(test, rc->a.n, 1U);
	rc_rma_end(&rc->a, 0, 0);
	krc_wait_flushed(&rc->a.c);
	KUNIT_EXPECT_EQ(test, sink->state, KRC_MR_FREE);
	RC_EXPECT(test, &rc->a, 1, 1, -ECANCELED);
}

/* A ULP gives up a request while the peer's device reads: the key isn't valid for other memory. */
static void reads_late(struct kunit *test)
{
	struct krc_mr *mr = connected(test, READS);

	rc_read(&rc->a, 1, rc->a.memory, 9000, rc_key(mr), IOVA);
	KUNIT_ASSERT_EQ(test, rc->a.nrmas, 1U);
	rc_inval(&rc->b, 102, rc_key(mr));
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_INVALIDATING);
	KUNIT_ASSERT_EQ(test, rc->b.ntodo, 1U);
	rc_grant_end(&rc->b, 0, 0);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
	rc_map(mr, rc->b.memory, RC_MR_PAGES);
	offer(test, mr, READS);
	KUNIT_ASSERT_NOT_NULL(test, mr->grant);
	KUNIT_EXPECT_NE(test, mr->grant->key, rc->a.rmas[0]->rma.iov.key);
	rc_rma_end(&rc->a, 0, 0);
	krc_wait_flushed(&rc->a.c);
	RC_EXPECT(test, &rc->a, 0, 1, -EIO);
	KUNIT_EXPECT_EQ(test, rc->a.memory[0] | rc->a.memory[8999], 0);
}

static struct kunit_case reads_cases[] = {
	KUNIT_CASE(reads_device),
	KUNIT_CASE(reads_to_region),
	KUNIT_CASE(reads_invalidate),
	KUNIT_CASE(reads_pieces),
	KUNIT_CASE(reads_what_was_written),
	KUNIT_CASE(reads_before_invalidation),
	KUNIT_CASE(reads_are_counted),
	KUNIT_CASE(reads_many),
	KUNIT_CASE(reads_slots),
	KUNIT_CASE(reads_not_offered),
	KUNIT_CASE(reads_alone),
	KUNIT_CASE(reads_mixed),
	KUNIT_CASE(reads_learn_nothing),
	KUNIT_CASE(reads_refused),
	KUNIT_CASE(reads_no_sink),
	KUNIT_CASE(reads_at_end),
	KUNIT_CASE(reads_late),
	{}
};

static struct kunit_suite reads_suite = {
	.name		= "kofi_rc_reads",
	.init		= rc_scene_init,
	.exit		= rc_scene_exit,
	.suite_init	= rc_suite_init,
	.suite_exit	= rc_suite_exit,
	.test_cases	= reads_cases,
};

kunit_test_suite(reads_suite);
