// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Long read: the request says where the message is, and the receiver reads it by RDMA and sends an
 * EOR. In a runt read the first bytes of the message come with the requests, and the receiver
 * reads the rest. A receiver that can't read sends a READ_NACK; the sender then repeats its request
 * as one for long-CTS with the same message number.
 *
 * A receive doesn't complete while reads of it are outstanding, because they write to the ULP's
 * memory.
 */
#include "../dma.h"
#include "rdm.h"
#include "tx.h"

/* --- receiver --- */

/* Bytes to read: no more than the buffer holds. */
static u64 kefa_read_wanted(const struct kefa_rop *rop)
{
	return rop->state == KEFA_ROP_SINK ? 0 : min(rop->total, rop->buf.len);
}

/**
 * kefa_may_read() - check whether the endpoint may read from a peer
 * @rdm: the endpoint
 * @peer: the peer
 *
 * A message from a peer without READ_NACK can be received only by reading it. So it is read if the
 * device can, even if FI_OPT_EFA_USE_DEVICE_RDMA is off.
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it may.
 */
bool kefa_may_read(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	if (likely(rdm->self.features & KEFA_FEATURE_RDMA_READ))
		return true;
	return rdm->ep.dom->dev->rdma_read &&
	       !(kefa_shake_can(&rdm->self, peer) & KEFA_FEATURE_READ_NACK);
}

/**
 * kefa_rop_unhold() - release the request packet of a receive, if it keeps one
 * @rdm: the endpoint
 * @rop: the receive; of a send nothing is released
 *
 * Context: Under kefa_ep.lock. kefa_rx_refill() is due.
 */
void kefa_rop_unhold(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	struct kefa_held *held = rop->held;

	if (rop->flags & KEFA_ROP_TX || !held)
		return;
	rop->held = NULL;
	kefa_held_free(rdm, held);
}

/*
 * No read of @rop is outstanding, so send a READ_NACK. A peer without that feature can't send the
 * message in another way and is given up. The message may have overtaken its sender's HANDSHAKE:
 * then kefa_read_shaken() continues.
 */
static void kefa_read_refuse(struct kefa_rdm *rdm, struct kefa_rop *rop, int err, u32 status)
{
	struct kefa_rpeer *peer = rop->peer;

	if (!(peer->flags & KEFA_RPEER_SHAKEN) && !rdm->self.homogeneous)
		return;
	if (!(kefa_shake_can(&rdm->self, peer) & KEFA_FEATURE_READ_NACK)) {
		kefa_rdm_kill(rdm, peer, err, status);
		return;
	}
	kefa_index_add(&rdm->msgs, &rop->msg, kefa_rop_key(peer->id, rop->msg_id));
	kefa_rdm_owe(rdm, rop, KEFA_ROP_OWES_NACK);
}

/**
 * kefa_read_shaken() - send the READ_NACKs that waited for a peer's features
 * @rdm: the endpoint
 * @peer: the peer, whose HANDSHAKE has arrived
 *
 * Context: Under kefa_ep.lock. The pump is due.
 */
void kefa_read_shaken(struct kefa_rdm *rdm, struct kefa_rpeer *peer)
{
	struct kefa_rop *rop;
	u32 i;

	lockdep_assert_held(&rdm->ep.lock);
	for (i = 0; rdm->stats.unread && i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		if (rop->state != KEFA_ROP_NACKED || rop->peer != peer || rop->wrs ||
		    !hlist_unhashed(&rop->msg.node))
			continue;
		if (rop->more & KEFA_ROP_TARGET)
			kefa_target_refuse(rdm, rop);
		else
			kefa_read_refuse(rdm, rop, EOPNOTSUPP, 0);
	}
}

/* The message can't be read. @left is the number of outstanding reads. */
static void kefa_read_fail(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 left, int err,
			   u32 status)
{
	list_del_init(&rop->link);
	kefa_rop_unhold(rdm, rop);
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_NACKED);
	kefa_rop_wait(rdm, rop);
	rdm->stats.unread++;
	if (!left)
		kefa_read_refuse(rdm, rop, err, status);
}

