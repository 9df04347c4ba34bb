// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions of kofi_rc, writes and reads of a peer, and invalidation while they go on. */
#include <linux/slab.h>
#include <linux/string.h>
#include "crew.h"
#include "rc_scene.h"

#define IOVA	0x123400000456ULL
#define ALL	(KRC_ACCESS_LOCAL_WRITE | KRC_ACCESS_REMOTE)

static int registers(struct krc_conn *c, const struct krc_mr_map *map)
{
	struct krc_mr_turn turn;

	return krc_mr_register(c, map, false, &turn);
}

/* A region of b with all of its memory, registered. */
static struct krc_mr *region(struct kunit *test, u32 access)
{
	struct krc_mr *mr;

	rc_connect(test);
	mr = rc_mr(test, &rc->b, rc->b.memory, RC_MR_PAGES);
	KUNIT_ASSERT_EQ(test, rc_reg(&rc->b, 100, mr, IOVA, 60000, access), 0);
	RC_EXPECT(test, &rc->b, 0, 100, 0);
	rc->b.n = 0;
	rc->b.seen = 0;
	return mr;
}

/* The address of a region is any number whose offset in the first page is right. */
static u8 *at(u64 addr)
{
	return rc->b.memory + (IOVA & ~PAGE_MASK) + (addr - IOVA);
}

/* Writes of all lengths, across pages, with the datagrams in reverse order. */
static void mr_write(struct kunit *test)
{
	static const u32 lens[] = { 1, 511, 512, 4095, 4096, 4560, 4561, 9000, 60000 };
	struct krc_mr *mr = region(test, KRC_ACCESS_LOCAL_WRITE | KRC_ACCESS_REMOTE_WRITE);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		memset(rc->b.memory, 0xee, RC_MEMORY);
		rc_write(&rc->a, i, rc->a.memory + 3, lens[i], rc_key(mr), IOVA + 60000 - lens[i]);
		while (rc->a.nsent)
			rc_arrive(&rc->a, rc->a.nsent - 1);
		RC_EXPECT(test, &rc->a, i, i, 0);
		KUNIT_EXPECT_EQ(test, memcmp(at(IOVA + 60000 - lens[i]), rc->a.memory + 3,
					     lens[i]), 0);
		KUNIT_EXPECT_EQ(test, at(IOVA + 60000 - lens[i])[-1], 0xee);
		KUNIT_EXPECT_EQ(test, *at(IOVA + 60000), 0xee);
	}
	KUNIT_EXPECT_EQ(test, rc->b.stops, 0U);
}

/* Reads of all lengths. The data arrives in reverse order. */
static void mr_read(struct kunit *test)
{
	static const u32 lens[] = { 1, 511, 512, 4095, 4096, 4560, 4561, 9000, 60000 };
	struct krc_mr *mr = region(test, KRC_ACCESS_REMOTE_READ);
	unsigned int i;
	u8 *to = rc->a.memory;

	memcpy(rc->b.memory, rc->a.memory, RC_MEMORY);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		memset(to, 0xee, RC_MEMORY);
		rc_read(&rc->a, i, to + 1, lens[i], rc_key(mr), IOVA + 60000 - lens[i]);
		rc_arrive(&rc->a, 0);
		KUNIT_EXPECT_EQ(test, rc->a.n, i);
		while (rc->b.nsent)
			rc_arrive(&rc->b, rc->b.nsent - 1);
		RC_EXPECT(test, &rc->a, i, i, 0);
		KUNIT_EXPECT_EQ(test, memcmp(at(IOVA + 60000 - lens[i]), to + 1, lens[i]), 0);
		KUNIT_EXPECT_EQ(test, to[0], 0xee);
		KUNIT_EXPECT_EQ(test, to[lens[i] + 1], 0xee);
	}
	KUNIT_EXPECT_EQ(test, mr->users, 0U);
}

