// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting, the slow path. A request is checked, its memory is mapped, and then it is
 * posted as work requests under the endpoint's lock. A refused request changes nothing but
 * counters. Nothing here sleeps. Memory is allocated only for the first use of a copy
 * buffer.
 *
 * A send of up to 32 bytes has its data in the work request. The device sends up to two
 * pieces of contiguous memory directly. Other sends, and injects, are copied to a copy
 * buffer of the endpoint. A read or write has one work request for each piece.
 */
#include "../kefa.h"
#include "path.h"

/**
 * enum kefa_short - resource whose lack made a post fail with -EAGAIN
 * @KEFA_SHORT_SLOT: a slot
 * @KEFA_SHORT_COPY: a copy buffer
 * @KEFA_SHORT_REST: a record for a transfer of many pieces
 * @KEFA_SHORT_DMA: DMA space, which a completion doesn't necessarily free
 */
enum kefa_short {
	KEFA_SHORT_SLOT,
	KEFA_SHORT_COPY,
	KEFA_SHORT_REST,
	KEFA_SHORT_DMA,
};

/**
 * struct kefa_transfer - a send, read or write that is being posted
 * @req: the request
 * @len: length in bytes
 * @in_wr: the data is inline in the work request
 * @copy: copy buffer with the data, or NULL
 * @dir: DMA direction of @segs
 * @nsegs: number of pieces that are posted at once
 * @segs: mapped pieces that are posted at once
 * @more: there are more pieces: see rest.c
 */
struct kefa_transfer {
	const struct kofi_req	*req;
	size_t			len;
	bool			in_wr;
	struct kefa_copy	*copy;
	enum dma_data_direction	dir;
	unsigned int		nsegs;
	struct kefa_seg		segs[KEFA_HELD_MAX];
	bool			more;
};

static int kefa_iter_check(const struct iov_iter *iter, unsigned int dir)
{
	if (!iov_iter_is_kvec(iter) && !iov_iter_is_bvec(iter))
		return -EINVAL;
	return iov_iter_rw(iter) == dir ? 0 : -EINVAL;
}

static int kefa_rma_check(const struct kofi_req *req, size_t len)
{
	if (!req->rma || req->rma_count != 1 || req->rma->len != len ||
	    req->rma->key > U32_MAX)
		return -EINVAL;
	return len > KEFA_MAX_RDMA ? -EMSGSIZE : 0;
}

static int kefa_direct_tx_check(struct kefa_ep *ep, const struct kofi_req *req)
{
	size_t len = iov_iter_count(&req->iter);
	bool read = req->what & FI_READ;
	int ret;

	if (req->what & ~ep->caps)
		return -EOPNOTSUPP;
	if (req->flags & ~KEFA_TX_FLAGS ||
	    (read && req->flags & (FI_INJECT | FI_REMOTE_CQ_DATA)))
		return -FI_EBADFLAGS;
	ret = kefa_iter_check(&req->iter, read ? ITER_DEST : ITER_SOURCE);
	if (ret)
		return ret;
	if (req->flags & FI_REMOTE_CQ_DATA && req->data > U32_MAX)
		return -EINVAL;
	if (req->flags & FI_INJECT && len > kefa_inject_size(ep->dom->dev))
		return -EMSGSIZE;
	if (req->what & FI_RMA)
		return kefa_rma_check(req, len);
	return len > ep->dom->dev->mtu ? -EMSGSIZE : 0;
}

/* Return: whether the resource has become available before the lock was taken. */
static bool kefa_direct_has_again(struct kefa_ep *ep, const struct kefa_side *side,
				  enum kefa_short what)
{
	lockdep_assert_held(&ep->lock);
	switch (what) {
	case KEFA_SHORT_SLOT:
		return side->nfree > side->kept;
	case KEFA_SHORT_COPY:
		return kefa_copy_ready(ep);
	case KEFA_SHORT_REST:
		return !list_empty(&to_kefa_direct(ep)->rests_free);
	default:
		return false;
	}
}

/**
 * kefa_direct_again() - refuse a post with -EAGAIN, for callers without the lock
 * @ep: the endpoint
 * @side: the direction
 * @what: the resource that is lacking
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: -EAGAIN, -ENODEV, -FI_EOPBADSTATE.
 */
static int kefa_direct_again(struct kefa_ep *ep, struct kefa_side *side, enum kefa_short what)
{
	int ret;

	spin_lock_bh(&ep->lock);
	ret = kefa_not_enabled(ep) ?: kefa_ep_again(ep, side, what == KEFA_SHORT_DMA);
	if (ret == -EAGAIN && kefa_direct_has_again(ep, side, what)) {
		side->room = true;
		kefa_ep_kick(ep);
	}
	spin_unlock_bh(&ep->lock);
	return ret;
}

