// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Arithmetic of atomic operations. Each type and operation is compared with a plain model, for
 * integers with 128 bits, and for floating point with small numbers, whose results are exact.
 * Floating point itself is out of reach for this file: it makes and reads numbers bit by bit.
 */
#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <kofi/arith.h>
#ifdef CONFIG_ARCH_HAS_KERNEL_FPU_SUPPORT
#include <linux/fpu.h>
#endif
#include "crew.h"

/* --- types --- */

static const struct type {
	const char	*name;
	u32		type;
	u8		size;
	bool		is_signed;
	u8		mantissa;	/* bits of a part's mantissa; 0 for integers */
	u8		parts;		/* 2 for complex numbers */
} types[] = {
	{ "INT8",	FI_INT8,	1,	true },
	{ "UINT8",	FI_UINT8,	1,	false },
	{ "INT16",	FI_INT16,	2,	true },
	{ "UINT16",	FI_UINT16,	2,	false },
	{ "INT32",	FI_INT32,	4,	true },
	{ "UINT32",	FI_UINT32,	4,	false },
	{ "INT64",	FI_INT64,	8,	true },
	{ "UINT64",	FI_UINT64,	8,	false },
	{ "INT128",	FI_INT128,	16,	true },
	{ "UINT128",	FI_UINT128,	16,	false },
	{ "FLOAT",	FI_FLOAT,	4,	true,	23,	1 },
	{ "DOUBLE",	FI_DOUBLE,	8,	true,	52,	1 },
	{ "FLOAT_COMPLEX",	FI_FLOAT_COMPLEX,	8,	true,	23,	2 },
	{ "DOUBLE_COMPLEX",	FI_DOUBLE_COMPLEX,	16,	true,	52,	2 },
};

KUNIT_ARRAY_PARAM_DESC(type, types, name);

static const char *const op_names[FI_ATOMIC_OP_LAST] = {
	"MIN", "MAX", "SUM", "PROD", "LOR", "LAND", "BOR", "BAND", "LXOR", "BXOR", "READ", "WRITE",
	"CSWAP", "CSWAP_NE", "CSWAP_LE", "CSWAP_LT", "CSWAP_GE", "CSWAP_GT", "MSWAP",
};

static bool has_fp(void)
{
	return kofi_arith_valid(KOFI_ARITH_FETCH, FI_FLOAT, FI_SUM);
}

/* --- the model --- */

/* A number: an integer, or the parts of a floating-point number that is integral. */
struct num {
	__int128_t re, im;
};

static bool truth(struct num x)
{
	return x.re || x.im;
}

static bool same(struct num x, struct num y)
{
	return x.re == y.re && x.im == y.im;
}

/* Return: whether @x is less than @y, as numbers of the type. */
static bool less(const struct type *t, __int128_t x, __int128_t y)
{
	return t->is_signed ? x < y : (__uint128_t)x < (__uint128_t)y;
}

static struct num model(const struct type *t, u32 op, struct num a, struct num b, struct num c)
{
	const struct num yes = { 1, 0 }, no = { 0, 0 };

