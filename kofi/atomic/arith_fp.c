// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Arithmetic of floating point. The compiler may use the FPU's registers for anything in this file,
 * so its functions run only between kernel_fpu_begin() and kernel_fpu_end(). Comparisons with NaN
 * are false, as in C. A product of complex numbers is the plain formula, which has other NaNs than
 * C's for operands that are infinite.
 */
#include "table.h"

#define KOFI_ADD(_a, _b)	((_a) + (_b))
#define KOFI_MUL(_a, _b)	((_a) * (_b))

/* Complex numbers with the parts @_part, and functions of them. */
#define KOFI_COMPLEX(_c, _part)						\
struct _c {								\
	_part re, im;							\
};									\
									\
static inline struct _c _c##_add(struct _c a, struct _c b)		\
{									\
	return (struct _c) { a.re + b.re, a.im + b.im };		\
}									\
									\
static inline struct _c _c##_mul(struct _c a, struct _c b)		\
{									\
	return (struct _c) {						\
		a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re,	\
	};								\
}									\
									\
static inline struct _c _c##_truth(bool x)				\
{									\
	return (struct _c) { x, 0 };					\
}									\
									\
static inline bool _c##_true(struct _c a)				\
{									\
	return a.re || a.im;						\
}									\
									\
static inline bool _c##_same(struct _c a, struct _c b)			\
{									\
	return a.re == b.re && a.im == b.im;				\
}

KOFI_COMPLEX(cfloat, float)
KOFI_COMPLEX(cdouble, double)

#define KOFI_COMPLEX_OPS(F, _type, _c, ...)				\
	F(_type, SUM, _c##_add(a, b), struct _c, ##__VA_ARGS__)				\
	F(_type, PROD, _c##_mul(a, b), struct _c, ##__VA_ARGS__)			\
	F(_type, LOR, _c##_truth(_c##_true(a) || _c##_true(b)), struct _c, ##__VA_ARGS__)	\
	F(_type, LAND, _c##_truth(_c##_true(a) && _c##_true(b)), struct _c, ##__VA_ARGS__)	\
	F(_type, LXOR, _c##_truth(_c##_true(a) != _c##_true(b)), struct _c, ##__VA_ARGS__)	\
	F(_type, ATOMIC_READ, a, struct _c, ##__VA_ARGS__)				\
	F(_type, ATOMIC_WRITE, b, struct _c, ##__VA_ARGS__)				\
	F(_type, CSWAP, _c##_same(c, a) ? b : a, struct _c, ##__VA_ARGS__)		\
	F(_type, CSWAP_NE, _c##_same(c, a) ? a : b, struct _c, ##__VA_ARGS__)

/* T(type, list of operations, values, memory, how to replace an element) for each type. */
#define KOFI_FP_TYPES(T)						\
	T(FLOAT, KOFI_REAL_OPS, float, u32, KOFI_SWAP)			\
	T(DOUBLE, KOFI_REAL_OPS, double, u64, KOFI_SWAP)		\
	T(FLOAT_COMPLEX, KOFI_COMPLEX_OPS, cfloat, u64, KOFI_SWAP)	\
	T(DOUBLE_COMPLEX, KOFI_COMPLEX_OPS, cdouble, __uint128_t, KOFI_SET)

#define KOFI_FUNCTIONS(_type, _ops, ...)	_ops(KOFI_ARITH_FN, _type, __VA_ARGS__)
#define KOFI_ENTRIES(_type, _ops, ...)					\
	[FI_##_type] = { _ops(KOFI_ARITH_ENTRY, _type, __VA_ARGS__) },

KOFI_FP_TYPES(KOFI_FUNCTIONS)

kofi_arith_fn *const kofi_arith_fp[KOFI_ARITH_TYPES][FI_ATOMIC_OP_LAST] = {
	KOFI_FP_TYPES(KOFI_ENTRIES)
};
