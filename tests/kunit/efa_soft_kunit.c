// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Handlers in softirqs: an endpoint whose handlers all allow it has no worker in process context,
 * if it is one of efa-direct. Others call these handlers in their worker, with softirqs off.
 */
#include <linux/cpumask.h>
#include <linux/preempt.h>
#include <linux/workqueue.h>
#include "crew.h"
#include "efa_rdm_scene.h"
#include "efa_scene.h"

static struct kofi_contexts where;
static atomic_t got;

static void soft_handler(struct fid_cq *cq, void *context)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = { };
	ssize_t n;

	kofi_context_note(&where);
	do {
		n = fi_cq_read(cq, &entry, 1);
		if (n == -FI_EAVAIL)
			n = fi_cq_readerr(cq, &error, 0);
		if (n == 1)
			atomic_inc(&got);
	} while (n == 1);
}

/* Complete the oldest send. */
static void soft_done(struct efake_qp *qp)
{
	efake_wr_done(efake_sent(qp, 0), 0);
}

/* Before the handler is called. */
static void soft_reset(void)
{
	where = (struct kofi_contexts) { };
	atomic_set(&got, 0);
}

/* Return: the number of calls of the handler that weren't in softirqs. */
static int soft_elsewhere(void)
{
	return atomic_read(&where.off) + atomic_read(&where.on);
}

/* Events are enabled, and nothing has been counted. */
static void soft_begin(struct kunit *test, struct efa_scene *scene)
{
	KUNIT_EXPECT_TRUE(test, kofi_soon(scene->qp->armed));
	soft_reset();
}

static struct efa_scene *soft_scene(struct kunit *test, size_t tx_size)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq = { .handler = soft_handler, .flags = FI_CQ_SOFTIRQ },
		.tx_size = tx_size,
	});

	KUNIT_ASSERT_TRUE(test, efa_ep(scene)->softirq);
	soft_begin(test, scene);
	return scene;
}

static void soft_called(struct kunit *test)
{
	struct efa_scene *scene = soft_scene(test, 0);
	int i;

	for (i = 1; i <= 20; i++) {
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i), 0);
		soft_done(scene->qp);
		KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == i));
	}
	KUNIT_EXPECT_GE(test, atomic_read(&where.softirq), 1);
	KUNIT_EXPECT_EQ(test, soft_elsewhere(), 0);
}

/* A handler posts, and its posts share a doorbell. */
static struct efa_scene *soft_echo;

static void soft_echo_handler(struct fid_cq *cq, void *context)
{
	struct fi_cq_data_entry entry;

	while (fi_cq_read(cq, &entry, 1) == 1) {
		if (atomic_inc_return(&got) != 1)
			continue;
		KUNIT_EXPECT_EQ(soft_echo->fake->test, efa_send(soft_echo, 64, 2), 0);
		KUNIT_EXPECT_EQ(soft_echo->fake->test, efa_send(soft_echo, 64, 3), 0);
		KUNIT_EXPECT_EQ(soft_echo->fake->test, efa_ep(soft_echo)->nheld, 2U);
	}
}

static void soft_posts(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq = { .handler = soft_echo_handler, .flags = FI_CQ_SOFTIRQ },
	});
	unsigned int doorbells;

	soft_echo = scene;
	atomic_set(&got, 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(scene->qp->armed));
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	doorbells = scene->qp->doorbells;
	soft_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(efake_sent(scene->qp, 1)));
	KUNIT_EXPECT_EQ(test, scene->qp->doorbells, doorbells + 1);
	soft_done(scene->qp);
	soft_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 3));
	KUNIT_EXPECT_TRUE(test, kofi_soon(!READ_ONCE(efa_ep(scene)->worker)));
}

/* A task posts with FI_MORE: the softirq doesn't post what is held, but a worker does later. */
static struct efa_scene *soft_more;

