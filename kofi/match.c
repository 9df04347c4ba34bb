// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What hints mean, fi_getinfo(3): which entries serve a caller, and what such an
 * entry then promises. Pure functions. A field of hints that is zero, and an
 * attribute that isn't there, ask for nothing.
 */
#include <linux/string.h>
#include "kofi.h"

#define KOFI_MSG_DIRS	(FI_SEND | FI_RECV)
#define KOFI_RMA_DIRS	(FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* These are there if asked for; other capabilities are there if they're free. */
#define KOFI_PRIMARY	(FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | \
			 FI_DIRECTED_RECV | KOFI_MSG_DIRS | KOFI_RMA_DIRS)

/* Capabilities that say nothing about the other side of an endpoint. */
#define KOFI_RX_ONLY	(FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | \
			 FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT | \
			 FI_DIRECTED_RECV)
#define KOFI_TX_ONLY	(FI_SEND | FI_READ | FI_WRITE | FI_FENCE)

/* Registration modes that only matter to the target of RMA. */
#define KOFI_MR_TARGET	(FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | \
			 FI_MR_RMA_EVENT)

#define KOFI_LACKS_BITS(have, want, field) ((want)->field & ~(have)->field)
#define KOFI_TOO_SMALL(have, want, field) ((want)->field > (have)->field)
#define KOFI_DIFFERS(have, want, field) \
	((want)->field && (want)->field != (have)->field)

/* A caller that can do with less serialization, or less automation, is served. */
static int kofi_thread_level(enum fi_threading threading)
{
	switch (threading) {
	case FI_THREAD_SAFE:
		return 1;
	case FI_THREAD_FID:
	case FI_THREAD_ENDPOINT:
	case FI_THREAD_COMPLETION:
		return 2;
	case FI_THREAD_DOMAIN:
		return 3;
	default:
		return 4;
	}
}

static int kofi_progress_level(enum fi_progress progress)
{
	return progress == FI_PROGRESS_UNSPEC ? FI_PROGRESS_CONTROL_UNIFIED + 1 :
						(int)progress;
}

static int kofi_rm_level(enum fi_resource_mgmt rm)
{
	switch (rm) {
	case FI_RM_ENABLED:
		return 1;
	case FI_RM_DISABLED:
		return 2;
	default:
		return 3;
	}
}

static bool kofi_name_differs(const char *have, const char *want)
{
	return want && (!have || strcasecmp(have, want));
}

static const char *kofi_fabric_mismatch(const struct fi_fabric_attr *have,
					const struct fi_fabric_attr *want)
{
	if (kofi_name_differs(have->prov_name, want->prov_name))
		return "fabric_attr.prov_name";
	if (kofi_name_differs(have->name, want->name))
		return "fabric_attr.name";
	if (KOFI_TOO_SMALL(have, want, prov_version))
		return "fabric_attr.prov_version";
	return NULL;
}

static u32 kofi_needed_mr_mode(u32 mr_mode, u64 caps)
{
	if (caps && !(caps & (FI_RMA | FI_ATOMIC)))
		mr_mode &= ~KOFI_MR_TARGET;
	return mr_mode;
}

static const char *kofi_domain_mismatch(const struct fi_domain_attr *have,
					const struct fi_domain_attr *want,
					u64 caps)
{
	u32 mr_mode = kofi_needed_mr_mode(have->mr_mode, caps);

	if (kofi_name_differs(have->name, want->name))
		return "domain_attr.name";
	if (kofi_thread_level(want->threading) <
	    kofi_thread_level(have->threading))
		return "domain_attr.threading";
	if (kofi_progress_level(want->control_progress) <
	    kofi_progress_level(have->control_progress))
		return "domain_attr.control_progress";
	if (kofi_progress_level(want->data_progress) <
	    kofi_progress_level(have->data_progress))
		return "domain_attr.data_progress";
	if (kofi_rm_level(want->resource_mgmt) <
	    kofi_rm_level(have->resource_mgmt))
		return "domain_attr.resource_mgmt";
	if (have->av_type && KOFI_DIFFERS(have, want, av_type))
		return "domain_attr.av_type";
	if (want->mr_mode && mr_mode & ~want->mr_mode)
		return "domain_attr.mr_mode";
	if (KOFI_TOO_SMALL(have, want, mr_key_size))
		return "domain_attr.mr_key_size";
	if (KOFI_TOO_SMALL(have, want, cq_data_size))
		return "domain_attr.cq_data_size";
	if (KOFI_TOO_SMALL(have, want, ep_cnt))
		return "domain_attr.ep_cnt";
	if (KOFI_TOO_SMALL(have, want, cntr_cnt))
		return "domain_attr.cntr_cnt";
	if (KOFI_TOO_SMALL(have, want, mr_iov_limit))
		return "domain_attr.mr_iov_limit";
	if (KOFI_TOO_SMALL(have, want, mr_cnt))
		return "domain_attr.mr_cnt";
	if (KOFI_TOO_SMALL(have, want, max_err_data))
		return "domain_attr.max_err_data";
	if (KOFI_LACKS_BITS(have, want, caps))
		return "domain_attr.caps";
	if (want->mode && have->mode & ~want->mode)
		return "domain_attr.mode";
	return NULL;
}

