// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The data calls of providers that take what a call asks for as a struct kofi_req:
 * one for what is transmitted, one for what is received. A provider that is quicker
 * in some of them has calls of its own for these.
 */
#include <linux/overflow.h>
#include <linux/uio.h>
#include "kofi.h"

/* A sum that doesn't fit is more than any provider takes. */
static size_t kofi_iov_len(const struct kvec *iov, size_t count)
{
	size_t i, len = 0;

	for (i = 0; i < count; i++)
		len = size_add(len, iov[i].iov_len);
	return len;
}

/* A buffer in segments, or in one, as an iterator. */
static struct iov_iter kofi_iter(unsigned int direction, const struct kvec *iov,
				 size_t count)
{
	struct iov_iter iter;

	iov_iter_kvec(&iter, direction, iov, count, kofi_iov_len(iov, count));
	return iter;
}

/* A call: its name, its parameters, and what they ask for. */
#define CALL(side, name, params, ...)					\
static ssize_t call_##name params					\
{									\
	return READ_ONCE(ep->calls)->side(ep, &(struct kofi_req){ __VA_ARGS__ }); \
}

#define TX_CALL(name, params, ...)	CALL(tx, name, params, __VA_ARGS__)
#define RX_CALL(name, params, ...)	CALL(rx, name, params, __VA_ARGS__)

/* Parameters that calls have in common. */
#define P_IN	struct fid_ep *ep, void *buf, size_t len
#define P_OUT	struct fid_ep *ep, const void *buf, size_t len
#define P_IOV	struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count
#define P_MSG	struct fid_ep *ep, const struct fi_msg *msg, u64 flags
#define P_TMSG	struct fid_ep *ep, const struct fi_msg_tagged *msg, u64 flags
#define P_RMSG	struct fid_ep *ep, const struct fi_msg_rma *msg, u64 flags
#define P_DESC	void *desc
#define P_DATA	u64 data
#define P_TO	fi_addr_t peer
#define P_TAG	u64 tag
#define P_TAGS	u64 tag, u64 ignore
#define P_RMA	u64 addr, u64 key
#define P_CTX	void *context

/* And what is made of them. */
#define WHAT(kind, dir)	.what = (kind) | (dir)
#define KVEC		&(const struct kvec){ (void *)buf, len }
#define BUF(dir)	.iter = kofi_iter(ITER_##dir, KVEC, 1)
#define IOV(dir)	.iter = kofi_iter(ITER_##dir, iov, count)
#define TO		.addr = peer
#define TAG		.tag = tag
#define TAGS		.tag = tag, .ignore = ignore
#define DATA		.flags = FI_REMOTE_CQ_DATA, .data = data
#define MSG		.iter = msg->msg_iter, .flags = flags, \
			.addr = msg->addr, .context = msg->context
#define MSG_TAG		.tag = msg->tag
#define MSG_DATA	.data = msg->data
#define MSG_RMA		.rma = msg->rma_iov, .rma_count = msg->rma_iov_count

/* The peer's memory of calls that name no more than one piece. */
#define RMA(n)								\
	.rma = &(const struct fi_rma_iov){ .addr = addr, .len = n, .key = key }, \
	.rma_count = 1

/* What isn't said for the one call is the endpoint's to say. */
#define PLAIN		.defaults = true, .context = context
#define INJECT		.flags = FI_INJECT, .quiet = true
#define INJECT_DATA	.flags = FI_INJECT | FI_REMOTE_CQ_DATA, .data = data, \
			.quiet = true

#define RECV		WHAT(FI_MSG, FI_RECV)
#define SEND		WHAT(FI_MSG, FI_SEND)

RX_CALL(recv, (P_IN, P_DESC, P_TO, P_CTX), RECV, PLAIN, BUF(DEST), TO)
RX_CALL(recvv, (P_IOV, P_TO, P_CTX), RECV, PLAIN, IOV(DEST), TO)
RX_CALL(recvmsg, (P_MSG), RECV, MSG)
TX_CALL(send, (P_OUT, P_DESC, P_TO, P_CTX), SEND, PLAIN, BUF(SOURCE), TO)
TX_CALL(sendv, (P_IOV, P_TO, P_CTX), SEND, PLAIN, IOV(SOURCE), TO)
TX_CALL(sendmsg, (P_MSG), SEND, MSG, MSG_DATA)
TX_CALL(inject, (P_OUT, P_TO), SEND, INJECT, BUF(SOURCE), TO)
TX_CALL(senddata, (P_OUT, P_DESC, P_DATA, P_TO, P_CTX),
	SEND, PLAIN, DATA, BUF(SOURCE), TO)
TX_CALL(injectdata, (P_OUT, P_DATA, P_TO), SEND, INJECT_DATA, BUF(SOURCE), TO)

