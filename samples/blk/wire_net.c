// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages of set-up: see wire.h. */
#include <linux/build_bug.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include "wire.h"

static_assert(sizeof(struct kb_hello) == 240);
static_assert(sizeof(struct kb_disk) == 48);
static_assert(sizeof(struct kb_accept) == 152);
static_assert(sizeof(struct kb_reject) == 120);
static_assert(sizeof(struct kb_resize) == 64);
static_assert(sizeof(struct kb_bye) == 56);
/* kulp_auth_sign() relies on this position of the MAC. */
static_assert(offsetof(struct kb_accept, mac) == sizeof(struct kulp_hdr));
static_assert(offsetof(struct kb_reject, mac) == sizeof(struct kulp_hdr));
static_assert(offsetof(struct kb_resize, mac) == sizeof(struct kulp_hdr));
static_assert(offsetof(struct kb_bye, mac) == sizeof(struct kulp_hdr));

#define KB_ADDRS_MAX	(KB_QUEUES_MAX * KULP_ADDR_MAX)

static_assert(sizeof(struct kb_hello) + KB_ADDRS_MAX <= KB_NET_MAX);
static_assert(sizeof(struct kb_accept) + KB_ADDRS_MAX <= KB_NET_MAX);

#define KB_FIELD(how, msg, field, member)						\
	KULP_FIELD(how, struct kb_##msg, field, struct kb_##msg##_msg, member)
#define KB_SAME(how, msg, field)	KB_FIELD(how, msg, field, field)
#define KB_RESERVED(msg)		KULP_RESERVED(struct kb_##msg, reserved)
#define KB_LIMIT(msg, field)	KB_FIELD(KULP_NUMBER, msg, field, limits.field)
#define KB_LIMITS(msg)									\
	KB_LIMIT(msg, caps), KB_LIMIT(msg, max_io), KB_LIMIT(msg, inline_max),		\
	KB_LIMIT(msg, keep_alive), KB_LIMIT(msg, queues), KB_LIMIT(msg, depth),		\
	KB_LIMIT(msg, inline_read), KB_SAME(KULP_NUMBER, msg, addr_len)
#define KB_DISK(field)		KB_SAME(KULP_NUMBER, accept, disk.field)

static const struct kulp_field kb_hello_fields[] = {
	KB_SAME(KULP_BYTES, hello, nonce),
	KB_SAME(KULP_TEXT, hello, client),
	KB_SAME(KULP_TEXT, hello, export),
	KB_SAME(KULP_BYTES, hello, host),
	KB_SAME(KULP_BYTES, hello, content),
	KB_SAME(KULP_NUMBER, hello, addr_format),
	KB_LIMITS(hello),
	KB_RESERVED(hello),
	{}
};

static const struct kulp_field kb_accept_fields[] = {
	KB_SAME(KULP_BYTES, accept, content),
	KB_SAME(KULP_NUMBER, accept, session),
	KB_SAME(KULP_NUMBER, accept, epoch),
	KB_LIMITS(accept),
	KB_DISK(bytes), KB_DISK(flags), KB_DISK(logical_block), KB_DISK(physical_block),
	KB_DISK(io_min), KB_DISK(io_opt), KB_DISK(discard_granularity),
	KB_DISK(discard_max), KB_DISK(zeroes_max),
	{}
};

static const struct kulp_field kb_reject_fields[] = {
	KB_SAME(KULP_NUMBER, reject, status),
	KB_SAME(KULP_FLAG, reject, again),
	KB_SAME(KULP_TEXT, reject, why),
	KB_RESERVED(reject),
	{}
};

static const struct kulp_field kb_resize_fields[] = {
	KB_SAME(KULP_NUMBER, resize, number),
	KB_SAME(KULP_NUMBER, resize, bytes),
	{}
};

static const struct kulp_field kb_bye_fields[] = {
	KB_SAME(KULP_FLAG, bye, again),
	KB_SAME(KULP_FLAG, bye, flushed),
	KB_RESERVED(bye),
	{}
};

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
	return kb_name_ok(msg->client) && kb_name_ok(msg->export) &&
	       memchr_inv(msg->host, 0, sizeof(msg->host)) && kb_limits_ok(&msg->limits) &&
	       kb_addrs_ok(&msg->limits, msg->addr_len, len);
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

static const struct kulp_type kb_types[] = {
	[KB_HELLO]	= { kb_hello_fields, kb_hello_ok, sizeof(struct kb_hello), KB_ADDRS_MAX },
	[KB_CHALLENGE]	= KULP_CHALLENGE_TYPE,
	[KB_AUTH]	= KULP_PROOF_TYPE,
	[KB_ACCEPT]	= { kb_accept_fields, kb_accept_ok, sizeof(struct kb_accept),
			    KB_ADDRS_MAX },
	[KB_REJECT]	= { kb_reject_fields, kb_reject_ok, sizeof(struct kb_reject) },
	[KB_RESIZE]	= { kb_resize_fields, kb_resize_ok, sizeof(struct kb_resize) },
	[KB_BYE]	= { kb_bye_fields, NULL, sizeof(struct kb_bye) },
};

const struct kulp_proto kb_proto = {
	.magic		= KB_MAGIC,
	.version	= KB_VERSION,
	.ntypes		= ARRAY_SIZE(kb_types),
	.types		= kb_types,
};
EXPORT_SYMBOL_NS_GPL(kb_proto, KOFIBLK);
