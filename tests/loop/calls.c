// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Data calls: each says what it wants as a struct loop_req. */
#include "loop.h"

/* A buffer in segments, or in one, as an iterator. */
static struct iov_iter loop_iter(unsigned int direction, const struct kvec *iov,
				 size_t count)
{
	struct iov_iter iter;
	size_t i, len = 0;

	for (i = 0; i < count; i++)
		len += iov[i].iov_len;
	iov_iter_kvec(&iter, direction, iov, count, len);
	return iter;
}

#define LOOP_BUF(dir, buf, len)						\
	loop_iter(ITER_##dir,						\
		  &(const struct kvec){ (void *)(buf), len }, 1)

static u64 loop_tx_flags(struct fid_ep *ep)
{
	return READ_ONCE(to_loop_ep(ep)->tx.op_flags);
}

static u64 loop_rx_flags(struct fid_ep *ep)
{
	return READ_ONCE(to_loop_ep(ep)->rx.op_flags);
}

/* A request of each kind; what else it needs follows. */
#define LOOP_RECV(kind, ...)						\
	(&(const struct loop_req){ .what = (kind) | FI_RECV, __VA_ARGS__ })
#define LOOP_SEND(kind, ...)						\
	(&(const struct loop_req){ .what = (kind) | FI_SEND, __VA_ARGS__ })
#define LOOP_RMA(dir, ...)						\
	(&(const struct loop_req){ .what = FI_RMA | (dir), __VA_ARGS__ })

/* The peer's memory of plain calls. */
#define LOOP_REMOTE(n, a, k)						\
	.rma = &(const struct fi_rma_iov){ .addr = a, .len = n, .key = k }, \
	.rma_count = 1

static ssize_t loop_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			 fi_addr_t src_addr, void *context)
{
	return loop_rx(ep, LOOP_RECV(FI_MSG,
		.flags = loop_rx_flags(ep), .iter = LOOP_BUF(DEST, buf, len),
		.context = context));
}

static ssize_t loop_recvv(struct fid_ep *ep, const struct kvec *iov,
			  void **desc, size_t count, fi_addr_t src_addr,
			  void *context)
{
	return loop_rx(ep, LOOP_RECV(FI_MSG,
		.flags = loop_rx_flags(ep),
		.iter = loop_iter(ITER_DEST, iov, count), .context = context));
}

static ssize_t loop_recvmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    u64 flags)
{
	return loop_rx(ep, LOOP_RECV(FI_MSG,
		.flags = flags, .iter = msg->msg_iter,
		.context = msg->context));
}

static ssize_t loop_send(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t dest_addr, void *context)
{
	return loop_tx(ep, LOOP_SEND(FI_MSG,
		.flags = loop_tx_flags(ep), .iter = LOOP_BUF(SOURCE, buf, len),
		.addr = dest_addr, .context = context));
}

static ssize_t loop_sendv(struct fid_ep *ep, const struct kvec *iov,
			  void **desc, size_t count, fi_addr_t dest_addr,
			  void *context)
{
	return loop_tx(ep, LOOP_SEND(FI_MSG,
		.flags = loop_tx_flags(ep),
		.iter = loop_iter(ITER_SOURCE, iov, count), .addr = dest_addr,
		.context = context));
}

static ssize_t loop_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    u64 flags)
{
	return loop_tx(ep, LOOP_SEND(FI_MSG,
		.flags = flags, .iter = msg->msg_iter, .addr = msg->addr,
		.data = msg->data, .context = msg->context));
}

static ssize_t loop_inject(struct fid_ep *ep, const void *buf, size_t len,
			   fi_addr_t dest_addr)
{
	return loop_tx(ep, LOOP_SEND(FI_MSG,
		.flags = FI_INJECT, .quiet = true,
		.iter = LOOP_BUF(SOURCE, buf, len), .addr = dest_addr));
}

static ssize_t loop_senddata(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, u64 data, fi_addr_t dest_addr,
			     void *context)
{
	return loop_tx(ep, LOOP_SEND(FI_MSG,
		.flags = loop_tx_flags(ep) | FI_REMOTE_CQ_DATA,
		.iter = LOOP_BUF(SOURCE, buf, len), .addr = dest_addr,
		.data = data, .context = context));
}

static ssize_t loop_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			       u64 data, fi_addr_t dest_addr)
{
	return loop_tx(ep, LOOP_SEND(FI_MSG,
		.flags = FI_INJECT | FI_REMOTE_CQ_DATA, .quiet = true,
		.iter = LOOP_BUF(SOURCE, buf, len), .addr = dest_addr,
		.data = data));
}

