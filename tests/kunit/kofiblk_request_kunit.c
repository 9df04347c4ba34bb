// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What kofiblk's client makes of replies, right and wrong. There is neither a fabric nor
 * a block layer: requests are made here, and what the client posts is kept until a case
 * has it done.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <kunit/test.h>
#include <linux/bio.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "crew.h"

/* In place of the tracepoints, which are the module's. */
#define KOFIBLK_BLK_TRACE_H
#define trace_kofiblk_command(...)	do { } while (0)
#define trace_kofiblk_reply(...)	do { } while (0)
#define trace_kofiblk_refused(...)	do { } while (0)
#define trace_kofiblk_end(...)		do { } while (0)
#define trace_kofiblk_checksum(...)	do { } while (0)
#include "../../samples/blk/blk.h"

#define SESSION	0x1122334455667788ULL
#define DEPTH	2
#define BVECS	8

static struct scene {
	struct kbc_disk		d;
	struct kbc_queue	kq;
	struct kb_fabric	fabric;
	struct fi_info		info;
	struct fi_tx_attr	tx;
	struct kb_queue		q;
	struct kbc_io_stats __percpu *io_stats;
	struct kb_op		*op;		/* the latest posted */
	struct kb_rma		*rma;		/* likewise */
	unsigned int		nops, nrmas;
	unsigned int		ended;		/* requests */
	blk_status_t		status;		/* of the latest */
	unsigned int		requeued;
	unsigned int		failures;	/* of the session */
	struct bio_vec		bvecs[3];
	struct bio		bio, next;
	struct fid_mr		mr;
	struct fi_mr_attr	reg;		/* the latest registration */
	struct bio_vec		list[4];	/* what it registered */
	u8			*data;		/* of the bio, and what must stay */
	struct request		*rq;
} *scene;

static void kunit_submit(struct kb_queue *q, struct kb_op *op)
{
	scene->op = op;
	scene->nops++;
}

static void kunit_rma_submit(struct kb_queue *q, struct kb_rma *rma)
{
	scene->nrmas++;
	scene->rma = rma;
}

/* It has done with the list when it returns. */
static int kunit_post_reg(struct fid_mr *mr, const struct fi_mr_attr *attr, u64 flags)
{
	scene->reg = *attr;
	if (attr->iov_count > ARRAY_SIZE(scene->list))
		return -EMSGSIZE;
	memcpy(scene->list, attr->bvec, attr->iov_count * sizeof(scene->list[0]));
	return 0;
}

static const struct fi_ops_mr kunit_mr_ops = {
	.post_reg = kunit_post_reg,
};

static void kunit_start_request(struct request *rq)
{
}

#define kb_submit		kunit_submit
#define kb_rma_submit		kunit_rma_submit
#define kb_fabric_lost(f)	((void)(f))
#define blk_mq_start_request	kunit_start_request
#include "../../samples/blk/blk_epoch.c"
#include "../../samples/blk/blk_grant.c"
#include "../../samples/blk/blk_memory.c"
#include "../../samples/blk/blk_tags.c"
#include "../../samples/blk/blk_request.c"
#include "../../samples/blk/blk_sum.c"
#include "../../samples/blk/checksum.c"
#include "../../samples/blk/wire.c"

struct kbc_disk *kbc_session_find(u64 session)
{
	return session == SESSION ? &scene->d : NULL;
}

void kbc_session_fail(struct kbc_disk *d, int err)
{
	scene->failures++;
}

void kbc_complete(struct request *rq, blk_status_t status)
{
	scene->ended++;
	scene->status = status;
}

void kbc_requeue(struct kbc_disk *d, struct request *rq, unsigned int ms)
{
	scene->requeued++;
}

/* --- what a case does --- */

#define BYTES	4096U
#define AROUND	0xee	/* what isn't the request's */
#define BEFORE	0xbb	/* the request's memory, before there is an answer */

/* Three pieces, one of which goes across pages. */
static const struct {
	unsigned int	at, len;
} pieces[] = { { 512, 512 }, { 3584, 1536 }, { 9216, 2048 } };

#define ROOM	(3 * PAGE_SIZE + 512)
#define FIRST	1536U	/* bytes of the first bio where there are two */

/* The request is of one bio; or of two, which part in the middle of a piece. */
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

