/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Address handles: ah.c. */
#ifndef KEFA_AH_H
#define KEFA_AH_H

#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/rhashtable-types.h>
#include <kofi/efa_ext.h>
#include "domain.h"
#include "slid.h"

/**
 * struct kefa_ah - an address handle, one for each GID of a domain
 * @rcu: frees the handle after a grace period, because posts read @gid under RCU
 * @list: in kefa_domain.ahs; under kefa_dev.lock
 * @node: in kefa_domain.ah_table; under kefa_dev.lock
 * @dom: domain of the handle
 * @users: number of addresses that use the handle. At 0 the worker destroys the handle once
 *	no operation uses it; until then it may be reused under kefa_dev.lock
 * @seen: kefa_domain.ah_scan when an operation was last seen; under kefa_dev.lock
 * @ah: the device's address handle; NULL after removal
 * @since: jiffies when the handle was created
 * @by_slid: in kefa_domain.slids, if @slid is known; under kefa_domain.slid_lock
 * @slid: number of the handle in completions, or KEFA_NO_SLID; under kefa_domain.slid_lock
 * @sure: @slid is confirmed, as slid.c explains, and doesn't change any more; under
 *	kefa_domain.slid_lock
 * @gid: GID of the peer's device
 */
struct kefa_ah {
	struct rcu_head		rcu;
	struct list_head	list;
	struct rhash_head	node;
	struct kefa_domain	*dom;
	atomic_t		users;
	u32			seen;
	struct ib_ah		*ah;
	unsigned long		since;
	struct hlist_node	by_slid;
	u16			slid;
	bool			sure;
	u8			gid[FI_EFA_GID_LEN];
};

/* Time in which peers that nobody vouches for can't have a handle created and destroyed. */
#define KEFA_AH_NEW_MS	1000

int kefa_ahs_init(struct kefa_domain *dom);
void kefa_ahs_fini(struct kefa_domain *dom);
struct kefa_ah *kefa_ah_find(struct kefa_domain *dom, const u8 *gid);
struct kefa_ah *kefa_ah_get(struct kefa_domain *dom, const u8 *gid);
bool kefa_ahs_evict(struct kefa_domain *dom);
void kefa_ahs_idle(struct kefa_domain *dom);
void kefa_ahs_remove(struct kefa_domain *dom);

/**
 * kefa_ah_is_new() - check whether an address handle was created a moment ago
 * @ah: the handle, to which there is a reference
 *
 * Context: Any.
 * Return: whether it was.
 */
static inline bool kefa_ah_is_new(const struct kefa_ah *ah)
{
	return time_before(jiffies, ah->since + msecs_to_jiffies(KEFA_AH_NEW_MS));
}

/**
 * kefa_ah_use() - take another reference to an address handle
 * @ah: the handle, to which there is a reference
 *
 * Context: Any.
 */
static inline void kefa_ah_use(struct kefa_ah *ah)
{
	atomic_inc(&ah->users);
}

/**
 * kefa_ah_put() - undo kefa_ah_get()
 * @ah: the handle
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kefa_ah_put(struct kefa_ah *ah)
{
	struct kefa_domain *dom = ah->dom;

	/* The handle may be freed right after the reference is dropped. */
	if (unlikely(atomic_dec_and_test(&ah->users)))
		kefa_ahs_idle(dom);
}

#endif /* KEFA_AH_H */
