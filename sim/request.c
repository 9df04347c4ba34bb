// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The initiator: send queue entries and their operations.
 *
 * An operation consists of as many packets as its length needs, and each packet is
 * answered. The operation completes when all packets that were sent are answered, so no
 * late packet accesses memory after the completion. A write with immediate data sends its
 * last packet after the others are answered, because only then may the target be notified.
 *
 * Operations start in order and finish in any order.
 */
#include <linux/io.h>
#include <linux/slab.h>

#include "priv.h"

#define RNR_MAX_SHIFT	6
#define NO_MEMORY_US	USEC_PER_MSEC

static void efasim_dev_op_timer(struct efasim_dev *dev,
				struct efasim_timer *timer);
static void efasim_dev_start_remote(struct efasim_op *op);

/* Make the device process a send queue. */
void efasim_sq_ring(struct efasim_qp *qp)
{
	struct efasim_dev *dev = qp->dev;
	unsigned long flags;

	spin_lock_irqsave(&dev->db_lock, flags);
	if (list_empty(&qp->db))
		list_add_tail(&qp->db, &dev->doorbells);
	spin_unlock_irqrestore(&dev->db_lock, flags);
	efasim_kick(dev);
}

/* Pass the entries before @prod to the device. */
void efasim_sq_doorbell(struct efasim_qp *qp, u16 prod)
{
	/* The entries must be written before the device reads them. */
	smp_store_release(&qp->sq_prod, prod);
	efasim_sq_ring(qp);
}

/* Pass the descriptors before @prod to the device, which reads them when data arrives. */
void efasim_rq_doorbell(struct efasim_qp *qp, u16 prod)
{
	/* The descriptors must be written before the device reads them. */
	smp_store_release(&qp->rq_prod, prod);
}

/* Drop an operation without a completion. */
void efasim_dev_drop_op(struct efasim_op *op)
{
	lockdep_assert_held(&op->qp->dev->lock);
	efasim_dev_disarm(op->qp->dev, &op->timer);
	efasim_dev_mr_done(op->qp->dev, &op->wqe);
	list_del_init(&op->tx);
	op->active = false;
	/* Send queue entries may be waiting for a free operation. */
	if (list_empty(&op->qp->idle))
		efasim_sq_ring(op->qp);
	list_move_tail(&op->link, &op->qp->idle);
}

static void efasim_dev_count_op(struct efasim_dev *dev,
				const struct efasim_op *op, bool ok)
{
	switch (op->wqe.op) {
	case EFASIM_OP_SEND:
		efasim_count(dev, EFASIM_S_send_wrs);
		efasim_add(dev, EFASIM_S_send_bytes, op->len);
		break;
	case EFASIM_OP_READ:
		efasim_count(dev, ok ? EFASIM_S_rdma_read_wrs :
			     EFASIM_S_rdma_read_wr_err);
		if (ok)
			efasim_add(dev, EFASIM_S_rdma_read_bytes, op->len);
		break;
	case EFASIM_OP_WRITE:
		efasim_count(dev, ok ? EFASIM_S_rdma_write_wrs :
			     EFASIM_S_rdma_write_wr_err);
		if (ok)
			efasim_add(dev, EFASIM_S_rdma_write_bytes, op->len);
		break;
	}
}

/* Finish an operation and write its completion. */
void efasim_dev_complete(struct efasim_op *op, enum efasim_status status)
{
	struct efasim_qp *qp = op->qp;
	struct efasim_cqe cqe = {
		.qpn = qp->qpn,
		.serial = qp->serial,
		.req_id = op->wqe.req_id,
		.status = status,
		.op = op->wqe.op,
	};

	efasim_dev_drop_op(op);
	efasim_dev_count_op(qp->dev, op, !status);
	efasim_dev_cqe(qp->send_cq, &cqe);
}

static u32 efasim_dev_seg_len(const struct efasim_op *op, u32 seg)
{
	u32 mtu = op->qp->dev->limits.mtu;

	return min(mtu, op->len - seg * mtu);
}

