// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofiblk's transport on a queue that no device is behind: operations that are
 * refused, and what they wait for.
 */
#include "../../samples/blk/fabric.c"

#include <kunit/test.h>
#include <linux/delay.h>

static struct scene {
	struct kb_fabric	fabric;
	struct kb_queue		queue;
	struct kb_op		op;
	struct fid_cq		cq;
	struct fi_cq_msg_entry	entry;
	unsigned int		entries;
	int			refused;	/* what posting says */
	unsigned int		posts;
	unsigned int		dones;
	unsigned int		gones;
	int			err;
} *scene;

static int scene_post(struct kb_queue *q, struct kb_op *op)
{
	scene->posts++;
	return scene->refused;
}

static void scene_done(struct kb_queue *q, struct kb_op *op, int err, size_t len)
{
	scene->dones++;
	scene->err = err;
}

static void scene_gone(struct kb_fabric *f)
{
	scene->gones++;
}

static const struct kb_role scene_role = {
	.name	= "scene",
	.gone	= scene_gone,
};

static ssize_t scene_read(struct fid_cq *cq, void *buf, size_t count)
{
	if (!scene->entries)
		return -EAGAIN;
	scene->entries--;
	memcpy(buf, &scene->entry, sizeof(scene->entry));
	return 1;
}

static const struct fi_ops_cq scene_cq_ops = {
	.read	= scene_read,
};

/* What a ULP is told of is closed by then, not only refused. */
static void refused_by_a_dead_device(struct kunit *test)
{
	struct kb_queue *q = &scene->queue;

	scene->refused = -ENODEV;
	/* The device's going is another one's work. */
	scene->fabric.gone = 1;
	kb_submit(q, &scene->op);
	KUNIT_EXPECT_EQ(test, scene->posts, 1U);
	KUNIT_EXPECT_EQ(test, scene->dones, 0U);
	kb_fabric_down(&scene->fabric);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -ENODEV);
	/* And what comes later has nothing to wait for. */
	kb_submit(q, &scene->op);
	KUNIT_EXPECT_EQ(test, scene->dones, 2U);
	KUNIT_EXPECT_EQ(test, scene->err, -ENODEV);
}

static void refusal_is_a_loss(struct kunit *test)
{
	scene->refused = -ENODEV;
	kb_submit(&scene->queue, &scene->op);
	flush_work(&scene->fabric.gone_work);
	KUNIT_EXPECT_EQ(test, scene->gones, 1U);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -ENODEV);
}

/* Nobody cancels a timer of a queue twice. */
static void closed_arms_nothing(struct kunit *test)
{
	struct kb_queue *q = &scene->queue;

	scene->refused = -EAGAIN;
	kb_submit(q, &scene->op);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&q->retry));
	kb_fabric_down(&scene->fabric);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	cancel_delayed_work_sync(&q->retry);
	kb_submit(q, &scene->op);
	kb_pump(q);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&q->retry));
}

static void room_comes_later(struct kunit *test)
{
	struct kb_queue *q = &scene->queue;
	unsigned long end = jiffies + 10 * HZ;

	scene->refused = -EAGAIN;
	kb_submit(q, &scene->op);
	KUNIT_EXPECT_EQ(test, scene->posts, 1U);
	WRITE_ONCE(scene->refused, 0);
	while (READ_ONCE(scene->posts) < 2 && time_before(jiffies, end))
		usleep_range(1000, 2000);
	KUNIT_EXPECT_EQ(test, scene->posts, 2U);
	KUNIT_EXPECT_TRUE(test, list_empty(&q->waiting));
}

static void no_message(struct kunit *test)
{
	scene->entry = (struct fi_cq_msg_entry) {
		.op_context	= &scene->op,
		.flags		= FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len		= 64,
	};
	scene->entries = 1;
	kb_cq_drain(&scene->cq, &scene->queue);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -EMSGSIZE);
	scene->entry.flags = FI_MSG | FI_RECV;
	scene->entries = 1;
	kb_cq_drain(&scene->cq, &scene->queue);
	KUNIT_EXPECT_EQ(test, scene->dones, 2U);
	KUNIT_EXPECT_EQ(test, scene->err, 0);
}

static int fabric_init(struct kunit *test)
{
	struct kb_fabric *f;
	struct kb_queue *q;

	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	f = &scene->fabric;
	f->role = &scene_role;
	f->queues = &scene->queue;
	f->nqueues = 1;
	f->info = fi_allocinfo();
	KUNIT_ASSERT_NOT_NULL(test, f->info);
	INIT_WORK(&f->gone_work, kb_gone);
	q = f->queues;
	kb_queue_init(f, 0);
	scene->cq.ops = &scene_cq_ops;
	q->cq = &scene->cq;
	q->up = true;
	scene->op.post = scene_post;
	scene->op.done = scene_done;
	return 0;
}

static void fabric_exit(struct kunit *test)
{
	if (!scene)
		return;
	scene->refused = 0;
	flush_work(&scene->fabric.gone_work);
	kb_fabric_down(&scene->fabric);
	cancel_delayed_work_sync(&scene->queue.retry);
	fi_freeinfo(scene->fabric.info);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(refused_by_a_dead_device),
	KUNIT_CASE(refusal_is_a_loss),
	KUNIT_CASE(closed_arms_nothing),
	KUNIT_CASE(room_comes_later),
	KUNIT_CASE(no_message),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_fabric",
	.init		= fabric_init,
	.exit		= fabric_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);
