// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Identity of senders. A completion has the number of the sender's address handle (slid) and its
 * queue pair. The device sets both, so they can't be forged. A packet names its sender by its
 * connid, and also by its raw address as long as it hasn't got our HANDSHAKE. Anybody could know
 * both. So a peer is the sender only if the number belongs to its GID: slid.c learns that from what
 * packets claim, and here is decided which packets may claim a GID:
 *
 * - a packet with a raw address;
 * - a HANDSHAKE, if the endpoint has sent something to that peer;
 * - any packet of a peer that has our HANDSHAKE, if no number is known for its GID.
 *
 * An honest peer sends no other request before it has our HANDSHAKE. A number is confirmed when a
 * packet without a raw address comes after both HANDSHAKEs. From then on the peer is found by
 * kefa_peers_by_src(), and by nothing else (KEFA_RPEER_SURE). Before that, a packet of another
 * number may claim the GID: the sender so far was an impostor, and what it sent is dropped.
 *
 * A packet has the number that its sender had when it arrived. It may be handled when that handle
 * has been destroyed, and another one created for a peer that came back. So a peer's previous
 * number teaches nothing while the handle is new: it would be confirmed at once, although it may be
 * wrong, and no packet with the right one would be accepted.
 *
 * A peer in the same kernel needs no proof, and sends nothing by the device: a packet that the
 * device has received isn't from such a peer, whatever it claims.
 */
#include <linux/string.h>
#include "../ah.h"
#include "../trace.h"
#include "ident.h"
#include "rdm.h"

/**
 * kefa_pkt_src() - get the description of a packet's sender
 * @pkt: the packet
 * @held: the packet in its buffer, with fields of the completion
 * @src: takes the description
 *
 * Context: Any.
 * Return: false if the raw address in the packet contradicts the completion.
 */
bool kefa_pkt_src(const struct kefa_pkt *pkt, const struct kefa_held *held, struct kefa_src *src)
{
	const struct kefa_raw_addr *raw = pkt->raw;

	*src = (struct kefa_src) {
		.gid		= raw ? raw->gid : NULL,
		.slid		= held->slid,
		.qpn		= held->src_qpn,
		.connid		= pkt->connid,
		.has_connid	= pkt->has_connid,
		.local		= held->local,
	};
	return !raw || le16_to_cpu(raw->qpn) == held->src_qpn;
}

/* Return: whether a packet is an answer to one of ours, and no request. */
static bool kefa_ident_answers(const struct kefa_pkt *pkt)
{
	return !(pkt->row->flags & KEFA_ROW_REQ);
}

/* Return: whether a packet may teach the number of its sender's address handle. */
static bool kefa_ident_claims(const struct kefa_pkt *pkt, const struct kefa_rpeer *peer)
{
	const bool told = peer->flags & KEFA_RPEER_TOLD;

	if (pkt->raw)
		return true;
	if (pkt->row->flags & KEFA_ROW_HANDSHAKE)
		return told || peer->state == KEFA_RPEER_SHAKING;
	return told && READ_ONCE(peer->ah->slid) == KEFA_NO_SLID;
}

/* Confirm the number of a peer's address handle, if a packet from it shows that it is the peer. */
static void kefa_ident_confirm(const struct kefa_pkt *pkt, struct kefa_rpeer *peer, u16 slid)
{
	const bool shaken = peer->flags & KEFA_RPEER_SHAKEN ||
			    pkt->row->flags & KEFA_ROW_HANDSHAKE;

	/* The caller handles the packet now, which sets KEFA_RPEER_HEARD. */
	if (kefa_slid_sure(peer->ah, slid,
			   !pkt->raw && shaken && peer->flags & KEFA_RPEER_TOLD))
		peer->flags |= KEFA_RPEER_SURE;
}

/* Bind a number to a peer, in whose name another one may have spoken until now. */
static void kefa_ident_bind(struct kefa_rdm *rdm, struct kefa_rpeer *peer, u16 slid)
{
	const u16 old = kefa_rpeer_slid(peer);

	if (old == slid)
		return;
	/* Before the peer is bound, which notes the number of the message that it begins with. */
	if (old != KEFA_NO_SLID) {
		kefa_peers_unbind(&rdm->peers, peer);
		kefa_rdm_unseat(rdm, peer);
	}
	kefa_peers_bind(&rdm->peers, peer, slid);
}

/* Check a packet without a number, which comes from a GID whose handle is new, or has none. */
static bool kefa_ident_unnumbered(const struct kefa_pkt *pkt, const struct kefa_rpeer *peer,
				  bool parked)
{
	if (!pkt->raw && !kefa_ident_answers(pkt) && !(peer->flags & KEFA_RPEER_TOLD))
		return false;
	/* A parked packet arrived before the handle existed, or when it was new. */
	return parked || !(peer->flags & KEFA_RPEER_SURE);
}

/* Return: whether a packet may have arrived before the peer had its handle, by the previous one. */
static bool kefa_ident_earlier(const struct kefa_src *src, const struct kefa_rpeer *peer)
{
	return src->slid == kefa_rpeer_before(peer) && kefa_ah_is_new(peer->ah);
}

