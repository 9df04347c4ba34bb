// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands to kofiblk's server, valid and invalid, replies, and the end of a session during
 * requests.
 */
#include "kofiblk_srv_scene.c"

/* Return: a page filled with @byte, freed at the end of the case. */
static void *page_of(struct kunit *test, u8 byte)
{
	u8 *page = kunit_kmalloc(test, PAGE_SIZE, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, page);
	memset(page, byte, PAGE_SIZE);
	return page;
}

/* Return: number of commands that were taken for copies of earlier ones. */
static u64 copies(void)
{
	struct kbs_session_stats stats = {};
	struct kbs_load load;

	kbs_session_load(&scene->s, &load, &stats);
	return stats.stale;
}

static void reads(struct kunit *test)
{
	const struct kbs_store_io *io;
	const struct kulp_rma *rma;

	ask(KOFIBLK_OP_READ, 1, 5);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	io = scene->ios[0];
	KUNIT_EXPECT_FALSE(test, io->write);
	KUNIT_EXPECT_EQ(test, io->offset, 8192ULL);
	KUNIT_EXPECT_EQ(test, io->bytes, 4096UL);
	KUNIT_EXPECT_EQ(test, load().io, 1U);
	store_done(test, 0);
	KUNIT_EXPECT_EQ(test, load().io, 0U);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 1U);
	rma = scene->rmas[0];
	KUNIT_EXPECT_EQ(test, iov_iter_rw(&rma->iter), WRITE);
	KUNIT_EXPECT_EQ(test, rma->iov.addr, 0x5000ULL);
	KUNIT_EXPECT_EQ(test, rma->iov.key, 77ULL);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&rma->iter), 4096UL);
	/* No reply is sent before the data has been written. */
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	rma_done(test, 0);
	replied(test, KOFIBLK_OP_READ, KOFIBLK_ID(1, 5ULL), KULP_STS_OK, 4096);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
	/* The client may get the reply before the send completes. */
	ask(KOFIBLK_OP_READ, 1, 6);
	KUNIT_EXPECT_NULL(test, scene->violation);
	KUNIT_EXPECT_EQ(test, scene->nios, 1U);
	reply_arrived(test);
	store_done(test, 0);
	rma_done(test, 0);
	reply_arrived(test);
}

static void writes(struct kunit *test)
{
	ask(KOFIBLK_OP_WRITE, 0, 1);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 1U);
	KUNIT_EXPECT_EQ(test, iov_iter_rw(&scene->rmas[0]->iter), READ);
	KUNIT_EXPECT_EQ(test, scene->nios, 0U);
	rma_done(test, 0);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_TRUE(test, scene->ios[0]->write);
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	store_done(test, -ENOSPC);
	replied(test, KOFIBLK_OP_WRITE, KOFIBLK_ID(0, 1ULL), KULP_STS_NOSPC, 0);
	reply_arrived(test);
}

/* Nothing is written or answered, as the client retries in another session. */
static void lost_data(struct kunit *test)
{
	ask(KOFIBLK_OP_WRITE, 0, 1);
	ask(KOFIBLK_OP_READ, 1, 1);
	store_done(test, 0);
	rma_done(test, -EACCES);
	KUNIT_EXPECT_EQ(test, scene->stops, 1U);
	rma_done(test, -ETIMEDOUT);
	nothing_happened(test);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
}

static void inline_writes(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = command(KOFIBLK_OP_WRITE, 0, 1);
	u8 *data = kunit_kzalloc(test, 512, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, data);
	memset(data, 0x5a, 512);
	scene->export.store.disk.logical_block = 512;
	msg.flags = KOFIBLK_CMD_INLINE;
	msg.bytes = 512;
	msg.data = data;
	say(&msg);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 0U);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	/* The receive buffer may be reused. */
	memset(data, 0, 512);
	KUNIT_EXPECT_TRUE(test, !memchr_inv(page_address(scene->ios[0]->bvec->bv_page), 0x5a, 512));
	store_done(test, 0);
	replied(test, KOFIBLK_OP_WRITE, KOFIBLK_ID(0, 1ULL), KULP_STS_OK, 512);
	reply_arrived(test);
}

static struct kofiblk_cmd_msg inline_read(u16 slot, u64 gen)
{
	struct kofiblk_cmd_msg msg = command(KOFIBLK_OP_READ, slot, gen);

	msg.flags = KOFIBLK_CMD_INLINE;
	msg.addr = 0;
	msg.key = 0;
	return msg;
}

/* Check that the inline data of the oldest reply is filled with a byte. */
static void reply_has(struct kunit *test, u8 byte, u32 bytes)
{
	struct kbs_reply_op *reply;

	KUNIT_ASSERT_GT(test, scene->nops, 0U);
	reply = container_of(scene->ops[0], struct kbs_reply_op, rma.op);
	KUNIT_ASSERT_EQ(test, reply->bytes, bytes);
	KUNIT_EXPECT_TRUE(test, !bytes || !memchr_inv(page_address(reply->page), byte, bytes));
}

static void stored(struct kunit *test, u8 byte)
{
	const struct bio_vec *bvec = scene->ios[0]->bvec;

	KUNIT_ASSERT_EQ(test, scene->ios[0]->nbvec, 1U);
	memset(page_address(bvec->bv_page), byte, bvec->bv_len);
	store_done(test, 0);
}

