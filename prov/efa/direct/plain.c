// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fast path of calls with one contiguous buffer and no special flags: plain calls, and
 * messages with one such buffer, or sends with two, which is how a header goes with data.
 * Everything is done under the endpoint's lock, taken once.
 * The lock keeps the device, and the disabled bottom halves keep the addresses (RCU).
 * Mapping, too, is done under the lock: without an IOMMU it is only arithmetic, and mapping
 * before taking the lock would make all calls slower.
 *
 * Any other call, and any call that fails here, takes the slow path of post.c, which returns
 * and counts all errors.
 */
#include "path.h"

/* Flags whose operations take the slow path. */
#define KEFA_LONG_WAY	(FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE)
/* Flags of messages that may take the fast path. */
#define KEFA_SHORT_TX	(KEFA_TX_FLAGS & ~KEFA_LONG_WAY)
#define KEFA_SHORT_RX	(KEFA_RX_FLAGS & ~KEFA_LONG_WAY)

static size_t kefa_limit(const struct kefa_ep *ep, u64 what, u64 op_flags,
			 size_t max)
{
	if (ep->state != KEFA_EP_ENABLED || what & ~ep->caps ||
	    op_flags & KEFA_LONG_WAY)
		return 0;
	return max + 1;
}

/**
 * kefa_plain_limits() - set the limits of calls that may take the fast path
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
		/* Longer data doesn't fit into a work request and must be copied. */
		.inject	= kefa_limit(ep, FI_MSG | FI_SEND, 0, KEFA_MAX_INLINE),
		.read	= kefa_limit(ep, FI_RMA | FI_READ, tx, ep->max_map),
		.write	= kefa_limit(ep, FI_RMA | FI_WRITE, tx, ep->max_map),
		.recv	= kefa_limit(ep, FI_MSG | FI_RECV, rx, mtu),
	};
}

/**
 * struct kefa_plain - a call that may take the fast path
 * @what: FI_MSG or FI_RMA, and FI_SEND, FI_RECV, FI_READ or FI_WRITE
 * @inject: fi_inject(), which has no completion
 * @msg: fi_sendmsg() or a similar call, with @flags and @phys
 * @flags: flags of the message
 * @buf: the buffer
 * @phys: physical address of the buffer, which is contiguous
 * @len: length in bytes, of both buffers
 * @phys2: physical address of the second buffer of a message
 * @len2: length of that, or 0
 * @addr: the peer
 * @raddr: address in the peer's memory
 * @rkey: key of the peer's memory
 * @context: the caller's context
 *
 * All functions are inlined, so the compiler removes the structure.
 */
struct kefa_plain {
	u64		what;
	bool		inject;
	bool		msg;
	u64		flags;
	void		*buf;
	phys_addr_t	phys;
	size_t		len;
	phys_addr_t	phys2;
	size_t		len2;
	fi_addr_t	addr;
	u64		raddr;
	u64		rkey;
	void		*context;
};

/* Map the buffer of an operation. Return: false if it can't be mapped. */
static __always_inline bool kefa_plain_map(struct kefa_ep *ep, const struct kefa_plain *p,
					   struct kefa_op *op)
{
	op->dir = p->what & (FI_READ | FI_RECV) ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	op->nsegs = 1;
	return (p->msg || kefa_one_piece(p->buf)) &&
	       kefa_seg_map(ep, &op->seg[0], p->msg ? p->phys : virt_to_phys(p->buf),
			    p->len - p->len2, op->dir);
}

/* Likewise for the second buffer of a message. */
static __always_inline bool kefa_plain_map2(struct kefa_ep *ep, const struct kefa_plain *p,
					    struct kefa_op *op)
{
	op->nsegs = 2;
	if (kefa_seg_map(ep, &op->seg[1], p->phys2, p->len2, op->dir))
		return true;
	kefa_unmap(ep, op->seg, 1, op->dir);
	return false;
}

static __always_inline bool kefa_plain_quiet(const struct kefa_side *side,
					     const struct kefa_plain *p)
{
	if (p->msg)
		return kofi_side_quiet(&side->base, p->flags);
	return p->inject || side->quiet;
}

