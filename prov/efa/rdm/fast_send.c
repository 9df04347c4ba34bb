// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fast path of plain calls, as ../direct/plain.c is for efa-direct: calls with one buffer and
 * without flags that ask for more. A message of one packet, to a peer for which nothing else
 * waits, uses only a send slot and no operation. A receive is an operation.
 *
 * Any other call, and any call that fails here, takes the slow path of send.c and recv.c, which
 * returns and counts all errors. It goes on under the same lock.
 *
 * The fast path to peers in the same kernel is tried when that of other peers has failed, so that
 * calls to these don't pay for it. It writes no header: local.c does if the peer needs one.
 */
#include "../io.h"
#include "../trace.h"
#include "local.h"
#include "rdm.h"
#include "fast.h"
#include "tx.h"

/* An operation with one of these default flags takes the slow path. */
#define KEFA_RDM_LONG_WAY	(FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE | \
				 FI_DELIVERY_COMPLETE | FI_MULTI_RECV)

static size_t kefa_rdm_limit(const struct kefa_ep *ep, u64 what, u64 op_flags, size_t max)
{
	if (ep->state != KEFA_EP_ENABLED || what & ~ep->caps || op_flags & KEFA_RDM_LONG_WAY)
		return 0;
	return max + 1;
}

static struct kefa_limits kefa_rdm_limits_of(const struct kefa_ep *ep, u64 what)
{
	const u64 tx = ep->tx.base.op_flags, rx = ep->rx.base.op_flags;
	const size_t mtu = ep->dom->dev->mtu;

	return (struct kefa_limits) {
		.send	= kefa_rdm_limit(ep, what | FI_SEND, tx, mtu),
		/* The data is copied behind the header into the send slot. */
		.inject	= kefa_rdm_limit(ep, what | FI_SEND, 0,
					 min(kefa_inject_size(ep->dom->dev),
					     KEFA_TS_ROOM - KEFA_SHAPE_ROOM)),
		.recv	= kefa_rdm_limit(ep, what | FI_RECV, rx, SIZE_MAX - 1),
	};
}

static u8 kefa_rdm_how(const struct kefa_rdm *rdm, const struct kofi_side *side)
{
	return rdm->as_msg | (kofi_side_quiet(side, side->op_flags) ? KEFA_ROP_QUIET : 0);
}

/**
 * kefa_rdm_set_limits() - decide which calls may take the fast path
 * @ep: the endpoint, whose state or flags have changed
 *
 * Serves as kefa_ep_kind.limits.
 *
 * Context: Process context, under kefa_ep.lock.
 */
void kefa_rdm_set_limits(struct kefa_ep *ep)
{
	struct kefa_rdm *rdm = to_kefa_rdm(ep);

	lockdep_assert_held(&ep->lock);
	rdm->tx_how = kefa_rdm_how(rdm, &ep->tx.base);
	rdm->rx_how = kefa_rdm_how(rdm, &ep->rx.base);
	ep->limits = kefa_rdm_limits_of(ep, FI_MSG);
	rdm->tagged = kefa_rdm_limits_of(ep, FI_TAGGED);
	rdm->far_read = kefa_rdm_limit(ep, FI_RMA | FI_READ, ep->tx.base.op_flags, SIZE_MAX - 1);
	rdm->far_write = kefa_rdm_limit(ep, FI_RMA | FI_WRITE, ep->tx.base.op_flags, SIZE_MAX - 1);
	rdm->far_fetch = kefa_rdm_limit(ep, FI_ATOMIC | FI_READ, ep->tx.base.op_flags, 0);
}

/* --- sending --- */

/**
 * struct kefa_rplain - a plain call
 * @what: FI_MSG or FI_TAGGED, and FI_SEND or FI_RECV
 * @inject: the caller may reuse the buffer after the call, and there is no completion
 * @buf: the buffer
 * @len: length of the buffer in bytes
 * @addr: the peer
 * @tag: the tag, or 0
 * @ignore: bits of the tag that a receive ignores
 * @context: the caller's context
 *
 * The functions that take one are always inlined, so that the compiler optimises it away.
 */
struct kefa_rplain {
	u64		what;
	bool		inject;
	void		*buf;
	size_t		len;
	fi_addr_t	addr;
	u64		tag;
	u64		ignore;
	void		*context;
};

static __always_inline const struct kefa_limits *
kefa_rplain_limits(const struct kefa_rdm *rdm, const struct kefa_rplain *p)
{
	return p->what & FI_TAGGED ? &rdm->tagged : &rdm->ep.limits;
}

/* Return: whether a slot for a message to a peer may be taken. */
static __always_inline bool kefa_rplain_may(const struct kefa_rdm *rdm,
					    const struct kefa_rpeer *peer)
{
	return rdm->ts_nfree > rdm->ts_ctl &&
	       (rdm->peers.count <= 1 || peer->wrs < rdm->ts_share);
}

