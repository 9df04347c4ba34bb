// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Values as text, in the manner of libfabric's fi_tostr(3): what fi_info shows
 * of an entry, kofi_info shows too. One table row per type.
 */
#include <linux/seq_buf.h>
#include <linux/slab.h>
#include "kofi.h"

/* Nothing that is printed comes near to it. */
#define KOFI_TOSTR_SIZE	4096

struct kofi_name {
	u64		value;
	const char	*name;
};

#define NAME(x) { x, #x }

static const struct kofi_name kofi_caps[] = {
	NAME(FI_MSG), NAME(FI_RMA), NAME(FI_TAGGED), NAME(FI_ATOMIC),
	NAME(FI_READ), NAME(FI_WRITE), NAME(FI_RECV), NAME(FI_SEND),
	NAME(FI_REMOTE_READ), NAME(FI_REMOTE_WRITE), NAME(FI_MULTI_RECV),
	NAME(FI_FENCE), NAME(FI_LOCAL_COMM), NAME(FI_REMOTE_COMM),
	NAME(FI_RMA_EVENT), NAME(FI_SOURCE), NAME(FI_DIRECTED_RECV), {}
};

static const struct kofi_name kofi_op_flags[] = {
	NAME(FI_MULTI_RECV), NAME(FI_REMOTE_CQ_DATA), NAME(FI_MORE),
	NAME(FI_PEEK), NAME(FI_FENCE), NAME(FI_COMPLETION), NAME(FI_INJECT),
	NAME(FI_INJECT_COMPLETE), NAME(FI_TRANSMIT_COMPLETE),
	NAME(FI_DELIVERY_COMPLETE), NAME(FI_DISCARD), NAME(FI_CLAIM), {}
};

static const struct kofi_name kofi_cq_flags[] = {
	NAME(FI_MSG), NAME(FI_RMA), NAME(FI_TAGGED), NAME(FI_ATOMIC),
	NAME(FI_READ), NAME(FI_WRITE), NAME(FI_RECV), NAME(FI_SEND),
	NAME(FI_REMOTE_READ), NAME(FI_REMOTE_WRITE), NAME(FI_MULTI_RECV),
	NAME(FI_REMOTE_CQ_DATA), NAME(FI_MORE), NAME(FI_CLAIM), {}
};

static const struct kofi_name kofi_modes[] = {
	NAME(FI_CONTEXT), NAME(FI_MSG_PREFIX), NAME(FI_RX_CQ_DATA),
	NAME(FI_CONTEXT2), {}
};

static const struct kofi_name kofi_mr_modes[] = {
	NAME(FI_MR_LOCAL), NAME(FI_MR_RAW), NAME(FI_MR_VIRT_ADDR),
	NAME(FI_MR_ALLOCATED), NAME(FI_MR_PROV_KEY), NAME(FI_MR_RMA_EVENT),
	NAME(FI_MR_ENDPOINT), {}
};

static const struct kofi_name kofi_orders[] = {
	NAME(FI_ORDER_RAR), NAME(FI_ORDER_RAW), NAME(FI_ORDER_RAS),
	NAME(FI_ORDER_WAR), NAME(FI_ORDER_WAW), NAME(FI_ORDER_WAS),
	NAME(FI_ORDER_SAR), NAME(FI_ORDER_SAW), NAME(FI_ORDER_SAS), {}
};

static const struct kofi_name kofi_addr_formats[] = {
	NAME(FI_FORMAT_UNSPEC), NAME(FI_SOCKADDR), NAME(FI_SOCKADDR_IN),
	NAME(FI_SOCKADDR_IN6), NAME(FI_ADDR_STR), NAME(FI_ADDR_EFA), {}
};

static const struct kofi_name kofi_protocols[] = {
	NAME(FI_PROTO_UNSPEC), NAME(FI_PROTO_EFA), {}
};

static const struct kofi_name kofi_ep_types[] = {
	NAME(FI_EP_UNSPEC), NAME(FI_EP_MSG), NAME(FI_EP_DGRAM),
	NAME(FI_EP_RDM), {}
};

