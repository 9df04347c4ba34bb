/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine: a connection, which is a queue pair to the ULP. It knows nothing of ib_core. Above
 * it, verbs.c posts work requests and takes completions (krc_up_*), below it, net.c sends datagrams
 * (krc_net_*).
 *
 *	conn.c		state, work requests, references
 *	tx.c		datagrams for work requests, completions in order
 *	rma.c		transfers by the device
 *	rx.c		datagrams from the peer
 *	revoke.c	end of a connection
 *	mr.c		memory regions
 *	grant.c		access of the peer's device to these
 *	debugfs.c	/sys/kernel/debug/kofi_rc
 *
 * Work requests are in two rings, with counters that only grow:
 *
 *	send queue	tail <= next <= head: [tail, next) is issued, [next, head) waits
 *	receive queue	done <= filled <= posted: [done, filled) has its message, and waits until a
 *			region that it invalidates is free, or until the ULP knows of the
 *			connection; [filled, posted) are receives for the peer, message n takes
 *			receive n
 *
 * Each datagram but DATA and CREDIT has a sequence number. The receiver places data as soon as it
 * arrives, but what a datagram means happens in order of these numbers: a message completes its
 * receive, and a read is served, when all that was sent before has been placed.
 *
 * The sender's window needs no acknowledgements of ours: when a datagram's send has completed, the
 * datagram is in the receiver's completion queue before all that is sent later. So with a window
 * of w, a datagram is at most w - 1 ahead of the receiver's next number. The receiver allows 2 w.
 *
 * Where both devices can, the data of a write or read isn't sent by datagrams: the peer has
 * announced a key (grant.c), and the device writes or reads (rma.c). The peer's device takes no
 * notice of sequence numbers, so what follows a write is sent when the write is complete. Writes
 * themselves begin as soon as they are posted, ahead of requests that wait.
 *
 * Locks, outer ones first, with interrupts off, because work requests may be posted so:
 *	krc_conn.lock
 *	krc_mrs.lock
 *	krc_mr.lock
 *	krc_queue.lock, or the lock of a ULP's completion queue in krc_up_sent()
 * Datagrams are sent without locks, with interrupts on.
 */
#ifndef KRC_CONN_H
#define KRC_CONN_H

#include <linux/bitops.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <kofi/ulp.h>
#include "mr.h"
#include "wire.h"

#define KRC_COPY	256	/* bytes of pieces that are copied behind the header */
#define KRC_TURN	16	/* datagrams that are built before they are sent */
#define KRC_FLUSH	256	/* work requests that are flushed with interrupts off */
#define KRC_BUFS_MIN	8	/* datagrams that a connection may have if there are enough */
#define KRC_BUFS_SPARE	64	/* when so few are free, a connection may have one */
#define KRC_BUFS_KEPT	4	/* that it keeps for others than DATA */
#define KRC_RECV_SGES	6
#define KRC_WINDOW	128	/* of this side; a power of two */
#define KRC_RMA_PIECES	16	/* of a transfer that are with the device at a time, at most */
#define KRC_GRANTS_MAX	128	/* of a queue */
#define KRC_ONLY_READ	16	/* see krc_conn.only_read */
#define KRC_KEY_SLOTS	256	/* keys of the peer that are kept; a power of two */
#define KRC_STUCK_SECS	120	/* between messages about a device that doesn't let go */

/**
 * enum krc_state - state of a connection
 * @KRC_NEW: receives may be posted
 * @KRC_OPEN: passive side: datagrams are taken, but none is sent, since the peer isn't ready
 * @KRC_LIVE: both sides are ready
 * @KRC_STOPPED: nothing begins any more, and what has begun ends; work requests are kept
 * @KRC_FENCED: nobody reaches memory of this connection any more: work requests are flushed
 */
enum krc_state {
	KRC_NEW,
	KRC_OPEN,
	KRC_LIVE,
	KRC_STOPPED,
	KRC_FENCED,
};

