/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Copy buffers: copy.c. */
#ifndef KEFA_COPY_H
#define KEFA_COPY_H

#include <linux/list.h>
#include <linux/types.h>
#include "ep.h"

/**
 * struct kefa_copy - a copy buffer of an endpoint
 * @list: in kefa_ep.copies; under kefa_ep.lock
 * @data: memory of the buffer; NULL until its first use
 * @dma: DMA address of @data
 */
struct kefa_copy {
	struct list_head	list;
	void			*data;
	dma_addr_t		dma;
};

int kefa_copies_init(struct kefa_ep *ep);
struct kefa_copy *kefa_copy_get(struct kefa_ep *ep);
struct kefa_copy *kefa_copy_take(struct kefa_ep *ep);
void kefa_copy_put(struct kefa_ep *ep, struct kefa_copy *copy);
bool kefa_copy_ready(struct kefa_ep *ep);
void kefa_copies_fini(struct kefa_ep *ep, bool leave);

/**
 * kefa_copy_free() - free a copy buffer
 * @ep: the endpoint
 * @copy: the buffer
 *
 * The buffer goes to the front of the list, so that buffers with memory are reused first.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
static inline void kefa_copy_free(struct kefa_ep *ep, struct kefa_copy *copy)
{
	lockdep_assert_held(&ep->lock);
	ep->ncopies++;
	if (copy->data)
		list_add(&copy->list, &ep->copies);
	else
		list_add_tail(&copy->list, &ep->copies);
}

#endif /* KEFA_COPY_H */
