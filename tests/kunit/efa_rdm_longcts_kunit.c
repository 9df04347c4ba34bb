// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: messages whose receiver grants their data part by part (long-CTS), and peers that
 * violate the protocol, aren't ready or die meanwhile.
 */
#include <linux/vmalloc.h>
#include "efa_rdm_scene.h"

#define WHOLE	SZ_128K

static u8 packet[SZ_16K];

static ssize_t send_dc(struct rdm_pair *pair, size_t len, u64 tag, long ctx)
{
	struct kvec iov = { pair->out, len };
	struct fi_msg_tagged msg = {
		.addr = pair->end[0].peer, .tag = tag, .context = (void *)ctx,
	};

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, len);
	return fi_tsendmsg(pair->end[0].ep, &msg, FI_DELIVERY_COMPLETE);
}

static void expect_whole(struct kunit *test, struct rdm_pair *pair)
{
	struct kefa_rdm *rdm;
	int i;

	for (i = 0; i < 2; i++) {
		rdm = rdm_of(&pair->end[i]);
		KUNIT_EXPECT_EQ(test, rdm->rops.used, 0U);
		KUNIT_EXPECT_EQ(test, rdm->ts_nfree, rdm->nts);
		KUNIT_EXPECT_EQ(test, rdm->kept, 0ULL);
		KUNIT_EXPECT_TRUE(test, list_empty(&rdm->sending));
		KUNIT_EXPECT_TRUE(test, list_empty(&rdm->owing));
		KUNIT_EXPECT_EQ(test, (size_t)rdm->ep.tx.nfree, rdm->ep.tx.base.size);
		KUNIT_EXPECT_EQ(test, (size_t)rdm->ep.rx.nfree, rdm->ep.rx.base.size);
	}
}

/* Complete all packets of the first endpoint without delivering them. Return: their number. */
static unsigned int take_all(struct rdm_pair *pair, u32 status)
{
	struct efake_qp *qp = pair->end[0].qp;
	unsigned int n;

	for (n = 0; qp->nsent && n < 1000; n++) {
		efake_wr_done(efake_sent(qp, 0), status);
		efake_settle_all();
	}
	return n;
}

/* Have the first endpoint receive a packet of the second. */
static void tell(struct rdm_pair *pair, struct kefa_pkt *pkt, size_t data)
{
	struct efake_wr *recv = efake_recv(pair->end[0].qp, 0);
	struct kefa_wc wc = { .src_qpn = pair->end[1].name.qpn, .slid = RDM_SLID };

	pkt->connid = pair->end[1].name.qkey;
	pkt->has_connid = true;
	pkt->flags |= KEFA_PKT_CONNID_HDR;
	wc.len = kefa_build(pkt, packet, sizeof(packet)) + data;
	efake_wr_write(recv, packet, wc.len);
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

static void cts(struct rdm_pair *pair, u32 send_id, u32 recv_id, u64 window, u16 flags)
{
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_CTS_PKT),
		.send_id	= send_id,
		.recv_id	= recv_id,
		.recv_length	= window,
		.flags		= flags,
	};

	tell(pair, &pkt, 0);
}

static void ctsdata(struct rdm_pair *pair, u32 recv_id, u64 off, u32 len)
{
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_CTSDATA_PKT),
		.recv_id	= recv_id,
		.seg_offset	= off,
		.seg_length	= len,
	};

	tell(pair, &pkt, len);
}

static void request(struct rdm_pair *pair, u8 type, u64 total, u32 len)
{
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(type),
		.msg_id		= 0,
		.msg_length	= total,
		.send_id	= 1234,
		.credit_request	= 32,
		.tag		= 77,
	};

	tell(pair, &pkt, len);
}

static struct kefa_rop *the_rop(struct rdm_end *end)
{
	struct kefa_rdm *rdm = rdm_of(end);
	u32 i;

	for (i = 0; i < rdm->rops.size; i++)
		if (rdm->rops.ops[i].state != KEFA_ROP_FREE)
			return &rdm->rops.ops[i];
	return NULL;
}

static u32 the_id(struct rdm_end *end)
{
	return kefa_rop_id(&rdm_of(end)->rops, the_rop(end));
}

