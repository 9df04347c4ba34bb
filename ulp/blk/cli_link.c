// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A disk's session of kofi_cm. The disk's thread makes each attempt by kbc_link_begin() and ends it
 * by kbc_link_end(). The callbacks of kofi_cm write into kbc_disk.link, and wake the thread.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <linux/string.h>
#include <net/net_namespace.h>
#include "cli.h"

/* Longer than kbc_link_begin() waits after a failure: kofi_cm makes no attempt of its own. */
#define KBC_RETRY_MS	60000

/* Print why an attempt has failed. Return: its errno. */
static int kbc_link_error(const struct kbc_disk *d, const struct kcm_end *end)
{
	if (end->refused) {
		kbc_err(d, "refused by %s: %s: %d\n", d->options.address, end->why, end->err);
		return end->err;
	}
	switch (end->err) {
	case -ENOKEY:
		kbc_err(d, "the server asks for a secret: set secret=\n");
		return -EACCES;
	case -ENODATA:
		kbc_err(d, "the server has no secret for this client: set one there, or omit secret=\n");
		return -EACCES;
	case -EKEYREJECTED:
		kbc_err(d, "%s doesn't know the secret or this client: see the server's log\n",
			d->options.address);
		return -EACCES;
	}
	return end->err;
}

/* --- callbacks --- */

static int kbc_link_hello(struct kcm_session *cm, struct kcm_addrs *addrs, const void **priv,
			  size_t *len)
{
	struct kbc_disk *d = kcm_context(cm);

	d->link.step = "messages of set-up";
	*addrs = d->link.addrs;
	*priv = d->link.hello;
	*len = d->link.len;
	return 0;
}

/* The thread inserts the addresses: the server sends nothing until PROVE. */
static int kbc_link_accepted(struct kcm_session *cm, const struct kcm_peer *peer)
{
	u8 buf[sizeof(struct kofiblk_accept)] __aligned(8);
	struct kbc_disk *d = kcm_context(cm);
	struct kbc_link *link = &d->link;

	if (peer->priv_len != sizeof(buf))
		return -EPROTO;
	memcpy(buf, peer->priv, sizeof(buf));
	if (kofiblk_parse_accept(buf, sizeof(buf), &link->accept))
		return -EPROTO;
	if (peer->addrs.format != link->addrs.format || peer->addrs.len != link->addrs.len ||
	    peer->addrs.count != link->accept.limits.queues) {
		kbc_err(d, "the server sent addresses of the wrong kind or number\n");
		return -EPROTO;
	}
	memcpy(link->room, peer->addrs.addr, peer->addrs.len * peer->addrs.count);
	return 0;
}

static void kbc_link_live(struct kcm_session *cm)
{
	struct kbc_disk *d = kcm_context(cm);

	/* Pairs with kbc_link_begin(), which reads what kbc_link_accepted() has written. */
	smp_store_release(&d->link.up, true);
	wake_up(&d->wait);
}

/* The thread takes the size, when it has set up the session. */
static void kbc_link_note(struct kcm_session *cm, const void *data, size_t len)
{
	struct kbc_disk *d = kcm_context(cm);
	struct kofiblk_resize_msg msg;

	if (kofiblk_parse_resize(data, len, &msg)) {
		kbc_inc(d, refused);
		kbc_session_fail(d, -EPROTO);
		return;
	}
	spin_lock_bh(&d->lock);
	d->link.bytes = msg.bytes;
	WRITE_ONCE(d->link.resized, true);
	spin_unlock_bh(&d->lock);
	wake_up(&d->wait);
}

static void kbc_link_failed(struct kcm_session *cm, const struct kcm_end *end)
{
	struct kbc_disk *d = kcm_context(cm);

	WRITE_ONCE(d->link.err, kbc_link_error(d, end));
	wake_up(&d->wait);
}

static void kbc_link_stop(struct kcm_session *cm, const struct kcm_end *end)
{
	struct kbc_disk *d = kcm_context(cm);
	struct kbc_link *link = &d->link;
	int err = link->up ? end->err : kbc_link_error(d, end);
	struct kofiblk_bye_msg bye = {};
	bool gone;

	if (end->err == -ECONNABORTED && end->len && kofiblk_parse_bye(end->data, end->len, &bye))
		bye.flushed = false;
	if (link->up && (err == -EPROTO || err == -EACCES))
		kbc_inc(d, refused);
	spin_lock_bh(&d->lock);
	d->session.flushed |= bye.flushed;
	gone = link->closing;
	/* Every end is final for kofi_cm if the thread has ended the session. */
	if (!gone)
		d->final = end->final;
	link->ended = true;
	WRITE_ONCE(link->err, err);
	spin_unlock_bh(&d->lock);
	kbc_session_fail(d, err);
	wake_up(&d->wait);
	if (gone)
		kcm_gone(cm);
}