/* As many reads go on as both sides allow. Others wait, as does all behind a fence. */
static void mr_read_limits(struct kunit *test)
{
	struct krc_mr *mr = region(test, KRC_ACCESS_REMOTE_READ);
	const struct krc_swr fence = {
		.id = 50, .op = KRC_OP_SEND, .flags = KRC_F_SIGNALED | KRC_F_FENCE,
	};
	unsigned int i;

	rc_recv(&rc->b, 60, rc->b.memory, 512);
	rc_all();
	for (i = 0; i < 6; i++)
		rc_read(&rc->a, i, rc->a.memory, 100, rc_key(mr), IOVA);
	rc_post(&rc->a, &fence, NULL);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 4U);
	while (rc->a.nsent)
		rc_arrive(&rc->a, rc->a.nsent - 1);
	KUNIT_EXPECT_EQ(test, rc->b.nsent, 4U);
	/* The last one's data comes first. Its slot is free again, its completion waits. */
	rc_arrive(&rc->b, 3);
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 1U);
	KUNIT_EXPECT_EQ(test, rc->a.n, 0U);
	rc_all();
	KUNIT_EXPECT_EQ(test, rc->a.n, 7U);
	for (i = 0; i < 6; i++)
		RC_EXPECT(test, &rc->a, i, i, 0);
	RC_EXPECT(test, &rc->a, 6, 50, 0);
	RC_EXPECT(test, &rc->b, 0, 60, 0);
}

/* A read whose key isn't valid fails, and ends the connection. */
static void mr_read_refused(struct kunit *test)
{
	struct krc_mr *mr = region(test, KRC_ACCESS_REMOTE_WRITE);

	rc_read(&rc->a, 1, rc->a.memory, 100, rc_key(mr), IOVA);
	rc_send(&rc->a, 2, rc->a.memory, 100);
	rc_all();
	krc_wait_flushed(&rc->a.c);
	KUNIT_EXPECT_EQ(test, rc->a.n, 2U);
	RC_EXPECT(test, &rc->a, 0, 1, -EREMOTEIO);
	RC_EXPECT(test, &rc->a, 1, 2, -ECANCELED);
	KUNIT_EXPECT_EQ(test, rc->a.cause, KRC_BY_REQUEST);
	/* A peer can't try one key after the other. */
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, rc->b.cause, KRC_BY_VIOLATION);
}

/* iWARP's way: the sink of a read is a region, which is invalidated with the read. */
static void mr_read_to_region(struct kunit *test)
{
	struct krc_mr *from = region(test, KRC_ACCESS_REMOTE_READ), *to;
	struct krc_swr w = {
		.id = 2, .op = KRC_OP_READ, .flags = KRC_F_SIGNALED | KRC_F_INV, .nsge = 1,
		.total = 9000, .key = rc_key(from), .raddr = IOVA + 5,
	};
	struct krc_sge sge = { .addr = 0x10, .len = 9000 };

	memcpy(rc->b.memory, rc->a.memory, RC_MEMORY);
	memset(rc->a.memory, 0, RC_MEMORY);
	to = rc_mr(test, &rc->a, rc->a.memory, 4);
	rc_reg(&rc->a, 1, to, 0x10, 9000, KRC_ACCESS_LOCAL_WRITE | KRC_ACCESS_REMOTE_WRITE);
	sge.key = rc_key(to);
	rc_post(&rc->a, &w, &sge);
	KUNIT_EXPECT_EQ(test, to->state, KRC_MR_VALID);
	rc_all();
	RC_EXPECT(test, &rc->a, 1, 2, 0);
	KUNIT_EXPECT_EQ(test, to->state, KRC_MR_FREE);
	KUNIT_EXPECT_EQ(test, memcmp(rc->a.memory + 0x10, at(IOVA + 5), 9000), 0);
	KUNIT_EXPECT_EQ(test, rc->a.memory[0xf], 0);
	KUNIT_EXPECT_EQ(test, rc->a.memory[0x10 + 9000], 0);
}

