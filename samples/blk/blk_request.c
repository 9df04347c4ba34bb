// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * State machine of a request.
 *
 *	REGISTER --> REPLY --> INVALIDATE --> END
 *
 * are the phases of a read or write whose memory the server accesses. A request without
 * data, or with inline data in the command or reply, goes from REPLY to END. On a device
 * without RDMA write, the phases of a read without inline data are
 *
 *	REPLY --> FETCH --> REPLY --> END
 *
 * The server may reply before the command's send has completed. A request is completed to
 * the block layer only when all its operations have completed.
 *
 * When the session ends, requests that wait for the server are aborted: their memory is
 * invalidated, and they are requeued in the block layer, to be sent again in the next
 * session. If the invalidation fails, the region is closed before the request is
 * completed, so that the server can't reach memory that is reused.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include "blk.h"
#include "blk_trace.h"

/* Delay before a request is sent again that failed because the server lacked a resource. */
#define KBC_TRANSIENT_MS	100

/**
 * struct kbc_end - what kbc_slot_finish() does after kbc_tag.lock is released
 * @kq: queue of the request
 * @rq: request to complete, or NULL
 * @status: result of the request
 * @aborted: the session ended before the server replied
 * @transient: the request may succeed if it is sent again
 * @settled: all operations of the request have completed, so kbc_queue.busy is decremented
 */
struct kbc_end {
	struct kbc_queue *kq;
	struct request	*rq;
	blk_status_t	status;
	bool		aborted;
	bool		transient;
	bool		settled;
};

/* --- changes of phase --- */

/*
 * Enter a phase. kbc_slot_act() submits the phase's operation, which can't be done under
 * the lock.
 */
static void kbc_slot_enter(struct kbc_slot *slot, enum kbc_phase phase)
{
	lockdep_assert_held(&slot->tag->lock);
	WRITE_ONCE(slot->phase, phase);
	if (phase < KBC_STUCK)
		slot->ops++;
}

/* Note a failed flush; or a write before it is completed, because later flushes must cover it. */
static void kbc_slot_note(struct kbc_slot *slot)
{
	bool done = !slot->aborted && slot->status == BLK_STS_OK;
	const struct request *rq = kbc_rq(slot);
	struct kbc_disk *d = slot->kq->disk;
	u8 op = kbc_opcode(rq);

	if (op == KB_OP_FLUSH && !done)
		kbc_epoch_flush_failed(&d->epoch, slot->unflushed);
	else if ((op == KB_OP_WRITE || op == KB_OP_WRITE_ZEROES) && done &&
		 !(rq->cmd_flags & REQ_FUA) &&
		 d->geometry.flags & KB_DISK_WRITE_CACHE)
		kbc_epoch_wrote(&d->epoch);
}

/* Check whether the request has ended. Called once after each change of its state. */
static void kbc_slot_look(struct kbc_slot *slot, struct kbc_end *end)
{
	lockdep_assert_held(&slot->tag->lock);
	if (slot->ops || (slot->phase != KBC_END && slot->phase != KBC_STUCK))
		return;
	end->kq = slot->kq;
	end->settled = true;
	if (slot->phase == KBC_STUCK)
		return;
	kbc_slot_note(slot);
	end->rq = kbc_rq(slot);
	end->status = slot->status;
	end->aborted = slot->aborted;
	end->transient = slot->transient;
	slot->tag->slot = NULL;
	WRITE_ONCE(slot->phase, KBC_IDLE);
}

/*
 * Readahead isn't sent again. A request of merged bios has the flags of its first one, and the
 * others may be ordinary reads.
 */
static bool kbc_noretry(const struct request *rq)
{
	return blk_noretry_request(rq) && !(rq->rq_flags & RQF_MIXED_MERGE);
}

static void kbc_request_end(struct kbc_end *end)
{
	struct kbc_disk *d = end->kq->disk;
	struct request *rq = end->rq;
	struct kbc_slot *slot = kbc_slot(rq);

	if (!end->aborted && end->status == BLK_STS_OK && kbc_sum_wrong(d, rq)) {
		end->transient = true;
		end->status = BLK_STS_PROTECTION;
	}
	trace_kofiblk_end(d->name, kbc_opcode(rq), blk_rq_pos(rq), end->aborted,
			  blk_status_to_errno(end->status));
	if (end->transient)
		kbc_fault(slot);
	if ((end->aborted || end->transient) && !kbc_noretry(rq) &&
	    !READ_ONCE(d->failing) &&
	    READ_ONCE(slot->faults) <= KBC_FAULTS_MAX) {
		kbc_inc(d, replays);
		kbc_requeue(d, rq, end->transient ? KBC_TRANSIENT_MS : 0);
		return;
	}
	if (end->aborted) {
		kbc_inc(d, failures);
		end->status = BLK_STS_TRANSPORT;
	}
	kbc_complete(rq, end->status);
}

