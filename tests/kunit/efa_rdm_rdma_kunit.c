// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fabric efa: reads and writes by the device, and writes with data in both roles. */
#include "crew.h"
#include "efa_rdm_far.h"

static struct far *rdma_new(struct kunit *test)
{
	return far_new(test, &(struct rdm_opts) { .rdma = true });
}

/* Read or write one piece from @local, with FI_COMPLETION and further flags. */
static ssize_t post(struct far *far, u8 *local, bool read, u64 at, size_t len, u64 flags, long ctx)
{
	struct kvec iov = { local, len };
	const struct fi_rma_iov rma = far_piece(far, at, len);
	struct fi_msg_rma msg = {
		.addr = far->pair->end[0].peer, .rma_iov = &rma, .rma_iov_count = 1,
		.context = (void *)ctx, .data = ctx,
	};

	iov_iter_kvec(&msg.msg_iter, read ? ITER_DEST : ITER_SOURCE, &iov, 1, len);
	flags |= FI_COMPLETION;
	return read ? fi_readmsg(far->pair->end[0].ep, &msg, flags) :
		      fi_writemsg(far->pair->end[0].ep, &msg, flags);
}

static struct kefa_rdm *first(struct far *far)
{
	return rdm_of(&far->pair->end[0]);
}

static u64 requests(struct far *far)
{
	const u64 *sent = first(far)->stats.sent;

	return sent[KEFA_EAGER_RTW_PKT] + sent[KEFA_DC_EAGER_RTW_PKT] +
	       sent[KEFA_LONGCTS_RTW_PKT] + sent[KEFA_DC_LONGCTS_RTW_PKT] +
	       sent[KEFA_SHORT_RTR_PKT] + sent[KEFA_LONGCTS_RTR_PKT];
}

/* One piece of linear memory, or of scattered pages; whole, or cut into segments. */
static void rdma_sizes(struct kunit *test)
{
	static const size_t sizes[] = { 0, 1, 4096, 9000, 100000 };
	struct far *far = rdma_new(test);
	const u64 asked = requests(far);
	unsigned int i, read, cut, n = 0;
	u8 *local;

	for (cut = 0; cut < 2; cut++) {
		if (cut)
			first(far)->lim.read_segment = PAGE_SIZE;
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			for (read = 0; read < 4; read++) {
				/* Memory of vmalloc() in half of the cases. */
				local = read & 2 ? far->data : far->pair->out;
				efa_fill(read & 1 ? far->mem + 9 : local, sizes[i], n);
				memset(read & 1 ? local : far->mem + 9, 0xa5, sizes[i] + 1);
				KUNIT_EXPECT_EQ(test, post(far, local, read & 1, 9, sizes[i], 0,
							   ++n), 0);
				rdm_run(far->pair);
				rdm_expect(test, &far->pair->end[0], n, sizes[i]);
				KUNIT_ASSERT_EQ(test, memcmp(local, far->mem + 9, sizes[i]), 0);
				KUNIT_EXPECT_EQ(test, (read & 1 ? local : far->mem + 9)[sizes[i]],
						0xa5);
			}
		}
	}
	KUNIT_EXPECT_EQ(test, requests(far), asked);
	KUNIT_EXPECT_GT(test, first(far)->stats.writes, 2ULL * 25);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[0].far), n);
	/* The target isn't told. */
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), 0ULL);
	rdm_expect_nothing(test, &far->pair->end[1]);
	rdm_expect_whole(test, far->pair);
}

