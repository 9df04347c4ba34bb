// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions. Only memory that peers read or write is registered; local buffers need no
 * registration. The remote address of a region starts below its page size, so that it
 * doesn't reveal the DMA address.
 *
 * fi_mr_reg() and fi_close() wait for the device. A region of fi_mr_alloc() has all its
 * resources from the start, and posts without waiting. In both cases memory is unmapped only
 * after the device has invalidated the registration. If the device fails to do so, the region
 * is destroyed by command on kefa_cmd_wq before the invalidation completes. If the device
 * refuses that as well, the pages are leaked, and the invalidation fails.
 */
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include "io.h"
#include "mr_path.h"
#include "trace.h"

/* --- memory --- */

/* Return: number of mapped entries, or an errno, as dma_map_sgtable(). */
static __always_inline int kefa_mr_map_list(struct kefa_mr *mr)
{
	if (mr->nents > 1)
		return kefa_dma_map_sg(mr->dom->dev->dma, mr->sg, mr->nents, mr->dir);
	return likely(kefa_mr_map_entry(mr)) ? 1 : -EIO;
}

/* Map gathered memory. @ret: result of gathering; if it is an error, only return it. */
static __always_inline int kefa_mr_map_gathered(struct kefa_mr *mr, u64 access, int ret)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;
	int n;

	mr->dir = kefa_mr_dir(access);
	if (unlikely(ret))
		goto err;
	n = kefa_mr_map_list(mr);
	if (unlikely(n < 0)) {
		ret = kefa_mr_map_failed(mr, n);
		goto err;
	}
	mr->nsegs = n;
	if ((mr->nents > 1 ||
	     unlikely(kefa_dma_need_sync(mr->dom->dev->dma, sg_dma_address(mr->sg)))) &&
	    unlikely(kefa_mr_bounces(mr))) {
		kefa_mrq_count(mrq, &mrq->stats.bounced);
		ret = -EOPNOTSUPP;
		goto err;
	}
	return 0;

err:
	kefa_mr_unmap(mr);
	return ret;
}

/* Gather and map memory of a region that no other task uses. */
static __always_inline int kefa_mr_map(struct kefa_mr *mr,
				       const struct fi_mr_attr *attr)
{
	return kefa_mr_map_gathered(mr, attr->access, likely(kefa_mr_gather_one(mr, attr)) ?
				    0 : kefa_mr_gather(mr, attr));
}

/**
 * kefa_mr_map_iter() - map the memory of a region
 * @mr: the region, idle, which no other task uses
 * @iter: the memory
 * @access: access of peers
 *
 * Context: Process or softirq context.
 * Return: 0, -EINVAL, -EMSGSIZE, -EOPNOTSUPP, -EAGAIN.
 */
int kefa_mr_map_iter(struct kefa_mr *mr, const struct iov_iter *iter, u64 access)
{
	return kefa_mr_map_gathered(mr, access, kefa_mr_gather_iter(mr, iter));
}

/**
 * kefa_mr_map_one() - map the memory of a region that is one piece
 * @mr: the region, idle, which no other task uses
 * @buf: the memory, for which kefa_one_piece() returned true
 * @len: length in bytes
 * @access: access of peers
 *
 * Context: Process or softirq context.
 * Return: 0, -EMSGSIZE, -EOPNOTSUPP, -EAGAIN.
 */
int kefa_mr_map_one(struct kefa_mr *mr, void *buf, size_t len, u64 access)
{
	if (!kefa_mr_gather_page(mr, virt_to_page(buf), offset_in_page(buf), len))
		return -EMSGSIZE;
	return kefa_mr_map_gathered(mr, access, 0);
}

/* --- registration --- */

static bool kefa_mr_is_still(struct kefa_mr *mr)
{
	bool still;

	spin_lock_bh(kefa_mr_lock(mr));
	if (!mr->ep && (mr->state == KEFA_MR_REGISTERING || mr->state == KEFA_MR_INVALIDATING))
		kefa_mrq_catch_up(&mr->dom->mrq);
	still = mr->state == KEFA_MR_IDLE || mr->state == KEFA_MR_VALID;
	spin_unlock_bh(kefa_mr_lock(mr));
	return still;
}

