/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads and writes by peers: what target.c, fetch.c and asked.c share. */
#ifndef KEFA_RDM_TARGET_H
#define KEFA_RDM_TARGET_H

#include "../mr.h"
#include "rdm.h"

/**
 * struct kefa_target - memory that a peer's operation names
 * @list: in kefa_rdm.targets_free
 * @rop: the operation, or NULL
 * @n: number of entries of @mem
 * @idle: number of checks since which the operation has made no progress
 * @seen: bytes that had arrived and were sent at the last check
 * @mem: the memory
 * @nfrom: number of entries of @from
 * @from: for a write that is read, memory of the peer
 */
struct kefa_target {
	struct list_head	list;
	struct kefa_rop		*rop;
	u8			n;
	u8			idle;
	u64			seen;
	struct kefa_named	mem[KEFA_IOV_MAX];
	u8			nfrom;
	struct kefa_named	from[KEFA_IOV_MAX];
};

bool kefa_target_fault(struct kefa_rdm *rdm, struct kefa_rpeer *peer, enum kefa_fault fault);
bool kefa_target_check(struct kefa_rdm *rdm, struct kefa_rpeer *peer, const struct kefa_pkt *pkt,
		       u64 access, struct kefa_named *mem);
bool kefa_target_write(struct kefa_rdm *rdm, struct kefa_rpeer *peer, const struct kefa_named *mem,
		       const struct kefa_pkt *pkt, u64 off);
bool kefa_target_room(struct kefa_rdm *rdm, const struct kefa_rpeer *peer, u16 flags);
void kefa_target_unroom(struct kefa_rdm *rdm, bool data);
void kefa_target_tell(struct kefa_rdm *rdm, fi_addr_t src, u64 len, bool data, u64 value);
bool kefa_target_may_answer(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
bool kefa_target_may_begin(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer);
struct kefa_rop *kefa_target_begin(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				   const struct kefa_pkt *pkt, const struct kefa_named *mem,
				   enum kefa_rop_state state);
bool kefa_asked_same(const struct kefa_held *held, const struct kefa_pkt *pkt,
		     const struct kefa_named *mem);
void kefa_rtw_completed(struct kefa_rdm *rdm, struct kefa_rop *rop);

#endif /* KEFA_RDM_TARGET_H */
