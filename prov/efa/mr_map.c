// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory of a region: its list, and the page size for it. */
#include <linux/bvec.h>
#include <linux/scatterlist.h>
#include "dma.h"
#include "mr.h"

/**
 * kefa_mr_unmap() - undo kefa_mr_map()
 * @mr: the region, mapped or not
 *
 * Context: Process or softirq context. No other task uses the region; if it isn't idle,
 * under kefa_mr_lock().
 */
void kefa_mr_unmap(struct kefa_mr *mr)
{
	struct device *dma = mr->dom->dev->dma;

	if (mr->nsegs && mr->nents > 1)
		kefa_dma_unmap_sg(dma, mr->sg, mr->nents, mr->dir);
	else if (mr->nsegs)
		kefa_dma_unmap(dma, sg_dma_address(mr->sg), mr->len, mr->dir);
	mr->nsegs = 0;
	mr->nents = 0;
}

/**
 * struct kefa_gather - state of gathering the memory of a region
 * @first: its list
 * @sg: first free entry
 * @last: end of the room for entries
 * @end: physical address of the end of the last entry
 * @max: maximum bytes of an entry
 * @len: bytes of all entries
 */
struct kefa_gather {
	struct scatterlist	*first;
	struct scatterlist	*sg;
	struct scatterlist	*last;
	phys_addr_t		end;
	size_t			max;
	size_t			len;
};

static __always_inline int kefa_gather_add(struct kefa_gather *g, struct page *page,
					   u32 off, u32 len)
{
	phys_addr_t phys = page_to_phys(page) + off;

	if (unlikely(phys == g->end) && (u64)g->sg[-1].length + len <= g->max) {
		g->sg[-1].length += len;
	} else {
		/* The device maps whole pages, so only the ends of a region may be unaligned. */
		if (unlikely(!PAGE_ALIGNED(phys | g->end)) && g->sg != g->first)
			return -EINVAL;
		if (unlikely(g->sg == g->last))
			return -EMSGSIZE;
		sg_set_page(g->sg++, page, len, off);
	}
	g->end = phys + len;
	g->len += len;
	return 0;
}

static int kefa_gather_piece(void *arg, struct page *page, u32 off, u32 len)
{
	return kefa_gather_add(arg, page, off, len);
}

static void kefa_gather_begin(struct kefa_gather *g, struct kefa_mr *mr)
{
	*g = (struct kefa_gather) {
		.first		= mr->sg,
		.sg		= mr->sg,
		.last		= mr->sg + mr->max_ents,
		/* No memory begins here. */
		.end		= PHYS_ADDR_MAX,
		.max		= round_down(dma_get_max_seg_size(mr->dom->dev->dma), PAGE_SIZE),
	};
	mr->len = 0;
	mr->nents = 0;
}

static int kefa_gather_end(const struct kefa_gather *g, struct kefa_mr *mr, int ret)
{
	unsigned int n = g->sg - g->first;

	if (ret || !n)
		return ret ?: -EINVAL;
	/* dma_map_sgtable() checks the other entries. */
	if (unlikely(kefa_dma_p2p(sg_page(mr->sg)))) {
		kefa_mrq_count(&mr->dom->mrq, &mr->dom->mrq.stats.unreachable);
		return -EOPNOTSUPP;
	}
	kefa_mr_end(mr, n);
	mr->nents = n;
	mr->len = g->len;
	if (unlikely(mr->ends))
		kefa_mr_ends_set(mr);
	return 0;
}

/*
 * Most long regions are lists of bio_vecs of a page each. The compiler keeps a copy of the state in
 * registers.
 */
static int kefa_gather_bvec(struct kefa_gather *to, const struct fi_mr_attr *attr)
{
	const struct bio_vec *bv = attr->bvec, *end = bv + attr->iov_count;
	struct kefa_gather g = *to;
	int ret = 0;

	for (; bv < end && !ret; bv++)
		if (bv->bv_len)
			ret = kefa_gather_add(&g, bv->bv_page, bv->bv_offset, bv->bv_len);
	*to = g;
	return ret;
}

