// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Objects: attributes of the device, and creation with invalid attributes.
 */
#include <linux/delay.h>

#include "conformance.h"

/* The driver hides limits; there is one port, one GID, one P_Key, no link layer. */
static void device_attributes(struct ct *ct)
{
	const struct ib_device_attr *attr = &ct->dev_a->attrs;
	struct ib_port_attr port;
	u16 pkey;

	EXPECT_EQ(ct, ct->dev_a->ops.driver_id, RDMA_DRIVER_EFA);
	EXPECT_EQ(ct, attr->device_cap_flags, 0);
	EXPECT_EQ(ct, attr->kernel_cap_flags & IBK_LOCAL_DMA_LKEY, 0);
	EXPECT_EQ(ct, attr->max_fast_reg_page_list_len, 0);
	EXPECT(ct, attr->max_mr_size > 0);
	EXPECT(ct, attr->page_size_cap & PAGE_SIZE);
	EXPECT_EQ(ct, ct->dev_a->phys_port_cnt, 1);
	EXPECT_EQ(ct, rdma_port_get_link_layer(ct->dev_a, 1),
		  IB_LINK_LAYER_UNSPECIFIED);
	EXPECT_EQ(ct, ib_query_port(ct->dev_a, 1, &port), 0);
	EXPECT_EQ(ct, port.gid_tbl_len, 1);
	EXPECT_EQ(ct, port.pkey_tbl_len, 1);
	EXPECT(ct, port.max_msg_sz >= 256 && port.max_msg_sz <= 9216);
	EXPECT_EQ(ct, port.state, IB_PORT_ACTIVE);
	EXPECT_EQ(ct, ib_query_pkey(ct->dev_a, 1, 0, &pkey), 0);
	EXPECT_EQ(ct, pkey, 0xffff);
	EXPECT(ct, ib_query_pkey(ct->dev_a, 1, 1, &pkey) < 0);
	EXPECT(ct, !rdma_cap_ib_cm(ct->dev_a, 1) && !rdma_cap_iw_cm(ct->dev_a, 1));
}

static long create_cq(struct ct *ct, int cqe, int flags, int vector,
		      ib_comp_handler handler)
{
	struct ib_cq_init_attr attr = {
		.cqe = cqe, .flags = flags, .comp_vector = vector,
	};
	struct ib_cq *cq = ib_create_cq(ct->dev_a, handler, NULL, NULL, &attr);
	long ret;

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	ret = cq->cqe;
	ib_destroy_cq(cq);
	return ret;
}

static void no_events(struct ib_cq *cq, void *ctx)
{
}

static void cq_create(struct ct *ct)
{
	EXPECT_EQ(ct, create_cq(ct, 16, IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN, 0,
				NULL), -EOPNOTSUPP);
	EXPECT_EQ(ct, create_cq(ct, ct->dev_a->attrs.max_cqe + 1, 0, 0, NULL),
		  -EINVAL);
	EXPECT_EQ(ct, create_cq(ct, 100, 0, 0, NULL), 128);
	EXPECT_EQ(ct, create_cq(ct, 16, 0, ct->dev_a->num_comp_vectors,
				no_events), -EINVAL);
	/* The vector of a queue without a handler isn't checked. */
	EXPECT_EQ(ct, create_cq(ct, 16, 0, ct->dev_a->num_comp_vectors, NULL),
		  16);
}

static long create_qp(struct ct *ct, struct ib_qp_init_attr *attr)
{
	struct ib_qp *qp;

	attr->send_cq = ct->a.cq;
	attr->recv_cq = ct->a.cq;
	qp = ib_create_qp(ct->a.pd, attr);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	ib_destroy_qp(qp);
	return 0;
}

static struct ib_qp_init_attr good_qp(void)
{
	return (struct ib_qp_init_attr) {
		.qp_type = EFA_QPT_SRD,
		.cap = {
			.max_send_wr = 16, .max_recv_wr = 16,
			.max_send_sge = 2, .max_recv_sge = 1,
			.max_inline_data = 32,
		},
	};
}

static void qp_create_refused(struct ct *ct)
{
	struct ib_qp_init_attr attr = good_qp();

	EXPECT_EQ(ct, create_qp(ct, &attr), 0);
	attr.qp_type = IB_QPT_RC;
	EXPECT_EQ(ct, create_qp(ct, &attr), -EOPNOTSUPP);
	attr = good_qp();
	attr.create_flags = IB_QP_CREATE_PCI_WRITE_END_PADDING;
	EXPECT_EQ(ct, create_qp(ct, &attr), -EOPNOTSUPP);
	attr = good_qp();
	attr.cap.max_send_sge = 3;
	EXPECT_EQ(ct, create_qp(ct, &attr), -EINVAL);
	attr = good_qp();
	attr.cap.max_send_wr = 1 << 20;
	EXPECT_EQ(ct, create_qp(ct, &attr), -EINVAL);
}

