// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Peers come and go. An address that is inserted is a peer at once. One that sends before it
 * is known is a stranger until a worker has made its address handle; only then are its
 * packets looked at. A peer that dies takes all operations with it; messages of it that have
 * arrived don't go.
 */
#include <linux/slab.h>
#include "../ah.h"
#include "../dev.h"
#include "../path.h"
#include "rdm.h"

/* --- the end of operations --- */

/* The peer has read it, and said so; only the registration may be left. */
static bool kefa_rop_was_read(const struct kefa_rop *rop)
{
	return rop->state == KEFA_ROP_INVAL && kefa_row_of(rop->type)->flags & KEFA_ROW_READ;
}

/* Nobody writes to the ULP's memory, or it is told when nobody does. */
static void kefa_rop_fail_rx(struct kefa_rdm *rdm, struct kefa_rop *rop, bool read, int err,
			     u32 prov)
{
	kefa_index_del(&rdm->msgs, &rop->msg);
	kefa_rop_unhold(rdm, rop);
	rop->flags |= KEFA_ROP_OVER;
	if (read && rop->wrs) {
		rop->err = err;
		rop->prov = prov;
	} else {
		kefa_rdm_tell_rx(rdm, rop, err, prov);
	}
	kefa_rdm_end(rdm, rop);
}

/* Its protocol is over; it stays as long as the device has packets of it. */
static void kefa_rop_fail(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 prov)
{
	const bool read = rop->state == KEFA_ROP_READING || rop->state == KEFA_ROP_NACKED;

	const bool was_read = kefa_rop_was_read(rop);

	/* It ends when its registration has. */
	if ((was_read || rop->state == KEFA_ROP_DYING) && rop->flags & KEFA_ROP_TX && rop->source)
		return;
	list_del_init(&rop->link);
	list_del_init(&rop->peer_link);
	rop->owes = 0;
	if (rop->state == KEFA_ROP_DYING) {
		kefa_rdm_end(rdm, rop);
		return;
	}
	if (was_read)
		err = 0;
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_DYING);
	if (!(rop->flags & KEFA_ROP_TX)) {
		kefa_rop_fail_rx(rdm, rop, read, err, prov);
		return;
	}
	kefa_source_release(rdm, rop);
	kefa_rdm_end_tx(rdm, rop, err, prov);
}

/* All that there is with a peer. Rare, so that no list of it is kept. */
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

/* The ULP's receives from it alone. */
static void kefa_fail_directed(struct kefa_rdm *rdm, const struct kefa_rpeer *peer, int err)
{
	struct kefa_rop *rop;
	u32 i;

	for (i = 0; rdm->enabled && i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (rop->state != KEFA_ROP_LISTED || rop->recv.link.src != peer->id)
			continue;
		kofi_match_remove(&rdm->match, &rop->recv);
		kefa_rdm_unposted(rdm, rop, err);
	}
}

/*
 * Packets that wait to be sent again never will be: the peer is left without them. Those that
 * the device has end with it.
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
		peer->flags |= KEFA_RPEER_LOST;
		kefa_ts_free(rdm, ts);
		if (!rop)
			continue;
		rop->wrs--;
		kefa_rdm_end(rdm, rop);
	}
}

/* Of messages those that will never be whole; with @all all of them. */
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
	/* Keeps it until the end of this. */
	peer->nops++;
	kefa_backoff_end(&rdm->backoffs, &peer->backoff);
	peer->owes = 0;
	list_del_init(&peer->todo);
	kefa_fail_packets(rdm, peer, err, prov);
	kefa_fail_rops(rdm, peer, err, prov);
	peer->nops--;
}

/**
 * kefa_rdm_kill() - a peer can't be reached any more
 * @rdm: the endpoint
 * @peer: the peer, with an address handle; nothing happens if it is dead
 * @err: positive errno that its operations fail with
 * @prov: and the device's status
 *
 * Context: Under kefa_ep.lock. The caller has a use of the peer.
 */
void kefa_rdm_kill(struct kefa_rdm *rdm, struct kefa_rpeer *peer, int err, u32 prov)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (peer->state == KEFA_RPEER_DEAD || peer->state == KEFA_RPEER_GONE ||
	    peer->state == KEFA_RPEER_STRANGER)
		return;
	rdm->stats.deaths++;
	trace_kefa_rpeer(&rdm->ep, peer->id, kefa_rpeer_qpn(peer), "dead", err);
	kefa_rpeer_set_state(&rdm->peers, peer, KEFA_RPEER_DEAD);
	kefa_rpeer_quiet(rdm, peer, err, prov);
	kefa_fail_msgs(rdm, peer, false, KEFA_DROP_GONE);
	/* What can't be sent to it need not be tried again. */
	rdm->ep.tx.room |= rdm->ep.tx.wanted;
	/* Somebody has to tell. */
	kefa_ep_kick(&rdm->ep);
}

