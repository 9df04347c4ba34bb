// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ending the operations with one peer, for fi_flush(). A message that has its number can't be taken
 * back without a gap, so a peer with operations dies. Then this waits until the device is done with
 * them, and has invalidated the memory that the peer could read.
 */
#include <linux/iopoll.h>
#include "rdm.h"

/*
 * Operations, and whole messages that have only a send slot. An operation in KEFA_ROP_UNTOLD waits
 * only for room in the completion queue, which the caller's reader makes.
 */
static u32 kefa_rdm_quiet_left(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	const u32 over = BIT(KEFA_ROP_FREE) | BIT(KEFA_ROP_LISTED) | BIT(KEFA_ROP_UNTOLD);
	u32 i, left = 0;

	lockdep_assert_held(&rdm->ep.lock);
	for (i = 0; i < rdm->rops.size; i++)
		left += !(over & BIT(rdm->rops.ops[i].state)) &&
			rdm->rops.ops[i].peer == peer;
	for (i = 0; rdm->ts && i < rdm->nts; i++)
		left += rdm->ts[i].state != KEFA_TS_FREE && rdm->ts[i].whole &&
			rdm->ts[i].peer == peer;
	return left;
}

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
	*found = peer;
	kefa_rdm_fail_directed(rdm, peer, ECANCELED);
	if (kefa_rdm_quiet_left(rdm, peer)) {
		kefa_rdm_kill(rdm, peer, ECANCELED, 0);
		kefa_rdm_pump(rdm);
	}
	return 0;
}

/* @peer is only compared: the ULP may remove it meanwhile, against the rule. */
static u32 kefa_rdm_quiet_look(struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	u32 left;

	spin_lock_bh(&rdm->ep.lock);
	left = kefa_rdm_quiet_left(rdm, peer);
	/* The reader may be the task that waits here. */
	if (left)
		kefa_ep_kick(&rdm->ep);
	spin_unlock_bh(&rdm->ep.lock);
	return left;
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
	struct kefa_rdm *rdm = to_kefa_rdm(to_kefa_ep(ep_fid));
	const struct kefa_rpeer *peer;
	u32 left;
	int ret;

	spin_lock_bh(&rdm->ep.lock);
	ret = kefa_rdm_quiet_begin(rdm, addr, &peer);
	kefa_ep_unlock_tell(&rdm->ep, false);
	return ret ?: read_poll_timeout(kefa_rdm_quiet_look, left, !left, KEFA_QUIET_US,
					(u64)timeout_ms * USEC_PER_MSEC + 1, false, rdm, peer);
}
