/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofiblk's server.
 *
 * An export has a name and a store, which is a block device or file. A port is a TCP
 * address and a device. Each connection is a session, with a thread that sets it up,
 * watches it, and ends it. To end a session, other code shuts down its connection and
 * waits.
 *
 * A session preallocates a request for each slot. A client can make the server allocate
 * only memory for the data of active requests, which is limited. A request is never
 * abandoned: every operation that it waits for completes. After the session has left
 * KB_SESSION_LIVE, its requests finish without starting I/O at the store or transfers.
 *
 * kb_conf.enabling (mutex) > kb_srv_lock (mutex) >
 * kb_sessions_lock (spinlock, BH off) > kb_squeue.lock (spinlock, BH off) >
 * kb_session.lock (spinlock, BH off).
 * kb_reserve.lock and kb_chunks.lock (spinlocks, BH off) are leaves.
 *
 * A request takes only its queue's lock, and writes only to its queue. It takes the lock of
 * the session when its queue has leased too little of the session's memory.
 */
#ifndef KOFIBLK_SRV_H
#define KOFIBLK_SRV_H

#include <linux/bio.h>
#include <linux/configfs.h>
#include <linux/errseq.h>
#include <linux/mutex.h>
#include <linux/uuid.h>
#include <linux/wait.h>
#include <kofi/ulp.h>
#include <kofi/ulp_auth.h>
#include <kofi/ulp_net.h>
#include "wire.h"

struct kb_session;

extern struct mutex kb_srv_lock;
extern const struct kulp_role kb_srv_role;
extern struct workqueue_struct *kb_done_wq;	/* for work that doesn't wait */
extern struct workqueue_struct *kb_drop_wq;	/* for work that waits for sessions */

/* --- srv_store.c: block devices and files --- */

struct kb_store {
	struct file		*file;
	struct block_device	*bdev;	/* NULL for a file */
	bool			read_only;
	/* One per store, so that a store that hangs doesn't delay the requests of others. */
	struct workqueue_struct	*wq;	/* for work that may wait for the store */
	struct bio_set		bios;
	errseq_t		since;	/* errors of the file's mapping at open */
	int			lost;	/* errno of the first lost write, or 0 */
	struct kb_disk_msg	disk;	/* properties sent to clients */
	u64			epoch;	/* random, new whenever the store is opened */
};

int kb_store_open(struct kb_store *store, const char *path, bool read_only, bool direct, int lost);
int kb_store_close(struct kb_store *store);
u64 kb_store_bytes(const struct kb_store *store);

/* A read or write of a store. */
struct kb_store_io {
	struct kb_store		*store;
	bool			write;
	bool			fua;
	bool			nowait;	/* of kb_store_try(); err -EAGAIN: it would wait */
	u64			offset;
	const struct bio_vec	*bvec;
	unsigned int		nbvec;
	size_t			bytes;
	/* Called once, in any context. */
	void			(*done)(struct kb_store_io *io);
	int			err;
};

bool kb_store_try(struct kb_store_io *io);
void kb_store_rw(struct kb_store_io *io);
int kb_store_flush(struct kb_store *store);
int kb_store_discard(struct kb_store *store, u64 offset, u64 bytes);
int kb_store_zeroes(struct kb_store *store, u64 offset, u64 bytes, bool nounmap, bool fua);

/* --- exports and ports, srv_configfs.c --- */

/* What exports and ports have in common. */
struct kb_conf {
	struct config_group	group;
	struct mutex		enabling;	/* protects all that the attributes show */
	int			(*start)(struct kb_conf *conf);	/* calls kb_conf_set() */
	void			(*stop)(struct kb_conf *conf);	/* stops sessions, doesn't wait */
	bool			open;	/* an export's store is open; sessions may be ending */
	struct work_struct	drop_work;	/* ends a removal, after the sessions */
	/* Under kb_srv_lock */
	bool			enabled;	/* changes only under @enabling, too */
	u32			nsessions;
};

struct kb_client {
	struct config_item	item;
	struct kb_export	*export;
	struct list_head	list;	/* in kb_export.client_list; under kb_srv_lock */
	struct kulp_key		*keys[KULP_SECRETS];	/* NULL for no secret; under kb_srv_lock */
};

struct kb_export {
	struct kb_conf		conf;
	struct config_group	clients;
	char			*path;
	u32			read_only;
	u32			direct;		/* O_DIRECT for a file */
	u32			allow_any;
	uuid_t			uuid;
	int			lost;	/* kb_store.lost when the store was last closed */
	struct list_head	client_list;	/* under kb_srv_lock */
	struct kb_store		store;	/* valid while conf.open */
};

struct kb_port {
	struct kb_conf		conf;
	struct config_group	exports;	/* links to exports */
	char			*addr;
	u32			port;
	struct kulp_select	select;
	u32			own_domains;	/* use a domain for each secret */
	u32			max_sessions;
	u32			max_client_sessions;	/* sessions of one client name and export */
	u32			max_memory;	/* bytes of data per session */
	u32			max_keep_alive;	/* ms */
	struct kulp_listener	listener;	/* started and stopped under conf.enabling */
	struct list_head	links;		/* under kb_srv_lock */
};

