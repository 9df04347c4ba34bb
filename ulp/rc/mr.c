// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions: see mr.h. */
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait_bit.h>
#include "conn.h"
#include "mr.h"

/**
 * krc_mrs_init() - initialize the regions of a link
 * @mrs: the regions
 */
void krc_mrs_init(struct krc_mrs *mrs)
{
	xa_init_flags(&mrs->xa, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
	spin_lock_init(&mrs->lock);
}

/**
 * krc_mrs_fini() - undo krc_mrs_init()
 * @mrs: the regions, of which none is left
 */
void krc_mrs_fini(struct krc_mrs *mrs)
{
	WARN_ON_ONCE(!xa_empty(&mrs->xa));
	xa_destroy(&mrs->xa);
}

/**
 * krc_mr_init() - initialize a region
 * @mr: the region, zeroed
 * @mrs: the link's regions
 * @pd: protection domain
 * @max_pages: most pages of a registration
 *
 * Context: Process, sleeps.
 * Return: 0 or -ENOMEM.
 */
int krc_mr_init(struct krc_mr *mr, struct krc_mrs *mrs, const void *pd, u32 max_pages)
{
	int ret;

	mr->mrs = mrs;
	mr->pd = pd;
	mr->max_pages = max_pages;
	spin_lock_init(&mr->lock);
	INIT_LIST_HEAD(&mr->owned);
	mr->lists = kcalloc(max_pages, 2 * sizeof(u64), GFP_KERNEL);
	if (!mr->lists)
		return -ENOMEM;
	mr->pending = mr->lists;
	mr->pages = mr->lists + max_pages;
	/* Cyclic, so that a late key of a peer meets no other region for long. */
	ret = xa_alloc_cyclic_irq(&mrs->xa, &mr->index, mr, XA_LIMIT(1, KRC_INDEX_MAX),
				  &mrs->next, GFP_KERNEL);
	if (ret < 0) {
		kfree(mr->lists);
		return -ENOMEM;
	}
	return 0;
}

static void krc_mr_disown(struct krc_mr *mr)
{
	lockdep_assert_held(&mr->mrs->lock);
	list_del_init(&mr->owned);
	WRITE_ONCE(mr->conn, NULL);
}

/* Return: true if nobody reaches the region's memory by its key. */
static bool krc_mr_is_idle(const struct krc_mr *mr)
{
	lockdep_assert_held(&mr->lock);
	return !mr->users && !mr->grant;
}

/* The last access has ended: wake those that wait for the region, but @by, which runs next. */
static void krc_mr_freed(struct krc_mr *mr, const struct krc_conn *by)
{
	struct krc_conn *waiter = mr->waiter;

	lockdep_assert_held(&mr->lock);
	WRITE_ONCE(mr->state, KRC_MR_FREE);
	mr->waiter = NULL;
	wake_up_var(&mr->users);
	if (mr->conn && mr->conn != by)
		krc_conn_kick(mr->conn);
	if (waiter) {
		krc_conn_kick(waiter);
		krc_conn_put(waiter);
	}
}

/*
 * No new access begins from here on. @by: the connection that runs next; with NULL, the caller
 * calls krc_grants_go(). @finished: the peer has finished with the region.
 */
static void krc_mr_end(struct krc_mr *mr, const struct krc_conn *by, bool finished)
{
	lockdep_assert_held(&mr->lock);
	if (mr->state != KRC_MR_VALID)
		return;
	WRITE_ONCE(mr->state, krc_mr_is_idle(mr) ? KRC_MR_FREE : KRC_MR_INVALIDATING);
	if (mr->grant)
		krc_grant_end(mr->grant, by, finished);
}

/**
 * krc_mr_ungranted() - a region's grant is over
 * @mr: the region, locked, without a grant
 * @by: a connection that runs next
 */
void krc_mr_ungranted(struct krc_mr *mr, const struct krc_conn *by)
{
	lockdep_assert_held(&mr->lock);
	if (mr->state == KRC_MR_INVALIDATING && !mr->users)
		krc_mr_freed(mr, by);
	else
		wake_up_var(&mr->users);
}

/* An access begins at once or not at all, so the last of them ends soon. */
static bool krc_mr_unused(struct krc_mr *mr)
{
	bool unused;

	spin_lock_irq(&mr->lock);
	unused = krc_mr_is_idle(mr);
	spin_unlock_irq(&mr->lock);
	return unused;
}

/*
 * Have a connection kicked when the region is free. Return: 0, or -EINVAL if another one waits
 * besides the owner: no ULP uses a region for three connections.
 */
static int krc_mr_wait(struct krc_mr *mr, struct krc_conn *c)
{
	lockdep_assert_held(&mr->lock);
	if (mr->conn == c || mr->waiter == c)
		return 0;
	if (mr->waiter)
		return -EINVAL;
	mr->waiter = krc_conn_get(c);
	return 0;
}

/*
 * A datagram of the region can be outstanding for as long as the device tries to send it. The end
 * of its connection gives the device up if need be.
 */
static void krc_mr_wait_unused(struct krc_mr *mr, struct krc_conn *owner)
{
	if (owner && !wait_var_event_timeout(&mr->users, krc_mr_unused(mr),
					     msecs_to_jiffies(krc_revoke_ms)))
		krc_stop(owner, KRC_BY_FAULT, -ETIMEDOUT);
	wait_var_event(&mr->users, krc_mr_unused(mr));
}

/**
 * krc_mr_fini() - undo krc_mr_init()
 * @mr: the region. Its memory must stay for an RCU grace period
 *
 * If the region is valid, it is invalidated.
 * Context: Process, sleeps until all accesses have ended.
 */
void krc_mr_fini(struct krc_mr *mr)
{
	struct krc_conn *owner;

	spin_lock_irq(&mr->mrs->lock);
	spin_lock(&mr->lock);
	mr->dying = true;
	krc_mr_end(mr, NULL, false);
	owner = !krc_mr_is_idle(mr) && mr->conn ? krc_conn_get(mr->conn) : NULL;
	krc_mr_disown(mr);
	spin_unlock(&mr->lock);
	spin_unlock_irq(&mr->mrs->lock);
	/* A grant has an owner, which keeps the queue; or else its connection is ending. */
	if (owner && owner->queue)
		krc_grants_go(owner->queue);
	krc_mr_wait_unused(mr, owner);
	/* It may wait for the region, and wasn't kicked, because it doesn't own it any more. */
	if (owner) {
		krc_conn_kick(owner);
		krc_conn_put(owner);
	}
	/* Only now, because krc_mr_busy() must find the region until then. */
	xa_erase_irq(&mr->mrs->xa, mr->index);
	kfree(mr->lists);
}

/**
 * krc_mr_map_begin() - begin to map pages for the next registration
 * @mr: the region
 *
 * Context: Any. ULPs map one after the other.
 */
void krc_mr_map_begin(struct krc_mr *mr)
{
	unsigned long flags;

	/* From here on no registration takes the pending list. */
	spin_lock_irqsave(&mr->lock, flags);
	mr->pending_nr = 0;
	mr->npending = 0;
	spin_unlock_irqrestore(&mr->lock, flags);
}

/**
 * krc_mr_map_page() - map a page
 * @mr: the region, after krc_mr_map_begin()
 * @addr: kernel address of the page
 *
 * Context: Any.
 * Return: 0, or -ENOMEM if the region has no room for another page.
 */
int krc_mr_map_page(struct krc_mr *mr, u64 addr)
{
	if (mr->npending == mr->max_pages)
		return -ENOMEM;
	mr->pending[mr->npending++] = addr;
	return 0;
}

/**
 * krc_mr_map_end() - the pages are mapped
 * @mr: the region, after krc_mr_map_begin()
 *
 * Context: Any.
 */
void krc_mr_map_end(struct krc_mr *mr)
{
	unsigned long flags;

	spin_lock_irqsave(&mr->lock, flags);
	/* 0 is no mapping. */
	if (!++mr->mappings)
		mr->mappings++;
	mr->pending_nr = mr->mappings;
	spin_unlock_irqrestore(&mr->lock, flags);
}

/**
 * krc_mr_mapping() - get the number of a region's latest mapping
 * @mr: the region
 *
 * Context: Any.
 * Return: the number, for krc_mr_map.nr.
 */
u32 krc_mr_mapping(struct krc_mr *mr)
{
	unsigned long flags;
	u32 nr;

	spin_lock_irqsave(&mr->lock, flags);
	nr = mr->mappings;
	spin_unlock_irqrestore(&mr->lock, flags);
	return nr;
}

static bool krc_map_ok(const struct krc_mr_map *map, u32 npages)
{
	u64 past, first = map->iova & ((1ULL << map->shift) - 1);

	return map->length && npages && !check_add_overflow(map->iova, map->length, &past) &&
	       map->length <= ((u64)npages << map->shift) - first;
}

/* Make the mapping that a registration names the active one. Return: 0, -EBUSY or -EINVAL. */
static int krc_mr_activate(struct krc_mr *mr, const struct krc_mr_map *map)
{
	bool again = map->nr == mr->pages_nr;

	lockdep_assert_held(&mr->lock);
	if (mr->dying || mr->state == KRC_MR_VALID || !map->nr ||
	    (!again && map->nr != mr->pending_nr) ||
	    !krc_map_ok(map, again ? mr->npages : mr->npending))
		return -EINVAL;
	if (mr->state != KRC_MR_FREE)
		return -EBUSY;
	if (!again) {
		swap(mr->pages, mr->pending);
		swap(mr->npages, mr->npending);
		swap(mr->pages_nr, mr->pending_nr);
	}
	mr->map = *map;
	mr->read = false;
	mr->gen++;
	WRITE_ONCE(mr->state, KRC_MR_VALID);
	return 0;
}

/* The lists of owners are locked if @owner changes. Return: as krc_mr_register(). */
static int krc_mr_register_locked(struct krc_mr *mr, struct krc_conn *c,
				  const struct krc_mr_map *map, bool owner, bool grant,
				  struct krc_mr_turn *turn)
{
	int ret;

	lockdep_assert_held(&mr->lock);
	/* It went to another connection before it was locked. */
	if (!owner && mr->conn != c)
		return -EINVAL;
	ret = krc_mr_activate(mr, map);
	if (!ret && owner) {
		list_move(&mr->owned, &c->mrs_owned);
		WRITE_ONCE(mr->conn, c);
	}
	if (ret == -EBUSY)
		ret = krc_mr_wait(mr, c) ?: -EBUSY;
	if (ret)
		return ret;
	*turn = (struct krc_mr_turn){ .index = mr->index, .gen = mr->gen };
	return (grant && krc_grant_begin(c, mr)) || mr->told;
}

static int krc_mr_register_found(struct krc_mr *mr, struct krc_conn *c,
				 const struct krc_mr_map *map, bool grant,
				 struct krc_mr_turn *turn)
{
	bool owner = READ_ONCE(mr->conn) != c;
	int ret;

	lockdep_assert_held(&c->lock);
	/* Two branches, so that sparse can follow the locks. */
	if (owner) {
		spin_lock(&mr->mrs->lock);
		spin_lock(&mr->lock);
		ret = krc_mr_register_locked(mr, c, map, owner, grant, turn);
		spin_unlock(&mr->lock);
		spin_unlock(&mr->mrs->lock);
	} else {
		spin_lock(&mr->lock);
		ret = krc_mr_register_locked(mr, c, map, owner, grant, turn);
		spin_unlock(&mr->lock);
	}
	return ret;
}

/**
 * krc_mr_register() - make a region's key valid
 * @c: the connection that registers it
 * @map: the mapping, and the key, which names the region
 * @grant: let the peer's device reach it, if possible
 * @turn: result, on success
 *
 * Context: krc_conn.lock is held.
 * Return: 0; 1 if krc_mr_key() has something to tell the peer; -EBUSY if the region will be free
 * later: then krc_conn_kick() is called for @c; or -EINVAL.
 */
int krc_mr_register(struct krc_conn *c, const struct krc_mr_map *map, bool grant,
		    struct krc_mr_turn *turn)
{
	struct krc_mr *mr;
	int ret = -EINVAL;

	lockdep_assert_held(&c->lock);
	/* Looked up again: the ULP may have freed the region since it posted the request. */
	rcu_read_lock();
	mr = xa_load(&c->mrs->xa, KRC_KEY_INDEX(map->key));
	if (mr && mr->pd == c->pd)
		ret = krc_mr_register_found(mr, c, map, grant, turn);
	rcu_read_unlock();
	return ret;
}

/*
 * Get the key of a registration's grant for the peer; or, if the peer may know a key of an earlier
 * one, tell that there is none now. Otherwise it could take the earlier one for that of this
 * registration, when the ULP's 8 bits of krc_key.rkey are the same again.
 */
static int krc_mr_key_locked(struct krc_mr *mr, const struct krc_conn *c, struct krc_key *key)
{
	const struct krc_grant *g = mr->grant;

	lockdep_assert_held(&mr->lock);
	*key = (struct krc_key){ .rkey = mr->map.key, .gen = mr->gen, .key = KRC_NO_KEY };
	if (g && g->state == KRC_GRANT_REGISTERING)
		return -EAGAIN;
	if (g) {
		key->key = g->key;
		key->delta = g->base - mr->map.iova;
		mr->told_others |= mr->told && mr->told != c;
		mr->told = c;
		return 1;
	}
	if (!mr->told)
		return 0;
	/* Peers of other connections aren't told now, so the next registrations tell, too. */
	mr->told_others |= mr->told != c;
	if (!mr->told_others)
		mr->told = NULL;
	return 1;
}

/**
 * krc_mr_key() - get what the peer has to know of a registration, before it learns the ULP's key
 * @c: the connection
 * @turn: the registration, from krc_mr_register()
 * @key: result
 *
 * Context: krc_conn.lock is held.
 * Return: 1; 0 if there is nothing to tell; or -EAGAIN while the device registers: then the
 * connection runs later.
 */
int krc_mr_key(struct krc_conn *c, const struct krc_mr_turn *turn, struct krc_key *key)
{
	struct krc_mr *mr;
	int ret = 0;

	lockdep_assert_held(&c->lock);
	rcu_read_lock();
	mr = xa_load(&c->mrs->xa, turn->index);
	if (mr) {
		spin_lock(&mr->lock);
		if (mr->gen == turn->gen && mr->state == KRC_MR_VALID)
			ret = krc_mr_key_locked(mr, c, key);
		spin_unlock(&mr->lock);
	}
	rcu_read_unlock();
	return ret;
}

/* The peer of @c may invalidate the key: it is valid, and the connection gave it to the peer. */
static bool krc_mr_is_peers(const struct krc_mr *mr, const struct krc_conn *c, u32 key)
{
	return mr->state == KRC_MR_VALID && mr->map.key == key && mr->conn == c &&
	       mr->map.access & KRC_ACCESS_REMOTE;
}

/*
 * Some ULPs let the peer write to every region, and it only reads from those of the ULP's writes.
 * Their grants cost as much as those that are used, unless the peer's device reads, too. A ULP may
 * invalidate by another connection, whose peer doesn't know the region.
 */
static void krc_mr_learn(const struct krc_mr *mr, struct krc_conn *c)
{
	lockdep_assert_held(&c->lock);
	lockdep_assert_held(&mr->lock);
	if (mr->state != KRC_MR_VALID || !mr->grant || mr->conn != c || c->can_read)
		return;
	if (!mr->read)
		c->only_read = 0;
	else if (c->only_read < KRC_ONLY_READ)
		c->only_read++;
}

/**
 * krc_mr_invalidate() - end a key's validity
 * @c: the connection by which this is asked for
 * @key: the key
 * @by_peer: the peer asks. Then the region must be valid, and of this connection
 * @turn: result, for krc_mr_busy()
 *
 * krc_conn_kick() is called for @c when the region is free, unless it is at the return.
 * Context: krc_conn.lock is held.
 * Return: 0 or -EINVAL.
 */
int krc_mr_invalidate(struct krc_conn *c, u32 key, bool by_peer, struct krc_mr_turn *turn)
{
	struct krc_mr *mr;
	int ret = -EINVAL;

	lockdep_assert_held(&c->lock);
	rcu_read_lock();
	mr = xa_load(&c->mrs->xa, KRC_KEY_INDEX(key));
	if (!mr || mr->pd != c->pd)
		goto out;
	spin_lock(&mr->lock);
	if (by_peer ? krc_mr_is_peers(mr, c, key) :
		      mr->state != KRC_MR_VALID || mr->map.key == key) {
		*turn = (struct krc_mr_turn){ .index = mr->index, .gen = mr->gen };
		krc_mr_learn(mr, c);
		krc_mr_end(mr, c, by_peer);
		ret = mr->state == KRC_MR_INVALIDATING ? krc_mr_wait(mr, c) : 0;
	}
	spin_unlock(&mr->lock);
out:
	rcu_read_unlock();
	return ret;
}

/**
 * krc_mr_busy() - check whether the end of a registration is complete
 * @mrs: the link's regions
 * @turn: from krc_mr_invalidate()
 *
 * Context: Any.
 * Return: true while accesses go on.
 */
bool krc_mr_busy(struct krc_mrs *mrs, const struct krc_mr_turn *turn)
{
	struct krc_mr *mr;
	unsigned long flags;
	bool busy = false;

	rcu_read_lock();
	mr = xa_load(&mrs->xa, turn->index);
	if (mr) {
		spin_lock_irqsave(&mr->lock, flags);
		busy = mr->gen == turn->gen && mr->state == KRC_MR_INVALIDATING;
		spin_unlock_irqrestore(&mr->lock, flags);
	}
	rcu_read_unlock();
	return busy;
}

/**
 * krc_mrs_revoke() - invalidate all regions that a connection has registered
 * @c: the connection, stopped
 *
 * Accesses by @c itself may go on after the return.
 * Context: Process.
 */
void krc_mrs_revoke(struct krc_conn *c)
{
	struct krc_mr *mr;

	spin_lock_irq(&c->mrs->lock);
	while ((mr = list_first_entry_or_null(&c->mrs_owned, struct krc_mr, owned))) {
		spin_lock(&mr->lock);
		krc_mr_end(mr, NULL, false);
		krc_mr_disown(mr);
		spin_unlock(&mr->lock);
	}
	spin_unlock_irq(&c->mrs->lock);
	krc_grants_go(c->queue);
}

static bool krc_mr_allows(const struct krc_mr *mr, const struct krc_conn *c, u32 key, u64 addr,
			  u64 len, u32 access)
{
	const struct krc_mr_map *map = &mr->map;

	/* A peer reaches only what its own connection has registered. */
	return mr->state == KRC_MR_VALID && map->key == key && mr->pd == c->pd &&
	       (!(access & KRC_ACCESS_REMOTE) || mr->conn == c) && !(access & ~map->access) &&
	       addr >= map->iova && len <= map->length && addr - map->iova <= map->length - len;
}

/**
 * krc_mr_use() - begin an access to a region
 * @c: the connection that needs it
 * @key: the key
 * @addr: the address
 * @len: number of bytes
 * @access: required KRC_ACCESS_* bits; none for reading by this side
 *
 * Context: Any.
 * Return: the region, for krc_mr_put(); or NULL if the access isn't allowed.
 */
struct krc_mr *krc_mr_use(struct krc_conn *c, u32 key, u64 addr, u64 len, u32 access)
{
	struct krc_mr *mr;
	unsigned long flags;
	bool allowed;

	rcu_read_lock();
	mr = xa_load(&c->mrs->xa, KRC_KEY_INDEX(key));
	if (mr) {
		spin_lock_irqsave(&mr->lock, flags);
		allowed = krc_mr_allows(mr, c, key, addr, len, access);
		mr->users += allowed;
		mr->read |= allowed && access & KRC_ACCESS_REMOTE_READ;
		spin_unlock_irqrestore(&mr->lock, flags);
		if (!allowed)
			mr = NULL;
	}
	rcu_read_unlock();
	return mr;
}

/**
 * krc_mr_hold() - begin another access like one that goes on
 * @mr: the region
 *
 * Context: Any.
 */
void krc_mr_hold(struct krc_mr *mr)
{
	unsigned long flags;

	spin_lock_irqsave(&mr->lock, flags);
	mr->users++;
	spin_unlock_irqrestore(&mr->lock, flags);
}

/**
 * krc_mr_put() - end an access
 * @mr: the region, or NULL
 *
 * Context: Any.
 */
void krc_mr_put(struct krc_mr *mr)
{
	unsigned long flags;

	if (!mr)
		return;
	/* Under RCU: the region's owner may free it as soon as it has no users. */
	rcu_read_lock();
	spin_lock_irqsave(&mr->lock, flags);
	if (!WARN_ON_ONCE(!mr->users) && !--mr->users) {
		if (mr->state == KRC_MR_INVALIDATING && !mr->grant)
			krc_mr_freed(mr, NULL);
		else
			wake_up_var(&mr->users);
	}
	spin_unlock_irqrestore(&mr->lock, flags);
	rcu_read_unlock();
}

/**
 * krc_mr_piece() - find memory of a region
 * @mr: the region, in use
 * @addr: address within the access
 * @len: bytes that are wanted; takes the number of those that are contiguous
 *
 * Context: Any.
 * Return: the memory.
 */
void *krc_mr_piece(const struct krc_mr *mr, u64 addr, u32 *len)
{
	u64 size = 1ULL << mr->map.shift;
	u64 offset = addr - mr->map.iova + (mr->map.iova & (size - 1));

	*len = min_t(u64, *len, size - (offset & (size - 1)));
	return (void *)(uintptr_t)(mr->pages[offset >> mr->map.shift] + (offset & (size - 1)));
}

/**
 * krc_mr_copy() - write into a region
 * @mr: the region, in use
 * @addr: address within the access
 * @data: the data
 * @len: bytes of @data
 *
 * Context: Any.
 */
void krc_mr_copy(const struct krc_mr *mr, u64 addr, const void *data, u32 len)
{
	u32 done, n;
	void *to;

	for (done = 0; done < len; done += n) {
		n = len - done;
		to = krc_mr_piece(mr, addr + done, &n);
		memcpy(to, data + done, n);
	}
}
