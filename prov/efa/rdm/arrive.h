/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the short ways of packets that arrived, or were sent, have in common: eager.c, part.c. */
#ifndef KEFA_RDM_ARRIVE_H
#define KEFA_RDM_ARRIVE_H

#include "../path.h"
#include "eager.h"
#include "rdm.h"

/**
 * kefa_turn_of() - who has sent a message, if nothing has to be done about the peer, and its
 * turn is now
 * @rdm: the endpoint
 * @wc: the packet's completion
 * @e: what the packet says
 *
 * Context: Under kefa_ep.lock.
 * Return: the peer, or NULL.
 */
static __always_inline struct kefa_rpeer *kefa_turn_of(struct kefa_rdm *rdm,
						       const struct ib_wc *wc,
						       const struct kefa_eager *e)
{
	const struct kefa_src src = {
		.slid		= wc->slid,
		.qpn		= wc->src_qp,
		.connid		= e->connid,
		.has_connid	= true,
	};
	struct kefa_rpeer *peer = kefa_peers_known(&rdm->peers, &src);

	if (unlikely(!peer || peer->state < KEFA_RPEER_KNOWN ||
		     peer->state > KEFA_RPEER_READY || !(peer->flags & KEFA_RPEER_HEARD)))
		return NULL;
	if (unlikely(rdm->ordered && e->msg_id != peer->order.exp_id))
		return NULL;
	return peer;
}

/**
 * kefa_arrived() - count a packet that was read, and of which the sender is known
 * @rdm: the endpoint
 * @peer: the sender
 * @type: of the packet
 * @e: what it says
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_arrived(struct kefa_rdm *rdm, struct kefa_rpeer *peer, u8 type,
					 const struct kefa_eager *e)
{
	peer->flags &= ~KEFA_RPEER_SILENT;
	if (unlikely(peer->flags & KEFA_RPEER_IMPLICIT))
		kefa_peers_heard(&rdm->peers, peer);
	rdm->stats.received[type]++;
	trace_kefa_packet(&rdm->ep, peer->id, kefa_pkt_rows[type].name, e->msg_id, e->len, false);
}

/**
 * kefa_took() - a receive has all of its message, and nothing is special about it
 * @rdm: the endpoint
 * @rop: the receive, of which no peer was told, with source, length and tag of the message
 *
 * Context: Under kefa_ep.lock. The report is due.
 */
static __always_inline void kefa_took(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_FREE);
	*rdm->taken_tail = rop;
	rdm->taken_tail = &rop->next;
	rdm->ntaken++;
}

/**
 * kefa_ts_report() - a message was sent
 * @rdm: the endpoint
 * @ts: the slot that says what its completion says, and is free with the report
 *
 * Context: Under kefa_ep.lock. The report is due.
 */
static __always_inline void kefa_ts_report(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	*rdm->sent_tail = ts;
	rdm->sent_tail = &ts->next;
	rdm->nsent++;
}

#endif /* KEFA_RDM_ARRIVE_H */
