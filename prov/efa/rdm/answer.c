// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets without data that answer a peer, in both directions. The owes field of a peer or an
 * operation has the answers that are due, and the pump sends them when there is a slot.
 */
#include <linux/delay.h>
#include "atomic.h"
#include "local.h"
#include "rdm.h"

/* --- the types --- */

static void kefa_receipt_fill(const struct kefa_rdm *rdm, const struct kefa_rop *rop,
			      struct kefa_pkt *pkt)
{
	pkt->send_id = rop->remote_id;
	pkt->msg_id = rop->msg_id;
}

static void kefa_receipt_completed(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	rop->flags |= KEFA_ROP_OVER;
}

static enum kefa_took kefa_receipt_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					    const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_rop *rop = kefa_rop_find(&rdm->rops, pkt->send_id);

	/*
	 * A RECEIPT must not end a message that the peer reads, whose answer is an EOR, nor an
	 * operation that wants old values. For a write or an atomic operation libfabric leaves
	 * msg_id as it happens to be.
	 */
	if (!rop || rop->peer != peer || rop->state != KEFA_ROP_ACK ||
	    kefa_row_of(rop->type)->flags & KEFA_ROW_READ ||
	    (rop->msg_id != pkt->msg_id && !(rop->more & KEFA_ROP_FAR)) ||
	    kefa_rop_fetches(rop) || rop->flags & KEFA_ROP_OVER) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_STATE);
		return KEFA_TOOK_DONE;
	}
	kefa_far_served(rop);
	kefa_rdm_end_tx(rdm, rop, 0, 0);
	return KEFA_TOOK_DONE;
}

static void kefa_receipt_unsend(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	kefa_rdm_owe(rdm, rop, KEFA_ROP_OWES_RECEIPT);
}

const struct kefa_pkt_ops kefa_receipt_ops = {
	.fill		= kefa_receipt_fill,
	.completed	= kefa_receipt_completed,
	.unsend		= kefa_receipt_unsend,
	.received	= kefa_receipt_received,
};

static enum kefa_took kefa_handshake_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					      const struct kefa_pkt *pkt,
					      struct kefa_held *held)
{
	if (!kefa_shake_take(&rdm->peers, peer, pkt))
		return KEFA_TOOK_DONE;
	kefa_rdm_todo(rdm, peer);
	kefa_read_shaken(rdm, peer);
	/* Injects that were refused before the handshake may be tried again. */
	rdm->ep.tx.room |= rdm->ep.tx.wanted;
	return KEFA_TOOK_DONE;
}

static void kefa_handshake_unsend(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	kefa_shake_untold(peer);
}

const struct kefa_pkt_ops kefa_handshake_ops = {
	.unsend_alone	= kefa_handshake_unsend,
	.received	= kefa_handshake_received,
};

/* --- sending answers --- */

/**
 * kefa_send_debt() - send a peer the answers that aren't for an operation
 * @rdm: the endpoint, enabled
 * @peer: the peer
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: false if there was no slot.
 */
bool kefa_send_debt(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	struct kefa_pkt pkt;

	if (peer->owes & KEFA_OWES_HANDSHAKE) {
		kefa_shake_fill(&rdm->self, &pkt);
		if (!kefa_tx_control(rdm, peer, NULL, &pkt))
			return false;
		kefa_shake_told(peer);
	}
	if (peer->owes & KEFA_OWES_TRIGGER) {
		kefa_shake_trigger(&rdm->self, &pkt);
		if (!kefa_tx_control(rdm, peer, NULL, &pkt))
			return false;
		peer->owes &= ~KEFA_OWES_TRIGGER;
	}
	return true;
}

/* Answers for an operation, in the order in which they are sent. */
static const struct {
	u8	owes;
	u8	type;
} kefa_answers[] = {
	{ KEFA_ROP_OWES_CTS,		KEFA_CTS_PKT },
	{ KEFA_ROP_OWES_RECEIPT,	KEFA_RECEIPT_PKT },
	{ KEFA_ROP_OWES_EOR,		KEFA_EOR_PKT },
	{ KEFA_ROP_OWES_NACK,		KEFA_READ_NACK_PKT },
	{ KEFA_ROP_OWES_AGAIN,		0 },
};

static unsigned int kefa_answer_due(const struct kefa_rop *rop)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kefa_answers) - 1; i++)
		if (rop->owes & kefa_answers[i].owes)
			break;
	return i;
}

static void kefa_answer_fill(struct kefa_rdm *rdm, const struct kefa_rop *rop, u8 type,
			     struct kefa_pkt *pkt)
{
	/* Type 0 isn't an answer but the repeated request, without data. */
	if (!type)
		pkt->flags |= KEFA_REQ_READ_NACK;
	if (!type && rop->cq_flags & FI_REMOTE_CQ_DATA)
		pkt->flags |= KEFA_REQ_OPT_CQ_DATA_HDR;
	pkt->row = kefa_row_of(type ?: rop->type);
	pkt->row->ops->fill(rdm, rop, pkt);
	kefa_shake_sign(&rdm->self, rop->peer, pkt);
}

