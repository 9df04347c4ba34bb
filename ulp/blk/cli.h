/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofiblk.ko: attaches block devices that another machine's kofiblk_srv exports.
 *
 * Only the disk's thread begins and ends sessions. Other code calls kbc_session_fail(), which makes
 * the thread end the session; so do the callbacks of kofi_cm.
 *
 * kbc_disks_lock (mutex)		the list of disks
 *  > kbc_disk.lock (spinlock, BH off)
 * kbc_gate.lock (mutex)		held while the block layer's queue is stopped or started
 * kbc_tag.lock (spinlock, BH off)
 *  > kbc_disk.lock
 *  > kbc_left_lock (spinlock, BH off)
 * kbc_sessions_lock (spinlock, BH off)
 * kbc_queue.lock (spinlock, BH off)
 * fi_*() calls and kulp_submit() aren't made under these locks, except fi_mr_post_reg() under
 * kbc_queue.lock. The block layer is called under two of these locks: to quiesce or unquiesce a
 * queue under kbc_gate.lock, and by blk_mq_start_request() under kbc_tag.lock.
 */
#ifndef KOFIBLK_CLI_H
#define KOFIBLK_CLI_H

#include <linux/blk-mq.h>
#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/workqueue.h>
#include <kofi/session.h>
#include <kofi/ulp.h>
#include <kofi/ulp_net.h>
#include "tag.h"
#include "wire.h"

/* Maximum retries after failures that kbc_fault() counts, as nvme_core.max_retries. */
#define KBC_FAULTS_MAX	5
/*
 * Time-outs in seconds of operations that are outstanding at the end of a session: of a device that
 * completes nothing, and of a server that doesn't answer a device which works with others.
 */
#define KBC_END_S	30
#define KBC_PEER_S	600

/*
 * Intervals in ms at which the disk's thread reads polled queues: while it waits for completions of
 * these, and otherwise, because nobody may be polling.
 */
#define KBC_LOOK_MS	4
#define KBC_UNREAD_MS	1000

/* Longest time-out: time_after() needs a positive number of jiffies. */
#define KBC_SECONDS_MAX	(INT_MAX / 2000)

struct dentry;
struct kbc_disk;
struct task_struct;

/* Options of a disk: see kofiblk(8). */
struct kbc_options {
	struct sockaddr_storage	addr;
	char			address[KULP_NET_NAME];	/* addr as text */
	char			export[KOFIBLK_NAME_MAX];
	char			client[KOFIBLK_NAME_MAX];
	u8			host[KOFIBLK_HOST];	/* new sessions replace those of it */
	struct kulp_key		*key;		/* or NULL; later under kbc_disk.lock */
	struct kulp_select	select;
	unsigned int		queues;
	unsigned int		depth;
	unsigned int		max_io;
	/* Times in seconds; -1 for never. */
	unsigned int		reconnect_delay;
	int			ctrl_loss_tmo;
	int			fast_io_fail_tmo;
	unsigned int		keep_alive_tmo;
	bool			checksum;
	bool			own_domain;
};

/* State of a disk, with the names of an nvme controller's states. */
enum kbc_state {
	KBC_CONNECTING,		/* there is no session; the thread tries to connect */
	KBC_LIVE,
	KBC_RESETTING,		/* the session is ending */
	KBC_DELETING,		/* the disk is being removed; there may still be a session */
	KBC_STATES,
};

/* Event that a request waits for. */
enum kbc_phase {
	KBC_IDLE,		/* nothing: the request isn't active */
	KBC_REGISTER,
	KBC_REPLY,
	KBC_FETCH,		/* its data is being read from the server */
	KBC_INVALIDATE,
	KBC_STUCK,		/* kbc_tag_release() must close its region: invalidation failed */
	KBC_END,		/* completion of the request's last operations, if any */
	KBC_PHASES,
};

/* A command in wire format, with room for a checksum or immediate data. */
union kbc_msg {
	struct kofiblk_cmd	cmd;
	u8		room[KOFIBLK_CMD_MAX(0)];
};

