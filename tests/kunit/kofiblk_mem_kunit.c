// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory of kofiblk's server: limits of sessions, and requests that wait for memory. */
#include "kofiblk_srv_scene.c"

static void memory_is_bounded(struct kunit *test)
{
	u16 i;

	scene->port.max_memory = 8192;
	for (i = 0; i < DEPTH; i++)
		ask(KOFIBLK_OP_READ, i, 1);
	KUNIT_EXPECT_EQ(test, scene->nios, 2U);
	KUNIT_EXPECT_EQ(test, load().memory, 8192U);
	for (i = 0; i < DEPTH; i++) {
		store_done(test, 0);
		rma_done(test, 0);
		KUNIT_EXPECT_LE(test, load().memory, 8192U);
		replied(test, KOFIBLK_OP_READ, KOFIBLK_ID(i, 1ULL), KULP_STS_OK, 4096);
		reply_arrived(test);
	}
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	/* A session's first request may exceed the limit. */
	scene->port.max_memory = 1;
	ask(KOFIBLK_OP_READ, 0, 2);
	KUNIT_EXPECT_EQ(test, scene->nios, 1U);
	store_done(test, 0);
	rma_done(test, 0);
	reply_arrived(test);
}

static void read_on(u16 queue, u16 slot, u64 gen, u32 bytes)
{
	struct kofiblk_cmd_msg msg = command(KOFIBLK_OP_READ, slot, gen);

	msg.queue = queue;
	msg.bytes = bytes;
	say(&msg);
}

static void read_over(struct kunit *test)
{
	store_done(test, 0);
	rma_done(test, 0);
	reply_arrived(test);
}