const struct fi_ops_msg loop_msg_ops = {
	.recv		= loop_recv,
	.recvv		= loop_recvv,
	.recvmsg	= loop_recvmsg,
	.send		= loop_send,
	.sendv		= loop_sendv,
	.sendmsg	= loop_sendmsg,
	.inject		= loop_inject,
	.senddata	= loop_senddata,
	.injectdata	= loop_injectdata,
};

static ssize_t loop_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			  fi_addr_t src_addr, u64 tag, u64 ignore,
			  void *context)
{
	return loop_rx(ep, LOOP_RECV(FI_TAGGED,
		.flags = loop_rx_flags(ep), .iter = LOOP_BUF(DEST, buf, len),
		.tag = tag, .ignore = ignore, .context = context));
}

static ssize_t loop_trecvv(struct fid_ep *ep, const struct kvec *iov,
			   void **desc, size_t count, fi_addr_t src_addr,
			   u64 tag, u64 ignore, void *context)
{
	return loop_rx(ep, LOOP_RECV(FI_TAGGED,
		.flags = loop_rx_flags(ep),
		.iter = loop_iter(ITER_DEST, iov, count), .tag = tag,
		.ignore = ignore, .context = context));
}

static ssize_t loop_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			     u64 flags)
{
	return loop_rx(ep, LOOP_RECV(FI_TAGGED,
		.flags = flags, .iter = msg->msg_iter, .tag = msg->tag,
		.ignore = msg->ignore, .context = msg->context));
}

static ssize_t loop_tsend(struct fid_ep *ep, const void *buf, size_t len,
			  void *desc, fi_addr_t dest_addr, u64 tag,
			  void *context)
{
	return loop_tx(ep, LOOP_SEND(FI_TAGGED,
		.flags = loop_tx_flags(ep), .iter = LOOP_BUF(SOURCE, buf, len),
		.addr = dest_addr, .tag = tag, .context = context));
}

static ssize_t loop_tsendv(struct fid_ep *ep, const struct kvec *iov,
			   void **desc, size_t count, fi_addr_t dest_addr,
			   u64 tag, void *context)
{
	return loop_tx(ep, LOOP_SEND(FI_TAGGED,
		.flags = loop_tx_flags(ep),
		.iter = loop_iter(ITER_SOURCE, iov, count), .addr = dest_addr,
		.tag = tag, .context = context));
}

static ssize_t loop_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			     u64 flags)
{
	return loop_tx(ep, LOOP_SEND(FI_TAGGED,
		.flags = flags, .iter = msg->msg_iter, .addr = msg->addr,
		.tag = msg->tag, .data = msg->data, .context = msg->context));
}

static ssize_t loop_tinject(struct fid_ep *ep, const void *buf, size_t len,
			    fi_addr_t dest_addr, u64 tag)
{
	return loop_tx(ep, LOOP_SEND(FI_TAGGED,
		.flags = FI_INJECT, .quiet = true,
		.iter = LOOP_BUF(SOURCE, buf, len), .addr = dest_addr,
		.tag = tag));
}

static ssize_t loop_tsenddata(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, u64 data, fi_addr_t dest_addr,
			      u64 tag, void *context)
{
	return loop_tx(ep, LOOP_SEND(FI_TAGGED,
		.flags = loop_tx_flags(ep) | FI_REMOTE_CQ_DATA,
		.iter = LOOP_BUF(SOURCE, buf, len), .addr = dest_addr,
		.tag = tag, .data = data, .context = context));
}

static ssize_t loop_tinjectdata(struct fid_ep *ep, const void *buf, size_t len,
				u64 data, fi_addr_t dest_addr, u64 tag)
{
	return loop_tx(ep, LOOP_SEND(FI_TAGGED,
		.flags = FI_INJECT | FI_REMOTE_CQ_DATA, .quiet = true,
		.iter = LOOP_BUF(SOURCE, buf, len), .addr = dest_addr,
		.tag = tag, .data = data));
}

const struct fi_ops_tagged loop_tagged_ops = {
	.recv		= loop_trecv,
	.recvv		= loop_trecvv,
	.recvmsg	= loop_trecvmsg,
	.send		= loop_tsend,
	.sendv		= loop_tsendv,
	.sendmsg	= loop_tsendmsg,
	.inject		= loop_tinject,
	.senddata	= loop_tsenddata,
	.injectdata	= loop_tinjectdata,
};

