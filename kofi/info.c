// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copying and freeing entries of fi_getinfo(). attr.c lists the strings of an entry, and
 * kofi_each_part() the other memory that it points to.
 */
#include <linux/numa.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "attr.h"
#include "kofi.h"

/* Process the pointer at @member, which points to @len bytes. Return: false if out of memory. */
typedef bool (*kofi_ptr_fn)(void *member, size_t len);

static bool kofi_free(void *member, size_t len)
{
	kfree(*(void **)member);
	return true;
}

/* Replace a pointer by a pointer to a copy; or by NULL if memory is short or @len is 0. */
static bool kofi_dup(void *member, size_t len)
{
	void **to = member;
	const void *from = len ? *to : NULL;

	*to = from ? kmemdup(from, len, GFP_KERNEL) : NULL;
	return *to || !from;
}

static bool kofi_each_part(struct fi_info *info, kofi_ptr_fn fn)
{
	bool ok = fn(&info->src_addr, info->src_addrlen);

	ok &= fn(&info->dest_addr, info->dest_addrlen);
	ok &= fn(&info->tx_attr, sizeof(*info->tx_attr));
	ok &= fn(&info->rx_attr, sizeof(*info->rx_attr));
	ok &= fn(&info->ep_attr, sizeof(*info->ep_attr));
	ok &= fn(&info->domain_attr, sizeof(*info->domain_attr));
	ok &= fn(&info->fabric_attr, sizeof(*info->fabric_attr));
	ok &= fn(&info->nic, sizeof(*info->nic));
	return ok;
}

static bool kofi_each_str_of(const struct kofi_struct *type, void *data,
			     kofi_ptr_fn fn)
{
	const struct kofi_field *field;
	bool ok = true;
	char **str;

	for (field = type->fields; data && field->name; field++) {
		str = data + field->offset;
		if (field->show == KOFI_STR && *str)
			ok &= fn(str, strlen(*str) + 1);
	}
	return ok;
}

static bool kofi_each_str(struct fi_info *info, kofi_ptr_fn fn)
{
	struct fid_nic *nic = info->nic;
	bool ok;

	ok = kofi_each_str_of(&kofi_domain_struct, info->domain_attr, fn);
	ok &= kofi_each_str_of(&kofi_fabric_struct, info->fabric_attr, fn);
	if (nic) {
		ok &= kofi_each_str_of(&kofi_device_struct, &nic->device_attr,
				       fn);
		ok &= kofi_each_str_of(&kofi_link_struct, &nic->link_attr, fn);
	}
	return ok;
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
		kofi_each_str(info, kofi_free);
		kofi_each_part(info, kofi_free);
		kfree(info);
	}
}
EXPORT_SYMBOL_NS_GPL(fi_freeinfo, KOFI);

/**
 * fi_dupinfo() - copy one entry, or allocate an empty one
 * @info: the entry, without those that follow it in a list; NULL for an empty entry with
 *	all attributes
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
	struct fi_info *new;
	bool ok;

	new = kmemdup(info ?: &empty, sizeof(*new), GFP_KERNEL);
	if (!new)
		return NULL;
	new->next = NULL;
	/* Go on after a failure: fi_freeinfo() must find no pointer of the original. */
	ok = kofi_each_part(new, kofi_dup);
	ok &= kofi_each_str(new, kofi_dup);
	if (!ok) {
		fi_freeinfo(new);
		return NULL;
	}
	return new;
}
EXPORT_SYMBOL_NS_GPL(fi_dupinfo, KOFI);

/**
 * kofi_hints_addrs() - find the addresses that hints ask for
 * @node: from fi_getinfo()
 * @service: from fi_getinfo()
 * @flags: from fi_getinfo()
 * @hints: from fi_getinfo(), or NULL
 * @len: length of the provider's addresses
 * @src: takes the local address, or NULL
 * @dest: takes the peer's address, or NULL
 *
 * fi_getinfo(3): @node and @service name the local side with FI_SOURCE, otherwise the peer, and
 * then that side's address in the hints doesn't count.
 *
 * Context: Any.
 * Return: 0, or -ENODATA for an address of another length.
 */
int kofi_hints_addrs(const char *node, const char *service, u64 flags,
		     const struct fi_info *hints, size_t len, const void **src, const void **dest)
{
	bool local = flags & FI_SOURCE, peer = !local && (node || service);

	*src = hints && !local ? hints->src_addr : NULL;
	*dest = hints && !peer ? hints->dest_addr : NULL;
	return (*src && hints->src_addrlen != len) ||
	       (*dest && hints->dest_addrlen != len) ? -ENODATA : 0;
}
EXPORT_SYMBOL_NS_GPL(kofi_hints_addrs, KOFI_PROVIDER);

/**
 * kofi_info_set_dest() - set the peer's address in the entries of a list
 * @info: the list, whose entries have no such address
 * @dest: the address, or NULL for none
 * @len: its length
 *
 * Context: Process context; sleeps. Allocates in the caller's scope.
 * Return: 0, or -ENOMEM.
 */
int kofi_info_set_dest(struct fi_info *info, const void *dest, size_t len)
{
	for (; dest && info; info = info->next) {
		info->dest_addr = kmemdup(dest, len, GFP_KERNEL);
		if (!info->dest_addr)
			return -ENOMEM;
		info->dest_addrlen = len;
	}
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kofi_info_set_dest, KOFI_PROVIDER);

/**
 * fi_allocinfo_for() - allocate hints with names (kernel only)
 * @prov: name of the provider, or NULL for any
 * @fabric: name of the fabric, or NULL for any
 * @domain: name of the domain, or NULL for any
 *
 * Copies the names, and is otherwise like fi_allocinfo().
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
	hints->fabric_attr->prov_name = (char *)prov;
	hints->fabric_attr->name = (char *)fabric;
	hints->domain_attr->name = (char *)domain;
	if (!kofi_each_str(hints, kofi_dup)) {
		fi_freeinfo(hints);
		return NULL;
	}
	return hints;
}
EXPORT_SYMBOL_NS_GPL(fi_allocinfo_for, KOFI);
