// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Insertion, removal and death of peers. An inserted address is a peer at once. The death of a peer
 * fails all operations with it, but its complete messages stay.
 */
#include <linux/slab.h>
#include "../ah.h"
#include "../dev.h"
#include "../trace.h"
#include "local.h"
#include "rdm.h"
#include "strange.h"
#include "tx.h"

/* --- the end of operations --- */

/* Return: whether the peer has read the message and only its invalidation is outstanding. */
static bool kefa_rop_was_read(const struct kefa_rop *rop)
{
	return rop->state == KEFA_ROP_INVAL && kefa_row_of(rop->type)->flags & KEFA_ROW_READ;
}

/* Fail a send. If its memory is registered, it ends with the registration. */
static void kefa_rop_fail_tx(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 prov)
{
	const bool was_read = kefa_rop_was_read(rop);

	if (rop->source && (was_read || rop->state == KEFA_ROP_DYING))
		return;
	list_del_init(&rop->link);
	list_del_init(&rop->peer_link);
	rop->owes = 0;
	if (rop->state != KEFA_ROP_DYING)
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_DYING);
	kefa_source_release(rdm, rop);
	kefa_rdm_end_tx(rdm, rop, was_read ? 0 : err, prov);
}

/* Fail a receive. Its completion waits for the device's reads, which write to its memory. */
static void kefa_rop_fail_rx(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 prov)
{
	const u32 reads = BIT(KEFA_ROP_READING) | BIT(KEFA_ROP_NACKED) | BIT(KEFA_ROP_SINK);
	const bool read = reads & BIT(rop->state) && rop->wrs;

	list_del_init(&rop->link);
	rop->owes = 0;
	if (rop->more & KEFA_ROP_TARGET)
		kefa_target_end(rdm, rop, false);
	/* If its completion waits for room, it has its result: the message has arrived, or not. */
	if (!kefa_rop_untold(rop) && rop->state != KEFA_ROP_DYING) {
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_DYING);
		kefa_rop_waited(rdm, rop);
		kefa_index_del(&rdm->msgs, &rop->msg);
		kefa_rop_unhold(rdm, rop);
		if (read) {
			rop->err = err;
			rop->prov = prov;
		} else {
			kefa_rdm_tell_rx(rdm, rop, err, prov);
		}
	}
	rop->flags |= KEFA_ROP_OVER;
	kefa_rdm_end(rdm, rop);
}

/**
 * kefa_rop_fail() - fail an operation
 * @rdm: the endpoint
 * @rop: the operation, which has a peer; its slot stays in use as long as the device has work
 *	requests of it
 * @err: positive errno
 * @prov: status of the device
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rop_fail(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 prov)
{
	if (rop->flags & KEFA_ROP_TX)
		kefa_rop_fail_tx(rdm, rop, err, prov);
	else
		kefa_rop_fail_rx(rdm, rop, err, prov);
}

/* Fail all operations with a peer. This is rare, so peers have no list of their operations. */
static void kefa_fail_rops(struct kefa_rdm *rdm, const struct kefa_rpeer *peer, int err, u32 prov)
{
	struct kefa_rop *rop;
	u32 i;

	for (i = 0; rdm->enabled && i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (rop->state != KEFA_ROP_FREE && rop->state != KEFA_ROP_LISTED &&
		    rop->peer == peer)
			kefa_rop_fail(rdm, rop, err, prov);
	}
}

/**
 * kefa_rdm_fail_directed() - fail the ULP's directed receives from a peer
 * @rdm: the endpoint
 * @peer: the peer
 * @err: positive errno
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_fail_directed(struct kefa_rdm *rdm, const struct kefa_rpeer *peer, int err)
{
	struct kefa_rop *rop;
	u32 i;

	lockdep_assert_held(&rdm->ep.lock);
	for (i = 0; rdm->enabled && i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (rop->state != KEFA_ROP_LISTED || rop->recv.link.src != peer->id)
			continue;
		kofi_match_remove(&rdm->match, &rop->recv);
		kefa_rdm_unposted(rdm, rop, err);
	}
}

/*
 * Fail all packets to a peer. Parked ones are freed, so the peer never gets them; those that the
 * device has are freed when it completes them.
 */
