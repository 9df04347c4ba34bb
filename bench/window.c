// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Windows: a batch of operations between marks. The marks are nops that the
 * counting plugin recognizes. The time stamp counter, which counts instructions
 * under -icount, checks the plugin's total.
 */
#include <asm/tsc.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "verbs.h"

#define KB_SPINS	1000000
#define KB_COPY		65536U

/* nopl whose displacement is the kind of mark: see plugin.c. */
#define KB_MARK(what)	\
	asm volatile(".byte 0x0f, 0x1f, 0x80; .long 0x6b620000 + %c0" \
		     : : "i" (what) : "memory")

enum { KB_BEGIN = 1, KB_PAUSE, KB_RESUME, KB_END };

/**
 * struct kb_window - a window
 * @number: number of the window since the module was loaded
 * @spins: number of polls without a completion
 * @ticks: ticks of the time stamp counter during the window
 */
struct kb_window {
	u32	number;
	u32	spins;
	u64	ticks;
};

static u32 kb_windows;

static noinline void kb_begin(struct kb_window *w)
{
	KB_MARK(KB_BEGIN);
	w->ticks = -rdtsc();
}

static noinline void kb_pause(struct kb_window *w)
{
	w->ticks += rdtsc();
	KB_MARK(KB_PAUSE);
}

static noinline void kb_resume(struct kb_window *w)
{
	KB_MARK(KB_RESUME);
	w->ticks -= rdtsc();
}

static noinline void kb_end(struct kb_window *w)
{
	w->ticks += rdtsc();
	KB_MARK(KB_END);
	w->number = kb_windows++;
}

/**
 * kb_stop_counting() - leave out what follows, in a window
 * @end: the ULP; kb_count_again() is due
 *
 * Context: Process context.
 */
void kb_stop_counting(struct kb_end *end)
{
	if (end->window)
		kb_pause(end->window);
}
EXPORT_SYMBOL_NS_GPL(kb_stop_counting, KOFI_BENCH);

/**
 * kb_count_again() - undo kb_stop_counting()
 * @end: the ULP
 *
 * Context: Process context.
 */
void kb_count_again(struct kb_end *end)
{
	if (end->window)
		kb_resume(end->window);
}
EXPORT_SYMBOL_NS_GPL(kb_count_again, KOFI_BENCH);

static int kb_spin(struct kb_window *w)
{
	if (w->spins++ > KB_SPINS)
		return -ETIMEDOUT;
	kb_step();
	return 0;
}

static int kb_complete(struct kb_end *end, struct kb_window *w, u32 count)
{
	const struct kb_test *test = end->test;
	int ret = 0;

	while (!ret && READ_ONCE(end->done) < count) {
		if (test->mode == KB_SLEEPING)
			ret = end->ulp->sleep(end);
		else if (test->mode == KB_POLLED)
			ret = end->ulp->poll(end);
		if (!ret && test->mode != KB_SLEEPING &&
		    READ_ONCE(end->done) < count)
			ret = kb_spin(w);
	}
	return ret ?: end->failed ? -EIO : 0;
}

static int kb_before(struct kb_end *end, struct kb_peer *peer)
{
	const struct kb_test *test = end->test;
	struct kb_window w = { };

	end->done = 0;
	end->failed = 0;
	if (peer && (test->kind == KB_SEND || test->kind == KB_INJECT || test->apart))
		return kb_peer_recv(peer, test);
	/* Register regions before they are invalidated. */
	if (test->kind == KB_INV) {
		int ret = end->ulp->post_undo(end) ?: kb_complete(end, &w, test->batch);

		end->done = 0;
		return ret;
	}
	return 0;
}

static int kb_after(struct kb_end *end, struct kb_peer *peer)
{
	const struct kb_test *test = end->test;
	struct kb_window w = { };

	if (test->kind == KB_REG) {
		end->done = 0;
		return end->ulp->post_undo(end) ?: kb_complete(end, &w, test->batch);
	}
	/* The peer has received and sent. */
	if (peer && test->apart)
		return kb_peer_drain(peer, test) ?: kb_peer_drain(peer, test);
	if (peer && (test->kind == KB_SEND || test->kind == KB_INJECT ||
		     test->kind == KB_RECV || test->kind == KB_LATE))
		return kb_peer_drain(peer, test);
	return 0;
}

