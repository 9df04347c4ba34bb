/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofiblk's transport, shared by client and server: a device's objects and its
 * queues, and posting of operations that wait if a queue is full.
 *
 * A kb_fabric is a device, opened once for a role and shared by disks or sessions,
 * with one kb_queue (an endpoint and its completion queue) for each interrupt
 * vector. Every operation is a kb_op, whose done() is called exactly once.
 *
 * kb_fabrics_lock (mutex), kb_queue.credits_lock (mutex) > kb_queue.lock (spinlock,
 * BH off). fi_*() control calls aren't made under kb_queue.lock, and callbacks of roles
 * or ops aren't made under any of these locks. The mutexes are held in a noio scope, because
 * a client may have to open a device in order to write memory out. kb_fabric.down_lock
 * (mutex) isn't taken under these locks; done() is called under it.
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

/* Functions that differ between client and server. */
struct kb_role {
	const char	*name;		/* for log messages */
	size_t		recv_len;	/* longest message; limited to what the device supports */
	/*
	 * Handle a message. The queue reuses @buf after the return. Process context, not
	 * concurrently for one queue; must not sleep for long.
	 */
	void		(*received)(struct kb_queue *q, void *buf, size_t len);
	/*
	 * Handle immediate data of an RDMA write for a user of the queue. The written data has
	 * arrived. Under RCU, and otherwise as received(). NULL: ignore such data.
	 */
	void		(*written)(void *user, u32 data);
	/*
	 * The device was removed or has failed. Called once, from a work item, so control calls
	 * are allowed. The users of the fabric put it later.
	 */
	void		(*gone)(struct kb_fabric *f);
};

/*
 * Names that select a device, NULL for any. @owner: name of the only user of the kb_fabric, or
 * NULL for one that all others share. A peer can only reach memory of its own domain, so owners
 * are protected from each other's peers.
 */
struct kb_select {
	char		*prov;
	char		*fabric;
	char		*domain;
	const char	*owner;
};

/* An open device. */
struct kb_fabric {
	const struct kb_role	*role;
	struct fi_info		*info;
	struct fid_domain	*domain;
	struct fid_av		*av;
	size_t			max_msg;	/* longest message in bytes */
	size_t			max_rma;	/* longest RDMA transfer in bytes */
	bool			can_write;	/* RDMA write */
	bool			can_imm;	/* RDMA write with 32 bits of immediate data */
	char			*owner;		/* name of the only user, or NULL */
	/* Nothing more can be posted. An int, as some architectures have no 8-bit xchg(). */
	int			gone;
	u16			nqueues;
	struct kb_queue		*queues;	/* one for each interrupt vector */
	/* Used only by fabric.c */
	struct fid_fabric	*fabric;
	struct fid_eq		*eq;
	struct work_struct	gone_work;
	struct mutex		down_lock;	/* serializes closing of endpoints */
	struct list_head	list;	/* kb_fabrics, under kb_fabrics_lock */
	unsigned int		refs;	/* under kb_fabrics_lock */
};

/* FIFOs of operations that wait for the same resource. */
enum kb_lane {
	KB_LANE_SEND,	/* sends, reads and writes */
	KB_LANE_RECV,
	KB_LANE_REG,
	KB_LANE_INVAL,	/* registrations may wait for the room that these free */
	KB_LANES,
};

/*
 * An operation.
 *
 * post() makes the fi_*() call with @op as its context, and returns its result. After -EAGAIN,
 * it is called again later. After -ENODEV, done() is called when the endpoints are closed; after
 * another error, at once. Called in any context but hard IRQ, under RCU, without locks of
 * fabric.c.
 *
 * done() is called once for each kb_submit(): @err is 0 or a negative errno, @len the bytes of a
 * receive. In process context with BH on or, if posting failed, from kb_submit() itself. -ENODEV
 * means that the operation wasn't posted and the endpoints are closed.
 */
struct kb_op {
	int			(*post)(struct kb_queue *q, struct kb_op *op);
	void			(*done)(struct kb_queue *q, struct kb_op *op,
					int err, size_t len);
	enum kb_lane		lane;
	struct list_head	list;
};

/* The upper bits of immediate data are the user number of kb_user_add(). */
#define KB_USERS		16
#define KB_IMM_USER(user)	((u32)(user) << 28)

