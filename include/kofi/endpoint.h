/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Endpoints and messages: fi_endpoint(3), fi_msg(3). */
#ifndef KOFI_ENDPOINT_H
#define KOFI_ENDPOINT_H

#include <linux/compiler.h>
#include <linux/kconfig.h>
#include <linux/sched/task_stack.h>
#include <linux/uio.h>
#include <kofi/domain.h>

struct fi_ops_atomic;
struct fi_ops_cm;
struct fi_ops_ep;
struct fi_ops_rma;
struct fi_ops_tagged;
struct fid_ep;
struct kofi_req_ops;

/**
 * struct fi_msg - a message to be sent or received with flags, fi_msg(3)
 * @msg_iter: the buffer: ITER_KVEC or ITER_BVEC, with the direction ITER_SOURCE for a send or a
 *	write and ITER_DEST for a receive or a read; anything else is -EINVAL. The call doesn't
 *	advance it. Buffers and segment array stay valid until the completion, this struct needn't
 * @desc: descriptors from fi_mr_desc(), one per segment of @msg_iter, or NULL
 * @addr: the peer
 * @context: the caller's context, returned in the completion
 * @data: remote CQ data, with FI_REMOTE_CQ_DATA
 */
struct fi_msg {
	struct iov_iter	msg_iter;
	void		**desc;
	fi_addr_t	addr;
	void		*context;
	u64		data;
};

/**
 * struct fi_ops_msg - message calls of a provider
 * @recv: see fi_recv()
 * @recvv: see fi_recvv()
 * @recvmsg: see fi_recvmsg()
 * @send: see fi_send()
 * @sendv: see fi_sendv()
 * @sendmsg: see fi_sendmsg()
 * @inject: see fi_inject()
 * @senddata: see fi_senddata()
 * @injectdata: see fi_injectdata()
 *
 * A vector is const and has no NULL members: see struct kofi_req in <kofi/provider.h>.
 */
struct fi_ops_msg {
	ssize_t (*recv)(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src_addr, void *context);
	ssize_t (*recvv)(struct fid_ep *ep, const struct kvec *iov, void **desc,
			 size_t count, fi_addr_t src_addr, void *context);
	ssize_t (*recvmsg)(struct fid_ep *ep, const struct fi_msg *msg,
			   u64 flags);
	ssize_t (*send)(struct fid_ep *ep, const void *buf, size_t len,
			void *desc, fi_addr_t dest_addr, void *context);
	ssize_t (*sendv)(struct fid_ep *ep, const struct kvec *iov, void **desc,
			 size_t count, fi_addr_t dest_addr, void *context);
	ssize_t (*sendmsg)(struct fid_ep *ep, const struct fi_msg *msg,
			   u64 flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len,
			  fi_addr_t dest_addr);
	ssize_t (*senddata)(struct fid_ep *ep, const void *buf, size_t len,
			    void *desc, u64 data, fi_addr_t dest_addr,
			    void *context);
	ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len,
			      u64 data, fi_addr_t dest_addr);
};

/**
 * struct fid_ep - an endpoint
 * @fid: the common part
 * @ops: control calls
 * @cm: calls about addresses and connections
 * @msg: message calls
 * @rma: RMA calls
 * @tagged: tagged message calls
 * @atomic: atomic calls
 * @req: functions that the core's request-forming calls call, <kofi/provider.h>
 *
 * The provider sets the vectors when the endpoint is opened, and never changes them: it
 * answers a data call with -FI_EOPBADSTATE until fi_enable(), and with -ENODEV after the
 * device went away.
 */
struct fid_ep {
	struct fid			fid;
	const struct fi_ops_ep		*ops;
	const struct fi_ops_cm		*cm;
	const struct fi_ops_msg		*msg;
	const struct fi_ops_rma		*rma;
	const struct fi_ops_tagged	*tagged;
	const struct fi_ops_atomic	*atomic;
	const struct kofi_req_ops	*req;
};

/* Levels and names of fi_setopt() and fi_getopt(), fi_endpoint(3). */
enum {
	FI_OPT_ENDPOINT		= 0,
};

