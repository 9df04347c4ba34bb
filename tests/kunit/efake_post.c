// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Work requests of the fake EFA device: posting, inspection, completion and polling. */
#include <linux/preempt.h>
#include "efake_priv.h"

/* --- completing --- */

static void qp_event(struct efake_qp *qp)
{
	lockdep_assert_held(&qp->fake->lock);
	if (!qp->armed || !qp->hq)
		return;
	qp->armed = false;
	qp->events++;
	qp->hq->event(qp->hq->arg);
}

static void qp_push_tx(struct efake_qp *qp, const struct kefa_wc *wc)
{
	lockdep_assert_held(&qp->fake->lock);
	if (qp->tx_tail - qp->tx_head == EFAKE_CQ_RING)
		efake_breach(qp->fake, "the completion queue of sends overran");
	else
		qp->tx_ring[qp->tx_tail++ % EFAKE_CQ_RING] = *wc;
	if (!qp->tx_armed || !qp->hq)
		return;
	qp->tx_armed = false;
	qp->tx_events++;
	qp->hq->event(qp->hq->arg);
}

static void qp_push(struct efake_qp *qp, const struct kefa_wc *wc)
{
	lockdep_assert_held(&qp->fake->lock);
	if (qp->tail - qp->head == EFAKE_CQ_RING)
		efake_breach(qp->fake, "the completion queue overran");
	else
		qp->ring[qp->tail++ % EFAKE_CQ_RING] = *wc;
	qp_event(qp);
}

static bool wr_sinks(const struct efake_wr *wr)
{
	return wr->recv || wr->opcode == IB_WR_RDMA_READ;
}

/* Check that the device can access the memory of a work request. */
static bool wr_reaches(struct efake_wr *wr)
{
	int i;

	if (wr->flags & IB_SEND_INLINE)
		return true;
	for (i = 0; i < wr->num_sge; i++)
		if (wr->sge[i].lkey != EFAKE_LKEY ||
		    (wr->sge[i].length &&
		     !efake_dma_reach(wr->qp->fake, wr->sge[i].addr,
				      wr->sge[i].length, wr_sinks(wr) ?
				      EFAKE_WRITES : EFAKE_READS)))
			return false;
	return true;
}

/* Return: which sync is missing between the CPU's accesses and a post, or NULL. */
static const char *wr_unsynced(const struct efake_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge && !(wr->flags & IB_SEND_INLINE); i++) {
		if (efake_dma_taken(wr->qp->fake, wr->sge[i].addr, wr->sge[i].length))
			return "memory is posted that the CPU has";
		if (!wr_sinks(wr) &&
		    efake_dma_stale(wr->qp->fake, wr->sge[i].addr, wr->sge[i].length))
			return "memory is posted that was written after its sync";
	}
	return NULL;
}

static bool wrs_miss(const struct list_head *wrs, dma_addr_t addr, size_t len)
{
	struct efake_wr *wr;
	int i;

	list_for_each_entry(wr, wrs, list)
		for (i = 0; i < wr->num_sge; i++)
			if (wr->sge[i].addr < addr + len &&
			    addr < wr->sge[i].addr + wr->sge[i].length &&
			    !wr_reaches(wr))
				return true;
	return false;
}

bool efake_misses(struct efake *fake, dma_addr_t addr, size_t len)
{
	struct efake_qp *qp;

	lockdep_assert_held(&fake->lock);
	list_for_each_entry(qp, &fake->qps, list)
		if (wrs_miss(&qp->sent, addr, len) ||
		    wrs_miss(&qp->recvs, addr, len))
			return true;
	return efake_mrs_miss(fake, addr, len);
}

static void mr_done(struct efake_mr *mr, bool reg, u32 status)
{
	mr->busy = false;
	if (!status)
		mr->valid = reg;
}

