// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: messages that their receiver reads by RDMA. Whatever fails, no device must access
 * the ULP's memory after the completion, at either end.
 */
#include <linux/vmalloc.h>
#include "efa_rdm_scene.h"

#define WHOLE	SZ_128K
#define LONG	RDM_READ_FROM

static u8 packet[SZ_16K];

static ssize_t send_as(struct rdm_pair *pair, size_t len, u64 flags, u64 data, long ctx)
{
	struct kvec iov = { pair->out, len };
	struct fi_msg_tagged msg = {
		.addr = pair->end[0].peer, .tag = 5, .context = (void *)ctx, .data = data,
	};

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, len);
	return fi_tsendmsg(pair->end[0].ep, &msg, flags);
}

static void longread_sizes(struct kunit *test)
{
	static const size_t sizes[] = { LONG, LONG + 1, 65536, WHOLE - 1, WHOLE };
	struct rdm_pair *pair = rdm_reading_pair(test);
	unsigned int *seen = pair->net.seen;
	unsigned int i;
	struct rdm_comp comp;

	for (i = 0; i < 4 * ARRAY_SIZE(sizes); i++) {
		const size_t size = sizes[i / 4];

		memset(seen, 0, sizeof(pair->net.seen));
		memset(pair->in, 0, size);
		efa_fill(pair->out, size, i);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, size, 5, 1), 0);
		KUNIT_EXPECT_EQ(test, send_as(pair, size, (i & 1 ? FI_DELIVERY_COMPLETE : 0) |
					      (i & 2 ? FI_REMOTE_CQ_DATA : 0), 77 + i, 2), 0);
		rdm_run(pair);
		comp = rdm_read(&pair->end[0]);
		KUNIT_EXPECT_EQ(test, comp.ret, 1);
		KUNIT_EXPECT_EQ(test, comp.entry.len, size);
		KUNIT_EXPECT_EQ(test, comp.entry.data, i & 2 ? 77ULL + i : 0ULL);
		comp = rdm_read(&pair->end[1]);
		KUNIT_EXPECT_EQ(test, comp.ret, 1);
		KUNIT_EXPECT_EQ(test, comp.entry.len, size);
		KUNIT_EXPECT_EQ(test, comp.entry.tag, 5ULL);
		if (i & 2)
			KUNIT_EXPECT_EQ(test, comp.entry.data, 77ULL + i);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, size, i));
		KUNIT_EXPECT_EQ(test, seen[KEFA_LONGREAD_TAGRTM_PKT], 1U);
		KUNIT_EXPECT_EQ(test, seen[KEFA_EOR_PKT], 1U);
		KUNIT_EXPECT_EQ(test, seen[KEFA_RECEIPT_PKT], 0U);
	}
	/* One read for each message, and no copy: rdm_ready_pair() has sent the 8 bytes. */
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.reads, 4ULL * ARRAY_SIZE(sizes));
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->stats.copied, 8ULL);
	rdm_expect_whole(test, pair);
}

#define PIECES_SIZE	(60 * PAGE_SIZE + 100)

/* Memory in pieces at both ends, more pieces than reads that can be outstanding. */
static void longread_pieces(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	u8 *pages = alloc_pages_exact(PIECES_SIZE, GFP_KERNEL);
	u8 *out = vmalloc(PIECES_SIZE), *in;
	unsigned int n;

	KUNIT_ASSERT_TRUE(test, out && pages);
	in = rdm_scattered(test, pages, PIECES_SIZE);
	efa_fill(out, PIECES_SIZE, 3);
	memset(in, 0, PIECES_SIZE);
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, in, PIECES_SIZE, NULL, FI_ADDR_UNSPEC, 5,
				       0, (void *)1), 0);
	KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[0].ep, out, PIECES_SIZE, NULL,
				       pair->end[0].peer, 5, (void *)2), 0);
	rdm_run_until(pair, 1, 0);
	for (n = 0; n < 500 && pair->end[1].qp->nsent; n++) {
		KUNIT_EXPECT_LE(test, pair->end[1].qp->nsent, KEFA_READS_MAX + 1U);
		rdm_step(pair);
		efake_settle();
	}
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, PIECES_SIZE);
	rdm_expect(test, &pair->end[1], 1, PIECES_SIZE);
	KUNIT_EXPECT_TRUE(test, efa_filled(in, PIECES_SIZE, 3));
	KUNIT_EXPECT_GE(test, rdm->stats.reads, 61ULL);
	rdm_expect_whole(test, pair);
	vfree(out);
	vunmap(in);
	free_pages_exact(pages, PIECES_SIZE);
}

