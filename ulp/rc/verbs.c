// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues, queue pairs, regions and work requests: see rdma.h. */
#include <linux/etherdevice.h>
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include "rdma.h"

/* --- protection domains --- */

static int krc_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int krc_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

/* --- completion queues --- */

static void krc_cq_work(struct work_struct *work);

static int krc_create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr,
			 struct compat_create_cq_arg *arg)
{
	struct krc_cq *cq = to_krc_cq(ib);

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > KRC_CQE)
		return -EINVAL;
	spin_lock_init(&cq->lock);
	mutex_init(&cq->grow);
	INIT_WORK(&cq->work, krc_cq_work);
	cq->entries = attr->cqe;
	cq->size = roundup_pow_of_two(attr->cqe);
	cq->ring = kvcalloc(cq->size, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	ib->cqe = attr->cqe;
	/* The core sets it only for ib_alloc_cq(). */
	ib->comp_vector = attr->comp_vector;
	return 0;
}

static int krc_destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	struct krc_cq *cq = to_krc_cq(ib);

	cancel_work_sync(&cq->work);
	mutex_destroy(&cq->grow);
	kvfree(cq->ring);
	return 0;
}

static struct ib_wc *krc_wc_at(const struct krc_cq *cq, u32 i)
{
	return &cq->ring[i & (cq->size - 1)];
}

static int krc_poll_cq(struct ib_cq *ib, int num, struct ib_wc *wc)
{
	struct krc_cq *cq = to_krc_cq(ib);
	unsigned long flags;
	int n;

	spin_lock_irqsave(&cq->lock, flags);
	for (n = 0; n < num && cq->tail != cq->head; n++)
		wc[n] = *krc_wc_at(cq, cq->tail++);
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

static int krc_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags notify)
{
	struct krc_cq *cq = to_krc_cq(ib);
	unsigned long flags;
	bool missed;

	spin_lock_irqsave(&cq->lock, flags);
	cq->armed = true;
	cq->armed_at = cq->head;
	missed = cq->tail != cq->head;
	spin_unlock_irqrestore(&cq->lock, flags);
	return missed && notify & IB_CQ_REPORT_MISSED_EVENTS;
}

/* Add a completion. @c is the locked connection. */
static void krc_cq_add(struct krc_conn *c, struct krc_cq *cq, const struct ib_wc *wc)
{
	unsigned long flags;
	bool full;

	spin_lock_irqsave(&cq->lock, flags);
	full = cq->head - cq->tail >= cq->size;
	if (!full)
		*krc_wc_at(cq, cq->head++) = *wc;
	spin_unlock_irqrestore(&cq->lock, flags);
	if (likely(!full))
		return;
	/* The ULP has posted more work requests than it polls completions. */
	WRITE_ONCE(cq->overrun, true);
	krc_stop_locked(c, KRC_BY_REQUEST, -EOVERFLOW);
	queue_work(krc_wq, &cq->work);
}

/* Remove completions of a queue pair, whose ULP may have freed what they refer to. */
static void krc_cq_purge(struct krc_cq *cq, const struct ib_qp *qp)
{
	unsigned long flags;
	u32 from, to;

	spin_lock_irqsave(&cq->lock, flags);
	for (from = cq->tail, to = cq->tail; from != cq->head; from++)
		if (krc_wc_at(cq, from)->qp != qp)
			*krc_wc_at(cq, to++) = *krc_wc_at(cq, from);
	cq->head = to;
	cq->armed_at = cq->tail;
	spin_unlock_irqrestore(&cq->lock, flags);
}

/* There are completions, and one of them has come since the queue was armed. */
static bool krc_cq_due(const struct krc_cq *cq)
{
	return cq->armed && cq->head != cq->tail && cq->head != cq->armed_at;
}

/*
 * Call the ULP's handler, in process or softirq context, never concurrently for one queue. It may
 * schedule a softirq, which runs when softirqs are enabled again, or when this one is over. That
 * one polls the queue and arms it, and another one of the same CPU may add completions at once. So
 * they are enabled last: otherwise the loop could go on for as long as completions come.
 */
