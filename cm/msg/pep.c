// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Passive endpoints, and the requests that wait for the ULP. */
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include "msg.h"

/* Ports that a passive endpoint without one tries. */
#define KMSG_PORT_MIN	32768
#define KMSG_PORTS	16384
#define KMSG_PORT_TRIES	64

static DEFINE_MUTEX(kmsg_listen_lock);	/* protects kmsg_listeners */
static LIST_HEAD(kmsg_listeners);
static DEFINE_MUTEX(kmsg_lock);		/* protects requests, and kmsg_listener.pep */

static struct kmsg_pep *to_kmsg_pep(struct fid_pep *pep)
{
	return container_of(pep, struct kmsg_pep, pep_fid);
}

/* --- listeners --- */

static struct kmsg_listener *kmsg_listener_find(const struct kmsg_net *net,
						const struct sockaddr_storage *addr)
{
	struct kmsg_listener *l;

	lockdep_assert_held(&kmsg_listen_lock);
	list_for_each_entry(l, &kmsg_listeners, list)
		if (l->net == net && !memcmp(&l->addr, addr, sizeof(*addr)))
			return l;
	return NULL;
}

static struct kmsg_listener *kmsg_listener_new(struct kmsg_net *net,
					       const struct sockaddr_storage *addr)
{
	struct kmsg_listener *l = kzalloc(sizeof(*l), GFP_KERNEL);
	int ret;

	if (!l)
		return ERR_PTR(-ENOMEM);
	l->net = kmsg_net_get(net);
	l->addr = *addr;
	ret = kcm_listen(&net->config, addr, l, &l->kcm);
	if (ret) {
		kmsg_net_put(net);
		kfree(l);
		return ERR_PTR(ret);
	}
	list_add(&l->list, &kmsg_listeners);
	return l;
}

/*
 * A listener whose passive endpoint was closed stays for its connections, and another passive
 * endpoint of the same address takes it over.
 */
static int kmsg_listener_get(struct kmsg_pep *pep)
{
	struct kmsg_listener *l;
	int ret;

	mutex_lock(&kmsg_listen_lock);
	ret = kmsg_net_enter(pep->net);
	if (ret)
		goto unlock;
	l = kmsg_listener_find(pep->net, &pep->addr) ?:
	    kmsg_listener_new(pep->net, &pep->addr);
	if (IS_ERR(l)) {
		ret = PTR_ERR(l);
		goto out;
	}
	mutex_lock(&kmsg_lock);
	if (l->pep) {
		ret = -EADDRINUSE;
	} else {
		l->pep = pep;
		l->refs++;
		pep->listener = l;
	}
	mutex_unlock(&kmsg_lock);
out:
	kmsg_net_leave(pep->net);
unlock:
	mutex_unlock(&kmsg_listen_lock);
	return ret;
}

/**
 * kmsg_listener_put() - drop a reference
 * @l: the listener
 */
void kmsg_listener_put(struct kmsg_listener *l)
{
	mutex_lock(&kmsg_listen_lock);
	if (!--l->refs) {
		list_del(&l->list);
		kcm_unlisten(l->kcm);
		kmsg_net_put(l->net);
		kfree(l);
	}
	mutex_unlock(&kmsg_listen_lock);
}

/**
 * kmsg_listener_keys() - get the keys of the secrets that clients may have
 * @l: the listener
 * @keys: takes them, with references
 *
 * Return: their number, 0 if clients need no secret, or -ENOENT if no passive endpoint listens.
 */
int kmsg_listener_keys(struct kmsg_listener *l, struct kulp_key *keys[KULP_SECRETS])
{
	int i, n = 0;

	mutex_lock(&kmsg_lock);
	for (i = 0; l->pep && i < KULP_SECRETS; i++)
		if (l->pep->keys[i])
			keys[n++] = kulp_key_get(l->pep->keys[i]);
	if (!l->pep)
		n = -ENOENT;
	mutex_unlock(&kmsg_lock);
	return n;
}

/*
 * A link may be older than the passive endpoint, or than its secrets. Return: whether the peer of a
 * link could have it now.
 */