enum {
	FI_OPT_MIN_MULTI_RECV	= 0,	/* size_t */
	FI_OPT_CM_DATA_SIZE	= 1,	/* size_t */
	FI_OPT_TX_SIZE		= 6,	/* size_t */
	FI_OPT_RX_SIZE		= 7,	/* size_t */
	FI_OPT_MAX_MSG_SIZE	= 12,	/* size_t */
	FI_OPT_MAX_TAGGED_SIZE	= 13,	/* size_t */
	FI_OPT_MAX_RMA_SIZE	= 14,	/* size_t */
	FI_OPT_MAX_ATOMIC_SIZE	= 15,	/* size_t */
	FI_OPT_INJECT_MSG_SIZE	= 16,	/* size_t */
	FI_OPT_INJECT_TAGGED_SIZE = 17,	/* size_t */
	FI_OPT_INJECT_RMA_SIZE	= 18,	/* size_t */
	FI_OPT_INJECT_ATOMIC_SIZE = 19,	/* size_t */
	/*
	 * size_t (kernel only): milliseconds for which the provider resends to a
	 * receiver that isn't ready; then the operation fails with EAGAIN. 0, the
	 * default, leaves retries to the device. Set it before fi_enable().
	 */
	FI_OPT_RNR_TIMEOUT	= 0x10000,
	/*
	 * Text (kernel only): the secret of connections, 64 to 256 hexadecimal digits, or an empty
	 * string, the default, for none. Both sides of a connection have the same one. A passive
	 * endpoint's can be set at any time, and counts for later requests; that of a connected
	 * endpoint is set before fi_connect().
	 */
	FI_OPT_CM_SECRET	= 0x10001,
	/* Text (kernel only): a second secret that a passive endpoint accepts. */
	FI_OPT_CM_SECRET_OLD	= 0x10002,
	/*
	 * struct net * (kernel only): network namespace of a passive endpoint, before fi_listen(),
	 * or of a connected one, before fi_connect(). The initial one by default. It is valid
	 * during the call, and may go at any time afterwards.
	 */
	FI_OPT_CM_NET		= 0x10003,
};

/* Reference: page api/endpoint of kOFI's documentation; libfabric's fi_endpoint(3) */
int fi_endpoint(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **ep, void *context);
int fi_ep_bind(struct fid_ep *ep, struct fid *bfid, u64 flags);
int fi_enable(struct fid_ep *ep);
int fi_disable(struct fid_ep *ep);
ssize_t fi_cancel(struct fid *fid, void *context);
int fi_flush(struct fid_ep *ep, fi_addr_t addr, unsigned int timeout_ms);
void fi_expedite(struct fid_ep *ep);
int fi_setopt(struct fid *fid, int level, int optname, const void *optval,
	      size_t optlen);
int fi_getopt(struct fid *fid, int level, int optname, void *optval,
	      size_t *optlen);

/**
 * kofi_buf_ok() - check that a buffer isn't on the stack
 * @buf: the buffer
 *
 * A device can't access a stack in vmalloc space. Only kernels that are built to find DMA
 * bugs check, so that other kernels don't pay for it.
 *
 * Context: Any.
 * Return: whether a device may access the buffer.
 */
static inline bool kofi_buf_ok(const void *buf)
{
	return !IS_ENABLED(CONFIG_DMA_API_DEBUG) || !object_is_on_stack(buf);
}

