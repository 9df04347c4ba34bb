// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kofi_rc's completion queues and queue pairs, without a device: all connections end at once. */
#include <linux/slab.h>
#include "../../ulp/rc/wire.c"
#include "../../ulp/rc/mr.c"
#include "../../ulp/rc/grant.c"
#include "../../ulp/rc/conn.c"
#include "../../ulp/rc/tx.c"
#include "../../ulp/rc/rma.c"
#include "../../ulp/rc/rx.c"
#include "../../ulp/rc/revoke.c"
#include "../../ulp/rc/verbs.c"
#include <kunit/test.h>
#include "crew.h"

#define DEPTH	4

static struct scene {
	struct krc_link		link;
	struct ib_pd		pd;
	struct krc_cq		cq;
	struct krc_qp		qp;
	bool			qp_made;
	struct task_struct	*posting;	/* this task posts */
	bool			from_post;	/* the handler was called by a post */
	unsigned int		calls;		/* of the handler */
	unsigned int		depth;		/* of these, at the moment */
	unsigned int		deepest;
	unsigned int		soft_calls;	/* in softirq context */
	bool			again;		/* the handler arms, and another CPU completes */
	unsigned int		rounds;		/* the handler has a softirq poll so many times */
	struct tasklet_struct	soft;
	unsigned int		events;
	bool			found;		/* a queue pair, by its number */
	bool			destroyed;	/* it is */
	bool			slow;		/* the handler is, and the last post ends in it */
	struct kofi_vigil	vigil;
	struct ib_wc		wc[2 * DEPTH];
	enum ib_event_type	event;
} *scene;

/* --- the rest of kofi_rc --- */

void krc_net_send(struct krc_buf *buf)
{
	krc_sent(buf, 0);
}

void krc_net_rma(struct krc_swr *w)
{
}

int krc_net_open_grant(struct krc_grant *g)
{
	return -EOPNOTSUPP;
}

void krc_net_grant(struct krc_grant *g)
{
}

bool krc_net_gone(const struct krc_grant *g)
{
	return true;
}

int krc_net_close(struct krc_grant *g)
{
	return 0;
}

void krc_net_stuck(struct krc_queue *q)
{
}

void krc_net_lost(struct krc_queue *q)
{
}

void krc_net_put(struct krc_net *net)
{
}

void krc_up_stopped(struct krc_conn *c, enum krc_cause cause, int err)
{
}

void krc_up_flushed(struct krc_conn *c)
{
}

void kulp_peer_put(struct kulp_fabric *f, fi_addr_t peer)
{
}

void kulp_credits_give(struct kulp_queue *q, u32 n)
{
}

/* --- the ULP --- */

static void complete_one(void)
{
	const struct krc_rwr r = { .id = 9 };

	spin_lock_irq(&scene->qp.c.lock);
	krc_up_received(&scene->qp.c, &r, 0);
	spin_unlock_irq(&scene->qp.c.lock);
}

static void handler(struct ib_cq *ib, void *context)
{
	scene->from_post |= READ_ONCE(scene->posting) == current;
	scene->deepest = max(scene->deepest, ++scene->depth);
	scene->calls++;
	scene->soft_calls += !!in_serving_softirq();
	if (scene->again) {
		scene->again = false;
		krc_req_notify_cq(ib, IB_CQ_NEXT_COMP);
		complete_one();
		krc_cq_notify(to_krc_cq(ib));
	}
	if (scene->slow) {
		krc_conn_put(&scene->qp.c);
		kofi_vigil_stay(&scene->vigil, KOFI_VIGIL_MS);
	}
	if (scene->rounds) {
		scene->rounds--;
		tasklet_schedule(&scene->soft);
	}
	scene->depth--;
}

static void event_handler(struct ib_event *event, void *context)
{
	scene->event = event->event;
	scene->events++;
}

