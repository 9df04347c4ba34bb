// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libfabric's view of the packets between two endpoints of fabric efa. Cases may have packets
 * delivered while they must not sleep, so nothing here does.
 */
#include <linux/bitmap.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include "efa_rdm_theirs.h"

/* Longer messages aren't checked for bytes that are sent twice. */
#define MOST	SZ_1M

/* State of a message, at both ends. */
enum theirs_state {
	OPEN,		/* more packets or an answer are expected */
	NACKED,		/* its request will be repeated */
	OVER,		/* neither end has an operation any more */
};

/**
 * struct theirs_msg - a message
 * @row: row of its request's type
 * @state: enum theirs_state
 * @msg_id: number of the message
 * @send_id: id of the sender's operation, if its packets have one
 * @recv_id: id of the receiver's operation, if it was granted
 * @granted_once: @recv_id is valid
 * @acked: the sender has its answer, and waits for the completions of its packets
 * @total: length
 * @parts: bytes that are sent with requests, or will be granted; the rest is read
 * @got: bytes that have arrived, other than by reads
 * @granted: value of @got at which the receiver grants more
 * @map: a bit for each of the bytes that may arrive, or NULL
 */
struct theirs_msg {
	const struct kefa_pkt_row	*row;
	u8				state;
	u32				msg_id;
	u32				send_id;
	u32				recv_id;
	bool				granted_once;
	bool				acked;
	u64				total;
	u64				parts;
	u64				got;
	u64				granted;
	unsigned long			*map;
};

static void msg_over(struct theirs_msg *msg)
{
	msg->state = OVER;
	kfree(msg->map);
	msg->map = NULL;
}

/* Allocate the map, with the bytes that have arrived, the first ones of the message. */
static void msg_map(struct theirs_msg *msg)
{
	kfree(msg->map);
	msg->map = NULL;
	if (msg->parts && msg->parts <= MOST)
		msg->map = kcalloc(BITS_TO_LONGS(msg->parts), sizeof(long),
				   GFP_ATOMIC | __GFP_NOWARN);
	if (msg->map)
		bitmap_set(msg->map, 0, msg->got);
}

/* Return: whether the sender waits for an answer after its last packet. */
static bool msg_answered(const struct theirs_msg *msg)
{
	if (msg->row->flags & KEFA_ROW_READ)
		return msg->total > msg->parts;
	return msg->row->flags & KEFA_ROW_DC;
}

/* Bytes of a message have arrived. Return: NULL, or what is wrong with them. */
static const char *msg_got(struct theirs_msg *msg, u64 off, u64 len)
{
	if (off > msg->parts || len > msg->parts - off)
		return "more bytes than the message has";
	if (msg->map) {
		if (find_next_bit(msg->map, off + len, off) < off + len)
			return "bytes that were sent before";
		bitmap_set(msg->map, off, len);
	}
	msg->got += len;
	if (msg->got > msg->parts)
		return "more bytes than the message has";
	if (msg->got == msg->parts && (msg->acked || !msg_answered(msg)))
		msg_over(msg);
	return NULL;
}

/* --- requests --- */

static struct theirs_msg *msg_new(struct rdm_theirs_end *end, const struct kefa_pkt *pkt)
{
	struct theirs_msg *msg = kzalloc(sizeof(*msg), GFP_ATOMIC);

	if (!msg)
		return NULL;
	msg->row = pkt->row;
	msg->msg_id = pkt->msg_id;
	msg->send_id = pkt->send_id;
	msg->total = pkt->msg_length;
	msg->parts = pkt->row->flags & KEFA_ROW_READ ? pkt->runt_length : msg->total;
	msg->granted = pkt->data_len;
	msg_map(msg);
	xa_store(&end->msgs, pkt->msg_id, msg, GFP_ATOMIC);
	if (pkt->row->data == KEFA_DATA_FIRST || msg_answered(msg))
		xa_store(&end->sends, pkt->send_id, msg, GFP_ATOMIC);
	if (!msg->parts && !msg_answered(msg))
		msg_over(msg);
	return msg;
}