/* A message: see cli_message.c. */
struct kbc_message {
	struct kulp_op		op;
	void			*owner;		/* while it is sent, if not set aside */
	/* Of one that was set aside */
	struct list_head	list;
	const struct kulp_queue	*q;
	u32			server;		/* hash of the server's address */
	union kbc_msg		msg;
};

/* Maximum pieces of inline data. The provider would copy messages of more pieces. */
#define KBC_INLINE_BVECS	2

/* Private data of a request of the block layer. */
struct kbc_slot {
	struct kbc_queue	*kq;
	struct kbc_tag		*tag;		/* while the request is active */
	unsigned int		attempt;	/* kbc_disk.attempt when the request was sent */
	u8			faults;		/* failures that count against KBC_FAULTS_MAX */
	unsigned long		short_since;	/* when a shortage began, in jiffies, or 0 */
	u32			seed;		/* checksum of the command without data */
	u32			sum;		/* the server's checksum of a read */
	/* Under kbc_tag.lock, except that kbc_send_post() sets posted. */
	enum kbc_phase		phase;
	blk_status_t		status;
	u8			ops;		/* operations that haven't completed */
	bool			aborted;	/* the session ended before the server replied */
	bool			registered;	/* the server can reach the memory */
	bool			posted;		/* no reply is accepted before */
	bool			fetched;	/* the data that the server offered was read */
	bool			inl;		/* the command or the reply contains the data */
	bool			imm;		/* the server may reply by immediate data */
	bool			mismatch;	/* a checksum was wrong */
	bool			shortage;	/* the server lacked a resource */
	bool			unflushed;	/* of a flush, from kbc_epoch_flush() */
	u8			nbvec;		/* pieces of inline data */
	struct bio_vec		bvecs[1 + KBC_INLINE_BVECS];	/* the command and those pieces */
	struct bio		*bio;		/* its data is being fetched */
	struct kbc_message	*send;		/* the command */
	struct kbc_message	*thank;		/* FETCHED */
	struct kulp_op		region;		/* registers or invalidates the memory */
	struct kulp_rma		fetch;
};

static inline struct kbc_slot *kbc_slot(struct request *rq)
{
	return blk_mq_rq_to_pdu(rq);
}

static inline struct request *kbc_rq(const struct kbc_slot *slot)
{
	return blk_mq_rq_from_pdu((void *)slot);
}

/* Return: KOFIBLK_OP_READ and so on, or 0 for a request without a command. */
static inline u8 kbc_opcode(const struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return KOFIBLK_OP_READ;
	case REQ_OP_WRITE:
		return KOFIBLK_OP_WRITE;
	case REQ_OP_FLUSH:
		return KOFIBLK_OP_FLUSH;
	case REQ_OP_DISCARD:
		return KOFIBLK_OP_DISCARD;
	case REQ_OP_WRITE_ZEROES:
		return KOFIBLK_OP_WRITE_ZEROES;
	default:
		return 0;
	}
}

/* Count a failure. Another request may be its cause, but the number of retries must be finite. */
static inline void kbc_fault(struct kbc_slot *slot)
{
	if (READ_ONCE(slot->faults) <= KBC_FAULTS_MAX)
		WRITE_ONCE(slot->faults, slot->faults + 1);
}

/* A tag of a queue. It outlives the block layer's requests. */
struct kbc_tag {
	spinlock_t		lock;	/* protects slot, its state, and gen */
	bool			told;	/* a server that didn't reply has a key of @mr. As @mr */
	struct kbc_slot		*slot;	/* the active request, or NULL */
	u64			gen;	/* how often the tag was used */
	struct fid_mr		*mr;	/* while no request is active, the thread may free it */
};

