// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registrations by the queue pair of an endpoint. They are operations of its sending side,
 * with its lock, doorbell, worker and completion queue, so they don't contend with other
 * endpoints. A region belongs to its endpoint until the region is closed. Then the domain's
 * queue pair invalidates the last registration.
 */
#include "../kefa.h"
#include "../mr.h"
#include "path.h"
#include "../trace.h"

/* --- posting --- */

static struct kefa_wr *kefa_direct_mr_begin(struct kefa_mr *mr, u64 flags, void *context)
{
	struct kefa_ep *ep = mr->ep;
	struct kefa_op *op;

	lockdep_assert_held(&ep->lock);
	if (ep->nheld == KEFA_HELD_MAX)
		kefa_direct_flush(ep);
	op = kefa_op_take(ep, &ep->tx, NULL);
	op->mr = mr;
	op->has_mr = true;
	op->more = true;
	op->context = context;
	op->flags = 0;
	op->data = 0;
	op->len = mr->len;
	op->quiet = flags & FI_COMPLETION ? KEFA_TOLD : KEFA_QUIET;
	mr->op = op;
	mr->id = op->id;
	mr->status = 0;
	WRITE_ONCE(ep->nregs, ep->nregs + 1);
	if (unlikely(ep->split))
		kefa_ep_tx_posted(ep, kefa_op_awaited(ep, op));
	return kefa_direct_wr(ep, op, ep->nheld++);
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
	struct ib_mr *ibmr = mr->fr->mr;
	struct kefa_ep *ep = mr->ep;
	struct kefa_wr *wr;
	int ret;

	spin_lock_bh(&ep->lock);
	ret = kefa_not_enabled(ep);
	if (!ret && !ep->tx.nfree)
		ret = kefa_ep_again(ep, &ep->tx, false);
	if (!ret) {
		wr = kefa_direct_mr_begin(mr, flags, context);
		kefa_wr_reg(wr, mr->id, ibmr, kefa_mr_ib_access(access));
		kefa_mr_go(mr, KEFA_MR_REGISTERING);
		WRITE_ONCE(mr->mr_fid.key, ibmr->rkey);
		WRITE_ONCE(mr->mr_fid.base_addr, ibmr->iova);
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
	struct kefa_wr *wr;
	int ret;

	spin_lock_bh(&ep->lock);
	ret = kefa_not_enabled(ep);
	if (!ret && mr->state != KEFA_MR_VALID)
		ret = -EINVAL;
	if (!ret && !ep->tx.nfree)
		ret = kefa_ep_again(ep, &ep->tx, false);
	if (!ret) {
		wr = kefa_direct_mr_begin(mr, flags, context);
		kefa_wr_inv(wr, mr->id, mr->fr->mr);
		kefa_mr_go(mr, KEFA_MR_INVALIDATING);
		kefa_direct_posted(ep, flags & FI_MORE);
	}
	spin_unlock_bh(&ep->lock);
	return ret;
}

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
 * kefa_direct_mr_done() - handle the completion of a registration or invalidation
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
	kefa_op_part_done(ep, op);
	news = kefa_ep_news(ep);
	spin_unlock_bh(&ep->lock);
	kefa_ep_tell(ep, news, false);
}
