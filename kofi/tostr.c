// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Values as text, in the format of libfabric's fi_tostr(3), so that kofi_info and fi_info
 * show entries alike. There is one row per type; attr.c describes structures.
 */
#include <linux/minmax.h>
#include <linux/seq_buf.h>
#include <linux/slab.h>
#include "attr.h"
#include "kofi.h"

/* Larger than any text of fi_tostr(). */
#define KOFI_TOSTR_SIZE	8192
#define KOFI_INDENT	4

static void print_enum(struct seq_buf *s, const struct kofi_name *names, u64 v)
{
	while (names->name && names->value != v)
		names++;
	if (names->name)
		seq_buf_printf(s, "%s", names->name);
	else
		seq_buf_printf(s, "%llu", v);
}

static void print_bits(struct seq_buf *s, const struct kofi_name *names, u64 v)
{
	const char *comma = "";

	for (; names->name; names++) {
		if (!(v & names->value))
			continue;
		seq_buf_printf(s, "%s%s", comma, names->name);
		v &= ~names->value;
		comma = ", ";
	}
	if (v)
		seq_buf_printf(s, "%s0x%llx", comma, v);
}

static void print_field(struct seq_buf *s, const struct kofi_field *field,
			const void *data)
{
	u64 v = kofi_field_get(field, data);

	switch (field->show) {
	case KOFI_NUM:
		seq_buf_printf(s, "%llu", v);
		break;
	case KOFI_INT:
		seq_buf_printf(s, "%d", (int)v);
		break;
	case KOFI_HEX:
		seq_buf_printf(s, "0x%016llx", v);
		break;
	case KOFI_STR:
		seq_buf_printf(s, "%s",
			       *(char **)(data + field->offset) ?: "(null)");
		break;
	case KOFI_ENUM:
		print_enum(s, field->names, v);
		break;
	case KOFI_BITS:
		print_bits(s, field->names, v);
		break;
	case KOFI_VERSION:
		seq_buf_printf(s, "%u.%u", FI_MAJOR((u32)v), FI_MINOR((u32)v));
		break;
	}
}

/* Print a structure's field: only there bits are in brackets, as in libfabric. */
static void print_member(struct seq_buf *s, const struct kofi_field *field, const void *data)
{
	bool bits = field->show == KOFI_BITS;

	seq_buf_printf(s, "%s", bits ? "[ " : "");
	print_field(s, field, data);
	seq_buf_printf(s, "%s", !bits ? "" : kofi_field_get(field, data) ? " ]" : "]");
}

/* Terminate the text. After an overflow the length of a seq_buf exceeds its size. */
static void print_end(struct seq_buf *s, char *buf, size_t len)
{
	buf[min(s->len, len - 1)] = '\0';
}

/**
 * kofi_field_text() - print the value of a field into a buffer
 * @field: the field
 * @data: the structure that has the field
 * @buf: takes the text, cut to @len
 * @len: size of @buf in bytes
 *
 * Context: Any.
 */
void kofi_field_text(const struct kofi_field *field, const void *data, char *buf, size_t len)
{
	struct seq_buf s;

	seq_buf_init(&s, buf, len);
	print_member(&s, field, data);
	print_end(&s, buf, len);
}

static void print_struct(struct seq_buf *s, int level,
			 const struct kofi_struct *type, const void *data)
{
	const struct kofi_field *field;

	if (!data)
		return;
	seq_buf_printf(s, "%*s%s:\n", level * KOFI_INDENT, "", type->title);
	for (field = type->fields; field->name; field++) {
		seq_buf_printf(s, "%*s%s: ", (level + 1) * KOFI_INDENT, "",
			       field->name);
		print_member(s, field, data);
		seq_buf_printf(s, "\n");
	}
}

static void print_addr(struct seq_buf *s, const char *name, const void *addr,
		       size_t len)
{
	seq_buf_printf(s, "%*s%s: ", KOFI_INDENT, "", name);
	if (addr && len)
		seq_buf_printf(s, "%*phN\n",
			       (int)min_t(size_t, len, FI_ADDR_MAX), addr);
	else
		seq_buf_printf(s, "(null)\n");
}

static void print_nic(struct seq_buf *s, int level, const struct fid_nic *nic)
{
	if (!nic)
		return;
	seq_buf_printf(s, "%*snic:\n", level * KOFI_INDENT, "");
	print_struct(s, level + 1, &kofi_device_struct, &nic->device_attr);
	print_struct(s, level + 1, &kofi_link_struct, &nic->link_attr);
	print_struct(s, level + 1, &kofi_left_struct, &nic->left_attr);
}

