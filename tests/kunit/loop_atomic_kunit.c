// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Atomic operations of the loopback provider. The arithmetic itself has its own suite. */
#include <linux/random.h>
#include <kofi/atomic.h>
#include "loop_test.h"

#define LOOP_REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ATOMICS		(FI_MSG | FI_RMA | FI_ATOMIC | FI_SOURCE)

static struct loop_pair *atomic_pair(struct kunit *test)
{
	return loop_pair(test, (struct loop_opts) { .caps = ATOMICS });
}

static void region(struct kunit *test, struct loop_pair *p, size_t off, u64 access)
{
	KUNIT_ASSERT_EQ(test, fi_mr_reg(p->domain, p->b.buf + off, LOOP_BUF - off, access, 0, 0, 0,
					&p->mr, NULL), 0);
}

/* Where the calls below go: an offset in the second endpoint's region. */
#define TO(off, type, op) \
	p->b.addr, p->mr->base_addr + (off), fi_mr_key(p->mr), type, op

static void atomic_kinds(struct kunit *test)
{
	struct loop_pair *p = atomic_pair(test);
	u64 *here = (u64 *)p->a.buf, *there = (u64 *)(p->b.buf + 8);
	unsigned int i;

	region(test, p, 8, LOOP_REMOTE);
	for (i = 0; i < 4; i++) {
		there[i] = 100 * i;
		here[i] = i + 1;	/* operands */
		here[10 + i] = i % 2 ? 100 * i : 7;	/* values to compare with */
	}
	KUNIT_ASSERT_EQ(test, fi_atomic(p->a.ep, here, 4, NULL, TO(0, FI_UINT64, FI_SUM),
					loop_ctx(1)), 0);
	loop_await_ok(test, &p->a, loop_ctx(1), FI_ATOMIC | FI_WRITE);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, there[i], 101 * i + 1ULL);
	KUNIT_ASSERT_EQ(test, fi_fetch_atomic(p->a.ep, here, 4, NULL, here + 20, NULL,
					      TO(0, FI_UINT64, FI_ATOMIC_WRITE), loop_ctx(2)), 0);
	loop_await_ok(test, &p->a, loop_ctx(2), FI_ATOMIC | FI_READ);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, here[20 + i], 101 * i + 1ULL);
		KUNIT_EXPECT_EQ(test, there[i], i + 1ULL);
		there[i] = 100 * i;
	}
	KUNIT_ASSERT_EQ(test, fi_compare_atomic(p->a.ep, here, 4, NULL, here + 10, NULL, here + 20,
						NULL, TO(0, FI_UINT64, FI_CSWAP), loop_ctx(3)), 0);
	loop_await_ok(test, &p->a, loop_ctx(3), FI_ATOMIC | FI_READ);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, here[20 + i], 100ULL * i);
		KUNIT_EXPECT_EQ(test, there[i], i % 2 ? i + 1ULL : 100ULL * i);
	}
	/* A read needs no operands. */
	KUNIT_ASSERT_EQ(test, fi_fetch_atomic(p->a.ep, NULL, 2, NULL, here + 20, NULL,
					      TO(8, FI_UINT64, FI_ATOMIC_READ), loop_ctx(4)), 0);
	loop_await_ok(test, &p->a, loop_ctx(4), FI_ATOMIC | FI_READ);
	KUNIT_EXPECT_EQ(test, here[20], there[1]);
	KUNIT_EXPECT_EQ(test, here[21], there[2]);
	loop_expect_quiet(test, &p->b);
}

