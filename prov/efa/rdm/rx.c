// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive slots and kept packets. The device acknowledges each packet that it receives: the sender
 * won't repeat it, and later messages wait for it. So the only way to refuse a packet is to post
 * no receive, which the sender's device reports. A short packet is kept as a copy, if there is
 * memory, and its buffer is posted again; a longer one is kept in its buffer.
 *
 * Unexpected packets wait for the ULP, and early ones for a packet that is late. Each have a
 * budget. If one is used up, only KEFA_RX_LEAST receives are posted. When packets that are kept
 * have taken these, too, there is one receive at a time while early packets are kept, as the packet
 * for which they wait must arrive. Later, and while the ULP waits for answers, one is posted from
 * time to time, until join.c declares the peer dead that keeps most.
 */
#include <linux/slab.h>
#include "../dma.h"
#include "../trace.h"
#include "local.h"
#include "rdm.h"

/* --- memory --- */

static void kefa_chunk_free(struct kefa_rdm *rdm, struct kefa_chunk *chunk, bool reaches)
{
	kefa_dma_unmap(rdm->ep.dma, chunk->dma, chunk->bytes, DMA_FROM_DEVICE);
	if (!reaches)
		free_pages_exact(chunk->mem, chunk->bytes);
	kfree(chunk);
}

static struct kefa_chunk *kefa_chunk_new(struct kefa_rdm *rdm, size_t bytes, gfp_t gfp)
{
	const u32 n = bytes / rdm->stride;
	struct kefa_chunk *chunk;

	chunk = kzalloc(struct_size(chunk, rs, n), gfp);
	if (!chunk)
		return NULL;
	chunk->bytes = bytes;
	chunk->mem = alloc_pages_exact(bytes, gfp);
	if (!chunk->mem)
		goto err_chunk;
	chunk->dma = kefa_dma_map(rdm->ep.dma, virt_to_phys(chunk->mem), bytes,
				  DMA_FROM_DEVICE);
	if (dma_mapping_error(rdm->ep.dma, chunk->dma))
		goto err_mem;
	return chunk;

err_mem:
	free_pages_exact(chunk->mem, bytes);
err_chunk:
	kfree(chunk);
	return NULL;
}

static void kefa_chunk_add(struct kefa_rdm *rdm, struct kefa_chunk *chunk)
{
	const u32 n = chunk->bytes / rdm->stride;
	struct kefa_rs *rs;
	u32 i;

	list_add_tail(&chunk->list, &rdm->chunks);
	for (i = 0; i < n && rdm->nrs < rdm->rs_max; i++) {
		rs = &chunk->rs[i];
		rs->held.buf = chunk->mem + i * rdm->stride;
		rs->dma = chunk->dma + i * rdm->stride;
		rs->id = KEFA_RS_ID | rdm->nrs;
		rdm->rs[rdm->nrs++] = rs;
		list_add_tail(&rs->list, &rdm->rs_free);
	}
}

static bool kefa_rx_more(struct kefa_rdm *rdm, gfp_t gfp)
{
	const size_t least = PAGE_ALIGN(rdm->stride);
	struct kefa_chunk *chunk;

	if (rdm->nrs >= rdm->rs_max)
		return false;
	chunk = kefa_chunk_new(rdm, max_t(size_t, KEFA_CHUNK_BYTES, least), gfp);
	if (!chunk && least < KEFA_CHUNK_BYTES)
		chunk = kefa_chunk_new(rdm, least, gfp);
	if (chunk)
		kefa_chunk_add(rdm, chunk);
	return chunk;
}

/**
 * kefa_rx_init() - allocate the first receive slots
 * @rdm: the endpoint, about to be enabled
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENOMEM. The caller calls kefa_rx_end() and kefa_rx_fini() even after an error.
 */
int kefa_rx_init(struct kefa_rdm *rdm)
{
	rdm->stride = ALIGN(rdm->ep.dom->dev->mtu, 64);
	rdm->target = min_t(u32, KEFA_RX_FIRST, rdm->depth);
	rdm->fair.pace = DIV_ROUND_UP(KEFA_SHUT_MS, rdm->depth);
	/* Enough for kept packets that use up both budgets, and for receives that remain. */
	rdm->rs_max = 2 * (rdm->budget / rdm->stride + rdm->depth + KEFA_RX_LEAST);
	rdm->rs = kvcalloc(rdm->rs_max, sizeof(*rdm->rs), GFP_KERNEL);
	if (!rdm->rs)
		return -ENOMEM;
	while (rdm->nrs < rdm->target)
		if (!kefa_rx_more(rdm, GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY))
			return -ENOMEM;
	return 0;
}

