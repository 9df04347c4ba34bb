/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofiblk's transport, shared by client and server: a device's objects and its
 * queues, and posting that knows how to wait.
 *
 * A kb_fabric is a device, opened once for a role however many disks or sessions
 * use it, with one kb_queue (an endpoint and its completion queue) for each
 * vector. Whatever is posted is a kb_op; it is done exactly once.
 *
 * kb_fabrics_lock (mutex), kb_queue.credits_lock (mutex) > kb_queue.lock (spinlock,
 * BH off). No fi_*() control call is made under kb_queue.lock, no callback of a role
 * or an op is under any of them. The mutexes are held in a noio scope: a client may
 * have to open a device in order to write memory out. kb_fabric.down_lock (mutex) is
 * taken under none of them, and done() is called under it.
 */
#ifndef KOFIBLK_FABRIC_H
#define KOFIBLK_FABRIC_H

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
#include "wire.h"

struct kb_fabric;
struct kb_queue;

/**
 * struct kb_role - what a client and a server do differently
 * @name: for messages
 * @recv_len: longest message that may come; less if the device can't have it
 * @received: a message came; @buf is the queue's again after the return. Process
 *	context, not concurrently for one queue; must not sleep for long
 * @written: immediate data of an RDMA write came for a user of the queue: all that was
 *	written is there. Under RCU, and otherwise as @received. NULL: it is of no use
 * @gone: the device went away, or was found to be of no use; called once, from a
 *	work item, so control calls can be made. Users put the fabric in their time
 */
struct kb_role {
	const char	*name;
	size_t		recv_len;
	void		(*received)(struct kb_queue *q, void *buf, size_t len);
	void		(*written)(void *user, u32 data);
	void		(*gone)(struct kb_fabric *f);
};

/**
 * struct kb_select - which device
 * @prov: provider's name, or NULL for any
 * @fabric: fabric's name, or NULL for any
 * @domain: domain's name, or NULL for any
 * @owner: whose it is to be alone, or NULL for one that is shared by all others. A peer
 *	reaches no memory but that of its own domain, so owners are safe from each
 *	other's peers
 */
struct kb_select {
	char		*prov;
	char		*fabric;
	char		*domain;
	const char	*owner;
};

/**
 * struct kb_fabric - a device and what is open of it
 * @role: whose it is
 * @info: what it was opened with
 * @domain: for regions
 * @av: for peers
 * @max_msg: longest message
 * @max_rma: longest transfer
 * @can_write: the device has RDMA write
 * @can_imm: and immediate data of 32 bits with it
 * @owner: as in struct kb_select
 * @gone: the device went away; nothing more can be posted
 * @nqueues: entries of @queues
 * @queues: one for each vector
 */
struct kb_fabric {
	const struct kb_role	*role;
	struct fi_info		*info;
	struct fid_domain	*domain;
	struct fid_av		*av;
	size_t			max_msg;
	size_t			max_rma;
	bool			can_write;
	bool			can_imm;
	char			*owner;
	int			gone;	/* xchg() doesn't take less everywhere */
	u16			nqueues;
	struct kb_queue		*queues;
	/* private: fabric.c's */
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct work_struct	gone_work;
	struct mutex		down_lock;	/* whoever closes the endpoints */
	struct list_head	list;	/* kb_fabrics, under kb_fabrics_lock */
	unsigned int		refs;	/* likewise */
};

/**
 * enum kb_lane - what waits for the same thing, in order
 * @KB_LANE_SEND: sends, reads and writes
 * @KB_LANE_RECV: receives
 * @KB_LANE_REG: registrations
 * @KB_LANE_INVAL: invalidations, which may free what a registration lacks
 * @KB_LANES: how many there are
 */
enum kb_lane {
	KB_LANE_SEND,
	KB_LANE_RECV,
	KB_LANE_REG,
	KB_LANE_INVAL,
	KB_LANES,
};

/**
 * struct kb_op - something to be posted
 * @post: makes the fi_*() call, with @op as its context, and returns what that
 *	returns; -EAGAIN has it called again later, another error has @done
 *	called, but for -ENODEV: that waits until the endpoints are closed.
 *	Called in any context but hard IRQ, under RCU and no lock of ours
 * @done: it is over: @err is 0 or a negative errno, @len the bytes of a receive.
 *	Called once for each kb_submit(), in process context with BH on or, when
 *	it could not be posted, from kb_submit() itself. -ENODEV: it wasn't, and
 *	the endpoints are closed
 * @lane: where it waits if it has to
 * @list: private to fabric.c
 */
struct kb_op {
	int			(*post)(struct kb_queue *q, struct kb_op *op);
	void			(*done)(struct kb_queue *q, struct kb_op *op,
					int err, size_t len);
	enum kb_lane		lane;
	struct list_head	list;
};

/* Immediate data says by these bits whose it is: see kb_user_add(). */
#define KB_USERS		16
#define KB_IMM_USER(user)	((u32)(user) << 28)

/**
 * struct kb_queue - an endpoint and its completion queue
 * @fabric: the device
 * @index: in the device's queues
 * @ep: where operations are posted
 * @cq: where they complete, regions' too
 * @addrlen: bytes of @addr
 * @addr: the endpoint's, for peers
 */
