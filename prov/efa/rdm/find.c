// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lookup of peers by what completions and packets say about a sender. ident.c decides which peer
 * the sender is.
 */
#include <linux/string.h>
#include "peer.h"

/**
 * kefa_peers_by_src() - find a sender by handle number and queue pair
 * @peers: peers of the endpoint
 * @src: description of the sender. Without a connid it is the last peer that had the queue pair
 *
 * Context: Under @peers->lock.
 * Return: the peer, or NULL.
 */
struct kefa_rpeer *kefa_peers_by_src(struct kefa_peers *peers, const struct kefa_src *src)
{
	struct kefa_rpeer *peer = peers->last;
	struct kefa_index_node *n;

	lockdep_assert_held(peers->lock);
	if (src->slid == KEFA_NO_SLID)
		return NULL;
	if (peer && src->has_connid && kefa_rpeer_sent(peer, src->slid, src->qpn, src->connid))
		return peer;
	peers->last = NULL;
	kefa_index_for_each(n, &peers->by_src, (u64)src->slid << 32 | src->qpn) {
		peer = container_of(n, struct kefa_rpeer, by_src);
		if (src->has_connid && kefa_rpeer_connid(peer) != src->connid)
			continue;
		peers->last = peer;
		break;
	}
	return peers->last;
}

/**
 * kefa_peers_by_conn() - find a sender by queue pair and connid
 * @peers: peers of the endpoint
 * @src: description of the sender. The peer's GID is that of the packet, if it has one. Among
 *	several peers it is the owner's, if that is known
 *
 * Context: Under @peers->lock.
 * Return: the peer, or NULL if there is none, or several.
 */
struct kefa_rpeer *kefa_peers_by_conn(struct kefa_peers *peers, const struct kefa_src *src)
{
	struct kefa_rpeer *found = NULL, *peer;
	struct kefa_index_node *n;
	u32 count = 0;

	lockdep_assert_held(peers->lock);
	if (!src->has_connid)
		return NULL;
	kefa_index_for_each(n, &peers->by_conn, (u64)src->qpn << 32 | src->connid) {
		peer = container_of(n, struct kefa_rpeer, by_conn);
		if (src->gid && memcmp(peer->gid, src->gid, sizeof(peer->gid)))
			continue;
		if (src->owner && !memcmp(peer->gid, src->owner, sizeof(peer->gid)))
			return peer;
		found = peer;
		count++;
	}
	peers->stats.doubtful += count > 1;
	return count == 1 ? found : NULL;
}

/**
 * kefa_peers_bind() - set the number of a peer's address handle
 * @peers: peers of the endpoint
 * @peer: the peer
 * @slid: the number
 *
 * Context: Under @peers->lock.
 */
void kefa_peers_bind(struct kefa_peers *peers, struct kefa_rpeer *peer, u16 slid)
{
	lockdep_assert_held(peers->lock);
	kefa_peers_unbind(peers, peer);
	peer->since_id = peer->order.exp_id;
	kefa_index_add(&peers->by_src, &peer->by_src,
		       (u64)slid << 32 | kefa_rpeer_qpn(peer));
}

/**
 * kefa_peers_unbind() - forget the number of a peer's address handle
 * @peers: peers of the endpoint
 * @peer: the peer
 *
 * Context: Under @peers->lock.
 */
void kefa_peers_unbind(struct kefa_peers *peers, struct kefa_rpeer *peer)
{
	lockdep_assert_held(peers->lock);
	kefa_index_del(&peers->by_src, &peer->by_src);
	/* No packet has this, and the peer no previous handle. */
	peer->by_src.key = U64_MAX;
	if (peers->last == peer)
		peers->last = NULL;
}

/**
 * kefa_peers_next() - slow part of kefa_peers_known(), if the sender isn't kefa_peers.last
 * @peers: peers of the endpoint
 * @slid: number of the sender's address handle
 * @qpn: queue pair of the sender
 * @connid: connid in the packet
 *
 * Context: Under @peers->lock.
 * Return: the peer, or NULL.
 */
struct kefa_rpeer *kefa_peers_next(struct kefa_peers *peers, u16 slid, u32 qpn, u32 connid)
{
	const struct kefa_src src = {
		.slid		= slid,
		.qpn		= qpn,
		.connid		= connid,
		.has_connid	= true,
	};

	return kefa_peers_by_src(peers, &src);
}

/**
 * kefa_peers_superseded() - find the previous owner of a peer's queue pair
 * @peers: peers of the endpoint
 * @peer: a peer that has shown by its raw address or a HANDSHAKE that the queue pair is its own
 *
 * Context: Under @peers->lock.
 * Return: another peer with the same queue pair number that isn't dead yet, or NULL.
 */
struct kefa_rpeer *kefa_peers_superseded(struct kefa_peers *peers, struct kefa_rpeer *peer)
{
	struct kefa_index_node *n;
	struct kefa_rpeer *other;

	lockdep_assert_held(peers->lock);
	if (kefa_rpeer_slid(peer) == KEFA_NO_SLID)
		return NULL;
	kefa_index_for_each(n, &peers->by_src, peer->by_src.key) {
		other = container_of(n, struct kefa_rpeer, by_src);
		if (other != peer && !kefa_rpeer_dead(other))
			return other;
	}
	return NULL;
}
