/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_efa: the provider's own declarations, file by file.
 *
 * Locks, outermost first:
 *
 *   kefa_devs_lock (mutex)	device.c: which devices there are. Nothing is
 *				taken inside but memory
 *   kefa_av.lock (mutex)	one address vector: insertions and removals
 *   kefa_dev.lock (mutex)	what a device makes and unmakes by commands: all
 *				opening, closing and removal. Core calls that
 *				tell of removal are made under it
 *   kefa_ep.lock, kefa_mrq.lock (spinlock, BH)
 *				a queue pair: posts, polls and what is outstanding
 *   kofi_cq.lock		inside: completions are written under the above
 *
 * No handler of a ULP is called, and no ULP waited for, under any of them. Memory is
 * allocated under the mutexes as if for I/O, whoever holds them: somebody may wait
 * for them in order to get I/O going again.
 */
#ifndef KEFA_H
#define KEFA_H

#include <linux/idr.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/xarray.h>
#include <kofi/efa_ext.h>
#include <kofi/provider.h>
#include "hw.h"
#include "op.h"

struct dentry;
struct kefa_ep;
struct kefa_side;
struct seq_file;

#define KEFA_VERSION	FI_VERSION(0, 1)

#define KEFA_TX_FLAGS	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | \
			 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
			 FI_REMOTE_CQ_DATA | FI_MORE)
#define KEFA_RX_FLAGS	(FI_COMPLETION | FI_MORE)
/* What can be said for all operations: data and what follows are one's own. */
#define KEFA_TX_DEFAULTS	(KEFA_TX_FLAGS & ~(FI_REMOTE_CQ_DATA | FI_MORE))
#define KEFA_RX_DEFAULTS	(KEFA_RX_FLAGS & ~FI_MORE)

enum {
	/* Work requests that wait for one doorbell, and parts of one RMA. */
	KEFA_HELD_MAX		= 16,
	/* Buffers of an endpoint for what the device can't gather or must keep. */
	KEFA_COPIES		= 16,
	/* Longest inject, and no more than a message. */
	KEFA_INJECT		= SZ_4K,
	/* Registrations of a domain that can be outstanding, if the device can. */
	KEFA_MR_DEPTH		= 256,
	/* Looks at them, of so many seconds, after which a device is silent. */
	KEFA_MR_LOOKS		= 4,
	KEFA_MR_LOOK_S		= 10,
	/* Regions hold 2^n pages. The largest's page list takes 512 KiB. */
	KEFA_MR_ORDERS		= 17,
	KEFA_MR_MIN_ORDER	= 4,
	/* Regions of a domain: the device's table is finite, and shared. */
	KEFA_MR_MAX		= 8192,
	/* Completions that a worker takes at a time, and before it yields. */
	KEFA_POLL_BATCH		= 16,
	KEFA_POLL_BUDGET	= 256,
};

/* A kernel user can't ask for it; all devices that have RDMA have at least this. */
#define KEFA_MAX_RDMA		SZ_1G

/* device.c */

/**
 * struct kefa_dev - a device
 * @list: in kefa_devs; kefa_devs_lock
 * @refs: one for being there, one for each domain
 * @lock: see the top
 * @noio: allocation scope of who holds @lock
 * @gone: it was removed or given up; @lock
 * @dead: it refused to destroy what reaches memory; @lock
 * @reaches: and can't be kept from memory; @lock
 * @domains: open on it; @lock
 * @hw: how to use it
 * @end: gives it up
 * @ibdev: the device, until it is removed
 * @dma: whom DMA mappings are for; referenced
 * @name: its name; kefa_devs_lock to change
 * @driver: its driver's name
 * @debugfs: its file
 * @gid: its address
 * @part_id: generation
 * @numa_node: where it is
 * @mtu: longest message
 * @tx_depth: of a queue pair at most
 * @rx_depth: likewise
 * @max_qp: queue pairs
 * @max_mr: memory regions
 * @max_mr_pages: pages of a region
 * @page_sizes: bits of page sizes for regions
 * @vectors: completion vectors
 * @next_vector: where to go on looking for one; @lock
 * @rdma_read: it has RDMA read
 * @rdma_write: it has RDMA write
 */
