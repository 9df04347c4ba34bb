// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Verbs of the device: attributes, port, protection domains, address handles, counters.
 */
#include <linux/dma-mapping.h>
#include <linux/pci_ids.h>
#include <linux/platform_device.h>

#include "verbs.h"
#include <efa_verbs_check.h>

/* The first generation of the device has no RDMA read. */
#define EFA_PART_FIRST	0xefa0
#define EFA_PART_ID	0xefa1

/* Allocate a ring as the driver does: contiguous whole pages, zeroed and mapped. */
int efasim_ring_alloc(struct efasim_vdev *dev, struct efasim_ring *ring,
		      size_t size, enum dma_data_direction dir)
{
	struct device *dma = &dev->pdev->dev;

	ring->size = PAGE_ALIGN(size);
	ring->dir = dir;
	ring->buf = alloc_pages_exact(ring->size, GFP_KERNEL | __GFP_ZERO |
				      __GFP_NOWARN);
	if (!ring->buf)
		return -ENOMEM;
	ring->dma = dma_map_single(dma, ring->buf, ring->size, dir);
	if (dma_mapping_error(dma, ring->dma)) {
		free_pages_exact(ring->buf, ring->size);
		ring->buf = NULL;
		return -ENOMEM;
	}
	return 0;
}

void efasim_ring_free(struct efasim_vdev *dev, struct efasim_ring *ring)
{
	dma_unmap_single(&dev->pdev->dev, ring->dma, ring->size, ring->dir);
	free_pages_exact(ring->buf, ring->size);
	ring->buf = NULL;
}

static int efasim_query_device(struct ib_device *ibdev,
			       struct ib_device_attr *attr,
			       struct ib_udata *udata)
{
	const struct efasim_limits *limits = &to_vdev(ibdev)->eng.limits;

	/*
	 * The driver reports nothing else to kernel users: no RDMA capabilities or sizes,
	 * no inline size, no number of pages of a fast registration.
	 */
	memset(attr, 0, sizeof(*attr));
	attr->max_mr_size = (u64)limits->max_mr_pages * PAGE_SIZE;
	attr->page_size_cap = GENMASK_ULL(30, 12);
	attr->vendor_id = PCI_VENDOR_ID_AMAZON;
	attr->vendor_part_id = limits->rdma_read ? EFA_PART_ID : EFA_PART_FIRST;
	attr->hw_ver = attr->vendor_part_id;
	attr->max_qp = limits->max_qp;
	attr->max_cq = limits->max_cq;
	attr->max_pd = limits->max_pd;
	attr->max_mr = limits->max_mr;
	attr->max_ah = limits->max_ah;
	attr->max_cqe = limits->max_cq_depth;
	attr->max_qp_wr = min(limits->max_sq_depth, limits->max_rq_depth);
	attr->max_send_sge = EFASIM_MAX_SGE;
	attr->max_recv_sge = EFASIM_MAX_SGE;
	attr->max_sge_rd = 1;
	attr->max_pkeys = 1;
	/* Unlike in the driver: `rdma link delete` needs it. */
	attr->kernel_cap_flags = IBK_ALLOW_USER_UNREG;
	return 0;
}

static int efasim_query_port(struct ib_device *ibdev, u32 port,
			     struct ib_port_attr *attr)
{
	const struct efasim_limits *limits = &to_vdev(ibdev)->eng.limits;

	attr->lmc = 1;
	attr->state = IB_PORT_ACTIVE;
	attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	attr->gid_tbl_len = 1;
	attr->pkey_tbl_len = 1;
	attr->active_speed = IB_SPEED_EDR;
	attr->active_width = IB_WIDTH_4X;
	attr->max_mtu = ib_mtu_int_to_enum(limits->mtu);
	attr->active_mtu = attr->max_mtu;
	attr->max_msg_sz = limits->mtu;
	attr->max_vl_num = 1;
	return 0;
}

static int efasim_get_port_immutable(struct ib_device *ibdev, u32 port,
				     struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = 1;
	immutable->pkey_tbl_len = 1;
	return 0;
}

static int efasim_query_gid(struct ib_device *ibdev, u32 port, int index,
			    union ib_gid *gid)
{
	memcpy(gid->raw, to_vdev(ibdev)->eng.gid, sizeof(gid->raw));
	return 0;
}

static int efasim_query_pkey(struct ib_device *ibdev, u32 port, u16 index,
			     u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = 0xffff;
	return 0;
}