static ssize_t soft_post(long ctx, u64 flags)
{
	struct kvec iov = { soft_more->buf, 64 };
	struct fi_msg msg = { .addr = soft_more->peer, .context = (void *)ctx };

	if (flags & FI_RECV) {
		iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, 64);
		return fi_recvmsg(soft_more->ep, &msg, FI_COMPLETION | (flags & FI_MORE));
	}
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 64);
	return fi_sendmsg(soft_more->ep, &msg, FI_COMPLETION | flags);
}

/* On the worker's CPU, which can't run meanwhile. Return: the number of posts that failed. */
static long soft_post_more(void *arg)
{
	const u64 dir = *(const u64 *)arg;
	long i, failed = 0;

	preempt_disable();
	for (i = 0; i < 5; i++)
		failed += !!soft_post(i, dir | (i < 4 ? FI_MORE : 0));
	preempt_enable();
	return failed;
}

static void soft_more_held(struct kunit *test)
{
	const int cpu = cpumask_first(cpu_online_mask);
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq = {
			.handler = soft_handler, .flags = FI_CQ_SOFTIRQ | FI_AFFINITY,
			.signaling_vector = cpu,
		},
	});
	struct efake_qp *qp = scene->qp;
	unsigned int rx_doorbells;
	u64 dir = 0;

	KUNIT_EXPECT_TRUE(test, efa_ep(scene)->softirq);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->work_cpu, cpu);
	KUNIT_EXPECT_TRUE(test, kofi_soon(qp->armed));
	soft_reset();
	soft_more = scene;
	KUNIT_EXPECT_EQ(test, work_on_cpu(cpu, soft_post_more, &dir), 0);
	KUNIT_EXPECT_EQ(test, qp->nsent, 5U);
	KUNIT_EXPECT_EQ(test, qp->doorbells, 1U);
	rx_doorbells = qp->rx_doorbells;
	dir = FI_RECV;
	KUNIT_EXPECT_EQ(test, work_on_cpu(cpu, soft_post_more, &dir), 0);
	KUNIT_EXPECT_EQ(test, qp->nrecvs, 5U);
	KUNIT_EXPECT_EQ(test, qp->rx_doorbells, rx_doorbells + 1);
	/* No further post follows. */
	KUNIT_EXPECT_EQ(test, soft_post(5, FI_MORE), 0);
	KUNIT_EXPECT_EQ(test, soft_post(5, FI_RECV | FI_MORE), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(qp->nsent) == 6 &&
					  READ_ONCE(qp->nrecvs) == 6));
	KUNIT_EXPECT_EQ(test, soft_elsewhere(), 0);
}

/* A softirq that interrupts a handler in process context posts at once. */
static struct efa_scene *soft_between;
static struct tasklet_struct soft_intruder;
static unsigned int soft_held, soft_rung;

static void soft_intrude(struct tasklet_struct *tasklet)
{
	KUNIT_EXPECT_EQ(soft_between->fake->test, efa_send(soft_between, 64, 3), 0);
}

static void soft_between_handler(struct fid_cq *cq, void *context)
{
	struct fi_cq_data_entry entry;
	unsigned int doorbells;

	while (fi_cq_read(cq, &entry, 1) == 1) {
		if (atomic_inc_return(&got) != 1)
			continue;
		doorbells = soft_between->qp->doorbells;
		KUNIT_EXPECT_EQ(soft_between->fake->test, efa_send(soft_between, 64, 2), 0);
		soft_held = efa_ep(soft_between)->nheld;
		/* It runs at the end, on top of this task. */
		local_bh_disable();
		tasklet_schedule(&soft_intruder);
		local_bh_enable();
		tasklet_kill(&soft_intruder);
		soft_rung = soft_between->qp->doorbells - doorbells;
	}
}

static void soft_interrupts(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq = { .handler = soft_between_handler },
	});
	int i;

	soft_between = scene;
	tasklet_setup(&soft_intruder, soft_intrude);
	atomic_set(&got, 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(scene->qp->armed));
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	soft_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(efake_sent(scene->qp, 1)));
	efake_settle();
	KUNIT_EXPECT_EQ(test, soft_held, 1U);
	KUNIT_EXPECT_EQ(test, soft_rung, 1U);
	for (i = 0; i < 2; i++)
		soft_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 3));
}

