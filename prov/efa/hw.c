// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * EFA kernel verbs. This file handles their peculiarities, and is the only one that
 * posts or polls. The rules are: completion queues that no other queue pair uses, one or, for
 * sends that nobody waits for, one for each direction, created with a handler, because the
 * driver sends events to no other; every work request signaled, with no flags but SIGNALED
 * and INLINE; at least one SGE, because the driver reads the first SGE of an RDMA whatever
 * their number; states INIT, RTR, RTS with exactly these attributes.
 */
#include <linux/kmemleak.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include "hw.h"
#include <efa_verbs_check.h>
#include <restrack_del.h>

/* Polls to retry: each completion of a destroyed queue pair makes one poll fail. */
#define KEFA_POLL_SKIPS	64

/*
 * Leak an object that the device failed to destroy and may still use, and hide it from
 * restrack and kmemleak.
 */
static void kefa_hw_forget(struct rdma_restrack_entry *res, void *obj)
{
	rdma_restrack_del(res);
	kmemleak_not_leak(obj);
}

struct ib_pd *kefa_hw_pd_create(struct ib_device *ibdev)
{
	return ib_alloc_pd(ibdev, 0);
}

void kefa_hw_pd_destroy(struct ib_pd *pd)
{
	ib_dealloc_pd(pd);
}

void kefa_hw_pd_abandon(struct ib_pd *pd)
{
	if (pd->__internal_mr)
		kmemleak_not_leak(pd->__internal_mr);
	kefa_hw_forget(&pd->res, pd);
}

static void kefa_hw_no_event(struct ib_cq *cq, void *arg)
{
}

static void kefa_hw_event(struct ib_cq *cq, void *arg)
{
	struct kefa_hw_qp *hq = arg;

	hq->event(hq->arg);
}

static int kefa_hw_modify(struct kefa_hw_qp *hq, u8 rnr_retry,
			  enum ib_qp_state state, int mask)
{
	struct ib_qp_attr attr = {
		.qp_state	= state,
		.port_num	= 1,
		.qkey		= hq->qkey,
		.rnr_retry	= rnr_retry,
	};

	return ib_modify_qp(hq->qp, &attr, IB_QP_STATE | mask);
}

static int kefa_hw_start(struct kefa_hw_qp *hq, u8 rnr_retry)
{
	int mask = IB_QP_SQ_PSN;

	if (rnr_retry != KEFA_RNR_UNSET)
		mask |= IB_QP_RNR_RETRY;
	return kefa_hw_modify(hq, 0, IB_QPS_INIT,
			      IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY) ?:
	       kefa_hw_modify(hq, 0, IB_QPS_RTR, 0) ?:
	       kefa_hw_modify(hq, rnr_retry, IB_QPS_RTS, mask);
}

static struct ib_cq *kefa_hw_cq_create(struct kefa_hw_qp *hq, u32 depth, u32 vector)
{
	const struct ib_cq_init_attr attr = { .cqe = depth, .comp_vector = vector };

	return ib_create_cq(hq->pd->device, kefa_hw_event, NULL, hq, &attr);
}

static void kefa_hw_cqs_destroy(struct kefa_hw_qp *hq)
{
	if (hq->scq)
		ib_destroy_cq(hq->scq);
	hq->scq = NULL;
	ib_destroy_cq(hq->cq);
	hq->cq = NULL;
}

static int kefa_hw_cqs_create(struct kefa_hw_qp *hq, const struct kefa_hw_qp_attr *attr)
{
	const u32 depth = attr->rx_depth + (attr->split ? 0 : attr->tx_depth);
	struct ib_cq *cq = kefa_hw_cq_create(hq, depth, attr->vector);

	/* The only reason of the driver for -EINVAL: no event queue. */
	if (IS_ERR(cq))
		return PTR_ERR(cq) == -EINVAL ? -ENXIO : PTR_ERR(cq);
	hq->cq = cq;
	hq->scq = NULL;
	if (!attr->split)
		return 0;
	cq = kefa_hw_cq_create(hq, attr->tx_depth, attr->vector);
	if (!IS_ERR(cq)) {
		hq->scq = cq;
		return 0;
	}
	kefa_hw_cqs_destroy(hq);
	return PTR_ERR(cq);
}

