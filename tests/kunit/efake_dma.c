// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fake device's view of memory. DMA addresses are physical ones plus an offset, so that
 * using one for the other fails. Each mapping is recorded: memory must be unmapped with the
 * address, size and direction of its mapping, and only when the device no longer uses it.
 *
 * Memory is synced as if all of it were bounced. The CPU sees what the device has written only
 * after a sync or the end of the mapping. Memory that the device reads must be as it was at its
 * last sync, or when it was mapped; memory that was synced for the CPU must be synced for the
 * device before it is posted again. Regions need no sync: the provider refuses to register memory
 * that does.
 */
#include <linux/gfp.h>
#include <linux/scatterlist.h>
#include "efake_priv.h"

#define EFAKE_DMA_OFFSET	BIT_ULL(46)
/* Longest mapping that efake_map.synced is for: all that are posted again without a new mapping. */
#define EFAKE_SYNCED_MAX	SZ_16K

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
	case EFAKE_DIRECT:
		return map->direct;
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

/* --- what each side sees --- */

/* Pages, because KASAN would keep freed slab objects, and cases measure memory. */
static void *shadow_get(struct efake *fake, size_t len)
{
	void *mem = (void *)__get_free_pages(GFP_ATOMIC | __GFP_NOWARN, get_order(len));

	lockdep_assert_held(&fake->lock);
	if (mem)
		fake->shadow += PAGE_SIZE << get_order(len);
	return mem;
}

static void shadow_put(struct efake *fake, void *mem, size_t len)
{
	if (!mem)
		return;
	free_pages((unsigned long)mem, get_order(len));
	fake->shadow -= PAGE_SIZE << get_order(len);
}

/* @bytes: bytes of data. */
static struct efake_range *range_new(struct efake *fake, struct list_head *ranges,
				     dma_addr_t addr, size_t len, size_t bytes)
{
	struct efake_range *range = shadow_get(fake, struct_size(range, data, bytes));

	if (!range)
		return NULL;
	range->addr = addr;
	range->len = len;
	range->bytes = bytes;
	list_add_tail(&range->list, ranges);
	return range;
}

static bool range_meets(const struct efake_range *range, dma_addr_t addr, size_t len)
{
	return range->addr < addr + len && addr < range->addr + range->len;
}

static void ranges_drop(struct efake *fake, struct list_head *ranges, dma_addr_t addr, size_t len)
{
	struct efake_range *range, *next;

	list_for_each_entry_safe(range, next, ranges, list)
		if (addr <= range->addr && range->addr + range->len <= addr + len) {
			list_del(&range->list);
			shadow_put(fake, range, struct_size(range, data, range->bytes));
		}
}

void efake_ranges_free(struct efake *fake)
{
	ranges_drop(fake, &fake->mem->written, 0, SIZE_MAX);
	ranges_drop(fake, &fake->mem->taken, 0, SIZE_MAX);
}

void efake_dma_write(struct efake *fake, dma_addr_t addr, const void *from, size_t len)
{
	struct efake_range *range = NULL;

	lockdep_assert_held(&fake->lock);
	ranges_drop(fake, &fake->mem->written, addr, len);
	if (!map_find(fake, addr, len, EFAKE_DIRECT))
		range = range_new(fake, &fake->mem->written, addr, len, len);
	memcpy(range ? range->data : efake_dma_virt(addr), from, len);
}

/* Show the CPU what the device has written. */
static void written_show(struct efake *fake, dma_addr_t addr, size_t len)
{
	struct efake_range *range;
	dma_addr_t start, end;

	list_for_each_entry(range, &fake->mem->written, list) {
		if (!range_meets(range, addr, len))
			continue;
		start = max(range->addr, addr);
		end = min(range->addr + range->len, addr + len);
		memcpy(efake_dma_virt(start), range->data + (start - range->addr), end - start);
	}
	ranges_drop(fake, &fake->mem->written, addr, len);
}

bool efake_dma_stale(struct efake *fake, dma_addr_t addr, size_t len)
{
	struct efake_map *map = map_find(fake, addr, len, EFAKE_READS);

	return map && map->synced &&
	       memcmp(map->synced + (addr - map->addr), efake_dma_virt(addr), len);
}

bool efake_dma_taken(struct efake *fake, dma_addr_t addr, size_t len)
{
	struct efake_range *range;

	lockdep_assert_held(&fake->lock);
	list_for_each_entry(range, &fake->mem->taken, list)
		if (range_meets(range, addr, len))
			return true;
	return false;
}

/* --- mappings --- */

static dma_addr_t map_one(struct efake *fake, phys_addr_t phys, size_t len,
			  enum dma_data_direction dir, bool direct)
{
	struct efake_map *map;
	u8 *synced = NULL;

