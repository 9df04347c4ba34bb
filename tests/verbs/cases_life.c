// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events, states under load, and destruction of queue pairs.
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

/* Each arming causes one event, in hard interrupt context. */
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

/* Arming reports entries that are already there; they may also cause an event. */
static void missed_events(struct ct *ct)
{
	struct ib_wc wc;

	EXPECT_EQ(ct, ep_arm(&ct->b, IB_CQ_NEXT_COMP |
			     IB_CQ_REPORT_MISSED_EVENTS), 0);
	self_send(ct);
	EXPECT(ct, wait_events(&ct->b, 1, WAIT_MS));
	EXPECT_EQ(ct, ep_arm(&ct->b, IB_CQ_NEXT_COMP |
			     IB_CQ_REPORT_MISSED_EVENTS), 1);
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

/* A reader that arms, polls again and then sleeps misses no completion. */
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

/* In ERR each outstanding request is flushed once or never completes. */
static void err_may_flush(struct ct *ct)
{
	struct ib_wc wc;
	u64 ids = 0;
	int i;

	for (i = 0; i < 4; i++)
		EXPECT_EQ(ct, ep_recv(&ct->a, EP_RX, 8, i), 0);
	/* This send waits for a receive that is never posted. */
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 8, .id = 4 }), 0);
	msleep(20);
	EXPECT_EQ(ct, ep_modify(&ct->a, IB_QPS_ERR, 0), 0);
	while (ep_wait(&ct->a, &wc, 300)) {
		EXPECT_EQ(ct, wc.status, IB_WC_WR_FLUSH_ERR);
		if (!EXPECT(ct, wc.wr_id <= 4 && !(ids & BIT(wc.wr_id))))
			return;
		ids |= BIT(wc.wr_id);
	}
	ct_printf("# %lu of 5 requests flushed\n", hweight64(ids));
}

/* A queue pair in ERR receives nothing. */
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

/*
 * A completion of a destroyed queue pair makes one poll fail with -EINVAL, as long as
 * another queue pair uses the queue.
 */
static void destroyed_qp_costs_a_poll(struct ct *ct)
{
	struct ib_qp *other;
	struct ib_wc left;
	int i;

	other = ep_another_qp(&ct->a);
	if (!EXPECT_EQ(ct, PTR_ERR_OR_ZERO(other), 0))
		return;

	/* Leave two send completions unpolled, each of which has caused an event. */
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
	EXPECT_EQ(ct, ib_destroy_qp(other), 0);
}

/* Without a queue pair nothing is polled; the next queue pair gets the old entries. */
static void no_qp_no_completions(struct ct *ct)
{
	struct ib_qp *other;
	struct ib_wc left;
	int i;

	for (i = 1; i <= 2; i++) {
		EXPECT_EQ(ct, ep_arm(&ct->a, IB_CQ_NEXT_COMP), 0);
		self_send(ct);
		EXPECT(ct, wait_events(&ct->a, i, WAIT_MS));
	}
	EXPECT_EQ(ct, ib_destroy_qp(ct->a.qp), 0);
	ct->a.qp = NULL;
	EXPECT_EQ(ct, ep_poll(&ct->a, &left, 1), 0);
	other = ep_another_qp(&ct->a);
	if (!EXPECT_EQ(ct, PTR_ERR_OR_ZERO(other), 0))
		return;
	EXPECT_EQ(ct, ep_poll(&ct->a, &left, 1), -EINVAL);
	EXPECT_EQ(ct, ep_poll(&ct->a, &left, 1), -EINVAL);
	EXPECT_EQ(ct, ep_poll(&ct->a, &left, 1), 0);
	EXPECT_EQ(ct, ib_destroy_qp(other), 0);
}

/* Wait until the peer has two completions. Those of this end follow soon. */
static void two_at_peer(struct ct *ct)
{
	struct ib_wc wc;

	EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
	EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
	msleep(300);
}

/*
 * Sends and receives complete to one ring. On devices of the first generation each have their
 * own, and these are polled in turn.
 */
static void poll_order(struct ct *ct)
{
	bool in_turn = ct->dev_a->attrs.vendor_part_id == FIRST_PART_ID;
	struct ib_wc wc[4];
	int i;

	for (i = 0; i < 2; i++) {
		EXPECT_EQ(ct, ep_recv(&ct->a, EP_RX, 8, i), 0);
		EXPECT_EQ(ct, ep_post(&ct->b, &(struct req) {
			.op = IB_WR_SEND, .len = 8 }), 0);
	}
	two_at_peer(ct);
	self_send(ct);
	self_send(ct);
	two_at_peer(ct);
	if (!EXPECT_EQ(ct, ep_poll(&ct->a, wc, 4), 4))
		return;
	for (i = 1; i < 4; i++)
		EXPECT_EQ(ct, (wc[i].opcode == IB_WC_RECV) !=
			      (wc[i - 1].opcode == IB_WC_RECV), in_turn || i == 2);
	EXPECT(ct, in_turn || wc[0].opcode == IB_WC_RECV);
}

/* Work outstanding when a queue pair is destroyed never accesses memory afterwards. */
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
	/* Late messages to the destroyed queue pair have no effect. */
	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 8, 1), 0);
	msleep(200);
}

const struct test_case life_cases[] = {
	{ "event_once", event_once, BOTH },
	{ "solicited_refused", solicited_refused, DRIVER },
	{ "missed_events", missed_events, BOTH },
	{ "no_handler_no_events", no_handler_no_events, DRIVER,
	  { .no_handler = true } },
	{ "no_lost_completion", no_lost_completion, BOTH },
	{ "sqd_waits", sqd_waits, DEVICE },
	{ "err_may_flush", err_may_flush, DEVICE, { .rnr_retry = 7 } },
	{ "err_is_unreachable", err_is_unreachable, DEVICE },
	{ "destroyed_qp_costs_a_poll", destroyed_qp_costs_a_poll, DRIVER },
	{ "no_qp_no_completions", no_qp_no_completions, DRIVER },
	{ "poll_order", poll_order, BOTH, { .rnr_retry = 7 } },
	{ "destroy_with_work", destroy_with_work, BOTH, { .rnr_retry = 7 } },
	{ }
};
