// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Arithmetic of integers. */
#include "table.h"

/* Sums and products wrap around. */
#define KOFI_ADD(_a, _b)	((typeof(old))(_a) + (typeof(old))(_b))
#define KOFI_MUL(_a, _b)	(1ULL * (typeof(old))(_a) * (typeof(old))(_b))

/* T(type, values, memory, how to replace an element) for each type. */
#define KOFI_WORD_TYPES(T)						\
	T(INT8, s8, u8, KOFI_SWAP)					\
	T(UINT8, u8, u8, KOFI_SWAP)					\
	T(INT16, s16, u16, KOFI_SWAP)					\
	T(UINT16, u16, u16, KOFI_SWAP)					\
	T(INT32, s32, u32, KOFI_SWAP)					\
	T(UINT32, u32, u32, KOFI_SWAP)					\
	T(INT64, s64, u64, KOFI_SWAP)					\
	T(UINT64, u64, u64, KOFI_SWAP)

#ifdef __SIZEOF_INT128__
#define KOFI_INT_TYPES(T)						\
	KOFI_WORD_TYPES(T)						\
	T(INT128, __int128_t, __uint128_t, KOFI_SET)			\
	T(UINT128, __uint128_t, __uint128_t, KOFI_SET)
#else
#define KOFI_INT_TYPES(T)	KOFI_WORD_TYPES(T)
#endif

#define KOFI_INT_OPS(F, ...)						\
	KOFI_REAL_OPS(F, __VA_ARGS__)					\
	KOFI_BIT_OPS(F, __VA_ARGS__)

#define KOFI_FUNCTIONS(_type, ...)	KOFI_INT_OPS(KOFI_ARITH_FN, _type, __VA_ARGS__)
#define KOFI_ENTRIES(_type, ...)					\
	[FI_##_type] = { KOFI_INT_OPS(KOFI_ARITH_ENTRY, _type, __VA_ARGS__) },

KOFI_INT_TYPES(KOFI_FUNCTIONS)

kofi_arith_fn *const kofi_arith_int[KOFI_ARITH_TYPES][FI_ATOMIC_OP_LAST] = {
	KOFI_INT_TYPES(KOFI_ENTRIES)
};