/* Act on the state that kbc_slot_look() copied to @end under the lock, which is released now. */
static void kbc_slot_finish(struct kbc_end *end)
{
	if (!end->settled)
		return;
	if (end->rq)
		kbc_request_end(end);
	kbc_busy_put(end->kq);
}

static void kbc_command(struct kbc_slot *slot, bool thank);

/* Submit the operation that a phase begins with. Called without the lock. */
static void kbc_slot_act(struct kbc_slot *slot, enum kbc_phase phase)
{
	struct kb_queue *q;

	/* The request may have been completed, so don't touch @slot. */
	if (phase == KBC_IDLE || phase == KBC_STUCK || phase == KBC_END)
		return;
	q = slot->kq->q;
	switch (phase) {
	case KBC_REGISTER:
	case KBC_INVALIDATE:
		slot->region.lane = phase == KBC_REGISTER ? KB_LANE_REG : KB_LANE_INVAL;
		kb_submit(q, &slot->region);
		break;
	case KBC_REPLY:
		kbc_command(slot, slot->fetched);
		kb_submit(q, slot->fetched ? &slot->thank : &slot->send);
		break;
	case KBC_FETCH:
		kbc_memory_iter(slot->bio, &slot->fetch.iter);
		kb_rma_submit(q, &slot->fetch);
		break;
	default:
		break;
	}
}

/* --- registration --- */

static int kbc_region_post(struct kb_queue *q, struct kb_op *op)
{
	struct kbc_slot *slot = container_of(op, struct kbc_slot, region);

	if (READ_ONCE(slot->phase) == KBC_INVALIDATE)
		return fi_mr_post_inval(slot->tag->mr, FI_COMPLETION, op);
	if (READ_ONCE(slot->aborted))
		return -ECANCELED;
	return kbc_memory_register(slot, op);
}

/* Return: whether a registration failed because of its memory, not the device. */
static bool kbc_refused_memory(int err)
{
	return err == -EINVAL || err == -EMSGSIZE || err == -EOPNOTSUPP;
}

static enum kbc_phase kbc_registered(struct kbc_slot *slot, int err)
{
	lockdep_assert_held(&slot->tag->lock);
	if (!err) {
		slot->registered = true;
		kbc_inc(slot->kq->disk, registrations);
		return slot->aborted ? KBC_INVALIDATE : KBC_REPLY;
	}
	if (kbc_refused_memory(err)) {
		slot->status = errno_to_blk_status(err);
	} else if (!slot->aborted) {
		WRITE_ONCE(slot->aborted, true);
		kbc_fault(slot);
		kbc_session_fail(slot->kq->disk, err);
	}
	return KBC_END;
}

/* After any error, even -ENODEV, peers may reach the memory until the region is closed. */
static enum kbc_phase kbc_invalidated(struct kbc_slot *slot, int err)
{
	lockdep_assert_held(&slot->tag->lock);
	if (err) {
		kbc_session_fail(slot->kq->disk, err);
		return KBC_STUCK;
	}
	slot->registered = false;
	return KBC_END;
}

static void kbc_region_done(struct kb_queue *q, struct kb_op *op, int err,
			    size_t len)
{
	struct kbc_slot *slot = container_of(op, struct kbc_slot, region);
	struct kbc_tag *tag = slot->tag;
	enum kbc_phase next;
	struct kbc_end end = {};

	spin_lock_bh(&tag->lock);
	slot->ops--;
	next = slot->phase == KBC_REGISTER ? kbc_registered(slot, err) :
					     kbc_invalidated(slot, err);
	kbc_slot_enter(slot, next);
	kbc_slot_look(slot, &end);
	spin_unlock_bh(&tag->lock);
	kbc_slot_act(slot, next);
	kbc_slot_finish(&end);
}

/* --- commands --- */

