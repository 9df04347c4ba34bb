// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands and doorbells of the PCI function without a bus, with valid and invalid input that
 * a driver may pass on from processes. The BARs are plain memory, and the suite includes a
 * copy of the engine, whose worker does nothing.
 */
#include <kunit/test.h>
#include <linux/bitfield.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../../sim/engine.c"
#include "../../sim/admin.c"
#include "../../sim/fault.c"
#include "../../sim/hwfmt.c"
#include "../../sim/mr.c"
#include "../../sim/net.c"
#include "../../sim/peer.c"
#include "../../sim/request.c"
#include "../../sim/respond.c"
#include "../../sim/wire.c"
#include "../../sim/pci/cmd.c"
#include "../../sim/pci/cmd_mr.c"
#include "../../sim/pci/cmd_queue.c"
#include "../../sim/pci/feature.c"
#include "../../sim/pci/queue.c"

#define DEPTH		64
#define WILD		20000	/* commands */

/* Interrupts are ignored. */
void efasim_fn_raise(struct efasim_fn *fn, u32 vector)
{
}

struct host {
	struct efasim_fn fn;
	union efasim_aq_cmd cmd;
	union efasim_aq_resp resp;
	struct rnd_state rnd;
	u16 pd;
	u16 uar;
	void *cq;		/* room for the rings */
	struct efasim_eqe *eqes;
	struct efasim_rx_desc *rq;
};

static const struct efasim_limits limits = {
	.max_qp = 16, .max_cq = 16, .max_cq_depth = DEPTH, .max_mr = 64,
	.max_mr_pages = 4096, .max_ah = 16, .max_sq_depth = DEPTH,
	.max_rq_depth = DEPTH, .max_pd = 4, .mtu = 4096,
	.max_rdma_size = 1 << 20, .max_peers = 8, .rdma_read = true,
	.rdma_write = true,
};

/* Execute command @op. Return: its status. */
static int run(struct host *h, u8 op)
{
	memset(&h->resp, 0, sizeof(h->resp));
	h->cmd.hdr.opcode = op;
	return efasim_fn_command(&h->fn, &h->cmd, &h->resp);
}

static union efasim_aq_cmd *new_cmd(struct host *h)
{
	memset(&h->cmd, 0, sizeof(h->cmd));
	return &h->cmd;
}

static u64 dma(void *mem)
{
	return virt_to_phys(mem);
}

static void put_addr(__le32 *lo, __le32 *hi, void *mem)
{
	*lo = cpu_to_le32(lower_32_bits(dma(mem)));
	*hi = cpu_to_le32(upper_32_bits(dma(mem)));
}

static int create_eq(struct host *h)
{
	struct efasim_create_eq_cmd *c = &new_cmd(h)->create_eq;

	c->depth = cpu_to_le16(DEPTH);
	c->vector = 1;
	c->caps = sizeof(struct efasim_eqe) / sizeof(u32);
	put_addr(&c->addr_lo, &c->addr_hi, h->eqes);
	return run(h, EFASIM_AQ_CREATE_EQ);
}

static void fill_create_cq(struct host *h, u32 depth, u32 words, u8 caps1)
{
	struct efasim_create_cq_cmd *c = &new_cmd(h)->create_cq;

	c->caps1 = caps1;
	c->caps2 = words;
	c->depth = cpu_to_le16(depth);
	put_addr(&c->addr_lo, &c->addr_hi, h->cq);
	c->subs = cpu_to_le16(h->fn.eng.limits.subs);
	c->uar = cpu_to_le16(h->uar);
}

static int create_cq_as(struct host *h, u32 depth, u32 words, u8 caps1)
{
	fill_create_cq(h, depth, words, caps1);
	return run(h, EFASIM_AQ_CREATE_CQ);
}

/* Create a completion queue of @subs rings. */
static int create_cq_of(struct host *h, u32 depth, u32 subs)
{
	fill_create_cq(h, depth, 4, 0);
	h->cmd.create_cq.subs = cpu_to_le16(subs);
	return run(h, EFASIM_AQ_CREATE_CQ);
}