static void inline_reads(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = inline_read(0, 1);

	say(&msg);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_FALSE(test, scene->ios[0]->write);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
	stored(test, 0x11);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 0U);
	replied(test, KOFIBLK_OP_READ, msg.id, KULP_STS_OK, 4096);
	reply_has(test, 0x11, 4096);
	/* The client gets the reply before its completion, and reuses the slot. */
	msg = inline_read(0, 2);
	say(&msg);
	stored(test, 0x22);
	reply_has(test, 0x11, 4096);
	reply_arrived(test);
	replied(test, KOFIBLK_OP_READ, msg.id, KULP_STS_OK, 4096);
	reply_has(test, 0x22, 4096);
	reply_arrived(test);
	/* An error has no inline data, and neither has a reply to data by RDMA. */
	msg = inline_read(0, 3);
	say(&msg);
	store_done(test, -EIO);
	replied(test, KOFIBLK_OP_READ, msg.id, KULP_STS_IO, 0);
	reply_has(test, 0, 0);
	reply_arrived(test);
	ask(KOFIBLK_OP_READ, 0, 4);
	store_done(test, 0);
	rma_done(test, 0);
	reply_has(test, 0, 0);
	reply_arrived(test);
	/* More bytes than were granted. */
	msg = inline_read(0, 5);
	msg.bytes = 8192;
	say(&msg);
	KUNIT_EXPECT_NOT_NULL(test, scene->violation);
	nothing_happened(test);
}

/* Inline data needs no work item, unless the store would have to wait. */
static void begun_at_once(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = inline_read(0, 1);
	struct kbs_store_io *io;
	struct kbs_req *req;

	scene->nowait = true;
	rcu_read_lock();
	req = kbs_session_command(&scene->s, &msg);
	rcu_read_unlock();
	KUNIT_ASSERT_NOT_NULL(test, req);
	kbs_req_begin(req);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_EQ(test, load().io, 1U);
	io = take_io(test);
	io->done(io);
	KUNIT_EXPECT_EQ(test, load().io, 0U);
	replied(test, KOFIBLK_OP_READ, msg.id, KULP_STS_OK, 4096);
	reply_arrived(test);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	/* -EAGAIN of the first attempt is no error; of the second one it is. */
	msg = inline_read(0, 2);
	say(&msg);
	store_done(test, -EAGAIN);
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	KUNIT_EXPECT_EQ(test, load().io, 1U);
	store_done(test, -EAGAIN);
	replied(test, KOFIBLK_OP_READ, msg.id, KULP_STS_IO, 0);
	reply_arrived(test);
	/* No I/O starts after the session has ended. */
	msg = inline_read(0, 3);
	say(&msg);
	end_session();
	store_done(test, -EAGAIN);
	nothing_happened(test);
	KUNIT_EXPECT_EQ(test, load().io, 0U);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
}

/* The store may complete in hard IRQ context, where neither locks nor posts are possible. */
static void stored_by_an_interrupt(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = inline_read(0, 1);
	struct kbs_store_io *io;
	unsigned long flags;

	say(&msg);
	io = take_io(test);
	local_irq_save(flags);
	io->done(io);
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	local_irq_restore(flags);
	settle();
	replied(test, KOFIBLK_OP_READ, msg.id, KULP_STS_OK, 4096);
	reply_arrived(test);
}

static void other_operations(struct kunit *test)
{
	static const u8 ops[] = { KOFIBLK_OP_FLUSH, KOFIBLK_OP_DISCARD,
				  KOFIBLK_OP_WRITE_ZEROES };
	u16 i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		scene->other_err = i == 1 ? -EOPNOTSUPP : 0;
		ask(ops[i], i, 1);
		KUNIT_EXPECT_EQ(test, scene->others, i + 1U);
		replied(test, ops[i], KOFIBLK_ID(i, 1ULL),
			i == 1 ? KULP_STS_NOTSUPP : KULP_STS_OK, 0);
		reply_arrived(test);
	}
}

/* A range of more than the store's limit, as a client may have an older, larger limit. */
static void large_ranges(struct kunit *test)
{
	static const u8 ops[] = { KOFIBLK_OP_DISCARD, KOFIBLK_OP_WRITE_ZEROES };
	struct kofiblk_cmd_msg msg;
	u16 i;

	scene->export.store.disk.discard_max = 65536;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		msg = command(ops[i], i, 1);
		msg.bytes = 2 * 65536 + 4096;
		scene->others = 0;
		scene->other_err = 0;
		scene->sum = 0;
		say(&msg);
		KUNIT_EXPECT_NULL(test, scene->violation);
		KUNIT_ASSERT_EQ(test, scene->others, 3U);
		KUNIT_EXPECT_EQ(test, scene->end, msg.offset + msg.bytes);
		KUNIT_EXPECT_EQ(test, scene->sum, msg.bytes);
		KUNIT_EXPECT_EQ(test, scene->most, 65536ULL);
		replied(test, ops[i], msg.id, KULP_STS_OK, 0);
		reply_arrived(test);
		/* The rest isn't tried after an error. */
		msg.id = KOFIBLK_ID(i, 2ULL);
		scene->others = 0;
		scene->other_err = -ENOSPC;
		say(&msg);
		KUNIT_EXPECT_EQ(test, scene->others, 1U);
		replied(test, ops[i], msg.id, KULP_STS_NOSPC, 0);
		reply_arrived(test);
	}
	/* The rest isn't tried after the end of the session. */
	msg.id = KOFIBLK_ID(0, 3ULL);
	scene->others = 0;
	scene->other_err = 0;
	scene->last = 2;
	say(&msg);
	KUNIT_EXPECT_EQ(test, scene->others, 2U);
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
}

