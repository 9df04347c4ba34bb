/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Senders without an address handle: strange.c. */
#ifndef KEFA_RDM_STRANGE_H
#define KEFA_RDM_STRANGE_H

#include "rdm.h"

void kefa_rdm_join(struct work_struct *work);
enum kefa_took kefa_packet_strange(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				   const struct kefa_src *src, struct kefa_held *held);

/**
 * kefa_strange_take() - remove a parked packet from the list of strangers' packets
 * @rdm: the endpoint
 * @held: the packet
 *
 * Context: Under kefa_ep.lock.
 */
static inline void kefa_strange_take(struct kefa_rdm *rdm, struct kefa_held *held)
{
	list_del_init(&held->link);
	rdm->strange_kept -= held->cost;
}

#endif /* KEFA_RDM_STRANGE_H */
