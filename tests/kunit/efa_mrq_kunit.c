// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The domain's queue pair for registrations: its worker calls handlers itself, tasks that wait for
 * registrations don't wait for handlers, and a queue that is being closed waits for its own.
 * Polling readers get completions without events.
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
 * @soft: number of calls in softirqs
 * @flags: flags of the queue
 * @blocks: the handler waits for @leave
 * @entered: completed when the handler is called
 * @leave: lets the handler go on
 */
struct told {
	struct fid_cq		*cq;
	struct fid_mr		*mr;
	atomic_t		n;
	struct work_struct	*ran;
	atomic_t		soft;
	u64			flags;
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
	atomic_add(!!in_serving_softirq(), &told->soft);
	while (fi_cq_read(cq, &entry, 1) == 1)
		atomic_inc(&told->n);
	complete(&told->entered);
	if (told->blocks)
		wait_for_completion(&told->leave);
}

static void told_open(struct kunit *test, struct efa_scene *scene, struct told *told)
{
	struct fi_cq_attr cq_attr = {
		.flags = told->flags, .wait_obj = FI_WAIT_UNSPEC,
		.handler = told_handler, .handler_context = told,
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

/*
 * The worker that polls calls the handler, without another one, and doesn't poll again when nothing
 * is outstanding.
 */
static void mrq_calls(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct told told = { };
	unsigned int polls;

	told_open(test, scene, &told);
	efake_settle();
	polls = mrq_qp(scene)->polls;
	KUNIT_EXPECT_EQ(test, mrq_post(scene, told.mr, FI_COMPLETION), 0);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&told.entered));
	KUNIT_EXPECT_PTR_EQ(test, told.ran, &mrq_of(scene)->work);
	efake_settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&told.n), 1);
	KUNIT_EXPECT_TRUE(test, mrq_qp(scene)->armed);
	KUNIT_EXPECT_EQ(test, mrq_qp(scene)->polls, polls + 1);
	told_close(test, &told);
}

/* A completion that matches no request is taken, although nothing is outstanding. */
static void mrq_stale(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	const struct kefa_wc wc = { .id = 77 };
	struct told told = { };
	unsigned int polls;

	told_open(test, scene, &told);
	efake_settle();
	KUNIT_EXPECT_TRUE(test, mrq_qp(scene)->armed);
	efake_qp_push(mrq_qp(scene), &wc);
	efake_settle();
	KUNIT_EXPECT_EQ(test, mrq_of(scene)->stats.stale, 1ULL);
	/* The worker polls again as often as arming tells of completions. */
	scene->fake->missed = 2;
	polls = mrq_qp(scene)->polls;
	efake_qp_push(mrq_qp(scene), &wc);
	efake_settle();
	KUNIT_EXPECT_EQ(test, mrq_of(scene)->stats.stale, 2ULL);
	KUNIT_EXPECT_EQ(test, scene->fake->missed, 0U);
	KUNIT_EXPECT_EQ(test, mrq_qp(scene)->polls, polls + 3);
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

/* --- readers that poll --- */

static struct fid_mr *mrq_alloc(struct kunit *test, struct efa_scene *scene)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 4, .access = REMOTE, .cq = scene->cq,
	};
	struct fid_mr *mr = NULL;

	KUNIT_ASSERT_EQ(test, fi_mr_alloc(scene->domain, &attr, &mr, NULL), 0);
	return mr;
}

static unsigned int mrq_events(struct efa_scene *scene)
{
	return READ_ONCE(mrq_qp(scene)->events);
}

