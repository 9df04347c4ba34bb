// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The order of arriving messages. A message whose turn hasn't come is kept: its first packet is in
 * kefa_rdm.msgs and in kefa_rdm.early, and has a list of the message's other packets. When the
 * message begins, all of them are handled at once, so that no packet of a message that has begun
 * is ever in kefa_rdm.early: kefa_order.exp_id is past it, and nothing would look for it.
 *
 * A message whose turn has come, and that can't begin for now, is also in kefa_rdm.due, for the
 * pump to try again.
 */
#include "msg.h"

/* Return: the first packet of a message that is kept, or NULL. */
static struct kefa_held *kefa_early_find(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer,
					 u32 msg_id)
{
	struct kefa_index_node *n;
	struct kefa_held *held;

	kefa_index_for_each(n, &rdm->msgs, kefa_msg_key(peer->id, msg_id)) {
		held = container_of(n, struct kefa_held, node);
		if (held->where == KEFA_HELD_EARLY)
			return held;
	}
	return NULL;
}

static void kefa_early_add(struct kefa_rdm *rdm, struct kefa_held *first, u64 key)
{
	first->where = KEFA_HELD_EARLY;
	list_add_tail(&first->link, &rdm->early);
	kefa_index_add(&rdm->msgs, &first->node, key);
}

/* Have the pump begin a message, if it can. */
static void kefa_early_due(struct kefa_rdm *rdm, struct kefa_held *first)
{
	list_move_tail(&first->due, &rdm->due);
	rdm->waits = true;
	/* Nothing may tell that it can begin: silent.c has it tried again. */
	kefa_silent_arm(rdm);
}

/* Return: whether a kept packet is an atomic operation. */
static bool kefa_held_atomic(const struct kefa_held *held)
{
	return kefa_pkt_atomic(kefa_row_of(*(const u8 *)held->buf));
}

/**
 * kefa_early_forget() - drop the other packets of a message that is kept
 * @rdm: the endpoint
 * @first: first packet of the message, which the caller removes from kefa_rdm.early
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_early_forget(struct kefa_rdm *rdm, struct kefa_held *first)
{
	struct kefa_held *more, *next;

	lockdep_assert_held(&rdm->ep.lock);
	list_del_init(&first->due);
	rdm->fair.early -= first->cost;
	list_for_each_entry_safe(more, next, &first->rest, link) {
		rdm->fair.early -= more->cost;
		kefa_held_free(rdm, more);
	}
	INIT_LIST_HEAD(&first->rest);
}

/**
 * kefa_early_waits() - check whether an early packet of a peer waits for this endpoint
 * @rdm: the endpoint
 * @held: the first packet of a message, in KEFA_HELD_EARLY
 *
 * An atomic operation whose peer hasn't taken the answers to others for KEFA_UNREADY_CHECKS checks
 * waits for the peer.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it is the turn of the message, or of one before it, or the order doesn't matter;
 * and that message waits for something else than its peer.
 */
bool kefa_early_waits(const struct kefa_rdm *rdm, const struct kefa_held *held)
{
	const struct kefa_rpeer *peer = held->peer;

	lockdep_assert_held(&rdm->ep.lock);
	if (rdm->ordered)
		held = kefa_early_find(rdm, peer, peer->order.exp_id);
	return held && !(peer->backoff.checks >= KEFA_UNREADY_CHECKS && kefa_held_atomic(held));
}

/*
 * Keep a packet whose turn hasn't come. Return: the first packet of its message that is kept; or
 * NULL if it was dropped, because it is repeated or doesn't fit the message.
 */
static struct kefa_held *kefa_early_keep(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					 const struct kefa_pkt *pkt, struct kefa_held *held,
					 enum kefa_took *took)
{
	struct kefa_held *first = kefa_early_find(rdm, peer, pkt->msg_id), *kept;
	const bool multi = pkt->row->flags & KEFA_ROW_MULTI;

	*took = KEFA_TOOK_DONE;
	if (first && !(multi && kefa_part_ok(pkt, first->total, first->parts, first->done))) {
		kefa_rdm_drop(rdm, peer, multi && first->done < first->parts ?
			      KEFA_DROP_LENGTH : KEFA_DROP_DUP);
		return NULL;
	}
	kept = kefa_keep_packet(rdm, held, peer);
	*took = kept == held ? KEFA_TOOK_KEPT : KEFA_TOOK_DONE;
	rdm->stats.early++;
	rdm->fair.early += kept->cost;
	if (first) {
		kept->where = KEFA_HELD_MORE;
		list_add_tail(&kept->link, &first->rest);
		first->done += pkt->data_len;
		return first;
	}
	INIT_LIST_HEAD(&kept->rest);
	INIT_LIST_HEAD(&kept->due);
	kept->total = kefa_pkt_total(pkt);
	/* No other packet has the number of a message that isn't in several packets. */
	kept->parts = multi ? kefa_pkt_parts(pkt) : pkt->data_len;
	kept->done = pkt->data_len;
	kefa_early_add(rdm, kept, kefa_msg_key(peer->id, pkt->msg_id));
	return kept;
}

