// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: the fast path of messages that their receiver reads, and everything that can
 * interfere with it. The suite kefa_rdm_longread has the slow path.
 */
#include <linux/vmalloc.h>
#include "efa_rdm_scene.h"

#define WHOLE	SZ_128K
#define LONG	RDM_READ_FROM
#define TAG	5
/* A packet of a type that nothing sends, so that rdm_run_until() delivers everything. */
#define NONE	0xff

static u8 packet[SZ_16K];

/* Return: whether a posted packet has the bytes that kefa_build() makes of what it says. */
static bool usual(const struct efake_wr *wr, u8 type)
{
	static u8 again[SZ_16K];
	size_t len = efake_wr_read(wr, packet, sizeof(packet));
	struct kefa_pkt pkt;

	return !kefa_parse(packet, len, &pkt) && pkt.row->type == type && pkt.has_connid &&
	       kefa_build(&pkt, again, sizeof(again)) == len && !memcmp(packet, again, len);
}

/*
 * The receive ends with its read: the EOR, which is outstanding then, has no operation. All packets
 * are those of the slow path.
 */
static void read_plain(struct kunit *test)
{
	static const size_t sizes[] = { LONG, LONG + 1, WHOLE - 1, WHOLE };
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *rx = rdm_of(&pair->end[1]);
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		const size_t size = sizes[i / 2];
		const bool tagged = i & 1;
		const u8 type = KEFA_LONGREAD_MSGRTM_PKT + tagged;
		struct efake_wr *wr;

		memset(pair->in, 0, WHOLE);
		efa_fill(pair->out, size, i);
		KUNIT_EXPECT_EQ(test, tagged ? rdm_trecv(pair, size, TAG, 1) :
				fi_recv(pair->end[1].ep, pair->in, size, NULL, FI_ADDR_UNSPEC,
					(void *)1), 0);
		KUNIT_EXPECT_EQ(test, tagged ? rdm_tsend(pair, size, TAG, 2) :
				fi_send(pair->end[0].ep, pair->out, size, NULL,
					pair->end[0].peer, (void *)2), 0);
		wr = rdm_run_until(pair, 0, type);
		KUNIT_ASSERT_NOT_NULL(test, wr);
		KUNIT_EXPECT_TRUE(test, usual(wr, type));
		wr = rdm_run_until(pair, 1, KEFA_EOR_PKT);
		KUNIT_ASSERT_NOT_NULL(test, wr);
		KUNIT_EXPECT_TRUE(test, usual(wr, KEFA_EOR_PKT));
		KUNIT_EXPECT_EQ(test, rx->kept, 0ULL);
		rdm_expect(test, &pair->end[1], 1, size);
		KUNIT_EXPECT_EQ(test, rx->rops.used, 0U);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, size, i));
		rdm_expect_nothing(test, &pair->end[0]);
		rdm_run(pair);
		rdm_expect(test, &pair->end[0], 2, size);
		rdm_expect_whole(test, pair);
	}
	KUNIT_EXPECT_EQ(test, rx->stats.reads, (u64)i);
	KUNIT_EXPECT_EQ(test, rx->stats.received[KEFA_LONGREAD_TAGRTM_PKT], i / 2ULL);
	KUNIT_EXPECT_EQ(test, rx->stats.sent[KEFA_EOR_PKT], (u64)i);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->stats.received[KEFA_EOR_PKT], (u64)i);
}

