// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting: work requests become queue entries. What the driver checks is
 * checked here, in its order and with its errors; what it doesn't, isn't, save
 * for what would crash it.
 */
#include "verbs.h"

static u32 total_len(const struct ib_sge *sge, int num)
{
	u32 len = 0;
	int i;

	for (i = 0; i < num; i++)
		len += sge[i].length;
	return len;
}

static bool is_send(const struct ib_send_wr *wr)
{
	return wr->opcode == IB_WR_SEND || wr->opcode == IB_WR_SEND_WITH_IMM;
}

static bool is_rdma(const struct ib_send_wr *wr)
{
	return wr->opcode == IB_WR_RDMA_READ || wr->opcode == IB_WR_RDMA_WRITE ||
	       wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
}

static int check_data(struct efasim_vqp *qp, const struct ib_send_wr *wr)
{
	if (wr->send_flags & IB_SEND_INLINE)
		return total_len(wr->sg_list, wr->num_sge) > qp->max_inline ?
		       -EINVAL : 0;
	return wr->num_sge > (is_send(wr) ? qp->sq.max_sge : 1) ? -EINVAL : 0;
}

static int check_crash(struct efasim_vqp *qp, const struct ib_send_wr *wr)
{
	if (is_rdma(wr) && !wr->num_sge) {
		efasim_crash_avoided(&qp->ibqp, "RDMA without an SGE");
		return -EINVAL;
	}
	if ((is_send(wr) || is_rdma(wr)) &&
	    !(qp->ibqp.qp_type == IB_QPT_UD ? ud_wr(wr)->ah : srd_wr(wr)->ah)) {
		efasim_crash_avoided(&qp->ibqp, "no address handle");
		return -EINVAL;
	}
	return 0;
}

static int check_send(struct efasim_vqp *qp, const struct ib_send_wr *wr)
{
	int err;

	if (qp->state != IB_QPS_RTS && qp->state != IB_QPS_SQD)
		return -EINVAL;
	if (qp->sq.posted - qp->sq.completed == qp->sq.max_wqes)
		return -ENOMEM;
	if (wr->send_flags & ~(IB_SEND_SIGNALED | IB_SEND_INLINE))
		return -EINVAL;
	if (!(wr->send_flags & IB_SEND_SIGNALED) &&
	    qp->sig_type != IB_SIGNAL_ALL_WR)
		return -EINVAL;
	if (qp->ibqp.qp_type == IB_QPT_UD && !is_send(wr))
		return -EINVAL;
	err = check_data(qp, wr);
	return err ?: check_crash(qp, wr);
}

static void set_sge(struct efasim_sge *to, const struct ib_sge *from)
{
	to->addr = from->addr;
	to->length = from->length;
	to->lkey = from->lkey;
}

static void set_dest(struct efasim_wqe *wqe, struct ib_ah *ah, u32 qpn,
		     u32 qkey)
{
	wqe->ah = to_vah(ah)->number;
	wqe->dest_qpn = (u16)qpn;
	wqe->qkey = qkey;
}

static void set_srd_dest(struct efasim_wqe *wqe, const struct ib_send_wr *wr)
{
	const struct ib_srd_wr *srd = srd_wr(wr);

	set_dest(wqe, srd->ah, srd->remote_qpn, srd->remote_qkey);
}

