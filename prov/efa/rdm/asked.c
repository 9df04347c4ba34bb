// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reads and writes by peers that wait in kefa_rdm.asked, because they lack a send slot, an
 * operation or room in the completion queue. A request can't be refused: the peer isn't told, and
 * the device has acknowledged it.
 */
#include "target.h"

/* Number of requests that the pump passes over or tries at a time. */
#define KEFA_ASKED_SEEN		(8 * KEFA_ASKED_TRIES)

static void kefa_asked_add(struct kefa_rdm *rdm, struct kefa_held *kept)
{
	kept->where = KEFA_HELD_ASKED;
	rdm->stats.waited++;
	list_add_tail(&kept->link, &rdm->asked);
	rdm->waits = true;
	/* Nothing may tell that it could be carried out: silent.c has it tried again. */
	kefa_silent_arm(rdm);
}

/* --- writes by a peer's device --- */

/* Return: false without room in the completion queue. */
static bool kefa_target_written(struct kefa_rdm *rdm, const struct kefa_rpeer *peer, u32 value)
{
	if (!kefa_target_room(rdm, peer, KEFA_REQ_OPT_CQ_DATA_HDR))
		return false;
	/* Nobody reports the length. */
	kefa_target_tell(rdm, peer ? kefa_rpeer_addr(peer) : FI_ADDR_NOTAVAIL, 0, true, value);
	return true;
}

/**
 * kefa_target_imm() - handle a write with data that has consumed a receive
 * @rdm: the endpoint
 * @held: the receive, without a packet, whose sender is set; its slot is free afterwards
 * @value: the data
 *
 * Context: Under kefa_ep.lock. The pump and kefa_rx_refill() are due.
 */
void kefa_target_imm(struct kefa_rdm *rdm, struct kefa_held *held, u32 value)
{
	const struct kefa_src src = { .slid = held->slid, .qpn = held->src_qpn };
	struct kefa_rpeer *peer = kefa_peers_by_src(&rdm->peers, &src);
	struct kefa_held *kept = NULL;

	lockdep_assert_held(&rdm->ep.lock);
	if (kefa_far_serves(rdm, FI_REMOTE_WRITE) && !kefa_target_written(rdm, peer, value)) {
		kept = kefa_keep_packet(rdm, held, peer);
		kept->total = value;
		kefa_asked_add(rdm, kept);
	}
	if (kept != held)
		kefa_rs_put(rdm, kefa_held_rs(held));
}

/* --- requests that wait --- */

/*
 * Put the data of a long write into its place, so that only its headers are kept: peers may send
 * many at once, and a data packet uses up a whole receive buffer. Return: bytes that were written.
 */
static u64 kefa_asked_write(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
			    const struct kefa_pkt *pkt, struct kefa_named *mem)
{
	if (pkt->row->data != KEFA_DATA_SOME || pkt->data_len == pkt->msg_length)
		return 0;
	if (!kefa_target_check(rdm, peer, pkt, FI_REMOTE_WRITE, mem) ||
	    !kefa_target_write(rdm, peer, mem, pkt, 0))
		return 0;
	return pkt->data_len;
}

/**
 * kefa_asked_keep() - keep a request that can't be handled for now
 * @rdm: the endpoint
 * @peer: sender of the request
 * @pkt: the request
 * @held: the packet in its buffer
 *
 * Context: Under kefa_ep.lock. The pump is due.
 * Return: KEFA_TOOK_KEPT or KEFA_TOOK_DONE.
 */
enum kefa_took kefa_asked_keep(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
			       const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_named mem[KEFA_IOV_MAX];
	const u64 done = kefa_asked_write(rdm, peer, pkt, mem);
	struct kefa_held *kept;
	u32 i;

	lockdep_assert_held(&rdm->ep.lock);
	if (done)
		held->len = pkt->hdr_len;
	kept = kefa_keep_packet(rdm, held, peer);
	kept->done = done;
	for (i = 0; done && i < pkt->rma_iov_count; i++)
		kept->seq[i] = mem[i].seq;
	kefa_asked_add(rdm, kept);
	return kept == held ? KEFA_TOOK_KEPT : KEFA_TOOK_DONE;
}