static void krc_cq_notify(struct krc_cq *cq)
{
	if (!READ_ONCE(cq->armed))
		return;
	local_bh_disable();
	spin_lock_irq(&cq->lock);
	while (krc_cq_due(cq) && !cq->calling) {
		cq->armed = false;
		cq->calling = true;
		spin_unlock_irq(&cq->lock);
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
		spin_lock_irq(&cq->lock);
		cq->calling = false;
	}
	spin_unlock_irq(&cq->lock);
	local_bh_enable();
}

static void krc_cq_overrun(struct krc_cq *cq)
{
	struct ib_event event = {
		.device = cq->ib.device, .element.cq = &cq->ib, .event = IB_EVENT_CQ_ERR,
	};

	if (cmpxchg(&cq->overrun, true, false) && cq->ib.event_handler)
		cq->ib.event_handler(&event, cq->ib.cq_context);
}

static void krc_cq_work(struct work_struct *work)
{
	struct krc_cq *cq = container_of(work, struct krc_cq, work);

	krc_cq_overrun(cq);
	krc_cq_notify(cq);
}

/* A handler must not be called by the ULP's own call, which may hold locks that it takes. */
static void krc_cq_notify_later(struct krc_cq *cq)
{
	/* The lock orders this after the completions that the call has added. */
	if (READ_ONCE(cq->armed) && READ_ONCE(cq->head) != READ_ONCE(cq->tail))
		queue_work(krc_wq, &cq->work);
}

/* --- completions of the engine --- */

static enum ib_wc_status krc_wc_status(int err)
{
	switch (err) {
	case 0:
		return IB_WC_SUCCESS;
	case -ECANCELED:
		return IB_WC_WR_FLUSH_ERR;
	case -EREMOTEIO:
		return IB_WC_REM_ACCESS_ERR;
	case -EINVAL:
		return IB_WC_LOC_QP_OP_ERR;
	case -ETIMEDOUT:
		return IB_WC_RNR_RETRY_EXC_ERR;
	}
	return IB_WC_RETRY_EXC_ERR;
}

/**
 * krc_up_sent() - complete a work request of a send queue
 * @c: the connection, locked
 * @w: the work request
 * @err: 0 or a negative errno
 */
void krc_up_sent(struct krc_conn *c, const struct krc_swr *w, int err)
{
	struct krc_qp *qp = krc_qp_of(c);
	const struct ib_wc wc = {
		.wr_id		= w->id,
		.status		= krc_wc_status(err),
		.opcode		= w->code,
		.byte_len	= w->total,
		.qp		= &qp->ib,
	};

	krc_cq_add(c, to_krc_cq(qp->ib.send_cq), &wc);
}

/**
 * krc_up_received() - complete a receive
 * @c: the connection, locked
 * @r: the receive
 * @err: 0 or a negative errno
 */
void krc_up_received(struct krc_conn *c, const struct krc_rwr *r, int err)
{
	struct krc_qp *qp = krc_qp_of(c);
	struct ib_wc wc = {
		.wr_id		= r->id,
		.status		= krc_wc_status(err),
		.opcode		= IB_WC_RECV,
		.byte_len	= r->bytes,
		.qp		= &qp->ib,
	};

	if (r->inv) {
		wc.wc_flags = IB_WC_WITH_INVALIDATE;
		wc.ex.invalidate_rkey = r->key;
	}
	krc_cq_add(c, to_krc_cq(qp->ib.recv_cq), &wc);
}

/**
 * krc_up_notify() - call the handlers of a connection's completion queues
 * @c: the connection, with a reference of the caller's
 *
 * Context: Process or softirq, without locks of the ULP.
 */
void krc_up_notify(struct krc_conn *c)
{
	struct krc_qp *qp = krc_qp_of(c);

	krc_cq_notify(to_krc_cq(qp->ib.send_cq));
	if (qp->ib.recv_cq != qp->ib.send_cq)
		krc_cq_notify(to_krc_cq(qp->ib.recv_cq));
}

