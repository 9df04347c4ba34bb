// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reads and writes of more pieces of memory than are posted at once. The first piece
 * is posted with the operation. The others follow as work requests complete, a few
 * at a time, so that one long transfer doesn't take all slots. The last piece carries
 * remote CQ data, and is posted only after all others have completed, because the CQ data
 * announces that all data has arrived.
 *
 * An operation can always reuse its own slot once its own work request is done, so any
 * number of operations make progress with any number of slots.
 */
#include <linux/slab.h>
#include "../kefa.h"
#include "path.h"
#include "../trace.h"

/**
 * kefa_rests_init() - allocate records for transfers of many pieces
 * @ep: the endpoint, about to be enabled
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_rests_init(struct kefa_ep *ep)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	int i;

	direct->rest_mem = kcalloc(KEFA_RESTS, sizeof(*direct->rest_mem), GFP_KERNEL);
	if (!direct->rest_mem)
		return -ENOMEM;
	for (i = 0; i < KEFA_RESTS; i++)
		list_add_tail(&direct->rest_mem[i].list, &direct->rests_free);
	return 0;
}

/**
 * kefa_rests_fini() - undo kefa_rests_init()
 * @ep: the endpoint, with no operation outstanding
 *
 * Context: Process context.
 */
void kefa_rests_fini(struct kefa_ep *ep)
{
	struct kefa_direct *direct = to_kefa_direct(ep);

	INIT_LIST_HEAD(&direct->rests_free);
	kfree(direct->rest_mem);
	direct->rest_mem = NULL;
}

/* The rest has been posted or given up: it no longer counts as a part of its operation. */
static void kefa_rest_end(struct kefa_ep *ep, struct kefa_rest *rest)
{
	struct kefa_op *head = rest->head;

	lockdep_assert_held(&ep->lock);
	list_move(&rest->list, &to_kefa_direct(ep)->rests_free);
	head->has_rest = false;
	head->rest = NULL;
	kefa_op_part_done(ep, head);
}

/* Take a slot for the next piece: the operation's own if its work request is done. */
static struct kefa_op *kefa_rest_slot(struct kefa_ep *ep, struct kefa_op *head)
{
	if (head->state == KEFA_OP_PARTS) {
		kefa_op_set_state(ep, head, KEFA_OP_POSTED);
		head->id += KEFA_OP_USE;
		head->parts++;
		return head;
	}
	return ep->tx.nfree > ep->tx.kept ? kefa_op_take(ep, &ep->tx, head) : NULL;
}

static void kefa_rest_post(struct kefa_ep *ep, struct kefa_rest *rest,
			   struct kefa_op *op, const struct kefa_seg *seg, bool last)
{
	bool write = rest->head->flags & FI_WRITE;
	struct kefa_wr *wr;

	if (ep->nheld == KEFA_HELD_MAX)
		kefa_direct_flush(ep);
	wr = kefa_direct_wr(ep, op, ep->nheld++);
	kefa_wr_rdma(wr, op->id, write, rest->head->ah->ah, rest->qpn, rest->qkey,
		     rest->raddr, rest->rkey);
	kefa_wr_sge(wr, seg->dma, seg->len);
	if (last && rest->has_data)
		kefa_wr_imm(wr, rest->data);
	op->seg[0] = *seg;
	op->nsegs = 1;
	op->dir = write ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
	rest->raddr += seg->len;
	iov_iter_advance(&rest->iter, seg->len);
}

/*
 * Post the next piece of one operation. Return: 0, -EBUSY if that must wait for the
 * operation's other pieces or for a slot, -EAGAIN when there is no DMA space, or -EINVAL
 * for memory that can't be transferred.
 */
static int kefa_rest_next(struct kefa_ep *ep, struct kefa_rest *rest)
{
	struct kefa_op *op, *head = rest->head;
	struct kefa_seg seg;
	struct kefa_run run;
	bool last;
	int ret;

	/* The rest itself counts as one of the parts. */
	if (head->parts > KEFA_REST_PARTS)
		return -EBUSY;
	ret = kefa_runs(ep, &rest->iter, &run, 1);
	if (ret < 0 && ret != -EMSGSIZE)
		return ret;
	last = run.len == iov_iter_count(&rest->iter);
	if (last && rest->has_data && head->parts > 1)
		return -EBUSY;
	if (head->state != KEFA_OP_PARTS && ep->tx.nfree <= ep->tx.kept)
		return -EBUSY;
	ret = kefa_map(ep, &run, 1, &seg, head->flags & FI_WRITE ? DMA_TO_DEVICE :
								   DMA_FROM_DEVICE);
	if (ret)
		return ret;
	op = kefa_rest_slot(ep, head);
	kefa_rest_post(ep, rest, op, &seg, last);
	return 0;
}

static void kefa_rest_go(struct kefa_ep *ep, struct kefa_rest *rest)
{
	struct kefa_op *head = rest->head;
	int ret = 0;

	while (!ret && !head->err && iov_iter_count(&rest->iter))
		ret = kefa_rest_next(ep, rest);
	if (ret == -EBUSY)
		return;
	if (ret == -EAGAIN) {
		ep->stats.map_failed++;
		queue_delayed_work(kefa_wq, &ep->map_retry,
				   msecs_to_jiffies(KEFA_MAP_RETRY_MS));
		return;
	}
	if (ret && !head->err)
		head->err = -ret;
	kefa_rest_end(ep, rest);
}

/**
 * kefa_rests_go() - post more pieces of partly posted reads and writes
 * @ep: the endpoint, enabled
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_rests_go(struct kefa_ep *ep)
{
	struct kefa_rest *rest, *next;

	lockdep_assert_held(&ep->lock);
	list_for_each_entry_safe(rest, next, &to_kefa_direct(ep)->rests, list)
		kefa_rest_go(ep, rest);
	kefa_direct_flush(ep);
}

static void kefa_rest_fail(struct kefa_ep *ep, struct kefa_rest *rest, int err)
{
	if (!rest->head->err)
		rest->head->err = err;
	kefa_rest_end(ep, rest);
}

/**
 * kefa_rests_fail() - give up all pieces that aren't posted
 * @ep: the endpoint, whose queue pair is destroyed
 * @err: positive errno of the operations
 *
 * Context: Process context, under kefa_ep.lock.
 */
void kefa_rests_fail(struct kefa_ep *ep, int err)
{
	struct kefa_rest *rest, *next;

	lockdep_assert_held(&ep->lock);
	list_for_each_entry_safe(rest, next, &to_kefa_direct(ep)->rests, list)
		kefa_rest_fail(ep, rest, err);
}

/**
 * kefa_rests_give_up() - give up the pieces of one peer that aren't posted
 * @ep: the endpoint, enabled
 * @key: the peer
 *
 * Context: Process context, under kefa_ep.lock.
 */
void kefa_rests_give_up(struct kefa_ep *ep, const struct kefa_av_key *key)
{
	struct kefa_rest *rest, *next;

	lockdep_assert_held(&ep->lock);
	list_for_each_entry_safe(rest, next, &to_kefa_direct(ep)->rests, list)
		if (rest->head->ah == key->ah && rest->qpn == key->qpn)
			kefa_rest_fail(ep, rest, ECANCELED);
}