struct kefa_dev {
	struct list_head		list;
	refcount_t			refs;
	struct mutex			lock;	/* see the top */
	unsigned int			noio;
	bool				gone;
	bool				dead;
	bool				reaches;
	struct list_head		domains;
	const struct kefa_hw_ops	*hw;
	struct work_struct		end;
	struct ib_device		*ibdev;
	struct device			*dma;
	char				name[FI_NAME_MAX];
	char				driver[MODULE_NAME_LEN];
	struct dentry			*debugfs;
	u8				gid[FI_EFA_GID_LEN];
	u32				part_id;
	int				numa_node;
	u32				mtu;
	u32				tx_depth;
	u32				rx_depth;
	u32				max_qp;
	u32				max_mr;
	u32				max_mr_pages;
	u64				page_sizes;
	u32				vectors;
	u32				next_vector;
	bool				rdma_read;
	bool				rdma_write;
};

extern struct workqueue_struct *kefa_wq, *kefa_cmd_wq;

int kefa_devs_init(void);
void kefa_devs_fini(void);
struct kefa_dev *kefa_dev_alloc(void);
struct kefa_dev *kefa_dev_find(const char *name);
void kefa_dev_publish(struct kefa_dev *dev);
void kefa_dev_rename(struct kefa_dev *dev, const char *name);
void kefa_dev_retire(struct kefa_dev *dev);
void kefa_dev_give_up(struct kefa_dev *dev);
void kefa_dev_put(struct kefa_dev *dev);
int kefa_devs_info(const char *node, struct fi_info **list);
u32 kefa_dev_vector(struct kefa_dev *dev, int cpu);

/**
 * kefa_dev_lock() - take kefa_dev.lock
 * @dev: the device
 *
 * Context: Process context; sleeps. Memory is allocated in a noio scope until
 * kefa_dev_unlock().
 */
static inline void kefa_dev_lock(struct kefa_dev *dev)
{
	mutex_lock(&dev->lock);
	dev->noio = memalloc_noio_save();
}

/**
 * kefa_dev_unlock() - undo kefa_dev_lock()
 * @dev: the device
 *
 * Context: Process context.
 */
static inline void kefa_dev_unlock(struct kefa_dev *dev)
{
	unsigned int noio = dev->noio;

	mutex_unlock(&dev->lock);
	memalloc_noio_restore(noio);
}

static inline size_t kefa_inject_size(const struct kefa_dev *dev)
{
	return min_t(size_t, KEFA_INJECT, dev->mtu);
}

/* probe.c */

int kefa_probe(struct kefa_dev *dev);

/* info.c */

struct fi_info *kefa_info(const struct kefa_dev *dev);
u64 kefa_caps(const struct kefa_dev *dev);

/* ah.c */

/**
 * struct kefa_ah - an address handle, one for each GID of a domain
 * @rcu: frees it, as who has found an address looks at @users
 * @list: in kefa_domain.ahs; kefa_dev.lock
 * @node: in kefa_domain.ah_table; kefa_dev.lock
 * @dom: its domain
 * @users: addresses and operations that use it. At 0 it stays until the worker
 *	comes, and may be used anew under kefa_dev.lock
 * @ah: the device's; NULL after removal
 * @gid: what it leads to
 */
struct kefa_ah {
	struct rcu_head		rcu;
	struct list_head	list;
	struct rhash_head	node;
	struct kefa_domain	*dom;
	atomic_t		users;
	struct ib_ah		*ah;
	u8			gid[FI_EFA_GID_LEN];
};

int kefa_ahs_init(struct kefa_domain *dom);
void kefa_ahs_fini(struct kefa_domain *dom);
struct kefa_ah *kefa_ah_get(struct kefa_domain *dom, const u8 *gid);
void kefa_ahs_idle(struct kefa_domain *dom);
void kefa_ahs_remove(struct kefa_domain *dom);

