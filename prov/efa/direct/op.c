// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations. Each work request has a slot. An operation of several work requests consists
 * of the slot of the first, its head, and those of its parts, and completes with the last of
 * them. The slots record all outstanding work requests, so that they can be completed even
 * if the device doesn't.
 *
 * The id of a work request has its slot and the slot's number of uses, so that a late or
 * repeated completion differs from an expected one.
 */
#include <linux/bvec.h>
#include <linux/slab.h>
#include "../ep.h"
#include "../mr.h"
#include "path.h"
#include "../trace.h"

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

struct kefa_runs {
	struct kefa_run	*run;
	unsigned int	n;
	unsigned int	max;
	size_t		max_len;
};

static int kefa_add_run(void *arg, struct page *page, u32 off, u32 len)
{
	struct kefa_runs *runs = arg;
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
	struct kefa_runs runs = { .run = run, .max = max, .max_len = ep->max_map };

	return kefa_walk(iter, kefa_add_run, &runs) ?: runs.n;
}

/**
 * kefa_unmap() - undo kefa_map()
 * @ep: the endpoint
 * @segs: the mapped pieces
 * @n: number of @segs
 * @dir: DMA direction
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kefa_unmap(struct kefa_ep *ep, const struct kefa_seg *segs, unsigned int n,
		enum dma_data_direction dir)
{
	while (n--)
		kefa_dma_unmap(ep->dma, segs[n].dma, segs[n].len, dir);
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

/**
 * kefa_ops_keep() - kefa_keep() the memory of all outstanding operations
 * @ep: the endpoint
 *
 * Context: Process context, under kefa_ep.lock.
 * Return: number of bytes that can't be kept.
 */
size_t kefa_ops_keep(struct kefa_ep *ep)
{
	const struct kefa_op *op;
	size_t lost = 0;
	u32 slot;
	int i;

	lockdep_assert_held(&ep->lock);
	for (slot = 0; slot < ep->nops; slot++) {
		op = &ep->ops[slot];
		for (i = 0; op->state != KEFA_OP_FREE && i < op->nsegs; i++)
			lost += kefa_keep(op->seg[i].phys, op->seg[i].len);
	}
	return lost;
}

/**
 * kefa_ops_scan() - note which address handles operations use
 * @ep: the endpoint
 * @scan: kefa_domain.ah_scan
 *
 * Context: Process context, under kefa_ep.lock and kefa_dev.lock.
 */
void kefa_ops_scan(struct kefa_ep *ep, u32 scan)
{
	struct kefa_op *op;
	u32 slot;

	lockdep_assert_held(&ep->lock);
	for (slot = 0; ep->ops && slot < ep->tx.base.size; slot++) {
		op = &ep->ops[slot];
		/* Skip registrations, which have no address handle. */
		if (op->state == KEFA_OP_FREE || op->head != op || !op->ah)
			continue;
		op->ah->seen = scan;
		ep->ah_wanted |= !atomic_read(&op->ah->users);
	}
}

/* --- copy buffers --- */

static size_t kefa_copy_size(const struct kefa_ep *ep)
{
	return PAGE_ALIGN(ep->dom->dev->mtu);
}

static int kefa_copy_fill(struct kefa_ep *ep, struct kefa_copy *copy, gfp_t gfp)
{
	void *data = alloc_pages_exact(kefa_copy_size(ep), gfp);

	if (!data)
		return -ENOMEM;
	copy->dma = kefa_dma_map(ep->dma, virt_to_phys(data), kefa_copy_size(ep),
				 DMA_TO_DEVICE);
	if (dma_mapping_error(ep->dma, copy->dma)) {
		free_pages_exact(data, kefa_copy_size(ep));
		return -ENOMEM;
	}
	copy->data = data;
	return 0;
}

/**
 * kefa_copy_get() - take a copy buffer
 * @ep: the endpoint, enabled
 *
 * The memory of a buffer is allocated at its first use. One buffer has memory from the
 * start, so that even if allocations fail, a completion will free a buffer.
 *
 * Context: Process or softirq context, under RCU; doesn't sleep.
 * Return: the buffer, or NULL if none is free or has memory.
 */
struct kefa_copy *kefa_copy_get(struct kefa_ep *ep)
{
	struct kefa_copy *copy;

	spin_lock_bh(&ep->lock);
	copy = list_first_entry_or_null(&ep->copies, struct kefa_copy, list);
	if (copy)
		list_del(&copy->list);
	spin_unlock_bh(&ep->lock);
	if (!copy || copy->data || !kefa_copy_fill(ep, copy, GFP_NOWAIT | __GFP_NOWARN))
		return copy;
	kefa_copy_put(ep, copy);
	return NULL;
}

/**
 * kefa_copy_take() - take a copy buffer, for callers with the lock
 * @ep: the endpoint, enabled
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: the buffer, for kefa_copy_free(); or NULL if none is free or has memory.
 */