/* The command that is under way, as the server sees it. */
static struct kb_cmd_msg sent(struct kunit *test)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);
	struct kb_cmd_msg msg = {};

	KUNIT_ASSERT_EQ(test, scene->nops, 1U);
	KUNIT_ASSERT_PTR_EQ(test, scene->op, &slot->send);
	KUNIT_ASSERT_EQ(test, kb_parse_cmd(&slot->msgs[0].cmd,
					   slot->bvecs[0].bv_len, &msg), 0);
	/* As kbc_send_post() does, which has no endpoint here. */
	slot->posted = true;
	slot->send.done(&scene->q, &slot->send, 0, 0);
	return msg;
}

static struct kb_reply_msg answer(const struct kb_cmd_msg *cmd)
{
	return (struct kb_reply_msg) {
		.op		= cmd->op,
		.flags		= KB_REPLY_INLINE,
		.queue		= cmd->queue,
		.session	= cmd->session,
		.id		= cmd->id,
		.bytes		= cmd->bytes,
	};
}

/* From the queue's buffer, which is the device's again afterwards. */
static void hear(struct kunit *test, const struct kb_reply_msg *msg)
{
	size_t data = msg->flags & KB_REPLY_INLINE ? msg->bytes : 0;
	u8 *buf = kunit_kzalloc(test, KB_REPLY_MAX(data), GFP_KERNEL);
	size_t i, len = kb_build_reply(buf, msg);

	for (i = 0; i < data; i++)
		buf[len + i] = i / 16;
	kbc_received(&scene->q, buf, len + data);
	memset(buf, 0, len + data);
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

/* --- cases --- */

static void small_read(struct kunit *test)
{
	struct kb_cmd_msg cmd;
	struct kb_reply_msg msg;

	begin(test, REQ_OP_READ);
	cmd = sent(test);
	KUNIT_EXPECT_EQ(test, cmd.flags, (u16)KB_CMD_INLINE);
	KUNIT_EXPECT_EQ(test, cmd.bytes, (u64)BYTES);
	KUNIT_EXPECT_EQ(test, cmd.addr, 0ULL);
	KUNIT_EXPECT_EQ(test, cmd.key, 0ULL);
	memory_is(test, false);
	msg = answer(&cmd);
	hear(test, &msg);
	is_over(test);
	KUNIT_EXPECT_EQ(test, scene->status, BLK_STS_OK);
	memory_is(test, true);
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 0U);
}

static void failed_read(struct kunit *test)
{
	struct kb_cmd_msg cmd;
	struct kb_reply_msg msg;

	begin(test, REQ_OP_READ);
	cmd = sent(test);
	msg = answer(&cmd);
	msg.flags = 0;
	msg.bytes = 0;
	msg.status = KB_MEDIUM;
	hear(test, &msg);
	is_over(test);
	KUNIT_EXPECT_EQ(test, scene->status, BLK_STS_MEDIUM);
	memory_is(test, false);
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
}

/* Once more than a reply, or less than the device takes: as it was before. */
static void not_granted(struct kunit *test)
{
	scene->d.limits.inline_read = BYTES - 512;
	begin(test, REQ_OP_READ);
	KUNIT_EXPECT_EQ(test, scene->nops, 1U);
	KUNIT_EXPECT_PTR_EQ(test, scene->op, &kbc_slot(scene->rq)->region);
	KUNIT_EXPECT_EQ(test, kbc_slot(scene->rq)->phase, KBC_REGISTER);
}

/* Each ends the session, and touches neither the request nor its memory. */
static void wrong_replies(struct kunit *test)
{
	struct kb_cmd_msg cmd;
	struct kb_reply_msg msg;
	unsigned int wrong = 0;

	begin(test, REQ_OP_READ);
	cmd = sent(test);
#define WRONG(change)							\
	do {								\
		msg = answer(&cmd);					\
		change;							\
		hear(test, &msg);					\
		KUNIT_EXPECT_EQ_MSG(test, scene->failures, ++wrong,	\
				    "%s", #change);			\
		KUNIT_EXPECT_EQ(test, scene->ended, 0U);		\
		memory_is(test, false);					\
	} while (0)
	WRONG(msg.bytes = BYTES - 512);
	WRONG(msg.bytes = BYTES + 512);
	WRONG(msg.flags = 0);
	WRONG(msg.flags = KB_REPLY_READY);
	WRONG(msg.queue = 1);
	WRONG(msg.id = KB_ID(DEPTH, 1ULL));
	WRONG((msg.op = KB_OP_WRITE, msg.flags = 0));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&scene->d.stats.refused), wrong);
	/* What nobody waits for any more isn't wrong. */
	msg = answer(&cmd);
	msg.id -= KB_ID(0, 1ULL);
	hear(test, &msg);
	msg.id += KB_ID(0, 2ULL);
	hear(test, &msg);
	msg.id = KB_ID(0, 1ULL);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->failures, wrong);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&scene->d.stats.stale), 3L);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	memory_is(test, false);
	msg = answer(&cmd);
	hear(test, &msg);
	is_over(test);
	memory_is(test, true);
	/* And not twice. */
	memset(scene->data, 0, ROOM);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->ended, 1U);
	KUNIT_EXPECT_TRUE(test, !memchr_inv(scene->data, 0, ROOM));
