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
 *
 * iw_cm calls BUG() if an event comes in a wrong state, and waits for ever for those that are due:
 *
 *	state		entered by			events in it
 *	KRC_CM_SETUP	iw_connect returns 0		CONNECT_REPLY, whatever happens
 *	KRC_CM_ASKED	CONNECT_REQUEST is queued	none
 *	KRC_CM_ACCEPTED	iw_accept returns 0		ESTABLISHED, whatever happens
 *	KRC_CM_UP	CONNECT_REPLY, ESTABLISHED	CLOSE, whatever happens
 *	KRC_CM_OVER	CLOSE; a refusal; failure	none
 *
 * A ULP may answer a request long after it was given up, so iw_cm knows a number instead of an
 * address.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sched/mm.h>
#include <linux/uuid.h>
#include <net/net_namespace.h>
#include <kofi/session.h>
#include <kofi/ulp_net.h>
#include "rdma.h"

#define KRC_KEEP_ALIVE_MS	10000
#define KRC_REPLACE_MS		1000
#define KRC_ASKED_MS		30000	/* for a ULP to answer a request */
/* Attempts are the ULP's business, so there is one. */
#define KRC_GIVE_UP_MS		1
#define KRC_RETRY_MS		120000
#define KRC_RECVS		64	/* receives of a queue that a connection adds */
#define KRC_SESSIONS		8192	/* connections that peers can make */

enum krc_cm_state {
	KRC_CM_SETUP,
	KRC_CM_ASKED,
	KRC_CM_ACCEPTED,
	KRC_CM_UP,
	KRC_CM_OVER,
};

/**
 * struct krc_cm - the set-up of a connection, and its end
 * @refs: references
 * @link: the link, with a reference to its RDMA device
 * @active: side
 * @nr: number in krc_cms
 * @lock: protects what follows
 * @state: state
 * @s: session, NULL when it is over
 * @id: iw_cm's, with a reference; NULL before iw_accept
 * @qp: queue pair, with a reference to its connection; NULL before iw_accept
 * @net: the link's device, until the queue pair has it
 * @peer: the peer's address in it
 * @has_peer: @peer is valid, and the queue pair doesn't have it yet
 * @open: the connection was opened
 * @stopped: kcm_ops.stop was called
 * @flushed: the connection is flushed
 * @finishing: @finish is queued
 * @side: what the peer tells of itself
 * @priv: private data of the ULP for the peer, or of the peer's ULP
 * @hello: private data of the session
 * @hello_len: its bytes; 0 when an attempt was made
 * @local: this side's IP address, with the port of the ULP
 * @remote: the peer's IP address
 * @listener: passive: id of the listener that was asked, which may be gone; under the lock of
 *	krc_cms
 * @finish: ends the session, and drops all references
 * @asked: passive: the ULP doesn't answer
 */
struct krc_cm {
	refcount_t		refs;
	struct krc_link		*link;
	bool			active;
	u32			nr;
	struct mutex		lock;	/* protects what follows */
	enum krc_cm_state	state;
	struct kcm_session	*s;
	struct iw_cm_id		*id;
	struct krc_qp		*qp;
	struct krc_net		*net;
	fi_addr_t		peer;
	bool			has_peer;
	bool			open;
	bool			stopped;
	bool			flushed;
	bool			finishing;
	struct krc_side		side;
	u8			priv[KRC_ULP_PRIV_MAX];
	u8			hello[sizeof(struct krc_wire_side) + KRC_ULP_PRIV_MAX];
	size_t			hello_len;
	struct sockaddr_storage	local;
	struct sockaddr_storage	remote;
	const void		*listener;
	struct work_struct	finish;
	struct delayed_work	asked;
};

static DEFINE_SPINLOCK(krc_cms_lock);	/* protects krc_qp.cm */
/*
 * Set-ups by number. Sessions and iw_cm know numbers, because they may use them when a set-up is
 * over.
 */
