// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: addresses are removed and inserted again at each moment of the exchange of
 * HANDSHAKEs, at either end. Messages that are sent afterwards must arrive, or end with an error:
 * a HANDSHAKE is sent only once, so nothing may wait for one that has arrived.
 */
#include "efa_rdm_scene.h"

/* --- an address is removed while its peer's HANDSHAKE is under way --- */

static void remove_peer(struct kunit *test, struct rdm_end *end)
{
	KUNIT_EXPECT_EQ(test, fi_av_remove(end->av, &end->peer, 1, 0), 0);
}

static void insert_peer(struct kunit *test, struct rdm_pair *pair, int at)
{
	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[at].av, &pair->end[!at].name, 1,
					   &pair->end[at].peer, 0, NULL), 1);
}

/* The question was sent; the address is removed, and inserted again after the answer. */
static void expect_answered(struct kunit *test, struct rdm_pair *pair)
{
	remove_peer(test, &pair->end[0]);
	rdm_run(pair);
	KUNIT_EXPECT_GE(test, pair->net.seen[KEFA_HANDSHAKE_PKT], 1U);
	insert_peer(test, pair, 0);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 3), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 8);
	rdm_expect(test, &pair->end[1], 3, 8);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->stats.dropped[KEFA_DROP_STRANGER], 0ULL);
}

static void shaking_send(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);

	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&pair->end[0].ep->fid, (void *)1), 0);
	rdm_expect_error(test, &pair->end[0], 1, ECANCELED);
	expect_answered(test, pair);
}

static void shaking_inject(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);

	KUNIT_EXPECT_EQ(test, fi_inject(pair->end[0].ep, pair->out, 8, pair->end[0].peer), -EAGAIN);
	expect_answered(test, pair);
}

/* --- peers that never send their HANDSHAKE --- */

/* Have the first endpoint receive a message of the second one. */
static void chatter(struct rdm_pair *pair, u32 msg_id)
{
	const struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_EAGER_TAGRTM_PKT),
		.flags		= KEFA_REQ_OPT_RAW_ADDR_HDR,
		.has_connid	= true,
		.connid		= pair->end[1].name.qkey,
		.msg_id		= msg_id,
		.tag		= 9,
		.raw		= rdm_of(&pair->end[1])->self.raw,
		.raw_len	= KEFA_RAW_ADDR_LEN,
	};
	struct efake_wr *recv = efake_recv(pair->end[0].qp, 0);
	u8 buf[128];
	const struct kefa_wc wc = {
		.len		= kefa_build(&pkt, buf, sizeof(buf)),
		.src_qpn	= pair->end[1].name.qpn,
		.slid		= RDM_SLID,
	};

	efake_wr_write(recv, buf, wc.len);
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

/* The peer takes each packet, and perhaps sends messages, but never its HANDSHAKE. */
static void never(struct kunit *test, bool inject, bool chatters)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	unsigned int n;

	KUNIT_EXPECT_EQ(test, rdm->shake_checks, 120);
	if (inject)
		KUNIT_EXPECT_EQ(test, fi_inject(pair->end[0].ep, pair->out, 8, pair->end[0].peer),
				-EAGAIN);
	else
		for (n = 0; n < 3; n++)
			KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, n), 0);
	for (n = 0; n < 300 && !rdm->stats.deaths; n++) {
		rdm_finish_sent(pair, 0, 0);
		if (chatters && n < 100)
			chatter(pair, n);
		rdm_check_peers(rdm);
		efake_settle_all();
	}
	KUNIT_EXPECT_GE(test, n, 100U);
	KUNIT_EXPECT_LE(test, n, 122U);
	for (n = 0; n < 3 && !inject; n++)
		rdm_expect_error(test, &pair->end[0], n, ETIMEDOUT);
	rdm_expect_nothing(test, &pair->end[0]);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 4), -EHOSTUNREACH);
	KUNIT_EXPECT_FALSE(test, rdm->ep.tx.wanted);
	rdm_check_peers(rdm);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(rdm->listening));
	rdm_finish_sent(pair, 0, 0);
	remove_peer(test, &pair->end[0]);
	EFA_CLOSE(test, pair->end[1].ep);
	EFA_CLOSE(test, pair->end[0].ep);
	efake_remove(pair->fake);
}

static void shaking_never(struct kunit *test)
{
	int i;

	for (i = 0; i < 4; i++)
		never(test, i & 1, i & 2);
}

