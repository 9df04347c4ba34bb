// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofiblk's client without fabric and block layer: the scene creates requests, and keeps
 * posted operations until a case completes them. Each suite that includes this file has its
 * own copy of the client.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <kunit/test.h>
#include <linux/bio.h>
#include <linux/module.h>
#include <linux/slab.h>

/* Instead of the module's tracepoints. */
#define KOFIBLK_CLI_TRACE_H
#define trace_kofiblk_command(...)	do { } while (0)
#define trace_kofiblk_reply(name, msg)	((void)(name), (void)(msg))
#define trace_kofiblk_refused(...)	do { } while (0)
#define trace_kofiblk_stray_imm(...)	do { } while (0)
#define trace_kofiblk_end(...)		do { } while (0)
#define trace_kofiblk_checksum(...)	do { } while (0)
#include "../../ulp/blk/cli.h"

#define SESSION	0x1122334455667788ULL
#define DEPTH	2
#define BVECS	8
/* Nonces of tags. */
#define CMD_NONCE	21ULL
#define REPLY_NONCE	22ULL

static struct scene {
	struct kbc_disk		d;
	struct kbc_queue	first;		/* followed by @kq, if that is polled */
	struct kbc_queue	kq;
	struct kulp_fabric	fabric;
	struct fi_info		info;
	struct fi_tx_attr	tx;
	struct fi_domain_attr	domain;
	struct kulp_queue		q;
	struct kbc_stats __percpu *stats;
	struct kulp_op		*op;		/* latest posted operation */
	struct kulp_rma		*rma;		/* latest posted transfer */
	unsigned int		nops, nrmas;
	unsigned int		expedited;	/* number of calls of kulp_expedite() */
	unsigned int		ended;		/* number of ended requests */
	blk_status_t		status;		/* status of the latest ended request */
	unsigned int		requeued;
	unsigned int		polls;		/* calls of kulp_poll() */
	unsigned int		early;		/* of them find nothing yet */
	void			(*unread)(void); /* handles what has arrived and isn't read */
	unsigned int		waited;		/* ms before requests are sent again, in total */
	unsigned int		failures;	/* failures of the session */
	struct fi_mr_alloc_attr	region;		/* the latest that was allocated */
	unsigned int		refusals;	/* of fi_close() */
	unsigned int		mr_closes;	/* calls of it */
	unsigned int		closes;		/* of the device */
	unsigned int		before;		/* requests that had ended by then */
	struct bio_vec		bvecs[3];
	struct bio		bio, next;
	struct fid_mr		mr;
	struct fi_mr_attr	reg;		/* the latest registration */
	struct bio_vec		list[4];	/* registered memory */
	u8			*data;		/* data of the bio, with guard bytes around it */
	struct request		*rq;
} *scene;

static void kunit_submit(struct kulp_queue *q, struct kulp_op *op)
{
	scene->op = op;
	scene->nops++;
}

static void kunit_expedite(struct kulp_queue *q)
{
	scene->expedited++;
}

static int kunit_poll(struct kulp_queue *q)
{
	void (*unread)(void) = scene->unread;

	if (!q->polled || ++scene->polls <= scene->early || !unread)
		return 0;
	scene->unread = NULL;
	unread();
	return 1;
}

static void kunit_rma_submit(struct kulp_queue *q, struct kulp_rma *rma)
{
	scene->nrmas++;
	scene->rma = rma;
}

/* The list isn't used after the return. */
static int kunit_post_reg(struct fid_mr *mr, const struct fi_mr_attr *attr, u64 flags)
{
	scene->reg = *attr;
	if (attr->iov_count > ARRAY_SIZE(scene->list))
		return -EMSGSIZE;
	memcpy(scene->list, attr->bvec, attr->iov_count * sizeof(scene->list[0]));
	return 0;
}

static int kunit_mr_alloc(struct fid_domain *domain, const struct fi_mr_alloc_attr *attr,
			  struct fid_mr **mr, void *context)
{
	scene->region = *attr;
	*mr = &scene->mr;
	return 0;
}

static int kunit_close(struct fid *fid)
{
	return ++scene->mr_closes > scene->refusals ? 0 : -EIO;
}

static void kunit_fabric_end(struct kulp_fabric *f)
{
	scene->closes++;
	scene->before = scene->ended + scene->requeued;
}

static const struct fi_ops_mr kunit_mr_ops = {
	.post_reg = kunit_post_reg,
};

static void kunit_start_request(struct request *rq)
{
	rq->state = MQ_RQ_IN_FLIGHT;
}

