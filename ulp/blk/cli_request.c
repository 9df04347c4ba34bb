// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * State machine of a request.
 *
 *	REGISTER --> REPLY --> INVALIDATE --> END
 *
 * are the phases of a read or write whose memory the server accesses. A request without data, or
 * with inline data in the command or reply, goes from REPLY to END. On a device without RDMA write,
 * the phases of a read without inline data are
 *
 *	REPLY --> FETCH --> REPLY --> END
 *
 * The server may reply before the command's send has completed. A request is completed to the block
 * layer only when all its operations have completed.
 *
 * When the session ends, requests that wait for the server are aborted: their memory is
 * invalidated, and they are requeued in the block layer, to be sent again in the next session. If
 * the invalidation fails, the device and the region are closed before the request is completed, so
 * that the server can't reach memory that is reused. Closing the region alone doesn't help, because
 * the device has refused to destroy it, too.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <linux/slab.h>
#include "cli.h"
#include "cli_trace.h"
#include "checksum.h"

/* Delay before a request with a wrong checksum is sent again. */
#define KBC_MISMATCH_MS	100
/* Time for the device to send what it has, before messages are set aside. */
#define KBC_LEAVE_MS	1000

/* The server may reply by immediate data if it granted exactly KBC_CAPS_IMM_ON of KBC_CAPS_IMM. */
#define KBC_CAPS_IMM		(KOFIBLK_CAP_IMM | KOFIBLK_CAP_RDMA_WRITE | KOFIBLK_CAP_CHECKSUM)
#define KBC_CAPS_IMM_ON		(KOFIBLK_CAP_IMM | KOFIBLK_CAP_RDMA_WRITE)

/* The number of the tag in immediate data of kbc_imm(). */
#define KBC_IMM_TAG(data)	((data) >> 20 & (KOFIBLK_DEPTH_MAX - 1))

/* --- checksums: added to commands and written data, verified for read data --- */

static void kbc_sum_count(struct kbc_disk *d, const struct request *rq, u8 op, const char *side)
{
	kbc_inc(d, checksum_errors);
	trace_kofiblk_checksum(d->name, op, blk_rq_pos(rq), blk_rq_bytes(rq));
	pr_err_ratelimited("%s: a %s of %u bytes at sector %llu reached the %s with a wrong checksum\n",
			   d->name, kofiblk_op_name(op), blk_rq_bytes(rq),
			   (u64)blk_rq_pos(rq), side);
}

static u32 kbc_sum_data(u32 sum, struct request *rq)
{
	struct req_iterator iter;
	struct bio_vec bv;

	rq_for_each_bvec(bv, rq, iter)
		sum = kofiblk_sum_bvecs(sum, &bv, bv.bv_len);
	return sum;
}

/* Add the checksum to a command that lacks only the checksum, the address and the key. */
static void kbc_sum_command(const struct kbc_disk *d, struct request *rq,
			    struct kofiblk_cmd_msg *msg)
{
	if (!(d->session.limits.caps & KOFIBLK_CAP_CHECKSUM))
		return;
	msg->flags |= KOFIBLK_CMD_SUM;
	kbc_slot(rq)->seed = kofiblk_sum_cmd(msg);
	msg->sum = kbc_slot(rq)->seed;
	if (msg->op == KOFIBLK_OP_WRITE)
		msg->sum = kbc_sum_data(msg->sum, rq);
}

/* Return: whether a checksum is missing or unexpected, which violates the protocol. */
static bool kbc_sum_missing(const struct kbc_disk *d, const struct kofiblk_reply_msg *msg)
{
	bool due = d->session.limits.caps & KOFIBLK_CAP_CHECKSUM && msg->op == KOFIBLK_OP_READ &&
		   msg->status == KULP_STS_OK && !(msg->flags & KOFIBLK_REPLY_READY);

	return due != !!(msg->flags & KOFIBLK_REPLY_SUM);
}

/* Return: whether the server refused a wrong checksum, so the request must be sent again. */
static bool kbc_sum_refused(struct kbc_disk *d, const struct request *rq,
			    const struct kofiblk_reply_msg *msg)
{
	if (msg->status != KULP_STS_PROTECTION || !(d->session.limits.caps & KOFIBLK_CAP_CHECKSUM))
		return false;
	/* For a read, the checksum of the command was wrong. */
	kbc_sum_count(d, rq, msg->op, "server");
	return true;
}

