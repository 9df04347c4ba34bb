/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofiblk.ko: disks of another machine, over whatever fabric kOFI has.
 *
 *	blk_main.c	the control device, the list of disks
 *	blk_options.c	what the control device is told
 *	blk_session.c	a disk's thread: sessions begin, end, and begin again
 *	blk_setup.c	what is said over TCP, and the fabric's part of a session
 *	blk_disk.c	the block layer's side: a disk and its queues
 *	blk_request.c	the life of a request
 *	blk_command.c	what a request is as a command
 *	blk_sum.c	checksums
 *	blk_epoch.c	writes that a server's crash may have taken
 *	blk_grant.c	what a disk that is in use can't do without
 *	blk_memory.c	a request's memory
 *	blk_tags.c	what a queue's tags have for good; keep-alive messages
 *	blk_sysfs.c	attributes
 *	blk_stats.c	counters, as an interface
 *	blk_debugfs.c	counters, and what is under way
 *
 * A disk has one thread, which alone opens and closes its sessions. Others only
 * ask it to, by kbc_session_fail().
 *
 * kbc_disks_lock (mutex)		the list of disks
 *  > kbc_disk.lock (spinlock, BH off)
 * kbc_disk.gate (mutex)		the block layer's queue is stopped under it
 * kbc_tag.lock (spinlock, BH off)
 *  > kbc_disk.lock
 * kbc_sessions_lock (spinlock, BH off)
 * kbc_queue.lock (spinlock, BH off)
 * No fi_*() call and no kb_submit() is made under any of them, but for fi_mr_post_reg()
 * under kbc_queue.lock, and of the block layer's only those of the gate and
 * blk_mq_start_request().
 */
#ifndef KOFIBLK_BLK_H
#define KOFIBLK_BLK_H

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include "auth.h"
#include "blk_epoch.h"
#include "blk_grant.h"
#include "fabric.h"
#include "net.h"
#include "wire.h"

/* How often a request may be what ends a session, as nvme_core.max_retries. */
#define KBC_FAULTS_MAX	5
/* For the fabric to be done with what it has, once a session is over. */
#define KBC_END_S	30

/* Of a time-out: in jiffies it must not look negative. */
#define KBC_SECONDS_MAX	(INT_MAX / 2000)

struct dentry;
struct kbc_disk;
struct task_struct;

/**
 * struct kbc_options - what the user wants
 * @addr: the server
 * @address: likewise, as text
 * @export: which of its disks
 * @client: who we are
 * @host: this machine, for good: the server lets a new session of the same export,
 *	client and host take the place of the one before
 * @key: proves it; or NULL. Under kbc_disk.lock once there is a disk
 * @select: which device of ours
 * @queues: at most
 * @depth: of each
 * @max_io: bytes of a command
 * @reconnect_delay: seconds between attempts
 * @ctrl_loss_tmo: seconds without a session until the disk is given up, or -1
 * @fast_io_fail_tmo: seconds without a session until I/O fails, or -1
 * @keep_alive_tmo: seconds without a word from the server until it is dead
 * @checksum: the server has to have checksums
 * @own_domain: @select.owner is the server, so that no other reaches its disks' memory
 */
struct kbc_options {
	struct sockaddr_storage	addr;
	char			address[KB_NET_NAME];
	char			export[KB_NAME_MAX];
	char			client[KB_NAME_MAX];
	u8			host[KB_HOST];
	struct kb_key		*key;
	struct kb_select	select;
	unsigned int		queues;
	unsigned int		depth;
	unsigned int		max_io;
	unsigned int		reconnect_delay;
	int			ctrl_loss_tmo;
	int			fast_io_fail_tmo;
	unsigned int		keep_alive_tmo;
	bool			checksum;
	bool			own_domain;
};

/**
 * enum kbc_state - of a disk, as nvme's controllers have them
 * @KBC_CONNECTING: there is no session; one is asked for from time to time
 * @KBC_LIVE: there is a session
 * @KBC_RESETTING: a session ends
 * @KBC_DELETING: the disk goes away; there may be a session until it has
 * @KBC_STATES: how many there are
 */