static bool efasim_dev_gather(struct efasim_op *op, u32 offset, void *buf,
			      u32 len)
{
	const struct efasim_wqe *wqe = &op->wqe;
	struct efasim_qp *qp = op->qp;

	if (wqe->op == EFASIM_OP_SEND && wqe->is_inline) {
		memcpy(buf, wqe->in.data, len);
		return true;
	}
	if (wqe->op == EFASIM_OP_SEND)
		return efasim_dev_sge_copy(qp->dev, qp->pdn, wqe->sge,
					   wqe->num_sge, offset, buf, len,
					   EFASIM_MR_READ_FROM);
	return efasim_dev_sge_copy(qp->dev, qp->pdn, &wqe->rdma.local, 1,
				   offset, buf, len, EFASIM_MR_READ_FROM);
}

/* Identifier of an operation, which answers carry back. */
static u64 efasim_dev_cookie(const struct efasim_op *op)
{
	return (u64)op->gen << 32 | op->qp->qpn << 16 | (op - op->qp->ops);
}

static struct efasim_op *efasim_dev_find_op(struct efasim_dev *dev,
					    const struct efasim_peer *peer,
					    u64 cookie)
{
	struct efasim_qp *qp = efasim_dev_find_qp(dev, (cookie >> 16) & 0xffff);
	struct efasim_op *op;

	if (!qp || (cookie & 0xffff) >= qp->sq_depth)
		return NULL;
	op = &qp->ops[cookie & 0xffff];
	if (!op->active || op->gen != cookie >> 32 || op->peer != peer)
		return NULL;
	return op;
}

static void efasim_dev_fill(struct efasim_op *op, struct efasim_pkt *pkt,
			    u32 seg, u32 offset)
{
	const struct efasim_wqe *wqe = &op->wqe;

	pkt->op = efasim_dev_cookie(op);
	pkt->seg = seg;
	pkt->src_qpn = op->qp->qpn;
	pkt->dst_qpn = wqe->dest_qpn;
	pkt->qkey = wqe->qkey;
	if (wqe->has_imm && seg == op->segs - 1) {
		pkt->flags |= EFASIM_PKT_F_IMM;
		pkt->imm = wqe->imm;
	}
	if (wqe->op == EFASIM_OP_SEND)
		return;
	pkt->raddr = wqe->rdma.addr + offset;
	pkt->rkey = wqe->rdma.rkey;
	pkt->rlen = wqe->op == EFASIM_OP_READ ?
		    efasim_dev_seg_len(op, seg) : op->len;
}

/* Complete the operation if all its packets are answered. */
static void efasim_dev_maybe_done(struct efasim_op *op)
{
	if (op->answered == op->sent && (op->status || op->sent == op->segs))
		efasim_dev_complete(op, op->status);
}

static void efasim_dev_fail_op(struct efasim_op *op, enum efasim_status status)
{
	if (!op->status)
		op->status = status;
	list_del_init(&op->tx);
	efasim_dev_maybe_done(op);
}

static bool efasim_dev_last_must_wait(const struct efasim_op *op)
{
	return op->wqe.op == EFASIM_OP_WRITE && op->wqe.has_imm &&
	       op->sent == op->segs - 1 && op->answered < op->sent;
}

/*
 * A target may give up a response without telling the initiator. So fail an operation after
 * four times the time after which a silent peer is given up.
 */
static void efasim_dev_watch(struct efasim_dev *dev, struct efasim_op *op)
{
	efasim_dev_arm(dev, &op->timer,
		       ktime_add_ms(ktime_get(), 4ULL * dev->unresp_ms));
}

/* Move the operation behind the peer's other operations with packets to send. */
static void efasim_dev_requeue(struct efasim_op *op)
{
	list_del_init(&op->tx);
	if (op->sent < op->segs && !op->status && !op->rnr_wait &&
	    !efasim_dev_last_must_wait(op))
		list_add_tail(&op->tx, &op->peer->txops);
}

/**
 * efasim_dev_send_segment() - send an operation's next packet
 * @dev: the device
 * @peer: peer of the operation, whose request window is open
 * @op: an operation in @peer->txops; moved to the end of that list, or removed
 *	from it
 *
 * Context: The device's worker.
 * Return: 0, or -ENOMEM with nothing changed.
 */
