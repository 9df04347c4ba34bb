// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Devices: a client of ib_core. A work item probes a new device before ULPs see it, because
 * ib_core holds locks that other devices need while it calls add(). When a device is
 * removed, everything that was created on it is destroyed before remove() returns.
 *
 * ib_core hides a device without kernel verbs from clients that don't set no_kverbs_req. The
 * provider needs kernel verbs, but sets the flag to log why it doesn't use such a device.
 */
#define pr_fmt(fmt) "kofi_efa: " fmt

#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include "dev.h"
#include "domain.h"
#include "kefa.h"
#include "trace.h"

#define KEFA_MIN_DRIVER	FI_VERSION(3, 1)
/* Later major versions may have another EFA_VERBS_VERSION than efa_verbs.h. */
#define KEFA_MAX_MAJOR	3

static bool kefa_any_driver;
module_param_named(any_driver, kefa_any_driver, bool, 0444);
MODULE_PARM_DESC(any_driver,
		 "use devices of drivers with an unknown major version; only for tests");

/* Remove every domain of a device that was removed or given up. */
static void kefa_dev_end(struct kefa_dev *dev)
{
	struct kefa_domain *dom, *next;

	kefa_dev_unlist(dev);
	kefa_dev_lock(dev);
	dev->gone = true;
	list_for_each_entry_safe(dom, next, &dev->domains, list)
		kefa_domain_remove(dom);
	kefa_dev_unlock(dev);
}

static void kefa_dev_end_work(struct work_struct *work)
{
	kefa_dev_end(container_of(work, struct kefa_dev, end));
}

static int kefa_dev_do_probe(struct kefa_dev *dev)
{
	int ret = kefa_probe_dev(dev);

	if (!ret)
		dev_info(&dev->ibdev->dev,
			 "kofi_efa: generation %u, messages to %u bytes, RDMA read %s, write %s, datagrams %s\n",
			 dev->part_id & 0xf, dev->mtu,
			 dev->rdma_read ? "yes" : "no",
			 dev->rdma_write ? "yes" : "no",
			 dev->dgram ? "yes" : "no");
	else if (ret == -ENXIO)
		dev_warn(&dev->ibdev->dev,
			 "kofi_efa: not used: the device has no event queues for completions\n");
	else if (!READ_ONCE(dev->going))
		dev_warn(&dev->ibdev->dev, "kofi_efa: not used: error %d\n",
			 ret);
	return ret;
}

static void kefa_dev_probe_work(struct work_struct *work)
{
	struct kefa_dev *dev = container_of(work, struct kefa_dev, probe);
	int ret;

	kefa_dev_lock(dev);
	ret = kefa_dev_do_probe(dev);
	kefa_dev_unlock(dev);
	kefa_dev_probed(dev, !ret);
}

/**
 * kefa_dev_probe_again() - probe a device again
 * @name: name of the device
 *
 * Context: Process context; sleeps.
 * Return: 0, -ENODEV, -EBUSY when a domain is open on the device, or the error of the probe.
 */
int kefa_dev_probe_again(const char *name)
{
	struct kefa_dev *dev;
	int ret;

	kefa_devs_wait(name);
	dev = kefa_dev_find_any(name);
	if (!dev)
		return -ENODEV;
	kefa_dev_lock(dev);
	if (dev->gone || dev->dead)
		ret = -ENODEV;
	else if (!list_empty(&dev->domains))
		ret = -EBUSY;
	else
		ret = kefa_dev_do_probe(dev);
	kefa_dev_unlock(dev);
	if (ret != -EBUSY)
		kefa_dev_probed(dev, !ret);
	kefa_dev_put(dev);
	return ret;
}

/**
 * kefa_dev_alloc() - allocate a device
 *
 * Context: Process context; sleeps.
 * Return: the device, for kefa_dev_put(), or NULL when memory is short.
 */