static const struct kcm_ops kbc_link_ops = {
	.hello		= kbc_link_hello,
	.accepted	= kbc_link_accepted,
	.live		= kbc_link_live,
	.note		= kbc_link_note,
	.failed		= kbc_link_failed,
	.stop		= kbc_link_stop,
};

/* --- the thread --- */

static void kbc_link_describe(struct kbc_disk *d, const struct kofiblk_limits *limits)
{
	struct kofiblk_hello_msg hello = {
		.limits		= *limits,
		.protocol	= kulp_fabric_protocol(d->fabric),
	};
	struct kbc_link *link = &d->link;
	unsigned int i;

	memcpy(hello.content, d->made.accept.content, sizeof(hello.content));
	link->len = kofiblk_build_hello(link->hello, &hello);
	link->addrs = (struct kcm_addrs) {
		.format	= d->fabric->info->addr_format,
		.len	= d->queues[0].q->addrlen,
		.count	= d->nqueues,
		.addr	= link->room,
	};
	for (i = 0; i < d->nqueues; i++)
		memcpy(link->room + i * link->addrs.len, d->queues[i].q->addr, link->addrs.len);
	link->config = (struct kcm_config) {
		.net		= &init_net,
		.service	= KOFIBLK_SERVICE,
		.version_min	= KOFIBLK_VERSION,
		.version	= KOFIBLK_VERSION,
		.keep_alive_ms	= d->options.keep_alive_tmo * MSEC_PER_SEC,
		.replace_ms	= KOFIBLK_REPLACE_MS,
		.ops		= &kbc_link_ops,
	};
}

/*
 * Begin a session, in which the client asks for @limits. Afterwards, kbc_disk.link has what the
 * server grants, and its addresses. The caller calls kbc_link_end() also on failure.
 */
int kbc_link_begin(struct kbc_disk *d, const struct kofiblk_limits *limits)
{
	struct kbc_link *link = &d->link;
	struct kcm_client client = {
		.to		= d->options.addr,
		.name		= d->options.client,
		.instance	= d->options.export,
		.retry_ms	= KBC_RETRY_MS,
	};
	int ret;

	memcpy(client.host, d->options.host, sizeof(client.host));
	kbc_link_describe(d, limits);
	link->step = "TCP connection";
	link->up = false;
	link->err = 0;
	spin_lock_bh(&d->lock);
	link->resized = false;
	link->ended = false;
	link->closing = false;
	/* An earlier attempt may have ended with a BYE before it had a session. */
	d->session.flushed = false;
	/* The secret may be replaced at any time. A session keeps the key that it began with. */
	client.key = kulp_key_get(d->options.key);
	spin_unlock_bh(&d->lock);
	ret = kcm_connect(&link->config, &client, d, &link->cm);
	kulp_key_put(client.key);
	if (ret)
		return ret;
	/* Pairs with kbc_link_live(). The device may be removed meanwhile. */
	wait_event_idle(d->wait, smp_load_acquire(&link->up) || READ_ONCE(link->err) ||
			READ_ONCE(d->failure) || READ_ONCE(d->stopping));
	ret = READ_ONCE(link->err) ?: READ_ONCE(d->failure);
	return ret ?: READ_ONCE(link->up) ? 0 : -ESHUTDOWN;
}

/* End a session, or an attempt, of which nothing runs any more. */
void kbc_link_end(struct kbc_disk *d)
{
	struct kbc_link *link = &d->link;
	bool ended;

	if (!link->cm)
		return;
	if (!READ_ONCE(d->stopping))
		kcm_bye(link->cm, KCM_BYE_FAILED, true, NULL, 0);
	spin_lock_bh(&d->lock);
	link->closing = true;
	ended = link->ended;
	spin_unlock_bh(&d->lock);
	/* Otherwise kbc_link_stop() calls it, if the server had accepted the session. */
	if (ended)
		kcm_gone(link->cm);
	kcm_disconnect(link->cm);
	link->cm = NULL;
}