/**
 * fi_recv() - post a receive buffer
 * @ep: the endpoint
 * @buf: where the data goes
 * @len: length of @buf in bytes
 * @desc: descriptor from fi_mr_desc(), or NULL: local memory needs no registration
 * @src_addr: the peer whose messages are taken, with FI_DIRECTED_RECV; else
 *	FI_ADDR_UNSPEC
 * @context: the caller's context, returned in the completion
 *
 * The buffer stays valid until the completion.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_recv(struct fid_ep *ep, void *buf, size_t len,
			      void *desc, fi_addr_t src_addr, void *context)
{
	if (!kofi_buf_ok(buf))
		return -EINVAL;
	return ep->msg->recv(ep, buf, len, desc, src_addr, context);
}

/**
 * fi_recvv() - post a receive buffer of several segments
 * @ep: the endpoint
 * @iov: segments; they and their array stay valid until the completion
 * @desc: descriptors from fi_mr_desc(), one per segment, or NULL
 * @count: number of segments
 * @src_addr: the peer whose messages are taken, with FI_DIRECTED_RECV; else
 *	FI_ADDR_UNSPEC
 * @context: the caller's context, returned in the completion
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_recvv(struct fid_ep *ep, const struct kvec *iov,
			       void **desc, size_t count, fi_addr_t src_addr,
			       void *context)
{
	return ep->msg->recvv(ep, iov, desc, count, src_addr,
					 context);
}

/**
 * fi_recvmsg() - post a receive buffer, with flags
 * @ep: the endpoint
 * @msg: buffer, peer and context
 * @flags: operation flags; they replace the endpoint's defaults
 *
 * FI_PEEK and FI_DISCARD need no buffer: msg_iter may then be all zeros.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_recvmsg(struct fid_ep *ep, const struct fi_msg *msg,
				 u64 flags)
{
	return ep->msg->recvmsg(ep, msg, flags);
}

/**
 * fi_send() - send a message
 * @ep: the endpoint
 * @buf: the data; a kernel address, but not on the stack
 * @len: length of @buf in bytes
 * @desc: descriptor from fi_mr_desc(), or NULL: local memory needs no registration
 * @dest_addr: the peer, from fi_av_insert()
 * @context: the caller's context, returned in the completion
 *
 * The buffer stays valid until the completion.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_send(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, fi_addr_t dest_addr, void *context)
{
	if (!kofi_buf_ok(buf))
		return -EINVAL;
	return ep->msg->send(ep, buf, len, desc, dest_addr, context);
}

/**
 * fi_sendv() - send a message of several segments
 * @ep: the endpoint
 * @iov: segments; they and their array stay valid until the completion
 * @desc: descriptors from fi_mr_desc(), one per segment, or NULL
 * @count: number of segments
 * @dest_addr: the peer, from fi_av_insert()
 * @context: the caller's context, returned in the completion
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_sendv(struct fid_ep *ep, const struct kvec *iov,
			       void **desc, size_t count, fi_addr_t dest_addr,
			       void *context)
{
	return ep->msg->sendv(ep, iov, desc, count, dest_addr,
					 context);
}

/**
 * fi_sendmsg() - send a message, with flags
 * @ep: the endpoint
 * @msg: data, peer and context
 * @flags: operation flags; they replace the endpoint's defaults
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
				 u64 flags)
{
	return ep->msg->sendmsg(ep, msg, flags);
}

/**
 * fi_inject() - send a short message and copy its data
 * @ep: the endpoint
 * @buf: the data, copied before the call returns
 * @len: length of @buf in bytes
 * @dest_addr: the peer, from fi_av_insert()
 *
 * There is no completion on success. A failure has an error entry without context, whose src_addr
 * is the peer if the provider knows it. Injected data can't wait: a provider that first has to
 * find out about a peer returns -EAGAIN until it has.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_inject(struct fid_ep *ep, const void *buf, size_t len,
				fi_addr_t dest_addr)
{
	return ep->msg->inject(ep, buf, len, dest_addr);
}

/**
 * fi_senddata() - send a message with remote CQ data
 * @ep: the endpoint
 * @buf: the data; a kernel address, but not on the stack
 * @len: length of @buf in bytes
 * @desc: descriptor from fi_mr_desc(), or NULL: local memory needs no registration
 * @data: remote CQ data, as many bytes as the domain's cq_data_size
 * @dest_addr: the peer, from fi_av_insert()
 * @context: the caller's context, returned in the completion
 *
 * The buffer stays valid until the completion.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_senddata(struct fid_ep *ep, const void *buf,
				  size_t len, void *desc, u64 data,
				  fi_addr_t dest_addr, void *context)
{
	if (!kofi_buf_ok(buf))
		return -EINVAL;
	return ep->msg->senddata(ep, buf, len, desc, data, dest_addr,
					    context);
}

/**
 * fi_injectdata() - fi_inject() with remote CQ data
 * @ep: the endpoint
 * @buf: the data, copied before the call returns
 * @len: length of @buf in bytes
 * @data: remote CQ data, as many bytes as the domain's cq_data_size
 * @dest_addr: the peer, from fi_av_insert()
 *
 * There is no completion on success; a failure is reported.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_injectdata(struct fid_ep *ep, const void *buf,
				    size_t len, u64 data, fi_addr_t dest_addr)
{
	return ep->msg->injectdata(ep, buf, len, data, dest_addr);
}

/* Names of the proposal of 2015 */

/**
 * fi_sendto() - name of fi_send() in the proposal of 2015
 * @ep: the endpoint
 * @buf: the data; a kernel address, but not on the stack
 * @len: length of @buf in bytes
 * @desc: descriptor from fi_mr_desc(), or NULL
 * @dest_addr: the peer, from fi_av_insert()
 * @context: the caller's context, returned in the completion
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_sendto(struct fid_ep *ep, const void *buf, size_t len,
				void *desc, fi_addr_t dest_addr, void *context)
{
	return fi_send(ep, buf, len, desc, dest_addr, context);
}

/**
 * fi_recvfrom() - name of fi_recv() in the proposal of 2015
 * @ep: the endpoint
 * @buf: where the data goes
 * @len: length of @buf in bytes
 * @desc: descriptor from fi_mr_desc(), or NULL
 * @src_addr: the peer whose messages are taken, or FI_ADDR_UNSPEC
 * @context: the caller's context, returned in the completion
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_recvfrom(struct fid_ep *ep, void *buf, size_t len,
				  void *desc, fi_addr_t src_addr, void *context)
{
	return fi_recv(ep, buf, len, desc, src_addr, context);
}

/**
 * fi_ep_open() - name of fi_endpoint() in the proposal of 2015
 * @domain: the domain
 * @info: attributes of the endpoint
 * @ep: takes the endpoint
 * @context: the caller's context, returned in events
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, or a negative errno of fi_endpoint().
 */
static inline int fi_ep_open(struct fid_domain *domain, struct fi_info *info,
			     struct fid_ep **ep, void *context)
{
	return fi_endpoint(domain, info, ep, context);
}

/**
 * fi_bind() - name of fi_ep_bind() in the proposal of 2015
 * @ep: the endpoint
 * @bfid: the object to bind
 * @flags: as for fi_ep_bind()
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, or a negative errno of fi_ep_bind().
 */
static inline int fi_bind(struct fid_ep *ep, struct fid *bfid, u64 flags)
{
	return fi_ep_bind(ep, bfid, flags);
}

#endif /* KOFI_ENDPOINT_H */