/* Have the endpoints exchange HANDSHAKEs. */
static void shake(struct kunit *test, struct rdm_pair *pair)
{
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 1, 2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 8);
	rdm_expect(test, &pair->end[1], 1, 8);
}

static void longcts_sizes(struct kunit *test)
{
	static const size_t sizes[] = { SZ_64K + 1, 100000, WHOLE - 1, WHOLE };
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	const struct kefa_rdm_limits *lim = &rdm_of(&pair->end[0])->lim;
	unsigned int *seen = pair->net.seen;
	unsigned int i, dc, window;

	shake(test, pair);
	for (i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		const size_t size = sizes[i / 2];

		dc = i % 2;
		/* Grow the window by one packet, so that the last part may be full or shorter. */
		window = i + 1;
		rdm_of(&pair->end[1])->lim.credits = window;
		memset(seen, 0, sizeof(pair->net.seen));
		memset(pair->in, 0, size);
		efa_fill(pair->out, size, i);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, size, 5, i), 0);
		KUNIT_EXPECT_EQ(test, dc ? send_dc(pair, size, 5, i) : rdm_tsend(pair, size, 5, i),
				0);
		rdm_run(pair);
		rdm_expect(test, &pair->end[0], i, size);
		rdm_expect(test, &pair->end[1], i, size);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, size, i));
		KUNIT_EXPECT_EQ(test, seen[KEFA_LONGCTS_TAGRTM_PKT], !dc);
		KUNIT_EXPECT_EQ(test, seen[KEFA_DC_LONGCTS_TAGRTM_PKT], dc);
		KUNIT_EXPECT_EQ(test, seen[KEFA_RECEIPT_PKT], dc);
		KUNIT_EXPECT_EQ(test, seen[KEFA_CTS_PKT],
				DIV_ROUND_UP(seen[KEFA_CTSDATA_PKT], window));
		KUNIT_EXPECT_EQ(test, (size_t)seen[KEFA_CTSDATA_PKT],
				DIV_ROUND_UP(size - lim->mtu, kefa_data_room(lim)));
	}
	expect_whole(test, pair);
}

/* Nothing is granted before a receive, a claim or a discard takes the message. */
static void longcts_unexpected(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kvec iov = { pair->in, WHOLE };
	struct fi_msg_tagged peek = { .addr = FI_ADDR_UNSPEC, .tag = 5, .context = (void *)9 };
	struct rdm_comp comp;
	int way;

	shake(test, pair);
	for (way = 0; way < 3; way++) {
		memset(pair->net.seen, 0, sizeof(pair->net.seen));
		memset(pair->in, 0, WHOLE);
		efa_fill(pair->out, WHOLE, way);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 1), 0);
		rdm_run(pair);
		rdm_expect_nothing(test, &pair->end[0]);
		KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_CTS_PKT], 0U);
		KUNIT_EXPECT_GT(test, rdm_of(&pair->end[1])->kept, 0ULL);
		iov_iter_kvec(&peek.msg_iter, ITER_DEST, &iov, 1, way ? 0 : WHOLE);
		if (way)
			KUNIT_EXPECT_EQ(test, fi_trecvmsg(pair->end[1].ep, &peek, FI_PEEK |
							  (way == 2 ? FI_DISCARD : FI_CLAIM)), 0);
		else
			KUNIT_EXPECT_EQ(test, fi_trecvmsg(pair->end[1].ep, &peek, 0), 0);
		rdm_run(pair);
		comp = rdm_read(&pair->end[1]);
		KUNIT_EXPECT_EQ(test, comp.ret, 1);
		KUNIT_EXPECT_EQ(test, comp.entry.len, (size_t)WHOLE);
		if (way == 1) {
			rdm_expect_nothing(test, &pair->end[0]);
			iov_iter_kvec(&peek.msg_iter, ITER_DEST, &iov, 1, WHOLE);
			KUNIT_EXPECT_EQ(test, fi_trecvmsg(pair->end[1].ep, &peek, FI_CLAIM), 0);
			rdm_run(pair);
			rdm_expect(test, &pair->end[1], 9, WHOLE);
		}
		rdm_expect(test, &pair->end[0], 1, WHOLE);
		if (way < 2)
			KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, WHOLE, way));
		else
			KUNIT_EXPECT_EQ(test, pair->in[0], 0);
		expect_whole(test, pair);
	}
}