/* Build the request's command, or with @thank the FETCHED command. */
static void kbc_command(struct kbc_slot *slot, bool thank)
{
	const struct kbc_disk *d = slot->kq->disk;
	struct request *rq = kbc_rq(slot);
	u8 op = kbc_opcode(rq);
	struct kb_cmd_msg msg = {
		.op		= thank ? KB_OP_FETCHED : op,
		.queue		= slot->kq->index,
		.session	= d->session,
		.id		= KB_ID(rq->tag, slot->tag->gen),
	};
	size_t len, keylen = sizeof(msg.key);

	if (!thank) {
		msg.flags = kbc_cmd_flags(slot, op);
		if (op != KB_OP_FLUSH) {
			msg.offset = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
			msg.bytes = blk_rq_bytes(rq);
		}
		kbc_sum_command(d, rq, &msg);
	}
	if (slot->registered)
		fi_mr_raw_attr(slot->tag->mr, &msg.addr, (u8 *)&msg.key, &keylen, 0);
	if (msg.flags & KB_CMD_IMM)
		msg.imm = kbc_imm(slot->kq, slot->tag);
	trace_kofiblk_command(d->name, &msg);
	len = kb_build_cmd(&slot->msgs[thank].cmd, &msg);
	if (!thank)
		bvec_set_page(&slot->bvecs[0], virt_to_page(slot->msgs), len,
			      offset_in_page(slot->msgs));
}

static int kbc_send_post(struct kb_queue *q, struct kb_op *op)
{
	struct kbc_slot *slot = container_of(op, struct kbc_slot, send);
	const struct request *rq = kbc_rq(slot);
	struct fi_msg msg = {
		.addr		= slot->kq->peer,
		.context	= op,
	};

	if (READ_ONCE(slot->aborted))
		return -ECANCELED;
	WRITE_ONCE(slot->posted, true);
	if (!slot->inl || rq_data_dir(rq) == READ)
		return fi_send(q->ep, &slot->msgs[0], slot->bvecs[0].bv_len, NULL,
			       slot->kq->peer, op);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, slot->bvecs, 1 + slot->nbvec,
		      slot->bvecs[0].bv_len + blk_rq_bytes(rq));
	return fi_sendmsg(q->ep, &msg, FI_COMPLETION);
}

static int kbc_thank_post(struct kb_queue *q, struct kb_op *op)
{
	struct kbc_slot *slot = container_of(op, struct kbc_slot, thank);

	if (READ_ONCE(slot->aborted))
		return -ECANCELED;
	return fi_send(q->ep, &slot->msgs[1], sizeof(struct kb_cmd), NULL,
		       slot->kq->peer, op);
}

/* After an error the server may or may not have received the command, so end the session. */
static void kbc_sent(struct kbc_slot *slot, int err)
{
	struct kbc_tag *tag = slot->tag;
	struct kbc_end end = {};

	spin_lock_bh(&tag->lock);
	slot->ops--;
	if (err && !slot->aborted) {
		kbc_fault(slot);
		kbc_session_fail(slot->kq->disk, err);
	}
	kbc_slot_look(slot, &end);
	spin_unlock_bh(&tag->lock);
	kbc_slot_finish(&end);
}

static void kbc_send_done(struct kb_queue *q, struct kb_op *op, int err,
			  size_t len)
{
	kbc_sent(container_of(op, struct kbc_slot, send), err);
}

static void kbc_thank_done(struct kb_queue *q, struct kb_op *op, int err,
			   size_t len)
{
	kbc_sent(container_of(op, struct kbc_slot, thank), err);
}

/* --- data that the client fetches --- */

/* After an error don't send FETCHED: stay in KBC_REPLY until the session's end. */
static enum kbc_phase kbc_fetched(struct kbc_slot *slot, int err)
{
	lockdep_assert_held(&slot->tag->lock);
	if (slot->aborted)
		return KBC_END;
	if (err) {
		kbc_fault(slot);
		kbc_session_fail(slot->kq->disk, err);
		WRITE_ONCE(slot->phase, KBC_REPLY);
		return KBC_IDLE;
	}
	slot->fetch.iov.addr += slot->bio->bi_iter.bi_size;
	slot->bio = slot->bio->bi_next;
	slot->fetched = !slot->bio;
	return slot->fetched ? KBC_REPLY : KBC_FETCH;
}

static void kbc_fetch_done(struct kb_queue *q, struct kb_op *op, int err,
			   size_t len)
{
	struct kbc_slot *slot = container_of(op, struct kbc_slot, fetch.op);
	struct kbc_tag *tag = slot->tag;
	struct kbc_end end = {};
	enum kbc_phase next;

	spin_lock_bh(&tag->lock);
	slot->ops--;
	next = kbc_fetched(slot, err);
	if (next != KBC_IDLE)
		kbc_slot_enter(slot, next);
	kbc_slot_look(slot, &end);
	spin_unlock_bh(&tag->lock);
	kbc_slot_act(slot, next);
	kbc_slot_finish(&end);
}

