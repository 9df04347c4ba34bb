// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Peers in the same kernel. The wire is replaced, not the engine: a packet isn't posted to the
 * device, but its send slot is added to a queue of the peer. The peer handles the packet where it
 * is, as if it had received it, and gives the slot back with the status that the device would
 * report. So matching, order, limits and errors are the engine's. Data that isn't next to the
 * headers is copied once: into the ULP's buffer or region, or into memory of the peer's if the
 * packet has to be kept.
 *
 * A message that a plain call sends is passed as a whole, without headers, up to the length from
 * which on messages wait for grants. If it has its turn and a receive, fast_local.c copies it
 * there. Otherwise the peer writes the headers that the sender would have written, one packet after
 * another, and handles these.
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

/* Take all slots out of a queue. Return: the first one. */
static struct kefa_ts *kefa_tsq_take(struct kefa_ts_queue *q)
{
	struct kefa_ts *first = q->head;

	kefa_tsq_init(q);
	return first;
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
	/* Data that fits into a send slot is a single packet for both sides. */
	if (!local || !rdm->local_ok || rdm->lim.mtu < KEFA_TS_ROOM)
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

/**
 * kefa_local_wake() - have an endpoint look at its queues
 * @local: the endpoint, which is up and isn't about to
 *
 * Context: Under @local->lock.
 */
void kefa_local_wake(struct kefa_local *local)
{
	lockdep_assert_held(&local->lock);
	local->news = true;
	kefa_ep_wake(&local->rdm->ep);
}

/* --- the sender --- */

/**
 * kefa_local_return() - give slots back to their endpoint
 * @first: the first slot
 * @last: the last one of those that follow by kefa_ts.next and have the same endpoint
 *
 * The endpoint may free them as soon as the lock is released.
 *
 * Context: Under kefa_ep.lock of the endpoint that has handled them, with kefa_ts.status.
 */
void kefa_local_return(struct kefa_ts *first, struct kefa_ts *last)
{
	struct kefa_local *home = first->home;

	spin_lock(&home->lock);
	last->next = NULL;
	*home->done.tail = first;
	home->done.tail = &last->next;
	if (unlikely(!home->up))
		wake_up(&home->idle);
	else if (!home->news)
		kefa_local_wake(home);
	spin_unlock(&home->lock);
}

/**
 * kefa_local_refuse() - return slots to their endpoints as the device does without a peer
 * @ts: the first slot, or NULL
 *
 * Context: Under kefa_ep.lock of the endpoint that has the slots.
 */
void kefa_local_refuse(struct kefa_ts *ts)
{
	struct kefa_ts *next;

	for (; ts; ts = next) {
		next = ts->next;
		ts->status = KEFA_STATUS_GONE;
		kefa_local_return(ts, ts);
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
	kefa_local_pass(rdm, ts, in);
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

/*
 * Write the headers of the next packet of a message that was passed without any, as the sender
 * would have done. Return: the packet's length.
 */
static u32 kefa_local_write(const struct kefa_rdm *rdm, struct kefa_ts *ts, void **at)
{
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(ts->type),
		.flags		= KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= ts->home->connid,
		.msg_id		= ts->msg_id,
		.tag		= ts->tag,
		.msg_length	= ts->total,
	};
	const u32 hdr = kefa_hdr_len(pkt.row, pkt.flags, 0, 0);
	u32 len = ts->total;

	*at = ts->hdr;
	if (pkt.row->flags & KEFA_ROW_MULTI) {
		len = min(ts->seg.len, kefa_cut(rdm->lim.mtu - hdr, ts->total));
		pkt.seg_offset = ts->total - ts->seg.len;
	} else {
		/* Data in the slot is where it follows any header. */
		*at += KEFA_SHAPE_SHORT - hdr;
	}
	WARN_ON_ONCE(kefa_build(&pkt, *at, hdr) != hdr);
	ts->len = ts->seg.len ? hdr : hdr + len;
	return hdr + len;
}

static void kefa_local_packet(struct kefa_rdm *rdm, struct kefa_ts *ts)
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

	if (ts->whole)
		held.len = kefa_local_write(rdm, ts, &held.buf);
	local->now = ts;
	kefa_rdm_packet(rdm, &held);
	local->now = NULL;
	/* If the next packet of the message finds no receive, the sender sends those from it on. */
	if (ts->whole && ts->seg.len) {
		ts->seg.phys += held.len - ts->len;
		ts->seg.len -= held.len - ts->len;
	}
	if (unlikely(rdm->reap))
		kefa_rdm_reap(rdm);
}

/* Return: whether a packet may have to be kept. An answer of a known peer never is. */
static bool kefa_local_keeps(struct kefa_rdm *rdm, const struct kefa_ts *ts)
{
	return kefa_row_of(ts->type)->flags & KEFA_ROW_REQ || !kefa_local_sender(rdm, ts->home);
}

/**
 * kefa_local_packets() - handle the packet in a slot, or all packets of the message in it
 * @rdm: the endpoint
 * @ts: the slot, of which the endpoint has the use
 * @admits: number of packets for which the endpoint has receives
 *
 * Context: Under kefa_ep.lock.
 * Return: status of the last packet for its sender.
 */
u8 kefa_local_packets(struct kefa_rdm *rdm, struct kefa_ts *ts, u32 *admits)
{
	struct kefa_local *local = rdm->local;

	lockdep_assert_held(&rdm->ep.lock);
	kefa_rdm_report(rdm);
	do {
		/* Without memory to keep the packet in, the endpoint has no receive for it. */
		local->rs = local->rs ?: kefa_rs_spare(rdm);
		if (!*admits || (!local->rs && kefa_local_keeps(rdm, ts)))
			return KEFA_STATUS_RNR;
		--*admits;
		kefa_local_packet(rdm, ts);
	} while (ts->whole && ts->seg.len);
	return 0;
}

/* Put back slots that are left for another turn, before those that were added meanwhile. */
static void kefa_local_later(struct kefa_local *local, enum kefa_local_in in, struct kefa_ts *first,
			     struct kefa_ts **tail)
{
	struct kefa_ts_queue *q = &local->in[in];

