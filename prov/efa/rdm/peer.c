// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Identification of peers. A completion identifies a sender by the number of its address handle
 * and its queue pair; the handle's number is unknown before the first packet, or even later. A
 * packet identifies its sender by its connid, which is random, or by its raw address. Queue pair
 * numbers are reused by other endpoints, with other connids.
 *
 * An unknown peer is a stranger until a worker has created its address handle, which sleeps. The
 * number of peers in no address vector is limited; the one that was silent for the longest time is
 * evicted first. The message numbers of a peer that is gone are remembered for a while, in a
 * tomb: if the peer comes back it continues its numbers, and its packets have no raw address,
 * because it has got our HANDSHAKE before.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include "local.h"
#include "peer.h"

static struct kmem_cache *kefa_rpeer_cache;

/**
 * struct kefa_tomb - state of a peer that is gone
 * @n: entry in kefa_peers.tombs
 * @list: entry in kefa_peers.fifo
 * @gid: GID of the peer's device
 * @features: as in &struct kefa_rpeer
 * @next_id: number of the next message to the peer
 * @exp_id: number of the next message from the peer
 * @device_version: as in &struct kefa_rpeer
 * @rq_qpn: as in &struct kefa_rpeer
 * @rq_qkey: as in &struct kefa_rpeer
 * @slid: number of the peer's address handle, if it was certain; KEFA_NO_SLID otherwise
 * @flags: as in &struct kefa_rpeer
 */
struct kefa_tomb {
	struct kefa_index_node	n;
	struct list_head	list;
	u8			gid[16];
	u32			features;
	u32			next_id;
	u32			exp_id;
	u32			device_version;
	u32			rq_qpn;
	u32			rq_qkey;
	u16			slid;
	u8			flags;
};

static_assert(sizeof(struct kefa_tomb) <= 96);

/* --- states --- */

/* For each state, a bitmap of the states from which it can be entered. */
static const u8 kefa_rpeer_from[KEFA_RPEER_STATES] = {
	[KEFA_RPEER_STRANGER]	= BIT(KEFA_RPEER_NEW),
	[KEFA_RPEER_KNOWN]	= BIT(KEFA_RPEER_NEW) | BIT(KEFA_RPEER_STRANGER),
	[KEFA_RPEER_SHAKING]	= BIT(KEFA_RPEER_KNOWN) | BIT(KEFA_RPEER_READY),
	[KEFA_RPEER_READY]	= BIT(KEFA_RPEER_KNOWN) | BIT(KEFA_RPEER_SHAKING),
	[KEFA_RPEER_DYING]	= BIT(KEFA_RPEER_KNOWN) | BIT(KEFA_RPEER_SHAKING) |
				  BIT(KEFA_RPEER_READY),
	[KEFA_RPEER_DEAD]	= BIT(KEFA_RPEER_KNOWN) | BIT(KEFA_RPEER_DYING),
	[KEFA_RPEER_GONE]	= BIT(KEFA_RPEER_STRANGER) | BIT(KEFA_RPEER_KNOWN) |
				  BIT(KEFA_RPEER_SHAKING) | BIT(KEFA_RPEER_READY) |
				  BIT(KEFA_RPEER_DEAD),
};

/**
 * kefa_rpeer_may_become() - check a transition between two states
 * @from: current state
 * @to: new state
 *
 * Context: Any.
 * Return: whether the transition is allowed.
 */
bool kefa_rpeer_may_become(enum kefa_rpeer_state from, enum kefa_rpeer_state to)
{
	return kefa_rpeer_from[to] & BIT(from);
}

/**
 * kefa_rpeer_set_state() - change the state of a peer
 * @peers: peers of the endpoint
 * @peer: the peer
 * @state: new state of the peer
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
 * kefa_rpeer_cache_init() - create the cache of peers when the module is loaded
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_rpeer_cache_init(void)
{
	/* The test module has a cache, too, so the name includes the module's. */
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
 * kefa_peers_init() - initialize an endpoint's peers
 * @peers: peers of the endpoint
 * @lock: lock of the endpoint
 * @implicit_max: maximum number of peers in no address vector
 * @tombs_max: maximum number of tombs
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM. The caller calls kefa_peers_fini() even after an error.
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
 * @peers: peers of the endpoint, all of which are deleted
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

