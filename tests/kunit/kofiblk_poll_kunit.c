// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Polled queues of kofiblk's client: requests continue only when somebody polls, and those that
 * wait for requests do so themselves.
 */
#include "kofiblk_client_scene.c"

#define TIMEOUTS	kbc_count(&scene->d, KBC_STAT(timeouts))

static struct kunit *poll_test;
static struct kofiblk_cmd_msg poll_cmd;
static struct blk_mq_hw_ctx *poll_hctx;

static int poll(void)
{
	return kbc_poll(poll_hctx, NULL);
}

/* --- what arrives --- */

static void reply(void)
{
	struct kofiblk_reply_msg msg = answer(&poll_cmd);

	if (!(poll_cmd.flags & KOFIBLK_CMD_INLINE))
		msg.flags = 0;
	hear(poll_test, &msg);
}

static void no_memory(void)
{
	struct kofiblk_reply_msg msg = answer(&poll_cmd);

	msg.flags = 0;
	msg.bytes = 0;
	msg.status = KULP_STS_NOMEM;
	hear(poll_test, &msg);
}

/* The end of the latest operation: a message or a registration. */
static void end_of_op(void)
{
	scene->nops = 0;
	scene->op->done(&scene->q, scene->op, 0, 0);
}

/* --- cases --- */

static void small_read(struct kunit *test)
{
	begin(test, REQ_OP_READ | REQ_POLLED);
	poll_cmd = sent(test);
	KUNIT_EXPECT_EQ(test, poll_cmd.queue, 1);
	KUNIT_EXPECT_EQ(test, poll(), 0);
	scene->unread = reply;
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	KUNIT_EXPECT_EQ(test, poll(), 1);
	is_over(test);
	memory_is(test, true);
	KUNIT_EXPECT_EQ(test, poll(), 0);
	/* Later, the queue may be gone. */
	scene->kq.q = NULL;
	KUNIT_EXPECT_EQ(test, poll(), 0);
}

/* So are registrations and invalidations. */
static void long_read(struct kunit *test)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);

	scene->d.session.limits.inline_read = 0;
	begin(test, REQ_OP_READ | REQ_POLLED);
	KUNIT_EXPECT_EQ(test, slot->phase, KBC_REGISTER);
	scene->unread = end_of_op;
	KUNIT_EXPECT_EQ(test, poll(), 1);
	KUNIT_EXPECT_EQ(test, slot->phase, KBC_REPLY);
	poll_cmd = sent(test);
	KUNIT_EXPECT_NE(test, poll_cmd.key, 0ULL);
	scene->unread = reply;
	KUNIT_EXPECT_EQ(test, poll(), 1);
	KUNIT_EXPECT_EQ(test, slot->phase, KBC_INVALIDATE);
	scene->unread = end_of_op;
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	KUNIT_EXPECT_EQ(test, poll(), 1);
	is_over(test);
}

/* It isn't the server's fault that nobody polled. */
static void reply_that_nobody_read(struct kunit *test)
{
	begin(test, REQ_OP_READ | REQ_POLLED);
	poll_cmd = sent(test);
	scene->unread = reply;
	KUNIT_EXPECT_EQ(test, kbc_timeout(scene->rq), BLK_EH_DONE);
	is_over(test);
	KUNIT_EXPECT_EQ(test, scene->status, BLK_STS_OK);
	/* Nor if it is sent again. */
	begin(test, REQ_OP_READ | REQ_POLLED);
	poll_cmd = sent(test);
	scene->unread = no_memory;
	KUNIT_EXPECT_EQ(test, kbc_timeout(scene->rq), BLK_EH_DONE);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	KUNIT_EXPECT_EQ(test, TIMEOUTS, 0UL);
	KUNIT_EXPECT_EQ(test, scene->failures, 0U);
}

static void time_out(struct kunit *test)
{
	int i;

	for (i = 1; i <= 2; i++) {
		begin(test, REQ_OP_READ | REQ_POLLED);
		poll_cmd = sent(test);
		KUNIT_EXPECT_EQ(test, kbc_timeout(scene->rq), BLK_EH_RESET_TIMER);
		KUNIT_EXPECT_EQ(test, scene->ended, 0U);
		KUNIT_EXPECT_EQ(test, TIMEOUTS, (unsigned long)i);
		KUNIT_EXPECT_EQ(test, scene->failures, (unsigned int)i);
		kbc_requests_abort(&scene->d);
		KUNIT_EXPECT_EQ(test, scene->requeued, (unsigned int)i);
		/* In a queue with a handler, that reads the reply. */
		scene->q.polled = false;
		scene->unread = reply;
	}
	scene->unread = NULL;
	/* It was sent again meanwhile. */
	begin(test, REQ_OP_READ | REQ_POLLED);
	poll_cmd = sent(test);
	scene->rq->deadline = jiffies + HZ;
	KUNIT_EXPECT_EQ(test, kbc_timeout(scene->rq), BLK_EH_RESET_TIMER);
	KUNIT_EXPECT_EQ(test, TIMEOUTS, 2UL);
	kbc_requests_abort(&scene->d);
}

/* The device gives the server up, after a time that is long for the block layer. */
static void given_up(void)
{
	int i;

	for (i = 0; i <= KBC_FAULTS_MAX; i++)
		KUNIT_EXPECT_EQ(poll_test, kbc_timeout(scene->rq), BLK_EH_RESET_TIMER);
	end_of_op();
}

