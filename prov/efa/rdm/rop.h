/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Operations of fabric efa: rop.c. */
#ifndef KEFA_RDM_ROP_H
#define KEFA_RDM_ROP_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <kofi/match.h>
#include "index.h"

struct fi_rma_iov;
struct kefa_atomic;
struct kefa_held;
struct kefa_rpeer;
struct kefa_source;
struct kefa_target;

/**
 * enum kefa_rop_state - state of an operation, which is what it waits for
 * @KEFA_ROP_FREE: none: the slot is free
 * @KEFA_ROP_WAIT: any send: a HANDSHAKE, the end of a delay, its turn, or a send slot
 * @KEFA_ROP_REG: sender of a long read: registration of its memory
 * @KEFA_ROP_RDMA: read or write by the device: slots for its other work requests
 * @KEFA_ROP_POSTED: completion of its packets or work requests, after which it has ended: sends
 *	other than long reads without delivery complete, RMA by the device
 * @KEFA_ROP_GRANT: sender of a long-CTS or read: a CTS, because it has no window
 * @KEFA_ROP_DATA_TX: sender of a long-CTS or read: slots for the rest of its window
 * @KEFA_ROP_ACK: an EOR, RECEIPT, READRSP, READ_NACK or ATOMRSP, after everything was sent
 * @KEFA_ROP_INVAL: sender of a long read: invalidation of its region, whose key the peer had. Then
 *	it ends, or continues by long-CTS
 * @KEFA_ROP_LISTED: posted receive: a message
 * @KEFA_ROP_DATA_RX: receiver, target of a write, or reader: more data from the peer
 * @KEFA_ROP_READING: receiver or target of a write: completion of its RDMA reads
 * @KEFA_ROP_NACKED: receiver: completion of its RDMA reads, then the request that is repeated after
 *	its READ_NACK; target of a write: the peer's HANDSHAKE, then the READ_NACK is due
 * @KEFA_ROP_OWES: receiver or target: delivery of its EOR, RECEIPT or ATOMRSP
 * @KEFA_ROP_UNTOLD: message in a multi-receive buffer, which has arrived: room for its completion
 * @KEFA_ROP_SINK: receiver or target: the rest of a message that is dropped, so that the sender can
 *	complete; the ULP has its completion already
 * @KEFA_ROP_DYING: failed or cancelled: completion of its work requests
 * @KEFA_ROP_STATES: number of states
 */
enum kefa_rop_state {
	KEFA_ROP_FREE,
	KEFA_ROP_WAIT,
	KEFA_ROP_REG,
	KEFA_ROP_RDMA,
	KEFA_ROP_POSTED,
	KEFA_ROP_GRANT,
	KEFA_ROP_DATA_TX,
	KEFA_ROP_ACK,
	KEFA_ROP_INVAL,
	KEFA_ROP_LISTED,
	KEFA_ROP_DATA_RX,
	KEFA_ROP_READING,
	KEFA_ROP_NACKED,
	KEFA_ROP_OWES,
	KEFA_ROP_UNTOLD,
	KEFA_ROP_SINK,
	KEFA_ROP_DYING,
	KEFA_ROP_STATES
};

/* Flags in kefa_rop.flags. */
#define KEFA_ROP_TOLD	0x01	/* the ULP has its completion, or gets none */
#define KEFA_ROP_OVER	0x02	/* the protocol has ended: only work requests may be left */
#define KEFA_ROP_QUIET	0x04	/* no completion on success; with KEFA_ROP_PART none at all */
#define KEFA_ROP_TX	0x08	/* a send; otherwise a receive or a part of one */
#define KEFA_ROP_MULTI	0x10	/* a multi-receive buffer */
#define KEFA_ROP_PART	0x20	/* a message in the multi-receive buffer @parent */
#define KEFA_ROP_SPENT	0x40	/* a multi-receive buffer that accepts no more messages */
#define KEFA_ROP_AS_MSG	0x40	/* no KEFA_ROP_MULTI: see kefa_as_msg() */
#define KEFA_ROP_DC	0x80	/* a message whose sender waits for a RECEIPT */

/* Flags in kefa_rop.more. */
#define KEFA_ROP_NO_READ	0x01	/* the message mustn't be read by the peer */
#define KEFA_ROP_TARGET		0x02	/* a peer's read or write: target.c */
#define KEFA_ROP_FAR		0x04	/* a read or write of the ULP: far.c */
#define KEFA_ROP_RSP		0x08	/* a read that has its READRSP, and so the peer's id */
#define KEFA_ROP_ATOMIC		0x10	/* with KEFA_ROP_FAR, an atomic operation: atomic.c */
#define KEFA_ROP_FENCE		0x80	/* FI_FENCE: it waits for earlier operations to the peer */