/* One handler that may sleep makes all of the endpoint's run in the worker. */
static void soft_and_not(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) { .idle = true });
	struct fi_cq_attr attr = { .handler = soft_handler, .format = FI_CQ_FORMAT_DATA };
	struct fid_cq *soft, *sleeps;
	struct fid_ep *ep;

	KUNIT_ASSERT_EQ(test, fi_cq_open(scene->domain, &attr, &sleeps, NULL), 0);
	attr.flags = FI_CQ_SOFTIRQ;
	KUNIT_ASSERT_EQ(test, fi_cq_open(scene->domain, &attr, &soft, NULL), 0);
	ep = efa_scene_apart(test, scene, soft, &sleeps->fid, FI_TRANSMIT);
	KUNIT_EXPECT_FALSE(test, to_kefa_ep(ep)->softirq);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&soft->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&sleeps->fid), 0);
}

static struct fid_cntr *soft_cntr(struct kunit *test, struct efa_scene *scene)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;

	KUNIT_ASSERT_EQ(test, fi_cntr_open(scene->domain, &attr, &cntr, NULL), 0);
	return cntr;
}

/* A softirq counts, and wakes the waiter. Counted operations aren't late. */
static void soft_counts(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq = { .handler = soft_handler, .flags = FI_CQ_SOFTIRQ },
		.bind = FI_LAZY_COMPLETION, .idle = true,
	});
	struct fid_cntr *cntr = soft_cntr(test, scene);
	int i;

	KUNIT_EXPECT_EQ(test, fi_ep_bind(scene->ep, &cntr->fid, FI_SEND | FI_READ | FI_WRITE), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	KUNIT_EXPECT_TRUE(test, efa_ep(scene)->softirq);
	KUNIT_EXPECT_FALSE(test, efa_ep(scene)->split);
	soft_begin(test, scene);
	for (i = 1; i <= 9; i++) {
		KUNIT_EXPECT_EQ(test, i % 3 == 0 ? efa_send(scene, 64, i) :
				      i % 3 == 1 ? efa_get(scene, 64, i) :
						   efa_write(scene, 64, i), 0);
		soft_done(scene->qp);
		KUNIT_EXPECT_EQ(test, fi_cntr_wait(cntr, i, KOFI_NEVER_MS), 0);
		KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == i));
	}
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr), 9ULL);
	KUNIT_EXPECT_GE(test, atomic_read(&where.softirq), 1);
	KUNIT_EXPECT_EQ(test, soft_elsewhere(), 0);
	EFA_CLOSE(test, scene->ep);
	EFA_CLOSE(test, cntr);
}

/* Without a queue for sends, those who wait for their counter are told of room. */
static void soft_counts_room(struct kunit *test)
{
	struct efa_scene *scene = soft_scene(test, 2);
	struct fid_cntr *cntr = soft_cntr(test, scene);
	struct fid_ep *ep = efa_scene_apart(test, scene, scene->cq, &cntr->fid, FI_SEND);
	struct efake_qp *qp = efake_last_qp(scene->fake);
	int i;

	KUNIT_EXPECT_TRUE(test, to_kefa_ep(ep)->softirq);
	KUNIT_EXPECT_FALSE(test, to_kefa_ep(ep)->split);
	KUNIT_EXPECT_TRUE(test, kofi_soon(qp->armed));
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, fi_send(ep, scene->buf, 64, NULL, scene->peer, NULL),
				i < 2 ? 0 : -EAGAIN);
	soft_done(qp);
	/* More than can be reached, and not for the time-out. */
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(cntr, 3, KOFI_NEVER_MS), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr), 1ULL);
	KUNIT_EXPECT_EQ(test, fi_send(ep, scene->buf, 64, NULL, scene->peer, NULL), 0);
	/* Nothing concerns the handler. */
	KUNIT_EXPECT_EQ(test, atomic_read(&where.softirq) + soft_elsewhere(), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	EFA_CLOSE(test, cntr);
}

