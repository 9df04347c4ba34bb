// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory for data: limited for each session, with a reserve for allocation failures. A busy session
 * keeps some pages for reuse, because on kernels that clear all allocated memory, clearing would
 * cost more than the rest of a read.
 */
#include <linux/bvec.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include "srv.h"

#define KBS_CHUNKS_BYTES	SZ_4M	/* maximum bytes that a session keeps */

static void kbs_mem_collect(struct kbs_session *s);

/*
 * Pages for a request whose allocation failed. Only one request at a time uses them, and the others
 * wait, so that at least one request can always proceed.
 */
static struct {
	spinlock_t		lock;		/* protects busy and waiting */
	bool			busy;
	struct list_head	waiting;	/* kbs_req that wait for the reserve */
	struct bio_vec		*bvec;
	unsigned int		nbvec;
	struct bio_vec		*used;		/* the pieces of bvec that the request uses */
} kbs_reserve;

void kbs_chunks_init(struct kbs_squeue *sq)
{
	unsigned int i;

	spin_lock_init(&sq->chunks.lock);
	for (i = 0; i <= KBS_CHUNK_ORDER; i++)
		INIT_LIST_HEAD(&sq->chunks.free[i]);
}

/* Return: a kept page, or NULL. */
static struct page *kbs_chunk_take(struct kbs_squeue *sq, unsigned int order)
{
	struct kbs_chunks *chunks;
	struct page *page;

	if (!sq)
		return NULL;
	chunks = &sq->chunks;
	spin_lock_bh(&chunks->lock);
	page = list_first_entry_or_null(&chunks->free[order], struct page, lru);
	if (page) {
		list_del(&page->lru);
		chunks->bytes -= PAGE_SIZE << order;
		WRITE_ONCE(chunks->taken, true);
	}
	spin_unlock_bh(&chunks->lock);
	return page;
}

/* Keep pages, but free those that a store on a network may reference for retransmission. */
static void kbs_chunk_give(struct kbs_squeue *sq, struct page *page, unsigned int order)
{
	u32 bytes = PAGE_SIZE << order;
	bool keep = false;

	if (sq && page_ref_count(page) == 1) {
		spin_lock_bh(&sq->chunks.lock);
		keep = sq->chunks.bytes + bytes <=
		       KBS_CHUNKS_BYTES / sq->s->nqueues;
		if (keep) {
			list_add(&page->lru, &sq->chunks.free[order]);
			sq->chunks.bytes += bytes;
		}
		spin_unlock_bh(&sq->chunks.lock);
	}
	if (!keep)
		__free_pages(page, order);
}

void kbs_chunks_free(struct kbs_squeue *sq)
{
	struct page *page;
	unsigned int i;

	for (i = 0; i <= KBS_CHUNK_ORDER; i++)
		while ((page = kbs_chunk_take(sq, i)))
			__free_pages(page, i);
}

/* Free the kept pages of idle queues, and take back unused leases. Called periodically. */
void kbs_mem_trim(struct kbs_session *s)
{
	struct kbs_chunks *chunks;
	u16 i;

	for (i = 0; i < s->nqueues; i++) {
		chunks = &s->queues[i].chunks;
		if (!READ_ONCE(chunks->taken))
			kbs_chunks_free(&s->queues[i]);
		WRITE_ONCE(chunks->taken, false);
	}
	kbs_mem_collect(s);
}

static void kbs_pages_free(struct kbs_squeue *sq, struct bio_vec *bvec, unsigned int nbvec,
			   const struct bio_vec *one)
{
	unsigned int i;

	for (i = 0; i < nbvec; i++)
		kbs_chunk_give(sq, bvec[i].bv_page, get_order(bvec[i].bv_len));
	if (bvec != one)
		kfree(bvec);
}

static struct page *kbs_chunk_alloc(struct kbs_squeue *sq, unsigned int order, gfp_t gfp)
{
	struct page *page = kbs_chunk_take(sq, order);

