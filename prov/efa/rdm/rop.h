/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Operations of fabric efa: rop.c. */
#ifndef KEFA_RDM_ROP_H
#define KEFA_RDM_ROP_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <kofi/match.h>
#include "index.h"

struct kefa_held;
struct kefa_rpeer;
struct kefa_source;

/**
 * enum kefa_rop_state - what an operation waits for
 * @KEFA_ROP_FREE: to be used
 * @KEFA_ROP_WAIT: to begin: for a HANDSHAKE, the end of a backoff, its turn, or a slot.
 *	Sender of anything
 * @KEFA_ROP_REG: that the memory it sends from is registered. Long read
 * @KEFA_ROP_POSTED: that its packets, or work requests, complete; nothing else is to come.
 *	All but long reads, without delivery complete; device RMA
 * @KEFA_ROP_GRANT: a CTS, as there is no window. Long-CTS and reads, sender
 * @KEFA_ROP_DATA_TX: to have used up its window. Likewise
 * @KEFA_ROP_ACK: an EOR, RECEIPT, READRSP, READ_NACK or ATOMRSP; all is sent
 * @KEFA_ROP_INVAL: that its region is invalidated, of which the peer had the key. Long read;
 *	then it is over, or goes on by long-CTS
 * @KEFA_ROP_LISTED: a message, as it is a posted receive
 * @KEFA_ROP_DATA_RX: more data from the peer. Receiver, target of a write, reader
 * @KEFA_ROP_READING: that its RDMA reads complete. Receiver, target of a write
 * @KEFA_ROP_NACKED: that its RDMA reads complete, and then the request that a READ_NACK asks
 *	for. Receiver
 * @KEFA_ROP_OWES: that its answer arrives: EOR, RECEIPT, ATOMRSP. Receiver, target
 * @KEFA_ROP_SINK: the rest of a message that nobody wants, which the sender has to get rid
 *	of. Receiver, target; the ULP knows already
 * @KEFA_ROP_DYING: that its work requests complete; it has failed or was cancelled
 * @KEFA_ROP_STATES: how many there are
 */
enum kefa_rop_state {
	KEFA_ROP_FREE,
	KEFA_ROP_WAIT,
	KEFA_ROP_REG,
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
	KEFA_ROP_SINK,
	KEFA_ROP_DYING,
	KEFA_ROP_STATES
};

/* Of kefa_rop.flags. */
#define KEFA_ROP_TOLD	0x01	/* the ULP was told, or isn't to be */
#define KEFA_ROP_OVER	0x02	/* the protocol is over: only work requests may be left */
#define KEFA_ROP_QUIET	0x04	/* no completion if it succeeds */
#define KEFA_ROP_TX	0x08	/* a send; or else a receive, or part of one */
#define KEFA_ROP_MULTI	0x10	/* a multi-receive buffer */
#define KEFA_ROP_PART	0x20	/* a message into one: @parent */
#define KEFA_ROP_SPENT	0x40	/* a multi-receive buffer that takes no more messages */
#define KEFA_ROP_DC	0x80	/* a message whose sender waits for a RECEIPT */

/* Of kefa_rop.owes: packets that it is to send, and has no slot for. */
#define KEFA_ROP_OWES_CTS	0x01
#define KEFA_ROP_OWES_EOR	0x02
#define KEFA_ROP_OWES_RECEIPT	0x04
#define KEFA_ROP_OWES_NACK	0x08
#define KEFA_ROP_OWES_AGAIN	0x10	/* its request, as the message can't be read */
#define KEFA_ROP_OWES_INVAL	0x20	/* to the device, not to the peer */

/**
 * struct kefa_rbuf - memory of the ULP's
 * @base: an address, or an array of segments that stays as it is until the completion
 * @len: bytes
 * @skip: bytes of the first segment that aren't part of it
 * @segs: segments at @base; 0 for an address
 * @bvec: they are &struct bio_vec, and not &struct kvec
 */
struct kefa_rbuf {
	void	*base;
	u64	len;
	u32	skip;
	u16	segs;
	bool	bvec;
};