static int kefa_direct_tx_copy(struct kefa_ep *ep, struct kefa_transfer *tx)
{
	struct iov_iter iter = tx->req->iter;
	struct kefa_copy *copy = kefa_copy_get(ep);

	if (!copy)
		return kefa_direct_again(ep, &ep->tx, KEFA_SHORT_COPY);
	tx->len = copy_from_iter(copy->data, tx->len, &iter);
	kefa_dma_sync_for_device(ep->dma, copy->dma, tx->len, DMA_TO_DEVICE);
	tx->copy = copy;
	return 0;
}

static unsigned int kefa_max_runs(const struct kefa_ep *ep,
				  const struct kofi_req *req)
{
	if (req->what & FI_SEND)
		return KEFA_MAX_SGE;
	/* CQ data must not overtake other parts of the data that it announces: see rest.c. */
	if (req->flags & FI_REMOTE_CQ_DATA)
		return 1;
	/* A post of more pieces than an empty queue has slots could never succeed. */
	return min_t(u32, KEFA_HELD_MAX, ep->tx.base.size);
}

static int kefa_direct_tx_data(struct kefa_ep *ep, struct kefa_transfer *tx)
{
	struct kefa_run runs[KEFA_HELD_MAX];
	int n;

	tx->in_wr = kefa_goes_inline(tx->req->what, tx->len);
	if (tx->in_wr || !tx->len)
		return 0;
	if (tx->req->flags & FI_INJECT)
		return kefa_direct_tx_copy(ep, tx);
	n = kefa_runs(ep, &tx->req->iter, runs, kefa_max_runs(ep, tx->req));
	if (n == -EMSGSIZE && !(tx->req->what & FI_READ) &&
	    tx->len <= ep->dom->dev->mtu)
		return kefa_direct_tx_copy(ep, tx);
	if (n == -EMSGSIZE && tx->req->what & FI_RMA) {
		tx->more = true;
		n = 1;
	}
	if (n < 0)
		return n;
	tx->dir = tx->req->what & FI_READ ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	tx->nsegs = n;
	if (!kefa_map(ep, runs, n, tx->segs, tx->dir))
		return 0;
	tx->nsegs = 0;
	return kefa_direct_again(ep, &ep->tx, KEFA_SHORT_DMA);
}

static void kefa_direct_tx_undo(struct kefa_ep *ep, struct kefa_transfer *tx)
{
	kefa_unmap(ep, tx->segs, tx->nsegs, tx->dir);
	if (tx->copy)
		kefa_copy_put(ep, tx->copy);
}

/* Set the local memory of a work request: @n pieces of the request, from @first on. */
static void kefa_direct_tx_sges(struct kefa_ep *ep, struct kefa_transfer *tx,
				struct kefa_op *op, struct kefa_wr *wr,
				unsigned int first, unsigned int n)
{
	struct iov_iter iter = tx->req->iter;
	unsigned int i;

	if (tx->in_wr) {
		kefa_wr_inline(wr, wr->data,
			       copy_from_iter(wr->data, tx->len, &iter));
		return;
	}
	if (tx->copy)
		kefa_wr_sge(wr, tx->copy->dma, tx->len);
	for (i = 0; i < n; i++) {
		op->seg[i] = tx->segs[first + i];
		kefa_wr_sge(wr, op->seg[i].dma, op->seg[i].len);
	}
	op->nsegs = n;
	op->dir = tx->dir;
	/* The driver reads the first SGE even of an empty message. */
	if (!wr->send.num_sge)
		kefa_wr_sge(wr, ep->dom->nothing_dma, 0);
}

/* Queue all pieces but the first of a long transfer. */
static void kefa_direct_tx_rest(struct kefa_ep *ep, struct kefa_transfer *tx,
				struct kefa_peer *peer, struct kefa_op *head)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	const struct kofi_req *req = tx->req;
	struct kefa_rest *rest = list_first_entry(&direct->rests_free, struct kefa_rest,
						  list);

	list_move_tail(&rest->list, &direct->rests);
	rest->head = head;
	rest->iter = req->iter;
	/* Copy a single kvec, because that of a plain call is on the stack. */
	if (iov_iter_is_kvec(&rest->iter) && rest->iter.nr_segs == 1) {
		rest->kvec.iov_base = req->iter.kvec->iov_base + req->iter.iov_offset;
		rest->kvec.iov_len = tx->len;
		iov_iter_kvec(&rest->iter, iov_iter_rw(&req->iter), &rest->kvec, 1,
			      tx->len);
	}
	iov_iter_advance(&rest->iter, tx->segs[0].len);
	rest->raddr = req->rma->addr + tx->segs[0].len;
	rest->rkey = req->rma->key;
	rest->qpn = peer->key.qpn;
	rest->qkey = peer->key.qkey;
	rest->has_data = req->flags & FI_REMOTE_CQ_DATA;
	rest->data = req->data;
	head->rest = rest;
	head->has_rest = true;
	head->more = true;
	head->parts++;
	/* The next piece is posted when an operation ends. */
	if (ep->split)
		kefa_ep_want_tx(ep);
}