/* Data that the buffer has no room for isn't read; the sender completes all the same. */
static void longread_truncated(struct kunit *test)
{
	static const size_t sizes[] = { 0, 100, 50001 };
	struct rdm_pair *pair = rdm_reading_pair(test);
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
		KUNIT_EXPECT_EQ(test, comp.error.len, sizes[i]);
		KUNIT_EXPECT_EQ(test, comp.error.olen, WHOLE - sizes[i]);
		rdm_expect(test, &pair->end[0], 2, WHOLE);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, sizes[i], 1));
		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(pair->in + sizes[i], 0xa5, WHOLE - sizes[i]),
				    NULL);
		rdm_expect_whole(test, pair);
	}
}

/* An unexpected message is received, discarded, or read into a multi-receive buffer. */
static void longread_unexpected(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kvec iov = { pair->in, WHOLE };
	struct fi_msg_tagged peek = { .addr = FI_ADDR_UNSPEC, .tag = 5, .context = (void *)9 };
	struct fi_msg multi = { .addr = FI_ADDR_UNSPEC, .context = (void *)9 };
	int way;

	for (way = 0; way < 3; way++) {
		memset(pair->in, 0, WHOLE);
		efa_fill(pair->out, WHOLE, way);
		KUNIT_EXPECT_EQ(test, way == 2 ? fi_send(pair->end[0].ep, pair->out, WHOLE, NULL,
							 pair->end[0].peer, (void *)1) :
						 rdm_tsend(pair, WHOLE, 5, 1), 0);
		rdm_run(pair);
		rdm_expect_nothing(test, &pair->end[0]);
		KUNIT_EXPECT_EQ(test, pair->net.reads, (unsigned int)!!way);
		iov_iter_kvec(&peek.msg_iter, ITER_DEST, &iov, 1, WHOLE);
		iov_iter_kvec(&multi.msg_iter, ITER_DEST, &iov, 1, WHOLE);
		if (way == 2)
			KUNIT_EXPECT_EQ(test, fi_recvmsg(pair->end[1].ep, &multi, FI_MULTI_RECV),
					0);
		else
			KUNIT_EXPECT_EQ(test, fi_trecvmsg(pair->end[1].ep, &peek, way ?
							  FI_PEEK | FI_DISCARD : 0), 0);
		rdm_run(pair);
		rdm_expect(test, &pair->end[1], 9, WHOLE);
		rdm_expect(test, &pair->end[0], 1, WHOLE);
		KUNIT_EXPECT_EQ(test, efa_filled(pair->in, WHOLE, way), way != 1);
		rdm_expect_whole(test, pair);
	}
}

/* The send completes after the invalidation, when nobody can read the memory, not by the EOR. */
static void longread_told(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct efake_qp *qp = pair->end[0].qp;
	struct efake_wr *wr;
	u32 key;

	pair->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 2), 0);
	/* Later messages to this peer wait for the registration. */
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 6, 3), 0);
	wr = efake_sent(qp, 0);
	KUNIT_ASSERT_EQ(test, wr->opcode, IB_WR_REG_MR);
	KUNIT_EXPECT_EQ(test, wr->access & (IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE),
			IB_ACCESS_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, qp->nsent, 1U);
	key = wr->rkey;
	efake_wr_done(wr, 0);
	/* Complete everything except the invalidation. */
	while (rdm_run_until(pair, 0, 0xff))
		;
	KUNIT_ASSERT_EQ(test, qp->nsent, 1U);
	wr = efake_sent(qp, 0);
	KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_LOCAL_INV);
	KUNIT_EXPECT_EQ(test, wr->rkey, key);
	KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_EOR_PKT], 1U);
	rdm_expect(test, &pair->end[1], 1, WHOLE);
	rdm_expect(test, &pair->end[0], 3, 8);
	rdm_expect_nothing(test, &pair->end[0]);
	efake_wr_done(wr, 0);
	efake_settle_all();
	rdm_expect(test, &pair->end[0], 2, WHOLE);
	KUNIT_EXPECT_FALSE(test, efake_valid(pair->fake, key));
	pair->fake->manual_mr = false;
}

