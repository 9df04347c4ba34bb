/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofiblk's server.
 *
 * An export is a disk's name and a store, the block device or file behind it; a
 * port is a TCP address and a device. A connection is a session, with a thread that
 * sets it up, watches it, and ends it: whoever wants a session to end shuts its
 * connection down and waits.
 *
 * A session has a request for each slot, so a client can't have it allocate but what
 * memory a request's data takes while it runs, which is bounded. A request is never
 * given up: what it waits for ends, as all on a fabric does. When the session isn't
 * live any more it goes on to its end, touching neither store nor client.
 *
 * kb_export.enabling, kb_port.enabling (mutexes) > kb_srv_lock (mutex) >
 * kb_sessions_lock (spinlock, BH off) > kb_squeue.lock (spinlock, BH off) >
 * kb_session.lock (spinlock, BH off).
 * Under kb_reserve.lock and kb_chunks.lock (likewise) none is taken.
 *
 * A request takes the lock of its queue, and writes what is that queue's. The session's
 * it takes when its queue has too little of the memory that is the session's.
 */
#ifndef KOFIBLK_SRV_H
#define KOFIBLK_SRV_H

#include <linux/bio.h>
#include <linux/configfs.h>
#include <linux/errseq.h>
#include <linux/mutex.h>
#include <linux/uuid.h>
#include <linux/wait.h>
#include "auth.h"
#include "fabric.h"
#include "net.h"
#include "wire.h"

struct kb_session;

extern struct mutex kb_srv_lock;
extern const struct kb_role kb_srv_role;
extern struct workqueue_struct *kb_done_wq;	/* for what doesn't wait */
extern struct workqueue_struct *kb_drop_wq;	/* for what waits for sessions */

/* --- srv_store.c: block devices and files --- */

struct kb_store {
	struct file		*file;
	struct block_device	*bdev;	/* or NULL: a file */
	bool			read_only;
	/* Of its own, as a store that is stuck is to hold up none of another. */
	struct workqueue_struct	*wq;	/* for all that may wait for it */
	struct bio_set		bios;
	errseq_t		since;	/* of the file's mapping, when it was opened */
	int			lost;	/* errno of the first write that was, or 0 */
	struct kb_disk_msg	disk;	/* as clients are told */
	u64			epoch;	/* random, new whenever it is opened */
};

int kb_store_open(struct kb_store *store, const char *path, bool read_only, bool direct,
		  int lost);
int kb_store_close(struct kb_store *store);
u64 kb_store_bytes(const struct kb_store *store);

/* What a store is to do; all of it may sleep, but for kb_store_try(). */
struct kb_store_io {
	struct kb_store		*store;
	bool			write;
	bool			fua;
	bool			nowait;	/* by kb_store_try(): -EAGAIN is no error */
	u64			offset;
	const struct bio_vec	*bvec;
	unsigned int		nbvec;
	size_t			bytes;
	/* Called once, in any context. */
	void			(*done)(struct kb_store_io *io);
	int			err;
	atomic_t		pending;
};

bool kb_store_try(struct kb_store_io *io);
void kb_store_rw(struct kb_store_io *io);
int kb_store_flush(struct kb_store *store);
int kb_store_discard(struct kb_store *store, u64 offset, u64 bytes);
int kb_store_zeroes(struct kb_store *store, u64 offset, u64 bytes,
		    bool nounmap, bool fua);

/* --- exports and ports, srv_configfs.c --- */

struct kb_client {
	struct config_item	item;
	struct kb_export	*export;
	struct list_head	list;	/* under kb_srv_lock, as are keys */
	struct kb_key		*keys[KB_SECRETS];	/* or NULL: no secret */
};

struct kb_export {
	struct config_group	group;
	struct config_group	clients;
	char			*path;
	bool			read_only;
	bool			direct;		/* a file, past the page cache */
	bool			allow_any;
	uuid_t			uuid;
	struct mutex		enabling;	/* what is said above, below, and enabled */
	bool			open;	/* so is the store; sessions may be ending */
	int			lost;	/* errno of the store before that, or 0 */
	struct work_struct	drop_work;	/* once it was removed */
	/* Under kb_srv_lock */
	struct list_head	client_list;
	bool			enabled;
	u32			nsessions;
	struct kb_store		store;	/* of one that is open */
};

