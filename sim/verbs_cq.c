// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: a ring that the device fills and the host empties.
 *
 * The device is the only producer and takes no lock, so whatever the host does
 * under vcq.lock it does to itself. Events come in hard interrupt context, once
 * for each time the queue was armed, and only for what is completed after it
 * was armed. They come on the CPU that the device happens to work on: the
 * vector of a queue is checked, but no module can send an irq_work elsewhere.
 * And they come late, as from a device that moderates its interrupts.
 *
 * As in the driver a completion belongs to whatever queue pair has its number
 * when it is polled: one that was destroyed costs the poller an -EINVAL, and
 * one whose number was given out again gets the completion of its predecessor.
 */
#include <linux/log2.h>
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

static const enum ib_wc_opcode send_opcode[EFASIM_OP_TYPES] = {
	[EFASIM_OP_SEND] = IB_WC_SEND,
	[EFASIM_OP_READ] = IB_WC_RDMA_READ,
	[EFASIM_OP_WRITE] = IB_WC_RDMA_WRITE,
	[EFASIM_OP_FAST_REG] = IB_WC_REG_MR,
	[EFASIM_OP_FAST_INV] = IB_WC_LOCAL_INV,
};

/* Hard interrupt: the driver's handler of an event queue. */
static void cq_event(struct irq_work *work)
{
	struct efasim_vcq *cq = container_of(work, struct efasim_vcq, irq);

	efasim_count(&to_vdev(cq->ibcq.device)->eng, EFASIM_S_events);
	cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/* An interrupt now would have the host run for each completion by itself. */
static void efasim_dev_event(struct efasim_vcq *cq)
{
	struct efasim_vdev *dev = to_vdev(cq->ibcq.device);

	if (cq->has_events && atomic_xchg(&cq->armed, 0) &&
	    list_empty(&cq->event))
		list_add_tail(&cq->event, &dev->events);
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

/* The device writes a completion. */
static void efasim_dev_cqe(void *ctx, const struct efasim_cqe *cqe)
{
	struct efasim_vcq *cq = ctx;

	/* Pairs with poll_one(): an entry is free once its index was passed. */
	if (cq->prod - smp_load_acquire(&cq->cons) > cq->mask) {
		efasim_count(&to_vdev(cq->ibcq.device)->eng,
			     EFASIM_S_cq_overflow);
		ibdev_err_ratelimited(cq->ibcq.device,
				      "completion lost: queue of %u is full\n",
				      cq->mask + 1);
		return;
	}
	cq->ring[cq->prod & cq->mask] = *cqe;
	/* The entry is there before the index says so. */
	smp_store_release(&cq->prod, cq->prod + 1);
	efasim_dev_event(cq);
}

const struct efasim_fe_ops efasim_verbs_fe_ops = {
	.complete = efasim_dev_cqe,
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

static int start_cq(struct efasim_vdev *dev, struct efasim_vcq *cq)
{
	int err;

	err = efasim_adm_nop(&dev->eng);
	if (err)
		return err;
	if (atomic_inc_return(&dev->num_cq) > dev->eng.limits.max_cq) {
		atomic_dec(&dev->num_cq);
		return -ENOMEM;
	}
	return 0;
}

static int create_cq(struct efasim_vdev *dev, struct efasim_vcq *cq,
		     const struct ib_cq_init_attr *attr)
{
	int err;

	err = check_cq(dev, &cq->ibcq, attr);
	if (err)
		return err;
	cq->mask = roundup_pow_of_two(attr->cqe) - 1;
	cq->ring = kvcalloc(cq->mask + 1, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	spin_lock_init(&cq->lock);
	cq->irq = IRQ_WORK_INIT_HARD(cq_event);
	INIT_LIST_HEAD(&cq->event);
	/* ib_alloc_cq() sets its handler later, so its queues get no events. */
	cq->has_events = cq->ibcq.comp_handler;
	cq->ibcq.cqe = cq->mask + 1;
	err = start_cq(dev, cq);
	if (err)
		kvfree(cq->ring);
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

int efasim_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct efasim_vdev *dev = to_vdev(ibcq->device);
	struct efasim_vcq *cq = to_vcq(ibcq);

	/* The driver takes no notice of a command that fails. */
	efasim_adm_nop(&dev->eng);
	mutex_lock(&dev->eng.lock);
	list_del_init(&cq->event);
	mutex_unlock(&dev->eng.lock);
	irq_work_sync(&cq->irq);
	atomic_dec(&dev->num_cq);
	kvfree(cq->ring);
	return 0;
}

/*
 * Entries of kernel queues have 16 bytes. Of a write's length they hold the lower
 * half; where the driver looks for the upper half the next entry has its request id,
 * of the ring's last lap if no later one.
 */
static u32 write_len(const struct efasim_vcq *cq, const struct efasim_cqe *cqe)
{
	const struct efasim_cqe *next = &cq->ring[(cq->cons + 1) & cq->mask];

	return (u16)cqe->length | (u32)(u16)READ_ONCE(next->req_id) << 16;
}

static void fill_recv(const struct efasim_vcq *cq, const struct efasim_cqe *cqe,
		      struct ib_wc *wc)
{
	bool write = cqe->op == EFASIM_OP_WRITE;

	wc->byte_len = write ? write_len(cq, cqe) : cqe->length;
	wc->opcode = write ? IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV;
	wc->src_qp = cqe->src_qpn;
	wc->sl = 0;
	wc->slid = cqe->ah;
	if (cqe->has_imm) {
		wc->ex.imm_data = cpu_to_be32(cqe->imm);
		wc->wc_flags |= IB_WC_WITH_IMM;
	}
}

/* Give the request id back; false if the queue pair never gave it out. */
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

static int poll_one(struct efasim_vcq *cq, struct ib_wc *wc)
{
	struct efasim_vdev *dev = to_vdev(cq->ibcq.device);
	const struct efasim_cqe *cqe;
	struct efasim_vqp *qp;
	int ret = 1;

	/* Pairs with efasim_dev_cqe(). */
	if (cq->cons == smp_load_acquire(&cq->prod))
		return 0;
	cqe = &cq->ring[cq->cons & cq->mask];
	qp = READ_ONCE(dev->qp_table[cqe->qpn & dev->qp_table_mask]);
	if (!qp || qp->ibqp.qp_num != cqe->qpn) {
		efasim_count(&dev->eng, EFASIM_S_cqe_of_dead_qp);
		ret = -EINVAL;
		goto out;
	}
	if (qp->serial != cqe->serial)
		efasim_count(&dev->eng, EFASIM_S_cqe_of_reused_qpn);

	/* Only what the driver sets: the rest is the caller's old news. */
	wc->status = wc_status[cqe->status];
	wc->vendor_err = cqe->status;
	wc->wc_flags = 0;
	wc->qp = &qp->ibqp;
	if (cqe->recv)
		fill_recv(cq, cqe, wc);
	else
		wc->opcode = send_opcode[cqe->op];
	if (!retire(cqe->recv ? &qp->rq : &qp->sq, cqe->req_id, wc)) {
		efasim_crash_avoided(&qp->ibqp,
				     "completion of a former queue pair");
		ret = -EINVAL;
	}
out:
	/* The device may use the entry again. */
	smp_store_release(&cq->cons, cq->cons + 1);
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

int efasim_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct efasim_vcq *cq = to_vcq(ibcq);
	int missed;

	if (flags & IB_CQ_SOLICITED)
		return -EOPNOTSUPP;
	atomic_set_release(&cq->armed, 1);
	if (!(flags & IB_CQ_REPORT_MISSED_EVENTS))
		return 0;
	/* Either the device sees the arming, or we see its entry. */
	smp_mb();
	spin_lock(&cq->lock);
	missed = cq->cons != READ_ONCE(cq->prod);
	spin_unlock(&cq->lock);
	return missed;
}
