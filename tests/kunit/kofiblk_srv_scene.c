// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofiblk's server without fabric and store: the case acts as the client of a session. The
 * scene keeps posted operations and I/O of the store until the case completes them. Each
 * suite that includes this file has its own copy of the server.
 */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

/* Instead of the module's tracepoints. */
#define KOFIBLK_SRV_TRACE_H
#define trace_kofiblk_srv_cmd(msg)	((void)(msg))
#define trace_kofiblk_srv_reply(msg)	((void)(msg))
#define trace_kofiblk_srv_checksum(...)	do { } while (0)
#include "../../ulp/blk/srv.h"

#define DEPTH	4
#define QUEUES	2
#define SESSION	0x1122334455667788ULL
#define DISK	((u64)SZ_1M)
#define OPS	32
/* Nonces of tags, and keys. */
#define CMD_NONCE	21ULL
#define REPLY_NONCE	22ULL
#define KEYS		((struct kofiblk_keys) { { { 1, 2 } }, { { 3, 4 } } })

static struct scene {
	struct kbs_session	s;
	struct kbs_port		port;
	struct kbs_export	export;
	struct kulp_fabric	fabric;
	struct kulp_queue		queue;
	struct kulp_queue		other;
	struct kbs_squeue	sqs[QUEUES];	/* only the first by default */
	/* Posted operations that aren't done. */
	struct kulp_op		*ops[OPS];
	struct kulp_rma		*rmas[OPS];
	struct kbs_store_io	*ios[OPS];
	unsigned int		nops, nrmas, nios;
	unsigned int		others;		/* other commands at the store */
	unsigned int		last;		/* value of others at which the session ends */
	u64			end;		/* end of the latest range */
	u64			sum;		/* sum of bytes of all ranges */
	u64			most;		/* largest range in bytes */
	int			other_err;
	bool			nowait;		/* the store supports kbs_store_try() */
	bool			dry;		/* no pages are at hand */
	const char		*violation;
	unsigned int		stops;
	unsigned int		expedited;	/* number of calls of kulp_expedite() */
	unsigned int		transfers;	/* begun by kulp_rma_post() */
} *scene;

static DEFINE_SPINLOCK(scene_lock);	/* protects the lists */

DECLARE_WAIT_QUEUE_HEAD(kbs_wait);
DEFINE_MUTEX(kbs_lock);		/* needed by the server's code */
struct workqueue_struct *kbs_done_wq;
static struct workqueue_struct *io_wq;

static bool is_rma(const struct kulp_op *op);

static void kunit_submit(struct kulp_queue *q, struct kulp_op *op)
{
	spin_lock_bh(&scene_lock);
	if (is_rma(op)) {
		if (!WARN_ON(scene->nrmas == OPS))
			scene->rmas[scene->nrmas++] = container_of(op, struct kulp_rma, op);
	} else if (!WARN_ON(scene->nops == OPS)) {
		scene->ops[scene->nops++] = op;
	}
	spin_unlock_bh(&scene_lock);
}

/* The lock of the session's queue keeps the session: the request that waits may end at once. */
static void kunit_expedite(struct kulp_queue *q)
{
	lockdep_assert(lockdep_is_held(&scene->sqs[0].lock) ||
		       lockdep_is_held(&scene->sqs[1].lock));
	scene->expedited++;
}

static int kunit_rma_post(struct kulp_queue *q, struct kulp_op *op)
{
	scene->transfers++;
	return 0;
}

static struct page *kunit_alloc_pages(gfp_t gfp, unsigned int order)
{
	if (scene && scene->dry && !gfpflags_allow_blocking(gfp))
		return NULL;
	return alloc_pages(gfp, order);
}

#undef alloc_pages
#define alloc_pages	kunit_alloc_pages
#define kulp_submit	kunit_submit
#define kulp_expedite	kunit_expedite
#define kulp_rma_post	kunit_rma_post
#include "../../ulp/blk/srv_cmd.c"
#include "../../ulp/blk/srv_io.c"
#include "../../ulp/blk/srv_queue.c"
#include "../../ulp/blk/srv_mem.c"
#include "../../ulp/blk/srv_sum.c"
#include "../../ulp/blk/checksum.c"
#include "../../ulp/blk/wire.c"