static void mrq_polled(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = mrq_alloc(test, scene);
	struct efa_comp comp;
	int i;

	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, mrq_post(scene, mr, FI_COMPLETION), 0);
		KUNIT_EXPECT_FALSE(test, work_pending(&mrq_of(scene)->work));
		comp = efa_read(scene);
		KUNIT_EXPECT_EQ(test, comp.ret, 1);
		KUNIT_EXPECT_EQ(test, comp.entry.len, PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, fi_mr_post_inval(mr, FI_COMPLETION, (void *)7L), 0);
		comp = efa_read(scene);
		KUNIT_EXPECT_EQ(test, comp.ret, 1);
		KUNIT_EXPECT_PTR_EQ(test, comp.entry.op_context, (void *)7L);
		efa_expect_nothing(test, scene);
	}
	KUNIT_EXPECT_EQ(test, mrq_events(scene), 0U);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, efa_cq(scene)->nshared, 0U);
	KUNIT_EXPECT_EQ(test, mrq_of(scene)->awaited, 0U);
}

/**
 * struct soft_reader - a reader in softirq context
 * @tasklet: reads
 * @scene: whose queue it reads
 * @comp: what it read
 */
struct soft_reader {
	struct tasklet_struct	tasklet;
	struct efa_scene	*scene;
	struct efa_comp		comp;
};

static void mrq_read_softly(struct tasklet_struct *tasklet)
{
	struct soft_reader *reader = container_of(tasklet, struct soft_reader, tasklet);

	reader->comp = efa_read(reader->scene);
}

/* The same by a reader in softirq context, which doesn't poll endpoints. */
static void mrq_polled_softly(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct soft_reader reader = { .scene = scene };
	struct fid_mr *mr = mrq_alloc(test, scene);

	kofi_in_softirq(&reader.tasklet, mrq_read_softly);
	KUNIT_EXPECT_EQ(test, reader.comp.ret, -EAGAIN);
	KUNIT_EXPECT_EQ(test, mrq_post(scene, mr, FI_COMPLETION), 0);
	kofi_in_softirq(&reader.tasklet, mrq_read_softly);
	KUNIT_EXPECT_EQ(test, reader.comp.ret, 1);
	KUNIT_EXPECT_EQ(test, reader.comp.entry.len, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, mrq_events(scene), 0U);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* A post is refused because of requests that the reader of another queue doesn't poll for. */
static void mrq_refused(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_mrq *mrq = mrq_of(scene);
	struct fid_mr *mr = mrq_alloc(test, scene);
	struct fi_mr_alloc_attr attr = { .max_pages = 4, .access = REMOTE };
	struct fi_cq_attr cq_attr = { };
	struct fid_mr *refused;
	struct fid_cq *cq;
	u32 nbusy;

	KUNIT_ASSERT_EQ(test, fi_cq_open(scene->domain, &cq_attr, &cq, NULL), 0);
	attr.cq = cq;
	KUNIT_ASSERT_EQ(test, fi_mr_alloc(scene->domain, &attr, &refused, NULL), 0);
	scene->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, mrq_post(scene, mr, FI_COMPLETION), 0);
	spin_lock_bh(&mrq->lock);
	nbusy = mrq->nbusy;
	mrq->nbusy = mrq->depth;
	spin_unlock_bh(&mrq->lock);
	KUNIT_EXPECT_EQ(test, mrq_post(scene, refused, FI_COMPLETION), -EAGAIN);
	KUNIT_EXPECT_EQ(test, mrq->awaited, 1U);
	spin_lock_bh(&mrq->lock);
	mrq->nbusy = nbusy;
	spin_unlock_bh(&mrq->lock);
	efake_wr_done(efake_sent(mrq_qp(scene), 0), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(container_of(cq, struct kofi_cq,
								 cq_fid)->room)));
	KUNIT_EXPECT_EQ(test, mrq->awaited, 0U);
	KUNIT_EXPECT_EQ(test, efa_read(scene).ret, 1);
	/* Refused again, and the region is closed before there is room. */
	KUNIT_EXPECT_EQ(test, fi_mr_post_inval(mr, FI_COMPLETION, (void *)7L), 0);
	spin_lock_bh(&mrq->lock);
	nbusy = mrq->nbusy;
	mrq->nbusy = mrq->depth;
	spin_unlock_bh(&mrq->lock);
	KUNIT_EXPECT_EQ(test, mrq_post(scene, refused, FI_COMPLETION), -EAGAIN);
	spin_lock_bh(&mrq->lock);
	mrq->nbusy = nbusy;
	spin_unlock_bh(&mrq->lock);
	KUNIT_EXPECT_EQ(test, fi_close(&refused->fid), 0);
	KUNIT_EXPECT_EQ(test, mrq->awaited, 0U);
	KUNIT_EXPECT_EQ(test, fi_close(&cq->fid), 0);
	scene->fake->manual_mr = false;
	efake_wr_done(efake_sent(mrq_qp(scene), 0), 0);
	efa_expect_done(test, scene, 7);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* Readers of a queue with many endpoints don't poll these, but they poll for registrations. */