static const char *kofi_ep_mismatch(const struct fi_info *info,
				    const struct fi_info *hints)
{
	const struct fi_ep_attr *have = info->ep_attr, *want = hints->ep_attr;
	const struct fi_domain_attr *domain = info->domain_attr;

	if (have->type && KOFI_DIFFERS(have, want, type))
		return "ep_attr.type";
	if (KOFI_DIFFERS(have, want, protocol))
		return "ep_attr.protocol";
	if (KOFI_TOO_SMALL(have, want, protocol_version))
		return "ep_attr.protocol_version";
	if (KOFI_TOO_SMALL(have, want, max_msg_size))
		return "ep_attr.max_msg_size";
	if (want->tx_ctx_cnt > domain->max_ep_tx_ctx)
		return "ep_attr.tx_ctx_cnt";
	if (want->rx_ctx_cnt > domain->max_ep_rx_ctx)
		return "ep_attr.rx_ctx_cnt";
	if (hints->caps & FI_TAGGED &&
	    KOFI_TOO_SMALL(have, want, mem_tag_format))
		return "ep_attr.mem_tag_format";
	if (!(hints->caps & (FI_RMA | FI_ATOMIC)))
		return NULL;
	if (KOFI_TOO_SMALL(have, want, max_order_raw_size))
		return "ep_attr.max_order_raw_size";
	if (KOFI_TOO_SMALL(have, want, max_order_war_size))
		return "ep_attr.max_order_war_size";
	if (KOFI_TOO_SMALL(have, want, max_order_waw_size))
		return "ep_attr.max_order_waw_size";
	return NULL;
}

static const char *kofi_tx_mismatch(const struct fi_tx_attr *have,
				    const struct fi_tx_attr *want, u64 mode)
{
	if (want->caps & ~have->caps & ~KOFI_RX_ONLY)
		return "tx_attr.caps";
	if (have->mode & ~(want->mode ?: mode))
		return "tx_attr.mode";
	if (KOFI_LACKS_BITS(have, want, op_flags))
		return "tx_attr.op_flags";
	if (KOFI_LACKS_BITS(have, want, msg_order))
		return "tx_attr.msg_order";
	if (KOFI_LACKS_BITS(have, want, comp_order))
		return "tx_attr.comp_order";
	if (KOFI_TOO_SMALL(have, want, inject_size))
		return "tx_attr.inject_size";
	if (KOFI_TOO_SMALL(have, want, size))
		return "tx_attr.size";
	if (KOFI_TOO_SMALL(have, want, iov_limit))
		return "tx_attr.iov_limit";
	if (KOFI_TOO_SMALL(have, want, rma_iov_limit))
		return "tx_attr.rma_iov_limit";
	return NULL;
}

static const char *kofi_rx_mismatch(const struct fi_rx_attr *have,
				    const struct fi_rx_attr *want, u64 mode)
{
	if (want->caps & ~have->caps & ~KOFI_TX_ONLY)
		return "rx_attr.caps";
	if (have->mode & ~(want->mode ?: mode))
		return "rx_attr.mode";
	if (KOFI_LACKS_BITS(have, want, op_flags))
		return "rx_attr.op_flags";
	if (KOFI_LACKS_BITS(have, want, msg_order))
		return "rx_attr.msg_order";
	if (KOFI_LACKS_BITS(have, want, comp_order))
		return "rx_attr.comp_order";
	if (KOFI_TOO_SMALL(have, want, size))
		return "rx_attr.size";
	if (KOFI_TOO_SMALL(have, want, iov_limit))
		return "rx_attr.iov_limit";
	return NULL;
}

static bool kofi_addr_format_ok(u32 have, u32 want)
{
	if (!want || !have || want == have)
		return true;
	return want == FI_SOCKADDR &&
	       (have == FI_SOCKADDR_IN || have == FI_SOCKADDR_IN6);
}

/**
 * kofi_info_mismatch() - does an entry serve a caller?
 * @info: a provider's entry, with all its attributes
 * @hints: what the caller asked for, or NULL
 *
 * Context: Any.
 * Return: NULL if it does, else the name of the first field that says no.
 */