static void fill_create_qp(struct host *h)
{
	struct efasim_create_qp_cmd *c = &new_cmd(h)->create_qp;

	c->pd = cpu_to_le16(h->pd);
	c->type = EFASIM_QP_TYPE_SRD;
	c->rq_addr = cpu_to_le64(dma(h->rq));
	c->sq_size = cpu_to_le32(DEPTH * sizeof(struct efasim_tx_wqe));
	c->rq_size = cpu_to_le32(DEPTH * sizeof(struct efasim_rx_desc));
	c->uar = cpu_to_le16(h->uar);
}

static int create_qp(struct host *h)
{
	fill_create_qp(h);
	return run(h, EFASIM_AQ_CREATE_QP);
}

static int qp_to_rts(struct host *h, u32 handle)
{
	struct efasim_modify_qp_cmd *c = &new_cmd(h)->modify_qp;
	u32 state;
	int err = 0;

	c->mask = cpu_to_le32(EFASIM_MODIFY_CMD_STATE);
	c->handle = cpu_to_le32(handle);
	for (state = EFASIM_QPS_INIT; !err && state <= EFASIM_QPS_RTS; state++) {
		c->state = cpu_to_le32(state);
		err = run(h, EFASIM_AQ_MODIFY_QP);
	}
	return err;
}

static void work(struct host *h)
{
	mutex_lock(&h->fn.eng.lock);
	efasim_dev_run(&h->fn.eng);
	mutex_unlock(&h->fn.eng.lock);
}

static void ring(struct host *h, __le32 db, u32 val)
{
	writel(val, h->fn.mem + le32_to_cpu(db));
}

/* The commands of a driver up to a queue pair in RTS. */
static void pci_objects(struct kunit *test)
{
	struct host *h = test->priv;
	struct efasim_create_qp_resp qp;

	KUNIT_ASSERT_EQ(test, create_cq_as(h, DEPTH, 4, 0), 0);
	KUNIT_ASSERT_EQ(test, create_qp(h), 0);
	qp = h->resp.create_qp;
	KUNIT_EXPECT_EQ(test, qp_to_rts(h, le32_to_cpu(qp.handle)), 0);

	new_cmd(h)->number.number = 0;
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_DESTROY_CQ), -EINVAL);
	new_cmd(h)->qp.handle = qp.handle;
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_QUERY_QP), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(h->resp.query_qp.state),
			EFASIM_QPS_RTS);
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_DESTROY_QP), 0);
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_DESTROY_QP), -EINVAL);
	new_cmd(h)->number.number = 0;
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_DESTROY_CQ), 0);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(h->fn.llq_pages, EFASIM_LLQ_PAGES));
}

static int get_feature_of(struct host *h, u8 id)
{
	new_cmd(h)->feature.id = id;
	return run(h, EFASIM_AQ_GET_FEATURE);
}

/* Check the rings of a completion queue and the RDMA operations that the device reports. */
static void expect_attr(struct kunit *test, u32 subs, u32 rdma)
{
	const u32 any = EFASIM_CAP_RDMA_READ | EFASIM_CAP_RDMA_WRITE;
	struct host *h = test->priv;

	KUNIT_ASSERT_EQ(test, get_feature_of(h, EFASIM_FEATURE_QUEUE), 0);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(h->resp.feature.queue.subs), subs);
	KUNIT_ASSERT_EQ(test, get_feature_of(h, EFASIM_FEATURE_DEVICE), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(h->resp.feature.device.caps) & any, rdma);
}

static void pci_attr(struct kunit *test)
{
	expect_attr(test, 1, EFASIM_CAP_RDMA_READ | EFASIM_CAP_RDMA_WRITE);
}

static void pci_first_attr(struct kunit *test)
{
	expect_attr(test, 2, 0);
}