/* Return: false if there was no slot. */
static bool kefa_answer_one(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_rpeer *peer = rop->peer;
	struct kefa_pkt pkt = { };
	unsigned int due;

	/* A HANDSHAKE goes before everything else. */
	if (peer->owes & KEFA_OWES_HANDSHAKE && !kefa_send_debt(rdm, peer))
		return false;
	due = kefa_answer_due(rop);
	kefa_answer_fill(rdm, rop, kefa_answers[due].type, &pkt);
	list_del_init(&rop->link);
	rop->owes &= ~kefa_answers[due].owes;
	if (kefa_tx_control(rdm, peer, rop, &pkt))
		return true;
	kefa_rdm_owe(rdm, rop, kefa_answers[due].owes);
	return false;
}

/* Return: false if there was no slot. */
static bool kefa_owed_inval(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (!kefa_source_inval(rdm, rop))
		return false;
	rop->owes &= ~KEFA_ROP_OWES_INVAL;
	if (!rop->owes)
		list_del_init(&rop->link);
	return true;
}

/* A peer that wasn't ready gets a single answer, and the others after that has arrived. */
static bool kefa_may_answer(const struct kefa_rpeer *peer)
{
	return !kefa_rpeer_dead(peer) && !peer->backoff.waiting &&
	       !(peer->backoff.delay_us && peer->wrs);
}

/**
 * kefa_rdm_answer() - send the answers of operations
 * @rdm: the endpoint, enabled
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 */
void kefa_rdm_answer(struct kefa_rdm *rdm)
{
	struct kefa_rop *rop;
	LIST_HEAD(later);

	lockdep_assert_held(&rdm->ep.lock);
	while (!list_empty(&rdm->owing)) {
		rop = list_first_entry(&rdm->owing, struct kefa_rop, link);
		/* An invalidation is for the device, so it doesn't depend on the peer. */
		if (rop->owes & KEFA_ROP_OWES_INVAL) {
			if (!kefa_owed_inval(rdm, rop))
				break;
			continue;
		}
		if (!kefa_may_answer(rop->peer)) {
			list_move_tail(&rop->link, &later);
			continue;
		}
		if (!kefa_answer_one(rdm, rop)) {
			list_move_tail(&rop->link, &later);
			break;
		}
	}
	list_splice(&later, &rdm->owing);
}

/* --- closing --- */

/* Return: whether the slot has an answer that may still arrive. */
static bool kefa_ts_answers(const struct kefa_ts *ts)
{
	return ts->state != KEFA_TS_FREE && !ts->what && ts->type &&
	       (kefa_row_of(ts->type)->flags & KEFA_ROW_CONTROL ||
		ts->type == KEFA_READRSP_PKT || ts->type == KEFA_ATOMRSP_PKT) &&
	       !kefa_rpeer_dead(ts->peer);
}

/* Return: whether a peer is owed a HANDSHAKE, which waits for a slot or for the peer. */
static bool kefa_rdm_owes_shake(const struct kefa_rdm *rdm)
{
	const struct kefa_rpeer *peer;
	struct rb_node *n;

	list_for_each_entry(peer, &rdm->todo, todo)
		if (peer->owes & KEFA_OWES_HANDSHAKE)
			return true;
	for (n = rb_first_cached(&rdm->backoffs.queue.rb_root); n; n = rb_next(n)) {
		peer = container_of(n, struct kefa_rpeer, backoff.timer.node);
		if (peer->owes & KEFA_OWES_HANDSHAKE)
			return true;
	}
	return false;
}

/* Return: whether a peer waits for an answer, other than for more data of a message. */
static bool kefa_rdm_owes(const struct kefa_rdm *rdm)
{
	const u8 last = KEFA_ROP_OWES_RECEIPT | KEFA_ROP_OWES_EOR | KEFA_ROP_OWES_NACK;
	const struct kefa_rop *rop;
	u32 i;

	list_for_each_entry(rop, &rdm->owing, link)
		if (rop->owes & last)
			return true;
	for (i = 0; i < rdm->nts; i++)
		if (kefa_ts_answers(&rdm->ts[i]))
			return true;
	return kefa_rdm_owes_shake(rdm);
}

/**
 * kefa_rdm_linger() - send the answers that peers wait for, before the endpoint is closed
 * @ep: the endpoint, which may have been stopped
 *
 * Serves as kefa_ep_kind.linger. Without its answer a peer's send would never complete. Peers that
 * take no packets are given up after kefa_rdm.linger_ms.
 *
 * Context: Process context; sleeps.
 */
void kefa_rdm_linger(struct kefa_ep *ep)
{
	struct kefa_rdm *rdm = to_kefa_rdm(ep);
	const ktime_t end = ktime_add_ms(ktime_get(), rdm->linger_ms);
	bool more;

	do {
		spin_lock_bh(&ep->lock);
		more = ep->state == KEFA_EP_ENABLED && kefa_rdm_owes(rdm);
		if (more) {
			kefa_rdm_poll(ep, KEFA_POLL_BUDGET);
			if (rdm->local)
				kefa_local_take(rdm);
			kefa_rdm_pump(rdm);
			more = kefa_rdm_owes(rdm);
		}
		kefa_ep_unlock_tell(ep, false);
		if (more)
			usleep_range(200, 400);
	} while (more && ktime_before(ktime_get(), end));
}