/**
 * kefa_rx_end() - free receive buffers
 * @rdm: the endpoint, without a queue pair
 * @reaches: the device may still write to the buffers, so they are leaked
 *
 * Context: Process context.
 */
void kefa_rx_end(struct kefa_rdm *rdm, bool reaches)
{
	struct kefa_chunk *chunk, *next;

	INIT_LIST_HEAD(&rdm->rs_free);
	list_for_each_entry_safe(chunk, next, &rdm->chunks, list)
		kefa_chunk_free(rdm, chunk, reaches);
	INIT_LIST_HEAD(&rdm->chunks);
	rdm->nrs = 0;
	rdm->nposted = 0;
}

/**
 * kefa_rx_fini() - undo kefa_rx_init()
 * @rdm: the endpoint, after kefa_rx_end()
 *
 * Context: Process context.
 */
void kefa_rx_fini(struct kefa_rdm *rdm)
{
	kvfree(rdm->rs);
	rdm->rs = NULL;
}

/* --- slots --- */

/**
 * kefa_rs_found() - find the receive slot of a completion
 * @rdm: the endpoint
 * @id: id of the work request
 *
 * Context: Under kefa_ep.lock.
 * Return: the slot, which isn't posted any more; or NULL if no posted receive has the id.
 */
struct kefa_rs *kefa_rs_found(struct kefa_rdm *rdm, u64 id)
{
	const u32 n = lower_32_bits(id) & ~KEFA_RS_ID;
	struct kefa_rs *rs = n < rdm->nrs ? rdm->rs[n] : NULL;

	lockdep_assert_held(&rdm->ep.lock);
	if (!rs || rs->id != id || rs->state != KEFA_RS_POSTED)
		return NULL;
	kefa_rs_take(rdm, rs);
	return rs;
}

/**
 * kefa_rs_put() - free a receive slot
 * @rdm: the endpoint
 * @rs: the slot, whose packet isn't needed any more
 *
 * Context: Under kefa_ep.lock. kefa_rx_refill() is due.
 */
void kefa_rs_put(struct kefa_rdm *rdm, struct kefa_rs *rs)
{
	lockdep_assert_held(&rdm->ep.lock);
	rs->state = KEFA_RS_FREE;
	rs->held.cost = 0;
	rs->held.local = false;
	rs->id += KEFA_OP_USE;
	list_add(&rs->list, &rdm->rs_free);
}

static void kefa_rs_post(struct kefa_rdm *rdm, struct kefa_rs *rs)
{
	list_del_init(&rs->list);
	kefa_rs_hold(rdm, rs);
}

/**
 * kefa_rx_give() - post the receives that are held
 * @rdm: the endpoint, with a queue pair
 *
 * Receives that the device refuses are freed, so the next refill tries again. All are freed if the
 * endpoint isn't enabled any more.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rx_give(struct kefa_rdm *rdm)
{
	struct kefa_ep *ep = &rdm->ep;
	const unsigned int n = ep->nrecvs;
	unsigned int i = 0;

	lockdep_assert_held(&ep->lock);
	ep->nrecvs = 0;
	if (likely(ep->state == KEFA_EP_ENABLED)) {
		if (likely(!kefa_hw_post_recv(&ep->hq, ep->recvs, n)))
			return;
		i = ep->hq.bad;
	}
	for (; i < n; i++)
		kefa_rs_put(rdm, kefa_rs_found(rdm, ep->recvs[i].wr.wr_id));
}

static struct kefa_rs *kefa_rs_free(struct kefa_rdm *rdm)
{
	if (list_empty(&rdm->rs_free) && !kefa_rx_more(rdm, GFP_NOWAIT | __GFP_NOWARN))
		return NULL;
	return list_first_entry_or_null(&rdm->rs_free, struct kefa_rs, list);
}

/**
 * kefa_rs_spare() - take a receive slot for a packet that the device doesn't receive
 * @rdm: the endpoint, enabled
 *
 * Context: Under kefa_ep.lock.
 * Return: the slot, in no list, for kefa_rs_put(); or NULL without memory.
 */
struct kefa_rs *kefa_rs_spare(struct kefa_rdm *rdm)
{
	struct kefa_rs *rs = kefa_rs_free(rdm);

	lockdep_assert_held(&rdm->ep.lock);
	if (!rs)
		return NULL;
	list_del_init(&rs->list);
	rs->state = KEFA_RS_TAKEN;
	return rs;
}

