/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Numbers of messages. An endpoint numbers its messages (RTM) and atomic operations (RTA)
 * to each peer from 0 on; RTW, RTR and answers have no number. The device delivers in any
 * order, and the receiver takes requests in that of their numbers: order.c.
 */
#ifndef KEFA_RDM_ORDER_H
#define KEFA_RDM_ORDER_H

#include <linux/list.h>
#include <linux/types.h>

/*
 * How far numbers that we give may be ahead of the oldest request that may not have
 * arrived. libfabric ends its process at 8192 or, until 2.3, 16384.
 */
#define KEFA_ORDER_SEND_WINDOW	1024

/* How far ahead a peer may be. Later versions of libfabric stop at nothing. */
#define KEFA_ORDER_RECV_WINDOW	16384

/**
 * struct kefa_order - numbers of messages to and from one peer
 * @next_id: of the next message to it
 * @exp_id: of the next message from it
 * @out: requests to it that may not have arrived, &struct kefa_order_out, oldest first
 *
 * Under the endpoint's lock.
 */
struct kefa_order {
	u32			next_id;
	u32			exp_id;
	struct list_head	out;
};

/**
 * struct kefa_order_out - a request packet that was handed to the device, to be embedded
 * @list: in kefa_order.out; also while it waits to be sent again
 * @msg_id: its number, which several packets may have
 */
struct kefa_order_out {
	struct list_head	list;
	u32			msg_id;
};

/**
 * enum kefa_order_turn - whose turn it is
 * @KEFA_ORDER_NOW: this request's
 * @KEFA_ORDER_PAST: it was this request's before. Of a message in several packets it is a
 *	later one, of any other a duplicate
 * @KEFA_ORDER_LATER: that of others; the request has to be kept
 * @KEFA_ORDER_NEVER: that of so many others that it won't be kept
 */
enum kefa_order_turn {
	KEFA_ORDER_NOW,
	KEFA_ORDER_PAST,
	KEFA_ORDER_LATER,
	KEFA_ORDER_NEVER,
};

void kefa_order_init(struct kefa_order *order, u32 next_id, u32 exp_id);
void kefa_order_sent(struct kefa_order *order, struct kefa_order_out *out, u32 msg_id);
u32 kefa_order_give(struct kefa_order *order);
enum kefa_order_turn kefa_order_whose(const struct kefa_order *order, u32 msg_id);

/**
 * kefa_order_may_give() - may there be one more message?
 * @order: of the peer
 *
 * The device may hold one packet back for any time, while it delivers thousands of later
 * ones whose slots are free again: the number of slots doesn't bound how far numbers run
 * ahead, and this does. Ask before anything is done about a message, for a number can't be
 * taken back.
 *
 * Context: Under the endpoint's lock.
 * Return: whether kefa_order_give() may be called.
 */
static inline bool kefa_order_may_give(const struct kefa_order *order)
{
	const struct kefa_order_out *first;

	if (list_empty(&order->out))
		return true;
	first = list_first_entry(&order->out, struct kefa_order_out, list);
	return order->next_id - first->msg_id < KEFA_ORDER_SEND_WINDOW;
}

/**
 * kefa_order_next() - number a message of one packet, which is handed to the device
 * @order: of the peer, for which kefa_order_may_give() holds
 * @out: the packet's entry, in no list; set to the number
 *
 * kefa_order_give() and kefa_order_sent() in one.
 *
 * Context: Under the endpoint's lock.
 */
static inline void kefa_order_next(struct kefa_order *order, struct kefa_order_out *out)
{
	out->msg_id = order->next_id++;
	list_add_tail(&out->list, &order->out);
}

/**
 * kefa_order_arrived() - the device has delivered a request packet, or never will
 * @out: the packet's entry
 *
 * Not for a packet that is to be sent again.
 *
 * Context: Under the endpoint's lock.
 */
static inline void kefa_order_arrived(struct kefa_order_out *out)
{
	list_del_init(&out->list);
}

#endif /* KEFA_RDM_ORDER_H */
