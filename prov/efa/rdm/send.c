// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sending. The call itself sends a message if the peer's HANDSHAKE has arrived, the peer has no
 * delay running, and no earlier message to it waits. Otherwise the message waits in the peer's
 * list, and the pump sends it later. All packets of a message are built before the message is
 * numbered, because nothing may fail after that.
 */
#include "../dma.h"
#include "../io.h"
#include "../trace.h"
#include "atomic.h"
#include "rdm.h"
#include "tx.h"

static int kefa_rdm_tx_check(struct kefa_rdm *rdm, const struct kofi_req *req)
{
	const size_t len = iov_iter_count(&req->iter);
	struct kefa_ep *ep = &rdm->ep;
	int ret;

	if (req->what & ~ep->caps)
		return -EOPNOTSUPP;
	if (req->flags & ~(KEFA_TX_FLAGS | (ep->caps & FI_FENCE)))
		return -FI_EBADFLAGS;
	if (req->what & FI_ATOMIC)
		return kefa_atomic_check(rdm, req);
	if (!iov_iter_is_kvec(&req->iter) && !iov_iter_is_bvec(&req->iter))
		return -EINVAL;
	if (iov_iter_rw(&req->iter) != (req->what & FI_READ ? ITER_DEST : ITER_SOURCE))
		return -EINVAL;
	if (req->what & FI_RMA) {
		ret = kefa_far_check(req);
		if (ret)
			return ret;
	}
	if (req->flags & FI_INJECT && len > kefa_inject_size(ep->dom->dev))
		return -EMSGSIZE;
	if (len > KEFA_RDM_MAX_MSG)
		return -EMSGSIZE;
	return kefa_iter_p2p(&req->iter) ? -EOPNOTSUPP : 0;
}

/*
 * Properties that the packets of a message, read or write share: @n packets carry @bytes in total,
 * and @segment each, after @hdr bytes of headers.
 */
struct kefa_msg_out {
	struct kefa_pkt		pkt;
	struct kefa_case	c;
	u32			segment;
	u32			bytes;
	u32			hdr;
	unsigned int		n;
};

static u8 kefa_select(const struct kefa_rdm *rdm, const struct kefa_rop *rop,
		      const struct kefa_case *c)
{
	if (!(rop->more & KEFA_ROP_FAR))
		return kefa_select_msg(&rdm->lim, c);
	return rop->cq_flags & FI_READ ? kefa_select_read(&rdm->lim, c) :
					 kefa_select_write(&rdm->lim, c);
}

static void kefa_msg_plan(struct kefa_rdm *rdm, const struct kefa_rop *rop,
			  struct kefa_msg_out *out)
{
	const u64 can = kefa_shake_can(&rdm->self, rop->peer);

	memset(out, 0, sizeof(*out));
	out->c.len = rop->total;
	out->c.tagged = rop->cq_flags & FI_TAGGED;
	out->c.dc = rop->flags & KEFA_ROP_DC && can & KEFA_FEATURE_DELIVERY_COMPLETE;
	out->c.reads = !(rop->more & KEFA_ROP_NO_READ) && kefa_shake_reads(&rdm->self, rop->peer);
	out->c.runt = rdm->lim.runt && can & KEFA_FEATURE_RUNT && kefa_source_alone(rdm, rop);
	/* All types of requests identify the sender in the same form. */
	out->pkt.row = kefa_row_of(KEFA_EAGER_MSGRTM_PKT);
	if (rop->cq_flags & FI_REMOTE_CQ_DATA)
		out->pkt.flags |= KEFA_REQ_OPT_CQ_DATA_HDR;
	kefa_shake_sign(&rdm->self, rop->peer, &out->pkt);
	out->c.flags = out->pkt.flags;
	if (rop->more & KEFA_ROP_FAR)
		out->pkt.rma_iov_count = rop->far.n;
	out->c.rma_iov_count = out->pkt.rma_iov_count;
	out->pkt.row = kefa_row_of(kefa_select(rdm, rop, &out->c));
	out->segment = kefa_segment(&rdm->lim, out->pkt.row->type, &out->c);
	out->bytes = out->segment;
	out->n = 1;
	out->pkt.read_iov_count = !!(out->pkt.row->flags & KEFA_ROW_READ);
	out->hdr = kefa_hdr_len(out->pkt.row, out->pkt.flags, out->pkt.rma_iov_count,
				out->pkt.read_iov_count);
	if (!(out->pkt.row->flags & KEFA_ROW_MULTI))
		return;
	out->bytes = out->pkt.read_iov_count ? kefa_runt(&rdm->lim, &out->c) : rop->total;
	out->n = DIV_ROUND_UP(out->bytes, out->segment);
}