int efasim_dev_send_segment(struct efasim_dev *dev, struct efasim_peer *peer,
			    struct efasim_op *op)
{
	static const enum efasim_pkt_type type[] = {
		[EFASIM_OP_SEND] = EFASIM_PKT_SEND,
		[EFASIM_OP_READ] = EFASIM_PKT_READ,
		[EFASIM_OP_WRITE] = EFASIM_PKT_WRITE,
	};
	u32 seg = op->sent, offset = seg * dev->limits.mtu, len = 0;
	struct efasim_txp *txp = NULL;
	void *payload;

	if (op->wqe.op != EFASIM_OP_READ)
		len = efasim_dev_seg_len(op, seg);
	if (!efasim_fault(dev, EFASIM_F_no_memory))
		txp = efasim_dev_txp(GFP_NOIO, type[op->wqe.op], len);
	if (!txp) {
		efasim_count(dev, EFASIM_S_no_memory);
		return -ENOMEM;
	}
	payload = txp->buf + efasim_wire_hdr_len(txp->pkt.type);
	if (!efasim_dev_gather(op, offset, payload, len)) {
		kfree(txp);
		efasim_dev_fail_op(op, EFASIM_INVALID_LKEY);
		return 0;
	}
	efasim_dev_fill(op, &txp->pkt, seg, offset);
	op->sent++;
	efasim_dev_requeue(op);
	efasim_dev_watch(dev, op);
	efasim_dev_send(dev, peer, txp);
	return 0;
}

static void efasim_dev_op_timer(struct efasim_dev *dev,
				struct efasim_timer *timer)
{
	struct efasim_op *op = container_of(timer, struct efasim_op, timer);

	switch (op->wqe.op) {
	case EFASIM_OP_FAST_REG:
		efasim_dev_complete(op, efasim_dev_mr_reg(op->qp, &op->wqe));
		return;
	case EFASIM_OP_FAST_INV:
		efasim_dev_complete(op, efasim_dev_mr_inv(op->qp,
							  op->wqe.inv_lkey));
		return;
	}
	if (!op->peer) {
		efasim_dev_start_remote(op);
		return;
	}
	if (op->rnr_wait) {
		op->rnr_wait = false;
		efasim_dev_requeue(op);
		efasim_dev_push(dev, op->peer);
		return;
	}
	efasim_count(dev, EFASIM_S_unresponsive_remote_events);
	efasim_dev_complete(op, EFASIM_UNRESP_REMOTE);
}

/* The target had no receive posted: retry later, or fail the operation. */
static void efasim_dev_rnr(struct efasim_dev *dev, struct efasim_op *op)
{
	u64 us;

	efasim_count(dev, EFASIM_S_rnr_nak_rcvd);
	op->sent--;
	if (!op->rnr_left) {
		efasim_dev_fail_op(op, EFASIM_RNR);
		return;
	}
	if (op->rnr_left != EFASIM_RNR_INFINITE)
		op->rnr_left--;
	us = READ_ONCE(dev->fault[EFASIM_F_rnr_timer_us]);
	us <<= min_t(u32, op->tries++, RNR_MAX_SHIFT);
	op->rnr_wait = true;
	list_del_init(&op->tx);
	efasim_dev_arm(dev, &op->timer, ktime_add_us(ktime_get(), us));
}

static bool efasim_dev_scatter(struct efasim_dev *dev, struct efasim_op *op,
			       const struct efasim_pkt *pkt)
{
	return efasim_dev_sge_copy(dev, op->qp->pdn, &op->wqe.rdma.local, 1,
				   pkt->seg * dev->limits.mtu,
				   (void *)pkt->payload, pkt->length,
				   EFASIM_MR_WRITE_TO);
}

