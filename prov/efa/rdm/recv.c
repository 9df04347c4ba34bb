// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Receives. The core's matching decides which message a receive takes. */
#include "../io.h"
#include "../trace.h"
#include "rdm.h"

static int kefa_rdm_rx_check(struct kefa_rdm *rdm, const struct kofi_req *req)
{
	struct kefa_ep *ep = &rdm->ep;

	if (req->what & ~ep->caps)
		return -EOPNOTSUPP;
	if (req->flags & ~KEFA_RDM_RX_FLAGS || !kofi_match_flags_ok(req->flags))
		return -FI_EBADFLAGS;
	/* These requests have no buffer to check. */
	if (req->flags & (FI_PEEK | FI_DISCARD))
		return 0;
	if (req->flags & FI_MULTI_RECV) {
		if (!(ep->caps & FI_MULTI_RECV))
			return -EOPNOTSUPP;
		if (!iov_iter_is_kvec(&req->iter) || req->iter.nr_segs != 1)
			return -EINVAL;
	}
	if (!iov_iter_is_kvec(&req->iter) && !iov_iter_is_bvec(&req->iter))
		return -EINVAL;
	if (iov_iter_rw(&req->iter) != ITER_DEST)
		return -EINVAL;
	return kefa_iter_p2p(&req->iter) ? -EOPNOTSUPP : 0;
}

/*
 * Get the source for the match: kefa_rpeer.id, as peers in no address vector have no address. @dead
 * is set if only messages that have arrived can come from it.
 */
static int kefa_rx_src(struct kefa_rdm *rdm, const struct kofi_req *req, fi_addr_t *src,
		       bool *dead)
{
	struct kefa_rpeer *peer;

	*dead = false;
	*src = FI_ADDR_UNSPEC;
	if (!(rdm->ep.caps & FI_DIRECTED_RECV) || req->addr == FI_ADDR_UNSPEC)
		return 0;
	peer = kefa_peers_at(&rdm->peers, req->addr);
	if (!peer)
		return -EHOSTUNREACH;
	*src = peer->id;
	*dead = kefa_rpeer_dead(peer);
	return 0;
}

static struct kefa_held *kefa_msg_held(struct kofi_match_msg *msg)
{
	struct kefa_held *held = container_of(msg, struct kefa_held, msg);

	held->where = KEFA_HELD_NOT;
	return held;
}

/* Describe a message for the completion of a peek. The message stays in the match. */
static void kefa_rop_look(struct kefa_rop *rop, struct kofi_match_msg *msg)
{
	struct kefa_held *held = container_of(msg, struct kefa_held, msg);
	struct kefa_pkt pkt;

	kefa_parse(held->buf, held->len, &pkt);
	rop->peer = held->peer;
	rop->peer->nops++;
	rop->tag = pkt.tag;
	rop->total = held->total;
	rop->buf.len = held->total;
	if (!(pkt.flags & KEFA_REQ_OPT_CQ_DATA_HDR))
		return;
	rop->cq_flags |= FI_REMOTE_CQ_DATA;
	rop->data = pkt.cq_data;
}

/* Handle FI_PEEK, FI_CLAIM and FI_DISCARD. */
static void kefa_rdm_peek(struct kefa_rdm *rdm, struct kefa_rop *rop, u64 flags)
{
	struct kofi_match_msg *msg = kofi_match_peek(&rdm->match, &rop->recv, flags);

	kefa_rop_unlist(rop);
	if (msg && flags & FI_CLAIM && !(flags & (FI_PEEK | FI_DISCARD))) {
		kefa_rdm_feed(rdm, rop, kefa_msg_held(msg));
		return;
	}
	if (!msg) {
		rop->flags |= KEFA_ROP_OVER;
		kefa_rdm_tell_rx(rdm, rop, FI_ENOMSG, 0);
		kefa_rdm_end(rdm, rop);
		return;
	}
	kefa_rop_look(rop, msg);
	kefa_rdm_tell_rx(rdm, rop, 0, 0);
	if (!(flags & FI_DISCARD)) {
		rop->flags |= KEFA_ROP_OVER;
		kefa_rdm_end(rdm, rop);
		return;
	}
	/* A discarded message is received to its end, and answered if its sender waits for that. */
	rop->peer->nops--;
	rop->buf.len = 0;
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_SINK);
	kefa_rdm_feed(rdm, rop, kefa_msg_held(msg));
}

