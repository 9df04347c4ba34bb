// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How a ULP waits on endpoints of which nobody waits for all sends: by handlers in process context
 * and in softirqs, and by readers that sleep; for room after a refused post, and for completions at
 * a queue for sends.
 */
#include "crew.h"
#include "efa_lazy.h"

/* How a ULP waits at a queue. */
enum way {
	READER,
	HANDLER,
	SOFTIRQ,
};

/**
 * struct listener - the handler of a queue
 * @calls: number of its calls
 * @got: number of completions that it has read
 */
struct listener {
	atomic_t	calls;
	atomic_t	got;
};

/* At the queue for receives, or for both directions, and at a queue for sends. */
static struct listener rx, tx;

static void listener_call(struct fid_cq *cq, void *context)
{
	struct listener *listener = context;

	atomic_add(efa_drain_cq(cq), &listener->got);
	atomic_inc(&listener->calls);
}

static void listener_reset(struct listener *listener)
{
	atomic_set(&listener->calls, 0);
	atomic_set(&listener->got, 0);
}

static struct fi_cq_attr listener_attr(struct listener *listener, enum way way)
{
	listener_reset(listener);
	if (way == READER)
		return (struct fi_cq_attr) { .wait_obj = FI_WAIT_UNSPEC };
	return (struct fi_cq_attr) {
		.handler = listener_call, .handler_context = listener,
		.flags = way == SOFTIRQ ? FI_CQ_SOFTIRQ : 0,
	};
}

static struct kofi_cq *kcq(struct fid_cq *cq)
{
	return container_of(cq, struct kofi_cq, cq_fid);
}

/* A time-out would look like a notification of room, so there is none. */
static void sleep_once(struct kofi_thread *thread)
{
	struct fid_cq *cq = thread->arg;
	struct fi_cq_data_entry entry;

	thread->ret = fi_cq_sread(cq, &entry, 1, NULL, -1);
}

static void sleeper_start(struct kunit *test, struct kofi_thread *thread, struct fid_cq *cq)
{
	kofi_thread_start(test, thread, sleep_once, cq);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&kcq(cq)->notifier.wait)));
}

static struct efa_scene *wait_scene(struct kunit *test, enum way way, size_t tx_size)
{
	return efa_scene_new(test, &(struct efa_opts) {
		.cq = listener_attr(&rx, way), .bind = FI_LAZY_COMPLETION, .tx_size = tx_size,
	});
}

/* --- room --- */

/* The queues of an endpoint, and the one at which the ULP is told. */
enum where {
	ONE,		/* one for both directions */
	SENDS,		/* one for sends, at which somebody waits, */
	RECEIVES,	/* or nobody does */
};

static const struct room {
	const char	*desc;
	enum where	where;
	enum way	way;
	u32		size;	/* entries are scarce, so many; if 0, slots are */
} rooms[] = {
	{ "one queue, reader", ONE, READER },
	{ "one queue, handler", ONE, HANDLER },
	{ "one queue, softirq", ONE, SOFTIRQ },
	{ "queue for sends, reader", SENDS, READER },
	{ "queue for sends, handler", SENDS, HANDLER },
	{ "queue for sends, softirq", SENDS, SOFTIRQ },
	{ "queue for receives, reader", RECEIVES, READER },
	{ "queue for receives, handler", RECEIVES, HANDLER },
	{ "queue for receives, softirq", RECEIVES, SOFTIRQ },
	{ "queue for receives, reader, entries", RECEIVES, READER, 1 },
	{ "queue for receives, handler, entries", RECEIVES, HANDLER, 1 },
	{ "queue for receives, softirq, entries", RECEIVES, SOFTIRQ, 1 },
};

KUNIT_ARRAY_PARAM_DESC(room, rooms, desc);

/* The end of an inject has no completion, of which the ULP would be told as well. */
static ssize_t room_inject(struct efa_scene *scene, struct fid_ep *ep)
{
	return fi_inject(ep, scene->buf, 8, scene->peer);
}

/* Nobody is told at the other queue, that for receives. */
static void room_expect_quiet(struct kunit *test, struct efa_scene *scene)
{
	efake_settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&rx.calls), 0);
	KUNIT_EXPECT_FALSE(test, efa_cq(scene)->room);
}

static void room_check(struct kunit *test, struct efa_scene *scene, struct fid_ep *ep,
		       struct efake_qp *qp, struct fid_cq *cq)
{
	const struct room *room = test->param_value;
	struct listener *told = room->where == SENDS ? &tx : &rx;
	struct kofi_thread sleeper;
	unsigned int n = 0;