static void kefa_fail_packets(struct kefa_rdm *rdm, struct kefa_rpeer *peer, int err, u32 prov)
{
	struct kefa_rop *rop;
	struct kefa_ts *ts;
	u32 i;

	for (i = 0; rdm->ts && i < rdm->nts; i++) {
		ts = &rdm->ts[i];
		if (ts->state == KEFA_TS_FREE || ts->peer != peer)
			continue;
		kefa_ts_fail(rdm, ts, err, prov);
		if (ts->state != KEFA_TS_PARKED)
			continue;
		rop = ts->rop;
		/* The peer handles no later message before this one, if it has a number. */
		if (!ts->what && ts->type && kefa_row_of(ts->type)->flags & KEFA_ROW_ORDERED)
			peer->flags |= KEFA_RPEER_LOST;
		kefa_ts_free(rdm, ts);
		if (!rop)
			continue;
		rop->wrs--;
		kefa_rdm_end(rdm, rop);
	}
}

/* Drop the incomplete messages and the requests of a peer; with @all, all of its messages. */
static void kefa_fail_msgs(struct kefa_rdm *rdm, struct kefa_rpeer *peer, bool all,
			   enum kefa_drop why)
{
	struct kofi_match_msg *msg, *next_msg;
	struct kefa_held *held, *next;
	int i;

	if (!rdm->enabled)
		return;
	list_for_each_entry_safe(held, next, &rdm->early, link)
		if (held->peer == peer) {
			/* The peer won't send it again, and its later messages wait for it. */
			peer->flags |= KEFA_RPEER_LOST;
			kefa_rdm_drop(rdm, peer, why);
			kefa_msg_drop(rdm, held);
		}
	/* A write by the device, without a packet, is complete. */
	list_for_each_entry_safe(held, next, &rdm->asked, link)
		if (held->peer == peer && (all || held->len)) {
			kefa_rdm_drop(rdm, peer, why);
			kefa_msg_drop(rdm, held);
		}
	for (i = 0; i < KOFI_MATCH_LISTS; i++)
		list_for_each_entry_safe(msg, next_msg, &rdm->match.msgs[i], list) {
			held = container_of(msg, struct kefa_held, msg);
			if (held->peer != peer || (!all && held->done == held->total))
				continue;
			kefa_rdm_drop(rdm, peer, why);
			kefa_msg_drop(rdm, held);
		}
}

static void kefa_rpeer_quiet(struct kefa_rdm *rdm, struct kefa_rpeer *peer, int err, u32 prov)
{
	kefa_backoff_end(&rdm->backoffs, &peer->backoff);
	peer->owes = 0;
	list_del_init(&peer->todo);
	kefa_fail_packets(rdm, peer, err, prov);
	kefa_fail_rops(rdm, peer, err, prov);
}

/* Let the connections know that use the peer. */
static void kefa_rdm_tell_dead(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (rdm->watch && peer->addr != KEFA_NO_ADDR)
		rdm->watch->peer_dead(rdm->watch, peer->addr);
}

/**
 * kefa_rdm_kill() - mark a peer as dead, and have kefa_rdm_reap() fail its operations
 * @rdm: the endpoint
 * @peer: the peer, with an address handle; does nothing if it is dead already
 * @err: positive errno of its failed operations
 * @prov: status of the device for its failed operations
 *
 * Nothing is freed here, so callers can go on using the peer, its operations and send slots.
 *
 * Context: Under kefa_ep.lock. The pump is due.
 */
