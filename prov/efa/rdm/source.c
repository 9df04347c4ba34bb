// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions of the endpoint's own, from which peers read messages. They are made when the
 * endpoint is enabled, as that sleeps. A message takes one, registers its memory there by the
 * endpoint's queue pair, and waits; the ULP is told of the message when the registration is
 * gone. If the device doesn't invalidate it, kefa_mrs_revoke() destroys the region instead.
 *
 * There is always another way: a message goes by long-CTS if there is no region, if its memory
 * doesn't fit into one, or if the device refuses it.
 */
#include <linux/slab.h>
#include "../dma.h"
#include "../mr.h"
#include "../path.h"
#include "rdm.h"
#include "read.h"

/**
 * struct kefa_source - a region that peers can read from
 * @list: in kefa_rdm.sources_free
 * @mr: the region, of this endpoint; kefa_mr.context is this
 * @rop: the message that has it, or NULL
 */
struct kefa_source {
	struct list_head	list;
	struct kefa_mr		*mr;
	struct kefa_rop		*rop;
};

/* --- beginning and end --- */

/**
 * kefa_sources_init() - make regions
 * @rdm: the endpoint, about to be enabled
 * @count: how many; if the device hasn't got them there are fewer
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_sources_init(struct kefa_rdm *rdm, u32 count)
{
	const u32 pages = min_t(u32, KEFA_SOURCE_PAGES, rdm->ep.dom->dev->max_mr_pages);
	struct kefa_source *s;
	struct kefa_mr *mr;

	if (!count)
		return 0;
	rdm->sources = kcalloc(count, sizeof(*rdm->sources), GFP_KERNEL);
	if (!rdm->sources)
		return -ENOMEM;
	while (rdm->nsources < count) {
		mr = kefa_mr_own(&rdm->ep, FI_REMOTE_READ, pages);
		if (IS_ERR(mr))
			break;
		s = &rdm->sources[rdm->nsources++];
		s->mr = mr;
		mr->context = s;
		list_add_tail(&s->list, &rdm->sources_free);
	}
	return 0;
}

/**
 * kefa_sources_end() - take all registrations back, as the queue pair is gone
 * @ep: the endpoint, with operations outstanding
 *
 * Serves as kefa_ep_kind.revoke.
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_sources_end(struct kefa_ep *ep)
{
	struct kefa_rdm *rdm = to_kefa_rdm(ep);
	struct kefa_rop *rop;
	u32 i;

	for (i = 0; i < rdm->nsources; i++) {
		kefa_mr_own_end(rdm->sources[i].mr);
		spin_lock_bh(&ep->lock);
		rop = rdm->sources[i].rop;
		if (rop)
			rop->source = NULL;
		spin_unlock_bh(&ep->lock);
	}
	kefa_sources_fini(rdm);
}

/**
 * kefa_sources_fini() - undo kefa_sources_init()
 * @rdm: the endpoint, whose regions have nothing registered
 *
 * Context: Process context, under kefa_dev.lock unless there are none; sleeps.
 */
void kefa_sources_fini(struct kefa_rdm *rdm)
{
	while (rdm->nsources)
		kefa_mr_disown(rdm->sources[--rdm->nsources].mr);
	kfree(rdm->sources);
	rdm->sources = NULL;
	INIT_LIST_HEAD(&rdm->sources_free);
}

/* --- use --- */

static struct kefa_source *kefa_source_take(struct kefa_rdm *rdm)
{
	struct kefa_source *s;

	list_for_each_entry(s, &rdm->sources_free, list)
		/* One that was destroyed may have had no successor. */
		if (s->mr->fr) {
			list_del_init(&s->list);
			return s;
		}
	return NULL;
}

/* Its memory is unmapped. The one that rested longest is used next: keys come true again. */
static void kefa_source_put(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_source *s = rop->source;

	lockdep_assert_held(&rdm->ep.lock);
	s->rop = NULL;
	rop->source = NULL;
	list_add_tail(&s->list, &rdm->sources_free);
}

/**
 * kefa_source_alone() - is a message the only one that its peer has to read?
 * @rdm: the endpoint
 * @rop: the message, which may have a region or not
 *
 * Context: Under kefa_ep.lock.
 * Return: whether no other message to that peer has a region.
 */
bool kefa_source_alone(const struct kefa_rdm *rdm, const struct kefa_rop *rop)
{
	const struct kefa_rop *other;
	u32 i;

	lockdep_assert_held(&rdm->ep.lock);
	for (i = 0; i < rdm->nsources; i++) {
		other = rdm->sources[i].rop;
		if (other && other != rop && other->peer == rop->peer)
			return false;
	}
	return true;
}

static __always_inline int kefa_source_describe(struct kefa_rdm *rdm, struct kefa_mr *mr)
{
	int ret = kefa_describe(rdm->ep.dom->dev, mr->fr, mr->sg, mr->nsegs, mr->len);

	if (unlikely(ret))
		kefa_mr_unmap(mr);
	return ret;
}

