// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Entries of fi_getinfo(): copied and freed as a whole. */
#include <linux/numa.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "kofi.h"

static void kofi_free_nic(struct fid_nic *nic)
{
	if (!nic)
		return;
	kfree(nic->device_attr.name);
	kfree(nic->device_attr.device_id);
	kfree(nic->device_attr.device_version);
	kfree(nic->device_attr.vendor_id);
	kfree(nic->device_attr.driver);
	kfree(nic->device_attr.firmware);
	kfree(nic->link_attr.address);
	kfree(nic->link_attr.network_type);
	kfree(nic);
}

/**
 * fi_freeinfo() - free a list of entries
 * @info: from fi_getinfo(), fi_dupinfo() or fi_allocinfo(), or NULL
 *
 * Context: Any.
 */
void fi_freeinfo(struct fi_info *info)
{
	struct fi_info *next;

	for (; info; info = next) {
		next = info->next;
		kfree(info->src_addr);
		kfree(info->dest_addr);
		kfree(info->tx_attr);
		kfree(info->rx_attr);
		kfree(info->ep_attr);
		if (info->domain_attr)
			kfree(info->domain_attr->name);
		kfree(info->domain_attr);
		if (info->fabric_attr) {
			kfree(info->fabric_attr->name);
			kfree(info->fabric_attr->prov_name);
		}
		kfree(info->fabric_attr);
		kofi_free_nic(info->nic);
		kfree(info);
	}
}
EXPORT_SYMBOL_NS_GPL(fi_freeinfo, KOFI);

/* Each of these leaves NULL behind for what there was none of. */
static int kofi_dup(void **to, const void *from, size_t len)
{
	*to = from && len ? kmemdup(from, len, GFP_KERNEL) : NULL;
	return from && len && !*to ? -ENOMEM : 0;
}

static int kofi_dup_str(char **to, const char *from)
{
	*to = kstrdup(from, GFP_KERNEL);
	return from && !*to ? -ENOMEM : 0;
}

static int kofi_dup_nic(struct fid_nic **to, const struct fid_nic *from)
{
	struct fid_nic *nic;
	int ret;

	if (!from)
		return 0;
	nic = kzalloc(sizeof(*nic), GFP_KERNEL);
	if (!nic)
		return -ENOMEM;
	*to = nic;
	nic->link_attr.mtu = from->link_attr.mtu;
	nic->link_attr.speed = from->link_attr.speed;
	nic->link_attr.up = from->link_attr.up;
	ret = kofi_dup_str(&nic->device_attr.name, from->device_attr.name) ?:
	      kofi_dup_str(&nic->device_attr.device_id,
			   from->device_attr.device_id) ?:
	      kofi_dup_str(&nic->device_attr.device_version,
			   from->device_attr.device_version) ?:
	      kofi_dup_str(&nic->device_attr.vendor_id,
			   from->device_attr.vendor_id) ?:
	      kofi_dup_str(&nic->device_attr.driver,
			   from->device_attr.driver) ?:
	      kofi_dup_str(&nic->device_attr.firmware,
			   from->device_attr.firmware) ?:
	      kofi_dup_str(&nic->link_attr.address, from->link_attr.address) ?:
	      kofi_dup_str(&nic->link_attr.network_type,
			   from->link_attr.network_type);
	return ret;
}

static int kofi_dup_domain(struct fi_domain_attr **to,
			   const struct fi_domain_attr *from)
{
	int ret = kofi_dup((void **)to, from, sizeof(*from));

	if (ret || !from)
		return ret;
	(*to)->name = NULL;
	return kofi_dup_str(&(*to)->name, from->name);
}

static int kofi_dup_fabric(struct fi_fabric_attr **to,
			   const struct fi_fabric_attr *from)
{
	int ret = kofi_dup((void **)to, from, sizeof(*from));

	if (ret || !from)
		return ret;
	(*to)->name = NULL;
	(*to)->prov_name = NULL;
	return kofi_dup_str(&(*to)->name, from->name) ?:
	       kofi_dup_str(&(*to)->prov_name, from->prov_name);
}

#define KOFI_DUP(info, from, member) \
	kofi_dup((void **)&(info)->member, (from)->member, \
		 sizeof(*(from)->member))

/**
 * fi_dupinfo() - copy one entry, or make an empty one
 * @info: the entry, whose next isn't looked at; NULL for an empty one, with
 *	all its attributes
 *
 * fi_getinfo(3).
 *
 * Context: Process context; may sleep. Allocates in the caller's scope.
 * Return: the copy, for fi_freeinfo(), or NULL when memory is short.
 */
struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	static const struct fi_tx_attr tx_attr;
	static const struct fi_rx_attr rx_attr;
	static const struct fi_ep_attr ep_attr;
	static const struct fi_domain_attr domain_attr = {
		.numa_node	= NUMA_NO_NODE,
	};
	static const struct fi_fabric_attr fabric_attr;
	static const struct fi_info empty = {
		.tx_attr	= (struct fi_tx_attr *)&tx_attr,
		.rx_attr	= (struct fi_rx_attr *)&rx_attr,
		.ep_attr	= (struct fi_ep_attr *)&ep_attr,
		.domain_attr	= (struct fi_domain_attr *)&domain_attr,
		.fabric_attr	= (struct fi_fabric_attr *)&fabric_attr,
	};
	const struct fi_info *from = info ?: &empty;
	struct fi_info *new;

	new = kzalloc(sizeof(*new), GFP_KERNEL);
	if (!new)
		return NULL;
	new->caps = from->caps;
	new->mode = from->mode;
	new->addr_format = from->addr_format;
	new->src_addrlen = from->src_addrlen;
	new->dest_addrlen = from->dest_addrlen;
	if (kofi_dup(&new->src_addr, from->src_addr, from->src_addrlen) ||
	    kofi_dup(&new->dest_addr, from->dest_addr, from->dest_addrlen) ||
	    KOFI_DUP(new, from, tx_attr) || KOFI_DUP(new, from, rx_attr) ||
	    KOFI_DUP(new, from, ep_attr) ||
	    kofi_dup_domain(&new->domain_attr, from->domain_attr) ||
	    kofi_dup_fabric(&new->fabric_attr, from->fabric_attr) ||
	    kofi_dup_nic(&new->nic, from->nic)) {
		fi_freeinfo(new);
		return NULL;
	}
	return new;
}
EXPORT_SYMBOL_NS_GPL(fi_dupinfo, KOFI);

/**
 * fi_allocinfo_for() - allocate hints that name what is wanted (kernel only)
 * @prov: the provider, or NULL for any
 * @fabric: the fabric, likewise
 * @domain: the domain, likewise
 *
 * Otherwise as fi_allocinfo(). The names are copied.
 *
 * Context: Process context; may sleep. Allocates in the caller's scope.
 * Return: the hints, for fi_freeinfo(), or NULL when memory is short.
 */
struct fi_info *fi_allocinfo_for(const char *prov, const char *fabric,
				 const char *domain)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	if (kofi_dup_str(&hints->fabric_attr->prov_name, prov) ||
	    kofi_dup_str(&hints->fabric_attr->name, fabric) ||
	    kofi_dup_str(&hints->domain_attr->name, domain)) {
		fi_freeinfo(hints);
		return NULL;
	}
	return hints;
}
EXPORT_SYMBOL_NS_GPL(fi_allocinfo_for, KOFI);
