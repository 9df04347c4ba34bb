// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections as iw_cm knows them, by sessions of kofi_cm, service "kofi_rc". There is a session
 * for each connection, and one TCP port for all: the client names the port of the ULP in its
 * private data, so ULPs of iWARP and of TCP may use the same port. The session's instance is
 * unique, because kofi_cm lets sessions of one instance follow one another.
 *
 *	active: iw_connect		passive: a listener's id
 *	kcm_connect(), hello()
 *					request(): CONNECT_REQUEST
 *					iw_accept: open, kcm_accept(); or iw_reject
 *	accepted(): open
 *	live(): CONNECT_REPLY		live(): ESTABLISHED
 */
#include <linux/string.h>
#include <linux/sched/mm.h>
#include <net/net_namespace.h>
#include <kofi/ulp_net.h>
#include "cm.h"

#define KRC_KEEP_ALIVE_MS	10000
#define KRC_REPLACE_MS		1000
#define KRC_ASKED_MS		30000	/* for a ULP to answer a request */
/* Attempts are the ULP's business, so there is one. */
#define KRC_GIVE_UP_MS		1
#define KRC_RETRY_MS		120000
#define KRC_SESSIONS		8192	/* connections that peers can make */

static DEFINE_MUTEX(krc_port_lock);	/* protects what follows */
static struct kcm_listener *krc_listener;
static unsigned int krc_port_users;

/* iw_cm's user, which is rdma_cm for all connections. */
static iw_cm_handler krc_iw_handler;

/* --- callbacks of the session --- */

static int krc_cm_keys(struct kcm_listener *l, const struct kcm_peer *peer,
		       struct kulp_key *keys[KULP_SECRETS])
{
	keys[0] = kulp_key_get(krc_key);
	return krc_key ? 1 : 0;
}

static int krc_cm_hello(struct kcm_session *s, struct kcm_addrs *addrs, const void **priv,
			size_t *len)
{
	struct krc_cm *cm = krc_cm_get(kcm_context(s));
	int ret = -ESHUTDOWN;

	if (!cm)
		return ret;
	mutex_lock(&cm->lock);
	if (cm->state == KRC_CM_SETUP && cm->hello_len) {
		*addrs = krc_cm_addrs(krc_cm_queue(cm));
		*priv = cm->hello;
		*len = cm->hello_len;
		cm->hello_len = 0;
		ret = 0;
	}
	mutex_unlock(&cm->lock);
	/* The private data stays until kcm_disconnect(). */
	krc_cm_put(cm);
	return ret;
}

static int krc_cm_accepted(struct kcm_session *s, const struct kcm_peer *peer)
{
	struct krc_cm *cm = krc_cm_get(kcm_context(s));
	int ret;

	if (!cm)
		return -ESHUTDOWN;
	mutex_lock(&cm->lock);
	ret = krc_cm_parse(cm, peer) ?: krc_cm_meet(cm, peer) ?: krc_cm_open(cm);
	mutex_unlock(&cm->lock);
	krc_cm_put(cm);
	return ret;
}

static void krc_cm_live(struct kcm_session *s)
{
	struct krc_cm *cm = krc_cm_get(kcm_context(s));

	if (!cm)
		return;
	mutex_lock(&cm->lock);
	if (cm->state == KRC_CM_SETUP || cm->state == KRC_CM_ACCEPTED)
		krc_cm_up(cm);
	if (!cm->active)
		krc_conn_live(&cm->qp->c);
	krc_cm_check_net(cm);
	mutex_unlock(&cm->lock);
	krc_cm_put(cm);
}

