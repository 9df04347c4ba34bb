// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory for data: as much as a session may have, and a reserve for when there is
 * none. Whoever has to wait is in a list, and begun again. A busy session keeps some of
 * the pages that it had: kernels that clear all that they allocate take longer over that
 * than over everything else of a read.
 */
#include <linux/bvec.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include "srv.h"

#define KB_CHUNKS_BYTES	SZ_4M	/* that a session keeps */

/*
 * For the request that finds no memory: one at a time has these pages, and the
 * others wait for them. So one always goes on.
 */
static struct {
	spinlock_t		lock;		/* protects busy and waiting */
	bool			busy;
	struct list_head	waiting;	/* kb_req */
	struct bio_vec		*bvec;
	unsigned int		nbvec;
	struct bio_vec		*used;		/* what of it a request has */
} kb_reserve;

/**
 * kb_chunks_init() - begin to keep pages
 * @sq: whose requests'
 */
void kb_chunks_init(struct kb_squeue *sq)
{
	unsigned int i;

	spin_lock_init(&sq->chunks.lock);
	for (i = 0; i <= KB_CHUNK_ORDER; i++)
		INIT_LIST_HEAD(&sq->chunks.free[i]);
}

/* Return: one that was kept, or NULL. */
static struct page *kb_chunk_take(struct kb_squeue *sq, unsigned int order)
{
	struct kb_chunks *chunks;
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

/* A store on a network may have a reference still, and send them once more. */
static void kb_chunk_give(struct kb_squeue *sq, struct page *page,
			  unsigned int order)
{
	u32 bytes = PAGE_SIZE << order;
	bool keep = false;

	if (sq && page_ref_count(page) == 1) {
		spin_lock_bh(&sq->chunks.lock);
		keep = sq->chunks.bytes + bytes <=
		       KB_CHUNKS_BYTES / sq->s->nqueues;
		if (keep) {
			list_add(&page->lru, &sq->chunks.free[order]);
			sq->chunks.bytes += bytes;
		}
		spin_unlock_bh(&sq->chunks.lock);
	}
	if (!keep)
		__free_pages(page, order);
}

/**
 * kb_chunks_free() - free the pages that are kept
 * @sq: whose requests had them
 *
 * Context: Process.
 */
void kb_chunks_free(struct kb_squeue *sq)
{
	struct page *page;
	unsigned int i;

	for (i = 0; i <= KB_CHUNK_ORDER; i++)
		while ((page = kb_chunk_take(sq, i)))
			__free_pages(page, i);
}

/**
 * kb_mem_trim() - free the pages that are kept for nothing
 * @s: the session, live; called from time to time
 *
 * Context: Process.
 */
void kb_mem_trim(struct kb_session *s)
{
	struct kb_chunks *chunks;
	u16 i;

	for (i = 0; i < s->nqueues; i++) {
		chunks = &s->queues[i].chunks;
		if (!READ_ONCE(chunks->taken))
			kb_chunks_free(&s->queues[i]);
		WRITE_ONCE(chunks->taken, false);
	}
}

static void kb_pages_free(struct kb_squeue *sq, struct bio_vec *bvec,
			  unsigned int nbvec)
{
	unsigned int i;

	for (i = 0; i < nbvec; i++)
		kb_chunk_give(sq, bvec[i].bv_page, get_order(bvec[i].bv_len));
	kfree(bvec);
}

static struct page *kb_chunk_alloc(struct kb_squeue *sq, unsigned int order)
{
	struct page *page = kb_chunk_take(sq, order);

