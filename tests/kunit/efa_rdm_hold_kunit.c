// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: what a peer holds of the endpoint, and for how long: receives and operations of
 * messages that it doesn't finish, entries of the completion queue, send slots, the worker.
 */
#include "crew.h"
#include "efa_rdm_villain.h"

static ssize_t post_multi(struct rdm_pair *pair, size_t len, long ctx)
{
	struct kvec iov = { pair->in, len };
	struct fi_msg msg = { .addr = FI_ADDR_UNSPEC, .context = (void *)ctx };

	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, iov.iov_len);
	return fi_recvmsg(pair->end[1].ep, &msg, FI_MULTI_RECV);
}

static ssize_t send(struct rdm_pair *pair, size_t len, long ctx)
{
	return fi_send(pair->end[0].ep, pair->out, len, NULL, pair->end[0].peer, (void *)ctx);
}

/* --- multi-receive buffers --- */

/* Messages that a stranger doesn't finish don't use up the entries of the completion queue. */
static void hold_entries(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const struct villain v = villain(0);
	struct villain_pkt pkt = { .type = KEFA_MEDIUM_MSGRTM_PKT, .total = 2, .len = 1 };
	u32 i;

	KUNIT_EXPECT_EQ(test, post_multi(pair, SZ_64K, 1), 0);
	for (i = 0; i < KEFA_CQ_RESERVE; i++) {
		pkt.msg_id = i;
		pkt.raw = !i;
		villain_says(pair, &v, &pkt);
	}
	KUNIT_EXPECT_EQ(test, rdm->fair.begun, (u32)KEFA_RDM_SPARE_OPS / 2);
	KUNIT_EXPECT_EQ(test, send(pair, 8, 2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 8);
	rdm_expect(test, &pair->end[1], 1, 8);
	/* The stranger finishes its first message. The others go on. */
	pkt.msg_id = 0;
	pkt.off = 1;
	villain_says(pair, &v, &pkt);
	rdm_expect(test, &pair->end[1], 1, 2);
	KUNIT_EXPECT_EQ(test, rdm->fair.begun, (u32)KEFA_RDM_SPARE_OPS / 2);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
}

/* Messages that have arrived wait for room in the completion queue, and keep their order. */
static void hold_untold(struct kunit *test)
{
	const u32 count = KEFA_CQ_RESERVE + 40;
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct rdm_comp comp;
	u32 i, sent = 0, got = 0;

	/* Each buffer has room for eight messages. */
	rdm->min_multi = 1;
	for (i = 0; i < count / 8; i++)
		KUNIT_EXPECT_EQ(test, post_multi(pair, 64, 100 + i), 0);
	for (i = 0; i < count; i++) {
		KUNIT_EXPECT_EQ(test, send(pair, 8, 2), 0);
		rdm_run(pair);
		sent += rdm_read(&pair->end[0]).ret == 1;
	}
	KUNIT_EXPECT_EQ(test, sent, count);
	KUNIT_EXPECT_FALSE(test, list_empty(&rdm->fair.untold));
	KUNIT_EXPECT_GT(test, rdm->stats.starved, 0ULL);
	/* They have arrived, so the death of their sender changes nothing. */
	spin_lock_bh(&rdm->ep.lock);
	kefa_rdm_kill(rdm, kefa_peers_at(&rdm->peers, pair->end[1].peer), ECONNRESET, 0);
	spin_unlock_bh(&rdm->ep.lock);
	while ((comp = rdm_read(&pair->end[1])).ret == 1) {
		KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, 100L + got / 8);
		KUNIT_EXPECT_EQ(test, comp.entry.len, 8UL);
		KUNIT_EXPECT_EQ(test, comp.src, pair->end[1].peer);
		KUNIT_EXPECT_EQ(test, !!(comp.entry.flags & FI_MULTI_RECV), got % 8 == 7);
		got++;
		efake_settle_all();
	}
	KUNIT_EXPECT_EQ(test, got, count);
	KUNIT_EXPECT_TRUE(test, list_empty(&rdm->fair.untold));
	KUNIT_EXPECT_EQ(test, rdm->rops.used, 0U);
}

/* The endpoint is closed while messages wait for room: each buffer is released once. */
static void hold_untold_close(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	u32 i, released = 0;
	struct rdm_comp comp;

	KUNIT_EXPECT_EQ(test, post_multi(pair, SZ_64K, 1), 0);
	for (i = 0; i < KEFA_CQ_RESERVE + 20; i++)
		KUNIT_EXPECT_EQ(test, send(pair, 8, 2), 0);
	rdm_run(pair);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&rdm_of(&pair->end[1])->fair.untold), 20UL);
	EFA_CLOSE(test, pair->end[1].ep);
	while ((comp = rdm_read(&pair->end[1])).ret != -EAGAIN)
		released += !!((comp.entry.flags | comp.error.flags) & FI_MULTI_RECV);
	KUNIT_EXPECT_EQ(test, released, 1U);
}

