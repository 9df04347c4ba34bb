/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofiblk's server.
 *
 * An export has a name and a store, which is a block device or file. A port is a TCP address and a
 * device. A session of kofi_cm gets a thread when its client has proved its identity. The thread
 * sets the session up, watches it, and ends it. To end a session, other code changes its state and
 * waits.
 *
 * A session preallocates a request for each slot. A client can make the server allocate only memory
 * for the data of active requests, which is limited. A request is never abandoned: every operation
 * that it waits for completes. From KBS_SESSION_CLOSING on, a session's requests finish without
 * starting I/O at the store or transfers.
 *
 * kbs_conf.enabling (mutex) > kbs_lock (mutex) > kbs_sessions_lock (spinlock, BH off) >
 * kbs_squeue.lock (spinlock, BH off) > kbs_session.lock (spinlock, BH off). kbs_reserve.lock and
 * kbs_chunks.lock (spinlocks, BH off) are leaves. kulp_expedite() is called under kbs_squeue.lock,
 * so a provider's locks nest inside it.
 *
 * A request takes only its queue's lock, and writes only to its queue. It takes the lock of the
 * session when its queue has leased too little of the session's memory.
 */
#ifndef KOFIBLK_SRV_H
#define KOFIBLK_SRV_H

#include <linux/bio.h>
#include <linux/configfs.h>
#include <linux/errseq.h>
#include <linux/mutex.h>
#include <linux/uuid.h>
#include <linux/wait.h>
#include <kofi/session.h>
#include <kofi/ulp.h>
#include <kofi/ulp_net.h>
#include "tag.h"
#include "wire.h"

struct kbs_export;
struct kbs_session;

extern struct mutex kbs_lock;
extern const struct kulp_role kbs_role;
extern struct workqueue_struct *kbs_done_wq;	/* for work that doesn't wait */
extern struct workqueue_struct *kbs_drop_wq;	/* for work that waits for sessions or memory */

/* --- srv_store.c: block devices and files --- */

struct kbs_store {
	struct file		*file;
	struct block_device	*bdev;	/* NULL for a file */
	bool			read_only;
	bool			stable;	/* a write that was replied to survives a crash */
	/* One per store, so that a store that hangs doesn't delay the requests of others. */
	struct workqueue_struct	*wq;	/* for work that may wait for the store */
	errseq_t		since;	/* errors of the file's mapping at open */
	int			lost;	/* errno of the first lost write, or 0 */
	bool			failed;	/* a flush of the block device has failed */
	struct kofiblk_disk_msg	disk;	/* properties sent to clients */
	u64			epoch;	/* not 0 but after kbs_store_close() */
};

int kbs_store_open(struct kbs_store *store, const struct kbs_export *export);
int kbs_store_close(struct kbs_store *store);
bool kbs_store_whole(const struct kbs_store *store);
u64 kbs_store_bytes(const struct kbs_store *store);

/* A read or write of a store. */
struct kbs_store_io {
	struct kbs_store	*store;
	bool			write;
	bool			fua;
	bool			nowait;	/* of kbs_store_try(); err -EAGAIN: it would wait */
	u64			offset;
	const struct bio_vec	*bvec;
	unsigned int		nbvec;
	size_t			bytes;
	struct bio		*bio;	/* the caller's, for a block device */
	/* Called once, in any context. */
	void			(*done)(struct kbs_store_io *io);
	int			err;
};

bool kbs_store_try(struct kbs_store_io *io);
void kbs_store_rw(struct kbs_store_io *io);
int kbs_store_flush(struct kbs_store *store);
int kbs_store_discard(struct kbs_store *store, u64 offset, u64 bytes);
int kbs_store_zeroes(struct kbs_store *store, u64 offset, u64 bytes, bool nounmap, bool fua);

/* --- exports and ports, srv_configfs.c --- */

/* Part that exports and ports have in common. */
struct kbs_conf {
	struct config_group	group;
	struct mutex		enabling;	/* protects all that the attributes show */
	int			(*start)(struct kbs_conf *conf);	/* calls kbs_conf_set() */
	void			(*stop)(struct kbs_conf *conf);	/* stops sessions, doesn't wait */
	void			(*close)(struct kbs_conf *conf);	/* after the last session */
	bool			open;	/* store or listener is open; sessions may be ending */
	struct work_struct	drop_work;	/* ends a removal, after the sessions */
	/* Under kbs_lock */
	bool			enabled;	/* changes only under @enabling, too */
	u32			nsessions;
};

struct kbs_client {
	struct config_item	item;
	struct kbs_export	*export;
	struct list_head	list;	/* in kbs_export.client_list; under kbs_lock */
	struct kulp_key		*keys[KULP_SECRETS];	/* NULL for no secret; under kbs_lock */
};