/**
 * kefa_ah_put() - undo kefa_ah_get(), or the use by an operation
 * @ah: the handle
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kefa_ah_put(struct kefa_ah *ah)
{
	struct kefa_domain *dom = ah->dom;

	/* It may be gone right after. */
	if (unlikely(atomic_dec_and_test(&ah->users)))
		kefa_ahs_idle(dom);
}

/* av.c */

/**
 * struct kefa_av_key - what tells addresses apart
 * @ah: leads to the device, for whose GID it is the only one
 * @qpn: number of the queue pair
 * @qkey: of the queue pair
 */
struct kefa_av_key {
	struct kefa_ah	*ah;
	u32		qpn;
	u32		qkey;
};

/**
 * struct kefa_peer - an address in a vector; freed after an RCU grace period
 * @key: the address
 * @index: the fi_addr_t
 * @next: index of another one, plus 1, in a list of some; kefa_av.lock
 * @uses: how often it was inserted and not removed; likewise
 */
struct kefa_peer {
	struct kefa_av_key	key;
	u32			index;
	u32			next;
	u32			uses;
};

static_assert(sizeof(struct kefa_peer) <= 32);

/**
 * struct kefa_av_table - addresses by their index
 * @rcu: frees it once a larger one has taken its place
 * @size: room
 * @peers: the addresses, or NULL; and behind them, for @size lists by which to
 *	find addresses, where these begin
 */
struct kefa_av_table {
	struct rcu_head		rcu;
	u32			size;
	struct kefa_peer __rcu	*peers[];
};

/**
 * struct kefa_av - an address vector
 * @av_fid: the object
 * @dom: its domain
 * @lock: one insertion or removal at a time; outside of kefa_dev.lock
 * @noio: allocation scope of who holds @lock
 * @table: addresses by index; read under RCU
 * @indices: that are in use; @lock
 * @seed: of the lists in @table
 */
struct kefa_av {
	struct fid_av			av_fid;
	struct kefa_domain		*dom;
	struct mutex			lock;	/* insertions, removals */
	unsigned int			noio;
	struct kefa_av_table __rcu	*table;
	struct ida			indices;
	u32				seed;
};

int kefa_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		 struct fid_av **av, void *context);

/**
 * kefa_av_peer() - find an address
 * @av: the address vector
 * @addr: which
 *
 * A table, and not an xarray, so that it takes the same however many there are.
 *
 * Context: Any, under rcu_read_lock() or with bottom halves off.
 * Return: the address, or NULL.
 */
static inline struct kefa_peer *kefa_av_peer(struct kefa_av *av, fi_addr_t addr)
{
	struct kefa_av_table *table = rcu_dereference_check(av->table,
							    rcu_read_lock_bh_held());

	if (unlikely(addr >= table->size))
		return NULL;
	return rcu_dereference_check(table->peers[addr],
				     rcu_read_lock_bh_held());
}

/* domain.c */

/**
 * struct kefa_mrq - the queue pair on which a domain registers memory
 * @lock: protects all but @room, @work, @watch and what is that one's
 * @hq: the queue pair
 * @open: it can be posted to
 * @depth: work requests that can be outstanding
 * @nfree: slots of those that aren't
 * @free: they
 * @busy: by slot, whose work request is outstanding, or NULL
 * @gen: how many were posted; tells uses of a slot apart
 * @wr: the work request that is being posted
 * @wcs: completions that are being looked at
 * @untold: a completion queue that was written to, and whose reader wasn't told
 * @room: who waits for a slot, or for a region
 * @work: polls
 * @watch: looks whether anything completes; the next two are its own
 * @done: what had completed when it looked last
 * @looks: times that nothing had, though something was outstanding
 * @stats: counters
 */
struct kefa_mrq {
	spinlock_t		lock;	/* protects all but room and the workers' */
	struct kefa_hw_qp	hq;
	bool			open;
	u16			depth;
	u16			nfree;
	u16			free[KEFA_MR_DEPTH];
	struct kefa_mr		*busy[KEFA_MR_DEPTH];
	u32			gen;
	struct kefa_wr		wr;
	struct ib_wc		wcs[KEFA_POLL_BATCH];
	struct kofi_cq		*untold;
	wait_queue_head_t	room;
	struct kofi_work	work;
	struct delayed_work	watch;
	u32			done;
	u8			looks;
	struct kefa_mr_stats {
		u64	regs;
		u64	invals;
		u64	again;
		u64	map_failed;
		u64	bounced;
		u64	dry;
		u64	errors;
		u64	stale;
	} stats;
};

