/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The RDMA device that ULPs see.
 *
 *	link.c		rdma link add and delete, the device and its port
 *	verbs.c		completion queues, queue pairs, regions, work requests
 *	cm.c		iw_cm's connections, by sessions of kofi_cm
 *	setup.c		their set-ups: see cm.h
 *	listen.c	ULPs that listen
 *
 * A link is an ib_device. It stays when its device of kOFI goes: the port is down, queue pairs are
 * in error, and the device is opened again when it is back.
 *
 * Locks, outer ones first:
 *	krc_port_lock (mutex)		the TCP port
 *	krc_links_lock (mutex)		list of links
 *	krc_cm.lock (mutex)		state of a connection's set-up
 *	krc_listens_lock (mutex)	ULPs that listen; held while iw_cm queues a request
 *	xa_lock of krc_cms		set-ups by number, krc_cm.listener
 *	krc_link.lock (spinlock)	the open device, list of queue pairs
 *	krc_cms_lock (spinlock)		krc_qp.cm, krc_cm.qp
 *	krc_conn.lock			see conn.h
 *	krc_cq.lock
 */
#ifndef KRC_RDMA_H
#define KRC_RDMA_H

#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>
#include "net.h"

#define KRC_PORT	20886	/* of TCP, by default */
/* One work request of a target takes 128 KiB in pages, the first of which begins anywhere. */
#define KRC_SEND_SGES	33
#define KRC_QP_WR	8192
#define KRC_QPN_MAX	0xffffff
#define KRC_CQE		65536

struct krc_cm;

/**
 * struct krc_link - a link, which is an RDMA device
 * @ib: the RDMA device
 * @list: in krc_links, under krc_links_lock
 * @netdev: network device, with a reference
 * @mac: its address, as the GID
 * @owner: owner of its device of kOFI, as no other link has
 * @domain: name of the domain of kOFI, or NULL for any
 * @listens: krc_cm_listen() was called
 * @mrs: regions
 * @qpns: queue pairs by number
 * @lock: protects what follows
 * @net: the open device, or NULL. Only @open_work replaces it
 * @qps: queue pairs
 * @open_work: closes a device that is gone, and opens one
 * @up: the port is active
 */
struct krc_link {
	struct ib_device	ib;
	struct list_head	list;
	struct net_device	*netdev;
	u8			mac[ETH_ALEN];
	char			owner[32];
	char			*domain;
	bool			listens;
	struct krc_mrs		mrs;
	struct xarray		qpns;
	spinlock_t		lock;	/* protects what follows */
	struct krc_net		*net;
	struct list_head	qps;
	struct delayed_work	open_work;
	bool			up;
};

/**
 * struct krc_pd - a protection domain
 * @ib: ib_core's part
 */
struct krc_pd {
	struct ib_pd	ib;
};

/**
 * struct krc_cq - a completion queue
 * @ib: ib_core's part
 * @grow: protects @entries, and the growth of @ring
 * @entries: what the ULP has asked for, and all work requests of its queue pairs
 * @lock: protects what follows
 * @ring: completions
 * @size: number of these, a power of two
 * @head: number of completions added
 * @tail: number of completions taken
 * @armed: the next completion calls the handler
 * @armed_at: @head at the time of arming, or less
 * @calling: the handler is being called
 * @overrun: completions were lost
 * @work: calls the handler, for completions of a call of the ULP
 */
struct krc_cq {
	struct ib_cq	ib;
	struct mutex	grow;	/* protects entries */
	u32		entries;
	spinlock_t	lock;	/* protects what follows */
	struct ib_wc	*ring;
	u32		size;
	u32		head;
	u32		tail;
	bool		armed;
	u32		armed_at;
	bool		calling;
	bool		overrun;
	struct work_struct work;
};

/**
 * struct krc_qp - a queue pair
 * @ib: ib_core's part
 * @c: the connection
 * @cap: limits
 * @signal_all: all work requests are signaled
 * @list: in krc_link.qps, under krc_link.lock
 * @net: device of the connection, with a reference, or NULL. Set before the connection is open
 * @peer: the peer, to be put with @net
 * @credits: receives of the queue that were reserved for it
 * @cm: set-up of the connection, or NULL, under krc_cms_lock
 */
struct krc_qp {
	struct ib_qp		ib;
	struct krc_conn		c;
	struct ib_qp_cap	cap;
	bool			signal_all;
	struct list_head	list;
	struct krc_net		*net;
	fi_addr_t		peer;
	u32			credits;
	struct krc_cm		*cm;
};

/**
 * struct krc_region - a memory region
 * @ib: ib_core's part
 * @mr: the engine's
 * @rcu: frees it
 */
struct krc_region {
	struct ib_mr	ib;
	struct krc_mr	mr;
	struct rcu_head	rcu;
};

static inline struct krc_link *to_krc_link(struct ib_device *ib)
{
	return container_of(ib, struct krc_link, ib);
}

static inline struct krc_cq *to_krc_cq(struct ib_cq *ib)
{
	return container_of(ib, struct krc_cq, ib);
}

static inline struct krc_qp *to_krc_qp(struct ib_qp *ib)
{
	return container_of(ib, struct krc_qp, ib);
}

static inline struct krc_qp *krc_qp_of(struct krc_conn *c)
{
	return container_of(c, struct krc_qp, c);
}

/* link.c */

extern unsigned int krc_port;
extern struct kulp_key *krc_key;

struct krc_link *krc_link_find(const struct sockaddr_storage *addr);
struct krc_net *krc_link_net(struct krc_link *link);

/* verbs.c */

extern const struct ib_device_ops krc_verbs_ops;

/* listen.c */

u16 krc_port_of(const struct sockaddr_storage *addr);
void krc_set_port(struct sockaddr_storage *addr, u16 port);
bool krc_listen_is(const struct ib_device *ib, const struct sockaddr_storage *addr);
int krc_listen_tell(const struct ib_device *ib, struct iw_cm_event *event);
int krc_listen_begin(struct iw_cm_id *id, int backlog);
int krc_listen_end(struct iw_cm_id *id);

/* cm.c */

extern const struct ib_device_ops krc_cm_ops;

void krc_cm_told(void *nr, const struct iw_cm_id *id);
void krc_cm_unheard(const struct iw_cm_id *id);
int krc_cm_listen(void);
void krc_cm_unlisten(void);
int krc_cm_init(void);
void krc_cm_exit(void);

#endif /* KRC_RDMA_H */