/**
 * struct kefa_rop - an operation of a ULP's or, with KEFA_ROP_TOLD, of a peer's
 * @state: enum kefa_rop_state
 * @type: of its request packet
 * @flags: KEFA_ROP_TOLD and so on
 * @owes: KEFA_ROP_OWES_CTS and so on
 * @gen: how often the slot was used by an operation that peers may have been told of
 * @wrs: work requests that the device has, or that are to be sent again; of a
 *	multi-receive buffer the messages that arrive in it
 * @peer: with whom; NULL for a posted receive from anybody
 * @context: the ULP's
 * @cq_flags: what the completion says
 * @err: positive errno of the first failure
 * @prov: and the device's status
 * @data: remote CQ data
 * @tag: of a message
 * @msg_id: its number
 * @remote_id: what the peer calls its operation
 * @total: bytes of the message, which may be more than the buffer has
 * @done: of these, those that have arrived; of a send those that may be sent by now
 * @sent: of these, those that were handed to the device
 * @window: bytes that the peer may send before the next CTS
 * @no_read: the peer isn't to read it
 * @buf: where they are
 * @next: in KEFA_ROP_FREE, the next one
 * @recv: in KEFA_ROP_LISTED, its place in the match
 * @link: else, its place in one of the engine's lists
 * @peer_link: its place in kefa_rpeer.wait
 * @msg: its place in the table by (peer, msg_id), of a message of which more is to come
 * @runt: bytes of a message that is to be read which go with its requests
 * @source: of a send: the region that the peer reads from, or NULL
 * @held: of a receive: the request of a message that is being read, or NULL
 * @parent: with KEFA_ROP_PART: the multi-receive buffer
 *
 * An operation lasts until its protocol is over, as KEFA_ROP_OVER says, and the device has
 * none of its work requests: answers may come before completions. The ULP is told once.
 * All of it is under the endpoint's lock.
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
	bool			no_read;
	struct kefa_rbuf	buf;
	union {
		struct kefa_rop		*next;
		struct kofi_match_recv	recv;
		struct {
			struct list_head	link;
			struct list_head	peer_link;
			struct kefa_index_node	msg;
			u64			runt;
			union {
				struct kefa_source	*source;
				struct kefa_held	*held;
			};
			struct kefa_rop		*parent;
		};
	};
};

/* Three cache lines. */
static_assert(sizeof(struct kefa_rop) <= 192);

/**
 * struct kefa_rops - the operations of an endpoint
 * @lock: the endpoint's, protects all of this and the operations
 * @ops: all of them
 * @size: how many there are, at most 65536
 * @used: how many aren't free
 * @free: those that are; the one that was freed first comes first, so that an id of an
 *	operation that is over isn't soon another's. But receives come before, of which
 *	nobody was told
 * @free_tail: where the next one is linked
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
bool kefa_rop_may_become(enum kefa_rop_state from, enum kefa_rop_state to);
const char *kefa_rop_state_text(enum kefa_rop_state state);

/* From which states there is a way to each: bits by enum kefa_rop_state. */
extern const u32 kefa_rop_from[KEFA_ROP_STATES];

/**
 * kefa_rop_set_state() - change the state of an operation
 * @rops: of the endpoint
 * @rop: the operation
 * @state: its new state
 *
 * KEFA_ROP_FREE is for kefa_rop_end(), and for eager.c.
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
 * kefa_rop_get() - take a free operation, as it is
 * @rops: of the endpoint
 *
 * Context: Under the endpoint's lock.
 * Return: the operation, of which the caller sets everything; or NULL if there is none.
 */
static inline struct kefa_rop *kefa_rop_get(struct kefa_rops *rops)
{
	struct kefa_rop *rop = rops->free;

	lockdep_assert_held(rops->lock);
	if (unlikely(!rop))
		return NULL;
	rops->free = rop->next;
	if (unlikely(!rops->free))
		rops->free_tail = &rops->free;
	rops->used++;
	return rop;
}

/**
 * kefa_rops_put() - give operations back that no peer was told of
 * @rops: of the endpoint
 * @first: the first, in KEFA_ROP_FREE, and linked to the others by @next
 * @last: the @next of the last
 * @n: how many
 *
 * They are the next to be used, as their memory is in the cache.
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
 * kefa_rop_unlist() - have an operation be in no list
 * @rop: the operation, which may have been a receive in the match: its place there is the
 *	memory of other things now
 *
 * Context: Under the endpoint's lock.
 */
static inline void kefa_rop_unlist(struct kefa_rop *rop)
{
	INIT_LIST_HEAD(&rop->link);
	INIT_LIST_HEAD(&rop->peer_link);
	INIT_HLIST_NODE(&rop->msg.node);
	rop->runt = 0;
	rop->held = NULL;
}

/**
 * kefa_rop_id() - what peers call an operation
 * @rops: of the endpoint
 * @rop: the operation
 *
 * Context: Under the endpoint's lock.
 * Return: its send_id or recv_id, which isn't another's until the slot was used 65536 times.
 */
static inline u32 kefa_rop_id(const struct kefa_rops *rops, const struct kefa_rop *rop)
{
	return (u32)rop->gen << 16 | (rop - rops->ops);
}

/**
 * kefa_rop_key() - the key of a message in the table by (peer, msg_id)
 * @peer_id: kefa_rpeer.id
 * @msg_id: number of the message
 *
 * Context: Any.
 * Return: the key.
 */
static inline u64 kefa_rop_key(u32 peer_id, u32 msg_id)
{
	return (u64)peer_id << 32 | msg_id;
}

#endif /* KEFA_RDM_ROP_H */
