// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Workers and handlers. Handlers run in work items that the core knows, their
 * own or a provider's; so a control call can be refused there, where it could
 * wait for itself: closing a queue waits for its handler.
 */
#include <linux/hashtable.h>
#include <linux/sched.h>
#include "queue.h"

static DEFINE_HASHTABLE(kofi_works, 8);		/* kofi_works_lock */
static DEFINE_SPINLOCK(kofi_works_lock);
static struct workqueue_struct *kofi_wq;

/**
 * kofi_work_run() - do what a work item is for: see kofi_work_init()
 * @work: the item
 *
 * Context: Process context, on a workqueue.
 */
void kofi_work_run(struct work_struct *work)
{
	struct kofi_work *kwork = container_of(work, struct kofi_work, work);

	/*
	 * Not taken back: the function may have freed the item, and a task that does
	 * something else has another current_work().
	 */
	WRITE_ONCE(kwork->runner, current);
	kwork->fn(work);
}
EXPORT_SYMBOL_NS_GPL(kofi_work_run, KOFI_PROVIDER);

/**
 * kofi_work_add() - the part of kofi_work_init() that is no macro
 * @work: the item
 * @fn: what it does
 *
 * Context: Process context.
 */
void kofi_work_add(struct kofi_work *work, work_func_t fn)
{
	work->fn = fn;
	work->runner = NULL;
	spin_lock(&kofi_works_lock);
	hash_add(kofi_works, &work->known, (unsigned long)&work->work);
	spin_unlock(&kofi_works_lock);
}
EXPORT_SYMBOL_NS_GPL(kofi_work_add, KOFI_PROVIDER);

/**
 * kofi_work_fini() - cancel a work item for good
 * @work: the item, which nobody will queue again
 *
 * Context: Process context; sleeps until the item is idle, unless the item's own
 * function calls this.
 */
void kofi_work_fini(struct kofi_work *work)
{
	if (current_work() == &work->work)
		cancel_work(&work->work);
	else
		cancel_work_sync(&work->work);
	spin_lock(&kofi_works_lock);
	hash_del(&work->known);
	spin_unlock(&kofi_works_lock);
}
EXPORT_SYMBOL_NS_GPL(kofi_work_fini, KOFI_PROVIDER);

/**
 * kofi_in_handler() - does this run in a work item of ours?
 *
 * The item that runs is looked up, not looked at: another's may free itself, and
 * what is in its place now may be an item of ours that doesn't run.
 *
 * Context: Any.
 * Return: whether control calls must be refused.
 */
bool kofi_in_handler(void)
{
	struct work_struct *running = current_work();
	struct kofi_work *work;
	bool found = false;

	if (!running)
		return false;
	spin_lock(&kofi_works_lock);
	hash_for_each_possible(kofi_works, work, known, (unsigned long)running)
		if (&work->work == running &&
		    READ_ONCE(work->runner) == current)
			found = true;
	spin_unlock(&kofi_works_lock);
	return found;
}
EXPORT_SYMBOL_NS_GPL(kofi_in_handler, KOFI_PROVIDER);

/* Once only: a provider's worker must get on, whoever else feeds the queue. */
static void kofi_notifier_run(struct kofi_notifier *notifier)
{
	bool again;

	notifier->call(notifier);
	spin_lock_bh(notifier->lock);
	again = notifier->again;
	notifier->again = false;
	notifier->running = again;
	/* Under the lock: who closes the queue may free it right after. */
	if (!again && wq_has_sleeper(&notifier->wait))
		wake_up_all(&notifier->wait);
	spin_unlock_bh(notifier->lock);
	if (again)
		queue_work(kofi_wq, &notifier->work.work);
}

/* For kofi_notifier_init(). */
void kofi_notifier_work(struct work_struct *work)
{
	kofi_notifier_run(container_of(work, struct kofi_notifier, work.work));
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
	init_waitqueue_head(&notifier->wait);
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
	flush_work(&notifier->work.work);
	wait_event(notifier->wait, kofi_notifier_idle(notifier));
	kofi_work_fini(&notifier->work);
}

/**
 * kofi_notify() - tell who reads a queue that there is something to read
 * @notifier: the queue's
 * @in_worker: the caller runs in a kofi_work and holds no lock, so that the
 *	handler may be called from here
 *
 * The handler is never called twice at a time.
 *
 * Context: Process or softirq context.
 */
void kofi_notify(struct kofi_notifier *notifier, bool in_worker)
{
	bool run = false;

	might_sleep_if(in_worker);
	if (wq_has_sleeper(&notifier->wait))
		wake_up_all(&notifier->wait);
	if (!notifier->call)
		return;

	spin_lock_bh(notifier->lock);
	if (notifier->armed) {
		notifier->armed = false;
		run = !notifier->running;
		notifier->again |= notifier->running;
		notifier->running = true;
	}
	spin_unlock_bh(notifier->lock);
	if (run && in_worker)
		kofi_notifier_run(notifier);
	else if (run)
		queue_work(kofi_wq, &notifier->work.work);
}

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
	bool run;

	if (wq_has_sleeper(&notifier->wait))
		wake_up_all(&notifier->wait);
	if (!notifier->call)
		return;
	spin_lock_bh(notifier->lock);
	run = !notifier->running;
	notifier->again |= notifier->running;
	notifier->running = true;
	spin_unlock_bh(notifier->lock);
	if (run)
		queue_work(kofi_wq, &notifier->work.work);
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
	kofi_wq = alloc_workqueue("kofi", WQ_MEM_RECLAIM, 0);
	return kofi_wq ? 0 : -ENOMEM;
}

void kofi_work_stop(void)
{
	destroy_workqueue(kofi_wq);
}
