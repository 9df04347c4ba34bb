// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The provider and its devices. Writing 0 to a device's file "present" in
 * /sys/kernel/debug/kofi_loop simulates its removal, and writing 1 its return.
 */
#define pr_fmt(fmt) "kofi_loop: " fmt

#include <linux/debugfs.h>
#include <linux/numa.h>
#include <linux/slab.h>
#include "loop.h"

MODULE_DESCRIPTION("kOFI provider within one kernel");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_ALIAS_KOFI_PROVIDER(LOOP_NAME);
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);

/* loop.h describes what each lock protects. */
DEFINE_MUTEX(loop_lock_control);
DEFINE_SPINLOCK(loop_lock);
struct workqueue_struct *loop_wq;

static struct dentry *loop_debugfs;

static struct loop_device loop_devices[] = {
	{ .name = "loop0" },
	{ .name = "loop1" },
};

/**
 * loop_device_find() - find a device
 * @name: name of the device
 *
 * Context: Process context, under loop_lock_control.
 * Return: the device, or NULL if it doesn't exist or was removed.
 */
struct loop_device *loop_device_find(const char *name)
{
	struct loop_device *dev;

	lockdep_assert_held(&loop_lock_control);
	for (dev = loop_devices;
	     dev < loop_devices + ARRAY_SIZE(loop_devices); dev++)
		if (dev->present && name && !strcmp(dev->name, name))
			return dev;
	return NULL;
}

static const struct fi_tx_attr loop_tx_attr = {
	.caps		= LOOP_CAPS_TX,
	.op_flags	= FI_COMPLETION | FI_INJECT_COMPLETE |
			  FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE,
	.msg_order	= LOOP_ORDER,
	.inject_size	= LOOP_INJECT,
	.size		= LOOP_SLOTS,
	.iov_limit	= LOOP_IOV,
	.rma_iov_limit	= LOOP_RMA_IOV,
};

static const struct fi_rx_attr loop_rx_attr = {
	.caps		= LOOP_CAPS_RX,
	.op_flags	= FI_COMPLETION,
	.msg_order	= LOOP_ORDER,
	.size		= LOOP_SLOTS,
	.iov_limit	= LOOP_IOV,
};

static const struct fi_ep_attr loop_ep_attr = {
	.type			= FI_EP_RDM,
	.protocol_version	= 1,
	.max_msg_size		= LOOP_MAX_MSG,
	.max_order_raw_size	= LOOP_MAX_MSG,
	.max_order_waw_size	= LOOP_MAX_MSG,
	.mem_tag_format		= U64_MAX,
	.tx_ctx_cnt		= 1,
	.rx_ctx_cnt		= 1,
};

static const struct fi_domain_attr loop_domain_attr = {
	.threading		= FI_THREAD_SAFE,
	.control_progress	= FI_PROGRESS_AUTO,
	.data_progress		= FI_PROGRESS_AUTO,
	.resource_mgmt		= FI_RM_ENABLED,
	.mr_mode		= FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				  FI_MR_PROV_KEY,
	.mr_key_size		= sizeof(u64),
	.cq_data_size		= sizeof(u64),
	.cq_cnt			= LOOP_EP_CNT,
	.ep_cnt			= LOOP_EP_CNT,
	.tx_ctx_cnt		= LOOP_EP_CNT,
	.rx_ctx_cnt		= LOOP_EP_CNT,
	.max_ep_tx_ctx		= 1,
	.max_ep_rx_ctx		= 1,
	.cntr_cnt		= LOOP_EP_CNT,
	.mr_iov_limit		= LOOP_MR_PAGES,
	.caps			= FI_LOCAL_COMM,
	.mr_cnt			= LOOP_MR_CNT,
	.numa_node		= NUMA_NO_NODE,
};

static struct fi_info *loop_info(const struct loop_device *dev)
{
	struct fi_tx_attr tx = loop_tx_attr;
	struct fi_rx_attr rx = loop_rx_attr;
	struct fi_ep_attr ep = loop_ep_attr;
	struct fi_domain_attr domain = loop_domain_attr;
	struct fi_fabric_attr fabric = { .name = LOOP_NAME };
	struct fid_nic nic = {
		.device_attr	= {
			.name		= (char *)dev->name,
			.driver		= KBUILD_MODNAME,
		},
		.link_attr	= {
			.mtu		= LOOP_MAX_MSG,
			.up		= true,
			.network_type	= LOOP_NAME,
		},
	};
	const struct fi_info info = {
		.caps		= LOOP_CAPS,
		.tx_attr	= &tx,
		.rx_attr	= &rx,
		.ep_attr	= &ep,
		.domain_attr	= &domain,
		.fabric_attr	= &fabric,
		.nic		= &nic,
	};

	domain.name = (char *)dev->name;
	return fi_dupinfo(&info);
}

static int loop_infos(const char *name, struct fi_info **last)
{
	struct loop_device *dev;

	lockdep_assert_held(&loop_lock_control);
	for (dev = loop_devices; dev < loop_devices + ARRAY_SIZE(loop_devices); dev++) {
		if (!dev->present || (name && strcmp(name, dev->name)))
			continue;
		*last = loop_info(dev);
		if (!*last)
			return -ENOMEM;
		last = &(*last)->next;
	}
	return 0;
}

