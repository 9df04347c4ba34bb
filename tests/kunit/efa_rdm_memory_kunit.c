// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: the memory that a peer uses up by unexpected messages, or by messages that arrive
 * before an earlier one. What other peers or the ULP wait for must arrive all the same; a peer dies
 * only if nothing else helps.
 */
#include <linux/delay.h>
#include "crew.h"
#include "efa_rdm_villain.h"
#include "../../prov/efa/rdm/local.h"

static ssize_t post_multi(struct rdm_pair *pair, size_t len, long ctx)
{
	struct kvec iov = { pair->in, len };
	struct fi_msg msg = { .addr = FI_ADDR_UNSPEC, .context = (void *)ctx };

	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, iov.iov_len);
	return fi_recvmsg(pair->end[1].ep, &msg, FI_MULTI_RECV);
}

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

/* Have the first endpoint's peer send a message of its own making, as the network would. */
static bool first_sends(struct rdm_pair *pair, u32 msg_id, size_t len)
{
	const struct villain first = {
		.qpn = pair->end[0].name.qpn, .connid = pair->end[0].name.qkey,
		.slid = RDM_SLID,
	};
	const struct villain_pkt pkt = {
		.type = KEFA_EAGER_TAGRTM_PKT, .msg_id = msg_id, .tag = 77, .len = len,
	};
	const bool sent = villain_send(pair, &first, &pkt);

	efake_settle_all();
	rdm_finish_sent(pair, 1, 0);
	return sent;
}

/* Send messages from @id on, but not the one before @id, until they use up their memory. */
static u32 run_ahead(struct kunit *test, struct rdm_pair *pair, u32 id)
{
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);

	for (; rdm->fair.early < kefa_rx_most(rdm); id++)
		KUNIT_ASSERT_TRUE(test, first_sends(pair, id, 8000));
	return id;
}

/*
 * A fast peer's packet is late: all that the peer has sent after it is kept, and the peer stays
 * alive, even if the packet comes only after all memory for early packets is used up.
 */
static void memory_late(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts) { .depth = 256 });
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	u32 i, n, done = 1;

	rdm->budget = SZ_512K;
	rdm->fair.pace = 1;
	n = run_ahead(test, pair, 2);
	KUNIT_EXPECT_GE(test, rdm->fair.early, kefa_rx_most(rdm));
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
	/* A receive is posted for it soon. */
	for (i = 0; i < 100 && !first_sends(pair, 1, 8000); i++)
		usleep_range(500, 1000);
	for (i = 0; i < 50; i++)
		efake_settle_all();
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
	KUNIT_EXPECT_EQ(test, rdm->fair.early, 0ULL);
	for (i = 1; i < n; i++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8000, 77, i), 0);
		done += rdm_read(&pair->end[1]).ret == 1;
	}
	KUNIT_EXPECT_EQ(test, done, n);
	KUNIT_EXPECT_EQ(test, rdm->kept, 0ULL);
}

/* Early packets don't use the memory for unexpected ones, nor these the memory for early ones. */
static void memory_early_apart(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts) { .depth = 256 });
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const struct villain v = villain(0);
	struct villain_pkt pkt = { .type = KEFA_EAGER_TAGRTM_PKT, .tag = 7, .len = 8000 };
	u32 i;

	villain_insert(test, pair);
	rdm->budget = SZ_512K;
	for (i = 2; rdm->fair.early < SZ_512K - SZ_64K; i++)
		KUNIT_ASSERT_TRUE(test, first_sends(pair, i, 8000));
	for (; rdm->kept - rdm->fair.early < SZ_512K - SZ_64K; pkt.msg_id++) {
		pkt.raw = !pkt.msg_id;
		KUNIT_ASSERT_TRUE(test, villain_says(pair, &v, &pkt));
	}
	KUNIT_EXPECT_GE(test, rdm->kept, SZ_512K + SZ_256K);
	KUNIT_EXPECT_GE(test, rdm->nposted, (u32)KEFA_RX_LEAST);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
}

