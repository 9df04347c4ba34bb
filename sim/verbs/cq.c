// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: one ring, or on a device of the first generation two, for sends and
 * receives, which the device fills and the host polls in turn. Like the driver, this front end
 * recognizes a new entry by its phase. It passes its index to the engine only so that the engine
 * can detect a full ring.
 *
 * Events come in hard interrupt context, once for each arming, and only for completions
 * written after the arming. With CONFIG_PREEMPT_RT they come in a thread, as those of drivers
 * do, whose handlers take locks that sleep there. They come on the CPU on which the device's
 * work runs: a queue's vector is checked, but a module can't send an irq_work to another CPU.
 * They are delayed until the end of a run, as on a device that moderates its interrupts.
 *
 * As in the driver, a completion belongs to the queue pair that has its number when it is
 * polled. If that queue pair was destroyed, the poll returns -EINVAL; if its number was
 * reused, the new queue pair gets the completion of the old one. A ring that no queue pair
 * uses isn't polled; its entries are polled when another queue pair uses it.
 */
#include <linux/bitfield.h>
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

#include "verbs.h"

static const enum ib_wc_status wc_status[] = {
	[EFASIM_OK] = IB_WC_SUCCESS,
	[EFASIM_FLUSHED] = IB_WC_WR_FLUSH_ERR,
	[EFASIM_QP_INTERNAL] = IB_WC_LOC_QP_OP_ERR,
	[EFASIM_UNSUPPORTED_OP] = IB_WC_LOC_QP_OP_ERR,
	[EFASIM_INVALID_AH] = IB_WC_LOC_QP_OP_ERR,
	[EFASIM_INVALID_LKEY] = IB_WC_LOC_PROT_ERR,
	[EFASIM_LOCAL_BAD_LENGTH] = IB_WC_LOC_LEN_ERR,
	[EFASIM_BAD_ADDRESS] = IB_WC_REM_ACCESS_ERR,
	[EFASIM_ABORT] = IB_WC_REM_ABORT_ERR,
	[EFASIM_BAD_DEST_QPN] = IB_WC_REM_INV_RD_REQ_ERR,
	[EFASIM_RNR] = IB_WC_RNR_RETRY_EXC_ERR,
	[EFASIM_REMOTE_BAD_LENGTH] = IB_WC_REM_INV_REQ_ERR,
	[EFASIM_BAD_STATUS] = IB_WC_BAD_RESP_ERR,
	[EFASIM_UNRESP_REMOTE] = IB_WC_RESP_TIMEOUT_ERR,
	[EFASIM_UNKNOWN_PEER] = IB_WC_GENERAL_ERR,
	[EFASIM_UNREACH_REMOTE] = IB_WC_GENERAL_ERR,
	[EFASIM_FEATURE_MISMATCH] = IB_WC_REM_INV_REQ_ERR,
};

/* Opcodes by the three bits of a completion's operation. */
static const enum ib_wc_opcode send_opcode[8] = {
	[EFASIM_OP_SEND] = IB_WC_SEND,
	[EFASIM_OP_READ] = IB_WC_RDMA_READ,
	[EFASIM_OP_WRITE] = IB_WC_RDMA_WRITE,
	[EFASIM_OP_FAST_REG] = IB_WC_REG_MR,
	[EFASIM_OP_FAST_INV] = IB_WC_LOCAL_INV,
};

