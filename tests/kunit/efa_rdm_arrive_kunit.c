// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: messages of one packet that arrive, and packets that look similar. Each receive
 * must get the message that matches it. Invalid, repeated and early packets must not disturb
 * other messages.
 */
#include "efa_rdm_scene.h"

#define SLOT	0x500	/* First queue pair number of peers other than the two endpoints. */

static u8 packet[SZ_8K];

/* Another peer of the second endpoint, with its own address handle. */
struct other {
	u32		qpn;
	u32		connid;
	u16		slid;
	fi_addr_t	addr;
};

static void inject(struct rdm_pair *pair, const struct other *o, size_t len)
{
	struct efake_wr *recv = efake_recv(pair->end[1].qp, 0);
	const struct kefa_wc wc = { .len = len, .src_qpn = o->qpn, .slid = o->slid };

	efake_wr_write(recv, packet, min(len, sizeof(packet)));
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

/* --- unusual and invalid packets --- */

/* Results of a packet at the receiver. */
enum becomes { TAKEN, KEPT, BAD, STRANGE, FORGED, AGAIN, FAR, UNSEEN };

/**
 * struct odd - a packet that differs from the expected short message
 * @what: description
 * @type: enum kefa_pkt_type
 * @at: offset of the byte that is changed
 * @bits: bits of the byte at @at that are flipped
 * @msg_id: number of the message; the receiver expects 1
 * @slid: difference between the sender's handle number and the right one
 * @len: length of the packet; 0 for the right length, -1 for no bytes
 * @becomes: expected result
 */
struct odd {
	const char	*what;
	u8		type;
	u8		at;
	u8		bits;
	u32		msg_id;
	u16		slid;
	int		len;
	enum becomes	becomes;
};

#define HDR	(sizeof(struct kefa_eager_tagrtm_hdr) + sizeof(struct kefa_req_opt_connid_hdr))
#define MSGHDR	(HDR - sizeof(u64))
#define TAG	KEFA_EAGER_TAGRTM_PKT
#define MSG	KEFA_EAGER_MSGRTM_PKT

static const struct odd odds[] = {
	{ "no data",		TAG, 0, 0, 1, 0, HDR,		TAKEN },
	{ "no data, untagged",	MSG, 0, 0, 1, 0, MSGHDR,	TAKEN },
	{ "flags repeat type",	TAG, 2, KEFA_REQ_TAGGED, 1, 0, 0,	TAKEN },
	{ "version",		TAG, 1, 1, 1, 0, 0,		BAD },
	{ "flag of no meaning",	TAG, 3, 0x10, 1, 0, 0,		BAD },
	{ "address and connid",	TAG, 2, KEFA_REQ_OPT_RAW_ADDR_HDR, 1, 0, 0, BAD },
	{ "no such type",	TAG, 0, 0x80, 1, 0, 0,		BAD },
	{ "another's connid",	TAG, HDR - 1, 1, 1, 0, 0,	STRANGE },
	{ "another's handle",	TAG, 0, 0, 1, 1000, 0,		FORGED },
	{ "twice",		TAG, 0, 0, 0, 0, 0,		AGAIN },
	{ "the one before 0",	TAG, 0, 0, U32_MAX, 0, 0,	AGAIN },
	{ "the next but one",	TAG, 0, 0, 2, 0, 0,		KEPT },
	{ "the last to wait",	TAG, 0, 0, KEFA_ORDER_RECV_WINDOW, 0, 0, KEPT },
	{ "too far ahead",	TAG, 0, 0, KEFA_ORDER_RECV_WINDOW + 1, 0, 0, FAR },
	{ "more than fits",	TAG, 0, 0, 1, 0, EFAKE_MTU + 1, UNSEEN },
};

static size_t build(const struct other *o, u8 type, u32 msg_id, size_t len)
{
	const struct kefa_pkt pkt = {
		.row		= kefa_row_of(type),
		.flags		= KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= o->connid,
		.msg_id		= msg_id,
		.tag		= type == TAG ? 77 : 0,
	};

	return kefa_build(&pkt, packet, sizeof(packet)) + len;
}

/* Insert a peer and have its first message arrive. */
static struct other meet(struct kunit *test, struct rdm_pair *pair, u32 n)
{
	struct fi_efa_addr addr = efa_addr(9, SLOT + n);
	struct other o = { .qpn = addr.qpn, .connid = addr.qkey, .slid = 40 };

	KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[1].av, &addr, 1, &o.addr, 0, NULL), 1);
	rdm_learn(pair, addr.gid, o.slid);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, 1), 0);
	inject(pair, &o, build(&o, TAG, 0, 8));
	rdm_expect(test, &pair->end[1], 1, 8);
	rdm_finish_sent(pair, 1, 0);
	return o;
}

