// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Opening, enabling and closing endpoints of fabric efa, and their options. */
#include <linux/slab.h>
#include "../ah.h"
#include "../dev.h"
#include "../kefa.h"
#include "../mr.h"
#include "atomic.h"
#include "knobs.h"
#include "local.h"
#include "rdm.h"
#include "strange.h"

/* Maximum number of removed peers whose message numbers are remembered. */
#define KEFA_TOMBS_MAX	4096

/* Number of kept messages for which the tables are sized; more make lookups slower. */
#define KEFA_MSGS	256

/* --- completion queues --- */

/* The queue has a reserve, because a multi-receive buffer has several completions for one post. */
static int kefa_rdm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
			    void *context)
{
	static const struct kofi_cq_config config = {
		.default_size	= KOFI_CQ_SIZE,
		.max_size	= KOFI_CQ_MAX_SIZE,
		.reserve	= KEFA_CQ_RESERVE,
	};

	return kofi_cq_alloc(attr, &config, cq);
}

/* --- opening and closing --- */

/* Have the worker handle the messages that waited for room in the completion queue. */
static void kefa_rdm_replenished(struct kofi_cq_waiter *waiter)
{
	kefa_ep_kick(&container_of(waiter, struct kefa_rdm, waiter)->ep);
}

static enum hrtimer_restart kefa_rdm_timer(struct hrtimer *timer)
{
	struct kefa_rdm *rdm = container_of(timer, struct kefa_rdm, timer);

	kefa_ep_kick(&rdm->ep);
	return HRTIMER_NORESTART;
}

static void kefa_rdm_fini(struct kefa_ep *ep)
{
	struct kefa_rdm *rdm = to_kefa_rdm(ep);

	if (!rdm->enabled)
		return;
	rdm->enabled = false;
	kefa_sources_fini(rdm);
	kefa_copies_fini(ep, false);
	kefa_tx_fini(rdm, false);
	kefa_rx_end(rdm, false);
	kefa_rx_fini(rdm);
	kefa_rops_fini(&rdm->rops);
	kefa_targets_fini(rdm);
	kefa_atomics_fini(rdm);
	kefa_index_fini(&rdm->msgs);
	kvfree(rdm->heads);
	rdm->heads = NULL;
}

/* Return: @wanted, limited to the data of packets that can be posted together. */
static u32 kefa_rdm_at_once(const struct kefa_dev *dev, unsigned int wanted)
{
	const u32 packets = min_t(u32, KEFA_HELD_MAX, dev->tx_depth / 4);

	return min(wanted, packets * (dev->mtu - KEFA_HDR_ROOM));
}

/**
 * kefa_rdm_max_medium() - get the longest message that is sent without waiting for the receiver
 * @dev: device of the endpoint
 *
 * The receiver grants longer messages part by part.
 *
 * Context: Any.
 * Return: length in bytes.
 */
u32 kefa_rdm_max_medium(const struct kefa_dev *dev)
{
	return kefa_rdm_at_once(dev, READ_ONCE(kefa_knobs.inter_max_medium_message_size));
}

static int kefa_rdm_alloc(struct kefa_rdm *rdm)
{
	struct kefa_ep *ep = &rdm->ep;
	const size_t heads = kofi_match_heads(ep->rx.base.size, KEFA_MSGS);

	rdm->heads = kvcalloc(heads, sizeof(*rdm->heads), GFP_KERNEL);
	if (!rdm->heads)
		return -ENOMEM;
	kofi_match_init(&rdm->match, &ep->lock, rdm->heads, heads);
	return kefa_targets_init(rdm) ?: kefa_atomics_init(rdm) ?:
	       kefa_index_init(&rdm->msgs, &ep->lock, max_t(u64, KEFA_MSGS, rdm->budget / SZ_1K)) ?:
	       kefa_rops_init(&rdm->rops, &ep->lock,
			      ep->tx.base.size + ep->rx.base.size + KEFA_RDM_SPARE_OPS +
			      rdm->ntargets) ?:
	       kefa_tx_init(rdm) ?: kefa_rx_init(rdm) ?: kefa_copies_init(ep) ?:
	       kefa_sources_init(rdm, rdm->use_rdma ? READ_ONCE(kefa_knobs.read_regions) : 0);
}

