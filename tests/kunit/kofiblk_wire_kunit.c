// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kofiblk's parsers: valid messages are accepted, and each invalid field is refused. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "../../ulp/lib/msg.c"
#include "../../ulp/blk/wire.c"
#include "../../ulp/blk/wire_net.c"
#include "../../ulp/blk/tag.h"

static const struct kofiblk_hello_msg hello = {
	.content	= { 3 },
	.limits		= { KOFIBLK_CAPS, 1 << 20, 4096, 5000, 2, KOFIBLK_DEPTH_MAX, 8192 },
	.protocol	= 8,
};

static const struct kofiblk_accept_msg accept = {
	.content	= { 2 },
	.epoch		= U64_MAX - 1,
	.limits		= { KOFIBLK_CAPS, KOFIBLK_IO_MAX, 0, 100, 2, 1 },
	.disk = {
		.bytes			= 1 << 30,
		.flags			= KOFIBLK_DISK_FLAGS,
		.logical_block		= 4096,
		.physical_block		= 4096,
		.io_min			= 4096,
		.io_opt			= 65536,
		.discard_granularity	= 4096,
		.discard_max		= 1 << 20,
		.zeroes_max		= 1 << 20,
	},
};

static const struct kofiblk_resize_msg resize = {
	.bytes	= 4096,
};

static const struct kofiblk_bye_msg bye = {
	.flushed	= true,
};

static const struct kofiblk_cmd_msg cmd = {
	.op		= KOFIBLK_OP_WRITE,
	.flags		= KOFIBLK_CMD_FUA,
	.queue		= 1,
	.session	= 0x0123456789abcdef,
	.id		= KOFIBLK_ID(KOFIBLK_DEPTH_MAX - 1, 77ULL),
	.offset		= 1 << 20,
	.bytes	= 4096,
	.addr		= 0x1000,
	.key		= 5,
};

static const struct kofiblk_reply_msg reply = {
	.op		= KOFIBLK_OP_READ,
	.flags		= KOFIBLK_REPLY_READY,
	.queue		= 1,
	.session	= 0x0123456789abcdef,
	.id		= KOFIBLK_ID(3, 77ULL),
	.bytes	= 4096,
	.addr		= 0x1000,
	.key		= 5,
};

/* Any parsed message. */
union any {
	struct kofiblk_hello_msg	hello;
	struct kofiblk_accept_msg	accept;
	struct kofiblk_resize_msg	resize;
	struct kofiblk_bye_msg	bye;
	struct kofiblk_cmd_msg	cmd;
	struct kofiblk_reply_msg	reply;
};

enum kind { HELLO, ACCEPT, RESIZE, BYE, CMD, REPLY };

/* Room for any message, and bytes behind it. */
#define ROOM	1024

static size_t build(enum kind kind, void *buf)
{
	switch (kind) {
	case HELLO:
		return kofiblk_build_hello(buf, &hello);
	case ACCEPT:
		return kofiblk_build_accept(buf, &accept);
	case RESIZE:
		return kofiblk_build_resize(buf, &resize);
	case BYE:
		return kofiblk_build_bye(buf, &bye);
	case CMD:
		return kofiblk_build_cmd(buf, &cmd);
	default:
		return kofiblk_build_reply(buf, &reply);
	}
}

static int parse(enum kind kind, const void *buf, size_t len, union any *any)
{
	switch (kind) {
	case HELLO:
		return kofiblk_parse_hello(buf, len, &any->hello);
	case ACCEPT:
		return kofiblk_parse_accept(buf, len, &any->accept);
	case RESIZE:
		return kofiblk_parse_resize(buf, len, &any->resize);
	case BYE:
		return kofiblk_parse_bye(buf, len, &any->bye);
	case CMD:
		return kofiblk_parse_cmd(buf, len, &any->cmd);
	default:
		return kofiblk_parse_reply(buf, len, &any->reply);
	}
}

static union any *any_message(struct kunit *test)
{
	union any *any = kunit_kzalloc(test, sizeof(*any), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, any);
	return any;
}

