// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints: open, enabled, stopped. An endpoint is stopped when it is closed or its
 * device went away. It then refuses operations, and its worker completes those that are
 * outstanding.
 */
#include <linux/slab.h>
#include "loop.h"

/* Endpoints by id. An endpoint isn't freed while loop_lock is held after a lookup. */
struct xarray loop_eps = XARRAY_INIT(loop_eps,
				     XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH);
static u32 loop_next_ep;	/* xa_lock */

/**
 * loop_ep_stop() - stop an endpoint and complete all its operations
 * @ep: the endpoint
 * @err: errno of the completions; the first call determines it
 *
 * Context: Process context; doesn't wait.
 */
void loop_ep_stop(struct loop_ep *ep, int err)
{
	spin_lock_bh(&loop_lock);
	if (ep->state != LOOP_EP_STOPPED) {
		ep->state = LOOP_EP_STOPPED;
		ep->stop_err = err;
		kofi_cq_forget(ep->rx.base.cq, &ep->waiter);
		queue_work(loop_wq, &ep->work);
	}
	spin_unlock_bh(&loop_lock);
}

static void loop_ep_replenished(struct kofi_cq_waiter *waiter)
{
	queue_work(loop_wq, &container_of(waiter, struct loop_ep, waiter)->work);
}

/**
 * loop_ep_reserve() - reserve an unsolicited entry in an endpoint's queue for receives
 * @ep: the endpoint, with a queue for receives
 *
 * Context: Process or softirq context, under loop_lock.
 * Return: false if there is none: then the endpoint's worker runs when there is.
 */
bool loop_ep_reserve(struct loop_ep *ep)
{
	struct kofi_cq *cq = ep->rx.base.cq;

	lockdep_assert_held(&loop_lock);
	return !kofi_cq_reserve_unsolicited(cq) || !kofi_cq_starve(cq, &ep->waiter);
}

static bool loop_ep_is_idle(struct loop_ep *ep)
{
	bool idle;

	spin_lock_bh(&loop_lock);
	idle = !ep->moving;
	spin_unlock_bh(&loop_lock);
	return idle;
}

static void loop_ep_end(struct loop_ep *ep)
{
	loop_ep_stop(ep, ECANCELED);
	flush_work(&ep->work);
	cancel_work_sync(&ep->work);
	/* Workers of targets may still move the endpoint's data or call its handler. */
	wait_event(ep->idle, loop_ep_is_idle(ep));
}

static int loop_ep_close(struct fid *fid)
{
	struct loop_ep *ep = container_of(fid, struct loop_ep, ep_fid.fid);

	mutex_lock(&loop_lock_control);
	list_del(&ep->list);
	mutex_unlock(&loop_lock_control);
	loop_ep_end(ep);

	spin_lock_bh(&loop_lock);
	xa_erase_bh(&loop_eps, ep->id);
	spin_unlock_bh(&loop_lock);
	kvfree(ep->ops);
	kvfree(ep->table);
	kfree(ep->page);
	kfree(ep);
	return 0;
}

static int loop_ep_bind(struct fid *fid, struct fid *bfid, u64 flags)
{
	struct loop_ep *ep = container_of(fid, struct loop_ep, ep_fid.fid);

	if (bfid->fclass != FI_CLASS_AV)
		return kofi_ep_bind(&ep->tx.base, &ep->rx.base, bfid, flags);
	ep->av = container_of(bfid, struct loop_av, av_fid.fid);
	return 0;
}

static int loop_ep_enable(struct loop_ep *ep)
{
	size_t i, count = ep->tx.base.size + ep->rx.base.size;
	struct loop_op *ops;
	int ret = 0;

	kofi_cq_check_recvs(ep->tx.base.cq, ep->rx.base.cq, ep->rx.base.size);
	ops = kvcalloc(count, sizeof(*ops), GFP_KERNEL);
	if (!ops)
		return -ENOMEM;
	spin_lock_bh(&loop_lock);
	for (i = 0; i < count; i++) {
		ops[i].ep = ep;
		INIT_LIST_HEAD(&ops[i].sent);
		list_add_tail(&ops[i].list, i < ep->tx.base.size ?
			      &ep->tx.free : &ep->rx.free);
	}
	ep->ops = ops;
	if (ep->dom->gone)
		ret = -ENODEV;
	else
		ep->state = LOOP_EP_ENABLED;
	spin_unlock_bh(&loop_lock);
	return ret;
}

