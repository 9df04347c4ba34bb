/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Remote memory access: fi_rma(3). */
#ifndef KOFI_RMA_H
#define KOFI_RMA_H

#include <kofi/endpoint.h>

/**
 * struct fi_rma_iov - memory of a peer
 * @addr: remote address: the region's base address plus an offset
 * @len: length in bytes
 * @key: the region's key
 */
struct fi_rma_iov {
	u64	addr;
	size_t	len;
	u64	key;
};

/**
 * struct fi_msg_rma - an RMA operation with flags, fi_rma(3)
 * @msg_iter: the local buffer, as in struct fi_msg
 * @desc: descriptors from fi_mr_desc(), one per segment of @msg_iter, or NULL
 * @addr: the peer
 * @rma_iov: the peer's memory; the array stays valid until the completion
 * @rma_iov_count: number of entries of @rma_iov
 * @context: the caller's context, returned in the completion
 * @data: remote CQ data, with FI_REMOTE_CQ_DATA
 */
struct fi_msg_rma {
	struct iov_iter			msg_iter;
	void				**desc;
	fi_addr_t			addr;
	const struct fi_rma_iov		*rma_iov;
	size_t				rma_iov_count;
	void				*context;
	u64				data;
};

/**
 * struct fi_ops_rma - RMA calls of a provider
 * @read: see fi_read()
 * @readv: see fi_readv()
 * @readmsg: see fi_readmsg()
 * @write: see fi_write()
 * @writev: see fi_writev()
 * @writemsg: see fi_writemsg()
 * @inject: see fi_inject_write()
 * @writedata: see fi_writedata()
 * @injectdata: see fi_inject_writedata()
 *
 * A vector is const and has no NULL members: see struct kofi_req in <kofi/provider.h>.
 */
struct fi_ops_rma {
	ssize_t (*read)(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src_addr, u64 addr, u64 key, void *context);
	ssize_t (*readv)(struct fid_ep *ep, const struct kvec *iov, void **desc,
			 size_t count, fi_addr_t src_addr, u64 addr, u64 key,
			 void *context);
	ssize_t (*readmsg)(struct fid_ep *ep, const struct fi_msg_rma *msg,
			   u64 flags);
	ssize_t (*write)(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t dest_addr, u64 addr, u64 key,
			 void *context);
	ssize_t (*writev)(struct fid_ep *ep, const struct kvec *iov,
			  void **desc, size_t count, fi_addr_t dest_addr,
			  u64 addr, u64 key, void *context);
	ssize_t (*writemsg)(struct fid_ep *ep, const struct fi_msg_rma *msg,
			    u64 flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len,
			  fi_addr_t dest_addr, u64 addr, u64 key);
	ssize_t (*writedata)(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, u64 data, fi_addr_t dest_addr,
			     u64 addr, u64 key, void *context);
	ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len,
			      u64 data, fi_addr_t dest_addr, u64 addr, u64 key);
};

