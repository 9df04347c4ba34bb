// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An endpoint: a queue pair and its objects, by the rules of the device. One
 * CQ for both directions, created with a handler; posts and polls in process
 * context with bottom halves off; every CPU access to the buffer between syncs.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "conformance.h"

static void ep_event(struct ib_cq *cq, void *ctx)
{
	struct ep *ep = ctx;

	ep->hard_irq = in_hardirq();
	atomic_inc(&ep->events);
	wake_up(&ep->wait);
}

static struct ib_cq *new_cq(struct ep *ep, const struct ep_opts *opts)
{
	struct ib_cq_init_attr attr = { .cqe = 2 * opts->depth };
	struct ib_cq *cq;

	if (!opts->no_handler)
		return ib_create_cq(ep->dev, ep_event, NULL, ep, &attr);
	cq = ib_create_cq(ep->dev, NULL, NULL, ep, &attr);
	/* Set the handler after the creation, as ib_alloc_cq() does. */
	if (!IS_ERR(cq))
		cq->comp_handler = ep_event;
	return cq;
}

static struct ib_qp *new_qp(struct ep *ep, const struct ep_opts *opts)
{
	struct ib_qp_init_attr attr = {
		.qp_type = opts->type ?: EFA_QPT_SRD,
		.send_cq = ep->cq,
		.recv_cq = ep->cq,
		.sq_sig_type = opts->signal_all ? IB_SIGNAL_ALL_WR :
						  IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = opts->depth,
			.max_recv_wr = opts->depth,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = opts->inline_len,
		},
	};

	return ib_create_qp(ep->pd, &attr);
}

/* Create another queue pair on the endpoint's completion queue. The caller destroys it. */
struct ib_qp *ep_another_qp(struct ep *ep)
{
	return new_qp(ep, &(struct ep_opts) { .depth = 1 });
}

/* Make one state transition, with the attributes that it needs. */
int ep_modify(struct ep *ep, enum ib_qp_state state, u8 rnr_retry)
{
	struct ib_qp_attr attr = {
		.qp_state = state,
		.port_num = 1,
		.qkey = ep->qkey,
		.sq_psn = 1,
		.rnr_retry = rnr_retry,
	};
	int mask = IB_QP_STATE;

	if (state == IB_QPS_INIT)
		mask |= IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY;
	if (state == IB_QPS_RTS)
		mask |= IB_QP_SQ_PSN;
	if (state == IB_QPS_RTS && ep->qp->qp_type == EFA_QPT_SRD)
		mask |= IB_QP_RNR_RETRY;
	return ib_modify_qp(ep->qp, &attr, mask);
}

int ep_to_rts(struct ep *ep, u8 rnr_retry)
{
	return ep_modify(ep, IB_QPS_INIT, 0) ?:
	       ep_modify(ep, IB_QPS_RTR, 0) ?:
	       ep_modify(ep, IB_QPS_RTS, rnr_retry);
}

static int open_buffer(struct ep *ep)
{
	ep->buf = kzalloc(ep->size, GFP_KERNEL);
	if (!ep->buf)
		return -ENOMEM;
	ep->dma = ib_dma_map_single(ep->dev, ep->buf, ep->size,
				    DMA_BIDIRECTIONAL);
	if (!ib_dma_mapping_error(ep->dev, ep->dma))
		return 0;
	kfree(ep->buf);
	ep->buf = NULL;
	return -ENOMEM;
}

static int open_queues(struct ep *ep, const struct ep_opts *opts)
{
	ep->pd = ib_alloc_pd(ep->dev, 0);
	if (IS_ERR(ep->pd))
		return PTR_ERR(ep->pd);
	ep->cq = new_cq(ep, opts);
	if (IS_ERR(ep->cq))
		return PTR_ERR(ep->cq);
	ep->qp = new_qp(ep, opts);
	if (IS_ERR(ep->qp))
		return PTR_ERR(ep->qp);
	return opts->stay_reset ? 0 : ep_to_rts(ep, opts->rnr_retry);
}

