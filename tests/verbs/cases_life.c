// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events, states under load, and the end of a queue pair.
 */
#include <linux/delay.h>

#include "conformance.h"

#define WAIT_MS		10000

static bool wait_events(struct ep *ep, int n, unsigned int ms)
{
	return wait_event_timeout(ep->wait, atomic_read(&ep->events) >= n,
				  msecs_to_jiffies(ms));
}

static void self_send(struct ct *ct)
{
	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 8, 1), 0);
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 8 }), 0);
}

/* One arming, one event, in hard interrupt context. */
static void event_once(struct ct *ct)
{
	struct ib_wc wc;

	EXPECT_EQ(ct, ep_arm(&ct->b, IB_CQ_NEXT_COMP), 0);
	EXPECT_EQ(ct, atomic_read(&ct->b.events), 0);
	self_send(ct);
	EXPECT(ct, wait_events(&ct->b, 1, WAIT_MS));
	EXPECT(ct, ct->b.hard_irq);
	self_send(ct);
	EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
	EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
	EXPECT(ct, !wait_events(&ct->b, 2, 100));
	EXPECT_EQ(ct, atomic_read(&ct->b.events), 1);
}

static void solicited_refused(struct ct *ct)
{
	EXPECT_EQ(ct, ep_arm(&ct->b, IB_CQ_SOLICITED), -EOPNOTSUPP);
}

/* What came before the arming makes no event, but can be asked for. */
static void missed_events(struct ct *ct)
{
	struct ib_wc wc;

	EXPECT_EQ(ct, ep_arm(&ct->b, IB_CQ_NEXT_COMP |
			     IB_CQ_REPORT_MISSED_EVENTS), 0);
	self_send(ct);
	EXPECT(ct, wait_events(&ct->b, 1, WAIT_MS));
	EXPECT_EQ(ct, ep_arm(&ct->b, IB_CQ_NEXT_COMP |
			     IB_CQ_REPORT_MISSED_EVENTS), 1);
	EXPECT(ct, !wait_events(&ct->b, 2, 100));
	EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
	EXPECT_EQ(ct, ep_arm(&ct->b, IB_CQ_NEXT_COMP |
			     IB_CQ_REPORT_MISSED_EVENTS), 0);
}

static void no_handler_no_events(struct ct *ct)
{
	struct ib_wc wc;

	EXPECT_EQ(ct, ep_arm(&ct->b, IB_CQ_NEXT_COMP), 0);
	self_send(ct);
	EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
	EXPECT(ct, !wait_events(&ct->b, 1, 100));
}

/* Arm, look again, sleep: nothing is ever missed. */
static void no_lost_completion(struct ct *ct)
{
	unsigned int i, n = min(ct->messages, 1000U);
	struct ib_wc wc;
	int seen = 0;

	for (i = 0; i < n && !ct->failed; i++) {
		self_send(ct);
		while (ep_poll(&ct->b, &wc, 1) != 1) {
			seen = atomic_read(&ct->b.events);
			if (ep_arm(&ct->b, IB_CQ_NEXT_COMP |
				   IB_CQ_REPORT_MISSED_EVENTS) > 0)
				continue;
			if (!EXPECT(ct, wait_events(&ct->b, seen + 1,
						    WAIT_MS)))
				return;
		}
		EXPECT(ct, ep_wait(&ct->a, &wc, WAIT_MS));
	}
	EXPECT_EQ(ct, i, n);
}

/* Requests posted in SQD wait for RTS. */
static void sqd_waits(struct ct *ct)
{
	struct ib_wc wc;

	EXPECT_EQ(ct, ib_modify_qp(ct->a.qp, &(struct ib_qp_attr) {
		.qp_state = IB_QPS_SQD }, IB_QP_STATE), 0);
	self_send(ct);
	EXPECT(ct, !ep_wait(&ct->b, &wc, 1000));
	EXPECT_EQ(ct, ib_modify_qp(ct->a.qp, &(struct ib_qp_attr) {
		.qp_state = IB_QPS_RTS }, IB_QP_STATE), 0);
	EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
	EXPECT(ct, ep_wait(&ct->a, &wc, WAIT_MS));
}

