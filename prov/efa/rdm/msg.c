// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Arrival of packets. The sender of a packet is identified first; a packet of an unknown sender
 * waits until there is an address handle. Then early.c checks the packet's turn, and the row of
 * its type handles it.
 *
 * The first packet of a message looks for a receive. If there is none, the packet is kept, and so
 * are the other packets of the message, until a matching receive is posted. A message that has a
 * receive is an operation, which later packets of the message find by its number.
 */
#include "../trace.h"
#include "fast.h"
#include "ident.h"
#include "local.h"
#include "msg.h"
#include "strange.h"

/* --- messages that have a receive --- */

/**
 * kefa_rop_put() - copy data of a message into its receive, as far as it fits
 * @rdm: the endpoint
 * @rop: the receive
 * @data: data of the message
 * @off: offset of the data in the message
 * @len: length of the data, at most the bytes of the message that haven't arrived
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rop_put(struct kefa_rdm *rdm, struct kefa_rop *rop, const void *data, u64 off, u32 len)
{
	rop->done += len;
	rdm->ep.stats.rx_bytes += len;
	if (off >= rop->buf.len || rop->state == KEFA_ROP_SINK)
		return;
	len = min_t(u64, len, rop->buf.len - off);
	if (likely(!rop->buf.segs))
		memcpy(rop->buf.base + off, data, len);
	else
		kefa_eager_scatter(rop, data, off, len);
}

/**
 * kefa_rop_copy() - copy a packet's data into the receive of its message, as far as it fits
 * @rdm: the endpoint
 * @rop: the receive
 * @pkt: the packet; its data is at most the bytes of the message that haven't arrived
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rop_copy(struct kefa_rdm *rdm, struct kefa_rop *rop, const struct kefa_pkt *pkt)
{
	kefa_rop_put(rdm, rop, pkt->data, pkt->seg_offset, pkt->data_len);
}

/*
 * Return: number of answers that are due to a peer; for NULL, to all peers. Each of them keeps an
 * operation in use. They are counted each time, because this is called rarely.
 */
static u32 kefa_rdm_owed(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	const struct kefa_rop *rop;
	u32 i, n = 0;

	for (i = 0; i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		n += rop->state == KEFA_ROP_OWES && rop->owes && !kefa_rpeer_dead(rop->peer) &&
		     (!peer || rop->peer == peer);
	}
	return n;
}

/* Return: the peer that isn't ready for too many answers, which may be another one; or NULL. */
static struct kefa_rpeer *kefa_rdm_overdue(const struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	u32 i, n, most = kefa_rdm_owed(rdm, peer);
	struct kefa_rpeer *worst = peer;
	const struct kefa_rop *rop;

	if (most > KEFA_OWED_MAX)
		return peer;
	if (kefa_rdm_owed(rdm, NULL) <= KEFA_RDM_SPARE_OPS)
		return NULL;
	for (i = 0; i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (rop->state != KEFA_ROP_OWES || !rop->owes || rop->peer == worst ||
		    !rop->peer->backoff.waiting)
			continue;
		n = kefa_rdm_owed(rdm, rop->peer);
		if (n <= most)
			continue;
		most = n;
		worst = rop->peer;
	}
	return worst;
}

/**
 * kefa_rdm_overdue_kill() - give up a peer that isn't ready for too many answers
 * @rdm: the endpoint
 * @peer: the peer, to which another answer is due. If too many are due to all peers, the one with
 *	most of them is given up
 *
 * Context: Under kefa_ep.lock. The pump is due.
 */
void kefa_rdm_overdue_kill(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	struct kefa_rpeer *worst;

	if (likely(!peer->backoff.waiting))
		return;
	worst = kefa_rdm_overdue(rdm, peer);
	if (!worst)
		return;
	rdm->stats.cut++;
	kefa_rdm_kill(rdm, worst, ENOBUFS, 0);
}