struct kefa_copy *kefa_copy_take(struct kefa_ep *ep)
{
	struct kefa_copy *copy;

	lockdep_assert_held(&ep->lock);
	copy = list_first_entry_or_null(&ep->copies, struct kefa_copy, list);
	if (!copy || (!copy->data && kefa_copy_fill(ep, copy, GFP_NOWAIT | __GFP_NOWARN)))
		return NULL;
	list_del(&copy->list);
	return copy;
}

/**
 * kefa_copy_put() - give back a copy buffer that wasn't posted
 * @ep: the endpoint
 * @copy: the buffer
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kefa_copy_put(struct kefa_ep *ep, struct kefa_copy *copy)
{
	spin_lock_bh(&ep->lock);
	kefa_copy_free(ep, copy);
	/* Another post may have been refused for lack of this buffer. */
	if (copy->data && ep->tx.wanted) {
		ep->tx.room = true;
		kefa_ep_kick(ep);
	}
	spin_unlock_bh(&ep->lock);
}

/**
 * kefa_copy_ready() - check for a free copy buffer with memory
 * @ep: the endpoint
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: whether there is one.
 */
bool kefa_copy_ready(struct kefa_ep *ep)
{
	struct kefa_copy *copy;

	lockdep_assert_held(&ep->lock);
	copy = list_first_entry_or_null(&ep->copies, struct kefa_copy, list);
	return copy && copy->data;
}

/**
 * kefa_copies_fini() - free an endpoint's copy buffers
 * @ep: the endpoint, with no operation that uses one
 * @leave: leak the memory, because the device may still read it
 *
 * Context: Process context, under kefa_dev.lock while the device is there.
 */
void kefa_copies_fini(struct kefa_ep *ep, bool leave)
{
	struct kefa_copy *copy;
	int i;

	for (i = 0; ep->copy_mem && i < KEFA_COPIES; i++) {
		copy = &ep->copy_mem[i];
		if (!copy->data)
			continue;
		kefa_dma_unmap(ep->dma, copy->dma, kefa_copy_size(ep),
			       DMA_TO_DEVICE);
		if (!leave)
			free_pages_exact(copy->data, kefa_copy_size(ep));
	}
	INIT_LIST_HEAD(&ep->copies);
	kfree(ep->copy_mem);
	ep->copy_mem = NULL;
}

/**
 * kefa_copies_init() - allocate an endpoint's copy buffers, one of them with memory
 * @ep: the endpoint, about to be enabled
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_copies_init(struct kefa_ep *ep)
{
	int i;

	ep->copy_mem = kcalloc(KEFA_COPIES, sizeof(*ep->copy_mem), GFP_KERNEL);
	if (!ep->copy_mem)
		return -ENOMEM;
	for (i = 0; i < KEFA_COPIES; i++)
		list_add_tail(&ep->copy_mem[i].list, &ep->copies);
	return kefa_copy_fill(ep, &ep->copy_mem[0], GFP_KERNEL);
}

/* --- start and end of operations --- */

static void kefa_slot_init(struct kefa_ep *ep, struct kefa_side *side,
			   u32 slot)
{
	struct kefa_op *op = &ep->ops[slot];

	op->id = slot;
	op->head = op;
	op->parts = 1;
	op->next = side->first;
	side->first = op;
	side->nfree++;
}

/**
 * kefa_ops_init() - allocate memory for operations
 * @ep: the endpoint, about to be enabled
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_ops_init(struct kefa_ep *ep)
{
	int ret;
	u32 i;

	ep->dma = ep->dom->dev->dma;
	ep->max_map = min_t(size_t, kefa_dma_max_map(ep->dma), KEFA_MAX_RDMA);
	ep->nops = ep->tx.base.size + ep->rx.base.size;
	ep->ops = kvcalloc(ep->nops, sizeof(*ep->ops), GFP_KERNEL);
	if (!ep->ops)
		return -ENOMEM;
	ret = kefa_copies_init(ep) ?: kefa_rests_init(ep) ?: kefa_rnr_init(ep);
	if (ret) {
		kefa_rests_fini(ep);
		kefa_copies_fini(ep, false);
		kvfree(ep->ops);
		ep->ops = NULL;
		return ret;
	}
	ep->tx.ended_tail = &ep->tx.ended;
	ep->rx.ended_tail = &ep->rx.ended;
	ep->tx.first = NULL;
	ep->rx.first = NULL;
	for (i = ep->nops; i--;)
		kefa_slot_init(ep, i < ep->tx.base.size ? &ep->tx : &ep->rx, i);
	for (i = 0; i < ARRAY_SIZE(ep->wrs); i++)
		kefa_wr_init(&ep->wrs[i], ep->dom->pd);
	for (i = 0; i < ARRAY_SIZE(ep->recvs); i++)
		kefa_recv_wr_init(&ep->recvs[i], ep->dom->pd);
	return 0;
}

/**
 * kefa_ops_fini() - undo kefa_ops_init()
 * @ep: the endpoint, which isn't enabled or is stopped
 *
 * Context: Process context.
 */