/* The sender sends all data, and the memory after the short buffer isn't written. */
static void longcts_truncated(struct kunit *test)
{
	static const size_t sizes[] = { 0, 100, 9000, 50001 };
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct rdm_comp comp;
	unsigned int i;

	shake(test, pair);
	efa_fill(pair->out, WHOLE, 1);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(pair->in, 0xa5, WHOLE);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, sizes[i], 5, 1), 0);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 2), 0);
		rdm_run(pair);
		comp = rdm_read(&pair->end[1]);
		KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
		KUNIT_EXPECT_EQ(test, comp.error.err, FI_ETRUNC);
		KUNIT_EXPECT_EQ(test, comp.error.len, sizes[i]);
		KUNIT_EXPECT_EQ(test, comp.error.olen, WHOLE - sizes[i]);
		rdm_expect(test, &pair->end[0], 2, WHOLE);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, sizes[i], 1));
		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(pair->in + sizes[i], 0xa5, WHOLE - sizes[i]),
				    NULL);
		expect_whole(test, pair);
	}
}

/* Two messages at once in a multi-receive buffer. */
static void longcts_multi(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	u8 *in = vmalloc(2 * WHOLE);
	struct kvec iov = { in, 2 * WHOLE };
	struct fi_msg msg = { .addr = FI_ADDR_UNSPEC, .context = (void *)9 };
	struct rdm_comp comp;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, in);
	shake(test, pair);
	efa_fill(pair->out, WHOLE, 3);
	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, 2 * WHOLE);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(pair->end[1].ep, &msg, FI_MULTI_RECV), 0);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, fi_send(pair->end[0].ep, pair->out, WHOLE, NULL,
					      pair->end[0].peer, (void *)1), 0);
	rdm_run(pair);
	for (i = 0; i < 2; i++) {
		rdm_expect(test, &pair->end[0], 1, WHOLE);
		comp = rdm_read(&pair->end[1]);
		KUNIT_EXPECT_EQ(test, comp.ret, 1);
		KUNIT_EXPECT_EQ(test, comp.entry.len, (size_t)WHOLE);
		KUNIT_EXPECT_EQ(test, !!(comp.entry.flags & FI_MULTI_RECV), i);
		KUNIT_EXPECT_TRUE(test, efa_filled(in + i * WHOLE, WHOLE, 3));
	}
	expect_whole(test, pair);
	vfree(in);
}

/* Memory in pieces is sent without being copied, too. */
static void longcts_pieces(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kvec iov[3] = {
		{ pair->out, 5 }, { pair->out + 5, 70000 }, { pair->out + 70005, 60 },
	};
	struct fi_msg_tagged msg = {
		.addr = pair->end[0].peer, .tag = 5, .context = (void *)2,
	};

	shake(test, pair);
	efa_fill(pair->out, 70065, 3);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, iov, 3, 70065);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_tsendmsg(pair->end[0].ep, &msg, 0), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 70065);
	rdm_expect(test, &pair->end[1], 1, 70065);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 70065, 3));
	/* Only the first packet and the ends of pieces were copied. */
	KUNIT_EXPECT_LT(test, rdm_of(&pair->end[0])->stats.copied, 3ULL * SZ_8K);
	expect_whole(test, pair);
}