/**
 * enum krc_cause - cause of a connection's end
 * @KRC_BY_ULP: the ULP disconnects or destroys it
 * @KRC_BY_PEER: the peer has ended the session, or is dead
 * @KRC_BY_FAULT: a datagram couldn't be sent
 * @KRC_BY_VIOLATION: the peer has sent something wrong
 * @KRC_BY_REQUEST: a work request was wrong, or the peer refuses a read
 * @KRC_BY_REMOVAL: the device or the link is gone
 */
enum krc_cause {
	KRC_BY_ULP,
	KRC_BY_PEER,
	KRC_BY_FAULT,
	KRC_BY_VIOLATION,
	KRC_BY_REQUEST,
	KRC_BY_REMOVAL,
};

/* Operations of work requests. */
enum krc_op {
	KRC_OP_SEND,
	KRC_OP_WRITE,
	KRC_OP_READ,
	KRC_OP_REG,
	KRC_OP_INVAL,
};

#define KRC_F_SIGNALED	0x1
#define KRC_F_INV	0x2	/* SEND: invalidates krc_swr.key; READ: invalidates its sink */
#define KRC_F_FENCE	0x4	/* wait for earlier reads */

/**
 * struct krc_sge - a piece of local memory
 * @addr: kernel address, or an address of the region
 * @len: bytes
 * @key: key of a region, or 0
 */
struct krc_sge {
	u64	addr;
	u32	len;
	u32	key;
};

/**
 * struct krc_swr - a work request of the send queue
 * @id: the ULP's
 * @op: enum krc_op
 * @flags: KRC_F_* bits
 * @code: operation as the ULP names it
 * @nsge: number of @sge
 * @err: 0 or a negative errno
 * @issued: all its datagrams were built, or the device transfers
 * @read: READ: all data has arrived
 * @ending: @turn is valid: a region must be free before the request is complete
 * @started: REG: the region is registered. WRITE, READ: the device transfers
 * @grant: REG: the peer's device may reach the region
 * @tell: REG: krc_mr_key() has something to tell the peer
 * @parts: datagrams that aren't sent yet, and the device's transfer
 * @total: bytes
 * @got: READ: bytes that have arrived
 * @key: SEND: key to invalidate; INVAL: key; WRITE, READ: the peer's key
 * @sink: READ with KRC_F_INV: key to invalidate
 * @raddr: WRITE, READ: the peer's address
 * @map: REG: the mapping
 * @turn: REG: the registration; otherwise one that has to end
 * @mr: READ by the device: region that @sge is in, in use; or NULL
 * @conn: with @rma, the connection
 * @rma: transfer by the device: of kofi_ulp. Not cleared by krc_sq_next(), as @conn
 * @sge: local memory; for net.c, with @rma, room for as many struct bio_vec
 */
struct krc_swr {
	u64			id;
	u8			op;
	u8			flags;
	u8			code;
	u8			nsge;
	int			err;
	bool			issued;
	bool			read;
	bool			ending;
	bool			started;
	bool			grant;
	bool			tell;
	u32			parts;
	u32			total;
	u32			got;
	u32			key;
	u32			sink;
	u64			raddr;
	struct krc_mr_map	map;
	struct krc_mr_turn	turn;
	struct krc_mr		*mr;
	struct krc_conn		*conn;
	struct kulp_rma		rma;
	struct krc_sge		sge[];
};

/**
 * struct krc_rwr - a receive
 * @id: the ULP's
 * @room: bytes of all of @sge
 * @bytes: bytes of the message
 * @nsge: number of @sge
 * @inv: the message invalidates @key
 * @key: the key
 * @turn: with @inv, registration that has to end
 * @sge: memory, without keys
 */
struct krc_rwr {
	u64			id;
	u32			room;
	u32			bytes;
	u8			nsge;
	bool			inv;
	u32			key;
	struct krc_mr_turn	turn;
	struct krc_sge		sge[KRC_RECV_SGES];
};

