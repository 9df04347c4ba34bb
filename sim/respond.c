// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The target: executes requests of peers.
 *
 * A request is one packet and leaves no state behind except its effect, so a peer
 * can't use up memory of this device. As on the real device, only the Q_Key and the rkey
 * protect host memory from a peer; and RDMA requires an address handle for the peer.
 */
#include <linux/slab.h>

#include "priv.h"
#include "trace.h"

static struct efasim_qp *efasim_dev_target(struct efasim_dev *dev,
					   const struct efasim_pkt *pkt,
					   enum efasim_qp_type type)
{
	struct efasim_qp *qp = efasim_dev_find_qp(dev, pkt->dst_qpn);

	if (!qp || qp->type != type || qp->state < EFASIM_QPS_RTR ||
	    qp->state > EFASIM_QPS_SQE) {
		efasim_count(dev, EFASIM_S_bad_qpn);
		return NULL;
	}
	if (qp->qkey != pkt->qkey) {
		efasim_count(dev, EFASIM_S_bad_qkey);
		return NULL;
	}
	return qp;
}

/* Return: the number of the sender's handle, which is unknown shortly after creation. */
static u16 efasim_dev_slid(struct efasim_dev *dev, u32 pdn, const u8 *gid)
{
	struct efasim_ah *ah = efasim_dev_find_ah(dev, pdn, gid);

	if (!ah)
		return EFASIM_AH_NONE;
	if (ktime_before(ktime_get(), ah->visible)) {
		atomic64_inc(&dev->injected[EFASIM_F_slid_lag_us]);
		return EFASIM_AH_NONE;
	}
	return ah->number;
}

/* @rqe: the receive, or NULL for a write that took none. */
static void efasim_dev_complete_recv(struct efasim_qp *qp,
				     const struct efasim_rqe *rqe,
				     const struct efasim_pkt *pkt, u8 op,
				     u32 length, enum efasim_status status)
{
	struct efasim_cqe cqe = {
		.qpn = qp->qpn,
		.serial = qp->serial,
		.req_id = rqe ? rqe->req_id : 0,
		.src_qpn = pkt->src_qpn,
		.ah = efasim_dev_slid(qp->dev, qp->pdn, pkt->src_gid),
		.length = length,
		.imm = pkt->imm,
		.has_imm = pkt->flags & EFASIM_PKT_F_IMM,
		.status = status,
		.op = op,
		.recv = true,
		.unsolicited = !rqe,
		.src_gid = pkt->src_gid,
	};

	if (rqe)
		qp->rq_cons += rqe->num_sge;
	if (!status) {
		efasim_count(qp->dev, EFASIM_S_recv_wrs);
		efasim_add(qp->dev, EFASIM_S_recv_bytes, length);
	}
	efasim_dev_cqe(qp->recv_cq, &cqe);
}

static u32 efasim_dev_rqe_len(const struct efasim_rqe *rqe)
{
	u32 i, len = 0;

	for (i = 0; i < rqe->num_sge; i++)
		len += rqe->sge[i].length;
	return len;
}

/*
 * Copy a message into a receive, behind @room bytes that aren't written, and complete the
 * receive. Return: the status for the sender.
 */
static enum efasim_status efasim_dev_receive(struct efasim_qp *qp,
					     const struct efasim_rqe *rqe,
					     const struct efasim_pkt *pkt,
					     u32 room)
{
	enum efasim_status local = EFASIM_OK, remote = EFASIM_OK;

	trace_efasim_msg(qp->dev, pkt);
	if (efasim_dev_rqe_len(rqe) < room + pkt->length) {
		local = EFASIM_LOCAL_BAD_LENGTH;
		remote = EFASIM_REMOTE_BAD_LENGTH;
	} else if (!efasim_dev_sge_copy(qp->dev, qp->pdn, rqe->sge,
					rqe->num_sge, room,
					(void *)pkt->payload,
					pkt->length, EFASIM_MR_WRITE_TO)) {
		local = EFASIM_INVALID_LKEY;
		remote = EFASIM_BAD_STATUS;
	}
	efasim_dev_complete_recv(qp, rqe, pkt, EFASIM_OP_SEND,
				 room + pkt->length, local);
	return remote;
}

/*
 * Find the receive for a message that has arrived. Its doorbell, if that is only memory, may have
 * rung after the worker read the doorbells, but before the message was sent.
 */
