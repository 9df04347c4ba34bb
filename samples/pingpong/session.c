// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The session of an instance, by kofi_cm. Its callbacks only write into the instance's link and
 * wake the instance's thread, which blocks in the functions below; pp_shut_down() wakes it, too. A
 * message is a note.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "pingpong.h"

#define PP_RETRY_MS	200
#define PP_KEEP_ALIVE_MS	5000
#define PP_REPLACE_MS	10000

/* More messages than a side sends without an answer. */
#define PP_NOTES_MAX	4

/**
 * struct pp_note - a message that has arrived
 * @list: in pp_link.notes
 * @len: length of the message
 * @buf: the message
 */
struct pp_note {
	struct list_head	list;
	size_t			len;
	u8			buf[] __aligned(8);
};

static int pp_parse_hello(const struct kcm_peer *peer, struct pp_hello *hello, struct pp_addr *addr)
{
	u8 buf[PP_WIRE_MAX] __aligned(8);
	struct pp_msg msg;

	if (peer->priv_len > sizeof(buf) || peer->addrs.count != 1)
		return -EPROTO;
	memcpy(buf, peer->priv, peer->priv_len);
	if (pp_wire_parse(buf, peer->priv_len, &msg) || msg.type != PP_HELLO)
		return -EPROTO;
	/* Endpoints of another type can't be reached. */
	if (!!(msg.hello.can & PP_CAN_LOSE) != pp_config.dgram ||
	    !!(msg.hello.can & PP_CAN_CONNECT) != pp_config.connected)
		return -EPROTO;
	*hello = msg.hello;
	addr->len = peer->addrs.len;
	memcpy(addr->bytes, peer->addrs.addr, addr->len);
	return 0;
}

/* Build the HELLO, in which each side describes itself. */
static size_t pp_build_hello(const struct pp_session *s, struct kcm_addrs *addrs, void *buf)
{
	const struct pp_msg msg = { .type = PP_HELLO, .hello = s->self };

	*addrs = (struct kcm_addrs) {
		.format	= s->addr_format,
		.len	= s->self_addr.len,
		.count	= 1,
		.addr	= s->self_addr.bytes,
	};
	return pp_wire_build(&msg, buf);
}

/* --- callbacks: they may run until pp_end(), after pp_close(), so they use no object --- */

static int pp_cm_keys(struct kcm_listener *l, const struct kcm_peer *peer,
		      struct kulp_key *keys[KULP_SECRETS])
{
	return 0;
}

static int pp_cm_request(struct kcm_session *cm, const struct kcm_peer *peer)
{
	struct pp_instance *inst = kcm_context(cm);
	struct pp_link *link = &inst->link;
	int ret = -EBUSY;

	spin_lock(&link->lock);
	if (!link->cm) {
		ret = pp_parse_hello(peer, &link->hello, &link->addr);
		if (!ret)
			smp_store_release(&link->cm, cm); /* pairs with pp_wait_client() */
	}
	spin_unlock(&link->lock);
	if (ret == -EPROTO)
		pp_report_refused(inst);
	wake_up(&inst->wait);
	return ret;
}

static int pp_cm_hello(struct kcm_session *cm, struct kcm_addrs *addrs, const void **priv,
		       size_t *len)
{
	struct pp_instance *inst = kcm_context(cm);
	struct pp_link *link = &inst->link;

	if (READ_ONCE(link->closing))
		return -ESHUTDOWN;
	*len = pp_build_hello(link->session, addrs, link->buf);
	*priv = link->buf;
	return 0;
}

static int pp_cm_accepted(struct kcm_session *cm, const struct kcm_peer *peer)
{
	struct pp_instance *inst = kcm_context(cm);
	struct pp_session *s = inst->link.session;

	return pp_parse_hello(peer, &s->peer, &s->peer_addr_of);
}

static void pp_cm_live(struct kcm_session *cm)
{
	struct pp_instance *inst = kcm_context(cm);

	smp_store_release(&inst->link.live, true);	/* pairs with pp_link_live() */
	wake_up(&inst->wait);
}