/**
 * struct krc_early - a datagram that is placed, but whose turn hasn't come
 * @type: type
 * @flags: flags
 * @number: number of the message or read
 * @offset: offset of the piece
 * @len: SEND: bytes of the piece; READ: bytes of the whole
 * @key: SEND: key to invalidate; READ: key of the memory
 * @addr: READ: the address
 */
struct krc_early {
	u8	type;
	u8	flags;
	u32	number;
	u32	offset;
	u32	len;
	u32	key;
	u64	addr;
};

/**
 * struct krc_read - a read that this side makes
 * @swr: its work request; NULL: the slot is free
 * @number: number in its datagrams; the low bits are the slot
 */
struct krc_read {
	struct krc_swr	*swr;
	u32		number;
};

/* The number of a read, whose low bits are its slot. */
#define KRC_READ_NUMBER(gen, slot)	((gen) * KRC_READS_MAX + (slot))
#define KRC_READ_SLOT(number)		((number) % KRC_READS_MAX)

/**
 * struct krc_served - a read of the peer
 * @number: its number
 * @key: key of the memory
 * @addr: address of the memory
 * @total: bytes
 * @done: bytes that were sent
 * @mr: the region, from the first datagram on
 */
struct krc_served {
	u32		number;
	u32		key;
	u64		addr;
	u32		total;
	u32		done;
	struct krc_mr	*mr;
};

/**
 * struct krc_conn - a connection
 * @refs: references; krc_conn_fini() waits for the last one
 * @released: the last reference was put
 * @mrs: the link's regions
 * @pd: protection domain
 * @max_send: most work requests in the send queue
 * @max_recv: most receives that are posted
 * @lock: protects all below but what is said otherwise
 * @state: set by krc_conn_go() alone
 * @cause: cause of its end
 * @err: errno for krc_up_stopped()
 * @queue: the queue that it uses; set before the state is KRC_OPEN or KRC_LIVE
 * @peer: address of the peer's endpoint
 * @cookie: this side's, whose low 16 bits are an index; 0: none
 * @peer_cookie: the peer's
 * @room: bytes of data in a datagram to the peer
 * @window: window in either direction
 * @sq: ring of struct krc_swr
 * @sq_size: number of these, a power of two
 * @sq_stride: bytes from one to the next
 * @head: number of work requests posted
 * @next: number of these whose datagrams were built
 * @ahead: number of these that were looked at, to begin registrations and writes of the device
 * @written: number of these without a write of the device that isn't complete, at least
 * @tail: number of these that are complete
 * @at_sge: position in @next: piece
 * @at_off: position in @next: offset within the piece
 * @at: position in @next: bytes
 * @rq: ring of receives
 * @rq_size: number of these, a power of two
 * @posted: number of receives posted
 * @filled: number of these that have their message
 * @done: number of these that are complete
 * @told: krc_conn.posted in the last datagram to the peer
 * @holds: receives with messages wait for krc_conn_release()
 * @tx_seq: number of the next datagram
 * @tx_una: oldest one that isn't sent yet
 * @tx_sent: bitmap of those sent since
 * @tx_msgs: number of messages sent
 * @peer_credits: receives that the peer has posted
 * @bufs: datagrams outstanding
 * @rmas: transfers of the device that are outstanding
 * @rma_slots: slots of the device that they take
 * @grants: grants of its regions that aren't over
 * @only_read: number of regions in a row that had a grant, and that the peer has read; up to
 *	KRC_ONLY_READ, after which no region has one until the peer writes
 * @can_write: each side's device writes to memory of which it knows the key
 * @can_read: each side's device reads such memory
 * @can_rma: @can_write or @can_read
 * @keys: keys of the peer's regions, by index
 * @news: keys for the peer, to be sent with or before the next message
 * @nnews: number of these
 * @reads: slots for reads
 * @ord: number of these
 * @nreads: number of these in use, and reads of the device that are outstanding
 * @read_gen: for krc_read.number
 * @served: ring of the peer's reads, whose size is the least power of two for @ird
 * @ird: most reads of the peer
 * @serve_head: number of the peer's reads that were accepted
 * @serve_tail: number of these that are done
 * @rx_next: number of the next datagram; used by the queue's handler alone, as the next two
 * @rx_have: bitmap of datagrams that have come early
 * @early: these
 * @rx_at: bytes of the message in krc_conn.filled that have had their turn, under @lock
 * @mrs_owned: regions that it has registered, under krc_mrs.lock
 * @dirty: in krc_queue.dirty, under krc_queue.lock
 * @starved: in krc_queue.starved, under krc_queue.lock
 * @flushing: a work request didn't succeed, so all that follow are flushed
 * @stop_work: ends the connection
 * @idle: woken when @bufs, @rmas or @grants is 0
 * @flushed: the connection is fenced and its work requests are flushed
 */
