// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The module, links, and their devices of kOFI: see rdma.h. */
#define pr_fmt(fmt) "kofi_rc: " fmt

#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/rtnetlink.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <rdma/rdma_netlink.h>
#include <kofi/ulp_auth.h>
#include "rdma.h"

MODULE_DESCRIPTION("kOFI: RDMA device with reliable connections");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_ALIAS_RDMA_LINK("kofi_rc");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_CM);
MODULE_IMPORT_NS(KOFI_ULP);

#define KRC_REOPEN_MS	1000	/* between attempts to open a device that is gone */

unsigned int krc_port = KRC_PORT;
module_param_named(port, krc_port, uint, 0444);
MODULE_PARM_DESC(port, "TCP port at which peers connect, the same on all (default: 20886)");
module_param_named(fabric, krc_fabric, charp, 0444);
MODULE_PARM_DESC(fabric, "name of the fabric (default: efa-direct)");
static char *domains;
module_param(domains, charp, 0444);
MODULE_PARM_DESC(domains, "domains of netdevs, as eth0:NAME,eth1:NAME (default: the first one)");
static char *secret;
module_param(secret, charp, 0400);
MODULE_PARM_DESC(secret, "secret in hexadecimal digits, the same on all peers (default: none)");
module_param_named(datagram, krc_datagram, uint, 0444);
MODULE_PARM_DESC(datagram, "bytes of a datagram (default: 4608)");
module_param_named(max_queues, krc_max_queues, uint, 0444);
MODULE_PARM_DESC(max_queues, "most endpoints of a link, but for those of softirq_initiators (default: 8)");
module_param_named(rma, krc_rma, bool, 0444);
MODULE_PARM_DESC(rma, "have devices write and read data, if they can (default: Y)");
module_param_named(rma_min, krc_rma_min, uint, 0444);
MODULE_PARM_DESC(rma_min, "least bytes of a region that the peer's device may reach (default: 8192)");
module_param_named(softirq_initiators, krc_softirq_initiators, bool, 0444);
MODULE_PARM_DESC(softirq_initiators, "serve connections of initiators in softirqs, by a second endpoint for each CPU (default: Y)");
static unsigned int revoke_s = 30;
module_param(revoke_s, uint, 0444);
MODULE_PARM_DESC(revoke_s, "seconds after which an operation that doesn't end fails the device (default: 30)");

struct kulp_key *krc_key;

static struct workqueue_struct *krc_open_wq;

static DEFINE_MUTEX(krc_links_lock);	/* protects krc_links */
static LIST_HEAD(krc_links);

/* --- the device of kOFI --- */

/* The caller has a reference to the RDMA device, so its users get the event before it goes. */
static void krc_link_event(struct krc_link *link, bool up)
{
	struct ib_event event = {
		.device			= &link->ib,
		.event			= up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
		.element.port_num	= 1,
	};

	WRITE_ONCE(link->up, up);
	ib_dispatch_event(&event);
}

/* The device is gone. Return: it, for krc_net_put(); or NULL. */
static struct krc_net *krc_link_drop(struct krc_link *link)
{
	struct krc_net *net;
	struct krc_qp *qp;

	spin_lock(&link->lock);
	net = link->net;
	if (!net || !READ_ONCE(net->fabric->gone)) {
		spin_unlock(&link->lock);
		return NULL;
	}
	link->net = NULL;
	list_for_each_entry(qp, &link->qps, list)
		if (READ_ONCE(qp->net) == net)
			krc_stop(&qp->c, KRC_BY_REMOVAL, -ENODEV);
	spin_unlock(&link->lock);
	pr_info("%s: its device is gone\n", dev_name(&link->ib.dev));
	krc_link_event(link, false);
	return net;
}

/* Without the lock, because opening takes seconds. Nobody else opens. Return: true or false. */
static bool krc_link_reopen(struct krc_link *link)
{
	struct krc_net *net;

	if (link->net)
		return true;
	net = krc_net_open(link, link->owner, link->domain);
	if (IS_ERR(net))
		return false;
	spin_lock(&link->lock);
	link->net = net;
	spin_unlock(&link->lock);
	krc_link_event(link, true);
	/* It may be gone again, and krc_link_gone() was called before the link had it. */
	return !READ_ONCE(net->fabric->gone);
}