/* The caller calls ep_close() even after an error. */
int ep_open(struct ep *ep, struct ib_device *dev, const struct ep_opts *opts)
{
	struct ep_opts o = *opts;
	struct ib_port_attr port;
	int err;

	memset(ep, 0, sizeof(*ep));
	ep->dev = dev;
	init_waitqueue_head(&ep->wait);
	ep->size = o.buf ?: EP_BUF;
	o.depth = o.depth ?: EP_DEPTH;
	/* Q_Keys with the highest bit set are privileged. */
	ep->qkey = get_random_u32() >> 1;
	err = ib_query_port(dev, 1, &port) ?: rdma_query_gid(dev, 1, 0, &ep->gid);
	if (err)
		return err;
	ep->mtu = port.max_msg_sz;
	return open_buffer(ep) ?: open_queues(ep, &o);
}

void ep_close(struct ep *ep)
{
	if (!IS_ERR_OR_NULL(ep->ah))
		rdma_destroy_ah(ep->ah, RDMA_DESTROY_AH_SLEEPABLE);
	if (!IS_ERR_OR_NULL(ep->qp))
		ib_destroy_qp(ep->qp);
	if (!IS_ERR_OR_NULL(ep->cq))
		ib_destroy_cq(ep->cq);
	if (!IS_ERR_OR_NULL(ep->pd))
		ib_dealloc_pd(ep->pd);
	if (ep->buf)
		ib_dma_unmap_single(ep->dev, ep->dma, ep->size,
				    DMA_BIDIRECTIONAL);
	kfree(ep->buf);
	memset(ep, 0, sizeof(*ep));
}

int ah_new(struct ib_pd *pd, const union ib_gid *gid, u32 flags,
	   struct ib_ah **ah)
{
	struct rdma_ah_attr attr = {
		.type = rdma_ah_find_type(pd->device, 1),
		.port_num = 1,
		.ah_flags = IB_AH_GRH,
		.grh.dgid = *gid,
	};

	*ah = rdma_create_ah(pd, &attr, flags);
	return PTR_ERR_OR_ZERO(*ah);
}

int ep_connect(struct ep *ep, const union ib_gid *gid)
{
	return ah_new(ep->pd, gid, RDMA_CREATE_AH_SLEEPABLE, &ep->ah);
}

static int post_wr(struct ep *ep, const struct ib_send_wr *wr)
{
	const struct ib_send_wr *bad;
	int err;

	local_bh_disable();
	err = ib_post_send(ep->qp, wr, &bad);
	local_bh_enable();
	return err;
}

static int post_ud(struct ep *ep, const struct ib_srd_rdma_wr *srd)
{
	struct ib_ud_wr wr = {
		.wr = srd->wr.wr,
		.ah = srd->wr.ah,
		.remote_qpn = srd->wr.remote_qpn,
		.remote_qkey = srd->wr.remote_qkey,
	};

	return post_wr(ep, &wr.wr);
}

int ep_post(struct ep *ep, const struct req *req)
{
	struct ib_sge sge[3] = { };
	struct ib_srd_rdma_wr wr = {
		.wr.wr = {
			.opcode = req->op,
			.wr_id = req->id,
			.sg_list = sge,
			.num_sge = req->num_sge < 0 ? 0 : req->num_sge ?: 1,
			.send_flags = req->flags < 0 ? 0 :
				      req->flags ?: IB_SEND_SIGNALED,
			.ex.imm_data = cpu_to_be32(req->imm),
		},
		.wr.ah = req->ah ?: ep->ah,
		.wr.remote_qpn = req->qpn ?: (ep->other ?
					      ep->other->qp->qp_num : 0),
		.wr.remote_qkey = req->qkey ?: (ep->other ?
						ep->other->qkey : 0),
		.remote_addr = req->raddr,
		.rkey = req->rkey,
	};
	u32 part = req->len / max(wr.wr.wr.num_sge, 1);
	int i;

	for (i = 0; i < wr.wr.wr.num_sge; i++) {
		sge[i].addr = (req->addr ?: ep->dma + req->off) + i * part;
		sge[i].length = part;
		sge[i].lkey = req->lkey ?: ep->pd->local_dma_lkey;
	}
	if (wr.wr.wr.num_sge)
		sge[i - 1].length = req->len - (i - 1) * part;
	if (req->inl) {
		sge[0].addr = (uintptr_t)req->inl;
		sge[0].length = req->len;
		wr.wr.wr.send_flags |= IB_SEND_INLINE;
	}
	if (ep->qp->qp_type == IB_QPT_UD)
		return post_ud(ep, &wr);
	return post_wr(ep, &wr.wr.wr);
}

