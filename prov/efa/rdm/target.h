/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads and writes by peers: what target.c, fetch.c and asked.c share. */
#ifndef KEFA_RDM_TARGET_H
#define KEFA_RDM_TARGET_H

#include "../copy.h"
#include "../mr.h"
#include "rdm.h"
#include "tx.h"

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

/**
 * struct kefa_slice - source of the data in a copy buffer
 * @mem: memory of the operation
 * @off: offset of the data in @mem
 * @hdr: length of the headers, which precede the data
 *
 * It is in the slot, behind the room for the headers, because the data isn't there.
 */
struct kefa_slice {
	struct kefa_named	mem[KEFA_IOV_MAX];
	u64			off;
	u32			hdr;
};

static_assert(KEFA_HDR_ROOM % __alignof__(struct kefa_slice) == 0 &&
	      KEFA_HDR_ROOM + sizeof(struct kefa_slice) <= KEFA_TS_ROOM);

static inline struct kefa_slice *kefa_slice_of(struct kefa_ts *ts)
{
	return (void *)(ts->hdr + KEFA_HDR_ROOM);
}

/* Return: the piece with the byte at @off, which becomes the offset in the piece. */
static inline const struct kefa_named *kefa_named_at(const struct kefa_named *mem, u64 *off)
{
	for (; *off >= mem->len; mem++)
		*off -= mem->len;
	return mem;
}

bool kefa_target_fault(struct kefa_rdm *rdm, struct kefa_rpeer *peer, enum kefa_fault fault);
bool kefa_target_check(struct kefa_rdm *rdm, struct kefa_rpeer *peer, const struct kefa_pkt *pkt,
		       u64 access, struct kefa_named *mem);
bool kefa_target_write(struct kefa_rdm *rdm, struct kefa_rpeer *peer, const struct kefa_named *mem,
		       const struct kefa_pkt *pkt, u64 off);
bool kefa_target_room(struct kefa_rdm *rdm, const struct kefa_rpeer *peer, u16 flags);
void kefa_target_unroom(struct kefa_rdm *rdm, bool data);
void kefa_target_tell(struct kefa_rdm *rdm, fi_addr_t src, u64 len, bool data, u64 value);
bool kefa_target_may_answer(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
void kefa_target_receipt(struct kefa_rdm *rdm, struct kefa_rpeer *peer, u32 send_id);
bool kefa_target_may_stream(struct kefa_rdm *rdm, struct kefa_rpeer *peer);
void kefa_target_post(struct kefa_rdm *rdm, struct kefa_ts *ts, struct kefa_rop *rop,
		      struct kefa_pkt *pkt);
bool kefa_target_may_begin(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer);
struct kefa_rop *kefa_target_begin(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				   const struct kefa_pkt *pkt, const struct kefa_named *mem,
				   enum kefa_rop_state state);
bool kefa_asked_same(const struct kefa_held *held, const struct kefa_pkt *pkt,
		     const struct kefa_named *mem);
void kefa_rtw_completed(struct kefa_rdm *rdm, struct kefa_rop *rop);

/**
 * kefa_far_serves() - check whether peers may read or write memory through an endpoint
 * @rdm: the endpoint
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE, or both, which also say what atomic operations may do
 *
 * Context: Any.
 * Return: whether they may, by other operations than atomic ones.
 */
static inline bool kefa_far_serves(const struct kefa_rdm *rdm, u64 access)
{
	return !((FI_RMA | access) & ~rdm->ep.caps);
}

/**
 * kefa_target_may_post() - check whether data for a reader, or another such answer, may be posted
 * @rdm: the endpoint
 * @peer: the reader
 *
 * A peer that wasn't ready gets a single packet, and the others after that has arrived. If there
 * are several peers, the answers to one take half of its share of the slots, so that peers that
 * take none don't have all slots for data. More answers than KEFA_OWED_MAX would kill the peer if
 * it isn't ready.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it may.
 */
static inline bool kefa_target_may_post(const struct kefa_rdm *rdm,
					const struct kefa_rpeer *peer)
{
	const u32 share = rdm->peers.count < 2 ? rdm->nts : rdm->ts_share / 2;

	if (peer->backoff.delay_us && peer->wrs)
		return false;
	return peer->answers < min_t(u32, share, KEFA_OWED_MAX);
}

/**
 * kefa_target_may_reply() - check whether an answer without an operation may be sent to a peer now
 * @rdm: the endpoint
 * @peer: the peer
 *
 * If not, the completion of another packet or the end of the peer's delay has the pump run.
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: whether it may, and neither takes a slot of the ULP nor more than the peer's share.
 */
static inline bool kefa_target_may_reply(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	return kefa_target_may_answer(rdm, peer) && kefa_target_may_post(rdm, peer);
}

/* Take a copy buffer. Half of them are left to the ULP's messages. Return: whether one was free. */
static inline bool kefa_slice_copy(struct kefa_rdm *rdm, struct kefa_ts *ts)
{
	ts->copy = rdm->ep.ncopies > KEFA_COPIES / 2 ? kefa_copy_take(&rdm->ep) : NULL;
	return ts->copy;
}

/**
 * kefa_target_ts() - take a slot for a packet of data to a reader
 * @rdm: the endpoint
 * @peer: the reader
 * @len: length of the packet, with its headers
 *
 * Context: Under kefa_ep.lock.
 * Return: the slot, with a copy buffer if it needs one; or NULL if there is none for now.
 */
static inline struct kefa_ts *kefa_target_ts(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					     u32 len)
{
	struct kefa_ts *ts = kefa_ts_take(rdm, peer, false);

	if (!ts)
		return NULL;
	ts->len = len;
	if (len <= KEFA_TS_ROOM)
		return ts;
	if (kefa_slice_copy(rdm, ts))
		return ts;
	kefa_ts_free(rdm, ts);
	return NULL;
}

#endif /* KEFA_RDM_TARGET_H */
