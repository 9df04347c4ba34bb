// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lanes. Connections whose endpoints are bound to the same queues in the same way share one. It is
 * closed with its last connection, so that the ULP can close its queues and its domain. A lane one
 * of whose peers has died is retired: the peer would be dead for a new connection, too. Those with
 * other peers go on.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include "msg.h"

static DEFINE_MUTEX(kmsg_lanes_lock);	/* protects kmsg_lanes */
static LIST_HEAD(kmsg_lanes);

/* Flags of fi_ep_bind() for kmsg_queues.cntr. */
static const u64 kmsg_cntr_flags[KMSG_CNTRS] = {
	FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE,
};

/**
 * kmsg_queues_add() - add a queue or counter
 * @queues: queues and counters of an endpoint
 * @fid: completion queue or counter
 * @flags: flags of fi_ep_bind()
 */
void kmsg_queues_add(struct kmsg_queues *queues, struct fid *fid, u64 flags)
{
	int i;

	for (i = 0; i < KMSG_CNTRS && fid->fclass == FI_CLASS_CNTR; i++)
		if (flags & kmsg_cntr_flags[i])
			queues->cntr[i] = container_of(fid, struct fid_cntr, fid);
	for (i = 0; i < 2 && fid->fclass == FI_CLASS_CQ; i++) {
		if (!(flags & (i ? FI_RECV : FI_TRANSMIT)))
			continue;
		queues->cq[i] = container_of(fid, struct fid_cq, fid);
		queues->flags[i] = flags & FI_SELECTIVE_COMPLETION;
	}
}

/**
 * kmsg_lane_tell_room() - tell the ULP that a send that was refused may succeed now
 * @lane: the lane
 *
 * Without a queue of sends, the counters tell it, as kofi_side_tell_room() does.
 *
 * Context: Process or softirq context.
 */
void kmsg_lane_tell_room(const struct kmsg_lane *lane)
{
	const struct kmsg_queues *q = &lane->queues;
	int i;

	if (q->cq[0])
		kofi_cq_tell_room(container_of(q->cq[0], struct kofi_cq, cq_fid));
	for (i = 0; i < KMSG_CNTRS && !q->cq[0]; i++)
		if (q->cntr[i] && kmsg_cntr_flags[i] & (FI_SEND | FI_READ | FI_WRITE))
			kofi_cntr_tell_room(container_of(q->cntr[i], struct kofi_cntr, cntr_fid));
}

static bool kmsg_lane_serves(const struct kmsg_lane *lane, const struct kmsg_ep *ep)
{
	return !READ_ONCE(lane->retired) && lane->domain == ep->domain &&
	       lane->caps == ep->caps &&
	       !memcmp(&lane->queues, ep->queues, sizeof(lane->queues)) &&
	       !memcmp(&lane->tx, ep->info->tx_attr, sizeof(lane->tx)) &&
	       !memcmp(&lane->rx, ep->info->rx_attr, sizeof(lane->rx));
}

/* The provider's entry for the endpoint, as kmsg_derive() got it, with the ULP's choices. */
static struct fi_info *kmsg_lane_info(const struct fi_info *msg, u64 caps)
{
	struct fi_info *hints, *info = NULL;
	int ret;

	hints = fi_allocinfo_for(msg->fabric_attr->prov_name, msg->fabric_attr->name,
				 msg->domain_attr->name);
	if (!hints)
		return ERR_PTR(-ENOMEM);
	/* Messages of connections are tagged ones of the lane. */
	hints->caps = (caps & FI_MSG ? FI_TAGGED : 0) | (caps & ~FI_MSG);
	hints->mode = msg->mode;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = msg->tx_attr->msg_order | FI_ORDER_SAS;
	hints->rx_attr->msg_order = msg->rx_attr->msg_order | FI_ORDER_SAS;
	hints->tx_attr->op_flags = msg->tx_attr->op_flags;
	hints->tx_attr->size = msg->tx_attr->size;
	hints->rx_attr->op_flags = msg->rx_attr->op_flags;
	hints->rx_attr->size = msg->rx_attr->size;
	ret = fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	/* The device may have gone. */
	return ret ? ERR_PTR(ret == -ENODATA ? -ENODEV : ret) : info;
}

