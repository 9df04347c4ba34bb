// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofiblk's server with neither fabric nor store: a session that isn't one, whose
 * client does as it likes. What the server posts, and what it wants of its store, is
 * kept here until a case has it done.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

/* In place of the tracepoints, which are the module's. */
#define KOFIBLK_SRV_TRACE_H
#define trace_kb_srv_cmd(msg)	((void)(msg))
#define trace_kb_srv_reply(msg)	((void)(msg))
#include "../../samples/blk/srv.h"

#define DEPTH	4
#define SESSION	0x1122334455667788ULL
#define DISK	((u64)SZ_1M)
#define OPS	32

static struct scene {
	struct kb_session	s;
	struct kb_port		port;
	struct kb_export	export;
	struct kb_fabric	fabric;
	struct kb_queue		queue;
	struct kb_queue		other;
	struct kb_squeue	sq;
	/* What was posted, and isn't done. */
	struct kb_op		*ops[OPS];
	struct kb_rma		*rmas[OPS];
	struct kb_store_io	*ios[OPS];
	unsigned int		nops, nrmas, nios;
	unsigned int		others;		/* at the store */
	int			other_err;
	const char		*violation;
	unsigned int		stops;
} *scene;

static DEFINE_SPINLOCK(scene_lock);	/* protects the lists */

DECLARE_WAIT_QUEUE_HEAD(kb_srv_wait);
DEFINE_MUTEX(kb_srv_lock);	/* nothing here: the server wants one */
struct workqueue_struct *kb_io_wq;
struct workqueue_struct *kb_done_wq;

static void kunit_submit(struct kb_queue *q, struct kb_op *op)
{
	spin_lock_bh(&scene_lock);
	if (!WARN_ON(scene->nops == OPS))
		scene->ops[scene->nops++] = op;
	spin_unlock_bh(&scene_lock);
}

static void kunit_rma_submit(struct kb_queue *q, struct kb_rma *rma)
{
	spin_lock_bh(&scene_lock);
	if (!WARN_ON(scene->nrmas == OPS))
		scene->rmas[scene->nrmas++] = rma;
	spin_unlock_bh(&scene_lock);
}

#define kb_submit	kunit_submit
#define kb_rma_submit	kunit_rma_submit
#include "../../samples/blk/srv_io.c"
#include "../../samples/blk/srv_mem.c"
#include "../../samples/blk/wire.c"

void kb_store_rw(struct kb_store_io *io)
{
	io->err = 0;
	spin_lock_bh(&scene_lock);
	if (!WARN_ON(scene->nios == OPS))
		scene->ios[scene->nios++] = io;
	spin_unlock_bh(&scene_lock);
}

static int other(void)
{
	scene->others++;
	return scene->other_err;
}

int kb_store_flush(struct kb_store *store)
{
	return other();
}

int kb_store_discard(struct kb_store *store, u64 offset, u64 bytes)
{
	return other();
}

int kb_store_zeroes(struct kb_store *store, u64 offset, u64 bytes, bool nounmap,
		    bool fua)
{
	return other();
}

void kb_session_stop(struct kb_session *s, bool again)
{
	scene->stops++;
}

void kb_session_violated(struct kb_session *s, const char *how)
{
	scene->violation = how;
}

/* --- what a case does --- */

/* Until nothing is going on but what was posted. */
static void settle(void)
{
	int i;

	for (i = 0; i < 4; i++) {
		flush_workqueue(kb_io_wq);
		flush_workqueue(kb_done_wq);
	}
}

static struct kb_cmd_msg command(u8 op, u16 slot, u64 gen)
{
	struct kb_cmd_msg msg = {
		.op		= op,
		.session	= SESSION,
		.id		= KB_ID(slot, gen),
	};

	if (op == KB_OP_FLUSH)
		return msg;
	msg.offset = 8192;
	msg.bytes = 4096;
	if (op == KB_OP_READ || op == KB_OP_WRITE) {
		msg.addr = 0x5000;
		msg.key = 77;
	}
	return msg;
}

static void say(const struct kb_cmd_msg *msg)
{
	rcu_read_lock();
	kb_session_command(&scene->s, &scene->queue, msg);
	rcu_read_unlock();
	settle();
}

static void ask(u8 op, u16 slot, u64 gen)
{
	struct kb_cmd_msg msg = command(op, slot, gen);

	say(&msg);
}

