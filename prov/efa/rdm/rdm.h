/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Endpoints of fabric efa: what the files of the engine share. ep.c opens and closes them,
 * send.c and recv.c are what the ULP calls, tx.c and rx.c have the packets that the device
 * has, msg.c is about messages that arrive, longcts.c about those that come as they are
 * granted, longread.c and source.c about those that are read, answer.c about packets without
 * data, join.c and silent.c about peers that come and go, and progress.c has all of that go on.
 *
 * Everything is under the endpoint's lock, kefa_ep.lock, but for allocating peers and
 * making address handles.
 */
#ifndef KEFA_RDM_RDM_H
#define KEFA_RDM_RDM_H

#include <linux/hrtimer.h>
#include <kofi/match.h>
#include "../av.h"
#include "../dma.h"
#include "../ep.h"
#include "backoff.h"
#include "index.h"
#include "order.h"
#include "packet.h"
#include "peer.h"
#include "rop.h"
#include "select.h"
#include "shape.h"
#include "shake.h"

#define KEFA_RDM_TX_CAPS	(FI_MSG | FI_TAGGED | FI_SEND)
#define KEFA_RDM_RX_CAPS	(FI_MSG | FI_TAGGED | FI_RECV | FI_SOURCE | \
				 FI_DIRECTED_RECV | FI_MULTI_RECV)
#define KEFA_RDM_CAPS		(KEFA_RDM_TX_CAPS | KEFA_RDM_RX_CAPS | \
				 FI_LOCAL_COMM | FI_REMOTE_COMM)

#define KEFA_RDM_RX_FLAGS	(KEFA_RX_FLAGS | FI_MULTI_RECV | FI_PEEK | FI_CLAIM | \
				 FI_DISCARD)

enum {
	/* Operations besides the ULP's: of messages into multi-receive buffers, and answers. */
	KEFA_RDM_SPARE_OPS	= 64,
	/* Sends, and receives, that the ULP can have outstanding. */
	KEFA_RDM_SIZE		= 256,
	/* Bytes of a packet that are copied to where its header is, and need no mapping. */
	KEFA_TS_ROOM		= 512,
	/* A packet up to that length is kept in a copy, and its buffer is used again. */
	KEFA_KEEP_COPY		= 1024,
	/* Packets of one message that can come before its turn. */
	KEFA_EARLY_PARTS	= 256,
	/* Packets whose turn has come that are taken at a time. */
	KEFA_DRAIN_MAX		= 64,
	/* RECEIPTs that a peer which isn't ready for them can have to get. */
	KEFA_OWED_MAX		= 32,
	/* An address handle that can't be made is tried again so often, so many ms later. */
	KEFA_JOIN_TRIES		= 50,
	KEFA_JOIN_RETRY_MS	= 20,
	/* Who is waited for, and silent for as long, is asked for a sign of life. */
	KEFA_SILENT_MS		= 500,
	/* Receives that are posted when an endpoint is enabled. */
	KEFA_RX_FIRST		= 32,
	/* And at least, however much is kept: answers have to get in. */
	KEFA_RX_LEAST		= 16,
	/* Completions that nobody posted, of a completion queue. */
	KEFA_CQ_RESERVE		= 64,
	/* What a peer may have of the send slots, as a part, if there are others. */
	KEFA_TX_SHARE		= 4,
	/* What data that was granted leaves of them to requests, as a part. */
	KEFA_TX_REQUESTS	= 4,
	/* Packets that an operation sends, or reads that it posts, in its turn. */
	KEFA_TURN		= 8,
	/* Reads of an operation that the device has. */
	KEFA_READS_MAX		= 32,
	/* FI_OPT_MIN_MULTI_RECV, unless it is set. */
	KEFA_MIN_MULTI_RECV	= 64,
};

/* Messages are as long as memory is. */
#define KEFA_RDM_MAX_MSG	((size_t)LONG_MAX)

/* Pages of a region that peers read a message from. */
#define KEFA_SOURCE_PAGES	1024

/* What buffers are allocated by. */
#define KEFA_CHUNK_BYTES	SZ_64K

/* In the slot's half of a work request's id: it is a receive. */
#define KEFA_RS_ID		BIT(31)