	KUNIT_EXPECT_TRUE(test, to_kefa_ep(ep)->split);
	KUNIT_EXPECT_EQ(test, to_kefa_ep(ep)->softirq, room->way == SOFTIRQ);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(qp->armed)));
	listener_reset(told);
	if (room->way == READER)
		sleeper_start(test, &sleeper, cq);
	while (!room_inject(scene, ep))
		n++;
	KUNIT_EXPECT_EQ(test, n, room->size ?: 2);
	KUNIT_EXPECT_TRUE(test, qp->tx_armed);
	/* If entries are scarce, the ULP may have been told already, but not for good. */
	if (!room->size)
		KUNIT_EXPECT_EQ(test, atomic_read(&told->calls), 0);
	lazy_done(qp);
	if (room->way == READER) {
		kofi_thread_join(test, &sleeper);
		KUNIT_EXPECT_EQ(test, sleeper.ret, -EAGAIN);
	} else {
		KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&told->calls)));
		KUNIT_EXPECT_EQ(test, atomic_read(&told->got), 0);
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon(!room_inject(scene, ep)));
	if (room->where == SENDS)
		room_expect_quiet(test, scene);
}

/* A post was refused: the ULP is told when it may succeed, where it can be told. */
static void told_of_room(struct kunit *test)
{
	const struct room *room = test->param_value;
	struct efa_scene *scene = wait_scene(test, room->way, 2);
	struct lazy_two two = { };

	if (room->where == ONE) {
		room_check(test, scene, scene->ep, scene->qp, scene->cq);
		return;
	}
	if (room->where == SENDS) {
		two.attr = listener_attr(&tx, room->way);
		two.bind = FI_LAZY_COMPLETION;
	}
	two_open(test, scene, &two, room->size);
	room_check(test, scene, two.ep, two.qp, room->where == SENDS ? two.cq : scene->cq);
	two_close(test, &two);
}

/* Nobody sleeps when there is room, so the next call tells. Completions can be read as well. */
static void told_afterwards(struct kunit *test)
{
	struct efa_scene *scene = wait_scene(test, READER, 2);
	struct fi_cq_data_entry entry;
	unsigned int i;

	for (i = 1; i <= 3; i++)
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i), i <= 2 ? 0 : -EAGAIN);
	lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(efa_cq(scene)->room)));
	KUNIT_EXPECT_EQ(test, fi_cq_sread(scene->cq, &entry, 1, NULL, KOFI_NEVER_MS), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, efa_cq(scene)->room);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(scene->cq, &entry, 1, NULL, KOFI_NEVER_MS), 1);
	KUNIT_EXPECT_PTR_EQ(test, entry.op_context, (void *)1);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 3), 0);
}

/* At a queue at which somebody waits, a read makes room for another entry, and no timer tells. */
static void told_by_read(struct kunit *test)
{
	struct efa_scene *scene = wait_scene(test, READER, 0);
	struct lazy_two two = {
		.attr = listener_attr(&tx, READER), .bind = FI_LAZY_COMPLETION,
	};
	struct fi_cq_data_entry entry;
	struct kefa_ep *ep;

	two_open(test, scene, &two, 1);
	ep = to_kefa_ep(two.ep);
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
	lazy_done(two.qp);
	flush_delayed_work(&ep->idle);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(ep->tx.nfree) == ep->tx.base.size));
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&ep->map_retry) || READ_ONCE(ep->tx.wanted));
	room_expect_quiet(test, scene);
	KUNIT_EXPECT_FALSE(test, kcq(two.cq)->room);
	KUNIT_EXPECT_EQ(test, fi_cq_read(two.cq, &entry, 1), 1);
	KUNIT_EXPECT_TRUE(test, kcq(two.cq)->room);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(two.cq, &entry, 1, NULL, KOFI_NEVER_MS), -EAGAIN);
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
	two_close(test, &two);
}

/* --- completions at a queue for sends --- */

static const struct waiting {
	const char	*desc;
	enum way	way;
} waitings[] = {
	{ "reader", READER },
	{ "handler", HANDLER },
	{ "softirq", SOFTIRQ },
};

KUNIT_ARRAY_PARAM_DESC(waiting, waitings, desc);