/* Get the physical address of data. Return: false if the data isn't physically contiguous. */
static bool kefa_rop_phys(struct kefa_rdm *rdm, const struct kefa_rop *rop, u64 off, u32 len,
			  phys_addr_t *phys)
{
	struct iov_iter iter;
	struct kvec kvec;
	struct kefa_run run;

	if (likely(!rop->buf.segs && len <= rdm->ep.max_map &&
		   kefa_one_piece(rop->buf.base + off))) {
		*phys = virt_to_phys(rop->buf.base + off);
		return true;
	}
	kefa_rop_iter(rop, ITER_SOURCE, off, len, &iter, &kvec);
	if (kefa_runs(&rdm->ep, &iter, &run, 1) != 1)
		return false;
	*phys = page_to_phys(run.page) + run.off;
	return true;
}

/* Map data to be sent without a copy. Return: false if it isn't contiguous or can't be mapped. */
static bool kefa_ts_map(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct kefa_rop *rop,
			u64 off, u32 len)
{
	phys_addr_t phys;

	if (!kefa_rop_phys(rdm, rop, off, len, &phys))
		return false;
	if (unlikely(ts->peer->local)) {
		kefa_ts_lend(ts, phys, len);
		return true;
	}
	if (kefa_seg_map(&rdm->ep, &ts->seg, phys, len, DMA_TO_DEVICE))
		return true;
	ts->seg.len = 0;
	rdm->ep.stats.map_failed++;
	return false;
}

/*
 * Decide where a packet's data is sent from: the ULP's memory, the slot, or a bounce buffer.
 * Return: false if no bounce buffer is free.
 */
static __always_inline bool kefa_ts_place(struct kefa_rdm *rdm, struct kefa_ts *ts,
					  const struct kefa_rop *rop, u64 off, u32 len, u32 hdr,
					  bool keep)
{
	ts->len = hdr;
	if (hdr + len <= KEFA_TS_ROOM)
		return true;
	if (keep && kefa_ts_map(rdm, ts, rop, off, len))
		return true;
	ts->copy = kefa_copy_take(&rdm->ep);
	return ts->copy;
}

/* Copy the data of a packet that has its place, unless it is sent from the ULP's memory. */
static __always_inline bool kefa_ts_copy(struct kefa_rdm *rdm, struct kefa_ts *ts,
					 const struct kefa_rop *rop, u64 off, u32 len, u32 hdr)
{
	struct iov_iter __uninitialized iter;
	struct kvec __uninitialized kvec;
	u8 *to = ts->hdr + hdr;

	if (!len || ts->seg.len)
		return true;
	if (ts->copy) {
		rdm->ep.stats.bounced++;
		to = ts->copy->data + hdr;
	}
	rdm->stats.copied += len;
	ts->len += len;
	if (likely(!rop->buf.segs)) {
		memcpy(to, rop->buf.base + off, len);
		return true;
	}
	kefa_rop_iter(rop, ITER_SOURCE, off, len, &iter, &kvec);
	return copy_from_iter(to, len, &iter) == len;
}

/**
 * kefa_ts_data() - add data to a packet
 * @rdm: the endpoint
 * @ts: slot of the packet
 * @rop: operation whose data it is
 * @off: offset of the data in the message
 * @len: length of the data
 * @hdr: length of the headers, which precede the data in @ts->hdr or the buffer of @ts->copy
 * @keep: the data doesn't change until the packet has been delivered, so it needn't be copied
 *
 * Context: Under kefa_ep.lock.
 * Return: whether the data was added; false if no bounce buffer is free.
 */
