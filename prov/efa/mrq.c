// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The queue pair on which a domain registers memory. It is separate from endpoints, so that a
 * full queue of registrations doesn't delay data. Registrations needn't be ordered with other
 * operations, because the ULP waits for each.
 */
#include "ep.h"
#include "kefa.h"
#include "mr_path.h"
#include "trace.h"

/**
 * kefa_mr_go() - change the state of a region
 * @mr: the region; unmapped if it becomes idle
 * @state: the new state
 *
 * Context: Process or softirq context, under kefa_mr_lock().
 */
void kefa_mr_go(struct kefa_mr *mr, enum kefa_mr_state state)
{
	__kefa_mr_go(mr, state);
}

/* --- completing --- */

static struct kefa_mr *kefa_mrq_take(struct kefa_mrq *mrq, u64 id)
{
	u32 slot = lower_32_bits(id);
	struct kefa_mr *mr;

	lockdep_assert_held(&mrq->lock);
	if (slot >= KEFA_MR_DEPTH)
		return NULL;
	mr = mrq->busy[slot];
	if (!mr || mr->id != id)
		return NULL;
	mrq->busy[slot] = NULL;
	/* Readers read it without the lock. */
	WRITE_ONCE(mrq->nbusy, mrq->nbusy - 1);
	mrq->free[mrq->nbusy] = slot;
	return mr;
}

/* End a request that has no completion. */
static noinline void kefa_mr_unreported(struct kefa_mrq *mrq, struct kefa_mr *mr)
{
	lockdep_assert_held(&mrq->lock);
	if (mr->report == KEFA_MR_INTERNAL)
		return;
	mrq->awaited--;
	kofi_cq_unreserve(mr->cq);
}

static __always_inline void kefa_mrq_add(struct kofi_cq_batch *batch, void *arg, unsigned int n)
{
	const struct kefa_mr_end *end = arg;

	for (; n; n--, end++) {
		const struct fi_cq_tagged_entry entry = {
			.op_context	= end->context,
			.len		= end->len,
		};

		kofi_cq_batch_add(batch, &entry, FI_ADDR_NOTAVAIL);
	}
}

/* Report the requests in kefa_mrq.ended, at least one. */
static noinline void kefa_mrq_report_ended(struct kefa_mrq *mrq)
{
	bool notify = false;

	lockdep_assert_held(&mrq->lock);
	kofi_cq_report(mrq->ended_cq, mrq->reader, mrq->end - mrq->ended, &notify,
		       kefa_mrq_add, mrq->ended);
	mrq->end = mrq->ended;
	if (notify)
		kefa_mrq_notify(mrq, mrq->ended_cq);
}

/*
 * Report requests that ended, under the lock under which they did: when it is released, their
 * regions and then their completion queue may be closed.
 */
static __always_inline void kefa_mrq_report(struct kefa_mrq *mrq)
{
	lockdep_assert_held(&mrq->lock);
	if (mrq->end != mrq->ended)
		kefa_mrq_report_ended(mrq);
}

/*
 * Complete a request. When the region is idle its owner may map other memory, so nothing of
 * the old mapping is used after that.
 */
static __always_inline void kefa_mr_done(struct kefa_mrq *mrq, struct kefa_mr *mr)
{
	const struct kefa_mr_end ended = { .context = mr->context, .len = mr->len };

	/* The key is invalid, but the device's own reads don't use it. */
	if (unlikely(mr->state != KEFA_MR_REGISTERING && atomic_read(&mr->reads))) {
		list_add_tail(&mr->late, &mrq->late);
		return;
	}
	trace_kefa_mr(mr, 0);
	mr->err = 0;
	if (mr->state == KEFA_MR_REGISTERING) {
		__kefa_mr_go(mr, KEFA_MR_VALID);
	} else {
		kefa_mr_unmap(mr);
		__kefa_mr_go(mr, KEFA_MR_IDLE);
	}
	if (unlikely(mr->report)) {
		kefa_mr_unreported(mrq, mr);
		return;
	}
	if (unlikely(mrq->ended_cq != mr->cq)) {
		kefa_mrq_report(mrq);
		mrq->ended_cq = mr->cq;
	}
	*mrq->end++ = ended;
}

/*
 * The device failed to invalidate a region, so peers may still reach the memory. A command
 * destroys the region, and then the invalidation completes.
 */
static noinline void kefa_mr_not_invalidated(struct kefa_mrq *mrq, struct kefa_mr *mr,
					     u32 status)
{
	lockdep_assert_held(&mrq->lock);
	trace_kefa_mr(mr, status);
	mrq->stats.errors++;
	mrq->stats.revoked++;
	mr->status = status;
	__kefa_mr_go(mr, KEFA_MR_REVOKING);
	queue_work(kefa_cmd_wq, &mrq->revoke);
}

