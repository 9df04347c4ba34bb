// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The data calls of providers that take what a call asks for as a struct kofi_req:
 * one for what is transmitted, one for what is received. A provider that is quicker
 * in some of them has calls of its own for these.
 */
#include <linux/uio.h>
#include "kofi.h"

/* A buffer in segments, or in one, as an iterator. */
static struct iov_iter kofi_iter(unsigned int direction, const struct kvec *iov,
				 size_t count)
{
	struct iov_iter iter;
	size_t i, len = 0;

	for (i = 0; i < count; i++)
		len += iov[i].iov_len;
	iov_iter_kvec(&iter, direction, iov, count, len);
	return iter;
}

#define KVEC(buf, len)	&(const struct kvec){ (void *)(buf), len }

/* Where the data is, with a call's own parameters. */
#define BUF(dir)	.iter = kofi_iter(ITER_##dir, KVEC(buf, len), 1)
#define IOV(dir)	.iter = kofi_iter(ITER_##dir, iov, count)
#define MSG		.iter = msg->msg_iter, .context = msg->context

/* The peer's memory of calls that name no more than one piece. */
#define REMOTE(n)							\
	.rma = &(const struct fi_rma_iov){ .addr = addr, .len = n, .key = key }, \
	.rma_count = 1
#define REMOTES		.rma = msg->rma_iov, .rma_count = msg->rma_iov_count

#define TX(...)	ep->calls->tx(ep, &(struct kofi_req){ __VA_ARGS__ })
#define RX(...)	ep->calls->rx(ep, &(struct kofi_req){ __VA_ARGS__ })

/* What isn't said for the one call is the endpoint's to say. */
#define SEND(kind, ...)	TX(.what = (kind) | FI_SEND, __VA_ARGS__)
#define RECV(kind, ...)	RX(.what = (kind) | FI_RECV, __VA_ARGS__)
#define RMA(dir, ...)	TX(.what = FI_RMA | (dir), __VA_ARGS__)
#define PLAIN		.defaults = true, .context = context
#define DATA		.flags = FI_REMOTE_CQ_DATA, .data = data
#define INJECT		.flags = FI_INJECT, .quiet = true
#define INJECT_DATA	.flags = FI_INJECT | FI_REMOTE_CQ_DATA, .quiet = true, \
			.data = data

static ssize_t call_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			 fi_addr_t src_addr, void *context)
{
	return RECV(FI_MSG, PLAIN, BUF(DEST));
}

static ssize_t call_recvv(struct fid_ep *ep, const struct kvec *iov,
			  void **desc, size_t count, fi_addr_t src_addr,
			  void *context)
{
	return RECV(FI_MSG, PLAIN, IOV(DEST));
}

static ssize_t call_recvmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    u64 flags)
{
	return RECV(FI_MSG, MSG, .flags = flags);
}

static ssize_t call_send(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t dest_addr, void *context)
{
	return SEND(FI_MSG, PLAIN, BUF(SOURCE), .addr = dest_addr);
}

static ssize_t call_sendv(struct fid_ep *ep, const struct kvec *iov,
			  void **desc, size_t count, fi_addr_t dest_addr,
			  void *context)
{
	return SEND(FI_MSG, PLAIN, IOV(SOURCE), .addr = dest_addr);
}

static ssize_t call_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    u64 flags)
{
	return SEND(FI_MSG, MSG, .flags = flags, .addr = msg->addr,
		    .data = msg->data);
}

static ssize_t call_inject(struct fid_ep *ep, const void *buf, size_t len,
			   fi_addr_t dest_addr)
{
	return SEND(FI_MSG, INJECT, BUF(SOURCE), .addr = dest_addr);
}

static ssize_t call_senddata(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, u64 data, fi_addr_t dest_addr,
			     void *context)
{
	return SEND(FI_MSG, PLAIN, DATA, BUF(SOURCE), .addr = dest_addr);
}

static ssize_t call_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			       u64 data, fi_addr_t dest_addr)
{
	return SEND(FI_MSG, INJECT_DATA, BUF(SOURCE), .addr = dest_addr);
}

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

static ssize_t call_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			  fi_addr_t src_addr, u64 tag, u64 ignore,
			  void *context)
{
	return RECV(FI_TAGGED, PLAIN, BUF(DEST), .tag = tag, .ignore = ignore);
}

static ssize_t call_trecvv(struct fid_ep *ep, const struct kvec *iov,
			   void **desc, size_t count, fi_addr_t src_addr,
			   u64 tag, u64 ignore, void *context)
{
	return RECV(FI_TAGGED, PLAIN, IOV(DEST), .tag = tag, .ignore = ignore);
}

