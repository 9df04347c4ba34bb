// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Identification of peers: peers in an address vector, strangers, reused queue pair numbers,
 * restarted peers, and peers that lie.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include "../../prov/efa/rdm/peer.h"

#define IMPLICIT_MAX	8
#define TOMBS_MAX	16

struct scene {
	struct kunit		*test;
	spinlock_t		lock;	/* in place of the endpoint's lock */
	struct kefa_peers	peers;
};

/* Only used as pointers, never dereferenced. */
static struct kefa_ah *ah(u32 n)
{
	return (struct kefa_ah *)(0x1000UL + n);
}

static const u8 *gid_of(u32 n)
{
	static u8 gid[16];

	memset(gid, 0xfe, sizeof(gid));
	gid[14] = n >> 8;
	gid[15] = n;
	return gid;
}

static struct scene *scene_of(struct kunit *test, u32 implicit_max, u32 tombs_max)
{
	struct scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->test = test;
	spin_lock_init(&s->lock);
	KUNIT_ASSERT_EQ(test, kefa_peers_init(&s->peers, &s->lock, implicit_max, tombs_max), 0);
	return s;
}

static struct scene *scene(struct kunit *test)
{
	return scene_of(test, IMPLICIT_MAX, TOMBS_MAX);
}

static struct kefa_rpeer *new_peer(struct scene *s, u32 gid, u32 qpn, u32 connid, u32 addr)
{
	struct kefa_rpeer *peer = kefa_rpeer_new(&s->peers, gid_of(gid), qpn, connid, addr);

	KUNIT_ASSERT_NOT_NULL(s->test, peer);
	return peer;
}

static struct kefa_rpeer *insert(struct scene *s, u32 gid, u32 qpn, u32 connid, u32 addr)
{
	struct kefa_rpeer *peer = new_peer(s, gid, qpn, connid, addr), *got;

	spin_lock_bh(&s->lock);
	got = kefa_peers_insert(&s->peers, peer, ah(gid));
	spin_unlock_bh(&s->lock);
	if (got != peer)
		kefa_rpeer_free(&s->peers, peer);
	return got;
}

static struct kefa_rpeer *meet(struct scene *s, u32 gid, u32 qpn, u32 connid)
{
	struct kefa_rpeer *peer = new_peer(s, gid, qpn, connid, KEFA_NO_ADDR), *got;

	spin_lock_bh(&s->lock);
	got = kefa_peers_meet(&s->peers, peer);
	spin_unlock_bh(&s->lock);
	if (got != peer)
		kefa_rpeer_free(&s->peers, peer);
	return got;
}

static int accept(struct scene *s, struct kefa_rpeer *peer)
{
	int ret;

	spin_lock_bh(&s->lock);
	ret = kefa_peers_accept(&s->peers, peer, ah(peer->gid[15]));
	spin_unlock_bh(&s->lock);
	return ret;
}

static void drop(struct scene *s, struct kefa_rpeer *peer, bool remember)
{
	spin_lock_bh(&s->lock);
	kefa_peers_del(&s->peers, peer, remember);
	spin_unlock_bh(&s->lock);
	kefa_rpeer_free(&s->peers, peer);
}

/* Believe the first number of each peer, and no other one. */
static struct kefa_rpeer *find_by_conn(struct scene *s, const struct kefa_src *src)
{
	struct kefa_rpeer *peer = kefa_peers_by_conn(&s->peers, src);

	if (!peer || src->slid == KEFA_NO_SLID)
		return peer;
	if (kefa_rpeer_slid(peer) != KEFA_NO_SLID)
		return NULL;
	kefa_peers_bind(&s->peers, peer, src->slid);
	return peer;
}

static struct kefa_rpeer *find(struct scene *s, u16 slid, u32 qpn, s64 connid, s32 gid)
{
	const struct kefa_src src = {
		.slid		= slid,
		.qpn		= qpn,
		.connid		= connid,
		.has_connid	= connid >= 0,
		.gid		= gid >= 0 ? gid_of(gid) : NULL,
	};
	struct kefa_rpeer *peer;

	spin_lock_bh(&s->lock);
	peer = kefa_peers_by_src(&s->peers, &src);
	if (peer && src.gid && memcmp(peer->gid, src.gid, sizeof(peer->gid)))
		peer = NULL;
	else if (!peer)
		peer = find_by_conn(s, &src);
	spin_unlock_bh(&s->lock);
	return peer;
}