struct kb_port {
	struct config_group	group;
	struct config_group	exports;	/* links */
	char			addr[KB_NET_NAME];
	u16			port;
	struct kb_select	select;
	bool			own_domains;	/* one for each secret */
	u32			max_sessions;
	u32			max_client_sessions;	/* of one name and export */
	u32			max_memory;	/* bytes of a session's data */
	u32			max_keep_alive;	/* ms */
	struct mutex		enabling;	/* what is said above and below, and enabled */
	struct kb_net		net;
	struct task_struct	*thread;
	struct work_struct	drop_work;	/* once it was removed */
	/* Under kb_srv_lock */
	struct list_head	links;
	bool			enabled;
	u32			nsessions;
};

extern wait_queue_head_t kb_srv_wait;	/* for sessions to end */

static inline struct kb_export *to_kb_export(struct config_item *item)
{
	return container_of(to_config_group(item), struct kb_export, group);
}

extern const struct config_item_type kb_export_type;

char *kb_line(const char *page, size_t count);
int kb_configfs_init(void);
void kb_configfs_exit(void);

/* --- srv_configfs_port.c --- */

extern const struct config_item_type kb_ports_type;

int kb_port_export(struct kb_port *port, const char *name,
		   struct kb_export **export);

/* --- srv_client.c --- */

extern const struct config_item_type kb_clients_type;

int kb_export_keys(struct kb_export *export, const char *client,
		   struct kb_key *keys[KB_SECRETS]);

/* --- srv_port.c --- */

int kb_port_enable(struct kb_port *port);
void kb_port_stop(struct kb_port *port);
int kb_port_disable(struct kb_port *port);

/* --- srv_session.c --- */

enum kb_session_state {
	KB_SESSION_NEW,
	KB_SESSION_LIVE,
	KB_SESSION_ENDING,	/* nothing begins any more */
};

enum kb_req_state {
	KB_REQ_FREE,
	KB_REQ_BUSY,
	KB_REQ_READY,		/* the client fetches what was read */
};

/* A reply as it is sent; it doesn't cross pages. */
union kb_reply_room {
	struct kb_reply		reply;
	u8			room[64];
};

struct kb_reply_op {
	struct kb_rma		rma;		/* its op is also that of a message */
	struct list_head	list;
	struct kb_squeue	*sq;
	union kb_reply_room	*wire;
	struct page		*page;		/* of data that goes with it */
	struct bio_vec		bvecs[2];	/* the reply and that; or the data to be written */
	u32			bytes;		/* of data that goes with it, or 0 */
	u32			len;		/* of the reply without data */
	u32			charged;	/* bytes of data to be written, or 0 */
	bool			out;		/* since when, under the lock */
	unsigned long		since;		/* jiffies */
};

struct kb_req {
	struct kb_squeue	*sq;
	u16			slot;
	u8			state;		/* enum kb_req_state */
	bool			used;		/* some id was seen */
	bool			reserved;	/* has the reserve */
	bool			charged;	/* counted in kb_session.memory */
	unsigned long		since;		/* READY, in jiffies */
	int			err;
	void			(*run)(struct kb_req *req);
	struct work_struct	work;
	struct list_head	list;
	struct kb_cmd_msg	cmd;
	u32			sum;		/* of what was read */
	struct page		*inline_page;	/* data within command or reply */
	struct bio_vec		inline_bvec;
	struct bio_vec		*bvec;		/* of data */
	unsigned int		nbvec;
	struct fid_mr		*mr;		/* without RDMA write */
	struct kb_op		mr_op;
	union {
		struct kb_rma		rma;
		struct kb_store_io	sio;
	};
};

/* Data is in few pieces, for the device's sake: of 128 KiB at most, with small pages. */
#define KB_CHUNK_ORDER	5

/* Pages that requests of a queue had, for the next ones: only data of one export. */
struct kb_chunks {
	spinlock_t		lock;		/* protects what follows */
	struct list_head	free[KB_CHUNK_ORDER + 1];	/* by order */
	u32			bytes;		/* of them */
	bool			taken;		/* some, since kb_mem_trim() */
};

struct kb_session_stats {
	u64	reads;
	u64	writes;
	u64	others;
	u64	read_bytes;
	u64	write_bytes;
	u64	errors;
	u64	mem_waits;
	u64	checksums;	/* that were wrong */
};

/* What is under way. */
struct kb_load {
	u32	io;		/* requests at the store */
	u32	in_flight;	/* requests and replies */
	u32	posted;		/* operations on the fabric */
	u32	memory;		/* bytes of data */
};

