// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations. Each work request has a slot. An operation of several work requests consists
 * of the slot of the first, its head, and those of its parts, and completes with the last of
 * them. The slots record all outstanding work requests, so that they can be completed even
 * if the device doesn't.
 *
 * The id of a work request has its slot and the slot's number of uses, so that a late or
 * repeated completion differs from an expected one.
 */
#include <linux/slab.h>
#include "../mr.h"
#include "path.h"
#include "../trace.h"

/**
 * kefa_ops_keep() - kefa_keep() the memory of all outstanding operations
 * @ep: the endpoint
 *
 * Context: Process context, under kefa_ep.lock.
 * Return: number of bytes that can't be kept.
 */
size_t kefa_ops_keep(struct kefa_ep *ep)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	const struct kefa_op *op;
	size_t lost = 0;
	u32 slot;
	int i;

	lockdep_assert_held(&ep->lock);
	for (slot = 0; slot < direct->nops; slot++) {
		op = &direct->ops[slot];
		for (i = 0; op->state != KEFA_OP_FREE && i < op->nsegs; i++)
			lost += kefa_keep(op->seg[i].phys, op->seg[i].len);
	}
	return lost;
}

/**
 * kefa_ops_scan() - note which address handles operations use
 * @ep: the endpoint
 * @scan: kefa_domain.ah_scan
 *
 * Polls first if the device raises no event for sends: some may have ended long ago.
 *
 * Context: Process context, under kefa_ep.lock and kefa_dev.lock.
 */
void kefa_ops_scan(struct kefa_ep *ep, u32 scan)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	struct kefa_op *op;
	u32 slot;

	lockdep_assert_held(&ep->lock);
	if (ep->split && ep->state == KEFA_EP_ENABLED && kefa_direct_poll(ep, direct->nops))
		kefa_ep_kick(ep);
	for (slot = 0; direct->ops && slot < ep->tx.base.size; slot++) {
		op = &direct->ops[slot];
		/* Skip registrations, which have no address handle. */
		if (op->state == KEFA_OP_FREE || op->head != op || !op->ah)
			continue;
		op->ah->seen = scan;
		direct->ah_wanted |= !atomic_read(&op->ah->users);
	}
}

/* --- start and end of operations --- */

static void kefa_slot_init(struct kefa_ep *ep, struct kefa_side *side,
			   u32 slot)
{
	struct kefa_op *op = &to_kefa_direct(ep)->ops[slot];
	struct kefa_slots *slots = kefa_slots_of(ep, side);

	op->id = slot;
	op->head = op;
	op->parts = 1;
	op->next = slots->first;
	slots->first = op;
	side->nfree++;
}

/**
 * kefa_ops_init() - allocate memory for operations
 * @ep: the endpoint, about to be enabled
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_ops_init(struct kefa_ep *ep)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	int ret;
	u32 i;

	ep->dma = ep->dom->dev->dma;
	ep->max_map = min_t(size_t, kefa_dma_max_map(ep->dma), KEFA_MAX_RDMA);
	direct->nops = ep->tx.base.size + ep->rx.base.size;
	direct->ops = kvcalloc(direct->nops, sizeof(*direct->ops), GFP_KERNEL);
	if (!direct->ops)
		return -ENOMEM;
	ret = kefa_copies_init(ep) ?: kefa_rests_init(ep) ?: kefa_rnr_init(ep);
	if (ret) {
		kefa_rests_fini(ep);
		kefa_copies_fini(ep, false);
		kvfree(direct->ops);
		direct->ops = NULL;
		return ret;
	}
	direct->special = direct->again || ep->split;
	direct->tx = (struct kefa_slots){ .ended_tail = &direct->tx.ended };
	direct->rx = (struct kefa_slots){ .ended_tail = &direct->rx.ended };
	for (i = direct->nops; i--;)
		kefa_slot_init(ep, i < ep->tx.base.size ? &ep->tx : &ep->rx, i);
	for (i = 0; i < ARRAY_SIZE(ep->wrs); i++)
		kefa_wr_init(&ep->wrs[i], ep->dom->pd);
	for (i = 0; i < ARRAY_SIZE(ep->recvs); i++)
		kefa_recv_wr_init(&ep->recvs[i], ep->dom->pd);
	return 0;
}

/**
 * kefa_ops_fini() - undo kefa_ops_init()
 * @ep: the endpoint, which isn't enabled or is stopped
 *
 * Context: Process context.
 */
void kefa_ops_fini(struct kefa_ep *ep)
{
	struct kefa_direct *direct = to_kefa_direct(ep);

	kefa_copies_fini(ep, false);
	kefa_rests_fini(ep);
	kefa_rnr_fini(ep);
	kvfree(direct->ops);
	direct->ops = NULL;
	ep->tx.nfree = 0;
	ep->rx.nfree = 0;
}