static u8 *message(struct kunit *test, enum kind kind, size_t *len)
{
	u8 *buf = kunit_kzalloc(test, ROOM, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	*len = build(kind, buf);
	return buf;
}

static void round_trip(struct kunit *test)
{
	union any *any = any_message(test);
	size_t len;
	u8 *buf;

	buf = message(test, HELLO, &len);
	KUNIT_ASSERT_EQ(test, parse(HELLO, buf, len, any), 0);
	KUNIT_EXPECT_EQ(test, any->hello.protocol, hello.protocol);
	KUNIT_EXPECT_MEMEQ(test, any->hello.content, hello.content, sizeof(hello.content));
	KUNIT_EXPECT_MEMEQ(test, &any->hello.limits, &hello.limits, sizeof(hello.limits));
	buf = message(test, ACCEPT, &len);
	KUNIT_ASSERT_EQ(test, parse(ACCEPT, buf, len, any), 0);
	KUNIT_EXPECT_MEMEQ(test, &any->accept.disk, &accept.disk, sizeof(accept.disk));
	KUNIT_EXPECT_EQ(test, any->accept.epoch, accept.epoch);
	buf = message(test, CMD, &len);
	KUNIT_ASSERT_EQ(test, parse(CMD, buf, len, any), 0);
	KUNIT_EXPECT_EQ(test, any->cmd.id, cmd.id);
	KUNIT_EXPECT_EQ(test, any->cmd.offset, cmd.offset);
	KUNIT_EXPECT_EQ(test, any->cmd.key, cmd.key);
	KUNIT_EXPECT_NULL(test, any->cmd.data);
	buf = message(test, REPLY, &len);
	KUNIT_ASSERT_EQ(test, parse(REPLY, buf, len, any), 0);
	KUNIT_EXPECT_EQ(test, any->reply.id, reply.id);
	KUNIT_EXPECT_EQ(test, any->reply.addr, reply.addr);
}

/* A message must have the exact length and the right type. */
static void lengths(struct kunit *test)
{
	union any *any = any_message(test);
	enum kind kind, other;
	size_t len, n;
	u8 *buf;

	for (kind = HELLO; kind <= REPLY; kind++) {
		buf = message(test, kind, &len);
		for (n = 0; n < len + 64; n++)
			KUNIT_EXPECT_EQ_MSG(test, parse(kind, buf, n, any), n == len ? 0 : -EPROTO,
					    "%d, %zu of %zu", kind, n, len);
		for (other = HELLO; other <= REPLY; other++)
			KUNIT_EXPECT_EQ_MSG(test, !parse(other, buf, len, any),
					    kind == other, "%d as %d", kind, other);
	}
}

/* A field of a valid message, and its invalid values. */
struct change {
	const char	*what;
	enum kind	kind;
	u16		offset;
	u8		size;
	u64		value;
	bool		fine;
};

#define AT(type, field)							\
	offsetof(struct type, field), sizeof_field(struct type, field)

static const struct change changes[] = {
	{ "magic", HELLO, AT(kulp_hdr, magic), 1 },
	{ "version", HELLO, AT(kulp_hdr, version), 1 },
	{ "type 0", HELLO, AT(kulp_hdr, type), 0 },
	{ "type 5", HELLO, AT(kulp_hdr, type), 5 },
	{ "length", HELLO, AT(kulp_hdr, len), U32_MAX },
	{ "header's reserved", HELLO, AT(kulp_hdr, reserved), 1 },
	{ "unknown capability", HELLO, AT(kofiblk_hello, caps), U32_MAX, true },
	{ "max_io 0", HELLO, AT(kofiblk_hello, max_io), 0 },
	{ "max_io 512", HELLO, AT(kofiblk_hello, max_io), 512 },
	{ "max_io odd", HELLO, AT(kofiblk_hello, max_io), 4097 },
	{ "max_io too large", HELLO, AT(kofiblk_hello, max_io), KOFIBLK_IO_MAX + 4096 },
	{ "inline_max too large", HELLO, AT(kofiblk_hello, inline_max),
	  KOFIBLK_INLINE_MAX + 1 },
	{ "inline_max 0", HELLO, AT(kofiblk_hello, inline_max), 0, true },
	{ "inline_read too large", HELLO, AT(kofiblk_hello, inline_read),
	  KOFIBLK_INLINE_READ_MAX + 1 },
	{ "inline_read 0", HELLO, AT(kofiblk_hello, inline_read), 0, true },
	{ "keep_alive 0", HELLO, AT(kofiblk_hello, keep_alive), 0 },
	{ "keep_alive too long", HELLO, AT(kofiblk_hello, keep_alive),
	  KOFIBLK_KEEP_ALIVE_MAX + 1 },
	{ "no queue", HELLO, AT(kofiblk_hello, queues), 0 },
	{ "too many queues", HELLO, AT(kofiblk_hello, queues), KOFIBLK_QUEUES_MAX + 1 },
	{ "depth 0", HELLO, AT(kofiblk_hello, depth), 0 },
	{ "depth too large", HELLO, AT(kofiblk_hello, depth), KOFIBLK_DEPTH_MAX + 1 },
	{ "reserved", HELLO, AT(kofiblk_hello, reserved), 1 },
	{ "more reserved", HELLO, AT(kofiblk_hello, reserved2), 1 },
	{ "accept: epoch 0", ACCEPT, AT(kofiblk_accept, epoch), 0 },
	{ "accept: no content", ACCEPT, offsetof(struct kofiblk_accept, content), 8,
	  0 },
	{ "accept: unknown capability", ACCEPT, AT(kofiblk_accept, caps),
	  KOFIBLK_CAPS + 1 },
	{ "accept: caps without discard", ACCEPT, AT(kofiblk_accept, caps),
	  KOFIBLK_CAPS & ~KOFIBLK_CAP_DISCARD },
	{ "accept: max_io", ACCEPT, AT(kofiblk_accept, max_io), 0 },
	{ "accept: queues", ACCEPT, AT(kofiblk_accept, queues), 0 },
	{ "accept: reserved", ACCEPT, AT(kofiblk_accept, reserved), 1 },
	{ "accept: depth", ACCEPT, AT(kofiblk_accept, depth), 0 },
	{ "accept: inline_read", ACCEPT, AT(kofiblk_accept, inline_read),
	  KOFIBLK_INLINE_READ_MAX + 1 },
	{ "disk: odd size", ACCEPT, AT(kofiblk_accept, disk.bytes), 4097 },
	{ "disk: 2^63 bytes", ACCEPT, AT(kofiblk_accept, disk.bytes), BIT_ULL(63) },
	{ "disk: flags", ACCEPT, AT(kofiblk_accept, disk.flags), 8 },
	{ "disk: block 0", ACCEPT, AT(kofiblk_accept, disk.logical_block), 0 },
	{ "disk: block 513", ACCEPT, AT(kofiblk_accept, disk.logical_block), 513 },
	{ "disk: block 8192", ACCEPT, AT(kofiblk_accept, disk.logical_block), 8192 },
	{ "disk: physical 512", ACCEPT, AT(kofiblk_accept, disk.physical_block),
	  512 },
	{ "disk: io_min", ACCEPT, AT(kofiblk_accept, disk.io_min), 512 },
	{ "disk: no discard_max", ACCEPT, AT(kofiblk_accept, disk.discard_max), 0 },
	{ "disk: no granularity", ACCEPT,
	  AT(kofiblk_accept, disk.discard_granularity), 0 },
	{ "disk: zeroes_max", ACCEPT, AT(kofiblk_accept, disk.zeroes_max), 1 },
	{ "resize: odd", RESIZE, AT(kofiblk_resize, bytes), 511 },
	{ "resize: 2^63", RESIZE, AT(kofiblk_resize, bytes), BIT_ULL(63) },
	{ "bye: flushed 2", BYE, AT(kofiblk_bye, flushed), 2 },
	{ "bye: reserved", BYE, AT(kofiblk_bye, reserved[0]), 1 },
	{ "cmd: version", CMD, AT(kofiblk_cmd, version), 1 },
	{ "cmd: op 0", CMD, AT(kofiblk_cmd, op), 0 },
	{ "cmd: op 9", CMD, AT(kofiblk_cmd, op), 9 },
	{ "cmd: any tag", CMD, AT(kofiblk_cmd, tag), U64_MAX, true },
	{ "cmd: unknown flag", CMD, AT(kofiblk_cmd, flags), 32 },
	{ "cmd: SUM without one", CMD, AT(kofiblk_cmd, flags), KOFIBLK_CMD_SUM },
	{ "cmd: IMM on a write", CMD, AT(kofiblk_cmd, flags), KOFIBLK_CMD_IMM },
	{ "cmd: NOUNMAP on a write", CMD, AT(kofiblk_cmd, flags), KOFIBLK_CMD_NOUNMAP },
	{ "cmd: INLINE without data", CMD, AT(kofiblk_cmd, flags), KOFIBLK_CMD_INLINE },
	{ "cmd: FUA on a read", CMD, AT(kofiblk_cmd, op), KOFIBLK_OP_READ },
	{ "cmd: queue", CMD, AT(kofiblk_cmd, queue), KOFIBLK_QUEUES_MAX },
	{ "cmd: reserved", CMD, AT(kofiblk_cmd, reserved), 1 },
	{ "cmd: session 0", CMD, AT(kofiblk_cmd, session), 0 },
	{ "cmd: slot", CMD, AT(kofiblk_cmd, id), KOFIBLK_DEPTH_MAX },
	{ "cmd: keep-alive's slot", CMD, AT(kofiblk_cmd, id), KOFIBLK_SLOT_KEEP_ALIVE },
	{ "cmd: offset unaligned", CMD, AT(kofiblk_cmd, offset), 1 },
	{ "cmd: offset of the end", CMD, AT(kofiblk_cmd, offset),
	  BIT_ULL(63) - 4096 },
	{ "cmd: offset wraps", CMD, AT(kofiblk_cmd, offset), U64_MAX - 4095 },
	{ "cmd: no bytes", CMD, AT(kofiblk_cmd, bytes), 0 },
	{ "cmd: bytes unaligned", CMD, AT(kofiblk_cmd, bytes), 513 },
	{ "cmd: too many bytes", CMD, AT(kofiblk_cmd, bytes), KOFIBLK_IO_MAX + 512 },
	{ "cmd: bytes wrap", CMD, AT(kofiblk_cmd, bytes), U64_MAX - 511 },
	{ "cmd: any address", CMD, AT(kofiblk_cmd, addr), U64_MAX, true },
	{ "cmd: any key", CMD, AT(kofiblk_cmd, key), U64_MAX, true },
	{ "cmd: a flush of a range", CMD, AT(kofiblk_cmd, op), KOFIBLK_OP_FLUSH },
	{ "reply: version", REPLY, AT(kofiblk_reply, version), 0 },
	{ "reply: FETCHED", REPLY, AT(kofiblk_reply, op), KOFIBLK_OP_FETCHED },
	{ "reply: READY write", REPLY, AT(kofiblk_reply, op), KOFIBLK_OP_WRITE },
	{ "reply: address, not READY", REPLY, AT(kofiblk_reply, flags), 0 },
	{ "reply: unknown flag", REPLY, AT(kofiblk_reply, flags), 8 },
	{ "reply: READY and INLINE", REPLY, AT(kofiblk_reply, flags), 3 },
	{ "reply: READY and SUM", REPLY, AT(kofiblk_reply, flags), 5 },
	{ "reply: SUM without one", REPLY, AT(kofiblk_reply, flags), KOFIBLK_REPLY_SUM },
	{ "reply: READY with an error", REPLY, AT(kofiblk_reply, status), KULP_STS_IO },
	{ "reply: unknown status", REPLY, AT(kofiblk_reply, status), KULP_STATUSES },
	{ "reply: queue", REPLY, AT(kofiblk_reply, queue), U16_MAX },
	{ "reply: session 0", REPLY, AT(kofiblk_reply, session), 0 },
	{ "reply: slot", REPLY, AT(kofiblk_reply, id), KOFIBLK_DEPTH_MAX },
	{ "reply: no bytes", REPLY, AT(kofiblk_reply, bytes), 0 },
	{ "reply: too many bytes", REPLY, AT(kofiblk_reply, bytes),
	  KOFIBLK_IO_MAX + 512 },
};

static void change_name(const struct change *change, char *desc)
{
	strscpy(desc, change->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(changes, changes, change_name);

static void changed_field(struct kunit *test)
{
	const struct change *change = test->param_value;
	__le64 value = cpu_to_le64(change->value);
	union any *any = any_message(test);
	size_t len;
	u8 *buf;

	buf = message(test, change->kind, &len);
	memcpy(buf + change->offset, &value, change->size);
	KUNIT_EXPECT_EQ(test, parse(change->kind, buf, len, any), change->fine ? 0 : -EPROTO);
	if (change->kind == HELLO && change->fine)
		KUNIT_EXPECT_EQ(test, any->hello.limits.caps & ~KOFIBLK_CAPS, 0);
}

/* Another version is distinguished from garbage, for the log. */
static void other_version(struct kunit *test)
{
	struct kulp_hdr *hdr;
	size_t len;
	u16 type;
	u8 *buf;

	buf = message(test, BYE, &len);
	hdr = (struct kulp_hdr *)buf;
	KUNIT_EXPECT_EQ(test, kulp_parse_hdr(&kofiblk_proto, buf, len, &type), 0);
	hdr->version = cpu_to_le16(KOFIBLK_VERSION + 1);
	KUNIT_EXPECT_EQ(test, kulp_parse_hdr(&kofiblk_proto, buf, len, &type), -EPROTONOSUPPORT);
	hdr->magic = 0;
	KUNIT_EXPECT_EQ(test, kulp_parse_hdr(&kofiblk_proto, buf, len, &type), -EPROTO);
}

static void inline_data(struct kunit *test)
{
	struct kofiblk_cmd_msg in = cmd;
	union any *any = any_message(test);
	size_t len;
	u8 *buf = message(test, CMD, &len);
	struct kofiblk_cmd *wire = (struct kofiblk_cmd *)buf;

	in.flags = KOFIBLK_CMD_INLINE;
	in.bytes = 512;
	in.addr = 0;
	in.key = 0;
	len = kofiblk_build_cmd(buf, &in) + 512;
	KUNIT_ASSERT_EQ(test, parse(CMD, buf, len, any), 0);
	KUNIT_EXPECT_PTR_EQ(test, any->cmd.data, (const void *)(buf + sizeof(*wire)));
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len - 1, any), -EPROTO);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len + 1, any), -EPROTO);
	wire->addr = cpu_to_le64(1);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len, any), -EPROTO);
	wire->addr = 0;
	wire->bytes = cpu_to_le64(KOFIBLK_INLINE_MAX + 512);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, sizeof(*wire) + KOFIBLK_INLINE_MAX + 512,
				    any), -EPROTO);
}