void kefa_rdm_kill(struct kefa_rdm *rdm, struct kefa_rpeer *peer, int err, u32 prov)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (peer->state >= KEFA_RPEER_DYING || peer->state == KEFA_RPEER_STRANGER)
		return;
	rdm->stats.deaths++;
	trace_kefa_rpeer(&rdm->ep, peer->id, kefa_rpeer_qpn(peer), "dead", err);
	kefa_rpeer_set_state(&rdm->peers, peer, KEFA_RPEER_DYING);
	peer->err = err;
	peer->prov = prov;
	kefa_rdm_tell_dead(rdm, peer);
	peer->owes = 0;
	kefa_backoff_end(&rdm->backoffs, &peer->backoff);
	list_move_tail(&peer->todo, &rdm->dying);
	rdm->reap = true;
	rdm->waits = true;
	/* Have the worker run the pump, and notify readers of the completions. */
	kefa_ep_kick(&rdm->ep);
}

/* Fail the operations of a marked peer, and drop its incomplete messages. */
static void kefa_rpeer_die(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	kefa_rpeer_set_state(&rdm->peers, peer, KEFA_RPEER_DEAD);
	kefa_rpeer_quiet(rdm, peer, peer->err, peer->prov);
	/* No other peer can complete them. */
	kefa_rdm_fail_directed(rdm, peer, peer->err);
	kefa_fail_msgs(rdm, peer, false, KEFA_DROP_GONE);
	kefa_rdm_put_wr(rdm, peer);
	/* Notify callers that got -EAGAIN: their sends to this peer fail now. */
	rdm->ep.tx.room |= rdm->ep.tx.wanted;
}

/**
 * kefa_rdm_reap() - fail what the device has refused, and bury the peers that have died
 * @rdm: the endpoint
 *
 * This is the only place where the death of a peer ends operations and frees send slots. It posts
 * nothing.
 *
 * Context: Under kefa_ep.lock. The caller uses no operation, slot or packet of any peer.
 */
void kefa_rdm_reap(struct kefa_rdm *rdm)
{
	struct kefa_rpeer *peer;
	bool more;

	lockdep_assert_held(&rdm->ep.lock);
	do {
		more = kefa_tx_reap(rdm);
		while ((peer = list_first_entry_or_null(&rdm->dying, struct kefa_rpeer, todo)))
			kefa_rpeer_die(rdm, peer);
	} while (more);
	rdm->reap = false;
}

/*
 * Return: of the peers whose early packets wait for a late one, or until the peer takes answers,
 * the one that uses most memory.
 */
static struct kefa_rpeer *kefa_worst_early(struct kefa_rdm *rdm)
{
	struct kefa_rpeer *worst = NULL, *last = NULL;
	struct kefa_held *held;

	list_for_each_entry(held, &rdm->early, link) {
		if (held->peer == last && rdm->ordered)
			continue;
		last = held->peer;
		if ((!worst || last->kept > worst->kept) && !kefa_early_waits(rdm, held))
			worst = last;
	}
	return worst;
}

/*
 * Return: of the peers whose messages and requests are kept, the one that uses most memory; NULL if
 * writes by unknown peers use more.
 */
static struct kefa_rpeer *kefa_worst_unexpected(struct kefa_rdm *rdm)
{
	struct kefa_rpeer *worst = NULL;
	struct kofi_match_msg *msg;
	struct kefa_held *held;
	u64 unknown = 0;
	int i;

	for (i = 0; i < KOFI_MATCH_LISTS; i++)
		list_for_each_entry(msg, &rdm->match.msgs[i], list) {
			held = container_of(msg, struct kefa_held, msg);
			if (!worst || held->peer->kept > worst->kept)
				worst = held->peer;
		}
	list_for_each_entry(held, &rdm->asked, link) {
		if (!held->peer)
			unknown += held->cost;
		else if (!worst || held->peer->kept > worst->kept)
			worst = held->peer;
	}
	return worst && worst->kept >= unknown ? worst : NULL;
}

/*
 * Return: of the peers whose requests wait until they take answers, and that have taken none for
 * KEFA_UNREADY_CHECKS checks, the one that uses most memory; NULL unless these requests use more
 * than half of the budget.
 */
