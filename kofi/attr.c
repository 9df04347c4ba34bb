// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Description of the API's structures, one row per field: see attr.h. */
#include "attr.h"
#include "kofi.h"

#define NAME(x)		{ .value = x, .name = #x }
#define LEVEL(x, l)	{ .value = x, .name = #x, .level = l }

const struct kofi_name kofi_caps[] = {
	NAME(FI_MSG), NAME(FI_RMA), NAME(FI_TAGGED), NAME(FI_ATOMIC), NAME(FI_READ),
	NAME(FI_WRITE), NAME(FI_RECV), NAME(FI_SEND), NAME(FI_REMOTE_READ),
	NAME(FI_REMOTE_WRITE), NAME(FI_MULTI_RECV), NAME(FI_FENCE), NAME(FI_SOURCE_ERR),
	NAME(FI_LOCAL_COMM), NAME(FI_REMOTE_COMM), NAME(FI_RMA_EVENT), NAME(FI_SOURCE),
	NAME(FI_DIRECTED_RECV), {}
};

const struct kofi_name kofi_op_flags[] = {
	NAME(FI_MULTI_RECV), NAME(FI_REMOTE_CQ_DATA), NAME(FI_MORE), NAME(FI_PEEK),
	NAME(FI_FENCE), NAME(FI_COMPLETION), NAME(FI_INJECT), NAME(FI_INJECT_COMPLETE),
	NAME(FI_TRANSMIT_COMPLETE), NAME(FI_DELIVERY_COMPLETE), NAME(FI_DISCARD), NAME(FI_CLAIM),
	{}
};

const struct kofi_name kofi_cq_flags[] = {
	NAME(FI_MSG), NAME(FI_RMA), NAME(FI_TAGGED), NAME(FI_ATOMIC), NAME(FI_READ),
	NAME(FI_WRITE), NAME(FI_RECV), NAME(FI_SEND), NAME(FI_REMOTE_READ),
	NAME(FI_REMOTE_WRITE), NAME(FI_MULTI_RECV), NAME(FI_REMOTE_CQ_DATA), NAME(FI_MORE),
	NAME(FI_CLAIM), {}
};

const struct kofi_name kofi_modes[] = {
	NAME(FI_CONTEXT), NAME(FI_MSG_PREFIX), NAME(FI_RX_CQ_DATA), NAME(FI_CONTEXT2), {}
};

const struct kofi_name kofi_mr_modes[] = {
	NAME(FI_MR_LOCAL), NAME(FI_MR_RAW), NAME(FI_MR_VIRT_ADDR), NAME(FI_MR_ALLOCATED),
	NAME(FI_MR_PROV_KEY), NAME(FI_MR_RMA_EVENT), NAME(FI_MR_ENDPOINT), {}
};

const struct kofi_name kofi_orders[] = {
	NAME(FI_ORDER_RAR), NAME(FI_ORDER_RAW), NAME(FI_ORDER_RAS), NAME(FI_ORDER_WAR),
	NAME(FI_ORDER_WAW), NAME(FI_ORDER_WAS), NAME(FI_ORDER_SAR), NAME(FI_ORDER_SAW),
	NAME(FI_ORDER_SAS), NAME(FI_ORDER_ATOMIC_RAR), NAME(FI_ORDER_ATOMIC_RAW),
	NAME(FI_ORDER_ATOMIC_WAR), NAME(FI_ORDER_ATOMIC_WAW), {}
};

const struct kofi_name kofi_addr_formats[] = {
	NAME(FI_FORMAT_UNSPEC), NAME(FI_SOCKADDR), NAME(FI_SOCKADDR_IN), NAME(FI_SOCKADDR_IN6),
	NAME(FI_ADDR_STR), NAME(FI_ADDR_EFA), {}
};

const struct kofi_name kofi_protocols[] = {
	NAME(FI_PROTO_UNSPEC), NAME(FI_PROTO_EFA), NAME(FI_PROTO_KOFI_MSG), {}
};

const struct kofi_name kofi_ep_types[] = {
	NAME(FI_EP_UNSPEC), NAME(FI_EP_MSG), NAME(FI_EP_DGRAM), NAME(FI_EP_RDM), {}
};

const struct kofi_name kofi_threadings[] = {
	LEVEL(FI_THREAD_UNSPEC, 4), LEVEL(FI_THREAD_SAFE, 1), LEVEL(FI_THREAD_FID, 2),
	LEVEL(FI_THREAD_ENDPOINT, 2), LEVEL(FI_THREAD_COMPLETION, 2), LEVEL(FI_THREAD_DOMAIN, 3),
	{}
};