static void wr_done(struct efake_wr *wr, const struct kefa_wc *wc)
{
	struct efake_qp *qp = wr->qp;
	struct kefa_wc done = *wc;

	lockdep_assert_held(&qp->fake->lock);
	if (!wr_reaches(wr))
		efake_breach(qp->fake, "memory went before its work was done");
	if (wr->ah && !efake_lives(qp->fake, &efake_to_ah(wr->ah)->obj))
		efake_breach(qp->fake, "a handle went before its work was done");
	if (wr->mr)
		mr_done(efake_to_mr(wr->mr), wr->opcode == IB_WR_REG_MR, wc->status);
	list_move_tail(&wr->list, &qp->free);
	if (wr->recv)
		qp->nrecvs--;
	else
		qp->nsent--;
	if (!wc->status && (wr->recv || wr->opcode == IB_WR_SEND ||
			    wr->opcode == IB_WR_SEND_WITH_IMM))
		qp->packets++;
	done.id = wr->id;
	if (qp->tx_ring && !wr->recv)
		qp_push_tx(qp, &done);
	else
		qp_push(qp, &done);
}

void efake_recv_done(struct efake_wr *wr, const struct kefa_wc *wc)
{
	struct efake *fake;
	unsigned long flags;

	/* The test completes a work request that wasn't posted. */
	if (WARN_ON_ONCE(!wr))
		return;
	fake = wr->qp->fake;
	spin_lock_irqsave(&fake->lock, flags);
	wr_done(wr, wc);
	spin_unlock_irqrestore(&fake->lock, flags);
}

void efake_wr_done(struct efake_wr *wr, u32 status)
{
	const struct kefa_wc wc = { .status = status };

	efake_recv_done(wr, &wc);
}

void efake_qp_push(struct efake_qp *qp, const struct kefa_wc *wc)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->fake->lock, flags);
	qp_push(qp, wc);
	spin_unlock_irqrestore(&qp->fake->lock, flags);
}

void efake_qp_event(struct efake_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->fake->lock, flags);
	qp->armed = true;
	qp_event(qp);
	spin_unlock_irqrestore(&qp->fake->lock, flags);
}

/* --- posting --- */

static struct efake_wr *wr_take(struct efake_qp *qp, bool recv)
{
	struct efake_wr *wr = list_first_entry(&qp->free, struct efake_wr,
					       list);

	*wr = (struct efake_wr){ .list = wr->list, .qp = qp, .recv = recv };
	list_move_tail(&wr->list, recv ? &qp->recvs : &qp->sent);
	if (recv)
		qp->nrecvs++;
	else
		qp->nsent++;
	return wr;
}

static void wr_memory(struct efake_wr *wr, const struct ib_sge *sge, int n)
{
	int i;

	wr->num_sge = n;
	for (i = 0; i < n; i++) {
		wr->sge[i] = sge[i];
		wr->len += sge[i].length;
	}
}

static void wr_fill(struct efake_wr *wr, const struct kefa_wr *from)
{
	wr->id = from->send.wr_id;
	wr->opcode = from->send.opcode;
	wr->flags = from->send.send_flags;
	switch (wr->opcode) {
	case IB_WR_REG_MR:
		wr->mr = from->reg.mr;
		wr->rkey = from->reg.key;
		wr->access = from->reg.access;
		wr->qp->access = wr->access;
		return;
	case IB_WR_LOCAL_INV:
		/* The driver takes the local key here, whatever the field's name. */
		wr->rkey = from->send.ex.invalidate_rkey ^ EFAKE_LOCAL;
		return;
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		wr->raddr = from->rdma.remote_addr;
		wr->rkey = from->rdma.rkey;
		fallthrough;
	default:
		wr->ah = wr->qp->attr.ud ? from->ud.ah : from->srd.ah;
		wr->qpn = wr->qp->attr.ud ? from->ud.remote_qpn : from->srd.remote_qpn;
		wr->qkey = wr->qp->attr.ud ? from->ud.remote_qkey : from->srd.remote_qkey;
		wr->imm = (__force u32)from->send.ex.imm_data;
		wr_memory(wr, from->sge, min(from->send.num_sge,
					     KEFA_MAX_SGE));
		if (wr->flags & IB_SEND_INLINE)
			memcpy(wr->data, (void *)(uintptr_t)wr->sge[0].addr,
			       min_t(size_t, wr->len, sizeof(wr->data)));
	}
}