/* Return: the peer if a message of one packet can be posted to it at once, or NULL. */
static __always_inline struct kefa_rpeer *kefa_rplain_peer(const struct kefa_rdm *rdm,
							   const struct kefa_rplain *p)
{
	struct kefa_rpeer *peer = kefa_peers_at(&rdm->peers, p->addr);

	if (unlikely(!peer || peer->flags & KEFA_RPEER_APART ||
		     !kefa_shake_ready(&rdm->self, peer) || peer->owes ||
		     peer->backoff.waiting || !list_empty(&peer->wait) ||
		     !kefa_order_may_give(&peer->order)))
		return NULL;
	return likely(kefa_rplain_may(rdm, peer)) ? peer : NULL;
}

/* In the usual case the address is a constant. */
static __always_inline const struct kefa_shape *
kefa_rplain_shape(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer, bool tagged)
{
	const enum kefa_signs how = kefa_shake_signs(peer);

	return likely(how == KEFA_SIGNS_CONNID) ? &rdm->shapes[KEFA_SIGNS_CONNID][tagged] :
						  &rdm->shapes[how][tagged];
}

/* Copy or map the data of a packet. Return: false if it can be neither. */
static __always_inline bool kefa_rplain_load(struct kefa_rdm *rdm, struct kefa_ts *ts, u32 hdr,
					     const struct kefa_rplain *p)
{
	if (likely(p->inject || hdr + p->len <= KEFA_TS_ROOM)) {
		kefa_copy_data(ts->hdr + hdr, p->buf, p->len);
		ts->len = hdr + p->len;
		rdm->stats.copied += p->len;
		return true;
	}
	ts->len = hdr;
	if (kefa_one_piece(p->buf) &&
	    kefa_seg_map(&rdm->ep, &ts->seg, virt_to_phys(p->buf), p->len, DMA_TO_DEVICE))
		return true;
	ts->seg.len = 0;
	return false;
}

/* Type of the packet for the call. */
static __always_inline u8 kefa_rplain_type(const struct kefa_rplain *p)
{
	return p->what & FI_TAGGED ? KEFA_EAGER_TAGRTM_PKT : KEFA_EAGER_MSGRTM_PKT;
}

/* Fill in a work request; kefa_ts_wr() does so for packets of any type. */
static __always_inline void kefa_rplain_wr(struct kefa_rdm *rdm, const struct kefa_ts *ts,
					   const struct kefa_rpeer *peer, struct kefa_wr *wr)
{
	kefa_wr_send(wr, ts->id, peer->ah->ah, kefa_rpeer_qpn(peer), kefa_rpeer_connid(peer));
	if (!ts->seg.len && ts->len <= KEFA_MAX_INLINE) {
		kefa_wr_inline(wr, ts->hdr, ts->len);
		return;
	}
	kefa_dma_sync_for_device(rdm->ep.dma, ts->dma, ts->len, DMA_TO_DEVICE);
	kefa_wr_sge(wr, ts->dma, ts->len);
	if (ts->seg.len)
		kefa_wr_sge(wr, ts->seg.dma, ts->seg.len);
}

/* Take the slot of a message that has its data, and number the message, which is posted next. */
static __always_inline u32 kefa_rplain_take(struct kefa_rdm *rdm, struct kefa_ts *ts,
					    struct kefa_rpeer *peer, const struct kefa_rplain *p,
					    u8 type)
{
	const u32 msg_id = kefa_order_give(&peer->order);
	struct kefa_ep *ep = &rdm->ep;

	rdm->ts_free = ts->next;
	rdm->ts_nfree--;
	ep->tx.nfree--;
	peer->wrs++;
	ts->whole = KEFA_WHOLE_PACKET;
	ts->peer = peer;
	ts->type = type;
	ts->how = p->inject ? KEFA_ROP_QUIET : rdm->tx_how;
	ts->context = p->context;
	ts->cq_flags = p->what;
	ts->tag = p->tag;
	ts->total = p->len;
	kefa_ts_order(ts, msg_id);
	rdm->stats.sent[type]++;
	ep->stats.sends++;
	ep->stats.tx_bytes += p->len;
	trace_kefa_packet(ep, peer, type, msg_id, p->len, true);
	kefa_ts_set_state(rdm, ts, KEFA_TS_POSTED);
	return msg_id;
}

/* Take the slot of a packet that has its data, and fill in its work request. Can't fail. */
static __always_inline void kefa_rplain_go(struct kefa_rdm *rdm, struct kefa_ts *ts,
					   struct kefa_rpeer *peer, const struct kefa_rplain *p,
					   unsigned int nheld)
{
	const u32 msg_id = kefa_rplain_take(rdm, ts, peer, p, kefa_rplain_type(p));
	struct kefa_eager_tagrtm_hdr *hdr = (void *)ts->hdr;
	struct kefa_ep *ep = &rdm->ep;
	struct kefa_wr *wr = &ep->wrs[nheld];

	hdr->hdr.msg_id = cpu_to_le32(msg_id);
	if (p->what & FI_TAGGED)
		hdr->tag = cpu_to_le64(p->tag);
	ep->held[nheld] = wr;
	kefa_rplain_wr(rdm, ts, peer, wr);
}

