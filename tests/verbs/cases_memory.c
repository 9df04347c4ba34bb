// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory: RDMA, keys and their generations, and refused accesses.
 */
#include <linux/delay.h>

#include "conformance.h"

#define WAIT_MS		10000
#define PAGES		8
#define REMOTE		(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_WRITE)

/* Run one RDMA to completion and return the device's status. */
static int rdma(struct ct *ct, const struct req *req, struct ib_wc *wc)
{
	if (!EXPECT_EQ(ct, ep_post(&ct->a, req), 0) ||
	    !EXPECT(ct, ep_wait(&ct->a, wc, WAIT_MS)))
		return -1;
	return wc->vendor_err;
}

static int rdma_at(struct ct *ct, enum ib_wr_opcode op, struct region *r,
		   u32 off, u32 len)
{
	struct ib_wc wc;

	return rdma(ct, &(struct req) { .op = op, .len = len,
		.raddr = r->mr->iova + off, .rkey = r->mr->rkey }, &wc);
}

static bool open_region(struct ct *ct, struct region *r, unsigned int pages,
			int access)
{
	return EXPECT_EQ(ct, region_open(r, &ct->b, pages), 0) &&
	       EXPECT_EQ(ct, region_reg(r, access), 0);
}

static void rdma_read(struct ct *ct)
{
	u32 len = 3 * ct->a.mtu + 17;
	struct region r;
	struct ib_wc wc;

	if (open_region(ct, &r, PAGES, IB_ACCESS_REMOTE_READ)) {
		len = min(len, r.len);
		region_fill(&r, 6);
		EXPECT_EQ(ct, rdma(ct, &(struct req) {
			.op = IB_WR_RDMA_READ, .len = len, .off = EP_RX,
			.raddr = r.mr->iova, .rkey = r.mr->rkey }, &wc), 0);
		EXPECT_EQ(ct, wc.opcode, IB_WC_RDMA_READ);
		EXPECT(ct, ep_filled(&ct->a, EP_RX, len, 6));
	}
	region_close(&r);
}

static void rdma_write(struct ct *ct)
{
	u32 len = 3 * ct->a.mtu + 17;
	struct region r;
	struct ib_wc wc;

	if (open_region(ct, &r, PAGES, REMOTE)) {
		len = min_t(u32, len, r.len - 100);
		ep_fill(&ct->a, EP_TX, len, 2);
		EXPECT_EQ(ct, rdma(ct, &(struct req) {
			.op = IB_WR_RDMA_WRITE, .len = len,
			.raddr = r.mr->iova + 100, .rkey = r.mr->rkey },
			&wc), 0);
		EXPECT_EQ(ct, wc.opcode, IB_WC_RDMA_WRITE);
		EXPECT(ct, region_filled(&r, 100, len, 2));
		/* The target has no completion. */
		EXPECT(ct, !ep_wait(&ct->b, &wc, 50));
	}
	region_close(&r);
}

/* A write with immediate data consumes a receive, whose buffer isn't written. */
static void rdma_write_imm(struct ct *ct)
{
	u32 len = 2 * ct->a.mtu + 5;
	struct region r;
	struct ib_wc wc;

	if (open_region(ct, &r, PAGES, REMOTE)) {
		ep_fill(&ct->a, EP_TX, len, 2);
		ep_fill(&ct->b, EP_RX, 64, 99);
		EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 64, 0xcc), 0);
		EXPECT_EQ(ct, rdma(ct, &(struct req) {
			.op = IB_WR_RDMA_WRITE_WITH_IMM, .len = len,
			.imm = 0x01020304,
			.raddr = r.mr->iova, .rkey = r.mr->rkey }, &wc), 0);
		EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
		EXPECT_EQ(ct, wc.opcode, IB_WC_RECV_RDMA_WITH_IMM);
		/* The upper half is undefined. */
		EXPECT_EQ(ct, wc.byte_len & U16_MAX, len & U16_MAX);
		EXPECT_EQ(ct, wc.wr_id, 0xcc);
		EXPECT_EQ(ct, be32_to_cpu(wc.ex.imm_data), 0x01020304);
		EXPECT(ct, region_filled(&r, 0, len, 2));
		EXPECT(ct, ep_filled(&ct->b, EP_RX, 64, 99));
	}
	region_close(&r);
}