/*
 * The next message for a buffer can't be handled for now, and later receives mustn't overtake the
 * buffer; or there will be none. Release it, or refuse to post it if it has not @took any message,
 * which may have been empty. Return: 0, or @err.
 */
static int kefa_multi_stop(struct kefa_rdm *rdm, struct kefa_rop *multi, bool took, int err)
{
	if (!took)
		return err;
	multi->flags |= KEFA_ROP_SPENT;
	if (multi->wrs)
		return 0;
	multi->flags |= KEFA_ROP_OVER;
	kefa_rdm_tell_rx(rdm, multi, 0, 0);
	kefa_rdm_end(rdm, multi);
	return 0;
}

/* Give a multi-receive buffer all waiting messages that match; post it if others may come. */
static int kefa_post_multi(struct kefa_rdm *rdm, struct kefa_rop *multi, bool dead)
{
	struct kofi_match_msg *msg;
	bool spent, took = false;
	struct kefa_held *held;
	struct kefa_rop *rop;

	/* Count the post itself, so that no message releases the buffer while more may follow. */
	multi->wrs++;
	for (;;) {
		/* Only peek, because there may be no room for the message's completion. */
		msg = kofi_match_peek(&rdm->match, &multi->recv, FI_PEEK);
		if (!msg) {
			multi->wrs--;
			if (dead)
				return kefa_multi_stop(rdm, multi, took, -EHOSTUNREACH);
			kofi_match_post(&rdm->match, &multi->recv);
			return 0;
		}
		held = container_of(msg, struct kefa_held, msg);
		rop = kefa_multi_take(rdm, multi, held->total);
		if (!rop) {
			multi->wrs--;
			return kefa_multi_stop(rdm, multi, took, -EAGAIN);
		}
		took = true;
		spent = multi->flags & KEFA_ROP_SPENT;
		if (spent)
			multi->wrs--;
		kofi_match_remove_msg(&rdm->match, msg);
		held->where = KEFA_HELD_NOT;
		kefa_rdm_feed(rdm, rop, held);
		/* The last message may have freed the buffer's operation. */
		if (spent)
			return 0;
	}
}

static int kefa_post_one(struct kefa_rdm *rdm, struct kefa_rop *rop, bool dead)
{
	struct kofi_match_msg *msg = kofi_match_post(&rdm->match, &rop->recv);

	if (msg) {
		kefa_rop_unlist(rop);
		kefa_rdm_feed(rdm, rop, kefa_msg_held(msg));
		return 0;
	}
	if (!dead)
		return 0;
	kofi_match_remove(&rdm->match, &rop->recv);
	return -EHOSTUNREACH;
}

static void kefa_rx_undo(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	const bool tx = rdm->ep.tx.room, rx = rdm->ep.rx.room;

	rop->flags |= KEFA_ROP_TOLD | KEFA_ROP_OVER;
	rdm->ep.rx.nfree++;
	kefa_rdm_end(rdm, rop);
	/* The operation was free before the call, so the ULP needn't be notified of the room. */
	rdm->ep.tx.room = tx;
	rdm->ep.rx.room = rx;
}

