// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Descriptions of devices, as entries of fi_getinfo(). */
#define pr_fmt(fmt) "kofi_efa: " fmt

#include <linux/inet.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "dev.h"
#include "kefa.h"

#define KEFA_EPS	64	/* optimal number of queues, not a limit */

static void kefa_info_domain(const struct kefa_dev *dev,
			     struct fi_domain_attr *domain)
{
	*domain = (struct fi_domain_attr) {
		.name			= (char *)dev->name,
		.threading		= FI_THREAD_SAFE,
		.control_progress	= FI_PROGRESS_AUTO,
		.data_progress		= FI_PROGRESS_AUTO,
		.resource_mgmt		= FI_RM_ENABLED,
		.av_type		= FI_AV_TABLE,
		.mr_mode		= FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
					  FI_MR_PROV_KEY,
		.mr_key_size		= sizeof(u32),
		.cq_data_size		= sizeof(u32),
		.cq_cnt			= KEFA_EPS,
		/* The domain uses one queue pair itself. */
		.ep_cnt			= dev->max_qp - 1,
		.tx_ctx_cnt		= KEFA_EPS,
		.rx_ctx_cnt		= KEFA_EPS,
		.max_ep_tx_ctx		= 1,
		.max_ep_rx_ctx		= 1,
		.cntr_cnt		= KEFA_EPS,
		.mr_iov_limit		= dev->max_mr_pages,
		.caps			= FI_LOCAL_COMM | FI_REMOTE_COMM,
		.mr_cnt			= dev->max_mr,
		.numa_node		= dev->numa_node,
	};
}

/* All attributes of an entry, allocated because they are too large for the stack. */
struct kefa_entry {
	struct fi_tx_attr	tx;
	struct fi_rx_attr	rx;
	struct fi_ep_attr	ep;
	struct fi_domain_attr	domain;
	struct fi_fabric_attr	fabric;
	struct fi_efa_addr	src;
	struct fid_nic		nic;
	struct fi_info		info;
	char			id[8];
	char			version[8];
	char			address[40];
};

/* Another user of the device doesn't reduce its limits, which are never below what is used here. */
static size_t kefa_left(const struct kefa_dev *dev, enum kefa_kind kind, u32 max)
{
	return max - min_t(u32, max, atomic_read(&dev->used[kind]));
}

static void kefa_info_nic(const struct kefa_dev *dev, struct kefa_entry *e)
{
	snprintf(e->id, sizeof(e->id), "0x%04x", (u16)dev->part_id);
	snprintf(e->version, sizeof(e->version), "%u", dev->part_id & 0xf);
	snprintf(e->address, sizeof(e->address), "%pI6c", dev->gid);
	e->nic = (struct fid_nic){
		.device_attr = {
			.name		= (char *)dev->name,
			.device_id	= e->id,
			.device_version	= e->version,
			.vendor_id	= "0x1d0f",
			.driver		= (char *)dev->driver,
		},
		.link_attr = {
			.address	= e->address,
			.mtu		= dev->mtu,
			.up		= true,
			.network_type	= "Ethernet",
		},
		.left_attr = {
			.queue_pairs	 = kefa_left(dev, KEFA_QP, dev->max_qp),
			.regions	 = kefa_left(dev, KEFA_MR, dev->max_mr),
			.address_handles = kefa_left(dev, KEFA_AH, dev->max_ah),
		},
	};
}

/**
 * kefa_info() - describe a device
 * @dev: the device
 * @fabric: the fabric to describe it for
 * @pick: what the caller asks for
 *
 * A queue's size is the fabric's default, or what the caller asks for beyond that, as far as the
 * device has it.
 *
 * Context: Process context; sleeps.
 * Return: the entry, for fi_freeinfo(), or NULL without memory.
 */
struct fi_info *kefa_info(const struct kefa_dev *dev, const struct kefa_fabric_kind *fabric,
			  const struct kefa_pick *pick)
{
	struct kefa_entry *e = kzalloc(sizeof(*e), GFP_KERNEL);
	struct fi_info *info;

	if (!e)
		return NULL;
	kefa_info_domain(dev, &e->domain);
	kefa_info_nic(dev, e);
	memcpy(e->src.gid, dev->gid, sizeof(e->src.gid));
	e->fabric.name = (char *)fabric->name;
	e->info = (struct fi_info){
		.addr_format	= FI_ADDR_EFA,
		.src_addrlen	= sizeof(e->src),
		.src_addr	= &e->src,
		.tx_attr	= &e->tx,
		.rx_attr	= &e->rx,
		.ep_attr	= &e->ep,
		.domain_attr	= &e->domain,
		.fabric_attr	= &e->fabric,
		.nic		= &e->nic,
	};
	fabric->info(dev, &e->info);
	e->tx.size = max(e->tx.size, min_t(size_t, pick->tx_size, dev->tx_depth));
	e->rx.size = max(e->rx.size, min_t(size_t, pick->rx_size, dev->rx_depth));
	e->info.mode = e->rx.mode;
	info = fi_dupinfo(&e->info);
	kfree(e);
	return info;
}

/* --- fi_getinfo() --- */