/* Unsolicited write receives are an option of the module, and then of each queue pair. */
static void pci_unsolicited(struct kunit *test)
{
	struct host *h = test->priv;
	struct efasim_pqp *qp;

	h->fn.eng.limits.unsolicited = true;
	KUNIT_ASSERT_EQ(test, get_feature_of(h, EFASIM_FEATURE_DEVICE), 0);
	KUNIT_EXPECT_TRUE(test, le32_to_cpu(h->resp.feature.device.caps) & EFASIM_CAP_UNSOLICITED);
	KUNIT_ASSERT_EQ(test, create_cq_as(h, DEPTH, 4, 0), 0);
	fill_create_qp(h);
	h->cmd.create_qp.flags = EFASIM_QP_UNSOLICITED << 1;
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_CREATE_QP), -EINVAL);
	fill_create_qp(h);
	h->cmd.create_qp.flags = EFASIM_QP_UNSOLICITED;
	KUNIT_ASSERT_EQ(test, run(h, EFASIM_AQ_CREATE_QP), 0);
	qp = find_qp(&h->fn, h->resp.create_qp.handle);
	KUNIT_ASSERT_NOT_NULL(test, qp);
	KUNIT_EXPECT_TRUE(test, qp->hw->unsolicited);
}

/* Complete an invalid send and a flushed receive. Their entries are @apart. */
static void expect_rings(struct kunit *test, u32 apart)
{
	struct host *h = test->priv;
	struct efasim_rx_cdesc *cqes = h->cq;
	struct efasim_create_qp_resp qp;
	struct efasim_modify_qp_cmd *c;
	u8 *at;

	KUNIT_ASSERT_EQ(test, create_cq_as(h, DEPTH, 4, 0), 0);
	KUNIT_ASSERT_EQ(test, create_qp(h), 0);
	qp = h->resp.create_qp;
	KUNIT_EXPECT_EQ(test, le16_to_cpu(qp.send_sub), 0);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(qp.recv_sub), apart == 1 ? 0 : 1);
	KUNIT_ASSERT_EQ(test, qp_to_rts(h, le32_to_cpu(qp.handle)), 0);
	at = (__force u8 *)h->fn.llq + le32_to_cpu(qp.llq);
	at[2] |= EFASIM_TX_META_DESC;
	ring(h, qp.sq_db, 1);
	work(h);
	KUNIT_EXPECT_EQ(test, FIELD_GET(EFASIM_CQE_Q_TYPE, cqes[0].common.flags),
			EFASIM_Q_SEND);

	h->rq[0].lkey_ctrl = cpu_to_le32(EFASIM_RX_FIRST | EFASIM_RX_LAST);
	ring(h, qp.rq_db, 1);
	work(h);
	h->fn.eng.fault[EFASIM_F_err_flush] = 1000;
	c = &new_cmd(h)->modify_qp;
	c->mask = cpu_to_le32(EFASIM_MODIFY_CMD_STATE);
	c->handle = qp.handle;
	c->state = cpu_to_le32(EFASIM_QPS_ERR);
	KUNIT_ASSERT_EQ(test, run(h, EFASIM_AQ_MODIFY_QP), 0);
	KUNIT_EXPECT_EQ(test, FIELD_GET(EFASIM_CQE_Q_TYPE, cqes[apart].common.flags),
			EFASIM_Q_RECV);
	KUNIT_EXPECT_EQ(test, cqes[apart].common.flags & EFASIM_CQE_PHASE,
			EFASIM_CQE_PHASE);
	KUNIT_EXPECT_EQ(test, h->fn.eng.injected[EFASIM_F_err_flush].counter, 1);
}

/* A completion queue has one ring, in the order in which work completes. */
static void pci_rings(struct kunit *test)
{
	expect_rings(test, 1);
}

/* In the first generation receives have a ring of their own, behind that of sends. */
static void pci_first_rings(struct kunit *test)
{
	expect_rings(test, DEPTH);
}