/* The oldest of each. */
#define TAKE(name, type)						\
static type *take_##name(struct kunit *test)				\
{									\
	type *first;							\
									\
	KUNIT_ASSERT_GT(test, scene->n##name##s, 0U);			\
	first = scene->name##s[0];					\
	memmove(scene->name##s, scene->name##s + 1,			\
		--scene->n##name##s * sizeof(first));			\
	return first;							\
}

TAKE(op, struct kb_op)
TAKE(rma, struct kb_rma)
TAKE(io, struct kb_store_io)

static void store_done(struct kunit *test, int err)
{
	struct kb_store_io *io = take_io(test);

	io->err = err;
	io->done(io);
	settle();
}

static void rma_done(struct kunit *test, int err)
{
	struct kb_rma *rma = take_rma(test);

	rma->op.done(&scene->queue, &rma->op, err, 0);
	settle();
}

static void replied(struct kunit *test, u8 op, u64 id, u16 status, u64 bytes)
{
	struct kb_reply_op *reply;
	struct kb_reply_msg msg;

	KUNIT_ASSERT_GT(test, scene->nops, 0U);
	reply = container_of(scene->ops[0], struct kb_reply_op, op);
	KUNIT_ASSERT_EQ(test, kb_parse_reply(reply->wire, sizeof(*reply->wire),
					     &msg), 0);
	KUNIT_EXPECT_EQ(test, msg.op, op);
	KUNIT_EXPECT_EQ(test, msg.id, id);
	KUNIT_EXPECT_EQ(test, msg.status, status);
	KUNIT_EXPECT_EQ(test, msg.bytes, bytes);
	KUNIT_EXPECT_EQ(test, msg.session, SESSION);
}

static void reply_arrived(struct kunit *test)
{
	struct kb_op *op = take_op(test);

	op->done(&scene->queue, op, 0, 0);
	settle();
}

static void nothing_happened(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 0U);
	KUNIT_EXPECT_EQ(test, scene->nios, 0U);
	KUNIT_EXPECT_EQ(test, scene->others, 0U);
}

/* --- cases --- */

static void reads(struct kunit *test)
{
	const struct kb_store_io *io;
	const struct kb_rma *rma;

	ask(KB_OP_READ, 1, 5);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	io = scene->ios[0];
	KUNIT_EXPECT_FALSE(test, io->write);
	KUNIT_EXPECT_EQ(test, io->offset, 8192ULL);
	KUNIT_EXPECT_EQ(test, io->bytes, 4096UL);
	KUNIT_EXPECT_EQ(test, scene->s.io, 1U);
	store_done(test, 0);
	KUNIT_EXPECT_EQ(test, scene->s.io, 0U);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 1U);
	rma = scene->rmas[0];
	KUNIT_EXPECT_EQ(test, iov_iter_rw(&rma->iter), WRITE);
	KUNIT_EXPECT_EQ(test, rma->addr, 0x5000ULL);
	KUNIT_EXPECT_EQ(test, rma->key, 77ULL);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&rma->iter), 4096UL);
	/* No reply before the data is there. */
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	rma_done(test, 0);
	replied(test, KB_OP_READ, KB_ID(1, 5ULL), KB_OK, 4096);
	KUNIT_EXPECT_EQ(test, scene->s.memory, 0U);
	/* The client may have heard of it before we do. */
	ask(KB_OP_READ, 1, 6);
	KUNIT_EXPECT_NULL(test, scene->violation);
	KUNIT_EXPECT_EQ(test, scene->nios, 1U);
	reply_arrived(test);
	store_done(test, 0);
	rma_done(test, 0);
	reply_arrived(test);
}

static void writes(struct kunit *test)
{
	ask(KB_OP_WRITE, 0, 1);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 1U);
	KUNIT_EXPECT_EQ(test, iov_iter_rw(&scene->rmas[0]->iter), READ);
	KUNIT_EXPECT_EQ(test, scene->nios, 0U);
	rma_done(test, 0);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_TRUE(test, scene->ios[0]->write);
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	store_done(test, -ENOSPC);
	replied(test, KB_OP_WRITE, KB_ID(0, 1ULL), KB_NOSPC, 0);
	reply_arrived(test);
}

/* Nothing of it is written or answered: the client does it again in another session. */
static void lost_data(struct kunit *test)
{
	ask(KB_OP_WRITE, 0, 1);
	ask(KB_OP_READ, 1, 1);
	store_done(test, 0);
	rma_done(test, -EACCES);
	KUNIT_EXPECT_EQ(test, scene->stops, 1U);
	rma_done(test, -ETIMEDOUT);
	nothing_happened(test);
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 0U);
	KUNIT_EXPECT_EQ(test, scene->s.memory, 0U);
}

