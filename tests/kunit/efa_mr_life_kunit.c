// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Closing of memory regions and removal of their device, in each state of a region, and
 * tasks that wait for regions.
 */
#include "crew.h"
#include "efa_scene.h"

#define REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)

/* The suite runs twice: regions of the domain, and of an endpoint. */
static bool by_ep;

/* The domain's queue pair, which invalidates regions that are closed. */
static struct efake_qp *mr_qp(struct efa_scene *scene)
{
	return efake_qp(scene->fake, efa_dom(scene)->mrq.hq.qpn);
}

/* The queue pair that registers the regions of this run. */
static struct efake_qp *post_qp(struct efa_scene *scene)
{
	return by_ep ? scene->qp : mr_qp(scene);
}

static struct efake_wr *outstanding(struct efa_scene *scene)
{
	return efake_sent(post_qp(scene), 0) ?: efake_sent(mr_qp(scene), 0);
}

static struct kefa_mr *kmr(struct fid_mr *mr)
{
	return container_of(mr, struct kefa_mr, mr_fid);
}

static int alloc(struct efa_scene *scene, struct fid_mr **mr)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 2, .access = REMOTE, .cq = scene->cq,
		.ep = by_ep ? scene->ep : NULL,
	};

	return fi_mr_alloc(scene->domain, &attr, mr, NULL);
}

static int post_reg(struct efa_scene *scene, struct fid_mr *mr, long ctx)
{
	const struct kvec iov = { scene->buf, PAGE_SIZE };
	const struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &iov, .iov_count = 1,
		.access = REMOTE, .context = (void *)ctx,
	};

	return fi_mr_post_reg(mr, &attr, FI_COMPLETION);
}

static int post_inval(struct fid_mr *mr, long ctx)
{
	return fi_mr_post_inval(mr, FI_COMPLETION, (void *)ctx);
}

static const struct state {
	const char		*desc;
	enum kefa_mr_state	state;
} states[] = {
	{ "idle", KEFA_MR_IDLE },
	{ "registering", KEFA_MR_REGISTERING },
	{ "valid", KEFA_MR_VALID },
	{ "invalidating", KEFA_MR_INVALIDATING },
};

KUNIT_ARRAY_PARAM_DESC(state, states, desc);

/* Create a region in a state, with its request posted to the device. */
static struct fid_mr *mr_in(struct kunit *test, struct efa_scene *scene,
			    enum kefa_mr_state state)
{
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, alloc(scene, &mr), 0);
	scene->fake->manual_mr = true;
	if (state != KEFA_MR_IDLE)
		KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1), 0);
	if (state != KEFA_MR_IDLE && state != KEFA_MR_REGISTERING) {
		efake_wr_done(efake_sent(post_qp(scene), 0), 0);
		efa_expect_done(test, scene, 1);
	}
	if (state == KEFA_MR_INVALIDATING)
		KUNIT_EXPECT_EQ(test, post_inval(mr, 2), 0);
	KUNIT_ASSERT_EQ(test, kmr(mr)->state, state);
	return mr;
}

static void close_it(struct kofi_thread *thread)
{
	struct fid_mr *mr = thread->arg;

	thread->ret = fi_close(&mr->fid);
}

/* Closing waits until the device has completed the request. */
static void close_in(struct kunit *test)
{
	const struct state *param = test->param_value;
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = mr_in(test, scene, param->state);
	unsigned int n = param->state == KEFA_MR_REGISTERING ? 2 :
				   param->state == KEFA_MR_VALID ||
				   param->state == KEFA_MR_INVALIDATING;
	struct kofi_thread thread;

	kofi_thread_start(test, &thread, close_it, mr);
	while (n--) {
		KUNIT_EXPECT_TRUE(test, kofi_soon(outstanding(scene)));
		KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 20));
		efake_wr_done(outstanding(scene), 0);
	}
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
	KUNIT_EXPECT_EQ(test, scene->fake->mrs, 1);
	/* The posted request is reported; the invalidation of the close isn't. */
	if (param->state == KEFA_MR_REGISTERING)
		efa_expect_done(test, scene, 1);
	if (param->state == KEFA_MR_INVALIDATING)
		efa_expect_done(test, scene, 2);
	efa_expect_nothing(test, scene);
}

