// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints, which are first open, then enabled, then stopped. Closing an endpoint, or
 * removal of its device, stops it in the same steps: refuse new posts; poll the remaining
 * completions; destroy the queue pair, so that the device no longer uses any memory;
 * complete all operations that are still outstanding.
 */
#include <linux/slab.h>
#include "copy.h"
#include "direct/op.h"
#include "direct/rnr.h"
#include "ep.h"
#include "kefa.h"
#include "mr.h"
#include "rdm/rdm.h"
#include "trace.h"

/**
 * kefa_ep_halt() - refuse new posts
 * @ep: the endpoint
 * @err: positive errno for outstanding operations; that of the first halt is used
 *
 * Data calls may still run until the end of the next RCU grace period.
 *
 * Context: Process context, under kefa_dev.lock.
 */
void kefa_ep_halt(struct kefa_ep *ep, int err)
{
	lockdep_assert_held(&ep->dom->dev->lock);
	spin_lock_bh(&ep->lock);
	if (ep->state != KEFA_EP_STOPPED) {
		ep->had_qp = ep->state == KEFA_EP_ENABLED;
		WRITE_ONCE(ep->stop_err, err);
		WRITE_ONCE(ep->state, KEFA_EP_STOPPED);
		ep->kind->limits(ep);
		trace_kefa_ep(ep, false, err);
	}
	spin_unlock_bh(&ep->lock);
}

/**
 * kefa_ep_teardown() - destroy the queue pair, and complete all outstanding operations
 * @ep: the endpoint, halted at least one RCU grace period ago
 *
 * Context: Process context, under kefa_dev.lock; sleeps.
 */
void kefa_ep_teardown(struct kefa_ep *ep)
{
	struct kefa_dev *dev = ep->dom->dev;
	struct kefa_news news;
	bool reaches;
	size_t lost = 0;

	lockdep_assert_held(&dev->lock);
	if (!ep->had_qp)
		return;
	ep->had_qp = false;
	kofi_ep_del_source(&ep->tx.base, &ep->rx.base);
	spin_lock_bh(&ep->lock);
	ep->nheld = 0;
	ep->nrecvs = 0;
	while (ep->kind->poll(ep, KEFA_POLL_BUDGET))
		;
	spin_unlock_bh(&ep->lock);

	reaches = kefa_destroy_qp(&ep->dom->refused, &ep->hq) && !dev->silenced;
	if (ep->kind->revoke)
		ep->kind->revoke(ep);

	spin_lock_bh(&ep->lock);
	if (reaches)
		lost = ep->kind->keep(ep);
	ep->kind->fail(ep, dev->dead ? ENODEV : ep->stop_err);
	news = kefa_ep_news(ep);
	spin_unlock_bh(&ep->lock);
	ep->kind->end(ep, reaches);
	if (lost)
		dev_warn_ratelimited(&dev->ibdev->dev,
				     "kofi_efa: the device kept a queue pair that can still access %zu bytes of kmalloc() memory, which may be reused; reset the device\n",
				     lost);
	kefa_ep_tell(ep, news, false);
}

/* Halt an endpoint, wait for data calls, and tear it down. */
static void kefa_ep_end(struct kefa_ep *ep)
{
	lockdep_assert_held(&ep->dom->dev->lock);
	kefa_ep_halt(ep, ECANCELED);
	if (ep->had_qp)
		synchronize_rcu();
	kefa_ep_teardown(ep);
}

/**
 * kefa_ep_stop() - close an endpoint, except for freeing it
 * @ep: the endpoint
 *
 * Context: Process context; sleeps.
 */
void kefa_ep_stop(struct kefa_ep *ep)
{
	struct kefa_dev *dev = ep->dom->dev;

	if (ep->kind->linger)
		ep->kind->linger(ep);
	kefa_dev_lock(dev);
	kefa_ep_end(ep);
	list_del(&ep->list);
	kefa_dev_unlock(dev);

	/* Workers don't queue these again, because the endpoint refuses posts. */
	cancel_delayed_work_sync(&ep->map_retry);
	cancel_delayed_work_sync(&ep->rnr_work);
	cancel_delayed_work_sync(&ep->idle);
	cancel_work_sync(&ep->work);
	ep->kind->fini(ep);
}

static int kefa_ep_close(struct fid *fid)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);

	kefa_ep_stop(ep);
	/* Readers may still find the endpoint among their queue's sources, under RCU. */
	kfree_rcu(ep, rcu);
	return 0;
}

