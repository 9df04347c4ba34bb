// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queues of kofiblk's server: they share no locks; what their handlers do without work items;
 * replies by immediate data; a device that refuses to invalidate.
 */
#include "kofiblk_srv_scene.c"
#include "crew.h"

static struct kofiblk_cmd_msg imm_read(u16 slot, u64 gen, u32 bytes)
{
	struct kofiblk_cmd_msg msg = command(KOFIBLK_OP_READ, slot, gen);

	msg.flags = KOFIBLK_CMD_IMM;
	msg.imm = 0x80001234 + gen;
	msg.bytes = bytes;
	return msg;
}

/* Do what a handler does for a command, without the work items that it queues. */
static void handle(struct kunit *test, const struct kofiblk_cmd_msg *msg)
{
	struct kbs_req *req;

	rcu_read_lock();
	req = kbs_session_command(&scene->s, msg);
	rcu_read_unlock();
	KUNIT_ASSERT_NOT_NULL(test, req);
	kbs_req_begin(req);
}

/* A read needs no work item if pages are at hand. */
static void read_at_once(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = command(KOFIBLK_OP_READ, 0, 1);
	struct kbs_store_io *io;
	struct kulp_rma *rma;

	scene->nowait = true;
	handle(test, &msg);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_TRUE(test, scene->ios[0]->nowait);
	io = take_io(test);
	io->done(io);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 1U);
	rma = take_rma(test);
	rma->op.done(&scene->queue, &rma->op, 0, 0);
	replied(test, KOFIBLK_OP_READ, msg.id, KULP_STS_OK, 4096);
	reply_arrived(test);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
}

/* Nor does a write, whose data is fetched and written. */
static void write_at_once(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = command(KOFIBLK_OP_WRITE, 0, 1);
	struct kbs_store_io *io;
	struct kulp_rma *rma;

	scene->nowait = true;
	handle(test, &msg);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 1U);
	rma = take_rma(test);
	rma->op.done(&scene->queue, &rma->op, 0, 0);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_TRUE(test, scene->ios[0]->nowait);
	io = take_io(test);
	io->done(io);
	replied(test, KOFIBLK_OP_WRITE, msg.id, KULP_STS_OK, 4096);
	reply_arrived(test);
	/* A store that would have to wait gets the data from a work item. */
	msg.id = KOFIBLK_ID(0, 2ULL);
	say(&msg);
	rma_done(test, 0);
	store_done(test, -EAGAIN);
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_FALSE(test, scene->ios[0]->nowait);
	store_done(test, 0);
	replied(test, KOFIBLK_OP_WRITE, msg.id, KULP_STS_OK, 4096);
	reply_arrived(test);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
}

/* A handler doesn't wait for memory: a work item does. */
static void without_pages(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = command(KOFIBLK_OP_READ, 0, 1);

	scene->nowait = true;
	scene->dry = true;
	/* In a work item the store may wait, too. */
	say(&msg);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_FALSE(test, scene->ios[0]->nowait);
	KUNIT_EXPECT_FALSE(test, kbs_reserve.busy);
	KUNIT_EXPECT_EQ(test, load().memory, 4096U);
	store_done(test, 0);
	rma_done(test, 0);
	reply_arrived(test);
	/* These pages are at hand now. */
	msg.id = KOFIBLK_ID(0, 2ULL);
	say(&msg);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_TRUE(test, scene->ios[0]->nowait);
	store_done(test, 0);
	rma_done(test, 0);
	reply_arrived(test);
}