/**
 * enum kefa_drop - why a packet that could be read was dropped
 * @KEFA_DROP_STRANGER: it came from a peer that isn't known, and doesn't say who it is
 * @KEFA_DROP_NO_AH: there is no address handle for the peer
 * @KEFA_DROP_DEAD: the peer is dead
 * @KEFA_DROP_DUP: its message has arrived already
 * @KEFA_DROP_FAR: its message is too far ahead
 * @KEFA_DROP_STATE: it means no operation, or none that waits for it
 * @KEFA_DROP_TYPE: we don't do that
 * @KEFA_DROP_LENGTH: it isn't the part of a message that it says
 * @KEFA_DROP_FULL: there is no room, and its peer is in no address vector
 * @KEFA_DROP_GONE: its peer was removed while it was kept
 * @KEFA_DROPS: how many there are
 */
enum kefa_drop {
	KEFA_DROP_STRANGER,
	KEFA_DROP_NO_AH,
	KEFA_DROP_DEAD,
	KEFA_DROP_DUP,
	KEFA_DROP_FAR,
	KEFA_DROP_STATE,
	KEFA_DROP_TYPE,
	KEFA_DROP_LENGTH,
	KEFA_DROP_FULL,
	KEFA_DROP_GONE,
	KEFA_DROPS
};

/**
 * struct kefa_rdm_stats - what an endpoint counts; kefa_ep.lock
 * @sent: packets handed to the device for the first time, by type
 * @received: packets that could be read, by type
 * @bad: packets that couldn't, by enum kefa_bad
 * @dropped: packets that were dropped all the same, by enum kefa_drop
 * @copied: bytes that were copied so that they could be sent
 * @unexpected: messages that found no receive
 * @early: packets that came before their turn
 * @rnr: packets that found the peer without a receive
 * @deaths: peers that died
 * @cut: of these, those that filled our memory
 * @full: times that the budget was used up
 * @shut: times that there was no receive posted at all
 * @starved: messages that had to wait for room in a completion queue
 * @asked: signs of life that were asked for
 * @reads: reads that were posted
 * @unread: messages that couldn't be read
 * @sources: messages that a region was registered for
 */
struct kefa_rdm_stats {
	u64	sent[KEFA_PKT_TYPES];
	u64	received[KEFA_PKT_TYPES];
	u64	bad[KEFA_BAD_REASONS];
	u64	dropped[KEFA_DROPS];
	u64	copied;
	u64	unexpected;
	u64	early;
	u64	rnr;
	u64	deaths;
	u64	cut;
	u64	full;
	u64	shut;
	u64	starved;
	u64	asked;
	u64	reads;
	u64	unread;
	u64	sources;
};

enum kefa_ts_state {
	KEFA_TS_FREE,
	KEFA_TS_POSTED,	/* the device has it, or it is held for the next doorbell */
	KEFA_TS_PARKED,	/* it is to be sent again, when its peer had time */
};

/**
 * enum kefa_ts_what - what a send slot is used for
 * @KEFA_TS_PACKET: a packet
 * @KEFA_TS_READ: a read of the peer's memory
 * @KEFA_TS_REG: a registration, for the peer to read
 * @KEFA_TS_INVAL: and its end
 * @KEFA_TS_WHATS: how many values there are
 */
enum kefa_ts_what {
	KEFA_TS_PACKET,
	KEFA_TS_READ,
	KEFA_TS_REG,
	KEFA_TS_INVAL,
	KEFA_TS_WHATS
};

/**
 * struct kefa_ts - a send slot: a packet until the device has delivered it
 * @next: in KEFA_TS_FREE, the next free one, or the next that eager.c reports
 * @list: in KEFA_TS_PARKED in kefa_rdm.parked
 * @out: of a request, its place in the peer's order
 * @rop: the operation; NULL for what is the peer's own, as a HANDSHAKE, and with @whole
 * @peer: whom it is for
 * @id: of the work request: its slot, and in the upper half how often that was used
 * @hdr: header, and data up to KEFA_TS_ROOM in all
 * @dma: its DMA address
 * @seg: data that is sent from where it is, or memory that is read into; of length 0 if
 *	there is none
 * @copy: else the whole packet is there, or NULL
 * @context: with @whole: the ULP's
 * @tag: likewise the tag of the message
 * @total: likewise its length
 * @cq_flags: likewise what the completion says
 * @err: likewise positive errno of the first failure
 * @prov: and the device's status
 * @imm: remote CQ data of a message without a header
 * @len: bytes at @hdr or @copy
 * @type: enum kefa_pkt_type, or 0 for a message without a header
 * @state: enum kefa_ts_state
 * @what: enum kefa_ts_what
 * @again: it found the peer without a receive
 * @has_imm: there is @imm
 * @whole: it is a whole message of the ULP's, and its operation, too
 * @quiet: which has no completion if it succeeds
 *
 * A free slot has nothing of what isn't there in most packets: no @rop, @seg, @copy and @err,
 * and none of the marks.
 */
