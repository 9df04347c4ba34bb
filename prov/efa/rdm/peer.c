// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who is who. A completion names a sender by the number of its address handle and its queue
 * pair, and the handle's number isn't known before the first packet, or not even then. A
 * packet names its sender by its connid, which is random, or by its raw address. A queue
 * pair's number is used again by another endpoint, with another connid.
 *
 * A peer that we have never heard of is a stranger until its address handle is made, which
 * takes a process. There may be so and so many peers that are in no address vector; the one
 * that was quiet the longest goes first. Numbers of messages of a peer that is gone are kept
 * for a while, for it goes on counting where it was; it was told who we are, too, and gives
 * its raw address no more.
 */
#include <linux/slab.h>
#include "peer.h"

static struct kmem_cache *kefa_rpeer_cache;

/**
 * struct kefa_tomb - what is kept of a peer that is gone
 * @n: its place in kefa_peers.tombs
 * @list: in kefa_peers.fifo
 * @gid: of its device
 * @features: as in &struct kefa_rpeer
 * @next_id: number of our next message to it
 * @exp_id: and of the next from it
 * @device_version: as in &struct kefa_rpeer
 * @rq_qpn: likewise
 * @rq_qkey: likewise
 * @flags: likewise
 */
struct kefa_tomb {
	struct kefa_index_node	n;
	struct list_head	list;
	u8			gid[16];
	u64			features;
	u32			next_id;
	u32			exp_id;
	u32			device_version;
	u32			rq_qpn;
	u32			rq_qkey;
	u8			flags;
};

static_assert(sizeof(struct kefa_tomb) <= 96);

/* --- states --- */

/* From which states there is a way to each. */
static const u8 kefa_rpeer_from[KEFA_RPEER_STATES] = {
	[KEFA_RPEER_STRANGER]	= BIT(KEFA_RPEER_NEW),
	[KEFA_RPEER_KNOWN]	= BIT(KEFA_RPEER_NEW) | BIT(KEFA_RPEER_STRANGER),
	[KEFA_RPEER_SHAKING]	= BIT(KEFA_RPEER_KNOWN),
	[KEFA_RPEER_READY]	= BIT(KEFA_RPEER_KNOWN) | BIT(KEFA_RPEER_SHAKING),
	[KEFA_RPEER_DEAD]	= BIT(KEFA_RPEER_KNOWN) | BIT(KEFA_RPEER_SHAKING) |
				  BIT(KEFA_RPEER_READY),
	[KEFA_RPEER_GONE]	= BIT(KEFA_RPEER_STRANGER) | BIT(KEFA_RPEER_KNOWN) |
				  BIT(KEFA_RPEER_SHAKING) | BIT(KEFA_RPEER_READY) |
				  BIT(KEFA_RPEER_DEAD),
};

/**
 * kefa_rpeer_may_become() - is there a way from one state to another?
 * @from: the state
 * @to: the other
 *
 * Context: Any.
 * Return: whether there is.
 */
bool kefa_rpeer_may_become(enum kefa_rpeer_state from, enum kefa_rpeer_state to)
{
	return kefa_rpeer_from[to] & BIT(from);
}

/**
 * kefa_rpeer_set_state() - change the state of a peer
 * @peers: the endpoint's
 * @peer: the peer
 * @state: its new state
 *
 * Context: Under @peers->lock.
 */
void kefa_rpeer_set_state(struct kefa_peers *peers, struct kefa_rpeer *peer,
			  enum kefa_rpeer_state state)
{
	lockdep_assert_held(peers->lock);
	WARN_ON_ONCE(!kefa_rpeer_may_become(peer->state, state));
	if (peer->state == KEFA_RPEER_STRANGER)
		peers->strangers--;
	if (state == KEFA_RPEER_STRANGER)
		peers->strangers++;
	peer->state = state;
}

/* --- memory --- */

