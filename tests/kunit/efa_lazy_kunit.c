// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sends that nobody waits for: they raise no event and run no worker, and nothing is lost or late
 * for those who wait, for another operation, for room or for the end of the endpoint.
 */
#include "crew.h"
#include "efa_lazy.h"

static atomic_t calls, got;

static void lazy_handler(struct fid_cq *cq, void *context)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry error = { };
	ssize_t n;

	atomic_inc(&calls);
	do {
		n = fi_cq_read(cq, &entry, 1);
		if (n == -FI_EAVAIL)
			n = fi_cq_readerr(cq, &error, 0);
		if (n == 1)
			atomic_inc(&got);
	} while (n == 1);
}

static struct efa_scene *lazy_scene(struct kunit *test, size_t tx_size)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.handler = lazy_handler, .bind = FI_LAZY_COMPLETION, .tx_size = tx_size,
	});

	KUNIT_ASSERT_TRUE(test, efa_ep(scene)->split);
	efake_settle();
	atomic_set(&calls, 0);
	atomic_set(&got, 0);
	return scene;
}

static ssize_t lazy_msg(struct efa_scene *scene, long ctx, u64 flags)
{
	return lazy_msg_on(scene->ep, scene, ctx, flags);
}

/* The next check whether sends are outstanding for long. */
static void lazy_idle(struct efa_scene *scene)
{
	flush_delayed_work(&efa_ep(scene)->idle);
	efake_settle();
}

static void lazy_told_later(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);

	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 3, 0), 0);
	KUNIT_EXPECT_FALSE(test, scene->qp->tx_armed);
	lazy_done(scene->qp);
	lazy_done(scene->qp);
	KUNIT_EXPECT_EQ(test, scene->qp->tx_events, 0U);
	KUNIT_EXPECT_FALSE(test, work_pending(&efa_ep(scene)->work));
	/* The event of a receive has all of them reported. */
	efake_recv_done(efake_recv(scene->qp, 0), &(struct kefa_wc) { });
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 3));
	KUNIT_EXPECT_EQ(test, scene->qp->tx_events, 0U);
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->tx.nfree, efa_ep(scene)->tx.base.size);
}

/* Without other events, completions are reported after a while, once for many. */
static void lazy_told_at_last(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);
	int i;

	for (i = 0; i < 40; i++) {
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i), 0);
		lazy_done(scene->qp);
	}
	lazy_idle(scene);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 40));
	KUNIT_EXPECT_EQ(test, scene->qp->tx_events, 0U);
	/* One that takes longer is noticed when it ends. */
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	lazy_idle(scene);
	KUNIT_EXPECT_TRUE(test, scene->qp->tx_armed);
	atomic_set(&calls, 0);
	lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 41));
	efake_settle();
	KUNIT_EXPECT_FALSE(test, scene->qp->tx_armed);
	/* An idle endpoint has no timer. */
	lazy_idle(scene);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&efa_ep(scene)->idle));
}

/* Without a second completion queue, sends are told like others. */
static void lazy_without_queue(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.handler = lazy_handler, .bind = FI_LAZY_COMPLETION, .idle = true,
	});

	atomic_set(&got, 0);
	efake_fail(scene->fake, EFAKE_QP_CREATE, 1, -ENOSPC);
	KUNIT_EXPECT_EQ(test, fi_enable(scene->ep), -ENOSPC);
	efake_fail(scene->fake, EFAKE_QP_CREATE, 1, -ENOMEM);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	KUNIT_EXPECT_FALSE(test, efa_ep(scene)->split);
	KUNIT_EXPECT_PTR_EQ(test, scene->qp->tx_ring, NULL);
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 1));
}

static void lazy_but_awaited(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);
	struct kefa_ep *ep = efa_ep(scene);
	int i;

	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 2, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 3, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, ep->nawaited, 2U);
	KUNIT_EXPECT_EQ(test, scene->qp->tx_arms, 1U);
	/* The worker arms the queue again as long as somebody waits. */
	lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 1));
	efake_settle();
	KUNIT_EXPECT_TRUE(test, scene->qp->tx_armed);
	for (i = 2; i <= 3; i++) {
		lazy_done(scene->qp);
		KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == i));
		/* A send that ends before the worker has armed the queue leaves it armed. */
		efake_settle();
	}
	KUNIT_EXPECT_EQ(test, ep->nawaited, 0U);
	KUNIT_EXPECT_FALSE(test, scene->qp->tx_armed);
}