/* --- replies --- */

static enum kbc_phase kbc_reply_taken(struct kbc_slot *slot,
				      const struct kb_reply_msg *msg)
{
	struct kbc_disk *d = slot->kq->disk;

	lockdep_assert_held(&slot->tag->lock);
	if (msg->flags & KB_REPLY_READY) {
		slot->fetch.peer = slot->kq->peer;
		slot->fetch.iov.addr = msg->addr;
		slot->fetch.iov.key = msg->key;
		slot->bio = kbc_rq(slot)->bio;
		kbc_inc(d, fetches);
		return KBC_FETCH;
	}
	if (msg->data) {
		kbc_memory_fill(kbc_rq(slot), msg->data);
		kbc_inc(d, inline_reads);
	}
	slot->sum = msg->sum;
	slot->transient = kbc_transient(msg->status) ||
			  kbc_sum_refused(d, kbc_rq(slot), msg);
	slot->status = kbc_transient(msg->status) ? BLK_STS_IOERR :
		       errno_to_blk_status(kb_status_errno(msg->status));
	if (msg->status != KB_OK)
		kbc_inc(d, errors);
	return slot->registered ? KBC_INVALIDATE : KBC_END;
}

static void kbc_refuse(struct kbc_disk *d, const char *fault)
{
	kbc_inc(d, refused);
	trace_kofiblk_refused(d->name, fault);
	pr_err_ratelimited("%s: bad message from the server, ending the session: %s\n",
			   d->name, fault);
	kbc_session_fail(d, -EPROTO);
}

static void kbc_reply(struct kbc_queue *kq, const struct kb_reply_msg *msg)
{
	struct kbc_tag *tag = &kq->tags[KB_ID_SLOT(msg->id)];
	enum kbc_phase next = KBC_IDLE;
	struct kbc_end end = {};
	const char *fault = NULL;
	struct kbc_slot *slot;

	spin_lock_bh(&tag->lock);
	slot = tag->slot;
	if (!slot || slot->phase != KBC_REPLY || !READ_ONCE(slot->posted) ||
	    KB_ID_GEN(msg->id) != KB_ID_GEN(KB_ID(0, tag->gen))) {
		kbc_inc(kq->disk, stale);
	} else {
		fault = kbc_reply_fault(slot, msg);
		if (!fault) {
			next = kbc_reply_taken(slot, msg);
			kbc_slot_enter(slot, next);
			kbc_slot_look(slot, &end);
		}
	}
	spin_unlock_bh(&tag->lock);
	if (fault)
		kbc_refuse(kq->disk, fault);
	kbc_slot_act(slot, next);
	kbc_slot_finish(&end);
}

/* Return: whether immediate data is for the active request of the tag. */
static bool kbc_imm_taken(const struct kbc_queue *kq, const struct kbc_tag *tag,
			  u32 data)
{
	struct kbc_slot *slot = tag->slot;

	lockdep_assert_held(&tag->lock);
	if (!slot || slot->phase != KBC_REPLY || !slot->imm ||
	    !READ_ONCE(slot->posted) || data != kbc_imm(kq, tag))
		return false;
	kbc_inc(kq->disk, immediates);
	kbc_slot_enter(slot, KBC_INVALIDATE);
	return true;
}

/* Handle immediate data, the reply to a read. Any peer that reaches the endpoint may send it. */
void kbc_written(void *user, u32 data)
{
	struct kbc_queue *kq = user;
	struct kbc_disk *d = kq->disk;
	/* Pairs with kbc_queue_alloc(). */
	struct kbc_tag *tag = smp_load_acquire(&kq->tags);
	struct kb_reply_msg msg = { .op = KB_OP_READ, .queue = kq->index };
	struct kbc_slot *slot = NULL;

	if (tag && KBC_IMM_TAG(data) < d->depth) {
		tag += KBC_IMM_TAG(data);
		spin_lock_bh(&tag->lock);
		if (kbc_imm_taken(kq, tag, data))
			slot = tag->slot;
		msg.id = KB_ID(KBC_IMM_TAG(data), tag->gen);
		spin_unlock_bh(&tag->lock);
	}
	if (!slot) {
		kbc_inc(d, stale);
		trace_kofiblk_stray_imm(d->name, data);
		return;
	}
	trace_kofiblk_reply(d->name, &msg);
	kbc_slot_act(slot, KBC_INVALIDATE);
}

