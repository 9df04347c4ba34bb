/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory as the device reaches it: all that the provider wants of the kernel's DMA
 * API. As with hw.h, the tests link the provider with a fake device's memory instead.
 * They define KEFA_DMA_FAKE, without which what each operation needs is inline.
 * dma_mapping_error() is for the addresses of both.
 */
#ifndef KEFA_DMA_H
#define KEFA_DMA_H

#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/types.h>

/*
 * All may be called in process or softirq context, and none sleeps, but for
 * kefa_dma_stop(), which wants process context. @dma is whom mappings are for,
 * kefa_dev.dma.
 *
 * kefa_dma_map() wants memory that is contiguous, and no more of it than
 * kefa_dma_max_map(). kefa_dma_map_sg() returns how many of the list's entries have an
 * address then, 0 when there was no room. What was mapped is unmapped just so.
 *
 * kefa_dma_need_sync() is false when the device certainly reaches the memory itself.
 * kefa_dma_iommu() returns whether an IOMMU translates for the device, and where it
 * leads. kefa_dma_stop() keeps a device from all memory, if there is a way to.
 */
size_t kefa_dma_max_map(struct device *dma);
bool kefa_dma_iommu(struct device *dma, dma_addr_t addr, phys_addr_t *reached);
bool kefa_dma_stop(struct device *parent);

#ifdef KEFA_DMA_FAKE

dma_addr_t kefa_dma_map(struct device *dma, phys_addr_t phys, size_t len,
			enum dma_data_direction dir);
void kefa_dma_unmap(struct device *dma, dma_addr_t addr, size_t len,
		    enum dma_data_direction dir);
int kefa_dma_map_sg(struct device *dma, struct scatterlist *sg, int n,
		    enum dma_data_direction dir);
void kefa_dma_unmap_sg(struct device *dma, struct scatterlist *sg, int n,
		       enum dma_data_direction dir);
void kefa_dma_sync_for_cpu(struct device *dma, dma_addr_t addr, size_t len,
			   enum dma_data_direction dir);
void kefa_dma_sync_for_device(struct device *dma, dma_addr_t addr, size_t len,
			      enum dma_data_direction dir);
bool kefa_dma_need_sync(struct device *dma, dma_addr_t addr);

#else

static inline dma_addr_t kefa_dma_map(struct device *dma, phys_addr_t phys, size_t len,
				      enum dma_data_direction dir)
{
	return dma_map_page(dma, pfn_to_page(PHYS_PFN(phys)), offset_in_page(phys),
			    len, dir);
}

static inline void kefa_dma_unmap(struct device *dma, dma_addr_t addr, size_t len,
				  enum dma_data_direction dir)
{
	dma_unmap_page(dma, addr, len, dir);
}

static inline int kefa_dma_map_sg(struct device *dma, struct scatterlist *sg, int n,
				  enum dma_data_direction dir)
{
	return dma_map_sg(dma, sg, n, dir);
}

static inline void kefa_dma_unmap_sg(struct device *dma, struct scatterlist *sg, int n,
				     enum dma_data_direction dir)
{
	dma_unmap_sg(dma, sg, n, dir);
}

static inline void kefa_dma_sync_for_cpu(struct device *dma, dma_addr_t addr,
					 size_t len, enum dma_data_direction dir)
{
	dma_sync_single_for_cpu(dma, addr, len, dir);
}

static inline void kefa_dma_sync_for_device(struct device *dma, dma_addr_t addr,
					    size_t len, enum dma_data_direction dir)
{
	dma_sync_single_for_device(dma, addr, len, dir);
}

static inline bool kefa_dma_need_sync(struct device *dma, dma_addr_t addr)
{
	return dma_need_sync(dma, addr);
}

#endif /* KEFA_DMA_FAKE */

#endif /* KEFA_DMA_H */
