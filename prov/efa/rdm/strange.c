// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Strangers. An unknown sender is a stranger until a worker has created its address handle, and
 * only then are its packets handled.
 */
#include <linux/slab.h>
#include "../ah.h"
#include "../dev.h"
#include "../trace.h"
#include "ident.h"
#include "local.h"
#include "rdm.h"
#include "strange.h"

/* Park a packet until its sender's address handle was created. */
static enum kefa_took kefa_packet_park(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				       struct kefa_held *held)
{
	struct kefa_held *kept;

	/* A stranger that has lost a packet will be dead, as its later ones would wait for it. */
	if (rdm->strange_kept >= rdm->budget / 2) {
		if (peer)
			peer->flags |= KEFA_RPEER_LOST;
		kefa_rdm_drop(rdm, peer, KEFA_DROP_FULL);
		return KEFA_TOOK_DONE;
	}
	/* Within that, the budget is ignored: the sender wouldn't repeat the packet. */
	kept = kefa_keep_packet(rdm, held, NULL);
	kept->where = KEFA_HELD_STRANGE;
	rdm->strange_kept += kept->cost;
	list_add_tail(&kept->link, &rdm->strange);
	/* Leave the delay after a failure alone: the number of attempts is limited. */
	queue_delayed_work(kefa_cmd_wq, &rdm->join, 0);
	return kept == held ? KEFA_TOOK_KEPT : KEFA_TOOK_DONE;
}

/**
 * kefa_packet_strange() - handle a packet of a sender without an address handle
 * @rdm: the endpoint
 * @peer: the sender, in KEFA_RPEER_STRANGER, or NULL
 * @src: description of the sender
 * @held: the packet
 *
 * Context: Under kefa_ep.lock.
 * Return: whether the packet was kept.
 */
enum kefa_took kefa_packet_strange(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				   const struct kefa_src *src, struct kefa_held *held)
{
	u8 gid[FI_EFA_GID_LEN];

	if (peer || src->gid || kefa_rdm_recall(rdm, src, gid))
		return kefa_packet_park(rdm, peer, held);
	kefa_rdm_drop(rdm, NULL, KEFA_DROP_STRANGER);
	return KEFA_TOOK_DONE;
}

static struct kefa_ah *kefa_stranger_ah(struct kefa_rdm *rdm, const u8 *gid)
{
	struct kefa_dev *dev = rdm->ep.dom->dev;
	struct kefa_ah *ah;

	kefa_dev_lock(dev);
	ah = kefa_ah_get(rdm->ep.dom, gid);
	kefa_dev_unlock(dev);
	return ah;
}

/* Drop all parked packets of a stranger. */
static void kefa_strange_drop(struct kefa_rdm *rdm, u64 conn, const u8 *gid)
{
	struct kefa_held *held, *next;
	struct kefa_src src;
	struct kefa_pkt pkt;

	lockdep_assert_held(&rdm->ep.lock);
	list_for_each_entry_safe(held, next, &rdm->strange, link) {
		kefa_parse(held->buf, held->len, &pkt);
		kefa_pkt_src(&pkt, held, &src);
		if (((u64)src.qpn << 32 | src.connid) != conn ||
		    (src.gid && memcmp(src.gid, gid, FI_EFA_GID_LEN)))
			continue;
		kefa_strange_take(rdm, held);
		kefa_rdm_drop(rdm, NULL, KEFA_DROP_NO_AH);
		kefa_held_free(rdm, held);
	}
}

/* Accept a stranger, and evict other peers to make room for it if necessary. */
static int kefa_stranger_accept(struct kefa_rdm *rdm, struct kefa_rpeer *peer, struct kefa_ah *ah)
{
	struct kefa_rpeer *victim;
	int ret;

	ret = kefa_peers_accept(&rdm->peers, peer, ah);
	if (ret != -ENOSPC)
		return ret;
	victim = kefa_peers_victim(&rdm->peers);
	if (!victim)
		return ret;
	kefa_rdm_peer_gone(rdm, victim, true, ECANCELED);
	return kefa_peers_accept(&rdm->peers, peer, ah);
}

