// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ends of connections of kofi_rc: nothing is flushed while memory can be reached, and then
 * everything is, in order.
 */
#include <linux/iopoll.h>
#include <linux/string.h>
#include "crew.h"
#include "rc_scene.h"

static bool flushed(const struct rc_side *s)
{
	return completion_done((struct completion *)&s->c.flushed);
}

/* The end begins in a work item, which may have to wait for a CPU. */
#define SOON_US		(30 * USEC_PER_SEC)

/* Some time, in which a connection that must not be flushed would be. */
static void a_while(void)
{
	synchronize_rcu();
	msleep(30);
}

/* A connection that was never opened: its receives are flushed at once. */
static void stop_new(struct kunit *test)
{
	rc_recv(&rc->a, 1, rc->a.memory, 100);
	rc_recv(&rc->a, 2, rc->a.memory, 100);
	krc_stop(&rc->a.c, KRC_BY_ULP, 0);
	krc_wait_flushed(&rc->a.c);
	KUNIT_EXPECT_EQ(test, rc->a.n, 2U);
	RC_EXPECT(test, &rc->a, 0, 1, -ECANCELED);
	RC_EXPECT(test, &rc->a, 1, 2, -ECANCELED);
	KUNIT_EXPECT_EQ(test, rc->a.stops, 1U);
	KUNIT_EXPECT_EQ(test, rc->a.flushes, 1U);
	KUNIT_EXPECT_EQ(test, rc->a.notified, 1U);
}

/* Requests that are posted after the end are flushed at once, signaled or not. */
static void stop_drain(struct kunit *test)
{
	const struct krc_swr w = { .id = 1, .op = KRC_OP_WRITE };
	unsigned int notified;

	rc_connect(test);
	krc_stop(&rc->a.c, KRC_BY_ULP, 0);
	krc_wait_flushed(&rc->a.c);
	notified = rc->a.notified;
	rc_post(&rc->a, &w, NULL);
	rc_recv(&rc->a, 2, rc->a.memory, 0);
	RC_EXPECT(test, &rc->a, 0, 1, -ECANCELED);
	RC_EXPECT(test, &rc->a, 1, 2, -ECANCELED);
	KUNIT_EXPECT_EQ(test, rc->a.notified, notified + 2);
}

/* A datagram is being sent from the ULP's memory: its request is flushed when that has ended. */
static void stop_while_sending(struct kunit *test)
{
	unsigned int stops;

	rc_connect(test);
	rc_recv(&rc->b, 1, rc->b.memory, 4096);
	rc_all();
	rc_send(&rc->a, 2, rc->a.memory, 4000);
	rc_send(&rc->a, 3, rc->a.memory, 4000);
	KUNIT_ASSERT_EQ(test, rc->a.nsent, 1U);
	krc_stop(&rc->a.c, KRC_BY_ULP, 0);
	a_while();
	/* The drain of a ULP comes behind. */
	rc_write(&rc->a, 4, NULL, 0, 0, 0);
	a_while();
	KUNIT_EXPECT_EQ(test, rc->a.n, 0U);
	KUNIT_EXPECT_EQ(test, read_poll_timeout(READ_ONCE, stops, stops == 1, 1000, SOON_US, false,
						rc->a.stops), 0);
	KUNIT_EXPECT_FALSE(test, flushed(&rc->a));
	rc_arrive(&rc->a, 0);
	krc_wait_flushed(&rc->a.c);
	/* The message that was sent has succeeded. */
	KUNIT_EXPECT_EQ(test, rc->a.n, 3U);
	RC_EXPECT(test, &rc->a, 0, 2, 0);
	RC_EXPECT(test, &rc->a, 1, 3, -ECANCELED);
	RC_EXPECT(test, &rc->a, 2, 4, -ECANCELED);
}

