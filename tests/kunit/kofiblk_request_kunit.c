// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Replies to kofiblk's client, valid and invalid. */
#include "kofiblk_client_scene.c"
#include "crew.h"

static void small_read(struct kunit *test)
{
	struct kofiblk_cmd_msg cmd;
	struct kofiblk_reply_msg msg;

	begin(test, REQ_OP_READ);
	cmd = sent(test);
	KUNIT_EXPECT_EQ(test, cmd.flags, (u16)KOFIBLK_CMD_INLINE);
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
	struct kofiblk_cmd_msg cmd;
	struct kofiblk_reply_msg msg;

	begin(test, REQ_OP_READ);
	cmd = sent(test);
	msg = answer(&cmd);
	msg.flags = 0;
	msg.bytes = 0;
	msg.status = KULP_STS_MEDIUM;
	hear(test, &msg);
	is_over(test);
	KUNIT_EXPECT_EQ(test, scene->status, BLK_STS_MEDIUM);
	memory_is(test, false);
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
}

/* Data of more than a reply's maximum or the device's limit isn't inline. */
static void not_granted(struct kunit *test)
{
	scene->d.session.limits.inline_read = BYTES - 512;
	begin(test, REQ_OP_READ);
	KUNIT_EXPECT_EQ(test, scene->nops, 1U);
	KUNIT_EXPECT_PTR_EQ(test, scene->op, &kbc_slot(scene->rq)->region);
	KUNIT_EXPECT_EQ(test, kbc_slot(scene->rq)->phase, KBC_REGISTER);
}

/* Each invalid reply ends the session, without changing the request or its memory. */
static void wrong_replies(struct kunit *test)
{
	struct kofiblk_cmd_msg cmd;
	struct kofiblk_reply_msg msg;
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
	WRONG(msg.flags = KOFIBLK_REPLY_READY);
	WRONG(msg.id = KOFIBLK_ID(DEPTH, 1ULL));
	WRONG((msg.op = KOFIBLK_OP_WRITE, msg.flags = 0));
	KUNIT_EXPECT_EQ(test, kbc_count(&scene->d, KBC_STAT(refused)), wrong);
	/* A reply that no request waits for is ignored. */
	msg = answer(&cmd);
	msg.id -= KOFIBLK_ID(0, 1ULL);
	hear(test, &msg);
	msg.id += KOFIBLK_ID(0, 2ULL);
	hear(test, &msg);
	msg.id = KOFIBLK_ID(0, 1ULL);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->failures, wrong);
	KUNIT_EXPECT_EQ(test, kbc_count(&scene->d, KBC_STAT(stale)), 3UL);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	memory_is(test, false);
	msg = answer(&cmd);
	hear(test, &msg);
	is_over(test);
	memory_is(test, true);
	/* A repeated reply is ignored. */
	memset(scene->data, 0, ROOM);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->ended, 1U);
	KUNIT_EXPECT_TRUE(test, !memchr_inv(scene->data, 0, ROOM));
#undef WRONG
}

/* A copy of a reply that arrives at another endpoint is ignored. */
static void reply_elsewhere(struct kunit *test)
{
	union {
		struct kofiblk_reply	reply;
		u8			room[KOFIBLK_REPLY_MAX(0)];
	} wire = {};
	struct kulp_queue *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct kofiblk_reply_msg msg;
	struct kofiblk_cmd_msg cmd;
	size_t len;

	KUNIT_ASSERT_NOT_NULL(test, other);
	begin(test, REQ_OP_FLUSH);
	cmd = sent(test);
	msg = answer(&cmd);
	msg.flags = 0;
	msg.bytes = 0;
	len = kofiblk_build_reply(&wire, &msg);
	kofiblk_reply_sign(&wire.reply, len, REPLY_NONCE, &scene->d.session.keys);
	kbc_received(other, &wire, len);
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
	KUNIT_EXPECT_EQ(test, kbc_count(&scene->d, KBC_STAT(stale)), 1UL);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	hear(test, &msg);
	is_over(test);
}

