// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ending the operations with one peer, for fi_flush(). A message that has its number can't be taken
 * back without a gap, so a peer with operations dies. Then this waits until the device is done with
 * them, and has invalidated the memory that the peer could read.
 */
#include "rdm.h"

/*
 * An operation whose completion is written uses no memory of the ULP's, though it may still owe an
 * answer. One whose completion only waits for room in the queue doesn't, either, and the caller may
 * be the reader that makes the room.
 */
static bool kefa_rop_uses(const struct kefa_rop *rop, const struct kefa_rpeer *peer)
{
	if (rop->state == KEFA_ROP_FREE || rop->state == KEFA_ROP_LISTED || rop->peer != peer)
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
		if (kefa_rop_uses(&rdm->rops.ops[i], peer))
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