static int kefa_walk_bvec(const struct fi_mr_attr *attr, kefa_walk_fn fn, void *arg)
{
	int ret = 0;
	size_t i;

	for (i = 0; i < attr->iov_count && !ret; i++)
		if (attr->bvec[i].bv_len)
			ret = fn(arg, attr->bvec[i].bv_page, attr->bvec[i].bv_offset,
				 attr->bvec[i].bv_len);
	return ret;
}

/**
 * kefa_mr_walk() - call a function for each contiguous piece of a region
 * @attr: attributes with the memory
 * @fn: function; the walk ends if it doesn't return 0
 * @arg: first argument of @fn
 *
 * Context: Any.
 * Return: 0, the value that @fn returned, or -EINVAL for memory that can't be transferred.
 */
int kefa_mr_walk(const struct fi_mr_attr *attr, kefa_walk_fn fn, void *arg)
{
	struct scatterlist *sg;
	int ret = 0;
	size_t i;

	switch (attr->type) {
	case FI_MR_KVEC:
		for (i = 0; i < attr->iov_count && !ret; i++)
			ret = kefa_walk_kvec(attr->mr_iov[i].iov_base,
					     attr->mr_iov[i].iov_len, fn, arg);
		return ret;
	case FI_MR_BVEC:
		return kefa_walk_bvec(attr, fn, arg);
	default:
		for_each_sg(attr->sgl, sg, attr->iov_count, i) {
			if (!ret && sg->length)
				ret = fn(arg, sg_page(sg), sg->offset,
					 sg->length);
		}
		return ret;
	}
}

/**
 * kefa_mr_end() - mark the last entry of a region's list
 * @mr: the region
 * @n: number of entries, more than 0
 *
 * Context: Any. No other task uses the region.
 */
void kefa_mr_end(struct kefa_mr *mr, unsigned int n)
{
	sg_unmark_end(&mr->sg[mr->last]);
	mr->last = n - 1;
	sg_mark_end(&mr->sg[mr->last]);
}

/**
 * kefa_mr_gather() - list the memory of a region
 * @mr: the region, idle; takes the list
 * @attr: attributes with the memory
 *
 * Context: Any. No other task uses the region.
 * Return: 0, -EINVAL, -EMSGSIZE when the region has no room for the list, or -EOPNOTSUPP for memory
 * of a PCI device.
 */
int kefa_mr_gather(struct kefa_mr *mr, const struct fi_mr_attr *attr)
{
	struct kefa_gather g;
	int ret;

	kefa_gather_begin(&g, mr);
	if (attr->type == FI_MR_BVEC)
		ret = kefa_gather_bvec(&g, attr);
	else
		ret = kefa_mr_walk(attr, kefa_gather_piece, &g);
	return kefa_gather_end(&g, mr, ret);
}

/**
 * kefa_mr_gather_iter() - list the memory of an iterator
 * @mr: the region, idle; takes the list
 * @iter: the memory
 *
 * Context: Any. No other task uses the region.
 * Return: 0, -EINVAL, -EMSGSIZE when the region has no room for the list, or -EOPNOTSUPP for memory
 * of a PCI device.
 */
int kefa_mr_gather_iter(struct kefa_mr *mr, const struct iov_iter *iter)
{
	struct kefa_gather g;

	kefa_gather_begin(&g, mr);
	return kefa_gather_end(&g, mr, kefa_walk(iter, kefa_gather_piece, &g));
}

static bool kefa_mr_iommu(const struct kefa_mr *mr)
{
	phys_addr_t reached;

	return kefa_dma_iommu(mr->dom->dev->dma, 0, &reached);
}

/* Return: whether an entry of a region's list is longer than any bounce buffer. */
static bool kefa_mr_is_long(const struct kefa_mr *mr)
{
	size_t max = kefa_dma_max_map(mr->dom->dev->dma);
	const struct scatterlist *sg;

	for (sg = mr->sg; sg < mr->sg + mr->nents; sg++)
		if (sg->length > max)
			return true;
	return false;
}