static const char *check_send(struct efake_wr *wr, const struct kefa_wr *from)
{
	bool in_wr = wr->flags & IB_SEND_INLINE;

	if (from->send.num_sge < 1 || from->send.num_sge > KEFA_MAX_SGE)
		return "a send has 1 or 2 pieces";
	if (in_wr && (wr->len > KEFA_MAX_INLINE || wr->num_sge != 1))
		return "inline data isn't what it should be";
	return wr->len > EFAKE_MTU ? "a message is too long" : NULL;
}

static const char *check_rdma(struct efake_wr *wr, const struct kefa_wr *from)
{
	if (from->send.num_sge != 1 || wr->flags & IB_SEND_INLINE)
		return "RDMA has exactly 1 piece";
	return wr->len > KEFA_MAX_RDMA ? "RDMA is too long" : NULL;
}

static const char *check_mr(struct efake_wr *wr)
{
	struct efake_mr *mr = efake_mr_find(wr->qp->fake, wr->rkey);
	bool reg = wr->opcode == IB_WR_REG_MR;

	if (!mr || mr->busy || mr->valid == reg)
		return "a region isn't in a state for that";
	if (reg && wr->mr != &mr->mr)
		return "a key isn't its region's";
	mr->busy = true;
	wr->mr = &mr->mr;
	return NULL;
}

static const char *check_wr(struct efake_wr *wr, const struct kefa_wr *from)
{
	if ((wr->flags & ~IB_SEND_INLINE) != IB_SEND_SIGNALED)
		return "these flags aren't supported";
	if (wr->qp->attr.ud && wr->opcode != IB_WR_SEND && wr->opcode != IB_WR_SEND_WITH_IMM)
		return "such a queue pair only sends";
	if (wr->opcode == IB_WR_REG_MR || wr->opcode == IB_WR_LOCAL_INV)
		return check_mr(wr);
	if (!efake_lives(wr->qp->fake, &efake_to_ah(wr->ah)->obj) ||
	    wr->ah->pd != wr->qp->pd)
		return "there is no such address handle";
	if (!wr_reaches(wr))
		return "memory is posted that isn't mapped so";
	if (wr_unsynced(wr))
		return wr_unsynced(wr);
	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
		return check_send(wr, from);
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return check_rdma(wr, from);
	default:
		return "no such operation";
	}
}

static bool wr_is_auto(const struct efake_wr *wr)
{
	return wr->mr ? !wr->qp->fake->manual_mr : wr->qp->fake->auto_tx;
}

/* A device without RDMA write refuses to register memory for it. */
static bool is_denied(const struct efake *fake, const struct kefa_wr *wr)
{
	if (fake->deny & BIT_ULL(wr->send.opcode))
		return true;
	return wr->send.opcode == IB_WR_REG_MR &&
	       wr->reg.access & IB_ACCESS_REMOTE_WRITE &&
	       fake->deny & BIT_ULL(IB_WR_RDMA_WRITE);
}

static bool reg_is_refused(const struct efake *fake, const struct efake_wr *wr)
{
	const struct efake_mr *mr;

	if (!wr->mr || wr->opcode != IB_WR_REG_MR)
		return false;
	mr = efake_to_mr(wr->mr);
	return (fake->max_page && wr->mr->page_size > fake->max_page) ||
	       (fake->whole_iova && wr->mr->iova != mr->segs[0].addr);
}