static void expect_became(struct kunit *test, struct kefa_rdm *rdm, const struct odd *odd,
			  const struct kefa_rdm_stats *was)
{
	const struct kefa_rdm_stats *is = &rdm->stats;
	u64 bad = 0, dropped = 0;
	int i;

	for (i = 0; i < KEFA_BAD_REASONS; i++)
		bad += is->bad[i] - was->bad[i];
	for (i = 0; i < KEFA_DROPS; i++)
		dropped += is->dropped[i] - was->dropped[i];
	KUNIT_EXPECT_EQ(test, bad, odd->becomes == BAD ? 1ULL : 0ULL);
	KUNIT_EXPECT_EQ(test, dropped, odd->becomes == STRANGE || odd->becomes == AGAIN ||
			odd->becomes == FORGED || odd->becomes == FAR ? 1ULL : 0ULL);
	KUNIT_EXPECT_EQ(test, is->dropped[KEFA_DROP_STRANGER] - was->dropped[KEFA_DROP_STRANGER],
			odd->becomes == STRANGE ? 1ULL : 0ULL);
	KUNIT_EXPECT_EQ(test, is->dropped[KEFA_DROP_LIAR] - was->dropped[KEFA_DROP_LIAR],
			odd->becomes == FORGED ? 1ULL : 0ULL);
	KUNIT_EXPECT_EQ(test, is->early - was->early, odd->becomes == KEPT ? 1ULL : 0ULL);
	KUNIT_EXPECT_EQ(test, is->deaths - was->deaths,
			odd->becomes == BAD || odd->becomes == FAR ? 1ULL : 0ULL);
	KUNIT_EXPECT_EQ(test, rdm->nposted, rdm->target);
}

/* Deliver the packet while receives are posted, which it must complete only if it is valid. */
static void try_odd(struct kunit *test, struct rdm_pair *pair, const struct odd *odd, u32 n)
{
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct other o = meet(test, pair, n), from = o;
	static struct kefa_rdm_stats was;
	const bool dead = odd->becomes == BAD || odd->becomes == FAR;
	size_t len;

	was = rdm->stats;
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 64, 77, 2), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(pair->end[1].ep, pair->in, 64, NULL, FI_ADDR_UNSPEC,
				      (void *)2), 0);
	len = build(&o, odd->type, odd->msg_id, 8);
	packet[odd->at] ^= odd->bits;
	from.slid += odd->slid;
	inject(pair, &from, odd->len ? max(odd->len, 0) : len);
	expect_became(test, rdm, odd, &was);
	if (odd->becomes == TAKEN)
		rdm_expect(test, &pair->end[1], 2, odd->len ? 0 : 8);
	rdm_expect_nothing(test, &pair->end[1]);
	/* The expected message is still accepted, unless the peer is dead. */
	inject(pair, &o, build(&o, TAG, 1 + (odd->becomes == TAKEN), 8));
	if (!dead && (odd->becomes != TAKEN || odd->type == MSG))
		rdm_expect(test, &pair->end[1], 2, 8);
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_DEAD] - was.dropped[KEFA_DROP_DEAD],
			dead ? 1ULL : 0ULL);
	while (!fi_cancel(&pair->end[1].ep->fid, (void *)2))
		rdm_expect_error(test, &pair->end[1], 2, ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &o.addr, 1, 0), 0);
	rdm_finish_sent(pair, 1, 0);
	rdm_expect_whole(test, pair);
	if (test->status == KUNIT_FAILURE)
		kunit_info(test, "%s, %d bytes\n", odd->what, odd->len);
}

static void arrive_odd(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(odds) && test->status != KUNIT_FAILURE; i++)
		try_odd(test, pair, &odds[i], i);
}

/* Packets that are cut anywhere in the header. */
static void arrive_cut(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct odd odd = { .what = "cut", .msg_id = 1, .becomes = BAD };
	u32 i, n = 0;

	for (i = 0; i < 2; i++) {
		odd.type = i ? TAG : MSG;
		for (odd.len = -1; odd.len < (int)(i ? HDR : MSGHDR); odd.len++)
			if (odd.len && test->status != KUNIT_FAILURE)
				try_odd(test, pair, &odd, n++);
	}
}

/* --- receives --- */

static ssize_t trecv_from(struct rdm_pair *pair, fi_addr_t from, u64 ignore, long ctx)
{
	return fi_trecv(pair->end[1].ep, pair->in, 64, NULL, from, 5, ignore, (void *)ctx);
}