static void rdma_pieces(struct kunit *test)
{
	struct far *far = rdma_new(test);
	struct fi_rma_iov rma[4] = {
		far_piece(far, 0, 0), far_piece(far, 5, 3000), far_piece(far, 50000, 4000),
		far_piece(far, 60000, 1),
	};
	struct kvec kvec[3] = {
		{ far->data, 1000 }, { far->data + 2000, 5000 }, { far->data + 9000, 1001 },
	};
	struct fi_msg_rma msg = {
		.addr = far->pair->end[0].peer, .rma_iov = rma, .rma_iov_count = 4,
		.context = (void *)3,
	};

	efa_fill(far->data, 20000, 8);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, kvec, 3, 7001);
	KUNIT_EXPECT_EQ(test, fi_writemsg(far->pair->end[0].ep, &msg, FI_COMPLETION), 0);
	rdm_run(far->pair);
	rdm_expect(test, &far->pair->end[0], 3, 7001);
	KUNIT_ASSERT_EQ(test, memcmp(far->mem + 5, far->data, 1000), 0);
	KUNIT_ASSERT_EQ(test, memcmp(far->mem + 1005, far->data + 2000, 2000), 0);
	KUNIT_ASSERT_EQ(test, memcmp(far->mem + 50000, far->data + 4000, 3000), 0);
	KUNIT_ASSERT_EQ(test, memcmp(far->mem + 53000, far->data + 9000, 1000), 0);
	KUNIT_EXPECT_EQ(test, far->mem[60000], far->data[10000]);
	/* All pieces are empty. */
	memset(rma, 0, sizeof(rma));
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, kvec, 3, 0);
	KUNIT_EXPECT_EQ(test, fi_writemsg(far->pair->end[0].ep, &msg, FI_COMPLETION), 0);
	rdm_finish_sent(far->pair, 0, 0);
	rdm_expect(test, &far->pair->end[0], 3, 0);
	rdm_expect_whole(test, far->pair);
}

/* More parts than there are slots, of two operations, while messages go through. */
static void rdma_many(struct kunit *test)
{
	struct far *far = rdma_new(test);
	struct rdm_comp comp;
	unsigned int n;

	first(far)->lim.read_segment = PAGE_SIZE / 8;
	efa_fill(far->data, SZ_64K, 1);
	KUNIT_EXPECT_EQ(test, post(far, far->data, false, 0, SZ_64K, 0, 11), 0);
	KUNIT_EXPECT_EQ(test, post(far, far->pair->out, true, SZ_64K, SZ_32K, 0, 12), 0);
	KUNIT_EXPECT_LE(test, far->pair->end[0].qp->nsent, (u32)KEFA_READS_MAX * 2);
	KUNIT_EXPECT_EQ(test, rdm_trecv(far->pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(far->pair, 8, 5, 2), 0);
	rdm_run(far->pair);
	for (n = 0; (comp = rdm_read(&far->pair->end[0])).ret == 1; n++)
		if (!n)
			KUNIT_EXPECT_NE(test, (long)comp.entry.op_context, 0L);
	KUNIT_EXPECT_EQ(test, n, 3U);
	KUNIT_EXPECT_TRUE(test, efa_filled(far->mem, SZ_64K, 1));
	KUNIT_ASSERT_EQ(test, memcmp(far->pair->out, far->mem + SZ_64K, SZ_32K), 0);
	rdm_expect(test, &far->pair->end[1], 1, 8);
	rdm_expect_whole(test, far->pair);
}

/* Insert an address at the first endpoint, so that it shares its slots among two peers. */
static void add_peer(struct rdm_pair *pair)
{
	struct fi_efa_addr name = pair->end[1].name;
	fi_addr_t addr;

	name.qpn += 100;
	KUNIT_EXPECT_EQ(pair->test, fi_av_insert(pair->end[0].av, &name, 1, &addr, 0, NULL), 1);
}

/* The first operation waits for a HANDSHAKE, and not for itself. */
static void rdma_first(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts) {
		.rma = true, .rdma = true, .tx_size = 64,
	});
	struct rdm_end *end = &pair->end[0];
	struct fid_mr *mr;

	add_peer(pair);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(pair->domain, pair->in, SZ_64K, FI_REMOTE_READ, 0, 0, 0,
					&mr, NULL), 0);
	efa_fill(pair->in, SZ_64K, 1);
	KUNIT_EXPECT_EQ(test, fi_read(end->ep, pair->out, SZ_64K, NULL, end->peer, mr->base_addr,
				      fi_mr_key(mr), (void *)4), 0);
	rdm_run(pair);
	rdm_expect(test, end, 4, SZ_64K);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->out, SZ_64K, 1));
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	rdm_expect_whole(test, pair);
}

/* Operations that have begun go on while others wait, with a small share of the slots. */
static void rdma_share(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .rdma = true, .tx_size = 64 });
	unsigned int i;

	add_peer(far->pair);
	first(far)->lim.read_segment = PAGE_SIZE / 8;
	efa_fill(far->mem, SZ_64K, 1);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, post(far, far->pair->out + i * SZ_16K, true, i * SZ_16K,
					   SZ_16K, 0, i + 1), 0);
	rdm_run(far->pair);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&far->pair->end[0], 0), 4U);
	KUNIT_EXPECT_TRUE(test, efa_filled(far->pair->out, SZ_64K, 1));
	rdm_expect_whole(test, far->pair);
}

