/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The peers of an endpoint of fabric efa: peer.c. Their handshakes: shake.c. */
#ifndef KEFA_RDM_PEER_H
#define KEFA_RDM_PEER_H

#include <linux/idr.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include "../slid.h"
#include "backoff.h"
#include "index.h"
#include "order.h"

struct kefa_local;

/* kefa_rpeer.addr of a peer in no address vector. */
#define KEFA_NO_ADDR		U32_MAX

/* Maximum number of strangers; packets of further ones are dropped. */
#define KEFA_STRANGERS_MAX	64

/**
 * enum kefa_rpeer_state - state of a peer
 * @KEFA_RPEER_NEW: in no table yet
 * @KEFA_RPEER_STRANGER: the peer has sent something, and its address handle is being created. Its
 *	packets are parked, and nothing is answered before that
 * @KEFA_RPEER_KNOWN: the peer has an address handle
 * @KEFA_RPEER_SHAKING: the peer was sent a request, and must answer by a HANDSHAKE
 * @KEFA_RPEER_READY: the features of the peer are known
 * @KEFA_RPEER_DYING: the peer will be in KEFA_RPEER_DEAD when kefa_rdm_reap() has failed its
 *	operations. Until then nothing of it is freed, but nothing is posted to it any more
 * @KEFA_RPEER_DEAD: the peer can't be reached. This is final: packets to it were lost, and it would
 *	handle no later ones before them. If it starts anew it is another peer
 * @KEFA_RPEER_GONE: removed from all tables
 * @KEFA_RPEER_STATES: number of states
 */
enum kefa_rpeer_state {
	KEFA_RPEER_NEW,
	KEFA_RPEER_STRANGER,
	KEFA_RPEER_KNOWN,
	KEFA_RPEER_SHAKING,
	KEFA_RPEER_READY,
	KEFA_RPEER_DYING,
	KEFA_RPEER_DEAD,
	KEFA_RPEER_GONE,
	KEFA_RPEER_STATES
};

/* Flags in kefa_rpeer.flags, maintained by shake.c unless stated otherwise. */
#define KEFA_RPEER_IMPLICIT	0x01	/* peer.c: in no address vector, so it may be evicted */
#define KEFA_RPEER_HEARD	0x02	/* it has sent a packet, so it gets a HANDSHAKE */
#define KEFA_RPEER_TOLD		0x04	/* a HANDSHAKE was sent to it */
#define KEFA_RPEER_SHAKEN	0x08	/* its HANDSHAKE has arrived */
#define KEFA_RPEER_HEADERLESS	0x10	/* it takes messages without a header at @rq_qpn */
#define KEFA_RPEER_LOST		0x20	/* join.c: a message to it was lost, so it is dead */
#define KEFA_RPEER_SILENT	0x40	/* silent.c: no packet since the last check */
#define KEFA_RPEER_SURE		0x80	/* ident.c: in @by_src for sure; also KEFA_RPEER_HEARD */
#define KEFA_RPEER_LOCAL	0x100	/* local.c: in the same kernel */

/* Peers to which no fast path sends. */
#define KEFA_RPEER_APART	(KEFA_RPEER_HEADERLESS | KEFA_RPEER_LOCAL)

/* Flags in kefa_rpeer.owes: packets that are due. */
#define KEFA_OWES_HANDSHAKE	0x01
#define KEFA_OWES_TRIGGER	0x02	/* a request that asks for its HANDSHAKE */