struct wrong {
	const char	*what;
	u8		op;
	u16		slot;
	u16		flags;
	u64		offset;
	u64		bytes;
	u32		caps;	/* capabilities that aren't granted */
	bool		read_only;
	u16		status;	/* expected status, or a violation */
};

static const struct wrong wrongs[] = {
	{ "slot", KOFIBLK_OP_READ, .slot = DEPTH },
	{ "the last slot that can be said", KOFIBLK_OP_WRITE,
	  .slot = KOFIBLK_DEPTH_MAX - 1 },
	{ "slot of FETCHED", KOFIBLK_OP_FETCHED, .slot = DEPTH },
	{ "too many bytes", KOFIBLK_OP_READ, .bytes = 131072 },
	{ "too many bytes to be written", KOFIBLK_OP_WRITE, .bytes = 131072 },
	{ "DISCARD not granted", KOFIBLK_OP_DISCARD, .caps = KOFIBLK_CAP_DISCARD },
	{ "WRITE_ZEROES not granted", KOFIBLK_OP_WRITE_ZEROES,
	  .caps = KOFIBLK_CAP_WRITE_ZEROES },
	{ "FUA not granted", KOFIBLK_OP_WRITE, .flags = KOFIBLK_CMD_FUA,
	  .caps = KOFIBLK_CAP_FUA },
	{ "unaligned offset", KOFIBLK_OP_READ, .offset = 512, .status = KULP_STS_INVAL },
	{ "unaligned bytes", KOFIBLK_OP_WRITE, .bytes = 512, .status = KULP_STS_INVAL },
	{ "behind the end", KOFIBLK_OP_READ, .offset = DISK, .status = KULP_STS_IO },
	{ "across the end", KOFIBLK_OP_WRITE, .offset = DISK - 4096, .bytes = 8192,
	  .status = KULP_STS_IO },
	{ "far behind the end", KOFIBLK_OP_READ, .offset = BIT_ULL(63) - 8192,
	  .status = KULP_STS_IO },
	{ "a large discard", KOFIBLK_OP_DISCARD, .bytes = BIT_ULL(62),
	  .status = KULP_STS_IO },
	{ "read-only: write", KOFIBLK_OP_WRITE, .read_only = true,
	  .status = KULP_STS_READ_ONLY },
	{ "read-only: discard", KOFIBLK_OP_DISCARD, .read_only = true,
	  .status = KULP_STS_READ_ONLY },
	{ "read-only: zeroes", KOFIBLK_OP_WRITE_ZEROES, .read_only = true,
	  .status = KULP_STS_READ_ONLY },
};

