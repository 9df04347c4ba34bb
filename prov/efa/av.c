// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address vectors: tables of (GID, queue pair number, Q_Key). Posts look up addresses
 * under RCU, by index; a removed entry is freed after a grace period. An address that is
 * inserted several times is in the vector once. It gets the lowest free index.
 *
 * Inserting an address creates its address handle, without which the device would
 * refuse RDMA from that peer. There is one handle per GID, so the handle identifies the GID.
 */
#include <linux/jhash.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "av.h"
#include "trace.h"

/* Size of the first table, which is allocated with the vector. */
#define KEFA_AV_BYTES	256

static struct kefa_av *to_kefa_av(struct fid_av *av)
{
	return container_of(av, struct kefa_av, av_fid);
}

/* Take the lock and enter a noio scope, like kefa_dev_lock(). */
static void kefa_av_lock(struct kefa_av *av)
{
	mutex_lock(&av->lock);
	av->noio = memalloc_noio_save();
}

static void kefa_av_unlock(struct kefa_av *av)
{
	unsigned int noio = av->noio;

	mutex_unlock(&av->lock);
	memalloc_noio_restore(noio);
}

static struct kefa_av_table *kefa_av_table_of(struct kefa_av *av)
{
	return rcu_dereference_protected(av->table,
					 lockdep_is_held(&av->lock));
}

static struct kefa_peer *kefa_av_at(struct kefa_av *av,
				    const struct kefa_av_table *table,
				    u32 index)
{
	return rcu_dereference_protected(table->peers[index],
					 lockdep_is_held(&av->lock));
}

/* Allocate a table that fills the memory that kmalloc() returns for it. */
static struct kefa_av_table *kefa_av_table_new(u32 size)
{
	const size_t each = sizeof_field(struct kefa_av_table, peers[0]) +
			    sizeof(u32);
	struct kefa_av_table *table;
	size_t bytes = roundup_pow_of_two(sizeof(*table) + size * each);

	bytes = max_t(size_t, bytes, KEFA_AV_BYTES);
	table = kvzalloc(bytes, GFP_KERNEL);
	if (table)
		table->size = (bytes - sizeof(*table)) / each;
	return table;
}

/*
 * --- lookup of addresses by their contents ---
 *
 * Only insertion and removal use the hash lists. They link indices (plus 1), and their heads
 * are behind the table. Peers may choose their addresses, so the hash has a secret seed:
 * peers can't make addresses share a list.
 */

static u32 *kefa_av_list(struct kefa_av *av, struct kefa_av_table *table,
			 const struct kefa_av_key *key)
{
	u32 hash = jhash(key, sizeof(*key), av->seed);
	u32 *lists = (u32 *)&table->peers[table->size];

	return &lists[reciprocal_scale(hash, table->size)];
}

static void kefa_av_link(struct kefa_av *av, struct kefa_av_table *table,
			 struct kefa_peer *peer)
{
	u32 *list = kefa_av_list(av, table, &peer->key);

	peer->next = *list;
	*list = peer->index + 1;
}

static void kefa_av_unlink(struct kefa_av *av, const struct kefa_peer *peer)
{
	struct kefa_av_table *table = kefa_av_table_of(av);
	u32 *link = kefa_av_list(av, table, &peer->key);

	while (*link != peer->index + 1)
		link = &kefa_av_at(av, table, *link - 1)->next;
	*link = peer->next;
}

static struct kefa_peer *kefa_av_find(struct kefa_av *av,
				      const struct kefa_av_key *key)
{
	struct kefa_av_table *table = kefa_av_table_of(av);
	u32 next = *kefa_av_list(av, table, key);
	struct kefa_peer *peer = NULL;

	for (; next; next = peer->next) {
		peer = kefa_av_at(av, table, next - 1);
		if (!memcmp(&peer->key, key, sizeof(*key)))
			return peer;
	}
	return NULL;
}

/* --- inserting --- */

