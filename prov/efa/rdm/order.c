// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The order of messages. A number is given when nothing can go wrong with its message
 * before the device has it: a number that never arrives stops the receiver for good.
 */
#include <linux/bug.h>
#include "order.h"

/**
 * kefa_order_init() - begin with a peer, or go on
 * @order: of the peer
 * @next_id: 0, or what it was when the peer was forgotten
 * @exp_id: likewise
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
 * @order: of the peer, for which kefa_order_may_give() holds
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
 * kefa_order_sent() - a request packet is handed to the device
 * @order: of the peer
 * @out: the packet's entry, in no list
 * @msg_id: its number, which kefa_order_give() gave
 *
 * Later packets of a message may follow the first of the next one: the list is kept in
 * order of numbers, and there is little to go back.
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
	/* The list's head, if there is none before it. */
	list_add(&out->list, &before->list);
}

/**
 * kefa_order_whose() - is it a request's turn?
 * @order: of the peer
 * @msg_id: number of the request
 *
 * The caller adds 1 to @order->exp_id when it has taken a request whose turn it was, and
 * looks for a kept one with that number.
 *
 * Context: Under the endpoint's lock.
 * Return: whose turn it is.
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
