// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Endpoints, which are first open, then enabled, then stopped. Closing an endpoint, or
 * removal of its device, stops it in the same steps: refuse new posts; poll the remaining
 * completions; destroy the queue pair, so that the device no longer uses any memory;
 * complete all operations that are still outstanding.
 */
#include "ep.h"
#include "kefa.h"
#include "mr.h"
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
		/* Pairs with kefa_not_enabled(), which then reads the errno. */
		smp_store_release(&ep->state, KEFA_EP_STOPPED);
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
	cancel_delayed_work_sync(&ep->idle);
	cancel_work_sync(&ep->work);
	if (ep->softirq)
		compat_bh_cancel_sync(&ep->bh);
	ep->kind->fini(ep);
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

/* Also those of reads and writes by peers, which kofi_side.counted doesn't mean. */
static bool kefa_side_counts(const struct kefa_side *side)
{
	return side->base.cntr[KOFI_CNTR_MSG] || side->base.cntr[KOFI_CNTR_READ] ||
	       side->base.cntr[KOFI_CNTR_WRITE];
}

/* Return: whether a direction has no handler that may sleep. */
static bool kefa_side_softirq(const struct kefa_side *side)
{
	return !kefa_side_calls(side) || side->base.cq->attr.flags & FI_CQ_SOFTIRQ;
}

/* Return: whether somebody can be notified of a direction's completions. */
static bool kefa_side_tells(const struct kefa_side *side)
{
	return kefa_side_calls(side) ||
	       (side->base.cq && side->base.cq->attr.wait_obj != FI_WAIT_NONE);
}

/* Return: whether somebody waits for each send, and doesn't only poll for it. */
static bool kefa_ep_awaits_each(const struct kefa_ep *ep)
{
	if (kefa_side_counts(&ep->tx))
		return true;
	if (ep->tx.base.lazy)
		return false;
	return kefa_side_tells(&ep->tx) || (ep->tx.base.cq && ep->tx.base.cq == ep->rx.base.cq);
}

static u8 kefa_side_unflagged(const struct kefa_side *side, bool lazy)
{
	if (side->base.selective)
		return KEFA_QUIET;
	return lazy ? KEFA_LAZY : KEFA_TOLD;
}

/* @two: sends may have a completion queue of their own. */
static int kefa_ep_start(struct kefa_ep *ep, bool two)
{
	struct kefa_dev *dev = ep->dom->dev;
	struct kefa_hw_qp_attr attr = {
		.tx_depth	= ep->tx.base.size,
		.rx_depth	= ep->rx.base.size,
		.rnr_retry	= ep->rnr_retry,
	};
	int ret;

	lockdep_assert_held(&dev->lock);
	if (ep->dom->gone)
		return -ENODEV;
	if (ep->cpu < 0)
		kefa_ep_set_cpu(ep, kefa_cpus_next());
	attr.vector = kefa_dev_vector(dev, ep->cpu);
	ep->split = two && ep->kind->read_split && !kefa_ep_awaits_each(ep);
	ep->tells_tx = kefa_side_tells(&ep->tx);
	attr.split = ep->split;
	ep->tx.unflagged = kefa_side_unflagged(&ep->tx, ep->split);
	ep->rx.unflagged = kefa_side_unflagged(&ep->rx, false);
	ep->tx.counted = ep->tx.base.counted || ep->split;
	ep->rx.counted = ep->rx.base.counted;
	ep->tx_armed = false;
	ep->tx_late = false;
	ep->tx_hurry = 0;
	ep->tx_hurry_more = false;
	ep->nawaited = 0;
	ret = ep->kind->init(ep, &attr);
	if (ret)
		return ret;
	ep->by_readers = !kefa_side_counts(&ep->tx) && !kefa_side_counts(&ep->rx) &&
			 !kefa_side_calls(&ep->tx) && !kefa_side_calls(&ep->rx);
	ep->softirq = ep->kind->soft && kefa_side_softirq(&ep->tx) &&
		      kefa_side_softirq(&ep->rx) &&
		      (kefa_side_calls(&ep->tx) || kefa_side_calls(&ep->rx));
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
	kofi_ep_add_source(&ep->tx.base, &ep->rx.base,
			   ep->split ? ep->kind->read_split : ep->kind->read, ep);
	/* The worker arms the queue. */
	kefa_ep_kick(ep);
	return 0;
}

