// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which sub-protocol. The rules are libfabric's, so that an operation takes the same way
 * from whichever end it comes. One is ours: what fits into its first packet is never sent
 * by long-CTS, nor by long read, which may fall back to that. There would be nothing to
 * grant, and libfabric refuses it or grants nothing for ever.
 */
#include <linux/math.h>
#include "select.h"

/**
 * kefa_hdr_len() - bytes of headers
 * @row: of the type; not of a HANDSHAKE
 * @flags: as in the packet
 * @rma_iov_count: pieces of the target's memory, if the type has them
 * @read_iov_count: pieces of the source's
 *
 * Context: Any.
 * Return: what kefa_build() will write.
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

/* Data of a request packet. */
static u32 kefa_room(const struct kefa_rdm_limits *lim, u8 type, const struct kefa_case *c)
{
	return lim->mtu - kefa_hdr_len(kefa_row_of(type), c->flags, c->rma_iov_count, 1);
}

/* The tagged type is behind the other. */
static u8 kefa_rtm(u8 plain, u8 dc, const struct kefa_case *c)
{
	return (c->dc ? dc : plain) + c->tagged;
}

/**
 * kefa_runt() - how much of a message that is read is sent at once
 * @lim: of the endpoint
 * @c: the message
 *
 * Context: Any.
 * Return: bytes, with KEFA_RUNTREAD_MSGRTM_PKT or its tagged form; or 0 for a long read. At
 * least a byte is left to be read.
 */
u32 kefa_runt(const struct kefa_rdm_limits *lim, const struct kefa_case *c)
{
	return c->runt && !c->dc && c->len ? min_t(u64, lim->runt, c->len - 1) : 0;
}

/**
 * kefa_select_msg() - how to send a message
 * @lim: of the endpoint
 * @c: the message
 *
 * Context: Any.
 * Return: the type of its request packet or packets. A long read is delivered when it
 * completes, with or without @c->dc.
 */
u8 kefa_select_msg(const struct kefa_rdm_limits *lim, const struct kefa_case *c)
{
	u8 eager = kefa_rtm(KEFA_EAGER_MSGRTM_PKT, KEFA_DC_EAGER_MSGRTM_PKT, c);
	u8 longcts = kefa_rtm(KEFA_LONGCTS_MSGRTM_PKT, KEFA_DC_LONGCTS_MSGRTM_PKT, c);

	if (c->len <= kefa_room(lim, eager, c))
		return eager;
	if (c->reads && c->len >= lim->min_read_message)
		return (kefa_runt(lim, c) ? KEFA_RUNTREAD_MSGRTM_PKT : KEFA_LONGREAD_MSGRTM_PKT) +
		       c->tagged;
	if (c->len <= lim->max_medium || c->len <= kefa_room(lim, longcts, c))
		return kefa_rtm(KEFA_MEDIUM_MSGRTM_PKT, KEFA_DC_MEDIUM_MSGRTM_PKT, c);
	return longcts;
}

/**
 * kefa_select_write() - how to write to a peer's memory
 * @lim: of the endpoint
 * @c: the write
 *
 * Context: Any.
 * Return: the type of its request packet, or KEFA_BY_DEVICE.
 */
u8 kefa_select_write(const struct kefa_rdm_limits *lim, const struct kefa_case *c)
{
	u8 eager = c->dc ? KEFA_DC_EAGER_RTW_PKT : KEFA_EAGER_RTW_PKT;

	if (c->writes)
		return KEFA_BY_DEVICE;
	if (c->len <= kefa_room(lim, eager, c))
		return eager;
	if (c->reads && c->len >= lim->min_read_write)
		return KEFA_LONGREAD_RTW_PKT;
	return c->dc ? KEFA_DC_LONGCTS_RTW_PKT : KEFA_LONGCTS_RTW_PKT;
}

/**
 * kefa_select_read() - how to read from a peer's memory
 * @lim: of the endpoint
 * @c: the read
 *
 * Context: Any.
 * Return: the type of its request packet, or KEFA_BY_DEVICE.
 */
u8 kefa_select_read(const struct kefa_rdm_limits *lim, const struct kefa_case *c)
{
	if (c->reads)
		return KEFA_BY_DEVICE;
	return c->len <= lim->mtu - sizeof(struct kefa_readrsp_hdr) ? KEFA_SHORT_RTR_PKT :
								     KEFA_LONGCTS_RTR_PKT;
}

/**
 * kefa_segment() - how much data goes with a request packet
 * @lim: of the endpoint
 * @type: as kefa_select_msg() or kefa_select_write() has it
 * @c: the operation
 *
 * A message in several packets is cut in pieces that are about the same, at multiples of
 * 8, as few as there can be. The last one has what is left, at least a byte.
 *
 * Context: Any.
 * Return: bytes, of all packets but the last if there are several.
 */
u32 kefa_segment(const struct kefa_rdm_limits *lim, u8 type, const struct kefa_case *c)
{
	const struct kefa_pkt_row *row = kefa_row_of(type);
	u32 room = kefa_room(lim, type, c), len = c->len, packets;

	if (row->data == KEFA_DATA_NONE)
		return 0;
	if (row->data == KEFA_DATA_RUNT)
		len = kefa_runt(lim, c);
	else if (row->data != KEFA_DATA_PART)
		return min_t(u64, c->len, room);
	room = round_down(room, 8);
	packets = DIV_ROUND_UP(len, room);
	return round_up(DIV_ROUND_UP(len, packets), 8);
}
