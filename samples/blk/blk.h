/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofiblk.ko: attaches block devices that another machine's kofiblk_srv exports.
 *
 *	blk_main.c	the control device, the list of disks
 *	blk_options.c	parser of the options written to the control device
 *	blk_session.c	a disk's thread, which begins and ends sessions
 *	blk_setup.c	session set-up over TCP, and the fabric objects of a session
 *	blk_disk.c	interface to the block layer: a disk and its queues
 *	blk_request.c	state machine of a request
 *	blk_command.c	commands for requests, and checks of replies
 *	blk_sum.c	checksums
 *	blk_epoch.c	detection of writes that were lost in a server's crash
 *	blk_grant.c	what a later session must grant to a disk in use
 *	blk_memory.c	memory of a request
 *	blk_tags.c	memory regions of tags; keep-alive messages
 *	blk_sysfs.c	attributes
 *	blk_stats.c	counters in sysfs
 *	blk_debugfs.c	all counters, and active requests
 *
 * Only the disk's thread begins and ends sessions. Other code calls kbc_session_fail(),
 * which makes the thread end the session.
 *
 * kbc_disks_lock (mutex)		the list of disks
 *  > kbc_disk.lock (spinlock, BH off)
 * kbc_disk.gate (mutex)		held while the block layer's queue is stopped or started
 * kbc_tag.lock (spinlock, BH off)
 *  > kbc_disk.lock
 * kbc_sessions_lock (spinlock, BH off)
 * kbc_queue.lock (spinlock, BH off)
 * fi_*() calls and kb_submit() aren't made under these locks, except fi_mr_post_reg()
 * under kbc_queue.lock. The block layer is called under two of these locks: to quiesce or
 * unquiesce a queue under kbc_disk.gate, and by blk_mq_start_request() under kbc_tag.lock.
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

/* Maximum retries after failures that kbc_fault() counts, as nvme_core.max_retries. */
#define KBC_FAULTS_MAX	5
/* Time-out in seconds of operations that are outstanding at the end of a session. */
#define KBC_END_S	30

/* Longest time-out: time_after() needs a positive number of jiffies. */
#define KBC_SECONDS_MAX	(INT_MAX / 2000)

struct dentry;
struct kbc_disk;
struct task_struct;

/**
 * struct kbc_options - options of a disk
 * @addr: address of the server
 * @address: address of the server, as text
 * @export: name of the export
 * @client: name of this client
 * @host: permanent ID of this machine: a new session replaces an old one of the same
 *	export, client and host
 * @key: key of the client's secret, or NULL; kbc_disk.lock protects it once the disk exists
 * @select: selects the local device
 * @queues: maximum number of queues
 * @depth: maximum depth of each queue
 * @max_io: maximum bytes of a command
 * @reconnect_delay: seconds between attempts to connect
 * @ctrl_loss_tmo: seconds without a session until the disk is removed, or -1 for never
 * @fast_io_fail_tmo: seconds without a session until I/O fails, or -1 for never
 * @keep_alive_tmo: seconds without a message until the server is considered dead
 * @checksum: require checksums
 * @own_domain: open a domain for disks of this server alone, so that no other server can
 *	reach their memory
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
 * enum kbc_state - state of a disk, with the names of an nvme controller's states
 * @KBC_CONNECTING: there is no session; the thread tries to connect
 * @KBC_LIVE: there is a session
 * @KBC_RESETTING: the session is ending
 * @KBC_DELETING: the disk is being removed; there may still be a session
 * @KBC_STATES: number of states
 */
enum kbc_state {
	KBC_CONNECTING,
	KBC_LIVE,
	KBC_RESETTING,
	KBC_DELETING,
	KBC_STATES,
};

/**
 * enum kbc_phase - event that a request waits for
 * @KBC_IDLE: nothing: the request isn't active
 * @KBC_REGISTER: registration of its memory
 * @KBC_REPLY: reply of the server
 * @KBC_FETCH: completion of reading its data from the server
 * @KBC_INVALIDATE: invalidation of its registration
 * @KBC_STUCK: closing of its region by kbc_tag_release(), because the device failed to
 *	invalidate the registration
 * @KBC_END: completion of the request's last operations, if any
 * @KBC_PHASES: number of phases
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

/* A command in wire format, with room for a checksum or immediate data. */
union kbc_msg {
	struct kb_cmd	cmd;
	u8		room[KB_CMD_MAX(0)];
};

