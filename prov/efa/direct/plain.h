/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fast path of calls with one contiguous buffer and no special flags: plain calls, and
 * messages with one such buffer; sends with two, which is how a header goes with data; and writes
 * with remote CQ data.
 * Everything is done under the endpoint's lock, taken once.
 * The lock keeps the device, and the disabled bottom halves keep the addresses (RCU).
 * Mapping, too, is done under the lock: without an IOMMU it is only arithmetic, and mapping
 * before taking the lock would make all calls slower.
 *
 * Any other call, and any call that fails here, takes the slow path of post.c, which returns
 * and counts all errors.
 */
#ifndef KEFA_PLAIN_H
#define KEFA_PLAIN_H

#include "path.h"

/* Flags whose operations take the slow path. */
#define KEFA_LONG_WAY	(FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE)
/* Flags of messages that may take the fast path. */
#define KEFA_SHORT_TX	(KEFA_TX_FLAGS & ~KEFA_LONG_WAY)
#define KEFA_SHORT_RX	(KEFA_RX_FLAGS & ~KEFA_LONG_WAY)

/**
 * struct kefa_plain - a call that may take the fast path
 * @what: FI_MSG or FI_RMA, and FI_SEND, FI_RECV, FI_READ or FI_WRITE
 * @ud: the call sends a datagram
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
 * @has_data: a write has @data
 * @data: remote CQ data
 * @context: the caller's context
 *
 * All functions are inlined, so the compiler removes the structure.
 */
struct kefa_plain {
	u64		what;
	bool		ud;
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
	bool		has_data;
	u32		data;
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

static __always_inline u8 kefa_plain_quiet(const struct kefa_side *side,
					   const struct kefa_plain *p)
{
	if (p->msg)
		return kefa_side_quiet(side, p->flags);
	return p->inject ? KEFA_QUIET : side->quiet;
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

	kefa_wr_to(wr, op, p->ud, p->what, peer, p->raddr, p->rkey);
	if (p->has_data)
		kefa_wr_imm(wr, p->data);
	if (!kefa_plain_data(ep, p, wr, op, simple))
		return false;
	kefa_op_begin(ep, &ep->tx, op);
	kefa_direct_tx_head(ep, op, p->what, p->len, peer->key.ah, p->context,
			    kefa_plain_quiet(&ep->tx, p));
	if (!simple && unlikely(ep->split))
		kefa_direct_tx_posted(ep, op);
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

	if (!kefa_plain_ok(ep, p) || ep->tx.nfree <= ep->tx.kept ||
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
 * code, without checks for the other cases in each step. One of them is an endpoint whose sends
 * have a completion queue of their own.
 */
static __always_inline bool kefa_plain_locked(struct kefa_ep *ep,
					      const struct kefa_plain *p)
{
	if (likely(!ep->worker && !to_kefa_direct(ep)->special))
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

ssize_t kefa_plain_slow(struct fid_ep *ep, u64 how, const void *buf, size_t len, fi_addr_t addr,
			u64 raddr, u64 rkey, void *context);
ssize_t kefa_plain_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			void *context);
ssize_t kefa_plain_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, u64 flags);

#endif /* KEFA_PLAIN_H */
