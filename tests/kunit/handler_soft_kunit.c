// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Handlers with FI_CQ_SOFTIRQ: they are called in softirqs, or in process context with softirqs
 * off, read a part of the entries in one call, and miss nothing. Closing waits for them.
 */
#include <linux/sched.h>
#include <linux/slab.h>
#include "cq_test.h"
#include "crew.h"

#define SOFT_HUNT_MS	300

/**
 * struct soft - a queue whose handler is called with softirqs off
 * @cq: the queue
 * @soft: a softirq that writes to the queue and calls the handler
 * @what: what the handler does after its last read, or NULL
 * @where: contexts of the calls of the handler
 * @calls: number of calls of the handler
 * @inside: number of calls in progress
 * @clashes: number of calls concurrent with another one
 * @allowed: number of calls in which control calls wouldn't be refused
 * @next: number of the next completion
 * @got: number of completions that the handler has read
 * @told: completed by each call
 * @vigil: a thread closes the queue during the first call
 * @stop: makes concurrent threads stop
 * @closed: the queue is closed
 */
struct soft {
	struct kofi_cq		cq;
	struct tasklet_struct	soft;
	void			(*what)(struct soft *soft);
	struct kofi_contexts	where;
	atomic_t		calls;
	atomic_t		inside;
	atomic_t		clashes;
	atomic_t		allowed;
	atomic_t		next;
	atomic_t		got;
	struct completion	told;
	struct kofi_vigil	vigil;
	bool			stop;
	bool			closed;
};

static void soft_call(struct fid_cq *cq, void *context)
{
	struct fi_cq_tagged_entry entry;
	struct soft *soft = context;

	kofi_context_note(&soft->where);
	atomic_add(atomic_inc_return(&soft->inside) > 1, &soft->clashes);
	atomic_add(!kofi_in_handler(), &soft->allowed);
	while (fi_cq_read(cq, &entry, 1) == 1)
		atomic_inc(&soft->got);
	if (soft->what)
		soft->what(soft);
	atomic_dec(&soft->inside);
	atomic_inc(&soft->calls);
	complete(&soft->told);
}

static void soft_write(struct soft *soft)
{
	if (!kofi_cq_reserve(&soft->cq))
		cq_write(&soft->cq, atomic_inc_return(&soft->next));
}

static void soft_poke_soft(struct tasklet_struct *tasklet)
{
	struct soft *soft = container_of(tasklet, struct soft, soft);

	soft_write(soft);
	kofi_cq_notify_worker(&soft->cq);
}

/* The handler is called in a workqueue. */
static void soft_poke(struct soft *soft)
{
	soft_write(soft);
	kofi_cq_notify(&soft->cq);
}

static void soft_close(void *arg)
{
	struct soft *soft = arg;

	if (!soft->closed)
		kofi_cq_fini(&soft->cq);
	soft->closed = true;
}

static struct soft *soft_make(struct kunit *test, void (*what)(struct soft *soft))
{
	struct soft *soft = kunit_kzalloc(test, sizeof(*soft), GFP_KERNEL);
	struct fi_cq_attr attr = {
		.flags = FI_CQ_SOFTIRQ, .handler = soft_call, .handler_context = soft,
	};

	KUNIT_ASSERT_NOT_NULL(test, soft);
	soft->what = what;
	init_completion(&soft->told);
	init_completion(&soft->vigil.entered);
	KUNIT_ASSERT_EQ(test, kofi_cq_init(&soft->cq, &attr, &cq_config), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, soft_close, soft), 0);
	return soft;
}

/* Close the queue, and check the calls of its handler. */
static void soft_end(struct kunit *test, struct soft *soft, int in_softirqs, int in_tasks)
{
	soft_close(soft);
	KUNIT_EXPECT_EQ(test, atomic_read(&soft->where.softirq), in_softirqs);
	KUNIT_EXPECT_EQ(test, atomic_read(&soft->where.off), in_tasks);
	KUNIT_EXPECT_EQ(test, atomic_read(&soft->where.on), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&soft->inside), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&soft->clashes), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&soft->allowed), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&soft->got), atomic_read(&soft->next));
}

static void soft_contexts(struct kunit *test)
{
	struct soft *soft = soft_make(test, NULL);

	soft_poke(soft);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&soft->told));
	KUNIT_EXPECT_EQ(test, atomic_read(&soft->where.softirq), 0);
	/* After the workqueue has left the handler. */
	KUNIT_EXPECT_TRUE(test, kofi_soon(!READ_ONCE(soft->cq.notifier.running)));
	kofi_in_softirq(&soft->soft, soft_poke_soft);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&soft->told));
	soft_end(test, soft, 1, 1);
}