#undef WRONG
}

/* What came for a request that was given back is for nobody. */
static void late_reply(struct kunit *test)
{
	struct kb_cmd_msg cmd;
	struct kb_reply_msg msg;

	begin(test, REQ_OP_READ);
	cmd = sent(test);
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	msg = answer(&cmd);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	memory_is(test, false);
}

/* Data in the reply to what asked for none. */
static void data_unasked(struct kunit *test)
{
	struct kb_cmd_msg cmd;
	struct kb_reply_msg msg;

	scene->d.limits.caps &= ~KB_CAP_RDMA_WRITE;
	scene->d.limits.inline_read = 0;
	begin(test, REQ_OP_READ);
	cmd = sent(test);
	KUNIT_EXPECT_EQ(test, cmd.flags, (u16)0);
	msg = answer(&cmd);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->failures, 1U);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	memory_is(test, false);
}

/* --- checksums --- */

/* As a server computes it for what hear() sends. */
static u32 read_sum(struct kunit *test, const struct kb_cmd_msg *cmd)
{
	u8 *data = kunit_kmalloc(test, cmd->bytes, GFP_KERNEL);
	struct bio_vec bv;
	u64 i;

	KUNIT_ASSERT_NOT_NULL(test, data);
	for (i = 0; i < cmd->bytes; i++)
		data[i] = i / 16;
	bvec_set_virt(&bv, data, cmd->bytes);
	return kb_sum_bvec(kb_sum_cmd(cmd), bv);
}

static struct kb_reply_msg summed_answer(struct kunit *test, const struct kb_cmd_msg *cmd)
{
	struct kb_reply_msg msg = answer(cmd);

	msg.flags |= KB_REPLY_SUM;
	msg.sum = read_sum(test, cmd);
	return msg;
}

static void sum_of_a_read(struct kunit *test)
{
	struct kb_cmd_msg cmd;
	struct kb_reply_msg msg;

	scene->d.limits.caps |= KB_CAP_CHECKSUM;
	begin(test, REQ_OP_READ);
	cmd = sent(test);
	KUNIT_EXPECT_EQ(test, cmd.flags, (u16)(KB_CMD_INLINE | KB_CMD_SUM));
	KUNIT_EXPECT_EQ(test, cmd.sum, kb_sum_cmd(&cmd));
	msg = summed_answer(test, &cmd);
	hear(test, &msg);
	is_over(test);
	KUNIT_EXPECT_EQ(test, scene->status, BLK_STS_OK);
	memory_is(test, true);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&scene->d.stats.checksum_errors), 0L);
}

/* It is read again, and fails when that is of no use. */
static void wrong_sum_of_a_read(struct kunit *test)
{
	struct kb_cmd_msg cmd;
	struct kb_reply_msg msg;
	unsigned int i;

	scene->d.limits.caps |= KB_CAP_CHECKSUM;
	for (i = 1; i <= KBC_FAULTS_MAX + 1; i++) {
		begin(test, REQ_OP_READ);
		cmd = sent(test);
		msg = summed_answer(test, &cmd);
		msg.sum ^= 0x100;
		hear(test, &msg);
		KUNIT_EXPECT_EQ(test, scene->requeued, min(i, KBC_FAULTS_MAX + 0U));
		KUNIT_EXPECT_EQ(test, scene->ended, i > KBC_FAULTS_MAX);
	}
	KUNIT_EXPECT_EQ(test, scene->status, BLK_STS_PROTECTION);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&scene->d.stats.checksum_errors),
			(long)KBC_FAULTS_MAX + 1);
	/* The session isn't to blame. */
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
}

/* Right data of another place: the server took the command for another one. */
static void sum_of_another_read(struct kunit *test)
{
	struct kb_cmd_msg cmd, other;
	struct kb_reply_msg msg;

	scene->d.limits.caps |= KB_CAP_CHECKSUM;
	begin(test, REQ_OP_READ);
	cmd = sent(test);
	other = cmd;
	other.offset += BYTES;
	msg = summed_answer(test, &cmd);
	msg.sum = read_sum(test, &other);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
}

