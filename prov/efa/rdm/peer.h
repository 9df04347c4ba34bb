/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The peers of an endpoint of fabric efa: peer.c. What was agreed with them: shake.c. */
#ifndef KEFA_RDM_PEER_H
#define KEFA_RDM_PEER_H

#include <linux/idr.h>
#include <linux/limits.h>
#include <linux/mutex.h>
#include "backoff.h"
#include "index.h"
#include "order.h"

struct kefa_ah;

/* No index in an address vector. */
#define KEFA_NO_ADDR		U32_MAX

/* No address-handle number: the device may not know it yet, and says so. */
#define KEFA_NO_SLID		0xffff

/* Peers whose address handle is being made; more have to wait on the wire. */
#define KEFA_STRANGERS_MAX	64

/**
 * enum kefa_rpeer_state - what is known of a peer
 * @KEFA_RPEER_NEW: in no table yet
 * @KEFA_RPEER_STRANGER: it has sent something, and its address handle is being made. Its
 *	packets are parked: nothing is answered before
 * @KEFA_RPEER_KNOWN: there is an address handle
 * @KEFA_RPEER_SHAKING: it was sent a request, and a HANDSHAKE has to come
 * @KEFA_RPEER_READY: what it can do is known
 * @KEFA_RPEER_DEAD: it can't be reached. That is final: packets to it were lost, and no
 *	later one would be taken before them. If it starts anew it is another peer
 * @KEFA_RPEER_GONE: in no table any more
 * @KEFA_RPEER_STATES: how many there are
 */
enum kefa_rpeer_state {
	KEFA_RPEER_NEW,
	KEFA_RPEER_STRANGER,
	KEFA_RPEER_KNOWN,
	KEFA_RPEER_SHAKING,
	KEFA_RPEER_READY,
	KEFA_RPEER_DEAD,
	KEFA_RPEER_GONE,
	KEFA_RPEER_STATES
};

/* Of kefa_rpeer.flags; shake.c's where nothing else is said. */
#define KEFA_RPEER_IMPLICIT	0x01	/* in no address vector: it may be evicted */
#define KEFA_RPEER_HEARD	0x02	/* it has sent a packet: it is owed a HANDSHAKE */
#define KEFA_RPEER_TOLD		0x04	/* it was sent our HANDSHAKE */
#define KEFA_RPEER_SHAKEN	0x08	/* its HANDSHAKE has come */
#define KEFA_RPEER_HEADERLESS	0x10	/* messages go to @rq_qpn, without a header */
#define KEFA_RPEER_LOST		0x20	/* a message was lost, and later ones wait for it */
#define KEFA_RPEER_SILENT	0x40	/* silent.c's: not heard of since it looked */

/* Of kefa_rpeer.owes. */
#define KEFA_OWES_HANDSHAKE	0x01
#define KEFA_OWES_TRIGGER	0x02	/* a request that asks for its HANDSHAKE */

/**
 * struct kefa_rpeer - a peer of one endpoint
 * @by_src: its place in kefa_peers.by_src; in no table while its slid isn't known
 * @by_conn: its place in kefa_peers.by_conn
 * @gid: of its device
 * @ah: its address handle; NULL in KEFA_RPEER_STRANGER
 * @order: numbers of messages
 * @features: KEFA_FEATURE_RDMA_READ and so on
 * @id: a small number that no other peer of the endpoint has, for traces and keys
 * @addr: index in the address vector, or KEFA_NO_ADDR
 * @device_version: PCI device id of its device, or 0
 * @rq_qpn: with KEFA_RPEER_HEADERLESS, where messages go
 * @rq_qkey: the key there
 * @state: enum kefa_rpeer_state
 * @owes: what it is to be sent and hasn't been
 * @flags: KEFA_RPEER_IMPLICIT and so on
 * @kept: bytes of memory that its packets take
 * @wrs: work requests to it that the device has, or that are to be sent again
 * @nops: operations with it
 * @todo: in kefa_rdm.todo, if something may be sent to it that wasn't; the engine's
 * @wait: operations that aren't begun, oldest first; the engine's
 * @backoff: it is given time
 * @lru: in kefa_peers.lru, if it may be evicted
 *
 * Under the endpoint's lock. An idle peer takes no other memory than this and its places in
 * tables: at most 256 bytes.
 */