/* RDMA to a region of this device, piece by piece. Return: whether the whole range exists. */
static bool rdma_move(struct efake_wr *wr)
{
	struct efake_mr *mr = efake_mr_find(wr->qp->fake, wr->rkey);
	size_t part, done;
	dma_addr_t there, here;

	for (done = 0; mr && done < wr->len; done += part) {
		part = wr->len - done;
		if (!efake_mr_reach(mr, wr->raddr + done, &there, &part))
			return false;
		here = wr->sge[0].addr + done;
		if (wr->qp->fake->no_rdma_data)
			continue;
		if (wr->opcode == IB_WR_RDMA_READ)
			efake_dma_write(wr->qp->fake, here, efake_dma_virt(there), part);
		else
			efake_dma_write(wr->qp->fake, there, efake_dma_virt(here), part);
	}
	return mr;
}

u32 efake_wr_rdma(struct efake_wr *wr)
{
	struct efake *fake = wr->qp->fake;
	unsigned long flags;
	bool moved;

	spin_lock_irqsave(&fake->lock, flags);
	moved = rdma_move(wr);
	spin_unlock_irqrestore(&fake->lock, flags);
	return moved ? 0 : 7;
}

static struct efake_qp *qp_to(struct efake *fake, const struct efake_wr *wr)
{
	struct efake_qp *qp;

	list_for_each_entry(qp, &fake->qps, list)
		if (qp->hq && qp->ibqp.qp_num == wr->qpn && qp->hq->qkey == wr->qkey)
			return qp;
	return NULL;
}

/* Deliver a packet. Return: false if it has to wait for a receive. */
static bool wr_move(struct efake *fake, struct efake_wr *wr, u16 slid)
{
	static u8 data[EFAKE_MTU];	/* under the lock */
	struct efake_qp *to = qp_to(fake, wr);
	struct efake_wr *recv = to ? list_first_entry_or_null(&to->recvs, struct efake_wr, list) :
				     NULL;
	const bool imm = wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	struct kefa_wc wc = { .slid = slid, .src_qpn = wr->qp->ibqp.qp_num };
	struct kefa_wc sent = { };

	if (imm && to && !recv)
		return false;
	if (wr->opcode != IB_WR_SEND) {
		sent.status = rdma_move(wr) ? 0 : 7;
		wc.write = imm;
		wc.has_imm = imm;
		wc.imm = wr->imm;
		if (imm && to && !sent.status)
			wr_done(recv, &wc);
	} else if (!to) {
		sent.status = 9;
	} else if (recv) {
		wc.len = efake_wr_read(wr, data, sizeof(data));
		efake_dma_write(fake, recv->sge[0].addr, data, wc.len);
		wr_done(recv, &wc);
	} else {
		return false;
	}
	wr_done(wr, &sent);
	return true;
}

static unsigned int qp_move(struct efake_qp *qp, u16 slid)
{
	struct efake_wr *wr;

	list_for_each_entry(wr, &qp->sent, list)
		if (!wr->mr)
			return wr_move(qp->fake, wr, slid);
	return 0;
}

unsigned int efake_move(struct efake *fake, u16 slid)
{
	unsigned int n = 0;
	struct efake_qp *qp;
	unsigned long flags;

	spin_lock_irqsave(&fake->lock, flags);
	list_for_each_entry(qp, &fake->qps, list)
		n += qp_move(qp, slid);
	spin_unlock_irqrestore(&fake->lock, flags);
	return n;
}

/* Deliver a datagram that a queue pair sends to itself, if it has a receive. */
static void ud_arrive(struct efake_wr *wr)
{
	struct efake_qp *qp = wr->qp;
	struct efake *fake = qp->fake;
	struct efake_wr *recv = list_first_entry_or_null(&qp->recvs, struct efake_wr, list);
	struct kefa_wc wc = { .len = wr->len + fake->ud_room };
	u8 data[KEFA_MAX_INLINE];

	if (!qp->attr.ud || wr->qpn != qp->ibqp.qp_num || !recv)
		return;
	if (fake->ud_lost) {
		fake->ud_lost--;
		return;
	}
	efake_wr_read(wr, data, sizeof(data));
	efake_dma_write(fake, recv->sge[0].addr + fake->ud_room, data, wr->len);
	wr_done(recv, &wc);
}

