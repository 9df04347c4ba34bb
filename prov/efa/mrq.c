// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The queue pair on which a domain registers memory. It is the domain's own, as
 * registrations are ordered with nothing: each is waited for by whoever wants
 * it, and a full queue here holds up no data.
 */
#include "kefa.h"
#include "trace.h"

static void kefa_mrq_event(void *arg)
{
	struct kefa_mrq *mrq = arg;

	queue_work(kefa_wq, &mrq->work.work);
}

static struct kefa_mr *kefa_mrq_take(struct kefa_mrq *mrq, u64 id)
{
	u32 slot = lower_32_bits(id);
	struct kefa_mr *mr;

	lockdep_assert_held(&mrq->lock);
	if (slot >= KEFA_MR_DEPTH || !test_bit(slot, mrq->used))
		return NULL;
	mr = mrq->busy[slot];
	if (mr->id != id)
		return NULL;
	__clear_bit(slot, mrq->used);
	mrq->busy[slot] = NULL;
	return mr;
}

static unsigned int kefa_mrq_poll(struct kefa_mrq *mrq)
{
	struct kefa_wc *wcs = mrq->wcs;
	struct kefa_mr *mr;
	unsigned int i, n;

	lockdep_assert_held(&mrq->lock);
	n = mrq->hq.ops->poll(&mrq->hq, wcs, KEFA_HW_POLL);
	for (i = 0; i < n; i++) {
		mr = kefa_mrq_take(mrq, wcs[i].id);
		if (mr)
			kefa_mr_done(mr, kefa_status_errno(wcs[i].status),
				     wcs[i].status);
		else
			mrq->stats.stale++;
	}
	return n;
}

static void kefa_mrq_work(struct work_struct *work)
{
	struct kefa_mrq *mrq = container_of(work, struct kefa_mrq, work.work);
	bool again;

	do {
		again = false;
		spin_lock_bh(&mrq->lock);
		if (mrq->open)
			again = kefa_mrq_poll(mrq) ||
				mrq->hq.ops->arm(&mrq->hq) > 0;
		spin_unlock_bh(&mrq->lock);
		wake_up_all(&mrq->room);
		cond_resched();
	} while (again);
}

static int kefa_mrq_post(struct kefa_mr *mr, u64 id)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;
	u32 slot = lower_32_bits(id);
	unsigned int bad;
	int ret;

	lockdep_assert_held(&mrq->lock);
	ret = mrq->hq.ops->post_send(&mrq->hq, &mrq->wr, 1, &bad);
	if (ret)
		return ret;
	mr->id = id;
	__set_bit(slot, mrq->used);
	mrq->busy[slot] = mr;
	return 0;
}

/* What the next work request is called, or an error. */
static int kefa_mrq_id(struct kefa_mrq *mrq, u64 *id)
{
	u32 slot;

	lockdep_assert_held(&mrq->lock);
	if (!mrq->open)
		return -ENODEV;
	slot = find_first_zero_bit(mrq->used, KEFA_MR_DEPTH);
	if (slot == KEFA_MR_DEPTH) {
		mrq->stats.again++;
		return -EAGAIN;
	}
	mrq->gen++;
	*id = (u64)mrq->gen << 32 | slot;
	return 0;
}

/**
 * kefa_mrq_room() - could something be posted?
 * @mrq: the queue pair
 *
 * Context: Process context; doesn't sleep.
 * Return: whether a post is worth trying, if only to learn that there is no
 * device any more.
 */
int kefa_mrq_room(struct kefa_mrq *mrq)
{
	int room;

	spin_lock_bh(&mrq->lock);
	room = !mrq->open || !bitmap_full(mrq->used, KEFA_MR_DEPTH);
	spin_unlock_bh(&mrq->lock);
	return room;
}

/**
 * kefa_mrq_count() - count an event
 * @mrq: the queue pair
 * @counter: one of its counters
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kefa_mrq_count(struct kefa_mrq *mrq, u64 *counter)
{
	spin_lock_bh(&mrq->lock);
	(*counter)++;
	spin_unlock_bh(&mrq->lock);
}

/**
 * kefa_mrq_reg() - register a region that was mapped
 * @mr: the region; takes its new key
 * @access: enum ib_access_flags
 *
 * Context: Process or softirq context, under kefa_mrq.lock.
 * Return: 0, -EAGAIN when the queue is full, -ENODEV, or the device's error.
 */