static bool efasim_dev_next_recv(struct efasim_qp *qp, struct efasim_rqe *rqe)
{
	struct efasim_dev *dev = qp->dev;

	if (efasim_dev_peek_rq(qp, rqe))
		return true;
	if (!dev->ops->fetch)
		return false;
	dev->ops->fetch(dev);
	return efasim_dev_peek_rq(qp, rqe);
}

static enum efasim_status efasim_dev_take_send(struct efasim_dev *dev,
					       const struct efasim_pkt *pkt)
{
	struct efasim_qp *qp = efasim_dev_target(dev, pkt, EFASIM_QP_SRD);
	struct efasim_rqe rqe;

	if (!qp)
		return EFASIM_BAD_DEST_QPN;
	if (!efasim_dev_next_recv(qp, &rqe) || efasim_fault(dev, EFASIM_F_rnr)) {
		efasim_count(dev, EFASIM_S_rnr_nak_sent);
		return EFASIM_RNR;
	}
	return efasim_dev_receive(qp, &rqe, pkt, 0);
}

/* Check an RDMA request, and set @qp on success. */
static enum efasim_status efasim_dev_admit(struct efasim_dev *dev,
					   const struct efasim_pkt *pkt,
					   struct efasim_qp **qp)
{
	*qp = efasim_dev_target(dev, pkt, EFASIM_QP_SRD);
	if (!*qp)
		return EFASIM_BAD_DEST_QPN;
	if (pkt->type == EFASIM_PKT_READ ? !dev->limits.rdma_read :
					   !dev->limits.rdma_write)
		return EFASIM_FEATURE_MISMATCH;
	if (!efasim_dev_find_ah(dev, (*qp)->pdn, pkt->src_gid)) {
		efasim_count(dev, EFASIM_S_unknown_peer);
		return EFASIM_UNKNOWN_PEER;
	}
	return EFASIM_OK;
}

static enum efasim_status efasim_dev_take_write(struct efasim_dev *dev,
						const struct efasim_pkt *pkt)
{
	bool imm = pkt->flags & EFASIM_PKT_F_IMM;
	enum efasim_status status;
	struct efasim_rqe rqe;
	struct efasim_qp *qp;

	status = efasim_dev_admit(dev, pkt, &qp);
	if (status)
		return status;
	/* Don't report a length to the host that no device can have written. */
	if (pkt->rlen > dev->limits.max_rdma_size)
		return EFASIM_REMOTE_BAD_LENGTH;
	if (imm && !qp->unsolicited && (!efasim_dev_next_recv(qp, &rqe) ||
					efasim_fault(dev, EFASIM_F_rnr))) {
		efasim_count(dev, EFASIM_S_rnr_nak_sent);
		return EFASIM_RNR;
	}
	if (!efasim_dev_mr_copy(dev, qp->pdn, pkt->rkey, pkt->raddr,
				(void *)pkt->payload, pkt->length,
				EFASIM_ACCESS_REMOTE_WRITE,
				EFASIM_MR_WRITE_TO)) {
		efasim_count(dev, EFASIM_S_bad_rkey);
		return EFASIM_BAD_ADDRESS;
	}
	efasim_add(dev, EFASIM_S_rdma_write_recv_bytes, pkt->length);
	if (imm)
		efasim_dev_complete_recv(qp, qp->unsolicited ? NULL : &rqe,
					 pkt, EFASIM_OP_WRITE, pkt->rlen,
					 EFASIM_OK);
	return EFASIM_OK;
}

static struct efasim_txp *efasim_dev_resp(struct efasim_dev *dev,
					  enum efasim_pkt_type type, u32 length)
{
	struct efasim_txp *resp = NULL;

	if (!efasim_fault(dev, EFASIM_F_no_memory))
		resp = efasim_dev_txp(GFP_NOIO, type, length);
	if (!resp)
		efasim_count(dev, EFASIM_S_no_memory);
	return resp;
}

static enum efasim_status efasim_dev_may_read(struct efasim_dev *dev,
					      const struct efasim_pkt *pkt,
					      struct efasim_qp **qp)
{
	enum efasim_status status = efasim_dev_admit(dev, pkt, qp);

	if (status)
		return status;
	return efasim_dev_mr_ok(dev, (*qp)->pdn, pkt->rkey, pkt->raddr,
				pkt->rlen, EFASIM_ACCESS_REMOTE_READ) &&
	       !efasim_fault(dev, EFASIM_F_deny_read) ?
	       EFASIM_OK : EFASIM_BAD_ADDRESS;
}

