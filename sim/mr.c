// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory as the device sees it: keys, regions, pages, bytes.
 *
 * The device has only DMA addresses. Its platform device isn't behind an
 * IOMMU (efasim_engine_create() refuses one), so a DMA address is a physical
 * address: of the caller's page, or of the bounce buffer when swiotlb is forced.
 * Data therefore moves only if the caller mapped, synced and unmapped as for a
 * real device. An access to an address without memory fails and has no other effect.
 *
 * Amazon's sources don't say whether the device copies the page list of a fast
 * registration or reads it at each access. By default it reads the list, so remapping a
 * live region redirects accesses; the knob frwr_copy makes it copy the list.
 */
#include <linux/mm.h>
#include <linux/io.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "priv.h"

/* Not every valid page frame is mapped in the kernel. */
static bool is_mapped(const void *mem)
{
	u8 byte;

	return !copy_from_kernel_nofault(&byte, mem, sizeof(byte));
}

static bool efasim_dev_page_copy(struct efasim_dev *dev, u64 addr, void *buf,
				 u32 len, enum efasim_mr_side side)
{
	void *mem;

	if (READ_ONCE(dev->no_dma))
		return false;
	mem = pfn_valid(PHYS_PFN(addr)) ? phys_to_virt(addr) : NULL;
	if (!mem || !is_mapped(mem)) {
		efasim_count(dev, EFASIM_S_bad_dma_address);
		return false;
	}
	/* memcpy() instead of a copy that catches faults, so that KASAN checks it. */
	if (side == EFASIM_MR_WRITE_TO)
		memcpy(mem, buf, len);
	else
		memcpy(buf, mem, len);
	return true;
}

/* Copy bytes between @buf and host memory. */
bool efasim_dev_dma(struct efasim_dev *dev, u64 addr, void *buf, u32 len,
		    enum efasim_mr_side side)
{
	while (len) {
		u32 n = min_t(u32, len, PAGE_SIZE - offset_in_page(addr));

		if (!efasim_dev_page_copy(dev, addr, buf, n, side))
			return false;
		addr += n;
		buf += n;
		len -= n;
	}
	return true;
}

static struct efasim_mr *efasim_dev_find_mr(struct efasim_dev *dev, u32 key)
{
	return xa_load(&dev->mrs, key & EFASIM_KEY_INDEX_MASK);
}

static struct efasim_mr *efasim_dev_mr_get(struct efasim_dev *dev, u32 pdn,
					   u32 key, u64 addr, u32 len,
					   u8 access)
{
	struct efasim_mr *mr = efasim_dev_find_mr(dev, key);

	if (!mr || mr->key != key || mr->pdn != pdn)
		return NULL;
	if (mr->state != EFASIM_MR_VALID && mr->state != EFASIM_MR_DMA)
		return NULL;
	if ((mr->access & access) != access)
		return NULL;
	if (addr < mr->iova || addr - mr->iova > mr->length ||
	    len > mr->length - (addr - mr->iova))
		return NULL;
	return mr;
}

/* Return: whether a key grants an access to a range. */
bool efasim_dev_mr_ok(struct efasim_dev *dev, u32 pdn, u32 key, u64 addr,
		      u32 len, u8 access)
{
	return efasim_dev_mr_get(dev, pdn, key, addr, len, access);
}

static bool efasim_dev_mr_page(struct efasim_dev *dev,
			       const struct efasim_mr *mr, u64 index, u64 *page)
{
	if (index >= mr->npages)
		return false;
	if (mr->pbl_inline) {
		*page = mr->pbl;
		return true;
	}
	if (mr->copy) {
		*page = mr->copy[index];
		return true;
	}
	return efasim_dev_dma(dev, mr->pbl + index * sizeof(u64), page,
			      sizeof(u64), EFASIM_MR_READ_FROM);
}

static bool efasim_dev_mr_walk(struct efasim_dev *dev,
			       const struct efasim_mr *mr, u64 addr, void *buf,
			       u32 len, enum efasim_mr_side side)
{
	u64 size = BIT_ULL(mr->page_shift);
	u64 offset = addr - round_down(mr->iova, size);

	while (len) {
		u64 in_page = offset & (size - 1);
		u32 n = min_t(u64, len, size - in_page);
		u64 page;

		if (!efasim_dev_mr_page(dev, mr, offset >> mr->page_shift,
					&page) ||
		    !efasim_dev_dma(dev, page + in_page, buf, n, side))
			return false;
		offset += n;
		buf += n;
		len -= n;
	}
	return true;
}

/* Copy bytes between @buf and memory of the region with @key. */
bool efasim_dev_mr_copy(struct efasim_dev *dev, u32 pdn, u32 key, u64 addr,
			void *buf, u32 len, u8 access,
			enum efasim_mr_side side)
{
	struct efasim_mr *mr;

	lockdep_assert_held(&dev->lock);
	mr = efasim_dev_mr_get(dev, pdn, key, addr, len, access);
	if (!mr)
		return false;
	if (mr->state == EFASIM_MR_DMA)
		return efasim_dev_dma(dev, addr, buf, len, side);
	return efasim_dev_mr_walk(dev, mr, addr, buf, len, side);
}

