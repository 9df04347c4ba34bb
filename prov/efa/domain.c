// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Domains. When the device is removed, the domain destroys all its objects of the device,
 * and then does nothing until the ULP closes it.
 */
#include <linux/cpumask.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "ah.h"
#include "dma.h"
#include "domain.h"
#include "ep.h"
#include "kefa.h"
#include "mr.h"

/* SGEs of length 0 need a valid address, too. */
static int kefa_nothing_init(struct kefa_domain *dom)
{
	struct device *dma = dom->dev->dma;

	dom->nothing = (void *)get_zeroed_page(GFP_KERNEL);
	if (!dom->nothing)
		return -ENOMEM;
	dom->nothing_dma = kefa_dma_map(dma, virt_to_phys(dom->nothing), PAGE_SIZE,
					DMA_BIDIRECTIONAL);
	if (!dma_mapping_error(dma, dom->nothing_dma))
		return 0;
	free_page((unsigned long)dom->nothing);
	return -ENOMEM;
}

static void kefa_nothing_fini(struct kefa_domain *dom)
{
	kefa_dma_unmap(dom->dev->dma, dom->nothing_dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (!dom->refused.broken || dom->dev->silenced)
		free_page((unsigned long)dom->nothing);
}

static void kefa_pd_unmake(struct kefa_domain *dom)
{
	kefa_refused_abandon(&dom->refused);
	if (dom->refused.broken)
		kefa_hw_pd_abandon(dom->pd);
	else
		kefa_hw_pd_destroy(dom->pd);
	dom->pd = NULL;
}

static int kefa_domain_start(struct kefa_domain *dom)
{
	struct kefa_dev *dev = dom->dev;
	int ret;

	lockdep_assert_held(&dev->lock);
	if (dev->gone)
		return -ENODEV;
	ret = kefa_nothing_init(dom);
	if (ret)
		return ret;
	dom->pd = kefa_hw_pd_create(dev->ibdev);
	if (IS_ERR(dom->pd)) {
		ret = PTR_ERR(dom->pd);
		goto err_nothing;
	}
	ret = kefa_mrq_start(dom);
	if (ret)
		goto err_pd;
	list_add_tail(&dom->list, &dev->domains);
	return 0;

err_pd:
	kefa_pd_unmake(dom);
err_nothing:
	kefa_nothing_fini(dom);
	return ret;
}

/* Destroy the domain's objects of the device, after the queue pairs of all endpoints. */
static void kefa_domain_stop(struct kefa_domain *dom)
{
	lockdep_assert_held(&dom->dev->lock);
	dom->gone = true;
	list_del(&dom->list);
	kefa_mrq_stop(dom);
	kefa_mrs_remove(dom);
	kefa_ahs_remove(dom);
	kefa_pd_unmake(dom);
	kefa_nothing_fini(dom);
}

/**
 * kefa_domain_remove() - handle removal of a domain's device
 * @dom: the domain
 *
 * First new posts are refused, then the ULP is notified, then all outstanding operations
 * complete. This waits only for calls that can't sleep.
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_domain_remove(struct kefa_domain *dom)
{
	char name[FI_NAME_MAX];
	struct kefa_ep *ep;

	lockdep_assert_held(&dom->dev->lock);
	list_for_each_entry(ep, &dom->eps, list)
		kefa_ep_halt(ep, ENODEV);
	kefa_dev_name(dom->dev, name);
	kofi_device_removed(&dom->domain_fid.fid, name);
	synchronize_rcu();
	list_for_each_entry(ep, &dom->eps, list)
		kefa_ep_teardown(ep);
	kefa_domain_stop(dom);
}

static int kefa_domain_close(struct fid *fid)
{
	struct kefa_domain *dom = container_of(fid, struct kefa_domain,
					       domain_fid.fid);

	kefa_dev_lock(dom->dev);
	if (!dom->gone)
		kefa_domain_stop(dom);
	kefa_dev_unlock(dom->dev);
	cancel_delayed_work_sync(&dom->mrq.watch);
	cancel_delayed_work_sync(&dom->mrq.map_retry);
	cancel_work_sync(&dom->mrq.revoke);
	cancel_work_sync(&dom->mrq.work);
	compat_bh_cancel_sync(&dom->mrq.bh);
	kefa_ahs_fini(dom);
	kefa_dev_put(dom->dev);
	kfree(dom);
	return 0;
}

/* The driver's kernel verbs don't tell by which interconnect the device reaches memory. */
static int kefa_query_mr(struct fid_mr *mr, struct fi_efa_mr_attr *attr)
{
	if (!mr || !kefa_mr_is(mr) || !attr)
		return -EINVAL;
	*attr = (struct fi_efa_mr_attr){ };
	return 0;
}

static int kefa_domain_ops_open(struct fid *fid, const char *name, u64 flags, void **ops,
				void *context)
{
	static const struct fi_efa_ops_domain kefa_ops = {
		.query_mr = kefa_query_mr,
	};

	if (strcmp(name, FI_EFA_DOMAIN_OPS))
		return -EOPNOTSUPP;
	*ops = (void *)&kefa_ops;
	return 0;
}

static const struct fi_ops kefa_domain_fid_ops = {
	.close		= kefa_domain_close,
	.ops_open	= kefa_domain_ops_open,
};

static void kefa_domain_vector_mask(struct fid_domain *domain,
				    unsigned int vector, struct cpumask *mask)
{
	const struct kefa_dev *dev = to_kefa_domain(domain)->dev;
	unsigned int cpu;

	cpumask_clear(mask);
	for_each_possible_cpu(cpu)
		if (kefa_cpu_vector(dev, cpu) == vector)
			cpumask_set_cpu(cpu, mask);
}

/**
 * kefa_domain_endpoint() - open an endpoint of the type that the caller asks for
 * @domain: the domain
 * @info: fi_info that the endpoint is opened with
 * @ep: takes the endpoint
 * @context: unused
 *
 * Serves as fi_ops_domain.endpoint.
 *
 * Context: Process context; sleeps.
 * Return: 0, or a negative errno.
 */
int kefa_domain_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			 void *context)
{
	const struct kefa_fabric_kind * const *kind;
	struct kefa_domain *dom = to_kefa_domain(domain);
	const enum fi_ep_type type = info->ep_attr->type;

	for (kind = kefa_fabrics; *kind; kind++)
		if (!strcmp((*kind)->name, dom->fabric) &&
		    (type == FI_EP_UNSPEC || type == (*kind)->type))
			return (*kind)->open(dom, info, ep);
	return -EINVAL;
}

