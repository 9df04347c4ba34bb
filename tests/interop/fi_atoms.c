// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libfabric's side of the tests of atomic operations: it changes the region of kofi_far, and has
 * the kernel change its own memory. Each operation of each type is compared with what a plain
 * function of this program makes of the same elements. Uses only the public API of libfabric 1.14
 * or later.
 *
 * fi_atoms DOMAIN cells		each kind, type and operation in both directions
 * fi_atoms DOMAIN many COUNT		additions of both ends to the same elements
 * fi_atoms DOMAIN die COUNT		the same, but kill itself while some are on their way
 * fi_atoms DOMAIN wrong		what the kernel refuses, and that it goes on
 *
 * FI_FAR_DIR is the directory of kofi_far's parameters.
 */
#include <complex.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "far.h"

#define PATIENCE_S	100
#define PART		16384		/* operands, values to compare with, old values */
#define ROOM		(8 * PART)
#define THERE		(4 * PART)	/* offset of elements in the kernel's region */
#define EDGE		64		/* bytes around elements that nothing may change */

enum kind { WRITE, WRITEDC, FETCH, COMPARE, KINDS };

/* Names of the kernel's operations, too. */
static const char * const kinds[] = { "atomic", "atomicdc", "fetch", "compare" };

static unsigned long base, key;	/* of the kernel's region */
static unsigned long kernels_most;	/* bytes in an atomic operation of the kernel */
static unsigned long posted, done;

/* --- the model --- */

static const size_t sizes[] = {
	[FI_INT8] = 1, [FI_UINT8] = 1, [FI_INT16] = 2, [FI_UINT16] = 2, [FI_INT32] = 4,
	[FI_UINT32] = 4, [FI_INT64] = 8, [FI_UINT64] = 8, [FI_FLOAT] = 4, [FI_DOUBLE] = 8,
	[FI_FLOAT_COMPLEX] = 8, [FI_DOUBLE_COMPLEX] = 16,
};

#define TYPES	(FI_DOUBLE_COMPLEX + 1)
#define MODELS	(FI_MSWAP + 1)

/* New values of an element with @a, from the operand @b and the value @c to compare with. */
#define ANY_VALUE (op == FI_SUM ? a + b : op == FI_PROD ? a * b :			\
	op == FI_LOR ? a != 0 || b != 0 : op == FI_LAND ? a != 0 && b != 0 :		\
	op == FI_LXOR ? (a != 0) != (b != 0) : op == FI_ATOMIC_WRITE ? b :		\
	op == FI_CSWAP ? (c == a ? b : a) : op == FI_CSWAP_NE ? (c != a ? b : a) : a)
#define REAL_VALUE (op == FI_MIN ? (b < a ? b : a) : op == FI_MAX ? (b > a ? b : a) :	\
	op == FI_CSWAP_LE ? (c <= a ? b : a) : op == FI_CSWAP_LT ? (c < a ? b : a) :	\
	op == FI_CSWAP_GE ? (c >= a ? b : a) : op == FI_CSWAP_GT ? (c > a ? b : a) : ANY_VALUE)
#define INTEGER_VALUE (op == FI_BOR ? a | b : op == FI_BAND ? a & b : op == FI_BXOR ? a ^ b : \
	op == FI_MSWAP ? (b & c) | (a & ~c) : REAL_VALUE)

#define MODEL(_type, _name, _value)						\
static void _name(int op, void *at, const void *operand, const void *comparand)	\
{										\
	_type a, b, c;								\
										\
	memcpy(&a, at, sizeof(a));						\
	memcpy(&b, operand, sizeof(b));						\
	memcpy(&c, comparand, sizeof(c));					\
	a = _value;								\
	memcpy(at, &a, sizeof(a));						\
}

MODEL(int8_t, model_int8, INTEGER_VALUE)
MODEL(uint8_t, model_uint8, INTEGER_VALUE)
MODEL(int16_t, model_int16, INTEGER_VALUE)
MODEL(uint16_t, model_uint16, INTEGER_VALUE)
MODEL(int32_t, model_int32, INTEGER_VALUE)
MODEL(uint32_t, model_uint32, INTEGER_VALUE)
MODEL(long, model_int64, INTEGER_VALUE)
MODEL(unsigned long, model_uint64, INTEGER_VALUE)
MODEL(float, model_float, REAL_VALUE)
MODEL(double, model_double, REAL_VALUE)
MODEL(float complex, model_float_complex, ANY_VALUE)
MODEL(double complex, model_double_complex, ANY_VALUE)