/*
 * A message goes by long-CTS if no region is free, if mapping or registration fails, or if one
 * region can't cover its memory.
 */
static void longread_other_way(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	struct kvec iov[2] = { { pair->out, 60000 }, { pair->out + 60010, 60000 } };
	struct fi_msg_tagged odd = {
		.addr = pair->end[0].peer, .tag = 5, .context = (void *)2,
	};
	LIST_HEAD(none);
	int way;

	for (way = 0; way < 4; way++) {
		const size_t len = way == 3 ? 120000 : WHOLE;

		if (way == 0)
			list_splice_init(&rdm->sources_free, &none);
		if (way == 1)
			efake_fail(pair->fake, EFAKE_MR_MAP, 1, -EIO);
		if (way == 2)
			pair->fake->max_page = 1;
		memset(pair->in, 0, WHOLE);
		efa_fill(pair->out, WHOLE, way);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
		iov_iter_kvec(&odd.msg_iter, ITER_SOURCE, iov, 2, len);
		KUNIT_EXPECT_EQ(test, way == 3 ? fi_tsendmsg(pair->end[0].ep, &odd, 0) :
						 send_as(pair, len, 0, 0, 2), 0);
		rdm_run(pair);
		rdm_expect(test, &pair->end[0], 2, len);
		rdm_expect(test, &pair->end[1], 1, len);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 60000, way));
		KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_LONGCTS_TAGRTM_PKT], way + 1U);
		list_splice_init(&none, &rdm->sources_free);
		pair->fake->max_page = 0;
		rdm_expect_whole(test, pair);
	}
	KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_LONGREAD_TAGRTM_PKT], 0U);
}

/* If the device refuses a read, the receiver asks for the data, which arrives by long-CTS. */
static void longread_nack(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	unsigned int *seen = pair->net.seen;
	struct rdm_comp comp;
	int way;

	for (way = 0; way < 4; way++) {
		const bool dc = way & 1;

		memset(seen, 0, sizeof(pair->net.seen));
		memset(pair->in, 0, WHOLE);
		efa_fill(pair->out, WHOLE, way);
		pair->net.bad_reads = 1;
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
		KUNIT_EXPECT_EQ(test, send_as(pair, WHOLE, (dc ? FI_DELIVERY_COMPLETE : 0) |
					      (way & 2 ? FI_REMOTE_CQ_DATA : 0), 99, 2), 0);
		/* The repeated request keeps its message number. */
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 6, 3), 0);
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 6, 4), 0);
		rdm_run(pair);
		KUNIT_EXPECT_EQ(test, seen[KEFA_READ_NACK_PKT], 1U);
		KUNIT_EXPECT_EQ(test, seen[dc ? KEFA_DC_LONGCTS_TAGRTM_PKT :
						KEFA_LONGCTS_TAGRTM_PKT], 1U);
		KUNIT_EXPECT_EQ(test, seen[KEFA_RECEIPT_PKT], (unsigned int)dc);
		rdm_expect(test, &pair->end[0], 3, 8);
		rdm_expect(test, &pair->end[0], 2, WHOLE);
		rdm_expect(test, &pair->end[1], 4, 8);
		comp = rdm_read(&pair->end[1]);
		KUNIT_EXPECT_EQ(test, comp.ret, 1);
		KUNIT_EXPECT_EQ(test, comp.entry.len, (size_t)WHOLE);
		if (way & 2)
			KUNIT_EXPECT_EQ(test, comp.entry.data, 99ULL);
		rdm_expect_whole(test, pair);
	}
}

/* A peer without READ_NACK can't be told that the read failed, so it is given up. */
static void longread_no_nack(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);

	spin_lock_bh(&rdm->ep.lock);
	kefa_peers_at(&rdm->peers, pair->end[1].peer)->features &= ~KEFA_FEATURE_READ_NACK;
	spin_unlock_bh(&rdm->ep.lock);
	pair->net.bad_reads = 1;
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 2), 0);
	rdm_run(pair);
	rdm_expect_error(test, &pair->end[1], 1, EACCES);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 1ULL);
}

/* --- packets that the test makes in place of the sender --- */