static int post_recv(u64 id)
{
	const struct ib_recv_wr wr = { .wr_id = id }, *bad;
	int ret;

	scene->posting = current;
	ret = krc_post_recv(&scene->qp.ib, &wr, &bad);
	WRITE_ONCE(scene->posting, NULL);
	return ret;
}

static int post_send(u64 id)
{
	const struct ib_send_wr wr = { .wr_id = id, .opcode = IB_WR_SEND }, *bad;
	int ret;

	scene->posting = current;
	ret = krc_post_send(&scene->qp.ib, &wr, &bad);
	WRITE_ONCE(scene->posting, NULL);
	return ret;
}

/* Everything is flushed from now on. */
static void stop(void)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	krc_modify_qp(&scene->qp.ib, &attr, IB_QP_STATE, NULL);
	krc_wait_flushed(&scene->qp.c);
}

static int make_cq(int cqe)
{
	const struct ib_cq_init_attr attr = { .cqe = cqe };
	struct ib_cq *ib = &scene->cq.ib;

	ib->device = &scene->link.ib;
	ib->comp_handler = handler;
	ib->event_handler = event_handler;
	return krc_create_cq(ib, &attr, NULL);
}

static int make_qp(struct ib_qp_init_attr *attr)
{
	int ret;

	memset(&scene->qp, 0, sizeof(scene->qp));
	scene->qp.ib.device = &scene->link.ib;
	scene->qp.ib.pd = &scene->pd;
	scene->qp.ib.send_cq = &scene->cq.ib;
	scene->qp.ib.recv_cq = &scene->cq.ib;
	ret = krc_create_qp(&scene->qp.ib, attr, NULL);
	scene->qp_made = !ret;
	return ret;
}

static struct ib_qp_init_attr qp_attr(void)
{
	return (struct ib_qp_init_attr) {
		.qp_type = IB_QPT_RC, .send_cq = &scene->cq.ib, .recv_cq = &scene->cq.ib,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 2,
			 .max_recv_sge = 1 },
	};
}

static void make(struct kunit *test, int cqe)
{
	struct ib_qp_init_attr attr = qp_attr();

	KUNIT_ASSERT_EQ(test, make_cq(cqe), 0);
	KUNIT_ASSERT_EQ(test, make_qp(&attr), 0);
}

/* --- cases --- */

/* A post to a queue pair in error completes at once, but calls no handler itself. */
static void handler_after_post(struct kunit *test)
{
	make(test, 16);
	stop();
	krc_req_notify_cq(&scene->cq.ib, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, post_recv(1), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->calls) == 1));
	krc_req_notify_cq(&scene->cq.ib, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, post_send(2), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->calls) == 2));
	KUNIT_EXPECT_FALSE(test, scene->from_post);
}

/* A completion that comes while the handler is called has it called again, but not within. */
static void handler_one_at_a_time(struct kunit *test)
{
	make(test, 16);
	krc_req_notify_cq(&scene->cq.ib, IB_CQ_NEXT_COMP);
	scene->again = true;
	complete_one();
	krc_cq_notify(&scene->cq);
	KUNIT_EXPECT_EQ(test, scene->calls, 2U);
	KUNIT_EXPECT_EQ(test, scene->deepest, 1U);
	/* It isn't armed any more. */
	complete_one();
	krc_cq_notify(&scene->cq);
	KUNIT_EXPECT_EQ(test, scene->calls, 2U);
}