	lockdep_assert_held(&fake->lock);
	map = hlist_entry_safe(fake->mem->free.first, struct efake_map, node);
	if (!map)
		return DMA_MAPPING_ERROR;
	if (!direct && dir != DMA_FROM_DEVICE && len <= EFAKE_SYNCED_MAX) {
		synced = shadow_get(fake, len);
		if (!synced)
			return DMA_MAPPING_ERROR;
		memcpy(synced, phys_to_virt(phys), len);
	}
	hlist_del(&map->node);
	map->addr = phys + EFAKE_DMA_OFFSET;
	map->len = len;
	map->dir = dir;
	map->direct = direct;
	map->synced = synced;
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
	shadow_put(fake, map->synced, len);
	map->synced = NULL;
	if (dir != DMA_TO_DEVICE) {
		written_show(fake, addr, len);
		ranges_drop(fake, &fake->mem->taken, addr, len);
	}
	fake->nmaps--;
	if (efake_misses(fake, addr, len))
		efake_breach(fake, "memory is unmapped that the device has");
	return true;
}

static dma_addr_t map_some(struct efake *fake, phys_addr_t phys, size_t len,
			   enum dma_data_direction dir, bool direct)
{
	unsigned long flags;
	dma_addr_t addr;
	int err;

	if (!len)
		efake_breach(fake, "nothing is mapped");
	if (efake_fails(fake, EFAKE_DMA_MAP, &err) || len > fake->max_map)
		return DMA_MAPPING_ERROR;
	spin_lock_irqsave(&fake->lock, flags);
	addr = map_one(fake, phys, len, dir, direct);
	spin_unlock_irqrestore(&fake->lock, flags);
	return addr;
}

dma_addr_t kefa_dma_map(struct device *dma, phys_addr_t phys, size_t len,
			enum dma_data_direction dir)
{
	return map_some(efake_of(dma), phys, len, dir, false);
}

dma_addr_t kefa_dma_map_page(struct device *dma, struct page *page, size_t off, size_t len,
			     enum dma_data_direction dir)
{
	return map_some(efake_of(dma), page_to_phys(page) + off, len, dir, true);
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
					     dir, true);
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

static void sync_for_cpu(struct efake *fake, dma_addr_t addr, size_t len)
{
	written_show(fake, addr, len);
	if (!efake_dma_taken(fake, addr, len))
		range_new(fake, &fake->mem->taken, addr, len, 0);
}

static void sync_for_device(struct efake *fake, dma_addr_t addr, size_t len)
{
	struct efake_map *map = map_find(fake, addr, len, EFAKE_READS);

	if (map && map->synced)
		memcpy(map->synced + (addr - map->addr), efake_dma_virt(addr), len);
	ranges_drop(fake, &fake->mem->taken, addr, len);
}

static void efake_dma_sync(struct device *dma, dma_addr_t addr, size_t len,
			   enum dma_data_direction dir,
			   void (*sync)(struct efake *fake, dma_addr_t addr, size_t len))
{
	struct efake *fake = efake_of(dma);
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&fake->lock, flags);
	ok = efake_dma_reach(fake, addr, len, dir == DMA_TO_DEVICE ?
			     EFAKE_READS : EFAKE_WRITES);
	if (ok)
		sync(fake, addr, len);
	spin_unlock_irqrestore(&fake->lock, flags);
	if (!ok)
		efake_breach(fake, "memory is synced that wasn't mapped so");
}

/* Memory that the device only reads isn't synced for the CPU. */
void kefa_dma_sync_for_cpu(struct device *dma, dma_addr_t addr, size_t len,
			   enum dma_data_direction dir)
{
	if (dir == DMA_TO_DEVICE)
		efake_breach(efake_of(dma), "memory is synced for nothing");
	efake_dma_sync(dma, addr, len, dir, sync_for_cpu);
}

void kefa_dma_sync_for_device(struct device *dma, dma_addr_t addr, size_t len,
			      enum dma_data_direction dir)
{
	efake_dma_sync(dma, addr, len, dir, sync_for_device);
}

size_t kefa_dma_max_map(struct device *dma)
{
	return efake_of(dma)->max_map;
}

bool kefa_dma_need_sync(struct device *dma, dma_addr_t addr)
{
	return efake_of(dma)->bounce || efake_of(dma)->iommu;
}

bool kefa_dma_syncs(struct device *dma)
{
	return kefa_dma_need_sync(dma, 0);
}

bool kefa_dma_iommu(struct device *dma, dma_addr_t addr, phys_addr_t *reached)
{
	struct efake *fake = efake_of(dma);

	*reached = addr - EFAKE_DMA_OFFSET + (fake->bounce ? SZ_1M : 0);
	return fake->iommu;
}

bool kefa_dma_coherent(struct device *dma)
{
	return !efake_of(dma)->incoherent;
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