/* Return: the answer that the sender of the message waits for, or 0. */
static u8 kefa_rop_answer(const struct kefa_rop *rop)
{
	/* If the requests had the whole message, the sender's operation has ended with them. */
	if (unlikely(kefa_row_of(rop->type)->flags & KEFA_ROW_READ))
		return rop->runt < rop->total ? KEFA_ROP_OWES_EOR : 0;
	return rop->flags & KEFA_ROP_DC ? KEFA_ROP_OWES_RECEIPT : 0;
}

/**
 * kefa_rop_whole() - complete a receive whose message has arrived entirely
 * @rdm: the endpoint
 * @rop: the receive
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rop_whole(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_rpeer *peer = rop->peer;

	lockdep_assert_held(&rdm->ep.lock);
	/* A dishonest peer has sent the data before its CTS, which isn't due any more. */
	if (unlikely(rop->owes)) {
		list_del_init(&rop->link);
		rop->owes = 0;
	}
	kefa_rop_waited(rdm, rop);
	kefa_index_del(&rdm->msgs, &rop->msg);
	kefa_rdm_tell_rx(rdm, rop, 0, 0);
	if (kefa_rop_answer(rop) && !kefa_rpeer_dead(peer)) {
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_OWES);
		kefa_rdm_owe(rdm, rop, kefa_rop_answer(rop));
		kefa_rdm_overdue_kill(rdm, peer);
		return;
	}
	rop->flags |= KEFA_ROP_OVER;
	if (kefa_rop_untold(rop))
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_UNTOLD);
	kefa_rdm_end(rdm, rop);
}

/* Set the fields of a receive that has taken the packet's message. */
static void kefa_rop_begin(struct kefa_rop *rop, struct kefa_rpeer *peer,
			   const struct kefa_pkt *pkt)
{
	rop->peer = peer;
	peer->nops++;
	rop->type = pkt->row->type;
	rop->msg_id = pkt->msg_id;
	rop->remote_id = pkt->send_id;
	rop->total = kefa_pkt_total(pkt);
	rop->runt = pkt->runt_length;
	rop->tag = pkt->tag;
	rop->cq_flags &= ~FI_REMOTE_CQ_DATA;
	if (pkt->flags & KEFA_REQ_OPT_CQ_DATA_HDR) {
		rop->cq_flags |= FI_REMOTE_CQ_DATA;
		rop->data = pkt->cq_data;
	}
	if (pkt->row->flags & KEFA_ROW_DC)
		rop->flags |= KEFA_ROP_DC;
}

/* Return: bytes of the operation's message that the sender sends. */
static u64 kefa_rop_parts(const struct kefa_rop *rop)
{
	return kefa_row_of(rop->type)->flags & KEFA_ROW_READ ? rop->runt : rop->total;
}

/* The data of a packet was copied: complete the message, or read, grant or await its rest. */
static void kefa_rop_go_on(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	const u16 row = kefa_row_of(rop->type)->flags;

	if (rop->done == rop->total && !(row & KEFA_ROW_READ)) {
		kefa_rop_whole(rdm, rop);
		return;
	}
	if (rop->done == kefa_rop_parts(rop)) {
		kefa_rop_read(rdm, rop);
		return;
	}
	if (rop->state == KEFA_ROP_LISTED)
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_DATA_RX);
	kefa_rop_wait(rdm, rop);
	if (!(row & KEFA_ROW_MULTI)) {
		kefa_rop_grant(rdm, rop);
		return;
	}
	kefa_index_add(&rdm->msgs, &rop->msg, kefa_rop_key(rop->peer->id, rop->msg_id));
	rdm->part = rop;
}

/**
 * kefa_multi_take() - begin a message in a multi-receive buffer
 * @rdm: the endpoint
 * @multi: the buffer, posted or about to be posted
 * @total: length of the message
 *
 * A buffer with too little room left is removed from the match.
 *
 * Context: Under kefa_ep.lock.
 * Return: the operation that takes the message; or NULL if none is free for now, other than those
 * that the ULP's sends and receives, and reads and writes by peers, will need.
 */
struct kefa_rop *kefa_multi_take(struct kefa_rdm *rdm, struct kefa_rop *multi, u64 total)
{
	const struct kefa_rops *rops = &rdm->rops;
	struct kefa_rop *rop;
	u64 len;

