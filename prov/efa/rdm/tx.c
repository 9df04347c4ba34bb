// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Send slots. A packet and its headers occupy a slot until the device has delivered the packet.
 * One that found the peer without a receive is sent again unchanged. Some slots are reserved for
 * answers, so that no amount of data can delay an answer that a peer waits for. An answer to a
 * peer that isn't ready frees its slot, and is built again later, so that a peer that takes no
 * answers doesn't use up the slots of others. Only an answer without an operation keeps its slot; a
 * peer that takes too few of these is declared dead.
 *
 * A packet of up to 32 bytes is sent inline, in the work request. The data of a packet of up to
 * KEFA_TS_ROOM bytes is copied next to the headers. The data of a longer packet is sent without a
 * copy if it is physically contiguous; otherwise the whole packet is copied to a bounce buffer.
 * There are few of these, so a packet that waits for its peer has none.
 */
#include <linux/list_sort.h>
#include <linux/slab.h>
#include "../dma.h"
#include "../io.h"
#include "../mr.h"
#include "../trace.h"
#include "local.h"
#include "rdm.h"
#include "target.h"
#include "tx.h"

#define KEFA_TS_PER_PAGE	(PAGE_SIZE / KEFA_TS_ROOM)

static int kefa_ts_page(struct kefa_rdm *rdm, u32 first)
{
	struct kefa_ts *ts = &rdm->ts[first];
	u32 i;

	ts->hdr = (u8 *)__get_free_page(GFP_KERNEL);
	if (!ts->hdr)
		return -ENOMEM;
	ts->dma = kefa_dma_map(rdm->ep.dma, virt_to_phys(ts->hdr), PAGE_SIZE, DMA_TO_DEVICE);
	if (dma_mapping_error(rdm->ep.dma, ts->dma)) {
		free_page((unsigned long)ts->hdr);
		ts->hdr = NULL;
		return -ENOMEM;
	}
	for (i = 1; i < KEFA_TS_PER_PAGE && first + i < rdm->nts; i++) {
		ts[i].hdr = ts->hdr + i * KEFA_TS_ROOM;
		ts[i].dma = ts->dma + i * KEFA_TS_ROOM;
	}
	return 0;
}

/**
 * kefa_tx_init() - allocate send slots
 * @rdm: the endpoint, about to be enabled
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM. The caller calls kefa_tx_fini() even after an error.
 */
int kefa_tx_init(struct kefa_rdm *rdm)
{
	u32 i;

	rdm->ts = kvcalloc(rdm->nts, sizeof(*rdm->ts), GFP_KERNEL);
	if (!rdm->ts)
		return -ENOMEM;
	for (i = 0; i < rdm->nts; i++) {
		if (i % KEFA_TS_PER_PAGE == 0 && kefa_ts_page(rdm, i))
			return -ENOMEM;
		rdm->ts[i].id = i;
		INIT_LIST_HEAD(&rdm->ts[i].list);
		rdm->ts[i].next = rdm->ts_free;
		rdm->ts_free = &rdm->ts[i];
	}
	rdm->ts_nfree = rdm->nts;
	rdm->ts_ctl = clamp(rdm->nts / 8, 8U, 32U);
	rdm->ts_share = max(rdm->nts / KEFA_TX_SHARE, 16U);
	rdm->ts_left = min_t(u32, rdm->ts_share / 2, KEFA_HELD_MAX);
	return 0;
}

/**
 * kefa_tx_fini() - undo kefa_tx_init()
 * @rdm: the endpoint, whose slots are all free
 * @reaches: the device may still read the slots' memory, so that is leaked
 *
 * Context: Process context.
 */
void kefa_tx_fini(struct kefa_rdm *rdm, bool reaches)
{
	struct kefa_ts *all, *ts;
	u32 i;

	/* fi_flush() and fi_av_remove() look at the slots, also while the device is removed. */
	spin_lock_bh(&rdm->ep.lock);
	all = rdm->ts;
	rdm->ts = NULL;
	rdm->ts_free = NULL;
	spin_unlock_bh(&rdm->ep.lock);
	for (i = 0; all && i < rdm->nts; i += KEFA_TS_PER_PAGE) {
		ts = &all[i];
		if (!ts->hdr)
			continue;
		kefa_dma_unmap(rdm->ep.dma, ts->dma, PAGE_SIZE, DMA_TO_DEVICE);
		if (!reaches)
			free_page((unsigned long)ts->hdr);
	}
	kvfree(all);
}

