/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Threads and softirqs for suites, and waiting for what they do. */
#ifndef KOFI_CREW_H
#define KOFI_CREW_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/wait.h>

/* Time-out of waits. It is long because a busy machine with an emulated CPU is slow. */
#define KOFI_NEVER_MS	20000
/* Time-out of busy-waiting, short enough for the watchdogs. */
#define KOFI_SPIN_MS	(KOFI_NEVER_MS / 2)
/* Minimum number of rounds of tests for races. */
#define KOFI_ROUNDS_MIN	50

/*
 * Wait for a condition. Return: false after a time-out. The condition may become false again,
 * so it isn't evaluated any more after it was true.
 */
#define kofi_soon(cond)							\
({									\
	unsigned long __end = jiffies + msecs_to_jiffies(KOFI_NEVER_MS);\
	bool __late, __true;						\
									\
	for (;;) {							\
		__late = time_after(jiffies, __end);			\
		__true = (cond);					\
		if (__true || __late)					\
			break;						\
		usleep_range(50, 100);					\
	}								\
	__true;								\
})

/**
 * struct kofi_thread - a thread of a test
 * @fn: function of the thread; SIGTERM makes its interruptible sleeps return
 * @arg: argument for @fn
 * @ret: result of @fn
 * @task: the thread
 * @up: the thread accepts signals
 * @done: @fn returned
 */
struct kofi_thread {
	void			(*fn)(struct kofi_thread *thread);
	void			*arg;
	ssize_t			ret;
	struct task_struct	*task;
	bool			up;
	struct completion	done;
};

static inline int kofi_thread_main(void *data)
{
	struct kofi_thread *thread = data;

	allow_signal(SIGTERM);
	WRITE_ONCE(thread->up, true);
	thread->fn(thread);
	complete(&thread->done);
	return 0;
}

/* @cpu: the only CPU that the thread may run on, or -1 */
static inline void kofi_thread_start_on(struct kunit *test, struct kofi_thread *thread,
					void (*fn)(struct kofi_thread *thread), void *arg, int cpu)
{
	thread->fn = fn;
	thread->arg = arg;
	thread->ret = 0;
	thread->up = false;
	init_completion(&thread->done);
	thread->task = kthread_create(kofi_thread_main, thread, "kofi-test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread->task));
	get_task_struct(thread->task);
	if (cpu >= 0)
		kthread_bind(thread->task, cpu);
	wake_up_process(thread->task);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(thread->up)));
}

static inline void kofi_thread_start(struct kunit *test,
				     struct kofi_thread *thread,
				     void (*fn)(struct kofi_thread *thread),
				     void *arg)
{
	kofi_thread_start_on(test, thread, fn, arg, -1);
}

static inline void kofi_thread_kill(struct kofi_thread *thread)
{
	send_sig(SIGTERM, thread->task, 1);
}

static inline bool kofi_thread_runs(struct kofi_thread *thread,
				    unsigned int msecs)
{
	return !wait_for_completion_timeout(&thread->done,
					    msecs_to_jiffies(msecs));
}

/* Wait until the thread has left the module's code. */
static inline void kofi_thread_join(struct kunit *test,
				    struct kofi_thread *thread)
{
	if (kofi_thread_runs(thread, KOFI_NEVER_MS)) {
		KUNIT_FAIL(test, "a thread hangs in %ps", thread->fn);
		kofi_thread_kill(thread);
	}
	kthread_stop(thread->task);
	put_task_struct(thread->task);
}

/* Return: whether the thread sleeps in wait_event() or a similar function. */
static inline bool kofi_thread_sleeps(struct kofi_thread *thread)
{
	return READ_ONCE(thread->task->__state) == TASK_UNINTERRUPTIBLE;
}

static inline bool kofi_completed(struct completion *done)
{
	return wait_for_completion_timeout(done,
					   msecs_to_jiffies(KOFI_NEVER_MS));
}

static inline unsigned int kofi_sleepers(struct wait_queue_head *wait)
{
	unsigned int count;

	spin_lock_irq(&wait->lock);
	count = list_count_nodes(&wait->head);
	spin_unlock_irq(&wait->lock);
	return count;
}