/**
 * kefa_mr_wait() - wait until a region has no outstanding request
 * @mr: the region
 *
 * Context: Process context; sleeps.
 */
void kefa_mr_wait(struct kefa_mr *mr)
{
	wait_event(mr->dom->mrq.room, kefa_mr_is_still(mr));
}

static int kefa_mr_try_inval(struct kefa_mr *mr)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;
	int ret = 0;

	spin_lock_bh(&mrq->lock);
	if (mr->state == KEFA_MR_VALID) {
		mr->report = KEFA_MR_INTERNAL;
		ret = kefa_mrq_inval(mr);
	}
	spin_unlock_bh(&mrq->lock);
	return ret;
}

/* Invalidate and wait. The region is idle afterwards, or valid if the device was removed. */
static void kefa_mr_inval_wait(struct kefa_mr *mr)
{
	kefa_mr_wait(mr);
	while (kefa_mr_try_inval(mr) == -EAGAIN)
		wait_event(mr->dom->mrq.room, kefa_mrq_room(&mr->dom->mrq));
	kefa_mr_wait(mr);
}

static int kefa_mr_reg_wait(struct kefa_mr *mr, u64 access)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;
	int ret;

	mr->report = KEFA_MR_INTERNAL;
	for (;;) {
		spin_lock_bh(&mrq->lock);
		ret = kefa_mrq_reg(mr, access);
		spin_unlock_bh(&mrq->lock);
		if (ret != -EAGAIN)
			break;
		wait_event(mrq->room, kefa_mrq_room(mrq));
	}
	if (ret)
		return ret;
	kefa_mr_wait(mr);
	return -mr->err;
}

/* --- objects --- */

static void kefa_mr_free(struct kefa_mr *mr)
{
	kvfree(mr->sg);
	kvfree(mr->ends);
	kfree_rcu(mr, rcu);
}

/* Count a region of the ULP, within the domain's limit. Undone by kefa_mr_uncount(). */
static int kefa_mr_count(struct kefa_domain *dom)
{
	if (atomic_add_unless(&dom->nopen, 1, dom->max_open))
		return 0;
	kefa_mrq_count(&dom->mrq, &dom->mrq.stats.dry);
	return -FI_ENOMR;
}

static void kefa_mr_uncount(struct kefa_domain *dom)
{
	atomic_dec(&dom->nopen);
}

/* Leak the memory of a region that the device refused to destroy, as peers may reach it. */
static void kefa_mr_keep(struct kefa_mr *mr, int refused)
{
	struct kefa_domain *dom = mr->dom;
	struct scatterlist *sg;
	size_t lost = 0;
	unsigned int i;

	mr->exposed = refused && mr->nents && !dom->dev->silenced;
	if (!mr->exposed)
		return;
	mr->untold = true;
	for_each_sg(mr->sg, sg, mr->nents, i)
		lost += kefa_keep(sg_phys(sg), sg->length);
	if (lost)
		dev_warn_ratelimited(&dom->dev->ibdev->dev,
				     "kofi_efa: the device kept a region by which peers can still access %zu bytes of kmalloc() memory, which may be reused; reset the device\n",
				     lost);
}

/*
 * Keep slots of an endpoint for its regions. Sends, reads and writes to dead peers may hold all
 * others until the device gives them up. A transfer of many pieces still finds room.
 */
static void kefa_mr_keep_slots(struct kefa_ep *ep)
{
	u32 size = ep->tx.base.size;

	spin_lock_bh(&ep->lock);
	if (size >= 2 * KEFA_HELD_MAX)
		WRITE_ONCE(ep->tx.kept, min_t(u32, size / 8, KEFA_KEPT_MAX));
	spin_unlock_bh(&ep->lock);
}

