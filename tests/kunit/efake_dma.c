// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fake device's view of memory. DMA addresses are physical ones plus an offset, so that
 * using one for the other fails. Each mapping is recorded: memory must be unmapped with the
 * address, size and direction of its mapping, and only when the device no longer uses it.
 */
#include <linux/scatterlist.h>
#include "efake_priv.h"

#define EFAKE_DMA_OFFSET	BIT_ULL(46)

static struct efake *efake_of(struct device *dma)
{
	return dev_get_drvdata(dma);
}

/* The few mappings that are larger than a page are in the last bucket. */
static struct hlist_head *map_bucket(struct efake *fake, dma_addr_t addr,
				     size_t len)
{
	return &fake->mem->maps[len > PAGE_SIZE ? EFAKE_MAP_BUCKETS :
				(addr >> PAGE_SHIFT) % EFAKE_MAP_BUCKETS];
}

static bool map_allows(const struct efake_map *map, enum efake_use use)
{
	switch (use) {
	case EFAKE_READS:
		return map->dir != DMA_FROM_DEVICE;
	case EFAKE_WRITES:
		return map->dir != DMA_TO_DEVICE;
	default:
		return true;
	}
}

static struct efake_map *map_find_in(struct hlist_head *bucket, dma_addr_t addr,
				     size_t len, enum efake_use use)
{
	struct efake_map *map;

	hlist_for_each_entry(map, bucket, node)
		if (map->addr <= addr && addr + len <= map->addr + map->len &&
		    map_allows(map, use))
			return map;
	return NULL;
}

/* Return: whether all of a range is mapped for a use. A small mapping starts in its page. */
static struct efake_map *map_find(struct efake *fake, dma_addr_t addr,
				  size_t len, enum efake_use use)
{
	lockdep_assert_held(&fake->lock);
	return map_find_in(map_bucket(fake, addr, 1), addr, len, use) ?:
	       map_find_in(map_bucket(fake, addr, SIZE_MAX), addr, len, use);
}

static struct efake_map *map_find_exact(struct efake *fake, dma_addr_t addr,
					size_t len, enum dma_data_direction dir)
{
	struct efake_map *map;

	lockdep_assert_held(&fake->lock);
	hlist_for_each_entry(map, map_bucket(fake, addr, len), node)
		if (map->addr == addr && map->len == len && map->dir == dir)
			return map;
	return NULL;
}

static dma_addr_t map_one(struct efake *fake, phys_addr_t phys, size_t len,
			  enum dma_data_direction dir)
{
	struct efake_map *map;

	lockdep_assert_held(&fake->lock);
	map = hlist_entry_safe(fake->mem->free.first, struct efake_map, node);
	if (!map)
		return DMA_MAPPING_ERROR;
	hlist_del(&map->node);
	map->addr = phys + EFAKE_DMA_OFFSET;
	map->len = len;
	map->dir = dir;
	hlist_add_head(&map->node, map_bucket(fake, map->addr, len));
	fake->nmaps++;
	return map->addr;
}

static bool unmap_one(struct efake *fake, dma_addr_t addr, size_t len,
		      enum dma_data_direction dir)
{
	struct efake_map *map = map_find_exact(fake, addr, len, dir);

	if (!map)
		return false;
	hlist_del(&map->node);
	hlist_add_head(&map->node, &fake->mem->free);
	fake->nmaps--;
	if (efake_misses(fake, addr, len))
		efake_breach(fake, "memory is unmapped that the device has");
	return true;
}

dma_addr_t kefa_dma_map(struct device *dma, phys_addr_t phys, size_t len,
			enum dma_data_direction dir)
{
	struct efake *fake = efake_of(dma);
	unsigned long flags;
	dma_addr_t addr;
	int err;

	if (!len)
		efake_breach(fake, "nothing is mapped");
	if (efake_fails(fake, EFAKE_DMA_MAP, &err) || len > fake->max_map)
		return DMA_MAPPING_ERROR;
	spin_lock_irqsave(&fake->lock, flags);
	addr = map_one(fake, phys, len, dir);
	spin_unlock_irqrestore(&fake->lock, flags);
	return addr;
}