/* --- endpoints that aren't served in softirqs --- */

static void soft_expect_off(struct kunit *test, struct fid_ep *ep, int n)
{
	KUNIT_EXPECT_FALSE(test, to_kefa_ep(ep)->softirq);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == n));
	KUNIT_EXPECT_GT(test, atomic_read(&where.off), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&where.softirq), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&where.on), 0);
}

static struct rdm_pair *soft_pair;

static void soft_cancel(struct tasklet_struct *tasklet)
{
	KUNIT_EXPECT_EQ(soft_pair->test, fi_cancel(&soft_pair->end[1].ep->fid, (void *)3), 0);
}

static void soft_rdm(struct kunit *test)
{
	struct tasklet_struct tasklet;
	struct rdm_pair *pair;

	soft_reset();
	pair = rdm_pair_new(test, &(struct rdm_opts) { .handler = soft_handler });
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), 0);
	rdm_run(pair);
	soft_expect_off(test, pair->end[1].ep, 2);
	/* This completes in the softirq itself. */
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 6, 3), 0);
	soft_pair = pair;
	kofi_in_softirq(&tasklet, soft_cancel);
	soft_expect_off(test, pair->end[1].ep, 3);
}

static struct efa_scene *soft_datagrams;

static void soft_dgram_done(struct tasklet_struct *tasklet)
{
	soft_done(soft_datagrams->qp);
	efake_recv_done(efake_recv(soft_datagrams->qp, 0), &(struct kefa_wc) { .len = 1 });
}

/* The device's event comes in a softirq, which isn't the one that calls handlers. */
static void soft_dgram(struct kunit *test)
{
	struct tasklet_struct tasklet;
	struct efa_scene *scene;

	soft_reset();
	scene = efa_scene_new(test, &(struct efa_opts) {
		.cq = { .handler = soft_handler, .flags = FI_CQ_SOFTIRQ }, .dgram = true,
	});
	soft_datagrams = scene;
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	kofi_in_softirq(&tasklet, soft_dgram_done);
	soft_expect_off(test, scene->ep, 2);
}

/* --- ends --- */

/* Posts are refused while softirqs complete others; then the endpoint is closed, or removed. */
static void soft_busy(struct kunit *test, bool remove)
{
	struct efa_scene *scene = soft_scene(test, 4);
	const unsigned long start = jiffies;
	unsigned int i;
	int sent = 0;

	for (i = 0; kofi_hunting(start, 200, i); i++) {
		while (!efa_send(scene, 64, i))
			sent++;
		while (efake_sent(scene->qp, 0))
			soft_done(scene->qp);
		KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == sent));
	}
	while (!efa_send(scene, 64, i))
		sent++;
	soft_done(scene->qp);
	if (remove)
		efake_remove(scene->fake);
	else
		EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == sent));
}

static void soft_close(struct kunit *test)
{
	soft_busy(test, false);
}

static void soft_remove(struct kunit *test)
{
	soft_busy(test, true);
}

static struct kunit_case soft_cases[] = {
	KUNIT_CASE(soft_called),
	KUNIT_CASE(soft_posts),
	KUNIT_CASE(soft_more_held),
	KUNIT_CASE(soft_interrupts),
	KUNIT_CASE(soft_and_not),
	KUNIT_CASE(soft_rdm),
	KUNIT_CASE(soft_dgram),
	KUNIT_CASE(soft_counts),
	KUNIT_CASE(soft_counts_room),
	KUNIT_CASE(soft_close),
	KUNIT_CASE(soft_remove),
	{}
};

static struct kunit_suite soft_suite = {
	.name = "kefa_soft",
	.test_cases = soft_cases,
};

kunit_test_suite(soft_suite);
