// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Resending. After some retries a device reports that the receiver was not ready, and drops
 * the work request. If the ULP set FI_OPT_RNR_TIMEOUT, the endpoint keeps each work
 * request until it completes, and posts it again every KEFA_RNR_DELAY_MS until the timeout.
 * Unlike endless retries of the device, this holds up neither other operations nor the
 * device.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>
#include "../kefa.h"
#include "path.h"

/**
 * kefa_rnr_init() - allocate the work requests to keep for resending
 * @ep: the endpoint, about to be enabled
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_rnr_init(struct kefa_ep *ep)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	u32 i;

	if (!direct->rnr_ms)
		return 0;
	direct->again = kvcalloc(ep->tx.base.size, sizeof(*direct->again), GFP_KERNEL);
	if (!direct->again)
		return -ENOMEM;
	for (i = 0; i < ep->tx.base.size; i++)
		kefa_wr_init(&direct->again[i].wr, ep->dom->pd);
	direct->rnr_first = 0;
	direct->rnr_tail = &direct->rnr_first;
	return 0;
}

/**
 * kefa_rnr_fini() - undo kefa_rnr_init()
 * @ep: the endpoint, with no operation outstanding
 *
 * Context: Process context.
 */
void kefa_rnr_fini(struct kefa_ep *ep)
{
	struct kefa_direct *direct = to_kefa_direct(ep);

	kvfree(direct->again);
	direct->again = NULL;
}

/**
 * kefa_rnr_wr() - get the kept work request of a slot
 * @ep: the endpoint, with kefa_direct.again
 * @op: the slot, being posted
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: the work request.
 */
struct kefa_wr *kefa_rnr_wr(struct kefa_ep *ep, const struct kefa_op *op)
{
	struct kefa_resend *again = &to_kefa_direct(ep)->again[kefa_op_slot(op)];

	lockdep_assert_held(&ep->lock);
	again->end = 0;
	return &again->wr;
}

static void kefa_rnr_add(struct kefa_direct *direct, u32 slot)
{
	direct->again[slot].next = 0;
	*direct->rnr_tail = slot + 1;
	direct->rnr_tail = &direct->again[slot].next;
}

/**
 * kefa_rnr_later() - schedule resending a work request to a receiver that was not ready
 * @ep: the endpoint
 * @op: slot of the work request, posted
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: false if the timeout has expired and the operation fails.
 */
bool kefa_rnr_later(struct kefa_ep *ep, struct kefa_op *op)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	u32 slot = kefa_op_slot(op);
	struct kefa_resend *again;

	lockdep_assert_held(&ep->lock);
	if (!direct->again || slot >= ep->tx.base.size || ep->state != KEFA_EP_ENABLED)
		return false;
	again = &direct->again[slot];
	if (!again->end)
		again->end = (jiffies + msecs_to_jiffies(direct->rnr_ms)) | 1;
	if (time_after(jiffies, again->end))
		return false;
	kefa_op_set_state(ep, op, KEFA_OP_RNR);
	kefa_rnr_add(direct, slot);
	/* Nobody may wait for the operation, but its next attempt mustn't be late. */
	if (ep->split && !again->counted) {
		again->counted = true;
		direct->nrnr++;
	}
	ep->stats.rnr++;
	queue_delayed_work(kefa_wq, &direct->rnr_work, msecs_to_jiffies(KEFA_RNR_DELAY_MS));
	return true;
}

/**
 * kefa_rnr_ended() - note the end of an operation or a part of one
 * @ep: the endpoint, with work requests in kefa_direct.nrnr
 * @op: slot of the work request, of any direction
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_rnr_ended(struct kefa_ep *ep, const struct kefa_op *op)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	u32 slot = kefa_op_slot(op);

	lockdep_assert_held(&ep->lock);
	if (slot >= ep->tx.base.size || !direct->again[slot].counted)
		return;
	direct->again[slot].counted = false;
	direct->nrnr--;
}

static void kefa_rnr_post(struct kefa_ep *ep, u32 slot)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	struct kefa_wr *wr = &direct->again[slot].wr;
	struct kefa_op *op = &direct->ops[slot];

	if (ep->nheld == KEFA_HELD_MAX)
		kefa_direct_flush(ep);
	ep->held[ep->nheld++] = wr;
	kefa_op_set_state(ep, op, KEFA_OP_POSTED);
	op->id += KEFA_OP_USE;
	wr->send.wr_id = op->id;
	if (ep->split)
		kefa_ep_want_tx(ep);
}

static bool kefa_rnr_is_to(const struct kefa_direct *direct, u32 slot,
			   const struct kefa_av_key *key)
{
	return direct->ops[slot].head->ah == key->ah &&
	       direct->again[slot].wr.srd.remote_qpn == key->qpn;
}

/**
 * kefa_rnr_give_up() - resend nothing to one peer any more
 * @ep: the endpoint, enabled
 * @key: the peer
 *
 * Work requests that wait to be resent end. Those that the device has aren't resent.
 *
 * Context: Process context, under kefa_ep.lock.
 */
void kefa_rnr_give_up(struct kefa_ep *ep, const struct kefa_av_key *key)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	u32 slot, next = direct->rnr_first;

	lockdep_assert_held(&ep->lock);
	if (!direct->again)
		return;
	direct->rnr_first = 0;
	direct->rnr_tail = &direct->rnr_first;
	while (next) {
		slot = next - 1;
		next = direct->again[slot].next;
		if (kefa_rnr_is_to(direct, slot, key))
			kefa_op_done(ep, &direct->ops[slot], ECANCELED, 0);
		else
			kefa_rnr_add(direct, slot);
	}
	/* A time in the past, even if the lowest bit was set. */
	for (slot = 0; slot < ep->tx.base.size; slot++)
		if (direct->ops[slot].state == KEFA_OP_POSTED && kefa_rnr_is_to(direct, slot, key))
			direct->again[slot].end = (jiffies - 2) | 1;
}

/**
 * kefa_rnr_work() - resend the waiting work requests of an endpoint
 * @work: kefa_direct.rnr_work
 *
 * Context: Process context.
 */
void kefa_rnr_work(struct work_struct *work)
{
	struct kefa_direct *direct = container_of(to_delayed_work(work), struct kefa_direct,
						  rnr_work);
	struct kefa_ep *ep = &direct->ep;
	u32 slot, next;

	spin_lock_bh(&ep->lock);
	next = ep->state == KEFA_EP_ENABLED ? direct->rnr_first : 0;
	direct->rnr_first = 0;
	direct->rnr_tail = &direct->rnr_first;
	while (next) {
		slot = next - 1;
		next = direct->again[slot].next;
		kefa_rnr_post(ep, slot);
	}
	kefa_direct_flush(ep);
	spin_unlock_bh(&ep->lock);
}
