// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The order of messages. A number is given only when nothing can fail any more before the
 * device has its message, because the receiver waits for ever for a number that doesn't arrive.
 */
#include <linux/string.h>
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
	memset(order->out, 0, sizeof(order->out));
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