/* Grow by a quarter each time, so that little memory is unused. */
static int kefa_peers_grow_at(struct kefa_peers *peers, u32 addr)
{
	struct kefa_rpeer **at, **old;
	u32 size;

	lockdep_assert_held(&peers->grow);
	if (addr == KEFA_NO_ADDR || addr < peers->size)
		return 0;
	size = max(addr + 1, peers->size + peers->size / 8);
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

/* The hash tables work even if they can't grow, only slower, so their errors are ignored. */
static int kefa_peers_grow(struct kefa_peers *peers, u32 addr)
{
	u32 count;
	int ret;

	mutex_lock(&peers->grow);
	ret = kefa_peers_grow_at(peers, addr);
	if (!ret) {
		/* The count may change meanwhile, and need not be exact. */
		count = READ_ONCE(peers->count) + 1;
		kefa_index_reserve(&peers->by_src, count);
		kefa_index_reserve(&peers->by_conn, count);
		kefa_index_reserve(&peers->tombs, min(count, peers->tombs_max));
	}
	mutex_unlock(&peers->grow);
	return ret;
}

/**
 * kefa_rpeer_new() - allocate a peer, and room for it in the tables
 * @peers: peers of the endpoint
 * @gid: GID of the peer's device
 * @qpn: queue pair number of the peer
 * @connid: connid of the peer, which is the key of its queue pair
 * @addr: index of the peer in the address vector, or KEFA_NO_ADDR
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
	peer->by_src.key = U64_MAX;
	peer->by_conn.key = (u64)qpn << 32 | connid;
	INIT_LIST_HEAD(&peer->todo);
	INIT_LIST_HEAD(&peer->wait);
	INIT_LIST_HEAD(&peer->lru);
	kefa_order_init(&peer->order, 0, 0);
	return peer;
}

/**
 * kefa_rpeer_free() - undo kefa_rpeer_new()
 * @peers: peers of the endpoint
 * @peer: the peer, in no table; NULL is allowed
 *
 * Context: Process or softirq context.
 */
void kefa_rpeer_free(struct kefa_peers *peers, struct kefa_rpeer *peer)
{
	if (!peer)
		return;
	WARN_ON_ONCE(peer->state != KEFA_RPEER_NEW && peer->state != KEFA_RPEER_GONE);
	WARN_ON_ONCE(memchr_inv(peer->order.out, 0, sizeof(peer->order.out)));
	kefa_local_put(peer->local);
	ida_free(&peers->ids, peer->id);
	kmem_cache_free(kefa_rpeer_cache, peer);
}

/* --- peers that are gone --- */

/* If @gid is NULL, a tomb is found only if no other one has the same key. */
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

/* Restore the state of a peer that comes back. */
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
	peer->by_src.key = (u64)tomb->slid << 32 | kefa_rpeer_qpn(peer);
	peer->flags |= tomb->flags;
	kefa_tomb_drop(peers, tomb);
	peers->stats.recalled++;
}

static bool kefa_tomb_make(struct kefa_peers *peers, const struct kefa_rpeer *peer)
{
	struct kefa_tomb *tomb;

	/*
	 * Without any exchange of packets there is no state to remember. A peer that was asked for
	 * its HANDSHAKE will send it, only once, and without a raw address.
	 */
	if (!peer->order.next_id && !peer->order.exp_id &&
	    !(peer->flags & ~(KEFA_RPEER_IMPLICIT | KEFA_RPEER_LOCAL)) &&
	    peer->state != KEFA_RPEER_SHAKING)
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
	tomb->slid = peer->flags & KEFA_RPEER_SURE ? kefa_rpeer_slid(peer) : KEFA_NO_SLID;
	tomb->flags = peer->flags & ~(KEFA_RPEER_IMPLICIT | KEFA_RPEER_SURE | KEFA_RPEER_LOCAL);
	kefa_index_add(&peers->tombs, &tomb->n, peer->by_conn.key);
	list_add_tail(&tomb->list, &peers->fifo);
	peers->ntombs++;
	return true;
}

/* --- insertion and deletion --- */