static void inline_writes(struct kunit *test)
{
	struct kb_cmd_msg msg = command(KB_OP_WRITE, 0, 1);
	u8 *data = kunit_kzalloc(test, 512, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, data);
	memset(data, 0x5a, 512);
	scene->export.store.disk.logical_block = 512;
	msg.flags = KB_CMD_INLINE;
	msg.bytes = 512;
	msg.data = data;
	say(&msg);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 0U);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	/* The buffer is the queue's again. */
	memset(data, 0, 512);
	KUNIT_EXPECT_TRUE(test,
			  !memchr_inv(page_address(scene->ios[0]->bvec->bv_page),
				      0x5a, 512));
	store_done(test, 0);
	replied(test, KB_OP_WRITE, KB_ID(0, 1ULL), KB_OK, 512);
	reply_arrived(test);
}

static void other_operations(struct kunit *test)
{
	static const u8 ops[] = { KB_OP_FLUSH, KB_OP_DISCARD,
				  KB_OP_WRITE_ZEROES };
	u16 i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		scene->other_err = i == 1 ? -EOPNOTSUPP : 0;
		ask(ops[i], i, 1);
		KUNIT_EXPECT_EQ(test, scene->others, i + 1U);
		replied(test, ops[i], KB_ID(i, 1ULL),
			i == 1 ? KB_NOTSUPP : KB_OK, 0);
		reply_arrived(test);
	}
}

struct wrong {
	const char	*what;
	u8		op;
	u16		slot;
	u16		queue;
	u16		flags;
	u64		offset;
	u64		bytes;
	u32		caps;	/* without these */
	bool		read_only;
	u16		status;	/* or a violation */
};

static const struct wrong wrongs[] = {
	{ "slot", KB_OP_READ, .slot = DEPTH },
	{ "the last slot that can be said", KB_OP_WRITE,
	  .slot = KB_DEPTH_MAX - 1 },
	{ "slot of FETCHED", KB_OP_FETCHED, .slot = DEPTH },
	{ "queue", KB_OP_READ, .queue = 1 },
	{ "FETCHED of nothing", KB_OP_FETCHED },
	{ "too many bytes", KB_OP_READ, .bytes = 131072 },
	{ "too many bytes to be written", KB_OP_WRITE, .bytes = 131072 },
	{ "too many zeroes", KB_OP_WRITE_ZEROES, .bytes = 131072 },
	{ "more than a discard may have", KB_OP_DISCARD,
	  .bytes = BIT_ULL(62) + 4096 },
	{ "DISCARD not granted", KB_OP_DISCARD, .caps = KB_CAP_DISCARD },
	{ "WRITE_ZEROES not granted", KB_OP_WRITE_ZEROES,
	  .caps = KB_CAP_WRITE_ZEROES },
	{ "FUA not granted", KB_OP_WRITE, .flags = KB_CMD_FUA,
	  .caps = KB_CAP_FUA },
	{ "unaligned offset", KB_OP_READ, .offset = 512, .status = KB_INVAL },
	{ "unaligned bytes", KB_OP_WRITE, .bytes = 512, .status = KB_INVAL },
	{ "behind the end", KB_OP_READ, .offset = DISK, .status = KB_IO },
	{ "across the end", KB_OP_WRITE, .offset = DISK - 4096, .bytes = 8192,
	  .status = KB_IO },
	{ "far behind the end", KB_OP_READ, .offset = BIT_ULL(63) - 8192,
	  .status = KB_IO },
	{ "a large discard", KB_OP_DISCARD, .bytes = BIT_ULL(62),
	  .status = KB_IO },
	{ "read-only: write", KB_OP_WRITE, .read_only = true,
	  .status = KB_READ_ONLY },
	{ "read-only: discard", KB_OP_DISCARD, .read_only = true,
	  .status = KB_READ_ONLY },
	{ "read-only: zeroes", KB_OP_WRITE_ZEROES, .read_only = true,
	  .status = KB_READ_ONLY },
};

static void wrong_name(const struct wrong *wrong, char *desc)
{
	strscpy(desc, wrong->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wrongs, wrongs, wrong_name);

static void wrong_commands(struct kunit *test)
{
	const struct wrong *wrong = test->param_value;
	struct kb_cmd_msg msg = command(wrong->op, wrong->slot, 1);

	if (wrong->op == KB_OP_FETCHED) {
		msg.offset = 0;
		msg.bytes = 0;
	}
	msg.queue = wrong->queue;
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
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 0U);
}

