// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receives and messages. The core's helper matches them; this file handles slots,
 * multi-receive buffers and senders, whose slots hold the data until it has been moved.
 */
#include <linux/iopoll.h>
#include "loop.h"

/* Time between two looks at what loop_flush() waits for, in microseconds. */
#define LOOP_FLUSH_US	1000

static struct loop_op *loop_recv_op(struct kofi_match_recv *recv)
{
	return container_of(recv, struct loop_op, post);
}

static struct loop_op *loop_msg_op(struct kofi_match_msg *msg)
{
	return container_of(msg, struct loop_op, msg);
}

/**
 * loop_take_op() - move an operation from the list in which it waits to another
 * @op: the operation; a send, read or write can't be canceled afterwards
 * @list: the new list
 *
 * Context: Process or softirq context, under loop_lock.
 */
void loop_take_op(struct loop_op *op, struct list_head *list)
{
	lockdep_assert_held(&loop_lock);
	list_move_tail(&op->list, list);
	if (!(op->req.what & FI_RECV)) {
		list_del_init(&op->sent);
		op->ep->moving++;
	}
}

/*
 * Assign the next piece of a multi-receive buffer to a message. The last message uses the
 * completion that the buffer's post reserved; the others have unsolicited completions.
 */
static bool loop_place(struct loop_ep *ep, struct loop_op *recv, struct loop_op *op)
{
	size_t len = min(iov_iter_count(&op->req.iter), recv->kvec.iov_len);
	size_t left = recv->kvec.iov_len - len;
	struct kofi_cq *cq = ep->rx.base.cq;

	op->last = !left || left < ep->min_multi_recv;
	if (!op->last && cq && !loop_ep_reserve(ep))
		return false;
	op->kvec_in.iov_base = recv->kvec.iov_base;
	op->kvec_in.iov_len = len;
	recv->kvec.iov_base += len;
	recv->kvec.iov_len = left;
	recv->busy++;
	if (op->last) {
		kofi_match_remove(&ep->match, &recv->post);
		list_del_init(&recv->list);
	}
	return true;
}

/* Pair a receive with a message. Return: false if a completion queue has no room. */
static bool loop_pair(struct loop_ep *ep, struct loop_op *recv, struct loop_op *op)
{
	lockdep_assert_held(&loop_lock);
	op->last = true;
	if (recv->req.flags & FI_MULTI_RECV) {
		if (!loop_place(ep, recv, op))
			return false;
	} else {
		list_del_init(&recv->list);
	}
	op->recv = recv;
	return true;
}

/**
 * loop_unpair() - undo the pairing of a message with a receive
 * @ep: the receiver, stopped
 * @op: the message
 *
 * Context: Process context, under loop_lock.
 */
void loop_unpair(struct loop_ep *ep, struct loop_op *op)
{
	struct loop_op *recv = op->recv;

	lockdep_assert_held(&loop_lock);
	if (recv->req.flags & FI_MULTI_RECV) {
		recv->busy--;
		if (!op->last && ep->rx.base.cq)
			kofi_cq_unreserve_unsolicited(ep->rx.base.cq, 1);
	}
	list_move_tail(&recv->list, &ep->recvs);
	op->recv = NULL;
}

/**
 * loop_arrive() - match the next inbound send
 * @ep: the receiver
 * @op: the send
 * @batch: takes the send if there is a receive for it; otherwise the send waits
 *
 * Context: Process context, under loop_lock.
 * Return: false if the receiver's completion queue has no room, so the send stays inbound.
 */
bool loop_arrive(struct loop_ep *ep, struct loop_op *op, struct list_head *batch)
{
	struct kofi_match_recv *recv = kofi_match_arrive(&ep->match, &op->msg);

	if (!recv) {
		list_del_init(&op->list);
		return true;
	}
	/* Pairing fails only with a multi-receive buffer, which is still posted. */
	if (!loop_pair(ep, loop_recv_op(recv), op))
		return false;
	loop_take_op(op, batch);
	return true;
}