#define kulp_submit		kunit_submit
#define kulp_expedite		kunit_expedite
#define kulp_poll		kunit_poll
#define kulp_rma_submit		kunit_rma_submit
#define kulp_fabric_lost(f)	((void)(f))
#define kulp_fabric_end		kunit_fabric_end
#define fi_mr_alloc		kunit_mr_alloc
#define fi_close		kunit_close
#define blk_mq_start_request	kunit_start_request
#include "../../ulp/blk/cli_rules.c"
#include "../../ulp/blk/cli_memory.c"
#include "../../ulp/blk/cli_message.c"
#include "../../ulp/blk/cli_poll.c"
#include "../../ulp/blk/cli_tags.c"
#include "../../ulp/blk/cli_request.c"
#include "../../ulp/blk/checksum.c"
#include "../../ulp/blk/wire.c"

struct kbc_disk *kbc_session_find(u64 session)
{
	return session == SESSION ? &scene->d : NULL;
}

void kbc_session_fail(struct kbc_disk *d, int err)
{
	scene->failures++;
}

void kbc_session_fail_of(struct kbc_disk *d, unsigned int attempt, int err)
{
	scene->failures++;
}

void kbc_complete(struct request *rq, blk_status_t status)
{
	scene->ended++;
	scene->status = status;
	rq->state = MQ_RQ_COMPLETE;
}

void kbc_requeue(struct kbc_disk *d, struct request *rq, unsigned int ms)
{
	scene->requeued++;
	scene->waited += ms;
	rq->state = MQ_RQ_IDLE;
}

/* --- steps of cases --- */

#define BYTES	4096U
#define AROUND	0xee	/* bytes around the request's memory */
#define BEFORE	0xbb	/* the request's memory before a reply */

/* Three pieces, one of which crosses pages. */
static const struct {
	unsigned int	at, len;
} pieces[] = { { 512, 512 }, { 3584, 1536 }, { 9216, 2048 } };

#define ROOM	(3 * PAGE_SIZE + 512)
#define FIRST	1536U	/* bytes of the first bio of two */

/* Make the request of one bio, or of two that are split within a piece. */
static void begin_of(struct kunit *test, blk_opf_t op, bool two)
{
	struct request *rq = scene->rq;
	unsigned int i;

	memset(scene->data, AROUND, ROOM);
	bio_init(&scene->bio, NULL, scene->bvecs, ARRAY_SIZE(pieces), op);
	for (i = 0; i < ARRAY_SIZE(pieces); i++) {
		bvec_set_page(&scene->bvecs[i], virt_to_page(scene->data),
			      pieces[i].len, pieces[i].at);
		memset(scene->data + pieces[i].at, BEFORE, pieces[i].len);
	}
	scene->bio.bi_vcnt = ARRAY_SIZE(pieces);
	scene->bio.bi_iter.bi_size = BYTES;
	rq->bio = &scene->bio;
	rq->biotail = &scene->bio;
	if (two) {
		scene->next = scene->bio;
		scene->bio.bi_iter.bi_size = FIRST;
		scene->bio.bi_next = &scene->next;
		bio_advance_iter(&scene->next, &scene->next.bi_iter, FIRST);
		rq->biotail = &scene->next;
	}
	rq->__data_len = BYTES;
	rq->__sector = 8;
	rq->cmd_flags = op;
	rq->tag = 1;
	scene->ended = 0;
	scene->nops = 0;
	KUNIT_ASSERT_EQ(test, kbc_request_start(&scene->kq, rq), BLK_STS_OK);
}

static void begin(struct kunit *test, blk_opf_t op)
{
	begin_of(test, op, false);
}

/* Parse the outstanding command, as the server would. */
static struct kofiblk_cmd_msg sent(struct kunit *test)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);
	struct kofiblk_cmd_msg msg = {};

	KUNIT_ASSERT_EQ(test, scene->nops, 1U);
	KUNIT_ASSERT_PTR_EQ(test, scene->op, &slot->send->op);
	KUNIT_ASSERT_EQ(test, kofiblk_parse_cmd(&slot->send->msg,
						slot->bvecs[0].bv_len, &msg), 0);
	KUNIT_EXPECT_TRUE(test, kofiblk_cmd_signed(&slot->send->msg.cmd, &msg, CMD_NONCE,
						   &scene->d.session.keys));
	/* As kbc_send_post() would, which needs an endpoint. */
	slot->posted = true;
	slot->send->op.done(&scene->q, &slot->send->op, 0, 0);
	return msg;
}

