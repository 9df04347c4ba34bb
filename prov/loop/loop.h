/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_loop: a provider whose endpoints all live in this kernel. It is what the
 * core's tests run on, and shows what a provider has to do.
 *
 * An operation lives in a slot of the endpoint that posted it. A send, read or
 * write waits in the target's list of what is inbound; the target's worker finds
 * the receive or the memory, moves the data, and completes both sides. A send that
 * finds no receive waits for one in the target's table, in the sender's slot. So
 * whatever a peer can pile up at an endpoint takes none of its memory; and a message
 * is gone, claimed or not, when its sender is closed.
 *
 * Locks, outermost first:
 *
 *   loop_lock_control (mutex)	which devices are present, what is open on them
 *   loop_lock (spinlock, BH)	where operations are, states of endpoints and
 *				regions. One for all, as each transfer has two
 *				endpoints; no data is moved under it
 *   kofi_cq.lock		inside: completions are written under loop_lock
 */
#ifndef LOOP_H
#define LOOP_H

#include <linux/bvec.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/xarray.h>
#include <kofi/match.h>
#include <kofi/provider.h>

#define LOOP_VERSION	FI_VERSION(0, 1)
#define LOOP_NAME	"loop"

#define LOOP_CAPS_TX	(FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_READ | \
			 FI_WRITE)
#define LOOP_CAPS_RX	(FI_MSG | FI_TAGGED | FI_RMA | FI_RECV | \
			 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_SOURCE | \
			 FI_DIRECTED_RECV | FI_MULTI_RECV)
#define LOOP_CAPS	(LOOP_CAPS_TX | LOOP_CAPS_RX | FI_LOCAL_COMM)

/* Kept because one worker serves a target's inbound operations in order. */
#define LOOP_ORDER	(FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW | \
			 FI_ORDER_RAW)

/* Every completion here is one of delivery, so all levels of it are met. */
#define LOOP_TX_FLAGS	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | \
			 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
			 FI_REMOTE_CQ_DATA | FI_MORE)
#define LOOP_RX_DEFAULTS	(FI_COMPLETION | FI_MORE)
#define LOOP_RX_FLAGS	(LOOP_RX_DEFAULTS | FI_MULTI_RECV | FI_PEEK | FI_CLAIM | \
			 FI_DISCARD)

enum {
	LOOP_MAX_MSG	= SZ_1M,
	LOOP_INJECT	= 128,
	LOOP_SLOTS	= 256,	/* operations outstanding, each direction */
	LOOP_MIN_MULTI	= 64,	/* FI_OPT_MIN_MULTI_RECV, unless it is set */
	LOOP_IOV	= 16,
	LOOP_RMA_IOV	= 4,
	LOOP_MR_PAGES	= 512,
	LOOP_MR_CNT	= 4096,
	LOOP_EP_CNT	= 1024,
	LOOP_BATCH	= 16,	/* operations of one pass of a worker */
};

/* fi_cq_err_entry.prov_errno */
enum loop_errno {
	LOOP_ERR_NONE,
	LOOP_ERR_KEY,
	LOOP_ERR_RANGE,
	LOOP_ERR_ACCESS,
	LOOP_ERR_PEER_GONE,
	LOOP_ERRS,
};

#define LOOP_ADDR_MAGIC	0x706f6f6c

/**
 * struct loop_addr - address of an endpoint
 * @magic: LOOP_ADDR_MAGIC
 * @id: the endpoint's
 */
struct loop_addr {
	u32	magic;
	u32	id;
};

/**
 * struct loop_device - what would be a piece of hardware
 * @name: name of its domain
 * @present: it hasn't been removed; loop_lock_control
 * @domains: open on it; loop_lock_control
 * @refused: operations from peers that were refused
 */
struct loop_device {
	const char		*name;
	bool			present;
	struct list_head	domains;
	atomic_t		refused;
};

/**
 * struct loop_domain - an open domain
 * @domain_fid: the object
 * @dev: its device
 * @list: in @dev->domains; loop_lock_control
 * @eps: its endpoints; loop_lock_control
 * @gone: the device was removed; loop_lock
 * @mrs: regions by slot; changed under loop_lock, or with nothing in the slot
 * @next_mr: where to look for a free slot
 * @mr_generation: makes keys of a slot differ; loop_lock
 * @mr_posted: regions to be registered or invalidated; loop_lock
 * @mr_work: does so
 */
struct loop_domain {
	struct fid_domain	domain_fid;
	struct loop_device	*dev;
	struct list_head	list;
	struct list_head	eps;
	bool			gone;
	struct xarray		mrs;
	u32			next_mr;
	u32			mr_generation;
	struct list_head	mr_posted;
	struct work_struct	mr_work;
};