static void remove_with(struct kunit *test, enum kefa_mr_state state,
			u32 refuse)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = mr_in(test, scene, state);

	scene->fake->pci = true;
	scene->fake->refuse = refuse;
	efake_remove(scene->fake);
	KUNIT_EXPECT_EQ(test, fi_mr_key(mr), FI_KEY_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, kmr(mr)->state, KEFA_MR_IDLE);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, 0);
	if (state == KEFA_MR_REGISTERING)
		efa_expect_error(test, scene, 1, ENODEV, 0);
	if (state == KEFA_MR_INVALIDATING)
		efa_expect_error(test, scene, 2, ENODEV, 0);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 3), -ENODEV);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 3), -ENODEV);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static void remove_in(struct kunit *test)
{
	const struct state *param = test->param_value;

	remove_with(test, param->state, 0);
}

/* The admin queue is dead. */
static void remove_refused_in(struct kunit *test)
{
	const struct state *param = test->param_value;

	remove_with(test, param->state, EFAKE_REFUSE_ALL);
}

/* At the domain's full depth. */
static void remove_many(struct kunit *test)
{
	static struct fid_mr *mr[EFAKE_MAX_MR];
	struct efa_scene *scene = efa_scene_new(test, NULL);
	int i;

	for (i = 0; i < EFAKE_MAX_MR; i++)
		KUNIT_ASSERT_EQ(test, alloc(scene, &mr[i]), 0);
	scene->fake->manual_mr = true;
	for (i = 0; i < EFAKE_MAX_MR; i++)
		KUNIT_EXPECT_EQ(test, post_reg(scene, mr[i], i), 0);
	/* Some requests were done, but not polled. */
	post_qp(scene)->armed = false;
	for (i = 0; i < 8; i++)
		efake_wr_done(efake_sent(post_qp(scene), 0), 0);
	efake_remove(scene->fake);
	for (i = 0; i < 8; i++)
		efa_expect_done(test, scene, i);
	for (; i < EFAKE_MAX_MR; i++)
		efa_expect_error(test, scene, i, ENODEV, 0);
	efa_expect_nothing(test, scene);
	for (i = 0; i < EFAKE_MAX_MR; i++)
		KUNIT_EXPECT_EQ(test, fi_close(&mr[i]->fid), 0);
}

/* --- tasks that wait --- */

struct waiter {
	struct kofi_thread	thread;
	struct efa_scene	*scene;
	struct fid_mr		*mr;
};

static void register_it(struct kofi_thread *thread)
{
	struct waiter *waiter = container_of(thread, struct waiter, thread);

	thread->ret = fi_mr_reg(waiter->scene->domain, waiter->scene->buf, 100,
				REMOTE, 0, 0, 0, &waiter->mr, NULL);
}

static void waiter_start(struct kunit *test, struct waiter *waiter,
			 struct efa_scene *scene)
{
	waiter->scene = scene;
	waiter->mr = NULL;
	kofi_thread_start(test, &waiter->thread, register_it, NULL);
}

static void reg_waits(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct waiter waiter;

	scene->fake->manual_mr = true;
	waiter_start(test, &waiter, scene);
	KUNIT_EXPECT_TRUE(test, kofi_soon(efake_sent(mr_qp(scene), 0)));
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&waiter.thread, 20));
	scene->fake->manual_mr = false;
	efake_wr_done(efake_sent(mr_qp(scene), 0), 0);
	kofi_thread_join(test, &waiter.thread);
	KUNIT_ASSERT_EQ(test, waiter.thread.ret, 0);
	KUNIT_EXPECT_EQ(test, fi_close(&waiter.mr->fid), 0);
}

static void reg_waits_at_removal(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct waiter waiter[3];
	int i;

	scene->fake->manual_mr = true;
	for (i = 0; i < 3; i++)
		waiter_start(test, &waiter[i], scene);
	KUNIT_EXPECT_TRUE(test, kofi_soon(efake_sent(mr_qp(scene), 2)));
	efake_remove(scene->fake);
	for (i = 0; i < 3; i++) {
		kofi_thread_join(test, &waiter[i].thread);
		KUNIT_EXPECT_EQ(test, waiter[i].thread.ret, -ENODEV);
	}
}

static void close_waits_at_removal(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = mr_in(test, scene, KEFA_MR_VALID);
	struct kofi_thread thread;

	kofi_thread_start(test, &thread, close_it, mr);
	KUNIT_EXPECT_TRUE(test, kofi_soon(efake_sent(mr_qp(scene), 0)));
	efake_remove(scene->fake);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
}

/* --- a full queue --- */

struct crowd {
	int			n;
	struct fid_mr		*mr[KEFA_MR_DEPTH];
	struct fid_mr		*more;
};

