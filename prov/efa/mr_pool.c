// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device's regions. Creating one takes an admin command, so a domain keeps idle regions
 * by size, up to a limit.
 *
 * A key has a generation of 4 bits, so a stale key becomes valid again after 16 registrations
 * of the same region. To delay that, the region that has been idle longest is reused first,
 * and a new region is created while few are idle.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include "mr.h"
#include "trace.h"

/* Minimum of idle regions before one is reused: the number of generations. */
#define KEFA_POOL_REST	16

void kefa_pool_init(struct kefa_domain *dom)
{
	int i;

	INIT_LIST_HEAD(&dom->mrs);
	for (i = 0; i < KEFA_MR_ORDERS; i++)
		INIT_LIST_HEAD(&dom->frmrs[i]);
}

static struct kefa_frmr *kefa_pool_take(struct kefa_domain *dom, u32 order)
{
	struct kefa_frmr *fr;

	lockdep_assert_held(&dom->dev->lock);
	fr = list_first_entry_or_null(&dom->frmrs[order], struct kefa_frmr,
				      list);
	if (fr) {
		list_del_init(&fr->list);
		dom->nidle[order]--;
	}
	return fr;
}

/**
 * kefa_pool_drop() - destroy a region of the device
 * @dom: the domain
 * @fr: the region, not in the pool; freed
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or the device's error when it refused.
 */
int kefa_pool_drop(struct kefa_domain *dom, struct kefa_frmr *fr)
{
	int ret = 0;

	lockdep_assert_held(&dom->dev->lock);
	if (fr->mr)
		ret = kefa_destroy_mr(&dom->refused, fr->mr);
	dom->nfrmrs--;
	kfree(fr);
	return ret;
}

static struct kefa_frmr *kefa_pool_make(struct kefa_domain *dom, u32 order)
{
	u32 pages = min(1U << order, dom->dev->max_mr_pages);
	struct kefa_frmr *fr;

	fr = kzalloc(sizeof(*fr), GFP_KERNEL);
	if (!fr)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&fr->list);
	fr->order = order;
	fr->pages = pages;
	fr->mr = kefa_create_mr(&dom->refused, dom->pd, pages);
	trace_kefa_refill(dom->dev->name, pages, dom->nfrmrs,
			  PTR_ERR_OR_ZERO(fr->mr));
	if (IS_ERR(fr->mr)) {
		struct ib_mr *err = fr->mr;

		kfree(fr);
		return ERR_CAST(err);
	}
	dom->nfrmrs++;
	return fr;
}

/* Destroy one idle region of any size. Return: whether there was one. */
static bool kefa_pool_evict(struct kefa_domain *dom)
{
	struct kefa_frmr *fr;
	int i;

	for (i = 0; i < KEFA_MR_ORDERS; i++) {
		fr = kefa_pool_take(dom, i);
		if (!fr)
			continue;
		kefa_pool_drop(dom, fr);
		return true;
	}
	return false;
}

/**
 * kefa_pool_get() - get a region of the device
 * @dom: the domain
 * @pages: capacity that is needed, in pages
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: the region, or an ERR_PTR(): -EMSGSIZE for too many pages,
 * -FI_ENOMR when all are in use, -ENODEV, -ENOMEM, or the device's error.
 */
struct kefa_frmr *kefa_pool_get(struct kefa_domain *dom, size_t pages)
{
	u32 order = max_t(u32, order_base_2(pages), KEFA_MR_MIN_ORDER);
	struct kefa_frmr *fr = NULL;
	bool full = dom->nfrmrs >= dom->dev->max_mr;

	lockdep_assert_held(&dom->dev->lock);
	if (dom->gone)
		return ERR_PTR(-ENODEV);
	if (pages > dom->dev->max_mr_pages)
		return ERR_PTR(-EMSGSIZE);
	if (full || dom->nidle[order] >= KEFA_POOL_REST)
		fr = kefa_pool_take(dom, order);
	if (fr)
		return fr;
	if (full && !kefa_pool_evict(dom)) {
		kefa_mrq_count(&dom->mrq, &dom->mrq.stats.dry);
		return ERR_PTR(-FI_ENOMR);
	}
	fr = kefa_pool_make(dom, order);
	/* The device may have fewer regions than it reports, so fall back to idle ones. */
	if (IS_ERR(fr))
		fr = kefa_pool_take(dom, order) ?: fr;
	while (IS_ERR(fr) && PTR_ERR(fr) != -ENODEV && kefa_pool_evict(dom))
		fr = kefa_pool_make(dom, order);
	return fr;
}

/**
 * kefa_pool_put() - undo kefa_pool_get()
 * @dom: the domain
 * @fr: the region, not registered
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_pool_put(struct kefa_domain *dom, struct kefa_frmr *fr)
{
	lockdep_assert_held(&dom->dev->lock);
	if (!fr->mr) {
		kefa_pool_drop(dom, fr);
		return;
	}
	list_add_tail(&fr->list, &dom->frmrs[fr->order]);
	dom->nidle[fr->order]++;
}

/**
 * kefa_pool_empty() - destroy all idle regions
 * @dom: the domain
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_pool_empty(struct kefa_domain *dom)
{
	while (kefa_pool_evict(dom))
		;
}