static int kefa_rdm_init(struct kefa_ep *ep, struct kefa_hw_qp_attr *attr)
{
	struct kefa_rdm *rdm = to_kefa_rdm(ep);
	struct kefa_dev *dev = ep->dom->dev;
	int ret, i;

	ep->dma = dev->dma;
	ep->max_map = min_t(size_t, kefa_dma_max_map(ep->dma), KEFA_MAX_RDMA);
	ep->tx.nfree = ep->tx.base.size;
	ep->rx.nfree = ep->rx.base.size;
	rdm->lim.mtu = dev->mtu;
	rdm->nts = clamp_t(u32, ep->tx.base.size, min_t(u32, 64, dev->tx_depth), dev->tx_depth);
	/* As many as the ULP can have posted; kept packets use other buffers, within the budget. */
	rdm->depth = clamp_t(u32, ep->rx.base.size, min_t(u32, KEFA_RX_FIRST, dev->rx_depth),
			     dev->rx_depth);
	rdm->budget = READ_ONCE(kefa_knobs.rx_budget);
	rdm->lim.max_medium = kefa_rdm_max_medium(dev);
	rdm->lim.credits = max(READ_ONCE(kefa_knobs.tx_min_credits), 1U);
	rdm->lim.min_read_write = READ_ONCE(kefa_knobs.inter_min_read_write_size);
	rdm->lim.read_segment = clamp_t(u32, READ_ONCE(kefa_knobs.inter_read_segment_size),
					PAGE_SIZE, ep->max_map);
	rdm->lim.runt = kefa_rdm_at_once(dev, READ_ONCE(kefa_knobs.runt_size));
	attr->tx_depth = rdm->nts;
	attr->rx_depth = rdm->depth;
	if (dev->rnr_retry_ok && ep->rnr_retry == FI_EFA_RNR_INFINITE)
		attr->rnr_retry = KEFA_RNR_TRIES;
	rdm->enabled = true;
	ret = kefa_rdm_alloc(rdm);
	if (ret) {
		kefa_rdm_fini(ep);
		return ret;
	}
	for (i = 0; i < ARRAY_SIZE(ep->wrs); i++)
		kefa_wr_init(&ep->wrs[i], ep->dom->pd);
	kefa_eager_init(rdm);
	return 0;
}

/* The queue pair exists, and with it the endpoint's address. */
static void kefa_rdm_started(struct kefa_ep *ep)
{
	struct kefa_rdm *rdm = to_kefa_rdm(ep);
	const struct kefa_raw_addr raw = {
		.qpn	= cpu_to_le16(ep->hq.qpn),
		.qkey	= cpu_to_le32(ep->hq.qkey),
	};
	int i;

	memcpy(rdm->self.raw, &raw, sizeof(raw));
	memcpy(rdm->self.raw, ep->dom->dev->gid, sizeof(raw.gid));
	rdm->self.connid = ep->hq.qkey;
	/* Without RMA there is no memory that peers could write to. */
	rdm->self.features = kefa_shake_features(rdm->use_rdma,
						 rdm->use_rdma && ep->dom->dev->rdma_write &&
						 ep->caps & FI_RMA);
	rdm->self.device_version = ep->dom->dev->part_id;
	for (i = 0; i < 2 * KEFA_SIGNS; i++)
		kefa_shape_make(&rdm->shapes[i / 2][i % 2], &rdm->lim, &rdm->self, i / 2, i % 2);
	kefa_rdm_set_limits(ep);
	kefa_rx_refill(rdm);
	kefa_local_start(rdm);
}

/* The queue pair is destroyed. Peers of both kinds may still use the endpoint's memory. */
static void kefa_rdm_revoke(struct kefa_ep *ep)
{
	kefa_local_end(to_kefa_rdm(ep));
	kefa_sources_end(ep);
}

static size_t kefa_rdm_keep(struct kefa_ep *ep)
{
	/* Receive buffers are the provider's own pages, which are leaked in this case. */
	return kefa_tx_keep(to_kefa_rdm(ep));
}