struct kefa_rpeer {
	struct kefa_index_node	by_src;
	struct kefa_index_node	by_conn;
	u8			gid[16];
	struct kefa_ah		*ah;
	struct kefa_order	order;
	u64			features;
	u32			id;
	u32			addr;
	u32			device_version;
	u32			rq_qpn;
	u32			rq_qkey;
	u8			state;
	u8			owes;
	u8			flags;
	u32			kept;
	u16			wrs;
	u16			nops;
	struct list_head	todo;
	struct list_head	wait;
	struct kefa_backoff	backoff;
	struct list_head	lru;
};

static_assert(sizeof(struct kefa_rpeer) <= 224);

/**
 * struct kefa_src - who sent a packet
 * @gid: from its raw address, or NULL
 * @slid: number of the address handle, from the completion; KEFA_NO_SLID if unknown
 * @qpn: queue pair, from the completion
 * @connid: from its headers
 * @has_connid: there is one
 */
struct kefa_src {
	const u8	*gid;
	u16		slid;
	u32		qpn;
	u32		connid;
	bool		has_connid;
};

/**
 * struct kefa_peers_stats - what became of peers
 * @evicted: they were idle, and others came
 * @recalled: they came back, and their numbers were known
 * @forgotten: numbers that weren't kept any longer
 * @liars: packets that claim another's address
 * @doubtful: packets that could be of several peers
 */
struct kefa_peers_stats {
	u64	evicted;
	u64	recalled;
	u64	forgotten;
	u64	liars;
	u64	doubtful;
};

/**
 * struct kefa_peers - the peers of an endpoint
 * @lock: the endpoint's, protects all of this but @grow and @ids
 * @grow: one allocation of tables at a time; outside of @lock
 * @by_src: by what a completion says of a sender, (slid, queue pair)
 * @by_conn: by (queue pair, connid)
 * @tombs: numbers of peers that are gone, likewise
 * @last: who has sent the last packet whose sender was found by what the device says, or NULL:
 *	it is likely to have sent the next one, too
 * @at: by index in the address vector
 * @size: entries of @at
 * @count: peers in @by_conn
 * @implicit: of these, how many may be evicted
 * @implicit_max: no more than that
 * @strangers: how many are in KEFA_RPEER_STRANGER
 * @ntombs: how many there are
 * @tombs_max: no more than that
 * @ids: that are in use
 * @lru: peers that may be evicted, those that were quiet the longest first
 * @fifo: entries of @tombs, the oldest first
 * @stats: what became of peers
 */
struct kefa_peers {
	spinlock_t		*lock;	/* the endpoint's */
	struct mutex		grow;	/* allocations */
	struct kefa_index	by_src;
	struct kefa_index	by_conn;
	struct kefa_index	tombs;
	struct kefa_rpeer	*last;
	struct kefa_rpeer	**at;
	u32			size;
	u32			count;
	u32			implicit;
	u32			implicit_max;
	u32			strangers;
	u32			ntombs;
	u32			tombs_max;
	struct ida		ids;
	struct list_head	lru;
	struct list_head	fifo;
	struct kefa_peers_stats	stats;
};

int kefa_rpeer_cache_init(void);
void kefa_rpeer_cache_fini(void);
int kefa_peers_init(struct kefa_peers *peers, spinlock_t *lock, u32 implicit_max, u32 tombs_max);
void kefa_peers_fini(struct kefa_peers *peers);
struct kefa_rpeer *kefa_rpeer_new(struct kefa_peers *peers, const u8 *gid, u32 qpn, u32 connid,
				  u32 addr);
void kefa_rpeer_free(struct kefa_peers *peers, struct kefa_rpeer *peer);
struct kefa_rpeer *kefa_peers_insert(struct kefa_peers *peers, struct kefa_rpeer *peer,
				     struct kefa_ah *ah);