static struct kefa_rpeer *kefa_worst_unready(struct kefa_rdm *rdm)
{
	struct kefa_rpeer *worst = NULL;
	struct kefa_held *held;
	u64 all = 0;

	if (rdm->kept - rdm->fair.early < rdm->budget)
		return NULL;
	list_for_each_entry(held, &rdm->asked, link) {
		if (!held->peer || !held->peer->answers ||
		    held->peer->backoff.checks < KEFA_UNREADY_CHECKS)
			continue;
		all += held->cost;
		if (!worst || held->peer->kept > worst->kept)
			worst = held->peer;
	}
	return all > rdm->budget / 2 ? worst : NULL;
}

static struct kefa_rpeer *kefa_worst_stranger(struct kefa_rdm *rdm)
{
	struct kefa_rpeer *peer, *worst = NULL;
	u64 all = 0;

	list_for_each_entry(peer, &rdm->peers.lru, lru) {
		all += peer->kept;
		if (!worst || peer->kept > worst->kept)
			worst = peer;
	}
	return all > rdm->budget / 2 ? worst : NULL;
}

/* Declare a peer dead, and drop its messages. Return: whether that has freed memory. */
static bool kefa_rdm_cut(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	const u64 kept = rdm->kept;

	rdm->stats.cut++;
	kefa_rdm_kill(rdm, peer, ENOBUFS, 0);
	kefa_rdm_reap(rdm);
	kefa_fail_msgs(rdm, peer, true, KEFA_DROP_FULL);
	return !WARN_ON_ONCE(rdm->kept == kept);
}

/* Return: whether early packets have used up their memory for so long that a peer must die. */
static bool kefa_late(struct kefa_rdm *rdm)
{
	struct kefa_fair *fair = &rdm->fair;
	const ktime_t now = ktime_get();

	if (fair->early < kefa_rx_most(rdm)) {
		fair->since = 0;
		return false;
	}
	fair->since = fair->since ?: now;
	return ktime_ms_delta(now, fair->since) >= KEFA_LATE_MS;
}

/* Return: whether unexpected packets have taken all receives that were posted for answers. */
static bool kefa_shut(struct kefa_rdm *rdm)
{
	return rdm->kept - rdm->fair.early >= kefa_rx_most(rdm) && kefa_rdm_awaits(rdm);
}

/**
 * kefa_rdm_relieve() - free memory that untrusted peers and early packets use
 * @rdm: the endpoint, whose kept packets use at least its budget
 *
 * If all peers in no address vector together use more than half of the budget, the one that uses
 * most is declared dead and loses its messages. So is one of those whose requests use more than
 * half, and that don't take the answers to others. Peers in the address vector may use the rest;
 * then they find no receive until the ULP has received some messages. One of them dies if nothing
 * else lets packets arrive for which the ULP waits, or for which early packets wait.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_relieve(struct kefa_rdm *rdm)
{
	struct kefa_rpeer *worst;

	lockdep_assert_held(&rdm->ep.lock);
	while (max(rdm->fair.early, rdm->kept - rdm->fair.early) >= rdm->budget) {
		worst = kefa_worst_stranger(rdm) ?: kefa_worst_unready(rdm);
		if (!worst && kefa_late(rdm))
			worst = kefa_worst_early(rdm);
		if (!worst && kefa_shut(rdm))
			worst = kefa_worst_unexpected(rdm);
		if (!worst || !kefa_rdm_cut(rdm, worst))
			return;
	}
}

/**
 * kefa_rdm_lost() - note that a message to a removed peer didn't arrive
 * @rdm: the endpoint
 * @gone: the removed peer
 *
 * If the peer was or will be inserted again, it is dead, because it waits for that message and
 * handles no later one.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_lost(struct kefa_rdm *rdm, struct kefa_rpeer *gone)
{
	struct kefa_rpeer *peer = kefa_peers_lost(&rdm->peers, gone);

	if (peer)
		kefa_rdm_kill(rdm, peer, ECONNRESET, 0);
}

/* Put the address handle of a peer to which nothing is sent any more. */
static void kefa_rpeer_put_ah(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	if (!peer->ah)
		return;
	/* The handle's number means nothing any more when the handle is destroyed. */
	kefa_peers_unbind(&rdm->peers, peer);
	kefa_ah_put(peer->ah);
	peer->ah = NULL;
}