static void kefa_rdm_fail(struct kefa_ep *ep, int err)
{
	lockdep_assert_held(&ep->lock);
	kefa_rdm_reap(to_kefa_rdm(ep));
	kefa_rdm_fail_all(to_kefa_rdm(ep), err);
	kefa_tx_forget(to_kefa_rdm(ep));
}

static void kefa_rdm_stop(struct kefa_ep *ep, bool reaches)
{
	struct kefa_rdm *rdm = to_kefa_rdm(ep);

	hrtimer_cancel(&rdm->timer);
	kefa_copies_fini(ep, reaches);
	kefa_tx_fini(rdm, reaches);
	kefa_rx_end(rdm, reaches);
}

/* Nothing to do: a peer holds a reference on its address handle while the device uses it. */
static void kefa_rdm_scan(struct kefa_ep *ep, u32 scan)
{
}

static const struct kefa_ep_kind kefa_rdm_kind = {
	.init		= kefa_rdm_init,
	.fini		= kefa_rdm_fini,
	.started	= kefa_rdm_started,
	.limits		= kefa_rdm_set_limits,
	.linger		= kefa_rdm_linger,
	.poll		= kefa_rdm_poll,
	.keep		= kefa_rdm_keep,
	.fail		= kefa_rdm_fail,
	.revoke		= kefa_rdm_revoke,
	.revoked	= kefa_source_revoked,
	.end		= kefa_rdm_stop,
	.scan		= kefa_rdm_scan,
	.evict		= kefa_rdm_evict,
	.read		= kefa_rdm_read,
	.show		= kefa_rdm_show,
};

static int kefa_rdm_close(struct fid *fid)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);
	struct kefa_rdm *rdm = to_kefa_rdm(ep);

	if (ep->av)
		kefa_av_leave(ep->av, &rdm->user);
	kefa_ep_stop(ep);
	cancel_delayed_work_sync(&rdm->join);
	cancel_delayed_work_sync(&rdm->bury);
	cancel_delayed_work_sync(&rdm->silent);
	kofi_cq_forget(ep->rx.base.cq, &rdm->waiter);
	/* kefa_rdm_replenished() may have queued the work before. */
	cancel_work_sync(&ep->work);
	kefa_rdm_peers_fini(rdm);
	kefa_local_put(rdm->local);
	/* A reader may still see the endpoint in the RCU list of its queue's sources. */
	kfree_rcu(ep, rcu);
	return 0;
}

static int kefa_rdm_bind(struct fid *fid, struct fid *bfid, u64 flags)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);
	int ret = kefa_ep_bind(fid, bfid, flags);

	if (ret || bfid->fclass != FI_CLASS_AV)
		return ret;
	ret = kefa_av_join(ep->av, &to_kefa_rdm(ep)->user);
	if (ret)
		ep->av = NULL;
	return ret;
}

static const struct fi_ops kefa_rdm_fid_ops = {
	.close		= kefa_rdm_close,
	.bind		= kefa_rdm_bind,
	.control	= kefa_ep_control,
};

/* --- options --- */

/* Get an option of type bool. Return: false if there is none of that name. */
static bool kefa_get_flag(const struct kefa_rdm *rdm, int optname, bool *value)
{
	const bool rdma = READ_ONCE(rdm->use_rdma);

	switch (optname) {
	case FI_OPT_EFA_EMULATED_READ:
		*value = !rdma;
		return true;
	case FI_OPT_EFA_EMULATED_WRITE:
		*value = !rdma || !rdm->ep.dom->dev->rdma_write;
		return true;
	case FI_OPT_EFA_EMULATED_ATOMICS:
		*value = true;
		return true;
	case FI_OPT_EFA_USE_DEVICE_RDMA:
		*value = rdma;
		return true;
	case FI_OPT_SHARED_MEMORY_PERMITTED:
		*value = rdm->local && READ_ONCE(rdm->local_ok);
		return true;
	case FI_OPT_EFA_HOMOGENEOUS_PEERS:
		*value = READ_ONCE(rdm->self.homogeneous);
		return true;
	}
	return false;
}