static int loop_ep_control(struct fid *fid, int command, void *arg)
{
	struct loop_ep *ep = container_of(fid, struct loop_ep, ep_fid.fid);

	if (command == FI_ENABLE)
		return loop_ep_enable(ep);
	if (command == FI_DISABLE) {
		/* A removal in progress has not yet queued the domain's work. */
		mutex_lock(&loop_lock_control);
		mutex_unlock(&loop_lock_control);
		loop_ep_end(ep);
		flush_work(&ep->dom->mr_work);
		return 0;
	}
	return kofi_ep_opsflag(&ep->tx.base, &ep->rx.base, command, arg);
}

static const struct fi_ops loop_ep_fid_ops = {
	.close		= loop_ep_close,
	.bind		= loop_ep_bind,
	.control	= loop_ep_control,
};

static int loop_getopt(struct fid *fid, int level, int optname, void *optval,
		       size_t *optlen)
{
	struct loop_ep *ep = container_of(fid, struct loop_ep, ep_fid.fid);
	const struct kofi_opt opts[] = {
		{ FI_OPT_TX_SIZE, ep->tx.base.size },
		{ FI_OPT_RX_SIZE, ep->rx.base.size },
		{ FI_OPT_MIN_MULTI_RECV, READ_ONCE(ep->min_multi_recv) },
		{ FI_OPT_MAX_MSG_SIZE, LOOP_MAX_MSG },
		{ FI_OPT_MAX_TAGGED_SIZE, LOOP_MAX_MSG },
		{ FI_OPT_MAX_RMA_SIZE, LOOP_MAX_MSG },
		{ FI_OPT_MAX_ATOMIC_SIZE, LOOP_MAX_ATOMIC },
		{ FI_OPT_INJECT_MSG_SIZE, LOOP_INJECT },
		{ FI_OPT_INJECT_TAGGED_SIZE, LOOP_INJECT },
		{ FI_OPT_INJECT_RMA_SIZE, LOOP_INJECT },
		{ FI_OPT_INJECT_ATOMIC_SIZE, LOOP_INJECT },
	};

	return kofi_getopt(opts, ARRAY_SIZE(opts), optname, optval, optlen);
}

static int loop_setopt(struct fid *fid, int level, int optname, const void *optval,
		       size_t optlen)
{
	struct loop_ep *ep = container_of(fid, struct loop_ep, ep_fid.fid);

	if (optname != FI_OPT_MIN_MULTI_RECV && optname != KOFI_OPT_AS_MSG)
		return -ENOPROTOOPT;
	if (optlen != sizeof(ep->min_multi_recv))
		return -EINVAL;
	spin_lock_bh(&loop_lock);
	if (optname == FI_OPT_MIN_MULTI_RECV)
		WRITE_ONCE(ep->min_multi_recv, *(const size_t *)optval);
	else
		ep->as_msg = *(const size_t *)optval;
	spin_unlock_bh(&loop_lock);
	return 0;
}

static const struct fi_ops_ep loop_ep_ops = {
	.cancel		= loop_cancel,
	.flush		= loop_flush,
	.flush_tag	= loop_flush_tag,
	.cancel_tag	= loop_cancel_tag,
	.recv_tag	= kofi_req_recv_tag,
	.getopt		= loop_getopt,
	.setopt		= loop_setopt,
};

static int loop_getname(struct fid *fid, void *addr, size_t *addrlen)
{
	struct loop_ep *ep = container_of(fid, struct loop_ep, ep_fid.fid);
	const struct loop_addr name = {
		.magic	= LOOP_ADDR_MAGIC,
		.id	= ep->id,
	};

	return kofi_copy_out(addr, addrlen, &name, sizeof(name));
}

