/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Benchmarks: interface between the harness (kofi_bench.ko) and the measured ULPs
 * (kofi_bench_*.ko).
 *
 * A test is a number of windows. In each window the ULP posts a batch of operations and
 * completes them. The harness marks the begin and the end of counting, and acts as the
 * peer outside of windows. So a window has only the instructions of one side and of the
 * device.
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
#define KB_POLL		16	/* completions per poll */
#define KB_PAIR_CPUS	2
/* Packets by which a peer introduces itself: -KB_GREETINGS to -1. */
#define KB_GREETINGS	2
#define KB_HEADERS	128	/* maximum size of a packet's headers */

/* Numbers of objects for measuring the memory of one. */
#define KB_OBJECTS	64
#define KB_ENTRIES	65536
#define KB_DEEP		512
#define KB_SHALLOW	64

enum kb_kind {
	KB_SEND,
	KB_RECV,
	KB_INJECT,
	KB_LATE,	/* receive messages that have arrived before */
	KB_WRITE,
	KB_READ,
	KB_FETCH,	/* add to words of 64 bits, and get the old values */
	KB_REG,		/* register memory for peers */
	KB_INV,		/* invalidate registrations */
	KB_KINDS,
};

enum kb_mode {
	KB_POLLED,	/* the posting thread polls for completions */
	KB_HANDLER,	/* a handler in process context reads completions */
	KB_SOFTIRQ,	/* a handler in softirq context reads completions */
	KB_SLEEPING,	/* the posting thread sleeps until a completion */
	KB_PAIR,	/* as KB_POLLED, with a thread on each of two CPUs */
	KB_MODES,
};

/**
 * struct kb_test - a test
 * @ulp: name of the ULP
 * @device: name of the ULP's device, or "-"
 * @peer: name of the peer's device, or "-"
 * @kind: kind of operation
 * @msg: use calls with a message of one bio_vec (fi_sendmsg() and so on); of kOFI alone
 * @own: regions belong to the endpoint, whose queue registers them; of kOFI alone
 * @apart: the endpoint has a completion queue for each direction, that for sends without handler.
 *	With each receive a message is sent; of kOFI alone
 * @scattered: regions are lists of single pages, none of which follows the page before
 * @mode: how the ULP gets completions
 * @size: size of an operation in bytes
 * @batch: number of operations per window
 * @windows: number of windows, without the first, which warms up
 * @addrs: number of addresses that the ULP knows, besides the peer's
 * @eps: number of endpoints of the ULP, besides the one in use
 */
struct kb_test {
	char		ulp[KB_NAME];
	char		device[KB_NAME];
	char		peer[KB_NAME];
	enum kb_kind	kind;
	bool		msg;
	bool		own;
	bool		apart;
	bool		scattered;
	enum kb_mode	mode;
	u32		size;
	u32		batch;
	u32		windows;
	u32		addrs;
	u32		eps;
};

/**
 * struct kb_addr - address of an end, and memory that its peer can access
 * @gid: GID of the device
 * @qpn: number of the queue pair
 * @qkey: Q_Key of the queue pair
 * @addr: address of the memory
 * @rkey: key of the memory
 */
struct kb_addr {
	u8	gid[KB_GID_LEN];
	u32	qpn;
	u32	qkey;
	u64	addr;
	u32	rkey;
};

struct kb_op;
struct kb_window;

/**
 * struct kb_end - a ULP that runs a test
 * @ulp: the ULP
 * @test: the test
 * @addr: address of the ULP
 * @peer: address of the peer
 * @done: number of operations of this window that completed
 * @failed: number of operations of this window that failed
 * @window: the window that is being counted, or NULL
 */
struct kb_end {
	const struct kb_ulp	*ulp;
	const struct kb_test	*test;
	struct kb_addr		addr;
	struct kb_addr		peer;
	u32			done;
	u32			failed;
	struct kb_window	*window;
};

/**
 * struct kb_op - an operation of a ULP
 * @done: function that the ULP calls for a completion
 * @end: the ULP
 * @buf: memory of the operation
 */
struct kb_op {
	void		(*done)(struct kb_op *op, int err);
	struct kb_end	*end;
	void		*buf;
};

/**
 * struct kb_ulp - a measured ULP
 * @list: in the list of registered ULPs
 * @name: name of the ULP
 * @alone: the ULP brings its own peer
 * @max_batch: number of operations that a batch can have, or 0 for KB_MAX_BATCH
 * @open: set up an end for a test, and set its address
 * @connect: make the peer reachable
 * @close: undo @open and @connect
 * @packet: write the packet that the peer sends as its nth of a batch, if that isn't just
 *	memory; a negative one is sent before the first test, and the last such one completes
 *	an operation. Returns its length, up to KB_HEADERS more than the test's size.
 * @post: post a batch
 * @post_undo: post operations that undo a batch: KB_INV for KB_REG, and vice versa
 * @poll: read completions, if there are any
 * @sleep: wait for at least one completion, and read it
 * @pair: post and complete a batch on this CPU, of KB_PAIR_CPUS, with endpoints and
 *	completion queues that no other CPU uses
 * @memory: measure memory, and print it
 */
struct kb_ulp {
	struct list_head	list;
	const char		*name;
	bool			alone;
	u32			max_batch;
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
void kb_stop_counting(struct kb_end *end);
void kb_count_again(struct kb_end *end);

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