/**
 * kefa_rx_most() - get the limit of the memory of early packets, and of unexpected ones
 * @rdm: the endpoint
 *
 * Context: Under kefa_ep.lock.
 * Return: number of bytes, for which there are receive slots. It is exceeded by the few receives
 * that are posted until a peer is declared dead.
 */
u64 kefa_rx_most(const struct kefa_rdm *rdm)
{
	return rdm->budget + (u64)rdm->depth * rdm->stride;
}

/*
 * Return: the number of receives to have posted while @kept bytes of a budget are used. All their
 * packets may have to be kept, so the budget limits the number, but not below KEFA_RX_LEAST. Each
 * packet that is kept beyond the budget reduces these.
 */
static u32 kefa_rx_room(const struct kefa_rdm *rdm, u64 kept)
{
	u64 over, room;

	if (kept < rdm->budget / 2)
		return rdm->target;
	if (kept < rdm->budget) {
		room = div_u64(rdm->budget - kept, rdm->stride);
		return min_t(u64, max_t(u64, room, KEFA_RX_LEAST), rdm->target);
	}
	over = div_u64(kept - rdm->budget, rdm->stride);
	return over < KEFA_RX_LEAST ? min_t(u32, KEFA_RX_LEAST - over, rdm->target) : 0;
}

/*
 * A budget is used up. Return: whether a receive is posted nevertheless, for a packet that early
 * ones or operations wait for. It may be taken by another one, so there is one from time to time.
 */
static bool kefa_rx_one(struct kefa_rdm *rdm)
{
	struct kefa_fair *fair = &rdm->fair;
	const ktime_t now = ktime_get();

	fair->tick = true;
	if (ktime_before(now, fair->next))
		return false;
	fair->next = ktime_add_ms(now, fair->pace);
	fair->tick = fair->early || kefa_rdm_awaits(rdm);
	return fair->tick;
}

/* Return: the number of receives to have posted within the budgets; 0 if one is used up. */
static u32 kefa_rx_within(const struct kefa_rdm *rdm)
{
	u32 n, early;

	if (likely(rdm->kept < rdm->budget / 2))
		return rdm->target;
	n = kefa_rx_room(rdm, rdm->kept - rdm->fair.early);
	early = kefa_rx_room(rdm, rdm->fair.early);
	if (n && !early && rdm->fair.early < kefa_rx_most(rdm))
		return 1;
	return min(n, early);
}

static u32 kefa_rx_target(struct kefa_rdm *rdm)
{
	struct kefa_fair *fair = &rdm->fair;

	fair->tick = false;
	if (fair->early < rdm->budget)
		fair->since = 0;
	return kefa_rx_within(rdm) ?: kefa_rx_one(rdm);
}

/**
 * kefa_rx_admits() - get the number of requests of local peers that may be handled now
 * @rdm: the endpoint, enabled
 * @next: with a budget used up, time from which on another one is admitted
 *
 * They use no receives, so their number is that of the receives that would be posted. With a budget
 * used up, the pace is the same, too, but the receives of the device aren't taken into account:
 * they may wait for other peers.
 *
 * Context: Under kefa_ep.lock.
 * Return: the number.
 */
u32 kefa_rx_admits(struct kefa_rdm *rdm, ktime_t *next)
{
	const u32 n = kefa_rx_within(rdm);
	ktime_t now;

	lockdep_assert_held(&rdm->ep.lock);
	if (likely(n))
		return n;
	now = ktime_get();
	if (ktime_before(now, *next))
		return 0;
	*next = ktime_add_ms(now, rdm->fair.pace);
	return rdm->fair.early || kefa_rdm_awaits(rdm);
}

/* Have the worker try again, as no completion may come that would have receives posted. */
static void kefa_rx_retry(struct kefa_rdm *rdm, u32 target)
{
	if (rdm->nposted < min_t(u32, target, KEFA_RX_LEAST) && rdm->nrs < rdm->rs_max)
		queue_delayed_work(kefa_wq, &rdm->ep.map_retry,
				   msecs_to_jiffies(KEFA_MAP_RETRY_MS));
}