struct krc_conn {
	refcount_t		refs;
	struct completion	released;
	struct krc_mrs		*mrs;
	const void		*pd;
	u32			max_send;
	u32			max_recv;
	spinlock_t		lock;		/* protects all below but what is said otherwise */
	enum krc_state		state;
	enum krc_cause		cause;
	int			err;
	struct krc_queue	*queue;
	fi_addr_t		peer;
	u64			cookie;
	u64			peer_cookie;
	u32			room;
	u32			window;

	void			*sq;
	u32			sq_size;
	u32			sq_stride;
	u32			head;
	u32			next;
	u32			ahead;
	u32			written;
	u32			tail;
	u32			at_sge;
	u32			at_off;
	u32			at;

	struct krc_rwr		*rq;
	u32			rq_size;
	u32			posted;
	u32			filled;
	u32			done;
	u32			told;
	bool			holds;

	u32			tx_seq;
	u32			tx_una;
	unsigned long		*tx_sent;
	u32			tx_msgs;
	u32			peer_credits;
	u32			bufs;
	u32			rmas;
	u32			rma_slots;
	u32			grants;
	u32			only_read;
	bool			can_write;
	bool			can_read;
	bool			can_rma;
	struct krc_key		*keys;
	struct krc_key		news[KRC_KEYS_MAX];
	u8			nnews;

	struct krc_read		*reads;
	u32			ord;
	u32			nreads;
	u32			read_gen;
	struct krc_served	*served;
	u32			ird;
	u32			serve_head;
	u32			serve_tail;

	u32			rx_next;
	unsigned long		*rx_have;
	struct krc_early	*early;
	u32			rx_at;

	struct list_head	mrs_owned;
	struct list_head	dirty;
	struct list_head	starved;
	bool			flushing;
	struct work_struct	stop_work;
	wait_queue_head_t	idle;
	struct completion	flushed;
};

/**
 * struct krc_conn_attr - properties of a new connection
 * @mrs: the link's regions
 * @pd: protection domain
 * @sends: most work requests in the send queue
 * @send_sges: most pieces of one
 * @recvs: most receives
 */
struct krc_conn_attr {
	struct krc_mrs	*mrs;
	const void	*pd;
	u32		sends;
	u32		send_sges;
	u32		recvs;
};

/**
 * struct krc_peer - facts about the peer of a connection
 * @queue: queue to use
 * @addr: address of its endpoint
 * @max_msg: longest datagram that this side can send
 * @side: what it tells of itself
 */
struct krc_peer {
	struct krc_queue	*queue;
	fi_addr_t		addr;
	size_t			max_msg;
	struct krc_side		side;
};

/* Header, keys, and data that is copied. */
#define KRC_HEAD_MAX	(KRC_HDR + KRC_KEYS_MAX * sizeof(struct krc_wire_key) + KRC_COPY)

/**
 * struct krc_buf - a datagram to send
 * @list: in krc_queue.free, or with those that are about to be sent
 * @queue: its queue
 * @conn: the connection
 * @mr: region that @piece is in, or NULL
 * @swr: work request, in whose krc_swr.parts it is counted, or NULL
 * @seq: its sequence number, if @counted
 * @counted: it has a sequence number
 * @head_len: bytes of @head
 * @piece: memory that is sent behind @head
 * @piece_len: bytes of @piece
 * @op: of kofi_ulp
 * @bvec: both parts
 * @head: header, keys, and data that is copied
 */
