// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Handlers of completion queues: when and in which context they are called. Calls are never
 * concurrent, none is missed, and none comes after the queue was closed. handler_soft_kunit.c tests
 * those with FI_CQ_SOFTIRQ.
 */
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include "cq_test.h"
#include "crew.h"

#define HAND_HUNT_MS	300
#define HAND_CLOSES	200

/**
 * struct hand - a queue with a handler, and records of its calls
 * @cq: the queue
 * @work: a worker that writes to the queue and calls the handler
 * @soft: a softirq that writes to the queue without calling the handler
 * @what: behavior of the handler
 * @entered: completed when the handler is called
 * @leave: the handler waits for this, depending on @what
 * @worked: completed when the worker has finished
 * @calls: number of calls of the handler
 * @inside: number of calls in progress
 * @clashes: number of calls concurrent with another one
 * @got: number of completions that the handler has read
 * @next: number of the next completion
 * @task: task of the last call
 * @ran: work item of the last call
 * @stop: makes concurrent threads stop
 */
struct hand {
	struct kofi_cq		cq;
	struct work_struct	work;
	struct tasklet_struct	soft;
	void			(*what)(struct hand *hand);
	struct completion	entered;
	struct completion	leave;
	struct completion	worked;
	atomic_t		calls;
	atomic_t		inside;
	atomic_t		clashes;
	atomic_t		got;
	atomic_t		next;
	struct task_struct	*task;
	struct work_struct	*ran;
	bool			stop;
};

static void hand_call(struct fid_cq *cq, void *context)
{
	struct hand *hand = context;

	might_sleep();
	lockdep_assert_not_held(&hand->cq.lock);
	if (atomic_inc_return(&hand->inside) > 1)
		atomic_inc(&hand->clashes);
	if (cq != &hand->cq.cq_fid)
		atomic_inc(&hand->clashes);
	atomic_inc(&hand->calls);
	hand->task = current;
	hand->ran = current_work();
	if (hand->what)
		hand->what(hand);
	atomic_dec(&hand->inside);
}

static void hand_read_all(struct hand *hand)
{
	struct fi_cq_tagged_entry entry;

	while (fi_cq_read(&hand->cq.cq_fid, &entry, 1) == 1)
		atomic_inc(&hand->got);
}

static void hand_block(struct hand *hand)
{
	complete(&hand->entered);
	wait_for_completion(&hand->leave);
}

static void hand_read_and_block(struct hand *hand)
{
	hand_read_all(hand);
	hand_block(hand);
}

static bool hand_write(struct hand *hand)
{
	if (kofi_cq_reserve(&hand->cq))
		return false;
	cq_write(&hand->cq, atomic_inc_return(&hand->next));
	return true;
}

static void hand_work(struct work_struct *work)
{
	struct hand *hand = container_of(work, struct hand, work);

	hand_write(hand);
	kofi_cq_notify_worker(&hand->cq);
	complete(&hand->worked);
}

static void hand_soft(struct tasklet_struct *soft)
{
	struct hand *hand = container_of(soft, struct hand, soft);

	hand_write(hand);
	kofi_cq_notify(&hand->cq);
}

static void hand_init(struct kunit *test, struct hand *hand,
		      void (*what)(struct hand *hand))
{
	struct fi_cq_attr attr = {
		.format			= FI_CQ_FORMAT_TAGGED,
		.wait_obj		= FI_WAIT_UNSPEC,
		.handler		= hand_call,
		.handler_context	= hand,
	};

	hand->what = what;
	init_completion(&hand->entered);
	init_completion(&hand->leave);
	init_completion(&hand->worked);
	tasklet_setup(&hand->soft, hand_soft);
	KUNIT_ASSERT_EQ(test, kofi_cq_init(&hand->cq, &attr, &cq_config),
			0);
	INIT_WORK(&hand->work, hand_work);
}