/* The RDMA write is the reply, so the slot is free before its completion. */
static void immediate_data(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = imm_read(0, 1, 65536);
	const struct kulp_rma *rma;
	struct page *page;

	say(&msg);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	KUNIT_ASSERT_EQ(test, scene->ios[0]->nbvec, 1U);
	page = scene->ios[0]->bvec[0].bv_page;
	store_done(test, 0);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 1U);
	rma = scene->rmas[0];
	KUNIT_EXPECT_TRUE(test, rma->has_imm);
	KUNIT_EXPECT_EQ(test, rma->imm, 0x80001235U);
	KUNIT_EXPECT_EQ(test, iov_iter_rw(&rma->iter), WRITE);
	KUNIT_EXPECT_EQ(test, rma->iov.addr, 0x5000ULL);
	KUNIT_EXPECT_EQ(test, rma->iov.key, 77ULL);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&rma->iter), 65536UL);
	KUNIT_EXPECT_PTR_EQ(test, rma->iter.bvec->bv_page, page);
	KUNIT_EXPECT_EQ(test, load().posted, 1U);
	/* The client has got the data, and reuses the slot. */
	msg = imm_read(0, 2, 65536);
	say(&msg);
	KUNIT_EXPECT_NULL(test, scene->violation);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	/* The new request gets other pages than the outstanding write. */
	KUNIT_EXPECT_PTR_NE(test, scene->ios[0]->bvec[0].bv_page, page);
	KUNIT_EXPECT_EQ(test, load().memory, 2 * 65536U);
	KUNIT_EXPECT_EQ(test, load().in_flight, 2U);
	rma_done(test, 0);
	KUNIT_EXPECT_EQ(test, load().memory, 65536U);
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	store_done(test, 0);
	rma_done(test, 0);
	nothing_happened(test);
	/* Without KOFIBLK_CMD_IMM the reply is a message. */
	ask(KOFIBLK_OP_READ, 0, 3);
	store_done(test, 0);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 1U);
	KUNIT_EXPECT_FALSE(test, scene->rmas[0]->has_imm);
	rma_done(test, 0);
	replied(test, KOFIBLK_OP_READ, KOFIBLK_ID(0, 3ULL), KULP_STS_OK, 4096);
	reply_arrived(test);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, load().posted, 0U);
}

/* Pieces of a write may arrive in any order, so the reply is a message after all of them. */
static void immediate_data_of_pieces(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = imm_read(0, 1, 3 * PAGE_SIZE);

	say(&msg);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	KUNIT_ASSERT_GT(test, scene->ios[0]->nbvec, 1U);
	store_done(test, 0);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 1U);
	KUNIT_EXPECT_FALSE(test, scene->rmas[0]->has_imm);
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	rma_done(test, 0);
	replied(test, KOFIBLK_OP_READ, msg.id, KULP_STS_OK, 3 * PAGE_SIZE);
	reply_arrived(test);
	/* An error is replied to by a message. */
	msg = imm_read(0, 2, 65536);
	say(&msg);
	store_done(test, -EIO);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 0U);
	replied(test, KOFIBLK_OP_READ, msg.id, KULP_STS_IO, 0);
	reply_arrived(test);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
	/* It is a violation without the capability. */
	scene->s.limits.caps &= ~KOFIBLK_CAP_IMM;
	msg = imm_read(0, 3, 65536);
	say(&msg);
	KUNIT_EXPECT_STREQ(test, scene->violation, "an operation that wasn't granted");
	nothing_happened(test);
}

/* Without a free reply the request waits; after the end of the session nothing is written. */
static void immediate_data_runs_out(struct kunit *test)
{
	struct kofiblk_cmd_msg msg;
	u16 i;

	for (i = 0; i < 2 * DEPTH; i++) {
		msg = imm_read(i % DEPTH, 1 + i / DEPTH, 4096);
		say(&msg);
		store_done(test, 0);
	}
	KUNIT_EXPECT_NULL(test, scene->violation);
	KUNIT_EXPECT_EQ(test, scene->nrmas, (unsigned int)DEPTH);
	for (i = 0; i < DEPTH; i++)
		rma_done(test, 0);
	KUNIT_EXPECT_EQ(test, scene->nrmas, (unsigned int)DEPTH);
	KUNIT_EXPECT_EQ(test, load().in_flight, (u32)DEPTH);
	for (i = 0; i < DEPTH; i++)
		rma_done(test, 0);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
	/* If the write fails, or the session has ended, no reply is sent. */
	msg = imm_read(0, 3, 4096);
	say(&msg);
	store_done(test, 0);
	msg = imm_read(1, 3, 4096);
	say(&msg);
	rma_done(test, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, scene->stops, 1U);
	end_session();
	store_done(test, 0);
	nothing_happened(test);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
}

static struct {
	bool	held;
	bool	release;
	bool	gave_up;
} holder;