/* An offer of data that comes again, while the client waits for the last reply. */
static void offered_again(struct kunit *test)
{
	struct kofiblk_reply_msg msg;
	struct kofiblk_cmd_msg cmd;
	struct kbc_slot *slot;

	scene->d.session.limits.caps &= ~KOFIBLK_CAP_RDMA_WRITE;
	scene->d.session.limits.inline_read = 0;
	begin(test, REQ_OP_READ);
	slot = kbc_slot(scene->rq);
	cmd = sent(test);
	msg = answer(&cmd);
	msg.flags = KOFIBLK_REPLY_READY;
	msg.addr = 0x7000;
	msg.key = 9;
	scene->nops = 0;
	hear(test, &msg);
	KUNIT_ASSERT_EQ(test, scene->nrmas, 1U);
	/* During the transfer, and after it. */
	hear(test, &msg);
	slot->fetch.op.done(&scene->q, &slot->fetch.op, 0, 0);
	KUNIT_ASSERT_EQ(test, scene->nops, 1U);
	slot->thank->op.done(&scene->q, &slot->thank->op, 0, 0);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->nrmas, 1U);
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
	KUNIT_EXPECT_EQ(test, kbc_count(&scene->d, KBC_STAT(stale)), 2UL);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	msg = answer(&cmd);
	msg.flags = 0;
	hear(test, &msg);
	is_over(test);
	KUNIT_EXPECT_EQ(test, scene->status, BLK_STS_OK);
}

/* A reply without the right tag has no effect, whatever it says. */
static void forged_replies(struct kunit *test)
{
	union {
		struct kofiblk_reply	reply;
		u8			room[KOFIBLK_REPLY_MAX(0)];
	} right = {}, wire;
	struct kofiblk_reply_msg msg;
	struct kofiblk_cmd_msg cmd;
	unsigned long seen = 0;
	size_t i, len;

	begin(test, REQ_OP_WRITE);
	scene->nops = 1;
	scene->op = &kbc_slot(scene->rq)->send->op;
	kbc_slot(scene->rq)->region.done(&scene->q, &kbc_slot(scene->rq)->region, 0, 0);
	scene->nops = 1;
	cmd = sent(test);
	msg = answer(&cmd);
	msg.flags = 0;
	len = kofiblk_build_reply(&right, &msg);
	kofiblk_reply_sign(&right.reply, len, REPLY_NONCE, &scene->d.session.keys);
	for (i = 0; i < 8 * len; i++) {
		wire = right;
		wire.room[i / 8] ^= 1 << i % 8;
		/* Another session's isn't counted, and a malformed one has no session. */
		seen += !kofiblk_parse_reply(&wire, len, &msg) && msg.session == SESSION;
		kbc_received(&scene->q, &wire, len);
	}
	wire = right;
	kofiblk_reply_sign(&wire.reply, len, REPLY_NONCE + 1, &scene->d.session.keys);
	kbc_received(&scene->q, &wire, len);
	kofiblk_cmd_sign((void *)&wire, len, REPLY_NONCE, &scene->d.session.keys);
	kbc_received(&scene->q, &wire, len);
	KUNIT_EXPECT_GT(test, seen, 100UL);
	KUNIT_EXPECT_EQ(test, kbc_count(&scene->d, KBC_STAT(forged)), seen + 2);
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
	KUNIT_EXPECT_EQ(test, kbc_slot(scene->rq)->phase, KBC_REPLY);
	kbc_received(&scene->q, &right, len);
	KUNIT_EXPECT_EQ(test, kbc_slot(scene->rq)->phase, KBC_INVALIDATE);
}

/* The first nonce that the server sends counts. */
static void proved(struct kunit *test)
{
	struct kofiblk_reply_msg msg = {
		.op = KOFIBLK_OP_PROVE, .session = SESSION,
		.id = KOFIBLK_ID(KOFIBLK_SLOT_KEEP_ALIVE, 1ULL), .key = 99,
	};

	scene->kq.cmd_nonce = 0;
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->kq.cmd_nonce, 99ULL);
	msg.key++;
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->kq.cmd_nonce, 99ULL);
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
}

/* A reply to an aborted request is ignored. */
static void late_reply(struct kunit *test)
{
	struct kofiblk_cmd_msg cmd;
	struct kofiblk_reply_msg msg;

	begin(test, REQ_OP_READ);
	cmd = sent(test);
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	msg = answer(&cmd);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	memory_is(test, false);
}

