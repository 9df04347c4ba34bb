// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs: create, modify, query, destroy. The checks and their errors are
 * those of Amazon's driver.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "verbs.h"

/* The driver frees queues deeper than this incorrectly. */
#define SAFE_DEPTH	512

static int check_cap(struct efasim_vdev *dev, const struct ib_qp_cap *cap)
{
	const struct efasim_limits *limits = &dev->eng.limits;

	if (cap->max_send_wr > limits->max_sq_depth ||
	    cap->max_recv_wr > limits->max_rq_depth ||
	    cap->max_send_sge > EFASIM_MAX_SGE ||
	    cap->max_recv_sge > EFASIM_MAX_SGE ||
	    cap->max_inline_data > EFASIM_INLINE_LEN)
		return -EINVAL;
	/* With 65536 descriptors a full receive queue would look empty. */
	return roundup_pow_of_two(max(cap->max_recv_wr * cap->max_recv_sge, 1U)) > 0x8000 ?
	       -EINVAL : 0;
}

static int check_attr(const struct ib_qp_init_attr *attr)
{
	if (attr->qp_type != EFA_QPT_SRD && attr->qp_type != IB_QPT_UD)
		return -EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq)
		return -EINVAL;
	if (attr->srq || attr->create_flags)
		return -EOPNOTSUPP;
	return 0;
}

static void size_queues(struct efasim_vdev *dev, struct efasim_vqp *qp,
			const struct ib_qp_cap *cap)
{
	u32 descs;

	qp->sq.max_wqes = roundup_pow_of_two(max(cap->max_send_wr,
						 dev->eng.limits.min_sq_depth));
	qp->sq.max_sge = cap->max_send_sge;
	qp->sq.queue_mask = qp->sq.max_wqes - 1;
	/* One descriptor per SGE. */
	descs = roundup_pow_of_two(cap->max_recv_sge * cap->max_recv_wr);
	qp->rq.max_sge = cap->max_recv_sge;
	qp->rq.queue_mask = descs - 1;
	qp->rq.max_wqes = descs / cap->max_recv_sge;
}

static void free_wq(struct efasim_vwq *wq)
{
	kvfree(wq->free_ids);
	kvfree(wq->wrid);
}

/* The caller initializes @lock, so that lockdep has separate classes for SQ and RQ. */
static int alloc_wq(struct efasim_vwq *wq)
{
	u32 i;

	wq->wrid = kvcalloc(wq->max_wqes, sizeof(*wq->wrid), GFP_KERNEL);
	wq->free_ids = kvcalloc(wq->max_wqes, sizeof(*wq->free_ids), GFP_KERNEL);
	if (!wq->wrid || !wq->free_ids) {
		free_wq(wq);
		return -ENOMEM;
	}
	for (i = 0; i < wq->max_wqes; i++)
		wq->free_ids[i] = i;
	return 0;
}

static int create_hw(struct efasim_vdev *dev, struct efasim_vqp *qp,
		     const struct ib_qp_init_attr *attr)
{
	struct efasim_qp_params params = {
		.type = attr->qp_type == IB_QPT_UD ? EFASIM_QP_UD :
						     EFASIM_QP_SRD,
		.pdn = to_vpd(qp->ibqp.pd)->pdn,
		.sq_depth = qp->sq.max_wqes,
		.rq_depth = qp->rq.queue_mask + 1,
		.rq_addr = qp->rq_ring.dma,
		.send_cq = to_vcq(attr->send_cq)->hw,
		.recv_cq = to_vcq(attr->recv_cq)->hw,
	};

	qp->hw = efasim_adm_create_qp(&dev->eng, &params);
	if (IS_ERR(qp->hw))
		return PTR_ERR(qp->hw);
	qp->ibqp.qp_num = qp->hw->qpn;
	qp->serial = qp->hw->serial;
	return 0;
}

/* Add or remove a queue pair as user of its rings. The caller locks both queues. */
static void count_users(struct efasim_vcq *send, struct efasim_vcq *recv, int by,
			struct efasim_vqp **slot)
{
	lockdep_assert_held(&send->lock);
	lockdep_assert_held(&recv->lock);
	send->sub[EFASIM_SUB_SEND].ref_cnt += by;
	recv->sub[recv->subs - 1].ref_cnt += by;
	if (slot)
		WRITE_ONCE(*slot, NULL);
}

