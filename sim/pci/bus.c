// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A simulated PCI host bridge: configuration space, the memory window for BARs, and
 * interrupts.
 *
 * The bridge has a PCI domain of its own. Its window is RAM that memmap= on the command line
 * reserves, so that a driver can map it like any BAR. The data of an MSI-X message is the
 * Linux interrupt number.
 */
#include <linux/device.h>
#include <linux/interrupt.h>
#include <linux/ioport.h>
#include <linux/irq.h>
#include <linux/irqdomain.h>
#include <linux/module.h>
#include <linux/msi.h>
#include <linux/pci.h>
#include <asm/pci.h>

#include "../../compat/msi.h"
#include "pci.h"

#define FIRST_DOMAIN	0x10000
#define MSIX_CAP	0x40
#define BAR_FLAGS	(PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64)

static struct efasim_host {
	struct pci_sysdata sysdata;
	struct pci_bus *bus;
	struct device *parent;
	struct irq_domain *domain;
	struct resource window;
	struct resource busn;
	struct efasim_fn **fns;
	u32 num;
} host;

static struct efasim_fn *fn_of(struct pci_bus *bus, unsigned int devfn)
{
	u32 slot = PCI_SLOT(devfn);

	if (PCI_FUNC(devfn) || slot >= host.num)
		return NULL;
	return READ_ONCE(host.fns[slot]->plugged) ? host.fns[slot] : NULL;
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where,
		       int size, u32 *val)
{
	struct efasim_fn *fn = fn_of(bus, devfn);

	*val = ~0U;
	if (!fn)
		return PCIBIOS_DEVICE_NOT_FOUND;
	if (where + size > PCI_CFG_SPACE_SIZE)
		return PCIBIOS_SUCCESSFUL;
	*val = 0;
	memcpy(val, &fn->config[where], size);
	return PCIBIOS_SUCCESSFUL;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where,
			int size, u32 val)
{
	struct efasim_fn *fn = fn_of(bus, devfn);
	int i;

	if (!fn)
		return PCIBIOS_DEVICE_NOT_FOUND;
	for (i = where; i < where + size && i < PCI_CFG_SPACE_SIZE; i++) {
		u8 mask = fn->wmask[i];

		WRITE_ONCE(fn->config[i], (fn->config[i] & ~mask) | (val & mask));
		val >>= 8;
	}
	WRITE_ONCE(fn->eng.no_dma,
		   !(fn->config[PCI_COMMAND] & PCI_COMMAND_MASTER));
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops config_ops = {
	.read = config_read,
	.write = config_write,
};

static void put(u8 *to, u32 val, int size)
{
	__le32 le = cpu_to_le32(val);

	memcpy(to, &le, size);
}

/* Set up a 64-bit BAR with its address. */
static void put_bar(struct efasim_fn *fn, int bar, u64 addr, u32 size)
{
	u8 *config = &fn->config[PCI_BASE_ADDRESS_0 + 4 * bar];
	u8 *wmask = &fn->wmask[PCI_BASE_ADDRESS_0 + 4 * bar];

	put(config, lower_32_bits(addr) | BAR_FLAGS, 4);
	put(config + 4, upper_32_bits(addr), 4);
	put(wmask, ~(size - 1), 4);
	put(wmask + 4, U32_MAX, 4);
}

/* Initialize the configuration space of a function whose base address is set. */
void efasim_fn_init_config(struct efasim_fn *fn)
{
	u8 *config = fn->config;

	put(config + PCI_VENDOR_ID, PCI_VENDOR_ID_AMAZON, 2);
	put(config + PCI_DEVICE_ID, fn->device_id, 2);
	put(config + PCI_SUBSYSTEM_VENDOR_ID, PCI_VENDOR_ID_AMAZON, 2);
	put(config + PCI_SUBSYSTEM_ID, fn->device_id, 2);
	put(config + PCI_STATUS, PCI_STATUS_CAP_LIST, 2);
	put(config + PCI_CLASS_DEVICE, PCI_CLASS_NETWORK_ETHERNET, 2);
	put(config + PCI_CAPABILITY_LIST, MSIX_CAP, 1);
	put(fn->wmask + PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
	    PCI_COMMAND_INTX_DISABLE, 2);
	put(fn->wmask + PCI_CACHE_LINE_SIZE, U8_MAX, 1);
	put(fn->wmask + PCI_INTERRUPT_LINE, U8_MAX, 1);
	put_bar(fn, 0, fn->base + EFASIM_REGS_OFF, EFASIM_REGS_SIZE);
	put_bar(fn, 2, fn->base, EFASIM_LLQ_SIZE);
	put_bar(fn, EFASIM_DB_BAR, fn->base + EFASIM_DB_OFF, EFASIM_DB_SIZE);

	put(config + MSIX_CAP, PCI_CAP_ID_MSIX, 1);
	put(config + MSIX_CAP + PCI_MSIX_FLAGS, fn->vectors - 1, 2);
	put(config + MSIX_CAP + PCI_MSIX_TABLE, EFASIM_MSIX_TABLE, 4);
	put(config + MSIX_CAP + PCI_MSIX_PBA, EFASIM_MSIX_PBA, 4);
	put(fn->wmask + MSIX_CAP + PCI_MSIX_FLAGS,
	    PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL, 2);
	fn->eng.no_dma = true;
}

/* Read the MSI-X control word; only its upper byte matters. */
static u16 msix_flags(const struct efasim_fn *fn)
{
	return READ_ONCE(fn->config[MSIX_CAP + PCI_MSIX_FLAGS + 1]) << 8;
}

bool efasim_fn_msix_on(const struct efasim_fn *fn)
{
	return msix_flags(fn) & PCI_MSIX_FLAGS_ENABLE;
}

bool efasim_fn_msix_masked(const struct efasim_fn *fn)
{
	return msix_flags(fn) & PCI_MSIX_FLAGS_MASKALL;
}

static void compose_msg(struct irq_data *data, struct msi_msg *msg)
{
	memset(msg, 0, sizeof(*msg));
	msg->data = data->irq;
}

/* The affinity isn't used: an interrupt is raised on the CPU that runs the device's work. */
static int set_affinity(struct irq_data *data, const struct cpumask *mask,
			bool force)
{
	return -EINVAL;
}

static void ack(struct irq_data *data)
{
}

static struct irq_chip msix_chip = {
	.name = "efasim-msix",
	.irq_ack = ack,
	.irq_compose_msi_msg = compose_msg,
	.irq_set_affinity = set_affinity,
};

static struct msi_domain_info msix_info = {
	.flags = MSI_FLAG_USE_DEF_DOM_OPS | MSI_FLAG_USE_DEF_CHIP_OPS |
		 MSI_FLAG_PCI_MSIX,
	.chip = &msix_chip,
	.handler = handle_edge_irq,
	.handler_name = "edge",
};

static int create_domain(void)
{
	struct fwnode_handle *node;

	node = irq_domain_alloc_named_fwnode("efasim-msix");
	if (!node)
		return -ENOMEM;
	host.domain = compat_msix_domain(node, &msix_info);
	if (host.domain)
		return 0;
	irq_domain_free_fwnode(node);
	return -ENOMEM;
}

static void remove_domain(void)
{
	struct fwnode_handle *node = host.domain->fwnode;

	irq_domain_remove(host.domain);
	irq_domain_free_fwnode(node);
}

/* Find the reserved entry of the memory map that contains a range. */
static struct resource *find_reserved(u64 base, u64 size)
{
	struct resource *r;

	for (r = iomem_resource.child; r; r = r->sibling)
		if (r->desc == IORES_DESC_RESERVED && r->start <= base &&
		    r->end >= base + size - 1)
			return r;
	return NULL;
}

/**
 * efasim_bus_claim() - claim the memory window for functions
 * @base: physical address of the window
 * @num: number of functions, each of which has EFASIM_FN_WINDOW bytes
 *
 * Context: Process context, may sleep.
 * Return: 0; -ENXIO if the window isn't reserved in the kernel's memory map; -EBUSY
 * if the memory is already claimed.
 */
int efasim_bus_claim(u64 base, u32 num)
{
	u64 size = (u64)num * EFASIM_FN_WINDOW;
	struct resource *reserved = find_reserved(base, size);

	if (!reserved) {
		pr_err("efasim: %#llx isn't reserved; boot with memmap=%lluM$%#llx\n",
		       base, size / SZ_1M, base);
		return -ENXIO;
	}
	host.window = (struct resource) {
		.name = "efasim",
		.start = base,
		.end = base + size - 1,
		.flags = IORESOURCE_MEM,
	};
	/* The window is a child of the reserved resource, so that BARs don't conflict with it. */
	return request_resource(reserved, &host.window);
}

void efasim_bus_release(void)
{
	release_resource(&host.window);
}

static struct pci_host_bridge *alloc_bridge(void)
{
	struct pci_host_bridge *bridge = pci_alloc_host_bridge(0);
	int domain = FIRST_DOMAIN;

	if (!bridge)
		return NULL;
	while (pci_find_bus(domain, 0))
		domain++;
	host.sysdata.domain = domain;
	host.sysdata.node = NUMA_NO_NODE;
	host.busn = (struct resource) {
		.name = "efasim", .flags = IORESOURCE_BUS,
	};
	bridge->sysdata = &host.sysdata;
	bridge->ops = &config_ops;
	bridge->dev.parent = host.parent;
	pci_add_resource(&bridge->windows, &host.window);
	pci_add_resource(&bridge->windows, &host.busn);
	dev_set_msi_domain(&bridge->dev, host.domain);
	return bridge;
}

static int scan(void)
{
	struct pci_host_bridge *bridge = alloc_bridge();
	int err;

	if (!bridge)
		return -ENOMEM;
	pci_lock_rescan_remove();
	err = pci_scan_root_bus_bridge(bridge);
	if (err) {
		pci_unlock_rescan_remove();
		pci_free_host_bridge(bridge);
		return err;
	}
	host.bus = bridge->bus;
	pci_bus_claim_resources(host.bus);
	pci_bus_add_devices(host.bus);
	pci_unlock_rescan_remove();
	return 0;
}

static void plug_in(struct efasim_fn *fn)
{
	WRITE_ONCE(fn->plugged, true);
	if (!pci_scan_slot(host.bus, PCI_DEVFN(fn->slot, 0)))
		return;
	/* BARs have their addresses already, as no firmware assigns any. */
	pci_bus_claim_resources(host.bus);
	pci_bus_add_devices(host.bus);
}

static void pull_out(struct efasim_fn *fn)
{
	struct pci_dev *pdev = pci_get_slot(host.bus, PCI_DEVFN(fn->slot, 0));

	if (pdev)
		pci_stop_and_remove_bus_device(pdev);
	pci_dev_put(pdev);
	WRITE_ONCE(fn->plugged, false);
}

/**
 * efasim_bus_plug() - plug or unplug a function
 * @fn: the function
 * @in: true to plug it in, false to unplug it
 *
 * Context: Process context, may sleep, for as long as the driver takes.
 */
void efasim_bus_plug(struct efasim_fn *fn, bool in)
{
	pci_lock_rescan_remove();
	if (in)
		plug_in(fn);
	else
		pull_out(fn);
	pci_unlock_rescan_remove();
}

static int create_parent(void)
{
	int err;

	host.parent = root_device_register("efasim-pci");
	if (IS_ERR(host.parent))
		return PTR_ERR(host.parent);
	err = create_domain();
	if (err)
		root_device_unregister(host.parent);
	return err;
}

static void remove_parent(void)
{
	remove_domain();
	root_device_unregister(host.parent);
}

/**
 * efasim_bus_create() - create the bus with its functions
 * @fns: the functions, started; must stay valid until efasim_bus_remove() returns
 * @num: number of @fns
 *
 * Context: Process context, may sleep.
 * Return: 0; or a negative errno, after undoing everything.
 */
int efasim_bus_create(struct efasim_fn **fns, u32 num)
{
	int err;

	host.fns = fns;
	host.num = num;
	err = create_parent();
	if (err)
		return err;
	err = scan();
	if (err)
		remove_parent();
	return err;
}

/* Remove the bus. Waits until the drivers have released the functions. */
void efasim_bus_remove(void)
{
	struct pci_host_bridge *bridge = to_pci_host_bridge(host.bus->bridge);

	pci_lock_rescan_remove();
	pci_stop_root_bus(host.bus);
	pci_remove_root_bus(host.bus);
	/* pci_stop_root_bus() and pci_remove_root_bus() don't free the bridge. */
	pci_free_host_bridge(bridge);
	pci_unlock_rescan_remove();
	remove_parent();
}