static struct kefa_rpeer *at(struct scene *s, u64 addr)
{
	struct kefa_rpeer *peer;

	spin_lock_bh(&s->lock);
	peer = kefa_peers_at(&s->peers, addr);
	spin_unlock_bh(&s->lock);
	return peer;
}

static void set_state(struct scene *s, struct kefa_rpeer *peer, enum kefa_rpeer_state state)
{
	spin_lock_bh(&s->lock);
	kefa_rpeer_set_state(&s->peers, peer, state);
	spin_unlock_bh(&s->lock);
}

static bool recall(struct scene *s, u32 qpn, u32 connid, u8 *gid)
{
	const struct kefa_src src = { .qpn = qpn, .connid = connid, .has_connid = true };
	bool known;

	spin_lock_bh(&s->lock);
	known = kefa_peers_recall(&s->peers, &src, gid);
	spin_unlock_bh(&s->lock);
	return known;
}

static struct kefa_rpeer *superseded(struct scene *s, struct kefa_rpeer *peer)
{
	struct kefa_rpeer *other;

	spin_lock_bh(&s->lock);
	other = kefa_peers_superseded(&s->peers, peer);
	spin_unlock_bh(&s->lock);
	return other;
}

static void peer_by_address(struct kunit *test)
{
	struct scene *s = scene(test);
	struct kefa_rpeer *a, *b;

	KUNIT_EXPECT_NULL(test, at(s, 0));
	a = insert(s, 1, 10, 100, 0);
	b = insert(s, 2, 10, 100, 3000);
	KUNIT_EXPECT_EQ(test, a->state, KEFA_RPEER_KNOWN);
	KUNIT_EXPECT_EQ(test, kefa_rpeer_qpn(a), 10);
	KUNIT_EXPECT_EQ(test, kefa_rpeer_connid(a), 100);
	KUNIT_EXPECT_PTR_EQ(test, at(s, 0), a);
	KUNIT_EXPECT_PTR_EQ(test, at(s, 3000), b);
	KUNIT_EXPECT_NULL(test, at(s, 2999));
	KUNIT_EXPECT_NULL(test, at(s, 3001));
	KUNIT_EXPECT_NULL(test, at(s, U64_MAX));
	drop(s, a, false);
	KUNIT_EXPECT_NULL(test, at(s, 0));
	KUNIT_EXPECT_NULL(test, find(s, KEFA_NO_SLID, 10, 100, 1));
	drop(s, b, true);
	/* The peer had no state worth remembering. */
	KUNIT_EXPECT_EQ(test, s->peers.ntombs, 0);
	kefa_peers_fini(&s->peers);
}

/* A peer is found by its connid until a packet has revealed the slid, and then by both. */
static void peer_learns_slid(struct kunit *test)
{
	struct scene *s = scene(test);
	struct kefa_rpeer *a = insert(s, 1, 10, 100, 0);

	KUNIT_EXPECT_EQ(test, kefa_rpeer_slid(a), KEFA_NO_SLID);
	/* A write with data has no connid, so it reveals nothing. */
	KUNIT_EXPECT_NULL(test, find(s, 7, 10, -1, -1));
	KUNIT_EXPECT_PTR_EQ(test, find(s, KEFA_NO_SLID, 10, 100, -1), a);
	KUNIT_EXPECT_EQ(test, kefa_rpeer_slid(a), KEFA_NO_SLID);
	KUNIT_EXPECT_NULL(test, find(s, 7, 10, 101, -1));
	KUNIT_EXPECT_NULL(test, find(s, 7, 11, 100, -1));
	KUNIT_EXPECT_PTR_EQ(test, find(s, 7, 10, 100, -1), a);
	KUNIT_EXPECT_EQ(test, kefa_rpeer_slid(a), 7);
	KUNIT_EXPECT_PTR_EQ(test, find(s, 7, 10, -1, -1), a);
	KUNIT_EXPECT_PTR_EQ(test, find(s, 7, 10, 100, 1), a);
	/* The connid may be missing in later packets. */
	KUNIT_EXPECT_PTR_EQ(test, find(s, KEFA_NO_SLID, 10, 100, -1), a);
	KUNIT_EXPECT_NULL(test, find(s, KEFA_NO_SLID, 10, -1, -1));
	drop(s, a, false);
	kefa_peers_fini(&s->peers);
}