	/* Compound, as a store on a network takes references. */
	return page ?: alloc_pages(GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN |
				   __GFP_COMP, order);
}

/* Return: pieces of just so many bytes, or NULL. @sq: see kb_chunks, or NULL. */
static struct bio_vec *kb_pages_alloc(struct kb_squeue *sq, size_t bytes,
				      unsigned int *nbvec)
{
	unsigned int n = 0, order = KB_CHUNK_ORDER;
	size_t left = PAGE_ALIGN(bytes);
	struct bio_vec *bvec;
	struct page *page;

	bvec = kmalloc_array(left >> PAGE_SHIFT, sizeof(*bvec),
			     GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN);
	if (!bvec)
		return NULL;
	while (left) {
		order = min_t(unsigned int, order, ilog2(left >> PAGE_SHIFT));
		page = kb_chunk_alloc(sq, order);
		if (!page && order) {
			order--;
			continue;
		}
		if (!page) {
			kb_pages_free(sq, bvec, n);
			return NULL;
		}
		bvec_set_page(&bvec[n++], page, PAGE_SIZE << order, 0);
		left -= PAGE_SIZE << order;
	}
	/* Less than a page: it is of the same order still. */
	bvec[n - 1].bv_len -= PAGE_ALIGN(bytes) - bytes;
	*nbvec = n;
	return bvec;
}

/* Return: how many pieces of the reserve, that @req has, hold its data. */
static unsigned int kb_reserve_use(struct kb_req *req)
{
	size_t left = req->cmd.bytes;
	unsigned int n;

	for (n = 0; left; n++) {
		kb_reserve.used[n] = kb_reserve.bvec[n];
		kb_reserve.used[n].bv_len = min_t(size_t, left,
						  kb_reserve.bvec[n].bv_len);
		left -= kb_reserve.used[n].bv_len;
	}
	return n;
}

/* Return: 0, -EAGAIN if @req waits now, or -ESHUTDOWN. */
static int kb_reserve_take(struct kb_req *req)
{
	int ret = 0;

	spin_lock_bh(&kb_reserve.lock);
	/* kb_mem_waiters() has been here, or will be. */
	if (READ_ONCE(req->sq->s->state) != KB_SESSION_LIVE) {
		ret = -ESHUTDOWN;
	} else if (kb_reserve.busy) {
		ret = -EAGAIN;
		list_add_tail(&req->list, &kb_reserve.waiting);
	} else {
		req->reserved = true;
		kb_reserve.busy = true;
	}
	spin_unlock_bh(&kb_reserve.lock);
	return ret;
}

static void kb_reserve_give(struct kb_req *req)
{
	struct kb_req *next;

	req->reserved = false;
	spin_lock_bh(&kb_reserve.lock);
	next = list_first_entry_or_null(&kb_reserve.waiting, struct kb_req,
					list);
	if (next) {
		list_del(&next->list);
		next->reserved = true;
	} else {
		kb_reserve.busy = false;
	}
	spin_unlock_bh(&kb_reserve.lock);
	if (next)
		kb_req_next(next, kb_store_wq(next), kb_run_begin);
}

/* What it is charged with: of a page that it has a piece of nobody has the rest. */
static u32 kb_mem_bytes(const struct kb_req *req)
{
	return PAGE_ALIGN(req->cmd.bytes);
}

static bool kb_mem_fits(const struct kb_session *s, u32 bytes)
{
	return !s->memory || (u64)s->memory + bytes <= s->port->max_memory;
}

/* May a session have so much more? One request always may. Return: as above. */
static int kb_mem_charge(struct kb_req *req)
{
	struct kb_session *s = req->sq->s;
	u32 bytes = kb_mem_bytes(req);
	int ret = 0;

	spin_lock_bh(&s->lock);
	if (s->state != KB_SESSION_LIVE) {
		ret = -ESHUTDOWN;
	} else if (kb_mem_fits(s, bytes) &&
		   (!s->memory || list_empty(&s->mem_wait))) {
		s->memory += bytes;
		req->charged = true;
	} else {
		ret = -EAGAIN;
		s->stats.mem_waits++;
		list_add_tail(&req->list, &s->mem_wait);
	}
	spin_unlock_bh(&s->lock);
	return ret;
}

static void kb_mem_uncharge(struct kb_req *req)
{
	struct kb_session *s = req->sq->s;
	struct kb_req *next;

	spin_lock_bh(&s->lock);
	s->memory -= kb_mem_bytes(req);
	req->charged = false;
	for (;;) {
		next = list_first_entry_or_null(&s->mem_wait, struct kb_req,
						list);
		if (!next || !kb_mem_fits(s, kb_mem_bytes(next)))
			break;
		list_del(&next->list);
		s->memory += kb_mem_bytes(next);
		next->charged = true;
		kb_req_next(next, kb_store_wq(next), kb_run_begin);
	}
	spin_unlock_bh(&s->lock);
}

/**
 * kb_req_pages() - have pages for a request's data
 * @req: the request
 *
 * Context: kb_store_wq(); sleeps.
 * Return: 0 if there are; -EAGAIN if not yet: it waits, and is begun again;
 * -ESHUTDOWN if its session isn't live.
 */
int kb_req_pages(struct kb_req *req)
{
	int ret = req->charged ? 0 : kb_mem_charge(req);

	if (!ret && !req->reserved)
		req->bvec = kb_pages_alloc(req->sq, req->cmd.bytes,
					   &req->nbvec);
	if (ret || req->bvec)
		return ret;
	ret = req->reserved ? 0 : kb_reserve_take(req);
	if (ret)
		return ret;
	req->nbvec = kb_reserve_use(req);
	req->bvec = kb_reserve.used;
	return 0;
}

/**
 * kb_req_free_pages() - undo kb_req_pages(), if that was done
 * @req: the request
 *
 * Context: Any but hard IRQ.
 */
void kb_req_free_pages(struct kb_req *req)
{
	if (req->reserved)
		kb_reserve_give(req);
	else if (req->bvec && req->bvec != &req->inline_bvec)
		kb_pages_free(req->sq, req->bvec, req->nbvec);
	req->bvec = NULL;
	if (req->charged)
		kb_mem_uncharge(req);
}

/**
 * kb_mem_waiters() - take a session's requests that wait for memory out of there
 * @s: the session
 * @list: takes them; kb_req_free_pages() is due for each
 *
 * Context: Any but hard IRQ.
 */
void kb_mem_waiters(struct kb_session *s, struct list_head *list)
{
	struct kb_req *req, *next;

	spin_lock_bh(&s->lock);
	list_splice_tail_init(&s->mem_wait, list);
	spin_unlock_bh(&s->lock);
	spin_lock_bh(&kb_reserve.lock);
	list_for_each_entry_safe(req, next, &kb_reserve.waiting, list)
		if (req->sq->s == s)
			list_move_tail(&req->list, list);
	spin_unlock_bh(&kb_reserve.lock);
}

/**
 * kb_reserve_init() - set pages aside
 *
 * Return: 0 or -ENOMEM.
 */
int kb_reserve_init(void)
{
	spin_lock_init(&kb_reserve.lock);
	INIT_LIST_HEAD(&kb_reserve.waiting);
	kb_reserve.bvec = kb_pages_alloc(NULL, KB_IO_MAX,
					 &kb_reserve.nbvec);
	if (!kb_reserve.bvec)
		return -ENOMEM;
	kb_reserve.used = kcalloc(kb_reserve.nbvec, sizeof(*kb_reserve.used),
				  GFP_KERNEL);
	if (kb_reserve.used)
		return 0;
	kb_pages_free(NULL, kb_reserve.bvec, kb_reserve.nbvec);
	return -ENOMEM;
}

/**
 * kb_reserve_exit() - undo kb_reserve_init()
 */
void kb_reserve_exit(void)
{
	kfree(kb_reserve.used);
	kb_pages_free(NULL, kb_reserve.bvec, kb_reserve.nbvec);
}