/* A hardware queue of the block layer, and the session's queue for it. */
struct kbc_queue {
	struct kbc_disk		*disk;
	u16			index;
	struct kulp_queue		*q;		/* several queues may share one */
	u32			credits;	/* receives reserved on q */
	fi_addr_t		peer;		/* the server's endpoint for this queue */
	u64			cmd_nonce;	/* of tags, see tag.h; 0 until the server sent it */
	u64			reply_nonce;
	struct kbc_message	*signal;	/* KEEP_ALIVE or PROVE, or NULL */
	int			user;		/* on q; negative without immediate data */
	u32			salt;		/* added to generations in immediate data */
	struct kbc_tag		*tags;		/* kbc_made.depth */
	struct bio_vec		*bvecs;		/* kbc_made.max_bvecs */
	/* Requests write to what follows, so it has cache lines of its own. */
	atomic_t		busy ____cacheline_aligned_in_smp; /* with keep-alive messages */
	spinlock_t		lock;		/* protects bvecs */
};

/* Keep-alive messages of a disk's thread, on the first queue. */
struct kbc_alive {
	u64			gen;		/* messages sent */
	u64			seen;		/* the latest message that was answered */
	unsigned long		when;		/* time of the latest message, in jiffies */
};

/* Counters. Documentation/ABI/kofiblk describes those in sysfs; all are in debugfs. */
#define KBC_SYSFS_STATS(X)								\
	X(requests), X(bytes), X(errors), X(replays), X(failures), X(timeouts), X(refused), \
	X(stale), X(forged), X(connects), X(attempts), X(losses), X(checksum_errors)
#define KBC_DEBUG_STATS(X)								\
	X(fetches), X(inlined), X(inline_reads), X(immediates), X(registrations), X(keep_alives)
#define KBC_STAT(name) KBC_STAT_##name

enum kbc_stat {
	KBC_SYSFS_STATS(KBC_STAT),
	KBC_DEBUG_STATS(KBC_STAT),
	KBC_STATS,
};

struct kbc_stats {
	unsigned long	n[KBC_STATS];
};

#define kbc_add(d, name, more)	this_cpu_add((d)->stats->n[KBC_STAT(name)], more)
#define kbc_inc(d, name)	kbc_add(d, name, 1)

/* An attempt to begin a session of kofi_cm, or the session: see cli_link.c. */
struct kbc_link {
	struct kcm_config	config;
	struct kcm_session	*cm;		/* or NULL; the thread's */
	const char		*step;		/* that an attempt fails in */
	u8			hello[sizeof(struct kofiblk_hello)] __aligned(8);
	size_t			len;		/* of @hello */
	struct kofiblk_accept_msg accept;
	struct kcm_addrs	addrs;		/* the client's; the server's are of this kind */
	/* Addresses: the client's, until the server has accepted; then the server's */
	u8			room[KOFIBLK_QUEUES_MAX * KULP_ADDR_MAX];
	bool			up;		/* both sides are ready */
	int			err;		/* why the attempt or the session has ended, or 0 */
	/* Under kbc_disk.lock */
	bool			resized;	/* the disk has @bytes now */
	u64			bytes;
	bool			ended;		/* kbc_link_stop() was called */
	bool			closing;	/* kbc_link_stop() calls kcm_gone() */
};

/*
 * State for detection of writes that were lost in a server's crash: those that the server replied
 * to and that no flush has followed. The server's epoch changes whenever it opens its store, as the
 * write verifier of NFS. But an NFS client still has the data and writes it again, while a user of
 * a block device learns of the loss when a flush fails. A disk has many users, such as its
 * partitions and the files on it, and the client doesn't know whose writes were lost. So all
 * flushes fail until an administrator accepts the loss.
 */
struct kbc_epoch {
	u64		epoch;		/* of the server in the latest session; at first 0 */
	/* A write is noted before it is completed, and so before any flush that must cover it. */
	unsigned int	unflushed;	/* some architectures have no xchg() of less than 32 bits */
	bool		lost;		/* writes may be lost, and nobody has accepted that */
};

/* Members that begin and end with a session, in the disk's thread or when the disk is created. */
struct kbc_session {
	u64			id;		/* or 0 */
	struct hlist_node	node;		/* in kbc_sessions */
	struct kofiblk_keys	keys;		/* of tags */
	bool			open;		/* messages may be sent */
	struct kofiblk_limits	limits;		/* of the latest session, as geometry */
	struct kofiblk_disk_msg	geometry;
	bool			flushed;	/* as the server said at the end; under lock */
};