	switch (op) {
	case FI_MIN:
		return less(t, b.re, a.re) ? b : a;
	case FI_MAX:
		return less(t, a.re, b.re) ? b : a;
	case FI_SUM:
		return (struct num) { a.re + b.re, a.im + b.im };
	case FI_PROD:
		return (struct num) { a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
	case FI_LOR:
		return truth(a) || truth(b) ? yes : no;
	case FI_LAND:
		return truth(a) && truth(b) ? yes : no;
	case FI_LXOR:
		return truth(a) != truth(b) ? yes : no;
	case FI_BOR:
		return (struct num) { a.re | b.re, 0 };
	case FI_BAND:
		return (struct num) { a.re & b.re, 0 };
	case FI_BXOR:
		return (struct num) { a.re ^ b.re, 0 };
	case FI_ATOMIC_READ:
		return a;
	case FI_ATOMIC_WRITE:
		return b;
	case FI_CSWAP:
		return same(c, a) ? b : a;
	case FI_CSWAP_NE:
		return same(c, a) ? a : b;
	case FI_CSWAP_LE:
		return less(t, a.re, c.re) ? a : b;
	case FI_CSWAP_LT:
		return less(t, c.re, a.re) ? b : a;
	case FI_CSWAP_GE:
		return less(t, c.re, a.re) ? a : b;
	case FI_CSWAP_GT:
		return less(t, a.re, c.re) ? b : a;
	default: /* FI_MSWAP */
		return (struct num) { (b.re & c.re) | (a.re & ~c.re), 0 };
	}
}

/* Return: whether the type has the operation at all. */
static bool model_has(const struct type *t, u32 op)
{
	const bool bits = op == FI_BOR || op == FI_BAND || op == FI_BXOR || op == FI_MSWAP;
	const bool order = op == FI_MIN || op == FI_MAX ||
			   (op >= FI_CSWAP_LE && op <= FI_CSWAP_GT);

	return !(t->mantissa && bits) && !(t->parts == 2 && order);
}

static bool model_valid(enum kofi_arith_kind kind, u32 op)
{
	if (kind == KOFI_ARITH_COMPARE)
		return op >= FI_CSWAP;
	return op < FI_CSWAP && (op != FI_ATOMIC_READ || kind == KOFI_ARITH_FETCH);
}

/* --- numbers in memory --- */

/* An integer as floating point: at most 24 bits. */
static u64 fp_bits(const struct type *t, s64 value)
{
	const unsigned int size = t->mantissa == 23 ? 32 : 64;
	const u64 exp_max = size == 32 ? 0xff : 0x7ff;
	u64 abs = value < 0 ? -value : value;
	int top;

	if (!abs)
		return 0;
	top = fls64(abs) - 1;
	return (value < 0 ? BIT_ULL(size - 1) : 0) | (exp_max / 2 + top) << t->mantissa |
	       (abs << (t->mantissa - top) & GENMASK_ULL(t->mantissa - 1, 0));
}

static void store_part(const struct type *t, void *to, s64 value)
{
	const u64 bits = fp_bits(t, value);

	/* The machine is little-endian. */
	memcpy(to, &bits, t->mantissa == 23 ? 4 : 8);
}

static void store(const struct type *t, void *to, struct num x)
{
	if (!t->mantissa) {
		memcpy(to, &x.re, t->size);
		return;
	}
	store_part(t, to, x.re);
	if (t->parts == 2)
		store_part(t, to + t->size / 2, x.im);
}

/* Make -0 of floating point 0. */
static void unsign_zero(const struct type *t, void *at)
{
	const unsigned int size = t->mantissa == 23 ? 4 : 8;
	const u64 minus = 1ULL << (8 * size - 1);
	unsigned int off;

	for (off = 0; off < t->size; off += size)
		if (!memcmp(at + off, &minus, size))
			memset(at + off, 0, size);
}

/* Cut a number to the type's size, with its sign. */
static struct num fit(const struct type *t, struct num x)
{
	const unsigned int unused = 128 - 8 * t->size;

	if (t->mantissa)
		return x;
	x.re = (__uint128_t)x.re << unused;
	x.re = t->is_signed ? x.re >> unused : (__int128_t)((__uint128_t)x.re >> unused);
	return x;
}

/* --- every cell --- */

#define NUMS	11

/* Return: the @i-th number to try. */
static struct num number(const struct type *t, unsigned int i)
{
	static const s64 smalls[NUMS] = { 0, 1, 2, 3, 100, -1, -2, -100, 5, 77, 1 };
	const __uint128_t top = (__uint128_t)1 << (8 * t->size - 1);
	struct num x = { smalls[i], smalls[(i * 7 + 3) % NUMS] };