static int post_one(struct efake_qp *qp, const struct kefa_wr *from)
{
	struct kefa_wc wc = { .status = qp->fake->status };
	struct efake_wr *wr;
	const char *wrong;

	lockdep_assert_held(&qp->fake->lock);
	if (qp->nsent == qp->attr.tx_depth) {
		efake_breach(qp->fake, "the send queue overran");
		return -ENOMEM;
	}
	wr = wr_take(qp, false);
	wr_fill(wr, from);
	wrong = check_wr(wr, from);
	if (wrong)
		efake_breach(qp->fake, wrong);
	/* Unsupported. */
	if (is_denied(qp->fake, from))
		wc.status = 3;
	if (reg_is_refused(qp->fake, wr))
		wc.status = 2;
	if (wr_is_auto(wr) && !wc.status && wr->rkey && !wr->mr)
		rdma_move(wr);
	if (wr_is_auto(wr)) {
		if (!wc.status)
			ud_arrive(wr);
		wr_done(wr, &wc);
	}
	return 0;
}

int kefa_hw_post_send(struct kefa_hw_qp *hq, struct kefa_wr *const *wrs,
		      unsigned int count)
{
	struct efake_qp *qp = efake_to_qp(hq);
	struct efake *fake = qp->fake;
	unsigned int i, n = count;
	unsigned long flags;
	int ret = 0, err = 0;

	if (!softirq_count() || !qp->hq)
		efake_breach(fake, "a post at the wrong time");
	if (efake_fails(fake, EFAKE_POST_SEND, &err))
		n = min(count - 1, fake->bad);
	spin_lock_irqsave(&fake->lock, flags);
	qp->doorbells++;
	for (i = 0; i < n && !ret; i++)
		ret = post_one(qp, wrs[i]);
	spin_unlock_irqrestore(&fake->lock, flags);
	ret = ret ?: err;
	if (ret)
		hq->bad = i;
	return ret;
}

static int post_recv(struct kefa_hw_qp *hq, const struct ib_recv_wr *from)
{
	struct efake_qp *qp = efake_to_qp(hq);
	struct efake *fake = qp->fake;
	unsigned long flags;
	const char *unsynced;
	struct efake_wr *wr;
	int err;

	if (!softirq_count() || !qp->hq)
		efake_breach(fake, "a receive at the wrong time");
	if (from->num_sge < 1 || from->num_sge > KEFA_MAX_SGE)
		efake_breach(fake, "a receive has 1 or 2 pieces");
	if (efake_fails(fake, EFAKE_POST_RECV, &err))
		return err;
	spin_lock_irqsave(&fake->lock, flags);
	if (qp->nrecvs == qp->attr.rx_depth) {
		spin_unlock_irqrestore(&fake->lock, flags);
		efake_breach(fake, "the receive queue overran");
		return -ENOMEM;
	}
	wr = wr_take(qp, true);
	wr->id = from->wr_id;
	wr_memory(wr, from->sg_list, from->num_sge);
	if (!wr_reaches(wr))
		efake_breach(fake, "memory is posted that isn't mapped so");
	unsynced = wr_unsynced(wr);
	if (unsynced)
		efake_breach(fake, unsynced);
	/* The descriptor's field has 16 bits. */
	if (wr->sge[0].length > U16_MAX || wr->sge[1].length > U16_MAX)
		efake_breach(fake, "a receive is longer than can be said");
	spin_unlock_irqrestore(&fake->lock, flags);
	return 0;
}