/* Clear the fields that are clear in a free slot. */
static void kefa_ts_clear(struct kefa_ts *ts)
{
	ts->seg.len = 0;
	ts->rop = NULL;
	ts->copy = NULL;
	ts->err = 0;
	ts->what = KEFA_TS_PACKET;
	ts->again = false;
	ts->has_imm = false;
	ts->shared = false;
	ts->lends = false;
	ts->whole = KEFA_WHOLE_NOT;
}

/**
 * kefa_ts_free() - free a send slot
 * @rdm: the endpoint
 * @ts: the slot, which the device doesn't use. If its peer was removed, this may free the peer
 *
 * If the slot has a whole message, its completion is written, with kefa_ts.err.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_ts_free(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct kefa_rpeer *peer = ts->peer;

	lockdep_assert_held(&rdm->ep.lock);
	if (ts->what == KEFA_TS_FETCH || ts->lends)
		kefa_mr_unreach(ts->mr);
	else if (ts->seg.len && !ts->shared)
		kefa_dma_unmap(rdm->ep.dma, ts->seg.dma, ts->seg.len,
			       ts->what == KEFA_TS_READ ? DMA_FROM_DEVICE : DMA_TO_DEVICE);
	if (ts->copy)
		kefa_copy_free(&rdm->ep, ts->copy);
	else if (unlikely(kefa_ts_unmade(ts) && kefa_ts_saves(ts)))
		kfree(ts->kept);
	if (ts->whole)
		kefa_ts_tell(rdm, ts);
	kefa_ts_arrived(ts);
	kefa_target_served(ts);
	list_del_init(&ts->list);
	kefa_ts_clear(ts);
	kefa_ts_release(rdm, ts);
	kefa_ts_unused(rdm, ts);
	kefa_rdm_put_wr(rdm, peer);
}

/**
 * kefa_ts_hold() - hold a work request for the next doorbell
 * @rdm: the endpoint, enabled
 * @ts: slot of the work request. The caller calls kefa_tx_posted() or kefa_tx_flush() later
 *
 * Context: Under kefa_ep.lock.
 * Return: the work request, which the caller fills in.
 */
struct kefa_wr *kefa_ts_hold(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct kefa_ep *ep = &rdm->ep;

	lockdep_assert_held(&ep->lock);
	kefa_tx_ready(rdm, 1);
	kefa_ts_set_state(rdm, ts, KEFA_TS_POSTED);
	ep->held[ep->nheld] = &ep->wrs[ep->nheld];
	return ep->held[ep->nheld++];
}

static void kefa_ts_wr(struct kefa_rdm *rdm, struct kefa_ts *ts, struct kefa_wr *wr)
{
	const bool headerless = !ts->type;
	struct kefa_rpeer *peer = ts->peer;

	kefa_wr_send(wr, ts->id, peer->ah->ah,
		     headerless ? peer->rq_qpn : kefa_rpeer_qpn(peer),
		     headerless ? peer->rq_qkey : kefa_rpeer_connid(peer));
	if (ts->has_imm)
		kefa_wr_imm(wr, ts->imm);
	if (ts->len && ts->len <= KEFA_MAX_INLINE && !ts->seg.len && !ts->copy) {
		kefa_wr_inline(wr, ts->hdr, ts->len);
		return;
	}
	if (ts->len)
		kefa_wr_sge(wr, ts->copy ? ts->copy->dma : ts->dma, ts->len);
	if (ts->seg.len)
		kefa_wr_sge(wr, ts->seg.dma, ts->seg.len);
	/* The driver reads the first element even if the message is empty. */
	if (!wr->send.num_sge)
		kefa_wr_sge(wr, rdm->ep.dom->nothing_dma, 0);
}

