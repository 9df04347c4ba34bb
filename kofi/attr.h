/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The API's structures, described once: attr.c has a row for each field, which
 * says how it is printed (tostr.c), what hints for it mean (match.c) and whether
 * it is a string, to be copied and freed (info.c).
 */
#ifndef KOFI_ATTR_H
#define KOFI_ATTR_H

#include <linux/types.h>

/**
 * struct kofi_name - a value or bit with a name
 * @value: the value
 * @name: its name
 * @level: for KOFI_LEVEL: what asks for more of the provider is lower
 */
struct kofi_name {
	u64		value;
	const char	*name;
	u8		level;
};

/**
 * enum kofi_show - how a field is printed
 * @KOFI_NUM: an unsigned number
 * @KOFI_INT: an int
 * @KOFI_HEX: a u64 in which bits have places
 * @KOFI_STR: a char *
 * @KOFI_ENUM: one of kofi_field.names
 * @KOFI_BITS: several of kofi_field.names
 * @KOFI_VERSION: made by FI_VERSION()
 */
enum kofi_show {
	KOFI_NUM,
	KOFI_INT,
	KOFI_HEX,
	KOFI_STR,
	KOFI_ENUM,
	KOFI_BITS,
	KOFI_VERSION,
};

/**
 * enum kofi_rule - when a hint for a field isn't met
 * @KOFI_ANY: never, or by a rule of its own
 * @KOFI_MAX: when it is larger
 * @KOFI_SUBSET: when it has other bits
 * @KOFI_SAME: when both are set and differ
 * @KOFI_IS: when it is set and differs
 * @KOFI_LEVEL: when its level is lower
 */
enum kofi_rule {
	KOFI_ANY,
	KOFI_MAX,
	KOFI_SUBSET,
	KOFI_SAME,
	KOFI_IS,
	KOFI_LEVEL,
};

/**
 * struct kofi_field - a field of a structure
 * @name: its name; NULL ends the fields
 * @offset: its place
 * @size: its size
 * @show: enum kofi_show
 * @rule: enum kofi_rule
 * @take: what is asked for replaces what there is
 * @names: names of its values
 */
struct kofi_field {
	const char		*name;
	u16			offset;
	u8			size;
	u8			show;
	u8			rule;
	bool			take;
	const struct kofi_name	*names;
};

/**
 * struct kofi_struct - a structure
 * @title: its name
 * @fields: its fields
 */
struct kofi_struct {
	const char		*title;
	const struct kofi_field	*fields;
};

extern const struct kofi_name kofi_caps[], kofi_op_flags[], kofi_cq_flags[],
	kofi_modes[], kofi_mr_modes[], kofi_orders[], kofi_addr_formats[],
	kofi_protocols[], kofi_ep_types[], kofi_threadings[], kofi_progresses[],
	kofi_rms[], kofi_av_types[], kofi_eq_events[];

extern const struct kofi_struct kofi_tx_struct, kofi_rx_struct, kofi_ep_struct,
	kofi_domain_struct, kofi_fabric_struct, kofi_device_struct,
	kofi_link_struct, kofi_info_struct;

u64 kofi_field_get(const struct kofi_field *field, const void *data);

#endif /* KOFI_ATTR_H */