static void sum_of_a_write(struct kunit *test)
{
	struct kb_reply_msg msg;
	struct kb_cmd_msg cmd;
	struct bio_vec bv;
	unsigned int i;
	struct kbc_slot *slot = kbc_slot(scene->rq);
	u32 sum;

	scene->d.limits.caps |= KB_CAP_CHECKSUM;
	begin(test, REQ_OP_WRITE);
	/* Its memory is registered, and then the command is sent. */
	KUNIT_ASSERT_PTR_EQ(test, scene->op, &slot->region);
	slot->phase = KBC_IDLE;
	kbc_command(slot, false);
	KUNIT_ASSERT_EQ(test, kb_parse_cmd(&slot->msgs[0].cmd,
					   slot->bvecs[0].bv_len, &cmd), 0);
	KUNIT_EXPECT_EQ(test, cmd.flags, (u16)KB_CMD_SUM);
	sum = kb_sum_cmd(&cmd);
	for (i = 0; i < ARRAY_SIZE(pieces); i++) {
		bvec_set_virt(&bv, scene->data + pieces[i].at, pieces[i].len);
		sum = kb_sum_bvec(sum, bv);
	}
	KUNIT_EXPECT_EQ(test, cmd.sum, sum);
	/* The server got something else, and wrote none of it. */
	slot->ops = 0;
	slot->phase = KBC_REPLY;
	slot->posted = true;
	msg = answer(&cmd);
	msg.flags = 0;
	msg.bytes = 0;
	msg.status = KB_PROTECTION;
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&scene->d.stats.checksum_errors), 1L);
}

/* Without checksums it is the server's disk that says so. */
static void protection_error_of_a_disk(struct kunit *test)
{
	struct kb_cmd_msg cmd;
	struct kb_reply_msg msg;

	begin(test, REQ_OP_READ);
	cmd = sent(test);
	msg = answer(&cmd);
	msg.flags = 0;
	msg.bytes = 0;
	msg.status = KB_PROTECTION;
	hear(test, &msg);
	is_over(test);
	KUNIT_EXPECT_EQ(test, scene->status, BLK_STS_PROTECTION);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&scene->d.stats.checksum_errors), 0L);
}

/* A server that leaves the checksum out, or sends one unasked, breaks the protocol. */
static void sums_that_were_not_granted(struct kunit *test)
{
	struct kb_cmd_msg cmd;
	struct kb_reply_msg msg;

	begin(test, REQ_OP_READ);
	cmd = sent(test);
	msg = summed_answer(test, &cmd);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->failures, 1U);
	scene->d.limits.caps |= KB_CAP_CHECKSUM;
	msg = answer(&cmd);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->failures, 2U);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	memory_is(test, false);
}

/* --- memory --- */

static void pieces_are(struct kunit *test, const struct bio_vec *bvec,
		       const struct bio_vec *want, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_PTR_EQ(test, bvec[i].bv_page, want[i].bv_page);
		KUNIT_EXPECT_EQ(test, bvec[i].bv_offset, want[i].bv_offset);
		KUNIT_EXPECT_EQ(test, bvec[i].bv_len, want[i].bv_len);
	}
}

/* From the bio's own list, which nobody copies. */
static void registers_one_bio(struct kunit *test)
{
	scene->d.limits.inline_read = 0;
	begin(test, REQ_OP_READ);
	KUNIT_EXPECT_EQ(test, scene->op->post(&scene->q, scene->op), 0);
	KUNIT_EXPECT_EQ(test, scene->reg.iov_count, ARRAY_SIZE(pieces));
	KUNIT_EXPECT_PTR_EQ(test, scene->reg.bvec, (const struct bio_vec *)scene->bvecs);
	KUNIT_EXPECT_EQ(test, scene->reg.access, (u64)FI_REMOTE_WRITE);
	KUNIT_EXPECT_PTR_EQ(test, scene->reg.context, (void *)scene->op);
}