static void mrq_polled_for_many(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = mrq_alloc(test, scene);
	struct fid_ep *eps[5];
	struct efa_comp comp;
	int i;

	for (i = 0; i < ARRAY_SIZE(eps); i++) {
		KUNIT_ASSERT_EQ(test, fi_endpoint(scene->domain, scene->info, &eps[i], NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_ep_bind(eps[i], &scene->av->fid, 0), 0);
		KUNIT_ASSERT_EQ(test, fi_ep_bind(eps[i], &scene->cq->fid,
						 FI_TRANSMIT | FI_RECV), 0);
		KUNIT_ASSERT_EQ(test, fi_enable(eps[i]), 0);
	}
	KUNIT_EXPECT_EQ(test, mrq_post(scene, mr, FI_COMPLETION), 0);
	comp = efa_read(scene);
	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_EQ(test, mrq_events(scene), 0U);
	while (i--)
		EFA_CLOSE(test, eps[i]);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* A failed invalidation is noticed by a read, and completes when the region has been destroyed. */
static void mrq_polled_revoked(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = mrq_alloc(test, scene);
	struct efa_comp comp;

	KUNIT_EXPECT_EQ(test, mrq_post(scene, mr, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, efa_read(scene).ret, 1);
	scene->fake->status = 2;
	KUNIT_EXPECT_EQ(test, fi_mr_post_inval(mr, FI_COMPLETION, (void *)7L), 0);
	scene->fake->status = 0;
	comp = efa_read(scene);
	/* On a busy machine the region may have been destroyed by now. */
	if (comp.ret == -EAGAIN) {
		efake_settle_all();
		comp = efa_read(scene);
	}
	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_PTR_EQ(test, comp.entry.op_context, (void *)7L);
	KUNIT_EXPECT_EQ(test, mrq_of(scene)->stats.revoked, 1);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* One who waits without polling gets events, whoever polls beside. */
static void mrq_polled_and_told(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = mrq_alloc(test, scene);
	struct told told = { };

	scene->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, mrq_post(scene, mr, FI_COMPLETION), 0);
	told_open(test, scene, &told);
	KUNIT_EXPECT_EQ(test, mrq_post(scene, told.mr, FI_COMPLETION), 0);
	efake_wr_done(efake_sent(mrq_qp(scene), 1), 0);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&told.entered));
	KUNIT_EXPECT_EQ(test, fi_mr_post_inval(told.mr, FI_COMPLETION, NULL), 0);
	efake_wr_done(efake_sent(mrq_qp(scene), 0), 0);
	efake_wr_done(efake_sent(mrq_qp(scene), 0), 0);
	/* The worker may be faster than this reader; either notifies the handler. */
	efa_read(scene);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&told.n) == 2));
	scene->fake->manual_mr = false;
	told_close(test, &told);
	KUNIT_EXPECT_EQ(test, mrq_of(scene)->awaited, 0U);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* A reader finds completions of a queue with a handler, whose worker is delayed. */
