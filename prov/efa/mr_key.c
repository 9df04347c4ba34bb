// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions by their keys, and access to them by the CPU. On fabric efa a peer may send a packet
 * that asks for a read or write of a region, as not all devices have RDMA. The same key names the
 * region for the device and for such packets.
 *
 * Nothing holds a region for a peer: each access finds it by its key again, and copies under a
 * lock that the end of the registration takes, too. So the ULP can invalidate or close a region at
 * any time, and waits for one copy at most. Memory that is registered isn't bounced, so the CPU and
 * the device access the same bytes.
 */
#include <linux/highmem.h>
#include <linux/slab.h>
#include "mr.h"

/**
 * kefa_mr_publish() - let peers find a region by its key
 * @mr: the region, which isn't registered
 * @fr: region of the device that @mr gets
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, -ENOMEM, or -FI_ENOMR if the device has given the key to another region.
 */
int kefa_mr_publish(struct kefa_mr *mr, const struct kefa_frmr *fr)
{
	int ret;

	lockdep_assert_held(&mr->dom->dev->lock);
	/* The provider's own regions are for the device alone. */
	if (!mr->dom->cpu_rma || mr->ep)
		return 0;
	mr->slot = kefa_hw_key_slot(fr->mr->rkey);
	ret = xa_insert(&mr->dom->keys, mr->slot, mr, GFP_KERNEL);
	mr->published = !ret;
	return ret == -EBUSY ? -FI_ENOMR : ret;
}

/**
 * kefa_mr_unpublish() - undo kefa_mr_publish()
 * @mr: the region, published or not
 *
 * No access by the CPU is running afterwards. It may still be found for an RCU grace period.
 *
 * Context: Process context, under kefa_dev.lock.
 */
void kefa_mr_unpublish(struct kefa_mr *mr)
{
	lockdep_assert_held(&mr->dom->dev->lock);
	if (!mr->published)
		return;
	kefa_mr_set_open(mr, false);
	xa_erase(&mr->dom->keys, mr->slot);
	mr->published = false;
}

/**
 * kefa_mr_ends_alloc() - prepare a region for access by the CPU
 * @mr: the region, new
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_mr_ends_alloc(struct kefa_mr *mr)
{
	if (!mr->dom->cpu_rma || mr->max_ents < 2)
		return 0;
	mr->ends = kvcalloc(mr->max_ents, sizeof(*mr->ends), GFP_KERNEL);
	return mr->ends ? 0 : -ENOMEM;
}

/**
 * kefa_mr_ends_set() - note where the entries of a region's list end
 * @mr: the region, with kefa_mr.ends and a list
 *
 * Context: Any. No other task uses the region.
 */
void kefa_mr_ends_set(struct kefa_mr *mr)
{
	u64 end = 0;
	unsigned int i;

	for (i = 0; i < mr->nents; i++) {
		end += mr->sg[i].length;
		mr->ends[i] = end;
	}
}

/**
 * kefa_mr_set_open() - allow or end access to a region by the CPU
 * @mr: the region, published or not
 * @open: the region is registered; false to wait for an access that is running
 *
 * Context: Process or softirq context. If the region isn't idle, under kefa_mr_lock().
 */
void kefa_mr_set_open(struct kefa_mr *mr, bool open)
{
	write_lock_bh(&mr->cpu);
	mr->seq += open;
	mr->open = open;
	write_unlock_bh(&mr->cpu);
}

/* Find the region with a key, under RCU. The caller checks that the key is the current one. */
static struct kefa_mr *kefa_mr_by_key(struct kefa_domain *dom, u64 key)
{
	return key <= U32_MAX ? xa_load(&dom->keys, kefa_hw_key_slot(key)) : NULL;
}

/* Check an access, under kefa_mr.cpu. */
static enum kefa_fault kefa_mr_judge(const struct kefa_mr *mr, const struct kefa_named *mem,
				     u64 access)
{
	const u64 off = mem->addr - mr->mr_fid.base_addr;

	if (!mr->open || mr->mr_fid.key != mem->key)
		return KEFA_FAULT_KEY;
	if (access & ~mr->granted)
		return KEFA_FAULT_ACCESS;
	return off > mr->len || mem->len > mr->len - off ? KEFA_FAULT_RANGE : KEFA_FAULT_NONE;
}

/**
 * kefa_mr_check() - check whether a peer may access memory
 * @dom: the domain
 * @mem: the memory; takes the number of the registration
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE, or both
 *
 * The region may go away as soon as this returns.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: whether it may, or why not.
 */
enum kefa_fault kefa_mr_check(struct kefa_domain *dom, struct kefa_named *mem, u64 access)
{
	enum kefa_fault fault = KEFA_FAULT_KEY;
	struct kefa_mr *mr;