/**
 * krc_up_notify_later() - have the handlers of a connection's completion queues called
 * @c: the connection, with a reference of the caller's
 *
 * Context: Any.
 */
void krc_up_notify_later(struct krc_conn *c)
{
	struct krc_qp *qp = krc_qp_of(c);

	krc_cq_notify_later(to_krc_cq(qp->ib.send_cq));
	if (qp->ib.recv_cq != qp->ib.send_cq)
		krc_cq_notify_later(to_krc_cq(qp->ib.recv_cq));
}

/* --- queue pairs --- */

/*
 * A flush completes every work request, and ULPs size their queues for less. So the ring grows by
 * all that a queue pair can have. Return: 0 or -ENOMEM.
 */
static int krc_cq_grow(struct krc_cq *cq, u32 entries)
{
	struct ib_wc *ring, *old;
	unsigned long flags;
	u32 size, i;

	mutex_lock(&cq->grow);
	cq->entries += entries;
	size = roundup_pow_of_two(cq->entries);
	if (size <= cq->size) {
		mutex_unlock(&cq->grow);
		return 0;
	}
	ring = kvcalloc(size, sizeof(*ring), GFP_KERNEL);
	if (!ring) {
		cq->entries -= entries;
		mutex_unlock(&cq->grow);
		return -ENOMEM;
	}
	spin_lock_irqsave(&cq->lock, flags);
	for (i = cq->tail; i != cq->head; i++)
		ring[i & (size - 1)] = *krc_wc_at(cq, i);
	old = cq->ring;
	cq->ring = ring;
	cq->size = size;
	spin_unlock_irqrestore(&cq->lock, flags);
	mutex_unlock(&cq->grow);
	kvfree(old);
	return 0;
}

static void krc_cq_shrink(struct krc_cq *cq, u32 entries)
{
	mutex_lock(&cq->grow);
	cq->entries -= entries;
	mutex_unlock(&cq->grow);
}

static bool krc_qp_ok(const struct ib_qp_init_attr *attr)
{
	const struct ib_qp_cap *cap = &attr->cap;

	return cap->max_send_wr && cap->max_send_wr <= KRC_QP_WR && cap->max_recv_wr <= KRC_QP_WR &&
	       cap->max_send_sge <= KRC_SEND_SGES && cap->max_recv_sge <= KRC_RECV_SGES &&
	       !cap->max_inline_data && attr->send_cq && attr->recv_cq;
}

/*
 * A user of rdma_cm names the queue pair that a connection is for, and nobody knows whether it is
 * the user's. So numbers are random. Number 1 is another kind of queue pair. Return: 0 or -ENOMEM.
 */
static int krc_qp_add(struct krc_link *link, struct krc_qp *qp)
{
	int ret;

	do {
		qp->ib.qp_num = get_random_u32() & KRC_QPN_MAX;
		ret = qp->ib.qp_num < 2 ? -EBUSY :
		      xa_insert_irq(&link->qpns, qp->ib.qp_num, qp, GFP_KERNEL);
	} while (ret == -EBUSY);
	return ret;
}

static int krc_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct krc_link *link = to_krc_link(ib->device);
	struct krc_qp *qp = to_krc_qp(ib);
	const struct krc_conn_attr conn = {
		.mrs = &link->mrs, .pd = ib->pd, .sends = attr->cap.max_send_wr,
		.send_sges = max(attr->cap.max_send_sge, 1U), .recvs = attr->cap.max_recv_wr,
	};
	int ret;

	if (attr->qp_type != IB_QPT_RC || attr->create_flags || attr->srq || udata)
		return -EOPNOTSUPP;
	if (!krc_qp_ok(attr))
		return -EINVAL;
	qp->cap = attr->cap;
	qp->signal_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	ret = krc_cq_grow(to_krc_cq(ib->send_cq), attr->cap.max_send_wr);
	if (ret)
		return ret;
	ret = krc_cq_grow(to_krc_cq(ib->recv_cq), attr->cap.max_recv_wr);
	if (ret)
		goto err_send;
	ret = krc_conn_init(&qp->c, &conn);
	if (ret)
		goto err_recv;
	ret = krc_qp_add(link, qp);
	if (ret)
		goto err_conn;
	spin_lock(&link->lock);
	list_add(&qp->list, &link->qps);
	spin_unlock(&link->lock);
	return 0;

