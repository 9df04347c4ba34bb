// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Progress. A reader of an empty completion queue polls the device. The device's event
 * wakes a reader that sleeps, which then polls. With handlers or counters, an event queues
 * the endpoint's worker on the CPU that got the interrupt. The worker posts held work
 * requests, polls, calls handlers without holding locks, and arms the device's queue when
 * it is empty. If no handler may sleep, a softirq does what the worker does (kefa_ep.softirq),
 * and is meant below where the worker is.
 *
 * The device's completion queue is always in one of these states:
 * - armed, so that an event will come;
 * - the worker is queued or runs, and will arm it;
 * - a reader that was woken is about to poll;
 * - readers poll and don't need events: kefa_ep.idle is queued, and makes the worker check
 *   whether they still poll.
 *
 * If nobody waits for all sends (kefa_ep.split), they have a completion queue of their own, which
 * is polled before that of receives, as a reply mostly comes after the end of its send. While
 * operations of the sending side are outstanding, it is
 * - armed, if somebody waits for one of them or for room, has called fi_expedite(), or one must be
 *   posted again;
 * - or kefa_ep.idle is queued, and makes the worker poll and arm it;
 * - or the worker is queued or runs, or a reader that was woken is about to poll.
 */
#include <linux/lockdep.h>
#include "../kefa.h"
#include "../mr.h"
#include "path.h"
#include "../trace.h"

/**
 * kefa_direct_refused() - handle failure to post work requests
 * @ep: the endpoint
 * @n: number of work requests in the list
 * @err: negative errno of the driver
 *
 * The work request that failed and those after it complete with an error.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_direct_refused(struct kefa_ep *ep, unsigned int n, int err)
{
	struct kefa_op *op;
	unsigned int i;

	lockdep_assert_held(&ep->lock);
	for (i = ep->hq.bad; i < n; i++) {
		op = &to_kefa_direct(ep)->ops[lower_32_bits(ep->held[i]->send.wr_id)];
		if (op->has_mr)
			kefa_direct_mr_refused(ep);
		kefa_op_done(ep, op, -err, 0);
	}
	/* The worker notifies the ULP. */
	kefa_ep_kick(ep);
}

/**
 * kefa_direct_rx_refused() - handle failure to post receives
 * @ep: the endpoint
 * @n: number of receives of kefa_ep.recvs in the list
 * @err: negative errno of the driver
 *
 * The receive that failed and those after it complete with an error.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_direct_rx_refused(struct kefa_ep *ep, unsigned int n, int err)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	unsigned int i;

	lockdep_assert_held(&ep->lock);

	for (i = ep->hq.bad; i < n; i++)
		kefa_op_done(ep, &direct->ops[lower_32_bits(ep->recvs[i].wr.wr_id)], -err, 0);
	/* The worker notifies the ULP. */
	kefa_ep_kick(ep);
}

/**
 * kefa_direct_rx_flush() - post the held receives
 * @ep: the endpoint, enabled
 *
 * A receive that can't be posted completes with an error, because its caller has already
 * got 0.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_direct_rx_flush(struct kefa_ep *ep)
{
	unsigned int n = ep->nrecvs;
	int ret;

	lockdep_assert_held(&ep->lock);
	ep->nrecvs = 0;
	ret = kefa_hw_post_recv(&ep->hq, ep->recvs, n);
	if (unlikely(ret))
		kefa_direct_rx_refused(ep, n, ret);
}

/**
 * kefa_direct_rx_hold() - count a receive as held, and post the held ones if they needn't wait
 * @ep: the endpoint, enabled
 * @more: another receive follows at once
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_direct_rx_hold(struct kefa_ep *ep, bool more)
{
	bool holds = kefa_ep_holds(ep);

	if (++ep->nrecvs == KEFA_RECVS_MAX || (!more && !holds))
		kefa_direct_rx_flush(ep);
	else if (!holds)
		kefa_ep_kick_held(ep);
}

/**
 * kefa_direct_flush() - post the held work requests
 * @ep: the endpoint, enabled
 *
 * A work request that can't be posted completes with an error, because its caller has
 * already got 0.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 */
void kefa_direct_flush(struct kefa_ep *ep)
{
	unsigned int n = ep->nheld;

	lockdep_assert_held(&ep->lock);
	ep->nheld = 0;
	if (n)
		kefa_direct_ring(ep, n);
}

static noinline void kefa_direct_flush_all(struct kefa_ep *ep)
{
	kefa_direct_flush(ep);
	if (ep->nrecvs)
		kefa_direct_rx_flush(ep);
}