/* Replace a table by a larger one. Posts may read the old one for an RCU grace period. */
static int kefa_av_grow(struct kefa_av *av, u32 index)
{
	struct kefa_av_table *old = kefa_av_table_of(av), *new;
	struct kefa_peer *peer;
	u32 i;

	if (index < old->size)
		return 0;
	new = kefa_av_table_new(index + 1);
	if (!new)
		return -ENOMEM;
	for (i = 0; i < old->size; i++) {
		peer = kefa_av_at(av, old, i);
		RCU_INIT_POINTER(new->peers[i], peer);
		if (peer)
			kefa_av_link(av, new, peer);
	}
	rcu_assign_pointer(av->table, new);
	kvfree_rcu(old, rcu);
	return 0;
}

static int kefa_av_publish(struct kefa_av *av, struct kefa_peer *peer)
{
	int ret, index;

	lockdep_assert_held(&av->lock);
	index = ida_alloc_max(&av->indices, S32_MAX - 1, GFP_KERNEL);
	if (index < 0)
		return index;
	peer->index = index;
	ret = kefa_av_grow(av, index);
	if (ret) {
		ida_free(&av->indices, index);
		return ret;
	}
	kefa_av_link(av, kefa_av_table_of(av), peer);
	rcu_assign_pointer(kefa_av_table_of(av)->peers[index], peer);
	return 0;
}

static void kefa_av_unpublish(struct kefa_av *av, struct kefa_peer *peer)
{
	kefa_av_unlink(av, peer);
	RCU_INIT_POINTER(kefa_av_table_of(av)->peers[peer->index], NULL);
	ida_free(&av->indices, peer->index);
}

/* --- users --- */

static void kefa_av_untell(struct kefa_av *av, const struct kefa_peer *peer,
			   struct kefa_av_user *until)
{
	struct kefa_av_user *user;

	list_for_each_entry(user, &av->users, list) {
		if (user == until)
			break;
		user->del(user, peer);
	}
}

static int kefa_av_tell(struct kefa_av *av, const struct kefa_peer *peer)
{
	struct kefa_av_user *user;
	int ret;

	list_for_each_entry(user, &av->users, list) {
		ret = user->add(user, peer);
		if (ret) {
			kefa_av_untell(av, peer, user);
			return ret;
		}
	}
	return 0;
}

/**
 * kefa_av_join() - register a user that keeps state for each address
 * @av: the address vector
 * @user: the user; its add() is called for all present addresses
 *
 * Context: Process context, without kefa_dev.lock; sleeps.
 * Return: 0, or the error of @user's add(), in which case del() has undone all calls.
 */
int kefa_av_join(struct kefa_av *av, struct kefa_av_user *user)
{
	struct kefa_av_table *table;
	struct kefa_peer *peer;
	int ret = 0;
	u32 i, n;

	kefa_av_lock(av);
	table = kefa_av_table_of(av);
	for (n = 0; n < table->size && !ret; n++) {
		peer = kefa_av_at(av, table, n);
		if (peer)
			ret = user->add(user, peer);
	}
	/* The last call failed, so undo those before it. */
	for (i = 0; ret && i + 1 < n; i++) {
		peer = kefa_av_at(av, table, i);
		if (peer)
			user->del(user, peer);
	}
	if (!ret)
		list_add_tail(&user->list, &av->users);
	kefa_av_unlock(av);
	return ret;
}

/**
 * kefa_av_leave() - undo kefa_av_join()
 * @av: the address vector
 * @user: the user
 *
 * Context: Process context, without kefa_dev.lock; sleeps.
 */
void kefa_av_leave(struct kefa_av *av, struct kefa_av_user *user)
{
	kefa_av_lock(av);
	list_del(&user->list);
	kefa_av_unlock(av);
}