static struct crowd *crowd_make(struct kunit *test, struct efa_scene *scene)
{
	struct crowd *crowd = kunit_kzalloc(test, sizeof(*crowd), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, crowd);
	crowd->n = efa_dom(scene)->mrq.depth;
	scene->fake->dev->max_mr = crowd->n + 2;
	efa_dom(scene)->max_open = crowd->n + 2;
	scene->fake->max_mrs = crowd->n + 2;
	for (i = 0; i < crowd->n; i++)
		KUNIT_ASSERT_EQ(test, alloc(scene, &crowd->mr[i]), 0);
	KUNIT_ASSERT_EQ(test, alloc(scene, &crowd->more), 0);
	scene->fake->manual_mr = true;
	for (i = 0; i < crowd->n; i++)
		KUNIT_EXPECT_EQ(test, post_reg(scene, crowd->mr[i], 1), 0);
	return crowd;
}

static void crowd_close(struct kunit *test, struct efa_scene *scene,
			struct crowd *crowd)
{
	int i;

	scene->fake->manual_mr = false;
	while (efake_sent(mr_qp(scene), 0))
		efake_wr_done(efake_sent(mr_qp(scene), 0), 0);
	for (i = 0; i < crowd->n; i++)
		KUNIT_EXPECT_EQ(test, fi_close(&crowd->mr[i]->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&crowd->more->fid), 0);
}

static void full_then_again(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.size = 1024,
	});
	struct crowd *crowd = crowd_make(test, scene);

	KUNIT_EXPECT_EQ(test, post_reg(scene, crowd->more, 2), -EAGAIN);
	KUNIT_EXPECT_EQ(test, kmr(crowd->more)->nsegs, 0);
	KUNIT_EXPECT_EQ(test, efa_dom(scene)->mrq.stats.again, 1);
	efake_wr_done(efake_sent(mr_qp(scene), 50), 0);
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, post_reg(scene, crowd->more, 2), 0);
	KUNIT_EXPECT_EQ(test, post_inval(crowd->mr[50], 3), -EAGAIN);
	crowd_close(test, scene, crowd);
}

/* fi_mr_reg() and fi_close() wait for room. */
static void full_then_room(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.size = 1024,
	});
	struct crowd *crowd = crowd_make(test, scene);
	struct waiter waiter;

	waiter_start(test, &waiter, scene);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&efa_dom(scene)->mrq.room)));
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&waiter.thread, 20));
	scene->fake->manual_mr = false;
	efake_wr_done(efake_sent(mr_qp(scene), 7), 0);
	kofi_thread_join(test, &waiter.thread);
	KUNIT_EXPECT_EQ(test, waiter.thread.ret, 0);
	if (waiter.mr)
		KUNIT_EXPECT_EQ(test, fi_close(&waiter.mr->fid), 0);
	crowd_close(test, scene, crowd);
}

static void full_then_removal(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.size = 1024,
	});
	struct crowd *crowd = crowd_make(test, scene);
	struct waiter waiter;
	int i;

	waiter_start(test, &waiter, scene);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&efa_dom(scene)->mrq.room)));
	efake_remove(scene->fake);
	kofi_thread_join(test, &waiter.thread);
	KUNIT_EXPECT_EQ(test, waiter.thread.ret, -ENODEV);
	KUNIT_EXPECT_EQ(test, efa_drain(scene), crowd->n);
	for (i = 0; i < crowd->n; i++)
		KUNIT_EXPECT_EQ(test, fi_close(&crowd->mr[i]->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&crowd->more->fid), 0);
}

/* --- a silent device --- */

static void look(struct efa_scene *scene, int times)
{
	struct work_struct *watch = &efa_dom(scene)->mrq.watch.work;

	while (times--)
		watch->func(watch);
	efake_settle_all();
}

/* The device accepts requests but doesn't complete them, so it is given up. */
static void silence(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = mr_in(test, scene, KEFA_MR_REGISTERING), *more;
	struct waiter waiter;

	waiter_start(test, &waiter, scene);
	KUNIT_EXPECT_TRUE(test, kofi_soon(efake_sent(mr_qp(scene), !by_ep)));
	look(scene, KEFA_MR_LOOKS - 1);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&waiter.thread, 20));
	efa_expect_nothing(test, scene);
	look(scene, 1);
	kofi_thread_join(test, &waiter.thread);
	KUNIT_EXPECT_EQ(test, waiter.thread.ret, -ENODEV);
	efa_expect_error(test, scene, 1, ENODEV, 0);
	KUNIT_EXPECT_EQ(test, alloc(scene, &more), -ENODEV);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	/* The requests completed. */
	KUNIT_EXPECT_TRUE(test, scene->fake->master);
	KUNIT_EXPECT_TRUE(test, list_empty(&scene->fake->qps));
}

