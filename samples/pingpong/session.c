// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * TCP between the two sides. The instance's thread blocks in these functions; pp_shut_down()
 * wakes it.
 */
#include <linux/jiffies.h>
#include <linux/net.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include "pingpong.h"

#define PP_RETRY_MS	200

static int pp_address(struct sockaddr_storage *addr)
{
	char text[KULP_NET_NAME + 16];

	snprintf(text, sizeof(text), strchr(pp_config.addr, ':') ? "[%s]:%u" : "%s:%u",
		 pp_config.addr, pp_config.port);
	return kulp_net_parse(text, addr);
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
	int ret;

	ret = pp_address(&addr) ?: kulp_net_listen(&inst->listener, &addr);
	if (ret)
		kulp_net_close(&inst->listener);
	return ret;
}

static int pp_connect_once(struct pp_instance *inst)
{
	struct sockaddr_storage addr;
	int ret;

	ret = pp_address(&addr) ?:
	      kulp_net_connect(&inst->net, &addr, pp_config.timeout * MSEC_PER_SEC);
	if (ret)
		kulp_net_close(&inst->net);
	return ret;
}

/**
 * pp_connect() - connect to the server, which may not be there yet
 * @inst: the client
 *
 * Return: 0, or a negative errno.
 */
int pp_connect(struct pp_instance *inst)
{
	unsigned long end = jiffies + pp_config.timeout * HZ;
	int ret;

	for (;;) {
		ret = pp_connect_once(inst);
		if (!ret || ret == -EINVAL || time_after(jiffies, end))
			return ret;
		ret = pp_nap(inst, PP_RETRY_MS);
		if (ret)
			return ret;
	}
}

/**
 * pp_shut_down() - wake the thread from waiting for a socket
 * @inst: the instance
 *
 * Context: Process context, not the instance's thread.
 */
void pp_shut_down(struct pp_instance *inst)
{
	WRITE_ONCE(inst->stopping, true);
	kulp_net_shutdown(&inst->listener);
	kulp_net_shutdown(&inst->net);
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
	return READ_ONCE(s->inst->net.sock->sk->sk_state) == TCP_ESTABLISHED;
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
	u8 buf[PP_WIRE_MAX] __aligned(8);

	int ret = kulp_net_send(&s->inst->net, buf, pp_wire_build(msg, buf));

	return READ_ONCE(s->inst->stopping) ? -ESHUTDOWN : ret;
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
	u8 buf[PP_WIRE_MAX] __aligned(8);
	int ret;

	ret = kulp_net_recv(&s->inst->net, buf, sizeof(buf), pp_config.timeout * MSEC_PER_SEC);
	if (READ_ONCE(s->inst->stopping))
		return -ESHUTDOWN;
	if (ret > 0)
		ret = pp_wire_parse(buf, ret, msg);
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