	if (rops->size - rops->used <= rdm->ep.tx.nfree + rdm->ep.rx.nfree + rdm->ntargets)
		return NULL;
	rop = kefa_rdm_take_rop(rdm, NULL, KEFA_ROP_DATA_RX);
	if (!rop)
		return NULL;
	len = min(total, multi->buf.len);
	rop->flags = KEFA_ROP_PART;
	rop->parent = multi;
	rop->cq_flags = multi->cq_flags & ~FI_MULTI_RECV;
	rop->buf.base = multi->buf.base;
	rop->buf.len = len;
	multi->buf.base += len;
	multi->buf.len -= len;
	multi->wrs++;
	if (!multi->buf.len || multi->buf.len < rdm->min_multi) {
		multi->flags |= KEFA_ROP_SPENT;
		kofi_match_remove(&rdm->match, &multi->recv);
	}
	return rop;
}

/**
 * kefa_rdm_take_sink() - take an operation for a message that nobody receives
 * @rdm: the endpoint
 *
 * Context: Under kefa_ep.lock.
 * Return: the operation, which writes no completion; or NULL, as kefa_multi_take().
 */
struct kefa_rop *kefa_rdm_take_sink(struct kefa_rdm *rdm)
{
	const struct kefa_rops *rops = &rdm->rops;
	struct kefa_rop *rop;

	if (rops->size - rops->used <= rdm->ep.tx.nfree + rdm->ep.rx.nfree + rdm->ntargets)
		return NULL;
	rop = kefa_rdm_take_rop(rdm, NULL, KEFA_ROP_SINK);
	if (rop)
		rop->flags = KEFA_ROP_TOLD;
	return rop;
}

/**
 * kefa_rdm_feed() - give an unexpected message to a receive
 * @rdm: the endpoint
 * @rop: the receive, removed from the match; or an operation that was taken for the message
 * @held: first packet of the message, removed from the match
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_feed(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_held *held)
{
	struct kefa_held *more, *next;
	struct kefa_pkt __uninitialized pkt;

	lockdep_assert_held(&rdm->ep.lock);
	/* Parsing can't fail: the packets were parsed before, and haven't changed. */
	kefa_parse(held->buf, held->len, &pkt);
	kefa_rop_begin(rop, held->peer, &pkt);
	kefa_rop_copy(rdm, rop, &pkt);
	list_for_each_entry_safe(more, next, &held->link, link) {
		kefa_parse(more->buf, more->len, &pkt);
		kefa_rop_copy(rdm, rop, &pkt);
		list_del(&more->link);
		kefa_held_free(rdm, more);
	}
	kefa_index_del(&rdm->msgs, &held->node);
	if (kefa_row_of(rop->type)->flags & KEFA_ROW_READ)
		rop->held = held;
	else
		kefa_held_free(rdm, held);
	kefa_rop_go_on(rdm, rop);
}

/* --- unexpected messages --- */

/**
 * kefa_msg_drop() - drop a kept packet; with the first packet of a message, drop the others
 * @rdm: the endpoint
 * @held: the packet, not in KEFA_HELD_MORE; in KEFA_HELD_UNEXP, it may have been removed from the
 *	match already
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_msg_drop(struct kefa_rdm *rdm, struct kefa_held *held)
{
	struct kefa_held *more, *next;

	lockdep_assert_held(&rdm->ep.lock);
	if (held->where == KEFA_HELD_UNEXP) {
		kofi_match_remove_msg(&rdm->match, &held->msg);
		list_for_each_entry_safe(more, next, &held->link, link) {
			list_del(&more->link);
			kefa_held_free(rdm, more);
		}
	} else if (held->where == KEFA_HELD_STRANGE) {
		kefa_strange_take(rdm, held);
	} else {
		if (held->where == KEFA_HELD_EARLY)
			kefa_early_forget(rdm, held);
		list_del(&held->link);
	}
	kefa_index_del(&rdm->msgs, &held->node);
	held->where = KEFA_HELD_NOT;
	kefa_held_free(rdm, held);
}

static u64 kefa_pkt_what(const struct kefa_pkt *pkt)
{
	return pkt->row->flags & KEFA_ROW_TAGGED ? FI_TAGGED : FI_MSG;
}

/* Keep the first packet of a message that matches no receive. */
static enum kefa_took kefa_msg_unexpected(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					  const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_held *kept = kefa_keep_packet(rdm, held, peer);

	rdm->stats.unexpected++;
	kofi_match_msg_init(&kept->msg, kefa_pkt_what(pkt), kefa_msg_src(rdm, peer), pkt->tag);
	kofi_match_wait(&rdm->match, &kept->msg);
	kept->where = KEFA_HELD_UNEXP;
	kept->total = kefa_pkt_total(pkt);
	kept->parts = kefa_pkt_parts(pkt);
	kept->done = pkt->data_len;
	if (pkt->row->flags & KEFA_ROW_MULTI && kept->done < kept->parts)
		kefa_index_add(&rdm->msgs, &kept->node, kefa_msg_key(peer->id, pkt->msg_id));
	return kept == held ? KEFA_TOOK_KEPT : KEFA_TOOK_DONE;
}

