// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The hardware's format, byte by byte: send queue entries of a host, receives of several
 * descriptors, completions of both sizes, phases and overruns. The tests use byte offsets
 * instead of the structures under test.
 */
#include "efasim_engine_pair.c"

#define LKEY		0x00a12345

static void put(u64 value, void *to, int bytes)
{
	u8 *d = to;

	for (; bytes--; value >>= 8)
		*d++ = value;
}

static void put16(u16 value, void *d)
{
	put(value, d, 2);
}

static void put32(u32 value, void *d)
{
	put(value, d, 4);
}

static void put64(u64 value, void *d)
{
	put(value, d, 8);
}

static u32 get16(const u8 *d)
{
	return d[0] | d[1] << 8;
}

static u32 get32(const u8 *d)
{
	return get16(d) | get16(d + 2) << 16;
}

/* Build the common part of a send queue entry; the rest is zero. */
static void begin(u8 *d, u8 op, u16 length)
{
	memset(d, 0, 64);
	put16(0xbeef, d);		/* req_id */
	d[2] = 0x80 | op;			/* meta_desc, op_type */
	d[3] = 0x1c;				/* first, last, comp_req */
	put16(0x1234, d + 4);	/* dest_qp_num */
	put16(length, d + 6);
	put16(0x0a0b, d + 12);	/* ah */
	put32(0x5566, d + 16);	/* qkey */
}

static void buf_at(u8 *d, u32 length, u32 key, u64 addr)
{
	put32(length, d);
	put32(key, d + 4);
	put64(addr, d + 8);
}

static enum efasim_status parse(const u8 *d, struct efasim_wqe *wqe)
{
	struct efasim_tx_wqe desc;

	memcpy(&desc, d, sizeof(desc));
	return efasim_hw_parse_wqe(&desc, wqe);
}

static void hwfmt_send(struct kunit *test)
{
	struct efasim_wqe wqe;
	u8 d[64];

	begin(d, EFASIM_OP_SEND, 2);
	d[2] |= 0x10;				/* has_imm */
	put32(0x01020304, d + 8);
	buf_at(d + 32, 70000, 0xff000000 | LKEY, 0x123456789abcULL);
	buf_at(d + 48, 5, 7, 9);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_OK);
	KUNIT_EXPECT_EQ(test, wqe.op, EFASIM_OP_SEND);
	KUNIT_EXPECT_EQ(test, wqe.req_id, 0xbeef);
	KUNIT_EXPECT_EQ(test, wqe.dest_qpn, 0x1234);
	KUNIT_EXPECT_EQ(test, wqe.ah, 0x0a0b);
	KUNIT_EXPECT_EQ(test, wqe.qkey, 0x5566);
	KUNIT_EXPECT_TRUE(test, wqe.has_imm);
	KUNIT_EXPECT_EQ(test, wqe.imm, 0x01020304);
	KUNIT_EXPECT_EQ(test, wqe.num_sge, 2);
	KUNIT_EXPECT_EQ(test, wqe.sge[0].length, 70000);
	KUNIT_EXPECT_EQ(test, wqe.sge[0].lkey, LKEY);
	KUNIT_EXPECT_EQ(test, wqe.sge[0].addr, 0x123456789abcULL);
	KUNIT_EXPECT_EQ(test, wqe.sge[1].addr, 9);
	begin(d, EFASIM_OP_SEND, 3);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_LOCAL_BAD_LENGTH);
}

static void hwfmt_inline(struct kunit *test)
{
	struct efasim_wqe wqe;
	u8 d[64];

	begin(d, EFASIM_OP_SEND, 32);
	d[2] |= 0x20;				/* inline_msg */
	memset(d + 32, 0x5a, 32);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_OK);
	KUNIT_EXPECT_TRUE(test, wqe.is_inline);
	KUNIT_EXPECT_EQ(test, wqe.in.length, 32);
	KUNIT_EXPECT_NULL(test, memchr_inv(wqe.in.data, 0x5a, 32));
	put16(33, d + 6);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_LOCAL_BAD_LENGTH);
}

