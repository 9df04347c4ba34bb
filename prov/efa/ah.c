// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address handles. The device's table of handles is small and creating a handle takes an
 * admin command, so a domain has one handle for each GID. All addresses with that GID use
 * the handle, and so do outstanding operations: an address may be removed while the device
 * still works on an operation to it.
 *
 * Operations don't take references, because then all CPUs that send to a node would write
 * to the same cache line. Instead, when the last address is removed, a work item scans the
 * operations of all endpoints. An endpoint whose operations use the handle queues the work
 * item again when they are done. A post looks up the address and takes its slot without
 * releasing kefa_ep.lock in between. So the scan, which takes the same lock, finds the
 * operation, or the post finds no address. Until the handle is destroyed it can be reused.
 */
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include "ah.h"
#include "dev.h"
#include "ep.h"
#include "kefa.h"
#include "trace.h"

static const struct rhashtable_params kefa_ah_params = {
	.key_len		= FI_EFA_GID_LEN,
	.key_offset		= offsetof(struct kefa_ah, gid),
	.head_offset		= offsetof(struct kefa_ah, node),
	.automatic_shrinking	= true,
};

static struct kefa_ah *kefa_ah_create(struct kefa_domain *dom, const u8 *gid)
{
	struct kefa_ah *ah;
	int ret;

	ah = kzalloc(sizeof(*ah), GFP_KERNEL);
	if (!ah)
		return ERR_PTR(-ENOMEM);
	ah->dom = dom;
	ah->slid = KEFA_NO_SLID;
	memcpy(ah->gid, gid, sizeof(ah->gid));
	ah->ah = kefa_create_ah(&dom->refused, dom->pd, gid);
	trace_kefa_ah(dom->dev->name, gid, true, PTR_ERR_OR_ZERO(ah->ah));
	if (IS_ERR(ah->ah)) {
		ret = PTR_ERR(ah->ah);
		goto err_free;
	}
	ah->since = jiffies;
	ret = rhashtable_insert_fast(&dom->ah_table, &ah->node,
				     kefa_ah_params);
	if (ret)
		goto err_destroy;
	list_add_tail(&ah->list, &dom->ahs);
	return ah;

err_destroy:
	kefa_destroy_ah(&dom->refused, ah->ah);
err_free:
	kfree(ah);
	return ERR_PTR(ret);
}

static void kefa_ah_give_back(struct kefa_ah *ah)
{
	struct kefa_dev *dev = ah->dom->dev;
	int ret;

	kefa_slid_forget(ah);
	ret = kefa_destroy_ah(&ah->dom->refused, ah->ah);
	trace_kefa_ah(dev->name, ah->gid, false, ret);
	ah->ah = NULL;
}

static void kefa_ah_destroy(struct kefa_ah *ah)
{
	struct kefa_domain *dom = ah->dom;

	if (ah->ah)
		kefa_ah_give_back(ah);
	rhashtable_remove_fast(&dom->ah_table, &ah->node, kefa_ah_params);
	list_del(&ah->list);
	kfree_rcu(ah, rcu);
}

/* Mark the handles that outstanding operations use. */
static void kefa_ahs_scan(struct kefa_domain *dom)
{
	struct kefa_ep *ep;

	dom->ah_scan++;
	list_for_each_entry(ep, &dom->eps, list) {
		spin_lock_bh(&ep->lock);
		ep->kind->scan(ep, dom->ah_scan);
		spin_unlock_bh(&ep->lock);
	}
}

static bool kefa_ahs_unused(struct kefa_domain *dom)
{
	struct kefa_ah *ah;

	list_for_each_entry(ah, &dom->ahs, list)
		if (!atomic_read(&ah->users))
			return true;
	return false;
}

/* Destroy the handles without users. Return: whether any was destroyed. */
static bool kefa_ahs_reap(struct kefa_domain *dom)
{
	struct kefa_ah *ah, *next;
	bool any = false;

	lockdep_assert_held(&dom->dev->lock);
	if (!kefa_ahs_unused(dom))
		return false;
	kefa_ahs_scan(dom);
	list_for_each_entry_safe(ah, next, &dom->ahs, list) {
		/* A handle that lost its last user after the scan queues the worker again. */
		if (!atomic_read(&ah->users) && ah->seen != dom->ah_scan) {
			kefa_ah_destroy(ah);
			any = true;
		}
	}
	return any;
}

