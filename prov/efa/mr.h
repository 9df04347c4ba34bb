/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory regions: mr.c, mr_map.c, mr_pool.c. */
#ifndef KEFA_MR_H
#define KEFA_MR_H

#include <linux/dma-direction.h>
#include <linux/list.h>
#include <linux/scatterlist.h>
#include <kofi/provider.h>
#include "domain.h"
#include "ep.h"
#include "op.h"

/* mr_pool.c */

/**
 * struct kefa_frmr - a region of the device, for fast registration
 * @list: in kefa_domain.frmrs while nobody uses it; kefa_dev.lock
 * @mr: the device's
 * @order: it holds 2^@order pages, or as many as the device can
 * @pages: that is how many
 */
struct kefa_frmr {
	struct list_head	list;
	struct ib_mr		*mr;
	u32			order;
	u32			pages;
};

void kefa_pool_init(struct kefa_domain *dom);
struct kefa_frmr *kefa_pool_get(struct kefa_domain *dom, size_t pages);
void kefa_pool_put(struct kefa_domain *dom, struct kefa_frmr *fr);
int kefa_pool_drop(struct kefa_domain *dom, struct kefa_frmr *fr);
void kefa_pool_empty(struct kefa_domain *dom);

/* mr.c */

enum kefa_mr_state {
	KEFA_MR_IDLE,		/* nothing is registered */
	KEFA_MR_REGISTERING,
	KEFA_MR_VALID,		/* peers can reach it */
	KEFA_MR_INVALIDATING,
	KEFA_MR_REVOKING,	/* not invalidated: it is being destroyed instead */
	KEFA_MR_STATES,
};

/**
 * struct kefa_mr - a memory region
 * @mr_fid: the object
 * @dom: its domain
 * @ep: the endpoint that registers it, or NULL for the domain; kefa_dev.lock to change,
 *	which only its close does
 * @list: in @dom->mrs; kefa_dev.lock
 * @wanting: in kefa_mrq.wanting; kefa_mrq.lock
 * @cq: where registrations complete, of fi_mr_alloc() alone
 * @fr: the device's region; NULL when peers have no access, or when one was destroyed
 *	and none has taken its place; kefa_dev.lock to change
 * @exposed: peers may still reach memory that was registered; kefa_dev.lock to change
 * @op: what is outstanding, of a region with an endpoint; kefa_ep.lock
 * @closing: fi_close() waits for what is outstanding; kefa_ep.lock
 * @state: enum kefa_mr_state; kefa_mr_lock(), as the next six
 * @err: positive errno of what completed last
 * @internal: what is outstanding was posted by ourselves
 * @flags: of what is outstanding
 * @context: of what is outstanding
 * @id: of its work request
 * @status: the device's, of an invalidation that failed
 * @nsegs: entries of @sg that are mapped
 * @dir: which way
 * @access: all that can be asked for
 * @len: bytes registered
 * @nents: entries of @sg in use
 * @max_ents: entries of @sg
 * @last: which of them is marked as the end of the list
 * @sg: the memory
 */
struct kefa_mr {
	struct fid_mr		mr_fid;
	struct kefa_domain	*dom;
	struct kefa_ep		*ep;
	struct list_head	list;
	struct list_head	wanting;
	struct kofi_cq		*cq;
	struct kefa_frmr	*fr;
	bool			exposed;
	bool			closing;
	struct kefa_op		*op;
	enum kefa_mr_state	state;
	int			err;
	bool			internal;
	u64			flags;
	void			*context;
	u64			id;
	u32			status;
	unsigned int		nsegs;
	enum dma_data_direction	dir;
	u64			access;
	size_t			len;
	unsigned int		nents;
	unsigned int		max_ents;
	unsigned int		last;
	struct scatterlist	*sg;
};

/**
 * kefa_mr_lock() - the lock that protects a region's state
 * @mr: the region
 *
 * Context: Any.
 * Return: its endpoint's lock, or that of the domain's queue pair for registrations.
 */
static inline spinlock_t *kefa_mr_lock(const struct kefa_mr *mr)
{
	return mr->ep ? &mr->ep->lock : &mr->dom->mrq.lock;
}

int kefa_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		    u64 flags, struct fid_mr **mr);
int kefa_mr_alloc(struct fid_domain *domain,
		  const struct fi_mr_alloc_attr *attr, struct fid_mr **mr,
		  void *context);