extern wait_queue_head_t kb_srv_wait;	/* woken when sessions or requests end */

char *kb_line(const char *page, size_t count);
void kb_conf_set(struct kb_conf *conf, bool enabled);
int kb_port_export(struct kb_port *port, const char *name, struct kb_export **export);
int kb_configfs_init(void);
void kb_configfs_exit(void);

/* --- srv_client.c --- */

extern const struct config_item_type kb_clients_type;

int kb_export_keys(struct kb_export *export, const char *client,
		   struct kulp_key *keys[KULP_SECRETS]);

/* --- srv_session.c --- */

enum kb_session_state {
	KB_SESSION_NEW,
	KB_SESSION_LIVE,
	KB_SESSION_ENDING,	/* no operation starts any more */
};

enum kb_req_state {
	KB_REQ_FREE,
	KB_REQ_BUSY,
	KB_REQ_READY,		/* the client is fetching the data */
};

/* A reply as it is sent. The size makes sure that it doesn't cross pages. */
union kb_reply_room {
	struct kb_reply		reply;
	u8			room[64];
};

struct kb_reply_op {
	struct kulp_rma		rma;		/* rma.op also sends messages */
	struct list_head	list;
	struct kb_squeue	*sq;
	union kb_reply_room	*wire;
	struct page		*page;		/* inline data */
	struct bio_vec		bvecs[2];	/* reply and inline data; or data for RDMA write */
	u32			bytes;		/* length of inline data, or 0 */
	u32			len;		/* length of the reply without data */
	u32			charged;	/* charged bytes of data for RDMA write, or 0 */
	bool			out;		/* outstanding; under kb_squeue.lock */
	unsigned long		since;		/* when it was posted, in jiffies */
};

struct kb_req {
	struct kb_squeue	*sq;
	u8			state;		/* enum kb_req_state */
	bool			used;		/* cmd has the slot's latest command */
	bool			reserved;	/* uses the reserve's pages */
	bool			charged;	/* counted in kb_load.memory of the queue */
	unsigned long		since;		/* when it became READY, in jiffies */
	int			err;
	void			(*run)(struct kb_req *req);
	struct work_struct	work;
	struct list_head	list;
	struct kb_cmd_msg	cmd;
	u32			sum;		/* checksum of the data that was read */
	struct page		*inline_page;	/* inline data of command or reply */
	struct bio_vec		inline_bvec;
	struct bio_vec		*bvec;		/* the data */
	unsigned int		nbvec;
	struct fid_mr		*mr;		/* region for fetching, without RDMA write */
	union {
		struct kulp_rma		rma;	/* rma.op also registers and invalidates */
		struct kb_store_io	sio;
	};
};

/* Order of the largest chunk of data: 128 KiB with 4 KiB pages. Devices prefer few pieces. */
#define KB_CHUNK_ORDER	5

/* Free pages of a queue, kept for its next requests. They hold only data of its export. */
struct kb_chunks {
	spinlock_t		lock;		/* protects what follows */
	struct list_head	free[KB_CHUNK_ORDER + 1];	/* pages, by order */
	u32			bytes;		/* bytes in free */
	bool			taken;		/* pages were taken since the last kb_mem_trim() */
};

/* Of u64 only, and kb_load of u32 only: see kb_session_load(). */
struct kb_session_stats {
	u64	reads;
	u64	writes;
	u64	others;
	u64	read_bytes;
	u64	write_bytes;
	u64	errors;
	u64	mem_waits;
	u64	checksums;	/* wrong checksums */
};

/* Numbers of active requests and operations. */
struct kb_load {
	u32	io;		/* requests at the store */
	u32	in_flight;	/* requests and replies */
	u32	posted;		/* operations on the fabric */
	u32	memory;		/* bytes of data */
};

/* A session's part of a queue. Its hot members share no cache line with another queue. */
struct kb_squeue {
	struct kb_session	*s;
	struct kulp_queue		*q;
	fi_addr_t		peer;
	bool			has_peer;
	u32			credits;
	struct kb_req		*reqs;		/* depth */
	struct kb_reply_op	*replies;	/* depth */
	union kb_reply_room	*wires;		/* buffers of replies */
	spinlock_t		lock ____cacheline_aligned_in_smp; /* protects what follows */
	struct kb_load		load;
	u32			leased;		/* the queue's part of kb_session.leased */
	struct list_head	free_replies;
	struct list_head	want_reply;	/* kb_req that wait for a free reply */
	struct kb_session_stats	stats;
	/* Not under the lock */
	unsigned long		heard;		/* time of the latest command, in jiffies */
	struct kb_chunks	chunks;
};