/* Members that the first session sets, and that no other one changes. */
struct kbc_made {
	bool			known;
	struct kofiblk_accept_msg accept;
	u32			addr_format;
	u32			protocol;	/* kulp_fabric_protocol() */
	size_t			addrlen;
	u16			depth;
	u16			max_bvecs;	/* maximum pieces of a request */
};

/* State of the block layer's queue. */
struct kbc_gate {
	struct mutex		lock;		/* protects what follows */
	bool			quiesced;
	bool			up;		/* requests can be sent */
	bool			failing;	/* requests that can't be sent fail */
};

struct kbc_disk {
	/* Never changed */
	struct list_head	list;
	int			index;
	char			name[DISK_NAME_LEN];
	struct kbc_options	options;	/* but for the times and the key */
	struct kbc_stats __percpu *stats;
	struct dentry		*debugfs;

	/* For anybody who ends a session or the disk */
	spinlock_t		lock;		/* state, attempt, failure, deleting, options.key */
	enum kbc_state		state;
	unsigned int		attempt;	/* failures of earlier ones are ignored */
	int			failure;	/* first errno of this attempt, or 0 */
	struct work_struct	update;		/* kbc_disk_update() after the first session */
	bool			deleting;	/* delete_work was queued */
	struct work_struct	delete_work;
	struct completion	created;	/* creation of the disk has ended */
	bool			settled;	/* passed kbc_list_check(); under kbc_disks_lock */

	/* The thread's */
	struct task_struct	*thread;
	wait_queue_head_t	wait;		/* thread sleeps here, also for requests */
	bool			stopping;	/* thread must exit */
	bool			again;		/* connect without delay */
	bool			final;		/* the server proved that it refuses this client */
	unsigned long		since;		/* when the session began or ended, in jiffies */
	struct delayed_work	fast_fail;
	struct kbc_link		link;
	struct kulp_fabric	*fabric;	/* kept between sessions, as are its objects */
	struct kbc_session	session;
	struct kbc_made		made;
	struct kbc_alive	alive;

	/* The requests' */
	struct kbc_epoch	epoch;
	u16			nqueues;
	u16			npolled;	/* after the first one: see cli_poll.c */
	struct kbc_queue	*queues;
	int			requeued;	/* the requeue list may have requests */

	/* The block layer's */
	struct kbc_gate		gate;
	struct blk_mq_tag_set	set;
	struct gendisk		*disk;		/* or NULL */
	bool			added;
};

static inline unsigned long kbc_count(const struct kbc_disk *d, enum kbc_stat stat)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(d->stats, cpu)->n[stat]);
	return sum;
}