/**
 * kefa_rdm_relieve() - have those give memory back who shouldn't have it
 * @rdm: the endpoint, whose receive budget is used up
 *
 * All peers together that are in no address vector can't have most of the budget: the one
 * with the most loses its messages, and is dead. Peers in the address vector are trusted to
 * fill the rest; they find no receive then, until the ULP has taken some of it.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_relieve(struct kefa_rdm *rdm)
{
	struct kefa_rpeer *peer, *worst;
	u64 all;

	lockdep_assert_held(&rdm->ep.lock);
	while (rdm->kept >= rdm->budget) {
		worst = NULL;
		all = 0;
		list_for_each_entry(peer, &rdm->peers.lru, lru) {
			all += peer->kept;
			if (!worst || peer->kept > worst->kept)
				worst = peer;
		}
		if (all <= rdm->budget / 2)
			return;
		rdm->stats.cut++;
		kefa_rdm_kill(rdm, worst, ENOBUFS, 0);
		kefa_fail_msgs(rdm, worst, true, KEFA_DROP_FULL);
		if (WARN_ON_ONCE(worst->kept))
			return;
	}
}

/**
 * kefa_rdm_lost() - a message to a peer that was removed didn't arrive
 * @rdm: the endpoint
 * @gone: the peer
 *
 * If it was inserted again, or will be, it waits for that message, and takes none after it.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_lost(struct kefa_rdm *rdm, struct kefa_rpeer *gone)
{
	struct kefa_rpeer *peer = kefa_peers_lost(&rdm->peers, gone);

	if (peer)
		kefa_rdm_kill(rdm, peer, ECONNRESET, 0);
}

/**
 * kefa_rdm_put_wr() - the device, or an operation, needs a peer no more
 * @rdm: the endpoint
 * @peer: the peer, which is freed if it is gone and this was the last use
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_put_wr(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (likely(peer->state != KEFA_RPEER_GONE) || peer->wrs || peer->nops)
		return;
	if (peer->ah)
		kefa_ah_put(peer->ah);
	kefa_rpeer_free(&rdm->peers, peer);
}

/* It is in no table any more, and freed when the device has nothing that is for it. */
static void kefa_rdm_peer_gone(struct kefa_rdm *rdm, struct kefa_rpeer *peer, bool remember,
			       int err)
{
	lockdep_assert_held(&rdm->ep.lock);
	trace_kefa_rpeer(&rdm->ep, peer->id, kefa_rpeer_qpn(peer), "gone", err);
	/* If it comes back it is still owed one. */
	if (peer->owes & KEFA_OWES_HANDSHAKE)
		peer->flags &= ~(KEFA_RPEER_HEARD | KEFA_RPEER_TOLD);
	kefa_rpeer_quiet(rdm, peer, err, 0);
	kefa_fail_directed(rdm, peer, err);
	kefa_fail_msgs(rdm, peer, true, KEFA_DROP_GONE);
	kefa_peers_del(&rdm->peers, peer, remember);
	kefa_rdm_put_wr(rdm, peer);
}

/* --- address vector --- */

/**
 * kefa_rdm_peer_add() - an address is inserted
 * @user: of the endpoint
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
	/* It is allocated before it is known whether it is new. */
	got = kefa_peers_same(&rdm->peers, new);
	had_ah = got && got->state != KEFA_RPEER_STRANGER;
	got = kefa_peers_insert(&rdm->peers, new, ah);
	trace_kefa_rpeer(&rdm->ep, got->id, peer->key.qpn, "inserted", 0);
	/* What a stranger has sent can be looked at. */
	if (got != new && !had_ah)
		mod_delayed_work(kefa_cmd_wq, &rdm->join, 0);
	spin_unlock_bh(&rdm->ep.lock);
	if (got != new)
		kefa_rpeer_free(&rdm->peers, new);
	if (had_ah)
		kefa_ah_put(ah);
	return 0;
}

/**
 * kefa_rdm_peer_del() - an address is removed
 * @user: of the endpoint
 * @peer: the address
 *
 * Serves as kefa_av_user.del. Operations with it fail with ECANCELED.
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
	/* Regions that the peer could read from are to be taken back. */
	if (rdm->ep.state == KEFA_EP_ENABLED)
		kefa_rdm_pump(rdm);
	news = kefa_ep_news(&rdm->ep);
	spin_unlock_bh(&rdm->ep.lock);
	kefa_ep_tell(&rdm->ep, news, false);
}

/* --- strangers --- */

static struct kefa_ah *kefa_stranger_ah(struct kefa_rdm *rdm, const u8 *gid)
{
	struct kefa_dev *dev = rdm->ep.dom->dev;
	struct kefa_ah *ah;

	kefa_dev_lock(dev);
	ah = kefa_ah_get(rdm->ep.dom, gid);
	kefa_dev_unlock(dev);
	return ah;
}

/* No packet of that sender will ever be looked at. */
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
		list_del_init(&held->link);
		kefa_rdm_drop(rdm, NULL, KEFA_DROP_NO_AH);
		kefa_held_free(rdm, held);
	}
}

/* Room for one more peer that is in no address vector. */
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
 * Of a stranger that can't be met all packets are dropped, and all that come later: they
 * would wait for the first ones.
 *
 * Return: whether @ah is the peer's now.
 */
