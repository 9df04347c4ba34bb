// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SRD between two devices: reliable, unordered, at most once.
 *
 * Each lane of a peer is a window of sequence numbers. A packet stays in its
 * slot until the peer has acknowledged it, and is retransmitted after a timeout.
 * Packets are delivered at once, in any order; the bitmap behind rx_next
 * identifies duplicates. Each packet names the oldest packet that its sender
 * still offers, so that the receiver stops waiting for packets that were given
 * up, and refuses them if they arrive late.
 *
 * A request is accepted only if there is room for its response. A response is
 * always accepted, so the lanes can't wait for each other. A packet that isn't
 * accepted isn't acknowledged, which is the flow control.
 *
 * When a device starts it chooses a random number, its incarnation, so that no
 * clock is needed to tell two incarnations apart. A device accepts a new
 * incarnation of a peer when one of its packets names the device's own incarnation,
 * which the peer can only have got from the device. Otherwise the device tells the
 * peer its incarnation, and the peer retransmits. Packets of the peer's
 * previous incarnation are dropped. The first packet of a new incarnation aborts
 * all requests to the previous one. But requests that begin while no other request
 * to the peer is outstanding are for either incarnation, because an initiator that
 * knows a queue pair and its Q_Key means the incarnation that has them. Such
 * requests name no incarnation of the peer until the peer has told its own.
 */
#include <linux/slab.h>

#include "priv.h"

#define MAX_RESPS	EFASIM_WINDOW
#define RTO_MIN_US	(20 * USEC_PER_MSEC)
#define RTO_MAX_US	(500 * USEC_PER_MSEC)
/* A packet counts as lost when the peer has one that was sent this many packets later. */
#define REORDER_MAX	24

static void efasim_dev_peer_timer(struct efasim_dev *dev,
				  struct efasim_timer *timer);

static const struct rhashtable_params by_gid = {
	.key_len = EFASIM_GID_LEN,
	.key_offset = offsetof(struct efasim_peer, gid),
	.head_offset = offsetof(struct efasim_peer, node),
};

static u32 rto_us(const struct efasim_peer *peer)
{
	u32 rto = max_t(u32, RTO_MIN_US, 4 * peer->srtt_us);

	return min_t(u32, RTO_MAX_US, rto << min(peer->backoff, 5U));
}

static int efasim_dev_add_peer(struct efasim_dev *dev,
			       struct efasim_peer *peer, const u8 *gid)
{
	int err;

	memcpy(peer->gid, gid, sizeof(peer->gid));
	err = xa_alloc(&dev->peers, &peer->id, peer, xa_limit_31b,
		       GFP_NOIO | __GFP_NOWARN);
	if (err)
		return err;
	err = rhashtable_insert_fast(&dev->peers_by_gid, &peer->node, by_gid);
	if (err)
		xa_erase(&dev->peers, peer->id);
	return err;
}

static struct efasim_peer *efasim_dev_new_peer(struct efasim_dev *dev,
					       const u8 *gid)
{
	u32 limit = dev->limits.max_peers;
	struct efasim_peer *peer = NULL;
	int i;

	/* Senders can forge GIDs, so unknown ones may use only half of the table. */
	if (!efasim_dev_is_known(dev, gid))
		limit -= limit / 2;
	if (dev->num_peers >= limit) {
		efasim_count(dev, EFASIM_S_peers_full);
		return ERR_PTR(-ENOSPC);
	}
	if (!efasim_fault(dev, EFASIM_F_no_memory))
		peer = kzalloc(sizeof(*peer), GFP_NOIO | __GFP_NOWARN);
	if (!peer || efasim_dev_add_peer(dev, peer, gid)) {
		efasim_count(dev, EFASIM_S_no_memory);
		kfree(peer);
		return ERR_PTR(-ENOMEM);
	}
	for (i = 0; i < EFASIM_LANES; i++) {
		peer->lane[i].tx_next = 1;
		peer->lane[i].tx_una = 1;
		peer->lane[i].tx_sacked = 1;
		peer->lane[i].rx_next = 1;
	}
	INIT_LIST_HEAD(&peer->ops);
	INIT_LIST_HEAD(&peer->txops);
	INIT_LIST_HEAD(&peer->resps);
	INIT_LIST_HEAD(&peer->ack);
	timerqueue_init(&peer->timer.node);
	peer->timer.fn = efasim_dev_peer_timer;
	dev->num_peers++;
	return peer;
}