static void hand_fini(void *arg)
{
	struct hand *hand = arg;

	complete_all(&hand->leave);
	cancel_work_sync(&hand->work);
	tasklet_kill(&hand->soft);
	kofi_cq_fini(&hand->cq);
}

static struct hand *hand_make(struct kunit *test,
			      void (*what)(struct hand *hand))
{
	struct hand *hand = kunit_kzalloc(test, sizeof(*hand), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, hand);
	hand_init(test, hand, what);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, hand_fini, hand),
			0);
	return hand;
}

/* Write and notify; if the handler is called, let it return. */
static void hand_poke(struct kunit *test, struct hand *hand)
{
	KUNIT_EXPECT_TRUE(test, hand_write(hand));
	kofi_cq_notify(&hand->cq);
	flush_work(&hand->cq.notifier.work);
}

static void hand_once(struct kunit *test)
{
	static struct fi_cq_tagged_entry entry[CQ_ALL];
	struct hand *hand = hand_make(test, NULL);
	struct fid_cq *fid = &hand->cq.cq_fid;
	struct fi_cq_err_entry err = { };

	hand_poke(test, hand);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 1);
	hand_poke(test, hand);
	hand_poke(test, hand);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 1);

	/* Only a read of an empty queue arms the handler. */
	KUNIT_EXPECT_EQ(test, fi_cq_read(fid, entry, CQ_ALL), 3);
	hand_poke(test, hand);
	KUNIT_EXPECT_EQ(test, fi_cq_readerr(fid, &err, 0), -EAGAIN);
	hand_poke(test, hand);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 1);

	KUNIT_EXPECT_EQ(test, fi_cq_read(fid, entry, CQ_ALL), 2);
	cq_add_err(test, &hand->cq, 1);
	KUNIT_EXPECT_EQ(test, fi_cq_read(fid, entry, CQ_ALL), -FI_EAVAIL);
	hand_poke(test, hand);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 1);
	KUNIT_EXPECT_EQ(test, fi_cq_readerr(fid, &err, 0), 1);
	KUNIT_EXPECT_EQ(test, fi_cq_read(fid, entry, CQ_ALL), 1);

	KUNIT_EXPECT_EQ(test, fi_cq_read(fid, entry, CQ_ALL), -EAGAIN);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 1);
	hand_poke(test, hand);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 2);
}

static void hand_reads(struct kunit *test)
{
	struct hand *hand = hand_make(test, hand_read_all);
	int i;

	for (i = 1; i <= 3 * CQ_SIZE; i++) {
		hand_poke(test, hand);
		KUNIT_EXPECT_EQ(test, atomic_read(&hand->got), i);
		KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), i);
	}
}

/* The handler runs in a work item, whichever context notifies. */
static void hand_context(struct kunit *test)
{
	struct hand *hand = hand_make(test, hand_read_all);
	struct work_struct *item = &hand->cq.notifier.work;

	hand_poke(test, hand);
	KUNIT_EXPECT_PTR_NE(test, hand->task, current);
	KUNIT_EXPECT_PTR_EQ(test, hand->ran, item);

	hand->ran = NULL;
	kofi_in_softirq(&hand->soft, hand_soft);
	flush_work(item);
	KUNIT_EXPECT_PTR_EQ(test, hand->ran, item);

	/* A worker of the provider calls it directly. */
	queue_work(system_wq, &hand->work);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&hand->worked));
	KUNIT_EXPECT_PTR_EQ(test, hand->ran, &hand->work);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->got), 3);
}

static void hand_sread(struct kofi_thread *thread)
{
	struct hand *hand = thread->arg;
	struct fi_cq_tagged_entry entry;

	thread->ret = fi_cq_sread(&hand->cq.cq_fid, &entry, 1, NULL, -1);
}

/* A queue may have both a handler and sleepers. */
static void hand_and_sleeper(struct kunit *test)
{
	struct hand *hand = hand_make(test, NULL);
	struct kofi_thread thread;

	kofi_thread_start(test, &thread, hand_sread, hand);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&hand->cq.notifier.wait)));
	hand_poke(test, hand);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 1);
}

