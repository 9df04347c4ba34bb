// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: packets of medium messages that arrive. They take a fast path if they are exactly
 * what a receive expects. A packet with any error must not change the receive.
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
 * @type: type instead of that of tagged messages
 * @cut: number of header bytes that are missing, along with all data
 * @msg_id: added to the message number
 * @connid: added to the sender's connid
 * @qpn: added to the sender's queue pair number
 * @slid: added to the number of the sender's address handle
 * @version: added to the protocol version
 * @flags: additional flags
 * @runt: for a message that is read, the bytes that are sent in advance
 * @iov: for a message that is read, the memory
 */
struct bad_part {
	const char	*what;
	u32		total, off, len, cut, msg_id, connid, qpn, slid;
	u16		flags;
	u8		version, type;
	u32		runt;
	const struct kefa_rma_iov *iov;
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
		.row		= kefa_row_of(bad->type ?: KEFA_MEDIUM_TAGRTM_PKT),
		.flags		= KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= from->qkey + bad->connid,
		.msg_id		= msg_id + bad->msg_id,
		.tag		= TAG,
		.msg_length	= bad->total ?: WHOLE,
		.seg_offset	= bad->off ?: off,
		.runt_length	= bad->runt,
		.read_iov_count	= !!bad->iov,
		.read_iov	= bad->iov,
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
	const u32 was = rdm_uses(rdm), msg_id = begin(test, pair);
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
	KUNIT_EXPECT_EQ(test, rdm_uses(rdm), was);
	KUNIT_EXPECT_EQ(test, rdm->rops.used, 0U);
	KUNIT_EXPECT_EQ(test, rdm->msgs.entries, 0U);
	KUNIT_EXPECT_EQ(test, rdm->peers.at[pair->end[1].peer]->nops, 0);
	KUNIT_EXPECT_EQ(test, rdm->nposted, rdm->target);
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

/* --- the first one --- */

/**
 * struct odd_first - a packet that may be the first one of a message, or not
 * @what: in words
 * @p: what is wrong with it
 * @taken: it takes the receive, all the same
 * @dead: its sender is dead then
 * @whole: it is all of the message
 */
struct odd_first {
	const char	*what;
	struct bad_part	p;
	bool		taken, dead, whole;
};

static const struct odd_first odd_firsts[] = {
	{ "nothing is wrong", { }, .taken = true },
	{ "it isn't the beginning", { .off = PART }, .taken = true },
	{ "all of it", { .total = PART }, .taken = true, .whole = true },
	{ "the one before", { .msg_id = -1 } },
	{ "the next but one", { .msg_id = 1 } },
	{ "another connid", { .connid = 1 } },
	{ "another queue pair", { .qpn = 1 } },
	{ "another address handle", { .slid = 1 } },
	{ "another version", { .version = 1 }, .dead = true },
	{ "data beyond its end", { .off = WHOLE - PART + 1 }, .dead = true },
	{ "no data", { .len = U32_MAX }, .dead = true },
	{ "no tag", { .type = KEFA_MEDIUM_MSGRTM_PKT } },
};

static void try_first(struct kunit *test, const struct odd_first *odd)
{
	static const struct bad_part good;
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	u32 i, msg_id = 1;

	/* They have shaken hands, both ways. */
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 1, 9, 2), 0);
	rdm_run(pair);
	msg_id = 2;
	efa_fill(pair->out, WHOLE, 3);
	memset(pair->in, 0, WHOLE);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 1), 0);
	inject_part(pair, msg_id, &odd->p, 0);
	KUNIT_EXPECT_EQ_MSG(test, !memchr_inv(pair->in, 0, WHOLE), !odd->taken, "%s", odd->what);
	KUNIT_EXPECT_EQ_MSG(test, rdm->stats.deaths, odd->dead ? 1ULL : 0ULL, "%s", odd->what);
	KUNIT_EXPECT_EQ(test, rdm->nposted, rdm->target);
	/* Then the right ones come. */
	msg_id += odd->p.type == KEFA_MEDIUM_MSGRTM_PKT;
	for (i = 0; i < WHOLE && !odd->whole; i += PART)
		if (!odd->taken || i != odd->p.off)
			inject_part(pair, msg_id, &good, i);
	if (odd->dead)
		rdm_expect_nothing(test, &pair->end[1]);
	else
		rdm_expect(test, &pair->end[1], 1, odd->whole ? PART : WHOLE);
	KUNIT_EXPECT_EQ_MSG(test, efa_filled(pair->in, odd->whole ? PART : WHOLE, 3), !odd->dead,
			    "%s", odd->what);
	EFA_CLOSE(test, pair->end[0].ep);
	EFA_CLOSE(test, pair->end[1].ep);
	efake_remove(pair->fake);
}