static void kbc_alive_answered(struct kbc_disk *d, u64 gen)
{
	/* Only one keep-alive message is outstanding, so ignore other generations. */
	if (gen == KB_ID_GEN(KB_ID(0, READ_ONCE(d->alive.gen))))
		WRITE_ONCE(d->alive.seen, d->alive.gen);
	else
		kbc_inc(d, stale);
}

/* Only client and server know the session ID, so it identifies the sender of a message. */
void kbc_received(struct kb_queue *q, void *buf, size_t len)
{
	struct kb_reply_msg msg;
	struct kbc_queue *kq;
	struct kbc_disk *d;

	if (kb_parse_reply(buf, len, &msg)) {
		trace_kofiblk_refused("", "malformed reply");
		pr_err_ratelimited("dropped a malformed reply, whose session is unknown\n");
		return;
	}
	rcu_read_lock();
	d = kbc_session_find(msg.session);
	trace_kofiblk_reply(d ? d->name : "", &msg);
	if (!d)
		goto unlock;
	kq = msg.queue < d->nqueues ? &d->queues[msg.queue] : NULL;
	if (!kq || kq->q != q)
		kbc_refuse(d, "reply on the wrong queue");
	else if (msg.op == KB_OP_KEEP_ALIVE)
		kbc_alive_answered(d, KB_ID_GEN(msg.id));
	else if (KB_ID_SLOT(msg.id) >= d->depth)
		kbc_refuse(d, "reply with a slot out of range");
	else
		kbc_reply(kq, &msg);
unlock:
	rcu_read_unlock();
}

/* --- start and abort --- */

static bool kbc_fits_inline(struct kbc_slot *slot, const struct request *rq)
{
	const struct kb_limits *limits = &slot->kq->disk->limits;

	if (req_op(rq) == REQ_OP_READ)
		return blk_rq_bytes(rq) <= limits->inline_read;
	return req_op(rq) == REQ_OP_WRITE &&
	       blk_rq_bytes(rq) <= limits->inline_max &&
	       kbc_memory_carried(slot);
}

/* Return: the first phase of a request. */
static enum kbc_phase kbc_slot_first(struct kbc_slot *slot, u8 op)
{
	if (slot->inl || !kbc_op_moves(op))
		return KBC_REPLY;
	if (op == KB_OP_READ &&
	    !(slot->kq->disk->limits.caps & KB_CAP_RDMA_WRITE))
		return KBC_REPLY;
	return KBC_REGISTER;
}

static void kbc_slot_take(struct kbc_slot *slot, struct request *rq)
{
	lockdep_assert_held(&slot->tag->lock);
	slot->tag->slot = slot;
	slot->tag->gen++;
	slot->status = BLK_STS_OK;
	WRITE_ONCE(slot->aborted, false);
	slot->transient = false;
	slot->posted = false;
	slot->fetched = false;
	slot->inl = kbc_fits_inline(slot, rq);
	slot->imm = !slot->inl && kbc_imm_will_do(slot);
	slot->unflushed = kbc_opcode(rq) == KB_OP_FLUSH &&
			  kbc_epoch_flush(&slot->kq->disk->epoch);
}

/* Return: whether a request that makes data stable must fail because writes were lost. */
static bool kbc_request_lost(struct kbc_disk *d, const struct request *rq, u8 op)
{
	bool fua = op != KB_OP_READ && rq->cmd_flags & REQ_FUA;

	if (!kbc_epoch_fails(&d->epoch, op == KB_OP_FLUSH, fua))
		return false;
	pr_err_ratelimited("%s: failing a %s, because earlier writes may be lost; once their data was restored, write 0 to kofiblk/lost\n",
			   d->name, op == KB_OP_FLUSH ? "flush" : "write with FUA");
	return true;
}