static void kefa_direct_tx_post(struct kefa_ep *ep, struct kefa_transfer *tx,
				struct kefa_peer *peer, unsigned int parts)
{
	const struct kofi_req *req = tx->req;
	bool rma = req->what & FI_RMA;
	u64 raddr = rma ? req->rma->addr : 0;
	struct kefa_op *op, *head = NULL;
	struct kefa_wr *wr;
	unsigned int i;

	for (i = 0; i < parts; i++) {
		op = kefa_op_take(ep, &ep->tx, head);
		if (!head)
			kefa_direct_tx_head(ep, op, req->what, tx->len, peer->key.ah,
					    req->context, req->quiet ? KEFA_QUIET :
					    kefa_side_quiet(&ep->tx, req->flags));
		if (!head && unlikely(ep->split))
			kefa_direct_tx_posted(ep, op);
		head = op->head;
		wr = kefa_direct_wr(ep, op, ep->nheld++);
		kefa_wr_to(wr, op, to_kefa_direct(ep)->ud, req->what, peer, raddr,
			   rma ? req->rma->key : 0);
		kefa_direct_tx_sges(ep, tx, op, wr, i, rma ? min(tx->nsegs, 1U) : tx->nsegs);
		if (tx->nsegs)
			raddr += tx->segs[i].len;
	}
	if (tx->copy) {
		head->copy = tx->copy;
		head->more = true;
		ep->stats.bounced++;
	}
	if (req->flags & FI_REMOTE_CQ_DATA && !tx->more)
		kefa_wr_imm(wr, req->data);
	if (tx->more)
		kefa_direct_tx_rest(ep, tx, peer, head);
	trace_kefa_post(ep, head, req->addr);
}

static int kefa_direct_tx_queue(struct kefa_ep *ep, struct kefa_transfer *tx)
{
	unsigned int parts = tx->req->what & FI_RMA ? max(tx->nsegs, 1U) : 1;
	struct kefa_peer *peer;
	int ret;

	lockdep_assert_held(&ep->lock);
	ret = kefa_not_enabled(ep);
	if (ret)
		return ret;
	if (ep->tx.nfree < parts + ep->tx.kept)
		return kefa_ep_again(ep, &ep->tx, false);
	if (tx->more && list_empty(&to_kefa_direct(ep)->rests_free))
		return kefa_ep_again(ep, &ep->tx, false);
	if (ep->nheld + parts > KEFA_HELD_MAX)
		kefa_direct_flush(ep);
	peer = kefa_av_peer(ep->av, tx->req->addr);
	if (!peer)
		return -EHOSTUNREACH;
	kefa_direct_tx_post(ep, tx, peer, parts);
	if (tx->more)
		kefa_rests_go(ep);
	else
		kefa_direct_posted(ep, tx->req->flags & FI_MORE);
	return 0;
}

static int kefa_direct_tx_go(struct kefa_ep *ep, const struct kofi_req *req)
{
	struct kefa_transfer tx;
	int ret;

	tx.req = req;
	tx.len = iov_iter_count(&req->iter);
	tx.copy = NULL;
	tx.dir = DMA_NONE;
	tx.nsegs = 0;
	tx.more = false;
	ret = kefa_direct_tx_data(ep, &tx);
	if (ret)
		return ret;
	spin_lock_bh(&ep->lock);
	ret = kefa_direct_tx_queue(ep, &tx);
	spin_unlock_bh(&ep->lock);
	if (ret)
		kefa_direct_tx_undo(ep, &tx);
	return ret;
}

/* Reserve an entry of the completion queue for a checked request, and post it. */
static __always_inline int kefa_direct_post(struct kefa_ep *ep, struct kefa_side *side,
					    const struct kofi_req *req,
					    int (*go)(struct kefa_ep *ep,
						      const struct kofi_req *req))
{
	int ret;

	if (READ_ONCE(side->nfree) <= READ_ONCE(side->kept))
		return kefa_direct_again(ep, side, KEFA_SHORT_SLOT);
	if (kofi_side_reserve(&side->base))
		return kefa_ep_cq_full(ep, side);
	rcu_read_lock();
	ret = kefa_not_enabled(ep) ?: go(ep, req);
	rcu_read_unlock();
	if (ret)
		kofi_side_unreserve(&side->base);
	return ret;
}

