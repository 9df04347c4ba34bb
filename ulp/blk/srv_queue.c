// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A session's queues: requests and replies, their abort at its end, and sums of counters. */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "srv.h"

/* Requests and replies exchange their inline pages, so all have the same order. */
static unsigned int kbs_inline_order(const struct kbs_session *s)
{
	return get_order(max_t(u32, s->limits.inline_max, s->limits.inline_read));
}

static struct page *kbs_inline_page(const struct kbs_session *s)
{
	return alloc_pages(GFP_KERNEL | __GFP_COMP, kbs_inline_order(s));
}

static int kbs_req_init(struct kbs_squeue *sq, u16 slot)
{
	struct kbs_session *s = sq->s;
	struct kbs_req *req = &sq->reqs[slot];
	const struct fi_mr_alloc_attr attr = {
		.max_pages	= s->limits.max_io / PAGE_SIZE + 1,
		.access		= FI_REMOTE_READ,
		.cq		= sq->q->cq,
		.ep		= kulp_queue_mr_ep(sq->q),
	};

	req->sq = sq;
	INIT_WORK(&req->work, kbs_req_work);
	if (s->limits.inline_max || s->limits.inline_read) {
		req->inline_page = kbs_inline_page(s);
		if (!req->inline_page)
			return -ENOMEM;
	}
	if (s->limits.caps & KOFIBLK_CAP_RDMA_WRITE)
		return 0;
	return fi_mr_alloc(s->fabric->domain, &attr, &req->mr, NULL);
}

static void kbs_req_exit(struct kbs_req *req)
{
	if (req->mr)
		fi_close(&req->mr->fid);
	/* Pages that were kept after a failed invalidation. */
	kbs_req_free_pages(req);
	if (req->inline_page)
		__free_pages(req->inline_page, kbs_inline_order(req->sq->s));
}

static int kbs_reply_init(struct kbs_squeue *sq, u16 i)
{
	struct kbs_reply_op *reply = &sq->replies[i];

	reply->sq = sq;
	reply->wire = &sq->wires[i];
	kbs_reply_prepare(reply);
	list_add_tail(&reply->list, &sq->free_replies);
	if (!sq->s->limits.inline_read)
		return 0;
	reply->page = kbs_inline_page(sq->s);
	return reply->page ? 0 : -ENOMEM;
}

/* The caller calls kbs_squeue_exit() also on failure. @sq is zeroed but for session and queue. */
int kbs_squeue_init(struct kbs_squeue *sq)
{
	u16 i, depth = sq->s->limits.depth;
	int ret = 0;

	spin_lock_init(&sq->lock);
	INIT_LIST_HEAD(&sq->free_replies);
	INIT_LIST_HEAD(&sq->want_reply);
	kbs_chunks_init(sq);
	sq->reqs = kvcalloc(depth, sizeof(*sq->reqs), GFP_KERNEL);
	sq->replies = kvcalloc(depth, sizeof(*sq->replies), GFP_KERNEL);
	sq->wires = kcalloc(depth + 1, sizeof(*sq->wires), GFP_KERNEL);
	if (!sq->reqs || !sq->replies || !sq->wires)
		return -ENOMEM;
	sq->ping.sq = sq;
	sq->ping.wire = &sq->wires[depth];
	for (i = 0; i < depth && !ret; i++)
		ret = kbs_reply_init(sq, i) ?: kbs_req_init(sq, i);
	return ret;
}

void kbs_squeue_exit(struct kbs_squeue *sq)
{
	u16 i;

	for (i = 0; sq->reqs && i < sq->s->limits.depth; i++)
		if (sq->reqs[i].sq)
			kbs_req_exit(&sq->reqs[i]);
	for (i = 0; sq->replies && i < sq->s->limits.depth; i++)
		if (sq->replies[i].page)
			__free_pages(sq->replies[i].page, kbs_inline_order(sq->s));
	if (sq->reqs)
		kbs_chunks_free(sq);
	kvfree(sq->reqs);
	kvfree(sq->replies);
	kfree(sq->wires);
}

/*
 * Prevent the start of new operations, except in CLOSING of replies to keep-alive messages. An
 * operation checks the state under its queue's lock and is counted there if the session works. So
 * once this function has taken each lock, all operations that will run are counted.
 */
void kbs_session_quiet(struct kbs_session *s, enum kbs_session_state state)
{
	u16 i;

	kbs_session_go(s, state);
	for (i = 0; i < s->nqueues; i++) {
		spin_lock_bh(&s->queues[i].lock);
		spin_unlock_bh(&s->queues[i].lock);
	}
}

/*
 * Sum up the counters of a session's queues. @stats may be NULL. In ENDING, in_flight stays 0 once
 * it is 0; in CLOSING, only a keep-alive message changes that. The caller holds no queue's lock.
 */
void kbs_session_load(struct kbs_session *s, struct kbs_load *load, struct kbs_session_stats *stats)
{
	struct kbs_squeue *sq;
	unsigned int i;

	*load = (struct kbs_load) {};
	for (sq = s->queues; sq < s->queues + s->nqueues; sq++) {
		spin_lock_bh(&sq->lock);
		for (i = 0; i < sizeof(*load) / sizeof(u32); i++)
			((u32 *)load)[i] += ((u32 *)&sq->load)[i];
		for (i = 0; stats && i < sizeof(*stats) / sizeof(u64); i++)
			((u64 *)stats)[i] += ((u64 *)&sq->stats)[i];
		spin_unlock_bh(&sq->lock);
	}
}

static bool kbs_squeue_untaken(const struct kbs_squeue *sq, unsigned long then)
{
	u16 i;

	for (i = 0; i < sq->s->limits.depth; i++)
		if ((sq->replies[i].out && time_before(sq->replies[i].since, then)) ||
		    (sq->reqs[i].state == KBS_REQ_READY && time_before(sq->reqs[i].since, then)))
			return true;
	return false;
}

/*
 * Return: whether there is a reply, or data to fetch, that the client hasn't taken for @age
 * jiffies. Outstanding replies fill a queue that the client shares with others, and data that isn't
 * fetched may occupy the reserve.
 */
bool kbs_session_untaken(struct kbs_session *s, unsigned long age)
{
	bool untaken = false;
	u16 i;

	for (i = 0; i < s->nqueues && !untaken; i++) {
		spin_lock_bh(&s->queues[i].lock);
		untaken = kbs_squeue_untaken(&s->queues[i], jiffies - age);
		spin_unlock_bh(&s->queues[i].lock);
	}
	return untaken;
}

/*
 * End requests that wait for the client or for memory, after kbs_session_quiet().
 */
void kbs_session_abort(struct kbs_session *s)
{
	struct kbs_req *req, *next;
	LIST_HEAD(waiters);
	u16 i, slot;
	bool ready;

	/* End requests that wait for memory, because maybe only this session's end frees it. */
	kbs_mem_waiters(s, &waiters);
	list_for_each_entry_safe(req, next, &waiters, list)
		kbs_req_end(req, -ESHUTDOWN);

	for (i = 0; i < s->nqueues; i++)
		for (slot = 0; slot < s->limits.depth; slot++) {
			req = &s->queues[i].reqs[slot];
			spin_lock_bh(&req->sq->lock);
			ready = req->state == KBS_REQ_READY;
			if (ready)
				req->state = KBS_REQ_BUSY;
			spin_unlock_bh(&req->sq->lock);
			if (ready)
				kbs_req_inval(req);
		}
}