enum kbc_state {
	KBC_CONNECTING,
	KBC_LIVE,
	KBC_RESETTING,
	KBC_DELETING,
	KBC_STATES,
};

/**
 * enum kbc_phase - what a request waits for
 * @KBC_IDLE: there is none
 * @KBC_REGISTER: its memory's registration
 * @KBC_REPLY: the server
 * @KBC_FETCH: the data that it reads from the server
 * @KBC_INVALIDATE: its registration's end
 * @KBC_STUCK: the device didn't end the registration. kbc_tag_release() does, by
 *	closing the region
 * @KBC_END: operations that the fabric hasn't completed yet, if any
 * @KBC_PHASES: how many there are
 */
enum kbc_phase {
	KBC_IDLE,
	KBC_REGISTER,
	KBC_REPLY,
	KBC_FETCH,
	KBC_INVALIDATE,
	KBC_STUCK,
	KBC_END,
	KBC_PHASES,
};

/* A command as it is sent, with what follows it. */
union kbc_msg {
	struct kb_cmd	cmd;
	u8		room[KB_CMD_MAX(0)];
};

/* Inline data makes no more pieces: more would be copied by the provider. */
#define KBC_INLINE_BVECS	2

/**
 * struct kbc_slot - a request on its way, in the block layer's own
 * @kq: whose it is
 * @tag: that it has, while it is under way
 * @attempt: kbc_disk.attempt of the session that it was sent in
 * @faults: sessions that ended for it: it took too long, or couldn't be sent
 * @seed: with checksums, that of the command without data
 * @sum: with checksums, that of a read as the server says
 * @phase: what it waits for. It and what follows is protected by kbc_tag.lock
 * @status: what became of it
 * @ops: operations that the fabric hasn't completed
 * @aborted: the session ended before the server's reply came
 * @registered: the server can reach the memory
 * @posted: the command was, maybe more than once
 * @fetched: the server's offer was taken
 * @inl: the data goes with the command, or comes with the reply
 * @imm: immediate data will do as a reply
 * @transient: the server failed it, but may do better later
 * @unflushed: of a flush: there is something for it to do
 * @nbvec: of @bvecs, without the first
 * @bvecs: the command, and the data that goes with it
 * @msgs: the command, and the one that thanks for what was fetched
 * @bio: what is being fetched
 * @send: the command
 * @region: registration or invalidation
 * @fetch: see KBC_FETCH
 * @thank: tells the server that it was
 */
struct kbc_slot {
	struct kbc_queue	*kq;
	struct kbc_tag		*tag;
	unsigned int		attempt;
	u8			faults;
	u32			seed;
	u32			sum;
	enum kbc_phase		phase;
	blk_status_t		status;
	u8			ops;
	bool			aborted;
	bool			registered;
	bool			posted;
	bool			fetched;
	bool			inl;
	bool			imm;
	bool			transient;
	bool			unflushed;
	u8			nbvec;
	struct bio_vec		bvecs[1 + KBC_INLINE_BVECS];
	union kbc_msg		msgs[2];
	struct bio		*bio;
	struct kb_op		send;
	struct kb_op		region;
	struct kb_rma		fetch;
	struct kb_op		thank;
};

static inline struct kbc_slot *kbc_slot(struct request *rq)
{
	return blk_mq_rq_to_pdu(rq);
}

static inline struct request *kbc_rq(const struct kbc_slot *slot)
{
	return blk_mq_rq_from_pdu((void *)slot);
}

/* Return: 0 for what there is no command for. */
static inline u8 kbc_opcode(const struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return KB_OP_READ;
	case REQ_OP_WRITE:
		return KB_OP_WRITE;
	case REQ_OP_FLUSH:
		return KB_OP_FLUSH;
	case REQ_OP_DISCARD:
		return KB_OP_DISCARD;
	case REQ_OP_WRITE_ZEROES:
		return KB_OP_WRITE_ZEROES;
	default:
		return 0;
	}
}

static inline bool kbc_op_moves(u8 op)
{
	return op == KB_OP_READ || op == KB_OP_WRITE;
}