/* Flags in kefa_rop.owes: packets that are due and wait for a slot. */
#define KEFA_ROP_OWES_CTS	0x01
#define KEFA_ROP_OWES_EOR	0x02
#define KEFA_ROP_OWES_RECEIPT	0x04
#define KEFA_ROP_OWES_NACK	0x08
#define KEFA_ROP_OWES_AGAIN	0x10	/* its repeated request, after a READ_NACK */
#define KEFA_ROP_OWES_INVAL	0x20	/* an invalidation, by the device */

/**
 * struct kefa_rbuf - buffer of an operation
 * @base: address, or array of segments, which the ULP doesn't change until the completion
 * @len: length in bytes
 * @skip: bytes of the first segment that don't belong to the buffer
 * @segs: number of segments at @base; 0 for an address
 * @bvec: the segments are &struct bio_vec instead of &struct kvec
 */
struct kefa_rbuf {
	void	*base;
	u64	len;
	u32	skip;
	u16	segs;
	bool	bvec;
};

/**
 * struct kefa_rop - an operation of the ULP or, with KEFA_ROP_TOLD, of a peer
 * @state: enum kefa_rop_state
 * @type: type of the request packet
 * @flags: KEFA_ROP_TOLD and so on
 * @owes: KEFA_ROP_OWES_CTS and so on
 * @gen: number of uses of the slot whose id a peer may know
 * @wrs: number of work requests that the device has or that are parked; for a multi-receive
 *	buffer, number of messages that are arriving in it
 * @peer: peer of the operation; NULL for a posted receive from any peer
 * @context: context of the ULP
 * @cq_flags: flags of the completion
 * @err: positive errno of the first failure
 * @prov: status of the device for the first failure
 * @data: remote CQ data
 * @tag: tag of the message; with KEFA_ROP_FAR, kofi_req.tag
 * @msg_id: number of the message; with KEFA_ROP_FAR, number of checks of far.c since the call
 * @remote_id: id of the peer's operation
 * @total: length of the message, which may exceed the buffer
 * @done: bytes of a receive that have arrived; bytes of a send that may be sent by now
 * @sent: bytes of a send that were passed to the device; bytes of a receive that were read or, with
 *	@begun, that had arrived at the last check of fair.c
 * @window: bytes that the peer may send before the next CTS
 * @more: KEFA_ROP_NO_READ and so on; 0 in KEFA_ROP_LISTED
 * @mapped: the packets share one mapping, @dma, as kefa_ts.shared; never in KEFA_ROP_FREE
 * @begun: for a receive, counted in kefa_fair.begun; never in KEFA_ROP_FREE
 * @idle: with @begun, number of checks of fair.c since which no data has arrived; with
 *	KEFA_ROP_FAR, number of checks of far.c since which the peer hasn't answered
 * @buf: buffer of the operation
 * @next: in KEFA_ROP_FREE, the next free operation
 * @recv: in KEFA_ROP_LISTED, the entry in the match
 * @link: entry in one of the engine's lists; valid, as all that follows, in all other states
 * @peer_link: entry in kefa_rpeer.wait; with KEFA_ROP_PART in kefa_fair.untold
 * @msg: entry in the table by (peer, msg_id), if more of the message is expected
 * @far: with KEFA_ROP_FAR, the peer's memory: one piece at @far.addr with @far.key, or @far.n
 *	pieces in @far.list, the ULP's array; with KEFA_ROP_ATOMIC @far.atomic, NULL after the
 *	completion
 * @runt: bytes that are sent in advance of a message that is read
 * @source: for a send, the region that the peer reads from, or NULL
 * @dma: for a send with @mapped, DMA address of all data, which the device reads
 * @held: for a receive, the request of a message that is being read, or NULL
 * @parent: for a receive with KEFA_ROP_PART, the multi-receive buffer
 * @target: with KEFA_ROP_TARGET, the memory that the peer names; NULL if it isn't accessed any more
 *
 * An operation ends when its protocol has ended (KEFA_ROP_OVER) and the device has none of its
 * work requests, in any order: answers may arrive before completions. The ULP gets one completion.
 * Protected by the endpoint's lock.
 */
