/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Operations: slots, memory and state: op.c. */
#ifndef KEFA_OP_H
#define KEFA_OP_H

#include <linux/dma-direction.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/types.h>
#include <linux/uio.h>
#include <kofi/rma.h>
#include "../dma.h"
#include "../hw.h"

struct kefa_ah;
struct kefa_ep;
struct kefa_mr;
struct kefa_rest;
struct kefa_side;
struct page;

/**
 * struct kefa_run - memory that is physically contiguous
 * @page: first page
 * @off: offset in @page
 * @len: length in bytes
 */
struct kefa_run {
	struct page	*page;
	u32		off;
	u32		len;
};

/**
 * struct kefa_seg - mapped memory
 * @dma: DMA address
 * @phys: physical address
 * @len: length in bytes
 */
struct kefa_seg {
	dma_addr_t	dma;
	phys_addr_t	phys;
	u32		len;
};

/**
 * struct kefa_copy - a copy buffer of an endpoint
 * @list: in kefa_ep.copies; under kefa_ep.lock
 * @data: memory of the buffer; NULL until its first use
 * @dma: DMA address of @data
 */
struct kefa_copy {
	struct list_head	list;
	void			*data;
	dma_addr_t		dma;
};

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
 * @prov_errno: the device's status of the first failure
 * @nsegs: number of entries of @seg in use
 * @dir: direction of the DMA mapping
 * @state: enum kefa_op_state
 * @parts: for a head, number of outstanding parts
 * @quiet: no completion on success
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
	bool			quiet;
	bool			has_rest;
	bool			has_mr;
	bool			more;
	/* Successful inline sends don't access these. */
	int			err;
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

/* The upper half of an operation's id. */
#define KEFA_OP_USE	BIT_ULL(32)

/**
 * kefa_linear() - check whether memory is at a fixed distance from its physical address
 * @buf: the memory
 *
 * Context: Any.
 * Return: whether it is.
 */
static __always_inline bool kefa_linear(const void *buf)
{
	/* virt_addr_valid() looks up the section of the page, which takes 50 instructions. */
	if (likely((unsigned long)buf >= PAGE_OFFSET && buf < high_memory))
		return true;
	return virt_addr_valid(buf);
}

/**
 * kefa_one_piece() - check whether a kernel buffer is physically contiguous
 * @buf: the buffer
 *
 * A buffer is, if it begins in memory that the kernel maps at a fixed distance from its physical
 * address. As for buffers on the stack, only kernels that debug DMA look for memory of PCI
 * devices: that reads the page's flags, which no other step of a plain call needs.
 *
 * Context: Any.
 * Return: true if it is contiguous and can be transferred.
 */
static __always_inline bool kefa_one_piece(const void *buf)
{
	return kefa_linear(buf) &&
	       !(IS_ENABLED(CONFIG_DMA_API_DEBUG) && kefa_dma_p2p(virt_to_page(buf)));
}

typedef int (*kefa_walk_fn)(void *arg, struct page *page, u32 off, u32 len);

int kefa_walk_kvec(void *addr, size_t len, kefa_walk_fn fn, void *arg);
int kefa_walk(const struct iov_iter *iter, kefa_walk_fn fn, void *arg);
bool kefa_iter_p2p(const struct iov_iter *iter);
int kefa_runs(const struct kefa_ep *ep, const struct iov_iter *iter,
	      struct kefa_run *run, unsigned int max);
int kefa_map(struct kefa_ep *ep, const struct kefa_run *runs, unsigned int n,
	     struct kefa_seg *segs, enum dma_data_direction dir);
void kefa_unmap(struct kefa_ep *ep, const struct kefa_seg *segs, unsigned int n,
		enum dma_data_direction dir);
size_t kefa_keep(phys_addr_t phys, size_t len);
size_t kefa_ops_keep(struct kefa_ep *ep);
void kefa_ops_scan(struct kefa_ep *ep, u32 scan);
int kefa_copies_init(struct kefa_ep *ep);
struct kefa_copy *kefa_copy_get(struct kefa_ep *ep);
struct kefa_copy *kefa_copy_take(struct kefa_ep *ep);
void kefa_copy_put(struct kefa_ep *ep, struct kefa_copy *copy);
bool kefa_copy_ready(struct kefa_ep *ep);
int kefa_ops_init(struct kefa_ep *ep);
void kefa_ops_fini(struct kefa_ep *ep);
void kefa_copies_fini(struct kefa_ep *ep, bool leave);
struct kefa_op *kefa_op_take(struct kefa_ep *ep, struct kefa_side *side,
			     struct kefa_op *head);
void kefa_op_done(struct kefa_ep *ep, struct kefa_op *op, int err,
		  u32 prov_errno);
void kefa_op_part_done(struct kefa_ep *ep, struct kefa_op *head);

/**
 * kefa_op_slot() - index of an operation in kefa_ep.ops
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