/* A peer that isn't ready to receive the question isn't judged, nor without a limit. */
static void shaking_late(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	unsigned int n;

	rdm->backoffs.first_us = USEC_PER_SEC;
	rdm->shake_checks = 3;
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 2), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 1), 0);
	for (n = 0; n < 10; n++) {
		rdm_finish_sent(pair, 0, KEFA_STATUS_RNR);
		rdm_check_peers(rdm);
	}
	rdm->shake_checks = 0;
	for (n = 0; n < 300; n++) {
		rdm_finish_sent(pair, 0, 0);
		rdm_check_peers(rdm);
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
	for (n = 0; n < 300 && !pair->net.seen[KEFA_EAGER_TAGRTM_PKT]; n++) {
		rdm_run(pair);
		rdm_check_peers(rdm);
		msleep(20);
	}
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 1, 8);
	rdm_expect(test, &pair->end[1], 2, 8);
}

/* --- each moment --- */

/**
 * struct moment - when addresses are removed and inserted again
 * @at: index of the endpoint that removes the other's address; 2 for both
 * @first: index of the endpoint whose packets are delivered first
 * @rnr: number of times that each packet finds no receive
 * @steps: number of events before the removal
 * @later: number of events between the removal and the insertion
 * @delivered: for each endpoint, id of the work request that was delivered and isn't completed yet
 * @refused: for each endpoint, number of times that the oldest packet found no receive
 * @good: number of messages that arrived afterwards
 * @bad: number of messages that ended with an error
 */
struct moment {
	int		at;
	int		first;
	unsigned int	rnr;
	unsigned int	steps;
	unsigned int	later;
	u64		delivered[2];
	unsigned int	refused[2];
	unsigned int	good;
	unsigned int	bad;
};

/* Return: whether there was a packet to be delivered, or to be completed after that. */
static bool event_of(struct rdm_pair *pair, struct moment *m, int from)
{
	const struct kefa_wc done = { .status = 0 };
	struct efake_wr *wr = efake_sent(pair->end[from].qp, 0), *recv;
	struct kefa_wc wc = {
		.src_qpn	= pair->end[from].name.qpn,
		.slid		= RDM_SLID,
	};
	u8 buf[256];

	if (!wr)
		return false;
	if (m->delivered[from] == wr->id + 1) {
		m->delivered[from] = 0;
		efake_recv_done(wr, &done);
		return true;
	}
	if (m->refused[from] < m->rnr) {
		m->refused[from]++;
		efake_wr_done(wr, KEFA_STATUS_RNR);
		return true;
	}
	m->refused[from] = 0;
	recv = efake_recv(pair->end[!from].qp, 0);
	wc.len = efake_wr_read(wr, buf, sizeof(buf));
	efake_wr_write(recv, buf, wc.len);
	m->delivered[from] = wr->id + 1;
	efake_recv_done(recv, &wc);
	return true;
}

/* Return: whether a delay is running after which an endpoint sends packets again. */
static bool delayed(struct rdm_end *end)
{
	struct kefa_rdm *rdm = rdm_of(end);
	bool ret;

	spin_lock_bh(&rdm->ep.lock);
	ret = kefa_backoff_next(&rdm->backoffs) != KTIME_MAX;
	spin_unlock_bh(&rdm->ep.lock);
	return ret;
}

static bool event(struct rdm_pair *pair, struct moment *m)
{
	bool more;

	for (;;) {
		more = event_of(pair, m, m->first) || event_of(pair, m, !m->first);
		efake_settle_all();
		if (more || (!delayed(&pair->end[0]) && !delayed(&pair->end[1])))
			break;
		usleep_range(50, 100);
	}
	return more || pair->end[0].qp->nsent || pair->end[1].qp->nsent;
}

static bool events(struct rdm_pair *pair, struct moment *m, unsigned int n)
{
	while (n--)
		if (!event(pair, m))
			return false;
	return true;
}

static void for_ends(struct kunit *test, struct rdm_pair *pair, const struct moment *m, bool remove)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (m->at != i && m->at != 2)
			continue;
		if (remove)
			remove_peer(test, &pair->end[i]);
		else
			insert_peer(test, pair, i);
	}
}

/* Read completions of contexts 10 (a send) and 20 (a receive), and ignore earlier ones. */
static void look(struct kunit *test, struct rdm_end *end, int *sent, int *got)
{
	struct rdm_comp comp;
	long ctx;
	int err;

	while ((comp = rdm_read(end)).ret != -EAGAIN) {
		err = comp.ret == 1 ? 0 : comp.error.err;
		ctx = (long)(err ? comp.error.op_context : comp.entry.op_context);
		if (ctx == 10)
			*sent = err;
		if (ctx == 20)
			*got = err;
	}
}