/* Return: whether at least a time has passed. Sleeps are counted in ticks, which may be late. */
static inline bool kofi_waited(unsigned long start, unsigned int msecs)
{
	return jiffies - start >= msecs_to_jiffies(msecs);
}

/*
 * Return: whether to run another round: until @msecs have passed, and at least the minimum
 * number of rounds, because on a busy machine the time may be over before the first round.
 */
static inline bool kofi_hunting(unsigned long start, unsigned int msecs,
				unsigned long rounds)
{
	return !kofi_waited(start, rounds < KOFI_ROUNDS_MIN ? KOFI_NEVER_MS :
							      msecs);
}

/* Find two CPUs, or skip the case. */
static inline void kofi_two_cpus(struct kunit *test, unsigned int cpu[2])
{
	cpu[0] = cpumask_first(cpu_online_mask);
	cpu[1] = cpumask_next(cpu[0], cpu_online_mask);
	if (cpu[1] >= nr_cpu_ids)
		kunit_skip(test, "one CPU");
}

/**
 * struct kofi_vigil - one CPU is in a function while a thread on another one waits for its end
 * @entered: completed by the function
 * @waits: the thread begins to wait
 * @waited: the thread has stopped waiting
 * @early: the thread has stopped waiting before the function ended
 */
struct kofi_vigil {
	struct completion	entered;
	bool			waits;
	bool			waited;
	bool			early;
};

/* Time for which a function stays after the thread began to wait for its end. */
#define KOFI_VIGIL_MS	30

/* In the function, in any context: stay until the thread has waited, or for a time. */
static inline void kofi_vigil_stay(struct kofi_vigil *vigil, unsigned int msecs)
{
	const ktime_t never = ktime_add_ms(ktime_get(), KOFI_SPIN_MS);
	ktime_t stop;

	complete(&vigil->entered);
	while (!READ_ONCE(vigil->waits) && ktime_before(ktime_get(), never))
		cpu_relax();
	stop = min(never, ktime_add_ms(ktime_get(), msecs));
	while (!READ_ONCE(vigil->waited) && ktime_before(ktime_get(), stop))
		cpu_relax();
	vigil->early = READ_ONCE(vigil->waited);
}

/* In the thread, around the call that waits. */
static inline void kofi_vigil_begin(struct kofi_vigil *vigil)
{
	kofi_completed(&vigil->entered);
	WRITE_ONCE(vigil->waits, true);
}

static inline void kofi_vigil_end(struct kofi_vigil *vigil)
{
	WRITE_ONCE(vigil->waited, true);
}

/* Run @here on one CPU, and @meanwhile on another one while the first keeps the vigil. */
static inline void kofi_both(struct kunit *test, void *arg,
			     void (*here)(struct kofi_thread *thread),
			     void (*meanwhile)(struct kofi_thread *thread))
{
	struct kofi_thread thread[2];
	unsigned int cpu[2];

	kofi_two_cpus(test, cpu);
	kofi_thread_start_on(test, &thread[0], meanwhile, arg, cpu[0]);
	kofi_thread_start_on(test, &thread[1], here, arg, cpu[1]);
	kofi_thread_join(test, &thread[1]);
	kofi_thread_join(test, &thread[0]);
}

/**
 * struct kofi_contexts - numbers of calls of a handler with FI_CQ_SOFTIRQ
 * @softirq: in softirqs
 * @off: in process context with softirqs off
 * @on: in other contexts, which aren't allowed
 */
struct kofi_contexts {
	atomic_t	softirq;
	atomic_t	off;
	atomic_t	on;
};

/* In the handler. */
static inline void kofi_context_note(struct kofi_contexts *contexts)
{
	if (in_serving_softirq())
		atomic_inc(&contexts->softirq);
	else
		atomic_inc(in_task() && softirq_count() ? &contexts->off : &contexts->on);
}

/* Run a tasklet in softirq context, and wait until it has run. */
static inline void kofi_in_softirq(struct tasklet_struct *tasklet,
				   void (*fn)(struct tasklet_struct *tasklet))
{
	tasklet_setup(tasklet, fn);
	tasklet_schedule(tasklet);
	tasklet_kill(tasklet);
}

#endif /* KOFI_CREW_H */