/* Commands with one invalid field each. */
static void pci_bad_queues(struct kunit *test)
{
	struct host *h = test->priv;
	struct efasim_create_qp_cmd *c = &h->cmd.create_qp;

	KUNIT_EXPECT_EQ(test, create_cq_as(h, DEPTH + 1, 4, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, create_cq_as(h, 2 * DEPTH, 4, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, create_cq_as(h, 0, 4, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, create_cq_as(h, DEPTH, 5, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, create_cq_of(h, DEPTH, 2), -EINVAL);
	KUNIT_EXPECT_EQ(test, create_cq_of(h, DEPTH, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, create_cq_as(h, DEPTH, 4,
					   EFASIM_CQ_CMD_INTERRUPT), -EINVAL);
	KUNIT_ASSERT_EQ(test, create_cq_as(h, DEPTH, 4, 0), 0);

	fill_create_qp(h);
	c->uar = cpu_to_le16(EFASIM_UARS);
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_CREATE_QP), -EINVAL);
	fill_create_qp(h);
	c->pd = cpu_to_le16(h->pd + 1);
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_CREATE_QP), -EINVAL);
	fill_create_qp(h);
	c->send_cq = cpu_to_le32(U32_MAX);
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_CREATE_QP), -EINVAL);
	fill_create_qp(h);
	c->sq_size = cpu_to_le32(2 * DEPTH * sizeof(struct efasim_tx_wqe));
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_CREATE_QP), -EINVAL);
	fill_create_qp(h);
	c->rq_size = cpu_to_le32(DEPTH * sizeof(struct efasim_rx_desc) + 1);
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_CREATE_QP), -EINVAL);
	fill_create_qp(h);
	c->flags = EFASIM_QP_UNSOLICITED;
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_CREATE_QP), -EINVAL);
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_OPS), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, run(h, 0), -EBADRQC);
	KUNIT_EXPECT_EQ(test, h->fn.eng.num_qp, 0);
}

/* A doorbell value of more than the queue holds is ignored. */
static void pci_bad_doorbells(struct kunit *test)
{
	struct host *h = test->priv;
	struct efasim_create_qp_resp qp;

	KUNIT_ASSERT_EQ(test, create_cq_as(h, DEPTH, 4, 0), 0);
	KUNIT_ASSERT_EQ(test, create_qp(h), 0);
	qp = h->resp.create_qp;
	KUNIT_ASSERT_EQ(test, qp_to_rts(h, le32_to_cpu(qp.handle)), 0);
	ring(h, qp.sq_db, DEPTH + 1);
	ring(h, qp.rq_db, 0x12345);
	work(h);
	work(h);
	KUNIT_EXPECT_GE(test, atomic64_read(&h->fn.eng.stats[EFASIM_S_bad_doorbell]),
			1);
	KUNIT_EXPECT_EQ(test, h->fn.cq_table[0]->hw->sub[EFASIM_SUB_SEND].prod, 0);
}

/* The send queue is written by a process: every entry completes, valid or not. */
static void pci_wild_entries(struct kunit *test)
{
	struct host *h = test->priv;
	struct efasim_create_qp_resp qp;
	u32 i, n;
	u8 *at;

	KUNIT_ASSERT_EQ(test, create_cq_as(h, DEPTH, 4, 0), 0);
	KUNIT_ASSERT_EQ(test, create_qp(h), 0);
	qp = h->resp.create_qp;
	KUNIT_ASSERT_EQ(test, qp_to_rts(h, le32_to_cpu(qp.handle)), 0);
	h->fn.eng.fault[EFASIM_F_reg_delay_us] = 0;
	at = (__force u8 *)h->fn.llq + le32_to_cpu(qp.llq);
	for (n = 0; n < WILD / DEPTH; n++) {
		prandom_bytes_state(&h->rnd, at,
				    DEPTH * sizeof(struct efasim_tx_wqe));
		for (i = 0; i < DEPTH; i += 2)
			at[i * sizeof(struct efasim_tx_wqe) + 2] |=
				EFASIM_TX_META_DESC;
		ring(h, qp.sq_db, (n + 1) * DEPTH);
		work(h);
		work(h);
	}
	KUNIT_EXPECT_EQ(test, h->fn.cq_table[0]->hw->sub[EFASIM_SUB_SEND].prod,
			n * DEPTH);
}

