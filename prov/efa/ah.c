// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address handles. The device's table of them is small and making one takes an
 * admin command, so a domain has one for each GID, used by all addresses there
 * and by operations that are under way: an address may be removed while the
 * device still works on something sent to it.
 *
 * Operations don't count as users, as all CPUs that send to a node would write to the
 * same line. When the last address goes a work item looks for operations at all
 * endpoints; those that have some tell once they are done. A post looks up the address
 * and takes its slot under one hold of kefa_ep.lock, so that this look, under the same
 * lock, finds it, or the post finds no address. Until then the handle can be had again.
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
	memcpy(ah->gid, gid, sizeof(ah->gid));
	ah->ah = kefa_hw_ah_create(dom->pd, gid);
	trace_kefa_ah(dom->dev->name, gid, true, PTR_ERR_OR_ZERO(ah->ah));
	if (IS_ERR(ah->ah)) {
		ret = PTR_ERR(ah->ah);
		goto err_free;
	}
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
	int ret = kefa_destroy_ah(&ah->dom->refused, ah->ah);

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

/* Which of them are operations under way to? */
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

/* Return: whether there was one that nobody used. */
static bool kefa_ahs_reap(struct kefa_domain *dom)
{
	struct kefa_ah *ah, *next;
	bool any = false;

	lockdep_assert_held(&dom->dev->lock);
	if (!kefa_ahs_unused(dom))
		return false;
	kefa_ahs_scan(dom);
	list_for_each_entry_safe(ah, next, &dom->ahs, list) {
		/* One that lost its users since the scan has the worker come again. */
		if (!atomic_read(&ah->users) && ah->seen != dom->ah_scan) {
			kefa_ah_destroy(ah);
			any = true;
		}
	}
	return any;
}

/**
 * kefa_ah_get() - have an address handle for a GID
 * @dom: the domain
 * @gid: where it leads
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
	ah = rhashtable_lookup_fast(&dom->ah_table, gid, kefa_ah_params);
	if (!ah)
		ah = kefa_ah_create(dom, gid);
	/* The device's table may be full of those that the worker hasn't come for. */
	if (IS_ERR(ah) && kefa_ahs_reap(dom))
		ah = kefa_ah_create(dom, gid);
	if (!IS_ERR(ah))
		atomic_inc(&ah->users);
	return ah;
}

/**
 * kefa_ahs_idle() - there is an address handle without users
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
 * kefa_ahs_remove() - the device went away: give all handles back to it
 * @dom: the domain, whose queue pairs are gone
 *
 * Addresses and operations keep theirs, which lead nowhere any more.
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
	INIT_WORK(&dom->ah_work, kefa_ah_work);
	return rhashtable_init(&dom->ah_table, &kefa_ah_params);
}

/* Nothing of the domain is open any more, so none has a user. */
void kefa_ahs_fini(struct kefa_domain *dom)
{
	cancel_work_sync(&dom->ah_work);
	kefa_dev_lock(dom->dev);
	kefa_ahs_reap(dom);
	WARN_ON_ONCE(!list_empty(&dom->ahs));
	kefa_dev_unlock(dom->dev);
	rhashtable_destroy(&dom->ah_table);
}
