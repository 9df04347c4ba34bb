/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Endpoints of fabric efa: declarations that the files of the engine share. The files are listed
 * in Documentation/efa-rdm.rst.
 *
 * The endpoint's lock, kefa_ep.lock, protects everything. Only allocating peers and creating
 * address handles is done without it, because both sleep.
 */
#ifndef KEFA_RDM_RDM_H
#define KEFA_RDM_RDM_H

#include <linux/hrtimer.h>
#include <kofi/match.h>
#include "../av.h"
#include "../copy.h"
#include "../dma.h"
#include "../ep.h"
#include "../mem.h"
#include "backoff.h"
#include "fair.h"
#include "index.h"
#include "order.h"
#include "packet.h"
#include "peer.h"
#include "rop.h"
#include "select.h"
#include "shape.h"
#include "shake.h"
#include "stats.h"

#define KEFA_RDM_TX_CAPS	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | \
				 FI_WRITE | FI_FENCE)
#define KEFA_RDM_RX_CAPS	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | \
				 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT | FI_SOURCE | \
				 FI_DIRECTED_RECV | FI_MULTI_RECV)
#define KEFA_RDM_CAPS		(KEFA_RDM_TX_CAPS | KEFA_RDM_RX_CAPS | \
				 FI_LOCAL_COMM | FI_REMOTE_COMM)

/* Messages and atomic operations have one order. */
#define KEFA_RDM_ORDER		(FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | \
				 FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)

#define KEFA_RDM_RX_FLAGS	(KEFA_RX_FLAGS | FI_MULTI_RECV | FI_PEEK | FI_CLAIM | \
				 FI_DISCARD)

enum {
	/* Operations besides the ULP's, for messages in multi-receive buffers and answers. */
	KEFA_RDM_SPARE_OPS	= 64,
	/* Number of long reads and writes by all peers, and by one, at a time. */
	KEFA_TARGETS		= 32,
	KEFA_TARGETS_PEER	= 8,
	/* Number of requests by peers that the pump tries again, and that it handles, at a time. */
	KEFA_ASKED_TRIES	= 128,
	KEFA_ASKED_TURN		= 16,
	/* Default number of sends, and of receives, that the ULP can have outstanding. */
	KEFA_RDM_SIZE		= 256,
	/* Maximum length of a packet that is copied to the slot's header, and needs no mapping. */
	KEFA_TS_ROOM		= 512,
	/* Maximum length of a packet that is copied to be kept, so that its buffer is free. */
	KEFA_KEEP_COPY		= 1024,
	/* Number of early packets after which other messages that are due wait for the worker. */
	KEFA_DRAIN_MAX		= 64,
	/* Maximum number of RECEIPTs that are due to a peer that isn't ready. */
	KEFA_OWED_MAX		= 32,
	/* Number of different wrong keys after which a peer in no address vector dies. */
	KEFA_FAULTS_MAX		= 64,
	/* Number of attempts to create an address handle, and milliseconds between them. */
	KEFA_JOIN_TRIES		= 50,
	KEFA_JOIN_RETRY_MS	= 20,
	/* Longest time for which closing waits until answers to peers are sent. */
	KEFA_LINGER_MS		= 1000,
	/* Maximum number of peers in no address vector whose address handles aren't confirmed. */
	KEFA_UNSURE_MAX		= 64,
	/* Time after which a silent peer that operations wait for is asked for a sign of life. */
	KEFA_SILENT_MS		= 500,
	/* Time after which a message without progress kills a peer in no address vector. */
	KEFA_STALL_MS		= 30000,
	/* Time after which early packets kill a peer, if they use up their memory for so long. */
	KEFA_LATE_MS		= 100,
	/* Number of checks, one each KEFA_SILENT_MS, that a peer may take no answers. */
	KEFA_UNREADY_CHECKS	= 2,
	/* Shortest time in which a peer can use up the receives for answers, and dies then. */
	KEFA_SHUT_MS		= 4000,
	/* Number of receives that are posted when an endpoint is enabled. */
	KEFA_RX_FIRST		= 32,
	/* Minimum number of posted receives, however much is kept, so that answers can arrive. */
	KEFA_RX_LEAST		= 16,
	/* Entries that a completion queue reserves for unsolicited completions. */
	KEFA_CQ_RESERVE		= 64,
	/* Share of the send slots, as a divisor, that one of several peers may have. */
	KEFA_TX_SHARE		= 4,
	/* Share of the send slots, as a divisor, that granted data leaves to requests. */
	KEFA_TX_REQUESTS	= 4,
	/* Number of packets that an operation sends, or reads that it posts, in its turn. */
	KEFA_TURN		= 8,
	/* Maximum number of outstanding reads of an operation. */
	KEFA_READS_MAX		= 32,
	/* Default of FI_OPT_MIN_MULTI_RECV. */
	KEFA_MIN_MULTI_RECV	= 64,
};

/* Longest message: the protocol has no limit. */
#define KEFA_RDM_MAX_MSG	((size_t)LONG_MAX)

/* Bytes that a peer reads between two checks of silent.c at least, before it counts as silent. */
#define KEFA_FAR_SLOWEST	SZ_8M

/* Number of pages of a region that peers read a message from. */
#define KEFA_SOURCE_PAGES	1024

/* Size of the chunks in which receive buffers are allocated. */
#define KEFA_CHUNK_BYTES	SZ_64K

/* Bit of a work request's id, in the half with the slot: it is a receive. */
#define KEFA_RS_ID		BIT(31)

