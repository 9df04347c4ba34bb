// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fabric efa: answers that are due to peers when an endpoint is closed or disabled. */
#include "crew.h"
#include "efa_rdm_scene.h"

/* Send a tagged message of 8 bytes with delivery complete. */
static ssize_t send_dc(struct rdm_pair *pair, int from, u64 tag, long ctx)
{
	struct kvec iov = { pair->out, 8 };
	struct fi_msg_tagged msg = {
		.addr = pair->end[from].peer, .tag = tag, .context = (void *)ctx,
	};

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, iov.iov_len);
	return fi_tsendmsg(pair->end[from].ep, &msg, FI_DELIVERY_COMPLETE);
}

/* Have the first endpoint wait for a RECEIPT that was posted, and found no receive @times times. */
static void owe_receipt(struct kunit *test, struct rdm_pair *pair, u32 times)
{
	struct efake_wr *wr;

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 3, 2), 0);
	KUNIT_EXPECT_EQ(test, send_dc(pair, 0, 3, 1), 0);
	wr = rdm_run_until(pair, 1, KEFA_RECEIPT_PKT);
	KUNIT_ASSERT_NOT_NULL(test, wr);
	while (times--) {
		efake_wr_done(wr, KEFA_STATUS_RNR);
		efake_settle();
		wr = times ? rdm_run_until(pair, 1, KEFA_RECEIPT_PKT) : NULL;
		KUNIT_ASSERT_TRUE(test, wr || !times);
	}
	rdm_expect(test, &pair->end[1], 2, 8);
}

static void linger(struct kofi_thread *thread)
{
	const ktime_t start = ktime_get();

	kefa_rdm_linger(thread->arg);
	thread->ret = ktime_ms_delta(ktime_get(), start);
}

/* A RECEIPT that waits for the peer is sent before the endpoint is closed. */
static void close_owed(struct kunit *test)
{
	struct rdm_opts opts = { .linger_ms = KOFI_NEVER_MS };
	struct rdm_pair *pair = rdm_ready_pair(test, &opts);
	struct kofi_thread thread;

	owe_receipt(test, pair, 2);
	kofi_thread_start(test, &thread, linger, to_kefa_ep(pair->end[1].ep));
	while (!completion_done(&thread.done)) {
		rdm_deliver(pair, 1);
		usleep_range(100, 200);
	}
	kofi_thread_join(test, &thread);
	efake_settle_all();
	rdm_expect(test, &pair->end[0], 1, 8);
	/* Nothing is due any more, so closing doesn't wait. */
	EFA_CLOSE(test, pair->end[1].ep);
	EFA_CLOSE(test, pair->end[0].ep);
}

/* Return: the milliseconds that closing takes; by fi_disable() first if @disable. */
static s64 close_ms(struct kunit *test, struct rdm_pair *pair, bool disable)
{
	ktime_t start = ktime_get();
	s64 took;

	if (disable) {
		KUNIT_EXPECT_EQ(test, fi_disable(pair->end[1].ep), 0);
		took = ktime_ms_delta(ktime_get(), start);
		EFA_CLOSE(test, pair->end[1].ep);
		return took;
	}
	EFA_CLOSE(test, pair->end[1].ep);
	return ktime_ms_delta(ktime_get(), start);
}

/* Closing waits a limited time for a peer without a receive, and not at all for other peers. */
static void close_deaf(struct kunit *test)
{
	enum { DEAF, DISABLE, POSTED, DEAD, REMOVED, IDLE, WAYS };
	struct rdm_opts opts = { .linger_ms = KEFA_LINGER_MS };
	const s64 most = KEFA_LINGER_MS + KEFA_LINGER_MS / 2;
	struct rdm_pair *pair;
	struct kefa_rdm *rdm;
	s64 took;
	int way;

	for (way = 0; way < WAYS; way++) {
		pair = rdm_ready_pair(test, &opts);
		rdm = rdm_of(&pair->end[1]);
		KUNIT_EXPECT_EQ(test, rdm->linger_ms, (u32)KEFA_LINGER_MS);
		if (way != IDLE)
			owe_receipt(test, pair, way == POSTED ? 0 : 2);
		if (way == DEAD) {
			spin_lock_bh(&rdm->ep.lock);
			kefa_rdm_kill(rdm, kefa_peers_at(&rdm->peers, pair->end[1].peer),
				      ECONNRESET, 0);
			spin_unlock_bh(&rdm->ep.lock);
		}
		if (way == REMOVED)
			efake_remove(pair->fake);
		took = close_ms(test, pair, way == DISABLE);
		if (way <= POSTED)
			KUNIT_EXPECT_GE_MSG(test, took, (s64)KEFA_LINGER_MS, "way %d", way);
		KUNIT_EXPECT_LE_MSG(test, took, way <= POSTED ? most : KEFA_LINGER_MS / 2,
				    "way %d", way);
		EFA_CLOSE(test, pair->end[0].ep);
		if (way != REMOVED)
			efake_remove(pair->fake);
	}
}

static struct kunit_case close_cases[] = {
	KUNIT_CASE(close_owed),
	KUNIT_CASE_SLOW(close_deaf),
	{}
};

static struct kunit_suite close_suite = {
	.name		= "kefa_rdm_close",
	.test_cases	= close_cases,
};

kunit_test_suite(close_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, answers that are due when an endpoint is closed");
MODULE_LICENSE("Dual BSD/GPL");