	/* Compound, because a store on a network takes references to pages. */
	return page ?: alloc_pages(gfp | __GFP_COMP, order);
}

/*
 * Return: pieces of @bytes bytes in total, or NULL. @sq: queue with kept pages, or NULL. @one: for
 * data in one piece, which needs no list, or NULL. @wait: whether this may sleep.
 */
static struct bio_vec *kbs_pages_alloc(struct kbs_squeue *sq, size_t bytes, struct bio_vec *one,
				       unsigned int *nbvec, bool wait)
{
	const gfp_t gfp = (wait ? GFP_NOIO : GFP_NOWAIT) | __GFP_NORETRY | __GFP_NOWARN;
	size_t left = PAGE_ALIGN(bytes);
	unsigned int n = 0, order = min_t(unsigned int, KBS_CHUNK_ORDER, get_order(bytes));
	struct page *page = NULL;
	struct bio_vec *bvec;

	if (one && left == PAGE_SIZE << order)
		page = kbs_chunk_alloc(sq, order, gfp);
	if (page) {
		bvec_set_page(one, page, bytes, 0);
		*nbvec = 1;
		return one;
	}
	bvec = kmalloc_array(left >> PAGE_SHIFT, sizeof(*bvec), gfp);
	if (!bvec)
		return NULL;
	while (left) {
		order = min_t(unsigned int, order, ilog2(left >> PAGE_SHIFT));
		page = kbs_chunk_alloc(sq, order, gfp);
		if (!page && order) {
			order--;
			continue;
		}
		if (!page) {
			kbs_pages_free(sq, bvec, n, one);
			return NULL;
		}
		bvec_set_page(&bvec[n++], page, PAGE_SIZE << order, 0);
		left -= PAGE_SIZE << order;
	}
	/* The difference is less than a page, so get_order() of the piece is unchanged. */
	bvec[n - 1].bv_len -= PAGE_ALIGN(bytes) - bytes;
	*nbvec = n;
	return bvec;
}

/* Return: the number of pieces of the reserve that hold the data of @req, its user. */
static unsigned int kbs_reserve_use(struct kbs_req *req)
{
	size_t left = req->cmd.bytes;
	unsigned int n;

	for (n = 0; left; n++) {
		kbs_reserve.used[n] = kbs_reserve.bvec[n];
		kbs_reserve.used[n].bv_len = min_t(size_t, left, kbs_reserve.bvec[n].bv_len);
		left -= kbs_reserve.used[n].bv_len;
	}
	return n;
}

/* Return: 0, -EAGAIN if @req was queued to wait, or -ESHUTDOWN. */
static int kbs_reserve_take(struct kbs_req *req)
{
	int ret = 0;

	spin_lock_bh(&kbs_reserve.lock);
	/* Don't queue @req after kbs_mem_waiters() has emptied the list. */
	if (!kbs_session_works(req->sq->s)) {
		ret = -ESHUTDOWN;
	} else if (kbs_reserve.busy) {
		ret = -EAGAIN;
		list_add_tail(&req->list, &kbs_reserve.waiting);
	} else {
		req->reserved = true;
		kbs_reserve.busy = true;
	}
	spin_unlock_bh(&kbs_reserve.lock);
	return ret;
}

static void kbs_reserve_give(struct kbs_req *req)
{
	struct kbs_req *next;

	req->reserved = false;
	spin_lock_bh(&kbs_reserve.lock);
	next = list_first_entry_or_null(&kbs_reserve.waiting, struct kbs_req, list);
	if (next) {
		list_del(&next->list);
		next->reserved = true;
	} else {
		kbs_reserve.busy = false;
	}
	spin_unlock_bh(&kbs_reserve.lock);
	if (next)
		kbs_req_next(next, kbs_store_wq(next), kbs_run_begin);
}

/* Charge whole pages, because requests don't share pages. */
static u32 kbs_mem_bytes(const struct kbs_req *req)
{
	return PAGE_ALIGN(req->cmd.bytes);
}