/* Simulate another CPU that holds the locks of the first queue and of the session. */
static void hold_locks(struct kofi_thread *thread)
{
	unsigned long end = jiffies + msecs_to_jiffies(KOFI_SPIN_MS);

	spin_lock_bh(&scene->sqs[0].lock);
	spin_lock(&scene->s.lock);
	WRITE_ONCE(holder.held, true);
	while (!READ_ONCE(holder.release) && time_before(jiffies, end))
		cpu_relax();
	holder.gave_up = !READ_ONCE(holder.release);
	spin_unlock(&scene->s.lock);
	spin_unlock_bh(&scene->sqs[0].lock);
}

/* No work item is needed, which could be queued on the blocked CPU. */
static void pass_through(struct kunit *test, u64 gen)
{
	struct kofiblk_cmd_msg msg = command(KOFIBLK_OP_READ, 0, gen);
	struct kbs_store_io *io;
	struct kulp_rma *rma;
	struct kulp_op *op;

	msg.flags = KOFIBLK_CMD_INLINE;
	msg.addr = 0;
	msg.key = 0;
	msg.queue = 1;
	handle(test, &msg);
	io = take_io(test);
	io->done(io);
	op = take_op(test);
	op->done(&scene->queue, op, 0, 0);
	/* A request that uses memory of the session. */
	msg = command(KOFIBLK_OP_READ, 1, gen);
	msg.queue = 1;
	handle(test, &msg);
	io = take_io(test);
	io->done(io);
	rma = take_rma(test);
	rma->op.done(&scene->queue, &rma->op, 0, 0);
	op = take_op(test);
	op->done(&scene->queue, op, 0, 0);
}

/* A queue works while the locks of another queue and of the session are held. */
static void queues_are_apart(struct kunit *test)
{
	struct kofi_thread thread;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	scene->s.nqueues = 2;
	scene->nowait = true;
	pass_through(test, 1);
	memset(&holder, 0, sizeof(holder));
	kofi_thread_start(test, &thread, hold_locks, NULL);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(holder.held)));
	pass_through(test, 2);
	WRITE_ONCE(holder.release, true);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_FALSE(test, holder.gave_up);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, scene->sqs[1].stats.reads, 4ULL);
	/* Queues don't share cache lines that they write to. */
	KUNIT_EXPECT_NE(test, (unsigned long)&scene->sqs[0].chunks / SMP_CACHE_BYTES,
			(unsigned long)&scene->sqs[1].lock / SMP_CACHE_BYTES);
	KUNIT_EXPECT_EQ(test, sizeof(struct kbs_squeue) % SMP_CACHE_BYTES, 0UL);
}

/*
 * The device doesn't invalidate the region of data that the client has fetched, or its endpoint is
 * closed meanwhile.
 */
static void region_kept(struct kunit *test, int err)
{
	struct kbs_req *req = &scene->sqs[0].reqs[0];
	struct fid_mr mr = { .key = 77 };
	struct kulp_op *op;

	req->mr = &mr;
	ask(KOFIBLK_OP_READ, 0, 1);
	store_done(test, 0);
	/* Registration, offer of the data, end of the session, invalidation. */
	reply_arrived(test);
	reply_arrived(test);
	KUNIT_EXPECT_FALSE(test, scene->s.exposed);
	end_session();
	kbs_session_abort(&scene->s);
	op = take_op(test);
	KUNIT_EXPECT_EQ(test, op->lane, KULP_LANE_INVAL);
	op->done(&scene->queue, op, err, 0);
	settle();
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_TRUE(test, scene->s.exposed);
	/* Until the device is closed, nobody else gets the pages. */
	KUNIT_EXPECT_NOT_NULL(test, req->bvec);
	/* There is no real region to close. */
	req->mr = NULL;
}

static void device_keeps_region(struct kunit *test)
{
	region_kept(test, -EIO);
}

static void device_is_closed(struct kunit *test)
{
	region_kept(test, -ECANCELED);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(read_at_once),
	KUNIT_CASE(write_at_once),
	KUNIT_CASE(without_pages),
	KUNIT_CASE(immediate_data),
	KUNIT_CASE(immediate_data_of_pieces),
	KUNIT_CASE(immediate_data_runs_out),
	KUNIT_CASE(queues_are_apart),
	KUNIT_CASE(device_keeps_region),
	KUNIT_CASE(device_is_closed),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_srv_queue",
	.suite_init	= srv_suite_init,
	.suite_exit	= srv_suite_exit,
	.init		= srv_init,
	.exit		= srv_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of the queues of kofiblk's server");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