/* Copy bytes between @buf and a scatter list, from @offset on. */
bool efasim_dev_sge_copy(struct efasim_dev *dev, u32 pdn,
			 const struct efasim_sge *sge, int num_sge, u32 offset,
			 void *buf, u32 len, enum efasim_mr_side side)
{
	u8 access = side == EFASIM_MR_WRITE_TO ? EFASIM_ACCESS_LOCAL_WRITE : 0;
	int i;

	for (i = 0; i < num_sge && len; i++) {
		u32 n;

		if (offset >= sge[i].length) {
			offset -= sge[i].length;
			continue;
		}
		n = min(len, sge[i].length - offset);
		if (!efasim_dev_mr_copy(dev, pdn, sge[i].lkey,
					sge[i].addr + offset, buf, n, access,
					side)) {
			efasim_count(dev, EFASIM_S_bad_lkey);
			return false;
		}
		offset = 0;
		buf += n;
		len -= n;
	}
	return !len;
}

/* Return: whether @reg is a valid registration of a region. */
bool efasim_dev_mr_valid(struct efasim_dev *dev, const struct efasim_mr *mr,
			 const struct efasim_reg *reg)
{
	u64 size, first;

	if (!reg->npages || reg->npages > mr->max_pages)
		return false;
	if (reg->page_shift < 12 || reg->page_shift > 30)
		return false;
	size = BIT_ULL(reg->page_shift);
	first = reg->iova & (size - 1);
	if (reg->length > reg->npages * size - first)
		return false;
	if (reg->access & EFASIM_ACCESS_REMOTE_WRITE && !dev->limits.rdma_write)
		return false;
	if (reg->access & EFASIM_ACCESS_REMOTE_READ && !dev->limits.rdma_read)
		return false;
	return true;
}

/* Make the region's key grant access as @reg says. */
void efasim_dev_mr_set(struct efasim_mr *mr, const struct efasim_reg *reg)
{
	mr->key = reg->lkey;
	mr->iova = reg->iova;
	mr->length = reg->length;
	mr->pbl = reg->pbl;
	mr->npages = reg->npages;
	mr->pbl_inline = reg->pbl_inline;
	mr->page_shift = reg->page_shift;
	mr->access = reg->access;
	mr->used = true;
	WRITE_ONCE(mr->state, EFASIM_MR_VALID);
}

/* Copy the page list now, unless the device reads it at each use. */
static enum efasim_status efasim_dev_copy_list(struct efasim_dev *dev,
					       struct efasim_mr *mr,
					       const struct efasim_wqe *wqe)
{
	size_t size = wqe->reg.npages * sizeof(u64);

	kvfree(mr->copy);
	mr->copy = NULL;
	if (wqe->reg.pbl_inline || !efasim_fault(dev, EFASIM_F_frwr_copy))
		return EFASIM_OK;
	mr->copy = kvmalloc(size, GFP_NOIO | __GFP_NOWARN);
	if (!mr->copy) {
		efasim_count(dev, EFASIM_S_no_memory);
		return EFASIM_QP_INTERNAL;
	}
	return efasim_dev_dma(dev, wqe->reg.pbl, mr->copy, size,
			      EFASIM_MR_READ_FROM) ?
	       EFASIM_OK : EFASIM_INVALID_LKEY;
}

/* Execute a REG_MR. */
enum efasim_status efasim_dev_mr_reg(struct efasim_qp *qp,
				     const struct efasim_wqe *wqe)
{
	struct efasim_dev *dev = qp->dev;
	struct efasim_mr *mr = efasim_dev_find_mr(dev, wqe->reg.lkey);
	enum efasim_status status;

	/* The addresses are physical ones, so a process must not register its region again. */
	if (!mr || mr->pdn != qp->pdn || !mr->fast || mr->state != EFASIM_MR_FREE)
		return EFASIM_INVALID_LKEY;
	if (mr->used && mr->key == wqe->reg.lkey) {
		efasim_count(dev, EFASIM_S_mr_reuse_generation);
		return EFASIM_INVALID_LKEY;
	}
	if (!efasim_dev_mr_valid(dev, mr, &wqe->reg))
		return EFASIM_UNSUPPORTED_OP;
	status = efasim_dev_copy_list(dev, mr, wqe);
	if (status)
		return status;

	efasim_dev_mr_set(mr, &wqe->reg);
	return EFASIM_OK;
}

/* A registration request of the host has ended, successfully or not. */
void efasim_dev_mr_done(struct efasim_dev *dev, const struct efasim_wqe *wqe)
{
	struct efasim_mr *mr;

	if (wqe->op != EFASIM_OP_FAST_REG)
		return;
	mr = efasim_dev_find_mr(dev, wqe->reg.lkey);
	if (mr)
		WRITE_ONCE(mr->posted, false);
}

/* Execute a LOCAL_INV. */
enum efasim_status efasim_dev_mr_inv(struct efasim_qp *qp, u32 key)
{
	struct efasim_mr *mr = efasim_dev_find_mr(qp->dev, key);

	if (!mr || mr->pdn != qp->pdn || !mr->fast || mr->state != EFASIM_MR_VALID ||
	    mr->key != key)
		return EFASIM_INVALID_LKEY;
	WRITE_ONCE(mr->state, EFASIM_MR_FREE);
	return EFASIM_OK;
}