/**
 * struct kefa_rpeer - a peer of one endpoint
 * @by_src: entry in kefa_peers.by_src; in no table while the number of @ah is unknown: see
 *	kefa_rpeer_before(). It may be out of date until KEFA_RPEER_SURE is set: ident.c
 * @by_conn: entry in kefa_peers.by_conn
 * @gid: GID of the peer's device
 * @ah: address handle of the peer; NULL in KEFA_RPEER_STRANGER, and in KEFA_RPEER_DEAD if the peer
 *	is in no address vector and the device has no work request to it
 * @order: numbers of messages to and from the peer
 * @features: KEFA_FEATURE_RDMA_READ and so on: the lowest bits of the first word, which has all
 *	known ones
 * @answers: number of packets that the device has or that are parked, and that answer the peer's
 *	reads, writes and atomic operations, or have data for them
 * @wrong: hash of the last wrong key in a request of the peer
 * @faults: number of wrong keys in requests of the peer, each different from the one before
 * @served: far.c: of the reads and writes of the ULP that the peer has answered since the last
 *	check, the number of checks that the oldest one has seen, plus 1; 0 if there were none
 * @checks: in KEFA_RPEER_SHAKING, number of checks by silent.c
 * @id: small number that is unique among the endpoint's peers, for traces and keys
 * @addr: index in the address vector, or KEFA_NO_ADDR
 * @device_version: PCI device id of the peer's device, or 0; 0xffff for any longer one
 * @rq_qpn: queue pair for messages, with KEFA_RPEER_HEADERLESS
 * @rq_qkey: key of @rq_qpn, before KEFA_RPEER_DYING
 * @err: in KEFA_RPEER_DYING, positive errno of its operations
 * @prov: in KEFA_RPEER_DYING, status of the device for its operations
 * @since_id: with @by_src, number of the next message from the peer when it got that entry
 * @state: enum kefa_rpeer_state
 * @owes: KEFA_OWES_HANDSHAKE and so on: packets to the peer that are due
 * @flags: KEFA_RPEER_IMPLICIT and so on
 * @kept: bytes of memory that kept packets of the peer use
 * @wrs: number of work requests to the peer that the device has or that are parked
 * @nops: number of operations with the peer
 * @todo: entry in kefa_rdm.todo, if something to the peer may be sent; in KEFA_RPEER_DYING, entry
 *	in kefa_rdm.dying; used by the engine
 * @wait: operations that haven't begun, oldest first; used by the engine
 * @backoff: delay of the peer
 * @lru: entry in kefa_peers.lru, if the peer may be evicted
 * @local: the peer's endpoint with KEFA_RPEER_LOCAL, or NULL; referenced
 *
 * Protected by the endpoint's lock. An idle peer uses only this structure and entries in tables:
 * at most 256 bytes.
 */
struct kefa_rpeer {
	struct kefa_index_node	by_src;
	struct kefa_index_node	by_conn;
	u8			gid[16];
	struct kefa_ah		*ah;
	struct kefa_order	order;
	u16			features;
	u16			answers;
	u8			wrong;
	u8			faults;
	u8			served;
	u8			checks;
	u32			id;
	u32			addr;
	u16			device_version;
	u16			rq_qpn;
	union {
		u32		rq_qkey;
		struct {
			u16	err;
			u16	prov;
		};
	};
	u32			since_id;
	u8			state;
	u8			owes;
	u16			flags;
	u32			kept;
	u16			wrs;
	u16			nops;
	struct list_head	todo;
	struct list_head	wait;
	struct kefa_backoff	backoff;
	struct list_head	lru;
	struct kefa_local	*local;
};

static_assert(sizeof(struct kefa_rpeer) <= 232);

/**
 * struct kefa_src - description of a packet's sender
 * @gid: GID in the raw address, or NULL
 * @owner: GID that @slid belongs to, or NULL if that isn't known
 * @slid: number of the address handle, from the completion; KEFA_NO_SLID if unknown
 * @qpn: queue pair, from the completion
 * @connid: connid in the headers
 * @has_connid: the headers have a connid
 * @local: a local peer has passed the packet on, so the description is true
 */
struct kefa_src {
	const u8	*gid;
	const u8	*owner;
	u16		slid;
	u32		qpn;
	u32		connid;
	bool		has_connid;
	bool		local;
};

/**
 * struct kefa_peers_stats - counters of an endpoint's peers
 * @evicted: number of idle peers that were evicted for others
 * @recalled: number of peers that came back and had a tomb
 * @forgotten: number of tombs that were freed to make room
 * @liars: number of packets that claim another peer's address, or can't be its
 * @unseated: number of times that a peer turned out to have been an impostor
 * @doubtful: number of packets that could be from several peers
 */
struct kefa_peers_stats {
	u64	evicted;
	u64	recalled;
	u64	forgotten;
	u64	liars;
	u64	unseated;
	u64	doubtful;
};