/* Spin at first, so that a round is short; then sleep, so that the handler can run on this CPU. */
static bool hand_got(struct hand *hand, int count)
{
	int i;

	for (i = 0; i < 100 && atomic_read(&hand->got) < count; i++)
		udelay(1);
	return kofi_soon(atomic_read(&hand->got) >= count);
}

/*
 * Each completion is written as soon as the last one was read, while the handler may be
 * finding the queue empty and returning. The handler must be called again.
 */
static void hand_hunt(struct kunit *test, void (*poke)(struct hand *hand))
{
	struct hand *hand = hand_make(test, hand_read_all);
	unsigned long start = jiffies;
	bool lost = false;
	int i;

	for (i = 0; !lost && kofi_hunting(start, HAND_HUNT_MS, i); i++) {
		poke(hand);
		lost = !hand_got(hand, i + 1);
	}
	KUNIT_EXPECT_FALSE(test, lost);
	KUNIT_EXPECT_GE(test, i, KOFI_ROUNDS_MIN);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->got), i);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->clashes), 0);
	kunit_info(test, "%d rounds, %d calls\n", i,
		   atomic_read(&hand->calls));
}

static void hand_poke_here(struct hand *hand)
{
	hand_write(hand);
	kofi_cq_notify(&hand->cq);
}

static void hand_poke_work(struct hand *hand)
{
	queue_work(system_unbound_wq, &hand->work);
}

static void hand_poke_soft(struct hand *hand)
{
	tasklet_schedule(&hand->soft);
}

static void hand_not_lost(struct kunit *test)
{
	hand_hunt(test, hand_poke_here);
}

static void hand_not_lost_worker(struct kunit *test)
{
	hand_hunt(test, hand_poke_work);
}

static void hand_not_lost_softirq(struct kunit *test)
{
	hand_hunt(test, hand_poke_soft);
}

static void hand_read_slowly(struct hand *hand)
{
	hand_read_all(hand);
	usleep_range(1, 100);
	hand_read_all(hand);
}

static void hand_write_on(struct kofi_thread *thread)
{
	struct hand *hand = thread->arg;

	while (!signal_pending(current)) {
		hand_write(hand);
		kofi_cq_notify(&hand->cq);
		usleep_range(1, 50);
	}
}

/* Threads, a worker and a softirq cause calls, which must not be concurrent. */
static void hand_no_clash(struct kunit *test)
{
	struct hand *hand = hand_make(test, hand_read_slowly);
	struct kofi_thread thread[2];
	unsigned long stop;
	int i;

	for (i = 0; i < ARRAY_SIZE(thread); i++)
		kofi_thread_start(test, &thread[i], hand_write_on, hand);
	stop = jiffies + msecs_to_jiffies(HAND_HUNT_MS);
	while (time_before(jiffies, stop)) {
		queue_work(system_unbound_wq, &hand->work);
		tasklet_schedule(&hand->soft);
		usleep_range(1, 50);
	}
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&hand->calls) >
					  KOFI_ROUNDS_MIN));
	for (i = 0; i < ARRAY_SIZE(thread); i++) {
		kofi_thread_kill(&thread[i]);
		kofi_thread_join(test, &thread[i]);
	}
	tasklet_kill(&hand->soft);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&hand->got) ==
					  atomic_read(&hand->next)));
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->clashes), 0);
}

/*
 * A provider's worker calls the handler once, not again and again because other contexts write
 * to the queue.
 */
static void hand_again_elsewhere(struct kunit *test)
{
	struct hand *hand = hand_make(test, hand_read_and_block);

	queue_work(system_wq, &hand->work);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&hand->entered));
	KUNIT_EXPECT_PTR_EQ(test, hand->ran, &hand->work);
	KUNIT_EXPECT_TRUE(test, hand_write(hand));
	kofi_cq_notify(&hand->cq);
	complete(&hand->leave);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&hand->entered));
	KUNIT_EXPECT_TRUE(test, kofi_completed(&hand->worked));
	KUNIT_EXPECT_PTR_EQ(test, hand->ran, &hand->cq.notifier.work);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->clashes), 0);
}