/* A queue keeps its lease until another queue needs it. */
static void memory_moves_between_queues(struct kunit *test)
{
	scene->port.max_memory = 3 * PAGE_SIZE;
	scene->s.nqueues = 2;
	read_on(0, 0, 1, 2 * PAGE_SIZE);
	read_over(test);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
	KUNIT_EXPECT_EQ(test, scene->sqs[0].leased, (u32)(2 * PAGE_SIZE));
	read_on(1, 0, 1, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, scene->sqs[0].leased, (u32)(2 * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, scene->s.leased, (u32)(3 * PAGE_SIZE));
	read_on(1, 1, 1, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, scene->nios, 2U);
	KUNIT_EXPECT_EQ(test, scene->sqs[0].leased, 0U);
	KUNIT_EXPECT_EQ(test, scene->sqs[1].leased, (u32)(2 * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, scene->s.leased, (u32)(2 * PAGE_SIZE));
	/* The lease has moved to the other queue. */
	read_on(0, 0, 2, 2 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, scene->nios, 2U);
	KUNIT_EXPECT_EQ(test, scene->sqs[0].stats.mem_waits, 1ULL);
	/* A later, smaller request doesn't overtake the waiting one. */
	read_on(1, 2, 1, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, scene->nios, 2U);
	read_over(test);
	KUNIT_EXPECT_EQ(test, scene->nios, 2U);
	KUNIT_EXPECT_EQ(test, load().memory, (u32)(3 * PAGE_SIZE));
	read_over(test);
	KUNIT_EXPECT_EQ(test, scene->nios, 2U);
	read_over(test);
	read_over(test);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
	/* Unused leases are taken back after a while. */
	kbs_mem_trim(&scene->s);
	KUNIT_EXPECT_EQ(test, scene->s.leased, 0U);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
}

/* A part of a page is charged as a page. */
static void memory_is_of_pages(struct kunit *test)
{
	struct kofiblk_cmd_msg msg;
	u16 i;

	scene->export.store.disk.logical_block = 512;
	scene->port.max_memory = 2 * PAGE_SIZE;
	for (i = 0; i < 3; i++) {
		msg = command(KOFIBLK_OP_READ, i, 1);
		msg.bytes = 512;
		say(&msg);
	}
	KUNIT_EXPECT_EQ(test, scene->nios, 2U);
	KUNIT_EXPECT_EQ(test, load().memory, (u32)(2 * PAGE_SIZE));
	for (i = 0; i < 3 && scene->nios; i++) {
		store_done(test, 0);
		rma_done(test, 0);
		reply_arrived(test);
	}
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
}

/* A request that waited for memory isn't started after the session has ended. */
static void stale_waiting(struct kunit *test)
{
	scene->port.max_memory = 4096;
	ask(KOFIBLK_OP_WRITE, 0, 1);
	ask(KOFIBLK_OP_WRITE, 1, 1);
	ask(KOFIBLK_OP_READ, 2, 1);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 1U);
	end_session();
	rma_done(test, 0);
	nothing_happened(test);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
}

/* The largest possible limit works as well. */
static void memory_does_not_wrap(struct kunit *test)
{
	scene->port.max_memory = U32_MAX;
	scene->s.leased = round_down(U32_MAX, PAGE_SIZE);
	ask(KOFIBLK_OP_READ, 0, 1);
	KUNIT_EXPECT_EQ(test, scene->nios, 0U);
	KUNIT_EXPECT_EQ(test, scene->s.leased, round_down(U32_MAX, PAGE_SIZE));
	end_session();
	kbs_session_abort(&scene->s);
	scene->s.leased = 0;
}

/* A session that ends doesn't wait for memory of other sessions. */
static void waiters_end(struct kunit *test)
{
	struct kbs_req *reqs = scene->sqs[0].reqs;

	scene->port.max_memory = 4096;
	ask(KOFIBLK_OP_READ, 0, 1);
	ask(KOFIBLK_OP_READ, 1, 1);
	KUNIT_EXPECT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_EQ(test, load().in_flight, 2U);
	/* Another session uses the reserve. */
	KUNIT_EXPECT_EQ(test, kbs_reserve_take(&reqs[3]), 0);
	reqs[2].cmd = command(KOFIBLK_OP_READ, 2, 1);
	KUNIT_EXPECT_EQ(test, kbs_reserve_take(&reqs[2]), -EAGAIN);
	scene->sqs[0].load.in_flight++;
	end_session();
	kbs_session_abort(&scene->s);
	KUNIT_EXPECT_EQ(test, load().in_flight, 1U);
	KUNIT_EXPECT_TRUE(test, list_empty(&scene->s.mem_wait));
	/* A request that starts now doesn't wait either. */
	scene->sqs[0].load.in_flight++;
	kbs_run_begin(&reqs[2]);
	KUNIT_EXPECT_EQ(test, load().in_flight, 1U);
	KUNIT_EXPECT_EQ(test, kbs_reserve_take(&reqs[2]), -ESHUTDOWN);
	kbs_reserve_give(&reqs[3]);
	KUNIT_EXPECT_FALSE(test, kbs_reserve.busy);
	store_done(test, 0);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
}

/* If allocations fail, one request at a time proceeds with the reserve. */
static void reserve(struct kunit *test)
{
	struct kbs_req *reqs = scene->sqs[0].reqs;
	u16 i;

	for (i = 0; i < 3; i++) {
		reqs[i].cmd = command(KOFIBLK_OP_READ, i, 1);
		KUNIT_EXPECT_EQ(test, kbs_reserve_take(&reqs[i]), i ? -EAGAIN : 0);
	}
	KUNIT_EXPECT_EQ(test, kbs_reserve_use(&reqs[0]), 1U);
	KUNIT_EXPECT_EQ(test, kbs_reserve.used[0].bv_len, 4096U);
	reqs[0].cmd.bytes = KOFIBLK_IO_MAX;
	KUNIT_EXPECT_EQ(test, kbs_reserve_use(&reqs[0]), kbs_reserve.nbvec);
	spin_lock_bh(&scene->sqs[0].lock);
	scene->sqs[0].load.in_flight = 2;
	scene->sqs[0].load.memory = 1 << 20;
	scene->sqs[0].leased = 1 << 20;
	scene->s.leased = 1 << 20;
	reqs[1].state = KBS_REQ_BUSY;
	reqs[2].state = KBS_REQ_BUSY;
	spin_unlock_bh(&scene->sqs[0].lock);
	kbs_reserve_give(&reqs[0]);
	settle();
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_PTR_EQ(test, scene->ios[0]->bvec, (const struct bio_vec *)kbs_reserve.used);
	store_done(test, 0);
	rma_done(test, 0);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	store_done(test, 0);
	rma_done(test, 0);
	KUNIT_EXPECT_FALSE(test, kbs_reserve.busy);
	reply_arrived(test);
	reply_arrived(test);
	KUNIT_EXPECT_EQ(test, load().memory, 1U << 20);
}

static struct page *read_into(struct kunit *test, u64 gen, u32 bytes)
{
	struct kofiblk_cmd_msg msg = command(KOFIBLK_OP_READ, 0, gen);
	struct page *page;

	msg.bytes = bytes;
	say(&msg);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	page = scene->ios[0]->bvec[0].bv_page;
	store_done(test, 0);
	rma_done(test, 0);
	reply_arrived(test);
	return page;
}

/* A busy session keeps pages for later requests, up to a limit. */
static void pages_are_kept(struct kunit *test)
{
	struct kbs_chunks *chunks = &scene->sqs[0].chunks;
	struct page *page;
	unsigned int i;

	page = read_into(test, 1, 65536);
	KUNIT_EXPECT_EQ(test, chunks->bytes, 65536U);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
	KUNIT_EXPECT_PTR_EQ(test, read_into(test, 2, 65536), page);
	/* Pages of another size aren't reused. */
	KUNIT_EXPECT_PTR_NE(test, read_into(test, 3, 8192), page);
	KUNIT_EXPECT_EQ(test, chunks->bytes, 65536U + 8192);
	/* Pages that the store references aren't reused, as it may still send them. */
	get_page(page);
	KUNIT_EXPECT_PTR_EQ(test, read_into(test, 4, 65536), page);
	KUNIT_EXPECT_EQ(test, chunks->bytes, 8192U);
	put_page(page);
	kbs_mem_trim(&scene->s);
	KUNIT_EXPECT_EQ(test, chunks->bytes, 8192U);
	kbs_mem_trim(&scene->s);
	KUNIT_EXPECT_EQ(test, chunks->bytes, 0U);
	for (i = 0; i <= KBS_CHUNKS_BYTES / SZ_64K; i++) {
		page = alloc_pages(GFP_KERNEL | __GFP_COMP, get_order(SZ_64K));
		KUNIT_ASSERT_NOT_NULL(test, page);
		kbs_chunk_give(&scene->sqs[0], page, get_order(SZ_64K));
	}
	KUNIT_EXPECT_EQ(test, chunks->bytes, (u32)KBS_CHUNKS_BYTES);
	kbs_chunks_free(&scene->sqs[0]);
	KUNIT_EXPECT_EQ(test, chunks->bytes, 0U);
}

/* Data in one piece needs no list of pieces. */
static void list_of_pieces(struct kunit *test)
{
	static const struct {
		u32		bytes;
		unsigned int	nbvec;
	} rows[] = {
		{ 512, 1 }, { 4096, 1 }, { 7680, 1 }, { 8192, 1 }, { 12288, 2 }, { 65536, 1 },
	};
	const struct kbs_req *req = &scene->sqs[0].reqs[0];
	unsigned int i;

	scene->export.store.disk.logical_block = 512;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		read_on(0, 0, i + 1, rows[i].bytes);
		KUNIT_ASSERT_EQ(test, scene->nios, 1U);
		KUNIT_EXPECT_EQ(test, scene->ios[0]->nbvec, rows[i].nbvec);
		KUNIT_EXPECT_EQ(test, scene->ios[0]->bvec == &req->one, rows[i].nbvec == 1);
		KUNIT_EXPECT_EQ(test, scene->ios[0]->bytes, (size_t)rows[i].bytes);
		KUNIT_EXPECT_EQ(test, scene->ios[0]->bvec[0].bv_len,
				rows[i].nbvec == 1 ? rows[i].bytes : 8192U);
		read_over(test);
	}
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(memory_is_bounded),
	KUNIT_CASE(memory_moves_between_queues),
	KUNIT_CASE(memory_is_of_pages),
	KUNIT_CASE(memory_does_not_wrap),
	KUNIT_CASE(stale_waiting),
	KUNIT_CASE(waiters_end),
	KUNIT_CASE(reserve),
	KUNIT_CASE(pages_are_kept),
	KUNIT_CASE(list_of_pieces),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_mem",
	.suite_init	= srv_suite_init,
	.suite_exit	= srv_suite_exit,
	.init		= srv_init,
	.exit		= srv_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of memory in kofiblk's server");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