static bool kbs_mem_fits(const struct kbs_session *s, u32 bytes)
{
	return !s->leased || (u64)s->leased + bytes <= s->port->max_memory;
}

/*
 * Queues lease memory of the session's limit as they need it, and keep the lease until another
 * queue runs short. So a busy queue takes only its own lock.
 */
static int kbs_mem_lease(struct kbs_squeue *sq, u32 bytes, struct kbs_req *req)
{
	struct kbs_session *s = sq->s;
	bool fits;

	lockdep_assert_held(&sq->lock);
	spin_lock(&s->lock);
	fits = kbs_mem_fits(s, bytes) && list_empty(&s->mem_wait);
	if (fits)
		s->leased += bytes;
	else
		list_add_tail(&req->list, &s->mem_wait);
	spin_unlock(&s->lock);
	if (fits)
		sq->leased += bytes;
	else
		sq->stats.mem_waits++;
	return fits ? 0 : -EAGAIN;
}

/* Return @spare bytes to the session, and start waiting requests that fit, in order. */
static void kbs_mem_grant(struct kbs_session *s, u32 spare)
{
	struct kbs_req *req, *next;
	struct kbs_squeue *sq;
	LIST_HEAD(granted);

	spin_lock_bh(&s->lock);
	s->leased -= spare;
	list_for_each_entry_safe(req, next, &s->mem_wait, list) {
		if (!kbs_mem_fits(s, kbs_mem_bytes(req)))
			break;
		s->leased += kbs_mem_bytes(req);
		list_move_tail(&req->list, &granted);
	}
	spin_unlock_bh(&s->lock);
	list_for_each_entry_safe(req, next, &granted, list) {
		sq = req->sq;
		spin_lock_bh(&sq->lock);
		sq->leased += kbs_mem_bytes(req);
		sq->load.memory += kbs_mem_bytes(req);
		req->charged = true;
		spin_unlock_bh(&sq->lock);
		kbs_req_next(req, kbs_store_wq(req), kbs_run_begin);
	}
}

/* Take back unused leases of all queues, for waiting requests. */
static void kbs_mem_collect(struct kbs_session *s)
{
	struct kbs_squeue *sq;
	u32 spare = 0;

	for (sq = s->queues; sq < s->queues + s->nqueues; sq++) {
		spin_lock_bh(&sq->lock);
		spare += sq->leased - sq->load.memory;
		sq->leased = sq->load.memory;
		spin_unlock_bh(&sq->lock);
	}
	kbs_mem_grant(s, spare);
}

/*
 * Charge a request's memory. A session's first request may exceed the limit.
 * Return: 0, -EAGAIN if @req was queued to wait, or -ESHUTDOWN.
 */
static int kbs_mem_charge(struct kbs_req *req)
{
	struct kbs_squeue *sq = req->sq;
	u32 left, bytes = kbs_mem_bytes(req);
	int ret = 0;

	/* A waiting request may be ended at once. But kbs_session_drain() waits for this reader. */
	rcu_read_lock();
	spin_lock_bh(&sq->lock);
	left = sq->leased - sq->load.memory;
	if (!kbs_session_works(sq->s))
		ret = -ESHUTDOWN;
	else if (left < bytes || !list_empty_careful(&sq->s->mem_wait))
		ret = kbs_mem_lease(sq, left < bytes ? bytes - left : 0, req);
	if (!ret) {
		sq->load.memory += bytes;
		req->charged = true;
	}
	spin_unlock_bh(&sq->lock);
	/* Other queues may have leases that they don't use. */
	if (ret == -EAGAIN)
		kbs_mem_collect(sq->s);
	rcu_read_unlock();
	return ret;
}

static void kbs_mem_uncharge(struct kbs_squeue *sq, u32 bytes)
{
	bool wanted;

	spin_lock_bh(&sq->lock);
	sq->load.memory -= bytes;
	/* A waiting request was added to the list before kbs_mem_collect() read this queue. */
	wanted = !list_empty_careful(&sq->s->mem_wait);
	spin_unlock_bh(&sq->lock);
	if (wanted)
		kbs_mem_collect(sq->s);
}