static __always_inline bool kefa_plain_ok(const struct kefa_ep *ep,
					  const struct kefa_plain *p)
{
	if (p->what & FI_READ)
		return p->len < ep->limits.read && p->rkey <= U32_MAX;
	if (p->what & FI_WRITE)
		return p->len < ep->limits.write && p->rkey <= U32_MAX;
	return p->len < (p->inject ? ep->limits.inject : ep->limits.send);
}

/* Set the memory of a work request. Return: false if it can't be mapped. */
static __always_inline bool kefa_plain_data(struct kefa_ep *ep,
					    const struct kefa_plain *p,
					    struct kefa_wr *wr,
					    struct kefa_op *op, bool simple)
{
	op->nsegs = 0;
	if (kefa_goes_inline(p->what, p->len)) {
		/* Copy the data if the work request is held, or kept for resending. */
		kefa_wr_inline(wr, simple ? p->buf :
			       memcpy(wr->data, p->buf, p->len), p->len);
		return true;
	}
	if (!p->len) {
		kefa_wr_sge(wr, ep->dom->nothing_dma, 0);
		return true;
	}
	if (!kefa_plain_map(ep, p, op))
		return false;
	kefa_wr_sge(wr, op->seg[0].dma, p->len - p->len2);
	if (!p->len2)
		return true;
	if (!kefa_plain_map2(ep, p, op))
		return false;
	kefa_wr_sge(wr, op->seg[1].dma, p->len2);
	return true;
}

static __always_inline bool kefa_plain_post(struct kefa_ep *ep,
					    const struct kefa_plain *p,
					    struct kefa_peer *peer, bool simple)
{
	struct kefa_op *op = to_kefa_direct(ep)->tx.first;
	struct kefa_wr *wr = ep->wrs;

	if (simple)
		ep->held[0] = wr;
	else
		wr = kefa_direct_wr(ep, op, ep->nheld);

