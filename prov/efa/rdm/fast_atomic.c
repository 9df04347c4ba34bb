// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fast path of fetches of a few integers at both ends. The others, and other kinds, take the
 * slow path: atomic.c and rta.c. Nothing changes before it is known which way is taken.
 */
#include "../io.h"
#include "../mr.h"
#include "atomic.h"
#include "fast.h"
#include "fast_far.h"
#include "target.h"

/* Maximum length of the elements in bytes. */
#define KEFA_FETCH_MAX	64

static_assert(KEFA_FAR_RTA + KEFA_FETCH_MAX <= KEFA_TS_ROOM);

/* Return: whether elements are integers, whole and aligned, with an operation that has operands. */
static __always_inline bool kefa_fetch_usual(u32 datatype, u32 op, u64 addr, u64 len)
{
	/* Each two types have one size. */
	return datatype <= FI_UINT64 && op <= FI_BXOR && len - 1 < KEFA_FETCH_MAX &&
	       !((addr | len) & (BIT(datatype / 2) - 1));
}

/* --- calls --- */

/**
 * struct kefa_fetch_call - a plain fetch
 * @operand: the operands
 * @result: takes the old values
 * @count: number of elements
 * @peer: the peer
 * @addr: address of the peer's memory
 * @key: key of the peer's memory
 * @datatype: type of the elements
 * @op: the operation
 * @context: the caller's context
 *
 * The functions that take one are always inlined, so that the compiler optimises it away.
 */
struct kefa_fetch_call {
	const void	*operand;
	void		*result;
	size_t		count;
	fi_addr_t	peer;
	u64		addr;
	u64		key;
	u32		datatype;
	u32		op;
	void		*context;
};

/* Take an operation that waits for its answer, and store what the answer needs. */
static __always_inline struct kefa_rop *kefa_fetch_rop(struct kefa_rdm *rdm,
						       struct kefa_rpeer *peer,
						       const struct kefa_fetch_call *c, u32 len)
{
	struct kefa_rop *rop = kefa_rop_pop(&rdm->rops);
	struct kefa_atomic *atomic = rdm->atomics_free;

	rdm->ep.tx.nfree--;
	rdm->atomics_free = atomic->next;
	atomic->datatype = c->datatype;
	atomic->op = c->op;
	atomic->compare = false;
	atomic->result.one = (struct fi_ioc) { c->result, c->count };
	atomic->result.iov = &atomic->result.one;
	atomic->result.count = 1;
	kefa_rop_unlist(rop);
	rop->type = KEFA_FETCH_RTA_PKT;
	rop->flags = KEFA_ROP_TX | rdm->tx_how;
	rop->wrs = 1;
	rop->peer = peer;
	peer->nops++;
	rop->context = c->context;
	rop->cq_flags = FI_ATOMIC | FI_READ;
	rop->err = 0;
	rop->prov = 0;
	rop->data = 0;
	rop->tag = 0;
	rop->msg_id = 0;
	rop->remote_id = 0;
	rop->total = len;
	rop->more = KEFA_ROP_FAR | KEFA_ROP_ATOMIC;
	rop->buf = (struct kefa_rbuf) { };
	rop->far.atomic = atomic;
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_ACK);
	return rop;
}

/* Return: the length of the elements; 0 unless they are usual. */
static __always_inline u32 kefa_fetch_len(const struct kefa_fetch_call *c)
{
	u64 end;
	u32 len;

	if (unlikely(!c->operand || !c->result || c->count > KEFA_FETCH_MAX))
		return 0;
	len = c->count << c->datatype / 2 % 4;
	if (unlikely(!kefa_fetch_usual(c->datatype, c->op, c->addr, len) ||
		     check_add_overflow(c->addr, (u64)len, &end)))
		return 0;
	return len;
}