static void part_first(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(odd_firsts) && test->status != KUNIT_FAILURE; i++)
		try_first(test, &odd_firsts[i]);
}

/* A packet that arrived before its turn is a part of the message, too. */
static void part_early(struct kunit *test)
{
	static const struct bad_part good;
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);

	efa_fill(pair->out, WHOLE, 3);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 2), 0);
	inject_part(pair, 2, &good, PART);
	inject_part(pair, 2, &good, 0);
	KUNIT_EXPECT_EQ(test, rdm->stats.early, 2ULL);
	inject_part(pair, 1, &good, 2 * PART);
	KUNIT_EXPECT_TRUE(test, list_empty(&rdm->early));
	inject_part(pair, 2, &good, 2 * PART);
	rdm_expect(test, &pair->end[1], 2, WHOLE);
	inject_part(pair, 1, &good, 0);
	inject_part(pair, 1, &good, PART);
	rdm_expect(test, &pair->end[1], 1, WHOLE);
	rdm_expect_whole(test, pair);
}

/* A runt is another kind of part. */
static void part_runt(struct kunit *test)
{
	static const struct kefa_rma_iov iov = { .len = cpu_to_le64(WHOLE), .key = 1 };
	const struct bad_part runt = { .type = KEFA_RUNTREAD_TAGRTM_PKT, .runt = 2 * PART,
				       .iov = &iov };
	static const struct bad_part good;
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, TAG, 1), 0);
	inject_part(pair, 1, &runt, 0);
	KUNIT_ASSERT_NOT_NULL(test, rdm->part);
	KUNIT_EXPECT_EQ(test, rdm->part->done, (u64)PART);
	inject_part(pair, 1, &good, PART);
	KUNIT_EXPECT_EQ(test, rdm->part->done, (u64)PART);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_LENGTH], 1ULL);
}

/**
 * struct into - a receive
 * @what: in words
 * @len: bytes of the buffer, instead of WHOLE
 * @flags: FI_MULTI_RECV
 * @pieces: it is in two pieces
 * @late: the receive is posted when the first packets have come
 * @no_order: without FI_ORDER_SAS
 * @quiet: there is no completion
 * @data: there is remote CQ data with the message
 */
struct into {
	const char	*what;
	size_t		len;
	u64		flags;
	bool		pieces, late, no_order, quiet, data;
};

static const struct into intos[] = {
	{ "a shorter buffer", .len = PART + 1 },
	{ "a longer buffer", .len = WHOLE + 1 },
	{ "a buffer for several", .len = 2 * WHOLE, .flags = FI_MULTI_RECV },
	{ "pieces", .pieces = true },
	{ "a receive that is late", .late = true },
	{ "no order", .no_order = true },
	{ "nobody hears of it", .quiet = true },
	{ "remote CQ data", .data = true },
};

static void post_into(struct kunit *test, struct rdm_pair *pair, const struct into *into)
{
	const size_t len = into->len ?: WHOLE;
	/* They stay as they are until the completion. */
	static struct kvec iov[2];
	struct fi_msg_tagged msg = {
		.addr = FI_ADDR_UNSPEC, .tag = TAG, .context = (void *)1,
	};

	struct fi_msg multi = { .addr = FI_ADDR_UNSPEC, .context = (void *)1 };

	iov[0] = (struct kvec) { pair->in, into->pieces ? 100 : len };
	iov[1] = (struct kvec) { pair->in + 100, len - 100 };
	if (into->flags) {
		iov_iter_kvec(&multi.msg_iter, ITER_DEST, iov, 1, len);
		KUNIT_EXPECT_EQ(test, fi_recvmsg(pair->end[1].ep, &multi, into->flags), 0);
		return;
	}
	iov_iter_kvec(&msg.msg_iter, ITER_DEST, iov, into->pieces ? 2 : 1, len);
	KUNIT_EXPECT_EQ(test, fi_trecvmsg(pair->end[1].ep, &msg, 0), 0);
}

