// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Progress. An endpoint's worker takes the inbound operations that can proceed, moves the
 * data, completes both sides, and notifies the readers. The first and the third of these
 * four steps run under loop_lock. A send without a receive stays, and so does an operation
 * that needs an entry in a full completion queue. When that changes, the worker is queued
 * again.
 */
#include "loop.h"

static void loop_op_complete_cq(struct loop_op *op, struct kofi_cq *cq)
{
	u64 multi = op->req.flags & FI_MULTI_RECV;
	const struct fi_cq_err_entry error = {
		.op_context	= op->req.context,
		.flags		= op->req.what | multi,
		.len		= op->len,
		.buf		= op->buf,
		.data		= op->req.data,
		.tag		= op->req.tag,
		.olen		= op->olen,
		.err		= op->err,
		.prov_errno	= op->prov_errno,
		.src_addr	= op->req.what & FI_RECV ? op->src_addr : op->req.addr,
	};
	const struct fi_cq_tagged_entry entry = {
		.op_context	= op->req.context,
		.flags		= op->req.what | multi |
				  (op->req.flags & FI_REMOTE_CQ_DATA),
		.len		= op->len,
		.buf		= op->buf,
		.data		= op->req.data,
		.tag		= op->req.tag,
	};

	if (op->err)
		kofi_cq_write_err(cq, &error);
	else if (op->quiet && !multi)
		kofi_cq_unreserve(cq);
	else
		kofi_cq_write(cq, &entry, op->src_addr);
}

/**
 * loop_op_complete() - complete an operation
 * @op: the operation; its slot is free afterwards
 *
 * Writes the completion and frees the slot under loop_lock, which posts take as well, so the
 * reader of the completion finds the slot free.
 *
 * Context: Process or softirq context, under loop_lock.
 */
void loop_op_complete(struct loop_op *op)
{
	struct loop_side *side = op->req.what & FI_RECV ? &op->ep->rx :
							  &op->ep->tx;

	lockdep_assert_held(&loop_lock);
	if (op->ep->as_msg) {
		if (op->req.what & FI_TAGGED)
			op->req.what ^= FI_TAGGED | FI_MSG;
		op->req.tag = 0;
	}
	if (side->base.cq)
		loop_op_complete_cq(op, side->base.cq);
	kofi_side_count(&side->base, op->req.what, op->len, op->err);
	op->target = NULL;
	list_move_tail(&op->list, &side->free);
	/* A post was refused for lack of a slot, and now there is one. */
	if (side->wanted) {
		side->wanted = false;
		kofi_side_tell_room(&side->base);
	}
}

/* --- operations that can proceed --- */

static void loop_op_refuse(struct loop_ep *ep, struct loop_op *op,
			   enum loop_errno why)
{
	atomic_inc(&ep->dom->dev->refused);
	op->prov_errno = why;
	op->err = why == LOOP_ERR_KEY ? EKEYREJECTED : EACCES;
}

static bool loop_wants_entry(const struct loop_ep *ep, const struct loop_op *op)
{
	return op->req.what & FI_WRITE && op->req.flags & FI_REMOTE_CQ_DATA &&
	       ep->rx.base.cq;
}

static u64 loop_access(const struct loop_op *op)
{
	if (op->req.what & FI_ATOMIC)
		return loop_atomic_access(op);
	return op->req.what & FI_WRITE ? FI_REMOTE_WRITE : FI_REMOTE_READ;
}

static bool loop_match_rma(struct loop_ep *ep, struct loop_op *op)
{
	const u64 access = loop_access(op);
	enum loop_errno why = LOOP_ERR_NONE;
	size_t i;

	lockdep_assert_held(&loop_lock);
	if (access & ~ep->caps || (op->req.what & FI_ATOMIC && !(ep->caps & FI_ATOMIC)))
		why = LOOP_ERR_ACCESS;
	for (i = 0; i < op->req.rma_count && !why; i++)
		why = loop_mr_get(ep->dom, &op->req.rma[i], access,
				  &op->mrs[i]);
	if (!why && loop_wants_entry(ep, op) && !loop_ep_reserve(ep)) {
		for (i = 0; i < op->req.rma_count; i++)
			loop_mr_put(op->mrs[i]);
		memset(op->mrs, 0, sizeof(op->mrs));
		return false;
	}
	if (why)
		loop_op_refuse(ep, op, why);
	return true;
}

/* --- steps of the worker --- */

static int loop_take_ready(struct loop_ep *ep, struct list_head *batch)
{
	struct loop_op *op, *next;
	int n = 0;

	list_for_each_entry_safe(op, next, &ep->ready, list) {
		if (n++ == LOOP_BATCH)
			return LOOP_BATCH;
		list_move_tail(&op->list, batch);
	}
	return n;
}