/* A peer that knows the numbers of another isn't taken for the other. */
static void peer_liars(struct kunit *test)
{
	struct scene *s = scene(test);
	struct kefa_rpeer *a = insert(s, 1, 10, 100, 0);

	KUNIT_EXPECT_PTR_EQ(test, find(s, 7, 10, 100, -1), a);
	KUNIT_EXPECT_NULL(test, find(s, 8, 10, 100, -1));
	KUNIT_EXPECT_NULL(test, find(s, 8, 10, 100, 1));
	KUNIT_EXPECT_NULL(test, find(s, 7, 10, 100, 2));
	KUNIT_EXPECT_EQ(test, kefa_rpeer_slid(a), 7);
	drop(s, a, false);
	kefa_peers_fini(&s->peers);
}

/* Two peers with the same numbers are distinguished by address, or else are ambiguous. */
static void peer_in_doubt(struct kunit *test)
{
	struct scene *s = scene(test);
	struct kefa_rpeer *a = insert(s, 1, 10, 100, 0), *b = insert(s, 2, 10, 100, 1);

	KUNIT_EXPECT_NULL(test, find(s, 7, 10, 100, -1));
	KUNIT_EXPECT_EQ(test, s->peers.stats.doubtful, 1);
	KUNIT_EXPECT_PTR_EQ(test, find(s, 7, 10, 100, 2), b);
	KUNIT_EXPECT_PTR_EQ(test, find(s, 7, 10, 100, -1), b);
	KUNIT_EXPECT_PTR_EQ(test, find(s, 8, 10, 100, 1), a);
	KUNIT_EXPECT_PTR_EQ(test, find(s, 8, 10, 100, -1), a);
	/* An unbound number is nobody's, and its peer is found by its connid again. */
	spin_lock_bh(&s->lock);
	kefa_peers_unbind(&s->peers, b);
	kefa_peers_unbind(&s->peers, b);
	spin_unlock_bh(&s->lock);
	KUNIT_EXPECT_EQ(test, kefa_rpeer_slid(b), KEFA_NO_SLID);
	KUNIT_EXPECT_NULL(test, find(s, 7, 10, -1, -1));
	KUNIT_EXPECT_PTR_EQ(test, find(s, 9, 10, 100, 2), b);
	drop(s, a, false);
	drop(s, b, false);
	kefa_peers_fini(&s->peers);
}

static void peer_stranger(struct kunit *test)
{
	struct scene *s = scene(test);
	struct kefa_rpeer *a, *b;

	KUNIT_EXPECT_NULL(test, find(s, KEFA_NO_SLID, 10, 100, 1));
	a = meet(s, 1, 10, 100);
	KUNIT_EXPECT_EQ(test, a->state, KEFA_RPEER_STRANGER);
	KUNIT_EXPECT_EQ(test, s->peers.strangers, 1);
	/* The stranger's next packets are kept with the first one. */
	KUNIT_EXPECT_PTR_EQ(test, find(s, KEFA_NO_SLID, 10, 100, 1), a);
	KUNIT_EXPECT_PTR_EQ(test, meet(s, 1, 10, 100), a);
	KUNIT_EXPECT_EQ(test, accept(s, a), 0);
	KUNIT_EXPECT_EQ(test, a->state, KEFA_RPEER_KNOWN);
	KUNIT_EXPECT_EQ(test, s->peers.strangers, 0);
	KUNIT_EXPECT_EQ(test, s->peers.implicit, 1);
	/* When the ULP inserts the address, it gets the same peer, which can't be evicted then. */
	KUNIT_EXPECT_PTR_EQ(test, insert(s, 1, 10, 100, 5), a);
	KUNIT_EXPECT_PTR_EQ(test, at(s, 5), a);
	KUNIT_EXPECT_EQ(test, a->addr, 5);
	KUNIT_EXPECT_EQ(test, s->peers.implicit, 0);
	/* For a stranger, the address vector's handle is used. */
	b = meet(s, 2, 20, 200);
	KUNIT_EXPECT_PTR_EQ(test, insert(s, 2, 20, 200, 6), b);
	KUNIT_EXPECT_EQ(test, b->state, KEFA_RPEER_KNOWN);
	KUNIT_EXPECT_PTR_EQ(test, b->ah, ah(2));
	KUNIT_EXPECT_EQ(test, s->peers.strangers, 0);
	drop(s, a, false);
	drop(s, b, false);
	kefa_peers_fini(&s->peers);
}