static int kmsg_lane_bind_cqs(struct kmsg_lane *lane)
{
	const struct kmsg_queues *q = &lane->queues;
	int i, ret = 0;

	if (q->cq[0] && q->cq[0] == q->cq[1] && q->flags[0] == q->flags[1])
		return fi_ep_bind(lane->ep, &q->cq[0]->fid, q->flags[0] | FI_TRANSMIT | FI_RECV);
	for (i = 0; i < 2 && !ret; i++)
		if (q->cq[i])
			ret = fi_ep_bind(lane->ep, &q->cq[i]->fid,
					 q->flags[i] | (i ? FI_RECV : FI_TRANSMIT));
	return ret;
}

static int kmsg_lane_bind(struct kmsg_lane *lane)
{
	int i, ret;

	ret = fi_ep_bind(lane->ep, &lane->av->fid, 0) ?: kmsg_lane_bind_cqs(lane);
	for (i = 0; i < KMSG_CNTRS && !ret; i++)
		if (lane->queues.cntr[i])
			ret = fi_ep_bind(lane->ep, &lane->queues.cntr[i]->fid, kmsg_cntr_flags[i]);
	return ret;
}

/* End the connections with a peer, or with FI_ADDR_UNSPEC all of the lane. */
static void kmsg_lane_retire(struct kmsg_lane *lane, fi_addr_t addr)
{
	struct kmsg_ep *ep;

	spin_lock_bh(&lane->lock);
	WRITE_ONCE(lane->retired, true);
	list_for_each_entry(ep, &lane->eps, on_lane) {
		if (addr != FI_ADDR_UNSPEC && ep->peer != addr)
			continue;
		WRITE_ONCE(ep->dead, true);
		queue_work(kmsg_wq, &ep->end);
	}
	spin_unlock_bh(&lane->lock);
}

/* Serves as kofi_watch.peer_dead. */
static void kmsg_lane_peer_dead(struct kofi_watch *watch, fi_addr_t addr)
{
	kmsg_lane_retire(container_of(watch, struct kmsg_lane, watch), addr);
}

/* Serves as kofi_watch.tag_ended. */
static bool kmsg_lane_tag_ended(struct kofi_watch *watch, u64 tag)
{
	struct kmsg_lane *lane = container_of(watch, struct kmsg_lane, watch);
	const struct kmsg_ep *ep;
	bool ended = true;

	spin_lock_bh(&lane->lock);
	hash_for_each_possible(lane->tags, ep, by_tag, tag)
		if (ep->rx_tag == tag)
			ended = false;
	spin_unlock_bh(&lane->lock);
	return ended;
}

/**
 * kmsg_lane_add_tag() - have messages to an endpoint wait for its receives
 * @lane: the lane
 * @ep: the endpoint, before its first receive
 */
void kmsg_lane_add_tag(struct kmsg_lane *lane, struct kmsg_ep *ep)
{
	spin_lock_bh(&lane->lock);
	hash_add(lane->tags, &ep->by_tag, ep->rx_tag);
	spin_unlock_bh(&lane->lock);
}

/**
 * kmsg_lane_end_tag() - undo kmsg_lane_add_tag()
 * @lane: the lane
 * @ep: the endpoint, which posts no more receives; any number of times
 *
 * Messages that wait already are dropped by fi_ops_ep.flush_tag. Later ones, of a peer that hasn't
 * heard of the end, don't wait.
 */
void kmsg_lane_end_tag(struct kmsg_lane *lane, struct kmsg_ep *ep)
{
	spin_lock_bh(&lane->lock);
	hash_del(&ep->by_tag);
	spin_unlock_bh(&lane->lock);
}

/**
 * kmsg_lane_stop() - end all operations of a lane, and its connections
 * @lane: the lane, whose device doesn't give an operation back
 */
void kmsg_lane_stop(struct kmsg_lane *lane)
{
	kmsg_lane_retire(lane, FI_ADDR_UNSPEC);
	fi_disable(lane->ep);
}

/**
 * kmsg_lane_join() - have the end of a connection's peer noticed
 * @lane: the lane
 * @ep: the endpoint, with its peer
 *
 * Return: 0, or -EHOSTUNREACH if the lane is retired: that may have been because of this peer.
 */
int kmsg_lane_join(struct kmsg_lane *lane, struct kmsg_ep *ep)
{
	int ret = 0;

	spin_lock_bh(&lane->lock);
	if (lane->retired)
		ret = -EHOSTUNREACH;
	else if (list_empty(&ep->on_lane))
		list_add_tail(&ep->on_lane, &lane->eps);
	spin_unlock_bh(&lane->lock);
	return ret;
}