static bool is_rma(const struct kulp_op *op)
{
	return op->post == kbs_move_post || op->post == kbs_notify_post;
}

void kbs_store_rw(struct kbs_store_io *io)
{
	io->err = 0;
	io->nowait = false;
	spin_lock_bh(&scene_lock);
	if (!WARN_ON(scene->nios == OPS))
		scene->ios[scene->nios++] = io;
	spin_unlock_bh(&scene_lock);
}

/* The store of the scene never waits. */
bool kbs_store_try(struct kbs_store_io *io)
{
	if (!scene->nowait)
		return false;
	kbs_store_rw(io);
	io->nowait = true;
	return true;
}

static void end_session(void)
{
	kbs_session_quiet(&scene->s, KBS_SESSION_ENDING);
}

static int other(u64 offset, u64 bytes)
{
	scene->end = offset + bytes;
	scene->sum += bytes;
	scene->most = max(scene->most, bytes);
	if (++scene->others == scene->last)
		end_session();
	return scene->other_err;
}

int kbs_store_flush(struct kbs_store *store)
{
	scene->others++;
	return scene->other_err;
}

bool kbs_store_whole(const struct kbs_store *store)
{
	return true;
}

int kbs_store_discard(struct kbs_store *store, u64 offset, u64 bytes)
{
	return other(offset, bytes);
}

int kbs_store_zeroes(struct kbs_store *store, u64 offset, u64 bytes, bool nounmap, bool fua)
{
	return other(offset, bytes);
}

/* A session that flushes the store at its end isn't stopped before. */
bool kbs_session_go(struct kbs_session *s, enum kbs_session_state state)
{
	bool parts = s->state == KBS_SESSION_PARTING || s->state == KBS_SESSION_CLOSING;
	bool may = state > s->state && !(parts && state == KBS_SESSION_STOPPED);

	if (may)
		s->state = state;
	return may;
}

void kbs_session_stop(struct kbs_session *s, enum kbs_session_state how)
{
	scene->stops += kbs_session_go(s, how);
}

void kbs_session_violated(struct kbs_session *s, const char *how)
{
	scene->violation = how;
}

/* --- steps of cases --- */

/* Wait until all work items are done. */
static void settle(void)
{
	int i;

	for (i = 0; i < 4; i++) {
		flush_workqueue(scene->export.store.wq);
		flush_workqueue(kbs_done_wq);
	}
}

static struct kofiblk_cmd_msg command(u8 op, u16 slot, u64 gen)
{
	struct kofiblk_cmd_msg msg = {
		.op		= op,
		.session	= SESSION,
		.id		= KOFIBLK_ID(slot, gen),
	};

	if (op == KOFIBLK_OP_FLUSH)
		return msg;
	msg.offset = 8192;
	msg.bytes = 4096;
	if (op == KOFIBLK_OP_READ || op == KOFIBLK_OP_WRITE) {
		msg.addr = 0x5000;
		msg.key = 77;
	}
	return msg;
}

static void say(const struct kofiblk_cmd_msg *msg)
{
	struct kbs_req *req;

	rcu_read_lock();
	req = kbs_session_command(&scene->s, msg);
	rcu_read_unlock();
	if (req)
		kbs_req_begin(req);
	settle();
}

static void ask(u8 op, u16 slot, u64 gen)
{
	struct kofiblk_cmd_msg msg = command(op, slot, gen);

	say(&msg);
}

/* Complete the oldest operation of each kind. */
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

TAKE(op, struct kulp_op)
TAKE(rma, struct kulp_rma)
TAKE(io, struct kbs_store_io)

/* Return: numbers of active operations of the session. */
static struct kbs_load load(void)
{
	struct kbs_load load;

	kbs_session_load(&scene->s, &load, NULL);
	return load;
}

static void store_done(struct kunit *test, int err)
{
	struct kbs_store_io *io = take_io(test);

	io->err = err;
	io->done(io);
	settle();
}

static void rma_done(struct kunit *test, int err)
{
	struct kulp_rma *rma = take_rma(test);

	rma->op.done(&scene->queue, &rma->op, err, 0);
	settle();
}