/* Get a region of the device for an object of fi_mr_alloc() that lost its own. */
static int kefa_mr_refill(struct kefa_mr *mr)
{
	struct kefa_frmr *fr = kefa_pool_get(mr->dom, mr->max_ents);
	int ret;

	if (IS_ERR(fr))
		return PTR_ERR(fr);
	ret = kefa_mr_publish(mr, fr);
	if (ret) {
		kefa_pool_put(mr->dom, fr);
		return ret;
	}
	/* Pairs with kefa_mr_may_reg(), which doesn't take the lock. */
	smp_store_release(&mr->fr, fr);
	return 0;
}

static void kefa_mr_revoked(struct kefa_mr *mr, int err)
{
	if (mr->ep)
		mr->ep->kind->revoked(mr, err);
	else
		kefa_mrq_revoked(mr, err);
}

/* Destroy the region of the device, because its invalidation failed. */
static void kefa_mr_revoke(struct kefa_mr *mr)
{
	struct kefa_domain *dom = mr->dom;
	int ret;

	kefa_mr_unpublish(mr);
	ret = kefa_pool_drop(dom, mr->fr);
	mr->fr = NULL;
	kefa_mr_keep(mr, ret);
	/* fi_close() doesn't need another region. */
	if (mr->report != KEFA_MR_INTERNAL)
		kefa_mr_refill(mr);
	kefa_mr_revoked(mr, mr->exposed ? EIO : ret ? ENODEV : 0);
}

/*
 * Return: whether the region must be destroyed. One that was destroyed may wait for the end of
 * reads by the device in the same state.
 */
static bool kefa_mr_doomed(struct kefa_mr *mr)
{
	bool doomed;

	spin_lock_bh(kefa_mr_lock(mr));
	doomed = mr->state == KEFA_MR_REVOKING && list_empty(&mr->late);
	spin_unlock_bh(kefa_mr_lock(mr));
	return doomed;
}

/**
 * kefa_mrs_revoke() - destroy regions whose invalidation failed, and replace them
 * @work: kefa_mrq.revoke
 *
 * Context: Process context; sleeps.
 */
void kefa_mrs_revoke(struct work_struct *work)
{
	struct kefa_domain *dom = container_of(work, struct kefa_domain,
					       mrq.revoke);
	bool failed = false;
	struct kefa_mr *mr;

	kefa_dev_lock(dom->dev);
	list_for_each_entry(mr, &dom->mrs, list) {
		if (dom->gone)
			break;
		/* Only this function and removal destroy regions, both under kefa_dev.lock. */
		if (READ_ONCE(mr->state) == KEFA_MR_REVOKING && kefa_mr_doomed(mr))
			kefa_mr_revoke(mr);
		else if ((mr->cq || mr->ep) && !mr->fr && mr->report != KEFA_MR_INTERNAL)
			failed |= kefa_mr_refill(mr);
	}
	kefa_mrq_replaced(&dom->mrq, failed && !dom->gone);
	kefa_dev_unlock(dom->dev);
}

/* Give back a region that isn't registered. */
static void kefa_mr_release(struct kefa_mr *mr)
{
	struct kefa_domain *dom = mr->dom;
	struct kefa_mrq *mrq = &dom->mrq;

	lockdep_assert_held(&dom->dev->lock);
	list_del(&mr->list);
	spin_lock_bh(&mrq->lock);
	kefa_mrq_unwant(mr);
	spin_unlock_bh(&mrq->lock);
	kefa_mrq_leave(mr);
	kefa_mr_unpublish(mr);
	/* If the device refuses to destroy it, its key isn't given to another region either. */
	if (mr->fr && mr->retire)
		kefa_pool_drop(dom, mr->fr);
	else if (mr->fr)
		kefa_pool_put(dom, mr->fr);
	mr->fr = NULL;
	spin_lock_bh(&mrq->lock);
	kefa_mr_unmap(mr);
	spin_unlock_bh(&mrq->lock);
}

/* Return: true once if peers may still reach memory of a region whose user has to know. */
static bool kefa_mr_tell(struct kefa_mr *mr)
{
	bool tell = mr->retire && mr->untold;

	lockdep_assert_held(&mr->dom->dev->lock);
	mr->untold = false;
	return tell;
}