/**
 * kefa_rpeer_cache_init() - when the module is loaded
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_rpeer_cache_init(void)
{
	/* By the module's name, as that of the tests has one, too. */
	kefa_rpeer_cache = kmem_cache_create(KBUILD_MODNAME "_rpeer", sizeof(struct kefa_rpeer),
					     __alignof__(struct kefa_rpeer), 0, NULL);
	return kefa_rpeer_cache ? 0 : -ENOMEM;
}

/**
 * kefa_rpeer_cache_fini() - undo kefa_rpeer_cache_init()
 *
 * Context: Process context; sleeps.
 */
void kefa_rpeer_cache_fini(void)
{
	kmem_cache_destroy(kefa_rpeer_cache);
	kefa_rpeer_cache = NULL;
}

/**
 * kefa_peers_init() - begin with no peers
 * @peers: of the endpoint
 * @lock: the endpoint's
 * @implicit_max: how many peers there may be that are in no address vector
 * @tombs_max: of how many peers that are gone the numbers are kept
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM; kefa_peers_fini() either way.
 */
int kefa_peers_init(struct kefa_peers *peers, spinlock_t *lock, u32 implicit_max, u32 tombs_max)
{
	int ret;

	memset(peers, 0, sizeof(*peers));
	peers->lock = lock;
	mutex_init(&peers->grow);
	ida_init(&peers->ids);
	INIT_LIST_HEAD(&peers->lru);
	INIT_LIST_HEAD(&peers->fifo);
	peers->implicit_max = implicit_max;
	peers->tombs_max = tombs_max;
	ret = kefa_index_init(&peers->by_src, lock, 0);
	ret = ret ?: kefa_index_init(&peers->by_conn, lock, 0);
	return ret ?: kefa_index_init(&peers->tombs, lock, 0);
}

static void kefa_tomb_drop(struct kefa_peers *peers, struct kefa_tomb *tomb)
{
	kefa_index_del(&peers->tombs, &tomb->n);
	list_del(&tomb->list);
	peers->ntombs--;
	kfree(tomb);
}

/**
 * kefa_peers_fini() - undo kefa_peers_init()
 * @peers: of the endpoint, with no peers
 *
 * Context: Process context.
 */
void kefa_peers_fini(struct kefa_peers *peers)
{
	struct kefa_tomb *tomb, *next;

	WARN_ON_ONCE(peers->count);
	spin_lock_bh(peers->lock);
	list_for_each_entry_safe(tomb, next, &peers->fifo, list)
		kefa_tomb_drop(peers, tomb);
	spin_unlock_bh(peers->lock);
	kefa_index_fini(&peers->by_src);
	kefa_index_fini(&peers->by_conn);
	kefa_index_fini(&peers->tombs);
	kvfree(peers->at);
	peers->at = NULL;
	peers->size = 0;
	ida_destroy(&peers->ids);
	mutex_destroy(&peers->grow);
}

/* A quarter more each time, so that little of it is unused. */
static int kefa_peers_grow_at(struct kefa_peers *peers, u32 addr)
{
	struct kefa_rpeer **at, **old;
	u32 size;

	lockdep_assert_held(&peers->grow);
	if (addr == KEFA_NO_ADDR || addr < peers->size)
		return 0;
	size = max(addr + 1, peers->size + peers->size / 4);
	at = kvcalloc(size, sizeof(*at), GFP_KERNEL);
	if (!at)
		return -ENOMEM;
	spin_lock_bh(peers->lock);
	old = peers->at;
	if (old)
		memcpy(at, old, peers->size * sizeof(*at));
	peers->at = at;
	peers->size = size;
	spin_unlock_bh(peers->lock);
	kvfree(old);
	return 0;
}

/* Of the tables by what peers say: one that is too small is slow, and that is all. */
static int kefa_peers_grow(struct kefa_peers *peers, u32 addr)
{
	u32 count;
	int ret;

	mutex_lock(&peers->grow);
	ret = kefa_peers_grow_at(peers, addr);
	if (!ret) {
		/* It changes meanwhile, and need not be exact. */
		count = READ_ONCE(peers->count) + 1;
		kefa_index_reserve(&peers->by_src, count);
		kefa_index_reserve(&peers->by_conn, count);
		kefa_index_reserve(&peers->tombs, min(count, peers->tombs_max));
	}
	mutex_unlock(&peers->grow);
	return ret;
}