/**
 * struct kefa_domain - an open domain
 * @domain_fid: the object
 * @dev: its device, referenced
 * @list: in @dev->domains; @dev->lock
 * @pd: protection domain; NULL once the device is gone
 * @gone: the device was removed; @dev->lock
 * @broken: the device refused to destroy something; @dev->lock
 * @eps: its endpoints; @dev->lock
 * @ahs: its address handles; @dev->lock
 * @ah_table: the same by GID; @dev->lock
 * @ah_work: unmakes those without users
 * @nothing: a page for SGEs of no bytes
 * @nothing_dma: its DMA address
 * @mrq: registers memory
 * @mrs: regions that are open; @dev->lock
 * @frmrs: the device's regions that nobody uses, oldest first, by size;
 *	@dev->lock
 * @nidle: how many, by size; @dev->lock
 * @nfrmrs: how many there are, in use or not; @dev->lock
 */
struct kefa_domain {
	struct fid_domain	domain_fid;
	struct kefa_dev		*dev;
	struct list_head	list;
	struct ib_pd		*pd;
	bool			gone;
	bool			broken;
	struct list_head	eps;
	struct list_head	ahs;
	struct rhashtable	ah_table;
	struct work_struct	ah_work;
	void			*nothing;
	dma_addr_t		nothing_dma;
	struct kefa_mrq		mrq;
	struct list_head	mrs;
	struct list_head	frmrs[KEFA_MR_ORDERS];
	u32			nidle[KEFA_MR_ORDERS];
	u32			nfrmrs;
};

int kefa_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		     struct fid_domain **domain, void *context);
void kefa_domain_remove(struct kefa_domain *dom);
void kefa_domain_refused(struct kefa_domain *dom);

static inline struct kefa_domain *to_kefa_domain(struct fid_domain *domain)
{
	return container_of(domain, struct kefa_domain, domain_fid);
}

/* ep.c */

enum kefa_ep_state {
	KEFA_EP_OPEN,
	KEFA_EP_ENABLED,
	KEFA_EP_STOPPED,	/* closed, or without device */
};

/**
 * struct kefa_side - one direction of an endpoint
 * @cq: where it completes, or NULL
 * @size: slots
 * @nfree: slots that aren't in use; kefa_ep.lock
 * @first: they, the one that rested longest; kefa_ep.lock
 * @tail: where the next one that is freed is linked; kefa_ep.lock
 * @op_flags: flags of calls that carry none; kefa_ep.lock to change
 * @selective: only operations with FI_COMPLETION complete
 * @quiet: plain calls don't: from @op_flags and @selective; kefa_ep.lock
 * @notify: completions were written of which nobody was told; kefa_ep.lock
 * @ended: where the first is linked of those that ended, and weren't reported;
 *	kefa_ep.lock
 * @rested: how many slots were free before them; kefa_ep.lock
 */
struct kefa_side {
	struct kofi_cq		*cq;
	u32			size;
	u32			nfree;
	struct kefa_op		*first;
	struct kefa_op		**tail;
	u64			op_flags;
	bool			selective;
	bool			quiet;
	bool			notify;
	struct kefa_op		**ended;
	u32			rested;
};

/**
 * struct kefa_limits - which plain calls may take the short way of plain.c
 * @send: for each kind the bytes from which on none does; so 0 if the endpoint isn't
 *	enabled, hasn't got the capability, or has flags of which plain.c knows
 *	nothing
 * @inject: likewise
 * @read: likewise
 * @write: likewise
 * @recv: likewise
 */
struct kefa_limits {
	size_t	send;
	size_t	inject;
	size_t	read;
	size_t	write;
	size_t	recv;
};

