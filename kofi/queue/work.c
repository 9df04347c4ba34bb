// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Telling the readers of queues, and knowing what runs in a handler: a control call is
 * refused there, where it could wait for itself. Closing a queue waits for its handler,
 * and closing an endpoint for the worker that calls handlers.
 */
#include <linux/sched.h>
#include "queue.h"

static LIST_HEAD(kofi_notifiers);		/* kofi_notifiers_lock */
static DEFINE_SPINLOCK(kofi_notifiers_lock);
static struct workqueue_struct *kofi_wq;

/**
 * kofi_in_handler() - does this run in a completion or event handler?
 *
 * Context: Any.
 * Return: whether control calls must be refused.
 */
bool kofi_in_handler(void)
{
	struct kofi_notifier *notifier;
	bool found = false;

	/* Handlers run in workqueues alone; nobody else pays for the search. */
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

/* Once only: a provider's worker must get on, whoever else feeds the queue. */
static void kofi_notifier_run(struct kofi_notifier *notifier)
{
	bool again;

	WRITE_ONCE(notifier->runner, current);
	notifier->call(notifier);
	WRITE_ONCE(notifier->runner, NULL);
	spin_lock_bh(notifier->lock);
	again = notifier->again;
	notifier->again = false;
	notifier->running = again;
	/* Under the lock: who closes the queue may free it right after. */
	if (!again && wq_has_sleeper(&notifier->wait))
		wake_up_all(&notifier->wait);
	spin_unlock_bh(notifier->lock);
	if (again)
		queue_work(kofi_wq, &notifier->work);
}

/* For kofi_notifier_init(). */
void kofi_notifier_work(struct work_struct *work)
{
	kofi_notifier_run(container_of(work, struct kofi_notifier, work));
}

/* For kofi_notifier_init(). */
void kofi_notifier_setup(struct kofi_notifier *notifier, spinlock_t *lock,
			 void (*call)(struct kofi_notifier *notifier))
{
	notifier->lock = lock;
	notifier->call = call;
	notifier->armed = true;
	notifier->running = false;
	notifier->again = false;
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
 * @notifier: the part, which nobody notifies any more
 *
 * Context: Process context; sleeps until the handler has returned, whoever
 * called it.
 */
void kofi_notifier_fini(struct kofi_notifier *notifier)
{
	/* Lockdep looks at this one, and would overlook the next. */
	flush_work(&notifier->work);
	wait_event(notifier->wait, kofi_notifier_idle(notifier));
	cancel_work_sync(&notifier->work);
	spin_lock(&kofi_notifiers_lock);
	list_del(&notifier->list);
	spin_unlock(&kofi_notifiers_lock);
}

/* Wakes sleepers. Return: the caller has to call the handler, or have it called. */
static __always_inline bool kofi_notifier_claim(struct kofi_notifier *notifier,
						bool unarmed)
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

/**
 * kofi_notify() - tell who reads a queue that there is something to read
 * @notifier: the queue's
 * @in_worker: the caller runs in a workqueue and holds no lock, so that the handler
 *	may be called from here
 *
 * The handler is never called twice at a time.
 *
 * Context: Process or softirq context.
 */
void kofi_notify(struct kofi_notifier *notifier, bool in_worker)
{
	might_sleep_if(in_worker);
	if (!kofi_notifier_claim(notifier, false))
		return;
	if (in_worker)
		kofi_notifier_run(notifier);
	else
		queue_work(kofi_wq, &notifier->work);
}
EXPORT_SYMBOL_NS_GPL(kofi_notify, KOFI_PROVIDER);

/**
 * kofi_notify_room() - tell who reads a queue that a refused post may succeed now
 * @notifier: the queue's
 *
 * The handler is called even if it isn't armed: its ULP may be between two reads, and
 * need not read at all in order to post.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
void kofi_notify_room(struct kofi_notifier *notifier)
{
	if (kofi_notifier_claim(notifier, true))
		queue_work(kofi_wq, &notifier->work);
}

/**
 * kofi_wait_begin() - what every call that waits begins with
 * @wait_obj: as its object was opened
 * @timeout: milliseconds; negative waits for ever
 * @left: takes the jiffies
 *
 * Context: Process context; a place to catch callers that can't sleep.
 * Return: 0, -EOPNOTSUPP when nobody can wait for the object, -EDEADLK in a
 * completion handler.
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
