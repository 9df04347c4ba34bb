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

/* A message that its sender ends by itself, because all of it is sent with its requests. */
struct whole {
	const char	*name;
	unsigned int	parts;
	bool		backwards;	/* the last part arrives first */
	bool		late;		/* the receive is posted afterwards */
	size_t		room;		/* of the receive */
	u64		flags;		/* of the receive; without, the buffer takes it */
	bool		may_not_read;
};

static const struct whole wholes[] = {
	{ "one part",		1, false, false, WHOLE },
	{ "three parts",	3, false, false, WHOLE },
	{ "backwards",		3, true, false, WHOLE },
	{ "unexpected",		3, false, true, WHOLE },
	{ "short buffer",	3, false, false, 100 },
	{ "no buffer",		1, false, false, 0 },
	{ "discarded",		3, true, true, WHOLE, FI_PEEK | FI_DISCARD },
	{ "may not read",	3, false, false, WHOLE, 0, true },
};

#define PART	4000

static ssize_t receive_whole(struct rdm_pair *pair, const struct whole *w)
{
	struct kvec iov = { pair->in, w->room };
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .tag = 5, .context = (void *)1 };

	if (!w->flags)
		return rdm_trecv(pair, w->room, 5, 1);
	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, w->room);
	return fi_trecvmsg(pair->end[1].ep, &msg, w->flags);
}

/* libfabric sends such messages if its runt is longer than the message. */
static void inject_whole(struct rdm_pair *pair, const struct whole *w)
{
	const u64 total = (u64)w->parts * PART;
	const struct kefa_rma_iov iov = {
		cpu_to_le64(0x10000), cpu_to_le64(total), cpu_to_le64(7),
	};
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_RUNTREAD_TAGRTM_PKT),
		.flags		= KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= pair->end[0].name.qkey,
		.msg_length	= total,
		.runt_length	= total,
		.send_id	= 1234,
		.read_iov	= &iov,
		.read_iov_count	= 1,
		.tag		= 5,
	};
	static u8 packet[SZ_8K];
	unsigned int i;
	size_t hdr;

	spin_lock_bh(&rdm->ep.lock);
	pkt.msg_id = kefa_peers_at(&rdm->peers, pair->end[1].peer)->order.exp_id;
	spin_unlock_bh(&rdm->ep.lock);
	for (i = 0; i < w->parts; i++) {
		pkt.seg_offset = (u64)(w->backwards ? w->parts - 1 - i : i) * PART;
		hdr = kefa_build(&pkt, packet, sizeof(packet));
		memcpy(packet + hdr, pair->out + pkt.seg_offset, PART);
		rdm_inject(pair, packet, hdr + PART);
	}
}

/*
 * The sender's operation ends with its last packet, so an EOR or a READ_NACK would name another
 * operation by then.
 */
static void runt_whole(struct kunit *test)
{
	const struct whole *w = test->param_value;
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const size_t total = w->parts * PART;
	struct rdm_comp comp;

	if (w->may_not_read)
		rdm->self.features &= ~KEFA_FEATURE_RDMA_READ;
	efa_fill(pair->out, total, 3);
	if (!w->late)
		KUNIT_EXPECT_EQ(test, receive_whole(pair, w), 0);
	inject_whole(pair, w);
	if (w->late)
		KUNIT_EXPECT_EQ(test, receive_whole(pair, w), 0);
	efake_settle_all();
	KUNIT_EXPECT_NULL(test, efake_sent(pair->end[1].qp, 0));
	KUNIT_EXPECT_EQ(test, rdm->stats.sent[KEFA_EOR_PKT], 0ULL);
	KUNIT_EXPECT_EQ(test, rdm->stats.sent[KEFA_READ_NACK_PKT], 0ULL);
	comp = rdm_read(&pair->end[1]);
	KUNIT_EXPECT_EQ(test, comp.error.err, w->room < total ? FI_ETRUNC : 0);
	if (!w->flags)
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, min(w->room, total), 3));
	rdm_expect_nothing(test, &pair->end[1]);
	rdm_expect_whole(test, pair);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
}

static void whole_name(const struct whole *w, char *name)
{
	strscpy(name, w->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(whole, wholes, whole_name);

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
	KUNIT_CASE_PARAM(runt_whole, whole_gen_params),
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
