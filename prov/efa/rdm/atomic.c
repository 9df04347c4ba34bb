// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomic operations of the ULP. Each is one packet, numbered as messages are, and its data is
 * always copied. A fetch or compare ends with the peer's ATOMRSP, which has the old values; one
 * with delivery complete ends with a RECEIPT; any other one when the peer's device has it.
 *
 * libfabric carries out what it receives without a check, so a call with a type or an operation
 * that doesn't exist is refused here.
 */
#include <linux/slab.h>
#include "../copy.h"
#include "../trace.h"
#include "atomic.h"
#include "rdm.h"
#include "tx.h"

/**
 * kefa_atomic_room() - get the longest data of an atomic operation
 * @mtu: MTU of the device
 *
 * Context: Any.
 * Return: maximum number of bytes of the operands together with the values to compare with, for
 * any number of pieces of the peer's memory and any form of the sender's identity.
 */
u32 kefa_atomic_room(u32 mtu)
{
	return mtu - kefa_hdr_len(kefa_row_of(KEFA_COMPARE_RTA_PKT), KEFA_REQ_OPT_RAW_ADDR_HDR,
				  KEFA_IOV_MAX, 0);
}

/*
 * Return: whether elements are longer than those for which libfabric's targets have functions. They
 * don't check that they have one.
 */
static bool kefa_atomic_wide(u32 datatype)
{
	return kofi_arith_size(datatype) > sizeof(u64);
}

/**
 * kefa_rdm_query_atomic() - get the limits of an atomic operation
 * @domain: the domain
 * @datatype: type of the elements
 * @op: the operation
 * @attr: takes the limits
 * @flags: FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC, or 0
 *
 * Serves as fi_ops_domain.query_atomic. There are no elements of 16 bytes on this fabric.
 *
 * Context: Any.
 * Return: 0, or -EOPNOTSUPP.
 */
int kefa_rdm_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			  struct fi_atomic_attr *attr, u64 flags)
{
	const struct kefa_domain *dom = to_kefa_domain(domain);

	if (!READ_ONCE(dom->atomic) || kefa_atomic_wide(datatype))
		return -EOPNOTSUPP;
	return kofi_arith_query(datatype, op, flags, kefa_atomic_room(dom->dev->mtu), attr);
}

/* --- operations --- */

/**
 * kefa_atomics_init() - allocate what atomic operations of the ULP need
 * @rdm: the endpoint, about to be enabled
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_atomics_init(struct kefa_rdm *rdm)
{
	u32 i;

	if (!(rdm->ep.caps & FI_ATOMIC))
		return 0;
	/* One for each operation of the ULP, so that there is always one. */
	rdm->atomics = kvcalloc(rdm->ep.tx.base.size, sizeof(*rdm->atomics), GFP_KERNEL);
	if (!rdm->atomics)
		return -ENOMEM;
	for (i = 0; i < rdm->ep.tx.base.size; i++) {
		rdm->atomics[i].next = rdm->atomics_free;
		rdm->atomics_free = &rdm->atomics[i];
	}
	return 0;
}

/**
 * kefa_atomics_fini() - undo kefa_atomics_init()
 * @rdm: the endpoint, without operations
 *
 * Context: Process context.
 */
void kefa_atomics_fini(struct kefa_rdm *rdm)
{
	kvfree(rdm->atomics);
	rdm->atomics = NULL;
	rdm->atomics_free = NULL;
}

/**
 * kefa_atomic_check() - check an atomic request of the ULP
 * @rdm: the endpoint
 * @req: the request, with FI_ATOMIC
 *
 * Context: Any.
 * Return: 0, or a negative errno.
 */