/* Detach a region that is being closed from its endpoint, after its outstanding request. */
static void kefa_mr_leave(struct kefa_mr *mr)
{
	struct kefa_dev *dev = mr->dom->dev;

	if (!mr->ep)
		return;
	spin_lock_bh(&mr->ep->lock);
	mr->closing = true;
	spin_unlock_bh(&mr->ep->lock);
	kefa_ep_expedite(&mr->ep->ep_fid);
	kefa_mr_wait(mr);
	/* Removal and revocation read kefa_mr.ep under this lock. */
	kefa_dev_lock(dev);
	mr->ep = NULL;
	kefa_dev_unlock(dev);
}

static int kefa_mr_close(struct fid *fid)
{
	struct kefa_mr *mr = container_of(fid, struct kefa_mr, mr_fid.fid);
	struct kefa_dev *dev = mr->dom->dev;
	bool tell;

	kefa_mr_leave(mr);
	if (mr->max_ents)
		kefa_mr_inval_wait(mr);
	/* A removal holds this lock while it ends all registrations. */
	kefa_dev_lock(dev);
	tell = kefa_mr_tell(mr);
	if (!tell)
		kefa_mr_release(mr);
	kefa_dev_unlock(dev);
	if (tell) {
		/* It has left its endpoint, or gets no region of the device any more. */
		mr->mr_fid.ops = &kofi_mr_no_ops;
		return -EIO;
	}
	kefa_mr_uncount(mr->dom);
	kefa_mr_free(mr);
	return 0;
}

static const struct fi_ops kefa_mr_fid_ops = {
	.close = kefa_mr_close,
};

/**
 * kefa_mr_is() - check for a region of the provider
 * @mr: the region, perhaps of another provider
 *
 * Context: Any.
 * Return: whether it is one.
 */
bool kefa_mr_is(const struct fid_mr *mr)
{
	return mr->fid.fclass == FI_CLASS_MR && mr->fid.ops == &kefa_mr_fid_ops;
}

/* Return: 0 if posts are accepted. The caller may then map memory under the same RCU lock. */
static int kefa_mr_not_open(const struct kefa_mr *mr)
{
	if (mr->ep)
		return kefa_not_enabled(mr->ep);
	return READ_ONCE(mr->dom->mrq.open) ? 0 : -ENODEV;
}

/*
 * Check whether a region can be registered. This needs no lock, so that other tasks can post
 * while this one maps memory: an idle region has no outstanding request, and only the
 * caller may post one. Removal of the device waits for the caller's RCU section.
 * Return: 0, -ENOMEM without a region of the device, or another errno for the ULP.
 */
static int kefa_mr_may_reg(struct kefa_mr *mr, u64 flags)
{
	int ret;

	if (flags & ~KEFA_MR_FLAGS)
		return -FI_EBADFLAGS;
	ret = kefa_mr_not_open(mr);
	if (ret)
		return ret;
	/* Pairs with kefa_mr_go(), which has unmapped the region. */
	if (smp_load_acquire(&mr->state) != KEFA_MR_IDLE)
		return -EBUSY;
	/* Pairs with kefa_mr_refill(). */
	if (likely(smp_load_acquire(&mr->fr)))
		return 0;
	return -ENOMEM;
}

/* Set how the ULP's request is reported. No reader polls for one that has no completion. */
static __always_inline void kefa_mr_reports(struct kefa_mr *mr, u64 flags)
{
	lockdep_assert_held(&mr->dom->mrq.lock);
	mr->report = KEFA_MR_TOLD;
	if (likely(flags & FI_COMPLETION))
		return;
	mr->report = KEFA_MR_QUIET;
	kefa_mrq_await(&mr->dom->mrq);
}

/* Undo kefa_mr_reports(). */
static noinline void kefa_mr_not_posted(struct kefa_mr *mr)
{
	lockdep_assert_held(&mr->dom->mrq.lock);
	if (mr->report == KEFA_MR_QUIET)
		mr->dom->mrq.awaited--;
}

