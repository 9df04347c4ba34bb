// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Arithmetic of atomic operations: which types and operations there are, and their execution. */
#include <linux/export.h>
#include <linux/hash.h>
#include <linux/highmem.h>
#include <linux/spinlock.h>
#include <kofi/arith.h>
#include "table.h"

#ifdef KOFI_ARITH_FP
#include <linux/fpu.h>
#else
/* There is no table of functions either. */
#define kernel_fpu_available()	false
#define irq_fpu_usable()	false
#define kernel_fpu_begin()	do { } while (0)
#define kernel_fpu_end()	do { } while (0)
#define kofi_arith_fp		kofi_arith_int
#endif

/* Largest element that the CPU can replace by itself. */
#define KOFI_WORD	8

static const u8 kofi_arith_sizes[KOFI_ARITH_TYPES] = {
	[FI_INT8]		= 1,
	[FI_UINT8]		= 1,
	[FI_INT16]		= 2,
	[FI_UINT16]		= 2,
	[FI_INT32]		= 4,
	[FI_UINT32]		= 4,
	[FI_INT64]		= 8,
	[FI_UINT64]		= 8,
	[FI_FLOAT]		= 4,
	[FI_DOUBLE]		= 8,
	[FI_FLOAT_COMPLEX]	= 8,
	[FI_DOUBLE_COMPLEX]	= 16,
	[FI_INT128]		= 16,
	[FI_UINT128]		= 16,
};

/* Kinds that have an operation, as bits of enum kofi_arith_kind. */
static const u8 kofi_arith_kinds[FI_ATOMIC_OP_LAST] = {
	[FI_MIN ... FI_BXOR]		= BIT(KOFI_ARITH_WRITE) | BIT(KOFI_ARITH_FETCH),
	[FI_ATOMIC_READ]		= BIT(KOFI_ARITH_FETCH),
	[FI_ATOMIC_WRITE]		= BIT(KOFI_ARITH_WRITE) | BIT(KOFI_ARITH_FETCH),
	[FI_CSWAP ... FI_MSWAP]		= BIT(KOFI_ARITH_COMPARE),
};

/* Locks for elements of 16 bytes, by page. They are shared by all providers. */
#define KOFI_ARITH_LOCK_BITS	6
static spinlock_t kofi_arith_locks[1 << KOFI_ARITH_LOCK_BITS] = {
	[0 ... (1 << KOFI_ARITH_LOCK_BITS) - 1] = __SPIN_LOCK_UNLOCKED(kofi_arith_locks),
};

static bool kofi_arith_is_fp(u32 datatype)
{
	return datatype >= FI_FLOAT && datatype <= FI_DOUBLE_COMPLEX;
}

/* Return: the function, or NULL. */
static kofi_arith_fn *kofi_arith_find(u32 datatype, u32 op)
{
	if (datatype >= KOFI_ARITH_TYPES || op >= FI_ATOMIC_OP_LAST)
		return NULL;
	if (!kofi_arith_is_fp(datatype))
		return kofi_arith_int[datatype][op];
	return kernel_fpu_available() ? kofi_arith_fp[datatype][op] : NULL;
}

/**
 * kofi_arith_size() - get the size of a type
 * @datatype: the type, which may have any value
 *
 * Context: Any.
 * Return: the size of an element in bytes, at most 16; or 0 for an unknown type or a type of which
 * the size depends on the machine.
 */
size_t kofi_arith_size(u32 datatype)
{
	return datatype < KOFI_ARITH_TYPES ? kofi_arith_sizes[datatype] : 0;
}
EXPORT_SYMBOL_NS_GPL(kofi_arith_size, KOFI_PROVIDER);

/**
 * kofi_arith_valid() - check whether there is an operation
 * @kind: kind of the operation
 * @datatype: type of the elements, which may have any value
 * @op: the operation, which may have any value
 *
 * Context: Any.
 * Return: whether kofi_arith() has it.
 */