err_conn:
	krc_conn_fini(&qp->c);
err_recv:
	krc_cq_shrink(to_krc_cq(ib->recv_cq), attr->cap.max_recv_wr);
err_send:
	krc_cq_shrink(to_krc_cq(ib->send_cq), attr->cap.max_send_wr);
	return ret;
}

/* Nothing refers to the connection's queue any more: put the device. */
static void krc_qp_put_net(struct krc_qp *qp)
{
	if (!qp->net)
		return;
	if (qp->credits)
		kulp_credits_give(qp->c.queue->kulp, qp->credits);
	kulp_peer_put(qp->net->fabric, qp->peer);
	krc_net_put(qp->net);
}

static int krc_destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct krc_link *link = to_krc_link(ib->device);
	struct krc_qp *qp = to_krc_qp(ib);

	spin_lock(&link->lock);
	list_del(&qp->list);
	spin_unlock(&link->lock);
	xa_erase_irq(&link->qpns, ib->qp_num);
	/* In the meantime the connection ends. */
	krc_stop(&qp->c, KRC_BY_ULP, 0);
	/* iw_cm may have found it by its number, and be about to take a reference. */
	synchronize_rcu();
	krc_conn_fini(&qp->c);
	krc_cq_purge(to_krc_cq(ib->send_cq), ib);
	krc_cq_purge(to_krc_cq(ib->recv_cq), ib);
	/*
	 * ib_core cancels what a handler has queued before it destroys the completion queue, so
	 * none may be called after that. A post may have left this to these.
	 */
	flush_work(&to_krc_cq(ib->send_cq)->work);
	flush_work(&to_krc_cq(ib->recv_cq)->work);
	krc_cq_shrink(to_krc_cq(ib->send_cq), qp->cap.max_send_wr);
	krc_cq_shrink(to_krc_cq(ib->recv_cq), qp->cap.max_recv_wr);
	krc_qp_put_net(qp);
	return 0;
}

static int krc_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
			 struct ib_udata *udata)
{
	if (mask & IB_QP_STATE && (attr->qp_state == IB_QPS_ERR || attr->qp_state == IB_QPS_SQD))
		krc_stop(&to_krc_qp(ib)->c, KRC_BY_ULP, 0);
	return 0;
}

static enum ib_qp_state krc_qp_state(const struct krc_conn *c)
{
	static const enum ib_qp_state states[] = {
		[KRC_NEW]	= IB_QPS_INIT,
		[KRC_OPEN]	= IB_QPS_RTS,
		[KRC_LIVE]	= IB_QPS_RTS,
		[KRC_STOPPED]	= IB_QPS_ERR,
		[KRC_FENCED]	= IB_QPS_ERR,
	};

	return states[READ_ONCE(c->state)];
}

static int krc_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
			struct ib_qp_init_attr *init)
{
	struct krc_qp *qp = to_krc_qp(ib);

	attr->qp_state = krc_qp_state(&qp->c);
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->cap;
	attr->max_rd_atomic = qp->c.ord;
	attr->max_dest_rd_atomic = qp->c.ird;
	init->qp_type = ib->qp_type;
	init->send_cq = ib->send_cq;
	init->recv_cq = ib->recv_cq;
	init->cap = qp->cap;
	return 0;
}

/* --- work requests --- */

/*
 * Copy pieces of memory: neighbours become one, since ULPs have a piece for each page. Return: the
 * number of pieces, or -EINVAL.
 */