/* Completions that nobody waited for are there when somebody begins to wait. */
static void lazy_missed(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);

	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 1, 0), 0);
	lazy_done(scene->qp);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 2, FI_COMPLETION), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 1));
	efake_settle();
	KUNIT_EXPECT_TRUE(test, scene->qp->tx_armed);
	lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 2));
}

/* The ULP begins to wait for what is outstanding. */
static void lazy_expedite(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);

	fi_expedite(scene->ep);
	KUNIT_EXPECT_FALSE(test, scene->qp->tx_armed);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 2, 0), 0);
	fi_expedite(scene->ep);
	KUNIT_EXPECT_TRUE(test, scene->qp->tx_armed);
	lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 1));
	efake_settle();
	KUNIT_EXPECT_TRUE(test, scene->qp->tx_armed);
	lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 2));
	efake_settle();
	KUNIT_EXPECT_FALSE(test, scene->qp->tx_armed);
	/* One that ends before the call needs no event. */
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 3, 0), 0);
	lazy_done(scene->qp);
	fi_expedite(scene->ep);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 3));
}

/* Nobody waits for what is posted after the call, in whichever order all of it ends. */
static void lazy_expedites_one(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);

	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 1, 0), 0);
	fi_expedite(scene->ep);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 2, 0), 0);
	lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 1));
	efake_settle();
	KUNIT_EXPECT_FALSE(test, scene->qp->tx_armed);
	/* The third ends before the second, for which the ULP waits. */
	fi_expedite(scene->ep);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 3, 0), 0);
	efake_wr_done(efake_sent(scene->qp, 1), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 2));
	efake_settle();
	KUNIT_EXPECT_TRUE(test, scene->qp->tx_armed);
	/* It waits for the fourth, too, but not for the fifth. */
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 4, 0), 0);
	fi_expedite(scene->ep);
	lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 3));
	efake_settle();
	KUNIT_EXPECT_TRUE(test, scene->qp->tx_armed);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 5, 0), 0);
	lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 4));
	efake_settle();
	KUNIT_EXPECT_FALSE(test, scene->qp->tx_armed);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->tx_hurry, 0U);
}

/* Failures, and work requests that the device refuses. */
static void lazy_fails(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);

	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 2, FI_COMPLETION), 0);
	efake_wr_done(efake_sent(scene->qp, 0), 1);
	efake_wr_done(efake_sent(scene->qp, 0), 1);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 2));
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->nawaited, 0U);
	/* The device refuses a work request. */
	efake_fail(scene->fake, EFAKE_POST_SEND, 1, -EINVAL);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 3, FI_COMPLETION), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 3));
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->nawaited, 0U);
}

/* A send whose receiver isn't ready is waited for, so that it is soon resent, but no other is. */
static void lazy_rnr(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.handler = lazy_handler, .bind = FI_LAZY_COMPLETION, .idle = true,
	});
	size_t ms = 60000;
	int i;

	KUNIT_ASSERT_EQ(test, fi_setopt(&scene->ep->fid, FI_OPT_ENDPOINT, FI_OPT_RNR_TIMEOUT,
					&ms, sizeof(ms)), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	efake_settle();
	atomic_set(&got, 0);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 1, 0), 0);
	efake_wr_done(efake_sent(scene->qp, 0), KEFA_STATUS_RNR);
	lazy_idle(scene);
	for (i = 1; i <= 2; i++) {
		KUNIT_ASSERT_TRUE(test, kofi_soon(READ_ONCE(scene->qp->nsent)));
		efake_settle();
		KUNIT_EXPECT_TRUE(test, scene->qp->tx_armed);
		KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.rnr, (u64)i);
		/* The worker notices it at once. */
		if (i == 1)
			efake_wr_done(efake_sent(scene->qp, 0), KEFA_STATUS_RNR);
	}
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 2, 0), 0);
	lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 1));
	efake_settle();
	KUNIT_EXPECT_FALSE(test, scene->qp->tx_armed);
	KUNIT_EXPECT_EQ(test, to_kefa_direct(efa_ep(scene))->nrnr, 0U);
}