static void handler_armed_late(struct kunit *test)
{
	struct ib_wc wc;

	make(test, 16);
	complete_one();
	KUNIT_EXPECT_EQ(test, krc_req_notify_cq(&scene->cq.ib, IB_CQ_NEXT_COMP |
						IB_CQ_REPORT_MISSED_EVENTS), 1);
	KUNIT_EXPECT_EQ(test, krc_poll_cq(&scene->cq.ib, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, krc_req_notify_cq(&scene->cq.ib, IB_CQ_NEXT_COMP |
						IB_CQ_REPORT_MISSED_EVENTS), 0);
}

/* Arming is for completions to come. The ULP polls those that are there. */
static void handler_not_for_old(struct kunit *test)
{
	make(test, 16);
	complete_one();
	krc_req_notify_cq(&scene->cq.ib, IB_CQ_NEXT_COMP);
	krc_cq_notify(&scene->cq);
	KUNIT_EXPECT_EQ(test, scene->calls, 0U);
	complete_one();
	krc_cq_notify(&scene->cq);
	KUNIT_EXPECT_EQ(test, scene->calls, 1U);
}

/* The completions of another queue pair go while the queue is armed: new ones aren't missed. */
static void handler_after_purge(struct kunit *test)
{
	struct ib_qp other = {};

	make(test, 16);
	complete_one();
	complete_one();
	krc_wc_at(&scene->cq, 0)->qp = &other;
	krc_req_notify_cq(&scene->cq.ib, IB_CQ_NEXT_COMP);
	krc_cq_purge(&scene->cq, &other);
	complete_one();
	krc_cq_notify(&scene->cq);
	KUNIT_EXPECT_EQ(test, scene->calls, 1U);
}

static void complete_softly(struct tasklet_struct *soft)
{
	complete_one();
	krc_cq_notify(&scene->cq);
}

/* Datagrams arrive in softirqs, which call the handler, too. */
static void handler_in_softirq(struct kunit *test)
{
	struct tasklet_struct soft;
	unsigned int i;

	make(test, 16);
	for (i = 1; i <= 3; i++) {
		krc_req_notify_cq(&scene->cq.ib, IB_CQ_NEXT_COMP);
		kofi_in_softirq(&soft, complete_softly);
		KUNIT_EXPECT_EQ(test, scene->calls, i);
		KUNIT_EXPECT_EQ(test, scene->soft_calls, i);
	}
	/* It arms the queue, and another one comes. */
	krc_req_notify_cq(&scene->cq.ib, IB_CQ_NEXT_COMP);
	scene->again = true;
	kofi_in_softirq(&soft, complete_softly);
	KUNIT_EXPECT_EQ(test, scene->calls, 5U);
	KUNIT_EXPECT_EQ(test, scene->deepest, 1U);
}

static void poll_softly(struct tasklet_struct *soft)
{
	struct ib_wc wc;

	while (krc_poll_cq(&scene->cq.ib, 1, &wc) > 0)
		;
	krc_req_notify_cq(&scene->cq.ib, IB_CQ_NEXT_COMP);
	complete_softly(soft);
}

/* A task that has called the handler is through, though softirqs poll, arm and complete. */
static void handler_in_softirq_from_task(struct kunit *test)
{
	make(test, 16);
	tasklet_setup(&scene->soft, poll_softly);
	krc_req_notify_cq(&scene->cq.ib, IB_CQ_NEXT_COMP);
	scene->rounds = 5;
	complete_one();
	krc_cq_notify(&scene->cq);
	/* A tasklet that is being killed can't be scheduled. */
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->calls) == 6));
	tasklet_kill(&scene->soft);
	KUNIT_EXPECT_EQ(test, scene->calls, 6U);
	KUNIT_EXPECT_EQ(test, scene->soft_calls, 5U);
	KUNIT_EXPECT_EQ(test, scene->deepest, 1U);
}

/* ULPs make queues that are smaller than what a flush completes. */
static void flush_fits(struct kunit *test)
{
	struct ib_wc *wc = scene->wc;
	int i;

	make(test, 1);
	for (i = 0; i < DEPTH; i++)
		KUNIT_EXPECT_EQ(test, post_recv(i), 0);
	KUNIT_EXPECT_EQ(test, post_recv(DEPTH), -ENOMEM);
	/* Sends are only possible when it is connected, or in error. */
	KUNIT_EXPECT_EQ(test, post_send(DEPTH), -EINVAL);
	stop();
	for (i = 0; i < DEPTH; i++)
		KUNIT_EXPECT_EQ(test, post_send(DEPTH + i), 0);
	KUNIT_ASSERT_EQ(test, krc_poll_cq(&scene->cq.ib, 2 * DEPTH, wc), 2 * DEPTH);
	for (i = 0; i < 2 * DEPTH; i++) {
		KUNIT_EXPECT_EQ(test, wc[i].wr_id, (u64)i);
		KUNIT_EXPECT_EQ(test, wc[i].status, IB_WC_WR_FLUSH_ERR);
	}
	KUNIT_EXPECT_EQ(test, scene->events, 0U);
}