static void hwfmt_rdma(struct kunit *test)
{
	struct efasim_wqe wqe;
	u8 d[64];

	begin(d, EFASIM_OP_WRITE, 1);
	buf_at(d + 32, 100, 0x00f00001, 0xaabbccddeeffULL);
	buf_at(d + 48, 100, LKEY, 0x1000);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_OK);
	KUNIT_EXPECT_EQ(test, wqe.rdma.rkey, 0x00f00001);
	KUNIT_EXPECT_EQ(test, wqe.rdma.addr, 0xaabbccddeeffULL);
	KUNIT_EXPECT_EQ(test, wqe.rdma.local.lkey, LKEY);
	KUNIT_EXPECT_EQ(test, wqe.rdma.local.addr, 0x1000);
	KUNIT_EXPECT_EQ(test, wqe.rdma.local.length, 100);
	put32(101, d + 32);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_LOCAL_BAD_LENGTH);
	begin(d, EFASIM_OP_READ, 0);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_LOCAL_BAD_LENGTH);
	begin(d, EFASIM_OP_READ, 1);
	d[2] |= 0x10;				/* has_imm */
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_UNSUPPORTED_OP);
}

static void reg_at(u8 *d, u64 iova, u64 length, u8 shift, u8 mode)
{
	begin(d, EFASIM_OP_FAST_REG, 0);
	put32(0x00300007, d + 32);
	d[36] = 7;				/* permissions */
	d[37] = shift | mode << 5;
	put64(iova, d + 40);
	put64(length, d + 48);
	put64(0x77000, d + 56);
}

static void hwfmt_reg(struct kunit *test)
{
	struct efasim_wqe wqe;
	u8 d[64];

	reg_at(d, 0x10fff, 2, 12, 1);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_OK);
	KUNIT_EXPECT_EQ(test, wqe.reg.lkey, 0x00300007);
	KUNIT_EXPECT_EQ(test, wqe.reg.access, 7);
	KUNIT_EXPECT_EQ(test, wqe.reg.page_shift, 12);
	KUNIT_EXPECT_EQ(test, wqe.reg.iova, 0x10fff);
	KUNIT_EXPECT_EQ(test, wqe.reg.pbl, 0x77000);
	KUNIT_EXPECT_EQ(test, wqe.reg.npages, 2);
	KUNIT_EXPECT_FALSE(test, wqe.reg.pbl_inline);
	/* An entry has room for one page only. */
	reg_at(d, 0x10fff, 2, 12, 0);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_UNSUPPORTED_OP);
	reg_at(d, 0x10000, 4096, 12, 0);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_OK);
	KUNIT_EXPECT_TRUE(test, wqe.reg.pbl_inline);
	KUNIT_EXPECT_EQ(test, wqe.reg.npages, 1);
	/* A range with a huge number of pages doesn't overflow the count. */
	reg_at(d, U64_MAX, U64_MAX, 12, 1);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_OK);
	KUNIT_EXPECT_EQ(test, wqe.reg.npages, U32_MAX);
	reg_at(d, 0, 1, 12, 2);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_UNSUPPORTED_OP);

	begin(d, EFASIM_OP_FAST_INV, 0);
	put32(LKEY, d + 32);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_OK);
	KUNIT_EXPECT_EQ(test, wqe.inv_lkey, LKEY);
}

/* An invalid entry still has the id for its completion. */
static void hwfmt_malformed(struct kunit *test)
{
	struct efasim_wqe wqe;
	u8 d[64];
	int bit;

	for (bit = 2; bit <= 4; bit++) {
		begin(d, EFASIM_OP_SEND, 0);
		d[3] &= ~BIT(bit);
		KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_QP_INTERNAL);
		KUNIT_EXPECT_EQ(test, wqe.req_id, 0xbeef);
	}
	begin(d, EFASIM_OP_SEND, 0);
	d[2] &= ~0x80;
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_QP_INTERNAL);
	begin(d, EFASIM_OP_SEND, 0);
	d[2] |= 0x40;				/* meta_extension */
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_QP_INTERNAL);
	begin(d, 9, 0);
	KUNIT_EXPECT_EQ(test, parse(d, &wqe), EFASIM_UNSUPPORTED_OP);
	KUNIT_EXPECT_EQ(test, wqe.op, 9);
}

/* An invalid entry completes with an error, and doesn't affect other operations. */
static void hwfmt_malformed_completes(struct kunit *test)
{
	struct pair *p = test->priv;
	u32 i;

	for (i = 0; i < 3 * DEPTH; i++) {
		begin((u8 *)efasim_sq_slot(p->a.qp, i), i % 16, 77);
		efasim_sq_doorbell(p->a.qp, i + 1);
		run(&p->a);
	}
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 3 * DEPTH);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_cq_overflow), 0);
	post_recvs(&p->b, 1);
	post(&p->a, &p->b, 0, 1);
	run(&p->a);
	run(&p->b);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_OK);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, 1);
}