static bool kmsg_pep_trusts(const struct kmsg_pep *pep, const struct kulp_key *key)
{
	bool open = true;
	int i;

	lockdep_assert_held(&kmsg_lock);
	for (i = 0; i < KULP_SECRETS; i++) {
		if (!pep->keys[i])
			continue;
		if (kmsg_same_key(pep->keys[i], key))
			return true;
		open = false;
	}
	return open;
}

static void kmsg_set_port(struct sockaddr_storage *addr, u16 port)
{
	if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)addr)->sin_port = htons(port);
}

static bool kmsg_has_port(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? ((struct sockaddr_in6 *)addr)->sin6_port :
					     ((struct sockaddr_in *)addr)->sin_port;
}

static int kmsg_listen(struct fid_pep *pep_fid)
{
	struct kmsg_pep *pep = to_kmsg_pep(pep_fid);
	int i, ret;

	if (kmsg_has_port(&pep->addr))
		return kmsg_listener_get(pep);
	for (i = 0, ret = -EADDRINUSE; i < KMSG_PORT_TRIES && ret == -EADDRINUSE; i++) {
		kmsg_set_port(&pep->addr, KMSG_PORT_MIN + get_random_u32() % KMSG_PORTS);
		ret = kmsg_listener_get(pep);
	}
	if (ret)
		kmsg_set_port(&pep->addr, 0);
	return ret;
}

/* --- requests --- */

static void kmsg_release(void *entry)
{
	fi_freeinfo(((struct fi_eq_cm_entry *)entry)->info);
}

static struct fi_info *kmsg_request_info(const struct kmsg_pep *pep, struct kmsg_conn *conn)
{
	struct fi_info *info = fi_dupinfo(pep->info);
	struct sockaddr_storage local, remote;

	if (!info)
		return NULL;
	info->handle = &conn->setup->handle;
	kmsg_conn_names(conn, &local, &remote);
	if (kmsg_set_addr(&info->src_addr, &info->src_addrlen, &local) ||
	    kmsg_set_addr(&info->dest_addr, &info->dest_addrlen, &remote)) {
		fi_freeinfo(info);
		return NULL;
	}
	info->addr_format = remote.ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	return info;
}

/* Write FI_CONNREQ. The event has memory of its own, so that it isn't lost if the queue is full. */
static int kmsg_request_event(struct kmsg_pep *pep, struct kmsg_conn *conn)
{
	const struct kmsg_hello *peer = &conn->setup->peer;
	const size_t len = sizeof(struct fi_eq_cm_entry) + peer->len;
	struct kofi_eq_event *room = kofi_eq_reserve(len);
	struct fi_eq_cm_entry *entry = kzalloc(len, GFP_KERNEL);
	int ret = -ENOMEM;

	if (!room || !entry)
		goto out;
	entry->fid = &pep->pep_fid.fid;
	entry->info = kmsg_request_info(pep, conn);
	if (!entry->info)
		goto out;
	memcpy(entry->data, peer->data, peer->len);
	ret = kofi_eq_write_event(pep->eq, room, FI_CONNREQ, entry, len, kmsg_release);
	if (ret)
		fi_freeinfo(entry->info);
	else
		room = NULL;
out:
	kofi_eq_unreserve(room);
	kfree(entry);
	return ret;
}

/**
 * kmsg_request() - tell the ULP of a request
 * @l: where
 * @conn: the request, which the ULP can answer as soon as it sees the event
 *
 * Return: 0, or -ENOENT if nobody listens, -EACCES if the link has none of the secrets, -EBUSY if
 * too many requests wait, or -ENOMEM.
 */
int kmsg_request(struct kmsg_listener *l, struct kmsg_conn *conn)
{
	struct kmsg_pep *pep;
	int ret;

	mutex_lock(&kmsg_lock);
	pep = l->pep;
	ret = !pep ? -ENOENT : !kmsg_pep_trusts(pep, kmsg_link_key(conn->link)) ? -EACCES :
	      pep->nrequests >= pep->backlog ? -EBUSY : 0;
	if (!ret) {
		list_add_tail(&conn->list, &pep->requests);
		pep->nrequests++;
		ret = kmsg_request_event(pep, conn);
		if (ret) {
			list_del_init(&conn->list);
			pep->nrequests--;
		}
	}
	mutex_unlock(&kmsg_lock);
	return ret;
}

