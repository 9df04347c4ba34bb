// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: messages of one packet by plain calls. They use only a send slot, without an
 * operation, and their packets take the fast path through the receiver. Whatever interferes, such
 * a message must complete once and in order, and leave no resource in use.
 */
#include "efa_rdm_scene.h"

/* Length of a message that is long enough to be sent without being copied. */
#define BYTES	4000

/* Deliver bytes that are no packet, so that the first end declares the second one dead. */
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

static void expect_slots(struct kunit *test, struct rdm_end *end, u32 used)
{
	struct kefa_rdm *rdm = rdm_of(end);

	KUNIT_EXPECT_EQ(test, rdm->rops.used, 0U);
	KUNIT_EXPECT_EQ(test, rdm->ts_nfree, rdm->nts - used);
	KUNIT_EXPECT_EQ(test, rdm->ep.tx.nfree, rdm->ep.tx.base.size - used);
}

/* Each plain call takes the fast path, and so do the packets at the receiver. */
static void short_slot(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kvec iov = { pair->out, 8 };
	struct fid_ep *from = pair->end[0].ep, *to = pair->end[1].ep;
	const fi_addr_t peer = pair->end[0].peer;
	const u32 was = rdm_uses(rdm_of(&pair->end[1]));
	struct rdm_comp comp;
	int i;

	efa_fill(pair->out, BYTES, 1);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, BYTES, 5, 10), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(to, pair->in + BYTES, BYTES, NULL, FI_ADDR_UNSPEC,
				      (void *)11), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_send(from, pair->out, 13, NULL, peer, (void *)2), 0);
	KUNIT_EXPECT_EQ(test, fi_tinject(from, pair->out, 20, peer, 6), 0);
	KUNIT_EXPECT_EQ(test, fi_inject(from, pair->out, 0, peer), 0);
	expect_slots(test, &pair->end[0], 4);
	KUNIT_EXPECT_EQ(test, fi_tsendv(from, &iov, NULL, 1, peer, 7, (void *)3), 0);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->rops.used, 1U);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 1, BYTES);
	rdm_expect(test, &pair->end[0], 2, 13);
	rdm_expect(test, &pair->end[0], 3, 8);
	rdm_expect_nothing(test, &pair->end[0]);
	comp = rdm_read(&pair->end[1]);
	KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, 10L);
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_TAGGED | FI_RECV);
	KUNIT_EXPECT_EQ(test, comp.entry.tag, 5ULL);
	KUNIT_EXPECT_EQ(test, comp.src, pair->end[1].peer);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, BYTES, 1));
	comp = rdm_read(&pair->end[1]);
	KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, 11L);
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_MSG | FI_RECV);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 13UL);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in + BYTES, 13, 1));
	/* The same for unexpected messages. */
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.unexpected, 3ULL);
	KUNIT_EXPECT_EQ(test, fi_recv(to, NULL, 0, NULL, FI_ADDR_UNSPEC, (void *)12), 0);
	rdm_expect(test, &pair->end[1], 12, 0);
	for (i = 6; i < 8; i++) {
		memset(pair->in, 0xff, 20);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 20, i, i), 0);
		rdm_expect(test, &pair->end[1], i, i == 6 ? 20 : 8);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, i == 6 ? 20 : 8, 1));
	}
	KUNIT_EXPECT_EQ(test, rdm_uses(rdm_of(&pair->end[1])), was);
	rdm_expect_whole(test, pair);
}

/* The error of a send says which peer it was for: an inject has no context to tell it. */
static void short_to_whom(struct kunit *test)
{
	const u32 refused = 9;	/* The device's status for a peer that went away. */
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct fid_ep *from = pair->end[0].ep;
	const fi_addr_t peer = pair->end[0].peer;
	struct rdm_comp comp;
	unsigned int i;

	/* Without an operation, and with one. */
	KUNIT_EXPECT_EQ(test, fi_inject(from, pair->out, 8, peer), 0);
	KUNIT_EXPECT_EQ(test, fi_injectdata(from, pair->out, 8, 1, peer), 0);
	rdm_finish_sent(pair, 0, refused);
	for (i = 0; i < 2; i++) {
		comp = rdm_read(&pair->end[0]);
		KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
		KUNIT_EXPECT_NULL(test, comp.error.op_context);
		KUNIT_EXPECT_EQ(test, comp.error.err, ECONNRESET);
		KUNIT_EXPECT_EQ(test, comp.error.src_addr, peer);
	}
	rdm_expect_nothing(test, &pair->end[0]);
}

