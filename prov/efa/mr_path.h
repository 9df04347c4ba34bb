/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Registering: inline functions of mr.c, mrq.c and direct/mr.c. */
#ifndef KEFA_MR_PATH_H
#define KEFA_MR_PATH_H

#include "dma.h"
#include "mr.h"

/* Flags of posts. */
#define KEFA_MR_FLAGS	(FI_COMPLETION | FI_MORE)
/* Access that a region is registered for. */
#define KEFA_MR_REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)

static inline struct kefa_mr *to_kefa_mr(struct fid_mr *mr)
{
	return container_of(mr, struct kefa_mr, mr_fid);
}

/* Return: whether a transition between states is valid. */
static __always_inline bool kefa_mr_may_go(enum kefa_mr_state from, enum kefa_mr_state to)
{
	switch (to) {
	case KEFA_MR_IDLE:
		return from != KEFA_MR_IDLE;
	case KEFA_MR_REGISTERING:
		return from == KEFA_MR_IDLE;
	case KEFA_MR_VALID:
		return from == KEFA_MR_REGISTERING || from == KEFA_MR_INVALIDATING;
	case KEFA_MR_INVALIDATING:
		return from == KEFA_MR_VALID;
	case KEFA_MR_REVOKING:
		return from == KEFA_MR_INVALIDATING || from == KEFA_MR_VALID;
	default:
		return false;
	}
}

/**
 * __kefa_mr_go() - change the state of a region
 * @mr: the region; unmapped if it becomes idle
 * @state: the new state, a constant
 *
 * Context: Process or softirq context, under kefa_mr_lock().
 */
static __always_inline void __kefa_mr_go(struct kefa_mr *mr, enum kefa_mr_state state)
{
	lockdep_assert_held(kefa_mr_lock(mr));
	WARN_ON_ONCE(!kefa_mr_may_go(mr->state, state));
	if (unlikely(mr->published))
		kefa_mr_set_open(mr, state == KEFA_MR_VALID);
	if (state == KEFA_MR_IDLE || state == KEFA_MR_REVOKING)
		WRITE_ONCE(mr->mr_fid.key, FI_KEY_NOTAVAIL);
	/* Pairs with kefa_mr_may_reg(), which finds an idle region unmapped. */
	smp_store_release(&mr->state, state);
}

/**
 * kefa_mr_ib_access() - convert access flags to those of verbs
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE
 *
 * Context: Any.
 * Return: enum ib_access_flags.
 */
static inline int kefa_mr_ib_access(u64 access)
{
	return IB_ACCESS_LOCAL_WRITE |
	       (access & FI_REMOTE_READ ? IB_ACCESS_REMOTE_READ : 0) |
	       (access & FI_REMOTE_WRITE ? IB_ACCESS_REMOTE_WRITE : 0);
}

/* Return: whether the arguments of a registration are valid, but for the memory itself. */
static __always_inline bool kefa_mr_attr_ok(const struct kefa_mr *mr,
					    const struct fi_mr_attr *attr)
{
	return attr && attr->type <= FI_MR_SGL && attr->mr_iov && attr->iov_count &&
	       !attr->offset && !(attr->access & ~mr->access) && attr->access & KEFA_MR_REMOTE;
}

/* --- memory that is one piece --- */

/* The direction in which the device transfers the memory of a region. */
static __always_inline enum dma_data_direction kefa_mr_dir(u64 access)
{
	return access & FI_REMOTE_WRITE ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

/* List memory that is one piece. Return: false if it is empty or too long for a region. */
static __always_inline bool kefa_mr_gather_page(struct kefa_mr *mr, struct page *page, u32 off,
						size_t len)
{
	if (!len || len > KEFA_MAX_RDMA)
		return false;
	sg_set_page(mr->sg, page, len, off);
	if (unlikely(mr->last))
		kefa_mr_end(mr, 1);
	mr->len = len;
	mr->nents = 1;
	return true;
}

/* Most regions are one contiguous buffer, which needs no walk. */
static __always_inline bool kefa_mr_gather_one(struct kefa_mr *mr,
					       const struct fi_mr_attr *attr)
{
	struct page *page;
	size_t len;
	void *buf;
	u32 off;

	if (attr->iov_count != 1)
		return false;
	if (attr->type == FI_MR_KVEC) {
		buf = attr->mr_iov->iov_base;
		len = attr->mr_iov->iov_len;
		if (!kefa_one_piece(buf))
			return false;
		page = virt_to_page(buf);
		off = offset_in_page(buf);
	} else if (attr->type == FI_MR_BVEC) {
		page = attr->bvec->bv_page;
		if (unlikely(kefa_dma_p2p(page)))
			return false;
		len = attr->bvec->bv_len;
		off = attr->bvec->bv_offset;
	} else {
		return false;
	}
	return kefa_mr_gather_page(mr, page, off, len);
}

/*
 * Map the only entry of a region's list: dma_map_page() takes fewer instructions than
 * dma_map_sg(). Return: whether it was mapped.
 */
static __always_inline bool kefa_mr_map_entry(struct kefa_mr *mr)
{
	struct device *dma = mr->dom->dev->dma;
	struct scatterlist *sg = mr->sg;
	dma_addr_t addr;

	addr = kefa_dma_map_page(dma, sg_page(sg), sg->offset, sg->length, mr->dir);
	if (unlikely(dma_mapping_error(dma, addr)))
		return false;
	sg_dma_address(sg) = addr;
	sg_dma_len(sg) = sg->length;
	return true;
}

/**
 * __kefa_mr_unmap() - unmap a region
 * @mr: the region, mapped
 *
 * Context: As kefa_mr_unmap().
 */
static __always_inline void __kefa_mr_unmap(struct kefa_mr *mr)
{
	if (unlikely(mr->nents > 1)) {
		kefa_mr_unmap(mr);
		return;
	}
	kefa_dma_unmap(mr->dom->dev->dma, sg_dma_address(mr->sg), mr->len, mr->dir);
	mr->nsegs = 0;
	mr->nents = 0;
}

#endif /* KEFA_MR_PATH_H */