static int krc_fill_sges(struct krc_sge *to, const struct ib_sge *from, int nfrom, u32 *total)
{
	const struct ib_sge *end = from + nfrom;
	struct krc_sge *next = to;
	u64 addr, sum = 0, past = 0;
	u32 len, key;

	for (; from < end; from++) {
		addr = from->addr;
		len = from->length;
		key = from->lkey;
		if (addr == past && next > to && key == next[-1].key)
			next[-1].len += len;
		else
			*next++ = (struct krc_sge) { .addr = addr, .len = len, .key = key };
		past = addr + len;
		sum += len;
	}
	/* A length that was too long for a piece is too long for all of them. */
	if (sum > KRC_TOTAL_MAX)
		return -EINVAL;
	*total = sum;
	return next - to;
}

static u32 krc_access(int access)
{
	return (access & IB_ACCESS_LOCAL_WRITE ? KRC_ACCESS_LOCAL_WRITE : 0) |
	       (access & IB_ACCESS_REMOTE_WRITE ? KRC_ACCESS_REMOTE_WRITE : 0) |
	       (access & IB_ACCESS_REMOTE_READ ? KRC_ACCESS_REMOTE_READ : 0);
}

static void krc_fill_reg(struct krc_swr *w, const struct ib_send_wr *wr)
{
	const struct ib_reg_wr *reg = reg_wr(wr);
	struct krc_region *region = container_of(reg->mr, struct krc_region, ib);

	/* The ULP may have changed the address since the pages were mapped. */
	w->map = (struct krc_mr_map) {
		.iova	= reg->mr->iova,
		.length	= reg->mr->length,
		.shift	= ilog2(reg->mr->page_size),
		.access	= krc_access(reg->access),
		.key	= reg->key,
		.nr	= krc_mr_mapping(&region->mr),
	};
}

static const struct {
	u8	op;
	u8	code;
	bool	known;
	bool	inv;
} krc_opcodes[] = {
	[IB_WR_SEND]		   = { KRC_OP_SEND, IB_WC_SEND, true },
	[IB_WR_SEND_WITH_INV]	   = { KRC_OP_SEND, IB_WC_SEND, true, true },
	[IB_WR_RDMA_WRITE]	   = { KRC_OP_WRITE, IB_WC_RDMA_WRITE, true },
	[IB_WR_RDMA_READ]	   = { KRC_OP_READ, IB_WC_RDMA_READ, true },
	[IB_WR_RDMA_READ_WITH_INV] = { KRC_OP_READ, IB_WC_RDMA_READ, true, true },
	[IB_WR_LOCAL_INV]	   = { KRC_OP_INVAL, IB_WC_LOCAL_INV, true },
	[IB_WR_REG_MR]		   = { KRC_OP_REG, IB_WC_REG_MR, true },
};

/* Return: 0 or -EINVAL. */
static int krc_fill_op(struct krc_swr *w, const struct ib_send_wr *wr)
{
	switch (w->op) {
	case KRC_OP_SEND:
		w->key = wr->ex.invalidate_rkey;
		break;
	case KRC_OP_WRITE:
	case KRC_OP_READ:
		w->key = rdma_wr(wr)->rkey;
		w->raddr = rdma_wr(wr)->remote_addr;
		return w->op == KRC_OP_WRITE || w->nsge == 1 ? 0 : -EINVAL;
	case KRC_OP_INVAL:
		w->key = wr->ex.invalidate_rkey;
		break;
	case KRC_OP_REG:
		krc_fill_reg(w, wr);
		break;
	}
	return 0;
}

static int krc_fill(struct krc_qp *qp, struct krc_swr *w, const struct ib_send_wr *wr)
{
	int n;

	if (wr->opcode >= ARRAY_SIZE(krc_opcodes) || !krc_opcodes[wr->opcode].known ||
	    wr->num_sge > qp->cap.max_send_sge || wr->send_flags & IB_SEND_INLINE)
		return -EINVAL;
	w->id = wr->wr_id;
	w->op = krc_opcodes[wr->opcode].op;
	w->code = krc_opcodes[wr->opcode].code;
	if (wr->send_flags & IB_SEND_SIGNALED || qp->signal_all)
		w->flags |= KRC_F_SIGNALED;
	if (wr->send_flags & IB_SEND_FENCE)
		w->flags |= KRC_F_FENCE;
	if (krc_opcodes[wr->opcode].inv)
		w->flags |= KRC_F_INV;
	n = krc_fill_sges(w->sge, wr->sg_list, wr->num_sge, &w->total);
	if (n < 0)
		return n;
	w->nsge = n;
	return krc_fill_op(w, wr);
}

