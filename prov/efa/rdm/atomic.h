/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Atomic operations: atomic.c for those of the ULP, rta.c for those of peers. */
#ifndef KEFA_RDM_ATOMIC_H
#define KEFA_RDM_ATOMIC_H

#include "rdm.h"

/**
 * struct kefa_atomic - parts of an operation that only an atomic one of the ULP has
 * @next: the next free one
 * @datatype: type of the elements
 * @op: the operation
 * @n: number of entries of @rma
 * @compare: it is fi_compare_atomic()
 * @operand: the operands
 * @comparand: the values to compare with
 * @result: takes the old values
 * @rma: the peer's memory, the ULP's array or @one
 * @one: copy of a single entry, as the ULP's need not stay valid
 */
struct kefa_atomic {
	struct kefa_atomic	*next;
	u8			datatype;
	u8			op;
	u8			n;
	bool			compare;
	struct kofi_elements	operand;
	struct kofi_elements	comparand;
	struct kofi_elements	result;
	const struct fi_rma_ioc	*rma;
	struct fi_rma_ioc	one;
};

/* atomic.c */

u32 kefa_atomic_room(u32 mtu);
int kefa_rdm_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			  struct fi_atomic_attr *attr, u64 flags);
int kefa_atomics_init(struct kefa_rdm *rdm);
void kefa_atomics_fini(struct kefa_rdm *rdm);
int kefa_atomic_check(const struct kefa_rdm *rdm, const struct kofi_req *req);
void kefa_atomic_hold(struct kefa_rdm *rdm, struct kefa_rop *rop, const struct kofi_req *req);
int kefa_atomic_send(struct kefa_rdm *rdm, struct kefa_rop *rop);

/* fast_atomic.c */

extern const struct fi_ops_atomic kefa_rdm_atomic_ops;

/**
 * kefa_atomic_release() - undo kefa_atomic_hold(), when the ULP gets its completion
 * @rdm: the endpoint
 * @rop: the operation, with KEFA_ROP_ATOMIC
 *
 * Context: Under kefa_ep.lock.
 */
static inline void kefa_atomic_release(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	lockdep_assert_held(&rdm->ep.lock);
	rop->far.atomic->next = rdm->atomics_free;
	rdm->atomics_free = rop->far.atomic;
	rop->far.atomic = NULL;
}

/**
 * kefa_rop_fetches() - check for an atomic operation of the ULP that ends with an ATOMRSP
 * @rop: the operation
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it is one.
 */
static inline bool kefa_rop_fetches(const struct kefa_rop *rop)
{
	return rop->more & KEFA_ROP_ATOMIC && rop->cq_flags & FI_READ;
}

#endif /* KEFA_RDM_ATOMIC_H */
