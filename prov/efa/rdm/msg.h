/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages that arrive: what msg.c, early.c and fast_eager.c share. */
#ifndef KEFA_RDM_MSG_H
#define KEFA_RDM_MSG_H

#include "rdm.h"

/* early.c */

enum kefa_took kefa_ordered_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				     const struct kefa_pkt *pkt, struct kefa_held *held);
enum kefa_took kefa_unordered_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				       const struct kefa_pkt *pkt, struct kefa_held *held);
void kefa_early_forget(struct kefa_rdm *rdm, struct kefa_held *first);

/* msg.c */

bool kefa_msg_begun(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer, u32 msg_id);

/**
 * kefa_msg_unwanted() - check whether a message can never have a receive
 * @rdm: the endpoint
 * @what: FI_MSG or FI_TAGGED
 * @tag: tag of the message
 *
 * The endpoint outlives its connections, and peers send until they hear of the end. Kept, their
 * messages would use memory, and block their senders, for as long as the endpoint exists.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it is dropped if it finds no receive.
 */
static inline bool kefa_msg_unwanted(const struct kefa_rdm *rdm, u64 what, u64 tag)
{
	struct kofi_watch *watch = rdm->watch;

	lockdep_assert_held(&rdm->ep.lock);
	if (likely(!watch || !watch->tag_ended))
		return false;
	/* Connections post no untagged receives. */
	return what != FI_TAGGED || watch->tag_ended(watch, tag);
}

/**
 * kefa_pkt_total() - get the length of a packet's message
 * @pkt: a request
 *
 * Context: Any.
 * Return: the number of bytes.
 */
static inline u64 kefa_pkt_total(const struct kefa_pkt *pkt)
{
	return pkt->row->data == KEFA_DATA_ALL ? pkt->data_len : pkt->msg_length;
}

/**
 * kefa_pkt_parts() - get the part of a packet's message that the sender sends
 * @pkt: a request
 *
 * Context: Any.
 * Return: the number of bytes; the receiver reads the rest.
 */
static inline u64 kefa_pkt_parts(const struct kefa_pkt *pkt)
{
	return pkt->row->flags & KEFA_ROW_READ ? pkt->runt_length : kefa_pkt_total(pkt);
}

/**
 * kefa_part_ok() - check that a packet fits the message to which it claims to belong
 * @pkt: another packet of the message
 * @total: length of the message
 * @parts: bytes of the message that the sender sends
 * @done: bytes of the message that have arrived; more than @parts if the message couldn't be read,
 *	and its rest is sent
 *
 * Context: Any.
 * Return: whether it fits.
 */
static inline bool kefa_part_ok(const struct kefa_pkt *pkt, u64 total, u64 parts, u64 done)
{
	return kefa_pkt_total(pkt) == total && kefa_pkt_parts(pkt) == parts &&
	       done < parts && pkt->data_len <= parts - done;
}

#endif /* KEFA_RDM_MSG_H */