/* The reply comes before the command is known to be sent, which the request then waits for. */
static void reply_before_sent(struct kunit *test)
{
	struct kofiblk_reply_msg msg;
	struct kofiblk_cmd_msg cmd = {};
	struct kbc_slot *slot;

	begin(test, REQ_OP_READ);
	slot = kbc_slot(scene->rq);
	KUNIT_ASSERT_EQ(test, kofiblk_parse_cmd(&slot->send->msg, slot->bvecs[0].bv_len, &cmd), 0);
	slot->posted = true;
	msg = answer(&cmd);
	KUNIT_EXPECT_EQ(test, scene->expedited, 0U);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->expedited, 1U);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	slot->send->op.done(&scene->q, &slot->send->op, 0, 0);
	is_over(test);
	memory_is(test, true);

	begin(test, REQ_OP_READ);
	cmd = sent(test);
	msg = answer(&cmd);
	hear(test, &msg);
	is_over(test);
	KUNIT_EXPECT_EQ(test, scene->expedited, 1U);
}

/* Return: the message that the request is sent by. */
static struct kbc_message *being_sent(struct kunit *test)
{
	struct kbc_message *m = kbc_slot(scene->rq)->send;

	KUNIT_ASSERT_PTR_EQ(test, scene->op, &m->op);
	return m;
}

/* The device doesn't get rid of a command, so it is set aside, and the request ends without it. */
static void dead_server(struct kunit *test)
{
	struct kbc_message *first, *second, *third;

	scene->tx.size = 8;
	begin(test, REQ_OP_READ);
	first = being_sent(test);
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_EQ(test, scene->expedited, 1U);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	KUNIT_EXPECT_NULL(test, scene->kq.tags[1].slot);
	KUNIT_EXPECT_EQ(test, atomic_read(&scene->kq.busy), 0);
	begin(test, REQ_OP_FLUSH);
	second = being_sent(test);
	KUNIT_EXPECT_PTR_NE(test, first, second);
	KUNIT_EXPECT_FALSE(test, kbc_left_full(&scene->kq));
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_EQ(test, scene->requeued, 2U);
	/* No other session begins now, but the requests of this one don't wait for the device. */
	KUNIT_EXPECT_TRUE(test, kbc_left_full(&scene->kq));
	begin(test, REQ_OP_READ);
	third = being_sent(test);
	kbc_each_tag(&scene->d, kbc_tag_abort);
	kbc_each_tag(&scene->d, kbc_tag_leave);
	KUNIT_EXPECT_EQ(test, scene->requeued, 3U);
	KUNIT_EXPECT_EQ(test, atomic_read(&scene->kq.busy), 0);
	/* Late ends concern nobody. A post of an op that still waits does nothing. */
	KUNIT_EXPECT_EQ(test, first->op.post(&scene->q, &first->op), -ECANCELED);
	first->op.done(&scene->q, &first->op, -ECANCELED, 0);
	KUNIT_EXPECT_TRUE(test, kbc_left_full(&scene->kq));
	second->op.done(&scene->q, &second->op, -ETIMEDOUT, 0);
	KUNIT_EXPECT_FALSE(test, kbc_left_full(&scene->kq));
	third->op.done(&scene->q, &third->op, 0, 0);
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
	KUNIT_EXPECT_EQ(test, scene->requeued, 3U);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
}

/* A region couldn't be invalidated, so it is closed. That doesn't wait for the message either. */
static void dead_server_and_region(struct kunit *test)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);
	struct kbc_message *m;

	scene->tx.size = 64;
	scene->d.session.limits.inline_read = 0;
	begin(test, REQ_OP_READ);
	slot->region.done(&scene->q, &slot->region, 0, 0);
	m = being_sent(test);
	kbc_each_tag(&scene->d, kbc_tag_abort);
	KUNIT_ASSERT_EQ(test, slot->phase, KBC_INVALIDATE);
	slot->region.done(&scene->q, &slot->region, -EIO, 0);
	KUNIT_ASSERT_EQ(test, slot->phase, KBC_STUCK);
	KUNIT_EXPECT_EQ(test, atomic_read(&scene->kq.busy), 1);
	kbc_each_tag(&scene->d, kbc_tag_leave);
	KUNIT_EXPECT_EQ(test, atomic_read(&scene->kq.busy), 0);
	/* Nothing more happens to it. */
	kbc_each_tag(&scene->d, kbc_tag_leave);
	KUNIT_EXPECT_EQ(test, atomic_read(&scene->kq.busy), 0);
	KUNIT_EXPECT_EQ(test, scene->requeued, 0U);
	/* There is no real region to close. */
	scene->kq.tags[1].mr = NULL;
	kbc_each_tag(&scene->d, kbc_tag_release);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	m->op.done(&scene->q, &m->op, -ECANCELED, 0);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
}

