// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fast path of reads and writes of one piece at both ends: by the device, or by packets if all
 * data fits into one. A read or write by the device and a write by a packet use only a send slot
 * and no operation. The target of packets carries them out in the packet's handler. fast_atomic.c
 * has the fast path of atomic operations.
 *
 * Anything else takes the slow path: far.c, rdma.c and target.c. Nothing changes before it is known
 * which way is taken.
 */
#include "../io.h"
#include "../mr.h"
#include "fast.h"
#include "fast_far.h"
#include "target.h"

/* --- calls --- */

/**
 * struct kefa_far_call - a plain read or write
 * @read: it is a read
 * @buf: local memory
 * @len: length of @buf in bytes, more than 0
 * @peer: the peer
 * @addr: address of the peer's memory
 * @key: key of the peer's memory
 * @context: the caller's context
 *
 * The functions that take one are always inlined, so that the compiler optimises it away.
 */
struct kefa_far_call {
	bool		read;
	void		*buf;
	size_t		len;
	fi_addr_t	peer;
	u64		addr;
	u64		key;
	void		*context;
};

/* Take a slot that is the operation. */
static __always_inline struct kefa_ts *kefa_far_slot(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
						     const struct kefa_far_call *c)
{
	struct kefa_ts *ts = kefa_ts_pop(rdm, peer);
	struct kefa_ep *ep = &rdm->ep;

	ep->tx.nfree--;
	ts->how = rdm->tx_how;
	ts->context = c->context;
	ts->cq_flags = FI_RMA | (c->read ? FI_READ : FI_WRITE);
	ts->tag = 0;
	ts->total = c->len;
	return ts;
}

/* Read or write by the device. Return: false if it can't, or not by one work request. */
static __always_inline bool kefa_far_device(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					    const struct kefa_far_call *c, unsigned int nheld)
{
	struct kefa_ts *ts = rdm->ts_free;
	struct kefa_ep *ep = &rdm->ep;
	struct kefa_wr *wr;

	if (unlikely(c->len > rdm->lim.read_segment || !kefa_one_piece(c->buf) ||
		     kofi_side_reserve(&ep->tx.base)))
		return false;
	if (unlikely(!kefa_seg_map(ep, &ts->seg, virt_to_phys(c->buf), c->len,
				   c->read ? DMA_FROM_DEVICE : DMA_TO_DEVICE))) {
		ts->seg.len = 0;
		kofi_side_unreserve(&ep->tx.base);
		return false;
	}
	kefa_far_slot(rdm, peer, c);
	ts->what = c->read ? KEFA_TS_READ : KEFA_TS_WRITE;
	ts->whole = KEFA_WHOLE_RDMA;
	if (c->read)
		rdm->stats.reads++;
	else
		rdm->stats.writes++;
	wr = kefa_far_wr(rdm, ts, nheld);
	kefa_wr_rdma(wr, ts->id, !c->read, peer->ah->ah, kefa_rpeer_qpn(peer),
		     kefa_rpeer_connid(peer), c->addr, c->key);
	kefa_wr_sge(wr, ts->seg.dma, c->len);
	return true;
}

/* Write by a packet. */
static __always_inline bool kefa_far_packet(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					    const struct kefa_far_call *c, unsigned int nheld)
{
	struct kefa_ts *ts = rdm->ts_free;
	struct kefa_eager_rtw_hdr *hdr = (void *)ts->hdr;
	const bool copies = KEFA_FAR_RTW + c->len <= KEFA_TS_ROOM;
	struct kefa_ep *ep = &rdm->ep;
	void *data;

	if (unlikely(KEFA_FAR_RTW + c->len > rdm->lim.mtu || kofi_side_reserve(&ep->tx.base)))
		return false;
	if (!copies && unlikely(!kefa_one_piece(c->buf) ||
				!kefa_seg_map(ep, &ts->seg, virt_to_phys(c->buf), c->len,
					      DMA_TO_DEVICE))) {
		ts->seg.len = 0;
		kofi_side_unreserve(&ep->tx.base);
		return false;
	}
	kefa_far_slot(rdm, peer, c);
	ts->whole = KEFA_WHOLE_PACKET;
	*(__le32 *)hdr = cpu_to_le32(KEFA_EAGER_FIRST(KEFA_EAGER_RTW_PKT));
	hdr->rma_iov_count = cpu_to_le32(1);
	data = kefa_far_tail(rdm, hdr->rma_iov, c->addr, c->len, c->key);
	ts->len = KEFA_FAR_RTW;
	if (copies) {
		kefa_copy_data(data, c->buf, c->len);
		ts->len += c->len;
		rdm->stats.copied += c->len;
	}
	kefa_far_post(rdm, ts, KEFA_EAGER_RTW_PKT, nheld);
	trace_kefa_packet(ep, peer, KEFA_EAGER_RTW_PKT, 0, c->len, true);
	return true;
}

