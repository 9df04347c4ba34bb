// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of kofiblk's client whose data is transferred by RDMA: their memory, and immediate
 * data as the reply.
 */
#include "kofiblk_client_scene.c"

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

/* The memory is registered from the bio's list, which isn't copied. */
static void registers_one_bio(struct kunit *test)
{
	scene->d.session.limits.inline_read = 0;
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

	scene->d.session.limits.inline_read = 0;
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
	/* More pieces than a region has room for. */
	scene->d.made.max_bvecs = 3;
	KUNIT_EXPECT_EQ(test, scene->op->post(&scene->q, scene->op), -EMSGSIZE);
}

/* A bio that is a part of another, as after a split by the block layer. */
static void registers_a_part(struct kunit *test)
{
	struct bio_vec want;

	scene->d.session.limits.inline_read = 0;
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

/* Data that the server offers is fetched to the request's memory. */
static void fetched(struct kunit *test, u64 addr, size_t bytes, u8 from)
{
	struct kulp_rma *rma = scene->rma;
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
	struct kofiblk_cmd_msg cmd;
	struct kofiblk_reply_msg msg;

	scene->d.session.limits.caps &= ~KOFIBLK_CAP_RDMA_WRITE;
	scene->d.session.limits.inline_read = 0;
	begin_of(test, REQ_OP_READ, true);
	cmd = sent(test);
	msg = answer(&cmd);
	msg.flags = KOFIBLK_REPLY_READY;
	msg.addr = 0x7000;
	msg.key = 99;
	hear(test, &msg);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 1U);
	fetched(test, 0x7000, FIRST, 0);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 2U);
	/* After half of the data no FETCHED is sent, and no reply is accepted. */
	KUNIT_EXPECT_EQ(test, scene->nops, 1U);
	fetched(test, 0x7000 + FIRST, BYTES - FIRST, FIRST / 16);
	memory_is(test, true);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 2U);
	KUNIT_ASSERT_EQ(test, scene->nops, 2U);
	KUNIT_EXPECT_PTR_EQ(test, scene->op, &kbc_slot(scene->rq)->thank->op);
	scene->op->done(&scene->q, scene->op, 0, 0);
	msg.flags = 0;
	msg.addr = 0;
	msg.key = 0;
	hear(test, &msg);
	is_over(test);
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
}

/* A small write has inline data, unless it has too many pieces. */
static void carries_few_pieces(struct kunit *test)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);

	begin(test, REQ_OP_WRITE);
	KUNIT_EXPECT_FALSE(test, slot->inl);
	KUNIT_EXPECT_EQ(test, slot->phase, KBC_REGISTER);
	slot->region.done(&scene->q, &slot->region, -EINVAL, 0);
	is_over(test);
	/* The limit is the same if the device supports more pieces. */
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

/* --- immediate data --- */

/* Start a read to whose memory the server writes. */
static void begin_long(struct kunit *test)
{
	scene->d.session.limits.inline_read = 0;
	begin(test, REQ_OP_READ);
	KUNIT_ASSERT_PTR_EQ(test, scene->op, &kbc_slot(scene->rq)->region);
	scene->nops = 0;
	scene->op->done(&scene->q, scene->op, 0, 0);
	KUNIT_ASSERT_EQ(test, scene->nops, 1U);
}

/* After the immediate data the memory is invalidated, and the request ends. */
static void invalidates(struct kunit *test)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);

	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	KUNIT_ASSERT_EQ(test, slot->phase, KBC_INVALIDATE);
	KUNIT_ASSERT_PTR_EQ(test, scene->op, &slot->region);
	slot->region.done(&scene->q, &slot->region, 0, 0);
}

static void stale_are(struct kunit *test, unsigned long n)
{
	KUNIT_EXPECT_EQ(test, kbc_count(&scene->d, KBC_STAT(stale)), n);
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
}

static void imm_is_a_reply(struct kunit *test)
{
	struct kofiblk_reply_msg msg;
	struct kofiblk_cmd_msg cmd;

	begin_long(test);
	cmd = sent(test);
	KUNIT_EXPECT_EQ(test, cmd.flags, (u16)KOFIBLK_CMD_IMM);
	KUNIT_EXPECT_NE(test, cmd.key, 0ULL);
	kbc_written(&scene->kq, cmd.imm);
	invalidates(test);
	is_over(test);
	KUNIT_EXPECT_EQ(test, scene->status, BLK_STS_OK);
	stale_are(test, 0);
	/* A repeated reply and another kind of reply are ignored. */
	kbc_written(&scene->kq, cmd.imm);
	msg = answer(&cmd);
	msg.flags = 0;
	hear(test, &msg);
	stale_are(test, 2);
	KUNIT_EXPECT_EQ(test, scene->ended, 1U);
}

