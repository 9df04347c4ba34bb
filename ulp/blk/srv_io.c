// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Execution of commands. A request goes through a sequence of asynchronous steps, each of which
 * starts the next:
 *
 *	READ		pages -> store -> write to the client -> reply
 *	 immediate data	pages -> store -> write to the client, which is the reply
 *	 inline		store -> reply with the data
 *	 no RDMA write	pages -> store -> register -> READY, FETCHED -> invalidate
 *			-> reply
 *	WRITE		pages -> read from the client -> store -> reply
 *	 inline		store -> reply
 *	others		store -> reply
 *
 * A request starts in the handler that has received its command, if its data is inline or pages are
 * at hand, and continues in the contexts in which the store and the fabric complete its steps. Only
 * steps that may wait use work items.
 *
 * A slot is freed before its reply is posted, because the client may use the slot again before the
 * reply's completion.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include "srv.h"
#include "srv_trace.h"

void kbs_req_work(struct work_struct *work)
{
	struct kbs_req *req = container_of(work, struct kbs_req, work);

	req->run(req);
}

/* Run a request's next step in kbs_store_wq() if it may wait for the store, else in kbs_done_wq. */
void kbs_req_next(struct kbs_req *req, struct workqueue_struct *wq,
		  void (*run)(struct kbs_req *req))
{
	req->run = run;
	queue_work(wq, &req->work);
}

/* --- replies --- */

/*
 * Count posted operations, whose completion depends on the client and the device, so that
 * kbs_session_drain() can distinguish waiting for them from waiting for the store.
 */
static void kbs_squeue_post(struct kbs_squeue *sq, int n)
{
	spin_lock_bh(&sq->lock);
	sq->load.posted += n;
	spin_unlock_bh(&sq->lock);
}

/* Wakes the waiter under the lock, because the waiter may free the session. */
static void kbs_squeue_done(struct kbs_squeue *sq)
{
	lockdep_assert_held(&sq->lock);
	if (!--sq->load.in_flight && !kbs_session_works(sq->s))
		wake_up_all(&kbs_wait);
}

static int kbs_reply_post_data(struct kulp_queue *q, struct kbs_reply_op *reply)
{
	struct fi_msg msg = {
		.addr		= reply->sq->peer,
		.context	= &reply->rma.op,
	};

	bvec_set_page(&reply->bvecs[0], virt_to_page(reply->wire),
		      reply->len, offset_in_page(reply->wire));
	bvec_set_page(&reply->bvecs[1], reply->page, reply->bytes, 0);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, reply->bvecs,
		      ARRAY_SIZE(reply->bvecs), reply->len + reply->bytes);
	return fi_sendmsg(q->ep, &msg, 0);
}

/* While the store is flushed, the client must see that the server lives. */
static bool kbs_ping_works(const struct kbs_session *s)
{
	return READ_ONCE(s->state) <= KBS_SESSION_CLOSING;
}

static int kbs_ping_post(struct kulp_queue *q, struct kulp_op *op)
{
	struct kbs_reply_op *reply = container_of(op, struct kbs_reply_op, rma.op);

	if (!kbs_ping_works(reply->sq->s))
		return -ECANCELED;
	return fi_send(q->ep, reply->wire, reply->len, NULL, reply->sq->peer, op);
}

static int kbs_reply_post(struct kulp_queue *q, struct kulp_op *op)
{
	struct kbs_reply_op *reply = container_of(op, struct kbs_reply_op, rma.op);

	/* The session may have ended while the reply waited in its lane. */
	if (!kbs_session_works(reply->sq->s))
		return -ECANCELED;
	if (reply->bytes)
		return kbs_reply_post_data(q, reply);
	return fi_send(q->ep, reply->wire, reply->len, NULL, reply->sq->peer, op);
}

/*
 * Begin a transfer, unless the session has ended while it waited in its lane: the client may use
 * the key of its memory again.
 */
static int kbs_rma_post(const struct kbs_session *s, struct kulp_queue *q, struct kulp_op *op)
{
	return kbs_session_works(s) ? kulp_rma_post(q, op) : -ECANCELED;
}

