/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Library for ULPs, kofi_ulp.ko, namespace KOFI_ULP: a device's objects and its queues, and
 * posting of operations that wait if a queue is full. Messages aren't ordered, on any fabric.
 *
 * A kulp_fabric is a device, opened once for a role and shared by disks or sessions,
 * with one kulp_queue (an endpoint and its completion queue) for each interrupt
 * vector. Every operation is a kulp_op, whose done() is called exactly once.
 *
 * kulp_opening_lock (mutex) > kulp_fabrics_lock (mutex).
 * kulp_opening_lock, kulp_queue.credits_lock (mutex) > kulp_queue.lock (spinlock, BH off).
 * fi_*() control calls aren't made under kulp_queue.lock, and callbacks of roles
 * or ops aren't made under any of these locks. The mutexes are held in a noio scope, because
 * a client may have to open a device in order to write memory out. kulp_fabric.down_lock
 * (mutex) isn't taken under these locks; done() is called under it.
 */
#ifndef KOFI_ULP_H
#define KOFI_ULP_H

#include <linux/atomic.h>
#include <linux/bvec.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/uio.h>
#include <linux/workqueue.h>
#include <kofi/domain.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/rma.h>
#include <kofi/ulp_msg.h>

struct kulp_fabric;
struct kulp_queue;

/**
 * struct kulp_role - choices of a user of devices: one for a ULP, or for each of its sides
 * @name: name for log messages
 * @recv_len: longest message in bytes; limited to what the device supports
 * @min_queues: number of queues of a device even if there are fewer CPUs
 * @max_queues: maximum number of queues of a device, without those of kulp_select.polled
 * @messages_only: a device without RDMA will do
 * @rma: with @messages_only, the user makes RDMA reads and writes if the device can
 * @lazy: nobody waits for messages that are sent without FI_COMPLETION, except by kulp_expedite():
 *	see FI_LAZY_COMPLETION in fi_ep_bind()
 * @softirq: @received, @written, @drained and kulp_op.done don't sleep, so they may be called in
 *	softirq context or with softirqs off: see FI_CQ_SOFTIRQ
 * @softirq_too: each vector has a second queue, for which that is so, if the device has enough of
 *	them: kulp_fabric.nsoftirq
 * @received: handles a message. The queue reuses the buffer after the return. Process context
 *	unless @softirq or @softirq_too, not concurrently for one queue unless that is polled; must
 *	not sleep for long
 * @written: handles immediate data of an RDMA write for a user of the queue. The written data has
 *	arrived. Under RCU, and otherwise as @received. NULL: ignore such data
 * @drained: completions have been handled: called once for each batch of them, so that a user can
 *	collect what follows from several. As @received, but while the device fails, it may run
 *	concurrently for one queue. NULL: the user needs no such call
 * @gone: the device was removed or has failed. Called once, from a work item, so control calls
 *	are allowed. The users of the fabric put it later
 */
struct kulp_role {
	const char	*name;
	size_t		recv_len;
	u16		min_queues;
	u16		max_queues;
	bool		messages_only;
	bool		rma;
	bool		softirq;
	bool		softirq_too;
	bool		lazy;
	void		(*received)(struct kulp_queue *q, void *buf, size_t len);
	void		(*written)(void *user, u32 data);
	void		(*drained)(struct kulp_queue *q);
	void		(*gone)(struct kulp_fabric *f);
};

/**
 * struct kulp_select - selects a device: its names, each NULL for any, and what it must have
 * @prov: name of the provider
 * @fabric: name of the fabric
 * @domain: name of the domain
 * @owner: name of the only user of the kulp_fabric, or NULL for one that all others share. A peer
 *	can only reach memory of its own domain, so owners are protected from each other's peers
 * @polled: number of queues without a handler, for users that read them by kulp_poll(). There are
 *	fewer on a device or machine that hasn't as many completion queues or CPUs. The
 *	role's functions and kulp_op.done mustn't sleep
 */
struct kulp_select {
	char		*prov;
	char		*fabric;
	char		*domain;
	const char	*owner;
	unsigned int	polled;
};