struct kefa_ts {
	struct kefa_ts		*next;
	struct list_head	list;
	struct kefa_order_out	out;
	struct kefa_rop		*rop;
	struct kefa_rpeer	*peer;
	u64			id;
	u8			*hdr;
	dma_addr_t		dma;
	struct kefa_seg		seg;
	struct kefa_copy	*copy;
	void			*context;
	u64			tag;
	u32			total;
	u32			cq_flags;
	int			err;
	u32			prov;
	u32			imm;
	u16			len;
	u8			type;
	u8			state;
	u8			what;
	bool			again;
	bool			has_imm;
	bool			whole;
	bool			quiet;
};

/* Whether one may come from one state to another. */
static __always_inline bool kefa_ts_may(enum kefa_ts_state from, enum kefa_ts_state to)
{
	switch (to) {
	case KEFA_TS_FREE:
	case KEFA_TS_POSTED:
		/* One that was taken and isn't posted is free still; one is posted again. */
		return true;
	case KEFA_TS_PARKED:
		return from == KEFA_TS_POSTED;
	default:
		return false;
	}
}

/**
 * enum kefa_held_where - where a kept packet is
 * @KEFA_HELD_NOT: it isn't kept
 * @KEFA_HELD_EARLY: in kefa_rdm.msgs and .early: its turn hasn't come
 * @KEFA_HELD_UNEXP: in kefa_rdm.match, and if more of it is to come in .msgs
 * @KEFA_HELD_MORE: in kefa_held.link of the first packet of an unexpected message
 * @KEFA_HELD_STRANGE: in kefa_rdm.strange: its sender's address handle isn't there
 */
enum kefa_held_where {
	KEFA_HELD_NOT,
	KEFA_HELD_EARLY,
	KEFA_HELD_UNEXP,
	KEFA_HELD_MORE,
	KEFA_HELD_STRANGE,
};

/**
 * struct kefa_held - a received packet, as far as it has to be known while it is kept
 * @msg: of the first packet of an unexpected message: its place in the match
 * @node: by (peer, msg_id)
 * @link: in the list that @where says; or in KEFA_HELD_UNEXP the list of those in
 *	KEFA_HELD_MORE
 * @peer: who sent it; NULL in KEFA_HELD_STRANGE
 * @buf: the packet
 * @len: its bytes
 * @cost: bytes of memory that it takes
 * @total: bytes of an unexpected message
 * @parts: of these, those that come with packets like this one; the rest is asked for
 * @done: of these, those that have come
 * @src_qpn: sender's queue pair
 * @slid: number of its address handle
 * @where: enum kefa_held_where
 * @copied: @buf is behind this, and both are from kmalloc(); or else a receive slot's
 */
struct kefa_held {
	struct kofi_match_msg	msg;
	struct kefa_index_node	node;
	struct list_head	link;
	struct kefa_rpeer	*peer;
	void			*buf;
	u32			len;
	u32			cost;
	u64			total;
	u64			parts;
	u64			done;
	u32			src_qpn;
	u16			slid;
	u8			where;
	bool			copied;
};

/* With a message of 8 bytes that has a tag it takes 256. */
static_assert(sizeof(struct kefa_held) + sizeof(struct kefa_eager_tagrtm_hdr) +
	      sizeof(struct kefa_req_opt_connid_hdr) + 8 <= 256);

enum kefa_rs_state {
	KEFA_RS_FREE,
	KEFA_RS_POSTED,
	KEFA_RS_TAKEN,	/* looked at, or kept */
};

