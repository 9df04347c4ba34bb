// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory of a region: gathered, mapped, and described to the device. */
#include <linux/bvec.h>
#include <linux/dma-mapping.h>
#include <linux/scatterlist.h>
#include "mr.h"

/**
 * kefa_mr_unmap() - undo kefa_mr_map()
 * @mr: the region, mapped or not
 *
 * Context: Process or softirq context. The region is the caller's alone, as
 * under kefa_mrq.lock when it isn't idle.
 */
void kefa_mr_unmap(struct kefa_mr *mr)
{
	if (mr->nsegs)
		dma_unmap_sg(mr->dom->dev->dma, mr->sg, mr->nents, mr->dir);
	mr->nsegs = 0;
	mr->nents = 0;
}

static int kefa_mr_add(void *arg, struct page *page, u32 off, u32 len)
{
	struct kefa_mr *mr = arg;
	struct scatterlist *last = mr->nents ? &mr->sg[mr->nents - 1] : NULL;
	size_t max = dma_get_max_seg_size(mr->dom->dev->dma);

	if (last && sg_phys(last) + last->length == page_to_phys(page) + off &&
	    (size_t)last->length + len <= round_down(max, PAGE_SIZE)) {
		last->length += len;
		mr->len += len;
		return 0;
	}
	/* The device knows pages: within a region they are whole. */
	if (last && (offset_in_page(off) ||
		     !PAGE_ALIGNED(sg_phys(last) + last->length)))
		return -EINVAL;
	if (mr->nents == mr->max_ents)
		return -EMSGSIZE;
	/* The list ends with its last piece. */
	if (last)
		sg_unmark_end(last);
	sg_set_page(&mr->sg[mr->nents], page, len, off);
	sg_mark_end(&mr->sg[mr->nents++]);
	mr->len += len;
	return 0;
}

static noinline int kefa_mr_walk_bvec(const struct fi_mr_attr *attr,
				      kefa_walk_fn fn, void *arg)
{
	struct iov_iter iter;
	size_t i, len = 0;

	for (i = 0; i < attr->iov_count; i++)
		len += attr->bvec[i].bv_len;
	iov_iter_bvec(&iter, ITER_DEST, attr->bvec, attr->iov_count, len);
	return kefa_walk(&iter, fn, arg);
}

/**
 * kefa_mr_walk() - visit the memory of a region in contiguous pieces
 * @attr: names the memory
 * @fn: called with each; ends the walk by what isn't 0
 * @arg: its first argument
 *
 * Context: Any.
 * Return: 0, what @fn returned, or -EINVAL for memory that isn't the kernel's
 * to transfer.
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
		return kefa_mr_walk_bvec(attr, fn, arg);
	default:
		for_each_sg(attr->sgl, sg, attr->iov_count, i) {
			if (!ret && sg->length)
				ret = fn(arg, sg_page(sg), sg->offset,
					 sg->length);
		}
		return ret;
	}
}

/* One buffer in one piece, which is what most are, needs no walk. */
static __always_inline bool kefa_mr_gather_one(struct kefa_mr *mr,
					       const struct fi_mr_attr *attr)
{
	void *buf;
	size_t len;

	if (attr->type != FI_MR_KVEC || attr->iov_count != 1)
		return false;
	buf = attr->mr_iov->iov_base;
	len = attr->mr_iov->iov_len;
	if (!len || len > KEFA_MAX_RDMA || !kefa_one_piece(buf, len))
		return false;
	sg_set_page(mr->sg, virt_to_page(buf), len, offset_in_page(buf));
	sg_mark_end(mr->sg);
	mr->len = len;
	mr->nents = 1;
	return true;
}

static noinline int kefa_mr_gather(struct kefa_mr *mr,
				   const struct fi_mr_attr *attr)
{
	int ret;

	mr->len = 0;
	mr->nents = 0;
	ret = kefa_mr_walk(attr, kefa_mr_add, mr);
	if (!ret && !mr->nents)
		ret = -EINVAL;
	return ret;
}

/**
 * kefa_mr_page_size() - choose the page size of a region
 * @mr: the region, mapped
 *
 * Context: Any.
 * Return: the largest page size at whose borders all pieces meet, but none that
 * is larger than needed to have two pages.
 */