/*
 * Return: the peer with a GID, or an ERR_PTR(): -ENOENT if there is none; with @create
 * -ENOSPC if the table is full and -ENOMEM if memory is short.
 */
struct efasim_peer *efasim_dev_peer(struct efasim_dev *dev, const u8 *gid,
				    bool create)
{
	struct efasim_peer *peer;

	lockdep_assert_held(&dev->lock);
	peer = rhashtable_lookup_fast(&dev->peers_by_gid, gid, by_gid);
	if (peer)
		return peer;
	return create ? efasim_dev_new_peer(dev, gid) : ERR_PTR(-ENOENT);
}

/* Allocate a packet with room for @length bytes of payload. */
struct efasim_txp *efasim_dev_txp(gfp_t gfp, enum efasim_pkt_type type,
				  u32 length)
{
	u32 len = efasim_wire_hdr_len(type) + length;
	struct efasim_txp *txp;

	txp = kmalloc(struct_size(txp, buf, len), gfp | __GFP_NOWARN);
	if (!txp)
		return NULL;
	memset(txp, 0, sizeof(*txp));
	INIT_LIST_HEAD(&txp->list);
	txp->len = len;
	txp->pkt.type = type;
	txp->pkt.lane = efasim_wire_lane(type);
	txp->pkt.length = length;
	return txp;
}

/* Fill in the fields that all packets to a peer have, with their current values. */
static void efasim_dev_stamp(struct efasim_dev *dev,
			     const struct efasim_peer *peer,
			     struct efasim_pkt *pkt)
{
	int i;

	memcpy(pkt->src_gid, dev->gid, sizeof(pkt->src_gid));
	pkt->src_inc = dev->incarnation;
	if (pkt->lane != EFASIM_LANE_REQ || peer->confirmed)
		pkt->dst_inc = peer->incarnation;
	else
		pkt->dst_inc = 0;
	for (i = 0; i < EFASIM_LANES; i++) {
		pkt->ack[i] = peer->lane[i].rx_next;
		pkt->sack[i] = peer->lane[i].rx_map >> 1;
	}
	if (pkt->lane != EFASIM_LANE_NONE)
		pkt->base = peer->lane[pkt->lane].tx_una;
}

static void efasim_dev_put_on_wire(struct efasim_dev *dev,
				   struct efasim_peer *peer,
				   struct efasim_txp *txp)
{
	efasim_dev_stamp(dev, peer, &txp->pkt);
	efasim_wire_build(txp->buf, &txp->pkt);
	txp->sent = ktime_get();
	txp->tries++;
	/*
	 * A peer ignores acknowledgments that don't name its incarnation. Keep the
	 * acknowledgment queued until that is known.
	 */
	if (txp->pkt.dst_inc)
		list_del_init(&peer->ack);
	efasim_dev_xmit(dev, peer->gid, txp->buf, txp->len);
}

/* Return: whether the window of a lane is open. */
bool efasim_dev_room(const struct efasim_peer *peer, enum efasim_lane lane)
{
	const struct efasim_lane_state *l = &peer->lane[lane];

	return l->tx_next - l->tx_una < EFASIM_WINDOW;
}

static bool in_flight(const struct efasim_peer *peer)
{
	int i;

	for (i = 0; i < EFASIM_LANES; i++)
		if (peer->lane[i].tx_next != peer->lane[i].tx_una)
			return true;
	return false;
}

static void efasim_dev_set_rto(struct efasim_dev *dev,
			       struct efasim_peer *peer)
{
	efasim_dev_arm(dev, &peer->timer,
		       ktime_add_us(ktime_get(), rto_us(peer)));
}

/* Send a packet, whose window must be open. */
void efasim_dev_send(struct efasim_dev *dev, struct efasim_peer *peer,
		     struct efasim_txp *txp)
{
	struct efasim_lane_state *l = &peer->lane[txp->pkt.lane];

	/* Silence counts from the first packet that needs an answer. */
	if (!in_flight(peer)) {
		peer->heard = ktime_get();
		efasim_dev_set_rto(dev, peer);
	}
	txp->pkt.seq = l->tx_next++;
	l->slot[txp->pkt.seq % EFASIM_WINDOW] = txp;
	efasim_dev_put_on_wire(dev, peer, txp);
}

/* Send a response, or queue it until the window opens. */
void efasim_dev_respond(struct efasim_dev *dev, struct efasim_peer *peer,
			struct efasim_txp *txp)
{
	if (efasim_dev_room(peer, EFASIM_LANE_RESP)) {
		efasim_dev_send(dev, peer, txp);
		return;
	}
	list_add_tail(&txp->list, &peer->resps);
	peer->num_resps++;
}