static DEFINE_XARRAY_ALLOC1(krc_cms);
static u32 krc_cms_next;
static struct workqueue_struct *krc_cm_wq;
static DEFINE_MUTEX(krc_port_lock);	/* protects what follows */
static struct kcm_listener *krc_listener;
static unsigned int krc_port_users;
static u8 krc_host[KCM_HOST];

static const char * const krc_cause_names[] = {
	[KRC_BY_ULP]		= "by its ULP",
	[KRC_BY_PEER]		= "by its peer",
	[KRC_BY_FAULT]		= "a datagram couldn't be sent",
	[KRC_BY_VIOLATION]	= "its peer has violated the protocol",
	[KRC_BY_REQUEST]	= "a work request has failed",
	[KRC_BY_REMOVAL]	= "the device is gone",
};

/* --- references --- */

static void krc_cm_put(struct krc_cm *cm)
{
	if (refcount_dec_and_test(&cm->refs))
		kfree(cm);
}

/* Return: the set-up with a number, with a reference; or NULL if it is over. */
static struct krc_cm *krc_cm_get(void *nr)
{
	struct krc_cm *cm;

	xa_lock(&krc_cms);
	cm = xa_load(&krc_cms, (uintptr_t)nr);
	if (cm)
		refcount_inc(&cm->refs);
	xa_unlock(&krc_cms);
	return cm;
}

static void *krc_cm_nr(const struct krc_cm *cm)
{
	return (void *)(uintptr_t)cm->nr;
}

/* Return: the set-up of a queue pair's connection, with a reference; or NULL. */
static struct krc_cm *krc_cm_of(struct krc_qp *qp)
{
	struct krc_cm *cm;

	spin_lock_irq(&krc_cms_lock);
	cm = qp->cm;
	if (cm)
		refcount_inc(&cm->refs);
	spin_unlock_irq(&krc_cms_lock);
	return cm;
}

/* Return: true, or false if the queue pair has a connection already. */
static bool krc_cm_attach(struct krc_cm *cm, struct krc_qp *qp)
{
	bool taken;

	spin_lock_irq(&krc_cms_lock);
	taken = qp->cm;
	if (!taken)
		qp->cm = cm;
	spin_unlock_irq(&krc_cms_lock);
	if (taken)
		return false;
	cm->qp = qp;
	krc_conn_get(&qp->c);
	return true;
}

static void krc_cm_detach(struct krc_cm *cm)
{
	struct krc_qp *qp = cm->qp;

	if (!qp)
		return;
	spin_lock_irq(&krc_cms_lock);
	qp->cm = NULL;
	spin_unlock_irq(&krc_cms_lock);
	cm->qp = NULL;
	krc_conn_put(&qp->c);
}

/* The session is over and, if the connection was opened, it is flushed. */
static void krc_cm_finish(struct work_struct *work)
{
	struct krc_cm *cm = container_of(work, struct krc_cm, finish);
	unsigned int noio = memalloc_noio_save();
	struct kcm_session *s;
	bool stopped;

	xa_erase(&krc_cms, cm->nr);
	mutex_lock(&cm->lock);
	s = cm->s;
	cm->s = NULL;
	stopped = cm->stopped;
	mutex_unlock(&cm->lock);
	cancel_delayed_work_sync(&cm->asked);
	/* Not valid any more on the passive side after this. */
	if (s && stopped)
		kcm_gone(s);
	if (cm->has_peer)
		kulp_peer_put(cm->net->fabric, cm->peer);
	krc_net_put(cm->net);
	/* First, because nothing else keeps iw_cm loaded when the queue pair is destroyed. */
	if (cm->id)
		cm->id->rem_ref(cm->id);
	krc_cm_detach(cm);
	if (s && cm->active)
		kcm_disconnect(s);
	ib_device_put(&cm->link->ib);
	memalloc_noio_restore(noio);
	krc_cm_put(cm);
}

static void krc_cm_maybe_finish(struct krc_cm *cm)
{
	lockdep_assert_held(&cm->lock);
	if (cm->finishing || (cm->open && !cm->flushed))
		return;
	cm->finishing = true;
	queue_work(krc_cm_wq, &cm->finish);
}

