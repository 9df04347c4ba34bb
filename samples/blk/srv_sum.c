// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Checksums at the server: verified for commands and written data, added to read data. */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include "checksum.h"
#include "srv.h"
#include "srv_trace.h"

static int kb_sum_compare(struct kb_req *req, u32 sum)
{
	struct kb_squeue *sq = req->sq;
	struct kb_session *s = sq->s;

	if (likely(sum == req->cmd.sum))
		return 0;
	spin_lock_bh(&sq->lock);
	sq->stats.checksums++;
	spin_unlock_bh(&sq->lock);
	trace_kb_srv_checksum(s, &req->cmd, sum);
	pr_err_ratelimited("%s at %s, export %s: a %s of %llu bytes at offset %llu has a wrong checksum, asking for a retry\n",
			   s->hello.client, s->peer_name, s->hello.export,
			   kb_op_name(req->cmd.op), req->cmd.bytes, req->cmd.offset);
	return -EILSEQ;
}

int kb_sum_check_cmd(struct kb_req *req)
{
	if (!(req->cmd.flags & KB_CMD_SUM) || req->cmd.op == KB_OP_WRITE)
		return 0;
	return kb_sum_compare(req, kb_sum_cmd(&req->cmd));
}

int kb_sum_check_data(struct kb_req *req)
{
	const struct kb_cmd_msg *cmd = &req->cmd;

	if (!(cmd->flags & KB_CMD_SUM) || cmd->op != KB_OP_WRITE)
		return 0;
	return kb_sum_compare(req, kb_sum_bvecs(kb_sum_cmd(cmd), req->bvec, req->nbvec,
						cmd->bytes));
}

void kb_sum_read(struct kb_req *req)
{
	const struct kb_cmd_msg *cmd = &req->cmd;

	if (cmd->flags & KB_CMD_SUM && cmd->op == KB_OP_READ)
		req->sum = kb_sum_bvecs(kb_sum_cmd(cmd), req->bvec, req->nbvec, cmd->bytes);
}

void kb_sum_reply(const struct kb_req *req, struct kb_reply_msg *msg)
{
	if (!(req->cmd.flags & KB_CMD_SUM) || msg->op != KB_OP_READ || msg->status ||
	    msg->flags & KB_REPLY_READY)
		return;
	msg->flags |= KB_REPLY_SUM;
	msg->sum = req->sum;
}