/* A packet never comes, and its sender goes on. After some time the sender is dead. */
static void memory_late_for_ever(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	ktime_t start, took;
	u32 i, n;

	rdm->budget = SZ_256K;
	rdm->fair.pace = 1;
	start = ktime_get();
	n = run_ahead(test, pair, 2);
	for (i = 0; i < 1000 && !rdm->stats.cut; i++) {
		n += first_sends(pair, n, 8000);
		usleep_range(500, 1000);
	}
	took = ktime_sub(ktime_get(), start);
	/* A worker that has counted it may still be dropping its packets, under the lock. */
	spin_lock_bh(&rdm->ep.lock);
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_EQ(test, rdm->stats.cut, 1ULL);
	KUNIT_EXPECT_GE(test, ktime_to_ms(took), (s64)KEFA_LATE_MS);
	KUNIT_EXPECT_EQ(test, rdm->kept, 0ULL);
	KUNIT_EXPECT_LE(test, rdm->nrs, rdm->rs_max);
}

/*
 * A message of a peer waits for this endpoint, because the completion queue and all operations for
 * multi-receive buffers are used up. The peer isn't late, so it lives, whatever it sends.
 */
static void memory_due(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const struct villain v = villain(0);
	struct villain_pkt pkt = { .type = KEFA_EAGER_MSGRTM_PKT };
	u32 i, n;

	villain_insert(test, pair);
	rdm->budget = SZ_256K;
	rdm->fair.pace = 1;
	KUNIT_EXPECT_EQ(test, post_multi(pair, SZ_128K, 1), 0);
	for (n = 0; n < 3000 && rdm->fair.early < kefa_rx_most(rdm); n++) {
		pkt.msg_id = n;
		pkt.raw = !n;
		pkt.len = n < 130 ? 8 : 4000;
		if (!villain_says(pair, &v, &pkt))
			break;
	}
	KUNIT_EXPECT_GE(test, rdm->fair.early, kefa_rx_most(rdm));
	for (i = 0; i < 2 * KEFA_LATE_MS / 10; i++) {
		msleep(20);
		pkt.msg_id = n;
		n += villain_says(pair, &v, &pkt);
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
	for (i = 0, n = 0; i < 50; i++) {
		n = rdm_read_all(&pair->end[1], n);
		efake_settle_all();
	}
	KUNIT_EXPECT_GE(test, n, 2U * KEFA_CQ_RESERVE);
}

/* Another peer's unexpected messages use up the memory. An answer arrives all the same. */
static void memory_answers(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const struct villain v = villain(0);
	struct villain_pkt pkt = { .type = KEFA_EAGER_TAGRTM_PKT, .tag = 77, .len = 4000 };
	u32 i;

	villain_insert(test, pair);
	KUNIT_EXPECT_EQ(test, rdm->fair.pace, DIV_ROUND_UP(KEFA_SHUT_MS, rdm->depth));
	rdm->budget = SZ_256K;
	rdm->fair.pace = 5;
	pkt.raw = true;
	for (; villain_says(pair, &v, &pkt); pkt.msg_id++)
		pkt.raw = false;
	KUNIT_EXPECT_EQ(test, rdm->nposted, 0U);
	/* Nobody waits for anything, so the endpoint stays shut, and the peer alive. */
	for (i = 0; i < 20; i++) {
		msleep(20);
		KUNIT_EXPECT_FALSE(test, villain_says(pair, &v, &pkt));
	}
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[0].ep, pair->in, 8, NULL, FI_ADDR_UNSPEC, 3, 0,
				       (void *)2), 0);
	KUNIT_EXPECT_EQ(test, send_dc(pair, 1, 3, 1), 0);
	for (i = 0; i < 200 && rdm_of(&pair->end[1])->rops.used; i++)
		rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 8);
	rdm_expect(test, &pair->end[1], 1, 8);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
}