static int kbs_notify_post(struct kulp_queue *q, struct kulp_op *op)
{
	return kbs_rma_post(container_of(op, struct kbs_reply_op, rma.op)->sq->s, q, op);
}

static int kbs_move_post(struct kulp_queue *q, struct kulp_op *op)
{
	return kbs_rma_post(container_of(op, struct kbs_req, rma.op)->sq->s, q, op);
}

static bool kbs_req_inline(const struct kbs_req *req, u8 op)
{
	return req->cmd.op == op && req->cmd.flags & KOFIBLK_CMD_INLINE;
}

static void kbs_reply_fill(const struct kbs_req *req, u16 flags, struct kofiblk_reply_msg *msg)
{
	size_t len = sizeof(msg->key);

	*msg = (struct kofiblk_reply_msg) {
		.op		= req->cmd.op,
		.flags		= flags,
		.status		= kulp_errno_status(req->err),
		.queue		= req->cmd.queue,
		.session	= req->sq->s->id,
		.id		= req->cmd.id,
	};
	if (!msg->status && (msg->op == KOFIBLK_OP_READ || msg->op == KOFIBLK_OP_WRITE))
		msg->bytes = req->cmd.bytes;
	if (flags & KOFIBLK_REPLY_READY)
		fi_mr_raw_attr(req->mr, &msg->addr, (u8 *)&msg->key, &len, 0);
	if (!msg->status && kbs_req_inline(req, KOFIBLK_OP_READ))
		msg->flags = KOFIBLK_REPLY_INLINE;
	kbs_sum_reply(req, msg);
}

/* Return: a reply for a request; or -EAGAIN or -ESHUTDOWN, see kbs_req_reply(). */
static struct kbs_reply_op *kbs_reply_get(struct kbs_req *req)
{
	struct kbs_squeue *sq = req->sq;
	struct kbs_reply_op *reply;

	lockdep_assert_held(&sq->lock);
	if (!kbs_session_works(sq->s))
		return ERR_PTR(-ESHUTDOWN);
	reply = list_first_entry_or_null(&sq->free_replies, struct kbs_reply_op, list);
	if (!reply) {
		list_add_tail(&req->list, &sq->want_reply);
		/* Under the lock: without it, the request may end, and its session be freed. */
		kulp_expedite(sq->q);
		return ERR_PTR(-EAGAIN);
	}
	list_del(&reply->list);
	reply->out = true;
	reply->since = jiffies;
	req->since = jiffies;
	sq->load.posted++;
	return reply;
}

/*
 * Submit a reply, with @imm by an RDMA write with immediate data. With READY, request and reply
 * both count as in flight. Without it the slot is freed, and the reply counts instead of the
 * request. The slot may be reused before the device has sent the data, so its pages move to the
 * reply.
 * Return: 0; -EAGAIN if there is no free reply: @req waits for one, and then its step is run again;
 * -ESHUTDOWN if the session isn't live.
 */
static int kbs_req_reply(struct kbs_req *req, u16 flags, bool imm)
{
	struct kbs_squeue *sq = req->sq;
	struct kbs_reply_op *reply;
	struct kofiblk_reply_msg msg;
	struct kulp_rma *rma;

	kbs_reply_fill(req, flags, &msg);
	spin_lock_bh(&sq->lock);
	reply = kbs_reply_get(req);
	if (IS_ERR(reply)) {
		spin_unlock_bh(&sq->lock);
		return PTR_ERR(reply);
	}
	rma = &reply->rma;
	reply->bytes = msg.flags & KOFIBLK_REPLY_INLINE ? msg.bytes : 0;
	if (reply->bytes)
		swap(reply->page, req->inline_page);
	if (imm) {
		kbs_reply_take_pages(reply, req);
		rma->iov.addr = req->cmd.addr;
		rma->iov.key = req->cmd.key;
		rma->imm = req->cmd.imm;
	}
	sq->load.in_flight += !!(flags & KOFIBLK_REPLY_READY);
	sq->stats.errors += !!msg.status;
	req->state = flags & KOFIBLK_REPLY_READY ? KBS_REQ_READY : KBS_REQ_FREE;
	spin_unlock_bh(&sq->lock);
	trace_kofiblk_srv_reply(&msg);
	if (imm) {
		iov_iter_bvec(&rma->iter, ITER_SOURCE, reply->bvecs, 1, reply->bvecs[0].bv_len);
		rma->op.post = kbs_notify_post;
	} else {
		reply->len = kofiblk_build_reply(&reply->wire->reply, &msg);
		kofiblk_reply_sign(&reply->wire->reply, reply->len, sq->reply_nonce, &sq->s->keys);
		rma->op.post = kbs_reply_post;
	}
	kulp_submit(sq->q, &rma->op);
	return 0;
}