/* Check data that was read. The server can't write to the memory any more. */
static bool kbc_sum_wrong(struct kbc_disk *d, struct request *rq)
{
	if (!(d->session.limits.caps & KOFIBLK_CAP_CHECKSUM) || req_op(rq) != REQ_OP_READ ||
	    likely(kbc_sum_data(kbc_slot(rq)->seed, rq) == kbc_slot(rq)->sum))
		return false;
	kbc_sum_count(d, rq, KOFIBLK_OP_READ, "client");
	return true;
}

/* --- commands --- */

static bool kbc_op_moves(u8 op)
{
	return op == KOFIBLK_OP_READ || op == KOFIBLK_OP_WRITE;
}

static bool kbc_op_allowed(const struct kbc_disk *d, u8 op)
{
	return op && (op != KOFIBLK_OP_DISCARD || d->session.limits.caps & KOFIBLK_CAP_DISCARD) &&
	       (op != KOFIBLK_OP_WRITE_ZEROES || d->session.limits.caps & KOFIBLK_CAP_WRITE_ZEROES);
}

static u16 kbc_cmd_flags(const struct kbc_slot *slot, u8 op)
{
	const struct request *rq = kbc_rq(slot);
	u16 flags = slot->inl ? KOFIBLK_CMD_INLINE : slot->imm ? KOFIBLK_CMD_IMM : 0;

	if ((op == KOFIBLK_OP_WRITE || op == KOFIBLK_OP_WRITE_ZEROES) && rq->cmd_flags & REQ_FUA)
		flags |= KOFIBLK_CMD_FUA;
	if (op == KOFIBLK_OP_WRITE_ZEROES && rq->cmd_flags & REQ_NOUNMAP)
		flags |= KOFIBLK_CMD_NOUNMAP;
	return flags;
}

static bool kbc_imm_will_do(const struct kbc_slot *slot)
{
	const struct kbc_queue *kq = slot->kq;

	return req_op(kbc_rq(slot)) == REQ_OP_READ && kq->user >= 0 &&
	       (kq->disk->session.limits.caps & KBC_CAPS_IMM) == KBC_CAPS_IMM_ON;
}

/*
 * Immediate data for the active request of a tag: the queue's user number, the number of the tag
 * (KBC_IMM_TAG()), and 20 bits of its generation, offset by a random salt that others can't guess.
 */
static u32 kbc_imm(const struct kbc_queue *kq, const struct kbc_tag *tag)
{
	return KULP_IMM_USER(kq->user) | (u32)(tag - kq->tags) << 20 |
	       (((u32)tag->gen + kq->salt) & GENMASK(19, 0));
}

/* Build the request's command, or with @thank the FETCHED command. Return: its message. */
static struct kbc_message *kbc_command(struct kbc_slot *slot, bool thank)
{
	const struct kbc_disk *d = slot->kq->disk;
	struct request *rq = kbc_rq(slot);
	u8 op = kbc_opcode(rq);
	struct kbc_message *m = thank ? slot->thank : slot->send;
	struct kofiblk_cmd_msg msg = {
		.op		= thank ? KOFIBLK_OP_FETCHED : op,
		.queue		= slot->kq->index,
		.session	= d->session.id,
		.id		= KOFIBLK_ID(rq->tag, slot->tag->gen),
	};
	size_t len, keylen = sizeof(msg.key);

	if (!thank) {
		msg.flags = kbc_cmd_flags(slot, op);
		if (op != KOFIBLK_OP_FLUSH) {
			msg.offset = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
			msg.bytes = blk_rq_bytes(rq);
		}
		kbc_sum_command(d, rq, &msg);
	}
	if (slot->registered)
		fi_mr_raw_attr(slot->tag->mr, &msg.addr, (u8 *)&msg.key, &keylen, 0);
	if (msg.flags & KOFIBLK_CMD_IMM)
		msg.imm = kbc_imm(slot->kq, slot->tag);
	trace_kofiblk_command(d->name, &msg);
	len = kofiblk_build_cmd(&m->msg, &msg);
	kofiblk_cmd_sign(&m->msg.cmd, len, slot->kq->cmd_nonce, &d->session.keys);
	if (!thank)
		bvec_set_page(&slot->bvecs[0], virt_to_page(&m->msg), len,
			      offset_in_page(&m->msg));
	/* From here on the message may be set aside, and the request may end. */
	WRITE_ONCE(m->owner, slot);
	return m;
}

