// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Connected endpoints. Their posts are in post.c. */
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "msg.h"

static struct kmsg_ep *to_kmsg_ep(struct fid_ep *ep)
{
	return container_of(ep, struct kmsg_ep, ep_fid);
}

/* --- the connection --- */

/**
 * kmsg_ep_hello() - fill in what the peer has to know
 * @ep: the endpoint, with a lane
 * @hello: takes it; the data stays
 */
void kmsg_ep_hello(struct kmsg_ep *ep, struct kmsg_hello *hello)
{
	const struct kmsg_hello *lane = &ep->lane->hello;

	lockdep_assert_held(&ep->conn->lock);
	hello->format = lane->format;
	hello->addrlen = lane->addrlen;
	memcpy(hello->addr, lane->addr, lane->addrlen);
	hello->protocol = lane->protocol;
	hello->tag = ep->rx_tag;
	hello->posted = kmsg_credit_take(ep);
}

/**
 * kmsg_ep_peer() - get to know the peer
 * @ep: the endpoint, with a lane
 * @peer: the peer
 *
 * Return: 0, -EPROTO if its lane isn't of the same kind or it promises too many receives,
 * -EHOSTUNREACH if this lane is retired, or an error of fi_av_insert().
 */
int kmsg_ep_peer(struct kmsg_ep *ep, const struct kmsg_hello *peer)
{
	struct kmsg_lane *lane = ep->lane;
	int ret;

	lockdep_assert_held(&ep->conn->lock);
	if (peer->format != lane->hello.format || peer->addrlen != lane->hello.addrlen ||
	    peer->protocol != lane->hello.protocol)
		return -EPROTO;
	/* The call is repeated. */
	if (ep->peer != FI_ADDR_UNSPEC)
		return kmsg_lane_join(lane, ep);
	ret = fi_av_insert(lane->av, peer->addr, 1, &ep->peer, 0, NULL);
	if (ret != 1) {
		ep->peer = FI_ADDR_UNSPEC;
		return ret < 0 ? ret : -EADDRNOTAVAIL;
	}
	ep->tx_tag = peer->tag;
	return kmsg_credit_add(ep, peer->posted) ?: kmsg_lane_join(lane, ep);
}

/* Write an event into the memory that is reserved for it, once. */
static void kmsg_event(struct kmsg_ep *ep, enum kmsg_room what, u32 event, const void *data,
		       size_t len)
{
	struct {
		struct fi_eq_cm_entry	entry;
		u8			data[KMSG_DATA_MAX];
	} buf = { .entry.fid = &ep->ep_fid.fid };

	if (len)
		memcpy(buf.data, data, len);
	if (!kofi_eq_write_event(ep->eq, ep->room[what], event, &buf, sizeof(buf.entry) + len,
				 NULL))
		ep->room[what] = NULL;
}

/* Without memory for the peer's data, the error has none. */
static void kmsg_error(struct kmsg_ep *ep, int err, const void *data, size_t len)
{
	struct fi_eq_err_entry entry = {
		.fid		= &ep->ep_fid.fid,
		.context	= ep->ep_fid.fid.context,
		.err		= err,
		.err_data	= len ? kmemdup(data, len, GFP_KERNEL) : NULL,
	};

	entry.err_data_size = entry.err_data ? len : 0;
	if (kofi_eq_write_err(ep->eq, ep->room[KMSG_ROOM_RESULT], &entry))
		kfree(entry.err_data);
	else
		ep->room[KMSG_ROOM_RESULT] = NULL;
}

/**
 * kmsg_ep_connected() - the connection is established
 * @ep: the endpoint
 * @data: private data of the peer
 * @len: bytes of @data
 */
void kmsg_ep_connected(struct kmsg_ep *ep, const void *data, size_t len)
{
	bool was;

	lockdep_assert_held(&ep->conn->lock);
	spin_lock_bh(&ep->lock);
	was = ep->state == KMSG_CONNECTING;
	if (was)
		kmsg_set_state(ep, KMSG_CONNECTED);
	spin_unlock_bh(&ep->lock);
	if (!was)
		return;
	kmsg_event(ep, KMSG_ROOM_RESULT, FI_CONNECTED, data, len);
	/* Receives may have been posted since the handshake. */
	kmsg_credit_due(ep);
}

/* Return: the state until now. Nothing is posted afterwards. */
static enum kmsg_state kmsg_ep_stop(struct kmsg_ep *ep)
{
	enum kmsg_state was;

	spin_lock_bh(&ep->lock);
	was = ep->state;
	kmsg_set_state(ep, KMSG_ENDED);
	spin_unlock_bh(&ep->lock);
	return was;
}

