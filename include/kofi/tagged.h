/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tagged messages: fi_tagged(3). */
#ifndef KOFI_TAGGED_H
#define KOFI_TAGGED_H

#include <kofi/endpoint.h>

/**
 * struct fi_msg_tagged - a tagged message to be sent or received with flags
 * @msg_iter: the buffer, as in struct fi_msg
 * @desc: descriptors from fi_mr_desc(), one per segment of @msg_iter, or NULL
 * @addr: the peer
 * @tag: the tag
 * @ignore: bits of the tag that a receive ignores
 * @context: the caller's context, returned in the completion
 * @data: remote CQ data, with FI_REMOTE_CQ_DATA
 */
struct fi_msg_tagged {
	struct iov_iter	msg_iter;
	void		**desc;
	fi_addr_t	addr;
	u64		tag;
	u64		ignore;
	void		*context;
	u64		data;
};

/**
 * struct fi_ops_tagged - tagged message calls of a provider
 * @recv: see fi_trecv()
 * @recvv: see fi_trecvv()
 * @recvmsg: see fi_trecvmsg()
 * @send: see fi_tsend()
 * @sendv: see fi_tsendv()
 * @sendmsg: see fi_tsendmsg()
 * @inject: see fi_tinject()
 * @senddata: see fi_tsenddata()
 * @injectdata: see fi_tinjectdata()
 *
 * A vector is const and has no NULL members: see struct kofi_req in <kofi/provider.h>.
 */
struct fi_ops_tagged {
	ssize_t (*recv)(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src_addr, u64 tag, u64 ignore, void *context);
	ssize_t (*recvv)(struct fid_ep *ep, const struct kvec *iov, void **desc,
			 size_t count, fi_addr_t src_addr, u64 tag, u64 ignore,
			 void *context);
	ssize_t (*recvmsg)(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			   u64 flags);
	ssize_t (*send)(struct fid_ep *ep, const void *buf, size_t len,
			void *desc, fi_addr_t dest_addr, u64 tag,
			void *context);
	ssize_t (*sendv)(struct fid_ep *ep, const struct kvec *iov, void **desc,
			 size_t count, fi_addr_t dest_addr, u64 tag,
			 void *context);
	ssize_t (*sendmsg)(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			   u64 flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len,
			  fi_addr_t dest_addr, u64 tag);
	ssize_t (*senddata)(struct fid_ep *ep, const void *buf, size_t len,
			    void *desc, u64 data, fi_addr_t dest_addr, u64 tag,
			    void *context);
	ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len,
			      u64 data, fi_addr_t dest_addr, u64 tag);
};