static void lazy_inject(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);

	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 8, scene->peer), 0);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 64, scene->peer), 0);
	lazy_done(scene->qp);
	lazy_done(scene->qp);
	lazy_idle(scene);
	KUNIT_EXPECT_EQ(test, scene->qp->tx_events, 0U);
	KUNIT_EXPECT_EQ(test, atomic_read(&got), 0);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->tx.nfree, efa_ep(scene)->tx.base.size);
}

/* A refused post is one that somebody waits for. */
static void lazy_again(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 2);

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	KUNIT_EXPECT_FALSE(test, scene->qp->tx_armed);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 3), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, scene->qp->tx_armed);
	lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&calls)));
	KUNIT_EXPECT_TRUE(test, kofi_soon(!efa_send(scene, 64, 3)));
	/* Both completions came before the post that is refused, and the worker is idle. */
	efake_settle();
	lazy_done(scene->qp);
	lazy_done(scene->qp);
	atomic_set(&calls, 0);
	while (!efa_send(scene, 64, 4))
		;
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&calls)));
	KUNIT_EXPECT_TRUE(test, kofi_soon(!efa_send(scene, 64, 4) || efake_sent(scene->qp, 1)));
}

/* Receives have reserved all entries: the ULP isn't told of room as long as there is none. */
static void lazy_full(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq = { .handler = lazy_handler, .size = 2 }, .bind = FI_LAZY_COMPLETION,
	});

	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 2), 0);
	atomic_set(&calls, 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 3), -EAGAIN);
	efake_settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&calls), 0);
	efake_recv_done(efake_recv(scene->qp, 0), &(struct kefa_wc) { });
	KUNIT_EXPECT_TRUE(test, kofi_soon(!efa_send(scene, 64, 3)));
}

/* A write in more pieces than there are slots: the next ones are posted when others end. */
static void lazy_pieces(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.handler = lazy_handler, .bind = FI_LAZY_COMPLETION, .tx_size = 4, .idle = true,
	});
	int i;

	scene->fake->max_map = SZ_8K;
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	efake_settle();
	atomic_set(&got, 0);
	KUNIT_EXPECT_EQ(test, efa_write(scene, EFA_BUF, 1), 0);
	KUNIT_EXPECT_EQ(test, scene->qp->nsent, 4U);
	KUNIT_EXPECT_TRUE(test, scene->qp->tx_armed);
	for (i = 0; i < EFA_BUF / SZ_8K; i++) {
		KUNIT_ASSERT_TRUE(test, kofi_soon(READ_ONCE(scene->qp->nsent)));
		lazy_done(scene->qp);
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 1));
}

/* A sleeping reader waits for what is flagged, and gets the rest, too. */
static void lazy_sleeper(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC, .bind = FI_LAZY_COMPLETION,
	});
	struct fi_cq_data_entry entry[2];
	ssize_t n, m = 0;

	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 2, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(scene->cq, entry, 2, NULL, 1), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, scene->qp->tx_armed);
	lazy_done(scene->qp);
	lazy_done(scene->qp);
	n = fi_cq_sread(scene->cq, entry, 2, NULL, KOFI_NEVER_MS);
	if (n == 1)
		m = fi_cq_sread(scene->cq, entry, 2, NULL, KOFI_NEVER_MS);
	KUNIT_EXPECT_EQ(test, n + m, 2);
	/* Nobody waits for this one, but a reader that sleeps gets it before long. */
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 3, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(scene->cq, entry, 2, NULL, 1), -EAGAIN);
	lazy_done(scene->qp);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(scene->cq, entry, 2, NULL, KOFI_NEVER_MS), 1);
}

static const struct counted {
	const char	*desc;
	u64		what;
	ssize_t		(*post)(struct efa_scene *scene, size_t len, long ctx);
} counteds[] = {
	{ "sends", FI_SEND, efa_send },
	{ "reads", FI_READ, efa_get },
	{ "writes", FI_WRITE, efa_write },
};

