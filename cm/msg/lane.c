// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lanes. Connections whose endpoints are bound to the same queues in the same way share one. It is
 * closed with its last connection, so that the ULP can close its queues and its domain.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include "msg.h"

static DEFINE_MUTEX(kmsg_lanes_lock);	/* protects kmsg_lanes */
static LIST_HEAD(kmsg_lanes);

static bool kmsg_lane_serves(const struct kmsg_lane *lane, const struct kmsg_ep *ep)
{
	return lane->domain == ep->domain && lane->cq[0] == ep->cq[0] &&
	       lane->cq[1] == ep->cq[1] && lane->flags[0] == ep->flags[0] &&
	       lane->flags[1] == ep->flags[1] &&
	       !memcmp(&lane->tx, ep->info->tx_attr, sizeof(lane->tx)) &&
	       !memcmp(&lane->rx, ep->info->rx_attr, sizeof(lane->rx));
}

/* The provider's entry for the endpoint, as kmsg_derive() got it, with the ULP's choices. */
static struct fi_info *kmsg_lane_info(const struct fi_info *msg)
{
	struct fi_info *hints, *info = NULL;
	int ret;

	hints = fi_allocinfo_for(msg->fabric_attr->prov_name, msg->fabric_attr->name,
				 msg->domain_attr->name);
	if (!hints)
		return ERR_PTR(-ENOMEM);
	hints->caps = FI_TAGGED | (msg->caps & (FI_SEND | FI_RECV));
	hints->mode = msg->mode;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->op_flags = msg->tx_attr->op_flags;
	hints->tx_attr->size = msg->tx_attr->size;
	hints->rx_attr->op_flags = msg->rx_attr->op_flags;
	hints->rx_attr->size = msg->rx_attr->size;
	ret = fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	/* The device may have gone. */
	return ret ? ERR_PTR(ret == -ENODATA ? -ENODEV : ret) : info;
}

static int kmsg_lane_bind(struct kmsg_lane *lane)
{
	int i, ret;

	ret = fi_ep_bind(lane->ep, &lane->av->fid, 0);
	if (lane->cq[0] && lane->cq[0] == lane->cq[1] && lane->flags[0] == lane->flags[1])
		return ret ?: fi_ep_bind(lane->ep, &lane->cq[0]->fid,
					 lane->flags[0] | FI_TRANSMIT | FI_RECV);
	for (i = 0; i < 2 && !ret; i++)
		if (lane->cq[i])
			ret = fi_ep_bind(lane->ep, &lane->cq[i]->fid,
					 lane->flags[i] | (i ? FI_RECV : FI_TRANSMIT));
	return ret;
}

static int kmsg_lane_open(struct kmsg_lane *lane, struct fi_info *info)
{
	struct fi_av_attr av_attr = {};
	const size_t on = 1;
	size_t len = sizeof(lane->hello.addr);
	int ret;

	ret = fi_endpoint(lane->domain, info, &lane->ep, NULL);
	if (ret)
		return ret;
	if (!lane->ep->ops || !lane->ep->ops->flush_tag)
		return -EOPNOTSUPP;
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
	lane->domain = ep->domain;
	memcpy(lane->cq, ep->cq, sizeof(lane->cq));
	memcpy(lane->flags, ep->flags, sizeof(lane->flags));
	lane->tx = *ep->info->tx_attr;
	lane->rx = *ep->info->rx_attr;
	info = kmsg_lane_info(ep->info);
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
