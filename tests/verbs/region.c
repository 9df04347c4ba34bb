// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A memory region of single pages, registered by work request. The region's
 * completions arrive in its endpoint's CQ and are waited for here, so a case
 * must have nothing else outstanding meanwhile.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "conformance.h"

#define WAIT_MS		10000

static int alloc_pages_of(struct region *r)
{
	unsigned int i;

	r->sg = kcalloc(r->pages, sizeof(*r->sg), GFP_KERNEL);
	if (!r->sg)
		return -ENOMEM;
	sg_init_table(r->sg, r->pages);
	for (i = 0; i < r->pages; i++) {
		struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);

		if (!page)
			return -ENOMEM;
		sg_set_page(&r->sg[i], page, PAGE_SIZE, 0);
	}
	if (ib_dma_map_sg(r->ep->dev, r->sg, r->pages, DMA_BIDIRECTIONAL) !=
	    r->pages)
		return -ENOMEM;
	return 0;
}

/* The caller calls region_close() even after an error. */
int region_open(struct region *r, struct ep *ep, unsigned int pages)
{
	int err;

	memset(r, 0, sizeof(*r));
	r->ep = ep;
	r->pages = pages;
	r->len = pages * PAGE_SIZE;
	err = alloc_pages_of(r);
	if (err)
		return err;
	r->mr = ib_alloc_mr(ep->pd, IB_MR_TYPE_MEM_REG, pages);
	if (IS_ERR(r->mr))
		return PTR_ERR(r->mr);
	return region_map(r);
}

void region_close(struct region *r)
{
	unsigned int i;

	if (!IS_ERR_OR_NULL(r->mr))
		ib_dereg_mr(r->mr);
	if (!r->sg)
		return;
	if (sg_dma_len(r->sg))
		ib_dma_unmap_sg(r->ep->dev, r->sg, r->pages,
				DMA_BIDIRECTIONAL);
	for (i = 0; i < r->pages; i++)
		if (sg_page(&r->sg[i]))
			__free_page(sg_page(&r->sg[i]));
	kfree(r->sg);
	memset(r, 0, sizeof(*r));
}

int region_map(struct region *r)
{
	int n = ib_map_mr_sg(r->mr, r->sg, r->pages, NULL, PAGE_SIZE);

	return n == r->pages ? 0 : n < 0 ? n : -EINVAL;
}

static int post(struct region *r, const struct ib_send_wr *wr)
{
	const struct ib_send_wr *bad;
	int err;

	local_bh_disable();
	err = ib_post_send(r->ep->qp, wr, &bad);
	local_bh_enable();
	return err;
}

int region_post(struct region *r, int access)
{
	struct ib_reg_wr wr = {
		.wr = {
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
			.wr_id = 0x4e6,
		},
		.mr = r->mr,
		.key = r->mr->rkey,
		.access = access,
	};

	return post(r, &wr.wr);
}

static int wait_done(struct region *r)
{
	struct ib_wc wc;

	if (!ep_wait(r->ep, &wc, WAIT_MS))
		return -ETIMEDOUT;
	return wc.vendor_err;
}

/* Register with a new generation of the key. Return: the device's status. */
int region_reg(struct region *r, int access)
{
	int err;

	efa_inc_fast_reg_key_gen(r->mr);
	err = region_post(r, access);
	return err ?: wait_done(r);
}

int region_post_inv(struct region *r, u32 key)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = key,
	};

	return post(r, &wr);
}

int region_inv(struct region *r)
{
	return region_post_inv(r, r->mr->lkey) ?: wait_done(r);
}

static u8 pattern(u32 i, u8 seed)
{
	return seed + i + (i >> 8) * 7;
}

void region_fill(struct region *r, u8 seed)
{
	u32 i;

	dma_sync_sg_for_cpu(r->ep->dev->dma_device, r->sg, r->pages,
			    DMA_BIDIRECTIONAL);
	for (i = 0; i < r->len; i++)
		((u8 *)sg_virt(&r->sg[i / PAGE_SIZE]))[i % PAGE_SIZE] =
			pattern(i, seed);
	dma_sync_sg_for_device(r->ep->dev->dma_device, r->sg, r->pages,
			       DMA_BIDIRECTIONAL);
}

/* Return: whether @len bytes from @off on have the pattern of @seed. */
bool region_filled(struct region *r, u32 off, u32 len, u8 seed)
{
	bool ok = true;
	u32 i;

	dma_sync_sg_for_cpu(r->ep->dev->dma_device, r->sg, r->pages,
			    DMA_BIDIRECTIONAL);
	for (i = 0; i < len && ok; i++) {
		u32 at = off + i;

		ok = ((u8 *)sg_virt(&r->sg[at / PAGE_SIZE]))[at % PAGE_SIZE] ==
		     pattern(i, seed);
	}
	dma_sync_sg_for_device(r->ep->dev->dma_device, r->sg, r->pages,
			       DMA_BIDIRECTIONAL);
	return ok;
}