KUNIT_ARRAY_PARAM_DESC(counted, counteds, desc);

/* A counter, of whatever it is, counts at once, and no operation is late. */
static void lazy_counter(struct kunit *test)
{
	const struct counted *counted = test->param_value;
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC, .bind = FI_LAZY_COMPLETION, .idle = true,
	});
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;

	KUNIT_ASSERT_EQ(test, fi_cntr_open(scene->domain, &attr, &cntr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(scene->ep, &cntr->fid, counted->what), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	efake_settle();
	KUNIT_EXPECT_FALSE(test, efa_ep(scene)->split);
	/* A reader that polls isn't relied on to count. */
	KUNIT_EXPECT_FALSE(test, efa_ep(scene)->by_readers);
	KUNIT_EXPECT_EQ(test, counted->post(scene, 64, 1), 0);
	lazy_done(scene->qp);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(cntr, 1, KOFI_NEVER_MS), 0);
	KUNIT_EXPECT_EQ(test, efa_drain(scene), 1U);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr), 1ULL);
	EFA_CLOSE(test, scene->ep);
	EFA_CLOSE(test, cntr);
}

/* A send that the device has completed doesn't keep the last address handle of the device. */
static void lazy_handle(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);

	scene->fake->max_ahs = scene->fake->ahs;
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 1, 0), 0);
	lazy_done(scene->qp);
	KUNIT_EXPECT_EQ(test, fi_av_remove(scene->av, &scene->peer, 1, 0), 0);
	scene->peer = efa_insert(test, scene, 3, 7);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 2, 0), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 1));
}

/* Registrations of the endpoint are waited for, even if they have no completion. */
static void lazy_registers(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);
	struct fid_mr *mr = lazy_mr(test, scene, scene->ep, scene->cq);

	KUNIT_EXPECT_EQ(test, lazy_reg(scene, mr, FI_COMPLETION), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 1));
	scene->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, fi_mr_post_inval(mr, 0, NULL), 0);
	/* The worker may be about to arm the queue. */
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->qp->tx_armed)));
	scene->fake->manual_mr = false;
	lazy_done(scene->qp);
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->nawaited, 0U);
	KUNIT_EXPECT_EQ(test, lazy_reg(scene, mr, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->nawaited, 0U);
}

/* --- posts of handlers --- */

static struct efa_scene *poster;	/* posts after each completion but of what it has posted */

static void post_handler(struct fid_cq *cq, void *context)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry error = { };
	void *ctx;
	ssize_t n;

	for (;;) {
		n = fi_cq_read(cq, &entry, 1);
		ctx = n == 1 ? entry.op_context : NULL;
		if (n == -FI_EAVAIL)
			n = fi_cq_readerr(cq, &error, 0);
		if (n != 1)
			return;
		atomic_inc(&got);
		if (ctx != (void *)9 && poster)
			WARN_ON(lazy_msg(poster, 9, FI_COMPLETION));
	}
}

static struct efa_scene *poster_scene(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.handler = post_handler, .bind = FI_LAZY_COMPLETION,
	});

	KUNIT_ASSERT_TRUE(test, efa_ep(scene)->split);
	efake_settle();
	atomic_set(&got, 0);
	poster = scene;
	return scene;
}

/* The worker arms the queue for what its handlers have posted. */
static void lazy_handler_posts(struct kunit *test)
{
	struct efa_scene *scene = poster_scene(test);
	unsigned int i;

	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, i), 0);
	local_bh_disable();
	for (i = 0; i < 3; i++)
		efake_recv_done(efake_recv(scene->qp, 0), &(struct kefa_wc) { });
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->qp->nsent) == 3));
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->nawaited, 3U);
	KUNIT_EXPECT_TRUE(test, scene->qp->tx_armed);
	for (i = 0; i < 3; i++)
		lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 6));
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->nawaited, 0U);
	poster = NULL;
}

