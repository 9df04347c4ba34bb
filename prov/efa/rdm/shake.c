// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * HANDSHAKE. An endpoint answers the first packet of a peer, whatever it is, by one HANDSHAKE with
 * its features. Until that has arrived, the peer puts its raw address into each request, and sends
 * only packets that all versions support. This provider sends no request of a ULP before it has
 * the peer's HANDSHAKE: it first asks for it by a write without iovs.
 */
#include <linux/bug.h>
#include <linux/string.h>
#include "shake.h"
#include "shape.h"

/**
 * kefa_shake_features() - get the provider's features and requests
 * @reads: the device supports RDMA reads
 * @writes: the device supports RDMA writes
 *
 * Of the features that both ends must have, the provider lacks headers of constant length, messages
 * that are received into the ULP's buffers, and writes with data that consume no receive, which
 * the driver's kernel verbs don't support.
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
 * kefa_shake_fill() - make an endpoint's HANDSHAKE
 * @self: the endpoint
 * @pkt: takes the HANDSHAKE, of 32 bytes, which fit inline
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
 * kefa_shake_trigger() - make the packet that asks for a HANDSHAKE
 * @self: the endpoint
 * @pkt: takes a write without iovs
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
 * kefa_shake_heard() - note that a peer has sent a packet
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: whether it was the first one, so a HANDSHAKE to the peer is due (@peer->owes).
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
 * kefa_shake_told() - note that the HANDSHAKE to a peer is passed to the device
 * @peer: the peer
 *
 * If the peer isn't ready for it, the same packet is sent again and not a second one, which old
 * versions don't accept. Only if the device reports that it was lost, the peer's next packet makes
 * another one due: kefa_peers_untold().
 *
 * Context: Under the endpoint's lock.
 */
void kefa_shake_told(struct kefa_rpeer *peer)
{
	peer->owes &= ~KEFA_OWES_HANDSHAKE;
	peer->flags |= KEFA_RPEER_TOLD;
}

/**
 * kefa_shake_untold() - note that the HANDSHAKE to a peer wasn't sent and is due again
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 */
void kefa_shake_untold(struct kefa_rpeer *peer)
{
	peer->flags &= ~KEFA_RPEER_TOLD;
	peer->owes |= KEFA_OWES_HANDSHAKE;
}

/**
 * kefa_shake_take() - handle a peer's HANDSHAKE
 * @peers: peers of the endpoint
 * @peer: the peer, with an address handle
 * @pkt: the HANDSHAKE
 *
 * The features of a peer don't change: only the first HANDSHAKE counts.
 *
 * Context: Under the endpoint's lock.
 * Return: whether operations that wait for the HANDSHAKE may begin.
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
	/* The CPU does it faster than the device. */
	if (peer->flags & KEFA_RPEER_LOCAL)
		peer->features &= ~(KEFA_FEATURE_RDMA_READ | KEFA_FEATURE_RDMA_WRITE);
	peer->device_version = min_t(u32, shake->device_version, U16_MAX);
	if (shake->extra[0] & KEFA_FEATURE_REQUEST_USER_RECV_QP &&
	    pkt->flags & KEFA_HANDSHAKE_USER_RECV_QP_HDR) {
		peer->flags |= KEFA_RPEER_HEADERLESS;
		/* The device has no longer numbers. */
		peer->rq_qpn = shake->qpn;
		peer->rq_qkey = shake->qkey;
	}
	kefa_rpeer_set_state(peers, peer, KEFA_RPEER_READY);
	return true;
}

/**
 * kefa_shake_ask() - check whether a peer must be asked for its HANDSHAKE
 * @self: the endpoint
 * @peers: peers of the endpoint
 * @peer: the peer, with which the ULP begins an operation
 *
 * A peer that has sent something gets a HANDSHAKE, and answers that by its own.
 *
 * Context: Under the endpoint's lock.
 * Return: true if the caller has to send kefa_shake_trigger(); at most once for a peer.
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
 * kefa_shake_sign_as() - put the sender's identity into a packet in a given form
 * @self: the endpoint
 * @how: form of the identity
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
 * kefa_shake_sign() - put the sender's identity into a packet
 * @self: the endpoint
 * @peer: receiver of the packet
 * @pkt: the packet, with all other fields set
 *
 * Answers always have the connid, because their headers have room for it. Data of a long-CTS
 * transfer has it only if the peer requests it.
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
 * kefa_shape_make() - prepare a header for eager messages
 * @shape: takes the header
 * @lim: limits of the endpoint
 * @self: the endpoint
 * @how: form in which the header identifies the sender
 * @tagged: the messages have tags
 *
 * Context: Any.
 */
void kefa_shape_make(struct kefa_shape *shape, const struct kefa_rdm_limits *lim,
		     const struct kefa_self *self, enum kefa_signs how, bool tagged)
{
	struct kefa_pkt pkt = {
		.row = kefa_row_of(tagged ? KEFA_EAGER_TAGRTM_PKT : KEFA_EAGER_MSGRTM_PKT),
	};

	kefa_shake_sign_as(self, how, &pkt);
	shape->type = pkt.row->type;
	shape->tagged = tagged;
	shape->hdr = kefa_build(&pkt, shape->bytes, sizeof(shape->bytes));
	WARN_ON_ONCE(!shape->hdr);
	shape->room = lim->mtu - shape->hdr;
}