/**
 * struct kulp_fabric - an open device
 * @role: its users' role
 * @info: what it was opened with
 * @domain: the device's domain
 * @av: the peers of all queues
 * @max_msg: longest message in bytes
 * @max_rma: longest RDMA transfer in bytes
 * @can_read: the device supports RDMA reads, and the role makes them
 * @can_write: the device supports RDMA writes, and the role makes them
 * @can_imm: the device supports RDMA writes with 32 bits of immediate data
 * @usual: a kulp_select that doesn't name a fabric gets this one
 * @parts: a message can have several packets, so that a receive ends with its sender
 * @owner: name of the only user, or NULL
 * @gone: nothing more can be posted. An int, as some architectures have no 8-bit xchg()
 * @nvectors: number of first queues, each with its own interrupt vector if the device has as many
 * @nsoftirq: number of second queues, whose handlers are called in softirqs: 0 or @nvectors
 * @nqueues: number of @queues
 * @npolled: number of @queues that are polled, the last ones
 * @queues: @nvectors first ones; then @nsoftirq second ones; and those that are polled
 * @polled: kulp_select.polled with which it was opened. Private to kofi_ulp, as all below
 * @fabric: the open fabric
 * @eq: tells of the device's removal
 * @gone_work: calls kulp_role.gone
 * @down_lock: serializes closing of endpoints
 * @list: in kulp_fabrics, under kulp_fabrics_lock
 * @refs: number of users, under kulp_fabrics_lock
 */
struct kulp_fabric {
	const struct kulp_role	*role;
	struct fi_info		*info;
	struct fid_domain	*domain;
	struct fid_av		*av;
	size_t			max_msg;
	size_t			max_rma;
	bool			can_read;
	bool			can_write;
	bool			can_imm;
	bool			usual;
	bool			parts;
	char			*owner;
	int			gone;
	u16			nvectors;
	u16			nsoftirq;
	u16			nqueues;
	u16			npolled;
	struct kulp_queue	*queues;
	unsigned int		polled;
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct work_struct	gone_work;
	struct mutex		down_lock;	/* serializes closing of endpoints */
	struct list_head	list;
	unsigned int		refs;
};

/**
 * kulp_fabric_protocol() - get the wire protocol of a device's endpoints
 * @f: the device
 *
 * Two fabrics of a provider may have addresses of the same format, and different protocols.
 * Context: Any.
 * Return: a number that is the same for both ends if they can communicate: FI_PROTO and version.
 */
static inline u32 kulp_fabric_protocol(const struct kulp_fabric *f)
{
	return f->info->ep_attr->protocol << 16 | (u16)f->info->ep_attr->protocol_version;
}

/**
 * enum kulp_lane - FIFOs of operations that wait for the same resource
 * @KULP_LANE_SEND: sends, reads and writes
 * @KULP_LANE_RECV: receives
 * @KULP_LANE_REG: registrations
 * @KULP_LANE_INVAL: invalidations, which free the room that registrations may wait for
 * @KULP_LANES: number of lanes
 */
enum kulp_lane {
	KULP_LANE_SEND,
	KULP_LANE_RECV,
	KULP_LANE_REG,
	KULP_LANE_INVAL,
	KULP_LANES,
};

/**
 * struct kulp_op - an operation
 * @post: makes the fi_*() call with the operation as its context, and returns its result. After
 *	-EAGAIN, it is called again later. After -ENODEV, @done is called when the endpoints are
 *	closed; after another error, at once. Called in any context but hard IRQ, under RCU,
 *	without locks of kofi_ulp
 * @done: called once for each kulp_submit(): @err is 0 or a negative errno, @len the bytes of a
 *	receive. In process context with BH on, unless kulp_role.softirq or kulp_role.softirq_too
 *	is set, or, if posting failed, from kulp_submit() itself.
 *	-ENODEV means that the operation wasn't posted and the endpoints are closed
 * @lane: what it waits for
 * @list: private to kofi_ulp
 */
struct kulp_op {
	int			(*post)(struct kulp_queue *q, struct kulp_op *op);
	void			(*done)(struct kulp_queue *q, struct kulp_op *op,
					int err, size_t len);
	enum kulp_lane		lane;
	struct list_head	list;
};

/* The upper bits of immediate data are the user number of kulp_user_add(). */
#define KULP_USERS		16
#define KULP_IMM_USER(user)	((u32)(user) << 28)

