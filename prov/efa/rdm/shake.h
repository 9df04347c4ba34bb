/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What an endpoint and its peers tell each other of what they can: shake.c. */
#ifndef KEFA_RDM_SHAKE_H
#define KEFA_RDM_SHAKE_H

#include "packet.h"
#include "peer.h"

/* The first device; it and later ones don't read from each other. */
#define KEFA_FIRST_DEVICE	0xefa0

/**
 * struct kefa_self - what an endpoint says of itself
 * @features: kefa_shake_features()
 * @device_version: PCI device id of its device
 * @connid: key of its queue pair
 * @raw: its address, padded with zeroes as libfabric's is
 * @homogeneous: FI_OPT_EFA_HOMOGENEOUS_PEERS: each peer can what it can itself, and no
 *	HANDSHAKE is waited for
 */
struct kefa_self {
	u64	features;
	u32	device_version;
	u32	connid;
	u8	raw[KEFA_RAW_ADDR_LEN];
	bool	homogeneous;
};

/**
 * enum kefa_signs - how a request says who sends it
 * @KEFA_SIGNS_RAW: by its raw address, as the peer may not know us
 * @KEFA_SIGNS_CONNID: by its connid
 * @KEFA_SIGNS_NOT: the device does
 * @KEFA_SIGNS: how many ways there are
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
bool kefa_shake_reads(const struct kefa_self *self, const struct kefa_rpeer *peer);
bool kefa_shake_writes(const struct kefa_self *self, const struct kefa_rpeer *peer, bool data);

/**
 * kefa_shake_ready() - may operations with a peer begin?
 * @self: the endpoint
 * @peer: the peer
 *
 * Before its HANDSHAKE has come it could be one that wants messages without headers, and
 * anything else ends its process.
 *
 * Context: Under the endpoint's lock.
 * Return: whether they may; if not they wait, and kefa_shake_ask() is called.
 */
static inline bool kefa_shake_ready(const struct kefa_self *self, const struct kefa_rpeer *peer)
{
	return peer->state == KEFA_RPEER_READY ||
	       (self->homogeneous && (peer->state == KEFA_RPEER_KNOWN ||
				      peer->state == KEFA_RPEER_SHAKING));
}

/**
 * kefa_shake_signs() - how does a request to a peer say who sends it?
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: the way.
 */
static inline enum kefa_signs kefa_shake_signs(const struct kefa_rpeer *peer)
{
	if (!(peer->flags & KEFA_RPEER_SHAKEN) ||
	    peer->features & KEFA_REQUEST_CONSTANT_HEADER_LENGTH)
		return KEFA_SIGNS_RAW;
	return peer->features & KEFA_REQUEST_CONNID_HEADER ? KEFA_SIGNS_CONNID : KEFA_SIGNS_NOT;
}

/**
 * kefa_shake_can() - what can a peer?
 * @self: the endpoint
 * @peer: the peer
 *
 * Context: Under the endpoint's lock.
 * Return: KEFA_FEATURE_RDMA_READ and so on.
 */
static inline u64 kefa_shake_can(const struct kefa_self *self, const struct kefa_rpeer *peer)
{
	return self->homogeneous ? self->features : peer->features;
}

#endif /* KEFA_RDM_SHAKE_H */
