// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Long-CTS: the request has the first bytes of a message, and the receiver grants its sender
 * the rest, part by part, once it has a buffer for it. Data may arrive in any order; it is
 * counted, and says where it belongs. As long as a part is under way there is no other CTS.
 *
 * The receiver grants all that the sender has, though the buffer may be shorter: a sender
 * waits until it got rid of everything.
 */
#include "../path.h"
#include "rdm.h"

/* --- sender --- */

static enum kefa_took kefa_cts_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_rop *rop = kefa_rop_find(&rdm->rops, pkt->send_id);

	/* Its request may be still to be sent. */
	if (!rop || rop->peer != peer || rop->state != KEFA_ROP_GRANT || rop->owes ||
	    pkt->flags & KEFA_CTS_READ_REQ) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_STATE);
		return KEFA_TOOK_DONE;
	}
	rop->remote_id = pkt->recv_id;
	rop->done = rop->sent + kefa_granted(pkt->recv_length, rop->total - rop->sent);
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_DATA_TX);
	list_add_tail(&rop->link, &rdm->sending);
	return KEFA_TOOK_DONE;
}

/* What was granted is with the device. */
static void kefa_stream_spent(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	const bool dc = kefa_row_of(rop->type)->flags & KEFA_ROW_DC;

	list_del_init(&rop->link);
	if (rop->sent < rop->total)
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_GRANT);
	else
		kefa_rop_set_state(&rdm->rops, rop, dc ? KEFA_ROP_ACK : KEFA_ROP_POSTED);
}

/* Return: whether there was a slot, and memory. */
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
 * kefa_stream_one() - send a packet of data that was granted
 * @rdm: the endpoint, enabled, with room for a work request before the doorbell
 * @rop: the operation, in KEFA_ROP_DATA_TX; in no list after its last packet
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: false if it has to wait for something.
 */
bool kefa_stream_one(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (!kefa_may_stream(rdm, rop->peer) || !kefa_data_one(rdm, rop))
		return false;
	if (rop->sent == rop->done)
		kefa_stream_spent(rdm, rop);
	return true;
}

/* --- taking turns --- */

/**
 * kefa_may_stream() - is it the turn of something that has been agreed already?
 * @rdm: the endpoint
 * @peer: whom it is for
 *
 * Requests mustn't wait for the end of all the data.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether there is a slot for it.
 */
bool kefa_may_stream(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	return !peer->backoff.waiting && kefa_tx_room(rdm, peer) &&
	       rdm->ts_nfree > rdm->ts_ctl + rdm->nts / KEFA_TX_REQUESTS;
}

/*
 * If an operation has to wait for something it is put into @fed, or @hungry if nothing of it
 * was posted: then it is the first next time.
 */
static void kefa_stream_turn(struct kefa_rdm *rdm, struct list_head *ops, struct list_head *fed,
			     struct list_head *hungry,
			     bool (*one)(struct kefa_rdm *rdm, struct kefa_rop *rop))
{
	struct kefa_rop *rop = list_first_entry(ops, struct kefa_rop, link);
	const u8 state = rop->state;
	unsigned int n;

	for (n = 0; n < KEFA_TURN; n++) {
		/* What is refused ends operations. */
		if (rdm->ep.nheld == KEFA_HELD_MAX)
			kefa_tx_flush(rdm);
		if (rop->state != state || list_empty(&rop->link))
			return;
		if (!one(rdm, rop)) {
			if (rop->state == state && !list_empty(&rop->link))
				list_move_tail(&rop->link, n ? fed : hungry);
			return;
		}
	}
	if (rop->state == state && !list_empty(&rop->link))
		list_move_tail(&rop->link, ops);
}

/**
 * kefa_rdm_stream() - post what was agreed, of each operation in its turn
 * @rdm: the endpoint, enabled
 * @ops: the operations, all in one state
 * @one: posts one work request of an operation, which it takes out of the list if that was
 *	the last; or returns false if the operation has to wait for something
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
	/* No completion will bring memory for DMA back. */
	if (!list_empty(ops) && rdm->ts_nfree == rdm->nts)
		queue_delayed_work(kefa_wq, &rdm->ep.map_retry,
				   msecs_to_jiffies(KEFA_MAP_RETRY_MS));
}

/* --- receiver --- */

/**
 * kefa_rop_grant() - ask for the next part of a message
 * @rdm: the endpoint
 * @rop: its receive, which waits for more
 *
 * Context: Under kefa_ep.lock. The pump is due.
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
}

static bool kefa_rop_awaits(const struct kefa_rop *rop)
{
	return (rop->state == KEFA_ROP_DATA_RX || rop->state == KEFA_ROP_SINK) &&
	       !(rop->flags & KEFA_ROP_OVER) &&
	       kefa_row_of(rop->type)->data == KEFA_DATA_FIRST;
}

static void kefa_cts_unsend(struct kefa_rdm *rdm, struct kefa_rpeer *peer, struct kefa_rop *rop)
{
	if (kefa_rop_awaits(rop))
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
		kefa_rdm_drop(rdm, peer, KEFA_DROP_STATE);
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

/* The last one completes a message that isn't to be acknowledged. */
static void kefa_ctsdata_completed(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	kefa_rtm_ops.completed(rdm, rop);
}

const struct kefa_pkt_ops kefa_ctsdata_ops = {
	.completed	= kefa_ctsdata_completed,
	.received	= kefa_ctsdata_received,
};
