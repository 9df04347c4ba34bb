// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: medium messages by plain calls. They have an operation but go in one step, from one
 * mapping of the message; a message that can't goes the usual way. However it ends, it ends once,
 * and not before the device is done with its memory.
 */
#include <linux/vmalloc.h>
#include "efa_rdm_scene.h"

#define BYTES	20000	/* In three packets. */
#define PARTS	3
#define TAG	5

static u8 packets[2][PARTS][SZ_8K];

/* --- sending --- */

static void expect_sent(struct kunit *test, struct rdm_end *end, unsigned int parts)
{
	struct kefa_rdm *rdm = rdm_of(end);
	unsigned int i, n = 0;

	for (i = 0; i < rdm->nts; i++)
		n += rdm->ts[i].state != KEFA_TS_FREE && rdm->ts[i].shared;
	KUNIT_EXPECT_EQ(test, n, parts);
	KUNIT_EXPECT_EQ(test, rdm->ts_nfree, rdm->nts - parts);
}

/* Read what was posted, and have it arrive. Return: bytes of the packets. */
static size_t take(struct kunit *test, struct rdm_pair *pair, u8 to[PARTS][SZ_8K])
{
	struct efake_qp *qp = pair->end[0].qp;
	struct efake_wr *wr;
	size_t len = 0;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, qp->nsent, (unsigned int)PARTS);
	for (i = 0; i < PARTS; i++) {
		wr = efake_sent(qp, i);
		memset(to[i], 0, SZ_8K);
		len += efake_wr_read(wr, to[i], SZ_8K);
		KUNIT_EXPECT_EQ(test, wr->qpn, pair->end[1].name.qpn);
		KUNIT_EXPECT_EQ(test, wr->qkey, pair->end[1].name.qkey);
	}
	rdm_run(pair);
	return len;
}

/* Packets are the same as the usual way makes them, but for the number. */
static void medium_same(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct kvec iov = { pair->out, BYTES };
	const fi_addr_t peer = pair->end[0].peer;
	struct fid_ep *ep = pair->end[0].ep;
	unsigned int maps, doorbells, i;
	struct kefa_medium_msgrtm_hdr *hdr;
	u32 tagged, next;
	size_t len;

	efa_fill(pair->out, BYTES, 7);
	for (tagged = 0; tagged < 2; tagged++) {
		maps = pair->fake->nmaps;
		doorbells = pair->end[0].qp->doorbells;
		next = rdm->peers.at[peer]->order.next_id;
		if (tagged)
			KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, TAG, 1), 0);
		else
			KUNIT_EXPECT_EQ(test, fi_send(ep, pair->out, BYTES, NULL, peer, (void *)1),
					0);
		expect_sent(test, &pair->end[0], PARTS);
		KUNIT_EXPECT_EQ(test, pair->fake->nmaps, maps + 1);
		KUNIT_EXPECT_EQ(test, pair->end[0].qp->doorbells, doorbells + 1);
		KUNIT_EXPECT_EQ(test, rdm->peers.at[peer]->wrs, PARTS);
		len = take(test, pair, packets[0]);
		rdm_expect(test, &pair->end[0], 1, BYTES);
		maps = pair->fake->nmaps;
		if (tagged)
			KUNIT_EXPECT_EQ(test, fi_tsendv(ep, &iov, NULL, 1, peer, TAG, (void *)1),
					0);
		else
			KUNIT_EXPECT_EQ(test, fi_sendv(ep, &iov, NULL, 1, peer, (void *)1), 0);
		KUNIT_EXPECT_EQ(test, pair->fake->nmaps, maps + PARTS);
		KUNIT_EXPECT_EQ(test, take(test, pair, packets[1]), len);
		rdm_expect(test, &pair->end[0], 1, BYTES);
		for (i = 0; i < PARTS; i++) {
			hdr = (void *)packets[0][i];
			KUNIT_EXPECT_EQ(test, le32_to_cpu(hdr->msg_id), next);
			le32_add_cpu(&hdr->msg_id, 1);
			KUNIT_EXPECT_MEMEQ(test, packets[0][i], packets[1][i], SZ_8K);
		}
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.sent[KEFA_MEDIUM_TAGRTM_PKT], 2ULL * PARTS);
	KUNIT_EXPECT_EQ(test, rdm->stats.sent[KEFA_MEDIUM_MSGRTM_PKT], 2ULL * PARTS);
	KUNIT_EXPECT_EQ(test, rdm->stats.copied, 8ULL);
	KUNIT_EXPECT_EQ(test, rdm->ep.stats.sends, 5ULL);
	KUNIT_EXPECT_EQ(test, rdm->ep.stats.tx_bytes, 4ULL * BYTES + 8);
	for (i = 0; i < 4; i++) {
		memset(pair->in, 0, BYTES);
		if (i < 2)
			KUNIT_EXPECT_EQ(test, fi_recv(pair->end[1].ep, pair->in, BYTES, NULL,
						      FI_ADDR_UNSPEC, (void *)2), 0);
		else
			KUNIT_EXPECT_EQ(test, rdm_trecv(pair, BYTES, TAG, 2), 0);
		rdm_expect(test, &pair->end[1], 2, BYTES);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, BYTES, 7));
	}
	rdm_expect_whole(test, pair);
}