static struct kmsg_conn *kmsg_request_find(struct kmsg_pep *pep, const struct fid *handle)
{
	struct kmsg_conn *conn;

	lockdep_assert_held(&kmsg_lock);
	list_for_each_entry(conn, &pep->requests, list)
		if (&conn->setup->handle == handle) {
			list_del_init(&conn->list);
			pep->nrequests--;
			return conn;
		}
	return NULL;
}

/* A request that has been taken holds a reference to its listener. */
static struct kmsg_conn *kmsg_request_of(struct kmsg_listener *l, struct fid *handle)
{
	struct kmsg_conn *conn = NULL;

	lockdep_assert_held(&kmsg_listen_lock);
	mutex_lock(&kmsg_lock);
	if (l->pep)
		conn = kmsg_request_find(l->pep, handle);
	mutex_unlock(&kmsg_lock);
	if (conn) {
		conn->listener = l;
		l->refs++;
	}
	return conn;
}

/**
 * kmsg_request_take() - take a request from its passive endpoint
 * @handle: fi_info.handle of an event; it isn't dereferenced unless it is a request
 *
 * Return: the connection, which belongs to the caller; or NULL.
 */
struct kmsg_conn *kmsg_request_take(struct fid *handle)
{
	struct kmsg_conn *conn = NULL;
	struct kmsg_listener *l;

	mutex_lock(&kmsg_listen_lock);
	list_for_each_entry(l, &kmsg_listeners, list) {
		conn = kmsg_request_of(l, handle);
		if (conn)
			break;
	}
	mutex_unlock(&kmsg_listen_lock);
	return conn;
}

static int kmsg_reject(struct fid_pep *pep_fid, struct fid *handle, const void *param,
		       size_t paramlen)
{
	struct kmsg_pep *pep = to_kmsg_pep(pep_fid);
	struct kmsg_conn *conn;

	if (paramlen > KMSG_DATA_MAX)
		return -EINVAL;
	mutex_lock(&kmsg_lock);
	conn = kmsg_request_find(pep, handle);
	mutex_unlock(&kmsg_lock);
	if (!conn)
		return -EINVAL;
	kmsg_conn_refuse(conn, param, paramlen);
	return 0;
}

/* --- the object --- */

static int kmsg_pep_close(struct fid *fid)
{
	struct kmsg_pep *pep = container_of(fid, struct kmsg_pep, pep_fid.fid);
	struct kmsg_listener *l = pep->listener;
	struct kmsg_conn *conn, *next;
	LIST_HEAD(requests);
	int i;

	mutex_lock(&kmsg_lock);
	if (l)
		l->pep = NULL;
	list_splice_init(&pep->requests, &requests);
	mutex_unlock(&kmsg_lock);
	list_for_each_entry_safe(conn, next, &requests, list)
		kmsg_conn_refuse(conn, NULL, 0);
	if (l)
		kmsg_listener_put(l);
	for (i = 0; i < KULP_SECRETS; i++)
		kulp_key_put(pep->keys[i]);
	kmsg_net_put(pep->net);
	fi_freeinfo(pep->info);
	kfree(pep);
	return 0;
}

static int kmsg_pep_bind(struct fid *fid, struct fid *bfid, u64 flags)
{
	struct kmsg_pep *pep = container_of(fid, struct kmsg_pep, pep_fid.fid);

	pep->eq = container_of(bfid, struct fid_eq, fid);
	return 0;
}

static int kmsg_pep_control(struct fid *fid, int command, void *arg)
{
	struct kmsg_pep *pep = container_of(fid, struct kmsg_pep, pep_fid.fid);
	int backlog;

	if (command != FI_BACKLOG)
		return -EOPNOTSUPP;
	if (!arg)
		return -EINVAL;
	backlog = *(int *)arg;
	if (backlog < 1 || backlog > KMSG_BACKLOG_MAX)
		return -EINVAL;
	mutex_lock(&kmsg_lock);
	pep->backlog = backlog;
	mutex_unlock(&kmsg_lock);
	return 0;
}

