// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tags of queues, and their memory regions; KEEP_ALIVE and PROVE, which don't have a tag. */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <linux/slab.h>
#include "cli.h"

/*
 * A request or keep-alive message has ended. As soon as kbc_queue.busy is 0, kbc_requests_abort()
 * may return, and the disk may be freed after an RCU grace period.
 */
void kbc_busy_put(struct kbc_queue *kq)
{
	struct kbc_disk *d = kq->disk;

	rcu_read_lock();
	/*
	 * The caller of kbc_requests_abort() clears @up before that function reads @busy. Here
	 * @busy is decremented before @up is read, so no wake-up is missed.
	 */
	if (atomic_dec_and_test(&kq->busy) && !READ_ONCE(d->gate.up))
		wake_up(&d->wait);
	rcu_read_unlock();
}

/* The disk may not have tags yet. */
void kbc_each_tag(struct kbc_disk *d, void (*fn)(struct kbc_queue *kq, struct kbc_tag *tag))
{
	unsigned int i, j;

	for (i = 0; i < d->nqueues; i++)
		for (j = 0; d->queues[i].tags && j < d->made.depth; j++)
			fn(&d->queues[i], &d->queues[i].tags[j]);
}

/* --- KEEP_ALIVE and PROVE --- */

/* Under RCU, so kbc_unpublish() waits for it. */
static int kbc_signal_post(struct kulp_queue *q, struct kulp_op *op)
{
	struct kbc_message *m = container_of(op, struct kbc_message, op);
	const struct kbc_queue *kq = READ_ONCE(m->owner);

	if (!kq || !READ_ONCE(kq->disk->session.open))
		return -ECANCELED;
	return fi_send(q->ep, &m->msg, sizeof(struct kofiblk_cmd), NULL, kq->peer, op);
}

static void kbc_signal_done(struct kulp_queue *q, struct kulp_op *op, int err, size_t len)
{
	struct kbc_queue *kq = kbc_message_done(op);

	if (!kq)
		return;
	if (err && err != -ECANCELED)
		kbc_session_fail(kq->disk, err);
	kbc_busy_put(kq);
}

static void kbc_signal(struct kbc_queue *kq, const struct kofiblk_cmd_msg *msg)
{
	struct kofiblk_cmd *wire = &kq->signal->msg.cmd;
	size_t len = kofiblk_build_cmd(wire, msg);

	kofiblk_cmd_sign(wire, len, kq->cmd_nonce, &kq->disk->session.keys);
	WRITE_ONCE(kq->signal->owner, kq);
	atomic_inc(&kq->busy);
	kulp_submit(kq->q, &kq->signal->op);
}

/* Allocate what kbc_signals_leave() has set aside. */
int kbc_signals_alloc(struct kbc_disk *d)
{
	struct kbc_queue *kq;

	for (kq = d->queues; kq < d->queues + d->nqueues; kq++) {
		if (!kq->signal)
			kq->signal = kbc_message_new(kbc_signal_post, kbc_signal_done);
		if (!kq->signal)
			return -ENOMEM;
	}
	return 0;
}

/* At the end of a session, after kbc_unpublish(). */
void kbc_signals_leave(struct kbc_disk *d)
{
	struct kbc_queue *kq;

	for (kq = d->queues; kq < d->queues + d->nqueues; kq++) {
		if (!kq->signal || !kbc_message_leave(kq->signal, kq))
			continue;
		kq->signal = NULL;
		kbc_busy_put(kq);
	}
}

void kbc_keep_alive(struct kbc_disk *d)
{
	struct kofiblk_cmd_msg msg = {
		.op		= KOFIBLK_OP_KEEP_ALIVE,
		.session	= d->session.id,
	};

	/* The previous message is still being sent. Pairs with kbc_message_done(). */
	if (smp_load_acquire(&d->queues[0].signal->owner))
		return;
	WRITE_ONCE(d->alive.gen, d->alive.gen + 1);
	msg.id = KOFIBLK_ID(KOFIBLK_SLOT_KEEP_ALIVE, d->alive.gen);
	d->alive.when = jiffies;
	kbc_inc(d, keep_alives);
	kbc_signal(&d->queues[0], &msg);
}