/* --- no entry is missed --- */

static void soft_poke_once(struct soft *soft)
{
	if (!atomic_read(&soft->calls))
		soft_poke(soft);
}

/* An entry after the last read, which has armed the queue, and before the handler returns. */
static void soft_late(struct kunit *test)
{
	struct soft *soft = soft_make(test, soft_poke_once);

	kofi_in_softirq(&soft->soft, soft_poke_soft);
	KUNIT_EXPECT_TRUE(test, kofi_completed(&soft->told));
	KUNIT_EXPECT_TRUE(test, kofi_completed(&soft->told));
	KUNIT_EXPECT_EQ(test, atomic_read(&soft->got), 2);
	soft_end(test, soft, 1, 1);
}

/* When all was read, write an odd entry and call the handler in a softirq of this CPU. */
static void soft_hunt_there(struct kofi_thread *thread)
{
	struct soft *soft = thread->arg;
	int next;

	while (!READ_ONCE(soft->stop)) {
		next = atomic_read(&soft->next);
		if (!(next & 1) && atomic_read(&soft->got) == next)
			kofi_in_softirq(&soft->soft, soft_poke_soft);
		else
			cond_resched();
	}
}

/* Spin at first, so that the handler has hardly read the entry. */
static bool soft_got(struct soft *soft, int count)
{
	int i;

	for (i = 0; i < 1000 && atomic_read(&soft->got) < count; i++)
		udelay(1);
	return kofi_soon(atomic_read(&soft->got) >= count);
}

/*
 * An even entry is written as soon as the odd one was read, while the handler in the softirq may be
 * finding the queue empty and returning.
 */
static void soft_not_lost(struct kunit *test)
{
	const unsigned long start = jiffies;
	struct soft *soft = soft_make(test, NULL);
	struct kofi_thread thread;
	unsigned int cpu[2];
	bool lost = false;
	int i;

	kofi_two_cpus(test, cpu);
	kofi_thread_start_on(test, &thread, soft_hunt_there, soft, cpu[1]);
	for (i = 0; !lost && kofi_hunting(start, SOFT_HUNT_MS, i); i++) {
		lost = !soft_got(soft, 2 * i + 1);
		soft_poke(soft);
		lost |= !soft_got(soft, 2 * i + 2);
	}
	WRITE_ONCE(soft->stop, true);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_FALSE(test, lost);
	KUNIT_EXPECT_GE(test, i, KOFI_ROUNDS_MIN);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&soft->got) == atomic_read(&soft->next)));
	KUNIT_EXPECT_GT(test, atomic_read(&soft->where.softirq), 0);
	soft_end(test, soft, atomic_read(&soft->where.softirq), atomic_read(&soft->where.off));
	kunit_info(test, "%d rounds, %d calls\n", i, atomic_read(&soft->calls));
}

/* --- closing --- */

/* The first call stays, and an entry comes meanwhile, so that there must be a second call. */
static void soft_poke_and_stay(struct soft *soft)
{
	if (atomic_read(&soft->calls))
		return;
	soft_poke(soft);
	kofi_vigil_stay(&soft->vigil, KOFI_VIGIL_MS);
}

static void soft_close_meanwhile(struct kofi_thread *thread)
{
	struct soft *soft = thread->arg;

	kofi_vigil_begin(&soft->vigil);
	soft_close(soft);
	kofi_vigil_end(&soft->vigil);
}

static void soft_poke_here(struct kofi_thread *thread)
{
	struct soft *soft = thread->arg;

	kofi_in_softirq(&soft->soft, soft_poke_soft);
}

static void soft_work_here(struct kofi_thread *thread)
{
	soft_poke(thread->arg);
}

/* Closing waits for a handler that @here has called on another CPU, and for the call due then. */
static void soft_closed(struct kunit *test, void (*here)(struct kofi_thread *thread),
			int in_softirqs, int in_tasks)
{
	struct soft *soft = soft_make(test, soft_poke_and_stay);

	kofi_both(test, soft, here, soft_close_meanwhile);
	KUNIT_EXPECT_FALSE(test, soft->vigil.early);
	KUNIT_EXPECT_EQ(test, atomic_read(&soft->got), 2);
	soft_end(test, soft, in_softirqs, in_tasks);
}

static void soft_close_waits(struct kunit *test)
{
	soft_closed(test, soft_poke_here, 1, 1);
}

