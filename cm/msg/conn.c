// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sessions of connections: the callbacks of kofi_cm, and the ends of sessions. */
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include <net/net_namespace.h>
#include "msg.h"

/* Time limits in milliseconds. */
#define KMSG_KEEP_ALIVE_MS	10000	/* see kcm_config.keep_alive_ms */
#define KMSG_REPLACE_MS		1000	/* no client has an earlier session */
#define KMSG_RETRY_MS		120000	/* a failed attempt isn't repeated: it is ended before */
#define KMSG_GIVE_UP_MS		1

static void kmsg_conn_end_work(struct work_struct *work)
{
	struct kmsg_conn *conn = container_of(work, struct kmsg_conn, end);

	kcm_disconnect(conn->session);
	complete(&conn->gone);
}

/**
 * kmsg_conn_new() - allocate a connection without a session
 *
 * Return: the connection, or NULL.
 */
struct kmsg_conn *kmsg_conn_new(void)
{
	struct kmsg_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);

	if (!conn)
		return NULL;
	conn->handle.fclass = FI_CLASS_CONNREQ;
	INIT_LIST_HEAD(&conn->list);
	mutex_init(&conn->lock);
	init_completion(&conn->gone);
	INIT_WORK(&conn->end, kmsg_conn_end_work);
	return conn;
}

/**
 * kmsg_conn_free() - free a connection
 * @conn: the connection, after its session's last callback, or without one
 */
void kmsg_conn_free(struct kmsg_conn *conn)
{
	if (conn->listener)
		kmsg_listener_put(conn->listener);
	kfree(conn);
}

/**
 * kmsg_hello_parse() - parse what the peer sends in HELLO or ACCEPT
 * @peer: the message
 * @hello: takes it
 *
 * Return: 0 or -EPROTO.
 */
int kmsg_hello_parse(const struct kcm_peer *peer, struct kmsg_hello *hello)
{
	const struct kmsg_wire_hello *wire = peer->priv;
	size_t len;

	if (peer->priv_len < sizeof(*wire) || peer->priv_len - sizeof(*wire) > KMSG_DATA_MAX ||
	    le32_to_cpu(wire->magic) != KMSG_MAGIC)
		return -EPROTO;
	if (peer->addrs.count != 1 || !peer->addrs.len ||
	    peer->addrs.len > sizeof(hello->addr))
		return -EPROTO;
	len = peer->priv_len - sizeof(*wire);
	hello->format = peer->addrs.format;
	hello->addrlen = peer->addrs.len;
	memcpy(hello->addr, peer->addrs.addr, peer->addrs.len);
	hello->protocol = le32_to_cpu(wire->protocol);
	hello->tag = le64_to_cpu(wire->tag);
	hello->posted = le64_to_cpu(wire->posted);
	hello->len = len;
	memcpy(hello->data, wire + 1, len);
	return 0;
}

/* Return: bytes of private data at @wire. */
static size_t kmsg_hello_build(const struct kmsg_hello *hello, struct kmsg_wire_hello *wire,
			       struct kcm_addrs *addrs)
{
	*wire = (struct kmsg_wire_hello) {
		.magic		= cpu_to_le32(KMSG_MAGIC),
		.protocol	= cpu_to_le32(hello->protocol),
		.tag		= cpu_to_le64(hello->tag),
		.posted		= cpu_to_le64(hello->posted),
	};
	memcpy(wire + 1, hello->data, hello->len);
	*addrs = (struct kcm_addrs) {
		.format	= hello->format,
		.len	= hello->addrlen,
		.count	= 1,
		.addr	= hello->addr,
	};
	return sizeof(*wire) + hello->len;
}

/* --- the end --- */

/* Begin to end an active session, once. */
static void kmsg_conn_disconnect(struct kmsg_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (!conn->ending)
		queue_work(kmsg_wq, &conn->end);
	conn->ending = true;
}

/**
 * kmsg_conn_end() - end a connection from this side
 * @conn: the connection, of an endpoint
 * @reason: reason for the peer
 * @wait: return after the last callback, so that the connection can be freed
 *
 * Nothing happens without a session.
 */