static void kbs_run_notify(struct kbs_req *req)
{
	if (kbs_req_reply(req, 0, true) == -ESHUTDOWN)
		kbs_req_end(req, -ESHUTDOWN);
}

static void kbs_run_reply(struct kbs_req *req)
{
	struct kbs_squeue *sq = req->sq;

	if (kbs_req_reply(req, 0, false) != -ESHUTDOWN)
		return;
	spin_lock_bh(&sq->lock);
	kbs_squeue_done(sq);
	spin_unlock_bh(&sq->lock);
}

/* End a request with a reply. The slot may be reused at once. Any context but hard IRQ. */
void kbs_req_end(struct kbs_req *req, int err)
{
	req->err = err;
	kbs_req_free_pages(req);
	req->run = kbs_run_reply;
	kbs_run_reply(req);
}

static void kbs_reply_done(struct kulp_queue *q, struct kulp_op *op, int err, size_t len)
{
	struct kbs_reply_op *reply = container_of(op, struct kbs_reply_op, rma.op);
	struct kbs_squeue *sq = reply->sq;
	struct kbs_req *req;

	/* The client won't get this reply, so end the session and let it reconnect. */
	if (err)
		kbs_session_stop(sq->s, KBS_SESSION_STOPPED);
	if (reply->charged)
		kbs_reply_free_pages(reply);
	spin_lock_bh(&sq->lock);
	sq->load.posted--;
	reply->out = false;
	list_add(&reply->list, &sq->free_replies);
	req = list_first_entry_or_null(&sq->want_reply, struct kbs_req, list);
	if (req)
		list_del(&req->list);
	kbs_squeue_done(sq);
	spin_unlock_bh(&sq->lock);
	/* @req is in flight, so it keeps the session. */
	if (req)
		queue_work(kbs_done_wq, &req->work);
}

void kbs_reply_prepare(struct kbs_reply_op *reply)
{
	reply->rma.op.done = kbs_reply_done;
	reply->rma.peer = reply->sq->peer;
	reply->rma.has_imm = true;
}

static void kbs_ping_done(struct kulp_queue *q, struct kulp_op *op, int err, size_t len)
{
	struct kbs_reply_op *reply = container_of(op, struct kbs_reply_op, rma.op);
	struct kbs_squeue *sq = reply->sq;

	spin_lock_bh(&sq->lock);
	sq->load.posted--;
	sq->pinging = false;
	kbs_squeue_done(sq);
	spin_unlock_bh(&sq->lock);
}

/* Return: whether KEEP_ALIVE or PROVE is new. There is one PROVE for each queue. */
static bool kbs_ping_take(struct kbs_squeue *sq, const struct kofiblk_cmd_msg *msg)
{
	lockdep_assert_held(&sq->lock);
	if (msg->op == KOFIBLK_OP_PROVE) {
		if (sq->proven)
			return false;
		sq->proven = true;
		sq->reply_nonce = msg->key;
	} else {
		if (KOFIBLK_ID_GEN(msg->id) <= sq->alive)
			return false;
		sq->alive = KOFIBLK_ID_GEN(msg->id);
	}
	return true;
}

/*
 * Reply to KEEP_ALIVE or PROVE. On each queue only one such reply is sent at a time. Messages that
 * arrive meanwhile get none, and neither do copies of earlier ones.
 */