static int krc_add_send(struct krc_qp *qp, const struct ib_send_wr *wr)
{
	struct krc_conn *c = &qp->c;
	struct krc_swr *w;
	int ret;

	/* A drain posts to a queue pair that was never connected, but is in error. */
	if (c->state == KRC_NEW)
		return -EINVAL;
	w = krc_sq_next(c);
	if (!w)
		return -ENOMEM;
	ret = krc_fill(qp, w, wr);
	if (!ret)
		c->head++;
	return ret;
}

static int krc_post_send(struct ib_qp *ib, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad)
{
	struct krc_qp *qp = to_krc_qp(ib);
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&qp->c.lock, flags);
	/* When the last one is complete, another thread of the ULP may destroy the queue pair. */
	krc_conn_get(&qp->c);
	for (; wr; wr = wr->next) {
		ret = krc_add_send(qp, wr);
		if (ret)
			break;
	}
	spin_unlock_irqrestore(&qp->c.lock, flags);
	*bad = wr;
	krc_conn_push(&qp->c);
	krc_conn_put(&qp->c);
	return ret;
}

static int krc_add_recv(struct krc_qp *qp, const struct ib_recv_wr *wr)
{
	struct krc_rwr r = { .id = wr->wr_id };
	int i, n;

	if (wr->num_sge > qp->cap.max_recv_sge)
		return -EINVAL;
	n = krc_fill_sges(r.sge, wr->sg_list, wr->num_sge, &r.room);
	if (n < 0)
		return n;
	r.nsge = n;
	for (i = 0; i < n; i++)
		if (r.sge[i].key)
			return -EINVAL;
	return krc_rq_add(&qp->c, &r);
}

static int krc_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad)
{
	struct krc_qp *qp = to_krc_qp(ib);
	struct krc_conn *c = &qp->c;
	unsigned long flags;
	bool push;
	int ret = 0;

	spin_lock_irqsave(&c->lock, flags);
	for (; wr; wr = wr->next) {
		ret = krc_add_recv(qp, wr);
		if (ret)
			break;
	}
	push = c->state == KRC_FENCED || (c->state == KRC_LIVE && krc_credit_due(c));
	if (push)
		krc_conn_get(c);
	spin_unlock_irqrestore(&c->lock, flags);
	*bad = wr;
	if (push) {
		krc_conn_push(c);
		krc_conn_put(c);
	}
	return ret;
}

/* --- regions --- */

static struct ib_mr *krc_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_sg)
{
	struct krc_region *region;
	int ret;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_sg || max_sg > KRC_MR_PAGES)
		return ERR_PTR(-EINVAL);
	region = kzalloc(sizeof(*region), GFP_KERNEL);
	if (!region)
		return ERR_PTR(-ENOMEM);
	ret = krc_mr_init(&region->mr, &to_krc_link(pd->device)->mrs, pd, max_sg);
	if (ret) {
		kfree(region);
		return ERR_PTR(ret);
	}
	region->ib.lkey = KRC_KEY(region->mr.index, 0);
	region->ib.rkey = region->ib.lkey;
	return &region->ib;
}

static int krc_dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct krc_region *region = container_of(ib, struct krc_region, ib);

	krc_mr_fini(&region->mr);
	kfree_rcu(region, rcu);
	return 0;
}

static int krc_set_page(struct ib_mr *ib, u64 addr)
{
	return krc_mr_map_page(&container_of(ib, struct krc_region, ib)->mr, addr);
}