static void put_list(__le64 *list, u32 n, u64 page)
{
	u32 i;

	for (i = 0; i < n; i++)
		list[i] = cpu_to_le64(page);
}

/* Two chunks, the second with a single list page; all entries name the same page. */
static void pci_chain(struct kunit *test)
{
	u32 per_page = EFASIM_LIST_PAGE / sizeof(__le64);
	struct host *h = test->priv;
	struct efasim_reg_mr_cmd *c = &new_cmd(h)->reg_mr;
	__le64 *list, *first, *second;
	struct efasim_aq_buf next = { };
	u8 *page, byte = 0;

	list = kunit_kzalloc(test, 3 * PAGE_SIZE, GFP_KERNEL);
	page = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, list);
	KUNIT_ASSERT_NOT_NULL(test, page);
	first = list + per_page;
	second = first + per_page;
	h->fn.eng.limits.max_mr_pages = U32_MAX;
	put_list(list, per_page, dma(page));
	put_list(first, EFASIM_CHUNK_PTRS, dma(list));
	put_list(second, 1, dma(list));
	next.length = cpu_to_le32(sizeof(__le64) + sizeof(next));
	put_addr(&next.addr_lo, &next.addr_hi, second);
	memcpy(&first[EFASIM_CHUNK_PTRS], &next, sizeof(next));

	c->pd = cpu_to_le16(h->pd);
	c->hdr.flags = EFASIM_AQ_CTRL_DATA | EFASIM_AQ_CTRL_INDIRECT;
	c->flags = PAGE_SHIFT;
	c->access = EFASIM_ACCESS_LOCAL_WRITE;
	c->length = cpu_to_le64((EFASIM_CHUNK_PTRS * per_page + 5ULL) << PAGE_SHIFT);
	c->list.length = cpu_to_le32(EFASIM_LIST_PAGE);
	put_addr(&c->list.addr_lo, &c->list.addr_hi, first);
	KUNIT_ASSERT_EQ(test, run(h, EFASIM_AQ_REG_MR), 0);

	page[7] = 0x5a;
	mutex_lock(&h->fn.eng.lock);
	KUNIT_EXPECT_TRUE(test, efasim_dev_mr_copy(&h->fn.eng, h->pd,
						   le32_to_cpu(h->resp.mr.lkey),
						   le64_to_cpu(c->length) -
						   PAGE_SIZE + 7, &byte, 1, 0,
						   EFASIM_MR_READ_FROM));
	mutex_unlock(&h->fn.eng.lock);
	KUNIT_EXPECT_EQ(test, byte, 0x5a);
	/* A chain with an invalid address. */
	next.addr_hi = cpu_to_le32(0x7fff);
	memcpy(&first[EFASIM_CHUNK_PTRS], &next, sizeof(next));
	KUNIT_EXPECT_EQ(test, run(h, EFASIM_AQ_REG_MR), -EFAULT);
}

/* Each serial number gives one event, whether or not the device has seen it armed. */
static void pci_events(struct kunit *test)
{
	struct host *h = test->priv;
	struct efasim_peq *eq = &h->fn.eqs[0];
	struct efasim_create_cq_resp cq;
	struct efasim_cq *hw;

	KUNIT_ASSERT_EQ(test, create_eq(h), 0);
	KUNIT_ASSERT_EQ(test, create_cq_as(h, DEPTH, 4, EFASIM_CQ_CMD_INTERRUPT),
			0);
	cq = h->resp.create_cq;
	hw = h->fn.cq_table[0]->hw;
	efasim_fn_events(&h->fn);
	KUNIT_EXPECT_EQ(test, eq->prod, 0);
	hw->sub[efasim_recv_sub(&h->fn.eng)].prod++;
	efasim_fn_events(&h->fn);
	efasim_fn_events(&h->fn);
	KUNIT_EXPECT_EQ(test, eq->prod, 1);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(h->eqes[0].common), 1);
	/* The host handled the event and the entry; its poll overwrites the arming. */
	ring(h, cq.db, FIELD_PREP(EFASIM_CQ_DB_SN, 1) | 1);
	efasim_fn_events(&h->fn);
	KUNIT_EXPECT_EQ(test, eq->prod, 1);
	hw->sub[EFASIM_SUB_SEND].prod++;
	efasim_fn_events(&h->fn);
	KUNIT_EXPECT_EQ(test, eq->prod, 2);
}

