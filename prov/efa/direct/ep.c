// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fabric efa-direct: its attributes, and opening and closing of its endpoints. */
#include <linux/slab.h>
#include "../dev.h"
#include "../kefa.h"
#include "../mr.h"
#include "direct.h"

#define KEFA_CAPS_MSG	(FI_MSG | FI_SEND | FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM)
#define KEFA_CAPS_TX	(FI_MSG | FI_RMA | FI_SEND | FI_READ | FI_WRITE)
#define KEFA_CAPS_RX	(FI_MSG | FI_RMA | FI_RECV | FI_REMOTE_READ | \
			 FI_REMOTE_WRITE)

static u64 kefa_direct_caps(const struct kefa_dev *dev)
{
	u64 caps = KEFA_CAPS_MSG;

	if (dev->rdma_read)
		caps |= FI_RMA | FI_READ | FI_REMOTE_READ;
	if (dev->rdma_write)
		caps |= FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
	return caps;
}

static void kefa_direct_info(const struct kefa_dev *dev, struct fi_info *info)
{
	u64 caps = kefa_direct_caps(dev);

	info->caps = caps;
	/* No ordering is set, because the device doesn't keep any. */
	*info->tx_attr = (struct fi_tx_attr) {
		.caps		= caps & KEFA_CAPS_TX,
		.op_flags	= KEFA_TX_DEFAULTS,
		.inject_size	= kefa_inject_size(dev),
		.size		= dev->tx_depth,
		.iov_limit	= KEFA_MAX_SGE,
		.rma_iov_limit	= caps & FI_RMA ? 1 : 0,
	};
	*info->rx_attr = (struct fi_rx_attr) {
		.caps		= caps & KEFA_CAPS_RX,
		.mode		= caps & FI_WRITE ? FI_RX_CQ_DATA : 0,
		.op_flags	= KEFA_RX_DEFAULTS,
		.size		= dev->rx_depth,
		.iov_limit	= KEFA_MAX_SGE,
	};
	*info->ep_attr = (struct fi_ep_attr) {
		.type			= FI_EP_RDM,
		.protocol		= FI_PROTO_EFA,
		.protocol_version	= 1,
		/* The maximum of messages and RDMA; endpoint options return each. */
		.max_msg_size		= caps & FI_RMA ? KEFA_MAX_RDMA :
							  dev->mtu,
		.tx_ctx_cnt		= 1,
		.rx_ctx_cnt		= 1,
	};
}

/* --- endpoints --- */

static int kefa_direct_init(struct kefa_ep *ep, struct kefa_hw_qp_attr *attr)
{
	if (to_kefa_direct(ep)->rnr_ms && attr->rnr_retry == FI_EFA_RNR_INFINITE)
		attr->rnr_retry = KEFA_RNR_TRIES;
	return kefa_ops_init(ep);
}

static void kefa_direct_fini(struct kefa_ep *ep)
{
	/* The worker doesn't queue this again, because the endpoint isn't enabled. */
	cancel_delayed_work_sync(&to_kefa_direct(ep)->rnr_work);
	kefa_ops_fini(ep);
}

static const struct kefa_ep_kind kefa_direct_kind = {
	.init		= kefa_direct_init,
	.fini		= kefa_direct_fini,
	.started	= kefa_plain_limits,
	.limits		= kefa_plain_limits,
	.poll		= kefa_direct_poll,
	.retry		= kefa_rests_go,
	.keep		= kefa_ops_keep,
	.fail		= kefa_direct_fail_all,
	.reg		= kefa_direct_mr_reg,
	.inval		= kefa_direct_mr_inval,
	.revoked	= kefa_direct_mr_revoked,
	.end		= kefa_copies_fini,
	.scan		= kefa_ops_scan,
	.read		= kefa_direct_read,
};

static int kefa_direct_close(struct fid *fid)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);

	kefa_ep_stop(ep);
	/* Readers may still find the endpoint among their queue's sources, under RCU. */
	kfree_rcu(ep, rcu);
	return 0;
}

static const struct fi_ops kefa_direct_fid_ops = {
	.close		= kefa_direct_close,
	.bind		= kefa_ep_bind,
	.control	= kefa_ep_control,
};

