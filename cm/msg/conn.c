// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections of a link. Each side of a connection that isn't refused sends one DISC: the one that
 * ends it after the flush of its operations, and the other one after its own. With both, its number
 * is free. Lanes drop messages that come after the end: kmsg_lane_end_tag().
 */
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include "msg.h"

/**
 * kmsg_conn_new() - allocate a connection without a link
 *
 * Return: the connection, for kmsg_conn_put(), or NULL.
 */
struct kmsg_conn *kmsg_conn_new(void)
{
	struct kmsg_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);

	if (!conn)
		return NULL;
	conn->setup = kzalloc(sizeof(*conn->setup), GFP_KERNEL);
	if (!conn->setup) {
		kfree(conn);
		return NULL;
	}
	conn->setup->handle.fclass = FI_CLASS_CONNREQ;
	refcount_set(&conn->refs, 1);
	INIT_LIST_HEAD(&conn->list);
	mutex_init(&conn->lock);
	return conn;
}

static void kmsg_setup_free(struct kmsg_setup *setup)
{
	if (!setup)
		return;
	kulp_key_put(setup->key);
	kmsg_net_put(setup->net);
	kfree(setup);
}

/**
 * kmsg_conn_put() - drop a reference
 * @conn: the connection
 */
void kmsg_conn_put(struct kmsg_conn *conn)
{
	if (!refcount_dec_and_test(&conn->refs))
		return;
	kmsg_link_put(conn->link);
	kmsg_setup_free(conn->setup);
	kfree(conn);
}

/* The memory is only needed until the connection is established. */
static void kmsg_conn_drop_setup(struct kmsg_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	kmsg_setup_free(conn->setup);
	conn->setup = NULL;
}

/* The state changes, and the peer must answer in time. */
static void kmsg_conn_await(struct kmsg_conn *conn, enum kmsg_conn_state state)
{
	lockdep_assert_held(&conn->lock);
	conn->state = state;
	conn->since = jiffies;
}

/* Nothing is sent or received any more. */
static void kmsg_conn_over(struct kmsg_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	conn->state = KMSG_CONN_OVER;
	kmsg_link_forget(conn->link, conn);
}

/* A message that has only a number. The memory for addresses and data isn't initialized. */
static void kmsg_conn_msg(const struct kmsg_conn *conn, enum kmsg_type type, struct kmsg_msg *msg)
{
	msg->type = type;
	msg->why = KMSG_REFUSED;
	msg->id = conn->id;
	msg->side.len = 0;
}

static void kmsg_conn_send(struct kmsg_conn *conn, enum kmsg_type type)
{
	struct kmsg_msg msg;

	kmsg_conn_msg(conn, type, &msg);
	kmsg_link_send(conn->link, &msg);
}

/* Send the last message. */
static void kmsg_conn_finish(struct kmsg_conn *conn, const struct kmsg_msg *msg)
{
	lockdep_assert_held(&conn->lock);
	conn->state = KMSG_CONN_OVER;
	kmsg_link_finish(conn->link, conn, msg);
}

/* Answer the peer's DISC. */
static void kmsg_conn_parted(struct kmsg_conn *conn)
{
	struct kmsg_msg msg;

	kmsg_conn_msg(conn, KMSG_DISC, &msg);
	kmsg_conn_finish(conn, &msg);
}

/* Send DISC, and wait for the peer's. */
static void kmsg_conn_part(struct kmsg_conn *conn)
{
	kmsg_conn_send(conn, KMSG_DISC);
	kmsg_conn_await(conn, KMSG_CONN_PARTING);
	kmsg_conn_drop_setup(conn);
}

static void kmsg_conn_send_side(struct kmsg_conn *conn, enum kmsg_type type)
{
	struct kmsg_msg *msg = &conn->setup->msg;

	kmsg_ep_hello(conn->ep, &msg->side);
	msg->type = type;
	msg->why = 0;
	msg->id = conn->id;
	kmsg_link_send(conn->link, msg);
}

static void kmsg_conn_reject(struct kmsg_conn *conn, enum kmsg_why why, const void *data,
			     size_t len)
{
	struct kmsg_msg *msg = &conn->setup->msg;

	lockdep_assert_held(&conn->lock);
	msg->type = KMSG_REJECT;
	msg->why = why;
	msg->id = conn->id;
	msg->side.len = len;
	if (len)
		memcpy(msg->side.data, data, len);
	kmsg_conn_finish(conn, msg);
}

/* Send a request, unless it has to wait for others. */
static void kmsg_conn_ask(struct kmsg_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (kmsg_link_crowded(conn->link, true))
		return;
	conn->state = KMSG_CONN_ASKED;
	kmsg_conn_send_side(conn, KMSG_CONN);
}