/* A message from the memory of a region, which must be valid until it is sent. */
static void mr_send_from(struct kunit *test)
{
	struct krc_swr w = {
		.id = 2, .op = KRC_OP_SEND, .flags = KRC_F_SIGNALED, .nsge = 1, .total = 3000,
	};
	struct krc_sge sge = { .addr = 4000, .len = 3000 };
	struct krc_mr *mr;

	rc_connect(test);
	mr = rc_mr(test, &rc->a, rc->a.memory, 2);
	rc_reg(&rc->a, 1, mr, 0, 8192, KRC_ACCESS_LOCAL_WRITE);
	rc_recv(&rc->b, 3, rc->b.memory, 4096);
	rc_all();
	sge.key = rc_key(mr);
	rc_post(&rc->a, &w, &sge);
	/* Pages end within the message. */
	KUNIT_EXPECT_EQ(test, rc->a.nsent, 1U);
	KUNIT_EXPECT_EQ(test, mr->users, 1U);
	rc_inval(&rc->a, 4, rc_key(mr));
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_INVALIDATING);
	rc_all();
	RC_EXPECT(test, &rc->b, 0, 3, 0);
	RC_EXPECT(test, &rc->a, 1, 2, 0);
	RC_EXPECT(test, &rc->a, 2, 4, 0);
	KUNIT_EXPECT_EQ(test, memcmp(rc->b.memory, rc->a.memory + 4000, 3000), 0);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
}

/* The key of a message from a region isn't valid: the work request fails. */
static void mr_send_from_invalid(struct kunit *test)
{
	const struct krc_sge sge = { .addr = 0, .len = 10, .key = 0x12345 };
	const struct krc_swr w = { .id = 2, .op = KRC_OP_SEND, .nsge = 1, .total = 10 };

	rc_connect(test);
	rc_recv(&rc->b, 3, rc->b.memory, 4096);
	rc_all();
	rc_post(&rc->a, &w, &sge);
	krc_wait_flushed(&rc->a.c);
	RC_EXPECT(test, &rc->a, 0, 2, -EINVAL);
	KUNIT_EXPECT_EQ(test, rc->a.c.bufs, 0U);
}

/* An invalidation that comes while a read is served: the region is free when its data is sent. */
static void mr_invalidated_while_served(struct kunit *test)
{
	struct krc_mr *mr = region(test, KRC_ACCESS_REMOTE_READ);

	rc_read(&rc->a, 1, rc->a.memory, 9000, rc_key(mr), IOVA);
	rc_arrive(&rc->a, 0);
	KUNIT_EXPECT_EQ(test, rc->b.nsent, 3U);
	rc_inval(&rc->b, 2, rc_key(mr));
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_INVALIDATING);
	rc_arrive(&rc->b, 1);
	rc_arrive(&rc->b, 1);
	KUNIT_EXPECT_EQ(test, rc->b.n, 0U);
	rc_arrive(&rc->b, 0);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
	RC_EXPECT(test, &rc->b, 0, 2, 0);
	RC_EXPECT(test, &rc->a, 0, 1, 0);
}

/* A region is freed while a datagram of it doesn't end: the connection ends, then the device. */
static void mr_freed_while_stuck(struct kunit *test)
{
	struct krc_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	krc_revoke_ms = 20;
	rc_connect(test);
	KUNIT_ASSERT_EQ(test, krc_mr_init(mr, &rc->b.mrs, &rc->b, RC_MR_PAGES), 0);
	rc_map(mr, rc->b.memory, 4);
	rc_reg(&rc->b, 60, mr, IOVA, 8192, KRC_ACCESS_REMOTE_READ);
	rc_read(&rc->a, 1, rc->a.memory, 1000, rc_key(mr), IOVA);
	rc_arrive(&rc->a, 0);
	KUNIT_EXPECT_EQ(test, rc->b.nsent, 1U);
	krc_mr_fini(mr);
	KUNIT_EXPECT_EQ(test, rc->b.lost, 1U);
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, rc->b.cause, KRC_BY_FAULT);
	synchronize_rcu();
	kfree(mr);
}