static void tell(struct rdm_pair *pair, struct kefa_pkt *pkt, size_t data)
{
	struct efake_wr *recv = efake_recv(pair->end[1].qp, 0);
	struct kefa_wc wc = { .src_qpn = pair->end[0].name.qpn, .slid = RDM_SLID };
	size_t hdr;

	pkt->connid = pair->end[0].name.qkey;
	pkt->has_connid = true;
	pkt->flags |= KEFA_PKT_CONNID_HDR;
	hdr = kefa_build(pkt, packet, sizeof(packet));
	memcpy(packet + hdr, pair->out + pkt->seg_offset, data);
	wc.len = hdr + data;
	efake_wr_write(recv, packet, wc.len);
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

static void runt(struct rdm_pair *pair, u32 id, u64 total, u64 runt_length, u64 off, size_t len,
		 const struct kefa_rma_iov *iov, u32 count)
{
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_RUNTREAD_TAGRTM_PKT),
		.msg_id		= id,
		.msg_length	= total,
		.send_id	= 1234,
		.runt_length	= runt_length,
		.seg_offset	= off,
		.read_iov	= iov,
		.read_iov_count	= count,
		.tag		= 5,
	};

	tell(pair, &pkt, len);
}

/* Complete everything that the second endpoint has posted; reads copy the data. */
static unsigned int take_all(struct rdm_pair *pair, u64 base, u32 status)
{
	struct efake_qp *qp = pair->end[1].qp;
	struct efake_wr *wr;
	unsigned int n;

	for (n = 0; (wr = efake_sent(qp, 0)) && n < 1000; n++) {
		if (wr->opcode == IB_WR_RDMA_READ && !status)
			efake_wr_write(wr, pair->out + (wr->raddr - base), wr->len);
		efake_wr_done(wr, wr->opcode == IB_WR_RDMA_READ ? status : 0);
		efake_settle_all();
	}
	return n;
}

/* A runt's packets arrive in any order, before or after the receive; the rest is read. */
static void longread_runt(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	const struct kefa_rma_iov iov[3] = {
		{ cpu_to_le64(0x10000), cpu_to_le64(9000), cpu_to_le64(7) },
		{ cpu_to_le64(0x10000 + 9000), cpu_to_le64(1), cpu_to_le64(7) },
		{ cpu_to_le64(0x10000 + 9001), cpu_to_le64(WHOLE - 9001), cpu_to_le64(7) },
	};
	const u64 *received = rdm_of(&pair->end[1])->stats.received;
	const u64 *sent = rdm_of(&pair->end[1])->stats.sent;
	size_t room;
	int way;

	for (way = 0; way < 6; way++) {
		/* Short buffers leave nothing to be read. */
		room = way == 4 ? 8000 : way == 5 ? 100 : WHOLE;
		memset(pair->in, 0, WHOLE);
		efa_fill(pair->out, WHOLE, way);
		if (way & 1)
			KUNIT_EXPECT_EQ(test, rdm_trecv(pair, room, 5, 1), 0);
		runt(pair, way + 1, WHOLE, 8000, 4000, 4000, iov, way % 3 ? 3 : 3);
		if (way == 2)
			KUNIT_EXPECT_EQ(test, rdm_trecv(pair, room, 5, 1), 0);
		runt(pair, way + 1, WHOLE, 8000, 0, 4000, iov, 3);
		if (!(way & 1) && way != 2)
			KUNIT_EXPECT_EQ(test, rdm_trecv(pair, room, 5, 1), 0);
		efake_settle_all();
		take_all(pair, 0x10000, 0);
		if (room == WHOLE)
			rdm_expect(test, &pair->end[1], 1, WHOLE);
		else
			rdm_expect_error(test, &pair->end[1], 1, FI_ETRUNC);
		KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, room, way));
		KUNIT_EXPECT_EQ(test, received[KEFA_RUNTREAD_TAGRTM_PKT], 2ULL * (way + 1));
		KUNIT_EXPECT_EQ(test, sent[KEFA_EOR_PKT], 1ULL + way);
		rdm_expect_whole(test, pair);
	}
	/* Packets that contradict the first one. */
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
	runt(pair, way + 1, WHOLE, 8000, 0, 4000, iov, 3);
	runt(pair, way + 1, WHOLE, 7000, 4000, 3000, iov, 3);
	runt(pair, way + 1, WHOLE, 8000, 3000, 5000, iov, 3);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.dropped[KEFA_DROP_LENGTH], 2ULL);
}