/* ERR says nothing about what was outstanding. */
static void err_flushes_nothing(struct ct *ct)
{
	struct ib_wc wc;
	int i;

	for (i = 0; i < 4; i++)
		EXPECT_EQ(ct, ep_recv(&ct->a, EP_RX, 8, i), 0);
	/* It waits for a receive that never comes. */
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 8 }), 0);
	msleep(20);
	EXPECT_EQ(ct, ep_modify(&ct->a, IB_QPS_ERR, 0), 0);
	EXPECT(ct, !ep_wait(&ct->a, &wc, 300));
}

/* To a queue pair in ERR nothing gets. */
static void err_is_unreachable(struct ct *ct)
{
	struct ib_wc wc;

	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 8, 1), 0);
	EXPECT_EQ(ct, ep_modify(&ct->b, IB_QPS_ERR, 0), 0);
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 8 }), 0);
	EXPECT(ct, ep_wait(&ct->a, &wc, WAIT_MS));
	EXPECT_EQ(ct, wc.vendor_err, ST_BAD_QPN);
}

/* A completion of a destroyed queue pair costs the poller one -EINVAL. */
static void destroyed_qp_costs_a_poll(struct ct *ct)
{
	struct ib_wc left;
	int i;

	/* Two send completions lie there unpolled: an event has told of each. */
	for (i = 1; i <= 2; i++) {
		EXPECT_EQ(ct, ep_arm(&ct->a, IB_CQ_NEXT_COMP), 0);
		self_send(ct);
		EXPECT(ct, wait_events(&ct->a, i, WAIT_MS));
	}
	EXPECT_EQ(ct, ib_destroy_qp(ct->a.qp), 0);
	ct->a.qp = NULL;
	EXPECT_EQ(ct, ep_poll(&ct->a, &left, 1), -EINVAL);
	EXPECT_EQ(ct, ep_poll(&ct->a, &left, 1), -EINVAL);
	EXPECT_EQ(ct, ep_poll(&ct->a, &left, 1), 0);
}

/* What was outstanding when a queue pair went never touches anything again. */
static void destroy_with_work(struct ct *ct)
{
	struct ib_wc wc;
	int i;

	for (i = 0; i < 8; i++) {
		EXPECT_EQ(ct, ep_recv(&ct->a, EP_RX, 64, i), 0);
		EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
			.op = IB_WR_SEND, .len = 8 }), 0);
	}
	EXPECT_EQ(ct, ib_destroy_qp(ct->a.qp), 0);
	ct->a.qp = NULL;
	EXPECT(ct, !ep_wait(&ct->a, &wc, 200));
	/* The late ones find nobody to answer, and do no harm. */
	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 8, 1), 0);
	msleep(200);
}

/* RESET empties the queues; what was posted never completes. */
static void reset_forgets(struct ct *ct)
{
	struct ib_wc wc;

	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 8, 1), 0);
	EXPECT_EQ(ct, ep_modify(&ct->b, IB_QPS_RESET, 0), 0);
	EXPECT_EQ(ct, ep_to_rts(&ct->b, 7), 0);
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 8 }), 0);
	EXPECT(ct, !ep_wait(&ct->b, &wc, 100));
	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 8, 2), 0);
	EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
	EXPECT_EQ(ct, wc.wr_id, 2);
}

const struct test_case life_cases[] = {
	{ "event_once", event_once },
	{ "solicited_refused", solicited_refused },
	{ "missed_events", missed_events },
	{ "no_handler_no_events", no_handler_no_events, { .no_handler = true } },
	{ "no_lost_completion", no_lost_completion },
	{ "sqd_waits", sqd_waits },
	{ "err_flushes_nothing", err_flushes_nothing, { .rnr_retry = 7 } },
	{ "err_is_unreachable", err_is_unreachable },
	{ "destroyed_qp_costs_a_poll", destroyed_qp_costs_a_poll },
	{ "destroy_with_work", destroy_with_work, { .rnr_retry = 7 } },
	{ "reset_forgets", reset_forgets, { .rnr_retry = 7 } },
	{ }
};