/**
 * kefa_ts_post() - hold a packet, or a read or write of the ULP, for the next doorbell
 * @rdm: the endpoint, enabled
 * @ts: slot of the packet. The caller calls kefa_tx_posted() or kefa_tx_flush() later
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_ts_post(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct kefa_wr *wr;

	if (unlikely(ts->peer->flags & KEFA_RPEER_LOCAL)) {
		kefa_ts_set_state(rdm, ts, KEFA_TS_POSTED);
		kefa_local_post(rdm, ts, kefa_row_of(ts->type)->flags & KEFA_ROW_REQ ?
				KEFA_LOCAL_REQUESTS : KEFA_LOCAL_ANSWERS);
		return;
	}
	wr = kefa_ts_hold(rdm, ts);
	if (ts->what) {
		kefa_rdma_wr(rdm, ts, wr);
		return;
	}
	kefa_dma_sync_for_device(rdm->ep.dma, ts->dma, KEFA_TS_ROOM, DMA_TO_DEVICE);
	kefa_ts_wr(rdm, ts, wr);
}

typedef void kefa_ts_done_fn(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err,
			     u32 status);

/* Functions for completions of work requests that aren't packets. */
static kefa_ts_done_fn *const kefa_ts_done_fns[KEFA_TS_WHATS] = {
	[KEFA_TS_READ]	= kefa_read_done,
	[KEFA_TS_REG]	= kefa_source_registered,
	[KEFA_TS_INVAL]	= kefa_source_invalidated,
	[KEFA_TS_WRITE]	= kefa_rdma_done,
	[KEFA_TS_FETCH]	= kefa_target_fetched,
};

/* A read or write by the device that has no operation is over. */
static void kefa_ts_whole_done(struct kefa_rdm *rdm, struct kefa_ts *ts, int err, u32 status)
{
	if (err) {
		if (kefa_read_fatal(err))
			kefa_rdm_kill(rdm, ts->peer, err, status);
		kefa_ts_fail(rdm, ts, err, status);
	} else if (ts->what == KEFA_TS_READ) {
		rdm->ep.stats.rx_bytes += ts->seg.len;
	}
	kefa_ts_free(rdm, ts);
}

static noinline void kefa_ts_other_done(struct kefa_rdm *rdm, struct kefa_ts *ts, int err,
					u32 status)
{
	struct kefa_rop *rop = ts->rop;
	const u32 len = ts->seg.len;
	const u8 what = ts->what;
	struct kefa_mr *mr = what == KEFA_TS_FETCH ? ts->mr : NULL;

	if (ts->whole) {
		kefa_ts_whole_done(rdm, ts, err, status);
		return;
	}
	/* The ULP must hear of a write to its region before it hears that the region is invalid. */
	if (mr) {
		ts->what = KEFA_TS_PACKET;
		ts->seg.len = 0;
	}
	kefa_ts_free(rdm, ts);
	/* The operation can't end before the end of this function decrements its count. */
	kefa_ts_done_fns[what](rdm, rop, len, err, status);
	if (mr)
		kefa_mr_unreach(mr);
	rop->wrs--;
	kefa_rdm_end(rdm, rop);
}

/**
 * kefa_ts_fail() - mark a packet as failed that the device may still have
 * @rdm: the endpoint
 * @ts: slot of the packet
 * @err: positive errno
 * @prov: status of the device
 *
 * The completion of a whole message is written when its slot is freed. Other packets need no
 * mark, because their operation has failed.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_ts_fail(struct kefa_rdm *rdm, struct kefa_ts *ts, int err, u32 prov)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (!ts->whole || ts->err)
		return;
	ts->err = err;
	ts->prov = prov;
}

static void kefa_rdm_back_off(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	kefa_backoff_begin(&rdm->backoffs, &peer->backoff, ktime_get());
	rdm->waits = true;
}

/*
 * Consequence of a packet that won't arrive.
 * @KEFA_LOSS_NONE: none, because the peer was dead before
 * @KEFA_LOSS_FATAL: the peer is dead, because it would handle no later packet
 * @KEFA_LOSS_HEIR: so is the peer that has the address now, if it waits for the packet
 * @KEFA_LOSS_AGAIN: the packet is due again, with the peer's next packet, or at once if the device
 *	has refused it, as the peer would wait for ever
 * @KEFA_LOSS_UNTOLD: as before, if the peer comes back
 */
enum kefa_loss {
	KEFA_LOSS_NONE,
	KEFA_LOSS_FATAL,
	KEFA_LOSS_HEIR,
	KEFA_LOSS_AGAIN,
	KEFA_LOSS_UNTOLD,
};