static ssize_t loop_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
			 fi_addr_t src_addr, u64 addr, u64 key, void *context)
{
	return loop_tx(ep, LOOP_RMA(FI_READ,
		.flags = loop_tx_flags(ep), .iter = LOOP_BUF(DEST, buf, len),
		.addr = src_addr, LOOP_REMOTE(len, addr, key),
		.context = context));
}

static ssize_t loop_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			    u64 flags)
{
	return loop_tx(ep, LOOP_RMA(FI_READ,
		.flags = flags, .iter = msg->msg_iter, .addr = msg->addr,
		.rma = msg->rma_iov, .rma_count = msg->rma_iov_count,
		.context = msg->context));
}

static ssize_t loop_write(struct fid_ep *ep, const void *buf, size_t len,
			  void *desc, fi_addr_t dest_addr, u64 addr, u64 key,
			  void *context)
{
	return loop_tx(ep, LOOP_RMA(FI_WRITE,
		.flags = loop_tx_flags(ep), .iter = LOOP_BUF(SOURCE, buf, len),
		.addr = dest_addr, LOOP_REMOTE(len, addr, key),
		.context = context));
}

static ssize_t loop_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			     u64 flags)
{
	return loop_tx(ep, LOOP_RMA(FI_WRITE,
		.flags = flags, .iter = msg->msg_iter, .addr = msg->addr,
		.rma = msg->rma_iov, .rma_count = msg->rma_iov_count,
		.data = msg->data, .context = msg->context));
}

static ssize_t loop_inject_write(struct fid_ep *ep, const void *buf, size_t len,
				 fi_addr_t dest_addr, u64 addr, u64 key)
{
	return loop_tx(ep, LOOP_RMA(FI_WRITE,
		.flags = FI_INJECT, .quiet = true,
		.iter = LOOP_BUF(SOURCE, buf, len), .addr = dest_addr,
		LOOP_REMOTE(len, addr, key)));
}

static ssize_t loop_writedata(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, u64 data, fi_addr_t dest_addr,
			      u64 addr, u64 key, void *context)
{
	return loop_tx(ep, LOOP_RMA(FI_WRITE,
		.flags = loop_tx_flags(ep) | FI_REMOTE_CQ_DATA,
		.iter = LOOP_BUF(SOURCE, buf, len), .addr = dest_addr,
		LOOP_REMOTE(len, addr, key), .data = data, .context = context));
}

static ssize_t loop_inject_writedata(struct fid_ep *ep, const void *buf,
				     size_t len, u64 data, fi_addr_t dest_addr,
				     u64 addr, u64 key)
{
	return loop_tx(ep, LOOP_RMA(FI_WRITE,
		.flags = FI_INJECT | FI_REMOTE_CQ_DATA, .quiet = true,
		.iter = LOOP_BUF(SOURCE, buf, len), .addr = dest_addr,
		LOOP_REMOTE(len, addr, key), .data = data));
}

static ssize_t loop_readv(struct fid_ep *ep, const struct kvec *iov,
			  void **desc, size_t count, fi_addr_t src_addr,
			  u64 addr, u64 key, void *context)
{
	const struct iov_iter iter = loop_iter(ITER_DEST, iov, count);

	return loop_tx(ep, LOOP_RMA(FI_READ,
		.flags = loop_tx_flags(ep), .iter = iter, .addr = src_addr,
		LOOP_REMOTE(iov_iter_count(&iter), addr, key),
		.context = context));
}

static ssize_t loop_writev(struct fid_ep *ep, const struct kvec *iov,
			   void **desc, size_t count, fi_addr_t dest_addr,
			   u64 addr, u64 key, void *context)
{
	const struct iov_iter iter = loop_iter(ITER_SOURCE, iov, count);

	return loop_tx(ep, LOOP_RMA(FI_WRITE,
		.flags = loop_tx_flags(ep), .iter = iter, .addr = dest_addr,
		LOOP_REMOTE(iov_iter_count(&iter), addr, key),
		.context = context));
}

const struct fi_ops_rma loop_rma_ops = {
	.read		= loop_read,
	.readv		= loop_readv,
	.readmsg	= loop_readmsg,
	.write		= loop_write,
	.writev		= loop_writev,
	.writemsg	= loop_writemsg,
	.inject		= loop_inject_write,
	.writedata	= loop_writedata,
	.injectdata	= loop_inject_writedata,
};