static int pp_note_add(struct pp_link *link, const void *data, size_t len)
{
	struct pp_note *note;
	bool room;

	if (len > PP_WIRE_MAX)
		return -EMSGSIZE;
	note = kmalloc(struct_size(note, buf, len), GFP_KERNEL);
	if (!note)
		return -ENOMEM;
	note->len = len;
	memcpy(note->buf, data, len);
	spin_lock(&link->lock);
	room = link->nnotes < PP_NOTES_MAX;
	if (room) {
		list_add_tail(&note->list, &link->notes);
		link->nnotes++;
	}
	spin_unlock(&link->lock);
	if (room)
		return 0;
	kfree(note);
	return -ENOBUFS;
}

static void pp_cm_note(struct kcm_session *cm, const void *data, size_t len)
{
	struct pp_instance *inst = kcm_context(cm);
	int ret = pp_note_add(&inst->link, data, len);

	if (ret) {
		pp_report_refused(inst);
		pp_report_error(inst, ret, "can't take a message of the peer");
		kcm_bye(cm, KCM_BYE_PROTOCOL, true, NULL, 0);
	}
	wake_up(&inst->wait);
}

static void pp_cm_failed(struct kcm_session *cm, const struct kcm_end *end)
{
	struct pp_instance *inst = kcm_context(cm);

	inst->link.err = end->err;
}

static void pp_cm_stop(struct kcm_session *cm, const struct kcm_end *end)
{
	struct pp_instance *inst = kcm_context(cm);

	struct pp_link *link = &inst->link;
	bool gone;

	spin_lock(&link->lock);
	link->err = end->err;
	link->reason = end->reason;
	smp_store_release(&link->ended, true);	/* pairs with pp_link_ended() */
	gone = link->closing;
	spin_unlock(&link->lock);
	wake_up(&inst->wait);
	if (gone)
		kcm_gone(cm);
}

static const struct kcm_ops pp_cm_ops = {
	.keys		= pp_cm_keys,
	.request	= pp_cm_request,
	.hello		= pp_cm_hello,
	.accepted	= pp_cm_accepted,
	.live		= pp_cm_live,
	.note		= pp_cm_note,
	.failed		= pp_cm_failed,
	.stop		= pp_cm_stop,
};

static const struct kcm_config pp_cm_config = {
	.net		= &init_net,
	.service	= "pingpong",
	.version_min	= PP_VERSION,
	.version	= PP_VERSION,
	.keep_alive_ms	= PP_KEEP_ALIVE_MS,
	.replace_ms	= PP_REPLACE_MS,
	.ops		= &pp_cm_ops,
};

/* --- the thread --- */

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

	return pp_address(&addr) ?: kcm_listen(&pp_cm_config, &addr, inst, &inst->listener);
}

/**
 * pp_unlisten() - undo pp_listen()
 * @inst: the server, without a session
 */
void pp_unlisten(struct pp_instance *inst)
{
	struct pp_link *link = &inst->link;
	struct kcm_session *cm;

	/* A client that asks from now on is refused. */
	spin_lock(&link->lock);
	cm = link->cm;
	link->cm = ERR_PTR(-ESHUTDOWN);
	spin_unlock(&link->lock);
	if (cm)
		kcm_reject(cm, -ENOENT, true, 0, NULL, NULL, 0);
	kcm_unlisten(inst->listener);
}

/* All that the callbacks have written before can be read then. */
static bool pp_link_live(const struct pp_instance *inst)
{
	return smp_load_acquire(&inst->link.live);	/* pairs with pp_cm_live() */
}

static bool pp_link_ended(const struct pp_instance *inst)
{
	return smp_load_acquire(&inst->link.ended);	/* pairs with pp_cm_stop() */
}

static bool pp_link_over(const struct pp_instance *inst)
{
	return pp_link_ended(inst) || READ_ONCE(inst->stopping);
}

/* Wait until both sides are ready. */
static int pp_wait_live(struct pp_instance *inst)
{
	wait_event_idle(inst->wait, pp_link_live(inst) || pp_link_over(inst));
	if (READ_ONCE(inst->stopping))
		return -ESHUTDOWN;
	return pp_link_live(inst) ? 0 : inst->link.err;
}

/**
 * pp_connect() - begin a session with the server, which may not be there yet
 * @s: the client's session, with an endpoint
 *
 * pp_end() ends the session, also after a failure.
 * Return: 0, or a negative errno.
 */
