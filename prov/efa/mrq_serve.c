// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Progress of a domain's registrations. Readers of a completion queue poll while registrations are
 * outstanding. If they may sleep, or have a handler, the device's event queues the worker, which
 * polls, calls handlers without holding locks, and arms the device's queue when it is empty.
 * Control calls that wait for a registration poll themselves.
 *
 * While kefa_mrq.awaited isn't 0, the device's completion queue is always in one of these states:
 * - armed, so that an event will come;
 * - the worker is queued or runs, and will arm it.
 * While it is 0, only readers wait, and they poll; a task that waits in kefa_mrq.room arms the
 * queue first.
 */
#include "kefa.h"
#include "mr.h"

/**
 * kefa_mrq_wake() - wake tasks that wait in kefa_mrq.room
 * @mrq: the queue pair
 *
 * Context: Any, hard interrupt included.
 */
void kefa_mrq_wake(struct kefa_mrq *mrq)
{
	if (wq_has_sleeper(&mrq->room))
		wake_up_all(&mrq->room);
}

/**
 * kefa_mrq_event() - handle the device's event
 * @arg: the queue pair
 *
 * The worker may be in a handler that waits for a task that waits in kefa_mrq.room, so wake that
 * as well.
 *
 * Context: Hard interrupt.
 */
void kefa_mrq_event(void *arg)
{
	struct kefa_mrq *mrq = arg;

	kefa_mrq_wake(mrq);
	queue_work(kefa_wq, &mrq->work);
}

/**
 * kefa_mrq_notify() - notify the reader of a completion queue that was written to
 * @mrq: the queue pair
 * @cq: the completion queue
 *
 * Context: Process or softirq context, under kefa_mrq.lock: after it is released, regions and
 * queues may be closed, except for queues that are claimed.
 */
void kefa_mrq_notify(struct kefa_mrq *mrq, struct kofi_cq *cq)
{
	lockdep_assert_held(&mrq->lock);
	if (!mrq->serving)
		kofi_cq_notify(cq);
	else if (kofi_cq_claim(cq))
		mrq->claimed[mrq->nclaimed++] = cq;
}

/**
 * kefa_mrq_await() - enable events for one who waits without polling
 * @mrq: the queue pair
 *
 * Undone by decrementing kefa_mrq.awaited under the lock.
 *
 * Context: Process or softirq context, under kefa_mrq.lock.
 */
void kefa_mrq_await(struct kefa_mrq *mrq)
{
	lockdep_assert_held(&mrq->lock);
	if (!mrq->awaited++ && mrq->open && kefa_hw_arm(&mrq->hq) > 0)
		queue_work(kefa_wq, &mrq->work);
}

/*
 * Poll one batch, and call handlers before the queue is armed: completions that arrive meanwhile
 * need no event. Each batch has at most as many claims as completions. Return: whether there may
 * be more completions; if not, the queue is armed or needn't be.
 */
static bool kefa_mrq_serve(struct kefa_mrq *mrq)
{
	bool more = false;
	unsigned int i;

	spin_lock_bh(&mrq->lock);
	mrq->nclaimed = 0;
	if (mrq->open) {
		mrq->serving = true;
		more = kefa_mrq_poll(mrq);
		mrq->serving = false;
		if (!more && mrq->awaited)
			more = kefa_hw_arm(&mrq->hq) > 0;
	}
	spin_unlock_bh(&mrq->lock);
	kefa_mrq_wake(mrq);
	for (i = 0; i < mrq->nclaimed; i++)
		kofi_cq_notify_claimed(mrq->claimed[i]);
	return more;
}

/**
 * kefa_mrq_work() - serve the queue pair
 * @work: kefa_mrq.work
 *
 * Context: Process context. Calls handlers.
 */
void kefa_mrq_work(struct work_struct *work)
{
	struct kefa_mrq *mrq = container_of(work, struct kefa_mrq, work);
	bool more = true;
	int i;

	for (i = 0; i < KEFA_POLL_BUDGET / KEFA_POLL_BATCH && more; i++)
		more = kefa_mrq_serve(mrq);
	/* Queue the work again instead of looping, so that other work of this CPU can run. */
	if (more)
		queue_work(kefa_wq, work);
}

/**
 * kefa_mrq_catch_up() - process all completions for a task that waits in kefa_mrq.room
 * @mrq: the queue pair
 *
 * Such tasks do so themselves, so that they needn't wait for handlers that the worker calls.
 *
 * Context: Process context, under kefa_mrq.lock. The next completion raises an event, which wakes
 * the task.
 */
void kefa_mrq_catch_up(struct kefa_mrq *mrq)
{
	int i;

	lockdep_assert_held(&mrq->lock);
	if (!mrq->open)
		return;
	for (i = 0; i < KEFA_POLL_BUDGET / KEFA_POLL_BATCH; i++)
		if (!kefa_mrq_poll(mrq) && kefa_hw_arm(&mrq->hq) <= 0)
			return;
	/* Let other tasks take the lock. */
	queue_work(kefa_wq, &mrq->work);
}

/* --- readers --- */

/**
 * kefa_mrq_read() - poll for a reader
 * @arg: the queue pair
 * @last: unused: a reader that sleeps relies on the worker
 * @reader: the reader
 *
 * Serves as kofi_source.poll.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: whether there were completions.
 */
bool kefa_mrq_read(void *arg, bool last, struct kofi_cq_reader *reader)
{
	struct kefa_mrq *mrq = arg;
	unsigned int n = 0;

	if (!spin_trylock_bh(&mrq->lock))
		return false;
	if (mrq->open) {
		mrq->reader = reader;
		n = kefa_mrq_poll(mrq);
		mrq->reader = NULL;
	}
	spin_unlock_bh(&mrq->lock);
	if (n)
		kefa_mrq_wake(mrq);
	return n;
}

/* Return: whether a queue's reader may wait without polling. */
static bool kefa_mrq_awaits(const struct kofi_cq *cq)
{
	return cq->attr.handler || cq->attr.wait_obj != FI_WAIT_NONE;
}

/**
 * kefa_mrq_join() - have readers of a region's completion queue polled for, or notified
 * @mr: the region, of fi_mr_alloc()
 *
 * Does nothing for a region of an endpoint, which is a source of the queue itself.
 *
 * Context: Process context, under kefa_dev.lock.
 */
void kefa_mrq_join(struct kefa_mr *mr)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;

	lockdep_assert_held(&mr->dom->dev->lock);
	if (mr->ep)
		return;
	mr->polled = true;
	if (!kofi_cq_share(mr->cq, &mrq->source, &mrq->nbusy) || !kefa_mrq_awaits(mr->cq))
		return;
	spin_lock_bh(&mrq->lock);
	kefa_mrq_await(mrq);
	spin_unlock_bh(&mrq->lock);
}

/**
 * kefa_mrq_leave() - undo kefa_mrq_join()
 * @mr: the region, without an outstanding request
 *
 * Context: Process context, under kefa_dev.lock.
 */
void kefa_mrq_leave(struct kefa_mr *mr)
{
	struct kefa_mrq *mrq = &mr->dom->mrq;

	lockdep_assert_held(&mr->dom->dev->lock);
	if (!mr->polled)
		return;
	mr->polled = false;
	if (!kofi_cq_unshare(mr->cq) || !kefa_mrq_awaits(mr->cq))
		return;
	spin_lock_bh(&mrq->lock);
	mrq->awaited--;
	spin_unlock_bh(&mrq->lock);
}