/* Send queued packets as far as the windows allow. */
void efasim_dev_push(struct efasim_dev *dev, struct efasim_peer *peer)
{
	struct efasim_txp *txp;
	struct efasim_op *op;

	while (efasim_dev_room(peer, EFASIM_LANE_RESP)) {
		txp = list_first_entry_or_null(&peer->resps, struct efasim_txp,
					       list);
		if (!txp)
			break;
		list_del_init(&txp->list);
		peer->num_resps--;
		efasim_dev_send(dev, peer, txp);
	}
	while (efasim_dev_room(peer, EFASIM_LANE_REQ)) {
		op = list_first_entry_or_null(&peer->txops, struct efasim_op,
					      tx);
		if (!op)
			break;
		if (efasim_dev_send_segment(dev, peer, op)) {
			/* No memory: the timer will try again. */
			if (!peer->timer.armed)
				efasim_dev_set_rto(dev, peer);
			break;
		}
	}
}

static void efasim_dev_free_slots(struct efasim_lane_state *l, u32 limit)
{
	while (l->tx_una != limit) {
		struct efasim_txp **slot = &l->slot[l->tx_una % EFASIM_WINDOW];

		kfree(*slot);
		*slot = NULL;
		l->tx_una++;
	}
}

static void efasim_dev_forget_lane(struct efasim_lane_state *l)
{
	efasim_dev_free_slots(l, l->tx_next);
}

static void efasim_dev_forget_answers(struct efasim_peer *peer)
{
	struct efasim_txp *txp, *next;

	efasim_dev_forget_lane(&peer->lane[EFASIM_LANE_RESP]);
	list_for_each_entry_safe(txp, next, &peer->resps, list)
		kfree(txp);
	INIT_LIST_HEAD(&peer->resps);
	peer->num_resps = 0;
}

static void efasim_dev_forget(struct efasim_peer *peer)
{
	efasim_dev_forget_lane(&peer->lane[EFASIM_LANE_REQ]);
	efasim_dev_forget_answers(peer);
}

static void efasim_dev_fail_peer(struct efasim_dev *dev,
				 struct efasim_peer *peer,
				 enum efasim_status status)
{
	struct efasim_op *op, *next;

	efasim_dev_forget(peer);
	efasim_dev_disarm(dev, &peer->timer);
	peer->backoff = 0;
	list_for_each_entry_safe(op, next, &peer->ops, link)
		efasim_dev_complete(op, status);
}

static void efasim_dev_resend(struct efasim_dev *dev, struct efasim_peer *peer,
			      struct efasim_txp *txp)
{
	efasim_count(dev, EFASIM_S_retrans_pkts);
	efasim_add(dev, EFASIM_S_retrans_bytes, txp->len);
	efasim_dev_put_on_wire(dev, peer, txp);
}

/* Retransmit packets that were sent before @before and aren't acknowledged. */
static bool efasim_dev_resend_old(struct efasim_dev *dev,
				  struct efasim_peer *peer,
				  struct efasim_lane_state *l, u32 limit,
				  ktime_t before)
{
	bool any = false;
	u32 seq;

	for (seq = l->tx_una; (s32)(limit - seq) > 0; seq++) {
		struct efasim_txp *txp = l->slot[seq % EFASIM_WINDOW];

		if (txp->sacked || ktime_after(txp->sent, before))
			continue;
		efasim_dev_resend(dev, peer, txp);
		any = true;
	}
	return any;
}

static void efasim_dev_peer_timer(struct efasim_dev *dev,
				  struct efasim_timer *timer)
{
	struct efasim_peer *peer = container_of(timer, struct efasim_peer,
						timer);
	ktime_t now = ktime_get();
	bool resent = false;
	int i;

	/* Time in which this device's worker was late isn't silence of the peer. */
	peer->heard = ktime_add(peer->heard,
				ktime_sub(now, timer->node.expires));
	if (ktime_after(peer->heard, now))
		peer->heard = now;
	if (ktime_ms_delta(now, peer->heard) > dev->unresp_ms &&
	    in_flight(peer)) {
		efasim_count(dev, EFASIM_S_unresponsive_remote_events);
		efasim_dev_fail_peer(dev, peer, peer->incarnation ?
				     EFASIM_UNRESP_REMOTE :
				     EFASIM_UNREACH_REMOTE);
		return;
	}
	for (i = 0; i < EFASIM_LANES; i++)
		resent |= efasim_dev_resend_old(dev, peer, &peer->lane[i],
						peer->lane[i].tx_next,
						ktime_sub_us(now,
							     rto_us(peer)));
	if (resent) {
		efasim_count(dev, EFASIM_S_retrans_timeout_events);
		peer->backoff++;
	}
	efasim_dev_push(dev, peer);
	if (in_flight(peer) && !peer->timer.armed)
		efasim_dev_set_rto(dev, peer);
}