int kefa_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		     struct fid_domain **domain, void *context)
{
	const struct kefa_fabric_kind *kind;
	struct kefa_domain *dom;
	int ret;

	dom = kzalloc(sizeof(*dom), GFP_KERNEL);
	if (!dom)
		return -ENOMEM;
	kind = container_of(fabric, struct kefa_fabric, fabric_fid)->kind;
	dom->domain_fid.fid.ops = &kefa_domain_fid_ops;
	dom->domain_fid.ops = &kind->domain;
	dom->fabric = kind->name;
	INIT_LIST_HEAD(&dom->eps);
	kefa_pool_init(dom);
	dom->dev = kefa_dev_find(info->domain_attr->name);
	if (!dom->dev) {
		ret = -ENODEV;
		goto err_free;
	}
	if (info->domain_attr->mr_cnt > dom->dev->max_mr) {
		ret = -EINVAL;
		goto err_dev;
	}
	dom->atomic = !info->ep_attr || info->ep_attr->type != FI_EP_DGRAM;
	/* Otherwise each access would have to be synchronized with the device's. */
	dom->cpu_rma = kind->cpu_rma && kefa_dma_coherent(dom->dev->dma);
	xa_init(&dom->keys);
	dom->max_open = info->domain_attr->mr_cnt ?: dom->dev->max_mr;
	dom->domain_fid.device = dom->dev->dma;
	dom->domain_fid.vectors = dom->dev->vectors;
	dom->domain_fid.vector_mask = kefa_domain_vector_mask;
	kefa_refused_init(&dom->refused, dom->dev);
	ret = kefa_ahs_init(dom);
	if (ret)
		goto err_dev;
	kefa_dev_lock(dom->dev);
	ret = kefa_domain_start(dom);
	kefa_dev_unlock(dom->dev);
	if (ret)
		goto err_ahs;
	*domain = &dom->domain_fid;
	return 0;

err_ahs:
	kefa_ahs_fini(dom);
err_dev:
	kefa_dev_put(dom->dev);
err_free:
	kfree(dom);
	return ret;
}