/**
 * kmsg_ep_ended() - the connection has ended without this side's doing, or wasn't established
 * @ep: the endpoint
 * @err: positive errno of an attempt that failed
 * @data: private data of a peer that has refused
 * @len: bytes of @data
 *
 * Operations are ended by a work item, because they may take a while.
 */
void kmsg_ep_ended(struct kmsg_ep *ep, int err, const void *data, size_t len)
{
	enum kmsg_state was;

	lockdep_assert_held(&ep->conn->lock);
	spin_lock_bh(&ep->lock);
	was = ep->state;
	if (was == KMSG_CONNECTING || was == KMSG_CONNECTED)
		kmsg_set_state(ep, KMSG_ENDED);
	spin_unlock_bh(&ep->lock);
	if (was == KMSG_CONNECTING)
		kmsg_error(ep, err, data, min_t(size_t, len, KMSG_DATA_MAX));
	else if (was == KMSG_CONNECTED)
		kmsg_event(ep, KMSG_ROOM_SHUTDOWN, FI_SHUTDOWN, NULL, 0);
	if (was == KMSG_CONNECTING || was == KMSG_CONNECTED)
		queue_work(kmsg_wq, &ep->end);
}

/* End all operations. Return: 0, or -ETIMEDOUT if the device doesn't give some back. */
static int kmsg_ep_flush(struct kmsg_ep *ep)
{
	struct fid_ep *lane;
	int ret = 0;

	if (!ep->lane)
		return 0;
	lane = ep->lane->ep;
	kmsg_posts_wait(ep);
	kmsg_lane_end_tag(ep->lane, ep);
	/* Without a peer, its tag is another connection's. */
	if (ep->peer != FI_ADDR_UNSPEC)
		ret = lane->ops->flush_tag(lane, ep->tx_tag, KMSG_FLUSH_MS);
	ret = lane->ops->flush_tag(lane, ep->rx_tag, KMSG_FLUSH_MS) ?: ret;
	/* Afterwards the device has nothing of the ULP's. */
	if (ret)
		kmsg_lane_stop(ep->lane);
	return ret;
}

static void kmsg_end_work(struct work_struct *work)
{
	struct kmsg_ep *ep = container_of(work, struct kmsg_ep, end);
	struct kmsg_conn *conn = ep->conn;

	const bool removed = READ_ONCE(ep->removed);

	if (removed || READ_ONCE(ep->dead)) {
		mutex_lock(&conn->lock);
		kmsg_ep_ended(ep, removed ? ENODEV : EHOSTUNREACH, NULL, 0);
		mutex_unlock(&conn->lock);
		kmsg_conn_end(conn, false);
	}
	kmsg_ep_flush(ep);
	kmsg_conn_flushed(conn);
}

/**
 * kmsg_removed() - kofi_connector.removed
 * @fid: the endpoint
 */
void kmsg_removed(struct fid *fid)
{
	struct kmsg_ep *ep = container_of(fid, struct kmsg_ep, ep_fid.fid);

	spin_lock_bh(&ep->lock);
	WRITE_ONCE(ep->removed, true);
	spin_unlock_bh(&ep->lock);
	queue_work(kmsg_wq, &ep->end);
}

/* --- calls --- */

static int kmsg_begin(struct kmsg_ep *ep)
{
	int ret = 0;

	spin_lock_bh(&ep->lock);
	if (ep->removed)
		ret = -ENODEV;
	else if (ep->state != KMSG_ENABLED)
		ret = -FI_EOPBADSTATE;
	else
		kmsg_set_state(ep, KMSG_CONNECTING);
	spin_unlock_bh(&ep->lock);
	return ret;
}

/* After a failure, the ULP can try again. */
static void kmsg_unbegin(struct kmsg_ep *ep)
{
	spin_lock_bh(&ep->lock);
	if (ep->state == KMSG_CONNECTING)
		kmsg_set_state(ep, KMSG_ENABLED);
	spin_unlock_bh(&ep->lock);
}

/*
 * Begin a connection, under the lock that callbacks take, so that either this call or an event
 * tells of its end.
 */
static int kmsg_start(struct kmsg_ep *ep, const struct sockaddr_storage *to, const void *param,
		      size_t paramlen)
{
	struct sockaddr_storage from = {};
	struct kmsg_conn *conn = ep->conn;
	int ret;

	lockdep_assert_held(&conn->lock);
	ret = kmsg_begin(ep);
	if (ret)
		return ret;
	conn->setup->msg.side.len = paramlen;
	if (paramlen)
		memcpy(conn->setup->msg.side.data, param, paramlen);
	memcpy(&from, &ep->source, sizeof(ep->source));
	ret = to ? kmsg_conn_connect(conn, &from, to) : kmsg_conn_accept(conn);
	if (ret)
		kmsg_unbegin(ep);
	return ret;
}