bool kefa_ts_data(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct kefa_rop *rop, u64 off,
		  u32 len, u32 hdr, bool keep)
{
	return kefa_ts_place(rdm, ts, rop, off, len, hdr, keep) &&
	       kefa_ts_copy(rdm, ts, rop, off, len, hdr);
}

/* Return: length of the data of a message's packet @i. */
static u32 kefa_msg_len(const struct kefa_msg_out *out, unsigned int i)
{
	return min_t(u64, out->segment, out->bytes - (u64)i * out->segment);
}

static struct kefa_ts *kefa_msg_slot(struct kefa_rdm *rdm, struct kefa_rop *rop,
				     const struct kefa_msg_out *out, unsigned int i, bool keep)
{
	struct kefa_ts *ts = kefa_ts_take(rdm, rop->peer, false);

	if (!ts)
		return NULL;
	ts->type = out->pkt.row->type;
	ts->rop = rop;
	if (kefa_ts_place(rdm, ts, rop, (u64)i * out->segment, kefa_msg_len(out, i), out->hdr,
			  keep))
		return ts;
	kefa_ts_free(rdm, ts);
	return NULL;
}

static void kefa_msg_undo(struct kefa_rdm *rdm, struct kefa_ts **ts, unsigned int n)
{
	while (n--)
		kefa_ts_free(rdm, ts[n]);
}

/*
 * Take slots for all packets of a message, and then copy what must be copied: a message that lacks
 * a bounce buffer would otherwise be copied again with each attempt.
 */
static bool kefa_msg_slots(struct kefa_rdm *rdm, struct kefa_rop *rop,
			   const struct kefa_msg_out *out, struct kefa_ts **ts, bool keep)
{
	unsigned int i;

	for (i = 0; i < out->n; i++) {
		ts[i] = kefa_msg_slot(rdm, rop, out, i, keep);
		if (!ts[i]) {
			kefa_msg_undo(rdm, ts, i);
			return false;
		}
	}
	for (i = 0; i < out->n; i++) {
		if (!kefa_ts_copy(rdm, ts[i], rop, (u64)i * out->segment, kefa_msg_len(out, i),
				  out->hdr)) {
			kefa_msg_undo(rdm, ts, out->n);
			return false;
		}
	}
	return true;
}

/**
 * kefa_ts_seal() - write the headers of a packet that has its data
 * @rdm: the endpoint
 * @ts: slot of the packet
 * @pkt: contents of the headers
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_ts_seal(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct kefa_pkt *pkt)
{
	void *to = ts->copy ? ts->copy->data : ts->hdr;

	WARN_ON_ONCE(!kefa_build(pkt, to, KEFA_HDR_ROOM));
	if (ts->copy)
		kefa_dma_sync_for_device(rdm->ep.dma, ts->copy->dma, ts->len, DMA_TO_DEVICE);
}

/* Write the headers of another packet of a message: those of the first packet, adapted. */
static void kefa_ts_seal_next(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct kefa_ts *first,
			      const struct kefa_msg_out *out)
{
	void *to = ts->copy ? ts->copy->data : ts->hdr;

	memcpy(to, first->copy ? first->copy->data : first->hdr, out->hdr);
	/* Only the fixed header differs. */
	out->pkt.row->store(to, &out->pkt);
	if (ts->copy)
		kefa_dma_sync_for_device(rdm->ep.dma, ts->copy->dma, ts->len, DMA_TO_DEVICE);
}

/* Send a message to a peer that receives into its ULP's buffers: without headers and number. */
static int kefa_send_headerless(struct kefa_rdm *rdm, struct kefa_rop *rop, bool keep)
{
	struct kefa_ts *ts;

	if (rop->cq_flags & FI_TAGGED)
		return -EOPNOTSUPP;
	if (rop->total > rdm->lim.mtu)
		return -EMSGSIZE;
	/* May ring the doorbell, which can kill the peer. */
	kefa_tx_ready(rdm, 1);
	if (unlikely(kefa_rpeer_dead(rop->peer)))
		return -EAGAIN;
	ts = kefa_ts_take(rdm, rop->peer, false);
	if (!ts)
		return -EAGAIN;
	ts->rop = rop;
	if (!kefa_ts_data(rdm, ts, rop, 0, rop->total, 0, keep)) {
		kefa_ts_free(rdm, ts);
		return -EAGAIN;
	}
	if (ts->copy)
		kefa_dma_sync_for_device(rdm->ep.dma, ts->copy->dma, ts->len, DMA_TO_DEVICE);
	ts->has_imm = rop->cq_flags & FI_REMOTE_CQ_DATA;
	ts->imm = rop->data;
	rop->wrs++;
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_POSTED);
	kefa_ts_post(rdm, ts);
	return 0;
}