/* Check a response or data for a packet of an operation. The peer isn't trusted. */
static enum efasim_status efasim_dev_judge(struct efasim_dev *dev,
					   struct efasim_op *op,
					   const struct efasim_pkt *pkt)
{
	if (pkt->type == EFASIM_PKT_RESP && pkt->status)
		return pkt->status;
	if (op->wqe.op != EFASIM_OP_READ)
		return pkt->type == EFASIM_PKT_RESP ? EFASIM_OK :
						      EFASIM_BAD_STATUS;
	if (pkt->type != EFASIM_PKT_DATA || pkt->seg >= op->sent ||
	    pkt->length != efasim_dev_seg_len(op, pkt->seg))
		return EFASIM_BAD_STATUS;
	return efasim_dev_scatter(dev, op, pkt) ? EFASIM_OK :
						  EFASIM_INVALID_LKEY;
}

/**
 * efasim_dev_answer() - handle the answer to a packet of this device
 * @dev: the device
 * @peer: the peer that answers
 * @pkt: a response or data
 *
 * Context: The device's worker.
 */
void efasim_dev_answer(struct efasim_dev *dev, struct efasim_peer *peer,
		       const struct efasim_pkt *pkt)
{
	struct efasim_op *op = efasim_dev_find_op(dev, peer, pkt->op);
	enum efasim_status status;

	if (!op || op->answered >= op->sent) {
		efasim_count(dev, EFASIM_S_rx_stale_response);
		return;
	}
	status = efasim_dev_judge(dev, op, pkt);
	if (status == EFASIM_RNR && op->answered == op->sent - 1 &&
	    op->sent == op->segs && !op->status) {
		efasim_dev_rnr(dev, op);
		return;
	}
	op->answered++;
	op->tries = 0;
	if (status) {
		efasim_dev_fail_op(op, status);
		return;
	}
	efasim_dev_requeue(op);
	efasim_dev_maybe_done(op);
	efasim_dev_push(dev, peer);
}

static u32 efasim_dev_wqe_len(const struct efasim_wqe *wqe)
{
	u32 i, len = 0;

	switch (wqe->op) {
	case EFASIM_OP_SEND:
		if (wqe->is_inline)
			return wqe->in.length;
		for (i = 0; i < wqe->num_sge; i++)
			len += wqe->sge[i].length;
		return len;
	case EFASIM_OP_READ:
	case EFASIM_OP_WRITE:
		return wqe->rdma.local.length;
	}
	return 0;
}

/* Check an entry as far as the device can without the peer. */
static enum efasim_status efasim_dev_check(struct efasim_op *op)
{
	const struct efasim_wqe *wqe = &op->wqe;
	struct efasim_dev *dev = op->qp->dev;
	bool read = wqe->op == EFASIM_OP_READ;

	if (wqe->op == EFASIM_OP_SEND)
		return op->len > dev->limits.mtu ? EFASIM_LOCAL_BAD_LENGTH :
						   EFASIM_OK;
	if (op->qp->type != EFASIM_QP_SRD)
		return EFASIM_UNSUPPORTED_OP;
	if (read ? !dev->limits.rdma_read : !dev->limits.rdma_write)
		return EFASIM_UNSUPPORTED_OP;
	if (op->len > dev->limits.max_rdma_size)
		return EFASIM_LOCAL_BAD_LENGTH;
	/* The peer drops a request whose range doesn't exist, and this device would repeat it. */
	if (wqe->rdma.addr + op->len < wqe->rdma.addr)
		return EFASIM_BAD_ADDRESS;
	if (!efasim_dev_mr_ok(dev, op->qp->pdn, wqe->rdma.local.lkey,
			      wqe->rdma.local.addr, op->len,
			      read ? EFASIM_ACCESS_LOCAL_WRITE : 0)) {
		efasim_count(dev, EFASIM_S_bad_lkey);
		return EFASIM_INVALID_LKEY;
	}
	return EFASIM_OK;
}

