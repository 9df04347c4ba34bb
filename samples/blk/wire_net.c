// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages of set-up: see wire.h. A table for each message says where its fields are on the wire
 * and in the host's structure. What concerns several fields is checked by a function.
 */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire.h"

static_assert(sizeof(struct kulp_hdr) == 16);
static_assert(sizeof(struct kb_hello) == 240);
static_assert(sizeof(struct kb_challenge) == 120);
static_assert(sizeof(struct kb_auth) == 48);
static_assert(sizeof(struct kb_disk) == 48);
static_assert(sizeof(struct kb_accept) == 152);
static_assert(sizeof(struct kb_reject) == 120);
static_assert(sizeof(struct kb_resize) == 64);
static_assert(sizeof(struct kb_bye) == 56);
/* kulp_auth_sign() relies on this position of the MAC. */
static_assert(offsetof(struct kb_auth, mac) == sizeof(struct kulp_hdr));
static_assert(offsetof(struct kb_accept, mac) == sizeof(struct kulp_hdr));
static_assert(offsetof(struct kb_reject, mac) == sizeof(struct kulp_hdr));
static_assert(offsetof(struct kb_resize, mac) == sizeof(struct kulp_hdr));
static_assert(offsetof(struct kb_bye, mac) == sizeof(struct kulp_hdr));

#define KB_ADDRS_MAX	(KB_QUEUES_MAX * KULP_ADDR_MAX)

static_assert(sizeof(struct kb_hello) + KB_ADDRS_MAX <= KB_NET_MAX);
static_assert(sizeof(struct kb_accept) + KB_ADDRS_MAX <= KB_NET_MAX);

/* How a field is converted. */
enum kb_how {
	KB_NUMBER,	/* of 2, 4 or 8 bytes, little-endian on the wire */
	KB_BYTES,
	KB_FLAG,	/* 0 or 1 */
	KB_TEXT,	/* NUL-terminated, the rest is 0 */
	KB_NAME,	/* a text that kb_name_ok() accepts */
	KB_ZERO,	/* only on the wire */
};

struct kb_field {
	u16	wire;
	u16	host;
	u16	len;	/* of both; 0 at the end of a table */
	u16	how;
};

