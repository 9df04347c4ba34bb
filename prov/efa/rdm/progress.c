// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Progress, which doesn't depend on polling by the ULP. The worker and the readers of a completion
 * queue handle the device's completions, send answers and waiting messages, and post receives.
 * Answers are sent first, because peers wait for them.
 */
#include "../dma.h"
#include "../io.h"
#include "local.h"
#include "rdm.h"

/* --- sending --- */

static void kefa_rdm_arm_timer(struct kefa_rdm *rdm)
{
	ktime_t next = kefa_backoff_next(&rdm->backoffs);

	if (unlikely(rdm->fair.tick))
		next = min(next, rdm->fair.next);
	if (next != KTIME_MAX)
		hrtimer_start(&rdm->timer, next, HRTIMER_MODE_ABS);
}

static void kefa_rdm_backoffs(struct kefa_rdm *rdm)
{
	const ktime_t now = ktime_get();
	struct kefa_backoff *b;
	struct kefa_rpeer *peer;

	while ((b = kefa_backoff_due(&rdm->backoffs, now))) {
		peer = container_of(b, struct kefa_rpeer, backoff);
		kefa_tx_again(rdm, peer);
		kefa_rdm_todo(rdm, peer);
		rdm->ep.tx.room |= rdm->ep.tx.wanted;
	}
}

/* Send what waits for a peer. Return: false if it still waits, for slots or buffers. */
static bool kefa_rdm_serve(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	struct kefa_rop *rop;

	if (kefa_rpeer_dead(peer) || peer->backoff.waiting)
		return true;
	if (!kefa_send_debt(rdm, peer))
		return false;
	while ((rop = list_first_entry_or_null(&peer->wait, struct kefa_rop, peer_link))) {
		if (rop->state == KEFA_ROP_REG)
			return true;
		if (kefa_rdm_send(rdm, rop))
			continue;
		return !kefa_may_send(rdm, peer);
	}
	return true;
}

/* Serve the peers in turn, so that no peer uses all slots. */
static void kefa_rdm_serve_all(struct kefa_rdm *rdm)
{
	struct kefa_rpeer *peer;
	LIST_HEAD(later);

	while (!list_empty(&rdm->todo)) {
		peer = list_first_entry(&rdm->todo, struct kefa_rpeer, todo);
		list_del_init(&peer->todo);
		/* A peer that has died now is in kefa_rdm.dying. */
		if (!kefa_rdm_serve(rdm, peer) && list_empty(&peer->todo))
			list_add_tail(&peer->todo, &later);
	}
	list_splice(&later, &rdm->todo);
	/* Nothing is posted, so no completion will free DMA memory: try again after a delay. */
	if (!list_empty(&rdm->todo) && rdm->ts_nfree == rdm->nts)
		queue_delayed_work(kefa_wq, &rdm->ep.map_retry,
				   msecs_to_jiffies(KEFA_MAP_RETRY_MS));
}

/**
 * kefa_rdm_waits() - check whether kefa_rdm_pump() has more to do than post and free receives
 * @rdm: the endpoint
 *
 * Code that makes this true sets kefa_rdm.waits, too.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it has.
 */
bool kefa_rdm_waits(const struct kefa_rdm *rdm)
{
	lockdep_assert_held(&rdm->ep.lock);
	return rdm->reap || rdm->shut || !list_empty(&rdm->due) || !list_empty(&rdm->todo) ||
	       !list_empty(&rdm->owing) || !list_empty(&rdm->sending) ||
	       !list_empty(&rdm->reading) || !list_empty(&rdm->fair.untold) ||
	       !list_empty(&rdm->asked) ||
	       !RB_EMPTY_ROOT(&rdm->backoffs.queue.rb_root.rb_root);
}