enum kefa_ts_state {
	KEFA_TS_FREE,
	KEFA_TS_POSTED,	/* with the device, or held for the next doorbell */
	KEFA_TS_PARKED,	/* to be sent again after the peer's delay */
	KEFA_TS_REFUSED, /* refused by the device, so kefa_rdm_reap() fails it */
};

/**
 * enum kefa_ts_what - use of a send slot
 * @KEFA_TS_PACKET: a packet
 * @KEFA_TS_READ: a read of the peer's memory
 * @KEFA_TS_REG: a registration of memory that the peer reads
 * @KEFA_TS_INVAL: an invalidation of that memory's registration
 * @KEFA_TS_WRITE: a write to the peer's memory
 * @KEFA_TS_FETCH: a read of the peer's memory into a region, for the peer's write
 * @KEFA_TS_WHATS: number of uses
 */
enum kefa_ts_what {
	KEFA_TS_PACKET,
	KEFA_TS_READ,
	KEFA_TS_REG,
	KEFA_TS_INVAL,
	KEFA_TS_WRITE,
	KEFA_TS_FETCH,
	KEFA_TS_WHATS
};

/**
 * enum kefa_whole - relation of a send slot to an operation of the ULP
 * @KEFA_WHOLE_NOT: the operation is kefa_ts.rop, if there is one
 * @KEFA_WHOLE_PACKET: it is a message or a write in one packet
 * @KEFA_WHOLE_RDMA: it is a read or write by the device, in one work request
 */
enum kefa_whole {
	KEFA_WHOLE_NOT,
	KEFA_WHOLE_PACKET,
	KEFA_WHOLE_RDMA,
};

/**
 * struct kefa_ts - a send slot, in use until the device has delivered the packet
 * @next: in KEFA_TS_FREE, the next free slot, or the next one that fast_eager.c reports; with a
 *	local peer, the next one in its queue or in that of returned slots
 * @list: in KEFA_TS_PARKED, entry in kefa_rdm.parked; in KEFA_TS_REFUSED, in kefa_rdm.refusals
 * @rop: the operation; NULL for packets without one, such as HANDSHAKE, and with @whole
 * @peer: receiver of the packet
 * @id: id of the work request: the slot, and in the upper half the number of its uses
 * @hdr: headers, followed by data up to KEFA_TS_ROOM in total
 * @dma: DMA address of @hdr
 * @seg: data that is sent without a copy, or memory that is read into; length 0 if there is
 *	neither. With @whole and a local peer, what is left of the message
 * @copy: bounce buffer with the whole packet, or NULL
 * @context: with @whole, context of the ULP
 * @mr: in KEFA_TS_FETCH and with @lends, the region, counted in kefa_mr.reads
 * @kept: for a packet with kefa_ts_saves() that must be made again, the whole packet
 * @tag: with @whole, tag of the message
 * @raddr: of a work request by kefa_rdma_wr(), address of the peer's memory
 * @total: with @whole, length of the message, read or write; for a local peer in one slot, though
 *	it has the type of a message in several packets
 * @rkey: with @raddr, key of the peer's memory
 * @cq_flags: with @whole, flags of the completion
 * @err: with @whole or in KEFA_TS_REFUSED, positive errno of the first failure
 * @prov: with @whole, status of the device for the first failure
 * @imm: remote CQ data of a message without a header, or of a write
 * @msg_id: with @ordered, number of the message
 * @len: bytes at @hdr or @copy; more than KEFA_TS_ROOM without @copy if the packet must be made
 *	again: kefa_tx_again(); with @whole and a local peer, what local.c has written
 * @type: enum kefa_pkt_type, or 0 for a message without a header
 * @state: enum kefa_ts_state
 * @what: enum kefa_ts_what
 * @again: the packet was sent before, and found the peer without a receive
 * @has_imm: @imm is valid
 * @ordered: the packet is counted in the peer's order
 * @shared: @seg is a part of the mapping of its operation; in KEFA_TS_FETCH it is one of @mr's;
 *	with a local peer it isn't mapped
 * @whole: enum kefa_whole
 * @how: with @whole, KEFA_ROP_QUIET or KEFA_ROP_AS_MSG of the message, or 0
 * @serves: the packet is counted in kefa_rpeer.answers
 * @lends: @seg is a part of @mr, from which a local peer copies
 * @status: status with which a local peer has returned the slot
 * @home: the endpoint, as its local peers see it
 *
 * In a free slot @rop, @seg.len, @copy, @err, @what, @again, @has_imm, @ordered, @shared, @whole,
 * @serves and @lends are clear.
 */
struct kefa_ts {
	struct kefa_ts		*next;
	struct list_head	list;
	struct kefa_rop		*rop;
	struct kefa_rpeer	*peer;
	u64			id;
	u8			*hdr;
	dma_addr_t		dma;
	struct kefa_seg		seg;
	struct kefa_copy	*copy;
	union {
		void		*context;
		struct kefa_mr	*mr;
		void		*kept;
	};
	union {
		u64		tag;
		u64		raddr;
	};
	union {
		u32		total;
		u32		rkey;
	};
	u32			cq_flags;
	int			err;
	u32			prov;
	u32			imm;
	u32			msg_id;
	u16			len;
	u8			type;
	u8			state;
	u8			what;
	bool			again;
	bool			has_imm;
	bool			ordered;
	bool			shared;
	u8			whole;
	u8			how;
	bool			serves;
	bool			lends;
	u8			status;
	struct kefa_local	*home;
};