/**
 * kefa_op_take() - take a free slot
 * @ep: the endpoint
 * @side: the direction, with a free slot
 * @head: head of the operation, or NULL if the slot becomes the head
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: the slot, in KEFA_OP_POSTED, otherwise empty.
 */
struct kefa_op *kefa_op_take(struct kefa_ep *ep, struct kefa_side *side,
			     struct kefa_op *head)
{
	struct kefa_op *op = kefa_slots_of(ep, side)->first;

	kefa_op_begin(ep, side, op);
	if (head) {
		op->head = head;
		op->more = true;
		op->epoch = ep->tx_epoch;
		head->more = true;
		head->parts++;
	}
	op->context = NULL;
	op->len = 0;
	op->ah = NULL;
	op->nsegs = 0;
	op->quiet = KEFA_TOLD;
	return op;
}

static struct kefa_side *kefa_op_side(struct kefa_ep *ep, struct kefa_op *op)
{
	return kefa_op_slot(op) < ep->tx.base.size ? &ep->tx : &ep->rx;
}

/* Reset the members that a free slot must not have set, see struct kefa_op. */
static void kefa_op_clear(struct kefa_op *op)
{
	op->head = op;
	op->copy = NULL;
	op->has_mr = false;
	op->err = 0;
	op->prov_errno = 0;
	op->parts = 1;
	op->more = false;
}

static void kefa_op_write_err(const struct kefa_op *op, struct kofi_cq *cq)
{
	const struct fi_cq_err_entry error = {
		.op_context	= op->context,
		.flags		= op->flags,
		.len		= op->len,
		.data		= op->data,
		.err		= op->err,
		.prov_errno	= op->prov_errno,
		.src_addr	= FI_ADDR_NOTAVAIL,
	};

	kofi_cq_write_err(cq, &error);
}

static void kefa_op_write_cq(const struct kefa_op *op, struct kofi_cq *cq)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context	= op->context,
		.flags		= op->flags,
		.len		= op->len,
		.data		= op->data,
	};

	if (op->err)
		kefa_op_write_err(op, cq);
	else if (op->quiet == KEFA_QUIET)
		kofi_cq_unreserve(cq);
	else
		kofi_cq_write(cq, &entry, FI_ADDR_NOTAVAIL);
}

static void kefa_op_finish(struct kefa_ep *ep, struct kefa_op *op)
{
	struct kefa_side *side = kefa_op_side(ep, op);

	trace_kefa_done(ep, op);
	if (op->err) {
		ep->stats.errors++;
		trace_kefa_error(ep, op);
	}
	WARN_ON_ONCE(op->has_rest);
	if (op->copy && !op->has_mr)
		kefa_copy_free(ep, op->copy);
	if (side->base.cq) {
		kefa_op_write_cq(op, side->base.cq);
		side->notify |= op->err || op->quiet != KEFA_QUIET;
	}
	if (unlikely(ep->split) && side == &ep->tx)
		kefa_direct_tx_ended(ep, op);
	if (!op->has_mr)
		kofi_side_count(&side->base, op->flags, op->len, op->err);
	kefa_op_clear(op);
	kefa_op_release(ep, side, op);
	side->room |= side->wanted;
}

/**
 * kefa_op_part_done() - note the end of one part of an operation
 * @ep: the endpoint
 * @head: the operation, which completes if this was the last part
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_op_part_done(struct kefa_ep *ep, struct kefa_op *head)
{
	lockdep_assert_held(&ep->lock);
	if (!--head->parts)
		kefa_op_finish(ep, head);
}

/**
 * kefa_op_done() - handle the completion of a work request
 * @ep: the endpoint
 * @op: slot of the work request
 * @err: positive errno, or 0
 * @prov_errno: the device's status
 *
 * Completes the operation if this was the last of its work requests. progress.c handles
 * successful operations of one work request without a buffer itself.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_op_done(struct kefa_ep *ep, struct kefa_op *op, int err,
		  u32 prov_errno)
{
	struct kefa_op *head = op->head;

	lockdep_assert_held(&ep->lock);
	if (unlikely(to_kefa_direct(ep)->nrnr))
		kefa_rnr_ended(ep, op);
	kefa_unmap(ep, op->seg, op->nsegs, op->dir);
	op->nsegs = 0;
	if (op->has_mr && !kefa_direct_mr_done(ep, op, err, prov_errno))
		return;
	if (err && !head->err) {
		head->err = err;
		head->prov_errno = prov_errno;
	}
	if (op != head) {
		kefa_op_unhurry(ep, op);
		kefa_op_clear(op);
		kefa_op_release(ep, kefa_op_side(ep, op), op);
	} else if (head->parts > 1) {
		kefa_op_set_state(ep, op, KEFA_OP_PARTS);
	}
	kefa_op_part_done(ep, head);
}