static void fill_inline(struct efasim_wqe *wqe, const struct ib_send_wr *wr)
{
	int i;

	wqe->is_inline = true;
	for (i = 0; i < wr->num_sge; i++) {
		memcpy(wqe->in.data + wqe->in.length,
		       (void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		wqe->in.length += wr->sg_list[i].length;
	}
}

static void fill_send(struct efasim_vqp *qp, struct efasim_wqe *wqe,
		      const struct ib_send_wr *wr)
{
	int i;

	wqe->op = EFASIM_OP_SEND;
	if (qp->ibqp.qp_type == IB_QPT_UD)
		set_dest(wqe, ud_wr(wr)->ah, ud_wr(wr)->remote_qpn,
			 ud_wr(wr)->remote_qkey);
	else
		set_srd_dest(wqe, wr);
	if (wr->send_flags & IB_SEND_INLINE) {
		fill_inline(wqe, wr);
		return;
	}
	wqe->num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++)
		set_sge(&wqe->sge[i], &wr->sg_list[i]);
}

/* The inline flag is not looked at here: the address is taken for DMA's. */
static void fill_rdma(struct efasim_wqe *wqe, const struct ib_send_wr *wr)
{
	wqe->op = wr->opcode == IB_WR_RDMA_READ ? EFASIM_OP_READ :
						  EFASIM_OP_WRITE;
	set_srd_dest(wqe, wr);
	set_sge(&wqe->rdma.local, &wr->sg_list[0]);
	wqe->rdma.addr = srd_rdma_wr(wr)->remote_addr;
	wqe->rdma.rkey = srd_rdma_wr(wr)->rkey;
}

/* The key is the region's own; the one in the work request isn't looked at. */
static void fill_reg(struct efasim_wqe *wqe, const struct ib_send_wr *wr)
{
	struct efasim_vmr *mr = to_vmr(reg_wr(wr)->mr);

	wqe->op = EFASIM_OP_FAST_REG;
	wqe->reg.iova = mr->ibmr.iova;
	wqe->reg.length = mr->ibmr.length;
	wqe->reg.lkey = mr->ibmr.lkey;
	wqe->reg.access = reg_wr(wr)->access;
	wqe->reg.page_shift = order_base_2(mr->ibmr.page_size);
	wqe->reg.npages = mr->num_pages;
	wqe->reg.pbl = mr->num_pages == 1 ? mr->pages[0] : mr->pages_dma;
}

static void set_imm(struct efasim_wqe *wqe, const struct ib_send_wr *wr)
{
	wqe->has_imm = true;
	wqe->imm = be32_to_cpu(wr->ex.imm_data);
}

static int fill_wqe(struct efasim_vqp *qp, struct efasim_wqe *wqe,
		    const struct ib_send_wr *wr)
{
	memset(wqe, 0, sizeof(*wqe));
	switch (wr->opcode) {
	case IB_WR_SEND_WITH_IMM:
		set_imm(wqe, wr);
		fallthrough;
	case IB_WR_SEND:
		fill_send(qp, wqe, wr);
		return 0;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		set_imm(wqe, wr);
		fallthrough;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
		fill_rdma(wqe, wr);
		return 0;
	case IB_WR_REG_MR:
		fill_reg(wqe, wr);
		return 0;
	case IB_WR_LOCAL_INV:
		wqe->op = EFASIM_OP_FAST_INV;
		wqe->inv_lkey = wr->ex.invalidate_rkey;
		return 0;
	default:
		return -EINVAL;
	}
}

static u16 take_id(struct efasim_vwq *wq, u64 wr_id)
{
	u32 id = wq->free_ids[wq->next_free++];

	wq->wrid[id] = wr_id;
	wq->posted++;
	return id;
}

static int post_one(struct efasim_vqp *qp, const struct ib_send_wr *wr)
{
	struct efasim_wqe *wqe = efasim_sq_slot(qp->hw, qp->sq.pc);
	int err;

	err = check_send(qp, wr);
	if (err)
		return err;
	err = fill_wqe(qp, wqe, wr);
	if (err)
		return err;
	wqe->req_id = take_id(&qp->sq, wr->wr_id);
	qp->sq.pc++;
	return 0;
}

int efasim_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad_wr)
{
	struct efasim_vqp *qp = to_vqp(ibqp);
	int err = 0;
	u32 first;

	spin_lock(&qp->sq.lock);
	first = qp->sq.pc;
	for (; wr; wr = wr->next) {
		err = post_one(qp, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	/* What came before the bad one is posted. */
	if (qp->sq.pc != first)
		efasim_sq_doorbell(qp->hw, qp->sq.pc);
	spin_unlock(&qp->sq.lock);
	return err;
}

static int check_recv(struct efasim_vqp *qp, const struct ib_recv_wr *wr)
{
	if (qp->state == IB_QPS_RESET || qp->state == IB_QPS_ERR)
		return -EINVAL;
	if (qp->rq.posted - qp->rq.completed == qp->rq.max_wqes)
		return -ENOMEM;
	if (wr->num_sge > qp->rq.max_sge)
		return -EINVAL;
	return 0;
}

static void post_recv_one(struct efasim_vqp *qp, const struct ib_recv_wr *wr)
{
	struct efasim_rqe *rqe = efasim_rq_slot(qp->hw, qp->rq.pc);
	u16 id = take_id(&qp->rq, wr->wr_id);
	int i;

	/* The driver writes one descriptor for each SGE: none, then. */
	if (!wr->num_sge) {
		efasim_count(&to_vdev(qp->ibqp.device)->eng,
			     EFASIM_S_recv_without_sge);
		ibdev_err_ratelimited(qp->ibqp.device,
				      "a receive without an SGE never completes\n");
		return;
	}
	rqe->req_id = id;
	rqe->num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++)
		set_sge(&rqe->sge[i], &wr->sg_list[i]);
	qp->rq.pc++;
}

int efasim_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr)
{
	struct efasim_vqp *qp = to_vqp(ibqp);
	int err = 0;

	spin_lock(&qp->rq.lock);
	for (; wr; wr = wr->next) {
		err = check_recv(qp, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
		post_recv_one(qp, wr);
	}
	efasim_rq_doorbell(qp->hw, qp->rq.pc);
	spin_unlock(&qp->rq.lock);
	return err;
}