	if (t->parts != 2)
		x.im = 0;
	if (t->mantissa)
		return x;
	if (i == NUMS - 1)
		x.re = top;
	else if (i == NUMS - 2)
		x.re = top - 1;
	else if (i == NUMS - 3)
		x.re = top / 3 * 2 + 1;
	return fit(t, x);
}

struct scene {
	u8	*mem;		/* two pages */
	u8	out[3][NUMS * 16 + 1];
	u8	want[NUMS * 16];
};

/* Try an operation on all numbers at once, with the @j-th operand and value to compare with. */
static void try(struct kunit *test, struct scene *s, const struct type *t, u32 op, unsigned int j)
{
	const u32 off = 16 * t->size;
	/* Operands have any address. */
	u8 *operand = s->out[0] + 1, *comparand = s->out[1] + 1, *result = s->out[2] + 1;
	struct num a, b, c;
	unsigned int i;

	memset(s->mem, 0xa5, 2 * PAGE_SIZE);
	for (i = 0; i < NUMS; i++) {
		a = number(t, i);
		b = number(t, (i + j) % NUMS);
		c = number(t, j % 3 ? (i + 5 * j) % NUMS : i);
		store(t, s->mem + off + i * t->size, a);
		store(t, operand + i * t->size, b);
		store(t, comparand + i * t->size, c);
		store(t, s->want + i * t->size, fit(t, model(t, op, a, b, c)));
	}
	memset(result, 0x5a, NUMS * 16);
	kofi_arith(t->type, op, virt_to_page(s->mem), off, op == FI_ATOMIC_READ ? NULL : operand,
		   op >= FI_CSWAP ? comparand : NULL, j % 2 ? result : NULL, NUMS);
	for (i = 0; i < NUMS; i++) {
		/* A product with 0 may be -0, which the model doesn't have. */
		if (t->mantissa && op == FI_PROD)
			unsign_zero(t, s->mem + off + i * t->size);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(s->mem + off + i * t->size,
						 s->want + i * t->size, t->size), 0,
				    "%s: number %u, other %u: %*ph, not %*ph", op_names[op], i, j,
				    t->size, s->mem + off + i * t->size, t->size,
				    s->want + i * t->size);
		store(t, s->want + i * t->size, number(t, i));
	}
	/* The old values, if they were asked for, and no other byte. */
	if (j % 2)
		KUNIT_EXPECT_EQ_MSG(test, memcmp(result, s->want, NUMS * t->size), 0,
				    "%s: old values", op_names[op]);
	else
		KUNIT_EXPECT_NULL(test, memchr_inv(result, 0x5a, NUMS * 16));
	KUNIT_EXPECT_NULL(test, memchr_inv(s->mem, 0xa5, off));
	KUNIT_EXPECT_NULL(test, memchr_inv(s->mem + off + NUMS * t->size, 0xa5,
					   2 * PAGE_SIZE - off - NUMS * t->size));
}

static struct scene *scene_new(struct kunit *test)
{
	struct scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->mem = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, s->mem);
	KUNIT_ASSERT_TRUE(test, PAGE_ALIGNED(s->mem));
	return s;
}

static void arith_cells(struct kunit *test)
{
	const struct type *t = test->param_value;
	struct scene *s = scene_new(test);
	unsigned int j, cells = 0;
	u32 op, kind;

	KUNIT_EXPECT_EQ(test, kofi_arith_size(t->type), (size_t)t->size);
	for (op = 0; op < FI_ATOMIC_OP_LAST; op++) {
		const bool has = model_has(t, op) && (!t->mantissa || has_fp());

		for (kind = 0; kind <= KOFI_ARITH_COMPARE; kind++)
			KUNIT_EXPECT_EQ_MSG(test, kofi_arith_valid(kind, t->type, op),
					    has && model_valid(kind, op), "%s, kind %u",
					    op_names[op], kind);
		for (j = 0; has && j < NUMS; j++)
			try(test, s, t, op, j);
		cells += has;
	}
	KUNIT_EXPECT_EQ(test, cells, t->mantissa && !has_fp() ? 0U :
				     t->parts == 2 ? 9U : t->mantissa ? 15U : 19U);
}

/* Floating point is there where the kernel has the flags to compile it. */
static void arith_has_fp(struct kunit *test)
{
	const bool wanted = IS_ENABLED(CONFIG_X86_64) &&
			    IS_ENABLED(CONFIG_ARCH_HAS_KERNEL_FPU_SUPPORT);

	KUNIT_EXPECT_EQ(test, has_fp(), wanted);
}