struct kbs_export {
	struct kbs_conf		conf;
	struct config_group	clients;
	char			*path;
	u32			read_only;
	u32			direct;		/* O_DIRECT for a file */
	u32			stable;		/* write through all caches */
	u32			allow_any;
	uuid_t			uuid;
	int			lost;	/* kbs_store.lost when the store was last closed */
	u64			epoch;	/* for the next kbs_store_open(), or 0 for a new one */
	struct list_head	client_list;	/* under kbs_lock */
	struct kbs_store	store;	/* valid while conf.open */
};

struct kbs_port {
	struct kbs_conf		conf;
	struct config_group	exports;	/* links to exports */
	char			*addr;
	u32			port;
	struct kulp_select	select;
	u32			own_domains;	/* use a domain for each secret */
	u32			max_sessions;
	u32			max_client_sessions;	/* sessions of one client name and export */
	u32			max_memory;	/* bytes of data per session */
	u32			max_keep_alive;	/* ms */
	struct kcm_config	config;		/* of @listener */
	struct kcm_listener	*listener;	/* valid while conf.open */
	struct list_head	links;		/* under kbs_lock */
};

extern wait_queue_head_t kbs_wait;	/* woken when sessions or requests end */

char *kbs_line(const char *page, size_t count);
void kbs_conf_set(struct kbs_conf *conf, bool enabled);
struct kbs_export *kbs_port_export(struct kbs_port *port, const char *name);
int kbs_configfs_init(void);
void kbs_configfs_exit(void);

/* --- srv_client.c --- */

extern const struct config_item_type kbs_clients_type;

int kbs_export_keys(struct kbs_export *export, const char *client,
		    struct kulp_key *keys[KULP_SECRETS]);
bool kbs_export_allows(struct kbs_export *export, const char *client, const struct kulp_key *key);

/* --- srv_session.c --- */

/* A session only goes down this list. */
enum kbs_session_state {
	KBS_SESSION_NEW,	/* is being set up */
	KBS_SESSION_REFUSED,	/* must end before it was live */
	KBS_SESSION_LIVE,	/* commands find it by its ID */
	KBS_SESSION_PARTING,	/* as LIVE, but must end, and flush the store first */
	KBS_SESSION_CLOSING,	/* PARTING, and only keep-alive messages are answered any more */
	KBS_SESSION_STOPPED,	/* must end without that; no operation starts any more */
	KBS_SESSION_ENDING,	/* its thread ends it; no operation starts any more */
};

enum kbs_req_state {
	KBS_REQ_FREE,
	KBS_REQ_BUSY,
	KBS_REQ_READY,		/* the client is fetching the data */
};

/* A reply as it is sent. The size makes sure that it doesn't cross pages. */
union kbs_reply_room {
	struct kofiblk_reply	reply;
	u8			room[64];
};

struct kbs_reply_op {
	struct kulp_rma		rma;		/* rma.op also sends messages */
	struct list_head	list;
	struct kbs_squeue	*sq;
	union kbs_reply_room	*wire;
	struct page		*page;		/* inline data */
	struct bio_vec		bvecs[2];	/* reply and inline data; or data for RDMA write */
	u32			bytes;		/* length of inline data, or 0 */
	u32			len;		/* length of the reply without data */
	u32			charged;	/* charged bytes of data for RDMA write, or 0 */
	bool			out;		/* outstanding; under kbs_squeue.lock */
	unsigned long		since;		/* when it was posted, in jiffies */
};

struct kbs_req {
	struct kbs_squeue	*sq;
	u8			state;		/* enum kbs_req_state */
	bool			used;		/* cmd has the slot's latest command */
	bool			reserved;	/* uses the reserve's pages */
	bool			charged;	/* counted in kbs_load.memory of the queue */
	unsigned long		since;		/* when it became READY, in jiffies */
	int			err;
	void			(*run)(struct kbs_req *req);
	struct work_struct	work;
	struct list_head	list;
	struct kofiblk_cmd_msg	cmd;
	u32			sum;		/* checksum of the data that was read */
	struct page		*inline_page;	/* inline data of command or reply */
	struct bio_vec		*bvec;		/* the data */
	struct bio_vec		one;		/* if it is in one piece */
	unsigned int		nbvec;
	struct fid_mr		*mr;		/* region for fetching, without RDMA write */
	union {
		struct kulp_rma		rma;	/* rma.op also registers and invalidates */
		struct {
			struct kbs_store_io	sio;
			struct bio		bio;	/* of @sio */
		};
	};
};

