// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ports: listeners of kofi_cm, and its callbacks. */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <linux/string.h>
#include <net/net_namespace.h>
#include "srv.h"

/* Find the client's keys, before its proof. */
static int kbs_port_keys(struct kcm_listener *l, const struct kcm_peer *peer,
			 struct kulp_key *keys[KULP_SECRETS])
{
	struct kbs_port *port = kcm_listener_context(l);
	struct kbs_export *export;
	int ret;

	if (!kofiblk_name_ok(peer->name) || !kofiblk_name_ok(peer->instance) ||
	    !memchr_inv(peer->host, 0, KOFIBLK_HOST))
		return -EINVAL;
	mutex_lock(&kbs_lock);
	export = kbs_port_export(port, peer->instance);
	if (!port->conf.enabled)
		ret = -EBUSY;
	else
		ret = export ? kbs_export_keys(export, peer->name, keys) : -ENOENT;
	mutex_unlock(&kbs_lock);
	/* kofi_cm tells of unknown clients. */
	if (ret == -EBUSY || ret == -ENOENT)
		pr_info_ratelimited("%s at %s, export %s: refused: %s\n", peer->name, peer->from,
				    peer->instance, ret == -EBUSY ? "the port is being closed" :
				    "no such export");
	return ret;
}

/* The client has proved its identity, and nothing of its earlier session is at the store. */
static int kbs_port_request(struct kcm_session *cm, const struct kcm_peer *peer)
{
	return kbs_session_new(kcm_context(cm), cm, peer);
}

/* Clients send no notes. */
static void kbs_port_note(struct kcm_session *cm, const void *data, size_t len)
{
	kbs_session_violated(kcm_context(cm), "an unexpected message over TCP");
}

static void kbs_port_ended(struct kcm_session *cm, const struct kcm_end *end)
{
	kbs_session_over(kcm_context(cm), end->err);
}

static const struct kcm_ops kbs_port_ops = {
	.keys		= kbs_port_keys,
	.request	= kbs_port_request,
	.note		= kbs_port_note,
	.stop		= kbs_port_ended,
};

/* Start listening; under kbs_conf.enabling. */
int kbs_port_start(struct kbs_conf *conf)
{
	struct kbs_port *port = container_of(conf, struct kbs_port, conf);
	const char *host = port->addr ?: "";
	char text[KULP_NET_NAME + 16];
	struct sockaddr_storage addr;
	int ret;

	if (!kulp_net_here()) {
		pr_err_ratelimited("ports use the first network namespace only: enable them there\n");
		return -EOPNOTSUPP;
	}
	/* kbs_conf_disable() was killed while it waited, so sessions may not have ended. */
	if (conf->open)
		return -EBUSY;
	snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port->port);
	port->config = (struct kcm_config) {
		.net		= &init_net,
		.service	= KOFIBLK_SERVICE,
		.version_min	= KOFIBLK_VERSION,
		.version	= KOFIBLK_VERSION,
		.keep_alive_ms	= min(port->max_keep_alive, KOFIBLK_KEEP_ALIVE_MAX),
		.replace_ms	= KOFIBLK_REPLACE_MS,
		.max_sessions	= port->max_sessions,
		.ops		= &kbs_port_ops,
	};
	/* The first session may begin before the return. */
	kbs_conf_set(conf, true);
	ret = kulp_net_parse(text, &addr) ?:
	      kcm_listen(&port->config, &addr, port, &port->listener);
	if (ret)
		kbs_conf_set(conf, false);
	else
		conf->open = true;
	return ret;
}

/*
 * Stop all sessions without waiting; under kbs_conf.enabling. Until they have ended, the listener
 * stays, whose end would end them at once. It refuses clients.
 */
void kbs_port_stop(struct kbs_conf *conf)
{
	kbs_sessions_stop(container_of(conf, struct kbs_port, conf), NULL, NULL);
}

/* Stop listening, after the last session. */
void kbs_port_close(struct kbs_conf *conf)
{
	kcm_unlisten(container_of(conf, struct kbs_port, conf)->listener);
}