/*
 * 32 bytes are always granted. More than the device advertises, which differs between devices, is
 * refused. More than 32 must never be used: the driver builds a request on its stack with room for
 * 32.
 */
static void inline_limit(struct ct *ct)
{
	struct ib_qp_init_attr attr = good_qp();

	attr.cap.max_inline_data = 32;
	EXPECT_EQ(ct, create_qp(ct, &attr), 0);
	attr.cap.max_inline_data = U16_MAX;
	EXPECT_EQ(ct, create_qp(ct, &attr), -EINVAL);
}

static int modify(struct ct *ct, struct ib_qp_attr attr, int mask)
{
	return ib_modify_qp(ct->a.qp, &attr, mask);
}

static void qp_states(struct ct *ct)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS, .port_num = 1 };
	struct ib_qp_init_attr init;

	EXPECT_EQ(ct, modify(ct, attr, IB_QP_STATE | IB_QP_SQ_PSN), -EINVAL);
	attr.qp_state = IB_QPS_INIT;
	EXPECT_EQ(ct, modify(ct, attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			     IB_QP_PORT), -EINVAL);
	attr.pkey_index = 1;
	EXPECT_EQ(ct, modify(ct, attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			     IB_QP_PORT | IB_QP_QKEY), -EOPNOTSUPP);
	EXPECT_EQ(ct, ep_modify(&ct->a, IB_QPS_INIT, 0), 0);
	attr.qp_state = IB_QPS_RTR;
	EXPECT_EQ(ct, modify(ct, attr, IB_QP_STATE | IB_QP_MIN_RNR_TIMER),
		  -EOPNOTSUPP);
	EXPECT_EQ(ct, ep_modify(&ct->a, IB_QPS_RTR, 0), 0);
	attr.qp_state = IB_QPS_RTS;
	EXPECT_EQ(ct, modify(ct, attr, IB_QP_STATE), -EINVAL);
	EXPECT_EQ(ct, ep_modify(&ct->a, IB_QPS_RTS, 5), 0);
	EXPECT_EQ(ct, ib_query_qp(ct->a.qp, &attr, IB_QP_STATE | IB_QP_QKEY,
				  &init), 0);
	EXPECT_EQ(ct, attr.qp_state, IB_QPS_RTS);
	EXPECT_EQ(ct, attr.qkey, ct->a.qkey);
	EXPECT_EQ(ct, attr.sq_psn, 1);
	EXPECT_EQ(ct, attr.rnr_retry, 5);
	EXPECT_EQ(ct, ib_query_qp(ct->a.qp, &attr, IB_QP_AV, &init),
		  -EOPNOTSUPP);
}

/*
 * Creating a handle without the sleepable flag fails. The driver ignores that flag when it
 * destroys a handle, and sleeps.
 */
static void ah_sleeps(struct ct *ct)
{
	struct ib_ah *ah;

	EXPECT_EQ(ct, ah_new(ct->a.pd, &ct->b.gid, 0, &ah), -EOPNOTSUPP);
	if (!EXPECT_EQ(ct, ah_new(ct->a.pd, &ct->b.gid,
				  RDMA_CREATE_AH_SLEEPABLE, &ah), 0))
		return;
	EXPECT_EQ(ct, rdma_destroy_ah_user(ah, 0, NULL), 0);
}

static void ah_bad_gid(struct ct *ct)
{
	union ib_gid gid = { .raw = { 0x20, 0x01 } };
	struct ib_ah *ah;

	EXPECT_EQ(ct, ah_new(ct->a.pd, &gid, RDMA_CREATE_AH_SLEEPABLE, &ah),
		  -EINVAL);
}

static void mr_types(struct ct *ct)
{
	struct ib_mr *mr = ib_alloc_mr(ct->a.pd, IB_MR_TYPE_SG_GAPS, 4);

	EXPECT_EQ(ct, PTR_ERR_OR_ZERO(mr), -EINVAL);
}

/* The DMA key is for local access only: there is no global rkey. */
static void no_global_rkey(struct ct *ct)
{
	struct ib_pd *pd = ib_alloc_pd(ct->dev_a, IB_PD_UNSAFE_GLOBAL_RKEY);

	EXPECT_EQ(ct, PTR_ERR_OR_ZERO(pd), -EOPNOTSUPP);
	if (!IS_ERR(pd))
		ib_dealloc_pd(pd);
}

const struct test_case object_cases[] = {
	{ "device_attributes", device_attributes, DRIVER },
	{ "cq_create", cq_create, DRIVER },
	{ "qp_create_refused", qp_create_refused, DRIVER },
	{ "inline_limit", inline_limit, DRIVER },
	{ "qp_states", qp_states, DRIVER, { .stay_reset = true } },
	{ "ah_sleeps", ah_sleeps, DRIVER },
	{ "ah_bad_gid", ah_bad_gid, DEVICE },
	{ "mr_types", mr_types, DRIVER },
	{ "no_global_rkey", no_global_rkey, DRIVER },
	{ }
};