static __always_inline int kefa_mr_post_mapped(struct kefa_mr *mr,
					       const struct fi_mr_attr *attr,
					       u64 flags)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;
	int ret;

	ret = kefa_describe(mr->dom->dev, mr->fr, mr->sg, mr->nsegs, mr->len);
	if (ret)
		return ret;
	if (mr->ep)
		return mr->ep->kind->reg(mr, attr->access, flags, attr->context);
	spin_lock_bh(&mrq->lock);
	kefa_mr_reports(mr, flags);
	mr->context = attr->context;
	ret = kefa_mrq_reg(mr, attr->access);
	if (unlikely(ret))
		kefa_mr_not_posted(mr);
	spin_unlock_bh(&mrq->lock);
	return ret;
}

/*
 * Refuse a post with -EAGAIN, and notify its ULP later. For a region of an endpoint, the
 * endpoint has arranged the notification already, unless DMA space was lacking.
 */
static noinline int kefa_mr_again(struct kefa_mr *mr, bool dma)
{
	struct kefa_ep *ep = mr->ep;
	int ret = -EAGAIN;

	if (!ep) {
		kefa_mrq_again(mr, dma);
	} else if (dma) {
		spin_lock_bh(&ep->lock);
		ret = kefa_not_enabled(ep) ?: kefa_ep_again(ep, &ep->tx, true);
		spin_unlock_bh(&ep->lock);
	}
	return ret;
}

static noinline int kefa_mr_cq_full(struct kefa_mr *mr)
{
	if (mr->ep)
		return kefa_ep_cq_full(mr->ep, &mr->ep->tx);
	return kefa_mr_not_open(mr) ?: -EAGAIN;
}

/**
 * kefa_mr_post_reg() - register memory with a region of fi_mr_alloc()
 * @mr_fid: the region, for which the ULP posts nothing else meanwhile
 * @attr: attributes with the memory
 * @flags: FI_COMPLETION, FI_MORE
 *
 * Serves as fi_ops_mr.post_reg for regions of the domain, and for what the fast path of
 * direct/mr.c declines.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno.
 */
int kefa_mr_post_reg(struct fid_mr *mr_fid, const struct fi_mr_attr *attr, u64 flags)
{
	struct kefa_mr *mr = to_kefa_mr(mr_fid);
	int ret;

	if (!kefa_mr_attr_ok(mr, attr))
		return -EINVAL;
	if (kofi_cq_reserve(mr->cq))
		return kefa_mr_cq_full(mr);
	rcu_read_lock();
	ret = kefa_mr_may_reg(mr, flags) ?: kefa_mr_map(mr, attr);
	if (unlikely(ret == -EAGAIN))
		ret = kefa_mr_again(mr, true);
	if (unlikely(ret == -ENOMEM)) {
		kefa_mrq_want_region(mr);
		ret = -EAGAIN;
	}
	if (!ret) {
		ret = kefa_mr_post_mapped(mr, attr, flags);
		if (unlikely(ret))
			kefa_mr_unmap(mr);
		if (unlikely(ret == -EAGAIN))
			ret = kefa_mr_again(mr, false);
	}
	rcu_read_unlock();
	if (unlikely(ret))
		kofi_cq_unreserve(mr->cq);
	return ret;
}

/**
 * kefa_mr_post_inval() - invalidate a registration of a region of fi_mr_alloc()
 * @mr_fid: the region, for which the ULP posts nothing else meanwhile
 * @flags: FI_COMPLETION, FI_MORE
 * @context: the caller's context
 *
 * Serves as fi_ops_mr.post_inval, as kefa_mr_post_reg() for registrations.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno.
 */