/* The immediate data may come before completion of the command's send. */
static void imm_before_the_send(struct kunit *test)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);
	struct kofiblk_cmd_msg cmd;

	begin_long(test);
	KUNIT_ASSERT_EQ(test, kofiblk_parse_cmd(&slot->send->msg, KOFIBLK_CMD_MAX(0), &cmd), 0);
	/* It can't come before the command is posted. */
	kbc_written(&scene->kq, cmd.imm);
	stale_are(test, 1);
	KUNIT_EXPECT_EQ(test, slot->phase, KBC_REPLY);
	slot->posted = true;
	kbc_written(&scene->kq, cmd.imm);
	invalidates(test);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	slot->send->op.done(&scene->q, &slot->send->op, 0, 0);
	is_over(test);
}

/* The server may reply by a message instead, and must do so for an error. */
static void reply_instead_of_imm(struct kunit *test)
{
	struct kofiblk_reply_msg msg;
	struct kofiblk_cmd_msg cmd;
	bool failed;

	for (failed = false; ; failed = true) {
		begin_long(test);
		cmd = sent(test);
		msg = answer(&cmd);
		msg.flags = 0;
		if (failed) {
			msg.status = KULP_STS_MEDIUM;
			msg.bytes = 0;
		}
		hear(test, &msg);
		kbc_written(&scene->kq, cmd.imm);
		invalidates(test);
		is_over(test);
		KUNIT_EXPECT_EQ(test, scene->status, failed ? BLK_STS_MEDIUM : BLK_STS_OK);
		stale_are(test, 1 + failed);
		if (failed)
			break;
	}
}

/* Immediate data that differs from the expected value is ignored. */
static void imm_of_others(struct kunit *test)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);
	struct kofiblk_cmd_msg before, cmd;
	int bit;

	begin_long(test);
	before = sent(test);
	kbc_written(&scene->kq, before.imm);
	invalidates(test);
	begin_long(test);
	cmd = sent(test);
	KUNIT_EXPECT_NE(test, cmd.imm, before.imm);
	kbc_written(&scene->kq, before.imm);
	for (bit = 0; bit < 32; bit++)
		kbc_written(&scene->kq, cmd.imm ^ BIT(bit));
	stale_are(test, 33);
	KUNIT_EXPECT_EQ(test, slot->phase, KBC_REPLY);
	kbc_written(&scene->kq, cmd.imm);
	invalidates(test);
	is_over(test);
}

static void imm_without_tags(struct kunit *test)
{
	struct kbc_tag *tags = scene->kq.tags;

	scene->kq.tags = NULL;
	kbc_written(&scene->kq, 0);
	scene->kq.tags = tags;
	stale_are(test, 1);
}

/* Immediate data after the end of the session is ignored. */
static void imm_is_late(struct kunit *test)
{
	struct kofiblk_cmd_msg cmd;

	begin_long(test);
	cmd = sent(test);
	kbc_tag_abort(&scene->kq, &scene->kq.tags[1]);
	kbc_written(&scene->kq, cmd.imm);
	invalidates(test);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	/* It is also ignored when the request is sent again in the next session. */
	begin_long(test);
	sent(test);
	kbc_written(&scene->kq, cmd.imm);
	stale_are(test, 2);
	KUNIT_EXPECT_EQ(test, kbc_slot(scene->rq)->phase, KBC_REPLY);
}

/* Immediate data isn't used without the capabilities, with checksums, or with too many users. */
static void imm_not_asked_for(struct kunit *test)
{
	const u32 caps = scene->d.session.limits.caps;
	const u32 tried[] = {
		caps & ~KOFIBLK_CAP_IMM, caps & ~KOFIBLK_CAP_RDMA_WRITE,
		caps | KOFIBLK_CAP_CHECKSUM, caps,
	};
	struct kbc_slot *slot = kbc_slot(scene->rq);
	struct kofiblk_cmd_msg cmd;
	int i;

	for (i = 0; i < ARRAY_SIZE(tried); i++) {
		scene->d.session.limits.caps = tried[i];
		scene->kq.user = i == 3 ? -ENOSPC : 1;
		if (i == 1) {
			begin(test, REQ_OP_READ);
			scene->nops = 1;
		} else {
			begin_long(test);
		}
		cmd = sent(test);
		KUNIT_EXPECT_EQ(test, cmd.flags, (u16)(i == 2 ? KOFIBLK_CMD_SUM : 0));
		kbc_written(&scene->kq, kbc_imm(&scene->kq, &scene->kq.tags[1]));
		stale_are(test, i + 1);
		KUNIT_EXPECT_EQ(test, slot->phase, KBC_REPLY);
		kbc_tag_abort(&scene->kq, &scene->kq.tags[1]);
		if (i != 1)
			invalidates(test);
		scene->requeued = 0;
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(registers_one_bio),
	KUNIT_CASE(registers_two_bios),
	KUNIT_CASE(registers_a_part),
	KUNIT_CASE(fetches_two_bios),
	KUNIT_CASE(carries_few_pieces),
	KUNIT_CASE(imm_is_a_reply),
	KUNIT_CASE(imm_before_the_send),
	KUNIT_CASE(reply_instead_of_imm),
	KUNIT_CASE(imm_of_others),
	KUNIT_CASE(imm_without_tags),
	KUNIT_CASE(imm_is_late),
	KUNIT_CASE(imm_not_asked_for),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_long",
	.init		= request_init,
	.exit		= request_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of kofiblk's client: data that moves by RMA");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
