// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions. A region is a list of pages without inner gaps. Its key consists of its
 * slot and a generation, so that an old key doesn't match the next registration. Its base
 * address doesn't reveal a kernel address.
 */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include "loop.h"

static struct loop_mr *to_loop_mr(struct fid_mr *mr)
{
	return container_of(mr, struct loop_mr, mr_fid);
}

/**
 * struct loop_fill - state of collecting the pages of a region
 * @mr: the region, or NULL to only count pages
 * @max: maximum number of pages
 * @npages: number of pages so far
 * @len: number of bytes so far
 * @end: offset in its page at which the last piece ended
 */
struct loop_fill {
	struct loop_mr	*mr;
	size_t		max;
	size_t		npages;
	size_t		len;
	size_t		end;
};

/* Add a piece of a page. Only the first may begin, and only the last may end, within a page. */
static int loop_fill_page(struct loop_fill *fill, struct page *page,
			  size_t offset, size_t len)
{
	if (fill->npages && (offset || fill->end != PAGE_SIZE))
		return -EINVAL;
	if (fill->npages == fill->max)
		return -EMSGSIZE;
	if (fill->mr)
		bvec_set_page(&fill->mr->pages[fill->npages], page, len,
			      offset);
	fill->npages++;
	fill->len += len;
	fill->end = offset + len;
	return 0;
}

static int loop_fill_virt(struct loop_fill *fill, const void *addr, size_t len)
{
	struct page *page;
	size_t offset, n;
	int ret = len ? 0 : -EINVAL;

	for (; len && !ret; addr += n, len -= n) {
		offset = offset_in_page(addr);
		n = min_t(size_t, len, PAGE_SIZE - offset);
		page = is_vmalloc_addr(addr) ? vmalloc_to_page(addr) :
					       virt_to_page(addr);
		ret = loop_fill_page(fill, page, offset, n);
	}
	return ret;
}

static int loop_fill_pages(struct loop_fill *fill, struct page *page,
			   size_t offset, size_t len)
{
	size_t n;
	int ret = len ? 0 : -EINVAL;

	page = nth_page(page, offset >> PAGE_SHIFT);
	offset = offset_in_page(offset);
	for (; len && !ret; len -= n, offset = 0) {
		n = min_t(size_t, len, PAGE_SIZE - offset);
		ret = loop_fill_page(fill, page, offset, n);
		page = nth_page(page, 1);
	}
	return ret;
}

static int loop_fill_attr(struct loop_fill *fill, const struct fi_mr_attr *attr)
{
	struct scatterlist *sg = attr->sgl;
	int ret = 0;
	size_t i;

	for (i = 0; i < attr->iov_count && !ret; i++) {
		switch (attr->type) {
		case FI_MR_KVEC:
			ret = loop_fill_virt(fill, attr->mr_iov[i].iov_base,
					     attr->mr_iov[i].iov_len);
			break;
		case FI_MR_BVEC:
			ret = loop_fill_pages(fill, attr->bvec[i].bv_page,
					      attr->bvec[i].bv_offset,
					      attr->bvec[i].bv_len);
			break;
		case FI_MR_SGL:
			if (!sg)
				return -EINVAL;
			ret = loop_fill_pages(fill, sg_page(sg), sg->offset,
					      sg->length);
			sg = sg_next(sg);
			break;
		default:
			return -EINVAL;
		}
	}
	return ret;
}

static int loop_mr_fill(struct loop_mr *mr, const struct fi_mr_attr *attr)
{
	struct loop_fill fill = { .mr = mr, .max = mr->max_pages };
	int ret = loop_fill_attr(&fill, attr);

	mr->npages = fill.npages;
	mr->len = fill.len;
	return ret;
}

/* Make a region accessible to peers. */
static void loop_mr_validate(struct loop_mr *mr)
{
	u64 generation = ++mr->dom->mr_generation;

	lockdep_assert_held(&loop_lock);
	mr->state = LOOP_MR_VALID;
	WRITE_ONCE(mr->mr_fid.base_addr,
		   ((u64)mr->slot + 1) << 32 | mr->pages[0].bv_offset);
	WRITE_ONCE(mr->mr_fid.key, generation << 32 | mr->slot);
}

/**
 * loop_mr_get() - check a peer's access to memory, and pin the region
 * @dom: the target's domain
 * @rma: the memory that the peer named, untrusted
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE, or both
 * @mr: takes the region, until loop_mr_put()
 *
 * Context: Process context, under loop_lock.
 * Return: LOOP_ERR_NONE, or the reason for refusing the access.
 */
enum loop_errno loop_mr_get(struct loop_domain *dom,
			    const struct fi_rma_iov *rma, u64 access,
			    struct loop_mr **mr)
{
	struct loop_mr *found;
	u64 offset;