static void print_info(struct seq_buf *s, const struct fi_info *info)
{
	print_struct(s, 0, &kofi_info_struct, info);
	print_addr(s, "src_addr", info->src_addr, info->src_addrlen);
	print_addr(s, "dest_addr", info->dest_addr, info->dest_addrlen);
	print_struct(s, 1, &kofi_tx_struct, info->tx_attr);
	print_struct(s, 1, &kofi_rx_struct, info->rx_attr);
	print_struct(s, 1, &kofi_ep_struct, info->ep_attr);
	print_struct(s, 1, &kofi_domain_struct, info->domain_attr);
	print_struct(s, 1, &kofi_fabric_struct, info->fabric_attr);
	print_nic(s, 1, info->nic);
}

/**
 * struct kofi_printer - format of a type
 * @value: for a single value, its description as a field
 * @type: for a structure, its description; else NULL
 */
struct kofi_printer {
	struct kofi_field		value;
	const struct kofi_struct	*type;
};

#define ENUM(n)		{ .value = { .show = KOFI_ENUM, .names = n, .size = 4 } }
#define BITS(n)		{ .value = { .show = KOFI_BITS, .names = n, .size = 8 } }
#define BITS32(n)	{ .value = { .show = KOFI_BITS, .names = n, .size = 4 } }
#define STRUCT(t)	{ .type = &(t) }

static const struct kofi_printer kofi_printers[FI_TYPE_MAX] = {
	[FI_TYPE_EP_TYPE]	= ENUM(kofi_ep_types),
	[FI_TYPE_CAPS]		= BITS(kofi_caps),
	[FI_TYPE_OP_FLAGS]	= BITS(kofi_op_flags),
	[FI_TYPE_ADDR_FORMAT]	= ENUM(kofi_addr_formats),
	[FI_TYPE_TX_ATTR]	= STRUCT(kofi_tx_struct),
	[FI_TYPE_RX_ATTR]	= STRUCT(kofi_rx_struct),
	[FI_TYPE_EP_ATTR]	= STRUCT(kofi_ep_struct),
	[FI_TYPE_DOMAIN_ATTR]	= STRUCT(kofi_domain_struct),
	[FI_TYPE_FABRIC_ATTR]	= STRUCT(kofi_fabric_struct),
	[FI_TYPE_THREADING]	= ENUM(kofi_threadings),
	[FI_TYPE_PROGRESS]	= ENUM(kofi_progresses),
	[FI_TYPE_PROTOCOL]	= ENUM(kofi_protocols),
	[FI_TYPE_MSG_ORDER]	= BITS(kofi_orders),
	[FI_TYPE_MODE]		= BITS(kofi_modes),
	[FI_TYPE_AV_TYPE]	= ENUM(kofi_av_types),
	[FI_TYPE_VERSION]	= { .value = { .show = KOFI_VERSION, .size = 4 } },
	[FI_TYPE_EQ_EVENT]	= ENUM(kofi_eq_events),
	[FI_TYPE_CQ_EVENT_FLAGS] = BITS(kofi_cq_flags),
	[FI_TYPE_MR_MODE]	= BITS32(kofi_mr_modes),
	[FI_TYPE_RESOURCE_MGMT]	= ENUM(kofi_rms),
	[FI_TYPE_ATOMIC_TYPE]	= ENUM(kofi_datatypes),
	[FI_TYPE_ATOMIC_OP]	= ENUM(kofi_atomic_ops),
};

static void print_type(struct seq_buf *s, const void *data, enum fi_type type)
{
	const struct fid *fid = data;

	switch (type) {
	case FI_TYPE_INFO:
		print_info(s, data);
		break;
	case FI_TYPE_NIC:
		print_nic(s, 0, data);
		break;
	case FI_TYPE_FID:
		seq_buf_printf(s, "%s %u", kofi_class_name(fid->fclass),
			       fid->node ? fid->node->id : 0);
		break;
	default:
		if (kofi_printers[type].type)
			print_struct(s, 0, kofi_printers[type].type, data);
		else
			print_field(s, &kofi_printers[type].value, data);
	}
}

/**
 * fi_tostr_r() - print a value of the API into a buffer
 * @buf: takes the text, cut to @len
 * @len: size of @buf in bytes
 * @data: the value
 * @type: type of the value
 *
 * fi_tostr(3).
 *
 * Context: Any.
 * Return: @buf; or NULL for an unknown type, or if @buf, @len or @data is 0.
 */
char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type type)
{
	struct seq_buf s;

	if (!buf || !len || !data || type >= FI_TYPE_MAX)
		return NULL;
	buf[0] = '\0';
	seq_buf_init(&s, buf, len);
	print_type(&s, data, type);
	print_end(&s, buf, len);
	return buf;
}
EXPORT_SYMBOL_NS_GPL(fi_tostr_r, KOFI);

/**
 * fi_tostr() - print a value of the API
 * @data: the value
 * @type: type of the value
 *
 * Allocates the text, unlike libfabric, which returns a static buffer.
 *
 * Context: Process context; may sleep. Allocates in the caller's scope.
 * Return: the text, for kfree(); or NULL when memory is short or for invalid arguments.
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