/* A device that doesn't invalidate a region is closed before the memory is used again. */
static void device_keeps_region(struct kunit *test)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);

	scene->d.session.limits.inline_read = 0;
	begin(test, REQ_OP_READ);
	scene->nops = 0;
	slot->region.done(&scene->q, &slot->region, 0, 0);
	sent(test);
	kbc_each_tag(&scene->d, kbc_tag_abort);
	KUNIT_ASSERT_EQ(test, slot->phase, KBC_INVALIDATE);
	slot->region.done(&scene->q, &slot->region, -EIO, 0);
	KUNIT_ASSERT_EQ(test, slot->phase, KBC_STUCK);
	/* There is no real region to close. */
	scene->kq.tags[1].mr = NULL;
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_EQ(test, scene->closes, 1U);
	KUNIT_EXPECT_EQ(test, scene->before, 0U);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	/* It is closed only for that. */
	begin(test, REQ_OP_FLUSH);
	sent(test);
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_EQ(test, scene->requeued, 2U);
	KUNIT_EXPECT_EQ(test, scene->closes, 1U);
}

/* The keys of a disk's regions don't come back with those of another disk. */
static void regions_retire(struct kunit *test)
{
	struct kbc_tag *tag = &scene->kq.tags[1];

	kbc_region_free(&scene->kq, tag);
	KUNIT_EXPECT_EQ(test, scene->mr_closes, 1U);
	KUNIT_EXPECT_EQ(test, kbc_regions_alloc(&scene->d), 0);
	KUNIT_EXPECT_PTR_EQ(test, tag->mr, &scene->mr);
	KUNIT_EXPECT_EQ(test, scene->region.flags, FI_RETIRE);
	/* The device refuses to destroy a region. */
	scene->refusals = 2;
	kbc_region_free(&scene->kq, tag);
	KUNIT_EXPECT_EQ(test, scene->mr_closes, 3U);
	KUNIT_EXPECT_NULL(test, tag->mr);
}

/*
 * A server that hasn't replied may use a key after another one has taken its address. The same
 * server ends the session before it accepts the next one.
 */
static void regions_renewed(struct kunit *test)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);
	struct kbc_tag *tag = &scene->kq.tags[1];

	scene->d.epoch.epoch = 5;
	scene->d.session.limits.inline_read = 0;
	/* One ends before the server has the key. */
	begin(test, REQ_OP_READ);
	kbc_each_tag(&scene->d, kbc_tag_abort);
	slot->region.done(&scene->q, &slot->region, 0, 0);
	slot->region.done(&scene->q, &slot->region, 0, 0);
	KUNIT_ASSERT_EQ(test, scene->requeued, 1U);
	kbc_regions_renew(&scene->d, 6);
	KUNIT_EXPECT_EQ(test, scene->mr_closes, 0U);
	/* One has no reply. */
	begin(test, REQ_OP_READ);
	scene->nops = 0;
	slot->region.done(&scene->q, &slot->region, 0, 0);
	sent(test);
	kbc_each_tag(&scene->d, kbc_tag_abort);
	slot->region.done(&scene->q, &slot->region, 0, 0);
	KUNIT_ASSERT_EQ(test, scene->requeued, 2U);
	kbc_regions_renew(&scene->d, 5);
	KUNIT_EXPECT_EQ(test, scene->mr_closes, 0U);
	kbc_regions_renew(&scene->d, 6);
	KUNIT_EXPECT_EQ(test, scene->mr_closes, 1U);
	KUNIT_EXPECT_NULL(test, tag->mr);
	KUNIT_EXPECT_EQ(test, kbc_regions_alloc(&scene->d), 0);
	kbc_regions_renew(&scene->d, 7);
	KUNIT_EXPECT_EQ(test, scene->mr_closes, 1U);
	KUNIT_EXPECT_PTR_EQ(test, tag->mr, &scene->mr);
}

/* The device may access memory of the request. */
static void data_isnt_set_aside(struct kunit *test)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);

	scene->tx.size = 64;
	begin(test, REQ_OP_WRITE);
	slot->region.done(&scene->q, &slot->region, -EINVAL, 0);
	/* One piece is sent with the command. */
	scene->bio.bi_iter.bi_size = pieces[0].len;
	scene->rq->__data_len = pieces[0].len;
	KUNIT_ASSERT_EQ(test, kbc_request_start(&scene->kq, scene->rq), BLK_STS_OK);
	KUNIT_ASSERT_TRUE(test, slot->inl);
	kbc_each_tag(&scene->d, kbc_tag_abort);
	kbc_each_tag(&scene->d, kbc_tag_leave);
	KUNIT_EXPECT_EQ(test, scene->requeued, 0U);
	KUNIT_EXPECT_EQ(test, atomic_read(&scene->kq.busy), 1);
	being_sent(test)->op.done(&scene->q, scene->op, -ECANCELED, 0);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
}