/* --- changes of phase --- */

/* Note a failed flush; or a write before it is completed, because later flushes must cover it. */
static void kbc_slot_note(struct kbc_slot *slot)
{
	bool done = !slot->aborted && slot->status == BLK_STS_OK;
	const struct request *rq = kbc_rq(slot);
	struct kbc_disk *d = slot->kq->disk;
	u8 op = kbc_opcode(rq);

	if (op == KOFIBLK_OP_FLUSH && !done)
		kbc_epoch_flush_failed(&d->epoch, slot->unflushed);
	else if ((op == KOFIBLK_OP_WRITE || op == KOFIBLK_OP_WRITE_ZEROES) && done &&
		 !(rq->cmd_flags & REQ_FUA) && d->session.geometry.flags & KOFIBLK_DISK_WRITE_CACHE)
		kbc_epoch_wrote(&d->epoch);
}

/*
 * Readahead isn't sent again. A request of merged bios has the flags of its first one, and the
 * others may be ordinary reads.
 */
static bool kbc_noretry(const struct request *rq)
{
	return blk_noretry_request(rq) && !(rq->rq_flags & RQF_MIXED_MERGE);
}

/* Return: ms to wait before a failed request is sent again, or 0 if it isn't. */
static unsigned int kbc_request_wait(struct kbc_slot *slot)
{
	if (!slot->shortage)
		slot->short_since = 0;
	else if (!slot->short_since)
		slot->short_since = jiffies ?: 1;
	if (slot->shortage)
		return kbc_shortage_wait(jiffies_to_msecs(jiffies - slot->short_since));
	if (!slot->mismatch)
		return 0;
	kbc_fault(slot);
	return KBC_MISMATCH_MS;
}

static void kbc_request_end(struct kbc_slot *slot)
{
	struct kbc_disk *d = slot->kq->disk;
	struct request *rq = kbc_rq(slot);
	unsigned int ms;

	if (!slot->aborted && slot->status == BLK_STS_OK && kbc_sum_wrong(d, rq)) {
		slot->mismatch = true;
		slot->status = BLK_STS_PROTECTION;
	}
	trace_kofiblk_end(d->name, kbc_opcode(rq), blk_rq_pos(rq), slot->aborted,
			  blk_status_to_errno(slot->status));
	ms = kbc_request_wait(slot);
	if ((slot->aborted || ms) && !kbc_noretry(rq) && !READ_ONCE(d->gate.failing) &&
	    READ_ONCE(slot->faults) <= KBC_FAULTS_MAX) {
		kbc_inc(d, replays);
		kbc_requeue(d, rq, ms);
		return;
	}
	if (slot->aborted) {
		kbc_inc(d, failures);
		slot->status = BLK_STS_TRANSPORT;
	}
	kbc_complete(rq, slot->status);
}

/*
 * Submit the operation that a phase begins with, without the lock. In other phases the request may
 * have been completed, so don't touch @slot.
 */
static void kbc_slot_act(struct kbc_slot *slot, enum kbc_phase phase)
{
	struct kulp_queue *q;

	switch (phase) {
	case KBC_REGISTER:
	case KBC_INVALIDATE:
		slot->region.lane = phase == KBC_REGISTER ? KULP_LANE_REG : KULP_LANE_INVAL;
		kulp_submit(slot->kq->q, &slot->region);
		break;
	case KBC_REPLY:
		/* Before kbc_command(), after which the request may end. */
		q = slot->kq->q;
		kulp_submit(q, &kbc_command(slot, slot->fetched)->op);
		break;
	case KBC_FETCH:
		kbc_memory_iter(slot->bio, &slot->fetch.iter);
		kulp_rma_submit(slot->kq->q, &slot->fetch);
		break;
	default:
		break;
	}
}

