// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Datagrams of fabric efa: their attributes, and opening of their endpoints. The device neither
 * repeats a datagram nor says that it was lost.
 */
#include <linux/slab.h>
#include "../dev.h"
#include "../kefa.h"
#include "dgram.h"

#define KEFA_DGRAM_TX_CAPS	(FI_MSG | FI_SEND)
#define KEFA_DGRAM_RX_CAPS	(FI_MSG | FI_RECV)
#define KEFA_DGRAM_CAPS		(KEFA_DGRAM_TX_CAPS | KEFA_DGRAM_RX_CAPS | \
				 FI_LOCAL_COMM | FI_REMOTE_COMM)

static bool kefa_dgram_offered(const struct kefa_dev *dev)
{
	return dev->dgram;
}

static void kefa_dgram_info(const struct kefa_dev *dev, struct fi_info *info)
{
	const u64 mode = dev->ud_prefix ? FI_MSG_PREFIX : 0;

	info->caps = KEFA_DGRAM_CAPS;
	*info->tx_attr = (struct fi_tx_attr) {
		.caps		= KEFA_DGRAM_TX_CAPS,
		.mode		= mode,
		.op_flags	= KEFA_DGRAM_TX_DEFAULTS,
		.inject_size	= kefa_inject_size(dev),
		.size		= dev->tx_depth,
		.iov_limit	= KEFA_MAX_SGE,
	};
	*info->rx_attr = (struct fi_rx_attr) {
		.caps		= KEFA_DGRAM_RX_CAPS,
		.mode		= mode,
		.op_flags	= KEFA_RX_DEFAULTS,
		.size		= dev->rx_depth,
		.iov_limit	= KEFA_MAX_SGE,
	};
	*info->ep_attr = (struct fi_ep_attr) {
		.type			= FI_EP_DGRAM,
		.protocol		= FI_PROTO_EFA,
		.protocol_version	= 1,
		.max_msg_size		= dev->mtu,
		.msg_prefix_size	= dev->ud_prefix,
		.tx_ctx_cnt		= 1,
		.rx_ctx_cnt		= 1,
	};
}

/* Without reg and inval: such a queue pair can't register memory. */
static const struct kefa_ep_kind kefa_dgram_kind = {
	.init		= kefa_direct_init,
	.fini		= kefa_direct_fini,
	.started	= kefa_plain_limits,
	.limits		= kefa_plain_limits,
	.poll		= kefa_direct_poll,
	.keep		= kefa_ops_keep,
	.fail		= kefa_direct_fail_all,
	.end		= kefa_copies_fini,
	.scan		= kefa_ops_scan,
	.read		= kefa_direct_read,
};

static int kefa_dgram_getopt(struct fid *fid, int level, int optname, void *optval,
			     size_t *optlen)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);
	const struct kefa_dev *dev = ep->dom->dev;
	const struct kofi_opt opts[] = {
		{ FI_OPT_TX_SIZE, ep->tx.base.size },
		{ FI_OPT_RX_SIZE, ep->rx.base.size },
		{ FI_OPT_MAX_MSG_SIZE, dev->mtu },
		{ FI_OPT_INJECT_MSG_SIZE, kefa_inject_size(dev) },
	};

	return kefa_ep_getopt(opts, ARRAY_SIZE(opts), optname, optval, optlen);
}

/* The device doesn't retry. */
static int kefa_dgram_setopt(struct fid *fid, int level, int optname, const void *optval,
			     size_t optlen)
{
	return kefa_ep_setopt(optname, optval, optlen);
}

static const struct fi_ops_ep kefa_dgram_ep_ops = {
	.flush	= kefa_direct_quiet,
	.getopt	= kefa_dgram_getopt,
	.setopt	= kefa_dgram_setopt,
};

/* Without FI_MSG_PREFIX, the caller's buffers may lack room for what the device writes. */
static bool kefa_dgram_possible(const struct kefa_dev *dev, const struct fi_info *info)
{
	return dev->dgram && !(info->caps & ~KEFA_DGRAM_CAPS) &&
	       (info->mode & FI_MSG_PREFIX || !dev->ud_prefix) &&
	       info->tx_attr->size <= dev->tx_depth &&
	       info->rx_attr->size <= dev->rx_depth &&
	       !(info->tx_attr->op_flags & ~KEFA_DGRAM_TX_DEFAULTS) &&
	       !(info->rx_attr->op_flags & ~KEFA_RX_DEFAULTS);
}

static int kefa_dgram_open(struct kefa_domain *dom, const struct fi_info *info,
			   struct fid_ep **ep)
{
	struct kefa_direct *direct;
	int ret;

	if (!kefa_dgram_possible(dom->dev, info))
		return -EINVAL;
	direct = kefa_direct_new(dom, info, &kefa_dgram_kind, KEFA_DGRAM_CAPS);
	if (!direct)
		return -ENOMEM;
	direct->ud = true;
	direct->prefix = dom->dev->ud_prefix;
	direct->ep.tx.base.known = KEFA_DGRAM_TX_DEFAULTS;
	direct->ep.ep_fid.ops = &kefa_dgram_ep_ops;
	direct->ep.ep_fid.msg = &kefa_dgram_msg_ops;
	direct->ep.ep_fid.rma = &kofi_req_rma_ops;
	direct->ep.ep_fid.req = &kefa_dgram_req_ops;
	ret = kefa_ep_add(&direct->ep);
	if (ret) {
		kfree(direct);
		return ret;
	}
	*ep = &direct->ep.ep_fid;
	return 0;
}

/* The domain's functions are those of the fabric's other kind of endpoints. */
const struct kefa_fabric_kind kefa_dgram_fabric = {
	.name		= FI_EFA_FABRIC,
	.type		= FI_EP_DGRAM,
	.offered	= kefa_dgram_offered,
	.info		= kefa_dgram_info,
	.open		= kefa_dgram_open,
};