/* It is the message's turn, but no operation is free, or the completion queue has no room. */
static enum kefa_took kefa_early_starve(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_held *first;
	enum kefa_took took;

	rdm->stats.starved++;
	first = kefa_early_keep(rdm, peer, pkt, held, &took);
	if (first)
		kefa_early_due(rdm, first);
	return took;
}

/* Handle a packet that was kept; @begun if another packet of its message was handled before. */
static enum kefa_took kefa_early_one(struct kefa_rdm *rdm, struct kefa_held *held, bool begun)
{
	enum kefa_took took = KEFA_TOOK_DONE;
	struct kefa_rpeer *peer = held->peer;
	struct kefa_pkt __uninitialized pkt;

	/* Parsing can't fail: the packet was parsed before, and hasn't changed. */
	kefa_parse(held->buf, held->len, &pkt);
	rdm->fair.early -= held->cost;
	if (kefa_rpeer_dead(peer))
		kefa_rdm_drop(rdm, peer, KEFA_DROP_DEAD);
	else if (!begun || (pkt.row->flags & KEFA_ROW_MULTI &&
			    kefa_msg_begun(rdm, peer, pkt.msg_id)))
		took = pkt.row->ops->received(rdm, peer, &pkt, held);
	else
		kefa_rdm_drop(rdm, peer, KEFA_DROP_DUP);
	if (took == KEFA_TOOK_DONE)
		kefa_held_free(rdm, held);
	else if (took == KEFA_TOOK_NOT)
		rdm->fair.early += held->cost;
	return took;
}

/*
 * Handle all packets of a message that is kept, so that none of them stays behind. Return: their
 * number; 0 if the message can't begin for now, so the pump tries again.
 */
static unsigned int kefa_early_take(struct kefa_rdm *rdm, struct kefa_held *first, bool begun)
{
	const u64 key = first->node.key;
	struct kefa_held *more, *next;
	unsigned int n = 1;
	LIST_HEAD(rest);

	kefa_index_del(&rdm->msgs, &first->node);
	list_del_init(&first->link);
	list_del_init(&first->due);
	list_splice_init(&first->rest, &rest);
	if (kefa_early_one(rdm, first, begun) == KEFA_TOOK_NOT) {
		list_splice(&rest, &first->rest);
		kefa_early_add(rdm, first, key);
		kefa_early_due(rdm, first);
		return 0;
	}
	list_for_each_entry_safe(more, next, &rest, link) {
		list_del_init(&more->link);
		kefa_early_one(rdm, more, true);
		n++;
	}
	return n;
}

/* A message has begun: handle its packets that were kept. Return: their number. */
static unsigned int kefa_early_follow(struct kefa_rdm *rdm, struct kefa_rpeer *peer, u32 msg_id)
{
	struct kefa_held *first = kefa_early_find(rdm, peer, msg_id);

	return first ? kefa_early_take(rdm, first, true) : 0;
}

/**
 * kefa_rdm_drain() - handle the kept packets of a peer whose turn has come
 * @rdm: the endpoint
 * @peer: the peer, after the message before kefa_order.exp_id has begun
 *
 * The peer determines their number, so this stops between two messages after KEFA_DRAIN_MAX
 * packets, and the worker continues.
 *
 * Context: Under kefa_ep.lock. kefa_rx_refill() is due.
 * Return: false if a message is left whose turn it is.
 */
bool kefa_rdm_drain(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	struct kefa_order *order = &peer->order;
	struct kefa_held *first;
	unsigned int done, n;

	lockdep_assert_held(&rdm->ep.lock);
	if (list_empty(&rdm->early))
		return true;
	done = kefa_early_follow(rdm, peer, order->exp_id - 1);
	while ((first = kefa_early_find(rdm, peer, order->exp_id))) {
		if (done >= KEFA_DRAIN_MAX) {
			kefa_early_due(rdm, first);
			kefa_ep_kick(&rdm->ep);
			return false;
		}
		n = kefa_early_take(rdm, first, false);
		if (!n)
			return false;
		kefa_order_begun(order);
		done += n;
	}
	return true;
}

/*
 * Try a message again, and those of its peer that follow. @begun is set if it has begun. Return:
 * false if a message waits for what those of other peers need, too. An atomic operation waits for
 * other things: its own peer, a send slot, or a context in which the CPU can carry it out.
 */