static int kb_others_turn(struct kb_end *end, struct kb_peer *peer, struct kb_window *w)
{
	int ret;

	if (!peer)
		return 0;
	kb_pause(w);
	ret = kb_peer_send(peer, end);
	kb_resume(w);
	return ret;
}

static int kb_window(struct kb_end *end, struct kb_peer *peer,
		     struct kb_window *w)
{
	int ret;

	end->window = w;
	kb_begin(w);
	ret = end->test->kind == KB_LATE ? kb_others_turn(end, peer, w) : 0;
	ret = ret ?: end->ulp->post(end);
	if (!ret && end->test->kind == KB_RECV)
		ret = kb_others_turn(end, peer, w);
	ret = ret ?: kb_complete(end, w, end->test->batch);
	kb_end(w);
	end->window = NULL;
	return ret;
}

/* The first window warms up and isn't reported. */
static int kb_run_windows(struct kb_end *end, struct kb_peer *peer)
{
	u32 i;
	int ret = 0;

	for (i = 0; i <= end->test->windows && !ret; i++) {
		struct kb_window w = { };

		/* Avoid timer ticks, grace periods and reclaim in the window. */
		msleep(20);
		ret = kb_before(end, peer) ?: kb_window(end, peer, &w) ?:
		      kb_after(end, peer);
		if (i && !ret)
			kb_printf("window %u spins %u ticks %llu\n", w.number,
				  w.spins, w.ticks);
	}
	return ret;
}

/**
 * struct kb_pair - one of the threads that run concurrently
 * @end: the ULP
 * @cpu: CPU of the thread
 * @ret: result of the thread
 * @done: completed when the thread has finished
 */
struct kb_pair {
	struct kb_end		*end;
	unsigned int		cpu;
	int			ret;
	struct completion	done;
};

/* Written by both CPUs in each window, so that the host can check that it sees that. */
static atomic_t kb_both;

static int kb_pair_main(void *arg)
{
	struct kb_pair *pair = arg;

	atomic_inc(&kb_both);
	set_user_nice(current, MAX_NICE);
	pair->ret = pair->end->ulp->pair(pair->end, pair->cpu);
	kthread_complete_and_exit(&pair->done, 0);
}

static int kb_pair_start(struct kb_pair *pair, struct kb_end *end, unsigned int cpu,
			 struct task_struct **task)
{
	pair->end = end;
	pair->cpu = cpu;
	init_completion(&pair->done);
	*task = kthread_create(kb_pair_main, pair, "kofi-bench/%u", cpu);
	if (IS_ERR(*task))
		return PTR_ERR(*task);
	kthread_bind(*task, cpu);
	return 0;
}

static int kb_pair_window(struct kb_end *end, struct kb_window *w)
{
	struct task_struct *task[KB_PAIR_CPUS] = { };
	struct kb_pair pairs[KB_PAIR_CPUS] = { };
	unsigned int cpu;
	int ret = 0;

	for (cpu = 0; cpu < KB_PAIR_CPUS && !ret; cpu++)
		ret = kb_pair_start(&pairs[cpu], end, cpu, &task[cpu]);
	if (ret) {
		for (cpu = 0; cpu < KB_PAIR_CPUS; cpu++)
			if (!IS_ERR_OR_NULL(task[cpu]))
				kthread_stop(task[cpu]);
		return ret;
	}
	kb_begin(w);
	for (cpu = 0; cpu < KB_PAIR_CPUS; cpu++)
		wake_up_process(task[cpu]);
	for (cpu = 0; cpu < KB_PAIR_CPUS; cpu++)
		wait_for_completion(&pairs[cpu].done);
	kb_end(w);
	for (cpu = 0; cpu < KB_PAIR_CPUS && !ret; cpu++)
		ret = pairs[cpu].ret;
	return ret;
}