/* A ULP that doesn't poll is told, and its queue pair is in error. */
static void overrun(struct kunit *test)
{
	int i;

	make(test, 1);
	for (i = 0; i < 64; i++)
		complete_one();
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->events)));
	KUNIT_EXPECT_EQ(test, scene->event, IB_EVENT_CQ_ERR);
	krc_wait_flushed(&scene->qp.c);
	KUNIT_EXPECT_EQ(test, krc_qp_state(&scene->qp.c), IB_QPS_ERR);
}

/* Completions of a queue pair don't outlive it. */
static void purged(struct kunit *test)
{
	struct ib_wc wc;

	make(test, 16);
	KUNIT_EXPECT_EQ(test, post_recv(1), 0);
	KUNIT_EXPECT_EQ(test, krc_destroy_qp(&scene->qp.ib, NULL), 0);
	scene->qp_made = false;
	KUNIT_EXPECT_EQ(test, krc_poll_cq(&scene->cq.ib, 1, &wc), 0);
}

/* iw_cm, which finds a queue pair by its number, and is slow to take a reference. */
static void find_slowly(struct kofi_thread *thread)
{
	struct krc_qp *qp;

	rcu_read_lock();
	qp = xa_load(&scene->link.qpns, scene->qp.ib.qp_num);
	WRITE_ONCE(scene->found, true);
	mdelay(100);
	thread->ret = READ_ONCE(scene->destroyed);
	if (qp && !thread->ret) {
		krc_conn_get(&qp->c);
		krc_conn_put(&qp->c);
	}
	rcu_read_unlock();
}

/* A queue pair isn't freed while it is found by its number. */
static void destroyed_while_found(struct kunit *test)
{
	struct kofi_thread thread;

	make(test, 16);
	kofi_thread_start(test, &thread, find_slowly, NULL);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->found)));
	KUNIT_EXPECT_EQ(test, krc_destroy_qp(&scene->qp.ib, NULL), 0);
	WRITE_ONCE(scene->destroyed, true);
	scene->qp_made = false;
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
}

static void destroy(struct kofi_thread *thread)
{
	thread->ret = krc_destroy_qp(&scene->qp.ib, NULL);
	kofi_vigil_end(&scene->vigil);
}

/*
 * A post has left its completion to the work item of the queue. ULPs free the queue as soon as the
 * queue pair is destroyed, so the handler must have returned.
 */
static void destroyed_while_handled(struct kunit *test)
{
	struct kofi_thread thread;
	unsigned int cpu[2];

	kofi_two_cpus(test, cpu);
	init_completion(&scene->vigil.entered);
	make(test, 16);
	stop();
	krc_conn_get(&scene->qp.c);
	kofi_thread_start_on(test, &thread, destroy, NULL, cpu[1]);
	/* It waits for the end of the post. */
	KUNIT_EXPECT_TRUE(test, kofi_soon(refcount_read(&scene->qp.c.refs) == 1));
	krc_req_notify_cq(&scene->cq.ib, IB_CQ_NEXT_COMP);
	complete_one();
	scene->slow = true;
	WRITE_ONCE(scene->vigil.waits, true);
	queue_work_on(cpu[0], krc_wq, &scene->cq.work);
	kofi_thread_join(test, &thread);
	scene->qp_made = false;
	flush_work(&scene->cq.work);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
	KUNIT_EXPECT_EQ(test, scene->calls, 1U);
	KUNIT_EXPECT_FALSE(test, scene->vigil.early);
}