/* Maximum pieces of inline data. The provider would copy messages of more pieces. */
#define KBC_INLINE_BVECS	2

/**
 * struct kbc_slot - private data of a request of the block layer
 * @kq: queue of the request
 * @tag: tag of the request, while it is active
 * @attempt: kbc_disk.attempt of the session in which the request was sent
 * @faults: failures that count against KBC_FAULTS_MAX: time-outs, failed operations, wrong
 *	checksums, and replies that the server lacked a resource
 * @seed: with checksums, the checksum of the command without data
 * @sum: with checksums, the server's checksum of a read
 * @phase: event that the request waits for
 * @status: result of the request
 * @ops: number of operations that haven't completed
 * @aborted: the session ended before the server replied
 * @registered: the request's memory is registered, so the server can reach it
 * @posted: the command was posted, or is about to be; no reply is accepted before
 * @fetched: the data that the server offered was read
 * @inl: the command or the reply contains the data
 * @imm: the server may reply by immediate data
 * @transient: the request failed, but may succeed if it is sent again
 * @unflushed: for a flush, return value of kbc_epoch_flush()
 * @nbvec: number of pieces of inline data in @bvecs
 * @bvecs: the command, followed by the pieces of inline data
 * @msgs: the command, and the FETCHED command
 * @bio: bio whose data is being fetched
 * @send: sends the command
 * @region: registers or invalidates the memory
 * @fetch: reads the data that the server offered
 * @thank: sends the FETCHED command
 *
 * kbc_tag.lock protects @phase to @unflushed, except that kbc_send_post() sets @posted.
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

/* Return: enum kb_opcode, or 0 for a request without a command. */
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

/* Count a failure. Another request may be its cause, but the number of retries must be finite. */
static inline void kbc_fault(struct kbc_slot *slot)
{
	if (READ_ONCE(slot->faults) <= KBC_FAULTS_MAX)
		WRITE_ONCE(slot->faults, slot->faults + 1);
}

/**
 * struct kbc_tag - a tag of a queue. It outlives the block layer's requests
 * @lock: protects @slot, @gen, and kbc_slot.phase to kbc_slot.unflushed of @slot
 * @slot: the active request, or NULL
 * @gen: how often the tag was used
 * @mr: memory region for requests with this tag. While no request is active, the disk's
 *	thread may free the region
 */
struct kbc_tag {
	spinlock_t		lock;		/* protects slot, its state, and gen */
	struct kbc_slot		*slot;
	u64			gen;
	struct fid_mr		*mr;
};

/**
 * struct kbc_queue - a hardware queue of the block layer, and the session's queue for it
 * @disk: disk of the queue
 * @index: number of the queue
 * @q: endpoint queue that operations are posted to; several queues may share one
 * @credits: number of receives reserved on @q
 * @peer: address of the server's endpoint for this queue
 * @user: user number on @q for immediate data; negative without immediate data
 * @salt: random offset of the generations in immediate data
 * @tags: tags of the queue, kbc_disk.depth of them
 * @bvecs: room for kbc_disk.max_bvecs pieces, to register a request of several bios
 * @busy: number of active requests and keep-alive messages
 * @lock: protects @bvecs
 *
 * Requests write to @busy and @lock, so these have cache lines of their own.
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
 * struct kbc_alive - keep-alive messages of a disk's thread
 * @op: sends a message
 * @msg: buffer of the message
 * @gen: number of messages sent
 * @seen: number of the latest message that was answered
 * @when: time of the latest message, in jiffies
 * @sending: the send hasn't completed
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
 * struct kbc_io_stats - counters that most requests increment, for each CPU
 * @requests: requests started
 * @bytes: bytes of reads and writes
 * @inlined: writes with the data in the command
 * @inline_reads: reads with the data in the reply
 * @immediates: reads with immediate data as the reply
 * @registrations: registrations of memory
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
 * struct kbc_stats - counters of rare events
 * @fetches: reads whose data the client fetched, for lack of RDMA write
 * @errors: requests that the server failed
 * @replays: requests requeued because their session ended, the server lacked a resource, or
 *	a checksum was wrong
 * @failures: requests failed because there was no session
 * @timeouts: time-outs of requests
 * @refused: invalid messages from the server
 * @stale: replies and immediate data that no request waits for
 * @keep_alives: keep-alive messages sent
 * @connects: sessions begun
 * @attempts: attempts to begin a session
 * @losses: sessions whose epoch shows that the server may have lost writes
 * @checksum_errors: wrong checksums of commands or data, found by either side
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
 * struct kbc_setup - messages of session set-up, which the proofs are computed over
 * @hello: HELLO as it was sent
 * @challenge: CHALLENGE as it was received
 * @msg: buffer for all other messages
 */