int ep_recv(struct ep *ep, u32 off, u32 len, u64 id)
{
	struct ib_sge sge = {
		.addr = ep->dma + off,
		.length = len,
		.lkey = ep->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;
	int err;

	local_bh_disable();
	err = ib_post_recv(ep->qp, &wr, &bad);
	local_bh_enable();
	return err;
}

int ep_poll(struct ep *ep, struct ib_wc *wc, int num)
{
	int ret;

	local_bh_disable();
	ret = ib_poll_cq(ep->cq, num, wc);
	local_bh_enable();
	return ret;
}

/* Wait for the next completion by polling. */
bool ep_wait(struct ep *ep, struct ib_wc *wc, unsigned int ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms);

	memset(wc, 0, sizeof(*wc));
	do {
		if (ep_poll(ep, wc, 1) == 1)
			return true;
		usleep_range(50, 200);
	} while (time_before(jiffies, end));
	return ep_poll(ep, wc, 1) == 1;
}

/* Wait for completions by events, for endpoints with a handler. */
int ep_next(struct ep *ep, struct ib_wc *wc, int num, unsigned int ms)
{
	int ret, seen;

	do {
		seen = atomic_read(&ep->events);
		ret = ep_poll(ep, wc, num);
		if (ret)
			return ret;
	} while (ep_arm(ep, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0 ||
		 wait_event_timeout(ep->wait, atomic_read(&ep->events) != seen,
				    msecs_to_jiffies(ms)));
	return ep_poll(ep, wc, num);
}

int ep_arm(struct ep *ep, int flags)
{
	int ret;

	local_bh_disable();
	ret = ib_req_notify_cq(ep->cq, flags);
	local_bh_enable();
	return ret;
}

void ep_write(struct ep *ep, u32 off, const void *data, u32 len)
{
	ib_dma_sync_single_for_cpu(ep->dev, ep->dma + off, len,
				   DMA_BIDIRECTIONAL);
	memcpy(ep->buf + off, data, len);
	ib_dma_sync_single_for_device(ep->dev, ep->dma + off, len,
				      DMA_BIDIRECTIONAL);
}

void ep_read(struct ep *ep, u32 off, void *data, u32 len)
{
	ib_dma_sync_single_for_cpu(ep->dev, ep->dma + off, len,
				   DMA_BIDIRECTIONAL);
	memcpy(data, ep->buf + off, len);
	ib_dma_sync_single_for_device(ep->dev, ep->dma + off, len,
				      DMA_BIDIRECTIONAL);
}

static u8 pattern(u32 i, u8 seed)
{
	return seed + i + (i >> 8) * 7;
}

void ep_fill(struct ep *ep, u32 off, u32 len, u8 seed)
{
	u32 i;

	ib_dma_sync_single_for_cpu(ep->dev, ep->dma + off, len,
				   DMA_BIDIRECTIONAL);
	for (i = 0; i < len; i++)
		ep->buf[off + i] = pattern(i, seed);
	ib_dma_sync_single_for_device(ep->dev, ep->dma + off, len,
				      DMA_BIDIRECTIONAL);
}

bool ep_filled(struct ep *ep, u32 off, u32 len, u8 seed)
{
	bool ok = true;
	u32 i;

	ib_dma_sync_single_for_cpu(ep->dev, ep->dma + off, len,
				   DMA_BIDIRECTIONAL);
	for (i = 0; i < len && ok; i++)
		ok = ep->buf[off + i] == pattern(i, seed);
	ib_dma_sync_single_for_device(ep->dev, ep->dma + off, len,
				      DMA_BIDIRECTIONAL);
	return ok;
}
