// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The handshake of the active side, and its attempts. */
#include <linux/export.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "cm.h"
#include "trace.h"

static void kcm_attempt_failed(struct kcm_session *s, int err)
{
	const struct kcm_end end = { .err = err, .reason = KCM_BYE_FAILED };

	kcm_end(s, &end);
}

/**
 * kcm_attempt() - begin an attempt
 * @s: the session, waiting
 */
void kcm_attempt(struct kcm_session *s)
{
	int ret;

	s->attempts++;
	kcm_go(s, KCM_CONNECTING);
	kcm_limit(s, KCM_STEP_MS);
	ret = kcm_sock_connect(s);
	if (ret && ret != -EINPROGRESS)
		kcm_attempt_failed(s, ret);
	else
		kcm_kick(s);
}

/* HELLO, which is kept for the proofs. */
static int kcm_hello(struct kcm_session *s)
{
	const struct kcm_client *client = &s->client;
	struct kcm_shaking *shaking = s->shaking;
	struct kcm_hello_msg *msg = &shaking->hello;
	struct kcm_addrs addrs = {};
	const void *priv = NULL;
	size_t n, len = 0;
	u8 *tail;
	int ret;

	ret = s->config->ops->hello(s, &addrs, &priv, &len);
	if (ret)
		return ret;
	if (addrs.len > KULP_ADDR_MAX || addrs.count > KCM_ADDRS || len > KCM_PRIV_MAX)
		return -EINVAL;
	n = addrs.len * addrs.count;
	shaking->first = kmalloc(kcm_proto.types[KCM_HELLO].len + n + len, GFP_NOIO);
	tail = kmalloc(n + len + 1, GFP_NOIO);
	if (!shaking->first || !tail) {
		kfree(tail);
		return -ENOMEM;
	}
	if (n)
		memcpy(tail, addrs.addr, n);
	if (len)
		memcpy(tail + n, priv, len);
	get_random_bytes(msg->nonce, sizeof(msg->nonce));
	strscpy(msg->service, s->config->service, sizeof(msg->service));
	strscpy(msg->name, client->name, sizeof(msg->name));
	strscpy(msg->instance, client->instance, sizeof(msg->instance));
	memcpy(msg->host, client->host, sizeof(msg->host));
	msg->keep_alive = s->config->keep_alive_ms;
	msg->addr_format = addrs.format;
	msg->addr_len = addrs.len;
	msg->addr_count = addrs.count;
	msg->priv_len = len;
	msg->version_min = s->config->version_min;
	msg->version = s->config->version;
	shaking->shake = (struct kulp_shake) {
		.proto		= &kcm_proto,
		.challenge_type	= KCM_CHALLENGE,
		.proof_type	= KCM_AUTH,
		.server		= "kofi_cm challenge",
		.client		= "kofi_cm auth",
		.first		= shaking->first,
		.len		= kulp_build(&kcm_proto, KCM_HELLO, shaking->first, msg, tail,
					     n + len),
	};
	kfree(tail);
	return kcm_send_raw(s, KCM_HELLO, shaking->first, shaking->shake.len);
}

/**
 * kcm_connected() - go on if the connection is established
 * @s: the session, connecting
 */
void kcm_connected(struct kcm_session *s)
{
	int ret = kcm_sock_connected(s);

	if (ret == -EINPROGRESS)
		return;
	if (!ret) {
		s->shaking = kzalloc(sizeof(*s->shaking), GFP_NOIO);
		ret = s->shaking ? kcm_hello(s) : -ENOMEM;
	}
	if (ret) {
		kcm_attempt_failed(s, ret);
		return;
	}
	kcm_go(s, KCM_HELLO_SENT);
	kcm_limit(s, KCM_STEP_MS);
}

/**
 * kcm_take_challenge() - handle CHALLENGE
 * @s: the session
 * @buf: the message
 * @len: its length
 *
 * Return: 0 or a negative errno.
 */