/* It may be the fault of another, but one can't go on for ever. */
static inline void kbc_fault(struct kbc_slot *slot)
{
	if (READ_ONCE(slot->faults) <= KBC_FAULTS_MAX)
		WRITE_ONCE(slot->faults, slot->faults + 1);
}

/**
 * struct kbc_tag - what a tag has, whichever request uses it: the block layer may free
 *	requests while a server says something of their tags
 * @lock: protects what follows, and what is in @slot
 * @slot: the request that is under way, or NULL
 * @gen: how often the tag was used
 * @mr: region of the fabric's for it; it is the request's while there is one, and else
 *	the disk's thread's
 */
struct kbc_tag {
	spinlock_t		lock;		/* protects what follows */
	struct kbc_slot		*slot;
	u64			gen;
	struct fid_mr		*mr;
};

/**
 * struct kbc_queue - a queue of the block layer's, and of the session
 * @disk: whose it is
 * @index: its number
 * @q: where it is posted; several may have the same
 * @credits: taken of @q
 * @peer: where to
 * @user: of @q, for immediate data; or negative
 * @salt: random, for the same
 * @tags: kbc_disk.depth of them
 * @bvecs: lists the memory of a request that is in several bios, while it is registered:
 *	kbc_disk.max_bvecs of them
 * @busy: requests and keep-alive messages that are under way
 * @lock: protects @bvecs
 *
 * What requests write is a queue's own, and in no cache line of another's.
 */
struct kbc_queue {
	struct kbc_disk		*disk;
	u16			index;
	struct kb_queue		*q;
	u32			credits;
	fi_addr_t		peer;
	int			user;
	u32			salt;
	struct kbc_tag		*tags;
	struct bio_vec		*bvecs;
	atomic_t		busy ____cacheline_aligned_in_smp;
	spinlock_t		lock;		/* protects bvecs */
};

/**
 * struct kbc_alive - keep-alive messages, of a disk's thread
 * @op: sends one
 * @msg: the command
 * @gen: how many were sent
 * @seen: the latest that was answered
 * @when: the latest was sent, in jiffies
 * @sending: the fabric still has it
 */
struct kbc_alive {
	struct kb_op		op;
	union kbc_msg		*msg;
	u64			gen;
	u64			seen;
	unsigned long		when;
	bool			sending;
};

/**
 * struct kbc_io_stats - counters of what all requests do, by CPU
 * @requests: begun
 * @bytes: read and written
 * @inlined: writes whose data went with the command
 * @inline_reads: reads whose data came with the reply
 * @immediates: reads that immediate data was the reply to
 * @registrations: of memory
 */
struct kbc_io_stats {
	unsigned long	requests;
	unsigned long	bytes;
	unsigned long	inlined;
	unsigned long	inline_reads;
	unsigned long	immediates;
	unsigned long	registrations;
};

/**
 * struct kbc_stats - counters of what is less common
 * @fetches: reads by us, for want of RDMA write
 * @errors: requests that the server failed
 * @replays: requests given back to the block layer, as their session ended
 * @failures: requests failed, as there was no session
 * @timeouts: requests that took too long
 * @refused: messages that can't be right
 * @stale: replies to what isn't waited for any more
 * @keep_alives: sent
 * @connects: sessions
 * @attempts: to have one
 * @losses: sessions before which the server may have lost writes
 * @checksum_errors: requests that did not come as they were sent
 */
struct kbc_stats {
	atomic_long_t	fetches;
	atomic_long_t	errors;
	atomic_long_t	replays;
	atomic_long_t	failures;
	atomic_long_t	timeouts;
	atomic_long_t	refused;
	atomic_long_t	stale;
	atomic_long_t	keep_alives;
	atomic_long_t	connects;
	atomic_long_t	attempts;
	atomic_long_t	losses;
	atomic_long_t	checksum_errors;
};

/**
 * struct kbc_setup - messages of a session's beginning, kept as proofs are of them
 * @hello: as it was sent
 * @challenge: as it came
 * @msg: ACCEPT or whatever else comes
 */
struct kbc_setup {
	u8	hello[KB_NET_MAX];
	u8	challenge[KB_NET_MAX];
	u8	msg[KB_NET_MAX];
};