#define kbc_err(d, fmt, ...) \
	pr_err("%s: " fmt, (d)->name, ##__VA_ARGS__)
#define kbc_info(d, fmt, ...) \
	pr_info("%s: " fmt, (d)->name, ##__VA_ARGS__)

/* cli_options.c */

int kbc_number(void *field, const char *text, unsigned int base, int least, int most);
int kbc_options_parse(struct kbc_options *opts, char *text);
void kbc_options_free(struct kbc_options *opts);

/* cli_main.c */

extern const struct kulp_role kbc_role;
/* For disks with checksums: computing those of long requests would hold up softirqs. */
extern const struct kulp_role kbc_role_sum;
extern struct workqueue_struct *kbc_wq;

void kbc_disk_delete(struct kbc_disk *d);

/* cli_session.c */

extern const char * const kbc_state_names[KBC_STATES];

bool kbc_set_state(struct kbc_disk *d, enum kbc_state state);
void kbc_session_fail_of(struct kbc_disk *d, unsigned int attempt, int err);
void kbc_session_fail(struct kbc_disk *d, int err);
void kbc_session_init(struct kbc_disk *d);
int kbc_session_start(struct kbc_disk *d);
void kbc_session_stop(struct kbc_disk *d);

/* cli_link.c */

int kbc_link_begin(struct kbc_disk *d, const struct kofiblk_limits *limits);
void kbc_link_end(struct kbc_disk *d);

/* cli_setup.c */

int kbc_connect(struct kbc_disk *d);
void kbc_disconnect(struct kbc_disk *d);
void kbc_setup_free(struct kbc_disk *d);
struct kbc_disk *kbc_session_find(u64 session);

/* cli_disk.c */

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

/* cli_message.c */

struct kbc_message *kbc_message_new(int (*post)(struct kulp_queue *q, struct kulp_op *op),
				    void (*done)(struct kulp_queue *q, struct kulp_op *op,
						 int err, size_t len));
void *kbc_message_done(struct kulp_op *op);
bool kbc_message_leave(struct kbc_message *m, const struct kbc_queue *kq);
bool kbc_left_full(const struct kbc_queue *kq);

/* cli_tags.c */

void kbc_busy_put(struct kbc_queue *kq);
void kbc_each_tag(struct kbc_disk *d, void (*fn)(struct kbc_queue *kq, struct kbc_tag *tag));
void kbc_keep_alive(struct kbc_disk *d);
void kbc_prove(struct kbc_queue *kq);
int kbc_signals_alloc(struct kbc_disk *d);
void kbc_signals_leave(struct kbc_disk *d);
int kbc_tags_alloc(struct kbc_disk *d);
void kbc_tags_free(struct kbc_disk *d);
void kbc_region_free(struct kbc_queue *kq, struct kbc_tag *tag);
void kbc_regions_renew(struct kbc_disk *d, u64 epoch);
int kbc_regions_alloc(struct kbc_disk *d);

/* cli_rules.c */

bool kbc_epoch_begin(struct kbc_epoch *e, u64 epoch);
void kbc_epoch_flushed(struct kbc_epoch *e);
void kbc_epoch_wrote(struct kbc_epoch *e);
bool kbc_epoch_flush(struct kbc_epoch *e);
void kbc_epoch_flush_failed(struct kbc_epoch *e, bool unflushed);
bool kbc_epoch_fails(const struct kbc_epoch *e, bool flush, bool fua);
void kbc_epoch_accept(struct kbc_epoch *e);
const char *kbc_made_differs(const struct kofiblk_accept_msg *made,
			     const struct kofiblk_accept_msg *now);
int kbc_twins(const struct kbc_disk *older, const struct kbc_disk *d);
bool kbc_transient(u16 status);
unsigned int kbc_shortage_wait(unsigned int ms);
void kbc_disk_limit(struct kofiblk_disk_msg *disk, u32 max_io);

/* cli_memory.c */

int kbc_memory_register(struct kbc_slot *slot, struct kulp_op *op);
void kbc_memory_iter(const struct bio *bio, struct iov_iter *iter);
bool kbc_memory_carried(struct kbc_slot *slot);
void kbc_memory_fill(const struct request *rq, const void *data);

/* cli_poll.c */

struct kbc_queue *kbc_hctx_queue(struct kbc_disk *d, unsigned int index);
void kbc_map_queues(struct blk_mq_tag_set *set);
int kbc_poll(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *iob);
enum blk_eh_timer_return kbc_timeout(struct request *rq);
void kbc_poll_all(struct kbc_disk *d);
bool kbc_wait(struct kbc_disk *d, bool (*over)(struct kbc_disk *d), unsigned long time,
	      unsigned int every_ms);

/* cli_request.c */

int kbc_slot_init(struct kbc_slot *slot, struct kbc_queue *kq);
void kbc_slot_exit(struct kbc_slot *slot);
blk_status_t kbc_request_start(struct kbc_queue *kq, struct request *rq);
void kbc_requests_abort(struct kbc_disk *d);
void kbc_received(struct kulp_queue *q, void *buf, size_t len);
void kbc_written(void *user, u32 data);

/* cli_attrs.c */

extern const struct attribute_group *kbc_attr_groups[];
extern struct dentry *kbc_debugfs;

void kbc_debugfs_add(struct kbc_disk *d);

#endif /* KOFIBLK_CLI_H */
