// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting: converts work requests to queue entries, with the driver's checks in the
 * driver's order and with its errors. The only additional checks are for requests that
 * would crash the driver.
 */
#include <linux/bitfield.h>
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/platform_device.h>

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

static void set_sge(struct efasim_tx_buf_desc *to, const struct ib_sge *from)
{
	to->length = cpu_to_le32(from->length);
	to->lkey = cpu_to_le32(from->lkey & EFASIM_LKEY);
	to->buf_addr_lo = cpu_to_le32(lower_32_bits(from->addr));
	to->buf_addr_hi = cpu_to_le32(upper_32_bits(from->addr));
}

static void set_dest(struct efasim_tx_meta_desc *meta, struct ib_ah *ah, u32 qpn,
		     u32 qkey)
{
	meta->ah = cpu_to_le16(to_vah(ah)->number);
	meta->dest_qp_num = cpu_to_le16(qpn);
	meta->qkey = cpu_to_le32(qkey);
}

static void set_srd_dest(struct efasim_tx_wqe *wqe, const struct ib_send_wr *wr)
{
	const struct ib_srd_wr *srd = srd_wr(wr);

	set_dest(&wqe->meta, srd->ah, srd->remote_qpn, srd->remote_qkey);
}

static void fill_inline(struct efasim_tx_wqe *wqe, const struct ib_send_wr *wr)
{
	u32 length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		memcpy(wqe->inline_data + length,
		       (void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		length += wr->sg_list[i].length;
	}
	wqe->meta.ctrl1 |= EFASIM_TX_INLINE_MSG;
	wqe->meta.length = cpu_to_le16(length);
}

static void fill_send(struct efasim_vqp *qp, struct efasim_tx_wqe *wqe,
		      const struct ib_send_wr *wr)
{
	int i;

	if (qp->ibqp.qp_type == IB_QPT_UD)
		set_dest(&wqe->meta, ud_wr(wr)->ah, ud_wr(wr)->remote_qpn,
			 ud_wr(wr)->remote_qkey);
	else
		set_srd_dest(wqe, wr);
	if (wr->send_flags & IB_SEND_INLINE) {
		fill_inline(wqe, wr);
		return;
	}
	wqe->meta.length = cpu_to_le16(wr->num_sge);
	for (i = 0; i < wr->num_sge; i++)
		set_sge(&wqe->sgl[i], &wr->sg_list[i]);
}

/* Like the driver, ignore the inline flag, and use the address as a DMA address. */
static void fill_rdma(struct efasim_tx_wqe *wqe, const struct ib_send_wr *wr)
{
	struct efasim_remote_mem_addr *remote = &wqe->rdma_req.remote_mem;
	u64 addr = srd_rdma_wr(wr)->remote_addr;

	set_srd_dest(wqe, wr);
	set_sge(&wqe->rdma_req.local_mem, &wr->sg_list[0]);
	remote->length = wqe->rdma_req.local_mem.length;
	remote->rkey = cpu_to_le32(srd_rdma_wr(wr)->rkey);
	remote->buf_addr_lo = cpu_to_le32(lower_32_bits(addr));
	remote->buf_addr_hi = cpu_to_le32(upper_32_bits(addr));
	wqe->meta.length = cpu_to_le16(1);
}

/* Like the driver, use the region's key and ignore that of the work request. */
static void fill_reg(struct efasim_tx_wqe *wqe, const struct ib_send_wr *wr)
{
	struct efasim_vmr *mr = to_vmr(reg_wr(wr)->mr);
	struct efasim_fast_mr_reg_req *req = &wqe->reg_mr_req;
	bool in_place = mr->num_pages <= 1;

	WRITE_ONCE(mr->hw->posted, true);
	req->iova = cpu_to_le64(mr->ibmr.iova);
	req->mr_length = cpu_to_le64(mr->ibmr.length);
	req->lkey = cpu_to_le32(mr->ibmr.lkey);
	req->permissions = reg_wr(wr)->access;
	req->flags = FIELD_PREP(EFASIM_REG_PAGE_SHIFT,
				order_base_2(mr->ibmr.page_size)) |
		     FIELD_PREP(EFASIM_REG_PBL_MODE, in_place ?
				EFASIM_PBL_INLINE : EFASIM_PBL_DIRECT);
	if (!in_place)
		req->pbl = cpu_to_le64(mr->pages_dma);
	else if (mr->num_pages)
		req->pbl = cpu_to_le64(mr->pages[0]);
}

static void set_imm(struct efasim_tx_wqe *wqe, const struct ib_send_wr *wr)
{
	wqe->meta.ctrl1 |= EFASIM_TX_HAS_IMM;
	wqe->meta.immediate_data = cpu_to_le32(be32_to_cpu(wr->ex.imm_data));
}

/* Return: the operation code, or -EINVAL. */
static int fill_wqe(struct efasim_vqp *qp, struct efasim_tx_wqe *wqe,
		    const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_SEND_WITH_IMM:
		set_imm(wqe, wr);
		fallthrough;
	case IB_WR_SEND:
		fill_send(qp, wqe, wr);
		return EFASIM_OP_SEND;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		set_imm(wqe, wr);
		fallthrough;
	case IB_WR_RDMA_WRITE:
		fill_rdma(wqe, wr);
		return EFASIM_OP_WRITE;
	case IB_WR_RDMA_READ:
		fill_rdma(wqe, wr);
		return EFASIM_OP_READ;
	case IB_WR_REG_MR:
		fill_reg(wqe, wr);
		return EFASIM_OP_FAST_REG;
	case IB_WR_LOCAL_INV:
		wqe->inv_lkey = cpu_to_le32(wr->ex.invalidate_rkey);
		return EFASIM_OP_FAST_INV;
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

static void advance(struct efasim_vwq *wq)
{
	wq->pc++;
	if (!(wq->pc & wq->queue_mask))
		wq->phase ^= EFASIM_TX_PHASE;
}

static int post_one(struct efasim_vqp *qp, const struct ib_send_wr *wr)
{
	struct efasim_tx_wqe wqe = { };
	int err, op;

	err = check_send(qp, wr);
	if (err)
		return err;
	op = fill_wqe(qp, &wqe, wr);
	if (op < 0)
		return op;
	wqe.meta.ctrl1 |= EFASIM_TX_META_DESC |
			  FIELD_PREP(EFASIM_TX_OP_TYPE, op);
	wqe.meta.ctrl2 = EFASIM_TX_FIRST | EFASIM_TX_LAST | EFASIM_TX_COMP_REQ |
			 qp->sq.phase;
	wqe.meta.req_id = cpu_to_le16(take_id(&qp->sq, wr->wr_id));
	*efasim_sq_slot(qp->hw, qp->sq.pc) = wqe;
	advance(&qp->sq);
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
	/* Requests before the bad one are posted. */
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

static void put_desc(struct efasim_vqp *qp, const struct efasim_rx_desc *desc)
{
	struct efasim_vdev *dev = to_vdev(qp->ibqp.device);
	size_t off = (qp->rq.pc & qp->rq.queue_mask) * sizeof(*desc);

	memcpy(qp->rq_ring.buf + off, desc, sizeof(*desc));
	dma_sync_single_for_device(&dev->pdev->dev, qp->rq_ring.dma + off,
				   sizeof(*desc), DMA_TO_DEVICE);
	advance(&qp->rq);
}

/* Write one descriptor per SGE. The device never sees a receive without an SGE. */
static void post_recv_one(struct efasim_vqp *qp, const struct ib_recv_wr *wr)
{
	struct efasim_rx_desc desc = {
		.req_id = cpu_to_le16(take_id(&qp->rq, wr->wr_id)),
	};
	u32 ctrl = EFASIM_RX_FIRST;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (i == wr->num_sge - 1)
			ctrl |= EFASIM_RX_LAST;
		desc.length = cpu_to_le16(sge->length);
		desc.lkey_ctrl = cpu_to_le32(ctrl | (sge->lkey & EFASIM_LKEY));
		desc.buf_addr_lo = cpu_to_le32(lower_32_bits(sge->addr));
		desc.buf_addr_hi = cpu_to_le32(upper_32_bits(sge->addr));
		put_desc(qp, &desc);
		desc = (struct efasim_rx_desc) { };
		ctrl = 0;
	}
	if (wr->num_sge)
		return;
	efasim_count(&to_vdev(qp->ibqp.device)->eng,
		     EFASIM_S_recv_without_sge);
	ibdev_err_ratelimited(qp->ibqp.device,
			      "a receive without an SGE never completes\n");
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