/* The data of an inject is copied, and there is no completion. */
static void atomic_inject(struct kunit *test)
{
	struct loop_pair *p = atomic_pair(test);
	struct fi_atomic_attr attr;
	u16 one = 0x101;

	region(test, p, 0, LOOP_REMOTE);
	KUNIT_ASSERT_EQ(test, fi_inject_atomic(p->a.ep, &one, 1, TO(6, FI_UINT16, FI_BOR)), 0);
	one = 0;
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(*(u16 *)(p->b.buf + 6)) == 0x101));
	loop_expect_quiet(test, &p->a);
	KUNIT_EXPECT_EQ(test, fi_inject_atomic(p->a.ep, p->a.buf, 129, TO(0, FI_UINT8, FI_BOR)),
			-EMSGSIZE);
	KUNIT_EXPECT_EQ(test, fi_query_atomic(p->domain, FI_UINT8, FI_BOR, &attr, 0), 0);
	KUNIT_EXPECT_EQ(test, attr.size, (size_t)1);
	KUNIT_EXPECT_EQ(test, fi_atomic(p->a.ep, p->a.buf, attr.count, NULL,
					TO(0, FI_UINT8, FI_BOR), loop_ctx(1)), 0);
	loop_await_ok(test, &p->a, loop_ctx(1), FI_ATOMIC | FI_WRITE);
	KUNIT_EXPECT_EQ(test, fi_atomic(p->a.ep, p->a.buf, attr.count + 1, NULL,
					TO(0, FI_UINT8, FI_BOR), loop_ctx(1)), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, fi_query_atomic(p->domain, FI_UINT8, FI_MSWAP, &attr,
					      FI_COMPARE_ATOMIC), 0);
	KUNIT_EXPECT_EQ(test, fi_compare_atomic(p->a.ep, p->a.buf, attr.count + 1, NULL, p->a.buf,
						NULL, p->a.buf, NULL, TO(0, FI_UINT8, FI_MSWAP),
						NULL), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, fi_atomicvalid(p->a.ep, FI_UINT8, FI_CSWAP, &attr.count),
			-EOPNOTSUPP);
}

/* Several segments of each kind, and several pieces of memory that cross pages. */
static void atomic_pieces(struct kunit *test)
{
	struct loop_pair *p = atomic_pair(test);
	u32 *in = (u32 *)p->a.buf, *cmp = in + 200, *out = in + 400, *there = (u32 *)p->b.buf;
	const struct fi_ioc iov[3] = { { in, 10 }, { in + 10, 0 }, { in + 10, 50 } };
	const struct fi_ioc cmpv[2] = { { cmp, 59 }, { cmp + 59, 1 } };
	struct fi_ioc res[2] = { { out, 7 }, { out + 7, 53 } };
	struct fi_rma_ioc far[2];
	struct fi_msg_atomic msg = {
		.msg_iov = iov, .iov_count = 3, .addr = p->b.addr, .rma_iov = far,
		.rma_iov_count = 2, .datatype = FI_UINT32, .op = FI_CSWAP_NE,
		.context = loop_ctx(9),
	};
	unsigned int i;

	region(test, p, 4, LOOP_REMOTE);
	far[0] = (struct fi_rma_ioc) { p->mr->base_addr + 4 * 1000, 40, fi_mr_key(p->mr) };
	far[1] = (struct fi_rma_ioc) { p->mr->base_addr + 4 * 2030, 20, fi_mr_key(p->mr) };
	get_random_bytes(in, 60 * 4);
	get_random_bytes(there, 4 * 4096);
	for (i = 0; i < 60; i++)
		cmp[i] = i % 3 ? there[(i < 40 ? 1001 : 1991) + i] : 0;
	KUNIT_ASSERT_EQ(test, fi_compare_atomicmsg(p->a.ep, &msg, cmpv, NULL, 2, res, NULL, 2,
						   FI_COMPLETION), 0);
	loop_await_ok(test, &p->a, loop_ctx(9), FI_ATOMIC | FI_READ);
	for (i = 0; i < 60; i++) {
		KUNIT_EXPECT_EQ(test, there[(i < 40 ? 1001 : 1991) + i],
				i % 3 ? cmp[i] : in[i]);
		if (i % 3)
			KUNIT_EXPECT_EQ(test, out[i], cmp[i]);
	}
	/* Too many pieces, and segments of another total. */
	msg.rma_iov_count = 5;
	KUNIT_EXPECT_EQ(test, fi_compare_atomicmsg(p->a.ep, &msg, cmpv, NULL, 2, res, NULL, 2, 0),
			-EINVAL);
	msg.rma_iov_count = 2;
	KUNIT_EXPECT_EQ(test, fi_compare_atomicmsg(p->a.ep, &msg, cmpv, NULL, 1, res, NULL, 2, 0),
			-EINVAL);
	loop_expect_quiet(test, &p->a);
}

