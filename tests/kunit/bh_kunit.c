// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions that run in softirqs: compat/bh.h, which has two ways to run them. Both keep the same
 * promises, so bh_poll_kunit.c includes this file for the way that the kernel doesn't take itself.
 */
#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/irq_work.h>
#include <linux/rcupdate.h>
#include "../../compat/bh.h"
#include "crew.h"

#ifndef BH_SUITE
#define BH_SUITE "kofi_bh"
#endif

/**
 * struct bh_run - a function that runs in softirqs, and records of its runs
 * @bh: what is tested
 * @work: the function
 * @soft: a softirq that queues it
 * @hard: a hard interrupt that queues it
 * @what: what the function does, or NULL
 * @calls: number of runs
 * @inside: number of runs in progress
 * @clashes: number of runs concurrent with another one
 * @outside: number of runs that weren't in a softirq
 * @nested: number of runs inside the softirq or the interrupt that queued them
 * @in_hardirq: @hard was a hard interrupt
 * @vigil: a thread waits for the end of a run
 * @cancelled: @calls when cancelling returned
 * @running: @inside when cancelling returned
 * @stop: the function doesn't queue itself any more
 */
struct bh_run {
	struct compat_bh	bh;
	struct work_struct	work;
	struct tasklet_struct	soft;
	struct irq_work		hard;
	void			(*what)(struct bh_run *run);
	atomic_t		calls;
	atomic_t		inside;
	atomic_t		clashes;
	atomic_t		outside;
	int			nested;
	bool			in_hardirq;
	struct kofi_vigil	vigil;
	int			cancelled;
	int			running;
	bool			stop;
};

static void bh_fn(struct work_struct *work)
{
	struct bh_run *run = container_of(work, struct bh_run, work);

	atomic_add(atomic_inc_return(&run->inside) > 1, &run->clashes);
	atomic_add(!in_serving_softirq() || in_hardirq(), &run->outside);
	atomic_inc(&run->calls);
	if (run->what)
		run->what(run);
	atomic_dec(&run->inside);
}

/* In an interrupt or a softirq: queue it, and note whether it ran at once. */
static void bh_queue_there(struct bh_run *run)
{
	const int calls = atomic_read(&run->calls);

	compat_bh_queue(&run->bh);
	run->nested += atomic_read(&run->calls) - calls;
}

static void bh_soft(struct tasklet_struct *soft)
{
	bh_queue_there(container_of(soft, struct bh_run, soft));
}

static void bh_hard(struct irq_work *work)
{
	struct bh_run *run = container_of(work, struct bh_run, hard);

	run->in_hardirq = in_hardirq();
	bh_queue_there(run);
}

static void bh_fini(void *arg)
{
	struct bh_run *run = arg;

	WRITE_ONCE(run->stop, true);
	compat_bh_cancel_sync(&run->bh);
}

static struct bh_run *bh_make(struct kunit *test, void (*what)(struct bh_run *run))
{
	struct bh_run *run = kunit_kzalloc(test, sizeof(*run), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, run);
	run->what = what;
	run->hard = IRQ_WORK_INIT_HARD(bh_hard);
	init_completion(&run->vigil.entered);
	INIT_WORK(&run->work, bh_fn);
	compat_bh_init(&run->bh, &run->work);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, bh_fini, run), 0);
	return run;
}

/* Wait for a number of runs, then for the end of the softirqs, which are read-side sections. */
static void bh_expect(struct kunit *test, struct bh_run *run, int calls)
{
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&run->calls) >= calls));
	synchronize_rcu();
	KUNIT_EXPECT_EQ(test, atomic_read(&run->calls), calls);
	KUNIT_EXPECT_EQ(test, atomic_read(&run->inside), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&run->clashes), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&run->outside), 0);
	KUNIT_EXPECT_EQ(test, run->nested, 0);
}

static void bh_from_task(struct kunit *test)
{
	struct bh_run *run = bh_make(test, NULL);
	int i;

	for (i = 1; i <= 5; i++) {
		compat_bh_queue(&run->bh);
		bh_expect(test, run, i);
	}
}

static void bh_from_softirq(struct kunit *test)
{
	struct bh_run *run = bh_make(test, NULL);
	int i;

	for (i = 1; i <= 5; i++) {
		kofi_in_softirq(&run->soft, bh_soft);
		bh_expect(test, run, i);
	}
}

static void bh_from_hardirq(struct kunit *test)
{
	struct bh_run *run = bh_make(test, NULL);
	int i;

	for (i = 1; i <= 5; i++) {
		run->in_hardirq = false;
		KUNIT_EXPECT_TRUE(test, irq_work_queue(&run->hard));
		irq_work_sync(&run->hard);
		KUNIT_EXPECT_TRUE(test, run->in_hardirq);
		bh_expect(test, run, i);
	}
}

/* Queued twice before it runs, it runs once. */
static void bh_twice(struct kunit *test)
{
	struct bh_run *run = bh_make(test, NULL);

	local_bh_disable();
	compat_bh_queue(&run->bh);
	compat_bh_queue(&run->bh);
	local_bh_enable();
	bh_expect(test, run, 1);
}

static void bh_queue_once_more(struct bh_run *run)
{
	if (atomic_read(&run->calls) == 1)
		bh_queue_there(run);
}