/* Registrations of several messages are posted at once, and end in any order. Messages don't. */
static void read_order(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct efake_qp *qp = pair->end[0].qp;
	const u64 *sent = rdm_of(&pair->end[0])->stats.sent;
	struct efake_wr *reg[3];
	long i;

	pair->fake->manual_mr = true;
	efa_fill(pair->out, WHOLE, 1);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, LONG + i, TAG, 10 + i), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, TAG, 13), 0);
	/* After one that isn't registered a message waits until it is first. */
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, LONG + 4, TAG, 14), 0);
	KUNIT_ASSERT_EQ(test, qp->nsent, 3U);
	for (i = 0; i < 3; i++) {
		reg[i] = efake_sent(qp, i);
		KUNIT_ASSERT_EQ(test, reg[i]->opcode, IB_WR_REG_MR);
	}
	efake_wr_done(reg[1], 0);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, sent[KEFA_LONGREAD_TAGRTM_PKT], 0ULL);
	pair->fake->manual_mr = false;
	efake_wr_done(reg[0], 0);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, sent[KEFA_LONGREAD_TAGRTM_PKT], 2ULL);
	efake_wr_done(reg[2], 0);
	efake_settle_all();
	for (i = 0; i < 5; i++) {
		const size_t size = i == 3 ? 8 : LONG + i;

		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 20 + i), 0);
		rdm_run(pair);
		rdm_expect(test, &pair->end[1], 20 + i, size);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, size, 1));
	}
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), 5U);
	KUNIT_EXPECT_EQ(test, sent[KEFA_LONGREAD_TAGRTM_PKT], 4ULL);
	rdm_expect_whole(test, pair);
}

/* If the registration of one fails, it goes by long-CTS in its turn, and others are read. */
static void read_registration_fails(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct efake_qp *qp = pair->end[0].qp;
	struct efake_wr *reg[3];
	long i, fails;

	for (fails = 0; fails < 3; fails++) {
		memset(pair->net.seen, 0, sizeof(pair->net.seen));
		pair->fake->manual_mr = true;
		for (i = 0; i < 3; i++)
			KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE - i, TAG, 10 + i), 0);
		for (i = 0; i < 3; i++)
			reg[i] = efake_sent(qp, i);
		pair->fake->manual_mr = false;
		for (i = 2; i >= 0; i--)
			efake_wr_done(reg[i], i == fails ? 2 : 0);
		efake_settle_all();
		for (i = 0; i < 3; i++) {
			KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 20 + i), 0);
			rdm_run(pair);
			rdm_expect(test, &pair->end[1], 20 + i, WHOLE - i);
		}
		KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), 3U);
		KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_LONGREAD_TAGRTM_PKT], 2U);
		KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_LONGCTS_TAGRTM_PKT], 1U);
		rdm_expect_whole(test, pair);
	}
}

/* A call that the fast path refuses has changed nothing: the slow path sends the message. */
static void read_refused(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	const u64 *sent = rdm->stats.sent;
	u8 *out = vmalloc(WHOLE);
	LIST_HEAD(none);
	int way;

	KUNIT_ASSERT_NOT_NULL(test, out);
	efa_fill(out, WHOLE, 1);
	efa_fill(pair->out, WHOLE, 1);
	for (way = 0; way < 5; way++) {
		memset(pair->in, 0, WHOLE);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 1), 0);
		if (way == 0)
			list_splice_init(&rdm->sources_free, &none);
		if (way == 1)
			efake_fail(pair->fake, EFAKE_MR_MAP, 1, -EIO);
		if (way == 2)
			efake_fail(pair->fake, EFAKE_DMA_MAP, 1, -ENOMEM);
		if (way == 3)
			rdm->lim.runt = 1000;
		KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[0].ep, way == 4 ? out : pair->out, WHOLE,
					       NULL, pair->end[0].peer, TAG, (void *)2), 0);
		rdm_run(pair);
		list_splice_init(&none, &rdm->sources_free);
		rdm->lim.runt = 0;
		rdm_expect(test, &pair->end[0], 2, WHOLE);
		rdm_expect(test, &pair->end[1], 1, WHOLE);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, WHOLE, 1));
		rdm_expect_whole(test, pair);
	}
	/* One without a region, and one with a runt; the second try of the others works. */
	KUNIT_EXPECT_EQ(test, sent[KEFA_LONGCTS_TAGRTM_PKT], 1ULL);
	KUNIT_EXPECT_EQ(test, sent[KEFA_RUNTREAD_TAGRTM_PKT], 1ULL);
	KUNIT_EXPECT_EQ(test, sent[KEFA_LONGREAD_TAGRTM_PKT], 3ULL);
	vfree(out);
}