/*
 * Softirqs are off, in which Amazon's driver differs: the EFA provider polls a queue under the lock
 * under which it posts, also in softirqs, so lockdep would report an inversion. There is none, as a
 * queue isn't polled while its queue pair is created or destroyed.
 */
static void lock_and_count(struct efasim_vcq *send, struct efasim_vcq *recv,
			   int by, struct efasim_vqp **slot)
{
	spin_lock_bh(&recv->lock);
	if (send == recv) {
		count_users(send, recv, by, slot);
	} else {
		/* Both locks are taken here only, by the one queue pair that uses both queues. */
		spin_lock_nested(&send->lock, SINGLE_DEPTH_NESTING);
		count_users(send, recv, by, slot);
		spin_unlock(&send->lock);
	}
	spin_unlock_bh(&recv->lock);
}

static struct efasim_vqp **slot_of(struct efasim_vdev *dev,
				   const struct ib_qp *ibqp)
{
	return &dev->qp_table[ibqp->qp_num & dev->qp_table_mask];
}

static void publish_qp(struct efasim_vdev *dev, struct efasim_vqp *qp,
		       const struct ib_qp_init_attr *attr)
{
	lock_and_count(to_vcq(attr->send_cq), to_vcq(attr->recv_cq), 1, NULL);
	spin_lock_bh(&dev->qp_table_lock);
	WRITE_ONCE(*slot_of(dev, &qp->ibqp), qp);
	spin_unlock_bh(&dev->qp_table_lock);
}

static int check_create(struct efasim_vdev *dev, struct ib_qp *ibqp,
			const struct ib_qp_init_attr *attr)
{
	int err;

	err = check_cap(dev, &attr->cap);
	if (err)
		return err;
	err = check_attr(attr);
	if (err)
		return err;
	if (!attr->cap.max_recv_wr || !attr->cap.max_recv_sge ||
	    !max(attr->cap.max_send_wr, dev->eng.limits.min_sq_depth)) {
		efasim_crash_avoided(ibqp, "a queue without entries or SGEs");
		return -EINVAL;
	}
	if (max(attr->cap.max_send_wr, attr->cap.max_recv_wr) > SAFE_DEPTH)
		ibdev_warn_ratelimited(ibqp->device,
				       "efa 3.1.0 frees a queue deeper than %u wrongly\n",
				       SAFE_DEPTH);
	return 0;
}

static int create_qp(struct efasim_vdev *dev, struct ib_qp *ibqp,
		     struct ib_qp_init_attr *attr)
{
	struct efasim_vqp *qp = to_vqp(ibqp);
	int err;

	err = check_create(dev, ibqp, attr);
	if (err)
		return err;
	size_queues(dev, qp, &attr->cap);
	spin_lock_init(&qp->sq.lock);
	spin_lock_init(&qp->rq.lock);
	err = alloc_wq(&qp->sq);
	if (err)
		return err;
	err = alloc_wq(&qp->rq);
	if (err)
		goto err_free_sq;
	err = efasim_ring_alloc(dev, &qp->rq_ring, (qp->rq.queue_mask + 1) *
				sizeof(struct efasim_rx_desc), DMA_TO_DEVICE);
	if (err)
		goto err_free_rq;
	err = create_hw(dev, qp, attr);
	if (err)
		goto err_free_ring;
	qp->cap = attr->cap;
	qp->max_inline = attr->cap.max_inline_data;
	qp->sig_type = attr->sq_sig_type;
	publish_qp(dev, qp, attr);
	return 0;

err_free_ring:
	efasim_ring_free(dev, &qp->rq_ring);
err_free_rq:
	free_wq(&qp->rq);
err_free_sq:
	free_wq(&qp->sq);
	return err;
}

int efasim_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		     struct ib_udata *udata)
{
	struct efasim_vdev *dev = to_vdev(ibqp->device);
	int err = create_qp(dev, ibqp, attr);

	if (err)
		efasim_count(&dev->eng, EFASIM_S_create_qp_err);
	return err;
}

#define MODIFY_MASK \
	(IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY | \
	 IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY | IB_QP_SQ_PSN | \
	 IB_QP_RNR_RETRY)

/* SRD has the state transitions of UD, and a retry counter from RTR to RTS. */
static bool transition_ok(struct efasim_vqp *qp, enum ib_qp_state cur,
			  enum ib_qp_state new, int mask)
{
	if (qp->ibqp.qp_type == EFA_QPT_SRD && cur == IB_QPS_RTR &&
	    new == IB_QPS_RTS)
		mask &= ~IB_QP_RNR_RETRY;
	return ib_modify_qp_is_ok(cur, new, IB_QPT_UD, mask);
}

