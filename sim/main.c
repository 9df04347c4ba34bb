// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * efasim: the module, its parameters, and creation and removal of devices.
 *
 * `rdma link add NAME type efasim netdev IF` creates a device. `rdma link delete`, removal
 * of the netdev, or debugfs removes it. A new device gets its limits from the parameters.
 * Each device holds a reference to the module. Other software drivers can be unloaded while
 * they have devices, with ib_unregister_driver(). That function selects devices by driver
 * id, so it would remove those of Amazon's driver as well.
 */
#include <linux/debugfs.h>
#include <linux/dma-mapping.h>
#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <rdma/rdma_netlink.h>

#include "main.h"
#include "verbs/verbs.h"

MODULE_DESCRIPTION("Software EFA device");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");

#define EFASIM_PARAM(name, def, text)			\
	static unsigned int name = (def);		\
	module_param(name, uint, 0644);			\
	MODULE_PARM_DESC(name, text)

EFASIM_PARAM(max_qp, 256, "maximum number of queue pairs of a device");
EFASIM_PARAM(max_cq, 512, "maximum number of completion queues of a device");
EFASIM_PARAM(max_mr, 65536, "maximum number of memory regions of a device");
EFASIM_PARAM(max_mr_pages, 1 << 20, "maximum number of pages of all memory regions of a device");
EFASIM_PARAM(max_ah, 4096, "maximum number of address handles of a device");
EFASIM_PARAM(max_pd, 256, "maximum number of protection domains of a device");
EFASIM_PARAM(max_sq_depth, 4096, "maximum number of send queue entries of a queue pair");
EFASIM_PARAM(max_rq_depth, 16384, "maximum number of receive queue entries of a queue pair");
EFASIM_PARAM(min_sq_depth, 0, "minimum number of send queue entries of a queue pair");
EFASIM_PARAM(max_cq_depth, 32768, "maximum number of entries of a completion queue");
EFASIM_PARAM(mtu, 8928, "largest message, and largest segment of an RDMA, in bytes");
EFASIM_PARAM(max_rdma_size, 1 << 30, "largest RDMA in bytes");
EFASIM_PARAM(max_peers, 4096, "maximum number of devices with which a device communicates");
EFASIM_PARAM(port, 47790, "first UDP port to try");
EFASIM_PARAM(sock_buf, 8 << 20, "size of the UDP socket's buffer in each direction, in bytes");
EFASIM_PARAM(seed, 0, "seed of the random numbers; 0 chooses one at random");
EFASIM_PARAM(unresponsive_ms, 10000, "milliseconds of silence after which requests to a peer fail");

#define SOCK_BUF_MIN	SZ_4K
#define SOCK_BUF_MAX	SZ_1G

static bool rdma_read = true;
module_param(rdma_read, bool, 0644);
MODULE_PARM_DESC(rdma_read, "whether the device supports RDMA read");

static bool rdma_write = true;
module_param(rdma_write, bool, 0644);
MODULE_PARM_DESC(rdma_write, "whether the device supports RDMA write");

static bool unsolicited;
module_param(unsolicited, bool, 0644);
MODULE_PARM_DESC(unsolicited, "whether writes with immediate data to PCI functions take no receive, if the program asks for that");

static bool udp_only;
module_param(udp_only, bool, 0644);
MODULE_PARM_DESC(udp_only, "use UDP also between devices of this kernel");

static DEFINE_MUTEX(devices_lock);	/* protects devices */
static LIST_HEAD(devices);
static struct dentry *debugfs_root;