/* Read an address in the format of fi_av_straddr(). sscanf() doesn't report an overflow. */
static bool loop_addr_parse(const char *text, struct loop_addr *addr)
{
	unsigned long long id;
	int end = 0;

	if (sscanf(text, LOOP_NAME ":%10llu%n", &id, &end) != 1 || text[end] || id > U32_MAX)
		return false;
	*addr = (struct loop_addr){ .magic = LOOP_ADDR_MAGIC, .id = id };
	return true;
}

/* A local node is the name of a device, which has no address. There are no services. */
static int loop_getinfo(u32 version, const char *node, const char *service,
			u64 flags, const struct fi_info *hints,
			struct fi_info **info)
{
	const void *src, *dest;
	struct loop_addr peer;
	int ret;

	*info = NULL;
	if (service || kofi_hints_addrs(node, service, flags, hints, sizeof(peer), &src, &dest) ||
	    src)
		return -ENODATA;
	if (node && !(flags & FI_SOURCE)) {
		if (!loop_addr_parse(node, &peer))
			return -ENODATA;
		dest = &peer;
	}
	mutex_lock(&loop_lock_control);
	ret = loop_infos(flags & FI_SOURCE ? node : NULL, info);
	mutex_unlock(&loop_lock_control);
	ret = ret ?: kofi_info_set_dest(*info, dest, sizeof(peer));
	if (ret) {
		fi_freeinfo(*info);
		return ret;
	}
	return *info ? 0 : -ENODATA;
}

static int loop_fabric_close(struct fid *fid)
{
	kfree(container_of(fid, struct fid_fabric, fid));
	return 0;
}

static const struct fi_ops loop_fabric_fid_ops = {
	.close = loop_fabric_close,
};

static const struct fi_ops_fabric loop_fabric_ops = {
	.domain = loop_domain_open,
};

static int loop_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		       void *context)
{
	struct fid_fabric *new;

	if (strcmp(attr->name, LOOP_NAME))
		return -ENODEV;
	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	new->fid.ops = &loop_fabric_fid_ops;
	new->ops = &loop_fabric_ops;
	*fabric = new;
	return 0;
}

static const char *loop_strerror(int prov_errno)
{
	static const char * const text[LOOP_ERRS] = {
		[LOOP_ERR_NONE]		= "No error",
		[LOOP_ERR_KEY]		= "No region has this key",
		[LOOP_ERR_RANGE]	= "Outside of the region",
		[LOOP_ERR_ACCESS]	= "The region doesn't allow this access",
		[LOOP_ERR_PEER_GONE]	= "The peer's endpoint went away",
	};

	return prov_errno >= 0 && prov_errno < LOOP_ERRS ? text[prov_errno] :
							   NULL;
}

static const struct kofi_provider loop_provider = {
	.name		= LOOP_NAME,
	.version	= LOOP_VERSION,
	.owner		= THIS_MODULE,
	.getinfo	= loop_getinfo,
	.freeinfo	= fi_freeinfo,
	.fabric		= loop_fabric,
	.strerror	= loop_strerror,
	.lanes		= true,
};

/* loop_lock_control keeps the domains in the list from being closed. */
static int loop_present_set(void *data, u64 present)
{
	struct loop_device *dev = data;
	struct loop_domain *dom, *next;
	bool arrived;

	mutex_lock(&loop_lock_control);
	arrived = present && !dev->present;
	dev->present = present;
	if (!present) {
		list_for_each_entry_safe(dom, next, &dev->domains, list)
			loop_domain_remove(dom);
	}
	mutex_unlock(&loop_lock_control);
	if (arrived)
		kofi_device_arrived(&loop_provider, dev->name);
	return 0;
}

static int loop_present_get(void *data, u64 *present)
{
	struct loop_device *dev = data;

	*present = READ_ONCE(dev->present);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(loop_present_fops, loop_present_get, loop_present_set,
			 "%llu\n");

static void loop_device_init(struct loop_device *dev)
{
	struct dentry *dir = debugfs_create_dir(dev->name, loop_debugfs);

	INIT_LIST_HEAD(&dev->domains);
	dev->present = true;
	debugfs_create_file_unsafe("present", 0600, dir, dev,
				   &loop_present_fops);
	debugfs_create_atomic_t("refused", 0400, dir, &dev->refused);
}

static int __init loop_init(void)
{
	int i, ret;

	loop_wq = alloc_workqueue("kofi_loop", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!loop_wq)
		return -ENOMEM;
	loop_debugfs = debugfs_create_dir("kofi_loop", NULL);
	for (i = 0; i < ARRAY_SIZE(loop_devices); i++)
		loop_device_init(&loop_devices[i]);
	ret = kofi_provider_register(KOFI_API_VERSION, &loop_provider);
	if (ret) {
		debugfs_remove_recursive(loop_debugfs);
		destroy_workqueue(loop_wq);
	}
	return ret;
}
module_init(loop_init);

/* Deregistering can't fail: open fabrics pin the module. */
static void __exit loop_exit(void)
{
	WARN_ON(kofi_provider_deregister(&loop_provider));
	debugfs_remove_recursive(loop_debugfs);
	destroy_workqueue(loop_wq);
}
module_exit(loop_exit);