static bool kefa_early_try(struct kefa_rdm *rdm, struct kefa_held *first, bool *begun)
{
	struct kefa_rpeer *peer = first->peer;
	const u32 turn = peer->order.exp_id;

	list_del_init(&first->due);
	if (!rdm->ordered) {
		if (!kefa_early_take(rdm, first, false))
			return kefa_held_atomic(first);
		*begun = true;
		return true;
	}
	if (kefa_rdm_drain(rdm, peer))
		first = NULL;
	else
		first = kefa_early_find(rdm, peer, peer->order.exp_id);
	*begun |= peer->order.exp_id != turn;
	return !first || kefa_held_atomic(first);
}

/**
 * kefa_rdm_retry() - handle messages that waited for an operation, or room for the completion
 * @rdm: the endpoint
 *
 * After one that still has to wait, only atomic operations are tried.
 *
 * Context: Under kefa_ep.lock. kefa_rx_refill() is due.
 */
void kefa_rdm_retry(struct kefa_rdm *rdm)
{
	unsigned int left = KEFA_DRAIN_MAX;
	bool starved = false, begun = false;
	struct kefa_held *first;
	LIST_HEAD(untried);
	LIST_HEAD(due);

	lockdep_assert_held(&rdm->ep.lock);
	/* One that still can't begin goes to the end of kefa_rdm.due, behind all others. */
	list_splice_init(&rdm->due, &due);
	while (left && (first = list_first_entry_or_null(&due, struct kefa_held, due))) {
		left--;
		if (starved && !kefa_held_atomic(first))
			list_move_tail(&first->due, &untried);
		else
			starved |= !kefa_early_try(rdm, first, &begun);
	}
	/* Nothing else may happen that has the pump run again. */
	if (begun && !list_empty(&due))
		kefa_ep_kick(&rdm->ep);
	list_splice(&untried, &rdm->due);
	list_splice(&due, &rdm->due);
}

/**
 * kefa_ordered_received() - handle a message in its turn, with any of KEFA_RDM_ORDER
 * @rdm: the endpoint
 * @peer: sender of the packet
 * @pkt: the packet, of a type with KEFA_ROW_ORDERED
 * @held: the packet in its buffer
 *
 * Context: Under kefa_ep.lock. kefa_rx_refill() is due.
 * Return: enum kefa_took, other than KEFA_TOOK_NOT.
 */
enum kefa_took kefa_ordered_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				     const struct kefa_pkt *pkt, struct kefa_held *held)
{
	enum kefa_took took;

	switch (kefa_order_whose(&peer->order, pkt->msg_id)) {
	case KEFA_ORDER_NOW:
		took = pkt->row->ops->received(rdm, peer, pkt, held);
		if (took == KEFA_TOOK_NOT)
			return kefa_early_starve(rdm, peer, pkt, held);
		kefa_order_begun(&peer->order);
		kefa_rdm_drain(rdm, peer);
		return took;
	case KEFA_ORDER_LATER:
		kefa_early_keep(rdm, peer, pkt, held, &took);
		return took;
	case KEFA_ORDER_PAST:
		if (pkt->row->flags & KEFA_ROW_MULTI && kefa_msg_begun(rdm, peer, pkt->msg_id))
			return pkt->row->ops->received(rdm, peer, pkt, held);
		kefa_rdm_drop(rdm, peer, KEFA_DROP_DUP);
		return KEFA_TOOK_DONE;
	default:
		kefa_rdm_drop(rdm, peer, KEFA_DROP_FAR);
		kefa_rdm_kill(rdm, peer, EPROTO, 0);
		return KEFA_TOOK_DONE;
	}
}

/**
 * kefa_unordered_received() - handle a message, without any of KEFA_RDM_ORDER
 * @rdm: the endpoint
 * @peer: sender of the packet
 * @pkt: the packet, of a type with KEFA_ROW_ORDERED
 * @held: the packet in its buffer
 *
 * A message is kept only if it can't begin for now.
 *
 * Context: Under kefa_ep.lock. kefa_rx_refill() is due.
 * Return: enum kefa_took, other than KEFA_TOOK_NOT.
 */
enum kefa_took kefa_unordered_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				       const struct kefa_pkt *pkt, struct kefa_held *held)
{
	enum kefa_took took = pkt->row->ops->received(rdm, peer, pkt, held);

	if (took == KEFA_TOOK_NOT)
		return kefa_early_starve(rdm, peer, pkt, held);
	if (unlikely(!list_empty(&rdm->early)))
		kefa_early_follow(rdm, peer, pkt->msg_id);
	return took;
}