/* Return: the operation of a message that has found @recv, or nothing; NULL if none is free. */
static struct kefa_rop *kefa_msg_take(struct kefa_rdm *rdm, struct kofi_match_recv *recv,
				      const struct kefa_pkt *pkt)
{
	struct kefa_rop *rop;

	if (!recv)
		return kefa_rdm_take_sink(rdm);
	rop = container_of(recv, struct kefa_rop, recv);
	if (rop->flags & KEFA_ROP_MULTI)
		return kefa_multi_take(rdm, rop, kefa_pkt_total(pkt));
	kefa_rop_unlist(rop);
	return rop;
}

/* Handle the packet of a message that arrives first. */
static enum kefa_took kefa_msg_first(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				     const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kofi_match_recv *recv;
	enum kefa_took took = KEFA_TOOK_DONE;
	struct kefa_held *kept;
	struct kefa_rop *rop;

	if (pkt->data_len < kefa_pkt_total(pkt) && !kefa_may_begin(rdm, peer))
		return KEFA_TOOK_NOT;
	recv = kofi_match_find(&rdm->match, kefa_pkt_what(pkt), kefa_msg_src(rdm, peer), pkt->tag);
	if (!recv && !kefa_msg_unwanted(rdm, kefa_pkt_what(pkt), pkt->tag))
		return kefa_msg_unexpected(rdm, peer, pkt, held);
	rop = kefa_msg_take(rdm, recv, pkt);
	if (!rop)
		return KEFA_TOOK_NOT;
	kefa_rop_begin(rop, peer, pkt);
	kefa_rop_copy(rdm, rop, pkt);
	/* Keep the request, because it lists the pieces of memory to read from. */
	if (unlikely(pkt->row->flags & KEFA_ROW_READ)) {
		kept = kefa_keep_packet(rdm, held, peer);
		rop->held = kept;
		took = kept == held ? KEFA_TOOK_KEPT : KEFA_TOOK_DONE;
	}
	kefa_rop_go_on(rdm, rop);
	return took;
}

/* Return: the operation of a message that more packets are expected of, or NULL. */
static struct kefa_rop *kefa_msg_rop(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer,
				     u32 msg_id)
{
	struct kefa_index_node *n = kefa_index_find(&rdm->msgs, kefa_rop_key(peer->id, msg_id));

	return n ? container_of(n, struct kefa_rop, msg) : NULL;
}

/* Return: the first packet of an unexpected message that more packets are expected of, or NULL. */
static struct kefa_held *kefa_msg_kept(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer,
				       u32 msg_id)
{
	struct kefa_index_node *n;
	struct kefa_held *held;

	kefa_index_for_each(n, &rdm->msgs, kefa_msg_key(peer->id, msg_id)) {
		held = container_of(n, struct kefa_held, node);
		if (held->where == KEFA_HELD_UNEXP)
			return held;
	}
	return NULL;
}

/**
 * kefa_msg_begun() - check whether a message has begun and is expected to have more packets
 * @rdm: the endpoint
 * @peer: sender of the message
 * @msg_id: number of the message
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it has, with a receive or as an unexpected message.
 */
