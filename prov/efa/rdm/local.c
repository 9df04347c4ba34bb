// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Peers in the same kernel. The wire is replaced, not the engine: a packet isn't posted to the
 * device, but its send slot is added to a queue of the peer. The peer handles the packet where it
 * is, as if it had received it, and gives the slot back with the status that the device would
 * report. So matching, order, limits and errors are the engine's. Data that isn't next to the
 * headers is copied once: into the ULP's buffer or region, or into memory of the peer's if the
 * packet has to be kept.
 *
 * An endpoint that may use this is in a table from fi_enable() to its end, under its raw address.
 * Nobody knows that address earlier, so when a peer is added it is local or not, for ever, and so
 * is this endpoint for the peer: each direction has one way, and its order. A local peer is taken
 * to have no RDMA, so that reads, writes and long messages go by packets, too. Endpoints whose
 * devices have different MTUs aren't local to each other, as a packet has to fit into a receive
 * slot.
 *
 * A slot is added under the sender's kefa_ep.lock, and taken under the receiver's. The leaf lock
 * kefa_local.lock inside either protects the queues. No two locks of either kind are held together,
 * so endpoints have no order, and nothing is called in another endpoint but what wakes it. A
 * receiver without memory for unexpected packets returns requests as the device does without a
 * receive, so a slot never stays with a peer.
 */
#include <linux/hashtable.h>
#include <linux/slab.h>
#include "../ah.h"
#include "../dev.h"
#include "../trace.h"
#include "local.h"
#include "rdm.h"

enum {
	KEFA_LOCAL_BITS		= 8,
	/* Number of packets of a queue that are handled in one turn. */
	KEFA_LOCAL_BATCH	= 16,
	/* Interval at which an endpoint that ends looks for its slots, in milliseconds. */
	KEFA_LOCAL_END_MS	= 10,
	/* The device's status for packets to a queue pair that doesn't exist. */
	KEFA_STATUS_GONE	= 9,
};

static DEFINE_SPINLOCK(kefa_locals_lock);	/* protects kefa_locals; a leaf */
static DEFINE_HASHTABLE(kefa_locals, KEFA_LOCAL_BITS);

/* --- queues of slots --- */

static void kefa_tsq_init(struct kefa_ts_queue *q)
{
	q->head = NULL;
	q->tail = &q->head;
}

static void kefa_tsq_add(struct kefa_ts_queue *q, struct kefa_ts *ts)
{
	ts->next = NULL;
	*q->tail = ts;
	q->tail = &ts->next;
}

/* Move up to @n slots from the begin of a queue to the end of another one. */
static void kefa_tsq_move(struct kefa_ts_queue *from, struct kefa_ts_queue *to, unsigned int n)
{
	struct kefa_ts **at = &from->head, *rest;

	while (n-- && *at)
		at = &(*at)->next;
	rest = *at;
	if (rest == from->head)
		return;
	*to->tail = from->head;
	to->tail = at;
	*at = NULL;
	from->head = rest;
	if (!rest)
		from->tail = &from->head;
}

/* Remove an endpoint's slots from a queue. Return: their number. */
static unsigned int kefa_tsq_pull(struct kefa_ts_queue *q, const struct kefa_local *home)
{
	struct kefa_ts **at = &q->head, *ts;
	unsigned int n = 0;

	while ((ts = *at)) {
		if (ts->home == home) {
			*at = ts->next;
			n++;
		} else {
			at = &ts->next;
		}
	}
	q->tail = at;
	return n;
}

/* --- endpoints --- */

/**
 * kefa_local_new() - allocate what endpoints in the same kernel see of an endpoint
 * @rdm: the endpoint
 *
 * Context: Process context; sleeps.
 * Return: the structure, or NULL.
 */
struct kefa_local *kefa_local_new(struct kefa_rdm *rdm)
{
	struct kefa_local *local = kzalloc(sizeof(*local), GFP_KERNEL);

