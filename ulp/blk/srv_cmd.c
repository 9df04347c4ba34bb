// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Checks of commands. A valid command starts a request, or continues one. */
#include <linux/mm.h>
#include <linux/string.h>
#include "srv.h"
#include "srv_trace.h"

/* Return: the errno of a command that is valid but fails, or 0. */
static int kbs_cmd_refused(const struct kbs_session *s, const struct kofiblk_cmd_msg *msg)
{
	const struct kbs_store *store = &s->export->store;

	if (store->read_only && msg->op != KOFIBLK_OP_READ && msg->op != KOFIBLK_OP_FLUSH)
		return -EROFS;
	if ((msg->offset | msg->bytes) & (store->disk.logical_block - 1))
		return -EINVAL;
	/* The parser makes sure that the sum doesn't overflow. */
	if (msg->offset + msg->bytes > READ_ONCE(store->disk.bytes))
		return -EIO;
	return 0;
}

/* Return: how a command violates what the client was granted, or NULL. */
static const char *kbs_cmd_violates(const struct kbs_session *s, const struct kofiblk_cmd_msg *msg)
{
	u32 caps = s->limits.caps;

	if ((msg->op == KOFIBLK_OP_READ || msg->op == KOFIBLK_OP_WRITE) &&
	    msg->bytes > s->limits.max_io)
		return "too many bytes";
	if (msg->flags & KOFIBLK_CMD_INLINE &&
	    msg->bytes > (msg->op == KOFIBLK_OP_READ ? s->limits.inline_read :
						  s->limits.inline_max))
		return "too many bytes inline";
	if ((msg->op == KOFIBLK_OP_DISCARD && !(caps & KOFIBLK_CAP_DISCARD)) ||
	    (msg->op == KOFIBLK_OP_WRITE_ZEROES && !(caps & KOFIBLK_CAP_WRITE_ZEROES)) ||
	    (msg->flags & KOFIBLK_CMD_FUA && msg->op != KOFIBLK_OP_READ &&
	     !(caps & KOFIBLK_CAP_FUA)) ||
	    (msg->flags & KOFIBLK_CMD_IMM && !(caps & KOFIBLK_CAP_IMM)))
		return "an operation that wasn't granted";
	if (!(msg->flags & KOFIBLK_CMD_SUM) != !(caps & KOFIBLK_CAP_CHECKSUM))
		return "a checksum that is missing or wasn't granted";
	return NULL;
}

static void kbs_count(struct kbs_session_stats *stats, const struct kofiblk_cmd_msg *msg)
{
	if (msg->op == KOFIBLK_OP_READ) {
		stats->reads++;
		stats->read_bytes += msg->bytes;
	} else if (msg->op == KOFIBLK_OP_WRITE) {
		stats->writes++;
		stats->write_bytes += msg->bytes;
	} else {
		stats->others++;
	}
}

/*
 * Take a command into its slot. A copy of an earlier one is only counted, because anyone who
 * listens can send it. Return: whether the command is new and the session works.
 */
static bool kbs_req_take(struct kbs_req *req, const struct kofiblk_cmd_msg *msg)
{
	struct kbs_squeue *sq = req->sq;
	bool live, fresh;

	spin_lock_bh(&sq->lock);
	live = kbs_session_works(sq->s);
	fresh = req->state == KBS_REQ_FREE &&
		!(req->used && KOFIBLK_ID_GEN(msg->id) <= KOFIBLK_ID_GEN(req->cmd.id));
	if (live && fresh) {
		req->state = KBS_REQ_BUSY;
		req->used = true;
		req->cmd = *msg;
		sq->load.in_flight++;
		kbs_count(&sq->stats, msg);
		WRITE_ONCE(sq->heard, jiffies);
	} else if (live) {
		sq->stats.stale++;
	}
	spin_unlock_bh(&sq->lock);
	return live && fresh;
}

/* Return: how the client violated the protocol, or NULL. */
static const char *kbs_request(struct kbs_req *req, const struct kofiblk_cmd_msg *msg,
			       struct kbs_req **begin)
{
	struct kbs_session *s = req->sq->s;
	const char *wrong = kbs_cmd_violates(s, msg);
	int err;

	if (wrong || !kbs_req_take(req, msg))
		return wrong;
	if (msg->data)
		memcpy(page_address(req->inline_page), msg->data, msg->bytes);
	err = kbs_sum_check(req, false) ?: kbs_cmd_refused(s, msg);
	if (err)
		kbs_req_end(req, err);
	else
		*begin = req;
	return NULL;
}

/* Without an offer of data, FETCHED is a copy, too. */
static void kbs_fetched(struct kbs_req *req, const struct kofiblk_cmd_msg *msg)
{
	struct kbs_squeue *sq = req->sq;
	bool ready, live;

	spin_lock_bh(&sq->lock);
	live = kbs_session_works(sq->s);
	ready = live && req->state == KBS_REQ_READY && req->cmd.id == msg->id;
	if (ready) {
		req->state = KBS_REQ_BUSY;
		WRITE_ONCE(sq->heard, jiffies);
	} else if (live) {
		sq->stats.stale++;
	}
	spin_unlock_bh(&sq->lock);
	if (ready)
		kbs_req_inval(req);
}

/*
 * Check the tag of a command. Return: whether the client of the session sent it to the queue that
 * it names, and has received the nonce of the queue at the endpoint that the client named during
 * set-up. It has no nonce yet when it sends PROVE, which gets one small reply and starts no
 * transfer.
 */
bool kbs_session_sent(struct kbs_session *s, const struct kulp_queue *q, void *buf,
		      const struct kofiblk_cmd_msg *msg)
{
	struct kbs_squeue *sq = &s->queues[msg->queue];
	u64 nonce;

	if (msg->queue >= s->nqueues || sq->q != q)
		return false;
	nonce = msg->op == KOFIBLK_OP_PROVE ? 0 : sq->cmd_nonce;
	return kofiblk_cmd_signed(buf, msg, nonce, &s->keys);
}

/*
 * Called under rcu_read_lock(), which keeps the session from being freed. Return: the request that
 * the command starts, or NULL. The caller calls kbs_req_begin() for it after rcu_read_unlock(),
 * because the active request then keeps the session.
 */
struct kbs_req *kbs_session_command(struct kbs_session *s, const struct kofiblk_cmd_msg *msg)
{
	struct kbs_squeue *sq = &s->queues[msg->queue];
	struct kbs_req *req, *begin = NULL;
	const char *wrong = NULL;

	trace_kofiblk_srv_cmd(msg);
	req = &sq->reqs[KOFIBLK_ID_SLOT(msg->id)];
	if (msg->op == KOFIBLK_OP_KEEP_ALIVE || msg->op == KOFIBLK_OP_PROVE)
		kbs_ping(sq, msg);
	else if (KOFIBLK_ID_SLOT(msg->id) >= s->limits.depth)
		wrong = "a slot out of range";
	else if (msg->op == KOFIBLK_OP_FETCHED)
		kbs_fetched(req, msg);
	else
		wrong = kbs_request(req, msg, &begin);
	if (wrong)
		kbs_session_violated(s, wrong);
	return begin;
}
