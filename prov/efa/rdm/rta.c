// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomic operations of peers. They have their turn among the peer's messages, and the CPU carries
 * out each of them in its packet's handler. The old values can't be made again, so an operation
 * begins only with the slot for its answer in hand, and the answer keeps its slot until the peer
 * has it. An operation that lacks a slot waits, and with it the peer's later messages.
 *
 * A request isn't answered if its type, operation, key, access or range is wrong, as the protocol
 * has no answer for that. Later messages of the peer don't wait for it.
 */
#include "atomic.h"
#include "target.h"
#include "tx.h"

/* A peer's operation: its kind, what kefa_mr_atomic() needs, and the memory. */
struct kefa_rta {
	enum kofi_arith_kind	kind;
	struct kefa_arith	arith;
	struct kefa_named	mem[KEFA_IOV_MAX];
	u64			access;
};

/* Return: whether the elements are whole and aligned, and have an operation that exists. */
static bool kefa_rta_valid(const struct kefa_rdm *rdm, const struct kefa_pkt *pkt,
			   enum kofi_arith_kind kind)
{
	const size_t size = kofi_arith_size(pkt->atomic_datatype);
	u32 i;

	if (!(rdm->ep.caps & FI_ATOMIC) ||
	    !kofi_arith_valid(kind, pkt->atomic_datatype, pkt->atomic_op))
		return false;
	/* Only an atomic read may lack operands. */
	if (!pkt->data_len && pkt->atomic_op != FI_ATOMIC_READ)
		return false;
	for (i = 0; i < pkt->rma_iov_count; i++)
		if (le64_to_cpu(pkt->rma_iov[i].addr) % size ||
		    le64_to_cpu(pkt->rma_iov[i].len) % size)
			return false;
	return pkt->msg_length && pkt->msg_length <= rdm->lim.mtu - sizeof(struct kefa_atomrsp_hdr);
}

/* Check all of a request; @rta has its kind. Return: false if it was refused, and counted. */
static bool kefa_rta_check(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
			   const struct kefa_pkt *pkt, struct kefa_rta *rta)
{
	if (!kefa_rta_valid(rdm, pkt, rta->kind)) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_TYPE);
		return false;
	}
	rta->access = rta->kind == KOFI_ARITH_WRITE ? 0 : FI_REMOTE_READ;
	if (pkt->atomic_op != FI_ATOMIC_READ)
		rta->access |= FI_REMOTE_WRITE;
	rta->arith = (struct kefa_arith) {
		.datatype	= pkt->atomic_datatype,
		.op		= pkt->atomic_op,
		.operand	= pkt->atomic_op == FI_ATOMIC_READ ? NULL : pkt->data,
	};
	if (rta->kind == KOFI_ARITH_COMPARE)
		rta->arith.comparand = pkt->data + pkt->msg_length;
	return kefa_target_check(rdm, peer, pkt, rta->access, rta->mem);
}

/* Return: whether an operation can be carried out now. If not, the endpoint's worker can do it. */
static bool kefa_rta_usable(struct kefa_rdm *rdm, const struct kefa_pkt *pkt)
{
	if (likely(kofi_arith_usable(pkt->atomic_datatype)))
		return true;
	kefa_ep_kick(&rdm->ep);
	return false;
}

/* Carry out an operation. Return: false if one of the regions has been closed. */
static bool kefa_rta_run(struct kefa_rdm *rdm, struct kefa_rpeer *peer, const struct kefa_pkt *pkt,
			 struct kefa_rta *rta)
{
	enum kefa_fault fault;
	u32 i;

	rdm->ep.stats.rx_bytes += pkt->data_len;
	for (i = 0; i < pkt->rma_iov_count; i++) {
		fault = kefa_mr_atomic(rdm->ep.dom, &rta->mem[i], rta->access, &rta->arith);
		if (fault)
			return kefa_target_fault(rdm, peer, fault);
	}
	return true;
}

/* --- without old values --- */

static enum kefa_took kefa_write_rta_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					      const struct kefa_pkt *pkt, struct kefa_held *held)
{
	const bool dc = pkt->row->flags & KEFA_ROW_DC;
	struct kefa_rta rta = { .kind = KOFI_ARITH_WRITE };

	if (!kefa_rta_check(rdm, peer, pkt, &rta))
		return KEFA_TOOK_DONE;
	if (!kefa_rta_usable(rdm, pkt) || (dc && !kefa_target_may_reply(rdm, peer)))
		return KEFA_TOOK_NOT;
	if (!kefa_rta_run(rdm, peer, pkt, &rta))
		return KEFA_TOOK_DONE;
	kefa_target_tell(rdm, kefa_rpeer_addr(peer), pkt->msg_length, false, 0);
	if (dc)
		kefa_target_receipt(rdm, peer, pkt->send_id);
	return KEFA_TOOK_DONE;
}

const struct kefa_pkt_ops kefa_write_rta_ops = {
	.completed	= kefa_rtw_completed,
	.received	= kefa_write_rta_received,
};

/* --- with old values --- */

static enum kefa_took kefa_fetch_rta_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					      const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_pkt rsp = {
		.row		= kefa_row_of(KEFA_ATOMRSP_PKT),
		.recv_id	= pkt->recv_id,
		.seg_length	= pkt->msg_length,
	};
	struct kefa_rta rta = {
		.kind = pkt->row->data == KEFA_DATA_COMPARE ? KOFI_ARITH_COMPARE :
							      KOFI_ARITH_FETCH,
	};
	struct kefa_ts *ts;

	if (!kefa_rta_check(rdm, peer, pkt, &rta))
		return KEFA_TOOK_DONE;
	if (!kefa_rta_usable(rdm, pkt) || !kefa_target_may_stream(rdm, peer) ||
	    kefa_rpeer_dead(peer))
		return KEFA_TOOK_NOT;
	ts = kefa_target_ts(rdm, peer, sizeof(struct kefa_atomrsp_hdr) + pkt->msg_length);
	if (!ts)
		return KEFA_TOOK_NOT;
	rta.arith.result = (ts->copy ? ts->copy->data : ts->hdr) + sizeof(struct kefa_atomrsp_hdr);
	if (!kefa_rta_run(rdm, peer, pkt, &rta)) {
		kefa_ts_free(rdm, ts);
		return KEFA_TOOK_DONE;
	}
	kofi_side_count(&rdm->ep.rx.base, FI_READ, pkt->msg_length, false);
	kefa_target_post(rdm, ts, NULL, &rsp);
	return KEFA_TOOK_DONE;
}

const struct kefa_pkt_ops kefa_fetch_rta_ops = {
	.completed	= kefa_rtw_completed,
	.received	= kefa_fetch_rta_received,
};