int kefa_hw_post_recv(struct kefa_hw_qp *hq, struct kefa_recv_wr *wrs, unsigned int count)
{
	struct efake_qp *qp = efake_to_qp(hq);
	unsigned int i;
	int ret = 0;

	qp->rx_doorbells++;
	for (i = 0; i < count && !ret; i++)
		ret = post_recv(hq, &wrs[i].wr);
	if (ret)
		hq->bad = i - 1;
	return ret;
}

/* --- polling --- */

static struct ib_wc wc_verbs(const struct kefa_wc *from)
{
	return (struct ib_wc) {
		.wr_id		= from->id,
		.status		= from->status ? IB_WC_GENERAL_ERR :
						 IB_WC_SUCCESS,
		.opcode		= from->write ? IB_WC_RECV_RDMA_WITH_IMM :
						IB_WC_RECV,
		.vendor_err	= from->status,
		.byte_len	= from->len,
		.ex.imm_data	= (__force __be32)from->imm,
		.src_qp		= from->src_qpn,
		.slid		= from->slid,
		.wc_flags	= from->has_imm ? IB_WC_WITH_IMM : 0,
	};
}

int kefa_hw_poll(struct kefa_hw_qp *hq, struct ib_wc *wcs, int count)
{
	struct efake_qp *qp = efake_to_qp(hq);
	unsigned long flags;
	int n;

	if (!softirq_count() || !qp->hq)
		efake_breach(qp->fake, "a poll at the wrong time");
	spin_lock_irqsave(&qp->fake->lock, flags);
	qp->polls++;
	for (n = 0; n < count && qp->head != qp->tail; n++)
		wcs[n] = wc_verbs(&qp->ring[qp->head++ % EFAKE_CQ_RING]);
	spin_unlock_irqrestore(&qp->fake->lock, flags);
	return n;
}

int kefa_hw_arm(struct kefa_hw_qp *hq)
{
	struct efake_qp *qp = efake_to_qp(hq);
	const struct kefa_wc wc = { };
	struct efake_wr *wr;
	unsigned long flags;
	int ret;

	if (!softirq_count() || !qp->hq)
		efake_breach(qp->fake, "arming at the wrong time");
	spin_lock_irqsave(&qp->fake->lock, flags);
	qp->armed = false;
	wr = list_first_entry_or_null(&qp->sent, struct efake_wr, list);
	if (qp->fake->late && wr) {
		qp->fake->late--;
		wr_done(wr, &wc);
	}
	qp->armed = true;
	ret = qp->head != qp->tail || qp->fake->missed;
	if (qp->fake->missed)
		qp->fake->missed--;
	spin_unlock_irqrestore(&qp->fake->lock, flags);
	return ret;
}

int kefa_hw_poll_tx(struct kefa_hw_qp *hq, struct ib_wc *wcs, int count)
{
	struct efake_qp *qp = efake_to_qp(hq);
	unsigned long flags;
	int n;

	if (!softirq_count() || !qp->hq || !qp->tx_ring)
		efake_breach(qp->fake, "a poll for sends at the wrong time");
	spin_lock_irqsave(&qp->fake->lock, flags);
	for (n = 0; n < count && qp->tx_head != qp->tx_tail; n++)
		wcs[n] = wc_verbs(&qp->tx_ring[qp->tx_head++ % EFAKE_CQ_RING]);
	spin_unlock_irqrestore(&qp->fake->lock, flags);
	return n;
}

int kefa_hw_arm_tx(struct kefa_hw_qp *hq)
{
	struct efake_qp *qp = efake_to_qp(hq);
	unsigned long flags;
	int ret;

	if (!softirq_count() || !qp->hq || !qp->tx_ring)
		efake_breach(qp->fake, "arming for sends at the wrong time");
	spin_lock_irqsave(&qp->fake->lock, flags);
	qp->tx_armed = true;
	qp->tx_arms++;
	ret = qp->tx_head != qp->tx_tail;
	spin_unlock_irqrestore(&qp->fake->lock, flags);
	return ret;
}