static void loop_ready(struct loop_ep *ep, struct loop_op *op)
{
	loop_take_op(op, &ep->ready);
	queue_work(loop_wq, &ep->work);
}

/**
 * loop_recv_result() - set the result of a receive
 * @ep: the receiver
 * @recv: the receive
 * @op: the message
 * @len: number of bytes received
 *
 * Context: Process or softirq context, under loop_lock.
 */
void loop_recv_result(struct loop_ep *ep, struct loop_op *recv, struct loop_op *op,
		      size_t len)
{
	recv->len = len;
	recv->olen = op->olen;
	recv->err = op->olen ? FI_ETRUNC : 0;
	recv->req.tag = op->req.tag;
	recv->req.data = op->req.data;
	recv->req.flags &= ~FI_REMOTE_CQ_DATA;
	recv->req.flags |= op->req.flags & FI_REMOTE_CQ_DATA;
	if (ep->caps & FI_SOURCE)
		recv->src_addr = loop_av_to_addr(ep->av, op->ep->id);
}

/* Handle FI_PEEK and FI_CLAIM. A receive that moves no data completes at once. */
static void loop_peek(struct loop_ep *ep, struct loop_op *recv)
{
	u64 flags = recv->req.flags;
	struct kofi_match_msg *msg = kofi_match_peek(&ep->match, &recv->post, flags);
	struct loop_op *op = msg ? loop_msg_op(msg) : NULL;

	if (op && (!(flags & FI_PEEK) || flags & FI_DISCARD)) {
		list_del_init(&recv->list);
		op->recv = recv;
		loop_ready(ep, op);
		return;
	}
	if (op) {
		op->claimed = flags & FI_CLAIM;
		loop_recv_result(ep, recv, op, iov_iter_count(&op->req.iter));
	} else {
		recv->err = FI_ENOMSG;
	}
	loop_op_complete(recv);
	if (ep->rx.base.cq)
		kofi_cq_notify(ep->rx.base.cq);
}

static bool loop_post_recv(struct loop_ep *ep, struct loop_op *recv)
{
	struct kofi_match_msg *msg;
	struct loop_op *op;

	if (recv->req.flags & (FI_PEEK | FI_CLAIM)) {
		loop_peek(ep, recv);
		return true;
	}
	/* Peek first, because there may be no room for the message's completion. */
	while ((msg = kofi_match_peek(&ep->match, &recv->post, FI_PEEK))) {
		op = loop_msg_op(msg);
		if (!loop_pair(ep, recv, op))
			return false;
		kofi_match_remove_msg(&ep->match, msg);
		loop_ready(ep, op);
		if (op->last)
			return true;
	}
	kofi_match_post(&ep->match, &recv->post);
	list_move_tail(&recv->list, &ep->recvs);
	return true;
}

/**
 * loop_post_recvs() - post receives, in their order
 * @ep: the endpoint
 *
 * If the completion queue has no room for the messages of a multi-receive buffer, the
 * receives behind it wait, because they must not overtake it.
 *
 * Context: Process or softirq context, under loop_lock.
 */
void loop_post_recvs(struct loop_ep *ep)
{
	struct loop_op *recv, *next;

	lockdep_assert_held(&loop_lock);
	list_for_each_entry_safe(recv, next, &ep->posting, list)
		if (!loop_post_recv(ep, recv))
			break;
}

static bool loop_has_tag(const struct loop_op *op, u64 tag)
{
	return op->req.what & (FI_TAGGED | LOOP_FAR) && op->req.tag == tag;
}

/* With @tag, only operations with this tag. */
static bool loop_cancels(const struct loop_op *op, const u64 *tag, const void *context)
{
	return op->req.context == context && (!tag || loop_has_tag(op, *tag));
}

static struct loop_op *loop_cancel_recv(struct loop_ep *ep, const u64 *tag, void *context)
{
	struct kofi_match_recv *posted;
	struct loop_op *op;

	posted = tag ? kofi_match_cancel_tag(&ep->match, *tag, context) :
		       kofi_match_cancel(&ep->match, context);
	if (posted)
		return loop_recv_op(posted);
	list_for_each_entry(op, &ep->posting, list)
		if (loop_cancels(op, tag, context))
			return op;
	return NULL;
}