struct krc_buf {
	struct list_head	list;
	struct krc_queue	*queue;
	struct krc_conn		*conn;
	struct krc_mr		*mr;
	struct krc_swr		*swr;
	u32			seq;
	bool			counted;
	u16			head_len;
	void			*piece;
	u32			piece_len;
	struct kulp_op		op;
	struct bio_vec		bvec[2];
	u8			head[KRC_HEAD_MAX] __aligned(8);
};

enum krc_grant_state {
	KRC_GRANT_FREE,
	KRC_GRANT_REGISTERING,
	KRC_GRANT_VALID,
	KRC_GRANT_INVALIDATING,
};

/**
 * struct krc_grant - access of the peer's device to a region: grant.c
 * @list: in one of krc_queue.grants, grants_todo and grants_over, under krc_queue.lock; or in none
 * @queue: its queue
 * @conn: the connection, which counts it in krc_conn.grants, until the grant is over
 * @mr: the region
 * @state: state, under krc_mr.lock
 * @access: while it has a region, KRC_ACCESS_REMOTE_* of the peer's device
 * @drop: it isn't used again; under krc_mr.lock until it is over
 * @keys: registrations that it may still be used for; 0 if there is no limit. Under krc_mr.lock
 *	while it has a region
 * @failed: the device has failed to invalidate, and to destroy the region. Used by one thread at a
 *	time, as @gone and @since
 * @gone: @failed, and the device is gone
 * @since: with @gone, jiffies when that was noticed
 * @key: key for the peer's device, while it is valid
 * @base: address of the region's first byte for the peer's device
 * @op: of kofi_ulp
 * @fid: region of the device, for net.c
 */
struct krc_grant {
	struct list_head	list;
	struct krc_queue	*queue;
	struct krc_conn		*conn;
	struct krc_mr		*mr;
	enum krc_grant_state	state;
	u8			access;
	bool			drop;
	u8			keys;
	bool			failed;
	bool			gone;
	unsigned long		since;
	u64			key;
	u64			base;
	struct kulp_op		op;
	struct fid_mr		*fid;
};

/**
 * struct krc_queue - a queue of connections, on a kulp_queue
 * @lock: protects what follows
 * @free: datagrams that are free
 * @nfree: number of these
 * @starved: connections that wait for one
 * @rma_slots: slots of the device that are free for transfers
 * @dirty: connections to run, each with a reference
 * @work: runs them, if no handler does
 * @grants: grants that are free
 * @grants_todo: grants for krc_grants_go()
 * @grants_over: grants that are to be closed
 * @ngrants: number of all grants
 * @grants_max: most of these
 * @grants_short: there were no regions for more; @grants_work tries again
 * @grants_work: closes grants, and makes some
 * @can_write: devices like this one write to each other's memory; constant, as what follows
 * @can_read: devices like this one read each other's memory
 * @max_rma: longest transfer of the device
 * @bvecs_lock: protects @bvecs; no other lock is taken under it
 * @bvecs: pieces of a region, for net.c
 * @kulp: queue of kofi_ulp, for net.c
 * @net: the device, for net.c
 */
struct krc_queue {
	spinlock_t		lock;	/* protects what follows */
	struct list_head	free;
	u32			nfree;
	struct list_head	starved;
	u32			rma_slots;
	struct list_head	dirty;
	struct work_struct	work;
	struct list_head	grants;
	struct list_head	grants_todo;
	struct list_head	grants_over;
	u32			ngrants;
	u32			grants_max;
	bool			grants_short;
	struct delayed_work	grants_work;
	bool			can_write;
	bool			can_read;
	size_t			max_rma;
	spinlock_t		bvecs_lock;	/* protects bvecs */
	struct bio_vec		*bvecs;
	struct kulp_queue	*kulp;
	struct krc_net		*net;
};