/* KEEP_ALIVE and PROVE, too. */
static void silent_server(struct kunit *test)
{
	struct kbc_message *m;

	scene->tx.size = 64;
	scene->d.session.open = true;
	KUNIT_ASSERT_EQ(test, kbc_signals_alloc(&scene->d), 0);
	kbc_keep_alive(&scene->d);
	m = scene->kq.signal;
	KUNIT_EXPECT_PTR_EQ(test, scene->op, &m->op);
	/* It is being sent, so there is no other one. */
	kbc_keep_alive(&scene->d);
	KUNIT_EXPECT_EQ(test, scene->nops, 1U);
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_NULL(test, scene->kq.signal);
	KUNIT_EXPECT_EQ(test, atomic_read(&scene->kq.busy), 0);
	KUNIT_ASSERT_EQ(test, kbc_signals_alloc(&scene->d), 0);
	kbc_prove(&scene->kq);
	m->op.done(&scene->q, &m->op, -ETIMEDOUT, 0);
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
	/* One that was sent isn't set aside. */
	m = scene->kq.signal;
	m->op.done(&scene->q, &m->op, 0, 0);
	kbc_signals_leave(&scene->d);
	KUNIT_EXPECT_PTR_EQ(test, scene->kq.signal, m);
	kbc_prove(&scene->kq);
	m->op.done(&scene->q, &m->op, -ETIMEDOUT, 0);
	KUNIT_EXPECT_EQ(test, scene->failures, 1U);
	kfree(m);
}

/* Readahead fails with its session, but not a read that was merged behind it. */
static void readahead_and_merged(struct kunit *test)
{
	begin(test, REQ_OP_READ | REQ_FAILFAST_TRANSPORT);
	sent(test);
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_EQ(test, scene->requeued, 0U);
	KUNIT_EXPECT_EQ(test, scene->ended, 1U);
	KUNIT_EXPECT_EQ(test, scene->status, BLK_STS_TRANSPORT);
	scene->rq->rq_flags |= RQF_MIXED_MERGE;
	begin(test, REQ_OP_READ | REQ_FAILFAST_TRANSPORT);
	sent(test);
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
}

/* Inline data in the reply to a command that didn't ask for it. */
static void data_unasked(struct kunit *test)
{
	struct kofiblk_cmd_msg cmd;
	struct kofiblk_reply_msg msg;

	scene->d.session.limits.caps &= ~KOFIBLK_CAP_RDMA_WRITE;
	scene->d.session.limits.inline_read = 0;
	begin(test, REQ_OP_READ);
	cmd = sent(test);
	KUNIT_EXPECT_EQ(test, cmd.flags, (u16)0);
	msg = answer(&cmd);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->failures, 1U);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	memory_is(test, false);
}

/* --- writes that a crash of the server would lose --- */

/* A write registers its memory before it sends its command, and invalidates it after the reply. */
static void region_done(void)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);

	if (scene->op != &slot->region)
		return;
	scene->nops = 0;
	slot->region.done(&scene->q, &slot->region, 0, 0);
}

/* Do a request, which the server answers with a status. */
static void do_write(struct kunit *test, blk_opf_t op, u16 status)
{
	struct kofiblk_cmd_msg cmd;
	struct kofiblk_reply_msg msg;

	begin(test, op);
	region_done();
	cmd = sent(test);
	msg = answer(&cmd);
	msg.flags = 0;
	msg.status = status;
	/* Only reads and writes move bytes. */
	if (status || cmd.op != KOFIBLK_OP_WRITE)
		msg.bytes = 0;
	hear(test, &msg);
	region_done();
	is_over(test);
}

struct noted {
	const char *name;
	blk_opf_t op;
	u32 flags;	/* of the disk */
	u16 status;
	bool unflushed;
};