/* With more entries than operations, entries wait, and none is lost. */
static void hwfmt_ids_repeat(struct kunit *test)
{
	struct pair *p = test->priv;
	u32 i;

	/* All have the same request id, which the device doesn't interpret. */
	post(&p->a, &p->b, 0, DEPTH);
	for (i = 0; i < DEPTH; i++)
		put16(42, efasim_sq_slot(p->a.qp, i));
	run(&p->a);
	post(&p->a, &p->b, DEPTH, 8);
	run(&p->a);
	KUNIT_EXPECT_TRUE(test, list_empty(&p->a.qp->idle));
	KUNIT_EXPECT_EQ(test, p->a.qp->sq_cons, DEPTH);
	for (i = 0; i < 100 && p->a.cq.sent < DEPTH + 8; i++) {
		post_recvs(&p->b, min_t(u32, 16, DEPTH + 8 - p->b.qp->rq_prod));
		run(&p->b);
		run(&p->a);
		expect_sane(test, &p->a);
		usleep_range(1000, 2000);
	}
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, DEPTH + 8);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, DEPTH + 8);
	KUNIT_EXPECT_EQ(test, p->b.cq.doubled, 0);
}

static void put_desc(struct end *end, u16 at, u16 id, u16 length, u64 addr,
		     u32 ctrl)
{
	u8 *d = (u8 *)&end->rq[at % DEPTH];

	put64(addr, d);
	put16(id, d + 8);
	put16(length, d + 10);
	put32(ctrl, d + 12);
}

static bool peek(struct end *end, struct efasim_rqe *rqe)
{
	bool ok;

	mutex_lock(&end->dev.lock);
	ok = efasim_dev_peek_rq(end->qp, rqe);
	mutex_unlock(&end->dev.lock);
	return ok;
}

/* A receive is complete with its last descriptor; lengths have 16 bits. */
static void hwfmt_receive(struct kunit *test)
{
	const u32 first = BIT(30), last = BIT(31);
	struct pair *p = test->priv;
	struct efasim_qp *qp = p->a.qp;
	struct efasim_rqe rqe;

	KUNIT_EXPECT_FALSE(test, peek(&p->a, &rqe));
	qp->rq_cons = 0xffff;
	qp->rq_prod = 0xffff;
	put_desc(&p->a, 0xffff, 0xcafe, 0xfff0, 0x123456789000ULL, first | LKEY);
	put_desc(&p->a, 0, 0, 7, 0x2000, last | 3);
	efasim_rq_doorbell(qp, 0);
	KUNIT_EXPECT_FALSE(test, peek(&p->a, &rqe));
	efasim_rq_doorbell(qp, 1);
	KUNIT_EXPECT_TRUE(test, peek(&p->a, &rqe));
	KUNIT_EXPECT_EQ(test, rqe.req_id, 0xcafe);
	KUNIT_EXPECT_EQ(test, rqe.num_sge, 2);
	KUNIT_EXPECT_EQ(test, rqe.sge[0].length, 0xfff0);
	KUNIT_EXPECT_EQ(test, rqe.sge[0].addr, 0x123456789000ULL);
	KUNIT_EXPECT_EQ(test, rqe.sge[0].lkey, LKEY);
	KUNIT_EXPECT_EQ(test, rqe.sge[1].length, 7);
	KUNIT_EXPECT_EQ(test, rqe.sge[1].lkey, 3);
	/* A receive without a first or a last descriptor. */
	put_desc(&p->a, 0xffff, 0, 1, 0, last);
	KUNIT_EXPECT_FALSE(test, peek(&p->a, &rqe));
	put_desc(&p->a, 0xffff, 0, 1, 0, first);
	put_desc(&p->a, 0, 0, 1, 0, first | last);
	KUNIT_EXPECT_FALSE(test, peek(&p->a, &rqe));
}

#define SMALL		4

struct cq_shape {
	const char *name;
	u32 bytes;
	u32 subs;
};

static const struct cq_shape cq_shapes[] = {
	{ "16 bytes", 16, 1 }, { "32 bytes", 32, 1 },
	{ "16 bytes, two rings", 16, 2 }, { "32 bytes, two rings", 32, 2 },
};