static __always_inline struct kefa_rop *kefa_far_rop(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
						     const struct kefa_far_call *c)
{
	struct kefa_rop *rop = kefa_rdm_take_rop(rdm, &rdm->ep.tx, KEFA_ROP_DATA_RX);

	rop->type = KEFA_SHORT_RTR_PKT;
	rop->flags = KEFA_ROP_TX | rdm->tx_how;
	rop->wrs = 1;
	rop->peer = peer;
	peer->nops++;
	rop->context = c->context;
	rop->cq_flags = FI_RMA | FI_READ;
	rop->total = c->len;
	rop->window = c->len;
	rop->more = KEFA_ROP_FAR;
	rop->buf = (struct kefa_rbuf){ .base = c->buf, .len = c->len };
	rop->far.addr = c->addr;
	rop->far.key = c->key;
	rop->far.n = 1;
	return rop;
}

/* Read by packets. */
static __always_inline bool kefa_far_ask(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					 const struct kefa_far_call *c, unsigned int nheld)
{
	struct kefa_ep *ep = &rdm->ep;
	struct kefa_rtr_hdr *hdr;
	struct kefa_ts *ts;

	if (unlikely(c->len > kefa_readrsp_room(&rdm->lim) || !rdm->rops.free ||
		     !kefa_one_piece(c->buf) || kofi_side_reserve(&ep->tx.base)))
		return false;
	ts = kefa_ts_pop(rdm, peer);
	ts->rop = kefa_far_rop(rdm, peer, c);
	hdr = (void *)ts->hdr;
	*(__le32 *)hdr = cpu_to_le32(KEFA_EAGER_FIRST(KEFA_SHORT_RTR_PKT));
	hdr->rma_iov_count = cpu_to_le32(1);
	hdr->msg_length = cpu_to_le64(c->len);
	hdr->recv_id = cpu_to_le32(kefa_rop_id(&rdm->rops, ts->rop));
	hdr->recv_length = cpu_to_le32(c->len);
	kefa_far_tail(rdm, hdr->rma_iov, c->addr, c->len, c->key);
	ts->len = KEFA_FAR_RTR;
	kefa_silent_arm(rdm);
	kefa_far_post(rdm, ts, KEFA_SHORT_RTR_PKT, nheld);
	trace_kefa_packet(ep, peer, KEFA_SHORT_RTR_PKT, 0, c->len, true);
	return true;
}

/* Return: false if the call takes the slow path. */
static __always_inline bool kefa_far_tx(struct kefa_rdm *rdm, const struct kefa_far_call *c)
{
	struct kefa_ep *ep = &rdm->ep;
	const unsigned int nheld = ep->nheld;
	struct kefa_rpeer *peer;
	bool done;
	u64 end;

	if (unlikely(!c->len || c->len >= (c->read ? rdm->far_read : rdm->far_write) ||
		     c->key > U32_MAX || check_add_overflow(c->addr, (u64)c->len, &end) ||
		     !ep->tx.nfree || nheld == KEFA_HELD_MAX))
		return false;
	peer = kefa_far_peer(rdm, c->peer);
	if (unlikely(!peer))
		return false;
	if (c->read ? kefa_shake_reads(&rdm->self, peer) :
		      kefa_shake_writes(&rdm->self, peer, false))
		done = kefa_far_device(rdm, peer, c, nheld);
	else if (unlikely(kefa_shake_signs(peer) != KEFA_SIGNS_CONNID))
		done = false;
	else
		done = c->read ? kefa_far_ask(rdm, peer, c, nheld) :
				 kefa_far_packet(rdm, peer, c, nheld);
	if (unlikely(!done))
		return false;
	if (c->read) {
		ep->stats.reads++;
	} else {
		ep->stats.writes++;
		ep->stats.tx_bytes += c->len;
	}
	kefa_ring(rdm, nheld, likely(!nheld && !ep->worker));
	return true;
}