int kefa_atomic_check(const struct kefa_rdm *rdm, const struct kofi_req *req)
{
	const struct kofi_atomic_req *areq = container_of(req, struct kofi_atomic_req, req);
	size_t len;
	int ret;

	if (kefa_atomic_wide(areq->datatype))
		return -EOPNOTSUPP;
	ret = kofi_atomic_check(areq, KEFA_IOV_MAX, kefa_atomic_room(rdm->ep.dom->dev->mtu), &len);
	if (ret)
		return ret;
	/* libfabric doesn't advance in the data for the second piece of a compare. */
	if (areq->compare && areq->rma_count > 1)
		return -EINVAL;
	return req->flags & FI_INJECT && len > kefa_inject_size(rdm->ep.dom->dev) ? -EMSGSIZE : 0;
}

/**
 * kefa_atomic_hold() - store an atomic request in its operation
 * @rdm: the endpoint
 * @rop: the operation, new
 * @req: the request, which was checked
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_atomic_hold(struct kefa_rdm *rdm, struct kefa_rop *rop, const struct kofi_req *req)
{
	const struct kofi_atomic_req *areq = container_of(req, struct kofi_atomic_req, req);
	struct kefa_atomic *atomic = rdm->atomics_free;
	size_t i;

	lockdep_assert_held(&rdm->ep.lock);
	rdm->atomics_free = atomic->next;
	atomic->datatype = areq->datatype;
	atomic->op = areq->op;
	atomic->n = areq->rma_count;
	atomic->compare = areq->compare;
	kofi_elements_hold(&atomic->operand, &areq->operand);
	kofi_elements_hold(&atomic->comparand, &areq->comparand);
	kofi_elements_hold(&atomic->result, &areq->result);
	atomic->rma = areq->rma;
	if (areq->rma_count == 1) {
		atomic->one = *areq->rma;
		atomic->rma = &atomic->one;
	}
	rop->more |= KEFA_ROP_FAR | KEFA_ROP_ATOMIC;
	rop->msg_id = 0;
	rop->far.atomic = atomic;
	rop->total = 0;
	for (i = 0; i < areq->rma_count; i++)
		rop->total += areq->rma[i].count * kofi_arith_size(areq->datatype);
}

/* --- requests --- */

static void kefa_atomic_iov(const struct kefa_atomic *atomic, struct kefa_rma_iov *iov)
{
	const size_t size = kofi_arith_size(atomic->datatype);
	u32 i;

	for (i = 0; i < atomic->n; i++) {
		iov[i].addr = cpu_to_le64(atomic->rma[i].addr);
		iov[i].len = cpu_to_le64(atomic->rma[i].count * size);
		iov[i].key = cpu_to_le64(atomic->rma[i].key);
	}
}

static u8 kefa_atomic_type(const struct kefa_rdm *rdm, const struct kefa_rop *rop)
{
	if (rop->far.atomic->compare)
		return KEFA_COMPARE_RTA_PKT;
	if (rop->cq_flags & FI_READ)
		return KEFA_FETCH_RTA_PKT;
	if (rop->flags & KEFA_ROP_DC &&
	    kefa_shake_can(&rdm->self, rop->peer) & KEFA_FEATURE_DELIVERY_COMPLETE)
		return KEFA_DC_WRITE_RTA_PKT;
	return KEFA_WRITE_RTA_PKT;
}

/* Copy the operands, and the values to compare with, behind the headers. */
static void kefa_atomic_copy(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct kefa_rop *rop,
			     u32 hdr)
{
	const struct kefa_atomic *atomic = rop->far.atomic;
	const size_t size = kofi_arith_size(atomic->datatype);
	u8 *to = (ts->copy ? ts->copy->data : ts->hdr) + hdr;

	if (atomic->op != FI_ATOMIC_READ)
		kofi_elements_get(&atomic->operand, size, to);
	if (atomic->compare)
		kofi_elements_get(&atomic->comparand, size, to + rop->total);
	rdm->stats.copied += ts->len - hdr;
	rdm->ep.stats.tx_bytes += ts->len - hdr;
}

/* Return: length of the data in the request. */
static u32 kefa_atomic_data(const struct kefa_rop *rop)
{
	if (rop->far.atomic->op == FI_ATOMIC_READ)
		return 0;
	return rop->total << rop->far.atomic->compare;
}