/* The receiver keeps a message that it can't read at once, and reads it by the slow path. */
static void read_kept(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *rx = rdm_of(&pair->end[1]);
	u8 *pages = alloc_pages_exact(WHOLE, GFP_KERNEL), *in, *to;
	u64 reads;
	int way;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	in = rdm_scattered(test, pages, WHOLE);
	for (way = 0; way < 5; way++) {
		const size_t room = way == 4 ? 1000 : WHOLE;

		to = way == 1 ? in : pair->in;
		memset(to, 0, WHOLE);
		efa_fill(pair->out, WHOLE, way);
		reads = rx->stats.reads;
		if (way == 2)
			rx->lim.read_segment = WHOLE / 2;
		if (way == 3)
			efake_fail(pair->fake, EFAKE_DMA_MAP, 2, -ENOMEM);
		KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, to, room, NULL, FI_ADDR_UNSPEC,
					       TAG, 0, (void *)1), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, TAG, 2), 0);
		rdm_run(pair);
		if (room < WHOLE)
			rdm_expect_error(test, &pair->end[1], 1, FI_ETRUNC);
		else
			rdm_expect(test, &pair->end[1], 1, WHOLE);
		rdm_expect(test, &pair->end[0], 2, WHOLE);
		KUNIT_EXPECT_TRUE(test, efa_filled(to, room, way));
		if (way == 1)
			KUNIT_EXPECT_EQ(test, rx->stats.reads, reads + WHOLE / PAGE_SIZE);
		else
			KUNIT_EXPECT_EQ(test, rx->stats.reads, reads + 1 + (way == 2));
		rx->lim.read_segment = SZ_1M;
		rdm_expect_whole(test, pair);
	}
	KUNIT_EXPECT_EQ(test, rx->ep.stats.map_failed, 1ULL);
	vunmap(in);
	free_pages_exact(pages, WHOLE);
}

/* A message that is longer than the longest mapping is read in parts. */
static void read_mapped(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts){ .max_map = WHOLE / 2 });
	struct kefa_rdm *rx = rdm_of(&pair->end[1]);
	size_t len;

	rdm_of(&pair->end[0])->lim.min_read_message = RDM_READ_FROM;
	/* The sender can map all of it. */
	rdm_of(&pair->end[0])->ep.max_map = SIZE_MAX;
	pair->fake->max_map = SIZE_MAX;
	for (len = WHOLE / 2; len <= WHOLE; len += WHOLE / 2) {
		const u64 reads = rx->stats.reads;

		efa_fill(pair->out, len, 5);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, len, TAG, 1), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, len, TAG, 2), 0);
		rdm_run(pair);
		rdm_expect(test, &pair->end[1], 1, len);
		rdm_expect(test, &pair->end[0], 2, len);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, len, 5));
		KUNIT_EXPECT_EQ(test, rx->stats.reads, reads + len / (WHOLE / 2));
		rdm_expect_whole(test, pair);
	}
	KUNIT_EXPECT_EQ(test, rx->ep.stats.map_failed, 0ULL);
}

/* A completion of the fast path is written before one of the slow path, if both are due. */
static void read_reported(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	int i;

	/* A buffer of no bytes takes the slow path, and its receive ends with the request. */
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, TAG, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 0, TAG, 2), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, TAG, 3), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, TAG, 4), 0);
	efake_settle_all();
	KUNIT_ASSERT_EQ(test, pair->end[0].qp->nsent, 2U);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_TRUE(test, rdm_step(pair));
	rdm_run(pair);
	rdm_expect(test, &pair->end[1], 1, 8);
	rdm_expect_error(test, &pair->end[1], 2, FI_ETRUNC);
	rdm_expect(test, &pair->end[0], 3, 8);
	rdm_expect(test, &pair->end[0], 4, WHOLE);
	rdm_expect_whole(test, pair);
}

