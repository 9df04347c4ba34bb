// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Selection of the sub-protocol. The rules are libfabric's, so that an operation takes the same
 * way from either end. One rule is kOFI's own: data that fits into the first packet is never sent
 * by long-CTS, nor by long read, which may fall back to long-CTS. There would be nothing to
 * grant, and libfabric refuses such a message or never grants anything.
 */
#include <linux/math.h>
#include "select.h"

/**
 * kefa_hdr_len() - get the length of a packet's headers
 * @row: row of the type, which isn't HANDSHAKE
 * @flags: flags of the packet
 * @rma_iov_count: number of pieces of the target's memory, if the type has them
 * @read_iov_count: number of pieces of the source's memory, if the type has them
 *
 * Context: Any.
 * Return: the number of bytes that kefa_build() writes.
 */
u32 kefa_hdr_len(const struct kefa_pkt_row *row, u16 flags, u32 rma_iov_count,
		 u32 read_iov_count)
{
	u32 len = row->hdr;

	if (row->flags & KEFA_ROW_RMA)
		len += rma_iov_count * sizeof(struct kefa_rma_iov);
	if (row->flags & KEFA_ROW_READ)
		len += read_iov_count * sizeof(struct kefa_rma_iov);
	if (row->flags & KEFA_ROW_TAIL_CONNID && flags & KEFA_PKT_CONNID_HDR)
		len += sizeof(struct kefa_ctsdata_opt_connid_hdr);
	if (!(row->flags & KEFA_ROW_REQ))
		return len;
	if (flags & KEFA_REQ_OPT_RAW_ADDR_HDR)
		len += sizeof(struct kefa_req_opt_raw_addr_hdr) + KEFA_RAW_ADDR_LEN;
	if (flags & KEFA_REQ_OPT_CQ_DATA_HDR)
		len += sizeof(struct kefa_req_opt_cq_data_hdr);
	if (flags & KEFA_PKT_CONNID_HDR)
		len += sizeof(struct kefa_req_opt_connid_hdr);
	return len;
}

/* Room for data in a request packet. */
static u32 kefa_packet_room(const struct kefa_rdm_limits *lim, u8 type, const struct kefa_case *c)
{
	return lim->mtu - kefa_hdr_len(kefa_row_of(type), c->flags, c->rma_iov_count, 1);
}

/* The tagged type is the next number after the untagged one. */
static u8 kefa_rtm(u8 plain, u8 dc, const struct kefa_case *c)
{
	return (c->dc ? dc : plain) + c->tagged;
}

/**
 * kefa_runt() - get the length of a message's runt
 * @lim: limits of the endpoint
 * @c: the message
 *
 * Context: Any.
 * Return: bytes to send with KEFA_RUNTREAD_MSGRTM_PKT or its tagged form, so that at least one
 * byte is left to be read; or 0 for a long read.
 */
u32 kefa_runt(const struct kefa_rdm_limits *lim, const struct kefa_case *c)
{
	return c->runt && !c->dc && c->len ? min_t(u64, lim->runt, c->len - 1) : 0;
}

/**
 * kefa_select_msg() - select the sub-protocol of a message
 * @lim: limits of the endpoint
 * @c: the message
 *
 * Context: Any.
 * Return: the type of the message's request packets. A long read completes only after delivery, so
 * @c->dc makes no difference for it.
 */
u8 kefa_select_msg(const struct kefa_rdm_limits *lim, const struct kefa_case *c)
{
	u8 eager = kefa_rtm(KEFA_EAGER_MSGRTM_PKT, KEFA_DC_EAGER_MSGRTM_PKT, c);
	u8 longcts = kefa_rtm(KEFA_LONGCTS_MSGRTM_PKT, KEFA_DC_LONGCTS_MSGRTM_PKT, c);

	if (c->len <= kefa_packet_room(lim, eager, c))
		return eager;
	if (c->reads && c->len >= lim->min_read_message)
		return (kefa_runt(lim, c) ? KEFA_RUNTREAD_MSGRTM_PKT : KEFA_LONGREAD_MSGRTM_PKT) +
		       c->tagged;
	if (c->len <= lim->max_medium || c->len <= kefa_packet_room(lim, longcts, c))
		return kefa_rtm(KEFA_MEDIUM_MSGRTM_PKT, KEFA_DC_MEDIUM_MSGRTM_PKT, c);
	return longcts;
}

/**
 * kefa_select_write() - select the sub-protocol of a write by packets
 * @lim: limits of the endpoint
 * @c: the write
 *
 * Context: Any.
 * Return: the type of its request packet.
 */
u8 kefa_select_write(const struct kefa_rdm_limits *lim, const struct kefa_case *c)
{
	const u8 eager = c->dc ? KEFA_DC_EAGER_RTW_PKT : KEFA_EAGER_RTW_PKT;

	if (c->len <= kefa_packet_room(lim, eager, c))
		return eager;
	if (c->reads && c->len >= lim->min_read_write)
		return KEFA_LONGREAD_RTW_PKT;
	return c->dc ? KEFA_DC_LONGCTS_RTW_PKT : KEFA_LONGCTS_RTW_PKT;
}

/**
 * kefa_select_read() - select the sub-protocol of a read by packets
 * @lim: limits of the endpoint
 * @c: the read
 *
 * Context: Any.
 * Return: the type of its request packet.
 */
u8 kefa_select_read(const struct kefa_rdm_limits *lim, const struct kefa_case *c)
{
	return c->len <= kefa_readrsp_room(lim) ? KEFA_SHORT_RTR_PKT : KEFA_LONGCTS_RTR_PKT;
}

/**
 * kefa_segment() - get the length of data in each request packet
 * @lim: limits of the endpoint
 * @type: result of kefa_select_msg(), kefa_select_write() or kefa_select_read()
 * @c: the operation
 *
 * Context: Any.
 * Return: bytes in each packet; the last one of several may have fewer.
 */
u32 kefa_segment(const struct kefa_rdm_limits *lim, u8 type, const struct kefa_case *c)
{
	const struct kefa_pkt_row *row = kefa_row_of(type);
	u32 room = kefa_packet_room(lim, type, c), len = c->len;

	if (row->data == KEFA_DATA_NONE)
		return 0;
	if (row->data == KEFA_DATA_RUNT)
		len = kefa_runt(lim, c);
	else if (row->data != KEFA_DATA_PART)
		return min_t(u64, c->len, room);
	return kefa_cut(room, len);
}