	if (likely(!first))
		return;
	spin_lock(&local->lock);
	*tail = q->head;
	if (!q->head)
		q->tail = tail;
	q->head = first;
	spin_unlock(&local->lock);
	local->more = true;
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
	struct kefa_local *local = rdm->local;
	struct kefa_ts_queue in[KEFA_LOCAL_INS];
	struct kefa_ts *done, *left;
	unsigned int n;

	lockdep_assert_held(&rdm->ep.lock);
	spin_lock(&local->lock);
	local->news = false;
	done = kefa_tsq_take(&local->done);
	in[KEFA_LOCAL_ANSWERS].tail = local->in[KEFA_LOCAL_ANSWERS].tail;
	in[KEFA_LOCAL_ANSWERS].head = kefa_tsq_take(&local->in[KEFA_LOCAL_ANSWERS]);
	in[KEFA_LOCAL_REQUESTS].tail = local->in[KEFA_LOCAL_REQUESTS].tail;
	in[KEFA_LOCAL_REQUESTS].head = kefa_tsq_take(&local->in[KEFA_LOCAL_REQUESTS]);
	spin_unlock(&local->lock);
	local->more = false;
	n = kefa_local_reap(rdm, done);
	left = kefa_local_answers(rdm, in[KEFA_LOCAL_ANSWERS].head, &n);
	kefa_local_later(local, KEFA_LOCAL_ANSWERS, left, in[KEFA_LOCAL_ANSWERS].tail);
	left = kefa_local_requests(rdm, in[KEFA_LOCAL_REQUESTS].head, &n);
	kefa_local_later(local, KEFA_LOCAL_REQUESTS, left, in[KEFA_LOCAL_REQUESTS].tail);
	kefa_rdm_report(rdm);
	if (unlikely(local->more))
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
	struct kefa_ts *answers, *requests;

	spin_lock_bh(&rdm->ep.lock);
	spin_lock(&local->lock);
	local->up = false;
	answers = kefa_tsq_take(&local->in[KEFA_LOCAL_ANSWERS]);
	requests = kefa_tsq_take(&local->in[KEFA_LOCAL_REQUESTS]);
	spin_unlock(&local->lock);
	kefa_local_refuse(answers);
	kefa_local_refuse(requests);
	local->rs = NULL;
	spin_unlock_bh(&rdm->ep.lock);
}

/**
 * kefa_local_end() - hide an endpoint from others, and get all of its slots back
 * @rdm: the endpoint, halted and without a queue pair
 *
 * The slots that a peer has taken to handle them come back at once, or into its queue, because it
 * holds a spin lock meanwhile.
 *
 * Context: Process context; sleeps. Not under kefa_ep.lock.
 */
void kefa_local_end(struct kefa_rdm *rdm)
{
	struct kefa_local *local = rdm->local;
	struct kefa_ts *done;
	u32 left;

	if (!local || !local->up)
		return;
	spin_lock_bh(&kefa_locals_lock);
	hash_del(&local->node);
	spin_unlock_bh(&kefa_locals_lock);
	kefa_local_down(rdm);
	for (;;) {
		spin_lock_bh(&rdm->ep.lock);
		kefa_local_pull(rdm);
		spin_lock(&local->lock);
		done = kefa_tsq_take(&local->done);
		spin_unlock(&local->lock);
		kefa_local_reap(rdm, done);
		kefa_rdm_report(rdm);
		left = local->nout;
		spin_unlock_bh(&rdm->ep.lock);
		if (!left)
			return;
		wait_event_timeout(local->idle, READ_ONCE(local->done.head),
				   msecs_to_jiffies(KEFA_LOCAL_END_MS));
	}
}