/**
 * kefa_rpeer_new() - allocate a peer, and its places in the tables
 * @peers: of the endpoint
 * @gid: of the peer's device
 * @qpn: its queue pair
 * @connid: the key of that
 * @addr: its index in the address vector, or KEFA_NO_ADDR
 *
 * Context: Process context; sleeps. Not under @peers->lock.
 * Return: the peer, in no table, or NULL.
 */
struct kefa_rpeer *kefa_rpeer_new(struct kefa_peers *peers, const u8 *gid, u32 qpn, u32 connid,
				  u32 addr)
{
	struct kefa_rpeer *peer;
	int id;

	if (kefa_peers_grow(peers, addr))
		return NULL;
	peer = kmem_cache_zalloc(kefa_rpeer_cache, GFP_KERNEL);
	if (!peer)
		return NULL;
	id = ida_alloc(&peers->ids, GFP_KERNEL);
	if (id < 0) {
		kmem_cache_free(kefa_rpeer_cache, peer);
		return NULL;
	}
	peer->id = id;
	peer->addr = addr;
	memcpy(peer->gid, gid, sizeof(peer->gid));
	peer->by_conn.key = (u64)qpn << 32 | connid;
	INIT_LIST_HEAD(&peer->todo);
	INIT_LIST_HEAD(&peer->wait);
	INIT_LIST_HEAD(&peer->lru);
	kefa_order_init(&peer->order, 0, 0);
	return peer;
}

/**
 * kefa_rpeer_free() - undo kefa_rpeer_new()
 * @peers: of the endpoint
 * @peer: the peer, in no table; NULL is fine
 *
 * Context: Process or softirq context.
 */
void kefa_rpeer_free(struct kefa_peers *peers, struct kefa_rpeer *peer)
{
	if (!peer)
		return;
	WARN_ON_ONCE(peer->state != KEFA_RPEER_NEW && peer->state != KEFA_RPEER_GONE);
	ida_free(&peers->ids, peer->id);
	kmem_cache_free(kefa_rpeer_cache, peer);
}

/* --- those who are gone --- */

/* With @gid NULL it mustn't be in doubt who is meant. */
static struct kefa_tomb *kefa_tomb_find(struct kefa_peers *peers, u64 conn, const u8 *gid)
{
	struct kefa_tomb *found = NULL, *tomb;
	struct kefa_index_node *n;

	kefa_index_for_each(n, &peers->tombs, conn) {
		tomb = container_of(n, struct kefa_tomb, n);
		if (gid && !memcmp(tomb->gid, gid, sizeof(tomb->gid)))
			return tomb;
		if (!gid && found) {
			peers->stats.doubtful++;
			return NULL;
		}
		if (!gid)
			found = tomb;
	}
	return found;
}

/* A peer that comes back goes on where it was. */
static void kefa_tomb_open(struct kefa_peers *peers, struct kefa_rpeer *peer)
{
	struct kefa_tomb *tomb = kefa_tomb_find(peers, peer->by_conn.key, peer->gid);

	if (!tomb)
		return;
	kefa_order_init(&peer->order, tomb->next_id, tomb->exp_id);
	peer->features = tomb->features;
	peer->device_version = tomb->device_version;
	peer->rq_qpn = tomb->rq_qpn;
	peer->rq_qkey = tomb->rq_qkey;
	peer->flags |= tomb->flags;
	kefa_tomb_drop(peers, tomb);
	peers->stats.recalled++;
}