static const struct kofi_name kofi_threadings[] = {
	NAME(FI_THREAD_UNSPEC), NAME(FI_THREAD_SAFE), NAME(FI_THREAD_FID),
	NAME(FI_THREAD_DOMAIN), NAME(FI_THREAD_COMPLETION),
	NAME(FI_THREAD_ENDPOINT), {}
};

static const struct kofi_name kofi_progresses[] = {
	NAME(FI_PROGRESS_UNSPEC), NAME(FI_PROGRESS_AUTO),
	NAME(FI_PROGRESS_MANUAL), NAME(FI_PROGRESS_CONTROL_UNIFIED), {}
};

static const struct kofi_name kofi_rms[] = {
	NAME(FI_RM_UNSPEC), NAME(FI_RM_DISABLED), NAME(FI_RM_ENABLED), {}
};

static const struct kofi_name kofi_av_types[] = {
	NAME(FI_AV_UNSPEC), NAME(FI_AV_MAP), NAME(FI_AV_TABLE), {}
};

static const struct kofi_name kofi_eq_events[] = {
	NAME(FI_NOTIFY), NAME(FI_DEVICE_REMOVED), NAME(FI_DEVICE_ARRIVED), {}
};

static const struct kofi_name kofi_cq_formats[] = {
	NAME(FI_CQ_FORMAT_UNSPEC), NAME(FI_CQ_FORMAT_CONTEXT),
	NAME(FI_CQ_FORMAT_MSG), NAME(FI_CQ_FORMAT_DATA),
	NAME(FI_CQ_FORMAT_TAGGED), {}
};

static const struct kofi_name kofi_wait_conds[] = {
	NAME(FI_CQ_COND_NONE), NAME(FI_CQ_COND_THRESHOLD), {}
};

static const struct kofi_name kofi_wait_objs[] = {
	NAME(FI_WAIT_NONE), NAME(FI_WAIT_UNSPEC), {}
};

static const struct kofi_name kofi_cntr_events[] = {
	NAME(FI_CNTR_EVENTS_COMP), NAME(FI_CNTR_EVENTS_BYTES), {}
};

static const struct kofi_name kofi_mr_types[] = {
	NAME(FI_MR_KVEC), NAME(FI_MR_BVEC), NAME(FI_MR_SGL), {}
};

static const struct kofi_name kofi_cq_attr_flags[] = {
	NAME(FI_AFFINITY), {}
};

static const struct kofi_name kofi_eq_attr_flags[] = {
	NAME(FI_WRITE), {}
};

static void print_enum(struct seq_buf *s, const struct kofi_name *names, u64 v)
{
	for (; names->name; names++) {
		if (names->value == v) {
			seq_buf_printf(s, "%s", names->name);
			return;
		}
	}
	seq_buf_printf(s, "%llu", v);
}

static void print_bits(struct seq_buf *s, const struct kofi_name *names, u64 v)
{
	const char *comma = "";

	seq_buf_printf(s, "[");
	for (; names->name; names++) {
		if (!(v & names->value))
			continue;
		seq_buf_printf(s, "%s %s", comma, names->name);
		v &= ~names->value;
		comma = ",";
	}
	if (v)
		seq_buf_printf(s, "%s 0x%llx", comma, v);
	seq_buf_printf(s, " ]");
}

/* A structure is a title and a line for each field, at one level more. */
#define TITLE(s, level, title) \
	seq_buf_printf(s, "%*s%s:\n", (level) * 4, "", title)
#define LINE(s, level, name) \
	seq_buf_printf(s, "%*s%s: ", (level) * 4, "", name)
#define NUM(s, level, a, field) \
	seq_buf_printf(s, "%*s%s: %llu\n", (level) * 4, "", #field, \
		       (unsigned long long)(a)->field)
#define STR(s, level, a, field) \
	seq_buf_printf(s, "%*s%s: %s\n", (level) * 4, "", #field, \
		       (a)->field ?: "(null)")

