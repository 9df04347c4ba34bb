// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fast path of messages to and from peers in the same kernel, without packets and headers. A
 * message that a plain call has passed as a whole is copied into its receive, and its slot is
 * returned. Any other slot, and one whose message has no receive or not its turn, is handled by
 * local.c.
 */
#include "fast.h"
#include "local.h"

/* --- sent messages --- */

/* Complete a message that a peer has handled. Return: false if the fast path isn't for it. */
static __always_inline bool kefa_local_sent(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct kefa_rpeer *peer = ts->peer;

	if (unlikely(ts->whole != KEFA_WHOLE_PACKET || ts->status || ts->again || ts->err ||
		     peer->backoff.delay_us || peer->state >= KEFA_RPEER_DYING))
		return false;
	if (unlikely(!list_empty(&peer->wait) || peer->owes))
		kefa_rdm_todo(rdm, peer);
	ts->seg.len = 0;
	ts->shared = false;
	kefa_ts_arrived(ts);
	ts->whole = KEFA_WHOLE_NOT;
	kefa_ts_release(rdm, ts);
	kefa_ts_report(rdm, ts);
	return true;
}

/*
 * A slot has come back that isn't reported by the fast path. If the peer has taken some packets of
 * its message and had no receive for the next one, that one was sent for the first time, and those
 * before it have shown that the peer is ready.
 */
static void kefa_local_progress(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	if (!ts->whole || ts->status != KEFA_STATUS_RNR || !ts->len)
		return;
	ts->len = 0;
	ts->again = false;
	kefa_backoff_arrived(&rdm->backoffs, &ts->peer->backoff);
}

/**
 * kefa_local_reap() - complete slots that peers in the same kernel have handled
 * @rdm: the endpoint
 * @ts: the first slot, or NULL
 *
 * Context: Under kefa_ep.lock. The report is due.
 * Return: number of slots.
 */
unsigned int kefa_local_reap(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct ib_wc wc = { };
	struct kefa_ts *next;
	unsigned int n = 0;

	lockdep_assert_held(&rdm->ep.lock);
	for (; ts; ts = next, n++) {
		next = ts->next;
		if (likely(kefa_local_sent(rdm, ts)))
			continue;
		kefa_rdm_report(rdm);
		kefa_local_progress(rdm, ts);
		wc.wr_id = ts->id;
		wc.vendor_err = ts->status;
		wc.status = ts->status ? IB_WC_GENERAL_ERR : IB_WC_SUCCESS;
		kefa_ts_done(rdm, &wc);
		if (unlikely(rdm->reap))
			kefa_rdm_reap(rdm);
	}
	rdm->local->nout -= n;
	return n;
}

/* --- received messages --- */

/* Get the contents of a slot. Return: false if it has no message, or a part of one. */
static __always_inline bool kefa_local_message(const struct kefa_ts *ts, struct kefa_eager *e)
{
	if (likely(ts->whole)) {
		e->tagged = ts->cq_flags & FI_TAGGED;
		e->tag = ts->tag;
		e->msg_id = ts->msg_id;
		e->len = ts->total;
		e->data = ts->hdr + KEFA_SHAPE_SHORT;
		if (likely(!ts->seg.len))
			return true;
		e->data = phys_to_virt(ts->seg.phys);
		/* If the peer has handled some of its packets, the message has begun. */
		return ts->seg.len == ts->total;
	}
	if (ts->copy || !kefa_eager_parse(ts->hdr, ts->len, e))
		return false;
	if (ts->seg.len) {
		e->data = phys_to_virt(ts->seg.phys);
		e->len = ts->seg.len;
	}
	return true;
}

/* Give a message to its receive. Return: false if the fast path isn't for it. */
static __always_inline bool kefa_local_arrived(struct kefa_rdm *rdm, const struct kefa_ts *ts)
{
	struct kefa_rpeer *peer = rdm->peers.last;
	struct kefa_eager __uninitialized e;
	struct kofi_match_recv *recv;

	if (unlikely(!kefa_local_message(ts, &e)))
		return false;
	if (unlikely(!peer || peer->local != ts->home))
		peer = kefa_local_sender(rdm, ts->home);
	if (unlikely(!peer || !kefa_rpeer_usual(peer) ||
		     (rdm->ordered && e.msg_id != peer->order.exp_id)))
		return false;
	recv = kofi_match_find(&rdm->match, kefa_eager_what(&e), kefa_msg_src(rdm, peer), e.tag);
	/* The match hasn't removed a multi-receive buffer, so msg.c will find it again. */
	if (unlikely(!recv || recv->link.multi))
		return false;
	kefa_arrived(rdm, peer, ts->type, &e);
	kefa_eager_take(rdm, container_of(recv, struct kefa_rop, recv), peer, &e);
	kefa_eager_begun(rdm, peer);
	return true;
}

/*
 * Handle slots of peers, which are returned together if they follow each other. A message that has
 * its receive needs no memory, so it isn't subject to the budget. Return: the first slot that is
 * left for another turn, or NULL.
 */
static __always_inline struct kefa_ts *kefa_local_handle(struct kefa_rdm *rdm, struct kefa_ts *ts,
							 bool requests, unsigned int *n)
{
	u32 admits = requests ? 0 : U32_MAX;
	unsigned int cost = 0;
	struct kefa_ts *next, *first = ts;
	bool asked = !requests;

	lockdep_assert_held(&rdm->ep.lock);
	for (; ts && cost < KEFA_LOCAL_BATCH; ts = next, ++*n) {
		next = ts->next;
		cost += kefa_local_cost(ts);
		ts->status = 0;
		if (!requests || unlikely(!kefa_local_arrived(rdm, ts))) {
			if (!asked)
				admits = kefa_rx_admits(rdm, &rdm->local->next);
			asked = true;
			ts->status = kefa_local_packets(rdm, ts, &admits);
		}
		if (likely(next && next->home == ts->home && cost < KEFA_LOCAL_BATCH))
			continue;
		kefa_local_return(first, ts);
		first = next;
	}
	return ts;
}

/**
 * kefa_local_requests() - handle requests of peers in the same kernel
 * @rdm: the endpoint
 * @ts: the first slot, or NULL
 * @n: number of slots, to which that of the handled ones is added
 *
 * Context: Under kefa_ep.lock. The report is due.
 * Return: the first slot that is left for another turn, or NULL.
 */
struct kefa_ts *kefa_local_requests(struct kefa_rdm *rdm, struct kefa_ts *ts, unsigned int *n)
{
	return kefa_local_handle(rdm, ts, true, n);
}

/**
 * kefa_local_answers() - handle answers, and data, of peers in the same kernel
 * @rdm: the endpoint
 * @ts: the first slot, or NULL
 * @n: number of slots, to which that of the handled ones is added
 *
 * They need no receives.
 *
 * Context: Under kefa_ep.lock. The report is due.
 * Return: the first slot that is left for another turn, or NULL.
 */
struct kefa_ts *kefa_local_answers(struct kefa_rdm *rdm, struct kefa_ts *ts, unsigned int *n)
{
	return kefa_local_handle(rdm, ts, false, n);
}
