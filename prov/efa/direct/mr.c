// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registrations by the queue pair of an endpoint. They are operations of its sending side,
 * with its lock, doorbell, worker and completion queue, so they don't contend with other
 * endpoints. A region belongs to its endpoint until the region is closed. Then the domain's
 * queue pair invalidates the last registration.
 */
#include "../kefa.h"
#include "../mr_path.h"
#include "path.h"
#include "../trace.h"

/* --- posting --- */

/*
 * Begin a request in the first free slot. It isn't resent, so it has no work request of
 * kefa_direct.again. Return: the work request, in kefa_ep.held; the caller counts it in nheld, or
 * posts it.
 */
static __always_inline struct kefa_wr *kefa_direct_mr_begin(struct kefa_mr *mr, u64 flags,
							    void *context)
{
	struct kefa_ep *ep = mr->ep;
	struct kefa_op *op = to_kefa_direct(ep)->tx.first;
	struct kefa_wr *wr = &ep->wrs[ep->nheld];

	lockdep_assert_held(&ep->lock);
	kefa_op_begin(ep, &ep->tx, op);
	op->context = context;
	op->flags = 0;
	op->ah = NULL;
	op->len = mr->len;
	op->nsegs = 0;
	op->quiet = flags & FI_COMPLETION ? KEFA_TOLD : KEFA_QUIET;
	op->has_mr = true;
	op->more = true;
	op->mr = mr;
	mr->op = op;
	WRITE_ONCE(ep->nregs, ep->nregs + 1);
	if (unlikely(ep->split))
		kefa_direct_tx_posted(ep, op);
	ep->held[ep->nheld] = wr;
	return wr;
}

static __always_inline void kefa_direct_mr_begin_reg(struct kefa_mr *mr, u64 access, u64 flags,
						     void *context)
{
	struct kefa_wr *wr = kefa_direct_mr_begin(mr, flags, context);
	struct ib_mr *ibmr = mr->fr->mr;

	kefa_wr_reg(wr, mr->op->id, ibmr, kefa_mr_ib_access(access));
	__kefa_mr_go(mr, KEFA_MR_REGISTERING);
	WRITE_ONCE(mr->mr_fid.key, ibmr->rkey);
	WRITE_ONCE(mr->mr_fid.base_addr, ibmr->iova);
}

static __always_inline void kefa_direct_mr_begin_inval(struct kefa_mr *mr, u64 flags,
						       void *context)
{
	struct kefa_wr *wr = kefa_direct_mr_begin(mr, flags, context);

	kefa_wr_inv(wr, mr->op->id, mr->fr->mr);
	__kefa_mr_go(mr, KEFA_MR_INVALIDATING);
}

/* Return: 0 if there is a slot, and room for another held work request. */
static int kefa_direct_mr_prepare(struct kefa_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	if (!ep->tx.nfree)
		return kefa_ep_again(ep, &ep->tx, false);
	if (ep->nheld == KEFA_HELD_MAX)
		kefa_direct_flush(ep);
	return 0;
}

/**
 * kefa_direct_mr_reg() - register a mapped region
 * @mr: the region of an endpoint, idle; gets a new key
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE
 * @flags: FI_COMPLETION, FI_MORE
 * @context: the caller's context
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, -EAGAIN when the endpoint's queue is full, -FI_EOPBADSTATE, -ENODEV.
 */
int kefa_direct_mr_reg(struct kefa_mr *mr, u64 access, u64 flags, void *context)
{
	struct kefa_ep *ep = mr->ep;
	int ret;

	spin_lock_bh(&ep->lock);
	ret = kefa_not_enabled(ep) ?: kefa_direct_mr_prepare(ep);
	if (!ret) {
		kefa_direct_mr_begin_reg(mr, access, flags, context);
		ep->nheld++;
		kefa_direct_posted(ep, flags & FI_MORE);
	}
	spin_unlock_bh(&ep->lock);
	return ret;
}

/**
 * kefa_direct_mr_inval() - invalidate a registration
 * @mr: the region of an endpoint
 * @flags: FI_COMPLETION, FI_MORE
 * @context: the caller's context
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, -EINVAL when nothing is registered, -EAGAIN when the endpoint's queue is
 * full, -FI_EOPBADSTATE, -ENODEV.
 */
int kefa_direct_mr_inval(struct kefa_mr *mr, u64 flags, void *context)
{
	struct kefa_ep *ep = mr->ep;
	int ret;

	spin_lock_bh(&ep->lock);
	ret = kefa_not_enabled(ep);
	if (!ret && mr->state != KEFA_MR_VALID)
		ret = -EINVAL;
	if (!ret)
		ret = kefa_direct_mr_prepare(ep);
	if (!ret) {
		kefa_direct_mr_begin_inval(mr, flags, context);
		ep->nheld++;
		kefa_direct_posted(ep, flags & FI_MORE);
	}
	spin_unlock_bh(&ep->lock);
	return ret;
}

