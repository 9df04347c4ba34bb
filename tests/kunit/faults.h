/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Allocations that fail one by one, for suites in a kernel with CONFIG_FAILSLAB.
 *
 * current->fail_nth counts more than the code's own allocations: what slab,
 * kmemleak and others take beside them, now and then. To be sure that each
 * kmalloc() failed once, a tracepoint counts those, and starts the countdown
 * behind the one before. A sweep over all that is counted follows.
 */
#ifndef KOFI_FAULTS_H
#define KOFI_FAULTS_H

#include <kunit/test.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <trace/events/kmem.h>

/* More allocations than any call makes, so that a mistake here ends. */
#define FAULTS_MAX	300
/* Other allocations that may come between two of kmalloc(). */
#define FAULTS_BETWEEN	24

/**
 * struct kofi_faults - which allocation shall fail
 * @task: whose allocations are counted, NULL for nobody's
 * @paused: and will be again
 * @after: so many calls of kmalloc() succeed before the countdown begins
 * @nth: where it begins
 * @seen: calls of kmalloc()
 * @failed: which of them failed, the last of several
 * @ptr: what the last one returned
 * @size: and was asked for
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
	/* A large one is traced twice; a small one may get what was just freed. */
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

/* From here on, after so many calls of kmalloc(), the nth allocation fails. */
static inline void faults_arm(unsigned int after, unsigned int nth)
{
	faults = (struct kofi_faults){ .after = after, .nth = nth };
	WRITE_ONCE(current->fail_nth, after ? 0 : nth);
	WRITE_ONCE(faults.task, current);
}

/* Return: whether one failed. */
static inline bool faults_disarm(void)
{
	bool injected;

	WRITE_ONCE(faults.task, NULL);
	injected = faults.nth && faults.seen >= faults.after &&
		   !READ_ONCE(current->fail_nth);
	WRITE_ONCE(current->fail_nth, 0);
	return injected;
}

/* What comes in between isn't counted and doesn't fail. */
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