struct kbc_setup {
	u8	hello[KB_NET_MAX];
	u8	challenge[KB_NET_MAX];
	u8	msg[KB_NET_MAX];
};

/**
 * struct kbc_disk - a disk
 * @list: in kbc_disks
 * @index: number of the disk
 * @name: "kofiblk" followed by @index
 * @options: options of the user
 * @io_stats: counters that most requests increment
 * @stats: counters of rare events
 * @debugfs: directory of the disk
 * @lock: protects @state, @attempt, @failure, @deleting and @options.key
 * @state: state of the disk
 * @thread: thread that runs the disk's sessions
 * @wait: @thread sleeps here, also while it waits for requests
 * @stopping: @thread must exit
 * @deleting: removal of the disk was requested
 * @delete_work: removes the disk, after @made
 * @made: completed when creation of the disk has ended
 * @kick: wakes @thread after a failure of the session
 * @attempt: number of the latest attempt to connect. A failure that belongs to an earlier
 *	attempt is ignored
 * @failure: first errno since the latest attempt to connect began, or 0
 * @again: connect without delay
 * @final: the server, whose proof was valid, refuses this client permanently
 * @net: TCP connection to the server
 * @setup: messages of session set-up
 * @key: key that the session began with, or NULL
 * @proof: MAC of AUTH, which all later MACs of the session cover
 * @resizes: number of the latest RESIZE
 * @fabric: device and its objects, kept between sessions
 * @session: ID of the session, or 0
 * @node: in kbc_sessions
 * @epoch: detects writes that the server lost
 * @flushed: the server said at the end of the session that it has flushed its store
 * @limits: limits that the server granted
 * @as_made: properties that the disk was made with, valid if @known
 * @geometry: properties of the export
 * @known: the first session has set @as_made and the members that never change
 * @addr_format: address format of the first session's fabric; never changes
 * @addrlen: address length of the first session's fabric; never changes
 * @requeued: requests wait in the block layer's requeue list
 * @depth: depth of each queue; never changes
 * @max_bvecs: maximum pieces of a request; never changes
 * @nqueues: number of entries of @queues; never changes
 * @queues: queues of the block layer and of the session
 * @alive: keep-alive messages
 * @since: time when the session began or ended, in jiffies
 * @fast_fail: makes requests fail after fast_io_fail_tmo
 * @gate: protects @quiesced to @failing
 * @quiesced: the block layer's queue is quiesced
 * @up: requests can be sent
 * @failing: requests that can't be sent fail
 * @set: tag set of the block layer
 * @disk: disk of the block layer, or NULL
 * @added: the disk is visible
 */
struct kbc_disk {
	struct list_head	list;
	int			index;
	char			name[DISK_NAME_LEN];
	struct kbc_options	options;
	struct kbc_io_stats __percpu *io_stats;
	struct kbc_stats	stats;
	struct dentry		*debugfs;
	spinlock_t		lock;		/* state, attempt, failure, deleting, options.key */
	enum kbc_state		state;
	struct task_struct	*thread;
	wait_queue_head_t	wait;
	bool			stopping;
	bool			deleting;
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
	struct mutex		gate;		/* protects quiesced, up, failing */
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

/* The number of the tag in immediate data of kbc_imm(). */
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