/* A session's part of a queue, in no cache line of another's. */
struct kb_squeue {
	struct kb_session	*s;
	struct kb_queue		*q;
	fi_addr_t		peer;
	bool			has_peer;
	u32			credits;
	struct kb_req		*reqs;		/* depth */
	struct kb_reply_op	*replies;	/* depth */
	union kb_reply_room	*wires;		/* of replies */
	spinlock_t		lock ____cacheline_aligned_in_smp; /* protects what follows */
	struct kb_load		load;
	u32			leased;		/* of kb_session.leased */
	struct list_head	free_replies;
	struct list_head	want_reply;	/* kb_req, done but for that */
	struct kb_session_stats	stats;
	/* Not under the lock */
	unsigned long		heard;		/* jiffies */
	struct kb_chunks	chunks;
};

struct kb_session {
	u64			id;
	struct kb_port		*port;
	struct kb_export	*export;
	struct kb_net		net;
	char			peer_name[KB_NET_NAME];
	u64			peer;		/* the client's address, for limits */
	struct hlist_node	hash;		/* under kb_sessions_lock, or RCU */
	struct rcu_head		rcu;
	struct work_struct	stop_work;
	int			resize;		/* the client is to be told */
	struct kb_hello_msg	hello;		/* without addresses */
	struct kb_key		*key;		/* that the client proved to know */
	u8			proof[KB_MAC];	/* its AUTH's MAC */
	u64			resizes;	/* sent, by its thread */
	struct kb_limits	limits;
	struct kb_fabric	*fabric;
	u16			nqueues;
	struct kb_squeue	*queues;

	/* Under kb_sessions_lock, as is fabric when it changes */
	struct list_head	list;
	bool			proven;		/* hello is true */
	bool			superseded;	/* a newer one takes its place */
	u64			turn;		/* in the order of their proofs */
	u32			promised;	/* receives on each queue */

	enum kb_session_state	state;		/* see kb_session_ending() */

	spinlock_t		lock ____cacheline_aligned_in_smp; /* protects what follows */
	bool			stop;		/* its thread is to end it */
	bool			orderly;	/* and to flush the store first */
	u32			leased;		/* bytes that queues may have */
	struct list_head	mem_wait;	/* kb_req */
	bool			pinging;	/* reply to a keep-alive is out */
	struct kb_reply_op	ping;
};

/* For what may wait for a request's store. */
static inline struct workqueue_struct *kb_store_wq(const struct kb_req *req)
{
	return req->sq->s->export->store.wq;
}

struct kb_session *kb_session_new(struct kb_port *port);
void kb_session_forget(struct kb_session *s);
void kb_session_start(struct kb_session *s);
void kb_session_stop(struct kb_session *s, bool orderly);
void kb_sessions_stop(const struct kb_port *port,
		      const struct kb_export *export);
void kb_sessions_exit(void);
void kb_sessions_resize(struct kb_export *export);
void kb_session_violated(struct kb_session *s, const char *how);
int kb_sessions_show(struct seq_file *m, void *unused);
void kb_session_on(struct kb_session *s, struct kb_fabric *f);
void kb_session_live(struct kb_session *s);

/* --- srv_admit.c --- */

extern spinlock_t kb_sessions_lock;	/* protects kb_sessions, BH off */
extern struct list_head kb_sessions;

const char *kb_session_admit(struct kb_session *s);
const char *kb_session_prove(struct kb_session *s);
bool kb_session_alone(struct kb_session *s);
u32 kb_session_credits(struct kb_session *s, u32 want, u32 room);

/* --- srv_setup.c --- */

void kb_reject(struct kb_session *s, int err, bool again, const char *why);
int kb_set_up(struct kb_session *s);

/* --- srv_queue.c --- */

int kb_squeue_init(struct kb_squeue *sq);
void kb_squeue_exit(struct kb_squeue *sq);
void kb_session_ending(struct kb_session *s);
void kb_session_load(struct kb_session *s, struct kb_load *load,
		     struct kb_session_stats *stats);
void kb_session_abort(struct kb_session *s);
bool kb_session_untaken(struct kb_session *s, unsigned long age);

/* --- srv_io.c --- */

void kb_reply_prepare(struct kb_reply_op *reply);
void kb_req_work(struct work_struct *work);
void kb_ping(struct kb_squeue *sq, const struct kb_cmd_msg *msg);
void kb_req_next(struct kb_req *req, struct workqueue_struct *wq,
		 void (*run)(struct kb_req *req));
void kb_req_begin(struct kb_req *req);
void kb_run_begin(struct kb_req *req);
void kb_req_inval(struct kb_req *req);
void kb_req_end(struct kb_req *req, int err);

/* --- srv_cmd.c --- */

struct kb_req *kb_session_command(struct kb_session *s, struct kb_queue *q,
				  const struct kb_cmd_msg *msg);

/* --- srv_sum.c --- */

int kb_sum_check_cmd(struct kb_req *req);
int kb_sum_check_data(struct kb_req *req);
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
