/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Address vectors: av.c. */
#ifndef KEFA_AV_H
#define KEFA_AV_H

#include <linux/idr.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <kofi/provider.h>
#include "ah.h"

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
 * struct kefa_av_user - an endpoint that keeps something for each address
 * @list: in kefa_av.users; kefa_av.lock
 * @add: an address is there: 0, or a negative errno, and it isn't
 * @del: an address that was added goes; its index may be another's afterwards
 *
 * Both are called under kefa_av.lock, in process context. The address handle has a use as
 * long as the address is there.
 */
struct kefa_av_user {
	struct list_head	list;
	int (*add)(struct kefa_av_user *user, const struct kefa_peer *peer);
	void (*del)(struct kefa_av_user *user, const struct kefa_peer *peer);
};

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
 * @users: endpoints that keep something for each address; @lock
 */
struct kefa_av {
	struct fid_av			av_fid;
	struct kefa_domain		*dom;
	struct mutex			lock;	/* insertions, removals */
	unsigned int			noio;
	struct kefa_av_table __rcu	*table;
	struct ida			indices;
	u32				seed;
	struct list_head		users;
};

int kefa_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		 struct fid_av **av, void *context);

int kefa_av_join(struct kefa_av *av, struct kefa_av_user *user);
void kefa_av_leave(struct kefa_av *av, struct kefa_av_user *user);

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

#endif /* KEFA_AV_H */