/* UD: send one packet and complete at once. */
static void efasim_dev_start_ud(struct efasim_op *op, const u8 *gid)
{
	struct efasim_dev *dev = op->qp->dev;
	struct efasim_txp *txp;
	void *payload;

	txp = efasim_dev_txp(GFP_NOIO, EFASIM_PKT_UD, op->len);
	if (!txp) {
		/* Treat the datagram as lost in the network. */
		efasim_count(dev, EFASIM_S_no_memory);
		efasim_dev_complete(op, EFASIM_OK);
		return;
	}
	payload = txp->buf + efasim_wire_hdr_len(EFASIM_PKT_UD);
	if (efasim_dev_gather(op, 0, payload, op->len)) {
		efasim_dev_fill(op, &txp->pkt, 0, 0);
		memcpy(txp->pkt.src_gid, dev->gid, EFASIM_GID_LEN);
		txp->pkt.src_inc = dev->incarnation;
		efasim_wire_build(txp->buf, &txp->pkt);
		efasim_dev_xmit(dev, gid, txp->buf, txp->len);
		efasim_dev_complete(op, EFASIM_OK);
	} else {
		efasim_dev_complete(op, EFASIM_INVALID_LKEY);
	}
	kfree(txp);
}

/*
 * If there is no memory for the peer's state, retry for as long as a peer may be silent.
 */
static void efasim_dev_start_srd(struct efasim_op *op, const u8 *gid)
{
	struct efasim_dev *dev = op->qp->dev;
	struct efasim_peer *peer = efasim_dev_peer(dev, gid, true);

	if (peer == ERR_PTR(-ENOMEM) && op->tries < dev->unresp_ms) {
		op->tries++;
		efasim_dev_arm(dev, &op->timer,
			       ktime_add_us(ktime_get(), NO_MEMORY_US));
		return;
	}
	if (IS_ERR(peer)) {
		efasim_dev_complete(op, EFASIM_QP_INTERNAL);
		return;
	}
	op->tries = 0;
	op->peer = peer;
	if (list_empty(&peer->ops))
		peer->confirmed = false;
	list_add_tail(&op->link, &peer->ops);
	list_add_tail(&op->tx, &peer->txops);
	efasim_dev_push(dev, peer);
}

static void efasim_dev_start_remote(struct efasim_op *op)
{
	struct efasim_dev *dev = op->qp->dev;
	enum efasim_status status;
	struct efasim_ah *ah;

	op->len = efasim_dev_wqe_len(&op->wqe);
	status = efasim_dev_check(op);
	if (status) {
		efasim_dev_complete(op, status);
		return;
	}
	ah = xa_load(&dev->ahs, op->wqe.ah);
	if (!ah || ah->pdn != op->qp->pdn) {
		efasim_dev_complete(op, EFASIM_INVALID_AH);
		return;
	}
	op->segs = max_t(u32, 1, DIV_ROUND_UP(op->len, dev->limits.mtu));
	if (op->qp->type == EFASIM_QP_UD) {
		efasim_dev_start_ud(op, ah->gid);
		return;
	}
	efasim_dev_start_srd(op, ah->gid);
}

/* Registration isn't ordered with other work, so execute it at some later time. */
static void efasim_dev_start_local(struct efasim_op *op)
{
	struct efasim_dev *dev = op->qp->dev;
	u64 max = READ_ONCE(dev->fault[EFASIM_F_reg_delay_us]);
	/* From 0 to max, which may be U32_MAX. */
	u32 us = max ? prandom_u32_state(&dev->rnd) * (max + 1) >> 32 : 0;

	if (us)
		atomic64_inc(&dev->injected[EFASIM_F_reg_delay_us]);
	efasim_dev_arm(dev, &op->timer, ktime_add_us(ktime_get(), us));
}

static void efasim_dev_start(struct efasim_op *op,
			     const struct efasim_tx_wqe *desc)
{
	struct efasim_qp *qp = op->qp;
	enum efasim_status status;

	status = efasim_hw_parse_wqe(desc, &op->wqe);
	list_del_init(&op->link);
	op->active = true;
	op->timer.fn = efasim_dev_op_timer;
	op->gen = ++qp->dev->op_gen;
	op->peer = NULL;
	op->rnr_wait = false;
	op->rnr_left = qp->rnr_retry;
	op->tries = 0;
	op->status = EFASIM_OK;
	op->len = 0;
	op->segs = 0;
	op->sent = 0;
	op->answered = 0;
	if (status)
		efasim_dev_complete(op, status);
	else if (op->wqe.op >= EFASIM_OP_FAST_REG)
		efasim_dev_start_local(op);
	else
		efasim_dev_start_remote(op);
}

