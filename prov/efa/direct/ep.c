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

/**
 * kefa_direct_init() - allocate memory for operations, and set attributes of the queue pair
 * @ep: the endpoint
 * @attr: attributes of the queue pair
 *
 * Serves as kefa_ep_kind.init.
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 * Return: 0, or -ENOMEM.
 */
int kefa_direct_init(struct kefa_ep *ep, struct kefa_hw_qp_attr *attr)
{
	struct kefa_direct *direct = to_kefa_direct(ep);

	attr->ud = direct->ud;
	if (direct->ud)
		attr->rnr_retry = KEFA_RNR_UNSET;
	else if (direct->rnr_ms && attr->rnr_retry == FI_EFA_RNR_INFINITE)
		attr->rnr_retry = KEFA_RNR_TRIES;
	return kefa_ops_init(ep);
}

/**
 * kefa_direct_fini() - undo kefa_direct_init()
 * @ep: the endpoint, which isn't enabled or is stopped
 *
 * Serves as kefa_ep_kind.fini.
 *
 * Context: Process context; sleeps.
 */
void kefa_direct_fini(struct kefa_ep *ep)
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
	.mr_ops		= &kefa_direct_mr_ops,
	.reg		= kefa_direct_mr_reg,
	.inval		= kefa_direct_mr_inval,
	.revoked	= kefa_direct_mr_revoked,
	.end		= kefa_copies_fini,
	.scan		= kefa_ops_scan,
	.read		= kefa_direct_read,
	.read_split	= kefa_direct_read_split,
	.soft		= kefa_direct_soft,
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

	return kefa_ep_getopt(opts, ARRAY_SIZE(opts), optname, optval, optlen);
}

static int kefa_direct_setopt(struct fid *fid, int level, int optname,
			      const void *optval, size_t optlen)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);
	size_t value;

	if (optname != FI_OPT_EFA_RNR_RETRY && optname != FI_OPT_RNR_TIMEOUT)
		return kefa_ep_setopt(optname, optval, optlen);
	if (optlen != sizeof(value))
		return -EINVAL;
	memcpy(&value, optval, sizeof(value));
	if (optname == FI_OPT_RNR_TIMEOUT)
		return kefa_set_rnr(ep, &to_kefa_direct(ep)->rnr_ms, value, INT_MAX, 0);
	return kefa_set_rnr(ep, &ep->rnr_retry, value, FI_EFA_RNR_INFINITE, FI_EFA_RNR_INFINITE);
}

/* There is no cancel, because the device can't cancel work requests. */
static const struct fi_ops_ep kefa_direct_ep_ops = {
	.flush		= kefa_direct_quiet,
	.expedite	= kefa_ep_expedite,
	.getopt		= kefa_direct_getopt,
	.setopt		= kefa_direct_setopt,
};

static bool kefa_direct_possible(const struct kefa_dev *dev, const struct fi_info *info)
{
	return !(info->caps & ~kefa_direct_caps(dev)) &&
	       info->tx_attr->size <= dev->tx_depth &&
	       info->rx_attr->size <= dev->rx_depth &&
	       !(info->tx_attr->op_flags & ~KEFA_TX_DEFAULTS) &&
	       !(info->rx_attr->op_flags & ~KEFA_RX_DEFAULTS);
}

/**
 * kefa_direct_new() - allocate an endpoint
 * @dom: domain of the endpoint
 * @info: fi_info that the endpoint is opened with
 * @kind: functions of the endpoint
 * @caps: capabilities of the fabric
 *
 * The caller may set other operations, and adds the endpoint to the domain.
 *
 * Context: Process context; sleeps.
 * Return: the endpoint, or NULL without memory.
 */
struct kefa_direct *kefa_direct_new(struct kefa_domain *dom, const struct fi_info *info,
				    const struct kefa_ep_kind *kind, u64 caps)
{
	struct kefa_direct *direct = kzalloc(sizeof(*direct), GFP_KERNEL);
	struct kefa_ep *ep;

	if (!direct)
		return NULL;
	ep = &direct->ep;
	kefa_ep_init(ep, kind, dom, info, caps, kefa_direct_work);
	ep->ep_fid.fid.ops = &kefa_direct_fid_ops;
	ep->ep_fid.ops = &kefa_direct_ep_ops;
	ep->ep_fid.msg = &kefa_direct_msg_ops;
	ep->ep_fid.tagged = &kofi_req_tagged_ops;
	ep->ep_fid.rma = &kefa_direct_rma_ops;
	ep->ep_fid.atomic = &kofi_req_atomic_ops;
	ep->ep_fid.req = &kefa_direct_req_ops;
	ep->tx.base.known = KEFA_TX_DEFAULTS;
	ep->rx.base.known = KEFA_RX_DEFAULTS;
	INIT_LIST_HEAD(&direct->rests);
	INIT_LIST_HEAD(&direct->rests_free);
	INIT_DELAYED_WORK(&direct->rnr_work, kefa_rnr_work);
	return direct;
}

static int kefa_direct_open(struct kefa_domain *dom, const struct fi_info *info,
			    struct fid_ep **ep)
{
	struct kefa_direct *direct;
	int ret;

	if (!kefa_direct_possible(dom->dev, info))
		return -EINVAL;
	direct = kefa_direct_new(dom, info, &kefa_direct_kind, kefa_direct_caps(dom->dev));
	if (!direct)
		return -ENOMEM;
	ret = kefa_ep_add(&direct->ep);
	if (ret) {
		kfree(direct);
		return ret;
	}
	*ep = &direct->ep.ep_fid;
	return 0;
}

const struct kefa_fabric_kind kefa_direct_fabric = {
	.name	= FI_EFA_FABRIC_DIRECT,
	.type	= FI_EP_RDM,
	.info	= kefa_direct_info,
	.open	= kefa_direct_open,
	.domain	= {
		.av_open	= kefa_av_open,
		.cq_open	= kofi_cq_open,
		.endpoint	= kefa_domain_endpoint,
		.cntr_open	= kofi_cntr_open,
		.mr_regattr	= kefa_mr_regattr,
		.mr_alloc	= kefa_mr_alloc,
	},
};
