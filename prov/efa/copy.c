// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copy buffers of an endpoint, for injects and data that the device can't gather.
 */
#include <linux/slab.h>
#include "copy.h"
#include "dma.h"

static size_t kefa_copy_size(const struct kefa_ep *ep)
{
	return PAGE_ALIGN(ep->dom->dev->mtu);
}

static int kefa_copy_fill(struct kefa_ep *ep, struct kefa_copy *copy, gfp_t gfp)
{
	void *data = alloc_pages_exact(kefa_copy_size(ep), gfp);

	if (!data)
		return -ENOMEM;
	copy->dma = kefa_dma_map(ep->dma, virt_to_phys(data), kefa_copy_size(ep),
				 DMA_TO_DEVICE);
	if (dma_mapping_error(ep->dma, copy->dma)) {
		free_pages_exact(data, kefa_copy_size(ep));
		return -ENOMEM;
	}
	copy->data = data;
	return 0;
}

/**
 * kefa_copy_get() - take a copy buffer
 * @ep: the endpoint, enabled
 *
 * The memory of a buffer is allocated at its first use. One buffer has memory from the
 * start, so that even if allocations fail, a completion will free a buffer.
 *
 * Context: Process or softirq context, under RCU; doesn't sleep.
 * Return: the buffer, or NULL if none is free or has memory.
 */
struct kefa_copy *kefa_copy_get(struct kefa_ep *ep)
{
	struct kefa_copy *copy;

	spin_lock_bh(&ep->lock);
	copy = list_first_entry_or_null(&ep->copies, struct kefa_copy, list);
	if (copy) {
		list_del(&copy->list);
		ep->ncopies--;
	}
	spin_unlock_bh(&ep->lock);
	if (!copy || copy->data || !kefa_copy_fill(ep, copy, GFP_NOWAIT | __GFP_NOWARN))
		return copy;
	kefa_copy_put(ep, copy);
	return NULL;
}

/**
 * kefa_copy_take() - take a copy buffer, for callers with the lock
 * @ep: the endpoint, enabled
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: the buffer, for kefa_copy_free(); or NULL if none is free or has memory.
 */
struct kefa_copy *kefa_copy_take(struct kefa_ep *ep)
{
	struct kefa_copy *copy;

	lockdep_assert_held(&ep->lock);
	copy = list_first_entry_or_null(&ep->copies, struct kefa_copy, list);
	if (!copy || (!copy->data && kefa_copy_fill(ep, copy, GFP_NOWAIT | __GFP_NOWARN)))
		return NULL;
	list_del(&copy->list);
	ep->ncopies--;
	return copy;
}

/**
 * kefa_copy_put() - give back a copy buffer that wasn't posted
 * @ep: the endpoint
 * @copy: the buffer
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kefa_copy_put(struct kefa_ep *ep, struct kefa_copy *copy)
{
	spin_lock_bh(&ep->lock);
	kefa_copy_free(ep, copy);
	/* Another post may have been refused for lack of this buffer. */
	if (copy->data && ep->tx.wanted) {
		ep->tx.room = true;
		kefa_ep_kick(ep);
	}
	spin_unlock_bh(&ep->lock);
}

/**
 * kefa_copy_ready() - check for a free copy buffer with memory
 * @ep: the endpoint
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: whether there is one.
 */
bool kefa_copy_ready(struct kefa_ep *ep)
{
	struct kefa_copy *copy;

	lockdep_assert_held(&ep->lock);
	copy = list_first_entry_or_null(&ep->copies, struct kefa_copy, list);
	return copy && copy->data;
}

/**
 * kefa_copies_fini() - free an endpoint's copy buffers
 * @ep: the endpoint, with no operation that uses one
 * @leave: leak the memory, because the device may still read it
 *
 * Context: Process context, under kefa_dev.lock while the device is there.
 */
void kefa_copies_fini(struct kefa_ep *ep, bool leave)
{
	struct kefa_copy *copy;
	int i;

	for (i = 0; ep->copy_mem && i < KEFA_COPIES; i++) {
		copy = &ep->copy_mem[i];
		if (!copy->data)
			continue;
		kefa_dma_unmap(ep->dma, copy->dma, kefa_copy_size(ep),
			       DMA_TO_DEVICE);
		if (!leave)
			free_pages_exact(copy->data, kefa_copy_size(ep));
	}
	INIT_LIST_HEAD(&ep->copies);
	ep->ncopies = 0;
	kfree(ep->copy_mem);
	ep->copy_mem = NULL;
}

/**
 * kefa_copies_init() - allocate an endpoint's copy buffers, one of them with memory
 * @ep: the endpoint, about to be enabled
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_copies_init(struct kefa_ep *ep)
{
	int i;

	ep->copy_mem = kcalloc(KEFA_COPIES, sizeof(*ep->copy_mem), GFP_KERNEL);
	if (!ep->copy_mem)
		return -ENOMEM;
	for (i = 0; i < KEFA_COPIES; i++)
		list_add_tail(&ep->copy_mem[i].list, &ep->copies);
	ep->ncopies = KEFA_COPIES;
	return kefa_copy_fill(ep, &ep->copy_mem[0], GFP_KERNEL);
}
