// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The handshake of the passive side. */
#include <linux/export.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "cm.h"
#include "trace.h"

static void kcm_reap(struct work_struct *work)
{
	struct kcm_session *s = container_of(work, struct kcm_session, reap);

	kcm_session_del(s);
	kcm_port_unlink(s);
	cancel_delayed_work_sync(&s->work);
	kcm_port_left(s);
	kfree(s);
}

/**
 * kcm_passive_new() - make a session for a connection that was accepted
 * @port: where
 *
 * Return: the session, half-open and without a socket; or NULL.
 */
struct kcm_session *kcm_passive_new(struct kcm_port *port)
{
	struct kcm_session *s = kzalloc(sizeof(*s), GFP_NOIO);

	if (!s)
		return NULL;
	kcm_session_init(s, NULL);
	INIT_WORK(&s->reap, kcm_reap);
	s->port = port;
	s->state = KCM_HALF_OPEN;
	kcm_limit(s, KCM_STEP_MS);
	return s;
}

/**
 * kcm_passive_closed() - free a session that is closed
 * @s: the session, from its own work item
 */
void kcm_passive_closed(struct kcm_session *s)
{
	queue_work(kcm_wq, &s->reap);
}

/**
 * kcm_refuse() - send REJECT to a client
 * @s: the session, before kcm_ops.request
 * @err: negative errno
 * @again: another attempt may succeed
 * @why: text for the client
 *
 * The session still has to be ended.
 */
void kcm_refuse(struct kcm_session *s, int err, bool again, const char *why)
{
	struct kcm_reject_msg msg = { .status = kulp_errno_status(err), .again = again };

	/* The ULP doesn't know of the client. Before the proof, anybody could fill the log. */
	if (s->state == KCM_PROVEN && *why)
		pr_info_ratelimited("kofi_cm: %s at %s, %s %s: refused: %s\n",
				    s->shaking->hello.name, s->from, s->shaking->hello.service,
				    s->shaking->hello.instance, why);
	if (s->config) {
		msg.version_min = s->config->version_min;
		msg.version = s->config->version;
	}
	strscpy(msg.why, why, sizeof(msg.why));
	kcm_send(s, KCM_REJECT, &msg, NULL, 0);
}

/* Refuse a client and end its session. Return: 0, because the message was handled. */
static int kcm_refused(struct kcm_session *s, int err, bool again, const char *why)
{
	const struct kcm_end end = {
		.err = err, .reason = KCM_BYE_FAILED, .refused = true,
	};

	kcm_refuse(s, err, again, why);
	kcm_end(s, &end);
	return 0;
}

static struct kcm_peer kcm_peer_of(const struct kcm_session *s)
{
	const struct kcm_hello_msg *hello = &s->shaking->hello;

	return (struct kcm_peer) {
		.name		= hello->name,
		.instance	= hello->instance,
		.host		= hello->host,
		.from		= s->from,
		.addrs		= {
			.format	= hello->addr_format,
			.len	= hello->addr_len,
			.count	= hello->addr_count,
			.addr	= hello->addrs,
		},
		.priv		= hello->priv,
		.priv_len	= hello->priv_len,
		.key		= s->shaking->proven,
	};
}

static int kcm_challenge(struct kcm_session *s)
{
	struct kcm_shaking *shaking = s->shaking;
	const struct kcm_peer peer = kcm_peer_of(s);
	int ret;

	shaking->nkeys = s->config->ops->keys(s->listener, &peer, shaking->keys);
	if (WARN_ON_ONCE(shaking->nkeys > KULP_SECRETS))
		return -EINVAL;
	if (shaking->nkeys < 0 && shaking->nkeys != -EACCES)
		return kcm_refused(s, shaking->nkeys, true,
				   shaking->nkeys == -ENOENT ? "no such instance" :
				   "refused by the service");
	ret = kulp_challenge_make(&shaking->shake, shaking->keys, shaking->nkeys) ?:
	      kcm_send_raw(s, KCM_CHALLENGE, &shaking->shake.challenge,
			   sizeof(shaking->shake.challenge));
	if (ret)
		return ret;
	kcm_go(s, KCM_CHALLENGED);
	kcm_limit(s, KCM_STEP_MS);
	return 0;
}