/* Return: false if the call takes the slow path; then nothing has changed. */
static __always_inline bool kefa_fetch_tx(struct kefa_rdm *rdm, const struct kefa_fetch_call *c)
{
	struct kefa_ep *ep = &rdm->ep;
	const unsigned int nheld = ep->nheld;
	const u32 len = kefa_fetch_len(c);
	struct kefa_rta_hdr *hdr;
	struct kefa_rpeer *peer;
	struct kefa_ts *ts;
	u32 msg_id;
	void *data;

	if (unlikely(!len || !rdm->far_fetch || !ep->tx.nfree || !rdm->rops.free ||
		     nheld == KEFA_HELD_MAX))
		return false;
	peer = kefa_far_peer(rdm, c->peer);
	if (unlikely(!peer || !kefa_order_may_give(&peer->order) ||
		     kefa_shake_signs(peer) != KEFA_SIGNS_CONNID))
		return false;
	if (unlikely(kofi_side_reserve(&ep->tx.base)))
		return false;
	ts = kefa_ts_pop(rdm, peer);
	ts->rop = kefa_fetch_rop(rdm, peer, c, len);
	msg_id = kefa_order_give(&peer->order);
	hdr = (void *)ts->hdr;
	*(__le32 *)hdr = cpu_to_le32(KEFA_EAGER_FIRST(KEFA_FETCH_RTA_PKT) | KEFA_FETCH_HINT);
	hdr->msg_id = cpu_to_le32(msg_id);
	hdr->rma_iov_count = cpu_to_le32(1);
	hdr->atomic_datatype = cpu_to_le32(c->datatype);
	hdr->atomic_op = cpu_to_le32(c->op);
	hdr->id = cpu_to_le32(kefa_rop_id(&rdm->rops, ts->rop));
	data = kefa_far_tail(rdm, hdr->rma_iov, c->addr, len, c->key);
	kefa_copy_data(data, c->operand, len);
	ts->len = KEFA_FAR_RTA + len;
	kefa_ts_order(ts, msg_id);
	if (unlikely(!rdm->listening))
		kefa_silent_arm(rdm);
	kefa_far_post(rdm, ts, KEFA_FETCH_RTA_PKT, nheld);
	rdm->stats.copied += len;
	ep->stats.reads++;
	ep->stats.tx_bytes += len;
	trace_kefa_packet(ep, peer, KEFA_FETCH_RTA_PKT, msg_id, len, true);
	kefa_ring(rdm, nheld, likely(!nheld && !ep->worker));
	return true;
}

static ssize_t kefa_rdm_fetch_plain(struct fid_ep *ep_fid, const void *buf, size_t count,
				    void *desc, void *result, void *result_desc, fi_addr_t dest,
				    u64 addr, u64 key, enum fi_datatype datatype, enum fi_op op,
				    void *context)
{
	const struct kefa_fetch_call c = {
		.operand	= buf,
		.result		= result,
		.count		= count,
		.peer		= dest,
		.addr		= addr,
		.key		= key,
		.datatype	= datatype,
		.op		= op,
		.context	= context,
	};
	struct kefa_ep *ep = to_kefa_ep(ep_fid);
	bool done;

	spin_lock_bh(&ep->lock);
	done = kefa_fetch_tx(to_kefa_rdm(ep), &c);
	spin_unlock_bh(&ep->lock);
	return likely(done) ? 0 : kofi_req_fetch_atomic(ep_fid, buf, count, desc, result,
							result_desc, dest, addr, key, datatype,
							op, context);
}

const struct fi_ops_atomic kefa_rdm_atomic_ops = {
	.write		= kofi_req_atomic,
	.writev		= kofi_req_atomicv,
	.writemsg	= kofi_req_atomicmsg,
	.inject		= kofi_req_inject_atomic,
	.readwrite	= kefa_rdm_fetch_plain,
	.readwritev	= kofi_req_fetch_atomicv,
	.readwritemsg	= kofi_req_fetch_atomicmsg,
	.compwrite	= kofi_req_compare_atomic,
	.compwritev	= kofi_req_compare_atomicv,
	.compwritemsg	= kofi_req_compare_atomicmsg,
};

/* --- packets --- */

/**
 * kefa_fetch_arrived() - carry out a fetch in its turn, and answer it
 * @rdm: the endpoint
 * @rs: slot of the packet, as found by kefa_eager_arrived()
 * @wc: completion of the packet
 *
 * Context: Under kefa_ep.lock. The report, kefa_tx_flush() and kefa_rx_give() are due.
 * Return: whether the packet was handled; if not, nothing has changed.
 */