static void peer_too_many_strangers(struct kunit *test)
{
	struct scene *s = scene(test);
	struct kefa_rpeer *peer[KEFA_STRANGERS_MAX];
	u32 i;

	for (i = 0; i < KEFA_STRANGERS_MAX; i++) {
		peer[i] = meet(s, i, 10, i);
		KUNIT_ASSERT_NOT_NULL(test, peer[i]);
	}
	KUNIT_EXPECT_NULL(test, meet(s, 100, 10, 100));
	drop(s, peer[3], false);
	peer[3] = meet(s, 100, 10, 100);
	KUNIT_EXPECT_NOT_NULL(test, peer[3]);
	for (i = 0; i < KEFA_STRANGERS_MAX; i++)
		drop(s, peer[i], false);
	KUNIT_EXPECT_EQ(test, s->peers.strangers, 0);
	kefa_peers_fini(&s->peers);
}

/* A queue pair number is reused: it belongs to the new peer, and the old one is reset. */
static void peer_recycled(struct kunit *test)
{
	struct scene *s = scene(test);
	struct kefa_rpeer *old = insert(s, 1, 10, 100, 0), *new;

	KUNIT_EXPECT_PTR_EQ(test, find(s, 7, 10, 100, -1), old);
	KUNIT_EXPECT_NULL(test, superseded(s, old));
	new = meet(s, 1, 10, 101);
	KUNIT_EXPECT_NULL(test, superseded(s, new));
	KUNIT_EXPECT_PTR_EQ(test, find(s, 7, 10, 101, 1), new);
	KUNIT_EXPECT_PTR_EQ(test, superseded(s, new), old);
	/* A late packet of the old peer is still attributed to it. */
	KUNIT_EXPECT_PTR_EQ(test, find(s, 7, 10, 100, -1), old);
	KUNIT_EXPECT_PTR_EQ(test, find(s, 7, 10, -1, -1), new);
	set_state(s, old, KEFA_RPEER_DYING);
	KUNIT_EXPECT_NULL(test, superseded(s, new));
	set_state(s, old, KEFA_RPEER_DEAD);
	KUNIT_EXPECT_NULL(test, superseded(s, new));
	drop(s, old, true);
	KUNIT_EXPECT_EQ(test, s->peers.ntombs, 1);
	KUNIT_EXPECT_PTR_EQ(test, find(s, 7, 10, 101, -1), new);
	drop(s, new, false);
	/* It can't continue, as it has missed messages. */
	old = insert(s, 1, 10, 100, 0);
	KUNIT_EXPECT_EQ(test, old->state, KEFA_RPEER_DEAD);
	drop(s, old, false);
	kefa_peers_fini(&s->peers);
}

/* Exchange a message, so that the peer has state to remember. */
static void exchange(struct kefa_rpeer *peer, u32 next, u32 exp)
{
	kefa_order_init(&peer->order, next, exp);
	peer->features = 0x7b;
	peer->device_version = 0xefa1;
	peer->flags |= KEFA_RPEER_HEARD | KEFA_RPEER_TOLD | KEFA_RPEER_SHAKEN;
}