/* --- calls --- */

/**
 * kmsg_conn_connect() - request a connection
 * @conn: the connection, with its endpoint, and the ULP's data in @conn->setup->msg. The caller
 *	holds its lock
 * @from: address to connect from, or AF_UNSPEC
 * @to: the peer's address
 *
 * Return: 0 or a negative errno, after which there is no link.
 */
int kmsg_conn_connect(struct kmsg_conn *conn, const struct sockaddr_storage *from,
		      const struct sockaddr_storage *to)
{
	bool live;
	int ret;

	lockdep_assert_held(&conn->lock);
	if (!conn->setup->net)
		conn->setup->net = kmsg_net_of(&init_net);
	conn->active = true;
	ret = kmsg_link_join(conn, from, to, &live);
	if (ret) {
		conn->active = false;
		return ret;
	}
	conn->state = KMSG_CONN_WAITING;
	if (live)
		kmsg_conn_ask(conn);
	return 0;
}

/**
 * kmsg_conn_accept() - accept a request
 * @conn: the request, with its endpoint, and the ULP's data in @conn->setup->msg. The caller holds
 *	its lock
 *
 * Return: 0, -ECONNABORTED if the peer has given up, or another negative errno.
 */
int kmsg_conn_accept(struct kmsg_conn *conn)
{
	int ret;

	lockdep_assert_held(&conn->lock);
	if (conn->state != KMSG_CONN_REQUEST)
		return -ECONNABORTED;
	ret = kmsg_ep_peer(conn->ep, &conn->setup->peer);
	if (ret)
		return ret;
	kmsg_conn_await(conn, KMSG_CONN_ACCEPTED);
	kmsg_conn_send_side(conn, KMSG_ACCEPT);
	return 0;
}

/**
 * kmsg_conn_setopt() - set an option of a connection without a link
 * @conn: the connection, of an endpoint
 * @optname: FI_OPT_CM_SECRET or FI_OPT_CM_NET
 * @optval: the value
 * @optlen: bytes of @optval
 *
 * Return: 0, -ENOPROTOOPT, -FI_EOPBADSTATE if it has a link, or another negative errno.
 */
int kmsg_conn_setopt(struct kmsg_conn *conn, int optname, const void *optval, size_t optlen)
{
	struct kulp_key *key = NULL;
	int ret = 0;

	if (optname == FI_OPT_CM_SECRET)
		ret = kmsg_set_key(optval, optlen, &key);
	else if (optname != FI_OPT_CM_NET)
		ret = -ENOPROTOOPT;
	if (ret)
		return ret;
	mutex_lock(&conn->lock);
	if (conn->link)
		ret = -FI_EOPBADSTATE;
	else if (optname == FI_OPT_CM_NET)
		ret = kmsg_net_set(&conn->setup->net, optval, optlen);
	else
		swap(conn->setup->key, key);
	mutex_unlock(&conn->lock);
	kulp_key_put(key);
	return ret;
}

/**
 * kmsg_conn_refuse() - refuse a request
 * @conn: the request, taken from its passive endpoint; the reference is dropped
 * @data: private data for the peer
 * @len: bytes of @data
 */
void kmsg_conn_refuse(struct kmsg_conn *conn, const void *data, size_t len)
{
	mutex_lock(&conn->lock);
	if (conn->state == KMSG_CONN_REQUEST)
		kmsg_conn_reject(conn, KMSG_REFUSED, data, len);
	mutex_unlock(&conn->lock);
	kmsg_conn_put(conn);
}

/**
 * kmsg_conn_end() - end a connection from this side
 * @conn: the connection, of an endpoint
 * @closes: the endpoint is being closed: nothing uses it after the call
 */
void kmsg_conn_end(struct kmsg_conn *conn, bool closes)
{
	mutex_lock(&conn->lock);
	switch (conn->state) {
	case KMSG_CONN_WAITING:
		kmsg_conn_over(conn);
		break;
	case KMSG_CONN_REQUEST:
		kmsg_conn_reject(conn, KMSG_REFUSED, NULL, 0);
		break;
	case KMSG_CONN_ASKED:
	case KMSG_CONN_ACCEPTED:
	case KMSG_CONN_LIVE:
		kmsg_conn_part(conn);
		break;
	case KMSG_CONN_LEFT:
		kmsg_conn_parted(conn);
		break;
	case KMSG_CONN_NEW:
	case KMSG_CONN_PARTING:
	case KMSG_CONN_OVER:
		break;
	}
	if (closes)
		conn->ep = NULL;
	mutex_unlock(&conn->lock);
}