static int kmsg_connect(struct fid_ep *ep_fid, const void *addr, const void *param,
			size_t paramlen)
{
	struct kmsg_ep *ep = to_kmsg_ep(ep_fid);
	struct kmsg_conn *conn = ep->conn;
	struct sockaddr_storage to;
	int ret;

	if (paramlen > KMSG_DATA_MAX)
		return -EINVAL;
	/* The ULP's address is as long as its family says. */
	ret = kmsg_addr_get(ep->addr_format, addr, sizeof(struct sockaddr_in6), &to);
	if (ret)
		return ret;
	mutex_lock(&conn->lock);
	if (conn->link)
		ret = conn->active ? -EISCONN : -FI_EOPBADSTATE;
	else
		ret = kmsg_start(ep, &to, param, paramlen);
	mutex_unlock(&conn->lock);
	return ret;
}

static int kmsg_accept(struct fid_ep *ep_fid, const void *param, size_t paramlen)
{
	struct kmsg_ep *ep = to_kmsg_ep(ep_fid);
	struct kmsg_conn *conn = ep->conn;
	int ret;

	if (paramlen > KMSG_DATA_MAX)
		return -EINVAL;
	mutex_lock(&conn->lock);
	if (!conn->link || conn->active)
		ret = -FI_EOPBADSTATE;
	else
		ret = kmsg_start(ep, NULL, param, paramlen);
	mutex_unlock(&conn->lock);
	return ret;
}

static int kmsg_shutdown(struct fid_ep *ep_fid, u64 flags)
{
	struct kmsg_ep *ep = to_kmsg_ep(ep_fid);
	int ret = 0;

	spin_lock_bh(&ep->lock);
	if (ep->state == KMSG_CONNECTED)
		kmsg_set_state(ep, KMSG_ENDED);
	else
		ret = -ENOTCONN;
	spin_unlock_bh(&ep->lock);
	if (ret)
		return ret;
	ret = kmsg_ep_flush(ep);
	kmsg_conn_end(ep->conn, false);
	return ret;
}

static int kmsg_setname(struct fid *fid, void *addr, size_t addrlen)
{
	struct kmsg_ep *ep = container_of(fid, struct kmsg_ep, ep_fid.fid);
	struct sockaddr_storage new;
	int ret;

	ret = kmsg_addr_get(ep->addr_format, addr, addrlen, &new);
	if (ret)
		return ret;
	mutex_lock(&ep->conn->lock);
	if (ep->conn->link)
		ret = -FI_EOPBADSTATE;
	else
		memcpy(&ep->source, &new, sizeof(ep->source));
	mutex_unlock(&ep->conn->lock);
	return ret;
}

static int kmsg_copy_name(const struct sockaddr_storage *name, void *addr, size_t *addrlen)
{
	return name->ss_family ? kofi_copy_out(addr, addrlen, name, kmsg_addr_len(name)) :
				 -ENOTCONN;
}

/* The port is known when the connection is established. */
static int kmsg_getname(struct fid *fid, void *addr, size_t *addrlen)
{
	struct kmsg_ep *ep = container_of(fid, struct kmsg_ep, ep_fid.fid);
	struct sockaddr_storage local, remote;

	mutex_lock(&ep->conn->lock);
	kmsg_conn_names(ep->conn, &local, &remote);
	if (!ep->conn->link)
		memcpy(&local, &ep->source, sizeof(ep->source));
	mutex_unlock(&ep->conn->lock);
	return kmsg_copy_name(&local, addr, addrlen);
}

static int kmsg_getpeer(struct fid_ep *ep_fid, void *addr, size_t *addrlen)
{
	struct kmsg_ep *ep = to_kmsg_ep(ep_fid);
	struct sockaddr_storage local, remote;

	mutex_lock(&ep->conn->lock);
	kmsg_conn_names(ep->conn, &local, &remote);
	mutex_unlock(&ep->conn->lock);
	return kmsg_copy_name(&remote, addr, addrlen);
}

static const struct fi_ops_cm kmsg_cm_ops = {
	.setname	= kmsg_setname,
	.getname	= kmsg_getname,
	.getpeer	= kmsg_getpeer,
	.connect	= kmsg_connect,
	.accept		= kmsg_accept,
	.shutdown	= kmsg_shutdown,
};

