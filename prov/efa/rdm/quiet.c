// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ending the operations with one peer, for fi_flush(). A message that has its number can't be taken
 * back without a gap, so a peer with operations dies. Then this waits until the device is done with
 * them, and has invalidated the memory that the peer could read.
 *
 * Ending the operations with one tag, for connections, which share peers. Here the operations that
 * have begun get time to be carried out, and only then their peers die. Reads, writes and atomic
 * operations that the device has sent only wait for an answer: they end without that.
 */
#include "local.h"
#include "rdm.h"

/* Number of turns in which messages of peers in the same kernel are handled at most. */
#define KEFA_TAG_TURNS	16

/*
 * An operation whose completion is written uses no memory of the ULP's, though it may still owe an
 * answer. One whose completion only waits for room in the queue doesn't, either, and the caller may
 * be the reader that makes the room.
 */
static bool kefa_rop_uses(const struct kefa_rop *rop)
{
	if (rop->state == KEFA_ROP_FREE || rop->state == KEFA_ROP_LISTED)
		return false;
	return !(rop->flags & KEFA_ROP_TOLD) && (rop->wrs || !kefa_rop_untold(rop));
}

/*
 * Operations, and slots that use memory of the ULP's without one of its operations: those of whole
 * messages, and of reads into a region for the peer's write. @arg is only compared.
 */
static bool kefa_rdm_quiet_busy(struct kefa_ep *ep, const void *arg)
{
	const struct kefa_rdm *rdm = to_kefa_rdm(ep);
	const struct kefa_rpeer *peer = arg;
	u32 i;

	lockdep_assert_held(&ep->lock);
	for (i = 0; i < rdm->rops.size; i++)
		if (rdm->rops.ops[i].peer == peer && kefa_rop_uses(&rdm->rops.ops[i]))
			return true;
	for (i = 0; rdm->ts && i < rdm->nts; i++)
		if (rdm->ts[i].state != KEFA_TS_FREE && rdm->ts[i].peer == peer &&
		    (rdm->ts[i].whole || rdm->ts[i].what == KEFA_TS_FETCH))
			return true;
	return false;
}

/* Return: 0 with the peer in @found, if its operations must be waited for; or a negative errno. */
static int kefa_rdm_quiet_begin(struct kefa_rdm *rdm, fi_addr_t addr,
				const struct kefa_rpeer **found)
{
	struct kefa_rpeer *peer;
	int ret;

	lockdep_assert_held(&rdm->ep.lock);
	ret = kefa_not_enabled(&rdm->ep);
	if (ret)
		return ret;
	peer = kefa_peers_at(&rdm->peers, addr);
	if (!peer)
		return -EHOSTUNREACH;
	kefa_rdm_fail_directed(rdm, peer, ECANCELED);
	if (!kefa_rdm_quiet_busy(&rdm->ep, peer))
		return 0;
	*found = peer;
	kefa_rdm_kill(rdm, peer, ECANCELED, 0);
	kefa_rdm_pump(rdm);
	return 0;
}

/**
 * kefa_rdm_quiet() - end the operations with one peer
 * @ep_fid: the endpoint
 * @addr: the peer
 * @timeout_ms: longest time to wait
 *
 * Serves as fi_ops_ep.flush.
 *
 * Context: Process context; sleeps.
 * Return: 0, or a negative errno.
 */
int kefa_rdm_quiet(struct fid_ep *ep_fid, fi_addr_t addr, unsigned int timeout_ms)
{
	struct kefa_ep *ep = to_kefa_ep(ep_fid);
	const struct kefa_rpeer *peer = NULL;
	int ret;

	spin_lock_bh(&ep->lock);
	ret = kefa_rdm_quiet_begin(to_kefa_rdm(ep), addr, &peer);
	kefa_ep_unlock_tell(ep, false);
	/* The peer is dead, so nothing can be posted to it meanwhile. */
	return ret || !peer ? ret : kefa_ep_await(ep, kefa_rdm_quiet_busy, peer, timeout_ms);
}

/* --- operations with one tag --- */

/* A whole message that the device has, with this tag. */
static bool kefa_ts_has(const struct kefa_ts *ts, u64 tag)
{
	return ts->state != KEFA_TS_FREE && ts->whole == KEFA_WHOLE_PACKET &&
	       ts->cq_flags & FI_TAGGED && ts->tag == tag;
}

/*
 * Have a message that waits for a receive received to its end, without one, and answered if its
 * sender waits for that. Return: false if no operation is free, as in kefa_multi_take().
 */
static bool kefa_held_sink(struct kefa_rdm *rdm, struct kefa_held *held)
{
	struct kefa_rop *rop = kefa_rdm_take_sink(rdm);

	if (!rop)
		return false;
	kofi_match_remove_msg(&rdm->match, &held->msg);
	held->where = KEFA_HELD_NOT;
	kefa_rdm_feed(rdm, rop, held);
	return true;
}

static struct kefa_held *kefa_held_with(struct kefa_rdm *rdm, u64 tag)
{
	struct kofi_match_recv recv;
	struct kofi_match_msg *msg;

	kofi_match_recv_init(&recv, FI_TAGGED, FI_ADDR_UNSPEC, tag, 0, NULL);
	msg = kofi_match_peek(&rdm->match, &recv, FI_PEEK);
	return msg ? container_of(msg, struct kefa_held, msg) : NULL;
}