/**
 * kefa_asked_same() - check that a request names the same memory as when it was kept
 * @held: the request, kept, with data that was written then
 * @pkt: the request
 * @mem: the memory that it names now
 *
 * The same keys may be those of later registrations, which haven't got that data.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it does.
 */
bool kefa_asked_same(const struct kefa_held *held, const struct kefa_pkt *pkt,
		     const struct kefa_named *mem)
{
	u32 i;

	for (i = 0; i < pkt->rma_iov_count; i++)
		if (held->seq[i] != mem[i].seq)
			return false;
	return true;
}

static enum kefa_took kefa_asked_one(struct kefa_rdm *rdm, struct kefa_held *held)
{
	struct kefa_pkt pkt;

	/* A write by the device. */
	if (!held->len)
		return kefa_target_written(rdm, held->peer, held->total) ? KEFA_TOOK_DONE :
									   KEFA_TOOK_NOT;
	/* Parsing can't fail: the packet was parsed before, and hasn't changed. */
	kefa_parse(held->buf, held->len, &pkt);
	if (!kefa_rpeer_dead(held->peer))
		return pkt.row->ops->received(rdm, held->peer, &pkt, held);
	kefa_rdm_drop(rdm, held->peer, KEFA_DROP_DEAD);
	return KEFA_TOOK_DONE;
}

/* Return: whether a request needs an operation, unless all of its data is there already. */
static bool kefa_asked_long(const struct kefa_held *held)
{
	const struct kefa_pkt_row *row;

	if (!held->len)
		return false;
	row = kefa_row_of(*(const u8 *)held->buf);
	return row->data == KEFA_DATA_SOME || row->flags & KEFA_ROW_READ ||
	       row->type == KEFA_LONGCTS_RTR_PKT;
}

/* Return: whether a request waits for the delay of its peer to end, to be answered by a packet. */
static bool kefa_asked_delayed(const struct kefa_held *held)
{
	const struct kefa_pkt_row *row;

	if (!held->len || !held->peer->backoff.waiting)
		return false;
	row = kefa_row_of(*(const u8 *)held->buf);
	return row->type == KEFA_SHORT_RTR_PKT || row->type == KEFA_LONGCTS_RTR_PKT ||
	       row->type == KEFA_DC_EAGER_RTW_PKT;
}

/**
 * kefa_rdm_asked() - handle requests that waited
 * @rdm: the endpoint, enabled
 *
 * Those of a peer that isn't ready, of which there may be many, are passed over.
 *
 * Context: Under kefa_ep.lock. kefa_rx_refill() and kefa_tx_flush() are due.
 */
void kefa_rdm_asked(struct kefa_rdm *rdm)
{
	unsigned int seen = KEFA_ASKED_SEEN, tries = KEFA_ASKED_TRIES, left = KEFA_ASKED_TURN;
	const struct kefa_rpeer *full = NULL;
	struct kefa_held *held, *next;
	LIST_HEAD(later);
	bool needs;

	lockdep_assert_held(&rdm->ep.lock);
	list_for_each_entry_safe(held, next, &rdm->asked, link) {
		if (!left || !tries || !seen--)
			break;
		if (kefa_asked_delayed(held)) {
			list_move_tail(&held->link, &later);
			continue;
		}
		tries--;
		needs = kefa_asked_long(held);
		/* Another one of this peer lacks an operation. */
		if (needs && held->peer == full) {
			list_move_tail(&held->link, &later);
			continue;
		}
		list_del_init(&held->link);
		if (kefa_asked_one(rdm, held) == KEFA_TOOK_NOT) {
			list_add_tail(&held->link, &later);
			if (needs && !kefa_target_may_begin(rdm, held->peer))
				full = held->peer;
			continue;
		}
		held->where = KEFA_HELD_NOT;
		kefa_held_free(rdm, held);
		left--;
	}
	/* Nothing else may happen that has the pump run again. */
	if (!left && !list_empty(&rdm->asked))
		kefa_ep_kick(&rdm->ep);
	list_splice_tail(&later, &rdm->asked);
}