static const struct noted noted[] = {
	{ "write", REQ_OP_WRITE, KOFIBLK_DISK_WRITE_CACHE, 0, true },
	{ "write zeroes", REQ_OP_WRITE_ZEROES, KOFIBLK_DISK_WRITE_CACHE, 0, true },
	{ "write, FUA", REQ_OP_WRITE | REQ_FUA, KOFIBLK_DISK_WRITE_CACHE, 0, false },
	{ "write zeroes, FUA", REQ_OP_WRITE_ZEROES | REQ_FUA, KOFIBLK_DISK_WRITE_CACHE, 0, false },
	{ "write, no cache", REQ_OP_WRITE, 0, 0, false },
	{ "write zeroes, no cache", REQ_OP_WRITE_ZEROES, 0, 0, false },
	{ "failed write", REQ_OP_WRITE, KOFIBLK_DISK_WRITE_CACHE, KULP_STS_MEDIUM, false },
	{ "failed write zeroes", REQ_OP_WRITE_ZEROES, KOFIBLK_DISK_WRITE_CACHE, KULP_STS_MEDIUM,
	  false },
	{ "discard", REQ_OP_DISCARD, KOFIBLK_DISK_WRITE_CACHE, 0, false },
};

KUNIT_ARRAY_PARAM_DESC(noted, noted, name);

static struct kbc_epoch *scene_epoch(void)
{
	struct kbc_disk *d = &scene->d;

	d->session.limits.caps |= KOFIBLK_CAP_DISCARD | KOFIBLK_CAP_WRITE_ZEROES;
	d->session.geometry.flags = KOFIBLK_DISK_WRITE_CACHE;
	kbc_epoch_begin(&d->epoch, 1);
	return &d->epoch;
}

/* Completed writes are noted, and another epoch of the server makes later flushes fail. */
static void notes_writes(struct kunit *test)
{
	const struct noted *param = test->param_value;
	struct kbc_epoch *epoch = scene_epoch();

	scene->d.session.geometry.flags = param->flags;
	do_write(test, param->op, param->status);
	KUNIT_EXPECT_EQ(test, !!epoch->unflushed, param->unflushed);
	KUNIT_EXPECT_EQ(test, kbc_epoch_begin(epoch, 2), param->unflushed);
	KUNIT_EXPECT_EQ(test, kbc_request_lost(&scene->d, scene->rq, KOFIBLK_OP_FLUSH),
			param->unflushed);
}

/* The write may have been done, but it wasn't completed, so it will be sent again. */
static void notes_no_aborted_write(struct kunit *test)
{
	struct kbc_epoch *epoch = scene_epoch();

	begin(test, REQ_OP_WRITE_ZEROES);
	sent(test);
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	KUNIT_EXPECT_EQ(test, epoch->unflushed, 0);
}

/* A flush covers earlier writes only if it succeeds. */
static void notes_flushes(struct kunit *test)
{
	struct kbc_epoch *epoch = scene_epoch();

	do_write(test, REQ_OP_WRITE, 0);
	do_write(test, REQ_OP_FLUSH, KULP_STS_MEDIUM);
	KUNIT_EXPECT_NE(test, epoch->unflushed, 0);
	begin(test, REQ_OP_FLUSH);
	sent(test);
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_NE(test, epoch->unflushed, 0);
	do_write(test, REQ_OP_FLUSH, 0);
	KUNIT_EXPECT_EQ(test, epoch->unflushed, 0);
	do_write(test, REQ_OP_FLUSH, KULP_STS_MEDIUM);
	KUNIT_EXPECT_EQ(test, epoch->unflushed, 0);
	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(epoch, 2));
}

/* --- checksums --- */

/* Compute the checksum of the server's reply in hear(). */
static u32 read_sum(struct kunit *test, const struct kofiblk_cmd_msg *cmd)
{
	u8 *data = kunit_kmalloc(test, cmd->bytes, GFP_KERNEL);
	struct bio_vec bv;
	u64 i;

	KUNIT_ASSERT_NOT_NULL(test, data);
	for (i = 0; i < cmd->bytes; i++)
		data[i] = i / 16;
	bvec_set_virt(&bv, data, cmd->bytes);
	return kofiblk_sum_bvecs(kofiblk_sum_cmd(cmd), &bv, bv.bv_len);
}

static struct kofiblk_reply_msg summed_answer(struct kunit *test, const struct kofiblk_cmd_msg *cmd)
{
	struct kofiblk_reply_msg msg = answer(cmd);

	msg.flags |= KOFIBLK_REPLY_SUM;
	msg.sum = read_sum(test, cmd);
	return msg;
}