/**
 * struct usual - why a message goes the usual way
 * @what: in words
 * @len: its bytes, instead of BYTES
 * @slots: free slots that there are, besides those for answers
 * @held: packets that are held
 * @fails: the DMA map that fails, of several
 * @max_map: most that can be mapped
 * @stays: it waits, or is longer
 * @vm: its memory isn't one piece
 */
struct usual {
	const char	*what;
	size_t		len;
	u32		slots, held, fails, max_map;
	bool		stays, vm;
};

static const struct usual usuals[] = {
	{ "it is longer", .len = 40000, .stays = true },
	{ "too few slots", .slots = PARTS - 1, .stays = true },
	{ "its memory is in pieces", .vm = true },
	{ "it can't be mapped", .fails = 1 },
	{ "it can't be mapped at once", .max_map = BYTES - 1 },
	{ "others are held", .held = KEFA_HELD_MAX - PARTS + 1 },
};

static void hold(struct kunit *test, struct rdm_pair *pair, u32 n)
{
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);

	cancel_work_sync(&rdm->ep.work);
	spin_lock_bh(&rdm->ep.lock);
	rdm->ep.worker = n ? current : NULL;
	spin_unlock_bh(&rdm->ep.lock);
	while (n--)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 9, 9), 0);
}

static void try_usual(struct kunit *test, struct rdm_pair *pair, const struct usual *u)
{
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	const size_t len = u->len ?: BYTES, max_map = rdm->ep.max_map;
	const u32 nctl = rdm->ts_ctl;
	u8 *from = u->vm ? vmalloc(len) : pair->out;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, from);
	efa_fill(from, len, 3);
	memset(pair->in, 0, len);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, len, TAG, 1), 0);
	if (u->held)
		hold(test, pair, u->held);
	if (u->slots)
		rdm->ts_ctl = rdm->nts - u->slots;
	if (u->max_map)
		rdm->ep.max_map = u->max_map;
	if (u->fails)
		efake_fail(pair->fake, EFAKE_DMA_MAP, u->fails, -ENOMEM);
	KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[0].ep, from, len, NULL, pair->end[0].peer, TAG,
				       (void *)2), 0);
	for (i = 0; i < rdm->nts; i++)
		KUNIT_EXPECT_FALSE_MSG(test, rdm->ts[i].shared, "%s", u->what);
	rdm->ts_ctl = nctl;
	rdm->ep.max_map = max_map;
	if (u->held)
		hold(test, pair, 0);
	for (i = 0; i < 4; i++) {
		/* A timer retries a message that waits for memory or found too few slots. */
		flush_delayed_work(&rdm->ep.map_retry);
		rdm_run(pair);
	}
	for (i = 0; i < u->held; i++)
		rdm_expect(test, &pair->end[0], 9, 8);
	rdm_expect(test, &pair->end[0], 2, len);
	rdm_expect(test, &pair->end[1], 1, len);
	KUNIT_EXPECT_TRUE_MSG(test, efa_filled(pair->in, len, 3), "%s", u->what);
	for (i = 0; i < u->held; i++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 9, 1), 0);
		rdm_expect(test, &pair->end[1], 1, 8);
	}
	rdm_expect_whole(test, pair);
	if (u->vm)
		vfree(from);
}

