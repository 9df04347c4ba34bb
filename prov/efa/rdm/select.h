/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which sub-protocol carries an operation, and in which pieces: select.c. */
#ifndef KEFA_RDM_SELECT_H
#define KEFA_RDM_SELECT_H

#include <linux/limits.h>
#include <linux/minmax.h>
#include "packet.h"

/* In place of a packet's type: the device does it, by RDMA. */
#define KEFA_BY_DEVICE	0

/**
 * struct kefa_rdm_limits - what an endpoint goes by; names are those of fi_efa(7)
 * @mtu: bytes of a packet, headers included
 * @max_medium: inter_max_medium_message_size: larger messages are sent when the receiver
 *	grants it
 * @min_read_message: inter_min_read_message_size: messages as large as that are read by the
 *	receiver
 * @min_read_write: inter_min_read_write_size: the same for writes that the device can't do
 * @credits: tx_min_credits: packets that are granted at a time
 * @read_segment: inter_read_segment_size: bytes that are read at once
 * @runt: runt_size: bytes of a message that is read which are sent at once
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
 * struct kefa_case - an operation, as far as that matters
 * @len: bytes
 * @flags: optional headers of its request, as kefa_shake_sign() sets them, and
 *	KEFA_REQ_OPT_CQ_DATA_HDR
 * @rma_iov_count: pieces of the peer's memory
 * @tagged: the message has a tag
 * @dc: it completes when it is delivered. Not for FI_INJECT, and only if the peer has
 *	KEFA_FEATURE_DELIVERY_COMPLETE
 * @reads: kefa_shake_reads(), and for a message or write that there is a region for it
 * @writes: kefa_shake_writes()
 * @runt: the peer has KEFA_FEATURE_RUNT, and no other message of ours to read
 */
struct kefa_case {
	u64	len;
	u16	flags;
	u8	rma_iov_count;
	bool	tagged;
	bool	dc;
	bool	reads;
	bool	writes;
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
 * kefa_data_room() - data of a CTSDATA packet
 * @lim: of the endpoint
 *
 * Context: Any.
 * Return: bytes, with or without a connid, so that both ends count the same.
 */
static inline u32 kefa_data_room(const struct kefa_rdm_limits *lim)
{
	return lim->mtu - sizeof(struct kefa_ctsdata_hdr) -
	       sizeof(struct kefa_ctsdata_opt_connid_hdr);
}

/**
 * kefa_grant() - how much may the peer send now?
 * @lim: of the endpoint
 * @left: bytes of the message that haven't come, more than 0
 *
 * It is never more than that: libfabric sends as many bytes as it was granted, whether it
 * has them or not.
 *
 * Context: Any.
 * Return: the window, for CTS and LONGCTS_RTR; more than 0.
 */
static inline u32 kefa_grant(const struct kefa_rdm_limits *lim, u64 left)
{
	return min_t(u64, left, min_t(u64, (u64)lim->credits * kefa_data_room(lim), U32_MAX));
}

/**
 * kefa_granted() - how much may we send now?
 * @window: what the peer says
 * @left: bytes of the message that weren't sent
 *
 * Context: Any.
 * Return: bytes, no more than there are.
 */
static inline u64 kefa_granted(u64 window, u64 left)
{
	return min(window, left);
}

#endif /* KEFA_RDM_SELECT_H */