static __always_inline bool kefa_rplain_tx(struct kefa_rdm *rdm, const struct kefa_rplain *p,
					   bool simple)
{
	const struct kefa_limits *limits = kefa_rplain_limits(rdm, p);
	const unsigned int nheld = simple ? 0 : rdm->ep.nheld;
	struct kefa_ts *ts = rdm->ts_free;
	struct kefa_ep *ep = &rdm->ep;
	const struct kefa_shape *shape;
	struct kefa_rpeer *peer;

	if (unlikely(p->len >= (p->inject ? limits->inject : limits->send) || !ep->tx.nfree ||
		     nheld == KEFA_HELD_MAX))
		return false;
	peer = kefa_rplain_peer(rdm, p);
	if (unlikely(!peer))
		return false;
	shape = kefa_rplain_shape(rdm, peer, p->what & FI_TAGGED);
	if (unlikely(p->len > shape->room || kofi_side_reserve(&ep->tx.base)))
		return false;
	kefa_shape_begin(shape, ts->hdr);
	if (unlikely(!kefa_rplain_load(rdm, ts, shape->hdr, p))) {
		kofi_side_unreserve(&ep->tx.base);
		return false;
	}
	kefa_rplain_go(rdm, ts, peer, p, nheld);
	kefa_ring(rdm, nheld, simple);
	return true;
}

/* --- sending to a peer in the same kernel --- */

/* Return: the local peer if a message can be passed to it at once, or NULL. */
static __always_inline struct kefa_rpeer *kefa_rlocal_peer(const struct kefa_rdm *rdm,
							   const struct kefa_rplain *p)
{
	struct kefa_rpeer *peer = kefa_peers_at(&rdm->peers, p->addr);

	if (unlikely(!peer || !(peer->flags & KEFA_RPEER_LOCAL) ||
		     peer->state != KEFA_RPEER_READY || peer->owes || peer->backoff.waiting ||
		     !list_empty(&peer->wait) || !kefa_order_may_give(&peer->order)))
		return NULL;
	return likely(kefa_rplain_may(rdm, peer)) ? peer : NULL;
}

/* Return: whether the slot has room for the message, with any header that local.c may write. */
static __always_inline bool kefa_rlocal_fits(const struct kefa_rplain *p)
{
	return KEFA_SHAPE_SHORT + p->len <= KEFA_TS_ROOM;
}

/*
 * Return: type of the packets that the peer makes of a message if it can't take it as it is; 0 if
 * these would wait for grants, or if the message can't be sent by the fast path at all.
 */
static __always_inline u8 kefa_rlocal_type(const struct kefa_rdm *rdm, const struct kefa_rplain *p)
{
	const bool tagged = p->what & FI_TAGGED;

	if (likely(kefa_rlocal_fits(p) ||
		   p->len <= rdm->shapes[KEFA_SIGNS_CONNID][tagged].room))
		return kefa_rplain_type(p);
	if (p->len > rdm->lim.max_medium)
		return 0;
	return tagged ? KEFA_MEDIUM_TAGRTM_PKT : KEFA_MEDIUM_MSGRTM_PKT;
}

/* Pass a message to a peer in the same kernel: with its data if that is short, or lend the data. */
static __always_inline bool kefa_rlocal_tx(struct kefa_rdm *rdm, const struct kefa_rplain *p)
{
	const struct kefa_limits *limits = kefa_rplain_limits(rdm, p);
	struct kefa_ts *ts = rdm->ts_free;
	struct kefa_ep *ep = &rdm->ep;
	struct kefa_rpeer *peer;
	u8 type;

	if (unlikely(!(p->inject ? p->len < limits->inject : limits->send) || !ep->tx.nfree))
		return false;
	peer = kefa_rlocal_peer(rdm, p);
	type = kefa_rlocal_type(rdm, p);
	if (unlikely(!peer || !type || !(kefa_rlocal_fits(p) || kefa_one_piece(p->buf)) ||
		     kofi_side_reserve(&ep->tx.base)))
		return false;
	if (likely(kefa_rlocal_fits(p))) {
		kefa_copy_data(ts->hdr + KEFA_SHAPE_SHORT, p->buf, p->len);
		rdm->stats.copied += p->len;
	} else {
		kefa_ts_lend(ts, virt_to_phys(p->buf), p->len);
	}
	ts->len = 0;
	kefa_rplain_take(rdm, ts, peer, p, type);
	kefa_local_pass(rdm, ts, KEFA_LOCAL_REQUESTS);
	return true;
}

/* Likewise, of a call that injects it. @how is as below. */
static noinline bool kefa_rplain_inject_local(struct kefa_rdm *rdm, const void *buf, size_t len,
					      fi_addr_t dest, u64 how, u64 tag)
{
	const struct kefa_rplain p = {
		.what		= how & ~FI_INJECT,
		.inject		= true,
		.buf		= (void *)buf,
		.len		= len,
		.addr		= dest,
		.tag		= tag,
	};

	return rdm->local && kefa_rlocal_tx(rdm, &p);
}