static bool kefa_stranger_connect(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				  struct kefa_ah *ah)
{
	int ret = PTR_ERR_OR_ZERO(ah);

	lockdep_assert_held(&rdm->ep.lock);
	if (!ret)
		ret = kefa_stranger_accept(rdm, peer, ah);
	trace_kefa_rpeer(&rdm->ep, peer->id, kefa_rpeer_qpn(peer), "met", ret);
	if (!ret)
		return true;
	kefa_strange_drop(rdm, peer->by_conn.key, peer->gid);
	peer->flags |= KEFA_RPEER_LOST;
	kefa_rdm_peer_gone(rdm, peer, true, -ret);
	return false;
}

/* A sender of whom there is a parked packet. */
struct kefa_stranger {
	u8	gid[FI_EFA_GID_LEN];
	u32	qpn;
	u32	connid;
	u16	slid;
};

/*
 * Look at the first parked packet: of a peer that is known by now, or whom nobody knows any
 * more. Return: whether it is a stranger's, which stays, and @who is set to whom.
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
	peer = kefa_peers_find(&rdm->peers, &src);
	if (peer && peer->state != KEFA_RPEER_STRANGER) {
		list_del_init(&held->link);
		kefa_rdm_packet(rdm, held);
		return false;
	}
	who->qpn = src.qpn;
	who->connid = src.connid;
	who->slid = src.slid;
	if (src.gid) {
		memcpy(who->gid, src.gid, sizeof(who->gid));
		return true;
	}
	if (kefa_peers_recall(&rdm->peers, &src, who->gid))
		return true;
	list_del_init(&held->link);
	kefa_rdm_drop(rdm, NULL, KEFA_DROP_STRANGER);
	kefa_held_free(rdm, held);
	return false;
}

/* There is a peer of that address. Is it the one that the device says sent the packet? */
static bool kefa_stranger_is(struct kefa_rdm *rdm, const struct kefa_stranger *who,
			     const struct kefa_rpeer *peer)
{
	const struct kefa_src src = {
		.gid		= who->gid,
		.slid		= who->slid,
		.qpn		= who->qpn,
		.connid		= who->connid,
		.has_connid	= true,
	};

	return kefa_peers_find(&rdm->peers, &src) == peer;
}

/* What may be there a little later. */
static bool kefa_stranger_later(struct kefa_rdm *rdm, int err)
{
	const bool passes = err == -ENOMEM || err == -EAGAIN || err == -EBUSY || err == -EINTR;

	if (!passes || ++rdm->join_tries >= KEFA_JOIN_TRIES) {
		rdm->join_tries = 0;
		return false;
	}
	return true;
}

/* Its address handle is there, or can't be had. */
static bool kefa_stranger_met(struct kefa_rdm *rdm, const struct kefa_stranger *who,
			      struct kefa_rpeer *peer, struct kefa_ah *ah)
{
	if (peer && peer->state == KEFA_RPEER_STRANGER)
		return kefa_stranger_connect(rdm, peer, ah);
	if (!peer || !kefa_stranger_is(rdm, who, peer))
		kefa_strange_drop(rdm, (u64)who->qpn << 32 | who->connid, who->gid);
	return false;
}

/*
 * Outside of the lock, as what it takes sleeps. Return: false if it is to be tried again, in
 * a while.
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
	return !later;
}

/* Return: whether there may be others, now. */
static bool kefa_join_one(struct kefa_rdm *rdm)
{
	struct kefa_stranger who;
	bool strange = false;
	struct kefa_news news;
	struct kefa_held *held;

	spin_lock_bh(&rdm->ep.lock);
	held = list_first_entry_or_null(&rdm->strange, struct kefa_held, link);
	if (held && rdm->ep.state == KEFA_EP_ENABLED) {
		strange = kefa_strange_first(rdm, held, &who);
		kefa_rdm_pump(rdm);
	} else {
		held = NULL;
	}
	news = kefa_ep_news(&rdm->ep);
	spin_unlock_bh(&rdm->ep.lock);
	kefa_ep_tell(&rdm->ep, news, false);
	if (!strange || kefa_stranger_meet(rdm, &who))
		return held;
	queue_delayed_work(kefa_cmd_wq, &rdm->join, msecs_to_jiffies(KEFA_JOIN_RETRY_MS));
	return false;
}

/**
 * kefa_rdm_join() - make address handles for strangers
 * @work: of the endpoint
 *
 * Context: Process context; sleeps.
 */
void kefa_rdm_join(struct work_struct *work)
{
	struct kefa_rdm *rdm = container_of(to_delayed_work(work), struct kefa_rdm, join);

	while (kefa_join_one(rdm))
		;
}

/**
 * kefa_rdm_fail_all() - complete all that is outstanding, and forget what has arrived
 * @rdm: the endpoint, whose queue pair is gone
 * @err: positive errno
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
	/* The last part of a multi-receive buffer that takes no more gives it back. */
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
	while ((held = list_first_entry_or_null(&rdm->strange, struct kefa_held, link)))
		kefa_msg_drop(rdm, held);
}

/**
 * kefa_rdm_peers_fini() - forget all peers
 * @rdm: the endpoint, stopped; it hears of no address any more
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