static void wrong_name(const struct wrong *wrong, char *desc)
{
	strscpy(desc, wrong->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wrongs, wrongs, wrong_name);

static void wrong_commands(struct kunit *test)
{
	const struct wrong *wrong = test->param_value;
	struct kofiblk_cmd_msg msg = command(wrong->op, wrong->slot, 1);

	if (wrong->op == KOFIBLK_OP_FETCHED) {
		msg.offset = 0;
		msg.bytes = 0;
	}
	msg.flags = wrong->flags;
	if (wrong->offset)
		msg.offset = wrong->offset;
	if (wrong->bytes)
		msg.bytes = wrong->bytes;
	scene->s.limits.caps &= ~wrong->caps;
	scene->export.store.read_only = wrong->read_only;
	say(&msg);
	if (wrong->status) {
		KUNIT_EXPECT_NULL(test, scene->violation);
		replied(test, wrong->op, msg.id, wrong->status, 0);
		reply_arrived(test);
	} else {
		KUNIT_EXPECT_NOT_NULL(test, scene->violation);
	}
	nothing_happened(test);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
}

/* Anyone who listens can send a command again. That has no effect, whatever its slot does. */
static void slots(struct kunit *test)
{
	struct kofiblk_cmd_msg fetched = {
		.op		= KOFIBLK_OP_FETCHED,
		.session	= SESSION,
		.id		= KOFIBLK_ID(2, 7ULL),
	};

	ask(KOFIBLK_OP_READ, 2, 7);
	scene->sqs[0].heard = jiffies - 100 * HZ;
	ask(KOFIBLK_OP_READ, 2, 7);
	ask(KOFIBLK_OP_READ, 2, 8);
	say(&fetched);
	KUNIT_EXPECT_EQ(test, copies(), 3ULL);
	KUNIT_EXPECT_EQ(test, scene->nios, 1U);
	store_done(test, 0);
	rma_done(test, 0);
	reply_arrived(test);
	ask(KOFIBLK_OP_READ, 2, 7);
	ask(KOFIBLK_OP_READ, 2, 6);
	say(&fetched);
	KUNIT_EXPECT_EQ(test, copies(), 6ULL);
	nothing_happened(test);
	KUNIT_EXPECT_NULL(test, scene->violation);
	KUNIT_EXPECT_EQ(test, scene->stops, 0U);
	/* It doesn't show that the client is alive. */
	KUNIT_EXPECT_TRUE(test, time_before(scene->sqs[0].heard, jiffies - 50 * HZ));
	ask(KOFIBLK_OP_FLUSH, 2, 8);
	KUNIT_EXPECT_TRUE(test, time_after(scene->sqs[0].heard, jiffies - 50 * HZ));
	reply_arrived(test);
	/* Ended sessions count nothing. */
	end_session();
	ask(KOFIBLK_OP_READ, 2, 7);
	say(&fetched);
	KUNIT_EXPECT_EQ(test, copies(), 6ULL);
}

/* A client reuses its slots before the replies' sends have completed. */
static void replies_run_out(struct kunit *test)
{
	u16 i;

	for (i = 0; i < DEPTH; i++)
		ask(KOFIBLK_OP_FLUSH, i, 1);
	KUNIT_EXPECT_EQ(test, scene->nops, (unsigned int)DEPTH);
	for (i = 0; i < DEPTH; i++)
		ask(KOFIBLK_OP_FLUSH, i, 2);
	KUNIT_EXPECT_NULL(test, scene->violation);
	KUNIT_EXPECT_EQ(test, scene->nops, (unsigned int)DEPTH);
	/* The requests wait for sends to end, and their slots stay busy. */
	KUNIT_EXPECT_EQ(test, scene->expedited, (unsigned int)DEPTH);
	ask(KOFIBLK_OP_FLUSH, 0, 3);
	KUNIT_EXPECT_EQ(test, copies(), 1ULL);
	KUNIT_EXPECT_NULL(test, scene->violation);
	for (i = 0; i < 2 * DEPTH; i++) {
		replied(test, KOFIBLK_OP_FLUSH, KOFIBLK_ID(i % DEPTH, 1ULL + i / DEPTH),
			KULP_STS_OK, 0);
		reply_arrived(test);
	}
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
}

/* If the session ends during the transfer, the data isn't written. */
static void stale_writes(struct kunit *test)
{
	ask(KOFIBLK_OP_WRITE, 0, 1);
	ask(KOFIBLK_OP_WRITE, 1, 1);
	rma_done(test, 0);
	KUNIT_EXPECT_EQ(test, scene->nios, 1U);
	end_session();
	rma_done(test, 0);
	KUNIT_EXPECT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_EQ(test, load().io, 1U);
	ask(KOFIBLK_OP_WRITE, 2, 1);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 0U);
	store_done(test, 0);
	KUNIT_EXPECT_EQ(test, load().io, 0U);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
}

/* The server must not write to the client's memory, whose key may have been reused. */
static void stale_reads(struct kunit *test)
{
	ask(KOFIBLK_OP_READ, 0, 1);
	ask(KOFIBLK_OP_READ, 1, 1);
	store_done(test, 0);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 1U);
	KUNIT_EXPECT_EQ(test, load().posted, 1U);
	end_session();
	store_done(test, 0);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 1U);
	/* Posted operations are waited for. */
	KUNIT_EXPECT_EQ(test, load().in_flight, 1U);
	rma_done(test, 0);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, load().posted, 0U);
	nothing_happened(test);
}

static void untaken_replies(struct kunit *test)
{
	struct kbs_reply_op *reply;

	ask(KOFIBLK_OP_FLUSH, 0, 1);
	KUNIT_ASSERT_EQ(test, scene->nops, 1U);
	KUNIT_EXPECT_EQ(test, load().posted, 1U);
	KUNIT_EXPECT_FALSE(test, kbs_session_untaken(&scene->s, 10 * HZ));
	reply = container_of(scene->ops[0], struct kbs_reply_op, rma.op);
	reply->since -= 11 * HZ;
	KUNIT_EXPECT_TRUE(test, kbs_session_untaken(&scene->s, 10 * HZ));
	reply_arrived(test);
	KUNIT_EXPECT_FALSE(test, kbs_session_untaken(&scene->s, 10 * HZ));
	KUNIT_EXPECT_EQ(test, load().posted, 0U);
	/* Data that the client must fetch. */
	scene->sqs[0].reqs[1].state = KBS_REQ_READY;
	scene->sqs[0].reqs[1].since = jiffies - 11 * HZ;
	KUNIT_EXPECT_TRUE(test, kbs_session_untaken(&scene->s, 10 * HZ));
	scene->sqs[0].reqs[1].state = KBS_REQ_FREE;
}