/* SEND_WITH_INV overtakes the end of the data that was sent from the region: its receive waits. */
static void mr_invalidated_by_peer(struct kunit *test)
{
	struct krc_mr *mr = region(test, KRC_ACCESS_REMOTE_READ);
	struct krc_buf *data;

	rc_recv(&rc->b, 5, rc->b.memory, 512);
	rc_recv(&rc->b, 6, rc->b.memory, 512);
	rc_all();
	rc->a.c.peer_credits = 2;
	rc_read(&rc->a, 1, rc->a.memory, 100, rc_key(mr), IOVA);
	rc_arrive(&rc->a, 0);
	data = rc_nth(&rc->b, 0);
	rc_deliver(&rc->b, data);
	RC_EXPECT(test, &rc->a, 0, 1, 0);
	rc_send_inv(&rc->a, 2, rc->a.memory, 10, rc_key(mr));
	rc_send(&rc->a, 3, rc->a.memory, 10);
	while (rc->a.nsent)
		rc_arrive(&rc->a, 0);
	KUNIT_EXPECT_EQ(test, rc->b.n, 0U);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_INVALIDATING);
	rc_end(&rc->b, data, 0);
	rc_runs();
	RC_EXPECT(test, &rc->b, 0, 5, 0);
	RC_EXPECT(test, &rc->b, 1, 6, 0);
	KUNIT_EXPECT_TRUE(test, rc->b.log[0].inv);
	KUNIT_EXPECT_EQ(test, rc->b.log[0].key, rc_key(mr));
	KUNIT_EXPECT_FALSE(test, rc->b.log[1].inv);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
}

/* The next pages are mapped while the current ones are registered, as srp does. */
static void mr_mapped_ahead(struct kunit *test)
{
	struct krc_mr *mr = region(test, KRC_ACCESS_REMOTE_WRITE);

	rc_map(mr, rc->b.memory + 8192, 1);
	rc_write(&rc->a, 1, rc->a.memory, 8, rc_key(mr), IOVA);
	rc_all();
	KUNIT_EXPECT_EQ(test, memcmp(at(IOVA), rc->a.memory, 8), 0);
	rc_inval(&rc->b, 2, rc_key(mr));
	rc_reg(&rc->b, 3, mr, 0, 4096, KRC_ACCESS_REMOTE_WRITE);
	RC_EXPECT(test, &rc->b, 0, 2, 0);
	RC_EXPECT(test, &rc->b, 1, 3, 0);
	rc_write(&rc->a, 4, rc->a.memory, 8, rc_key(mr), 16);
	rc_all();
	KUNIT_EXPECT_EQ(test, memcmp(rc->b.memory + 8192 + 16, rc->a.memory, 8), 0);
}

/* A registration waits until the last access by the former one has ended. */
static void mr_registered_again(struct kunit *test)
{
	struct krc_mr *mr = region(test, KRC_ACCESS_REMOTE_READ);

	rc_read(&rc->a, 1, rc->a.memory, 8, rc_key(mr), IOVA);
	rc_arrive(&rc->a, 0);
	rc_inval(&rc->b, 2, rc_key(mr));
	rc_map(mr, rc->b.memory, 1);
	rc_reg(&rc->b, 3, mr, 0, 100, ALL);
	rc_recv(&rc->a, 4, rc->a.memory, 512);
	while (rc->a.nsent)
		rc_arrive(&rc->a, 0);
	rc_send(&rc->b, 5, rc->b.memory, 10);
	/* Requests behind the registration wait, too. */
	KUNIT_EXPECT_EQ(test, rc->b.nsent, 1U);
	KUNIT_EXPECT_EQ(test, rc->b.n, 0U);
	rc_all();
	RC_EXPECT(test, &rc->b, 0, 2, 0);
	RC_EXPECT(test, &rc->b, 1, 3, 0);
	RC_EXPECT(test, &rc->b, 2, 5, 0);
	KUNIT_EXPECT_EQ(test, mr->map.length, 100U);
}

/* The same mapping is registered again, as rtrs does: the key stands for the same pages. */
static void mr_same_mapping(struct kunit *test)
{
	struct krc_mr *mr = region(test, KRC_ACCESS_REMOTE_WRITE);
	unsigned int i;

	for (i = 0; i < 3; i++) {
		memset(rc->b.memory, 0, RC_MEMORY);
		rc_write(&rc->a, i, rc->a.memory + i, 9000, rc_key(mr), IOVA);
		rc_all();
		KUNIT_EXPECT_EQ(test, memcmp(at(IOVA), rc->a.memory + i, 9000), 0);
		rc_inval(&rc->b, 10, rc_key(mr));
		rc_reg(&rc->b, 11, mr, IOVA, 60000, KRC_ACCESS_REMOTE_WRITE);
	}
	KUNIT_EXPECT_EQ(test, rc->b.n, 6U);
	KUNIT_EXPECT_EQ(test, rc->b.stops, 0U);
}