/* --- operations that succeed --- */

static __always_inline void kefa_side_add(struct kofi_cq_batch *batch, void *arg, unsigned int n)
{
	const struct kefa_slots *slots = arg;
	const struct kefa_op *op;

	for (op = slots->ended; n; n--, op = op->next) {
		const struct fi_cq_tagged_entry entry = {
			.op_context	= op->context,
			.flags		= op->flags,
			.len		= op->len,
			.data		= op->data,
		};

		if (op->quiet == KEFA_QUIET)
			batch->quiet++;
		else
			kofi_cq_batch_add(batch, &entry, FI_ADDR_NOTAVAIL);
	}
}

/* Count operations that ended, also those that somebody waited for. */
static noinline void kefa_side_count_ended(struct kefa_ep *ep, struct kefa_side *side,
					   const struct kefa_slots *slots)
{
	const struct kefa_op *op;
	unsigned int i;

	for (op = slots->ended, i = 0; i < slots->nended; i++, op = op->next) {
		/* kefa_direct_mr_succeeded() has counted registrations, which have no flags. */
		if (!op->flags)
			continue;
		if (side->base.counted)
			kofi_side_count(&side->base, op->flags, op->len, op->err);
		if (ep->split && side == &ep->tx)
			kefa_direct_tx_ended(ep, op);
		if (unlikely(to_kefa_direct(ep)->nrnr))
			kefa_rnr_ended(ep, op);
	}
}

/*
 * Operations that ended are reported together, so that the completion queue's lock is
 * taken once for all of them, and isn't held while memory is unmapped. Their slots are
 * freed with the report.
 */
static void kefa_side_report(struct kefa_ep *ep, struct kefa_side *side, struct kefa_slots *slots)
{
	unsigned int n = slots->nended;

	kofi_cq_report(side->base.cq, ep->reader, n, &side->notify, kefa_side_add, slots);
	if (unlikely(side->counted) &&
	    (side->base.counted || ep->nawaited || ep->tx_hurry || to_kefa_direct(ep)->nrnr))
		kefa_side_count_ended(ep, side, slots);
	*slots->ended_tail = slots->first;
	slots->first = slots->ended;
	slots->ended_tail = &slots->ended;
	side->nfree += n;
	slots->nended = 0;
}

static __always_inline void kefa_direct_report(struct kefa_ep *ep)
{
	struct kefa_direct *direct = to_kefa_direct(ep);

	if (direct->tx.nended)
		kefa_side_report(ep, &ep->tx, &direct->tx);
	if (direct->rx.nended)
		kefa_side_report(ep, &ep->rx, &direct->rx);
}

/* --- completions of the device --- */

static __always_inline bool kefa_direct_waits_for(const struct kefa_ep *ep, u64 id)
{
	const struct kefa_direct *direct = to_kefa_direct(ep);
	const struct kefa_op *op = &direct->ops[lower_32_bits(id)];

	return lower_32_bits(id) < direct->nops && op->id == id &&
	       op->state == KEFA_OP_POSTED;
}

/* Handle less common completions, after reporting the preceding ones. */
static noinline void kefa_direct_wc_slow(struct kefa_ep *ep, struct kefa_op *op,
					 const struct ib_wc *ibwc)
{
	const struct kefa_wc wc = kefa_wc_read(ibwc);

	if (wc.status == KEFA_STATUS_RNR && !op->has_mr && kefa_rnr_later(ep, op))
		return;
	kefa_direct_report(ep);
	kefa_op_done(ep, op, wc.status ? kefa_status_errno(wc.status) : 0,
		     wc.status);
}

/*
 * A peer's write with data consumed a receive of an endpoint that has only messages.
 * Report it as an error, so that the ULP doesn't take its buffer for a message.
 */
static noinline void kefa_direct_wc_unwanted(struct kefa_ep *ep, struct kefa_op *op)
{
	kefa_direct_report(ep);
	op->len = 0;
	kefa_op_done(ep, op, EPROTO, 0);
}

static __always_inline void kefa_op_unmap(struct kefa_ep *ep,
					  const struct kefa_op *op)
{
	int i;

	for (i = 0; i < op->nsegs; i++)
		kefa_dma_unmap(ep->dma, op->seg[i].dma, op->seg[i].len, op->dir);
}

static __always_inline void kefa_direct_sent(struct kefa_ep *ep, struct kefa_op *op)
{
	kefa_op_end(ep, &to_kefa_direct(ep)->tx, op);
	kefa_op_unmap(ep, op);
	trace_kefa_done(ep, op);
}