static int kefa_ep_enable(struct kefa_ep *ep)
{
	int ret;

	kofi_cq_check_recvs(ep->tx.base.cq, ep->rx.base.cq, ep->rx.base.size);
	kefa_dev_lock(ep->dom->dev);
	ret = kefa_ep_start(ep, true);
	/* The device has too few completion queues: have each send raise an event. */
	if (ret == -ENOMEM && ep->split)
		ret = kefa_ep_start(ep, false);
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
 * kefa_ep_await() - wait for the end of operations
 * @ep: the endpoint
 * @busy: returns whether there still are some; called under kefa_ep.lock
 * @arg: argument of @busy
 * @timeout_ms: longest time to wait
 *
 * Looks at intervals, so that the data path doesn't pay for it. The first ones are short.
 *
 * Context: Process context; sleeps.
 * Return: 0 or -ETIMEDOUT.
 */
int kefa_ep_await(struct kefa_ep *ep, bool (*busy)(struct kefa_ep *ep, const void *arg),
		  const void *arg, unsigned int timeout_ms)
{
	const ktime_t end = ktime_add_ms(ktime_get(), timeout_ms);
	unsigned int nap = 1;
	bool left;

	for (;;) {
		spin_lock_bh(&ep->lock);
		left = busy(ep, arg);
		/* The reader that would poll may be the task that waits here. */
		if (left)
			kefa_ep_kick(ep);
		spin_unlock_bh(&ep->lock);
		if (!left)
			return 0;
		if (ktime_after(ktime_get(), end))
			return -ETIMEDOUT;
		msleep(nap);
		nap = min(nap * 2, (unsigned int)KEFA_QUIET_MS);
	}
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

/**
 * kefa_set_rnr() - set how often, or how long, sends to a peer without a receive are retried
 * @ep: the endpoint, not enabled yet
 * @option: kefa_ep.rnr_retry, or the time in milliseconds
 * @value: value of the option
 * @max: maximum of the option
 * @any: the value that each device supports
 *
 * Context: Process context; sleeps.
 * Return: 0, -EINVAL, -EOPNOTSUPP, -FI_EOPBADSTATE.
 */
int kefa_set_rnr(struct kefa_ep *ep, u32 *option, size_t value, u32 max, u32 any)
{
	int ret = 0;

	if (value > max)
		return -EINVAL;
	if (value != any && !ep->dom->dev->rnr_retry_ok)
		return -EOPNOTSUPP;
	kefa_dev_lock(ep->dom->dev);
	if (ep->state == KEFA_EP_OPEN)
		WRITE_ONCE(*option, value);
	else
		ret = -FI_EOPBADSTATE;
	kefa_dev_unlock(ep->dom->dev);
	return ret;
}

/* Return: whether an option of type bool needs what the driver's kernel verbs can't do. */
static bool kefa_opt_unable(int optname)
{
	return optname == FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES ||
	       optname == FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES ||
	       optname == FI_OPT_EFA_USE_UNSOLICITED_WRITE_RECV;
}

/**
 * kefa_ep_getopt() - get an option that is in a table, or that all endpoints of EFA have
 * @opts: the table
 * @n: number of entries
 * @optname: name of the option
 * @optval: takes the value
 * @optlen: length of @optval; takes the option's
 *
 * Context: Process context.
 * Return: 0, -ENOPROTOOPT, -FI_ETOOSMALL.
 */
int kefa_ep_getopt(const struct kofi_opt *opts, size_t n, int optname, void *optval,
		   size_t *optlen)
{
	const bool no = false;

	if (kefa_opt_unable(optname))
		return kofi_copy_out(optval, optlen, &no, sizeof(no));
	return kofi_getopt(opts, n, optname, optval, optlen);
}

/**
 * kefa_ep_setopt() - set an option that all endpoints of EFA have
 * @optname: name of the option
 * @optval: the value
 * @optlen: length of @optval
 *
 * Context: Process context.
 * Return: 0, -EINVAL, -ENOPROTOOPT, -EOPNOTSUPP.
 */
int kefa_ep_setopt(int optname, const void *optval, size_t optlen)
{
	if (!kefa_opt_unable(optname))
		return -ENOPROTOOPT;
	if (optlen != sizeof(bool))
		return -EINVAL;
	return *(const bool *)optval ? -EOPNOTSUPP : 0;
}

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

static const struct fi_ops_cm kefa_cm_ops = {
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
	INIT_WORK(&ep->work, work);
	INIT_WORK(&ep->soft, kind->soft);
	compat_bh_init(&ep->bh, &ep->soft);
	INIT_DELAYED_WORK(&ep->idle, kefa_ep_idle);
	INIT_DELAYED_WORK(&ep->map_retry, kefa_ep_map_retry);
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