/*
 * A stranger without an address handle is dead: its parked packets are dropped, and all later
 * ones, too, because they would wait for these.
 *
 * Return: whether the peer has taken the reference of @ah.
 */
static bool kefa_stranger_connect(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				  struct kefa_ah *ah)
{
	int ret = PTR_ERR_OR_ZERO(ah);

	lockdep_assert_held(&rdm->ep.lock);
	if (!ret)
		ret = kefa_stranger_accept(rdm, peer, ah);
	trace_kefa_rpeer(&rdm->ep, peer->id, kefa_rpeer_qpn(peer), "met", ret);
	if (!ret) {
		kefa_local_meet(rdm, peer);
		/* It may have been dead before. */
		kefa_rdm_put_wr(rdm, peer);
		return true;
	}
	kefa_strange_drop(rdm, peer->by_conn.key, peer->gid);
	peer->flags |= KEFA_RPEER_LOST;
	kefa_rdm_peer_gone(rdm, peer, true, -ret);
	return false;
}

/* Sender of a parked packet. */
struct kefa_stranger {
	u8	gid[FI_EFA_GID_LEN];
	u32	qpn;
	u32	connid;
	u16	slid;
	bool	local;
};

/*
 * Handle the first parked packet if its sender is known by now, or drop it if its sender can't be
 * identified any more. Return: whether it is a stranger's; then it stays, and @who is set.
 */
static bool kefa_strange_first(struct kefa_rdm *rdm, struct kefa_held *held,
			       struct kefa_stranger *who)
{
	struct kefa_rpeer *peer;
	struct kefa_src src;
	struct kefa_pkt pkt;

	lockdep_assert_held(&rdm->ep.lock);
	kefa_parse(held->buf, held->len, &pkt);
	kefa_pkt_src(&pkt, held, &src);
	if (!kefa_rdm_sender(rdm, &pkt, &src, true, &peer)) {
		kefa_strange_take(rdm, held);
		kefa_held_free(rdm, held);
		return false;
	}
	if (peer && peer->state != KEFA_RPEER_STRANGER) {
		kefa_strange_take(rdm, held);
		kefa_rdm_packet(rdm, held);
		return false;
	}
	who->qpn = src.qpn;
	who->connid = src.connid;
	who->slid = src.slid;
	who->local = src.local;
	if (src.gid) {
		memcpy(who->gid, src.gid, sizeof(who->gid));
		return true;
	}
	if (kefa_rdm_recall(rdm, &src, who->gid))
		return true;
	kefa_strange_take(rdm, held);
	kefa_rdm_drop(rdm, NULL, KEFA_DROP_STRANGER);
	kefa_held_free(rdm, held);
	return false;
}

/*
 * Make room for a stranger whose address handle nothing has confirmed, as its GID may be invented:
 * one command creates the handle, another one destroys it. Return: false to wait until the oldest
 * such peer has had the time to confirm its own.
 */
static bool kefa_stranger_room(struct kefa_rdm *rdm, const struct kefa_stranger *who)
{
	struct kefa_rpeer *peer, *victim = NULL;
	u8 owner[FI_EFA_GID_LEN];
	u32 unsure = 0;

	lockdep_assert_held(&rdm->ep.lock);
	if (who->local || kefa_slid_owner(rdm->ep.dom, who->slid, owner))
		return true;
	list_for_each_entry(peer, &rdm->peers.lru, lru) {
		if (!peer->ah || peer->local || READ_ONCE(peer->ah->sure) ||
		    kefa_rpeer_before(peer) != KEFA_NO_SLID)
			continue;
		unsure++;
		if (!victim && !kefa_ah_is_new(peer->ah))
			victim = peer;
	}
	if (unsure < KEFA_UNSURE_MAX)
		return true;
	if (victim) {
		rdm->peers.stats.evicted++;
		kefa_rdm_peer_gone(rdm, victim, true, ECANCELED);
	}
	return victim;
}