/**
 * struct kefa_peers - the peers of an endpoint
 * @lock: lock of the endpoint, protects all other fields except @grow and @ids
 * @grow: serializes allocations of tables; taken outside of @lock
 * @by_src: peers by (address handle number, queue pair), as in completions
 * @by_conn: peers by (queue pair, connid)
 * @tombs: states of peers that are gone, by (queue pair, connid)
 * @last: sender of the last packet that was identified by the completion, or a local peer, or NULL;
 *	the next packet is likely to come from the same peer
 * @at: peers by index in the address vector
 * @size: number of entries of @at
 * @count: number of peers in @by_conn
 * @implicit: number of peers in no address vector
 * @implicit_max: maximum of @implicit
 * @strangers: number of peers in KEFA_RPEER_STRANGER
 * @ntombs: number of entries of @tombs
 * @tombs_max: maximum of @ntombs
 * @revive: a dead peer lives again when its address is inserted again, as neither side has
 *	any of KEFA_RDM_ORDER, so no message waits for one that was lost
 * @ids: used values of kefa_rpeer.id
 * @lru: peers that may be evicted, longest silent first
 * @fifo: entries of @tombs, oldest first
 * @stats: counters
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
	bool			revive;
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
void kefa_peers_untold(struct kefa_peers *peers, struct kefa_rpeer *peer);
struct kefa_rpeer *kefa_peers_lost(struct kefa_peers *peers, const struct kefa_rpeer *gone);
void kefa_peers_del(struct kefa_peers *peers, struct kefa_rpeer *peer, bool remember);
struct kefa_rpeer *kefa_peers_next(struct kefa_peers *peers, u16 slid, u32 qpn, u32 connid);
struct kefa_rpeer *kefa_peers_by_src(struct kefa_peers *peers, const struct kefa_src *src);
struct kefa_rpeer *kefa_peers_by_conn(struct kefa_peers *peers, const struct kefa_src *src);
void kefa_peers_bind(struct kefa_peers *peers, struct kefa_rpeer *peer, u16 slid);
void kefa_peers_unbind(struct kefa_peers *peers, struct kefa_rpeer *peer);
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
 * kefa_peers_at() - find a peer by its index in the address vector
 * @peers: peers of the endpoint
 * @addr: index of the peer
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
 * kefa_rpeer_qpn() - get a peer's queue pair number
 * @peer: the peer
 *
 * Context: Any.
 * Return: the number.
 */
static inline u32 kefa_rpeer_qpn(const struct kefa_rpeer *peer)
{
	return upper_32_bits(peer->by_conn.key);
}

/**
 * kefa_rpeer_connid() - get a peer's connid
 * @peer: the peer
 *
 * Context: Any.
 * Return: the connid, which is the key of the peer's queue pair.
 */
static inline u32 kefa_rpeer_connid(const struct kefa_rpeer *peer)
{
	return lower_32_bits(peer->by_conn.key);
}

/**
 * kefa_rpeer_sent() - check by connid and completion whether a peer has sent a packet
 * @peer: the peer
 * @slid: number of the sender's address handle, from the completion
 * @qpn: queue pair of the sender, from the completion
 * @connid: connid in the packet
 *
 * Context: Under the endpoint's lock.
 * Return: whether it has.
 */
static __always_inline bool kefa_rpeer_sent(const struct kefa_rpeer *peer, u16 slid, u32 qpn,
					    u32 connid)
{
	return kefa_rpeer_connid(peer) == connid && peer->by_src.key == ((u64)slid << 32 | qpn);
}

/**
 * kefa_peers_known() - find a sender whose address handle number is known
 * @peers: peers of the endpoint
 * @slid: number of the sender's address handle
 * @qpn: queue pair of the sender
 * @connid: connid in the packet
 *
 * Context: Under @peers->lock.
 * Return: the peer; or NULL: then the caller calls kefa_rdm_sender().
 */
static __always_inline struct kefa_rpeer *kefa_peers_known(struct kefa_peers *peers, u16 slid,
							   u32 qpn, u32 connid)
{
	struct kefa_rpeer *last = peers->last;

	lockdep_assert_held(peers->lock);
	if (likely(last && kefa_rpeer_sent(last, slid, qpn, connid)))
		return last;
	return kefa_peers_next(peers, slid, qpn, connid);
}

/**
 * kefa_rpeer_slid() - get the number of a peer's address handle
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: the number, or KEFA_NO_SLID if no completion has reported it yet.
 */
static inline u16 kefa_rpeer_slid(const struct kefa_rpeer *peer)
{
	return hlist_unhashed(&peer->by_src.node) ? KEFA_NO_SLID :
						    upper_32_bits(peer->by_src.key);
}

/**
 * kefa_rpeer_before() - get the number that a peer's previous address handle had for sure
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: the number, if the peer came back and the number of its handle is unknown; or
 * KEFA_NO_SLID.
 */
static inline u16 kefa_rpeer_before(const struct kefa_rpeer *peer)
{
	return hlist_unhashed(&peer->by_src.node) ?
	       min_t(u32, upper_32_bits(peer->by_src.key), KEFA_NO_SLID) : KEFA_NO_SLID;
}

/**
 * kefa_rpeer_dead() - check whether a peer is dead
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: whether it is, in KEFA_RPEER_DYING or KEFA_RPEER_DEAD.
 */
static inline bool kefa_rpeer_dead(const struct kefa_rpeer *peer)
{
	return peer->state == KEFA_RPEER_DYING || peer->state == KEFA_RPEER_DEAD;
}

/**
 * kefa_rpeer_idle() - check whether a peer has no state other than its message numbers
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: whether the peer is idle.
 */
static inline bool kefa_rpeer_idle(const struct kefa_rpeer *peer)
{
	return !peer->nops && list_empty(&peer->wait) && !peer->kept && !peer->wrs &&
	       !peer->owes && !peer->backoff.waiting;
}

#endif /* KEFA_RDM_PEER_H */