static void registers_two_bios(struct kunit *test)
{
	struct bio_vec want[4];

	scene->d.limits.inline_read = 0;
	begin_of(test, REQ_OP_READ, true);
	want[0] = scene->bvecs[0];
	want[1] = scene->bvecs[1];
	want[2] = scene->bvecs[1];
	want[3] = scene->bvecs[2];
	want[1].bv_len = FIRST - want[0].bv_len;
	want[2].bv_offset += want[1].bv_len;
	want[2].bv_len -= want[1].bv_len;
	KUNIT_EXPECT_EQ(test, scene->op->post(&scene->q, scene->op), 0);
	KUNIT_ASSERT_EQ(test, scene->reg.iov_count, 4UL);
	pieces_are(test, scene->list, want, 4);
	/* More than a region has room for. */
	scene->d.max_bvecs = 3;
	KUNIT_EXPECT_EQ(test, scene->op->post(&scene->q, scene->op), -EMSGSIZE);
}

/* One bio that is a part of another, as the block layer splits them. */
static void registers_a_part(struct kunit *test)
{
	struct bio_vec want;

	scene->d.limits.inline_read = 0;
	begin(test, REQ_OP_READ);
	want = scene->bvecs[1];
	scene->bio.bi_iter.bi_size = FIRST;
	bio_advance_iter(&scene->bio, &scene->bio.bi_iter, pieces[0].len + 512);
	scene->rq->__data_len = scene->bio.bi_iter.bi_size;
	KUNIT_EXPECT_EQ(test, scene->op->post(&scene->q, scene->op), 0);
	want.bv_offset += 512;
	want.bv_len = scene->bio.bi_iter.bi_size;
	KUNIT_ASSERT_EQ(test, scene->reg.iov_count, 1UL);
	pieces_are(test, scene->list, &want, 1);
}

/* What the server offers comes into the request's memory, as the device writes it. */
static void fetched(struct kunit *test, u64 addr, size_t bytes, u8 from)
{
	struct kb_rma *rma = scene->rma;
	u8 *data = kunit_kmalloc(test, bytes, GFP_KERNEL);
	struct iov_iter iter = rma->iter;
	size_t i;

	KUNIT_EXPECT_EQ(test, rma->iov.addr, addr);
	KUNIT_EXPECT_EQ(test, rma->iov.key, 99ULL);
	KUNIT_ASSERT_EQ(test, iov_iter_count(&iter), bytes);
	for (i = 0; i < bytes; i++)
		data[i] = from + i / 16;
	KUNIT_EXPECT_EQ(test, copy_to_iter(data, bytes, &iter), bytes);
	rma->op.done(&scene->q, &rma->op, 0, 0);
}

static void fetches_two_bios(struct kunit *test)
{
	struct kb_cmd_msg cmd;
	struct kb_reply_msg msg;

	scene->d.limits.caps &= ~KB_CAP_RDMA_WRITE;
	scene->d.limits.inline_read = 0;
	begin_of(test, REQ_OP_READ, true);
	cmd = sent(test);
	msg = answer(&cmd);
	msg.flags = KB_REPLY_READY;
	msg.addr = 0x7000;
	msg.key = 99;
	hear(test, &msg);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 1U);
	fetched(test, 0x7000, FIRST, 0);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 2U);
	/* Half of it is there: nobody is thanked, and no reply is believed. */
	KUNIT_EXPECT_EQ(test, scene->nops, 1U);
	fetched(test, 0x7000 + FIRST, BYTES - FIRST, FIRST / 16);
	memory_is(test, true);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 2U);
	KUNIT_ASSERT_EQ(test, scene->nops, 2U);
	KUNIT_EXPECT_PTR_EQ(test, scene->op, &kbc_slot(scene->rq)->thank);
	scene->op->done(&scene->q, scene->op, 0, 0);
	msg.flags = 0;
	msg.addr = 0;
	msg.key = 0;
	hear(test, &msg);
	is_over(test);
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
}

/* A small write takes its data along, unless that is in too many pieces. */
static void carries_few_pieces(struct kunit *test)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);

	begin(test, REQ_OP_WRITE);
	KUNIT_EXPECT_FALSE(test, slot->inl);
	KUNIT_EXPECT_EQ(test, slot->phase, KBC_REGISTER);
	slot->region.done(&scene->q, &slot->region, -EINVAL, 0);
	is_over(test);
	/* However many the device has room for. */
	scene->tx.iov_limit = 4;
	begin(test, REQ_OP_WRITE);
	KUNIT_EXPECT_FALSE(test, slot->inl);
	slot->region.done(&scene->q, &slot->region, -EINVAL, 0);
	scene->bio.bi_iter.bi_size = pieces[0].len;
	scene->rq->__data_len = pieces[0].len;
	KUNIT_EXPECT_EQ(test, kbc_request_start(&scene->kq, scene->rq), BLK_STS_OK);
	KUNIT_EXPECT_TRUE(test, slot->inl);
	KUNIT_EXPECT_EQ(test, slot->nbvec, 1);
	pieces_are(test, slot->bvecs + 1, scene->bvecs, 1);
}

