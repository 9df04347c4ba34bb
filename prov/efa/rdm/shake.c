// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * HANDSHAKE. An endpoint answers the first packet that it gets from a peer, whatever it is,
 * by one HANDSHAKE, which says what it can. Until that has come, its peer gives its raw
 * address in each request, and sends nothing that not every version knows. We send no
 * request of a ULP before: a packet that asks for the HANDSHAKE, a write to nowhere, goes
 * first.
 */
#include <linux/string.h>
#include "shake.h"

/**
 * kefa_shake_features() - what we can, and what we want of peers
 * @reads: the device does RDMA reads
 * @writes: and writes
 *
 * Of what the ends must agree on we have no headers of constant length, no receiving into
 * a ULP's buffers, and no writes with data that take no receive: the kernel's driver can't.
 *
 * Context: Any.
 * Return: KEFA_FEATURE_RDMA_READ and so on.
 */
u64 kefa_shake_features(bool reads, bool writes)
{
	return KEFA_FEATURE_DELIVERY_COMPLETE | KEFA_REQUEST_CONNID_HEADER | KEFA_FEATURE_RUNT |
	       KEFA_FEATURE_READ_NACK | (reads ? KEFA_FEATURE_RDMA_READ : 0) |
	       (writes ? KEFA_FEATURE_RDMA_WRITE : 0);
}

/**
 * kefa_shake_fill() - say what we can
 * @self: the endpoint
 * @pkt: set to its HANDSHAKE, of 32 bytes, which go inline
 *
 * Context: Any.
 */
void kefa_shake_fill(const struct kefa_self *self, struct kefa_pkt *pkt)
{
	*pkt = (struct kefa_pkt) {
		.row		= kefa_row_of(KEFA_HANDSHAKE_PKT),
		.flags		= KEFA_PKT_CONNID_HDR | KEFA_HANDSHAKE_DEVICE_VERSION_HDR,
		.has_connid	= true,
		.connid		= self->connid,
		.shake		= {
			.nextra_p3	= KEFA_NEXTRA_P3 + 1,
			.extra[0]	= self->features,
			.device_version	= self->device_version,
		},
	};
}

/**
 * kefa_shake_trigger() - ask for a HANDSHAKE
 * @self: the endpoint
 * @pkt: set to a write to nowhere
 *
 * Context: Any.
 */
void kefa_shake_trigger(const struct kefa_self *self, struct kefa_pkt *pkt)
{
	*pkt = (struct kefa_pkt) {
		.row		= kefa_row_of(KEFA_EAGER_RTW_PKT),
		.flags		= KEFA_REQ_OPT_RAW_ADDR_HDR,
		.has_connid	= true,
		.connid		= self->connid,
		.raw		= self->raw,
		.raw_len	= sizeof(self->raw),
	};
}

/**
 * kefa_shake_heard() - a peer has sent a packet
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: whether it was the first one, so that @peer->owes has a HANDSHAKE now.
 */
bool kefa_shake_heard(struct kefa_rpeer *peer)
{
	if (peer->flags & KEFA_RPEER_HEARD)
		return false;
	peer->flags |= KEFA_RPEER_HEARD;
	peer->owes |= KEFA_OWES_HANDSHAKE;
	return true;
}

/**
 * kefa_shake_told() - our HANDSHAKE is handed to the device
 * @peer: the peer
 *
 * If the peer isn't ready for it the same packet is sent again, and never another one: old
 * versions don't take two. A peer that doesn't get it at all sends nothing more.
 *
 * Context: Under the endpoint's lock.
 */
void kefa_shake_told(struct kefa_rpeer *peer)
{
	peer->owes &= ~KEFA_OWES_HANDSHAKE;
	peer->flags |= KEFA_RPEER_TOLD;
}

/**
 * kefa_shake_untold() - the device hasn't taken our HANDSHAKE
 * @peer: the peer, which it is owed again
 *
 * Context: Under the endpoint's lock.
 */
void kefa_shake_untold(struct kefa_rpeer *peer)
{
	peer->flags &= ~KEFA_RPEER_TOLD;
	peer->owes |= KEFA_OWES_HANDSHAKE;
}

/**
 * kefa_shake_take() - a peer's HANDSHAKE has come
 * @peers: of the endpoint
 * @peer: the peer, with an address handle
 * @pkt: what it says
 *
 * What a peer can doesn't change: only the first one counts.
 *
 * Context: Under the endpoint's lock.
 * Return: whether operations that wait for it may begin.
 */