static void medium_usual(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	unsigned int i, tx;

	/* Longer ones are granted. */
	rdm_of(&pair->end[0])->lim.max_medium = 30000;
	for (i = 0; i < ARRAY_SIZE(usuals) && test->status != KUNIT_FAILURE; i++)
		try_usual(test, pair, &usuals[i]);
	/* And others are read. */
	for (i = 0; i < 2; i++)
		rdm_of(&pair->end[i])->lim.min_read_message = BYTES;
	try_usual(test, pair, &(struct usual) { "it is read" });
	KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_LONGREAD_TAGRTM_PKT], 1U);
	for (i = 0; i < 2; i++)
		rdm_of(&pair->end[i])->lim.min_read_message = SZ_1M;
	/* The peer must be told of an address. */
	rdm_of(&pair->end[0])->peers.at[pair->end[0].peer]->features |=
		KEFA_REQUEST_CONSTANT_HEADER_LENGTH;
	try_usual(test, pair, &(struct usual) { "it has an address" });
	/* There is no room for it. */
	tx = rdm_of(&pair->end[0])->ep.tx.nfree;
	rdm_of(&pair->end[0])->ep.tx.nfree = 0;
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, TAG, 1), -EAGAIN);
	rdm_of(&pair->end[0])->ep.tx.nfree = tx;
	expect_sent(test, &pair->end[0], 0);
}

/* Of a default that asks for more the usual way knows. */
static void medium_confirmed(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	u64 flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;

	KUNIT_EXPECT_EQ(test, fi_control(&pair->end[0].ep->fid, FI_SETOPSFLAG, &flags), 0);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, BYTES, TAG, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, TAG, 2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, BYTES);
	rdm_expect(test, &pair->end[1], 1, BYTES);
	KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_DC_MEDIUM_TAGRTM_PKT], (unsigned int)PARTS);
	rdm_expect_whole(test, pair);
}

/* No room for its completion. */
static void medium_full(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts) { .cq_size = 16 });
	unsigned int i, n = 0;

	for (i = 0; i < 20; i++)
		n += !rdm_tsend(pair, BYTES, TAG, i);
	KUNIT_EXPECT_LT(test, n, 20U);
	for (i = 0; i < 4; i++)
		rdm_run(pair);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), n);
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, BYTES, TAG, i), 0);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[1], 0), n);
	rdm_expect_whole(test, pair);
}

/* --- how it ends --- */

enum way { ARRIVED, KILLED, LOST, REMOVED, CLOSED, UNPLUGGED, WAYS };

/* By what the ULP is told. */
static const int way_errs[WAYS] = { 0, EPROTO, ETIMEDOUT, ECANCELED, ECANCELED, ENODEV };

/* A packet that nobody can parse: the first end declares its sender dead. */
static void garbage(struct rdm_pair *pair)
{
	struct efake_wr *recv = efake_recv(pair->end[0].qp, 0);
	const struct kefa_wc wc = {
		.len = 16, .src_qpn = pair->end[1].name.qpn, .slid = RDM_SLID,
	};
	u8 bytes[16];

	memset(bytes, 0xff, sizeof(bytes));
	efake_wr_write(recv, bytes, sizeof(bytes));
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

static void end_by(struct kunit *test, struct rdm_pair *pair, enum way way)
{
	if (way == KILLED)
		garbage(pair);
	else if (way == REMOVED)
		KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[0].av, &pair->end[0].peer, 1, 0), 0);
	else if (way == CLOSED)
		EFA_CLOSE(test, pair->end[0].ep);
	else if (way == UNPLUGGED)
		efake_remove(pair->fake);
	efake_settle_all();
}

