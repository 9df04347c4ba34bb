// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The short way of plain calls: one buffer in one piece, no flag that asks for more
 * than to post it. All is done in one go under the endpoint's lock, which also keeps
 * the device, and with bottom halves off the addresses, where they are.
 *
 * A call that isn't of that kind, or that doesn't work out, takes the long way of
 * post.c, which knows all the errors and counts them. So nothing is refused here.
 */
#include "ep.h"
#include "path.h"

/* Defaults that make an operation one for the long way. */
#define KEFA_LONG_WAY	(FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE)

static size_t kefa_limit(const struct kefa_ep *ep, u64 what, u64 op_flags,
			 size_t max)
{
	if (ep->state != KEFA_EP_ENABLED || what & ~ep->caps ||
	    op_flags & KEFA_LONG_WAY)
		return 0;
	return max + 1;
}

/**
 * kefa_plain_limits() - decide which calls may take the short way
 * @ep: the endpoint, whose state or flags have changed
 *
 * Context: Process context, under kefa_ep.lock.
 */
void kefa_plain_limits(struct kefa_ep *ep)
{
	u64 tx = ep->tx.base.op_flags, rx = ep->rx.base.op_flags;
	size_t mtu = ep->dom->dev->mtu;

	lockdep_assert_held(&ep->lock);
	ep->tx.quiet = kofi_side_quiet(&ep->tx.base, tx);
	ep->rx.quiet = kofi_side_quiet(&ep->rx.base, rx);
	ep->limits = (struct kefa_limits) {
		.send	= kefa_limit(ep, FI_MSG | FI_SEND, tx, mtu),
		/* What doesn't fit into a work request must be copied. */
		.inject	= kefa_limit(ep, FI_MSG | FI_SEND, 0, KEFA_MAX_INLINE),
		.read	= kefa_limit(ep, FI_RMA | FI_READ, tx, ep->max_map),
		.write	= kefa_limit(ep, FI_RMA | FI_WRITE, tx, ep->max_map),
		.recv	= kefa_limit(ep, FI_MSG | FI_RECV, rx, mtu),
	};
}

/* Map a buffer for an operation; whether that could be done. */
static __always_inline bool kefa_plain_map(struct kefa_ep *ep,
					   struct kefa_op *op, void *buf,
					   size_t len,
					   enum dma_data_direction dir)
{
	op->dir = dir;
	op->nsegs = 1;
	return kefa_one_piece(buf, len) &&
	       kefa_seg_map(ep, &op->seg[0], virt_to_phys(buf), len, dir);
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

static __always_inline bool kefa_plain_ok(const struct kefa_ep *ep,
					  const struct kefa_plain *p)
{
	if (p->what & FI_READ)
		return p->len < ep->limits.read && p->rkey <= U32_MAX;
	if (p->what & FI_WRITE)
		return p->len < ep->limits.write && p->rkey <= U32_MAX;
	return p->len < (p->quiet ? ep->limits.inject : ep->limits.send);
}

/* The memory of a work request; false if the device can't reach it now. */
static __always_inline bool kefa_plain_data(struct kefa_ep *ep,
					    const struct kefa_plain *p,
					    struct kefa_wr *wr,
					    struct kefa_op *op, bool simple)
{
	bool read = p->what & FI_READ;

	op->nsegs = 0;
	if (kefa_goes_inline(p->what, p->len)) {
		/* The data of what isn't posted at once, or may be sent again, is kept. */
		kefa_wr_inline(wr, simple ? p->buf :
			       memcpy(wr->data, p->buf, p->len), p->len);
		return true;
	}
	if (!p->len) {
		kefa_wr_sge(wr, ep->dom->nothing_dma, 0);
		return true;
	}
	if (!kefa_plain_map(ep, op, p->buf, p->len,
			    read ? DMA_FROM_DEVICE : DMA_TO_DEVICE))
		return false;
	kefa_wr_sge(wr, op->seg[0].dma, p->len);
	return true;
}

static __always_inline bool kefa_plain_post(struct kefa_ep *ep,
					    const struct kefa_plain *p,
					    struct kefa_peer *peer, bool simple)
{
	struct kefa_op *op = ep->tx.first;
	struct kefa_wr *wr = ep->wrs;

	if (simple)
		ep->held[0] = wr;
	else
		wr = kefa_ep_wr(ep, op, ep->nheld);

