// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Notifying the readers of queues. The core records which task runs a handler, in order to
 * refuse control calls of handlers: closing a queue waits for its handler, and closing an
 * endpoint waits for the worker that calls handlers, so a handler could wait for itself.
 *
 * A handler with FI_CQ_SOFTIRQ is called by a provider's softirq, or by a workqueue with softirqs
 * off. No control call is allowed in a softirq, so it makes no difference which handler it runs.
 * A handler that reads KOFI_SOFT_BUDGET entries in one call finds no more: the workqueue calls it
 * for the rest, so that other softirqs and tasks run in between, however fast entries come.
 */
#include <linux/bottom_half.h>
#include <linux/sched.h>
#include "queue.h"

static LIST_HEAD(kofi_notifiers);		/* kofi_notifiers_lock */
static DEFINE_SPINLOCK(kofi_notifiers_lock);
static struct workqueue_struct *kofi_wq;

/**
 * kofi_in_handler() - check whether a completion or event handler runs, or may run
 *
 * Context: Process context; in softirq context the result is true.
 * Return: true if control calls must be refused.
 */
bool kofi_in_handler(void)
{
	struct kofi_notifier *notifier;
	bool found = false;

	if (in_serving_softirq())
		return true;
	/* Other handlers run only in workqueues, so other tasks skip the search. */
	if (!current_work())
		return false;
	spin_lock(&kofi_notifiers_lock);
	list_for_each_entry(notifier, &kofi_notifiers, list)
		if (READ_ONCE(notifier->runner) == current) {
			found = true;
			break;
		}
	spin_unlock(&kofi_notifiers_lock);
	return found;
}
EXPORT_SYMBOL_NS_GPL(kofi_in_handler, KOFI_PROVIDER);

/* Call a handler that is written for softirqs, in process context with softirqs off. */
static noinline void kofi_notifier_call_softly(struct kofi_notifier *notifier)
{
	const bool off = in_task();

	notifier->left = KOFI_SOFT_BUDGET;
	if (off)
		local_bh_disable();
	notifier->call(notifier);
	if (off)
		local_bh_enable();
}

/**
 * kofi_notify_claimed() - call the handler of a queue after kofi_notify_claim() returned true
 * @notifier: the queue's notifier
 *
 * Calls the handler once. If entries came meanwhile, or a handler with FI_CQ_SOFTIRQ has left some,
 * queues the work item for the next call, so that a provider's worker isn't held up by other
 * sources of the queue.
 *
 * Context: Process context, in a workqueue, with no lock held; may sleep. With
 * kofi_notifier.softirq also softirq context.
 */
void kofi_notify_claimed(struct kofi_notifier *notifier)
{
	bool again;

	WRITE_ONCE(notifier->runner, current);
	if (notifier->softirq) {
		kofi_notifier_call_softly(notifier);
	} else {
		might_sleep();
		notifier->call(notifier);
	}
	WRITE_ONCE(notifier->runner, NULL);
	spin_lock_bh(notifier->lock);
	again = notifier->again;
	notifier->again = false;
	notifier->running = again;
	/* Wake under the lock: a task that closes the queue may free it right after. */
	if (!again && wq_has_sleeper(&notifier->wait))
		wake_up_all(&notifier->wait);
	spin_unlock_bh(notifier->lock);
	if (again)
		queue_work(kofi_wq, &notifier->work);
}
EXPORT_SYMBOL_NS_GPL(kofi_notify_claimed, KOFI_PROVIDER);

/* Work function of kofi_notifier_init(). */
void kofi_notifier_work(struct work_struct *work)
{
	kofi_notify_claimed(container_of(work, struct kofi_notifier, work));
}

/* Function part of kofi_notifier_init(). */
void kofi_notifier_setup(struct kofi_notifier *notifier, spinlock_t *lock,
			 void (*call)(struct kofi_notifier *notifier))
{
	notifier->lock = lock;
	notifier->call = call;
	notifier->armed = true;
	notifier->running = false;
	notifier->again = false;
	notifier->softirq = false;
	notifier->runner = NULL;
	init_waitqueue_head(&notifier->wait);
	spin_lock(&kofi_notifiers_lock);
	list_add(&notifier->list, &kofi_notifiers);
	spin_unlock(&kofi_notifiers_lock);
}