bool kefa_msg_begun(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer, u32 msg_id)
{
	return kefa_msg_rop(rdm, peer, msg_id) || kefa_msg_kept(rdm, peer, msg_id);
}

/* Handle another packet of a message that has a receive. */
static enum kefa_took kefa_msg_next(struct kefa_rdm *rdm, const struct kefa_pkt *pkt,
				    struct kefa_rop *rop)
{
	if (!kefa_part_ok(pkt, rop->total, kefa_rop_parts(rop), rop->done)) {
		kefa_rdm_drop(rdm, rop->peer, KEFA_DROP_LENGTH);
		return KEFA_TOOK_DONE;
	}
	kefa_rop_copy(rdm, rop, pkt);
	if (rop->done == kefa_rop_parts(rop))
		kefa_rop_go_on(rdm, rop);
	return KEFA_TOOK_DONE;
}

/* Handle another packet of an unexpected message. */
static enum kefa_took kefa_msg_keep(struct kefa_rdm *rdm, const struct kefa_pkt *pkt,
				    struct kefa_held *held, struct kefa_held *first)
{
	struct kefa_held *kept;

	if (!kefa_part_ok(pkt, first->total, first->parts, first->done)) {
		kefa_rdm_drop(rdm, first->peer, KEFA_DROP_LENGTH);
		return KEFA_TOOK_DONE;
	}
	kept = kefa_keep_packet(rdm, held, first->peer);
	kept->where = KEFA_HELD_MORE;
	list_add_tail(&kept->link, &first->link);
	first->done += pkt->data_len;
	if (first->done == first->parts)
		kefa_index_del(&rdm->msgs, &first->node);
	return kept == held ? KEFA_TOOK_KEPT : KEFA_TOOK_DONE;
}

/* --- request types --- */

static enum kefa_took kefa_rtm_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_held *first;
	struct kefa_rop *rop;

	if (pkt->row->flags & KEFA_ROW_MULTI) {
		rop = kefa_msg_rop(rdm, peer, pkt->msg_id);
		if (rop)
			return kefa_msg_next(rdm, pkt, rop);
		first = kefa_msg_kept(rdm, peer, pkt->msg_id);
		if (first)
			return kefa_msg_keep(rdm, pkt, held, first);
	}
	return kefa_msg_first(rdm, peer, pkt, held);
}

static void kefa_rtm_fill(const struct kefa_rdm *rdm, const struct kefa_rop *rop,
			  struct kefa_pkt *pkt)
{
	pkt->msg_id = rop->msg_id;
	pkt->tag = rop->tag;
	pkt->send_id = kefa_rop_id(&rdm->rops, rop);
	pkt->msg_length = rop->total;
	pkt->credit_request = rdm->lim.credits;
	pkt->runt_length = rop->runt;
	pkt->cq_data = rop->data;
}

/* A message that waits for an answer, such as a RECEIPT, isn't in KEFA_ROP_POSTED. */
static void kefa_rtm_completed(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (rop->wrs || rop->state != KEFA_ROP_POSTED)
		return;
	rop->flags |= KEFA_ROP_OVER;
}

const struct kefa_pkt_ops kefa_rtm_ops = {
	.fill		= kefa_rtm_fill,
	.completed	= kefa_rtm_completed,
	.received	= kefa_rtm_received,
};

static enum kefa_took kefa_packet_take(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				       const struct kefa_pkt *pkt, struct kefa_held *held)
{
	const struct kefa_pkt_row *row = pkt->row;
	enum kefa_took took;

	if (!row->ops) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_TYPE);
		/* Later messages of the peer would wait for this one for ever. */
		if (row->flags & KEFA_ROW_ORDERED)
			kefa_rdm_kill(rdm, peer, EPROTO, 0);
		return KEFA_TOOK_DONE;
	}
	if (!(row->flags & KEFA_ROW_ORDERED)) {
		took = row->ops->received(rdm, peer, pkt, held);
		return likely(took != KEFA_TOOK_NOT) ? took :
						       kefa_asked_keep(rdm, peer, pkt, held);
	}
	/* A request that is repeated after a READ_NACK had its turn the first time. */
	if (unlikely(pkt->flags & row->may & KEFA_REQ_READ_NACK))
		return kefa_again_received(rdm, peer, pkt, kefa_msg_rop(rdm, peer, pkt->msg_id));
	return rdm->ordered ? kefa_ordered_received(rdm, peer, pkt, held) :
			      kefa_unordered_received(rdm, peer, pkt, held);
}