const struct fi_ops_msg kofi_msg_calls = {
	.recv		= call_recv,
	.recvv		= call_recvv,
	.recvmsg	= call_recvmsg,
	.send		= call_send,
	.sendv		= call_sendv,
	.sendmsg	= call_sendmsg,
	.inject		= call_inject,
	.senddata	= call_senddata,
	.injectdata	= call_injectdata,
};
EXPORT_SYMBOL_NS_GPL(kofi_msg_calls, KOFI_PROVIDER);

#define TRECV		WHAT(FI_TAGGED, FI_RECV)
#define TSEND		WHAT(FI_TAGGED, FI_SEND)

RX_CALL(trecv, (P_IN, P_DESC, P_TO, P_TAGS, P_CTX), TRECV, PLAIN, BUF(DEST), TO, TAGS)
RX_CALL(trecvv, (P_IOV, P_TO, P_TAGS, P_CTX), TRECV, PLAIN, IOV(DEST), TO, TAGS)
RX_CALL(trecvmsg, (P_TMSG), TRECV, MSG, MSG_TAG, .ignore = msg->ignore)
TX_CALL(tsend, (P_OUT, P_DESC, P_TO, P_TAG, P_CTX),
	TSEND, PLAIN, BUF(SOURCE), TO, TAG)
TX_CALL(tsendv, (P_IOV, P_TO, P_TAG, P_CTX), TSEND, PLAIN, IOV(SOURCE), TO, TAG)
TX_CALL(tsendmsg, (P_TMSG), TSEND, MSG, MSG_TAG, MSG_DATA)
TX_CALL(tinject, (P_OUT, P_TO, P_TAG), TSEND, INJECT, BUF(SOURCE), TO, TAG)
TX_CALL(tsenddata, (P_OUT, P_DESC, P_DATA, P_TO, P_TAG, P_CTX),
	TSEND, PLAIN, DATA, BUF(SOURCE), TO, TAG)
TX_CALL(tinjectdata, (P_OUT, P_DATA, P_TO, P_TAG),
	TSEND, INJECT_DATA, BUF(SOURCE), TO, TAG)

const struct fi_ops_tagged kofi_tagged_calls = {
	.recv		= call_trecv,
	.recvv		= call_trecvv,
	.recvmsg	= call_trecvmsg,
	.send		= call_tsend,
	.sendv		= call_tsendv,
	.sendmsg	= call_tsendmsg,
	.inject		= call_tinject,
	.senddata	= call_tsenddata,
	.injectdata	= call_tinjectdata,
};
EXPORT_SYMBOL_NS_GPL(kofi_tagged_calls, KOFI_PROVIDER);

#define FETCH		WHAT(FI_RMA, FI_READ)
#define STORE		WHAT(FI_RMA, FI_WRITE)

TX_CALL(read, (P_IN, P_DESC, P_TO, P_RMA, P_CTX),
	FETCH, PLAIN, BUF(DEST), TO, RMA(len))
TX_CALL(readv, (P_IOV, P_TO, P_RMA, P_CTX),
	FETCH, PLAIN, IOV(DEST), TO, RMA(kofi_iov_len(iov, count)))
TX_CALL(readmsg, (P_RMSG), FETCH, MSG, MSG_RMA)
TX_CALL(write, (P_OUT, P_DESC, P_TO, P_RMA, P_CTX),
	STORE, PLAIN, BUF(SOURCE), TO, RMA(len))
TX_CALL(writev, (P_IOV, P_TO, P_RMA, P_CTX),
	STORE, PLAIN, IOV(SOURCE), TO, RMA(kofi_iov_len(iov, count)))
TX_CALL(writemsg, (P_RMSG), STORE, MSG, MSG_RMA, MSG_DATA)
TX_CALL(inject_write, (P_OUT, P_TO, P_RMA),
	STORE, INJECT, BUF(SOURCE), TO, RMA(len))
TX_CALL(writedata, (P_OUT, P_DESC, P_DATA, P_TO, P_RMA, P_CTX),
	STORE, PLAIN, DATA, BUF(SOURCE), TO, RMA(len))
TX_CALL(inject_writedata, (P_OUT, P_DATA, P_TO, P_RMA),
	STORE, INJECT_DATA, BUF(SOURCE), TO, RMA(len))

const struct fi_ops_rma kofi_rma_calls = {
	.read		= call_read,
	.readv		= call_readv,
	.readmsg	= call_readmsg,
	.write		= call_write,
	.writev		= call_writev,
	.writemsg	= call_writemsg,
	.inject		= call_inject_write,
	.writedata	= call_writedata,
	.injectdata	= call_inject_writedata,
};
EXPORT_SYMBOL_NS_GPL(kofi_rma_calls, KOFI_PROVIDER);