/**
 * struct kulp_queue - an endpoint and its completion queue
 * @fabric: the device
 * @ep: the endpoint, to which operations are posted
 * @cq: completion queue of the endpoint and of regions
 * @addrlen: bytes of @addr
 * @addr: the endpoint's address, for peers
 * @context: for the user of a device with an owner; NULL at first
 * @polled: there is no handler: operations complete in kulp_poll()
 * @up: data calls are allowed, under RCU. Private to kofi_ulp, as all below
 * @moved: time of the latest completion of a send, read or write, in jiffies
 * @ended: @ep's operations have ended for good; under kulp_fabric.down_lock
 * @lock: protects @closed to @pump_again
 * @closed: operations fail instead of waiting
 * @lanes: waiting operations
 * @nwaiting: their number, and the one that @pumping's thread tries to post. Unused once @closed
 * @pumping: a thread is posting waiting operations
 * @pump_again: that thread must start over
 * @users: users of immediate data, under @credits_lock, or RCU
 * @credits_lock: protects @users and what follows
 * @promised: receives reserved for peers
 * @recvs: receives that are posted or being handled
 * @recvs_max: maximum of @recvs
 * @recv_len: bytes of a receive
 * @bufs: memory of receives
 */
struct kulp_queue {
	struct kulp_fabric	*fabric;
	struct fid_ep		*ep;
	struct fid_cq		*cq;
	size_t			addrlen;
	u8			addr[KULP_ADDR_MAX];
	void			*context;
	bool			polled;
	bool			up;
	unsigned long		moved;
	bool			ended;
	spinlock_t		lock;		/* protects closed to pump_again */
	bool			closed;
	struct list_head	lanes[KULP_LANES];
	u32			nwaiting;
	bool			pumping;
	bool			pump_again;
	void __rcu		*users[KULP_USERS];
	struct mutex		credits_lock;	/* protects users and what follows */
	u32			promised;
	u32			recvs;
	u32			recvs_max;
	size_t			recv_len;
	struct list_head	bufs;
};

/**
 * kulp_queue_mr_ep() - choose what issues the registrations of a queue's regions
 * @q: the queue
 *
 * A domain has one queue of the device for the registrations of all endpoints, with one lock and
 * one interrupt vector. So on a device with several queues each endpoint registers its queue's
 * memory, and its reader finds the ends of registrations with all others. With a single queue
 * nothing contends, and the domain's queue takes fewer interrupts, because it doesn't share them
 * with the ends of sends.
 * Context: Any.
 * Return: fi_mr_alloc_attr.ep.
 */
static inline struct fid_ep *kulp_queue_mr_ep(const struct kulp_queue *q)
{
	return q->fabric->nqueues > 1 ? q->ep : NULL;
}

/**
 * kulp_fabric_get() - get a device for a role, and open it if necessary
 * @role: the role; roles don't share kulp_fabrics
 * @select: selects the device
 * Context: Process, sleeps.
 * Return: the device with a reference; or an error pointer: -ENODATA if there is none.
 */
struct kulp_fabric *kulp_fabric_get(const struct kulp_role *role, const struct kulp_select *select);

/**
 * kulp_fabric_put() - undo kulp_fabric_get()
 * @f: the device. Before the last reference is put, all peers must be put, all regions closed, and
 *	all ops done whose memory is freed afterwards. Others end before the return
 * Context: Process, sleeps. Not from a callback of a role or an op.
 */
void kulp_fabric_put(struct kulp_fabric *f);

/**
 * kulp_fabric_lost() - handle a device as if it had been removed
 * @f: the device. All its ops end soon, even those that a peer keeps from completing,
 *	and kulp_role.gone is called
 * Context: Process or softirq.
 */
void kulp_fabric_lost(struct kulp_fabric *f);

/**
 * kulp_fabric_end() - do what kulp_fabric_lost() does, and wait for it
 * @f: the device, of which the caller has a reference
 *
 * On return all endpoints are disabled, so peers don't reach memory of registered regions any more,
 * even if the device has refused to invalidate one. kulp_role.gone may still be to come.
 * Context: Process, sleeps. Not from a callback of a role or an op.
 */
void kulp_fabric_end(struct kulp_fabric *f);

/**
 * kulp_fabric_moves() - check that a device works for at least one peer
 * @f: the device
 * @since: a time in jiffies
 *
 * If it does, operations that don't complete wait for their peer, and kulp_fabric_lost() would harm
 * all others.
 * Context: Any.
 * Return: whether a send, read or write has completed without an error since then.
 */
bool kulp_fabric_moves(const struct kulp_fabric *f, unsigned long since);

/**
 * kulp_peer_get() - insert a peer's address
 * @f: the device
 * @addr: the address, of the length of the queues' addresses
 * @peer: takes the peer, which is the same for all insertions of an address
 * Context: Process, sleeps.
 * Return: 0, or a negative errno: -EADDRNOTAVAIL if the device can't reach it.
 */