/* --- order among short and long messages --- */

static const size_t lens[] = { 8, 9000, 16, 0, 30000, 600, 12000, 7, BYTES, 20000, 20, 8 };

static size_t offset(unsigned int n)
{
	size_t off = 0;

	while (n--)
		off += lens[n];
	return off;
}

static void receive(struct kunit *test, struct rdm_pair *pair, unsigned int i)
{
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, pair->in + offset(i), lens[i], NULL,
				       FI_ADDR_UNSPEC, 5, 0, (void *)(long)i), 0);
}

/* Short and long messages of each sub-protocol, all with one tag, reordered by the network. */
static void between(struct kunit *test, u32 seed)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	unsigned int i, n, done;

	prandom_seed_state(&pair->net.rnd, seed);
	pair->net.reorder = 500;
	pair->net.rnr = seed & 1 ? 100 : 0;
	pair->net.late = 300;
	for (i = 0; i < 2; i++) {
		rdm_of(&pair->end[i])->lim.max_medium = 10000;
		rdm_of(&pair->end[i])->lim.min_read_message = 25000;
	}
	memset(pair->in, 0, offset(ARRAY_SIZE(lens)));
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		if (i < ARRAY_SIZE(lens) / 2)
			receive(test, pair, i);
		efa_fill(pair->out + offset(i), lens[i], i);
		KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[0].ep, pair->out + offset(i), lens[i],
					       NULL, pair->end[0].peer, 5, (void *)(long)i), 0);
	}
	for (i = 0; i < 4; i++)
		rdm_run(pair);
	for (i = ARRAY_SIZE(lens) / 2; i < ARRAY_SIZE(lens); i++)
		receive(test, pair, i);
	for (i = 0, n = 0, done = 0; i < 200 && n + done < 2 * ARRAY_SIZE(lens); i++) {
		rdm_run(pair);
		n = rdm_read_all(&pair->end[0], n);
		done = rdm_read_all(&pair->end[1], done);
	}
	KUNIT_EXPECT_EQ(test, n, (unsigned int)ARRAY_SIZE(lens));
	KUNIT_EXPECT_EQ(test, done, (unsigned int)ARRAY_SIZE(lens));
	for (i = 0; i < ARRAY_SIZE(lens); i++)
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in + offset(i), lens[i], i));
	KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_LONGREAD_TAGRTM_PKT], 1U);
	KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_LONGCTS_TAGRTM_PKT], 2U);
	KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_MEDIUM_TAGRTM_PKT], 2U);
	rdm_expect_whole(test, pair);
	EFA_CLOSE(test, pair->end[0].ep);
	EFA_CLOSE(test, pair->end[1].ep);
	efake_remove(pair->fake);
}

static void short_between(struct kunit *test)
{
	u32 seed;

	for (seed = 1; seed < 7; seed++)
		between(test, seed);
}

/* If a message has to wait because mapping fails, later ones must not overtake it. */
static void short_waits(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	unsigned int i, n;

	/* A single failure doesn't make the message wait. */
	efake_fail(pair->fake, EFAKE_DMA_MAP, 1, -ENOMEM);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, 5, 0), 0);
	KUNIT_EXPECT_EQ(test, pair->end[0].qp->nsent, 1U);
	pair->fake->refuse = BIT(EFAKE_DMA_MAP);
	/* Messages are copied as long as there are bounce buffers. */
	for (n = 1; n < 50 && list_empty(&rdm->todo); n++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, 5, n), 0);
	KUNIT_ASSERT_LT(test, n, 50U);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, n), 0);
	KUNIT_EXPECT_EQ(test, fi_tinject(pair->end[0].ep, pair->out, 8, pair->end[0].peer, 5),
			-EAGAIN);
	KUNIT_EXPECT_EQ(test, pair->end[0].qp->nsent, n - 1);
	KUNIT_EXPECT_EQ(test, rdm->rops.used, n + 1);
	pair->fake->refuse = 0;
	rdm_run(pair);
	for (i = 0; i <= n; i++) {
		KUNIT_EXPECT_EQ(test, rdm_read(&pair->end[0]).ret, 1);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, BYTES, 5, i), 0);
		rdm_expect(test, &pair->end[1], i, i == n ? 8 : BYTES);
	}
	rdm_expect_whole(test, pair);
}