/*
 * A completion has the lower 16 bits of the length. Once the ring has wrapped, the driver
 * ORs bits of the next entry into the upper half.
 */
static void write_len_has_16_bits(struct ct *ct)
{
	struct region r;
	struct ib_wc wc;
	int i, right = 0;

	if (!open_region(ct, &r, 1, REMOTE))
		goto out;
	for (i = 0; i < 40 && !ct->failed; i++) {
		EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 8, i), 0);
		EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_WRITE_WITH_IMM, &r, 0,
				      200 + i), 0);
		EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
		EXPECT_EQ(ct, wc.byte_len & U16_MAX, 200 + i);
		right += wc.byte_len == 200 + i;
	}
	ct_printf("# %d of %d lengths are right as a whole\n", right, i);
out:
	region_close(&r);
}

static void write_imm_needs_a_receive(struct ct *ct)
{
	struct region r;
	struct ib_wc wc;

	if (open_region(ct, &r, 1, REMOTE))
		EXPECT_EQ(ct, rdma(ct, &(struct req) {
			.op = IB_WR_RDMA_WRITE_WITH_IMM, .len = 8,
			.raddr = r.mr->iova, .rkey = r.mr->rkey }, &wc),
			ST_RNR);
	region_close(&r);
}

static void rdma_of_nothing(struct ct *ct)
{
	struct region r;
	struct ib_wc wc;

	if (open_region(ct, &r, 1, REMOTE)) {
		EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_WRITE, &r, 0, 0), 0);
		EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_READ, &r, 0, 0), 0);
		EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 64, 1), 0);
		EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_WRITE_WITH_IMM, &r, 0, 0),
			  0);
		EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
		EXPECT_EQ(ct, wc.byte_len & U16_MAX, 0);
	}
	region_close(&r);
}

static void bad_rkey(struct ct *ct)
{
	struct region r;
	struct ib_wc wc;

	if (open_region(ct, &r, 1, REMOTE)) {
		EXPECT_EQ(ct, rdma(ct, &(struct req) {
			.op = IB_WR_RDMA_READ, .len = 8, .off = EP_RX,
			.raddr = r.mr->iova, .rkey = r.mr->rkey + 1 }, &wc),
			ST_BAD_ADDRESS);
		EXPECT_EQ(ct, wc.status, IB_WC_REM_ACCESS_ERR);
	}
	region_close(&r);
}

static void bad_bounds(struct ct *ct)
{
	struct region r;

	if (open_region(ct, &r, 1, REMOTE)) {
		EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_READ, &r, 1, PAGE_SIZE),
			  ST_BAD_ADDRESS);
		EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_WRITE, &r, -8, 8),
			  ST_BAD_ADDRESS);
		EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_WRITE, &r, PAGE_SIZE, 1),
			  ST_BAD_ADDRESS);
		EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_READ, &r, 0, PAGE_SIZE),
			  0);
	}
	region_close(&r);
}

static void access_is_checked(struct ct *ct)
{
	struct region r;

	if (open_region(ct, &r, 1, IB_ACCESS_REMOTE_READ))
		EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_WRITE, &r, 0, 8),
			  ST_BAD_ADDRESS);
	region_close(&r);
	if (open_region(ct, &r, 1, IB_ACCESS_LOCAL_WRITE |
			IB_ACCESS_REMOTE_WRITE))
		EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_READ, &r, 0, 8),
			  ST_BAD_ADDRESS);
	region_close(&r);
}

/* The local key of all memory isn't a remote key. */
static void dma_key_is_local(struct ct *ct)
{
	struct ib_wc wc;

	EXPECT_EQ(ct, rdma(ct, &(struct req) {
		.op = IB_WR_RDMA_READ, .len = 8, .off = EP_RX,
		.raddr = ct->b.dma, .rkey = ct->b.pd->local_dma_lkey }, &wc),
		ST_BAD_ADDRESS);
}