/* A HANDSHAKE may be lost: it may answer a peer that has sent something and exited. */
static const struct {
	u8	handshake;
	u8	other;
} kefa_losses[KEFA_RPEER_STATES] = {
	[KEFA_RPEER_KNOWN]	= { KEFA_LOSS_AGAIN, KEFA_LOSS_FATAL },
	[KEFA_RPEER_SHAKING]	= { KEFA_LOSS_AGAIN, KEFA_LOSS_FATAL },
	[KEFA_RPEER_READY]	= { KEFA_LOSS_AGAIN, KEFA_LOSS_FATAL },
	[KEFA_RPEER_DYING]	= { KEFA_LOSS_NONE, KEFA_LOSS_FATAL },
	[KEFA_RPEER_DEAD]	= { KEFA_LOSS_NONE, KEFA_LOSS_NONE },
	[KEFA_RPEER_GONE]	= { KEFA_LOSS_UNTOLD, KEFA_LOSS_HEIR },
};

static enum kefa_loss kefa_ts_loss(const struct kefa_ts *ts)
{
	return ts->type == KEFA_HANDSHAKE_PKT ? kefa_losses[ts->peer->state].handshake :
						kefa_losses[ts->peer->state].other;
}

/* A packet won't arrive, because of @status, or because the device refused it if that is 0. */
static void kefa_ts_lost(struct kefa_rdm *rdm, struct kefa_ts *ts, int err, u32 status)
{
	const enum kefa_loss loss = kefa_ts_loss(ts);
	struct kefa_rpeer *peer = ts->peer;
	struct kefa_rop *rop = ts->rop;

	if (loss == KEFA_LOSS_FATAL) {
		kefa_rdm_kill(rdm, peer, err, status);
	} else if (loss == KEFA_LOSS_HEIR && ts->ordered) {
		kefa_rdm_lost(rdm, peer);
	} else if (loss == KEFA_LOSS_AGAIN && !status) {
		kefa_shake_untold(peer);
		kefa_rdm_back_off(rdm, peer);
	} else if (loss == KEFA_LOSS_AGAIN || loss == KEFA_LOSS_UNTOLD) {
		kefa_peers_untold(&rdm->peers, peer);
	}
	kefa_ts_fail(rdm, ts, err, status);
	kefa_ts_free(rdm, ts);
	if (!rop)
		return;
	rop->wrs--;
	/* Only the death of the peer ends the operation's protocol. */
	if (loss != KEFA_LOSS_FATAL) {
		rop->flags |= KEFA_ROP_OVER;
		kefa_rdm_end(rdm, rop);
	}
}

static struct kefa_ts *kefa_ts_of(struct kefa_rdm *rdm, u64 id)
{
	const u32 slot = lower_32_bits(id);

	if (slot >= rdm->nts || rdm->ts[slot].id != id ||
	    rdm->ts[slot].state != KEFA_TS_POSTED)
		return NULL;
	return &rdm->ts[slot];
}

/**
 * kefa_tx_refused() - put aside the work requests that the device refused
 * @rdm: the endpoint, enabled
 * @n: number of entries of kefa_ep.held that were posted
 * @err: positive errno
 *
 * They are the entries from kefa_hw_qp.bad on. Their slots and operations stay as they are until
 * kefa_rdm_reap(), so callers that ring the doorbell can go on using them.
 *
 * Context: Under kefa_ep.lock.
 */
noinline void kefa_tx_refused(struct kefa_rdm *rdm, unsigned int n, int err)
{
	struct kefa_ep *ep = &rdm->ep;
	struct kefa_ts *ts;
	unsigned int i;

	for (i = ep->hq.bad; i < n; i++) {
		ts = kefa_ts_of(rdm, ep->held[i]->send.wr_id);
		if (WARN_ON_ONCE(!ts))
			continue;
		if (!ts->err) {
			ts->err = err;
			ts->prov = 0;
		}
		kefa_ts_set_state(rdm, ts, KEFA_TS_REFUSED);
		list_add_tail(&ts->list, &rdm->refusals);
		if (!ts->what && kefa_ts_loss(ts) == KEFA_LOSS_FATAL)
			kefa_rdm_kill(rdm, ts->peer, err, 0);
	}
	rdm->reap = true;
	rdm->waits = true;
	kefa_ep_kick(ep);
}

