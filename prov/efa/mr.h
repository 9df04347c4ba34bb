/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory regions: mr.c, mr_key.c, mr_map.c, mr_pool.c. mr_path.h has inline functions. */
#ifndef KEFA_MR_H
#define KEFA_MR_H

#include <linux/dma-direction.h>
#include <linux/list.h>
#include <linux/scatterlist.h>
#include <kofi/provider.h>
#include "domain.h"
#include "ep.h"
#include "mem.h"

struct kefa_op;

/* mr_pool.c */

/**
 * struct kefa_frmr - a region of the device, for fast registration
 * @list: in kefa_domain.frmrs while the region is idle; under kefa_dev.lock
 * @mr: the device's region
 * @order: binary logarithm of the capacity in pages, before the device's limit
 * @pages: capacity in pages
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
	KEFA_MR_VALID,		/* peers can access the region */
	KEFA_MR_INVALIDATING,
	KEFA_MR_REVOKING,	/* invalidation failed: the region is being destroyed */
	KEFA_MR_STATES,
};

/**
 * enum kefa_mr_report - how the end of a region's request is reported
 * @KEFA_MR_TOLD: by a completion
 * @KEFA_MR_QUIET: not at all, unless it fails; the request is counted in kefa_mrq.awaited
 * @KEFA_MR_INTERNAL: not at all: the provider itself posted it
 */
enum kefa_mr_report {
	KEFA_MR_TOLD,
	KEFA_MR_QUIET,
	KEFA_MR_INTERNAL,
};

/**
 * struct kefa_mr - a memory region
 * @mr_fid: the object
 * @dom: domain of the region
 * @ep: endpoint that issues the region's requests, or NULL for the domain; changed by the
 *	region's close, under kefa_dev.lock
 * @list: in @dom->mrs; under kefa_dev.lock
 * @wanting: in kefa_mrq.wanting; under kefa_mrq.lock
 * @cq: completion queue of registrations, for regions of fi_mr_alloc()
 * @polled: readers of @cq poll the domain's queue pair; under kefa_dev.lock
 * @fr: the device's region; NULL if peers have no access, or if it was destroyed
 *	and not replaced; changed under kefa_dev.lock
 * @exposed: peers may still reach memory that was registered; changed under kefa_dev.lock
 * @untold: so they may, and fi_close() hasn't told; under kefa_dev.lock
 * @op: outstanding operation of a region with an endpoint; under kefa_ep.lock
 * @retire: fi_close() destroys the device's region, and tells of @untold
 * @closing: fi_close() waits for the outstanding request; under kefa_ep.lock
 * @state: enum kefa_mr_state; under kefa_mr_lock()
 * @err: positive errno of the last completion, or of one that waits in kefa_mrq.late; under
 *	kefa_mr_lock()
 * @report: enum kefa_mr_report of the outstanding request; under kefa_mr_lock()
 * @context: context of the outstanding request; under kefa_mr_lock()
 * @id: id of the outstanding work request; under kefa_mr_lock()
 * @status: the device's status of a failed invalidation; under kefa_mr_lock()
 * @nsegs: number of mapped entries of @sg
 * @dir: direction of the DMA mapping
 * @access: access that a request may grant
 * @granted: access that the last registration by kefa_mrq granted
 * @able: access that the device can grant; if the CPU accesses regions for peers, it does the rest
 * @len: number of registered bytes
 * @nents: number of entries of @sg in use
 * @max_ents: size of @sg
 * @last: entry of @sg that is marked as the end of the list
 * @sg: the memory
 * @ends: for a region in kefa_domain.keys with room for several entries, number of bytes up to the
 *	end of each entry of @sg; otherwise NULL
 * @slot: index in kefa_domain.keys
 * @published: the region is in kefa_domain.keys; under kefa_dev.lock
 * @cpu: protects @open, @seq and, with @open, what describes the memory; taken inside
 *	kefa_mr_lock() or kefa_ep.lock
 * @open: the CPU may access the memory for peers
 * @seq: number of times that @open was set
 * @reads: number of reads by which the device writes to the memory for peers, and of packets whose
 *	data peers in the same kernel copy from it; incremented under @cpu, with @open
 * @late: in kefa_mrq.late; under kefa_mrq.lock
 * @rcu: for freeing, as the region may just have been found by its key
 */