static __always_inline void kefa_direct_received(struct kefa_ep *ep,
						 struct kefa_op *op,
						 const struct ib_wc *ibwc)
{
	const struct kefa_wc wc = kefa_wc_read(ibwc);

	kefa_op_end(ep, &to_kefa_direct(ep)->rx, op);
	kefa_op_unmap(ep, op);
	op->len = wc.len;
	ep->stats.rx_bytes += wc.len;
	if (wc.has_imm) {
		op->flags |= FI_REMOTE_CQ_DATA;
		op->data = wc.imm;
	}
	/* A write with data consumes a receive, but doesn't write to its buffer. */
	if (wc.write) {
		op->flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
		op->quiet = KEFA_TOLD;
	}
	trace_kefa_done(ep, op);
}

static __always_inline void kefa_direct_wc(struct kefa_ep *ep,
					   const struct ib_wc *wc)
{
	u32 slot = lower_32_bits(wc->wr_id);
	struct kefa_op *op = &to_kefa_direct(ep)->ops[slot];

	if (unlikely(!kefa_direct_waits_for(ep, wc->wr_id)))
		ep->stats.stale++;
	else if (unlikely(op->more) && op->has_mr && !kefa_wc_failed(wc))
		kefa_direct_mr_succeeded(ep, op);
	else if (unlikely(kefa_wc_failed(wc) | op->more))
		kefa_direct_wc_slow(ep, op, wc);
	else if (unlikely(slot >= ep->tx.base.size && kefa_wc_read(wc).write &&
			  !(ep->caps & (FI_RMA | FI_REMOTE_WRITE))))
		kefa_direct_wc_unwanted(ep, op);
	else if (slot < ep->tx.base.size)
		kefa_direct_sent(ep, op);
	else
		kefa_direct_received(ep, op, wc);
}

/*
 * Operations ended, so a post that was refused may succeed now, and an address handle may
 * have become unused.
 */
static void kefa_direct_freed(struct kefa_ep *ep)
{
	struct kefa_direct *direct = to_kefa_direct(ep);

	lockdep_assert_held(&ep->lock);
	if (direct->ah_wanted) {
		direct->ah_wanted = false;
		kefa_ahs_idle(ep->dom);
	}
	ep->tx.room |= ep->tx.wanted;
	ep->rx.room |= ep->rx.wanted;
}

static noinline void kefa_direct_wcs(struct kefa_ep *ep, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		kefa_direct_wc(ep, &ep->wcs[i]);
	kefa_direct_report(ep);
	if (unlikely(ep->tx.wanted | ep->rx.wanted | to_kefa_direct(ep)->ah_wanted))
		kefa_direct_freed(ep);
}

/* Poll for the end of sends if they have a queue of their own. */
static noinline unsigned int kefa_direct_poll_tx(struct kefa_ep *ep)
{
	unsigned int n;

	if (ep->tx.nfree == ep->tx.base.size)
		return 0;
	n = kefa_hw_poll_tx(&ep->hq, ep->wcs, KEFA_POLL_BATCH);
	if (n)
		kefa_direct_wcs(ep, n);
	return n;
}

/*
 * Inline, because most polls of a reader find no completions. @split: kefa_ep.split, a constant
 * where it matters. Return: number of completions, at least KEFA_POLL_BATCH if there may be more.
 */
static __always_inline unsigned int kefa_direct_poll_once(struct kefa_ep *ep, bool split)
{
	unsigned int n, sent = 0;

	if (split)
		sent = kefa_direct_poll_tx(ep);
	n = kefa_hw_poll(&ep->hq, ep->wcs, KEFA_POLL_BATCH);
	if (n)
		kefa_direct_wcs(ep, n);
	return n + sent;
}

/**
 * kefa_direct_poll() - poll for completions
 * @ep: the endpoint, with a queue pair
 * @budget: approximate maximum of completions
 *
 * When a reader sees a completion, the operation's slot is free for its next post: this
 * writes the completion and frees the slot under one hold of the lock, and a post takes the
 * lock, too.
 *
 * Context: Process or softirq context, under kefa_ep.lock.
 * Return: number of completions; less than @budget if there are no more.
 */
unsigned int kefa_direct_poll(struct kefa_ep *ep, unsigned int budget)
{
	unsigned int n, done = 0;

	lockdep_assert_held(&ep->lock);
	do {
		n = kefa_direct_poll_once(ep, ep->split);
		done += n;
	} while (n >= KEFA_POLL_BATCH && done < budget);
	return done;
}