static void slots(struct kunit *test)
{
	ask(KB_OP_READ, 2, 7);
	ask(KB_OP_READ, 2, 8);
	KUNIT_EXPECT_STREQ(test, scene->violation, "a slot in use");
	KUNIT_EXPECT_EQ(test, scene->nios, 1U);
	scene->violation = NULL;
	store_done(test, 0);
	rma_done(test, 0);
	reply_arrived(test);
	/* What is doubled on its way comes too late. */
	ask(KB_OP_READ, 2, 7);
	KUNIT_EXPECT_STREQ(test, scene->violation, "an old generation");
	ask(KB_OP_READ, 2, 6);
	nothing_happened(test);
}

/* A client that uses its slots again, though no reply has arrived. */
static void replies_run_out(struct kunit *test)
{
	u16 i;

	for (i = 0; i < DEPTH; i++)
		ask(KB_OP_FLUSH, i, 1);
	KUNIT_EXPECT_EQ(test, scene->nops, (unsigned int)DEPTH);
	for (i = 0; i < DEPTH; i++)
		ask(KB_OP_FLUSH, i, 2);
	KUNIT_EXPECT_NULL(test, scene->violation);
	KUNIT_EXPECT_EQ(test, scene->nops, (unsigned int)DEPTH);
	/* They wait, and their slots are taken. */
	ask(KB_OP_FLUSH, 0, 3);
	KUNIT_EXPECT_STREQ(test, scene->violation, "a slot in use");
	for (i = 0; i < 2 * DEPTH; i++) {
		replied(test, KB_OP_FLUSH, KB_ID(i % DEPTH, 1ULL + i / DEPTH),
			KB_OK, 0);
		reply_arrived(test);
	}
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 0U);
}

static void memory_is_bounded(struct kunit *test)
{
	u16 i;

	scene->port.max_memory = 8192;
	for (i = 0; i < DEPTH; i++)
		ask(KB_OP_READ, i, 1);
	KUNIT_EXPECT_EQ(test, scene->nios, 2U);
	KUNIT_EXPECT_EQ(test, scene->s.memory, 8192U);
	for (i = 0; i < DEPTH; i++) {
		store_done(test, 0);
		rma_done(test, 0);
		KUNIT_EXPECT_LE(test, scene->s.memory, 8192U);
		reply_arrived(test);
	}
	KUNIT_EXPECT_EQ(test, scene->s.memory, 0U);
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 0U);
	/* One request always may, however little there is. */
	scene->port.max_memory = 1;
	ask(KB_OP_READ, 0, 2);
	KUNIT_EXPECT_EQ(test, scene->nios, 1U);
	store_done(test, 0);
	rma_done(test, 0);
	reply_arrived(test);
}

static void end_session(void)
{
	spin_lock_bh(&scene->s.lock);
	scene->s.state = KB_SESSION_ENDING;
	spin_unlock_bh(&scene->s.lock);
}

/* The session ends while data is on its way: it isn't written any more. */
static void stale_writes(struct kunit *test)
{
	ask(KB_OP_WRITE, 0, 1);
	ask(KB_OP_WRITE, 1, 1);
	rma_done(test, 0);
	KUNIT_EXPECT_EQ(test, scene->nios, 1U);
	end_session();
	rma_done(test, 0);
	KUNIT_EXPECT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_EQ(test, scene->s.io, 1U);
	ask(KB_OP_WRITE, 2, 1);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 0U);
	store_done(test, 0);
	KUNIT_EXPECT_EQ(test, scene->s.io, 0U);
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 0U);
	KUNIT_EXPECT_EQ(test, scene->nops, 0U);
	KUNIT_EXPECT_EQ(test, scene->s.memory, 0U);
}

/* Nor does what waited for memory begin with its client. */
static void stale_waiting(struct kunit *test)
{
	scene->port.max_memory = 4096;
	ask(KB_OP_WRITE, 0, 1);
	ask(KB_OP_WRITE, 1, 1);
	ask(KB_OP_READ, 2, 1);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 1U);
	end_session();
	rma_done(test, 0);
	nothing_happened(test);
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 0U);
	KUNIT_EXPECT_EQ(test, scene->s.memory, 0U);
}

