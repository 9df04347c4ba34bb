/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Description of the API's structures: attr.c has a row for each field, which says how
 * tostr.c prints the field, how match.c compares it with hints, and whether it is a string,
 * which info.c copies and frees.
 */
#ifndef KOFI_ATTR_H
#define KOFI_ATTR_H

#include <linux/types.h>

/**
 * struct kofi_name - a value or bit with a name
 * @value: the value
 * @name: name of the value
 * @level: for KOFI_LEVEL: a lower level demands more of the provider
 */
struct kofi_name {
	u64		value;
	const char	*name;
	u8		level;
};

/**
 * enum kofi_show - format in which a field is printed
 * @KOFI_NUM: an unsigned number
 * @KOFI_INT: an int
 * @KOFI_HEX: a u64 in hexadecimal
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
 * enum kofi_rule - condition under which an entry doesn't meet a hint
 * @KOFI_ANY: never, or by special code in match.c
 * @KOFI_MAX: the hint is larger than the entry's value
 * @KOFI_SUBSET: the hint has bits that the entry lacks
 * @KOFI_SAME: hint and entry are both set and differ
 * @KOFI_IS: the hint is set and differs
 * @KOFI_LEVEL: the hint's level is lower than the entry's
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
 * @name: name of the field; NULL ends an array
 * @offset: offset of the field in its structure
 * @size: size of the field in bytes
 * @show: enum kofi_show
 * @rule: enum kofi_rule
 * @take: a nonzero hint replaces the entry's value
 * @names: names of the field's values
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
 * @title: name of the structure
 * @fields: fields of the structure
 */
struct kofi_struct {
	const char		*title;
	const struct kofi_field	*fields;
};

extern const struct kofi_name kofi_caps[], kofi_op_flags[], kofi_cq_flags[],
	kofi_modes[], kofi_mr_modes[], kofi_orders[], kofi_addr_formats[],
	kofi_protocols[], kofi_ep_types[], kofi_threadings[], kofi_progresses[],
	kofi_rms[], kofi_av_types[], kofi_eq_events[], kofi_datatypes[],
	kofi_atomic_ops[];

extern const struct kofi_struct kofi_tx_struct, kofi_rx_struct, kofi_ep_struct,
	kofi_domain_struct, kofi_fabric_struct, kofi_device_struct,
	kofi_link_struct, kofi_left_struct, kofi_info_struct;

u64 kofi_field_get(const struct kofi_field *field, const void *data);
void kofi_field_text(const struct kofi_field *field, const void *data, char *buf, size_t len);

#endif /* KOFI_ATTR_H */
