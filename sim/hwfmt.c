// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device's side of its rings: parses entries that the host wrote, and writes
 * completions.
 *
 * Send queue entries are in the device's memory. Receive descriptors and completion queues
 * are in host memory, which the device accesses by DMA only. A completion queue consists of
 * one ring, or two of the same size for sends and receives. An entry is new if its phase bit equals
 * that of the current pass over the ring, which is 1 in the first pass.
 */
#include <linux/bitfield.h>

#include "priv.h"

static u64 addr_of_desc(__le32 lo, __le32 hi)
{
	return (u64)le32_to_cpu(hi) << 32 | le32_to_cpu(lo);
}

static void get_sge(struct efasim_sge *sge, const struct efasim_tx_buf_desc *d)
{
	sge->addr = addr_of_desc(d->buf_addr_lo, d->buf_addr_hi);
	sge->length = le32_to_cpu(d->length);
	sge->lkey = le32_to_cpu(d->lkey) & EFASIM_LKEY;
}

static enum efasim_status get_send(struct efasim_wqe *wqe,
				   const struct efasim_tx_wqe *d)
{
	u32 i, length = le16_to_cpu(d->meta.length);

	if (d->meta.ctrl1 & EFASIM_TX_INLINE_MSG) {
		if (length > EFASIM_INLINE_LEN)
			return EFASIM_LOCAL_BAD_LENGTH;
		wqe->is_inline = true;
		wqe->in.length = length;
		memcpy(wqe->in.data, d->inline_data, length);
		return EFASIM_OK;
	}
	if (length > EFASIM_MAX_SGE)
		return EFASIM_LOCAL_BAD_LENGTH;
	wqe->num_sge = length;
	for (i = 0; i < length; i++)
		get_sge(&wqe->sge[i], &d->sgl[i]);
	return EFASIM_OK;
}

static enum efasim_status get_rdma(struct efasim_wqe *wqe,
				   const struct efasim_tx_wqe *d)
{
	const struct efasim_remote_mem_addr *remote = &d->rdma_req.remote_mem;

	if (le16_to_cpu(d->meta.length) != 1 ||
	    d->meta.ctrl1 & EFASIM_TX_INLINE_MSG)
		return EFASIM_LOCAL_BAD_LENGTH;
	if (wqe->op == EFASIM_OP_READ && wqe->has_imm)
		return EFASIM_UNSUPPORTED_OP;
	get_sge(&wqe->rdma.local, &d->rdma_req.local_mem);
	wqe->rdma.addr = addr_of_desc(remote->buf_addr_lo, remote->buf_addr_hi);
	wqe->rdma.rkey = le32_to_cpu(remote->rkey);
	return remote->length == d->rdma_req.local_mem.length ?
	       EFASIM_OK : EFASIM_LOCAL_BAD_LENGTH;
}

/* Parse a fast registration. The number of pages follows from the range. */
static enum efasim_status get_reg(struct efasim_wqe *wqe,
				  const struct efasim_fast_mr_reg_req *d)
{
	u8 shift = FIELD_GET(EFASIM_REG_PAGE_SHIFT, d->flags);
	u8 mode = FIELD_GET(EFASIM_REG_PBL_MODE, d->flags);
	u64 mask = BIT_ULL(shift) - 1, pages;

	wqe->reg.iova = le64_to_cpu(d->iova);
	wqe->reg.length = le64_to_cpu(d->mr_length);
	wqe->reg.pbl = le64_to_cpu(d->pbl);
	wqe->reg.lkey = le32_to_cpu(d->lkey);
	wqe->reg.access = d->permissions;
	wqe->reg.page_shift = shift;
	pages = (wqe->reg.length >> shift) +
		(((wqe->reg.length & mask) + (wqe->reg.iova & mask) + mask) >> shift);
	wqe->reg.npages = min_t(u64, pages, U32_MAX);
	if (mode > EFASIM_PBL_DIRECT || (mode == EFASIM_PBL_INLINE && pages > 1))
		return EFASIM_UNSUPPORTED_OP;
	wqe->reg.pbl_inline = mode == EFASIM_PBL_INLINE;
	return EFASIM_OK;
}