struct kefa_rpeer *kefa_peers_meet(struct kefa_peers *peers, struct kefa_rpeer *peer);
int kefa_peers_accept(struct kefa_peers *peers, struct kefa_rpeer *peer, struct kefa_ah *ah);
struct kefa_rpeer *kefa_peers_victim(struct kefa_peers *peers);
struct kefa_rpeer *kefa_peers_lost(struct kefa_peers *peers, const struct kefa_rpeer *gone);
void kefa_peers_del(struct kefa_peers *peers, struct kefa_rpeer *peer, bool remember);
struct kefa_rpeer *kefa_peers_next(struct kefa_peers *peers, const struct kefa_src *src);
struct kefa_rpeer *kefa_peers_find(struct kefa_peers *peers, const struct kefa_src *src);
bool kefa_peers_recall(struct kefa_peers *peers, const struct kefa_src *src, u8 *gid);
struct kefa_rpeer *kefa_peers_superseded(struct kefa_peers *peers, struct kefa_rpeer *peer);
void kefa_peers_heard(struct kefa_peers *peers, struct kefa_rpeer *peer);
struct kefa_rpeer *kefa_peers_same(struct kefa_peers *peers, const struct kefa_rpeer *peer);
struct kefa_rpeer *kefa_peers_any(struct kefa_peers *peers, u32 *from);
size_t kefa_peers_bytes(const struct kefa_peers *peers);
bool kefa_rpeer_may_become(enum kefa_rpeer_state from, enum kefa_rpeer_state to);
void kefa_rpeer_set_state(struct kefa_peers *peers, struct kefa_rpeer *peer,
			  enum kefa_rpeer_state state);

/**
 * kefa_peers_at() - a peer by its index in the address vector
 * @peers: the endpoint's
 * @addr: the index
 *
 * Context: Under @peers->lock.
 * Return: the peer, or NULL.
 */
static inline struct kefa_rpeer *kefa_peers_at(const struct kefa_peers *peers, u64 addr)
{
	lockdep_assert_held(peers->lock);
	return addr < peers->size ? peers->at[addr] : NULL;
}

/**
 * kefa_rpeer_qpn() - a peer's queue pair
 * @peer: the peer
 *
 * Context: Any.
 * Return: its number.
 */
static inline u32 kefa_rpeer_qpn(const struct kefa_rpeer *peer)
{
	return upper_32_bits(peer->by_conn.key);
}

/**
 * kefa_rpeer_connid() - a peer's connid
 * @peer: the peer
 *
 * Context: Any.
 * Return: the key of its queue pair.
 */
static inline u32 kefa_rpeer_connid(const struct kefa_rpeer *peer)
{
	return lower_32_bits(peer->by_conn.key);
}

/**
 * kefa_rpeer_sent() - has a peer sent a packet, as far as connid and device say?
 * @peer: the peer
 * @src: what is known of the sender: a connid, and no GID
 *
 * Context: Under the endpoint's lock.
 * Return: whether it has.
 */
static inline bool kefa_rpeer_sent(const struct kefa_rpeer *peer, const struct kefa_src *src)
{
	return kefa_rpeer_connid(peer) == src->connid &&
	       peer->by_src.key == ((u64)src->slid << 32 | src->qpn);
}

/**
 * kefa_peers_known() - who has sent a packet, if there is nothing to be learned from it?
 * @peers: of the endpoint
 * @src: what is known of the sender: a connid, and no GID
 *
 * Context: Under @peers->lock.
 * Return: the peer; or NULL, and kefa_peers_find() has to look.
 */
static inline struct kefa_rpeer *kefa_peers_known(struct kefa_peers *peers,
						  const struct kefa_src *src)
{
	struct kefa_rpeer *last = peers->last;

	lockdep_assert_held(peers->lock);
	if (likely(last && kefa_rpeer_sent(last, src)))
		return last;
	return kefa_peers_next(peers, src);
}

/**
 * kefa_rpeer_slid() - number of a peer's address handle
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: the number, or KEFA_NO_SLID as long as no packet has told it.
 */
static inline u16 kefa_rpeer_slid(const struct kefa_rpeer *peer)
{
	return hlist_unhashed(&peer->by_src.node) ? KEFA_NO_SLID :
						    upper_32_bits(peer->by_src.key);
}

/**
 * kefa_rpeer_idle() - would nothing be lost with a peer but its numbers?
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: whether it has nothing going on.
 */
static inline bool kefa_rpeer_idle(const struct kefa_rpeer *peer)
{
	return !peer->nops && list_empty(&peer->wait) &&
	       list_empty(&peer->order.out) && !peer->kept && !peer->wrs &&
	       !peer->owes && !peer->backoff.waiting;
}

#endif /* KEFA_RDM_PEER_H */
