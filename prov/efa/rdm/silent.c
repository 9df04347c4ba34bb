// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Peers that have fallen silent. An operation may wait for a peer while the device has no packet
 * for that peer, so nothing would show that the peer is gone. Such a peer is sent a packet without
 * effect, the one that asks for a HANDSHAKE, and the device reports whether the peer took it. A
 * peer that takes it is alive, however long the operation takes.
 *
 * But a peer sends its HANDSHAKE only once. If it was lost, nothing else would end the wait: a peer
 * that owes it for too long is dead.
 */
#include "rdm.h"

/* States in which an operation waits for the peer. */
#define KEFA_ITS_TURN	(BIT(KEFA_ROP_GRANT) | BIT(KEFA_ROP_ACK) | BIT(KEFA_ROP_DATA_RX) | \
			 BIT(KEFA_ROP_NACKED) | BIT(KEFA_ROP_SINK))

/*
 * An operation that enters one of these states, or waits for a HANDSHAKE, calls kefa_silent_arm(),
 * unless it comes from another of them. An injected message is no operation while it waits for a
 * HANDSHAKE, because its call is refused: kefa_rdm.refused.
 */
static bool kefa_waits_for_peer(const struct kefa_rop *rop)
{
	if (rop->state == KEFA_ROP_WAIT)
		return rop->peer->state == KEFA_RPEER_SHAKING;
	return KEFA_ITS_TURN & BIT(rop->state);
}

/**
 * kefa_silent_arm() - start to watch peers, as the ULP waits for one
 * @rdm: the endpoint, enabled
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_silent_arm(struct kefa_rdm *rdm)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (rdm->listening)
		return;
	rdm->listening = true;
	queue_delayed_work(kefa_wq, &rdm->silent, msecs_to_jiffies(rdm->check_ms));
}

/* Return: the next peer from @i on in the address vector that owes its HANDSHAKE, or NULL. */
static struct kefa_rpeer *kefa_silent_shaking(const struct kefa_rdm *rdm, u32 *i)
{
	struct kefa_rpeer *peer;

	while (*i < rdm->peers.size) {
		peer = rdm->peers.at[(*i)++];
		if (peer && peer->state == KEFA_RPEER_SHAKING)
			return peer;
	}
	return NULL;
}

/* Return: the next operation from @i on that waits for its peer, or NULL. */
static struct kefa_rop *kefa_silent_next(struct kefa_rdm *rdm, u32 *i)
{
	struct kefa_rop *rop;

	while (*i < rdm->rops.size) {
		rop = &rdm->rops.ops[(*i)++];
		if (rop->state != KEFA_ROP_FREE && rop->state != KEFA_ROP_LISTED &&
		    kefa_waits_for_peer(rop))
			return rop;
	}
	return NULL;
}

/* Count a check of a peer that owes its HANDSHAKE. Return: false if that was the last one. */
static bool kefa_silent_count(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	if (peer->state != KEFA_RPEER_SHAKING || !rdm->shake_checks ||
	    ++peer->checks < rdm->shake_checks)
		return true;
	kefa_rdm_kill(rdm, peer, ETIMEDOUT, 0);
	return false;
}

/* Return: whether the peer is dead, or the device has a packet for it, or will have. */
static bool kefa_silent_busy(const struct kefa_rpeer *peer)
{
	return kefa_rpeer_dead(peer) || peer->wrs || peer->backoff.waiting ||
	       peer->owes & KEFA_OWES_TRIGGER;
}

/*
 * Ask a peer for a sign of life, unless it has sent a packet since the last check, or the device
 * has a packet for it, whose completion will show whether the peer is gone.
 */
static void kefa_silent_ask(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	if (!(peer->flags & KEFA_RPEER_SILENT) || kefa_silent_busy(peer) ||
	    !kefa_silent_count(rdm, peer))
		return;
	peer->owes |= KEFA_OWES_TRIGGER;
	rdm->stats.asked++;
	kefa_rdm_todo(rdm, peer);
}

/**
 * kefa_rdm_awaits() - check whether the ULP waits for packets of any peer
 * @rdm: the endpoint, enabled
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it does, with an operation or an injected message that was refused.
 */
bool kefa_rdm_awaits(struct kefa_rdm *rdm)
{
	struct kefa_rop *rop;
	u32 i = 0;

	lockdep_assert_held(&rdm->ep.lock);
	/* The operations of peers are no reason to give up another peer. */
	while ((rop = kefa_silent_next(rdm, &i)))
		if (!(rop->more & KEFA_ROP_TARGET))
			return true;
	return rdm->refused;
}

static void kefa_silent_ask_all(struct kefa_rdm *rdm)
{
	struct kefa_rpeer *peer;
	struct kefa_rop *rop;
	u32 i = 0;

	while ((rop = kefa_silent_next(rdm, &i)))
		kefa_silent_ask(rdm, rop->peer);
	for (i = 0; rdm->refused && (peer = kefa_silent_shaking(rdm, &i));)
		kefa_silent_ask(rdm, peer);
}

/* Note that a peer hasn't sent a packet since this check. */
static void kefa_silent_mark(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	if (peer->flags & KEFA_RPEER_SILENT)
		return;
	peer->flags |= KEFA_RPEER_SILENT;
	/* Other packets of the peer don't replace its HANDSHAKE. */
	if (!kefa_silent_busy(peer))
		kefa_silent_count(rdm, peer);
}

/* Return: whether the ULP waits for any peer, or there are reads or writes by peers to look at. */
static bool kefa_silent_look(struct kefa_rdm *rdm)
{
	bool more = kefa_targets_check(rdm);
	struct kefa_rpeer *peer;
	struct kefa_rop *rop;
	u32 i = 0;

	kefa_fair_check(rdm);
	kefa_far_check_time(rdm);
	kefa_silent_ask_all(rdm);
	while ((rop = kefa_silent_next(rdm, &i))) {
		kefa_silent_mark(rdm, rop->peer);
		more = true;
	}
	if (!rdm->refused)
		return more;
	rdm->refused = false;
	for (i = 0; (peer = kefa_silent_shaking(rdm, &i)); rdm->refused = true)
		kefa_silent_mark(rdm, peer);
	return more || rdm->refused;
}

/**
 * kefa_rdm_silent() - check that the peers that the ULP waits for are alive
 * @work: delayed work of the endpoint
 *
 * Context: Process context.
 */
void kefa_rdm_silent(struct work_struct *work)
{
	struct kefa_rdm *rdm = container_of(to_delayed_work(work), struct kefa_rdm, silent);
	struct kefa_ep *ep = &rdm->ep;
	bool more;

	spin_lock_bh(&ep->lock);
	rdm->listening = false;
	if (ep->state == KEFA_EP_ENABLED) {
		more = kefa_silent_look(rdm);
		/* An operation that has failed may have been the last one. */
		if (more || kefa_rdm_due(rdm))
			kefa_rdm_pump(rdm);
		if (more)
			kefa_silent_arm(rdm);
	}
	kefa_ep_unlock_tell(ep, false);
}