static int read_limits(struct efasim_limits *l)
{
	*l = (struct efasim_limits) {
		.max_qp = max_qp,
		.max_cq = max_cq,
		.max_mr = max_mr,
		.max_mr_pages = max_mr_pages,
		.max_ah = max_ah,
		.max_pd = max_pd,
		.max_sq_depth = max_sq_depth,
		.max_rq_depth = max_rq_depth,
		.min_sq_depth = min_sq_depth,
		.max_cq_depth = max_cq_depth,
		.mtu = mtu,
		.max_rdma_size = max_rdma_size,
		.max_peers = max_peers,
		.vectors = num_online_cpus(),
		.rdma_read = rdma_read,
		.rdma_write = rdma_write,
		.unsolicited = unsolicited,
	};
	/* Queue pair numbers, request ids and depths have 16 bits, indices in keys 20. */
	if (!l->max_qp || l->max_qp > 0x8000 || !l->max_pd ||
	    !l->max_sq_depth || l->max_sq_depth > 0x8000 ||
	    !l->max_rq_depth || l->max_rq_depth > 0x8000 ||
	    l->min_sq_depth > l->max_sq_depth ||
	    !l->max_cq_depth || l->max_cq_depth > 0x8000 ||
	    l->max_mr >= EFASIM_KEY_INDEX_MASK || l->max_ah >= EFASIM_AH_NONE ||
	    l->mtu < 256 || l->mtu > EFASIM_MAX_PAYLOAD || !l->max_peers ||
	    sock_buf < SOCK_BUF_MIN || sock_buf > SOCK_BUF_MAX ||
	    l->max_rdma_size > SZ_2G || !unresponsive_ms ||
	    !port || port > U16_MAX - EFASIM_PORT_TRIES)
		return -EINVAL;
	return 0;
}

static __be32 netdev_addr(struct net_device *netdev)
{
	struct in_ifaddr *ifa;
	struct in_device *in;
	__be32 addr = 0;

	rcu_read_lock();
	in = __in_dev_get_rcu(netdev);
	ifa = in ? rcu_dereference(in->ifa_list) : NULL;
	if (ifa)
		addr = ifa->ifa_local;
	rcu_read_unlock();
	return addr;
}

/**
 * efasim_join() - attach a device to a netdev's network
 * @eng: the device
 * @netdev: the netdev; with a loopback device only devices of this kernel are reachable
 *
 * Context: Process context, may sleep.
 * Return: 0, -EADDRNOTAVAIL if @netdev has no IPv4 address, or another negative errno.
 */
int efasim_join(struct efasim_dev *eng, struct net_device *netdev)
{
	__be32 addr = 0;

	if (!(netdev->flags & IFF_LOOPBACK)) {
		addr = netdev_addr(netdev);
		if (!addr)
			return -EADDRNOTAVAIL;
	}
	return efasim_net_init(eng, dev_net(netdev), addr, port);
}

/* Create the platform device for DMA mappings, with a mask and parameters. */
static struct platform_device *create_pdev(void)
{
	struct platform_device *pdev;
	int err;

	pdev = platform_device_register_simple("efasim", PLATFORM_DEVID_AUTO,
					       NULL, 0);
	if (IS_ERR(pdev))
		return pdev;
	err = dma_coerce_mask_and_coherent(&pdev->dev,
					   DMA_BIT_MASK(EFASIM_DMA_BITS));
	if (err) {
		platform_device_unregister(pdev);
		return ERR_PTR(err);
	}
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	return pdev;
}

/**
 * efasim_params() - get a new device's attributes from the module's parameters
 * @params: result; the caller sets the front end's part
 * @limits: result, to which @params points, without the number of rings
 *
 * Context: Any.
 * Return: 0, or -EINVAL if a parameter is invalid.
 */
int efasim_params(struct efasim_dev_params *params, struct efasim_limits *limits)
{
	*params = (struct efasim_dev_params) {
		.limits = limits,
		.seed = seed ?: get_random_u32(),
		.unresp_ms = unresponsive_ms,
		.sock_buf = sock_buf,
		.udp_only = udp_only,
	};
	return read_limits(limits);
}