/* Hard interrupt: corresponds to the driver's handler of an event queue. */
static void cq_event(struct irq_work *work)
{
	struct efasim_vcq *cq = container_of(work, struct efasim_vcq, irq);

	efasim_count(&to_vdev(cq->ibcq.device)->eng, EFASIM_S_events);
	cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/* Delay the interrupt, so that the host isn't interrupted for each completion. */
static void efasim_dev_event(struct efasim_cq *hw)
{
	struct efasim_vcq *cq = hw->ctx;

	if (cq && cq->has_events && list_empty(&cq->event))
		list_add_tail(&cq->event, &to_vdev(cq->ibcq.device)->events);
}

static void efasim_dev_notify(struct efasim_dev *eng)
{
	struct efasim_vdev *dev = container_of(eng, struct efasim_vdev, eng);
	struct efasim_vcq *cq, *next;

	list_for_each_entry_safe(cq, next, &dev->events, event) {
		list_del_init(&cq->event);
		irq_work_queue(&cq->irq);
	}
}

const struct efasim_fe_ops efasim_verbs_fe_ops = {
	.event = efasim_dev_event,
	.notify = efasim_dev_notify,
};

static int check_cq(struct efasim_vdev *dev, struct ib_cq *ibcq,
		    const struct ib_cq_init_attr *attr)
{
	u32 entries;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > dev->eng.limits.max_cq_depth)
		return -EINVAL;
	entries = roundup_pow_of_two(attr->cqe);
	if (entries > dev->eng.limits.max_cq_depth)
		return -EINVAL;
	if (ibcq->comp_handler &&
	    attr->comp_vector >= dev->eng.limits.vectors)
		return -EINVAL;
	return 0;
}

static int create_hw(struct efasim_vdev *dev, struct efasim_vcq *cq)
{
	const struct efasim_cq_params params = {
		.addr = cq->ring.dma,
		.depth = cq->queue_mask + 1,
		.entry_size = sizeof(struct efasim_rx_cdesc),
		.ctx = cq,
	};

	cq->hw = efasim_adm_create_cq(&dev->eng, &params);
	return PTR_ERR_OR_ZERO(cq->hw);
}

static int create_cq(struct efasim_vdev *dev, struct efasim_vcq *cq,
		     const struct ib_cq_init_attr *attr)
{
	int err;
	u32 i;

	err = check_cq(dev, &cq->ibcq, attr);
	if (err)
		return err;
	cq->queue_mask = roundup_pow_of_two(attr->cqe) - 1;
	cq->subs = dev->eng.limits.subs;
	err = efasim_ring_alloc(dev, &cq->ring, (cq->queue_mask + 1) *
				cq->subs * sizeof(struct efasim_rx_cdesc),
				DMA_FROM_DEVICE);
	if (err)
		return err;
	for (i = 0; i < cq->subs; i++) {
		cq->sub[i].phase = EFASIM_CQE_PHASE;
		cq->sub[i].first = i * (cq->queue_mask + 1);
	}
	spin_lock_init(&cq->lock);
	cq->irq = IRQ_WORK_INIT(cq_event);
	INIT_LIST_HEAD(&cq->event);
	/* Like the driver, send no events to queues of ib_alloc_cq(): it sets a handler later. */
	cq->has_events = cq->ibcq.comp_handler;
	cq->ibcq.cqe = cq->queue_mask + 1;
	err = create_hw(dev, cq);
	if (err)
		efasim_ring_free(dev, &cq->ring);
	return err;
}

int efasim_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		     struct compat_create_cq_arg *arg)
{
	struct efasim_vdev *dev = to_vdev(ibcq->device);
	int err = create_cq(dev, to_vcq(ibcq), attr);

	if (err)
		efasim_count(&dev->eng, EFASIM_S_create_cq_err);
	return err;
}

/* Wait until no event of the queue is pending. */
static void quiet_cq(struct efasim_vdev *dev, struct efasim_vcq *cq)
{
	mutex_lock(&dev->eng.lock);
	list_del_init(&cq->event);
	mutex_unlock(&dev->eng.lock);
	irq_work_sync(&cq->irq);
}

int efasim_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct efasim_vdev *dev = to_vdev(ibcq->device);
	struct efasim_vcq *cq = to_vcq(ibcq);

	/* Like the driver, ignore a command that fails, and free the rings. */
	efasim_cq_forget(cq->hw);
	efasim_adm_destroy_cq(cq->hw);
	quiet_cq(dev, cq);
	efasim_ring_free(dev, &cq->ring);
	return 0;
}