static void peer_comes_back(struct kunit *test)
{
	struct scene *s = scene(test);
	struct kefa_rpeer *peer = insert(s, 1, 10, 100, 0);
	u8 gid[16];

	exchange(peer, 5, U32_MAX);
	drop(s, peer, true);
	KUNIT_EXPECT_EQ(test, s->peers.ntombs, 1);
	KUNIT_EXPECT_FALSE(test, recall(s, 10, 101, gid));
	/* The peer omits its address after that. */
	KUNIT_EXPECT_TRUE(test, recall(s, 10, 100, gid));
	KUNIT_EXPECT_MEMEQ(test, gid, gid_of(1), sizeof(gid));
	peer = meet(s, 1, 10, 100);
	KUNIT_EXPECT_EQ(test, peer->order.next_id, 5);
	KUNIT_EXPECT_EQ(test, peer->order.exp_id, U32_MAX);
	KUNIT_EXPECT_EQ(test, accept(s, peer), 0);
	/* No HANDSHAKE is outstanding. */
	KUNIT_EXPECT_EQ(test, peer->state, KEFA_RPEER_READY);
	KUNIT_EXPECT_EQ(test, peer->features, 0x7b);
	KUNIT_EXPECT_EQ(test, s->peers.stats.recalled, 1);
	KUNIT_EXPECT_EQ(test, s->peers.ntombs, 0);
	drop(s, peer, true);
	/* Again, but the ULP inserts it; another peer with that number isn't it. */
	KUNIT_EXPECT_EQ(test, s->peers.ntombs, 1);
	peer = insert(s, 2, 10, 100, 1);
	KUNIT_EXPECT_EQ(test, peer->order.next_id, 0);
	KUNIT_EXPECT_EQ(test, peer->state, KEFA_RPEER_KNOWN);
	drop(s, peer, false);
	peer = insert(s, 1, 10, 100, 1);
	KUNIT_EXPECT_EQ(test, peer->order.next_id, 5);
	drop(s, peer, false);
	kefa_peers_fini(&s->peers);
}

static void peer_evicted(struct kunit *test)
{
	struct scene *s = scene(test);
	struct kefa_rpeer *peer[IMPLICIT_MAX], *last, *victim;
	u32 i;

	for (i = 0; i < IMPLICIT_MAX; i++) {
		peer[i] = meet(s, i, 10, i);
		KUNIT_ASSERT_EQ(test, accept(s, peer[i]), 0);
		exchange(peer[i], i, i);
	}
	last = meet(s, 50, 10, 50);
	KUNIT_EXPECT_EQ(test, accept(s, last), -ENOSPC);
	/* 0 was heard recently, 1 has an operation, 2 kept packets, 3 a debt, so 4 is evicted. */
	spin_lock_bh(&s->lock);
	kefa_peers_heard(&s->peers, peer[0]);
	peer[1]->nops = 1;
	peer[2]->kept = 1;
	peer[3]->owes = KEFA_OWES_HANDSHAKE;
	victim = kefa_peers_victim(&s->peers);
	spin_unlock_bh(&s->lock);
	KUNIT_EXPECT_PTR_EQ(test, victim, peer[4]);
	drop(s, victim, true);
	KUNIT_EXPECT_EQ(test, accept(s, last), 0);
	KUNIT_EXPECT_EQ(test, s->peers.stats.evicted, 1);
	/* It continues with its old state. */
	peer[4] = meet(s, 4, 10, 4);
	KUNIT_EXPECT_EQ(test, peer[4]->order.exp_id, 4);
	KUNIT_EXPECT_EQ(test, accept(s, peer[4]), -ENOSPC);
	for (i = 0; i < IMPLICIT_MAX; i++)
		peer[i]->wrs = 1;
	last->kept = 1;
	spin_lock_bh(&s->lock);
	KUNIT_EXPECT_NULL(test, kefa_peers_victim(&s->peers));
	/* Messages that wait for the ULP are lost only if no other peer can be evicted. */
	kefa_rpeer_set_state(&s->peers, peer[2], KEFA_RPEER_DEAD);
	KUNIT_EXPECT_PTR_EQ(test, kefa_peers_victim(&s->peers), peer[2]);
	peer[5]->wrs = 0;
	KUNIT_EXPECT_PTR_EQ(test, kefa_peers_victim(&s->peers), peer[5]);
	peer[2]->kept = 0;
	KUNIT_EXPECT_PTR_EQ(test, kefa_peers_victim(&s->peers), peer[2]);
	spin_unlock_bh(&s->lock);
	for (i = 0; i < IMPLICIT_MAX; i++)
		drop(s, peer[i], true);
	drop(s, last, true);
	KUNIT_EXPECT_EQ(test, s->peers.implicit, 0);
	kefa_peers_fini(&s->peers);
}