static void kefa_peers_publish(struct kefa_peers *peers, struct kefa_rpeer *peer)
{
	kefa_tomb_open(peers, peer);
	kefa_index_add(&peers->by_conn, &peer->by_conn, peer->by_conn.key);
	peers->count++;
	if (peer->addr != KEFA_NO_ADDR)
		peers->at[peer->addr] = peer;
}

/**
 * kefa_peers_same() - find a peer with the same address
 * @peers: peers of the endpoint
 * @peer: new peer, in no table
 *
 * Context: Under @peers->lock.
 * Return: the peer in the tables, or NULL.
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

/*
 * The peer has an address handle: continue in the state that its tomb remembered, or begin. A peer
 * for which a message was lost is dead, if it may wait for that message.
 */
static void kefa_rpeer_connect(struct kefa_peers *peers, struct kefa_rpeer *peer,
			       struct kefa_ah *ah)
{
	peer->ah = ah;
	kefa_rpeer_set_state(peers, peer, KEFA_RPEER_KNOWN);
	if (peers->revive)
		peer->flags &= ~KEFA_RPEER_LOST;
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
 * kefa_peers_insert() - insert the peer of an address in the vector
 * @peers: peers of the endpoint
 * @peer: new peer, with its index
 * @ah: address handle of the peer, with a reference for it
 *
 * If the peer exists already, because it has sent something, that one gets the index, and if it
 * has no address handle yet, @ah as well.
 *
 * Context: Under @peers->lock.
 * Return: the peer that has the index now. If it isn't @peer, the caller frees @peer, and puts the
 * reference of @ah if the returned peer had one before.
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
	else if (!other->ah)
		other->ah = ah;
	return other;
}

/**
 * kefa_peers_meet() - insert an unknown sender as a stranger
 * @peers: peers of the endpoint
 * @peer: new peer, with the packet's raw address or the result of kefa_peers_recall()
 *
 * Context: Under @peers->lock.
 * Return: @peer, in KEFA_RPEER_STRANGER; or a peer with the same address that was inserted
 * meanwhile, so the caller frees @peer; or NULL if there are too many strangers.
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
 * kefa_peers_accept() - make a stranger a known peer
 * @peers: peers of the endpoint
 * @peer: the stranger, in KEFA_RPEER_STRANGER
 * @ah: address handle of the peer, with a reference for it
 *
 * Context: Under @peers->lock.
 * Return: 0; or -ENOSPC if there are too many peers in no address vector. Then the caller deletes
 * kefa_peers_victim(), or the stranger if there is none.
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
 * kefa_peers_victim() - choose a peer to evict
 * @peers: peers of the endpoint
 *
 * Context: Under @peers->lock.
 * Return: among the peers in no address vector a dead one, else the idle one that was silent for
 * the longest time, else a dead one of which messages or completions wait for the ULP, or NULL.
 */
struct kefa_rpeer *kefa_peers_victim(struct kefa_peers *peers)
{
	struct kefa_rpeer *peer, *idle = NULL, *last = NULL;

	lockdep_assert_held(peers->lock);
	list_for_each_entry(peer, &peers->lru, lru) {
		if (peer->state == KEFA_RPEER_DEAD && !peer->kept) {
			idle = peer;
			break;
		}
		if (!last && peer->state == KEFA_RPEER_DEAD)
			last = peer;
		if (!idle && kefa_rpeer_idle(peer))
			idle = peer;
	}
	idle = idle ?: last;
	peers->stats.evicted += !!idle;
	return idle;
}

/**
 * kefa_peers_lost() - note that a message to a peer that is gone didn't arrive
 * @peers: peers of the endpoint
 * @gone: the peer, in KEFA_RPEER_GONE
 *
 * Context: Under @peers->lock.
 * Return: the peer that has the address now, which the caller kills, because its message numbers
 * have a gap; or NULL if there is none: then a tomb says that the peer is dead if it comes back.
 * Also NULL with kefa_peers.revive, as nobody waits for the message.
 */
struct kefa_rpeer *kefa_peers_lost(struct kefa_peers *peers, const struct kefa_rpeer *gone)
{
	struct kefa_rpeer *peer = kefa_peers_same(peers, gone);
	struct kefa_tomb *tomb;