/* The same peer takes each receive that is posted for answers: it dies, and then they arrive. */
static void memory_answers_taken(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const struct villain v = villain(0);
	struct villain_pkt pkt = { .type = KEFA_EAGER_TAGRTM_PKT, .tag = 77, .len = 4000 };
	u32 i;

	villain_insert(test, pair);
	rdm->budget = SZ_256K;
	rdm->fair.pace = 1;
	KUNIT_EXPECT_EQ(test, send_dc(pair, 1, 3, 1), 0);
	for (i = 0; i < 5000 && !rdm->stats.cut; i++) {
		pkt.raw = !pkt.msg_id;
		if (villain_says(pair, &v, &pkt))
			pkt.msg_id++;
		else
			usleep_range(200, 400);
	}
	/* The worker counts the peer before it frees the packets. */
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, rdm->stats.cut, 1ULL);
	KUNIT_EXPECT_EQ(test, rdm->kept, 0ULL);
	KUNIT_EXPECT_LE(test, rdm->nrs, rdm->rs_max);
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[0].ep, pair->in, 8, NULL, FI_ADDR_UNSPEC, 3, 0,
				       (void *)2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 8);
	rdm_expect(test, &pair->end[1], 1, 8);
}

/*
 * An inserted peer's unexpected messages use up the memory, until no receive is posted any more.
 * This doesn't wait for workers, as one may wait for a lock of the case.
 */
static void fill_up(struct kunit *test, struct rdm_pair *pair)
{
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const u64 full = rdm->budget + KEFA_RX_LEAST * rdm->stride;
	const struct villain v = villain(0);
	struct villain_pkt pkt = {
		.type = KEFA_EAGER_TAGRTM_PKT, .raw = true, .tag = 77, .len = 4000,
	};
	u32 i;

	/* A burst doesn't have more receives posted. */
	spin_lock_bh(&rdm->ep.lock);
	rdm->depth = rdm->target;
	spin_unlock_bh(&rdm->ep.lock);
	for (i = 0; i < 10000 && (READ_ONCE(rdm->kept) < full || READ_ONCE(rdm->nposted)); i++) {
		if (villain_send(pair, &v, &pkt)) {
			pkt.msg_id++;
			pkt.raw = false;
		} else {
			usleep_range(100, 200);
		}
	}
	KUNIT_EXPECT_EQ(test, READ_ONCE(rdm->nposted), 0U);
}

/* A peer that the ULP hasn't inserted dies, and its messages wait for the ULP. */
static void die_and_leave(struct kunit *test, struct rdm_pair *pair)
{
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const struct villain v = villain(1);
	struct villain_pkt pkt = { .type = KEFA_EAGER_TAGRTM_PKT, .tag = 77, .len = 4000 };

	for (; pkt.msg_id < 10; pkt.msg_id++) {
		pkt.raw = !pkt.msg_id;
		KUNIT_ASSERT_TRUE(test, villain_says(pair, &v, &pkt));
	}
	/* A part of a message without data is none. */
	pkt.type = KEFA_MEDIUM_TAGRTM_PKT;
	pkt.total = 8;
	pkt.len = 0;
	KUNIT_ASSERT_TRUE(test, villain_says(pair, &v, &pkt));
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 1ULL);
	KUNIT_EXPECT_EQ(test, rdm->kept, 10ULL * rdm->stride);
}

/* The messages of a dead peer go with it, and other peers' packets can arrive again. */
static void memory_gone(struct kunit *test)
{
	const struct fi_efa_addr addr = efa_addr(VILLAIN_GID, VILLAIN_QPN + 1);
	struct rdm_pair *pair;
	struct kefa_rdm *rdm;
	fi_addr_t to;
	int how;

	for (how = 0; how < 2; how++) {
		pair = rdm_ready_pair(test, &(struct rdm_opts) { .no_order = how });
		rdm = rdm_of(&pair->end[1]);
		villain_insert(test, pair);
		rdm->budget = SZ_256K;
		die_and_leave(test, pair);
		fill_up(test, pair);
		efake_settle_all();
		KUNIT_EXPECT_EQ(test, rdm->nposted, 0U);
		if (how) {
			/* Without order, it lives again. */
			KUNIT_EXPECT_EQ(test, fi_av_insert(pair->end[1].av, &addr, 1, &to, 0,
							   NULL), 1);
		} else {
			kefa_dev_lock(pair->fake->dev);
			KUNIT_EXPECT_TRUE(test, kefa_rdm_evict(&rdm->ep));
			kefa_dev_unlock(pair->fake->dev);
		}
		efake_settle_all();
		KUNIT_EXPECT_GT(test, rdm->nposted, 0U);
		villain_take(pair, 0);
		rdm_pair_end(pair);
	}
}

