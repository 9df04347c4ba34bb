// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Entries of fi_getinfo(), made of those of unconnected endpoints; and IP addresses. */
#include <linux/inet.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include "msg.h"

/* Capabilities that a lane needs. */
#define KMSG_LANE_CAPS	(FI_TAGGED | FI_SEND | FI_RECV)

/**
 * kmsg_addr_len() - length of an address
 * @addr: IPv4 or IPv6
 *
 * Return: the length in bytes.
 */
size_t kmsg_addr_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					     sizeof(struct sockaddr_in);
}

static u32 kmsg_addr_format(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
}

/**
 * kmsg_addr_get() - read an address of a ULP
 * @format: its format
 * @addr: the address
 * @len: bytes that there are, at least those that the format has
 * @to: takes the address, the rest is zeroed
 *
 * Return: 0 or -EINVAL.
 */
int kmsg_addr_get(u32 format, const void *addr, size_t len, struct sockaddr_storage *to)
{
	const sa_family_t *family = addr;

	memset(to, 0, sizeof(*to));
	if (len < sizeof(*family) || (*family != AF_INET && *family != AF_INET6))
		return -EINVAL;
	to->ss_family = *family;
	if (len < kmsg_addr_len(to) ||
	    (format != FI_SOCKADDR && format != kmsg_addr_format(to)))
		return -EINVAL;
	memcpy(to, addr, kmsg_addr_len(to));
	/* Services are told apart by their addresses, so these have no other bits. */
	if (to->ss_family == AF_INET)
		memset(((struct sockaddr_in *)to)->sin_zero, 0,
		       sizeof(((struct sockaddr_in *)to)->sin_zero));
	else
		((struct sockaddr_in6 *)to)->sin6_flowinfo = 0;
	return 0;
}

/**
 * kmsg_set_addr() - store an address in an entry
 * @addr: takes the address; an earlier one is freed
 * @len: takes its length
 * @from: the address, or AF_UNSPEC for none
 *
 * Return: 0 or -ENOMEM.
 */
int kmsg_set_addr(void **addr, size_t *len, const struct sockaddr_storage *from)
{
	kfree(*addr);
	*addr = NULL;
	*len = 0;
	if (from->ss_family == AF_UNSPEC)
		return 0;
	*addr = kmemdup(from, kmsg_addr_len(from), GFP_KERNEL);
	if (!*addr)
		return -ENOMEM;
	*len = kmsg_addr_len(from);
	return 0;
}

static int kmsg_hint(const struct fi_info *hints, const void *addr, size_t len,
		     struct sockaddr_storage *to)
{
	return addr ? kmsg_addr_get(hints->addr_format ?: FI_SOCKADDR, addr, len, to) : 0;
}

/* Find the addresses of both sides. One that isn't given has AF_UNSPEC. */
static int kmsg_addrs(const char *node, const char *service, u64 flags,
		      const struct fi_info *hints, struct sockaddr_storage *src,
		      struct sockaddr_storage *dest)
{
	const bool v6 = hints->addr_format == FI_SOCKADDR_IN6, local = flags & FI_SOURCE;
	int ret = 0;

	memset(src, 0, sizeof(*src));
	memset(dest, 0, sizeof(*dest));
	/* Without a node, a service is one of this machine. */
	if (node || service)
		ret = inet_pton_with_scope(&init_net, AF_UNSPEC, node ?: v6 ? "::" : "0.0.0.0",
					   service, local || !node ? src : dest);
	if (ret)
		return -EINVAL;
	if (src->ss_family == AF_UNSPEC)
		ret = kmsg_hint(hints, hints->src_addr, hints->src_addrlen, src);
	if (!ret && dest->ss_family == AF_UNSPEC)
		ret = kmsg_hint(hints, hints->dest_addr, hints->dest_addrlen, dest);
	if (ret)
		return ret;
	return src->ss_family && dest->ss_family && src->ss_family != dest->ss_family ?
	       -EINVAL : 0;
}

static bool kmsg_can_carry(const struct fi_info *info)
{
	return info->ep_attr->type == FI_EP_RDM &&
	       (info->caps & KMSG_LANE_CAPS) == KMSG_LANE_CAPS &&
	       info->tx_attr->msg_order & info->rx_attr->msg_order & FI_ORDER_SAS;
}

static void kmsg_fill(struct fi_info *info)
{
	const u64 both = FI_MSG | KMSG_CAPS;

	info->caps = FI_MSG | (info->caps & KMSG_CAPS);
	info->tx_attr->caps = (FI_MSG | info->tx_attr->caps) & both & ~FI_RECV;
	info->rx_attr->caps = (FI_MSG | info->rx_attr->caps) & both & ~FI_SEND;
	info->rx_attr->op_flags &= ~FI_MULTI_RECV;
	info->ep_attr->type = FI_EP_MSG;
	info->ep_attr->protocol = FI_PROTO_KOFI_MSG;
	info->ep_attr->protocol_version = 1;
	info->ep_attr->mem_tag_format = 0;
}

/**
 * kmsg_derive() - make an entry for connections
 * @info: entry of unconnected endpoints
 * @node: from fi_getinfo(), a numeric address
 * @service: from fi_getinfo(), a port
 * @flags: from fi_getinfo()
 * @hints: from fi_getinfo()
 * @derived: takes the entry
 *
 * Return: 0, -ENODATA, -EINVAL for an address that isn't numeric, -ENOMEM.
 */
int kmsg_derive(const struct fi_info *info, const char *node, const char *service, u64 flags,
		const struct fi_info *hints, struct fi_info **derived)
{
	struct sockaddr_storage src, dest;
	struct fi_info *new;
	int ret;

	if (!kmsg_can_carry(info))
		return -ENODATA;
	ret = kmsg_addrs(node, service, flags, hints, &src, &dest);
	if (ret)
		return ret;
	new = fi_dupinfo(info);
	if (!new)
		return -ENOMEM;
	kmsg_fill(new);
	new->addr_format = src.ss_family ? kmsg_addr_format(&src) :
			   dest.ss_family ? kmsg_addr_format(&dest) :
			   hints->addr_format == FI_SOCKADDR_IN6 ? FI_SOCKADDR_IN6 :
								  FI_SOCKADDR_IN;
	ret = kmsg_set_addr(&new->src_addr, &new->src_addrlen, &src) ?:
	      kmsg_set_addr(&new->dest_addr, &new->dest_addrlen, &dest);
	if (ret)
		fi_freeinfo(new);
	else
		*derived = new;
	return ret;
}