static struct loop_op *loop_cancel_send(struct loop_ep *ep, void *context)
{
	struct loop_op *op;

	list_for_each_entry(op, &ep->sent, sent) {
		/* A claimed send counts as received. */
		if (op->req.context != context || op->claimed)
			continue;
		kofi_match_remove_msg(&op->target->match, &op->msg);
		list_del_init(&op->sent);
		return op;
	}
	return NULL;
}

/* End an operation that is in no match any more. Return: the queue whose reader to notify. */
static struct kofi_cq *loop_op_cancel(struct loop_ep *ep, struct loop_op *op)
{
	struct kofi_cq *cq = op->req.what & FI_RECV ? ep->rx.base.cq : ep->tx.base.cq;

	lockdep_assert_held(&loop_lock);
	if (op->busy) {
		/* Messages that the buffer has already taken complete first. */
		list_del_init(&op->list);
		op->canceled = true;
		return NULL;
	}
	op->err = ECANCELED;
	loop_op_complete(op);
	return cq;
}

static ssize_t loop_cancel_any(struct loop_ep *ep, const u64 *tag, void *context)
{
	struct kofi_cq *cq = NULL;
	struct loop_op *op;

	spin_lock_bh(&loop_lock);
	op = loop_cancel_recv(ep, tag, context);
	/* A connection would lose the credit that the send has taken. */
	if (!op && !ep->as_msg)
		op = loop_cancel_send(ep, context);
	if (op)
		cq = loop_op_cancel(ep, op);
	spin_unlock_bh(&loop_lock);
	if (cq)
		kofi_cq_notify(cq);
	return op ? 0 : -ENOENT;
}

/**
 * loop_cancel() - cancel one waiting operation
 * @fid: the endpoint
 * @context: context of the operation
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or -ENOENT.
 */
ssize_t loop_cancel(struct fid *fid, void *context)
{
	return loop_cancel_any(container_of(fid, struct loop_ep, ep_fid.fid), NULL, context);
}

/**
 * loop_cancel_tag() - cancel one waiting receive with a tag
 * @ep_fid: the endpoint
 * @tag: the tag
 * @context: context of the receive
 *
 * Serves as fi_ops_ep.cancel_tag.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or -ENOENT.
 */
ssize_t loop_cancel_tag(struct fid_ep *ep_fid, u64 tag, void *context)
{
	return loop_cancel_any(to_loop_ep(ep_fid), &tag, context);
}

/* --- the end of operations with one peer, or with one tag --- */

/**
 * struct loop_which - which operations are to end
 * @by_tag: those with a tag
 * @tag: the tag
 * @id: otherwise those with the endpoint of this id
 */
struct loop_which {
	bool	by_tag;
	u64	tag;
	u32	id;
};

static void loop_flush_recvs(struct loop_ep *ep, struct list_head *recvs,
			     const struct loop_which *which)
{
	struct loop_op *op, *next;

	list_for_each_entry_safe(op, next, recvs, list) {
		if (which->by_tag ? !loop_has_tag(op, which->tag) : op->post.link.src != which->id)
			continue;
		kofi_match_remove(&ep->match, &op->post);
		loop_op_cancel(ep, op);
	}
}

/* Messages that the peer has claimed end, too, as it may never receive them. */
static void loop_flush_sends(struct loop_ep *ep, const struct loop_which *which)
{
	struct loop_op *op, *next;

	list_for_each_entry_safe(op, next, &ep->sent, sent) {
		if (which->by_tag ? !loop_has_tag(op, which->tag) : op->target->id != which->id)
			continue;
		kofi_match_remove_msg(&op->target->match, &op->msg);
		list_del_init(&op->sent);
		loop_op_cancel(ep, op);
	}
}

/* Return: number of operations of @ep whose data is being moved to or from @peer. */
static u32 loop_flush_moves(const struct loop_ep *ep, const struct loop_ep *peer)
{
	u32 i, n = 0;

	for (i = 0; i < ep->tx.base.size; i++)
		n += ep->ops[i].target == peer && list_empty(&ep->ops[i].sent);
	return n;
}

