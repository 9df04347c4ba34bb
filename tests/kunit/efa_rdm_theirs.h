/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libfabric's view of the packets between two endpoints of fabric efa: which operations it would
 * have at each end, and whether these expect a packet that the other end sends.
 *
 * libfabric looks up an operation by the id in a packet without any check, so a packet that names
 * an operation that has ended changes another one, or memory that was freed. The rules hold for
 * 1.17, 2.1 and main; Documentation/efa-rdm.rst has them as a table.
 */
#ifndef KOFI_EFA_RDM_THEIRS_H
#define KOFI_EFA_RDM_THEIRS_H

#include <linux/xarray.h>
#include "../../prov/efa/rdm/packet.h"

/**
 * struct rdm_theirs_end - one of the ends
 * @told: its HANDSHAKE has arrived at the other end
 * @features: features in its HANDSHAKE
 * @msgs: its messages to the other end, by msg_id
 * @sends: those whose sender waits for an answer, by send_id
 * @recvs: those that are granted, by the other end's recv_id
 */
struct rdm_theirs_end {
	bool		told;
	u64		features;
	struct xarray	msgs;
	struct xarray	sends;
	struct xarray	recvs;
};

/**
 * struct rdm_theirs - libfabric's operations at two ends
 * @end: the ends
 * @homogeneous: the ends don't wait for HANDSHAKEs and have all features
 * @off: a test has made one end do what libfabric never does, so nothing is checked any more
 */
struct rdm_theirs {
	struct rdm_theirs_end	end[2];
	bool			homogeneous;
	bool			off;
};

void rdm_theirs_init(struct rdm_theirs *t);
/* Forget all messages: at the end, or because the test has changed the next numbers. */
void rdm_theirs_forget(struct rdm_theirs *t);
/*
 * An end has sent a packet that has arrived at the other end. Return: NULL, or why libfabric
 * doesn't expect it there.
 */
const char *rdm_theirs_packet(struct rdm_theirs *t, int from, const void *buf, size_t len);
/* Return: the number of an end's messages that aren't complete, or wait for an answer. */
unsigned int rdm_theirs_waiting(struct rdm_theirs *t, int at);

#endif /* KOFI_EFA_RDM_THEIRS_H */
