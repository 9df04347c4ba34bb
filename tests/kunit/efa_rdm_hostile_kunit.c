// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa against hostile peers: packets of each type and form, intact and damaged, from known
 * peers, from strangers, and from peers that lie about their address; floods. An honest peer's
 * messages must still arrive, and memory must stay within bounds.
 */
#include "efa_rdm_scene.h"
#include "efa_wire_cases.h"

static u8 packet[WIRE_ROOM];

/* Have the second endpoint receive the packet from any queue pair and address handle. */
static void inject_from(struct rdm_pair *pair, u16 slid, u32 qpn, size_t len)
{
	struct efake_wr *recv = efake_recv(pair->end[1].qp, 0);
	const struct kefa_wc wc = { .len = len, .src_qpn = qpn, .slid = slid };

	if (!recv)
		return;
	efake_wr_write(recv, packet, len);
	efake_recv_done(recv, &wc);
}

static void expect_honest(struct kunit *test, struct rdm_pair *pair, long n)
{
	efa_fill(pair->out, 12000, n);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 12000, 1ULL << 40 | n, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 12000, 1ULL << 40 | n, 2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 12000);
	rdm_expect(test, &pair->end[1], 1, 12000);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 12000, n));
}

/* Set the sender's address, connid and message number: right ones mostly, wrong ones at times. */
static void sign(struct rnd_state *rnd, struct wire_case *c, u32 qpn, u32 connid)
{
	struct kefa_raw_addr raw = {
		.gid	= { 0xfe, 0x80, [15] = 2 + (prandom_u32_state(rnd) % 16 ? qpn % 4 : 2) },
		.qpn	= cpu_to_le16(prandom_u32_state(rnd) % 16 ? qpn : 1),
		.qkey	= cpu_to_le32(connid),
	};

	if (c->pkt.raw)
		memcpy(c->raw, &raw, sizeof(raw));
	else if (c->pkt.has_connid)
		c->pkt.connid = connid;
	c->pkt.msg_id = prandom_u32_state(rnd) % 8 ? prandom_u32_state(rnd) % 4 :
						     prandom_u32_state(rnd);
}

static size_t some_packet(struct rnd_state *rnd, u32 qpn, u32 connid)
{
	const struct kefa_pkt_row *row;
	struct wire_form form;
	struct wire_case c;
	size_t len;

	do {
		row = kefa_row_of(prandom_u32_state(rnd) % KEFA_PKT_TYPES);
	} while (!row || !wire_form_of(row, prandom_u32_state(rnd) % WIRE_FORMS, &form));
	wire_case_make(&c, row, form);
	if (!(row->flags & KEFA_ROW_HANDSHAKE))
		sign(rnd, &c, qpn, connid);
	len = wire_case_bytes(&c, packet, sizeof(packet));
	if (len && !(prandom_u32_state(rnd) % 4))
		packet[prandom_u32_state(rnd) % len] ^= 1 << prandom_u32_state(rnd) % 8;
	if (len && !(prandom_u32_state(rnd) % 8))
		len = prandom_u32_state(rnd) % len;
	return len;
}

static void hostile_anything(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	u32 i, type, who, unseen = 0;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 11);
	expect_honest(test, pair, 0);
	for (i = 1; i <= 4000; i++) {
		who = prandom_u32_state(&rnd) % 64;
		inject_from(pair, 20 + who % 4, 0x900 + who,
			    some_packet(&rnd, 0x900 + who, who + i / 500 * 64));
		/* Answers complete without being delivered, some with an error. */
		if (i % 8 == 0) {
			efake_settle_all();
			while (pair->end[1].qp->nsent)
				efake_wr_done(efake_sent(pair->end[1].qp, 0),
					      prandom_u32_state(&rnd) % 4 ? 0 : 9);
			efake_settle_all();
		}
		if (i % 1000 == 0)
			expect_honest(test, pair, i);
	}
	KUNIT_EXPECT_LE(test, rdm->kept, rdm->budget + KEFA_RX_FIRST * rdm->stride);
	/* Packets of each request type must have been received. */
	for (type = KEFA_EAGER_MSGRTM_PKT; type < KEFA_PKT_TYPES; type++) {
		if (!kefa_row_of(type) || rdm->stats.received[type])
			continue;
		kunit_info(test, "no %s was received\n", kefa_row_of(type)->name);
		unseen++;
	}
	KUNIT_EXPECT_EQ(test, unseen, 0U);
	for (type = KEFA_BAD_SHORT; type < KEFA_BAD_REASONS; type++)
		if (!rdm->stats.bad[type])
			kunit_info(test, "no packet was refused as %s\n", kefa_bad_text(type));
	KUNIT_EXPECT_GT(test, rdm->stats.deaths, 0ULL);
}

/* Have the second endpoint receive a message that no receive matches. */
static size_t flood(struct rdm_pair *pair, u32 qpn, u32 connid, u32 msg_id, size_t len, bool raw)
{
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_EAGER_TAGRTM_PKT),
		.flags		= raw ? KEFA_REQ_OPT_RAW_ADDR_HDR : KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= connid,
		.msg_id		= msg_id,
		.tag		= 77,
	};
	const struct kefa_raw_addr addr = {
		.gid	= { 0xfe, 0x80, [15] = 9 },
		.qpn	= cpu_to_le16(qpn),
		.qkey	= cpu_to_le32(connid),
	};
	u8 bytes[KEFA_RAW_ADDR_LEN] = { };
	size_t hdr;

	memcpy(bytes, &addr, sizeof(addr));
	pkt.raw = bytes;
	pkt.raw_len = sizeof(bytes);
	hdr = kefa_build(&pkt, packet, sizeof(packet));
	inject_from(pair, 30, qpn, hdr + len);
	return hdr + len;
}