int kefa_mrq_reg(struct kefa_mr *mr, int access)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;
	u64 id;
	int ret;

	ret = kefa_mrq_id(mrq, &id);
	if (ret)
		return ret;
	kefa_wr_reg(&mrq->wr, id, mr->fr->mr, access);
	mrq->stats.regs++;
	return kefa_mrq_post(mr, id);
}

/**
 * kefa_mrq_inval() - take a region's registration back
 * @mr: the region
 *
 * Context: Process or softirq context, under kefa_mrq.lock.
 * Return: 0, -EAGAIN when the queue is full, -ENODEV, or the device's error.
 */
int kefa_mrq_inval(struct kefa_mr *mr)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;
	u64 id;
	int ret;

	ret = kefa_mrq_id(mrq, &id);
	if (ret)
		return ret;
	kefa_wr_inv(&mrq->wr, id, mr->fr->mr->rkey);
	mrq->stats.invals++;
	return kefa_mrq_post(mr, id);
}

/**
 * kefa_mrq_start() - make a domain's queue pair for registrations
 * @dom: the domain
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or the device's error.
 */
int kefa_mrq_start(struct kefa_domain *dom)
{
	const struct kefa_hw_qp_attr attr = {
		.tx_depth	= KEFA_MR_DEPTH,
		/* A queue pair without a receive queue is rarely tried. */
		.rx_depth	= 1,
		.vector		= kefa_dev_vector(dom->dev, -1),
	};
	struct kefa_mrq *mrq = &dom->mrq;
	int ret;

	spin_lock_init(&mrq->lock);
	init_waitqueue_head(&mrq->room);
	mrq->hq.ops = dom->dev->hw;
	mrq->hq.pd = dom->pd;
	mrq->hq.event = kefa_mrq_event;
	mrq->hq.arg = mrq;
	kofi_work_init(&mrq->work, kefa_mrq_work);
	ret = dom->dev->hw->qp_create(&mrq->hq, &attr);
	if (ret) {
		dom->broken = mrq->hq.broken;
		kofi_work_fini(&mrq->work);
		return ret;
	}
	spin_lock_bh(&mrq->lock);
	mrq->open = true;
	spin_unlock_bh(&mrq->lock);
	queue_work(kefa_wq, &mrq->work.work);
	return 0;
}

/**
 * kefa_mrq_stop() - unmake a domain's queue pair for registrations
 * @dom: the domain
 *
 * What is outstanding stays so, for kefa_mrq_fail_all().
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_mrq_stop(struct kefa_domain *dom)
{
	struct kefa_mrq *mrq = &dom->mrq;

	lockdep_assert_held(&dom->dev->lock);
	spin_lock_bh(&mrq->lock);
	mrq->open = false;
	spin_unlock_bh(&mrq->lock);
	/* Who is still mapping memory has seen it open. */
	synchronize_rcu();
	spin_lock_bh(&mrq->lock);
	while (kefa_mrq_poll(mrq))
		;
	spin_unlock_bh(&mrq->lock);
	dom->dev->hw->qp_destroy(&mrq->hq);
	if (mrq->hq.broken)
		kefa_domain_refused(dom);
}

/**
 * kefa_mrq_fail_all() - complete what is outstanding
 * @dom: the domain, whose device is gone and with it all registrations
 *
 * Context: Process context.
 */
void kefa_mrq_fail_all(struct kefa_domain *dom)
{
	struct kefa_mrq *mrq = &dom->mrq;
	u32 slot;

	spin_lock_bh(&mrq->lock);
	for_each_set_bit(slot, mrq->used, KEFA_MR_DEPTH)
		kefa_mr_done(kefa_mrq_take(mrq, mrq->busy[slot]->id), ENODEV,
			     0);
	spin_unlock_bh(&mrq->lock);
	wake_up_all(&mrq->room);
}