/* --- events --- */

/* Return: true, or false if CONNECT_REPLY has told of a failure instead of success. */
static bool krc_cm_event(struct krc_cm *cm, enum iw_cm_event_type type, int status)
{
	struct iw_cm_event event = { .event = type, .status = status };

	lockdep_assert_held(&cm->lock);
	/* Both sides have agreed on these when the connection was opened. */
	if (!status && cm->open && type != IW_CM_EVENT_CLOSE) {
		event.ird = cm->qp->c.ird;
		event.ord = cm->qp->c.ord;
	}
	if (type == IW_CM_EVENT_CONNECT_REPLY) {
		event.local_addr = cm->id->m_local_addr;
		event.remote_addr = cm->id->m_remote_addr;
		/* ULPs look at private data of connections, and of refusals by a ULP. */
		if (!status || status == -ECONNREFUSED) {
			event.private_data = cm->priv;
			event.private_data_len = cm->side.priv_len;
		}
	}
	if (!cm->id->event_handler(cm->id, &event) || !event.private_data_len)
		return true;
	/* There was no memory to copy private data. Without them, this can't fail. */
	event.status = -ENOMEM;
	event.private_data_len = 0;
	cm->id->event_handler(cm->id, &event);
	return false;
}

static void krc_cm_up(struct krc_cm *cm)
{
	if (krc_cm_event(cm, cm->active ? IW_CM_EVENT_CONNECT_REPLY : IW_CM_EVENT_ESTABLISHED,
			 0)) {
		cm->state = KRC_CM_UP;
		return;
	}
	cm->state = KRC_CM_OVER;
	krc_stop(&cm->qp->c, KRC_BY_ULP, 0);
}

/* The connection has ended, or it doesn't come into being. */
static void krc_cm_over(struct krc_cm *cm, int err)
{
	if (cm->state == KRC_CM_SETUP)
		krc_cm_event(cm, IW_CM_EVENT_CONNECT_REPLY, err);
	if (cm->state == KRC_CM_ACCEPTED)
		krc_cm_up(cm);
	if (cm->state == KRC_CM_UP)
		krc_cm_event(cm, IW_CM_EVENT_CLOSE, 0);
	cm->state = KRC_CM_OVER;
}

/**
 * krc_up_stopped() - a connection ends
 * @c: the connection
 * @cause: the cause
 * @err: 0 or a negative errno
 *
 * Context: Process, sleeps.
 */
void krc_up_stopped(struct krc_conn *c, enum krc_cause cause, int err)
{
	struct krc_qp *qp = krc_qp_of(c);
	struct krc_cm *cm = krc_cm_of(qp);

	if (!cm)
		return;
	mutex_lock(&cm->lock);
	if (cause != KRC_BY_ULP && cause != KRC_BY_PEER && cm->open)
		pr_info_ratelimited("kofi_rc: %s qp %u, %pISpc: ends: %s, error %d\n",
				    dev_name(&cm->link->ib.dev), qp->ib.qp_num, &cm->remote,
				    krc_cause_names[cause], err);
	/* A set-up that goes on ends with its session. */
	if (cm->open)
		krc_cm_over(cm, -ECONNRESET);
	if (cm->s && !cm->stopped)
		kcm_bye(cm->s, cause == KRC_BY_REMOVAL ? KCM_BYE_REMOVED :
			cause == KRC_BY_VIOLATION ? KCM_BYE_PROTOCOL : KCM_BYE_DONE,
			true, NULL, 0);
	mutex_unlock(&cm->lock);
	krc_cm_put(cm);
}

/**
 * krc_up_flushed() - a connection's work requests are flushed
 * @c: the connection
 *
 * Context: Process, sleeps.
 */