/*
 * Leave the current phase for @next, or stay in it for KBC_IDLE, and release the lock. Then begin
 * the operation of the phase; or complete the request, if all its operations have completed. No tag
 * has the request any more then, so kbc_request_end() needs no lock. Called once after each change
 * of the request. Without a change, KBC_IDLE would drop kbc_queue.busy again for a request that is
 * KBC_STUCK.
 */
static void kbc_slot_go(struct kbc_slot *slot, enum kbc_phase next)
	__releases(&slot->tag->lock)
{
	struct kbc_tag *tag = slot->tag;
	struct kbc_queue *kq = slot->kq;
	bool idle, over;

	lockdep_assert_held(&tag->lock);
	if (next != KBC_IDLE) {
		WRITE_ONCE(slot->phase, next);
		if (next < KBC_STUCK)
			slot->ops++;
	}
	idle = !slot->ops && slot->phase >= KBC_STUCK;
	over = idle && slot->phase == KBC_END;
	if (over) {
		kbc_slot_note(slot);
		tag->slot = NULL;
		WRITE_ONCE(slot->phase, KBC_IDLE);
	}
	spin_unlock_bh(&tag->lock);
	if (over)
		kbc_request_end(slot);
	if (idle)
		kbc_busy_put(kq);
	else
		kbc_slot_act(slot, next);
}

/*
 * Likewise, in a handler of the queue. A request with its reply, whose messages aren't known to be
 * sent, waits for them.
 */
static void kbc_slot_next(struct kulp_queue *q, struct kbc_slot *slot, enum kbc_phase next)
	__releases(&slot->tag->lock)
{
	const bool sends = next == KBC_END && slot->ops;

	kbc_slot_go(slot, next);
	if (unlikely(sends))
		kulp_expedite(q);
}

/* --- registration --- */

static int kbc_region_post(struct kulp_queue *q, struct kulp_op *op)
{
	struct kbc_slot *slot = container_of(op, struct kbc_slot, region);

	if (READ_ONCE(slot->phase) == KBC_INVALIDATE)
		return fi_mr_post_inval(slot->tag->mr, FI_COMPLETION, op);
	if (READ_ONCE(slot->aborted))
		return -ECANCELED;
	return kbc_memory_register(slot, op);
}