/**
 * enum kefa_held_where - place of a kept packet
 * @KEFA_HELD_NOT: the packet isn't kept
 * @KEFA_HELD_EARLY: in kefa_rdm.msgs and .early, because its turn hasn't come; the first packet of
 *	a message
 * @KEFA_HELD_UNEXP: in kefa_rdm.match, and also in .msgs if more of the message is expected
 * @KEFA_HELD_MORE: in kefa_held.link of the first packet of an unexpected message, or in
 *	kefa_held.rest of an early one
 * @KEFA_HELD_STRANGE: in kefa_rdm.strange, because the sender has no address handle yet
 * @KEFA_HELD_ASKED: in kefa_rdm.asked, a read or write that can't be carried out for now
 * @KEFA_HELD_LOCAL: the packet isn't kept, and is still in a local peer's memory
 */
enum kefa_held_where {
	KEFA_HELD_NOT,
	KEFA_HELD_EARLY,
	KEFA_HELD_UNEXP,
	KEFA_HELD_MORE,
	KEFA_HELD_STRANGE,
	KEFA_HELD_ASKED,
	KEFA_HELD_LOCAL,
};

/**
 * struct kefa_held - a received packet that is or may be kept
 * @msg: in KEFA_HELD_UNEXP, entry in the match
 * @rest: in KEFA_HELD_EARLY, list of the message's packets in KEFA_HELD_MORE
 * @due: in KEFA_HELD_EARLY, entry in kefa_rdm.due, if it is the message's turn
 * @node: entry in kefa_rdm.msgs, by (peer, msg_id)
 * @link: entry in the list of @where; in KEFA_HELD_UNEXP the list of the message's packets in
 *	KEFA_HELD_MORE
 * @peer: sender of the packet; NULL in KEFA_HELD_STRANGE, and with data of a write by the device
 *	of an unknown peer
 * @buf: the packet
 * @len: length of the packet
 * @cost: bytes of memory that the kept packet uses
 * @total: length of a message that is unexpected or early; in KEFA_HELD_ASKED without a packet, the
 *	data of a write by the device
 * @parts: bytes of the message that are sent without a request by the receiver
 * @seq: in KEFA_HELD_ASKED with @done, numbers of the registrations that were written to
 * @done: bytes of the message that have arrived; in KEFA_HELD_ASKED, those that were written
 * @src_qpn: queue pair of the sender
 * @slid: number of the sender's address handle
 * @where: enum kefa_held_where
 * @copied: @buf follows this structure, in one kmalloc() object; otherwise it is a receive slot's
 * @local: a local peer has passed the packet on
 */
struct kefa_held {
	union {
		struct kofi_match_msg	msg;
		struct {
			struct list_head	rest;
			struct list_head	due;
		};
	};
	struct kefa_index_node	node;
	struct list_head	link;
	struct kefa_rpeer	*peer;
	void			*buf;
	u32			len;
	u32			cost;
	union {
		struct {
			u64	total;
			u64	parts;
		};
		u32		seq[KEFA_IOV_MAX];
	};
	u64			done;
	u32			src_qpn;
	u16			slid;
	u8			where;
	u8			copied:1;
	u8			local:1;
};

/* A kept tagged message of 8 bytes fits into 256 bytes. */
static_assert(sizeof(struct kefa_held) + sizeof(struct kefa_eager_tagrtm_hdr) +
	      sizeof(struct kefa_req_opt_connid_hdr) + 8 <= 256);

enum kefa_rs_state {
	KEFA_RS_FREE,
	KEFA_RS_POSTED,
	KEFA_RS_TAKEN,	/* being handled, or kept */
};

/**
 * struct kefa_rs - a receive slot
 * @held: packet that was received into the slot
 * @list: entry in kefa_rdm.rs_free
 * @id: id of the work request: KEFA_RS_ID and the slot, and in the upper half the number of its
 *	uses
 * @dma: DMA address of the buffer
 * @state: enum kefa_rs_state
 */
struct kefa_rs {
	struct kefa_held	held;
	struct list_head	list;
	u64			id;
	dma_addr_t		dma;
	u8			state;
};

/**
 * struct kefa_chunk - receive slots, with memory for their buffers
 * @list: entry in kefa_rdm.chunks
 * @mem: memory of the buffers
 * @bytes: size of @mem
 * @dma: DMA address of @mem
 * @rs: the slots
 */
struct kefa_chunk {
	struct list_head	list;
	void			*mem;
	size_t			bytes;
	dma_addr_t		dma;
	struct kefa_rs		rs[];
};