/**
 * kefa_rop_read() - start reading the part of a message that didn't come with its requests
 * @rdm: the endpoint
 * @rop: the receive, with a request that has the peer's addresses
 *
 * Context: Under kefa_ep.lock. The pump is due.
 */
void kefa_rop_read(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	kefa_rop_waited(rdm, rop);
	kefa_index_del(&rdm->msgs, &rop->msg);
	rop->sent = rop->runt;
	rop->done = rop->runt;
	if (rop->sent >= kefa_read_wanted(rop)) {
		kefa_rop_unhold(rdm, rop);
		kefa_rop_whole(rdm, rop);
		return;
	}
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_READING);
	if (!kefa_may_read(rdm, rop->peer)) {
		kefa_read_fail(rdm, rop, 0, EOPNOTSUPP, 0);
		return;
	}
	list_add_tail(&rop->link, &rdm->reading);
	rdm->waits = true;
}

/**
 * kefa_read_fatal() - check whether an error of a read or write means that the peer is lost
 * @err: positive errno, or 0
 *
 * Context: Any.
 * Return: whether it does; if not, the peer's device has refused this access.
 */
bool kefa_read_fatal(int err)
{
	return err && err != EACCES && err != EOPNOTSUPP;
}

/**
 * kefa_read_done() - handle the completion of a read
 * @rdm: the endpoint
 * @rop: the receive, or a read of the ULP
 * @len: length of the read in bytes
 * @err: positive errno, or 0
 * @status: the completion's vendor status
 *
 * Context: Under kefa_ep.lock.
 */
void kefa_read_done(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err, u32 status)
{
	if (rop->more & KEFA_ROP_FAR) {
		kefa_rdma_done(rdm, rop, len, err, status);
		return;
	}
	if (kefa_read_fatal(err)) {
		kefa_rdm_kill(rdm, rop->peer, err, status);
		return;
	}
	if (rop->state == KEFA_ROP_NACKED && rop->wrs == 1) {
		if (rop->err)
			kefa_rdm_abandoned(rdm, rop);
		kefa_read_refuse(rdm, rop, err ?: EIO, status);
		return;
	}
	if (rop->state == KEFA_ROP_SINK && rop->wrs == 1) {
		kefa_rdm_abandoned(rdm, rop);
		kefa_rop_whole(rdm, rop);
		return;
	}
	if (rop->state != KEFA_ROP_READING)
		return;
	if (err) {
		kefa_read_fail(rdm, rop, rop->wrs - 1, err, status);
		return;
	}
	rop->done += len;
	rdm->ep.stats.rx_bytes += len;
	if (rop->done < kefa_read_wanted(rop))
		return;
	kefa_rop_unhold(rdm, rop);
	kefa_rop_whole(rdm, rop);
}

/*
 * Find the peer's address and key of the byte at @off, and the bytes that follow in the same piece.
 * Return: false if the request doesn't cover @off, or if its key isn't valid.
 */
static bool kefa_read_there(const struct kefa_pkt *pkt, u64 off, u64 *addr, u64 *len, u32 *key)
{
	const struct kefa_rma_iov *iov = pkt->read_iov;
	u32 i;

	for (i = 0; i < pkt->read_iov_count; i++, iov++) {
		*len = le64_to_cpu(iov->len);
		if (off < *len) {
			*addr = le64_to_cpu(iov->addr) + off;
			*len -= off;
			*key = lower_32_bits(le64_to_cpu(iov->key));
			return !upper_32_bits(le64_to_cpu(iov->key));
		}
		off -= *len;
	}
	return false;
}

/* Find the first contiguous piece of the ULP's memory at @off. */
static bool kefa_read_here(struct kefa_rdm *rdm, const struct kefa_rop *rop, u64 off, u64 len,
			   struct kefa_run *run)
{
	struct iov_iter iter;
	struct kvec kvec;
	int n;

