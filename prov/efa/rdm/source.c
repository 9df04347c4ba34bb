// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The endpoint's own regions, from which peers read messages. Allocating a region sleeps, so all
 * are allocated when the endpoint is enabled. A message takes one, registers its memory in it by a
 * work request of the endpoint's queue pair, and waits. The message completes when its
 * registration has been invalidated. If the device refuses to invalidate it, kefa_mrs_revoke()
 * destroys the region instead.
 *
 * A message goes by long-CTS if no region is free, if its memory doesn't fit into one, or if the
 * device refuses the registration.
 */
#include <linux/slab.h>
#include "../mr_path.h"
#include "rdm.h"
#include "fast.h"
#include "tx.h"

/**
 * struct kefa_source - a region that peers can read from
 * @list: in kefa_rdm.sources_free
 * @mr: the memory region; its kefa_mr.context points to this structure
 * @rop: the message that uses the region, or NULL
 */
struct kefa_source {
	struct list_head	list;
	struct kefa_mr		*mr;
	struct kefa_rop		*rop;
};

/* --- allocation --- */

/**
 * kefa_sources_init() - allocate the endpoint's regions
 * @rdm: the endpoint, about to be enabled
 * @count: number of regions; there are fewer if the device runs out of them
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
 * kefa_sources_end() - destroy all regions after the queue pair
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

	/* A registration or invalidation that the device has refused ends with its region. */
	spin_lock_bh(&ep->lock);
	kefa_rdm_reap(rdm);
	spin_unlock_bh(&ep->lock);
	for (i = 0; i < rdm->nsources; i++) {
		kefa_mr_own_end(rdm->sources[i].mr);
		spin_lock_bh(&ep->lock);
		rop = rdm->sources[i].rop;
		if (rop)
			rop->source = NULL;
		spin_unlock_bh(&ep->lock);
	}
	/* None is outstanding without a queue pair, so kefa_mrq_watch() must not wait for any. */
	WRITE_ONCE(ep->nregs_done, ep->nregs);
	kefa_sources_fini(rdm);
}

/**
 * kefa_sources_fini() - undo kefa_sources_init()
 * @rdm: the endpoint; nothing is registered in its regions
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
		/* A region that was destroyed has no memory region if none could be allocated. */
		if (s->mr->fr) {
			list_del_init(&s->list);
			return s;
		}
	return NULL;
}

/*
 * Free the region of @rop, whose memory is unmapped. The region that has been free longest is taken
 * next, because a region's keys repeat and a peer may have kept one.
 */
static void kefa_source_put(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_source *s = rop->source;

	lockdep_assert_held(&rdm->ep.lock);
	s->rop = NULL;
	rop->source = NULL;
	list_add_tail(&s->list, &rdm->sources_free);
}

/**
 * kefa_source_alone() - check that no other message to the same peer has a region
 * @rdm: the endpoint
 * @rop: the message, with or without a region
 *
 * Context: Under kefa_ep.lock.
 * Return: true if none has.
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

/* Post the registration of @rop, whose memory is mapped into @s. */
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
 * Return: 0, -EAGAIN if there is no slot, or another negative errno if the message can't be read
 * by its peer.
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
 * Return: the region, for kefa_source_post(), or NULL.
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
 * @s: the region that kefa_source_one() returned
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 */
void kefa_source_post(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_source *s)
{
	lockdep_assert_held(&rdm->ep.lock);
	kefa_source_reg(rdm, rop, s, kefa_ts_take(rdm, rop->peer, false));
}

/**
 * kefa_source_iov() - describe a message's registered memory to its peer
 * @rop: the message, with a region
 * @iov: takes address, length and key in the byte order of the wire
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_source_iov(const struct kefa_rop *rop, struct kefa_rma_iov *iov)
{
	const struct ib_mr *ibmr = rop->source->mr->fr->mr;

	iov->addr = cpu_to_le64(ibmr->iova);
	iov->len = cpu_to_le64(rop->total);
	iov->key = cpu_to_le64(ibmr->rkey);
}

/**
 * kefa_source_inval() - post the invalidation of a message's registration
 * @rdm: the endpoint, enabled
 * @rop: the message, with KEFA_ROP_OWES_INVAL cleared
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
	kefa_wr_inv(wr, ts->id, mr->fr->mr);
	return true;
}

/**
 * kefa_source_release() - schedule the invalidation of a message's registration, if it has one
 * @rdm: the endpoint
 * @rop: the message, in none of the engine's lists; it isn't freed before the invalidation
 *
 * Context: Under kefa_ep.lock. The pump is due.
 */
void kefa_source_release(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (rop->source && rop->source->mr->state == KEFA_MR_VALID)
		kefa_rdm_owe(rdm, rop, KEFA_ROP_OWES_INVAL);
}

/* --- completions --- */

static void kefa_source_counted(struct kefa_rdm *rdm)
{
	WRITE_ONCE(rdm->ep.nregs_done, rdm->ep.nregs_done + 1);
}

/**
 * kefa_source_valid() - the device has registered a message's memory
 * @rdm: the endpoint
 * @rop: the message; its peer may read it from now on
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
 * @rop: the message; it has no region afterwards
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
 * kefa_source_registered() - handle the completion of a registration
 * @rdm: the endpoint
 * @rop: the message; after an error it goes by long-CTS
 * @len: not used
 * @err: positive errno, or 0
 * @status: the completion's vendor status
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_source_registered(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err,
			    u32 status)
{
	if (err) {
		kefa_source_end(rdm, rop);
		rop->more |= KEFA_ROP_NO_READ;
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

/* The message's region has ended. With @err, its peer may still reach the memory. */
static void kefa_source_over(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 status)
{
	struct kefa_mr *mr = rop->source->mr;

	kefa_mr_unmap(mr);
	kefa_mr_go(mr, KEFA_MR_IDLE);
	kefa_source_put(rdm, rop);
	if (rop->state != KEFA_ROP_INVAL)
		return;
	if (kefa_row_of(rop->type)->flags & KEFA_ROW_READ) {
		kefa_far_served(rop);
		rop->flags |= KEFA_ROP_OVER;
		rop->err = err;
		rop->prov = status;
		return;
	}
	/* The peer sent a READ_NACK, and has forgotten a write, which goes before the others. */
	if (rop->more & KEFA_ROP_FAR) {
		rop->more |= KEFA_ROP_NO_READ;
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_WAIT);
		list_add(&rop->peer_link, &rop->peer->wait);
		kefa_rdm_todo(rdm, rop->peer);
		return;
	}
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_GRANT);
	kefa_silent_arm(rdm);
	kefa_rdm_owe(rdm, rop, KEFA_ROP_OWES_AGAIN);
}

/**
 * kefa_source_invalidated() - handle the completion of an invalidation
 * @rdm: the endpoint
 * @rop: the message; after an error it waits until its region is destroyed
 * @len: not used
 * @err: positive errno, or 0
 * @status: the completion's vendor status
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
 * kefa_source_revoked() - complete a message whose region was destroyed
 * @mr: the region, in KEFA_MR_REVOKING; its invalidation had failed
 * @err: positive errno if peers may still reach the memory, or 0
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