/**
 * struct kefa_rdm - an endpoint of fabric efa
 * @ep: part that endpoints of both fabrics have; must be the first member
 * @user: the endpoint as a user of its address vector
 * @self: description of the endpoint for its peers
 * @shapes: prepared headers of eager messages, by enum kefa_signs and by whether they have a tag
 * @lim: limits by which sub-protocols are selected
 * @ordered: any of KEFA_RDM_ORDER was granted
 * @use_rdma: value of FI_OPT_EFA_USE_DEVICE_RDMA
 * @tagged: limits of calls with a tag, as kefa_ep.limits
 * @tx_how: flags of plain sends, KEFA_ROP_QUIET and KEFA_ROP_AS_MSG
 * @rx_how: the same for plain receives
 * @as_msg: KEFA_ROP_AS_MSG with KOFI_OPT_AS_MSG, or 0
 * @watch: value of KOFI_OPT_WATCH, or NULL
 * @far_read: length from which on plain reads take the slow path, as do all with 0
 * @far_write: the same for plain writes
 * @far_fetch: fetches with the default flags may take the fast path
 * @enabled: operations are allocated
 * @linger_ms: longest time for which closing waits until answers to peers are sent
 * @rops: operations
 * @peers: peers
 * @backoffs: delays of peers
 * @timer: timer for the end of the next delay
 * @match: matching of receives and messages
 * @heads: buckets of @match
 * @msgs: packets and messages by (peer, msg_id)
 * @part: operation of the message in several packets that began last, or NULL. It may have ended,
 *	and be used for something else
 * @min_multi: value of FI_OPT_MIN_MULTI_RECV
 * @ts: send slots
 * @nts: number of entries of @ts
 * @ts_nfree: number of free send slots
 * @ts_ctl: number of send slots that are reserved for answers
 * @ts_share: maximum number of send slots of one among several peers
 * @ts_left: number of these that granted data leaves to reads and writes that wait
 * @ts_free: free send slots, last used first, because its header is still in the cache
 * @sent: whole messages that were sent and whose completion isn't written yet, oldest first
 * @sent_tail: end of @sent, where the next one is linked
 * @nsent: number of entries of @sent
 * @todo: peers to which something may be sent
 * @owing: operations with answers that are due
 * @sending: operations in KEFA_ROP_DATA_TX
 * @reading: operations in KEFA_ROP_READING or KEFA_ROP_RDMA that have more to post
 * @sources: regions that peers can read from
 * @nsources: number of entries of @sources
 * @sources_free: free regions
 * @parked: packets to be sent again
 * @refusals: work requests that the device has refused, oldest first
 * @dying: peers in KEFA_RPEER_DYING
 * @reap: kefa_rdm_reap() is due, because of @refusals or @dying; then @waits is set, too
 * @rs: receive slots by number
 * @rs_max: size of @rs
 * @nrs: number of receive slots
 * @stride: size of a receive buffer
 * @nposted: number of receives that the device has
 * @nagain: number of receives that were posted again while the last completions were handled
 * @target: number of receives that the device should have
 * @burst: number of receives used since a poll last found less than a batch of completions
 * @depth: maximum number of receives that the device can have
 * @rs_free: free receive slots
 * @taken: receives that have their message and whose completion isn't written yet, oldest first
 * @taken_tail: end of @taken, where the next one is linked
 * @ntaken: number of entries of @taken
 * @chunks: memory of receive slots
 * @kept: bytes of memory that kept packets use
 * @budget: maximum of kefa_fair.early, and of the rest of @kept
 * @early: messages that arrived before their turn, by their first packets
 * @due: those of @early whose turn has come, and that wait for an operation or for the worker
 * @fair: shares of peers
 * @asked: reads and writes by peers that wait for a slot, an operation, or room in the completion
 *	queue, oldest first
 * @targets: memory that long reads and writes by peers name; NULL without FI_RMA, or without
 *	FI_REMOTE_READ and FI_REMOTE_WRITE
 * @targets_free: free entries of @targets
 * @ntargets: number of entries of @targets_free
 * @atomics: for atomic operations of the ULP; NULL without FI_ATOMIC
 * @atomics_free: free entries of @atomics
 * @strange: packets of strangers
 * @strange_kept: bytes of memory that @strange uses
 * @waits: whether kefa_rdm_waits() may return true. Polls look only at this flag, which the pump
 *	corrects
 * @shut: fewer receives than @target are posted because of the budget
 * @waiter: waits for the reserve of the queue for receives
 * @join: work that creates address handles for strangers
 * @silent: work that asks silent peers for a sign of life
 * @check_ms: time between two checks by @silent; only tests change it
 * @listening: @silent is queued
 * @shake_checks: number of checks by @silent after which a peer that owes its HANDSHAKE is dead;
 *	0 for no limit
 * @far_checks: number of checks by @silent after which a read or write fails that its peer doesn't
 *	answer; 0 for no limit
 * @refused: an injected message was refused, as its peer owes its HANDSHAKE
 * @bury: work that puts address handles of dead peers
 * @join_tries: number of failed attempts for the current address handle; used by @join only
 * @local: the endpoint as its local peers see it; NULL unless local_transfer was set
 * @local_ok: value of FI_OPT_SHARED_MEMORY_PERMITTED
 * @stats: counters
 */
struct kefa_rdm {
	struct kefa_ep		ep;
	struct kefa_av_user	user;
	struct kefa_self	self;
	struct kefa_rdm_limits	lim;
	struct kefa_shape	shapes[KEFA_SIGNS][2];
	bool			ordered;
	bool			use_rdma;
	u8			tx_how;
	u8			rx_how;
	u8			as_msg;
	struct kofi_watch	*watch;
	struct kefa_limits	tagged;
	size_t			far_read;
	size_t			far_write;
	bool			far_fetch;
	bool			enabled;
	u32			linger_ms;
	struct kefa_rops	rops;
	struct kefa_peers	peers;
	struct kefa_backoffs	backoffs;
	struct hrtimer		timer;
	struct kofi_match	match;
	struct hlist_head	*heads;
	struct kefa_index	msgs;
	struct kefa_rop		*part;
	size_t			min_multi;

	struct kefa_ts		*ts;
	u32			nts;
	u32			ts_nfree;
	u32			ts_ctl;
	u32			ts_share;
	u32			ts_left;
	struct kefa_ts		*ts_free;
	struct kefa_ts		*sent;
	struct kefa_ts		**sent_tail;
	u32			nsent;
	struct list_head	todo;
	struct list_head	owing;
	struct list_head	sending;
	struct list_head	reading;
	struct kefa_source	*sources;
	u32			nsources;
	struct list_head	sources_free;
	struct list_head	parked;
	struct list_head	refusals;
	struct list_head	dying;
	bool			reap;