dma_addr_t kefa_dma_map_page(struct device *dma, struct page *page, size_t off, size_t len,
			     enum dma_data_direction dir)
{
	return kefa_dma_map(dma, page_to_phys(page) + off, len, dir);
}

void kefa_dma_unmap(struct device *dma, dma_addr_t addr, size_t len,
		    enum dma_data_direction dir)
{
	struct efake *fake = efake_of(dma);
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&fake->lock, flags);
	ok = unmap_one(fake, addr, len, dir);
	spin_unlock_irqrestore(&fake->lock, flags);
	if (!ok)
		efake_breach(fake, "memory is unmapped that wasn't mapped so");
}

/* dma_map_sgtable() refuses pages of PCI devices, too, unless the host can reach them. */
int kefa_dma_map_sg(struct device *dma, struct scatterlist *sgl, int n,
		    enum dma_data_direction dir)
{
	struct efake *fake = efake_of(dma);
	struct scatterlist *sg;
	unsigned long flags;
	int i, err;

	if (efake_fails(fake, EFAKE_DMA_MAP, &err))
		return err ?: -EIO;
	if (sg_nents(sgl) != n)
		efake_breach(fake, "a list doesn't end where it should");
	for_each_sg(sgl, sg, n, i) {
		if (sg->length > fake->max_map)
			return -EIO;
		if (kefa_dma_p2p(sg_page(sg)))
			return -EREMOTEIO;
	}
	spin_lock_irqsave(&fake->lock, flags);
	for_each_sg(sgl, sg, n, i) {
		sg_dma_address(sg) = map_one(fake, sg_phys(sg), sg->length,
					     dir);
		sg_dma_len(sg) = sg->length;
	}
	spin_unlock_irqrestore(&fake->lock, flags);
	return n;
}

void kefa_dma_unmap_sg(struct device *dma, struct scatterlist *sgl, int n,
		       enum dma_data_direction dir)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, n, i)
		kefa_dma_unmap(dma, sg_dma_address(sg), sg->length, dir);
}

bool efake_dma_reach(struct efake *fake, dma_addr_t addr, size_t len,
		     enum efake_use use)
{
	return map_find(fake, addr, len, use);
}

void *efake_dma_virt(dma_addr_t addr)
{
	return phys_to_virt(addr - EFAKE_DMA_OFFSET);
}

static void efake_dma_sync(struct device *dma, dma_addr_t addr, size_t len,
			   enum dma_data_direction dir)
{
	struct efake *fake = efake_of(dma);
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&fake->lock, flags);
	ok = efake_dma_reach(fake, addr, len, dir == DMA_TO_DEVICE ?
			     EFAKE_READS : EFAKE_WRITES);
	spin_unlock_irqrestore(&fake->lock, flags);
	if (!ok)
		efake_breach(fake, "memory is synced that wasn't mapped so");
}

void kefa_dma_sync_for_cpu(struct device *dma, dma_addr_t addr, size_t len,
			   enum dma_data_direction dir)
{
	efake_dma_sync(dma, addr, len, dir);
}

void kefa_dma_sync_for_device(struct device *dma, dma_addr_t addr, size_t len,
			      enum dma_data_direction dir)
{
	efake_dma_sync(dma, addr, len, dir);
}

size_t kefa_dma_max_map(struct device *dma)
{
	return efake_of(dma)->max_map;
}

bool kefa_dma_need_sync(struct device *dma, dma_addr_t addr)
{
	return efake_of(dma)->bounce || efake_of(dma)->iommu;
}

bool kefa_dma_iommu(struct device *dma, dma_addr_t addr, phys_addr_t *reached)
{
	struct efake *fake = efake_of(dma);

	*reached = addr - EFAKE_DMA_OFFSET + (fake->bounce ? SZ_1M : 0);
	return fake->iommu;
}

bool kefa_dma_stop(struct device *parent)
{
	efake_of(parent)->master &= !efake_of(parent)->pci;
	return efake_of(parent)->pci;
}

/* Memory of another PCI device: a page that a test chooses. */
static const struct page *efake_p2p_page;

void efake_p2p(const struct page *page)
{
	WRITE_ONCE(efake_p2p_page, page);
}

bool kefa_dma_p2p(const struct page *page)
{
	return page == READ_ONCE(efake_p2p_page);
}