/* A transfer that waits in its lane when the session ends isn't begun. */
static void waiting_transfers(struct kunit *test)
{
	struct kofiblk_cmd_msg notify = command(KOFIBLK_OP_READ, 2, 1);
	struct kulp_op *op;
	unsigned int i;

	notify.flags = KOFIBLK_CMD_IMM;
	notify.imm = 5;
	ask(KOFIBLK_OP_WRITE, 0, 1);
	ask(KOFIBLK_OP_READ, 1, 1);
	store_done(test, 0);
	say(&notify);
	store_done(test, 0);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 3U);
	for (i = 0; i < 3; i++) {
		op = &scene->rmas[i]->op;
		KUNIT_EXPECT_EQ(test, op->post(&scene->queue, op), 0);
	}
	KUNIT_EXPECT_EQ(test, scene->transfers, 3U);
	end_session();
	for (i = 0; i < 3; i++) {
		op = &scene->rmas[i]->op;
		KUNIT_EXPECT_EQ(test, op->post(&scene->queue, op), -ECANCELED);
	}
	KUNIT_EXPECT_EQ(test, scene->transfers, 3U);
	while (scene->nrmas)
		rma_done(test, -ECANCELED);
	nothing_happened(test);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, load().posted, 0U);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
}

static void lost_reply(struct kunit *test)
{
	struct kulp_op *op;

	ask(KOFIBLK_OP_FLUSH, 0, 1);
	op = take_op(test);
	op->done(&scene->queue, op, -ETIMEDOUT, 0);
	settle();
	KUNIT_EXPECT_EQ(test, scene->stops, 1U);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
}

static void keep_alives(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = {
		.op		= KOFIBLK_OP_KEEP_ALIVE,
		.session	= SESSION,
		.id		= KOFIBLK_ID(KOFIBLK_SLOT_KEEP_ALIVE, 1ULL),
	};

	scene->sqs[0].heard = jiffies - 100 * HZ;
	say(&msg);
	KUNIT_EXPECT_TRUE(test, time_after(scene->sqs[0].heard, jiffies - 50 * HZ));
	replied(test, KOFIBLK_OP_KEEP_ALIVE, msg.id, KULP_STS_OK, 0);
	/* Only one keep-alive at a time is answered. */
	msg.id = KOFIBLK_ID(KOFIBLK_SLOT_KEEP_ALIVE, 2ULL);
	say(&msg);
	KUNIT_EXPECT_EQ(test, scene->nops, 1U);
	reply_arrived(test);
	KUNIT_EXPECT_EQ(test, copies(), 0ULL);
	/* A copy of one neither gets an answer nor keeps the session from timing out. */
	scene->sqs[0].heard = jiffies - 100 * HZ;
	say(&msg);
	msg.id = KOFIBLK_ID(KOFIBLK_SLOT_KEEP_ALIVE, 1ULL);
	say(&msg);
	nothing_happened(test);
	KUNIT_EXPECT_EQ(test, copies(), 2ULL);
	KUNIT_EXPECT_TRUE(test, time_before(scene->sqs[0].heard, jiffies - 50 * HZ));
	msg.id = KOFIBLK_ID(KOFIBLK_SLOT_KEEP_ALIVE, 3ULL);
	say(&msg);
	reply_arrived(test);
	KUNIT_EXPECT_NULL(test, scene->violation);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
}

/* Return: whether the client of the session seems to have sent a command, tagged with @nonce. */
static bool sent_with(const struct kofiblk_cmd_msg *cmd, u64 nonce)
{
	union {
		struct kofiblk_cmd	cmd;
		u8			room[KOFIBLK_CMD_MAX(512)];
	} wire = {};
	struct kofiblk_cmd_msg msg;
	size_t len;

	len = kofiblk_build_cmd(&wire.cmd, cmd);
	kofiblk_cmd_sign(&wire.cmd, len, nonce, &scene->s.keys);
	if (cmd->flags & KOFIBLK_CMD_INLINE && cmd->op == KOFIBLK_OP_WRITE)
		len += cmd->bytes;
	return !kofiblk_parse_cmd(&wire, len, &msg) &&
	       kbs_session_sent(&scene->s, &scene->queue, &wire, &msg);
}

/* Return: number of changes of a bit, anywhere in the command, that a tag doesn't show. */
static unsigned int unseen_changes(const struct kofiblk_cmd_msg *cmd)
{
	union {
		struct kofiblk_cmd	cmd;
		u8			room[KOFIBLK_CMD_MAX(0)];
	} right = {}, wire;
	struct kofiblk_cmd_msg msg;
	size_t i, len;
	unsigned int unseen = 0;

	len = kofiblk_build_cmd(&right.cmd, cmd);
	kofiblk_cmd_sign(&right.cmd, len, CMD_NONCE, &scene->s.keys);
	for (i = 0; i < 8 * len; i++) {
		wire = right;
		wire.room[i / 8] ^= 1 << i % 8;
		unseen += !kofiblk_parse_cmd(&wire, len, &msg) &&
			  kbs_session_sent(&scene->s, &scene->queue, &wire, &msg);
	}
	return unseen;
}