/**
 * struct kefa_ep_stats - what an endpoint counts; kefa_ep.lock
 * @sends: sends posted
 * @recvs: receives posted
 * @reads: reads posted
 * @writes: writes posted
 * @tx_bytes: bytes posted to be sent, read or written
 * @rx_bytes: bytes received
 * @doorbells: lists of work requests posted
 * @bounced: sends and writes whose data was copied
 * @again: posts refused for now
 * @map_failed: of these for want of DMA space
 * @errors: operations that failed
 * @stale: completions of nothing that was outstanding
 * @events: the device's
 */
struct kefa_ep_stats {
	u64	sends;
	u64	recvs;
	u64	reads;
	u64	writes;
	u64	tx_bytes;
	u64	rx_bytes;
	u64	doorbells;
	u64	bounced;
	u64	again;
	u64	map_failed;
	u64	errors;
	u64	stale;
	atomic64_t events;
};

/**
 * struct kefa_ep - an endpoint
 * @ep_fid: the object
 * @dom: its domain
 * @list: in @dom->eps; kefa_dev.lock
 * @caps: as opened
 * @cpu: where completions should be worked on, or -1
 * @rnr_retry: of the queue pair; kefa_dev.lock
 * @av: its address vector
 * @tx: sending side
 * @rx: receiving side
 * @counted: there is a counter
 * @cntr_send: counters, or NULL
 * @cntr_recv: likewise
 * @cntr_read: likewise
 * @cntr_write: likewise
 * @work: polls and calls handlers
 * @lock: protects what follows
 * @nheld: work requests that wait for a doorbell
 * @limits: of the short way
 * @dma: whom mappings are for
 * @nops: slots of both sides
 * @ops: they, the sending side's first
 * @hq: the queue pair
 * @stats: counters
 * @held: the @nheld work requests
 * @recv: the receive that is being posted
 * @wcs: completions that are being looked at; no stack has to be cleared for them
 * @state: enum kefa_ep_state
 * @stop_err: what operations complete with once it is stopped
 * @had_qp: @hq is to be unmade
 * @copies: buffers that aren't in use
 * @copy_mem: all of them
 */
struct kefa_ep {
	struct fid_ep		ep_fid;
	struct kefa_domain	*dom;
	struct list_head	list;
	u64			caps;
	int			cpu;
	u8			rnr_retry;
	struct kefa_av		*av;
	struct kefa_side	tx;
	struct kefa_side	rx;
	bool			counted;
	struct kofi_cntr	*cntr_send;
	struct kofi_cntr	*cntr_recv;
	struct kofi_cntr	*cntr_read;
	struct kofi_cntr	*cntr_write;
	struct kofi_work	work;
	spinlock_t		lock;	/* protects what follows */
	unsigned int		nheld;
	struct kefa_limits	limits;
	struct device		*dma;
	u32			nops;
	struct kefa_op		*ops;
	struct kefa_hw_qp	hq;
	struct kefa_ep_stats	stats;
	struct kefa_wr		held[KEFA_HELD_MAX];
	struct kefa_recv_wr	recv;
	struct ib_wc		wcs[KEFA_POLL_BATCH];
	enum kefa_ep_state	state;
	int			stop_err;
	bool			had_qp;
	struct list_head	copies;
	struct kefa_copy	*copy_mem;
};

/* See path.h for what is inline of posting and completing. */

int kefa_ep_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, void *context);
void kefa_ep_halt(struct kefa_ep *ep, int err);
void kefa_ep_teardown(struct kefa_ep *ep);

static inline struct kefa_ep *to_kefa_ep(struct fid_ep *ep)
{
	return container_of(ep, struct kefa_ep, ep_fid);
}

/* progress.c */

void kefa_ep_event(void *arg);
void kefa_ep_work(struct work_struct *work);
unsigned int kefa_ep_poll(struct kefa_ep *ep, unsigned int budget);
void kefa_ep_flush(struct kefa_ep *ep);
void kefa_ep_refused(struct kefa_ep *ep, unsigned int n, int err);
void kefa_rx_refused(struct kefa_ep *ep, struct kefa_op *op, int err);
void kefa_ep_fail_all(struct kefa_ep *ep, int err);
void kefa_ep_tell(struct kefa_ep *ep, bool in_worker);

/* mr_pool.c */