/* --- data --- */

static void expect_told(struct far *far, u64 value, size_t len, fi_addr_t src)
{
	struct rdm_comp comp = rdm_read(&far->pair->end[1]);

	KUNIT_EXPECT_EQ(far->test, comp.ret, 1);
	KUNIT_EXPECT_EQ(far->test, comp.entry.flags,
			FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	KUNIT_EXPECT_EQ(far->test, comp.entry.data, value);
	KUNIT_EXPECT_EQ(far->test, comp.entry.len, len);
	KUNIT_EXPECT_EQ(far->test, comp.src, src);
}

/* The device can do some writes with data; the others go by packets. */
static void rdma_data(struct kunit *test)
{
	struct far *far = rdma_new(test);
	const fi_addr_t src = far->pair->end[1].peer;
	struct kefa_rpeer *peer = far_peer(&far->pair->end[0]);
	u64 asked = requests(far);

	efa_fill(far->pair->out, 5000, 1);
	KUNIT_EXPECT_EQ(test, post(far, far->pair->out, false, 3, 5000, FI_REMOTE_CQ_DATA, 77), 0);
	KUNIT_EXPECT_EQ(test, post(far, far->pair->out, false, 3, 0, FI_REMOTE_CQ_DATA, 78), 0);
	rdm_run(far->pair);
	KUNIT_EXPECT_TRUE(test, efa_filled(far->mem + 3, 5000, 1));
	rdm_expect(test, &far->pair->end[0], 77, 5000);
	rdm_expect(test, &far->pair->end[0], 78, 0);
	/* The device doesn't report the length. */
	expect_told(far, 77, 0, src);
	expect_told(far, 78, 0, src);
	KUNIT_EXPECT_EQ(test, requests(far), asked);
	/* More than 32 bits. */
	KUNIT_EXPECT_EQ(test, post(far, far->pair->out, false, 3, 50, FI_REMOTE_CQ_DATA,
				   1LL << 32), 0);
	rdm_run(far->pair);
	KUNIT_EXPECT_EQ(test, requests(far), ++asked);
	expect_told(far, 1ULL << 32, 50, src);
	/* Memory that takes several work requests. */
	KUNIT_EXPECT_EQ(test, post(far, far->mem + SZ_64K, false, 3, 2 * PAGE_SIZE,
				   FI_REMOTE_CQ_DATA, 5), 0);
	rdm_run(far->pair);
	KUNIT_EXPECT_EQ(test, requests(far), ++asked);
	expect_told(far, 5, 2 * PAGE_SIZE, src);
	/* A peer that takes such writes without a receive, which kOFI can't do. */
	peer->features |= KEFA_FEATURE_UNSOLICITED_WRITE_RECV;
	KUNIT_EXPECT_EQ(test, post(far, far->pair->out, false, 3, 50, FI_REMOTE_CQ_DATA, 6), 0);
	rdm_run(far->pair);
	KUNIT_EXPECT_EQ(test, requests(far), ++asked);
	expect_told(far, 6, 50, src);
	KUNIT_EXPECT_EQ(test, post(far, far->pair->out, false, 3, 50, 0, 7), 0);
	rdm_run(far->pair);
	KUNIT_EXPECT_EQ(test, requests(far), asked);
	peer->features &= ~KEFA_FEATURE_RDMA_WRITE;
	KUNIT_EXPECT_EQ(test, post(far, far->pair->out, false, 3, 50, 0, 8), 0);
	rdm_run(far->pair);
	KUNIT_EXPECT_EQ(test, requests(far), ++asked);
	rdm_read_all(&far->pair->end[0], 0);
	rdm_expect_whole(test, far->pair);
}

/* A write with data meets a peer without a receive, and is posted again. */
static void rdma_not_ready(struct kunit *test)
{
	struct far *far = rdma_new(test);
	struct efake_qp *qp = far->pair->end[0].qp;
	unsigned int i;

	efa_fill(far->pair->out, 100, 3);
	KUNIT_EXPECT_EQ(test, post(far, far->pair->out, false, 0, 100, FI_REMOTE_CQ_DATA, 9), 0);
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_TRUE(test, kofi_soon(efake_sent(qp, 0)));
		KUNIT_EXPECT_EQ(test, efake_sent(qp, 0)->opcode, IB_WR_RDMA_WRITE_WITH_IMM);
		KUNIT_EXPECT_EQ(test, efake_sent(qp, 0)->imm, 9U);
		efake_wr_done(efake_sent(qp, 0), KEFA_STATUS_RNR);
		efake_settle_all();
		rdm_expect_nothing(test, &far->pair->end[0]);
	}
	rdm_run(far->pair);
	rdm_expect(test, &far->pair->end[0], 9, 100);
	expect_told(far, 9, 0, far->pair->end[1].peer);
	KUNIT_EXPECT_TRUE(test, efa_filled(far->mem, 100, 3));
	KUNIT_EXPECT_EQ(test, first(far)->stats.deaths, 0ULL);
	rdm_expect_whole(test, far->pair);
}