/**
 * kefa_may_send() - check whether a message may be sent to a peer now
 * @rdm: the endpoint
 * @peer: the peer
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it does. If not, the event that changes it calls kefa_rdm_todo().
 */
bool kefa_may_send(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	return kefa_shake_ready(&rdm->self, peer) && !peer->backoff.waiting &&
	       kefa_order_may_give(&peer->order);
}

/*
 * Return: whether an operation with FI_FENCE has to wait for an earlier one to its peer. Those that
 * haven't begun are before it in the peer's list. While it waits, the peer stays in kefa_rdm.todo,
 * so each poll tries it again. Fences are rare, so nothing counts a peer's operations.
 */
static bool kefa_fenced(const struct kefa_rdm *rdm, const struct kefa_rop *fence)
{
	const struct kefa_rop *rop;
	u32 i;

	if (likely(!(fence->more & KEFA_ROP_FENCE)))
		return false;
	for (i = 0; i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (rop->state != KEFA_ROP_FREE && rop->state != KEFA_ROP_LISTED &&
		    rop->state != KEFA_ROP_WAIT && rop->flags & KEFA_ROP_TX &&
		    rop->peer == fence->peer && rop != fence)
			return true;
	}
	for (i = 0; i < rdm->nts; i++)
		if (rdm->ts[i].whole && rdm->ts[i].state != KEFA_TS_FREE &&
		    rdm->ts[i].peer == fence->peer)
			return true;
	return false;
}

/* Return: the state of a message after its packets were passed to the device. */
static enum kefa_rop_state kefa_sent_state(const struct kefa_msg_out *out)
{
	const struct kefa_pkt_row *row = out->pkt.row;

	if (row->data == KEFA_DATA_FIRST || row->data == KEFA_DATA_SOME)
		return KEFA_ROP_GRANT;
	if (row->flags & KEFA_ROW_READ)
		return KEFA_ROP_ACK;
	if (row->flags & KEFA_ROW_RMA && row->data == KEFA_DATA_NONE)
		return KEFA_ROP_DATA_RX;
	return out->c.dc ? KEFA_ROP_ACK : KEFA_ROP_POSTED;
}