bool kefa_fetch_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc)
{
	const u64 serves = FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct kefa_fetch __uninitialized f;
	struct kefa_atomrsp_hdr *hdr;
	struct kefa_arith __uninitialized arith;
	struct kefa_rpeer *peer;
	struct kefa_named __uninitialized mem;
	struct kefa_eager e;
	struct kefa_ts *ts;

	lockdep_assert_held(&rdm->ep.lock);
	if (unlikely(rdm->ep.state != KEFA_EP_ENABLED ||
		     !kefa_fetch_parse(rs->held.buf, wc->byte_len, &f) ||
		     !kefa_fetch_usual(f.datatype, f.op, f.far.addr, f.far.len) ||
		     serves & ~rdm->ep.caps || rdm->ep.nheld == KEFA_HELD_MAX ||
		     (!rdm->ordered && !list_empty(&rdm->early))))
		return false;
	e = (struct kefa_eager) { .msg_id = f.msg_id, .connid = f.far.connid, .len = f.far.len };
	peer = kefa_turn_of(rdm, wc, &e);
	if (unlikely(!peer || peer->owes || !kefa_may_stream(rdm, peer) ||
		     !kefa_target_may_post(rdm, peer)))
		return false;
	/* The slot that kefa_ts_pop() will take, as kefa_may_stream() leaves one. */
	hdr = (void *)rdm->ts_free->hdr;
	mem = (struct kefa_named) { .addr = f.far.addr, .len = f.far.len, .key = f.far.key };
	arith = (struct kefa_arith) {
		.datatype	= f.datatype,
		.op		= f.op,
		.operand	= f.far.data,
		.result		= hdr + 1,
	};
	/* A fault is counted by the slow path, which finds it again. */
	if (unlikely(kefa_mr_fetch_once(rdm->ep.dom, &mem, &arith)))
		return false;
	ts = kefa_ts_pop(rdm, peer);
	ts->len = sizeof(*hdr) + f.far.len;
	kefa_target_serves(ts);
	rdm->stats.copied += f.far.len;
	rdm->ep.stats.rx_bytes += f.far.len;
	rdm->ep.stats.tx_bytes += f.far.len;
	kofi_side_count(&rdm->ep.rx.base, FI_READ, f.far.len, false);
	*(__le32 *)hdr = cpu_to_le32(KEFA_EAGER_FIRST(KEFA_ATOMRSP_PKT));
	hdr->connid = cpu_to_le32(rdm->self.connid);
	hdr->reserved = 0;
	hdr->recv_id = cpu_to_le32(f.far.recv_id);
	hdr->seg_length = cpu_to_le64(f.far.len);
	kefa_far_post(rdm, ts, KEFA_ATOMRSP_PKT, rdm->ep.nheld);
	rdm->ep.nheld++;
	kefa_rs_take(rdm, rs);
	kefa_arrived(rdm, peer, KEFA_FETCH_RTA_PKT, &e);
	kefa_rs_again(rdm, rs);
	if (unlikely(!rdm->ordered))
		return true;
	kefa_order_begun(&peer->order);
	if (unlikely(!list_empty(&rdm->early))) {
		kefa_rdm_report(rdm);
		kefa_rdm_drain(rdm, peer);
	}
	return true;
}

/**
 * kefa_atomrsp_arrived() - complete a fetch with its old values, after its request has completed
 * @rdm: the endpoint
 * @rs: slot of the packet, as found by kefa_eager_arrived()
 * @wc: completion of the packet
 *
 * Context: Under kefa_ep.lock. The report and kefa_rx_give() are due.
 * Return: whether the packet was handled; if not, nothing has changed.
 */
bool kefa_atomrsp_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc)
{
	const struct kefa_atomrsp_hdr *hdr = kefa_atomrsp_parse(rs->held.buf, wc->byte_len);
	struct kefa_rop *rop = hdr ? kefa_rop_find(&rdm->rops, le32_to_cpu(hdr->recv_id)) : NULL;
	struct kefa_rpeer *peer;
	struct kefa_ts *ts;

	lockdep_assert_held(&rdm->ep.lock);
	if (unlikely(rdm->ep.state != KEFA_EP_ENABLED || !rop || rop->state != KEFA_ROP_ACK ||
		     rop->type != KEFA_FETCH_RTA_PKT ||
		     rop->wrs || rop->err || rop->flags & KEFA_ROP_OVER ||
		     rop->total != wc->byte_len - sizeof(*hdr) ||
		     rop->far.atomic->result.count != 1 || rdm->ts_nfree <= rdm->ts_ctl))
		return false;
	peer = rop->peer;
	if (unlikely(!kefa_rpeer_usual(peer) ||
		     !kefa_wc_from(wc, peer, le32_to_cpu(hdr->connid))))
		return false;
	kefa_far_served(rop);
	kefa_copy_data(rop->far.atomic->result.iov->addr, hdr + 1, rop->total);
	rdm->ep.stats.rx_bytes += rop->total;
	kefa_far_took(rdm, rs, peer, KEFA_ATOMRSP_PKT, rop->total);
	kefa_atomic_release(rdm, rop);
	ts = rdm->ts_free;
	rdm->ts_free = ts->next;
	rdm->ts_nfree--;
	kefa_sent_far(rdm, rop, ts);
	return true;
}