/**
 * struct kefa_rs - a receive slot
 * @held: the packet that was received into it
 * @list: in kefa_rdm.rs_free
 * @id: of the work request: KEFA_RS_ID and its number, and in the upper half how often it
 *	was used
 * @dma: DMA address of its buffer
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
 * struct kefa_chunk - receive slots, and memory of their buffers
 * @list: in kefa_rdm.chunks
 * @mem: the memory
 * @bytes: how much
 * @dma: its DMA address
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
 * @ep: what endpoints of both fabrics have; it comes first
 * @user: tells of addresses; joined to the address vector
 * @self: what peers are told of it
 * @shapes: headers of eager messages, by how they say who sends them, and whether tagged
 * @lim: what sub-protocols are chosen by
 * @ordered: FI_ORDER_SAS holds
 * @use_rdma: FI_OPT_EFA_USE_DEVICE_RDMA
 * @tagged: as kefa_ep.limits, of calls with a tag
 * @enabled: operations were allocated
 * @rops: operations
 * @peers: peers
 * @backoffs: peers that are given time
 * @timer: when the first of them has had it
 * @match: receives and messages
 * @heads: its buckets
 * @msgs: packets and messages by (peer, msg_id)
 * @part: the message that comes in parts and began last; or it is over, and what is there now isn't
 *	such a one; or NULL
 * @min_multi: FI_OPT_MIN_MULTI_RECV
 * @ts: send slots
 * @nts: how many
 * @ts_nfree: free ones
 * @ts_ctl: of these, those that are for answers alone
 * @ts_share: how many a peer of several may have
 * @ts_free: the free ones, the last one first, as its header is still in the cache
 * @sent: whole messages that were sent, and aren't reported yet, oldest first
 * @sent_tail: where the next one is linked
 * @nsent: how many
 * @todo: peers that something may be sent to
 * @owing: operations that owe an answer
 * @sending: operations in KEFA_ROP_DATA_TX
 * @reading: operations in KEFA_ROP_READING that have something to read
 * @sources: regions that peers can read from
 * @nsources: how many there are
 * @sources_free: those that aren't in use
 * @parked: packets to be sent again
 * @rs: receive slots by number
 * @rs_max: room there
 * @nrs: how many there are
 * @stride: bytes of a buffer
 * @nposted: receives that the device has
 * @nagain: of these, how many were posted again with the last completions
 * @target: how many it should have
 * @burst: how many were used since the device had nothing more
 * @depth: how many it can have
 * @rs_free: free ones
 * @taken: receives that have their message, and aren't reported yet, oldest first
 * @taken_tail: where the next one is linked
 * @ntaken: how many
 * @chunks: their memory
 * @kept: bytes of memory that packets take which are kept
 * @budget: how much that may be
 * @early: packets that came before their turn
 * @strange: packets of strangers
 * @starved: there is a peer whose next message waits for an operation, or for room in the
 *	completion queue
 * @shut: the budget doesn't allow all the receives that there should be
 * @cq_starved: in kefa_cq.starved; kefa_cq.starved_lock
 * @join: makes address handles for strangers
 * @silent: asks peers that are waited for whether they are there
 * @listening: @silent is queued
 * @join_tries: how often the next one couldn't be made; the worker's
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
	struct kefa_limits	tagged;
	bool			enabled;
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
	struct list_head	strange;
	bool			starved;
	bool			shut;
	struct list_head	cq_starved;
	struct delayed_work	join;
	u32			join_tries;
	struct delayed_work	silent;
	bool			listening;
	struct kefa_rdm_stats	stats;
};

static_assert(offsetof(struct kefa_rdm, ep) == 0);

/**
 * struct kefa_cq - a completion queue of fabric efa
 * @cq: the core's part
 * @starved_lock: protects @starved; inside of kefa_ep.lock
 * @starved: endpoints that wait for its reserve
 */
struct kefa_cq {
	struct kofi_cq		cq;
	spinlock_t		starved_lock;	/* protects @starved */
	struct list_head	starved;
};

static inline struct kefa_rdm *to_kefa_rdm(struct kefa_ep *ep)
{
	return container_of(ep, struct kefa_rdm, ep);
}

static inline struct kefa_cq *to_kefa_cq(struct kofi_cq *cq)
{
	return container_of(cq, struct kefa_cq, cq);
}