/**
 * fi_trecv() - post a receive buffer for a tag
 * @ep: the endpoint
 * @buf: where the data goes
 * @len: length of @buf in bytes
 * @desc: descriptor from fi_mr_desc(), or NULL: local memory needs no registration
 * @src_addr: the peer whose messages are taken, with FI_DIRECTED_RECV; else
 *	FI_ADDR_UNSPEC
 * @tag: the message's tag
 * @ignore: bits of the tag that the receive ignores
 * @context: the caller's context, returned in the completion
 *
 * The buffer stays valid until the completion.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_trecv(struct fid_ep *ep, void *buf, size_t len,
			       void *desc, fi_addr_t src_addr, u64 tag,
			       u64 ignore, void *context)
{
	if (!kofi_buf_ok(buf))
		return -EINVAL;
	return ep->tagged->recv(ep, buf, len, desc, src_addr, tag,
					   ignore, context);
}

/**
 * fi_trecvv() - post a receive buffer of several segments for a tag
 * @ep: the endpoint
 * @iov: segments; they and their array stay valid until the completion
 * @desc: descriptors from fi_mr_desc(), one per segment, or NULL
 * @count: number of segments
 * @src_addr: the peer whose messages are taken, with FI_DIRECTED_RECV; else
 *	FI_ADDR_UNSPEC
 * @tag: the message's tag
 * @ignore: bits of the tag that the receive ignores
 * @context: the caller's context, returned in the completion
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_trecvv(struct fid_ep *ep, const struct kvec *iov,
				void **desc, size_t count, fi_addr_t src_addr,
				u64 tag, u64 ignore, void *context)
{
	return ep->tagged->recvv(ep, iov, desc, count, src_addr, tag,
					    ignore, context);
}

/**
 * fi_trecvmsg() - post a receive buffer for a tag, with flags
 * @ep: the endpoint
 * @msg: buffer, peer, tag and context
 * @flags: operation flags; they replace the endpoint's defaults
 *
 * FI_PEEK and FI_DISCARD need no buffer: msg_iter may then be all zeros.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_trecvmsg(struct fid_ep *ep,
				  const struct fi_msg_tagged *msg, u64 flags)
{
	return ep->tagged->recvmsg(ep, msg, flags);
}

/**
 * fi_tsend() - send a tagged message
 * @ep: the endpoint
 * @buf: the data; a kernel address, but not on the stack
 * @len: length of @buf in bytes
 * @desc: descriptor from fi_mr_desc(), or NULL: local memory needs no registration
 * @dest_addr: the peer, from fi_av_insert()
 * @tag: the message's tag
 * @context: the caller's context, returned in the completion
 *
 * The buffer stays valid until the completion.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_tsend(struct fid_ep *ep, const void *buf, size_t len,
			       void *desc, fi_addr_t dest_addr, u64 tag,
			       void *context)
{
	if (!kofi_buf_ok(buf))
		return -EINVAL;
	return ep->tagged->send(ep, buf, len, desc, dest_addr, tag,
					   context);
}

/**
 * fi_tsendv() - send a tagged message of several segments
 * @ep: the endpoint
 * @iov: segments; they and their array stay valid until the completion
 * @desc: descriptors from fi_mr_desc(), one per segment, or NULL
 * @count: number of segments
 * @dest_addr: the peer, from fi_av_insert()
 * @tag: the message's tag
 * @context: the caller's context, returned in the completion
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_tsendv(struct fid_ep *ep, const struct kvec *iov,
				void **desc, size_t count, fi_addr_t dest_addr,
				u64 tag, void *context)
{
	return ep->tagged->sendv(ep, iov, desc, count, dest_addr,
					    tag, context);
}

/**
 * fi_tsendmsg() - send a tagged message, with flags
 * @ep: the endpoint
 * @msg: data, peer, tag and context
 * @flags: operation flags; they replace the endpoint's defaults
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_tsendmsg(struct fid_ep *ep,
				  const struct fi_msg_tagged *msg, u64 flags)
{
	return ep->tagged->sendmsg(ep, msg, flags);
}

/**
 * fi_tinject() - send a short tagged message and copy its data
 * @ep: the endpoint
 * @buf: the data, copied before the call returns
 * @len: length of @buf in bytes
 * @dest_addr: the peer, from fi_av_insert()
 * @tag: the message's tag
 *
 * There is no completion on success; a failure is reported.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_tinject(struct fid_ep *ep, const void *buf, size_t len,
				 fi_addr_t dest_addr, u64 tag)
{
	return ep->tagged->inject(ep, buf, len, dest_addr, tag);
}

/**
 * fi_tsenddata() - send a tagged message with remote CQ data
 * @ep: the endpoint
 * @buf: the data; a kernel address, but not on the stack
 * @len: length of @buf in bytes
 * @desc: descriptor from fi_mr_desc(), or NULL: local memory needs no registration
 * @data: remote CQ data, as many bytes as the domain's cq_data_size
 * @dest_addr: the peer, from fi_av_insert()
 * @tag: the message's tag
 * @context: the caller's context, returned in the completion
 *
 * The buffer stays valid until the completion.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_tsenddata(struct fid_ep *ep, const void *buf,
				   size_t len, void *desc, u64 data,
				   fi_addr_t dest_addr, u64 tag, void *context)
{
	if (!kofi_buf_ok(buf))
		return -EINVAL;
	return ep->tagged->senddata(ep, buf, len, desc, data,
					       dest_addr, tag, context);
}

/**
 * fi_tinjectdata() - fi_tinject() with remote CQ data
 * @ep: the endpoint
 * @buf: the data, copied before the call returns
 * @len: length of @buf in bytes
 * @data: remote CQ data, as many bytes as the domain's cq_data_size
 * @dest_addr: the peer, from fi_av_insert()
 * @tag: the message's tag
 *
 * There is no completion on success; a failure is reported.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_tinjectdata(struct fid_ep *ep, const void *buf,
				     size_t len, u64 data, fi_addr_t dest_addr,
				     u64 tag)
{
	return ep->tagged->injectdata(ep, buf, len, data, dest_addr,
						 tag);
}

#endif /* KOFI_TAGGED_H */