static ssize_t kefa_rdm_read_plain(struct fid_ep *ep_fid, void *buf, size_t len, void *desc,
				   fi_addr_t src, u64 addr, u64 key, void *context)
{
	const struct kefa_far_call c = {
		.read		= true,
		.buf		= buf,
		.len		= len,
		.peer		= src,
		.addr		= addr,
		.key		= key,
		.context	= context,
	};
	struct kefa_ep *ep = to_kefa_ep(ep_fid);
	bool done;

	spin_lock_bh(&ep->lock);
	done = kefa_far_tx(to_kefa_rdm(ep), &c);
	spin_unlock_bh(&ep->lock);
	return likely(done) ? 0 : kofi_req_read(ep_fid, buf, len, desc, src, addr, key, context);
}

static ssize_t kefa_rdm_write_plain(struct fid_ep *ep_fid, const void *buf, size_t len, void *desc,
				    fi_addr_t dest, u64 addr, u64 key, void *context)
{
	const struct kefa_far_call c = {
		.buf		= (void *)buf,
		.len		= len,
		.peer		= dest,
		.addr		= addr,
		.key		= key,
		.context	= context,
	};
	struct kefa_ep *ep = to_kefa_ep(ep_fid);
	bool done;

	spin_lock_bh(&ep->lock);
	done = kefa_far_tx(to_kefa_rdm(ep), &c);
	spin_unlock_bh(&ep->lock);
	return likely(done) ? 0 : kofi_req_write(ep_fid, buf, len, desc, dest, addr, key, context);
}

const struct fi_ops_rma kefa_rdm_rma_ops = {
	.read		= kefa_rdm_read_plain,
	.readv		= kofi_req_readv,
	.readmsg	= kofi_req_readmsg,
	.write		= kefa_rdm_write_plain,
	.writev		= kofi_req_writev,
	.writemsg	= kofi_req_writemsg,
	.inject		= kofi_req_inject_write,
	.writedata	= kofi_req_writedata,
	.injectdata	= kofi_req_inject_writedata,
};

/* --- completions of work requests --- */

/**
 * kefa_far_done() - handle the completion of a read or write by the device that is a whole slot
 * @rdm: the endpoint, with a queue pair
 * @ts: slot of the work request, in KEFA_TS_POSTED
 * @wc: completion of the work request
 *
 * Context: Under kefa_ep.lock. The report is due.
 * Return: whether the completion was handled; if not, nothing has changed.
 */
bool kefa_far_done(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct ib_wc *wc)
{
	const bool read = ts->what == KEFA_TS_READ;
	struct kefa_rpeer *peer = ts->peer;

	lockdep_assert_held(&rdm->ep.lock);
	if (unlikely(ts->err || kefa_wc_failed(wc) || peer->state >= KEFA_RPEER_DYING))
		return false;
	if (unlikely(!list_empty(&peer->wait) || peer->owes))
		kefa_rdm_todo(rdm, peer);
	kefa_dma_unmap(rdm->ep.dma, ts->seg.dma, ts->seg.len,
		       read ? DMA_FROM_DEVICE : DMA_TO_DEVICE);
	if (read)
		rdm->ep.stats.rx_bytes += ts->seg.len;
	ts->seg.len = 0;
	ts->what = KEFA_TS_PACKET;
	ts->whole = KEFA_WHOLE_NOT;
	kefa_ts_release(rdm, ts);
	kefa_ts_report(rdm, ts);
	return true;
}