/* Of the packets so many are done, the next one finds its peer not ready if @parked, and then. */
static void end_it(struct kunit *test, enum way way, unsigned int done, bool parked)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct efake_qp *qp = pair->end[0].qp;
	const unsigned int maps = pair->fake->nmaps;
	unsigned int i;

	rdm->backoffs.first_us = way == ARRIVED ? 1000 : 10 * USEC_PER_SEC;
	rdm->backoffs.max_us = 4 * rdm->backoffs.first_us;
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, TAG, 1), 0);
	for (i = 0; i < done; i++) {
		efake_wr_done(efake_sent(qp, 0), 0);
		efake_settle();
	}
	expect_sent(test, &pair->end[0], PARTS - done);
	/* Once it is sent again at once. */
	for (i = 0; parked && i < 2; i++) {
		efake_wr_done(efake_sent(qp, qp->nsent - 1), KEFA_STATUS_RNR);
		efake_settle();
	}
	KUNIT_EXPECT_EQ(test, pair->fake->nmaps, maps + 1);
	efake_haunt(pair->fake);
	rdm_expect_nothing(test, &pair->end[0]);
	end_by(test, pair, way);
	/* The device may still read the ULP's memory. */
	if (way < CLOSED && qp->nsent) {
		rdm_expect_nothing(test, &pair->end[0]);
		KUNIT_EXPECT_EQ(test, pair->fake->nmaps, maps + 1);
		rdm_finish_sent(pair, 0, way == LOST ? 13 : 0);
	}
	for (i = 0; way == ARRIVED && rdm->rops.used && i < 100; i++) {
		msleep(20);
		rdm_finish_sent(pair, 0, 0);
	}
	if (way == LOST && !done && !parked)
		KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 1ULL);
	if (way_errs[way])
		rdm_expect_error(test, &pair->end[0], 1, way_errs[way]);
	else
		rdm_expect(test, &pair->end[0], 1, BYTES);
	rdm_expect_nothing(test, &pair->end[0]);
	if (way == UNPLUGGED)
		return;
	if (way != CLOSED) {
		KUNIT_EXPECT_EQ(test, pair->fake->nmaps, maps);
		KUNIT_EXPECT_EQ(test, rdm->rops.used, 0U);
		expect_sent(test, &pair->end[0], 0);
		EFA_CLOSE(test, pair->end[0].ep);
	}
	EFA_CLOSE(test, pair->end[1].ep);
	efake_remove(pair->fake);
}

static void medium_ends(struct kunit *test)
{
	unsigned int done;
	enum way way;

	for (way = ARRIVED; way < WAYS; way++)
		for (done = 0; done < PARTS && test->status != KUNIT_FAILURE; done++) {
			/* If it is the last one the device has nothing that could be lost. */
			end_it(test, way, done, false);
			if (way != LOST || done < PARTS - 1)
				end_it(test, way, done, true);
		}
}

/* The device refuses some of the packets: those that it has end when it is done with them. */
static void medium_refused(struct kunit *test)
{
	struct rdm_pair *pair;
	unsigned int bad, maps;

	for (bad = 0; bad < PARTS; bad++) {
		pair = rdm_ready_pair(test, NULL);
		maps = pair->fake->nmaps;
		pair->fake->bad = bad;
		efake_fail(pair->fake, EFAKE_POST_SEND, 1, -EIO);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, TAG, 1), 0);
		KUNIT_EXPECT_EQ(test, pair->end[0].qp->nsent, bad);
		/* The worker ends what the device hasn't. */
		efake_settle();
		KUNIT_EXPECT_EQ(test, pair->fake->nmaps, maps + !!bad);
		rdm_finish_sent(pair, 0, 0);
		rdm_expect_error(test, &pair->end[0], 1, EIO);
		rdm_expect_nothing(test, &pair->end[0]);
		KUNIT_EXPECT_EQ(test, pair->fake->nmaps, maps);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, TAG, 1), -EHOSTUNREACH);
		rdm_expect_whole(test, pair);
		EFA_CLOSE(test, pair->end[0].ep);
		EFA_CLOSE(test, pair->end[1].ep);
		efake_remove(pair->fake);
	}
}

/* Completions are in the order in which the device has ended them, with short ones in between. */
static void medium_order(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct rdm_comp comp;
	long i;

	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, BYTES, TAG, i), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, i & 1 ? BYTES : 8, TAG, i), 0);
	}
	/* All at once. */
	cancel_work_sync(&rdm->ep.work);
	spin_lock_bh(&rdm->ep.lock);
	while (pair->end[0].qp->nsent)
		efake_wr_done(efake_sent(pair->end[0].qp, 0), 0);
	spin_unlock_bh(&rdm->ep.lock);
	efake_settle();
	for (i = 0; i < 8; i++) {
		comp = rdm_read(&pair->end[0]);
		KUNIT_EXPECT_EQ(test, comp.ret, 1);
		KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, i);
		KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_TAGGED | FI_SEND);
	}
	rdm_expect_nothing(test, &pair->end[0]);
}

