// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: packets that arrive before their turn. All of them must be handled when it comes,
 * however many there are.
 */
#include "efa_rdm_scene.h"

static u8 packet[SZ_8K];

static bool inject(struct rdm_pair *pair, const struct fi_efa_addr *from, size_t len)
{
	struct efake_wr *recv = efake_recv(pair->end[1].qp, 0);
	const struct kefa_wc wc = {
		.len		= len,
		.src_qpn	= from->qpn,
		.slid		= 100 + from->gid[FI_EFA_GID_LEN - 1],
	};

	if (!recv)
		return false;
	efake_wr_write(recv, packet, len);
	efake_recv_done(recv, &wc);
	return true;
}

/* Put the identity of @from into a packet: its raw address, or only its connid. */
static void sign(struct kefa_pkt *pkt, const struct fi_efa_addr *from, bool raw)
{
	static u8 bytes[KEFA_RAW_ADDR_LEN];
	struct kefa_raw_addr addr = {
		.qpn	= cpu_to_le16(from->qpn),
		.qkey	= cpu_to_le32(from->qkey),
	};

	pkt->flags |= raw ? KEFA_REQ_OPT_RAW_ADDR_HDR : KEFA_PKT_CONNID_HDR;
	pkt->has_connid = true;
	pkt->connid = from->qkey;
	if (!raw)
		return;
	memcpy(addr.gid, from->gid, sizeof(addr.gid));
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, &addr, sizeof(addr));
	pkt->raw = bytes;
	pkt->raw_len = sizeof(bytes);
}

/* Complete all packets of the second endpoint. */
static void finish_all(struct rdm_pair *pair)
{
	efake_settle_all();
	rdm_finish_sent(pair, 1, 0);
	efake_settle_all();
}

/* Insert a peer and have its first message, with its raw address, arrive. */
static struct fi_efa_addr meet(struct kunit *test, struct rdm_pair *pair, u8 n, fi_addr_t *to)
{
	struct fi_efa_addr addr = efa_addr(20 + n, 0x500 + n);
	struct kefa_pkt pkt = { .row = kefa_row_of(KEFA_EAGER_TAGRTM_PKT), .tag = 1 };

	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[1].av, &addr, 1, to, 0, NULL), 1);
	rdm_learn(pair, addr.gid, 100 + addr.gid[FI_EFA_GID_LEN - 1]);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 1, 1), 0);
	sign(&pkt, &addr, true);
	KUNIT_EXPECT_TRUE(test, inject(pair, &addr, kefa_build(&pkt, packet, sizeof(packet)) + 8));
	finish_all(pair);
	rdm_expect(test, &pair->end[1], 1, 8);
	return addr;
}

static bool part(struct rdm_pair *pair, const struct fi_efa_addr *from, u32 msg_id, u64 total,
		 u64 off)
{
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_MEDIUM_TAGRTM_PKT),
		.msg_id		= msg_id,
		.tag		= 77,
		.msg_length	= total,
		.seg_offset	= off,
	};
	size_t hdr;

	sign(&pkt, from, false);
	hdr = kefa_build(&pkt, packet, sizeof(packet));
	packet[hdr] = off;
	return inject(pair, from, hdr + 1);
}

static bool eager(struct rdm_pair *pair, const struct fi_efa_addr *from, u32 msg_id)
{
	struct kefa_pkt pkt = {
		.row	= kefa_row_of(KEFA_EAGER_TAGRTM_PKT),
		.msg_id	= msg_id,
		.tag	= 77,
	};

	sign(&pkt, from, false);
	return inject(pair, from, kefa_build(&pkt, packet, sizeof(packet)) + 8);
}

/*
 * More early packets become due at once than are handled at a time, and the next message arrives
 * in the same poll. Where the handling stops depends on the number of packets of the messages.
 */
static void early_limit(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) { .depth = 512 });
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct fi_efa_addr from;
	unsigned int parts, n, i, m, last, id = 1;
	fi_addr_t to;

	from = meet(test, pair, 0, &to);
	for (parts = 1; parts <= 7; parts++) {
		n = KEFA_DRAIN_MAX / parts + 3;
		last = id + n;
		for (i = 0; i <= n + 1; i++)
			KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, i), 0);
		for (m = id + 1; m < last; m++)
			for (i = 0; i < parts; i++) {
				KUNIT_EXPECT_TRUE(test, part(pair, &from, m, parts, i));
				efake_settle();
			}
		spin_lock_bh(&rdm->ep.lock);
		eager(pair, &from, id);
		eager(pair, &from, last);
		spin_unlock_bh(&rdm->ep.lock);
		efake_settle_all();
		eager(pair, &from, last + 1);
		efake_settle_all();
		KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[1], 0), n + 2);
		KUNIT_EXPECT_TRUE(test, list_empty(&rdm->early));
		KUNIT_EXPECT_TRUE(test, list_empty(&rdm->due));
		id = last + 2;
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
	rdm_expect_whole(test, pair);
}