/* Order of the largest chunk of data: 128 KiB with 4 KiB pages. Devices prefer few pieces. */
#define KBS_CHUNK_ORDER	5

/* Free pages of a queue, kept for its next requests. They hold only data of its export. */
struct kbs_chunks {
	spinlock_t		lock;		/* protects what follows */
	struct list_head	free[KBS_CHUNK_ORDER + 1];	/* pages, by order */
	u32			bytes;		/* bytes in free */
	bool			taken;		/* pages were taken since the last kbs_mem_trim() */
};

/* Of u64 only, and kbs_load of u32 only: see kbs_session_load(). */
struct kbs_session_stats {
	u64	reads;
	u64	writes;
	u64	others;
	u64	read_bytes;
	u64	write_bytes;
	u64	errors;
	u64	mem_waits;
	u64	checksums;	/* wrong checksums */
	u64	stale;		/* commands that were sent again */
};

/* Numbers of active requests and operations. */
struct kbs_load {
	u32	io;		/* requests at the store */
	u32	in_flight;	/* requests and replies */
	u32	posted;		/* operations on the fabric */
	u32	memory;		/* bytes of data */
};

/* A session's part of a queue. Its hot members share no cache line with another queue. */
struct kbs_squeue {
	struct kbs_session	*s;
	struct kulp_queue		*q;
	fi_addr_t		peer;
	bool			has_peer;
	u64			cmd_nonce;	/* of tags: see tag.h */
	u64			reply_nonce;	/* the client's, from PROVE; changes under lock */
	u32			credits;
	struct kbs_req		*reqs;		/* depth */
	struct kbs_reply_op	*replies;	/* depth */
	union kbs_reply_room	*wires;		/* buffers of replies and of @ping */
	struct kbs_reply_op	ping;		/* replies to KEEP_ALIVE and PROVE */
	/* Protects what follows. Outside a provider's locks: kulp_expedite() */
	spinlock_t		lock ____cacheline_aligned_in_smp;
	struct kbs_load		load;
	u32			leased;		/* the queue's part of kbs_session.leased */
	struct list_head	free_replies;
	struct list_head	want_reply;	/* kbs_req that wait for a free reply */
	bool			pinging;	/* @ping is outstanding */
	bool			proven;		/* PROVE was received */
	u64			alive;		/* generation of the latest KEEP_ALIVE */
	struct kbs_session_stats	stats;
	/* Not under the lock */
	unsigned long		heard;		/* time of the latest new command, in jiffies */
	struct kbs_chunks	chunks;
};

struct kbs_session {
	u64			id;
	struct kbs_port		*port;
	struct kbs_export	*export;
	struct work_struct	start;		/* starts the thread */
	struct kcm_session	*cm;		/* until kcm_gone() or kcm_reject(); the thread's */
	int			end;		/* errno of kcm_ops.stop, or 0 */
	bool			over;		/* kcm_ops.stop doesn't need the session any more */
	bool			violated;	/* ended by a violation of the protocol */
	bool			exposed;	/* the client may reach pages, see kbs_posted() */
	struct hlist_node	hash;		/* under kbs_sessions_lock, or RCU */
	struct rcu_head		rcu;
	int			resize;		/* RESIZE must be sent to the client */
	char			client[KOFIBLK_NAME_MAX];
	char			name[KOFIBLK_NAME_MAX];	/* of the export */
	char			from[KULP_NET_NAME];	/* the client's IP address and port */
	u8			host[KOFIBLK_HOST];
	struct kofiblk_hello_msg	hello;
	struct kcm_addrs	addrs;		/* of the client's endpoints */
	u8			room[KOFIBLK_QUEUES_MAX * KULP_ADDR_MAX];	/* for @addrs */
	struct kulp_key		*key;		/* key that the client proved to know, or NULL */
	struct kofiblk_keys	keys;		/* of tags */
	struct kofiblk_limits	limits;
	struct kulp_fabric	*fabric;
	u16			nqueues;
	struct kbs_squeue	*queues;

	/* Under kbs_sessions_lock, as is fabric when it changes */
	struct list_head	list;
	u64			turn;		/* serial number */
	bool			counts;		/* for limits: the latest of its client's host */
	u32			promised;	/* receives promised on each queue */

	enum kbs_session_state	state;		/* changes under lock; read by all requests */

	spinlock_t		lock ____cacheline_aligned_in_smp; /* protects what follows */
	u32			leased;		/* bytes leased to queues */
	struct list_head	mem_wait;	/* kbs_req that wait for a lease */
};

/* Return: the workqueue for work that may wait for a request's store. */
static inline struct workqueue_struct *kbs_store_wq(const struct kbs_req *req)
{
	return req->sq->s->export->store.wq;
}