static int kefa_rdm_getopt(struct fid *fid, int level, int optname, void *optval,
			   size_t *optlen)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);
	struct kefa_rdm *rdm = to_kefa_rdm(ep);
	const struct kofi_opt opts[] = {
		{ FI_OPT_TX_SIZE, ep->tx.base.size },
		{ FI_OPT_RX_SIZE, ep->rx.base.size },
		{ FI_OPT_MAX_MSG_SIZE, KEFA_RDM_MAX_MSG },
		{ FI_OPT_MAX_TAGGED_SIZE, KEFA_RDM_MAX_MSG },
		{ FI_OPT_MAX_RMA_SIZE, ep->caps & FI_RMA ? KEFA_RDM_MAX_MSG : 0 },
		{ FI_OPT_MAX_ATOMIC_SIZE, ep->caps & FI_ATOMIC ?
		  kefa_atomic_room(ep->dom->dev->mtu) : 0 },
		{ FI_OPT_INJECT_MSG_SIZE, kefa_inject_size(ep->dom->dev) },
		{ FI_OPT_INJECT_TAGGED_SIZE, kefa_inject_size(ep->dom->dev) },
		{ FI_OPT_INJECT_RMA_SIZE, ep->caps & FI_RMA ? kefa_inject_size(ep->dom->dev) : 0 },
		{ FI_OPT_INJECT_ATOMIC_SIZE, ep->caps & FI_ATOMIC ?
		  kefa_inject_size(ep->dom->dev) : 0 },
		{ FI_OPT_MIN_MULTI_RECV, READ_ONCE(rdm->min_multi) },
		{ FI_OPT_EFA_RNR_RETRY, READ_ONCE(ep->rnr_retry) },
		{ FI_OPT_EFA_INTER_MIN_READ_MESSAGE_SIZE, READ_ONCE(rdm->lim.min_read_message) },
	};
	bool flag;

	if (kefa_get_flag(rdm, optname, &flag))
		return kofi_copy_out(optval, optlen, &flag, sizeof(flag));
	return kefa_ep_getopt(opts, ARRAY_SIZE(opts), optname, optval, optlen);
}

/* Set an option that peers are told about or rely on, so it is fixed by fi_enable(). */
static int kefa_set_flag(struct kefa_rdm *rdm, bool *flag, bool value)
{
	int ret = 0;

	spin_lock_bh(&rdm->ep.lock);
	if (rdm->ep.state == KEFA_EP_OPEN)
		WRITE_ONCE(*flag, value);
	else
		ret = -FI_EOPBADSTATE;
	spin_unlock_bh(&rdm->ep.lock);
	return ret;
}

static int kefa_set_use_rdma(struct kefa_rdm *rdm, bool value)
{
	return value && !rdm->ep.dom->dev->rdma_read ? -EOPNOTSUPP :
						      kefa_set_flag(rdm, &rdm->use_rdma, value);
}

/* It is fixed by fi_enable(), because a message is judged again after its registration. */
static int kefa_set_min_read(struct kefa_rdm *rdm, size_t value)
{
	int ret = 0;

	if (!rdm->ep.dom->dev->rdma_read)
		return -EOPNOTSUPP;
	spin_lock_bh(&rdm->ep.lock);
	if (rdm->ep.state == KEFA_EP_OPEN)
		WRITE_ONCE(rdm->lim.min_read_message, value);
	else
		ret = -FI_EOPBADSTATE;
	spin_unlock_bh(&rdm->ep.lock);
	return ret;
}

/* Set an option of the core's connector. Its endpoints have no multi-receive buffers. */
static int kefa_set_lane(struct kefa_rdm *rdm, int optname, const void *optval, size_t optlen)
{
	int ret = 0;

	if (optlen != (optname == KOFI_OPT_WATCH ? sizeof(rdm->watch) : sizeof(size_t)))
		return -EINVAL;
	spin_lock_bh(&rdm->ep.lock);
	if (rdm->ep.state != KEFA_EP_OPEN) {
		ret = -FI_EOPBADSTATE;
	} else if (optname == KOFI_OPT_WATCH) {
		memcpy(&rdm->watch, optval, sizeof(rdm->watch));
	} else {
		rdm->as_msg = *(const size_t *)optval ? KEFA_ROP_AS_MSG : 0;
		rdm->ep.caps &= ~FI_MULTI_RECV;
	}
	spin_unlock_bh(&rdm->ep.lock);
	return ret;
}