static bool hand_called(struct hand *hand, int calls)
{
	return kofi_soon(atomic_read(&hand->calls) == calls &&
			 !READ_ONCE(hand->cq.notifier.running));
}

/* After a refused post the handler is called once for room, and otherwise not. */
static void hand_room(struct kunit *test)
{
	struct hand *hand = hand_make(test, NULL);
	int i;

	for (i = 0; i < CQ_SIZE; i++)
		KUNIT_EXPECT_EQ(test, kofi_cq_reserve(&hand->cq), 0);
	kofi_cq_unreserve(&hand->cq);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(&hand->cq), 0);
	msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 0);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(&hand->cq), -EAGAIN);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(&hand->cq), -EAGAIN);
	kofi_cq_unreserve(&hand->cq);
	KUNIT_EXPECT_TRUE(test, hand_called(hand, 1));
	kofi_cq_unreserve_some(&hand->cq, CQ_SIZE - 1);
	msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 1);
}

/* The handler is called for room even if no read has returned -EAGAIN since the last call. */
static void hand_room_unarmed(struct kunit *test)
{
	struct hand *hand = hand_make(test, NULL);
	struct fi_cq_tagged_entry entry;
	int i;

	for (i = 0; i < CQ_SIZE; i++)
		KUNIT_EXPECT_TRUE(test, hand_write(hand));
	kofi_cq_notify(&hand->cq);
	KUNIT_EXPECT_TRUE(test, hand_called(hand, 1));
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(&hand->cq), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&hand->cq.cq_fid, &entry, 1), 1);
	KUNIT_EXPECT_TRUE(test, hand_called(hand, 2));
	hand_read_all(hand);
	msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 2);
}

/* A refusal and the release of an entry race: the handler is called, whichever comes first. */
static void hand_room_race(struct kofi_thread *thread)
{
	struct hand *hand = thread->arg;

	while (!READ_ONCE(hand->stop)) {
		kofi_cq_unreserve(&hand->cq);
		while (!READ_ONCE(hand->stop) && kofi_cq_reserve(&hand->cq))
			cond_resched();
	}
}

static void hand_room_not_lost(struct kunit *test)
{
	unsigned long end = jiffies + msecs_to_jiffies(KOFI_SPIN_MS);
	struct hand *hand = hand_make(test, NULL);
	struct kofi_thread thread;
	int told, refused = 0, i;

	for (i = 0; i < CQ_SIZE; i++)
		KUNIT_EXPECT_EQ(test, kofi_cq_reserve(&hand->cq), 0);
	kofi_thread_start(test, &thread, hand_room_race, hand);
	while (refused < KOFI_ROUNDS_MIN && time_before(jiffies, end)) {
		told = atomic_read(&hand->calls);
		if (!kofi_cq_reserve(&hand->cq)) {
			kofi_cq_unreserve(&hand->cq);
			cond_resched();
			continue;
		}
		refused++;
		if (!kofi_soon(atomic_read(&hand->calls) != told)) {
			KUNIT_FAIL(test, "not told of room after %d refusals", refused);
			break;
		}
	}
	WRITE_ONCE(hand->stop, true);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_GT(test, refused, 0);
}

static void hand_close(struct kofi_thread *thread)
{
	struct hand *hand = thread->arg;

	kofi_cq_fini(&hand->cq);
}

/* Closing waits for the handler, also if it is about to be called again. */
static void hand_close_waits(struct kunit *test)
{
	struct hand *hand = kunit_kzalloc(test, sizeof(*hand), GFP_KERNEL);
	struct kofi_thread thread;

	KUNIT_ASSERT_NOT_NULL(test, hand);
	hand_init(test, hand, hand_read_and_block);
	hand_poke_here(hand);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&hand->entered));
	hand_poke_here(hand);
	kofi_thread_start(test, &thread, hand_close, hand);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 30));
	complete_all(&hand->leave);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->inside), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->got), 2);
	cancel_work_sync(&hand->work);
}

