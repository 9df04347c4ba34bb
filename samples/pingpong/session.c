// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * TCP between the two sides. The instance's thread blocks in these functions; pp_shut_down()
 * wakes it by shutting down the sockets that it has published.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/net.h>
#include <linux/tcp.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include "pingpong.h"

#define PP_BACKLOG	4
#define PP_RETRY_MS	200

static int pp_address(struct sockaddr_storage *addr)
{
	char port[8];

	snprintf(port, sizeof(port), "%u", pp_config.port);
	return inet_pton_with_scope(&init_net, AF_UNSPEC, pp_config.addr, port,
				    addr);
}

static int pp_address_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					     sizeof(struct sockaddr_in);
}

/* Publish a socket, so that pp_shut_down() can wake the thread that waits for it. */
static int pp_publish(struct pp_instance *inst, struct socket **where,
		      struct socket *sock)
{
	int ret = 0;

	mutex_lock(&inst->lock);
	if (READ_ONCE(inst->stopping))
		ret = -ESHUTDOWN;
	else
		*where = sock;
	mutex_unlock(&inst->lock);
	if (ret)
		sock_release(sock);
	return ret;
}

static int pp_socket(const struct sockaddr_storage *addr, struct socket **sock)
{
	return sock_create_kern(&init_net, addr->ss_family, SOCK_STREAM,
				IPPROTO_TCP, sock);
}

/* Wait for a silent peer no longer than the parameter timeout. */
static void pp_socket_set_up(struct socket *sock)
{
	sock->sk->sk_rcvtimeo = pp_config.timeout * HZ;
	sock->sk->sk_sndtimeo = pp_config.timeout * HZ;
	tcp_sock_set_nodelay(sock->sk);
}

/**
 * pp_listen() - listen at the configured address
 * @inst: the server
 *
 * Return: 0, or a negative errno.
 */
int pp_listen(struct pp_instance *inst)
{
	struct sockaddr_storage addr;
	struct socket *sock;
	int ret;

	ret = pp_address(&addr) ?: pp_socket(&addr, &sock);
	if (ret)
		return ret;
	sock_set_reuseaddr(sock->sk);
	ret = kernel_bind(sock, (struct compat_sockaddr *)&addr,
			  pp_address_len(&addr)) ?:
	      kernel_listen(sock, PP_BACKLOG);
	if (ret) {
		sock_release(sock);
		return ret;
	}
	return pp_publish(inst, &inst->listener, sock);
}

/**
 * pp_accept() - wait for a client
 * @inst: the server, which listens
 * @sock: takes the connection, for pp_hang_up()
 *
 * Return: 0, or a negative errno.
 */
int pp_accept(struct pp_instance *inst, struct socket **sock)
{
	int ret;

	ret = kernel_accept(inst->listener, sock, 0);
	if (ret)
		return READ_ONCE(inst->stopping) ? -ESHUTDOWN : ret;
	pp_socket_set_up(*sock);
	return pp_publish(inst, &inst->sock, *sock);
}

static int pp_connect_once(struct pp_instance *inst, struct socket **sock)
{
	struct sockaddr_storage addr;
	int ret;

	ret = pp_address(&addr) ?: pp_socket(&addr, sock);
	if (ret)
		return ret;
	pp_socket_set_up(*sock);
	ret = pp_publish(inst, &inst->sock, *sock);
	if (ret)
		return ret;
	ret = kernel_connect(*sock, (struct compat_sockaddr *)&addr,
			     pp_address_len(&addr), 0);
	if (ret)
		pp_hang_up(inst, &inst->sock);
	return ret;
}

/**
 * pp_connect() - connect to the server, which may not be there yet
 * @inst: the client
 * @sock: takes the connection, for pp_hang_up()
 *
 * Return: 0, or a negative errno.
 */
int pp_connect(struct pp_instance *inst, struct socket **sock)
{
	unsigned long end = jiffies + pp_config.timeout * HZ;
	int ret;

	for (;;) {
		ret = pp_connect_once(inst, sock);
		if (!ret || ret == -EINVAL || time_after(jiffies, end))
			return ret;
		ret = pp_nap(inst, PP_RETRY_MS);
		if (ret)
			return ret;
	}
}

/**
 * pp_hang_up() - close a socket
 * @inst: the instance
 * @published: the published socket
 */
void pp_hang_up(struct pp_instance *inst, struct socket **published)
{
	struct socket *sock;

	mutex_lock(&inst->lock);
	sock = *published;
	*published = NULL;
	mutex_unlock(&inst->lock);
	if (sock)
		sock_release(sock);
}

/**
 * pp_shut_down() - wake the thread from waiting for a socket
 * @inst: the instance
 *
 * Context: Process context, not the instance's thread.
 */
void pp_shut_down(struct pp_instance *inst)
{
	mutex_lock(&inst->lock);
	WRITE_ONCE(inst->stopping, true);
	/* Keep the other direction for sending BYE. */
	if (inst->listener)
		kernel_sock_shutdown(inst->listener, SHUT_RD);
	if (inst->sock)
		kernel_sock_shutdown(inst->sock, SHUT_RD);
	mutex_unlock(&inst->lock);
	wake_up_all(&inst->wait);
}

/**
 * pp_connected() - check whether the TCP connection is established
 * @s: the session
 *
 * Return: true if it is established.
 */