static int krc_map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int nents,
			 unsigned int *offset)
{
	struct krc_mr *mr = &container_of(ib, struct krc_region, ib)->mr;
	int n;

	krc_mr_map_begin(mr);
	n = ib_sg_to_pages(ib, sg, nents, offset, krc_set_page);
	krc_mr_map_end(mr);
	/* Peers need no kernel address, only the offset in the first page. */
	ib->iova &= ib->page_size - 1;
	return n;
}

/* ib_core requires these two of every device that kernel users see. */
static struct ib_mr *krc_get_dma_mr(struct ib_pd *pd, int access)
{
	pr_warn_once("kofi_rc: a key for all memory isn't offered: load the ULP with register_always=Y\n");
	return ERR_PTR(-EOPNOTSUPP);
}

static struct ib_mr *krc_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
				     int access, COMPAT_DMAH_ARG struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

/* --- the device --- */

static int krc_query_device(struct ib_device *ib, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	*attr = (struct ib_device_attr) {
		.device_cap_flags	= IB_DEVICE_MEM_MGT_EXTENSIONS,
		.kernel_cap_flags	= IBK_LOCAL_DMA_LKEY | IBK_ALLOW_USER_UNREG,
		.sys_image_guid		= ib->node_guid,
		.max_mr_size		= ~0ULL,
		.page_size_cap		= SZ_2M - PAGE_SIZE,
		.max_qp			= 65536,
		.max_qp_wr		= KRC_QP_WR,
		.max_send_sge		= KRC_SEND_SGES,
		.max_recv_sge		= KRC_RECV_SGES,
		.max_sge_rd		= 1,
		.max_cq			= 65536,
		.max_cqe		= KRC_CQE,
		.max_mr			= KRC_INDEX_MAX,
		.max_pd			= 65536,
		.max_qp_rd_atom		= KRC_READS_MAX,
		.max_qp_init_rd_atom	= KRC_READS_MAX,
		.max_res_rd_atom	= KRC_READS_MAX * 65536,
		.max_fast_reg_page_list_len = KRC_MR_PAGES,
	};
	return 0;
}

static int krc_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct krc_link *link = to_krc_link(ib);
	bool up = READ_ONCE(link->up);

	attr->gid_tbl_len = 1;
	attr->max_msg_sz = KRC_TOTAL_MAX;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	/* The speed of the device of kOFI isn't known: that of a link is shown instead. */
	attr->active_speed = IB_SPEED_EDR;
	attr->active_width = IB_WIDTH_4X;
	return 0;
}

static int krc_query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	memcpy(gid->raw, to_krc_link(ib)->mac, ETH_ALEN);
	return 0;
}

static int krc_get_port_immutable(struct ib_device *ib, u32 port,
				  struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = 1;
	immutable->core_cap_flags = RDMA_CORE_PORT_IWARP;
	return 0;
}

const struct ib_device_ops krc_verbs_ops = {
	.owner			= THIS_MODULE,
	.driver_id		= RDMA_DRIVER_UNKNOWN,
	.alloc_pd		= krc_alloc_pd,
	.dealloc_pd		= krc_dealloc_pd,
	.create_cq		= krc_create_cq,
	.destroy_cq		= krc_destroy_cq,
	.poll_cq		= krc_poll_cq,
	.req_notify_cq		= krc_req_notify_cq,
	.create_qp		= krc_create_qp,
	.destroy_qp		= krc_destroy_qp,
	.modify_qp		= krc_modify_qp,
	.query_qp		= krc_query_qp,
	.post_send		= krc_post_send,
	.post_recv		= krc_post_recv,
	.alloc_mr		= krc_alloc_mr,
	.dereg_mr		= krc_dereg_mr,
	.map_mr_sg		= krc_map_mr_sg,
	.get_dma_mr		= krc_get_dma_mr,
	.reg_user_mr		= krc_reg_user_mr,
	.query_device		= krc_query_device,
	.query_port		= krc_query_port,
	.query_gid		= krc_query_gid,
	.get_port_immutable	= krc_get_port_immutable,
	INIT_RDMA_OBJ_SIZE(ib_pd, krc_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, krc_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, krc_qp, ib),
};
