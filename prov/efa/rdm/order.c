// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The order of messages. A number is given only when nothing can fail any more before the
 * device has its message, because the receiver waits for ever for a number that doesn't arrive.
 */
#include <linux/bug.h>
#include "order.h"

/**
 * kefa_order_init() - set the numbers of a new peer, or of one that came back
 * @order: numbers of the peer
 * @next_id: 0, or the value when the peer was removed
 * @exp_id: 0, or the value when the peer was removed
 *
 * Context: Any.
 */
void kefa_order_init(struct kefa_order *order, u32 next_id, u32 exp_id)
{
	order->next_id = next_id;
	order->exp_id = exp_id;
	INIT_LIST_HEAD(&order->out);
}

/**
 * kefa_order_give() - number a message
 * @order: numbers of the peer, for which kefa_order_may_give() returned true
 *
 * Context: Under the endpoint's lock.
 * Return: the number.
 */
u32 kefa_order_give(struct kefa_order *order)
{
	WARN_ON_ONCE(!kefa_order_may_give(order));
	return order->next_id++;
}

/**
 * kefa_order_sent() - note that a request packet is passed to the device
 * @order: numbers of the peer
 * @out: entry of the packet, in no list
 * @msg_id: number of the packet, from kefa_order_give()
 *
 * Later packets of a message may be sent after the first one of the next message. The list is
 * sorted by number, and the search from its end is short.
 *
 * Context: Under the endpoint's lock.
 */
void kefa_order_sent(struct kefa_order *order, struct kefa_order_out *out, u32 msg_id)
{
	struct kefa_order_out *before;

	out->msg_id = msg_id;
	list_for_each_entry_reverse(before, &order->out, list)
		if ((s32)(before->msg_id - msg_id) <= 0)
			break;
	/* @before is the list head if no entry has a lower number. */
	list_add(&out->list, &before->list);
}

/**
 * kefa_order_whose() - check whether it is a request's turn
 * @order: numbers of the peer
 * @msg_id: number of the request
 *
 * After the caller has handled a request whose turn it was, it increments @order->exp_id and
 * looks for a kept request with that number.
 *
 * Context: Under the endpoint's lock.
 * Return: whether the request is to be handled, kept or dropped.
 */
enum kefa_order_turn kefa_order_whose(const struct kefa_order *order, u32 msg_id)
{
	s32 ahead = msg_id - order->exp_id;

	if (!ahead)
		return KEFA_ORDER_NOW;
	if (ahead < 0)
		return KEFA_ORDER_PAST;
	return ahead < KEFA_ORDER_RECV_WINDOW ? KEFA_ORDER_LATER : KEFA_ORDER_NEVER;
}