/* Add an address, which takes over the caller's reference to the address handle. */
static int kefa_av_add(struct kefa_av *av, const struct kefa_av_key *key,
		       fi_addr_t *fi_addr)
{
	struct kefa_peer *peer;
	int ret;

	peer = kzalloc(sizeof(*peer), GFP_KERNEL);
	if (!peer)
		return -ENOMEM;
	peer->key = *key;
	peer->uses = 1;
	ret = kefa_av_publish(av, peer);
	if (ret) {
		kfree(peer);
		return ret;
	}
	ret = kefa_av_tell(av, peer);
	if (ret) {
		kefa_av_unpublish(av, peer);
		kfree_rcu_mightsleep(peer);
		return ret;
	}
	*fi_addr = peer->index;
	return 0;
}

static int kefa_av_insert_at(struct kefa_av *av, struct kefa_ah *ah,
			     const struct fi_efa_addr *addr, fi_addr_t *fi_addr)
{
	const struct kefa_av_key key = {
		.ah	= ah,
		.qpn	= addr->qpn,
		.qkey	= addr->qkey,
	};
	struct kefa_peer *peer;
	int ret = 0;

	lockdep_assert_held(&av->lock);
	peer = kefa_av_find(av, &key);
	if (!peer) {
		ret = kefa_av_add(av, &key, fi_addr);
	} else if (peer->uses < U32_MAX) {
		peer->uses++;
		*fi_addr = peer->index;
	} else {
		ret = -ENOSPC;
	}
	/* The address already has a reference, or adding it failed. */
	if (peer || ret)
		kefa_ah_put(ah);
	if (!peer)
		trace_kefa_peer(av->dom->dev->name, addr->gid, addr->qpn,
				*fi_addr, true, ret);
	return ret;
}

/*
 * Get an address handle. If the device has no room, peers that the ULP didn't insert give up
 * theirs.
 */
static struct kefa_ah *kefa_av_ah(struct kefa_av *av, const u8 *gid)
{
	struct kefa_ah *ah;

	kefa_dev_lock(av->dom->dev);
	do {
		ah = kefa_ah_get(av->dom, gid);
	} while ((PTR_ERR_OR_ZERO(ah) == -ENOMEM || PTR_ERR_OR_ZERO(ah) == -ENOSPC) &&
		 kefa_ahs_evict(av->dom));
	kefa_dev_unlock(av->dom->dev);
	return ah;
}

static int kefa_av_insert_one(struct kefa_av *av,
			      const struct fi_efa_addr *addr,
			      fi_addr_t *fi_addr)
{
	struct kefa_dev *dev = av->dom->dev;
	struct kefa_ah *ah;

	*fi_addr = FI_ADDR_NOTAVAIL;
	if (!memchr_inv(addr->gid, 0, sizeof(addr->gid)))
		return -EINVAL;
	ah = kefa_av_ah(av, addr->gid);
	if (!IS_ERR(ah))
		return kefa_av_insert_at(av, ah, addr, fi_addr);
	trace_kefa_peer(dev->name, addr->gid, addr->qpn, U32_MAX, true,
			PTR_ERR(ah));
	return PTR_ERR(ah);
}

static int kefa_av_insert(struct fid_av *av_fid, const void *addr, size_t count,
			  fi_addr_t *fi_addr, u64 flags, void *context)
{
	struct kefa_av *av = to_kefa_av(av_fid);
	struct fi_efa_addr one;
	int ret, err = 0, inserted = 0;
	fi_addr_t got;
	size_t i;

	kefa_av_lock(av);
	for (i = 0; i < count; i++) {
		memcpy(&one, addr + i * sizeof(one), sizeof(one));
		ret = kefa_av_insert_one(av, &one, &got);
		inserted += !ret;
		err = err ?: ret;
		if (fi_addr)
			fi_addr[i] = got;
	}
	kefa_av_unlock(av);
	return inserted ?: err;
}