static const struct fi_ops kmsg_pep_fid_ops = {
	.close		= kmsg_pep_close,
	.bind		= kmsg_pep_bind,
	.control	= kmsg_pep_control,
};

static int kmsg_pep_getopt(struct fid *fid, int level, int optname, void *optval, size_t *optlen)
{
	const struct kofi_opt opt = { FI_OPT_CM_DATA_SIZE, KMSG_DATA_MAX };

	return kofi_getopt(&opt, 1, optname, optval, optlen);
}

static int kmsg_pep_setopt(struct fid *fid, int level, int optname, const void *optval,
			   size_t optlen)
{
	struct kmsg_pep *pep = container_of(fid, struct kmsg_pep, pep_fid.fid);
	struct kulp_key *key;
	int ret;

	if (optname == FI_OPT_CM_NET)
		return pep->listener ? -FI_EOPBADSTATE :
				       kmsg_net_set(&pep->net, optval, optlen);
	if (optname != FI_OPT_CM_SECRET && optname != FI_OPT_CM_SECRET_OLD)
		return -ENOPROTOOPT;
	ret = kmsg_set_key(optval, optlen, &key);
	if (ret)
		return ret;
	mutex_lock(&kmsg_lock);
	swap(pep->keys[optname == FI_OPT_CM_SECRET_OLD], key);
	mutex_unlock(&kmsg_lock);
	kulp_key_put(key);
	return 0;
}

static const struct fi_ops_ep kmsg_pep_ops = {
	.getopt	= kmsg_pep_getopt,
	.setopt	= kmsg_pep_setopt,
};

static int kmsg_pep_setname(struct fid *fid, void *addr, size_t addrlen)
{
	struct kmsg_pep *pep = container_of(fid, struct kmsg_pep, pep_fid.fid);
	struct sockaddr_storage new;
	int ret;

	if (pep->listener)
		return -FI_EOPBADSTATE;
	ret = kmsg_addr_get(pep->info->addr_format, addr, addrlen, &new);
	if (!ret)
		pep->addr = new;
	return ret;
}

static int kmsg_pep_getname(struct fid *fid, void *addr, size_t *addrlen)
{
	struct kmsg_pep *pep = container_of(fid, struct kmsg_pep, pep_fid.fid);

	return kofi_copy_out(addr, addrlen, &pep->addr, kmsg_addr_len(&pep->addr));
}

static const struct fi_ops_cm kmsg_pep_cm_ops = {
	.setname	= kmsg_pep_setname,
	.getname	= kmsg_pep_getname,
	.listen		= kmsg_listen,
	.reject		= kmsg_reject,
};

/* Without an address, it is any of this machine, with any port. */
static int kmsg_pep_addr(struct kmsg_pep *pep)
{
	const struct fi_info *info = pep->info;

	if (info->src_addr)
		return kmsg_addr_get(info->addr_format, info->src_addr, info->src_addrlen,
				     &pep->addr);
	pep->addr.ss_family = info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
	return 0;
}

/**
 * kmsg_passive_ep() - kofi_connector.passive_ep
 * @fabric: the fabric
 * @info: entry of kmsg_derive()
 * @pep: takes the endpoint
 * @context: unused
 *
 * Return: 0, -EINVAL, -ENOMEM.
 */
int kmsg_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
		    void *context)
{
	struct kmsg_pep *new = kzalloc(sizeof(*new), GFP_KERNEL);
	int ret;

	if (!new)
		return -ENOMEM;
	new->pep_fid.fid.ops = &kmsg_pep_fid_ops;
	new->pep_fid.ops = &kmsg_pep_ops;
	new->pep_fid.cm = &kmsg_pep_cm_ops;
	new->backlog = KMSG_BACKLOG;
	INIT_LIST_HEAD(&new->requests);
	new->info = fi_dupinfo(info);
	ret = new->info ? kmsg_pep_addr(new) : -ENOMEM;
	if (ret) {
		fi_freeinfo(new->info);
		kfree(new);
		return ret;
	}
	new->net = kmsg_net_of(&init_net);
	*pep = &new->pep_fid;
	return 0;
}