#define KB_FIELD(how, msg, field, member)						\
	{ offsetof(struct kb_##msg, field), offsetof(struct kb_##msg##_msg, member),	\
	  sizeof_field(struct kb_##msg, field) +					\
	  BUILD_BUG_ON_ZERO(sizeof_field(struct kb_##msg, field) !=			\
			    sizeof_field(struct kb_##msg##_msg, member)), how }
#define KB_SAME(how, msg, field)	KB_FIELD(how, msg, field, field)
#define KB_RESERVED(msg)								\
	{ offsetof(struct kb_##msg, reserved), 0,					\
	  sizeof_field(struct kb_##msg, reserved), KB_ZERO }
#define KB_LIMIT(msg, field)	KB_FIELD(KB_NUMBER, msg, field, limits.field)
#define KB_LIMITS(msg)									\
	KB_LIMIT(msg, caps), KB_LIMIT(msg, max_io), KB_LIMIT(msg, inline_max),		\
	KB_LIMIT(msg, keep_alive), KB_LIMIT(msg, queues), KB_LIMIT(msg, depth),		\
	KB_LIMIT(msg, inline_read), KB_SAME(KB_NUMBER, msg, addr_len)
#define KB_DISK(field)		KB_SAME(KB_NUMBER, accept, disk.field)

static const struct kb_field kb_hello_fields[] = {
	KB_SAME(KB_BYTES, hello, nonce),
	KB_SAME(KB_NAME, hello, client),
	KB_SAME(KB_NAME, hello, export),
	KB_SAME(KB_BYTES, hello, host),
	KB_SAME(KB_BYTES, hello, content),
	KB_SAME(KB_NUMBER, hello, addr_format),
	KB_LIMITS(hello),
	KB_RESERVED(hello),
	{}
};

static const struct kb_field kb_challenge_fields[] = {
	KB_SAME(KB_BYTES, challenge, nonce),
	KB_SAME(KB_BYTES, challenge, macs),
	KB_SAME(KB_FLAG, challenge, auth),
	KB_RESERVED(challenge),
	{}
};

static const struct kb_field kb_auth_fields[] = {
	KB_SAME(KB_BYTES, auth, mac),
	{}
};

static const struct kb_field kb_accept_fields[] = {
	KB_SAME(KB_BYTES, accept, content),
	KB_SAME(KB_NUMBER, accept, session),
	KB_SAME(KB_NUMBER, accept, epoch),
	KB_LIMITS(accept),
	KB_DISK(bytes), KB_DISK(flags), KB_DISK(logical_block), KB_DISK(physical_block),
	KB_DISK(io_min), KB_DISK(io_opt), KB_DISK(discard_granularity),
	KB_DISK(discard_max), KB_DISK(zeroes_max),
	{}
};

static const struct kb_field kb_reject_fields[] = {
	KB_SAME(KB_NUMBER, reject, status),
	KB_SAME(KB_FLAG, reject, again),
	KB_SAME(KB_TEXT, reject, why),
	KB_RESERVED(reject),
	{}
};

static const struct kb_field kb_resize_fields[] = {
	KB_SAME(KB_NUMBER, resize, number),
	KB_SAME(KB_NUMBER, resize, bytes),
	{}
};

static const struct kb_field kb_bye_fields[] = {
	KB_SAME(KB_FLAG, bye, again),
	KB_SAME(KB_FLAG, bye, flushed),
	KB_RESERVED(bye),
	{}
};

static bool kb_get_field(const struct kb_field *f, const void *from, void *to)
{
	size_t len;

	switch (f->how) {
	case KB_NUMBER:
		if (f->len == sizeof(u16))
			*(u16 *)to = le16_to_cpu(*(const __le16 *)from);
		else if (f->len == sizeof(u32))
			*(u32 *)to = le32_to_cpu(*(const __le32 *)from);
		else
			*(u64 *)to = le64_to_cpu(*(const __le64 *)from);
		return true;
	case KB_FLAG:
		*(bool *)to = *(const u8 *)from;
		return *(const u8 *)from <= 1;
	case KB_ZERO:
		return !memchr_inv(from, 0, f->len);
	case KB_TEXT:
	case KB_NAME:
		len = strnlen(from, f->len);
		if (len == f->len || memchr_inv(from + len, 0, f->len - len))
			return false;
	}
	memcpy(to, from, f->len);
	return f->how != KB_NAME || kb_name_ok(to);
}

/* @to is zeroed. */
static void kb_put_field(const struct kb_field *f, void *to, const void *from)
{
	switch (f->how) {
	case KB_NUMBER:
		if (f->len == sizeof(u16))
			*(__le16 *)to = cpu_to_le16(*(const u16 *)from);
		else if (f->len == sizeof(u32))
			*(__le32 *)to = cpu_to_le32(*(const u32 *)from);
		else
			*(__le64 *)to = cpu_to_le64(*(const u64 *)from);
		break;
	case KB_FLAG:
		*(u8 *)to = *(const bool *)from;
		break;
	case KB_TEXT:
	case KB_NAME:
		memcpy(to, from, strnlen(from, f->len - 1));
		break;
	case KB_BYTES:
		memcpy(to, from, f->len);
	}
}

/* --- checks of whole messages, which also set the pointer to @addrs in @msg --- */

static bool kb_limits_ok(const struct kb_limits *l)
{
	return l->max_io >= KB_IO_MIN && l->max_io <= KB_IO_MAX && l->max_io % KB_IO_MIN == 0 &&
	       l->inline_max <= KB_INLINE_MAX && l->inline_read <= KB_INLINE_READ_MAX &&
	       l->keep_alive >= KB_KEEP_ALIVE_MIN && l->keep_alive <= KB_KEEP_ALIVE_MAX &&
	       l->queues && l->queues <= KB_QUEUES_MAX && l->depth && l->depth <= KB_DEPTH_MAX;
}

static bool kb_addrs_ok(const struct kb_limits *l, u16 addr_len, size_t len)
{
	return addr_len && addr_len <= KULP_ADDR_MAX && (size_t)l->queues * addr_len == len;
}

static bool kb_hello_ok(void *parsed, const void *addrs, size_t len)
{
	struct kb_hello_msg *msg = parsed;

	msg->addr = addrs;
	/* Ignore unknown capabilities, which newer clients may ask for but don't need. */
	msg->limits.caps &= KB_CAPS;
	return memchr_inv(msg->host, 0, sizeof(msg->host)) && kb_limits_ok(&msg->limits) &&
	       kb_addrs_ok(&msg->limits, msg->addr_len, len);
}

/* Without a secret there are no proofs. */
static bool kb_challenge_ok(void *parsed, const void *addrs, size_t len)
{
	const struct kb_challenge_msg *msg = parsed;

	return msg->auth || !memchr_inv(msg->macs, 0, sizeof(msg->macs));
}

static bool kb_disk_ok(const struct kb_disk_msg *disk, u32 caps)
{
	u64 sizes = disk->bytes | disk->io_min | disk->io_opt | disk->discard_granularity |
		    disk->discard_max | disk->zeroes_max;

	return !(disk->flags & ~KB_DISK_FLAGS) && is_power_of_2(disk->logical_block) &&
	       disk->logical_block >= KB_SECTOR && disk->logical_block <= KB_IO_MIN &&
	       is_power_of_2(disk->physical_block) &&
	       disk->physical_block >= disk->logical_block &&
	       disk->bytes < KB_OFFSET_MAX && !(sizes & (disk->logical_block - 1)) &&
	       !(caps & KB_CAP_DISCARD) == !disk->discard_max &&
	       !(caps & KB_CAP_WRITE_ZEROES) == !disk->zeroes_max &&
	       (!disk->discard_max || disk->discard_granularity);
}

static bool kb_accept_ok(void *parsed, const void *addrs, size_t len)
{
	struct kb_accept_msg *msg = parsed;

	msg->addr = addrs;
	return memchr_inv(msg->content, 0, sizeof(msg->content)) && msg->session && msg->epoch &&
	       !(msg->limits.caps & ~KB_CAPS) && kb_limits_ok(&msg->limits) &&
	       kb_addrs_ok(&msg->limits, msg->addr_len, len) &&
	       kb_disk_ok(&msg->disk, msg->limits.caps);
}

/* The client prints the text to its log. */
static bool kb_reject_ok(void *parsed, const void *addrs, size_t len)
{
	const struct kb_reject_msg *msg = parsed;
	const char *c;

	for (c = msg->why; *c; c++)
		if (*c < ' ' || *c > '~')
			return false;
	return msg->status && msg->status < KB_STATUSES;
}

static bool kb_resize_ok(void *parsed, const void *addrs, size_t len)
{
	const struct kb_resize_msg *msg = parsed;

	return msg->number && msg->bytes < KB_OFFSET_MAX && msg->bytes % KB_SECTOR == 0;
}

/* --- messages --- */

static const struct kb_net_type_row {
	const struct kb_field	*fields;
	bool			(*ok)(void *parsed, const void *addrs, size_t len);
	u16			min;
	u16			addrs;	/* maximum bytes of addresses after it */
} kb_net_types[] = {
	[KB_HELLO]	= { kb_hello_fields, kb_hello_ok, sizeof(struct kb_hello), KB_ADDRS_MAX },
	[KB_CHALLENGE]	= { kb_challenge_fields, kb_challenge_ok, sizeof(struct kb_challenge) },
	[KB_AUTH]	= { kb_auth_fields, NULL, sizeof(struct kb_auth) },
	[KB_ACCEPT]	= { kb_accept_fields, kb_accept_ok, sizeof(struct kb_accept),
			    KB_ADDRS_MAX },
	[KB_REJECT]	= { kb_reject_fields, kb_reject_ok, sizeof(struct kb_reject) },
	[KB_RESIZE]	= { kb_resize_fields, kb_resize_ok, sizeof(struct kb_resize) },
	[KB_BYE]	= { kb_bye_fields, NULL, sizeof(struct kb_bye) },
};

/**
 * kb_parse_net() - parse the header of a message
 * @buf: a struct kulp_hdr, or more of the message
 * @len: bytes of @buf
 * @type: takes the type, a valid enum kb_net_type
 * @whole: takes the bytes of the message with its header, at most KB_NET_MAX
 * Context: Any.
 * Return: 0; -EPROTONOSUPPORT for a header of another version of the protocol; or
 * -EPROTO.
 */
int kb_parse_net(const void *buf, size_t len, u16 *type, size_t *whole)
{
	const struct kb_net_type_row *row;
	const struct kulp_hdr *hdr = buf;

	if (len < sizeof(*hdr) || le32_to_cpu(hdr->magic) != KB_MAGIC)
		return -EPROTO;
	if (le16_to_cpu(hdr->version) != KB_VERSION)
		return -EPROTONOSUPPORT;
	if (hdr->reserved)
		return -EPROTO;
	*type = le16_to_cpu(hdr->type);
	*whole = le32_to_cpu(hdr->len);
	if (*type >= ARRAY_SIZE(kb_net_types))
		return -EPROTO;
	row = &kb_net_types[*type];
	if (!row->fields || *whole < row->min || *whole > row->min + row->addrs)
		return -EPROTO;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kb_parse_net, KOFIBLK);

/**
 * kb_parse_msg() - parse a message of a given type
 * @want: the type
 * @buf: the message
 * @len: length of the message
 * @msg: takes the contents of the message, in the structure of @want
 * Context: Any.
 * Return: 0, or -EPROTO.
 */
int kb_parse_msg(u16 want, const void *buf, size_t len, void *msg)
{
	const struct kb_net_type_row *row = &kb_net_types[want];
	const struct kb_field *f;
	size_t whole;
	u16 type;

	if (kb_parse_net(buf, len, &type, &whole) || type != want || whole != len)
		return -EPROTO;
	for (f = row->fields; f->len; f++)
		if (!kb_get_field(f, buf + f->wire, msg + f->host))
			return -EPROTO;
	return row->ok && !row->ok(msg, buf + row->min, len - row->min) ? -EPROTO : 0;
}
EXPORT_SYMBOL_NS_GPL(kb_parse_msg, KOFIBLK);

/**
 * kb_build_msg() - build a message
 * @type: its type
 * @buf: room for KB_NET_MAX bytes
 * @msg: contents of the message, in the structure of @type
 * @addrs: addresses that follow the message
 * @len: bytes of @addrs
 * Context: Any.
 * Return: length of the message.
 */
size_t kb_build_msg(u16 type, void *buf, const void *msg, const void *addrs, size_t len)
{
	const struct kb_net_type_row *row = &kb_net_types[type];
	struct kulp_hdr *hdr = buf;
	const struct kb_field *f;

	memset(buf, 0, row->min);
	hdr->magic = cpu_to_le32(KB_MAGIC);
	hdr->version = cpu_to_le16(KB_VERSION);
	hdr->type = cpu_to_le16(type);
	hdr->len = cpu_to_le32(row->min + len);
	for (f = row->fields; f->len; f++)
		kb_put_field(f, buf + f->wire, msg + f->host);
	if (len)
		memcpy(buf + row->min, addrs, len);
	return row->min + len;
}
EXPORT_SYMBOL_NS_GPL(kb_build_msg, KOFIBLK);