	struct kefa_rs		**rs;
	u32			rs_max;
	u32			nrs;
	u32			stride;
	u32			nposted;
	u32			nagain;
	u32			target;
	u32			burst;
	u32			depth;
	struct list_head	rs_free;
	struct kefa_rop		*taken;
	struct kefa_rop		**taken_tail;
	u32			ntaken;
	struct list_head	chunks;
	u64			kept;
	u64			budget;
	struct list_head	early;
	struct list_head	due;
	struct kefa_fair	fair;
	struct list_head	asked;
	struct kefa_target	*targets;
	struct list_head	targets_free;
	u32			ntargets;
	struct kefa_atomic	*atomics;
	struct kefa_atomic	*atomics_free;
	struct list_head	strange;
	u64			strange_kept;
	bool			waits;
	bool			shut;
	struct kofi_cq_waiter	waiter;
	struct delayed_work	join;
	struct delayed_work	bury;
	u32			join_tries;
	u32			check_ms;
	struct delayed_work	silent;
	bool			listening;
	u8			shake_checks;
	u8			far_checks;
	bool			refused;
	struct kefa_local	*local;
	bool			local_ok;
	struct kefa_rdm_stats	stats;
};

static_assert(offsetof(struct kefa_rdm, ep) == 0);

static inline struct kefa_rdm *to_kefa_rdm(struct kefa_ep *ep)
{
	return container_of(ep, struct kefa_rdm, ep);
}

/* Return: the slot that a packet was received into. */
static inline struct kefa_rs *kefa_held_rs(struct kefa_held *held)
{
	return container_of(held, struct kefa_rs, held);
}

/* ep.c */

u32 kefa_rdm_max_medium(const struct kefa_dev *dev);

/* show.c */

void kefa_rdm_show(struct seq_file *s, struct kefa_ep *ep);

/* answer.c */

