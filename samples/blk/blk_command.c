// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Commands for requests, and checks of the replies to them. */
#define pr_fmt(fmt) "kofiblk: " fmt

#include "blk.h"

/* The server may reply by immediate data if it granted exactly KBC_CAPS_IMM_ON of KBC_CAPS_IMM. */
#define KBC_CAPS_IMM		(KB_CAP_IMM | KB_CAP_RDMA_WRITE | KB_CAP_CHECKSUM)
#define KBC_CAPS_IMM_ON		(KB_CAP_IMM | KB_CAP_RDMA_WRITE)

bool kbc_op_allowed(const struct kbc_disk *d, u8 op)
{
	return op && (op != KB_OP_DISCARD || d->limits.caps & KB_CAP_DISCARD) &&
	       (op != KB_OP_WRITE_ZEROES || d->limits.caps & KB_CAP_WRITE_ZEROES);
}

u16 kbc_cmd_flags(const struct kbc_slot *slot, u8 op)
{
	const struct request *rq = kbc_rq(slot);
	u16 flags = slot->inl ? KB_CMD_INLINE : slot->imm ? KB_CMD_IMM : 0;

	if ((op == KB_OP_WRITE || op == KB_OP_WRITE_ZEROES) &&
	    rq->cmd_flags & REQ_FUA)
		flags |= KB_CMD_FUA;
	if (op == KB_OP_WRITE_ZEROES && rq->cmd_flags & REQ_NOUNMAP)
		flags |= KB_CMD_NOUNMAP;
	return flags;
}

bool kbc_imm_will_do(const struct kbc_slot *slot)
{
	const struct kbc_queue *kq = slot->kq;

	return req_op(kbc_rq(slot)) == REQ_OP_READ && kq->user >= 0 &&
	       (kq->disk->limits.caps & KBC_CAPS_IMM) == KBC_CAPS_IMM_ON;
}

/*
 * Immediate data for the active request of a tag: the queue's user number, the number of the tag
 * (KBC_IMM_TAG()), and 20 bits of its generation, offset by a random salt that others can't guess.
 */
u32 kbc_imm(const struct kbc_queue *kq, const struct kbc_tag *tag)
{
	return KB_IMM_USER(kq->user) | (u32)(tag - kq->tags) << 20 |
	       (((u32)tag->gen + kq->salt) & GENMASK(19, 0));
}

/* Return: what is wrong with the reply, or NULL. */
const char *kbc_reply_fault(const struct kbc_slot *slot,
			    const struct kb_reply_msg *msg)
{
	const struct kbc_disk *d = slot->kq->disk;
	u8 op = kbc_opcode(kbc_rq(slot));
	bool inl = op == KB_OP_READ && slot->inl;
	bool fetches = op == KB_OP_READ && !inl &&
		       !(d->limits.caps & KB_CAP_RDMA_WRITE);

	if (msg->op != op)
		return "reply to a different command";
	if (msg->flags & KB_REPLY_INLINE && !inl)
		return "unexpected inline data";
	if (msg->flags & KB_REPLY_READY && (!fetches || slot->fetched))
		return "unexpected offer of data";
	if (kbc_sum_missing(d, msg))
		return "checksum missing or not negotiated";
	if (msg->status != KB_OK)
		return NULL;
	if (kbc_op_moves(op) && msg->bytes != blk_rq_bytes(kbc_rq(slot)))
		return "reply with a wrong number of bytes";
	if ((fetches && !slot->fetched && !(msg->flags & KB_REPLY_READY)) ||
	    (inl && !msg->data))
		return "reply without data";
	return NULL;
}
