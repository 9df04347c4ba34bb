// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Description of a device, as an entry of fi_getinfo(). */
#include <linux/slab.h>
#include "dev.h"
#include "ep.h"
#include "rdm/rdm.h"

#define KEFA_CAPS_MSG	(FI_MSG | FI_SEND | FI_RECV)
#define KEFA_CAPS_FREE	(FI_LOCAL_COMM | FI_REMOTE_COMM)
#define KEFA_CAPS_TX	(FI_MSG | FI_RMA | FI_SEND | FI_READ | FI_WRITE)
#define KEFA_CAPS_RX	(FI_MSG | FI_RMA | FI_RECV | FI_REMOTE_READ | \
			 FI_REMOTE_WRITE)
#define KEFA_EPS	64	/* optimal number of queues, not a limit */

/**
 * kefa_caps() - get the capabilities of endpoints on a device
 * @dev: the device
 *
 * Context: Any.
 * Return: capabilities.
 */
u64 kefa_caps(const struct kefa_dev *dev)
{
	u64 caps = KEFA_CAPS_MSG | KEFA_CAPS_FREE;

	if (dev->rdma_read)
		caps |= FI_RMA | FI_READ | FI_REMOTE_READ;
	if (dev->rdma_write)
		caps |= FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
	return caps;
}

static void kefa_info_ep(const struct kefa_dev *dev, struct fi_tx_attr *tx,
			 struct fi_rx_attr *rx, struct fi_ep_attr *ep)
{
	u64 caps = kefa_caps(dev);

	/* No ordering is set, because the device doesn't keep any. */
	*tx = (struct fi_tx_attr) {
		.caps		= caps & KEFA_CAPS_TX,
		.op_flags	= KEFA_TX_DEFAULTS,
		.inject_size	= kefa_inject_size(dev),
		.size		= dev->tx_depth,
		.iov_limit	= KEFA_MAX_SGE,
		.rma_iov_limit	= caps & FI_RMA ? 1 : 0,
	};
	*rx = (struct fi_rx_attr) {
		.caps		= caps & KEFA_CAPS_RX,
		.mode		= caps & FI_WRITE ? FI_RX_CQ_DATA : 0,
		.op_flags	= KEFA_RX_DEFAULTS,
		.size		= dev->rx_depth,
		.iov_limit	= KEFA_MAX_SGE,
	};
	*ep = (struct fi_ep_attr) {
		.type			= FI_EP_RDM,
		.protocol		= FI_PROTO_EFA,
		.protocol_version	= 1,
		/* The maximum of messages and RDMA; endpoint options return each. */
		.max_msg_size		= caps & FI_RMA ? KEFA_MAX_RDMA :
							  dev->mtu,
		.tx_ctx_cnt		= 1,
		.rx_ctx_cnt		= 1,
	};
}

/* Attributes of fabric efa, which segments, orders and matches messages in software. */
static void kefa_info_rdm(const struct kefa_dev *dev, struct fi_tx_attr *tx,
			  struct fi_rx_attr *rx, struct fi_ep_attr *ep)
{
	*tx = (struct fi_tx_attr) {
		.caps		= KEFA_RDM_TX_CAPS,
		.op_flags	= KEFA_TX_DEFAULTS,
		.msg_order	= FI_ORDER_SAS,
		.inject_size	= kefa_inject_size(dev),
		.size		= KEFA_RDM_SIZE,
		.iov_limit	= KEFA_IOV_MAX,
	};
	*rx = (struct fi_rx_attr) {
		.caps		= KEFA_RDM_RX_CAPS,
		.op_flags	= KEFA_RX_DEFAULTS | FI_MULTI_RECV,
		.msg_order	= FI_ORDER_SAS,
		.size		= KEFA_RDM_SIZE,
		.iov_limit	= KEFA_IOV_MAX,
	};
	*ep = (struct fi_ep_attr) {
		.type			= FI_EP_RDM,
		.protocol		= FI_PROTO_EFA,
		.protocol_version	= KEFA_PROTOCOL_VERSION,
		.max_msg_size		= KEFA_RDM_MAX_MSG,
		.mem_tag_format		= U64_MAX,
		.tx_ctx_cnt		= 1,
		.rx_ctx_cnt		= 1,
	};
}

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
		.caps			= KEFA_CAPS_FREE,
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
	};
}

/**
 * kefa_info() - describe a device
 * @dev: the device
 * @rdm: describe it for fabric efa, else for efa-direct
 *
 * Context: Process context; sleeps.
 * Return: the entry, for fi_freeinfo(), or NULL without memory.
 */
struct fi_info *kefa_info(const struct kefa_dev *dev, bool rdm)
{
	struct kefa_entry *e = kzalloc(sizeof(*e), GFP_KERNEL);
	struct fi_info *info;

	if (!e)
		return NULL;
	if (rdm)
		kefa_info_rdm(dev, &e->tx, &e->rx, &e->ep);
	else
		kefa_info_ep(dev, &e->tx, &e->rx, &e->ep);
	kefa_info_domain(dev, &e->domain);
	kefa_info_nic(dev, e);
	memcpy(e->src.gid, dev->gid, sizeof(e->src.gid));
	e->fabric.name = rdm ? FI_EFA_FABRIC : FI_EFA_FABRIC_DIRECT;
	e->info = (struct fi_info){
		.caps		= rdm ? KEFA_RDM_CAPS : kefa_caps(dev),
		.mode		= e->rx.mode,
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
	info = fi_dupinfo(&e->info);
	kfree(e);
	return info;
}
