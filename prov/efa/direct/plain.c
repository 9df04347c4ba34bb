// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The calls of fabric efa-direct: see plain.h. */
#include "plain.h"

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
	ep->tx.quiet = kefa_side_quiet(&ep->tx, tx);
	ep->rx.quiet = kefa_side_quiet(&ep->rx, rx);
	ep->limits = (struct kefa_limits) {
		.send	= kefa_limit(ep, FI_MSG | FI_SEND, tx, mtu),
		/* Longer data doesn't fit into a work request and must be copied. */
		.inject	= kefa_limit(ep, FI_MSG | FI_SEND, 0, KEFA_MAX_INLINE),
		.read	= kefa_limit(ep, FI_RMA | FI_READ, tx, ep->max_map),
		.write	= kefa_limit(ep, FI_RMA | FI_WRITE, tx, ep->max_map),
		.recv	= kefa_limit(ep, FI_MSG | FI_RECV, rx, mtu + to_kefa_direct(ep)->prefix),
	};
}

/**
 * kefa_plain_slow() - have the slow path do what the fast path has declined
 * @ep: the endpoint
 * @how: kefa_plain.what, and FI_INJECT
 * @buf: the buffer
 * @len: length in bytes
 * @addr: the peer
 * @raddr: address in the peer's memory
 * @rkey: key of the peer's memory
 * @context: the caller's context
 *
 * It takes the lock again, because it maps memory without it.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno.
 */
noinline ssize_t kefa_plain_slow(struct fid_ep *ep, u64 how, const void *buf, size_t len,
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

/**
 * kefa_plain_recv() - receive
 * @ep: the endpoint
 * @buf: the buffer
 * @len: length in bytes
 * @desc: unused
 * @src_addr: unused
 * @context: the caller's context
 *
 * Serves as fi_ops_msg.recv.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno.
 */
ssize_t kefa_plain_recv(struct fid_ep *ep, void *buf, size_t len,
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

/**
 * kefa_plain_recvmsg() - receive
 * @ep: the endpoint
 * @msg: the buffer and the caller's context
 * @flags: flags of the receive
 *
 * Serves as fi_ops_msg.recvmsg.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno.
 */
ssize_t kefa_plain_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, u64 flags)
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

/* @has_data: the message has remote CQ data; a constant. */
static __always_inline bool kefa_plain_rma(struct fid_ep *ep, const struct fi_msg_rma *msg,
					   u64 flags, u64 what, bool has_data)
{
	const u64 ok = KEFA_SHORT_TX | (has_data ? FI_REMOTE_CQ_DATA : 0);
	const struct fi_rma_iov *rma = msg->rma_iov;
	struct kefa_plain p = {
		.what		= what,
		.msg		= true,
		.flags		= flags,
		.addr		= msg->addr,
		.has_data	= has_data,
		.data		= msg->data,
		.context	= msg->context,
	};

	if (unlikely(flags & ~ok || msg->rma_iov_count != 1 || !rma ||
		     (has_data && msg->data > U32_MAX) ||
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
	if (likely(kefa_plain_rma(ep, msg, flags, FI_RMA | FI_READ, false)))
		return 0;
	return kofi_req_readmsg(ep, msg, flags);
}

/* A function of its own, so that other writes don't pay for it. */
static noinline bool kefa_plain_write_data(struct fid_ep *ep, const struct fi_msg_rma *msg,
					   u64 flags)
{
	return kefa_plain_rma(ep, msg, flags, FI_RMA | FI_WRITE, true);
}

static ssize_t kefa_plain_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, u64 flags)
{
	if (likely(kefa_plain_rma(ep, msg, flags, FI_RMA | FI_WRITE, false)))
		return 0;
	if (flags & FI_REMOTE_CQ_DATA && kefa_plain_write_data(ep, msg, flags))
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