/* Free the queues of a stopped device that could not be destroyed. */
void efasim_release_cqs(struct efasim_vdev *dev)
{
	struct efasim_vcq *cq;
	struct efasim_cq *hw;
	unsigned long i;

	xa_for_each(&dev->eng.cqs, i, hw) {
		cq = hw->ctx;
		if (!cq)
			continue;
		quiet_cq(dev, cq);
		efasim_ring_free(dev, &cq->ring);
	}
}

static u32 next_slot(const struct efasim_vcq *cq, const struct efasim_vsub *sub)
{
	return sub->first + (sub->consumed_cnt & cq->queue_mask);
}

/* Return: the next entry of a ring, or NULL. Inline, because a ring is often empty. */
static __always_inline const struct efasim_rx_cdesc_ex *
next_cqe(const struct efasim_vcq *cq, const struct efasim_vsub *sub)
{
	struct efasim_vdev *dev = to_vdev(cq->ibcq.device);
	const size_t off = next_slot(cq, sub) * sizeof(struct efasim_rx_cdesc);
	const struct efasim_rx_cdesc *cqe = cq->ring.buf + off;

	dma_sync_single_for_cpu(&dev->pdev->dev, cq->ring.dma + off,
				sizeof(*cqe), DMA_FROM_DEVICE);
	if ((READ_ONCE(cqe->common.flags) & EFASIM_CQE_PHASE) != sub->phase)
		return NULL;
	/* Read the phase before the rest of the entry. */
	dma_rmb();
	/* Like the driver, treat it as an entry of 32 bytes. */
	return container_of(cqe, struct efasim_rx_cdesc_ex, base);
}

/*
 * An entry of 16 bytes has only the lower half of a write's length. The driver reads the
 * upper half behind the entry, where the next entry has its request id. Behind the last
 * entry the driver reads beyond its memory; this function doesn't.
 */
static u16 length_hi(struct efasim_vcq *cq, const struct efasim_rx_cdesc_ex *cqe)
{
	const void *end = &cqe->length_hi + 1;

	return end <= cq->ring.buf + cq->ring.size ?
	       le16_to_cpu(READ_ONCE(cqe->length_hi)) : U16_MAX;
}

static void fill_recv(struct efasim_vcq *cq, const struct efasim_rx_cdesc_ex *cqe,
		      struct ib_wc *wc)
{
	u8 flags = cqe->base.common.flags;

	wc->byte_len = le16_to_cpu(cqe->base.length);
	wc->opcode = IB_WC_RECV;
	if (FIELD_GET(EFASIM_CQE_OP_TYPE, flags) == EFASIM_OP_WRITE) {
		wc->byte_len |= (u32)length_hi(cq, cqe) << 16;
		wc->opcode = IB_WC_RECV_RDMA_WITH_IMM;
	}
	wc->src_qp = le16_to_cpu(cqe->base.src_qp_num);
	wc->sl = 0;
	wc->slid = le16_to_cpu(cqe->base.ah);
	if (flags & EFASIM_CQE_HAS_IMM) {
		wc->ex.imm_data = cpu_to_be32(le32_to_cpu(cqe->base.imm));
		wc->wc_flags |= IB_WC_WITH_IMM;
	}
}

/* Free a request id. Return: false if it wasn't in use. */
static bool retire(struct efasim_vwq *wq, u32 id, struct ib_wc *wc)
{
	bool ok;

	spin_lock(&wq->lock);
	ok = wq->next_free && id < wq->max_wqes;
	if (ok) {
		wq->free_ids[--wq->next_free] = id;
		wc->wr_id = wq->wrid[id];
		wq->completed++;
	}
	spin_unlock(&wq->lock);
	return ok;
}

static enum ib_wc_status to_ib_status(u8 status)
{
	if (likely(status == EFASIM_OK))
		return IB_WC_SUCCESS;
	return status < ARRAY_SIZE(wc_status) && wc_status[status] ? wc_status[status] :
								     IB_WC_GENERAL_ERR;
}