static int create_engine(struct efasim_vdev *dev)
{
	struct efasim_limits limits;
	struct efasim_dev_params params;
	u32 slots;
	int err;

	err = efasim_params(&params, &limits);
	if (err)
		return err;
	limits.subs = limits.rdma_read ? 1 : EFASIM_MAX_SUBS;
	params.ops = &efasim_verbs_fe_ops;
	params.dma_dev = &dev->pdev->dev;
	slots = roundup_pow_of_two(limits.max_qp);
	dev->qp_table = kvcalloc(slots, sizeof(*dev->qp_table), GFP_KERNEL);
	if (!dev->qp_table)
		return -ENOMEM;
	dev->qp_table_mask = slots - 1;
	spin_lock_init(&dev->qp_table_lock);
	INIT_LIST_HEAD(&dev->events);
	err = efasim_engine_create(&dev->eng, &params);
	if (err)
		kvfree(dev->qp_table);
	return err;
}

static void add_to_list(struct efasim_vdev *dev)
{
	__module_get(THIS_MODULE);
	mutex_lock(&devices_lock);
	list_add_tail(&dev->node, &devices);
	mutex_unlock(&devices_lock);
}

static void remove_from_list(struct efasim_vdev *dev)
{
	mutex_lock(&devices_lock);
	list_del(&dev->node);
	mutex_unlock(&devices_lock);
	module_put(THIS_MODULE);
}

/* Counters that stay 0 unless the user of the device makes a mistake. */
static const struct {
	const char *name;
	enum efasim_stat stat;
} tell_tales[] = {
	{ "driver_crash_avoided", EFASIM_S_driver_crash_avoided },
	{ "mr_remap_live", EFASIM_S_mr_remap_live },
	{ "cq_overflow", EFASIM_S_cq_overflow },
	{ "cqe_of_reused_qpn", EFASIM_S_cqe_of_reused_qpn },
	{ "recv_without_sge", EFASIM_S_recv_without_sge },
};

void efasim_tell_tales(struct efasim_dev *eng, const char *name)
{
	s64 n;
	int i;

	for (i = 0; i < ARRAY_SIZE(tell_tales); i++) {
		n = atomic64_read(&eng->stats[tell_tales[i].stat]);
		if (n)
			pr_err("efasim: tell-tale of %s: %s %lld\n", name,
			       tell_tales[i].name, n);
	}
}

/* Called when the last reference to the device is gone. */
static void efasim_dealloc(struct ib_device *ibdev)
{
	struct efasim_vdev *dev = to_vdev(ibdev);

	efasim_tell_tales(&dev->eng, dev_name(&ibdev->dev));
	debugfs_remove_recursive(dev->dir);
	efasim_net_leave(&dev->eng);
	efasim_engine_stop(&dev->eng);
	efasim_release_qps(dev);
	efasim_release_cqs(dev);
	efasim_engine_destroy(&dev->eng);
	kvfree(dev->qp_table);
	platform_device_unregister(dev->pdev);
	remove_from_list(dev);
}