void kbs_ping(struct kbs_squeue *sq, const struct kofiblk_cmd_msg *msg)
{
	const struct kofiblk_reply_msg reply = {
		.op		= msg->op,
		.queue		= msg->queue,
		.session	= msg->session,
		.id		= msg->id,
		.key		= msg->op == KOFIBLK_OP_PROVE ? sq->cmd_nonce : 0,
	};
	struct kbs_reply_op *ping = &sq->ping;
	struct kbs_session *s = sq->s;
	bool fresh, answer;

	spin_lock_bh(&sq->lock);
	fresh = kbs_ping_take(sq, msg);
	if (fresh)
		WRITE_ONCE(sq->heard, jiffies);
	else
		sq->stats.stale++;
	answer = fresh && kbs_ping_works(s) && !sq->pinging;
	sq->pinging |= answer;
	sq->load.in_flight += answer;
	sq->load.posted += answer;
	spin_unlock_bh(&sq->lock);
	if (!answer)
		return;
	ping->rma.op.post = kbs_ping_post;
	ping->rma.op.done = kbs_ping_done;
	ping->len = kofiblk_build_reply(&ping->wire->reply, &reply);
	kofiblk_reply_sign(&ping->wire->reply, ping->len, sq->reply_nonce, &s->keys);
	kulp_submit(sq->q, &ping->rma.op);
}

/* --- the store --- */

/*
 * Count I/O at the store.
 * Return: whether the session is live. If it isn't, no I/O may begin, and none is counted.
 */
static bool kbs_io_count(struct kbs_req *req, bool begin)
{
	struct kbs_squeue *sq = req->sq;
	bool live;

	spin_lock_bh(&sq->lock);
	live = kbs_session_works(sq->s);
	sq->load.io += begin ? live : -1;
	/* The client's next session may wait for the last one. The thread keeps the session. */
	if (!begin && !live && !sq->load.io)
		wake_up_all(&kbs_wait);
	spin_unlock_bh(&sq->lock);
	return live;
}

static void kbs_req_push(struct kbs_req *req);

static void kbs_run_stored(struct kbs_req *req)
{
	int err = req->sio.err;

	/* The client may reuse its keys in the next session, so don't use this request's key. */
	if (!kbs_io_count(req, false))
		err = -ESHUTDOWN;
	if (!err)
		kbs_sum_read(req);
	if (err || req->cmd.op != KOFIBLK_OP_READ || kbs_req_inline(req, KOFIBLK_OP_READ))
		kbs_req_end(req, err);
	else
		kbs_req_push(req);
}

/* Do I/O that would have waited in kbs_store_try(). kbs_load.io counts it already. */
static void kbs_run_again(struct kbs_req *req)
{
	if (kbs_session_works(req->sq->s)) {
		kbs_store_rw(&req->sio);
		return;
	}
	req->sio.err = -ESHUTDOWN;
	kbs_run_stored(req);
}

static void kbs_stored(struct kbs_store_io *io)
{
	struct kbs_req *req = container_of(io, struct kbs_req, sio);

	if (io->nowait && io->err == -EAGAIN)
		kbs_req_next(req, kbs_store_wq(req), kbs_run_again);
	else if (in_hardirq() || irqs_disabled())
		kbs_req_next(req, kbs_done_wq, kbs_run_stored);
	else
		kbs_run_stored(req);
}

/* Start I/O at the store. @wait: whether this may sleep. */
static void kbs_req_store(struct kbs_req *req, bool wait)
{
	int err = kbs_sum_check(req, true);

	if (!err && !kbs_io_count(req, true))
		err = -ESHUTDOWN;
	if (err) {
		kbs_req_end(req, err);
		return;
	}
	req->sio = (struct kbs_store_io) {
		.store	= &req->sq->s->export->store,
		.write	= req->cmd.op == KOFIBLK_OP_WRITE,
		.fua	= req->cmd.flags & KOFIBLK_CMD_FUA,
		.offset	= req->cmd.offset,
		.bvec	= req->bvec,
		.nbvec	= req->nbvec,
		.bytes	= req->cmd.bytes,
		.bio	= &req->bio,
		.done	= kbs_stored,
	};
	if (wait)
		kbs_store_rw(&req->sio);
	else if (!kbs_store_try(&req->sio))
		kbs_req_next(req, kbs_store_wq(req), kbs_run_again);
}

static void kbs_run_store(struct kbs_req *req)
{
	kbs_req_store(req, true);
}

