// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The short way of packets that a receive is waiting for: a medium message has many of them, each
 * says where its data belongs, and all but the first differ in nothing else.
 *
 * A packet that isn't exactly such a one goes the usual way, which judges it.
 */
#include "../path.h"
#include "rdm.h"

/* The flags of such packets, but that there may be a tag. */
#define KEFA_PART_FLAGS		(KEFA_PKT_CONNID_HDR | KEFA_REQ_MSG)

/* Is the packet of that peer, by what its header and its completion say? */
static bool kefa_part_from(const struct kefa_rpeer *peer, const struct kefa_held *held,
			   const struct kefa_req_opt_connid_hdr *opt)
{
	return held->slid != KEFA_NO_SLID && kefa_rpeer_slid(peer) == held->slid &&
	       kefa_rpeer_qpn(peer) == held->src_qpn &&
	       kefa_rpeer_connid(peer) == le32_to_cpu(opt->connid);
}

/**
 * kefa_part_received() - take a packet of the message that had one last
 * @rdm: the endpoint, enabled
 * @held: the packet; its buffer is needed no more if it was taken
 *
 * Context: Under kefa_ep.lock.
 * Return: whether it was one of that message, and has been taken.
 */
bool kefa_part_received(struct kefa_rdm *rdm, const struct kefa_held *held)
{
	const struct kefa_medium_tagrtm_hdr *hdr = held->buf;
	struct kefa_rop *rop = rdm->part;
	struct kefa_rpeer *peer;
	u64 off, left;
	bool tagged;
	u32 head;

	lockdep_assert_held(&rdm->ep.lock);
	if (!rop || rop->state != KEFA_ROP_DATA_RX || held->len <= sizeof(*hdr) ||
	    hdr->hdr.base.type != rop->type || hdr->hdr.msg_id != cpu_to_le32(rop->msg_id))
		return false;
	tagged = rop->type == KEFA_MEDIUM_TAGRTM_PKT;
	if (!tagged && rop->type != KEFA_MEDIUM_MSGRTM_PKT)
		return false;
	head = tagged ? sizeof(*hdr) : sizeof(hdr->hdr);
	if (hdr->hdr.base.version != KEFA_PROTOCOL_VERSION ||
	    hdr->hdr.base.flags != cpu_to_le16(KEFA_PART_FLAGS | (tagged ? KEFA_REQ_TAGGED : 0)) ||
	    held->len <= head + sizeof(struct kefa_req_opt_connid_hdr))
		return false;
	peer = rop->peer;
	if (!kefa_part_from(peer, held, held->buf + head))
		return false;
	head += sizeof(struct kefa_req_opt_connid_hdr);
	off = le64_to_cpu(hdr->hdr.seg_offset);
	left = rop->total - rop->done;
	if (le64_to_cpu(hdr->hdr.msg_length) != rop->total || off >= rop->total ||
	    held->len - head > min(left, rop->total - off))
		return false;
	kefa_peers_heard(&rdm->peers, peer);
	rdm->stats.received[rop->type]++;
	trace_kefa_packet(&rdm->ep, peer->id, kefa_row_of(rop->type)->name, rop->msg_id,
			  held->len - head, false);
	kefa_rop_put(rdm, rop, held->buf + head, off, held->len - head);
	if (rop->done == rop->total)
		kefa_rop_whole(rdm, rop);
	return true;
}