/* Send a command with its data in wire format. */
static u8 *whole_reply(struct kunit *test, const struct kbs_reply_op *reply)
{
	u8 *buf = kunit_kzalloc(test, KOFIBLK_REPLY_MAX(KOFIBLK_INLINE_READ_MAX), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	memcpy(buf, reply->wire, reply->len);
	if (reply->bytes)
		memcpy(buf + reply->len, page_address(reply->page), reply->bytes);
	return buf;
}

static void replied(struct kunit *test, u8 op, u64 id, u16 status, u64 bytes)
{
	struct kbs_reply_op *reply;
	struct kofiblk_reply_msg msg;

	KUNIT_ASSERT_GT(test, scene->nops, 0U);
	reply = container_of(scene->ops[0], struct kbs_reply_op, rma.op);
	KUNIT_ASSERT_EQ(test, kofiblk_parse_reply(whole_reply(test, reply),
						  reply->len + reply->bytes, &msg), 0);
	KUNIT_EXPECT_EQ(test, msg.op, op);
	KUNIT_EXPECT_EQ(test, msg.id, id);
	KUNIT_EXPECT_EQ(test, msg.status, status);
	KUNIT_EXPECT_EQ(test, msg.bytes, bytes);
	KUNIT_EXPECT_EQ(test, msg.session, SESSION);
	KUNIT_EXPECT_TRUE(test, kofiblk_reply_signed(&reply->wire->reply, &msg,
						     reply->sq->reply_nonce, &scene->s.keys));
}

static void reply_arrived(struct kunit *test)
{
	struct kulp_op *op = take_op(test);

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

/* --- the scene --- */

static int srv_init(struct kunit *test)
{
	struct kbs_session *s;
	int i, ret = 0;

	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	s = &scene->s;
	scene->port.max_memory = 1 << 25;
	scene->export.store.disk.logical_block = 4096;
	scene->export.store.disk.bytes = DISK;
	scene->export.store.disk.discard_max = BIT_ULL(62);
	scene->export.store.disk.zeroes_max = 65536;
	scene->export.store.wq = io_wq;
	scene->queue.fabric = &scene->fabric;
	spin_lock_init(&s->lock);
	INIT_LIST_HEAD(&s->mem_wait);
	s->id = SESSION;
	s->state = KBS_SESSION_LIVE;
	s->port = &scene->port;
	s->export = &scene->export;
	s->fabric = &scene->fabric;
	s->limits = (struct kofiblk_limits) {
		.caps		= KOFIBLK_CAPS & ~KOFIBLK_CAP_CHECKSUM,
		.max_io		= 65536,
		.inline_max	= 512,
		.keep_alive	= 5000,
		.queues		= 1,
		.depth		= DEPTH,
		.inline_read	= 4096,
	};
	s->nqueues = 1;
	s->queues = scene->sqs;
	s->keys = KEYS;
	for (i = 0; i < QUEUES && !ret; i++) {
		scene->sqs[i].s = s;
		scene->sqs[i].q = &scene->queue;
		scene->sqs[i].cmd_nonce = CMD_NONCE + 100 * i;
		scene->sqs[i].reply_nonce = REPLY_NONCE + 100 * i;
		ret = kbs_squeue_init(&scene->sqs[i]);
	}
	return ret;
}

static void srv_exit(struct kunit *test)
{
	int i;

	for (i = 0; i < QUEUES && scene->sqs[i].s; i++)
		kbs_squeue_exit(&scene->sqs[i]);
}

static int srv_suite_init(struct kunit_suite *suite)
{
	io_wq = alloc_workqueue("kunit_io", WQ_UNBOUND, 0);
	kbs_done_wq = alloc_workqueue("kunit_done", COMPAT_WQ_PERCPU, 0);
	return io_wq && kbs_done_wq ? kbs_reserve_init() : -ENOMEM;
}

static void srv_suite_exit(struct kunit_suite *suite)
{
	kbs_reserve_exit();
	destroy_workqueue(io_wq);
	destroy_workqueue(kbs_done_wq);
}