/**
 * kefa_tx_reap() - fail the oldest work request that the device has refused
 * @rdm: the endpoint
 *
 * Context: Under kefa_ep.lock. Only kefa_rdm_reap() calls this.
 * Return: whether there was one.
 */
bool kefa_tx_reap(struct kefa_rdm *rdm)
{
	struct kefa_ts *ts = list_first_entry_or_null(&rdm->refusals, struct kefa_ts, list);

	if (!ts)
		return false;
	list_del_init(&ts->list);
	if (ts->what)
		kefa_ts_other_done(rdm, ts, ts->err, 0);
	else
		kefa_ts_lost(rdm, ts, ts->err, 0);
	return true;
}

/**
 * kefa_tx_flush() - ring the doorbell for packets that are held
 * @rdm: the endpoint, enabled
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_tx_flush(struct kefa_rdm *rdm)
{
	struct kefa_ep *ep = &rdm->ep;
	unsigned int n = ep->nheld;
	int ret;

	lockdep_assert_held(&ep->lock);
	ep->nheld = 0;
	if (!n)
		return;
	ep->stats.doorbells++;
	ret = kefa_hw_post_send(&ep->hq, ep->held, n);
	if (unlikely(ret))
		kefa_tx_refused(rdm, n, -ret);
}

/**
 * kefa_tx_posted() - ring the doorbell for packets that were added, or leave it for later
 * @rdm: the endpoint, enabled
 * @more: the ULP will post more at once (FI_MORE)
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_tx_posted(struct kefa_rdm *rdm, bool more)
{
	const bool holds = kefa_ep_holds(&rdm->ep);

	if (!more && !holds)
		kefa_tx_flush(rdm);
	else if (!holds)
		kefa_ep_kick(&rdm->ep);
}

/*
 * Return: whether a packet that found no receive waits in its slot. Otherwise its operation or its
 * peer has it sent again.
 */
static bool kefa_ts_waits(const struct kefa_ts *ts)
{
	const struct kefa_pkt_ops *ops = kefa_row_of(ts->type ?: KEFA_EAGER_MSGRTM_PKT)->ops;

	if (ts->whole)
		return true;
	return ts->rop ? !ops->unsend : !ops->unsend_alone;
}

/* Return: number of answers without an operation that wait for a peer; for NULL, for all peers. */
static u32 kefa_answers_parked(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	const struct kefa_ts *ts;
	u32 n = 0;

	list_for_each_entry(ts, &rdm->parked, list)
		n += kefa_ts_answers_alone(ts) && !kefa_rpeer_dead(ts->peer) &&
		     (!peer || ts->peer == peer);
	return n;
}

/*
 * Another answer without an operation waits for @peer, and occupies a slot. Return: the peer that
 * has too many of them, which may be another one; or NULL.
 */
static struct kefa_rpeer *kefa_answers_overdue(const struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	struct kefa_rpeer *worst = peer;
	u32 n, most = kefa_answers_parked(rdm, peer);
	const struct kefa_ts *ts;

	if (most > KEFA_OWED_MAX)
		return peer;
	if (kefa_answers_parked(rdm, NULL) <= KEFA_RDM_SPARE_OPS)
		return NULL;
	list_for_each_entry(ts, &rdm->parked, list) {
		n = ts->peer == worst ? 0 : kefa_answers_parked(rdm, ts->peer);
		if (n <= most)
			continue;
		most = n;
		worst = ts->peer;
	}
	return worst;
}

/*
 * Free the copy buffer of a packet that waits for its peer, which may never be ready. The number of
 * such packets is limited: each has a slot. If memory is short, the packet keeps its buffer.
 */
static void kefa_ts_save(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	ts->kept = kmemdup(ts->copy->data, ts->len, GFP_ATOMIC | __GFP_NOWARN);
	if (!ts->kept)
		return;
	kefa_copy_free(&rdm->ep, ts->copy);
	ts->copy = NULL;
}

