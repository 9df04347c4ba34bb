// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fi_getinfo(): the core calls every provider, filters and copies the entries, and gives the
 * list back to the provider at once. So the caller's list doesn't need the provider's module.
 */
#define pr_fmt(fmt) "kofi: " fmt

#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "kofi.h"
#include "trace.h"

#define KOFI_GETINFO_FLAGS \
	(FI_SOURCE | FI_NUMERICHOST | FI_PROV_ATTR_ONLY | FI_RESCAN)

/**
 * struct kofi_query - a call of fi_getinfo()
 * @version: API version of the caller
 * @node: address of a peer, or with FI_SOURCE a local device
 * @service: service or port
 * @flags: FI_SOURCE and so on
 * @hints: the caller's hints, or NULL
 * @connector: derives entries for FI_EP_MSG, if the hints ask for them and there is one; or NULL
 * @first: list of the entries found
 * @last: where the pointer to the next entry is stored
 * @failed: error that copying an entry returned, which ends the call; or 0
 */
struct kofi_query {
	u32			version;
	const char		*node;
	const char		*service;
	u64			flags;
	const struct fi_info	*hints;
	const struct kofi_connector *connector;
	struct fi_info		*first;
	struct fi_info		**last;
	int			failed;
};

/**
 * fi_version() - version of the API
 *
 * Context: Any.
 * Return: the version, by FI_VERSION().
 */
u32 fi_version(void)
{
	return KOFI_API_VERSION;
}
EXPORT_SYMBOL_NS_GPL(fi_version, KOFI);

static bool kofi_entry_whole(const struct fi_info *info)
{
	return info->tx_attr && info->rx_attr && info->ep_attr &&
	       info->domain_attr && info->fabric_attr;
}

/* Return: whether an entry matches the hints. If not, the log and the trace say why. */
static bool kofi_entry_serves(const struct kofi_query *query, const struct fi_info *info)
{
	const char *fabric = info->fabric_attr->name, *domain = info->domain_attr->name;
	const char *provider = info->fabric_attr->prov_name;
	struct kofi_mismatch why = { };

	if (kofi_info_serves(info, query->hints, &why)) {
		trace_kofi_getinfo_entry(provider, fabric, domain, NULL);
		return true;
	}
	trace_kofi_getinfo_entry(provider, fabric, domain, &why);
	pr_debug("fi_getinfo: provider %s, fabric %s, domain %s: %s.%s is %s, the hints have %s\n",
		 provider, fabric, domain, why.type, why.field, why.offer, why.hint);
	return false;
}

/* The core fills in the provider's name and version, whatever the provider returned. */
static int kofi_add_entry(struct kofi_query *query,
			  const struct kofi_provider *provider,
			  const struct fi_info *info)
{
	struct fi_info *new = fi_dupinfo(info);

	if (!new)
		return -ENOMEM;
	kfree(new->fabric_attr->prov_name);
	new->fabric_attr->prov_name = kstrdup(provider->name, GFP_KERNEL);
	if (!new->fabric_attr->prov_name) {
		fi_freeinfo(new);
		return -ENOMEM;
	}
	new->fabric_attr->prov_version = provider->version;
	if (info) {
		if (!kofi_entry_serves(query, new)) {
			fi_freeinfo(new);
			return 0;
		}
		kofi_info_narrow(new, query->hints);
	}
	new->fabric_attr->api_version = query->version;
	*query->last = new;
	query->last = &new->next;
	return 0;
}

/* Add the entry of connected endpoints over the unconnected ones of another entry. */
static int kofi_add_derived(struct kofi_query *query, const struct kofi_provider *provider,
			    const struct fi_info *info)
{
	struct fi_info *derived = NULL;
	int ret;

	ret = query->connector->derive(info, query->node, query->service, query->flags,
				       query->hints, &derived);
	if (!ret)
		ret = kofi_add_entry(query, provider, derived);
	fi_freeinfo(derived);
	return ret == -ENODATA ? 0 : ret;
}

static int kofi_add_list(struct kofi_query *query,
			 const struct kofi_provider *provider,
			 const struct fi_info *info, bool derive)
{
	int ret = 0;

	for (; info && !ret; info = info->next)
		if (kofi_entry_whole(info))
			ret = (derive ? kofi_add_derived : kofi_add_entry)(query, provider, info);
		else
			pr_err_ratelimited("provider %s: an entry of its getinfo lacks attributes and is ignored\n",
					   provider->name);
	return ret;
}