/* A handler is called after the queues were armed, for an error that the device didn't report. */
static void lazy_handler_posts_late(struct kunit *test)
{
	struct efa_scene *scene = poster_scene(test);

	efake_fail(scene->fake, EFAKE_POST_SEND, 1, -EINVAL);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 1, FI_COMPLETION), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->qp->nsent) == 1));
	efake_settle();
	KUNIT_EXPECT_TRUE(test, scene->qp->tx_armed);
	lazy_done(scene->qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 2));
	poster = NULL;
}

/* --- a queue for sends that nobody waits at --- */

static void two_polled(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);
	struct fi_cq_data_entry entry;
	struct lazy_two two = { };

	two_open(test, scene, &two, 0);
	KUNIT_EXPECT_EQ(test, fi_recv(two.ep, scene->buf, 64, NULL, FI_ADDR_UNSPEC, NULL), 0);
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
	lazy_done(two.qp);
	KUNIT_EXPECT_FALSE(test, work_pending(&to_kefa_ep(two.ep)->work));
	/* As if the event hadn't come yet: the reader leaves it to the handler. */
	two.qp->armed = false;
	efake_recv_done(efake_recv(two.qp, 0), &(struct kefa_wc) { });
	KUNIT_EXPECT_EQ(test, fi_cq_read(two.cq, &entry, 1), 1);
	KUNIT_EXPECT_EQ(test, fi_cq_read(two.cq, &entry, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, atomic_read(&calls), 0);
	efake_qp_event(two.qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 1));
	KUNIT_EXPECT_EQ(test, two.qp->tx_events, 0U);
	two_close(test, &two);
}

/* More endpoints with the queues of @two than readers poll. */
static void two_crowd(struct kunit *test, struct efa_scene *scene, struct lazy_two *two,
		      struct fid_ep *eps[4])
{
	int i;

	for (i = 0; i < 4; i++)
		eps[i] = efa_scene_apart(test, scene, scene->cq, &two->cq->fid, FI_TRANSMIT);
}

/* Readers of a queue with many endpoints don't poll these, so sends raise events. */
static void two_of_many(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);
	struct lazy_two two = { };
	struct fid_ep *eps[4];
	int i;

	two_open(test, scene, &two, 0);
	two_crowd(test, scene, &two, eps);
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
	KUNIT_EXPECT_TRUE(test, two.qp->tx_armed);
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
	for (i = 1; i <= 2; i++) {
		lazy_done(two.qp);
		KUNIT_EXPECT_TRUE(test, kofi_soon(to_kefa_ep(two.ep)->tx.nfree ==
						  to_kefa_ep(two.ep)->tx.base.size - 2 + i));
	}
	KUNIT_EXPECT_GE(test, two.qp->tx_events, 1U);
	for (i = 0; i < ARRAY_SIZE(eps); i++)
		KUNIT_EXPECT_EQ(test, fi_close(&eps[i]->fid), 0);
	two_close(test, &two);
}

/* With FI_LAZY_COMPLETION those do that have FI_COMPLETION. */
static void two_of_many_lazily(struct kunit *test)
{
	struct lazy_two two = { .bind = FI_LAZY_COMPLETION };
	struct efa_scene *scene = lazy_scene(test, 0);
	struct fid_ep *eps[4];
	int i;

	two_open(test, scene, &two, 0);
	two_crowd(test, scene, &two, eps);
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
	KUNIT_EXPECT_FALSE(test, two.qp->tx_armed);
	for (i = 1; i <= 2; i++)
		KUNIT_EXPECT_EQ(test, lazy_msg_on(two.ep, scene, i, FI_COMPLETION), 0);
	/* The worker arms the queue again as long as one of them is outstanding. */
	for (i = 1; i <= 3; i++) {
		KUNIT_EXPECT_TRUE(test, two.qp->tx_armed);
		lazy_done(two.qp);
		KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(to_kefa_ep(two.ep)->tx.nfree) ==
						  to_kefa_ep(two.ep)->tx.base.size - 3 + i));
		efake_settle();
	}
	KUNIT_EXPECT_EQ(test, two.qp->tx_events, 3U);
	KUNIT_EXPECT_EQ(test, to_kefa_ep(two.ep)->nawaited, 0U);
	for (i = 0; i < ARRAY_SIZE(eps); i++)
		KUNIT_EXPECT_EQ(test, fi_close(&eps[i]->fid), 0);
	two_close(test, &two);
}