/* Return: 0, -EINPROGRESS while memory is being registered, or another negative errno. */
static noinline int kefa_send_long(struct kefa_rdm *rdm, struct kefa_rop *rop, bool keep)
{
	struct kefa_ts *__uninitialized ts[KEFA_HELD_MAX];
	struct kefa_msg_out __uninitialized out;
	struct kefa_rpeer *peer = rop->peer;
	struct kefa_rma_iov iov, far[KEFA_IOV_MAX];
	unsigned int i;
	int ret;

	kefa_msg_plan(rdm, rop, &out);
	if (out.pkt.read_iov_count && !rop->source) {
		kefa_tx_ready(rdm, 1);
		if (unlikely(kefa_rpeer_dead(peer)))
			return -EAGAIN;
		ret = kefa_source_get(rdm, rop);
		if (!ret || ret == -EAGAIN)
			return ret ?: -EINPROGRESS;
		rop->more |= KEFA_ROP_NO_READ;
		kefa_msg_plan(rdm, rop, &out);
	}
	if (unlikely(!kefa_tx_may(rdm, peer, out.pkt.row)))
		return -EOPNOTSUPP;
	/* The rest of injected data would be sent from memory that may have changed. */
	if (!keep && (out.pkt.row->data == KEFA_DATA_SOME || out.pkt.row->data == KEFA_DATA_FIRST))
		return -EMSGSIZE;
	if (out.pkt.read_iov_count) {
		kefa_source_iov(rop, &iov);
		out.pkt.read_iov = &iov;
	}
	if (out.pkt.rma_iov_count) {
		kefa_far_iov(rop, far);
		out.pkt.rma_iov = far;
	}
	if (kefa_tx_room(rdm, peer) < out.n || WARN_ON_ONCE(out.n > KEFA_HELD_MAX))
		return -EAGAIN;
	kefa_tx_ready(rdm, out.n);
	if (unlikely(kefa_rpeer_dead(peer)) || !kefa_msg_slots(rdm, rop, &out, ts, keep))
		return -EAGAIN;
	if (out.pkt.row->flags & KEFA_ROW_ORDERED)
		rop->msg_id = kefa_order_give(&peer->order);
	rop->type = out.pkt.row->type;
	rop->wrs += out.n;
	rop->sent = out.segment;
	rop->done = out.segment;
	rop->runt = out.pkt.read_iov_count ? out.bytes : 0;
	kefa_rop_set_state(&rdm->rops, rop, kefa_sent_state(&out));
	if (rop->state == KEFA_ROP_DATA_RX)
		rop->window = kefa_far_window(rdm, rop->total);
	if (rop->state != KEFA_ROP_POSTED)
		kefa_silent_arm(rdm);
	rdm->stats.sent[rop->type] += out.n;
	out.pkt.row->ops->fill(rdm, rop, &out.pkt);
	for (i = 0; i < out.n; i++) {
		out.pkt.seg_offset = (u64)i * out.segment;
		if (i)
			kefa_ts_seal_next(rdm, ts[i], ts[0], &out);
		else
			kefa_ts_seal(rdm, ts[0], &out.pkt);
		if (out.pkt.row->flags & KEFA_ROW_ORDERED)
			kefa_ts_order(ts[i], rop->msg_id);
		kefa_ts_post(rdm, ts[i]);
	}
	trace_kefa_packet(&rdm->ep, peer, out.pkt.row->type, rop->msg_id, rop->total, true);
	return 0;
}

/*
 * Send a message of one packet, without delivery complete and remote CQ data, with a prepared
 * header.
 */
static int kefa_send_short(struct kefa_rdm *rdm, struct kefa_rop *rop,
			   const struct kefa_shape *shape, bool keep)
{
	struct kefa_rpeer *peer = rop->peer;
	struct kefa_ts *ts;
	u8 *to;

	if (!kefa_tx_room(rdm, peer))
		return -EAGAIN;
	kefa_tx_ready(rdm, 1);
	if (unlikely(kefa_rpeer_dead(peer)))
		return -EAGAIN;
	ts = kefa_ts_take(rdm, peer, false);
	if (!ts)
		return -EAGAIN;
	ts->type = shape->type;
	ts->rop = rop;
	if (!kefa_ts_data(rdm, ts, rop, 0, rop->total, shape->hdr, keep)) {
		kefa_ts_free(rdm, ts);
		return -EAGAIN;
	}
	rop->msg_id = kefa_order_give(&peer->order);
	rop->type = shape->type;
	rop->wrs = 1;
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_POSTED);
	rdm->stats.sent[shape->type]++;
	to = ts->copy ? ts->copy->data : ts->hdr;
	kefa_shape_write(shape, to, rop->msg_id, rop->tag);
	if (ts->copy)
		kefa_dma_sync_for_device(rdm->ep.dma, ts->copy->dma, ts->len, DMA_TO_DEVICE);
	kefa_ts_order(ts, rop->msg_id);
	kefa_ts_post(rdm, ts);
	trace_kefa_packet(&rdm->ep, peer, shape->type, rop->msg_id, rop->total, true);
	return 0;
}

static int kefa_send_now(struct kefa_rdm *rdm, struct kefa_rop *rop, bool keep)
{
	const bool tagged = rop->cq_flags & FI_TAGGED;
	struct kefa_rpeer *peer = rop->peer;
	const struct kefa_shape *shape;

	if (unlikely(rop->more & KEFA_ROP_ATOMIC))
		return kefa_atomic_send(rdm, rop);
	if (unlikely(rop->more & KEFA_ROP_FAR))
		return kefa_rdma_may(rdm, rop, keep) ? kefa_rdma_send(rdm, rop) :
						       kefa_send_long(rdm, rop, keep);
	if (unlikely(peer->flags & KEFA_RPEER_HEADERLESS))
		return kefa_send_headerless(rdm, rop, keep);
	shape = &rdm->shapes[kefa_shake_signs(peer)][tagged];
	if (likely(rop->total <= shape->room && !(rop->flags & KEFA_ROP_DC) &&
		   !(rop->cq_flags & FI_REMOTE_CQ_DATA)))
		return kefa_send_short(rdm, rop, shape, keep);
	return kefa_send_long(rdm, rop, keep);
}