/* Requests that the target refuses, and which access each kind of operation needs. */
static const struct refusal {
	const char	*name;
	u64		access, kind, key;
	s64		off;
	u32		op;
	int		err;
} refusals[] = {
	{ "write may write", FI_REMOTE_WRITE, .op = FI_SUM },
	{ "write may not read", FI_REMOTE_READ, .op = FI_SUM, .err = EACCES },
	{ "fetch", LOOP_REMOTE, FI_FETCH_ATOMIC, .op = FI_SUM },
	{ "fetch may only write", FI_REMOTE_WRITE, FI_FETCH_ATOMIC, .op = FI_SUM, .err = EACCES },
	{ "fetch may only read", FI_REMOTE_READ, FI_FETCH_ATOMIC, .op = FI_SUM, .err = EACCES },
	{ "read", FI_REMOTE_READ, FI_FETCH_ATOMIC, .op = FI_ATOMIC_READ },
	{ "read may only write", FI_REMOTE_WRITE, FI_FETCH_ATOMIC, .op = FI_ATOMIC_READ,
	  .err = EACCES },
	{ "compare", LOOP_REMOTE, FI_COMPARE_ATOMIC, .op = FI_CSWAP },
	{ "compare may only read", FI_REMOTE_READ, FI_COMPARE_ATOMIC, .op = FI_CSWAP,
	  .err = EACCES },
	{ "key", LOOP_REMOTE, .key = 1ULL << 40, .op = FI_SUM, .err = EKEYREJECTED },
	{ "end", LOOP_REMOTE, .off = LOOP_BUF - 16, .op = FI_SUM },
	{ "beyond the end", LOOP_REMOTE, .off = LOOP_BUF - 8, .op = FI_SUM, .err = EACCES },
	{ "before the begin", LOOP_REMOTE, .off = -8, .op = FI_SUM, .err = EACCES },
};

KUNIT_ARRAY_PARAM_DESC(refusal, refusals, name);

static void atomic_refused(struct kunit *test)
{
	const struct refusal *r = test->param_value;
	struct loop_pair *p = atomic_pair(test);
	u64 *in = (u64 *)p->a.buf, *out = in + 8;
	struct loop_comp comp;
	u64 addr, key;
	ssize_t ret;

	region(test, p, 0, r->access);
	addr = p->mr->base_addr + r->off;
	key = fi_mr_key(p->mr) ^ r->key;
	in[0] = 5;
	in[1] = 6;
	memset(out, 0xa5, 16);
	if (r->kind == FI_COMPARE_ATOMIC)
		ret = fi_compare_atomic(p->a.ep, in, 2, NULL, in, NULL, out, NULL, p->b.addr, addr,
					key, FI_UINT64, r->op, loop_ctx(1));
	else if (r->kind)
		ret = fi_fetch_atomic(p->a.ep, in, 2, NULL, out, NULL, p->b.addr, addr, key,
				      FI_UINT64, r->op, loop_ctx(1));
	else
		ret = fi_atomic(p->a.ep, in, 2, NULL, p->b.addr, addr, key, FI_UINT64, r->op,
				loop_ctx(1));
	KUNIT_ASSERT_EQ(test, ret, 0);
	loop_await(test, &p->a, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, r->err);
	KUNIT_EXPECT_EQ(test, r->err ? comp.error.flags : comp.entry.flags,
			FI_ATOMIC | (r->kind ? FI_READ : FI_WRITE));
	if (r->err || !r->kind)
		KUNIT_EXPECT_NULL(test, memchr_inv(out, 0xa5, 16));
	if (r->err)
		KUNIT_EXPECT_NULL(test, memchr_inv(p->b.buf, 0, LOOP_BUF));
}

/* Neither end may lack FI_ATOMIC. */
static void atomic_without(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) { .caps = FI_MSG | FI_RMA });
	size_t count;

	region(test, p, 0, LOOP_REMOTE);
	KUNIT_EXPECT_EQ(test, fi_atomic(p->a.ep, p->a.buf, 1, NULL, TO(0, FI_UINT8, FI_SUM), NULL),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_atomicvalid(p->a.ep, FI_UINT8, FI_SUM, &count), -EOPNOTSUPP);
}