bool kofi_arith_valid(enum kofi_arith_kind kind, u32 datatype, u32 op)
{
	return kofi_arith_find(datatype, op) && kofi_arith_kinds[op] & BIT(kind);
}
EXPORT_SYMBOL_NS_GPL(kofi_arith_valid, KOFI_PROVIDER);

/**
 * kofi_arith_usable() - check whether kofi_arith() may be called in this context
 * @datatype: type of the elements, which has operations
 *
 * A softirq may have interrupted a task of the kernel that uses the FPU.
 *
 * Context: Any.
 * Return: whether it may. If not, it may in process context.
 */
bool kofi_arith_usable(u32 datatype)
{
	return !kofi_arith_is_fp(datatype) || irq_fpu_usable();
}
EXPORT_SYMBOL_NS_GPL(kofi_arith_usable, KOFI_PROVIDER);

/**
 * kofi_arith_query() - get the limits of an operation
 * @datatype: type of the elements
 * @op: the operation
 * @flags: as for fi_query_atomic(), checked by it
 * @bytes: maximum length in bytes of the operands together with the values to compare with
 * @attr: takes the limits
 *
 * Serves a provider's fi_ops_domain.query_atomic.
 *
 * Context: Any.
 * Return: 0, or -EOPNOTSUPP.
 */
int kofi_arith_query(u32 datatype, u32 op, u64 flags, size_t bytes, struct fi_atomic_attr *attr)
{
	const enum kofi_arith_kind kind = flags & FI_FETCH_ATOMIC ? KOFI_ARITH_FETCH :
					  flags & FI_COMPARE_ATOMIC ? KOFI_ARITH_COMPARE :
								      KOFI_ARITH_WRITE;

	if (!kofi_arith_valid(kind, datatype, op))
		return -EOPNOTSUPP;
	attr->size = kofi_arith_size(datatype);
	attr->count = bytes / attr->size / (kind == KOFI_ARITH_COMPARE ? 2 : 1);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kofi_arith_query, KOFI_PROVIDER);

static void kofi_arith_run(kofi_arith_fn *fn, bool fp, void *at, const void *operand,
			   const void *comparand, void *result, size_t n)
{
	if (fp)
		kernel_fpu_begin();
	fn(at, operand, comparand, result, n);
	if (fp)
		kernel_fpu_end();
}

/**
 * kofi_arith() - carry out an atomic operation on some elements
 * @datatype: type of the elements
 * @op: an operation for which kofi_arith_valid() returned true
 * @page: page of the elements
 * @off: offset of the elements in @page, a multiple of an element's size
 * @operand: the operands, at any address; NULL for FI_ATOMIC_READ
 * @comparand: the values to compare with, at any address; NULL for an operation without
 * @result: takes the old values, at any address; or NULL
 * @n: number of elements, all of which are in @page
 *
 * Each element is changed by itself, and not all of them at once.
 *
 * Context: Process context; or softirq context, if kofi_arith_usable() returned true. Doesn't
 * sleep.
 */
void kofi_arith(u32 datatype, u32 op, struct page *page, unsigned int off, const void *operand,
		const void *comparand, void *result, size_t n)
{
	kofi_arith_fn *fn = kofi_arith_find(datatype, op);
	const bool fp = kofi_arith_is_fp(datatype);
	spinlock_t *lock = &kofi_arith_locks[hash_long(page_to_pfn(page), KOFI_ARITH_LOCK_BITS)];
	void *at = kmap_local_page(page) + off;

	if (kofi_arith_sizes[datatype] > KOFI_WORD) {
		spin_lock_bh(lock);
		kofi_arith_run(fn, fp, at, operand, comparand, result, n);
		spin_unlock_bh(lock);
	} else {
		kofi_arith_run(fn, fp, at, operand, comparand, result, n);
	}
	kunmap_local(at);
}
EXPORT_SYMBOL_NS_GPL(kofi_arith, KOFI_PROVIDER);