/* Send a message by the slow path. Releases the lock. @how is kefa_rplain.what, and FI_INJECT. */
static noinline ssize_t kefa_rplain_send_slow(struct kefa_ep *ep, const void *buf, size_t len,
					      fi_addr_t dest, u64 how, u64 tag, void *context)
	__releases(&ep->lock)
{
	const struct kvec iov = { (void *)buf, len };
	const bool inject = how & FI_INJECT;
	struct kofi_req req = {
		.what		= how & ~FI_INJECT,
		.flags		= how & FI_INJECT,
		.defaults	= !inject,
		.quiet		= inject,
		.addr		= dest,
		.tag		= tag,
		.context	= context,
	};

	if (inject && kefa_rplain_inject_local(to_kefa_rdm(ep), buf, len, dest, how, tag)) {
		spin_unlock_bh(&ep->lock);
		return 0;
	}
	iov_iter_kvec(&req.iter, ITER_SOURCE, &iov, 1, len);
	return kefa_rdm_tx_unlock(to_kefa_rdm(ep), &req);
}

/*
 * Send a message of one packet. With nothing held back for one doorbell, the endpoint's first work
 * request is used.
 */
static __always_inline bool kefa_rplain_send_it(struct kefa_ep *ep, const struct kefa_rplain *p)
{
	struct kefa_rdm *rdm = to_kefa_rdm(ep);

	return likely(!ep->worker && !ep->nheld) ? kefa_rplain_tx(rdm, p, true) :
						   kefa_rplain_tx(rdm, p, false);
}

/* --- sending in several packets --- */

/* Initialize an operation, except what kefa_rop_unlist() does. */
static __always_inline void kefa_rplain_rop(struct kefa_rop *rop, const struct kefa_rplain *p,
					    u8 how)
{
	rop->flags = how;
	rop->peer = NULL;
	rop->context = p->context;
	rop->cq_flags = p->what;
	rop->err = 0;
	rop->prov = 0;
	rop->data = 0;
	rop->tag = p->tag;
	rop->buf = (struct kefa_rbuf){ .base = p->buf, .len = p->len };
}

/* Length of the header in bytes. */
static __always_inline u32 kefa_rmedium_head(bool tagged)
{
	return sizeof(struct kefa_req_opt_connid_hdr) +
	       (tagged ? sizeof(struct kefa_medium_tagrtm_hdr) :
			 sizeof(struct kefa_medium_msgrtm_hdr));
}

/* Write the header of @len bytes, with the connid. */
static __always_inline void kefa_rmedium_hdr(void *to, const struct kefa_rdm *rdm,
					     const struct kefa_rop *rop, bool tagged, u32 len,
					     u64 off)
{
	struct kefa_req_opt_connid_hdr *opt = to + len - sizeof(*opt);
	struct kefa_medium_tagrtm_hdr *hdr = to;

	*(__le32 *)to = cpu_to_le32(KEFA_RTM_FIRST(MEDIUM, tagged));
	hdr->hdr.msg_id = cpu_to_le32(rop->msg_id);
	hdr->hdr.msg_length = cpu_to_le64(rop->total);
	hdr->hdr.seg_offset = cpu_to_le64(off);
	if (tagged)
		hdr->tag = cpu_to_le64(rop->tag);
	opt->connid = cpu_to_le32(rdm->self.connid);
}

static struct kefa_rop *kefa_rmedium_rop(struct kefa_rdm *rdm, const struct kefa_rplain *p,
					 struct kefa_rpeer *peer, u16 n)
{
	struct kefa_rop *rop = kefa_rop_get(&rdm->rops);

	kefa_rplain_rop(rop, p, rdm->tx_how);
	kefa_rop_unlist(rop);
	rop->flags |= KEFA_ROP_TX;
	rop->peer = peer;
	peer->nops++;
	rop->type = p->what & FI_TAGGED ? KEFA_MEDIUM_TAGRTM_PKT : KEFA_MEDIUM_MSGRTM_PKT;
	rop->total = p->len;
	rop->wrs = n;
	rop->msg_id = kefa_order_give(&peer->order);
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_POSTED);
	return rop;
}

/* Post all packets of the message, which is mapped at @all. Can't fail. */
static __always_inline void kefa_rmedium_go(struct kefa_rdm *rdm, struct kefa_rop *rop,
					    const struct kefa_seg *all, u32 segment, bool tagged)
{
	const u32 hdr = kefa_rmedium_head(tagged);
	struct kefa_rpeer *peer = rop->peer;
	const u32 qpn = kefa_rpeer_qpn(peer), connid = kefa_rpeer_connid(peer);
	struct ib_ah *ah = peer->ah->ah;
	struct kefa_ep *ep = &rdm->ep;
	unsigned int nheld = ep->nheld;
	struct kefa_wr *wr;
	struct kefa_ts *ts;
	u32 off;

	rop->mapped = true;
	rop->dma = all->dma;
	for (off = 0; off < all->len; off += segment) {
		ts = rdm->ts_free;
		rdm->ts_free = ts->next;
		ts->rop = rop;
		ts->peer = peer;
		ts->shared = true;
		ts->seg.dma = all->dma + off;
		ts->seg.phys = all->phys + off;
		ts->seg.len = min(segment, all->len - off);
		ts->type = rop->type;
		ts->len = hdr;
		kefa_rmedium_hdr(ts->hdr, rdm, rop, tagged, hdr, off);
		kefa_ts_order(ts, rop->msg_id);
		kefa_ts_set_state(rdm, ts, KEFA_TS_POSTED);
		kefa_dma_sync_for_device(ep->dma, ts->dma, hdr, DMA_TO_DEVICE);
		wr = &ep->wrs[nheld];
		ep->held[nheld++] = wr;
		kefa_wr_send(wr, ts->id, ah, qpn, connid);
		kefa_wr_sge(wr, ts->dma, hdr);
		kefa_wr_sge(wr, ts->seg.dma, ts->seg.len);
	}
	ep->nheld = nheld;
	rdm->ts_nfree -= rop->wrs;
	peer->wrs += rop->wrs;
	ep->tx.nfree--;
	rdm->stats.sent[rop->type] += rop->wrs;
	ep->stats.sends++;
	ep->stats.tx_bytes += rop->total;
	trace_kefa_packet(ep, peer, rop->type, rop->msg_id, rop->total, true);
}