/* A receiver can't make the sender send more than the message, or send anything twice. */
static void longcts_grants(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	u64 sent;
	u32 id;

	shake(test, pair);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 100000, 5, 2), 0);
	take_all(pair, 0);
	id = the_id(&pair->end[0]);
	cts(pair, id, 7, 1000, KEFA_CTS_READ_REQ);
	cts(pair, id + 0x10000, 7, 1000, 0);
	cts(pair, id + 1, 7, 1000, 0);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_STATE], 3ULL);
	KUNIT_EXPECT_EQ(test, rdm->stats.sent[KEFA_CTSDATA_PKT], 0ULL);
	sent = the_rop(&pair->end[0])->sent;
	cts(pair, id, 7, 1000, 0);
	KUNIT_EXPECT_EQ(test, the_rop(&pair->end[0])->sent, sent + 1000);
	cts(pair, id, 7, U64_MAX, 0);
	/* The window was cut to the end of the message. */
	KUNIT_EXPECT_EQ(test, the_rop(&pair->end[0])->sent, 100000ULL);
	cts(pair, id, 7, 1000, 0);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_STATE], 4ULL);
	rdm_expect_nothing(test, &pair->end[0]);
	take_all(pair, 0);
	rdm_expect(test, &pair->end[0], 2, 100000);
	cts(pair, id, 7, 1000, 0);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_STATE], 5ULL);
	expect_whole(test, pair);
}

/* Only data that was granted and lies in the message is accepted, and only from the sender. */
static void longcts_data(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	const u64 *dropped = rdm->stats.dropped;
	u32 id;

	shake(test, pair);
	rdm->lim.credits = 1;
	memset(pair->in, 0xa5, WHOLE);
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[0].ep, pair->in, 30000, NULL, FI_ADDR_UNSPEC, 77,
				       0, (void *)1), 0);
	request(pair, KEFA_DC_LONGCTS_TAGRTM_PKT, 20000, 100);
	id = the_id(&pair->end[0]);
	KUNIT_EXPECT_EQ(test, rdm->stats.sent[KEFA_CTS_PKT], 1ULL);
	ctsdata(pair, id, 20000, 1);
	ctsdata(pair, id, 19999, 2);
	ctsdata(pair, id, U64_MAX - 8, 8);
	KUNIT_EXPECT_EQ(test, dropped[KEFA_DROP_LENGTH], 3ULL);
	ctsdata(pair, id + 1, 100, 8);
	ctsdata(pair, id + 0x10000, 100, 8);
	KUNIT_EXPECT_EQ(test, dropped[KEFA_DROP_STATE], 2ULL);
	KUNIT_EXPECT_EQ(test, the_rop(&pair->end[0])->done, 100ULL);
	/* Data arrives in any order; the next part is granted when all of this one has arrived. */
	ctsdata(pair, id, 12000, 8000);
	ctsdata(pair, id, 100, kefa_data_room(&rdm->lim) - 7999);
	KUNIT_EXPECT_EQ(test, dropped[KEFA_DROP_LENGTH], 4ULL);
	KUNIT_EXPECT_EQ(test, rdm->stats.sent[KEFA_CTS_PKT], 1ULL);
	ctsdata(pair, id, 100, kefa_data_room(&rdm->lim) - 8000);
	KUNIT_EXPECT_EQ(test, rdm->stats.sent[KEFA_CTS_PKT], 2ULL);
	KUNIT_EXPECT_EQ(test, rdm->stats.sent[KEFA_RECEIPT_PKT], 0ULL);
	/* The rest arrives before the device has completed the CTS. */
	ctsdata(pair, id, 100, the_rop(&pair->end[0])->window);
	if (the_rop(&pair->end[0])->done < 20000)
		ctsdata(pair, id, 100, the_rop(&pair->end[0])->window);
	rdm_expect(test, &pair->end[0], 1, 20000);
	KUNIT_EXPECT_EQ(test, rdm->stats.sent[KEFA_RECEIPT_PKT], 1ULL);
	/* After the end of the operation, its id is unknown. */
	ctsdata(pair, id, 100, 8);
	KUNIT_EXPECT_EQ(test, dropped[KEFA_DROP_STATE], 3ULL);
	take_all(pair, 0);
	KUNIT_EXPECT_EQ(test, pair->in[20000], 0xa5);
	expect_whole(test, pair);
}