/* The command of a read with inline data has no address. */
static void inline_read(struct kunit *test)
{
	struct kofiblk_cmd_msg in = cmd;
	union any *any = any_message(test);
	size_t len;
	u8 *buf = message(test, CMD, &len);
	struct kofiblk_cmd *wire = (struct kofiblk_cmd *)buf;

	in.op = KOFIBLK_OP_READ;
	in.flags = KOFIBLK_CMD_INLINE;
	in.bytes = KOFIBLK_INLINE_READ_MAX;
	in.addr = 0;
	in.key = 0;
	len = kofiblk_build_cmd(buf, &in);
	KUNIT_ASSERT_EQ(test, parse(CMD, buf, len, any), 0);
	KUNIT_EXPECT_NULL(test, any->cmd.data);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len + 512, any), -EPROTO);
	wire->key = cpu_to_le64(1);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len, any), -EPROTO);
	wire->key = 0;
	wire->bytes = cpu_to_le64(KOFIBLK_INLINE_READ_MAX + 512);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len, any), -EPROTO);
}

/* Immediate data may follow the command of a read, and no other. */
static void immediate_data(struct kunit *test)
{
	struct kofiblk_cmd_msg in = cmd;
	union any *any = any_message(test);
	size_t len;
	u8 *buf = message(test, CMD, &len);
	struct kofiblk_cmd *wire = (struct kofiblk_cmd *)buf;
	struct kofiblk_word *imm = (struct kofiblk_word *)(wire + 1);

	in.op = KOFIBLK_OP_READ;
	in.flags = KOFIBLK_CMD_IMM;
	in.imm = 0x87654321;
	len = kofiblk_build_cmd(buf, &in);
	KUNIT_EXPECT_EQ(test, len, KOFIBLK_CMD_MAX(0));
	KUNIT_ASSERT_EQ(test, parse(CMD, buf, len, any), 0);
	KUNIT_EXPECT_EQ(test, any->cmd.imm, 0x87654321U);
	KUNIT_EXPECT_NULL(test, any->cmd.data);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len - 1, any), -EPROTO);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len + 1, any), -EPROTO);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, sizeof(*wire), any), -EPROTO);
	imm->reserved = cpu_to_le32(1);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len, any), -EPROTO);
	imm->reserved = 0;
	wire->op = KOFIBLK_OP_WRITE;
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len, any), -EPROTO);
	wire->op = KOFIBLK_OP_READ;
	wire->flags = cpu_to_le16(KOFIBLK_CMD_IMM | KOFIBLK_CMD_INLINE);
	wire->addr = 0;
	wire->key = 0;
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len, any), -EPROTO);
	wire->flags = cpu_to_le16(KOFIBLK_CMD_IMM | KOFIBLK_CMD_SUM);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len, any), -EPROTO);
	/* Without the flag the command is too long. */
	wire->flags = 0;
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len, any), -EPROTO);
	KUNIT_ASSERT_EQ(test, parse(CMD, buf, sizeof(*wire), any), 0);
	KUNIT_EXPECT_EQ(test, any->cmd.imm, 0U);
}

