// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Writes by peers whose data this endpoint's device reads. The reads write to the ULP's region, but
 * not by its key, so kefa_mr_reach() counts them: they may outlast the registration. A peer whose
 * write can't be read gets a READ_NACK, and sends the data.
 */
#include "target.h"
#include "tx.h"

/* Tell the peer that its write isn't read: it then sends the data. */
static void kefa_target_nack(struct kefa_rdm *rdm, struct kefa_rpeer *peer, u32 send_id)
{
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_READ_NACK_PKT),
		.send_id	= send_id,
	};

	rdm->stats.unread++;
	kefa_shake_sign(&rdm->self, peer, &pkt);
	kefa_tx_control(rdm, peer, NULL, &pkt);
}

/* The endpoint may not read. Only the HANDSHAKE tells whether the peer can do otherwise. */
static enum kefa_took kefa_longread_rtw_refuse(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
					       const struct kefa_pkt *pkt)
{
	if (!(peer->flags & KEFA_RPEER_SHAKEN) && !rdm->self.homogeneous)
		return KEFA_TOOK_NOT;
	if (!(kefa_shake_can(&rdm->self, peer) & KEFA_FEATURE_READ_NACK)) {
		kefa_rdm_kill(rdm, peer, EOPNOTSUPP, 0);
		return KEFA_TOOK_DONE;
	}
	if (!kefa_target_may_reply(rdm, peer))
		return KEFA_TOOK_NOT;
	kefa_target_nack(rdm, peer, pkt->send_id);
	return KEFA_TOOK_DONE;
}

static enum kefa_took kefa_longread_rtw_received(struct kefa_rdm *rdm, struct kefa_rpeer *peer,
						 const struct kefa_pkt *pkt,
						 struct kefa_held *held)
{
	struct kefa_named mem[KEFA_IOV_MAX];
	struct kefa_rop *rop;
	u32 i;

	if (!kefa_target_check(rdm, peer, pkt, FI_REMOTE_WRITE, mem))
		return KEFA_TOOK_DONE;
	if (!kefa_may_read(rdm, peer))
		return kefa_longread_rtw_refuse(rdm, peer, pkt);
	/* In this order, because an entry that is given back has others tried again. */
	if (!kefa_target_may_begin(rdm, peer) || !kefa_target_room(rdm, peer, pkt->flags))
		return KEFA_TOOK_NOT;
	rop = kefa_target_begin(rdm, peer, pkt, mem, KEFA_ROP_READING);
	rop->remote_id = pkt->send_id;
	if (pkt->flags & KEFA_REQ_OPT_CQ_DATA_HDR) {
		rop->cq_flags = FI_REMOTE_CQ_DATA;
		rop->data = pkt->cq_data;
	}
	rop->target->nfrom = pkt->read_iov_count;
	for (i = 0; i < pkt->read_iov_count; i++)
		rop->target->from[i] = (struct kefa_named) {
			.addr	= le64_to_cpu(pkt->read_iov[i].addr),
			.len	= le64_to_cpu(pkt->read_iov[i].len),
			.key	= le64_to_cpu(pkt->read_iov[i].key),
		};
	list_add_tail(&rop->link, &rdm->reading);
	rdm->waits = true;
	return KEFA_TOOK_DONE;
}

const struct kefa_pkt_ops kefa_longread_rtw_ops = {
	.fill		= kefa_rtw_fill,
	.completed	= kefa_rtw_completed,
	.received	= kefa_longread_rtw_received,
};

/* Return: the number of a peer's writes that can't be read, and wait for its HANDSHAKE. */
static u32 kefa_target_unshaken(const struct kefa_rdm *rdm, const struct kefa_rpeer *peer)
{
	const struct kefa_rop *rop;
	u32 i, n = 0;

	for (i = 0; i < rdm->rops.size; i++) {
		rop = &rdm->rops.ops[i];
		n += rop->state == KEFA_ROP_NACKED && rop->more & KEFA_ROP_TARGET &&
		     rop->peer == peer;
	}
	return n;
}

/**
 * kefa_target_refuse() - tell a peer that its write isn't read
 * @rdm: the endpoint
 * @rop: the write, in KEFA_ROP_NACKED, without reads
 *
 * The write may have overtaken the peer's HANDSHAKE: then kefa_read_shaken() calls this again. A
 * peer that never sends one is given up, because its operations are no part of its share any more.
 *
 * Context: Under kefa_ep.lock. The pump is due.
 */