static void mrq_reader_tells(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = mrq_alloc(test, scene);
	struct told told = { };

	told_open(test, scene, &told);
	scene->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, mrq_post(scene, told.mr, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, mrq_post(scene, mr, FI_COMPLETION), 0);
	/* As if the event hadn't come yet. */
	mrq_qp(scene)->armed = false;
	efake_wr_done(efake_sent(mrq_qp(scene), 0), 0);
	efake_wr_done(efake_sent(mrq_qp(scene), 0), 0);
	KUNIT_EXPECT_EQ(test, efa_read(scene).ret, 1);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&told.entered));
	KUNIT_EXPECT_EQ(test, atomic_read(&told.n), 1);
	scene->fake->manual_mr = false;
	told_close(test, &told);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* A sleeping reader, and a request that is reported to nobody. */
static void mrq_sleeper(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct fid_mr *mr = mrq_alloc(test, scene);
	struct fi_cq_data_entry entry;

	KUNIT_EXPECT_EQ(test, mrq_of(scene)->awaited, 1U);
	KUNIT_EXPECT_EQ(test, mrq_post(scene, mr, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(scene->cq, &entry, 1, NULL, KOFI_NEVER_MS), 1);
	scene->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, fi_mr_post_inval(mr, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, mrq_of(scene)->awaited, 2U);
	efake_wr_done(efake_sent(mrq_qp(scene), 0), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(mrq_of(scene)->awaited) == 1));
	scene->fake->manual_mr = false;
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static void mrq_read_on(struct kofi_thread *thread)
{
	struct fi_cq_data_entry entry;

	while (!signal_pending(current)) {
		fi_cq_read(thread->arg, &entry, 1);
		cond_resched();
	}
}

/* Regions come and go, and then the device, while a task reads their queue. */
static void mrq_read_while_closing(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	const unsigned long start = jiffies;
	struct kofi_thread thread;
	struct fid_mr *mr;
	unsigned int i;

	kofi_thread_start(test, &thread, mrq_read_on, scene->cq);
	for (i = 0; kofi_hunting(start, 200, i); i++) {
		mr = mrq_alloc(test, scene);
		KUNIT_EXPECT_EQ(test, mrq_post(scene, mr, i % 2 ? FI_COMPLETION : 0), 0);
		KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	}
	mr = mrq_alloc(test, scene);
	scene->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, mrq_post(scene, mr, FI_COMPLETION), 0);
	efake_remove(scene->fake);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	kofi_thread_kill(&thread);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, mrq_of(scene)->awaited, 0U);
}

/* --- softirqs --- */

static int mrq_round(struct efa_scene *scene, struct told *told)
{
	int n = atomic_read(&told->n), ret;

	ret = mrq_post(scene, told->mr, FI_COMPLETION);
	if (ret || !kofi_soon(atomic_read(&told->n) == n + 1))
		return ret ?: -ETIMEDOUT;
	ret = fi_mr_post_inval(told->mr, FI_COMPLETION, NULL);
	if (ret || !kofi_soon(atomic_read(&told->n) == n + 2))
		return ret ?: -ETIMEDOUT;
	return 0;
}

/* Softirqs call handlers as long as none of the domain's may sleep. */
static void mrq_softirq(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct told *soft = kunit_kcalloc(test, 2, sizeof(*soft), GFP_KERNEL);
	struct told *sleeps = soft + 1;
	int n, i;

	KUNIT_ASSERT_NOT_NULL(test, soft);
	soft->flags = FI_CQ_SOFTIRQ;
	told_open(test, scene, soft);
	KUNIT_EXPECT_EQ(test, mrq_round(scene, soft), 0);
	n = atomic_read(&soft->soft);
	KUNIT_EXPECT_GE(test, n, 2);
	told_open(test, scene, sleeps);
	for (i = 0; i < 20; i++) {
		KUNIT_EXPECT_EQ(test, mrq_round(scene, sleeps), 0);
		KUNIT_EXPECT_EQ(test, mrq_round(scene, soft), 0);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&sleeps->soft), 0);
	told_close(test, sleeps);
	/* The worker may still be queued. */
	efake_settle();
	n = atomic_read(&soft->soft);
	KUNIT_EXPECT_EQ(test, mrq_round(scene, soft), 0);
	KUNIT_EXPECT_GE(test, atomic_read(&soft->soft), n + 2);
	told_close(test, soft);
	KUNIT_EXPECT_EQ(test, mrq_of(scene)->nsoft, 0U);
	KUNIT_EXPECT_EQ(test, mrq_of(scene)->nsleepy, 0U);
}