/* Types and operations that don't exist, with any number that a peer may send. */
static void arith_unknown(struct kunit *test)
{
	static const u32 bad_types[] = {
		FI_LONG_DOUBLE, FI_LONG_DOUBLE_COMPLEX, FI_UINT128 + 1, 255, 0x80000000, U32_MAX,
	};
	static const u32 bad_ops[] = { FI_ATOMIC_OP_LAST, 255, 0x80000000, U32_MAX };
	unsigned int i;
	u32 kind, op;

	for (kind = 0; kind <= KOFI_ARITH_COMPARE; kind++) {
		for (i = 0; i < ARRAY_SIZE(bad_types); i++) {
			KUNIT_EXPECT_EQ(test, kofi_arith_size(bad_types[i]), (size_t)0);
			for (op = 0; op < FI_ATOMIC_OP_LAST; op++)
				KUNIT_EXPECT_FALSE(test, kofi_arith_valid(kind, bad_types[i], op));
		}
		for (i = 0; i < ARRAY_SIZE(bad_ops); i++)
			KUNIT_EXPECT_FALSE(test, kofi_arith_valid(kind, FI_UINT64, bad_ops[i]));
	}
}

static void arith_query(struct kunit *test)
{
	struct fi_atomic_attr attr;

	KUNIT_EXPECT_EQ(test, kofi_arith_query(FI_UINT64, FI_SUM, 0, 100, &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.count, (size_t)12);
	KUNIT_EXPECT_EQ(test, attr.size, (size_t)8);
	KUNIT_EXPECT_EQ(test, kofi_arith_query(FI_INT16, FI_ATOMIC_READ, FI_FETCH_ATOMIC, 100,
					       &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.count, (size_t)50);
	KUNIT_EXPECT_EQ(test, kofi_arith_query(FI_INT16, FI_ATOMIC_READ, 0, 100, &attr),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, kofi_arith_query(FI_INT8, FI_CSWAP, FI_COMPARE_ATOMIC, 100, &attr),
			0);
	KUNIT_EXPECT_EQ(test, attr.count, (size_t)50);
	KUNIT_EXPECT_EQ(test, kofi_arith_query(FI_INT8, FI_CSWAP, FI_FETCH_ATOMIC, 100, &attr),
			-EOPNOTSUPP);
}

/* --- floating point that isn't integral: operands and results, bit by bit --- */

static const struct vector {
	u32	type, op;
	u64	a, b, c, want;
} vectors[] = {
	/* 0.1f + 0.2f, 1/3 * 3, the largest number twice, 1 + the smallest number */
	{ FI_FLOAT, FI_SUM, 0x3dcccccd, 0x3e4ccccd, 0, 0x3e99999a },
	{ FI_FLOAT, FI_PROD, 0x3eaaaaab, 0x40400000, 0, 0x3f800000 },
	{ FI_FLOAT, FI_SUM, 0x7f7fffff, 0x7f7fffff, 0, 0x7f800000 },
	{ FI_FLOAT, FI_SUM, 0x3f800000, 0x00000001, 0, 0x3f800000 },
	/* Nothing is less than or equal to NaN, and it isn't equal to itself. */
	{ FI_FLOAT, FI_MIN, 0x7fc00000, 0x3f800000, 0, 0x7fc00000 },
	{ FI_FLOAT, FI_MAX, 0x7fc00000, 0x3f800000, 0, 0x7fc00000 },
	{ FI_FLOAT, FI_CSWAP, 0x7fc00000, 0x3f800000, 0x7fc00000, 0x7fc00000 },
	{ FI_FLOAT, FI_CSWAP_NE, 0x7fc00000, 0x3f800000, 0x7fc00000, 0x3f800000 },
	{ FI_FLOAT, FI_CSWAP_LE, 0x7fc00000, 0x3f800000, 0, 0x7fc00000 },
	{ FI_FLOAT, FI_CSWAP_GE, 0x7fc00000, 0x3f800000, 0, 0x7fc00000 },
	{ FI_FLOAT, FI_LAND, 0x7fc00000, 0x00000001, 0, 0x3f800000 },
	/* 0 and -0 are equal, and -0 is false. */
	{ FI_FLOAT, FI_CSWAP, 0x80000000, 0x3f800000, 0, 0x3f800000 },
	{ FI_FLOAT, FI_MIN, 0, 0x80000000, 0, 0 },
	{ FI_FLOAT, FI_LOR, 0x80000000, 0, 0, 0 },
	/* Infinity. */
	{ FI_FLOAT, FI_MIN, 0x7f800000, 0xff800000, 0, 0xff800000 },
	/* 0.1 + 0.2 */
	{ FI_DOUBLE, FI_SUM, 0x3fb999999999999a, 0x3fc999999999999a, 0, 0x3fd3333333333334 },
	{ FI_DOUBLE, FI_PROD, 0x3fd5555555555555, 0x4008000000000000, 0, 0x3ff0000000000000 },
	{ FI_DOUBLE, FI_CSWAP, 0x8000000000000000, 0x3ff0000000000000, 0, 0x3ff0000000000000 },
	{ FI_DOUBLE, FI_CSWAP_NE, 0x7ff8000000000000, 0x3ff0000000000000, 0x7ff8000000000000,
	  0x3ff0000000000000 },
	/* The imaginary part is the upper half: (1 + 2i) * (0.5 - i) is 2.5 + 0i. */
	{ FI_FLOAT_COMPLEX, FI_PROD, 0x400000003f800000, 0xbf8000003f000000, 0,
	  0x0000000040200000 },
	{ FI_FLOAT_COMPLEX, FI_CSWAP, 0x8000000080000000, 0x400000003f800000, 0,
	  0x400000003f800000 },
};

static void arith_vectors(struct kunit *test)
{
	struct scene *s = scene_new(test);
	const struct vector *v;
	size_t size;
	u64 old;

	for (v = vectors; v < vectors + ARRAY_SIZE(vectors); v++) {
		size = kofi_arith_size(v->type);
		if (!kofi_arith_valid(v->op < FI_CSWAP ? KOFI_ARITH_FETCH : KOFI_ARITH_COMPARE,
				      v->type, v->op)) {
			KUNIT_EXPECT_FALSE(test, has_fp());
			continue;
		}
		*(u64 *)s->mem = v->a;
		old = 0;
		kofi_arith(v->type, v->op, virt_to_page(s->mem), 0, &v->b, &v->c, &old, 1);
		KUNIT_EXPECT_EQ(test, old, v->a);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(s->mem, &v->want, size), 0,
				    "%s of %llx and %llx: %llx, not %llx", op_names[v->op], v->a,
				    v->b, *(u64 *)s->mem, v->want);
	}
}

/* --- several CPUs --- */

#define TASKS	4
#define ROUNDS	2000

struct racer {
	const struct type	*type;
	u8			*mem;
	bool			plain;	/* uses the kernel's own atomic operations */
	bool			adds;	/* uses kofi_arith_add() */
	struct kofi_thread	thread;
};

static void race(struct kofi_thread *thread)
{
	struct racer *racer = thread->arg;
	const struct type *t = racer->type;
	u8 one[16] = { };
	unsigned int i;

	store(t, one, (struct num) { 1, 0 });
	for (i = 0; i < ROUNDS; i++) {
		if (racer->adds)
			kofi_arith_add((u64 *)racer->mem, 1);
		else if (!racer->plain)
			kofi_arith(t->type, FI_SUM, virt_to_page(racer->mem), 0, one, NULL, NULL,
				   1);
		else if (t->size == 4)
			atomic_inc((atomic_t *)racer->mem);
		else
			atomic64_inc((atomic64_t *)racer->mem);
		if (i % 64 == 0)
			cond_resched();
	}
}

/* Sums are exact. Integers of a word are atomic against the kernel's own operations, too. */
static void arith_race(struct kunit *test)
{
	const struct type *t = test->param_value;
	const bool plain = !t->mantissa && (t->size == 4 || t->size == 8);
	struct scene *s = scene_new(test);
	struct racer *racers = kunit_kcalloc(test, TASKS, sizeof(*racers), GFP_KERNEL);
	unsigned int i;
	u8 want[16] = { };

	KUNIT_ASSERT_NOT_NULL(test, racers);
	if (!kofi_arith_valid(KOFI_ARITH_WRITE, t->type, FI_SUM)) {
		KUNIT_EXPECT_FALSE(test, has_fp());
		return;
	}
	for (i = 0; i < TASKS; i++) {
		racers[i] = (struct racer) { t, s->mem, plain && i % 2,
					     plain && t->size == 8 && i % 4 == 2 };
		kofi_thread_start(test, &racers[i].thread, race, &racers[i]);
	}
	for (i = 0; i < TASKS; i++)
		kofi_thread_join(test, &racers[i].thread);
	store(t, want, fit(t, (struct num) { TASKS * ROUNDS, 0 }));
	KUNIT_EXPECT_EQ_MSG(test, memcmp(s->mem, want, t->size), 0, "%*ph, not %*ph", t->size,
			    s->mem, t->size, want);
}

/* An atomic read needs no access to write: a region may be read-only memory. */
static const u64 constant[2] __aligned(16) = { 0x1234567890abcdef, 0x0fedcba987654321 };

static void arith_read_only(struct kunit *test)
{
	struct page *page = vmalloc_to_page(constant);
	u64 got[2] = { };

	kofi_arith(FI_UINT64, FI_ATOMIC_READ, page, offset_in_page(constant), NULL, NULL, got, 2);
	KUNIT_EXPECT_MEMEQ(test, got, constant, sizeof(got));
	memset(got, 0, sizeof(got));
	kofi_arith(FI_UINT128, FI_ATOMIC_READ, page, offset_in_page(constant), NULL, NULL, got, 1);
	KUNIT_EXPECT_MEMEQ(test, got, constant, sizeof(got));
}

/* The function for the most frequent operation does what the general one does. */
static void arith_add(struct kunit *test)
{
	static const u64 numbers[] = { 0, 1, 2, S64_MAX, S64_MIN, U64_MAX - 1, U64_MAX };
	struct scene *s = scene_new(test);
	u64 *at = (u64 *)s->mem, want, old;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		for (j = 0; j < ARRAY_SIZE(numbers); j++) {
			*at = numbers[i];
			kofi_arith(FI_INT64, FI_SUM, virt_to_page(at), 0, &numbers[j], NULL, &old,
				   1);
			want = *at;
			*at = numbers[i];
			KUNIT_EXPECT_EQ(test, kofi_arith_add(at, numbers[j]), old);
			KUNIT_EXPECT_EQ(test, *at, want);
		}
	}
	/* An integer that keeps its value isn't written. */
	KUNIT_EXPECT_EQ(test, kofi_arith_add((u64 *)constant, 0), constant[0]);
}