bool kefa_shake_take(struct kefa_peers *peers, struct kefa_rpeer *peer,
		     const struct kefa_pkt *pkt)
{
	const struct kefa_shake *shake = &pkt->shake;

	if (peer->flags & KEFA_RPEER_SHAKEN ||
	    (peer->state != KEFA_RPEER_KNOWN && peer->state != KEFA_RPEER_SHAKING))
		return false;
	peer->flags |= KEFA_RPEER_SHAKEN;
	peer->features = shake->extra[0];
	peer->device_version = shake->device_version;
	if (shake->extra[0] & KEFA_FEATURE_REQUEST_USER_RECV_QP &&
	    pkt->flags & KEFA_HANDSHAKE_USER_RECV_QP_HDR) {
		peer->flags |= KEFA_RPEER_HEADERLESS;
		peer->rq_qpn = shake->qpn;
		peer->rq_qkey = shake->qkey;
	}
	kefa_rpeer_set_state(peers, peer, KEFA_RPEER_READY);
	return true;
}

/**
 * kefa_shake_ask() - does a peer have to be asked for its HANDSHAKE?
 * @self: the endpoint
 * @peers: of the endpoint
 * @peer: the peer, which there is an operation for
 *
 * One that has sent something is owed our HANDSHAKE, and answers that by its own.
 *
 * Context: Under the endpoint's lock.
 * Return: whether the caller sends kefa_shake_trigger(), which it is told once.
 */
bool kefa_shake_ask(const struct kefa_self *self, struct kefa_peers *peers,
		    struct kefa_rpeer *peer)
{
	if (self->homogeneous || peer->state != KEFA_RPEER_KNOWN)
		return false;
	kefa_rpeer_set_state(peers, peer, KEFA_RPEER_SHAKING);
	return !(peer->flags & KEFA_RPEER_HEARD);
}

/**
 * kefa_shake_sign_as() - have a packet say in a given way who sends it
 * @self: the endpoint
 * @how: the way
 * @pkt: the packet
 *
 * Context: Any.
 */
void kefa_shake_sign_as(const struct kefa_self *self, enum kefa_signs how, struct kefa_pkt *pkt)
{
	pkt->has_connid = how != KEFA_SIGNS_NOT;
	pkt->connid = pkt->has_connid ? self->connid : 0;
	if (how == KEFA_SIGNS_CONNID)
		pkt->flags |= KEFA_PKT_CONNID_HDR;
	if (how != KEFA_SIGNS_RAW)
		return;
	pkt->flags |= KEFA_REQ_OPT_RAW_ADDR_HDR;
	pkt->raw = self->raw;
	pkt->raw_len = sizeof(self->raw);
}

/**
 * kefa_shake_sign() - have a packet say who sends it
 * @self: the endpoint
 * @peer: whom it is for
 * @pkt: the packet, with its row; the rest of it is set already
 *
 * Answers have our connid always, as there is room for it; other than the data of a
 * long-CTS transfer, where there is only if the peer wants it.
 *
 * Context: Under the endpoint's lock.
 */
void kefa_shake_sign(const struct kefa_self *self, const struct kefa_rpeer *peer,
		     struct kefa_pkt *pkt)
{
	enum kefa_signs how = KEFA_SIGNS_CONNID;

	if (pkt->row->flags & KEFA_ROW_REQ)
		how = kefa_shake_signs(peer);
	else if (pkt->row->flags & KEFA_ROW_TAIL_CONNID &&
		 !(peer->features & KEFA_REQUEST_CONNID_HEADER))
		how = KEFA_SIGNS_NOT;
	kefa_shake_sign_as(self, how, pkt);
}

/**
 * kefa_shake_reads() - may one read from the other's memory by RDMA?
 * @self: the endpoint
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: whether they may, in both directions.
 */
bool kefa_shake_reads(const struct kefa_self *self, const struct kefa_rpeer *peer)
{
	if (!(self->features & kefa_shake_can(self, peer) & KEFA_FEATURE_RDMA_READ))
		return false;
	return self->homogeneous || (self->device_version == KEFA_FIRST_DEVICE) ==
				    (peer->device_version == KEFA_FIRST_DEVICE);
}

/**
 * kefa_shake_writes() - may we write to a peer's memory by RDMA?
 * @self: the endpoint
 * @peer: the peer
 * @data: with remote CQ data
 *
 * A write with data takes a receive at one that doesn't have the feature for it, and none
 * at one that has; the ends have to agree, and we don't have it.
 *
 * Context: Under the endpoint's lock.
 * Return: whether we may.
 */
bool kefa_shake_writes(const struct kefa_self *self, const struct kefa_rpeer *peer, bool data)
{
	const u64 can = kefa_shake_can(self, peer);

	return self->features & can & KEFA_FEATURE_RDMA_WRITE &&
	       !(data && can & KEFA_FEATURE_UNSOLICITED_WRITE_RECV);
}