/**
 * kmsg_lane_leave() - undo kmsg_lane_join()
 * @lane: the lane
 * @ep: the endpoint
 */
void kmsg_lane_leave(struct kmsg_lane *lane, struct kmsg_ep *ep)
{
	spin_lock_bh(&lane->lock);
	list_del_init(&ep->on_lane);
	spin_unlock_bh(&lane->lock);
}

static int kmsg_lane_open(struct kmsg_lane *lane, struct fi_info *info)
{
	struct kofi_watch *watch = &lane->watch;
	struct fi_av_attr av_attr = {};
	const size_t on = 1;
	size_t len = sizeof(lane->hello.addr);
	int ret;

	ret = fi_endpoint(lane->domain, info, &lane->ep, NULL);
	if (ret)
		return ret;
	if (!lane->ep->ops || !lane->ep->ops->flush_tag || !lane->ep->ops->cancel_tag ||
	    !lane->ep->ops->recv_tag)
		return -EOPNOTSUPP;
	/* Peers of a provider without the option don't die. */
	ret = fi_setopt(&lane->ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_WATCH, &watch, sizeof(watch));
	if (ret && ret != -ENOPROTOOPT)
		return ret;
	ret = fi_setopt(&lane->ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_AS_MSG, &on, sizeof(on)) ?:
	      fi_av_open(lane->domain, &av_attr, &lane->av, NULL) ?:
	      kmsg_lane_bind(lane) ?: fi_enable(lane->ep) ?:
	      fi_getname(&lane->ep->fid, lane->hello.addr, &len);
	lane->hello.addrlen = len;
	lane->hello.format = info->addr_format;
	lane->hello.protocol = info->ep_attr->protocol << 16 |
			       (u16)info->ep_attr->protocol_version;
	return ret;
}

/* Nothing depends on the objects, and no endpoint is left that uses them. */
static void kmsg_lane_free(struct kmsg_lane *lane)
{
	if (lane->ep)
		WARN_ON_ONCE(fi_close(&lane->ep->fid));
	if (lane->av)
		WARN_ON_ONCE(fi_close(&lane->av->fid));
	kfree(lane);
}

static struct kmsg_lane *kmsg_lane_new(const struct kmsg_ep *ep)
{
	struct kmsg_lane *lane = kzalloc(sizeof(*lane), GFP_KERNEL);
	struct fi_info *info;
	int ret;

	if (!lane)
		return ERR_PTR(-ENOMEM);
	lane->watch.peer_dead = kmsg_lane_peer_dead;
	lane->watch.tag_ended = kmsg_lane_tag_ended;
	spin_lock_init(&lane->lock);
	hash_init(lane->tags);
	INIT_LIST_HEAD(&lane->eps);
	lane->domain = ep->domain;
	lane->queues = *ep->queues;
	lane->caps = ep->caps;
	lane->tx = *ep->info->tx_attr;
	lane->rx = *ep->info->rx_attr;
	info = kmsg_lane_info(ep->info, ep->caps);
	if (IS_ERR(info)) {
		kfree(lane);
		return ERR_CAST(info);
	}
	ret = kmsg_lane_open(lane, info);
	fi_freeinfo(info);
	if (!ret)
		return lane;
	kmsg_lane_free(lane);
	return ERR_PTR(ret);
}

/**
 * kmsg_lane_get() - get a lane, and open it if necessary
 * @ep: endpoint that is being enabled
 *
 * Return: the lane, for kmsg_lane_put(), or an error pointer.
 */
struct kmsg_lane *kmsg_lane_get(const struct kmsg_ep *ep)
{
	struct kmsg_lane *lane;

	mutex_lock(&kmsg_lanes_lock);
	list_for_each_entry(lane, &kmsg_lanes, list)
		if (kmsg_lane_serves(lane, ep))
			goto found;
	lane = kmsg_lane_new(ep);
	if (IS_ERR(lane))
		goto out;
	list_add(&lane->list, &kmsg_lanes);
found:
	lane->refs++;
out:
	mutex_unlock(&kmsg_lanes_lock);
	return lane;
}

/**
 * kmsg_lane_put() - undo kmsg_lane_get()
 * @lane: the lane
 */
void kmsg_lane_put(struct kmsg_lane *lane)
{
	mutex_lock(&kmsg_lanes_lock);
	if (!--lane->refs) {
		list_del(&lane->list);
		kmsg_lane_free(lane);
	}
	mutex_unlock(&kmsg_lanes_lock);
}