	lockdep_assert_held(&loop_lock);
	found = xa_load(&dom->mrs, lower_32_bits(rma->key));
	if (!found || found->state != LOOP_MR_VALID ||
	    found->mr_fid.key != rma->key)
		return LOOP_ERR_KEY;
	if (access & ~found->access)
		return LOOP_ERR_ACCESS;
	offset = rma->addr - found->mr_fid.base_addr;
	if (offset > found->len || rma->len > found->len - offset)
		return LOOP_ERR_RANGE;
	found->busy++;
	*mr = found;
	return LOOP_ERR_NONE;
}

/**
 * loop_mr_put() - undo loop_mr_get()
 * @mr: the region
 *
 * Context: Process context, under loop_lock.
 */
void loop_mr_put(struct loop_mr *mr)
{
	lockdep_assert_held(&loop_lock);
	if (--mr->busy)
		return;
	if (mr->state == LOOP_MR_INVALIDATING)
		queue_work(loop_wq, &mr->dom->mr_work);
	wake_up(&mr->idle);
}

static struct loop_mr *loop_mr_next_posted(struct loop_domain *dom)
{
	struct loop_mr *mr;

	lockdep_assert_held(&loop_lock);
	/* A region that a peer is using waits for loop_mr_put(). */
	list_for_each_entry(mr, &dom->mr_posted, posted) {
		if (!mr->busy) {
			list_del_init(&mr->posted);
			return mr;
		}
	}
	return NULL;
}

static void loop_mr_complete(struct loop_mr *mr, struct kofi_cq *cq, int err)
{
	const struct fi_cq_err_entry error = {
		.op_context	= mr->context,
		.err		= err,
		.src_addr	= FI_ADDR_NOTAVAIL,
	};
	const struct fi_cq_tagged_entry entry = {
		.op_context	= mr->context,
	};

	if (err)
		kofi_cq_write_err(cq, &error);
	else if (mr->flags & FI_COMPLETION)
		kofi_cq_write(cq, &entry, FI_ADDR_NOTAVAIL);
	else
		kofi_cq_unreserve(cq);
}

/* Complete one posted request. The reader of the completion may reuse or close the region. */
static struct kofi_cq *loop_mr_work_one(struct loop_domain *dom)
{
	struct kofi_cq *cq = NULL;
	struct loop_mr *mr;

	spin_lock_bh(&loop_lock);
	mr = loop_mr_next_posted(dom);
	if (mr) {
		cq = mr->cq;
		if (mr->state == LOOP_MR_REGISTERING && !dom->gone)
			loop_mr_validate(mr);
		else
			mr->state = LOOP_MR_IDLE;
		loop_mr_complete(mr, cq, dom->gone ? ENODEV : 0);
	}
	spin_unlock_bh(&loop_lock);
	return cq;
}

/**
 * loop_mr_work() - register and invalidate posted regions
 * @work: loop_domain.mr_work
 *
 * Context: Process context. Closing a region waits for this work, so the completion queue
 * stays open until it has been notified.
 */
void loop_mr_work(struct work_struct *work)
{
	struct loop_domain *dom = container_of(work, struct loop_domain,
					       mr_work);
	struct kofi_cq *cq;

	while ((cq = loop_mr_work_one(dom))) {
		kofi_cq_notify_worker(cq);
		cond_resched();
	}
}

static int loop_mr_start(struct loop_mr *mr, enum loop_mr_state from,
			 enum loop_mr_state to, int busy_err)
{
	int ret = 0;

	spin_lock_bh(&loop_lock);
	if (mr->dom->gone)
		ret = -ENODEV;
	else if (mr->state != from)
		ret = busy_err;
	else
		ret = kofi_cq_reserve(mr->cq);
	if (!ret)
		mr->state = to;
	if (!ret && to == LOOP_MR_INVALIDATING)
		WRITE_ONCE(mr->mr_fid.key, FI_KEY_NOTAVAIL);
	spin_unlock_bh(&loop_lock);
	return ret;
}

static void loop_mr_queue(struct loop_mr *mr, u64 flags, void *context)
{
	mr->flags = flags;
	mr->context = context;
	spin_lock_bh(&loop_lock);
	list_add_tail(&mr->posted, &mr->dom->mr_posted);
	queue_work(loop_wq, &mr->dom->mr_work);
	spin_unlock_bh(&loop_lock);
}