const struct kofi_name kofi_progresses[] = {
	LEVEL(FI_PROGRESS_UNSPEC, 4), LEVEL(FI_PROGRESS_AUTO, 1), LEVEL(FI_PROGRESS_MANUAL, 2),
	LEVEL(FI_PROGRESS_CONTROL_UNIFIED, 3), {}
};

const struct kofi_name kofi_rms[] = {
	LEVEL(FI_RM_UNSPEC, 3), LEVEL(FI_RM_DISABLED, 2), LEVEL(FI_RM_ENABLED, 1), {}
};

const struct kofi_name kofi_av_types[] = {
	NAME(FI_AV_UNSPEC), NAME(FI_AV_MAP), NAME(FI_AV_TABLE), {}
};

const struct kofi_name kofi_eq_events[] = {
	NAME(FI_NOTIFY), NAME(FI_CONNREQ), NAME(FI_CONNECTED), NAME(FI_SHUTDOWN),
	NAME(FI_DEVICE_REMOVED), NAME(FI_DEVICE_ARRIVED), {}
};

const struct kofi_name kofi_datatypes[] = {
	NAME(FI_INT8), NAME(FI_UINT8), NAME(FI_INT16), NAME(FI_UINT16), NAME(FI_INT32),
	NAME(FI_UINT32), NAME(FI_INT64), NAME(FI_UINT64), NAME(FI_FLOAT), NAME(FI_DOUBLE),
	NAME(FI_FLOAT_COMPLEX), NAME(FI_DOUBLE_COMPLEX), NAME(FI_LONG_DOUBLE),
	NAME(FI_LONG_DOUBLE_COMPLEX), NAME(FI_INT128), NAME(FI_UINT128), {}
};

const struct kofi_name kofi_atomic_ops[] = {
	NAME(FI_MIN), NAME(FI_MAX), NAME(FI_SUM), NAME(FI_PROD), NAME(FI_LOR), NAME(FI_LAND),
	NAME(FI_BOR), NAME(FI_BAND), NAME(FI_LXOR), NAME(FI_BXOR), NAME(FI_ATOMIC_READ),
	NAME(FI_ATOMIC_WRITE), NAME(FI_CSWAP), NAME(FI_CSWAP_NE), NAME(FI_CSWAP_LE),
	NAME(FI_CSWAP_LT), NAME(FI_CSWAP_GE), NAME(FI_CSWAP_GT), NAME(FI_MSWAP), {}
};

static const struct kofi_name kofi_links[] = {
	{ .value = false, .name = "FI_LINK_DOWN" }, { .value = true, .name = "FI_LINK_UP" }, {}
};

#define MEMBERS(n, t, ...)						\
	const struct kofi_struct kofi_##n##_struct = {			\
		t, (const struct kofi_field[]) { __VA_ARGS__, {} }	\
	}

#define FIELD(type, member, how, ...)					\
	{ .name = #member, .offset = offsetof(struct type, member),	\
	  .size = sizeof_field(struct type, member), .show = KOFI_##how,	\
	  __VA_ARGS__ }

/* A limit: an entry doesn't match a larger hint, and is reduced to a smaller one. */
#define LIMIT		.rule = KOFI_MAX, .take = true
#define WITH(n)		.names = kofi_##n

#define TX(...) FIELD(fi_tx_attr, __VA_ARGS__)
MEMBERS(tx, "fi_tx_attr",
	TX(caps, BITS, WITH(caps)), TX(mode, BITS, WITH(modes)),
	TX(op_flags, BITS, WITH(op_flags), .rule = KOFI_SUBSET),
	TX(msg_order, BITS, WITH(orders), .rule = KOFI_SUBSET),
	TX(comp_order, BITS, WITH(orders), .rule = KOFI_SUBSET), TX(inject_size, NUM, LIMIT),
	TX(size, NUM, LIMIT), TX(iov_limit, NUM, LIMIT), TX(rma_iov_limit, NUM, LIMIT));

#define RX(...) FIELD(fi_rx_attr, __VA_ARGS__)
MEMBERS(rx, "fi_rx_attr",
	RX(caps, BITS, WITH(caps)), RX(mode, BITS, WITH(modes)),
	RX(op_flags, BITS, WITH(op_flags), .rule = KOFI_SUBSET),
	RX(msg_order, BITS, WITH(orders), .rule = KOFI_SUBSET),
	RX(comp_order, BITS, WITH(orders), .rule = KOFI_SUBSET), RX(size, NUM, LIMIT),
	RX(iov_limit, NUM, LIMIT));