/* The number of a queue pair says nothing of that of the next. */
static void numbers(struct kunit *test)
{
	u32 last = 0, near = 0;
	unsigned int i;

	make(test, 16);
	for (i = 0; i < 16; i++) {
		struct ib_qp_init_attr attr = qp_attr();
		u32 n = scene->qp.ib.qp_num;

		KUNIT_EXPECT_GT(test, n, 1U);
		KUNIT_EXPECT_LE(test, n, 0xffffffU);
		near += n - last + 256 < 512;
		last = n;
		KUNIT_EXPECT_EQ(test, krc_destroy_qp(&scene->qp.ib, NULL), 0);
		KUNIT_ASSERT_EQ(test, make_qp(&attr), 0);
	}
	KUNIT_EXPECT_LT(test, near, 4U);
}

static void limits(struct kunit *test)
{
	struct ib_sge sge[2] = { { .length = KRC_TOTAL_MAX }, { .length = 1 } };
	const struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = sge, .num_sge = 2 }, *bad;
	struct ib_qp_init_attr attr;

	KUNIT_EXPECT_EQ(test, make_cq(KRC_CQE + 1), -EINVAL);
	KUNIT_ASSERT_EQ(test, make_cq(16), 0);
	attr = qp_attr();
	attr.cap.max_send_wr = KRC_QP_WR + 1;
	KUNIT_EXPECT_EQ(test, make_qp(&attr), -EINVAL);
	attr = qp_attr();
	attr.cap.max_recv_sge = KRC_RECV_SGES + 1;
	KUNIT_EXPECT_EQ(test, make_qp(&attr), -EINVAL);
	attr = qp_attr();
	attr.qp_type = IB_QPT_UD;
	KUNIT_EXPECT_EQ(test, make_qp(&attr), -EOPNOTSUPP);
	attr = qp_attr();
	KUNIT_ASSERT_EQ(test, make_qp(&attr), 0);
	stop();
	/* Longer than any message. */
	KUNIT_EXPECT_EQ(test, krc_post_send(&scene->qp.ib, &wr, &bad), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr);
}

/**
 * struct pieces - memory of a work request
 * @desc: description
 * @ulp: the ULP's pieces
 * @want: addresses, lengths and keys
 * @nulp: number of @ulp
 * @ret: number of @want, or -EINVAL
 */
struct pieces {
	const char	*desc;
	struct ib_sge	ulp[5];
	struct krc_sge	want[5];
	int		nulp;
	int		ret;
};