/* Under memory pressure a workqueue has one thread: the end of a connection doesn't hold others. */
static void stop_holds_nobody(struct kunit *test)
{
	struct krc_swr *w;

	workqueue_set_max_active(krc_wq, 1);
	workqueue_set_max_active(krc_stop_wq, 1);
	rc_connect(test);
	rc_recv(&rc->b, 1, rc->b.memory, 4096);
	rc_recv(&rc->a, 2, rc->a.memory + 8192, 4096);
	rc_all();
	rc_send(&rc->a, 3, rc->a.memory, 4000);
	krc_stop(&rc->a.c, KRC_BY_ULP, 0);
	a_while();
	KUNIT_EXPECT_FALSE(test, flushed(&rc->a));
	/* As from a completion in hard IRQ. */
	spin_lock_irq(&rc->b.c.lock);
	w = krc_sq_next(&rc->b.c);
	w->op = KRC_OP_SEND;
	rc->b.c.head++;
	spin_unlock_irq(&rc->b.c.lock);
	krc_conn_kick(&rc->b.c);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(rc->b.nsent)));
	rc_arrive(&rc->a, 0);
	krc_wait_flushed(&rc->a.c);
	workqueue_set_max_active(krc_wq, 0);
	workqueue_set_max_active(krc_stop_wq, 0);
}

/* A read is being served from a region, which is free only when its datagrams have ended. */
static void stop_while_serving(struct kunit *test)
{
	enum krc_mr_state state;
	struct krc_mr *mr;

	rc_connect(test);
	mr = rc_mr(test, &rc->b, rc->b.memory, 4);
	rc_reg(&rc->b, 1, mr, 0, 16384, KRC_ACCESS_REMOTE_READ);
	rc_read(&rc->a, 2, rc->a.memory, 9000, rc_key(mr), 0);
	rc_arrive(&rc->a, 0);
	KUNIT_ASSERT_EQ(test, rc->b.nsent, 3U);
	krc_stop(&rc->b.c, KRC_BY_ULP, 0);
	a_while();
	KUNIT_EXPECT_EQ(test, read_poll_timeout(READ_ONCE, state, state == KRC_MR_INVALIDATING,
						1000, SOON_US, false, mr->state), 0);
	rc_inval(&rc->b, 3, rc_key(mr));
	while (rc->b.nsent) {
		KUNIT_EXPECT_FALSE(test, flushed(&rc->b));
		KUNIT_EXPECT_EQ(test, rc->b.n, 1U);
		rc_arrive(&rc->b, 0);
	}
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, mr->state, KRC_MR_FREE);
	KUNIT_EXPECT_NULL(test, mr->conn);
	RC_EXPECT(test, &rc->b, 1, 3, -ECANCELED);
}

/* After the end nothing is placed: memory keeps what it had. */
static void stop_and_late_datagrams(struct kunit *test)
{
	struct krc_mr *mr;

	rc_connect(test);
	memset(rc->b.memory, 0x5a, RC_MEMORY);
	mr = rc_mr(test, &rc->b, rc->b.memory, 1);
	rc_reg(&rc->b, 1, mr, 0, 4096, KRC_ACCESS_REMOTE_WRITE);
	rc_recv(&rc->b, 2, rc->b.memory + 8192, 512);
	rc_all();
	rc_write(&rc->a, 3, rc->a.memory, 512, rc_key(mr), 0);
	rc_send(&rc->a, 4, rc->a.memory, 512);
	KUNIT_ASSERT_EQ(test, rc->a.nsent, 2U);
	krc_stop(&rc->b.c, KRC_BY_ULP, 0);
	krc_wait_flushed(&rc->b.c);
	RC_EXPECT(test, &rc->b, 1, 2, -ECANCELED);
	rc_arrive(&rc->a, 0);
	rc_arrive(&rc->a, 0);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(rc->b.memory, 0x5a, RC_MEMORY), NULL);
	KUNIT_EXPECT_EQ(test, rc->b.n, 2U);
}

/* A message that has come early isn't delivered any more, and its receive is flushed. */
static void stop_with_early_message(struct kunit *test)
{
	rc_connect(test);
	rc_recv(&rc->b, 1, rc->b.memory, 512);
	rc_recv(&rc->b, 2, rc->b.memory, 512);
	rc_all();
	rc->a.c.peer_credits = 2;
	rc_send(&rc->a, 3, rc->a.memory, 100);
	rc_send(&rc->a, 4, rc->a.memory, 100);
	rc_arrive(&rc->a, 1);
	krc_stop(&rc->b.c, KRC_BY_PEER, 0);
	krc_wait_flushed(&rc->b.c);
	rc_arrive(&rc->a, 0);
	KUNIT_EXPECT_EQ(test, rc->b.n, 2U);
	RC_EXPECT(test, &rc->b, 0, 1, -ECANCELED);
	RC_EXPECT(test, &rc->b, 1, 2, -ECANCELED);
}