void kefa_mrs_remove(struct kefa_domain *dom);
void kefa_mrs_revoke(struct work_struct *work);

void kefa_mr_wait(struct kefa_mr *mr);
struct kefa_mr *kefa_mr_own(struct kefa_ep *ep, u64 access, size_t ents);
int kefa_mr_map_iter(struct kefa_mr *mr, const struct iov_iter *iter, u64 access);
void kefa_mr_own_end(struct kefa_mr *mr);
void kefa_mr_disown(struct kefa_mr *mr);

/* mr_ep.c */

int kefa_mr_ep_reg(struct kefa_mr *mr, u64 access, u64 flags, void *context);
int kefa_mr_ep_inval(struct kefa_mr *mr, u64 flags, void *context);
bool kefa_mr_ep_done(struct kefa_ep *ep, struct kefa_op *op, int err, u32 prov_errno);
void kefa_mr_ep_look(struct kefa_ep *ep);
void kefa_mr_ep_refused(struct kefa_ep *ep);
void kefa_mr_ep_lost(struct kefa_ep *ep, struct kefa_op *op);
void kefa_mr_ep_revoked(struct kefa_mr *mr, int err);
void kefa_mr_ep_leave(struct kefa_mr *mr);

/* mr_map.c */

/**
 * kefa_bounced() - does the device reach a copy of memory instead of the memory?
 * @sync: what dma_need_sync() says of the mapping
 * @iommu: an IOMMU is between the device and memory
 * @reached: the physical address to which the IOMMU leads the device
 * @phys: the memory's physical address
 *
 * Without an IOMMU dma_need_sync() is true of bounce buffers and of memory that isn't
 * coherent. With an IOMMU some kernels have it true of each mapping (6.1, and later
 * ones that debug the DMA API), so the memory itself is compared: only an untrusted
 * device has a copy there.
 *
 * Context: Any.
 * Return: whether it does.
 */
static inline bool kefa_bounced(bool sync, bool iommu, phys_addr_t reached,
				phys_addr_t phys)
{
	return sync && (!iommu || reached != phys);
}

int kefa_mr_walk(const struct fi_mr_attr *attr, kefa_walk_fn fn, void *arg);
void kefa_mr_end(struct kefa_mr *mr, unsigned int n);
int kefa_mr_gather(struct kefa_mr *mr, const struct fi_mr_attr *attr);
int kefa_mr_gather_iter(struct kefa_mr *mr, const struct iov_iter *iter);
bool kefa_mr_bounces(const struct kefa_mr *mr);
void kefa_mr_unmap(struct kefa_mr *mr);
u64 kefa_page_size(const struct kefa_dev *dev, const struct scatterlist *sg,
		   unsigned int nsegs, size_t len);
size_t kefa_pages(const struct scatterlist *sg, unsigned int nsegs, u64 size);

/**
 * kefa_describe() - tell a region of the device of its memory
 * @dev: the device
 * @fr: the region
 * @sg: the memory, mapped
 * @nsegs: entries of @sg that are mapped
 * @len: bytes
 *
 * Context: Process or softirq context. The region is the caller's alone.
 * Return: 0, -EMSGSIZE when the region is too small, or the device's error.
 */
static __always_inline int kefa_describe(const struct kefa_dev *dev,
					 struct kefa_frmr *fr,
					 struct scatterlist *sg,
					 unsigned int nsegs, size_t len)
{
	u64 size = PAGE_SIZE;
	size_t pages;
	int n;

	if (nsegs == 1 && len <= PAGE_SIZE) {
		pages = PFN_UP(offset_in_page(sg_dma_address(sg)) + len);
	} else {
		size = kefa_page_size(dev, sg, nsegs, len);
		pages = kefa_pages(sg, nsegs, size);
	}
	if (unlikely(pages > fr->pages))
		return -EMSGSIZE;
	n = kefa_hw_mr_map(fr->mr, sg, nsegs, size);
	if (unlikely(n != nsegs))
		return n < 0 ? n : -EINVAL;
	/* A peer needn't know where the memory is. */
	if (likely(!dev->raw_iova))
		fr->mr->iova &= size - 1;
	return 0;
}

#endif /* KEFA_MR_H */