struct kefa_mr {
	struct fid_mr		mr_fid;
	struct kefa_domain	*dom;
	struct kefa_ep		*ep;
	struct list_head	list;
	struct list_head	wanting;
	struct kofi_cq		*cq;
	bool			polled;
	struct kefa_frmr	*fr;
	bool			exposed;
	bool			untold;
	bool			retire;
	bool			closing;
	struct kefa_op		*op;
	enum kefa_mr_state	state;
	int			err;
	u8			report;
	void			*context;
	u64			id;
	u32			status;
	unsigned int		nsegs;
	enum dma_data_direction	dir;
	u64			access;
	u64			granted;
	u64			able;
	size_t			len;
	unsigned int		nents;
	unsigned int		max_ents;
	unsigned int		last;
	struct scatterlist	*sg;
	u64			*ends;
	u32			slot;
	bool			published;
	rwlock_t		cpu;	/* access for peers: see above */
	bool			open;
	u32			seq;
	atomic_t		reads;
	struct list_head	late;
	struct rcu_head		rcu;
};

/**
 * kefa_mr_lock() - get the lock that protects a region's state
 * @mr: the region
 *
 * Context: Any.
 * Return: the lock of the region's endpoint, or that of the domain's kefa_mrq.
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
bool kefa_mr_is(const struct fid_mr *mr);
int kefa_mr_post_reg(struct fid_mr *mr_fid, const struct fi_mr_attr *attr, u64 flags);
int kefa_mr_post_inval(struct fid_mr *mr_fid, u64 flags, void *context);
void kefa_mrs_end(struct kefa_ep *ep);
void kefa_mrs_remove(struct kefa_domain *dom);
void kefa_mrs_revoke(struct work_struct *work);

void kefa_mr_wait(struct kefa_mr *mr);
struct kefa_mr *kefa_mr_own(struct kefa_ep *ep, u64 access, size_t ents);
int kefa_mr_map_iter(struct kefa_mr *mr, const struct iov_iter *iter, u64 access);
int kefa_mr_map_one(struct kefa_mr *mr, void *buf, size_t len, u64 access);
void kefa_mr_own_end(struct kefa_mr *mr);
void kefa_mr_disown(struct kefa_mr *mr);

/* mr_key.c */

/**
 * enum kefa_fault - why a peer may not access memory
 * @KEFA_FAULT_NONE: it may
 * @KEFA_FAULT_KEY: no region has the key, or not any more
 * @KEFA_FAULT_ACCESS: the region isn't registered for that
 * @KEFA_FAULT_RANGE: not all of the memory is in the region
 */
enum kefa_fault {
	KEFA_FAULT_NONE,
	KEFA_FAULT_KEY,
	KEFA_FAULT_ACCESS,
	KEFA_FAULT_RANGE,
};

/**
 * struct kefa_named - memory that a peer names
 * @addr: remote address
 * @len: length in bytes
 * @key: key of the region
 * @seq: number of the registration that the key named when kefa_mr_check() found it
 */
struct kefa_named {
	u64	addr;
	u64	len;
	u64	key;
	u32	seq;
};

int kefa_mr_publish(struct kefa_mr *mr, const struct kefa_frmr *fr);
void kefa_mr_unpublish(struct kefa_mr *mr);
int kefa_mr_ends_alloc(struct kefa_mr *mr);
void kefa_mr_ends_set(struct kefa_mr *mr);
void kefa_mr_set_open(struct kefa_mr *mr, bool open);
/**
 * struct kefa_arith - an atomic operation on a region, as for kofi_arith()
 * @datatype: type of the elements
 * @op: the operation
 * @operand: the operands, or NULL
 * @comparand: the values to compare with, or NULL
 * @result: takes the old values, or NULL
 */