/* Return: whether a session's thread must end it. */
static inline bool kbs_session_stopped(const struct kbs_session *s)
{
	enum kbs_session_state state = READ_ONCE(s->state);

	return state == KBS_SESSION_REFUSED || state > KBS_SESSION_LIVE;
}

/* Return: whether a session that was live may start operations. See kbs_session_quiet(). */
static inline bool kbs_session_works(const struct kbs_session *s)
{
	return READ_ONCE(s->state) <= KBS_SESSION_PARTING;
}

void kbs_session_stop(struct kbs_session *s, enum kbs_session_state how);
void kbs_sessions_stop(const struct kbs_port *port, const struct kbs_export *export,
		       const struct kulp_fabric *f);
void kbs_sessions_exit(void);
int kbs_session_new(struct kbs_port *port, struct kcm_session *cm, const struct kcm_peer *peer);
void kbs_session_over(struct kbs_session *s, int err);
void kbs_sessions_resize(struct kbs_export *export);
void kbs_session_violated(struct kbs_session *s, const char *how);
int kbs_sessions_show(struct seq_file *m, void *unused);
void kbs_session_on(struct kbs_session *s, struct kulp_fabric *f);
bool kbs_session_live(struct kbs_session *s);

/* --- srv_admit.c --- */

extern spinlock_t kbs_sessions_lock;	/* protects kbs_sessions, BH off */
extern struct list_head kbs_sessions;

bool kbs_session_go(struct kbs_session *s, enum kbs_session_state state);
const char *kbs_session_admit(struct kbs_session *s, int *err);
void kbs_session_remove(struct kbs_session *s);
bool kbs_session_alone(struct kbs_session *s);
u32 kbs_session_credits(struct kbs_session *s, u32 want, u32 room);
void kbs_session_credits_give(struct kbs_session *s);

/* --- srv_port.c --- */

int kbs_port_start(struct kbs_conf *conf);
void kbs_port_stop(struct kbs_conf *conf);
void kbs_port_close(struct kbs_conf *conf);

/* --- srv_setup.c --- */

int kbs_refuse(struct kbs_session *s, int err, const char *why);
int kbs_set_up(struct kbs_session *s);

/* --- srv_queue.c --- */

int kbs_squeue_init(struct kbs_squeue *sq);
void kbs_squeue_exit(struct kbs_squeue *sq);
void kbs_session_quiet(struct kbs_session *s, enum kbs_session_state state);
void kbs_session_load(struct kbs_session *s, struct kbs_load *load,
		      struct kbs_session_stats *stats);
void kbs_session_abort(struct kbs_session *s);
bool kbs_session_untaken(struct kbs_session *s, unsigned long age);

/* --- srv_io.c --- */

void kbs_reply_prepare(struct kbs_reply_op *reply);
void kbs_req_work(struct work_struct *work);
void kbs_ping(struct kbs_squeue *sq, const struct kofiblk_cmd_msg *msg);
void kbs_req_next(struct kbs_req *req, struct workqueue_struct *wq,
		  void (*run)(struct kbs_req *req));
void kbs_req_begin(struct kbs_req *req);
void kbs_run_begin(struct kbs_req *req);
void kbs_req_inval(struct kbs_req *req);
void kbs_req_end(struct kbs_req *req, int err);

/* --- srv_cmd.c --- */

bool kbs_session_sent(struct kbs_session *s, const struct kulp_queue *q, void *buf,
		      const struct kofiblk_cmd_msg *msg);
struct kbs_req *kbs_session_command(struct kbs_session *s, const struct kofiblk_cmd_msg *msg);

/* --- srv_sum.c --- */

int kbs_sum_check(struct kbs_req *req, bool write);
void kbs_sum_read(struct kbs_req *req);
void kbs_sum_reply(const struct kbs_req *req, struct kofiblk_reply_msg *msg);

/* --- srv_mem.c --- */

void kbs_chunks_init(struct kbs_squeue *sq);
void kbs_chunks_free(struct kbs_squeue *sq);
void kbs_mem_trim(struct kbs_session *s);
int kbs_req_pages(struct kbs_req *req, bool wait);
void kbs_req_free_pages(struct kbs_req *req);
bool kbs_reply_may_have(const struct kbs_req *req);
void kbs_reply_take_pages(struct kbs_reply_op *reply, struct kbs_req *req);
void kbs_reply_free_pages(struct kbs_reply_op *reply);
void kbs_mem_waiters(struct kbs_session *s, struct list_head *list);
int kbs_reserve_init(void);
void kbs_reserve_exit(void);

#endif /* KOFIBLK_SRV_H */