int kcm_take_challenge(struct kcm_session *s, void *buf, size_t len)
{
	struct kulp_proof proof;
	u8 auth[KULP_MAC];
	int ret;

	ret = kulp_challenge_check(&s->shaking->shake, buf, len, s->client.key) ?:
	      kulp_proof_make(&s->shaking->shake, s->client.key, &proof, auth) ?:
	      kcm_derive(s, s->client.key, auth) ?:
	      kcm_send_raw(s, KCM_AUTH, &proof, sizeof(proof));
	if (ret)
		return ret;
	kcm_go(s, KCM_AUTH_SENT);
	/* The peer may wait that long for the end of an earlier session. */
	kcm_limit(s, s->config->replace_ms + KCM_READY_MS);
	return 0;
}

/**
 * kcm_take_accept() - handle ACCEPT
 * @s: the session
 * @buf: the message
 * @len: its length
 *
 * Return: 0 or a negative errno.
 */
int kcm_take_accept(struct kcm_session *s, void *buf, size_t len)
{
	struct kcm_accept_msg msg;
	struct kcm_peer peer = { .name = "", .instance = s->client.instance, .from = s->from };
	u8 nothing = 0;
	int ret;

	ret = kulp_parse(&kcm_proto, KCM_ACCEPT, buf, len, &msg) ?:
	      kcm_agree(s, msg.version, msg.version);
	if (ret)
		return ret;
	s->id = msg.session;
	s->keep_alive = min(msg.keep_alive, s->config->keep_alive_ms);
	peer.host = s->client.host;
	peer.addrs = (struct kcm_addrs) {
		.format	= msg.addr_format,
		.len	= msg.addr_len,
		.count	= msg.addr_count,
		.addr	= msg.addrs,
	};
	peer.priv = msg.priv;
	peer.priv_len = msg.priv_len;
	ret = s->config->ops->accepted(s, &peer);
	if (ret)
		return ret;
	s->seen = true;
	ret = kcm_send(s, KCM_READY, &nothing, NULL, 0);
	if (!ret)
		kcm_begin_live(s);
	return ret;
}

/**
 * kcm_take_reject() - handle REJECT
 * @s: the session
 * @buf: the message
 * @len: its length
 *
 * A refusal is final only from a peer that knows the secret: anybody else could make a client give
 * up its disk.
 * Return: 0 or a negative errno.
 */
int kcm_take_reject(struct kcm_session *s, void *buf, size_t len)
{
	struct kcm_end end = { .refused = true, .reason = KCM_BYE_FAILED };
	bool proven = s->key && !kcm_check_mac(s, KCM_REJECT, buf, len);
	struct kcm_reject_msg msg;
	int ret;

	ret = kulp_parse(&kcm_proto, KCM_REJECT, buf, len, &msg);
	if (ret)
		return ret;
	end.err = kulp_status_errno(msg.status);
	end.final = proven && !msg.again;
	end.data = msg.priv;
	end.len = msg.priv_len;
	strscpy(end.why, msg.why, sizeof(end.why));
	s->after_ms = min_t(u32, msg.after_ms, KCM_AFTER_MAX);
	kcm_end(s, &end);
	return 0;
}

static bool kcm_gives_up(const struct kcm_session *s)
{
	return s->client.give_up_ms &&
	       time_after(jiffies, s->failing_since + msecs_to_jiffies(s->client.give_up_ms));
}

/**
 * kcm_attempt_over() - handle the end of an attempt that the ULP hasn't seen succeed
 * @s: the session
 * @end: how it has ended
 */