static int kefa_source_map(struct kefa_rdm *rdm, const struct kefa_rop *rop, struct kefa_mr *mr)
{
	struct iov_iter iter;
	struct kvec kvec;

	kefa_rop_iter(rop, ITER_SOURCE, 0, rop->total, &iter, &kvec);
	return kefa_mr_map_iter(mr, &iter, FI_REMOTE_READ) ?: kefa_source_describe(rdm, mr);
}

/* Post the registration of a message in a region that has its memory. */
static __always_inline void kefa_source_reg(struct kefa_rdm *rdm, struct kefa_rop *rop,
					    struct kefa_source *s, struct kefa_ts *ts)
{
	struct kefa_wr *wr;

	s->rop = rop;
	rop->source = s;
	rdm->stats.sources++;
	ts->what = KEFA_TS_REG;
	ts->rop = rop;
	rop->wrs++;
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_REG);
	kefa_mr_go(s->mr, KEFA_MR_REGISTERING);
	WRITE_ONCE(rdm->ep.nregs, rdm->ep.nregs + 1);
	wr = kefa_ts_hold(rdm, ts);
	kefa_wr_reg(wr, ts->id, s->mr->fr->mr, kefa_mr_ib_access(FI_REMOTE_READ));
}

/**
 * kefa_source_get() - register the memory of a message
 * @rdm: the endpoint, enabled
 * @rop: the message, in KEFA_ROP_WAIT; goes to KEFA_ROP_REG
 *
 * Context: Under kefa_ep.lock, after kefa_tx_ready().
 * Return: 0, -EAGAIN if there is no slot, or another negative errno: no peer can read it.
 */
int kefa_source_get(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_source *s;
	struct kefa_ts *ts;
	int ret;

	lockdep_assert_held(&rdm->ep.lock);
	if (!kefa_tx_room(rdm, rop->peer))
		return -EAGAIN;
	s = kefa_source_take(rdm);
	if (!s)
		return -FI_ENOMR;
	ret = kefa_source_map(rdm, rop, s->mr);
	ts = ret ? NULL : kefa_ts_take(rdm, rop->peer, false);
	if (!ts) {
		list_add(&s->list, &rdm->sources_free);
		return ret ?: -EAGAIN;
	}
	kefa_source_reg(rdm, rop, s, ts);
	return 0;
}

/**
 * kefa_source_one() - map a message that is one piece of memory into a region
 * @rdm: the endpoint, enabled
 * @buf: the message, for which kefa_one_piece() returned true
 * @len: length in bytes
 *
 * Context: Under kefa_ep.lock.
 * Return: the region, which the caller passes to kefa_source_post(); or NULL.
 */
struct kefa_source *kefa_source_one(struct kefa_rdm *rdm, void *buf, size_t len)
{
	struct kefa_source *s;

	lockdep_assert_held(&rdm->ep.lock);
	s = kefa_source_take(rdm);
	if (!s)
		return NULL;
	if (likely(!kefa_mr_map_one(s->mr, buf, len, FI_REMOTE_READ) &&
		   !kefa_source_describe(rdm, s->mr)))
		return s;
	list_add(&s->list, &rdm->sources_free);
	return NULL;
}

/**
 * kefa_source_post() - register a message's memory in its region
 * @rdm: the endpoint, enabled, with a slot for the message and room for a work request before the
 *	doorbell
 * @rop: the message, in KEFA_ROP_FREE; goes to KEFA_ROP_REG
 * @s: result of kefa_source_one()
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 */
void kefa_source_post(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_source *s)
{
	lockdep_assert_held(&rdm->ep.lock);
	kefa_source_reg(rdm, rop, s, kefa_ts_take(rdm, rop->peer, false));
}

/**
 * kefa_source_iov() - what a peer is told of a message's region
 * @rop: the message, which has one
 *
 * Context: Under kefa_ep.lock.
 * Return: address, length and key, as they are on the wire.
 */
struct kefa_rma_iov kefa_source_iov(const struct kefa_rop *rop)
{
	const struct ib_mr *ibmr = rop->source->mr->fr->mr;

	return (struct kefa_rma_iov) {
		.addr	= cpu_to_le64(ibmr->iova),
		.len	= cpu_to_le64(rop->total),
		.key	= cpu_to_le64(ibmr->rkey),
	};
}

/**
 * kefa_source_inval() - take a registration back
 * @rdm: the endpoint, enabled
 * @rop: the message, which doesn't owe it any more
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: false if there is no slot.
 */