static ssize_t kmsg_cancel(struct fid *fid, void *context)
{
	struct kmsg_ep *ep = container_of(fid, struct kmsg_ep, ep_fid.fid);
	struct fid_ep *lane = ep->lane ? ep->lane->ep : NULL;

	return lane ? lane->ops->cancel_tag(lane, ep->rx_tag, context) : -ENOENT;
}

static int kmsg_getopt(struct fid *fid, int level, int optname, void *optval, size_t *optlen)
{
	const struct kmsg_ep *ep = container_of(fid, struct kmsg_ep, ep_fid.fid);
	const struct kofi_opt opts[] = {
		{ FI_OPT_CM_DATA_SIZE, KMSG_DATA_MAX },
		{ FI_OPT_TX_SIZE, ep->tx_size },
		{ FI_OPT_RX_SIZE, ep->rx_size },
		{ FI_OPT_MAX_MSG_SIZE, ep->max_msg_size },
		{ FI_OPT_INJECT_MSG_SIZE, ep->inject_size },
		{ FI_OPT_MAX_RMA_SIZE, ep->caps & FI_RMA ? ep->max_msg_size : 0 },
		{ FI_OPT_INJECT_RMA_SIZE, ep->caps & FI_RMA ? ep->inject_size : 0 },
		{ FI_OPT_INJECT_ATOMIC_SIZE, ep->caps & FI_ATOMIC ? ep->inject_size : 0 },
	};

	return kofi_getopt(opts, ARRAY_SIZE(opts), optname, optval, optlen);
}

static int kmsg_setopt(struct fid *fid, int level, int optname, const void *optval, size_t optlen)
{
	struct kmsg_ep *ep = container_of(fid, struct kmsg_ep, ep_fid.fid);

	return kmsg_conn_setopt(ep->conn, optname, optval, optlen);
}

static const struct fi_ops_ep kmsg_ep_ops = {
	.cancel	= kmsg_cancel,
	.getopt	= kmsg_getopt,
	.setopt	= kmsg_setopt,
};

/* --- the object --- */

/* The link may have a reference, and needs no listener. */
static void kmsg_ep_disown(struct kmsg_conn *conn)
{
	struct kmsg_listener *l = conn->listener;

	kmsg_conn_end(conn, true);
	kmsg_conn_put(conn);
	if (l)
		kmsg_listener_put(l);
}

static void kmsg_ep_free(struct kmsg_ep *ep)
{
	int i;

	for (i = 0; i < KMSG_ROOMS; i++)
		kofi_eq_unreserve(ep->room[i]);
	if (ep->conn)
		kmsg_ep_disown(ep->conn);
	fi_freeinfo(ep->info);
	kfree(ep->queues);
	kfree(ep);
}

static int kmsg_ep_close(struct fid *fid)
{
	struct kmsg_ep *ep = container_of(fid, struct kmsg_ep, ep_fid.fid);

	kmsg_ep_stop(ep);
	/* Operations first, so that none is on its way when the peer hears of the end. */
	kmsg_ep_flush(ep);
	kmsg_conn_end(ep->conn, true);
	if (ep->lane)
		kmsg_lane_leave(ep->lane, ep);
	cancel_work_sync(&ep->end);
	cancel_delayed_work_sync(&ep->note);
	if (ep->lane) {
		if (ep->peer != FI_ADDR_UNSPEC)
			fi_av_remove(ep->lane->av, &ep->peer, 1, 0);
		kmsg_lane_put(ep->lane);
	}
	kmsg_ep_free(ep);
	return 0;
}

static int kmsg_ep_bind(struct fid *fid, struct fid *bfid, u64 flags)
{
	struct kmsg_ep *ep = container_of(fid, struct kmsg_ep, ep_fid.fid);

	if (bfid->fclass == FI_CLASS_EQ) {
		ep->eq = container_of(bfid, struct fid_eq, fid);
		return 0;
	}
	if (bfid->fclass != FI_CLASS_CQ && bfid->fclass != FI_CLASS_CNTR)
		return -EOPNOTSUPP;
	/* Of counters alone. */
	if (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) && !(ep->caps & FI_RMA_EVENT))
		return -EOPNOTSUPP;
	kmsg_queues_add(ep->queues, bfid, flags);
	return 0;
}

static int kmsg_ep_enable(struct kmsg_ep *ep)
{
	struct kmsg_lane *lane = kmsg_lane_get(ep);

	if (IS_ERR(lane))
		return PTR_ERR(lane);
	kmsg_lane_add_tag(lane, ep);
	spin_lock_bh(&ep->lock);
	ep->lane = lane;
	ep->on = lane->ep;
	kmsg_set_state(ep, KMSG_ENABLED);
	spin_unlock_bh(&ep->lock);
	fi_freeinfo(ep->info);
	ep->info = NULL;
	kfree(ep->queues);
	ep->queues = NULL;
	return 0;
}