/* Closing also waits for a handler that a provider's worker called. */
static void hand_close_waits_worker(struct kunit *test)
{
	struct hand *hand = kunit_kzalloc(test, sizeof(*hand), GFP_KERNEL);
	struct kofi_thread thread;

	KUNIT_ASSERT_NOT_NULL(test, hand);
	hand_init(test, hand, hand_read_and_block);
	queue_work(system_wq, &hand->work);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&hand->entered));
	kofi_thread_start(test, &thread, hand_close, hand);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 30));
	complete_all(&hand->leave);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->inside), 0);
	cancel_work_sync(&hand->work);
}

/* The queue is closed and freed while the handler is queued or running. */
static void hand_close_due(struct kunit *test)
{
	struct hand *hand;
	int i;

	for (i = 0; i < HAND_CLOSES; i++) {
		hand = kzalloc(sizeof(*hand), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, hand);
		hand_init(test, hand, hand_read_all);
		hand_poke_here(hand);
		udelay(i % 30);
		kofi_cq_fini(&hand->cq);
		cancel_work_sync(&hand->work);
		KUNIT_EXPECT_EQ(test, atomic_read(&hand->inside), 0);
		kfree(hand);
	}
}

static DEFINE_MUTEX(hand_mutex);

static void hand_take_mutex(struct work_struct *work)
{
	mutex_lock(&hand_mutex);
	mutex_unlock(&hand_mutex);
}

static void hand_release(struct kofi_thread *thread)
{
	struct hand *hand = thread->arg;

	msleep(30);
	complete_all(&hand->leave);
}

/*
 * A provider's worker may take a lock under which an unrelated queue is closed. Lockdep must
 * not report that as a deadlock.
 */
static void hand_lockdep(struct kunit *test)
{
	struct hand *hand = kunit_kzalloc(test, sizeof(*hand), GFP_KERNEL);
	struct kofi_thread thread;
	struct work_struct *work;

	KUNIT_ASSERT_NOT_NULL(test, hand);
	work = kunit_kzalloc(test, sizeof(*work), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, work);
	INIT_WORK(work, hand_take_mutex);
	schedule_work(work);
	flush_work(work);
	cancel_work_sync(work);

	hand_init(test, hand, hand_block);
	hand_poke_here(hand);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&hand->entered));
	kofi_thread_start(test, &thread, hand_release, hand);
	mutex_lock(&hand_mutex);
	kofi_cq_fini(&hand->cq);
	mutex_unlock(&hand_mutex);
	kofi_thread_join(test, &thread);
	cancel_work_sync(&hand->work);
}

static struct kunit_case hand_cases[] = {
	KUNIT_CASE(hand_once),
	KUNIT_CASE(hand_reads),
	KUNIT_CASE(hand_context),
	KUNIT_CASE(hand_and_sleeper),
	KUNIT_CASE(hand_not_lost),
	KUNIT_CASE(hand_not_lost_worker),
	KUNIT_CASE(hand_not_lost_softirq),
	KUNIT_CASE(hand_no_clash),
	KUNIT_CASE(hand_again_elsewhere),
	KUNIT_CASE(hand_room),
	KUNIT_CASE(hand_room_unarmed),
	KUNIT_CASE(hand_room_not_lost),
	KUNIT_CASE(hand_close_waits),
	KUNIT_CASE(hand_close_waits_worker),
	KUNIT_CASE(hand_close_due),
	KUNIT_CASE(hand_lockdep),
	{}
};

static struct kunit_suite hand_suite = {
	.name		= "kofi_handler",
	.test_cases	= hand_cases,
};

kunit_test_suite(hand_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's handlers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