/* An EOR that finds no receive is sent again from its slot until it arrives. */
static void read_eor_again(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *rx = rdm_of(&pair->end[1]);
	struct efake_wr *wr;
	int i, tries;

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, TAG, 2), 0);
	KUNIT_ASSERT_NOT_NULL(test, rdm_run_until(pair, 1, KEFA_EOR_PKT));
	for (i = 0; i < 4; i++) {
		/* It is sent again after a delay. Deliver nothing, as that may be the EOR. */
		for (tries = 0; !(wr = efake_sent(pair->end[1].qp, 0)) && tries < 50000; tries++)
			usleep_range(100, 200);
		KUNIT_ASSERT_NOT_NULL(test, wr);
		KUNIT_EXPECT_TRUE(test, usual(wr, KEFA_EOR_PKT));
		efake_wr_done(wr, KEFA_STATUS_RNR);
		efake_settle_all();
	}
	rdm_expect(test, &pair->end[1], 1, WHOLE);
	rdm_expect_nothing(test, &pair->end[0]);
	KUNIT_EXPECT_EQ(test, rx->ts_nfree, rx->nts - 1);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, WHOLE);
	KUNIT_EXPECT_EQ(test, rx->stats.rnr, 4ULL);
	KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_EOR_PKT], 1U);
	rdm_expect_whole(test, pair);
}

enum eor_ends { EOR_LOST, EOR_REMOVED, EOR_PARKED_REMOVED, EOR_CLOSED, EOR_ENDS };

/* The receive has ended; whatever happens to its EOR, nothing more is told of it. */
static void read_eor_lost(struct kunit *test)
{
	struct rdm_pair *pair;
	struct kefa_rdm *rx;
	struct efake_wr *wr;
	int how, i;

	for (how = 0; how < EOR_ENDS; how++) {
		pair = rdm_reading_pair(test);
		rx = rdm_of(&pair->end[1]);
		rx->backoffs.first_us = 10 * USEC_PER_SEC;
		rx->backoffs.max_us = 4 * rx->backoffs.first_us;
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 1), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, TAG, 2), 0);
		wr = rdm_run_until(pair, 1, KEFA_EOR_PKT);
		KUNIT_ASSERT_NOT_NULL(test, wr);
		rdm_expect(test, &pair->end[1], 1, WHOLE);
		for (i = 0; how == EOR_PARKED_REMOVED && i < 2; i++) {
			efake_wr_done(wr, KEFA_STATUS_RNR);
			efake_settle_all();
			wr = i ? NULL : efake_sent(pair->end[1].qp, 0);
		}
		if (how == EOR_LOST) {
			efake_wr_done(wr, 9);
			efake_settle_all();
			KUNIT_EXPECT_EQ(test, rx->stats.deaths, 1ULL);
		} else if (how != EOR_CLOSED) {
			KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &pair->end[1].peer,
							   1, 0), 0);
			if (how == EOR_REMOVED)
				rdm_finish_sent(pair, 1, 0);
			/* No number is lost with an EOR, so the peer may come back. */
			KUNIT_EXPECT_EQ(test, fi_av_insert(pair->end[1].av, &pair->end[0].name, 1,
							   &pair->end[1].peer, 0, NULL), 1);
			KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[1].ep, pair->out, 1, NULL,
						       pair->end[1].peer, TAG, NULL), 0);
		}
		rdm_expect_nothing(test, &pair->end[1]);
		if (how == EOR_LOST)
			KUNIT_EXPECT_EQ(test, rx->ts_nfree, rx->nts);
		EFA_CLOSE(test, pair->end[1].ep);
		EFA_CLOSE(test, pair->end[0].ep);
		KUNIT_EXPECT_EQ(test, efake_haunt(pair->fake), 0U);
		efake_remove(pair->fake);
	}
}