/* The read after a runt is refused: the runt is kept, and the rest arrives as granted data. */
static void longread_runt_nack(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	const struct kefa_rma_iov iov = {
		cpu_to_le64(0x10000), cpu_to_le64(16000), cpu_to_le64(7),
	};
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct kefa_pkt again = {
		.row		= kefa_row_of(KEFA_LONGCTS_TAGRTM_PKT),
		.flags		= KEFA_REQ_READ_NACK,
		.msg_id		= 1,
		.msg_length	= 16000,
		.send_id	= 555,
		.tag		= 5,
	};
	struct kefa_pkt data = {
		.row		= kefa_row_of(KEFA_CTSDATA_PKT),
		.seg_offset	= 8000,
		.seg_length	= 8000,
	};
	u32 i;

	efa_fill(pair->out, 16000, 3);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
	/* The request is repeated without a READ_NACK. */
	tell(pair, &again, 0);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_STATE], 1ULL);
	runt(pair, 1, 16000, 8000, 0, 8000, &iov, 1);
	tell(pair, &again, 0);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_STATE], 2ULL);
	take_all(pair, 0x10000, 7);
	KUNIT_EXPECT_EQ(test, rdm->stats.sent[KEFA_READ_NACK_PKT], 1ULL);
	again.msg_length = 15999;
	tell(pair, &again, 0);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_STATE], 3ULL);
	again.msg_length = 16000;
	tell(pair, &again, 0);
	KUNIT_EXPECT_EQ(test, rdm->stats.sent[KEFA_CTS_PKT], 1ULL);
	tell(pair, &again, 0);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_STATE], 4ULL);
	for (i = 0; i < rdm->rops.size; i++)
		if (rdm->rops.ops[i].state == KEFA_ROP_DATA_RX)
			data.recv_id = kefa_rop_id(&rdm->rops, &rdm->rops.ops[i]);
	tell(pair, &data, 8000);
	take_all(pair, 0, 0);
	rdm_expect(test, &pair->end[1], 1, 16000);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, 16000, 3));
	rdm_expect_whole(test, pair);
}

/* --- loss of a peer --- */

enum dies_in { IN_REGISTERING, IN_SENT, IN_READING, IN_READ, IN_INVALIDATING, IN_NACKED, DIES_IN };

/* Have a message get into a state. Return: the index of the end that shall lose its peer. */
static int die_set_up(struct kunit *test, struct rdm_pair *pair, enum dies_in in)
{
	pair->fake->manual_mr = in == IN_REGISTERING || in == IN_INVALIDATING;
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 2), 0);
	switch (in) {
	case IN_SENT:
		KUNIT_EXPECT_NOT_NULL(test, rdm_run_until(pair, 0, KEFA_LONGREAD_TAGRTM_PKT));
		return 0;
	case IN_READING:
		KUNIT_EXPECT_NOT_NULL(test, rdm_run_until(pair, 1, 0));
		return 1;
	case IN_READ:
		KUNIT_EXPECT_NOT_NULL(test, rdm_run_until(pair, 1, KEFA_EOR_PKT));
		return 0;
	case IN_INVALIDATING:
		efake_wr_done(efake_sent(pair->end[0].qp, 0), 0);
		while (rdm_run_until(pair, 0, 0xff))
			;
		return 0;
	case IN_NACKED:
		pair->net.bad_reads = 1;
		KUNIT_EXPECT_NOT_NULL(test, rdm_run_until(pair, 1, KEFA_READ_NACK_PKT));
		return 1;
	default:
		return 0;
	}
}