static u32 loop_flush_left(const struct loop_ep *ep, u32 id)
{
	const struct loop_ep *peer;
	u32 left = 0;

	spin_lock_bh(&loop_lock);
	peer = xa_load(&loop_eps, id);
	if (peer && peer->ops)
		left = loop_flush_moves(ep, peer) + loop_flush_moves(peer, ep);
	spin_unlock_bh(&loop_lock);
	return left;
}

/* End the operations that haven't begun. */
static void loop_flush_all(struct loop_ep *ep, const struct loop_which *which)
{
	lockdep_assert_held(&loop_lock);
	loop_flush_sends(ep, which);
	loop_flush_recvs(ep, &ep->posting, which);
	loop_flush_recvs(ep, &ep->recvs, which);
}

static void loop_flush_notify(struct loop_ep *ep)
{
	if (ep->tx.base.cq)
		kofi_cq_notify(ep->tx.base.cq);
	if (ep->rx.base.cq)
		kofi_cq_notify(ep->rx.base.cq);
}

/**
 * loop_flush() - end the operations with one peer
 * @ep_fid: the endpoint
 * @addr: the peer
 * @timeout_ms: longest time to wait
 *
 * Serves as fi_ops_ep.flush. The peer can be used afterwards.
 *
 * Context: Process context; sleeps.
 * Return: 0, or a negative errno.
 */
int loop_flush(struct fid_ep *ep_fid, fi_addr_t addr, unsigned int timeout_ms)
{
	struct loop_ep *ep = to_loop_ep(ep_fid);
	struct loop_which which = {};
	u32 left;
	int ret = 0;

	spin_lock_bh(&loop_lock);
	if (ep->state != LOOP_EP_ENABLED)
		ret = ep->stop_err == ENODEV ? -ENODEV : -FI_EOPBADSTATE;
	else if (loop_av_to_id(ep->av, addr, &which.id))
		ret = -EHOSTUNREACH;
	if (!ret)
		loop_flush_all(ep, &which);
	spin_unlock_bh(&loop_lock);
	if (ret)
		return ret;
	loop_flush_notify(ep);
	return read_poll_timeout(loop_flush_left, left, !left, LOOP_FLUSH_US,
				 (u64)timeout_ms * USEC_PER_MSEC + 1, false, ep, which.id);
}

/* Return: number of operations with a tag, other than receives, whose data is being moved. */
static u32 loop_flush_sending(const struct loop_ep *ep, u64 tag)
{
	u32 i, n = 0;

	spin_lock_bh(&loop_lock);
	for (i = 0; ep->ops && i < ep->tx.base.size; i++)
		n += ep->ops[i].target && loop_has_tag(&ep->ops[i], tag);
	spin_unlock_bh(&loop_lock);
	return n;
}

/**
 * loop_flush_tag() - end the operations with one tag
 * @ep_fid: the endpoint
 * @tag: the tag
 * @timeout_ms: longest time to wait
 *
 * Serves as fi_ops_ep.flush_tag. When the device was removed, it waits for the end of all
 * operations.
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ETIMEDOUT.
 */
int loop_flush_tag(struct fid_ep *ep_fid, u64 tag, unsigned int timeout_ms)
{
	const struct loop_which which = { .by_tag = true, .tag = tag };
	struct loop_ep *ep = to_loop_ep(ep_fid);
	u32 left;

	spin_lock_bh(&loop_lock);
	if (ep->state == LOOP_EP_ENABLED)
		loop_flush_all(ep, &which);
	spin_unlock_bh(&loop_lock);
	loop_flush_notify(ep);
	/* The endpoint's worker fills its receives; those of the targets take its sends. */
	flush_work(&ep->work);
	return read_poll_timeout(loop_flush_sending, left, !left, LOOP_FLUSH_US,
				 (u64)timeout_ms * USEC_PER_MSEC + 1, false, ep, tag);
}