/**
 * efasim_hw_parse_wqe() - parse a send queue entry
 * @d: the entry, untrusted; must not change meanwhile
 * @wqe: result; its request id and operation are set even on an error
 *
 * Context: any; accesses only its arguments.
 * Return: EFASIM_OK, or the status with which the entry completes.
 */
enum efasim_status efasim_hw_parse_wqe(const struct efasim_tx_wqe *d,
				       struct efasim_wqe *wqe)
{
	const u8 whole = EFASIM_TX_FIRST | EFASIM_TX_LAST | EFASIM_TX_COMP_REQ;
	const struct efasim_tx_meta_desc *meta = &d->meta;

	memset(wqe, 0, sizeof(*wqe));
	wqe->op = FIELD_GET(EFASIM_TX_OP_TYPE, meta->ctrl1);
	wqe->req_id = le16_to_cpu(meta->req_id);
	wqe->has_imm = meta->ctrl1 & EFASIM_TX_HAS_IMM;
	wqe->imm = le32_to_cpu(meta->immediate_data);
	wqe->ah = le16_to_cpu(meta->ah);
	wqe->dest_qpn = le16_to_cpu(meta->dest_qp_num);
	wqe->qkey = le32_to_cpu(meta->qkey);
	if (!(meta->ctrl1 & EFASIM_TX_META_DESC) ||
	    meta->ctrl1 & EFASIM_TX_META_EXT || (meta->ctrl2 & whole) != whole)
		return EFASIM_QP_INTERNAL;

	switch (wqe->op) {
	case EFASIM_OP_SEND:
		return get_send(wqe, d);
	case EFASIM_OP_READ:
	case EFASIM_OP_WRITE:
		return get_rdma(wqe, d);
	case EFASIM_OP_FAST_REG:
		return get_reg(wqe, &d->reg_mr_req);
	case EFASIM_OP_FAST_INV:
		wqe->inv_lkey = le32_to_cpu(d->inv_lkey);
		return EFASIM_OK;
	}
	return EFASIM_UNSUPPORTED_OP;
}

static bool efasim_dev_rx_desc(struct efasim_qp *qp, u16 index,
			       struct efasim_rx_desc *d)
{
	u64 addr = qp->rq_addr + (index & (qp->rq_depth - 1)) * sizeof(*d);

	return efasim_dev_dma(qp->dev, addr, d, sizeof(*d),
			      EFASIM_MR_READ_FROM);
}

/**
 * efasim_dev_peek_rq() - read the next receive
 * @qp: a queue pair
 * @rqe: result
 *
 * The receive stays in the queue until efasim_dev_complete_recv().
 *
 * Context: The device's worker.
 * Return: whether there is a receive with all of its descriptors.
 */
bool efasim_dev_peek_rq(struct efasim_qp *qp, struct efasim_rqe *rqe)
{
	/* Pairs with efasim_rq_doorbell(). */
	u16 i, n = smp_load_acquire(&qp->rq_prod) - qp->rq_cons;
	struct efasim_rx_desc d;
	u32 ctrl;

	if (n > qp->rq_depth) {
		efasim_count(qp->dev, EFASIM_S_bad_doorbell);
		return false;
	}
	for (i = 0; i < min_t(u16, n, EFASIM_MAX_SGE); i++) {
		if (!efasim_dev_rx_desc(qp, qp->rq_cons + i, &d))
			return false;
		ctrl = le32_to_cpu(d.lkey_ctrl);
		if (!i)
			rqe->req_id = le16_to_cpu(d.req_id);
		rqe->sge[i].addr = addr_of_desc(d.buf_addr_lo, d.buf_addr_hi);
		rqe->sge[i].length = le16_to_cpu(d.length);
		rqe->sge[i].lkey = ctrl & EFASIM_LKEY;
		rqe->num_sge = i + 1;
		if (!!(ctrl & EFASIM_RX_FIRST) != !i)
			return false;
		if (ctrl & EFASIM_RX_LAST)
			return true;
	}
	return false;
}