/* --- the fast path --- */

/*
 * As in plain.h: a registration of memory in one piece, or an invalidation, that is posted at once
 * is done under the endpoint's lock, taken once. Any other one, and any that fails here, takes the
 * slow path of ../mr.c.
 */

/* Return: whether a request may take the fast path, with a reserved completion. */
static __always_inline bool kefa_plain_mr_takes(struct kefa_mr *mr, enum kefa_mr_state state,
						u64 flags)
{
	const struct kefa_ep *ep = mr->ep;

	lockdep_assert_held(&ep->lock);
	return likely(!(flags & ~FI_COMPLETION) && ep->state == KEFA_EP_ENABLED &&
		      mr->state == state && ep->tx.nfree && (!ep->nheld || kefa_ep_holds(ep)) &&
		      !kofi_cq_reserve(mr->cq));
}

static __always_inline void kefa_plain_mr_post(struct kefa_ep *ep)
{
	if (!kefa_ep_holds(ep)) {
		kefa_direct_ring(ep, 1);
		return;
	}
	ep->nheld++;
	kefa_direct_posted(ep, false);
}

/* Return: false if the memory isn't one piece, or can't be mapped or registered. */
static __always_inline bool kefa_plain_mr_map(struct kefa_mr *mr, const struct fi_mr_attr *attr)
{
	const struct kefa_dev *dev = mr->dom->dev;

	/* Pairs with kefa_mr_refill(). */
	if (!smp_load_acquire(&mr->fr) || !kefa_mr_gather_one(mr, attr))
		return false;
	mr->dir = kefa_mr_dir(attr->access);
	if (likely(kefa_mr_map_entry(mr))) {
		mr->nsegs = 1;
		if (likely(!kefa_dma_need_sync(dev->dma, sg_dma_address(mr->sg)) ||
			   !kefa_mr_bounces(mr)) &&
		    likely(!kefa_describe(dev, mr->fr, mr->sg, 1, mr->len)))
			return true;
	}
	/* Also forgets memory that wasn't mapped. */
	kefa_mr_unmap(mr);
	return false;
}

static __always_inline bool kefa_plain_mr_reg(struct kefa_mr *mr, const struct fi_mr_attr *attr,
					      u64 flags)
{
	if (!kefa_plain_mr_takes(mr, KEFA_MR_IDLE, flags))
		return false;
	if (unlikely(!kefa_plain_mr_map(mr, attr))) {
		kofi_cq_unreserve(mr->cq);
		return false;
	}
	kefa_direct_mr_begin_reg(mr, attr->access, flags, attr->context);
	kefa_plain_mr_post(mr->ep);
	return true;
}

static int kefa_plain_post_reg(struct fid_mr *mr_fid, const struct fi_mr_attr *attr, u64 flags)
{
	struct kefa_mr *mr = to_kefa_mr(mr_fid);
	bool done = false;

	/* A list takes too long to map under the lock. */
	if (likely(kefa_mr_attr_ok(mr, attr) && attr->iov_count == 1)) {
		spin_lock_bh(&mr->ep->lock);
		done = kefa_plain_mr_reg(mr, attr, flags);
		spin_unlock_bh(&mr->ep->lock);
	}
	return likely(done) ? 0 : kefa_mr_post_reg(mr_fid, attr, flags);
}

static int kefa_plain_post_inval(struct fid_mr *mr_fid, u64 flags, void *context)
{
	struct kefa_mr *mr = to_kefa_mr(mr_fid);
	struct kefa_ep *ep = mr->ep;
	bool done;

	spin_lock_bh(&ep->lock);
	done = kefa_plain_mr_takes(mr, KEFA_MR_VALID, flags);
	if (done) {
		kefa_direct_mr_begin_inval(mr, flags, context);
		kefa_plain_mr_post(ep);
	}
	spin_unlock_bh(&ep->lock);
	return likely(done) ? 0 : kefa_mr_post_inval(mr_fid, flags, context);
}

const struct fi_ops_mr kefa_direct_mr_ops = {
	.post_reg	= kefa_plain_post_reg,
	.post_inval	= kefa_plain_post_inval,
};

/* --- completing --- */

/* Keep the slot until kefa_direct_mr_revoked() frees it. */
static void kefa_direct_mr_wait(struct kefa_ep *ep, struct kefa_op *op)
{
	kefa_op_set_state(ep, op, KEFA_OP_PARTS);
}