int kefa_mr_post_inval(struct fid_mr *mr_fid, u64 flags, void *context)
{
	struct kefa_mr *mr = to_kefa_mr(mr_fid);
	struct kefa_mrq *mrq = &mr->dom->mrq;
	int ret;

	if (flags & ~KEFA_MR_FLAGS)
		return -FI_EBADFLAGS;
	if (kofi_cq_reserve(mr->cq))
		return kefa_mr_cq_full(mr);
	if (mr->ep) {
		ret = mr->ep->kind->inval(mr, flags, context);
		goto out;
	}
	spin_lock_bh(&mrq->lock);
	if (unlikely(!mrq->open)) {
		ret = -ENODEV;
	} else if (unlikely(mr->state != KEFA_MR_VALID)) {
		ret = -EINVAL;
	} else {
		kefa_mr_reports(mr, flags);
		mr->context = context;
		ret = kefa_mrq_inval(mr);
		if (unlikely(ret))
			kefa_mr_not_posted(mr);
	}
	spin_unlock_bh(&mrq->lock);
	if (unlikely(ret == -EAGAIN))
		kefa_mrq_again(mr, false);
out:
	if (ret)
		kofi_cq_unreserve(mr->cq);
	return ret;
}

static const struct fi_ops_mr kefa_mr_ops = {
	.post_reg	= kefa_mr_post_reg,
	.post_inval	= kefa_mr_post_inval,
};

static u64 kefa_mr_able(const struct kefa_dev *dev)
{
	return (dev->rdma_read ? FI_REMOTE_READ : 0) | (dev->rdma_write ? FI_REMOTE_WRITE : 0);
}

/* Peers whose requests the CPU carries out need nothing of the device but a key. */
static bool kefa_mr_access_ok(const struct kefa_domain *dom, u64 access)
{
	return dom->cpu_rma || !(access & KEFA_MR_REMOTE & ~kefa_mr_able(dom->dev));
}

static struct kefa_mr *kefa_mr_new(struct kefa_domain *dom, u64 access,
				   size_t ents)
{
	struct kefa_mr *mr;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return NULL;
	mr->mr_fid.fid.ops = &kefa_mr_fid_ops;
	mr->mr_fid.ops = &kofi_mr_no_ops;
	mr->mr_fid.key = FI_KEY_NOTAVAIL;
	mr->dom = dom;
	mr->access = access;
	mr->able = kefa_mr_able(dom->dev);
	mr->max_ents = ents;
	INIT_LIST_HEAD(&mr->list);
	INIT_LIST_HEAD(&mr->wanting);
	rwlock_init(&mr->cpu);
	INIT_LIST_HEAD(&mr->late);
	if (!ents)
		return mr;
	/* Lists don't share cache lines, as another CPU may use the neighbouring region. */
	mr->sg = kvcalloc(roundup(ents, DIV_ROUND_UP(SMP_CACHE_BYTES, sizeof(*mr->sg))),
			  sizeof(*mr->sg), GFP_KERNEL);
	if (!mr->sg) {
		kfree(mr);
		return NULL;
	}
	sg_init_table(mr->sg, ents);
	mr->last = ents - 1;
	return mr;
}

/* Get a region of the device, and list it for removal; fails if the device was removed. */
static int kefa_mr_attach(struct kefa_mr *mr)
{
	struct kefa_domain *dom = mr->dom;
	int ret;

	kefa_dev_lock(dom->dev);
	ret = kefa_mr_refill(mr);
	if (!ret) {
		kefa_mrq_join(mr);
		list_add_tail(&mr->list, &dom->mrs);
	}
	kefa_dev_unlock(dom->dev);
	return ret;
}

static int kefa_count_pieces(void *arg, struct page *page, u32 off, u32 len)
{
	(*(size_t *)arg)++;
	return 0;
}

