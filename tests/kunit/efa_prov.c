// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The EFA provider's own sources, with the fake device's memory underneath. They
 * are compiled once more, so that the suites see what is private to the module,
 * and nothing has to be exported for them.
 */
#define pr_fmt(fmt) "kofi_efa: " fmt

#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/pci.h>
#include <rdma/ib_verbs.h>
#include "efake.h"

#undef dma_map_page
#undef dma_unmap_page
#undef dma_map_single
#undef dma_unmap_single
#undef dma_map_sg
#undef dma_unmap_sg
#undef iommu_get_domain_for_dev
#undef iommu_iova_to_phys
#undef dev_is_pci
#undef MODULE_ALIAS_KOFI_PROVIDER

#define dma_map_page		efake_dma_map
#define dma_unmap_page		efake_dma_unmap
#define dma_map_single(dma, ptr, len, dir)				\
	efake_dma_map(dma, virt_to_page(ptr), offset_in_page(ptr), len, dir)
#define dma_unmap_single	efake_dma_unmap
#define dma_map_sg		efake_dma_map_sg
#define dma_unmap_sg		efake_dma_unmap_sg
#define dma_sync_single_for_cpu		efake_dma_sync
#define dma_sync_single_for_device	efake_dma_sync
#define dma_need_sync		efake_dma_bounces
#define iommu_get_domain_for_dev	efake_dma_domain
#define iommu_iova_to_phys	efake_dma_phys
#define dev_is_pci		efake_dma_is_pci
#define pci_clear_master(pdev)	efake_dma_clear_master(&(pdev)->dev)
/* fi_getinfo() loads the real one by its alias. */
#define MODULE_ALIAS_KOFI_PROVIDER(name)	MODULE_INFO(not_alias, name)

#include "../../prov/efa/main.c"
#include "../../prov/efa/device.c"
#include "../../prov/efa/dev.c"
#include "../../prov/efa/probe.c"
#include "../../prov/efa/info.c"
#include "../../prov/efa/destroy.c"
#include "../../prov/efa/domain.c"
#include "../../prov/efa/ah.c"
#include "../../prov/efa/av.c"
#include "../../prov/efa/ep.c"
#include "../../prov/efa/plain.c"
#include "../../prov/efa/post.c"
#include "../../prov/efa/progress.c"
#include "../../prov/efa/ops.c"
#include "../../prov/efa/rest.c"
#include "../../prov/efa/rnr.c"
#include "../../prov/efa/mr.c"
#include "../../prov/efa/mr_map.c"
#include "../../prov/efa/mr_pool.c"
#include "../../prov/efa/mrq.c"
#include "../../prov/efa/status.c"
#include "../../prov/efa/debugfs.c"
#include "../../prov/efa/trace.c"