bool pp_connected(const struct pp_session *s)
{
	return READ_ONCE(s->sock->sk->sk_state) == TCP_ESTABLISHED;
}

static int pp_recv(struct pp_session *s, void *buf, size_t len)
{
	struct kvec vec = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = {};
	int ret;

	ret = kernel_recvmsg(s->sock, &msg, &vec, 1, len, MSG_WAITALL);
	if (READ_ONCE(s->inst->stopping))
		return -ESHUTDOWN;
	if (ret == -EAGAIN)
		return -ETIMEDOUT;
	if (ret < 0)
		return ret;
	return ret == len ? 0 : -ECONNRESET;
}

/**
 * pp_msg_send() - send a message
 * @s: the session
 * @msg: the message
 *
 * Return: 0, or a negative errno.
 */
int pp_msg_send(struct pp_session *s, const struct pp_msg *msg)
{
	u8 buf[PP_WIRE_MAX];
	struct kvec vec = { .iov_base = buf };
	struct msghdr hdr = { .msg_flags = MSG_NOSIGNAL };
	int ret;

	vec.iov_len = pp_wire_build(msg, buf);
	ret = kernel_sendmsg(s->sock, &hdr, &vec, 1, vec.iov_len);
	if (READ_ONCE(s->inst->stopping))
		return -ESHUTDOWN;
	if (ret == -EAGAIN)
		return -ETIMEDOUT;
	if (ret < 0)
		return ret;
	return ret == vec.iov_len ? 0 : -ECONNRESET;
}

/**
 * pp_msg_recv() - receive a message
 * @s: the session
 * @msg: takes the message
 *
 * Return: 0, -EPROTO for an invalid message, or another negative errno.
 */
int pp_msg_recv(struct pp_session *s, struct pp_msg *msg)
{
	u8 buf[PP_WIRE_MAX];
	int ret, body;

	ret = pp_recv(s, buf, sizeof(struct pp_wire_header));
	if (ret)
		return ret;
	body = pp_wire_body(buf);
	ret = body < 0 ? body :
			 pp_recv(s, buf + sizeof(struct pp_wire_header), body);
	if (!ret)
		ret = pp_wire_parse(buf, sizeof(struct pp_wire_header) + body,
				    msg);
	if (ret == -EPROTO)
		pp_report_refused(s->inst);
	return ret;
}

static int pp_peer_left(struct pp_session *s, enum pp_reason reason)
{
	static const char * const reasons[PP_REASONS] = {
		[PP_BYE_DONE]		= "it is done",
		[PP_BYE_STOPPED]	= "its module is being unloaded",
		[PP_BYE_REMOVED]	= "its device went away",
		[PP_BYE_PROTOCOL]	= "it received an invalid message",
		[PP_BYE_FAILED]		= "it failed; see its results",
	};

	pp_report_error(s->inst, -ECONNABORTED, "the peer ended the session because %s",
			reasons[reason]);
	return -ECONNABORTED;
}

/**
 * pp_msg_expect() - receive a message of one type
 * @s: the session
 * @type: the type
 * @msg: takes the message
 *
 * Return: as pp_msg_recv(), and -ECONNABORTED when the peer sent BYE.
 */
int pp_msg_expect(struct pp_session *s, enum pp_type type, struct pp_msg *msg)
{
	int ret = pp_msg_recv(s, msg);

	if (ret || msg->type == type)
		return ret;
	if (msg->type == PP_BYE)
		return pp_peer_left(s, msg->bye.reason);
	pp_report_refused(s->inst);
	return -EPROTO;
}

/**
 * pp_hung_up() - find out why the peer hung up
 * @s: the session, no longer pp_connected()
 *
 * Return: a negative errno, which is reported.
 */
int pp_hung_up(struct pp_session *s)
{
	struct pp_msg msg;

	if (!pp_msg_recv(s, &msg) && msg.type == PP_BYE)
		return pp_peer_left(s, msg.bye.reason);
	pp_report_error(s->inst, -ECONNRESET, "the peer closed its connection");
	return -ECONNRESET;
}

/**
 * pp_hello() - exchange HELLO messages with the peer
 * @s: the session, with an endpoint
 *
 * Return: 0, or a negative errno.
 */
int pp_hello(struct pp_session *s)
{
	struct pp_msg msg = { .type = PP_HELLO, .hello = s->self };
	int ret;

	ret = pp_msg_send(s, &msg) ?: pp_msg_expect(s, PP_HELLO, &msg);
	if (!ret)
		s->peer = msg.hello;
	return ret;
}

/**
 * pp_bye() - tell the peer that the session ends
 * @s: the session
 * @err: 0, or the error that ended it
 */
void pp_bye(struct pp_session *s, int err)
{
	struct pp_msg msg = { .type = PP_BYE };

	switch (err) {
	case 0:
		msg.bye.reason = PP_BYE_DONE;
		break;
	case -ESHUTDOWN:
		msg.bye.reason = PP_BYE_STOPPED;
		break;
	case -ENODEV:
	case -ENODATA:
		msg.bye.reason = PP_BYE_REMOVED;
		break;
	case -EPROTO:
		msg.bye.reason = PP_BYE_PROTOCOL;
		break;
	default:
		msg.bye.reason = PP_BYE_FAILED;
	}
	/* The session ends anyway, so ignore errors. */
	pp_msg_send(s, &msg);
}
