/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Send slots: who may have one, and what the fast paths do with one. The rest is in tx.c. */
#ifndef KEFA_RDM_TX_H
#define KEFA_RDM_TX_H

#include "rdm.h"

/**
 * kefa_tx_room() - get the number of slots for requests and data to a peer
 * @rdm: the endpoint
 * @peer: the peer
 *
 * If there are several peers, each has at most kefa_rdm.ts_share slots.
 *
 * Context: Under kefa_ep.lock.
 * Return: the number of slots that may be taken.
 */
static inline u32 kefa_tx_room(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	const u32 share = rdm->ts_share;
	const u32 room = rdm->ts_nfree > rdm->ts_ctl ? rdm->ts_nfree - rdm->ts_ctl : 0;

	lockdep_assert_held(&rdm->ep.lock);
	if (rdm->peers.count < 2)
		return room;
	return min(room, share > peer->wrs ? share - peer->wrs : 0);
}

/* Return: the number of slots that the first operation that waits for a peer may need at once. */
static inline u32 kefa_ts_left(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	if (likely(list_empty(&peer->wait)))
		return 0;
	/* A read or write is posted packet by packet, or part by part. */
	if (list_first_entry(&peer->wait, struct kefa_rop, peer_link)->more & KEFA_ROP_FAR)
		return rdm->ts_left;
	return min_t(u32, rdm->ts_share - 1, KEFA_HELD_MAX);
}

/* Return: whether a slot for data may be taken that leaves @left of the peer's share. */
static __always_inline bool kefa_may_take(const struct kefa_rdm *rdm,
					  const struct kefa_rpeer *peer, u32 left)
{
	lockdep_assert_held(&rdm->ep.lock);
	return !peer->backoff.waiting &&
	       rdm->ts_nfree > rdm->ts_ctl + rdm->nts / KEFA_TX_REQUESTS &&
	       (rdm->peers.count < 2 || peer->wrs + left < rdm->ts_share);
}

/**
 * kefa_may_stream() - check whether granted data, or a read, may be posted now
 * @rdm: the endpoint
 * @peer: peer of the operation
 *
 * Some slots are left to requests, so that they don't wait for the end of all granted data. If a
 * message to the peer waits, so are those of the peer's share that its packets may need at once.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it may, and a slot is free.
 */
static inline bool kefa_may_stream(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	return kefa_may_take(rdm, peer, kefa_ts_left(rdm, peer));
}

/**
 * kefa_ts_pop() - take a send slot
 * @rdm: the endpoint, with a free slot
 * @peer: receiver of the packet
 *
 * Context: Under kefa_ep.lock.
 * Return: the slot, without contents.
 */
static __always_inline struct kefa_ts *kefa_ts_pop(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	struct kefa_ts *ts = rdm->ts_free;

	lockdep_assert_held(&rdm->ep.lock);
	rdm->ts_free = ts->next;
	rdm->ts_nfree--;
	ts->peer = peer;
	ts->len = 0;
	ts->type = 0;
	peer->wrs++;
	return ts;
}

/**
 * kefa_ts_take() - take a send slot
 * @rdm: the endpoint
 * @peer: receiver of the packet
 * @control: the packet is an answer, which may use reserved slots
 *
 * Context: Under kefa_ep.lock.
 * Return: the slot, without contents, or NULL if none is free.
 */
static inline struct kefa_ts *kefa_ts_take(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					   bool control)
{
	if (rdm->ts_nfree <= (control ? 0 : rdm->ts_ctl))
		return NULL;
	return kefa_ts_pop(rdm, peer);
}

/**
 * kefa_ts_answers_alone() - check for an answer that no operation can repeat
 * @ts: the slot, with a packet
 *
 * Such an answer keeps its slot until the peer has it: an EOR of the fast path, a RECEIPT for a
 * write of one packet, a READ_NACK for a write that can't be read, the data of a short read, or an
 * ATOMRSP.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it is one.
 */
static inline bool kefa_ts_answers_alone(const struct kefa_ts *ts)
{
	return !ts->rop && (ts->type == KEFA_EOR_PKT || ts->type == KEFA_RECEIPT_PKT ||
			    ts->type == KEFA_READ_NACK_PKT || ts->type == KEFA_READRSP_PKT ||
			    ts->type == KEFA_ATOMRSP_PKT);
}

/**
 * kefa_ts_saves() - check for a packet that is saved while it waits for its peer
 * @ts: the slot, with a packet
 *
 * Injected data and old values can't be copied again.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether the packet is the ULP's, or an ATOMRSP.
 */