/* Map the memory first, because the mapping determines the size of the device's region. */
static int kefa_mr_do_reg(struct kefa_mr *mr, const struct fi_mr_attr *attr)
{
	struct kefa_dev *dev = mr->dom->dev;
	u64 size;
	int ret;

	kefa_dev_lock(dev);
	ret = mr->dom->gone ? -ENODEV : kefa_mr_map(mr, attr);
	if (!ret) {
		size = kefa_page_size(dev, mr->sg, mr->nsegs, mr->len);
		mr->fr = kefa_pool_get(mr->dom,
				       kefa_pages(mr->sg, mr->nsegs, size, mr->len));
		ret = PTR_ERR_OR_ZERO(mr->fr);
		if (ret)
			mr->fr = NULL;
		else
			ret = kefa_mr_publish(mr, mr->fr);
	}
	if (!ret)
		ret = kefa_describe(dev, mr->fr, mr->sg, mr->nsegs, mr->len);
	list_add_tail(&mr->list, &mr->dom->mrs);
	kefa_dev_unlock(dev);
	return ret ?: kefa_mr_reg_wait(mr, attr->access);
}

/* Free a region whose registration failed, and which may be mapped. */
static void kefa_mr_abort(struct kefa_mr *mr)
{
	struct kefa_dev *dev = mr->dom->dev;

	kefa_dev_lock(dev);
	kefa_mr_release(mr);
	kefa_dev_unlock(dev);
	kefa_mr_free(mr);
}

static int kefa_mr_reg(struct kefa_domain *dom, const struct fi_mr_attr *attr,
		       struct fid_mr **mr)
{
	bool remote = attr->access & KEFA_MR_REMOTE;
	struct kefa_mr *new;
	size_t pieces = 0;
	int ret;

	ret = kefa_mr_walk(attr, kefa_count_pieces, &pieces);
	if (ret || !pieces)
		return ret ?: -EINVAL;
	new = kefa_mr_new(dom, attr->access, remote ? pieces : 0);
	if (!new)
		return -ENOMEM;
	if (remote)
		ret = kefa_mr_ends_alloc(new) ?: kefa_mr_do_reg(new, attr);
	if (ret) {
		kefa_mr_abort(new);
		return ret == -EAGAIN ? -ENOMEM : ret;
	}
	*mr = &new->mr_fid;
	return 0;
}

int kefa_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		    u64 flags, struct fid_mr **mr)
{
	struct kefa_domain *dom = to_kefa_domain(domain);
	int ret;

	if (!kefa_mr_access_ok(dom, attr->access))
		return -EOPNOTSUPP;
	ret = kefa_mr_count(dom);
	if (ret)
		return ret;
	ret = kefa_mr_reg(dom, attr, mr);
	if (ret)
		kefa_mr_uncount(dom);
	return ret;
}

int kefa_mr_alloc(struct fid_domain *domain,
		  const struct fi_mr_alloc_attr *attr, struct fid_mr **mr,
		  void *context)
{
	struct kefa_domain *dom = to_kefa_domain(domain);
	struct kefa_ep *ep = NULL;
	struct kefa_mr *new;
	int ret;

	if (!kefa_mr_access_ok(dom, attr->access))
		return -EOPNOTSUPP;
	if (!(attr->access & KEFA_MR_REMOTE))
		return -EINVAL;
	/* An endpoint that uses its slots for packets leaves this to the domain's queue pair. */
	if (attr->ep && to_kefa_ep(attr->ep)->kind->mr_ops)
		ep = to_kefa_ep(attr->ep);
	if (attr->max_pages > dom->dev->max_mr_pages)
		return -EMSGSIZE;
	ret = kefa_mr_count(dom);
	if (ret)
		return ret;
	ret = -ENOMEM;
	new = kefa_mr_new(dom, attr->access, attr->max_pages);
	if (!new)
		goto err_count;
	new->mr_fid.ops = ep ? ep->kind->mr_ops : &kefa_mr_ops;
	new->cq = container_of(attr->cq, struct kofi_cq, cq_fid);
	new->ep = ep;
	new->retire = attr->flags & FI_RETIRE;
	ret = kefa_mr_ends_alloc(new) ?: kefa_mr_attach(new);
	if (ret)
		goto err_free;
	if (ep)
		kefa_mr_keep_slots(ep);
	*mr = &new->mr_fid;
	return 0;

err_free:
	kefa_mr_free(new);
err_count:
	kefa_mr_uncount(dom);
	return ret;
}