/* A slow device isn't silent, and neither is an idle one. */
static void slowness(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = mr_in(test, scene, KEFA_MR_REGISTERING);
	struct fid_mr *other;

	KUNIT_ASSERT_EQ(test, alloc(scene, &other), 0);
	KUNIT_EXPECT_EQ(test, post_reg(scene, other, 2), 0);
	look(scene, KEFA_MR_LOOKS - 1);
	efake_wr_done(outstanding(scene), 0);
	efa_expect_done(test, scene, 1);
	look(scene, KEFA_MR_LOOKS);
	efake_wr_done(outstanding(scene), 0);
	efa_expect_done(test, scene, 2);
	look(scene, 3 * KEFA_MR_LOOKS);
	scene->fake->manual_mr = false;
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&other->fid), 0);
	efa_expect_nothing(test, scene);
}

/* A post that fails doesn't show that the device is alive. */
static void silence_for_more(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = mr_in(test, scene, KEFA_MR_REGISTERING), *other;
	int i;

	KUNIT_ASSERT_EQ(test, alloc(scene, &other), 0);
	for (i = 0; i < KEFA_MR_LOOKS; i++) {
		efake_fail(scene->fake, EFAKE_POST_SEND, 1, -EIO);
		KUNIT_EXPECT_EQ(test, post_reg(scene, other, 2), by_ep ? 0 : -EIO);
		if (by_ep)
			efa_expect_error(test, scene, 2, EIO, 0);
		look(scene, 1);
	}
	efa_expect_error(test, scene, 1, ENODEV, 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&other->fid), 0);
}

/* The device has completed the request, but no task has polled: an event was lost or late. */
static void unheard(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct fid_mr *mr = mr_in(test, scene, KEFA_MR_REGISTERING);

	look(scene, KEFA_MR_LOOKS - 1);
	post_qp(scene)->armed = false;
	efake_wr_done(outstanding(scene), 0);
	if (!by_ep) {
		efake_settle();
		KUNIT_EXPECT_EQ(test, kmr(mr)->state, KEFA_MR_REGISTERING);
	}
	look(scene, 1);
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, kmr(mr)->state, KEFA_MR_VALID);
	scene->fake->manual_mr = false;
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static struct kunit_case mr_life_cases[] = {
	KUNIT_CASE_PARAM(close_in, state_gen_params),
	KUNIT_CASE_PARAM(remove_in, state_gen_params),
	KUNIT_CASE_PARAM(remove_refused_in, state_gen_params),
	KUNIT_CASE(remove_many),
	KUNIT_CASE(reg_waits),
	KUNIT_CASE(reg_waits_at_removal),
	KUNIT_CASE(close_waits_at_removal),
	KUNIT_CASE(full_then_again),
	KUNIT_CASE(full_then_room),
	KUNIT_CASE(full_then_removal),
	KUNIT_CASE(silence),
	KUNIT_CASE(slowness),
	KUNIT_CASE(silence_for_more),
	KUNIT_CASE(unheard),
	{}
};

static struct kunit_suite mr_life_suite = {
	.name = "kefa_mr_life",
	.test_cases = mr_life_cases,
};

static int by_ep_init(struct kunit_suite *suite)
{
	by_ep = true;
	return 0;
}

static void by_ep_exit(struct kunit_suite *suite)
{
	by_ep = false;
}

/* A region of an endpoint doesn't wait for room in the domain's queue pair. */
static struct kunit_case mr_life_ep_cases[] = {
	KUNIT_CASE_PARAM(close_in, state_gen_params),
	KUNIT_CASE_PARAM(remove_in, state_gen_params),
	KUNIT_CASE_PARAM(remove_refused_in, state_gen_params),
	KUNIT_CASE(remove_many),
	KUNIT_CASE(close_waits_at_removal),
	KUNIT_CASE(silence),
	KUNIT_CASE(slowness),
	KUNIT_CASE(silence_for_more),
	KUNIT_CASE(unheard),
	{}
};

static struct kunit_suite mr_life_ep_suite = {
	.name = "kefa_mr_life_ep",
	.suite_init = by_ep_init,
	.suite_exit = by_ep_exit,
	.test_cases = mr_life_ep_cases,
};

kunit_test_suites(&mr_life_suite, &mr_life_ep_suite);