/* Complete a failed request, and make its region idle. */
static noinline void kefa_mr_failed(struct kefa_mrq *mrq, struct kefa_mr *mr,
				    int err, u32 prov_errno)
{
	const struct fi_cq_err_entry error = {
		.op_context	= mr->context,
		.err		= err,
		.prov_errno	= prov_errno,
		.src_addr	= FI_ADDR_NOTAVAIL,
	};

	lockdep_assert_held(&mrq->lock);
	trace_kefa_mr(mr, prov_errno);
	mr->err = err;
	mrq->stats.errors++;
	kefa_mr_unmap(mr);
	__kefa_mr_go(mr, KEFA_MR_IDLE);
	if (mr->report == KEFA_MR_INTERNAL)
		return;
	if (mr->report == KEFA_MR_QUIET)
		mrq->awaited--;
	kefa_mrq_report(mrq);
	kofi_cq_write_err(mr->cq, &error);
	kefa_mrq_notify(mrq, mr->cq);
}

static void kefa_mrq_wc(struct kefa_mrq *mrq, const struct ib_wc *ibwc)
{
	struct kefa_mr *mr = kefa_mrq_take(mrq, ibwc->wr_id);
	u32 status = kefa_wc_read(ibwc).status;

	if (unlikely(!mr))
		mrq->stats.stale++;
	else if (likely(!kefa_wc_failed(ibwc)))
		kefa_mr_done(mrq, mr);
	else if (mr->state == KEFA_MR_REGISTERING)
		kefa_mr_failed(mrq, mr, kefa_status_errno(status), status);
	else
		kefa_mr_not_invalidated(mrq, mr, status);
}

/* Complete an invalidation with kefa_mr.err. The device doesn't write to the region for peers. */
static void kefa_mr_over(struct kefa_mrq *mrq, struct kefa_mr *mr)
{
	if (mr->err)
		kefa_mr_failed(mrq, mr, mr->err, mr->status);
	else
		kefa_mr_done(mrq, mr);
	kefa_mrq_report(mrq);
}

/**
 * kefa_mrq_revoked() - complete an invalidation after the region was destroyed
 * @mr: the region, in KEFA_MR_REVOKING and not in kefa_mrq.late
 * @err: positive errno for the invalidation, or 0
 *
 * It completes later, with the same result, if the device still writes to the memory for peers.
 *
 * Context: Process context, under kefa_dev.lock.
 */
void kefa_mrq_revoked(struct kefa_mr *mr, int err)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;

	spin_lock_bh(&mrq->lock);
	mr->err = err;
	if (atomic_read(&mr->reads))
		list_add_tail(&mr->late, &mrq->late);
	else
		kefa_mr_over(mrq, mr);
	spin_unlock_bh(&mrq->lock);
	kefa_mrq_wake(mrq);
}

/**
 * kefa_mrq_unread() - complete an invalidation that waited for the end of reads into the region
 * @mr: the region. If it has new reads, wasn't invalidated, or was closed, nothing happens
 *
 * Context: Process or softirq context, under RCU; doesn't sleep.
 */
void kefa_mrq_unread(struct kefa_mr *mr)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;
	bool late;

	spin_lock_bh(&mrq->lock);
	late = !list_empty(&mr->late) && !atomic_read(&mr->reads);
	if (late) {
		list_del_init(&mr->late);
		kefa_mr_over(mrq, mr);
	}
	spin_unlock_bh(&mrq->lock);
	if (late)
		kefa_mrq_wake(mrq);
}

/* Events are on while a ULP waits for room, even if it reads another queue than those that do. */
static void kefa_mrq_want(struct kefa_mrq *mrq, struct kefa_mr *mr)
{
	lockdep_assert_held(&mrq->lock);
	if (!list_empty(&mr->wanting))
		return;
	if (list_empty(&mrq->wanting))
		kefa_mrq_await(mrq);
	list_add_tail(&mr->wanting, &mrq->wanting);
}

/**
 * kefa_mrq_unwant() - undo kefa_mrq_again() and kefa_mrq_want_region()
 * @mr: the region, whose ULP is notified, or needn't be
 *
 * Context: Process or softirq context, under kefa_mrq.lock.
 */
void kefa_mrq_unwant(struct kefa_mr *mr)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;

	lockdep_assert_held(&mrq->lock);
	if (list_empty(&mr->wanting))
		return;
	list_del_init(&mr->wanting);
	if (list_empty(&mrq->wanting))
		mrq->awaited--;
}