static ssize_t call_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			     u64 flags)
{
	return RECV(FI_TAGGED, MSG, .flags = flags, .tag = msg->tag,
		    .ignore = msg->ignore);
}

static ssize_t call_tsend(struct fid_ep *ep, const void *buf, size_t len,
			  void *desc, fi_addr_t dest_addr, u64 tag,
			  void *context)
{
	return SEND(FI_TAGGED, PLAIN, BUF(SOURCE), .addr = dest_addr, .tag = tag);
}

static ssize_t call_tsendv(struct fid_ep *ep, const struct kvec *iov,
			   void **desc, size_t count, fi_addr_t dest_addr,
			   u64 tag, void *context)
{
	return SEND(FI_TAGGED, PLAIN, IOV(SOURCE), .addr = dest_addr, .tag = tag);
}

static ssize_t call_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			     u64 flags)
{
	return SEND(FI_TAGGED, MSG, .flags = flags, .addr = msg->addr,
		    .tag = msg->tag, .data = msg->data);
}

static ssize_t call_tinject(struct fid_ep *ep, const void *buf, size_t len,
			    fi_addr_t dest_addr, u64 tag)
{
	return SEND(FI_TAGGED, INJECT, BUF(SOURCE), .addr = dest_addr,
		    .tag = tag);
}

static ssize_t call_tsenddata(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, u64 data, fi_addr_t dest_addr,
			      u64 tag, void *context)
{
	return SEND(FI_TAGGED, PLAIN, DATA, BUF(SOURCE), .addr = dest_addr,
		    .tag = tag);
}

static ssize_t call_tinjectdata(struct fid_ep *ep, const void *buf, size_t len,
				u64 data, fi_addr_t dest_addr, u64 tag)
{
	return SEND(FI_TAGGED, INJECT_DATA, BUF(SOURCE), .addr = dest_addr,
		    .tag = tag);
}

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

static ssize_t call_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
			 fi_addr_t src_addr, u64 addr, u64 key, void *context)
{
	return RMA(FI_READ, PLAIN, BUF(DEST), REMOTE(len), .addr = src_addr);
}

static ssize_t call_readv(struct fid_ep *ep, const struct kvec *iov,
			  void **desc, size_t count, fi_addr_t src_addr,
			  u64 addr, u64 key, void *context)
{
	const struct iov_iter iter = kofi_iter(ITER_DEST, iov, count);

	return RMA(FI_READ, PLAIN, .iter = iter, REMOTE(iov_iter_count(&iter)),
		   .addr = src_addr);
}

static ssize_t call_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			    u64 flags)
{
	return RMA(FI_READ, MSG, REMOTES, .flags = flags, .addr = msg->addr);
}

static ssize_t call_write(struct fid_ep *ep, const void *buf, size_t len,
			  void *desc, fi_addr_t dest_addr, u64 addr, u64 key,
			  void *context)
{
	return RMA(FI_WRITE, PLAIN, BUF(SOURCE), REMOTE(len), .addr = dest_addr);
}

static ssize_t call_writev(struct fid_ep *ep, const struct kvec *iov,
			   void **desc, size_t count, fi_addr_t dest_addr,
			   u64 addr, u64 key, void *context)
{
	const struct iov_iter iter = kofi_iter(ITER_SOURCE, iov, count);

	return RMA(FI_WRITE, PLAIN, .iter = iter, REMOTE(iov_iter_count(&iter)),
		   .addr = dest_addr);
}

static ssize_t call_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			     u64 flags)
{
	return RMA(FI_WRITE, MSG, REMOTES, .flags = flags, .addr = msg->addr,
		   .data = msg->data);
}

static ssize_t call_inject_write(struct fid_ep *ep, const void *buf, size_t len,
				 fi_addr_t dest_addr, u64 addr, u64 key)
{
	return RMA(FI_WRITE, INJECT, BUF(SOURCE), REMOTE(len),
		   .addr = dest_addr);
}

static ssize_t call_writedata(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, u64 data, fi_addr_t dest_addr,
			      u64 addr, u64 key, void *context)
{
	return RMA(FI_WRITE, PLAIN, DATA, BUF(SOURCE), REMOTE(len),
		   .addr = dest_addr);
}

static ssize_t call_inject_writedata(struct fid_ep *ep, const void *buf,
				     size_t len, u64 data, fi_addr_t dest_addr,
				     u64 addr, u64 key)
{
	return RMA(FI_WRITE, INJECT_DATA, BUF(SOURCE), REMOTE(len),
		   .addr = dest_addr);
}

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