/**
 * kcm_take_hello() - handle HELLO
 * @s: the session
 * @buf: the message, which the session keeps
 * @len: its length
 *
 * Return: 0 or a negative errno.
 */
int kcm_take_hello(struct kcm_session *s, void *buf, size_t len)
{
	struct kcm_shaking *shaking = kzalloc(sizeof(*shaking), GFP_NOIO);
	int ret;

	if (!shaking)
		return -ENOMEM;
	ret = kulp_parse(&kcm_proto, KCM_HELLO, buf, len, &shaking->hello);
	if (ret) {
		kfree(shaking);
		return ret;
	}
	shaking->first = buf;
	shaking->shake = (struct kulp_shake) {
		.proto		= &kcm_proto,
		.challenge_type	= KCM_CHALLENGE,
		.proof_type	= KCM_AUTH,
		.server		= "kofi_cm challenge",
		.client		= "kofi_cm auth",
		.first		= buf,
		.len		= len,
	};
	s->shaking = shaking;
	if (kcm_choose(s, shaking->hello.service))
		return kcm_refused(s, -ENOENT, true, "no such service");
	s->keep_alive = min(shaking->hello.keep_alive, s->config->keep_alive_ms);
	if (kcm_agree(s, shaking->hello.version_min, shaking->hello.version))
		return kcm_refused(s, -EPROTO, true, "no common version");
	return kcm_challenge(s);
}

static int kcm_proven(struct kcm_session *s, const struct kulp_key *key, const u8 auth[KULP_MAC])
{
	int ret;

	ret = kcm_derive(s, key, auth);
	if (ret)
		return ret;
	/* Whoever was evicted meanwhile must have no effect on earlier sessions. */
	if (!kcm_settle(s))
		return -EBUSY;
	kcm_go(s, KCM_PROVEN);
	kcm_limit(s, s->config->replace_ms);
	if (kcm_kin_join(s))
		return kcm_refused(s, -EBUSY, true, "too many sessions");
	return 0;
}

/**
 * kcm_take_auth() - handle AUTH
 * @s: the session
 * @buf: the message
 * @len: its length
 *
 * Return: 0 or a negative errno.
 */
int kcm_take_auth(struct kcm_session *s, void *buf, size_t len)
{
	struct kcm_shaking *shaking = s->shaking;
	struct kulp_proof_msg msg;
	int ret;

	ret = kulp_parse(&kcm_proto, KCM_AUTH, buf, len, &msg);
	if (ret)
		return ret;
	ret = kulp_proof_check(&shaking->shake, shaking->keys, shaking->nkeys, msg.mac);
	if (ret == -EACCES)
		return kcm_refused(s, -EACCES, true, "wrong secret");
	if (ret < 0)
		return ret;
	shaking->proven = shaking->nkeys ? shaking->keys[ret] : NULL;
	return kcm_proven(s, shaking->proven, msg.mac);
}

/**
 * kcm_passive_turn() - ask the ULP if it is a proven client's turn
 * @s: the session, proven
 */
void kcm_passive_turn(struct kcm_session *s)
{
	const struct kcm_peer peer = kcm_peer_of(s);
	int ret;

	if (!kcm_kin_first(s))
		return;
	do
		s->id = get_random_u64();
	while (!s->id);
	kcm_go(s, KCM_ASKED);
	s->seen = true;
	ret = s->config->ops->request(s, &peer);
	if (ret)
		kcm_reject(s, ret, true, 0, NULL, NULL, 0);
}

/**
 * kcm_take_ready() - handle READY
 * @s: the session
 * @buf: the message
 * @len: its length
 *
 * Return: 0 or a negative errno.
 */
int kcm_take_ready(struct kcm_session *s, void *buf, size_t len)
{
	u8 nothing;
	int ret;

	ret = kulp_parse(&kcm_proto, KCM_READY, buf, len, &nothing);
	if (!ret)
		kcm_begin_live(s);
	return ret;
}

/**
 * kcm_session_listener() - get the listener of a session
 * @s: the session, of the passive side
 * Context: Any.
 * Return: the listener.
 */
struct kcm_listener *kcm_session_listener(const struct kcm_session *s)
{
	return s->listener;
}
EXPORT_SYMBOL_NS_GPL(kcm_session_listener, KOFI_CM);