	kefa_rop_iter(rop, ITER_DEST, off, len, &iter, &kvec);
	n = kefa_runs(&rdm->ep, &iter, run, 1);
	return n == 1 || n == -EMSGSIZE;
}

static bool kefa_read_post(struct kefa_rdm *rdm, struct kefa_rop *rop, u64 addr, u32 key,
			   const struct kefa_run *run, u32 len)
{
	struct kefa_rpeer *peer = rop->peer;
	struct kefa_ts *ts = kefa_ts_take(rdm, peer, false);
	struct kefa_wr *wr;

	if (!ts)
		return false;
	ts->what = KEFA_TS_READ;
	if (!kefa_seg_map(&rdm->ep, &ts->seg, page_to_phys(run->page) + run->off, len,
			  DMA_FROM_DEVICE)) {
		ts->seg.len = 0;
		kefa_ts_free(rdm, ts);
		rdm->ep.stats.map_failed++;
		return false;
	}
	ts->rop = rop;
	rop->wrs++;
	rop->sent += len;
	rdm->stats.reads++;
	wr = kefa_ts_hold(rdm, ts);
	kefa_wr_rdma(wr, ts->id, false, peer->ah->ah, kefa_rpeer_qpn(peer),
		     kefa_rpeer_connid(peer), addr, key);
	kefa_wr_sge(wr, ts->seg.dma, len);
	return true;
}

/**
 * kefa_read_one() - post a read, or a part of the ULP's write
 * @rdm: the endpoint, enabled, with room for a work request before the doorbell
 * @rop: the receive or the peer's write, in KEFA_ROP_READING, or the ULP's operation, in
 *	KEFA_ROP_RDMA; it leaves kefa_rdm.reading with its last work request
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: false if the read has to wait for other completions or for memory.
 */
bool kefa_read_one(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	const u64 off = rop->sent, wanted = kefa_read_wanted(rop);
	struct kefa_pkt pkt;
	struct kefa_run run;
	u64 addr, len;
	u32 key;

	if (rop->more & KEFA_ROP_FAR)
		return kefa_rdma_one(rdm, rop);
	if (rop->more & KEFA_ROP_TARGET)
		return kefa_target_fetch(rdm, rop);
	if (rop->wrs >= KEFA_READS_MAX || !kefa_may_stream(rdm, rop->peer))
		return false;
	/* It was parsed when it arrived, and hasn't changed. */
	kefa_parse(rop->held->buf, rop->held->len, &pkt);
	if (!kefa_read_there(&pkt, off, &addr, &len, &key) ||
	    !kefa_read_here(rdm, rop, off, min(len, wanted - off), &run)) {
		kefa_read_fail(rdm, rop, rop->wrs, EFAULT, 0);
		return true;
	}
	len = min3(len, wanted - off, (u64)run.len);
	if (!kefa_read_post(rdm, rop, addr, key, &run, min_t(u64, len, rdm->lim.read_segment)))
		return false;
	if (rop->sent == wanted)
		list_del_init(&rop->link);
	return true;
}

static void kefa_eor_fill(const struct kefa_rdm *rdm, const struct kefa_rop *rop,
			  struct kefa_pkt *pkt)
{
	pkt->send_id = rop->remote_id;
	pkt->recv_id = kefa_rop_id(&rdm->rops, rop);
}

static void kefa_eor_completed(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	rop->flags |= KEFA_ROP_OVER;
}

static void kefa_eor_unsend(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	kefa_rdm_owe(rdm, rop, KEFA_ROP_OWES_EOR);
}

static void kefa_nack_unsend(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (rop->state == KEFA_ROP_NACKED || (rop->more & KEFA_ROP_TARGET &&
					      rop->state == KEFA_ROP_OWES))
		kefa_rdm_owe(rdm, rop, KEFA_ROP_OWES_NACK);
}

/* A peer's write ends with it; a message is sent in another way. */
static void kefa_nack_completed(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	if (rop->more & KEFA_ROP_TARGET)
		rop->flags |= KEFA_ROP_OVER;
}