/* Convert an entry to a work completion, as the driver does. */
static int take_cqe(struct efasim_vcq *cq, const struct efasim_rx_cdesc_ex *cqe,
		    u32 serial, struct ib_wc *wc)
{
	struct efasim_vdev *dev = to_vdev(cq->ibcq.device);
	const struct efasim_cdesc_common *common = &cqe->base.common;
	u32 qpn = le16_to_cpu(common->qp_num);
	struct efasim_vwq *wq;
	struct efasim_vqp *qp;

	qp = READ_ONCE(dev->qp_table[qpn & dev->qp_table_mask]);
	if (!qp || qp->ibqp.qp_num != qpn) {
		efasim_count(&dev->eng, EFASIM_S_cqe_of_dead_qp);
		return -EINVAL;
	}
	if (qp->serial != serial)
		efasim_count(&dev->eng, EFASIM_S_cqe_of_reused_qpn);

	/* Set only the members that the driver sets; the others keep the caller's values. */
	wc->status = to_ib_status(common->status);
	wc->vendor_err = common->status;
	wc->wc_flags = 0;
	wc->qp = &qp->ibqp;
	if (FIELD_GET(EFASIM_CQE_Q_TYPE, common->flags) == EFASIM_Q_SEND) {
		wq = &qp->sq;
		wc->opcode = send_opcode[FIELD_GET(EFASIM_CQE_OP_TYPE,
						   common->flags)];
	} else {
		wq = &qp->rq;
		fill_recv(cq, cqe, wc);
	}
	if (retire(wq, le16_to_cpu(common->req_id), wc))
		return 1;
	efasim_crash_avoided(&qp->ibqp, "completion of a former queue pair");
	return -EINVAL;
}

static __always_inline int poll_sub(struct efasim_vcq *cq, struct efasim_vsub *sub,
				    struct ib_wc *wc)
{
	const struct efasim_rx_cdesc_ex *cqe = next_cqe(cq, sub);
	u32 serial;
	int ret;

	if (!cqe)
		return 0;
	serial = efasim_cq_serial(cq->hw, next_slot(cq, sub));
	if (!(++sub->consumed_cnt & cq->queue_mask))
		sub->phase ^= EFASIM_CQE_PHASE;
	ret = take_cqe(cq, cqe, serial, wc);
	/* The device may reuse the entry. */
	efasim_cq_consumed(cq->hw, sub - cq->sub, sub->consumed_cnt);
	return ret;
}

static __always_inline int poll_one(struct efasim_vcq *cq, struct ib_wc *wc)
{
	struct efasim_vsub *sub;
	int ret = 0;
	u32 i;

	for (i = 0; i < cq->subs && !ret; i++) {
		sub = &cq->sub[cq->next_poll];
		if (++cq->next_poll == cq->subs)
			cq->next_poll = 0;
		if (sub->ref_cnt)
			ret = poll_sub(cq, sub, wc);
	}
	return ret;
}

int efasim_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct efasim_vcq *cq = to_vcq(ibcq);
	int i, ret = 0;

	spin_lock(&cq->lock);
	for (i = 0; i < num; i++) {
		ret = poll_one(cq, &wc[i]);
		if (ret <= 0)
			break;
	}
	spin_unlock(&cq->lock);
	return i ?: ret;
}

static bool cq_empty(struct efasim_vcq *cq)
{
	bool empty = true;
	u32 i;

	spin_lock(&cq->lock);
	for (i = 0; i < cq->subs; i++)
		if (cq->sub[i].ref_cnt && next_cqe(cq, &cq->sub[i]))
			empty = false;
	spin_unlock(&cq->lock);
	return empty;
}

int efasim_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct efasim_vcq *cq = to_vcq(ibcq);

	if (flags & IB_CQ_SOLICITED)
		return -EOPNOTSUPP;
	efasim_cq_arm(cq->hw);
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		return !cq_empty(cq);
	return 0;
}