static void soft_close_waits_off(struct kunit *test)
{
	soft_closed(test, soft_work_here, 0, 2);
}

/* --- many entries --- */

#define MANY_SIZE	1024
#define MANY_BATCH	100

/**
 * struct soft_many - a queue whose handler is called with softirqs off, and many entries
 * @cq: the queue
 * @soft: a softirq that calls the handler
 * @work: a work item that calls it
 * @entry: entries of one read
 * @us: time that the handler takes for each entry, in microseconds
 * @next: number of the next entry to be written
 * @got: number of entries that were read
 * @wrong: number of those that weren't the next one
 * @calls: number of calls of the handler
 * @serving: number of calls in softirqs
 * @read: number of entries that each of the first calls has read
 * @most: highest number of entries of one call
 * @late: the handler writes an entry after its last read
 * @stop: makes the thread stop
 */
struct soft_many {
	struct kofi_cq			cq;
	struct tasklet_struct		soft;
	struct work_struct		work;
	struct fi_cq_tagged_entry	entry[MANY_BATCH];
	unsigned int			us;
	unsigned int			next;
	atomic_t			got;
	atomic_t			wrong;
	atomic_t			calls;
	atomic_t			serving;
	unsigned int			read[5];
	unsigned int			most;
	bool				late;
	bool				stop;
};

static void soft_many_took(struct soft_many *many, void *context)
{
	atomic_add((unsigned long)context != atomic_inc_return(&many->got), &many->wrong);
	udelay(many->us);
}

static void soft_many_call(struct fid_cq *cq, void *context)
{
	struct soft_many *many = context;
	struct fi_cq_err_entry err = { };
	unsigned int read = 0;
	ssize_t n, i;

	do {
		n = fi_cq_read(cq, many->entry, MANY_BATCH);
		for (i = 0; i < n; i++)
			soft_many_took(many, many->entry[i].op_context);
		if (n == -FI_EAVAIL) {
			n = fi_cq_readerr(cq, &err, 0);
			soft_many_took(many, err.op_context);
		}
		read += max_t(ssize_t, n, 0);
	} while (n > 0);
	if (many->late && !kofi_cq_reserve(&many->cq)) {
		many->late = false;
		cq_write(&many->cq, ++many->next);
		kofi_cq_notify(&many->cq);
	}
	atomic_add(!!in_serving_softirq(), &many->serving);
	many->most = max(many->most, read);
	if (atomic_read(&many->calls) < ARRAY_SIZE(many->read))
		many->read[atomic_read(&many->calls)] = read;
	atomic_inc(&many->calls);
}

static void soft_many_soft(struct tasklet_struct *soft)
{
	kofi_cq_notify_worker(&container_of(soft, struct soft_many, soft)->cq);
}

static void soft_many_work(struct work_struct *work)
{
	kofi_cq_notify_worker(&container_of(work, struct soft_many, work)->cq);
}

static void soft_many_fini(void *arg)
{
	struct soft_many *many = arg;

	cancel_work_sync(&many->work);
	kofi_cq_fini(&many->cq);
}

static struct soft_many *soft_many_make(struct kunit *test)
{
	static const struct kofi_cq_config config = {
		.default_size = MANY_SIZE, .max_size = MANY_SIZE,
	};
	struct soft_many *many = kunit_kzalloc(test, sizeof(*many), GFP_KERNEL);
	struct fi_cq_attr attr = {
		.flags = FI_CQ_SOFTIRQ, .format = FI_CQ_FORMAT_TAGGED,
		.handler = soft_many_call, .handler_context = many,
	};

	KUNIT_ASSERT_NOT_NULL(test, many);
	INIT_WORK(&many->work, soft_many_work);
	KUNIT_ASSERT_EQ(test, kofi_cq_init(&many->cq, &attr, &config), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, soft_many_fini, many), 0);
	return many;
}

/* Write entries, of which some are errors. */
static void soft_many_write(struct kunit *test, struct soft_many *many, unsigned int n)
{
	while (n--) {
		KUNIT_EXPECT_EQ(test, kofi_cq_reserve(&many->cq), 0);
		if (++many->next % 7)
			cq_write(&many->cq, many->next);
		else
			cq_write_err(&many->cq, many->next);
	}
}

/* Have a softirq call the handler, and wait for all calls. */
static bool soft_many_told(struct soft_many *many)
{
	kofi_in_softirq(&many->soft, soft_many_soft);
	return kofi_soon(!READ_ONCE(many->cq.notifier.running));
}