	kefa_wr_to(wr, op, p->what, peer, p->raddr, p->rkey);
	if (!kefa_plain_data(ep, p, wr, op, simple))
		return false;
	kefa_op_begin(ep, &ep->tx, op);
	kefa_direct_tx_head(ep, op, p->what, p->len, peer->key.ah, p->context,
			    kefa_plain_quiet(&ep->tx, p));
	trace_kefa_post(ep, op, p->addr);
	if (!simple && kefa_ep_holds(ep)) {
		ep->nheld++;
		kefa_direct_posted(ep, false);
	} else {
		kefa_direct_ring(ep, 1);
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
 * A work request that is neither held nor kept for resending is built in the endpoint's
 * first one, with inline data in the caller's memory. That case has its own copy of the
 * code, without checks for the other cases in each step.
 */
static __always_inline bool kefa_plain_locked(struct kefa_ep *ep,
					      const struct kefa_plain *p)
{
	if (likely(!ep->worker && !to_kefa_direct(ep)->again))
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

/*
 * Have the slow path do what the fast path has declined. @how is kefa_plain.what, and FI_INJECT. It
 * takes the lock again, because it maps memory without it.
 */
static noinline ssize_t kefa_plain_slow(struct fid_ep *ep, u64 how, const void *buf, size_t len,
					fi_addr_t addr, u64 raddr, u64 rkey, void *context)
{
	const struct fi_rma_iov rma = { .addr = raddr, .len = len, .key = rkey };
	const struct kvec iov = { (void *)buf, len };
	struct kofi_req req = {
		.what		= how & ~FI_INJECT,
		.flags		= how & FI_INJECT,
		.defaults	= !(how & FI_INJECT),
		.quiet		= how & FI_INJECT,
		.addr		= addr,
		.context	= context,
	};

	if (how & FI_RMA) {
		req.rma = &rma;
		req.rma_count = 1;
	}
	iov_iter_kvec(&req.iter, how & (FI_READ | FI_RECV) ? ITER_DEST : ITER_SOURCE, &iov, 1, len);
	return how & FI_RECV ? kefa_direct_rx(ep, &req) : kefa_direct_tx(ep, &req);
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
	return kefa_plain_slow(ep, p.what, buf, len, dest_addr, 0, 0, context);
}

static ssize_t kefa_plain_inject(struct fid_ep *ep, const void *buf, size_t len,
				 fi_addr_t dest_addr)
{
	const struct kefa_plain p = {
		.what	= FI_MSG | FI_SEND,
		.inject	= true,
		.buf	= (void *)buf,
		.len	= len,
		.addr	= dest_addr,
	};

	if (likely(kefa_plain_tx(ep, &p)))
		return 0;
	return kefa_plain_slow(ep, p.what | FI_INJECT, buf, len, dest_addr, 0, 0, NULL);
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
	return kefa_plain_slow(ep, p.what, buf, len, src_addr, addr, key, context);
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
	return kefa_plain_slow(ep, p.what, buf, len, dest_addr, addr, key, context);
}

static __always_inline bool kefa_plain_rx_locked(struct kefa_ep *ep,
						 const struct kefa_plain *p)
{
	struct kefa_recv_wr *recv = &ep->recvs[ep->nrecvs];
	struct kefa_op *op = to_kefa_direct(ep)->rx.first;

	if (p->len >= ep->limits.recv || !ep->rx.nfree ||
	    kofi_side_reserve(&ep->rx.base))
		return false;
	op->nsegs = 0;
	if (p->len && unlikely(!kefa_plain_map(ep, p, op))) {
		kofi_side_unreserve(&ep->rx.base);
		return false;
	}
	kefa_op_begin(ep, &ep->rx, op);
	recv->sge[0].addr = p->len ? op->seg[0].dma : ep->dom->nothing_dma;
	recv->sge[0].length = p->len;
	recv->wr.num_sge = 1;
	kefa_direct_rx_post(ep, recv, op, p->what, p->context, kefa_plain_quiet(&ep->rx, p),
			    false);
	return true;
}

static __always_inline bool kefa_plain_rx(struct fid_ep *ep_fid, const struct kefa_plain *p)
{
	struct kefa_ep *ep = to_kefa_ep(ep_fid);
	bool done;

	spin_lock_bh(&ep->lock);
	done = kefa_plain_rx_locked(ep, p);
	spin_unlock_bh(&ep->lock);
	return done;
}

static ssize_t kefa_plain_recv(struct fid_ep *ep, void *buf, size_t len,
			       void *desc, fi_addr_t src_addr, void *context)
{
	const struct kefa_plain p = {
		.what		= FI_MSG | FI_RECV,
		.buf		= buf,
		.len		= len,
		.context	= context,
	};

	if (likely(kefa_plain_rx(ep, &p)))
		return 0;
	return kefa_plain_slow(ep, p.what, buf, len, src_addr, 0, 0, context);
}

/* --- messages --- */

/* Set the buffer of @p from an iterator. Return: false unless it is contiguous. */
static __always_inline bool kefa_plain_iter(struct kefa_plain *p, const struct iov_iter *iter,
					    unsigned int dir)
{
	size_t skip = iter->iov_offset;

	p->len = iov_iter_count(iter);
	if (unlikely(!p->len || iov_iter_rw(iter) != dir))
		return false;
	if (likely(iov_iter_is_bvec(iter))) {
		if (unlikely(kefa_dma_p2p(iter->bvec->bv_page)))
			return false;
		p->phys = page_to_phys(iter->bvec->bv_page) + iter->bvec->bv_offset + skip;
		p->buf = phys_to_virt(p->phys);
		return p->len <= iter->bvec->bv_len - skip;
	}
	if (!iov_iter_is_kvec(iter) || p->len > iter->kvec->iov_len - skip)
		return false;
	p->buf = iter->kvec->iov_base + skip;
	if (!kefa_one_piece(p->buf))
		return false;
	p->phys = virt_to_phys(p->buf);
	return true;
}

/* Set the buffers of @p from an iterator. Return: false unless they are two. */
static __always_inline bool kefa_plain_iter2(struct kefa_plain *p, const struct iov_iter *iter)
{
	const struct bio_vec *bvec = iter->bvec;

	p->len = iov_iter_count(iter);
	/* Data that fits into a work request is copied there from one buffer. */
	if (!iov_iter_is_bvec(iter) || iov_iter_rw(iter) != ITER_SOURCE || iter->nr_segs < 2 ||
	    iter->iov_offset || p->len <= KEFA_MAX_INLINE || p->len <= bvec->bv_len)
		return false;
	p->len2 = p->len - bvec->bv_len;
	if (!bvec->bv_len || p->len2 > bvec[1].bv_len || kefa_dma_p2p(bvec->bv_page) ||
	    kefa_dma_p2p(bvec[1].bv_page))
		return false;
	p->phys = page_to_phys(bvec->bv_page) + bvec->bv_offset;
	p->phys2 = page_to_phys(bvec[1].bv_page) + bvec[1].bv_offset;
	return true;
}

/* A function of its own, so that messages in one piece don't pay for it. */
static noinline bool kefa_plain_two(struct fid_ep *ep, const struct fi_msg *msg, u64 flags)
{
	struct kefa_plain p = {
		.what		= FI_MSG | FI_SEND,
		.msg		= true,
		.flags		= flags,
		.addr		= msg->addr,
		.context	= msg->context,
	};

	return !(flags & ~KEFA_SHORT_TX) && kefa_plain_iter2(&p, &msg->msg_iter) &&
	       kefa_plain_tx(ep, &p);
}

static ssize_t kefa_plain_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, u64 flags)
{
	struct kefa_plain p = {
		.what		= FI_MSG | FI_SEND,
		.msg		= true,
		.flags		= flags,
		.addr		= msg->addr,
		.context	= msg->context,
	};

	if (likely(!(flags & ~KEFA_SHORT_TX) &&
		   kefa_plain_iter(&p, &msg->msg_iter, ITER_SOURCE) && kefa_plain_tx(ep, &p)))
		return 0;
	if (kefa_plain_two(ep, msg, flags))
		return 0;
	return kofi_req_sendmsg(ep, msg, flags);
}

static ssize_t kefa_plain_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, u64 flags)
{
	struct kefa_plain p = {
		.what		= FI_MSG | FI_RECV,
		.msg		= true,
		.flags		= flags,
		.context	= msg->context,
	};

	if (likely(!(flags & ~KEFA_SHORT_RX) &&
		   kefa_plain_iter(&p, &msg->msg_iter, ITER_DEST) && kefa_plain_rx(ep, &p)))
		return 0;
	return kofi_req_recvmsg(ep, msg, flags);
}

static __always_inline bool kefa_plain_rma(struct fid_ep *ep, const struct fi_msg_rma *msg,
					   u64 flags, u64 what)
{
	const struct fi_rma_iov *rma = msg->rma_iov;
	struct kefa_plain p = {
		.what		= what,
		.msg		= true,
		.flags		= flags,
		.addr		= msg->addr,
		.context	= msg->context,
	};

	if (unlikely(flags & ~KEFA_SHORT_TX || msg->rma_iov_count != 1 || !rma ||
		     !kefa_plain_iter(&p, &msg->msg_iter,
				      what & FI_READ ? ITER_DEST : ITER_SOURCE) ||
		     rma->len != p.len))
		return false;
	p.raddr = rma->addr;
	p.rkey = rma->key;
	return kefa_plain_tx(ep, &p);
}

static ssize_t kefa_plain_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, u64 flags)
{
	if (likely(kefa_plain_rma(ep, msg, flags, FI_RMA | FI_READ)))
		return 0;
	return kofi_req_readmsg(ep, msg, flags);
}

static ssize_t kefa_plain_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, u64 flags)
{
	if (likely(kefa_plain_rma(ep, msg, flags, FI_RMA | FI_WRITE)))
		return 0;
	return kofi_req_writemsg(ep, msg, flags);
}

const struct fi_ops_msg kefa_direct_msg_ops = {
	.recv		= kefa_plain_recv,
	.recvv		= kofi_req_recvv,
	.recvmsg	= kefa_plain_recvmsg,
	.send		= kefa_plain_send,
	.sendv		= kofi_req_sendv,
	.sendmsg	= kefa_plain_sendmsg,
	.inject		= kefa_plain_inject,
	.senddata	= kofi_req_senddata,
	.injectdata	= kofi_req_injectdata,
};

const struct fi_ops_rma kefa_direct_rma_ops = {
	.read		= kefa_plain_read,
	.readv		= kofi_req_readv,
	.readmsg	= kefa_plain_readmsg,
	.write		= kefa_plain_write,
	.writev		= kofi_req_writev,
	.writemsg	= kefa_plain_writemsg,
	.inject		= kofi_req_inject_write,
	.writedata	= kofi_req_writedata,
	.injectdata	= kofi_req_inject_writedata,
};
