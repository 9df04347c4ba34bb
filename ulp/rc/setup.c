// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Set-ups of connections, and their ends: see cm.h. */
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sched/mm.h>
#include <linux/uuid.h>
#include <net/ipv6.h>
#include <kofi/ulp_net.h>
#include "cm.h"

#define KRC_RECVS		64	/* receives of a queue that a connection adds */

static DEFINE_SPINLOCK(krc_cms_lock);	/* protects krc_qp.cm, krc_cm.qp */
/*
 * Set-ups by number. Sessions and iw_cm know numbers, because they may use them when a set-up is
 * over.
 */
static DEFINE_XARRAY_ALLOC1(krc_cms);
static u32 krc_cms_next;
struct workqueue_struct *krc_cm_wq;
u8 krc_host[KCM_HOST];

static const char * const krc_cause_names[] = {
	[KRC_BY_ULP]		= "by its ULP",
	[KRC_BY_PEER]		= "by its peer",
	[KRC_BY_FAULT]		= "a datagram couldn't be sent",
	[KRC_BY_VIOLATION]	= "its peer has violated the protocol",
	[KRC_BY_REQUEST]	= "a work request has failed",
	[KRC_BY_REMOVAL]	= "the device is gone",
};

/* --- references --- */

void krc_cm_put(struct krc_cm *cm)
{
	if (refcount_dec_and_test(&cm->refs))
		kfree(cm);
}

/* Return: the set-up with a number, with a reference; or NULL if it is over. */
struct krc_cm *krc_cm_get(void *nr)
{
	struct krc_cm *cm;

	xa_lock(&krc_cms);
	cm = xa_load(&krc_cms, (uintptr_t)nr);
	if (cm)
		refcount_inc(&cm->refs);
	xa_unlock(&krc_cms);
	return cm;
}

void *krc_cm_nr(const struct krc_cm *cm)
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
bool krc_cm_attach(struct krc_cm *cm, struct krc_qp *qp)
{
	bool taken;

	spin_lock_irq(&krc_cms_lock);
	taken = qp->cm;
	if (!taken) {
		qp->cm = cm;
		cm->qp = qp;
		krc_conn_get(&qp->c);
	}
	spin_unlock_irq(&krc_cms_lock);
	return !taken;
}

static void krc_cm_detach(struct krc_cm *cm)
{
	struct krc_qp *qp = cm->qp;

	if (!qp)
		return;
	spin_lock_irq(&krc_cms_lock);
	qp->cm = NULL;
	cm->qp = NULL;
	spin_unlock_irq(&krc_cms_lock);
	krc_conn_put(&qp->c);
}

/**
 * krc_cm_heard() - a ULP knows of a connection that it has accepted: it may have messages
 * @nr: number of the set-up. If it is over, the connection is flushed
 *
 * Context: Process.
 */