	if (!local)
		return NULL;
	refcount_set(&local->refs, 1);
	spin_lock_init(&local->lock);
	kefa_tsq_init(&local->in[KEFA_LOCAL_ANSWERS]);
	kefa_tsq_init(&local->in[KEFA_LOCAL_REQUESTS]);
	kefa_tsq_init(&local->done);
	init_waitqueue_head(&local->idle);
	local->rdm = rdm;
	return local;
}

/**
 * kefa_local_put() - drop a reference
 * @local: the endpoint, or NULL
 *
 * Context: Any.
 */
void kefa_local_put(struct kefa_local *local)
{
	/* A peer that has just returned a slot may be about to release the lock. */
	if (local && refcount_dec_and_test(&local->refs))
		kfree_rcu(local, rcu);
}

static u32 kefa_local_key(u32 qpn, u32 connid)
{
	return qpn ^ connid;
}

/* Return: the endpoint of a peer, referenced, or NULL. */
static struct kefa_local *kefa_local_find(const struct kefa_rpeer *peer)
{
	const u32 qpn = kefa_rpeer_qpn(peer), connid = kefa_rpeer_connid(peer);
	struct kefa_local *local, *found = NULL;

	spin_lock(&kefa_locals_lock);
	hash_for_each_possible(kefa_locals, local, node, kefa_local_key(qpn, connid))
		if (local->qpn == qpn && local->connid == connid &&
		    !memcmp(local->gid, peer->gid, sizeof(local->gid)))
			found = local;
	if (found)
		refcount_inc(&found->refs);
	spin_unlock(&kefa_locals_lock);
	return found;
}

/**
 * kefa_local_meet() - look whether a new peer is in the same kernel
 * @rdm: the endpoint
 * @peer: the peer, to which nothing was sent
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_local_meet(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	struct kefa_local *local;

	lockdep_assert_held(&rdm->ep.lock);
	if (!rdm->local || !rdm->local->up || peer->local)
		return;
	local = kefa_local_find(peer);
	if (!local)
		return;
	if (local->mtu != rdm->local->mtu) {
		kefa_local_put(local);
		return;
	}
	peer->local = local;
	peer->flags |= KEFA_RPEER_LOCAL;
	/* Nothing that the device reports equals this: kefa_rpeer_sent(). */
	peer->by_src.key = U64_MAX;
	trace_kefa_rpeer(&rdm->ep, peer->id, kefa_rpeer_qpn(peer), "local", 0);
}

/**
 * kefa_local_start() - have other endpoints see an endpoint
 * @rdm: the endpoint, which has its address now
 *
 * Context: Process context, under kefa_ep.lock.
 */
void kefa_local_start(struct kefa_rdm *rdm)
{
	struct kefa_local *local = rdm->local;
	u32 i;

	lockdep_assert_held(&rdm->ep.lock);
	if (!local || !rdm->local_ok)
		return;
	memcpy(local->gid, rdm->ep.dom->dev->gid, sizeof(local->gid));
	local->qpn = rdm->ep.hq.qpn;
	local->connid = rdm->self.connid;
	local->mtu = rdm->lim.mtu;
	local->up = true;
	local->rs = kefa_rs_spare(rdm);
	for (i = 0; i < rdm->nts; i++)
		rdm->ts[i].home = local;
	spin_lock(&kefa_locals_lock);
	hash_add(kefa_locals, &local->node, kefa_local_key(local->qpn, local->connid));
	spin_unlock(&kefa_locals_lock);
	/* Those inserted before; there can be no strangers yet. */
	for (i = 0; i < rdm->peers.size; i++)
		if (rdm->peers.at[i])
			kefa_local_meet(rdm, rdm->peers.at[i]);
}

/* Have an endpoint look at its queues, unless it is about to. */
static void kefa_local_wake(struct kefa_local *local)
{
	lockdep_assert_held(&local->lock);
	if (local->news)
		return;
	local->news = true;
	kefa_ep_wake(&local->rdm->ep);
}

/* --- the sender --- */

