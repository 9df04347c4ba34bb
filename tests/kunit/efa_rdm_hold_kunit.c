// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fabric efa: what a peer holds of the endpoint, and for how long: send slots, the worker. */
#include "crew.h"
#include "efa_rdm_villain.h"

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