/* Return: whether a slot has the request of an operation that waits for the answer. */
static __always_inline bool kefa_far_asked(const struct kefa_ts *ts)
{
	const struct kefa_rop *rop = ts->rop;

	if (rop->err)
		return false;
	if (ts->type == KEFA_SHORT_RTR_PKT)
		return rop->state == KEFA_ROP_DATA_RX;
	/* One that has its answer takes the slow path, which has more to end. */
	return rop->state == KEFA_ROP_ACK && !(rop->flags & KEFA_ROP_OVER) && !ts->copy;
}

/**
 * kefa_far_sent() - handle the delivery of the request of a read or a fetch, or of the answer
 * @rdm: the endpoint, enabled
 * @ts: slot of the packet, neither a whole message nor shared
 *
 * Context: Under kefa_ep.lock. The report is due.
 * Return: whether the completion was handled; if not, nothing has changed.
 */
bool kefa_far_sent(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct kefa_rpeer *peer = ts->peer;
	struct kefa_rop *rop = ts->rop;

	lockdep_assert_held(&rdm->ep.lock);
	if (unlikely(ts->seg.len || (rop ? !kefa_far_asked(ts) :
					   ts->type != KEFA_READRSP_PKT &&
					   ts->type != KEFA_ATOMRSP_PKT)))
		return false;
	if (!rop) {
		if (ts->type == KEFA_READRSP_PKT)
			kefa_target_was_read(rdm, ts->len - sizeof(struct kefa_readrsp_hdr));
		kefa_target_served(ts);
	}
	kefa_ts_arrived(ts);
	if (ts->copy) {
		kefa_copy_free(&rdm->ep, ts->copy);
		ts->copy = NULL;
	}
	kefa_read_slot_over(rdm, ts);
	if (rop && !--rop->wrs && rop->flags & KEFA_ROP_OVER)
		kefa_sent_far(rdm, rop, ts);
	else
		kefa_ts_unused(rdm, ts);
	return kefa_read_slot_todo(rdm, peer);
}

/* --- packets --- */

/* Return: the sender of a request; NULL unless it passes kefa_rpeer_usual(). */
static __always_inline struct kefa_rpeer *kefa_far_from(struct kefa_rdm *rdm,
							const struct ib_wc *wc, u32 connid)
{
	struct kefa_rpeer *peer = kefa_peers_known(&rdm->peers, wc->slid, wc->src_qp, connid);

	return likely(peer && kefa_rpeer_usual(peer)) ? peer : NULL;
}

static __always_inline struct kefa_named kefa_far_named(const struct kefa_far *f)
{
	return (struct kefa_named) { .addr = f->addr, .len = f->len, .key = f->key };
}

static bool kefa_rtw_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc)
{
	struct kefa_far __uninitialized f;
	struct kefa_rpeer *peer;
	struct kefa_named mem;

	if (unlikely(!kefa_rtw_parse(rs->held.buf, wc->byte_len, &f) ||
		     !kefa_far_serves(rdm, FI_REMOTE_WRITE)))
		return false;
	peer = kefa_far_from(rdm, wc, f.connid);
	if (unlikely(!peer))
		return false;
	mem = kefa_far_named(&f);
	if (unlikely(kefa_mr_once(rdm->ep.dom, &mem, (void *)f.data, true)))
		return false;
	rdm->ep.stats.rx_bytes += f.len;
	kofi_side_count(&rdm->ep.rx.base, FI_WRITE, f.len, false);
	return kefa_far_took(rdm, rs, peer, KEFA_EAGER_RTW_PKT, f.len);
}