/* Give slots back to their endpoint, which may free them as soon as the lock is released. */
static void kefa_local_return(struct kefa_ts_queue *over)
{
	struct kefa_local *home = over->head->home;

	spin_lock(&home->lock);
	kefa_tsq_move(over, &home->done, UINT_MAX);
	if (likely(home->up))
		kefa_local_wake(home);
	else
		wake_up(&home->idle);
	spin_unlock(&home->lock);
}

static void kefa_local_refuse(struct kefa_ts *ts)
{
	struct kefa_ts_queue over;
	struct kefa_ts *next;

	kefa_tsq_init(&over);
	for (; ts; ts = next) {
		next = ts->next;
		ts->status = KEFA_STATUS_GONE;
		kefa_tsq_add(&over, ts);
		kefa_local_return(&over);
	}
}

/**
 * kefa_local_post() - send a packet to a peer in the same kernel
 * @rdm: the endpoint, enabled
 * @ts: slot of the packet
 * @in: queue of the peer
 *
 * If the peer is gone, the packet is lost, as the device would report it.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_local_post(struct kefa_rdm *rdm, struct kefa_ts *ts, enum kefa_local_in in)
{
	struct kefa_local *to = ts->peer->local;
	bool up;

	lockdep_assert_held(&rdm->ep.lock);
	rdm->local->nout++;
	rdm->stats.local++;
	ts->next = NULL;
	spin_lock(&to->lock);
	up = to->up;
	if (likely(up)) {
		kefa_tsq_add(&to->in[in], ts);
		kefa_local_wake(to);
	}
	spin_unlock(&to->lock);
	if (unlikely(!up))
		kefa_local_refuse(ts);
}

/* Complete slots that peers have handled. Return: their number. */
static unsigned int kefa_local_reap(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct ib_wc wc = { };
	struct kefa_ts *next;
	unsigned int n = 0;

	lockdep_assert_held(&rdm->ep.lock);
	for (; ts; ts = next, n++) {
		next = ts->next;
		rdm->local->nout--;
		if (likely(kefa_eager_returned(rdm, ts)))
			continue;
		kefa_rdm_report(rdm);
		wc.wr_id = ts->id;
		wc.vendor_err = ts->status;
		wc.status = ts->status ? IB_WC_GENERAL_ERR : IB_WC_SUCCESS;
		kefa_ts_done(rdm, &wc);
		if (unlikely(rdm->reap))
			kefa_rdm_reap(rdm);
	}
	return n;
}

/* --- the receiver --- */

/**
 * kefa_local_src() - describe the sender of a packet, and where its data is
 * @rdm: the endpoint, which is handling the packet
 * @pkt: the packet, parsed
 * @src: takes the description
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_local_src(const struct kefa_rdm *rdm, struct kefa_pkt *pkt, struct kefa_src *src)
{
	const struct kefa_ts *ts = rdm->local->now;

	/* The parser took what follows the headers for data, but doesn't read it. */
	if (ts->seg.len && !WARN_ON_ONCE(ts->len != pkt->hdr_len))
		pkt->data = phys_to_virt(ts->seg.phys);
	*src = (struct kefa_src) {
		.gid		= ts->home->gid,
		.slid		= KEFA_NO_SLID,
		.qpn		= ts->home->qpn,
		.connid		= ts->home->connid,
		.has_connid	= true,
		.local		= true,
	};
}

/**
 * kefa_local_gather() - copy a packet that has to be kept
 * @rdm: the endpoint, which is handling the packet
 * @held: the packet, which may be without data that is in its place
 * @to: memory for kefa_held.len bytes
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_local_gather(const struct kefa_rdm *rdm, const struct kefa_held *held, void *to)
{
	const struct kefa_ts *ts = rdm->local->now;
	const u32 len = min_t(u32, held->len, ts->len);

	memcpy(to, held->buf, len);
	if (held->len > len)
		memcpy(to + len, phys_to_virt(ts->seg.phys), held->len - len);
}

/**
 * kefa_local_keep() - move a packet that has to be kept to a receive slot
 * @rdm: the endpoint, which is handling the packet
 * @held: the packet
 *
 * Context: Under kefa_ep.lock.
 * Return: the packet in the slot.
 */
