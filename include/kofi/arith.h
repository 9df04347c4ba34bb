/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Arithmetic of atomic operations, for providers that carry them out by the CPU. An element of 1,
 * 2, 4 or 8 bytes is changed by a compare-and-exchange, so it is atomic against all other
 * operations on it, and against the kernel's atomic_*() and cmpxchg(). An element of 16 bytes is
 * changed under a lock, so it is atomic only against operations on it by these functions. A
 * device's own writes to the memory are atomic against none of them.
 */
#ifndef KOFI_ARITH_H
#define KOFI_ARITH_H

#include <linux/atomic.h>
#include <kofi/atomic.h>

struct kofi_iocs;
struct page;

/**
 * enum kofi_arith_kind - kind of an atomic operation
 * @KOFI_ARITH_WRITE: fi_atomic()
 * @KOFI_ARITH_FETCH: fi_fetch_atomic()
 * @KOFI_ARITH_COMPARE: fi_compare_atomic()
 */
enum kofi_arith_kind {
	KOFI_ARITH_WRITE,
	KOFI_ARITH_FETCH,
	KOFI_ARITH_COMPARE,
};

/**
 * struct kofi_elements - segments of elements that an operation holds until it completes
 * @iov: the segments, the caller's or @one
 * @count: number of segments
 * @one: copy of a single segment, as the caller's need not stay valid
 */
struct kofi_elements {
	const struct fi_ioc	*iov;
	size_t			count;
	struct fi_ioc		one;
};

void kofi_elements_hold(struct kofi_elements *elements, const struct kofi_iocs *iocs);
void kofi_elements_get(const struct kofi_elements *elements, size_t size, void *to);
void kofi_elements_put(const struct kofi_elements *elements, size_t size, const void *from);

size_t kofi_arith_size(u32 datatype);
bool kofi_arith_valid(enum kofi_arith_kind kind, u32 datatype, u32 op);
bool kofi_arith_usable(u32 datatype);
int kofi_arith_query(u32 datatype, u32 op, u64 flags, size_t bytes, struct fi_atomic_attr *attr);
void kofi_arith(u32 datatype, u32 op, struct page *page, unsigned int off, const void *operand,
		const void *comparand, void *result, size_t n);

/**
 * kofi_arith_add() - add to an integer of 64 bits
 * @at: the integer, aligned to 8 bytes
 * @operand: the number to add
 *
 * This is what kofi_arith() does for FI_SUM and one FI_INT64 or FI_UINT64.
 *
 * Context: Any.
 * Return: the old value.
 */
static inline u64 kofi_arith_add(u64 *at, u64 operand)
{
	u64 old = READ_ONCE(*at);

	if (unlikely(!operand))
		return old;
	while (unlikely(!try_cmpxchg(at, &old, old + operand)))
		;
	return old;
}

#endif /* KOFI_ARITH_H */