/* Its client may use the memory, by the same key, for something else by now. */
static void stale_reads(struct kunit *test)
{
	ask(KB_OP_READ, 0, 1);
	ask(KB_OP_READ, 1, 1);
	store_done(test, 0);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 1U);
	KUNIT_EXPECT_EQ(test, scene->s.posted, 1U);
	end_session();
	store_done(test, 0);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 1U);
	/* What is posted is waited for. */
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 1U);
	rma_done(test, 0);
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 0U);
	KUNIT_EXPECT_EQ(test, scene->s.posted, 0U);
	nothing_happened(test);
}

/* What others have to give back, maybe never, isn't waited for. */
static void waiters_end(struct kunit *test)
{
	struct kb_req *reqs = scene->sq.reqs;

	scene->port.max_memory = 4096;
	ask(KB_OP_READ, 0, 1);
	ask(KB_OP_READ, 1, 1);
	KUNIT_EXPECT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 2U);
	/* Another has the reserve. */
	KUNIT_EXPECT_EQ(test, kb_reserve_take(&reqs[3]), 0);
	reqs[2].cmd = command(KB_OP_READ, 2, 1);
	KUNIT_EXPECT_EQ(test, kb_reserve_take(&reqs[2]), -EAGAIN);
	scene->s.in_flight++;
	end_session();
	kb_session_abort(&scene->s);
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 1U);
	KUNIT_EXPECT_TRUE(test, list_empty(&scene->s.mem_wait));
	/* One that only begins now doesn't wait either. */
	scene->s.in_flight++;
	kb_run_begin(&reqs[2]);
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 1U);
	KUNIT_EXPECT_EQ(test, kb_reserve_take(&reqs[2]), -ESHUTDOWN);
	kb_reserve_give(&reqs[3]);
	KUNIT_EXPECT_FALSE(test, kb_reserve.busy);
	store_done(test, 0);
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 0U);
	KUNIT_EXPECT_EQ(test, scene->s.memory, 0U);
}

static void untaken_replies(struct kunit *test)
{
	struct kb_reply_op *reply;

	ask(KB_OP_FLUSH, 0, 1);
	KUNIT_ASSERT_EQ(test, scene->nops, 1U);
	KUNIT_EXPECT_EQ(test, scene->s.posted, 1U);
	KUNIT_EXPECT_FALSE(test, kb_session_untaken(&scene->s, 10 * HZ));
	reply = container_of(scene->ops[0], struct kb_reply_op, op);
	reply->since -= 11 * HZ;
	KUNIT_EXPECT_TRUE(test, kb_session_untaken(&scene->s, 10 * HZ));
	reply_arrived(test);
	KUNIT_EXPECT_FALSE(test, kb_session_untaken(&scene->s, 10 * HZ));
	KUNIT_EXPECT_EQ(test, scene->s.posted, 0U);
	/* Data that is to be fetched. */
	scene->sq.reqs[1].state = KB_REQ_READY;
	scene->sq.reqs[1].since = jiffies - 11 * HZ;
	KUNIT_EXPECT_TRUE(test, kb_session_untaken(&scene->s, 10 * HZ));
	scene->sq.reqs[1].state = KB_REQ_FREE;
}

static void lost_reply(struct kunit *test)
{
	struct kb_op *op;

	ask(KB_OP_FLUSH, 0, 1);
	op = take_op(test);
	op->done(&scene->queue, op, -ETIMEDOUT, 0);
	settle();
	KUNIT_EXPECT_EQ(test, scene->stops, 1U);
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 0U);
}

static void keep_alives(struct kunit *test)
{
	struct kb_cmd_msg msg = {
		.op		= KB_OP_KEEP_ALIVE,
		.session	= SESSION,
		.id		= KB_ID(KB_SLOT_KEEP_ALIVE, 1ULL),
	};

	scene->s.heard = jiffies - 100 * HZ;
	say(&msg);
	KUNIT_EXPECT_TRUE(test, time_after(scene->s.heard, jiffies - 50 * HZ));
	replied(test, KB_OP_KEEP_ALIVE, msg.id, KB_OK, 0);
	/* Only one at a time is answered. */
	say(&msg);
	say(&msg);
	KUNIT_EXPECT_EQ(test, scene->nops, 1U);
	KUNIT_EXPECT_NULL(test, scene->violation);
	reply_arrived(test);
	say(&msg);
	reply_arrived(test);
	KUNIT_EXPECT_EQ(test, scene->s.in_flight, 0U);
}

