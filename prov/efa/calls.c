// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Data calls: each says what it wants as a struct kefa_req. Those that plain.c has a
 * shorter way for come here from there.
 */
#include "kefa.h"

/* A buffer in segments, or in one, as an iterator. */
static struct iov_iter kefa_iter(unsigned int direction, const struct kvec *iov,
				 size_t count)
{
	struct iov_iter iter;
	size_t i, len = 0;

	for (i = 0; i < count; i++)
		len += iov[i].iov_len;
	iov_iter_kvec(&iter, direction, iov, count, len);
	return iter;
}

#define KEFA_BUF(dir, buf, len)						\
	kefa_iter(ITER_##dir,						\
		  &(const struct kvec){ (void *)(buf), len }, 1)

static u64 kefa_tx_flags(struct fid_ep *ep)
{
	return READ_ONCE(to_kefa_ep(ep)->tx.op_flags);
}

static u64 kefa_rx_flags(struct fid_ep *ep)
{
	return READ_ONCE(to_kefa_ep(ep)->rx.op_flags);
}

/* A request of each kind; what else it needs follows. */
#define KEFA_RECV(kind, ...)						\
	(&(const struct kefa_req){ .what = (kind) | FI_RECV, __VA_ARGS__ })
#define KEFA_SEND(kind, ...)						\
	(&(const struct kefa_req){ .what = (kind) | FI_SEND, __VA_ARGS__ })
#define KEFA_RMA(dir, ...)						\
	(&(const struct kefa_req){ .what = FI_RMA | (dir), __VA_ARGS__ })

/* The peer's memory of plain calls. */
#define KEFA_REMOTE(n, a, k)						\
	.rma = &(const struct fi_rma_iov){ .addr = a, .len = n, .key = k }, \
	.rma_count = 1

ssize_t kefa_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
		  fi_addr_t src_addr, void *context)
{
	return kefa_rx(ep, KEFA_RECV(FI_MSG,
		.flags = kefa_rx_flags(ep), .iter = KEFA_BUF(DEST, buf, len),
		.context = context));
}

static ssize_t kefa_recvv(struct fid_ep *ep, const struct kvec *iov,
			  void **desc, size_t count, fi_addr_t src_addr,
			  void *context)
{
	return kefa_rx(ep, KEFA_RECV(FI_MSG,
		.flags = kefa_rx_flags(ep),
		.iter = kefa_iter(ITER_DEST, iov, count), .context = context));
}

static ssize_t kefa_recvmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    u64 flags)
{
	return kefa_rx(ep, KEFA_RECV(FI_MSG,
		.flags = flags, .iter = msg->msg_iter,
		.context = msg->context));
}

ssize_t kefa_send(struct fid_ep *ep, const void *buf, size_t len,
		  void *desc, fi_addr_t dest_addr, void *context)
{
	return kefa_tx(ep, KEFA_SEND(FI_MSG,
		.flags = kefa_tx_flags(ep), .iter = KEFA_BUF(SOURCE, buf, len),
		.addr = dest_addr, .context = context));
}

static ssize_t kefa_sendv(struct fid_ep *ep, const struct kvec *iov,
			  void **desc, size_t count, fi_addr_t dest_addr,
			  void *context)
{
	return kefa_tx(ep, KEFA_SEND(FI_MSG,
		.flags = kefa_tx_flags(ep),
		.iter = kefa_iter(ITER_SOURCE, iov, count), .addr = dest_addr,
		.context = context));
}

static ssize_t kefa_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    u64 flags)
{
	return kefa_tx(ep, KEFA_SEND(FI_MSG,
		.flags = flags, .iter = msg->msg_iter, .addr = msg->addr,
		.data = msg->data, .context = msg->context));
}

ssize_t kefa_inject(struct fid_ep *ep, const void *buf, size_t len,
		    fi_addr_t dest_addr)
{
	return kefa_tx(ep, KEFA_SEND(FI_MSG,
		.flags = FI_INJECT, .quiet = true,
		.iter = KEFA_BUF(SOURCE, buf, len), .addr = dest_addr));
}

static ssize_t kefa_senddata(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, u64 data, fi_addr_t dest_addr,
			     void *context)
{
	return kefa_tx(ep, KEFA_SEND(FI_MSG,
		.flags = kefa_tx_flags(ep) | FI_REMOTE_CQ_DATA,
		.iter = KEFA_BUF(SOURCE, buf, len), .addr = dest_addr,
		.data = data, .context = context));
}

static ssize_t kefa_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			       u64 data, fi_addr_t dest_addr)
{
	return kefa_tx(ep, KEFA_SEND(FI_MSG,
		.flags = FI_INJECT | FI_REMOTE_CQ_DATA, .quiet = true,
		.iter = KEFA_BUF(SOURCE, buf, len), .addr = dest_addr,
		.data = data));
}