/* A handler that sleeps doesn't delay one for softirqs whose completion came with its own. */
static void mrq_softirq_beside_sleep(struct kunit *test)
{
	struct told *told = kunit_kcalloc(test, 2, sizeof(*told), GFP_KERNEL);
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_mrq *mrq = mrq_of(scene);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, told);
	told[0].blocks = true;
	told[1].flags = FI_CQ_SOFTIRQ;
	scene->fake->manual_mr = true;
	for (i = 0; i < 2; i++) {
		told_open(test, scene, &told[i]);
		KUNIT_EXPECT_EQ(test, mrq_post(scene, told[i].mr, FI_COMPLETION), 0);
	}
	/* The worker polls for both at once. */
	spin_lock_bh(&mrq->lock);
	for (i = 0; i < 2; i++)
		efake_wr_done(efake_sent(mrq_qp(scene), 0), 0);
	spin_unlock_bh(&mrq->lock);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&told[0].entered));
	KUNIT_EXPECT_TRUE(test, kofi_completed(&told[1].entered));
	KUNIT_EXPECT_EQ(test, atomic_read(&told[1].n), 1);
	complete_all(&told[0].leave);
	scene->fake->manual_mr = false;
	for (i = 0; i < 2; i++)
		told_close(test, &told[i]);
}

/* The softirq and the worker serve the same queue pair while queues come and go. */
static void mrq_softirq_turns(struct kunit *test)
{
	struct told *told = kunit_kcalloc(test, 2, sizeof(*told), GFP_KERNEL);
	struct efa_scene *scene = efa_scene_new(test, NULL);
	const unsigned long start = jiffies;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, told);
	told[0].flags = FI_CQ_SOFTIRQ;
	told_open(test, scene, &told[0]);
	for (i = 0; kofi_hunting(start, 200, i); i++) {
		KUNIT_EXPECT_EQ(test, mrq_post(scene, told[0].mr, FI_COMPLETION), 0);
		memset(&told[1], 0, sizeof(told[1]));
		told_open(test, scene, &told[1]);
		KUNIT_EXPECT_EQ(test, mrq_round(scene, &told[1]), 0);
		KUNIT_EXPECT_EQ(test, fi_mr_post_inval(told[0].mr, FI_COMPLETION, NULL), 0);
		told_close(test, &told[1]);
		KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&told[0].n) == 2 * (i + 1)));
	}
	told_close(test, &told[0]);
}

static struct kunit_case mrq_cases[] = {
	KUNIT_CASE(mrq_calls),
	KUNIT_CASE(mrq_stale),
	KUNIT_CASE(mrq_calls_each),
	KUNIT_CASE(mrq_handler_waits),
	KUNIT_CASE(mrq_closes),
	KUNIT_CASE(mrq_polled),
	KUNIT_CASE(mrq_polled_softly),
	KUNIT_CASE(mrq_refused),
	KUNIT_CASE(mrq_polled_for_many),
	KUNIT_CASE(mrq_polled_revoked),
	KUNIT_CASE(mrq_polled_and_told),
	KUNIT_CASE(mrq_reader_tells),
	KUNIT_CASE(mrq_sleeper),
	KUNIT_CASE(mrq_read_while_closing),
	KUNIT_CASE(mrq_softirq),
	KUNIT_CASE(mrq_softirq_beside_sleep),
	KUNIT_CASE(mrq_softirq_turns),
	{}
};

static struct kunit_suite mrq_suite = {
	.name = "kefa_mrq",
	.test_cases = mrq_cases,
};

kunit_test_suite(mrq_suite);
