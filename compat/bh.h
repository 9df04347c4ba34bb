/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Running a work item's function in softirq context, queued by an interrupt. From 6.9 on
 * system_bh_wq does that. Before, irq_poll does the same for the CPU that queues it.
 *
 * COMPAT_BH_IRQ_POLL has irq_poll do it on any kernel, for tests.
 */
#ifndef KOFI_COMPAT_BH_H
#define KOFI_COMPAT_BH_H

#include <linux/workqueue.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0) && !defined(COMPAT_BH_IRQ_POLL)

struct compat_bh {
	struct work_struct	*work;
};

static inline void compat_bh_init(struct compat_bh *bh, struct work_struct *work)
{
	bh->work = work;
}

/* Run the function once more in a softirq of this CPU. Any context, hard interrupt included. */
static inline void compat_bh_queue(struct compat_bh *bh)
{
	queue_work(system_bh_wq, bh->work);
}

/* Undo compat_bh_queue(), and wait until the function has returned. Sleeps. */
static inline void compat_bh_cancel_sync(struct compat_bh *bh)
{
	cancel_work_sync(bh->work);
}

#else

#include <linux/atomic.h>
#include <linux/irq_poll.h>
#include <linux/rcupdate.h>

struct compat_bh {
	struct irq_poll		poll;
	atomic_t		again;
	struct work_struct	*work;
};

/* irq_poll ignores what is queued before irq_poll_complete(), so look for it afterwards. */
static inline int compat_bh_poll(struct irq_poll *poll, int budget)
{
	struct compat_bh *bh = container_of(poll, struct compat_bh, poll);

	/* Fully ordered, so that the function sees what came before compat_bh_queue(). */
	atomic_xchg(&bh->again, 0);
	bh->work->func(bh->work);
	irq_poll_complete(poll);
	/* Pairs with compat_bh_queue(). */
	smp_mb();
	if (atomic_read(&bh->again))
		irq_poll_sched(poll);
	return 0;
}

static inline void compat_bh_init(struct compat_bh *bh, struct work_struct *work)
{
	bh->work = work;
	atomic_set(&bh->again, 0);
	irq_poll_init(&bh->poll, 1, compat_bh_poll);
}

static inline void compat_bh_queue(struct compat_bh *bh)
{
	/* Fully ordered: pairs with compat_bh_poll(). */
	atomic_xchg(&bh->again, 1);
	irq_poll_sched(&bh->poll);
}

static inline void compat_bh_cancel_sync(struct compat_bh *bh)
{
	irq_poll_disable(&bh->poll);
	atomic_set(&bh->again, 0);
	/* Softirqs are read-side sections: wait for the end of compat_bh_poll(). */
	synchronize_rcu();
	irq_poll_enable(&bh->poll);
}

#endif

#endif /* KOFI_COMPAT_BH_H */