/* Return: the peer if all packets of the message can be posted to it at once, or NULL. */
static struct kefa_rpeer *kefa_rmedium_peer(const struct kefa_rdm *rdm, const struct kefa_rplain *p,
					    u32 n)
{
	struct kefa_rpeer *peer = kefa_rplain_peer(rdm, p);

	if (!peer || kefa_shake_signs(peer) != KEFA_SIGNS_CONNID ||
	    rdm->ep.nheld + n > KEFA_HELD_MAX || n > kefa_tx_room(rdm, peer))
		return NULL;
	/* The peer will read the message. */
	if (p->len >= rdm->lim.min_read_message && kefa_shake_reads(&rdm->self, peer))
		return NULL;
	return peer;
}

static __always_inline bool kefa_rmedium_tx(struct kefa_rdm *rdm, const struct kefa_rplain *p,
					    bool tagged)
{
	struct kefa_ep *ep = &rdm->ep;
	struct kefa_rpeer *peer;
	struct kefa_seg all;
	u32 segment, n;

	if (p->len > rdm->lim.max_medium || p->len > ep->max_map || !ep->tx.nfree ||
	    !rdm->rops.free)
		return false;
	segment = kefa_cut(rdm->lim.mtu - kefa_rmedium_head(tagged), p->len);
	n = DIV_ROUND_UP((u32)p->len, segment);
	peer = kefa_rmedium_peer(rdm, p, n);
	if (!peer || !kefa_one_piece(p->buf) || kofi_side_reserve(&ep->tx.base))
		return false;
	if (!kefa_seg_map(ep, &all, virt_to_phys(p->buf), p->len, DMA_TO_DEVICE)) {
		kofi_side_unreserve(&ep->tx.base);
		return false;
	}
	kefa_rmedium_go(rdm, kefa_rmedium_rop(rdm, p, peer, n), &all, segment, tagged);
	if (!kefa_ep_holds(ep))
		kefa_tx_flush(rdm);
	return true;
}

/* --- sending a message that the peer reads --- */

/* Return: the peer if the message can be registered at once and its request sent then, or NULL. */
static __always_inline struct kefa_rpeer *kefa_rread_peer(const struct kefa_rdm *rdm,
							  const struct kefa_rplain *p)
{
	struct kefa_rpeer *peer = kefa_peers_at(&rdm->peers, p->addr);

	if (!peer || !kefa_shake_ready(&rdm->self, peer) || peer->owes ||
	    peer->flags & KEFA_RPEER_APART || peer->backoff.waiting ||
	    kefa_shake_signs(peer) != KEFA_SIGNS_CONNID ||
	    !kefa_shake_reads(&rdm->self, peer) || !kefa_tx_room(rdm, peer))
		return NULL;
	/* Messages before it may wait for their registration, but not for anything else. */
	if (!list_empty(&peer->wait) &&
	    list_last_entry(&peer->wait, struct kefa_rop, peer_link)->state != KEFA_ROP_REG)
		return NULL;
	return peer;
}

static __always_inline void kefa_rread_go(struct kefa_rdm *rdm, const struct kefa_rplain *p,
					  struct kefa_rpeer *peer, struct kefa_source *source)
{
	struct kefa_rop *rop = kefa_rop_get(&rdm->rops);
	struct kefa_ep *ep = &rdm->ep;

	kefa_rplain_rop(rop, p, rdm->tx_how);
	kefa_rop_unlist(rop);
	rop->flags |= KEFA_ROP_TX;
	rop->peer = peer;
	peer->nops++;
	rop->type = p->what & FI_TAGGED ? KEFA_LONGREAD_TAGRTM_PKT : KEFA_LONGREAD_MSGRTM_PKT;
	rop->total = p->len;
	kefa_source_post(rdm, rop, source);
	list_add_tail(&rop->peer_link, &peer->wait);
	ep->tx.nfree--;
	ep->stats.sends++;
	ep->stats.tx_bytes += p->len;
}