static inline bool kefa_ts_saves(const struct kefa_ts *ts)
{
	return ts->type == KEFA_ATOMRSP_PKT || (ts->rop && ts->rop->flags & KEFA_ROP_TX);
}

/**
 * kefa_ts_unmade() - check for a packet whose data must be copied again
 * @ts: the slot, parked
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it must, to another copy buffer.
 */
static inline bool kefa_ts_unmade(const struct kefa_ts *ts)
{
	return ts->len > KEFA_TS_ROOM && !ts->copy;
}

/* Return: whether a transition between two states is allowed. */
static __always_inline bool kefa_ts_may(enum kefa_ts_state from, enum kefa_ts_state to)
{
	switch (to) {
	case KEFA_TS_FREE:
	case KEFA_TS_POSTED:
		/* A slot that was taken but not posted is still free. Parked ones are reposted. */
		return true;
	case KEFA_TS_PARKED:
	case KEFA_TS_REFUSED:
		return from == KEFA_TS_POSTED;
	default:
		return false;
	}
}

/**
 * kefa_ts_set_state() - change the state of a send slot
 * @rdm: the endpoint
 * @ts: the send slot
 * @state: new state of the slot
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_ts_set_state(const struct kefa_rdm *rdm, struct kefa_ts *ts,
					      enum kefa_ts_state state)
{
	lockdep_assert_held(&rdm->ep.lock);
	WARN_ON_ONCE(!kefa_ts_may(ts->state, state));
	ts->state = state;
}

/**
 * kefa_ts_lend() - have a local peer copy a packet's data from the ULP's memory
 * @ts: slot of the packet
 * @phys: physical address of the data
 * @len: length of the data
 *
 * The device doesn't see the data, so it isn't mapped.
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_ts_lend(struct kefa_ts *ts, phys_addr_t phys, u32 len)
{
	ts->seg.phys = phys;
	ts->seg.len = len;
	ts->shared = true;
}

/**
 * kefa_ts_order() - count a request packet in its peer's order
 * @ts: slot of the packet, about to be posted
 * @msg_id: number of the message, from kefa_order_give()
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_ts_order(struct kefa_ts *ts, u32 msg_id)
{
	ts->msg_id = msg_id;
	ts->ordered = true;
	kefa_order_sent(&ts->peer->order, msg_id);
}

/**
 * kefa_ts_arrived() - note that a packet was delivered, or never will be
 * @ts: slot of the packet, which may be one that isn't in its peer's order
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_ts_arrived(struct kefa_ts *ts)
{
	if (!ts->ordered)
		return;
	ts->ordered = false;
	kefa_order_arrived(&ts->peer->order, ts->msg_id);
}

/**
 * kefa_target_serves() - count a packet that answers a peer
 * @ts: slot of the packet, about to be posted
 *
 * Context: Under kefa_ep.lock.
 */
static inline void kefa_target_serves(struct kefa_ts *ts)
{
	ts->serves = true;
	ts->peer->answers++;
}

/**
 * kefa_target_served() - note that an answer to a peer was delivered, or never will be
 * @ts: slot of the packet, which may be one of another kind
 *
 * Context: Under kefa_ep.lock.
 */
static inline void kefa_target_served(struct kefa_ts *ts)
{
	if (!ts->serves)
		return;
	ts->serves = false;
	ts->peer->answers--;
}

/**
 * kefa_ts_renew() - give a send slot the id of its next use
 * @ts: the slot, whose last work request is over
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_ts_renew(struct kefa_ts *ts)
{
	ts->id += KEFA_OP_USE;
}

/**
 * kefa_ts_release() - end the use of a send slot
 * @rdm: the endpoint
 * @ts: the slot, all fields of which are as in a free one. The caller puts it into the list of
 *	free ones by kefa_ts_unused(), or has it reported, which does so later
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_ts_release(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	kefa_ts_set_state(rdm, ts, KEFA_TS_FREE);
	kefa_ts_renew(ts);
	ts->peer->wrs--;
}

/**
 * kefa_ts_unused() - put a send slot into the list of free ones
 * @rdm: the endpoint
 * @ts: the slot, in KEFA_TS_FREE
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_ts_unused(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	ts->next = rdm->ts_free;
	rdm->ts_free = ts;
	rdm->ts_nfree++;
	rdm->ep.tx.room |= rdm->ep.tx.wanted;
}

#endif /* KEFA_RDM_TX_H */