static void krc_link_work(struct work_struct *work)
{
	struct krc_link *link = container_of(to_delayed_work(work), struct krc_link, open_work);
	unsigned int noio = memalloc_noio_save();
	bool open = false;

	/* Fails before the RDMA device is registered, and when it goes. */
	if (ib_device_try_get(&link->ib)) {
		krc_net_put(krc_link_drop(link));
		open = krc_link_reopen(link);
		ib_device_put(&link->ib);
	}
	if (!open)
		queue_delayed_work(krc_open_wq, &link->open_work,
				   msecs_to_jiffies(KRC_REOPEN_MS));
	memalloc_noio_restore(noio);
}

/**
 * krc_link_gone() - a link's device is gone
 * @link: the link
 *
 * Context: Any.
 */
void krc_link_gone(struct krc_link *link)
{
	mod_delayed_work(krc_open_wq, &link->open_work, 0);
}

/**
 * krc_link_net() - get a link's device
 * @link: the link
 *
 * Context: Process.
 * Return: the device, with a reference; or NULL.
 */
struct krc_net *krc_link_net(struct krc_link *link)
{
	struct krc_net *net;

	spin_lock(&link->lock);
	net = link->net ? krc_net_get(link->net) : NULL;
	spin_unlock(&link->lock);
	return net;
}

/* --- links --- */

static struct net_device *krc_netdev_of(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *six = (const void *)addr;
	struct net_device *netdev;

	if (addr->ss_family == AF_INET)
		return ip_dev_find(&init_net, ((const struct sockaddr_in *)addr)->sin_addr.s_addr);
	if (!IS_ENABLED(CONFIG_IPV6))
		return NULL;
	/* Every network device may have the same one of these. */
	if (ipv6_addr_type(&six->sin6_addr) & IPV6_ADDR_LINKLOCAL)
		return dev_get_by_index(&init_net, six->sin6_scope_id);
	rcu_read_lock();
	netdev = ipv6_dev_find(&init_net, &six->sin6_addr, NULL);
	dev_hold(netdev);
	rcu_read_unlock();
	return netdev;
}

/**
 * krc_link_find() - find the link of an address of this machine
 * @addr: the address
 *
 * Context: Process, sleeps.
 * Return: the link, with a reference to its RDMA device; or NULL.
 */
struct krc_link *krc_link_find(const struct sockaddr_storage *addr)
{
	struct net_device *netdev = krc_netdev_of(addr);
	struct krc_link *link, *found = NULL;

	mutex_lock(&krc_links_lock);
	list_for_each_entry(link, &krc_links, list)
		if (netdev && link->netdev == netdev && ib_device_try_get(&link->ib))
			found = link;
	mutex_unlock(&krc_links_lock);
	dev_put(netdev);
	return found;
}

/* The domain that the parameter names for a netdev. */
static int krc_domain_of(const struct net_device *netdev, char **domain)
{
	size_t len = strlen(netdev->name);
	const char *at = domains;

	*domain = NULL;
	while (at && *at) {
		if (!strncmp(at, netdev->name, len) && at[len] == ':') {
			at += len + 1;
			*domain = kstrndup(at, strcspn(at, ","), GFP_KERNEL);
			return *domain ? 0 : -ENOMEM;
		}
		at += strcspn(at, ",");
		at += *at == ',';
	}
	return 0;
}

/* Called when the last reference to the RDMA device is gone. */
static void krc_link_dealloc(struct ib_device *ib)
{
	struct krc_link *link = to_krc_link(ib);

	mutex_lock(&krc_links_lock);
	list_del_init(&link->list);
	mutex_unlock(&krc_links_lock);
	if (link->listens)
		krc_cm_unlisten();
	/* After this krc_link_gone() isn't called any more. */
	krc_net_put(link->net);
	cancel_delayed_work_sync(&link->open_work);
	krc_mrs_fini(&link->mrs);
	WARN_ON_ONCE(!xa_empty(&link->qpns));
	xa_destroy(&link->qpns);
	kfree(link->domain);
	dev_put(link->netdev);
	module_put(THIS_MODULE);
}

static const struct ib_device_ops krc_link_ops = {
	.dealloc_driver	= krc_link_dealloc,
};

