/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_loop: a provider whose endpoints are all in this kernel. The core's tests run on
 * it, and it is a template for other providers.
 *
 * An operation is in a slot of the endpoint that posted it. A send, read, write or atomic
 * operation waits in the target's list of inbound operations. The target's worker finds the
 * receive or the memory, moves the data, and completes both sides. A send without a
 * matching receive waits in the target's table, still in the sender's slot. So operations
 * of peers take no memory of the target; and a message, even a claimed one, disappears when
 * its sender is closed.
 *
 * Locks, outermost first:
 *
 *   loop_lock_control (mutex)	presence of devices, and the objects open on them
 *   loop_lock (spinlock, BH)	lists of operations, states of endpoints and regions. A
 *				single lock, as each transfer has two endpoints; it isn't
 *				held while data is moved
 *   kofi_cq.lock		innermost: completions are written under loop_lock
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

#define LOOP_CAPS_TX	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | \
			 FI_READ | FI_WRITE)
#define LOOP_CAPS_RX	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | \
			 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_SOURCE | \
			 FI_DIRECTED_RECV | FI_MULTI_RECV | FI_RMA_EVENT)
#define LOOP_CAPS	(LOOP_CAPS_TX | LOOP_CAPS_RX | FI_LOCAL_COMM)

/* One worker serves a target's inbound operations in order, which keeps these orders. */
#define LOOP_ORDER	(FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW | \
			 FI_ORDER_RAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | \
			 FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)

/* Operations on a peer's memory. */
#define LOOP_FAR	(FI_RMA | FI_ATOMIC)

/* All completion levels are supported, because operations complete after delivery. */
#define LOOP_TX_FLAGS	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | \
			 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
			 FI_REMOTE_CQ_DATA | FI_MORE)
#define LOOP_RX_DEFAULTS	(FI_COMPLETION | FI_MORE)
#define LOOP_RX_FLAGS	(LOOP_RX_DEFAULTS | FI_MULTI_RECV | FI_PEEK | FI_CLAIM | \
			 FI_DISCARD)