/*
 * The driver ignores the inline flag for RDMA: it passes the kernel virtual address to the
 * device as a DMA address.
 */
static void rdma_is_never_inline(struct ct *ct)
{
	struct region r;
	struct ib_wc wc;
	u8 data[8] = { };

	if (open_region(ct, &r, 1, REMOTE))
		EXPECT(ct, rdma(ct, &(struct req) {
			.op = IB_WR_RDMA_WRITE, .len = 8, .inl = data,
			.raddr = r.mr->iova, .rkey = r.mr->rkey }, &wc) != 0);
	region_close(&r);
}

/* RDMA needs a handle for the initiator at the target; a send doesn't. */
static void target_must_know_initiator(struct ct *ct)
{
	struct region r;
	struct ib_wc wc;

	if (open_region(ct, &r, 1, REMOTE)) {
		rdma_destroy_ah(ct->b.ah, RDMA_DESTROY_AH_SLEEPABLE);
		ct->b.ah = NULL;
		EXPECT_EQ(ct, rdma(ct, &(struct req) {
			.op = IB_WR_RDMA_READ, .len = 8, .off = EP_RX,
			.raddr = r.mr->iova, .rkey = r.mr->rkey }, &wc),
			ST_UNKNOWN_PEER);
		EXPECT_EQ(ct, wc.status, IB_WC_GENERAL_ERR);
		EXPECT_EQ(ct, ep_connect(&ct->b, &ct->a.gid), 0);
		EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_READ, &r, 0, 8), 0);
	}
	region_close(&r);
}

/* A key grants no access before REG_MR and none after LOCAL_INV. */
static void key_life(struct ct *ct)
{
	struct region r;

	if (!EXPECT_EQ(ct, region_open(&r, &ct->b, 2), 0))
		goto out;
	EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_READ, &r, 0, 8), ST_BAD_ADDRESS);
	EXPECT_EQ(ct, region_reg(&r, REMOTE), 0);
	EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_READ, &r, 0, 8), 0);
	EXPECT_EQ(ct, region_inv(&r), 0);
	EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_READ, &r, 0, 8), ST_BAD_ADDRESS);
	EXPECT(ct, region_inv(&r) != 0);
out:
	region_close(&r);
}

/* A key has four bits of generation: the fifteen previous keys grant no access. */
static void key_generations(struct ct *ct)
{
	struct region r;
	u32 first, old;
	int i;

	if (!open_region(ct, &r, 1, REMOTE))
		goto out;
	first = r.mr->rkey;
	for (i = 0; i < 16; i++) {
		struct ib_wc wc;

		old = r.mr->rkey;
		EXPECT_EQ(ct, region_inv(&r), 0);
		EXPECT_EQ(ct, region_map(&r), 0);
		EXPECT_EQ(ct, region_reg(&r, REMOTE), 0);
		EXPECT_EQ(ct, r.mr->lkey & EFA_MR_GEN_MASK,
			  r.mr->rkey & EFA_MR_GEN_MASK);
		EXPECT_EQ(ct, rdma(ct, &(struct req) {
			.op = IB_WR_RDMA_READ, .len = 8, .off = EP_RX,
			.raddr = r.mr->iova, .rkey = old }, &wc),
			ST_BAD_ADDRESS);
	}
	EXPECT_EQ(ct, r.mr->rkey, first);
	EXPECT_EQ(ct, rdma_at(ct, IB_WR_RDMA_READ, &r, 0, 8), 0);
out:
	region_close(&r);
}

/* Registering with the same generation twice in a row fails. */
static void key_must_advance(struct ct *ct)
{
	struct region r;
	struct ib_wc wc;

	if (open_region(ct, &r, 1, REMOTE)) {
		EXPECT_EQ(ct, region_inv(&r), 0);
		EXPECT_EQ(ct, region_post(&r, REMOTE), 0);
		EXPECT(ct, ep_wait(&ct->b, &wc, WAIT_MS));
		EXPECT(ct, wc.status != IB_WC_SUCCESS);
	}
	region_close(&r);
}