/*
 * A buffer has taken empty messages when it is posted, and then no operation is free. They have
 * used none of its bytes, but have completed: it was posted, and is released once.
 */
static void hold_empty(struct kunit *test)
{
	const u32 count = KEFA_CQ_RESERVE + KEFA_RDM_SPARE_OPS + 20;
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	u32 i, got = 0, posted = 0, released = 0;
	struct rdm_comp comp;

	for (i = 0; i < count; i++)
		KUNIT_EXPECT_EQ(test, send(pair, 0, 2), 0);
	rdm_run(pair);
	KUNIT_EXPECT_EQ(test, rdm->stats.unexpected, (u64)count);
	for (; posted < 3 && got < count; posted++) {
		KUNIT_ASSERT_EQ(test, post_multi(pair, 64, 100 + posted), 0);
		while ((comp = rdm_read(&pair->end[1])).ret == 1) {
			KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, 100L + posted);
			KUNIT_EXPECT_EQ(test, comp.entry.len, 0UL);
			released += !!(comp.entry.flags & FI_MULTI_RECV);
			got++;
			efake_settle_all();
		}
	}
	KUNIT_EXPECT_EQ(test, got, count);
	KUNIT_EXPECT_EQ(test, posted, 2U);
	KUNIT_EXPECT_EQ(test, released, 1U);
	/* The second one is still posted. */
	KUNIT_EXPECT_EQ(test, rdm->rops.used, 1U);
}

/* --- receives --- */

/*
 * A stranger begins messages for all receives, and doesn't finish them: it gets half of the
 * receives, and is dead after some time.
 */
static void hold_receives(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const struct villain v = villain(0);
	struct villain_pkt pkt = {
		.type = KEFA_MEDIUM_TAGRTM_PKT, .tag = 7, .total = 100, .len = 1,
	};
	struct rdm_comp comp;
	u32 i, failed = 0;

	KUNIT_EXPECT_EQ(test, rdm->fair.stall * KEFA_SILENT_MS, (u32)KEFA_STALL_MS);
	rdm->fair.stall = 3;
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 12000, 7, i), 0);
	for (i = 0; i < 16; i++) {
		pkt.msg_id = i;
		pkt.raw = !i;
		villain_says(pair, &v, &pkt);
	}
	KUNIT_EXPECT_EQ(test, rdm->fair.begun, 8U);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 12000, 7, 100), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 100, 12000);
	KUNIT_EXPECT_EQ(test, rdm_read(&pair->end[1]).ret, 1);
	/* While all messages progress, the peer lives. */
	for (i = 1; i < 30 && pkt.off < 90; i++) {
		pkt.off++;
		for (pkt.msg_id = 0; pkt.msg_id < 8; pkt.msg_id++)
			villain_says(pair, &v, &pkt);
		rdm_check_peers(rdm);
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
	for (i = 0; i < 50 && !rdm->stats.deaths; i++) {
		rdm_check_peers(rdm);
		efake_settle_all();
		villain_take(pair, 0);
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.stalled, 1ULL);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 1ULL);
	while ((comp = rdm_read(&pair->end[1])).ret == -FI_EAVAIL) {
		KUNIT_EXPECT_EQ(test, comp.error.err, ETIMEDOUT);
		failed++;
	}
	KUNIT_EXPECT_EQ(test, failed, 8U);
	KUNIT_EXPECT_EQ(test, rdm->fair.begun, 0U);
}

/* A peer in the address vector may hold three quarters, and stays alive. */
static void hold_receives_known(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const struct villain v = villain(0);
	struct villain_pkt pkt = {
		.type = KEFA_MEDIUM_TAGRTM_PKT, .tag = 7, .total = 2, .len = 1,
	};
	u32 i;

	villain_insert(test, pair);
	rdm->fair.stall = 1;
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 12000, 7, i), 0);
	for (pkt.msg_id = 0; pkt.msg_id < 16; pkt.msg_id++) {
		pkt.raw = !pkt.msg_id;
		villain_says(pair, &v, &pkt);
	}
	KUNIT_EXPECT_EQ(test, rdm->fair.begun, 12U);
	for (i = 0; i < 15; i++) {
		rdm_check_peers(rdm);
		efake_settle_all();
		villain_take(pair, 0);
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
	/* It finishes all of them. */
	pkt.off = 1;
	for (pkt.msg_id = 0; pkt.msg_id < 16; pkt.msg_id++)
		villain_says(pair, &v, &pkt);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[1], 0), 16U);
	KUNIT_EXPECT_EQ(test, rdm->fair.begun, 0U);
}