static int kofi_ask(struct kofi_query *query,
		    const struct kofi_provider *provider)
{
	const bool derive = query->connector && provider->lanes;
	struct fi_info *list = NULL;
	int ret;

	if (query->flags & FI_PROV_ATTR_ONLY) {
		query->failed = kofi_add_entry(query, provider, NULL);
		return 0;
	}
	/* Addresses and hints are about connections, which the provider doesn't know. */
	if (derive)
		ret = provider->getinfo(query->version, NULL, NULL, query->flags & FI_RESCAN, NULL,
					&list);
	else
		ret = provider->getinfo(query->version, query->node, query->service,
					query->flags, query->hints, &list);
	trace_kofi_getinfo_provider(provider->name, ret);
	if (ret)
		pr_debug("fi_getinfo: provider %s has no entry: error %d\n", provider->name, ret);
	/* Don't trust the list of a provider that failed. */
	if (ret || !list)
		return ret;
	query->failed = kofi_add_list(query, provider, list, derive);
	provider->freeinfo(list);
	return 0;
}

/* One provider's failure must not hide the entries of another. */
static int kofi_ask_all(struct kofi_query *query)
{
	const char *name = query->hints && query->hints->fabric_attr ?
			   query->hints->fabric_attr->prov_name : NULL;
	struct kofi_reg *reg = kofi_reg_get(name);
	int failed = 0, ret;

	if (!reg)
		trace_kofi_getinfo_provider(name ?: "", -ENODEV);
	while (reg) {
		ret = kofi_ask(query, reg->provider);
		if (ret && ret != -ENODATA && !failed)
			failed = ret;
		if (name || query->failed) {
			kofi_reg_put(reg);
			break;
		}
		reg = kofi_reg_next(reg);
	}
	if (query->failed)
		return query->failed;
	return query->first ? 0 : failed ?: -ENODATA;
}

/**
 * fi_getinfo() - find ways to communicate
 * @version: API version that the caller was written for, FI_VERSION(2, 0)
 * @node: a peer's address as text, as fi_av_straddr() prints it; with FI_SOURCE the name of a local
 *	device, or its address; or NULL. For FI_EP_MSG an IP address
 * @service: for FI_EP_MSG a TCP port; or NULL
 * @flags: FI_SOURCE, FI_NUMERICHOST, FI_PROV_ATTR_ONLY, FI_RESCAN
 * @hints: requirements of the caller, or NULL for all entries
 * @info: takes a list, for fi_freeinfo()
 *
 * Loads the provider that the hints name, if necessary. Entries come in the order in which
 * providers were registered. Hints with FI_EP_MSG load the module for connections. Names of hosts
 * aren't resolved. For a peer, the entries have a
 * dest_addr, which the caller passes to fi_av_insert(). fi_getinfo(3).
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -ENODATA when nothing matches (a pr_debug() and a tracepoint say why), -EINVAL,
 * -FI_EBADFLAGS, -ENOSYS for an API version newer than this one, -EDEADLK, -ENOMEM, or a
 * provider's error if no other had an entry.
 */
int fi_getinfo(u32 version, const char *node, const char *service, u64 flags,
	       const struct fi_info *hints, struct fi_info **info)
{
	struct kofi_query query = {
		.version	= version,
		.node		= node,
		.service	= service,
		.flags		= flags,
		.hints		= hints,
	};
	int ret;

	might_sleep();
	if (!info)
		return -EINVAL;
	*info = NULL;
	if (kofi_in_handler())
		return -EDEADLK;
	if (flags & ~KOFI_GETINFO_FLAGS)
		return -FI_EBADFLAGS;
	if (flags & FI_SOURCE && !node && !service)
		return -EINVAL;
	if (FI_VERSION_LT(fi_version(), version))
		return -ENOSYS;
	query.last = &query.first;
	if (hints && hints->ep_attr && hints->ep_attr->type == FI_EP_MSG)
		query.connector = kofi_connector_get();
	ret = kofi_ask_all(&query);
	kofi_connector_put(query.connector);
	if (ret)
		fi_freeinfo(query.first);
	else
		*info = query.first;
	return ret;
}
EXPORT_SYMBOL_NS_GPL(fi_getinfo, KOFI);
