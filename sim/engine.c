// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device's life and its heartbeat.
 *
 * A device is one work item on an unbound queue. Each run takes what arrived,
 * what has come due and what doorbells rang for, under efasim_dev.lock; then
 * the timer is set for what comes due next. So nothing in the engine runs
 * twice at a time for one device, and KUnit can call efasim_dev_run() itself.
 */
#include <linux/device.h>
#include <linux/iommu.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "priv.h"

/* Packets taken in one run, before timers and doorbells have their turn. */
#define RX_BUDGET	64

static struct workqueue_struct *efasim_wq;

/* Let the device look at its queues, unless it has stopped; any context. */
void efasim_kick(struct efasim_dev *dev)
{
	if (!READ_ONCE(dev->stopping))
		queue_work(efasim_wq, &dev->work);
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	efasim_kick(container_of(timer, struct efasim_dev, timer));
	return HRTIMER_NORESTART;
}

/* Have @timer's function called at @due; moves one that is set already. */
void efasim_dev_arm(struct efasim_dev *dev, struct efasim_timer *timer,
		    ktime_t due)
{
	lockdep_assert_held(&dev->lock);
	efasim_dev_disarm(dev, timer);
	timer->node.expires = due;
	timerqueue_add(&dev->timers, &timer->node);
	timer->armed = true;
}

void efasim_dev_disarm(struct efasim_dev *dev, struct efasim_timer *timer)
{
	lockdep_assert_held(&dev->lock);
	if (!timer->armed)
		return;
	timerqueue_del(&dev->timers, &timer->node);
	timer->armed = false;
}

static void efasim_dev_timers(struct efasim_dev *dev)
{
	ktime_t now = ktime_get();
	struct timerqueue_node *node;

	while ((node = timerqueue_getnext(&dev->timers))) {
		struct efasim_timer *timer;

		if (ktime_after(node->expires, now))
			break;
		timer = container_of(node, struct efasim_timer, node);
		efasim_dev_disarm(dev, timer);
		timer->fn(dev, timer);
	}
}

/**
 * efasim_dev_run() - do what there is to do
 * @dev: the device
 *
 * Context: Process context with dev->lock held.
 * Return: true if there is more.
 */
bool efasim_dev_run(struct efasim_dev *dev)
{
	bool more;

	lockdep_assert_held(&dev->lock);
	if (dev->ops->fetch)
		dev->ops->fetch(dev);
	more = efasim_dev_rx(dev, RX_BUDGET);
	efasim_dev_timers(dev);
	efasim_dev_doorbells(dev);
	efasim_dev_flush_acks(dev);
	efasim_dev_flush_tx(dev);
	if (dev->ops->notify)
		dev->ops->notify(dev);
	return more;
}

/* What is due next moves with each packet; a timer that is early can stay. */
static void efasim_dev_wake_by(struct efasim_dev *dev, ktime_t due)
{
	if (!hrtimer_is_queued(&dev->timer) ||
	    ktime_after(hrtimer_get_expires(&dev->timer), due))
		hrtimer_start(&dev->timer, due, HRTIMER_MODE_ABS);
}

/* A device that is dead looks at no doorbell, sends and writes nothing. */
static bool efasim_dev_is_dead(struct efasim_dev *dev)
{
	if (!READ_ONCE(dev->fault[EFASIM_F_dead]))
		return false;
	atomic64_inc(&dev->injected[EFASIM_F_dead]);
	return true;
}

static void efasim_dev_work(struct work_struct *work)
{
	struct efasim_dev *dev = container_of(work, struct efasim_dev, work);
	struct timerqueue_node *next;
	unsigned int noio;
	bool more = false;

	/* Storage may sit on top: its write-out must not wait for itself. */
	noio = memalloc_noio_save();
	mutex_lock(&dev->lock);
	if (!dev->stopping && !efasim_dev_is_dead(dev)) {
		more = efasim_dev_run(dev);
		next = timerqueue_getnext(&dev->timers);
		if (next)
			efasim_dev_wake_by(dev, next->expires);
	}
	mutex_unlock(&dev->lock);
	memalloc_noio_restore(noio);
	if (more)
		efasim_kick(dev);
}