/* Errors that ULPs understand. A refusal by the peer's ULP has its private data. */
static int krc_cm_error(struct krc_cm *cm, const struct kcm_end *end)
{
	struct krc_reject reject;

	cm->side.priv_len = 0;
	if (end->refused && !krc_parse_reject(end->data, end->len, &reject) && reject.by_ulp) {
		cm->side.priv_len = reject.priv_len;
		memcpy(cm->priv, reject.priv, reject.priv_len);
		return -ECONNREFUSED;
	}
	if (end->err != -ESHUTDOWN)
		pr_info_ratelimited("kofi_rc: %pISpc: no connection: %s, error %d\n", &cm->remote,
				    !end->refused ? "the attempt has failed" :
				    *end->why ? end->why : "refused", end->err);
	return end->err == -ETIMEDOUT ? -ETIMEDOUT : -ECONNRESET;
}

static void krc_cm_failed(struct kcm_session *s, const struct kcm_end *end)
{
	struct krc_cm *cm = krc_cm_get(kcm_context(s));

	if (!cm)
		return;
	mutex_lock(&cm->lock);
	krc_cm_over(cm, krc_cm_error(cm, end));
	krc_cm_maybe_finish(cm);
	mutex_unlock(&cm->lock);
	krc_cm_put(cm);
}

static void krc_cm_stop(struct kcm_session *s, const struct kcm_end *end)
{
	struct krc_cm *cm = krc_cm_get(kcm_context(s));

	/* A request was refused at the same time: kcm_reject() has called kcm_gone(). */
	if (!cm)
		return;
	mutex_lock(&cm->lock);
	cm->stopped = true;
	if (cm->open)
		krc_stop(&cm->qp->c, KRC_BY_PEER, end->err);
	else
		krc_cm_over(cm, cm->active ? krc_cm_error(cm, end) : 0);
	krc_cm_maybe_finish(cm);
	mutex_unlock(&cm->lock);
	krc_cm_put(cm);
}

/* --- the passive side --- */

static void krc_cm_refuse(struct kcm_session *s, int err, const char *why, bool by_ulp,
			  const void *priv, size_t len)
{
	const struct krc_reject reject = { .by_ulp = by_ulp, .priv_len = len };
	u8 buf[sizeof(struct krc_wire_reject) + KRC_ULP_PRIV_MAX] __aligned(8);
	size_t n = krc_build_reject((struct krc_wire_reject *)buf, &reject);

	if (len)
		memcpy(buf + n, priv, len);
	kcm_reject(s, err, true, 0, why, buf, n + len);
}

/* Give up a request. Return: false if it was answered before. */
static bool krc_cm_give_up(struct krc_cm *cm, int err, const char *why, bool by_ulp,
			   const void *priv, size_t len)
{
	bool asked;

	mutex_lock(&cm->lock);
	asked = cm->state == KRC_CM_ASKED;
	if (asked) {
		krc_cm_refuse(cm->s, err, why, by_ulp, priv, len);
		cm->s = NULL;
		krc_cm_over(cm, 0);
		krc_cm_maybe_finish(cm);
	}
	mutex_unlock(&cm->lock);
	return asked;
}

void krc_cm_asked(struct work_struct *work)
{
	struct krc_cm *cm = container_of(to_delayed_work(work), struct krc_cm, asked);

	krc_cm_give_up(cm, -ETIMEDOUT, "the ULP doesn't answer", false, NULL, 0);
}

/* Queue CONNECT_REQUEST. Return: 0, -ENOENT if nobody listens, or -ENOMEM. */
static int krc_cm_ask(struct krc_cm *cm)
{
	struct iw_cm_event event = {
		.event			= IW_CM_EVENT_CONNECT_REQUEST,
		.local_addr		= cm->local,
		.remote_addr		= cm->remote,
		.provider_data		= krc_cm_nr(cm),
		.private_data		= cm->priv,
		.private_data_len	= cm->side.priv_len,
		.ird			= cm->side.ird,
		.ord			= cm->side.ord,
	};

	return krc_listen_tell(&cm->link->ib, &event);
}

