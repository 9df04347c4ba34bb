// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions. The page list is host memory that the device reads when it
 * registers the region, or at each use. Remapping a region between the post of its
 * registration and the end of its invalidation changes the memory that peers access. That
 * is counted but, as in the driver, not prevented.
 */
#include <linux/dma-mapping.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

#include "verbs.h"

static struct ib_mr *dma_mr(struct efasim_vdev *dev, u32 pdn)
{
	struct efasim_vmr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->hw = efasim_adm_dma_mr(&dev->eng, pdn);
	if (IS_ERR(mr->hw)) {
		struct ib_mr *ret = ERR_CAST(mr->hw);

		kfree(mr);
		return ret;
	}
	mr->ibmr.lkey = mr->hw->key;
	mr->ibmr.rkey = mr->hw->key;
	mr->ibmr.length = mr->hw->length;
	return &mr->ibmr;
}

struct ib_mr *efasim_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct efasim_vdev *dev = to_vdev(ibpd->device);
	struct ib_mr *ret;

	access &= ~IB_ACCESS_OPTIONAL;
	if (access & ~IB_ACCESS_LOCAL_WRITE)
		ret = ERR_PTR(-EOPNOTSUPP);
	else
		ret = dma_mr(dev, to_vpd(ibpd)->pdn);
	if (IS_ERR(ret))
		efasim_count(&dev->eng, EFASIM_S_get_dma_mr_err);
	return ret;
}

/* ib_core requires this op of every kernel-verbs device, even without user space. */
struct ib_mr *efasim_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				 u64 virt_addr, int access, COMPAT_DMAH_ARG
				 struct ib_udata *udata)
{
	efasim_count(&to_vdev(ibpd->device)->eng, EFASIM_S_reg_mr_err);
	return ERR_PTR(-EOPNOTSUPP);
}

static int alloc_pages_list(struct efasim_vdev *dev, struct efasim_vmr *mr)
{
	size_t size = mr->max_pages * sizeof(*mr->pages);
	struct device *dma = &dev->pdev->dev;

	mr->pages = kzalloc(size, GFP_KERNEL | __GFP_NOWARN);
	if (!mr->pages)
		return -ENOMEM;
	mr->pages_dma = dma_map_single(dma, mr->pages, size, DMA_TO_DEVICE);
	if (dma_mapping_error(dma, mr->pages_dma)) {
		kfree(mr->pages);
		return -ENOMEM;
	}
	return 0;
}

static void free_pages_list(struct efasim_vdev *dev, struct efasim_vmr *mr)
{
	dma_unmap_single(&dev->pdev->dev, mr->pages_dma,
			 mr->max_pages * sizeof(*mr->pages), DMA_TO_DEVICE);
	kfree(mr->pages);
}

static int init_fast_mr(struct efasim_vdev *dev, struct efasim_vmr *mr,
			u32 pdn)
{
	int err;

	err = alloc_pages_list(dev, mr);
	if (err)
		return err;
	mr->hw = efasim_adm_alloc_mr(&dev->eng, pdn, mr->max_pages);
	if (IS_ERR(mr->hw)) {
		free_pages_list(dev, mr);
		return PTR_ERR(mr->hw);
	}
	mr->ibmr.lkey = mr->hw->key;
	mr->ibmr.rkey = mr->hw->key;
	return 0;
}

struct ib_mr *efasim_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			      u32 max_num_sg)
{
	struct efasim_vdev *dev = to_vdev(ibpd->device);
	struct efasim_vmr *mr = NULL;
	int err = -EINVAL;

	if (type != IB_MR_TYPE_MEM_REG || !max_num_sg)
		goto err_count;
	err = -ENOMEM;
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		goto err_count;
	mr->max_pages = max_num_sg;
	err = init_fast_mr(dev, mr, to_vpd(ibpd)->pdn);
	if (err)
		goto err_free;
	return &mr->ibmr;

err_free:
	kfree(mr);
err_count:
	efasim_count(&dev->eng, EFASIM_S_alloc_mr_err);
	return ERR_PTR(err);
}

static int set_page(struct ib_mr *ibmr, u64 addr)
{
	struct efasim_vmr *mr = to_vmr(ibmr);

	if (mr->num_pages == mr->max_pages)
		return -ENOMEM;
	mr->pages[mr->num_pages++] = addr;
	return 0;
}

int efasim_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		     unsigned int *offset)
{
	struct efasim_vdev *dev = to_vdev(ibmr->device);
	struct efasim_vmr *mr = to_vmr(ibmr);
	size_t size = mr->max_pages * sizeof(*mr->pages);
	int mapped;

	if (READ_ONCE(mr->hw->posted) ||
	    READ_ONCE(mr->hw->state) == EFASIM_MR_VALID) {
		efasim_count(&dev->eng, EFASIM_S_mr_remap_live);
		ibdev_err_ratelimited(ibmr->device,
				      "region with key %#x was remapped while the device may use it\n",
				      ibmr->rkey);
	}
	mr->num_pages = 0;
	ib_dma_sync_single_for_cpu(ibmr->device, mr->pages_dma, size,
				   DMA_TO_DEVICE);
	mapped = ib_sg_to_pages(ibmr, sg, nents, offset, set_page);
	ib_dma_sync_single_for_device(ibmr->device, mr->pages_dma, size,
				      DMA_TO_DEVICE);
	return mapped;
}

int efasim_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct efasim_vdev *dev = to_vdev(ibmr->device);
	struct efasim_vmr *mr = to_vmr(ibmr);
	int err;

	err = efasim_adm_dereg_mr(&dev->eng, mr->hw);
	if (err)
		return err;
	if (mr->pages)
		free_pages_list(dev, mr);
	kfree(mr);
	return 0;
}