bool kefa_send_debt(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
void kefa_rdm_answer(struct kefa_rdm *rdm);
void kefa_rdm_linger(struct kefa_ep *ep);

/* longcts.c */

void kefa_rdm_stream(struct kefa_rdm *rdm, struct list_head *ops,
		     bool (*one)(struct kefa_rdm *rdm, struct kefa_rop *rop));
bool kefa_stream_one(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_stream_begun(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_rop_grant(struct kefa_rdm *rdm, struct kefa_rop *rop);

/* longread.c */

void kefa_rop_read(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_rop_unhold(struct kefa_rdm *rdm, struct kefa_rop *rop);
bool kefa_read_one(struct kefa_rdm *rdm, struct kefa_rop *rop);
bool kefa_read_fatal(int err);
bool kefa_may_read(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer);
void kefa_read_done(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err, u32 status);
void kefa_read_shaken(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
enum kefa_took kefa_again_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				   const struct kefa_pkt *pkt, struct kefa_rop *rop);

/* far.c */

int kefa_far_check(const struct kofi_req *req);
void kefa_far_hold(struct kefa_rop *rop, const struct kofi_req *req);
void kefa_far_iov(const struct kefa_rop *rop, struct kefa_rma_iov *iov);
u32 kefa_far_window(const struct kefa_rdm *rdm, u64 total);
void kefa_rtw_fill(const struct kefa_rdm *rdm, const struct kefa_rop *rop, struct kefa_pkt *pkt);
void kefa_rtr_fill(const struct kefa_rdm *rdm, const struct kefa_rop *rop, struct kefa_pkt *pkt);
void kefa_far_data(struct kefa_rdm *rdm, const struct kefa_pkt *pkt, struct kefa_rop *rop);
bool kefa_far_waits(const struct kefa_rop *rop);
void kefa_far_check_time(struct kefa_rdm *rdm);

/* rdma.c */

bool kefa_rdma_may(struct kefa_rdm *rdm, const struct kefa_rop *rop, bool keep);
void kefa_rdma_wr(struct kefa_rdm *rdm, const struct kefa_ts *ts, struct kefa_wr *wr);
bool kefa_rdma_one(struct kefa_rdm *rdm, struct kefa_rop *rop);
int kefa_rdma_send(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_rdma_done(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err, u32 status);

/* target.c */

int kefa_targets_init(struct kefa_rdm *rdm);
void kefa_targets_fini(struct kefa_rdm *rdm);
void kefa_target_end(struct kefa_rdm *rdm, struct kefa_rop *rop, bool told);
void kefa_target_data(struct kefa_rdm *rdm, struct kefa_rpeer *peer, const struct kefa_pkt *pkt,
		      struct kefa_rop *rop);
bool kefa_target_one(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_target_sent(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_target_was_read(struct kefa_rdm *rdm, u64 len);
void kefa_target_park(struct kefa_rdm *rdm, struct kefa_ts *ts);
int kefa_target_again(struct kefa_rdm *rdm, struct kefa_ts *ts);
bool kefa_targets_check(struct kefa_rdm *rdm);

/* asked.c */

void kefa_target_imm(struct kefa_rdm *rdm, struct kefa_held *held, u32 value);
enum kefa_took kefa_asked_keep(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
			       const struct kefa_pkt *pkt, struct kefa_held *held);
void kefa_rdm_asked(struct kefa_rdm *rdm);

/* fetch.c */

bool kefa_target_fetch(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_target_refuse(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_target_fetched(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err, u32 status);

/* source.c */

int kefa_sources_init(struct kefa_rdm *rdm, u32 count);
void kefa_sources_fini(struct kefa_rdm *rdm);
void kefa_sources_end(struct kefa_ep *ep);
bool kefa_source_alone(const struct kefa_rdm *rdm, const struct kefa_rop *rop);
int kefa_source_get(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_source_iov(const struct kefa_rop *rop, struct kefa_rma_iov *iov);
void kefa_source_release(struct kefa_rdm *rdm, struct kefa_rop *rop);
bool kefa_source_inval(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_source_registered(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err,
			    u32 status);
void kefa_source_invalidated(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err,
			     u32 status);
void kefa_source_revoked(struct kefa_mr *mr, int err);

/* send.c */

ssize_t kefa_rdm_tx(struct fid_ep *ep_fid, struct kofi_req *req);
ssize_t kefa_rdm_tx_unlock(struct kefa_rdm *rdm, struct kofi_req *req) __releases(&rdm->ep.lock);
bool kefa_may_send(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
bool kefa_ts_data(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct kefa_rop *rop, u64 off,
		  u32 len, u32 hdr, bool keep);
void kefa_ts_seal(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct kefa_pkt *pkt);
bool kefa_rdm_send(struct kefa_rdm *rdm, struct kefa_rop *rop);
ssize_t kefa_rdm_cancel(struct fid *fid, void *context);
ssize_t kefa_rdm_cancel_tag(struct fid_ep *ep_fid, u64 tag, void *context);
bool kefa_rdm_cancel_send(struct kefa_rdm *rdm, struct kefa_rop *rop);

/* recv.c */

ssize_t kefa_rdm_rx(struct fid_ep *ep_fid, struct kofi_req *req);
ssize_t kefa_rdm_rx_unlock(struct kefa_rdm *rdm, struct kofi_req *req) __releases(&rdm->ep.lock);

/* fast_send.c */

extern const struct fi_ops_msg kefa_rdm_msg_ops;
extern const struct fi_ops_tagged kefa_rdm_tagged_ops;
extern const struct fi_ops_rma kefa_rdm_rma_ops;
ssize_t kefa_rdm_recv_tag(struct fid_ep *ep_fid, void *buf, size_t len, u64 tag, void *context);
void kefa_rdm_set_limits(struct kefa_ep *ep);

/* fast_eager.c */

unsigned int kefa_rdm_poll(struct kefa_ep *ep, unsigned int budget);
void kefa_rdm_wcs(struct kefa_rdm *rdm, unsigned int n);
void kefa_rdm_report(struct kefa_rdm *rdm);
void kefa_eager_init(struct kefa_rdm *rdm);

/* report.c */

bool kefa_rop_hold(struct kefa_rop *rop, const struct kofi_req *req);
void kefa_rop_iter(const struct kefa_rop *rop, unsigned int dir, u64 off, u64 len,
		   struct iov_iter *iter, struct kvec *kvec);
struct kefa_rop *kefa_rdm_take_rop(struct kefa_rdm *rdm, struct kefa_side *side,
				   enum kefa_rop_state state);
bool kefa_cq_room(struct kefa_rdm *rdm);
bool kefa_cq_half(struct kefa_rdm *rdm);
void kefa_rdm_unposted(struct kefa_rdm *rdm, struct kefa_rop *rop, int err);
bool kefa_rdm_abandon(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_rdm_abandoned(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_rdm_end_tx(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 prov);
void kefa_rdm_tell_rx(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 prov);
void kefa_rdm_tell_untold(struct kefa_rdm *rdm);
void kefa_rdm_end(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_ts_tell(struct kefa_rdm *rdm, const struct kefa_ts *ts);
void kefa_rdm_owe(struct kefa_rdm *rdm, struct kefa_rop *rop, u8 what);

/* tx.c */

int kefa_tx_init(struct kefa_rdm *rdm);
void kefa_tx_fini(struct kefa_rdm *rdm, bool reaches);
void kefa_ts_free(struct kefa_rdm *rdm, struct kefa_ts *ts);
void kefa_ts_post(struct kefa_rdm *rdm, struct kefa_ts *ts);
struct kefa_wr *kefa_ts_hold(struct kefa_rdm *rdm, struct kefa_ts *ts);
void kefa_ts_done(struct kefa_rdm *rdm, const struct ib_wc *ibwc);
void kefa_tx_again(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
bool kefa_tx_unpark(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_tx_flush(struct kefa_rdm *rdm);
void kefa_tx_refused(struct kefa_rdm *rdm, unsigned int n, int err);
void kefa_ts_fail(struct kefa_rdm *rdm, struct kefa_ts *ts, int err, u32 prov);
void kefa_tx_posted(struct kefa_rdm *rdm, bool more);
size_t kefa_tx_keep(struct kefa_rdm *rdm);
void kefa_tx_forget(struct kefa_rdm *rdm);
void kefa_tx_ready(struct kefa_rdm *rdm, unsigned int n);
bool kefa_tx_reap(struct kefa_rdm *rdm);
bool kefa_tx_may(struct kefa_rdm *rdm, const struct kefa_rpeer *peer,
		 const struct kefa_pkt_row *row);
bool kefa_tx_control(struct kefa_rdm *rdm, struct kefa_rpeer *peer, struct kefa_rop *rop,
		     struct kefa_pkt *pkt);

/* rx.c */

int kefa_rx_init(struct kefa_rdm *rdm);
void kefa_rx_fini(struct kefa_rdm *rdm);
void kefa_rx_end(struct kefa_rdm *rdm, bool reaches);
struct kefa_rs *kefa_rs_found(struct kefa_rdm *rdm, u64 id);
struct kefa_rs *kefa_rs_spare(struct kefa_rdm *rdm);
void kefa_rs_put(struct kefa_rdm *rdm, struct kefa_rs *rs);
void kefa_rx_give(struct kefa_rdm *rdm);
u64 kefa_rx_most(const struct kefa_rdm *rdm);
u32 kefa_rx_admits(struct kefa_rdm *rdm, ktime_t *next);
void kefa_rx_refill(struct kefa_rdm *rdm);
void kefa_rx_grow(struct kefa_rdm *rdm);
struct kefa_held *kefa_keep_packet(struct kefa_rdm *rdm, struct kefa_held *held,
				   struct kefa_rpeer *peer);
void kefa_held_free(struct kefa_rdm *rdm, struct kefa_held *held);
void kefa_rdm_drop(struct kefa_rdm *rdm, struct kefa_rpeer *peer, enum kefa_drop why);

/* early.c */

bool kefa_rdm_drain(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
void kefa_rdm_retry(struct kefa_rdm *rdm);
bool kefa_early_waits(const struct kefa_rdm *rdm, const struct kefa_held *held);

/* msg.c */

void kefa_rdm_packet(struct kefa_rdm *rdm, struct kefa_held *held);
void kefa_rop_put(struct kefa_rdm *rdm, struct kefa_rop *rop, const void *data, u64 off, u32 len);
void kefa_rop_copy(struct kefa_rdm *rdm, struct kefa_rop *rop, const struct kefa_pkt *pkt);
void kefa_rdm_overdue_kill(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
void kefa_rop_whole(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_rdm_feed(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_held *held);
struct kefa_rop *kefa_multi_take(struct kefa_rdm *rdm, struct kefa_rop *multi, u64 total);
struct kefa_rop *kefa_rdm_take_sink(struct kefa_rdm *rdm);
void kefa_msg_drop(struct kefa_rdm *rdm, struct kefa_held *held);

/* quiet.c */

int kefa_rdm_quiet(struct fid_ep *ep_fid, fi_addr_t addr, unsigned int timeout_ms);
int kefa_rdm_quiet_tag(struct fid_ep *ep_fid, u64 tag, unsigned int timeout_ms);

/* join.c */

void kefa_rop_fail(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 prov);
void kefa_rdm_bury(struct work_struct *work);
void kefa_rdm_peer_gone(struct kefa_rdm *rdm, struct kefa_rpeer *peer, bool remember, int err);
int kefa_rdm_peer_add(struct kefa_av_user *user, const struct kefa_peer *peer);
void kefa_rdm_peer_del(struct kefa_av_user *user, const struct kefa_peer *peer);
void kefa_rdm_relieve(struct kefa_rdm *rdm);
void kefa_rdm_lost(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
bool kefa_rdm_evict(struct kefa_ep *ep);
void kefa_rdm_unseat(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
void kefa_rdm_fail_directed(struct kefa_rdm *rdm, const struct kefa_rpeer *peer, int err);
void kefa_rdm_kill(struct kefa_rdm *rdm, struct kefa_rpeer *peer, int err, u32 prov);
void kefa_rdm_reap(struct kefa_rdm *rdm);
void kefa_rdm_put_wr(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
void kefa_rdm_fail_all(struct kefa_rdm *rdm, int err);
void kefa_rdm_peers_fini(struct kefa_rdm *rdm);

/* silent.c */

void kefa_silent_arm(struct kefa_rdm *rdm);
bool kefa_rdm_awaits(struct kefa_rdm *rdm);
void kefa_rdm_silent(struct work_struct *work);

/* progress.c */

void kefa_rdm_work(struct work_struct *work);
bool kefa_rdm_read(void *arg, bool last, struct kofi_cq_reader *reader);
void kefa_rdm_received(struct kefa_rdm *rdm, const struct ib_wc *ibwc);
void kefa_rdm_pump(struct kefa_rdm *rdm);
bool kefa_rdm_waits(const struct kefa_rdm *rdm);

/**
 * kefa_rdm_due() - check whether kefa_rdm_pump() has anything to do
 * @rdm: the endpoint, enabled
 *
 * Held packets don't count, because further packets may be about to share their doorbell.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it has.
 */
static inline bool kefa_rdm_due(const struct kefa_rdm *rdm)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (IS_ENABLED(CONFIG_PROVE_LOCKING))
		WARN_ON_ONCE(!rdm->waits && kefa_rdm_waits(rdm));
	return rdm->waits || rdm->nposted < rdm->target || rdm->kept >= rdm->budget;
}

/**
 * kefa_msg_src() - get the source of a message for the match
 * @rdm: the endpoint
 * @peer: sender of the message
 *
 * Context: Under kefa_ep.lock.
 * Return: kefa_rpeer.id, or FI_ADDR_UNSPEC if the endpoint has no directed receives.
 */
static inline fi_addr_t kefa_msg_src(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	return rdm->ep.caps & FI_DIRECTED_RECV ? peer->id : FI_ADDR_UNSPEC;
}

/**
 * kefa_rpeer_addr() - get a peer's address for a completion
 * @peer: the peer
 *
 * Context: Under kefa_ep.lock.
 * Return: index in the address vector, or FI_ADDR_NOTAVAIL.
 */
static inline fi_addr_t kefa_rpeer_addr(const struct kefa_rpeer *peer)
{
	return peer->addr == KEFA_NO_ADDR ? FI_ADDR_NOTAVAIL : peer->addr;
}

/**
 * kefa_rop_src() - get the source of a message for its completion
 * @rdm: the endpoint
 * @rop: receive of the message
 *
 * Context: Under kefa_ep.lock.
 * Return: index in the address vector, or FI_ADDR_NOTAVAIL.
 */
static inline fi_addr_t kefa_rop_src(const struct kefa_rdm *rdm, const struct kefa_rop *rop)
{
	if (!rop->peer || !(rdm->ep.caps & FI_SOURCE))
		return FI_ADDR_NOTAVAIL;
	return kefa_rpeer_addr(rop->peer);
}

/**
 * kefa_target_awaits() - check whether an operation is a peer's write that waits for data
 * @rop: the operation
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it is.
 */
static inline bool kefa_target_awaits(const struct kefa_rop *rop)
{
	return (rop->state == KEFA_ROP_DATA_RX || rop->state == KEFA_ROP_SINK) &&
	       rop->more & KEFA_ROP_TARGET && !(rop->flags & KEFA_ROP_OVER);
}

/**
 * kefa_far_awaits() - check whether an operation is a read of the ULP that waits for data
 * @rop: the operation
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it is.
 */
static inline bool kefa_far_awaits(const struct kefa_rop *rop)
{
	return rop->state == KEFA_ROP_DATA_RX && rop->more & KEFA_ROP_FAR &&
	       !(rop->flags & KEFA_ROP_OVER);
}

/**
 * kefa_far_age() - get the number of checks since a read or write of the ULP was called
 * @rop: the operation, with KEFA_ROP_FAR
 *
 * Context: Under kefa_ep.lock.
 * Return: the number, less than U8_MAX.
 */
static inline u8 kefa_far_age(const struct kefa_rop *rop)
{
	return min_t(u32, rop->msg_id, U8_MAX - 1);
}

/**
 * kefa_far_served() - note that a peer has answered an operation, so it isn't idle
 * @rop: a read or write of the ULP, or another operation, for which this does nothing
 *
 * Later operations have more time, too, as the peer may serve them in turn. An earlier one that it
 * has overtaken may have been dropped.
 *
 * Context: Under kefa_ep.lock.
 */
static inline void kefa_far_served(struct kefa_rop *rop)
{
	if (!(rop->more & KEFA_ROP_FAR))
		return;
	rop->idle = 0;
	rop->peer->served = max_t(u8, rop->peer->served, kefa_far_age(rop) + 1);
}

/**
 * kefa_rs_take() - note that the device has completed a receive
 * @rdm: the endpoint
 * @rs: the slot, in KEFA_RS_POSTED
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_rs_take(struct kefa_rdm *rdm, struct kefa_rs *rs)
{
	lockdep_assert_held(&rdm->ep.lock);
	rs->state = KEFA_RS_TAKEN;
	rdm->nposted--;
}

/**
 * kefa_rs_hold() - hold a receive for the next doorbell
 * @rdm: the endpoint
 * @rs: the slot, in no list. The caller calls kefa_rx_give(), at once if KEFA_RECVS_MAX are held
 *
 * Context: Under kefa_ep.lock.
 */
static inline void kefa_rs_hold(struct kefa_rdm *rdm, struct kefa_rs *rs)
{
	/* A local copy, because the compiler must assume that writes to @recv change @rs. */
	const u64 id = rs->id, dma = rs->dma;
	struct kefa_recv_wr *recv = &rdm->ep.recvs[rdm->ep.nrecvs];

	lockdep_assert_held(&rdm->ep.lock);
	rdm->ep.nrecvs++;
	rdm->nposted++;
	rs->state = KEFA_RS_POSTED;
	kefa_dma_sync_for_device(rdm->ep.dma, dma, rdm->stride, DMA_FROM_DEVICE);
	/* The length is constant, and was set when the work request was initialized. */
	recv->wr.wr_id = id;
	recv->sge[0].addr = dma;
}

/**
 * kefa_rs_again() - post a receive slot again, whose packet isn't needed any more
 * @rdm: the endpoint
 * @rs: the slot, which isn't posted. The caller calls kefa_rx_give() or kefa_rx_refill() later
 *
 * If half of the budget is used, the slot is freed, and kefa_rx_refill() decides how many to post.
 *
 * Context: Under kefa_ep.lock.
 */
static inline void kefa_rs_again(struct kefa_rdm *rdm, struct kefa_rs *rs)
{
	if (unlikely(rdm->kept >= rdm->budget / 2)) {
		kefa_rs_put(rdm, rs);
		return;
	}
	rs->id += KEFA_OP_USE;
	rdm->nagain++;
	kefa_rs_hold(rdm, rs);
	if (unlikely(rdm->ep.nrecvs == KEFA_RECVS_MAX))
		kefa_rx_give(rdm);
}

/**
 * kefa_rdm_todo() - have the pump send what waits for a peer
 * @rdm: the endpoint
 * @peer: the peer
 *
 * Context: Under kefa_ep.lock.
 */
static inline void kefa_rdm_todo(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	lockdep_assert_held(&rdm->ep.lock);
	rdm->waits = true;
	if (list_empty(&peer->todo))
		list_add_tail(&peer->todo, &rdm->todo);
}

#endif /* KEFA_RDM_RDM_H */