/* Within another use of the FPU, as in a softirq that interrupts it, there is no second one. */
static void arith_usable(struct kunit *test)
{
	bool fp = true, word = false;

#ifdef CONFIG_ARCH_HAS_KERNEL_FPU_SUPPORT
	kernel_fpu_begin();
	fp = kofi_arith_usable(FI_DOUBLE);
	word = kofi_arith_usable(FI_UINT64) && kofi_arith_usable(FI_UINT128);
	kernel_fpu_end();
	KUNIT_EXPECT_FALSE(test, fp);
	KUNIT_EXPECT_TRUE(test, word);
	KUNIT_EXPECT_TRUE(test, kofi_arith_usable(FI_FLOAT_COMPLEX));
#endif
	KUNIT_EXPECT_TRUE(test, kofi_arith_usable(FI_UINT64));
}

static struct kunit_case arith_cases[] = {
	KUNIT_CASE_PARAM(arith_cells, type_gen_params),
	KUNIT_CASE(arith_has_fp),
	KUNIT_CASE(arith_unknown),
	KUNIT_CASE(arith_query),
	KUNIT_CASE(arith_usable),
	KUNIT_CASE(arith_vectors),
	KUNIT_CASE_PARAM(arith_race, type_gen_params),
	KUNIT_CASE(arith_read_only),
	KUNIT_CASE(arith_add),
	{}
};

static struct kunit_suite arith_suite = {
	.name		= "kofi_arith",
	.test_cases	= arith_cases,
};

kunit_test_suite(arith_suite);

MODULE_DESCRIPTION("KUnit suite of the arithmetic of atomic operations");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