/* Choose the CPU of the queue pair's vector and of the worker. */
static void kefa_ep_set_cpu(struct kefa_ep *ep, int cpu)
{
	ep->cpu = cpu;
	/*
	 * The ULP may have asked for a CPU that doesn't exist. The workqueue has no workers for one
	 * that was never online.
	 */
	if (cpu >= 0 && cpu < nr_cpu_ids && cpu_online(cpu))
		ep->work_cpu = cpu;
}

/**
 * kefa_ep_bind() - bind an address vector, a completion queue or a counter
 * @fid: the endpoint
 * @bfid: the object to bind
 * @flags: flags of fi_ep_bind()
 *
 * Serves as fi_ops.bind.
 *
 * Context: Process context; sleeps.
 * Return: 0, or a negative errno.
 */
int kefa_ep_bind(struct fid *fid, struct fid *bfid, u64 flags)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);
	const struct fi_cq_attr *attr;

	if (bfid->fclass == FI_CLASS_AV) {
		ep->av = container_of(bfid, struct kefa_av, av_fid.fid);
		return 0;
	}
	if (bfid->fclass == FI_CLASS_CQ) {
		attr = &container_of(bfid, struct kofi_cq, cq_fid.fid)->attr;
		if (attr->flags & FI_AFFINITY)
			kefa_ep_set_cpu(ep, attr->signaling_vector);
	}
	return kofi_ep_bind(&ep->tx.base, &ep->rx.base, bfid, flags);
}

static bool kefa_side_calls(const struct kefa_side *side)
{
	return side->base.cq && side->base.cq->attr.handler;
}

static int kefa_ep_start(struct kefa_ep *ep)
{
	struct kefa_dev *dev = ep->dom->dev;
	struct kefa_hw_qp_attr attr = {
		.tx_depth	= ep->tx.base.size,
		.rx_depth	= ep->rx.base.size,
		.rnr_retry	= ep->rnr_ms && ep->rnr_retry == FI_EFA_RNR_INFINITE ?
				  KEFA_RNR_TRIES : ep->rnr_retry,
	};
	int ret;

	lockdep_assert_held(&dev->lock);
	if (ep->dom->gone)
		return -ENODEV;
	if (ep->cpu < 0)
		kefa_ep_set_cpu(ep, kefa_cpus_next());
	attr.vector = kefa_dev_vector(dev, ep->cpu);
	ret = ep->kind->init(ep, &attr);
	if (ret)
		return ret;
	ep->by_readers = !ep->tx.base.counted && !ep->rx.base.counted &&
			 !kefa_side_calls(&ep->tx) && !kefa_side_calls(&ep->rx);
	ep->hq.pd = ep->dom->pd;
	ep->hq.event = kefa_ep_event;
	ep->hq.arg = ep;
	ret = kefa_create_qp(&ep->dom->refused, &ep->hq, &attr);
	if (ret) {
		/* Nothing was posted, so the device doesn't use any memory. */
		ep->kind->fini(ep);
		return ret;
	}
	spin_lock_bh(&ep->lock);
	/* Pairs with kefa_not_enabled(), so that posts see the endpoint set up. */
	smp_store_release(&ep->state, KEFA_EP_ENABLED);
	ep->kind->started(ep);
	trace_kefa_ep(ep, true, 0);
	spin_unlock_bh(&ep->lock);
	kofi_ep_add_source(&ep->tx.base, &ep->rx.base, ep->kind->read, ep);
	/* The worker arms the queue. */
	kefa_ep_kick(ep);
	return 0;
}

static int kefa_ep_enable(struct kefa_ep *ep)
{
	int ret;

	kofi_cq_check_recvs(ep->tx.base.cq, ep->rx.base.cq, ep->rx.base.size);
	kefa_dev_lock(ep->dom->dev);
	ret = kefa_ep_start(ep);
	kefa_dev_unlock(ep->dom->dev);
	return ret;
}

/* Regions of the endpoint remain; their outstanding requests complete with an error. */
static int kefa_ep_disable(struct kefa_ep *ep)
{
	struct kefa_dev *dev = ep->dom->dev;

	if (ep->kind->linger)
		ep->kind->linger(ep);
	kefa_dev_lock(dev);
	kefa_ep_end(ep);
	if (!ep->dom->gone)
		kefa_mrs_end(ep);
	kefa_dev_unlock(dev);
	return 0;
}

/**
 * kefa_ep_control() - enable or disable an endpoint, or get or set its flags
 * @fid: the endpoint
 * @command: FI_ENABLE, FI_DISABLE or another command of fi_control()
 * @arg: argument of the command
 *
 * Serves as fi_ops.control.
 *
 * Context: Process context; sleeps.
 * Return: 0, or a negative errno.
 */