static void cq_shape_name(const struct cq_shape *shape, char *desc)
{
	strscpy(desc, shape->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(cq_shape, cq_shapes, cq_shape_name);

static void write_cqe(struct end *end, struct efasim_cq *cq,
		      const struct efasim_cqe *cqe)
{
	mutex_lock(&end->dev.lock);
	efasim_dev_cqe(cq, cqe);
	mutex_unlock(&end->dev.lock);
}

static void hwfmt_completion(struct kunit *test)
{
	const struct efasim_cqe sent = {
		.qpn = 0x8001, .req_id = 0x1122, .status = 9, .has_imm = true,
		.op = EFASIM_OP_READ, .length = 77, .serial = 5,
	};
	const struct efasim_cqe got = {
		.qpn = 0x8001, .req_id = 0x3344, .op = EFASIM_OP_WRITE,
		.recv = true, .has_imm = true, .imm = 0xa1b2c3d4, .ah = 0x0607,
		.src_qpn = 0x0809, .length = 0x12345, .serial = 6,
	};
	const struct cq_shape *shape = test->param_value;
	u32 bytes = shape->bytes, all = EFASIM_MAX_SUBS * SMALL * bytes;
	/* The receive's entry, and how many the ring of sends has before the loop. */
	u32 recv = shape->subs == 1 ? 1 : SMALL, first = 3 - shape->subs;
	struct pair *p = test->priv;
	u8 *ring = kunit_kzalloc(test, all + 2, GFP_KERNEL), *d;
	struct efasim_cq_params params = {
		.depth = SMALL, .entry_size = bytes,
	};
	struct efasim_cq *cq;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, ring);
	params.addr = virt_to_phys(ring);
	p->a.dev.limits.subs = shape->subs;
	cq = efasim_adm_create_cq(&p->a.dev, &params);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cq));

	write_cqe(&p->a, cq, &sent);
	KUNIT_EXPECT_EQ(test, get16(ring), 0x1122);
	KUNIT_EXPECT_EQ(test, ring[2], 9);
	KUNIT_EXPECT_EQ(test, ring[3], 1 | 1 << 1 | EFASIM_OP_READ << 4);
	KUNIT_EXPECT_EQ(test, get16(ring + 4), 0x8001);
	KUNIT_EXPECT_EQ(test, efasim_cq_serial(cq, 0), 5);

	/* A ring of receive completions follows that of sends. */
	write_cqe(&p->a, cq, &got);
	d = ring + recv * bytes;
	KUNIT_EXPECT_EQ(test, get16(d), 0x3344);
	KUNIT_EXPECT_EQ(test, d[2], 0);
	KUNIT_EXPECT_EQ(test, d[3], 1 | 2 << 1 | 1 << 3 | EFASIM_OP_WRITE << 4);
	KUNIT_EXPECT_EQ(test, get16(d + 6), 0x2345);
	KUNIT_EXPECT_EQ(test, get16(d + 8), 0x0607);
	KUNIT_EXPECT_EQ(test, get16(d + 10), 0x0809);
	KUNIT_EXPECT_EQ(test, get32(d + 12), 0xa1b2c3d4);
	/* Only large entries have the upper half of the length. */
	KUNIT_EXPECT_EQ(test, get16(d + 16), bytes == 32 ? 1 : 0);
	KUNIT_EXPECT_EQ(test, efasim_cq_serial(cq, recv), 6);

	/* The phase changes with each pass over the ring. */
	for (i = first; i < 3 * SMALL; i++) {
		efasim_cq_consumed(cq, EFASIM_SUB_SEND, i);
		write_cqe(&p->a, cq, &sent);
		KUNIT_EXPECT_EQ(test, ring[i % SMALL * bytes + 3] & 1,
				!(i / SMALL % 2));
	}
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_cq_overflow), 0);
	for (i = 0; i < SMALL; i++)
		write_cqe(&p->a, cq, &sent);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_cq_overflow), 1);
	KUNIT_EXPECT_EQ(test, cq->sub[1].prod, shape->subs - 1);
	KUNIT_EXPECT_EQ(test, efasim_adm_destroy_cq(cq), 0);
}

static int shape_of_cq(struct efasim_dev *dev, u32 depth, u32 entry_size)
{
	const struct efasim_cq_params params = {
		.depth = depth, .entry_size = entry_size,
	};

	return PTR_ERR_OR_ZERO(efasim_adm_create_cq(dev, &params));
}

