/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Benchmarks: what the harness (kofi_bench.ko) and those who are measured, the
 * ULPs (kofi_bench_*.ko), have to do with each other.
 *
 * A test is a number of windows. In each the ULP posts a batch of operations and
 * has them completed; the harness marks where counting begins and ends, and plays
 * the peer outside of it. So a window has one side's instructions alone, and those
 * of the device.
 */
#ifndef KOFI_BENCH_H
#define KOFI_BENCH_H

#include <linux/list.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/wait.h>

#define KB_NAME		16
#define KB_MAX_BATCH	64
#define KB_GID_LEN	16
#define KB_POLL		16	/* completions taken at a time */
#define KB_PAIR_CPUS	2
/* Packets by which a peer introduces itself: -KB_GREETINGS to -1. */
#define KB_GREETINGS	2
#define KB_HEADERS	128	/* bytes that a packet has beside the test's */

/* To learn what one takes. */
#define KB_OBJECTS	64
#define KB_ENTRIES	65536
#define KB_DEEP		512
#define KB_SHALLOW	64

enum kb_kind {
	KB_SEND,
	KB_RECV,
	KB_INJECT,
	KB_LATE,	/* receive what has come before */
	KB_WRITE,
	KB_READ,
	KB_REG,		/* register memory for peers */
	KB_INV,		/* take that back */
	KB_KINDS,
};

enum kb_mode {
	KB_POLLED,	/* the thread that posted looks for completions */
	KB_HANDLER,	/* a handler in process context takes them */
	KB_SLEEPING,	/* the thread that posted sleeps until there is one */
	KB_PAIR,	/* as polled, by a thread on each of two CPUs */
	KB_MODES,
};

/**
 * struct kb_test - what is to be measured
 * @ulp: by whom
 * @device: on which device, or "-"
 * @peer: the other side's device, or "-"
 * @kind: what it does
 * @mode: how it learns of completions
 * @size: bytes of an operation
 * @batch: operations of a window
 * @windows: how often, not counting the first, which warms up
 * @addrs: addresses that the ULP knows, besides the peer's
 * @eps: endpoints that the ULP has, besides the one in use
 */
struct kb_test {
	char		ulp[KB_NAME];
	char		device[KB_NAME];
	char		peer[KB_NAME];
	enum kb_kind	kind;
	enum kb_mode	mode;
	u32		size;
	u32		batch;
	u32		windows;
	u32		addrs;
	u32		eps;
};

/**
 * struct kb_addr - where an end is, and memory of it that its peer can reach
 * @gid: of the device
 * @qpn: number of the queue pair
 * @qkey: its key
 * @addr: address of the memory
 * @rkey: its key
 */
struct kb_addr {
	u8	gid[KB_GID_LEN];
	u32	qpn;
	u32	qkey;
	u64	addr;
	u32	rkey;
};

struct kb_op;

/**
 * struct kb_end - a ULP at work
 * @ulp: which
 * @test: what it does
 * @addr: where it is
 * @peer: the other side
 * @done: operations of this window that completed
 * @failed: and those that did with an error
 */
struct kb_end {
	const struct kb_ulp	*ulp;
	const struct kb_test	*test;
	struct kb_addr		addr;
	struct kb_addr		peer;
	u32			done;
	u32			failed;
};

/**
 * struct kb_op - an operation of a ULP
 * @done: to whom the ULP hands a completion over
 * @end: whose it is
 * @buf: its memory
 */
struct kb_op {
	void		(*done)(struct kb_op *op, int err);
	struct kb_end	*end;
	void		*buf;
};

/**
 * struct kb_ulp - who is measured
 * @list: of those that are loaded
 * @name: by which it is asked for
 * @alone: it has its peer itself
 * @open: set up an end for a test; has @addr set
 * @connect: make @peer reachable
 * @close: undo both
 * @packet: write the packet that the peer sends as its nth of a batch, if that isn't just
 *	memory; a negative one is sent before the first test, and the last such one completes
 *	an operation. Returns its length, up to KB_HEADERS more than the test's size.
 * @post: post a batch
 * @post_undo: post what undoes a batch: of KB_REG KB_INV, and vice versa
 * @poll: take completions, if there are any
 * @sleep: wait for one at least, and take it
 * @pair: post a batch and have it completed on this CPU, of KB_PAIR_CPUS, with endpoints and
 *	completion queues that no other one uses
 * @memory: measure bytes, and print them
 */
struct kb_ulp {
	struct list_head	list;
	const char		*name;
	bool			alone;
	struct kb_end *(*open)(const struct kb_test *test);
	int (*connect)(struct kb_end *end);
	void (*close)(struct kb_end *end);
	u32 (*packet)(struct kb_end *end, int i, void *buf);
	int (*post)(struct kb_end *end);
	int (*post_undo)(struct kb_end *end);
	int (*poll)(struct kb_end *end);
	int (*sleep)(struct kb_end *end);
	int (*pair)(struct kb_end *end, unsigned int cpu);
	int (*memory)(const struct kb_test *test);
};

/* main.c */
void kb_register(struct kb_ulp *ulp);
void kb_deregister(struct kb_ulp *ulp);
void kb_printf(const char *fmt, ...) __printf(1, 2);
s64 kb_memory_used(void);

/* window.c */
int kb_run(const struct kb_ulp *ulp, const struct kb_test *test);
int kb_validate(void);

/**
 * kb_step() - let others run for a while
 *
 * Context: Process context.
 */
static inline void kb_step(void)
{
	schedule();
}

#endif /* KOFI_BENCH_H */