static void (* const models[TYPES])(int op, void *at, const void *operand,
				    const void *comparand) = {
	[FI_INT8] = model_int8, [FI_UINT8] = model_uint8, [FI_INT16] = model_int16,
	[FI_UINT16] = model_uint16, [FI_INT32] = model_int32, [FI_UINT32] = model_uint32,
	[FI_INT64] = model_int64, [FI_UINT64] = model_uint64, [FI_FLOAT] = model_float,
	[FI_DOUBLE] = model_double, [FI_FLOAT_COMPLEX] = model_float_complex,
	[FI_DOUBLE_COMPLEX] = model_double_complex,
};

/* Only integers have bits, and complex numbers have no order and at most 8 bytes. */
static bool exists(int type, int op)
{
	if (type < FI_FLOAT)
		return true;
	if (type == FI_DOUBLE_COMPLEX)
		return false;
	if (op == FI_BOR || op == FI_BAND || op == FI_BXOR || op == FI_MSWAP)
		return false;
	return type < FI_FLOAT_COMPLEX ||
	       !(op == FI_MIN || op == FI_MAX || (op >= FI_CSWAP_LE && op <= FI_CSWAP_GT));
}

/* Return: whether libfabric documents that calls of a kind have an operation. */
static bool has(enum kind kind, int op)
{
	if (op == FI_ATOMIC_READ)
		return kind == FETCH;
	return (op >= FI_CSWAP) == (kind == COMPARE);
}

/* Store a small number, of which all results are exact. */
static void number(int type, void *at, int n)
{
	const double parts[2] = { n, n / 3 };
	const float halves[2] = { (float)n, (float)(n / 3) };
	const long whole = n;

	if (type == FI_DOUBLE || type == FI_DOUBLE_COMPLEX)
		memcpy(at, parts, sizes[type]);
	else if (type == FI_FLOAT || type == FI_FLOAT_COMPLEX)
		memcpy(at, halves, sizes[type]);
	else
		memcpy(at, &whole, sizes[type]);
}

static void numbers(int type, unsigned char *at, size_t count, unsigned int seed)
{
	size_t i;

	/* The sequences of different seeds meet now and then. */
	for (i = 0; i < count; i++)
		number(type, at + i * sizes[type], (int)((i * (seed % 3 + 1) + seed) % 11) - 5);
}

/* --- progress --- */

static void progress(void)
{
	struct fi_cq_data_entry entry[8];
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_read(cq, entry, 8);

	if (ret > 0)
		done += (unsigned long)ret;
	if (ret != -FI_EAVAIL)
		return;
	fi_cq_readerr(cq, &err, 0);
	fprintf(stderr, "completion in error: %s (%d)\n", fi_strerror(err.err), err.prov_errno);
	exit(1);
}

#define WAIT(what, cond) do {						\
	time_t wait_until = time(NULL) + PATIENCE_S;			\
	while (!(cond)) {						\
		progress();						\
		if (time(NULL) > wait_until)				\
			must(what, -FI_ETIMEDOUT);			\
	}								\
} while (0)

#define POST(what, call) do {						\
	long post_ret;							\
									\
	WAIT(what, (post_ret = (call)) != -FI_EAGAIN);			\
	must(what, post_ret);						\
	posted++;							\
} while (0)

/* --- operations --- */

