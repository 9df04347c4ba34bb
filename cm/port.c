// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ports and listeners. A port is a listening socket; its listeners are the services that clients
 * can ask for. A connection is half-open until its client has proved who it is. If a port has more
 * than KCM_HALF_OPEN_MAX, it closes the oldest one of the address that has the most, so that no
 * address can keep others out.
 */
#include <linux/export.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait.h>
#include <net/net_namespace.h>
#include "cm.h"

/* Connections that a run of the work item accepts before it lets others run. */
#define KCM_ACCEPTS	32
#define KCM_PAUSE_MS	100

static DEFINE_MUTEX(kcm_ports_lock);	/* protects kcm_ports, and opening and closing of ports */
static LIST_HEAD(kcm_ports);

static u32 kcm_half_open_of(const struct kcm_port *port, u64 peer)
{
	struct kcm_session *s;
	u32 n = 0;

	list_for_each_entry(s, &port->half_open, half_open)
		n += s->peer == peer;
	return n;
}

static struct kcm_session *kcm_victim(const struct kcm_port *port)
{
	struct kcm_session *s, *victim = NULL;
	u32 n, most = 0, all = 0;

	lockdep_assert_held(&port->lock);
	list_for_each_entry(s, &port->half_open, half_open) {
		all++;
		n = kcm_half_open_of(port, s->peer);
		if (n > most) {
			most = n;
			victim = s;
		}
	}
	return all > KCM_HALF_OPEN_MAX ? victim : NULL;
}

static void kcm_half_open_add(struct kcm_port *port, struct kcm_session *s)
{
	struct kcm_session *victim;

	mutex_lock(&port->lock);
	atomic_inc(&port->nsessions);
	list_add_tail(&s->half_open, &port->half_open);
	victim = kcm_victim(port);
	if (victim) {
		list_del_init(&victim->half_open);
		kcm_count(KCM_COUNT_EVICTED);
		kcm_want(victim, KCM_WANT_EVICTED);
	}
	mutex_unlock(&port->lock);
}

/**
 * kcm_settle() - a session isn't half-open any more
 * @s: the session, whose client is proven or which has ended; any number of times
 *
 * Return: true if it was. False at the first call means that it was evicted: what its client has
 * proved must have no effect.
 */
bool kcm_settle(struct kcm_session *s)
{
	struct kcm_port *port = s->port;
	bool was;

	mutex_lock(&port->lock);
	was = !list_empty(&s->half_open);
	list_del_init(&s->half_open);
	mutex_unlock(&port->lock);
	return was;
}

/**
 * kcm_choose() - assign a session to the service that its client asks for
 * @s: the session
 * @service: name of the service
 *
 * Return: 0 or -ENOENT.
 */
int kcm_choose(struct kcm_session *s, const char *service)
{
	struct kcm_port *port = s->port;
	struct kcm_listener *l;
	int ret = -ENOENT;

	mutex_lock(&port->lock);
	list_for_each_entry(l, &port->listeners, list) {
		if (strcmp(l->config->service, service))
			continue;
		s->listener = l;
		s->config = l->config;
		s->context = l->context;
		list_add(&s->mine, &l->sessions);
		atomic_inc(&l->nsessions);
		ret = 0;
		break;
	}
	mutex_unlock(&port->lock);
	return ret;
}

/**
 * kcm_port_unlink() - have nobody find a session any more who could queue its work item
 * @s: the session, closed
 */
void kcm_port_unlink(struct kcm_session *s)
{
	mutex_lock(&s->port->lock);
	list_del_init(&s->half_open);
	list_del_init(&s->mine);
	mutex_unlock(&s->port->lock);
}

/**
 * kcm_port_left() - a session is about to be freed
 * @s: the session, after kcm_port_unlink()
 */
void kcm_port_left(struct kcm_session *s)
{
	struct kcm_listener *l = s->listener;
	struct kcm_port *port = s->port;

	/* The listener and the port may be freed as soon as their numbers are 0. */
	if (l && atomic_dec_and_test(&l->nsessions))
		wake_up_var(&l->nsessions);
	if (atomic_dec_and_test(&port->nsessions))
		wake_up_var(&port->nsessions);
}

/* Return: 0, -EAGAIN if nobody has connected, or another negative errno. */
static int kcm_port_accept(struct kcm_port *port)
{
	struct kcm_session *s;
	struct socket *sock;
	int ret;

	/* Without memory, the connection waits in the socket's backlog. */
	s = kcm_passive_new(port);
	if (!s)
		return -ENOMEM;
	ret = kcm_sock_accept(port, &sock);
	if (ret) {
		kfree(s);
		return ret;
	}
	kcm_count(KCM_COUNT_ACCEPTED);
	s->peer = kcm_sock_peer(sock, s->from);
	kcm_session_add(s);
	kcm_half_open_add(port, s);
	/* The work item may end and free the session at once. */
	kcm_sock_adopt(s, sock);
	return 0;
}

static void kcm_port_work(struct work_struct *work)
{
	struct kcm_port *port = container_of(to_delayed_work(work), struct kcm_port, accept);
	int i, ret = 0;

	for (i = 0; i < KCM_ACCEPTS && !ret; i++)
		ret = kcm_port_accept(port);
	/* The socket tells of the next connection only if there was none. */
	if (ret != -EAGAIN)
		queue_delayed_work(kcm_wq, &port->accept,
				   ret ? msecs_to_jiffies(KCM_PAUSE_MS) : 0);
}

static struct kcm_port *kcm_port_find(struct net *net, const struct sockaddr_storage *addr)
{
	struct kcm_port *port;