/**
 * kmsg_conn_flushed() - tell that the operations have ended
 * @conn: the connection; if the peer has ended it, nothing follows
 */
void kmsg_conn_flushed(struct kmsg_conn *conn)
{
	mutex_lock(&conn->lock);
	if (conn->state == KMSG_CONN_LEFT)
		kmsg_conn_parted(conn);
	mutex_unlock(&conn->lock);
}

/**
 * kmsg_conn_credit() - tell the peer of receives
 * @conn: the connection
 * @posted: number of receives since the beginning
 *
 * Return: 0, also when the connection isn't alive, or -ENOBUFS: kmsg_credit_due() is called later.
 */
int kmsg_conn_credit(struct kmsg_conn *conn, u64 posted)
{
	struct kmsg_msg msg;

	lockdep_assert_held(&conn->lock);
	if (conn->state != KMSG_CONN_LIVE)
		return 0;
	/* A later number goes instead of this one. */
	if (kmsg_link_crowded(conn->link, false))
		return -ENOBUFS;
	msg.type = KMSG_CREDIT;
	msg.why = 0;
	msg.id = conn->id;
	msg.side.posted = posted;
	kmsg_link_send(conn->link, &msg);
	return 0;
}

/**
 * kmsg_conn_names() - get the IP addresses of a connection
 * @conn: the connection
 * @local: takes this side's
 * @remote: takes the peer's
 *
 * Their family is AF_UNSPEC if they aren't known: on the active side, until the connection is
 * established.
 */
void kmsg_conn_names(struct kmsg_conn *conn, struct sockaddr_storage *local,
		     struct sockaddr_storage *remote)
{
	if (conn->link && (conn->established || !conn->active)) {
		kmsg_link_names(conn->link, local, remote);
		return;
	}
	memset(local, 0, sizeof(*local));
	memset(remote, 0, sizeof(*remote));
}

/* --- the link's callbacks --- */

/**
 * kmsg_conn_begin() - the link is live, or takes messages again: send what waits
 * @conn: the connection
 * @unused: for kmsg_link_each()
 */
void kmsg_conn_begin(struct kmsg_conn *conn, int unused)
{
	mutex_lock(&conn->lock);
	if (conn->state == KMSG_CONN_WAITING)
		kmsg_conn_ask(conn);
	else if (conn->state == KMSG_CONN_LIVE)
		kmsg_credit_due(conn->ep);
	mutex_unlock(&conn->lock);
}

/**
 * kmsg_conn_late() - end the link if the peer hasn't answered in time
 * @conn: the connection
 * @ms: time limit in milliseconds
 */
void kmsg_conn_late(struct kmsg_conn *conn, int ms)
{
	mutex_lock(&conn->lock);
	if ((conn->state == KMSG_CONN_ACCEPTED || conn->state == KMSG_CONN_PARTING) &&
	    time_after(jiffies, conn->since + msecs_to_jiffies(ms)))
		kmsg_link_break(conn->link);
	mutex_unlock(&conn->lock);
}

/*
 * A link that was there when a connection was requested may have had a peer that is gone, or that
 * has begun anew. Ask once more, over another link. Return: whether this was to be done.
 */
static bool kmsg_conn_again(struct kmsg_conn *conn, int err)
{
	bool live;

	lockdep_assert_held(&conn->lock);
	if (!conn->again || (conn->state != KMSG_CONN_ASKED && conn->state != KMSG_CONN_WAITING) ||
	    (err != -ECONNABORTED && err != -ECONNRESET && err != -ECONNREFUSED))
		return false;
	err = kmsg_link_rejoin(conn, &live);
	conn->again = false;
	if (err) {
		kmsg_ep_ended(conn->ep, -err, NULL, 0);
		conn->state = KMSG_CONN_OVER;
		return true;
	}
	conn->state = KMSG_CONN_WAITING;
	if (live)
		kmsg_conn_ask(conn);
	return true;
}

/**
 * kmsg_conn_lost() - the link has ended
 * @conn: the connection
 * @err: negative errno
 */
void kmsg_conn_lost(struct kmsg_conn *conn, int err)
{
	mutex_lock(&conn->lock);
	if (conn->state != KMSG_CONN_OVER && !kmsg_conn_again(conn, err)) {
		if (conn->ep)
			kmsg_ep_ended(conn->ep, -err, NULL, 0);
		kmsg_conn_over(conn);
	}
	mutex_unlock(&conn->lock);
}

/**
 * kmsg_conn_asked() - handle a request
 * @conn: the connection, of a link; the reference belongs to the function
 * @l: listener
 * @side: the peer's side
 */