void kefa_target_refuse(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	lockdep_assert_held(&rdm->ep.lock);
	if (!(rop->peer->flags & KEFA_RPEER_SHAKEN) && !rdm->self.homogeneous) {
		if (kefa_target_unshaken(rdm, rop->peer) > KEFA_TARGETS_PEER) {
			kefa_rdm_kill(rdm, rop->peer, ENOBUFS, 0);
			return;
		}
		if (kefa_shake_ask(&rdm->self, &rdm->peers, rop->peer)) {
			rop->peer->owes |= KEFA_OWES_TRIGGER;
			kefa_rdm_todo(rdm, rop->peer);
		}
		kefa_silent_arm(rdm);
		return;
	}
	if (!(kefa_shake_can(&rdm->self, rop->peer) & KEFA_FEATURE_READ_NACK)) {
		kefa_rdm_kill(rdm, rop->peer, EIO, 0);
		return;
	}
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_OWES);
	kefa_rdm_owe(rdm, rop, KEFA_ROP_OWES_NACK);
	kefa_rdm_overdue_kill(rdm, rop->peer);
}

/*
 * A read failed, or the region was closed: post no more. When the device has no read any more, tell
 * the peer. @left: number of reads that the device still has.
 */
static void kefa_target_unread(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 left)
{
	list_del_init(&rop->link);
	kefa_target_end(rdm, rop, false);
	if (left)
		return;
	rdm->stats.unread++;
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_NACKED);
	kefa_target_refuse(rdm, rop);
}

/**
 * kefa_target_fetch() - post a read of a peer's write
 * @rdm: the endpoint, enabled, with room for a work request before the doorbell
 * @rop: the peer's write, in KEFA_ROP_READING; it leaves kefa_rdm.reading with its last read
 *
 * Context: Under kefa_ep.lock. kefa_tx_flush() is due.
 * Return: false if the read has to wait for other completions.
 */
bool kefa_target_fetch(struct kefa_rdm *rdm, struct kefa_rop *rop)
{
	const struct kefa_named *mem, *from;
	u64 in = rop->sent, off = rop->sent;
	enum kefa_fault fault;
	struct kefa_ts *ts;
	u64 len;

	if (rop->wrs >= KEFA_READS_MAX || !kefa_may_stream(rdm, rop->peer))
		return false;
	ts = kefa_ts_take(rdm, rop->peer, false);
	if (!ts)
		return false;
	mem = kefa_named_at(rop->target->mem, &in);
	from = kefa_named_at(rop->target->from, &off);
	len = min3(mem->len - in, from->len - off, (u64)rdm->lim.read_segment);
	fault = from->key > U32_MAX ? KEFA_FAULT_KEY :
				      kefa_mr_reach(rdm->ep.dom, mem, FI_REMOTE_WRITE, in, len,
						    &ts->seg, &ts->mr);
	if (fault) {
		ts->seg.len = 0;
		kefa_ts_free(rdm, ts);
		kefa_target_fault(rdm, rop->peer, fault);
		kefa_target_unread(rdm, rop, rop->wrs);
		return true;
	}
	ts->what = KEFA_TS_FETCH;
	ts->raddr = from->addr + off;
	ts->rkey = from->key;
	ts->rop = rop;
	rop->wrs++;
	rop->sent += ts->seg.len;
	rdm->stats.reads++;
	kefa_ts_post(rdm, ts);
	if (rop->sent == rop->total)
		list_del_init(&rop->link);
	return true;
}

/**
 * kefa_target_fetched() - handle the completion of a read of a peer's write
 * @rdm: the endpoint
 * @rop: the peer's write
 * @len: length of the read in bytes
 * @err: positive errno, or 0
 * @status: the completion's vendor status
 *
 * Context: Under kefa_ep.lock. The pump is due.
 */
void kefa_target_fetched(struct kefa_rdm *rdm, struct kefa_rop *rop, u32 len, int err, u32 status)
{
	if (kefa_read_fatal(err)) {
		kefa_rdm_kill(rdm, rop->peer, err, status);
		return;
	}
	if (rop->state != KEFA_ROP_READING)
		return;
	/* Without its memory, the operation only waits for its other reads. */
	if (err || !rop->target) {
		kefa_target_unread(rdm, rop, rop->wrs - 1);
		return;
	}
	rop->done += len;
	rdm->ep.stats.rx_bytes += len;
	if (rop->done < rop->total)
		return;
	kefa_target_tell(rdm, kefa_rpeer_addr(rop->peer), rop->total,
			 rop->cq_flags & FI_REMOTE_CQ_DATA, rop->data);
	kefa_target_end(rdm, rop, true);
	kefa_rop_set_state(&rdm->rops, rop, KEFA_ROP_OWES);
	kefa_rdm_owe(rdm, rop, KEFA_ROP_OWES_EOR);
	kefa_rdm_overdue_kill(rdm, rop->peer);
}