/* --- for tests --- */

struct efake_qp *efake_qp(struct efake *fake, u32 qpn)
{
	struct efake_qp *qp, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&fake->lock, flags);
	list_for_each_entry(qp, &fake->qps, list)
		if (qp->ibqp.qp_num == qpn)
			found = qp;
	spin_unlock_irqrestore(&fake->lock, flags);
	return found;
}

struct efake_qp *efake_last_qp(struct efake *fake)
{
	struct efake_qp *qp;
	unsigned long flags;

	spin_lock_irqsave(&fake->lock, flags);
	qp = list_empty(&fake->qps) ? NULL :
	     list_last_entry(&fake->qps, struct efake_qp, list);
	spin_unlock_irqrestore(&fake->lock, flags);
	return qp;
}

static struct efake_wr *nth_wr(struct efake_qp *qp, struct list_head *wrs,
			       unsigned int n)
{
	struct efake_wr *wr, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&qp->fake->lock, flags);
	list_for_each_entry(wr, wrs, list)
		if (!found && !n--)
			found = wr;
	spin_unlock_irqrestore(&qp->fake->lock, flags);
	return found;
}

struct efake_wr *efake_sent(struct efake_qp *qp, unsigned int n)
{
	return nth_wr(qp, &qp->sent, n);
}

struct efake_wr *efake_recv(struct efake_qp *qp, unsigned int n)
{
	return nth_wr(qp, &qp->recvs, n);
}

size_t efake_wr_read(const struct efake_wr *wr, u8 *buf, size_t len)
{
	size_t part, done = 0;
	int i;

	if (wr->flags & IB_SEND_INLINE) {
		memcpy(buf, wr->data, min_t(size_t, len, wr->len));
		return wr->len;
	}
	for (i = 0; i < wr->num_sge && done < len; i++, done += part) {
		part = min_t(size_t, len - done, wr->sge[i].length);
		memcpy(buf + done, efake_dma_virt(wr->sge[i].addr), part);
	}
	return done;
}

void efake_wr_write(const struct efake_wr *wr, const u8 *buf, size_t len)
{
	struct efake *fake = wr->qp->fake;
	size_t part, done = 0;
	unsigned long flags;
	int i;

	spin_lock_irqsave(&fake->lock, flags);
	for (i = 0; i < wr->num_sge && done < len; i++, done += part) {
		part = min_t(size_t, len - done, wr->sge[i].length);
		efake_dma_write(fake, wr->sge[i].addr, buf + done, part);
	}
	spin_unlock_irqrestore(&fake->lock, flags);
}

static unsigned int haunt_wrs(struct list_head *wrs)
{
	struct efake_wr *wr;
	unsigned int n = 0;
	u8 byte;

	list_for_each_entry(wr, wrs, list) {
		if (wr_sinks(wr))
			memcpy(efake_dma_virt(wr->sge[0].addr), "ghost",
			       min_t(u32, wr->sge[0].length, 6));
		else
			efake_wr_read(wr, &byte, 1);
		n++;
	}
	return n;
}

unsigned int efake_haunt(struct efake *fake)
{
	struct efake_obj *obj;
	struct efake_qp *qp;
	struct efake_mr *mr;
	unsigned int n = 0;

	if (fake->pci && !fake->master)
		return 0;
	list_for_each_entry(qp, &fake->broken, list)
		n += haunt_wrs(&qp->sent) + haunt_wrs(&qp->recvs);
	list_for_each_entry(obj, &fake->lost, list) {
		mr = container_of(obj, struct efake_mr, obj);
		if (!obj->is_mr || !mr->valid)
			continue;
		memcpy(efake_dma_virt(mr->segs[0].addr), "ghost", 6);
		n++;
	}
	return n;
}