/**
 * kefa_rdm_pump() - send and post everything that can be sent and posted now
 * @rdm: the endpoint, enabled
 *
 * The peers that have died since the last time are buried first.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_pump(struct kefa_rdm *rdm)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (unlikely(rdm->reap))
		kefa_rdm_reap(rdm);
	if (unlikely(!RB_EMPTY_ROOT(&rdm->backoffs.queue.rb_root.rb_root)))
		kefa_rdm_backoffs(rdm);
	if (!list_empty(&rdm->owing))
		kefa_rdm_answer(rdm);
	if (unlikely(!list_empty(&rdm->fair.untold)))
		kefa_rdm_tell_untold(rdm);
	if (unlikely(!list_empty(&rdm->due)))
		kefa_rdm_retry(rdm);
	if (unlikely(!list_empty(&rdm->asked)))
		kefa_rdm_asked(rdm);
	if (!list_empty(&rdm->todo))
		kefa_rdm_serve_all(rdm);
	if (!list_empty(&rdm->sending))
		kefa_rdm_stream(rdm, &rdm->sending, kefa_stream_one);
	if (!list_empty(&rdm->reading))
		kefa_rdm_stream(rdm, &rdm->reading, kefa_read_one);
	if (unlikely(rdm->kept >= rdm->budget))
		kefa_rdm_relieve(rdm);
	kefa_rx_refill(rdm);
	kefa_tx_flush(rdm);
	if (unlikely(rdm->reap))
		kefa_rdm_reap(rdm);
	rdm->waits = kefa_rdm_waits(rdm);
	kefa_rdm_arm_timer(rdm);
}

/* --- completions --- */

/**
 * kefa_rdm_received() - handle the completion of a receive
 * @rdm: the endpoint, with a queue pair
 * @ibwc: the completion
 *
 * Context: Under kefa_ep.lock. kefa_rx_refill() is due.
 */
void kefa_rdm_received(struct kefa_rdm *rdm, const struct ib_wc *ibwc)
{
	const struct kefa_wc wc = kefa_wc_read(ibwc);
	struct kefa_rs *rs = kefa_rs_found(rdm, wc.id);

	if (!rs) {
		rdm->ep.stats.stale++;
		return;
	}
	/* A receive that was flushed has no packet. */
	if (wc.status || wc.len > rdm->stride) {
		kefa_rs_put(rdm, rs);
		return;
	}
	rs->held.len = wc.len;
	rs->held.src_qpn = wc.src_qpn;
	rs->held.slid = wc.slid;
	if (wc.write) {
		kefa_target_imm(rdm, &rs->held, wc.imm);
		return;
	}
	kefa_dma_sync_for_cpu(rdm->ep.dma, rs->dma, wc.len, DMA_FROM_DEVICE);
	kefa_rdm_packet(rdm, &rs->held);
}

/*
 * Post more receives if a burst has used half of them before a poll found less than a batch of
 * completions. A faster burst would have used up all of them, which the device reports only to the
 * sender.
 */
static __always_inline void kefa_rdm_burst(struct kefa_rdm *rdm, unsigned int n)
{
	rdm->burst += rdm->target - min(rdm->nposted, rdm->target) + rdm->nagain;
	if (unlikely(rdm->burst >= rdm->target / 2)) {
		kefa_rx_grow(rdm);
		rdm->burst = 0;
	}
	if (n < KEFA_POLL_BATCH)
		rdm->burst = 0;
}

/*
 * Inline, because most polls of a reader find no completion. @news is set if there may be
 * notifications to send. Return: number of completions.
 */
static __always_inline unsigned int kefa_rdm_take(struct kefa_rdm *rdm, bool *news)
{
	unsigned int n;

	if (unlikely(rdm->ep.nheld))
		kefa_tx_flush(rdm);
	n = kefa_hw_poll(&rdm->ep.hq, rdm->ep.wcs, KEFA_POLL_BATCH);
	if (n) {
		kefa_rdm_wcs(rdm, n);
		kefa_rdm_burst(rdm, n);
	} else {
		rdm->burst = 0;
	}
	if (unlikely(rdm->local) && kefa_local_due(rdm->local))
		n += kefa_local_take(rdm);
	*news = n;
	if (unlikely(kefa_rdm_due(rdm))) {
		kefa_rdm_pump(rdm);
		*news = true;
	} else if (unlikely(rdm->ep.nheld)) {
		kefa_tx_flush(rdm);
	}
	return n;
}