/* Measure the round trip time, only from packets that were sent once. */
static void efasim_dev_rtt(struct efasim_peer *peer,
			   const struct efasim_txp *txp)
{
	u32 us = ktime_us_delta(ktime_get(), txp->sent);

	if (txp->tries != 1)
		return;
	peer->srtt_us = peer->srtt_us ? (7 * peer->srtt_us + us) / 8 : us;
}

static void efasim_dev_acked(struct efasim_dev *dev, struct efasim_peer *peer,
			     struct efasim_lane_state *l, u32 ack, u64 sack)
{
	u32 seq;
	int i;

	if ((s32)(ack - l->tx_una) < 0)
		return;		/* overtaken by a later acknowledgment */
	if ((s32)(ack - l->tx_next) > 0) {
		efasim_count(dev, EFASIM_S_wire_ack);
		return;
	}
	for (seq = l->tx_una; seq != ack; seq++)
		if (!l->slot[seq % EFASIM_WINDOW]->sacked)
			efasim_dev_rtt(peer, l->slot[seq % EFASIM_WINDOW]);
	if (ack != l->tx_una)
		peer->backoff = 0;
	efasim_dev_free_slots(l, ack);
	if ((s32)(l->tx_sacked - ack) < 0)
		l->tx_sacked = ack;

	for (i = 0; i < 64 && sack; i++, sack >>= 1) {
		seq = ack + 1 + i;
		if (!(sack & 1) || (s32)(seq - l->tx_next) >= 0)
			continue;
		l->slot[seq % EFASIM_WINDOW]->sacked = true;
		if ((s32)(seq + 1 - l->tx_sacked) > 0)
			l->tx_sacked = seq + 1;
	}
	if (l->tx_sacked - l->tx_una > REORDER_MAX)
		efasim_dev_resend_old(dev, peer, l, l->tx_sacked - REORDER_MAX,
				      ktime_sub_us(ktime_get(),
						   max(peer->srtt_us, 500U) *
						   2));
}

static void efasim_dev_acks(struct efasim_dev *dev, struct efasim_peer *peer,
			    const struct efasim_pkt *pkt)
{
	int i;

	for (i = 0; i < EFASIM_LANES; i++)
		efasim_dev_acked(dev, peer, &peer->lane[i], pkt->ack[i],
				 pkt->sack[i]);
	if (!in_flight(peer))
		efasim_dev_disarm(dev, &peer->timer);
	efasim_dev_push(dev, peer);
}

/* Advance the window over packets that were received without a gap. */
static void efasim_dev_advance(struct efasim_lane_state *l)
{
	while (l->rx_map & 1) {
		l->rx_map >>= 1;
		l->rx_next++;
	}
}

/* Stop waiting for packets before @base, which the sender no longer offers. */
static void efasim_dev_skip_to(struct efasim_lane_state *l, u32 base)
{
	u32 skip = base - l->rx_next;

	if ((s32)skip <= 0)
		return;
	l->rx_map = skip < 64 ? l->rx_map >> skip : 0;
	l->rx_next = base;
	efasim_dev_advance(l);
}

static void efasim_dev_owe_ack(struct efasim_dev *dev,
			       struct efasim_peer *peer)
{
	if (list_empty(&peer->ack))
		list_add_tail(&peer->ack, &dev->ackq);
}

static bool efasim_dev_is_new(struct efasim_dev *dev, struct efasim_peer *peer,
			      const struct efasim_pkt *pkt)
{
	struct efasim_lane_state *l = &peer->lane[pkt->lane];
	s32 ahead;

	/* The first packet of an incarnation tells the start of its sequence numbers. */
	if (!l->rx_synced) {
		l->rx_synced = true;
		l->rx_next = pkt->base;
	}
	efasim_dev_skip_to(l, pkt->base);
	/* Less than a window: the parser refuses packets further beyond base. */
	ahead = pkt->seq - l->rx_next;
	if (ahead < 0 || l->rx_map & BIT_ULL(ahead)) {
		efasim_count(dev, EFASIM_S_rx_duplicates);
		efasim_dev_owe_ack(dev, peer);
		return false;
	}
	return true;
}