static void sum_of_a_read(struct kunit *test)
{
	struct kofiblk_cmd_msg cmd;
	struct kofiblk_reply_msg msg;

	scene->d.session.limits.caps |= KOFIBLK_CAP_CHECKSUM;
	begin(test, REQ_OP_READ);
	cmd = sent(test);
	KUNIT_EXPECT_EQ(test, cmd.flags, (u16)(KOFIBLK_CMD_INLINE | KOFIBLK_CMD_SUM));
	KUNIT_EXPECT_EQ(test, cmd.sum, kofiblk_sum_cmd(&cmd));
	msg = summed_answer(test, &cmd);
	hear(test, &msg);
	is_over(test);
	KUNIT_EXPECT_EQ(test, scene->status, BLK_STS_OK);
	memory_is(test, true);
	KUNIT_EXPECT_EQ(test, kbc_count(&scene->d, KBC_STAT(checksum_errors)), 0UL);
}

/* Data with a wrong checksum is read again, and fails after several attempts. */
static void wrong_sum_of_a_read(struct kunit *test)
{
	struct kofiblk_cmd_msg cmd;
	struct kofiblk_reply_msg msg;
	unsigned int i;

	scene->d.session.limits.caps |= KOFIBLK_CAP_CHECKSUM;
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
	KUNIT_EXPECT_EQ(test, kbc_count(&scene->d, KBC_STAT(checksum_errors)),
			KBC_FAULTS_MAX + 1UL);
	/* The session continues. */
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
}

/* Intact data of another offset, as if the server had misread the command. */
static void sum_of_another_read(struct kunit *test)
{
	struct kofiblk_cmd_msg cmd, other;
	struct kofiblk_reply_msg msg;

	scene->d.session.limits.caps |= KOFIBLK_CAP_CHECKSUM;
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
	struct kofiblk_reply_msg msg;
	struct kofiblk_cmd_msg cmd;
	struct bio_vec bv;
	unsigned int i;
	struct kbc_slot *slot = kbc_slot(scene->rq);
	u32 sum;

	scene->d.session.limits.caps |= KOFIBLK_CAP_CHECKSUM;
	begin(test, REQ_OP_WRITE);
	/* The memory is registered, and then the command is sent. */
	KUNIT_ASSERT_PTR_EQ(test, scene->op, &slot->region);
	slot->phase = KBC_IDLE;
	kbc_command(slot, false);
	KUNIT_ASSERT_EQ(test, kofiblk_parse_cmd(&slot->send->msg,
						slot->bvecs[0].bv_len, &cmd), 0);
	KUNIT_EXPECT_EQ(test, cmd.flags, (u16)KOFIBLK_CMD_SUM);
	sum = kofiblk_sum_cmd(&cmd);
	for (i = 0; i < ARRAY_SIZE(pieces); i++) {
		bvec_set_virt(&bv, scene->data + pieces[i].at, pieces[i].len);
		sum = kofiblk_sum_bvecs(sum, &bv, bv.bv_len);
	}
	KUNIT_EXPECT_EQ(test, cmd.sum, sum);
	/* The server received corrupted data, and wrote none of it. */
	slot->ops = 0;
	slot->phase = KBC_REPLY;
	slot->posted = true;
	msg = answer(&cmd);
	msg.flags = 0;
	msg.bytes = 0;
	msg.status = KULP_STS_PROTECTION;
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	KUNIT_EXPECT_EQ(test, kbc_count(&scene->d, KBC_STAT(checksum_errors)), 1UL);
}

/* Without checksums, KULP_STS_PROTECTION is an error of the server's disk. */
static void protection_error_of_a_disk(struct kunit *test)
{
	struct kofiblk_cmd_msg cmd;
	struct kofiblk_reply_msg msg;

	begin(test, REQ_OP_READ);
	cmd = sent(test);
	msg = answer(&cmd);
	msg.flags = 0;
	msg.bytes = 0;
	msg.status = KULP_STS_PROTECTION;
	hear(test, &msg);
	is_over(test);
	KUNIT_EXPECT_EQ(test, scene->status, BLK_STS_PROTECTION);
	KUNIT_EXPECT_EQ(test, kbc_count(&scene->d, KBC_STAT(checksum_errors)), 0UL);
}