static const struct pieces pieces[] = {
	{ "none" },
	{ "one", { { 3, 9000 } }, { { 3, 9000 } }, 1, 1 },
	{ "apart", { { 0, 100 }, { 101, 100 } }, { { 0, 100 }, { 101, 100 } }, 2, 2 },
	{ "three neighbours", { { 4096, 4096 }, { 8192, 4096 }, { 12288, 77 } }, { { 4096, 8269 } },
	  3, 1 },
	{ "in reverse", { { 8192, 4096 }, { 4096, 4096 } }, { { 8192, 4096 }, { 4096, 4096 } },
	  2, 2 },
	{ "the same twice", { { 512, 512 }, { 512, 512 } }, { { 512, 512 }, { 512, 512 } }, 2, 2 },
	{ "empty", { { 64, 10 }, { 900, 0 }, { 74, 10 } }, { { 64, 10 }, { 900, 0 }, { 74, 10 } },
	  3, 3 },
	{ "pairs", { { 0, 4096 }, { 4096, 4096 }, { 12288, 4096 }, { 16384, 1 }, { 0, 5 } },
	  { { 0, 8192 }, { 12288, 4097 }, { 0, 5 } }, 5, 3 },
	{ "of a region", { { 0, 10, 7 }, { 10, 10, 7 } }, { { 0, 20, 7 } }, 2, 1 },
	{ "of two regions", { { 0, 10, 7 }, { 10, 10, 8 }, { 20, 10 } },
	  { { 0, 10, 7 }, { 10, 10, 8 }, { 20, 10 } }, 3, 3 },
	{ "longest", { { 0, 1U << 30 }, { 1U << 30, 1U << 30 } }, { { 0, 1U << 31 } }, 2, 1 },
	{ "too long", { { 0, U32_MAX }, { U32_MAX, 1 } }, {}, 2, -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(pieces, pieces, desc);

/* Neighbours are one piece, whose bytes are the same. */
static void neighbours(struct kunit *test)
{
	const struct pieces *p = test->param_value;
	struct krc_sge got[5] = {};
	u32 total = 0;
	u64 sum = 0;
	int i;

	KUNIT_ASSERT_EQ(test, krc_fill_sges(got, p->ulp, p->nulp, &total), p->ret);
	if (p->ret < 0)
		return;
	for (i = 0; i < p->ret; i++) {
		KUNIT_EXPECT_EQ(test, got[i].addr, p->want[i].addr);
		KUNIT_EXPECT_EQ(test, got[i].len, p->want[i].len);
		KUNIT_EXPECT_EQ(test, got[i].key, p->want[i].key);
	}
	for (i = 0; i < p->nulp; i++)
		sum += p->ulp[i].length;
	KUNIT_EXPECT_EQ(test, (u64)total, sum);
}

/* --- begin and end --- */

static int verbs_scene_init(struct kunit *test)
{
	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	krc_mrs_init(&scene->link.mrs);
	xa_init_flags(&scene->link.qpns, XA_FLAGS_LOCK_IRQ);
	spin_lock_init(&scene->link.lock);
	INIT_LIST_HEAD(&scene->link.qps);
	return 0;
}

static void verbs_scene_exit(struct kunit *test)
{
	if (!scene)
		return;
	if (scene->qp_made)
		krc_destroy_qp(&scene->qp.ib, NULL);
	if (scene->cq.ring)
		krc_destroy_cq(&scene->cq.ib, NULL);
	KUNIT_EXPECT_TRUE(test, list_empty(&scene->link.qps));
	xa_destroy(&scene->link.qpns);
	krc_mrs_fini(&scene->link.mrs);
}

static int verbs_suite_init(struct kunit_suite *suite)
{
	krc_wq = alloc_workqueue("rc_verbs_scene", WQ_MEM_RECLAIM, 0);
	krc_stop_wq = alloc_workqueue("rc_verbs_scene_stop", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return krc_wq && krc_stop_wq ? 0 : -ENOMEM;
}

static void verbs_suite_exit(struct kunit_suite *suite)
{
	destroy_workqueue(krc_stop_wq);
	destroy_workqueue(krc_wq);
	krc_conn_exit();
}

static struct kunit_case verbs_cases[] = {
	KUNIT_CASE(handler_after_post),
	KUNIT_CASE(handler_one_at_a_time),
	KUNIT_CASE(handler_armed_late),
	KUNIT_CASE(handler_not_for_old),
	KUNIT_CASE(handler_after_purge),
	KUNIT_CASE(handler_in_softirq),
	KUNIT_CASE(handler_in_softirq_from_task),
	KUNIT_CASE(flush_fits),
	KUNIT_CASE(overrun),
	KUNIT_CASE(purged),
	KUNIT_CASE(destroyed_while_found),
	KUNIT_CASE(destroyed_while_handled),
	KUNIT_CASE(numbers),
	KUNIT_CASE(limits),
	KUNIT_CASE_PARAM(neighbours, pieces_gen_params),
	{}
};

static struct kunit_suite verbs_suite = {
	.name		= "kofi_rc_verbs",
	.init		= verbs_scene_init,
	.exit		= verbs_scene_exit,
	.suite_init	= verbs_suite_init,
	.suite_exit	= verbs_suite_exit,
	.test_cases	= verbs_cases,
};

kunit_test_suite(verbs_suite);

MODULE_DESCRIPTION("KUnit tests of kofi_rc's queues");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