static int kmsg_ep_control(struct fid *fid, int command, void *arg)
{
	struct kmsg_ep *ep = container_of(fid, struct kmsg_ep, ep_fid.fid);

	return command == FI_ENABLE ? kmsg_ep_enable(ep) : -EOPNOTSUPP;
}

static const struct fi_ops kmsg_ep_fid_ops = {
	.close		= kmsg_ep_close,
	.bind		= kmsg_ep_bind,
	.control	= kmsg_ep_control,
};

/* FI_SHUTDOWN has no private data. */
static int kmsg_ep_reserve(struct kmsg_ep *ep)
{
	const size_t lens[KMSG_ROOMS] = {
		[KMSG_ROOM_RESULT]	= max(sizeof(struct fi_eq_cm_entry) + KMSG_DATA_MAX,
					      sizeof(struct fi_eq_err_entry)),
		[KMSG_ROOM_SHUTDOWN]	= sizeof(struct fi_eq_cm_entry),
	};
	int i;

	for (i = 0; i < KMSG_ROOMS; i++) {
		ep->room[i] = kofi_eq_reserve(lens[i]);
		if (!ep->room[i])
			return -ENOMEM;
	}
	return 0;
}

/* Take what calls need when the entry is gone. */
static int kmsg_ep_attrs(struct kmsg_ep *ep, const struct fi_info *info)
{
	struct sockaddr_storage source = {};
	int ret = 0;

	ep->max_msg_size = info->ep_attr->max_msg_size;
	ep->tx_size = info->tx_attr->size;
	ep->rx_size = info->rx_attr->size;
	ep->inject_size = info->tx_attr->inject_size;
	ep->addr_format = info->addr_format;
	if (info->src_addr)
		ret = kmsg_addr_get(info->addr_format, info->src_addr, info->src_addrlen, &source);
	memcpy(&ep->source, &source, sizeof(ep->source));
	return ret;
}

/* An endpoint for a request owns it; another one has a connection without a session. */
static int kmsg_ep_own(struct kmsg_ep *ep, struct fid *handle)
{
	struct kmsg_conn *conn = handle ? kmsg_request_take(handle) : kmsg_conn_new();

	if (!conn)
		return handle ? -EINVAL : -ENOMEM;
	mutex_lock(&conn->lock);
	conn->ep = ep;
	ep->conn = conn;
	mutex_unlock(&conn->lock);
	return 0;
}

/**
 * kmsg_endpoint() - kofi_connector.endpoint
 * @domain: the domain
 * @info: entry of kmsg_derive(), or of a request
 * @ep: takes the endpoint
 * @context: unused
 *
 * Return: 0, -EINVAL, also for a request that was taken before, -ENOMEM.
 */
int kmsg_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		  void *context)
{
	struct kmsg_ep *new;
	int ret;

	if (!info->fabric_attr || !info->domain_attr || info->caps & ~(FI_MSG | KMSG_CAPS))
		return -EINVAL;
	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	new->ep_fid.fid.ops = &kmsg_ep_fid_ops;
	new->ep_fid.ops = &kmsg_ep_ops;
	new->ep_fid.cm = &kmsg_cm_ops;
	new->ep_fid.msg = &kmsg_msg_ops;
	new->ep_fid.tagged = &kofi_req_tagged_ops;
	new->ep_fid.rma = &kofi_req_rma_ops;
	new->ep_fid.atomic = &kofi_req_atomic_ops;
	new->ep_fid.req = &kmsg_req_ops;
	new->caps = kofi_ep_caps(info->caps ?: FI_MSG, KMSG_CAPS);
	new->domain = domain;
	new->peer = FI_ADDR_UNSPEC;
	new->rx_tag = get_random_u64();
	INIT_LIST_HEAD(&new->on_lane);
	INIT_HLIST_NODE(&new->by_tag);
	spin_lock_init(&new->lock);
	kmsg_credit_init(new);
	INIT_WORK(&new->end, kmsg_end_work);
	new->info = fi_dupinfo(info);
	new->queues = kzalloc(sizeof(*new->queues), GFP_KERNEL);
	ret = new->info && new->queues ? 0 : -ENOMEM;
	ret = ret ?: kmsg_ep_reserve(new) ?: kmsg_ep_attrs(new, info) ?:
	      kmsg_ep_own(new, info->handle);
	if (ret)
		kmsg_ep_free(new);
	else
		*ep = &new->ep_fid;
	return ret;
}