/* Have the device of the second endpoint report a write with data. */
static void written(struct far *far, u32 value, u32 qpn)
{
	const struct kefa_wc wc = {
		.write = true, .has_imm = true, .imm = value, .src_qpn = qpn, .slid = RDM_SLID,
	};

	efake_recv_done(efake_recv(far->pair->end[1].qp, 0), &wc);
	efake_settle_all();
}

static void rdma_told(struct kunit *test)
{
	struct far *far = rdma_new(test);
	const u32 qpn = far->pair->end[0].name.qpn;
	DECLARE_BITMAP(seen, KEFA_CQ_RESERVE + 20) = { };
	struct rdm_comp comp;
	unsigned int i;

	written(far, 1, qpn);
	written(far, 2, qpn + 100);
	expect_told(far, 1, 0, far->pair->end[1].peer);
	expect_told(far, 2, 0, FI_ADDR_NOTAVAIL);
	/* Without room in the queue they wait, without a receive buffer. */
	for (i = 0; i < KEFA_CQ_RESERVE + 20; i++)
		written(far, i, qpn);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.waited, 20ULL);
	KUNIT_EXPECT_LE(test, far->rdm->kept, 20ULL * 256);
	for (i = 0; i < KEFA_CQ_RESERVE + 20; i++) {
		comp = rdm_read(&far->pair->end[1]);
		KUNIT_ASSERT_EQ(test, comp.ret, 1);
		KUNIT_ASSERT_LT(test, comp.entry.data, KEFA_CQ_RESERVE + 20ULL);
		KUNIT_EXPECT_FALSE(test, test_and_set_bit(comp.entry.data, seen));
		KUNIT_EXPECT_EQ(test, comp.src, far->pair->end[1].peer);
		efake_settle_all();
	}
	/* An endpoint that can't be written to ignores them. */
	far->rdm->ep.caps &= ~FI_REMOTE_WRITE;
	written(far, 3, qpn);
	far->rdm->ep.caps |= FI_REMOTE_WRITE;
	rdm_expect_nothing(test, &far->pair->end[1]);
	rdm_expect_whole(test, far->pair);
}

/* --- errors --- */

/* The peer's device refuses one part: the operation fails when the others have ended. */
static void rdma_refused(struct kunit *test)
{
	struct far *far = rdma_new(test);
	struct efake_qp *qp = far->pair->end[0].qp;
	unsigned int read, n;

	first(far)->lim.read_segment = PAGE_SIZE;
	for (read = 0; read < 2; read++) {
		KUNIT_EXPECT_EQ(test, post(far, far->pair->out, read, 0, 12 * PAGE_SIZE, 0, 4), 0);
		efake_settle_all();
		n = qp->nsent;
		KUNIT_EXPECT_EQ(test, n, (u32)KEFA_TURN);
		efake_wr_done(efake_sent(qp, 3), 7);
		efake_settle_all();
		rdm_expect_nothing(test, &far->pair->end[0]);
		/* No further part is posted. */
		KUNIT_EXPECT_EQ(test, qp->nsent, n - 1);
		rdm_finish_sent(far->pair, 0, 0);
		rdm_expect_error(test, &far->pair->end[0], 4, EACCES);
		rdm_expect_nothing(test, &far->pair->end[0]);
	}
	KUNIT_EXPECT_EQ(test, first(far)->stats.deaths, 0ULL);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(far->pair->end[0].far), 2ULL);
	rdm_expect_whole(test, far->pair);
}

