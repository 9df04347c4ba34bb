// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: messages whose first bytes are sent with their requests, and whose rest is read
 * (RUNTREAD); and endpoints that may not read.
 */
#include "efa_rdm_scene.h"

#define WHOLE	SZ_128K
#define RUNT	20001

static struct rdm_pair *runting_pair(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);

	rdm_of(&pair->end[0])->lim.runt = RUNT;
	return pair;
}

static void expect_message(struct kunit *test, struct rdm_pair *pair, size_t len, u32 fill)
{
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, len);
	rdm_expect(test, &pair->end[1], 1, len);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, len, fill));
	rdm_expect_whole(test, pair);
}

/* Messages of several lengths, with packets out of order; at least one byte is read. */
static void runt_sent(struct kunit *test)
{
	static const size_t sizes[] = { RDM_READ_FROM, RUNT, RUNT + 1, 60000, WHOLE };
	struct rdm_pair *pair = runting_pair(test);
	const u64 *sent = rdm_of(&pair->end[0])->stats.sent;
	u64 copied, reads;
	unsigned int i;

	pair->net.reorder = 500;
	for (i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		const size_t size = sizes[i / 2];

		efa_fill(pair->out, size, i);
		memset(pair->in, 0, WHOLE);
		copied = rdm_of(&pair->end[1])->ep.stats.rx_bytes;
		reads = pair->net.reads;
		if (i & 1)
			KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, size, 5, 2), 0);
		rdm_run(pair);
		if (!(i & 1))
			KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
		expect_message(test, pair, size, i);
		KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_RUNTREAD_TAGRTM_PKT], 3U * (i + 1));
		KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_EOR_PKT], i + 1);
		KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->ep.stats.rx_bytes - copied, size);
		KUNIT_EXPECT_EQ(test, pair->net.reads - reads, 1ULL);
	}
	KUNIT_EXPECT_EQ(test, sent[KEFA_LONGREAD_TAGRTM_PKT], 0ULL);
}

/*
 * No runt is sent with delivery complete, while the peer has another message to read, or if the
 * peer doesn't support it.
 */
static void runt_not_sent(struct kunit *test)
{
	struct rdm_pair *pair = runting_pair(test);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	const u64 *sent = rdm->stats.sent;
	struct kvec iov = { pair->out, WHOLE };
	struct fi_msg_tagged msg = {
		.addr = pair->end[0].peer, .tag = 5, .context = (void *)2,
	};
	int i;

	efa_fill(pair->out, WHOLE, 1);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, WHOLE);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_tsendmsg(pair->end[0].ep, &msg, FI_DELIVERY_COMPLETE), 0);
	expect_message(test, pair, WHOLE, 1);
	KUNIT_EXPECT_EQ(test, sent[KEFA_LONGREAD_TAGRTM_PKT], 1ULL);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 2), 0);
	}
	rdm_run(pair);
	for (i = 0; i < 2; i++) {
		rdm_expect(test, &pair->end[0], 2, WHOLE);
		rdm_expect(test, &pair->end[1], 1, WHOLE);
	}
	KUNIT_EXPECT_EQ(test, sent[KEFA_LONGREAD_TAGRTM_PKT], 2ULL);
	KUNIT_EXPECT_EQ(test, sent[KEFA_RUNTREAD_TAGRTM_PKT], 3ULL);
	spin_lock_bh(&rdm->ep.lock);
	kefa_peers_at(&rdm->peers, pair->end[0].peer)->features &= ~KEFA_FEATURE_RUNT;
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 2), 0);
	expect_message(test, pair, WHOLE, 1);
	KUNIT_EXPECT_EQ(test, sent[KEFA_LONGREAD_TAGRTM_PKT], 3ULL);
}

/* If the read fails, the rest arrives as granted data. */
static void runt_nack(struct kunit *test)
{
	struct rdm_pair *pair = runting_pair(test);
	unsigned int *seen = pair->net.seen;
	int i;

	for (i = 0; i < 4; i++) {
		efa_fill(pair->out, WHOLE, i);
		memset(pair->in, 0, WHOLE);
		pair->net.reorder = i & 1 ? 500 : 0;
		pair->net.rnr = i & 2 ? 200 : 0;
		pair->net.bad_reads = 1;
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 2), 0);
		expect_message(test, pair, WHOLE, i);
		KUNIT_EXPECT_EQ(test, seen[KEFA_RUNTREAD_TAGRTM_PKT], 3U * (i + 1));
		KUNIT_EXPECT_EQ(test, seen[KEFA_READ_NACK_PKT], i + 1U);
		KUNIT_EXPECT_EQ(test, seen[KEFA_LONGCTS_TAGRTM_PKT], i + 1U);
	}
	KUNIT_EXPECT_EQ(test, seen[KEFA_EOR_PKT], 0U);
}