/* When there is no memory one request goes on, and the others in its wake. */
static void reserve(struct kunit *test)
{
	struct kb_req *reqs = scene->sq.reqs;
	u16 i;

	for (i = 0; i < 3; i++) {
		reqs[i].cmd = command(KB_OP_READ, i, 1);
		KUNIT_EXPECT_EQ(test, kb_reserve_take(&reqs[i]),
				i ? -EAGAIN : 0);
	}
	KUNIT_EXPECT_EQ(test, kb_reserve_use(&reqs[0]), 1U);
	KUNIT_EXPECT_EQ(test, kb_reserve.used[0].bv_len, 4096U);
	reqs[0].cmd.bytes = KB_IO_MAX;
	KUNIT_EXPECT_EQ(test, kb_reserve_use(&reqs[0]), kb_reserve.nbvec);
	spin_lock_bh(&scene->s.lock);
	scene->s.in_flight = 2;
	scene->s.memory = 1 << 20;
	reqs[1].state = KB_REQ_BUSY;
	reqs[2].state = KB_REQ_BUSY;
	spin_unlock_bh(&scene->s.lock);
	kb_reserve_give(&reqs[0]);
	settle();
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	KUNIT_EXPECT_PTR_EQ(test, scene->ios[0]->bvec,
			    (const struct bio_vec *)kb_reserve.used);
	store_done(test, 0);
	rma_done(test, 0);
	KUNIT_ASSERT_EQ(test, scene->nios, 1U);
	store_done(test, 0);
	rma_done(test, 0);
	KUNIT_EXPECT_FALSE(test, kb_reserve.busy);
	reply_arrived(test);
	reply_arrived(test);
	KUNIT_EXPECT_EQ(test, scene->s.memory, 1U << 20);
}

/* --- the scene --- */

static int srv_init(struct kunit *test)
{
	struct kb_session *s;

	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	s = &scene->s;
	scene->port.max_memory = 1 << 25;
	scene->export.store.disk.logical_block = 4096;
	scene->export.store.disk.bytes = DISK;
	scene->export.store.disk.discard_max = BIT_ULL(62);
	scene->export.store.disk.zeroes_max = 65536;
	scene->queue.fabric = &scene->fabric;
	spin_lock_init(&s->lock);
	INIT_LIST_HEAD(&s->mem_wait);
	s->id = SESSION;
	s->state = KB_SESSION_LIVE;
	s->port = &scene->port;
	s->export = &scene->export;
	s->fabric = &scene->fabric;
	s->limits = (struct kb_limits) {
		.caps		= KB_CAPS,
		.max_io		= 65536,
		.inline_max	= 512,
		.keep_alive	= 5000,
		.queues		= 1,
		.depth		= DEPTH,
	};
	s->nqueues = 1;
	s->queues = &scene->sq;
	s->ping.wire = kunit_kzalloc(test, sizeof(*s->ping.wire), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, s->ping.wire);
	scene->sq.s = s;
	scene->sq.q = &scene->queue;
	return kb_squeue_init(&scene->sq);
}

static void srv_exit(struct kunit *test)
{
	kb_squeue_exit(&scene->sq);
}

static int srv_suite_init(struct kunit_suite *suite)
{
	kb_io_wq = alloc_workqueue("kunit_io", WQ_UNBOUND, 0);
	kb_done_wq = alloc_workqueue("kunit_done", 0, 0);
	return kb_io_wq && kb_done_wq ? kb_reserve_init() : -ENOMEM;
}

static void srv_suite_exit(struct kunit_suite *suite)
{
	kb_reserve_exit();
	destroy_workqueue(kb_io_wq);
	destroy_workqueue(kb_done_wq);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(reads),
	KUNIT_CASE(writes),
	KUNIT_CASE(lost_data),
	KUNIT_CASE(inline_writes),
	KUNIT_CASE(other_operations),
	KUNIT_CASE_PARAM(wrong_commands, wrongs_gen_params),
	KUNIT_CASE(slots),
	KUNIT_CASE(replies_run_out),
	KUNIT_CASE(memory_is_bounded),
	KUNIT_CASE(stale_writes),
	KUNIT_CASE(stale_reads),
	KUNIT_CASE(waiters_end),
	KUNIT_CASE(untaken_replies),
	KUNIT_CASE(stale_waiting),
	KUNIT_CASE(lost_reply),
	KUNIT_CASE(keep_alives),
	KUNIT_CASE(reserve),
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