blk_status_t kbc_request_start(struct kbc_queue *kq, struct request *rq)
{
	struct kbc_tag *tag = &kq->tags[rq->tag];
	struct kbc_slot *slot = kbc_slot(rq);
	struct kbc_disk *d = kq->disk;
	u8 op = kbc_opcode(rq);
	enum kbc_phase first;

	if (!kbc_op_allowed(d, op))
		return BLK_STS_NOTSUPP;
	if (kbc_request_lost(d, rq, op))
		return BLK_STS_IOERR;
	spin_lock_bh(&tag->lock);
	if (WARN_ON_ONCE(tag->slot)) {
		spin_unlock_bh(&tag->lock);
		return BLK_STS_IOERR;
	}
	slot->tag = tag;
	WRITE_ONCE(slot->attempt, READ_ONCE(d->attempt));
	blk_mq_start_request(rq);
	kbc_slot_take(slot, rq);
	atomic_inc(&kq->busy);
	kbc_inc(d, requests);
	if (kbc_op_moves(op))
		kbc_add(d, bytes, blk_rq_bytes(rq));
	if (slot->inl && op == KB_OP_WRITE)
		kbc_inc(d, inlined);
	first = kbc_slot_first(slot, op);
	kbc_slot_enter(slot, first);
	spin_unlock_bh(&tag->lock);
	kbc_slot_act(slot, first);
	return BLK_STS_OK;
}

static enum kbc_phase kbc_slot_abort(struct kbc_slot *slot, struct kbc_end *end)
{
	enum kbc_phase next = KBC_IDLE;

	lockdep_assert_held(&slot->tag->lock);
	switch (slot->phase) {
	case KBC_REPLY:
		WRITE_ONCE(slot->aborted, true);
		next = slot->registered ? KBC_INVALIDATE : KBC_END;
		kbc_slot_enter(slot, next);
		kbc_slot_look(slot, end);
		break;
	case KBC_REGISTER:
	case KBC_FETCH:
		/* The completion of the operation sees @aborted. */
		WRITE_ONCE(slot->aborted, true);
		break;
	default:
		break;
	}
	return next;
}

static void kbc_tag_abort(struct kbc_queue *kq, struct kbc_tag *tag)
{
	enum kbc_phase next = KBC_IDLE;
	struct kbc_end end = {};
	struct kbc_slot *slot;

	spin_lock_bh(&tag->lock);
	slot = tag->slot;
	if (slot)
		next = kbc_slot_abort(slot, &end);
	spin_unlock_bh(&tag->lock);
	kbc_slot_act(slot, next);
	kbc_slot_finish(&end);
}

/* The check needs no lock: only this function changes a request in KBC_STUCK. */
static void kbc_tag_release(struct kbc_queue *kq, struct kbc_tag *tag)
{
	struct kbc_slot *slot = tag->slot;
	struct kbc_end end = {};
	int ret;

	if (!slot || slot->phase != KBC_STUCK)
		return;
	ret = fi_close(&tag->mr->fid);
	WARN_ONCE(ret, "kofiblk: closing a region failed: %d\n", ret);
	tag->mr = NULL;
	atomic_inc(&kq->busy);
	spin_lock_bh(&tag->lock);
	slot->registered = false;
	kbc_slot_enter(slot, KBC_END);
	kbc_slot_look(slot, &end);
	spin_unlock_bh(&tag->lock);
	kbc_slot_finish(&end);
}

static bool kbc_requests_idle(struct kbc_disk *d)
{
	unsigned int i;

	for (i = 0; i < d->nqueues; i++)
		/* Pairs with atomic_dec_and_test(): these requests are KBC_STUCK or over. */
		if (atomic_read_acquire(&d->queues[i].busy))
			return false;
	return true;
}

/*
 * Return all requests to the block layer. The session is over: no request starts and no reply is
 * handled any more. If the server posts no receives, sends may never complete. After KBC_END_S the
 * client closes the device, which ends all operations on it.
 */
void kbc_requests_abort(struct kbc_disk *d)
{
	kbc_each_tag(d, kbc_tag_abort);
	if (!wait_event_idle_timeout(d->wait, kbc_requests_idle(d),
				     KBC_END_S * HZ)) {
		kbc_err(d, "operations didn't complete after the session's end, closing device %s\n",
			d->fabric->info->domain_attr->name);
		kb_fabric_lost(d->fabric);
		wait_event_idle(d->wait, kbc_requests_idle(d));
	}
	kbc_each_tag(d, kbc_tag_release);
}

void kbc_slot_init(struct kbc_slot *slot, struct kbc_queue *kq)
{
	slot->kq = kq;
	slot->phase = KBC_IDLE;
	slot->region.post = kbc_region_post;
	slot->region.done = kbc_region_done;
	slot->send.post = kbc_send_post;
	slot->send.done = kbc_send_done;
	slot->fetch.op.done = kbc_fetch_done;
	slot->thank.post = kbc_thank_post;
	slot->thank.done = kbc_thank_done;
}
