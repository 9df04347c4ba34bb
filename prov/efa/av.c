// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address vectors: tables of (GID, queue pair, key). Posts look addresses up
 * under RCU, by index, and take a use of the address handle; a removed entry is
 * freed a grace period later. An address is in a vector once, and gets the
 * lowest free index.
 *
 * Inserting an address makes its address handle, without which the device would
 * refuse RDMA from there.
 */
#include <linux/slab.h>
#include "kefa.h"
#include "trace.h"

static const struct rhashtable_params kefa_av_params = {
	.key_len		= sizeof(struct kefa_av_key),
	.key_offset		= offsetof(struct kefa_peer, key),
	.head_offset		= offsetof(struct kefa_peer, node),
	.automatic_shrinking	= true,
};

static struct kefa_av *to_kefa_av(struct fid_av *av)
{
	return container_of(av, struct kefa_av, av_fid);
}

static int kefa_av_publish(struct kefa_av *av, struct kefa_peer *peer)
{
	int ret;

	lockdep_assert_held(&av->lock);
	ret = rhashtable_insert_fast(&av->by_key, &peer->node, kefa_av_params);
	if (ret)
		return ret;
	ret = xa_alloc(&av->peers, &peer->index, peer, xa_limit_31b,
		       GFP_KERNEL);
	if (ret)
		rhashtable_remove_fast(&av->by_key, &peer->node,
				       kefa_av_params);
	return ret;
}

static int kefa_av_add(struct kefa_av *av, const struct kefa_av_key *key,
		       fi_addr_t *fi_addr)
{
	struct kefa_dev *dev = av->dom->dev;
	struct kefa_peer *peer;
	int ret;

	lockdep_assert_held(&av->lock);
	peer = rhashtable_lookup_fast(&av->by_key, key, kefa_av_params);
	if (peer) {
		*fi_addr = peer->index;
		return 0;
	}
	peer = kzalloc(sizeof(*peer), GFP_KERNEL);
	if (!peer)
		return -ENOMEM;
	peer->key = *key;
	mutex_lock(&dev->lock);
	peer->ah = kefa_ah_get(av->dom, key->gid);
	mutex_unlock(&dev->lock);
	ret = PTR_ERR_OR_ZERO(peer->ah);
	if (ret)
		goto err_free;
	ret = kefa_av_publish(av, peer);
	if (ret)
		goto err_ah;
	*fi_addr = peer->index;
	trace_kefa_peer(dev->name, key, peer->index, true, 0);
	return 0;

err_ah:
	kefa_ah_put(peer->ah);
err_free:
	kfree(peer);
	trace_kefa_peer(dev->name, key, U32_MAX, true, ret);
	return ret;
}

static int kefa_av_insert_one(struct kefa_av *av,
			      const struct fi_efa_addr *addr,
			      fi_addr_t *fi_addr)
{
	struct kefa_av_key key = {
		.qkey	= addr->qkey,
		.qpn	= addr->qpn,
	};

	*fi_addr = FI_ADDR_NOTAVAIL;
	if (!memchr_inv(addr->gid, 0, sizeof(addr->gid)))
		return -EINVAL;
	memcpy(key.gid, addr->gid, sizeof(key.gid));
	return kefa_av_add(av, &key, fi_addr);
}

/* If none could be inserted, the reason is more of a help than the number. */
static int kefa_av_insert(struct fid_av *av_fid, const void *addr, size_t count,
			  fi_addr_t *fi_addr, u64 flags, void *context)
{
	struct kefa_av *av = to_kefa_av(av_fid);
	struct fi_efa_addr one;
	int ret, err = 0, inserted = 0;
	fi_addr_t got;
	size_t i;

	mutex_lock(&av->lock);
	for (i = 0; i < count; i++) {
		memcpy(&one, addr + i * sizeof(one), sizeof(one));
		ret = kefa_av_insert_one(av, &one, &got);
		inserted += !ret;
		err = err ?: ret;
		if (fi_addr)
			fi_addr[i] = got;
	}
	mutex_unlock(&av->lock);
	return inserted ?: err;
}

static void kefa_av_del(struct kefa_av *av, struct kefa_peer *peer)
{
	lockdep_assert_held(&av->lock);
	trace_kefa_peer(av->dom->dev->name, &peer->key, peer->index, false, 0);
	xa_erase(&av->peers, peer->index);
	rhashtable_remove_fast(&av->by_key, &peer->node, kefa_av_params);
	kefa_ah_put(peer->ah);
	kfree_rcu(peer, rcu);
}

static int kefa_av_remove(struct fid_av *av_fid, fi_addr_t *fi_addr,
			  size_t count, u64 flags)
{
	struct kefa_av *av = to_kefa_av(av_fid);
	struct kefa_peer *peer;
	int ret = 0;
	size_t i;

	mutex_lock(&av->lock);
	for (i = 0; i < count; i++) {
		rcu_read_lock();
		peer = kefa_av_peer(av, fi_addr[i]);
		rcu_read_unlock();
		if (peer)
			kefa_av_del(av, peer);
		else
			ret = -EINVAL;
	}
	mutex_unlock(&av->lock);
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
		memcpy(found.gid, peer->key.gid, sizeof(found.gid));
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

/* As libfabric prints it. */
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
	struct kefa_peer *peer;
	unsigned long index;

	mutex_lock(&av->lock);
	xa_for_each(&av->peers, index, peer)
		kefa_av_del(av, peer);
	mutex_unlock(&av->lock);
	xa_destroy(&av->peers);
	rhashtable_destroy(&av->by_key);
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
	struct kefa_av *new;
	int ret;

	/* Nothing but an index could be checked on the way of each post. */
	if (attr->type == FI_AV_MAP)
		return -EOPNOTSUPP;
	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	ret = rhashtable_init(&new->by_key, &kefa_av_params);
	if (ret) {
		kfree(new);
		return ret;
	}
	attr->type = FI_AV_TABLE;
	new->av_fid.fid.ops = &kefa_av_fid_ops;
	new->av_fid.ops = &kefa_av_ops;
	new->dom = to_kefa_domain(domain);
	mutex_init(&new->lock);
	xa_init_flags(&new->peers, XA_FLAGS_ALLOC);
	*av = &new->av_fid;
	return 0;
}
