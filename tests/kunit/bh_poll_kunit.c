// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions that run in softirqs: compat/bh.h with irq_poll, as kernels without system_bh_wq use
 * it, and what comes just before and after irq_poll_complete().
 */
#include <linux/list.h>
#include <linux/irq_poll.h>

static void bh_poll_complete(struct irq_poll *poll);

#define BH_SUITE "kofi_bh_poll"
#define COMPAT_BH_IRQ_POLL
#define irq_poll_complete bh_poll_complete
#include "bh_kunit.c"
#undef irq_poll_complete

/* Called between the function's return and irq_poll_complete(), and after the latter. */
static void (*bh_poll_before)(struct bh_run *run), (*bh_poll_after)(struct bh_run *run);

static void bh_poll_complete(struct irq_poll *poll)
{
	struct bh_run *run = container_of(poll, struct bh_run, bh.poll);

	if (bh_poll_before)
		bh_poll_before(run);
	irq_poll_complete(poll);
	if (bh_poll_after)
		bh_poll_after(run);
}

static void bh_poll_exit(struct kunit *test)
{
	bh_poll_before = NULL;
	bh_poll_after = NULL;
}

/* irq_poll ignores this, but it isn't lost. */
static void bh_poll_before_complete(struct kunit *test)
{
	struct bh_run *run = bh_make(test, NULL);

	bh_poll_before = bh_queue_once_more;
	compat_bh_queue(&run->bh);
	bh_expect(test, run, 2);
}

/* irq_poll doesn't ignore this, so it isn't queued once more. */
static void bh_poll_after_complete(struct kunit *test)
{
	struct bh_run *run = bh_make(test, NULL);

	bh_poll_after = bh_queue_once_more;
	compat_bh_queue(&run->bh);
	bh_expect(test, run, 2);
}

/* To irq_poll, nothing runs any more, but the memory is still used. */
static void bh_poll_cancel_after_complete(struct kunit *test)
{
	struct bh_run *run = bh_make(test, NULL);

	bh_poll_after = bh_stay;
	kofi_both(test, run, bh_queue_here, bh_cancel_meanwhile);
	KUNIT_EXPECT_FALSE(test, run->vigil.early);
	bh_expect(test, run, 1);
}

static struct kunit_case bh_poll_cases[] = {
	KUNIT_CASE(bh_poll_before_complete),
	KUNIT_CASE(bh_poll_after_complete),
	KUNIT_CASE(bh_poll_cancel_after_complete),
	{}
};

static struct kunit_suite bh_poll_suite = {
	.name		= "kofi_bh_poll_complete",
	.exit		= bh_poll_exit,
	.test_cases	= bh_poll_cases,
};

kunit_test_suite(bh_poll_suite);