/*
 * Put the address handle of a dead peer in no address vector. A new handle is kept for a while, so
 * that peers that die and come back don't cause commands to the device as fast as they send.
 */
static void kefa_rpeer_bury(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	if (!peer->ah || !(peer->flags & KEFA_RPEER_IMPLICIT))
		return;
	if (kefa_ah_is_new(peer->ah))
		queue_delayed_work(kefa_cmd_wq, &rdm->bury, msecs_to_jiffies(KEFA_AH_NEW_MS));
	else
		kefa_rpeer_put_ah(rdm, peer);
}

/**
 * kefa_rdm_put_wr() - free what a peer doesn't need when nothing refers to it any more
 * @rdm: the endpoint
 * @peer: the peer, one of whose work requests or operations has ended
 *
 * That is the peer itself if it is gone, and its address handle if it is dead and in no address
 * vector: the ULP's peers need the handle.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_put_wr(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (likely(peer->state < KEFA_RPEER_DEAD) || peer->wrs)
		return;
	if (peer->state == KEFA_RPEER_DEAD) {
		kefa_rpeer_bury(rdm, peer);
		return;
	}
	if (peer->nops)
		return;
	kefa_rpeer_put_ah(rdm, peer);
	kefa_rpeer_free(&rdm->peers, peer);
}

/**
 * kefa_rdm_peer_gone() - remove a peer from all tables
 * @rdm: the endpoint
 * @peer: the peer, which is freed when the device has nothing for it any more
 * @remember: the peer may come back, so keep its numbers
 * @err: positive errno of its operations
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_peer_gone(struct kefa_rdm *rdm, struct kefa_rpeer *peer, bool remember, int err)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (peer->state == KEFA_RPEER_DYING)
		kefa_rpeer_die(rdm, peer);
	trace_kefa_rpeer(&rdm->ep, peer->id, kefa_rpeer_qpn(peer), "gone", err);
	/* If the peer comes back, a HANDSHAKE to it is still due. */
	if (peer->owes & KEFA_OWES_HANDSHAKE)
		peer->flags &= ~(KEFA_RPEER_HEARD | KEFA_RPEER_TOLD);
	kefa_rpeer_quiet(rdm, peer, err, 0);
	kefa_rdm_fail_directed(rdm, peer, err);
	kefa_fail_msgs(rdm, peer, true, KEFA_DROP_GONE);
	kefa_peers_del(&rdm->peers, peer, remember);
	kefa_rdm_put_wr(rdm, peer);
}

/**
 * kefa_rdm_evict() - remove an idle or dead peer in no address vector
 * @ep: the endpoint
 *
 * Serves as kefa_ep_kind.evict. If the peer comes back it continues its numbers.
 *
 * Context: Process context, under kefa_dev.lock.
 * Return: whether there was one.
 */
bool kefa_rdm_evict(struct kefa_ep *ep)
{
	struct kefa_rdm *rdm = to_kefa_rdm(ep);
	struct kefa_rpeer *victim;

	spin_lock_bh(&ep->lock);
	victim = kefa_peers_victim(&rdm->peers);
	if (victim) {
		kefa_rdm_peer_gone(rdm, victim, true, ECANCELED);
		/* A dead one may have had the memory for which receives aren't posted. */
		kefa_ep_kick(ep);
	}
	spin_unlock_bh(&ep->lock);
	return victim;
}