/**
 * enum krc_count - counters in debugfs
 * @KRC_COUNT_INVALID: datagrams that can't be parsed, of nobody knows which connection
 * @KRC_COUNT_STRAY: datagrams for no connection
 * @KRC_COUNT_VIOLATIONS: connections that ended because the peer has violated the protocol
 * @KRC_COUNT_LOST: devices given up because a datagram or a grant didn't end
 * @KRC_COUNT_GRANTS: registrations by the device
 * @KRC_COUNT_UNGRANTED: registrations that the device has refused
 * @KRC_COUNT_WRITES: writes by the device
 * @KRC_COUNT_READS: reads by the device
 * @KRC_COUNT_STUCK: attempts to revoke access to memory that have failed
 * @KRC_COUNTS: number of these
 */
enum krc_count {
	KRC_COUNT_INVALID,
	KRC_COUNT_STRAY,
	KRC_COUNT_VIOLATIONS,
	KRC_COUNT_LOST,
	KRC_COUNT_GRANTS,
	KRC_COUNT_UNGRANTED,
	KRC_COUNT_WRITES,
	KRC_COUNT_READS,
	KRC_COUNT_STUCK,
	KRC_COUNTS,
};

extern atomic64_t krc_counts[KRC_COUNTS];

static inline void krc_count(enum krc_count count)
{
	atomic64_inc(&krc_counts[count]);
}

/* conn.c */

extern struct workqueue_struct *krc_wq;
extern struct workqueue_struct *krc_stop_wq;
extern struct workqueue_struct *krc_grant_wq;

void krc_queue_init(struct krc_queue *q);
void krc_queue_run(struct krc_queue *q);
int krc_conn_init(struct krc_conn *c, const struct krc_conn_attr *attr);
void krc_conn_fini(struct krc_conn *c);
int krc_conn_prepare(struct krc_conn *c, u32 ird, u32 ord);
void krc_conn_describe(struct krc_conn *c, struct krc_side *side);
int krc_conn_open(struct krc_conn *c, const struct krc_peer *peer, bool live);
void krc_conn_go(struct krc_conn *c, enum krc_state state);
void krc_conn_live(struct krc_conn *c);
void krc_conn_hold(struct krc_conn *c);
void krc_conn_release(struct krc_conn *c);
struct krc_conn *krc_conn_find(struct krc_queue *q, u64 cookie);
void krc_conn_forget(struct krc_conn *c);
void krc_conn_dirty(struct krc_conn *c);
void krc_conn_kick(struct krc_conn *c);
void krc_conn_push(struct krc_conn *c);
void krc_conn_exit(void);
struct krc_swr *krc_sq_next(struct krc_conn *c);
int krc_rq_add(struct krc_conn *c, const struct krc_rwr *r);

static inline struct krc_conn *krc_conn_get(struct krc_conn *c)
{
	refcount_inc(&c->refs);
	return c;
}

static inline void krc_conn_put(struct krc_conn *c)
{
	if (refcount_dec_and_test(&c->refs))
		complete(&c->released);
}

static inline struct krc_swr *krc_swr_at(const struct krc_conn *c, u32 i)
{
	return c->sq + (i & (c->sq_size - 1)) * c->sq_stride;
}

/* Pieces that a work request has room for. */
static inline u32 krc_swr_room(const struct krc_conn *c)
{
	return (c->sq_stride - offsetof(struct krc_swr, sge)) / sizeof(struct krc_sge);
}

/* The KRC_ACCESS_REMOTE_* bits that the peer's device is capable of. */
static inline u32 krc_grantable(const struct krc_conn *c)
{
	return (c->can_write ? KRC_ACCESS_REMOTE_WRITE : 0) |
	       (c->can_read ? KRC_ACCESS_REMOTE_READ : 0);
}