/**
 * kefa_direct_tx() - send, read or write
 * @ep_fid: the endpoint
 * @req: the request; not used after the call, but the memory that it describes is
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno.
 */
ssize_t kefa_direct_tx(struct fid_ep *ep_fid, struct kofi_req *req)
{
	struct kefa_ep *ep = to_kefa_ep(ep_fid);
	int ret;

	kofi_req_flags(req, READ_ONCE(ep->tx.base.op_flags));
	ret = kefa_direct_tx_check(ep, req) ?:
	      kefa_direct_post(ep, &ep->tx, req, kefa_direct_tx_go);
	if (ret)
		trace_kefa_refused(ep, req, ret);
	return ret;
}

static int kefa_direct_rx_queue(struct kefa_ep *ep, const struct kofi_req *req,
				const struct kefa_seg *segs, unsigned int n)
{
	struct kefa_recv_wr *recv = &ep->recvs[ep->nrecvs];
	struct kefa_op *op;
	unsigned int i;
	int ret;

	lockdep_assert_held(&ep->lock);
	ret = kefa_not_enabled(ep);
	if (ret)
		return ret;
	if (!ep->rx.nfree)
		return kefa_ep_again(ep, &ep->rx, false);
	op = kefa_op_take(ep, &ep->rx, NULL);
	op->dir = DMA_FROM_DEVICE;
	recv->sge[0].addr = ep->dom->nothing_dma;
	recv->sge[0].length = 0;
	for (i = 0; i < n; i++) {
		op->seg[i] = segs[i];
		recv->sge[i].addr = segs[i].dma;
		recv->sge[i].length = segs[i].len;
	}
	op->nsegs = n;
	recv->wr.num_sge = max(n, 1U);
	kefa_direct_rx_post(ep, recv, op, req->what, req->context,
			    kefa_side_quiet(&ep->rx, req->flags), req->flags & FI_MORE);
	return 0;
}

static int kefa_direct_rx_go(struct kefa_ep *ep, const struct kofi_req *req)
{
	struct kefa_run runs[KEFA_MAX_SGE];
	struct kefa_seg segs[KEFA_MAX_SGE];
	struct iov_iter iter = req->iter;
	int n, ret;

	/* Messages aren't longer than the MTU, and the device has only 16 bits for the length. */
	iov_iter_truncate(&iter, ep->dom->dev->mtu + to_kefa_direct(ep)->prefix);
	n = kefa_runs(ep, &iter, runs, ARRAY_SIZE(runs));
	if (n < 0)
		return n;
	if (kefa_map(ep, runs, n, segs, DMA_FROM_DEVICE))
		return kefa_direct_again(ep, &ep->rx, KEFA_SHORT_DMA);
	spin_lock_bh(&ep->lock);
	ret = kefa_direct_rx_queue(ep, req, segs, n);
	spin_unlock_bh(&ep->lock);
	if (ret)
		kefa_unmap(ep, segs, n, DMA_FROM_DEVICE);
	return ret;
}

static int kefa_direct_rx_check(struct kefa_ep *ep, const struct kofi_req *req)
{
	int ret;

	if (req->what & ~ep->caps)
		return -EOPNOTSUPP;
	if (req->flags & ~KEFA_RX_FLAGS)
		return -FI_EBADFLAGS;
	ret = kefa_iter_check(&req->iter, ITER_DEST);
	if (ret)
		return ret;
	return iov_iter_count(&req->iter) > KEFA_MAX_RDMA ? -EMSGSIZE : 0;
}

/**
 * kefa_direct_rx() - receive
 * @ep_fid: the endpoint
 * @req: the request; not used after the call, but the memory that it describes is
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno.
 */
ssize_t kefa_direct_rx(struct fid_ep *ep_fid, struct kofi_req *req)
{
	struct kefa_ep *ep = to_kefa_ep(ep_fid);
	int ret;

	kofi_req_flags(req, READ_ONCE(ep->rx.base.op_flags));
	ret = kefa_direct_rx_check(ep, req) ?:
	      kefa_direct_post(ep, &ep->rx, req, kefa_direct_rx_go);
	if (ret)
		trace_kefa_refused(ep, req, ret);
	return ret;
}

const struct kofi_req_ops kefa_direct_req_ops = {
	.tx	= kefa_direct_tx,
	.rx	= kefa_direct_rx,
};