static void inline_reply(struct kunit *test)
{
	struct kofiblk_reply_msg in = reply;
	union any *any = any_message(test);
	size_t head, len;
	u8 *buf = kunit_kzalloc(test, 2 * KOFIBLK_INLINE_READ_MAX, GFP_KERNEL);
	struct kofiblk_reply *wire = (struct kofiblk_reply *)buf;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	in.flags = KOFIBLK_REPLY_INLINE;
	in.bytes = KOFIBLK_INLINE_READ_MAX;
	in.addr = 0;
	in.key = 0;
	head = kofiblk_build_reply(buf, &in);
	len = head + in.bytes;
	KUNIT_ASSERT_EQ(test, parse(REPLY, buf, len, any), 0);
	KUNIT_EXPECT_PTR_EQ(test, any->reply.data, (const void *)(buf + head));
	/* The number of bytes must be exact. */
	KUNIT_EXPECT_EQ(test, parse(REPLY, buf, len - 1, any), -EPROTO);
	KUNIT_EXPECT_EQ(test, parse(REPLY, buf, len + 1, any), -EPROTO);
	KUNIT_EXPECT_EQ(test, parse(REPLY, buf, head, any), -EPROTO);
	wire->bytes = cpu_to_le64(in.bytes + 512);
	KUNIT_EXPECT_EQ(test, parse(REPLY, buf, len + 512, any), -EPROTO);
	wire->bytes = 0;
	KUNIT_EXPECT_EQ(test, parse(REPLY, buf, head, any), -EPROTO);
	wire->bytes = cpu_to_le64(in.bytes);
	/* Inline data needs a successful read, and excludes READY. */
	wire->op = KOFIBLK_OP_WRITE;
	KUNIT_EXPECT_EQ(test, parse(REPLY, buf, len, any), -EPROTO);
	wire->op = KOFIBLK_OP_READ;
	wire->flags = cpu_to_le16(KOFIBLK_REPLY_INLINE | KOFIBLK_REPLY_READY);
	KUNIT_EXPECT_EQ(test, parse(REPLY, buf, len, any), -EPROTO);
	wire->flags = cpu_to_le16(KOFIBLK_REPLY_INLINE);
	wire->addr = cpu_to_le64(1);
	KUNIT_EXPECT_EQ(test, parse(REPLY, buf, len, any), -EPROTO);
	wire->addr = 0;
	wire->status = cpu_to_le16(KULP_STS_IO);
	KUNIT_EXPECT_EQ(test, parse(REPLY, buf, len, any), -EPROTO);
	wire->bytes = 0;
	KUNIT_EXPECT_EQ(test, parse(REPLY, buf, head, any), -EPROTO);
	wire->flags = 0;
	KUNIT_EXPECT_EQ(test, parse(REPLY, buf, head, any), 0);
	KUNIT_EXPECT_NULL(test, any->reply.data);
}

