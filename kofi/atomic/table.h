/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of arithmetic functions, by type and operation. The lists below have each operation
 * once, as F(type, name, new value, ...), where @a is the old value of the element, @b the operand,
 * and @c the value to compare with. arith_int.c and arith_fp.c expand them for each type to
 * functions, and then to the entries of the table.
 */
#ifndef KOFI_ATOMIC_TABLE_H
#define KOFI_ATOMIC_TABLE_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/string.h>
#include <kofi/atomic.h>

/* Debian's oldest kernel has no flags for files with floating point. */
#if defined(CONFIG_X86_64) && defined(CONFIG_ARCH_HAS_KERNEL_FPU_SUPPORT)
#define KOFI_ARITH_FP
#endif

typedef void kofi_arith_fn(void *at, const void *operand, const void *comparand, void *result,
			   size_t n);

#define KOFI_ARITH_TYPES	(FI_UINT128 + 1)

/* NULL where there is no such operation. Floating point has its own table. */
extern kofi_arith_fn *const kofi_arith_int[KOFI_ARITH_TYPES][FI_ATOMIC_OP_LAST];
extern kofi_arith_fn *const kofi_arith_fp[KOFI_ARITH_TYPES][FI_ATOMIC_OP_LAST];

/* Operations of all types but complex ones; KOFI_ADD() and KOFI_MUL() depend on the type. */
#define KOFI_REAL_OPS(F, _type, ...)					\
	F(_type, MIN, b < a ? b : a, ##__VA_ARGS__)			\
	F(_type, MAX, b > a ? b : a, ##__VA_ARGS__)			\
	F(_type, SUM, KOFI_ADD(a, b), ##__VA_ARGS__)			\
	F(_type, PROD, KOFI_MUL(a, b), ##__VA_ARGS__)			\
	F(_type, LOR, a || b, ##__VA_ARGS__)				\
	F(_type, LAND, a && b, ##__VA_ARGS__)				\
	F(_type, LXOR, !a != !b, ##__VA_ARGS__)				\
	F(_type, ATOMIC_READ, a, ##__VA_ARGS__)				\
	F(_type, ATOMIC_WRITE, b, ##__VA_ARGS__)			\
	F(_type, CSWAP, c == a ? b : a, ##__VA_ARGS__)			\
	F(_type, CSWAP_NE, c != a ? b : a, ##__VA_ARGS__)		\
	F(_type, CSWAP_LE, c <= a ? b : a, ##__VA_ARGS__)		\
	F(_type, CSWAP_LT, c < a ? b : a, ##__VA_ARGS__)		\
	F(_type, CSWAP_GE, c >= a ? b : a, ##__VA_ARGS__)		\
	F(_type, CSWAP_GT, c > a ? b : a, ##__VA_ARGS__)

/* Those that only integers have. */
#define KOFI_BIT_OPS(F, _type, ...)					\
	F(_type, BOR, a | b, ##__VA_ARGS__)				\
	F(_type, BAND, a & b, ##__VA_ARGS__)				\
	F(_type, BXOR, a ^ b, ##__VA_ARGS__)				\
	F(_type, MSWAP, (b & c) | (a & ~c), ##__VA_ARGS__)

/* Replace an element if it hasn't changed; otherwise @_old takes its value. For up to 8 bytes. */
#define KOFI_SWAP(_at, _old, _new)	try_cmpxchg(_at, _old, _new)

/* The same for 16 bytes, under the lock of kofi_arith(). */
#define KOFI_SET(_at, _old, _new)	((void)(_old), *(_at) = (_new), true)

/*
 * Define the function for an operation, where @_new is the new value, of a type whose values are
 * @_value, and whose memory is accessed as @_word. An element that keeps its value isn't written,
 * as a peer that only reads may have no access to write. Operands may be anywhere in a packet.
 */
#define KOFI_ARITH_FN(_type, _op, _new, _value, _word, _swap)		\
static void kofi_##_type##_##_op(void *at, const void *operand, const void *comparand,	\
				 void *result, size_t n)		\
{									\
	_value a, b = { 0 }, c = { 0 }, value;				\
	_word *word = at, old, new;					\
	size_t off;							\
									\
	for (off = 0; off < n * sizeof(_word); off += sizeof(_word), word++) {	\
		if (operand)						\
			memcpy(&b, operand + off, sizeof(b));		\
		if (comparand)						\
			memcpy(&c, comparand + off, sizeof(c));		\
		old = __READ_ONCE(*word);				\
		do {							\
			memcpy(&a, &old, sizeof(a));			\
			value = (_new);					\
			memcpy(&new, &value, sizeof(new));		\
		} while (new != old && !_swap(word, &old, new));	\
		if (result)						\
			memcpy(result + off, &old, sizeof(old));	\
	}								\
}

#define KOFI_ARITH_ENTRY(_type, _op, ...)				\
	[FI_##_op] = kofi_##_type##_##_op,

#endif /* KOFI_ATOMIC_TABLE_H */