/* Copy an entry, because the host may write to it at any time. */
static void efasim_dev_get_wqe(const struct efasim_qp *qp, u16 index,
			       struct efasim_tx_wqe *wqe)
{
	u32 slot = index & (qp->sq_depth - 1);

	if (qp->llq)
		memcpy_fromio(wqe, qp->llq + slot * sizeof(*wqe), sizeof(*wqe));
	else
		*wqe = qp->sq[slot];
}

/* Check for a producer index beyond the queue's size, which the host must not write. */
static bool efasim_dev_sq_overrun(struct efasim_qp *qp, u16 prod)
{
	if ((u16)(prod - qp->sq_cons) <= qp->sq_depth)
		return false;
	efasim_count(qp->dev, EFASIM_S_bad_doorbell);
	return true;
}

static void efasim_dev_run_sq(struct efasim_qp *qp)
{
	/* Pairs with efasim_sq_doorbell(). */
	u16 prod = smp_load_acquire(&qp->sq_prod);
	struct efasim_tx_wqe wqe;
	struct efasim_op *op;

	if (efasim_dev_sq_overrun(qp, prod))
		return;
	/* A queue in SQD keeps posted entries until it is in RTS again. */
	while (qp->state == EFASIM_QPS_RTS && qp->sq_cons != prod) {
		op = list_first_entry_or_null(&qp->idle, struct efasim_op,
					      link);
		if (!op)
			break;
		efasim_dev_get_wqe(qp, qp->sq_cons++, &wqe);
		efasim_dev_start(op, &wqe);
	}
}

/* The queue pair is in ERR: flush active operations, each with probability err_flush. */
void efasim_dev_flush_ops(struct efasim_qp *qp)
{
	struct efasim_dev *dev = qp->dev;
	u32 i;

	for (i = 0; i < qp->sq_depth; i++)
		if (qp->ops[i].active && efasim_fault(dev, EFASIM_F_err_flush))
			efasim_dev_complete(&qp->ops[i], EFASIM_FLUSHED);
	/* The worker notifies the host of the completions. */
	efasim_kick(dev);
}

/* Drop entries that haven't been started. With @flush some complete as flushed. */
void efasim_dev_discard_sq(struct efasim_qp *qp, bool flush)
{
	/* Pairs with efasim_sq_doorbell(). */
	u16 prod = smp_load_acquire(&qp->sq_prod);
	struct efasim_dev *dev = qp->dev;
	struct efasim_cqe cqe = {
		.qpn = qp->qpn, .serial = qp->serial, .status = EFASIM_FLUSHED,
	};
	struct efasim_tx_wqe desc;
	struct efasim_wqe wqe;

	if (efasim_dev_sq_overrun(qp, prod))
		qp->sq_cons = prod;
	for (; qp->sq_cons != prod; qp->sq_cons++) {
		efasim_dev_get_wqe(qp, qp->sq_cons, &desc);
		efasim_hw_parse_wqe(&desc, &wqe);
		efasim_dev_mr_done(dev, &wqe);
		if (!flush || !efasim_fault(dev, EFASIM_F_err_flush))
			continue;
		cqe.req_id = wqe.req_id;
		cqe.op = wqe.op;
		efasim_dev_cqe(qp->send_cq, &cqe);
	}
}

/* Process the send queues whose doorbells rang. */
void efasim_dev_doorbells(struct efasim_dev *dev)
{
	struct efasim_qp *qp;
	LIST_HEAD(list);

	spin_lock_irq(&dev->db_lock);
	list_splice_init(&dev->doorbells, &list);
	while ((qp = list_first_entry_or_null(&list, struct efasim_qp, db))) {
		list_del_init(&qp->db);
		spin_unlock_irq(&dev->db_lock);
		efasim_dev_run_sq(qp);
		spin_lock_irq(&dev->db_lock);
	}
	spin_unlock_irq(&dev->db_lock);
}
