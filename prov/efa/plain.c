// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The short way of plain calls: one buffer in one piece, no flag that asks for more
 * than to post it. All is done in one go under the endpoint's lock, which also keeps
 * the device, and with bottom halves off the addresses, where they are.
 *
 * A call that isn't of that kind, or that doesn't work out, takes the long way of
 * post.c, which knows all the errors and counts them. So nothing is refused here.
 */
#include <linux/dma-mapping.h>
#include "kefa.h"
#include "trace.h"

/* Defaults that make an operation one for the long way. */
#define KEFA_LONG_WAY	(FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE)

static bool kefa_one_piece(const void *buf, size_t len)
{
	return virt_addr_valid(buf) && virt_addr_valid(buf + len - 1);
}

/* Map a buffer for an operation; whether that could be done. */
static __always_inline bool kefa_plain_map(struct kefa_ep *ep,
					   struct kefa_seg *seg, void *buf,
					   size_t len,
					   enum dma_data_direction dir)
{
	struct device *dma = ep->dom->dev->dma;

	seg->dma = dma_map_page(dma, virt_to_page(buf), offset_in_page(buf),
				len, dir);
	seg->phys = virt_to_phys(buf);
	seg->len = len;
	return !dma_mapping_error(dma, seg->dma);
}

/**
 * struct kefa_plain - a plain send, read or write
 * @what: FI_MSG or FI_RMA, and FI_SEND, FI_READ or FI_WRITE
 * @quiet: no completion
 * @buf: the buffer
 * @len: its bytes
 * @addr: the peer
 * @raddr: address in the peer's memory
 * @rkey: and its key
 * @context: the caller's
 *
 * All of it is known to the compiler, which makes none.
 */
struct kefa_plain {
	u64		what;
	bool		quiet;
	void		*buf;
	size_t		len;
	fi_addr_t	addr;
	u64		raddr;
	u64		rkey;
	void		*context;
};

static __always_inline bool kefa_plain_in_wr(const struct kefa_plain *p)
{
	return p->what & FI_SEND && p->len && p->len <= KEFA_MAX_INLINE;
}

static __always_inline bool kefa_plain_ok(const struct kefa_ep *ep,
					  const struct kefa_plain *p)
{
	if (p->what & ~ep->caps)
		return false;
	if (p->what & FI_SEND && p->len > ep->dom->dev->mtu)
		return false;
	if (p->what & FI_RMA &&
	    (p->len > KEFA_MAX_RDMA || p->rkey > U32_MAX))
		return false;
	return kefa_plain_in_wr(p) || !p->len ||
	       kefa_one_piece(p->buf, p->len);
}

static __always_inline void kefa_plain_count(struct kefa_ep *ep,
					     const struct kefa_plain *p)
{
	ep->stats.tx_bytes += p->len;
	if (p->what & FI_SEND)
		ep->stats.sends++;
	else if (p->what & FI_READ)
		ep->stats.reads++;
	else
		ep->stats.writes++;
}

/* The memory of a work request; false if the device can't reach it now. */
static __always_inline bool kefa_plain_data(struct kefa_ep *ep,
					    const struct kefa_plain *p,
					    struct kefa_wr *wr,
					    struct kefa_op *op)
{
	struct ib_pd *pd = ep->dom->pd;

	if (kefa_plain_in_wr(p)) {
		memcpy(wr->data, p->buf, p->len);
		kefa_wr_inline(wr, p->len);
		return true;
	}
	if (!p->len) {
		kefa_wr_sge(wr, pd, ep->dom->nothing_dma, 0);
		return true;
	}
	op->dir = p->what & FI_READ ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	if (!kefa_plain_map(ep, &op->seg[0], p->buf, p->len, op->dir))
		return false;
	op->nsegs = 1;
	kefa_wr_sge(wr, pd, op->seg[0].dma, p->len);
	return true;
}

static __always_inline bool kefa_plain_post(struct kefa_ep *ep,
					    const struct kefa_plain *p,
					    struct kefa_ah *ah,
					    const struct kefa_av_key *key)
{
	struct kefa_wr *wr = &ep->held[0];
	struct kefa_op *op = ep->tx.first;
	u64 id = kefa_op_id(op);

	if (p->what & FI_SEND)
		kefa_wr_send(wr, id, ah->ah, key->qpn, key->qkey);
	else
		kefa_wr_rdma(wr, id, p->what & FI_WRITE, ah->ah, key->qpn,
			     key->qkey, p->raddr, p->rkey);
	op->nsegs = 0;
	if (!kefa_plain_data(ep, p, wr, op))
		return false;
	kefa_op_begin(ep, &ep->tx, op);
	op->context = p->context;
	op->flags = p->what;
	op->len = p->len;
	op->ah = ah;
	op->quiet = p->quiet;
	kefa_plain_count(ep, p);
	trace_kefa_post(ep, op, p->addr);
	kefa_ep_ring(ep, 1);
	return true;
}

static __always_inline bool kefa_plain_locked(struct kefa_ep *ep,
					      const struct kefa_plain *p)
{
	struct kefa_peer *peer;

	if (ep->state != KEFA_EP_ENABLED || !ep->tx.nfree || ep->nheld)
		return false;
	peer = kefa_av_peer(ep->av, p->addr);
	if (!peer || (ep->tx.cq && kofi_cq_reserve(ep->tx.cq)))
		return false;
	/* One that is being removed has no more to give. */
	if (likely(atomic_inc_not_zero(&peer->ah->users))) {
		if (likely(kefa_plain_post(ep, p, peer->ah, &peer->key)))
			return true;
		kefa_ah_put(peer->ah);
	}
	if (ep->tx.cq)
		kofi_cq_unreserve(ep->tx.cq);
	return false;
}