/**
 * fi_read() - read a peer's memory
 * @ep: the endpoint
 * @buf: where the data goes
 * @len: length of @buf in bytes
 * @desc: descriptor from fi_mr_desc(), or NULL: local memory needs no registration
 * @src_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset
 * @key: the remote region's key
 * @context: the caller's context, returned in the completion
 *
 * The buffer stays valid until the completion.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_read(struct fid_ep *ep, void *buf, size_t len,
			      void *desc, fi_addr_t src_addr, u64 addr, u64 key,
			      void *context)
{
	if (!kofi_buf_ok(buf))
		return -EINVAL;
	return ep->rma->read(ep, buf, len, desc, src_addr, addr, key,
					context);
}

/**
 * fi_readv() - read a peer's memory into several segments
 * @ep: the endpoint
 * @iov: segments; they and their array stay valid until the completion
 * @desc: descriptors from fi_mr_desc(), one per segment, or NULL
 * @count: number of segments
 * @src_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset
 * @key: the remote region's key
 * @context: the caller's context, returned in the completion
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_readv(struct fid_ep *ep, const struct kvec *iov,
			       void **desc, size_t count, fi_addr_t src_addr,
			       u64 addr, u64 key, void *context)
{
	return ep->rma->readv(ep, iov, desc, count, src_addr, addr,
					 key, context);
}

/**
 * fi_readmsg() - read a peer's memory, with flags
 * @ep: the endpoint
 * @msg: buffers on both sides, peer and context
 * @flags: operation flags; they replace the endpoint's defaults
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_readmsg(struct fid_ep *ep,
				 const struct fi_msg_rma *msg, u64 flags)
{
	return ep->rma->readmsg(ep, msg, flags);
}

/**
 * fi_write() - write a peer's memory
 * @ep: the endpoint
 * @buf: the data; a kernel address, but not on the stack
 * @len: length of @buf in bytes
 * @desc: descriptor from fi_mr_desc(), or NULL: local memory needs no registration
 * @dest_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset
 * @key: the remote region's key
 * @context: the caller's context, returned in the completion
 *
 * The buffer stays valid until the completion.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_write(struct fid_ep *ep, const void *buf, size_t len,
			       void *desc, fi_addr_t dest_addr, u64 addr,
			       u64 key, void *context)
{
	if (!kofi_buf_ok(buf))
		return -EINVAL;
	return ep->rma->write(ep, buf, len, desc, dest_addr, addr,
					 key, context);
}

/**
 * fi_writev() - write a peer's memory from several segments
 * @ep: the endpoint
 * @iov: segments; they and their array stay valid until the completion
 * @desc: descriptors from fi_mr_desc(), one per segment, or NULL
 * @count: number of segments
 * @dest_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset
 * @key: the remote region's key
 * @context: the caller's context, returned in the completion
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_writev(struct fid_ep *ep, const struct kvec *iov,
				void **desc, size_t count, fi_addr_t dest_addr,
				u64 addr, u64 key, void *context)
{
	return ep->rma->writev(ep, iov, desc, count, dest_addr, addr,
					  key, context);
}

/**
 * fi_writemsg() - write a peer's memory, with flags
 * @ep: the endpoint
 * @msg: buffers on both sides, peer and context
 * @flags: operation flags; they replace the endpoint's defaults
 *
 * With FI_REMOTE_CQ_DATA the peer gets a completion after all data has arrived, even if the
 * provider splits the write.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_writemsg(struct fid_ep *ep,
				  const struct fi_msg_rma *msg, u64 flags)
{
	return ep->rma->writemsg(ep, msg, flags);
}

/**
 * fi_inject_write() - copy a few bytes, and write them to a peer's memory
 * @ep: the endpoint
 * @buf: the data, copied before the call returns
 * @len: length of @buf in bytes
 * @dest_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset
 * @key: the remote region's key
 *
 * There is no completion on success; a failure is reported.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_inject_write(struct fid_ep *ep, const void *buf,
				      size_t len, fi_addr_t dest_addr, u64 addr,
				      u64 key)
{
	return ep->rma->inject(ep, buf, len, dest_addr, addr, key);
}

/**
 * fi_writedata() - write a peer's memory with remote CQ data
 * @ep: the endpoint
 * @buf: the data; a kernel address, but not on the stack
 * @len: length of @buf in bytes
 * @desc: descriptor from fi_mr_desc(), or NULL: local memory needs no registration
 * @data: remote CQ data, as many bytes as the domain's cq_data_size
 * @dest_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset
 * @key: the remote region's key
 * @context: the caller's context, returned in the completion
 *
 * The buffer stays valid until the completion.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_writedata(struct fid_ep *ep, const void *buf,
				   size_t len, void *desc, u64 data,
				   fi_addr_t dest_addr, u64 addr, u64 key,
				   void *context)
{
	if (!kofi_buf_ok(buf))
		return -EINVAL;
	return ep->rma->writedata(ep, buf, len, desc, data,
					     dest_addr, addr, key, context);
}

/**
 * fi_inject_writedata() - fi_inject_write() with remote CQ data
 * @ep: the endpoint
 * @buf: the data, copied before the call returns
 * @len: length of @buf in bytes
 * @data: remote CQ data, as many bytes as the domain's cq_data_size
 * @dest_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset
 * @key: the remote region's key
 *
 * There is no completion on success; a failure is reported.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_inject_writedata(struct fid_ep *ep, const void *buf,
					  size_t len, u64 data,
					  fi_addr_t dest_addr, u64 addr,
					  u64 key)
{
	return ep->rma->injectdata(ep, buf, len, data, dest_addr,
					      addr, key);
}

#endif /* KOFI_RMA_H */