/* Deliver a packet to an end, and leave its sender without the completion. */
static void hand_over(struct rdm_pair *pair, struct efake_wr *wr, int to)
{
	struct efake_wr *recv = efake_recv(pair->end[to].qp, 0);
	struct kefa_wc wc = {
		.src_qpn	= pair->end[!to].name.qpn,
		.slid		= RDM_SLID,
	};

	wc.len = efake_wr_read(wr, packet, sizeof(packet));
	efake_wr_write(recv, packet, wc.len);
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

/* The answer and the invalidation may be faster than the completion of the request. */
static void read_late_completion(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct efake_qp *qp = pair->end[0].qp;
	const struct kefa_wc late = { .status = 0 };
	struct efake_wr *wr, *read;

	efa_fill(pair->out, WHOLE, 7);
	memset(pair->in, 0, WHOLE);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, TAG, 2), 0);
	wr = rdm_run_until(pair, 0, KEFA_LONGREAD_TAGRTM_PKT);
	KUNIT_ASSERT_NOT_NULL(test, wr);
	hand_over(pair, wr, 1);
	read = efake_sent(pair->end[1].qp, 0);
	KUNIT_ASSERT_EQ(test, read->opcode, IB_WR_RDMA_READ);
	efake_wr_done(read, efake_wr_rdma(read));
	efake_settle_all();
	rdm_expect(test, &pair->end[1], 1, WHOLE);
	hand_over(pair, efake_sent(pair->end[1].qp, 0), 0);
	rdm_finish_sent(pair, 1, 0);
	efake_settle_all();
	/* The region is free, and the request still outstanding. */
	KUNIT_EXPECT_EQ(test, qp->nsent, 1U);
	KUNIT_EXPECT_PTR_EQ(test, efake_sent(qp, 0), wr);
	KUNIT_EXPECT_EQ(test, rdm_regions(&pair->end[0]), rdm_of(&pair->end[0])->nsources);
	rdm_expect_nothing(test, &pair->end[0]);
	efake_recv_done(wr, &late);
	efake_settle_all();
	rdm_expect(test, &pair->end[0], 2, WHOLE);
	rdm_expect_nothing(test, &pair->end[0]);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, WHOLE, 7));
	rdm_expect_whole(test, pair);
}

/* After a READ_NACK all the data may arrive before the completion of the first request. */
static void read_late_after_nack(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct efake_qp *qp = pair->end[0].qp;
	const struct kefa_wc late = { .status = 0 };
	struct efake_wr *wr;

	efa_fill(pair->out, WHOLE, 7);
	memset(pair->in, 0, WHOLE);
	pair->net.bad_reads = 1;
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, TAG, 2), 0);
	wr = rdm_run_until(pair, 0, KEFA_LONGREAD_TAGRTM_PKT);
	KUNIT_ASSERT_NOT_NULL(test, wr);
	hand_over(pair, wr, 1);
	/* Hide the request from the network. */
	list_del(&wr->list);
	qp->nsent--;
	rdm_run(pair);
	KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_READ_NACK_PKT], 1U);
	rdm_expect(test, &pair->end[1], 1, WHOLE);
	rdm_expect_nothing(test, &pair->end[0]);
	list_add(&wr->list, &qp->sent);
	qp->nsent++;
	efake_recv_done(wr, &late);
	efake_settle_all();
	rdm_expect(test, &pair->end[0], 2, WHOLE);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, WHOLE, 7));
	rdm_expect_whole(test, pair);
}

/* A registered message for a peer that takes only messages without a header fails. */
static void read_headerless(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *tx = rdm_of(&pair->end[0]);

	pair->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, TAG, 2), 0);
	KUNIT_ASSERT_EQ(test, efake_sent(pair->end[0].qp, 0)->opcode, IB_WR_REG_MR);
	spin_lock_bh(&tx->ep.lock);
	kefa_peers_at(&tx->peers, pair->end[0].peer)->flags |= KEFA_RPEER_HEADERLESS;
	spin_unlock_bh(&tx->ep.lock);
	efake_wr_done(efake_sent(pair->end[0].qp, 0), 0);
	efake_settle_all();
	rdm_expect_nothing(test, &pair->end[0]);
	KUNIT_ASSERT_EQ(test, efake_sent(pair->end[0].qp, 0)->opcode, IB_WR_LOCAL_INV);
	pair->fake->manual_mr = false;
	efake_wr_done(efake_sent(pair->end[0].qp, 0), 0);
	efake_settle_all();
	rdm_expect_error(test, &pair->end[0], 2, EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, tx->stats.sent[KEFA_LONGREAD_TAGRTM_PKT], 0ULL);
	rdm_expect_whole(test, pair);
}

