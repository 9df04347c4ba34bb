// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two devices of the software EFA device's engine whose workers do nothing, so that the test
 * runs them and can inspect and reorder the packets between them. Only for one suite, as it
 * includes a copy of the engine with its static functions.
 */
#include <kunit/test.h>
#include <linux/bitfield.h>
#include <linux/bitops.h>
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sizes.h>

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

#define DEPTH		256
#define CQ_DEPTH	(2 * DEPTH)
#define CQ_SIZE		(CQ_DEPTH * sizeof(struct efasim_rx_cdesc))
#define RQ_SIZE		(DEPTH * sizeof(struct efasim_rx_desc))
#define QKEY		0x1234
#define IOVA		0x10000
#define PEERS		4096
#define WILD		5000	/* packets */
#define NEAR_WRAP	(U32_MAX - 40)
#define KEY_STEP	(EFASIM_KEY_GEN_MASK & -EFASIM_KEY_GEN_MASK)

/* Completions of one queue pair. */
struct cq {
	unsigned int sent;
	unsigned int received;
	unsigned int bad;	/* number of failures; the last status is kept */
	u8 status;
	unsigned long seen[BITS_TO_LONGS(2 * DEPTH)];	/* immediate data received */
	unsigned int doubled;
};

struct end {
	struct efasim_dev dev;
	struct efasim_qp *qp;
	struct efasim_cq *hw_cq;
	struct efasim_rx_cdesc *cqes;
	struct efasim_rx_desc *rq;
	struct cq cq;
	u32 pdn;
	u16 ah;
};

struct pair {
	struct end a;
	struct end b;
	struct end c;	/* not opened by default */
	struct rnd_state rnd;
};

static void collect(struct cq *cq, const struct efasim_rx_cdesc *d)
{
	u8 status = d->common.status;

	cq->bad += status && status != cq->status;
	cq->status = status;
	if (FIELD_GET(EFASIM_CQE_Q_TYPE, d->common.flags) == EFASIM_Q_SEND) {
		cq->sent++;
		return;
	}
	cq->received++;
	cq->doubled += test_and_set_bit(le32_to_cpu(d->imm) % (2 * DEPTH),
					cq->seen);
}

/* Poll all completions of the queue, which has one ring. */
static void drain(struct end *end)
{
	struct efasim_cq *cq = end->hw_cq;
	const struct efasim_rx_cdesc *d;
	u32 n;

	for (n = cq->sub[0].cons;; n++) {
		d = &end->cqes[n % CQ_DEPTH];
		if ((d->common.flags & EFASIM_CQE_PHASE) == n / CQ_DEPTH % 2)
			break;
		collect(&end->cq, d);
	}
	efasim_cq_consumed(cq, 0, n);
}

static void no_event(struct efasim_cq *cq)
{
}

static const struct efasim_fe_ops fe_ops = { .event = no_event };

static const struct efasim_limits limits = {
	.max_qp = 16, .max_cq = 16, .max_cq_depth = CQ_DEPTH, .max_mr = 16,
	.max_mr_pages = 64, .max_ah = 16, .subs = 1,
	.max_pd = 4, .mtu = 4096, .max_rdma_size = 1 << 20, .max_peers = 8,
	.rdma_read = true, .rdma_write = true,
};

static int create_dev(struct end *end)
{
	const struct efasim_dev_params params = {
		.ops = &fe_ops, .limits = &limits, .seed = 1,
		.unresp_ms = 60000, .sock_buf = 1 << 20,
	};

	memset(end, 0, sizeof(*end));
	return efasim_engine_create(&end->dev, &params);
}

static void open_dev(struct kunit *test, struct end *end)
{
	int i;

	KUNIT_ASSERT_EQ(test, create_dev(end), 0);
	/* Disable the worker. */
	end->dev.stopping = true;
	for (i = 0; i < EFASIM_FAULT_KNOBS; i++)
		end->dev.fault[i] = 0;
	KUNIT_ASSERT_EQ(test, efasim_net_init(&end->dev, &init_net, 0, 0), 0);
}

