// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting. A request is checked and put into a slot for a worker. The functions don't
 * sleep or allocate, and a refused request has no effect.
 */
#include <linux/overflow.h>
#include "loop.h"

static bool loop_iter_ok(const struct iov_iter *iter, unsigned int direction)
{
	if (!iov_iter_is_kvec(iter) && !iov_iter_is_bvec(iter))
		return false;
	return iov_iter_rw(iter) == direction && iter->nr_segs <= LOOP_IOV;
}

/* Copy the description of a single segment, because plain calls have it on their stack. */
static void loop_op_set_iter(struct loop_op *op)
{
	struct iov_iter *iter = &op->req.iter;
	size_t len = iov_iter_count(iter);

	if (op->req.flags & FI_INJECT) {
		/* loop_tx() checked that @len is at most LOOP_INJECT. */
		WARN_ON_ONCE(copy_from_iter(op->inject, len, iter) != len);
		op->kvec.iov_base = op->inject;
	} else if (iov_iter_is_kvec(iter) && iter->nr_segs == 1) {
		op->kvec.iov_base = iter->kvec->iov_base + iter->iov_offset;
	} else {
		return;
	}
	op->kvec.iov_len = len;
	iov_iter_kvec(iter, iov_iter_rw(iter), &op->kvec, 1, len);
}

static struct loop_op *loop_op_take(struct loop_side *side,
				    const struct kofi_req *req)
{
	struct loop_op *op;

	lockdep_assert_held(&loop_lock);
	op = list_first_entry_or_null(&side->free, struct loop_op, list);
	if (!op)
		return NULL;
	op->req = *req;
	op->quiet = req->quiet || kofi_side_quiet(&side->base, req->flags);
	op->claimed = false;
	op->recv = NULL;
	op->busy = 0;
	op->canceled = false;
	op->buf = NULL;
	op->len = 0;
	op->olen = 0;
	op->err = 0;
	op->prov_errno = LOOP_ERR_NONE;
	op->src_addr = FI_ADDR_NOTAVAIL;
	memset(op->mrs, 0, sizeof(op->mrs));
	if (req->what & FI_ATOMIC) {
		loop_atomic_hold(op, req);
		return op;
	}
	loop_op_set_iter(op);
	if (req->rma_count == 1) {
		op->rma[0] = *req->rma;
		op->req.rma = op->rma;
	}
	return op;
}

static int loop_queue_tx(struct loop_ep *ep, const struct kofi_req *req)
{
	struct loop_ep *peer;
	struct loop_op *op;
	u32 id;

	lockdep_assert_held(&loop_lock);
	if (ep->state != LOOP_EP_ENABLED)
		return ep->stop_err == ENODEV ? -ENODEV : -FI_EOPBADSTATE;
	if (loop_av_to_id(ep->av, req->addr, &id))
		return -EHOSTUNREACH;
	peer = xa_load(&loop_eps, id);
	if (!peer || peer->state != LOOP_EP_ENABLED)
		return -EHOSTUNREACH;
	op = loop_op_take(&ep->tx, req);
	ep->tx.wanted |= !op;
	if (!op)
		return -EAGAIN;
	op->target = peer;
	kofi_match_msg_init(&op->msg, req->what, ep->id, req->tag);
	list_move_tail(&op->list, &peer->inbound);
	list_add_tail(&op->sent, &ep->sent);
	queue_work(loop_wq, &peer->work);
	return 0;
}

/* A directed receive names the peer by its endpoint's id, which isn't reused for long. */
static int loop_directed(struct loop_ep *ep, const struct kofi_req *req, fi_addr_t *src)
{
	u32 id;

	*src = FI_ADDR_UNSPEC;
	if (!(ep->caps & FI_DIRECTED_RECV) || req->addr == FI_ADDR_UNSPEC)
		return 0;
	if (loop_av_to_id(ep->av, req->addr, &id))
		return -EHOSTUNREACH;
	*src = id;
	return 0;
}

static int loop_queue_rx(struct loop_ep *ep, const struct kofi_req *req)
{
	struct loop_op *op;
	fi_addr_t src;

	lockdep_assert_held(&loop_lock);
	if (ep->state != LOOP_EP_ENABLED)
		return ep->stop_err == ENODEV ? -ENODEV : -FI_EOPBADSTATE;
	if (loop_directed(ep, req, &src))
		return -EHOSTUNREACH;
	op = loop_op_take(&ep->rx, req);
	ep->rx.wanted |= !op;
	if (!op)
		return -EAGAIN;
	kofi_match_recv_init(&op->post, req->what, src, req->tag, req->ignore,
			     req->context);
	op->post.link.multi = req->flags & FI_MULTI_RECV;
	list_move_tail(&op->list, &ep->posting);
	if (list_is_singular(&ep->posting))
		loop_post_recvs(ep);
	return 0;
}