/* Pages are mapped again while a registration waits: it doesn't get those of the later one. */
static void mr_mapped_while_queued(struct kunit *test)
{
	struct krc_mr *mr;

	rc_connect(test);
	mr = rc_mr(test, &rc->b, rc->b.memory, 1);
	/* Without a credit, what is behind the message waits. */
	rc_send(&rc->b, 1, rc->b.memory, 10);
	rc_reg(&rc->b, 2, mr, 0, 100, ALL);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
	rc_map(mr, rc->b.memory + 4096, 1);
	rc_recv(&rc->a, 3, rc->a.memory, 512);
	rc_all();
	krc_wait_flushed(&rc->b.c);
	RC_EXPECT(test, &rc->b, 0, 1, 0);
	RC_EXPECT(test, &rc->b, 1, 2, -EINVAL);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
}

/* The region is freed while its registration waits. */
static void mr_freed_while_queued(struct kunit *test)
{
	struct krc_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	rc_connect(test);
	KUNIT_ASSERT_EQ(test, krc_mr_init(mr, &rc->b.mrs, &rc->b, 1), 0);
	rc_map(mr, rc->b.memory, 1);
	rc_send(&rc->b, 1, rc->b.memory, 10);
	rc_reg(&rc->b, 2, mr, 0, 100, ALL);
	krc_mr_fini(mr);
	kfree(mr);
	rc_recv(&rc->a, 3, rc->a.memory, 512);
	rc_all();
	krc_wait_flushed(&rc->b.c);
	RC_EXPECT(test, &rc->b, 1, 2, -EINVAL);
}

/* A region of another connection: a registration that is refused leaves it to that one. */
static void mr_of_another(struct kunit *test)
{
	struct krc_mr *mr = region(test, KRC_ACCESS_REMOTE_WRITE);
	struct krc_mr_map map = {
		.length = 1, .shift = PAGE_SHIFT, .key = rc_key(mr), .nr = krc_mr_mapping(mr),
	};
	struct krc_conn *c = &rc->a.c;

	c->mrs = rc->b.c.mrs;
	c->pd = rc->b.c.pd;
	spin_lock_irq(&c->lock);
	KUNIT_EXPECT_EQ(test, registers(c, &map), -EINVAL);
	spin_unlock_irq(&c->lock);
	KUNIT_EXPECT_PTR_EQ(test, mr->conn, &rc->b.c);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_VALID);
	c->mrs = &rc->a.mrs;
	c->pd = &rc->a;
}

/* A region waits for its owner, and for one other connection. A third one isn't left hanging. */
static void mr_waited_for(struct kunit *test)
{
	struct krc_mr *mr = region(test, KRC_ACCESS_REMOTE_READ);
	struct rc_side *second = rc_another(test, &rc->b), *third = rc_another(test, &rc->b);

	rc_read(&rc->a, 1, rc->a.memory, 100, rc_key(mr), IOVA);
	rc_arrive(&rc->a, 0);
	rc_inval(second, 2, rc_key(mr));
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_INVALIDATING);
	rc_inval(&rc->b, 3, rc_key(mr));
	rc_inval(third, 4, rc_key(mr));
	KUNIT_ASSERT_TRUE(test, kofi_completed(&third->c.flushed));
	RC_EXPECT(test, third, 0, 4, -EINVAL);
	KUNIT_EXPECT_EQ(test, second->n + rc->b.n, 0U);
	rc_all();
	RC_EXPECT(test, second, 0, 2, 0);
	RC_EXPECT(test, &rc->b, 0, 3, 0);
}

static void mr_fini(struct kofi_thread *thread)
{
	krc_mr_fini(thread->arg);
}