static bool kofi_notifier_idle(struct kofi_notifier *notifier)
{
	bool idle;

	spin_lock_bh(notifier->lock);
	idle = !notifier->running;
	spin_unlock_bh(notifier->lock);
	return idle;
}

/**
 * kofi_notifier_fini() - undo kofi_notifier_init()
 * @notifier: the notifier, which gets no more notifications
 *
 * Context: Process context; sleeps until the handler has returned, whichever task
 * called it.
 */
void kofi_notifier_fini(struct kofi_notifier *notifier)
{
	/* For lockdep, which checks flush_work() but not wait_event(). */
	flush_work(&notifier->work);
	wait_event(notifier->wait, kofi_notifier_idle(notifier));
	cancel_work_sync(&notifier->work);
	spin_lock(&kofi_notifiers_lock);
	list_del(&notifier->list);
	spin_unlock(&kofi_notifiers_lock);
}

/**
 * kofi_notify_claim() - wake sleepers, and claim the call of the handler
 * @notifier: the queue's notifier
 * @unarmed: call the handler even if the queue isn't armed
 *
 * A queue that is being closed waits for the call of the handler. So a provider may claim queues
 * under a lock that keeps them open, and call their handlers after it has released the lock.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: true if the caller must call kofi_notify_claimed(), or queue the work.
 */
bool kofi_notify_claim(struct kofi_notifier *notifier, bool unarmed)
{
	bool run = false;

	if (wq_has_sleeper(&notifier->wait))
		wake_up_all(&notifier->wait);
	if (!notifier->call)
		return false;
	spin_lock_bh(notifier->lock);
	if (notifier->armed || unarmed) {
		notifier->armed &= unarmed;
		run = !notifier->running;
		notifier->again |= notifier->running;
		notifier->running = true;
	}
	spin_unlock_bh(notifier->lock);
	return run;
}
EXPORT_SYMBOL_NS_GPL(kofi_notify_claim, KOFI_PROVIDER);

/**
 * kofi_notify() - notify the reader of a queue of new entries
 * @notifier: the queue's notifier
 * @in_worker: the caller runs in a workqueue, or with kofi_notifier.softirq in a softirq, and holds
 *	no lock, so that this function may call the handler itself
 *
 * The handler never runs concurrently with itself.
 *
 * Context: Process or softirq context.
 */
void kofi_notify(struct kofi_notifier *notifier, bool in_worker)
{
	if (!kofi_notify_claim(notifier, false))
		return;
	if (in_worker)
		kofi_notify_claimed(notifier);
	else
		queue_work(kofi_wq, &notifier->work);
}
EXPORT_SYMBOL_NS_GPL(kofi_notify, KOFI_PROVIDER);

/**
 * kofi_notify_room() - notify the reader of a queue that a refused post may succeed now
 * @notifier: the queue's notifier
 *
 * Calls the handler even if the queue isn't armed, because a ULP that waits for room may
 * have no reason to read the queue first.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kofi_notify_room(struct kofi_notifier *notifier)
{
	if (kofi_notify_claim(notifier, true))
		queue_work(kofi_wq, &notifier->work);
}

/**
 * kofi_wait_begin() - check whether a call may wait, and convert its timeout
 * @wait_obj: the object's wait object
 * @timeout: milliseconds; negative waits for ever
 * @left: takes the timeout in jiffies
 *
 * Context: Process context; warns about callers that can't sleep.
 * Return: 0, -EOPNOTSUPP for FI_WAIT_NONE, -EDEADLK in a completion handler.
 */
int kofi_wait_begin(enum fi_wait_obj wait_obj, int timeout, long *left)
{
	might_sleep();
	*left = timeout < 0 ? MAX_SCHEDULE_TIMEOUT : msecs_to_jiffies(timeout);
	if (wait_obj == FI_WAIT_NONE)
		return -EOPNOTSUPP;
	return kofi_in_handler() ? -EDEADLK : 0;
}

int kofi_work_start(void)
{
	kofi_wq = alloc_workqueue("kofi", WQ_MEM_RECLAIM | COMPAT_WQ_PERCPU, 0);
	return kofi_wq ? 0 : -ENOMEM;
}

void kofi_work_stop(void)
{
	destroy_workqueue(kofi_wq);
}