/**
 * kefa_mr_own() - allocate a region for the provider's own use
 * @ep: the endpoint that will register it, about to be enabled
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE
 * @ents: maximum number of entries of the region's list, and of its pages
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: the region, or an ERR_PTR(): -ENOMEM, or an error of kefa_pool_get().
 */
struct kefa_mr *kefa_mr_own(struct kefa_ep *ep, u64 access, size_t ents)
{
	struct kefa_mr *mr;
	int ret;

	lockdep_assert_held(&ep->dom->dev->lock);
	mr = kefa_mr_new(ep->dom, access, ents);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->ep = ep;
	ret = kefa_mr_refill(mr);
	if (ret) {
		kefa_mr_free(mr);
		return ERR_PTR(ret);
	}
	list_add_tail(&mr->list, &ep->dom->mrs);
	return mr;
}

/**
 * kefa_mr_own_end() - destroy a registered region, so that peers can't reach it
 * @mr: the region, of an endpoint whose queue pair is destroyed; unchanged if not registered
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_mr_own_end(struct kefa_mr *mr)
{
	lockdep_assert_held(&mr->dom->dev->lock);
	if (mr->state == KEFA_MR_IDLE)
		return;
	if (mr->fr) {
		kefa_mr_keep(mr, kefa_pool_drop(mr->dom, mr->fr));
		mr->fr = NULL;
	}
	spin_lock_bh(&mr->ep->lock);
	kefa_mr_unmap(mr);
	kefa_mr_go(mr, KEFA_MR_IDLE);
	spin_unlock_bh(&mr->ep->lock);
}

/**
 * kefa_mr_disown() - undo kefa_mr_own()
 * @mr: the region, not registered
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_mr_disown(struct kefa_mr *mr)
{
	kefa_mr_release(mr);
	kefa_mr_free(mr);
}

/**
 * kefa_mrs_end() - complete outstanding requests of an endpoint's regions
 * @ep: the endpoint, whose queue pair is destroyed
 *
 * The regions are destroyed, as the device may have executed the requests or not.
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_mrs_end(struct kefa_ep *ep)
{
	struct kefa_domain *dom = ep->dom;
	struct kefa_mr *mr;

	lockdep_assert_held(&dom->dev->lock);
	list_for_each_entry(mr, &dom->mrs, list) {
		/* Without a queue pair only this function ends an operation. */
		if (mr->ep != ep || !READ_ONCE(mr->op))
			continue;
		kefa_mr_keep(mr, kefa_pool_drop(dom, mr->fr));
		mr->fr = NULL;
		kefa_mr_revoked(mr, mr->exposed ? EIO : ECANCELED);
	}
}

/**
 * kefa_mrs_remove() - end all registrations of a removed device
 * @dom: the domain, whose queue pairs are destroyed
 *
 * The device's regions are destroyed before the memory is unmapped.
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_mrs_remove(struct kefa_domain *dom)
{
	struct kefa_mr *mr;
	int ret;

	lockdep_assert_held(&dom->dev->lock);
	list_for_each_entry(mr, &dom->mrs, list) {
		if (!mr->fr)
			continue;
		ret = kefa_destroy_mr(&dom->refused, mr->fr->mr);
		kefa_mr_keep(mr, ret);
		mr->fr->mr = NULL;
	}
	kefa_pool_empty(dom);
	kefa_mrq_fail_all(dom);
	list_for_each_entry(mr, &dom->mrs, list) {
		if (READ_ONCE(mr->state) == KEFA_MR_REVOKING || (mr->ep && mr->op)) {
			kefa_mr_revoked(mr, mr->exposed ? EIO : ENODEV);
			continue;
		}
		spin_lock_bh(kefa_mr_lock(mr));
		/* The region may be valid still, and the CPU may access its memory for a peer. */
		kefa_mr_set_open(mr, false);
		kefa_mr_unmap(mr);
		if (mr->state != KEFA_MR_IDLE)
			kefa_mr_go(mr, KEFA_MR_IDLE);
		spin_unlock_bh(kefa_mr_lock(mr));
	}
}