/* While the device doesn't complete a message, numbers run ahead by at most the window. */
static void short_window(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct efake_qp *qp = pair->end[0].qp;
	unsigned int i, window = KEFA_ORDER_SEND_WINDOW;

	spin_lock_bh(&rdm->ep.lock);
	window -= kefa_peers_at(&rdm->peers, pair->end[0].peer)->order.next_id % KEFA_ORDER_PART;
	spin_unlock_bh(&rdm->ep.lock);
	for (i = 0; i < window; i++) {
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, i), 0);
		KUNIT_ASSERT_EQ(test, qp->nsent, i ? 2U : 1U);
		if (!i)
			continue;
		efake_wr_done(efake_sent(qp, 1), 0);
		efake_settle();
		rdm_expect(test, &pair->end[0], i, 8);
	}
	expect_slots(test, &pair->end[0], 1);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, i), 0);
	KUNIT_EXPECT_EQ(test, qp->nsent, 1U);
	KUNIT_EXPECT_EQ(test, rdm->rops.used, 1U);
	efake_wr_done(efake_sent(qp, 0), 0);
	efake_settle();
	rdm_expect(test, &pair->end[0], 0, 8);
	KUNIT_EXPECT_EQ(test, qp->nsent, 1U);
	efake_wr_done(efake_sent(qp, 0), 0);
	efake_settle();
	rdm_expect(test, &pair->end[0], i, 8);
	expect_slots(test, &pair->end[0], 0);
}

/* The numbers of messages and of slot uses wrap. */
static void short_wraps(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	const u32 was = rdm_uses(rdm_of(&pair->end[1]));
	struct kefa_rdm *rdm;
	long i, n;
	u32 next;

	for (i = 0; i < 2; i++) {
		rdm = rdm_of(&pair->end[i]);
		spin_lock_bh(&rdm->ep.lock);
		kefa_peers_at(&rdm->peers, pair->end[i].peer)->order.next_id = U32_MAX - 20;
		kefa_peers_at(&rdm->peers, pair->end[i].peer)->order.exp_id = U32_MAX - 20;
		for (n = 0; n < rdm->nts; n++)
			rdm->ts[n].id |= (u64)U32_MAX << 32;
		spin_unlock_bh(&rdm->ep.lock);
	}
	rdm_theirs_forget(&pair->theirs);
	pair->net.late = 300;
	for (n = 0; n < 60; n += 20) {
		pair->net.reorder = n ? 500 : 0;
		for (i = n; i < n + 20; i++) {
			if (i & 1)
				KUNIT_EXPECT_EQ(test, rdm_trecv(pair, BYTES, i, i), 0);
			KUNIT_EXPECT_EQ(test, rdm_tsend(pair, i % 4 * 1000, i, i), 0);
		}
		rdm_run(pair);
		for (i = n; i < n + 20; i++)
			if (!(i & 1))
				KUNIT_EXPECT_EQ(test, rdm_trecv(pair, BYTES, i, i), 0);
		KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), 20U);
		KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[1], 0), 20U);
	}
	spin_lock_bh(&rdm->ep.lock);
	next = kefa_peers_at(&rdm->peers, pair->end[1].peer)->order.exp_id;
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_EQ(test, next, 39U);
	/* Messages in order took the fast path, before and after the wrap. */
	KUNIT_EXPECT_LT(test, rdm_uses(rdm) - was, 30U);
	rdm_expect_whole(test, pair);
}