/**
 * struct kefa_frmr - a region of the device, for fast registration
 * @list: in kefa_domain.frmrs while nobody uses it; kefa_dev.lock
 * @mr: the device's
 * @order: it holds 2^@order pages, or as many as the device can
 * @pages: that is how many
 */
struct kefa_frmr {
	struct list_head	list;
	struct ib_mr		*mr;
	u32			order;
	u32			pages;
};

void kefa_pool_init(struct kefa_domain *dom);
struct kefa_frmr *kefa_pool_get(struct kefa_domain *dom, size_t pages);
void kefa_pool_put(struct kefa_domain *dom, struct kefa_frmr *fr);
int kefa_pool_drop(struct kefa_domain *dom, struct kefa_frmr *fr);
void kefa_pool_empty(struct kefa_domain *dom);

/* mr.c */

enum kefa_mr_state {
	KEFA_MR_IDLE,		/* nothing is registered */
	KEFA_MR_REGISTERING,
	KEFA_MR_VALID,		/* peers can reach it */
	KEFA_MR_INVALIDATING,
	KEFA_MR_STUCK,		/* the device didn't take it back */
	KEFA_MR_STATES,
};

/**
 * struct kefa_mr - a memory region
 * @mr_fid: the object
 * @dom: its domain
 * @list: in @dom->mrs; kefa_dev.lock
 * @cq: where registrations complete, of fi_mr_alloc() alone
 * @fr: the device's region; NULL when peers have no access
 * @state: enum kefa_mr_state; kefa_mrq.lock, as the next five
 * @err: positive errno of what completed last
 * @internal: what is outstanding was posted by ourselves
 * @flags: of what is outstanding
 * @context: of what is outstanding
 * @id: of its work request
 * @nsegs: entries of @sg that are mapped
 * @dir: which way
 * @access: all that can be asked for
 * @len: bytes registered
 * @nents: entries of @sg in use
 * @max_ents: entries of @sg
 * @sg: the memory
 */
struct kefa_mr {
	struct fid_mr		mr_fid;
	struct kefa_domain	*dom;
	struct list_head	list;
	struct kofi_cq		*cq;
	struct kefa_frmr	*fr;
	enum kefa_mr_state	state;
	int			err;
	bool			internal;
	u64			flags;
	void			*context;
	u64			id;
	unsigned int		nsegs;
	enum dma_data_direction	dir;
	u64			access;
	size_t			len;
	unsigned int		nents;
	unsigned int		max_ents;
	struct scatterlist	*sg;
};

int kefa_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		    u64 flags, struct fid_mr **mr);
int kefa_mr_alloc(struct fid_domain *domain,
		  const struct fi_mr_alloc_attr *attr, struct fid_mr **mr,
		  void *context);
void kefa_mr_unmap(struct kefa_mr *mr);
void kefa_mrs_remove(struct kefa_domain *dom);

/* mrq.c */

int kefa_mrq_start(struct kefa_domain *dom);
void kefa_mrq_stop(struct kefa_domain *dom);
void kefa_mrq_fail_all(struct kefa_domain *dom);
void kefa_mr_go(struct kefa_mr *mr, enum kefa_mr_state state);
int kefa_mrq_reg(struct kefa_mr *mr, u64 access);
int kefa_mrq_inval(struct kefa_mr *mr);
int kefa_mrq_room(struct kefa_mrq *mrq);
void kefa_mrq_count(struct kefa_mrq *mrq, u64 *counter);

/* post.c */

extern const struct kofi_calls kefa_calls;

/* plain.c */

void kefa_plain_limits(struct kefa_ep *ep);
extern const struct fi_ops_msg kefa_msg_ops;
extern const struct fi_ops_rma kefa_rma_ops;

/* debugfs.c */

void kefa_debugfs_init(void);
void kefa_debugfs_fini(void);
void kefa_debugfs_add(struct kefa_dev *dev);
void kefa_debugfs_del(struct kefa_dev *dev);

/* main.c */

extern const struct kofi_provider kefa_provider;

/* status.c */

int kefa_status_errno(u32 status);
const char *kefa_status_text(int status);

#endif /* KEFA_H */
