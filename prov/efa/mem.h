/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory of operations: mem.c. */
#ifndef KEFA_MEM_H
#define KEFA_MEM_H

#include <linux/dma-direction.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/types.h>
#include <linux/uio.h>
#include "dma.h"
#include "ep.h"

/**
 * struct kefa_run - memory that is physically contiguous
 * @page: first page
 * @off: offset in @page
 * @len: length in bytes
 */
struct kefa_run {
	struct page	*page;
	u32		off;
	u32		len;
};

/**
 * struct kefa_seg - mapped memory
 * @dma: DMA address
 * @phys: physical address
 * @len: length in bytes
 */
struct kefa_seg {
	dma_addr_t	dma;
	phys_addr_t	phys;
	u32		len;
};

/**
 * kefa_linear() - check whether memory is at a fixed distance from its physical address
 * @buf: the memory
 *
 * Context: Any.
 * Return: whether it is.
 */
static __always_inline bool kefa_linear(const void *buf)
{
	/* virt_addr_valid() looks up the section of the page, which takes 50 instructions. */
	if (likely((unsigned long)buf >= PAGE_OFFSET && buf < high_memory))
		return true;
	return virt_addr_valid(buf);
}

/**
 * kefa_one_piece() - check whether a kernel buffer is physically contiguous
 * @buf: the buffer
 *
 * A buffer is, if it begins in memory that the kernel maps at a fixed distance from its physical
 * address. As for buffers on the stack, only kernels that debug DMA look for memory of PCI
 * devices: that reads the page's flags, which no other step of a plain call needs.
 *
 * Context: Any.
 * Return: true if it is contiguous and can be transferred.
 */
static __always_inline bool kefa_one_piece(const void *buf)
{
	return kefa_linear(buf) &&
	       !(IS_ENABLED(CONFIG_DMA_API_DEBUG) && kefa_dma_p2p(virt_to_page(buf)));
}

typedef int (*kefa_walk_fn)(void *arg, struct page *page, u32 off, u32 len);

int kefa_walk_kvec(void *addr, size_t len, kefa_walk_fn fn, void *arg);
int kefa_walk(const struct iov_iter *iter, kefa_walk_fn fn, void *arg);
bool kefa_iter_p2p(const struct iov_iter *iter);
int kefa_runs(const struct kefa_ep *ep, const struct iov_iter *iter,
	      struct kefa_run *run, unsigned int max);
int kefa_map(struct kefa_ep *ep, const struct kefa_run *runs, unsigned int n,
	     struct kefa_seg *segs, enum dma_data_direction dir);
size_t kefa_keep(phys_addr_t phys, size_t len);

/**
 * kefa_seg_map() - map one piece of memory for DMA
 * @ep: the endpoint
 * @seg: takes the mapping
 * @phys: physical address of the memory
 * @len: length in bytes
 * @dir: direction of the transfer
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: false without DMA space.
 */
static __always_inline bool kefa_seg_map(struct kefa_ep *ep, struct kefa_seg *seg,
					 phys_addr_t phys, u32 len,
					 enum dma_data_direction dir)
{
	seg->dma = kefa_dma_map(ep->dma, phys, len, dir);
	seg->phys = phys;
	seg->len = len;
	return !dma_mapping_error(ep->dma, seg->dma);
}

/**
 * kefa_unmap() - undo kefa_map()
 * @ep: the endpoint
 * @segs: the mapped pieces
 * @n: number of @segs
 * @dir: DMA direction
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kefa_unmap(struct kefa_ep *ep, const struct kefa_seg *segs,
			      unsigned int n, enum dma_data_direction dir)
{
	while (n--)
		kefa_dma_unmap(ep->dma, segs[n].dma, segs[n].len, dir);
}

#endif /* KEFA_MEM_H */