static void init_tables(struct efasim_dev *dev)
{
	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->cqs, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC1);
	xa_init_flags(&dev->ahs, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->pds, XA_FLAGS_ALLOC1);
	xa_init_flags(&dev->peers, XA_FLAGS_ALLOC);
	hash_init(dev->ahs_by_gid);
	hash_init(dev->peers_by_gid);
	INIT_LIST_HEAD(&dev->doorbells);
	INIT_LIST_HEAD(&dev->ackq);
	INIT_LIST_HEAD(&dev->held);
	INIT_LIST_HEAD(&dev->rxq.list);
	INIT_LIST_HEAD(&dev->node);
	timerqueue_init_head(&dev->timers);
}

/**
 * efasim_engine_create() - bring a device to life
 * @dev: room for it, zeroed
 * @params: what it shall be
 *
 * Context: Process context, may sleep.
 * Return: 0; -EOPNOTSUPP if @params->dma_dev sits behind an IOMMU, which the
 * engine couldn't translate for; -ENOMEM.
 */
int efasim_engine_create(struct efasim_dev *dev,
			 const struct efasim_dev_params *params)
{
	if (params->dma_dev && device_iommu_mapped(params->dma_dev))
		return -EOPNOTSUPP;

	mutex_init(&dev->lock);
	spin_lock_init(&dev->db_lock);
	spin_lock_init(&dev->rxq.lock);
	init_tables(dev);
	INIT_WORK(&dev->work, efasim_dev_work);
	hrtimer_setup(&dev->timer, timer_fired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);

	dev->ops = params->ops;
	dev->dma_dev = params->dma_dev;
	dev->limits = *params->limits;
	dev->unresp_ms = params->unresp_ms;
	dev->sock_buf = params->sock_buf;
	dev->udp_only = params->udp_only;
	/* Never 0, and no two lives have the same. */
	dev->incarnation = get_random_u64() | 1;
	efasim_faults_init(dev, params->seed);
	dev->rxbuf = kvmalloc(EFASIM_RXBUF, GFP_KERNEL);
	dev->txbuf = kvmalloc(EFASIM_RXBUF, GFP_KERNEL);
	if (dev->rxbuf && dev->txbuf)
		return 0;
	kvfree(dev->rxbuf);
	kvfree(dev->txbuf);
	return -ENOMEM;
}

/**
 * efasim_engine_stop() - nothing moves any more when this returns
 * @dev: a device that is on no network any longer
 *
 * Context: Process context, may sleep.
 */
void efasim_engine_stop(struct efasim_dev *dev)
{
	mutex_lock(&dev->lock);
	WRITE_ONCE(dev->stopping, true);
	mutex_unlock(&dev->lock);
	/* The timer queues the work, and the work starts the timer. */
	cancel_work_sync(&dev->work);
	hrtimer_cancel(&dev->timer);
	cancel_work_sync(&dev->work);
}

/**
 * efasim_engine_destroy() - free all that the engine has of a stopped device
 * @dev: the device; its memory is the caller's
 *
 * Context: Process context, may sleep.
 */
void efasim_engine_destroy(struct efasim_dev *dev)
{
	struct efasim_rxp *rxp, *next;

	efasim_adm_reset(dev);
	mutex_lock(&dev->lock);
	efasim_dev_peers_free(dev);
	efasim_dev_drop_held(dev);
	mutex_unlock(&dev->lock);
	list_for_each_entry_safe(rxp, next, &dev->rxq.list, list)
		kfree(rxp);
	kvfree(dev->rxbuf);
	kvfree(dev->txbuf);
}

int efasim_engine_init(void)
{
	efasim_wq = alloc_workqueue("efasim", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return efasim_wq ? 0 : -ENOMEM;
}

void efasim_engine_exit(void)
{
	destroy_workqueue(efasim_wq);
}