/* A CTS that finds no receive is sent again, unless the data has arrived meanwhile. */
static void longcts_not_ready(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct efake_qp *qp = pair->end[0].qp;
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	int way;

	shake(test, pair);
	for (way = 0; way < 2; way++) {
		struct kefa_pkt pkt = {
			.row = kefa_row_of(KEFA_LONGCTS_TAGRTM_PKT), .msg_id = way,
			.msg_length = 1000, .send_id = 1234, .tag = 77,
		};

		KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[0].ep, pair->in, 1000, NULL,
					       FI_ADDR_UNSPEC, 77, 0, (void *)1), 0);
		tell(pair, &pkt, 100);
		KUNIT_ASSERT_EQ(test, qp->nsent, 1U);
		/* The first time it is sent again at once, the second time after a delay. */
		efake_wr_done(efake_sent(qp, 0), KEFA_STATUS_RNR);
		efake_settle_all();
		if (way)
			ctsdata(pair, the_id(&pair->end[0]), 100, 900);
		KUNIT_ASSERT_EQ(test, qp->nsent, 1U);
		efake_wr_done(efake_sent(qp, 0), KEFA_STATUS_RNR);
		efake_settle_all();
		msleep(20);
		efake_settle_all();
		KUNIT_EXPECT_EQ(test, qp->nsent, way ? 0U : 1U);
		take_all(pair, 0);
		if (!way)
			ctsdata(pair, the_id(&pair->end[0]), 100, 900);
		rdm_expect(test, &pair->end[0], 1, 1000);
		expect_whole(test, pair);
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
}

enum dies_in { GRANT, DATA_TX, ACK, DATA_RX, SINK, KEPT, DIES_IN };

static void die_set_up(struct kunit *test, struct rdm_pair *pair, enum dies_in in)
{
	struct rdm_end *end = &pair->end[0];

	if (in <= ACK) {
		KUNIT_EXPECT_EQ(test, in == ACK ? send_dc(pair, SZ_64K + 1, 5, 1) :
						  rdm_tsend(pair, WHOLE, 5, 1), 0);
		take_all(pair, 0);
		if (in >= DATA_TX)
			cts(pair, the_id(end), 7, in == ACK ? WHOLE : 60000, 0);
		if (in == ACK)
			take_all(pair, 0);
		return;
	}
	if (in == DATA_RX)
		KUNIT_EXPECT_EQ(test, fi_trecv(end->ep, pair->in, WHOLE, NULL, FI_ADDR_UNSPEC, 77,
					       0, (void *)1), 0);
	request(pair, KEFA_LONGCTS_TAGRTM_PKT, WHOLE, 100);
	if (in == SINK) {
		struct fi_msg_tagged msg = {
			.addr = FI_ADDR_UNSPEC, .tag = 77, .context = (void *)1,
		};

		KUNIT_EXPECT_EQ(test, fi_trecvmsg(end->ep, &msg, FI_PEEK | FI_DISCARD), 0);
		rdm_expect(test, end, 1, WHOLE);
	}
}

/* In each state that a message waits in, its peer dies or is removed, or the endpoint is closed. */
static void longcts_dies(struct kunit *test)
{
	static const u8 states[] = {
		[GRANT] = KEFA_ROP_GRANT, [DATA_TX] = KEFA_ROP_GRANT, [ACK] = KEFA_ROP_ACK,
		[DATA_RX] = KEFA_ROP_DATA_RX, [SINK] = KEFA_ROP_SINK,
	};
	struct rdm_pair *pair;
	int i, way;

	for (i = 0; i < 3 * DIES_IN; i++) {
		const enum dies_in in = i / 3;

		way = i % 3;
		pair = rdm_pair_new(test, NULL);
		shake(test, pair);
		die_set_up(test, pair, in);
		if (in != KEPT)
			KUNIT_EXPECT_EQ(test, the_rop(&pair->end[0])->state, states[in]);
		if (way == 0) {
			/* A CTS with an empty window is invalid: its sender is dead. */
			struct kefa_pkt pkt = { .row = kefa_row_of(KEFA_CTS_PKT) };

			tell(pair, &pkt, 0);
		} else if (way == 1) {
			KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[0].av, &pair->end[0].peer, 1,
							   0), 0);
		} else {
			EFA_CLOSE(test, pair->end[0].ep);
		}
		efake_settle_all();
		if (way < 2) {
			take_all(pair, 9);
			if (in < SINK)
				rdm_expect_error(test, &pair->end[0], 1,
						 way ? ECANCELED : EPROTO);
			rdm_expect_nothing(test, &pair->end[0]);
			expect_whole(test, pair);
			EFA_CLOSE(test, pair->end[0].ep);
		}
		EFA_CLOSE(test, pair->end[1].ep);
		efake_remove(pair->fake);
	}
}