void krc_up_flushed(struct krc_conn *c)
{
	struct krc_cm *cm = krc_cm_of(krc_qp_of(c));

	if (!cm)
		return;
	mutex_lock(&cm->lock);
	cm->flushed = true;
	if (cm->stopped || !cm->s)
		krc_cm_maybe_finish(cm);
	mutex_unlock(&cm->lock);
	krc_cm_put(cm);
}

/* --- opening --- */

/* Completions come on the CPU of the queue, which the ULP has chosen by its completion queue. */
static struct krc_queue *krc_cm_queue(const struct krc_cm *cm)
{
	return &cm->net->queues[cm->qp->ib.recv_cq->comp_vector % cm->net->nqueues];
}

static struct kcm_addrs krc_cm_addrs(const struct krc_queue *q)
{
	return (struct kcm_addrs) {
		.format	= q->kulp->fabric->info->addr_format,
		.len	= q->kulp->addrlen,
		.count	= 1,
		.addr	= q->kulp->addr,
	};
}

/* Private data of the session: this side, and the private data of the ULP. */
static void krc_cm_describe(struct krc_cm *cm, const struct krc_queue *q,
			    const struct iw_cm_conn_param *param, u16 port)
{
	size_t len = param->private_data_len;
	struct krc_side side;

	krc_conn_describe(&cm->qp->c, &side);
	side.datagram = min_t(u32, krc_datagram, q->kulp->fabric->max_msg);
	side.port = port;
	side.priv_len = len;
	cm->hello_len = krc_build_side((struct krc_wire_side *)cm->hello, &side);
	if (len)
		memcpy(cm->hello + cm->hello_len, param->private_data, len);
	cm->hello_len += len;
}

/* Return: 0, or a negative errno. */
static int krc_cm_parse(struct krc_cm *cm, const struct kcm_peer *peer)
{
	int ret;

	if (peer->addrs.count != 1)
		return -EPROTO;
	ret = krc_parse_side(peer->priv, peer->priv_len, &cm->side);
	if (ret)
		return ret;
	memcpy(cm->priv, cm->side.priv, cm->side.priv_len);
	cm->side.priv = cm->priv;
	return 0;
}

static int krc_cm_meet(struct krc_cm *cm, const struct kcm_peer *peer)
{
	struct kulp_queue *kq = &cm->net->fabric->queues[0];
	int ret;

	if (peer->addrs.format != cm->net->fabric->info->addr_format ||
	    peer->addrs.len != kq->addrlen)
		return -EPROTO;
	ret = kulp_peer_get(cm->net->fabric, peer->addrs.addr, &cm->peer);
	cm->has_peer = !ret;
	return ret;
}

/* From here on the queue pair has the device and the peer, until it is destroyed. */
static int krc_cm_open(struct krc_cm *cm)
{
	const struct krc_peer peer = {
		.queue = krc_cm_queue(cm), .addr = cm->peer, .side = cm->side,
		.max_msg = cm->net->fabric->max_msg,
	};
	struct krc_qp *qp = cm->qp;
	int ret;

	lockdep_assert_held(&cm->lock);
	/* With fewer receives, those of others do: messages wait, and are sent again. */
	qp->credits = kulp_credits_take(peer.queue->kulp, KRC_RECVS);
	if (!qp->credits && !READ_ONCE(peer.queue->kulp->recvs))
		return -ENOMEM;
	qp->peer = cm->peer;
	WRITE_ONCE(qp->net, cm->net);
	ret = krc_conn_open(&qp->c, &peer, cm->active);
	if (ret) {
		WRITE_ONCE(qp->net, NULL);
		kulp_credits_give(peer.queue->kulp, qp->credits);
		return ret;
	}
	cm->open = true;
	cm->has_peer = false;
	cm->net = NULL;
	return 0;
}

/* The device went before the link could find the queue pair: stop it now. */
static void krc_cm_check_net(struct krc_cm *cm)
{
	if (READ_ONCE(cm->qp->net->fabric->gone))
		krc_stop(&cm->qp->c, KRC_BY_REMOVAL, -ENODEV);
}

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