void kefa_ops_fini(struct kefa_ep *ep)
{
	kefa_copies_fini(ep, false);
	kefa_rests_fini(ep);
	kefa_rnr_fini(ep);
	kvfree(ep->ops);
	ep->ops = NULL;
	ep->tx.nfree = 0;
	ep->rx.nfree = 0;
}

/**
 * kefa_op_take() - take a free slot
 * @ep: the endpoint
 * @side: the direction, with a free slot
 * @head: head of the operation, or NULL if the slot becomes the head
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: the slot, in KEFA_OP_POSTED, otherwise empty.
 */
struct kefa_op *kefa_op_take(struct kefa_ep *ep, struct kefa_side *side,
			     struct kefa_op *head)
{
	struct kefa_op *op = side->first;

	kefa_op_begin(ep, side, op);
	if (head) {
		op->head = head;
		op->more = true;
		head->more = true;
		head->parts++;
	}
	op->context = NULL;
	op->len = 0;
	op->ah = NULL;
	op->nsegs = 0;
	op->quiet = false;
	return op;
}

static struct kefa_side *kefa_op_side(struct kefa_ep *ep, struct kefa_op *op)
{
	return kefa_op_slot(op) < ep->tx.base.size ? &ep->tx : &ep->rx;
}

/* Reset the members that a free slot must not have set, see struct kefa_op. */
static void kefa_op_clear(struct kefa_op *op)
{
	op->head = op;
	op->copy = NULL;
	op->has_mr = false;
	op->err = 0;
	op->prov_errno = 0;
	op->parts = 1;
	op->more = false;
}

static void kefa_op_write_err(const struct kefa_op *op, struct kofi_cq *cq)
{
	const struct fi_cq_err_entry error = {
		.op_context	= op->context,
		.flags		= op->flags,
		.len		= op->len,
		.data		= op->data,
		.err		= op->err,
		.prov_errno	= op->prov_errno,
		.src_addr	= FI_ADDR_NOTAVAIL,
	};

	kofi_cq_write_err(cq, &error);
}

static void kefa_op_write_cq(const struct kefa_op *op, struct kofi_cq *cq)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context	= op->context,
		.flags		= op->flags,
		.len		= op->len,
		.data		= op->data,
	};

	if (op->err)
		kefa_op_write_err(op, cq);
	else if (op->quiet)
		kofi_cq_unreserve(cq);
	else
		kofi_cq_write(cq, &entry, FI_ADDR_NOTAVAIL);
}

static void kefa_op_finish(struct kefa_ep *ep, struct kefa_op *op)
{
	struct kefa_side *side = kefa_op_side(ep, op);

	trace_kefa_done(ep, op);
	if (op->err) {
		ep->stats.errors++;
		trace_kefa_error(ep, op);
	}
	WARN_ON_ONCE(op->has_rest);
	if (op->copy && !op->has_mr)
		kefa_copy_free(ep, op->copy);
	if (side->base.cq) {
		kefa_op_write_cq(op, side->base.cq);
		side->notify |= op->err || !op->quiet;
	}
	if (!op->has_mr)
		kofi_side_count(&side->base, op->flags, op->len, op->err);
	kefa_op_clear(op);
	kefa_op_release(ep, side, op);
	side->room |= side->wanted;
}

/**
 * kefa_op_part_done() - note the end of one part of an operation
 * @ep: the endpoint
 * @head: the operation, which completes if this was the last part
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_op_part_done(struct kefa_ep *ep, struct kefa_op *head)
{
	lockdep_assert_held(&ep->lock);
	if (!--head->parts)
		kefa_op_finish(ep, head);
}

/**
 * kefa_op_done() - handle the completion of a work request
 * @ep: the endpoint
 * @op: slot of the work request
 * @err: positive errno, or 0
 * @prov_errno: the device's status
 *
 * Completes the operation if this was the last of its work requests. progress.c handles
 * successful operations of one work request without a buffer itself.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_op_done(struct kefa_ep *ep, struct kefa_op *op, int err,
		  u32 prov_errno)
{
	struct kefa_op *head = op->head;

	lockdep_assert_held(&ep->lock);
	kefa_unmap(ep, op->seg, op->nsegs, op->dir);
	op->nsegs = 0;
	if (op->has_mr && !kefa_mr_ep_done(ep, op, err, prov_errno))
		return;
	if (err && !head->err) {
		head->err = err;
		head->prov_errno = prov_errno;
	}
	if (op != head) {
		kefa_op_clear(op);
		kefa_op_release(ep, kefa_op_side(ep, op), op);
	} else if (head->parts > 1) {
		kefa_op_set_state(ep, op, KEFA_OP_PARTS);
	}
	kefa_op_part_done(ep, head);
}