/* Mostly small numbers, or most commands would fail at their first field. */
static void make_wild(struct host *h)
{
	u8 *byte = h->cmd.raw;
	int i;

	prandom_bytes_state(&h->rnd, h->cmd.raw, sizeof(h->cmd));
	for (i = sizeof(h->cmd.hdr); i < sizeof(h->cmd); i++)
		byte[i] = byte[i] & 0x80 ? 0 : byte[i] & 0x40 ? byte[i] & 3 : byte[i];
}

/* Memory addresses come from the driver, so they are trusted. */
static void tame_addresses(struct host *h, u8 op)
{
	union efasim_aq_cmd *c = &h->cmd;

	switch (op) {
	case EFASIM_AQ_CREATE_CQ:
		put_addr(&c->create_cq.addr_lo, &c->create_cq.addr_hi, h->cq);
		break;
	case EFASIM_AQ_CREATE_EQ:
		put_addr(&c->create_eq.addr_lo, &c->create_eq.addr_hi, h->eqes);
		break;
	case EFASIM_AQ_CREATE_QP:
		c->create_qp.rq_addr = cpu_to_le64(dma(h->rq));
		break;
	case EFASIM_AQ_REG_MR:
		c->hdr.flags = 0;
		break;
	case EFASIM_AQ_SET_FEATURE:
		c->feature.id = EFASIM_FEATURES;
		break;
	}
}

static void pci_wild_commands(struct kunit *test)
{
	struct host *h = test->priv;
	u64 before = atomic64_read(&h->fn.eng.stats[EFASIM_S_completed_cmds]);
	u32 i, op;

	for (i = 0; i < WILD; i++) {
		make_wild(h);
		op = prandom_u32_state(&h->rnd) % (EFASIM_AQ_OPS + 2);
		tame_addresses(h, op);
		if (op == EFASIM_AQ_CREATE_CQ && i % 2)
			create_cq_as(h, DEPTH, 4, 0);
		else if (op == EFASIM_AQ_CREATE_QP && i % 2)
			create_qp(h);
		else
			run(h, op);
		if (i % 100 == 0)
			work(h);
	}
	KUNIT_EXPECT_GT(test, atomic64_read(&h->fn.eng.stats[EFASIM_S_completed_cmds]),
			before);
	efasim_fn_free_objects(&h->fn);
	KUNIT_EXPECT_EQ(test, h->fn.eng.num_qp, 0);
	KUNIT_EXPECT_EQ(test, h->fn.eng.num_cq, 0);
	KUNIT_EXPECT_EQ(test, h->fn.eng.num_mr, 0);
	KUNIT_EXPECT_EQ(test, h->fn.eng.num_ah, 0);
	KUNIT_EXPECT_EQ(test, h->fn.eng.mr_pages, 0);
}

static void no_work(struct work_struct *work)
{
}