/* An endpoint and its completion queue. */
struct kb_queue {
	struct kb_fabric	*fabric;
	struct fid_ep		*ep;		/* operations are posted to it */
	struct fid_cq		*cq;		/* of the endpoint and of regions */
	size_t			addrlen;
	u8			addr[KB_ADDR_MAX];	/* of the endpoint, for peers */
	/* Used only by fabric.c */
	bool			up;		/* data calls are allowed, under RCU */
	spinlock_t		lock;		/* protects closed to pump_again */
	bool			closed;		/* operations fail instead of waiting */
	struct list_head	lanes[KB_LANES]; /* waiting kb_op */
	bool			pumping;	/* a thread is posting waiting operations */
	bool			pump_again;	/* that thread must start over */
	void __rcu		*users[KB_USERS]; /* under credits_lock, or RCU */
	struct mutex		credits_lock;	/* protects what follows */
	u32			promised;	/* receives reserved for peers */
	u32			recvs;		/* receives that are posted or being handled */
	u32			recvs_max;	/* maximum of recvs */
	size_t			recv_len;
	struct list_head	bufs;		/* kb_bufs */
};

/**
 * kb_fabric_get() - get a device for a role, and open it if necessary
 * @role: the role; roles don't share kb_fabrics
 * @select: selects the device
 * Context: Process, sleeps.
 * Return: the device with a reference; or an error pointer: -ENODATA if there is none.
 */
struct kb_fabric *kb_fabric_get(const struct kb_role *role,
				const struct kb_select *select);

/**
 * kb_fabric_put() - undo kb_fabric_get()
 * @f: the device. Before the last reference is put, all ops must be done, all peers put
 *	and all regions closed
 * Context: Process, sleeps. Not from a callback of a role or an op.
 */
void kb_fabric_put(struct kb_fabric *f);

/**
 * kb_fabric_lost() - handle a device as if it had been removed
 * @f: the device. All its ops end soon, even those that a peer keeps from completing,
 *	and kb_role.gone is called
 * Context: Process or softirq.
 */
void kb_fabric_lost(struct kb_fabric *f);

/**
 * kb_peer_get() - insert a peer's address
 * @f: the device
 * @addr: the address, of the length of the queues' addresses
 * @peer: takes the peer, which is the same for all insertions of an address
 * Context: Process, sleeps.
 * Return: 0, or a negative errno: -EADDRNOTAVAIL if the device can't reach it.
 */
int kb_peer_get(struct kb_fabric *f, const void *addr, fi_addr_t *peer);

/**
 * kb_peer_put() - undo kb_peer_get()
 * @f: the device
 * @peer: the peer
 * Context: Process, sleeps.
 */
void kb_peer_put(struct kb_fabric *f, fi_addr_t peer);

/**
 * kb_credits_take() - reserve receives for a peer, and post them
 * @q: the queue
 * @want: number of messages that the peer may have outstanding
 * Context: Process, sleeps.
 * Return: the number of receives reserved, at most @want; 0 if the queue is full.
 */
u32 kb_credits_take(struct kb_queue *q, u32 want);

/**
 * kb_credits_give() - undo kb_credits_take()
 * @q: the queue
 * @n: number of receives to release
 * Context: Process, sleeps.
 */
void kb_credits_give(struct kb_queue *q, u32 n);

/**
 * kb_user_add() - register a user for immediate data on a queue
 * @q: the queue
 * @user: argument of kb_role.written
 * Context: Process, sleeps.
 * Return: the user number; immediate data with its KB_IMM_USER() is for @user. Or -ENOSPC.
 */
int kb_user_add(struct kb_queue *q, void *user);

/**
 * kb_user_del() - undo kb_user_add()
 * @q: the queue
 * @user: the user, registered or not. kb_role.written may run for it until an RCU grace
 *	period has passed
 * Context: Process, sleeps.
 */
void kb_user_del(struct kb_queue *q, void *user);

/**
 * kb_submit() - post an operation, now or as soon as the queue has room
 * @q: the queue
 * @op: the operation; valid until it is done
 * Context: Process or softirq; doesn't sleep.
 */
void kb_submit(struct kb_queue *q, struct kb_op *op);

/* A transfer between local pages and a peer's region. */
struct kb_rma {
	struct kb_op		op;	/* the caller sets op.done */
	fi_addr_t		peer;
	struct fi_rma_iov	iov;	/* address and key of the peer's memory */
	bool			has_imm;	/* for a write, send @imm after the data */
	u32			imm;
	/*
	 * The local pages, as bvecs that the caller keeps until @op is done: ITER_SOURCE for a
	 * write to the peer, ITER_DEST for a read.
	 */
	struct iov_iter		iter;
};

/**
 * kb_rma_submit() - begin a transfer
 * @q: the queue
 * @rma: the transfer, of at most kb_fabric.max_rma bytes; op.post is set here
 * Context: Process or softirq; doesn't sleep.
 */
void kb_rma_submit(struct kb_queue *q, struct kb_rma *rma);

#endif /* KOFIBLK_FABRIC_H */