/**
 * struct loop_cq - a completion queue
 * @cq: the core's part
 * @starved: endpoints that wait for its reserve; loop_lock
 */
struct loop_cq {
	struct kofi_cq		cq;
	struct list_head	starved;
};

/**
 * struct loop_av - an address vector
 * @av_fid: the object
 * @type: FI_AV_TABLE or FI_AV_MAP
 * @lock: one insertion or removal at a time
 * @ids: endpoint ids by fi_addr_t, as value entries
 * @addrs: indices of @ids by endpoint id, as value entries
 * @uses: how often these were inserted and not removed, likewise
 *
 * Data calls look things up without a lock.
 */
struct loop_av {
	struct fid_av		av_fid;
	enum fi_av_type		type;
	struct mutex		lock;	/* insertions, removals */
	struct xarray		ids;
	struct xarray		addrs;
	struct xarray		uses;
};

/**
 * enum loop_mr_state - what a region is good for
 * @LOOP_MR_IDLE: nothing is registered
 * @LOOP_MR_REGISTERING: fi_mr_post_reg() was called
 * @LOOP_MR_VALID: peers can reach it
 * @LOOP_MR_INVALIDATING: fi_mr_post_inval() was called
 */
enum loop_mr_state {
	LOOP_MR_IDLE,
	LOOP_MR_REGISTERING,
	LOOP_MR_VALID,
	LOOP_MR_INVALIDATING,
};

/**
 * struct loop_mr - a memory region
 * @mr_fid: the object
 * @dom: its domain
 * @cq: where registrations complete, of fi_mr_alloc() alone
 * @slot: index in @dom->mrs
 * @state: enum loop_mr_state; loop_lock
 * @busy: operations that are using it; loop_lock
 * @idle: who waits for @busy to become 0
 * @posted: in @dom->mr_posted; loop_lock
 * @flags: of what was posted
 * @context: of what was posted
 * @may: access that can be asked for
 * @access: access granted to peers
 * @len: bytes registered
 * @npages: entries of @pages in use
 * @max_pages: entries of @pages
 * @pages: the memory, in pieces of a page at most
 */
struct loop_mr {
	struct fid_mr		mr_fid;
	struct loop_domain	*dom;
	struct kofi_cq		*cq;
	u32			slot;
	enum loop_mr_state	state;
	unsigned int		busy;
	wait_queue_head_t	idle;
	struct list_head	posted;
	u64			flags;
	void			*context;
	u64			may;
	u64			access;
	size_t			len;
	size_t			npages;
	size_t			max_pages;
	struct bio_vec		pages[];
};

/**
 * struct loop_op - an operation, in a slot of the endpoint that posted it
 * @list: free slots, one of the lists of @ep or of the target, or a worker's
 *	batch; loop_lock but for the last
 * @sent: in @ep->sent until a worker takes it; loop_lock
 * @ep: the endpoint
 * @req: what was asked for; its iterator advances
 * @quiet: no completion on success
 * @kvec: a buffer of one segment, whose description needn't stay
 * @rma: likewise
 * @post: a receive among others in loop_ep.match; loop_lock
 * @msg: a send among others in loop_ep.match of @target; loop_lock
 * @target: where a send, read or write waits
 * @claimed: the target has claimed this send; loop_lock
 * @recv: the receive that a send has found
 * @kvec_in: where the send goes, of a multi-receive buffer
 * @last: the send has used @recv up
 * @busy: of a multi-receive buffer, messages that are on their way into it; loop_lock
 * @canceled: it completes when they have; loop_lock
 * @mrs: regions that a read or write uses, pinned
 * @buf: where a message is in a multi-receive buffer
 * @len: bytes moved
 * @olen: bytes that found no room
 * @err: positive errno, or 0
 * @prov_errno: enum loop_errno
 * @src_addr: of a receive, who sent it
 * @inject: a copy of the buffer
 */
struct loop_op {
	struct list_head	list;
	struct list_head	sent;
	struct loop_ep		*ep;
	struct kofi_req		req;
	bool			quiet;
	struct kvec		kvec;
	struct fi_rma_iov	rma;
	union {
		struct kofi_match_recv	post;
		struct kofi_match_msg	msg;
	};
	struct loop_ep		*target;
	bool			claimed;
	struct loop_op		*recv;
	struct kvec		kvec_in;
	bool			last;
	unsigned int		busy;
	bool			canceled;
	struct loop_mr		*mrs[LOOP_RMA_IOV];
	void			*buf;
	size_t			len;
	size_t			olen;
	int			err;
	enum loop_errno		prov_errno;
	fi_addr_t		src_addr;
	u8			inject[LOOP_INJECT];
};