struct kefa_held *kefa_local_keep(struct kefa_rdm *rdm, const struct kefa_held *held)
{
	struct kefa_held *kept = &rdm->local->rs->held;

	lockdep_assert_held(&rdm->ep.lock);
	rdm->local->rs = NULL;
	kefa_local_gather(rdm, held, kept->buf);
	kept->len = held->len;
	kept->src_qpn = held->src_qpn;
	kept->slid = held->slid;
	kept->local = true;
	return kept;
}

/**
 * kefa_local_sender() - find a local peer
 * @rdm: the endpoint
 * @local: the peer's endpoint
 *
 * Context: Under kefa_ep.lock.
 * Return: the peer, which is kefa_peers.last now; or NULL.
 */
struct kefa_rpeer *kefa_local_sender(struct kefa_rdm *rdm, const struct kefa_local *local)
{
	const struct kefa_src src = {
		.gid		= local->gid,
		.qpn		= local->qpn,
		.connid		= local->connid,
		.has_connid	= true,
	};
	struct kefa_rpeer *peer = kefa_peers_by_conn(&rdm->peers, &src);

	if (!peer || peer->local != local)
		return NULL;
	rdm->peers.last = peer;
	return peer;
}

/* Return: status of the packet for its sender. */
static u8 kefa_local_packet(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	struct kefa_local *local = rdm->local;
	struct kefa_held held = {
		.buf		= ts->copy ? ts->copy->data : ts->hdr,
		.len		= ts->len + ts->seg.len,
		.src_qpn	= ts->home->qpn,
		.slid		= KEFA_NO_SLID,
		.where		= KEFA_HELD_LOCAL,
		.local		= true,
	};

	kefa_rdm_report(rdm);
	/* Without memory to keep the packet in, the endpoint has no receive for it. */
	local->rs = local->rs ?: kefa_rs_spare(rdm);
	if (!local->rs)
		return KEFA_STATUS_RNR;
	local->now = ts;
	kefa_rdm_packet(rdm, &held);
	local->now = NULL;
	if (unlikely(rdm->reap))
		kefa_rdm_reap(rdm);
	return 0;
}

/*
 * Handle packets, of which the endpoint has receives for @admits, and return their slots. Return:
 * their number.
 */
static unsigned int kefa_local_handle(struct kefa_rdm *rdm, struct kefa_ts *ts, u32 admits)
{
	struct kefa_ts_queue over;
	struct kefa_ts *next;
	unsigned int n = 0;

	kefa_tsq_init(&over);
	for (; ts; ts = next, n++) {
		next = ts->next;
		if (over.head && over.head->home != ts->home)
			kefa_local_return(&over);
		if (unlikely(n >= admits))
			ts->status = KEFA_STATUS_RNR;
		else
			ts->status = kefa_eager_local(rdm, ts) ? 0 : kefa_local_packet(rdm, ts);
		kefa_tsq_add(&over, ts);
	}
	if (over.head)
		kefa_local_return(&over);
	return n;
}

/**
 * kefa_local_take() - handle packets of local peers, and own slots that such peers have handled
 * @rdm: the endpoint, enabled
 *
 * Context: Under kefa_ep.lock. kefa_rdm_pump() is due.
 * Return: number of slots.
 */
unsigned int kefa_local_take(struct kefa_rdm *rdm)
{
	struct kefa_ts_queue done, answers, requests;
	struct kefa_local *local = rdm->local;
	unsigned int n;

	lockdep_assert_held(&rdm->ep.lock);
	kefa_tsq_init(&done);
	kefa_tsq_init(&answers);
	kefa_tsq_init(&requests);
	spin_lock(&local->lock);
	local->news = false;
	kefa_tsq_move(&local->done, &done, UINT_MAX);
	kefa_tsq_move(&local->in[KEFA_LOCAL_ANSWERS], &answers, KEFA_LOCAL_BATCH);
	kefa_tsq_move(&local->in[KEFA_LOCAL_REQUESTS], &requests, KEFA_LOCAL_BATCH);
	local->more = local->in[KEFA_LOCAL_ANSWERS].head || local->in[KEFA_LOCAL_REQUESTS].head;
	spin_unlock(&local->lock);
	n = kefa_local_reap(rdm, done.head);
	n += kefa_local_handle(rdm, answers.head, U32_MAX);
	if (requests.head)
		n += kefa_local_handle(rdm, requests.head, kefa_rx_admits(rdm, &local->next));
	kefa_rdm_report(rdm);
	if (local->more)
		kefa_ep_wake(&rdm->ep);
	return n;
}