/**
 * kefa_rx_refill() - post as many receives as the endpoint should have
 * @rdm: the endpoint, enabled
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rx_refill(struct kefa_rdm *rdm)
{
	const u32 target = kefa_rx_target(rdm);
	struct kefa_rs *rs;

	lockdep_assert_held(&rdm->ep.lock);
	rdm->stats.full += target < rdm->target;
	rdm->shut = target < rdm->target;
	rdm->waits |= rdm->shut;
	while (rdm->nposted < target) {
		rs = kefa_rs_free(rdm);
		if (!rs)
			break;
		kefa_rs_post(rdm, rs);
		if (rdm->ep.nrecvs < KEFA_RECVS_MAX)
			continue;
		kefa_rx_give(rdm);
		/* The device has refused receives; the next refill tries again. */
		if (rs->state != KEFA_RS_POSTED)
			break;
	}
	if (rdm->ep.nrecvs)
		kefa_rx_give(rdm);
	if (unlikely(rdm->nposted < target))
		kefa_rx_retry(rdm, target);
	rdm->stats.shut += !rdm->nposted;
}

/**
 * kefa_rx_grow() - double the number of receives to have posted
 * @rdm: the endpoint, half of whose receives were used by a burst
 *
 * Context: Under kefa_ep.lock. kefa_rx_refill() is due.
 */
void kefa_rx_grow(struct kefa_rdm *rdm)
{
	lockdep_assert_held(&rdm->ep.lock);
	rdm->target = min(2 * rdm->target, rdm->depth);
}

/* --- kept packets --- */

/**
 * kefa_rdm_drop() - count a packet that is dropped
 * @rdm: the endpoint
 * @peer: sender of the packet, or NULL if it is unknown
 * @why: enum kefa_drop
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdm_drop(struct kefa_rdm *rdm, struct kefa_rpeer *peer, enum kefa_drop why)
{
	lockdep_assert_held(&rdm->ep.lock);
	rdm->stats.dropped[why]++;
	trace_kefa_drop(&rdm->ep, peer ? peer->id : U32_MAX, why);
}

static u32 kefa_copy_cost(const struct kefa_held *held)
{
	return kmalloc_size_roundup(sizeof(*held) + held->len);
}

static struct kefa_held *kefa_held_copy(const struct kefa_rdm *rdm, const struct kefa_held *held)
{
	struct kefa_held *copy;

	copy = kmalloc(sizeof(*copy) + held->len, GFP_NOWAIT | __GFP_NOWARN);
	if (!copy)
		return NULL;
	copy->buf = copy + 1;
	copy->len = held->len;
	copy->src_qpn = held->src_qpn;
	copy->slid = held->slid;
	copy->copied = true;
	copy->local = held->local;
	if (unlikely(held->where == KEFA_HELD_LOCAL))
		kefa_local_gather(rdm, held, copy->buf);
	else
		memcpy(copy->buf, held->buf, held->len);
	return copy;
}

/**
 * kefa_keep_packet() - keep a packet
 * @rdm: the endpoint
 * @held: the packet, in a receive slot or a local peer's memory; or kept before, and in no list
 * @peer: sender of the packet, or NULL if it isn't known yet
 *
 * Context: Under kefa_ep.lock.
 * Return: the kept packet, in no list: @held, or a copy of @held, which isn't needed any more then.
 * The packet of a local peer is always copied.
 */
struct kefa_held *kefa_keep_packet(struct kefa_rdm *rdm, struct kefa_held *held,
				   struct kefa_rpeer *peer)
{
	struct kefa_held *kept = held->cost ? held : NULL;

	lockdep_assert_held(&rdm->ep.lock);
	if (!kept && held->len <= KEFA_KEEP_COPY)
		kept = kefa_held_copy(rdm, held);
	if (!kept) {
		kept = unlikely(held->where == KEFA_HELD_LOCAL) ? kefa_local_keep(rdm, held) :
								  held;
		kept->copied = false;
	}
	if (!held->cost) {
		kept->cost = kept->copied ? kefa_copy_cost(held) : rdm->stride;
		kept->peer = NULL;
		rdm->kept += kept->cost;
	}
	if (peer && !kept->peer) {
		kept->peer = peer;
		peer->kept += kept->cost;
	}
	kept->where = KEFA_HELD_NOT;
	INIT_HLIST_NODE(&kept->node.node);
	INIT_LIST_HEAD(&kept->link);
	return kept;
}

/**
 * kefa_held_free() - free a kept packet
 * @rdm: the endpoint
 * @held: the packet, in no list
 *
 * Context: Under kefa_ep.lock. kefa_rx_refill() is due.
 */
void kefa_held_free(struct kefa_rdm *rdm, struct kefa_held *held)
{
	lockdep_assert_held(&rdm->ep.lock);
	rdm->kept -= held->cost;
	if (held->peer)
		held->peer->kept -= held->cost;
	if (held->copied)
		kfree(held);
	else
		kefa_rs_put(rdm, kefa_held_rs(held));
}