static int krc_cm_asks(struct krc_cm *cm, struct kcm_session *s, const struct kcm_peer *peer)
{
	int ret;

	ret = krc_cm_parse(cm, peer);
	if (ret)
		return ret;
	krc_set_port(&cm->local, cm->side.port);
	/* An address handle is a command of the device, so a stranger gets none for nothing. */
	ret = krc_listen_is(&cm->link->ib, &cm->local) ? krc_cm_meet(cm, peer) : -ENOENT;
	if (ret)
		return ret;
	kcm_set_context(s, krc_cm_nr(cm));
	mutex_lock(&cm->lock);
	cm->s = s;
	cm->state = KRC_CM_ASKED;
	ret = krc_cm_ask(cm);
	if (!ret)
		queue_delayed_work(krc_cm_wq, &cm->asked, msecs_to_jiffies(KRC_ASKED_MS));
	mutex_unlock(&cm->lock);
	return ret;
}

static int krc_cm_take(struct kcm_session *s, const struct kcm_peer *peer)
{
	struct sockaddr_storage local, remote;
	struct krc_link *link;
	struct krc_net *net;
	struct krc_cm *cm;
	int ret;

	ret = kcm_names(s, &local, &remote);
	if (ret)
		return ret;
	link = krc_link_find(&local);
	if (!link)
		return -ENOENT;
	net = krc_link_net(link);
	cm = net ? krc_cm_new(link, net) : NULL;
	if (!cm) {
		krc_net_put(net);
		ib_device_put(&link->ib);
		return net ? -ENOMEM : -ENODEV;
	}
	cm->local = local;
	cm->remote = remote;
	ret = krc_cm_asks(cm, s, peer);
	if (ret)
		krc_cm_drop(cm);
	krc_cm_put(cm);
	return ret;
}

static int krc_cm_request(struct kcm_session *s, const struct kcm_peer *peer)
{
	int ret = krc_cm_take(s, peer);

	if (ret)
		pr_info_ratelimited("kofi_rc: %s: refused, error %d\n", peer->from, ret);
	return ret;
}

/*
 * iw_cm calls this with ESTABLISHED, in place of its user's handler. When that has returned, the
 * ULP may have messages. It may also have destroyed its id, which has kept the RDMA device so far.
 */
static int krc_iw_established(struct iw_cm_id *id, struct iw_cm_event *event)
{
	iw_cm_handler handler = READ_ONCE(krc_iw_handler);
	struct ib_device *ib = id->device;
	bool got = ib_device_try_get(ib);
	int ret;

	id->cm_handler = handler;
	ret = handler(id, event);
	krc_cm_heard(id->provider_data);
	if (got)
		ib_device_put(ib);
	return ret;
}

/* ESTABLISHED isn't queued yet. */
static void krc_iw_watch(struct iw_cm_id *id)
{
	WRITE_ONCE(krc_iw_handler, id->cm_handler);
	id->cm_handler = krc_iw_established;
}

/* Return: 0 or a negative errno. */
static int krc_cm_accepts(struct krc_cm *cm, struct iw_cm_id *id, struct krc_qp *qp,
			  struct iw_cm_conn_param *param)
{
	struct kcm_addrs addrs;
	int ret;

	lockdep_assert_held(&cm->lock);
	if (cm->state != KRC_CM_ASKED)
		return -ECONNRESET;
	if (!krc_cm_attach(cm, qp))
		return -EISCONN;
	ret = krc_conn_prepare(&qp->c, param->ird, param->ord);
	if (ret)
		return ret;
	krc_conn_hold(&qp->c);
	ret = krc_cm_open(cm);
	if (ret)
		return ret;
	krc_cm_describe(cm, qp->c.queue, param, 0);
	addrs = krc_cm_addrs(qp->c.queue);
	id->add_ref(id);
	cm->id = id;
	ret = kcm_accept(cm->s, &addrs, cm->hello, cm->hello_len);
	if (ret)
		return ret;
	krc_iw_watch(id);
	cm->state = KRC_CM_ACCEPTED;
	krc_cm_check_net(cm);
	return 0;
}

static struct krc_qp *krc_qp_find(struct krc_link *link, u32 qpn)
{
	struct krc_qp *qp;