/* Messages that found no receive are sent again in their order, whatever that of the reports. */
static void short_again(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct efake_qp *qp = pair->end[0].qp;
	struct kefa_eager_tagrtm_hdr hdr;
	const unsigned int n = 6;
	unsigned int i;
	u32 first = 0;

	/* Long enough for all to be parked before the delay is over. */
	rdm->backoffs.first_us = USEC_PER_SEC;
	rdm->backoffs.max_us = 4 * USEC_PER_SEC;
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, i), 0);
	/* The first report sends its message again at once. */
	for (i = 0; i < 10 * n && qp->nsent; i++) {
		efake_wr_done(efake_sent(qp, i % 3 % qp->nsent), KEFA_STATUS_RNR);
		efake_settle();
	}
	KUNIT_EXPECT_EQ(test, list_count_nodes(&rdm->parked), n);
	for (i = 0; i < 200 && !qp->nsent; i++) {
		msleep(20);
		efake_settle_all();
	}
	KUNIT_ASSERT_EQ(test, qp->nsent, n);
	for (i = 0; i < n; i++) {
		efake_wr_read(efake_sent(qp, i), (u8 *)&hdr, sizeof(hdr));
		first = i ? first : le32_to_cpu(hdr.hdr.msg_id);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(hdr.hdr.msg_id), first + i);
	}
	rdm_run(pair);
	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_EQ(test, rdm_read(&pair->end[0]).ret, 1);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, BYTES, 5, i), 0);
		rdm_expect(test, &pair->end[1], i, 8);
	}
	rdm_expect_whole(test, pair);
}

/* Let the peer's delay run out. Return: the packet that is sent again, or NULL. */
static struct efake_wr *sent_again(struct rdm_pair *pair)
{
	struct efake_qp *qp = pair->end[0].qp;
	unsigned int i;

	for (i = 0; i < 200 && !qp->nsent; i++) {
		msleep(20);
		efake_settle_all();
	}
	return efake_sent(qp, 0);
}

/* A message that was sent before a delay and arrives while it runs doesn't shorten the next one. */
static void short_backoff(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct efake_qp *qp = pair->end[0].qp;
	struct kefa_backoff *delay = NULL;
	struct kefa_ts *parked;
	unsigned int i;

	/* Longer than it takes to complete the second message. */
	rdm->backoffs.first_us = 200000;
	rdm->backoffs.max_us = 10 * USEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), 0);
	/* The first report sends the message again at once, behind the second message. */
	for (i = 0; i < 2; i++) {
		efake_wr_done(efake_sent(qp, i), KEFA_STATUS_RNR);
		efake_settle();
	}
	parked = list_first_entry_or_null(&rdm->parked, struct kefa_ts, list);
	KUNIT_ASSERT_NOT_NULL(test, parked);
	delay = &parked->peer->backoff;
	KUNIT_EXPECT_EQ(test, delay->delay_us, 200000U);
	KUNIT_ASSERT_EQ(test, qp->nsent, 1U);
	efake_wr_done(efake_sent(qp, 0), 0);
	efake_settle();
	rdm_expect(test, &pair->end[0], 2, 8);
	KUNIT_EXPECT_TRUE(test, delay->waiting);
	for (i = 2; i <= 4; i *= 2) {
		KUNIT_ASSERT_NOT_NULL(test, sent_again(pair));
		efake_wr_done(efake_sent(qp, 0), KEFA_STATUS_RNR);
		efake_settle();
		KUNIT_EXPECT_TRUE(test, delay->waiting);
		KUNIT_EXPECT_EQ(test, delay->delay_us, i * 200000);
	}
	/* It arrives at last, so the next delay is the first one again. */
	KUNIT_ASSERT_NOT_NULL(test, sent_again(pair));
	efake_wr_done(efake_sent(qp, 0), 0);
	efake_settle();
	rdm_expect(test, &pair->end[0], 1, 8);
	KUNIT_EXPECT_EQ(test, delay->delay_us, 0U);
	rdm_expect_whole(test, pair);
}