struct kb_session {
	u64			id;
	struct kb_port		*port;
	struct kb_export	*export;
	struct kulp_conn	conn;
	struct hlist_node	hash;		/* under kb_sessions_lock, or RCU */
	struct rcu_head		rcu;
	struct work_struct	stop_work;
	int			resize;		/* RESIZE must be sent to the client */
	struct kb_hello_msg	hello;		/* without addresses */
	struct kulp_key		*key;		/* key that the client proved to know, or NULL */
	u8			proof[KULP_MAC];	/* MAC of AUTH */
	u64			resizes;	/* number of RESIZE messages sent */
	struct kb_limits	limits;
	struct kulp_fabric	*fabric;
	u16			nqueues;
	struct kb_squeue	*queues;

	/* Under kb_sessions_lock, as is fabric when it changes */
	struct list_head	list;
	bool			proven;		/* the client has proved its identity */
	bool			superseded;	/* a newer session replaces this one */
	u64			turn;		/* serial number of the proof */
	u32			promised;	/* receives promised on each queue */

	enum kb_session_state	state;		/* see kb_session_ending() */

	spinlock_t		lock ____cacheline_aligned_in_smp; /* protects what follows */
	bool			stop;		/* the thread must end the session */
	bool			orderly;	/* the thread must flush the store first */
	u32			leased;		/* bytes leased to queues */
	struct list_head	mem_wait;	/* kb_req that wait for a lease */
	bool			pinging;	/* the reply to a keep-alive is outstanding */
	struct kb_reply_op	ping;
};

/* Return: the workqueue for work that may wait for a request's store. */
static inline struct workqueue_struct *kb_store_wq(const struct kb_req *req)
{
	return req->sq->s->export->store.wq;
}

void kb_session_stop(struct kb_session *s, bool orderly);
void kb_sessions_stop(const struct kb_port *port, const struct kb_export *export,
		      const struct kulp_fabric *f);
void kb_sessions_exit(void);
void kb_port_init(struct kb_port *port);
int kb_port_start(struct kb_conf *conf);
void kb_port_stop(struct kb_conf *conf);
void kb_sessions_resize(struct kb_export *export);
void kb_session_violated(struct kb_session *s, const char *how);
int kb_sessions_show(struct seq_file *m, void *unused);
void kb_session_on(struct kb_session *s, struct kulp_fabric *f);
void kb_session_live(struct kb_session *s);

/* --- srv_admit.c --- */

extern spinlock_t kb_sessions_lock;	/* protects kb_sessions, BH off */
extern struct list_head kb_sessions;

const char *kb_session_admit(struct kb_session *s);
const char *kb_session_prove(struct kb_session *s);
bool kb_session_alone(struct kb_session *s);
u32 kb_session_credits(struct kb_session *s, u32 want, u32 room);

/* --- srv_setup.c --- */

void kb_reject(struct kb_session *s, int err, const char *why);
int kb_set_up(struct kb_session *s);

/* --- srv_queue.c --- */

int kb_squeue_init(struct kb_squeue *sq);
void kb_squeue_exit(struct kb_squeue *sq);
void kb_session_ending(struct kb_session *s);
void kb_session_load(struct kb_session *s, struct kb_load *load, struct kb_session_stats *stats);
void kb_session_abort(struct kb_session *s);
bool kb_session_untaken(struct kb_session *s, unsigned long age);

/* --- srv_io.c --- */

void kb_reply_prepare(struct kb_reply_op *reply);
void kb_req_work(struct work_struct *work);
void kb_ping(struct kb_squeue *sq, const struct kb_cmd_msg *msg);
void kb_req_next(struct kb_req *req, struct workqueue_struct *wq, void (*run)(struct kb_req *req));
void kb_req_begin(struct kb_req *req);
void kb_run_begin(struct kb_req *req);
void kb_req_inval(struct kb_req *req);
void kb_req_end(struct kb_req *req, int err);

/* --- srv_cmd.c --- */

struct kb_req *kb_session_command(struct kb_session *s, struct kulp_queue *q,
				  const struct kb_cmd_msg *msg);

/* --- srv_sum.c --- */

int kb_sum_check(struct kb_req *req, bool write);
void kb_sum_read(struct kb_req *req);
void kb_sum_reply(const struct kb_req *req, struct kb_reply_msg *msg);

/* --- srv_mem.c --- */

void kb_chunks_init(struct kb_squeue *sq);
void kb_chunks_free(struct kb_squeue *sq);
void kb_mem_trim(struct kb_session *s);
int kb_req_pages(struct kb_req *req);
void kb_req_free_pages(struct kb_req *req);
bool kb_reply_may_have(const struct kb_req *req);
void kb_reply_take_pages(struct kb_reply_op *reply, struct kb_req *req);
void kb_reply_free_pages(struct kb_reply_op *reply);
void kb_mem_waiters(struct kb_session *s, struct list_head *list);
int kb_reserve_init(void);
void kb_reserve_exit(void);

#endif /* KOFIBLK_SRV_H */
