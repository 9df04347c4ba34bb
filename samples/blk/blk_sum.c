// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Checksums at the client: added to commands and written data, verified for read data. */
#define pr_fmt(fmt) "kofiblk: " fmt

#include "blk.h"
#include "blk_trace.h"
#include "checksum.h"

static void kbc_sum_count(struct kbc_disk *d, const struct request *rq, u8 op,
			  const char *side)
{
	kbc_inc(d, checksum_errors);
	trace_kofiblk_checksum(d->name, op, blk_rq_pos(rq), blk_rq_bytes(rq));
	pr_err_ratelimited("%s: a %s of %u bytes at sector %llu reached the %s with a wrong checksum\n",
			   d->name, kb_op_name(op), blk_rq_bytes(rq),
			   (u64)blk_rq_pos(rq), side);
}

static u32 kbc_sum_data(u32 sum, struct request *rq)
{
	struct req_iterator iter;
	struct bio_vec bv;

	rq_for_each_bvec(bv, rq, iter)
		sum = kb_sum_bvecs(sum, &bv, bv.bv_len);
	return sum;
}

/* Add the checksum to a command that lacks only the checksum, the address and the key. */
void kbc_sum_command(const struct kbc_disk *d, struct request *rq, struct kb_cmd_msg *msg)
{
	if (!(d->limits.caps & KB_CAP_CHECKSUM))
		return;
	msg->flags |= KB_CMD_SUM;
	kbc_slot(rq)->seed = kb_sum_cmd(msg);
	msg->sum = kbc_slot(rq)->seed;
	if (msg->op == KB_OP_WRITE)
		msg->sum = kbc_sum_data(msg->sum, rq);
}

/* Return: whether a checksum is missing or unexpected, which violates the protocol. */
bool kbc_sum_missing(const struct kbc_disk *d, const struct kb_reply_msg *msg)
{
	bool due = d->limits.caps & KB_CAP_CHECKSUM && msg->op == KB_OP_READ &&
		   msg->status == KB_OK && !(msg->flags & KB_REPLY_READY);

	return due != !!(msg->flags & KB_REPLY_SUM);
}

/* Return: whether the server refused a wrong checksum, so the request must be sent again. */
bool kbc_sum_refused(struct kbc_disk *d, const struct request *rq,
		     const struct kb_reply_msg *msg)
{
	if (msg->status != KB_PROTECTION || !(d->limits.caps & KB_CAP_CHECKSUM))
		return false;
	/* For a read, the checksum of the command was wrong. */
	kbc_sum_count(d, rq, msg->op, "server");
	return true;
}

/* Check data that was read. The server can't write to the memory any more. */
bool kbc_sum_wrong(struct kbc_disk *d, struct request *rq)
{
	if (!(d->limits.caps & KB_CAP_CHECKSUM) || req_op(rq) != REQ_OP_READ ||
	    likely(kbc_sum_data(kbc_slot(rq)->seed, rq) == kbc_slot(rq)->sum))
		return false;
	kbc_sum_count(d, rq, KB_OP_READ, "client");
	return true;
}
