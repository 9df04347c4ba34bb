// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A session's queues: requests and replies, their abort at its end, and sums of counters. */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "srv.h"

/* Requests and replies exchange their inline pages, so all have the same order. */
static unsigned int kb_inline_order(const struct kb_session *s)
{
	return get_order(max_t(u32, s->limits.inline_max, s->limits.inline_read));
}

static struct page *kb_inline_page(const struct kb_session *s)
{
	return alloc_pages(GFP_KERNEL | __GFP_COMP, kb_inline_order(s));
}

static int kb_req_init(struct kb_squeue *sq, u16 slot)
{
	struct kb_session *s = sq->s;
	struct kb_req *req = &sq->reqs[slot];
	const struct fi_mr_alloc_attr attr = {
		.max_pages	= s->limits.max_io / PAGE_SIZE + 1,
		.access		= FI_REMOTE_READ,
		.cq		= sq->q->cq,
	};

	req->sq = sq;
	INIT_WORK(&req->work, kb_req_work);
	if (s->limits.inline_max || s->limits.inline_read) {
		req->inline_page = kb_inline_page(s);
		if (!req->inline_page)
			return -ENOMEM;
	}
	if (s->limits.caps & KB_CAP_RDMA_WRITE)
		return 0;
	return fi_mr_alloc(s->fabric->domain, &attr, &req->mr, NULL);
}

static void kb_req_exit(struct kb_req *req)
{
	if (req->mr)
		fi_close(&req->mr->fid);
	/* Pages that were kept after a failed invalidation. */
	kb_req_free_pages(req);
	if (req->inline_page)
		__free_pages(req->inline_page, kb_inline_order(req->sq->s));
}

static int kb_reply_init(struct kb_squeue *sq, u16 i)
{
	struct kb_reply_op *reply = &sq->replies[i];

	reply->sq = sq;
	reply->wire = &sq->wires[i];
	kb_reply_prepare(reply);
	list_add_tail(&reply->list, &sq->free_replies);
	if (!sq->s->limits.inline_read)
		return 0;
	reply->page = kb_inline_page(sq->s);
	return reply->page ? 0 : -ENOMEM;
}

/* The caller calls kb_squeue_exit() also on failure. @sq is zeroed but for session and queue. */
int kb_squeue_init(struct kb_squeue *sq)
{
	u16 i, depth = sq->s->limits.depth;
	int ret = 0;

	spin_lock_init(&sq->lock);
	INIT_LIST_HEAD(&sq->free_replies);
	INIT_LIST_HEAD(&sq->want_reply);
	kb_chunks_init(sq);
	sq->reqs = kvcalloc(depth, sizeof(*sq->reqs), GFP_KERNEL);
	sq->replies = kvcalloc(depth, sizeof(*sq->replies), GFP_KERNEL);
	sq->wires = kcalloc(depth, sizeof(*sq->wires), GFP_KERNEL);
	if (!sq->reqs || !sq->replies || !sq->wires)
		return -ENOMEM;
	for (i = 0; i < depth && !ret; i++)
		ret = kb_reply_init(sq, i) ?: kb_req_init(sq, i);
	return ret;
}

void kb_squeue_exit(struct kb_squeue *sq)
{
	u16 i;

	for (i = 0; sq->reqs && i < sq->s->limits.depth; i++)
		if (sq->reqs[i].sq)
			kb_req_exit(&sq->reqs[i]);
	for (i = 0; sq->replies && i < sq->s->limits.depth; i++)
		if (sq->replies[i].page)
			__free_pages(sq->replies[i].page, kb_inline_order(sq->s));
	if (sq->reqs)
		kb_chunks_free(sq);
	kvfree(sq->reqs);
	kvfree(sq->replies);
	kfree(sq->wires);
}

/*
 * Prevent the start of new operations. An operation checks the state under its queue's lock and is
 * counted there if the session is live. So once this function has taken each lock, all operations
 * that will run are counted.
 */
void kb_session_ending(struct kb_session *s)
{
	u16 i;

	WRITE_ONCE(s->state, KB_SESSION_ENDING);
	for (i = 0; i < s->nqueues; i++) {
		spin_lock_bh(&s->queues[i].lock);
		spin_unlock_bh(&s->queues[i].lock);
	}
}

/*
 * Sum up the counters of a session's queues. @stats may be NULL. After kb_session_ending(),
 * in_flight stays 0 once it is 0. The caller holds no queue's lock.
 */
void kb_session_load(struct kb_session *s, struct kb_load *load, struct kb_session_stats *stats)
{
	struct kb_squeue *sq;
	unsigned int i;

	*load = (struct kb_load) {};
	for (sq = s->queues; sq < s->queues + s->nqueues; sq++) {
		spin_lock_bh(&sq->lock);
		for (i = 0; i < sizeof(*load) / sizeof(u32); i++)
			((u32 *)load)[i] += ((u32 *)&sq->load)[i];
		for (i = 0; stats && i < sizeof(*stats) / sizeof(u64); i++)
			((u64 *)stats)[i] += ((u64 *)&sq->stats)[i];
		spin_unlock_bh(&sq->lock);
	}
}

static bool kb_squeue_untaken(const struct kb_squeue *sq, unsigned long then)
{
	u16 i;

	for (i = 0; i < sq->s->limits.depth; i++)
		if ((sq->replies[i].out && time_before(sq->replies[i].since, then)) ||
		    (sq->reqs[i].state == KB_REQ_READY && time_before(sq->reqs[i].since, then)))
			return true;
	return false;
}

/*
 * Return: whether there is a reply, or data to fetch, that the client hasn't taken for @age
 * jiffies. Outstanding replies fill a queue that the client shares with others, and data that
 * isn't fetched may occupy the reserve.
 */
bool kb_session_untaken(struct kb_session *s, unsigned long age)
{
	bool untaken = false;
	u16 i;

	for (i = 0; i < s->nqueues && !untaken; i++) {
		spin_lock_bh(&s->queues[i].lock);
		untaken = kb_squeue_untaken(&s->queues[i], jiffies - age);
		spin_unlock_bh(&s->queues[i].lock);
	}
	return untaken;
}

/*
 * End requests that wait for the client or for memory. The session isn't live, and no longer in
 * the hash table.
 */
void kb_session_abort(struct kb_session *s)
{
	struct kb_req *req, *next;
	LIST_HEAD(waiters);
	u16 i, slot;
	bool ready;

	/* End requests that wait for memory, because maybe only this session's end frees it. */
	kb_mem_waiters(s, &waiters);
	list_for_each_entry_safe(req, next, &waiters, list)
		kb_req_end(req, -ESHUTDOWN);

	for (i = 0; i < s->nqueues; i++)
		for (slot = 0; slot < s->limits.depth; slot++) {
			req = &s->queues[i].reqs[slot];
			spin_lock_bh(&req->sq->lock);
			ready = req->state == KB_REQ_READY;
			if (ready)
				req->state = KB_REQ_BUSY;
			spin_unlock_bh(&req->sq->lock);
			if (ready)
				kb_req_inval(req);
		}
}