/* Notify all ULPs whose posts were refused, because there may be slots or DMA space. */
static void kefa_mrq_tell_room(struct kefa_mrq *mrq)
{
	struct kefa_mr *mr, *next;

	lockdep_assert_held(&mrq->lock);
	list_for_each_entry_safe(mr, next, &mrq->wanting, wanting) {
		kefa_mrq_unwant(mr);
		kofi_cq_tell_room(mr->cq);
	}
}

static void kefa_mrq_map_retry(struct work_struct *work)
{
	struct kefa_mrq *mrq = container_of(to_delayed_work(work), struct kefa_mrq,
					    map_retry);

	spin_lock_bh(&mrq->lock);
	kefa_mrq_tell_room(mrq);
	spin_unlock_bh(&mrq->lock);
}

/**
 * kefa_mrq_again() - arrange to notify a ULP whose post was refused with -EAGAIN
 * @mr: the region
 * @dma: DMA space was lacking; otherwise a slot of the queue pair
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kefa_mrq_again(struct kefa_mr *mr, bool dma)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;

	spin_lock_bh(&mrq->lock);
	kefa_mrq_want(mrq, mr);
	/* A slot may have been freed meanwhile, and maybe no more completions will come. */
	if (dma || mrq->nbusy != mrq->depth)
		queue_delayed_work(kefa_wq, &mrq->map_retry,
				   dma ? msecs_to_jiffies(KEFA_MAP_RETRY_MS) : 0);
	spin_unlock_bh(&mrq->lock);
}

/**
 * kefa_mrq_want_region() - replace a region of the device, and then notify the ULP
 * @mr: a region of fi_mr_alloc() that has lost its region of the device
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kefa_mrq_want_region(struct kefa_mr *mr)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;

	spin_lock_bh(&mrq->lock);
	mrq->stats.again++;
	kefa_mrq_want(mrq, mr);
	/* Queued after the ULP is in the list, so that it isn't missed. */
	queue_work(kefa_cmd_wq, &mrq->revoke);
	spin_unlock_bh(&mrq->lock);
}

/**
 * kefa_mrq_replaced() - notify the ULPs that wait for regions of the device
 * @mrq: the queue pair of their domain
 * @failed: there are regions that couldn't be replaced: let the ULPs try again later
 *
 * Context: Process context; doesn't sleep.
 */
void kefa_mrq_replaced(struct kefa_mrq *mrq, bool failed)
{
	spin_lock_bh(&mrq->lock);
	if (failed)
		queue_delayed_work(kefa_wq, &mrq->map_retry,
				   msecs_to_jiffies(KEFA_REGION_RETRY_MS));
	else
		kefa_mrq_tell_room(mrq);
	spin_unlock_bh(&mrq->lock);
}

/**
 * kefa_mrq_poll() - poll one batch
 * @mrq: the queue pair, open
 *
 * Context: Process or softirq context, under kefa_mrq.lock. The caller then calls kefa_mrq_wake().
 * Return: number of completions.
 */
unsigned int kefa_mrq_poll(struct kefa_mrq *mrq)
{
	unsigned int i, n;

	lockdep_assert_held(&mrq->lock);
	n = kefa_hw_poll(&mrq->hq, mrq->wcs, KEFA_POLL_BATCH);
	if (!n)
		return 0;
	for (i = 0; i < n; i++)
		kefa_mrq_wc(mrq, &mrq->wcs[i]);
	kefa_mrq_report(mrq);
	if (unlikely(!list_empty(&mrq->wanting)))
		kefa_mrq_tell_room(mrq);
	return n;
}

static void kefa_mrq_look_again(struct kefa_mrq *mrq)
{
	queue_delayed_work(kefa_cmd_wq, &mrq->watch,
			   round_jiffies_relative(KEFA_MR_LOOK_S * HZ));
}

/*
 * Poll an endpoint if registrations are outstanding, so that a delayed reader or worker isn't
 * taken for a silent device.
 */
static void kefa_mrq_look_at(struct kefa_ep *ep)
{
	struct kefa_news news = { };

	spin_lock_bh(&ep->lock);
	if (ep->nregs != ep->nregs_done && ep->state == KEFA_EP_ENABLED) {
		ep->kind->poll(ep, KEFA_POLL_BUDGET);
		news = kefa_ep_news(ep);
		/* The worker arms the queue again. */
		kefa_ep_kick(ep);
	}
	spin_unlock_bh(&ep->lock);
	kefa_ep_tell(ep, news, false);
}