/* A softirq doesn't read on and on: the rest is left to the workqueue, in parts. */
static void soft_bound(struct kunit *test)
{
	struct soft_many *many = soft_many_make(test);

	soft_many_write(test, many, 2 * KOFI_SOFT_BUDGET + 88);
	KUNIT_EXPECT_TRUE(test, soft_many_told(many));
	KUNIT_EXPECT_EQ(test, atomic_read(&many->calls), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&many->serving), 1);
	KUNIT_EXPECT_EQ(test, many->read[0], (unsigned int)KOFI_SOFT_BUDGET);
	KUNIT_EXPECT_EQ(test, many->read[1], (unsigned int)KOFI_SOFT_BUDGET);
	KUNIT_EXPECT_EQ(test, many->read[2], 88U);
	/* If nothing is left, the queue is armed. */
	soft_many_write(test, many, KOFI_SOFT_BUDGET);
	KUNIT_EXPECT_TRUE(test, soft_many_told(many));
	KUNIT_EXPECT_EQ(test, atomic_read(&many->calls), 4);
	KUNIT_EXPECT_EQ(test, many->read[3], (unsigned int)KOFI_SOFT_BUDGET);
	soft_many_write(test, many, 1);
	KUNIT_EXPECT_TRUE(test, soft_many_told(many));
	KUNIT_EXPECT_EQ(test, atomic_read(&many->calls), 5);
	KUNIT_EXPECT_EQ(test, many->read[4], 1U);
	KUNIT_EXPECT_EQ(test, atomic_read(&many->got), (int)many->next);
	KUNIT_EXPECT_EQ(test, atomic_read(&many->wrong), 0);
}

/* The last read of a call that has read its part arms the queue as well, if nothing is left. */
static void soft_bound_late(struct kunit *test)
{
	struct soft_many *many = soft_many_make(test);

	many->late = true;
	soft_many_write(test, many, KOFI_SOFT_BUDGET);
	KUNIT_EXPECT_TRUE(test, soft_many_told(many));
	KUNIT_EXPECT_EQ(test, atomic_read(&many->calls), 2);
	KUNIT_EXPECT_EQ(test, many->read[0], (unsigned int)KOFI_SOFT_BUDGET);
	KUNIT_EXPECT_EQ(test, many->read[1], 1U);
	KUNIT_EXPECT_EQ(test, atomic_read(&many->wrong), 0);
}

static void soft_flood(struct kofi_thread *thread)
{
	struct soft_many *many = thread->arg;

	while (!READ_ONCE(many->stop)) {
		cond_resched();
		if (kofi_cq_reserve(&many->cq))
			continue;
		cq_write(&many->cq, ++many->next);
		kofi_cq_notify(&many->cq);
	}
}

/* Another CPU writes faster than the handler reads. */
static void soft_bound_flood(struct kunit *test)
{
	struct soft_many *many = soft_many_make(test);
	struct kofi_thread thread;
	unsigned int cpu[2];

	kofi_two_cpus(test, cpu);
	many->us = 2;
	soft_many_write(test, many, MANY_SIZE);
	kofi_thread_start_on(test, &thread, soft_flood, many, cpu[0]);
	queue_work_on(cpu[1], system_wq, &many->work);
	msleep(SOFT_HUNT_MS);
	WRITE_ONCE(many->stop, true);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&many->got) == many->next));
	KUNIT_EXPECT_TRUE(test, kofi_soon(!READ_ONCE(many->cq.notifier.running)));
	KUNIT_EXPECT_GT(test, many->next, (unsigned int)MANY_SIZE);
	KUNIT_EXPECT_EQ(test, many->most, (unsigned int)KOFI_SOFT_BUDGET);
	KUNIT_EXPECT_EQ(test, atomic_read(&many->wrong), 0);
	kunit_info(test, "%u entries, %d calls\n", many->next, atomic_read(&many->calls));
}

static struct kunit_case soft_cases[] = {
	KUNIT_CASE(soft_contexts),
	KUNIT_CASE(soft_late),
	KUNIT_CASE(soft_not_lost),
	KUNIT_CASE(soft_close_waits),
	KUNIT_CASE(soft_close_waits_off),
	KUNIT_CASE(soft_bound),
	KUNIT_CASE(soft_bound_late),
	KUNIT_CASE(soft_bound_flood),
	{}
};

static struct kunit_suite soft_suite = {
	.name		= "kofi_handler_soft",
	.test_cases	= soft_cases,
};

kunit_test_suite(soft_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's handlers with FI_CQ_SOFTIRQ");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