/* Copy between the same offset of this end's memory and the kernel's. */
static void copy(bool to_kernel, size_t at, size_t len)
{
	struct iovec iov = { buf + at, len };
	struct fi_rma_iov rma = { base + at, len, key };
	void *desc = fi_mr_desc(mr);
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = kernel, .rma_iov = &rma,
		.rma_iov_count = 1,
	};

	if (to_kernel)
		POST("write", fi_writemsg(ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	else
		POST("read", fi_readmsg(ep, &msg, FI_COMPLETION));
	WAIT("copy", done == posted);
}

static void post(enum kind kind, int type, int op, size_t at, size_t count)
{
	struct fi_ioc ioc = { buf, count }, cmp = { buf + PART, count };
	struct fi_ioc old = { buf + 2 * PART, count };
	struct fi_rma_ioc rma = { base + at, count, key };
	void *desc = fi_mr_desc(mr);
	const struct fi_msg_atomic msg = {
		.msg_iov = &ioc, .desc = &desc, .iov_count = 1, .addr = kernel, .rma_iov = &rma,
		.rma_iov_count = 1, .datatype = type, .op = op,
	};
	const unsigned long flags = FI_COMPLETION | (kind == WRITEDC ? FI_DELIVERY_COMPLETE : 0);

	if (kind == FETCH)
		POST("fetch", fi_fetch_atomicmsg(ep, &msg, &old, &desc, 1, flags));
	else if (kind == COMPARE)
		POST("compare", fi_compare_atomicmsg(ep, &msg, &cmp, &desc, 1, &old, &desc, 1,
						     flags));
	else
		POST("atomic", fi_atomicmsg(ep, &msg, flags));
}

static void begin_there(const char *what, int type, int op, size_t at, size_t count)
{
	char command[200];

	snprintf(command, sizeof(command), "%s 0 %zu %lu %lu %d %d", what, count, named(buf + at),
		 fi_mr_key(mr), type, op);
	ask_kernel(command);
}

/* Have the kernel carry out an operation on this end's memory. Return: 0 or a positive errno. */
static int there(const char *what, int type, int op, size_t at, size_t count)
{
	int ret = 0;

	begin_there(what, type, op, at, count);
	WAIT(what, answered(&ret));
	return ret;
}

/* Return: the number of elements that libfabric allows; 0 if it hasn't got the operation. */
static size_t most(enum kind kind, int type, int op)
{
	size_t count = 0;
	int ret;

	if (kind == FETCH)
		ret = fi_fetch_atomicvalid(ep, type, op, &count);
	else if (kind == COMPARE)
		ret = fi_compare_atomicvalid(ep, type, op, &count);
	else
		ret = fi_atomicvalid(ep, type, op, &count);
	return ret ? 0 : count;
}

/* --- tests --- */

static void compare(enum kind kind, int type, int op, const char *who, const void *a, const void *b,
		    size_t len)
{
	if (!memcmp(a, b, len))
		return;
	fprintf(stderr, "%s: %s of type %d, operation %d, differs\n", who, kinds[kind], type, op);
	exit(1);
}

/* An operation of this end or the kernel, on @count elements at @at. */
static void cell(bool kernels, enum kind kind, int type, int op, size_t at, size_t count)
{
	static unsigned char want[PART], old[PART];
	const size_t len = count * sizes[type], all = len + 2 * EDGE;
	static unsigned int seed;
	size_t i;

	/* One that changes nothing couldn't be seen to arrive. */
	do {
		numbers(type, buf, count, ++seed);
		numbers(type, buf + PART, count, seed + 1);
		memset(buf + 2 * PART, 0x6b, PART);
		memset(buf + at - EDGE, 0x6b, all);
		numbers(type, buf + at, count, seed + 2);
		memcpy(old, buf + at, len);
		memcpy(want, buf + at - EDGE, all);
		for (i = 0; i < len; i += sizes[type])
			models[type](op, want + EDGE + i, buf + i, buf + PART + i);
	} while (kind < FETCH && !memcmp(want + EDGE, old, len));
	if (kernels) {
		copy(true, 0, 2 * PART);
		must("the kernel's operation", -there(kinds[kind], type, op, at, count));
		if (kind >= FETCH)
			copy(false, 2 * PART, len);
		else
			WAIT("its arrival", !memcmp(buf + at - EDGE, want, all));
	} else {
		copy(true, at - EDGE, all);
		post(kind, type, op, at, count);
		WAIT(kinds[kind], done == posted);
		/* A read may overtake one whose delivery wasn't waited for. */
		WAIT("its arrival", (copy(false, at - EDGE, all),
				     kind != WRITE || !memcmp(buf + at - EDGE, want, all)));
	}
	compare(kind, type, op, kernels ? "kernel" : "libfabric", buf + at - EDGE, want, all);
	if (kind >= FETCH)
		compare(kind, type, op, kernels ? "kernel, old" : "libfabric, old", buf + 2 * PART,
			old, len);
}

/* On a few elements, with the end of a page between them, and on as many as possible. */
static void both(enum kind kind, int type, int op, size_t count)
{
	const size_t theirs = kernels_most / sizes[type] / (kind == COMPARE ? 2 : 1);
	const bool all = op == FI_SUM || op == FI_CSWAP || op == FI_ATOMIC_READ;

	cell(false, kind, type, op, THERE + 4096 - sizes[type], 3);
	cell(true, kind, type, op, THERE + 4096 - sizes[type], 3);
	if (!all)
		return;
	cell(false, kind, type, op, THERE + 1024, count);
	cell(true, kind, type, op, THERE + 1024, theirs);
}

static void cells(void)
{
	unsigned int tried = 0, refused = 0;
	int type, op;
	enum kind kind;
	size_t count;

	for (type = 0; type < TYPES; type++)
		for (op = 0; op < MODELS; op++)
			for (kind = 0; kind < KINDS; kind++) {
				const bool wanted = has(kind, op) && exists(type, op);

				count = most(kind, type, op);
				if (!count != !wanted) {
					fprintf(stderr, "libfabric has %zu of %d, %d, %s\n", count,
						type, op, kinds[kind]);
					exit(1);
				}
				if (!wanted) {
					if (there(kinds[kind], type, op, THERE, 1) != EOPNOTSUPP)
						must("refusal", -FI_EINVAL);
					refused++;
					continue;
				}
				both(kind, type, op, count);
				tried++;
			}
	printf("same: %u operations, and %u that neither has\n", tried, refused);
}

/* Both ends add to each other's elements, of which each addition counts. */
static void many(unsigned int count, bool die)
{
	unsigned long *here = (unsigned long *)(buf + THERE), one = 1;
	unsigned int i, kernels = 0;
	bool asked = false;
	int ret = 0;

	memset(buf, 0, ROOM);
	memcpy(buf, &one, sizeof(one));
	copy(true, 0, ROOM);
	for (i = 0; i < count; i++) {
		post(i % 3 ? FETCH : WRITE, FI_UINT64, FI_SUM, THERE, 1);
		progress();
		if (asked && !answered(&ret))
			continue;
		must("the kernel's addition", -ret);
		kernels += asked;
		begin_there(kernels % 2 ? "fetch" : "atomicdc", FI_UINT64, FI_SUM, THERE, 1);
		asked = true;
	}
	if (die)
		raise(SIGKILL);
	WAIT("many", done == posted);
	WAIT("the kernel's last", answered(&ret));
	kernels++;
	if (*here != kernels) {
		fprintf(stderr, "%lu is here, not %u\n", (unsigned long)*here, kernels);
		exit(1);
	}
	WAIT("the sum", (copy(false, THERE, 8), *here == count));
	/* Nothing comes twice. */
	sleep(1);
	copy(false, THERE, 8);
	if (*here != count)
		must("the sum, later", -FI_EOTHER);
	printf("same: %u additions here, %u by the kernel\n", count, kernels);
}

/* Requests that the kernel drops; those without an answer complete here all the same. */
static void wrong(void)
{
	unsigned long *here = (unsigned long *)(buf + THERE);

	memset(buf, 0, ROOM);
	copy(true, 0, ROOM);
	number(FI_UINT64, buf, 1);
	if (most(WRITE, FI_LONG_DOUBLE, FI_SUM)) {
		post(WRITE, FI_LONG_DOUBLE, FI_SUM, THERE, 1);
		printf("long double was sent\n");
	}
	post(WRITE, FI_UINT64, FI_SUM, THERE + 4, 1);
	key ^= 1UL << 22;
	post(WRITE, FI_UINT64, FI_SUM, THERE, 1);
	key ^= 1UL << 22;
	WAIT("those that are refused", done == posted);
	/* It has its turn after those. */
	post(FETCH, FI_UINT64, FI_SUM, THERE, 1);
	WAIT("the next", done == posted);
	copy(false, THERE, 16);
	if (here[0] != 1 || here[1])
		must("what was refused", -FI_EOTHER);
	printf("same: nothing was changed\n");
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: fi_atoms DOMAIN WHAT ..., see the source\n");
		return 2;
	}
	start_server();
	open_all(argv[1], (struct fi_cq_attr) { .format = FI_CQ_FORMAT_DATA },
		 FI_RMA | FI_ATOMIC, FI_MR_LOCAL, ROOM, ROOM);
	if (sscanf(introduce_far(), "%lu %lu %lu", &base, &key, &kernels_most) != 3)
		must("region", -FI_EINVAL);
	if (!strcmp(argv[2], "cells"))
		cells();
	else if ((!strcmp(argv[2], "many") || !strcmp(argv[2], "die")) && argc == 4)
		many((unsigned int)strtoul(argv[3], NULL, 0), *argv[2] == 'd');
	else if (!strcmp(argv[2], "wrong"))
		wrong();
	else
		must("WHAT", -FI_EINVAL);
	close_all();
	return 0;
}