static const struct fi_ops_cm loop_cm_ops = {
	.getname = loop_getname,
};

static void loop_ep_init(struct loop_ep *ep, struct loop_domain *dom,
			 const struct fi_info *info)
{
	ep->ep_fid.fid.ops = &loop_ep_fid_ops;
	ep->ep_fid.ops = &loop_ep_ops;
	ep->ep_fid.cm = &loop_cm_ops;
	ep->ep_fid.msg = &kofi_req_msg_ops;
	ep->ep_fid.tagged = &kofi_req_tagged_ops;
	ep->ep_fid.rma = &kofi_req_rma_ops;
	ep->ep_fid.atomic = &kofi_req_atomic_ops;
	ep->ep_fid.req = &loop_req_ops;
	ep->dom = dom;
	ep->caps = kofi_ep_caps(info->caps, LOOP_CAPS);
	ep->tx.base.size = info->tx_attr->size ?: LOOP_SLOTS;
	ep->rx.base.size = info->rx_attr->size ?: LOOP_SLOTS;
	ep->tx.base.op_flags = info->tx_attr->op_flags;
	ep->rx.base.op_flags = info->rx_attr->op_flags;
	ep->tx.base.known = LOOP_TX_FLAGS;
	ep->rx.base.known = LOOP_RX_DEFAULTS;
	ep->rx.base.events = ep->caps & FI_RMA_EVENT;
	ep->min_multi_recv = LOOP_MIN_MULTI;
	INIT_LIST_HEAD(&ep->tx.free);
	INIT_LIST_HEAD(&ep->rx.free);
	INIT_LIST_HEAD(&ep->sent);
	INIT_LIST_HEAD(&ep->posting);
	INIT_LIST_HEAD(&ep->recvs);
	INIT_LIST_HEAD(&ep->inbound);
	INIT_LIST_HEAD(&ep->ready);
	INIT_LIST_HEAD(&ep->waiter.list);
	ep->waiter.replenished = loop_ep_replenished;
	init_waitqueue_head(&ep->idle);
}

static int loop_ep_alloc(struct loop_ep *ep)
{
	size_t heads = kofi_match_heads(ep->rx.base.size, LOOP_SLOTS);

	ep->page = kmalloc(PAGE_SIZE, GFP_KERNEL);
	ep->table = kvcalloc(heads, sizeof(*ep->table), GFP_KERNEL);
	if (!ep->page || !ep->table)
		return -ENOMEM;
	kofi_match_init(&ep->match, &loop_lock, ep->table, heads);
	return 0;
}

static bool loop_ep_possible(const struct fi_info *info)
{
	const struct fi_ep_attr *attr = info->ep_attr;

	return !(info->caps & ~LOOP_CAPS) &&
	       (attr->type == FI_EP_RDM || attr->type == FI_EP_UNSPEC) &&
	       info->tx_attr->size <= LOOP_SLOTS &&
	       info->rx_attr->size <= LOOP_SLOTS &&
	       !(info->tx_attr->op_flags & ~LOOP_TX_FLAGS) &&
	       !(info->rx_attr->op_flags & ~LOOP_RX_DEFAULTS);
}

int loop_ep_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, void *context)
{
	struct loop_domain *dom = to_loop_domain(domain);
	struct loop_ep *new;
	int ret;

	if (!loop_ep_possible(info))
		return -EINVAL;
	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	loop_ep_init(new, dom, info);
	ret = loop_ep_alloc(new);
	if (ret)
		goto err_free;
	ret = xa_alloc_cyclic_bh(&loop_eps, &new->id, new, xa_limit_31b,
				 &loop_next_ep, GFP_KERNEL);
	if (ret < 0)
		goto err_free;
	INIT_WORK(&new->work, loop_ep_work);
	mutex_lock(&loop_lock_control);
	list_add_tail(&new->list, &dom->eps);
	mutex_unlock(&loop_lock_control);
	*ep = &new->ep_fid;
	return 0;

err_free:
	kvfree(new->table);
	kfree(new->page);
	kfree(new);
	return ret;
}