void kmsg_conn_asked(struct kmsg_conn *conn, struct kmsg_listener *l,
		     const struct kmsg_hello *side)
{
	int ret;

	conn->setup->peer = *side;
	mutex_lock(&conn->lock);
	conn->state = KMSG_CONN_REQUEST;
	mutex_unlock(&conn->lock);
	/* Afterwards the reference belongs to the passive endpoint, or to the endpoint. */
	ret = kmsg_request(l, conn);
	if (!ret)
		return;
	mutex_lock(&conn->lock);
	kmsg_conn_reject(conn, ret == -EBUSY ? KMSG_BUSY : ret == -ENOMEM ? KMSG_NO_MEMORY :
			       ret == -EACCES ? KMSG_DENIED : KMSG_REFUSED, NULL, 0);
	mutex_unlock(&conn->lock);
	kmsg_conn_put(conn);
}

static int kmsg_conn_established(struct kmsg_conn *conn, const struct kmsg_hello *peer)
{
	conn->state = KMSG_CONN_LIVE;
	conn->established = true;
	kmsg_ep_connected(conn->ep, peer ? peer->data : NULL, peer ? peer->len : 0);
	kmsg_conn_drop_setup(conn);
	return 0;
}

static int kmsg_conn_accepted(struct kmsg_conn *conn, const struct kmsg_hello *peer)
{
	int ret;

	if (conn->state == KMSG_CONN_PARTING)
		return 0;
	if (conn->state != KMSG_CONN_ASKED)
		return -EPROTO;
	ret = kmsg_ep_peer(conn->ep, peer);
	if (ret) {
		kmsg_ep_ended(conn->ep, -ret, NULL, 0);
		kmsg_conn_part(conn);
		return 0;
	}
	kmsg_conn_send(conn, KMSG_LIVE);
	return kmsg_conn_established(conn, peer);
}

static int kmsg_conn_rejected(struct kmsg_conn *conn, const struct kmsg_msg *msg)
{
	static const int errs[KMSG_WHYS] = {
		[KMSG_REFUSED]		= ECONNREFUSED,
		[KMSG_BUSY]		= EBUSY,
		[KMSG_NO_MEMORY]	= EBUSY,
		[KMSG_DENIED]		= EACCES,
	};

	if (conn->state != KMSG_CONN_PARTING && conn->state != KMSG_CONN_ASKED)
		return -EPROTO;
	if (conn->ep)
		kmsg_ep_ended(conn->ep, errs[msg->why], msg->side.data, msg->side.len);
	kmsg_conn_over(conn);
	return 0;
}

static int kmsg_conn_disc(struct kmsg_conn *conn)
{
	switch (conn->state) {
	case KMSG_CONN_REQUEST:
		/* The ULP learns it when it accepts. */
		kmsg_conn_parted(conn);
		return 0;
	case KMSG_CONN_ACCEPTED:
	case KMSG_CONN_LIVE:
		conn->state = KMSG_CONN_LEFT;
		kmsg_ep_ended(conn->ep, ECONNABORTED, NULL, 0);
		return 0;
	case KMSG_CONN_PARTING:
		kmsg_conn_over(conn);
		return 0;
	default:
		return -EPROTO;
	}
}

static int kmsg_conn_note(struct kmsg_conn *conn, const struct kmsg_msg *msg)
{
	lockdep_assert_held(&conn->lock);
	switch (msg->type) {
	case KMSG_ACCEPT:
		return kmsg_conn_accepted(conn, &msg->side);
	case KMSG_REJECT:
		return kmsg_conn_rejected(conn, msg);
	case KMSG_LIVE:
		if (conn->state == KMSG_CONN_ACCEPTED)
			return kmsg_conn_established(conn, NULL);
		return conn->state == KMSG_CONN_PARTING ? 0 : -EPROTO;
	case KMSG_CREDIT:
		if (conn->state == KMSG_CONN_LIVE)
			return kmsg_credit_add(conn->ep, msg->side.posted);
		return conn->state == KMSG_CONN_PARTING ? 0 : -EPROTO;
	case KMSG_DISC:
		return kmsg_conn_disc(conn);
	default:
		return -EPROTO;
	}
}

/**
 * kmsg_conn_message() - handle a message of the peer
 * @conn: the connection, of the link that the message came over
 * @msg: the message
 *
 * Return: 0, or -EPROTO if it isn't possible now.
 */
int kmsg_conn_message(struct kmsg_conn *conn, const struct kmsg_msg *msg)
{
	int ret;

	mutex_lock(&conn->lock);
	ret = conn->state == KMSG_CONN_OVER ? 0 : kmsg_conn_note(conn, msg);
	mutex_unlock(&conn->lock);
	return ret;
}