int kefa_ep_control(struct fid *fid, int command, void *arg)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);
	int ret;

	if (command == FI_ENABLE)
		return kefa_ep_enable(ep);
	if (command == FI_DISABLE)
		return kefa_ep_disable(ep);
	spin_lock_bh(&ep->lock);
	ret = kofi_ep_opsflag(&ep->tx.base, &ep->rx.base, command, arg);
	ep->kind->limits(ep);
	spin_unlock_bh(&ep->lock);
	return ret;
}

static const struct fi_ops kefa_ep_fid_ops = {
	.close		= kefa_ep_close,
	.bind		= kefa_ep_bind,
	.control	= kefa_ep_control,
};

static int kefa_getopt(struct fid *fid, int level, int optname, void *optval,
		       size_t *optlen)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);
	const struct kefa_dev *dev = ep->dom->dev;
	size_t value;

	switch (optname) {
	case FI_OPT_TX_SIZE:
		value = ep->tx.base.size;
		break;
	case FI_OPT_RX_SIZE:
		value = ep->rx.base.size;
		break;
	case FI_OPT_MAX_MSG_SIZE:
		value = dev->mtu;
		break;
	case FI_OPT_MAX_RMA_SIZE:
		value = dev->rdma_read || dev->rdma_write ? KEFA_MAX_RDMA : 0;
		break;
	case FI_OPT_INJECT_MSG_SIZE:
	case FI_OPT_INJECT_RMA_SIZE:
		value = kefa_inject_size(dev);
		break;
	case FI_OPT_EFA_RNR_RETRY:
		value = READ_ONCE(ep->rnr_retry);
		break;
	case FI_OPT_RNR_TIMEOUT:
		value = READ_ONCE(ep->rnr_ms);
		break;
	default:
		return -ENOPROTOOPT;
	}
	return kofi_copy_out(optval, optlen, &value, sizeof(value));
}

/**
 * kefa_set_rnr() - set how long, or how often, sends to a peer without a receive are retried
 * @ep: the endpoint, not enabled yet
 * @optname: FI_OPT_EFA_RNR_RETRY or FI_OPT_RNR_TIMEOUT
 * @value: value of the option
 *
 * Context: Process context; sleeps.
 * Return: 0, -EINVAL, -EOPNOTSUPP, -FI_EOPBADSTATE.
 */
int kefa_set_rnr(struct kefa_ep *ep, int optname, size_t value)
{
	bool timeout = optname == FI_OPT_RNR_TIMEOUT;
	int ret = 0;

	if (value > (timeout ? INT_MAX : FI_EFA_RNR_INFINITE))
		return -EINVAL;
	/* Both limits need a device that supports a number of retries. */
	if (value != (timeout ? 0 : FI_EFA_RNR_INFINITE) &&
	    !ep->dom->dev->rnr_retry_ok)
		return -EOPNOTSUPP;
	kefa_dev_lock(ep->dom->dev);
	if (ep->state != KEFA_EP_OPEN)
		ret = -FI_EOPBADSTATE;
	else if (timeout)
		WRITE_ONCE(ep->rnr_ms, value);
	else
		WRITE_ONCE(ep->rnr_retry, value);
	kefa_dev_unlock(ep->dom->dev);
	return ret;
}

static int kefa_setopt(struct fid *fid, int level, int optname,
		       const void *optval, size_t optlen)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);
	size_t value;

	if (optname != FI_OPT_EFA_RNR_RETRY && optname != FI_OPT_RNR_TIMEOUT)
		return -ENOPROTOOPT;
	if (optlen != sizeof(value))
		return -EINVAL;
	memcpy(&value, optval, sizeof(value));
	return kefa_set_rnr(ep, optname, value);
}

/* There is no cancel, because the device can't cancel work requests. */
static const struct fi_ops_ep kefa_ep_ops = {
	.getopt	= kefa_getopt,
	.setopt	= kefa_setopt,
};

static int kefa_getname(struct fid *fid, void *addr, size_t *addrlen)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);
	struct fi_efa_addr name = { };

	/* The address contains the number of the queue pair. */
	if (READ_ONCE(ep->state) != KEFA_EP_ENABLED)
		return -FI_EOPBADSTATE;
	memcpy(name.gid, ep->dom->dev->gid, sizeof(name.gid));
	name.qpn = ep->hq.qpn;
	name.qkey = ep->hq.qkey;
	return kofi_copy_out(addr, addrlen, &name, sizeof(name));
}

const struct fi_ops_cm kefa_cm_ops = {
	.getname = kefa_getname,
};

/**
 * kefa_ep_init() - initialize the common part of endpoints of both fabrics
 * @ep: the endpoint, zeroed; the caller sets the operations and valid flags
 * @kind: functions for the endpoint's fabric
 * @dom: domain of the endpoint
 * @info: fi_info that the endpoint is opened with
 * @caps: capabilities of the fabric
 * @work: worker of the endpoint
 *
 * Context: Process context.
 */