#define EP(...) FIELD(fi_ep_attr, __VA_ARGS__)
MEMBERS(ep, "fi_ep_attr",
	EP(type, ENUM, WITH(ep_types), .rule = KOFI_SAME),
	EP(protocol, ENUM, WITH(protocols), .rule = KOFI_IS),
	EP(protocol_version, NUM, .rule = KOFI_MAX), EP(max_msg_size, NUM, .rule = KOFI_MAX),
	EP(msg_prefix_size, NUM), EP(max_order_raw_size, NUM, LIMIT),
	EP(max_order_war_size, NUM, LIMIT), EP(max_order_waw_size, NUM, LIMIT),
	EP(mem_tag_format, HEX), EP(tx_ctx_cnt, NUM, LIMIT),
	EP(rx_ctx_cnt, NUM, LIMIT));

#define DOM(...) FIELD(fi_domain_attr, __VA_ARGS__)
#define BEST	.rule = KOFI_LEVEL, .take = true
MEMBERS(domain, "fi_domain_attr",
	DOM(name, STR, .rule = KOFI_IS), DOM(threading, ENUM, WITH(threadings), BEST),
	DOM(control_progress, ENUM, WITH(progresses), BEST),
	DOM(data_progress, ENUM, WITH(progresses), BEST),
	DOM(resource_mgmt, ENUM, WITH(rms), BEST),
	DOM(av_type, ENUM, WITH(av_types)),
	DOM(mr_mode, BITS, WITH(mr_modes)), DOM(mr_key_size, NUM, .rule = KOFI_MAX),
	DOM(cq_data_size, NUM, .rule = KOFI_MAX), DOM(cq_cnt, NUM),
	DOM(ep_cnt, NUM, .rule = KOFI_MAX), DOM(tx_ctx_cnt, NUM), DOM(rx_ctx_cnt, NUM),
	DOM(max_ep_tx_ctx, NUM), DOM(max_ep_rx_ctx, NUM), DOM(cntr_cnt, NUM, .rule = KOFI_MAX),
	DOM(mr_iov_limit, NUM, .rule = KOFI_MAX),
	DOM(caps, BITS, WITH(caps), .rule = KOFI_SUBSET), DOM(mode, BITS, WITH(modes)),
	DOM(max_err_data, NUM, .rule = KOFI_MAX), DOM(mr_cnt, NUM, LIMIT),
	DOM(numa_node, INT));

#define FAB(...) FIELD(fi_fabric_attr, __VA_ARGS__)
MEMBERS(fabric, "fi_fabric_attr",
	FAB(name, STR, .rule = KOFI_IS), FAB(prov_name, STR, .rule = KOFI_IS),
	FAB(prov_version, VERSION, .rule = KOFI_MAX), FAB(api_version, VERSION));

#define DEV(...) FIELD(fi_device_attr, __VA_ARGS__)
MEMBERS(device, "fi_device_attr",
	DEV(name, STR), DEV(device_id, STR), DEV(device_version, STR), DEV(vendor_id, STR),
	DEV(driver, STR), DEV(firmware, STR));

#define LINK(...) FIELD(fi_link_attr, __VA_ARGS__)
MEMBERS(link, "fi_link_attr",
	LINK(address, STR), LINK(mtu, NUM), LINK(speed, NUM), LINK(up, ENUM, WITH(links)),
	LINK(network_type, STR));

#define LEFT(...) FIELD(fi_left_attr, __VA_ARGS__)
MEMBERS(left, "fi_left_attr",
	LEFT(queue_pairs, NUM), LEFT(regions, NUM), LEFT(address_handles, NUM));

#define INFO(...) FIELD(fi_info, __VA_ARGS__)
MEMBERS(info, "fi_info",
	INFO(caps, BITS, WITH(caps), .rule = KOFI_SUBSET), INFO(mode, BITS, WITH(modes)),
	INFO(addr_format, ENUM, WITH(addr_formats)), INFO(src_addrlen, NUM),
	INFO(dest_addrlen, NUM));

/**
 * kofi_field_get() - value of a field that isn't a string
 * @field: the field
 * @data: the structure that has the field
 *
 * Context: Any.
 * Return: the value.
 */
u64 kofi_field_get(const struct kofi_field *field, const void *data)
{
	const void *at = data + field->offset;

	switch (field->size) {
	case sizeof(u8):
		return *(const u8 *)at;
	case sizeof(u32):
		return *(const u32 *)at;
	default:
		return *(const u64 *)at;
	}
}