/* Have the server refuse the request. Return: whether the request is sent again. */
static bool refused_as(struct kunit *test, u16 status)
{
	unsigned int requeued = scene->requeued;
	struct kofiblk_cmd_msg cmd;
	struct kofiblk_reply_msg msg;

	begin(test, REQ_OP_READ);
	cmd = sent(test);
	msg = answer(&cmd);
	msg.flags = 0;
	msg.bytes = 0;
	msg.status = status;
	hear(test, &msg);
	KUNIT_EXPECT_NULL(test, scene->kq.tags[1].slot);
	return scene->requeued > requeued;
}

/* A server that is short of memory for half a minute costs time, but no request. */
static void server_is_short_of_memory(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 300 && scene->waited < 30000; i++) {
		KUNIT_ASSERT_TRUE(test, refused_as(test, i % 2 ? KULP_STS_NOMEM : KULP_STS_BUSY));
		KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	}
	kbc_slot(scene->rq)->short_since -= msecs_to_jiffies(60000);
	KUNIT_EXPECT_FALSE(test, refused_as(test, KULP_STS_NOMEM));
	KUNIT_EXPECT_EQ(test, scene->status, BLK_STS_IOERR);
}

/* A missing or unexpected checksum violates the protocol. */
static void sums_that_were_not_granted(struct kunit *test)
{
	struct kofiblk_cmd_msg cmd;
	struct kofiblk_reply_msg msg;

	begin(test, REQ_OP_READ);
	cmd = sent(test);
	msg = summed_answer(test, &cmd);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->failures, 1U);
	scene->d.session.limits.caps |= KOFIBLK_CAP_CHECKSUM;
	msg = answer(&cmd);
	hear(test, &msg);
	KUNIT_EXPECT_EQ(test, scene->failures, 2U);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	memory_is(test, false);
}

/* --- locks --- */

static struct {
	bool	held;
	bool	release;
	bool	gave_up;
} holder;

/* Simulate another CPU that holds the locks of the disk, its queue and its wait queue. */
static void hold_locks(struct kofi_thread *thread)
{
	unsigned long end = jiffies + msecs_to_jiffies(KOFI_SPIN_MS);

	/* Interrupts are off here, and the test's own CPU must go on. */
	set_cpus_allowed_ptr(current, cpumask_of(cpumask_last(cpu_online_mask)));
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

/* A request takes only the lock of its tag, even if it is the last active one of its queue. */
static void requests_are_apart(struct kunit *test)
{
	struct kofi_thread thread;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	memset(&holder, 0, sizeof(holder));
	scene->d.gate.up = true;
	set_cpus_allowed_ptr(current, cpumask_of(cpumask_first(cpu_online_mask)));
	kofi_thread_start(test, &thread, hold_locks, NULL);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(holder.held)));
	small_read(test);
	WRITE_ONCE(holder.release, true);
	kofi_thread_join(test, &thread);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	KUNIT_EXPECT_FALSE(test, holder.gave_up);
	KUNIT_EXPECT_EQ(test, sizeof(struct kbc_queue) % SMP_CACHE_BYTES, 0UL);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(small_read),
	KUNIT_CASE(failed_read),
	KUNIT_CASE(not_granted),
	KUNIT_CASE(wrong_replies),
	KUNIT_CASE(reply_elsewhere),
	KUNIT_CASE(offered_again),
	KUNIT_CASE(forged_replies),
	KUNIT_CASE(proved),
	KUNIT_CASE(late_reply),
	KUNIT_CASE(reply_before_sent),
	KUNIT_CASE(dead_server),
	KUNIT_CASE(dead_server_and_region),
	KUNIT_CASE(device_keeps_region),
	KUNIT_CASE(regions_retire),
	KUNIT_CASE(regions_renewed),
	KUNIT_CASE(data_isnt_set_aside),
	KUNIT_CASE(silent_server),
	KUNIT_CASE(readahead_and_merged),
	KUNIT_CASE(data_unasked),
	KUNIT_CASE_PARAM(notes_writes, noted_gen_params),
	KUNIT_CASE(notes_no_aborted_write),
	KUNIT_CASE(notes_flushes),
	KUNIT_CASE(sum_of_a_read),
	KUNIT_CASE(wrong_sum_of_a_read),
	KUNIT_CASE(sum_of_another_read),
	KUNIT_CASE(sum_of_a_write),
	KUNIT_CASE(protection_error_of_a_disk),
	KUNIT_CASE(server_is_short_of_memory),
	KUNIT_CASE(sums_that_were_not_granted),
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