static void efasim_dev_taken(struct efasim_dev *dev, struct efasim_peer *peer,
			     const struct efasim_pkt *pkt)
{
	struct efasim_lane_state *l = &peer->lane[pkt->lane];

	l->rx_map |= BIT_ULL(pkt->seq - l->rx_next);
	efasim_dev_advance(l);
	efasim_dev_owe_ack(dev, peer);
}

static void efasim_dev_sequenced(struct efasim_dev *dev,
				 struct efasim_peer *peer,
				 const struct efasim_pkt *pkt)
{
	struct efasim_txp *resp;

	if (!efasim_dev_is_new(dev, peer, pkt))
		return;
	if (pkt->lane == EFASIM_LANE_RESP) {
		efasim_dev_taken(dev, peer, pkt);
		efasim_dev_answer(dev, peer, pkt);
		return;
	}
	if (peer->num_resps >= MAX_RESPS) {
		efasim_count(dev, EFASIM_S_rx_busy);
		return;
	}
	resp = efasim_dev_request(dev, pkt);
	if (!resp)
		return;
	efasim_dev_taken(dev, peer, pkt);
	efasim_dev_respond(dev, peer, resp);
}

static void efasim_dev_bare_ack(struct efasim_dev *dev,
				struct efasim_peer *peer)
{
	u8 buf[sizeof(struct efasim_wire_hdr)];
	struct efasim_pkt pkt = {
		.type = EFASIM_PKT_ACK,
		.lane = EFASIM_LANE_NONE,
	};

	efasim_dev_stamp(dev, peer, &pkt);
	efasim_wire_build(buf, &pkt);
	efasim_dev_xmit(dev, peer->gid, buf, sizeof(buf));
}

/*
 * Tell the sender of @to this device's incarnation. Don't answer a packet that may itself
 * be such an answer, to avoid a loop.
 */
static void efasim_dev_introduce(struct efasim_dev *dev,
				 struct efasim_peer *peer,
				 const struct efasim_pkt *to)
{
	u8 buf[sizeof(struct efasim_wire_hdr)];
	struct efasim_pkt pkt = {
		.type = EFASIM_PKT_ACK,
		.lane = EFASIM_LANE_NONE,
		.flags = EFASIM_PKT_F_WHO,
		.src_inc = dev->incarnation,
		.dst_inc = to->src_inc,
	};

	if (to->type == EFASIM_PKT_ACK)
		return;
	memcpy(pkt.src_gid, dev->gid, sizeof(pkt.src_gid));
	efasim_wire_build(buf, &pkt);
	efasim_dev_xmit(dev, peer->gid, buf, sizeof(buf));
}

/* Send the acknowledgments that no other packet has carried. */
void efasim_dev_flush_acks(struct efasim_dev *dev)
{
	struct efasim_peer *peer, *next;

	list_for_each_entry_safe(peer, next, &dev->ackq, ack) {
		list_del_init(&peer->ack);
		efasim_dev_bare_ack(dev, peer);
	}
}

/* A peer's new incarnation has none of the packets that the previous one had received. */
static void efasim_dev_offer_anew(struct efasim_lane_state *l)
{
	u32 seq;

	for (seq = l->tx_una; seq != l->tx_next; seq++)
		l->slot[seq % EFASIM_WINDOW]->sacked = false;
	l->tx_sacked = l->tx_una;
}

static void efasim_dev_new_life(struct efasim_dev *dev,
				struct efasim_peer *peer,
				const struct efasim_pkt *pkt)
{
	int i;

	if (peer->incarnation) {
		efasim_count(dev, EFASIM_S_peer_restarts);
		efasim_count(dev, EFASIM_S_impaired_remote_conn_events);
		efasim_dev_forget_answers(peer);
	}
	if (peer->confirmed)
		efasim_dev_fail_peer(dev, peer, EFASIM_ABORT);
	efasim_dev_offer_anew(&peer->lane[EFASIM_LANE_REQ]);
	peer->former = peer->incarnation;
	peer->incarnation = pkt->src_inc;
	for (i = 0; i < EFASIM_LANES; i++) {
		peer->lane[i].rx_synced = false;
		peer->lane[i].rx_map = 0;
		/* Acknowledge nothing until the first packet of the new incarnation. */
		peer->lane[i].rx_next = 1;
	}
}