/* Send the nonce of replies, and ask for that of commands. The queue sends nothing else yet. */
void kbc_prove(struct kbc_queue *kq)
{
	const struct kofiblk_cmd_msg msg = {
		.op		= KOFIBLK_OP_PROVE,
		.queue		= kq->index,
		.session	= kq->disk->session.id,
		.id		= KOFIBLK_ID(KOFIBLK_SLOT_KEEP_ALIVE, 1ULL),
		.key		= kq->reply_nonce,
	};

	kbc_signal(kq, &msg);
}

/* --- memory --- */

static int kbc_queue_alloc(struct kbc_queue *kq)
{
	const struct kbc_disk *d = kq->disk;
	struct kbc_tag *tags;
	u16 i;

	spin_lock_init(&kq->lock);
	tags = kvcalloc(d->made.depth, sizeof(*tags), GFP_KERNEL);
	if (!tags)
		return -ENOMEM;
	for (i = 0; i < d->made.depth; i++)
		spin_lock_init(&tags[i].lock);
	/* Pairs with kbc_written(): stray immediate data may come before there are tags. */
	smp_store_release(&kq->tags, tags);
	kq->bvecs = kvcalloc(d->made.max_bvecs, sizeof(*kq->bvecs), GFP_KERNEL);
	return kq->bvecs ? 0 : -ENOMEM;
}

static void kbc_queue_free(struct kbc_queue *kq)
{
	kvfree(kq->tags);
	kvfree(kq->bvecs);
	kfree(kq->signal);
	kq->tags = NULL;
	kq->bvecs = NULL;
	kq->signal = NULL;
}

/* Allocate tags without regions. The caller calls kbc_tags_free() also on failure. */
int kbc_tags_alloc(struct kbc_disk *d)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < d->nqueues && !ret; i++)
		ret = kbc_queue_alloc(&d->queues[i]);
	return ret;
}

void kbc_tags_free(struct kbc_disk *d)
{
	unsigned int i;

	for (i = 0; i < d->nqueues; i++)
		kbc_queue_free(&d->queues[i]);
}

static int kbc_region_alloc(struct kbc_queue *kq, struct kbc_tag *tag)
{
	const struct kbc_disk *d = kq->disk;
	const struct fi_mr_alloc_attr attr = {
		.max_pages	= d->made.max_bvecs,
		.access		= FI_REMOTE_READ | (d->fabric->can_write ? FI_REMOTE_WRITE : 0),
		/* A server may be silent when its disk is removed, and use an old key later. */
		.flags		= FI_RETIRE,
		.cq		= kq->q->cq,
		.ep		= kulp_queue_mr_ep(kq->q),
	};

	if (tag->mr)
		return 0;
	return fi_mr_alloc(d->fabric->domain, &attr, &tag->mr, NULL);
}

int kbc_regions_alloc(struct kbc_disk *d)
{
	unsigned int i, j;
	int ret = 0;

	for (i = 0; i < d->nqueues; i++)
		for (j = 0; j < d->made.depth && !ret; j++)
			ret = kbc_region_alloc(&d->queues[i], &d->queues[i].tags[j]);
	return ret;
}

void kbc_region_free(struct kbc_queue *kq, struct kbc_tag *tag)
{
	int ret;

	if (!tag->mr)
		return;
	ret = fi_close(&tag->mr->fid);
	/* That was told once. kbc_requests_abort() has closed the device, if memory was in use. */
	if (ret == -EIO)
		ret = fi_close(&tag->mr->fid);
	WARN_ONCE(ret, "kofiblk: closing a region failed: %d\n", ret);
	tag->mr = NULL;
	tag->told = false;
}

static void kbc_region_renew(struct kbc_queue *kq, struct kbc_tag *tag)
{
	if (tag->told)
		kbc_region_free(kq, tag);
}

/*
 * Before a session with another server, close the regions of requests to which the last one hasn't
 * replied. It may still write by a key that it got, and a region has each of its keys again after
 * some registrations. The same server ends the old session before it accepts another one.
 */
void kbc_regions_renew(struct kbc_disk *d, u64 epoch)
{
	if (epoch != d->epoch.epoch)
		kbc_each_tag(d, kbc_region_renew);
}