static bool kefa_tomb_make(struct kefa_peers *peers, const struct kefa_rpeer *peer)
{
	struct kefa_tomb *tomb;

	/* A peer that we have exchanged nothing with has nothing to go on with. */
	if (!peer->order.next_id && !peer->order.exp_id && !(peer->flags & ~KEFA_RPEER_IMPLICIT))
		return true;
	tomb = peers->tombs_max ? kzalloc(sizeof(*tomb), GFP_ATOMIC | __GFP_NOWARN) : NULL;
	if (!tomb) {
		peers->stats.forgotten++;
		return false;
	}
	if (peers->ntombs == peers->tombs_max) {
		kefa_tomb_drop(peers, list_first_entry(&peers->fifo, struct kefa_tomb, list));
		peers->stats.forgotten++;
	}
	memcpy(tomb->gid, peer->gid, sizeof(tomb->gid));
	tomb->next_id = peer->order.next_id;
	tomb->exp_id = peer->order.exp_id;
	tomb->features = peer->features;
	tomb->device_version = peer->device_version;
	tomb->rq_qpn = peer->rq_qpn;
	tomb->rq_qkey = peer->rq_qkey;
	tomb->flags = peer->flags & ~KEFA_RPEER_IMPLICIT;
	kefa_index_add(&peers->tombs, &tomb->n, peer->by_conn.key);
	list_add_tail(&tomb->list, &peers->fifo);
	peers->ntombs++;
	return true;
}

/* --- in and out --- */

static void kefa_peers_publish(struct kefa_peers *peers, struct kefa_rpeer *peer)
{
	kefa_tomb_open(peers, peer);
	kefa_index_add(&peers->by_conn, &peer->by_conn, peer->by_conn.key);
	peers->count++;
	if (peer->addr != KEFA_NO_ADDR)
		peers->at[peer->addr] = peer;
}

/**
 * kefa_peers_same() - is a peer there already?
 * @peers: of the endpoint
 * @peer: new
 *
 * Context: Under @peers->lock.
 * Return: the one with the same address, or NULL.
 */
struct kefa_rpeer *kefa_peers_same(struct kefa_peers *peers, const struct kefa_rpeer *peer)
{
	struct kefa_index_node *n;
	struct kefa_rpeer *other;

	kefa_index_for_each(n, &peers->by_conn, peer->by_conn.key) {
		other = container_of(n, struct kefa_rpeer, by_conn);
		if (!memcmp(other->gid, peer->gid, sizeof(peer->gid)))
			return other;
	}
	return NULL;
}

/* Where its state was left, if it was known before; else it begins. What is lost stays lost. */
static void kefa_rpeer_connect(struct kefa_peers *peers, struct kefa_rpeer *peer,
			       struct kefa_ah *ah)
{
	peer->ah = ah;
	kefa_rpeer_set_state(peers, peer, KEFA_RPEER_KNOWN);
	if (peer->flags & KEFA_RPEER_LOST)
		kefa_rpeer_set_state(peers, peer, KEFA_RPEER_DEAD);
	else if (peer->flags & KEFA_RPEER_SHAKEN)
		kefa_rpeer_set_state(peers, peer, KEFA_RPEER_READY);
}

static void kefa_rpeer_explicit(struct kefa_peers *peers, struct kefa_rpeer *peer)
{
	if (!(peer->flags & KEFA_RPEER_IMPLICIT))
		return;
	peer->flags &= ~KEFA_RPEER_IMPLICIT;
	list_del_init(&peer->lru);
	peers->implicit--;
}

/**
 * kefa_peers_insert() - an address is inserted in the vector
 * @peers: of the endpoint
 * @peer: new, with its index
 * @ah: its address handle, of which it has a use
 *
 * A peer that is there already, as it has sent something, gets the index. If it has no
 * address handle yet, it gets that as well.
 *
 * Context: Under @peers->lock.
 * Return: the peer that has the index now. If it isn't @peer the caller frees that, and if
 * it was no stranger puts the use of @ah.
 */
struct kefa_rpeer *kefa_peers_insert(struct kefa_peers *peers, struct kefa_rpeer *peer,
				     struct kefa_ah *ah)
{
	struct kefa_rpeer *other;