static void tags(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = command(KOFIBLK_OP_READ, 1, 5);

	KUNIT_EXPECT_TRUE(test, sent_with(&msg, CMD_NONCE));
	KUNIT_EXPECT_FALSE(test, sent_with(&msg, 0));
	KUNIT_EXPECT_FALSE(test, sent_with(&msg, CMD_NONCE + 1));
	KUNIT_EXPECT_EQ(test, unseen_changes(&msg), 0U);
	msg.flags = KOFIBLK_CMD_IMM;
	msg.imm = 0x12345678;
	KUNIT_EXPECT_TRUE(test, sent_with(&msg, CMD_NONCE));
	KUNIT_EXPECT_EQ(test, unseen_changes(&msg), 0U);
	msg = command(KOFIBLK_OP_WRITE, 1, 5);
	msg.flags = KOFIBLK_CMD_SUM;
	msg.sum = 0x12345678;
	KUNIT_EXPECT_TRUE(test, sent_with(&msg, CMD_NONCE));
	KUNIT_EXPECT_EQ(test, unseen_changes(&msg), 0U);
	msg = command(KOFIBLK_OP_WRITE, 1, 5);
	msg.flags = KOFIBLK_CMD_INLINE;
	msg.bytes = 512;
	msg.addr = 0;
	msg.key = 0;
	KUNIT_EXPECT_TRUE(test, sent_with(&msg, CMD_NONCE));
	/* Another queue has another nonce, and one that doesn't exist has none. */
	msg = command(KOFIBLK_OP_FLUSH, 1, 5);
	msg.queue = 1;
	KUNIT_EXPECT_FALSE(test, sent_with(&msg, CMD_NONCE + 100));
	scene->s.nqueues = 2;
	KUNIT_EXPECT_FALSE(test, sent_with(&msg, CMD_NONCE));
	KUNIT_EXPECT_TRUE(test, sent_with(&msg, CMD_NONCE + 100));
	/* It came to another endpoint than the one that it names. */
	scene->sqs[1].q = NULL;
	KUNIT_EXPECT_FALSE(test, sent_with(&msg, CMD_NONCE + 100));
	scene->sqs[1].q = &scene->queue;
	scene->s.nqueues = 1;
	scene->s.keys.cmd.key[0]++;
	KUNIT_EXPECT_EQ(test, unseen_changes(&msg), 0U);
	nothing_happened(test);
}

/* Only PROVE is taken without the nonce, once. */
static void proves(struct kunit *test)
{
	struct kofiblk_cmd_msg read = command(KOFIBLK_OP_READ, 1, 1), prove = {
		.op		= KOFIBLK_OP_PROVE,
		.session	= SESSION,
		.id		= KOFIBLK_ID(KOFIBLK_SLOT_KEEP_ALIVE, 1ULL),
		.key		= 77,
	};
	const struct kbs_reply_op *reply;

	KUNIT_EXPECT_FALSE(test, sent_with(&prove, CMD_NONCE));
	KUNIT_EXPECT_FALSE(test, sent_with(&read, 0));
	KUNIT_ASSERT_TRUE(test, sent_with(&prove, 0));
	say(&prove);
	KUNIT_EXPECT_EQ(test, scene->sqs[0].reply_nonce, 77ULL);
	replied(test, KOFIBLK_OP_PROVE, prove.id, KULP_STS_OK, 0);
	reply = container_of(scene->ops[0], struct kbs_reply_op, rma.op);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(reply->wire->reply.key), CMD_NONCE);
	reply_arrived(test);
	KUNIT_EXPECT_TRUE(test, sent_with(&read, CMD_NONCE));
	KUNIT_EXPECT_FALSE(test, sent_with(&prove, CMD_NONCE));
	/* Another one doesn't change the nonce of replies, and gets none. */
	scene->sqs[0].heard = jiffies - 100 * HZ;
	prove.key = 78;
	say(&prove);
	nothing_happened(test);
	KUNIT_EXPECT_EQ(test, scene->sqs[0].reply_nonce, 77ULL);
	KUNIT_EXPECT_EQ(test, copies(), 1ULL);
	KUNIT_EXPECT_TRUE(test, time_before(scene->sqs[0].heard, jiffies - 50 * HZ));
}

/* While the store is flushed at the end, the client learns only that the server lives. */
static void closing_session_lives(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = {
		.op		= KOFIBLK_OP_KEEP_ALIVE,
		.session	= SESSION,
		.id		= KOFIBLK_ID(KOFIBLK_SLOT_KEEP_ALIVE, 1ULL),
	};

	scene->s.state = KBS_SESSION_PARTING;
	kbs_session_quiet(&scene->s, KBS_SESSION_CLOSING);
	ask(KOFIBLK_OP_READ, 0, 1);
	nothing_happened(test);
	say(&msg);
	replied(test, KOFIBLK_OP_KEEP_ALIVE, msg.id, KULP_STS_OK, 0);
	reply_arrived(test);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	kbs_session_quiet(&scene->s, KBS_SESSION_ENDING);
	say(&msg);
	nothing_happened(test);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
}