void kcm_attempt_over(struct kcm_session *s, const struct kcm_end *end)
{
	const struct kcm_ops *ops = s->config->ops;
	struct kcm_end copy = *end;

	kcm_sock_close(s);
	if (test_bit(KCM_WANT_CLOSE, &s->wants)) {
		kcm_disconnected(s);
		kcm_go(s, KCM_CLOSED);
		complete(&s->closed);
		return;
	}
	copy.final |= kcm_gives_up(s);
	if (copy.final) {
		s->final = true;
		s->seen = true;
		s->stopping = true;
		kcm_go(s, KCM_STOPPED);
		ops->stop(s, &copy);
		return;
	}
	if (ops->failed)
		ops->failed(s, &copy);
	kcm_disconnected(s);
	kcm_retry(s);
}

/**
 * kcm_retry() - wait for the time of the next attempt
 * @s: the session
 *
 * The time is random, so that the clients of a server that was away don't come all at once.
 */
void kcm_retry(struct kcm_session *s)
{
	u32 half = max(s->client.retry_ms / 2, 1U);

	kcm_go(s, KCM_WAITING);
	kcm_limit(s, max(half + get_random_u32() % half, s->after_ms));
	s->after_ms = 0;
	kcm_kick(s);
}

static void kcm_client_free(struct kcm_client *client)
{
	kfree(client->name);
	kfree(client->instance);
	kulp_key_put(client->key);
}

static int kcm_client_copy(struct kcm_client *to, const struct kcm_client *from)
{
	*to = *from;
	to->name = kstrdup(from->name, GFP_KERNEL);
	to->instance = kstrdup(from->instance, GFP_KERNEL);
	to->key = kulp_key_get(from->key);
	if (to->name && to->instance)
		return 0;
	kcm_client_free(to);
	return -ENOMEM;
}

static bool kcm_client_ok(const struct kcm_config *config, const struct kcm_client *client)
{
	return *client->name && strlen(client->name) < KCM_NAME &&
	       strlen(client->instance) < KCM_NAME && strlen(config->service) < KCM_SERVICE &&
	       config->keep_alive_ms >= KCM_KEEP_ALIVE_MIN &&
	       config->keep_alive_ms <= KCM_KEEP_ALIVE_MAX &&
	       config->version_min <= config->version;
}

/**
 * kcm_connect() - become the active side of sessions with a peer
 * @config: the service
 * @client: where to, and as whom
 * @context: the ULP's, for kcm_context()
 * @session: takes the session. It is valid until kcm_disconnect(), whatever its end
 *
 * Attempts are made, one after the other, until one succeeds, and again after the end of a session.
 * Callbacks may come before the function returns.
 * Context: Process, sleeps.
 * Return: 0, -EINVAL or -ENOMEM.
 */
int kcm_connect(const struct kcm_config *config, const struct kcm_client *client, void *context,
		struct kcm_session **session)
{
	struct kcm_session *s;
	int ret;

	if (!kcm_client_ok(config, client))
		return -EINVAL;
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	kcm_session_init(s, config);
	ret = kcm_client_copy(&s->client, client);
	if (ret) {
		kfree(s);
		return ret;
	}
	s->active = true;
	s->context = context;
	s->state = KCM_WAITING;
	s->failing_since = jiffies;
	snprintf(s->from, sizeof(s->from), "%pISpc", &client->to);
	kcm_limit(s, 0);
	*session = s;
	kcm_session_add(s);
	kcm_kick(s);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kcm_connect, KOFI_CM);

/**
 * kcm_disconnect() - end a session for good, and free it
 * @s: the session, from kcm_connect()
 *
 * If the session was accepted, kcm_ops.stop is called, and the function returns after kcm_gone().
 * Context: Process, sleeps. Not from a callback.
 */
void kcm_disconnect(struct kcm_session *s)
{
	kcm_want(s, KCM_WANT_CLOSE);
	wait_for_completion(&s->closed);
	kcm_session_del(s);
	cancel_delayed_work_sync(&s->work);
	kcm_client_free(&s->client);
	kfree(s);
}
EXPORT_SYMBOL_NS_GPL(kcm_disconnect, KOFI_CM);