/*
 * A working device registers memory in microseconds, independently of peers. If no
 * registration has completed for half a minute, the device counts as silent.
 */
static void kefa_mrq_watch(struct work_struct *work)
{
	struct kefa_mrq *mrq = container_of(to_delayed_work(work),
					    struct kefa_mrq, watch);
	struct kefa_domain *dom = container_of(mrq, struct kefa_domain, mrq);
	struct kefa_ep *ep;
	u32 busy, done;

	spin_lock_bh(&mrq->lock);
	/* Poll first, because completions may only be waiting for a delayed worker. */
	if (mrq->open && kefa_mrq_poll(mrq))
		kefa_mrq_kick(mrq);
	busy = mrq->nbusy;
	done = mrq->gen - busy;
	spin_unlock_bh(&mrq->lock);
	kefa_mrq_wake(mrq);

	kefa_dev_lock(dom->dev);
	list_for_each_entry(ep, &dom->eps, list) {
		kefa_mrq_look_at(ep);
		busy += READ_ONCE(ep->nregs) - READ_ONCE(ep->nregs_done);
		done += READ_ONCE(ep->nregs_done);
	}
	mrq->looks = busy && done == mrq->done ? mrq->looks + 1 : 0;
	mrq->done = done;
	if (!dom->gone && mrq->looks >= KEFA_MR_LOOKS)
		kefa_dev_give_up(dom->dev);
	else if (!dom->gone)
		kefa_mrq_look_again(mrq);
	if (!dom->gone)
		kefa_refused_retry(&dom->refused);
	kefa_dev_unlock(dom->dev);
}

/* --- posting --- */

/* Take a slot for a region's next work request, and set its id. */
static int kefa_mrq_begin(struct kefa_mrq *mrq, struct kefa_mr *mr)
{
	lockdep_assert_held(&mrq->lock);
	if (unlikely(!mrq->open))
		return -ENODEV;
	if (unlikely(mrq->nbusy == mrq->depth)) {
		mrq->stats.again++;
		return -EAGAIN;
	}
	mr->id = (u64)(mrq->gen + 1) << 32 | mrq->free[mrq->nbusy];
	return 0;
}

static int kefa_mrq_post(struct kefa_mrq *mrq, struct kefa_mr *mr)
{
	struct kefa_wr *wr = &mrq->wr;
	int ret;

	ret = kefa_hw_post_send(&mrq->hq, &wr, 1);
	if (unlikely(ret))
		return ret;
	mrq->gen++;
	WRITE_ONCE(mrq->nbusy, mrq->nbusy + 1);
	mrq->busy[lower_32_bits(mr->id)] = mr;
	return 0;
}

/**
 * kefa_mrq_room() - check whether to try a post, for a task that waits in kefa_mrq.room
 * @mrq: the queue pair
 *
 * Context: Process context; doesn't sleep.
 * Return: true if there is a free slot, or if a post would fail because the device was
 * removed.
 */
int kefa_mrq_room(struct kefa_mrq *mrq)
{
	int room;

	spin_lock_bh(&mrq->lock);
	if (mrq->nbusy == mrq->depth)
		kefa_mrq_catch_up(mrq);
	room = !mrq->open || mrq->nbusy != mrq->depth;
	spin_unlock_bh(&mrq->lock);
	return room;
}

/**
 * kefa_mrq_reg() - register a mapped region
 * @mr: the region, idle; gets a new key
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE
 *
 * Context: Process or softirq context, under kefa_mrq.lock.
 * Return: 0, -EAGAIN when the queue is full, -ENODEV, or the device's error.
 */
int kefa_mrq_reg(struct kefa_mr *mr, u64 access)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;
	struct ib_mr *ibmr = mr->fr->mr;
	int ret;

	ret = kefa_mrq_begin(mrq, mr);
	if (unlikely(ret))
		return ret;
	kefa_wr_reg(&mrq->wr, mr->id, ibmr, kefa_mr_ib_access(access & mr->able));
	ret = kefa_mrq_post(mrq, mr);
	if (unlikely(ret))
		return ret;
	mrq->stats.regs++;
	mr->granted = access;
	__kefa_mr_go(mr, KEFA_MR_REGISTERING);
	WRITE_ONCE(mr->mr_fid.key, ibmr->rkey);
	WRITE_ONCE(mr->mr_fid.base_addr, ibmr->iova);
	return 0;
}

