/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Exchange of features between an endpoint and its peers: shake.c. */
#ifndef KEFA_RDM_SHAKE_H
#define KEFA_RDM_SHAKE_H

#include "packet.h"
#include "peer.h"

/* The first device. It and later ones can't read from each other. */
#define KEFA_FIRST_DEVICE	0xefa0

/**
 * struct kefa_self - description of an endpoint for its peers
 * @features: result of kefa_shake_features()
 * @device_version: PCI device id of the endpoint's device
 * @connid: connid of the endpoint, which is the key of its queue pair
 * @raw: raw address of the endpoint, padded with zeroes as in libfabric
 * @homogeneous: FI_OPT_EFA_HOMOGENEOUS_PEERS: all peers have the endpoint's own features, and
 *	operations don't wait for a HANDSHAKE
 */
struct kefa_self {
	u64	features;
	u32	device_version;
	u32	connid;
	u8	raw[KEFA_RAW_ADDR_LEN];
	bool	homogeneous;
};

/**
 * enum kefa_signs - form in which a request identifies its sender
 * @KEFA_SIGNS_RAW: by the raw address, because the peer may not know this endpoint
 * @KEFA_SIGNS_CONNID: by the connid
 * @KEFA_SIGNS_NOT: not at all, only the device does
 * @KEFA_SIGNS: number of forms
 */
enum kefa_signs {
	KEFA_SIGNS_RAW,
	KEFA_SIGNS_CONNID,
	KEFA_SIGNS_NOT,
	KEFA_SIGNS
};

u64 kefa_shake_features(bool reads, bool writes);
void kefa_shake_fill(const struct kefa_self *self, struct kefa_pkt *pkt);
void kefa_shake_trigger(const struct kefa_self *self, struct kefa_pkt *pkt);
bool kefa_shake_heard(struct kefa_rpeer *peer);
void kefa_shake_told(struct kefa_rpeer *peer);
void kefa_shake_untold(struct kefa_rpeer *peer);
bool kefa_shake_take(struct kefa_peers *peers, struct kefa_rpeer *peer,
		     const struct kefa_pkt *pkt);
bool kefa_shake_ask(const struct kefa_self *self, struct kefa_peers *peers,
		    struct kefa_rpeer *peer);
void kefa_shake_sign_as(const struct kefa_self *self, enum kefa_signs how, struct kefa_pkt *pkt);
void kefa_shake_sign(const struct kefa_self *self, const struct kefa_rpeer *peer,
		     struct kefa_pkt *pkt);

/**
 * kefa_shake_ready() - check whether operations with a peer may begin
 * @self: the endpoint
 * @peer: the peer
 *
 * Before its HANDSHAKE has arrived, the peer could be one that requires messages without headers,
 * whose process ends if it gets any other packet.
 *
 * Context: Under the endpoint's lock.
 * Return: whether they may; if not, the caller lets them wait and calls kefa_shake_ask().
 */
static inline bool kefa_shake_ready(const struct kefa_self *self, const struct kefa_rpeer *peer)
{
	return peer->state == KEFA_RPEER_READY ||
	       (self->homogeneous && (peer->state == KEFA_RPEER_KNOWN ||
				      peer->state == KEFA_RPEER_SHAKING));
}

/**
 * kefa_shake_signs() - get the form in which requests to a peer identify their sender
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: the form.
 */
static __always_inline enum kefa_signs kefa_shake_signs(const struct kefa_rpeer *peer)
{
	const u64 form = KEFA_REQUEST_CONSTANT_HEADER_LENGTH | KEFA_REQUEST_CONNID_HEADER;

	/* The usual form first, so that what depends on it is a constant. */
	if (likely(peer->flags & KEFA_RPEER_SHAKEN &&
		   (peer->features & form) == KEFA_REQUEST_CONNID_HEADER))
		return KEFA_SIGNS_CONNID;
	if (!(peer->flags & KEFA_RPEER_SHAKEN) ||
	    peer->features & KEFA_REQUEST_CONSTANT_HEADER_LENGTH)
		return KEFA_SIGNS_RAW;
	return KEFA_SIGNS_NOT;
}

/**
 * kefa_shake_can() - get the features of a peer
 * @self: the endpoint
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: KEFA_FEATURE_RDMA_READ and so on.
 */
static inline u64 kefa_shake_can(const struct kefa_self *self, const struct kefa_rpeer *peer)
{
	const u64 rdma = KEFA_FEATURE_RDMA_READ | KEFA_FEATURE_RDMA_WRITE;

	if (!self->homogeneous)
		return peer->features;
	return peer->flags & KEFA_RPEER_LOCAL ? self->features & ~rdma : self->features;
}

/**
 * kefa_shake_reads() - check whether the ends may read each other's memory by RDMA
 * @self: the endpoint
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: whether reads are possible in both directions.
 */
static inline bool kefa_shake_reads(const struct kefa_self *self, const struct kefa_rpeer *peer)
{
	if (self->homogeneous)
		return kefa_shake_can(self, peer) & KEFA_FEATURE_RDMA_READ;
	return self->features & peer->features & KEFA_FEATURE_RDMA_READ &&
	       (self->device_version == KEFA_FIRST_DEVICE) ==
	       (peer->device_version == KEFA_FIRST_DEVICE);
}

/**
 * kefa_shake_writes() - check whether the endpoint may write to a peer's memory by RDMA
 * @self: the endpoint
 * @peer: the peer
 * @data: the write has remote CQ data
 *
 * A write with data consumes a receive at a peer without the feature for unsolicited writes, and
 * none at a peer with it. Both ends must have it or lack it, and this provider lacks it.
 *
 * Context: Under the endpoint's lock.
 * Return: whether it may.
 */
static inline bool kefa_shake_writes(const struct kefa_self *self, const struct kefa_rpeer *peer,
				     bool data)
{
	const u64 can = kefa_shake_can(self, peer);

	return self->features & can & KEFA_FEATURE_RDMA_WRITE &&
	       !(data && can & KEFA_FEATURE_UNSOLICITED_WRITE_RECV);
}

#endif /* KEFA_RDM_SHAKE_H */