static __always_inline bool kefa_rread_tx(struct kefa_rdm *rdm, const struct kefa_rplain *p)
{
	struct kefa_ep *ep = &rdm->ep;
	struct kefa_source *source;
	struct kefa_rpeer *peer;

	if (rdm->lim.runt || !ep->tx.nfree || !rdm->rops.free || ep->nheld == KEFA_HELD_MAX)
		return false;
	peer = kefa_rread_peer(rdm, p);
	if (!peer || !kefa_one_piece(p->buf) || kofi_side_reserve(&ep->tx.base))
		return false;
	source = kefa_source_one(rdm, p->buf, p->len);
	if (!source) {
		kofi_side_unreserve(&ep->tx.base);
		return false;
	}
	kefa_rread_go(rdm, p, peer, source);
	if (!kefa_ep_holds(ep))
		kefa_tx_flush(rdm);
	return true;
}

/* @tagged says the same as @p->what. It is a constant even where @p has to be in memory. */
static __always_inline bool kefa_rplain_send_parts(struct kefa_rdm *rdm,
						   const struct kefa_rplain *p, bool tagged)
{
	const size_t limit = kefa_rplain_limits(rdm, p)->send;

	return limit && p->len >= limit &&
	       ((p->len >= rdm->lim.min_read_message && kefa_rread_tx(rdm, p)) ||
		kefa_rmedium_tx(rdm, p, tagged));
}

/*
 * Send a message that kefa_rplain_tx() couldn't send as one packet, and kefa_rlocal_tx() couldn't
 * pass to a local peer. Releases the lock.
 */
static noinline ssize_t kefa_rplain_send_other(struct kefa_ep *ep, const void *buf, size_t len,
					       fi_addr_t dest, void *context)
	__releases(&ep->lock)
{
	const struct kefa_rplain p = {
		.what		= FI_MSG | FI_SEND,
		.buf		= (void *)buf,
		.len		= len,
		.addr		= dest,
		.context	= context,
	};

	if (!kefa_rplain_send_parts(to_kefa_rdm(ep), &p, false))
		return kefa_rplain_send_slow(ep, buf, len, dest, p.what, 0, context);
	spin_unlock_bh(&ep->lock);
	return 0;
}

static noinline ssize_t kefa_rplain_tsend_other(struct kefa_ep *ep, const void *buf, size_t len,
						fi_addr_t dest, u64 tag, void *context)
	__releases(&ep->lock)
{
	const struct kefa_rplain p = {
		.what		= FI_TAGGED | FI_SEND,
		.buf		= (void *)buf,
		.len		= len,
		.addr		= dest,
		.tag		= tag,
		.context	= context,
	};

	if (!kefa_rplain_send_parts(to_kefa_rdm(ep), &p, true))
		return kefa_rplain_send_slow(ep, buf, len, dest, p.what, tag, context);
	spin_unlock_bh(&ep->lock);
	return 0;
}

/* Send a message that isn't for a peer to which kefa_rplain_tx() sends. Releases the lock. */
static noinline ssize_t kefa_rlocal_send(struct kefa_ep *ep, const void *buf, size_t len,
					 fi_addr_t dest, void *context)
	__releases(&ep->lock)
{
	const struct kefa_rplain p = {
		.what		= FI_MSG | FI_SEND,
		.buf		= (void *)buf,
		.len		= len,
		.addr		= dest,
		.context	= context,
	};

	if (unlikely(!kefa_rlocal_tx(to_kefa_rdm(ep), &p)))
		return kefa_rplain_send_other(ep, buf, len, dest, context);
	spin_unlock_bh(&ep->lock);
	return 0;
}

static noinline ssize_t kefa_rlocal_tsend(struct kefa_ep *ep, const void *buf, size_t len,
					  fi_addr_t dest, u64 tag, void *context)
	__releases(&ep->lock)
{
	const struct kefa_rplain p = {
		.what		= FI_TAGGED | FI_SEND,
		.buf		= (void *)buf,
		.len		= len,
		.addr		= dest,
		.tag		= tag,
		.context	= context,
	};

	if (unlikely(!kefa_rlocal_tx(to_kefa_rdm(ep), &p)))
		return kefa_rplain_tsend_other(ep, buf, len, dest, tag, context);
	spin_unlock_bh(&ep->lock);
	return 0;
}

/* --- receiving --- */

/*
 * Complete a receive with an eager message that had arrived.
 * Return: false if it takes kefa_rdm_feed().
 */
static bool kefa_rplain_feed_eager(struct kefa_rdm *rdm, struct kefa_rop *rop,
				   struct kefa_held *held)
{
	struct kefa_side *side = &rdm->ep.rx;
	struct kefa_eager __uninitialized e;

	if (!kefa_eager_parse(held->buf, held->len, &e) || e.len > rop->buf.len ||
	    rop->flags & (KEFA_ROP_QUIET | KEFA_ROP_AS_MSG) || !side->base.cq)
		return false;
	kefa_copy_data(rop->buf.base, e.data, e.len);
	rdm->ep.stats.rx_bytes += e.len;
	rop->peer = held->peer;
	kofi_cq_begin_nested(side->base.cq);
	kofi_cq_add(side->base.cq, &(struct fi_cq_tagged_entry) {
		.op_context	= rop->context,
		.flags		= rop->cq_flags,
		.len		= e.len,
		.tag		= e.tag,
	}, kefa_rop_src(rdm, rop));
	kofi_cq_end_nested(side->base.cq);
	side->notify = true;
	kofi_side_count(&side->base, rop->cq_flags, e.len, false);
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_FREE);
	kefa_rops_put(&rdm->rops, rop, &rop->next, 1);
	side->nfree++;
	kefa_held_free(rdm, held);
	return true;
}