/* Return: whether all messages that wait for a receive with this tag were dropped. */
static bool kefa_tag_drop(struct kefa_rdm *rdm, u64 tag)
{
	struct kefa_held *held;

	while ((held = kefa_held_with(rdm, tag)))
		if (!kefa_held_sink(rdm, held))
			return false;
	return true;
}

/* End what hasn't begun, and receives whose messages are arriving. */
static void kefa_tag_cancel(struct kefa_rdm *rdm, u64 tag)
{
	struct kefa_rop *rop;
	u32 i;

	for (i = 0; i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (!kefa_rop_has(rop, tag))
			continue;
		if (rop->state == KEFA_ROP_LISTED) {
			kofi_match_remove(&rdm->match, &rop->recv);
			kefa_rdm_unposted(rdm, rop, ECANCELED);
		} else if (rop->flags & KEFA_ROP_TX) {
			kefa_rdm_cancel_send(rdm, rop);
		} else if (!(rop->flags & KEFA_ROP_PART)) {
			kefa_rdm_abandon(rdm, rop);
		}
	}
}

/* Drops more messages, too, because operations may have become free for them. */
static bool kefa_tag_busy(struct kefa_ep *ep, const void *arg)
{
	struct kefa_rdm *rdm = to_kefa_rdm(ep);
	const u64 tag = *(const u64 *)arg;
	u32 i;

	lockdep_assert_held(&ep->lock);
	if (ep->state == KEFA_EP_ENABLED && !kefa_tag_drop(rdm, tag))
		return true;
	for (i = 0; i < rdm->rops.size; i++)
		if (kefa_rop_has(&rdm->rops.ops[i], tag) && kefa_rop_uses(&rdm->rops.ops[i]))
			return true;
	for (i = 0; rdm->ts && i < rdm->nts; i++)
		if (kefa_ts_has(&rdm->ts[i], tag))
			return true;
	/* The senders of what was dropped may wait for answers, and other peers for receives. */
	if (ep->state == KEFA_EP_ENABLED && kefa_rdm_due(rdm))
		kefa_ep_kick(ep);
	return false;
}

/* Kill the peers of what is left, unless the device has none of it. */
static void kefa_tag_kill(struct kefa_rdm *rdm, u64 tag)
{
	struct kefa_held *held = kefa_held_with(rdm, tag);
	struct kefa_rop *rop;
	u32 i;

	if (held)
		kefa_rdm_kill(rdm, held->peer, ECANCELED, 0);
	for (i = 0; i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (!kefa_rop_has(rop, tag) || !kefa_rop_uses(rop))
			continue;
		if (kefa_far_waits(rop))
			kefa_rop_fail(rdm, rop, ECANCELED, 0);
		else
			kefa_rdm_kill(rdm, rop->peer, ECANCELED, 0);
	}
	for (i = 0; i < rdm->nts; i++)
		if (kefa_ts_has(&rdm->ts[i], tag))
			kefa_rdm_kill(rdm, rdm->ts[i].peer, ECANCELED, 0);
}

/*
 * Handle what the device has completed before the call, and what peers in the same kernel have
 * passed on, so that receives whose messages have arrived complete. Packets that arrive meanwhile
 * are the worker's: a flood of them, by any peer of the lane, would keep the lock held with bottom
 * halves off.
 */
static void kefa_tag_poll(struct kefa_rdm *rdm)
{
	u32 left = rdm->nposted + rdm->nts, n;

	lockdep_assert_held(&rdm->ep.lock);
	do {
		n = kefa_rdm_poll(&rdm->ep, KEFA_POLL_BUDGET);
		left -= min(n, left);
	} while (n >= KEFA_POLL_BUDGET && left);
	for (n = 0; rdm->local && kefa_local_due(rdm->local) && n < KEFA_TAG_TURNS; n++)
		kefa_local_take(rdm);
}

static void kefa_tag_begin(struct kefa_ep *ep, u64 tag, bool kill)
	__releases(&ep->lock)
{
	struct kefa_rdm *rdm = to_kefa_rdm(ep);

	lockdep_assert_held(&ep->lock);
	if (ep->state == KEFA_EP_ENABLED) {
		kefa_tag_poll(rdm);
		if (kill)
			kefa_tag_kill(rdm, tag);
		else
			kefa_tag_cancel(rdm, tag);
		kefa_tag_drop(rdm, tag);
		kefa_rdm_pump(rdm);
		/* The worker arms the queue again. */
		kefa_ep_kick(ep);
	}
	kefa_ep_unlock_tell(ep, false);
}

/**
 * kefa_rdm_quiet_tag() - end the operations with one tag
 * @ep_fid: the endpoint
 * @tag: the tag
 * @timeout_ms: longest time to wait before the peers of what is left die, and also afterwards; 0 to
 *	let them live
 *
 * Serves as fi_ops_ep.flush_tag.
 *
 * Context: Process context; sleeps.
 * Return: 0 or -ETIMEDOUT.
 */
int kefa_rdm_quiet_tag(struct fid_ep *ep_fid, u64 tag, unsigned int timeout_ms)
{
	struct kefa_ep *ep = to_kefa_ep(ep_fid);
	int ret;

	spin_lock_bh(&ep->lock);
	kefa_tag_begin(ep, tag, false);
	ret = kefa_ep_await(ep, kefa_tag_busy, &tag, timeout_ms);
	if (!ret || !timeout_ms)
		return ret;
	spin_lock_bh(&ep->lock);
	kefa_tag_begin(ep, tag, true);
	return kefa_ep_await(ep, kefa_tag_busy, &tag, timeout_ms);
}