struct kefa_rop {
	u8			state;
	u8			type;
	u8			flags;
	u8			owes;
	u16			gen;
	u16			wrs;
	struct kefa_rpeer	*peer;
	void			*context;
	u32			cq_flags;
	s16			err;
	u16			prov;
	u64			data;
	u64			tag;
	u32			msg_id;
	u32			remote_id;
	u64			total;
	u64			done;
	u64			sent;
	u32			window;
	u8			more;
	bool			mapped;
	bool			begun;
	u8			idle;
	struct kefa_rbuf	buf;
	union {
		struct kefa_rop		*next;	/* KEFA_ROP_FREE */
		struct kofi_match_recv	recv;	/* KEFA_ROP_LISTED */
		struct {			/* all other states */
			struct list_head	link;
			struct list_head	peer_link;
			union {
				struct kefa_index_node	msg;
				struct {	/* KEFA_ROP_FAR */
					union {
						u64			addr;
						const struct fi_rma_iov	*list;
						struct kefa_atomic	*atomic;
					};
					u64	key;
					u32	n;
				} far;
			};
			u64			runt;
			union {
				struct {	/* KEFA_ROP_TX */
					struct kefa_source	*source;
					dma_addr_t		dma;
				};
				struct {	/* receives */
					struct kefa_held	*held;
					union {
						struct kefa_rop		*parent;
						struct kefa_target	*target;
					};
				};
			};
		};
	};
};

/* Three cache lines. */
static_assert(sizeof(struct kefa_rop) <= 192);

/**
 * struct kefa_rops - the operations of an endpoint
 * @lock: lock of the endpoint, protects all other fields and the operations
 * @ops: array of all operations
 * @size: number of entries of @ops, at most 65536
 * @used: number of operations in use
 * @free: list of free operations, oldest first, so that the id of an ended operation isn't reused
 *	soon. Receives whose id no peer knows are put in front
 * @free_tail: end of @free, where the next one is linked
 */
struct kefa_rops {
	spinlock_t		*lock;	/* the endpoint's */
	struct kefa_rop		*ops;
	u32			size;
	u32			used;
	struct kefa_rop		*free;
	struct kefa_rop		**free_tail;
};

int kefa_rops_init(struct kefa_rops *rops, spinlock_t *lock, u32 size);
void kefa_rops_fini(struct kefa_rops *rops);
struct kefa_rop *kefa_rop_take(struct kefa_rops *rops, enum kefa_rop_state state);
struct kefa_rop *kefa_rop_find(const struct kefa_rops *rops, u32 id);
bool kefa_rop_end(struct kefa_rops *rops, struct kefa_rop *rop);
const char *kefa_rop_state_text(enum kefa_rop_state state);

/* For each state, a bitmap of the states from which it can be entered. */
extern const u32 kefa_rop_from[KEFA_ROP_STATES];

/**
 * kefa_rop_set_state() - change the state of an operation
 * @rops: operations of the endpoint
 * @rop: the operation
 * @state: new state of the operation
 *
 * Only kefa_rop_end() and fast_eager.c set KEFA_ROP_FREE.
 *
 * Context: Under the endpoint's lock.
 */
static inline void kefa_rop_set_state(const struct kefa_rops *rops, struct kefa_rop *rop,
				      enum kefa_rop_state state)
{
	lockdep_assert_held(rops->lock);
	WARN_ON_ONCE(!(kefa_rop_from[state] & BIT(rop->state)));
	rop->state = state;
}

/**
 * kefa_rop_pop() - take a free operation, without initializing it
 * @rops: operations of the endpoint, at least one of which is free
 *
 * Context: Under the endpoint's lock.
 * Return: the operation, all fields of which the caller or kefa_rop_unlist() must set.
 */
static inline struct kefa_rop *kefa_rop_pop(struct kefa_rops *rops)
{
	struct kefa_rop *rop = rops->free;

	lockdep_assert_held(rops->lock);
	rops->free = rop->next;
	if (unlikely(!rops->free))
		rops->free_tail = &rops->free;
	rops->used++;
	return rop;
}

/**
 * kefa_rop_get() - take a free operation, without initializing it
 * @rops: operations of the endpoint
 *
 * Context: Under the endpoint's lock.
 * Return: the operation as from kefa_rop_pop(), or NULL if none is free.
 */
static inline struct kefa_rop *kefa_rop_get(struct kefa_rops *rops)
{
	return likely(rops->free) ? kefa_rop_pop(rops) : NULL;
}