/**
 * kefa_rdm_unseat() - undo what an impostor has sent in the name of a peer
 * @rdm: the endpoint
 * @peer: the peer, bound to no number
 *
 * Messages that the ULP has received can't be taken back.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_unseat(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	const u8 lost = peer->flags & KEFA_RPEER_LOST;
	struct kefa_rop *rop;
	u32 i;

	lockdep_assert_held(&rdm->ep.lock);
	rdm->peers.stats.unseated++;
	trace_kefa_rpeer(&rdm->ep, peer->id, kefa_rpeer_qpn(peer), "unseated", 0);
	if (kefa_rpeer_dead(peer))
		return;
	kefa_fail_msgs(rdm, peer, true, KEFA_DROP_LIAR);
	for (i = 0; rdm->enabled && i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (rop->state != KEFA_ROP_FREE && rop->state != KEFA_ROP_LISTED &&
		    rop->peer == peer && !(rop->flags & KEFA_ROP_TX))
			kefa_rop_fail(rdm, rop, ECONNRESET, 0);
	}
	peer->order.exp_id = peer->since_id;
	/* The messages that were lost now aren't the peer's. */
	peer->flags &= ~(KEFA_RPEER_SHAKEN | KEFA_RPEER_HEADERLESS | KEFA_RPEER_SURE |
			 KEFA_RPEER_LOST);
	peer->flags |= lost;
	if (peer->state == KEFA_RPEER_READY)
		kefa_rpeer_set_state(&rdm->peers, peer, KEFA_RPEER_SHAKING);
	kefa_ep_kick(&rdm->ep);
}

/* --- address vector --- */

/**
 * kefa_rdm_peer_add() - add the peer of an inserted address
 * @user: the endpoint as a user of the address vector
 * @peer: the address
 *
 * Serves as kefa_av_user.add.
 *
 * Context: Process context, under kefa_av.lock; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_rdm_peer_add(struct kefa_av_user *user, const struct kefa_peer *peer)
{
	struct kefa_rdm *rdm = container_of(user, struct kefa_rdm, user);
	struct kefa_ah *ah = peer->key.ah;
	struct kefa_rpeer *new, *got;
	bool had_ah;

	new = kefa_rpeer_new(&rdm->peers, ah->gid, peer->key.qpn, peer->key.qkey, peer->index);
	if (!new)
		return -ENOMEM;
	kefa_ah_use(ah);
	spin_lock_bh(&rdm->ep.lock);
	/* The address may belong to a peer that exists already. */
	got = kefa_peers_same(&rdm->peers, new);
	if (got && got->state == KEFA_RPEER_DEAD && rdm->peers.revive) {
		kefa_rdm_peer_gone(rdm, got, true, ECANCELED);
		/* As in kefa_rdm_evict(). */
		kefa_ep_kick(&rdm->ep);
		got = NULL;
	}
	had_ah = got && got->ah;
	got = kefa_peers_insert(&rdm->peers, new, ah);
	trace_kefa_rpeer(&rdm->ep, got->id, peer->key.qpn, "inserted", 0);
	if (!had_ah)
		kefa_local_meet(rdm, got);
	/* The packets of a stranger can be handled now. */
	if (got != new && !had_ah)
		mod_delayed_work(kefa_cmd_wq, &rdm->join, 0);
	if (kefa_rpeer_dead(got))
		kefa_rdm_tell_dead(rdm, got);
	spin_unlock_bh(&rdm->ep.lock);
	if (got != new)
		kefa_rpeer_free(&rdm->peers, new);
	if (had_ah)
		kefa_ah_put(ah);
	return 0;
}

/**
 * kefa_rdm_peer_del() - remove the peer of a removed address
 * @user: the endpoint as a user of the address vector
 * @peer: the address
 *
 * Serves as kefa_av_user.del. Operations with the peer fail with ECANCELED.
 *
 * Context: Process context, under kefa_av.lock; sleeps.
 */