/* Queued while it runs, it runs again, after it has returned. */
static void bh_again(struct kunit *test)
{
	struct bh_run *run = bh_make(test, bh_queue_once_more);

	compat_bh_queue(&run->bh);
	bh_expect(test, run, 2);
}

/* Only the first run stays. */
static void bh_stay(struct bh_run *run)
{
	if (atomic_read(&run->calls) == 1)
		kofi_vigil_stay(&run->vigil, KOFI_VIGIL_MS);
}

static void bh_stay_long(struct bh_run *run)
{
	if (atomic_read(&run->calls) == 1)
		kofi_vigil_stay(&run->vigil, KOFI_SPIN_MS);
}

/* On this thread's CPU: at the latest, the softirq runs when softirqs are on again. */
static void bh_queue_here(struct kofi_thread *thread)
{
	struct bh_run *run = thread->arg;

	local_bh_disable();
	compat_bh_queue(&run->bh);
	local_bh_enable();
}

static void bh_queue_meanwhile(struct kofi_thread *thread)
{
	struct bh_run *run = thread->arg;

	kofi_vigil_begin(&run->vigil);
	compat_bh_queue(&run->bh);
	kofi_vigil_end(&run->vigil);
}

static void bh_cancel_meanwhile(struct kofi_thread *thread)
{
	struct bh_run *run = thread->arg;

	kofi_vigil_begin(&run->vigil);
	compat_bh_cancel_sync(&run->bh);
	run->cancelled = atomic_read(&run->calls);
	run->running = atomic_read(&run->inside);
	kofi_vigil_end(&run->vigil);
}

/* The same, queued by another CPU. */
static void bh_again_elsewhere(struct kunit *test)
{
	struct bh_run *run = bh_make(test, bh_stay_long);

	kofi_both(test, run, bh_queue_here, bh_queue_meanwhile);
	KUNIT_EXPECT_TRUE(test, run->vigil.early);
	bh_expect(test, run, 2);
}

static void bh_cancel_running(struct kunit *test)
{
	struct bh_run *run = bh_make(test, bh_stay);

	kofi_both(test, run, bh_queue_here, bh_cancel_meanwhile);
	KUNIT_EXPECT_FALSE(test, run->vigil.early);
	KUNIT_EXPECT_EQ(test, run->running, 0);
	bh_expect(test, run, 1);
}

static void bh_queue_and_stay(struct kofi_thread *thread)
{
	struct bh_run *run = thread->arg;

	local_bh_disable();
	compat_bh_queue(&run->bh);
	kofi_vigil_stay(&run->vigil, KOFI_VIGIL_MS);
	local_bh_enable();
}

/* It may have run when cancelling returns, and doesn't run later. It can be queued again. */
static void bh_cancel_queued(struct kunit *test)
{
	struct bh_run *run = bh_make(test, NULL);

	kofi_both(test, run, bh_queue_and_stay, bh_cancel_meanwhile);
	KUNIT_EXPECT_EQ(test, run->running, 0);
	KUNIT_EXPECT_LE(test, run->cancelled, 1);
	bh_expect(test, run, run->cancelled);
	compat_bh_queue(&run->bh);
	bh_expect(test, run, run->cancelled + 1);
}

static void bh_queue_always(struct bh_run *run)
{
	if (!READ_ONCE(run->stop))
		compat_bh_queue(&run->bh);
}

/* Cancelling ends what queues itself again and again. */
static void bh_cancel_endless(struct kunit *test)
{
	struct bh_run *run = bh_make(test, bh_queue_always);
	int calls;

	compat_bh_queue(&run->bh);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&run->calls) >= 10));
	compat_bh_cancel_sync(&run->bh);
	calls = atomic_read(&run->calls);
	msleep(20);
	bh_expect(test, run, calls);
	compat_bh_queue(&run->bh);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&run->calls) >= calls + 10));
}

/* Cancelling what isn't queued changes nothing. */
static void bh_cancel_idle(struct kunit *test)
{
	struct bh_run *run = bh_make(test, NULL);

	compat_bh_cancel_sync(&run->bh);
	compat_bh_cancel_sync(&run->bh);
	bh_expect(test, run, 0);
	compat_bh_queue(&run->bh);
	bh_expect(test, run, 1);
	compat_bh_cancel_sync(&run->bh);
	bh_expect(test, run, 1);
}

static struct kunit_case bh_cases[] = {
	KUNIT_CASE(bh_from_task),
	KUNIT_CASE(bh_from_softirq),
	KUNIT_CASE(bh_from_hardirq),
	KUNIT_CASE(bh_twice),
	KUNIT_CASE(bh_again),
	KUNIT_CASE(bh_again_elsewhere),
	KUNIT_CASE(bh_cancel_running),
	KUNIT_CASE(bh_cancel_queued),
	KUNIT_CASE(bh_cancel_endless),
	KUNIT_CASE(bh_cancel_idle),
	{}
};

static struct kunit_suite bh_suite = {
	.name		= BH_SUITE,
	.test_cases	= bh_cases,
};

kunit_test_suite(bh_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's functions that run in softirqs");
MODULE_LICENSE("Dual BSD/GPL");