/* A datagram can't be sent: its request has the error, all others are flushed. */
static void datagram_fails(struct kunit *test)
{
	unsigned int i;

	rc_connect(test);
	for (i = 0; i < 3; i++)
		rc_recv(&rc->b, i, rc->b.memory, 512);
	rc_all();
	rc->a.c.peer_credits = 3;
	for (i = 0; i < 4; i++)
		rc_send(&rc->a, 10 + i, rc->a.memory, 100);
	rc_end(&rc->a, rc_nth(&rc->a, 1), -EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, rc->a.c.state, KRC_STOPPED);
	rc_arrive(&rc->a, 1);
	rc_arrive(&rc->a, 0);
	krc_wait_flushed(&rc->a.c);
	KUNIT_EXPECT_EQ(test, rc->a.cause, KRC_BY_FAULT);
	KUNIT_EXPECT_EQ(test, rc->a.n, 4U);
	RC_EXPECT(test, &rc->a, 0, 10, 0);
	RC_EXPECT(test, &rc->a, 1, 11, -EHOSTUNREACH);
	RC_EXPECT(test, &rc->a, 2, 12, -ECANCELED);
	RC_EXPECT(test, &rc->a, 3, 13, -ECANCELED);
}

/* Many causes at a time: there is one end, for the first of them. */
static void stop_once(struct kunit *test)
{
	rc_connect(test);
	krc_stop(&rc->a.c, KRC_BY_PEER, -ECONNRESET);
	krc_stop(&rc->a.c, KRC_BY_ULP, 0);
	krc_stop(&rc->a.c, KRC_BY_REMOVAL, -ENODEV);
	krc_wait_flushed(&rc->a.c);
	krc_stop(&rc->a.c, KRC_BY_ULP, 0);
	flush_work(&rc->a.c.stop_work);
	KUNIT_EXPECT_EQ(test, rc->a.stops, 1U);
	KUNIT_EXPECT_EQ(test, rc->a.flushes, 1U);
	KUNIT_EXPECT_EQ(test, rc->a.cause, KRC_BY_PEER);
}

/* A datagram doesn't end: the device is given up, and then everything is flushed. */
static void datagram_never_ends(struct kunit *test)
{
	rc_connect(test);
	krc_revoke_ms = 50;
	rc_recv(&rc->b, 1, rc->b.memory, 4096);
	rc_all();
	rc_send(&rc->a, 2, rc->a.memory, 4000);
	krc_stop(&rc->a.c, KRC_BY_ULP, 0);
	krc_wait_flushed(&rc->a.c);
	KUNIT_EXPECT_EQ(test, rc->a.lost, 1U);
	RC_EXPECT(test, &rc->a, 0, 2, -ENODEV);
}

/* A connection that waits for a datagram to be free ends. */
static void stop_while_starved(struct kunit *test)
{
	LIST_HEAD(taken);

	rc_connect(test);
	rc_recv(&rc->b, 1, rc->b.memory, 4096);
	rc_all();
	rc_take_bufs(&rc->a, &taken, 0);
	rc_send(&rc->a, 2, rc->a.memory, 10);
	KUNIT_EXPECT_FALSE(test, list_empty(&rc->a.q.starved));
	krc_stop(&rc->a.c, KRC_BY_ULP, 0);
	krc_wait_flushed(&rc->a.c);
	KUNIT_EXPECT_TRUE(test, list_empty(&rc->a.q.starved));
	RC_EXPECT(test, &rc->a, 0, 2, -ECANCELED);
	rc_give_bufs(&rc->a, &taken);
}

/* A connection ends that was to have a free datagram: the next one gets it. */
static void stop_while_fed(struct kunit *test)
{
	struct rc_side *has, *waits;
	LIST_HEAD(taken);

	rc_connect(test);
	rc_recv(&rc->b, 1, rc->b.memory, 4096);
	rc_all();
	has = rc_another(test, &rc->a);
	waits = rc_another(test, &rc->a);
	rc_take_bufs(&rc->a, &taken, 1);
	rc_send(has, 1, rc->a.memory, 10);
	rc_send(&rc->a, 2, rc->a.memory, 10);
	rc_send(waits, 3, rc->a.memory, 10);
	KUNIT_EXPECT_EQ(test, rc->a.nsent + waits->nsent, 0U);
	/* Until the grace period is over, the connection is among those that wait. */
	rcu_read_lock();
	krc_stop(&rc->a.c, KRC_BY_ULP, 0);
	rc_end(has, rc_nth(has, 0), 0);
	rcu_read_unlock();
	krc_wait_flushed(&rc->a.c);
	rc_runs();
	KUNIT_EXPECT_EQ(test, waits->nsent, 1U);
	rc_give_bufs(&rc->a, &taken);
}