/* Deliver bytes that are no packet, so that the receiver declares their sender dead. */
static void garbage(struct rdm_pair *pair, int at)
{
	struct efake_wr *recv = efake_recv(pair->end[at].qp, 0);
	const struct kefa_wc wc = {
		.len = 16, .src_qpn = pair->end[!at].name.qpn, .slid = RDM_SLID,
	};

	memset(packet, 0xff, 16);
	efake_wr_write(recv, packet, 16);
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

/* The operation must complete once, and not while the device can access the memory. */
static void expect_lost(struct kunit *test, struct rdm_pair *pair, int at, enum dies_in in, int err)
{
	struct efake_qp *qp = pair->end[at].qp;
	struct efake_wr *wr;
	unsigned int n;

	if (in == IN_REGISTERING || in == IN_READING || in == IN_INVALIDATING)
		rdm_expect_nothing(test, &pair->end[at]);
	efake_settle_all();
	for (n = 0; (wr = efake_sent(qp, 0)) && n < 100; n++) {
		efake_wr_done(wr, wr->mr ? 0 : 9);
		efake_settle_all();
	}
	if (in == IN_INVALIDATING)
		rdm_expect(test, &pair->end[at], 2, WHOLE);
	else
		rdm_expect_error(test, &pair->end[at], at ? 1 : 2, err);
	rdm_expect_nothing(test, &pair->end[at]);
}

static void longread_dies(struct kunit *test)
{
	struct rdm_pair *pair;
	int i, at;

	for (i = 0; i < 3 * DIES_IN; i++) {
		const enum dies_in in = i / 3;

		pair = rdm_reading_pair(test);
		at = die_set_up(test, pair, in);
		switch (i % 3) {
		case 0:
			garbage(pair, at);
			expect_lost(test, pair, at, in, EPROTO);
			break;
		case 1:
			KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[at].av, &pair->end[at].peer,
							   1, 0), 0);
			expect_lost(test, pair, at, in, ECANCELED);
			break;
		default:
			EFA_CLOSE(test, pair->end[at].ep);
			break;
		}
		if (pair->end[at].ep) {
			KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[at])->rops.used, 0U);
			KUNIT_EXPECT_EQ(test, rdm_regions(&pair->end[at]),
					rdm_of(&pair->end[at])->nsources);
			EFA_CLOSE(test, pair->end[at].ep);
		}
		EFA_CLOSE(test, pair->end[!at].ep);
		KUNIT_EXPECT_EQ(test, efake_haunt(pair->fake), 0U);
		efake_remove(pair->fake);
	}
}

/* The device is removed in each of the states. */
static void longread_removed(struct kunit *test)
{
	struct rdm_pair *pair;
	struct rdm_comp comp;
	int in, at;

	for (in = 0; in < DIES_IN; in++) {
		pair = rdm_reading_pair(test);
		at = die_set_up(test, pair, in);
		efake_remove(pair->fake);
		efake_settle_all();
		comp = rdm_read(&pair->end[at]);
		if (in == IN_INVALIDATING)
			KUNIT_EXPECT_EQ(test, comp.ret, 1);
		else
			KUNIT_EXPECT_EQ(test, comp.error.err, ENODEV);
		rdm_expect_nothing(test, &pair->end[at]);
		EFA_CLOSE(test, pair->end[0].ep);
		EFA_CLOSE(test, pair->end[1].ep);
	}
}

/* If an invalidation fails, the region is destroyed before the send completes. */
static void longread_revoked(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct efake_qp *qp = pair->end[0].qp;
	unsigned int destroyed;
	struct efake_wr *wr;
	u32 key;

	pair->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 2), 0);
	wr = efake_sent(qp, 0);
	key = wr->rkey;
	efake_wr_done(wr, 0);
	while (rdm_run_until(pair, 0, 0xff))
		;
	destroyed = efake_calls(pair->fake, EFAKE_MR_DESTROY);
	efake_wr_done(efake_sent(qp, 0), 2);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, efake_calls(pair->fake, EFAKE_MR_DESTROY), destroyed + 1);
	KUNIT_EXPECT_FALSE(test, efake_valid(pair->fake, key));
	rdm_expect(test, &pair->end[0], 2, WHOLE);
	rdm_expect(test, &pair->end[1], 1, WHOLE);
	pair->fake->manual_mr = false;
	rdm_expect_whole(test, pair);
	/* A new region has replaced it. */
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, WHOLE, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, WHOLE, 5, 2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, WHOLE);
	KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_LONGREAD_TAGRTM_PKT], 2U);
}