/* The slot that a packet was received into. */
static inline struct kefa_rs *kefa_held_rs(struct kefa_held *held)
{
	return container_of(held, struct kefa_rs, held);
}

/* ep.c */

u32 kefa_rdm_max_medium(const struct kefa_dev *dev);
int kefa_rdm_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		  void *context);
int kefa_rdm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		     void *context);

/* show.c */

void kefa_rdm_show(struct seq_file *s, struct kefa_ep *ep);

/* answer.c */

bool kefa_send_debt(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
void kefa_rdm_answer(struct kefa_rdm *rdm);

/* longcts.c */

bool kefa_may_stream(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer);
void kefa_rdm_stream(struct kefa_rdm *rdm, struct list_head *ops,
		     bool (*one)(struct kefa_rdm *rdm, struct kefa_rop *rop));
bool kefa_stream_one(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_rop_grant(struct kefa_rdm *rdm, struct kefa_rop *rop);

/* longread.c */

void kefa_rop_read(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_rop_unhold(struct kefa_rdm *rdm, struct kefa_rop *rop);
bool kefa_read_one(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_read_done(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err, u32 status);
enum kefa_took kefa_again_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				   const struct kefa_pkt *pkt, struct kefa_rop *rop);

/* source.c */

int kefa_sources_init(struct kefa_rdm *rdm, u32 count);
void kefa_sources_fini(struct kefa_rdm *rdm);
void kefa_sources_end(struct kefa_ep *ep);
bool kefa_source_alone(const struct kefa_rdm *rdm, const struct kefa_rop *rop);
int kefa_source_get(struct kefa_rdm *rdm, struct kefa_rop *rop);
struct kefa_rma_iov kefa_source_iov(const struct kefa_rop *rop);
void kefa_source_release(struct kefa_rdm *rdm, struct kefa_rop *rop);
bool kefa_source_inval(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_source_registered(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err,
			    u32 status);
void kefa_source_invalidated(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err,
			     u32 status);
void kefa_source_revoked(struct kefa_mr *mr, int err);

/* send.c */

ssize_t kefa_rdm_tx(struct fid_ep *ep_fid, struct kofi_req *req);
bool kefa_may_send(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
bool kefa_ts_data(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct kefa_rop *rop, u64 off,
		  u32 len, u32 hdr, bool keep);
void kefa_ts_seal(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct kefa_pkt *pkt);
bool kefa_rdm_send(struct kefa_rdm *rdm, struct kefa_rop *rop);
ssize_t kefa_rdm_cancel(struct fid *fid, void *context);

/* recv.c */

ssize_t kefa_rdm_rx(struct fid_ep *ep_fid, struct kofi_req *req);

/* plain.c */

extern const struct fi_ops_msg kefa_rdm_msg_ops;
extern const struct fi_ops_tagged kefa_rdm_tagged_ops;
void kefa_rdm_limits(struct kefa_ep *ep);

/* eager.c */

unsigned int kefa_rdm_poll(struct kefa_ep *ep, unsigned int budget);
void kefa_rdm_wcs(struct kefa_rdm *rdm, unsigned int n);
void kefa_eager_init(struct kefa_rdm *rdm);

/* op.c */

bool kefa_rop_hold(struct kefa_rop *rop, const struct kofi_req *req);
void kefa_rop_iter(const struct kefa_rop *rop, unsigned int dir, u64 off, u64 len,
		   struct iov_iter *iter, struct kvec *kvec);
struct kefa_rop *kefa_rdm_take_rop(struct kefa_rdm *rdm, struct kefa_side *side,
				   enum kefa_rop_state state);
void kefa_rdm_unposted(struct kefa_rdm *rdm, struct kefa_rop *rop, int err);
void kefa_rdm_end_tx(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 prov);
void kefa_rdm_tell_rx(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 prov);
void kefa_rdm_end(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_ts_tell(struct kefa_rdm *rdm, const struct kefa_ts *ts);
void kefa_rdm_owe(struct kefa_rdm *rdm, struct kefa_rop *rop, u8 what);

/* tx.c */

int kefa_tx_init(struct kefa_rdm *rdm);
void kefa_tx_fini(struct kefa_rdm *rdm, bool reaches);
struct kefa_ts *kefa_ts_take(struct kefa_rdm *rdm, struct kefa_rpeer *peer, bool control);
void kefa_ts_free(struct kefa_rdm *rdm, struct kefa_ts *ts);
void kefa_ts_post(struct kefa_rdm *rdm, struct kefa_ts *ts);
struct kefa_wr *kefa_ts_hold(struct kefa_rdm *rdm, struct kefa_ts *ts);
void kefa_ts_done(struct kefa_rdm *rdm, const struct ib_wc *ibwc);
void kefa_tx_again(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
void kefa_tx_flush(struct kefa_rdm *rdm);
void kefa_tx_refused(struct kefa_rdm *rdm, unsigned int n, int err);
void kefa_ts_fail(struct kefa_rdm *rdm, struct kefa_ts *ts, int err, u32 prov);
void kefa_tx_posted(struct kefa_rdm *rdm, bool more);
size_t kefa_tx_keep(struct kefa_rdm *rdm);
void kefa_tx_forget(struct kefa_rdm *rdm);
u32 kefa_tx_room(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer);
bool kefa_tx_ready(struct kefa_rdm *rdm, struct kefa_rpeer *peer, unsigned int n);
bool kefa_tx_control(struct kefa_rdm *rdm, struct kefa_rpeer *peer, struct kefa_rop *rop,
		     struct kefa_pkt *pkt);

/* rx.c */

int kefa_rx_init(struct kefa_rdm *rdm);
void kefa_rx_fini(struct kefa_rdm *rdm);
void kefa_rx_end(struct kefa_rdm *rdm, bool reaches);
struct kefa_rs *kefa_rs_found(struct kefa_rdm *rdm, u64 id);
void kefa_rs_put(struct kefa_rdm *rdm, struct kefa_rs *rs);
void kefa_rx_give(struct kefa_rdm *rdm);
void kefa_rx_refill(struct kefa_rdm *rdm);
void kefa_rx_grow(struct kefa_rdm *rdm);
struct kefa_held *kefa_keep_packet(struct kefa_rdm *rdm, struct kefa_held *held,
				   struct kefa_rpeer *peer);
void kefa_held_free(struct kefa_rdm *rdm, struct kefa_held *held);
void kefa_rdm_drop(struct kefa_rdm *rdm, struct kefa_rpeer *peer, enum kefa_drop why);

/* part.c */

bool kefa_part_received(struct kefa_rdm *rdm, const struct kefa_held *held);

/* msg.c */

void kefa_rdm_packet(struct kefa_rdm *rdm, struct kefa_held *held);
void kefa_rdm_drain(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
void kefa_rdm_retry(struct kefa_rdm *rdm);
void kefa_rop_put(struct kefa_rdm *rdm, struct kefa_rop *rop, const void *data, u64 off, u32 len);
void kefa_rop_copy(struct kefa_rdm *rdm, struct kefa_rop *rop, const struct kefa_pkt *pkt);
void kefa_rop_whole(struct kefa_rdm *rdm, struct kefa_rop *rop);
bool kefa_pkt_src(const struct kefa_pkt *pkt, const struct kefa_held *held,
		  struct kefa_src *src);
void kefa_rdm_feed(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_held *held);
struct kefa_rop *kefa_multi_take(struct kefa_rdm *rdm, struct kefa_rop *multi, u64 total);
void kefa_msg_drop(struct kefa_rdm *rdm, struct kefa_held *held);

/* join.c */

void kefa_rdm_join(struct work_struct *work);
int kefa_rdm_peer_add(struct kefa_av_user *user, const struct kefa_peer *peer);
void kefa_rdm_peer_del(struct kefa_av_user *user, const struct kefa_peer *peer);
void kefa_rdm_relieve(struct kefa_rdm *rdm);
void kefa_rdm_lost(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
void kefa_rdm_kill(struct kefa_rdm *rdm, struct kefa_rpeer *peer, int err, u32 prov);
void kefa_rdm_put_wr(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
void kefa_rdm_fail_all(struct kefa_rdm *rdm, int err);
void kefa_rdm_peers_fini(struct kefa_rdm *rdm);

/* silent.c */

void kefa_silent_arm(struct kefa_rdm *rdm);
void kefa_rdm_silent(struct work_struct *work);

/* progress.c */

void kefa_rdm_work(struct work_struct *work);
bool kefa_rdm_read(void *arg, bool last);
void kefa_rdm_received(struct kefa_rdm *rdm, const struct ib_wc *ibwc);
void kefa_rdm_pump(struct kefa_rdm *rdm);

/**
 * kefa_rdm_due() - is there anything for kefa_rdm_pump() to do?
 * @rdm: the endpoint, enabled
 *
 * Packets that are held aren't looked at: others may be about to share their doorbell.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether there is.
 */
static inline bool kefa_rdm_due(const struct kefa_rdm *rdm)
{
	lockdep_assert_held(&rdm->ep.lock);
	return rdm->starved | rdm->shut || rdm->nposted < rdm->target ||
	       rdm->kept >= rdm->budget || !list_empty(&rdm->todo) ||
	       !list_empty(&rdm->owing) || !list_empty(&rdm->sending) ||
	       !list_empty(&rdm->reading) ||
	       !RB_EMPTY_ROOT(&rdm->backoffs.queue.rb_root.rb_root);
}

/**
 * kefa_msg_src() - whom a message is from, for the match
 * @rdm: the endpoint
 * @peer: who has sent it
 *
 * Context: Under kefa_ep.lock.
 * Return: the peer's number; FI_ADDR_UNSPEC where no receive can name a peer.
 */
static inline fi_addr_t kefa_msg_src(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	return rdm->ep.caps & FI_DIRECTED_RECV ? peer->id : FI_ADDR_UNSPEC;
}

/**
 * kefa_rop_src() - whom a message is from, for its completion
 * @rdm: the endpoint
 * @rop: its receive
 *
 * Context: Under kefa_ep.lock.
 * Return: index in the address vector, or FI_ADDR_NOTAVAIL.
 */
static inline fi_addr_t kefa_rop_src(const struct kefa_rdm *rdm, const struct kefa_rop *rop)
{
	if (!rop->peer || !(rdm->ep.caps & FI_SOURCE) || rop->peer->addr == KEFA_NO_ADDR)
		return FI_ADDR_NOTAVAIL;
	return rop->peer->addr;
}

/**
 * kefa_rs_hold() - have a receive wait for the doorbell
 * @rdm: the endpoint
 * @rs: its slot, in no list; kefa_rx_give() is due, at once if KEFA_RECVS_MAX are held
 *
 * Context: Under kefa_ep.lock.
 */
static inline void kefa_rs_hold(struct kefa_rdm *rdm, struct kefa_rs *rs)
{
	struct kefa_recv_wr *recv = &rdm->ep.recvs[rdm->ep.nrecvs++];

	lockdep_assert_held(&rdm->ep.lock);
	rs->state = KEFA_RS_POSTED;
	kefa_dma_sync_for_device(rdm->ep.dma, rs->dma, rdm->stride, DMA_FROM_DEVICE);
	/* Its length is that of all of them. */
	recv->wr.wr_id = rs->id;
	recv->sge[0].addr = rs->dma;
	rdm->nposted++;
}

/**
 * kefa_rs_again() - a packet is needed no more, and its slot is used again
 * @rdm: the endpoint
 * @rs: the slot, which the device hasn't; kefa_rx_give() or kefa_rx_refill() is due
 *
 * If much is kept kefa_rx_refill() decides how many are posted.
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
 * kefa_ts_set_state() - go from one state to another
 * @rdm: the endpoint
 * @ts: the send slot
 * @state: where to
 *
 * Context: Under kefa_ep.lock.
 */
static __always_inline void kefa_ts_set_state(const struct kefa_rdm *rdm, struct kefa_ts *ts,
					      enum kefa_ts_state state)
{
	lockdep_assert_held(&rdm->ep.lock);
	WARN_ON_ONCE(!kefa_ts_may(ts->state, state));
	ts->state = state;
}

/**
 * kefa_rdm_todo() - something may be sent to a peer
 * @rdm: the endpoint
 * @peer: the peer
 *
 * Context: Under kefa_ep.lock.
 */
static inline void kefa_rdm_todo(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (list_empty(&peer->todo))
		list_add_tail(&peer->todo, &rdm->todo);
}

#endif /* KEFA_RDM_RDM_H */