/* A queue in use can't be destroyed, and a queue with invalid attributes not created. */
static void hwfmt_queues(struct kunit *test)
{
	struct pair *p = test->priv;

	KUNIT_EXPECT_EQ(test, efasim_adm_destroy_cq(p->a.hw_cq), -EINVAL);
	KUNIT_EXPECT_EQ(test, shape_of_cq(&p->a.dev, 3, 16), -EINVAL);
	KUNIT_EXPECT_EQ(test, shape_of_cq(&p->a.dev, 4, 8), -EINVAL);
	KUNIT_EXPECT_EQ(test, shape_of_cq(&p->a.dev, 2 * CQ_DEPTH, 16), -EINVAL);
	KUNIT_EXPECT_EQ(test, shape_of_cq(&p->a.dev, CQ_DEPTH, 32), 0);
}

/* The low bits of a number are an index, the others change when indices repeat. */
static void hwfmt_numbers(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_qp_params params = {
		.pdn = p->a.pdn, .sq_depth = 1, .rq_depth = 1,
		.send_cq = p->a.hw_cq, .recv_cq = p->a.hw_cq,
	};
	u32 i, last = 0, mask = roundup_pow_of_two(limits.max_qp) - 1;

	for (i = 0; i < 3 * limits.max_qp; i++) {
		struct efasim_qp *qp = efasim_adm_create_qp(&p->a.dev, &params);

		KUNIT_ASSERT_FALSE(test, IS_ERR(qp));
		KUNIT_EXPECT_NE(test, qp->qpn, last);
		KUNIT_EXPECT_NE(test, qp->qpn & mask, p->a.qp->qpn & mask);
		KUNIT_EXPECT_LE(test, qp->qpn, 0xffff);
		last = qp->qpn;
		KUNIT_EXPECT_EQ(test, efasim_adm_destroy_qp(qp), 0);
		mutex_lock(&p->a.dev.lock);
		KUNIT_EXPECT_NULL(test, efasim_dev_find_qp(&p->a.dev, last));
		mutex_unlock(&p->a.dev.lock);
	}
	KUNIT_EXPECT_GT(test, last >> ilog2(mask + 1), 2);
}

/* Receive that rings its doorbell when the device reads the doorbells for the second time. */
static struct late {
	struct end	*end;
	unsigned int	fetches;
} late;

static void fetch_late(struct efasim_dev *dev)
{
	if (++late.fetches == 2)
		post_recvs(late.end, 1);
}

/*
 * A receive is posted before its message is sent, but after the worker has read the doorbells,
 * which are only memory. The message must find it.
 */
static void hwfmt_receive_in_time(struct kunit *test)
{
	static const struct efasim_fe_ops ops = { .event = no_event, .fetch = fetch_late };
	struct pair *p = test->priv;

	late = (struct late) { .end = &p->b };
	p->b.dev.ops = &ops;
	post(&p->a, &p->b, 0, 1);
	run(&p->a);
	mutex_lock(&p->b.dev.lock);
	efasim_dev_run(&p->b.dev);
	mutex_unlock(&p->b.dev.lock);
	drain(&p->b);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, 1U);
	KUNIT_EXPECT_EQ(test, stat(&p->b, EFASIM_S_rnr_nak_sent), 0ULL);
}

static struct kunit_case hwfmt_cases[] = {
	KUNIT_CASE(hwfmt_send),
	KUNIT_CASE(hwfmt_inline),
	KUNIT_CASE(hwfmt_rdma),
	KUNIT_CASE(hwfmt_reg),
	KUNIT_CASE(hwfmt_malformed),
	KUNIT_CASE(hwfmt_malformed_completes),
	KUNIT_CASE_SLOW(hwfmt_ids_repeat),
	KUNIT_CASE(hwfmt_receive),
	KUNIT_CASE(hwfmt_receive_in_time),
	KUNIT_CASE_PARAM(hwfmt_completion, cq_shape_gen_params),
	KUNIT_CASE(hwfmt_queues),
	KUNIT_CASE(hwfmt_numbers),
	{ }
};

static struct kunit_suite hwfmt_suite = {
	.name = "efasim_hwfmt",
	.suite_init = engine_suite_init,
	.suite_exit = engine_suite_exit,
	.init = engine_init,
	.exit = close_pair,
	.test_cases = hwfmt_cases,
};

kunit_test_suite(hwfmt_suite);

MODULE_DESCRIPTION("KUnit tests of the software EFA device's ring formats");
MODULE_LICENSE("Dual BSD/GPL");