/**
 * kefa_atomic_send() - send an atomic operation
 * @rdm: the endpoint, enabled
 * @rop: the operation, in KEFA_ROP_WAIT, whose peer may be sent to
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: 0; -EAGAIN if there is no slot or copy buffer for now; -EOPNOTSUPP.
 */
int kefa_atomic_send(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	const struct kefa_atomic *atomic = rop->far.atomic;
	struct kefa_rpeer *peer = rop->peer;
	struct kefa_rma_iov iov[KEFA_IOV_MAX];
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(kefa_atomic_type(rdm, rop)),
		.rma_iov_count	= atomic->n,
		.rma_iov	= iov,
		.atomic_datatype = atomic->datatype,
		.atomic_op	= atomic->op,
		.recv_id	= kefa_rop_id(&rdm->rops, rop),
		.send_id	= kefa_rop_id(&rdm->rops, rop),
	};
	struct kefa_ts *ts;
	u32 hdr;

	lockdep_assert_held(&rdm->ep.lock);
	if (unlikely(!kefa_tx_may(rdm, peer, pkt.row)))
		return -EOPNOTSUPP;
	if (!kefa_tx_room(rdm, peer))
		return -EAGAIN;
	/* May ring the doorbell, which can kill the peer. */
	kefa_tx_ready(rdm, 1);
	if (unlikely(kefa_rpeer_dead(peer)))
		return -EAGAIN;
	ts = kefa_ts_take(rdm, peer, false);
	if (!ts)
		return -EAGAIN;
	kefa_shake_sign(&rdm->self, peer, &pkt);
	kefa_atomic_iov(atomic, iov);
	hdr = kefa_hdr_len(pkt.row, pkt.flags, pkt.rma_iov_count, 0);
	ts->len = hdr + kefa_atomic_data(rop);
	if (ts->len > KEFA_TS_ROOM) {
		ts->copy = kefa_copy_take(&rdm->ep);
		if (!ts->copy) {
			kefa_ts_free(rdm, ts);
			return -EAGAIN;
		}
	}
	kefa_atomic_copy(rdm, ts, rop, hdr);
	ts->type = pkt.row->type;
	ts->rop = rop;
	/* The operation doesn't need its number any more: kefa_rop.msg_id counts checks. */
	pkt.msg_id = kefa_order_give(&peer->order);
	rop->type = ts->type;
	rop->wrs = 1;
	kefa_rop_set_state(&rdm->rops, rop, ts->type == KEFA_WRITE_RTA_PKT ? KEFA_ROP_POSTED :
									     KEFA_ROP_ACK);
	if (rop->state == KEFA_ROP_ACK)
		kefa_silent_arm(rdm);
	rdm->stats.sent[ts->type]++;
	kefa_ts_seal(rdm, ts, &pkt);
	kefa_ts_order(ts, pkt.msg_id);
	kefa_ts_post(rdm, ts);
	trace_kefa_packet(&rdm->ep, peer, rop->type, pkt.msg_id, rop->total, true);
	return 0;
}

/* --- answers --- */

static enum kefa_took kefa_atomrsp_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					    const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_rop *rop = kefa_rop_find(&rdm->rops, pkt->recv_id);

	if (!rop || rop->peer != peer || rop->state != KEFA_ROP_ACK || !kefa_rop_fetches(rop) ||
	    rop->flags & KEFA_ROP_OVER) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_STATE);
		return KEFA_TOOK_DONE;
	}
	if (pkt->data_len != rop->total) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_LENGTH);
		return KEFA_TOOK_DONE;
	}
	kefa_far_served(rop);
	rdm->ep.stats.rx_bytes += pkt->data_len;
	kofi_elements_put(&rop->far.atomic->result, kofi_arith_size(rop->far.atomic->datatype),
			  pkt->data);
	kefa_rdm_end_tx(rdm, rop, 0, 0);
	return KEFA_TOOK_DONE;
}

/* The other end's ATOMRSP has no operation, so nothing follows its delivery. */
const struct kefa_pkt_ops kefa_atomrsp_ops = {
	.received	= kefa_atomrsp_received,
};