/**
 * kefa_mr_map_failed() - choose the errno of a failed mapping
 * @mr: the region, not mapped, with its list
 * @err: negative errno of dma_map_sgtable(), or -EIO for a failure of dma_map_page()
 *
 * Only -ENOMEM is known to be temporary, and -EIO may be. Without an IOMMU, nothing but a bounce
 * buffer can be lacking, and only bounce buffers limit the length of a mapping: the region would be
 * refused even if there were one.
 *
 * Context: Any. No other task uses the region.
 * Return: -EAGAIN for lack of DMA space, -EOPNOTSUPP for bounce buffers and for memory that the
 * device can't reach.
 */
int kefa_mr_map_failed(struct kefa_mr *mr, int err)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;

	if (err == -ENOMEM || (err == -EIO && kefa_mr_iommu(mr) && !kefa_mr_is_long(mr))) {
		kefa_mrq_count(mrq, &mrq->stats.map_failed);
		return -EAGAIN;
	}
	kefa_mrq_count(mrq, err == -EIO ? &mrq->stats.bounced : &mrq->stats.unreachable);
	return -EOPNOTSUPP;
}

/**
 * kefa_page_size() - choose the page size of a region
 * @dev: the device
 * @sg: the memory, mapped
 * @nsegs: number of mapped entries of @sg
 * @len: length in bytes
 *
 * Context: Any.
 * Return: the largest page size at whose boundaries all pieces meet, but not larger than
 * needed for a region of two pages.
 */
u64 kefa_page_size(const struct kefa_dev *dev, const struct scatterlist *sg,
		   unsigned int nsegs, size_t len)
{
	u64 sizes = dev->page_sizes & ~(PAGE_SIZE - 1), borders = 0;
	const struct scatterlist *last = sg + nsegs - 1;

	/* Every other page is odd, and a border at such a page decides. */
	for (; sg < last && !(borders & PAGE_SIZE); sg++)
		borders |= (sg_dma_address(sg) + sg_dma_len(sg)) |
			   sg_dma_address(sg + 1);
	borders |= roundup_pow_of_two(len);
	sizes &= GENMASK_ULL(__ffs64(borders), 0);
	return sizes ? BIT_ULL(__fls(sizes)) : PAGE_SIZE;
}

/**
 * kefa_pages() - count the pages of a region
 * @sg: the memory, mapped
 * @nsegs: number of mapped entries of @sg
 * @size: the page size, from kefa_page_size()
 * @len: length in bytes
 *
 * All pieces meet at the boundaries of pages, so only the first page and the last one can be used
 * in part.
 *
 * Context: Any.
 * Return: the number of pages.
 */
size_t kefa_pages(const struct scatterlist *sg, unsigned int nsegs, u64 size, size_t len)
{
	const struct scatterlist *last = sg + nsegs - 1;
	u64 before = sg_dma_address(sg) & (size - 1);
	u64 behind = -(sg_dma_address(last) + sg_dma_len(last)) & (size - 1);

	return (before + len + behind) >> __ffs64(size);
}

static bool kefa_page_bounces(struct device *dma, dma_addr_t addr,
			      phys_addr_t phys)
{
	phys_addr_t reached;
	bool iommu;

	if (likely(!kefa_dma_need_sync(dma, addr)))
		return false;
	iommu = kefa_dma_iommu(dma, addr, &reached);
	return kefa_bounced(true, iommu, reached, phys);
}

/**
 * kefa_mr_bounces() - check whether a mapping uses bounce buffers
 * @mr: the region, mapped
 *
 * Bounce buffers aren't supported: a peer may write to one at any time, and nothing would
 * copy the data. An IOMMU may map several pieces of memory to one mapped entry.
 *
 * Context: Any. No other task uses the region.
 * Return: whether any piece has a bounce buffer.
 */
bool kefa_mr_bounces(const struct kefa_mr *mr)
{
	struct scatterlist *sg = mr->sg, *end = sg + mr->nents, *seg = sg;
	struct device *dma = mr->dom->dev->dma;
	size_t done = 0;

	if (likely(!kefa_dma_syncs(dma)))
		return false;
	for (; sg < end; sg++) {
		if (kefa_page_bounces(dma, sg_dma_address(seg) + done,
				      sg_phys(sg)))
			return true;
		done += sg->length;
		if (done >= sg_dma_len(seg)) {
			done = 0;
			seg++;
		}
	}
	return false;
}
