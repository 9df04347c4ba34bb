// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages to the server. If the server is dead, the device may keep a message for longer than its
 * session, or its disk, exists. The disk then sets it aside. The message is memory of its own, so
 * nobody has to wait for the device.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <linux/jhash.h>
#include <linux/list.h>
#include <linux/slab.h>
#include "cli.h"

static DEFINE_SPINLOCK(kbc_left_lock);	/* protects kbc_left */
static LIST_HEAD(kbc_left);		/* messages that were set aside */

struct kbc_message *kbc_message_new(int (*post)(struct kulp_queue *q, struct kulp_op *op),
				    void (*done)(struct kulp_queue *q, struct kulp_op *op,
						 int err, size_t len))
{
	/* The block layer may ask for it while the disk is frozen. */
	struct kbc_message *m = kzalloc(sizeof(*m), GFP_NOIO);

	if (!m)
		return NULL;
	m->op.post = post;
	m->op.done = done;
	return m;
}

/* The device has sent a message, or has failed to. Return: its owner; NULL: it was freed. */
void *kbc_message_done(struct kulp_op *op)
{
	struct kbc_message *m = container_of(op, struct kbc_message, op);
	/* A full barrier: its owner may write the message again. */
	void *owner = xchg(&m->owner, NULL);

	if (likely(owner))
		return owner;
	spin_lock_bh(&kbc_left_lock);
	list_del(&m->list);
	spin_unlock_bh(&kbc_left_lock);
	kfree(m);
	return NULL;
}

static u32 kbc_server(const struct kbc_queue *kq)
{
	return jhash(&kq->disk->options.addr, sizeof(kq->disk->options.addr), 0);
}

/*
 * Set a message aside, if it is still being sent. At the latest it ends when the device is closed.
 * The caller makes sure that it isn't being posted.
 */
bool kbc_message_leave(struct kbc_message *m, const struct kbc_queue *kq)
{
	bool left;

	spin_lock_bh(&kbc_left_lock);
	left = xchg(&m->owner, NULL);
	if (left) {
		m->q = kq->q;
		m->server = kbc_server(kq);
		list_add(&m->list, &kbc_left);
	}
	spin_unlock_bh(&kbc_left_lock);
	return left;
}

/*
 * Return: whether messages to the server take a quarter of a queue of the device, which others
 * need, too. The device keeps them until it gives the server up, and no session that would add to
 * them begins.
 */
bool kbc_left_full(const struct kbc_queue *kq)
{
	const u32 server = kbc_server(kq);
	const struct kbc_message *m;
	size_t n = 0;

	spin_lock_bh(&kbc_left_lock);
	list_for_each_entry(m, &kbc_left, list)
		n += m->q == kq->q && m->server == server;
	spin_unlock_bh(&kbc_left_lock);
	return n >= kq->q->fabric->info->tx_attr->size / 4;
}