/* --- ends of messages --- */

enum way { ARRIVED, KILLED, REMOVED, CLOSED, UNPLUGGED, WAYS };

/* Expected error of the completions. */
static const int way_errs[WAYS] = { 0, EPROTO, ECANCELED, ECANCELED, ENODEV };

/* Have each message find no receive twice, so that it is parked. */
static void park_all(struct kunit *test, struct rdm_pair *pair)
{
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct efake_qp *qp = pair->end[0].qp;
	struct kefa_ts *parked;
	unsigned int n;

	for (n = 0; qp->nsent && n < 20; n++) {
		efake_wr_done(efake_sent(qp, 0), KEFA_STATUS_RNR);
		efake_settle();
	}
	KUNIT_EXPECT_EQ(test, list_count_nodes(&rdm->parked), 3UL);
	/* However many packets come back, the peer has one delay. */
	parked = list_first_entry_or_null(&rdm->parked, struct kefa_ts, list);
	KUNIT_ASSERT_NOT_NULL(test, parked);
	KUNIT_EXPECT_EQ(test, parked->peer->backoff.delay_us, rdm->backoffs.first_us);
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

/* Both sends must have completed once, and the injected one only if it has failed. */
static void expect_ended(struct kunit *test, struct rdm_end *end, int err)
{
	unsigned int seen[3] = { }, i;
	struct rdm_comp comp;
	long ctx;

	while ((comp = rdm_read(end)).ret != -EAGAIN) {
		ctx = (long)(comp.ret == 1 ? comp.entry.op_context : comp.error.op_context);
		KUNIT_ASSERT_LT(test, ctx, 3L);
		seen[ctx]++;
		KUNIT_EXPECT_EQ(test, comp.error.err, err);
	}
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, seen[i], i || err ? 1U : 0U);
}

/* End a copied message, one that is sent without a copy, and an injected one. */
static void end_it(struct kunit *test, enum way way, bool parked)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	unsigned int i;

	/* The delay must exceed the time of the case on a slow machine, unless it is waited for. */
	rdm->backoffs.first_us = way == ARRIVED ? 100000 : 10 * USEC_PER_SEC;
	rdm->backoffs.max_us = 4 * rdm->backoffs.first_us;
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, 5, 2), 0);
	KUNIT_EXPECT_EQ(test, fi_tinject(pair->end[0].ep, pair->out, 100, pair->end[0].peer, 5), 0);
	expect_slots(test, &pair->end[0], 3);
	if (parked)
		park_all(test, pair);
	rdm_expect_nothing(test, &pair->end[0]);
	end_by(test, pair, way);
	/* No completion while the device may still read the ULP's memory. */
	if (!parked && way != CLOSED && way != UNPLUGGED) {
		rdm_expect_nothing(test, &pair->end[0]);
		KUNIT_EXPECT_EQ(test, pair->end[0].qp->nsent, 3U);
		rdm_finish_sent(pair, 0, way == REMOVED ? 13 : 0);
	}
	for (i = 0; way == ARRIVED && !list_empty(&rdm->parked) && i < 100; i++) {
		msleep(20);
		rdm_run(pair);
	}
	if (way == ARRIVED)
		rdm_run(pair);
	expect_ended(test, &pair->end[0], way_errs[way]);
	if (way == CLOSED)
		EFA_CLOSE(test, pair->end[1].ep);
	if (way == UNPLUGGED)
		return;
	if (way != CLOSED)
		expect_slots(test, &pair->end[0], 0);
	if (way == ARRIVED && parked)
		KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.unexpected, 3ULL);
	if (way != CLOSED) {
		EFA_CLOSE(test, pair->end[0].ep);
		EFA_CLOSE(test, pair->end[1].ep);
	}
	efake_remove(pair->fake);
}

static void short_ends(struct kunit *test)
{
	enum way way;

	for (way = ARRIVED; way < WAYS; way++) {
		end_it(test, way, false);
		end_it(test, way, true);
	}
}