/* A checksum follows the header, and data follows the checksum. */
static void checksums(struct kunit *test)
{
	struct kofiblk_cmd_msg in = cmd;
	struct kofiblk_reply_msg back = reply;
	union any *any = any_message(test);
	size_t len;
	u8 *buf = message(test, CMD, &len);

	in.flags = KOFIBLK_CMD_INLINE | KOFIBLK_CMD_SUM;
	in.bytes = 512;
	in.addr = 0;
	in.key = 0;
	in.sum = 0x89abcdef;
	len = kofiblk_build_cmd(buf, &in);
	KUNIT_EXPECT_EQ(test, len, KOFIBLK_CMD_MAX(0));
	KUNIT_ASSERT_EQ(test, parse(CMD, buf, len + 512, any), 0);
	KUNIT_EXPECT_EQ(test, any->cmd.sum, in.sum);
	KUNIT_EXPECT_PTR_EQ(test, any->cmd.data, (const void *)(buf + len));
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len + 511, any), -EPROTO);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, sizeof(struct kofiblk_cmd) + 512, any), -EPROTO);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, sizeof(struct kofiblk_cmd) + 7, any), -EPROTO);
	buf[len - 1] = 1;
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len + 512, any), -EPROTO);
	/* Commands that aren't requests have no checksum. */
	in = (struct kofiblk_cmd_msg) {
		.op = KOFIBLK_OP_KEEP_ALIVE, .flags = KOFIBLK_CMD_SUM, .session = 1,
		.id = KOFIBLK_ID(KOFIBLK_SLOT_KEEP_ALIVE, 1ULL),
	};
	len = kofiblk_build_cmd(buf, &in);
	KUNIT_EXPECT_EQ(test, parse(CMD, buf, len, any), -EPROTO);

	back.flags = KOFIBLK_REPLY_SUM;
	back.addr = 0;
	back.key = 0;
	back.sum = 0x12345678;
	len = kofiblk_build_reply(buf, &back);
	KUNIT_EXPECT_EQ(test, len, KOFIBLK_REPLY_MAX(0));
	KUNIT_ASSERT_EQ(test, parse(REPLY, buf, len, any), 0);
	KUNIT_EXPECT_EQ(test, any->reply.sum, back.sum);
	KUNIT_EXPECT_NULL(test, any->reply.data);
	KUNIT_EXPECT_EQ(test, parse(REPLY, buf, len - 1, any), -EPROTO);
	back.op = KOFIBLK_OP_WRITE;
	len = kofiblk_build_reply(buf, &back);
	KUNIT_EXPECT_EQ(test, parse(REPLY, buf, len, any), -EPROTO);
	back.op = KOFIBLK_OP_READ;
	back.flags |= KOFIBLK_REPLY_INLINE;
	back.bytes = 512;
	len = kofiblk_build_reply(buf, &back);
	KUNIT_ASSERT_EQ(test, parse(REPLY, buf, len + 512, any), 0);
	KUNIT_EXPECT_PTR_EQ(test, any->reply.data, (const void *)(buf + len));
}