/* --- send slots, worker --- */

/* A medium message to a peer doesn't wait for the end of long ones to the same peer. */
static void hold_slots(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts) { .depth = 256 });
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	const u64 *data = &rdm->stats.sent[KEFA_CTSDATA_PKT];
	const u64 *medium = &rdm->stats.sent[KEFA_MEDIUM_TAGRTM_PKT];
	const struct fi_efa_addr addr = efa_addr(VILLAIN_GID, 100);
	u8 *out = kzalloc(SZ_1M, GFP_KERNEL), *in = kzalloc(SZ_1M, GFP_KERNEL);
	u64 asked = 0, sent = 0;
	fi_addr_t to;
	u32 n, i;

	KUNIT_ASSERT_TRUE(test, in && out);
	rdm->lim.min_read_message = U64_MAX;
	/* With a second peer, each has a share of the slots. */
	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[0].av, &addr, 1, &to, 0, NULL), 1);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, in, SZ_1M, NULL, FI_ADDR_UNSPEC,
					       100 + i, 0, (void *)1), 0);
		KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[0].ep, out, SZ_1M, NULL,
					       pair->end[0].peer, 100 + i, (void *)2), 0);
	}
	for (n = 0; n < 5000 && !sent && rdm_step(pair); n++) {
		efake_settle_all();
		if (!asked && *data > 100) {
			asked = *data;
			KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[0].ep, pair->out, 60000, NULL,
						       pair->end[0].peer, 7, (void *)3), 0);
		}
		if (asked && *medium)
			sent = *data;
	}
	KUNIT_EXPECT_GT(test, asked, 0ULL);
	KUNIT_EXPECT_GE(test, sent, asked);
	KUNIT_EXPECT_LT(test, sent - asked, 2ULL * rdm->ts_share);
	rdm_run(pair);
	EFA_CLOSE(test, pair->end[0].ep);
	EFA_CLOSE(test, pair->end[1].ep);
	kfree(in);
	kfree(out);
}

/* The worker of strangers handles a limited number of packets in a run, and then the others. */
static void hold_worker(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) { .depth = 256 });
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct villain_pkt pkt = { .type = KEFA_EAGER_TAGRTM_PKT, .raw = true, .len = 8 };
	const struct villain v = villain(0);
	u32 i, left;

	spin_lock_bh(&rdm->ep.lock);
	for (i = 0; i < 4; i++)
		kefa_rx_grow(rdm);
	kefa_rx_refill(rdm);
	/* The work waits for a command of the device, so that the packets are parked. */
	spin_unlock_bh(&rdm->ep.lock);
	kefa_dev_lock(pair->fake->dev);
	for (i = 0; i < 3 * KEFA_DRAIN_MAX; i++) {
		pkt.msg_id = i;
		KUNIT_ASSERT_TRUE(test, villain_send(pair, &v, &pkt));
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon(list_count_nodes(&rdm->strange) == i));
	kefa_dev_unlock(pair->fake->dev);
	cancel_delayed_work_sync(&rdm->join);
	left = list_count_nodes(&rdm->strange);
	KUNIT_EXPECT_GT(test, left, 0U);
	queue_delayed_work(kefa_cmd_wq, &rdm->join, 0);
	for (i = 0; i < 10; i++)
		efake_settle_all();
	KUNIT_EXPECT_TRUE(test, list_empty(&rdm->strange));
	KUNIT_EXPECT_EQ(test, rdm->stats.unexpected, 3ULL * KEFA_DRAIN_MAX);
	villain_take(pair, 0);
}

static struct kunit_case hold_cases[] = {
	KUNIT_CASE(hold_entries),
	KUNIT_CASE(hold_untold),
	KUNIT_CASE(hold_untold_close),
	KUNIT_CASE(hold_empty),
	KUNIT_CASE(hold_receives),
	KUNIT_CASE(hold_receives_known),
	KUNIT_CASE(hold_slots),
	KUNIT_CASE(hold_worker),
	{}
};

static struct kunit_suite hold_suite = {
	.name		= "kefa_rdm_hold",
	.test_cases	= hold_cases,
};

kunit_test_suite(hold_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, what a peer holds of an endpoint");
MODULE_LICENSE("Dual BSD/GPL");
