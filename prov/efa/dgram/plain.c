// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The calls of datagrams. With FI_MSG_PREFIX each buffer begins with room for what the device
 * writes in front of a received datagram. A send skips it.
 */
#include "../direct/plain.h"
#include "dgram.h"

static __always_inline u32 kefa_dgram_prefix(struct fid_ep *ep)
{
	return to_kefa_direct(to_kefa_ep(ep))->prefix;
}

/*
 * A call shorter than the prefix is longer than any limit here, and the fast path declines it.
 * Return: the call without its prefix.
 */
static __always_inline struct kefa_plain kefa_dgram_skip(struct kefa_plain p, u32 prefix)
{
	p.buf += prefix;
	p.phys += prefix;
	p.len -= prefix;
	return p;
}

static __always_inline ssize_t kefa_dgram_tx_plain(struct fid_ep *ep, const struct kefa_plain *call,
						   u64 how)
{
	const u32 prefix = kefa_dgram_prefix(ep);
	const struct kefa_plain p = kefa_dgram_skip(*call, prefix);

	if (likely(kefa_plain_tx(ep, &p)))
		return 0;
	return call->len < prefix ? -EINVAL : kefa_plain_slow(ep, how, p.buf, p.len, p.addr, 0, 0,
							      p.context);
}

static ssize_t kefa_dgram_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			       fi_addr_t dest_addr, void *context)
{
	const struct kefa_plain call = {
		.what		= FI_MSG | FI_SEND,
		.ud		= true,
		.buf		= (void *)buf,
		.len		= len,
		.addr		= dest_addr,
		.context	= context,
	};

	return kefa_dgram_tx_plain(ep, &call, call.what);
}

static ssize_t kefa_dgram_inject(struct fid_ep *ep, const void *buf, size_t len,
				 fi_addr_t dest_addr)
{
	const struct kefa_plain call = {
		.what	= FI_MSG | FI_SEND,
		.ud	= true,
		.inject	= true,
		.buf	= (void *)buf,
		.len	= len,
		.addr	= dest_addr,
	};

	return kefa_dgram_tx_plain(ep, &call, call.what | FI_INJECT);
}

static ssize_t kefa_dgram_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, u64 flags)
{
	struct kefa_plain p = {
		.what		= FI_MSG | FI_SEND,
		.ud		= true,
		.msg		= true,
		.flags		= flags,
		.addr		= msg->addr,
		.context	= msg->context,
	};

	if (likely(!(flags & (~KEFA_SHORT_TX | FI_DELIVERY_COMPLETE)) &&
		   kefa_plain_iter(&p, &msg->msg_iter, ITER_SOURCE))) {
		p = kefa_dgram_skip(p, kefa_dgram_prefix(ep));
		if (likely(kefa_plain_tx(ep, &p)))
			return 0;
	}
	return kofi_req_sendmsg(ep, msg, flags);
}

static ssize_t kefa_dgram_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			       fi_addr_t src_addr, void *context)
{
	if (unlikely(len < kefa_dgram_prefix(ep)))
		return -EINVAL;
	return kefa_plain_recv(ep, buf, len, desc, src_addr, context);
}

static ssize_t kefa_dgram_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, u64 flags)
{
	if (unlikely(iov_iter_count(&msg->msg_iter) < kefa_dgram_prefix(ep)))
		return -EINVAL;
	return kefa_plain_recvmsg(ep, msg, flags);
}

const struct fi_ops_msg kefa_dgram_msg_ops = {
	.recv		= kefa_dgram_recv,
	.recvv		= kofi_req_recvv,
	.recvmsg	= kefa_dgram_recvmsg,
	.send		= kefa_dgram_send,
	.sendv		= kofi_req_sendv,
	.sendmsg	= kefa_dgram_sendmsg,
	.inject		= kefa_dgram_inject,
	.senddata	= kofi_req_senddata,
	.injectdata	= kofi_req_injectdata,
};

/* --- the slow path --- */

static ssize_t kefa_dgram_tx(struct fid_ep *ep, struct kofi_req *req)
{
	const u32 prefix = kefa_dgram_prefix(ep);

	if (req->flags & FI_DELIVERY_COMPLETE)
		return -FI_EBADFLAGS;
	if (req->what & FI_MSG) {
		if (iov_iter_count(&req->iter) < prefix)
			return -EINVAL;
		iov_iter_advance(&req->iter, prefix);
	}
	return kefa_direct_tx(ep, req);
}

static ssize_t kefa_dgram_rx(struct fid_ep *ep, struct kofi_req *req)
{
	if (iov_iter_count(&req->iter) < kefa_dgram_prefix(ep))
		return -EINVAL;
	return kefa_direct_rx(ep, req);
}

const struct kofi_req_ops kefa_dgram_req_ops = {
	.tx	= kefa_dgram_tx,
	.rx	= kefa_dgram_rx,
};