	lockdep_assert_held(peers->lock);
	other = kefa_peers_same(peers, peer);
	if (!other) {
		kefa_peers_publish(peers, peer);
		kefa_rpeer_connect(peers, peer, ah);
		return peer;
	}
	other->addr = peer->addr;
	peers->at[peer->addr] = other;
	kefa_rpeer_explicit(peers, other);
	if (other->state == KEFA_RPEER_STRANGER)
		kefa_rpeer_connect(peers, other, ah);
	return other;
}

/**
 * kefa_peers_meet() - somebody whom we don't know has sent something
 * @peers: of the endpoint
 * @peer: new, with what its raw address says, or what kefa_peers_recall() did
 *
 * Context: Under @peers->lock.
 * Return: the peer, in KEFA_RPEER_STRANGER; another that has come to be meanwhile, and the
 * caller frees @peer; or NULL if there are too many strangers.
 */
struct kefa_rpeer *kefa_peers_meet(struct kefa_peers *peers, struct kefa_rpeer *peer)
{
	struct kefa_rpeer *other;

	lockdep_assert_held(peers->lock);
	other = kefa_peers_same(peers, peer);
	if (other)
		return other;
	if (peers->strangers == KEFA_STRANGERS_MAX)
		return NULL;
	kefa_rpeer_set_state(peers, peer, KEFA_RPEER_STRANGER);
	kefa_peers_publish(peers, peer);
	return peer;
}

/**
 * kefa_peers_accept() - a stranger's address handle is there
 * @peers: of the endpoint
 * @peer: in KEFA_RPEER_STRANGER
 * @ah: its address handle, of which it has a use
 *
 * Context: Under @peers->lock.
 * Return: 0; or -ENOSPC if there are too many peers of this kind. Then the caller deletes
 * kefa_peers_victim(), if there is one, or else the stranger.
 */
int kefa_peers_accept(struct kefa_peers *peers, struct kefa_rpeer *peer, struct kefa_ah *ah)
{
	lockdep_assert_held(peers->lock);
	if (peers->implicit >= peers->implicit_max)
		return -ENOSPC;
	peers->implicit++;
	peer->flags |= KEFA_RPEER_IMPLICIT;
	list_add_tail(&peer->lru, &peers->lru);
	kefa_rpeer_connect(peers, peer, ah);
	return 0;
}

/**
 * kefa_peers_victim() - who can go?
 * @peers: of the endpoint
 *
 * Context: Under @peers->lock.
 * Return: of the peers in no address vector a dead one, or else the idle one that was quiet
 * the longest, or NULL.
 */
struct kefa_rpeer *kefa_peers_victim(struct kefa_peers *peers)
{
	struct kefa_rpeer *peer, *idle = NULL;

	lockdep_assert_held(peers->lock);
	list_for_each_entry(peer, &peers->lru, lru) {
		if (peer->state == KEFA_RPEER_DEAD) {
			idle = peer;
			break;
		}
		if (!idle && kefa_rpeer_idle(peer))
			idle = peer;
	}
	peers->stats.evicted += !!idle;
	return idle;
}

/**
 * kefa_peers_lost() - a message to a peer that is gone didn't arrive
 * @peers: of the endpoint
 * @gone: the peer, in KEFA_RPEER_GONE
 *
 * Context: Under @peers->lock.
 * Return: the peer that has its address by now, whose numbers are wrong; or NULL, and it will
 * be dead when it comes back.
 */
struct kefa_rpeer *kefa_peers_lost(struct kefa_peers *peers, const struct kefa_rpeer *gone)
{
	struct kefa_rpeer *peer = kefa_peers_same(peers, gone);
	struct kefa_tomb *tomb;

	tomb = peer ? NULL : kefa_tomb_find(peers, gone->by_conn.key, gone->gid);
	if (tomb)
		tomb->flags |= KEFA_RPEER_LOST;
	return peer;
}

/**
 * kefa_peers_del() - take a peer out of all tables
 * @peers: of the endpoint
 * @peer: the peer; the caller has ended what it had going on
 * @remember: it may come back: keep its numbers, or that messages were lost
 *
 * The caller puts the use of the address handle, and frees the peer.
 *
 * Context: Under @peers->lock.
 */