/* FI_OPT_EFA_USE_DEVICE_RDMA, with and without support by the device. */
static void longread_options(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct fid_ep *ep;
	bool flag = false;
	size_t len = sizeof(flag);

	KUNIT_EXPECT_EQ(test, fi_setopt(&pair->end[0].ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_EFA_USE_DEVICE_RDMA, &flag, sizeof(flag)),
			-FI_EOPBADSTATE);
	KUNIT_ASSERT_EQ(test, fi_endpoint(pair->domain, pair->info, &ep, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_EFA_USE_DEVICE_RDMA,
					&flag, &len), 0);
	KUNIT_EXPECT_TRUE(test, flag);
	flag = false;
	KUNIT_EXPECT_EQ(test, fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_EFA_USE_DEVICE_RDMA,
					&flag, sizeof(flag)), 0);
	KUNIT_EXPECT_EQ(test, fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_EFA_USE_DEVICE_RDMA,
					&flag, sizeof(int)), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &pair->end[0].av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &pair->end[0].cq->fid, FI_TRANSMIT | FI_RECV), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(ep), 0);
	KUNIT_EXPECT_EQ(test, to_kefa_rdm(to_kefa_ep(ep))->nsources, 0U);
	KUNIT_EXPECT_FALSE(test, to_kefa_rdm(to_kefa_ep(ep))->self.features &
				 KEFA_FEATURE_RDMA_READ);
	EFA_CLOSE(test, ep);
	pair->fake->dev->rdma_read = false;
	KUNIT_ASSERT_EQ(test, fi_endpoint(pair->domain, pair->info, &ep, NULL), 0);
	flag = true;
	KUNIT_EXPECT_EQ(test, fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_EFA_USE_DEVICE_RDMA,
					&flag, sizeof(flag)), -EOPNOTSUPP);
	EFA_CLOSE(test, ep);
	pair->fake->dev->rdma_read = true;
}

/* An endpoint is disabled during a registration: the device must not count as silent later. */
static void longread_disabled(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_ep *ep = to_kefa_ep(pair->end[0].ep);
	struct delayed_work *watch = &ep->dom->mrq.watch;
	int i;

	pair->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, send_as(pair, LONG, 0, 0, 2), 0);
	KUNIT_EXPECT_EQ(test, ep->nregs - ep->nregs_done, 1U);
	KUNIT_EXPECT_EQ(test, fi_disable(pair->end[0].ep), 0);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, rdm_read(&pair->end[0]).ret, -FI_EAVAIL);
	for (i = 0; i <= KEFA_MR_LOOKS; i++)
		watch->work.func(&watch->work);
	KUNIT_EXPECT_FALSE(test, ep->dom->dev->dead);
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, pair->in, 8, NULL, FI_ADDR_UNSPEC, 5, 0,
				       (void *)1), 0);
}

/*
 * A HANDSHAKE arrives while the memory of a message is registered for a peer that is taken for
 * one of the same kind. With the shorter header the message would fit into one packet.
 */
static void longread_turns_short(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) { .homogeneous = true });
	struct kefa_rdm *rdm = rdm_of(&pair->end[0]);
	const size_t len = rdm->shapes[KEFA_SIGNS_CONNID][1].room;
	struct kefa_rpeer *peer;
	struct kefa_rop *rop;

	spin_lock_bh(&rdm->ep.lock);
	peer = kefa_peers_at(&rdm->peers, pair->end[0].peer);
	spin_unlock_bh(&rdm->ep.lock);
	rdm->lim.min_read_message = 4000;
	pair->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, len, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, len, 5, 2), 0);
	rop = list_first_entry_or_null(&peer->wait, struct kefa_rop, peer_link);
	KUNIT_ASSERT_NOT_NULL(test, rop);
	KUNIT_ASSERT_EQ(test, rop->state, KEFA_ROP_REG);
	peer->flags |= KEFA_RPEER_SHAKEN;
	peer->features = rdm->self.features;
	pair->fake->manual_mr = false;
	efake_wr_done(efake_sent(pair->end[0].qp, 0), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, len);
	rdm_expect(test, &pair->end[1], 1, len);
	rdm_expect_whole(test, pair);
}

static struct kunit_case longread_cases[] = {
	KUNIT_CASE(longread_disabled),
	KUNIT_CASE(longread_turns_short),
	KUNIT_CASE(longread_sizes),
	KUNIT_CASE(longread_pieces),
	KUNIT_CASE(longread_truncated),
	KUNIT_CASE(longread_unexpected),
	KUNIT_CASE(longread_told),
	KUNIT_CASE(longread_other_way),
	KUNIT_CASE(longread_nack),
	KUNIT_CASE(longread_no_nack),
	KUNIT_CASE(longread_runt),
	KUNIT_CASE(longread_runt_nack),
	KUNIT_CASE_SLOW(longread_dies),
	KUNIT_CASE(longread_removed),
	KUNIT_CASE(longread_revoked),
	KUNIT_CASE(longread_options),
	{}
};

static struct kunit_suite longread_suite = {
	.name		= "kefa_rdm_longread",
	.test_cases	= longread_cases,
};

kunit_test_suite(longread_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, messages that are read");
MODULE_LICENSE("Dual BSD/GPL");