void kmsg_conn_end(struct kmsg_conn *conn, enum kcm_reason reason, bool wait)
{
	mutex_lock(&conn->lock);
	if (!conn->session) {
		wait = false;
	} else if (!conn->active && !conn->over && conn->accepted) {
		kcm_bye(conn->session, reason, false, NULL, 0);
	} else if (!conn->active && !conn->over) {
		/* Without a callback, nobody else says that it is over. */
		if (kcm_reject(conn->session, -ENOLINK, false, 0, NULL, NULL, 0)) {
			conn->over = true;
			complete(&conn->gone);
		}
	} else if (conn->active) {
		if (conn->live && !conn->over)
			kcm_bye(conn->session, reason, false, NULL, 0);
		kmsg_conn_disconnect(conn);
	}
	conn->live = false;
	mutex_unlock(&conn->lock);
	if (wait)
		wait_for_completion(&conn->gone);
}

/**
 * kmsg_conn_refuse() - refuse a request and free it
 * @conn: the request, taken from its passive endpoint
 * @data: private data for the peer
 * @len: bytes of @data
 */
void kmsg_conn_refuse(struct kmsg_conn *conn, const void *data, size_t len)
{
	bool wait;

	mutex_lock(&conn->lock);
	wait = conn->over || !kcm_reject(conn->session, -ENOLINK, false, 0, NULL, data, len);
	mutex_unlock(&conn->lock);
	if (wait)
		wait_for_completion(&conn->gone);
	kmsg_conn_free(conn);
}

/* A refusal by the peer's ULP has no errno of its own on the wire. */
static int kmsg_err(const struct kcm_end *end)
{
	if (end->err == -ENOENT || (end->err == -ENOLINK && end->refused))
		return -ECONNREFUSED;
	return end->err;
}

static void kmsg_stop(struct kcm_session *s, const struct kcm_end *end)
{
	struct kmsg_conn *conn = kcm_context(s);
	const bool active = conn->active;

	mutex_lock(&conn->lock);
	conn->over = true;
	conn->live = false;
	if (conn->ep)
		kmsg_ep_ended(conn->ep, -kmsg_err(end), end->data, end->len);
	kcm_gone(s);
	if (active)
		kmsg_conn_disconnect(conn);
	mutex_unlock(&conn->lock);
	/* The connection can be freed from here on. */
	if (!active)
		complete(&conn->gone);
}

/* --- the active side --- */

static int kmsg_hello(struct kcm_session *s, struct kcm_addrs *addrs, const void **priv,
		      size_t *len)
{
	struct kmsg_conn *conn = kcm_context(s);
	struct kmsg_wire_hello *wire = (void *)conn->out;
	int ret = -ECANCELED;

	mutex_lock(&conn->lock);
	if (conn->ep && !conn->ending) {
		kmsg_ep_hello(conn->ep, &conn->mine);
		*len = kmsg_hello_build(&conn->mine, wire, addrs);
		*priv = wire;
		ret = 0;
	}
	mutex_unlock(&conn->lock);
	return ret;
}

static int kmsg_accepted(struct kcm_session *s, const struct kcm_peer *peer)
{
	struct kmsg_conn *conn = kcm_context(s);
	int ret;

	mutex_lock(&conn->lock);
	ret = conn->ep && !conn->ending ? kmsg_hello_parse(peer, &conn->peer) : -ECANCELED;
	ret = ret ?: kmsg_ep_peer(conn->ep, &conn->peer);
	mutex_unlock(&conn->lock);
	return ret;
}

static void kmsg_failed(struct kcm_session *s, const struct kcm_end *end)
{
	struct kmsg_conn *conn = kcm_context(s);

	mutex_lock(&conn->lock);
	if (conn->ep)
		kmsg_ep_ended(conn->ep, -kmsg_err(end), end->data, end->len);
	kmsg_conn_disconnect(conn);
	mutex_unlock(&conn->lock);
}

/* --- the passive side --- */

/* Connections need no secret. */
static int kmsg_keys(struct kcm_listener *l, const struct kcm_peer *peer,
		     struct kulp_key *keys[KULP_SECRETS])
{
	return kmsg_listening(kcm_listener_context(l)) ? 0 : -ENOENT;
}

/* --- both --- */

static void kmsg_live(struct kcm_session *s)
{
	struct kmsg_conn *conn = kcm_context(s);
	const bool active = conn->active;

	mutex_lock(&conn->lock);
	if (active)
		kcm_names(s, &conn->local, &conn->remote);
	conn->live = !conn->ending;
	if (conn->ep && conn->live)
		kmsg_ep_connected(conn->ep, conn->peer.data, active ? conn->peer.len : 0);
	mutex_unlock(&conn->lock);
}

