/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Selection of the sub-protocol and of the segments of a message: select.c. */
#ifndef KEFA_RDM_SELECT_H
#define KEFA_RDM_SELECT_H

#include <linux/limits.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include "packet.h"

/**
 * struct kefa_rdm_limits - limits by which an endpoint selects sub-protocols, as in fi_efa(7)
 * @mtu: maximum bytes of a packet, headers included
 * @max_medium: inter_max_medium_message_size: longer messages wait for the receiver's grants
 * @min_read_message: FI_OPT_EFA_INTER_MIN_READ_MESSAGE_SIZE: shortest message that the receiver
 *	reads
 * @min_read_write: shortest write by packets that the target reads
 * @credits: tx_min_credits: number of packets granted at a time
 * @read_segment: inter_read_segment_size: maximum bytes of one read by the device, at most
 *	kefa_ep.max_map
 * @runt: runt_size: bytes that are sent in advance of a message that is read
 */
struct kefa_rdm_limits {
	u32	mtu;
	u32	max_medium;
	u64	min_read_message;
	u64	min_read_write;
	u32	credits;
	u32	read_segment;
	u32	runt;
};

/**
 * struct kefa_case - properties of an operation that the selection depends on
 * @len: length in bytes
 * @flags: optional headers of the request, as set by kefa_shake_sign(), and
 *	KEFA_REQ_OPT_CQ_DATA_HDR
 * @rma_iov_count: number of pieces of the peer's memory
 * @tagged: the message has a tag
 * @dc: the message completes on delivery. Not for FI_INJECT, and only if the peer has
 *	KEFA_FEATURE_DELIVERY_COMPLETE
 * @reads: result of kefa_shake_reads(); and that a region is free
 * @runt: the peer has KEFA_FEATURE_RUNT, and no other message of this endpoint to read
 */
struct kefa_case {
	u64	len;
	u16	flags;
	u8	rma_iov_count;
	bool	tagged;
	bool	dc;
	bool	reads;
	bool	runt;
};

u32 kefa_hdr_len(const struct kefa_pkt_row *row, u16 flags, u32 rma_iov_count,
		 u32 read_iov_count);
u8 kefa_select_msg(const struct kefa_rdm_limits *lim, const struct kefa_case *c);
u8 kefa_select_write(const struct kefa_rdm_limits *lim, const struct kefa_case *c);
u8 kefa_select_read(const struct kefa_rdm_limits *lim, const struct kefa_case *c);
u32 kefa_runt(const struct kefa_rdm_limits *lim, const struct kefa_case *c);
u32 kefa_segment(const struct kefa_rdm_limits *lim, u8 type, const struct kefa_case *c);

/**
 * kefa_cut() - cut data into as few pieces as possible, of about the same length
 * @room: room for data in a packet
 * @len: length of the data in bytes, more than 0
 *
 * Context: Any.
 * Return: length of each piece, a multiple of 8; the last one has the rest, at least one byte.
 */
static inline u32 kefa_cut(u32 room, u32 len)
{
	const u32 packets = DIV_ROUND_UP(len, round_down(room, 8));

	return round_up(DIV_ROUND_UP(len, packets), 8);
}

/**
 * kefa_data_room() - get the room for data in a CTSDATA packet
 * @lim: limits of the endpoint
 *
 * Context: Any.
 * Return: number of bytes, the same with or without a connid, so that both ends agree.
 */
static inline u32 kefa_data_room(const struct kefa_rdm_limits *lim)
{
	return lim->mtu - sizeof(struct kefa_ctsdata_hdr) -
	       sizeof(struct kefa_ctsdata_opt_connid_hdr);
}

/**
 * kefa_readrsp_room() - get the room for data in a READRSP packet
 * @lim: limits of the endpoint
 *
 * Context: Any.
 * Return: number of bytes.
 */
static inline u32 kefa_readrsp_room(const struct kefa_rdm_limits *lim)
{
	return lim->mtu - sizeof(struct kefa_readrsp_hdr);
}

/**
 * kefa_grant() - get the window to grant to the peer
 * @lim: limits of the endpoint
 * @left: bytes of the message that haven't arrived, more than 0
 *
 * The window never exceeds @left, because libfabric sends as many bytes as it was granted, even
 * beyond the end of the message.
 *
 * Context: Any.
 * Return: the window, for CTS and LONGCTS_RTR; more than 0.
 */
static inline u32 kefa_grant(const struct kefa_rdm_limits *lim, u64 left)
{
	return min_t(u64, left, min_t(u64, (u64)lim->credits * kefa_data_room(lim), U32_MAX));
}

/**
 * kefa_granted() - get the number of bytes that a peer's window allows to send
 * @window: window in the peer's CTS
 * @left: bytes of the message that weren't sent yet
 *
 * Context: Any.
 * Return: number of bytes, at most @left.
 */
static inline u64 kefa_granted(u64 window, u64 left)
{
	return min(window, left);
}

#endif /* KEFA_RDM_SELECT_H */