/* The oldest matching receive gets the message, directed or not, whichever bits it ignores. */
static void arrive_match(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	const fi_addr_t any = FI_ADDR_UNSPEC;
	struct other other = meet(test, pair, 0);
	struct rdm_comp comp;
	long i;

	KUNIT_EXPECT_EQ(test, trecv_from(pair, other.addr, 0, 1), 0);
	KUNIT_EXPECT_EQ(test, trecv_from(pair, any, ~0ULL, 2), 0);
	KUNIT_EXPECT_EQ(test, trecv_from(pair, pair->end[1].peer, 0, 3), 0);
	KUNIT_EXPECT_EQ(test, trecv_from(pair, any, 0, 4), 0);
	KUNIT_EXPECT_EQ(test, trecv_from(pair, any, 0, 5), 0);
	KUNIT_EXPECT_EQ(test, trecv_from(pair, 4711, 0, 6), -EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, fi_cancel(&pair->end[1].ep->fid, (void *)4), 0);
	rdm_expect_error(test, &pair->end[1], 4, ECANCELED);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, i, 5, 9), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[1], 2, 0);
	rdm_expect(test, &pair->end[1], 3, 1);
	rdm_expect(test, &pair->end[1], 5, 2);
	rdm_expect_nothing(test, &pair->end[1]);
	/* Unexpected messages are matched in order, too. */
	KUNIT_EXPECT_EQ(test, trecv_from(pair, other.addr, 0, 6), 0);
	KUNIT_EXPECT_EQ(test, trecv_from(pair, pair->end[1].peer, 0, 7), 0);
	KUNIT_EXPECT_EQ(test, trecv_from(pair, any, ~0ULL, 8), 0);
	comp = rdm_read(&pair->end[1]);
	KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, 7L);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 3UL);
	KUNIT_EXPECT_EQ(test, comp.src, pair->end[1].peer);
	rdm_expect(test, &pair->end[1], 8, 4);
	/* The receives for the other peer are still posted. */
	inject(pair, &other, build(&other, TAG, 1, 8));
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &other.addr, 1, 0), 0);
	rdm_expect_error(test, &pair->end[1], 1, ECANCELED);
	rdm_expect_error(test, &pair->end[1], 6, ECANCELED);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), 5U);
	rdm_finish_sent(pair, 1, 0);
	rdm_expect_whole(test, pair);
}

static void expect_cut(struct kunit *test, struct rdm_pair *pair, long ctx)
{
	const struct rdm_comp comp = rdm_read(&pair->end[1]);

	KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, (long)comp.error.op_context, ctx);
	KUNIT_EXPECT_EQ(test, comp.error.err, FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, comp.error.len, 20UL);
	KUNIT_EXPECT_EQ(test, comp.error.olen, 80UL);
}

/* Four messages of 100 bytes. */
static void send_four(struct kunit *test, struct rdm_pair *pair)
{
	int i;

	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 100, 5, 9), 0);
	rdm_run(pair);
}

/* Buffers that are too short, in pieces, and larger than the message. */
static void arrive_buffers(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kvec iov[2] = { { pair->in, 1 }, { pair->in + 1, 99 } };
	struct fid_ep *to = pair->end[1].ep;
	int late;

	efa_fill(pair->out, 100, 3);
	for (late = 0; late < 2; late++) {
		memset(pair->in, 0, 400);
		if (late)
			send_four(test, pair);
		KUNIT_EXPECT_EQ(test, fi_trecv(to, pair->in + 100, 100, NULL, FI_ADDR_UNSPEC, 5, 0,
					       (void *)1), 0);
		KUNIT_EXPECT_EQ(test, fi_trecv(to, pair->in + 200, 20, NULL, FI_ADDR_UNSPEC, 5, 0,
					       (void *)2), 0);
		KUNIT_EXPECT_EQ(test, fi_trecvv(to, iov, NULL, 2, FI_ADDR_UNSPEC, 5, 0, (void *)3),
				0);
		KUNIT_EXPECT_EQ(test, fi_trecv(to, pair->in + 300, 101, NULL, FI_ADDR_UNSPEC, 5, 0,
					       (void *)4), 0);
		if (!late)
			send_four(test, pair);
		rdm_expect(test, &pair->end[1], 1, 100);
		expect_cut(test, pair, 2);
		rdm_expect(test, &pair->end[1], 3, 100);
		rdm_expect(test, &pair->end[1], 4, 100);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 100, 3));
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in + 100, 100, 3));
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in + 200, 20, 3));
		KUNIT_EXPECT_EQ(test, pair->in[220], 0);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in + 300, 100, 3));
		KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), 4U);
		rdm_expect_whole(test, pair);
	}
}

/* Without ordering, each message is taken when it arrives. */
static void arrive_unordered(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts) { .no_order = true });
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	unsigned int i;

	pair->net.reorder = 700;
	for (i = 0; i < 40; i++) {
		if (i & 1)
			KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, i, i), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, i, i), 0);
	}
	rdm_run(pair);
	KUNIT_EXPECT_EQ(test, rdm->stats.early, 0ULL);
	for (i = 0; i < 40; i += 2)
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, i, i), 0);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), 40U);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[1], 0), 40U);
	rdm_expect_whole(test, pair);
}

static struct kunit_case arrive_cases[] = {
	KUNIT_CASE(arrive_odd),
	KUNIT_CASE(arrive_cut),
	KUNIT_CASE(arrive_match),
	KUNIT_CASE(arrive_buffers),
	KUNIT_CASE(arrive_unordered),
	{}
};

static struct kunit_suite arrive_suite = {
	.name		= "kefa_rdm_arrive",
	.test_cases	= arrive_cases,
};

kunit_test_suite(arrive_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, messages of one packet that arrive");
MODULE_LICENSE("Dual BSD/GPL");