/*
 * Handle a range in parts, so that the end of the session needn't wait for all of it. The range may
 * exceed the current limits, if the client's disk was created when they were larger.
 */
static int kbs_run_range(struct kbs_req *req)
{
	struct kbs_store *store = &req->sq->s->export->store;
	const struct kofiblk_cmd_msg *cmd = &req->cmd;
	bool discard = cmd->op == KOFIBLK_OP_DISCARD;
	u64 most = discard ? store->disk.discard_max : store->disk.zeroes_max;
	u64 done, len;
	int err = 0;

	for (done = 0; done < cmd->bytes && !err; done += len) {
		if (!kbs_session_works(req->sq->s))
			return -ESHUTDOWN;
		len = min(cmd->bytes - done, most);
		err = discard ? kbs_store_discard(store, cmd->offset + done, len) :
				kbs_store_zeroes(store, cmd->offset + done, len,
						 cmd->flags & KOFIBLK_CMD_NOUNMAP,
						 cmd->flags & KOFIBLK_CMD_FUA);
	}
	return err;
}

static void kbs_run_other(struct kbs_req *req)
{
	int err;

	if (!kbs_io_count(req, true)) {
		kbs_req_end(req, -ESHUTDOWN);
		return;
	}
	if (req->cmd.op == KOFIBLK_OP_FLUSH)
		err = kbs_store_flush(&req->sq->s->export->store);
	else
		err = kbs_run_range(req);
	kbs_io_count(req, false);
	kbs_req_end(req, err);
}

/* --- data from and to the client --- */

/*
 * End a session without further replies, so that the client sends commands again. kbs_rma_post()
 * cancels transfers of a session that takes no more commands: nobody gets a reply then, and in a
 * planned stop keep-alive messages must be answered until the store is flushed.
 */
static void kbs_transfer_failed(struct kbs_session *s, int err)
{
	if (err != -ECANCELED || kbs_session_works(s))
		kbs_session_stop(s, KBS_SESSION_ENDING);
}

static void kbs_posted(struct kulp_queue *q, struct kulp_op *op, int err, size_t len)
{
	struct kbs_req *req = container_of(op, struct kbs_req, rma.op);
	struct kbs_session *s = req->sq->s;

	kbs_squeue_post(req->sq, -1);
	if (!err) {
		req->run(req);
	} else if (op->lane == KULP_LANE_INVAL && err != -ENODEV) {
		/*
		 * The device has refused to destroy the region, too, so the client may still reach
		 * the pages: keep them until the device is closed.
		 */
		WRITE_ONCE(s->exposed, true);
		kbs_session_stop(s, KBS_SESSION_ENDING);
		req->err = err;
		req->run = kbs_run_reply;
		kbs_run_reply(req);
	} else {
		/*
		 * After an invalidation's -ENODEV the endpoints are closed, so the client can't
		 * reach the pages. If the device refuses to register this memory, fail the request:
		 * a retry would fail, too.
		 */
		if (op->lane == KULP_LANE_SEND || (op->lane == KULP_LANE_REG && err != -EINVAL &&
						   err != -EMSGSIZE && err != -EOPNOTSUPP))
			kbs_transfer_failed(s, err);
		kbs_req_end(req, err);
	}
}

/* A checksum takes long for the handler, and others may run on other CPUs meanwhile. */
static void kbs_run_pulled(struct kbs_req *req)
{
	if (req->cmd.flags & KOFIBLK_CMD_SUM)
		kbs_req_next(req, kbs_store_wq(req), kbs_run_store);
	else
		kbs_req_store(req, false);
}

static void kbs_run_end(struct kbs_req *req)
{
	kbs_req_end(req, 0);
}

/* Move data from or, with @write, to the client. */
static void kbs_req_move(struct kbs_req *req, bool write)
{
	req->run = write ? kbs_run_end : kbs_run_pulled;
	req->rma = (struct kulp_rma) {
		.op.post	= kbs_move_post,
		.op.done	= kbs_posted,
		.peer		= req->sq->peer,
		.iov		= { .addr = req->cmd.addr, .key = req->cmd.key },
	};
	iov_iter_bvec(&req->rma.iter, write ? ITER_SOURCE : ITER_DEST,
		      req->bvec, req->nbvec, req->cmd.bytes);
	kbs_squeue_post(req->sq, 1);
	kulp_submit(req->sq->q, &req->rma.op);
}