/* Counters: those of reads count fetches, those of writes the others, at both ends. */
static void atomic_events(struct kunit *test)
{
	struct loop_pair *p = loop_pair_open(test, (struct loop_opts) {
		.caps = ATOMICS | FI_RMA_EVENT,
	});
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr[3];
	unsigned int i;

	KUNIT_ASSERT_EQ(test, fi_cntr_open(p->domain, &attr, &p->cntr, NULL), 0);
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, fi_cntr_open(p->domain, &attr, &cntr[i], NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(p->a.ep, &p->cntr->fid, FI_READ), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(p->a.ep, &cntr[0]->fid, FI_WRITE), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(p->b.ep, &cntr[1]->fid, FI_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(p->b.ep, &cntr[2]->fid, FI_REMOTE_WRITE), 0);
	loop_end_enable(test, p, &p->a);
	loop_end_enable(test, p, &p->b);
	region(test, p, 0, LOOP_REMOTE);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, fi_atomic(p->a.ep, p->a.buf, 1, NULL,
						TO(0, FI_UINT8, FI_SUM), loop_ctx(1)), 0);
		loop_await_ok(test, &p->a, loop_ctx(1), FI_ATOMIC | FI_WRITE);
	}
	KUNIT_ASSERT_EQ(test, fi_fetch_atomic(p->a.ep, p->a.buf, 1, NULL, p->a.buf, NULL,
					      TO(0, FI_UINT8, FI_SUM), loop_ctx(2)), 0);
	loop_await_ok(test, &p->a, loop_ctx(2), FI_ATOMIC | FI_READ);
	KUNIT_ASSERT_EQ(test, fi_compare_atomic(p->a.ep, p->a.buf, 1, NULL, p->a.buf, NULL,
						p->a.buf, NULL, TO(0, FI_UINT8, FI_CSWAP),
						loop_ctx(3)), 0);
	loop_await_ok(test, &p->a, loop_ctx(3), FI_ATOMIC | FI_READ);
	/* An operation is counted after its completion was written. */
	KUNIT_EXPECT_TRUE(test, kofi_soon(fi_cntr_read(p->cntr) == 2));
	KUNIT_EXPECT_TRUE(test, kofi_soon(fi_cntr_read(cntr[0]) == 3));
	KUNIT_EXPECT_TRUE(test, kofi_soon(fi_cntr_read(cntr[1]) == 2));
	KUNIT_EXPECT_TRUE(test, kofi_soon(fi_cntr_read(cntr[2]) == 3));
	LOOP_CLOSE(p->a.ep);
	LOOP_CLOSE(p->b.ep);
	for (i = 0; i < 3; i++)
		LOOP_CLOSE(cntr[i]);
}

/* Both endpoints add to the same word at once, and so does the CPU. */
#define ADDS	3000

static void add(struct kofi_thread *thread)
{
	unsigned int i;

	for (i = 0; i < ADDS; i++) {
		atomic_inc(thread->arg);
		if (i % 64 == 0)
			cond_resched();
	}
}

static void atomic_sums(struct kunit *test)
{
	struct loop_pair *p = atomic_pair(test);
	struct loop_end *ends[2] = { &p->a, &p->b };
	unsigned int i, posted[2] = { }, done[2] = { };
	struct kofi_thread thread;
	struct loop_comp comp;
	u32 one = 1;

	region(test, p, 0, LOOP_REMOTE);
	memcpy(p->a.buf, &one, sizeof(one));
	kofi_thread_start(test, &thread, add, p->b.buf + 64);
	while (done[0] + done[1] < 2 * ADDS) {
		for (i = 0; i < 2; i++) {
			/* The first one's target is the second, and the other way round. */
			if (posted[i] < ADDS &&
			    !fi_atomic(ends[i]->ep, p->a.buf, 1, NULL, ends[!i]->addr,
				       p->mr->base_addr + 64, fi_mr_key(p->mr), FI_UINT32, FI_SUM,
				       NULL))
				posted[i]++;
			if (loop_read(ends[i], &comp)) {
				KUNIT_ASSERT_EQ(test, comp.error.err, 0);
				done[i]++;
			} else {
				cond_resched();
			}
		}
	}
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, *(u32 *)(p->b.buf + 64), 3U * ADDS);
}

static struct kunit_case loop_atomic_cases[] = {
	KUNIT_CASE(atomic_kinds),
	KUNIT_CASE(atomic_inject),
	KUNIT_CASE(atomic_pieces),
	KUNIT_CASE_PARAM(atomic_refused, refusal_gen_params),
	KUNIT_CASE(atomic_without),
	KUNIT_CASE(atomic_events),
	KUNIT_CASE(atomic_sums),
	{}
};

static struct kunit_suite loop_atomic_suite = {
	.name		= "kofi_loop_atomic",
	.test_cases	= loop_atomic_cases,
};

kunit_test_suite(loop_atomic_suite);

MODULE_DESCRIPTION("KUnit suite of the loopback provider's atomic operations");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