/* The oldest peers are forgotten, so that memory use is limited. */
static void peer_forgotten(struct kunit *test)
{
	struct scene *s = scene(test);
	struct kefa_rpeer *peer;
	u8 gid[16];
	u32 i;

	for (i = 0; i < 3 * TOMBS_MAX; i++) {
		peer = insert(s, i, 10, i, 0);
		exchange(peer, 1, 1);
		drop(s, peer, true);
	}
	KUNIT_EXPECT_EQ(test, s->peers.ntombs, TOMBS_MAX);
	KUNIT_EXPECT_EQ(test, s->peers.stats.forgotten, 2 * TOMBS_MAX);
	for (i = 0; i < 3 * TOMBS_MAX; i++)
		KUNIT_EXPECT_EQ(test, recall(s, 10, i, gid), i >= 2 * TOMBS_MAX);
	kefa_peers_fini(&s->peers);
	s = scene_of(test, IMPLICIT_MAX, 0);
	peer = insert(s, 1, 10, 1, 0);
	exchange(peer, 1, 1);
	drop(s, peer, true);
	KUNIT_EXPECT_EQ(test, s->peers.stats.forgotten, 1);
	kefa_peers_fini(&s->peers);
}

static void peer_states(struct kunit *test)
{
	/* Any sequence of events is one of these, or a prefix of one. */
	static const char * const ways[] = { "NSKHRYDG", "NKHRG", "NKRYDG", "NKDG", "NKYDG",
					     "NKHYDG", "NKG", "NKHG", "NSG", "RH" };
	static const char names[] = "NSKHRYDG";
	bool may[KEFA_RPEER_STATES][KEFA_RPEER_STATES] = { };
	const char *c;
	u32 i, from, to;

	for (i = 0; i < ARRAY_SIZE(ways); i++)
		for (c = ways[i]; c[1]; c++)
			may[strchr(names, c[0]) - names][strchr(names, c[1]) - names] = true;
	for (from = 0; from < KEFA_RPEER_STATES; from++)
		for (to = 0; to < KEFA_RPEER_STATES; to++)
			KUNIT_EXPECT_EQ_MSG(test, kefa_rpeer_may_become(from, to), may[from][to],
					    "%c to %c", names[from], names[to]);
}

#define MANY	20000

/* An idle peer takes at most 256 bytes, at any number of peers, and all memory is freed. */
static void peer_memory(struct kunit *test)
{
	struct kefa_rpeer **peer = kvcalloc(MANY, sizeof(*peer), GFP_KERNEL);
	struct scene *s = scene_of(test, 0, 0);
	size_t bytes;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, peer);
	for (i = 0; i < MANY; i++) {
		peer[i] = insert(s, i, i % 1000, i * 7, i);
		KUNIT_EXPECT_PTR_EQ(test, find(s, i % 3000, i % 1000, i * 7, -1), peer[i]);
		spin_lock_bh(&s->lock);
		bytes = kefa_peers_bytes(&s->peers);
		spin_unlock_bh(&s->lock);
		if (i > 100)
			KUNIT_EXPECT_LE(test, bytes / (i + 1), 256);
	}
	kunit_info(test, "%zu bytes a peer", bytes / MANY);
	for (i = 0; i < MANY; i++) {
		KUNIT_EXPECT_PTR_EQ(test, at(s, i), peer[i]);
		KUNIT_EXPECT_PTR_EQ(test, find(s, i % 3000, i % 1000, i * 7, i), peer[i]);
		drop(s, peer[i], false);
	}
	KUNIT_EXPECT_EQ(test, s->peers.by_src.entries, 0);
	KUNIT_EXPECT_EQ(test, s->peers.by_conn.entries, 0);
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&s->peers.ids));
	kefa_peers_fini(&s->peers);
	kvfree(peer);
}

/* --- compared with a model that searches linearly --- */

#define HOSTS		3
#define QPNS		2
#define CONNIDS		3
#define ALL		(HOSTS * QPNS * CONNIDS)

struct known {
	struct kefa_rpeer	*peer;
	bool			slid;	/* the slid is known */
	u32			since;
	bool			tomb;
	u32			next_id;
};

static u32 host_of(u32 n)
{
	return n / (QPNS * CONNIDS);
}

static u32 qpn_of(u32 n)
{
	return n / CONNIDS % QPNS;
}

/* Connids are random; in this model some hosts share one. */
static u32 connid_of(u32 n)
{
	return n % CONNIDS == 2 ? 100 + n : n % CONNIDS;
}

