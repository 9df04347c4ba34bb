// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Building of a packet's headers, the inverse of kefa_parse(). Padding is 0. */
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "packet.h"

/* Room for the next header; @at is NULL after one didn't fit. */
struct kefa_space {
	u8	*at;
	size_t	left;
};

static void kefa_put(struct kefa_space *room, const void *from, size_t len)
{
	if (!room->at || len > room->left) {
		room->at = NULL;
		return;
	}
	/* @from may be NULL without iovs. */
	if (!len)
		return;
	memcpy(room->at, from, len);
	room->at += len;
	room->left -= len;
}

static void kefa_put32(struct kefa_space *room, u32 v)
{
	const __le32 le = cpu_to_le32(v);

	kefa_put(room, &le, sizeof(le));
}

static void kefa_put64(struct kefa_space *room, u64 v)
{
	const __le64 le = cpu_to_le64(v);

	kefa_put(room, &le, sizeof(le));
}

static bool kefa_build_fixed(const struct kefa_pkt *pkt, struct kefa_space *room)
{
	const struct kefa_pkt_row *row = pkt->row;
	const struct kefa_base_hdr base = {
		.type		= row->type,
		.version	= KEFA_PROTOCOL_VERSION,
		.flags		= cpu_to_le16(pkt->flags | row->hints),
	};
	const __le64 tag = cpu_to_le64(pkt->tag);

	if (row->hdr > room->left)
		return false;
	memcpy(room->at, &base, sizeof(base));
	if (!row->store(room->at, pkt))
		return false;
	if (row->flags & KEFA_ROW_TAGGED)
		memcpy(room->at + row->hdr - sizeof(tag), &tag, sizeof(tag));
	room->at += row->hdr;
	room->left -= row->hdr;
	return true;
}

static void kefa_build_opt(const struct kefa_pkt *pkt, struct kefa_space *room)
{
	if (pkt->flags & KEFA_REQ_OPT_RAW_ADDR_HDR) {
		kefa_put32(room, pkt->raw_len);
		kefa_put(room, pkt->raw, pkt->raw_len);
	}
	if (pkt->flags & KEFA_REQ_OPT_CQ_DATA_HDR)
		kefa_put64(room, pkt->cq_data);
	if (pkt->flags & KEFA_PKT_CONNID_HDR)
		kefa_put32(room, pkt->connid);
}

static void kefa_build_body(const struct kefa_pkt *pkt, struct kefa_space *room)
{
	const u16 flags = pkt->row->flags;

	if (flags & KEFA_ROW_RMA)
		kefa_put(room, pkt->rma_iov, pkt->rma_iov_count * sizeof(*pkt->rma_iov));
	if (flags & KEFA_ROW_REQ)
		kefa_build_opt(pkt, room);
	if (flags & KEFA_ROW_READ)
		kefa_put(room, pkt->read_iov, pkt->read_iov_count * sizeof(*pkt->read_iov));
	if (flags & KEFA_ROW_TAIL_CONNID && pkt->flags & KEFA_PKT_CONNID_HDR)
		kefa_put64(room, pkt->connid);
}

static void kefa_build_handshake(const struct kefa_pkt *pkt, struct kefa_space *room)
{
	const struct kefa_shake *shake = &pkt->shake;
	u32 i;

	for (i = 0; i + KEFA_NEXTRA_P3 < shake->nextra_p3; i++)
		kefa_put64(room, shake->extra[i]);
	if (pkt->flags & KEFA_PKT_CONNID_HDR)
		kefa_put64(room, pkt->connid);
	if (pkt->flags & KEFA_HANDSHAKE_HOST_ID_HDR)
		kefa_put64(room, shake->host_id);
	if (pkt->flags & KEFA_HANDSHAKE_DEVICE_VERSION_HDR)
		kefa_put64(room, shake->device_version);
	if (pkt->flags & KEFA_HANDSHAKE_USER_RECV_QP_HDR) {
		kefa_put32(room, shake->qpn);
		kefa_put32(room, shake->qkey);
	}
	if (pkt->flags & KEFA_HANDSHAKE_HMEM_P2P_HDR)
		kefa_put64(room, shake->p2p);
}

/**
 * kefa_build() - write the headers of a packet
 * @pkt: the packet: @pkt->row, @pkt->flags (flags that repeat the type are added), and the
 *	fields that the type has, with 0 for a missing connid. A raw address has @pkt->raw_len
 *	bytes, KEFA_RAW_ADDR_LEN in libfabric
 * @buf: takes the headers
 * @room: size of @buf; KEFA_HDR_ROOM is enough for all packets of the provider
 *
 * The data is neither read nor written, but the fields about it are written.
 *
 * Context: Any.
 * Return: length of the headers, or 0 if they don't fit.
 */
size_t kefa_build(const struct kefa_pkt *pkt, void *buf, size_t room)
{
	struct kefa_space rest = { buf, room };

	if (!kefa_build_fixed(pkt, &rest))
		return 0;
	if (pkt->row->flags & KEFA_ROW_HANDSHAKE)
		kefa_build_handshake(pkt, &rest);
	else
		kefa_build_body(pkt, &rest);
	return rest.at ? room - rest.left : 0;
}