static void retry(struct rdm_pair *pair)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		flush_delayed_work(&rdm_of(&pair->end[0])->ep.map_retry);
		rdm_run(pair);
	}
}

/* Nothing is copied before there are buffers for the whole message. */
static void medium_scarce(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct kefa_copy *held[KEFA_COPIES - PARTS + 1];
	const u64 copied = rdm->stats.copied;
	u8 *pages = alloc_pages_exact(BYTES, GFP_KERNEL), *from;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	from = rdm_scattered(test, pages, BYTES);
	efa_fill(from, BYTES, 7);
	spin_lock_bh(&rdm->ep.lock);
	for (i = 0; i < ARRAY_SIZE(held); i++)
		held[i] = kefa_copy_take(&rdm->ep);
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, BYTES, TAG, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[0].ep, from, BYTES, NULL, pair->end[0].peer, TAG,
				       (void *)2), 0);
	retry(pair);
	rdm_expect_nothing(test, &pair->end[0]);
	KUNIT_EXPECT_EQ(test, rdm->stats.copied, copied);
	KUNIT_EXPECT_EQ(test, rdm->ep.stats.bounced, 0ULL);
	for (i = 0; i < ARRAY_SIZE(held); i++)
		kefa_copy_put(&rdm->ep, held[i]);
	retry(pair);
	rdm_expect(test, &pair->end[0], 2, BYTES);
	rdm_expect(test, &pair->end[1], 1, BYTES);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, BYTES, 7));
	KUNIT_EXPECT_EQ(test, rdm->stats.copied, copied + BYTES);
	KUNIT_EXPECT_EQ(test, rdm->ep.stats.bounced, (u64)PARTS);
	rdm_expect_whole(test, pair);
	vunmap(from);
	free_pages_exact(pages, BYTES);
}

/* A packet that waits for a slot is sent when another one completes. */
static void medium_waits(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	unsigned int i, n;

	for (n = 0; n < 30 && list_empty(&rdm->todo); n++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, TAG, n), 0);
	KUNIT_ASSERT_LT(test, n, 30U);
	for (i = 0; i < 10; i++)
		rdm_run(pair);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), n);
	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, BYTES, TAG, i), 0);
		rdm_expect(test, &pair->end[1], i, BYTES);
	}
	rdm_expect_whole(test, pair);
}

/*
 * With a small MTU, what may be injected takes several packets. Its memory belongs to the caller
 * again, so it is neither read by the peer nor sent later, as long messages are.
 */
static void medium_injected(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts) {
		.mtu = 2048, .min_read = 1024,
	});
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);

	efa_fill(pair->out, 2048, 7);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 2048, TAG, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_tinject(pair->end[0].ep, pair->out, 2048, pair->end[0].peer, TAG),
			0);
	memset(pair->out, 0, 2048);
	rdm_run(pair);
	rdm_expect(test, &pair->end[1], 1, 2048);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 2048, 7));
	KUNIT_EXPECT_EQ(test, rdm->stats.sources, 0ULL);
	rdm->lim.max_medium = 0;
	KUNIT_EXPECT_EQ(test, fi_tinject(pair->end[0].ep, pair->out, 2048, pair->end[0].peer, TAG),
			-EMSGSIZE);
	rdm_expect_nothing(test, &pair->end[0]);
	rdm_expect_whole(test, pair);
}

static struct kunit_case medium_cases[] = {
	KUNIT_CASE(medium_same),
	KUNIT_CASE(medium_usual),
	KUNIT_CASE(medium_confirmed),
	KUNIT_CASE(medium_full),
	KUNIT_CASE_SLOW(medium_ends),
	KUNIT_CASE(medium_refused),
	KUNIT_CASE(medium_order),
	KUNIT_CASE(medium_scarce),
	KUNIT_CASE(medium_waits),
	KUNIT_CASE(medium_injected),
	{}
};

static struct kunit_suite medium_suite = {
	.name		= "kefa_rdm_medium",
	.test_cases	= medium_cases,
};

kunit_test_suite(medium_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, medium messages by plain calls");
MODULE_LICENSE("Dual BSD/GPL");