/* Undo kefa_ts_save(). Return: 0, or -EAGAIN if no copy buffer is free. */
static int kefa_ts_restore(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	/* The ULP's own packet may take any: it holds up later messages to its peer. */
	if (ts->rop)
		ts->copy = kefa_copy_take(&rdm->ep);
	if (!ts->copy && (ts->rop || !kefa_slice_copy(rdm, ts)))
		return -EAGAIN;
	memcpy(ts->copy->data, ts->kept, ts->len);
	kfree(ts->kept);
	ts->kept = NULL;
	kefa_dma_sync_for_device(rdm->ep.dma, ts->copy->dma, ts->len, DMA_TO_DEVICE);
	return 0;
}

/* Have others use the copy buffer of a packet that waits for its peer. */
static void kefa_ts_uncopy(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	if (kefa_ts_saves(ts))
		kefa_ts_save(rdm, ts);
	else
		kefa_target_park(rdm, ts);
	/* A call may have been refused for lack of the buffer. */
	rdm->ep.tx.room |= rdm->ep.tx.wanted;
}

/* Undo kefa_ts_uncopy(). Return: 0, or as kefa_target_again(). */
static int kefa_ts_recopy(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	return kefa_ts_saves(ts) ? kefa_ts_restore(rdm, ts) : kefa_target_again(rdm, ts);
}

/* A packet waits for a peer that has no receive. */
static void kefa_ts_park(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct kefa_rpeer *worst = NULL;

	ts->again = true;
	kefa_ts_set_state(rdm, ts, KEFA_TS_PARKED);
	list_add_tail(&ts->list, &rdm->parked);
	if (ts->copy)
		kefa_ts_uncopy(rdm, ts);
	if (unlikely(kefa_ts_answers_alone(ts))) {
		worst = kefa_answers_overdue(rdm, ts->peer);
		kefa_silent_arm(rdm);
	}
	if (!worst)
		return;
	rdm->stats.cut++;
	kefa_rdm_kill(rdm, worst, ENOBUFS, 0);
}

/**
 * kefa_tx_unpark() - free the slots of an operation that are all parked
 * @rdm: the endpoint
 * @rop: the operation, which isn't freed
 *
 * Context: Under kefa_ep.lock.
 * Return: whether the device has no work request of the operation, so that it has none at all now.
 */
bool kefa_tx_unpark(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_ts *ts, *next;
	u32 n = 0;

	lockdep_assert_held(&rdm->ep.lock);
	list_for_each_entry(ts, &rdm->parked, list)
		n += ts->rop == rop;
	if (n < rop->wrs)
		return false;
	list_for_each_entry_safe(ts, next, &rdm->parked, list)
		if (ts->rop == rop)
			kefa_ts_free(rdm, ts);
	rop->wrs = 0;
	return true;
}

/* The device gave up because the peer had no receive. Send the packet again, now or later. */
static void kefa_ts_rnr(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct kefa_rpeer *peer = ts->peer;
	struct kefa_rop *rop = ts->rop;

	rdm->stats.rnr++;
	rdm->ep.stats.rnr++;
	if (!ts->again && !peer->backoff.waiting) {
		ts->again = true;
		kefa_ts_post(rdm, ts);
		return;
	}
	kefa_rdm_back_off(rdm, peer);
	if (kefa_ts_waits(ts)) {
		kefa_ts_park(rdm, ts);
		return;
	}
	if (!rop) {
		kefa_row_of(ts->type)->ops->unsend_alone(rdm, peer);
		kefa_ts_free(rdm, ts);
		return;
	}
	kefa_row_of(ts->type)->ops->unsend(rdm, rop);
	kefa_ts_free(rdm, ts);
	rop->wrs--;
	/* The operation may have ended without the answer. */
	kefa_rdm_end(rdm, rop);
}

