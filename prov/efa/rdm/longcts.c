// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Long-CTS. The request carries the first bytes of a message. Once the receiver has a buffer, it
 * grants the rest part by part. Data packets may arrive in any order: each has its offset, and the
 * receiver counts their bytes. It sends no other CTS before all granted data has arrived.
 *
 * The receiver grants the whole message even if its buffer is shorter, because the send doesn't
 * complete before all data was sent.
 */
#include "rdm.h"
#include "tx.h"

/* --- sender --- */

static enum kefa_took kefa_cts_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_rop *rop = kefa_rop_find(&rdm->rops, pkt->send_id);

	/* With @owes, the repeated request wasn't sent yet, so this isn't an answer to it. */
	if (!rop || rop->peer != peer || rop->state != KEFA_ROP_GRANT || rop->owes ||
	    !(pkt->flags & KEFA_CTS_READ_REQ) != !(rop->more & KEFA_ROP_TARGET)) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_STATE);
		return KEFA_TOOK_DONE;
	}
	rop->remote_id = pkt->recv_id;
	kefa_far_served(rop);
	rop->done = rop->sent + kefa_granted(pkt->recv_length, rop->total - rop->sent);
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_DATA_TX);
	list_add_tail(&rop->link, &rdm->sending);
	rdm->waits = true;
	return KEFA_TOOK_DONE;
}

/* All granted data was passed to the device. Wait for the next CTS, or the end of the send. */
static void kefa_stream_spent(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	const bool dc = kefa_row_of(rop->type)->flags & KEFA_ROW_DC;

	list_del_init(&rop->link);
	if (rop->sent < rop->total)
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_GRANT);
	else
		kefa_rop_set_state(&rdm->rops, rop, dc ? KEFA_ROP_ACK : KEFA_ROP_POSTED);
	/* While the operation had data to send, it didn't wait for the peer. */
	if (rop->state != KEFA_ROP_POSTED)
		kefa_silent_arm(rdm);
}

/**
 * kefa_stream_begun() - go on with an operation whose first data was sent
 * @rdm: the endpoint, enabled
 * @rop: the operation, in KEFA_ROP_DATA_TX
 *
 * Context: Under kefa_ep.lock. kefa_rdm_pump() is due.
 */
void kefa_stream_begun(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (rop->sent == rop->done) {
		kefa_stream_spent(rdm, rop);
		return;
	}
	list_add_tail(&rop->link, &rdm->sending);
	rdm->waits = true;
}

/* Send a packet of granted data. Return: false if no slot or no bounce buffer was free. */
static bool kefa_data_one(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	const u32 len = min_t(u64, kefa_data_room(&rdm->lim), rop->done - rop->sent);
	struct kefa_rpeer *peer = rop->peer;
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_CTSDATA_PKT),
		.recv_id	= rop->remote_id,
		.seg_offset	= rop->sent,
		.seg_length	= len,
	};
	struct kefa_ts *ts;

	ts = kefa_ts_take(rdm, peer, false);
	if (!ts)
		return false;
	kefa_shake_sign(&rdm->self, peer, &pkt);
	if (!kefa_ts_data(rdm, ts, rop, rop->sent, len,
			  kefa_hdr_len(pkt.row, pkt.flags, 0, 0), true)) {
		kefa_ts_free(rdm, ts);
		return false;
	}
	ts->type = KEFA_CTSDATA_PKT;
	ts->rop = rop;
	kefa_ts_seal(rdm, ts, &pkt);
	rop->wrs++;
	rop->sent += len;
	rdm->stats.sent[KEFA_CTSDATA_PKT]++;
	kefa_ts_post(rdm, ts);
	return true;
}

/**
 * kefa_stream_one() - send a packet of granted data
 * @rdm: the endpoint, enabled, which can hold one more work request
 * @rop: the operation, in KEFA_ROP_DATA_TX; removed from its list after its last granted packet
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: false if the operation must wait, for a slot, memory or the end of a delay.
 */
bool kefa_stream_one(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (!kefa_may_stream(rdm, rop->peer))
		return false;
	if (!(rop->more & KEFA_ROP_TARGET ? kefa_target_one : kefa_data_one)(rdm, rop))
		return false;
	if (rop->state == KEFA_ROP_DATA_TX && rop->sent == rop->done)
		kefa_stream_spent(rdm, rop);
	return true;
}

/* --- turns of operations --- */

/*
 * Let the first operation post up to KEFA_TURN work requests, and move it to the end of @ops. If it
 * must wait before that, move it to @fed; or to @hungry if it has posted none, so that it is among
 * the first ones next time.
 */
