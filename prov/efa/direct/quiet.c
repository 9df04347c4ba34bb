// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ending the operations with one peer, for fi_flush(). Work requests that wait to be resent, and
 * pieces that wait for a slot, end at once. The device doesn't give work requests back, so the call
 * waits until it completes them; those that are held for the next doorbell are posted before. Slots
 * record the address handle, which all endpoints of a device share, but not the queue pair: without
 * FI_OPT_RNR_TIMEOUT the call also waits for what was posted to the peer's neighbours before.
 */
#include <linux/slab.h>
#include "../kefa.h"
#include "path.h"

/* Marks a slot that isn't waited for: no work request has this id. */
#define KEFA_NO_ID	U64_MAX

static bool kefa_slot_is_to(const struct kefa_direct *direct, u32 slot,
			    const struct kefa_av_key *key)
{
	const struct kefa_op *op = &direct->ops[slot];

	if (op->state == KEFA_OP_FREE || op->head->ah != key->ah)
		return false;
	return !direct->again || direct->again[slot].wr.srd.remote_qpn == key->qpn;
}

/* End what isn't posted, and note the ids of the rest in @ids. */
static int kefa_quiet_begin(struct kefa_ep *ep, fi_addr_t addr, u64 *ids)
{
	struct kefa_direct *direct = to_kefa_direct(ep);
	const struct kefa_peer *peer;
	struct kefa_av_key key;
	u32 slot;
	int ret;

	lockdep_assert_held(&ep->lock);
	ret = kefa_not_enabled(ep);
	if (ret)
		return ret;
	peer = kefa_av_peer(ep->av, addr);
	if (!peer)
		return -EHOSTUNREACH;
	key = peer->key;
	kefa_rests_give_up(ep, &key);
	kefa_rnr_give_up(ep, &key);
	for (slot = 0; slot < ep->tx.base.size; slot++)
		ids[slot] = kefa_slot_is_to(direct, slot, &key) ? direct->ops[slot].id :
								  KEFA_NO_ID;
	return 0;
}

static bool kefa_quiet_busy(struct kefa_ep *ep, const void *arg)
{
	const struct kefa_direct *direct = to_kefa_direct(ep);
	const u64 *ids = arg;
	u32 slot;

	lockdep_assert_held(&ep->lock);
	for (slot = 0; slot < ep->tx.base.size; slot++)
		if (direct->ops[slot].state != KEFA_OP_FREE && direct->ops[slot].id == ids[slot])
			return true;
	return false;
}

/**
 * kefa_direct_quiet() - end the operations with one peer
 * @ep_fid: the endpoint
 * @addr: the peer
 * @timeout_ms: longest time to wait
 *
 * Serves as fi_ops_ep.flush.
 *
 * Context: Process context; sleeps.
 * Return: 0, or a negative errno; -ENOMEM before anything was ended.
 */
int kefa_direct_quiet(struct fid_ep *ep_fid, fi_addr_t addr, unsigned int timeout_ms)
{
	struct kefa_ep *ep = to_kefa_ep(ep_fid);
	u64 *ids;
	int ret;

	ids = kmalloc_array(ep->tx.base.size, sizeof(*ids), GFP_KERNEL);
	if (!ids)
		return -ENOMEM;
	spin_lock_bh(&ep->lock);
	ret = kefa_quiet_begin(ep, addr, ids);
	kefa_ep_unlock_tell(ep, false);
	ret = ret ?: kefa_ep_await(ep, kefa_quiet_busy, ids, timeout_ms);
	kfree(ids);
	return ret;
}