/* Debugfs file that removes the device, like a hot unplug. */
static int remove_set(void *data, u64 val)
{
	struct efasim_vdev *dev = data;

	if (!ib_device_try_get(&dev->ibdev))
		return -ENODEV;
	ib_unregister_device_queued(&dev->ibdev);
	ib_device_put(&dev->ibdev);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(remove_fops, NULL, remove_set, "%llu\n");

/* Called when the device has its name and before clients see it. */
static int efasim_enable(struct ib_device *ibdev)
{
	struct efasim_vdev *dev = to_vdev(ibdev);

	dev->dir = debugfs_create_dir(dev_name(&ibdev->dev), debugfs_root);
	efasim_debugfs_add(&dev->eng, dev->dir);
	debugfs_create_file("remove", 0200, dev->dir, dev, &remove_fops);
	return 0;
}

static const struct ib_device_ops lifetime_ops = {
	.dealloc_driver = efasim_dealloc,
	.enable_driver = efasim_enable,
};

/* After this, ib_dealloc_device() undoes everything. */
static void init_ibdev(struct efasim_vdev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;

	ibdev->node_type = RDMA_NODE_UNSPECIFIED;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = dev->eng.limits.vectors;
	ibdev->dev.parent = &dev->pdev->dev;
	memcpy(&ibdev->node_guid, dev->eng.gid + 8, sizeof(ibdev->node_guid));
	ib_set_device_ops(ibdev, &efasim_device_ops);
	ib_set_device_ops(ibdev, &lifetime_ops);
	add_to_list(dev);
}

static int setup_hw(struct efasim_vdev *dev, struct net_device *netdev)
{
	int err;

	dev->pdev = create_pdev();
	if (IS_ERR(dev->pdev))
		return PTR_ERR(dev->pdev);
	err = create_engine(dev);
	if (err)
		goto err_pdev;
	err = efasim_join(&dev->eng, netdev);
	if (err)
		goto err_engine;
	return 0;

err_engine:
	efasim_engine_destroy(&dev->eng);
	kvfree(dev->qp_table);
err_pdev:
	platform_device_unregister(dev->pdev);
	return err;
}

static int setup_dev(struct efasim_vdev *dev, const char *name,
		     struct net_device *netdev)
{
	int err;

	err = setup_hw(dev, netdev);
	if (err)
		return err;
	init_ibdev(dev);
	dev->netdev = netdev;
	err = ib_device_set_netdev(&dev->ibdev, netdev, 1);
	if (err)
		return err;
	ib_mark_name_assigned_by_user(&dev->ibdev);
	return ib_register_device(&dev->ibdev, name, &dev->pdev->dev);
}

static int newlink(const char *name, struct net_device *netdev)
{
	struct efasim_vdev *dev;
	int err;

	dev = ib_alloc_device(efasim_vdev, ibdev);
	if (!dev)
		return -ENOMEM;
	err = setup_dev(dev, name, netdev);
	if (err) {
		ib_dealloc_device(&dev->ibdev);
		return err;
	}
	return 0;
}

/* The core holds no reference to the module, which may be about to be unloaded. */
static int efasim_newlink(const char *name, struct net_device *netdev)
{
	int err;

	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	err = newlink(name, netdev);
	module_put(THIS_MODULE);
	return err;
}

static struct rdma_link_ops link_ops = {
	.type = "efasim",
	.newlink = efasim_newlink,
};

static int netdev_event(struct notifier_block *nb, unsigned long event,
			void *arg)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(arg);
	struct efasim_vdev *dev;

	if (event != NETDEV_UNREGISTER)
		return NOTIFY_OK;
	efasim_pci_netdev_gone(netdev);
	mutex_lock(&devices_lock);
	list_for_each_entry(dev, &devices, node) {
		if (dev->netdev != netdev)
			continue;
		/*
		 * The socket holds no reference to the namespace, which may end
		 * before the device's users have released the device.
		 */
		efasim_net_leave(&dev->eng);
		if (!ib_device_try_get(&dev->ibdev))
			continue;
		ib_unregister_device_queued(&dev->ibdev);
		ib_device_put(&dev->ibdev);
	}
	mutex_unlock(&devices_lock);
	return NOTIFY_OK;
}

static struct notifier_block netdev_nb = {
	.notifier_call = netdev_event,
};

static int __init efasim_init(void)
{
	int err;

	err = efasim_engine_init();
	if (err)
		return err;
	debugfs_root = debugfs_create_dir("efasim", NULL);
	err = register_netdevice_notifier(&netdev_nb);
	if (err)
		goto err_debugfs;
	err = efasim_pci_init(debugfs_root);
	if (err)
		goto err_notifier;
	rdma_link_register(&link_ops);
	return 0;

err_notifier:
	unregister_netdevice_notifier(&netdev_nb);
err_debugfs:
	debugfs_remove(debugfs_root);
	efasim_engine_exit();
	return err;
}

static void __exit efasim_exit(void)
{
	rdma_link_unregister(&link_ops);
	efasim_pci_exit();
	unregister_netdevice_notifier(&netdev_nb);
	debugfs_remove(debugfs_root);
	efasim_engine_exit();
	/* The task that put the last reference may still be running code of this module. */
	synchronize_rcu_tasks();
}

module_init(efasim_init);
module_exit(efasim_exit);

MODULE_ALIAS_RDMA_LINK("efasim");
