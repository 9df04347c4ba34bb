// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Progress of a domain's registrations. Readers of a completion queue poll while registrations are
 * outstanding. If they may sleep, or have a handler, the device's event queues the worker, which
 * polls, calls handlers without holding locks, and arms the device's queue when it is empty. If
 * all handlers may be called in softirqs, a softirq does so instead of the worker.
 * Control calls that wait for a registration poll themselves.
 *
 * While kefa_mrq.awaited isn't 0, the device's completion queue is always in one of these states:
 * - armed, so that an event will come;
 * - the worker or the softirq is queued or runs, and will arm it.
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
 * kefa_mrq_kick() - have the worker run, or the softirq if no handler may sleep
 * @mrq: the queue pair
 *
 * Context: Any, hard interrupt included.
 */
void kefa_mrq_kick(struct kefa_mrq *mrq)
{
	if (READ_ONCE(mrq->softirq))
		compat_bh_queue(&mrq->bh);
	else
		queue_work(kefa_wq, &mrq->work);
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
	kefa_mrq_kick(mrq);
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
	struct kefa_mrq_calls *calls = mrq->serving;
	const bool soft = calls == &mrq->soft_calls;

	lockdep_assert_held(&mrq->lock);
	/*
	 * A queue whose handler may sleep may have come while the softirq was queued. The worker
	 * calls only such handlers, so that one that sleeps doesn't delay the others.
	 */
	if (!calls || soft != cq->notifier.softirq)
		kofi_cq_notify(cq);
	else if (kofi_cq_claim(cq))
		calls->cqs[calls->n++] = cq;
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
		kefa_mrq_kick(mrq);
}

/*
 * Poll one batch, and call handlers before the queue is armed: completions that arrive meanwhile
 * need no event. Each batch has at most as many claims as completions. While nothing is
 * outstanding, only an event or the result of arming (@told) can mean that there is something to
 * poll for. Return: whether there may be more completions; if not, the queue is armed or needn't
 * be.
 */
static bool kefa_mrq_serve(struct kefa_mrq *mrq, struct kefa_mrq_calls *calls, bool *told)
{
	unsigned int i, found = 0;

	spin_lock_bh(&mrq->lock);
	calls->n = 0;
	if (mrq->open && (*told || mrq->nbusy)) {
		mrq->serving = calls;
		found = kefa_mrq_poll(mrq);
		mrq->serving = NULL;
	}
	*told = !found && mrq->open && mrq->awaited && kefa_hw_arm(&mrq->hq) > 0;
	spin_unlock_bh(&mrq->lock);
	kefa_mrq_wake(mrq);
	for (i = 0; i < calls->n; i++)
		kofi_cq_notify_claimed(calls->cqs[i]);
	return found || *told;
}

static void kefa_mrq_run(struct kefa_mrq *mrq, struct kefa_mrq_calls *calls)
{
	bool told = true;
	int i;

	for (i = 0; i < KEFA_POLL_BUDGET / KEFA_POLL_BATCH; i++)
		if (!kefa_mrq_serve(mrq, calls, &told))
			return;
	/*
	 * Don't loop until the queue is empty, so that other work of this CPU can run. Nothing is
	 * queued after kefa_mrq_stop(): the domain cancels the worker and the softirq one after the
	 * other.
	 */
	spin_lock_bh(&mrq->lock);
	if (mrq->open)
		kefa_mrq_kick(mrq);
	spin_unlock_bh(&mrq->lock);
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

	kefa_mrq_run(mrq, &mrq->calls);
}

/**
 * kefa_mrq_soft() - serve the queue pair in a softirq
 * @work: kefa_mrq.soft
 *
 * Context: Softirq context. Calls handlers that allow it.
 */
void kefa_mrq_soft(struct work_struct *work)
{
	struct kefa_mrq *mrq = container_of(work, struct kefa_mrq, soft);

	kefa_mrq_run(mrq, &mrq->soft_calls);
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
	kefa_mrq_kick(mrq);
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

static void kefa_mrq_count_handler(struct kefa_mrq *mrq, const struct kofi_cq *cq, int by)
{
	lockdep_assert_held(&mrq->lock);
	if (cq->notifier.softirq)
		mrq->nsoft += by;
	else if (cq->attr.handler)
		mrq->nsleepy += by;
	WRITE_ONCE(mrq->softirq, mrq->nsoft && !mrq->nsleepy);
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
	kefa_mrq_count_handler(mrq, mr->cq, 1);
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
	kefa_mrq_count_handler(mrq, mr->cq, -1);
	mrq->awaited--;
	spin_unlock_bh(&mrq->lock);
}