const struct fi_ops_msg kefa_msg_ops = {
	.recv		= kefa_plain_recv,
	.recvv		= kefa_recvv,
	.recvmsg	= kefa_recvmsg,
	.send		= kefa_plain_send,
	.sendv		= kefa_sendv,
	.sendmsg	= kefa_sendmsg,
	.inject		= kefa_plain_inject,
	.senddata	= kefa_senddata,
	.injectdata	= kefa_injectdata,
};

ssize_t kefa_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
		  fi_addr_t src_addr, u64 addr, u64 key, void *context)
{
	return kefa_tx(ep, KEFA_RMA(FI_READ,
		.flags = kefa_tx_flags(ep) & ~FI_INJECT, .iter = KEFA_BUF(DEST, buf, len),
		.addr = src_addr, KEFA_REMOTE(len, addr, key),
		.context = context));
}

static ssize_t kefa_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			    u64 flags)
{
	return kefa_tx(ep, KEFA_RMA(FI_READ,
		.flags = flags, .iter = msg->msg_iter, .addr = msg->addr,
		.rma = msg->rma_iov, .rma_count = msg->rma_iov_count,
		.context = msg->context));
}

ssize_t kefa_write(struct fid_ep *ep, const void *buf, size_t len,
		   void *desc, fi_addr_t dest_addr, u64 addr, u64 key,
		   void *context)
{
	return kefa_tx(ep, KEFA_RMA(FI_WRITE,
		.flags = kefa_tx_flags(ep), .iter = KEFA_BUF(SOURCE, buf, len),
		.addr = dest_addr, KEFA_REMOTE(len, addr, key),
		.context = context));
}

static ssize_t kefa_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			     u64 flags)
{
	return kefa_tx(ep, KEFA_RMA(FI_WRITE,
		.flags = flags, .iter = msg->msg_iter, .addr = msg->addr,
		.rma = msg->rma_iov, .rma_count = msg->rma_iov_count,
		.data = msg->data, .context = msg->context));
}

static ssize_t kefa_inject_write(struct fid_ep *ep, const void *buf, size_t len,
				 fi_addr_t dest_addr, u64 addr, u64 key)
{
	return kefa_tx(ep, KEFA_RMA(FI_WRITE,
		.flags = FI_INJECT, .quiet = true,
		.iter = KEFA_BUF(SOURCE, buf, len), .addr = dest_addr,
		KEFA_REMOTE(len, addr, key)));
}

static ssize_t kefa_writedata(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, u64 data, fi_addr_t dest_addr,
			      u64 addr, u64 key, void *context)
{
	return kefa_tx(ep, KEFA_RMA(FI_WRITE,
		.flags = kefa_tx_flags(ep) | FI_REMOTE_CQ_DATA,
		.iter = KEFA_BUF(SOURCE, buf, len), .addr = dest_addr,
		KEFA_REMOTE(len, addr, key), .data = data, .context = context));
}

static ssize_t kefa_inject_writedata(struct fid_ep *ep, const void *buf,
				     size_t len, u64 data, fi_addr_t dest_addr,
				     u64 addr, u64 key)
{
	return kefa_tx(ep, KEFA_RMA(FI_WRITE,
		.flags = FI_INJECT | FI_REMOTE_CQ_DATA, .quiet = true,
		.iter = KEFA_BUF(SOURCE, buf, len), .addr = dest_addr,
		KEFA_REMOTE(len, addr, key), .data = data));
}

static ssize_t kefa_readv(struct fid_ep *ep, const struct kvec *iov,
			  void **desc, size_t count, fi_addr_t src_addr,
			  u64 addr, u64 key, void *context)
{
	const struct iov_iter iter = kefa_iter(ITER_DEST, iov, count);

	return kefa_tx(ep, KEFA_RMA(FI_READ,
		.flags = kefa_tx_flags(ep) & ~FI_INJECT, .iter = iter,
		.addr = src_addr,
		KEFA_REMOTE(iov_iter_count(&iter), addr, key),
		.context = context));
}

static ssize_t kefa_writev(struct fid_ep *ep, const struct kvec *iov,
			   void **desc, size_t count, fi_addr_t dest_addr,
			   u64 addr, u64 key, void *context)
{
	const struct iov_iter iter = kefa_iter(ITER_SOURCE, iov, count);

	return kefa_tx(ep, KEFA_RMA(FI_WRITE,
		.flags = kefa_tx_flags(ep), .iter = iter, .addr = dest_addr,
		KEFA_REMOTE(iov_iter_count(&iter), addr, key),
		.context = context));
}

const struct fi_ops_rma kefa_rma_ops = {
	.read		= kefa_plain_read,
	.readv		= kefa_readv,
	.readmsg	= kefa_readmsg,
	.write		= kefa_plain_write,
	.writev		= kefa_writev,
	.writemsg	= kefa_writemsg,
	.inject		= kefa_inject_write,
	.writedata	= kefa_writedata,
	.injectdata	= kefa_inject_writedata,
};