static int loop_mr_post_reg(struct fid_mr *mr_fid,
			    const struct fi_mr_attr *attr, u64 flags)
{
	struct loop_mr *mr = to_loop_mr(mr_fid);
	int ret;

	if (flags & ~(FI_COMPLETION | FI_MORE))
		return -FI_EBADFLAGS;
	if (attr->access & ~mr->may || !attr->iov_count || attr->offset)
		return -EINVAL;
	ret = loop_mr_start(mr, LOOP_MR_IDLE, LOOP_MR_REGISTERING, -EBUSY);
	if (ret)
		return ret;
	ret = loop_mr_fill(mr, attr);
	if (ret) {
		spin_lock_bh(&loop_lock);
		mr->state = LOOP_MR_IDLE;
		spin_unlock_bh(&loop_lock);
		kofi_cq_unreserve(mr->cq);
		return ret;
	}
	mr->access = attr->access;
	loop_mr_queue(mr, flags, attr->context);
	return 0;
}

static int loop_mr_post_inval(struct fid_mr *mr_fid, u64 flags, void *context)
{
	struct loop_mr *mr = to_loop_mr(mr_fid);
	int ret;

	if (flags & ~(FI_COMPLETION | FI_MORE))
		return -FI_EBADFLAGS;
	ret = loop_mr_start(mr, LOOP_MR_VALID, LOOP_MR_INVALIDATING, -EINVAL);
	if (!ret)
		loop_mr_queue(mr, flags, context);
	return ret;
}

static bool loop_mr_is_idle(struct loop_mr *mr)
{
	bool idle;

	spin_lock_bh(&loop_lock);
	idle = !mr->busy;
	spin_unlock_bh(&loop_lock);
	return idle;
}

/* Complete the posted request, and wait for peers that use the region. */
static int loop_mr_close(struct fid *fid)
{
	struct loop_mr *mr = container_of(fid, struct loop_mr, mr_fid.fid);

	flush_work(&mr->dom->mr_work);
	spin_lock_bh(&loop_lock);
	if (mr->state == LOOP_MR_VALID)
		mr->state = LOOP_MR_IDLE;
	spin_unlock_bh(&loop_lock);
	wait_event(mr->idle, loop_mr_is_idle(mr));
	/* A posted invalidation may have waited for these peers, too: let it complete. */
	flush_work(&mr->dom->mr_work);
	spin_lock_bh(&loop_lock);
	xa_erase_bh(&mr->dom->mrs, mr->slot);
	spin_unlock_bh(&loop_lock);
	kvfree(mr);
	return 0;
}

static const struct fi_ops loop_mr_fid_ops = {
	.close = loop_mr_close,
};

static const struct fi_ops_mr loop_mr_ops = {
	.post_reg	= loop_mr_post_reg,
	.post_inval	= loop_mr_post_inval,
};

static struct loop_mr *loop_mr_new(struct loop_domain *dom, size_t pages,
				   u64 access)
{
	struct loop_mr *mr;
	int ret;

	if (pages > LOOP_MR_PAGES)
		return ERR_PTR(-EMSGSIZE);
	mr = kvzalloc(struct_size(mr, pages, pages), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->mr_fid.fid.ops = &loop_mr_fid_ops;
	mr->mr_fid.ops = &kofi_mr_no_ops;
	mr->mr_fid.key = FI_KEY_NOTAVAIL;
	mr->dom = dom;
	mr->may = access;
	mr->max_pages = pages;
	init_waitqueue_head(&mr->idle);
	INIT_LIST_HEAD(&mr->posted);
	ret = xa_alloc_cyclic_bh(&dom->mrs, &mr->slot, mr,
				 XA_LIMIT(0, dom->max_mrs - 1), &dom->next_mr,
				 GFP_KERNEL);
	if (ret < 0) {
		kvfree(mr);
		return ERR_PTR(ret == -EBUSY ? -FI_ENOMR : ret);
	}
	return mr;
}

int loop_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		    u64 flags, struct fid_mr **mr)
{
	struct loop_fill count = { .max = LOOP_MR_PAGES };
	struct loop_mr *new;
	int ret;

	ret = loop_fill_attr(&count, attr);
	if (ret)
		return ret;
	new = loop_mr_new(to_loop_domain(domain), count.npages, attr->access);
	if (IS_ERR(new))
		return PTR_ERR(new);
	new->access = attr->access;
	loop_mr_fill(new, attr);
	spin_lock_bh(&loop_lock);
	loop_mr_validate(new);
	spin_unlock_bh(&loop_lock);
	*mr = &new->mr_fid;
	return 0;
}

/* FI_RETIRE takes nothing: a generation has 32 bits. */
int loop_mr_alloc(struct fid_domain *domain,
		  const struct fi_mr_alloc_attr *attr, struct fid_mr **mr,
		  void *context)
{
	struct loop_mr *new;

	new = loop_mr_new(to_loop_domain(domain), attr->max_pages,
			  attr->access);
	if (IS_ERR(new))
		return PTR_ERR(new);
	new->cq = container_of(attr->cq, struct kofi_cq, cq_fid);
	new->mr_fid.ops = &loop_mr_ops;
	*mr = &new->mr_fid;
	return 0;
}