/* PROVE and its reply have a nonce, which isn't 0, instead of a key. */
static void proofs(struct kunit *test)
{
	const u64 id = KOFIBLK_ID(KOFIBLK_SLOT_KEEP_ALIVE, 1ULL);
	struct kofiblk_reply_msg back = { .op = KOFIBLK_OP_PROVE, .session = 1, .id = id };
	struct kofiblk_cmd_msg in = { .op = KOFIBLK_OP_PROVE, .session = 1, .id = id };
	union any *any = any_message(test);
	size_t len;
	u8 *buf = message(test, CMD, &len);

#define TRY(kind, change, ret)						\
	do {									\
		change;								\
		len = kind == CMD ? kofiblk_build_cmd(buf, &in) :		\
				    kofiblk_build_reply(buf, &back);		\
		KUNIT_EXPECT_EQ_MSG(test, parse(kind, buf, len, any), ret, "%s", #change); \
	} while (0)
	TRY(CMD, in.key = 0, -EPROTO);
	TRY(CMD, in.key = U64_MAX, 0);
	KUNIT_EXPECT_EQ(test, any->cmd.key, U64_MAX);
	TRY(CMD, in.addr = 1, -EPROTO);
	in.addr = 0;
	TRY(CMD, in.id = 1ULL << 16, -EPROTO);
	in.id = id;
	TRY(CMD, in.op = KOFIBLK_OP_KEEP_ALIVE, -EPROTO);
	TRY(CMD, in.key = 0, 0);
	TRY(REPLY, back.key = 0, -EPROTO);
	TRY(REPLY, back.key = U64_MAX, 0);
	KUNIT_EXPECT_EQ(test, any->reply.key, U64_MAX);
	TRY(REPLY, back.addr = 1, -EPROTO);
	back.addr = 0;
	TRY(REPLY, back.op = KOFIBLK_OP_KEEP_ALIVE, -EPROTO);
	TRY(REPLY, back.key = 0, 0);
#undef TRY
}

static void names(struct kunit *test)
{
	static const char * const wrong[] = {
		"", ".", "..", "a/b", "a b", "a\n", "\x7f", "\xe4",
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	};
	unsigned int i;

	KUNIT_EXPECT_TRUE(test, kofiblk_name_ok("host-a"));
	KUNIT_EXPECT_TRUE(test, kofiblk_name_ok("..."));
	KUNIT_EXPECT_TRUE(test, kofiblk_name_ok(wrong[8] + 1));
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		KUNIT_EXPECT_FALSE_MSG(test, kofiblk_name_ok(wrong[i]), "%u", i);
}

/* The keys of tags are the SipHashes of 0 to 3, by the key of SipHash's own examples. */
static void tag_keys(struct kunit *test)
{
	const siphash_key_t key = { { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL } };
	struct kofiblk_keys keys;
	u8 secret[16];
	unsigned int i;

	for (i = 0; i < sizeof(secret); i++)
		secret[i] = i;
	kofiblk_keys_make(secret, &keys);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, keys.cmd.key[i], siphash_1u64(i, &key));
		KUNIT_EXPECT_EQ(test, keys.reply.key[i], siphash_1u64(2 + i, &key));
	}
	KUNIT_EXPECT_NE(test, keys.cmd.key[0], keys.reply.key[0]);
}