/* Transfers may wait in their lanes at a planned stop. Keep-alive messages are still answered. */
static void waiting_in_a_planned_stop(struct kunit *test)
{
	struct kofiblk_cmd_msg notify = command(KOFIBLK_OP_READ, 2, 1), msg = {
		.op		= KOFIBLK_OP_KEEP_ALIVE,
		.session	= SESSION,
		.id		= KOFIBLK_ID(KOFIBLK_SLOT_KEEP_ALIVE, 1ULL),
	};
	struct kulp_op *op;
	unsigned int i;

	notify.flags = KOFIBLK_CMD_IMM;
	notify.imm = 5;
	ask(KOFIBLK_OP_WRITE, 0, 1);
	ask(KOFIBLK_OP_READ, 1, 1);
	store_done(test, 0);
	say(&notify);
	store_done(test, 0);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 3U);
	scene->s.state = KBS_SESSION_PARTING;
	kbs_session_quiet(&scene->s, KBS_SESSION_CLOSING);
	for (i = 0; i < 3; i++) {
		op = &scene->rmas[0]->op;
		KUNIT_EXPECT_EQ(test, op->post(&scene->queue, op), -ECANCELED);
		rma_done(test, -ECANCELED);
		KUNIT_EXPECT_EQ(test, scene->s.state, KBS_SESSION_CLOSING);
	}
	nothing_happened(test);
	KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	KUNIT_EXPECT_EQ(test, load().posted, 0U);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
	say(&msg);
	replied(test, KOFIBLK_OP_KEEP_ALIVE, msg.id, KULP_STS_OK, 0);
	reply_arrived(test);
}

/* Requests whose transfers fail in a planned stop get no reply: the client sends them again. */
static void lost_in_a_planned_stop(struct kunit *test)
{
	static const int errs[] = { -EACCES, -ETIMEDOUT, -ECANCELED };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errs); i++) {
		scene->s.state = KBS_SESSION_LIVE;
		ask(KOFIBLK_OP_WRITE, i, 1);
		scene->s.state = KBS_SESSION_PARTING;
		rma_done(test, errs[i]);
		KUNIT_EXPECT_EQ(test, scene->s.state, KBS_SESSION_ENDING);
		nothing_happened(test);
		KUNIT_EXPECT_EQ(test, load().in_flight, 0U);
	}
}

/* --- checksums --- */

static void sum_granted(void)
{
	scene->s.limits.caps |= KOFIBLK_CAP_CHECKSUM;
	scene->export.store.disk.logical_block = 512;
}

/* Compute the checksum of a command whose data is filled with @byte. */
static void sum_sign(struct kunit *test, struct kofiblk_cmd_msg *msg, u8 byte)
{
	u8 *data = kunit_kmalloc(test, msg->bytes + 1, GFP_KERNEL);
	struct bio_vec bv;

	KUNIT_ASSERT_NOT_NULL(test, data);
	memset(data, byte, msg->bytes);
	msg->flags |= KOFIBLK_CMD_SUM;
	msg->sum = kofiblk_sum_cmd(msg);
	if (msg->op != KOFIBLK_OP_WRITE)
		return;
	bvec_set_virt(&bv, data, msg->bytes);
	msg->sum = kofiblk_sum_bvecs(msg->sum, &bv, bv.bv_len);
}

static void pulled(struct kunit *test, u8 byte)
{
	struct kbs_req *req = container_of(scene->rmas[0], struct kbs_req, rma);
	unsigned int i;

	for (i = 0; i < req->nbvec; i++)
		memset(page_address(req->bvec[i].bv_page), byte, req->bvec[i].bv_len);
	rma_done(test, 0);
}

/* Corrupted commands and data don't reach the store. */
static void sums_of_writes(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = command(KOFIBLK_OP_WRITE, 0, 1);

	sum_granted();
	scene->nowait = true;
	sum_sign(test, &msg, 0x5a);
	say(&msg);
	pulled(test, 0x5a);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	/* In a work item, where the store may wait, too. */
	KUNIT_EXPECT_FALSE(test, scene->ios[0]->nowait);
	store_done(test, 0);
	replied(test, KOFIBLK_OP_WRITE, msg.id, KULP_STS_OK, 4096);
	reply_arrived(test);
	KUNIT_EXPECT_EQ(test, scene->sqs[0].stats.checksums, 0ULL);
	/* A byte of the data differs. */
	msg.id = KOFIBLK_ID(0, 2ULL);
	sum_sign(test, &msg, 0x5a);
	say(&msg);
	pulled(test, 0x5b);
	KUNIT_EXPECT_EQ(test, scene->nios, 0U);
	replied(test, KOFIBLK_OP_WRITE, msg.id, KULP_STS_PROTECTION, 0);
	reply_arrived(test);
	/* The same data for another offset. */
	msg.id = KOFIBLK_ID(0, 3ULL);
	sum_sign(test, &msg, 0x5a);
	msg.offset += 4096;
	say(&msg);
	pulled(test, 0x5a);
	KUNIT_EXPECT_EQ(test, scene->nios, 0U);
	replied(test, KOFIBLK_OP_WRITE, msg.id, KULP_STS_PROTECTION, 0);
	reply_arrived(test);
	KUNIT_EXPECT_EQ(test, scene->sqs[0].stats.checksums, 2ULL);
	KUNIT_EXPECT_EQ(test, load().io, 0U);
	KUNIT_EXPECT_EQ(test, load().memory, 0U);
	KUNIT_EXPECT_NULL(test, scene->violation);
}