/* Granted data leaves slots for requests, and for the data of other messages. */
static void longcts_fair(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) { .tx_size = 64 });
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	u8 *out = kmalloc(SZ_2M, GFP_KERNEL);
	u32 ids[2], slots, i, n;

	KUNIT_ASSERT_NOT_NULL(test, out);
	shake(test, pair);
	rdm->lim.min_read_message = U64_MAX;
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[0].ep, out, SZ_2M, NULL,
					       pair->end[0].peer, 5, (void *)2), 0);
		take_all(pair, 0);
	}
	for (i = 0, n = 0; i < rdm->rops.size && n < 2; i++)
		if (rdm->rops.ops[i].state == KEFA_ROP_GRANT)
			ids[n++] = i;
	KUNIT_ASSERT_EQ(test, n, 2U);
	for (i = 0; i < 2; i++)
		cts(pair, kefa_rop_id(&rdm->rops, &rdm->rops.ops[ids[i]]), 7, SZ_2M, 0);
	slots = rdm->ts_nfree - rdm->ts_ctl;
	KUNIT_EXPECT_EQ(test, slots, rdm->nts / 4);
	/* A small message is posted at once. */
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 3), 0);
	KUNIT_EXPECT_EQ(test, rdm->ts_nfree - rdm->ts_ctl, slots - 1);
	for (n = 0; n < 100; n++) {
		efake_wr_done(efake_sent(pair->end[0].qp, 0), 0);
		efake_settle_all();
		KUNIT_EXPECT_GE(test, rdm->ts_nfree - rdm->ts_ctl, slots - 1);
	}
	rdm_expect(test, &pair->end[0], 3, 8);
	/* Both messages have made progress. */
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_GT(test, rdm->rops.ops[ids[i]].sent, 45ULL * SZ_8K);
	take_all(pair, 0);
	EFA_CLOSE(test, pair->end[0].ep);
	kfree(out);
}

/* The device refuses to send granted data. */
static void longcts_refused(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	int n;

	shake(test, pair);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 1), 0);
	take_all(pair, 0);
	efake_fail(pair->fake, EFAKE_POST_SEND, 1, -EIO);
	cts(pair, the_id(&pair->end[0]), 7, WHOLE, 0);
	for (n = 0; n < 100 && !rdm->stats.deaths; n++) {
		msleep(20);
		efake_settle_all();
	}
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 1ULL);
	take_all(pair, 0);
	rdm_expect_error(test, &pair->end[0], 1, EIO);
	rdm_expect_nothing(test, &pair->end[0]);
	expect_whole(test, pair);
}

/* Have the endpoint check its peers now, which it does only while an operation waits for one. */
static void check_peers(struct kunit *test, struct kefa_rdm *rdm)
{
	KUNIT_EXPECT_TRUE(test, READ_ONCE(rdm->listening));
	rdm_check_peers(rdm);
	efake_settle_all();
}

/* The first check notes that the peer is silent, the second one asks it for a sign of life. */
static void expect_asked(struct kunit *test, struct rdm_end *end)
{
	unsigned int n;

	for (n = 0; n < 2 && !end->qp->nsent; n++)
		check_peers(test, rdm_of(end));
	KUNIT_ASSERT_EQ(test, end->qp->nsent, 1U);
}

static void expect_quiet(struct kunit *test, struct kefa_rdm *rdm)
{
	if (READ_ONCE(rdm->listening))
		check_peers(test, rdm);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(rdm->listening));
}

/*
 * An operation waits for a peer that is gone, and no packet to that peer is in flight: the endpoint
 * must ask for a sign of life to find out.
 */