/* A region is freed while its owner waits, and another one: both are told of the last access. */
static void mr_freed_while_waited_for(struct kunit *test)
{
	const struct krc_swr w = { .id = 4, .op = KRC_OP_SEND, .nsge = 1, .total = 1000 };
	struct krc_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	struct krc_sge sge = { .addr = IOVA, .len = 1000 };
	struct rc_side *second, *sender;
	struct kofi_thread thread;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	rc_connect(test);
	second = rc_another(test, &rc->b);
	sender = rc_another(test, &rc->b);
	KUNIT_ASSERT_EQ(test, krc_mr_init(mr, &rc->b.mrs, &rc->b, RC_MR_PAGES), 0);
	rc_map(mr, rc->b.memory, 4);
	rc_reg(&rc->b, 1, mr, IOVA, 8192, KRC_ACCESS_REMOTE_READ);
	sge.key = rc_key(mr);
	rc_post(sender, &w, &sge);
	KUNIT_EXPECT_EQ(test, mr->users, 1U);
	rc_inval(second, 2, rc_key(mr));
	rc_inval(&rc->b, 3, rc_key(mr));
	KUNIT_EXPECT_EQ(test, rc->b.n, 1U);
	kofi_thread_start(test, &thread, mr_fini, mr);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_thread_sleeps(&thread)));
	rc_end(sender, rc_nth(sender, 0), 0);
	kofi_thread_join(test, &thread);
	rc_runs();
	RC_EXPECT(test, second, 0, 2, 0);
	RC_EXPECT(test, &rc->b, 1, 3, 0);
	synchronize_rcu();
	kfree(mr);
}

/* Registrations and invalidations that are refused. */
static void mr_wrong_requests(struct kunit *test)
{
	static const struct {
		u64	iova, len;
		u32	pages;
	} wrong[] = {
		{ 0, 0, 1 }, { 0, 1, 0 }, { 0, PAGE_SIZE + 1, 1 }, { 1, PAGE_SIZE, 1 },
		{ U64_MAX - 1, 4096, 2 }, { 5, 0, 0 },
	};
	struct krc_mr_map map = { .shift = PAGE_SHIFT };
	struct krc_mr_turn turn;
	struct krc_mr *mr;
	unsigned int i;

	rc_connect(test);
	mr = rc_mr(test, &rc->b, rc->b.memory, 1);
	map.key = rc_key(mr);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		rc_map(mr, rc->b.memory, wrong[i].pages);
		map.iova = wrong[i].iova;
		map.length = wrong[i].len;
		map.nr = krc_mr_mapping(mr);
		spin_lock_irq(&rc->b.c.lock);
		KUNIT_EXPECT_EQ_MSG(test, registers(&rc->b.c, &map), -EINVAL, "%u", i);
		spin_unlock_irq(&rc->b.c.lock);
	}
	rc_map(mr, rc->b.memory, 1);
	map.iova = 0;
	map.length = 1;
	spin_lock_irq(&rc->b.c.lock);
	/* An earlier mapping, none, and one to come. */
	KUNIT_EXPECT_EQ(test, registers(&rc->b.c, &map), -EINVAL);
	map.nr = 0;
	KUNIT_EXPECT_EQ(test, registers(&rc->b.c, &map), -EINVAL);
	map.nr = krc_mr_mapping(mr) + 1;
	KUNIT_EXPECT_EQ(test, registers(&rc->b.c, &map), -EINVAL);
	map.nr--;
	map.key += 256;
	KUNIT_EXPECT_EQ(test, registers(&rc->b.c, &map), -EINVAL);
	map.key -= 256;
	/* A region that is free can be invalidated by this side, as ULPs do after a failure. */
	KUNIT_EXPECT_EQ(test, krc_mr_invalidate(&rc->b.c, map.key, false, &turn), 0);
	KUNIT_EXPECT_EQ(test, krc_mr_invalidate(&rc->b.c, map.key, true, &turn), -EINVAL);
	KUNIT_EXPECT_EQ(test, registers(&rc->b.c, &map), 0);
	KUNIT_EXPECT_EQ(test, registers(&rc->b.c, &map), -EINVAL);
	KUNIT_EXPECT_EQ(test, krc_mr_invalidate(&rc->b.c, map.key + 1, false, &turn), -EINVAL);
	/* The peer may only invalidate what it may reach. */
	KUNIT_EXPECT_EQ(test, krc_mr_invalidate(&rc->b.c, map.key, true, &turn), -EINVAL);
	KUNIT_EXPECT_EQ(test, krc_mr_invalidate(&rc->b.c, map.key, false, &turn), 0);
	KUNIT_EXPECT_FALSE(test, krc_mr_busy(&rc->b.mrs, &turn));
	spin_unlock_irq(&rc->b.c.lock);
}