/**
 * kefa_ah_find() - find the address handle for a GID
 * @dom: the domain
 * @gid: the GID
 *
 * Context: Any, under rcu_read_lock(), which keeps the handle's memory.
 * Return: the handle, without a reference, or NULL.
 */
struct kefa_ah *kefa_ah_find(struct kefa_domain *dom, const u8 *gid)
{
	return rhashtable_lookup(&dom->ah_table, gid, kefa_ah_params);
}

/**
 * kefa_ahs_evict() - evict peers in no address vector until a handle has no user
 * @dom: the domain, whose device has no room for more handles
 *
 * Idle peers lose nothing: their message numbers are remembered.
 *
 * Context: Process context, under kefa_dev.lock.
 * Return: whether a handle has no user now. kefa_ah_get() destroys it if it needs the room.
 */
bool kefa_ahs_evict(struct kefa_domain *dom)
{
	struct kefa_ep *ep;

	lockdep_assert_held(&dom->dev->lock);
	list_for_each_entry(ep, &dom->eps, list)
		while (ep->kind->evict && ep->kind->evict(ep))
			if (kefa_ahs_unused(dom))
				return true;
	return false;
}

/**
 * kefa_ah_get() - get or create the address handle for a GID
 * @dom: the domain
 * @gid: the GID
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: the handle, for kefa_ah_put(), or an ERR_PTR(): -EINVAL for a GID
 * that the device can't reach, -ENODEV, -ENOMEM, or the device's error.
 */
struct kefa_ah *kefa_ah_get(struct kefa_domain *dom, const u8 *gid)
{
	struct kefa_ah *ah;

	lockdep_assert_held(&dom->dev->lock);
	if (dom->gone)
		return ERR_PTR(-ENODEV);
	rcu_read_lock();
	ah = kefa_ah_find(dom, gid);
	rcu_read_unlock();
	if (!ah)
		ah = kefa_ah_create(dom, gid);
	/* The device's table may be full of unused handles that the worker hasn't destroyed. */
	if (IS_ERR(ah) && kefa_ahs_reap(dom))
		ah = kefa_ah_create(dom, gid);
	if (!IS_ERR(ah))
		atomic_inc(&ah->users);
	return ah;
}

/**
 * kefa_ahs_idle() - queue the worker that destroys unused address handles
 * @dom: the domain
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kefa_ahs_idle(struct kefa_domain *dom)
{
	queue_work(kefa_cmd_wq, &dom->ah_work);
}

static void kefa_ah_work(struct work_struct *work)
{
	struct kefa_domain *dom = container_of(work, struct kefa_domain,
					       ah_work);

	kefa_dev_lock(dom->dev);
	kefa_ahs_reap(dom);
	kefa_dev_unlock(dom->dev);
}

/**
 * kefa_ahs_remove() - destroy all handles because the device went away
 * @dom: the domain, whose queue pairs are destroyed
 *
 * Addresses and operations keep their struct kefa_ah, whose ah is then NULL.
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_ahs_remove(struct kefa_domain *dom)
{
	struct kefa_ah *ah;

	lockdep_assert_held(&dom->dev->lock);
	list_for_each_entry(ah, &dom->ahs, list)
		kefa_ah_give_back(ah);
}

int kefa_ahs_init(struct kefa_domain *dom)
{
	INIT_LIST_HEAD(&dom->ahs);
	kefa_slids_init(dom);
	INIT_WORK(&dom->ah_work, kefa_ah_work);
	return rhashtable_init(&dom->ah_table, &kefa_ah_params);
}

/* All objects of the domain are closed, so no handle has a user. */
void kefa_ahs_fini(struct kefa_domain *dom)
{
	cancel_work_sync(&dom->ah_work);
	kefa_dev_lock(dom->dev);
	kefa_ahs_reap(dom);
	WARN_ON_ONCE(!list_empty(&dom->ahs));
	kefa_dev_unlock(dom->dev);
	rhashtable_destroy(&dom->ah_table);
}