/* A peer that takes no EORs must not occupy the slots: it is declared dead. */
static void read_eors_overdue(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *rx = rdm_of(&pair->end[1]);
	struct efake_qp *qp = pair->end[1].qp;
	const struct kefa_rma_iov iov = { 0, cpu_to_le64(8), cpu_to_le64(7) };
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_LONGREAD_TAGRTM_PKT),
		.flags		= KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= pair->end[0].name.qkey,
		.msg_length	= 8,
		.tag		= TAG,
		.read_iov_count	= 1,
		.read_iov	= &iov,
	};
	unsigned int n;

	rx->backoffs.first_us = 10 * USEC_PER_SEC;
	rx->backoffs.max_us = 4 * rx->backoffs.first_us;
	for (n = 0; n <= KEFA_OWED_MAX; n++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, TAG, 1), 0);
		/* rdm_ready_pair() has sent the first message. */
		pkt.msg_id = n + 1;
		rdm_inject(pair, packet, kefa_build(&pkt, packet, sizeof(packet)));
		KUNIT_ASSERT_EQ(test, qp->nsent, n + 1);
		efake_wr_done(efake_sent(qp, n), 0);
		efake_settle_all();
		rdm_expect(test, &pair->end[1], 1, 8);
	}
	KUNIT_EXPECT_EQ(test, rx->stats.sent[KEFA_EOR_PKT], (u64)n);
	KUNIT_EXPECT_EQ(test, rx->stats.cut, 0ULL);
	rdm_finish_sent(pair, 1, KEFA_STATUS_RNR);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, rx->stats.cut, 1ULL);
	KUNIT_EXPECT_EQ(test, rx->stats.deaths, 1ULL);
	KUNIT_EXPECT_EQ(test, rx->ts_nfree, rx->nts);
	rdm_expect_nothing(test, &pair->end[1]);
}

static u64 refused(const struct kefa_rdm *rdm)
{
	return rdm->stats.dropped[KEFA_DROP_STATE] + rdm->stats.dropped[KEFA_DROP_STRANGER] +
	       rdm->stats.dropped[KEFA_DROP_LIAR];
}

/* An EOR that isn't the expected one must not end the message. */
static void read_false_eor(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *tx = rdm_of(&pair->end[0]);
	struct kefa_pkt pkt = { .row = kefa_row_of(KEFA_EOR_PKT), .flags = KEFA_PKT_CONNID_HDR };
	const struct fi_efa_addr *from = &pair->end[1].name;
	struct kefa_wc wc = { .slid = RDM_SLID };
	struct efake_wr *wr, *recv;
	u32 id = 0;
	int way;

	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, TAG, 2), 0);
	wr = rdm_run_until(pair, 0, KEFA_LONGREAD_TAGRTM_PKT);
	KUNIT_ASSERT_NOT_NULL(test, wr);
	wc.len = efake_wr_read(wr, packet, sizeof(packet));
	KUNIT_ASSERT_EQ(test, kefa_parse(packet, wc.len, &pkt), KEFA_OK);
	id = pkt.send_id;
	memset(&pkt, 0, sizeof(pkt));
	pkt.row = kefa_row_of(KEFA_EOR_PKT);
	pkt.flags = KEFA_PKT_CONNID_HDR;
	pkt.has_connid = true;
	for (way = 0; way < 6; way++) {
		pkt.send_id = id + (way == 0) + (way == 1 ? 1 << 16 : 0);
		pkt.connid = from->qkey + (way == 2);
		wc.src_qpn = from->qpn + (way == 3);
		wc.slid = RDM_SLID + (way == 4);
		wc.len = kefa_build(&pkt, packet, sizeof(packet));
		recv = efake_recv(pair->end[0].qp, 0);
		efake_wr_write(recv, packet, wc.len);
		efake_recv_done(recv, &wc);
		efake_settle_all();
		if (way < 5)
			KUNIT_EXPECT_EQ(test, refused(tx), way + 1ULL);
	}
	/* The last one was right; the same once more means nothing. */
	KUNIT_EXPECT_EQ(test, tx->stats.received[KEFA_EOR_PKT], 3ULL);
	recv = efake_recv(pair->end[0].qp, 0);
	efake_wr_write(recv, packet, wc.len);
	efake_recv_done(recv, &wc);
	rdm_finish_sent(pair, 0, 0);
	efake_settle_all();
	rdm_expect(test, &pair->end[0], 2, WHOLE);
	rdm_expect_nothing(test, &pair->end[0]);
	KUNIT_EXPECT_EQ(test, refused(tx), 6ULL);
	rdm_expect_whole(test, pair);
}