static void kmsg_note(struct kcm_session *s, const void *data, size_t len)
{
	const struct kmsg_wire_credit *wire = data;
	struct kmsg_conn *conn = kcm_context(s);
	int ret = 0;

	mutex_lock(&conn->lock);
	if (len != sizeof(*wire))
		ret = -EPROTO;
	else if (conn->ep)
		ret = kmsg_credit_add(conn->ep, le64_to_cpu(wire->posted));
	if (ret)
		kcm_bye(s, KCM_BYE_PROTOCOL, false, NULL, 0);
	mutex_unlock(&conn->lock);
}

static const struct kcm_ops kmsg_ops = {
	.keys		= kmsg_keys,
	.request	= kmsg_request,
	.hello		= kmsg_hello,
	.accepted	= kmsg_accepted,
	.live		= kmsg_live,
	.note		= kmsg_note,
	.failed		= kmsg_failed,
	.stop		= kmsg_stop,
};

const struct kcm_config kmsg_config = {
	.net		= &init_net,
	.service	= "kofi-msg",
	.version_min	= 1,
	.version	= 1,
	.keep_alive_ms	= KMSG_KEEP_ALIVE_MS,
	.replace_ms	= KMSG_REPLACE_MS,
	.ops		= &kmsg_ops,
};

/* The name is for logs. kofi_cm's names have no spaces. */
static void kmsg_name(char name[KCM_NAME])
{
	strscpy(name, init_utsname()->nodename, KCM_NAME);
	for (; *name; name++)
		if (*name <= ' ' || *name >= 0x7f)
			*name = '-';
}

/**
 * kmsg_conn_connect() - begin the session of an active connection
 * @conn: the connection, with its endpoint, and the ULP's data in @conn->mine. The caller holds its
 *	lock, so that callbacks find the session
 * @from: address to connect from, or AF_UNSPEC
 * @to: the peer's address
 *
 * Return: 0, -EINVAL or -ENOMEM, after which there is no session.
 */
int kmsg_conn_connect(struct kmsg_conn *conn, const struct sockaddr_storage *from,
		      const struct sockaddr_storage *to)
{
	char instance[17], name[KCM_NAME] = "-";
	struct kcm_client client = {
		.to		= *to,
		.from		= *from,
		.name		= name,
		.instance	= instance,
		.retry_ms	= KMSG_RETRY_MS,
		.give_up_ms	= KMSG_GIVE_UP_MS,
	};
	int ret;

	lockdep_assert_held(&conn->lock);
	/* A session of its own: it replaces no other one. */
	snprintf(instance, sizeof(instance), "%016llx", get_random_u64());
	if (*init_utsname()->nodename)
		kmsg_name(name);
	conn->active = true;
	ret = kcm_connect(&kmsg_config, &client, conn, &conn->session);
	if (ret)
		conn->active = false;
	return ret;
}

/**
 * kmsg_conn_credit() - tell the peer of receives
 * @conn: the connection
 * @posted: number of receives since the beginning
 *
 * Return: 0, also when the connection isn't alive, -ENOBUFS or -ENOMEM to try again, or another
 * negative errno.
 */
int kmsg_conn_credit(struct kmsg_conn *conn, u64 posted)
{
	const struct kmsg_wire_credit wire = { .posted = cpu_to_le64(posted) };

	lockdep_assert_held(&conn->lock);
	return conn->live ? kcm_note(conn->session, &wire, sizeof(wire)) : 0;
}

/**
 * kmsg_conn_accept() - accept a request
 * @conn: the request, with its endpoint, and the ULP's data in @conn->mine. The caller holds its
 *	lock
 *
 * Return: 0, -ECONNABORTED if the session has ended, or another negative errno.
 */
int kmsg_conn_accept(struct kmsg_conn *conn)
{
	struct kmsg_wire_hello *wire = (void *)conn->out;
	struct kcm_addrs addrs;
	size_t len;
	int ret;

	lockdep_assert_held(&conn->lock);
	ret = conn->over ? -ECONNABORTED : kmsg_ep_peer(conn->ep, &conn->peer);
	if (!ret) {
		kmsg_ep_hello(conn->ep, &conn->mine);
		len = kmsg_hello_build(&conn->mine, wire, &addrs);
		ret = kcm_accept(conn->session, &addrs, wire, len);
		conn->accepted = !ret;
	}
	return ret == -ENOTCONN ? -ECONNABORTED : ret;
}