/*
 * Read an address in the format of fi_av_straddr(), or a GID alone. sscanf() doesn't report an
 * overflow, so limit the digits.
 */
static bool kefa_addr_parse(const char *text, bool gid_only, struct fi_efa_addr *addr)
{
	static const char prefix[] = "fi_addr_efa://[";
	unsigned long long qkey;
	unsigned int qpn;
	const char *rest;
	int end = 0;

	*addr = (struct fi_efa_addr){ };
	if (strncasecmp(text, prefix, strlen(prefix)))
		return gid_only && in6_pton(text, -1, addr->gid, -1, NULL);
	if (!in6_pton(text + strlen(prefix), -1, addr->gid, ']', &rest) ||
	    sscanf(rest, "]:%5u:%10llu%n", &qpn, &qkey, &end) != 2 || rest[end] ||
	    qpn > U16_MAX || qkey > U32_MAX)
		return false;
	addr->qpn = qpn;
	addr->qkey = qkey;
	return true;
}

/**
 * struct kefa_query - arguments of fi_getinfo() that depend on addresses
 * @pick: the local devices
 * @node: the address that the caller's node stands for
 * @dest: the peer's address, or NULL
 */
struct kefa_query {
	struct kefa_pick	pick;
	struct fi_efa_addr	node;
	const void		*dest;
};

/* The kernel doesn't resolve names of hosts, and there are no services. */
static int kefa_query_read(struct kefa_query *query, const char *node, const char *service,
			   u64 flags, const struct fi_info *hints)
{
	const struct fi_efa_addr *src;
	bool parsed, local = flags & FI_SOURCE;

	*query = (struct kefa_query){ };
	if (service || kofi_hints_addrs(node, service, flags, hints, sizeof(*src),
					(const void **)&src, &query->dest))
		return -ENODATA;
	if (src)
		query->pick.gid = src->gid;
	if (hints && hints->tx_attr)
		query->pick.tx_size = hints->tx_attr->size;
	if (hints && hints->rx_attr)
		query->pick.rx_size = hints->rx_attr->size;
	if (!node)
		return 0;
	parsed = kefa_addr_parse(node, local, &query->node);
	if (local && parsed)
		query->pick.gid = query->node.gid;
	else if (local)
		query->pick.name = node;
	else if (parsed)
		query->dest = &query->node;
	else
		pr_debug("node %s is no address of a peer, as fi_av_straddr() prints it, and names aren't resolved\n",
			 node);
	return local || parsed ? 0 : -ENODATA;
}

/*
 * Return: whether the caller gets RMA. fi_getinfo(3): without capabilities in the hints, an entry
 * has those that are possible with the caller's modes.
 */
static bool kefa_rma_wanted(const struct fi_info *entry, const struct fi_info *hints)
{
	if (!hints)
		return true;
	return hints->caps ? hints->caps & FI_RMA : !(entry->mode & ~hints->mode);
}

/*
 * Fabric efa-direct: without RMA no write with data consumes a receive, and the limit of messages
 * is the only one.
 */
static void kefa_info_no_rma(struct fi_info *entry)
{
	const u64 rma = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

	entry->caps &= ~rma;
	entry->tx_attr->caps &= ~rma;
	entry->rx_attr->caps &= ~rma;
	entry->mode &= ~FI_RX_CQ_DATA;
	entry->rx_attr->mode &= ~FI_RX_CQ_DATA;
	entry->ep_attr->max_msg_size = entry->nic->link_attr.mtu;
}

/**
 * kefa_getinfo() - describe the devices that a caller of fi_getinfo() asks for
 * @version: version of the API
 * @node: with FI_SOURCE name or address of a local device, otherwise a peer's address; or NULL
 * @service: NULL
 * @flags: flags of fi_getinfo()
 * @hints: the caller's hints, or NULL
 * @info: takes the entries
 *
 * Serves as kofi_provider.getinfo.
 *
 * Context: Process context; sleeps.
 * Return: 0, -ENODATA, -ENOMEM.
 */
int kefa_getinfo(u32 version, const char *node, const char *service, u64 flags,
		 const struct fi_info *hints, struct fi_info **info)
{
	const struct fi_domain_attr *domain = hints ? hints->domain_attr : NULL;
	struct kefa_query query;
	struct fi_info *entry;
	int ret;

	ret = kefa_query_read(&query, node, service, flags, hints);
	if (ret)
		return ret;
	/* Devices that were present when the module was loaded may not be probed yet. */
	kefa_devs_wait(query.pick.name ?: domain ? domain->name : NULL);
	ret = kefa_devs_info(&query.pick, info);
	if (ret)
		return ret;
	ret = kofi_info_set_dest(*info, query.dest, sizeof(query.node));
	if (ret) {
		fi_freeinfo(*info);
		return ret;
	}
	for (entry = *info; entry; entry = entry->next)
		if (!strcmp(entry->fabric_attr->name, FI_EFA_FABRIC_DIRECT) &&
		    entry->caps & FI_RMA && !kefa_rma_wanted(entry, hints))
			kefa_info_no_rma(entry);
	return 0;
}