/* A later use of a receive's slot has another id, as the peer knows that of the earlier one. */
static void read_stale_id(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *rx = rdm_of(&pair->end[1]);
	u32 ids[2];
	int i;

	for (i = 0; i < 2; i++) {
		struct kefa_pkt pkt;
		struct efake_wr *wr;
		size_t len;

		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 1), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, TAG, 2), 0);
		wr = rdm_run_until(pair, 1, KEFA_EOR_PKT);
		KUNIT_ASSERT_NOT_NULL(test, wr);
		len = efake_wr_read(wr, packet, sizeof(packet));
		KUNIT_ASSERT_EQ(test, kefa_parse(packet, len, &pkt), KEFA_OK);
		ids[i] = pkt.recv_id;
		rdm_run(pair);
		rdm_expect(test, &pair->end[0], 2, WHOLE);
		rdm_expect(test, &pair->end[1], 1, WHOLE);
	}
	KUNIT_EXPECT_NE(test, ids[0], ids[1]);
	spin_lock_bh(&rx->ep.lock);
	KUNIT_EXPECT_PTR_EQ(test, kefa_rop_find(&rx->rops, ids[0]), NULL);
	KUNIT_EXPECT_PTR_EQ(test, kefa_rop_find(&rx->rops, ids[1]), NULL);
	spin_unlock_bh(&rx->ep.lock);
}

/* Many messages of all sizes, whose packets are late, reordered and find no receive. */
static void read_rough(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	unsigned int i, seen[2] = { };
	int round;

	efa_fill(pair->out, WHOLE, 1);
	pair->net.reorder = 300;
	pair->net.late = 300;
	for (round = 0; round < 60; round++) {
		pair->net.rnr = round % 3 ? 200 : 0;
		pair->net.bad_read = round % 5 ? 0 : 300;
		for (i = 0; i < 6; i++) {
			const size_t size = i % 3 == 2 ? 100 : LONG + 997 * (round + i);

			if (round & 1)
				KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 20), 0);
			KUNIT_EXPECT_EQ(test, rdm_tsend(pair, min_t(size_t, size, WHOLE), TAG, 10),
					0);
			if (!(round & 1))
				KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 20), 0);
		}
		rdm_run(pair);
		seen[0] += rdm_read_all(&pair->end[0], 0);
		seen[1] += rdm_read_all(&pair->end[1], 0);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 100, 1));
		rdm_expect_whole(test, pair);
	}
	KUNIT_EXPECT_EQ(test, seen[0], 360U);
	KUNIT_EXPECT_EQ(test, seen[1], 360U);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->stats.deaths, 0ULL);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.deaths, 0ULL);
}

static struct kunit_case read_cases[] = {
	KUNIT_CASE(read_plain),
	KUNIT_CASE(read_order),
	KUNIT_CASE(read_registration_fails),
	KUNIT_CASE(read_refused),
	KUNIT_CASE(read_kept),
	KUNIT_CASE(read_mapped),
	KUNIT_CASE(read_reported),
	KUNIT_CASE(read_eor_again),
	KUNIT_CASE(read_eor_lost),
	KUNIT_CASE(read_late_completion),
	KUNIT_CASE(read_late_after_nack),
	KUNIT_CASE(read_headerless),
	KUNIT_CASE(read_eors_overdue),
	KUNIT_CASE(read_false_eor),
	KUNIT_CASE(read_stale_id),
	KUNIT_CASE_SLOW(read_rough),
	{}
};

static struct kunit_suite read_suite = {
	.name		= "kefa_rdm_read",
	.test_cases	= read_cases,
};

kunit_test_suite(read_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, the fast path of messages that are read");
MODULE_LICENSE("Dual BSD/GPL");
