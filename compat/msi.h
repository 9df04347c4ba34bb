/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interrupt domain for MSI-X of a PCI bridge. From 6.17 on the kernel creates a domain for
 * each device, and takes a parent domain with the interrupt chip.
 */
#ifndef KOFI_COMPAT_MSI_H
#define KOFI_COMPAT_MSI_H

#include <linux/irq.h>
#include <linux/irqdomain.h>
#include <linux/msi.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)

static inline struct irq_domain *
compat_msix_domain(struct fwnode_handle *node, struct msi_domain_info *info)
{
	return pci_msi_create_irq_domain(node, info, NULL);
}

#else

#include <linux/irqchip/irq-msi-lib.h>

static int compat_msix_alloc(struct irq_domain *domain, unsigned int virq,
			     unsigned int count, void *arg)
{
	struct msi_domain_info *info = domain->host_data;
	unsigned int i;

	for (i = 0; i < count; i++)
		irq_domain_set_info(domain, virq + i, virq + i, info->chip,
				    NULL, info->handler, NULL,
				    info->handler_name);
	return 0;
}

static const struct irq_domain_ops compat_msix_ops = {
	.alloc = compat_msix_alloc,
	.free = irq_domain_free_irqs_top,
};

static const struct msi_parent_ops compat_msix_parent_ops = {
	.supported_flags = MSI_GENERIC_FLAGS_MASK | MSI_FLAG_PCI_MSIX,
	.required_flags = MSI_FLAG_USE_DEF_DOM_OPS | MSI_FLAG_USE_DEF_CHIP_OPS |
			  MSI_FLAG_NO_AFFINITY,
	.chip_flags = MSI_CHIP_FLAG_SET_ACK,
	.bus_select_token = DOMAIN_BUS_NEXUS,
	.bus_select_mask = MATCH_PCI_MSI,
	.init_dev_msi_info = msi_lib_init_dev_msi_info,
};

static inline struct irq_domain *
compat_msix_domain(struct fwnode_handle *node, struct msi_domain_info *info)
{
	struct irq_domain_info parent = {
		.fwnode = node,
		.ops = &compat_msix_ops,
		.host_data = info,
	};

	return msi_create_parent_irq_domain(&parent, &compat_msix_parent_ops);
}

#endif

#endif /* KOFI_COMPAT_MSI_H */