static int start(struct host *h, u16 device_id)
{
	struct efasim_limits mine = limits;
	const struct efasim_dev_params params = {
		.ops = &efasim_pci_fe_ops, .limits = &mine, .seed = 1,
		.unresp_ms = 60000, .sock_buf = 1 << 20,
	};
	void *mem, *llq;
	int err;

	h->fn.device_id = device_id;
	efasim_fn_limits(&h->fn, &mine);
	err = efasim_engine_create(&h->fn.eng, &params);
	if (err)
		return err;
	INIT_WORK(&h->fn.eng.work, no_work);
	h->fn.eng.fault[EFASIM_F_admin_delay_us] = 0;
	h->fn.vectors = 3;
	spin_lock_init(&h->fn.lock);
	INIT_LIST_HEAD(&h->fn.qps);
	INIT_LIST_HEAD(&h->fn.cqs);
	mem = vzalloc(EFASIM_DB_SIZE);
	llq = vzalloc(EFASIM_LLQ_SIZE);
	h->fn.mem = (void __force __iomem *)mem;
	h->fn.llq = (void __force __iomem *)llq;
	h->cq = kzalloc(EFASIM_MAX_SUBS * DEPTH * 32, GFP_KERNEL);
	h->eqes = kcalloc(EFASIM_MAX_EQ_DEPTH, sizeof(*h->eqes), GFP_KERNEL);
	h->rq = kcalloc(DEPTH, sizeof(*h->rq), GFP_KERNEL);
	if (!h->fn.mem || !h->fn.llq || !h->cq || !h->eqes || !h->rq)
		return -ENOMEM;
	err = run(h, EFASIM_AQ_ALLOC_PD);
	h->pd = le16_to_cpu(h->resp.number.number);
	if (err)
		return err;
	err = run(h, EFASIM_AQ_ALLOC_UAR);
	h->uar = le16_to_cpu(h->resp.number.number);
	return err;
}

static int setup_as(struct kunit *test, u16 device_id)
{
	struct host *h = kvzalloc(sizeof(*h), GFP_KERNEL);

	if (!h)
		return -ENOMEM;
	test->priv = h;
	prandom_seed_state(&h->rnd, 1);
	return start(h, device_id);
}

static int pci_setup(struct kunit *test)
{
	return setup_as(test, 0xefa1);
}

static void pci_teardown(struct kunit *test)
{
	struct host *h = test->priv;

	if (!h)
		return;
	efasim_engine_stop(&h->fn.eng);
	efasim_fn_free_objects(&h->fn);
	efasim_engine_destroy(&h->fn.eng);
	kfree(h->rq);
	kfree(h->eqes);
	kfree(h->cq);
	vfree((void __force *)h->fn.llq);
	vfree((void __force *)h->fn.mem);
	kvfree(h);
}

static int pci_init(struct kunit_suite *suite)
{
	return efasim_engine_init();
}

static void pci_exit(struct kunit_suite *suite)
{
	efasim_engine_exit();
}

static struct kunit_case pci_cases[] = {
	KUNIT_CASE(pci_attr),
	KUNIT_CASE(pci_unsolicited),
	KUNIT_CASE(pci_rings),
	KUNIT_CASE(pci_objects),
	KUNIT_CASE(pci_bad_queues),
	KUNIT_CASE(pci_bad_doorbells),
	KUNIT_CASE(pci_wild_entries),
	KUNIT_CASE(pci_chain),
	KUNIT_CASE(pci_events),
	KUNIT_CASE_SLOW(pci_wild_commands),
	{ }
};

static struct kunit_suite pci_suite = {
	.name = "efasim_pci",
	.suite_init = pci_init,
	.suite_exit = pci_exit,
	.init = pci_setup,
	.exit = pci_teardown,
	.test_cases = pci_cases,
};

static int first_setup(struct kunit *test)
{
	return setup_as(test, EFASIM_DEVICE_FIRST);
}

static struct kunit_case first_cases[] = {
	KUNIT_CASE(pci_first_attr),
	KUNIT_CASE(pci_first_rings),
	KUNIT_CASE(pci_objects),
	KUNIT_CASE(pci_wild_entries),
	KUNIT_CASE(pci_events),
	{ }
};

/* A function of the first generation. */
static struct kunit_suite first_suite = {
	.name = "efasim_pci_first",
	.suite_init = pci_init,
	.suite_exit = pci_exit,
	.init = first_setup,
	.exit = pci_teardown,
	.test_cases = first_cases,
};

kunit_test_suites(&pci_suite, &first_suite);

MODULE_DESCRIPTION("Tests of the software EFA device's PCI function");
MODULE_LICENSE("Dual BSD/GPL");