/* A further packet of the runt after the whole runt has arrived, while the rest is NACKed. */
static void runt_again(struct kunit *test)
{
	const struct kefa_rma_iov iov = {
		cpu_to_le64(0x10000), cpu_to_le64(WHOLE), cpu_to_le64(7),
	};
	struct rdm_pair *pair = runting_pair(test);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct kefa_pkt again = {
		.row		= kefa_row_of(KEFA_RUNTREAD_TAGRTM_PKT),
		.flags		= KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= pair->end[0].name.qkey,
		.msg_length	= WHOLE,
		.runt_length	= RUNT,
		.send_id	= 1234,
		.read_iov	= &iov,
		.read_iov_count	= 1,
		.tag		= 5,
	};
	u8 packet[128] = { };

	rdm->lim.read_segment = 50000;
	efa_fill(pair->out, WHOLE, 1);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 2), 0);
	KUNIT_ASSERT_NOT_NULL(test, rdm_run_until(pair, 1, 0));
	KUNIT_EXPECT_TRUE(test, rdm_step(pair));
	pair->net.bad_reads = 10;
	KUNIT_ASSERT_NOT_NULL(test, rdm_run_until(pair, 1, KEFA_READ_NACK_PKT));
	spin_lock_bh(&rdm->ep.lock);
	again.msg_id = kefa_peers_at(&rdm->peers, pair->end[1].peer)->order.exp_id - 1;
	spin_unlock_bh(&rdm->ep.lock);
	rdm_inject(pair, packet, kefa_build(&again, packet, sizeof(packet)) + 8);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_LENGTH], 1ULL);
	pair->net.bad_reads = 0;
	expect_message(test, pair, WHOLE, 1);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
}

/* Nothing is read beyond a buffer that is shorter than the message. */
static void runt_truncated(struct kunit *test)
{
	static const size_t sizes[] = { 0, 100, RUNT - 1, RUNT, 50001 };
	struct rdm_pair *pair = runting_pair(test);
	struct rdm_comp comp;
	unsigned int i;

	efa_fill(pair->out, WHOLE, 1);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(pair->in, 0xa5, WHOLE);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, sizes[i], 5, 1), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 2), 0);
		rdm_run(pair);
		comp = rdm_read(&pair->end[1]);
		KUNIT_EXPECT_EQ(test, comp.error.err, FI_ETRUNC);
		KUNIT_EXPECT_EQ(test, comp.error.olen, WHOLE - sizes[i]);
		rdm_expect(test, &pair->end[0], 2, WHOLE);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, sizes[i], 1));
		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(pair->in + sizes[i], 0xa5, WHOLE - sizes[i]),
				    NULL);
		KUNIT_EXPECT_EQ(test, pair->net.reads, (unsigned int)(sizes[i] > RUNT));
	}
	rdm_expect_whole(test, pair);
}

/* A receiver that may not read asks for the data, if its peer supports READ_NACK. */
static void runt_may_not_read(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct kefa_rpeer *peer;
	int way;

	/* The peer assumes that it may: it doesn't look at the HANDSHAKE, as libfabric 1.17. */
	rdm->self.features &= ~KEFA_FEATURE_RDMA_READ;
	for (way = 0; way < 2; way++) {
		efa_fill(pair->out, WHOLE, way);
		memset(pair->in, 0, WHOLE);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 2), 0);
		expect_message(test, pair, WHOLE, way);
		KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_READ_NACK_PKT], 1U);
		KUNIT_EXPECT_EQ(test, pair->net.reads, (unsigned int)way);
		spin_lock_bh(&rdm->ep.lock);
		peer = kefa_peers_at(&rdm->peers, pair->end[1].peer);
		peer->features &= ~KEFA_FEATURE_READ_NACK;
		spin_unlock_bh(&rdm->ep.lock);
	}
	/* If the device can't read either, the peer is given up. */
	pair->fake->dev->rdma_read = false;
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 2), 0);
	rdm_run(pair);
	rdm_expect_error(test, &pair->end[1], 1, EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 1ULL);
	pair->fake->dev->rdma_read = true;
}

static struct kunit_case runt_cases[] = {
	KUNIT_CASE(runt_sent),
	KUNIT_CASE(runt_not_sent),
	KUNIT_CASE(runt_nack),
	KUNIT_CASE(runt_again),
	KUNIT_CASE(runt_truncated),
	KUNIT_CASE(runt_may_not_read),
	{}
};

static struct kunit_suite runt_suite = {
	.name		= "kefa_rdm_runt",
	.test_cases	= runt_cases,
};

kunit_test_suite(runt_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, messages that are sent in part and read in part");
MODULE_LICENSE("Dual BSD/GPL");