int pp_connect(struct pp_session *s)
{
	struct pp_instance *inst = s->inst;
	struct kcm_client client = {
		.name		= "pingpong",
		.instance	= "",
		.retry_ms	= PP_RETRY_MS,
		.give_up_ms	= pp_config.timeout * MSEC_PER_SEC,
	};
	int ret;

	inst->link.session = s;
	ret = pp_address(&client.to) ?:
	      kcm_connect(&pp_cm_config, &client, inst, &inst->link.cm);
	return ret ?: pp_wait_live(inst) ?: pp_meet(s) ?: pp_join(s);
}

/**
 * pp_wait_client() - wait for a client
 * @inst: the server
 *
 * Return: true if a client asks for a session, false if the thread must end.
 */
bool pp_wait_client(struct pp_instance *inst)
{
	/* Pairs with pp_cm_request(). */
	wait_event_idle(inst->wait, smp_load_acquire(&inst->link.cm) || READ_ONCE(inst->stopping));
	return !READ_ONCE(inst->stopping);
}

/**
 * pp_accept() - begin the session that a client asks for
 * @s: the server's session, with an endpoint
 *
 * pp_end_client() ends the session, also after a failure.
 * Return: 0, or a negative errno.
 */
int pp_accept(struct pp_session *s)
{
	struct pp_link *link = &s->inst->link;
	struct kcm_addrs addrs;
	size_t len;
	int ret;

	s->peer = link->hello;
	s->peer_addr_of = link->addr;
	len = pp_build_hello(s, &addrs, link->buf);
	ret = pp_meet(s) ?: kcm_accept(link->cm, &addrs, link->buf, len);
	return ret ?: pp_wait_live(s->inst) ?: pp_join(s);
}

/**
 * pp_shut_down() - wake the thread from waiting
 * @inst: the instance
 *
 * Context: Process context, not the instance's thread.
 */
void pp_shut_down(struct pp_instance *inst)
{
	WRITE_ONCE(inst->stopping, true);
	wake_up_all(&inst->wait);
}

/**
 * pp_connected() - check whether the session goes on
 * @s: the session
 *
 * Return: false after its end.
 */
bool pp_connected(const struct pp_session *s)
{
	return !pp_link_ended(s->inst);
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
	int ret;

	ret = kcm_note(s->inst->link.cm, buf, pp_wire_build(msg, buf));
	if (READ_ONCE(s->inst->stopping))
		return -ESHUTDOWN;
	return ret == -ENOTCONN ? pp_hung_up(s) : ret;
}

static struct pp_note *pp_note_take(struct pp_link *link)
{
	struct pp_note *note;

	spin_lock(&link->lock);
	note = list_first_entry_or_null(&link->notes, struct pp_note, list);
	if (note) {
		list_del(&note->list);
		link->nnotes--;
	}
	spin_unlock(&link->lock);
	return note;
}

/**
 * pp_msg_recv() - receive a message
 * @s: the session
 * @msg: takes the message
 *
 * Return: 0, -EPROTO for an invalid message, -ECONNABORTED if the session has ended, or another
 * negative errno.
 */
int pp_msg_recv(struct pp_session *s, struct pp_msg *msg)
{
	struct pp_instance *inst = s->inst;
	struct pp_note *note;
	int ret;

	wait_event_idle_timeout(inst->wait,
				!list_empty_careful(&inst->link.notes) || pp_link_over(inst),
				pp_config.timeout * HZ);
	if (READ_ONCE(inst->stopping))
		return -ESHUTDOWN;
	note = pp_note_take(&inst->link);
	if (!note)
		return pp_connected(s) ? -ETIMEDOUT : -ECONNABORTED;
	ret = pp_wire_parse(note->buf, note->len, msg);
	kfree(note);
	if (ret == -EPROTO)
		pp_report_refused(inst);
	return ret;
}

/**
 * pp_hung_up() - find out why the session has ended
 * @s: the session, which has ended or is about to
 *
 * Return: a negative errno, which is reported.
 */
int pp_hung_up(struct pp_session *s)
{
	static const char * const reasons[KCM_BYES] = {
		[KCM_BYE_DONE]		= "it is done",
		[KCM_BYE_STOPPED]	= "its module is being unloaded",
		[KCM_BYE_REMOVED]	= "its device went away",
		[KCM_BYE_REPLACED]	= "another client of the same name came",
		[KCM_BYE_PROTOCOL]	= "it received an invalid message",
		[KCM_BYE_FAILED]	= "it failed; see its results",
	};
	const struct pp_link *link = &s->inst->link;

	/* kofi_cm takes no message any more from shortly before it calls pp_cm_stop(). */
	wait_event_idle(s->inst->wait, !pp_connected(s));
	if (link->err == -ECONNABORTED)
		pp_report_error(s->inst, link->err, "the peer ended the session because %s",
				reasons[link->reason]);
	else
		pp_report_error(s->inst, link->err, "the session was lost");
	return link->err;
}