void krc_cm_heard(void *nr)
{
	struct krc_cm *cm = krc_cm_get(nr);
	struct krc_qp *qp;

	if (!cm)
		return;
	spin_lock_irq(&krc_cms_lock);
	qp = cm->qp;
	if (qp)
		krc_conn_get(&qp->c);
	spin_unlock_irq(&krc_cms_lock);
	if (qp) {
		krc_conn_release(&qp->c);
		krc_conn_put(&qp->c);
	}
	krc_cm_put(cm);
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

void krc_cm_maybe_finish(struct krc_cm *cm)
{
	lockdep_assert_held(&cm->lock);
	if (cm->finishing || (cm->open && !cm->flushed))
		return;
	cm->finishing = true;
	queue_work(krc_cm_wq, &cm->finish);
}

/*
 * Numbers are cyclic, so that a late answer finds no later request. There are two references, the
 * caller's and that of krc_cm_finish().
 */
struct krc_cm *krc_cm_new(struct krc_link *link, struct krc_net *net)
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
void krc_cm_drop(struct krc_cm *cm)
{
	xa_erase(&krc_cms, cm->nr);
	if (cm->has_peer)
		kulp_peer_put(cm->net->fabric, cm->peer);
	krc_net_put(cm->net);
	krc_cm_detach(cm);
	ib_device_put(&cm->link->ib);
	krc_cm_put(cm);
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

void krc_cm_up(struct krc_cm *cm)
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
void krc_cm_over(struct krc_cm *cm, int err)
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
	/* A set-up that goes on ends with its session, whose attempt may not have begun. */
	if (cm->open)
		krc_cm_over(cm, -ECONNRESET);
	else
		cm->hello_len = 0;
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

/* Return: whether ib_core polls a completion queue in softirqs. It has @wc for those it polls. */
static bool krc_cq_is_soft(const struct ib_cq *cq)
{
	return cq->wc && cq->poll_ctx == IB_POLL_SOFTIRQ;
}

/* Return: whether both ends of a connection have one address, so that its peer is this machine. */
static bool krc_cm_is_here(const struct krc_cm *cm)
{
	const struct sockaddr_in6 *local6 = (const void *)&cm->local;
	const struct sockaddr_in6 *remote6 = (const void *)&cm->remote;
	const struct sockaddr_in *local = (const void *)&cm->local;
	const struct sockaddr_in *remote = (const void *)&cm->remote;

	if (local->sin_family != remote->sin_family)
		return false;
	if (local->sin_family == AF_INET)
		return local->sin_addr.s_addr == remote->sin_addr.s_addr;
	return local->sin_family == AF_INET6 &&
	       ipv6_addr_equal(&local6->sin6_addr, &remote6->sin6_addr);
}

/*
 * Completions come on the CPU of the queue, which the ULP has chosen by its completion queue; and
 * in softirqs, if they are polled there and the device has queues for that. If the peer is this
 * machine, a worker serves both sides at once, and softirqs would cost more: tasks of the target
 * that are woken between two of them leave the second one to ksoftirqd.
 */
struct krc_queue *krc_cm_queue(const struct krc_cm *cm)
{
	const struct kulp_fabric *f = cm->net->fabric;
	const struct ib_qp *qp = &cm->qp->ib;
	u32 i = qp->recv_cq->comp_vector % f->nvectors;

	if (f->nsoftirq && krc_cq_is_soft(qp->recv_cq) && krc_cq_is_soft(qp->send_cq) &&
	    !krc_cm_is_here(cm))
		i += f->nvectors;
	return &cm->net->queues[i];
}

struct kcm_addrs krc_cm_addrs(const struct krc_queue *q)
{
	return (struct kcm_addrs) {
		.format	= q->kulp->fabric->info->addr_format,
		.len	= q->kulp->addrlen,
		.count	= 1,
		.addr	= q->kulp->addr,
	};
}

/* Private data of the session: this side, and the private data of the ULP. */
void krc_cm_describe(struct krc_cm *cm, const struct krc_queue *q,
		     const struct iw_cm_conn_param *param, u16 port)
{
	size_t len = param->private_data_len;
	struct krc_side side;

	krc_conn_describe(&cm->qp->c, &side);
	side.datagram = min_t(u32, krc_datagram, q->kulp->fabric->max_msg);
	side.port = port;
	side.features = (q->can_write ? KRC_CAN_WRITE : 0) | (q->can_read ? KRC_CAN_READ : 0);
	side.priv_len = len;
	cm->hello_len = krc_build_side((struct krc_wire_side *)cm->hello, &side);
	if (len)
		memcpy(cm->hello + cm->hello_len, param->private_data, len);
	cm->hello_len += len;
}

/* Return: 0, or a negative errno. */
int krc_cm_parse(struct krc_cm *cm, const struct kcm_peer *peer)
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

int krc_cm_meet(struct krc_cm *cm, const struct kcm_peer *peer)
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
int krc_cm_open(struct krc_cm *cm)
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
void krc_cm_check_net(struct krc_cm *cm)
{
	if (READ_ONCE(cm->qp->net->fabric->gone))
		krc_stop(&cm->qp->c, KRC_BY_REMOVAL, -ENODEV);
}

/* --- the module --- */

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
