/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Operations: slots, memory and state: op.c. */
#ifndef KEFA_OP_H
#define KEFA_OP_H

#include <linux/kernel.h>
#include <linux/types.h>
#include <kofi/rma.h>
#include "../hw.h"
#include "../mem.h"

struct kefa_ah;
struct kefa_copy;
struct kefa_ep;
struct kefa_mr;
struct kefa_rest;
struct kefa_side;

/* Two cache lines. Operations without mapped memory use only the first. */
#define KEFA_OP_SIZE	128

enum kefa_op_state {
	KEFA_OP_FREE,
	KEFA_OP_POSTED,	/* the work request is posted, or held for the next doorbell */
	KEFA_OP_PARTS,	/* the head's work request is done, other parts are outstanding */
	KEFA_OP_RNR,	/* the work request waits to be resent: rnr.c */
};

/**
 * struct kefa_op - a slot: a work request and, for the first one, its operation
 * @next: next free slot; under kefa_ep.lock
 * @head: slot of the operation's first work request
 * @context: the caller's context
 * @flags: flags of the completion
 * @id: id of the work request: the slot, and in the upper half the number of its uses
 * @ah: for the head of a send, read or write, the peer's address handle
 * @copy: copy buffer, or NULL
 * @rest: for a head with @has_rest, the pieces that aren't posted yet
 * @mr: with @has_mr, the region that is registered or invalidated
 * @data: remote CQ data
 * @len: number of bytes transferred
 * @seg: mapped memory
 * @err: positive errno of the first failure
 * @epoch: of a slot of the sending side, kefa_ep.tx_epoch when it was posted
 * @prov_errno: the device's status of the first failure
 * @nsegs: number of entries of @seg in use
 * @dir: direction of the DMA mapping
 * @state: enum kefa_op_state
 * @parts: for a head, number of outstanding parts
 * @quiet: enum kefa_quiet
 * @has_rest: @rest is valid and counts as one of @parts, and there is no @copy
 * @has_mr: the operation registers or invalidates memory: mr.c
 * @more: the operation has other work requests, or a buffer: see kefa_op_done()
 *
 * A free slot is its own head, has one part, no buffer and no error. Code that changes
 * these members restores them before it frees the slot.
 */
struct kefa_op {
	/* All operations read and write these. */
	struct kefa_op		*next;
	void			*context;
	u64			flags;
	u64			id;
	struct kefa_ah		*ah;
	u32			data;
	u32			len;
	u8			nsegs;
	u8			dir;
	u8			state;
	u8			parts;
	u8			quiet;
	bool			has_rest;
	bool			has_mr;
	bool			more;
	/* Successful inline sends don't access these. */
	u16			err;
	bool			epoch;
	u32			prov_errno;
	struct kefa_seg		seg[KEFA_MAX_SGE];
	struct kefa_op		*head;
	union {
		struct kefa_copy	*copy;
		struct kefa_rest	*rest;
		struct kefa_mr		*mr;
	};
} __aligned(KEFA_OP_SIZE);

static_assert(sizeof(struct kefa_op) == KEFA_OP_SIZE);
static_assert(offsetof(struct kefa_op, seg) <= 64);

size_t kefa_ops_keep(struct kefa_ep *ep);
void kefa_ops_scan(struct kefa_ep *ep, u32 scan);
int kefa_ops_init(struct kefa_ep *ep);
void kefa_ops_fini(struct kefa_ep *ep);
struct kefa_op *kefa_op_take(struct kefa_ep *ep, struct kefa_side *side,
			     struct kefa_op *head);
void kefa_op_done(struct kefa_ep *ep, struct kefa_op *op, int err,
		  u32 prov_errno);
void kefa_op_part_done(struct kefa_ep *ep, struct kefa_op *head);

/**
 * kefa_op_slot() - index of an operation in kefa_direct.ops
 * @op: the operation
 *
 * Context: Any.
 * Return: the index.
 */
static inline u32 kefa_op_slot(const struct kefa_op *op)
{
	return lower_32_bits(op->id);
}

#endif /* KEFA_OP_H */
