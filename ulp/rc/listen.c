// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ULPs that listen: see rdma.h. They are in a list, because all of kofi_rc has one TCP port, and
 * clients name the port of the ULP.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include "rdma.h"

/**
 * struct krc_listen - a ULP that listens
 * @list: in krc_listens
 * @id: iw_cm's
 */
struct krc_listen {
	struct list_head	list;
	struct iw_cm_id		*id;
};

/* Protects krc_listens. It is held while iw_cm queues a request. */
static DEFINE_MUTEX(krc_listens_lock);
static LIST_HEAD(krc_listens);

/**
 * krc_port_of() - get the port of an address
 * @addr: the address
 *
 * Return: the port.
 */
u16 krc_port_of(const struct sockaddr_storage *addr)
{
	/* It is at the same place in both families. */
	return be16_to_cpu(((const struct sockaddr_in *)addr)->sin_port);
}

/**
 * krc_set_port() - set the port of an address
 * @addr: the address
 * @port: the port
 */
void krc_set_port(struct sockaddr_storage *addr, u16 port)
{
	((struct sockaddr_in *)addr)->sin_port = cpu_to_be16(port);
}

static bool krc_is_any(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ?
	       !((const struct sockaddr_in *)addr)->sin_addr.s_addr :
	       ipv6_addr_any(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

/* A listener's address is the one to which the client has connected, or any. */
static bool krc_listens_at(const struct iw_cm_id *id, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *four = (const void *)&id->local_addr;
	const struct sockaddr_in6 *six = (const void *)&id->local_addr;
	const struct sockaddr_in6 *addr6 = (const void *)addr;

	if (krc_port_of(&id->local_addr) != krc_port_of(addr))
		return false;
	if (id->local_addr.ss_family == AF_INET)
		return addr->ss_family == AF_INET &&
		       (!four->sin_addr.s_addr || four->sin_addr.s_addr ==
			((const struct sockaddr_in *)addr)->sin_addr.s_addr);
	if (ipv6_addr_any(&six->sin6_addr))
		return addr->ss_family == AF_INET6 || !id->afonly;
	return addr->ss_family == AF_INET6 && ipv6_addr_equal(&six->sin6_addr, &addr6->sin6_addr);
}

/* Return: the id of the ULP that listens at an address, or NULL. */
static struct iw_cm_id *krc_listen_at(const struct ib_device *ib,
				      const struct sockaddr_storage *addr)
{
	struct iw_cm_id *found = NULL;
	struct krc_listen *l;

	lockdep_assert_held(&krc_listens_lock);
	list_for_each_entry(l, &krc_listens, list) {
		if (l->id->device != ib || !krc_listens_at(l->id, addr))
			continue;
		/* One for this address goes before one for any. */
		if (!found || krc_is_any(&found->local_addr))
			found = l->id;
	}
	return found;
}

/**
 * krc_listen_is() - check whether a ULP listens
 * @ib: the RDMA device
 * @addr: the address
 *
 * Context: Process, sleeps.
 * Return: true if it does.
 */
bool krc_listen_is(const struct ib_device *ib, const struct sockaddr_storage *addr)
{
	bool found;

	mutex_lock(&krc_listens_lock);
	found = krc_listen_at(ib, addr);
	mutex_unlock(&krc_listens_lock);
	return found;
}

/**
 * krc_listen_tell() - tell a ULP of a request
 * @ib: the RDMA device
 * @event: the request, to its local address
 *
 * Context: Process, sleeps.
 * Return: 0; -ENOENT if nobody listens there; or -ENOMEM.
 */
int krc_listen_tell(const struct ib_device *ib, struct iw_cm_event *event)
{
	struct iw_cm_id *id;
	int ret = -ENOENT;

	mutex_lock(&krc_listens_lock);
	id = krc_listen_at(ib, &event->local_addr);
	if (id)
		ret = id->event_handler(id, event);
	if (!ret)
		krc_cm_told(event->provider_data, id);
	mutex_unlock(&krc_listens_lock);
	return ret;
}

/**
 * krc_listen_begin() - a ULP begins to listen
 * @id: iw_cm's
 * @backlog: not used: iw_cm counts requests itself
 *
 * Context: Process, sleeps.
 * Return: 0 or -ENOMEM.
 */
int krc_listen_begin(struct iw_cm_id *id, int backlog)
{
	struct krc_listen *l = kzalloc(sizeof(*l), GFP_KERNEL);

	if (!l)
		return -ENOMEM;
	id->add_ref(id);
	id->provider_data = l;
	l->id = id;
	mutex_lock(&krc_listens_lock);
	list_add(&l->list, &krc_listens);
	mutex_unlock(&krc_listens_lock);
	return 0;
}

/**
 * krc_listen_end() - a ULP doesn't listen any more
 * @id: iw_cm's, after krc_listen_begin()
 *
 * It isn't told of requests after the return. Those that it hasn't answered are refused.
 * Context: Process, sleeps.
 * Return: 0.
 */
int krc_listen_end(struct iw_cm_id *id)
{
	struct krc_listen *l = id->provider_data;

	mutex_lock(&krc_listens_lock);
	list_del(&l->list);
	mutex_unlock(&krc_listens_lock);
	kfree(l);
	krc_cm_unheard(id);
	id->rem_ref(id);
	return 0;
}