/* Return: whether to try again later to create an address handle, after this error. */
static bool kefa_stranger_later(struct kefa_rdm *rdm, int err)
{
	const bool passes = err == -ENOMEM || err == -EAGAIN || err == -EBUSY || err == -EINTR;

	if (!passes || ++rdm->join_tries >= KEFA_JOIN_TRIES) {
		rdm->join_tries = 0;
		return false;
	}
	return true;
}

/* Handle a stranger after its address handle was created or failed. */
static bool kefa_stranger_met(struct kefa_rdm *rdm, const struct kefa_stranger *who,
			      struct kefa_rpeer *peer, struct kefa_ah *ah)
{
	if (peer && peer->state == KEFA_RPEER_STRANGER)
		return kefa_stranger_connect(rdm, peer, ah);
	/* If the peer is known by now, its parked packets are handled next. */
	if (!peer)
		kefa_strange_drop(rdm, (u64)who->qpn << 32 | who->connid, who->gid);
	return false;
}

/*
 * Create a stranger's peer and address handle. Called without the lock, because it sleeps. Return:
 * false to go on, or try again, after a delay: commands that fail cost as much as others.
 */
static bool kefa_stranger_meet(struct kefa_rdm *rdm, const struct kefa_stranger *who)
{
	struct kefa_rpeer *new, *peer = NULL;
	bool connected = false, later = false;
	struct kefa_ah *ah;

	new = kefa_rpeer_new(&rdm->peers, who->gid, who->qpn, who->connid, KEFA_NO_ADDR);
	ah = new ? kefa_stranger_ah(rdm, who->gid) : ERR_PTR(-ENOMEM);
	if (IS_ERR(ah))
		later = kefa_stranger_later(rdm, PTR_ERR(ah));
	else
		rdm->join_tries = 0;
	spin_lock_bh(&rdm->ep.lock);
	if (rdm->ep.state == KEFA_EP_ENABLED && !later) {
		peer = new ? kefa_peers_meet(&rdm->peers, new) : NULL;
		connected = kefa_stranger_met(rdm, who, peer, ah);
	}
	spin_unlock_bh(&rdm->ep.lock);
	if (!connected && !IS_ERR(ah))
		kefa_ah_put(ah);
	if (peer != new)
		kefa_rpeer_free(&rdm->peers, new);
	return !IS_ERR(ah);
}

/* Handle one parked packet or stranger. Return: whether there may be more to do now. */
static bool kefa_join_one(struct kefa_rdm *rdm)
{
	bool strange = false, room = true;
	struct kefa_stranger who;
	struct kefa_news news;
	struct kefa_held *held = NULL;

	spin_lock_bh(&rdm->ep.lock);
	if (rdm->ep.state == KEFA_EP_ENABLED) {
		held = list_first_entry_or_null(&rdm->strange, struct kefa_held, link);
		strange = held && kefa_strange_first(rdm, held, &who);
		room = !strange || kefa_stranger_room(rdm, &who);
		/* Also after the last one, as packets that were dropped have freed memory. */
		kefa_rdm_pump(rdm);
	}
	news = kefa_ep_news(&rdm->ep);
	spin_unlock_bh(&rdm->ep.lock);
	kefa_ep_tell(&rdm->ep, news, false);
	if (!strange || (room && kefa_stranger_meet(rdm, &who)))
		return held;
	queue_delayed_work(kefa_cmd_wq, &rdm->join, msecs_to_jiffies(KEFA_JOIN_RETRY_MS));
	return false;
}

/**
 * kefa_rdm_join() - create address handles for strangers
 * @work: delayed work of the endpoint
 *
 * Context: Process context; sleeps.
 */
void kefa_rdm_join(struct work_struct *work)
{
	struct kefa_rdm *rdm = container_of(to_delayed_work(work), struct kefa_rdm, join);
	unsigned int n;

	for (n = 0; n < KEFA_DRAIN_MAX; n++)
		if (!kefa_join_one(rdm))
			return;
	/* Other work of this CPU waits until this function returns, and closing until it ends. */
	queue_delayed_work(kefa_cmd_wq, &rdm->join, 0);
}
