// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Network namespaces. A passive endpoint listens in one, and a link is in one: the initial one,
 * unless the ULP has set another. Nothing here keeps a namespace alive. When it goes, kofi_cm ends
 * its sessions, and with them its links; afterwards no others begin, although ULPs still have
 * endpoints that are in it.
 */
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "msg.h"

static unsigned int kmsg_net_id;
static DEFINE_MUTEX(kmsg_nets_lock);	/* protects kmsg_nets, and kcm_config.max_sessions */
static LIST_HEAD(kmsg_nets);
static unsigned int kmsg_max_links = KMSG_LINKS_MAX;

static int kmsg_set_max_links(const char *value, const struct kernel_param *kp)
{
	struct kmsg_net *n;
	int ret;

	mutex_lock(&kmsg_nets_lock);
	ret = param_set_uint(value, kp);
	list_for_each_entry(n, &kmsg_nets, list)
		WRITE_ONCE(n->config.max_sessions, kmsg_max_links);
	mutex_unlock(&kmsg_nets_lock);
	return ret;
}

static const struct kernel_param_ops kmsg_max_links_ops = {
	.set	= kmsg_set_max_links,
	.get	= param_get_uint,
};

module_param_cb(max_links, &kmsg_max_links_ops, &kmsg_max_links, 0644);
MODULE_PARM_DESC(max_links, "Number of links that peers can have with a port, 0 for no limit");

/**
 * kmsg_net_get() - take a reference
 * @n: the namespace
 *
 * Return: @n.
 */
struct kmsg_net *kmsg_net_get(struct kmsg_net *n)
{
	refcount_inc(&n->refs);
	return n;
}

/**
 * kmsg_net_put() - drop a reference
 * @n: the namespace, or NULL
 */
void kmsg_net_put(struct kmsg_net *n)
{
	if (n && refcount_dec_and_test(&n->refs))
		kfree(n);
}

/**
 * kmsg_net_of() - find a namespace
 * @net: the namespace, which doesn't go during the call
 *
 * Return: the namespace, for kmsg_net_put().
 */
struct kmsg_net *kmsg_net_of(struct net *net)
{
	return kmsg_net_get(*(struct kmsg_net **)net_generic(net, kmsg_net_id));
}

/**
 * kmsg_net_set() - set a namespace from an option
 * @to: takes the namespace; the earlier one's reference is dropped
 * @optval: a pointer to a struct net
 * @optlen: bytes of @optval
 *
 * Return: 0 or -EINVAL.
 */
int kmsg_net_set(struct kmsg_net **to, const void *optval, size_t optlen)
{
	struct net *net;

	if (optlen != sizeof(net))
		return -EINVAL;
	memcpy(&net, optval, sizeof(net));
	if (!net)
		return -EINVAL;
	kmsg_net_put(*to);
	*to = kmsg_net_of(net);
	return 0;
}

/**
 * kmsg_net_enter() - have a namespace stay
 * @n: the namespace
 *
 * Return: 0, for kmsg_net_leave(), or -ENETDOWN if it has gone.
 */
int kmsg_net_enter(struct kmsg_net *n)
{
	return refcount_inc_not_zero(&n->users) ? 0 : -ENETDOWN;
}

/**
 * kmsg_net_leave() - undo kmsg_net_enter()
 * @n: the namespace
 */
void kmsg_net_leave(struct kmsg_net *n)
{
	if (refcount_dec_and_test(&n->users))
		complete(&n->idle);
}

static int __net_init kmsg_net_init(struct net *net)
{
	struct kmsg_net **slot = net_generic(net, kmsg_net_id);
	struct kmsg_net *n = kzalloc(sizeof(*n), GFP_KERNEL);

	if (!n)
		return -ENOMEM;
	refcount_set(&n->refs, 1);
	refcount_set(&n->users, 1);
	init_completion(&n->idle);
	n->config = kmsg_config;
	n->config.net = net;
	mutex_lock(&kmsg_nets_lock);
	n->config.max_sessions = kmsg_max_links;
	list_add(&n->list, &kmsg_nets);
	mutex_unlock(&kmsg_nets_lock);
	*slot = n;
	return 0;
}

/* Before kofi_cm's, whose module was loaded earlier. */
static void __net_exit kmsg_net_exit(struct net *net)
{
	struct kmsg_net *n = *(struct kmsg_net **)net_generic(net, kmsg_net_id);

	kmsg_net_leave(n);
	wait_for_completion(&n->idle);
	mutex_lock(&kmsg_nets_lock);
	list_del(&n->list);
	mutex_unlock(&kmsg_nets_lock);
	kmsg_net_put(n);
}

/* Devices, as in kofi_cm: they are removed before protocols. */
static struct pernet_operations kmsg_net_ops = {
	.init	= kmsg_net_init,
	.exit	= kmsg_net_exit,
	.id	= &kmsg_net_id,
	.size	= sizeof(struct kmsg_net *),
};

/**
 * kmsg_nets_init() - learn of namespaces
 *
 * Return: 0 or a negative errno.
 */
int kmsg_nets_init(void)
{
	return register_pernet_device(&kmsg_net_ops);
}

/**
 * kmsg_nets_exit() - undo kmsg_nets_init(), when there is neither a link nor an endpoint
 */
void kmsg_nets_exit(void)
{
	unregister_pernet_device(&kmsg_net_ops);
}