/**
 * kefa_mrq_inval() - invalidate the registration of a region
 * @mr: the region, valid
 *
 * If the work request can't be posted, the region is destroyed later instead.
 *
 * Context: Process or softirq context, under kefa_mrq.lock.
 * Return: 0, -EAGAIN when the queue is full, -ENODEV.
 */
int kefa_mrq_inval(struct kefa_mr *mr)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;
	int ret;

	ret = kefa_mrq_begin(mrq, mr);
	if (unlikely(ret))
		return ret;
	kefa_wr_inv(&mrq->wr, mr->id, mr->fr->mr);
	mrq->stats.invals++;
	if (unlikely(kefa_mrq_post(mrq, mr)))
		kefa_mr_not_invalidated(mrq, mr, 0);
	else
		__kefa_mr_go(mr, KEFA_MR_INVALIDATING);
	return 0;
}

/* --- start and stop --- */

/**
 * kefa_mrq_start() - create a domain's queue pair for registrations
 * @dom: the domain
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or the device's error.
 */
int kefa_mrq_start(struct kefa_domain *dom)
{
	const struct kefa_hw_qp_attr attr = {
		.tx_depth	= min_t(u32, KEFA_MR_DEPTH, dom->dev->tx_depth),
		/* Other users of EFA always have a receive queue, so avoid the untested case. */
		.rx_depth	= 1,
		.vector		= kefa_dev_vector(dom->dev, -1),
		.rnr_retry	= FI_EFA_RNR_INFINITE,
	};
	struct kefa_mrq *mrq = &dom->mrq;
	int i, ret;

	mrq->depth = attr.tx_depth;
	for (i = 0; i < mrq->depth; i++)
		mrq->free[i] = i;
	spin_lock_init(&mrq->lock);
	init_waitqueue_head(&mrq->room);
	mrq->hq.pd = dom->pd;
	mrq->hq.event = kefa_mrq_event;
	mrq->hq.arg = mrq;
	kefa_wr_init(&mrq->wr, dom->pd);
	INIT_WORK(&mrq->work, kefa_mrq_work);
	INIT_WORK(&mrq->soft, kefa_mrq_soft);
	compat_bh_init(&mrq->bh, &mrq->soft);
	INIT_DELAYED_WORK(&mrq->watch, kefa_mrq_watch);
	INIT_WORK(&mrq->revoke, kefa_mrs_revoke);
	INIT_DELAYED_WORK(&mrq->map_retry, kefa_mrq_map_retry);
	INIT_LIST_HEAD(&mrq->wanting);
	INIT_LIST_HEAD(&mrq->late);
	mrq->end = mrq->ended;
	mrq->source.poll = kefa_mrq_read;
	mrq->source.arg = mrq;
	ret = kefa_create_qp(&dom->refused, &mrq->hq, &attr);
	if (ret)
		return ret;
	spin_lock_bh(&mrq->lock);
	WRITE_ONCE(mrq->open, true);
	spin_unlock_bh(&mrq->lock);
	kefa_mrq_look_again(mrq);
	return 0;
}

/**
 * kefa_mrq_stop() - destroy a domain's queue pair for registrations
 * @dom: the domain
 *
 * Outstanding requests remain, for kefa_mrq_fail_all().
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_mrq_stop(struct kefa_domain *dom)
{
	struct kefa_mrq *mrq = &dom->mrq;

	lockdep_assert_held(&dom->dev->lock);
	spin_lock_bh(&mrq->lock);
	WRITE_ONCE(mrq->open, false);
	spin_unlock_bh(&mrq->lock);
	/* Wait for tasks that saw the queue open and are mapping memory. */
	synchronize_rcu();
	spin_lock_bh(&mrq->lock);
	while (kefa_mrq_poll(mrq))
		;
	spin_unlock_bh(&mrq->lock);
	kefa_destroy_qp(&dom->refused, &mrq->hq);
}

/**
 * kefa_mrq_fail_all() - complete all outstanding requests
 * @dom: the domain, whose device and registrations are gone
 *
 * Context: Process context.
 */
void kefa_mrq_fail_all(struct kefa_domain *dom)
{
	struct kefa_mrq *mrq = &dom->mrq;
	struct kefa_mr *mr;
	u32 slot;

	spin_lock_bh(&mrq->lock);
	for (slot = 0; slot < KEFA_MR_DEPTH; slot++) {
		if (!mrq->busy[slot])
			continue;
		mr = kefa_mrq_take(mrq, mrq->busy[slot]->id);
		kefa_mr_failed(mrq, mr, mr->exposed ? EIO : ENODEV, 0);
	}
	spin_unlock_bh(&mrq->lock);
	kefa_mrq_wake(mrq);
}