int kulp_peer_get(struct kulp_fabric *f, const void *addr, fi_addr_t *peer);

/**
 * kulp_peer_put() - undo kulp_peer_get()
 * @f: the device
 * @peer: the peer
 * Context: Process, sleeps.
 */
void kulp_peer_put(struct kulp_fabric *f, fi_addr_t peer);

/**
 * kulp_credits_take() - reserve receives for a peer, and post them
 * @q: the queue
 * @want: number of messages that the peer may have outstanding
 * Context: Process, sleeps.
 * Return: the number of receives reserved, at most @want; 0 if the queue is full.
 */
u32 kulp_credits_take(struct kulp_queue *q, u32 want);

/**
 * kulp_credits_give() - undo kulp_credits_take()
 * @q: the queue
 * @n: number of receives to release
 * Context: Process, sleeps.
 */
void kulp_credits_give(struct kulp_queue *q, u32 n);

/**
 * kulp_user_add() - register a user for immediate data on a queue
 * @q: the queue
 * @user: argument of kulp_role.written
 * Context: Process, sleeps.
 * Return: the user number; immediate data with its KULP_IMM_USER() is for @user. Or -ENOSPC.
 */
int kulp_user_add(struct kulp_queue *q, void *user);

/**
 * kulp_user_del() - undo kulp_user_add()
 * @q: the queue
 * @user: the user, registered or not. kulp_role.written may run for it until an RCU grace
 *	period has passed
 * Context: Process, sleeps.
 */
void kulp_user_del(struct kulp_queue *q, void *user);

/**
 * kulp_expedite() - wait for messages that nobody waited for
 * @q: the queue, which its handler or another user of the caller's keeps
 *
 * For an operation that continues only when they have been sent: see kulp_role.lazy. Calls no
 * handler, so the caller may hold locks that handlers take.
 *
 * Context: Process or softirq; doesn't sleep.
 */
void kulp_expedite(struct kulp_queue *q);

/**
 * kulp_poll() - handle completions of a queue without a handler
 * @q: the queue. A user that has no other means to keep it does so by RCU
 *
 * Nobody else reads such a queue, nor posts its operations that wait. Somebody must call this in
 * time, and while waiting for the end of operations. Several tasks may do so at once: each
 * handles other completions, and kulp_role.received may run concurrently.
 *
 * Context: Process, with BH on; doesn't sleep. Calls kulp_role.received and kulp_op.done.
 * Return: the number of completions of this batch; 0 if there was none, or if the queue has a
 * handler or its device has failed.
 */
int kulp_poll(struct kulp_queue *q);

/**
 * kulp_submit() - post an operation, now or as soon as the queue has room
 * @q: the queue
 * @op: the operation; valid until it is done
 * Context: Process or softirq; doesn't sleep.
 */
void kulp_submit(struct kulp_queue *q, struct kulp_op *op);

/**
 * struct kulp_rma - a transfer between local pages and a peer's region
 * @op: the operation, whose kulp_op.done the caller sets
 * @peer: the peer
 * @iov: address and key of the peer's memory
 * @has_imm: for a write, send @imm after the data
 * @imm: immediate data
 * @iter: the local pages, as bvecs that the caller keeps until @op is done: ITER_SOURCE for a
 *	write to the peer, ITER_DEST for a read
 */
struct kulp_rma {
	struct kulp_op		op;
	fi_addr_t		peer;
	struct fi_rma_iov	iov;
	bool			has_imm;
	u32			imm;
	struct iov_iter		iter;
};

/**
 * kulp_rma_submit() - begin a transfer
 * @q: the queue
 * @rma: the transfer, of at most kulp_fabric.max_rma bytes; op.post is set here
 * Context: Process or softirq; doesn't sleep.
 */
void kulp_rma_submit(struct kulp_queue *q, struct kulp_rma *rma);

/**
 * kulp_rma_post() - post a transfer
 * @q: the queue
 * @op: kulp_rma.op of the transfer
 *
 * For an op.post of the caller's own that first checks whether the transfer may still begin, which
 * may have waited in its lane. The caller passes such a transfer to kulp_submit().
 * Context: Process or softirq; doesn't sleep.
 * Return: as kulp_op.post.
 */
int kulp_rma_post(struct kulp_queue *q, struct kulp_op *op);

#endif /* KOFI_ULP_H */