struct kefa_arith {
	u32		datatype;
	u32		op;
	const void	*operand;
	const void	*comparand;
	void		*result;
};

enum kefa_fault kefa_mr_check(struct kefa_domain *dom, struct kefa_named *mem, u64 access);
enum kefa_fault kefa_mr_once(struct kefa_domain *dom, struct kefa_named *mem, void *buf,
			     bool write);
enum kefa_fault kefa_mr_write(struct kefa_domain *dom, const struct kefa_named *mem, u64 off,
			      const void *from, size_t len);
enum kefa_fault kefa_mr_read(struct kefa_domain *dom, const struct kefa_named *mem, u64 off,
			     void *to, size_t len);

enum kefa_fault kefa_mr_atomic(struct kefa_domain *dom, const struct kefa_named *mem, u64 access,
			       struct kefa_arith *arith);
enum kefa_fault kefa_mr_fetch_once(struct kefa_domain *dom, const struct kefa_named *mem,
				   struct kefa_arith *arith);
enum kefa_fault kefa_mr_reach(struct kefa_domain *dom, const struct kefa_named *mem, u64 access,
			      u64 off, u32 len, struct kefa_seg *seg, struct kefa_mr **found);
void kefa_mr_unreach(struct kefa_mr *mr);

/* mr_map.c */

/**
 * kefa_bounced() - check whether a mapping uses a bounce buffer
 * @sync: result of dma_need_sync() for the mapping
 * @iommu: an IOMMU translates for the device
 * @reached: physical address to which the IOMMU translates
 * @phys: physical address of the memory
 *
 * Without an IOMMU dma_need_sync() is true for bounce buffers and for memory that isn't
 * coherent. With an IOMMU it is true for each mapping on some kernels (6.1, and later
 * ones that debug the DMA API), so compare the addresses: only mappings for an untrusted
 * device have bounce buffers there.
 *
 * Context: Any.
 * Return: true if the device reaches a copy instead of the memory.
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
int kefa_mr_map_failed(struct kefa_mr *mr, int err);
bool kefa_mr_bounces(const struct kefa_mr *mr);
void kefa_mr_unmap(struct kefa_mr *mr);
u64 kefa_page_size(const struct kefa_dev *dev, const struct scatterlist *sg,
		   unsigned int nsegs, size_t len);
size_t kefa_pages(const struct scatterlist *sg, unsigned int nsegs, u64 size, size_t len);

/* The page size of a region of one piece, by the rule of kefa_page_size(). */
static inline u64 kefa_page_size_one(const struct kefa_dev *dev, size_t len)
{
	u64 sizes = dev->page_sizes & (2 * roundup_pow_of_two(len) - PAGE_SIZE);

	return sizes ? BIT_ULL(__fls(sizes)) : PAGE_SIZE;
}

/**
 * kefa_describe() - set the page list of a region of the device
 * @dev: the device
 * @fr: the region
 * @sg: the memory, mapped
 * @nsegs: number of mapped entries of @sg
 * @len: length in bytes
 *
 * Context: Process or softirq context. No other task uses the region.
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

	if (nsegs == 1) {
		if (len > PAGE_SIZE)
			size = kefa_page_size_one(dev, len);
		pages = ((sg_dma_address(sg) & (size - 1)) + len + size - 1) >> __ffs64(size);
	} else {
		size = kefa_page_size(dev, sg, nsegs, len);
		pages = kefa_pages(sg, nsegs, size, len);
	}
	if (unlikely(pages > fr->pages))
		return -EMSGSIZE;
	n = kefa_hw_mr_map(fr->mr, sg, nsegs, size);
	if (unlikely(n != nsegs))
		return n < 0 ? n : -EINVAL;
	/* Don't reveal the DMA address to peers. */
	if (likely(!dev->raw_iova))
		fr->mr->iova &= size - 1;
	return 0;
}

#endif /* KEFA_MR_H */