/* Run on two CPUs. The plugin finds the cache lines that both write. */
static int kb_run_pairs(struct kb_end *end, struct kb_peer *peer)
{
	bool sends = end->test->kind == KB_SEND;
	struct kb_window w;
	int ret = 0;
	u32 i, cpu;

	if (!end->ulp->pair || !cpu_online(KB_PAIR_CPUS - 1))
		return -EOPNOTSUPP;
	for (i = 0; i <= end->test->windows && !ret; i++) {
		msleep(20);
		for (cpu = 0; cpu < KB_PAIR_CPUS && sends && !ret; cpu++)
			ret = kb_peer_recv(peer, end->test);
		ret = ret ?: kb_pair_window(end, &w);
		for (cpu = 0; cpu < KB_PAIR_CPUS && sends && !ret; cpu++)
			ret = kb_peer_drain(peer, end->test);
		if (i && !ret)
			kb_printf("pair window %u\n", w.number);
	}
	return ret;
}

static int kb_connect(struct kb_end *end, struct kb_peer *peer)
{
	struct kb_window w = { };
	int ret;

	if (!peer)
		return end->ulp->connect(end);
	ret = kb_peer_connect(peer, &end->addr) ?:
	      kb_peer_region(peer, &end->peer) ?: end->ulp->connect(end);
	if (ret || !end->ulp->packet)
		return ret;
	end->done = 0;
	return kb_peer_greet(peer, end) ?: kb_complete(end, &w, 1);
}

static int kb_run_with(const struct kb_ulp *ulp, const struct kb_test *test,
		       struct kb_peer *peer, const struct kb_addr *addr)
{
	struct kb_end *end;
	int ret;

	end = ulp->open(test);
	if (IS_ERR(end))
		return PTR_ERR(end);
	end->ulp = ulp;
	end->test = test;
	end->peer = *addr;
	ret = kb_connect(end, peer);
	if (!ret && test->mode == KB_PAIR)
		ret = peer ? kb_run_pairs(end, peer) : -EOPNOTSUPP;
	else if (!ret)
		ret = kb_run_windows(end, peer);
	ulp->close(end);
	return ret;
}

/**
 * kb_run() - measure a ULP
 * @ulp: the ULP
 * @test: the test
 *
 * Context: Process context; sleeps.
 * Return: 0, or a negative errno.
 */
int kb_run(const struct kb_ulp *ulp, const struct kb_test *test)
{
	struct kb_addr addr = { };
	struct kb_peer *peer;
	int ret;

	if (ulp->alone)
		return kb_run_with(ulp, test, NULL, &addr);
	peer = kb_peer_open(test, ulp->packet, &addr);
	if (IS_ERR(peer))
		return PTR_ERR(peer);
	ret = kb_run_with(ulp, test, peer, &addr);
	kb_peer_close(peer);
	return ret;
}

/* A loop of two instructions. */
static noinline void kb_known_loop(unsigned long rounds)
{
	asm volatile("1: dec %0; jnz 1b" : "+r" (rounds) : : "cc");
}

/* memmove() uses a loop for misaligned memory, and a string instruction otherwise. */
static int kb_validate_copies(void)
{
	static const size_t offsets[] = { 0, 8 };
	u8 *buf = kzalloc(4 * KB_COPY, GFP_KERNEL);
	unsigned long flags;
	int i;

	if (!buf)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		struct kb_window w = { };

		local_irq_save(flags);
		kb_begin(&w);
		memmove(buf + 2 * KB_COPY + offsets[i], buf, KB_COPY);
		kb_end(&w);
		local_irq_restore(flags);
		kb_printf("copy %u window %u ticks %llu\n", KB_COPY, w.number,
			  w.ticks);
	}
	kfree(buf);
	return 0;
}

/**
 * kb_validate() - run code of known length, and known copies, between marks
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kb_validate(void)
{
	static const unsigned long rounds[] = { 1000, 100000, 1000000 };
	unsigned long flags;
	int i;

	for (i = 0; i < ARRAY_SIZE(rounds); i++) {
		struct kb_window w = { };

		local_irq_save(flags);
		kb_begin(&w);
		kb_known_loop(rounds[i]);
		kb_end(&w);
		local_irq_restore(flags);
		kb_printf("loop %lu window %u ticks %llu\n", 2 * rounds[i],
			  w.number, w.ticks);
	}
	return kb_validate_copies();
}