/* A request that is repeated after a READ_NACK has no data. */
static const char *msg_again(struct rdm_theirs_end *end, struct theirs_msg *msg,
			     const struct kefa_pkt *pkt)
{
	const u16 tagged = KEFA_ROW_TAGGED;

	if (!msg || msg->state != NACKED)
		return "a repeated request that the receiver doesn't wait for";
	if (pkt->row->data != KEFA_DATA_FIRST || (pkt->row->flags ^ msg->row->flags) & tagged ||
	    pkt->msg_length != msg->total)
		return "a repeated request that differs from the first";
	if (pkt->data_len)
		return "a repeated request with data";
	msg->row = pkt->row;
	msg->state = OPEN;
	msg->send_id = pkt->send_id;
	msg->granted = msg->got;
	msg->parts = msg->total;
	msg_map(msg);
	xa_store(&end->sends, pkt->send_id, msg, GFP_ATOMIC);
	return NULL;
}

static const char *msg_request(struct rdm_theirs *t, struct rdm_theirs_end *end,
			       const struct kefa_pkt *pkt)
{
	struct theirs_msg *msg = xa_load(&end->msgs, pkt->msg_id);

	if (pkt->flags & pkt->row->may & KEFA_REQ_READ_NACK)
		return msg_again(end, msg, pkt);
	if (!msg) {
		msg = msg_new(end, pkt);
		/* Without memory for it, nothing can be said about later packets. */
		t->off = !msg;
		return msg ? msg_got(msg, pkt->seg_offset, pkt->data_len) : NULL;
	}
	/* libfabric ends its process if it can. */
	if (!(msg->row->flags & KEFA_ROW_MULTI) || msg->got == msg->parts)
		return "the number of a message that has arrived";
	if (pkt->row != msg->row || pkt->msg_length != msg->total ||
	    pkt->send_id != msg->send_id ||
	    (pkt->row->flags & KEFA_ROW_READ && pkt->runt_length != msg->parts))
		return "a part that differs from the first";
	return msg_got(msg, pkt->seg_offset, pkt->data_len);
}

/* A request with iovs would be a write, which kOFI doesn't do. */
static const char *take_question(const struct kefa_pkt *pkt)
{
	if (pkt->rma_iov_count || pkt->data_len || !pkt->raw)
		return "a question that isn't one";
	return NULL;
}

static const char *take_request(struct rdm_theirs *t, int from, const struct kefa_pkt *pkt)
{
	const struct rdm_theirs_end *to = &t->end[!from];

	if (pkt->row->flags & KEFA_ROW_TRIGGER)
		return take_question(pkt);
	if (!(pkt->row->flags & KEFA_ROW_ORDERED))
		return "a request that kOFI doesn't send";
	if (!to->told && !t->homogeneous)
		return "a message before the receiver's HANDSHAKE";
	if (!t->homogeneous && !kefa_pkt_may_send(pkt->row, to->features))
		return "a type that the receiver doesn't support";
	return msg_request(t, &t->end[from], pkt);
}

/* --- answers, and granted data --- */

static const char *take_cts(struct rdm_theirs_end *sender, struct theirs_msg *msg,
			    const struct kefa_pkt *pkt)
{
	if (msg->row->data != KEFA_DATA_FIRST || pkt->flags & KEFA_CTS_READ_REQ)
		return "a CTS for a message that isn't granted";
	if (msg->got != msg->granted)
		return "a CTS before all granted data has arrived";
	if (!pkt->recv_length || pkt->recv_length > msg->total - msg->got)
		return "a CTS for more than is left";
	if (msg->granted_once && msg->recv_id != pkt->recv_id)
		return "a CTS of another receive";
	msg->granted_once = true;
	msg->recv_id = pkt->recv_id;
	msg->granted = msg->got + pkt->recv_length;
	xa_store(&sender->recvs, pkt->recv_id, msg, GFP_ATOMIC);
	return NULL;
}

static const char *take_receipt(struct theirs_msg *msg, const struct kefa_pkt *pkt)
{
	if (!(msg->row->flags & KEFA_ROW_DC))
		return "a RECEIPT for a message without delivery complete";
	if (pkt->msg_id != msg->msg_id)
		return "a RECEIPT for another message";
	if (msg->got != msg->total)
		return "a RECEIPT before the message has arrived";
	msg_over(msg);
	return NULL;
}