void kefa_ep_init(struct kefa_ep *ep, const struct kefa_ep_kind *kind,
		  struct kefa_domain *dom, const struct fi_info *info, u64 caps,
		  work_func_t work)
{
	ep->kind = kind;
	ep->ep_fid.cm = &kefa_cm_ops;
	ep->dom = dom;
	ep->caps = kofi_ep_caps(info->caps, caps);
	ep->cpu = -1;
	ep->work_cpu = WORK_CPU_UNBOUND;
	ep->rnr_retry = FI_EFA_RNR_INFINITE;
	ep->tx.base.size = info->tx_attr->size ?: dom->dev->tx_depth;
	ep->rx.base.size = info->rx_attr->size ?: dom->dev->rx_depth;
	ep->tx.base.op_flags = info->tx_attr->op_flags;
	ep->rx.base.op_flags = info->rx_attr->op_flags;
	spin_lock_init(&ep->lock);
	INIT_LIST_HEAD(&ep->copies);
	INIT_LIST_HEAD(&ep->rests);
	INIT_LIST_HEAD(&ep->rests_free);
	INIT_WORK(&ep->work, work);
	INIT_DELAYED_WORK(&ep->idle, kefa_ep_idle);
	INIT_DELAYED_WORK(&ep->map_retry, kefa_direct_map_retry);
	INIT_DELAYED_WORK(&ep->rnr_work, kefa_rnr_work);
}

/**
 * kefa_ep_add() - add an endpoint to its domain
 * @ep: the endpoint
 *
 * Context: Process context; sleeps.
 * Return: 0, or -ENODEV.
 */
int kefa_ep_add(struct kefa_ep *ep)
{
	struct kefa_domain *dom = ep->dom;
	int ret = 0;

	kefa_dev_lock(dom->dev);
	if (dom->gone)
		ret = -ENODEV;
	else
		list_add_tail(&ep->list, &dom->eps);
	kefa_dev_unlock(dom->dev);
	return ret;
}

/* --- fabric efa-direct --- */

static int kefa_direct_init(struct kefa_ep *ep, struct kefa_hw_qp_attr *attr)
{
	return kefa_ops_init(ep);
}

static const struct kefa_ep_kind kefa_direct = {
	.init		= kefa_direct_init,
	.fini		= kefa_ops_fini,
	.started	= kefa_plain_limits,
	.limits		= kefa_plain_limits,
	.poll		= kefa_direct_poll,
	.revoked	= kefa_direct_mr_revoked,
	.keep		= kefa_ops_keep,
	.fail		= kefa_direct_fail_all,
	.end		= kefa_copies_fini,
	.scan		= kefa_ops_scan,
	.read		= kefa_direct_read,
};

static bool kefa_ep_possible(const struct kefa_dev *dev,
			     const struct fi_info *info)
{
	const struct fi_ep_attr *attr = info->ep_attr;

	return !(info->caps & ~kefa_caps(dev)) &&
	       (attr->type == FI_EP_RDM || attr->type == FI_EP_UNSPEC) &&
	       info->tx_attr->size <= dev->tx_depth &&
	       info->rx_attr->size <= dev->rx_depth &&
	       !(info->tx_attr->op_flags & ~KEFA_TX_DEFAULTS) &&
	       !(info->rx_attr->op_flags & ~KEFA_RX_DEFAULTS);
}

int kefa_ep_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, void *context)
{
	struct kefa_domain *dom = to_kefa_domain(domain);
	struct kefa_ep *new;
	int ret;

	if (dom->rdm)
		return kefa_rdm_open(domain, info, ep, context);
	if (!kefa_ep_possible(dom->dev, info))
		return -EINVAL;
	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	kefa_ep_init(new, &kefa_direct, dom, info, kefa_caps(dom->dev), kefa_direct_work);
	new->ep_fid.fid.ops = &kefa_ep_fid_ops;
	new->ep_fid.ops = &kefa_ep_ops;
	new->ep_fid.msg = &kefa_direct_msg_ops;
	new->ep_fid.tagged = &kofi_req_tagged_ops;
	new->ep_fid.rma = &kefa_direct_rma_ops;
	new->ep_fid.req = &kefa_direct_req_ops;
	new->tx.base.known = KEFA_TX_DEFAULTS;
	new->rx.base.known = KEFA_RX_DEFAULTS;
	ret = kefa_ep_add(new);
	if (ret) {
		kfree(new);
		return ret;
	}
	*ep = &new->ep_fid;
	return 0;
}