/* A registration and what is posted after it may complete in any order. */
static void reg_is_unordered(struct ct *ct)
{
	int i, overtaken = 0;
	struct region r;

	if (!open_region(ct, &r, 1, REMOTE))
		goto out;
	for (i = 0; i < 40 && !ct->failed; i++) {
		struct ib_wc first, second;

		EXPECT_EQ(ct, region_inv(&r), 0);
		efa_inc_fast_reg_key_gen(r.mr);
		EXPECT_EQ(ct, ep_recv(&ct->a, EP_RX, 8, 1), 0);
		EXPECT_EQ(ct, region_post(&r, REMOTE), 0);
		EXPECT_EQ(ct, ep_post(&ct->b, &(struct req) {
			.op = IB_WR_SEND, .len = 8 }), 0);
		EXPECT(ct, ep_wait(&ct->b, &first, WAIT_MS));
		EXPECT(ct, ep_wait(&ct->b, &second, WAIT_MS));
		EXPECT_EQ(ct, first.status, IB_WC_SUCCESS);
		EXPECT_EQ(ct, second.status, IB_WC_SUCCESS);
		EXPECT(ct, first.opcode != second.opcode);
		overtaken += first.opcode == IB_WC_SEND;
		EXPECT(ct, ep_wait(&ct->a, &first, WAIT_MS));
	}
	ct_printf("# %d of %d registrations overtaken\n", overtaken, i);
out:
	region_close(&r);
}

static void reg_live_refused(struct ct *ct)
{
	struct region r;

	if (open_region(ct, &r, 1, REMOTE))
		EXPECT(ct, region_reg(&r, REMOTE) != 0);
	region_close(&r);
}

/* The key of another PD of the same device is invalid. */
static void keys_belong_to_a_pd(struct ct *ct)
{
	struct region r;
	struct ib_wc wc;
	struct ep c;

	if (!EXPECT_EQ(ct, ep_open(&c, ct->dev_b, &ct->test->opts), 0) ||
	    !EXPECT_EQ(ct, ep_connect(&c, &ct->a.gid), 0))
		goto out;
	if (open_region(ct, &r, 1, REMOTE))
		EXPECT_EQ(ct, rdma(ct, &(struct req) {
			.op = IB_WR_RDMA_READ, .len = 8, .off = EP_RX,
			.qpn = c.qp->qp_num, .qkey = c.qkey,
			.raddr = r.mr->iova, .rkey = r.mr->rkey }, &wc),
			ST_BAD_ADDRESS);
	region_close(&r);
out:
	ep_close(&c);
}

const struct test_case memory_cases[] = {
	{ "rdma_read", rdma_read, BOTH },
	{ "rdma_write", rdma_write, BOTH },
	{ "rdma_write_imm", rdma_write_imm, BOTH },
	{ "write_len_has_16_bits", write_len_has_16_bits, DRIVER,
	  { .depth = 4 } },
	{ "write_imm_needs_a_receive", write_imm_needs_a_receive, DEVICE },
	{ "rdma_of_nothing", rdma_of_nothing, BOTH },
	{ "bad_rkey", bad_rkey, DEVICE },
	{ "bad_bounds", bad_bounds, DEVICE },
	{ "access_is_checked", access_is_checked, DEVICE },
	{ "dma_key_is_local", dma_key_is_local, DEVICE },
	{ "rdma_is_never_inline", rdma_is_never_inline, DRIVER,
	  { .inline_len = 32 }, .unsafe = true },
	{ "target_must_know_initiator", target_must_know_initiator, DEVICE,
	  .two_devices = true },
	{ "key_life", key_life, DEVICE },
	{ "key_generations", key_generations, DEVICE },
	{ "key_must_advance", key_must_advance, DEVICE },
	{ "reg_is_unordered", reg_is_unordered, DEVICE, { .rnr_retry = 7 } },
	{ "reg_live_refused", reg_live_refused, DEVICE },
	{ "keys_belong_to_a_pd", keys_belong_to_a_pd, DEVICE },
	{ }
};