/**
 * kefa_rdm_send() - send a message that waits
 * @rdm: the endpoint, enabled
 * @rop: the message, in KEFA_ROP_WAIT and the first one in its peer's list
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: true if the message was sent or has failed; false if it still waits.
 */
bool kefa_rdm_send(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	int ret;

	lockdep_assert_held(&rdm->ep.lock);
	if (!kefa_may_send(rdm, rop->peer) || kefa_fenced(rdm, rop))
		return false;
	ret = kefa_send_now(rdm, rop, true);
	if (ret == -EAGAIN || ret == -EINPROGRESS)
		return false;
	list_del_init(&rop->peer_link);
	if (!ret)
		return true;
	/* It was registered for a peer that turned out to take no requests. */
	if (rop->source) {
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_DYING);
		kefa_source_release(rdm, rop);
	}
	kefa_rdm_end_tx(rdm, rop, -ret, 0);
	return true;
}

/* --- calls of the ULP --- */

static void kefa_rop_from_req(struct kefa_rdm *rdm, struct kefa_rop *rop,
			      const struct kofi_req *req, struct kefa_rpeer *peer)
{
	rop->flags = KEFA_ROP_TX | rdm->as_msg;
	if (req->quiet || kofi_side_quiet(&rdm->ep.tx.base, req->flags))
		rop->flags |= KEFA_ROP_QUIET;
	if (req->flags & FI_DELIVERY_COMPLETE && !(req->flags & FI_INJECT))
		rop->flags |= KEFA_ROP_DC;
	if (unlikely(req->flags & FI_FENCE))
		rop->more |= KEFA_ROP_FENCE;
	/* The memory is the caller's again when the call returns. */
	if (unlikely(req->flags & FI_INJECT))
		rop->more |= KEFA_ROP_NO_READ;
	rop->peer = peer;
	peer->nops++;
	rop->context = req->context;
	rop->cq_flags = req->what | (req->flags & FI_REMOTE_CQ_DATA);
	rop->data = req->data;
	rop->tag = req->tag;
	rop->total = iov_iter_count(&req->iter);
	if (req->what & FI_RMA)
		kefa_far_hold(rop, req);
	else if (req->what & FI_ATOMIC)
		kefa_atomic_hold(rdm, rop, req);
}

static void kefa_count_posted(struct kefa_ep *ep, const struct kofi_req *req)
{
	if (req->what & FI_READ) {
		ep->stats.reads++;
		return;
	}
	ep->stats.writes += !!(req->what & FI_WRITE);
	ep->stats.sends += !!(req->what & FI_SEND);
	ep->stats.tx_bytes += iov_iter_count(&req->iter);
}

/* Free the operation of a refused call. It gets no completion. */
static void kefa_rop_undo(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	const bool tx = rdm->ep.tx.room, rx = rdm->ep.rx.room;

	rop->flags |= KEFA_ROP_TOLD | KEFA_ROP_OVER;
	if (rop->more & KEFA_ROP_ATOMIC)
		kefa_atomic_release(rdm, rop);
	rdm->ep.tx.nfree++;
	kefa_rdm_end(rdm, rop);
	/* The operation was free before the call, so the ULP needn't be notified of the room. */
	rdm->ep.tx.room = tx;
	rdm->ep.rx.room = rx;
}

/*
 * Have a message wait; or refuse it if it is injected, because its data may change after the call.
 * The pump is due.
 */