struct kefa_dev *kefa_dev_alloc(void)
{
	struct kefa_dev *dev = kzalloc(sizeof(*dev), GFP_KERNEL);

	if (!dev)
		return NULL;
	refcount_set(&dev->refs, 1);
	mutex_init(&dev->lock);
	INIT_LIST_HEAD(&dev->list);
	INIT_LIST_HEAD(&dev->domains);
	INIT_WORK(&dev->end, kefa_dev_end_work);
	INIT_WORK(&dev->probe, kefa_dev_probe_work);
	init_completion(&dev->probed);
	return dev;
}

/**
 * kefa_dev_start() - list a device and queue its probe
 * @dev: the device, whose reference this takes over
 *
 * Doesn't wait for the probe: a device may take seconds to answer or to time out, and the
 * caller holds locks that other devices need.
 *
 * Context: Process context; sleeps.
 */
void kefa_dev_start(struct kefa_dev *dev)
{
	kefa_dev_list(dev);
	queue_work(kefa_cmd_wq, &dev->probe);
}

/* Unpin the module. It stays loaded until ib_core's call of kefa_remove() returns. */
static void kefa_dev_unpin(struct kefa_dev *dev)
{
	if (dev->pinned)
		module_put(THIS_MODULE);
	dev->pinned = false;
}

/**
 * kefa_dev_retire() - end all use of a device that is being removed
 * @dev: the device
 *
 * Context: Process context; sleeps, but never waits for a ULP.
 */
void kefa_dev_retire(struct kefa_dev *dev)
{
	WRITE_ONCE(dev->going, true);
	cancel_work_sync(&dev->probe);
	kefa_debugfs_del(dev);
	kefa_dev_end(dev);
	/* kefa_devs_wait() may be waiting for a probe that never started. */
	complete_all(&dev->probed);
	/* A removed device isn't given up, so the work isn't queued again. */
	cancel_work_sync(&dev->end);
	kefa_dev_unpin(dev);
	dev->ibdev = NULL;
	trace_kefa_device(dev->name, false);
	kefa_dev_put(dev);
}

static u32 kefa_min_depth(int depth)
{
	return clamp(depth, 1, KEFA_MAX_DEPTH);
}

/* Read the device's attributes. */
static int kefa_dev_read(struct kefa_dev *dev, struct ib_device *ibdev)
{
	const struct ib_device_attr *attrs = &ibdev->attrs;
	struct ib_port_attr port;
	union ib_gid gid;
	int ret;

	ret = ib_query_port(ibdev, 1, &port) ?:
	      rdma_query_gid(ibdev, 1, 0, &gid);
	if (ret)
		return ret;
	dev->ibdev = ibdev;
	dev->dma = get_device(ibdev->dma_device);
	strscpy(dev->name, dev_name(&ibdev->dev), sizeof(dev->name));
	strscpy(dev->driver, ibdev->ops.owner ? ibdev->ops.owner->name : "efa",
		sizeof(dev->driver));
	memcpy(dev->gid, gid.raw, sizeof(dev->gid));
	dev->part_id = attrs->vendor_part_id;
	dev->numa_node = dev_to_node(dev->dma);
	dev->mtu = port.max_msg_sz;
	dev->tx_depth = kefa_min_depth(attrs->max_qp_wr);
	/* A receive may take one entry of the queue for each of its SGEs. */
	dev->rx_depth = kefa_min_depth(attrs->max_qp_wr / KEFA_MAX_SGE);
	dev->max_qp = attrs->max_qp;
	dev->max_mr = attrs->max_mr;
	dev->max_ah = attrs->max_ah;
	dev->max_mr_pages = clamp_t(u64, attrs->max_mr_size / PAGE_SIZE, 1,
				    1 << (KEFA_MR_ORDERS - 1));
	dev->page_size_cap = attrs->page_size_cap &
			     GENMASK_ULL(30, PAGE_SHIFT);
	dev->page_sizes = dev->page_size_cap;
	dev->vectors = max(ibdev->num_comp_vectors, 1);
	return 0;
}