static void sums_of_inline_writes(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = command(KOFIBLK_OP_WRITE, 0, 1);
	u8 *data = kunit_kzalloc(test, 512, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, data);
	sum_granted();
	msg.flags = KOFIBLK_CMD_INLINE;
	msg.bytes = 512;
	msg.addr = 0;
	msg.key = 0;
	msg.data = data;
	sum_sign(test, &msg, 0);
	say(&msg);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	store_done(test, 0);
	replied(test, KOFIBLK_OP_WRITE, msg.id, KULP_STS_OK, 512);
	reply_arrived(test);
	msg.id = KOFIBLK_ID(0, 2ULL);
	sum_sign(test, &msg, 0);
	data[511] = 1;
	say(&msg);
	KUNIT_EXPECT_EQ(test, scene->nios, 0U);
	replied(test, KOFIBLK_OP_WRITE, msg.id, KULP_STS_PROTECTION, 0);
	reply_arrived(test);
	KUNIT_EXPECT_EQ(test, scene->sqs[0].stats.checksums, 1ULL);
}

/* A corrupted range is neither read nor discarded. */
static void sums_of_commands(struct kunit *test)
{
	static const u8 ops[] = { KOFIBLK_OP_READ, KOFIBLK_OP_FLUSH, KOFIBLK_OP_DISCARD,
				  KOFIBLK_OP_WRITE_ZEROES };
	struct kofiblk_cmd_msg msg;
	u16 i;

	sum_granted();
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		msg = command(ops[i], i, 1);
		sum_sign(test, &msg, 0);
		msg.sum ^= 1;
		say(&msg);
		replied(test, ops[i], msg.id, KULP_STS_PROTECTION, 0);
		reply_arrived(test);
		nothing_happened(test);
	}
	KUNIT_EXPECT_EQ(test, scene->sqs[0].stats.checksums, (u64)ARRAY_SIZE(ops));
}

/* The last reply to a read has the checksum, however the data is transferred. */
static void sums_of_reads(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = inline_read(0, 1);
	struct kbs_reply_op *reply;
	struct kofiblk_reply_msg got;
	struct kofiblk_cmd_msg want;
	unsigned int i;

	sum_granted();
	for (i = 0; i < 2; i++) {
		sum_sign(test, &msg, 0);
		say(&msg);
		stored(test, 0x33);
		if (i)
			rma_done(test, 0);
		KUNIT_ASSERT_EQ(test, scene->nops, 1U);
		reply = container_of(scene->ops[0], struct kbs_reply_op, rma.op);
		KUNIT_ASSERT_EQ(test, kofiblk_parse_reply(whole_reply(test, reply),
							  reply->len + reply->bytes, &got), 0);
		KUNIT_EXPECT_TRUE(test, got.flags & KOFIBLK_REPLY_SUM);
		/* The checksum is that of the command and the data. */
		want = msg;
		want.op = KOFIBLK_OP_WRITE;
		sum_sign(test, &want, 0x33);
		KUNIT_EXPECT_NE(test, got.sum, want.sum);
		want.sum = kofiblk_sum_cmd(&msg);
		want.sum = kofiblk_sum_bvecs(want.sum, &(struct bio_vec){
			.bv_page = virt_to_page(page_of(test, 0x33)), .bv_len = 4096 }, 4096);
		KUNIT_EXPECT_EQ(test, got.sum, want.sum);
		reply_arrived(test);
		msg = command(KOFIBLK_OP_READ, 1, 1);
	}
}

/* Either all commands must have a checksum, or none. */
static void sums_that_were_not_granted(struct kunit *test)
{
	struct kofiblk_cmd_msg msg = command(KOFIBLK_OP_READ, 0, 1);

	sum_sign(test, &msg, 0);
	say(&msg);
	KUNIT_EXPECT_NOT_NULL(test, scene->violation);
	nothing_happened(test);
	scene->violation = NULL;
	sum_granted();
	ask(KOFIBLK_OP_READ, 0, 2);
	KUNIT_EXPECT_NOT_NULL(test, scene->violation);
	nothing_happened(test);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(reads),
	KUNIT_CASE(writes),
	KUNIT_CASE(lost_data),
	KUNIT_CASE(inline_writes),
	KUNIT_CASE(inline_reads),
	KUNIT_CASE(begun_at_once),
	KUNIT_CASE(stored_by_an_interrupt),
	KUNIT_CASE(other_operations),
	KUNIT_CASE(large_ranges),
	KUNIT_CASE_PARAM(wrong_commands, wrongs_gen_params),
	KUNIT_CASE(slots),
	KUNIT_CASE(replies_run_out),
	KUNIT_CASE(stale_writes),
	KUNIT_CASE(stale_reads),
	KUNIT_CASE(untaken_replies),
	KUNIT_CASE(waiting_transfers),
	KUNIT_CASE(lost_reply),
	KUNIT_CASE(keep_alives),
	KUNIT_CASE(tags),
	KUNIT_CASE(proves),
	KUNIT_CASE(closing_session_lives),
	KUNIT_CASE(waiting_in_a_planned_stop),
	KUNIT_CASE(lost_in_a_planned_stop),
	KUNIT_CASE(sums_of_writes),
	KUNIT_CASE(sums_of_inline_writes),
	KUNIT_CASE(sums_of_commands),
	KUNIT_CASE(sums_of_reads),
	KUNIT_CASE(sums_that_were_not_granted),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_srv",
	.suite_init	= srv_suite_init,
	.suite_exit	= srv_suite_exit,
	.init		= srv_init,
	.exit		= srv_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of kofiblk's server");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