static struct kofiblk_reply_msg answer(const struct kofiblk_cmd_msg *cmd)
{
	return (struct kofiblk_reply_msg) {
		.op		= cmd->op,
		.flags		= KOFIBLK_REPLY_INLINE,
		.queue		= cmd->queue,
		.session	= cmd->session,
		.id		= cmd->id,
		.bytes		= cmd->bytes,
	};
}

/* Receive a message in a buffer that is overwritten afterwards. Context: Any, RCU included. */
static void hear(struct kunit *test, const struct kofiblk_reply_msg *msg)
{
	size_t data = msg->flags & KOFIBLK_REPLY_INLINE ? msg->bytes : 0;
	u8 *buf = kzalloc(KOFIBLK_REPLY_MAX(data), GFP_ATOMIC);
	size_t i, len;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	len = kofiblk_build_reply(buf, msg);

	for (i = 0; i < data; i++)
		buf[len + i] = i / 16;
	kofiblk_reply_sign((struct kofiblk_reply *)buf, len, REPLY_NONCE, &scene->d.session.keys);
	kbc_received(&scene->q, buf, len + data);
	/* KASAN reports later uses. */
	kfree(buf);
}

static void memory_is(struct kunit *test, bool read)
{
	unsigned int i, j, n = 0;
	u8 *want = kunit_kmalloc(test, ROOM, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, want);
	memset(want, AROUND, ROOM);
	for (i = 0; i < ARRAY_SIZE(pieces); i++)
		for (j = 0; j < pieces[i].len; j++, n++)
			want[pieces[i].at + j] = read ? n / 16 : BEFORE;
	KUNIT_EXPECT_EQ(test, memcmp(want, scene->data, ROOM), 0);
}

static void is_over(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, scene->ended, 1U);
	KUNIT_EXPECT_NULL(test, scene->kq.tags[1].slot);
	KUNIT_EXPECT_EQ(test, atomic_read(&scene->kq.busy), 0);
}

/* --- the scene --- */

static int request_init(struct kunit *test)
{
	struct kbc_disk *d;
	unsigned int i;

	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	scene->rq = kunit_kzalloc(test, sizeof(struct request) +
				  sizeof(struct kbc_slot), GFP_KERNEL);
	scene->data = (u8 *)__get_free_pages(GFP_KERNEL, get_order(ROOM));
	scene->kq.tags = kunit_kcalloc(test, DEPTH, sizeof(*scene->kq.tags), GFP_KERNEL);
	scene->kq.bvecs = kunit_kcalloc(test, BVECS, sizeof(*scene->kq.bvecs), GFP_KERNEL);
	if (!scene->rq || !scene->data || !scene->kq.tags || !scene->kq.bvecs)
		return -ENOMEM;
	scene->rq->deadline = jiffies;
	scene->info.tx_attr = &scene->tx;
	scene->info.domain_attr = &scene->domain;
	scene->tx.iov_limit = 2;
	scene->fabric.info = &scene->info;
	scene->q.fabric = &scene->fabric;
	d = &scene->d;
	d->fabric = &scene->fabric;
	init_waitqueue_head(&d->wait);
	scene->stats = alloc_percpu(struct kbc_stats);
	if (!scene->stats)
		return -ENOMEM;
	d->stats = scene->stats;
	spin_lock_init(&d->lock);
	d->session.id = SESSION;
	d->session.keys = (struct kofiblk_keys) { { { 1, 2 } }, { { 3, 4 } } };
	scene->kq.cmd_nonce = CMD_NONCE;
	scene->kq.reply_nonce = REPLY_NONCE;
	d->nqueues = 1;
	d->queues = &scene->kq;
	d->made.depth = DEPTH;
	d->made.max_bvecs = BVECS;
	d->session.limits.caps = KOFIBLK_CAPS & ~KOFIBLK_CAP_CHECKSUM;
	d->session.limits.inline_max = 4096;
	d->session.limits.inline_read = 8192;
	scene->kq.disk = d;
	scene->kq.q = &scene->q;
	spin_lock_init(&scene->kq.lock);
	scene->kq.user = 3;
	scene->kq.salt = 0xffffe;
	scene->mr.ops = &kunit_mr_ops;
	scene->mr.key = 77;
	for (i = 0; i < DEPTH; i++) {
		spin_lock_init(&scene->kq.tags[i].lock);
		scene->kq.tags[i].mr = &scene->mr;
	}
	return kbc_slot_init(kbc_slot(scene->rq), &scene->kq);
}

static void request_exit(struct kunit *test)
{
	if (scene && scene->rq)
		kbc_slot_exit(kbc_slot(scene->rq));
	if (scene && scene->data)
		free_pages((unsigned long)scene->data, get_order(ROOM));
	if (scene)
		free_percpu(scene->stats);
	scene = NULL;
}