static struct {
	bool	held;
	bool	release;
	bool	gave_up;
} holder;

/* Another CPU, in the midst of something for the disk, and for another request. */
static void hold_locks(struct kofi_thread *thread)
{
	unsigned long end = jiffies + msecs_to_jiffies(KOFI_SPIN_MS);

	spin_lock_bh(&scene->d.lock);
	spin_lock(&scene->kq.lock);
	spin_lock_irq(&scene->d.wait.lock);
	WRITE_ONCE(holder.held, true);
	while (!READ_ONCE(holder.release) && time_before(jiffies, end))
		cpu_relax();
	holder.gave_up = !READ_ONCE(holder.release);
	spin_unlock_irq(&scene->d.wait.lock);
	spin_unlock(&scene->kq.lock);
	spin_unlock_bh(&scene->d.lock);
}

/* A request takes no lock but that of its tag, also if it is its queue's last. */
static void requests_are_apart(struct kunit *test)
{
	struct kofi_thread thread;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	memset(&holder, 0, sizeof(holder));
	scene->d.up = true;
	kofi_thread_start(test, &thread, hold_locks, NULL);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(holder.held)));
	small_read(test);
	WRITE_ONCE(holder.release, true);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_FALSE(test, holder.gave_up);
	KUNIT_EXPECT_EQ(test, sizeof(struct kbc_queue) % SMP_CACHE_BYTES, 0UL);
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
	scene->kq.tags = kunit_kcalloc(test, DEPTH, sizeof(*scene->kq.tags),
				       GFP_KERNEL);
	scene->kq.bvecs = kunit_kcalloc(test, BVECS, sizeof(*scene->kq.bvecs),
					GFP_KERNEL);
	if (!scene->rq || !scene->data || !scene->kq.tags || !scene->kq.bvecs)
		return -ENOMEM;
	scene->info.tx_attr = &scene->tx;
	scene->tx.iov_limit = 2;
	scene->fabric.info = &scene->info;
	scene->q.fabric = &scene->fabric;
	d = &scene->d;
	init_waitqueue_head(&d->wait);
	scene->io_stats = alloc_percpu(struct kbc_io_stats);
	if (!scene->io_stats)
		return -ENOMEM;
	d->io_stats = scene->io_stats;
	spin_lock_init(&d->lock);
	d->session = SESSION;
	d->nqueues = 1;
	d->queues = &scene->kq;
	d->depth = DEPTH;
	d->max_bvecs = BVECS;
	d->limits.caps = KB_CAPS & ~KB_CAP_CHECKSUM;
	d->limits.inline_max = 4096;
	d->limits.inline_read = 8192;
	scene->kq.disk = d;
	scene->kq.q = &scene->q;
	spin_lock_init(&scene->kq.lock);
	scene->mr.ops = &kunit_mr_ops;
	for (i = 0; i < DEPTH; i++) {
		spin_lock_init(&scene->kq.tags[i].lock);
		scene->kq.tags[i].mr = &scene->mr;
	}
	kbc_slot_init(kbc_slot(scene->rq), &scene->kq);
	return 0;
}

static void request_exit(struct kunit *test)
{
	if (scene && scene->data)
		free_pages((unsigned long)scene->data, get_order(ROOM));
	if (scene)
		free_percpu(scene->io_stats);
	scene = NULL;
}

static struct kunit_case cases[] = {
	KUNIT_CASE(small_read),
	KUNIT_CASE(failed_read),
	KUNIT_CASE(not_granted),
	KUNIT_CASE(wrong_replies),
	KUNIT_CASE(late_reply),
	KUNIT_CASE(data_unasked),
	KUNIT_CASE(sum_of_a_read),
	KUNIT_CASE(wrong_sum_of_a_read),
	KUNIT_CASE(sum_of_another_read),
	KUNIT_CASE(sum_of_a_write),
	KUNIT_CASE(protection_error_of_a_disk),
	KUNIT_CASE(sums_that_were_not_granted),
	KUNIT_CASE(registers_one_bio),
	KUNIT_CASE(registers_two_bios),
	KUNIT_CASE(registers_a_part),
	KUNIT_CASE(fetches_two_bios),
	KUNIT_CASE(carries_few_pieces),
	KUNIT_CASE(requests_are_apart),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_request",
	.init		= request_init,
	.exit		= request_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of kofiblk's client: replies");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