/**
 * kefa_rops_put() - free operations whose ids no peer knows
 * @rops: operations of the endpoint
 * @first: first one, in KEFA_ROP_FREE and linked to the others by @next
 * @last: address of the last one's @next
 * @n: number of operations
 *
 * They are reused first, because their memory is in the cache.
 *
 * Context: Under the endpoint's lock.
 */
static inline void kefa_rops_put(struct kefa_rops *rops, struct kefa_rop *first,
				 struct kefa_rop **last, u32 n)
{
	lockdep_assert_held(rops->lock);
	if (unlikely(!rops->free))
		rops->free_tail = last;
	*last = rops->free;
	rops->free = first;
	rops->used -= n;
}

/**
 * kefa_rop_unlist() - initialize the members that a posted receive doesn't use
 * @rop: the operation, which was just taken, or removed from the match
 *
 * Some of them share memory with kefa_rop.recv, which isn't valid afterwards. A receive that takes
 * a message of one packet ends without this.
 *
 * Context: Under the endpoint's lock.
 */
static inline void kefa_rop_unlist(struct kefa_rop *rop)
{
	rop->owes = 0;
	rop->wrs = 0;
	rop->done = 0;
	rop->sent = 0;
	rop->window = 0;
	rop->more = 0;
	rop->begun = false;
	rop->idle = 0;
	INIT_LIST_HEAD(&rop->link);
	INIT_LIST_HEAD(&rop->peer_link);
	INIT_HLIST_NODE(&rop->msg.node);
	rop->runt = 0;
	rop->held = NULL;
}

/**
 * kefa_rop_untold() - check whether the completion of a message waits for room
 * @rop: the operation, not in KEFA_ROP_FREE or KEFA_ROP_LISTED
 *
 * Context: Under the endpoint's lock.
 * Return: whether it does.
 */
static inline bool kefa_rop_untold(const struct kefa_rop *rop)
{
	return rop->flags & KEFA_ROP_PART && !list_empty(&rop->peer_link);
}

/**
 * kefa_rop_id() - get the id of an operation on the wire
 * @rops: operations of the endpoint
 * @rop: the operation
 *
 * Context: Under the endpoint's lock.
 * Return: the send_id or recv_id, which repeats only after 65536 uses of the slot.
 */
static inline u32 kefa_rop_id(const struct kefa_rops *rops, const struct kefa_rop *rop)
{
	return (u32)rop->gen << 16 | (rop - rops->ops);
}

/**
 * kefa_msg_key() - get the key of a kept packet in the table of messages, kefa_rdm.msgs
 * @peer_id: kefa_rpeer.id, at most INT_MAX
 * @msg_id: number of the message
 *
 * Context: Any.
 * Return: the key.
 */
static inline u64 kefa_msg_key(u32 peer_id, u32 msg_id)
{
	return (u64)peer_id << 32 | msg_id;
}

/**
 * kefa_rop_key() - get the key of an operation in the table of messages, kefa_rdm.msgs
 * @peer_id: kefa_rpeer.id
 * @msg_id: number of the message
 *
 * It differs from the keys of kept packets, so a lookup finds either operations or packets.
 *
 * Context: Any.
 * Return: the key.
 */
static inline u64 kefa_rop_key(u32 peer_id, u32 msg_id)
{
	return kefa_msg_key(peer_id, msg_id) | BIT_ULL(63);
}

/**
 * kefa_as_msg() - describe a tagged message as an untagged one, for KOFI_OPT_AS_MSG
 * @flags: flags of the completion
 * @tag: tag of the completion
 *
 * Called for operations with KEFA_ROP_AS_MSG, which isn't tested for where KEFA_ROP_QUIET isn't.
 *
 * Context: Any.
 */
static inline void kefa_as_msg(u64 *flags, u64 *tag)
{
	if (!(*flags & FI_TAGGED))
		return;
	*flags ^= FI_TAGGED | FI_MSG;
	*tag = 0;
}

/**
 * kefa_rop_has() - check the tag of an operation
 * @rop: the operation, also one that is free
 * @tag: the tag
 *
 * Return: whether it is a tagged message, or an operation of the ULP on a peer's memory, with this
 * tag.
 */
static inline bool kefa_rop_has(const struct kefa_rop *rop, u64 tag)
{
	const u32 tagged = FI_TAGGED | FI_RMA | FI_ATOMIC;

	return rop->state != KEFA_ROP_FREE && rop->cq_flags & tagged && rop->tag == tag;
}

#endif /* KEFA_RDM_ROP_H */
