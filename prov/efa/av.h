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
 * struct kefa_av_key - contents of an address, which identify it
 * @ah: address handle, the only one for its GID
 * @qpn: number of the queue pair
 * @qkey: Q_Key of the queue pair
 */
struct kefa_av_key {
	struct kefa_ah	*ah;
	u32		qpn;
	u32		qkey;
};

/**
 * struct kefa_peer - an address in a vector; freed after an RCU grace period
 * @key: the address
 * @index: index in the table, which is the fi_addr_t
 * @next: index of the next address in the same hash list, plus 1; under kefa_av.lock
 * @uses: number of insertions minus removals; under kefa_av.lock
 */
struct kefa_peer {
	struct kefa_av_key	key;
	u32			index;
	u32			next;
	u32			uses;
};

static_assert(sizeof(struct kefa_peer) <= 32);

/**
 * struct kefa_av_user - an endpoint that keeps state for each address
 * @list: in kefa_av.users; under kefa_av.lock
 * @add: an address is being inserted; a negative errno makes the insertion fail
 * @del: an added address is being removed; its index may be reused afterwards
 *
 * @add and @del are called under kefa_av.lock, in process context. The address holds a
 * reference to its address handle.
 */
struct kefa_av_user {
	struct list_head	list;
	int (*add)(struct kefa_av_user *user, const struct kefa_peer *peer);
	void (*del)(struct kefa_av_user *user, const struct kefa_peer *peer);
};

/**
 * struct kefa_av_table - addresses by their index
 * @rcu: frees the table after a larger one has replaced it
 * @size: number of entries
 * @peers: the addresses, or NULL; followed by the heads of @size hash lists, with which
 *	addresses are found by their contents
 */
struct kefa_av_table {
	struct rcu_head		rcu;
	u32			size;
	struct kefa_peer __rcu	*peers[];
};

/**
 * struct kefa_av - an address vector
 * @av_fid: the object
 * @dom: domain of the vector
 * @lock: serializes insertions and removals; taken before kefa_dev.lock
 * @noio: allocation scope of the task that holds @lock
 * @table: addresses by index; read under RCU
 * @indices: indices in use; under @lock
 * @seed: secret seed of the hash lists in @table
 * @users: endpoints that keep state for each address; under @lock
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
 * @addr: index of the address
 *
 * A table instead of an xarray, so that the time doesn't depend on the number of addresses.
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
