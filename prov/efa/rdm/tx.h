/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Who may have a send slot, and taking one. The rest of what is done with them is in tx.c. */
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

/**
 * kefa_may_stream() - check whether granted data, or a read, may be posted now
 * @rdm: the endpoint
 * @peer: peer of the operation
 *
 * Some slots are left to requests, so that they don't wait for the end of all granted data.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it may, and a slot is free.
 */
static inline bool kefa_may_stream(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	lockdep_assert_held(&rdm->ep.lock);
	return !peer->backoff.waiting &&
	       rdm->ts_nfree > rdm->ts_ctl + rdm->nts / KEFA_TX_REQUESTS &&
	       (rdm->peers.count < 2 || peer->wrs < rdm->ts_share);
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

#endif /* KEFA_RDM_TX_H */