/**
 * kefa_direct_fail_all() - complete all outstanding operations except registrations
 * @ep: the endpoint, whose queue pair is destroyed
 * @err: positive errno
 *
 * An endpoint that is being closed has no outstanding registrations.
 *
 * Context: Process context, under kefa_ep.lock.
 */
void kefa_direct_fail_all(struct kefa_ep *ep, int err)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	struct kefa_op *op;
	u32 slot;

	lockdep_assert_held(&ep->lock);
	kefa_rests_fail(ep, err);
	/* Skip heads in KEFA_OP_PARTS, which end with their last part. */
	for (slot = 0; slot < direct->nops; slot++) {
		op = &direct->ops[slot];
		if (op->state != KEFA_OP_POSTED && op->state != KEFA_OP_RNR)
			continue;
		if (op->has_mr)
			kefa_direct_mr_lost(ep, op);
		else
			kefa_op_done(ep, op, err, 0);
	}
	kefa_direct_freed(ep);
}

/*
 * Return: whether the polling reader reads a queue for sends only. Receives are left to others, so
 * that a handler that reads such a queue isn't called again for them.
 */
static __always_inline bool kefa_direct_reads_tx(const struct kefa_ep *ep)
{
	return ep->reader && ep->reader->cq == ep->tx.base.cq && ep->reader->cq != ep->rx.base.cq;
}

/*
 * Poll one batch, as posts wait for the lock and it disables softirqs.
 * Return: number of completions.
 */
static __always_inline unsigned int kefa_direct_take(struct kefa_ep *ep, bool split)
{
	unsigned int n;

	if (unlikely(ep->nheld | ep->nrecvs) && !kefa_ep_holds(ep))
		kefa_direct_flush_all(ep);
	if (split && kefa_direct_reads_tx(ep))
		n = kefa_direct_poll_tx(ep);
	else
		n = kefa_direct_poll_once(ep, split);
	if (unlikely(!list_empty(&to_kefa_direct(ep)->rests)))
		kefa_rests_go(ep);
	return n;
}

static __always_inline bool kefa_direct_read_now(struct kefa_ep *ep, struct kofi_cq_reader *reader,
						 bool split)
{
	unsigned int n = 0;

	if (!spin_trylock_bh(&ep->lock))
		return false;
	if (likely(ep->state == KEFA_EP_ENABLED)) {
		ep->reader = reader;
		n = kefa_direct_take(ep, split);
		if (!split || !kefa_direct_reads_tx(ep))
			WRITE_ONCE(ep->polled, true);
		ep->reader = NULL;
	}
	__kefa_ep_read_end(ep, n, 0);
	return n;
}

/*
 * After polling, arm the queue for sends if somebody waits for one that is outstanding. Return:
 * whether there are completions already.
 */
static noinline bool kefa_direct_arm_tx(struct kefa_ep *ep)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	bool late = ep->tx_late;

	lockdep_assert_held(&ep->lock);
	ep->tx_late = false;
	ep->tx_armed = false;
	if (ep->tx.nfree == ep->tx.base.size) {
		WARN_ON_ONCE(ep->tx_hurry || ep->nawaited || direct->nrnr);
		ep->tx_hurry_more = false;
		return false;
	}
	if (unlikely(ep->tx_hurry_more))
		kefa_ep_hurry(ep);
	if (late || ep->tx_hurry || ep->tx.wanted || !list_empty(&direct->rests) || direct->nrnr ||
	    kefa_ep_awaits_tx(ep)) {
		ep->tx_armed = true;
		return kefa_hw_arm_tx(&ep->hq) > 0;
	}
	kefa_ep_watch(ep, KEFA_LAZY_MS);
	return false;
}

static __always_inline bool kefa_direct_sleep(struct kefa_ep *ep, bool split)
{
	bool found = false;

	spin_lock_bh(&ep->lock);
	if (ep->state == KEFA_EP_ENABLED) {
		found = kefa_direct_take(ep, split) || kefa_hw_arm(&ep->hq) > 0 ||
			(split && kefa_direct_arm_tx(ep));
		WRITE_ONCE(ep->polled, false);
		if (found)
			kefa_ep_watch(ep, KEFA_WATCH_MS);
	}
	__kefa_ep_read_end(ep, found, 1);
	return found;
}

/* For a reader that is about to sleep. */
static noinline bool kefa_direct_read_last(struct kefa_ep *ep)
{
	return kefa_direct_sleep(ep, false);
}

static noinline bool kefa_direct_read_last_split(struct kefa_ep *ep)
{
	return kefa_direct_sleep(ep, true);
}