/* --- data that the client fetches --- */

/* Register data or invalidate its registration; then the request continues with @run. */
static void kbs_req_map(struct kbs_req *req, enum kulp_lane lane,
			int (*post)(struct kulp_queue *q, struct kulp_op *op),
			void (*run)(struct kbs_req *req))
{
	req->run = run;
	req->rma.op.lane = lane;
	req->rma.op.post = post;
	req->rma.op.done = kbs_posted;
	kbs_squeue_post(req->sq, 1);
	kulp_submit(req->sq->q, &req->rma.op);
}

static int kbs_inval_post(struct kulp_queue *q, struct kulp_op *op)
{
	struct kbs_req *req = container_of(op, struct kbs_req, rma.op);

	return fi_mr_post_inval(req->mr, FI_COMPLETION, op);
}

/* Invalidate the registration of data that a client fetched, and end the request. */
void kbs_req_inval(struct kbs_req *req)
{
	kbs_req_map(req, KULP_LANE_INVAL, kbs_inval_post, kbs_run_end);
}

static void kbs_run_ready(struct kbs_req *req)
{
	if (kbs_req_reply(req, KOFIBLK_REPLY_READY, false) == -ESHUTDOWN)
		kbs_req_inval(req);
}

static int kbs_reg_post(struct kulp_queue *q, struct kulp_op *op)
{
	struct kbs_req *req = container_of(op, struct kbs_req, rma.op);
	const struct fi_mr_attr attr = {
		.type		= FI_MR_BVEC,
		.bvec	= req->bvec,
		.iov_count	= req->nbvec,
		.access		= FI_REMOTE_READ,
		.context	= op,
	};

	return fi_mr_post_reg(req->mr, &attr, FI_COMPLETION);
}

static void kbs_req_push(struct kbs_req *req)
{
	if (req->cmd.flags & KOFIBLK_CMD_IMM && kbs_reply_may_have(req)) {
		req->run = kbs_run_notify;
		kbs_run_notify(req);
	} else if (!req->mr) {
		kbs_req_move(req, true);
	} else {
		kbs_req_map(req, KULP_LANE_REG, kbs_reg_post, kbs_run_ready);
	}
}

/* --- start --- */

/* Begin to move a request's data. @wait: whether this may sleep. */
static void kbs_req_start(struct kbs_req *req, bool wait)
{
	int err = kbs_req_pages(req, wait);

	if (err == -ENOMEM)
		kbs_req_next(req, kbs_store_wq(req), kbs_run_begin);
	else if (err && err != -EAGAIN)
		kbs_req_end(req, err);
	else if (!err && req->cmd.op == KOFIBLK_OP_WRITE)
		kbs_req_move(req, false);
	else if (!err)
		kbs_req_store(req, wait);
}

/*
 * The first step of a new request that waits or for which no pages were at hand, and of one that
 * waited for memory. In kbs_store_wq().
 */
void kbs_run_begin(struct kbs_req *req)
{
	/* The session may have ended while the request waited. */
	if (!kbs_session_works(req->sq->s))
		kbs_req_end(req, -ESHUTDOWN);
	else if (req->cmd.op != KOFIBLK_OP_READ && req->cmd.op != KOFIBLK_OP_WRITE)
		kbs_run_other(req);
	else
		kbs_req_start(req, true);
}

/* Doesn't sleep. */
void kbs_req_begin(struct kbs_req *req)
{
	if (req->cmd.op != KOFIBLK_OP_READ && req->cmd.op != KOFIBLK_OP_WRITE) {
		kbs_req_next(req, kbs_store_wq(req), kbs_run_begin);
	} else if (!(req->cmd.flags & KOFIBLK_CMD_INLINE)) {
		kbs_req_start(req, false);
	} else {
		bvec_set_page(&req->one, req->inline_page, req->cmd.bytes, 0);
		req->bvec = &req->one;
		req->nbvec = 1;
		kbs_req_store(req, false);
	}
}
