// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Domains, completion queues, and the removal of a device. */
#include <linux/slab.h>
#include "loop.h"

static int loop_cq_close(struct fid *fid)
{
	struct loop_cq *cq = container_of(fid, struct loop_cq, cq.cq_fid.fid);

	kofi_cq_fini(&cq->cq);
	kfree(cq);
	return 0;
}

static const struct fi_ops loop_cq_fid_ops = {
	.close = loop_cq_close,
};

/* Protects loop_cq.starved. Not loop_lock, under which entries of the reserve are given back. */
static DEFINE_SPINLOCK(loop_starved_lock);

/* The reserve of the queue has room again: queue the workers that wait for it. */
static void loop_cq_replenished(struct kofi_cq *kcq)
{
	struct loop_cq *cq = to_loop_cq(kcq);
	struct loop_ep *ep, *next;

	spin_lock_bh(&loop_starved_lock);
	list_for_each_entry_safe(ep, next, &cq->starved, starved) {
		list_del_init(&ep->starved);
		queue_work(loop_wq, &ep->work);
	}
	spin_unlock_bh(&loop_starved_lock);
}

/**
 * loop_cq_reserve() - reserve an unsolicited entry in an endpoint's queue for receives
 * @ep: the endpoint, with a queue for receives
 *
 * Context: Process or softirq context, under loop_lock.
 * Return: false if there is none: then the endpoint's worker runs when there is.
 */
bool loop_cq_reserve(struct loop_ep *ep)
{
	struct kofi_cq *cq = ep->rx.base.cq;

	lockdep_assert_held(&loop_lock);
	if (!kofi_cq_reserve_unsolicited(cq))
		return true;
	spin_lock(&loop_starved_lock);
	list_move_tail(&ep->starved, &to_loop_cq(cq)->starved);
	spin_unlock(&loop_starved_lock);
	/* loop_cq_replenished() may have come before the endpoint was in the list. */
	return !kofi_cq_reserve_unsolicited(cq);
}

/**
 * loop_cq_forget() - don't run an endpoint's worker when its queue has room
 * @ep: the endpoint
 *
 * Context: Process or softirq context, under loop_lock.
 */
void loop_cq_forget(struct loop_ep *ep)
{
	lockdep_assert_held(&loop_lock);
	spin_lock(&loop_starved_lock);
	list_del_init(&ep->starved);
	spin_unlock(&loop_starved_lock);
}

static int loop_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
			struct fid_cq **cq, void *context)
{
	static const struct kofi_cq_config config = {
		.default_size	= 2 * LOOP_SLOTS,
		.max_size	= 64 * LOOP_SLOTS,
		.reserve	= LOOP_BATCH,
		.replenished	= loop_cq_replenished,
	};
	struct loop_cq *new;
	int ret;

	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	new->cq.cq_fid.fid.ops = &loop_cq_fid_ops;
	INIT_LIST_HEAD(&new->starved);
	ret = kofi_cq_init(&new->cq, attr, &config);
	if (ret) {
		kfree(new);
		return ret;
	}
	*cq = &new->cq.cq_fid;
	return 0;
}

/**
 * loop_domain_remove() - handle the removal of a domain's device
 * @dom: the domain
 *
 * Refuses new operations, notifies the ULP, and has the workers complete outstanding
 * operations. Doesn't wait.
 *
 * Context: Process context, under loop_lock_control.
 */
void loop_domain_remove(struct loop_domain *dom)
{
	struct loop_ep *ep;

	lockdep_assert_held(&loop_lock_control);
	list_del_init(&dom->list);
	spin_lock_bh(&loop_lock);
	dom->gone = true;
	spin_unlock_bh(&loop_lock);
	kofi_device_removed(&dom->domain_fid.fid, dom->dev->name);
	list_for_each_entry(ep, &dom->eps, list)
		loop_ep_stop(ep, ENODEV);
	queue_work(loop_wq, &dom->mr_work);
}

static int loop_domain_close(struct fid *fid)
{
	struct loop_domain *dom = container_of(fid, struct loop_domain,
					       domain_fid.fid);

	mutex_lock(&loop_lock_control);
	list_del(&dom->list);
	mutex_unlock(&loop_lock_control);
	cancel_work_sync(&dom->mr_work);
	xa_destroy(&dom->mrs);
	kfree(dom);
	return 0;
}

static const struct fi_ops loop_domain_fid_ops = {
	.close = loop_domain_close,
};

static const struct fi_ops_domain loop_domain_ops = {
	.av_open	= loop_av_open,
	.cq_open	= loop_cq_open,
	.endpoint	= loop_ep_open,
	.cntr_open	= kofi_cntr_open,
	.mr_regattr	= loop_mr_regattr,
	.mr_alloc	= loop_mr_alloc,
};

int loop_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		     struct fid_domain **domain, void *context)
{
	const size_t mr_cnt = info->domain_attr->mr_cnt;
	struct loop_domain *dom;

	if (mr_cnt > LOOP_MR_CNT)
		return -EINVAL;
	dom = kzalloc(sizeof(*dom), GFP_KERNEL);
	if (!dom)
		return -ENOMEM;
	dom->max_mrs = mr_cnt ?: LOOP_MR_CNT;
	dom->domain_fid.fid.ops = &loop_domain_fid_ops;
	dom->domain_fid.ops = &loop_domain_ops;
	INIT_LIST_HEAD(&dom->eps);
	INIT_LIST_HEAD(&dom->mr_posted);
	xa_init_flags(&dom->mrs, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_BH);

	mutex_lock(&loop_lock_control);
	dom->dev = loop_device_find(info->domain_attr->name);
	if (!dom->dev) {
		mutex_unlock(&loop_lock_control);
		kfree(dom);
		return -ENODEV;
	}
	INIT_WORK(&dom->mr_work, loop_mr_work);
	list_add_tail(&dom->list, &dom->dev->domains);
	mutex_unlock(&loop_lock_control);
	*domain = &dom->domain_fid;
	return 0;
}