/* From here on ib_dealloc_device() undoes everything. */
static void krc_link_init(struct krc_link *link, struct net_device *netdev)
{
	struct ib_device *ib = &link->ib;

	__module_get(THIS_MODULE);
	dev_hold(netdev);
	link->netdev = netdev;
	if (netdev->addr_len == ETH_ALEN)
		memcpy(link->mac, netdev->dev_addr, ETH_ALEN);
	else
		eth_random_addr(link->mac);
	krc_mrs_init(&link->mrs);
	xa_init_flags(&link->qpns, XA_FLAGS_LOCK_IRQ);
	spin_lock_init(&link->lock);
	INIT_LIST_HEAD(&link->list);
	INIT_LIST_HEAD(&link->qps);
	INIT_DELAYED_WORK(&link->open_work, krc_link_work);
	ib->node_type = RDMA_NODE_RNIC;
	ib->phys_port_cnt = 1;
	ib->dev.parent = netdev->dev.parent;
	addrconf_addr_eui48((u8 *)&ib->node_guid, link->mac);
	strscpy(ib->node_desc, "kOFI reliable connections", sizeof(ib->node_desc));
	strscpy(ib->iw_ifname, netdev->name, sizeof(ib->iw_ifname));
	ib->iw_driver_flags = IW_F_NO_PORT_MAP;
	ib_set_device_ops(ib, &krc_verbs_ops);
	ib_set_device_ops(ib, &krc_cm_ops);
	ib_set_device_ops(ib, &krc_link_ops);
}

/* Return: 0, or -EEXIST if its network device has a link. */
static int krc_link_add(struct krc_link *link)
{
	struct krc_link *other;
	int ret = 0;

	mutex_lock(&krc_links_lock);
	list_for_each_entry(other, &krc_links, list)
		if (other->netdev == link->netdev)
			ret = -EEXIST;
	if (!ret)
		list_add(&link->list, &krc_links);
	mutex_unlock(&krc_links_lock);
	if (ret)
		pr_err("%s has a link\n", link->netdev->name);
	return ret;
}

static int krc_link_setup(struct krc_link *link, const char *name)
{
	static atomic_t owners = ATOMIC_INIT(0);
	struct net_device *netdev = link->netdev;
	struct krc_net *net;
	int ret;

	ret = krc_domain_of(netdev, &link->domain) ?: krc_cm_listen();
	if (ret)
		return ret;
	link->listens = true;
	snprintf(link->owner, sizeof(link->owner), "kofi_rc %u", atomic_inc_return(&owners));
	net = krc_net_open(link, link->owner, link->domain);
	if (IS_ERR(net)) {
		if (PTR_ERR(net) == -ENODATA)
			pr_err("no domain for %s: load kofi_efa, or set domains=%s:NAME\n",
			       netdev->name, netdev->name);
		return PTR_ERR(net) == -ENODATA ? -ENODEV : PTR_ERR(net);
	}
	link->ib.num_comp_vectors = net->fabric->nvectors;
	link->up = true;
	spin_lock(&link->lock);
	link->net = net;
	spin_unlock(&link->lock);
	ret = ib_device_set_netdev(&link->ib, netdev, 1);
	if (ret)
		return ret;
	ib_mark_name_assigned_by_user(&link->ib);
	/* Without a device for DMA, addresses are those of the kernel. */
	return ib_register_device(&link->ib, name, NULL);
}

/*
 * The notifier doesn't find a link that isn't registered yet, so it may have missed the end of the
 * network device. The caller has a reference to the RDMA device's memory. Return: 0 or -ENODEV.
 */
static int krc_link_check_netdev(struct krc_link *link, const struct net_device *netdev)
{
	if (READ_ONCE(netdev->reg_state) == NETREG_REGISTERED)
		return 0;
	ib_unregister_device(&link->ib);
	return -ENODEV;
}

static int krc_link_new(const char *name, struct net_device *netdev)
{
	struct krc_link *link;
	int ret;

	if (!net_eq(dev_net(netdev), &init_net)) {
		pr_err("links are only in the initial network namespace\n");
		return -EINVAL;
	}
	if (netdev->flags & IFF_LOOPBACK) {
		pr_err("%s has no peers: use a dummy device\n", netdev->name);
		return -EINVAL;
	}
	link = ib_alloc_device(krc_link, ib);
	if (!link)
		return -ENOMEM;
	krc_link_init(link, netdev);
	/* Somebody may delete the link as soon as it is registered. */
	get_device(&link->ib.dev);
	ret = krc_link_add(link) ?: krc_link_setup(link, name);
	if (ret)
		ib_dealloc_device(&link->ib);
	else
		ret = krc_link_check_netdev(link, netdev);
	put_device(&link->ib.dev);
	return ret;
}