/* A connection can't be opened after its end, and isn't found by datagrams. */
static void opened_too_late(struct kunit *test)
{
	const struct krc_peer peer = {
		.queue = &rc->a.q, .max_msg = 4608,
		.side = { .cookie = 1, .datagram = 4608, .window = 64 },
	};

	KUNIT_ASSERT_EQ(test, krc_conn_prepare(&rc->a.c, 4, 4), 0);
	KUNIT_EXPECT_EQ(test, krc_conn_prepare(&rc->a.c, 4, 4), -EISCONN);
	krc_stop(&rc->a.c, KRC_BY_ULP, 0);
	krc_wait_flushed(&rc->a.c);
	KUNIT_EXPECT_EQ(test, krc_conn_open(&rc->a.c, &peer, true), -ENOTCONN);
	rcu_read_lock();
	KUNIT_EXPECT_NULL(test, krc_conn_find(&rc->a.q, rc->a.c.cookie));
	rcu_read_unlock();
}

/* A connection that was stopped isn't set up any more, and takes no cookie. */
static void prepared_too_late(struct kunit *test)
{
	krc_stop(&rc->a.c, KRC_BY_ULP, 0);
	krc_wait_flushed(&rc->a.c);
	KUNIT_EXPECT_EQ(test, krc_conn_prepare(&rc->a.c, 4, 4), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, rc->a.c.cookie, 0ULL);
}

/* The end begins from a completion, while datagrams arrive. */
static void stop_under_load(struct kunit *test)
{
	unsigned int i;

	rc_connect(test);
	for (i = 0; i < RC_RECVS; i++)
		rc_recv(&rc->b, i, rc->b.memory, 4096);
	rc_all();
	rc->a.c.peer_credits = RC_RECVS;
	for (i = 0; i < RC_RECVS; i++)
		rc_send(&rc->a, i, rc->a.memory, 4000);
	for (i = 0; rc->a.nsent; i++) {
		if (i == 5)
			krc_stop(&rc->b.c, KRC_BY_ULP, 0);
		if (i == 8)
			krc_stop(&rc->a.c, KRC_BY_PEER, 0);
		rc_arrive(&rc->a, rc->a.nsent / 2);
	}
	krc_wait_flushed(&rc->a.c);
	krc_wait_flushed(&rc->b.c);
	KUNIT_EXPECT_EQ(test, rc->a.n, RC_RECVS + 0U);
	KUNIT_EXPECT_EQ(test, rc->b.n, RC_RECVS + 0U);
	for (i = 0; i < RC_RECVS; i++) {
		KUNIT_EXPECT_EQ(test, rc->a.log[i].id, i);
		KUNIT_EXPECT_EQ(test, rc->b.log[i].id, i);
	}
}

static struct kunit_case revoke_cases[] = {
	KUNIT_CASE(stop_new),
	KUNIT_CASE(stop_drain),
	KUNIT_CASE(stop_while_sending),
	KUNIT_CASE(stop_holds_nobody),
	KUNIT_CASE(stop_while_serving),
	KUNIT_CASE(stop_and_late_datagrams),
	KUNIT_CASE(stop_with_early_message),
	KUNIT_CASE(datagram_fails),
	KUNIT_CASE(stop_once),
	KUNIT_CASE(datagram_never_ends),
	KUNIT_CASE(stop_while_starved),
	KUNIT_CASE(stop_while_fed),
	KUNIT_CASE(opened_too_late),
	KUNIT_CASE(prepared_too_late),
	KUNIT_CASE(stop_under_load),
	{}
};

static struct kunit_suite revoke_suite = {
	.name		= "kofi_rc_revoke",
	.init		= rc_scene_init,
	.exit		= rc_scene_exit,
	.suite_init	= rc_suite_init,
	.suite_exit	= rc_suite_exit,
	.test_cases	= revoke_cases,
};

kunit_test_suite(revoke_suite);