static int kefa_rdm_rx_go(struct kefa_rdm *rdm, const struct kofi_req *req)
{
	struct kefa_ep *ep = &rdm->ep;
	struct kefa_rop *rop;
	fi_addr_t src;
	bool dead;
	int ret;

	lockdep_assert_held(&ep->lock);
	ret = kefa_not_enabled(ep) ?: kefa_rx_src(rdm, req, &src, &dead);
	if (ret)
		return ret;
	rop = kefa_rdm_take_rop(rdm, &ep->rx, KEFA_ROP_LISTED);
	if (!rop) {
		ep->stats.again++;
		ep->rx.wanted = true;
		return -EAGAIN;
	}
	if (kofi_side_quiet(&ep->rx.base, req->flags))
		rop->flags |= KEFA_ROP_QUIET;
	rop->flags |= rdm->as_msg;
	rop->context = req->context;
	rop->cq_flags = req->what;
	rop->tag = req->tag;
	kofi_match_recv_init(&rop->recv, req->what, src, req->tag, req->ignore, req->context);
	ep->stats.recvs++;
	if (req->flags & (FI_PEEK | FI_DISCARD)) {
		kefa_rdm_peek(rdm, rop, req->flags);
		return 0;
	}
	if (!kefa_rop_hold(rop, req)) {
		ret = -EINVAL;
	} else if (req->flags & FI_MULTI_RECV) {
		rop->flags |= KEFA_ROP_MULTI;
		rop->recv.link.multi = true;
		ret = kefa_post_multi(rdm, rop, dead);
	} else if (req->flags & FI_CLAIM) {
		kefa_rdm_peek(rdm, rop, req->flags);
	} else {
		ret = kefa_post_one(rdm, rop, dead);
	}
	if (ret)
		kefa_rx_undo(rdm, rop);
	if (ret == -EAGAIN) {
		ep->rx.wanted = true;
		ep->stats.again++;
	}
	return ret;
}

/* Check a call, and reserve an entry for its completion. The lock may be held. */
static int kefa_rdm_rx_begin(struct kefa_rdm *rdm, struct kofi_req *req)
{
	struct kofi_side *side = &rdm->ep.rx.base;

	kofi_req_flags(req, READ_ONCE(side->op_flags));
	return kefa_rdm_rx_check(rdm, req) ?: kofi_side_reserve(side);
}

/* Carry out a call, and release the lock. @ret is from kefa_rdm_rx_begin(). */
static ssize_t kefa_rdm_rx_end(struct kefa_rdm *rdm, const struct kofi_req *req, int ret)
	__releases(&rdm->ep.lock)
{
	struct kefa_ep *ep = &rdm->ep;

	if (!ret) {
		ret = kefa_rdm_rx_go(rdm, req);
		if (ret)
			kofi_side_unreserve(&ep->rx.base);
		/* If it took a message, the pump may have buffers, answers or reads to post. */
		else if (kefa_rdm_due(rdm))
			kefa_rdm_pump(rdm);
	}
	kefa_ep_unlock_news(ep);
	if (ret)
		trace_kefa_refused(ep, req, ret);
	return ret;
}

/**
 * kefa_rdm_rx_unlock() - post a receive, or peek at a message, and release the lock
 * @rdm: the endpoint
 * @req: the request; only the memory that it points to is used after the call
 *
 * Context: Process or softirq context, under kefa_ep.lock, which is released; doesn't sleep.
 * Return: 0, or a negative errno.
 */
ssize_t kefa_rdm_rx_unlock(struct kefa_rdm *rdm, struct kofi_req *req)
	__releases(&rdm->ep.lock)
{
	return kefa_rdm_rx_end(rdm, req, kefa_rdm_rx_begin(rdm, req));
}

/**
 * kefa_rdm_rx() - post a receive, or peek at a message
 * @ep_fid: the endpoint
 * @req: the request; only the memory that it points to is used after the call
 *
 * Serves as kofi_req_ops.rx. Copies the message if it has arrived already.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno.
 */
ssize_t kefa_rdm_rx(struct fid_ep *ep_fid, struct kofi_req *req)
{
	struct kefa_rdm *rdm = to_kefa_rdm(to_kefa_ep(ep_fid));
	const int ret = kefa_rdm_rx_begin(rdm, req);

	spin_lock_bh(&rdm->ep.lock);
	return kefa_rdm_rx_end(rdm, req, ret);
}