/* Give a new receive the message that had arrived for it. */
static noinline void kefa_rplain_feed(struct kefa_rdm *rdm, struct kefa_rop *rop,
				      struct kofi_match_msg *msg)
{
	struct kefa_held *held = container_of(msg, struct kefa_held, msg);
	bool due = false;

	held->where = KEFA_HELD_NOT;
	if (!kefa_rplain_feed_eager(rdm, rop, held)) {
		kefa_rop_unlist(rop);
		kefa_rdm_feed(rdm, rop, held);
		due = kefa_rdm_due(rdm);
	}
	/* That has freed memory and a receive buffer, for which the endpoint may be waiting. */
	if (unlikely(due || rdm->shut || rdm->nposted < rdm->target))
		kefa_rdm_pump(rdm);
	/* Without sleepers and handlers there is nobody to notify. */
	if (kofi_cq_alone(rdm->ep.rx.base.cq))
		rdm->ep.rx.notify = false;
}

/* Return: false if it takes the slow path. @fed is set if a message had arrived for it. */
static __always_inline bool kefa_rplain_rx(struct kefa_rdm *rdm, const struct kefa_rplain *p,
					   bool *fed)
{
	struct kefa_ep *ep = &rdm->ep;
	struct kofi_match_msg *msg;
	struct kefa_rpeer *peer;
	struct kefa_rop *rop;
	u64 src = FI_ADDR_UNSPEC;

	if (unlikely(p->len >= kefa_rplain_limits(rdm, p)->recv || !ep->rx.nfree ||
		     !rdm->rops.free))
		return false;
	if (p->addr != FI_ADDR_UNSPEC && ep->caps & FI_DIRECTED_RECV) {
		peer = kefa_peers_at(&rdm->peers, p->addr);
		if (unlikely(!peer || kefa_rpeer_dead(peer)))
			return false;
		src = peer->id;
	}
	if (unlikely(kofi_side_reserve(&ep->rx.base)))
		return false;
	rop = kefa_rop_pop(&rdm->rops);
	kefa_rplain_rop(rop, p, rdm->rx_how);
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_LISTED);
	ep->rx.nfree--;
	ep->stats.recvs++;
	kofi_match_recv_init(&rop->recv, p->what, src, p->tag, p->ignore, p->context);
	msg = kofi_match_post(&rdm->match, &rop->recv);
	*fed = msg;
	if (unlikely(msg))
		kefa_rplain_feed(rdm, rop, msg);
	return true;
}

/* Post a receive by the slow path. Releases the lock. */
static noinline ssize_t kefa_rplain_recv_slow(struct kefa_ep *ep, const struct kefa_rplain *p)
	__releases(&ep->lock)
{
	const struct kvec iov = { p->buf, p->len };
	struct kofi_req req = {
		.what		= p->what,
		.defaults	= true,
		.addr		= p->addr,
		.tag		= p->tag,
		.ignore		= p->ignore,
		.context	= p->context,
	};

	iov_iter_kvec(&req.iter, ITER_DEST, &iov, 1, p->len);
	return kefa_rdm_rx_unlock(to_kefa_rdm(ep), &req);
}

static __always_inline ssize_t kefa_rplain_recv(struct kefa_ep *ep, const struct kefa_rplain *p)
{
	bool fed = false;

	spin_lock_bh(&ep->lock);
	if (unlikely(!kefa_rplain_rx(to_kefa_rdm(ep), p, &fed))) {
		const struct kefa_rplain copy = *p;

		return kefa_rplain_recv_slow(ep, &copy);
	}
	/* Only taking a message can have left notifications to send. */
	if (unlikely(fed))
		kefa_ep_unlock_news(ep);
	else
		spin_unlock_bh(&ep->lock);
	return 0;
}

/* --- the calls: see fi_ops_msg and fi_ops_tagged --- */

static ssize_t kefa_rdm_send_plain(struct fid_ep *ep_fid, const void *buf, size_t len, void *desc,
				   fi_addr_t dest, void *context)
{
	const struct kefa_rplain p = {
		.what		= FI_MSG | FI_SEND,
		.buf		= (void *)buf,
		.len		= len,
		.addr		= dest,
		.context	= context,
	};
	struct kefa_ep *ep = to_kefa_ep(ep_fid);

	spin_lock_bh(&ep->lock);
	if (unlikely(!kefa_rplain_send_it(ep, &p)))
		return to_kefa_rdm(ep)->local ?
		       kefa_rlocal_send(ep, buf, len, dest, context) :
		       kefa_rplain_send_other(ep, buf, len, dest, context);
	spin_unlock_bh(&ep->lock);
	return 0;
}