static void kefa_av_del(struct kefa_av *av, struct kefa_peer *peer)
{
	lockdep_assert_held(&av->lock);
	trace_kefa_peer(av->dom->dev->name, peer->key.ah->gid, peer->key.qpn,
			peer->index, false, 0);
	kefa_av_untell(av, peer, NULL);
	kefa_av_unpublish(av, peer);
	kefa_ah_put(peer->key.ah);
	kfree_rcu_mightsleep(peer);
}

static int kefa_av_remove(struct fid_av *av_fid, fi_addr_t *fi_addr,
			  size_t count, u64 flags)
{
	struct kefa_av *av = to_kefa_av(av_fid);
	struct kefa_peer *peer;
	int ret = 0;
	size_t i;

	kefa_av_lock(av);
	for (i = 0; i < count; i++) {
		rcu_read_lock();
		peer = kefa_av_peer(av, fi_addr[i]);
		rcu_read_unlock();
		if (!peer)
			ret = -EINVAL;
		else if (!--peer->uses)
			kefa_av_del(av, peer);
	}
	kefa_av_unlock(av);
	return ret;
}

static int kefa_av_lookup(struct fid_av *av_fid, fi_addr_t fi_addr, void *addr,
			  size_t *addrlen)
{
	struct fi_efa_addr found = { };
	struct kefa_peer *peer;

	rcu_read_lock();
	peer = kefa_av_peer(to_kefa_av(av_fid), fi_addr);
	if (peer) {
		memcpy(found.gid, peer->key.ah->gid, sizeof(found.gid));
		found.qpn = peer->key.qpn;
		found.qkey = peer->key.qkey;
	}
	rcu_read_unlock();
	if (!peer)
		return -EINVAL;
	memcpy(addr, &found, min(*addrlen, sizeof(found)));
	*addrlen = sizeof(found);
	return 0;
}

/* Print an address in libfabric's format. */
static const char *kefa_av_straddr(struct fid_av *av_fid, const void *addr,
				   char *buf, size_t *len)
{
	struct fi_efa_addr from;

	memcpy(&from, addr, sizeof(from));
	*len = snprintf(buf, *len, "fi_addr_efa://[%pI6c]:%u:%u", from.gid,
			from.qpn, from.qkey) + 1;
	return buf;
}

static int kefa_av_close(struct fid *fid)
{
	struct kefa_av *av = container_of(fid, struct kefa_av, av_fid.fid);
	struct kefa_av_table *table;
	struct kefa_peer *peer;
	u32 i;

	kefa_av_lock(av);
	table = kefa_av_table_of(av);
	for (i = 0; i < table->size; i++) {
		peer = kefa_av_at(av, table, i);
		if (peer)
			kefa_av_del(av, peer);
	}
	kefa_av_unlock(av);
	kvfree(table);
	ida_destroy(&av->indices);
	kfree(av);
	return 0;
}

static const struct fi_ops kefa_av_fid_ops = {
	.close = kefa_av_close,
};

static const struct fi_ops_av kefa_av_ops = {
	.insert		= kefa_av_insert,
	.remove		= kefa_av_remove,
	.lookup		= kefa_av_lookup,
	.straddr	= kefa_av_straddr,
};

int kefa_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		 struct fid_av **av, void *context)
{
	struct kefa_av_table *table;
	struct kefa_av *new;

	new = kzalloc(sizeof(*new), GFP_KERNEL);
	table = kefa_av_table_new(0);
	if (!new || !table) {
		kvfree(table);
		kfree(new);
		return -ENOMEM;
	}
	/* For any type: posts check an fi_addr_t, which is cheap only for an index. */
	attr->type = FI_AV_TABLE;
	new->av_fid.fid.ops = &kefa_av_fid_ops;
	new->av_fid.ops = &kefa_av_ops;
	new->dom = to_kefa_domain(domain);
	mutex_init(&new->lock);
	RCU_INIT_POINTER(new->table, table);
	new->seed = get_random_u32();
	ida_init(&new->indices);
	INIT_LIST_HEAD(&new->users);
	*av = &new->av_fid;
	return 0;
}