/**
 * kefa_local_news() - check for slots before going to sleep
 * @local: the endpoint
 *
 * Context: Under the endpoint's lock, after anything that tells kefa_ep_wake() how to wake it.
 * Return: whether there are any; if not, the endpoint is woken for the next one.
 */
bool kefa_local_news(struct kefa_local *local)
{
	bool news;

	/* A task that adds a slot later takes the lock, so it sees what was written before. */
	spin_lock(&local->lock);
	news = local->news;
	spin_unlock(&local->lock);
	return news;
}

/* --- the end --- */

/* Take back the slots that no peer has begun to handle. */
static void kefa_local_pull(struct kefa_rdm *rdm)
{
	struct kefa_local *to, *last = NULL;
	u32 i;

	for (i = 0; i < rdm->nts; i++) {
		to = rdm->ts[i].state == KEFA_TS_POSTED ? rdm->ts[i].peer->local : NULL;
		if (!to || to == last)
			continue;
		last = to;
		spin_lock(&to->lock);
		rdm->local->nout -= kefa_tsq_pull(&to->in[KEFA_LOCAL_ANSWERS], rdm->local);
		rdm->local->nout -= kefa_tsq_pull(&to->in[KEFA_LOCAL_REQUESTS], rdm->local);
		spin_unlock(&to->lock);
	}
}

/* Refuse the packets that wait, and all later ones. */
static void kefa_local_down(struct kefa_rdm *rdm)
{
	struct kefa_local *local = rdm->local;
	struct kefa_ts_queue in;

	kefa_tsq_init(&in);
	spin_lock_bh(&rdm->ep.lock);
	spin_lock(&local->lock);
	local->up = false;
	kefa_tsq_move(&local->in[KEFA_LOCAL_ANSWERS], &in, UINT_MAX);
	kefa_tsq_move(&local->in[KEFA_LOCAL_REQUESTS], &in, UINT_MAX);
	spin_unlock(&local->lock);
	kefa_local_refuse(in.head);
	local->rs = NULL;
	spin_unlock_bh(&rdm->ep.lock);
}

/**
 * kefa_local_end() - hide an endpoint from others, and get all of its slots back
 * @rdm: the endpoint, halted and without a queue pair
 *
 * The slots that a peer is handling come back at once, because it holds a spin lock meanwhile.
 *
 * Context: Process context; sleeps. Not under kefa_ep.lock.
 */
void kefa_local_end(struct kefa_rdm *rdm)
{
	struct kefa_local *local = rdm->local;
	struct kefa_ts_queue done;
	u32 left;

	if (!local || !local->up)
		return;
	spin_lock_bh(&kefa_locals_lock);
	hash_del(&local->node);
	spin_unlock_bh(&kefa_locals_lock);
	kefa_local_down(rdm);
	for (;;) {
		kefa_tsq_init(&done);
		spin_lock_bh(&rdm->ep.lock);
		kefa_local_pull(rdm);
		spin_lock(&local->lock);
		kefa_tsq_move(&local->done, &done, UINT_MAX);
		spin_unlock(&local->lock);
		kefa_local_reap(rdm, done.head);
		kefa_rdm_report(rdm);
		left = local->nout;
		spin_unlock_bh(&rdm->ep.lock);
		if (!left)
			return;
		wait_event_timeout(local->idle, READ_ONCE(local->done.head),
				   msecs_to_jiffies(KEFA_LOCAL_END_MS));
	}
}