/**
 * struct kbc_disk - a disk
 * @list: kbc_disks
 * @index: its number
 * @name: "kofiblk" and that
 * @options: what the user wants
 * @io_stats: counters
 * @stats: more of them
 * @debugfs: its directory
 * @lock: protects @state, @attempt, @failure and @options.key
 * @state: where it is
 * @thread: of its sessions
 * @wait: where that sleeps, and who waits for requests
 * @stopping: the thread shall end
 * @deleting: somebody asked for the disk to go away
 * @delete_work: does it, once the disk is @made
 * @made: nobody is making the disk any more
 * @kick: wakes the thread, as the session failed
 * @attempt: to have a session: what is late of one before isn't this one's
 * @failure: why, the first errno since the session began
 * @again: connect at once
 * @final: the server won't have us back
 * @net: TCP
 * @setup: the session's beginning
 * @key: that the session began with, or NULL
 * @proof: AUTH's MAC, which names the session in all later ones
 * @resizes: number of the latest RESIZE
 * @fabric: the device, also between sessions
 * @session: the session's number
 * @node: kbc_sessions
 * @epoch: writes that the server may lose
 * @flushed: it said, at the session's end, that it won't
 * @limits: granted
 * @as_made: what the disk was made with, once there was a session
 * @geometry: of the export
 * @known: there was a session
 * @addr_format: of the fabric that the first was on
 * @addrlen: likewise
 * @requeued: the block layer has requests that wait to be sent again
 * @depth: of each queue, for good
 * @max_bvecs: of a request, for good
 * @nqueues: entries of @queues, for good
 * @queues: of the session's and of the block layer's
 * @alive: keep-alive messages
 * @since: when the session began or ended, in jiffies
 * @fast_fail: ends I/O's patience
 * @gate: protects what follows
 * @quiesced: the block layer holds requests back
 * @up: requests can be sent
 * @failing: requests fail if they can't
 * @set: the block layer's
 * @disk: likewise, NULL until it is there
 * @added: the world can see it
 */
struct kbc_disk {
	struct list_head	list;
	int			index;
	char			name[DISK_NAME_LEN];
	struct kbc_options	options;
	struct kbc_io_stats __percpu *io_stats;
	struct kbc_stats	stats;
	struct dentry		*debugfs;
	spinlock_t		lock;		/* protects state, attempt, failure, options.key */
	enum kbc_state		state;
	struct task_struct	*thread;
	wait_queue_head_t	wait;
	bool			stopping;
	atomic_t		deleting;
	struct work_struct	delete_work;
	struct completion	made;
	struct work_struct	kick;
	unsigned int		attempt;
	int			failure;
	bool			again;
	bool			final;
	struct kb_net		net;
	struct kbc_setup	*setup;
	struct kb_key		*key;
	u8			proof[KB_MAC];
	u64			resizes;
	struct kb_fabric	*fabric;
	u64			session;
	struct hlist_node	node;
	struct kbc_epoch	epoch;
	bool			flushed;
	struct kb_limits	limits;
	struct kbc_made		as_made;
	struct kb_disk_msg	geometry;
	bool			known;
	u32			addr_format;
	size_t			addrlen;
	int			requeued;
	u16			depth;
	u16			max_bvecs;
	u16			nqueues;
	struct kbc_queue	*queues;
	struct kbc_alive	alive;
	unsigned long		since;
	struct delayed_work	fast_fail;
	struct mutex		gate;		/* protects what follows */
	bool			quiesced;
	bool			up;
	bool			failing;
	struct blk_mq_tag_set	set;
	struct gendisk		*disk;
	bool			added;
};