/* The handler of the queue for receives is called when there is room. */
static void two_again(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 2);
	struct fi_cq_data_entry entry;
	struct lazy_two two = { };

	/* First slots are scarce, then entries. */
	two_open(test, scene, &two, 0);
	while (!two_send(scene, &two))
		;
	KUNIT_EXPECT_TRUE(test, two.qp->tx_armed);
	KUNIT_EXPECT_EQ(test, atomic_read(&calls), 0);
	lazy_done(two.qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&calls)));
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
	two_close(test, &two);

	efake_settle();
	atomic_set(&calls, 0);
	two_open(test, scene, &two, 1);
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, two.qp->tx_armed);
	lazy_done(two.qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&calls)));
	KUNIT_EXPECT_EQ(test, fi_cq_read(two.cq, &entry, 1), 1);
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
	/* Its completion is in the queue already when the next post is refused. */
	lazy_done(two.qp);
	flush_delayed_work(&to_kefa_ep(two.ep)->idle);
	efake_settle();
	atomic_set(&calls, 0);
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&calls)));
	two_close(test, &two);
}

/* An entry can be read, and nothing else will free one. */
static void two_again_unread(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 4);
	struct fi_cq_data_entry entry;
	struct lazy_two two = { };

	two_open(test, scene, &two, 2);
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
	lazy_done(two.qp);
	flush_delayed_work(&to_kefa_ep(two.ep)->idle);
	efake_settle();
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
	atomic_set(&calls, 0);
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&calls)));
	KUNIT_EXPECT_EQ(test, fi_cq_read(two.cq, &entry, 1), 1);
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
	two_close(test, &two);
}

/* The same for a queue that is bound with FI_LAZY_COMPLETION, as nobody can be told there. */
static void two_again_lazily(struct kunit *test)
{
	struct lazy_two two = { .bind = FI_LAZY_COMPLETION };
	struct efa_scene *scene = lazy_scene(test, 2);

	two_open(test, scene, &two, 0);
	while (!two_send(scene, &two))
		;
	KUNIT_EXPECT_TRUE(test, two.qp->tx_armed);
	lazy_done(two.qp);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&calls)));
	KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
	two_close(test, &two);
}

static void two_close_region(struct kofi_thread *thread)
{
	struct fid_mr *mr = thread->arg;

	thread->ret = fi_close(&mr->fid);
}

/* A region that is being closed waits for its endpoint's operation, even if no reader polls. */
static void two_registers(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);
	struct kofi_thread thread;
	struct lazy_two two = { };
	struct fid_mr *mr;

	two_open(test, scene, &two, 0);
	mr = lazy_mr(test, scene, two.ep, two.cq);
	scene->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, lazy_reg(scene, mr, 0), 0);
	KUNIT_EXPECT_FALSE(test, two.qp->tx_armed);
	kofi_thread_start(test, &thread, two_close_region, mr);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(to_kefa_ep(two.ep)->tx_hurry)));
	scene->fake->manual_mr = false;
	lazy_done(two.qp);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
	two_close(test, &two);
}

/* --- in softirqs --- */

/* Posts are refused while softirqs complete others; then the endpoint is closed, or removed. */
static void lazy_softly(struct kunit *test, bool remove)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq = { .handler = lazy_handler, .flags = FI_CQ_SOFTIRQ },
		.bind = FI_LAZY_COMPLETION, .tx_size = 4,
	});
	const unsigned long start = jiffies;
	unsigned int i;
	int sent = 0;

	KUNIT_ASSERT_TRUE(test, efa_ep(scene)->softirq && efa_ep(scene)->split);
	KUNIT_EXPECT_TRUE(test, kofi_soon(scene->qp->armed));
	atomic_set(&got, 0);
	for (i = 0; kofi_hunting(start, 200, i); i++) {
		while (!lazy_msg(scene, i, i % 3 ? 0 : FI_COMPLETION))
			sent++;
		while (efake_sent(scene->qp, 0))
			lazy_done(scene->qp);
		fi_expedite(scene->ep);
		KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == sent));
	}
	while (!lazy_msg(scene, i, 0))
		sent++;
	lazy_done(scene->qp);
	if (remove)
		efake_remove(scene->fake);
	else
		EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == sent));
}