	xa_lock_irq(&link->qpns);
	qp = xa_load(&link->qpns, qpn);
	if (qp)
		krc_conn_get(&qp->c);
	xa_unlock_irq(&link->qpns);
	return qp;
}

static int krc_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct krc_cm *cm = krc_cm_get(id->provider_data);
	struct krc_qp *qp;
	int ret = -EINVAL;

	if (!cm)
		return -ECONNRESET;
	qp = krc_qp_find(cm->link, param->qpn);
	if (qp && param->private_data_len <= KRC_ULP_PRIV_MAX) {
		mutex_lock(&cm->lock);
		ret = krc_cm_accepts(cm, id, qp, param);
		/* When it is flushed, krc_cm_finish() is called. */
		if (ret && cm->open)
			krc_stop(&qp->c, KRC_BY_ULP, 0);
		mutex_unlock(&cm->lock);
	}
	if (ret)
		krc_cm_give_up(cm, ret, "no room for a connection", false, NULL, 0);
	if (qp)
		krc_conn_put(&qp->c);
	krc_cm_put(cm);
	return ret;
}

/* As in krc_iw_connect(). */
static int krc_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	unsigned int noio = memalloc_noio_save();
	int ret = krc_accept(id, param);

	memalloc_noio_restore(noio);
	return ret;
}

static int krc_iw_reject(struct iw_cm_id *id, const void *priv, u8 len)
{
	struct krc_cm *cm = krc_cm_get(id->provider_data);
	bool asked;

	if (!cm)
		return -ECONNRESET;
	asked = krc_cm_give_up(cm, -ECONNREFUSED, NULL, true, priv, len);
	krc_cm_put(cm);
	return asked ? 0 : -ECONNRESET;
}

/* --- the active side --- */

static const struct kcm_ops krc_kcm_ops = {
	.keys		= krc_cm_keys,
	.request	= krc_cm_request,
	.hello		= krc_cm_hello,
	.accepted	= krc_cm_accepted,
	.live		= krc_cm_live,
	.failed		= krc_cm_failed,
	.stop		= krc_cm_stop,
};

static const struct kcm_config krc_kcm_config = {
	.net		= &init_net,
	.service	= KRC_SERVICE,
	.version_min	= KRC_VERSION,
	.version	= KRC_VERSION,
	.keep_alive_ms	= KRC_KEEP_ALIVE_MS,
	.replace_ms	= KRC_REPLACE_MS,
	.max_sessions	= KRC_SESSIONS,
	.ops		= &krc_kcm_ops,
};

static int krc_cm_connects(struct krc_cm *cm, const struct iw_cm_conn_param *param)
{
	char instance[KCM_NAME];
	struct kcm_client client = {
		.to		= cm->remote,
		.from		= cm->local,
		.name		= "kofi_rc",
		.instance	= instance,
		.key		= krc_key,
		.retry_ms	= KRC_RETRY_MS,
		.give_up_ms	= KRC_GIVE_UP_MS,
	};
	u16 port = krc_port_of(&cm->remote);
	int ret;

	ret = krc_conn_prepare(&cm->qp->c, param->ird, param->ord);
	if (ret)
		return ret;
	krc_cm_describe(cm, krc_cm_queue(cm), param, port);
	snprintf(instance, sizeof(instance), "%u-%016llx", port, cm->qp->c.cookie);
	memcpy(client.host, krc_host, sizeof(client.host));
	krc_set_port(&client.to, krc_port);
	krc_set_port(&client.from, 0);
	/* Callbacks wait for the lock. */
	return kcm_connect(&krc_kcm_config, &client, krc_cm_nr(cm), &cm->s);
}

