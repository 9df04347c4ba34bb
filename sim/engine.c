// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Creation and destruction of devices, and the device's worker.
 *
 * A device is one work item on an unbound queue. Each run handles packets that arrived,
 * timers that expired and doorbells that rang, under efasim_dev.lock, and then sets the
 * timer for the next event. So the engine of one device never runs concurrently with
 * itself, and KUnit can call efasim_dev_run() directly.
 */
#include <linux/device.h>
#include <linux/iommu.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "priv.h"

/* Packets handled in one run, before timers and doorbells. */
#define RX_BUDGET	64

static struct workqueue_struct *efasim_wq;

/* Queue the device's worker, unless the device has stopped. Context: any. */
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

/* Call @timer's function at @due. Moves a timer that is already armed. */
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
 * efasim_dev_run() - handle packets, timers and doorbells
 * @dev: the device
 *
 * Context: Process context with dev->lock held.
 * Return: true if work is left.
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

/* The next event changes with each packet, so leave a timer that expires earlier alone. */
static void efasim_dev_wake_by(struct efasim_dev *dev, ktime_t due)
{
	if (!hrtimer_is_queued(&dev->timer) ||
	    ktime_after(hrtimer_get_expires(&dev->timer), due))
		hrtimer_start(&dev->timer, due, HRTIMER_MODE_ABS);
}

/* A dead device reads no doorbell, and sends and writes nothing. */
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
	unsigned int noreclaim;
	bool more = false;

	/*
	 * A storage ULP may use the device, and memory may become free only after its writes. So
	 * allocations don't wait for free memory, but take some of the reserve.
	 */
	noreclaim = memalloc_noreclaim_save();
	mutex_lock(&dev->lock);
	if (!dev->stopping && !efasim_dev_is_dead(dev)) {
		more = efasim_dev_run(dev);
		next = timerqueue_getnext(&dev->timers);
		if (next)
			efasim_dev_wake_by(dev, next->expires);
	}
	mutex_unlock(&dev->lock);
	memalloc_noreclaim_restore(noreclaim);
	if (more)
		efasim_kick(dev);
}

static int init_tables(struct efasim_dev *dev)
{
	int err;

	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->cqs, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC1);
	xa_init_flags(&dev->pds, XA_FLAGS_ALLOC1);
	INIT_LIST_HEAD(&dev->doorbells);
	INIT_LIST_HEAD(&dev->ackq);
	INIT_LIST_HEAD(&dev->held);
	INIT_LIST_HEAD(&dev->rxq.list);
	INIT_LIST_HEAD(&dev->node);
	timerqueue_init_head(&dev->timers);
	err = efasim_dev_ahs_init(dev);
	if (err)
		return err;
	err = efasim_dev_peers_init(dev);
	if (err)
		efasim_dev_ahs_free(dev);
	return err;
}

/**
 * efasim_engine_create() - initialize a device
 * @dev: the device, zeroed
 * @params: attributes of the device
 *
 * Context: Process context, may sleep.
 * Return: 0; -EOPNOTSUPP if @params->dma_dev is behind an IOMMU, whose
 * addresses the engine can't translate; -ENOMEM.
 */
int efasim_engine_create(struct efasim_dev *dev,
			 const struct efasim_dev_params *params)
{
	int err;

	if (params->dma_dev && device_iommu_mapped(params->dma_dev))
		return -EOPNOTSUPP;

	mutex_init(&dev->lock);
	spin_lock_init(&dev->db_lock);
	spin_lock_init(&dev->rxq.lock);
	INIT_WORK(&dev->work, efasim_dev_work);
	hrtimer_setup(&dev->timer, timer_fired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);

	dev->ops = params->ops;
	dev->dma_dev = params->dma_dev;
	dev->limits = *params->limits;
	dev->unresp_ms = params->unresp_ms;
	dev->sock_buf = params->sock_buf;
	dev->udp_only = params->udp_only;
	/* Never 0, and different for each incarnation. */
	dev->incarnation = get_random_u64() | 1;
	efasim_faults_init(dev, params->seed);
	err = init_tables(dev);
	if (err)
		return err;
	dev->rxbuf = kvmalloc(EFASIM_RXBUF, GFP_KERNEL);
	dev->txbuf = kvmalloc(EFASIM_RXBUF, GFP_KERNEL);
	if (dev->rxbuf && dev->txbuf)
		return 0;
	mutex_lock(&dev->lock);
	efasim_dev_peers_free(dev);
	efasim_dev_ahs_free(dev);
	mutex_unlock(&dev->lock);
	kvfree(dev->rxbuf);
	kvfree(dev->txbuf);
	return -ENOMEM;
}

/**
 * efasim_engine_stop() - stop the device's worker for good
 * @dev: a device that has left its network
 *
 * Context: Process context, may sleep.
 */
void efasim_engine_stop(struct efasim_dev *dev)
{
	mutex_lock(&dev->lock);
	WRITE_ONCE(dev->stopping, true);
	mutex_unlock(&dev->lock);
	/* The timer queues the work and the work starts the timer, so cancel it twice. */
	cancel_work_sync(&dev->work);
	hrtimer_cancel(&dev->timer);
	cancel_work_sync(&dev->work);
}

/**
 * efasim_engine_destroy() - free all resources of a stopped device
 * @dev: the device; the caller frees the structure
 *
 * Context: Process context, may sleep.
 */
void efasim_engine_destroy(struct efasim_dev *dev)
{
	struct efasim_rxp *rxp, *next;

	efasim_adm_reset(dev);
	mutex_lock(&dev->lock);
	efasim_dev_peers_free(dev);
	efasim_dev_ahs_free(dev);
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