static void kefa_stream_turn(struct kefa_rdm *rdm, struct list_head *ops, struct list_head *fed,
			     struct list_head *hungry,
			     bool (*one)(struct kefa_rdm *rdm, struct kefa_rop *rop))
{
	struct kefa_rop *rop = list_first_entry(ops, struct kefa_rop, link);
	const u8 state = rop->state;
	unsigned int n;

	for (n = 0; n < KEFA_TURN; n++) {
		kefa_tx_ready(rdm, 1);
		if (kefa_rpeer_dead(rop->peer) || !one(rdm, rop)) {
			list_move_tail(&rop->link, n ? fed : hungry);
			return;
		}
		/* That was its last one. */
		if (rop->state != state || list_empty(&rop->link))
			return;
	}
	list_move_tail(&rop->link, ops);
}

/**
 * kefa_rdm_stream() - post granted data, or reads, of several operations in turns
 * @rdm: the endpoint, enabled
 * @ops: the operations, all in the same state
 * @one: posts one work request of an operation, and removes the operation from the list after the
 *	last one; or returns false if the operation must wait
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 */
void kefa_rdm_stream(struct kefa_rdm *rdm, struct list_head *ops,
		     bool (*one)(struct kefa_rdm *rdm, struct kefa_rop *rop))
{
	LIST_HEAD(hungry);
	LIST_HEAD(fed);

	lockdep_assert_held(&rdm->ep.lock);
	while (!list_empty(ops))
		kefa_stream_turn(rdm, ops, &fed, &hungry, one);
	list_splice(&fed, ops);
	list_splice(&hungry, ops);
	/* Nothing is posted, so no completion will free DMA memory: try again after a delay. */
	if (!list_empty(ops) && rdm->ts_nfree == rdm->nts)
		queue_delayed_work(kefa_wq, &rdm->ep.map_retry,
				   msecs_to_jiffies(KEFA_MAP_RETRY_MS));
}

/* --- receiver --- */

/**
 * kefa_rop_grant() - grant the next part of a message, write or read
 * @rdm: the endpoint
 * @rop: the receive, the peer's write, or the read; it hasn't arrived entirely
 *
 * Context: Under kefa_ep.lock. kefa_rdm_pump() is due.
 */
void kefa_rop_grant(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	rop->window = kefa_grant(&rdm->lim, rop->total - rop->done);
	kefa_rdm_owe(rdm, rop, KEFA_ROP_OWES_CTS);
}

static void kefa_cts_fill(const struct kefa_rdm *rdm, const struct kefa_rop *rop,
			  struct kefa_pkt *pkt)
{
	pkt->send_id = rop->remote_id;
	pkt->recv_id = kefa_rop_id(&rdm->rops, rop);
	pkt->recv_length = rop->window;
	if (rop->more & KEFA_ROP_FAR)
		pkt->flags |= KEFA_CTS_READ_REQ;
}

static bool kefa_rop_awaits(const struct kefa_rop *rop)
{
	return (rop->state == KEFA_ROP_DATA_RX || rop->state == KEFA_ROP_SINK) &&
	       !(rop->flags & KEFA_ROP_OVER) &&
	       kefa_row_of(rop->type)->data == KEFA_DATA_FIRST;
}

static void kefa_cts_unsend(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (kefa_rop_awaits(rop) || kefa_target_awaits(rop) || kefa_far_awaits(rop))
		kefa_rdm_owe(rdm, rop, KEFA_ROP_OWES_CTS);
}

const struct kefa_pkt_ops kefa_cts_ops = {
	.fill		= kefa_cts_fill,
	.unsend		= kefa_cts_unsend,
	.received	= kefa_cts_received,
};

static enum kefa_took kefa_ctsdata_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					    const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_rop *rop = kefa_rop_find(&rdm->rops, pkt->recv_id);

	if (!rop || rop->peer != peer || !kefa_rop_awaits(rop)) {
		if (rop && rop->peer == peer && kefa_far_awaits(rop))
			kefa_far_data(rdm, pkt, rop);
		else
			kefa_target_data(rdm, peer, pkt, rop);
		return KEFA_TOOK_DONE;
	}
	if (pkt->data_len > rop->window || pkt->seg_offset > rop->total - pkt->data_len) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_LENGTH);
		return KEFA_TOOK_DONE;
	}
	rop->window -= pkt->data_len;
	kefa_rop_copy(rdm, rop, pkt);
	if (rop->done == rop->total)
		kefa_rop_whole(rdm, rop);
	else if (!rop->window)
		kefa_rop_grant(rdm, rop);
	return KEFA_TOOK_DONE;
}

/* The last data packet completes a message that waits for no answer, or a read by a peer. */
static void kefa_ctsdata_completed(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (rop->more & KEFA_ROP_TARGET)
		kefa_target_sent(rdm, rop);
	else
		kefa_rtm_ops.completed(rdm, rop);
}

const struct kefa_pkt_ops kefa_ctsdata_ops = {
	.completed	= kefa_ctsdata_completed,
	.received	= kefa_ctsdata_received,
};