static void lazy_soft_close(struct kunit *test)
{
	lazy_softly(test, false);
}

static void lazy_soft_remove(struct kunit *test)
{
	lazy_softly(test, true);
}

/* --- the end --- */

static void lazy_close(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);
	const unsigned long start = jiffies;
	struct lazy_two two = { };
	unsigned int i;
	int k;

	for (i = 0; kofi_hunting(start, 200, i); i++) {
		two_open(test, scene, &two, 0);
		for (k = 0; k < 4; k++)
			KUNIT_EXPECT_EQ(test, two_send(scene, &two), 0);
		lazy_done(two.qp);
		if (i % 2)
			efake_qp_event(two.qp);
		two_close(test, &two);
	}
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, lazy_msg(scene, i, i % 2 ? FI_COMPLETION : 0), 0);
	lazy_done(scene->qp);
	EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 4));
}

static void lazy_remove(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);
	int i;

	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, lazy_msg(scene, i, i % 2 ? FI_COMPLETION : 0), 0);
	lazy_done(scene->qp);
	efake_remove(scene->fake);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 4));
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), -ENODEV);
}

/* Whatever is outstanding ends when the endpoint is disabled, and later calls do nothing. */
static void lazy_disable(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);

	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 1, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 2, 0), 0);
	fi_expedite(scene->ep);
	KUNIT_EXPECT_EQ(test, fi_disable(scene->ep), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 2));
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->nawaited, 0U);
	fi_expedite(scene->ep);
	lazy_idle(scene);
	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 3, 0), -FI_EOPBADSTATE);
}

static void lazy_flush(struct kunit *test)
{
	struct efa_scene *scene = lazy_scene(test, 0);

	KUNIT_EXPECT_EQ(test, lazy_msg(scene, 1, 0), 0);
	lazy_done(scene->qp);
	KUNIT_EXPECT_EQ(test, fi_flush(scene->ep, scene->peer, KOFI_NEVER_MS), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&got) == 1));
}

static struct kunit_case lazy_cases[] = {
	KUNIT_CASE(lazy_told_later),
	KUNIT_CASE(lazy_told_at_last),
	KUNIT_CASE(lazy_but_awaited),
	KUNIT_CASE(lazy_missed),
	KUNIT_CASE(lazy_expedite),
	KUNIT_CASE(lazy_expedites_one),
	KUNIT_CASE(lazy_fails),
	KUNIT_CASE(lazy_rnr),
	KUNIT_CASE(lazy_inject),
	KUNIT_CASE(lazy_again),
	KUNIT_CASE(lazy_full),
	KUNIT_CASE(lazy_pieces),
	KUNIT_CASE(lazy_sleeper),
	KUNIT_CASE_PARAM(lazy_counter, counted_gen_params),
	KUNIT_CASE(lazy_handle),
	KUNIT_CASE(lazy_registers),
	KUNIT_CASE(lazy_handler_posts),
	KUNIT_CASE(lazy_handler_posts_late),
	KUNIT_CASE(two_polled),
	KUNIT_CASE(two_of_many),
	KUNIT_CASE(two_of_many_lazily),
	KUNIT_CASE(two_again),
	KUNIT_CASE(two_again_unread),
	KUNIT_CASE(two_again_lazily),
	KUNIT_CASE(two_registers),
	KUNIT_CASE(lazy_without_queue),
	KUNIT_CASE(lazy_close),
	KUNIT_CASE(lazy_remove),
	KUNIT_CASE(lazy_disable),
	KUNIT_CASE(lazy_flush),
	KUNIT_CASE(lazy_soft_close),
	KUNIT_CASE(lazy_soft_remove),
	{}
};

static struct kunit_suite lazy_suite = {
	.name = "kefa_lazy",
	.test_cases = lazy_cases,
};

kunit_test_suite(lazy_suite);