enum {
	LOOP_MAX_MSG	= SZ_1M,
	LOOP_INJECT	= 128,
	LOOP_SLOTS	= 256,	/* outstanding operations of a direction */
	LOOP_MIN_MULTI	= 64,	/* default of FI_OPT_MIN_MULTI_RECV */
	LOOP_IOV	= 16,
	LOOP_RMA_IOV	= 4,
	LOOP_MAX_ATOMIC	= SZ_1K, /* bytes of operands and of values to compare with */
	LOOP_MR_PAGES	= 512,
	LOOP_MR_CNT	= 4096,
	LOOP_EP_CNT	= 1024,
	LOOP_BATCH	= 16,	/* operations per pass of a worker */
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
 * @id: id of the endpoint
 */
struct loop_addr {
	u32	magic;
	u32	id;
};

/**
 * struct loop_device - a device
 * @name: name of the device and its domain
 * @present: the device hasn't been removed; under loop_lock_control
 * @domains: open domains of the device; under loop_lock_control
 * @refused: number of operations from peers that were refused
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
 * @dev: device of the domain
 * @list: in @dev->domains; under loop_lock_control
 * @eps: endpoints of the domain; under loop_lock_control
 * @gone: the device was removed; under loop_lock
 * @max_mrs: maximum number of open regions
 * @mrs: regions by slot; slots in use change under loop_lock
 * @next_mr: slot at which the search for a free one starts
 * @mr_generation: generation in keys, so that keys of a slot differ; under loop_lock
 * @mr_posted: regions to be registered or invalidated; under loop_lock
 * @mr_work: registers and invalidates @mr_posted
 */
struct loop_domain {
	struct fid_domain	domain_fid;
	struct loop_device	*dev;
	struct list_head	list;
	struct list_head	eps;
	bool			gone;
	u32			max_mrs;
	struct xarray		mrs;
	u32			next_mr;
	u32			mr_generation;
	struct list_head	mr_posted;
	struct work_struct	mr_work;
};

/**
 * struct loop_av - an address vector
 * @av_fid: the object
 * @type: FI_AV_TABLE or FI_AV_MAP
 * @lock: serializes insertions and removals
 * @ids: endpoint ids by fi_addr_t, as value entries
 * @addrs: indices of @ids by endpoint id, as value entries
 * @uses: insertions minus removals by endpoint id, as value entries
 *
 * Data calls look up addresses without the lock.
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
 * enum loop_mr_state - state of a region
 * @LOOP_MR_IDLE: nothing is registered
 * @LOOP_MR_REGISTERING: fi_mr_post_reg() was called
 * @LOOP_MR_VALID: peers can access the region
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
 * @dom: domain of the region
 * @cq: completion queue of registrations, for regions of fi_mr_alloc()
 * @slot: index in @dom->mrs
 * @state: state of the registration; under loop_lock
 * @busy: number of operations that are using the region; under loop_lock
 * @idle: tasks that wait for @busy to become 0
 * @posted: in @dom->mr_posted; under loop_lock
 * @flags: flags of the posted request
 * @context: context of the posted request
 * @may: access that fi_mr_alloc() or fi_mr_regattr() permits, FI_REMOTE_READ and so on
 * @access: access that peers have, at most @may
 * @len: number of registered bytes
 * @npages: number of entries of @pages in use
 * @max_pages: size of @pages
 * @pages: the memory, in pieces of at most a page
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
 * struct loop_atomic - parts of an operation that only an atomic one has
 * @datatype: type of the elements
 * @op: the operation
 * @operand: the operands
 * @comparand: the values to compare with
 * @result: takes the old values
 */
struct loop_atomic {
	enum fi_datatype	datatype;
	enum fi_op		op;
	struct kofi_elements	operand;
	struct kofi_elements	comparand;
	struct kofi_elements	result;
};

/**
 * struct loop_op - an operation, in a slot of the endpoint that posted it
 * @list: in the free slots, in a list of @ep or of the target, or in a worker's batch;
 *	under loop_lock, except in a batch
 * @sent: in @ep->sent until a worker takes the operation; under loop_lock
 * @ep: the endpoint that posted the operation
 * @req: the request; moving data advances its iterator
 * @quiet: no completion on success
 * @kvec: copy of a single segment, as the caller's need not stay valid
 * @rma: copy of a single remote segment, as the caller's need not stay valid; all segments of an
 *	atomic operation
 * @atomic: for an atomic operation, what only that has
 * @post: for a receive, its link in loop_ep.match; under loop_lock
 * @msg: for a send, its link in loop_ep.match of @target; under loop_lock
 * @target: endpoint at which a send, read or write waits or from which it moves data; NULL for a
 *	free slot; under loop_lock
 * @claimed: the target has claimed this send; under loop_lock
 * @recv: the receive that a send was matched with
 * @kvec_in: piece of a multi-receive buffer that the send goes to
 * @last: the send is the last one that @recv takes
 * @busy: for a multi-receive buffer, number of messages being moved into it; under
 *	loop_lock
 * @canceled: a multi-receive buffer completes when @busy is 0; under loop_lock
 * @mrs: regions that a read or write uses, pinned
 * @buf: start of a message in a multi-receive buffer
 * @len: number of bytes moved
 * @olen: number of bytes that didn't fit
 * @err: positive errno, or 0
 * @prov_errno: enum loop_errno
 * @src_addr: for a receive, the sender
 * @inject: copy of the data of an inject
 */
struct loop_op {
	struct list_head	list;
	struct list_head	sent;
	struct loop_ep		*ep;
	struct kofi_req		req;
	bool			quiet;
	struct kvec		kvec;
	struct fi_rma_iov	rma[LOOP_RMA_IOV];
	struct loop_atomic	atomic;
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
	LOOP_EP_STOPPED,	/* being closed, or without device */
};

/**
 * struct loop_side - one direction of an endpoint
 * @base: the core's part; its size is the number of slots
 * @free: free slots; under loop_lock
 * @wanted: a post found no free slot, and the ULP hasn't been notified since; under
 *	loop_lock
 */
struct loop_side {
	struct kofi_side	base;
	struct list_head	free;
	bool			wanted;
};

/**
 * struct loop_ep - an endpoint
 * @ep_fid: the object
 * @dom: domain of the endpoint
 * @list: in @dom->eps; under loop_lock_control
 * @id: index in loop_eps, and part of the address
 * @caps: capabilities with which the endpoint was opened
 * @av: bound address vector
 * @tx: sending side
 * @rx: receiving side
 * @work: serves inbound operations
 * @page: buffer through which @work moves data
 * @ops: all slots
 * @state: open, enabled or stopped; under loop_lock
 * @stop_err: errno of operations that complete after the endpoint stopped; under loop_lock
 * @moving: number of this endpoint's sends, reads and writes that workers have taken;
 *	under loop_lock
 * @idle: tasks that wait for @moving to become 0
 * @sent: this endpoint's sends, reads and writes that wait at targets; under loop_lock
 * @min_multi_recv: FI_OPT_MIN_MULTI_RECV; under loop_lock
 * @as_msg: KOFI_OPT_AS_MSG; under loop_lock
 * @table: buckets of @match
 * @match: posted receives, and sends that wait for a receive; under loop_lock
 * @posting: receives that haven't been posted to @match yet; under loop_lock
 * @recvs: receives that are posted to @match; under loop_lock
 * @inbound: operations that target this endpoint; under loop_lock
 * @ready: sends that waited in @match and now have a receive; under loop_lock
 * @waiter: waits for the reserve of the queue for receives
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
	bool			as_msg;
	struct hlist_head	*table;
	struct kofi_match	match;
	struct list_head	posting;
	struct list_head	recvs;
	struct list_head	inbound;
	struct list_head	ready;
	struct kofi_cq_waiter	waiter;
};

/* main.c */

extern struct mutex loop_lock_control;	/* see the top of this file */
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

/* atomic.c */

int loop_atomic_ok(const struct kofi_req *req);
void loop_atomic_hold(struct loop_op *op, const struct kofi_req *req);
u64 loop_atomic_access(const struct loop_op *op);
void loop_move_atomic(struct loop_ep *ep, struct loop_op *op);
int loop_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		      struct fi_atomic_attr *attr, u64 flags);

static inline const struct kofi_atomic_req *loop_atomic_req(const struct kofi_req *req)
{
	return container_of(req, struct kofi_atomic_req, req);
}

/* ep.c */

extern struct xarray loop_eps;

int loop_ep_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, void *context);
void loop_ep_stop(struct loop_ep *ep, int err);
bool loop_ep_reserve(struct loop_ep *ep);

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
ssize_t loop_cancel_tag(struct fid_ep *ep_fid, u64 tag, void *context);
int loop_flush(struct fid_ep *ep_fid, fi_addr_t addr, unsigned int timeout_ms);
int loop_flush_tag(struct fid_ep *ep_fid, u64 tag, unsigned int timeout_ms);

/* progress.c */

void loop_ep_work(struct work_struct *work);
void loop_op_complete(struct loop_op *op);

#endif /* LOOP_H */