static void open_qp(struct kunit *test, struct end *end,
		    enum efasim_qp_type type)
{
	struct efasim_qp_params params = {
		.type = type, .sq_depth = DEPTH, .rq_depth = DEPTH,
	};
	struct efasim_cq_params cq_params = {
		.depth = CQ_DEPTH, .entry_size = sizeof(*end->cqes),
	};
	struct efasim_qp_modify modify = {
		.mask = EFASIM_MODIFY_STATE | EFASIM_MODIFY_QKEY |
			EFASIM_MODIFY_RNR,
		.qkey = QKEY, .rnr_retry = EFASIM_RNR_INFINITE,
	};
	int state;

	KUNIT_ASSERT_EQ(test, efasim_adm_alloc_pd(&end->dev, &end->pdn), 0);
	end->cqes = alloc_pages_exact(CQ_SIZE, GFP_KERNEL | __GFP_ZERO);
	end->rq = alloc_pages_exact(RQ_SIZE, GFP_KERNEL | __GFP_ZERO);
	KUNIT_ASSERT_TRUE(test, end->cqes && end->rq);
	cq_params.addr = virt_to_phys(end->cqes);
	end->hw_cq = efasim_adm_create_cq(&end->dev, &cq_params);
	KUNIT_ASSERT_FALSE(test, IS_ERR(end->hw_cq));
	params.pdn = end->pdn;
	params.rq_addr = virt_to_phys(end->rq);
	params.send_cq = end->hw_cq;
	params.recv_cq = end->hw_cq;
	end->qp = efasim_adm_create_qp(&end->dev, &params);
	KUNIT_ASSERT_FALSE(test, IS_ERR(end->qp));
	for (state = EFASIM_QPS_INIT; state <= EFASIM_QPS_RTS; state++) {
		modify.state = state;
		KUNIT_ASSERT_EQ(test, efasim_adm_modify_qp(end->qp, &modify),
				0);
	}
}

static void close_dev(struct end *end)
{
	if (!end->dev.ops)
		return;
	efasim_net_leave(&end->dev);
	efasim_engine_stop(&end->dev);
	efasim_engine_destroy(&end->dev);
	if (end->cqes)
		free_pages_exact(end->cqes, CQ_SIZE);
	if (end->rq)
		free_pages_exact(end->rq, RQ_SIZE);
	memset(end, 0, sizeof(*end));
}

static void meet(struct kunit *test, struct end *end, const struct end *other)
{
	KUNIT_ASSERT_EQ(test, efasim_adm_create_ah(&end->dev, end->pdn,
						   other->dev.gid, &end->ah), 0);
}

static int engine_suite_init(struct kunit_suite *suite)
{
	return efasim_engine_init();
}

static void engine_suite_exit(struct kunit_suite *suite)
{
	efasim_engine_exit();
}

static void open_pair(struct kunit *test, enum efasim_qp_type type)
{
	struct pair *p = test->priv;

	open_dev(test, &p->a);
	open_dev(test, &p->b);
	open_qp(test, &p->a, type);
	open_qp(test, &p->b, type);
	meet(test, &p->a, &p->b);
	meet(test, &p->b, &p->a);
}

static void close_pair(struct kunit *test)
{
	struct pair *p = test->priv;

	close_dev(&p->a);
	close_dev(&p->b);
}

static int engine_init(struct kunit *test)
{
	struct pair *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	test->priv = p;
	prandom_seed_state(&p->rnd, 11);
	open_pair(test, EFASIM_QP_SRD);
	return 0;
}

static u64 stat(const struct end *end, enum efasim_stat stat)
{
	return atomic64_read(&end->dev.stats[stat]);
}

static void run(struct end *end)
{
	mutex_lock(&end->dev.lock);
	while (efasim_dev_run(&end->dev))
		;
	mutex_unlock(&end->dev.lock);
	drain(end);
}

static struct efasim_tx_buf_desc buf_desc(const struct efasim_sge *sge)
{
	return (struct efasim_tx_buf_desc) {
		.length = cpu_to_le32(sge->length),
		.lkey = cpu_to_le32(sge->lkey),
		.buf_addr_lo = cpu_to_le32(sge->addr),
		.buf_addr_hi = cpu_to_le32(sge->addr >> 32),
	};
}