u64 kefa_mr_page_size(const struct kefa_mr *mr)
{
	u64 sizes = mr->dom->dev->page_sizes & ~(PAGE_SIZE - 1), borders = 0;
	const struct scatterlist *sg;

	for (sg = mr->sg; sg + 1 < mr->sg + mr->nsegs; sg++)
		borders |= (sg_dma_address(sg) + sg_dma_len(sg)) |
			   sg_dma_address(sg + 1);
	borders |= roundup_pow_of_two(mr->len);
	sizes &= GENMASK_ULL(__ffs64(borders), 0);
	return sizes ? BIT_ULL(__fls(sizes)) : PAGE_SIZE;
}

/**
 * kefa_mr_pages() - how many pages a region takes
 * @mr: the region, mapped
 * @size: the page size
 *
 * Context: Any.
 * Return: the number.
 */
size_t kefa_mr_pages(const struct kefa_mr *mr, u64 size)
{
	const struct scatterlist *sg;
	u64 bytes = 0;

	for (sg = mr->sg; sg < mr->sg + mr->nsegs; sg++)
		bytes += round_up(sg_dma_address(sg) + sg_dma_len(sg), size) -
			 round_down(sg_dma_address(sg), size);
	return bytes >> __ffs64(size);
}

/* A peer would write to a bounce buffer at any time, and nobody copy it. */
static __always_inline bool kefa_mr_bounces(const struct kefa_mr *mr)
{
	const struct scatterlist *sg = mr->sg, *end = sg + mr->nsegs;
	struct device *dma = mr->dom->dev->dma;

	for (; sg < end; sg++)
		if (dma_need_sync(dma, sg_dma_address(sg)))
			return true;
	return false;
}

/**
 * kefa_mr_map() - have the device reach the memory of a region
 * @mr: the region, idle
 * @attr: the memory, and what peers may do with it
 *
 * Context: Process or softirq context. The region is the caller's alone.
 * Return: 0, -EINVAL, -EMSGSIZE, -EAGAIN when there is no DMA space for now,
 * -EOPNOTSUPP for memory that the device reaches only through bounce buffers.
 */
int kefa_mr_map(struct kefa_mr *mr, const struct fi_mr_attr *attr)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;
	int ret;

	mr->dir = attr->access & FI_REMOTE_WRITE ? DMA_BIDIRECTIONAL :
						   DMA_TO_DEVICE;
	ret = likely(kefa_mr_gather_one(mr, attr)) ? 0 : kefa_mr_gather(mr, attr);
	if (unlikely(ret))
		goto err;
	mr->nsegs = dma_map_sg(mr->dom->dev->dma, mr->sg, mr->nents, mr->dir);
	if (unlikely(!mr->nsegs)) {
		kefa_mrq_count(mrq, &mrq->stats.map_failed);
		ret = -EAGAIN;
		goto err;
	}
	if (unlikely(kefa_mr_bounces(mr))) {
		kefa_mrq_count(mrq, &mrq->stats.bounced);
		ret = -EOPNOTSUPP;
		goto err;
	}
	return 0;

err:
	kefa_mr_unmap(mr);
	return ret;
}

/**
 * kefa_mr_describe() - tell the device's region of the memory
 * @mr: the region, mapped
 *
 * Context: Process or softirq context. The region is the caller's alone.
 * Return: 0, -EMSGSIZE when the region of the device is too small, or the
 * device's error.
 */
int kefa_mr_describe(struct kefa_mr *mr)
{
	struct ib_mr *ibmr = mr->fr->mr;
	u64 size = PAGE_SIZE;
	size_t pages;
	int n;

	if (mr->nsegs == 1 && mr->len <= PAGE_SIZE) {
		pages = PFN_UP(offset_in_page(sg_dma_address(mr->sg)) + mr->len);
	} else {
		size = kefa_mr_page_size(mr);
		pages = kefa_mr_pages(mr, size);
	}
	if (unlikely(pages > mr->fr->pages))
		return -EMSGSIZE;
	n = kefa_hw_mr_map(ibmr, mr->sg, mr->nsegs, size);
	if (unlikely(n != mr->nsegs))
		return n < 0 ? n : -EINVAL;
	ibmr->iova &= size - 1;
	return 0;
}