/* Keys, addresses and rights, at their limits. */
static void mr_allows(struct kunit *test)
{
	struct krc_mr *mr = region(test, KRC_ACCESS_REMOTE_WRITE), *used;
	struct krc_conn *c = &rc->b.c;
	u32 key = rc_key(mr);
	struct krc_conn *owner;
	const struct {
		bool	ok;
		u32	key, access;
		u64	addr, len;
	} tries[] = {
		{ true, key, KRC_ACCESS_REMOTE_WRITE, IOVA, 60000 },
		{ true, key, KRC_ACCESS_REMOTE_WRITE, IOVA + 60000, 0 },
		{ true, key, 0, IOVA + 59999, 1 },
		{ false, key, KRC_ACCESS_REMOTE_READ, IOVA, 1 },
		{ false, key, KRC_ACCESS_LOCAL_WRITE, IOVA, 1 },
		{ false, key + 1, 0, IOVA, 1 },
		{ false, key + 256, 0, IOVA, 1 },
		{ false, 0, 0, IOVA, 1 },
		{ false, key, 0, IOVA - 1, 1 },
		{ false, key, 0, IOVA - 1, 2 },
		{ false, key, 0, IOVA + 60000, 1 },
		{ false, key, 0, IOVA + 59999, 2 },
		{ false, key, 0, IOVA, 60001 },
		{ false, key, 0, IOVA + 1, U64_MAX },
		{ false, key, 0, U64_MAX, 2 },
		{ false, key, 0, 0, 1 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tries); i++) {
		used = krc_mr_use(c, tries[i].key, tries[i].addr, tries[i].len, tries[i].access);
		KUNIT_EXPECT_EQ_MSG(test, !!used, tries[i].ok, "%u", i);
		krc_mr_put(used);
	}
	/* Another connection of the protection domain may use it itself, its peer may not. */
	owner = mr->conn;
	mr->conn = NULL;
	KUNIT_EXPECT_NULL(test, krc_mr_use(c, key, IOVA, 1, KRC_ACCESS_REMOTE_WRITE));
	used = krc_mr_use(c, key, IOVA, 1, 0);
	KUNIT_EXPECT_NOT_NULL(test, used);
	krc_mr_put(used);
	mr->conn = owner;
	/* Another protection domain may not. */
	c->pd = test;
	KUNIT_EXPECT_NULL(test, krc_mr_use(c, key, IOVA, 1, 0));
	c->pd = &rc->b;
}

static struct kunit_case mr_cases[] = {
	KUNIT_CASE(mr_write),
	KUNIT_CASE(mr_read),
	KUNIT_CASE(mr_read_limits),
	KUNIT_CASE(mr_read_refused),
	KUNIT_CASE(mr_read_to_region),
	KUNIT_CASE(mr_send_from),
	KUNIT_CASE(mr_send_from_invalid),
	KUNIT_CASE(mr_invalidated_while_served),
	KUNIT_CASE(mr_freed_while_stuck),
	KUNIT_CASE(mr_invalidated_by_peer),
	KUNIT_CASE(mr_mapped_ahead),
	KUNIT_CASE(mr_registered_again),
	KUNIT_CASE(mr_same_mapping),
	KUNIT_CASE(mr_mapped_while_queued),
	KUNIT_CASE(mr_freed_while_queued),
	KUNIT_CASE(mr_of_another),
	KUNIT_CASE(mr_waited_for),
	KUNIT_CASE(mr_freed_while_waited_for),
	KUNIT_CASE(mr_wrong_requests),
	KUNIT_CASE(mr_allows),
	{}
};

static struct kunit_suite mr_suite = {
	.name		= "kofi_rc_mr",
	.init		= rc_scene_init,
	.exit		= rc_scene_exit,
	.suite_init	= rc_suite_init,
	.suite_exit	= rc_suite_exit,
	.test_cases	= mr_cases,
};

kunit_test_suite(mr_suite);
