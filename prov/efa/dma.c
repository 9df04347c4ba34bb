// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Functions of dma.h that aren't inline. */
#include <linux/dma-map-ops.h>
#include <linux/iommu.h>
#include <linux/pci.h>
#include "dma.h"

size_t kefa_dma_max_map(struct device *dma)
{
	return dma_max_mapping_size(dma);
}

bool kefa_dma_iommu(struct device *dma, dma_addr_t addr, phys_addr_t *reached)
{
	struct iommu_domain *iommu = iommu_get_domain_for_dev(dma);

	*reached = iommu ? iommu_iova_to_phys(iommu, addr) : 0;
	return iommu;
}

bool kefa_dma_stop(struct device *parent)
{
	if (!parent || !dev_is_pci(parent))
		return false;
	pci_clear_master(to_pci_dev(parent));
	return true;
}

bool kefa_dma_coherent(struct device *dma)
{
	return dev_is_dma_coherent(dma);
}