static int kefa_direct_getopt(struct fid *fid, int level, int optname, void *optval,
			      size_t *optlen)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);
	const struct kefa_dev *dev = ep->dom->dev;
	const struct kofi_opt opts[] = {
		{ FI_OPT_TX_SIZE, ep->tx.base.size },
		{ FI_OPT_RX_SIZE, ep->rx.base.size },
		{ FI_OPT_MAX_MSG_SIZE, dev->mtu },
		{ FI_OPT_MAX_RMA_SIZE, dev->rdma_read || dev->rdma_write ? KEFA_MAX_RDMA : 0 },
		{ FI_OPT_INJECT_MSG_SIZE, kefa_inject_size(dev) },
		{ FI_OPT_INJECT_RMA_SIZE, kefa_inject_size(dev) },
		{ FI_OPT_EFA_RNR_RETRY, READ_ONCE(ep->rnr_retry) },
		{ FI_OPT_RNR_TIMEOUT, READ_ONCE(to_kefa_direct(ep)->rnr_ms) },
	};

	return kofi_getopt(opts, ARRAY_SIZE(opts), optname, optval, optlen);
}

static int kefa_direct_setopt(struct fid *fid, int level, int optname,
			      const void *optval, size_t optlen)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);
	size_t value;

	if (optname != FI_OPT_EFA_RNR_RETRY && optname != FI_OPT_RNR_TIMEOUT)
		return -ENOPROTOOPT;
	if (optlen != sizeof(value))
		return -EINVAL;
	memcpy(&value, optval, sizeof(value));
	if (optname == FI_OPT_RNR_TIMEOUT)
		return kefa_set_rnr(ep, &to_kefa_direct(ep)->rnr_ms, value, INT_MAX, 0);
	return kefa_set_rnr(ep, &ep->rnr_retry, value, FI_EFA_RNR_INFINITE, FI_EFA_RNR_INFINITE);
}

/* There is no cancel, because the device can't cancel work requests. */
static const struct fi_ops_ep kefa_direct_ep_ops = {
	.flush	= kefa_direct_quiet,
	.getopt	= kefa_direct_getopt,
	.setopt	= kefa_direct_setopt,
};

static bool kefa_direct_possible(const struct kefa_dev *dev, const struct fi_info *info)
{
	const struct fi_ep_attr *attr = info->ep_attr;

	return !(info->caps & ~kefa_direct_caps(dev)) &&
	       (attr->type == FI_EP_RDM || attr->type == FI_EP_UNSPEC) &&
	       info->tx_attr->size <= dev->tx_depth &&
	       info->rx_attr->size <= dev->rx_depth &&
	       !(info->tx_attr->op_flags & ~KEFA_TX_DEFAULTS) &&
	       !(info->rx_attr->op_flags & ~KEFA_RX_DEFAULTS);
}

static int kefa_direct_open(struct fid_domain *domain, struct fi_info *info,
			    struct fid_ep **ep, void *context)
{
	struct kefa_domain *dom = to_kefa_domain(domain);
	struct kefa_direct *direct;
	struct kefa_ep *new;
	int ret;

	if (!kefa_direct_possible(dom->dev, info))
		return -EINVAL;
	direct = kzalloc(sizeof(*direct), GFP_KERNEL);
	if (!direct)
		return -ENOMEM;
	new = &direct->ep;
	kefa_ep_init(new, &kefa_direct_kind, dom, info, kefa_direct_caps(dom->dev),
		     kefa_direct_work);
	new->ep_fid.fid.ops = &kefa_direct_fid_ops;
	new->ep_fid.ops = &kefa_direct_ep_ops;
	new->ep_fid.msg = &kefa_direct_msg_ops;
	new->ep_fid.tagged = &kofi_req_tagged_ops;
	new->ep_fid.rma = &kefa_direct_rma_ops;
	new->ep_fid.req = &kefa_direct_req_ops;
	new->tx.base.known = KEFA_TX_DEFAULTS;
	new->rx.base.known = KEFA_RX_DEFAULTS;
	INIT_LIST_HEAD(&direct->rests);
	INIT_LIST_HEAD(&direct->rests_free);
	INIT_DELAYED_WORK(&direct->rnr_work, kefa_rnr_work);
	ret = kefa_ep_add(new);
	if (ret) {
		kfree(direct);
		return ret;
	}
	*ep = &new->ep_fid;
	return 0;
}

const struct kefa_fabric_kind kefa_direct_fabric = {
	.name	= FI_EFA_FABRIC_DIRECT,
	.info	= kefa_direct_info,
	.domain	= {
		.av_open	= kefa_av_open,
		.cq_open	= kofi_cq_open,
		.endpoint	= kefa_direct_open,
		.cntr_open	= kofi_cntr_open,
		.mr_regattr	= kefa_mr_regattr,
		.mr_alloc	= kefa_mr_alloc,
	},
};