static __always_inline bool kefa_plain_tx(struct fid_ep *ep_fid,
					  struct kefa_plain p)
{
	struct kefa_ep *ep = to_kefa_ep(ep_fid);
	u64 flags = p.quiet ? 0 : READ_ONCE(ep->tx.op_flags);
	bool done;

	if (flags & KEFA_LONG_WAY || !kefa_plain_ok(ep, &p))
		return false;
	spin_lock_bh(&ep->lock);
	p.quiet |= ep->tx.selective && !(flags & FI_COMPLETION);
	done = kefa_plain_locked(ep, &p);
	spin_unlock_bh(&ep->lock);
	return done;
}

/* Data calls: see fi_ops_msg and fi_ops_rma. */

ssize_t kefa_plain_send(struct fid_ep *ep, const void *buf, size_t len,
			void *desc, fi_addr_t dest_addr, void *context)
{
	const struct kefa_plain p = {
		.what		= FI_MSG | FI_SEND,
		.buf		= (void *)buf,
		.len		= len,
		.addr		= dest_addr,
		.context	= context,
	};

	if (likely(kefa_plain_tx(ep, p)))
		return 0;
	return kefa_send(ep, buf, len, desc, dest_addr, context);
}

/* What doesn't fit into a work request must be copied, and that is long. */
ssize_t kefa_plain_inject(struct fid_ep *ep, const void *buf, size_t len,
			  fi_addr_t dest_addr)
{
	const struct kefa_plain p = {
		.what	= FI_MSG | FI_SEND,
		.quiet	= true,
		.buf	= (void *)buf,
		.len	= len,
		.addr	= dest_addr,
	};

	if (len <= KEFA_MAX_INLINE && likely(kefa_plain_tx(ep, p)))
		return 0;
	return kefa_inject(ep, buf, len, dest_addr);
}

ssize_t kefa_plain_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src_addr, u64 addr, u64 key, void *context)
{
	const struct kefa_plain p = {
		.what		= FI_RMA | FI_READ,
		.buf		= buf,
		.len		= len,
		.addr		= src_addr,
		.raddr		= addr,
		.rkey		= key,
		.context	= context,
	};

	if (likely(kefa_plain_tx(ep, p)))
		return 0;
	return kefa_read(ep, buf, len, desc, src_addr, addr, key, context);
}

ssize_t kefa_plain_write(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t dest_addr, u64 addr, u64 key,
			 void *context)
{
	const struct kefa_plain p = {
		.what		= FI_RMA | FI_WRITE,
		.buf		= (void *)buf,
		.len		= len,
		.addr		= dest_addr,
		.raddr		= addr,
		.rkey		= key,
		.context	= context,
	};

	if (likely(kefa_plain_tx(ep, p)))
		return 0;
	return kefa_write(ep, buf, len, desc, dest_addr, addr, key, context);
}

static __always_inline bool kefa_plain_rx(struct kefa_ep *ep, void *buf,
					  size_t len, void *context, bool quiet)
{
	struct kefa_op *op = ep->rx.first;
	struct ib_sge sge;
	struct ib_recv_wr wr;

	if (ep->state != KEFA_EP_ENABLED || !ep->rx.nfree ||
	    (ep->rx.cq && kofi_cq_reserve(ep->rx.cq)))
		return false;
	if (len &&
	    !kefa_plain_map(ep, &op->seg[0], buf, len, DMA_FROM_DEVICE)) {
		if (ep->rx.cq)
			kofi_cq_unreserve(ep->rx.cq);
		return false;
	}
	kefa_op_begin(ep, &ep->rx, op);
	op->context = context;
	op->flags = FI_MSG | FI_RECV;
	op->len = 0;
	op->ah = NULL;
	op->quiet = quiet;
	op->dir = DMA_FROM_DEVICE;
	op->nsegs = !!len;
	/* A receive without an SGE would never complete. */
	sge.addr = len ? op->seg[0].dma : ep->dom->nothing_dma;
	sge.length = len;
	sge.lkey = ep->dom->pd->local_dma_lkey;
	wr.next = NULL;
	wr.wr_id = kefa_op_id(op);
	wr.sg_list = &sge;
	wr.num_sge = 1;
	kefa_rx_post(ep, op, &wr);
	return true;
}

ssize_t kefa_plain_recv(struct fid_ep *ep_fid, void *buf, size_t len,
			void *desc, fi_addr_t src_addr, void *context)
{
	struct kefa_ep *ep = to_kefa_ep(ep_fid);
	u64 flags = READ_ONCE(ep->rx.op_flags);
	bool done = false;

	if (!((FI_MSG | FI_RECV) & ~ep->caps) && !(flags & FI_MORE) &&
	    len <= ep->dom->dev->mtu && (!len || kefa_one_piece(buf, len))) {
		spin_lock_bh(&ep->lock);
		done = kefa_plain_rx(ep, buf, len, context,
				     ep->rx.selective &&
				     !(flags & FI_COMPLETION));
		spin_unlock_bh(&ep->lock);
	}
	if (likely(done))
		return 0;
	return kefa_recv(ep_fid, buf, len, desc, src_addr, context);
}