static void krc_cm_asked(struct work_struct *work)
{
	struct krc_cm *cm = container_of(to_delayed_work(work), struct krc_cm, asked);

	krc_cm_give_up(cm, -ETIMEDOUT, "the ULP doesn't answer", false, NULL, 0);
}

/**
 * krc_cm_told() - a listener was told of a request
 * @nr: number of the set-up, as in the request. It may be over
 * @id: id of the listener
 *
 * Context: Process.
 */
void krc_cm_told(void *nr, const struct iw_cm_id *id)
{
	struct krc_cm *cm;

	xa_lock(&krc_cms);
	cm = xa_load(&krc_cms, (uintptr_t)nr);
	if (cm)
		cm->listener = id;
	xa_unlock(&krc_cms);
}

/**
 * krc_cm_unheard() - refuse the requests that a listener hasn't answered
 * @id: id of the listener, which is told of no more
 *
 * iw_cm drops requests that it hasn't told the ULP of yet. Each has a reference to the RDMA device,
 * so its removal would have to wait until they are given up.
 * Context: Process.
 */
void krc_cm_unheard(const struct iw_cm_id *id)
{
	struct krc_cm *cm;
	unsigned long nr;

	xa_lock(&krc_cms);
	xa_for_each(&krc_cms, nr, cm)
		if (cm->listener == id)
			mod_delayed_work(krc_cm_wq, &cm->asked, 0);
	xa_unlock(&krc_cms);
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

/*
 * Numbers are cyclic, so that a late answer finds no later request. There are two references, the
 * caller's and that of krc_cm_finish().
 */
static struct krc_cm *krc_cm_new(struct krc_link *link, struct krc_net *net)
{
	struct krc_cm *cm = kzalloc(sizeof(*cm), GFP_KERNEL);

	if (!cm)
		return NULL;
	if (xa_alloc_cyclic(&krc_cms, &cm->nr, NULL, XA_LIMIT(1, INT_MAX), &krc_cms_next,
			    GFP_KERNEL) < 0) {
		kfree(cm);
		return NULL;
	}
	refcount_set(&cm->refs, 2);
	cm->link = link;
	cm->net = net;
	mutex_init(&cm->lock);
	INIT_WORK(&cm->finish, krc_cm_finish);
	INIT_DELAYED_WORK(&cm->asked, krc_cm_asked);
	/* Replaces the empty entry, which needs no memory. */
	xa_store(&krc_cms, cm->nr, cm, GFP_KERNEL);
	return cm;
}

/* End a set-up that hasn't begun, instead of krc_cm_finish(). */
static void krc_cm_drop(struct krc_cm *cm)
{
	xa_erase(&krc_cms, cm->nr);
	if (cm->has_peer)
		kulp_peer_put(cm->net->fabric, cm->peer);
	krc_net_put(cm->net);
	krc_cm_detach(cm);
	ib_device_put(&cm->link->ib);
	krc_cm_put(cm);
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
	ret = krc_conn_prepare(&qp->c, param->ird, param->ord) ?: krc_cm_open(cm);
	if (ret)
		return ret;
	krc_cm_describe(cm, qp->c.queue, param, 0);
	addrs = krc_cm_addrs(qp->c.queue);
	id->add_ref(id);
	cm->id = id;
	ret = kcm_accept(cm->s, &addrs, cm->hello, cm->hello_len);
	if (ret)
		return ret;
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

/**
 * krc_cm_init() - prepare for connections
 *
 * Context: Process, sleeps.
 * Return: 0 or -ENOMEM.
 */
int krc_cm_init(void)
{
	generate_random_uuid(krc_host);
	krc_cm_wq = alloc_workqueue("kofi_rc_cm", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return krc_cm_wq ? 0 : -ENOMEM;
}

/**
 * krc_cm_exit() - undo krc_cm_init()
 *
 * Context: Process, sleeps.
 */
void krc_cm_exit(void)
{
	destroy_workqueue(krc_cm_wq);
	WARN_ON_ONCE(!xa_empty(&krc_cms));
	xa_destroy(&krc_cms);
}