static int kefa_rdm_wait(struct kefa_rdm *rdm, struct kefa_rop *rop, bool inject)
{
	struct kefa_rpeer *peer = rop->peer;

	if (kefa_shake_ask(&rdm->self, &rdm->peers, peer)) {
		peer->owes |= KEFA_OWES_TRIGGER;
		kefa_rdm_todo(rdm, peer);
	}
	/* It waits for slots or buffers. If no packet has any, no completion will wake it up. */
	if (kefa_may_send(rdm, peer)) {
		kefa_rdm_todo(rdm, peer);
		if (rdm->ts_nfree == rdm->nts)
			queue_delayed_work(kefa_wq, &rdm->ep.map_retry,
					   msecs_to_jiffies(KEFA_MAP_RETRY_MS));
	}
	if (inject) {
		rdm->ep.stats.again++;
		rdm->ep.tx.wanted = true;
		if (peer->state == KEFA_RPEER_SHAKING) {
			rdm->refused = true;
			kefa_silent_arm(rdm);
		}
		return -EAGAIN;
	}
	list_add_tail(&rop->peer_link, &peer->wait);
	kefa_silent_arm(rdm);
	return 0;
}

static int kefa_rdm_tx_go(struct kefa_rdm *rdm, const struct kofi_req *req)
{
	const bool inject = req->flags & FI_INJECT;
	struct kefa_ep *ep = &rdm->ep;
	struct kefa_rpeer *peer;
	struct kefa_rop *rop;
	int ret;

	lockdep_assert_held(&ep->lock);
	ret = kefa_not_enabled(ep);
	if (ret)
		return ret;
	peer = kefa_peers_at(&rdm->peers, req->addr);
	if (!peer || kefa_rpeer_dead(peer))
		return -EHOSTUNREACH;
	rop = kefa_rdm_take_rop(rdm, &ep->tx, KEFA_ROP_WAIT);
	if (!rop) {
		ep->stats.again++;
		ep->tx.wanted = true;
		return -EAGAIN;
	}
	kefa_rop_from_req(rdm, rop, req, peer);
	ret = kefa_rop_hold(rop, req) ? 0 : -EINVAL;
	if (!ret) {
		ret = -EAGAIN;
		if (list_empty(&peer->wait) && kefa_may_send(rdm, peer) && !kefa_fenced(rdm, rop))
			ret = kefa_send_now(rdm, rop, !inject);
		if (ret == -EINPROGRESS) {
			list_add_tail(&rop->peer_link, &peer->wait);
			ret = 0;
		}
		if (ret == -EAGAIN)
			ret = kefa_rdm_wait(rdm, rop, inject);
		else if (!ret)
			kefa_tx_posted(rdm, req->flags & FI_MORE);
	}
	if (ret)
		kefa_rop_undo(rdm, rop);
	else
		kefa_count_posted(ep, req);
	if (unlikely(rdm->reap || (peer->owes && !list_empty(&peer->todo))))
		kefa_rdm_pump(rdm);
	return ret;
}

/* Check a call, and reserve an entry for its completion. The lock may be held. */
static int kefa_rdm_tx_begin(struct kefa_rdm *rdm, struct kofi_req *req)
{
	struct kofi_side *side = &rdm->ep.tx.base;

	kofi_req_flags(req, READ_ONCE(side->op_flags));
	return kefa_rdm_tx_check(rdm, req) ?: kofi_side_reserve(side);
}

/* Carry out a call, and release the lock. @ret is from kefa_rdm_tx_begin(). */
static ssize_t kefa_rdm_tx_end(struct kefa_rdm *rdm, const struct kofi_req *req, int ret)
	__releases(&rdm->ep.lock)
{
	struct kefa_ep *ep = &rdm->ep;

	if (!ret) {
		ret = kefa_rdm_tx_go(rdm, req);
		if (ret)
			kofi_side_unreserve(&ep->tx.base);
	}
	kefa_ep_unlock_news(ep);
	if (ret)
		trace_kefa_refused(ep, req, ret);
	return ret;
}

/**
 * kefa_rdm_tx_unlock() - send a message, and release the lock
 * @rdm: the endpoint
 * @req: the request; only the memory that it points to is used after the call
 *
 * Context: Process or softirq context, under kefa_ep.lock, which is released; doesn't sleep.
 * Return: 0, or a negative errno.
 */
ssize_t kefa_rdm_tx_unlock(struct kefa_rdm *rdm, struct kofi_req *req)
	__releases(&rdm->ep.lock)
{
	return kefa_rdm_tx_end(rdm, req, kefa_rdm_tx_begin(rdm, req));
}