/**
 * kefa_ts_done() - handle the completion of a packet or another work request
 * @rdm: the endpoint, with a queue pair
 * @ibwc: the completion
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_ts_done(struct kefa_rdm *rdm, const struct ib_wc *ibwc)
{
	const struct kefa_wc wc = kefa_wc_read(ibwc);
	struct kefa_ts *ts = kefa_ts_of(rdm, wc.id);
	const struct kefa_pkt_row *row;
	struct kefa_rpeer *peer;
	struct kefa_rop *rop;

	lockdep_assert_held(&rdm->ep.lock);
	if (!ts) {
		rdm->ep.stats.stale++;
		return;
	}
	peer = ts->peer;
	if (unlikely(ts->what)) {
		if (!list_empty(&peer->wait) || peer->owes)
			kefa_rdm_todo(rdm, peer);
		/* Data that goes with a write needs a receive of the peer. */
		if (wc.status == KEFA_STATUS_RNR && ts->has_imm &&
		    peer->state < KEFA_RPEER_DYING) {
			kefa_tx_ready(rdm, 1);
			kefa_ts_rnr(rdm, ts);
			return;
		}
		if (!wc.status && ts->again)
			kefa_backoff_arrived(&rdm->backoffs, &peer->backoff);
		kefa_ts_other_done(rdm, ts, wc.status ? kefa_status_errno(wc.status) : 0,
				   wc.status);
		return;
	}
	if (unlikely(wc.status)) {
		kefa_tx_ready(rdm, 1);
		if (wc.status == KEFA_STATUS_RNR && peer->state < KEFA_RPEER_DYING)
			kefa_ts_rnr(rdm, ts);
		else
			kefa_ts_lost(rdm, ts, kefa_status_errno(wc.status), wc.status);
		return;
	}
	row = kefa_row_of(ts->type ?: KEFA_EAGER_MSGRTM_PKT);
	/*
	 * A packet that arrives after the delay shows that the peer is ready. One that arrives
	 * during the delay was sent before it.
	 */
	if (unlikely(ts->again || (peer->backoff.delay_us && !peer->backoff.waiting)))
		kefa_backoff_arrived(&rdm->backoffs, &peer->backoff);
	rop = ts->rop;
	if (!list_empty(&peer->wait) || peer->owes)
		kefa_rdm_todo(rdm, peer);
	if (!rop && row->type == KEFA_READRSP_PKT)
		kefa_target_was_read(rdm, ts->len + ts->seg.len - sizeof(struct kefa_readrsp_hdr));
	kefa_ts_free(rdm, ts);
	if (!rop)
		return;
	rop->wrs--;
	if (row->ops->completed)
		row->ops->completed(rdm, rop);
	kefa_rdm_end(rdm, rop);
}

/* Requests go first, in the order of their messages, so that the peer has to keep few of them. */
static int kefa_ts_compare(void *priv, const struct list_head *a, const struct list_head *b)
{
	const struct kefa_ts *x = list_entry(a, struct kefa_ts, list);
	const struct kefa_ts *y = list_entry(b, struct kefa_ts, list);

	if (x->ordered && y->ordered)
		return (s32)(x->msg_id - y->msg_id);
	return y->ordered - x->ordered;
}

/**
 * kefa_tx_again() - post the parked packets of a peer again
 * @rdm: the endpoint, enabled
 * @peer: the peer, whose delay is over
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 */
void kefa_tx_again(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	struct kefa_ts *ts, *next;
	LIST_HEAD(again);
	int ret;

	lockdep_assert_held(&rdm->ep.lock);
	list_for_each_entry_safe(ts, next, &rdm->parked, list)
		if (ts->peer == peer)
			list_move_tail(&ts->list, &again);
	list_sort(NULL, &again, kefa_ts_compare);
	list_for_each_entry_safe(ts, next, &again, list) {
		kefa_tx_ready(rdm, 1);
		if (unlikely(kefa_rpeer_dead(peer)))
			break;
		list_del_init(&ts->list);
		ret = kefa_ts_unmade(ts) ? kefa_ts_recopy(rdm, ts) : 0;
		if (!ret)
			kefa_ts_post(rdm, ts);
		if (ret != -EAGAIN)
			continue;
		list_add_tail(&ts->list, &rdm->parked);
		/* The peer isn't the reason: its delay gets no longer, and it doesn't die. */
		peer->backoff.checks = 0;
		if (!peer->backoff.waiting)
			peer->backoff.delay_us /= 2;
		kefa_rdm_back_off(rdm, peer);
	}
	list_splice_tail(&again, &rdm->parked);
}