static void statuses(struct kunit *test)
{
	u16 status;

	for (status = 0; status < KULP_STATUSES; status++)
		KUNIT_EXPECT_EQ(test, kulp_errno_status(kulp_status_errno(status)), status);
	KUNIT_EXPECT_EQ(test, kulp_status_errno(0), 0);
	KUNIT_EXPECT_EQ(test, kulp_status_errno(KULP_STATUSES), -EIO);
	KUNIT_EXPECT_EQ(test, kulp_errno_status(-ENOTTY), KULP_STS_IO);
	KUNIT_EXPECT_EQ(test, kulp_errno_status(-ENOSPC), KULP_STS_NOSPC);
}

static void granted(struct kunit *test)
{
	struct kofiblk_limits less = hello.limits;

	KUNIT_EXPECT_TRUE(test, kofiblk_limits_within(&less, &hello.limits));
	less.caps = 0;
	less.max_io--;
	KUNIT_EXPECT_TRUE(test, kofiblk_limits_within(&less, &hello.limits));
#define MORE(field)							\
	do {								\
		less = hello.limits;					\
		less.field++;						\
		KUNIT_EXPECT_FALSE(test,				\
				   kofiblk_limits_within(&less,		\
						    &hello.limits));	\
	} while (0)
	MORE(caps);
	MORE(max_io);
	MORE(inline_max);
	MORE(keep_alive);
	MORE(queues);
	MORE(depth);
	MORE(inline_read);
#undef MORE
}

static struct kunit_case cases[] = {
	KUNIT_CASE(round_trip),
	KUNIT_CASE(lengths),
	KUNIT_CASE_PARAM(changed_field, changes_gen_params),
	KUNIT_CASE(other_version),
	KUNIT_CASE(inline_data),
	KUNIT_CASE(inline_read),
	KUNIT_CASE(inline_reply),
	KUNIT_CASE(checksums),
	KUNIT_CASE(immediate_data),
	KUNIT_CASE(proofs),
	KUNIT_CASE(names),
	KUNIT_CASE(tag_keys),
	KUNIT_CASE(statuses),
	KUNIT_CASE(granted),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_wire",
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of kofiblk's wire parsers");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