const char *kofi_info_mismatch(const struct fi_info *info,
			       const struct fi_info *hints)
{
	const char *why = NULL;

	if (!hints)
		return NULL;
	if (KOFI_LACKS_BITS(info, hints, caps))
		return "caps";
	if (info->mode & ~hints->mode)
		return "mode";
	if (!kofi_addr_format_ok(info->addr_format, hints->addr_format))
		return "addr_format";
	if (hints->fabric_attr)
		why = kofi_fabric_mismatch(info->fabric_attr,
					   hints->fabric_attr);
	if (!why && hints->domain_attr)
		why = kofi_domain_mismatch(info->domain_attr,
					   hints->domain_attr, hints->caps);
	if (!why && hints->ep_attr)
		why = kofi_ep_mismatch(info, hints);
	if (!why && hints->tx_attr)
		why = kofi_tx_mismatch(info->tx_attr, hints->tx_attr,
				       hints->mode);
	if (!why && hints->rx_attr)
		why = kofi_rx_mismatch(info->rx_attr, hints->rx_attr,
				       hints->mode);
	return why;
}

/* Of what there is, the part that was asked for, and what comes with it. */
static u64 kofi_narrow_caps(u64 info_caps, u64 want, u64 have)
{
	u64 caps;

	if (want)
		caps = (want & KOFI_PRIMARY & have) | (want & have & FI_SOURCE) |
		       (have & ~KOFI_PRIMARY & ~FI_SOURCE);
	else
		caps = (info_caps & have & KOFI_PRIMARY) |
		       (have & ~KOFI_PRIMARY);
	if (caps & (FI_MSG | FI_TAGGED) && !(caps & KOFI_MSG_DIRS))
		caps |= have & KOFI_MSG_DIRS;
	if (caps & (FI_RMA | FI_ATOMIC) && !(caps & KOFI_RMA_DIRS))
		caps |= have & KOFI_RMA_DIRS;
	return caps;
}

static void kofi_narrow_domain(struct fi_domain_attr *attr,
			       const struct fi_domain_attr *hints, u64 caps)
{
	attr->mr_mode = kofi_needed_mr_mode(attr->mr_mode, caps);
	if (!hints)
		return;
	if (hints->threading)
		attr->threading = hints->threading;
	if (hints->control_progress)
		attr->control_progress = hints->control_progress;
	if (hints->data_progress)
		attr->data_progress = hints->data_progress;
	if (hints->resource_mgmt)
		attr->resource_mgmt = hints->resource_mgmt;
	if (hints->av_type)
		attr->av_type = hints->av_type;
}

static void kofi_narrow_ep(struct fi_ep_attr *attr,
			   const struct fi_ep_attr *hints)
{
	if (hints->max_order_raw_size)
		attr->max_order_raw_size = hints->max_order_raw_size;
	if (hints->max_order_war_size)
		attr->max_order_war_size = hints->max_order_war_size;
	if (hints->max_order_waw_size)
		attr->max_order_waw_size = hints->max_order_waw_size;
	if (hints->tx_ctx_cnt)
		attr->tx_ctx_cnt = hints->tx_ctx_cnt;
	if (hints->rx_ctx_cnt)
		attr->rx_ctx_cnt = hints->rx_ctx_cnt;
}

static void kofi_narrow_tx(struct fi_tx_attr *attr,
			   const struct fi_tx_attr *hints)
{
	attr->op_flags = hints->op_flags;
	if (hints->inject_size)
		attr->inject_size = hints->inject_size;
	if (hints->size)
		attr->size = hints->size;
	if (hints->iov_limit)
		attr->iov_limit = hints->iov_limit;
	if (hints->rma_iov_limit)
		attr->rma_iov_limit = hints->rma_iov_limit;
}

static void kofi_narrow_rx(struct fi_rx_attr *attr,
			   const struct fi_rx_attr *hints)
{
	attr->op_flags = hints->op_flags;
	if (hints->size)
		attr->size = hints->size;
	if (hints->iov_limit)
		attr->iov_limit = hints->iov_limit;
}

/**
 * kofi_info_narrow() - have an entry promise what was asked for, not more
 * @info: a copy of an entry that serves the caller
 * @hints: what the caller asked for, or NULL
 *
 * Context: Any.
 */
void kofi_info_narrow(struct fi_info *info, const struct fi_info *hints)
{
	const struct fi_tx_attr *tx = hints ? hints->tx_attr : NULL;
	const struct fi_rx_attr *rx = hints ? hints->rx_attr : NULL;

	info->caps = kofi_narrow_caps(info->caps, hints ? hints->caps : 0,
				      info->caps);
	info->tx_attr->caps = kofi_narrow_caps(info->caps, tx ? tx->caps : 0,
					       info->tx_attr->caps);
	info->rx_attr->caps = kofi_narrow_caps(info->caps, rx ? rx->caps : 0,
					       info->rx_attr->caps);
	kofi_narrow_domain(info->domain_attr, hints ? hints->domain_attr : NULL,
			   info->caps);
	if (hints && hints->ep_attr)
		kofi_narrow_ep(info->ep_attr, hints->ep_attr);
	if (tx)
		kofi_narrow_tx(info->tx_attr, tx);
	if (rx)
		kofi_narrow_rx(info->rx_attr, rx);
}