/* Allocate a response with data only after checking the access, as GIDs can be forged. */
static struct efasim_txp *efasim_dev_take_read(struct efasim_dev *dev,
					       const struct efasim_pkt *pkt)
{
	struct efasim_txp *resp;
	struct efasim_qp *qp;
	u32 status, len;

	status = efasim_dev_may_read(dev, pkt, &qp);
	len = status ? 0 : pkt->rlen;
	resp = efasim_dev_resp(dev, status ? EFASIM_PKT_RESP : EFASIM_PKT_DATA,
			       len);
	if (!resp)
		return NULL;
	if (!status && !efasim_dev_mr_copy(dev, qp->pdn, pkt->rkey, pkt->raddr,
					   resp->buf + resp->len - len, len,
					   EFASIM_ACCESS_REMOTE_READ,
					   EFASIM_MR_READ_FROM)) {
		status = EFASIM_BAD_ADDRESS;
		resp->pkt.type = EFASIM_PKT_RESP;
		resp->pkt.length = 0;
		resp->len -= len;
	}
	if (status == EFASIM_BAD_ADDRESS)
		efasim_count(dev, EFASIM_S_bad_rkey);
	if (!status)
		efasim_add(dev, EFASIM_S_rdma_read_resp_bytes, len);
	resp->pkt.status = status;
	return resp;
}

/* Allocate the answer before executing the request, which can't be undone. */
static struct efasim_txp *efasim_dev_take(struct efasim_dev *dev,
					  const struct efasim_pkt *pkt)
{
	struct efasim_txp *resp = efasim_dev_resp(dev, EFASIM_PKT_RESP, 0);

	if (!resp)
		return NULL;
	resp->pkt.status = pkt->type == EFASIM_PKT_SEND ?
			   efasim_dev_take_send(dev, pkt) :
			   efasim_dev_take_write(dev, pkt);
	return resp;
}

/**
 * efasim_dev_request() - execute a request of a peer
 * @dev: the device
 * @pkt: a packet of the request lane
 *
 * Context: The device's worker.
 * Return: the answer, for efasim_dev_respond(), or NULL without memory, in which case
 * nothing was done.
 */
struct efasim_txp *efasim_dev_request(struct efasim_dev *dev,
				      const struct efasim_pkt *pkt)
{
	struct efasim_txp *resp;

	resp = pkt->type == EFASIM_PKT_READ ? efasim_dev_take_read(dev, pkt) :
					      efasim_dev_take(dev, pkt);
	if (!resp)
		return NULL;
	resp->pkt.op = pkt->op;
	resp->pkt.seg = pkt->seg;
	return resp;
}

/**
 * efasim_dev_datagram() - handle a UD message that arrived
 * @dev: the device
 * @pkt: the message; dropped if there is no receive for it
 *
 * Context: The device's worker.
 */
void efasim_dev_datagram(struct efasim_dev *dev, const struct efasim_pkt *pkt)
{
	struct efasim_qp *qp = efasim_dev_target(dev, pkt, EFASIM_QP_UD);
	u32 room = READ_ONCE(dev->fault[EFASIM_F_ud_header]);
	struct efasim_rqe rqe;

	if (!qp || !efasim_dev_next_recv(qp, &rqe)) {
		efasim_count(dev, EFASIM_S_rx_drops);
		return;
	}
	if (room)
		atomic64_inc(&dev->injected[EFASIM_F_ud_header]);
	efasim_dev_receive(qp, &rqe, pkt, min_t(u32, room, 128));
}

/* The queue pair is in ERR: flush receives, each with probability err_flush. */
void efasim_dev_flush_rq(struct efasim_qp *qp)
{
	struct efasim_cqe cqe = {
		.qpn = qp->qpn, .serial = qp->serial, .recv = true,
		.status = EFASIM_FLUSHED, .ah = EFASIM_AH_NONE,
	};
	struct efasim_rqe rqe;

	while (efasim_dev_peek_rq(qp, &rqe)) {
		qp->rq_cons += rqe.num_sge;
		if (!efasim_fault(qp->dev, EFASIM_F_err_flush))
			continue;
		cqe.req_id = rqe.req_id;
		efasim_dev_cqe(qp->recv_cq, &cqe);
	}
}