static void fill_cqe(struct efasim_rx_cdesc_ex *d, const struct efasim_cqe *cqe,
		     bool src_addr)
{
	struct efasim_rx_cdesc *base = &d->base;

	base->common.req_id = cpu_to_le16(cqe->req_id);
	base->common.status = cqe->status;
	base->common.qp_num = cpu_to_le16(cqe->qpn);
	base->common.flags =
		FIELD_PREP(EFASIM_CQE_Q_TYPE,
			   cqe->recv ? EFASIM_Q_RECV : EFASIM_Q_SEND) |
		FIELD_PREP(EFASIM_CQE_OP_TYPE, cqe->op) |
		FIELD_PREP(EFASIM_CQE_HAS_IMM, cqe->recv && cqe->has_imm) |
		FIELD_PREP(EFASIM_CQE_UNSOLICITED, cqe->recv && cqe->unsolicited);
	if (!cqe->recv)
		return;
	base->length = cpu_to_le16(cqe->length);
	base->ah = cpu_to_le16(cqe->ah);
	base->src_qp_num = cpu_to_le16(cqe->src_qpn);
	base->imm = cpu_to_le32(cqe->imm);
	if (cqe->op == EFASIM_OP_WRITE)
		d->length_hi = cpu_to_le16(cqe->length >> 16);
	else if (src_addr && cqe->src_gid && cqe->ah == EFASIM_AH_NONE)
		memcpy(d->src_addr, cqe->src_gid, sizeof(d->src_addr));
}

/* Write the phase last: the host reads an entry only after its phase. */
static void efasim_dev_write_cqe(struct efasim_cq *cq, u64 addr,
				 struct efasim_rx_cdesc_ex *d, u8 phase)
{
	u8 *flags = &d->base.common.flags;
	size_t at = offsetof(struct efasim_cdesc_common, flags);

	*flags |= EFASIM_CQE_PHASE & ~phase;
	efasim_dev_dma(cq->dev, addr, d, cq->entry_size, EFASIM_MR_WRITE_TO);
	*flags ^= EFASIM_CQE_PHASE;
	/* Pairs with the host's dma_rmb() after it reads the phase. */
	dma_wmb();
	efasim_dev_dma(cq->dev, addr + at, flags, 1, EFASIM_MR_WRITE_TO);
}

/**
 * efasim_dev_cqe() - write a completion
 * @cq: the queue
 * @cqe: the completion
 *
 * A real device overwrites unread entries of a full queue. So does this one for a queue
 * without efasim_cq_consumed(); for others it drops and counts the new completion.
 *
 * Context: The device's worker.
 */
void efasim_dev_cqe(struct efasim_cq *cq, const struct efasim_cqe *cqe)
{
	u32 which = cqe->recv ? efasim_recv_sub(cq->dev) : EFASIM_SUB_SEND;
	struct efasim_sub_cq *sub = &cq->sub[which];
	u32 slot = which * cq->depth + (sub->prod & (cq->depth - 1));
	struct efasim_rx_cdesc_ex d = { };
	u32 held;

	lockdep_assert_held(&cq->dev->lock);
	/* Pairs with efasim_cq_consumed(). */
	held = sub->prod - smp_load_acquire(&sub->cons);
	if (!cq->untold && held >= cq->depth) {
		efasim_count(cq->dev, EFASIM_S_cq_overflow);
		pr_err_ratelimited("efasim: completion lost: a queue of %u entries is full\n",
				   cq->depth);
		return;
	}
	fill_cqe(&d, cqe, cq->src_addr);
	WRITE_ONCE(cq->serials[slot], cqe->serial);
	efasim_dev_write_cqe(cq, cq->addr + slot * cq->entry_size, &d,
			     sub->prod & cq->depth ? 0 : EFASIM_CQE_PHASE);
	sub->prod++;
	/* Pairs with efasim_cq_arm(): the host arms and then looks for entries. */
	if (atomic_xchg(&cq->armed, 0))
		cq->dev->ops->event(cq);
}