/*
 * Allocate pages for a request's data. With @wait this may sleep; without it, only pages that are
 * at hand are taken. Return: 0; -EAGAIN if the request waits for memory, and will be started again;
 * -ESHUTDOWN if the session isn't live; without @wait, -ENOMEM if the caller must try again with
 * it.
 */
int kbs_req_pages(struct kbs_req *req, bool wait)
{
	int ret = req->charged ? 0 : kbs_mem_charge(req);

	if (!ret && !req->reserved)
		req->bvec = kbs_pages_alloc(req->sq, req->cmd.bytes, &req->one, &req->nbvec, wait);
	if (ret || req->bvec)
		return ret;
	if (!wait)
		return -ENOMEM;
	ret = req->reserved ? 0 : kbs_reserve_take(req);
	if (ret)
		return ret;
	req->nbvec = kbs_reserve_use(req);
	req->bvec = kbs_reserve.used;
	return 0;
}

void kbs_req_free_pages(struct kbs_req *req)
{
	if (req->reserved)
		kbs_reserve_give(req);
	else if (req->bvec && req->charged)
		kbs_pages_free(req->sq, req->bvec, req->nbvec, &req->one);
	req->bvec = NULL;
	if (req->charged)
		kbs_mem_uncharge(req->sq, kbs_mem_bytes(req));
	req->charged = false;
}

/* Return: whether @req's pages can move to its reply: one piece, not of the reserve. */
bool kbs_reply_may_have(const struct kbs_req *req)
{
	return req->nbvec == 1 && !req->reserved;
}

/* Move the pages to the reply, because the slot may be reused before it has completed. */
void kbs_reply_take_pages(struct kbs_reply_op *reply, struct kbs_req *req)
{
	reply->bvecs[0] = req->bvec[0];
	reply->charged = kbs_mem_bytes(req);
	if (req->bvec != &req->one)
		kfree(req->bvec);
	req->bvec = NULL;
	req->charged = false;
}

void kbs_reply_free_pages(struct kbs_reply_op *reply)
{
	kbs_chunk_give(reply->sq, reply->bvecs[0].bv_page, get_order(reply->bvecs[0].bv_len));
	kbs_mem_uncharge(reply->sq, reply->charged);
	reply->charged = 0;
}

/* Take a session's requests that wait for memory off their lists. The caller ends each. */
void kbs_mem_waiters(struct kbs_session *s, struct list_head *list)
{
	struct kbs_req *req, *next;

	spin_lock_bh(&s->lock);
	list_splice_tail_init(&s->mem_wait, list);
	spin_unlock_bh(&s->lock);
	spin_lock_bh(&kbs_reserve.lock);
	list_for_each_entry_safe(req, next, &kbs_reserve.waiting, list)
		if (req->sq->s == s)
			list_move_tail(&req->list, list);
	spin_unlock_bh(&kbs_reserve.lock);
}

int kbs_reserve_init(void)
{
	spin_lock_init(&kbs_reserve.lock);
	INIT_LIST_HEAD(&kbs_reserve.waiting);
	kbs_reserve.bvec = kbs_pages_alloc(NULL, KOFIBLK_IO_MAX, NULL, &kbs_reserve.nbvec, true);
	if (!kbs_reserve.bvec)
		return -ENOMEM;
	kbs_reserve.used = kcalloc(kbs_reserve.nbvec, sizeof(*kbs_reserve.used), GFP_KERNEL);
	if (kbs_reserve.used)
		return 0;
	kbs_pages_free(NULL, kbs_reserve.bvec, kbs_reserve.nbvec, NULL);
	return -ENOMEM;
}

void kbs_reserve_exit(void)
{
	kfree(kbs_reserve.used);
	kbs_pages_free(NULL, kbs_reserve.bvec, kbs_reserve.nbvec, NULL);
}