/**
 * kefa_direct_read() - poll for a reader
 * @arg: the endpoint
 * @last: the reader sleeps if there are no completions, so arm the queue
 * @reader: the reader, if it can take completions directly
 *
 * Serves as kofi_source.poll.
 *
 * Context: Process context, under RCU.
 * Return: whether there were completions.
 */
bool kefa_direct_read(void *arg, bool last, struct kofi_cq_reader *reader)
{
	return last ? kefa_direct_read_last(arg) : kefa_direct_read_now(arg, reader, false);
}

/**
 * kefa_direct_read_split() - kefa_direct_read() for an endpoint with kefa_ep.split
 * @arg: the endpoint
 * @last: the reader sleeps if there are no completions, so arm the queues
 * @reader: the reader, if it can take completions directly
 *
 * Context: Process context, under RCU.
 * Return: whether there were completions.
 */
bool kefa_direct_read_split(void *arg, bool last, struct kofi_cq_reader *reader)
{
	return last ? kefa_direct_read_last_split(arg) : kefa_direct_read_now(arg, reader, true);
}

/* Return: whether there are more completions; if not, the queue is armed or needn't be. */
static __always_inline bool kefa_direct_serve(struct kefa_ep *ep, bool split)
{
	bool more = false;
	unsigned int n;

	spin_lock_bh(&ep->lock);
	ep->worker = NULL;
	if (ep->state == KEFA_EP_ENABLED) {
		n = kefa_direct_take(ep, split);
		/* Call handlers before arming: completions that arrive meanwhile need no event. */
		if (n == 0 || (n < KEFA_POLL_BATCH && ep->by_readers)) {
			more = kefa_ep_arm(ep);
			if (split)
				more |= kefa_direct_arm_tx(ep);
		} else {
			more = true;
		}
	}
	kefa_ep_unlock_tell(ep, true);
	return more;
}

static __always_inline bool kefa_direct_serve_some(struct kefa_ep *ep, bool split)
{
	bool more = true;
	int i;

	for (i = 0; i < KEFA_POLL_BUDGET / KEFA_POLL_BATCH && more; i++)
		more = kefa_direct_serve(ep, split);
	return more;
}

static noinline bool kefa_direct_serve_split(struct kefa_ep *ep)
{
	return kefa_direct_serve_some(ep, true);
}

/*
 * Post the held work requests of handlers that the worker or the softirq has called after it had
 * armed the queues. Return: whether there are more completions.
 */
static bool kefa_direct_end_handlers(struct kefa_ep *ep)
{
	bool more = false;

	/* Only this worker writes @worker, so no lock is needed. */
	if (!READ_ONCE(ep->worker))
		return false;
	spin_lock_bh(&ep->lock);
	ep->worker = NULL;
	if (ep->state == KEFA_EP_ENABLED) {
		kefa_direct_flush_all(ep);
		/* kefa_ep_tx_posted() has left that to the worker. */
		if (ep->split)
			more = kefa_direct_arm_tx(ep);
	}
	spin_unlock_bh(&ep->lock);
	return more;
}

static void kefa_direct_run(struct kefa_ep *ep)
{
	bool more;

	more = unlikely(ep->split) ? kefa_direct_serve_split(ep) :
				     kefa_direct_serve_some(ep, false);
	more |= kefa_direct_end_handlers(ep);
	/* Queue the work again instead of looping, so that other work of this CPU can run. */
	if (more)
		kefa_ep_kick(ep);
}

/* Post what is held for a post that hasn't come. Handlers are left to the softirq. */
static void kefa_direct_post_held(struct kefa_ep *ep)
{
	spin_lock_bh(&ep->lock);
	/* After handlers, the softirq posts everything. */
	if (ep->state == KEFA_EP_ENABLED && !ep->worker)
		kefa_direct_flush_all(ep);
	spin_unlock_bh(&ep->lock);
}

/**
 * kefa_direct_work() - serve an endpoint; with kefa_ep.softirq, only post what is held
 * @work: kefa_ep.work
 *
 * Context: Process context. Calls handlers.
 */
void kefa_direct_work(struct work_struct *work)
{
	struct kefa_ep *ep = container_of(work, struct kefa_ep, work);

	if (ep->softirq)
		kefa_direct_post_held(ep);
	else
		kefa_direct_run(ep);
}

/**
 * kefa_direct_soft() - serve an endpoint with kefa_ep.softirq
 * @work: kefa_ep.soft
 *
 * Context: Softirq context. Calls handlers.
 */
void kefa_direct_soft(struct work_struct *work)
{
	kefa_direct_run(container_of(work, struct kefa_ep, soft));
}
