// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The domain's queue pair for registrations: its worker calls handlers itself, tasks that wait for
 * registrations don't wait for handlers, and a queue that is being closed waits for its own.
 */
#include "crew.h"
#include "efa_scene.h"

#define REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)

/**
 * struct told - a completion queue with a handler
 * @cq: the queue
 * @mr: region that completes there
 * @n: number of completions that the handler has read
 * @ran: work item of the last call
 * @blocks: the handler waits for @leave
 * @entered: completed when the handler is called
 * @leave: lets the handler go on
 */
struct told {
	struct fid_cq		*cq;
	struct fid_mr		*mr;
	atomic_t		n;
	struct work_struct	*ran;
	bool			blocks;
	struct completion	entered;
	struct completion	leave;
};

static struct kefa_mrq *mrq_of(struct efa_scene *scene)
{
	return &efa_dom(scene)->mrq;
}

static struct efake_qp *mrq_qp(struct efa_scene *scene)
{
	return efake_qp(scene->fake, mrq_of(scene)->hq.qpn);
}

static void told_handler(struct fid_cq *cq, void *context)
{
	struct fi_cq_entry entry;
	struct told *told = context;

	told->ran = current_work();
	while (fi_cq_read(cq, &entry, 1) == 1)
		atomic_inc(&told->n);
	complete(&told->entered);
	if (told->blocks)
		wait_for_completion(&told->leave);
}

static void told_open(struct kunit *test, struct efa_scene *scene, struct told *told)
{
	struct fi_cq_attr cq_attr = {
		.wait_obj = FI_WAIT_UNSPEC, .handler = told_handler, .handler_context = told,
	};
	struct fi_mr_alloc_attr attr = { .max_pages = 4, .access = REMOTE };

	init_completion(&told->entered);
	init_completion(&told->leave);
	KUNIT_ASSERT_EQ(test, fi_cq_open(scene->domain, &cq_attr, &told->cq, NULL), 0);
	attr.cq = told->cq;
	KUNIT_ASSERT_EQ(test, fi_mr_alloc(scene->domain, &attr, &told->mr, NULL), 0);
}

static void told_close(struct kunit *test, struct told *told)
{
	KUNIT_EXPECT_EQ(test, fi_close(&told->mr->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&told->cq->fid), 0);
}

static int mrq_post(struct efa_scene *scene, struct fid_mr *mr, u64 flags)
{
	const struct kvec iov = { scene->buf, PAGE_SIZE };
	const struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &iov, .iov_count = 1, .access = REMOTE,
	};

	return fi_mr_post_reg(mr, &attr, flags);
}

/* The worker that polls calls the handler, without another one. */
static void mrq_calls(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct told told = { };

	told_open(test, scene, &told);
	KUNIT_EXPECT_EQ(test, mrq_post(scene, told.mr, FI_COMPLETION), 0);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&told.entered));
	KUNIT_EXPECT_PTR_EQ(test, told.ran, &mrq_of(scene)->work);
	efake_settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&told.n), 1);
	KUNIT_EXPECT_TRUE(test, mrq_qp(scene)->armed);
	told_close(test, &told);
}

/* Completions of several queues that are polled together. */
static void mrq_calls_each(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_mrq *mrq = mrq_of(scene);
	struct fi_mr_alloc_attr attr = { .max_pages = 4, .access = REMOTE };
	struct told *told = kunit_kcalloc(test, 3, sizeof(*told), GFP_KERNEL);
	struct fid_mr *more;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, told);
	for (i = 0; i < 3; i++)
		told_open(test, scene, &told[i]);
	attr.cq = told[0].cq;
	KUNIT_ASSERT_EQ(test, fi_mr_alloc(scene->domain, &attr, &more, NULL), 0);
	scene->fake->manual_mr = true;
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, mrq_post(scene, told[i].mr, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, mrq_post(scene, more, FI_COMPLETION), 0);
	spin_lock_bh(&mrq->lock);
	for (i = 0; i < 4; i++)
		efake_wr_done(efake_sent(mrq_qp(scene), 0), 0);
	spin_unlock_bh(&mrq->lock);
	efake_settle();
	scene->fake->manual_mr = false;
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, atomic_read(&told[i].n), i ? 1 : 2);
		KUNIT_EXPECT_PTR_EQ(test, told[i].ran, &mrq->work);
	}
	KUNIT_EXPECT_EQ(test, fi_close(&more->fid), 0);
	for (i = 0; i < 3; i++)
		told_close(test, &told[i]);
}

static void close_cq(struct kofi_thread *thread)
{
	thread->ret = fi_close(&((struct fid_cq *)thread->arg)->fid);
}

/* While a handler waits, other tasks register and close; only its queue's close waits for it. */
static void mrq_handler_waits(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct told told = { .blocks = true };
	struct kofi_thread thread;
	struct fid_mr *mr;

	told_open(test, scene, &told);
	KUNIT_EXPECT_EQ(test, mrq_post(scene, told.mr, FI_COMPLETION), 0);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&told.entered));
	KUNIT_EXPECT_EQ(test, fi_mr_reg(scene->domain, scene->buf, 100, REMOTE, 0, 0, 0, &mr,
					NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&told.mr->fid), 0);
	kofi_thread_start(test, &thread, close_cq, told.cq);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 20));
	complete_all(&told.leave);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
}

/* A queue is closed after its region, while the worker is about to call its handler. */
static void mrq_closes(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	const unsigned long start = jiffies;
	unsigned int i;

	for (i = 0; kofi_hunting(start, 200, i); i++) {
		struct told *told = kzalloc(sizeof(*told), GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, told);
		told_open(test, scene, told);
		KUNIT_EXPECT_EQ(test, mrq_post(scene, told->mr, FI_COMPLETION), 0);
		told_close(test, told);
		kfree(told);
	}
}

static struct kunit_case mrq_cases[] = {
	KUNIT_CASE(mrq_calls),
	KUNIT_CASE(mrq_calls_each),
	KUNIT_CASE(mrq_handler_waits),
	KUNIT_CASE(mrq_closes),
	{}
};

static struct kunit_suite mrq_suite = {
	.name = "kefa_mrq",
	.test_cases = mrq_cases,
};

kunit_test_suite(mrq_suite);
