// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Checksums at the server: verified for commands and written data, added to read data. */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include "checksum.h"
#include "srv.h"
#include "srv_trace.h"

/*
 * Verify the checksum of a command other than WRITE or, with @write, of a WRITE whose data has
 * arrived. Without the queue's lock. Return: 0; or -EILSEQ for a wrong checksum, which is counted
 * and logged. The data must not be written then.
 */
int kbs_sum_check(struct kbs_req *req, bool write)
{
	const struct kofiblk_cmd_msg *cmd = &req->cmd;
	struct kbs_squeue *sq = req->sq;
	struct kbs_session *s = sq->s;
	bool with_data = cmd->op == KOFIBLK_OP_WRITE;
	u32 sum;

	if (!(cmd->flags & KOFIBLK_CMD_SUM) || with_data != write)
		return 0;
	sum = kofiblk_sum_bvecs(kofiblk_sum_cmd(cmd), req->bvec, write ? cmd->bytes : 0);
	if (likely(sum == cmd->sum))
		return 0;
	spin_lock_bh(&sq->lock);
	sq->stats.checksums++;
	spin_unlock_bh(&sq->lock);
	trace_kofiblk_srv_checksum(s, cmd, sum);
	pr_err_ratelimited("%s at %s, export %s: a %s of %llu bytes at offset %llu has a wrong checksum, asking for a retry\n",
			   s->client, s->from, s->name,
			   kofiblk_op_name(cmd->op), cmd->bytes, cmd->offset);
	return -EILSEQ;
}

/* Compute the checksum of data that the store has read. */
void kbs_sum_read(struct kbs_req *req)
{
	const struct kofiblk_cmd_msg *cmd = &req->cmd;

	if (cmd->flags & KOFIBLK_CMD_SUM && cmd->op == KOFIBLK_OP_READ)
		req->sum = kofiblk_sum_bvecs(kofiblk_sum_cmd(cmd), req->bvec, cmd->bytes);
}

/* Add the checksum of the data to the last reply to a read. */
void kbs_sum_reply(const struct kbs_req *req, struct kofiblk_reply_msg *msg)
{
	if (!(req->cmd.flags & KOFIBLK_CMD_SUM) || msg->op != KOFIBLK_OP_READ || msg->status ||
	    msg->flags & KOFIBLK_REPLY_READY)
		return;
	msg->flags |= KOFIBLK_REPLY_SUM;
	msg->sum = req->sum;
}