int kefa_hw_qp_destroy(struct kefa_hw_qp *hq)
{
	int ret = ib_destroy_qp(hq->qp);

	if (ret)
		return ret;
	hq->qp = NULL;
	kefa_hw_cqs_destroy(hq);
	return 0;
}

void kefa_hw_qp_silence(struct kefa_hw_qp *hq)
{
	WRITE_ONCE(hq->cq->comp_handler, kefa_hw_no_event);
	if (hq->scq)
		WRITE_ONCE(hq->scq->comp_handler, kefa_hw_no_event);
	/* Wait for interrupts that are calling the previous handler. */
	synchronize_rcu();
}

void kefa_hw_qp_abandon(struct kefa_hw_qp *hq)
{
	/* The queue pair uses the completion queues, which must stay as well. */
	kefa_hw_forget(&hq->qp->res, hq->qp);
	kefa_hw_forget(&hq->cq->res, hq->cq);
	if (hq->scq)
		kefa_hw_forget(&hq->scq->res, hq->scq);
}

int kefa_hw_qp_create(struct kefa_hw_qp *hq,
		      const struct kefa_hw_qp_attr *attr)
{
	struct ib_qp_init_attr qp_attr = {
		.qp_type	= attr->ud ? IB_QPT_UD : EFA_QPT_SRD,
		.sq_sig_type	= IB_SIGNAL_ALL_WR,
		.cap = {
			.max_send_wr	 = attr->tx_depth,
			.max_recv_wr	 = attr->rx_depth,
			.max_send_sge	 = KEFA_MAX_SGE,
			.max_recv_sge	 = KEFA_MAX_SGE,
			.max_inline_data = KEFA_MAX_INLINE,
		},
	};
	int ret;

	ret = kefa_hw_cqs_create(hq, attr);
	if (ret)
		return ret;
	qp_attr.send_cq = hq->scq ?: hq->cq;
	qp_attr.recv_cq = hq->cq;
	hq->qp = ib_create_qp(hq->pd, &qp_attr);
	if (IS_ERR(hq->qp)) {
		ret = PTR_ERR(hq->qp);
		hq->qp = NULL;
		kefa_hw_cqs_destroy(hq);
		return ret;
	}
	/*
	 * Q_Keys with the highest bit set are privileged. libfabric up to 2.1 sends datagrams with
	 * 0, even if the address has another one.
	 */
	hq->qkey = attr->ud ? 0 : get_random_u32() & 0x7fffffff;
	hq->qpn = hq->qp->qp_num;
	return kefa_hw_start(hq, attr->rnr_retry);
}

static noinline int kefa_hw_post_list(struct kefa_hw_qp *hq, struct kefa_wr *const *wrs,
				      unsigned int count)
{
	struct ib_qp *qp = hq->qp;
	unsigned int i;
	int ret;

	for (i = 1; i < count; i++)
		wrs[i - 1]->send.next = &wrs[i]->send;
	wrs[count - 1]->send.next = NULL;
	hq->failed = &wrs[0]->send;
	ret = qp->device->ops.post_send(qp, &wrs[0]->send, &hq->failed);
	if (unlikely(ret))
		for (hq->bad = 0; hq->bad < count - 1; hq->bad++)
			if (hq->failed == &wrs[hq->bad]->send)
				break;
	return ret;
}

/*
 * Call the driver directly, as uverbs does: ib_post_send() has a variable on its stack for
 * callers without @bad_wr, and therefore a stack protector.
 */
int kefa_hw_post_send(struct kefa_hw_qp *hq, struct kefa_wr *const *wrs,
		      unsigned int count)
{
	struct ib_qp *qp = hq->qp;

	if (unlikely(count != 1))
		return kefa_hw_post_list(hq, wrs, count);
	hq->bad = 0;
	wrs[0]->send.next = NULL;
	return qp->device->ops.post_send(qp, &wrs[0]->send, &hq->failed);
}