	list_for_each_entry(port, &kcm_ports, list)
		if (net_eq(port->net, net) && port->sock &&
		    !memcmp(&port->addr, addr, sizeof(*addr)))
			return port;
	return NULL;
}

static struct kcm_port *kcm_port_new(struct net *net, const struct sockaddr_storage *addr)
{
	struct kcm_port *port = kzalloc(sizeof(*port), GFP_KERNEL);
	int ret;

	if (!port)
		return ERR_PTR(-ENOMEM);
	port->net = net;
	port->addr = *addr;
	mutex_init(&port->lock);
	INIT_LIST_HEAD(&port->listeners);
	INIT_LIST_HEAD(&port->half_open);
	INIT_DELAYED_WORK(&port->accept, kcm_port_work);
	ret = kcm_sock_listen(port);
	if (ret) {
		kfree(port);
		return ERR_PTR(ret);
	}
	list_add(&port->list, &kcm_ports);
	return port;
}

/* The last service of a port is gone. */
static void kcm_port_free(struct kcm_port *port)
{
	struct kcm_session *s;

	lockdep_assert_held(&kcm_ports_lock);
	list_del(&port->list);
	kcm_sock_unlisten(port);
	mutex_lock(&port->lock);
	list_for_each_entry(s, &port->half_open, half_open)
		kcm_want(s, KCM_WANT_EVICTED);
	mutex_unlock(&port->lock);
	wait_var_event(&port->nsessions, !atomic_read(&port->nsessions));
	kfree(port);
}

/**
 * kcm_listen() - become the passive side of sessions
 * @config: the service
 * @addr: address and port, and 0 in the bytes behind them. An IPv6 address of zeros takes IPv4, too
 * @context: the ULP's, for kcm_listener_context()
 * @listener: takes the listener
 *
 * Callbacks may come before the function returns. After an error, @listener is as it was.
 * Context: Process, sleeps.
 * Return: 0; -EINVAL; -EADDRINUSE if the port has this service already, or is another program's;
 * -ENOMEM; or an errno of the socket.
 */
int kcm_listen(const struct kcm_config *config, const struct sockaddr_storage *addr,
	       void *context, struct kcm_listener **listener)
{
	struct kcm_listener *l, *other;
	struct kcm_port *port;
	int ret = 0;

	if (!*config->service || strlen(config->service) >= KCM_SERVICE ||
	    config->keep_alive_ms < KCM_KEEP_ALIVE_MIN ||
	    config->keep_alive_ms > KCM_KEEP_ALIVE_MAX || config->version_min > config->version)
		return -EINVAL;
	l = kzalloc(sizeof(*l), GFP_KERNEL);
	if (!l)
		return -ENOMEM;
	l->config = config;
	l->context = context;
	INIT_LIST_HEAD(&l->sessions);
	mutex_lock(&kcm_ports_lock);
	port = kcm_port_find(config->net, addr) ?: kcm_port_new(config->net, addr);
	if (IS_ERR(port)) {
		ret = PTR_ERR(port);
		goto out;
	}
	l->port = port;
	mutex_lock(&port->lock);
	list_for_each_entry(other, &port->listeners, list)
		if (!strcmp(other->config->service, config->service))
			ret = -EADDRINUSE;
	if (!ret) {
		*listener = l;
		list_add_tail(&l->list, &port->listeners);
		port->nlisteners++;
	}
	mutex_unlock(&port->lock);
out:
	mutex_unlock(&kcm_ports_lock);
	if (ret)
		kfree(l);
	else
		pr_info("kofi_cm: service %s listens at %pISpc\n", config->service, addr);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kcm_listen, KOFI_CM);

/**
 * kcm_unlisten() - end a service's sessions on a port, and free its listener
 * @l: the listener
 *
 * No new session begins. kcm_ops.stop is called for the sessions that the ULP knows, whose peers
 * may set up another one elsewhere. The function returns after their kcm_gone().
 * Context: Process, sleeps. Not from a callback.
 */
void kcm_unlisten(struct kcm_listener *l)
{
	struct kcm_port *port = l->port;
	struct kcm_session *s;

	mutex_lock(&port->lock);
	list_del(&l->list);
	list_for_each_entry(s, &l->sessions, mine)
		kcm_want(s, KCM_WANT_CLOSE);
	mutex_unlock(&port->lock);
	wait_var_event(&l->nsessions, !atomic_read(&l->nsessions));
	mutex_lock(&kcm_ports_lock);
	if (!--port->nlisteners)
		kcm_port_free(port);
	mutex_unlock(&kcm_ports_lock);
	kfree(l);
}
EXPORT_SYMBOL_NS_GPL(kcm_unlisten, KOFI_CM);

/**
 * kcm_listener_context() - get a listener's context
 * @l: the listener
 * Context: Any.
 * Return: what was passed to kcm_listen().
 */
void *kcm_listener_context(const struct kcm_listener *l)
{
	return l->context;
}
EXPORT_SYMBOL_NS_GPL(kcm_listener_context, KOFI_CM);

/**
 * kcm_ports_net_exit() - close the sockets of a network namespace's ports
 * @net: the namespace
 *
 * Their listeners stay until kcm_unlisten(), without effect.
 */
void kcm_ports_net_exit(struct net *net)
{
	struct kcm_port *port;

	mutex_lock(&kcm_ports_lock);
	list_for_each_entry(port, &kcm_ports, list)
		if (net_eq(port->net, net))
			kcm_sock_unlisten(port);
	mutex_unlock(&kcm_ports_lock);
}