/* Of a message in order, and the same in any. */
static void send_into(struct kunit *test, struct rdm_pair *pair, const struct into *into)
{
	const fi_addr_t peer = pair->end[0].peer;
	struct fid_ep *ep = pair->end[0].ep;

	if (into->flags)
		KUNIT_EXPECT_EQ(test, fi_send(ep, pair->out, WHOLE, NULL, peer, (void *)2), 0);
	else if (into->data)
		KUNIT_EXPECT_EQ(test, fi_tsenddata(ep, pair->out, WHOLE, NULL, 4711, peer, TAG,
						   (void *)2), 0);
	else
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, TAG, 2), 0);
	rdm_run(pair);
}

static void expect_into(struct kunit *test, struct rdm_pair *pair, const struct into *into)
{
	const size_t len = into->len ?: WHOLE;
	struct rdm_comp comp;

	if (into->quiet) {
		rdm_expect_nothing(test, &pair->end[1]);
		KUNIT_EXPECT_EQ(test, fi_cntr_read(pair->end[1].cntr), 2ULL);
	} else {
		comp = rdm_read(&pair->end[1]);
		KUNIT_EXPECT_EQ_MSG(test, comp.ret, len < WHOLE ? -FI_EAVAIL : 1, "%s", into->what);
		if (len < WHOLE) {
			KUNIT_EXPECT_EQ(test, comp.error.err, FI_ETRUNC);
			KUNIT_EXPECT_EQ(test, comp.error.olen, WHOLE - len);
		} else {
			KUNIT_EXPECT_EQ(test, comp.entry.len, (size_t)WHOLE);
			KUNIT_EXPECT_EQ(test, comp.entry.data, into->data ? 4711ULL : 0ULL);
			KUNIT_EXPECT_EQ(test, comp.entry.tag, into->flags ? 0ULL : TAG);
			KUNIT_EXPECT_EQ(test, comp.src, pair->end[1].peer);
		}
	}
	KUNIT_EXPECT_TRUE_MSG(test, efa_filled(pair->in, min(len, (size_t)WHOLE), 5), "%s",
			      into->what);
	if (len < WHOLE)
		KUNIT_EXPECT_EQ(test, pair->in[len], 0);
}

static void try_into(struct kunit *test, const struct into *into)
{
	const struct rdm_opts opts = {
		.mtu		= PART,
		.no_order	= into->no_order,
		.selective	= into->quiet,
		.counted	= into->quiet,
	};
	struct rdm_pair *pair = rdm_ready_pair(test, &opts);
	int net;

	for (net = 0; net < 2; net++) {
		pair->net.reorder = net ? 500 : 0;
		efa_fill(pair->out, WHOLE, 5);
		memset(pair->in, 0, 2 * WHOLE);
		if (!into->late)
			post_into(test, pair, into);
		send_into(test, pair, into);
		if (into->late)
			post_into(test, pair, into);
		if (into->quiet && net)
			break;
		expect_into(test, pair, into);
		if (into->flags) {
			KUNIT_EXPECT_EQ(test, fi_cancel(&pair->end[1].ep->fid, (void *)1), 0);
			rdm_read(&pair->end[1]);
		}
		if (!into->quiet)
			rdm_expect(test, &pair->end[0], 2, WHOLE);
	}
	rdm_expect_whole(test, pair);
	EFA_CLOSE(test, pair->end[0].ep);
	EFA_CLOSE(test, pair->end[1].ep);
	efake_remove(pair->fake);
}

static void part_into(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(intos) && test->status != KUNIT_FAILURE; i++)
		try_into(test, &intos[i]);
}

static struct kunit_case part_cases[] = {
	KUNIT_CASE(part_taken),
	KUNIT_CASE(part_bad),
	KUNIT_CASE(part_removed),
	KUNIT_CASE(part_first),
	KUNIT_CASE(part_early),
	KUNIT_CASE(part_runt),
	KUNIT_CASE(part_into),
	{}
};

static struct kunit_suite part_suite = {
	.name		= "kefa_rdm_part",
	.test_cases	= part_cases,
};

kunit_test_suite(part_suite);