enum loop_ep_state {
	LOOP_EP_OPEN,
	LOOP_EP_ENABLED,
	LOOP_EP_STOPPED,	/* closed, or without device */
};

/**
 * struct loop_side - one direction of an endpoint
 * @base: what the core shares; its size is the number of slots
 * @free: slots that aren't in use; loop_lock
 * @wanted: a post found none, and the ULP hasn't been told of one since; loop_lock
 */
struct loop_side {
	struct kofi_side	base;
	struct list_head	free;
	bool			wanted;
};

/**
 * struct loop_ep - an endpoint
 * @ep_fid: the object
 * @dom: its domain
 * @list: in @dom->eps; loop_lock_control
 * @id: in loop_eps, and in its address
 * @caps: as opened
 * @av: its address vector
 * @tx: sending side
 * @rx: receiving side
 * @work: serves what is inbound
 * @page: through which @work moves data
 * @ops: all slots
 * @state: enum loop_ep_state; loop_lock
 * @stop_err: what operations complete with once it is stopped; loop_lock
 * @moving: its sends, reads and writes that workers have taken; loop_lock
 * @idle: who waits for @moving to become 0
 * @sent: its sends, reads and writes that wait at their targets; loop_lock
 * @min_multi_recv: FI_OPT_MIN_MULTI_RECV; loop_lock
 * @table: of @match
 * @match: its posted receives, and sends that wait for one; loop_lock
 * @posting: receives that are to be posted; loop_lock
 * @recvs: those that are; loop_lock
 * @inbound: what others (or itself) sent; loop_lock
 * @ready: sends that a receive has found since; loop_lock
 * @starved: in loop_cq.starved; loop_lock
 */
struct loop_ep {
	struct fid_ep		ep_fid;
	struct loop_domain	*dom;
	struct list_head	list;
	u32			id;
	u64			caps;
	struct loop_av		*av;
	struct loop_side	tx;
	struct loop_side	rx;
	struct work_struct	work;
	void			*page;
	struct loop_op		*ops;
	enum loop_ep_state	state;
	int			stop_err;
	unsigned int		moving;
	wait_queue_head_t	idle;
	struct list_head	sent;
	size_t			min_multi_recv;
	struct hlist_head	*table;
	struct kofi_match	match;
	struct list_head	posting;
	struct list_head	recvs;
	struct list_head	inbound;
	struct list_head	ready;
	struct list_head	starved;
};

/* main.c */

extern struct mutex loop_lock_control;	/* see the top */
extern spinlock_t loop_lock;
extern struct workqueue_struct *loop_wq;

struct loop_device *loop_device_find(const char *name);

/* domain.c */

int loop_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		     struct fid_domain **domain, void *context);
void loop_domain_remove(struct loop_domain *dom);

static inline struct loop_domain *to_loop_domain(struct fid_domain *domain)
{
	return container_of(domain, struct loop_domain, domain_fid);
}

static inline struct loop_cq *to_loop_cq(struct kofi_cq *cq)
{
	return container_of(cq, struct loop_cq, cq);
}

/* av.c */

int loop_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		 struct fid_av **av, void *context);
int loop_av_to_id(struct loop_av *av, fi_addr_t addr, u32 *id);
fi_addr_t loop_av_to_addr(struct loop_av *av, u32 id);

/* mr.c */

int loop_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		    u64 flags, struct fid_mr **mr);
int loop_mr_alloc(struct fid_domain *domain,
		  const struct fi_mr_alloc_attr *attr, struct fid_mr **mr,
		  void *context);
void loop_mr_work(struct work_struct *work);
enum loop_errno loop_mr_get(struct loop_domain *dom,
			    const struct fi_rma_iov *rma, u64 access,
			    struct loop_mr **mr);
void loop_mr_put(struct loop_mr *mr);

/* ep.c */

extern struct xarray loop_eps;

int loop_ep_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, void *context);
void loop_ep_stop(struct loop_ep *ep, int err);

static inline struct loop_ep *to_loop_ep(struct fid_ep *ep)
{
	return container_of(ep, struct loop_ep, ep_fid);
}

/* post.c */

extern const struct kofi_req_ops loop_req_ops;

/* match.c */

void loop_take_op(struct loop_op *op, struct list_head *list);
void loop_unpair(struct loop_ep *ep, struct loop_op *op);
bool loop_arrive(struct loop_ep *ep, struct loop_op *op, struct list_head *batch);
void loop_recv_result(struct loop_ep *ep, struct loop_op *recv, struct loop_op *op,
		      size_t len);
void loop_post_recvs(struct loop_ep *ep);
ssize_t loop_cancel(struct fid *fid, void *context);

/* progress.c */

void loop_ep_work(struct work_struct *work);
void loop_op_complete(struct loop_op *op);

#endif /* LOOP_H */
