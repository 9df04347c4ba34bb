// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Private data, notes and ends of sessions: see wire.h. */
#include <linux/build_bug.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <kofi/session_types.h>
#include "wire.h"

static_assert(sizeof(struct kofiblk_hello) == 64);
static_assert(sizeof(struct kofiblk_disk) == 48);
static_assert(sizeof(struct kofiblk_accept) == 112);
static_assert(sizeof(struct kofiblk_resize) == 24);
static_assert(sizeof(struct kofiblk_bye) == 24);
static_assert(sizeof(struct kofiblk_bye) <= KCM_BYE_MAX);
/* kofi_cm's names, hosts and numbers of addresses are also kofiblk's. */
static_assert(KOFIBLK_NAME_MAX == KCM_NAME && KOFIBLK_HOST == KCM_HOST);
static_assert(KOFIBLK_QUEUES_MAX <= KCM_ADDRS);

#define KOFIBLK_FIELD(how, msg, field, member)					\
	KULP_FIELD(how, struct kofiblk_##msg, field, struct kofiblk_##msg##_msg, member)
#define KOFIBLK_SAME(how, msg, field)	KOFIBLK_FIELD(how, msg, field, field)
#define KOFIBLK_RESERVED(msg)		KULP_RESERVED(struct kofiblk_##msg, reserved)
#define KOFIBLK_LIMIT(msg, field)	KOFIBLK_FIELD(KULP_NUMBER, msg, field, limits.field)
#define KOFIBLK_LIMITS(msg)								\
	KOFIBLK_LIMIT(msg, caps), KOFIBLK_LIMIT(msg, max_io), KOFIBLK_LIMIT(msg, inline_max), \
	KOFIBLK_LIMIT(msg, keep_alive), KOFIBLK_LIMIT(msg, queues), KOFIBLK_LIMIT(msg, depth), \
	KOFIBLK_LIMIT(msg, inline_read), KOFIBLK_RESERVED(msg)
#define KOFIBLK_DISK(field)	KOFIBLK_SAME(KULP_NUMBER, accept, disk.field)

static const struct kulp_field kofiblk_hello_fields[] = {
	KOFIBLK_SAME(KULP_BYTES, hello, content),
	KOFIBLK_LIMITS(hello),
	KOFIBLK_SAME(KULP_NUMBER, hello, protocol),
	KULP_RESERVED(struct kofiblk_hello, reserved2),
	{}
};

static const struct kulp_field kofiblk_accept_fields[] = {
	KOFIBLK_SAME(KULP_BYTES, accept, content),
	KOFIBLK_SAME(KULP_NUMBER, accept, epoch),
	KOFIBLK_LIMITS(accept),
	KOFIBLK_DISK(bytes), KOFIBLK_DISK(flags), KOFIBLK_DISK(logical_block),
	KOFIBLK_DISK(physical_block), KOFIBLK_DISK(io_min), KOFIBLK_DISK(io_opt),
	KOFIBLK_DISK(discard_granularity), KOFIBLK_DISK(discard_max), KOFIBLK_DISK(zeroes_max),
	{}
};

static const struct kulp_field kofiblk_resize_fields[] = {
	KOFIBLK_SAME(KULP_NUMBER, resize, bytes),
	{}
};

static const struct kulp_field kofiblk_bye_fields[] = {
	KOFIBLK_SAME(KULP_FLAG, bye, flushed),
	KOFIBLK_RESERVED(bye),
	{}
};

/* --- checks of whole messages --- */

static bool kofiblk_limits_ok(const struct kofiblk_limits *l)
{
	return l->max_io >= KOFIBLK_IO_MIN && l->max_io <= KOFIBLK_IO_MAX &&
	       l->max_io % KOFIBLK_IO_MIN == 0 &&
	       l->inline_max <= KOFIBLK_INLINE_MAX && l->inline_read <= KOFIBLK_INLINE_READ_MAX &&
	       l->keep_alive >= KOFIBLK_KEEP_ALIVE_MIN && l->keep_alive <= KOFIBLK_KEEP_ALIVE_MAX &&
	       l->queues && l->queues <= KOFIBLK_QUEUES_MAX &&
	       l->depth && l->depth <= KOFIBLK_DEPTH_MAX;
}

static bool kofiblk_hello_ok(void *parsed, const void *tail, size_t len)
{
	struct kofiblk_hello_msg *msg = parsed;

	/* Ignore unknown capabilities, which newer clients may ask for but don't need. */
	msg->limits.caps &= KOFIBLK_CAPS;
	return kofiblk_limits_ok(&msg->limits);
}

static bool kofiblk_disk_ok(const struct kofiblk_disk_msg *disk, u32 caps)
{
	u64 sizes = disk->bytes | disk->io_min | disk->io_opt | disk->discard_granularity |
		    disk->discard_max | disk->zeroes_max;

	return !(disk->flags & ~KOFIBLK_DISK_FLAGS) && is_power_of_2(disk->logical_block) &&
	       disk->logical_block >= KOFIBLK_SECTOR && disk->logical_block <= KOFIBLK_IO_MIN &&
	       is_power_of_2(disk->physical_block) && disk->physical_block >= disk->logical_block &&
	       disk->bytes < KOFIBLK_OFFSET_MAX && !(sizes & (disk->logical_block - 1)) &&
	       !(caps & KOFIBLK_CAP_DISCARD) == !disk->discard_max &&
	       !(caps & KOFIBLK_CAP_WRITE_ZEROES) == !disk->zeroes_max &&
	       (!disk->discard_max || disk->discard_granularity);
}

static bool kofiblk_accept_ok(void *parsed, const void *tail, size_t len)
{
	const struct kofiblk_accept_msg *msg = parsed;

	return memchr_inv(msg->content, 0, sizeof(msg->content)) && msg->epoch &&
	       !(msg->limits.caps & ~KOFIBLK_CAPS) && kofiblk_limits_ok(&msg->limits) &&
	       kofiblk_disk_ok(&msg->disk, msg->limits.caps);
}

static bool kofiblk_resize_ok(void *parsed, const void *tail, size_t len)
{
	const struct kofiblk_resize_msg *msg = parsed;

	return msg->bytes < KOFIBLK_OFFSET_MAX && msg->bytes % KOFIBLK_SECTOR == 0;
}

/* --- messages --- */

static const struct kulp_type kofiblk_types[] = {
	[KOFIBLK_HELLO]		= { kofiblk_hello_fields, kofiblk_hello_ok,
				    sizeof(struct kofiblk_hello) },
	[KOFIBLK_ACCEPT]	= { kofiblk_accept_fields, kofiblk_accept_ok,
				    sizeof(struct kofiblk_accept) },
	[KOFIBLK_RESIZE]	= { kofiblk_resize_fields, kofiblk_resize_ok,
				    sizeof(struct kofiblk_resize) },
	[KOFIBLK_BYE]		= { kofiblk_bye_fields, NULL, sizeof(struct kofiblk_bye) },
};

const struct kulp_proto kofiblk_proto = {
	.magic		= KOFIBLK_MAGIC,
	.version	= KOFIBLK_VERSION,
	.ntypes		= ARRAY_SIZE(kofiblk_types),
	.types		= kofiblk_types,
};
EXPORT_SYMBOL_NS_GPL(kofiblk_proto, KOFIBLK);