static void longcts_silent(struct kunit *test)
{
	static const enum dies_in states[] = { GRANT, ACK, DATA_RX, SINK };
	struct rdm_pair *pair;
	struct efake_qp *qp;
	u8 type = 0;
	int i, n;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		pair = rdm_pair_new(test, NULL);
		qp = pair->end[0].qp;
		shake(test, pair);
		die_set_up(test, pair, states[i]);
		take_all(pair, 0);
		/* The first time the peer takes the packet, the second time it is gone. */
		for (n = 0; n < 2; n++) {
			KUNIT_EXPECT_EQ(test, qp->nsent, 0U);
			expect_asked(test, &pair->end[0]);
			efake_wr_read(efake_sent(qp, 0), &type, 1);
			KUNIT_EXPECT_EQ(test, type, KEFA_EAGER_RTW_PKT);
			take_all(pair, n ? 9 : 0);
		}
		KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->stats.asked, 2ULL);
		if (states[i] != SINK)
			rdm_expect_error(test, &pair->end[0], 1, ECONNRESET);
		expect_whole(test, pair);
		expect_quiet(test, rdm_of(&pair->end[0]));
		EFA_CLOSE(test, pair->end[0].ep);
		EFA_CLOSE(test, pair->end[1].ep);
		efake_remove(pair->fake);
	}
}

/*
 * Data waited for slots when the endpoint last checked its peers: it must check them again once
 * the data was sent and the peer is to grant more.
 */
static void longcts_silent_later(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	const u32 reserved = rdm->ts_ctl;

	shake(test, pair);
	die_set_up(test, pair, GRANT);
	take_all(pair, 0);
	rdm->ts_ctl = rdm->nts;
	cts(pair, the_id(&pair->end[0]), 7, 1000, 0);
	KUNIT_ASSERT_EQ(test, the_rop(&pair->end[0])->state, KEFA_ROP_DATA_TX);
	expect_quiet(test, rdm);
	rdm->ts_ctl = reserved;
	kefa_ep_kick(&rdm->ep);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, take_all(pair, 0), 1U);
	KUNIT_ASSERT_EQ(test, the_rop(&pair->end[0])->state, KEFA_ROP_GRANT);
	expect_asked(test, &pair->end[0]);
	take_all(pair, 9);
	rdm_expect_error(test, &pair->end[0], 1, ECONNRESET);
	expect_whole(test, pair);
}

/*
 * An injected message was refused until the peer's HANDSHAKE, and the peer dies after it has taken
 * the packet that asks for it. The ULP waits for room, and must be notified.
 */
static void longcts_silent_inject(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct fid_ep *ep = pair->end[0].ep;

	KUNIT_EXPECT_EQ(test, fi_inject(ep, pair->out, 8, pair->end[0].peer), -EAGAIN);
	KUNIT_EXPECT_EQ(test, take_all(pair, 0), 1U);
	KUNIT_EXPECT_EQ(test, fi_inject(ep, pair->out, 8, pair->end[0].peer), -EAGAIN);
	expect_asked(test, &pair->end[0]);
	KUNIT_EXPECT_TRUE(test, rdm->ep.tx.wanted);
	take_all(pair, 9);
	KUNIT_EXPECT_FALSE(test, rdm->ep.tx.wanted);
	KUNIT_EXPECT_EQ(test, fi_inject(ep, pair->out, 8, pair->end[0].peer), -EHOSTUNREACH);
	expect_quiet(test, rdm);
}

static struct kunit_case longcts_cases[] = {
	KUNIT_CASE(longcts_sizes),
	KUNIT_CASE(longcts_unexpected),
	KUNIT_CASE(longcts_truncated),
	KUNIT_CASE(longcts_multi),
	KUNIT_CASE(longcts_pieces),
	KUNIT_CASE(longcts_grants),
	KUNIT_CASE(longcts_data),
	KUNIT_CASE(longcts_not_ready),
	KUNIT_CASE_SLOW(longcts_dies),
	KUNIT_CASE(longcts_silent),
	KUNIT_CASE(longcts_silent_later),
	KUNIT_CASE(longcts_silent_inject),
	KUNIT_CASE(longcts_fair),
	KUNIT_CASE(longcts_refused),
	{}
};

static struct kunit_suite longcts_suite = {
	.name		= "kefa_rdm_longcts",
	.test_cases	= longcts_cases,
};

kunit_test_suite(longcts_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, messages that are granted part by part");
MODULE_LICENSE("Dual BSD/GPL");