/* Find the peer that a packet identifies, and whether its slid becomes known. */
static s32 model_find(const struct known *k, u32 host, bool slid, u32 n, bool raw)
{
	s32 found = -1;
	u32 i;

	for (i = 0; i < ALL; i++) {
		if (!k[i].peer || qpn_of(i) != qpn_of(n) || connid_of(i) != connid_of(n))
			continue;
		if (slid && k[i].slid)
			if (host_of(i) == host)
				return raw && host_of(n) != host ? -1 : i;
	}
	for (i = 0; i < ALL; i++) {
		if (!k[i].peer || qpn_of(i) != qpn_of(n) || connid_of(i) != connid_of(n))
			continue;
		if (raw && host_of(i) != host_of(n))
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found >= 0 && slid && k[found].slid ? -1 : found;
}

static void peer_against_model(struct kunit *test)
{
	struct known *k = kunit_kcalloc(test, ALL, sizeof(*k), GFP_KERNEL);
	struct scene *s = scene_of(test, ALL, ALL);
	struct rnd_state rnd;
	u32 step, n, host;
	bool slid, raw;
	s32 who;

	KUNIT_ASSERT_NOT_NULL(test, k);
	prandom_seed_state(&rnd, 9);
	for (step = 0; step < 60000; step++) {
		n = prandom_u32_state(&rnd) % ALL;
		switch (prandom_u32_state(&rnd) % 8) {
		case 0:
			if (k[n].peer)
				break;
			k[n].peer = insert(s, host_of(n), qpn_of(n), connid_of(n), n);
			KUNIT_EXPECT_EQ(test, k[n].peer->order.next_id,
					k[n].tomb ? k[n].next_id : 0);
			k[n].tomb = false;
			k[n].slid = false;
			k[n].peer->order.next_id++;
			break;
		case 1:
			if (!k[n].peer)
				break;
			k[n].next_id = k[n].peer->order.next_id;
			k[n].tomb = prandom_u32_state(&rnd) % 2;
			drop(s, k[n].peer, k[n].tomb);
			k[n].peer = NULL;
			break;
		default:
			/* Sometimes another host sends it. */
			host = prandom_u32_state(&rnd) % 4 ? host_of(n) :
			       prandom_u32_state(&rnd) % HOSTS;
			slid = prandom_u32_state(&rnd) % 2;
			raw = prandom_u32_state(&rnd) % 2;
			who = model_find(k, host, slid, n, raw);
			KUNIT_ASSERT_PTR_EQ(test, find(s, slid ? host + 1 : KEFA_NO_SLID,
						       qpn_of(n), connid_of(n),
						       raw ? (s32)host_of(n) : -1),
					    who < 0 ? NULL : k[who].peer);
			/* The first packet is believed if no other information contradicts it. */
			if (who >= 0 && slid && !k[who].slid && host != host_of(who)) {
				drop(s, k[who].peer, false);
				k[who].peer = NULL;
			} else if (who >= 0 && slid) {
				k[who].slid = true;
			}
		}
	}
	for (n = 0; n < ALL; n++)
		if (k[n].peer)
			drop(s, k[n].peer, false);
	kefa_peers_fini(&s->peers);
}

static int peer_suite_init(struct kunit_suite *suite)
{
	return kefa_rpeer_cache_init();
}

static void peer_suite_exit(struct kunit_suite *suite)
{
	kefa_rpeer_cache_fini();
}

static struct kunit_case peer_cases[] = {
	KUNIT_CASE(peer_by_address),
	KUNIT_CASE(peer_learns_slid),
	KUNIT_CASE(peer_liars),
	KUNIT_CASE(peer_in_doubt),
	KUNIT_CASE(peer_stranger),
	KUNIT_CASE(peer_too_many_strangers),
	KUNIT_CASE(peer_recycled),
	KUNIT_CASE(peer_comes_back),
	KUNIT_CASE(peer_evicted),
	KUNIT_CASE(peer_forgotten),
	KUNIT_CASE(peer_states),
	KUNIT_CASE_SLOW(peer_memory),
	KUNIT_CASE(peer_against_model),
	{}
};

static struct kunit_suite peer_suite = {
	.name		= "kefa_peer",
	.suite_init	= peer_suite_init,
	.suite_exit	= peer_suite_exit,
	.test_cases	= peer_cases,
};

kunit_test_suite(peer_suite);
