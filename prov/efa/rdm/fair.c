// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shares of peers. A message whose rest its sender still has to send holds a receive of the ULP, or
 * an operation if it is in a multi-receive buffer. A peer that never sends the rest must not hold
 * all of them. So a peer may hold three quarters of the receives that the ULP has posted, and of
 * the operations for multi-receive buffers; all peers in no address vector together may hold
 * half. The next message in several packets of a peer that holds its share waits until one
 * ends. If a message of a peer in no address vector makes no progress for a long time, the peer is
 * dead. The ULP can cancel a receive from any other peer.
 */
#include "rdm.h"

/**
 * kefa_fair_init() - initialize the shares of an endpoint's peers
 * @rdm: the endpoint
 *
 * Context: Any.
 */
void kefa_fair_init(struct kefa_rdm *rdm)
{
	INIT_LIST_HEAD(&rdm->fair.untold);
	rdm->fair.stall = KEFA_STALL_MS / KEFA_SILENT_MS;
}

/* Return: the number of @all that a peer, or all peers in no address vector, may hold. */
static u32 kefa_share(u32 all, bool implicit)
{
	return max(implicit ? all / 2 : all - all / 4, 1U);
}

/**
 * kefa_fair_may_begin() - slow part of kefa_may_begin()
 * @rdm: the endpoint
 * @peer: the peer
 *
 * Context: Under kefa_ep.lock.
 * Return: whether the peer may begin a message in several packets.
 */
bool kefa_fair_may_begin(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	const bool implicit = peer->flags & KEFA_RPEER_IMPLICIT;
	const u32 recvs = kefa_share(rdm->ep.rx.base.size - rdm->ep.rx.nfree, implicit);
	const u32 spare = kefa_share(KEFA_RDM_SPARE_OPS, implicit);
	const struct kefa_rop *rop;
	u32 i, n[2] = { };

	lockdep_assert_held(&rdm->ep.lock);
	if (rdm->peers.count < 2 || (!implicit && peer->nops < min(recvs, spare)))
		return true;
	for (i = 0; i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (!rop->begun || (implicit ? !(rop->peer->flags & KEFA_RPEER_IMPLICIT) :
					       rop->peer != peer))
			continue;
		/* The ULP has its completion of a receive that was cancelled. */
		n[rop->flags & KEFA_ROP_PART || rop->state == KEFA_ROP_SINK]++;
	}
	return n[0] < recvs && n[1] < spare;
}

/**
 * kefa_rop_wait() - note that the peer has to send the rest of a message
 * @rdm: the endpoint, enabled
 * @rop: receive of the message
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rop_wait(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	lockdep_assert_held(&rdm->ep.lock);
	rdm->fair.begun += !rop->begun;
	rop->begun = true;
	kefa_silent_arm(rdm);
}

/**
 * kefa_rop_waited() - note that the peer needn't send any more of a message
 * @rdm: the endpoint
 * @rop: receive of the message
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rop_waited(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	lockdep_assert_held(&rdm->ep.lock);
	rdm->fair.begun -= rop->begun;
	rop->begun = false;
}

/**
 * kefa_fair_check() - give up peers in no address vector whose messages make no progress
 * @rdm: the endpoint, enabled
 *
 * Called each KEFA_SILENT_MS while operations wait for peers.
 *
 * Context: Under kefa_ep.lock. kefa_rdm_pump() is due.
 */
void kefa_fair_check(struct kefa_rdm *rdm)
{
	struct kefa_rop *rop;
	u32 i;

	lockdep_assert_held(&rdm->ep.lock);
	for (i = 0; i < rdm->rops.size && rdm->fair.begun; i++) {
		rop = &rdm->rops.ops[i];
		if (!rop->begun || !(rop->peer->flags & KEFA_RPEER_IMPLICIT) ||
		    kefa_rpeer_dead(rop->peer))
			continue;
		rop->idle = rop->sent == rop->done ? rop->idle + 1 : 0;
		rop->sent = rop->done;
		if (rop->idle < rdm->fair.stall)
			continue;
		rdm->stats.stalled++;
		kefa_rdm_kill(rdm, rop->peer, ETIMEDOUT, 0);
	}
}