/* The device creates no address handle for a stranger, whose packets are dropped then. */
static void memory_stranger(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct villain v = villain(1);
	struct villain_pkt pkt = {
		.type = KEFA_EAGER_TAGRTM_PKT, .raw = true, .tag = 77, .len = 4000,
	};

	villain_insert(test, pair);
	rdm->budget = SZ_256K;
	v.gid++;
	v.slid++;
	/* The command waits for the lock. */
	kefa_dev_lock(pair->fake->dev);
	for (; pkt.msg_id < 10; pkt.msg_id++)
		KUNIT_EXPECT_TRUE(test, villain_send(pair, &v, &pkt));
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(rdm->strange_kept) == 10ULL * rdm->stride));
	fill_up(test, pair);
	efake_fail(pair->fake, EFAKE_AH_CREATE, 1, -EINVAL);
	kefa_dev_unlock(pair->fake->dev);
	KUNIT_EXPECT_TRUE(test, kofi_soon(!READ_ONCE(rdm->strange_kept)));
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(rdm->nposted)));
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
	efake_settle_all();
	villain_take(pair, 0);
}

/* Have the workers handle what endpoints in one kernel have for each other. */
static void settle_local(struct rdm_pair *pair)
{
	int i;

	for (i = 0; i < 100; i++) {
		kefa_ep_kick(to_kefa_ep(pair->end[i % 2].ep));
		efake_settle();
	}
}

/* Answers of a peer in the same kernel need no memory, also if there is none for its requests. */
static void memory_local_answers(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) {
		.local = true, .rma = true, .rdma = true,
	});
	struct rdm_end *end = &pair->end[0];
	struct kefa_rdm *rdm = rdm_of(end);
	struct fid_mr *mr;
	LIST_HEAD(taken);
	u32 max;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(pair->domain, pair->in, SZ_128K, FI_REMOTE_READ, 0, 0, 0,
					&mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 2), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), 0);
	settle_local(pair);
	rdm_expect(test, end, 1, 8);
	spin_lock_bh(&rdm->ep.lock);
	max = rdm->rs_max;
	rdm->rs_max = rdm->nrs;
	if (rdm->local->rs)
		kefa_rs_put(rdm, rdm->local->rs);
	rdm->local->rs = NULL;
	list_splice_init(&rdm->rs_free, &taken);
	spin_unlock_bh(&rdm->ep.lock);
	efa_fill(pair->in, 100000, 3);
	KUNIT_EXPECT_EQ(test, fi_read(end->ep, pair->out, 100000, NULL, end->peer, mr->base_addr,
				      fi_mr_key(mr), (void *)3), 0);
	settle_local(pair);
	rdm_expect(test, end, 3, 100000);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->out, 100000, 3));
	KUNIT_EXPECT_NULL(test, rdm->local->rs);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.rnr, 0ULL);
	spin_lock_bh(&rdm->ep.lock);
	rdm->rs_max = max;
	list_splice(&taken, &rdm->rs_free);
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static struct kunit_case memory_cases[] = {
	KUNIT_CASE(memory_late),
	KUNIT_CASE(memory_early_apart),
	KUNIT_CASE(memory_late_for_ever),
	KUNIT_CASE(memory_due),
	KUNIT_CASE(memory_answers),
	KUNIT_CASE(memory_answers_taken),
	KUNIT_CASE(memory_gone),
	KUNIT_CASE(memory_stranger),
	KUNIT_CASE(memory_local_answers),
	{}
};

static struct kunit_suite memory_suite = {
	.name		= "kefa_rdm_memory",
	.test_cases	= memory_cases,
};

kunit_test_suite(memory_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, memory that a peer uses up");
MODULE_LICENSE("Dual BSD/GPL");