/* A message each way must arrive, or the send of it must end with an error. */
static void talk(struct kunit *test, struct rdm_pair *pair, struct moment *m)
{
	int sent[2] = { -1, -1 }, got[2] = { -1, -1 }, i;
	struct rdm_end *end;
	unsigned int n;
	ssize_t ret;

	for (i = 0; i < 2; i++) {
		end = &pair->end[i];
		KUNIT_EXPECT_EQ(test, fi_trecv(end->ep, pair->in, 8, NULL, FI_ADDR_UNSPEC, 7, 0,
					       (void *)20), 0);
		ret = fi_tsend(end->ep, pair->out, 8, NULL, end->peer, 7, (void *)10);
		if (ret)
			sent[i] = -ret;
	}
	for (n = 0; n < 400 && (sent[0] < 0 || sent[1] < 0); n++) {
		while (event(pair, m))
			;
		for (i = 0; i < 2; i++) {
			look(test, &pair->end[i], &sent[i], &got[i]);
			if (n % 40 == 39)
				rdm_check_peers(rdm_of(&pair->end[i]));
		}
		usleep_range(100, 200);
	}
	while (event(pair, m))
		;
	for (i = 0; i < 2; i++)
		look(test, &pair->end[i], &sent[i], &got[i]);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_GE(test, sent[i], 0);
		m->good += !sent[i];
		m->bad += sent[i] > 0;
		/* An end to which the other is dead drops its packets. */
		if (rdm_of(&pair->end[!i])->stats.dropped[KEFA_DROP_DEAD])
			continue;
		KUNIT_EXPECT_NE(test, sent[i], ETIMEDOUT);
		if (!sent[i])
			KUNIT_EXPECT_EQ(test, got[!i], 0);
	}
}

/* Return: whether there was anything to happen between the removal and the insertion. */
static bool try_moment(struct kunit *test, struct moment *m, bool *more)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	bool later;
	int i;

	memset(m->delivered, 0, sizeof(m->delivered));
	memset(m->refused, 0, sizeof(m->refused));
	for (i = 0; i < 2; i++)
		rdm_of(&pair->end[i])->shake_checks = 3;
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), 0);
	*more = events(pair, m, m->steps);
	for_ends(test, pair, m, true);
	later = events(pair, m, m->later);
	for_ends(test, pair, m, false);
	talk(test, pair, m);
	if (test->status == KUNIT_FAILURE)
		kunit_info(test, "at %d, first %d, rnr %u: removed after %u events, inserted after %u more\n",
			   m->at, m->first, m->rnr, m->steps, m->later);
	rdm_pair_end(pair);
	return later;
}

static void try_all(struct kunit *test, struct moment *m)
{
	const unsigned int stride = rdm_long ? 1 : m->rnr ? 48 : 12;
	bool more = true;

	for (m->steps = 0; more; m->steps += rdm_long || !m->rnr ? 1 : 2)
		for (m->later = m->steps % stride; try_moment(test, m, &more); m->later += stride)
			if (test->status == KUNIT_FAILURE)
				return;
}

static void shaking_anywhere(struct kunit *test)
{
	struct moment m = { .rnr = *(const unsigned int *)test->param_value };

	for (m.at = 0; m.at < 3; m.at++)
		for (m.first = 0; m.first < (rdm_long ? 2 : 1); m.first++)
			if (test->status != KUNIT_FAILURE)
				try_all(test, &m);
	kunit_info(test, "%u messages arrived, %u ended with an error\n", m.good, m.bad);
	KUNIT_EXPECT_GT(test, m.good, m.bad);
}

static const unsigned int rnrs[] = { 0, 2 };

static void rnr_name(const unsigned int *rnr, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "each packet finds no receive %u times", *rnr);
}

KUNIT_ARRAY_PARAM(rnr, rnrs, rnr_name);

static struct kunit_case shaking_cases[] = {
	KUNIT_CASE(shaking_send),
	KUNIT_CASE(shaking_inject),
	KUNIT_CASE(shaking_never),
	KUNIT_CASE(shaking_late),
	KUNIT_CASE_PARAM_ATTR(shaking_anywhere, rnr_gen_params, { .speed = KUNIT_SPEED_SLOW }),
	{}
};

static struct kunit_suite shaking_suite = {
	.name		= "kefa_rdm_shaking",
	.test_cases	= shaking_cases,
};

kunit_test_suite(shaking_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, addresses removed during the exchange of HANDSHAKEs");
MODULE_LICENSE("Dual BSD/GPL");