/* --- readers and worker --- */

static bool kefa_rdm_read_now(struct kefa_rdm *rdm, struct kofi_cq_reader *reader)
{
	struct kefa_ep *ep = &rdm->ep;
	unsigned int n = 0;
	bool news = false;

	if (!spin_trylock_bh(&ep->lock))
		return false;
	if (likely(ep->state == KEFA_EP_ENABLED)) {
		ep->reader = reader;
		n = kefa_rdm_take(rdm, &news);
		ep->reader = NULL;
		WRITE_ONCE(ep->polled, true);
	}
	kefa_ep_read_end(ep, news, 0);
	return n;
}

static bool kefa_rdm_read_last(struct kefa_rdm *rdm)
{
	struct kefa_ep *ep = &rdm->ep;
	bool found = false, news = false;

	spin_lock_bh(&ep->lock);
	if (ep->state == KEFA_EP_ENABLED) {
		found = kefa_rdm_take(rdm, &news) || kefa_hw_arm(&ep->hq) > 0;
		WRITE_ONCE(ep->polled, false);
		if (unlikely(rdm->local) && kefa_local_news(rdm->local))
			found = true;
		if (found)
			kefa_ep_watch(ep, KEFA_WATCH_MS);
	}
	kefa_ep_read_end(ep, news, 1);
	return found;
}

/**
 * kefa_rdm_read() - handle the device's completions for a reader of the completion queue
 * @arg: the endpoint
 * @last: the reader will sleep if there are no completions, so events are enabled
 * @reader: the reader, if it can take completions directly
 *
 * Serves as kofi_source.poll.
 *
 * Context: Process context, under RCU.
 * Return: whether there were any completions.
 */
bool kefa_rdm_read(void *arg, bool last, struct kofi_cq_reader *reader)
{
	struct kefa_rdm *rdm = to_kefa_rdm(arg);

	return last ? kefa_rdm_read_last(rdm) : kefa_rdm_read_now(rdm, reader);
}

/* Return: whether there may be more completions. */
static bool kefa_rdm_serve_once(struct kefa_rdm *rdm)
{
	struct kefa_ep *ep = &rdm->ep;
	bool more = false, news;
	unsigned int n;

	spin_lock_bh(&ep->lock);
	ep->worker = NULL;
	if (ep->state == KEFA_EP_ENABLED) {
		n = kefa_rdm_take(rdm, &news);
		more = n < KEFA_POLL_BATCH ? kefa_ep_arm(ep) : true;
		/* There may be room in the completion queue. */
		ep->rx.room |= ep->rx.wanted;
	}
	kefa_ep_unlock_tell(ep, true);
	return more;
}

/**
 * kefa_rdm_work() - serve an endpoint
 * @work: work of the endpoint
 *
 * Context: Process context. Handlers are called from here.
 */
void kefa_rdm_work(struct work_struct *work)
{
	struct kefa_ep *ep = container_of(work, struct kefa_ep, work);
	struct kefa_rdm *rdm = to_kefa_rdm(ep);
	bool more = true;
	int i;

	for (i = 0; i < KEFA_POLL_BUDGET / KEFA_POLL_BATCH && more; i++)
		more = kefa_rdm_serve_once(rdm);
	/* All packets that handlers have posted share one doorbell. */
	if (READ_ONCE(ep->worker)) {
		spin_lock_bh(&ep->lock);
		ep->worker = NULL;
		if (ep->state == KEFA_EP_ENABLED)
			kefa_tx_flush(rdm);
		spin_unlock_bh(&ep->lock);
	}
	/* Don't continue here: other work for this CPU waits until this function returns. */
	if (more)
		kefa_ep_kick(ep);
}