/* --- senders --- */

/* Free a packet, or post its slot again, unless the packet was kept. */
static void kefa_packet_end(struct kefa_rdm *rdm, struct kefa_held *held, enum kefa_took took)
{
	if (took == KEFA_TOOK_KEPT)
		return;
	if (held->cost)
		kefa_held_free(rdm, held);
	else if (likely(held->where != KEFA_HELD_LOCAL))
		kefa_rs_again(rdm, kefa_held_rs(held));
}

/* Drop an invalid packet, and its sender, because later messages may wait for its number. */
static void kefa_packet_bad(struct kefa_rdm *rdm, const struct kefa_held *held, enum kefa_bad bad)
{
	const struct kefa_src src = { .slid = held->slid, .qpn = held->src_qpn };
	struct kefa_rpeer *peer = kefa_peers_by_src(&rdm->peers, &src);

	rdm->stats.bad[bad]++;
	trace_kefa_bad(&rdm->ep, peer ? peer->id : U32_MAX, kefa_bad_text(bad));
	if (peer)
		kefa_rdm_kill(rdm, peer, EPROTO, 0);
}

static enum kefa_took kefa_packet_of(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				     const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_rpeer *other;

	if (kefa_rpeer_dead(peer)) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_DEAD);
		return KEFA_TOOK_DONE;
	}
	kefa_peers_heard(&rdm->peers, peer);
	if (unlikely(kefa_shake_heard(peer)))
		kefa_rdm_todo(rdm, peer);
	if (unlikely(pkt->raw || pkt->row->flags & KEFA_ROW_HANDSHAKE)) {
		other = kefa_peers_superseded(&rdm->peers, peer);
		if (other)
			kefa_rdm_kill(rdm, other, ECONNRESET, 0);
	}
	rdm->stats.received[pkt->row->type]++;
	trace_kefa_packet(&rdm->ep, peer, pkt->row->type, pkt->msg_id, pkt->data_len, false);
	return kefa_packet_take(rdm, peer, pkt, held);
}

/**
 * kefa_rdm_packet() - handle a received packet
 * @rdm: the endpoint, enabled
 * @held: the packet; its buffer is freed unless the packet is kept, or is in KEFA_HELD_LOCAL
 *
 * Context: Under kefa_ep.lock. kefa_rx_refill() is due.
 */
void kefa_rdm_packet(struct kefa_rdm *rdm, struct kefa_held *held)
{
	enum kefa_took took = KEFA_TOOK_DONE;
	struct kefa_pkt __uninitialized pkt;
	struct kefa_rpeer *peer = NULL;
	struct kefa_src src;
	enum kefa_bad bad;

	lockdep_assert_held(&rdm->ep.lock);
	bad = kefa_parse(held->buf, held->len, &pkt);
	if (unlikely(bad)) {
		kefa_packet_bad(rdm, held, bad);
		kefa_packet_end(rdm, held, took);
		return;
	}
	if (unlikely(held->where == KEFA_HELD_LOCAL)) {
		kefa_local_src(rdm, &pkt, &src);
	} else if (unlikely(!kefa_pkt_src(&pkt, held, &src))) {
		kefa_rdm_liar(rdm, &src);
		kefa_packet_end(rdm, held, took);
		return;
	}
	if (unlikely(!kefa_rdm_sender(rdm, &pkt, &src, held->cost, &peer)))
		took = KEFA_TOOK_DONE;
	else if (likely(peer && peer->state != KEFA_RPEER_STRANGER))
		took = kefa_packet_of(rdm, peer, &pkt, held);
	else
		took = kefa_packet_strange(rdm, peer, &src, held);
	kefa_packet_end(rdm, held, took);
}
