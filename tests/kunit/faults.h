/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Make allocations fail one by one, for suites in a kernel with CONFIG_FAILSLAB.
 *
 * current->fail_nth also counts allocations that slab, kmemleak and others make now and then.
 * So that each kmalloc() of the code fails once, a tracepoint counts the calls of kmalloc(), and
 * starts the countdown after the call before. Then each of the allocations that fail_nth counts
 * fails once.
 */
#ifndef KOFI_FAULTS_H
#define KOFI_FAULTS_H

#include <kunit/test.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <trace/events/kmem.h>

/* More than the allocations of any call, to limit the loops. */
#define FAULTS_MAX	300
/* Maximum number of other allocations between two calls of kmalloc(). */
#define FAULTS_BETWEEN	24

/**
 * struct kofi_faults - which allocation fails
 * @task: task whose allocations are counted, or NULL
 * @paused: task whose allocations aren't counted during a pause
 * @after: number of calls of kmalloc() before the countdown begins
 * @nth: start value of the countdown
 * @seen: number of calls of kmalloc() so far
 * @failed: number of the last call of kmalloc() that failed
 * @ptr: return value of the last call
 * @size: size of the last call
 */
static struct kofi_faults {
	struct task_struct	*task;
	struct task_struct	*paused;
	unsigned int		after;
	unsigned int		nth;
	unsigned int		seen;
	unsigned int		failed;
	const void		*ptr;
	size_t			size;
} faults;

static inline void faults_see(void *data, unsigned long call_site,
			      const void *ptr, size_t bytes_req,
			      size_t bytes_alloc, gfp_t gfp_flags, int node)
{
	if (READ_ONCE(faults.task) != current || !in_task())
		return;
	/* A large allocation is traced twice; a small one may reuse memory just freed. */
	if (faults.seen && bytes_req > KMALLOC_MAX_CACHE_SIZE &&
	    ptr == faults.ptr && bytes_req == faults.size)
		return;
	faults.ptr = ptr;
	faults.size = bytes_req;
	faults.seen++;
	if (!ptr)
		faults.failed = faults.seen;
	if (faults.seen == faults.after)
		WRITE_ONCE(current->fail_nth, faults.nth);
}

/* After @after calls of kmalloc(), make the nth allocation fail. */
static inline void faults_arm(unsigned int after, unsigned int nth)
{
	faults = (struct kofi_faults){ .after = after, .nth = nth };
	WRITE_ONCE(current->fail_nth, after ? 0 : nth);
	WRITE_ONCE(faults.task, current);
}

/* Stop failing allocations. Return: whether an allocation failed. */
static inline bool faults_disarm(void)
{
	bool injected;

	WRITE_ONCE(faults.task, NULL);
	injected = faults.nth && faults.seen >= faults.after &&
		   !READ_ONCE(current->fail_nth);
	WRITE_ONCE(current->fail_nth, 0);
	return injected;
}

/* Allocations during a pause aren't counted and don't fail. */
static inline unsigned int faults_pause(void)
{
	unsigned int nth = READ_ONCE(current->fail_nth);

	faults.paused = faults.task;
	WRITE_ONCE(faults.task, NULL);
	WRITE_ONCE(current->fail_nth, 0);
	return nth;
}

static inline void faults_resume(unsigned int nth)
{
	WRITE_ONCE(current->fail_nth, nth);
	WRITE_ONCE(faults.task, faults.paused);
}

/* For a suite's suite_init and suite_exit. */
static inline int faults_init(struct kunit_suite *suite)
{
	return register_trace_kmalloc(faults_see, NULL);
}

static inline void faults_exit(struct kunit_suite *suite)
{
	unregister_trace_kmalloc(faults_see, NULL);
	tracepoint_synchronize_unregister();
}

#endif /* KOFI_FAULTS_H */
