// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory of operations: its contiguous pieces, and their DMA mappings. */
#include <linux/bvec.h>
#include "mem.h"

/**
 * kefa_walk_kvec() - call a function for each contiguous piece of kernel memory
 * @addr: start of the memory
 * @len: length in bytes
 * @fn: function; the walk ends if it doesn't return 0
 * @arg: first argument of @fn
 *
 * Context: Any.
 * Return: 0, the value that @fn returned, or -EINVAL for memory that can't be transferred.
 */
int kefa_walk_kvec(void *addr, size_t len, kefa_walk_fn fn, void *arg)
{
	struct page *page;
	size_t part;
	int ret = 0;

	for (; len && !ret; addr += part, len -= part) {
		part = min_t(size_t, len, KEFA_MAX_RDMA);
		if (kefa_linear(addr)) {
			page = virt_to_page(addr);
		} else {
			page = is_vmalloc_addr(addr) ? vmalloc_to_page(addr) :
						       NULL;
			part = min(len, PAGE_SIZE - offset_in_page(addr));
		}
		if (!page)
			return -EINVAL;
		ret = fn(arg, page, offset_in_page(addr), part);
	}
	return ret;
}

/**
 * kefa_walk() - call a function for each contiguous piece of a buffer
 * @iter: the buffer
 * @fn: function; the walk ends if it doesn't return 0
 * @arg: first argument of @fn
 *
 * Context: Any.
 * Return: 0, the value that @fn returned, or -EINVAL for memory that can't be transferred.
 */
int kefa_walk(const struct iov_iter *iter, kefa_walk_fn fn, void *arg)
{
	size_t left = iov_iter_count(iter), skip = iter->iov_offset, len;
	const struct bio_vec *bv = iter->bvec;
	const struct kvec *kv = iter->kvec;
	bool bvec = iov_iter_is_bvec(iter);
	int ret = 0;

	for (; left && !ret; left -= len, skip = 0, kv++, bv++) {
		len = min(left, (bvec ? bv->bv_len : kv->iov_len) - skip);
		if (len && bvec)
			ret = fn(arg, bv->bv_page, bv->bv_offset + skip, len);
		else if (len)
			ret = kefa_walk_kvec(kv->iov_base + skip, len, fn, arg);
	}
	return ret;
}

/**
 * kefa_iter_p2p() - check whether a buffer has pages of a PCI device
 * @iter: the buffer, ITER_KVEC or ITER_BVEC
 *
 * Kernel addresses aren't checked, see kefa_one_piece().
 *
 * Context: Any.
 * Return: whether it has.
 */
bool kefa_iter_p2p(const struct iov_iter *iter)
{
	size_t left = iov_iter_count(iter), skip = iter->iov_offset;
	const struct bio_vec *bv = iter->bvec;

	if (!iov_iter_is_bvec(iter))
		return false;
	for (; left; left -= min(left, bv->bv_len - skip), skip = 0, bv++)
		if (kefa_dma_p2p(bv->bv_page))
			return true;
	return false;
}

struct kefa_run_list {
	struct kefa_run	*run;
	unsigned int	n;
	unsigned int	max;
	size_t		max_len;
};

static int kefa_add_run(void *arg, struct page *page, u32 off, u32 len)
{
	struct kefa_run_list *runs = arg;
	struct kefa_run *last = runs->n ? &runs->run[runs->n - 1] : NULL;

	if (last && page_to_phys(last->page) + last->off + last->len ==
		    page_to_phys(page) + off && last->len + len <= runs->max_len) {
		last->len += len;
		return 0;
	}
	if (unlikely(kefa_dma_p2p(page)))
		return -EOPNOTSUPP;
	while (len) {
		if (runs->n == runs->max)
			return -EMSGSIZE;
		last = &runs->run[runs->n++];
		*last = (struct kefa_run){ page, off, min_t(size_t, len, runs->max_len) };
		off += last->len;
		len -= last->len;
	}
	return 0;
}

/**
 * kefa_runs() - get the contiguous pieces of a buffer
 * @ep: the endpoint, whose device limits the length of a piece
 * @iter: the buffer, of at most KEFA_MAX_RDMA bytes
 * @run: takes the pieces
 * @max: number of entries of @run
 *
 * Context: Any.
 * Return: number of pieces, -EMSGSIZE if there are more than @max (the first @max are in
 * @run then), -EINVAL for memory that can't be transferred, or -EOPNOTSUPP for memory of a PCI
 * device.
 */
int kefa_runs(const struct kefa_ep *ep, const struct iov_iter *iter,
	      struct kefa_run *run, unsigned int max)
{
	struct kefa_run_list runs = { .run = run, .max = max, .max_len = ep->max_map };

	return kefa_walk(iter, kefa_add_run, &runs) ?: runs.n;
}

/**
 * kefa_map() - map memory for DMA
 * @ep: the endpoint
 * @runs: pieces of memory
 * @n: number of @runs
 * @segs: takes the mapped pieces
 * @dir: DMA direction
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or -EAGAIN: dma_map_page() doesn't tell lack of space from other failures.
 */
int kefa_map(struct kefa_ep *ep, const struct kefa_run *runs, unsigned int n,
	     struct kefa_seg *segs, enum dma_data_direction dir)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!kefa_seg_map(ep, &segs[i], page_to_phys(runs[i].page) + runs[i].off,
				  runs[i].len, dir)) {
			kefa_unmap(ep, segs, i, dir);
			return -EAGAIN;
		}
	}
	return 0;
}

/**
 * kefa_keep() - leak memory that the device may still reach
 * @phys: physical address of the memory
 * @len: length in bytes
 *
 * Takes a reference to each page, which is never dropped, so that the page isn't reused.
 * That doesn't work for slab memory, which kmalloc() hands out again, nor for tail pages
 * of allocations that aren't compound pages.
 *
 * Context: Any.
 * Return: number of bytes that can't be kept.
 */
size_t kefa_keep(phys_addr_t phys, size_t len)
{
	size_t part, lost = 0;
	struct folio *folio;

	for (; len; phys += part, len -= part) {
		part = min_t(size_t, len, PAGE_SIZE - offset_in_page(phys));
		folio = page_folio(pfn_to_page(PHYS_PFN(phys)));
		if (folio_test_slab(folio) || !folio_try_get(folio))
			lost += part;
	}
	return lost;
}