void kefa_peers_del(struct kefa_peers *peers, struct kefa_rpeer *peer, bool remember)
{
	lockdep_assert_held(peers->lock);
	if (peer->state == KEFA_RPEER_DEAD)
		peer->flags |= KEFA_RPEER_LOST;
	if (remember)
		kefa_tomb_make(peers, peer);
	kefa_rpeer_explicit(peers, peer);
	if (peers->last == peer)
		peers->last = NULL;
	kefa_index_del(&peers->by_src, &peer->by_src);
	kefa_index_del(&peers->by_conn, &peer->by_conn);
	if (peer->addr != KEFA_NO_ADDR)
		peers->at[peer->addr] = NULL;
	peers->count--;
	kefa_rpeer_set_state(peers, peer, KEFA_RPEER_GONE);
}

/* --- who has sent a packet --- */

/* The device says who it was; without a connid the last to have the queue pair did. */
static struct kefa_rpeer *kefa_peers_by_src(struct kefa_peers *peers, const struct kefa_src *src)
{
	struct kefa_index_node *n;
	struct kefa_rpeer *peer;

	kefa_index_for_each(n, &peers->by_src, (u64)src->slid << 32 | src->qpn) {
		peer = container_of(n, struct kefa_rpeer, by_src);
		if (!src->has_connid || kefa_rpeer_connid(peer) == src->connid)
			return peer;
	}
	return NULL;
}

/*
 * The device doesn't say, or we don't know its number yet. Who has a number that isn't
 * this one, is not meant; nor is one whose address isn't that in the packet.
 */
static struct kefa_rpeer *kefa_peers_by_conn(struct kefa_peers *peers, const struct kefa_src *src)
{
	struct kefa_rpeer *found = NULL, *peer;
	struct kefa_index_node *n;
	u16 slid;

	kefa_index_for_each(n, &peers->by_conn, (u64)src->qpn << 32 | src->connid) {
		peer = container_of(n, struct kefa_rpeer, by_conn);
		slid = kefa_rpeer_slid(peer);
		if (slid != KEFA_NO_SLID && src->slid != KEFA_NO_SLID) {
			if (src->gid && !memcmp(peer->gid, src->gid, sizeof(peer->gid)))
				peers->stats.liars++;
			continue;
		}
		if (src->gid && memcmp(peer->gid, src->gid, sizeof(peer->gid)))
			continue;
		if (found) {
			peers->stats.doubtful++;
			return NULL;
		}
		found = peer;
	}
	return found;
}

/**
 * kefa_peers_next() - the part of kefa_peers_known() for who hasn't sent the last packet
 * @peers: of the endpoint
 * @src: what is known of the sender: a connid, and no GID
 *
 * Context: Under @peers->lock.
 * Return: the peer, or NULL.
 */
struct kefa_rpeer *kefa_peers_next(struct kefa_peers *peers, const struct kefa_src *src)
{
	struct kefa_rpeer *peer;

	lockdep_assert_held(peers->lock);
	peer = src->slid == KEFA_NO_SLID ? NULL : kefa_peers_by_src(peers, src);
	if (peer)
		peers->last = peer;
	return peer;
}

/**
 * kefa_peers_find() - who has sent a packet?
 * @peers: of the endpoint
 * @src: what is known of the sender
 *
 * A packet with a connid teaches the number of its sender's address handle, if the device
 * told it.
 *
 * Context: Under @peers->lock.
 * Return: the peer, or NULL if it is none that we know.
 */
struct kefa_rpeer *kefa_peers_find(struct kefa_peers *peers, const struct kefa_src *src)
{
	struct kefa_rpeer *peer = peers->last;

