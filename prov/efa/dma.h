/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The provider's interface to the kernel's DMA API. As with hw.h, tests link the provider
 * with a fake implementation instead. They define KEFA_DMA_FAKE; without it the functions
 * for each operation are inline. dma_mapping_error() works for addresses of both.
 */
#ifndef KEFA_DMA_H
#define KEFA_DMA_H

#include <linux/dma-mapping.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

/*
 * All functions may be called in process or softirq context and don't sleep, except for
 * kefa_dma_stop(), which needs process context. @dma is the device that mappings are for,
 * kefa_dev.dma.
 *
 * kefa_dma_map() and kefa_dma_map_page() map contiguous memory. They may fail if that is more than
 * kefa_dma_max_map() bytes.
 * kefa_dma_map_sg() returns the number of mapped entries, or the errno of dma_map_sgtable(). A
 * mapping must be unmapped with the same size and direction.
 *
 * kefa_dma_p2p() returns whether a page is memory of a PCI device, which dma_map_page() would map
 * to an address where the device may not find it.
 *
 * kefa_dma_need_sync() is false if the device is certain to access the memory directly, and
 * kefa_dma_syncs() if that is so for all memory that is mapped now.
 * kefa_dma_iommu() returns whether an IOMMU translates for the device, and the physical
 * address that it translates to. kefa_dma_stop() blocks all DMA of a device, if possible.
 *
 * kefa_dma_coherent() returns whether the device and the CPU see each other's accesses to memory
 * that isn't bounced.
 */
size_t kefa_dma_max_map(struct device *dma);
bool kefa_dma_iommu(struct device *dma, dma_addr_t addr, phys_addr_t *reached);
bool kefa_dma_stop(struct device *parent);
bool kefa_dma_coherent(struct device *dma);

#ifdef KEFA_DMA_FAKE

dma_addr_t kefa_dma_map(struct device *dma, phys_addr_t phys, size_t len,
			enum dma_data_direction dir);
dma_addr_t kefa_dma_map_page(struct device *dma, struct page *page, size_t off, size_t len,
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
bool kefa_dma_syncs(struct device *dma);
bool kefa_dma_p2p(const struct page *page);

#else

static inline dma_addr_t kefa_dma_map(struct device *dma, phys_addr_t phys, size_t len,
				      enum dma_data_direction dir)
{
	return dma_map_page(dma, pfn_to_page(PHYS_PFN(phys)), offset_in_page(phys),
			    len, dir);
}

static inline dma_addr_t kefa_dma_map_page(struct device *dma, struct page *page, size_t off,
					   size_t len, enum dma_data_direction dir)
{
	return dma_map_page(dma, page, off, len, dir);
}

static inline void kefa_dma_unmap(struct device *dma, dma_addr_t addr, size_t len,
				  enum dma_data_direction dir)
{
	dma_unmap_page(dma, addr, len, dir);
}

static inline int kefa_dma_map_sg(struct device *dma, struct scatterlist *sg, int n,
				  enum dma_data_direction dir)
{
	struct sg_table table = { .sgl = sg, .orig_nents = n };

	return dma_map_sgtable(dma, &table, dir, 0) ?: table.nents;
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

static inline bool kefa_dma_syncs(struct device *dma)
{
	return compat_dma_dev_need_sync(dma);
}

static inline bool kefa_dma_p2p(const struct page *page)
{
	return is_pci_p2pdma_page(page);
}

#endif /* KEFA_DMA_FAKE */

#endif /* KEFA_DMA_H */