/* Check that a peer that a packet names by its connid is the sender, and learn its number. */
static bool kefa_ident_named(struct kefa_rdm *rdm, const struct kefa_pkt *pkt,
			     const struct kefa_src *src, struct kefa_rpeer *peer, bool parked)
{
	u16 known;

	if (!peer->ah)
		return true;
	known = READ_ONCE(peer->ah->slid);
	if (src->slid == KEFA_NO_SLID ||
	    (known == KEFA_NO_SLID && kefa_ident_earlier(src, peer)))
		return kefa_ident_unnumbered(pkt, peer, parked);
	if (known != src->slid && !kefa_ident_claims(pkt, peer))
		return known == KEFA_NO_SLID && kefa_ident_answers(pkt);
	if (!kefa_slid_learn(peer->ah, src->slid))
		return false;
	kefa_ident_bind(rdm, peer, src->slid);
	kefa_ident_confirm(pkt, peer, src->slid);
	return true;
}

/* Check a packet whose number and queue pair belong to a peer, whose connid is in the packet. */
static bool kefa_ident_bound(const struct kefa_pkt *pkt, const struct kefa_src *src,
			     struct kefa_rpeer *peer)
{
	if (src->gid && memcmp(peer->gid, src->gid, sizeof(peer->gid)))
		return false;
	if (!(peer->flags & KEFA_RPEER_SURE))
		kefa_ident_confirm(pkt, peer, src->slid);
	return true;
}

/* Find the sender of a packet that a local peer has passed on. */
static struct kefa_rpeer *kefa_ident_local(struct kefa_rdm *rdm, const struct kefa_src *src)
{
	struct kefa_rpeer *peer = kefa_peers_by_conn(&rdm->peers, src);

	if (peer && peer->flags & KEFA_RPEER_LOCAL) {
		/* As in kefa_ident_confirm(). */
		peer->flags |= KEFA_RPEER_SURE;
		rdm->peers.last = peer;
	}
	return peer;
}

static bool kefa_ident_find(struct kefa_rdm *rdm, const struct kefa_pkt *pkt,
			    const struct kefa_src *src, bool parked, struct kefa_rpeer **sender)
{
	struct kefa_domain *dom = rdm->ep.dom;
	struct kefa_src more = *src;
	u8 owner[FI_EFA_GID_LEN];
	struct kefa_rpeer *peer;

	if (unlikely(src->local)) {
		*sender = kefa_ident_local(rdm, src);
		return true;
	}
	peer = kefa_peers_by_src(&rdm->peers, src);
	/* Another endpoint may have learned that the number isn't the peer's. */
	if (peer && !(peer->flags & KEFA_RPEER_SURE) &&
	    READ_ONCE(peer->ah->slid) != src->slid) {
		kefa_peers_unbind(&rdm->peers, peer);
		kefa_rdm_unseat(rdm, peer);
		peer = NULL;
	}
	*sender = peer;
	if (peer)
		return kefa_ident_bound(pkt, src, peer);
	if (kefa_slid_owner(dom, src->slid, owner))
		more.owner = owner;
	peer = kefa_peers_by_conn(&rdm->peers, &more);
	*sender = peer;
	if (peer && unlikely(peer->flags & KEFA_RPEER_LOCAL))
		return false;
	/* A parked packet without a number claims a GID that fitted when the packet arrived. */
	if ((peer || src->gid) && !(parked && src->slid == KEFA_NO_SLID) &&
	    !kefa_slid_fits(dom, src->slid, peer ? peer->gid : src->gid))
		return false;
	return !peer || kefa_ident_named(rdm, pkt, src, peer, parked);
}

/**
 * kefa_rdm_sender() - find the sender of a packet
 * @rdm: the endpoint
 * @pkt: the packet
 * @src: description of the sender
 * @parked: the packet arrived some time ago, and was parked since
 * @sender: takes the sender, or NULL if it is unknown
 *
 * Context: Under kefa_ep.lock.
 * Return: false, after counting it, if the packet can't be from the sender that it names. Then the
 * caller drops it.
 */
bool kefa_rdm_sender(struct kefa_rdm *rdm, const struct kefa_pkt *pkt,
		     const struct kefa_src *src, bool parked, struct kefa_rpeer **sender)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (likely(kefa_ident_find(rdm, pkt, src, parked, sender)))
		return true;
	kefa_rdm_liar(rdm, src);
	return false;
}

/**
 * kefa_rdm_liar() - count a packet that can't be from the sender that it names, and is dropped
 * @rdm: the endpoint
 * @src: description of the sender
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_liar(struct kefa_rdm *rdm, const struct kefa_src *src)
{
	static const u8 none[FI_EFA_GID_LEN];

	rdm->peers.stats.liars++;
	rdm->stats.dropped[KEFA_DROP_LIAR]++;
	trace_kefa_liar(&rdm->ep, src->slid, src->qpn, src->connid, src->gid ?: none);
}

/**
 * kefa_rdm_recall() - find an unknown sender among the peers that are gone
 * @rdm: the endpoint
 * @src: description of the sender, which kefa_rdm_sender() didn't find
 * @gid: takes the GID of the sender's device
 *
 * For packets without a raw address, of a peer that was evicted or removed.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it was found.
 */
bool kefa_rdm_recall(struct kefa_rdm *rdm, const struct kefa_src *src, u8 *gid)
{
	struct kefa_src more = *src;
	u8 owner[FI_EFA_GID_LEN];

	if (kefa_slid_owner(rdm->ep.dom, src->slid, owner))
		more.owner = owner;
	return kefa_peers_recall(&rdm->peers, &more, gid) &&
	       (src->local || kefa_slid_fits(rdm->ep.dom, src->slid, gid));
}