static int kefa_rdm_setopt(struct fid *fid, int level, int optname, const void *optval,
			   size_t optlen)
{
	struct kefa_ep *ep = container_of(fid, struct kefa_ep, ep_fid.fid);
	struct kefa_rdm *rdm = to_kefa_rdm(ep);
	size_t value;

	if (optname == FI_OPT_EFA_HOMOGENEOUS_PEERS || optname == FI_OPT_EFA_USE_DEVICE_RDMA ||
	    optname == FI_OPT_SHARED_MEMORY_PERMITTED) {
		if (optlen != sizeof(bool))
			return -EINVAL;
		if (optname == FI_OPT_SHARED_MEMORY_PERMITTED)
			return *(const bool *)optval && !rdm->local ? -EINVAL :
			       kefa_set_flag(rdm, &rdm->local_ok, *(const bool *)optval);
		if (optname == FI_OPT_EFA_USE_DEVICE_RDMA)
			return kefa_set_use_rdma(rdm, *(const bool *)optval);
		return kefa_set_flag(rdm, &rdm->self.homogeneous, *(const bool *)optval);
	}
	if (optname == KOFI_OPT_AS_MSG || optname == KOFI_OPT_WATCH)
		return kefa_set_lane(rdm, optname, optval, optlen);
	if (optname != FI_OPT_MIN_MULTI_RECV && optname != FI_OPT_EFA_RNR_RETRY &&
	    optname != FI_OPT_EFA_INTER_MIN_READ_MESSAGE_SIZE)
		return kefa_ep_setopt(optname, optval, optlen);
	if (optlen != sizeof(value))
		return -EINVAL;
	memcpy(&value, optval, sizeof(value));
	if (optname == FI_OPT_EFA_RNR_RETRY)
		return kefa_set_rnr(ep, &ep->rnr_retry, value, FI_EFA_RNR_INFINITE,
				    FI_EFA_RNR_INFINITE);
	if (optname == FI_OPT_EFA_INTER_MIN_READ_MESSAGE_SIZE)
		return kefa_set_min_read(rdm, value);
	spin_lock_bh(&ep->lock);
	WRITE_ONCE(rdm->min_multi, value);
	spin_unlock_bh(&ep->lock);
	return 0;
}

static const struct fi_ops_ep kefa_rdm_ep_ops = {
	.cancel		= kefa_rdm_cancel,
	.flush		= kefa_rdm_quiet,
	.flush_tag	= kefa_rdm_quiet_tag,
	.cancel_tag	= kefa_rdm_cancel_tag,
	.recv_tag	= kefa_rdm_recv_tag,
	.getopt		= kefa_rdm_getopt,
	.setopt		= kefa_rdm_setopt,
};

static const struct kofi_req_ops kefa_rdm_req_ops = {
	.tx	= kefa_rdm_tx,
	.rx	= kefa_rdm_rx,
};

/*
 * Where the CPU and the device don't see the same memory, the CPU can't carry out what peers ask
 * for by packets.
 */
static u64 kefa_rdm_caps(const struct kefa_dev *dev)
{
	const u64 target = FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT;

	return kefa_dma_coherent(dev->dma) ? KEFA_RDM_CAPS : KEFA_RDM_CAPS & ~target;
}

static bool kefa_rdm_possible(const struct kefa_dev *dev, const struct fi_info *info)
{
	return !(info->caps & ~kefa_rdm_caps(dev)) &&
	       info->tx_attr->size <= max_t(size_t, KEFA_RDM_SIZE, dev->tx_depth) &&
	       info->rx_attr->size <= max_t(size_t, KEFA_RDM_SIZE, dev->rx_depth) &&
	       !(info->tx_attr->op_flags & ~KEFA_TX_DEFAULTS) &&
	       !(info->rx_attr->op_flags & ~(KEFA_RX_DEFAULTS | FI_MULTI_RECV));
}

