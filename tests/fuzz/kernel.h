/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Declarations that the sources under test need from kernel headers, which are empty files
 * here.
 */
#ifndef KOFI_FUZZ_KERNEL_H
#define KOFI_FUZZ_KERNEL_H

#include <assert.h>
#include <errno.h>
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define u8	uint8_t
#define u16	uint16_t
#define u32	uint32_t
#define u64	uint64_t
#define __u8	uint8_t
#define __u16	uint16_t
#define __u64	uint64_t
#define __le16	uint16_t
#define __le32	uint32_t
#define __le64	uint64_t
#define __u32	uint32_t
#define __be32	uint32_t
#define __be64	uint64_t
#define le16_to_cpu(x)	le16toh(x)
#define le32_to_cpu(x)	le32toh(x)
#define le64_to_cpu(x)	le64toh(x)
#define cpu_to_le16(x)	htole16(x)
#define cpu_to_le32(x)	htole32(x)
#define cpu_to_le64(x)	htole64(x)
#define __be32_to_cpu(x)	be32toh(x)
#define __be64_to_cpu(x)	be64toh(x)
#define __cpu_to_be32(x)	htobe32(x)
#define __cpu_to_be64(x)	htobe64(x)
#define BUILD_BUG_ON_ZERO(e)	((int)sizeof(struct { int : -!!(e); }))
#define sizeof_field(type, member)	sizeof(((type *)0)->member)
#define is_power_of_2(n)	((n) && !((n) & ((n) - 1)))
#define BIT_ULL(n)	(1ULL << (n))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define U32_MAX		UINT32_MAX
#undef __always_inline
#define __always_inline	inline __attribute__((__always_inline__))
#define noinline	__attribute__((__noinline__))
#define __packed	__attribute__((__packed__))
#define __aligned(n)	__attribute__((__aligned__(n)))
#define likely(x)	(x)
#define unlikely(x)	(x)
#define check_add_overflow(a, b, d)	__builtin_add_overflow(a, b, d)

static inline const void *memchr_inv(const void *buf, int c, size_t len)
{
	const u8 *p = buf;

	for (; len; p++, len--)
		if (*p != c)
			return p;
	return NULL;
}

#endif /* KOFI_FUZZ_KERNEL_H */