static noinline int kefa_hw_recv_list(struct kefa_hw_qp *hq, struct kefa_recv_wr *wrs,
				      unsigned int count)
{
	struct ib_qp *qp = hq->qp;
	unsigned int i;
	int ret;

	for (i = 1; i < count; i++)
		wrs[i - 1].wr.next = &wrs[i].wr;
	wrs[count - 1].wr.next = NULL;
	hq->recv_failed = &wrs[0].wr;
	ret = qp->device->ops.post_recv(qp, &wrs[0].wr, &hq->recv_failed);
	if (unlikely(ret))
		hq->bad = container_of(hq->recv_failed, struct kefa_recv_wr, wr) - wrs;
	return ret;
}

int kefa_hw_post_recv(struct kefa_hw_qp *hq, struct kefa_recv_wr *wrs, unsigned int count)
{
	struct ib_qp *qp = hq->qp;

	if (unlikely(count != 1))
		return kefa_hw_recv_list(hq, wrs, count);
	hq->bad = 0;
	wrs[0].wr.next = NULL;
	return qp->device->ops.post_recv(qp, &wrs[0].wr, &hq->recv_failed);
}

static noinline int kefa_hw_poll_on(struct ib_cq *cq, struct ib_wc *wcs, int count)
{
	int ret, skips = 1;

	do {
		ret = ib_poll_cq(cq, count, wcs);
	} while (ret < 0 && ++skips < KEFA_POLL_SKIPS);
	return max(ret, 0);
}

int kefa_hw_poll(struct kefa_hw_qp *hq, struct ib_wc *wcs, int count)
{
	int ret = ib_poll_cq(hq->cq, count, wcs);

	return likely(ret >= 0) ? ret : kefa_hw_poll_on(hq->cq, wcs, count);
}

int kefa_hw_poll_tx(struct kefa_hw_qp *hq, struct ib_wc *wcs, int count)
{
	int ret = ib_poll_cq(hq->scq, count, wcs);

	return likely(ret >= 0) ? ret : kefa_hw_poll_on(hq->scq, wcs, count);
}

int kefa_hw_arm(struct kefa_hw_qp *hq)
{
	return ib_req_notify_cq(hq->cq, IB_CQ_NEXT_COMP |
					IB_CQ_REPORT_MISSED_EVENTS);
}

int kefa_hw_arm_tx(struct kefa_hw_qp *hq)
{
	return ib_req_notify_cq(hq->scq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
}

struct ib_ah *kefa_hw_ah_create(struct ib_pd *pd, const u8 *gid)
{
	struct rdma_ah_attr attr = {
		.type		= rdma_ah_find_type(pd->device, 1),
		.port_num	= 1,
		.ah_flags	= IB_AH_GRH,
	};

	memcpy(attr.grh.dgid.raw, gid, sizeof(attr.grh.dgid.raw));
	return rdma_create_ah(pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
}

int kefa_hw_ah_destroy(struct ib_ah *ah)
{
	return rdma_destroy_ah_user(ah, RDMA_DESTROY_AH_SLEEPABLE, NULL);
}

void kefa_hw_ah_abandon(struct ib_ah *ah)
{
	kmemleak_not_leak(ah);
}

struct ib_mr *kefa_hw_mr_create(struct ib_pd *pd, u32 max_pages)
{
	return ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, max_pages);
}

int kefa_hw_mr_map(struct ib_mr *mr, struct scatterlist *sg, int count,
		   unsigned int page_size)
{
	return ib_map_mr_sg(mr, sg, count, NULL, page_size);
}

int kefa_hw_mr_destroy(struct ib_mr *mr)
{
	return ib_dereg_mr(mr);
}

void kefa_hw_mr_abandon(struct ib_mr *mr)
{
	kefa_hw_forget(&mr->res, mr);
}