/* The device refuses a post: the peer is dead, and earlier messages end when they complete. */
static void short_refused(struct kunit *test)
{
	struct rdm_pair *pair;
	int way;

	for (way = 0; way < 2; way++) {
		pair = rdm_ready_pair(test, NULL);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, 5, 1), 0);
		efake_fail(pair->fake, EFAKE_POST_SEND, 1, -EIO);
		if (way)
			KUNIT_EXPECT_EQ(test, fi_tinject(pair->end[0].ep, pair->out, 8,
							 pair->end[0].peer, 5), 0);
		else
			KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, 5, 2), 0);
		rdm_expect_error(test, &pair->end[0], way ? 0 : 2, EIO);
		rdm_expect_nothing(test, &pair->end[0]);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 3), -EHOSTUNREACH);
		rdm_finish_sent(pair, 0, 0);
		rdm_expect_error(test, &pair->end[0], 1, EIO);
		rdm_expect_nothing(test, &pair->end[0]);
		rdm_expect_whole(test, pair);
		EFA_CLOSE(test, pair->end[0].ep);
		EFA_CLOSE(test, pair->end[1].ep);
		efake_remove(pair->fake);
	}
}

/* The device refuses a receive, which is then posted later. */
static void short_unposted(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	int i;

	for (i = 0; i < 4; i++) {
		efake_fail(pair->fake, EFAKE_POST_RECV, 1, -ENOMEM);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 1), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), 0);
		rdm_run(pair);
		rdm_expect(test, &pair->end[0], 2, 8);
		rdm_expect(test, &pair->end[1], 1, 8);
		KUNIT_EXPECT_EQ(test, rdm->nposted, rdm->target);
	}
}

/* A completion of an earlier use of a slot, or of a slot that doesn't exist. */
static void short_stale(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_wc wc = { };
	int i;

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), 0);
	for (i = 0; i < 2; i++) {
		wc.id = i ? efake_recv(pair->end[1].qp, 0)->id : efake_sent(pair->end[0].qp, 0)->id;
		if (!i)
			rdm_run(pair);
		/* The receive is posted: take the use before the current one. */
		wc.id -= i ? 1ULL << 32 : 0;
		efake_qp_push(pair->end[i].qp, &wc);
		wc.id |= 0x7fffff;
		efake_qp_push(pair->end[i].qp, &wc);
		efake_settle();
		KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[i])->ep.stats.stale, 2ULL);
	}
	rdm_expect(test, &pair->end[0], 2, 8);
	rdm_expect(test, &pair->end[1], 1, 8);
	rdm_expect_nothing(test, &pair->end[0]);
	rdm_expect_nothing(test, &pair->end[1]);
	rdm_expect_whole(test, pair);
}

/* --- completion queues and counters --- */

/* Calls fail with EAGAIN while outstanding operations and unread completions fill the queue. */
static void short_full(struct kunit *test)
{
	const struct rdm_opts opts = { .cq_size = 16 };
	struct rdm_pair *pair = rdm_ready_pair(test, &opts);
	struct fid_ep *from = pair->end[0].ep;
	unsigned int i, n, m;

	for (i = 0; i < 3; i++) {
		for (n = 0; n < 32 && !rdm_tsend(pair, 8, 5, 1); n++)
			;
		KUNIT_EXPECT_EQ(test, n, 16U);
		KUNIT_EXPECT_EQ(test, fi_tinject(from, pair->out, 8, pair->end[0].peer, 5),
				-EAGAIN);
		expect_slots(test, &pair->end[0], 16);
		for (m = 0; m < 32 && !rdm_trecv(pair, 8, 5, 2); m++)
			;
		KUNIT_EXPECT_EQ(test, m, 16U);
		rdm_run(pair);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), -EAGAIN);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 2), -EAGAIN);
		rdm_expect(test, &pair->end[0], 1, 8);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 6, 1), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 6, 1), -EAGAIN);
		rdm_run(pair);
		KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), 16U);
		KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[1], 0), 16U);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 6, 2), 0);
		rdm_expect(test, &pair->end[1], 2, 8);
	}
	rdm_expect_whole(test, pair);
}

