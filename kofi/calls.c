// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Request-forming data calls. Each puts its arguments into a struct kofi_req, which it
 * passes to the provider's tx or rx function. The const op vectors of a provider name these
 * calls wherever the provider has no faster function.
 */
#include <linux/overflow.h>
#include <linux/uio.h>
#include "kofi.h"

/* An overflowing sum becomes SIZE_MAX, which every provider refuses as too long. */
static size_t kofi_iov_len(const struct kvec *iov, size_t count)
{
	size_t i, len = 0;

	for (i = 0; i < count; i++)
		len = size_add(len, iov[i].iov_len);
	return len;
}

/* Receives go to rx, all other requests to tx. @req->what is a constant for the compiler. */
static __always_inline ssize_t kofi_req_post(struct fid_ep *ep, struct kofi_req *req)
{
	return req->what & FI_RECV ? ep->req->rx(ep, req) : ep->req->tx(ep, req);
}

static __always_inline ssize_t kofi_req_iov(struct fid_ep *ep, struct kofi_req *req,
					    const struct kvec *iov, void **desc, size_t count)
{
	const bool in = req->what & (FI_RECV | FI_READ);

	iov_iter_kvec(&req->iter, in ? ITER_DEST : ITER_SOURCE, iov, count,
		      kofi_iov_len(iov, count));
	req->desc = desc;
	return kofi_req_post(ep, req);
}

static __always_inline ssize_t kofi_req_buf(struct fid_ep *ep, struct kofi_req *req,
					    const void *buf, size_t len, void **desc)
{
	const struct kvec iov = { (void *)buf, len };

	return kofi_req_iov(ep, req, &iov, desc, 1);
}

/* The peer's memory is one segment with the length of the local buffer. */
static __always_inline ssize_t kofi_req_rma_iov(struct fid_ep *ep, struct kofi_req *req,
						const struct kvec *iov, void **desc,
						size_t count, u64 addr, u64 key)
{
	const struct fi_rma_iov rma = { addr, kofi_iov_len(iov, count), key };

	req->rma = &rma;
	req->rma_count = 1;
	return kofi_req_iov(ep, req, iov, desc, count);
}

static __always_inline ssize_t kofi_req_rma_buf(struct fid_ep *ep, struct kofi_req *req,
						const void *buf, size_t len, void **desc,
						u64 addr, u64 key)
{
	const struct kvec iov = { (void *)buf, len };

	return kofi_req_rma_iov(ep, req, &iov, desc, 1, addr, key);
}

/* Define and export the data call @name, whose body is the remaining arguments. */
#define KOFI_OP(name, params, ...)					\
ssize_t name params							\
{									\
	return __VA_ARGS__;						\
}									\
EXPORT_SYMBOL_NS_GPL(name, KOFI_PROVIDER)