static int kefa_rdm_peers_init(struct kefa_rdm *rdm)
{
	return kefa_peers_init(&rdm->peers, &rdm->ep.lock, READ_ONCE(kefa_knobs.implicit_av_size),
			       KEFA_TOMBS_MAX);
}

static void kefa_rdm_lists(struct kefa_rdm *rdm)
{
	rdm->user.add = kefa_rdm_peer_add;
	rdm->user.del = kefa_rdm_peer_del;
	INIT_LIST_HEAD(&rdm->todo);
	INIT_LIST_HEAD(&rdm->owing);
	INIT_LIST_HEAD(&rdm->sending);
	INIT_LIST_HEAD(&rdm->reading);
	INIT_LIST_HEAD(&rdm->sources_free);
	INIT_LIST_HEAD(&rdm->parked);
	INIT_LIST_HEAD(&rdm->refusals);
	INIT_LIST_HEAD(&rdm->dying);
	INIT_LIST_HEAD(&rdm->rs_free);
	INIT_LIST_HEAD(&rdm->chunks);
	INIT_LIST_HEAD(&rdm->early);
	INIT_LIST_HEAD(&rdm->due);
	INIT_LIST_HEAD(&rdm->asked);
	INIT_LIST_HEAD(&rdm->targets_free);
	INIT_LIST_HEAD(&rdm->strange);
	INIT_LIST_HEAD(&rdm->waiter.list);
	rdm->waiter.replenished = kefa_rdm_replenished;
	kefa_fair_init(rdm);
	INIT_DELAYED_WORK(&rdm->join, kefa_rdm_join);
	INIT_DELAYED_WORK(&rdm->bury, kefa_rdm_bury);
	INIT_DELAYED_WORK(&rdm->silent, kefa_rdm_silent);
	hrtimer_setup(&rdm->timer, kefa_rdm_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
}

/* Return: the number of checks by silent.c in a time, of which two minutes are the most. */
static u8 kefa_rdm_checks(unsigned int seconds)
{
	return min(seconds, 120U) * MSEC_PER_SEC / KEFA_SILENT_MS;
}

static int kefa_rdm_open(struct kefa_domain *dom, const struct fi_info *info, struct fid_ep **ep)
{
	struct kefa_rdm *rdm;
	int ret;

	if (!kefa_rdm_possible(dom->dev, info))
		return -EINVAL;
	rdm = kzalloc(sizeof(*rdm), GFP_KERNEL);
	if (!rdm)
		return -ENOMEM;
	kefa_ep_init(&rdm->ep, &kefa_rdm_kind, dom, info, kefa_rdm_caps(dom->dev), kefa_rdm_work);
	rdm->ep.ep_fid.fid.ops = &kefa_rdm_fid_ops;
	rdm->ep.ep_fid.ops = &kefa_rdm_ep_ops;
	rdm->ep.ep_fid.msg = &kefa_rdm_msg_ops;
	rdm->ep.ep_fid.tagged = &kefa_rdm_tagged_ops;
	rdm->ep.ep_fid.rma = &kefa_rdm_rma_ops;
	rdm->ep.ep_fid.atomic = &kefa_rdm_atomic_ops;
	rdm->ep.ep_fid.req = &kefa_rdm_req_ops;
	rdm->ep.tx.base.known = KEFA_TX_DEFAULTS;
	rdm->ep.rx.base.known = KEFA_RX_DEFAULTS | FI_MULTI_RECV;
	rdm->ep.rx.base.events = rdm->ep.caps & FI_RMA_EVENT;
	rdm->ordered = info->rx_attr->msg_order & KEFA_RDM_ORDER;
	rdm->min_multi = KEFA_MIN_MULTI_RECV;
	rdm->check_ms = KEFA_SILENT_MS;
	rdm->shake_checks = kefa_rdm_checks(READ_ONCE(kefa_knobs.handshake_timeout));
	rdm->far_checks = kefa_rdm_checks(READ_ONCE(kefa_knobs.rma_timeout));
	rdm->use_rdma = dom->dev->rdma_read;
	rdm->lim.min_read_message = READ_ONCE(kefa_knobs.inter_min_read_message_size);
	rdm->linger_ms = KEFA_LINGER_MS;
	rdm->local_ok = true;
	kefa_rdm_lists(rdm);
	kefa_backoffs_init(&rdm->backoffs, &rdm->ep.lock, READ_ONCE(kefa_knobs.timeout_interval),
			   READ_ONCE(kefa_knobs.max_timeout));
	if (READ_ONCE(kefa_knobs.local_transfer)) {
		rdm->local = kefa_local_new(rdm);
		if (!rdm->local) {
			ret = -ENOMEM;
			goto err_free;
		}
	}
	ret = kefa_rdm_peers_init(rdm);
	if (ret)
		goto err_local;
	rdm->peers.revive = !((info->tx_attr->msg_order | info->rx_attr->msg_order) &
			      KEFA_RDM_ORDER);
	ret = kefa_ep_add(&rdm->ep);
	if (ret)
		goto err_peers;
	WRITE_ONCE(dom->atomic, true);
	*ep = &rdm->ep.ep_fid;
	return 0;

err_peers:
	kefa_peers_fini(&rdm->peers);
err_local:
	kefa_local_put(rdm->local);
err_free:
	kfree(rdm);
	return ret;
}

/* --- the fabric --- */

/*
 * The engine segments, orders and matches messages in software, reads and writes by packets
 * what the device can't, and has atomic operations.
 */
static void kefa_rdm_info(const struct kefa_dev *dev, struct fi_info *info)
{
	const u64 caps = kefa_rdm_caps(dev);

	info->caps = caps;
	*info->tx_attr = (struct fi_tx_attr) {
		.caps		= caps & KEFA_RDM_TX_CAPS,
		.op_flags	= KEFA_TX_DEFAULTS,
		.msg_order	= KEFA_RDM_ORDER,
		.inject_size	= kefa_inject_size(dev),
		.size		= KEFA_RDM_SIZE,
		.iov_limit	= KEFA_IOV_MAX,
		.rma_iov_limit	= KEFA_IOV_MAX,
	};
	*info->rx_attr = (struct fi_rx_attr) {
		.caps		= caps & KEFA_RDM_RX_CAPS,
		.op_flags	= KEFA_RX_DEFAULTS | FI_MULTI_RECV,
		.msg_order	= KEFA_RDM_ORDER,
		.size		= KEFA_RDM_SIZE,
		.iov_limit	= KEFA_IOV_MAX,
	};
	*info->ep_attr = (struct fi_ep_attr) {
		.type			= FI_EP_RDM,
		.protocol		= FI_PROTO_EFA,
		.protocol_version	= KEFA_PROTOCOL_VERSION,
		.max_msg_size		= KEFA_RDM_MAX_MSG,
		.max_order_raw_size	= kefa_atomic_room(dev->mtu),
		.max_order_war_size	= kefa_atomic_room(dev->mtu),
		.max_order_waw_size	= kefa_atomic_room(dev->mtu),
		.mem_tag_format		= U64_MAX,
		.tx_ctx_cnt		= 1,
		.rx_ctx_cnt		= 1,
	};
}

const struct kefa_fabric_kind kefa_rdm_fabric = {
	.name	= FI_EFA_FABRIC,
	.type	= FI_EP_RDM,
	.init	= kefa_rpeer_cache_init,
	.exit	= kefa_rpeer_cache_fini,
	.info	= kefa_rdm_info,
	.open	= kefa_rdm_open,
	.cpu_rma = true,
	.domain	= {
		.av_open	= kefa_av_open,
		.cq_open	= kefa_rdm_cq_open,
		.endpoint	= kefa_domain_endpoint,
		.cntr_open	= kofi_cntr_open,
		.mr_regattr	= kefa_mr_regattr,
		.mr_alloc	= kefa_mr_alloc,
		.query_atomic	= kefa_rdm_query_atomic,
	},
};