	lockdep_assert_held(peers->lock);
	if (peer && src->has_connid && !src->gid && kefa_rpeer_sent(peer, src))
		return peer;
	peer = NULL;
	if (src->slid != KEFA_NO_SLID)
		peer = kefa_peers_by_src(peers, src);
	peers->last = peer;
	if (peer && src->gid && memcmp(peer->gid, src->gid, sizeof(peer->gid))) {
		peers->stats.liars++;
		return NULL;
	}
	if (peer || !src->has_connid)
		return peer;
	peer = kefa_peers_by_conn(peers, src);
	if (peer && src->slid != KEFA_NO_SLID)
		kefa_index_add(&peers->by_src, &peer->by_src, (u64)src->slid << 32 | src->qpn);
	return peer;
}

/**
 * kefa_peers_recall() - did we know who has sent a packet?
 * @peers: of the endpoint
 * @src: what is known of the sender, whom kefa_peers_find() didn't find
 * @gid: 16 bytes: set to the GID of its device
 *
 * For packets with no raw address, of a peer that was evicted or removed.
 *
 * Context: Under @peers->lock.
 * Return: whether we did. Then it is as if the packet had its raw address.
 */
bool kefa_peers_recall(struct kefa_peers *peers, const struct kefa_src *src, u8 *gid)
{
	struct kefa_tomb *tomb;

	lockdep_assert_held(peers->lock);
	if (!src->has_connid)
		return false;
	tomb = kefa_tomb_find(peers, (u64)src->qpn << 32 | src->connid, src->gid);
	if (tomb)
		memcpy(gid, tomb->gid, sizeof(tomb->gid));
	return tomb;
}

/**
 * kefa_peers_superseded() - whose queue pair has a peer got?
 * @peers: of the endpoint
 * @peer: has shown by its raw address or a HANDSHAKE that it has the queue pair
 *
 * Context: Under @peers->lock.
 * Return: a peer that had the queue pair of the same number before, and isn't in
 * KEFA_RPEER_DEAD yet; or NULL.
 */
struct kefa_rpeer *kefa_peers_superseded(struct kefa_peers *peers, struct kefa_rpeer *peer)
{
	struct kefa_index_node *n;
	struct kefa_rpeer *other;

	lockdep_assert_held(peers->lock);
	if (kefa_rpeer_slid(peer) == KEFA_NO_SLID)
		return NULL;
	kefa_index_for_each(n, &peers->by_src, peer->by_src.key) {
		other = container_of(n, struct kefa_rpeer, by_src);
		if (other != peer && other->state != KEFA_RPEER_DEAD)
			return other;
	}
	return NULL;
}

/**
 * kefa_peers_any() - one of all peers
 * @peers: of the endpoint, to which none comes any more
 * @from: 0 at first; where the next call goes on
 *
 * Context: Under @peers->lock.
 * Return: the peer, or NULL if there is none any more.
 */
struct kefa_rpeer *kefa_peers_any(struct kefa_peers *peers, u32 *from)
{
	struct kefa_index_node *n = kefa_index_any(&peers->by_conn, from);

	return n ? container_of(n, struct kefa_rpeer, by_conn) : NULL;
}

/**
 * kefa_peers_heard() - a peer isn't quiet
 * @peers: of the endpoint
 * @peer: has sent a packet
 *
 * Context: Under @peers->lock.
 */
void kefa_peers_heard(struct kefa_peers *peers, struct kefa_rpeer *peer)
{
	lockdep_assert_held(peers->lock);
	peer->flags &= ~KEFA_RPEER_SILENT;
	if (peer->flags & KEFA_RPEER_IMPLICIT)
		list_move_tail(&peer->lru, &peers->lru);
}

/**
 * kefa_peers_bytes() - the memory of peers
 * @peers: of the endpoint
 *
 * Context: Under @peers->lock.
 * Return: bytes, with tables, without those that are gone, and what slabs leave unused.
 */
size_t kefa_peers_bytes(const struct kefa_peers *peers)
{
	lockdep_assert_held(peers->lock);
	return peers->count * kmem_cache_size(kefa_rpeer_cache) +
	       peers->size * sizeof(*peers->at) + kefa_index_bytes(&peers->by_src) +
	       kefa_index_bytes(&peers->by_conn);
}
