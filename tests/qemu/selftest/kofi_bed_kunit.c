// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A KUnit suite that is broken on request, one way for each thing that must
 * turn a run of the test bed red. Loaded without parameters it is a suite like
 * any other and must pass; fail=NAME[,NAME...] breaks the cases of that name.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

static char *fail[16];
static int nfail;
module_param_array(fail, charp, &nfail, 0444);
MODULE_PARM_DESC(fail, "cases to break");

static bool broken(const char *name)
{
	int i;

	for (i = 0; i < nfail; i++)
		if (!strcmp(fail[i], name))
			return true;
	return false;
}

static DEFINE_MUTEX(bed_lock_a);
static DEFINE_MUTEX(bed_lock_b);

/* First, because the checkers below turn lockdep off when they report. */
static void bed_lock_order(struct kunit *test)
{
	struct mutex *first = broken("lock_order") ? &bed_lock_b : &bed_lock_a;
	struct mutex *second = broken("lock_order") ? &bed_lock_a : &bed_lock_b;

	mutex_lock(&bed_lock_a);
	mutex_lock(&bed_lock_b);
	mutex_unlock(&bed_lock_b);
	mutex_unlock(&bed_lock_a);

	mutex_lock(first);
	mutex_lock(second);
	mutex_unlock(second);
	mutex_unlock(first);
}

static void bed_expectation(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, broken("expectation"));
}

static void bed_skip(struct kunit *test)
{
	if (broken("skip"))
		kunit_skip(test, "on request");
}

static void bed_warn(struct kunit *test)
{
	WARN_ON(broken("warn"));
}

static void bed_atomic_sleep(struct kunit *test)
{
	static DEFINE_SPINLOCK(lock);

	spin_lock(&lock);
	if (broken("atomic_sleep"))
		might_sleep();
	spin_unlock(&lock);
}

static void bed_shift(struct kunit *test)
{
	int bits = broken("shift") ? 33 : 3;

	OPTIMIZER_HIDE_VAR(bits);
	KUNIT_EXPECT_NE(test, 1 << bits, 7);
}

static void bed_leak(struct kunit *test)
{
	void *object;
	int i;

	for (i = 0; i < 8; i++) {
		object = kmalloc(100, GFP_KERNEL);
		OPTIMIZER_HIDE_VAR(object);
		if (!broken("leak"))
			kfree(object);
	}
}

static void bed_use_after_free(struct kunit *test)
{
	char *object = kzalloc(100, GFP_KERNEL);
	char *stale = object;

	KUNIT_ASSERT_NOT_NULL(test, object);
	OPTIMIZER_HIDE_VAR(stale);
	if (broken("use_after_free"))
		kfree(object);
	KUNIT_EXPECT_EQ(test, READ_ONCE(*stale), 0);
	if (!broken("use_after_free"))
		kfree(object);
}

/* The way in which suites make each allocation of a path fail. */
static void bed_fault(struct kunit *test)
{
	void *object;

	WRITE_ONCE(current->fail_nth, 1);
	object = kmalloc(100, GFP_KERNEL);
	WRITE_ONCE(current->fail_nth, 0);
	KUNIT_EXPECT_NULL(test, object);
	kfree(object);
}

static void bed_unload(struct kunit *test)
{
	if (broken("unload"))
		__module_get(THIS_MODULE);
}

static void bed_null(struct kunit *test)
{
	int *nowhere = NULL;

	OPTIMIZER_HIDE_VAR(nowhere);
	if (broken("null"))
		KUNIT_EXPECT_EQ(test, READ_ONCE(*nowhere), 0);
}

static void bed_hang(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(never);

	if (broken("hang"))
		wait_for_completion(&never);
}

static void bed_lockup(struct kunit *test)
{
	if (!broken("lockup"))
		return;
	preempt_disable();
	for (;;)
		cpu_relax();
}

/* Without interrupts the guest's own watchdog can't run. */
static void bed_dead(struct kunit *test)
{
	if (!broken("dead"))
		return;
	local_irq_disable();
	for (;;)
		cpu_relax();
}

static struct kunit_case bed_cases[] = {
	KUNIT_CASE(bed_lock_order),
	KUNIT_CASE(bed_expectation),
	KUNIT_CASE(bed_skip),
	KUNIT_CASE(bed_warn),
	KUNIT_CASE(bed_atomic_sleep),
	KUNIT_CASE(bed_shift),
	KUNIT_CASE(bed_leak),
	KUNIT_CASE(bed_use_after_free),
	KUNIT_CASE(bed_fault),
	KUNIT_CASE(bed_unload),
	KUNIT_CASE(bed_null),
	KUNIT_CASE(bed_hang),
	KUNIT_CASE(bed_lockup),
	KUNIT_CASE(bed_dead),
	{}
};

static struct kunit_suite bed_suite = {
	.name = "kofi_bed",
	.test_cases = bed_cases,
};

kunit_test_suite(bed_suite);

MODULE_DESCRIPTION("Self-test of the kOFI test bed");
MODULE_LICENSE("Dual BSD/GPL");