static enum kbc_phase kbc_registered(struct kbc_slot *slot, int err)
{
	lockdep_assert_held(&slot->tag->lock);
	if (!err) {
		slot->registered = true;
		kbc_inc(slot->kq->disk, registrations);
		return slot->aborted ? KBC_INVALIDATE : KBC_REPLY;
	}
	/* These errors are the memory's, others are the device's. */
	if (err == -EINVAL || err == -EMSGSIZE || err == -EOPNOTSUPP) {
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

static void kbc_region_done(struct kulp_queue *q, struct kulp_op *op, int err, size_t len)
{
	struct kbc_slot *slot = container_of(op, struct kbc_slot, region);

	spin_lock_bh(&slot->tag->lock);
	slot->ops--;
	kbc_slot_next(q, slot, slot->phase == KBC_REGISTER ? kbc_registered(slot, err) :
							     kbc_invalidated(slot, err));
}

/* --- sends --- */

/* Return: whether the command's message has data of the request. */
static bool kbc_sends_data(const struct kbc_slot *slot)
{
	return slot->inl && rq_data_dir(kbc_rq(slot)) == WRITE;
}

static int kbc_send_post(struct kulp_queue *q, struct kulp_op *op)
{
	struct kbc_message *m = container_of(op, struct kbc_message, op);
	struct kbc_slot *slot = READ_ONCE(m->owner);
	struct fi_msg msg = { .context = op };

	if (!slot || READ_ONCE(slot->aborted))
		return -ECANCELED;
	WRITE_ONCE(slot->posted, true);
	if (!kbc_sends_data(slot))
		return fi_send(q->ep, &m->msg, slot->bvecs[0].bv_len, NULL, slot->kq->peer, op);
	msg.addr = slot->kq->peer;
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, slot->bvecs, 1 + slot->nbvec,
		      slot->bvecs[0].bv_len + blk_rq_bytes(kbc_rq(slot)));
	return fi_sendmsg(q->ep, &msg, 0);
}

static int kbc_thank_post(struct kulp_queue *q, struct kulp_op *op)
{
	struct kbc_message *m = container_of(op, struct kbc_message, op);
	const struct kbc_slot *slot = READ_ONCE(m->owner);

	if (!slot || READ_ONCE(slot->aborted))
		return -ECANCELED;
	return fi_send(q->ep, &m->msg, sizeof(struct kofiblk_cmd), NULL, slot->kq->peer, op);
}

/* After an error the server may or may not have received the command, so end the session. */
static void kbc_sent(struct kulp_queue *q, struct kulp_op *op, int err, size_t len)
{
	struct kbc_slot *slot = kbc_message_done(op);

	if (!slot)
		return;
	spin_lock_bh(&slot->tag->lock);
	slot->ops--;
	if (err && !slot->aborted) {
		kbc_fault(slot);
		kbc_session_fail(slot->kq->disk, err);
	}
	kbc_slot_go(slot, KBC_IDLE);
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

static void kbc_fetch_done(struct kulp_queue *q, struct kulp_op *op, int err, size_t len)
{
	struct kbc_slot *slot = container_of(op, struct kbc_slot, fetch.op);

	spin_lock_bh(&slot->tag->lock);
	slot->ops--;
	kbc_slot_go(slot, kbc_fetched(slot, err));
}

/* --- replies --- */

/* Return: what is wrong with the reply, or NULL. */
static const char *kbc_reply_fault(const struct kbc_slot *slot, const struct kofiblk_reply_msg *msg)
{
	const struct kbc_disk *d = slot->kq->disk;
	u8 op = kbc_opcode(kbc_rq(slot));
	bool inl = op == KOFIBLK_OP_READ && slot->inl;
	bool fetches = op == KOFIBLK_OP_READ && !inl &&
		       !(d->session.limits.caps & KOFIBLK_CAP_RDMA_WRITE);

	if (msg->op != op)
		return "reply to a different command";
	if (msg->flags & KOFIBLK_REPLY_INLINE && !inl)
		return "unexpected inline data";
	if (msg->flags & KOFIBLK_REPLY_READY && !fetches)
		return "unexpected offer of data";
	if (kbc_sum_missing(d, msg))
		return "checksum missing or not negotiated";
	if (msg->status != KULP_STS_OK)
		return NULL;
	if (kbc_op_moves(op) && msg->bytes != blk_rq_bytes(kbc_rq(slot)))
		return "reply with a wrong number of bytes";
	if ((fetches && !slot->fetched && !(msg->flags & KOFIBLK_REPLY_READY)) ||
	    (inl && !msg->data))
		return "reply without data";
	return NULL;
}

static enum kbc_phase kbc_reply_taken(struct kbc_slot *slot, const struct kofiblk_reply_msg *msg)
{
	struct kbc_disk *d = slot->kq->disk;

	lockdep_assert_held(&slot->tag->lock);
	if (msg->flags & KOFIBLK_REPLY_READY) {
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
	slot->shortage = kbc_transient(msg->status);
	slot->mismatch = kbc_sum_refused(d, kbc_rq(slot), msg);
	slot->status = slot->shortage ? BLK_STS_IOERR :
		       errno_to_blk_status(kulp_status_errno(msg->status));
	if (msg->status != KULP_STS_OK)
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

/* Return: whether the active request of a tag, if any, accepts a reply. */
static bool kbc_waits(const struct kbc_slot *slot)
{
	return slot && slot->phase == KBC_REPLY && READ_ONCE(slot->posted);
}

/*
 * Return: whether a request waits for this reply. Another one is a copy of an earlier reply, which
 * anyone who listens can send. An offer of data comes once.
 */
static bool kbc_awaits(const struct kbc_tag *tag, const struct kofiblk_reply_msg *msg)
{
	return kbc_waits(tag->slot) &&
	       KOFIBLK_ID_GEN(msg->id) == KOFIBLK_ID_GEN(KOFIBLK_ID(0, tag->gen)) &&
	       !(msg->flags & KOFIBLK_REPLY_READY && tag->slot->fetched);
}

static void kbc_reply(struct kbc_queue *kq, const struct kofiblk_reply_msg *msg)
{
	struct kbc_tag *tag = &kq->tags[KOFIBLK_ID_SLOT(msg->id)];
	const char *fault = NULL;
	struct kbc_slot *slot;

	spin_lock_bh(&tag->lock);
	slot = tag->slot;
	if (kbc_awaits(tag, msg)) {
		fault = kbc_reply_fault(slot, msg);
		if (!fault) {
			kbc_slot_next(kq->q, slot, kbc_reply_taken(slot, msg));
			return;
		}
	}
	spin_unlock_bh(&tag->lock);
	if (fault)
		kbc_refuse(kq->disk, fault);
	else
		kbc_inc(kq->disk, stale);
}

/* Handle immediate data, the reply to a read. Any peer that reaches the endpoint may send it. */
void kbc_written(void *user, u32 data)
{
	struct kbc_queue *kq = user;
	struct kbc_disk *d = kq->disk;
	/* Pairs with kbc_queue_alloc(). */
	struct kbc_tag *tag = smp_load_acquire(&kq->tags);
	struct kofiblk_reply_msg msg = { .op = KOFIBLK_OP_READ, .queue = kq->index };

	if (tag && KBC_IMM_TAG(data) < d->made.depth) {
		tag += KBC_IMM_TAG(data);
		spin_lock_bh(&tag->lock);
		if (kbc_waits(tag->slot) && tag->slot->imm && data == kbc_imm(kq, tag)) {
			msg.id = KOFIBLK_ID(KBC_IMM_TAG(data), tag->gen);
			trace_kofiblk_reply(d->name, &msg);
			kbc_inc(d, immediates);
			kbc_slot_go(tag->slot, KBC_INVALIDATE);
			return;
		}
		spin_unlock_bh(&tag->lock);
	}
	kbc_inc(d, stale);
	trace_kofiblk_stray_imm(d->name, data);
}

static void kbc_alive_answered(struct kbc_disk *d, u64 gen)
{
	const u64 sent = READ_ONCE(d->alive.gen);

	/* Only one keep-alive message is outstanding, so ignore other generations, and copies. */
	if (gen == KOFIBLK_ID_GEN(KOFIBLK_ID(0, sent)) && READ_ONCE(d->alive.seen) != sent)
		WRITE_ONCE(d->alive.seen, sent);
	else
		kbc_inc(d, stale);
}

static void kbc_proved(struct kbc_queue *kq, u64 nonce)
{
	if (!kq->cmd_nonce)
		/* Pairs with kbc_all_proved(). */
		smp_store_release(&kq->cmd_nonce, nonce);
	wake_up(&kq->disk->wait);
}

/* The tag identifies the sender of a message. Anyone who listens knows the session's ID. */
void kbc_received(struct kulp_queue *q, void *buf, size_t len)
{
	struct kofiblk_reply_msg msg;
	struct kbc_queue *kq;
	struct kbc_disk *d;

	if (kofiblk_parse_reply(buf, len, &msg)) {
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
	if (!kq || !kofiblk_reply_signed(buf, &msg, kq->reply_nonce, &d->session.keys))
		kbc_inc(d, forged);
	else if (kq->q != q)
		kbc_inc(d, stale);
	else if (msg.op == KOFIBLK_OP_PROVE)
		kbc_proved(kq, msg.key);
	else if (msg.op == KOFIBLK_OP_KEEP_ALIVE)
		kbc_alive_answered(d, KOFIBLK_ID_GEN(msg.id));
	else if (KOFIBLK_ID_SLOT(msg.id) >= d->made.depth)
		kbc_refuse(d, "reply with a slot out of range");
	else
		kbc_reply(kq, &msg);
unlock:
	rcu_read_unlock();
}

/* --- start and abort --- */

static bool kbc_fits_inline(struct kbc_slot *slot, const struct request *rq)
{
	const struct kofiblk_limits *limits = &slot->kq->disk->session.limits;

	if (req_op(rq) == REQ_OP_READ)
		return blk_rq_bytes(rq) <= limits->inline_read;
	return req_op(rq) == REQ_OP_WRITE && blk_rq_bytes(rq) <= limits->inline_max &&
	       kbc_memory_carried(slot);
}

/* Return: the first phase of a request. */
static enum kbc_phase kbc_slot_first(struct kbc_slot *slot, u8 op)
{
	if (slot->inl || !kbc_op_moves(op))
		return KBC_REPLY;
	if (op == KOFIBLK_OP_READ &&
	    !(slot->kq->disk->session.limits.caps & KOFIBLK_CAP_RDMA_WRITE))
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
	slot->mismatch = false;
	slot->shortage = false;
	slot->posted = false;
	slot->fetched = false;
	slot->inl = kbc_fits_inline(slot, rq);
	slot->imm = !slot->inl && kbc_imm_will_do(slot);
	slot->unflushed = req_op(rq) == REQ_OP_FLUSH && kbc_epoch_flush(&slot->kq->disk->epoch);
}

/* Return: whether a request that makes data stable must fail because writes were lost. */
static bool kbc_request_lost(struct kbc_disk *d, const struct request *rq, u8 op)
{
	bool fua = op != KOFIBLK_OP_READ && rq->cmd_flags & REQ_FUA;

	if (!kbc_epoch_fails(&d->epoch, op == KOFIBLK_OP_FLUSH, fua))
		return false;
	pr_err_ratelimited("%s: failing a %s, because earlier writes may be lost; once their data was restored, write 0 to kofiblk/lost\n",
			   d->name, op == KOFIBLK_OP_FLUSH ? "flush" : "write with FUA");
	return true;
}

blk_status_t kbc_request_start(struct kbc_queue *kq, struct request *rq)
{
	struct kbc_tag *tag = &kq->tags[rq->tag];
	struct kbc_slot *slot = kbc_slot(rq);
	struct kbc_disk *d = kq->disk;
	u8 op = kbc_opcode(rq);

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
	if (slot->inl && op == KOFIBLK_OP_WRITE)
		kbc_inc(d, inlined);
	kbc_slot_go(slot, kbc_slot_first(slot, op));
	return BLK_STS_OK;
}

static void kbc_tag_abort(struct kbc_queue *kq, struct kbc_tag *tag)
{
	struct kbc_slot *slot;

	spin_lock_bh(&tag->lock);
	slot = tag->slot;
	if (slot && slot->phase == KBC_REPLY) {
		tag->told |= slot->registered;
		WRITE_ONCE(slot->aborted, true);
		kbc_slot_go(slot, slot->registered ? KBC_INVALIDATE : KBC_END);
		return;
	}
	/* The completion of the operation sees @aborted. */
	if (slot && (slot->phase == KBC_REGISTER || slot->phase == KBC_FETCH))
		WRITE_ONCE(slot->aborted, true);
	spin_unlock_bh(&tag->lock);
}

/* The check needs no lock: only this function changes a request in KBC_STUCK. */
static void kbc_tag_release(struct kbc_queue *kq, struct kbc_tag *tag)
{
	struct kbc_slot *slot = tag->slot;

	if (!slot || slot->phase != KBC_STUCK)
		return;
	kbc_region_free(kq, tag);
	atomic_inc(&kq->busy);
	spin_lock_bh(&tag->lock);
	slot->registered = false;
	kbc_slot_go(slot, KBC_END);
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

static struct kbc_message *kbc_send_new(void)
{
	return kbc_message_new(kbc_send_post, kbc_sent);
}

static struct kbc_message *kbc_thank_new(void)
{
	return kbc_message_new(kbc_thank_post, kbc_sent);
}

/* Return: whether messages that can be set aside are all that a request waits for. */
static bool kbc_slot_sends(const struct kbc_slot *slot)
{
	return slot && slot->phase >= KBC_STUCK && slot->ops && !kbc_sends_data(slot);
}

/*
 * Set aside the messages of a request, so that it ends, or kbc_tag_release() ends it. That costs
 * nothing of the device but what they have of it already, so there is no limit.
 */
static void kbc_tag_leave(struct kbc_queue *kq, struct kbc_tag *tag)
{
	struct kbc_message *send, *thank;
	struct kbc_slot *slot;

	if (!kbc_slot_sends(READ_ONCE(tag->slot)))
		return;
	send = kbc_send_new();
	thank = kbc_thank_new();
	spin_lock_bh(&tag->lock);
	slot = tag->slot;
	if (!send || !thank || !kbc_slot_sends(slot)) {
		spin_unlock_bh(&tag->lock);
	} else {
		if (kbc_message_leave(slot->send, kq)) {
			slot->ops--;
			slot->send = send;
			send = NULL;
		}
		if (kbc_message_leave(slot->thank, kq)) {
			slot->ops--;
			slot->thank = thank;
			thank = NULL;
		}
		kbc_slot_go(slot, KBC_IDLE);
	}
	kfree(send);
	kfree(thank);
}

/*
 * Return: whether to wait on for operations since @began. To close the device would end the
 * sessions of all its disks. An administrator who removes this one accepts that.
 */
static bool kbc_requests_wait(const struct kbc_disk *d, unsigned long began)
{
	if (time_before(jiffies, began + KBC_END_S * HZ))
		return true;
	return READ_ONCE(d->state) != KBC_DELETING &&
	       kulp_fabric_moves(d->fabric, jiffies - KBC_END_S * HZ) &&
	       time_before(jiffies, began + KBC_PEER_S * HZ);
}

/* Return: whether memory couldn't be invalidated. All requests that haven't ended are KBC_STUCK. */
static bool kbc_requests_stuck(const struct kbc_disk *d)
{
	unsigned int i, j;

	for (i = 0; i < d->nqueues; i++)
		for (j = 0; d->queues[i].tags && j < d->made.depth; j++)
			if (READ_ONCE(d->queues[i].tags[j].slot))
				return true;
	return false;
}

/* Requests end when their messages do, for which nobody has waited. */
static void kbc_sends_expedite(struct kbc_disk *d)
{
	unsigned int i;

	for (i = 0; i < d->nqueues; i++)
		if (d->queues[i].q)
			kulp_expedite(d->queues[i].q);
}

/*
 * Return all requests to the block layer. The session is over: no request starts and no reply is
 * handled any more. If the server is dead, the device may not complete messages and reads for long.
 * Messages are set aside, but the device must not access memory of requests that have ended. So in
 * the end the client closes the device, which ends all operations on it.
 */
void kbc_requests_abort(struct kbc_disk *d)
{
	unsigned long began = jiffies;
	bool left = false, lost = false;

	kbc_each_tag(d, kbc_tag_abort);
	kbc_sends_expedite(d);
	while (!kbc_wait(d, kbc_requests_idle, msecs_to_jiffies(KBC_LEAVE_MS), KBC_LOOK_MS)) {
		/* Nothing is being posted: it was before kbc_unpublish(), or is aborted. */
		synchronize_rcu();
		kbc_signals_leave(d);
		kbc_each_tag(d, kbc_tag_leave);
		left = true;
		if (lost || kbc_requests_wait(d, began))
			continue;
		kbc_err(d, "operations didn't complete after the session's end, closing device %s\n",
			d->fabric->info->domain_attr->name);
		kulp_fabric_lost(d->fabric);
		lost = true;
	}
	/* A message may have begun to be posted just before it was set aside: it names its slot. */
	if (left)
		synchronize_rcu();
	if (kbc_requests_stuck(d)) {
		if (!READ_ONCE(d->fabric->gone))
			kbc_err(d, "device %s doesn't end the server's access to memory, closing it\n",
				d->fabric->info->domain_attr->name);
		kulp_fabric_end(d->fabric);
	}
	kbc_each_tag(d, kbc_tag_release);
}

int kbc_slot_init(struct kbc_slot *slot, struct kbc_queue *kq)
{
	slot->kq = kq;
	slot->phase = KBC_IDLE;
	slot->region.post = kbc_region_post;
	slot->region.done = kbc_region_done;
	slot->fetch.op.done = kbc_fetch_done;
	slot->send = kbc_send_new();
	slot->thank = kbc_thank_new();
	if (slot->send && slot->thank)
		return 0;
	/* The block layer doesn't exit a request that it couldn't initialize. */
	kbc_slot_exit(slot);
	return -ENOMEM;
}

void kbc_slot_exit(struct kbc_slot *slot)
{
	kfree(slot->send);
	kfree(slot->thank);
	slot->send = NULL;
	slot->thank = NULL;
}