static const char *take_eor(struct theirs_msg *msg)
{
	if (!(msg->row->flags & KEFA_ROW_READ))
		return "an EOR for a message that isn't read";
	if (msg->acked)
		return "a second EOR";
	/* libfabric reads the rest while it receives the runt. */
	msg->acked = true;
	if (msg->got == msg->parts)
		msg_over(msg);
	return NULL;
}

static const char *take_nack(const struct rdm_theirs_end *sender, struct theirs_msg *msg)
{
	if (!(sender->features & KEFA_FEATURE_READ_NACK))
		return "a READ_NACK that the sender doesn't support";
	if (msg->acked)
		return "a READ_NACK after the EOR";
	if (!(msg->row->flags & KEFA_ROW_READ))
		return "a READ_NACK for a message that isn't read";
	if (msg->got != msg->parts)
		return "a READ_NACK before the runt has arrived";
	msg->state = NACKED;
	return NULL;
}

/* An answer from the other end to one of the sender's messages. */
static const char *take_answer(struct rdm_theirs_end *sender, const struct kefa_pkt *pkt)
{
	struct theirs_msg *msg = xa_load(&sender->sends, pkt->send_id);

	if (!msg || msg->state != OPEN)
		return "an answer to an operation that has ended";
	switch (pkt->row->type) {
	case KEFA_CTS_PKT:
		return take_cts(sender, msg, pkt);
	case KEFA_RECEIPT_PKT:
		return take_receipt(msg, pkt);
	case KEFA_EOR_PKT:
		return take_eor(msg);
	case KEFA_READ_NACK_PKT:
		return take_nack(sender, msg);
	default:
		return "an answer that kOFI doesn't send";
	}
}

static const char *take_data(struct rdm_theirs_end *sender, const struct kefa_pkt *pkt)
{
	struct theirs_msg *msg = xa_load(&sender->recvs, pkt->recv_id);

	if (!msg || msg->state != OPEN || msg->recv_id != pkt->recv_id)
		return "data for an operation that has ended";
	if (pkt->data_len > msg->granted - msg->got)
		return "data that isn't granted";
	return msg_got(msg, pkt->seg_offset, pkt->data_len);
}

static const char *take_handshake(struct rdm_theirs_end *from, const struct kefa_pkt *pkt)
{
	/* A debug build of 1.17 ends; later ones take it. */
	if (from->told)
		return "a second HANDSHAKE";
	from->told = true;
	from->features = pkt->shake.extra[0];
	return NULL;
}

const char *rdm_theirs_packet(struct rdm_theirs *t, int from, const void *buf, size_t len)
{
	struct kefa_pkt pkt;

	if (t->off)
		return NULL;
	if (kefa_parse(buf, len, &pkt))
		return "an invalid packet";
	if (pkt.row->flags & KEFA_ROW_HANDSHAKE)
		return take_handshake(&t->end[from], &pkt);
	if (pkt.row->flags & KEFA_ROW_REQ)
		return take_request(t, from, &pkt);
	if (pkt.row->type == KEFA_CTSDATA_PKT)
		return take_data(&t->end[from], &pkt);
	return take_answer(&t->end[!from], &pkt);
}

unsigned int rdm_theirs_waiting(struct rdm_theirs *t, int at)
{
	struct theirs_msg *msg;
	unsigned int n = 0;
	unsigned long i;

	if (t->off)
		return 0;
	xa_for_each(&t->end[at].msgs, i, msg)
		n += msg->state != OVER;
	return n;
}

void rdm_theirs_init(struct rdm_theirs *t)
{
	int i;

	memset(t, 0, sizeof(*t));
	for (i = 0; i < 2; i++) {
		xa_init(&t->end[i].msgs);
		xa_init(&t->end[i].sends);
		xa_init(&t->end[i].recvs);
	}
}

void rdm_theirs_forget(struct rdm_theirs *t)
{
	struct theirs_msg *msg;
	unsigned long i;
	int at;

	for (at = 0; at < 2; at++) {
		xa_for_each(&t->end[at].msgs, i, msg) {
			msg_over(msg);
			kfree(msg);
		}
		xa_destroy(&t->end[at].msgs);
		xa_destroy(&t->end[at].sends);
		xa_destroy(&t->end[at].recvs);
	}
}