	rcu_read_lock();
	mr = kefa_mr_by_key(dom, mem->key);
	if (mr) {
		read_lock_bh(&mr->cpu);
		fault = kefa_mr_judge(mr, mem, access);
		mem->seq = mr->seq;
		read_unlock_bh(&mr->cpu);
	}
	rcu_read_unlock();
	return fault;
}

/* Return: the entry of the region's list with the byte at @off, which is less than the length. */
static unsigned int kefa_mr_entry(const struct kefa_mr *mr, u64 off)
{
	unsigned int low = 0, high = mr->nents - 1, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (mr->ends[mid] > off)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Copy to or from a region, page by page, under kefa_mr.cpu. */
static void kefa_mr_move(const struct kefa_mr *mr, u64 off, void *buf, size_t len, bool write)
{
	unsigned int i = kefa_mr_entry(mr, off);
	u64 in = i ? off - mr->ends[i - 1] : off;
	phys_addr_t phys;
	struct page *page;
	size_t n;

	for (; len; len -= n, buf += n, in += n) {
		if (in == mr->sg[i].length) {
			in = 0;
			i++;
		}
		phys = sg_phys(&mr->sg[i]) + in;
		page = pfn_to_page(PHYS_PFN(phys));
		n = min3(len, (size_t)(mr->sg[i].length - in),
			 (size_t)(PAGE_SIZE - offset_in_page(phys)));
		/* gcc would use a loop for what can't be more than a page. memcpy() is faster. */
		OPTIMIZER_HIDE_VAR(n);
		if (write)
			memcpy_to_page(page, offset_in_page(phys), buf, n);
		else
			memcpy_from_page(buf, page, offset_in_page(phys), n);
	}
}

/* Copy to or from one piece of memory. */
static enum kefa_fault kefa_mr_copy_one(struct kefa_domain *dom, const struct kefa_named *mem,
					u64 off, void *buf, size_t len, bool write)
{
	const u64 access = write ? FI_REMOTE_WRITE : FI_REMOTE_READ;
	enum kefa_fault fault = KEFA_FAULT_KEY;
	struct kefa_mr *mr;

	rcu_read_lock();
	mr = kefa_mr_by_key(dom, mem->key);
	if (mr) {
		read_lock_bh(&mr->cpu);
		/* The key may belong to a later registration, as keys repeat. */
		if (mr->seq == mem->seq)
			fault = kefa_mr_judge(mr, mem, access);
		if (!fault)
			kefa_mr_move(mr, mem->addr - mr->mr_fid.base_addr + off, buf, len, write);
		read_unlock_bh(&mr->cpu);
	}
	rcu_read_unlock();
	return fault;
}

static enum kefa_fault kefa_mr_copy(struct kefa_domain *dom, const struct kefa_named *mem, u64 off,
				    void *buf, size_t len, bool write)
{
	enum kefa_fault fault = KEFA_FAULT_NONE;
	size_t n;

	for (; len && !fault; mem++) {
		if (off >= mem->len) {
			off -= mem->len;
			continue;
		}
		n = min_t(u64, len, mem->len - off);
		fault = kefa_mr_copy_one(dom, mem, off, buf, n, write);
		buf += n;
		len -= n;
		off = 0;
	}
	return fault;
}

/**
 * kefa_mr_write() - write to regions for a peer
 * @dom: the domain
 * @mem: pieces of memory, each of which kefa_mr_check() has allowed to write to
 * @off: offset in @mem
 * @from: the data
 * @len: length of the data; @off + @len is at most the length of all pieces
 *
 * The end of a registration waits for this, so @len should be a packet's.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: KEFA_FAULT_NONE, or why not all was written: a registration has ended.
 */
enum kefa_fault kefa_mr_write(struct kefa_domain *dom, const struct kefa_named *mem, u64 off,
			      const void *from, size_t len)
{
	return kefa_mr_copy(dom, mem, off, (void *)from, len, true);
}

/**
 * kefa_mr_read() - read regions for a peer
 * @dom: the domain
 * @mem: pieces of memory, each of which kefa_mr_check() has allowed to read
 * @off: offset in @mem
 * @to: takes the data
 * @len: number of bytes; @off + @len is at most the length of all pieces
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: KEFA_FAULT_NONE, or why not all was read: a registration has ended.
 */
enum kefa_fault kefa_mr_read(struct kefa_domain *dom, const struct kefa_named *mem, u64 off,
			     void *to, size_t len)
{
	return kefa_mr_copy(dom, mem, off, to, len, false);
}

/**
 * kefa_mr_once() - check and access memory for a peer
 * @dom: the domain
 * @mem: the memory, more than 0 bytes; takes the number of the registration
 * @buf: the data to write, or what takes the data
 * @write: write to the memory
 *
 * Context: Process or softirq context, with BH off; doesn't sleep.
 * Return: KEFA_FAULT_NONE, or why nothing was accessed.
 */
enum kefa_fault kefa_mr_once(struct kefa_domain *dom, struct kefa_named *mem, void *buf,
			     bool write)
{
	enum kefa_fault fault = KEFA_FAULT_KEY;
	struct kefa_mr *mr;

	rcu_read_lock();
	mr = kefa_mr_by_key(dom, mem->key);
	if (likely(mr)) {
		read_lock(&mr->cpu);
		fault = kefa_mr_judge(mr, mem, write ? FI_REMOTE_WRITE : FI_REMOTE_READ);
		mem->seq = mr->seq;
		if (likely(!fault))
			kefa_mr_move(mr, mem->addr - mr->mr_fid.base_addr, buf, mem->len, write);
		read_unlock(&mr->cpu);
	}
	rcu_read_unlock();
	return fault;
}

/*
 * Carry out an atomic operation, page by page, under kefa_mr.cpu. Return: false if the elements
 * aren't aligned in memory.
 */
static bool kefa_mr_calculate(const struct kefa_mr *mr, u64 off, size_t len,
			      struct kefa_arith *arith)
{
	const size_t size = kofi_arith_size(arith->datatype);
	unsigned int i = kefa_mr_entry(mr, off);
	u64 in = i ? off - mr->ends[i - 1] : off;
	phys_addr_t phys;
	size_t n;

	/* An element that is aligned is in one page. */
	if (!IS_ALIGNED(sg_phys(&mr->sg[i]) + in, size) || !IS_ALIGNED(len, size))
		return false;
	for (; len; len -= n, in += n) {
		if (in == mr->sg[i].length) {
			in = 0;
			i++;
		}
		phys = sg_phys(&mr->sg[i]) + in;
		n = min3(len, (size_t)(mr->sg[i].length - in),
			 (size_t)(PAGE_SIZE - offset_in_page(phys)));
		kofi_arith(arith->datatype, arith->op, pfn_to_page(PHYS_PFN(phys)),
			   offset_in_page(phys), arith->operand, arith->comparand, arith->result,
			   n / size);
		if (arith->operand)
			arith->operand += n;
		if (arith->comparand)
			arith->comparand += n;
		if (arith->result)
			arith->result += n;
	}
	return true;
}

/**
 * kefa_mr_atomic() - carry out an atomic operation on a region for a peer
 * @dom: the domain
 * @mem: memory that kefa_mr_check() has allowed to access so
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE, or both
 * @arith: the operation, which exists; its pointers advance
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: KEFA_FAULT_NONE, or why nothing was done: the registration has ended, or the elements
 * aren't aligned.
 */
enum kefa_fault kefa_mr_atomic(struct kefa_domain *dom, const struct kefa_named *mem, u64 access,
			       struct kefa_arith *arith)
{
	enum kefa_fault fault = KEFA_FAULT_KEY;
	struct kefa_mr *mr;

	rcu_read_lock();
	mr = kefa_mr_by_key(dom, mem->key);
	if (mr) {
		read_lock_bh(&mr->cpu);
		if (mr->seq == mem->seq)
			fault = kefa_mr_judge(mr, mem, access);
		if (!fault && mem->len &&
		    !kefa_mr_calculate(mr, mem->addr - mr->mr_fid.base_addr, mem->len, arith))
			fault = KEFA_FAULT_RANGE;
		read_unlock_bh(&mr->cpu);
	}
	rcu_read_unlock();
	return fault;
}

/* Return: whether an operation adds to one integer of 64 bits, which most fetches do. */
static __always_inline bool kefa_mr_adds(const struct kefa_arith *arith, size_t len)
{
	return len == sizeof(u64) && arith->op == FI_SUM &&
	       (arith->datatype == FI_UINT64 || arith->datatype == FI_INT64);
}

/* Add to one integer, under kefa_mr.cpu. Return: false if it isn't aligned in memory. */
static __always_inline bool kefa_mr_add(const struct kefa_mr *mr, u64 off,
					const struct kefa_arith *arith)
{
	const unsigned int i = kefa_mr_entry(mr, off);
	const phys_addr_t phys = sg_phys(&mr->sg[i]) + (i ? off - mr->ends[i - 1] : off);
	u64 operand, old;
	void *page;

	/* If it is aligned, it is in one page. */
	if (unlikely(!IS_ALIGNED(phys, sizeof(u64))))
		return false;
	memcpy(&operand, arith->operand, sizeof(operand));
	page = kmap_local_page(pfn_to_page(PHYS_PFN(phys)));
	old = kofi_arith_add(page + offset_in_page(phys), operand);
	kunmap_local(page);
	memcpy(arith->result, &old, sizeof(old));
	return true;
}

/**
 * kefa_mr_fetch_once() - check memory, carry out an operation on it, and get the old values
 * @dom: the domain
 * @mem: the memory, more than 0 bytes
 * @arith: the operation, which exists, with operands and a result; its pointers may advance
 *
 * Context: Process or softirq context, with BH off; doesn't sleep.
 * Return: KEFA_FAULT_NONE, or why nothing was done: the peer may not read and write the memory, or
 * the elements aren't aligned.
 */
enum kefa_fault kefa_mr_fetch_once(struct kefa_domain *dom, const struct kefa_named *mem,
				   struct kefa_arith *arith)
{
	enum kefa_fault fault = KEFA_FAULT_KEY;
	struct kefa_mr *mr;
	bool aligned;
	u64 off;

	rcu_read_lock();
	mr = kefa_mr_by_key(dom, mem->key);
	if (likely(mr)) {
		read_lock(&mr->cpu);
		fault = kefa_mr_judge(mr, mem, FI_REMOTE_READ | FI_REMOTE_WRITE);
		if (likely(!fault)) {
			off = mem->addr - mr->mr_fid.base_addr;
			aligned = likely(kefa_mr_adds(arith, mem->len)) ?
				  kefa_mr_add(mr, off, arith) :
				  kefa_mr_calculate(mr, off, mem->len, arith);
			if (unlikely(!aligned))
				fault = KEFA_FAULT_RANGE;
		}
		read_unlock(&mr->cpu);
	}
	rcu_read_unlock();
	return fault;
}

/* Get the DMA address of the byte at @off, which the device reaches with up to @len bytes. */
static dma_addr_t kefa_mr_dma(const struct kefa_mr *mr, unsigned int entry, u64 off, u64 in,
			      u32 *len)
{
	const struct scatterlist *sg = &mr->sg[entry];

	*len = min_t(u64, *len, sg->length - in);
	if (likely(mr->nsegs == mr->nents))
		return sg_dma_address(sg) + in;
	/* An IOMMU has merged entries. It usually makes a single one of them. */
	for (sg = mr->sg; off >= sg_dma_len(sg); sg++)
		off -= sg_dma_len(sg);
	*len = min_t(u64, *len, sg_dma_len(sg) - off);
	return sg_dma_address(sg) + off;
}

/**
 * kefa_mr_reach() - let the device write to a region, or a peer in the same kernel read it
 * @dom: the domain
 * @mem: memory that kefa_mr_check() has allowed to access so
 * @access: FI_REMOTE_WRITE or FI_REMOTE_READ
 * @off: offset in @mem
 * @len: number of bytes, more than 0; @off + @len is at most @mem->len
 * @seg: takes the first part of that memory that is contiguous
 * @found: takes the region, which isn't idle until kefa_mr_unreach()
 *
 * The device writes by a read of the peer's memory. Neither it nor such a peer uses a key of the
 * region, so invalidation doesn't stop them.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: KEFA_FAULT_NONE, or why they may not: the registration has ended.
 */
enum kefa_fault kefa_mr_reach(struct kefa_domain *dom, const struct kefa_named *mem, u64 access,
			      u64 off, u32 len, struct kefa_seg *seg, struct kefa_mr **found)
{
	enum kefa_fault fault = KEFA_FAULT_KEY;
	unsigned int entry;
	struct kefa_mr *mr;
	u64 in;

	rcu_read_lock();
	mr = kefa_mr_by_key(dom, mem->key);
	if (mr) {
		read_lock_bh(&mr->cpu);
		if (mr->seq == mem->seq)
			fault = kefa_mr_judge(mr, mem, access);
		if (!fault) {
			off += mem->addr - mr->mr_fid.base_addr;
			entry = kefa_mr_entry(mr, off);
			in = entry ? off - mr->ends[entry - 1] : off;
			seg->dma = kefa_mr_dma(mr, entry, off, in, &len);
			seg->phys = sg_phys(&mr->sg[entry]) + in;
			seg->len = len;
			atomic_inc(&mr->reads);
			*found = mr;
		}
		read_unlock_bh(&mr->cpu);
	}
	rcu_read_unlock();
	return fault;
}

/**
 * kefa_mr_unreach() - undo kefa_mr_reach()
 * @mr: the region, which neither the device nor the peer accesses any more
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kefa_mr_unreach(struct kefa_mr *mr)
{
	/* The ULP may close the region as soon as the count is 0. */
	rcu_read_lock();
	if (atomic_dec_and_test(&mr->reads))
		kefa_mrq_unread(mr);
	rcu_read_unlock();
}