static int krc_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct krc_link *link = to_krc_link(id->device);
	struct krc_net *net;
	struct krc_qp *qp;
	struct krc_cm *cm;
	int ret;

	if (param->private_data_len > KRC_ULP_PRIV_MAX || !ib_device_try_get(&link->ib))
		return -EINVAL;
	net = krc_link_net(link);
	cm = net ? krc_cm_new(link, net) : NULL;
	if (!cm) {
		krc_net_put(net);
		ib_device_put(&link->ib);
		return net ? -ENOMEM : -ENETDOWN;
	}
	cm->active = true;
	cm->local = id->m_local_addr;
	cm->remote = id->m_remote_addr;
	qp = krc_qp_find(link, param->qpn);
	mutex_lock(&cm->lock);
	ret = qp && krc_cm_attach(cm, qp) ? krc_cm_connects(cm, param) : -EINVAL;
	if (!ret) {
		id->add_ref(id);
		cm->id = id;
	} else {
		/* The queue pair may be stopped now: its flush must not end the set-up as well. */
		cm->state = KRC_CM_OVER;
		cm->finishing = true;
	}
	mutex_unlock(&cm->lock);
	if (ret)
		krc_cm_drop(cm);
	krc_cm_put(cm);
	if (qp)
		krc_conn_put(&qp->c);
	return ret;
}

/* The memory that a ULP connects for may be needed to free memory. */
static int krc_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	unsigned int noio = memalloc_noio_save();
	int ret = krc_connect(id, param);

	memalloc_noio_restore(noio);
	return ret;
}

/* --- references to queue pairs --- */

static void krc_iw_add_ref(struct ib_qp *ib)
{
	krc_conn_get(&to_krc_qp(ib)->c);
}

static void krc_iw_rem_ref(struct ib_qp *ib)
{
	krc_conn_put(&to_krc_qp(ib)->c);
}

/*
 * iw_cm calls this with interrupts off, until it has taken a reference. The number may be a user's,
 * so the queue pair stays only because krc_destroy_qp() waits for an RCU grace period.
 */
static struct ib_qp *krc_iw_get_qp(struct ib_device *ib, int qpn)
{
	struct krc_qp *qp = xa_load(&to_krc_link(ib)->qpns, qpn);

	return qp ? &qp->ib : NULL;
}

const struct ib_device_ops krc_cm_ops = {
	.iw_add_ref		= krc_iw_add_ref,
	.iw_rem_ref		= krc_iw_rem_ref,
	.iw_get_qp		= krc_iw_get_qp,
	.iw_connect		= krc_iw_connect,
	.iw_accept		= krc_iw_accept,
	.iw_reject		= krc_iw_reject,
	.iw_create_listen	= krc_listen_begin,
	.iw_destroy_listen	= krc_listen_end,
};

/* --- the module --- */

static int krc_port_open(void)
{
	struct sockaddr_storage addr = { .ss_family = AF_INET6 };
	int ret;

	krc_set_port(&addr, krc_port);
	ret = kcm_listen(&krc_kcm_config, &addr, NULL, &krc_listener);
	/* There is no IPv6. */
	if (ret != -EAFNOSUPPORT && ret != -EADDRNOTAVAIL)
		return ret;
	addr.ss_family = AF_INET;
	return kcm_listen(&krc_kcm_config, &addr, NULL, &krc_listener);
}

/**
 * krc_cm_listen() - accept connections, for a link
 *
 * Context: Process, sleeps.
 * Return: 0 or a negative errno.
 */
int krc_cm_listen(void)
{
	int ret = 0;

	mutex_lock(&krc_port_lock);
	if (!krc_port_users)
		ret = krc_port_open();
	krc_port_users += !ret;
	mutex_unlock(&krc_port_lock);
	if (ret)
		pr_err("kofi_rc: can't listen at port %u, error %d: set port= here and on all peers\n",
		       krc_port, ret);
	return ret;
}

/**
 * krc_cm_unlisten() - undo krc_cm_listen(), for a link without connections
 *
 * Context: Process, sleeps.
 */
void krc_cm_unlisten(void)
{
	mutex_lock(&krc_port_lock);
	if (!--krc_port_users)
		kcm_unlisten(krc_listener);
	mutex_unlock(&krc_port_lock);
}