static int check_modify(struct efasim_vqp *qp, const struct ib_qp_attr *attr,
			int mask, enum ib_qp_state cur, enum ib_qp_state new)
{
	if (mask & ~MODIFY_MASK)
		return -EOPNOTSUPP;
	if (!transition_ok(qp, cur, new, mask))
		return -EINVAL;
	if (mask & IB_QP_PORT && attr->port_num != 1)
		return -EOPNOTSUPP;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EOPNOTSUPP;
	return 0;
}

int efasim_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata)
{
	struct efasim_vqp *qp = to_vqp(ibqp);
	enum ib_qp_state cur, new;
	struct efasim_qp_modify mod = {
		.qkey = attr->qkey,
		.sq_psn = attr->sq_psn,
		.rnr_retry = attr->rnr_retry,
	};
	int err;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	new = mask & IB_QP_STATE ? attr->qp_state : cur;
	err = check_modify(qp, attr, mask, cur, new);
	if (err)
		return err;

	if (mask & IB_QP_STATE)
		mod.mask |= EFASIM_MODIFY_STATE;
	if (mask & IB_QP_QKEY)
		mod.mask |= EFASIM_MODIFY_QKEY;
	if (mask & IB_QP_SQ_PSN)
		mod.mask |= EFASIM_MODIFY_PSN;
	if (mask & IB_QP_RNR_RETRY)
		mod.mask |= EFASIM_MODIFY_RNR;
	mod.state = (enum efasim_qp_state)new;
	err = efasim_adm_modify_qp(qp->hw, &mod);
	if (err)
		return err;
	WRITE_ONCE(qp->state, new);
	return 0;
}

#define QUERY_MASK \
	(IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY | \
	 IB_QP_SQ_PSN | IB_QP_CAP | IB_QP_RNR_RETRY)

int efasim_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init_attr)
{
	struct efasim_vqp *qp = to_vqp(ibqp);
	struct efasim_qp_modify now = { };
	int err;

	if (mask & ~QUERY_MASK)
		return -EOPNOTSUPP;
	memset(attr, 0, sizeof(*attr));
	memset(init_attr, 0, sizeof(*init_attr));
	err = efasim_adm_query_qp(qp->hw, &now);
	if (err)
		return err;
	attr->qp_state = (enum ib_qp_state)now.state;
	attr->qkey = now.qkey;
	attr->sq_psn = now.sq_psn;
	attr->rnr_retry = now.rnr_retry;
	attr->port_num = 1;
	attr->cap = qp->cap;
	init_attr->qp_type = ibqp->qp_type;
	init_attr->send_cq = ibqp->send_cq;
	init_attr->recv_cq = ibqp->recv_cq;
	init_attr->qp_context = ibqp->qp_context;
	init_attr->cap = attr->cap;
	return 0;
}

/*
 * Keep completions of the queue pair from being polled from now on. As in the driver the
 * slot is cleared even if the number was reused meanwhile.
 */
static void unpublish_qp(struct efasim_vdev *dev, struct ib_qp *ibqp)
{
	spin_lock_bh(&dev->qp_table_lock);
	lock_and_count(to_vcq(ibqp->send_cq), to_vcq(ibqp->recv_cq), -1,
		       slot_of(dev, ibqp));
	spin_unlock_bh(&dev->qp_table_lock);
}

static void free_queues(struct efasim_vdev *dev, struct efasim_vqp *qp)
{
	free_wq(&qp->sq);
	free_wq(&qp->rq);
	efasim_ring_free(dev, &qp->rq_ring);
}

int efasim_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct efasim_vdev *dev = to_vdev(ibqp->device);
	struct efasim_vqp *qp = to_vqp(ibqp);
	int err;

	/* Free nothing that the device may still use. */
	err = efasim_adm_destroy_qp(qp->hw);
	if (err)
		return err;

	unpublish_qp(dev, ibqp);
	free_queues(dev, qp);
	return 0;
}

/* Free the queue pairs of a stopped device that could not be destroyed. */
void efasim_release_qps(struct efasim_vdev *dev)
{
	u32 slot;

	for (slot = 0; slot <= dev->qp_table_mask; slot++)
		if (dev->qp_table[slot])
			free_queues(dev, dev->qp_table[slot]);
}