static enum rdma_link_layer efasim_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_UNSPECIFIED;
}

static int efasim_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct efasim_vdev *dev = to_vdev(ibpd->device);
	int err;

	err = efasim_adm_alloc_pd(&dev->eng, &to_vpd(ibpd)->pdn);
	if (err)
		efasim_count(&dev->eng, EFASIM_S_alloc_pd_err);
	return err;
}

static int efasim_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	efasim_adm_dealloc_pd(&to_vdev(ibpd->device)->eng, to_vpd(ibpd)->pdn);
	return 0;
}

static int efasim_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr,
			    struct ib_udata *udata)
{
	struct efasim_vdev *dev = to_vdev(ibah->device);
	int err = -EOPNOTSUPP;

	if (attr->flags & RDMA_CREATE_AH_SLEEPABLE)
		err = efasim_adm_create_ah(&dev->eng, to_vpd(ibah->pd)->pdn,
					   attr->ah_attr->grh.dgid.raw,
					   &to_vah(ibah)->number);
	if (err)
		efasim_count(&dev->eng, EFASIM_S_create_ah_err);
	return err;
}

/* The driver uses @flags only on kernels 5.0 and 5.1. */
static int efasim_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	efasim_adm_destroy_ah(&to_vdev(ibah->device)->eng,
			      to_vpd(ibah->pd)->pdn, to_vah(ibah)->number);
	return 0;
}

#define STAT_DESC(stat) { .name = #stat },

static const struct rdma_stat_desc device_stats[] = {
	EFASIM_DEVICE_STATS(STAT_DESC)
};

static const struct rdma_stat_desc port_stats[] = {
	EFASIM_PORT_STATS(STAT_DESC)
};

static_assert(ARRAY_SIZE(device_stats) == EFASIM_DEVICE_STATS_END);
static_assert(ARRAY_SIZE(port_stats) ==
	      EFASIM_PORT_STATS_END - EFASIM_DEVICE_STATS_END);

static struct rdma_hw_stats *efasim_alloc_device_stats(struct ib_device *ibdev)
{
	return rdma_alloc_hw_stats_struct(device_stats,
					  ARRAY_SIZE(device_stats),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static struct rdma_hw_stats *efasim_alloc_port_stats(struct ib_device *ibdev,
						     u32 port)
{
	return rdma_alloc_hw_stats_struct(port_stats, ARRAY_SIZE(port_stats),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static int efasim_get_hw_stats(struct ib_device *ibdev,
			       struct rdma_hw_stats *stats, u32 port, int index)
{
	int i, first = port ? EFASIM_DEVICE_STATS_END : 0;
	struct efasim_dev *eng = &to_vdev(ibdev)->eng;

	for (i = 0; i < stats->num_counters; i++)
		stats->value[i] = atomic64_read(&eng->stats[first + i]);
	return stats->num_counters;
}

const struct ib_device_ops efasim_device_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_EFA,
	.uverbs_abi_ver = 1,

	.alloc_hw_device_stats = efasim_alloc_device_stats,
	.alloc_hw_port_stats = efasim_alloc_port_stats,
	.alloc_mr = efasim_alloc_mr,
	.alloc_pd = efasim_alloc_pd,
	.create_ah = efasim_create_ah,
	.create_cq = efasim_create_cq,
	.create_qp = efasim_create_qp,
	.dealloc_pd = efasim_dealloc_pd,
	.dereg_mr = efasim_dereg_mr,
	.destroy_ah = efasim_destroy_ah,
	.destroy_cq = efasim_destroy_cq,
	.destroy_qp = efasim_destroy_qp,
	.get_dma_mr = efasim_get_dma_mr,
	.get_hw_stats = efasim_get_hw_stats,
	.get_link_layer = efasim_link_layer,
	.get_port_immutable = efasim_get_port_immutable,
	.map_mr_sg = efasim_map_mr_sg,
	.modify_qp = efasim_modify_qp,
	.poll_cq = efasim_poll_cq,
	.post_recv = efasim_post_recv,
	.post_send = efasim_post_send,
	.query_device = efasim_query_device,
	.query_gid = efasim_query_gid,
	.query_pkey = efasim_query_pkey,
	.query_port = efasim_query_port,
	.query_qp = efasim_query_qp,
	.reg_user_mr = efasim_reg_user_mr,
	.req_notify_cq = efasim_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, efasim_vah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, efasim_vcq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, efasim_vpd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, efasim_vqp, ibqp),
};