/**
 * kefa_driver_check() - check whether a version of Amazon's driver is known
 * @version: the driver module's version, or NULL if it has none
 *
 * This module and the driver each declare the structs of work requests. The driver doesn't
 * export the version of that interface, so check the version of the driver.
 *
 * Context: Any.
 * Return: enum kefa_driver.
 */
enum kefa_driver kefa_driver_check(const char *version)
{
	unsigned int major, minor;

	if (!version)
		return KEFA_DRIVER_GOOD;
	if (sscanf(version, "%u.%u", &major, &minor) != 2 ||
	    major > KEFA_MAX_MAJOR)
		return KEFA_DRIVER_UNKNOWN;
	return FI_VERSION_LT(FI_VERSION(major, minor), KEFA_MIN_DRIVER) ?
	       KEFA_DRIVER_OLD : KEFA_DRIVER_GOOD;
}

static int kefa_check_driver(struct ib_device *ibdev)
{
	const struct module *owner = ibdev->ops.owner;

	if (!owner || strcmp(owner->name, "efa"))
		return 0;
	switch (kefa_driver_check(owner->version)) {
	case KEFA_DRIVER_OLD:
		dev_warn(&ibdev->dev,
			 "kofi_efa: driver %s has known bugs in its kernel verbs; update to 3.1.0\n",
			 owner->version);
		return 0;
	case KEFA_DRIVER_UNKNOWN:
		dev_warn(&ibdev->dev,
			 "kofi_efa: %s: unknown driver version %s, whose interface may differ; kofi_efa.any_driver=1 allows it\n",
			 kefa_any_driver ? "used at your risk" : "not used",
			 owner->version);
		return kefa_any_driver ? 0 : -EOPNOTSUPP;
	default:
		return 0;
	}
}

static int kefa_usable(struct ib_device *ibdev)
{
	if (ibdev->ops.driver_id != RDMA_DRIVER_EFA)
		return -EOPNOTSUPP;
	if (!ibdev->kverbs_provider) {
		dev_info(&ibdev->dev,
			 "kofi_efa: not used: the driver has no kernel verbs; install Amazon's efa 3.1.0 or later\n");
		return -EOPNOTSUPP;
	}
	if (!ibdev->dma_device || ib_uses_virt_dma(ibdev) ||
	    ibdev->attrs.max_qp < 2)
		return -EOPNOTSUPP;
	return kefa_check_driver(ibdev);
}

static struct ib_client kefa_client;

static int kefa_add(struct ib_device *ibdev)
{
	struct kefa_dev *dev;
	int ret;

	ret = kefa_usable(ibdev);
	if (ret)
		return ret;
	dev = kefa_dev_alloc();
	if (!dev)
		return -ENOMEM;
	ret = kefa_dev_read(dev, ibdev);
	if (ret) {
		dev_warn(&ibdev->dev, "kofi_efa: not used: error %d\n", ret);
		kefa_dev_put(dev);
		return ret;
	}
	ib_set_client_data(ibdev, &kefa_client, dev);
	kefa_dev_start(dev);
	return 0;
}

static void kefa_remove(struct ib_device *ibdev, void *client_data)
{
	kefa_dev_retire(client_data);
}

/* The device was renamed, usually by udev to a name with its PCI address. */
static void kefa_rename(struct ib_device *ibdev, void *client_data)
{
	kefa_dev_rename(client_data, dev_name(&ibdev->dev));
}

static struct ib_client kefa_client = {
	.name		= "kofi_efa",
	.add		= kefa_add,
	.remove		= kefa_remove,
	.rename		= kefa_rename,
	.no_kverbs_req	= true,
};

int kefa_devs_init(void)
{
	return ib_register_client(&kefa_client);
}

void kefa_devs_fini(void)
{
	ib_unregister_client(&kefa_client);
}