static void line_enum(struct seq_buf *s, int level, const char *name,
		      const struct kofi_name *names, u64 v)
{
	LINE(s, level, name);
	print_enum(s, names, v);
	seq_buf_printf(s, "\n");
}

static void line_bits(struct seq_buf *s, int level, const char *name,
		      const struct kofi_name *names, u64 v)
{
	LINE(s, level, name);
	print_bits(s, names, v);
	seq_buf_printf(s, "\n");
}

#define ENUM(s, level, a, field, names) \
	line_enum(s, level, #field, names, (a)->field)
#define BITS(s, level, a, field, names) \
	line_bits(s, level, #field, names, (a)->field)

static void print_version(struct seq_buf *s, u32 version)
{
	seq_buf_printf(s, "%u.%u", FI_MAJOR(version), FI_MINOR(version));
}

static void line_version(struct seq_buf *s, int level, const char *name,
			 u32 version)
{
	LINE(s, level, name);
	print_version(s, version);
	seq_buf_printf(s, "\n");
}

static void print_addr(struct seq_buf *s, int level, const char *name,
		       const u8 *addr, size_t len)
{
	LINE(s, level, name);
	if (addr && len)
		seq_buf_printf(s, "%*phN", (int)min_t(size_t, len, 64), addr);
	else
		seq_buf_printf(s, "(null)");
	seq_buf_printf(s, "\n");
}

static void print_tx_attr(struct seq_buf *s, int level, const void *data)
{
	const struct fi_tx_attr *a = data;

	TITLE(s, level++, "fi_tx_attr");
	BITS(s, level, a, caps, kofi_caps);
	BITS(s, level, a, mode, kofi_modes);
	BITS(s, level, a, op_flags, kofi_op_flags);
	BITS(s, level, a, msg_order, kofi_orders);
	BITS(s, level, a, comp_order, kofi_orders);
	NUM(s, level, a, inject_size);
	NUM(s, level, a, size);
	NUM(s, level, a, iov_limit);
	NUM(s, level, a, rma_iov_limit);
}

static void print_rx_attr(struct seq_buf *s, int level, const void *data)
{
	const struct fi_rx_attr *a = data;

	TITLE(s, level++, "fi_rx_attr");
	BITS(s, level, a, caps, kofi_caps);
	BITS(s, level, a, mode, kofi_modes);
	BITS(s, level, a, op_flags, kofi_op_flags);
	BITS(s, level, a, msg_order, kofi_orders);
	BITS(s, level, a, comp_order, kofi_orders);
	NUM(s, level, a, size);
	NUM(s, level, a, iov_limit);
}

static void print_ep_attr(struct seq_buf *s, int level, const void *data)
{
	const struct fi_ep_attr *a = data;

	TITLE(s, level++, "fi_ep_attr");
	ENUM(s, level, a, type, kofi_ep_types);
	ENUM(s, level, a, protocol, kofi_protocols);
	NUM(s, level, a, protocol_version);
	NUM(s, level, a, max_msg_size);
	NUM(s, level, a, msg_prefix_size);
	NUM(s, level, a, max_order_raw_size);
	NUM(s, level, a, max_order_war_size);
	NUM(s, level, a, max_order_waw_size);
	LINE(s, level, "mem_tag_format");
	seq_buf_printf(s, "0x%016llx\n", a->mem_tag_format);
	NUM(s, level, a, tx_ctx_cnt);
	NUM(s, level, a, rx_ctx_cnt);
}

static void print_domain_attr(struct seq_buf *s, int level, const void *data)
{
	const struct fi_domain_attr *a = data;

	TITLE(s, level++, "fi_domain_attr");
	STR(s, level, a, name);
	ENUM(s, level, a, threading, kofi_threadings);
	ENUM(s, level, a, control_progress, kofi_progresses);
	ENUM(s, level, a, data_progress, kofi_progresses);
	ENUM(s, level, a, resource_mgmt, kofi_rms);
	ENUM(s, level, a, av_type, kofi_av_types);
	BITS(s, level, a, mr_mode, kofi_mr_modes);
	NUM(s, level, a, mr_key_size);
	NUM(s, level, a, cq_data_size);
	NUM(s, level, a, cq_cnt);
	NUM(s, level, a, ep_cnt);
	NUM(s, level, a, tx_ctx_cnt);
	NUM(s, level, a, rx_ctx_cnt);
	NUM(s, level, a, max_ep_tx_ctx);
	NUM(s, level, a, max_ep_rx_ctx);
	NUM(s, level, a, cntr_cnt);
	NUM(s, level, a, mr_iov_limit);
	BITS(s, level, a, caps, kofi_caps);
	BITS(s, level, a, mode, kofi_modes);
	NUM(s, level, a, max_err_data);
	NUM(s, level, a, mr_cnt);
	LINE(s, level, "numa_node");
	seq_buf_printf(s, "%d\n", a->numa_node);
}

static void print_fabric_attr(struct seq_buf *s, int level, const void *data)
{
	const struct fi_fabric_attr *a = data;

	TITLE(s, level++, "fi_fabric_attr");
	STR(s, level, a, name);
	STR(s, level, a, prov_name);
	line_version(s, level, "prov_version", a->prov_version);
	line_version(s, level, "api_version", a->api_version);
}

static void print_nic(struct seq_buf *s, int level, const void *data)
{
	const struct fid_nic *nic = data;
	const struct fi_device_attr *d = &nic->device_attr;
	const struct fi_link_attr *l = &nic->link_attr;

	TITLE(s, level++, "nic");
	TITLE(s, level, "fi_device_attr");
	STR(s, level + 1, d, name);
	STR(s, level + 1, d, device_id);
	STR(s, level + 1, d, device_version);
	STR(s, level + 1, d, vendor_id);
	STR(s, level + 1, d, driver);
	STR(s, level + 1, d, firmware);
	TITLE(s, level, "fi_link_attr");
	STR(s, level + 1, l, address);
	NUM(s, level + 1, l, mtu);
	NUM(s, level + 1, l, speed);
	LINE(s, level + 1, "state");
	seq_buf_printf(s, "%s\n", l->up ? "FI_LINK_UP" : "FI_LINK_DOWN");
	STR(s, level + 1, l, network_type);
}

static void print_info(struct seq_buf *s, int level, const void *data)
{
	static void (* const print[])(struct seq_buf *s, int level,
				      const void *data) = {
		print_tx_attr, print_rx_attr, print_ep_attr,
		print_domain_attr, print_fabric_attr, print_nic,
	};
	const struct fi_info *a = data;
	const void *attr[] = {
		a->tx_attr, a->rx_attr, a->ep_attr,
		a->domain_attr, a->fabric_attr, a->nic,
	};
	unsigned int i;

	TITLE(s, level++, "fi_info");
	BITS(s, level, a, caps, kofi_caps);
	BITS(s, level, a, mode, kofi_modes);
	ENUM(s, level, a, addr_format, kofi_addr_formats);
	NUM(s, level, a, src_addrlen);
	NUM(s, level, a, dest_addrlen);
	print_addr(s, level, "src_addr", a->src_addr, a->src_addrlen);
	print_addr(s, level, "dest_addr", a->dest_addr, a->dest_addrlen);
	for (i = 0; i < ARRAY_SIZE(print); i++)
		if (attr[i])
			print[i](s, level, attr[i]);
}

static void print_av_attr(struct seq_buf *s, int level, const void *data)
{
	const struct fi_av_attr *a = data;

	TITLE(s, level++, "fi_av_attr");
	ENUM(s, level, a, type, kofi_av_types);
	NUM(s, level, a, rx_ctx_bits);
	NUM(s, level, a, count);
	NUM(s, level, a, flags);
}

static void print_cq_attr(struct seq_buf *s, int level, const void *data)
{
	const struct fi_cq_attr *a = data;

	TITLE(s, level++, "fi_cq_attr");
	NUM(s, level, a, size);
	BITS(s, level, a, flags, kofi_cq_attr_flags);
	ENUM(s, level, a, format, kofi_cq_formats);
	ENUM(s, level, a, wait_obj, kofi_wait_objs);
	NUM(s, level, a, signaling_vector);
	ENUM(s, level, a, wait_cond, kofi_wait_conds);
}

static void print_eq_attr(struct seq_buf *s, int level, const void *data)
{
	const struct fi_eq_attr *a = data;

	TITLE(s, level++, "fi_eq_attr");
	NUM(s, level, a, size);
	BITS(s, level, a, flags, kofi_eq_attr_flags);
	ENUM(s, level, a, wait_obj, kofi_wait_objs);
}

static void print_cntr_attr(struct seq_buf *s, int level, const void *data)
{
	const struct fi_cntr_attr *a = data;

	TITLE(s, level++, "fi_cntr_attr");
	ENUM(s, level, a, events, kofi_cntr_events);
	ENUM(s, level, a, wait_obj, kofi_wait_objs);
	NUM(s, level, a, flags);
}

static void print_mr_attr(struct seq_buf *s, int level, const void *data)
{
	const struct fi_mr_attr *a = data;

	TITLE(s, level++, "fi_mr_attr");
	ENUM(s, level, a, type, kofi_mr_types);
	NUM(s, level, a, iov_count);
	BITS(s, level, a, access, kofi_caps);
	NUM(s, level, a, offset);
	NUM(s, level, a, requested_key);
}

static void print_cq_err_entry(struct seq_buf *s, int level, const void *data)
{
	const struct fi_cq_err_entry *a = data;

	TITLE(s, level++, "fi_cq_err_entry");
	BITS(s, level, a, flags, kofi_cq_flags);
	NUM(s, level, a, len);
	NUM(s, level, a, data);
	NUM(s, level, a, tag);
	NUM(s, level, a, olen);
	LINE(s, level, "err");
	seq_buf_printf(s, "%d (%s)\n", a->err, fi_strerror(a->err));
	LINE(s, level, "prov_errno");
	seq_buf_printf(s, "%d\n", a->prov_errno);
}

static void print_fid(struct seq_buf *s, int level, const void *data)
{
	const struct fid *fid = data;

	seq_buf_printf(s, "%s %u", kofi_class_name(fid->fclass),
		       fid->node ? fid->node->id : 0);
}

static void print_u32_version(struct seq_buf *s, int level, const void *data)
{
	print_version(s, *(const u32 *)data);
}

/**
 * struct kofi_printer - how a type is printed
 * @print: prints it, or NULL
 * @names: names of its values or bits
 * @size: bytes of a value with names
 * @bits: whether they are bits
 */
struct kofi_printer {
	void (*print)(struct seq_buf *s, int level, const void *data);
	const struct kofi_name *names;
	u8 size;
	bool bits;
};

#define PRINT_ENUM(n)	{ .names = n, .size = sizeof(u32) }
#define PRINT_BITS(n)	{ .names = n, .size = sizeof(u64), .bits = true }

static const struct kofi_printer kofi_printers[FI_TYPE_MAX] = {
	[FI_TYPE_INFO]		= { .print = print_info },
	[FI_TYPE_EP_TYPE]	= PRINT_ENUM(kofi_ep_types),
	[FI_TYPE_CAPS]		= PRINT_BITS(kofi_caps),
	[FI_TYPE_OP_FLAGS]	= PRINT_BITS(kofi_op_flags),
	[FI_TYPE_ADDR_FORMAT]	= PRINT_ENUM(kofi_addr_formats),
	[FI_TYPE_TX_ATTR]	= { .print = print_tx_attr },
	[FI_TYPE_RX_ATTR]	= { .print = print_rx_attr },
	[FI_TYPE_EP_ATTR]	= { .print = print_ep_attr },
	[FI_TYPE_DOMAIN_ATTR]	= { .print = print_domain_attr },
	[FI_TYPE_FABRIC_ATTR]	= { .print = print_fabric_attr },
	[FI_TYPE_THREADING]	= PRINT_ENUM(kofi_threadings),
	[FI_TYPE_PROGRESS]	= PRINT_ENUM(kofi_progresses),
	[FI_TYPE_PROTOCOL]	= PRINT_ENUM(kofi_protocols),
	[FI_TYPE_MSG_ORDER]	= PRINT_BITS(kofi_orders),
	[FI_TYPE_MODE]		= PRINT_BITS(kofi_modes),
	[FI_TYPE_AV_TYPE]	= PRINT_ENUM(kofi_av_types),
	[FI_TYPE_VERSION]	= { .print = print_u32_version },
	[FI_TYPE_EQ_EVENT]	= PRINT_ENUM(kofi_eq_events),
	[FI_TYPE_CQ_EVENT_FLAGS] = PRINT_BITS(kofi_cq_flags),
	[FI_TYPE_MR_MODE]	= { .names = kofi_mr_modes,
				    .size = sizeof(u32), .bits = true },
	[FI_TYPE_FID]		= { .print = print_fid },
	[FI_TYPE_CQ_FORMAT]	= PRINT_ENUM(kofi_cq_formats),
	[FI_TYPE_AV_ATTR]	= { .print = print_av_attr },
	[FI_TYPE_CQ_ATTR]	= { .print = print_cq_attr },
	[FI_TYPE_MR_ATTR]	= { .print = print_mr_attr },
	[FI_TYPE_CNTR_ATTR]	= { .print = print_cntr_attr },
	[FI_TYPE_CQ_ERR_ENTRY]	= { .print = print_cq_err_entry },
	[FI_TYPE_CQ_WAIT_COND]	= PRINT_ENUM(kofi_wait_conds),
	[FI_TYPE_WAIT_OBJ]	= PRINT_ENUM(kofi_wait_objs),
	[FI_TYPE_RESOURCE_MGMT]	= PRINT_ENUM(kofi_rms),
	[FI_TYPE_NIC]		= { .print = print_nic },
	[FI_TYPE_EQ_ATTR]	= { .print = print_eq_attr },
};

/**
 * fi_tostr_r() - print a value of the API into a buffer
 * @buf: takes the text, cut to @len
 * @len: room at @buf
 * @data: the value
 * @type: what it is
 *
 * fi_tostr(3).
 *
 * Context: Any.
 * Return: @buf, or NULL without room or for a type that isn't known.
 */
char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type type)
{
	const struct kofi_printer *printer;
	struct seq_buf s;
	u64 value;

	if (!buf || !len || !data || type >= FI_TYPE_MAX)
		return NULL;
	seq_buf_init(&s, buf, len);
	buf[0] = '\0';
	printer = &kofi_printers[type];
	if (printer->print) {
		printer->print(&s, 0, data);
	} else {
		value = printer->size == sizeof(u32) ? *(const u32 *)data :
						       *(const u64 *)data;
		(printer->bits ? print_bits : print_enum)(&s, printer->names,
							  value);
	}
	buf[min(s.len, len - 1)] = '\0';
	return buf;
}
EXPORT_SYMBOL_NS_GPL(fi_tostr_r, KOFI);

/**
 * fi_tostr() - print a value of the API
 * @data: the value
 * @type: what it is
 *
 * Unlike libfabric's, which has one buffer for all, this allocates the text.
 *
 * Context: Process context; may sleep. Allocates in the caller's scope.
 * Return: the text, for kfree(), or NULL.
 */
char *fi_tostr(const void *data, enum fi_type type)
{
	char *buf, *text;

	buf = kmalloc(KOFI_TOSTR_SIZE, GFP_KERNEL);
	if (!buf)
		return NULL;
	text = fi_tostr_r(buf, KOFI_TOSTR_SIZE, data, type);
	if (text)
		text = kstrdup(text, GFP_KERNEL);
	kfree(buf);
	return text;
}
EXPORT_SYMBOL_NS_GPL(fi_tostr, KOFI);
