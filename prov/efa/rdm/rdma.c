// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reads and writes of peers' memory by the device, if both ends' devices can do that. One work
 * request transfers one piece of local memory to or from one piece of the peer's, so an operation
 * has as many as its pieces need; those that don't fit into the queue wait in kefa_rdm.reading. A
 * peer isn't told of the operation, unless it is a write with data that fits into one work request:
 * the device then completes a receive of the peer (WRITE_IMM).
 */
#include "../dma.h"
#include "rdm.h"
#include "tx.h"

/* Get the address and key of the peer's byte at @off, and the bytes that follow in that piece. */
static void kefa_rdma_there(const struct kefa_rop *rop, u64 off, u64 *addr, u64 *len, u32 *key)
{
	const struct fi_rma_iov *iov = rop->far.list;

	if (rop->far.n == 1) {
		*addr = rop->far.addr + off;
		*len = rop->total - off;
		*key = rop->far.key;
		return;
	}
	/* If all pieces are empty, any of them will do. */
	for (; rop->total && off >= iov->len; iov++)
		off -= iov->len;
	*addr = iov->addr + off;
	*len = iov->len - off;
	*key = iov->key;
}

/* Find the first contiguous piece of the ULP's memory at @off. Return: 0, or as kefa_runs(). */
static int kefa_rdma_here(struct kefa_rdm *rdm, const struct kefa_rop *rop, u64 off, u64 len,
			  struct kefa_run *run)
{
	const unsigned int dir = rop->cq_flags & FI_READ ? ITER_DEST : ITER_SOURCE;
	struct iov_iter iter;
	struct kvec kvec;
	int n;

	kefa_rop_iter(rop, dir, off, len, &iter, &kvec);
	n = kefa_runs(&rdm->ep, &iter, run, 1);
	return n == 1 || n == -EMSGSIZE ? 0 : n;
}

/* Return: whether one work request can write the operation's memory. */
static bool kefa_rdma_one_piece(struct kefa_rdm *rdm, const struct kefa_rop *rop)
{
	struct kefa_run run;

	if (rop->far.n != 1 || rop->total > rdm->lim.read_segment)
		return false;
	return !rop->total || (!kefa_rdma_here(rdm, rop, 0, rop->total, &run) &&
			       run.len == rop->total);
}

/* Return: whether the peer's device knows all keys. It has none for some memory of libfabric. */
static bool kefa_rdma_keys(const struct kefa_rop *rop)
{
	u32 i;

	if (likely(rop->far.n == 1))
		return rop->far.key <= U32_MAX;
	for (i = 0; i < rop->far.n; i++)
		if (rop->far.list[i].key > U32_MAX)
			return false;
	return true;
}

/**
 * kefa_rdma_may() - check whether the device can carry out a read or write
 * @rdm: the endpoint
 * @rop: the operation, in KEFA_ROP_WAIT
 * @keep: the data doesn't change until the completion
 *
 * Data that goes with a write is in the work request, which has room for 32 bits. It tells the peer
 * that the data has arrived, so there must be no other work request. Injected data is copied, which
 * packets can do as well. Keys that are longer than a device's are for packets.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it can.
 */
bool kefa_rdma_may(struct kefa_rdm *rdm, const struct kefa_rop *rop, bool keep)
{
	const bool data = rop->cq_flags & FI_REMOTE_CQ_DATA;

	if (!kefa_rdma_keys(rop))
		return false;
	if (rop->cq_flags & FI_READ)
		return kefa_shake_reads(&rdm->self, rop->peer);
	if (!keep || !kefa_shake_writes(&rdm->self, rop->peer, data))
		return false;
	return !data || (rop->data <= U32_MAX && kefa_rdma_one_piece(rdm, rop));
}

/**
 * kefa_rdma_wr() - fill in a work request for a read or write
 * @rdm: the endpoint
 * @ts: slot of the work request, with the ULP's memory
 * @wr: the work request
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdma_wr(struct kefa_rdm *rdm, const struct kefa_ts *ts, struct kefa_wr *wr)
{
	struct kefa_rpeer *peer = ts->peer;

	kefa_wr_rdma(wr, ts->id, ts->what == KEFA_TS_WRITE, peer->ah->ah, kefa_rpeer_qpn(peer),
		     kefa_rpeer_connid(peer), ts->raddr, ts->rkey);
	if (ts->has_imm)
		kefa_wr_imm(wr, ts->imm);
	if (ts->seg.len)
		kefa_wr_sge(wr, ts->seg.dma, ts->seg.len);
	else
		kefa_wr_sge(wr, rdm->ep.dom->nothing_dma, 0);
}

/*
 * Map the next part of the ULP's memory into a slot. Return: 0, -EAGAIN without DMA space, or
 * another negative errno for memory that the device can't reach.
 */
