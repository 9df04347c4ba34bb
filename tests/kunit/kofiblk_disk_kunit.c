// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The block layer's disk of kofiblk's client, without a session. */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include "../../ulp/blk/cli_disk.c"

/* Time in which a CPU goes offline, even on an emulated machine. */
#define OFFLINE_MS	20000

const struct attribute_group *kbc_attr_groups[] = { NULL };

static struct scene {
	struct kbc_disk		d;
	struct kbc_queue	queues[KOFIBLK_QUEUES_MAX];
	struct request		*rq;		/* waits for a session */
	unsigned int		cpu;		/* on which it was made */
	struct work_struct	remove;
	struct completion	removed;
	int			err;		/* of the removal of @cpu */
} *scene;

/* --- the rest of the client --- */

blk_status_t kbc_request_start(struct kbc_queue *kq, struct request *rq)
{
	return BLK_STS_IOERR;
}

enum blk_eh_timer_return kbc_timeout(struct request *rq)
{
	return BLK_EH_RESET_TIMER;
}

int kbc_poll(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *iob)
{
	return 0;
}

struct kbc_queue *kbc_hctx_queue(struct kbc_disk *d, unsigned int index)
{
	return &d->queues[index];
}

void kbc_map_queues(struct blk_mq_tag_set *set)
{
	blk_mq_map_queues(&set->map[HCTX_TYPE_DEFAULT]);
}

int kbc_slot_init(struct kbc_slot *slot, struct kbc_queue *kq)
{
	return 0;
}

void kbc_slot_exit(struct kbc_slot *slot)
{
}

static void no_update(struct work_struct *work)
{
}

/* --- cases --- */

static int make_request(void *unused)
{
	scene->rq = blk_mq_alloc_request(scene->d.disk->queue, REQ_OP_DRV_IN, BLK_MQ_REQ_NOWAIT);
	return PTR_ERR_OR_ZERO(scene->rq);
}

static void remove_it(struct work_struct *work)
{
	scene->err = remove_cpu(scene->cpu);
	complete(&scene->removed);
}

/*
 * Requests wait for a session as long as the server is away. A CPU that goes offline, as all but
 * one do in a suspend, doesn't wait for them, though no other CPU has their queue.
 */
static void cpu_goes_without_a_session(struct kunit *test)
{
	unsigned long left;

	scene->cpu = cpumask_last(cpu_online_mask);
	KUNIT_ASSERT_GT(test, scene->cpu, 0U);
	KUNIT_ASSERT_EQ(test, smp_call_on_cpu(scene->cpu, make_request, NULL, false), 0);
	queue_work(system_unbound_wq, &scene->remove);
	left = wait_for_completion_timeout(&scene->removed, msecs_to_jiffies(OFFLINE_MS));
	KUNIT_EXPECT_NE(test, left, 0UL);
	blk_mq_free_request(scene->rq);
	if (!left)
		wait_for_completion(&scene->removed);
	KUNIT_EXPECT_EQ(test, scene->err, 0);
	KUNIT_EXPECT_EQ(test, add_cpu(scene->cpu), 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(cpu_goes_without_a_session),
	{}
};

static int disk_init(struct kunit *test)
{
	struct kbc_disk *d;
	unsigned int i;

	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	INIT_WORK(&scene->remove, remove_it);
	init_completion(&scene->removed);
	d = &scene->d;
	mutex_init(&d->gate.lock);
	INIT_WORK(&d->update, no_update);
	strscpy(d->name, "kofiblk_kunit", sizeof(d->name));
	d->queues = scene->queues;
	d->nqueues = min_t(unsigned int, num_online_cpus(), KOFIBLK_QUEUES_MAX);
	for (i = 0; i < KOFIBLK_QUEUES_MAX; i++)
		scene->queues[i].disk = d;
	d->made.depth = 2;
	d->made.max_bvecs = 17;
	d->session.limits.max_io = SZ_64K;
	d->session.geometry = (struct kofiblk_disk_msg) {
		.bytes = SZ_1M, .logical_block = 512, .physical_block = 4096,
	};
	return kbc_disk_alloc(d);
}

static void disk_exit(struct kunit *test)
{
	if (scene)
		kbc_disk_free(&scene->d);
	scene = NULL;
}

static struct kunit_suite suite = {
	.name		= "kofiblk_disk",
	.init		= disk_init,
	.exit		= disk_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of kofiblk's client: the block layer's disk");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