/* Memory that the device can't reach is refused; it isn't tried again and again. */
static void rdma_unreachable(struct kunit *test)
{
	struct far *far = rdma_new(test);
	/* The kernel has no memory there. */
	u8 *nowhere = (u8 *)PAGE_SIZE;
	struct kvec iov[3] = {
		{ far->pair->out, 100 }, { far->pair->out + 5000, 100 }, { nowhere, 100 },
	};
	const struct fi_rma_iov rma = far_piece(far, 0, 300);
	struct fi_msg_rma msg = {
		.addr = far->pair->end[0].peer, .rma_iov = &rma, .rma_iov_count = 1,
		.context = (void *)6,
	};

	KUNIT_EXPECT_EQ(test, post(far, nowhere, false, 0, 100, 0, 5), -EINVAL);
	/* The first part of this one can be posted. */
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, iov, 3, 300);
	KUNIT_EXPECT_EQ(test, fi_writemsg(far->pair->end[0].ep, &msg, FI_COMPLETION), 0);
	rdm_run(far->pair);
	rdm_expect_error(test, &far->pair->end[0], 6, EINVAL);
	KUNIT_EXPECT_EQ(test, first(far)->stats.deaths, 0ULL);
	rdm_expect_whole(test, far->pair);
}

enum ending { DIES, REMOVED, CLOSES, GOES };

/* The operation has parts with the device, and others to post. */
static void rdma_ends(struct kunit *test)
{
	unsigned int how, read;
	struct rdm_comp comp;

	for (read = 0; read < 2; read++) {
		for (how = DIES; how <= GOES; how++) {
			struct far *far = rdma_new(test);
			struct rdm_end *end = &far->pair->end[0];

			first(far)->lim.read_segment = PAGE_SIZE;
			KUNIT_EXPECT_EQ(test, post(far, far->pair->out, read, 0, 12 * PAGE_SIZE,
						   0, 4), 0);
			if (how == DIES)
				efake_wr_done(efake_sent(end->qp, 2), 9);
			else if (how == REMOVED)
				KUNIT_EXPECT_EQ(test, fi_av_remove(end->av, &end->peer, 1, 0), 0);
			else if (how == CLOSES)
				EFA_CLOSE(test, end->ep);
			else
				efake_remove(far->pair->fake);
			efake_settle_all();
			if (how < CLOSES) {
				/* The device may still access the memory. */
				rdm_expect_nothing(test, end);
				rdm_finish_sent(far->pair, 0, 0);
			}
			comp = rdm_read(end);
			KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
			KUNIT_EXPECT_EQ(test, (long)comp.error.op_context, 4L);
			KUNIT_EXPECT_NE(test, rdm_read(end).ret, 1);
			if (how < CLOSES)
				rdm_expect_whole(test, far->pair);
			far_end(far);
		}
	}
}

/* DMA space is lacking for the first part, or a later one. */
static void rdma_no_dma(struct kunit *test)
{
	struct far *far = rdma_new(test);
	unsigned int nth;

	first(far)->lim.read_segment = PAGE_SIZE;
	for (nth = 1; nth < 12; nth += 2) {
		efa_fill(far->pair->out, 10 * PAGE_SIZE, nth);
		efake_fail(far->pair->fake, EFAKE_DMA_MAP, nth, -ENOMEM);
		KUNIT_EXPECT_EQ(test, post(far, far->pair->out, false, 0, 10 * PAGE_SIZE, 0, 4), 0);
		KUNIT_EXPECT_TRUE(test, kofi_soon((rdm_run(far->pair),
						   !first(far)->rops.used)));
		rdm_expect(test, &far->pair->end[0], 4, 10 * PAGE_SIZE);
		KUNIT_EXPECT_TRUE(test, efa_filled(far->mem, 10 * PAGE_SIZE, nth));
	}
	rdm_expect_whole(test, far->pair);
}

static struct kunit_case rdma_cases[] = {
	KUNIT_CASE(rdma_sizes),
	KUNIT_CASE(rdma_pieces),
	KUNIT_CASE(rdma_many),
	KUNIT_CASE(rdma_first),
	KUNIT_CASE(rdma_share),
	KUNIT_CASE(rdma_data),
	KUNIT_CASE(rdma_not_ready),
	KUNIT_CASE(rdma_told),
	KUNIT_CASE(rdma_refused),
	KUNIT_CASE(rdma_unreachable),
	KUNIT_CASE(rdma_ends),
	KUNIT_CASE(rdma_no_dma),
	{}
};

static struct kunit_suite rdma_suite = {
	.name		= "kefa_rdm_rdma",
	.test_cases	= rdma_cases,
};

kunit_test_suite(rdma_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, reads and writes by the device");
MODULE_LICENSE("Dual BSD/GPL");