bool kefa_source_inval(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_mr *mr = rop->source->mr;
	struct kefa_wr *wr;
	struct kefa_ts *ts;

	lockdep_assert_held(&rdm->ep.lock);
	ts = kefa_ts_take(rdm, rop->peer, true);
	if (!ts)
		return false;
	ts->what = KEFA_TS_INVAL;
	ts->rop = rop;
	rop->wrs++;
	kefa_mr_go(mr, KEFA_MR_INVALIDATING);
	WRITE_ONCE(rdm->ep.nregs, rdm->ep.nregs + 1);
	wr = kefa_ts_hold(rdm, ts);
	kefa_wr_inv(wr, ts->id, mr->fr->mr->rkey);
	return true;
}

/**
 * kefa_source_release() - have a message's registration taken back, if it has one
 * @rdm: the endpoint
 * @rop: the message, in none of the engine's lists; it lasts until then
 *
 * Context: Under kefa_ep.lock. The pump is due.
 */
void kefa_source_release(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (rop->source && rop->source->mr->state == KEFA_MR_VALID)
		kefa_rdm_owe(rdm, rop, KEFA_ROP_OWES_INVAL);
}

/* --- completing --- */

static void kefa_source_counted(struct kefa_rdm *rdm)
{
	WRITE_ONCE(rdm->ep.nregs_done, rdm->ep.nregs_done + 1);
}

/**
 * kefa_source_valid() - the device has registered a message's memory
 * @rdm: the endpoint
 * @rop: the message, which its peer may read from now on
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_source_valid(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	lockdep_assert_held(&rdm->ep.lock);
	kefa_source_counted(rdm);
	kefa_mr_go(rop->source->mr, KEFA_MR_VALID);
}

/**
 * kefa_source_end() - the device has invalidated a message's registration
 * @rdm: the endpoint
 * @rop: the message, which has no region afterwards
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_source_end(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_mr *mr = rop->source->mr;

	lockdep_assert_held(&rdm->ep.lock);
	kefa_source_counted(rdm);
	kefa_mr_unmap(mr);
	kefa_mr_go(mr, KEFA_MR_IDLE);
	kefa_source_put(rdm, rop);
}

/**
 * kefa_source_registered() - the device is done with a registration
 * @rdm: the endpoint
 * @rop: the message
 * @len: not used
 * @err: positive errno, or 0; then it goes another way
 * @status: the device's
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_source_registered(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err,
			    u32 status)
{
	if (err) {
		kefa_source_end(rdm, rop);
		rop->no_read = true;
	} else {
		kefa_source_valid(rdm, rop);
	}
	if (rop->state == KEFA_ROP_REG) {
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_WAIT);
		kefa_rdm_todo(rdm, rop->peer);
	} else {
		kefa_source_release(rdm, rop);
	}
}

/* Nobody can reach the message's memory any more; if @err somebody may. */
static void kefa_source_over(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 status)
{
	struct kefa_mr *mr = rop->source->mr;

	kefa_mr_unmap(mr);
	kefa_mr_go(mr, KEFA_MR_IDLE);
	kefa_source_put(rdm, rop);
	if (rop->state != KEFA_ROP_INVAL)
		return;
	if (kefa_row_of(rop->type)->flags & KEFA_ROW_READ) {
		rop->flags |= KEFA_ROP_OVER;
		rop->err = err;
		rop->prov = status;
		return;
	}
	/* The peer couldn't read it. */
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_GRANT);
	kefa_rdm_owe(rdm, rop, KEFA_ROP_OWES_AGAIN);
}

/**
 * kefa_source_invalidated() - the device is done with an invalidation
 * @rdm: the endpoint
 * @rop: the message
 * @len: not used
 * @err: positive errno, or 0; then the region is destroyed first
 * @status: the device's
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_source_invalidated(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err,
			     u32 status)
{
	struct kefa_mr *mr = rop->source->mr;

	kefa_source_counted(rdm);
	if (!err) {
		kefa_source_over(rdm, rop, 0, 0);
		return;
	}
	mr->status = status;
	rdm->ep.stats.revoked++;
	kefa_mr_go(mr, KEFA_MR_REVOKING);
	queue_work(kefa_cmd_wq, &mr->dom->mrq.revoke);
}

/**
 * kefa_source_revoked() - a region was destroyed, as it wasn't invalidated
 * @mr: the region, in KEFA_MR_REVOKING
 * @err: positive errno if peers may still reach it, or 0
 *
 * Serves as kefa_ep_kind.revoked.
 *
 * Context: Process context, under kefa_dev.lock.
 */
void kefa_source_revoked(struct kefa_mr *mr, int err)
{
	struct kefa_source *s = mr->context;
	struct kefa_ep *ep = mr->ep;
	struct kefa_rop *rop;
	struct kefa_news news;

	spin_lock_bh(&ep->lock);
	rop = s->rop;
	kefa_source_over(to_kefa_rdm(ep), rop, err, err ? mr->status : 0);
	kefa_rdm_end(to_kefa_rdm(ep), rop);
	kefa_ep_kick(ep);
	news = kefa_ep_news(ep);
	spin_unlock_bh(&ep->lock);
	kefa_ep_tell(ep, news, false);
}