/**
 * pp_said_done() - check whether the peer has ended the session because it needs it no longer
 * @s: the session
 *
 * Return: true if so.
 */
bool pp_said_done(const struct pp_session *s)
{
	const struct pp_link *link = &s->inst->link;

	return !pp_connected(s) && link->err == -ECONNABORTED && link->reason == KCM_BYE_DONE;
}

/**
 * pp_msg_waits() - check whether a message has arrived
 * @s: the session
 *
 * Return: true if pp_msg_recv() returns at once.
 */
bool pp_msg_waits(const struct pp_session *s)
{
	return !list_empty_careful(&s->inst->link.notes);
}

/**
 * pp_msg_await() - wait until a message has arrived, or the session has ended
 * @s: the session, whose peer makes progress that this side doesn't see
 *
 * There is no time limit. kofi_cm ends the session if the peer is silent.
 *
 * Return: 0; the result of the next pp_msg_recv() tells which. Or -ENODEV, which is reported.
 */
int pp_msg_await(struct pp_session *s)
{
	struct pp_instance *inst = s->inst;

	wait_event_idle(inst->wait,
			pp_msg_waits(s) || pp_link_over(inst) ||
			test_bit(PP_EVENT_REMOVED, &s->events));
	if (!test_bit(PP_EVENT_REMOVED, &s->events))
		return 0;
	pp_report_error(inst, -ENODEV, "the device was removed");
	return -ENODEV;
}

/**
 * pp_msg_expect() - receive a message of one type
 * @s: the session
 * @type: the type
 * @msg: takes the message
 *
 * Return: as pp_msg_recv(); the end of the session is reported.
 */
int pp_msg_expect(struct pp_session *s, enum pp_type type, struct pp_msg *msg)
{
	int ret = pp_msg_recv(s, msg);

	if (ret == -ECONNABORTED)
		return pp_hung_up(s);
	if (ret || msg->type == type)
		return ret;
	pp_report_refused(s->inst);
	return -EPROTO;
}

static enum kcm_reason pp_reason(int err)
{
	switch (err) {
	case 0:
		return KCM_BYE_DONE;
	case -ESHUTDOWN:
		return KCM_BYE_STOPPED;
	case -ENODEV:
	case -ENODATA:
		return KCM_BYE_REMOVED;
	case -EPROTO:
		return KCM_BYE_PROTOCOL;
	}
	return KCM_BYE_FAILED;
}

/**
 * pp_bye() - tell the peer that the session ends
 * @inst: the instance
 * @err: 0, or the error that ended it
 *
 */
void pp_bye(struct pp_instance *inst, int err)
{
	if (inst->link.cm)
		kcm_bye(inst->link.cm, pp_reason(err), true, NULL, 0);
}

static void pp_link_reset(struct pp_link *link)
{
	struct pp_note *note;

	while ((note = pp_note_take(link)))
		kfree(note);
	spin_lock(&link->lock);
	link->cm = NULL;
	link->live = false;
	link->ended = false;
	link->closing = false;
	spin_unlock(&link->lock);
}

/**
 * pp_end() - end the client's session
 * @inst: the client, whose endpoint is closed
 */
void pp_end(struct pp_instance *inst)
{
	struct pp_link *link = &inst->link;
	bool ended;

	if (!link->cm)
		return;
	spin_lock(&link->lock);
	link->closing = true;
	ended = link->ended;
	spin_unlock(&link->lock);
	/* Otherwise pp_cm_stop() calls it, if the session was accepted. */
	if (ended)
		kcm_gone(link->cm);
	kcm_disconnect(link->cm);
	pp_link_reset(link);
}

/**
 * pp_end_client() - end the session with a client
 * @inst: the server, whose endpoint is closed; after pp_bye()
 *
 * It can have a session with another client afterwards.
 */
void pp_end_client(struct pp_instance *inst)
{
	struct kcm_session *cm = inst->link.cm;

	wait_event_idle(inst->wait, pp_link_ended(inst));
	pp_link_reset(&inst->link);
	kcm_gone(cm);
}
