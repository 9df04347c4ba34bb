// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: packets of a medium message after the first one. They take a short way if they are
 * exactly what the receive expects. A packet with any error must not change the receive.
 */
#include "efa_rdm_scene.h"

#define WHOLE	12000
#define PART	4000
#define TAG	5

static u8 packet[SZ_16K];

/**
 * struct bad_part - how a packet differs from the expected one; 0 means that a field is right
 * @what: description
 * @total: length of the message instead of WHOLE
 * @off: offset of the data instead of PART, which is right for the second packet
 * @len: length of the data instead of PART
 * @cut: number of header bytes that are missing, along with all data
 * @msg_id: added to the message number
 * @connid: added to the sender's connid
 * @qpn: added to the sender's queue pair number
 * @slid: added to the number of the sender's address handle
 * @version: added to the protocol version
 * @flags: additional flags
 */
struct bad_part {
	const char	*what;
	u32		total, off, len, cut, msg_id, connid, qpn, slid;
	u16		flags;
	u8		version;
};

static const struct bad_part bad_parts[] = {
	{ "another length of the message", .total = WHOLE + 1 },
	{ "data behind the message", .off = WHOLE },
	{ "data beyond its end", .off = WHOLE - PART + 1 },
	{ "more than is left", .off = 1, .len = WHOLE - PART + 1 },
	{ "no data", .cut = 0, .len = U32_MAX },
	{ "half a header", .cut = 20, .len = U32_MAX },
	{ "a later message's", .msg_id = 1 },
	{ "another connid", .connid = 1 },
	{ "another queue pair", .qpn = 1 },
	{ "another address handle", .slid = 1 },
	{ "another version", .version = 1 },
	{ "a flag that isn't for it", .flags = KEFA_REQ_READ_NACK },
};

static void inject_part(struct rdm_pair *pair, u32 msg_id, const struct bad_part *bad, u32 off)
{
	const struct fi_efa_addr *from = &pair->end[0].name;
	const u32 len = bad->len == U32_MAX ? 0 : bad->len ?: PART;
	struct efake_wr *recv = efake_recv(pair->end[1].qp, 0);
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_MEDIUM_TAGRTM_PKT),
		.flags		= KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= from->qkey + bad->connid,
		.msg_id		= msg_id + bad->msg_id,
		.tag		= TAG,
		.msg_length	= bad->total ?: WHOLE,
		.seg_offset	= bad->off ?: off,
	};
	struct kefa_wc wc = {
		.src_qpn	= from->qpn + bad->qpn,
		.slid		= RDM_SLID + bad->slid,
	};
	size_t hdr = kefa_build(&pkt, packet, sizeof(packet));
	struct kefa_base_hdr *base = (void *)packet;

	base->version += bad->version;
	base->flags |= cpu_to_le16(bad->flags);
	if (pkt.seg_offset < WHOLE)
		memcpy(packet + hdr, pair->out + pkt.seg_offset, len);
	wc.len = hdr + len - bad->cut;
	efake_wr_write(recv, packet, wc.len);
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

/* Have a receive take the first packet of a message. Return: the message number. */
static u32 begin(struct kunit *test, struct rdm_pair *pair)
{
	static const struct bad_part good;
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	u32 msg_id;

	/* Exchange HANDSHAKEs first. */
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 1, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 1, 1, 2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 1);
	rdm_expect(test, &pair->end[1], 1, 1);
	efa_fill(pair->out, WHOLE, 3);
	memset(pair->in, 0, WHOLE);
	spin_lock_bh(&rdm->ep.lock);
	msg_id = kefa_peers_at(&rdm->peers, pair->end[1].peer)->order.exp_id;
	spin_unlock_bh(&rdm->ep.lock);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 1), 0);
	inject_part(pair, msg_id, &good, 0);
	KUNIT_ASSERT_NOT_NULL(test, rdm->part);
	KUNIT_ASSERT_EQ(test, rdm->part->done, (u64)PART);
	return msg_id;
}

static void part_taken(struct kunit *test)
{
	static const struct bad_part good;
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const u64 *received = rdm->stats.received;
	u32 msg_id = begin(test, pair);
	u64 bytes = rdm->ep.stats.rx_bytes;

	/* The packets arrive in reverse order. */
	inject_part(pair, msg_id, &good, 2 * PART);
	KUNIT_EXPECT_EQ(test, rdm->part->done, 2ULL * PART);
	rdm_expect_nothing(test, &pair->end[1]);
	inject_part(pair, msg_id, &good, PART);
	rdm_expect(test, &pair->end[1], 1, WHOLE);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, WHOLE, 3));
	KUNIT_EXPECT_EQ(test, received[KEFA_MEDIUM_TAGRTM_PKT], 3ULL);
	KUNIT_EXPECT_EQ(test, rdm->ep.stats.rx_bytes - bytes, 2ULL * PART);
	/* After the end of the message, its packets are duplicates. */
	inject_part(pair, msg_id, &good, PART);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_DUP], 1ULL);
	rdm_expect_nothing(test, &pair->end[1]);
}

static void part_bad(struct kunit *test)
{
	struct kefa_rop *rop;
	struct rdm_pair *pair;
	unsigned int i;
	u32 msg_id;

	for (i = 0; i < ARRAY_SIZE(bad_parts); i++) {
		pair = rdm_pair_new(test, NULL);
		msg_id = begin(test, pair);
		rop = rdm_of(&pair->end[1])->part;
		inject_part(pair, msg_id, &bad_parts[i], PART);
		KUNIT_EXPECT_EQ_MSG(test, rop->done, (u64)PART, "%s", bad_parts[i].what);
		KUNIT_EXPECT_EQ_MSG(test, rdm_of(&pair->end[1])->ep.stats.rx_bytes, PART + 1ULL,
				    "%s", bad_parts[i].what);
		KUNIT_EXPECT_NULL_MSG(test, memchr_inv(pair->in + PART, 0, WHOLE - PART), "%s",
				      bad_parts[i].what);
		EFA_CLOSE(test, pair->end[0].ep);
		EFA_CLOSE(test, pair->end[1].ep);
		efake_remove(pair->fake);
	}
}

/* A receive that was cancelled because its peer was removed gets no more data. */
static void part_removed(struct kunit *test)
{
	static const struct bad_part good;
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	u32 msg_id = begin(test, pair);

	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &pair->end[1].peer, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, rdm_read(&pair->end[1]).ret, -FI_EAVAIL);
	inject_part(pair, msg_id, &good, PART);
	KUNIT_EXPECT_NULL(test, memchr_inv(pair->in + PART, 0, WHOLE - PART));
	KUNIT_EXPECT_EQ(test, rdm->ep.stats.rx_bytes, PART + 1ULL);
	rdm_expect_nothing(test, &pair->end[1]);
}

static struct kunit_case part_cases[] = {
	KUNIT_CASE(part_taken),
	KUNIT_CASE(part_bad),
	KUNIT_CASE(part_removed),
	{}
};

static struct kunit_suite part_suite = {
	.name		= "kefa_rdm_part",
	.test_cases	= part_cases,
};

kunit_test_suite(part_suite);