/* Those with FI_COMPLETION are reported there at once, all others late, and nothing elsewhere. */
static void sends_apart(struct kunit *test)
{
	const enum way way = ((const struct waiting *)test->param_value)->way;
	struct efa_scene *scene = wait_scene(test, way, 0);
	struct lazy_two two = {
		.attr = listener_attr(&tx, way), .bind = FI_LAZY_COMPLETION,
	};
	struct kofi_thread sleeper;
	struct kefa_ep *ep;
	int i;

	two_open(test, scene, &two, 0);
	ep = to_kefa_ep(two.ep);
	KUNIT_EXPECT_EQ(test, ep->softirq, way == SOFTIRQ);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(two.qp->armed)));
	for (i = 1; i <= 2; i++) {
		if (way == READER)
			sleeper_start(test, &sleeper, two.cq);
		KUNIT_EXPECT_EQ(test, lazy_msg_on(two.ep, scene, i, i == 1 ? FI_COMPLETION : 0), 0);
		KUNIT_EXPECT_EQ(test, READ_ONCE(two.qp->tx_armed), i == 1);
		lazy_done(two.qp);
		if (i == 2)
			flush_delayed_work(&ep->idle);
		if (way == READER) {
			kofi_thread_join(test, &sleeper);
			KUNIT_EXPECT_EQ(test, sleeper.ret, 1);
		} else {
			KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&tx.got) == i));
		}
		/* Polling has ended, so that nothing arms the queue for the next send. */
		KUNIT_EXPECT_TRUE(test, kofi_soon(!READ_ONCE(ep->tx_armed)));
		efake_settle();
		KUNIT_EXPECT_EQ(test, two.qp->tx_events, 1U);
		KUNIT_EXPECT_EQ(test, ep->nawaited, 0U);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&rx.calls), 0);
	two_close(test, &two);
}

/* --- regions --- */

/* Take the only entry of the queue for sends. Its completion is there, or still outstanding. */
static void entry_take(struct kunit *test, struct efa_scene *scene, struct lazy_two *two, bool done)
{
	struct kefa_ep *ep = to_kefa_ep(two->ep);

	/* End the watch for earlier operations, which may arm the queue for this one. */
	flush_delayed_work(&ep->idle);
	efake_settle();
	listener_reset(&rx);
	KUNIT_EXPECT_EQ(test, two_send(scene, two), 0);
	if (!done)
		return;
	lazy_done(two->qp);
	flush_delayed_work(&ep->idle);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(ep->tx.nfree) == ep->tx.base.size));
}

static void entry_free(struct kunit *test, struct lazy_two *two)
{
	struct fi_cq_data_entry entry;

	KUNIT_EXPECT_TRUE(test, kofi_soon(fi_cq_read(two->cq, &entry, 1) == 1));
}

/*
 * A registration or invalidation by an endpoint lacks an entry in the queue for sends, at which
 * nobody can be told: the ULP is told at that for receives.
 */
static void region_lacks_entry(struct kunit *test)
{
	struct efa_scene *scene = wait_scene(test, HANDLER, 0);
	struct lazy_two two = { };
	struct fid_mr *mr;
	u64 again;

	two_open(test, scene, &two, 1);
	mr = lazy_mr(test, scene, two.ep, two.cq);
	/* Nothing is outstanding: only a timer tells. */
	entry_take(test, scene, &two, true);
	again = to_kefa_ep(two.ep)->stats.again;
	KUNIT_EXPECT_EQ(test, lazy_reg(scene, mr, FI_COMPLETION), -EAGAIN);
	KUNIT_EXPECT_EQ(test, to_kefa_ep(two.ep)->stats.again, again + 1);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&rx.calls)));
	entry_free(test, &two);
	KUNIT_EXPECT_EQ(test, lazy_reg(scene, mr, FI_COMPLETION), 0);
	entry_free(test, &two);
	/* The end of a send raises an event. */
	entry_take(test, scene, &two, false);
	KUNIT_EXPECT_FALSE(test, two.qp->tx_armed);
	KUNIT_EXPECT_EQ(test, fi_mr_post_inval(mr, FI_COMPLETION, NULL), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, two.qp->tx_armed);
	lazy_done(two.qp);
	KUNIT_EXPECT_EQ(test, two.qp->tx_events, 1U);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&rx.calls)));
	entry_free(test, &two);
	KUNIT_EXPECT_EQ(test, fi_mr_post_inval(mr, FI_COMPLETION, NULL), 0);
	entry_free(test, &two);
	KUNIT_EXPECT_EQ(test, atomic_read(&rx.got), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	two_close(test, &two);
}

static struct kunit_case lazy_wait_cases[] = {
	KUNIT_CASE_PARAM(told_of_room, room_gen_params),
	KUNIT_CASE(told_afterwards),
	KUNIT_CASE(told_by_read),
	KUNIT_CASE_PARAM(sends_apart, waiting_gen_params),
	KUNIT_CASE(region_lacks_entry),
	{}
};

static struct kunit_suite lazy_wait_suite = {
	.name = "kefa_lazy_wait",
	.test_cases = lazy_wait_cases,
};

kunit_test_suite(lazy_wait_suite);