/* Return: the number of operations taken, including sends that now wait for a receive. */
static int loop_take_matching(struct loop_ep *ep, struct list_head *batch)
{
	struct loop_op *op, *next;
	bool moves = false;
	int n;

	loop_post_recvs(ep);
	n = loop_take_ready(ep, batch);
	list_for_each_entry_safe(op, next, &ep->inbound, list) {
		if (n == LOOP_BATCH)
			break;
		/* Later operations must not overtake a write. */
		if (op->req.what & LOOP_FAR) {
			if (!loop_match_rma(ep, op))
				break;
			loop_take_op(op, batch);
			moves = true;
		} else if (moves || !loop_arrive(ep, op, batch)) {
			/* FI_PEEK must not find the send before the write's data is there. */
			break;
		}
		n++;
	}
	return n;
}

static struct loop_op *loop_next_recv(struct loop_ep *ep)
{
	return list_first_entry_or_null(&ep->posting, struct loop_op, list) ?:
	       list_first_entry_or_null(&ep->recvs, struct loop_op, list);
}

/* Fail one operation that targets a stopped endpoint. Return: whether there was one. */
static bool loop_take_message(struct loop_ep *ep, struct list_head *batch)
{
	struct kofi_match_msg *msg;
	struct loop_op *op;

	op = list_first_entry_or_null(&ep->ready, struct loop_op, list);
	if (op) {
		loop_unpair(ep, op);
		list_move_tail(&op->list, batch);
	} else {
		op = list_first_entry_or_null(&ep->inbound, struct loop_op, list);
		msg = op ? NULL : kofi_match_pop_msg(&ep->match);
		if (msg)
			op = container_of(msg, struct loop_op, msg);
		if (!op)
			return false;
		loop_take_op(op, batch);
	}
	op->err = EHOSTUNREACH;
	op->prov_errno = LOOP_ERR_PEER_GONE;
	return true;
}

/* Take all operations that a stopped endpoint posted and that target it. */
static int loop_take_all(struct loop_ep *ep, struct list_head *batch)
{
	struct loop_op *op;
	int n;

	for (n = 0; n < LOOP_BATCH; n++) {
		op = list_first_entry_or_null(&ep->sent, struct loop_op, sent);
		if (op) {
			kofi_match_remove_msg(&op->target->match, &op->msg);
		} else if (loop_take_message(ep, batch)) {
			continue;
		} else {
			op = loop_next_recv(ep);
			if (!op)
				break;
			kofi_match_remove(&ep->match, &op->post);
		}
		op->err = ep->stop_err;
		loop_take_op(op, batch);
	}
	return n;
}

static size_t loop_copy(void *page, struct iov_iter *to, struct iov_iter *from,
			size_t len)
{
	size_t done, n;

	for (done = 0; done < len; done += n) {
		n = min_t(size_t, len - done, PAGE_SIZE);
		if (copy_from_iter(page, n, from) != n ||
		    copy_to_iter(page, n, to) != n)
			break;
		cond_resched();
	}
	return done;
}

static void loop_move_msg(struct loop_ep *ep, struct loop_op *op)
{
	struct loop_op *recv = op->recv;
	struct iov_iter piece, *to = &recv->req.iter;
	size_t len = iov_iter_count(&op->req.iter);
	size_t room;

	if (recv->req.flags & FI_DISCARD) {
		op->len = len;
		return;
	}
	if (recv->req.flags & FI_MULTI_RECV) {
		iov_iter_kvec(&piece, ITER_DEST, &op->kvec_in, 1, op->kvec_in.iov_len);
		to = &piece;
	}
	room = iov_iter_count(to);
	op->len = loop_copy(ep->page, to, &op->req.iter, min(len, room));
	op->olen = len > room ? len - room : 0;
}

static void loop_move_rma(struct loop_ep *ep, struct loop_op *op)
{
	bool write = op->req.what & FI_WRITE;
	const struct fi_rma_iov *rma;
	struct iov_iter remote;
	struct loop_mr *mr;
	size_t i;

	for (i = 0; i < op->req.rma_count; i++) {
		rma = &op->req.rma[i];
		mr = op->mrs[i];
		iov_iter_bvec(&remote, write ? ITER_DEST : ITER_SOURCE,
			      mr->pages, mr->npages, mr->len);
		iov_iter_advance(&remote, rma->addr - mr->mr_fid.base_addr);
		op->len += loop_copy(ep->page, write ? &remote : &op->req.iter,
				     write ? &op->req.iter : &remote,
				     rma->len);
	}
}

