// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Domains, completion queues, and the removal of a device. */
#include <linux/slab.h>
#include "loop.h"

static int loop_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
			struct fid_cq **cq, void *context)
{
	static const struct kofi_cq_config config = {
		.default_size	= 2 * LOOP_SLOTS,
		.max_size	= 64 * LOOP_SLOTS,
		.reserve	= LOOP_BATCH,
	};

	return kofi_cq_alloc(attr, &config, cq);
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
	.query_atomic	= loop_query_atomic,
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
