// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Polled queues, for requests with REQ_POLLED: their completion queues have no handler. Tasks that
 * wait for such requests read them. A task may stop doing that, so the disk's thread reads them as
 * well: often while it waits for messages or for the end of requests itself, and otherwise once a
 * second. When a request times out, its reply may still be unread.
 *
 * Of the session's queues they are those after the first one, so that a server that grants fewer
 * queues than the client asks for takes away others. The block layer needs the queues of a kind
 * together, and there they are the last ones.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include "cli.h"

/* Batches of completions to handle at once: more than a queue has, unless a peer floods it. */
#define KBC_BATCHES	128

/* Return: the queue of the block layer's queue of this number. */
struct kbc_queue *kbc_hctx_queue(struct kbc_disk *d, unsigned int index)
{
	const unsigned int others = d->nqueues - d->npolled;

	if (index >= others)
		return &d->queues[1 + index - others];
	return &d->queues[index ? index + d->npolled : 0];
}

/* Without polled queues there is one map, of all queues. Reads have no queues of their own. */
void kbc_map_queues(struct blk_mq_tag_set *set)
{
	const struct kbc_disk *d = set->driver_data;
	const unsigned int polled = set->nr_maps > HCTX_TYPE_POLL ? d->npolled : 0;
	struct blk_mq_queue_map *map = set->map;

	map[HCTX_TYPE_DEFAULT].nr_queues = set->nr_hw_queues - polled;
	blk_mq_map_queues(&map[HCTX_TYPE_DEFAULT]);
	if (!polled)
		return;
	map[HCTX_TYPE_READ].nr_queues = 0;
	map[HCTX_TYPE_POLL].nr_queues = polled;
	map[HCTX_TYPE_POLL].queue_offset = set->nr_hw_queues - polled;
	blk_mq_map_queues(&map[HCTX_TYPE_POLL]);
}

/* Return: the number of completions that were handled; 0 also for a queue that isn't polled. */
static int kbc_queue_poll(const struct kbc_queue *kq)
{
	struct kulp_queue *q;
	int n = 0;

	/* kbc_fabric_forget() waits for it, and then puts the device. */
	rcu_read_lock();
	q = READ_ONCE(kq->q);
	if (likely(q))
		n = kulp_poll(q);
	rcu_read_unlock();
	return n;
}

int kbc_poll(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *iob)
{
	return kbc_queue_poll(hctx->driver_data);
}

static void kbc_queue_drain(const struct kbc_queue *kq)
{
	int i;

	for (i = 0; i < KBC_BATCHES && kbc_queue_poll(kq); i++)
		cond_resched();
}

void kbc_poll_all(struct kbc_disk *d)
{
	unsigned int i;

	for (i = 1; i <= d->npolled; i++)
		kbc_queue_drain(&d->queues[i]);
}

/*
 * Wait on kbc_disk.wait until @over() returns true, or for @time in jiffies. Nothing wakes the
 * thread for completions of polled queues, so read these every @every_ms. Return: whether @over()
 * returned true.
 */
bool kbc_wait(struct kbc_disk *d, bool (*over)(struct kbc_disk *d), unsigned long time,
	      unsigned int every_ms)
{
	const unsigned long every = d->npolled ? msecs_to_jiffies(every_ms) : time;
	const unsigned long end = jiffies + time;
	long left = time;

	do {
		kbc_poll_all(d);
		if (wait_event_idle_timeout(d->wait, over(d), min_t(unsigned long, left, every)))
			return true;
		left = end - jiffies;
	} while (left > 0);
	return false;
}

/*
 * Handle a reply that nobody has polled for. Without one, end the session: the server or the
 * network has failed, and the request's result is unknown.
 */
enum blk_eh_timer_return kbc_timeout(struct request *rq)
{
	struct kbc_queue *kq = rq->mq_hctx->driver_data;
	struct kbc_disk *d = kq->disk;

	kbc_queue_drain(kq);
	/* The request has been completed or requeued. The block layer keeps it until the return. */
	if (blk_mq_rq_state(rq) != MQ_RQ_IN_FLIGHT)
		return BLK_EH_DONE;
	/* It has been sent again, for example because memory was short, with a time of its own. */
	if (time_before(jiffies, READ_ONCE(rq->deadline)))
		return BLK_EH_RESET_TIMER;
	kbc_inc(d, timeouts);
	/* After the session's end, the request waits for the device to give the server up. */
	if (!READ_ONCE(kbc_slot(rq)->aborted))
		kbc_fault(kbc_slot(rq));
	/* The request may have been sent in an earlier session, which has ended already. */
	kbc_session_fail_of(d, READ_ONCE(kbc_slot(rq)->attempt), -ETIMEDOUT);
	return BLK_EH_RESET_TIMER;
}