/**
 * kefa_again_received() - take a request that was repeated after a READ_NACK
 * @rdm: the endpoint
 * @peer: the sender
 * @pkt: the request, for long-CTS
 * @rop: the receive with the request's message number, or NULL
 *
 * Context: Under kefa_ep.lock.
 * Return: enum kefa_took.
 */
enum kefa_took kefa_again_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				   const struct kefa_pkt *pkt, struct kefa_rop *rop)
{
	if (!rop || rop->state != KEFA_ROP_NACKED || rop->owes ||
	    pkt->msg_length != rop->total || pkt->data_len > rop->total - rop->runt) {
		kefa_rdm_drop(rdm, peer, KEFA_DROP_STATE);
		return KEFA_TOOK_DONE;
	}
	kefa_index_del(&rdm->msgs, &rop->msg);
	rop->type = pkt->row->type;
	rop->remote_id = pkt->send_id;
	rop->done = rop->runt;
	if (pkt->row->flags & KEFA_ROW_DC)
		rop->flags |= KEFA_ROP_DC;
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_DATA_RX);
	kefa_rop_copy(rdm, rop, pkt);
	if (rop->done == rop->total)
		kefa_rop_whole(rdm, rop);
	else
		kefa_rop_grant(rdm, rop);
	return KEFA_TOOK_DONE;
}

/* --- sender --- */

/* Find the message that an EOR or a READ_NACK names. Return: NULL if the peer isn't reading it. */
static struct kefa_rop *kefa_read_of(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
				     const struct kefa_pkt *pkt)
{
	struct kefa_rop *rop = kefa_rop_find(&rdm->rops, pkt->send_id);

	if (rop && rop->peer == peer && rop->state == KEFA_ROP_ACK &&
	    kefa_row_of(rop->type)->flags & KEFA_ROW_READ)
		return rop;
	kefa_rdm_drop(rdm, peer, KEFA_DROP_STATE);
	return NULL;
}

static enum kefa_took kefa_eor_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					const struct kefa_pkt *pkt, struct kefa_held *held)
{
	struct kefa_rop *rop = kefa_read_of(rdm, peer, pkt);

	if (!rop)
		return KEFA_TOOK_DONE;
	kefa_far_served(rop);
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_INVAL);
	kefa_source_release(rdm, rop);
	return KEFA_TOOK_DONE;
}

/* Make the message one for long-CTS, which goes on after its registration is invalidated. */
static enum kefa_took kefa_nack_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					 const struct kefa_pkt *pkt, struct kefa_held *held)
{
	const u64 can = kefa_shake_can(&rdm->self, peer);
	struct kefa_rop *rop = kefa_read_of(rdm, peer, pkt);
	const bool dc = rop && rop->flags & KEFA_ROP_DC && can & KEFA_FEATURE_DELIVERY_COMPLETE;

	if (!rop)
		return KEFA_TOOK_DONE;
	kefa_far_served(rop);
	/* A write is sent anew: kefa_source_over(). */
	if (rop->more & KEFA_ROP_FAR)
		rop->type = KEFA_LONGCTS_RTW_PKT;
	else
		rop->type = dc ? KEFA_DC_LONGCTS_MSGRTM_PKT : KEFA_LONGCTS_MSGRTM_PKT;
	if (rop->cq_flags & FI_TAGGED)
		rop->type++;
	/* The runt, if there was one, has arrived. */
	rop->sent = rop->runt;
	rop->done = rop->runt;
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_INVAL);
	kefa_source_release(rdm, rop);
	return KEFA_TOOK_DONE;
}

const struct kefa_pkt_ops kefa_eor_ops = {
	.fill		= kefa_eor_fill,
	.completed	= kefa_eor_completed,
	.unsend		= kefa_eor_unsend,
	.received	= kefa_eor_received,
};

const struct kefa_pkt_ops kefa_read_nack_ops = {
	.fill		= kefa_eor_fill,
	.completed	= kefa_nack_completed,
	.unsend		= kefa_nack_unsend,
	.received	= kefa_nack_received,
};