/**
 * kefa_rdm_tx() - send a message
 * @ep_fid: the endpoint
 * @req: the request; only the memory that it points to is used after the call
 *
 * Serves as kofi_req_ops.tx.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno.
 */
ssize_t kefa_rdm_tx(struct fid_ep *ep_fid, struct kofi_req *req)
{
	struct kefa_rdm *rdm = to_kefa_rdm(to_kefa_ep(ep_fid));
	const int ret = kefa_rdm_tx_begin(rdm, req);

	spin_lock_bh(&rdm->ep.lock);
	return kefa_rdm_tx_end(rdm, req, ret);
}

/* --- cancelling --- */

/* With @tag, only operations with this tag. */
static bool kefa_cancel_posted(struct kefa_rdm *rdm, const u64 *tag, void *context)
{
	struct kofi_match_recv *recv;

	recv = tag ? kofi_match_cancel_tag(&rdm->match, *tag, context) :
		     kofi_match_cancel(&rdm->match, context);
	if (recv)
		kefa_rdm_unposted(rdm, container_of(recv, struct kefa_rop, recv), ECANCELED);
	return recv;
}

/**
 * kefa_rdm_cancel_send() - cancel a send that waits
 * @rdm: the endpoint
 * @rop: the send
 *
 * Numbered ones can't be cancelled: later messages wait for them.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it was cancelled.
 */
bool kefa_rdm_cancel_send(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (rop->state != KEFA_ROP_WAIT || rop->source)
		return false;
	list_del_init(&rop->peer_link);
	kefa_rdm_end_tx(rdm, rop, ECANCELED, 0);
	return true;
}

/* Cancel an operation that has a peer. A message in a multi-receive buffer has no context. */
static bool kefa_cancel_begun(struct kefa_rdm *rdm, const u64 *tag, void *context)
{
	struct kefa_rop *rop;
	u32 i;

	for (i = 0; i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (rop->context != context || rop->flags & KEFA_ROP_PART ||
		    (tag && !kefa_rop_has(rop, *tag)))
			continue;
		/* A connection would lose the credit that the send has taken. */
		if (rdm->as_msg && rop->flags & KEFA_ROP_TX)
			continue;
		if (rop->flags & KEFA_ROP_TX ? kefa_rdm_cancel_send(rdm, rop) :
					       kefa_rdm_abandon(rdm, rop))
			return true;
	}
	return false;
}

static ssize_t kefa_cancel(struct kefa_ep *ep, const u64 *tag, void *context)
{
	struct kefa_rdm *rdm = to_kefa_rdm(ep);
	struct kefa_news news;
	bool found = false;

	spin_lock_bh(&ep->lock);
	if (ep->state == KEFA_EP_ENABLED) {
		found = kefa_cancel_posted(rdm, tag, context) ||
			kefa_cancel_begun(rdm, tag, context);
		/* An answer may be due to the sender, and memory of kept packets was freed. */
		if (found && kefa_rdm_due(rdm))
			kefa_rdm_pump(rdm);
	}
	news = kefa_ep_news(ep);
	spin_unlock_bh(&ep->lock);
	kefa_ep_tell(ep, news, false);
	return found ? 0 : -ENOENT;
}

/**
 * kefa_rdm_cancel() - cancel a receive, even if its message is arriving, or a send that waits
 * @fid: the endpoint
 * @context: context of the operation
 *
 * Serves as fi_ops_ep.cancel.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or -ENOENT.
 */
ssize_t kefa_rdm_cancel(struct fid *fid, void *context)
{
	return kefa_cancel(container_of(fid, struct kefa_ep, ep_fid.fid), NULL, context);
}

/**
 * kefa_rdm_cancel_tag() - as kefa_rdm_cancel(), among the operations with one tag
 * @ep_fid: the endpoint
 * @tag: the tag
 * @context: context of the operation
 *
 * Serves as fi_ops_ep.cancel_tag.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or -ENOENT.
 */
ssize_t kefa_rdm_cancel_tag(struct fid_ep *ep_fid, u64 tag, void *context)
{
	return kefa_cancel(to_kefa_ep(ep_fid), &tag, context);
}