static ssize_t kefa_rdm_inject_plain(struct fid_ep *ep_fid, const void *buf, size_t len,
				     fi_addr_t dest)
{
	const struct kefa_rplain p = {
		.what		= FI_MSG | FI_SEND,
		.inject		= true,
		.buf		= (void *)buf,
		.len		= len,
		.addr		= dest,
	};
	struct kefa_ep *ep = to_kefa_ep(ep_fid);

	spin_lock_bh(&ep->lock);
	if (unlikely(!kefa_rplain_send_it(ep, &p)))
		return kefa_rplain_send_slow(ep, buf, len, dest, p.what | FI_INJECT, 0, NULL);
	spin_unlock_bh(&ep->lock);
	return 0;
}

static ssize_t kefa_rdm_recv_plain(struct fid_ep *ep_fid, void *buf, size_t len, void *desc,
				   fi_addr_t src, void *context)
{
	const struct kefa_rplain p = {
		.what		= FI_MSG | FI_RECV,
		.buf		= buf,
		.len		= len,
		.addr		= src,
		.context	= context,
	};

	return kefa_rplain_recv(to_kefa_ep(ep_fid), &p);
}

static ssize_t kefa_rdm_tsend_plain(struct fid_ep *ep_fid, const void *buf, size_t len, void *desc,
				    fi_addr_t dest, u64 tag, void *context)
{
	const struct kefa_rplain p = {
		.what		= FI_TAGGED | FI_SEND,
		.buf		= (void *)buf,
		.len		= len,
		.addr		= dest,
		.tag		= tag,
		.context	= context,
	};
	struct kefa_ep *ep = to_kefa_ep(ep_fid);

	spin_lock_bh(&ep->lock);
	if (unlikely(!kefa_rplain_send_it(ep, &p)))
		return to_kefa_rdm(ep)->local ?
		       kefa_rlocal_tsend(ep, buf, len, dest, tag, context) :
		       kefa_rplain_tsend_other(ep, buf, len, dest, tag, context);
	spin_unlock_bh(&ep->lock);
	return 0;
}

static ssize_t kefa_rdm_tinject_plain(struct fid_ep *ep_fid, const void *buf, size_t len,
				      fi_addr_t dest, u64 tag)
{
	const struct kefa_rplain p = {
		.what		= FI_TAGGED | FI_SEND,
		.inject		= true,
		.buf		= (void *)buf,
		.len		= len,
		.addr		= dest,
		.tag		= tag,
	};
	struct kefa_ep *ep = to_kefa_ep(ep_fid);

	spin_lock_bh(&ep->lock);
	if (unlikely(!kefa_rplain_send_it(ep, &p)))
		return kefa_rplain_send_slow(ep, buf, len, dest, p.what | FI_INJECT, tag, NULL);
	spin_unlock_bh(&ep->lock);
	return 0;
}

static ssize_t kefa_rdm_trecv_plain(struct fid_ep *ep_fid, void *buf, size_t len, void *desc,
				    fi_addr_t src, u64 tag, u64 ignore, void *context)
{
	const struct kefa_rplain p = {
		.what		= FI_TAGGED | FI_RECV,
		.buf		= buf,
		.len		= len,
		.addr		= src,
		.tag		= tag,
		.ignore		= ignore,
		.context	= context,
	};

	return kefa_rplain_recv(to_kefa_ep(ep_fid), &p);
}

/**
 * kefa_rdm_recv_tag() - post a receive for messages of any peer with one tag
 * @ep_fid: the endpoint
 * @buf: takes the message
 * @len: bytes of @buf
 * @tag: the tag
 * @context: context of the operation
 *
 * Serves as fi_ops_ep.recv_tag.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno.
 */
ssize_t kefa_rdm_recv_tag(struct fid_ep *ep_fid, void *buf, size_t len, u64 tag, void *context)
{
	const struct kefa_rplain p = {
		.what		= FI_TAGGED | FI_RECV,
		.buf		= buf,
		.len		= len,
		.addr		= FI_ADDR_UNSPEC,
		.tag		= tag,
		.context	= context,
	};

	return kefa_rplain_recv(to_kefa_ep(ep_fid), &p);
}

const struct fi_ops_msg kefa_rdm_msg_ops = {
	.recv		= kefa_rdm_recv_plain,
	.recvv		= kofi_req_recvv,
	.recvmsg	= kofi_req_recvmsg,
	.send		= kefa_rdm_send_plain,
	.sendv		= kofi_req_sendv,
	.sendmsg	= kofi_req_sendmsg,
	.inject		= kefa_rdm_inject_plain,
	.senddata	= kofi_req_senddata,
	.injectdata	= kofi_req_injectdata,
};

const struct fi_ops_tagged kefa_rdm_tagged_ops = {
	.recv		= kefa_rdm_trecv_plain,
	.recvv		= kofi_req_trecvv,
	.recvmsg	= kofi_req_trecvmsg,
	.send		= kefa_rdm_tsend_plain,
	.sendv		= kofi_req_tsendv,
	.sendmsg	= kofi_req_tsendmsg,
	.inject		= kefa_rdm_tinject_plain,
	.senddata	= kofi_req_tsenddata,
	.injectdata	= kofi_req_tinjectdata,
};