/* Operations without completions free their room in the queue, and counters count them. */
static void short_quiet(struct kunit *test)
{
	const struct rdm_opts opts = { .cq_size = 16, .selective = true, .counted = true };
	struct rdm_pair *pair = rdm_ready_pair(test, &opts);
	unsigned int i, n;

	for (i = 0; i < 4; i++) {
		for (n = 0; n < 8; n++) {
			if (i & 1)
				KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 2), 0);
			KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), 0);
		}
		rdm_run(pair);
		for (n = 0; n < 8 && !(i & 1); n++)
			KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 2), 0);
	}
	rdm_expect_nothing(test, &pair->end[0]);
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(pair->end[0].cntr), 33ULL);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(pair->end[1].cntr), 33ULL);
	/* A failed operation has a completion. */
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, BYTES, 5, 1), 0);
	rdm_finish_sent(pair, 0, 13);
	rdm_expect_error(test, &pair->end[0], 1, ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 2), 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&pair->end[1].ep->fid, (void *)2), 0);
	rdm_expect_error(test, &pair->end[1], 2, ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(pair->end[0].cntr), 1ULL);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(pair->end[1].cntr), 1ULL);
	rdm_expect_whole(test, pair);
}

/* --- doorbells --- */

static ssize_t send_more(struct rdm_pair *pair, long ctx)
{
	struct kvec iov = { pair->out, 8 };
	struct fi_msg_tagged msg = {
		.addr = pair->end[0].peer, .tag = 5, .context = (void *)ctx,
	};

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, iov.iov_len);
	return fi_tsendmsg(pair->end[0].ep, &msg, FI_MORE);
}

/*
 * A short message is posted after those held back by FI_MORE, by the same doorbell. What a handler
 * posts is held back until it returns.
 */
static void short_held(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct efake_qp *qp = pair->end[0].qp;
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	const unsigned int was = qp->doorbells;
	long i;

	/* Play the worker, so that posts are held back. */
	cancel_work_sync(&rdm->ep.work);
	spin_lock_bh(&rdm->ep.lock);
	rdm->ep.worker = current;
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_EQ(test, send_more(pair, 0), 0);
	for (i = 1; i < KEFA_HELD_MAX + 4; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, i & 1 ? 8 : BYTES, 5, i), 0);
	/* One doorbell when as many as possible are held back. */
	KUNIT_EXPECT_EQ(test, qp->doorbells, was + 1);
	KUNIT_EXPECT_EQ(test, qp->nsent, (unsigned int)KEFA_HELD_MAX);
	spin_lock_bh(&rdm->ep.lock);
	rdm->ep.worker = NULL;
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, i++), 0);
	KUNIT_EXPECT_EQ(test, qp->doorbells, was + 2);
	KUNIT_EXPECT_EQ(test, qp->nsent, i);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, i++), 0);
	KUNIT_EXPECT_EQ(test, qp->doorbells, was + 3);
	rdm_run(pair);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), i);
	while (i--)
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, BYTES, 5, i), 0);
	KUNIT_EXPECT_GT(test, rdm_read_all(&pair->end[1], 0), 16U);
	rdm_expect_whole(test, pair);
}

static struct kunit_case short_cases[] = {
	KUNIT_CASE(short_slot),
	KUNIT_CASE(short_to_whom),
	KUNIT_CASE(short_between),
	KUNIT_CASE(short_waits),
	KUNIT_CASE(short_window),
	KUNIT_CASE(short_wraps),
	KUNIT_CASE(short_again),
	KUNIT_CASE(short_backoff),
	KUNIT_CASE_SLOW(short_ends),
	KUNIT_CASE(short_refused),
	KUNIT_CASE(short_unposted),
	KUNIT_CASE(short_stale),
	KUNIT_CASE(short_full),
	KUNIT_CASE(short_quiet),
	KUNIT_CASE(short_held),
	{}
};

static struct kunit_suite short_suite = {
	.name		= "kefa_rdm_short",
	.test_cases	= short_cases,
};

kunit_test_suite(short_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, messages of one packet by plain calls");
MODULE_LICENSE("Dual BSD/GPL");