static void hostile_flood(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	u64 most = 0;
	u32 i;

	expect_honest(test, pair, 1);
	rdm->budget = SZ_1M;
	for (i = 0; i < 2000 && !rdm->stats.cut; i++) {
		flood(pair, 0x777, 5, i, 4000, !i);
		efake_settle_all();
		while (pair->end[1].qp->nsent)
			efake_wr_done(efake_sent(pair->end[1].qp, 0), 0);
		most = max(most, rdm->kept);
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.cut, 1ULL);
	KUNIT_EXPECT_GE(test, most, SZ_512K);
	KUNIT_EXPECT_LE(test, most, SZ_1M + (KEFA_RX_LEAST + KEFA_RX_FIRST) * rdm->stride);
	/* The messages of the peer were dropped, and the other peer isn't affected. */
	KUNIT_EXPECT_EQ(test, rdm->kept, 0ULL);
	expect_honest(test, pair, 2);
}

/* Answers to operations that don't exist, or that belong to another peer. */
static void hostile_receipts(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct kvec iov = { pair->out, 64 };
	struct fi_msg_tagged msg = { .addr = pair->end[1].peer, .tag = 3, .context = (void *)1 };
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_RECEIPT_PKT),
		.flags		= KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
	};
	struct fi_efa_addr other = efa_addr(9, 9);
	fi_addr_t addr;
	u64 dropped;
	u32 id, i;

	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[1].av, &other, 1, &addr, 0, NULL), 1);
	expect_honest(test, pair, 1);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, iov.iov_len);
	KUNIT_EXPECT_EQ(test, fi_tsendmsg(pair->end[1].ep, &msg, FI_DELIVERY_COMPLETE), 0);
	rdm_run(pair);
	for (i = 0; i < rdm->rops.size; i++)
		if (rdm->rops.ops[i].state == KEFA_ROP_ACK)
			break;
	KUNIT_ASSERT_LT(test, i, rdm->rops.size);
	id = kefa_rop_id(&rdm->rops, &rdm->rops.ops[i]);
	dropped = rdm->stats.dropped[KEFA_DROP_STATE];
	/* The RECEIPT names another message, another operation, or comes from another peer. */
	for (i = 0; i < 3; i++) {
		pkt.send_id = id + (i == 1);
		pkt.msg_id = i == 0;
		pkt.connid = i == 2 ? other.qkey : pair->end[0].name.qkey;
		inject_from(pair, i == 2 ? 40 : RDM_SLID, i == 2 ? other.qpn :
			    pair->end[0].name.qpn, kefa_build(&pkt, packet, sizeof(packet)));
		efake_settle_all();
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_STATE], dropped + 3);
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[0].ep, pair->in, 64, NULL, FI_ADDR_UNSPEC, 3, 0,
				       (void *)2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[1], 1, 64);
	rdm_expect(test, &pair->end[0], 2, 64);
}

/* The nth call to the device fails, for each n. */
static void hostile_device(struct kunit *test)
{
	struct rdm_pair *pair;
	struct rdm_comp comp;
	u32 nth, hits = 0;
	int i;

	for (nth = 1; nth < 60; nth++) {
		pair = rdm_pair_new(test, NULL);
		pair->fake->any = nth;
		for (i = 0; i < 4; i++) {
			fi_trecv(pair->end[1].ep, pair->in, 20000, NULL, FI_ADDR_UNSPEC, i, 0,
				 NULL);
			fi_tsend(pair->end[0].ep, pair->out, i * 6000, NULL, pair->end[0].peer, i,
				 NULL);
		}
		rdm_run(pair);
		hits += pair->fake->hits;
		pair->fake->any = 0;
		/* Each send has completed, with or without an error. */
		KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->ep.tx.nfree,
				rdm_of(&pair->end[0])->ep.tx.base.size);
		for (i = 0; i < 2; i++)
			do {
				comp = rdm_read(&pair->end[i]);
			} while (comp.ret != -EAGAIN);
		EFA_CLOSE(test, pair->end[0].ep);
		EFA_CLOSE(test, pair->end[1].ep);
		efake_remove(pair->fake);
	}
	KUNIT_EXPECT_GT(test, hits, 10U);
}

/* An early packet that is repeated is kept once. */
static void hostile_early(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	u32 i;

	flood(pair, 0x777, 5, 0, 8, true);
	efake_settle_all();
	for (i = 0; i < 500; i++) {
		flood(pair, 0x777, 5, 3, 8, false);
		if (i % 16 == 0)
			efake_settle_all();
	}
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, rdm->stats.early, 1ULL);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_DUP], 499ULL);
	KUNIT_EXPECT_LE(test, rdm->msgs.entries, 1U);
	while (pair->end[1].qp->nsent)
		efake_wr_done(efake_sent(pair->end[1].qp, 0), 0);
	expect_honest(test, pair, 2);
}

static struct kunit_case hostile_cases[] = {
	KUNIT_CASE(hostile_anything),
	KUNIT_CASE(hostile_flood),
	KUNIT_CASE(hostile_receipts),
	KUNIT_CASE(hostile_early),
	KUNIT_CASE_SLOW(hostile_device),
	{}
};

static struct kunit_suite hostile_suite = {
	.name		= "kefa_rdm_hostile",
	.test_cases	= hostile_cases,
};

kunit_test_suite(hostile_suite);