static int kefa_rdma_map(struct kefa_rdm *rdm, const struct kefa_rop *rop, struct kefa_ts *ts)
{
	const bool read = ts->what == KEFA_TS_READ;
	struct kefa_run run;
	u64 len;
	int ret;

	kefa_rdma_there(rop, rop->sent, &ts->raddr, &len, &ts->rkey);
	if (!rop->total)
		return 0;
	ret = kefa_rdma_here(rdm, rop, rop->sent, len, &run);
	if (unlikely(ret))
		return ret;
	len = min3(len, (u64)run.len, (u64)rdm->lim.read_segment);
	if (kefa_seg_map(&rdm->ep, &ts->seg, page_to_phys(run.page) + run.off, len,
			 read ? DMA_FROM_DEVICE : DMA_TO_DEVICE))
		return 0;
	ts->seg.len = 0;
	rdm->ep.stats.map_failed++;
	return -EAGAIN;
}

/* Fail an operation of which the device has a part, or had one. */
static void kefa_rdma_fail(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 status)
{
	list_del_init(&rop->link);
	if (rop->state != KEFA_ROP_DYING)
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_DYING);
	kefa_rdm_end_tx(rdm, rop, err, status);
}

/*
 * Return: whether another part may be posted. The first ones are a request, whose turn it is; the
 * others leave slots to requests.
 */
static bool kefa_rdma_may_post(const struct kefa_rdm *rdm, const struct kefa_rop *rop)
{
	if (rop->wrs >= KEFA_READS_MAX)
		return false;
	return rop->state == KEFA_ROP_WAIT ? kefa_tx_room(rdm, rop->peer) :
					     kefa_may_stream(rdm, rop->peer);
}

/**
 * kefa_rdma_one() - post the next part of a read or write
 * @rdm: the endpoint, enabled, with room for a work request before the doorbell
 * @rop: the operation, in KEFA_ROP_RDMA, or about to enter that; after its last part it is in
 *	KEFA_ROP_POSTED and in no list. If its memory can't be reached, it has failed, and may be
 *	free
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: false if it has to wait for other completions, or for memory.
 */
bool kefa_rdma_one(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_ts *ts;
	int ret;

	if (!kefa_rdma_may_post(rdm, rop))
		return false;
	ts = kefa_ts_take(rdm, rop->peer, false);
	if (!ts)
		return false;
	ts->what = rop->cq_flags & FI_READ ? KEFA_TS_READ : KEFA_TS_WRITE;
	ret = kefa_rdma_map(rdm, rop, ts);
	if (unlikely(ret)) {
		kefa_ts_free(rdm, ts);
		if (ret == -EAGAIN)
			return false;
		kefa_rdma_fail(rdm, rop, -ret, 0);
		return true;
	}
	ts->has_imm = rop->cq_flags & FI_REMOTE_CQ_DATA;
	ts->imm = rop->data;
	ts->rop = rop;
	rop->wrs++;
	rop->sent += ts->seg.len;
	if (ts->what == KEFA_TS_READ)
		rdm->stats.reads++;
	else
		rdm->stats.writes++;
	kefa_ts_post(rdm, ts);
	if (rop->sent == rop->total) {
		list_del_init(&rop->link);
		kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_POSTED);
	}
	return true;
}

/**
 * kefa_rdma_send() - begin a read or write by the device
 * @rdm: the endpoint, enabled
 * @rop: the operation, in KEFA_ROP_WAIT
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: 0, -EAGAIN if not even one part could be posted, or another negative errno for memory
 * that the device can't reach.
 */
int kefa_rdma_send(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_run run;
	unsigned int n;
	int ret = 0;

	/* Later pieces are checked when it's their turn. */
	if (rop->total)
		ret = kefa_rdma_here(rdm, rop, 0, rop->total, &run);
	if (unlikely(ret))
		return ret;
	for (n = 0; n < KEFA_TURN && rop->state == KEFA_ROP_WAIT; n++) {
		kefa_tx_ready(rdm, 1);
		if (kefa_rpeer_dead(rop->peer) || !kefa_rdma_one(rdm, rop))
			break;
	}
	if (!rop->wrs)
		return -EAGAIN;
	if (rop->state != KEFA_ROP_WAIT)
		return 0;
	/* The completions of these parts have the pump post others. */
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_RDMA);
	list_add_tail(&rop->link, &rdm->reading);
	rdm->waits = true;
	return 0;
}

/**
 * kefa_rdma_done() - handle the completion of a part of a read or write
 * @rdm: the endpoint
 * @rop: the operation
 * @len: length of the part in bytes
 * @err: positive errno, or 0
 * @status: the completion's vendor status
 *
 * An operation that fails completes when the device has none of its other parts any more.
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_rdma_done(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err, u32 status)
{
	if (err) {
		if (kefa_read_fatal(err))
			kefa_rdm_kill(rdm, rop->peer, err, status);
		kefa_rdma_fail(rdm, rop, err, status);
		return;
	}
	if (rop->cq_flags & FI_READ)
		rdm->ep.stats.rx_bytes += len;
	if (rop->state == KEFA_ROP_POSTED && rop->wrs == 1)
		rop->flags |= KEFA_ROP_OVER;
}