/**
 * kefa_tx_ready() - make room to hold some work requests without a doorbell in between
 * @rdm: the endpoint, enabled
 * @n: number of work requests, at most KEFA_HELD_MAX
 *
 * May ring the doorbell. If the device refuses packets then, their peers are in KEFA_RPEER_DYING.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_tx_ready(struct kefa_rdm *rdm, unsigned int n)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (unlikely(rdm->ep.nheld + n > KEFA_HELD_MAX))
		kefa_tx_flush(rdm);
}

/**
 * kefa_tx_may() - check once more that a peer supports a type of packet
 * @rdm: the endpoint
 * @peer: receiver of the packet
 * @row: row of the type
 *
 * The types that may be selected depend on the peer's features, so a refusal is a bug of the
 * provider, but a packet of an unknown type could end the process that receives it.
 *
 * Context: Under kefa_ep.lock.
 * Return: false if the packet must not be sent.
 */
bool kefa_tx_may(struct kefa_rdm *rdm, const struct kefa_rpeer *peer,
		 const struct kefa_pkt_row *row)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (likely(kefa_pkt_may_send(row, kefa_shake_can(&rdm->self, peer))))
		return true;
	rdm->stats.unsupported++;
	trace_kefa_rpeer(&rdm->ep, peer->id, kefa_rpeer_qpn(peer), "unsupported", EOPNOTSUPP);
	dev_warn_ratelimited(&rdm->ep.dom->dev->ibdev->dev,
			     "kofi_efa: bug: %s not sent to a peer that doesn't support it\n",
			     row->name);
	return false;
}

/**
 * kefa_tx_control() - send a packet without data
 * @rdm: the endpoint, enabled
 * @peer: receiver of the packet
 * @rop: operation of the packet, or NULL
 * @pkt: contents of the packet
 *
 * A peer that doesn't support the type is dead, because it waits for an answer that can't be sent.
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: false if no slot was free; true if the packet is held, or if the peer is dead.
 */
bool kefa_tx_control(struct kefa_rdm *rdm, struct kefa_rpeer *peer, struct kefa_rop *rop,
		     struct kefa_pkt *pkt)
{
	struct kefa_ts *ts;

	kefa_tx_ready(rdm, 1);
	if (unlikely(!kefa_tx_may(rdm, peer, pkt->row)))
		kefa_rdm_kill(rdm, peer, EOPNOTSUPP, 0);
	if (unlikely(kefa_rpeer_dead(peer)))
		return true;
	ts = kefa_ts_take(rdm, peer, true);
	if (!ts)
		return false;
	ts->type = pkt->row->type;
	ts->rop = rop;
	ts->len = kefa_build(pkt, ts->hdr, KEFA_TS_ROOM);
	WARN_ON_ONCE(!ts->len);
	if (rop)
		rop->wrs++;
	else if (kefa_ts_answers_alone(ts))
		kefa_target_serves(ts);
	rdm->stats.sent[ts->type]++;
	kefa_ts_post(rdm, ts);
	return true;
}

/**
 * kefa_tx_keep() - leak the data that the device may still read, by kefa_keep()
 * @rdm: the endpoint
 *
 * Context: Process context, under kefa_ep.lock.
 * Return: number of bytes that can't be kept.
 */
size_t kefa_tx_keep(struct kefa_rdm *rdm)
{
	size_t lost = 0;
	u32 i;

	for (i = 0; i < rdm->nts; i++)
		if (rdm->ts[i].state != KEFA_TS_FREE && rdm->ts[i].seg.len &&
		    !rdm->ts[i].peer->local)
			lost += kefa_keep(rdm->ts[i].seg.phys, rdm->ts[i].seg.len);
	return lost;
}

/**
 * kefa_tx_forget() - free all slots that are in use
 * @rdm: the endpoint, whose queue pair is destroyed and whose operations have completed
 *
 * Context: Process context, under kefa_ep.lock.
 */
void kefa_tx_forget(struct kefa_rdm *rdm)
{
	struct kefa_rop *rop;
	u32 i;

	lockdep_assert_held(&rdm->ep.lock);
	for (i = 0; i < rdm->nts; i++) {
		if (rdm->ts[i].state == KEFA_TS_FREE)
			continue;
		rop = rdm->ts[i].rop;
		kefa_ts_free(rdm, &rdm->ts[i]);
		if (!rop)
			continue;
		rop->wrs--;
		kefa_rdm_end(rdm, rop);
	}
}