void kefa_rdm_peer_del(struct kefa_av_user *user, const struct kefa_peer *peer)
{
	struct kefa_rdm *rdm = container_of(user, struct kefa_rdm, user);
	struct kefa_rpeer *rpeer;
	struct kefa_news news;

	spin_lock_bh(&rdm->ep.lock);
	rpeer = kefa_peers_at(&rdm->peers, peer->index);
	if (rpeer)
		kefa_rdm_peer_gone(rdm, rpeer, true, ECANCELED);
	/* Post the invalidations of regions that the peer could read from. */
	if (rdm->ep.state == KEFA_EP_ENABLED)
		kefa_rdm_pump(rdm);
	news = kefa_ep_news(&rdm->ep);
	spin_unlock_bh(&rdm->ep.lock);
	kefa_ep_tell(&rdm->ep, news, false);
}

/**
 * kefa_rdm_bury() - put address handles of dead peers that aren't new any more
 * @work: delayed work of the endpoint
 *
 * Context: Process context.
 */
void kefa_rdm_bury(struct work_struct *work)
{
	struct kefa_rdm *rdm = container_of(to_delayed_work(work), struct kefa_rdm, bury);
	struct kefa_rpeer *peer;

	spin_lock_bh(&rdm->ep.lock);
	list_for_each_entry(peer, &rdm->peers.lru, lru)
		if (peer->state == KEFA_RPEER_DEAD)
			kefa_rdm_put_wr(rdm, peer);
	spin_unlock_bh(&rdm->ep.lock);
}

/**
 * kefa_rdm_fail_all() - fail all outstanding operations, and drop all kept messages
 * @rdm: the endpoint, whose queue pair is destroyed
 * @err: positive errno of the operations
 *
 * Context: Process context, under kefa_ep.lock.
 */
void kefa_rdm_fail_all(struct kefa_rdm *rdm, int err)
{
	struct kofi_match_msg *msg;
	struct kefa_held *held;
	struct kefa_rop *rop;
	u32 i;

	lockdep_assert_held(&rdm->ep.lock);
	for (i = 0; i < rdm->nts; i++)
		if (rdm->ts[i].state != KEFA_TS_FREE)
			kefa_ts_fail(rdm, &rdm->ts[i], err, 0);
	/* The last message of a full multi-receive buffer releases it, so fail messages first. */
	for (i = 0; i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (rop->state != KEFA_ROP_FREE && rop->state != KEFA_ROP_LISTED)
			kefa_rop_fail(rdm, rop, err, 0);
	}
	for (i = 0; i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (rop->state != KEFA_ROP_LISTED)
			continue;
		kofi_match_remove(&rdm->match, &rop->recv);
		kefa_rdm_unposted(rdm, rop, err);
	}
	while ((msg = kofi_match_pop_msg(&rdm->match))) {
		held = container_of(msg, struct kefa_held, msg);
		kefa_msg_drop(rdm, held);
	}
	while ((held = list_first_entry_or_null(&rdm->early, struct kefa_held, link)))
		kefa_msg_drop(rdm, held);
	while ((held = list_first_entry_or_null(&rdm->asked, struct kefa_held, link)))
		kefa_msg_drop(rdm, held);
	while ((held = list_first_entry_or_null(&rdm->strange, struct kefa_held, link)))
		kefa_msg_drop(rdm, held);
}

/**
 * kefa_rdm_peers_fini() - free all peers
 * @rdm: the endpoint, stopped and not a user of the address vector any more
 *
 * Context: Process context; sleeps.
 */
void kefa_rdm_peers_fini(struct kefa_rdm *rdm)
{
	struct kefa_rpeer *peer;
	u32 from = 0;

	spin_lock_bh(&rdm->ep.lock);
	while ((peer = kefa_peers_any(&rdm->peers, &from))) {
		kefa_rdm_peer_gone(rdm, peer, false, ECANCELED);
		spin_unlock_bh(&rdm->ep.lock);
		cond_resched();
		spin_lock_bh(&rdm->ep.lock);
	}
	spin_unlock_bh(&rdm->ep.lock);
	kefa_peers_fini(&rdm->peers);
}