/* A small write waits for its message, and isn't the reason why that takes so long. */
static void time_out_after_the_end(struct kunit *test)
{
	struct kbc_slot *slot = kbc_slot(scene->rq);

	begin(test, REQ_OP_WRITE | REQ_POLLED);
	slot->region.done(&scene->q, &slot->region, -EINVAL, 0);
	/* One piece is sent with the command. */
	scene->bio.bi_iter.bi_size = pieces[0].len;
	scene->rq->__data_len = pieces[0].len;
	KUNIT_ASSERT_EQ(test, kbc_request_start(&scene->kq, scene->rq), BLK_STS_OK);
	KUNIT_ASSERT_TRUE(test, kbc_sends_data(slot));
	KUNIT_EXPECT_EQ(test, kbc_timeout(scene->rq), BLK_EH_RESET_TIMER);
	scene->ended = 0;
	scene->unread = given_up;
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	KUNIT_EXPECT_EQ(test, scene->ended, 0U);
	KUNIT_EXPECT_EQ(test, slot->faults, 1);
	KUNIT_EXPECT_EQ(test, TIMEOUTS, KBC_FAULTS_MAX + 2UL);
}

/* At a session's end, nobody polls for the end of the command's message but the thread. */
static void session_dies(struct kunit *test)
{
	const unsigned long began = jiffies;

	begin(test, REQ_OP_READ | REQ_POLLED);
	scene->unread = end_of_op;
	scene->early = 3;
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	KUNIT_EXPECT_EQ(test, atomic_read(&scene->kq.busy), 0);
	/* No message was set aside. */
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, began + msecs_to_jiffies(KBC_LEAVE_MS)));
	KUNIT_EXPECT_TRUE(test, list_empty(&kbc_left));
}

static void inval_is_unread(void)
{
	end_of_op();
}

static void reg_is_unread(void)
{
	end_of_op();
	scene->unread = inval_is_unread;
}

/* Memory that is being registered is invalidated before the request ends. */
static void session_dies_early(struct kunit *test)
{
	scene->d.session.limits.inline_read = 0;
	begin(test, REQ_OP_READ | REQ_POLLED);
	scene->unread = reg_is_unread;
	scene->early = 2;
	kbc_requests_abort(&scene->d);
	KUNIT_EXPECT_EQ(test, scene->requeued, 1U);
	KUNIT_EXPECT_FALSE(test, kbc_slot(scene->rq)->registered);
	KUNIT_EXPECT_EQ(test, scene->closes, 0U);
	KUNIT_EXPECT_EQ(test, atomic_read(&scene->kq.busy), 0);
}

/* Requests go to the queues of their kind, on each CPU. */
static void maps(struct kunit *test)
{
	struct blk_mq_tag_set *set = kunit_kzalloc(test, sizeof(*set), GFP_KERNEL);
	struct kbc_disk *d = &scene->d;
	/* The block layer maps no more queues of a kind than there are CPUs. */
	const unsigned int others = min(3U, num_online_cpus());
	unsigned int polled, i, cpu;

	KUNIT_ASSERT_NOT_NULL(test, set);
	set->driver_data = d;
	for (i = 0; i < HCTX_MAX_TYPES; i++) {
		set->map[i].mq_map = kunit_kcalloc(test, nr_cpu_ids, sizeof(unsigned int),
						   GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, set->map[i].mq_map);
	}
	for (polled = 0; polled <= min(2U, num_online_cpus()); polled++) {
		d->nqueues = others + polled;
		d->npolled = polled;
		set->nr_hw_queues = d->nqueues;
		set->nr_maps = polled ? HCTX_MAX_TYPES : 1;
		for (i = 0; i < set->nr_maps; i++)
			set->map[i].nr_queues = set->nr_hw_queues;
		kbc_map_queues(set);
		KUNIT_EXPECT_EQ(test, set->map[HCTX_TYPE_DEFAULT].nr_queues, others);
		for_each_possible_cpu(cpu) {
			KUNIT_EXPECT_LT(test, set->map[HCTX_TYPE_DEFAULT].mq_map[cpu], others);
			if (!polled)
				continue;
			i = set->map[HCTX_TYPE_POLL].mq_map[cpu];
			KUNIT_EXPECT_GE(test, i, others);
			KUNIT_EXPECT_LT(test, i, others + polled);
		}
		/* Reads without REQ_POLLED use the queues of others. */
		KUNIT_EXPECT_EQ(test, set->map[HCTX_TYPE_READ].nr_queues, 0U);
	}
	d->nqueues = 2;
	d->npolled = 1;
}

static struct kunit_case cases[] = {
	KUNIT_CASE(small_read),
	KUNIT_CASE(long_read),
	KUNIT_CASE(reply_that_nobody_read),
	KUNIT_CASE(time_out),
	KUNIT_CASE(time_out_after_the_end),
	KUNIT_CASE(session_dies),
	KUNIT_CASE(session_dies_early),
	KUNIT_CASE(maps),
	{}
};

/* The disk's second queue is polled. */
static int poll_init(struct kunit *test)
{
	int ret = request_init(test);

	static_assert(offsetof(struct scene, kq) ==
		      offsetof(struct scene, first) + sizeof(struct kbc_queue));
	if (ret)
		return ret;
	poll_test = test;
	poll_hctx = kunit_kzalloc(test, sizeof(*poll_hctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, poll_hctx);
	poll_hctx->driver_data = &scene->kq;
	scene->rq->mq_hctx = poll_hctx;
	scene->first.disk = &scene->d;
	scene->kq.index = 1;
	scene->q.polled = true;
	scene->d.queues = &scene->first;
	scene->d.nqueues = 2;
	scene->d.npolled = 1;
	return 0;
}

static struct kunit_suite suite = {
	.name		= "kofiblk_poll",
	.init		= poll_init,
	.exit		= request_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of kofiblk's client: polled queues");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