struct kb_queue {
	struct kb_fabric	*fabric;
	u16			index;
	struct fid_ep		*ep;
	struct fid_cq		*cq;
	size_t			addrlen;
	u8			addr[KB_ADDR_MAX];
	/* private: fabric.c's */
	bool			up;		/* there may be data calls, under RCU */
	spinlock_t		lock;		/* protects closed to pump_again */
	bool			closed;		/* nothing waits any more */
	struct list_head	lanes[KB_LANES]; /* kb_op that found no room */
	bool			pumping;	/* somebody posts them */
	bool			pump_again;	/* and has to once more */
	void __rcu		*users[KB_USERS]; /* under credits_lock, or RCU */
	struct mutex		credits_lock;	/* protects what follows */
	u32			promised;	/* receives */
	u32			recvs;		/* that are posted, or used */
	u32			recvs_max;
	size_t			recv_len;
	struct list_head	bufs;		/* kb_bufs */
};

/**
 * kb_fabric_get() - a device for a role, opened if it isn't yet
 * @role: whose it is to be; roles don't share
 * @select: which device
 *
 * Context: Process, sleeps.
 * Return: the device, to be put; or an error pointer: -ENODATA if there is none.
 */
struct kb_fabric *kb_fabric_get(const struct kb_role *role,
				const struct kb_select *select);

/**
 * kb_fabric_put() - undo kb_fabric_get()
 * @f: the device. When the last one closes it all its ops are done, its peers put
 *	and its regions closed
 *
 * Context: Process, sleeps. Not from a callback of a role or an op.
 */
void kb_fabric_put(struct kb_fabric *f);

/**
 * kb_fabric_lost() - give a device up
 * @f: the device, as if it had been removed: all its ops are done soon, those that
 *	a peer keeps from it too, and its role hears that it is gone
 *
 * Context: Process or softirq.
 */
void kb_fabric_lost(struct kb_fabric *f);

/**
 * kb_peer_get() - have a peer's address
 * @f: the device
 * @addr: the address, of as many bytes as those of the queues
 * @peer: takes what it is called here, the same for each who has it
 *
 * Context: Process, sleeps.
 * Return: 0, or a negative errno: -EADDRNOTAVAIL if the device can't reach it.
 */
int kb_peer_get(struct kb_fabric *f, const void *addr, fi_addr_t *peer);

/**
 * kb_peer_put() - undo kb_peer_get()
 * @f: the device
 * @peer: the peer
 *
 * Context: Process, sleeps.
 */
void kb_peer_put(struct kb_fabric *f, fi_addr_t peer);

/**
 * kb_credits_take() - promise receives to a peer, and see that they are there
 * @q: the queue
 * @want: how many messages the peer may have under way
 *
 * Context: Process, sleeps.
 * Return: how many it may, at most @want; 0 if there is no room.
 */
u32 kb_credits_take(struct kb_queue *q, u32 want);

/**
 * kb_credits_give() - undo kb_credits_take()
 * @q: the queue
 * @n: what was taken
 *
 * Context: Process, sleeps.
 */
void kb_credits_give(struct kb_queue *q, u32 n);

/**
 * kb_user_add() - have immediate data that comes on a queue
 * @q: the queue
 * @user: for kb_role.written
 *
 * Context: Process, sleeps.
 * Return: a number: data with KB_IMM_USER() of that is for @user. Or -ENOSPC.
 */
int kb_user_add(struct kb_queue *q, void *user);

/**
 * kb_user_del() - undo kb_user_add()
 * @q: the queue
 * @user: may be called until an RCU grace period has passed; it may not be a user at all
 *
 * Context: Process, sleeps.
 */
void kb_user_del(struct kb_queue *q, void *user);

/**
 * kb_submit() - post an operation, now or as soon as there is room
 * @q: the queue
 * @op: the operation; its memory stays until it is done
 *
 * Context: Process or softirq; doesn't sleep.
 */
void kb_submit(struct kb_queue *q, struct kb_op *op);

/**
 * struct kb_rma - a transfer between local pages and a peer's region
 * @op: op.done is the caller's
 * @peer: whose memory
 * @iov: it, but for the length
 * @has_imm: of a write: the peer is sent @imm when all data is there
 * @imm: its immediate data
 * @iter: the local pages, bvec that are the caller's until @op is done: ITER_SOURCE
 *	for a write to the peer, ITER_DEST for a read
 */
struct kb_rma {
	struct kb_op		op;
	fi_addr_t		peer;
	struct fi_rma_iov	iov;
	bool			has_imm;
	u32			imm;
	struct iov_iter		iter;
};

/**
 * kb_rma_submit() - begin a transfer
 * @q: the queue
 * @rma: the transfer, of at most kb_fabric.max_rma bytes; op.post is filled in
 *
 * Context: Process or softirq; doesn't sleep.
 */
void kb_rma_submit(struct kb_queue *q, struct kb_rma *rma);

#endif /* KOFIBLK_FABRIC_H */
