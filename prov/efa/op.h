/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Operations: what is asked for, where its memory is, what is under way: ops.c. */
#ifndef KEFA_OP_H
#define KEFA_OP_H

#include <linux/dma-direction.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/types.h>
#include <linux/uio.h>
#include <kofi/rma.h>
#include "hw.h"

struct kefa_ah;
struct kefa_ep;
struct kefa_mr;
struct kefa_rest;
struct kefa_side;
struct page;

/**
 * struct kefa_run - memory that is physically contiguous
 * @page: first page
 * @off: where in it
 * @len: bytes
 */
struct kefa_run {
	struct page	*page;
	u32		off;
	u32		len;
};

/**
 * struct kefa_seg - memory that the device can reach
 * @dma: its address
 * @phys: and the processor's
 * @len: bytes
 */
struct kefa_seg {
	dma_addr_t	dma;
	phys_addr_t	phys;
	u32		len;
};

/**
 * struct kefa_copy - a buffer of the endpoint's
 * @list: in kefa_ep.copies; kefa_ep.lock
 * @data: its memory; NULL until the buffer is used for the first time
 * @dma: its DMA address
 */
struct kefa_copy {
	struct list_head	list;
	void			*data;
	dma_addr_t		dma;
};

/* Two cache lines, the first of which is enough for what has no memory of its own. */
#define KEFA_OP_SIZE	128

enum kefa_op_state {
	KEFA_OP_FREE,
	KEFA_OP_POSTED,	/* the device has it, or it is held for the next doorbell */
	KEFA_OP_PARTS,	/* its own work request is done, others aren't */
	KEFA_OP_RNR,	/* it waits to be sent again: rnr.c */
};

/**
 * struct kefa_op - a work request and, if it is the first, its operation
 * @next: the next free one; kefa_ep.lock
 * @head: first work request of the operation
 * @context: the caller's
 * @flags: what the completion says
 * @id: what the work request is called: its slot, and in the upper half how often
 *	that was used
 * @ah: of the first of a send, read or write: the peer's address handle
 * @copy: buffer to be given back, or NULL
 * @rest: of a head with @has_rest: what isn't posted yet
 * @mr: with @has_mr: the region that is registered or invalidated
 * @data: remote CQ data
 * @len: bytes transferred
 * @seg: memory that was mapped
 * @err: positive errno of the first failure
 * @prov_errno: and the device's status
 * @nsegs: how many
 * @dir: which way
 * @state: enum kefa_op_state
 * @parts: of a head: work requests that are outstanding
 * @quiet: no completion on success
 * @has_rest: there is a @rest, which is one of @parts, and no @copy
 * @has_mr: it registers or invalidates memory: mr_ep.c
 * @more: there are other work requests, or a buffer: see kefa_op_done()
 *
 * A free slot is its own head, of one part, with no buffer and no error. So it
 * is when it is taken, and those who change it put it right again.
 */
struct kefa_op {
	/* Whatever is posted and completes reads and writes these. */
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
	/* A message in the work request alone, as it comes to it, does without these. */
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
 * kefa_one_piece() - is a buffer of the kernel's physically contiguous?
 * @buf: the buffer
 * @len: its bytes, more than 0
 *
 * What is in one page is if its beginning has a page at all.
 *
 * Context: Any.
 * Return: whether it is, and can be transferred.
 */
static inline bool kefa_one_piece(const void *buf, size_t len)
{
	return virt_addr_valid(buf) &&
	       (offset_in_page(buf) + len <= PAGE_SIZE ||
		virt_addr_valid(buf + len - 1));
}

typedef int (*kefa_walk_fn)(void *arg, struct page *page, u32 off, u32 len);

int kefa_walk_kvec(void *addr, size_t len, kefa_walk_fn fn, void *arg);
int kefa_walk(const struct iov_iter *iter, kefa_walk_fn fn, void *arg);
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
 * kefa_op_slot() - where an operation is in kefa_ep.ops
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