/* Answer a read. */
static bool kefa_rtr_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc)
{
	struct kefa_far __uninitialized f;
	struct kefa_readrsp_hdr *hdr;
	struct kefa_slice *slice;
	struct kefa_rpeer *peer;
	struct kefa_named mem;
	struct kefa_ts *ts;

	if (unlikely(!kefa_rtr_parse(rs->held.buf, wc->byte_len, &f) ||
		     !kefa_far_serves(rdm, FI_REMOTE_READ) ||
		     f.len > kefa_readrsp_room(&rdm->lim) || rdm->ep.nheld == KEFA_HELD_MAX))
		return false;
	peer = kefa_far_from(rdm, wc, f.connid);
	if (unlikely(!peer || peer->owes || !kefa_may_stream(rdm, peer) ||
		     !kefa_target_may_post(rdm, peer)))
		return false;
	ts = kefa_target_ts(rdm, peer, sizeof(*hdr) + f.len);
	if (unlikely(!ts))
		return false;
	hdr = ts->copy ? (void *)ts->copy->data : (void *)ts->hdr;
	mem = kefa_far_named(&f);
	if (unlikely(kefa_mr_once(rdm->ep.dom, &mem, hdr + 1, false))) {
		kefa_ts_free(rdm, ts);
		return false;
	}
	if (ts->copy) {
		slice = kefa_slice_of(ts);
		slice->mem[0] = mem;
		slice->off = 0;
		slice->hdr = sizeof(*hdr);
	}
	kefa_target_serves(ts);
	rdm->stats.copied += f.len;
	rdm->ep.stats.tx_bytes += f.len;
	*(__le32 *)hdr = cpu_to_le32(KEFA_EAGER_FIRST(KEFA_READRSP_PKT));
	hdr->connid = cpu_to_le32(rdm->self.connid);
	hdr->recv_id = cpu_to_le32(f.recv_id);
	hdr->send_id = 0;
	hdr->seg_length = cpu_to_le64(f.len);
	kefa_far_post(rdm, ts, KEFA_READRSP_PKT, rdm->ep.nheld);
	rdm->ep.nheld++;
	return kefa_far_took(rdm, rs, peer, KEFA_SHORT_RTR_PKT, 0);
}

/* All data of a read arrives. If its request has completed, another slot reports it. */
static bool kefa_readrsp_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc)
{
	const struct kefa_readrsp_hdr *hdr = kefa_readrsp_parse(rs->held.buf, wc->byte_len);
	struct kefa_rop *rop = hdr ? kefa_rop_find(&rdm->rops, le32_to_cpu(hdr->recv_id)) : NULL;
	struct kefa_rpeer *peer;
	struct kefa_ts *ts;

	if (unlikely(!rop || !kefa_far_awaits(rop) || rop->type != KEFA_SHORT_RTR_PKT ||
		     rop->more & KEFA_ROP_RSP || rop->total != wc->byte_len - sizeof(*hdr) ||
		     rop->window != rop->total || rop->buf.segs || rdm->ts_nfree <= rdm->ts_ctl))
		return false;
	peer = rop->peer;
	if (unlikely(!kefa_rpeer_usual(peer) ||
		     !kefa_wc_from(wc, peer, le32_to_cpu(hdr->connid))))
		return false;
	rop->more |= KEFA_ROP_RSP;
	kefa_far_served(rop);
	rop->window = 0;
	rop->done = rop->total;
	memcpy(rop->buf.base, hdr + 1, rop->total);
	rdm->ep.stats.rx_bytes += rop->total;
	kefa_far_took(rdm, rs, peer, KEFA_READRSP_PKT, rop->total);
	if (unlikely(rop->wrs)) {
		rop->flags |= KEFA_ROP_OVER;
		return true;
	}
	ts = rdm->ts_free;
	rdm->ts_free = ts->next;
	rdm->ts_nfree--;
	kefa_sent_far(rdm, rop, ts);
	return true;
}

/**
 * kefa_far_arrived() - handle a read or write by a packet, or the data of a read
 * @rdm: the endpoint
 * @rs: slot of the packet, as found by kefa_eager_arrived()
 * @wc: completion of the packet
 *
 * Context: Under kefa_ep.lock. The report, kefa_tx_flush() and kefa_rx_give() are due.
 * Return: whether the packet was handled; if not, nothing has changed.
 */
bool kefa_far_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (unlikely(rdm->ep.state != KEFA_EP_ENABLED))
		return false;
	switch (*(const u8 *)rs->held.buf) {
	case KEFA_EAGER_RTW_PKT:
		return kefa_rtw_arrived(rdm, rs, wc);
	case KEFA_SHORT_RTR_PKT:
		return kefa_rtr_arrived(rdm, rs, wc);
	case KEFA_READRSP_PKT:
		return kefa_readrsp_arrived(rdm, rs, wc);
	default:
		return false;
	}
}