/* Return: whether a packet is from and to the current incarnations. */
static bool efasim_dev_same_life(struct efasim_dev *dev,
				 struct efasim_peer *peer,
				 const struct efasim_pkt *pkt)
{
	bool anyone = !pkt->dst_inc, other = pkt->src_inc != peer->incarnation;

	if ((!anyone && pkt->dst_inc != dev->incarnation) ||
	    (other && anyone && peer->incarnation)) {
		efasim_count(dev, EFASIM_S_wire_incarnation);
		efasim_dev_introduce(dev, peer, pkt);
		return false;
	}
	if (!other)
		return true;
	if (pkt->src_inc == peer->former) {
		efasim_count(dev, EFASIM_S_wire_incarnation);
		return false;
	}
	efasim_dev_new_life(dev, peer, pkt);
	return true;
}

/* One counter for each error, in the order of enum efasim_wire_err. */
static_assert(EFASIM_S_wire_field - EFASIM_S_wire_short ==
	      EFASIM_WIRE_FIELD_BAD - EFASIM_WIRE_SHORT);

static void efasim_dev_reliable(struct efasim_dev *dev,
				const struct efasim_pkt *pkt)
{
	struct efasim_peer *peer;

	peer = efasim_dev_peer(dev, pkt->src_gid, pkt->type != EFASIM_PKT_ACK);
	if (IS_ERR(peer) || !efasim_dev_same_life(dev, peer, pkt))
		return;
	peer->heard = ktime_get();
	peer->confirmed = true;
	/* Acknowledgments to a previous incarnation of this device were refused above. */
	if (pkt->dst_inc && !(pkt->flags & EFASIM_PKT_F_WHO))
		efasim_dev_acks(dev, peer, pkt);
	if (pkt->lane != EFASIM_LANE_NONE)
		efasim_dev_sequenced(dev, peer, pkt);
}

/* Handle the first packet in @buf. Return: its length, or 0 if it is invalid. */
static u32 efasim_dev_packet(struct efasim_dev *dev, const void *buf, u32 len,
			     const u8 *source)
{
	enum efasim_wire_err err;
	struct efasim_pkt pkt;
	u32 size;

	err = efasim_wire_parse(buf, len, &pkt);
	if (err) {
		efasim_count(dev, EFASIM_S_wire_short - 1 + err);
		return 0;
	}
	if (source && memcmp(source, pkt.src_gid, sizeof(pkt.src_gid))) {
		efasim_count(dev, EFASIM_S_wire_source);
		return 0;
	}
	size = efasim_wire_hdr_len(pkt.type) + pkt.length;
	efasim_count(dev, EFASIM_S_rx_pkts);
	efasim_add(dev, EFASIM_S_rx_bytes, size);
	if (pkt.type == EFASIM_PKT_UD)
		efasim_dev_datagram(dev, &pkt);
	else
		efasim_dev_reliable(dev, &pkt);
	return size;
}

/**
 * efasim_dev_input() - handle a datagram that arrived
 * @dev: the device
 * @buf: the datagram, untrusted
 * @len: length of the datagram
 * @source: GID for the sender's UDP address, or NULL if the sender is in this kernel
 *
 * Context: The device's worker.
 * Return: number of packets handled, at least 1. The rest of the datagram after an invalid
 * packet is dropped.
 */
u32 efasim_dev_input(struct efasim_dev *dev, const void *buf, u32 len,
		     const u8 *source)
{
	u32 size, n = 0;

	lockdep_assert_held(&dev->lock);
	do {
		size = efasim_dev_packet(dev, buf, len, source);
		buf += size;
		len -= size;
		n++;
	} while (size && len);
	return n;
}

int efasim_dev_peers_init(struct efasim_dev *dev)
{
	xa_init_flags(&dev->peers, XA_FLAGS_ALLOC);
	return rhashtable_init(&dev->peers_by_gid, &by_gid);
}

void efasim_dev_peers_free(struct efasim_dev *dev)
{
	struct efasim_peer *peer;
	unsigned long i;

	lockdep_assert_held(&dev->lock);
	xa_for_each(&dev->peers, i, peer) {
		efasim_dev_disarm(dev, &peer->timer);
		efasim_dev_forget(peer);
		xa_erase(&dev->peers, i);
		rhashtable_remove_fast(&dev->peers_by_gid, &peer->node, by_gid);
		kfree(peer);
	}
	xa_destroy(&dev->peers);
	rhashtable_destroy(&dev->peers_by_gid);
	dev->num_peers = 0;
}
