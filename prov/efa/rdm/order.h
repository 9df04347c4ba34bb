/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Numbers of messages. An endpoint numbers its messages (RTM) and atomic operations (RTA) to each
 * peer from 0 on; RTW, RTR and answers have no number. The device delivers packets in any order,
 * and the receiver handles requests in the order of their numbers. A number is given only when
 * nothing can fail any more before the device has its message, because the receiver waits for ever
 * for a number that doesn't arrive.
 */
#ifndef KEFA_RDM_ORDER_H
#define KEFA_RDM_ORDER_H

#include <linux/string.h>
#include <linux/types.h>

/*
 * Maximum distance of a new number from the oldest request that may not have arrived. libfabric
 * aborts its process at a distance of 8192 or, up to 2.3, of 16384.
 */
#define KEFA_ORDER_SEND_WINDOW	1024
/* The window is divided into parts, because one count for each part is enough to limit it. */
#define KEFA_ORDER_PARTS	8
#define KEFA_ORDER_PART		(KEFA_ORDER_SEND_WINDOW / KEFA_ORDER_PARTS)

/* Maximum distance of a received number from the expected one; libfabric may send any. */
#define KEFA_ORDER_RECV_WINDOW	16384

/**
 * struct kefa_order - numbers of messages to and from one peer
 * @next_id: number of the next message to the peer
 * @exp_id: number of the next message expected from the peer
 * @out: for each part of the window, number of requests to the peer that may not have arrived
 *
 * Protected by the endpoint's lock.
 */
struct kefa_order {
	u32	next_id;
	u32	exp_id;
	u16	out[KEFA_ORDER_PARTS];
};

/**
 * enum kefa_order_turn - result of kefa_order_whose()
 * @KEFA_ORDER_NOW: it is the request's turn
 * @KEFA_ORDER_PAST: the number was handled before: the packet is a later one of a message in
 *	several packets, or a duplicate
 * @KEFA_ORDER_LATER: earlier requests are missing, so the request must be kept
 * @KEFA_ORDER_NEVER: the number is too far ahead for the request to be kept
 */
enum kefa_order_turn {
	KEFA_ORDER_NOW,
	KEFA_ORDER_PAST,
	KEFA_ORDER_LATER,
	KEFA_ORDER_NEVER,
};

/**
 * kefa_order_init() - set the numbers of a new peer, or of one that came back
 * @order: numbers of the peer
 * @next_id: 0, or the value when the peer was removed
 * @exp_id: 0, or the value when the peer was removed
 *
 * Context: Any.
 */
static inline void kefa_order_init(struct kefa_order *order, u32 next_id, u32 exp_id)
{
	order->next_id = next_id;
	order->exp_id = exp_id;
	memset(order->out, 0, sizeof(order->out));
}

/* Part of the window that has a number. A part is used again when its requests have arrived. */
static inline u32 kefa_order_part(u32 msg_id)
{
	return msg_id / KEFA_ORDER_PART % KEFA_ORDER_PARTS;
}

/**
 * kefa_order_may_give() - check whether one more message may be numbered
 * @order: numbers of the peer
 *
 * The device may delay one packet for any time, while it delivers thousands of later ones and
 * their slots become free. So the number of slots doesn't limit how far numbers run ahead, but
 * this function does. Call it before doing anything about a message, because a number can't be
 * taken back.
 *
 * Context: Under the endpoint's lock.
 * Return: whether kefa_order_give() may be called.
 */
static inline bool kefa_order_may_give(const struct kefa_order *order)
{
	return order->next_id % KEFA_ORDER_PART || !order->out[kefa_order_part(order->next_id)];
}

/**
 * kefa_order_give() - number a message
 * @order: numbers of the peer, for which kefa_order_may_give() returned true
 *
 * Context: Under the endpoint's lock.
 * Return: the number.
 */
static inline u32 kefa_order_give(struct kefa_order *order)
{
	return order->next_id++;
}

/**
 * kefa_order_sent() - note that a request packet is passed to the device
 * @order: numbers of the peer
 * @msg_id: number that was given last; several packets of a message have the same
 *
 * Context: Under the endpoint's lock.
 */
static inline void kefa_order_sent(struct kefa_order *order, u32 msg_id)
{
	order->out[kefa_order_part(msg_id)]++;
}

/**
 * kefa_order_arrived() - note that the device has delivered a request packet, or never will
 * @order: numbers of the peer
 * @msg_id: number of the packet
 *
 * Don't call it for a packet that will be sent again.
 *
 * Context: Under the endpoint's lock.
 */
static inline void kefa_order_arrived(struct kefa_order *order, u32 msg_id)
{
	order->out[kefa_order_part(msg_id)]--;
}

/**
 * kefa_order_whose() - check whether it is a request's turn
 * @order: numbers of the peer
 * @msg_id: number of the request
 *
 * After the caller has handled a request whose turn it was, it calls kefa_order_begun() and looks
 * for a kept request with the next number.
 *
 * Context: Under the endpoint's lock.
 * Return: whether the request is to be handled, kept or dropped.
 */
static inline enum kefa_order_turn
kefa_order_whose(const struct kefa_order *order, u32 msg_id)
{
	s32 ahead = msg_id - order->exp_id;

	if (!ahead)
		return KEFA_ORDER_NOW;
	if (ahead < 0)
		return KEFA_ORDER_PAST;
	return ahead < KEFA_ORDER_RECV_WINDOW ? KEFA_ORDER_LATER : KEFA_ORDER_NEVER;
}

/**
 * kefa_order_begun() - note that the expected message from a peer has begun
 * @order: order of the peer's messages
 *
 * Context: Under the endpoint's lock.
 */
static __always_inline void kefa_order_begun(struct kefa_order *order)
{
	order->exp_id++;
}

#endif /* KEFA_RDM_ORDER_H */