#define kbc_err(d, fmt, ...) \
	pr_err("%s: " fmt, (d)->name, ##__VA_ARGS__)
#define kbc_info(d, fmt, ...) \
	pr_info("%s: " fmt, (d)->name, ##__VA_ARGS__)

/* blk_options.c */

int kbc_options_parse(struct kbc_options *opts, char *text);
void kbc_options_free(struct kbc_options *opts);

/* blk_main.c */

extern const struct kb_role kbc_role;
extern struct workqueue_struct *kbc_wq;

void kbc_disk_delete(struct kbc_disk *d);

/* blk_session.c */

extern const char * const kbc_state_names[KBC_STATES];

bool kbc_set_state(struct kbc_disk *d, enum kbc_state state);
void kbc_session_fail_of(struct kbc_disk *d, unsigned int attempt, int err);
void kbc_session_fail(struct kbc_disk *d, int err);
void kbc_session_init(struct kbc_disk *d);
int kbc_session_start(struct kbc_disk *d);
void kbc_session_stop(struct kbc_disk *d);

/* blk_setup.c */

int kbc_connect(struct kbc_disk *d);
void kbc_disconnect(struct kbc_disk *d);
void kbc_fabric_forget(struct kbc_disk *d);
void kbc_setup_free(struct kbc_disk *d);
struct kbc_disk *kbc_session_find(u64 session);

/* blk_disk.c */

int kbc_disk_alloc(struct kbc_disk *d);
int kbc_disk_add(struct kbc_disk *d);
void kbc_disk_remove(struct kbc_disk *d);
void kbc_disk_free(struct kbc_disk *d);
void kbc_disk_update(struct kbc_disk *d);
void kbc_complete(struct request *rq, blk_status_t status);
void kbc_requeue(struct kbc_disk *d, struct request *rq, unsigned int ms);
void kbc_gate_open(struct kbc_disk *d);
void kbc_gate_close(struct kbc_disk *d);
void kbc_gate_fail(struct kbc_disk *d);

/* blk_tags.c */

void kbc_busy_put(struct kbc_queue *kq);
void kbc_each_tag(struct kbc_disk *d,
		  void (*fn)(struct kbc_queue *kq, struct kbc_tag *tag));
void kbc_keep_alive(struct kbc_disk *d);
int kbc_tags_alloc(struct kbc_disk *d);
void kbc_tags_free(struct kbc_disk *d);
int kbc_regions_alloc(struct kbc_disk *d);
void kbc_regions_free(struct kbc_disk *d);

/* blk_command.c */

/* The number of the tag in immediate data, for kbc_imm(). */
#define KBC_IMM_TAG(data)	((data) >> 20 & (KB_DEPTH_MAX - 1))

bool kbc_op_allowed(const struct kbc_disk *d, u8 op);
u16 kbc_cmd_flags(const struct kbc_slot *slot, u8 op);
bool kbc_imm_will_do(const struct kbc_slot *slot);
u32 kbc_imm(const struct kbc_queue *kq, const struct kbc_tag *tag);
const char *kbc_reply_fault(const struct kbc_slot *slot,
			    const struct kb_reply_msg *msg);

/* blk_memory.c */

int kbc_memory_register(struct kbc_slot *slot, struct kb_op *op);
void kbc_memory_iter(const struct bio *bio, struct iov_iter *iter);
bool kbc_memory_carried(struct kbc_slot *slot);
void kbc_memory_fill(const struct request *rq, const void *data);

/* blk_request.c */

void kbc_slot_init(struct kbc_slot *slot, struct kbc_queue *kq);
blk_status_t kbc_request_start(struct kbc_queue *kq, struct request *rq);
void kbc_requests_abort(struct kbc_disk *d);
void kbc_received(struct kb_queue *q, void *buf, size_t len);
void kbc_written(void *user, u32 data);

/* blk_sum.c */

void kbc_sum_command(const struct kbc_disk *d, struct request *rq, struct kb_cmd_msg *msg);
bool kbc_sum_missing(const struct kbc_disk *d, const struct kb_reply_msg *msg);
bool kbc_sum_refused(struct kbc_disk *d, const struct request *rq,
		     const struct kb_reply_msg *msg);
bool kbc_sum_wrong(struct kbc_disk *d, struct request *rq);

/* blk_sysfs.c */

extern const struct attribute_group *kbc_attr_groups[];

/* blk_stats.c */

extern const struct attribute_group kbc_stat_group;

unsigned long kbc_io_count(const struct kbc_disk *d, size_t offset);

/* blk_debugfs.c */

void kbc_debugfs_init(void);
void kbc_debugfs_exit(void);
void kbc_debugfs_add(struct kbc_disk *d);
void kbc_debugfs_del(struct kbc_disk *d);

#endif /* KOFIBLK_BLK_H */