/* Reserve the entry for the completion first, and give it back on failure. */
static int loop_post(struct loop_ep *ep, struct loop_side *side,
		     const struct kofi_req *req)
{
	int ret;

	if (req->what & ~ep->caps)
		return -EOPNOTSUPP;
	if (kofi_side_reserve(&side->base))
		return -EAGAIN;
	spin_lock_bh(&loop_lock);
	ret = side == &ep->tx ? loop_queue_tx(ep, req) : loop_queue_rx(ep, req);
	spin_unlock_bh(&loop_lock);
	if (ret)
		kofi_side_unreserve(&side->base);
	return ret;
}

static int loop_rma_ok(const struct kofi_req *req)
{
	size_t i, len = 0;

	if (!req->rma || !req->rma_count || req->rma_count > LOOP_RMA_IOV)
		return -EINVAL;
	for (i = 0; i < req->rma_count; i++)
		if (check_add_overflow(len, req->rma[i].len, &len))
			return -EINVAL;
	return len == iov_iter_count(&req->iter) ? 0 : -EINVAL;
}

/* Check the local and remote memory of a request that isn't an atomic operation. */
static int loop_tx_ok(const struct kofi_req *req)
{
	const size_t len = iov_iter_count(&req->iter);

	if (!loop_iter_ok(&req->iter, req->what & FI_READ ? ITER_DEST : ITER_SOURCE))
		return -EINVAL;
	if (len > LOOP_MAX_MSG)
		return -EMSGSIZE;
	if (req->flags & FI_INJECT && (req->what & FI_READ))
		return -FI_EBADFLAGS;
	if (req->flags & FI_INJECT && len > LOOP_INJECT)
		return -EMSGSIZE;
	return req->what & FI_RMA ? loop_rma_ok(req) : 0;
}

/**
 * loop_tx() - send, read, write, or begin an atomic operation
 * @ep: the endpoint
 * @req: the request; not needed after the call, except for the buffers
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno.
 */
static ssize_t loop_tx(struct fid_ep *ep, struct kofi_req *req)
{
	int ret;

	kofi_req_flags(req, READ_ONCE(to_loop_ep(ep)->tx.base.op_flags));
	if (req->flags & ~LOOP_TX_FLAGS)
		return -FI_EBADFLAGS;
	ret = req->what & FI_ATOMIC ? loop_atomic_ok(req) : loop_tx_ok(req);
	if (ret)
		return ret;
	return loop_post(to_loop_ep(ep), &to_loop_ep(ep)->tx, req);
}

/* Completions report where a message begins, which takes one segment with an address. */
static int loop_multi_ok(const struct loop_ep *ep, const struct kofi_req *req)
{
	if (!(ep->caps & FI_MULTI_RECV))
		return -EOPNOTSUPP;
	if (req->what & FI_TAGGED)
		return -FI_EBADFLAGS;
	if (!iov_iter_is_kvec(&req->iter) || req->iter.nr_segs != 1)
		return -EINVAL;
	return iov_iter_count(&req->iter) ? 0 : -EINVAL;
}

/**
 * loop_rx() - receive
 * @ep: the endpoint
 * @req: the request; not needed after the call, except for the buffers
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno.
 */
static ssize_t loop_rx(struct fid_ep *ep, struct kofi_req *req)
{
	int ret;

	kofi_req_flags(req, READ_ONCE(to_loop_ep(ep)->rx.base.op_flags));
	if (req->flags & ~LOOP_RX_FLAGS || !kofi_match_flags_ok(req->flags))
		return -FI_EBADFLAGS;
	if (req->flags & (FI_PEEK | FI_DISCARD))
		iov_iter_kvec(&req->iter, ITER_DEST, NULL, 0, 0);
	if (!loop_iter_ok(&req->iter, ITER_DEST))
		return -EINVAL;
	if (req->flags & FI_MULTI_RECV) {
		ret = loop_multi_ok(to_loop_ep(ep), req);
		if (ret)
			return ret;
	}
	return loop_post(to_loop_ep(ep), &to_loop_ep(ep)->rx, req);
}

const struct kofi_req_ops loop_req_ops = {
	.tx	= loop_tx,
	.rx	= loop_rx,
};