/* Note that the region has no outstanding operation any more. */
static void kefa_direct_mr_ended(struct kefa_ep *ep, struct kefa_mr *mr)
{
	lockdep_assert_held(&ep->lock);
	mr->op = NULL;
	WRITE_ONCE(ep->nregs_done, ep->nregs_done + 1);
	if (mr->closing)
		wake_up_all(&mr->dom->mrq.room);
}

/**
 * kefa_direct_mr_succeeded() - handle the successful completion of a registration or invalidation
 * @ep: the endpoint
 * @op: the operation, which is queued for kefa_direct_report()
 *
 * Context: Process or softirq context, under kefa_ep.lock until the report.
 */
void kefa_direct_mr_succeeded(struct kefa_ep *ep, struct kefa_op *op)
{
	struct kefa_mr *mr = op->mr;

	lockdep_assert_held(&ep->lock);
	trace_kefa_mr(mr, 0);
	mr->err = 0;
	if (mr->state == KEFA_MR_REGISTERING) {
		__kefa_mr_go(mr, KEFA_MR_VALID);
	} else {
		__kefa_mr_unmap(mr);
		__kefa_mr_go(mr, KEFA_MR_IDLE);
	}
	kefa_direct_mr_ended(ep, mr);
	if (unlikely(ep->split))
		kefa_direct_tx_ended(ep, op);
	op->mr = NULL;
	op->has_mr = false;
	op->more = false;
	kefa_op_end(ep, &to_kefa_direct(ep)->tx, op);
	trace_kefa_done(ep, op);
}

/**
 * kefa_direct_mr_done() - handle the end of a registration or invalidation that may have failed
 * @ep: the endpoint
 * @op: the operation
 * @err: positive errno, or 0
 * @prov_errno: the device's status
 *
 * After an invalidation has failed, the operation continues: a command destroys the region.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: whether the operation has ended, so that the caller completes it.
 */
bool kefa_direct_mr_done(struct kefa_ep *ep, struct kefa_op *op, int err, u32 prov_errno)
{
	struct kefa_mr *mr = op->mr;

	lockdep_assert_held(&ep->lock);
	trace_kefa_mr(mr, prov_errno);
	if (mr->state == KEFA_MR_INVALIDATING && err) {
		mr->status = prov_errno;
		ep->stats.revoked++;
		kefa_mr_go(mr, KEFA_MR_REVOKING);
		kefa_direct_mr_wait(ep, op);
		queue_work(kefa_cmd_wq, &mr->dom->mrq.revoke);
		return false;
	}
	mr->err = err;
	if (mr->state == KEFA_MR_REGISTERING && !err) {
		kefa_mr_go(mr, KEFA_MR_VALID);
	} else {
		kefa_mr_unmap(mr);
		kefa_mr_go(mr, KEFA_MR_IDLE);
	}
	kefa_direct_mr_ended(ep, mr);
	return true;
}

/**
 * kefa_direct_mr_refused() - handle failure to post a registration or invalidation
 * @ep: the endpoint
 *
 * The failure doesn't show that the device is alive, so it isn't counted as progress.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_direct_mr_refused(struct kefa_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	ep->nregs--;
	ep->nregs_done--;
}

/**
 * kefa_direct_mr_lost() - handle destruction of the queue pair of a registration or invalidation
 * @ep: the endpoint, without a device
 * @op: the operation, which kefa_mrs_remove() completes when peers can't reach the memory
 *
 * Context: Process context, under kefa_ep.lock.
 */
void kefa_direct_mr_lost(struct kefa_ep *ep, struct kefa_op *op)
{
	kefa_direct_mr_wait(ep, op);
}

/**
 * kefa_direct_mr_revoked() - complete an operation that waited for destruction of the region
 * @mr: the region of an endpoint, with an operation
 * @err: positive errno, or 0
 *
 * Serves as kefa_ep_kind.revoked.
 *
 * Context: Process context, under kefa_dev.lock.
 */
void kefa_direct_mr_revoked(struct kefa_mr *mr, int err)
{
	struct kefa_ep *ep = mr->ep;
	struct kefa_op *op = mr->op;
	struct kefa_news news;

	lockdep_assert_held(&mr->dom->dev->lock);
	spin_lock_bh(&ep->lock);
	trace_kefa_mr(mr, mr->status);
	mr->err = err;
	kefa_mr_unmap(mr);
	kefa_mr_go(mr, KEFA_MR_IDLE);
	kefa_direct_mr_ended(ep, mr);
	op->err = err;
	op->prov_errno = err ? mr->status : 0;
	mr->status = 0;
	kefa_op_part_done(ep, op);
	news = kefa_ep_news(ep);
	spin_unlock_bh(&ep->lock);
	kefa_ep_tell(ep, news, false);
}