/* The core holds no reference to the module, which may be about to be unloaded. */
static int krc_newlink(const char *name, struct net_device *netdev)
{
	int ret;

	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	ret = krc_link_new(name, netdev);
	module_put(THIS_MODULE);
	return ret;
}

static struct rdma_link_ops krc_rdma_link_ops = {
	.type		= "kofi_rc",
	.newlink	= krc_newlink,
};

static int krc_netdev_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(arg);
	struct krc_link *link;

	if (event != NETDEV_UNREGISTER)
		return NOTIFY_OK;
	mutex_lock(&krc_links_lock);
	list_for_each_entry(link, &krc_links, list) {
		if (link->netdev != netdev || !ib_device_try_get(&link->ib))
			continue;
		ib_unregister_device_queued(&link->ib);
		ib_device_put(&link->ib);
	}
	mutex_unlock(&krc_links_lock);
	return NOTIFY_OK;
}

static struct notifier_block krc_netdev_nb = {
	.notifier_call = krc_netdev_event,
};

/* --- the module --- */

static int krc_check_params(void)
{
	if (!krc_port || krc_port > U16_MAX || krc_datagram < KRC_DATAGRAM_MIN ||
	    krc_datagram > KRC_DATAGRAM_MAX || !krc_max_queues || krc_max_queues > U16_MAX ||
	    revoke_s < 10 || revoke_s > 3600) {
		pr_err("the limits are: port 1 to 65535, datagram %u to %u, max_queues from 1, revoke_s 10 to 3600\n",
		       KRC_DATAGRAM_MIN, KRC_DATAGRAM_MAX);
		return -EINVAL;
	}
	krc_revoke_ms = revoke_s * MSEC_PER_SEC;
	krc_net_setup();
	return 0;
}

static int krc_key_init(void)
{
	if (!secret)
		return 0;
	krc_key = kulp_key_new(secret);
	if (!IS_ERR(krc_key))
		return 0;
	pr_err("secret isn't one: 32 to 128 bytes in hexadecimal digits\n");
	return PTR_ERR(krc_key);
}

static void krc_wqs_free(void)
{
	if (krc_open_wq)
		destroy_workqueue(krc_open_wq);
	if (krc_stop_wq)
		destroy_workqueue(krc_stop_wq);
	if (krc_grant_wq)
		destroy_workqueue(krc_grant_wq);
	if (krc_wq)
		destroy_workqueue(krc_wq);
}

/*
 * Under memory pressure, a queue has one thread. What takes long must not have others wait that the
 * release of memory depends on.
 */
static int krc_wqs_alloc(void)
{
	krc_wq = alloc_workqueue("kofi_rc", WQ_MEM_RECLAIM | WQ_HIGHPRI | COMPAT_WQ_PERCPU, 0);
	krc_stop_wq = alloc_workqueue("kofi_rc_stop", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	krc_open_wq = alloc_workqueue("kofi_rc_open", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	krc_grant_wq = alloc_workqueue("kofi_rc_grant", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (krc_wq && krc_stop_wq && krc_open_wq && krc_grant_wq)
		return 0;
	krc_wqs_free();
	return -ENOMEM;
}

static int __init krc_init(void)
{
	int ret;

	ret = krc_check_params() ?: krc_key_init();
	if (ret)
		return ret;
	ret = krc_wqs_alloc();
	if (ret)
		goto err_key;
	ret = krc_cm_init();
	if (ret)
		goto err_wqs;
	ret = register_netdevice_notifier(&krc_netdev_nb);
	if (ret)
		goto err_cm;
	krc_debugfs_init();
	rdma_link_register(&krc_rdma_link_ops);
	return 0;

err_cm:
	krc_cm_exit();
err_wqs:
	krc_wqs_free();
err_key:
	kulp_key_put(krc_key);
	return ret;
}
module_init(krc_init);

/* There are no links, because each holds a reference to the module. */
static void __exit krc_exit(void)
{
	rdma_link_unregister(&krc_rdma_link_ops);
	krc_debugfs_exit();
	unregister_netdevice_notifier(&krc_netdev_nb);
	krc_cm_exit();
	krc_wqs_free();
	kulp_key_put(krc_key);
	krc_conn_exit();
	/* krc_link_dealloc() may have put the last reference, but not returned yet. */
	synchronize_rcu_tasks();
}
module_exit(krc_exit);
