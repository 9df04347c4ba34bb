// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address vectors. A vector of either type has each endpoint's id once, however often it
 * was inserted. In a table the fi_addr_t is a small index, in a map it is the address
 * itself.
 */
#include <linux/slab.h>
#include "loop.h"

static fi_addr_t loop_map_addr(u32 id)
{
	return (fi_addr_t)LOOP_ADDR_MAGIC << 32 | id;
}

/**
 * loop_av_to_id() - look up the endpoint of an fi_addr_t
 * @av: the address vector
 * @addr: the fi_addr_t
 * @id: takes the endpoint's id
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or -EHOSTUNREACH when @addr isn't in the vector.
 */
int loop_av_to_id(struct loop_av *av, fi_addr_t addr, u32 *id)
{
	void *entry;

	if (av->type == FI_AV_MAP) {
		*id = lower_32_bits(addr);
		return addr == loop_map_addr(*id) && xa_load(&av->addrs, *id) ?
		       0 : -EHOSTUNREACH;
	}
	entry = addr <= U32_MAX ? xa_load(&av->ids, addr) : NULL;
	if (!entry)
		return -EHOSTUNREACH;
	*id = xa_to_value(entry);
	return 0;
}

/**
 * loop_av_to_addr() - look up the fi_addr_t of an endpoint
 * @av: the address vector
 * @id: the endpoint's id
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: the fi_addr_t, or FI_ADDR_NOTAVAIL.
 */
fi_addr_t loop_av_to_addr(struct loop_av *av, u32 id)
{
	void *entry = xa_load(&av->addrs, id);

	if (!entry)
		return FI_ADDR_NOTAVAIL;
	return av->type == FI_AV_MAP ? loop_map_addr(id) : xa_to_value(entry);
}

static unsigned long loop_av_uses(struct loop_av *av, u32 id)
{
	void *entry = xa_load(&av->uses, id);

	return entry ? xa_to_value(entry) : 0;
}

static int loop_av_use(struct loop_av *av, u32 id)
{
	unsigned long uses = loop_av_uses(av, id);

	return xa_err(xa_store(&av->uses, id, xa_mk_value(uses + 1), GFP_KERNEL));
}

static void loop_av_unuse(struct loop_av *av, u32 id)
{
	unsigned long uses = loop_av_uses(av, id);

	/* Replacing an entry allocates nothing, so it can't fail. */
	if (uses > 1)
		xa_store(&av->uses, id, xa_mk_value(uses - 1), GFP_KERNEL);
	else
		xa_erase(&av->uses, id);
}

static int loop_av_add(struct loop_av *av, u32 id)
{
	u32 index = 0;
	int ret = 0;

	lockdep_assert_held(&av->lock);
	if (xa_load(&av->addrs, id))
		return 0;
	if (av->type == FI_AV_TABLE)
		ret = xa_alloc(&av->ids, &index, xa_mk_value(id), xa_limit_31b,
			       GFP_KERNEL);
	if (ret)
		return ret;
	ret = xa_err(xa_store(&av->addrs, id, xa_mk_value(index), GFP_KERNEL));
	if (ret && av->type == FI_AV_TABLE)
		xa_erase(&av->ids, index);
	return ret;
}

static int loop_av_insert_one(struct loop_av *av, u32 id)
{
	int ret = loop_av_use(av, id);

	if (ret)
		return ret;
	ret = loop_av_add(av, id);
	if (ret)
		loop_av_unuse(av, id);
	return ret;
}

static int loop_av_insert(struct fid_av *av_fid, const void *addr, size_t count,
			  fi_addr_t *fi_addr, u64 flags, void *context)
{
	struct loop_av *av = container_of(av_fid, struct loop_av, av_fid);
	const struct loop_addr *from = addr;
	int ret, err = 0, inserted = 0;
	size_t i;

	mutex_lock(&av->lock);
	for (i = 0; i < count; i++) {
		ret = from[i].magic == LOOP_ADDR_MAGIC ?
		      loop_av_insert_one(av, from[i].id) : -EINVAL;
		inserted += !ret;
		err = err ?: ret;
		if (fi_addr)
			fi_addr[i] = ret ? FI_ADDR_NOTAVAIL :
					   loop_av_to_addr(av, from[i].id);
	}
	mutex_unlock(&av->lock);
	return inserted ?: err;
}

static int loop_av_remove(struct fid_av *av_fid, fi_addr_t *fi_addr,
			  size_t count, u64 flags)
{
	struct loop_av *av = container_of(av_fid, struct loop_av, av_fid);
	int ret = 0;
	size_t i;
	u32 id;

	mutex_lock(&av->lock);
	for (i = 0; i < count; i++) {
		if (loop_av_to_id(av, fi_addr[i], &id)) {
			ret = -EINVAL;
			continue;
		}
		loop_av_unuse(av, id);
		if (loop_av_uses(av, id))
			continue;
		xa_erase(&av->addrs, id);
		if (av->type == FI_AV_TABLE)
			xa_erase(&av->ids, fi_addr[i]);
	}
	mutex_unlock(&av->lock);
	return ret;
}

static int loop_av_lookup(struct fid_av *av_fid, fi_addr_t fi_addr, void *addr,
			  size_t *addrlen)
{
	struct loop_av *av = container_of(av_fid, struct loop_av, av_fid);
	struct loop_addr found = { .magic = LOOP_ADDR_MAGIC };

	if (loop_av_to_id(av, fi_addr, &found.id))
		return -EINVAL;
	memcpy(addr, &found, min(*addrlen, sizeof(found)));
	*addrlen = sizeof(found);
	return 0;
}

static const char *loop_av_straddr(struct fid_av *av_fid, const void *addr,
				   char *buf, size_t *len)
{
	const struct loop_addr *from = addr;

	*len = snprintf(buf, *len, "%s:%u", LOOP_NAME, from->id) + 1;
	return buf;
}

static int loop_av_close(struct fid *fid)
{
	struct loop_av *av = container_of(fid, struct loop_av, av_fid.fid);

	xa_destroy(&av->ids);
	xa_destroy(&av->addrs);
	xa_destroy(&av->uses);
	kfree(av);
	return 0;
}

static const struct fi_ops loop_av_fid_ops = {
	.close = loop_av_close,
};

static const struct fi_ops_av loop_av_ops = {
	.insert		= loop_av_insert,
	.remove		= loop_av_remove,
	.lookup		= loop_av_lookup,
	.straddr	= loop_av_straddr,
};

int loop_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		 struct fid_av **av, void *context)
{
	struct loop_av *new;

	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	new->av_fid.fid.ops = &loop_av_fid_ops;
	new->av_fid.ops = &loop_av_ops;
	new->type = attr->type;
	mutex_init(&new->lock);
	xa_init_flags(&new->ids, XA_FLAGS_ALLOC);
	xa_init(&new->addrs);
	xa_init(&new->uses);
	*av = &new->av_fid;
	return 0;
}
