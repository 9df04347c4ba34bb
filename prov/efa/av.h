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

#endif /* KEFA_AV_H */