/* Write a send queue entry: one SGE, or no data. */
static void put_wqe(struct efasim_qp *qp, u16 pc, const struct efasim_wqe *wqe)
{
	struct efasim_tx_wqe *d = efasim_sq_slot(qp, pc);

	*d = (struct efasim_tx_wqe) {
		.meta = {
			.req_id = cpu_to_le16(wqe->req_id),
			.ctrl1 = EFASIM_TX_META_DESC | wqe->op |
				 (wqe->is_inline ? EFASIM_TX_INLINE_MSG : 0) |
				 (wqe->has_imm ? EFASIM_TX_HAS_IMM : 0),
			.ctrl2 = EFASIM_TX_FIRST | EFASIM_TX_LAST |
				 EFASIM_TX_COMP_REQ,
			.dest_qp_num = cpu_to_le16(wqe->dest_qpn),
			.length = cpu_to_le16(wqe->num_sge),
			.immediate_data = cpu_to_le32(wqe->imm),
			.ah = cpu_to_le16(wqe->ah),
			.qkey = cpu_to_le32(wqe->qkey),
		},
	};
	if (wqe->op == EFASIM_OP_SEND && wqe->num_sge)
		d->sgl[0] = buf_desc(&wqe->sge[0]);
	if (wqe->op != EFASIM_OP_READ && wqe->op != EFASIM_OP_WRITE)
		return;
	d->rdma_req.local_mem = buf_desc(&wqe->rdma.local);
	d->rdma_req.remote_mem = (struct efasim_remote_mem_addr) {
		.length = cpu_to_le32(wqe->rdma.local.length),
		.rkey = cpu_to_le32(wqe->rdma.rkey),
		.buf_addr_lo = cpu_to_le32(wqe->rdma.addr),
		.buf_addr_hi = cpu_to_le32(wqe->rdma.addr >> 32),
	};
}

/* Post empty messages, which differ in their immediate data. */
static void post(struct end *from, const struct end *to, u32 first, u32 n)
{
	struct efasim_qp *qp = from->qp;
	u16 pc = qp->sq_prod;
	u32 i;

	for (i = 0; i < n; i++, pc++)
		put_wqe(qp, pc, &(struct efasim_wqe) {
			.op = EFASIM_OP_SEND, .is_inline = true,
			.has_imm = true, .imm = first + i,
			.req_id = pc & (DEPTH - 1), .ah = from->ah,
			.dest_qpn = to->qp->qpn, .qkey = QKEY,
		});
	efasim_sq_doorbell(qp, pc);
}

static void post_recvs(struct end *end, u32 n)
{
	u16 pc = end->qp->rq_prod;
	u32 i;

	for (i = 0; i < n; i++, pc++)
		end->rq[pc % DEPTH] = (struct efasim_rx_desc) {
			.req_id = cpu_to_le16(pc),
			.lkey_ctrl = cpu_to_le32(EFASIM_RX_FIRST |
						 EFASIM_RX_LAST),
		};
	efasim_rq_doorbell(end->qp, pc);
}

/* Check that the windows of @end's peers are within their limits. */
static void expect_sane(struct kunit *test, struct end *end)
{
	struct efasim_peer *peer;
	int lane, missing = 0;
	unsigned long i;

	xa_for_each(&end->dev.peers, i, peer) {
		KUNIT_EXPECT_LE(test, peer->num_resps, MAX_RESPS);
		for (lane = 0; lane < EFASIM_LANES; lane++) {
			const struct efasim_lane_state *l = &peer->lane[lane];
			u32 seq;

			KUNIT_EXPECT_LE(test, l->tx_next - l->tx_una,
					EFASIM_WINDOW);
			KUNIT_EXPECT_EQ(test, l->rx_map & 1, 0);
			for (seq = l->tx_una; seq != l->tx_next; seq++)
				missing += !l->slot[seq % EFASIM_WINDOW];
		}
	}
	KUNIT_EXPECT_EQ(test, missing, 0);
}
