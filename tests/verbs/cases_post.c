// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting: requests that are refused at once, and their errors.
 */
#include "conformance.h"

static void unsignaled_refused(struct ct *ct)
{
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 8, .flags = -1 }), -EINVAL);
}

static void unsignaled_signal_all(struct ct *ct)
{
	struct ib_wc wc;

	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 8, 1), 0);
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 8, .flags = -1, .id = 7 }), 0);
	EXPECT(ct, ep_wait(&ct->a, &wc, 5000));
	EXPECT_EQ(ct, wc.wr_id, 7);
}

static void flags_refused(struct ct *ct)
{
	static const int flags[] = {
		IB_SEND_FENCE, IB_SEND_SOLICITED, IB_SEND_IP_CSUM,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++)
		EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
			.op = IB_WR_SEND, .len = 8,
			.flags = IB_SEND_SIGNALED | flags[i] }), -EINVAL);
}

static void opcodes_refused(struct ct *ct)
{
	static const enum ib_wr_opcode ops[] = {
		IB_WR_SEND_WITH_INV, IB_WR_ATOMIC_CMP_AND_SWP,
		IB_WR_ATOMIC_FETCH_AND_ADD, IB_WR_RDMA_READ_WITH_INV,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++)
		EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
			.op = ops[i], .len = 8 }), -EINVAL);
}

static void sge_limits(struct ct *ct)
{
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 9, .num_sge = 3 }), -EINVAL);
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_RDMA_WRITE, .len = 8, .num_sge = 2 }), -EINVAL);
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_RDMA_READ, .len = 8, .num_sge = 2 }), -EINVAL);
}

static void inline_limit(struct ct *ct)
{
	u8 data[33] = { };

	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 33, .inl = data }), -EINVAL);
}

static void rdma_without_sge(struct ct *ct)
{
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_RDMA_WRITE, .num_sge = -1 }), -EINVAL);
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_RDMA_READ, .num_sge = -1 }), -EINVAL);
}

static void ud_sends_only(struct ct *ct)
{
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_RDMA_WRITE, .len = 8 }), -EINVAL);
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_RDMA_READ, .len = 8 }), -EINVAL);
}

/* A send needs RTS or SQD; a receive any state but RESET and ERR. */
static void post_states(struct ct *ct)
{
	const struct req send = { .op = IB_WR_SEND, .len = 8 };

	EXPECT_EQ(ct, ep_post(&ct->a, &send), -EINVAL);
	EXPECT_EQ(ct, ep_recv(&ct->a, EP_RX, 8, 1), -EINVAL);
	EXPECT_EQ(ct, ep_modify(&ct->a, IB_QPS_INIT, 0), 0);
	EXPECT_EQ(ct, ep_post(&ct->a, &send), -EINVAL);
	EXPECT_EQ(ct, ep_recv(&ct->a, EP_RX, 8, 1), 0);
	EXPECT_EQ(ct, ep_modify(&ct->a, IB_QPS_RTR, 0), 0);
	EXPECT_EQ(ct, ep_post(&ct->a, &send), -EINVAL);
	EXPECT_EQ(ct, ep_modify(&ct->a, IB_QPS_RTS, 7), 0);
	EXPECT_EQ(ct, ep_post(&ct->a, &send), 0);
	EXPECT_EQ(ct, ep_modify(&ct->a, IB_QPS_ERR, 0), 0);
	EXPECT_EQ(ct, ep_post(&ct->a, &send), -EINVAL);
	EXPECT_EQ(ct, ep_recv(&ct->a, EP_RX, 8, 1), -EINVAL);
}

/* A slot becomes free when its completion is polled, not when it is written. */
static void send_queue_full(struct ct *ct)
{
	struct ib_wc wc;
	int i;

	for (i = 0; i < 16; i++) {
		EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 8, i), 0);
		EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
			.op = IB_WR_SEND, .len = 8 }), 0);
	}
	for (i = 0; i < 16; i++)
		EXPECT(ct, ep_wait(&ct->b, &wc, 5000));
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 8 }), -ENOMEM);
	EXPECT(ct, ep_wait(&ct->a, &wc, 5000));
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 8 }), 0);
	EXPECT_EQ(ct, ep_post(&ct->a, &(struct req) {
		.op = IB_WR_SEND, .len = 8 }), -ENOMEM);
}

static void recv_queue_full(struct ct *ct)
{
	int i;

	for (i = 0; i < 16; i++)
		EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 8, i), 0);
	EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 8, i), -ENOMEM);
}

static void fill_wr(struct ct *ct, struct ib_srd_wr *wr, struct ib_sge *sge,
		    u64 id)
{
	*sge = (struct ib_sge) {
		.addr = ct->a.dma, .length = 8,
		.lkey = ct->a.pd->local_dma_lkey,
	};
	*wr = (struct ib_srd_wr) {
		.wr = {
			.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED,
			.wr_id = id, .sg_list = sge, .num_sge = 1,
		},
		.ah = ct->a.ah,
		.remote_qpn = ct->b.qp->qp_num,
		.remote_qkey = ct->b.qkey,
	};
}

/* Requests before a bad one in a list are posted; the bad one and the rest aren't. */
static void list_with_a_bad_one(struct ct *ct)
{
	const struct ib_send_wr *bad = NULL;
	struct ib_srd_wr wr[4];
	struct ib_sge sge[4];
	struct ib_wc wc;
	u64 ids = 0;
	int i, err;

	for (i = 0; i < 4; i++) {
		fill_wr(ct, &wr[i], &sge[i], i);
		wr[i].wr.next = i < 3 ? &wr[i + 1].wr : NULL;
		EXPECT_EQ(ct, ep_recv(&ct->b, EP_RX, 8, i), 0);
	}
	wr[2].wr.send_flags |= IB_SEND_FENCE;
	local_bh_disable();
	err = ib_post_send(ct->a.qp, &wr[0].wr, &bad);
	local_bh_enable();
	EXPECT_EQ(ct, err, -EINVAL);
	EXPECT(ct, bad == &wr[2].wr);
	for (i = 0; i < 2; i++) {
		EXPECT(ct, ep_wait(&ct->a, &wc, 5000));
		ids |= BIT(wc.wr_id);
	}
	EXPECT_EQ(ct, ids, 3);
	EXPECT(ct, !ep_wait(&ct->a, &wc, 100));
}

const struct test_case post_cases[] = {
	{ "unsignaled_refused", unsignaled_refused, DRIVER },
	{ "unsignaled_signal_all", unsignaled_signal_all, DRIVER,
	  { .signal_all = true } },
	{ "flags_refused", flags_refused, DRIVER },
	{ "opcodes_refused", opcodes_refused, DRIVER },
	{ "sge_limits", sge_limits, DRIVER },
	{ "inline_limit", inline_limit, DRIVER, { .inline_len = 32 } },
	{ "rdma_without_sge", rdma_without_sge, DRIVER, .unsafe = true },
	{ "ud_sends_only", ud_sends_only, DRIVER, { .type = IB_QPT_UD } },
	{ "post_states", post_states, DRIVER, { .stay_reset = true } },
	{ "send_queue_full", send_queue_full, DRIVER, { .depth = 16 } },
	{ "recv_queue_full", recv_queue_full, DRIVER, { .depth = 16 } },
	{ "list_with_a_bad_one", list_with_a_bad_one, DRIVER },
	{ }
};