/* Requests of calls without flags, of inject calls, and of calls with a message and flags. */
#define REQ(kind, op_flags, peer, ...)					\
	(&(struct kofi_req) { .what = kind, .flags = op_flags, .defaults = true, \
			      .addr = peer, .context = context, ##__VA_ARGS__ })
#define QUIET(kind, op_flags, ...)					\
	(&(struct kofi_req) { .what = kind, .flags = FI_INJECT | (op_flags), \
			      .quiet = true, .addr = dest, ##__VA_ARGS__ })
#define MSG(kind, ...)							\
	(&(struct kofi_req) { .what = kind, .flags = flags, .iter = msg->msg_iter, \
			      .desc = msg->desc, .addr = msg->addr,	\
			      .context = msg->context, ##__VA_ARGS__ })

KOFI_OP(kofi_req_recv,
	(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, void *context),
	kofi_req_buf(ep, REQ(FI_MSG | FI_RECV, 0, src), buf, len, &desc));
KOFI_OP(kofi_req_recvv,
	(struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count, fi_addr_t src,
	 void *context),
	kofi_req_iov(ep, REQ(FI_MSG | FI_RECV, 0, src), iov, desc, count));
KOFI_OP(kofi_req_recvmsg,
	(struct fid_ep *ep, const struct fi_msg *msg, u64 flags),
	kofi_req_post(ep, MSG(FI_MSG | FI_RECV)));
KOFI_OP(kofi_req_send,
	(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest, void *context),
	kofi_req_buf(ep, REQ(FI_MSG | FI_SEND, 0, dest), buf, len, &desc));
KOFI_OP(kofi_req_sendv,
	(struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count, fi_addr_t dest,
	 void *context),
	kofi_req_iov(ep, REQ(FI_MSG | FI_SEND, 0, dest), iov, desc, count));
KOFI_OP(kofi_req_sendmsg,
	(struct fid_ep *ep, const struct fi_msg *msg, u64 flags),
	kofi_req_post(ep, MSG(FI_MSG | FI_SEND, .data = msg->data)));
KOFI_OP(kofi_req_inject,
	(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest),
	kofi_req_buf(ep, QUIET(FI_MSG | FI_SEND, 0), buf, len, NULL));
KOFI_OP(kofi_req_senddata,
	(struct fid_ep *ep, const void *buf, size_t len, void *desc, u64 data, fi_addr_t dest,
	 void *context),
	kofi_req_buf(ep, REQ(FI_MSG | FI_SEND, FI_REMOTE_CQ_DATA, dest, .data = data), buf, len,
		     &desc));
KOFI_OP(kofi_req_injectdata,
	(struct fid_ep *ep, const void *buf, size_t len, u64 data, fi_addr_t dest),
	kofi_req_buf(ep, QUIET(FI_MSG | FI_SEND, FI_REMOTE_CQ_DATA, .data = data), buf, len, NULL));

const struct fi_ops_msg kofi_req_msg_ops = {
	.recv		= kofi_req_recv,
	.recvv		= kofi_req_recvv,
	.recvmsg	= kofi_req_recvmsg,
	.send		= kofi_req_send,
	.sendv		= kofi_req_sendv,
	.sendmsg	= kofi_req_sendmsg,
	.inject		= kofi_req_inject,
	.senddata	= kofi_req_senddata,
	.injectdata	= kofi_req_injectdata,
};
EXPORT_SYMBOL_NS_GPL(kofi_req_msg_ops, KOFI_PROVIDER);

KOFI_OP(kofi_req_trecv,
	(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, u64 tag, u64 ignore,
	 void *context),
	kofi_req_buf(ep, REQ(FI_TAGGED | FI_RECV, 0, src, .tag = tag, .ignore = ignore), buf, len,
		     &desc));
KOFI_OP(kofi_req_trecvv,
	(struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count, fi_addr_t src,
	 u64 tag, u64 ignore, void *context),
	kofi_req_iov(ep, REQ(FI_TAGGED | FI_RECV, 0, src, .tag = tag, .ignore = ignore), iov, desc,
		     count));
KOFI_OP(kofi_req_trecvmsg,
	(struct fid_ep *ep, const struct fi_msg_tagged *msg, u64 flags),
	kofi_req_post(ep, MSG(FI_TAGGED | FI_RECV, .tag = msg->tag, .ignore = msg->ignore)));
KOFI_OP(kofi_req_recv_tag,
	(struct fid_ep *ep, void *buf, size_t len, u64 tag, void *context),
	kofi_req_buf(ep, REQ(FI_TAGGED | FI_RECV, 0, FI_ADDR_UNSPEC, .tag = tag), buf, len, NULL));
KOFI_OP(kofi_req_tsend,
	(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest, u64 tag,
	 void *context),
	kofi_req_buf(ep, REQ(FI_TAGGED | FI_SEND, 0, dest, .tag = tag), buf, len, &desc));
KOFI_OP(kofi_req_tsendv,
	(struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count, fi_addr_t dest,
	 u64 tag, void *context),
	kofi_req_iov(ep, REQ(FI_TAGGED | FI_SEND, 0, dest, .tag = tag), iov, desc, count));
KOFI_OP(kofi_req_tsendmsg,
	(struct fid_ep *ep, const struct fi_msg_tagged *msg, u64 flags),
	kofi_req_post(ep, MSG(FI_TAGGED | FI_SEND, .data = msg->data, .tag = msg->tag)));
KOFI_OP(kofi_req_tinject,
	(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, u64 tag),
	kofi_req_buf(ep, QUIET(FI_TAGGED | FI_SEND, 0, .tag = tag), buf, len, NULL));
KOFI_OP(kofi_req_tsenddata,
	(struct fid_ep *ep, const void *buf, size_t len, void *desc, u64 data, fi_addr_t dest,
	 u64 tag, void *context),
	kofi_req_buf(ep, REQ(FI_TAGGED | FI_SEND, FI_REMOTE_CQ_DATA, dest, .data = data,
			     .tag = tag), buf, len, &desc));
KOFI_OP(kofi_req_tinjectdata,
	(struct fid_ep *ep, const void *buf, size_t len, u64 data, fi_addr_t dest, u64 tag),
	kofi_req_buf(ep, QUIET(FI_TAGGED | FI_SEND, FI_REMOTE_CQ_DATA, .data = data, .tag = tag),
		     buf, len, NULL));

const struct fi_ops_tagged kofi_req_tagged_ops = {
	.recv		= kofi_req_trecv,
	.recvv		= kofi_req_trecvv,
	.recvmsg	= kofi_req_trecvmsg,
	.send		= kofi_req_tsend,
	.sendv		= kofi_req_tsendv,
	.sendmsg	= kofi_req_tsendmsg,
	.inject		= kofi_req_tinject,
	.senddata	= kofi_req_tsenddata,
	.injectdata	= kofi_req_tinjectdata,
};
EXPORT_SYMBOL_NS_GPL(kofi_req_tagged_ops, KOFI_PROVIDER);

KOFI_OP(kofi_req_read,
	(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, u64 addr, u64 key,
	 void *context),
	kofi_req_rma_buf(ep, REQ(FI_RMA | FI_READ, 0, src), buf, len, &desc, addr, key));
KOFI_OP(kofi_req_readv,
	(struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count, fi_addr_t src,
	 u64 addr, u64 key, void *context),
	kofi_req_rma_iov(ep, REQ(FI_RMA | FI_READ, 0, src), iov, desc, count, addr, key));
KOFI_OP(kofi_req_readmsg,
	(struct fid_ep *ep, const struct fi_msg_rma *msg, u64 flags),
	kofi_req_post(ep, MSG(FI_RMA | FI_READ, .rma = msg->rma_iov,
			      .rma_count = msg->rma_iov_count)));
KOFI_OP(kofi_req_write,
	(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest, u64 addr,
	 u64 key, void *context),
	kofi_req_rma_buf(ep, REQ(FI_RMA | FI_WRITE, 0, dest), buf, len, &desc, addr, key));
KOFI_OP(kofi_req_writev,
	(struct fid_ep *ep, const struct kvec *iov, void **desc, size_t count, fi_addr_t dest,
	 u64 addr, u64 key, void *context),
	kofi_req_rma_iov(ep, REQ(FI_RMA | FI_WRITE, 0, dest), iov, desc, count, addr, key));
KOFI_OP(kofi_req_writemsg,
	(struct fid_ep *ep, const struct fi_msg_rma *msg, u64 flags),
	kofi_req_post(ep, MSG(FI_RMA | FI_WRITE, .rma = msg->rma_iov,
			      .rma_count = msg->rma_iov_count, .data = msg->data)));
KOFI_OP(kofi_req_inject_write,
	(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, u64 addr, u64 key),
	kofi_req_rma_buf(ep, QUIET(FI_RMA | FI_WRITE, 0), buf, len, NULL, addr, key));
KOFI_OP(kofi_req_writedata,
	(struct fid_ep *ep, const void *buf, size_t len, void *desc, u64 data, fi_addr_t dest,
	 u64 addr, u64 key, void *context),
	kofi_req_rma_buf(ep, REQ(FI_RMA | FI_WRITE, FI_REMOTE_CQ_DATA, dest, .data = data), buf,
			 len, &desc, addr, key));
KOFI_OP(kofi_req_inject_writedata,
	(struct fid_ep *ep, const void *buf, size_t len, u64 data, fi_addr_t dest, u64 addr,
	 u64 key),
	kofi_req_rma_buf(ep, QUIET(FI_RMA | FI_WRITE, FI_REMOTE_CQ_DATA, .data = data), buf, len,
			 NULL, addr, key));

const struct fi_ops_rma kofi_req_rma_ops = {
	.read		= kofi_req_read,
	.readv		= kofi_req_readv,
	.readmsg	= kofi_req_readmsg,
	.write		= kofi_req_write,
	.writev		= kofi_req_writev,
	.writemsg	= kofi_req_writemsg,
	.inject		= kofi_req_inject_write,
	.writedata	= kofi_req_writedata,
	.injectdata	= kofi_req_inject_writedata,
};
EXPORT_SYMBOL_NS_GPL(kofi_req_rma_ops, KOFI_PROVIDER);

static int kofi_mr_no_reg(struct fid_mr *mr, const struct fi_mr_attr *attr, u64 flags)
{
	return -EOPNOTSUPP;
}

static int kofi_mr_no_inval(struct fid_mr *mr, u64 flags, void *context)
{
	return -EOPNOTSUPP;
}

const struct fi_ops_mr kofi_mr_no_ops = {
	.post_reg	= kofi_mr_no_reg,
	.post_inval	= kofi_mr_no_inval,
};
EXPORT_SYMBOL_NS_GPL(kofi_mr_no_ops, KOFI_PROVIDER);