/* A slot that is 0 has no key, because index 0 isn't that of a region. */
static inline struct krc_key *krc_key_slot(const struct krc_conn *c, u32 rkey)
{
	return &c->keys[KRC_KEY_INDEX(rkey) & (KRC_KEY_SLOTS - 1)];
}

/* A power of two, so that numbers may wrap. */
static inline u32 krc_served_size(const struct krc_conn *c)
{
	return roundup_pow_of_two(c->ird);
}

static inline struct krc_served *krc_served_at(const struct krc_conn *c, u32 i)
{
	return &c->served[i & (krc_served_size(c) - 1)];
}

static inline struct krc_rwr *krc_rwr_at(const struct krc_conn *c, u32 i)
{
	return &c->rq[i & (c->rq_size - 1)];
}

/**
 * struct krc_turn - datagrams and transfers that are to begin
 * @bufs: the datagrams
 * @n: number of these
 * @rmas: transfers by the device
 * @nrmas: number of these
 * @more: other requests may begin ahead of their turn
 */
struct krc_turn {
	struct list_head	bufs;
	u32			n;
	struct krc_swr		*rmas[KRC_TURN];
	u32			nrmas;
	bool			more;
};

/* tx.c */

void krc_run(struct krc_conn *c);
void krc_run_turns(struct krc_conn *c);
int krc_read_end(struct krc_conn *c, struct krc_swr *w);
bool krc_credit_due(const struct krc_conn *c);
void krc_sent(struct krc_buf *buf, int err);
void krc_queue_feed(struct krc_queue *q);

/* rma.c */

bool krc_rma_write(struct krc_conn *c, struct krc_swr *w, struct krc_turn *turn);
int krc_rma_read(struct krc_conn *c, struct krc_swr *w, struct krc_turn *turn);
bool krc_rma_reads(const struct krc_conn *c, u32 rkey);
bool krc_writes_done(struct krc_conn *c);
void krc_key_written(struct krc_conn *c, u32 rkey);
void krc_rma_done(struct krc_swr *w, int err);

/* grant.c */

bool krc_grant_begin(struct krc_conn *c, struct krc_mr *mr);
void krc_grant_end(struct krc_grant *g, const struct krc_conn *by, bool finished);
void krc_grants_go(struct krc_queue *q);
void krc_granted(struct krc_grant *g, int err);
void krc_grant_revoked(struct krc_grant *g, int err);
void krc_grants_init(struct krc_queue *q);
void krc_grants_fini(struct krc_queue *q);

extern unsigned int krc_rma_min;
extern unsigned int krc_reset_ms;

/* rx.c */

void krc_message(struct krc_queue *q, const void *buf, size_t len);

/* revoke.c */

void krc_stop(struct krc_conn *c, enum krc_cause cause, int err);
void krc_stop_locked(struct krc_conn *c, enum krc_cause cause, int err);
void krc_stop_work(struct work_struct *work);
void krc_wait_flushed(struct krc_conn *c);

extern unsigned int krc_revoke_ms;

/* debugfs.c */

void krc_debugfs_init(void);
void krc_debugfs_exit(void);

/* net.c; tests have another one. */

void krc_net_send(struct krc_buf *buf);
void krc_net_lost(struct krc_queue *q);
void krc_net_rma(struct krc_swr *w);
int krc_net_open_grant(struct krc_grant *g);
void krc_net_grant(struct krc_grant *g);
bool krc_net_gone(const struct krc_grant *g);
int krc_net_close(struct krc_grant *g);
void krc_net_stuck(struct krc_queue *q);

/* verbs.c and cm.c; tests have others. */

void krc_up_sent(struct krc_conn *c, const struct krc_swr *w, int err);
void krc_up_received(struct krc_conn *c, const struct krc_rwr *r, int err);
void krc_up_notify(struct krc_conn *c);
void krc_up_notify_later(struct krc_conn *c);
void krc_up_stopped(struct krc_conn *c, enum krc_cause cause, int err);
void krc_up_flushed(struct krc_conn *c);

#endif /* KRC_CONN_H */