/* A message of many packets, all of which arrive before its turn; one is repeated. */
static void early_parts(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const unsigned int parts = 1500;
	struct fi_efa_addr from;
	unsigned int i;
	fi_addr_t to;

	from = meet(test, pair, 0, &to);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, SZ_4K, 77, 2), 0);
	for (i = 0; i < parts; i++) {
		KUNIT_EXPECT_TRUE(test, part(pair, &from, 2, parts, i));
		if (i % 8 == 7)
			efake_settle();
	}
	efake_settle();
	KUNIT_EXPECT_TRUE(test, part(pair, &from, 2, parts, 0));
	efake_settle();
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_DUP], 1ULL);
	/* Nor does one that doesn't fit become a part of it. */
	KUNIT_EXPECT_TRUE(test, part(pair, &from, 3, 2, 0));
	KUNIT_EXPECT_TRUE(test, part(pair, &from, 3, 3, 1));
	efake_settle();
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_LENGTH], 1ULL);
	rdm_expect_nothing(test, &pair->end[1]);
	eager(pair, &from, 1);
	efake_settle_all();
	rdm_expect(test, &pair->end[1], 1, 8);
	rdm_expect(test, &pair->end[1], 2, parts);
	for (i = 0; i < parts; i++)
		if (pair->in[i] != (u8)i)
			break;
	KUNIT_EXPECT_EQ(test, i, parts);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
	KUNIT_EXPECT_TRUE(test, list_empty(&rdm->early));
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &to, 1, 0), 0);
	rdm_expect_whole(test, pair);
}

/*
 * A peer is removed while its messages wait for an earlier one. They are gone, so when it comes
 * back it is dead: its later messages would wait for them for ever.
 */
static void early_removed(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct fi_efa_addr from;
	fi_addr_t to;

	from = meet(test, pair, 0, &to);
	eager(pair, &from, 2);
	part(pair, &from, 3, 2, 1);
	part(pair, &from, 3, 2, 0);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, rdm->stats.early, 3ULL);
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &to, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, rdm->kept, 0ULL);
	KUNIT_EXPECT_TRUE(test, list_empty(&rdm->early));
	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[1].av, &from, 1, &to, 0, NULL), 1);
	KUNIT_EXPECT_EQ(test, fi_send(pair->end[1].ep, pair->out, 8, NULL, to, NULL),
			-EHOSTUNREACH);
	eager(pair, &from, 1);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_DEAD], 1ULL);
	rdm_expect_whole(test, pair);
}

/* --- messages that never end --- */

/*
 * A peer begins messages and doesn't end them. The ULP can cancel their receives; what comes of the
 * messages after that is dropped. A peer that leaves too many behind is dead.
 */
static void early_cancelled(struct kunit *test)
{
	/* The only peer may have messages in all receives. */
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) { .stranger = true });
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct fi_efa_addr from;
	fi_addr_t to;
	long i;

	from = meet(test, pair, 0, &to);
	for (i = 0; i <= KEFA_OWED_MAX; i++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 2, 77, i), 0);
		KUNIT_EXPECT_TRUE(test, part(pair, &from, 1 + i, 2, 0));
		efake_settle_all();
	}
	rdm_expect_nothing(test, &pair->end[1]);
	for (i = 0; i < KEFA_OWED_MAX; i++) {
		KUNIT_EXPECT_EQ(test, fi_cancel(&pair->end[1].ep->fid, (void *)i), 0);
		rdm_expect_error(test, &pair->end[1], i, ECANCELED);
		KUNIT_EXPECT_EQ(test, fi_cancel(&pair->end[1].ep->fid, (void *)i), -ENOENT);
	}
	KUNIT_EXPECT_EQ(test, (size_t)rdm->ep.rx.nfree, rdm->ep.rx.base.size - 1);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
	/* The rest of one comes after all, and isn't written to the ULP's memory. */
	pair->in[1] = 0x5a;
	KUNIT_EXPECT_TRUE(test, part(pair, &from, 1, 2, 1));
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, pair->in[1], 0x5a);
	KUNIT_EXPECT_EQ(test, rdm->rops.used, (u32)KEFA_OWED_MAX);
	/* Not the ULP's last receive, nor one more that it posts, may be one too many. */
	KUNIT_EXPECT_EQ(test, fi_cancel(&pair->end[1].ep->fid, (void *)i), 0);
	rdm_expect_error(test, &pair->end[1], i, ECANCELED);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 2, 77, 100), 0);
	KUNIT_EXPECT_TRUE(test, part(pair, &from, 2 + i, 2, 0));
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, fi_cancel(&pair->end[1].ep->fid, (void *)100), 0);
	rdm_expect_error(test, &pair->end[1], 100, ECANCELED);
	KUNIT_EXPECT_EQ(test, rdm->stats.cut, 1ULL);
	rdm_expect_whole(test, pair);
}

static struct kunit_case early_cases[] = {
	KUNIT_CASE(early_limit),
	KUNIT_CASE(early_parts),
	KUNIT_CASE(early_removed),
	KUNIT_CASE(early_cancelled),
	{}
};

static struct kunit_suite early_suite = {
	.name		= "kefa_rdm_early",
	.test_cases	= early_cases,
};

kunit_test_suite(early_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, packets that arrive before their turn");
MODULE_LICENSE("Dual BSD/GPL");
