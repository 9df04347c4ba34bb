// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who takes completions from the device: readers that find nothing, those that sleep,
 * the worker. Whoever it is, none is left lying, and nobody is interrupted for nothing.
 */
#include <linux/preempt.h>
#include "crew.h"
#include "efa_scene.h"

static void done(struct efa_scene *scene)
{
	efake_wr_done(efake_sent(scene->qp, 0), 0);
}

static u32 written(struct efa_scene *scene)
{
	return READ_ONCE(efa_cq(scene)->tail) - READ_ONCE(efa_cq(scene)->head);
}

/* Before the worker has had the CPU. */
static void poll_reader(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_cq_data_entry entry;
	unsigned int events;
	ssize_t sent, ret = 0;
	int i;

	efake_settle();
	preempt_disable();
	events = scene->qp->events;
	for (i = 0; i < 100; i++) {
		sent = efa_send(scene, 64, i);
		if (sent)
			break;
		done(scene);
		ret += fi_cq_read(scene->cq, &entry, 1);
	}
	events = scene->qp->events - events;
	preempt_enable();
	KUNIT_EXPECT_EQ(test, sent, 0);
	KUNIT_EXPECT_EQ(test, ret, 100);
	KUNIT_EXPECT_EQ(test, events, 1);
}

/* More than a read looks at: their worker tells of them all. */
static void poll_many_endpoints(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct fi_cq_data_entry entry;
	struct fid_ep *ep[20];
	unsigned int i, n = 0;
	struct efake_qp *qp;
	int ret = 0;

	for (i = 0; i < ARRAY_SIZE(ep); i++) {
		ep[i] = efa_scene_ep(test, scene, 0);
		KUNIT_ASSERT_EQ(test, fi_enable(ep[i]), 0);
	}
	efake_settle();
	for (i = 0; i < ARRAY_SIZE(ep); i++) {
		qp = efake_qp(scene->fake, container_of(ep[i], struct kefa_ep,
							ep_fid)->hq.qpn);
		ret |= fi_recv(ep[i], scene->buf, 64, NULL, FI_ADDR_UNSPEC, NULL);
		preempt_disable();
		efake_wr_done(efake_recv(qp, 0), 0);
		n += fi_cq_read(scene->cq, &entry, 1) == 1;
		preempt_enable();
		ret |= fi_cq_sread(scene->cq, &entry, 1, NULL, KOFI_NEVER_MS) != 1;
	}
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, n, 0U);
	for (i = 0; i < ARRAY_SIZE(ep); i++)
		KUNIT_EXPECT_EQ(test, fi_close(&ep[i]->fid), 0);
}

/* Readers went away: what completes is taken for whoever comes. */
static void poll_ends(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	int i;

	for (i = 0; i < 3; i++) {
		efa_expect_nothing(test, scene);
		efake_settle();
		KUNIT_EXPECT_TRUE(test, scene->qp->armed);
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
		done(scene);
		efake_settle();
		KUNIT_EXPECT_EQ(test, written(scene), 1U);
		efa_expect_done(test, scene, 1);
	}
}

static void sleep_for_one(struct kofi_thread *thread)
{
	struct fid_cq *cq = thread->arg;
	struct fi_cq_data_entry entry;

	thread->ret = fi_cq_sread(cq, &entry, 1, NULL, KOFI_NEVER_MS);
}

/* The event wakes it, and nobody else has to run. */
static void poll_sleeper(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct kefa_ep *ep = efa_ep(scene);
	struct kofi_thread thread;
	bool queued;

	/* Readers that poll have turned events off. */
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	kofi_thread_start(test, &thread, sleep_for_one, scene->cq);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&efa_cq(scene)->notifier.wait)));
	efake_settle();
	preempt_disable();
	done(scene);
	queued = work_pending(&ep->work);
	preempt_enable();
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 1);
	KUNIT_EXPECT_FALSE(test, queued);
}

/* A sleeper that gave up takes nothing any more. */
static void poll_sleeper_gone(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct fi_cq_data_entry entry;

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(scene->cq, &entry, 1, NULL, 20), -EAGAIN);
	done(scene);
	efake_settle();
	KUNIT_EXPECT_EQ(test, written(scene), 1U);
}

/* What arming finds is taken by whoever arms: no event tells of it. */
static void poll_missed(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct fi_cq_data_entry entry;

	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	scene->fake->late = 1;
	KUNIT_EXPECT_EQ(test, fi_cq_sread(scene->cq, &entry, 1, NULL, 1000), 1);

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	scene->fake->late = 1;
	efake_qp_event(scene->qp);
	efake_settle();
	KUNIT_EXPECT_EQ(test, written(scene), 1U);
	KUNIT_EXPECT_EQ(test, scene->fake->late, 0U);
}

static void read_on(struct kofi_thread *thread)
{
	struct fid_cq *cq = thread->arg;
	struct fi_cq_data_entry entry;

	while (!signal_pending(current)) {
		fi_cq_read(cq, &entry, 1);
		cond_resched();
	}
}

/* Endpoints come and go, with work outstanding, under a reader's eyes. */
static void poll_while_closing(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_ep *ep;
	struct kofi_thread thread;
	unsigned long start = jiffies, round;

	kofi_thread_start(test, &thread, read_on, scene->cq);
	for (round = 0; kofi_hunting(start, 200, round); round++) {
		ep = efa_scene_ep(test, scene, 0);
		KUNIT_ASSERT_EQ(test, fi_enable(ep), 0);
		KUNIT_EXPECT_EQ(test, fi_recv(ep, scene->buf, 64, NULL,
					      FI_ADDR_UNSPEC, NULL), 0);
		KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	}
	kofi_thread_kill(&thread);
	kofi_thread_join(test, &thread);
}

static void poll_while_removed(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kofi_thread thread;

	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), 0);
	kofi_thread_start(test, &thread, read_on, scene->cq);
	efake_remove(scene->fake);
	kofi_thread_kill(&thread);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), -ENODEV);
}

static struct kunit_case poll_cases[] = {
	KUNIT_CASE(poll_reader),
	KUNIT_CASE(poll_many_endpoints),
	KUNIT_CASE(poll_ends),
	KUNIT_CASE(poll_sleeper),
	KUNIT_CASE(poll_sleeper_gone),
	KUNIT_CASE(poll_missed),
	KUNIT_CASE(poll_while_closing),
	KUNIT_CASE(poll_while_removed),
	{}
};

static struct kunit_suite poll_suite = {
	.name = "kefa_poll",
	.test_cases = poll_cases,
};

kunit_test_suite(poll_suite);