static void loop_move(struct loop_ep *ep, struct loop_op *op)
{
	if (op->err)
		return;
	if (op->req.what & FI_RMA)
		loop_move_rma(ep, op);
	else if (op->req.what & FI_ATOMIC)
		loop_move_atomic(ep, op);
	else if (op->recv)
		loop_move_msg(ep, op);
}

static void loop_finish_rma(struct loop_ep *ep, struct loop_op *op)
{
	const struct fi_cq_tagged_entry entry = {
		.flags	= FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len	= op->len,
		.data	= op->req.data,
	};
	size_t i;

	for (i = 0; i < LOOP_RMA_IOV && op->mrs[i]; i++)
		loop_mr_put(op->mrs[i]);
	if (op->err)
		return;
	/* A peer's operation that was refused isn't one of this endpoint. */
	kofi_side_count(&ep->rx.base, op->req.what, op->len, false);
	if (loop_wants_entry(ep, op))
		kofi_cq_write_unsolicited(ep->rx.base.cq, &entry,
					  ep->caps & FI_SOURCE ?
					  loop_av_to_addr(ep->av, op->ep->id) :
					  FI_ADDR_NOTAVAIL);
}

/* Report a message in a multi-receive buffer. The last one completes the buffer. */
static void loop_finish_multi(struct loop_ep *ep, struct loop_op *recv, struct loop_op *op)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context	= recv->req.context,
		.flags		= recv->req.what | (recv->req.flags & FI_REMOTE_CQ_DATA),
		.len		= recv->len,
		.buf		= op->kvec_in.iov_base,
		.data		= recv->req.data,
	};
	struct kofi_cq *cq = ep->rx.base.cq;

	recv->buf = op->kvec_in.iov_base;
	recv->busy--;
	if (op->last) {
		loop_op_complete(recv);
		return;
	}
	if (cq && recv->quiet)
		kofi_cq_unreserve_unsolicited(cq, 1);
	else if (cq)
		kofi_cq_write_unsolicited(cq, &entry, recv->src_addr);
	kofi_side_count(&ep->rx.base, recv->req.what, recv->len, false);
	if (recv->canceled && !recv->busy) {
		recv->err = ECANCELED;
		recv->len = 0;
		loop_op_complete(recv);
	}
}

static void loop_finish_recv(struct loop_ep *ep, struct loop_op *recv, struct loop_op *op)
{
	loop_recv_result(ep, recv, op, op->len);
	if (recv->req.flags & FI_MULTI_RECV)
		loop_finish_multi(ep, recv, op);
	else
		loop_op_complete(recv);
}

/* loop_ep.moving keeps the senders from being closed until they have been notified. */
static int loop_finish(struct loop_ep *ep, struct list_head *batch,
		       struct loop_ep **senders)
{
	struct loop_op *op, *next;
	int n = 0;

	spin_lock_bh(&loop_lock);
	list_for_each_entry_safe(op, next, batch, list) {
		if (op->req.what & LOOP_FAR)
			loop_finish_rma(ep, op);
		if (op->recv)
			loop_finish_recv(ep, op->recv, op);
		if (!(op->req.what & FI_RECV))
			senders[n++] = op->ep;
		loop_op_complete(op);
	}
	spin_unlock_bh(&loop_lock);
	return n;
}

static void loop_tell(struct loop_ep *ep, struct loop_ep **senders, int count)
{
	int i;

	if (ep->rx.base.cq)
		kofi_cq_notify_worker(ep->rx.base.cq);
	for (i = 0; i < count; i++)
		if (senders[i]->tx.base.cq)
			kofi_cq_notify_worker(senders[i]->tx.base.cq);

	spin_lock_bh(&loop_lock);
	for (i = 0; i < count; i++)
		if (!--senders[i]->moving)
			wake_up(&senders[i]->idle);
	spin_unlock_bh(&loop_lock);
}

/**
 * loop_ep_work() - serve the inbound operations of an endpoint
 * @work: loop_ep.work
 *
 * Context: Process context. Calls handlers.
 */
void loop_ep_work(struct work_struct *work)
{
	struct loop_ep *ep = container_of(work, struct loop_ep, work);
	struct loop_ep *senders[LOOP_BATCH];
	struct loop_op *op;
	LIST_HEAD(batch);
	int n;

	for (;;) {
		spin_lock_bh(&loop_lock);
		n = ep->state == LOOP_EP_STOPPED ? loop_take_all(ep, &batch) :
						   loop_take_matching(ep, &batch);
		spin_unlock_bh(&loop_lock);
		if (!n)
			break;
		list_for_each_entry(op, &batch, list)
			loop_move(ep, op);
		n = loop_finish(ep, &batch, senders);
		loop_tell(ep, senders, n);
		cond_resched();
	}
}