	if (peers->revive)
		return NULL;
	tomb = peer ? NULL : kefa_tomb_find(peers, gone->by_conn.key, gone->gid);
	if (tomb)
		tomb->flags |= KEFA_RPEER_LOST;
	return peer;
}

/**
 * kefa_peers_untold() - note that the HANDSHAKE to a peer was lost
 * @peers: peers of the endpoint
 * @peer: the peer, which may be gone
 *
 * The next packet of the peer makes another one due, like its first packet.
 *
 * Context: Under @peers->lock.
 */
void kefa_peers_untold(struct kefa_peers *peers, struct kefa_rpeer *peer)
{
	const u32 told = KEFA_RPEER_HEARD | KEFA_RPEER_TOLD | KEFA_RPEER_SURE;
	struct kefa_rpeer *heir = NULL;
	struct kefa_tomb *tomb = NULL;

	lockdep_assert_held(peers->lock);
	peer->flags &= ~told;
	if (peer->state == KEFA_RPEER_GONE) {
		heir = kefa_peers_same(peers, peer);
		tomb = heir ? NULL : kefa_tomb_find(peers, peer->by_conn.key, peer->gid);
	}
	if (heir && !(heir->owes & KEFA_OWES_HANDSHAKE))
		heir->flags &= ~told;
	if (tomb)
		tomb->flags &= ~told;
}

/**
 * kefa_peers_del() - remove a peer from all tables
 * @peers: peers of the endpoint
 * @peer: the peer, whose operations the caller has ended
 * @remember: keep the numbers in a tomb, or that messages were lost, as the peer may come back
 *
 * The caller puts the reference of the address handle, and frees the peer.
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
	kefa_peers_unbind(peers, peer);
	kefa_index_del(&peers->by_conn, &peer->by_conn);
	if (peer->addr != KEFA_NO_ADDR)
		peers->at[peer->addr] = NULL;
	peers->count--;
	kefa_rpeer_set_state(peers, peer, KEFA_RPEER_GONE);
}

/**
 * kefa_peers_recall() - find the sender of a packet among the tombs
 * @peers: peers of the endpoint
 * @src: description of the sender, which isn't among the peers
 * @gid: takes the GID of the sender's device, 16 bytes
 *
 * For packets without a raw address from a peer that was evicted or removed.
 *
 * Context: Under @peers->lock.
 * Return: whether it was found. Then the packet is handled as if it had the raw address.
 */
bool kefa_peers_recall(struct kefa_peers *peers, const struct kefa_src *src, u8 *gid)
{
	struct kefa_tomb *tomb;

	lockdep_assert_held(peers->lock);
	if (!src->has_connid)
		return false;
	tomb = kefa_tomb_find(peers, (u64)src->qpn << 32 | src->connid,
			      src->gid ?: src->owner);
	if (tomb)
		memcpy(gid, tomb->gid, sizeof(tomb->gid));
	return tomb;
}

/**
 * kefa_peers_any() - get any peer
 * @peers: peers of the endpoint; none is inserted any more
 * @from: position to continue from, 0 for the first call
 *
 * Context: Under @peers->lock.
 * Return: the peer, or NULL if there is none.
 */
struct kefa_rpeer *kefa_peers_any(struct kefa_peers *peers, u32 *from)
{
	struct kefa_index_node *n = kefa_index_any(&peers->by_conn, from);

	return n ? container_of(n, struct kefa_rpeer, by_conn) : NULL;
}

/**
 * kefa_peers_heard() - note that a peer has sent a packet
 * @peers: peers of the endpoint
 * @peer: the peer
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
 * kefa_peers_bytes() - get the memory use of an endpoint's peers
 * @peers: peers of the endpoint
 *
 * Context: Under @peers->lock.
 * Return: number of bytes, including tables, without tombs and without slab overhead.
 */
size_t kefa_peers_bytes(const struct kefa_peers *peers)
{
	lockdep_assert_held(peers->lock);
	return peers->count * kmem_cache_size(kefa_rpeer_cache) +
	       peers->size * sizeof(*peers->at) + kefa_index_bytes(&peers->by_src) +
	       kefa_index_bytes(&peers->by_conn);
}