	kefa_wr_to(wr, op, p->what, peer, p->raddr, p->rkey);
	if (!kefa_plain_data(ep, p, wr, op, simple))
		return false;
	kefa_op_begin(ep, &ep->tx, op);
	kefa_tx_head(ep, op, p->what, p->len, peer->key.ah, p->context,
		     p->quiet || ep->tx.quiet);
	trace_kefa_post(ep, op, p->addr);
	if (!simple && kefa_ep_holds(ep)) {
		ep->nheld++;
		kefa_ep_posted(ep, false);
	} else {
		kefa_ep_ring(ep, 1);
	}
	return true;
}

static __always_inline bool kefa_plain_try(struct kefa_ep *ep,
					   const struct kefa_plain *p, bool simple)
{
	struct kefa_peer *peer;

	if (!kefa_plain_ok(ep, p) || !ep->tx.nfree ||
	    (ep->nheld && (simple || !kefa_ep_holds(ep))))
		return false;
	peer = kefa_av_peer(ep->av, p->addr);
	if (unlikely(!peer))
		return false;
	if (likely(!kofi_side_reserve(&ep->tx.base))) {
		if (likely(kefa_plain_post(ep, p, peer, simple)))
			return true;
		kofi_side_unreserve(&ep->tx.base);
	}
	return false;
}

/*
 * What nobody holds back, and what isn't kept to be sent again, is posted from the first of
 * the endpoint's work requests, and from the caller's memory: code of its own, which does
 * without looking at either for each of its steps.
 */
static __always_inline bool kefa_plain_locked(struct kefa_ep *ep,
					      const struct kefa_plain *p)
{
	if (likely(!ep->worker && !ep->again))
		return kefa_plain_try(ep, p, true);
	return kefa_plain_try(ep, p, false);
}

static __always_inline bool kefa_plain_tx(struct fid_ep *ep_fid,
					  const struct kefa_plain *p)
{
	struct kefa_ep *ep = to_kefa_ep(ep_fid);
	bool done;

	spin_lock_bh(&ep->lock);
	done = kefa_plain_locked(ep, p);
	spin_unlock_bh(&ep->lock);
	return done;
}

/* Data calls: see fi_ops_msg and fi_ops_rma. */

static ssize_t kefa_plain_send(struct fid_ep *ep, const void *buf, size_t len,
			       void *desc, fi_addr_t dest_addr, void *context)
{
	const struct kefa_plain p = {
		.what		= FI_MSG | FI_SEND,
		.buf		= (void *)buf,
		.len		= len,
		.addr		= dest_addr,
		.context	= context,
	};

	if (likely(kefa_plain_tx(ep, &p)))
		return 0;
	return kofi_req_send(ep, buf, len, desc, dest_addr, context);
}

static ssize_t kefa_plain_inject(struct fid_ep *ep, const void *buf, size_t len,
				 fi_addr_t dest_addr)
{
	const struct kefa_plain p = {
		.what	= FI_MSG | FI_SEND,
		.quiet	= true,
		.buf	= (void *)buf,
		.len	= len,
		.addr	= dest_addr,
	};

	if (likely(kefa_plain_tx(ep, &p)))
		return 0;
	return kofi_req_inject(ep, buf, len, dest_addr);
}

static ssize_t kefa_plain_read(struct fid_ep *ep, void *buf, size_t len,
			       void *desc, fi_addr_t src_addr, u64 addr,
			       u64 key, void *context)
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

	if (likely(kefa_plain_tx(ep, &p)))
		return 0;
	return kofi_req_read(ep, buf, len, desc, src_addr, addr, key, context);
}

static ssize_t kefa_plain_write(struct fid_ep *ep, const void *buf, size_t len,
				void *desc, fi_addr_t dest_addr, u64 addr,
				u64 key, void *context)
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

	if (likely(kefa_plain_tx(ep, &p)))
		return 0;
	return kofi_req_write(ep, buf, len, desc, dest_addr, addr, key, context);
}

static __always_inline bool kefa_plain_rx(struct kefa_ep *ep, void *buf,
					  size_t len, void *context)
{
	struct kefa_recv_wr *recv = &ep->recvs[ep->nrecvs];
	struct kefa_op *op = ep->rx.first;

	if (len >= ep->limits.recv || !ep->rx.nfree ||
	    kofi_side_reserve(&ep->rx.base))
		return false;
	op->nsegs = 0;
	if (len && unlikely(!kefa_plain_map(ep, op, buf, len, DMA_FROM_DEVICE))) {
		kofi_side_unreserve(&ep->rx.base);
		return false;
	}
	kefa_op_begin(ep, &ep->rx, op);
	recv->sge[0].addr = len ? op->seg[0].dma : ep->dom->nothing_dma;
	recv->sge[0].length = len;
	recv->wr.num_sge = 1;
	kefa_rx_post(ep, recv, op, FI_MSG | FI_RECV, context, ep->rx.quiet, false);
	return true;
}

static ssize_t kefa_plain_recv(struct fid_ep *ep_fid, void *buf, size_t len,
			       void *desc, fi_addr_t src_addr, void *context)
{
	struct kefa_ep *ep = to_kefa_ep(ep_fid);
	bool done;

	spin_lock_bh(&ep->lock);
	done = kefa_plain_rx(ep, buf, len, context);
	spin_unlock_bh(&ep->lock);
	if (likely(done))
		return 0;
	return kofi_req_recv(ep_fid, buf, len, desc, src_addr, context);
}

const struct fi_ops_msg kefa_msg_ops = {
	.recv		= kefa_plain_recv,
	.recvv		= kofi_req_recvv,
	.recvmsg	= kofi_req_recvmsg,
	.send		= kefa_plain_send,
	.sendv		= kofi_req_sendv,
	.sendmsg	= kofi_req_sendmsg,
	.inject		= kefa_plain_inject,
	.senddata	= kofi_req_senddata,
	.injectdata	= kofi_req_injectdata,
};

const struct fi_ops_rma kefa_rma_ops = {
	.read		= kefa_plain_read,
	.readv		= kofi_req_readv,
	.readmsg	= kofi_req_readmsg,
	.write		= kefa_plain_write,
	.writev		= kofi_req_writev,
	.writemsg	= kofi_req_writemsg,
	.inject		= kofi_req_inject_write,
	.writedata	= kofi_req_writedata,
	.injectdata	= kofi_req_inject_writedata,
};
