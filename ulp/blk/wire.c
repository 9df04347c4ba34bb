// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Names, commands and replies: see wire.h. */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire.h"

static_assert(sizeof(struct kofiblk_cmd) == 64);
static_assert(sizeof(struct kofiblk_reply) == 56);
static_assert(sizeof(struct kofiblk_word) == 8);

/**
 * kofiblk_name_ok() - check the name of a client or export
 * @name: the name, NUL-terminated
 *
 * Names are configfs directories and are printed. So they consist of visible ASCII
 * characters without the slash, at least one and less than KOFIBLK_NAME_MAX, and aren't . or ..
 * Context: Any.
 * Return: whether it is valid.
 */
bool kofiblk_name_ok(const char *name)
{
	size_t len = 0;

	for (; name[len]; len++)
		if (len == KOFIBLK_NAME_MAX - 1 || name[len] <= ' ' ||
		    name[len] > '~' || name[len] == '/')
			return false;
	return len && strcmp(name, ".") && strcmp(name, "..");
}
EXPORT_SYMBOL_NS_GPL(kofiblk_name_ok, KOFIBLK);

/* --- commands and replies --- */

#define KOFIBLK_HAS_RANGE	0x1	/* offset and bytes; else both are 0 */
#define KOFIBLK_HAS_DATA	0x2	/* at most KOFIBLK_IO_MAX bytes at addr; else addr is 0 */
#define KOFIBLK_NO_REPLY	0x4	/* the command has no reply of its own */
#define KOFIBLK_NO_SLOT		0x8	/* KOFIBLK_SLOT_KEEP_ALIVE */
#define KOFIBLK_HAS_NONCE	0x10	/* instead of a key */

static const struct kofiblk_op_row {
	const char	*name;
	u16		flags;	/* valid KOFIBLK_CMD bits */
	u16		has;
} kofiblk_ops[] = {
	[KOFIBLK_OP_READ]	  = { "READ", KOFIBLK_CMD_INLINE | KOFIBLK_CMD_SUM |
				      KOFIBLK_CMD_IMM, KOFIBLK_HAS_RANGE | KOFIBLK_HAS_DATA },
	[KOFIBLK_OP_WRITE]	  = { "WRITE", KOFIBLK_CMD_FUA | KOFIBLK_CMD_INLINE |
				      KOFIBLK_CMD_SUM, KOFIBLK_HAS_RANGE | KOFIBLK_HAS_DATA },
	[KOFIBLK_OP_FLUSH]	  = { "FLUSH", KOFIBLK_CMD_SUM },
	[KOFIBLK_OP_DISCARD]	  = { "DISCARD", KOFIBLK_CMD_SUM, KOFIBLK_HAS_RANGE },
	[KOFIBLK_OP_WRITE_ZEROES] = { "WRITE_ZEROES", KOFIBLK_CMD_FUA | KOFIBLK_CMD_NOUNMAP |
				      KOFIBLK_CMD_SUM, KOFIBLK_HAS_RANGE },
	[KOFIBLK_OP_KEEP_ALIVE]	  = { "KEEP_ALIVE", 0, KOFIBLK_NO_SLOT },
	[KOFIBLK_OP_FETCHED]	  = { "FETCHED", 0, KOFIBLK_NO_REPLY },
	[KOFIBLK_OP_PROVE]	  = { "PROVE", 0, KOFIBLK_NO_SLOT | KOFIBLK_HAS_NONCE },
};

static const struct kofiblk_op_row *kofiblk_op_row(u8 op)
{
	return op < ARRAY_SIZE(kofiblk_ops) && kofiblk_ops[op].name ? &kofiblk_ops[op] : NULL;
}

/**
 * kofiblk_op_name() - get a command's name for messages
 * @op: KOFIBLK_OP_*
 * Context: Any.
 * Return: the name, or "?" for an unknown command.
 */
const char *kofiblk_op_name(u8 op)
{
	const struct kofiblk_op_row *row = kofiblk_op_row(op);

	return row ? row->name : "?";
}
EXPORT_SYMBOL_NS_GPL(kofiblk_op_name, KOFIBLK);

static bool kofiblk_id_ok(const struct kofiblk_op_row *row, u64 id)
{
	u16 slot = KOFIBLK_ID_SLOT(id);

	return row->has & KOFIBLK_NO_SLOT ? slot == KOFIBLK_SLOT_KEEP_ALIVE :
					    slot < KOFIBLK_DEPTH_MAX;
}

/* @memory: whether addr and key are those of memory, which may have any. */
static bool kofiblk_key_ok(const struct kofiblk_op_row *row, bool memory, u64 addr, u64 key)
{
	return memory || (!addr && !(row->has & KOFIBLK_HAS_NONCE) == !key);
}

static bool kofiblk_range_ok(const struct kofiblk_op_row *row, const struct kofiblk_cmd_msg *msg)
{
	if (!(row->has & KOFIBLK_HAS_RANGE))
		return !msg->offset && !msg->bytes;
	if (row->has & KOFIBLK_HAS_DATA && msg->bytes > KOFIBLK_IO_MAX)
		return false;
	return msg->bytes && msg->bytes < KOFIBLK_OFFSET_MAX &&
	       msg->offset < KOFIBLK_OFFSET_MAX - msg->bytes &&
	       !((msg->offset | msg->bytes) & (KOFIBLK_SECTOR - 1));
}

/*
 * Parse the word after a command or reply of @head bytes, if it is @there.
 * Return: the length with the word, at most @len; or 0 if the word is invalid.
 */
static size_t kofiblk_get_word(const void *buf, size_t head, size_t len, bool there, u32 *value)
{
	const struct kofiblk_word *word = buf + head;

	*value = 0;
	if (!there)
		return head;
	if (len < head + sizeof(*word) || word->reserved)
		return 0;
	*value = le32_to_cpu(word->value);
	return head + sizeof(*word);
}

static size_t kofiblk_put_word(void *buf, size_t head, bool there, u32 value)
{
	struct kofiblk_word *word = buf + head;

	if (!there)
		return head;
	*word = (struct kofiblk_word) { .value = cpu_to_le32(value) };
	return head + sizeof(*word);
}

static u64 kofiblk_inline_max(u8 op)
{
	return op == KOFIBLK_OP_READ ? KOFIBLK_INLINE_READ_MAX : KOFIBLK_INLINE_MAX;
}

/**
 * kofiblk_parse_cmd() - parse a command
 * @buf: the message
 * @len: length of the message
 * @msg: takes the contents of the message
 * Context: Any.
 * Return: 0, or -EPROTO.
 */
int kofiblk_parse_cmd(const void *buf, size_t len, struct kofiblk_cmd_msg *msg)
{
	const struct kofiblk_cmd *wire = buf;
	const struct kofiblk_op_row *row;
	size_t head, data = 0;
	u32 word;

	if (len < sizeof(*wire) || wire->version != KOFIBLK_VERSION || wire->reserved)
		return -EPROTO;
	row = kofiblk_op_row(wire->op);
	msg->op = wire->op;
	msg->flags = le16_to_cpu(wire->flags);
	msg->queue = le16_to_cpu(wire->queue);
	msg->session = le64_to_cpu(wire->session);
	msg->id = le64_to_cpu(wire->id);
	msg->offset = le64_to_cpu(wire->offset);
	msg->bytes = le64_to_cpu(wire->bytes);
	msg->addr = le64_to_cpu(wire->addr);
	msg->key = le64_to_cpu(wire->key);
	msg->tag = le64_to_cpu(wire->tag);
	msg->data = NULL;
	if (!row || msg->flags & ~row->flags || msg->queue >= KOFIBLK_QUEUES_MAX ||
	    !msg->session || !kofiblk_id_ok(row, msg->id) || !kofiblk_range_ok(row, msg) ||
	    (msg->flags & KOFIBLK_CMD_IMM && msg->flags != KOFIBLK_CMD_IMM))
		return -EPROTO;
	head = kofiblk_get_word(buf, sizeof(*wire), len,
				msg->flags & (KOFIBLK_CMD_SUM | KOFIBLK_CMD_IMM), &word);
	if (!head)
		return -EPROTO;
	msg->sum = msg->flags & KOFIBLK_CMD_SUM ? word : 0;
	msg->imm = msg->flags & KOFIBLK_CMD_IMM ? word : 0;
	if (msg->flags & KOFIBLK_CMD_INLINE && msg->op == KOFIBLK_OP_WRITE) {
		data = msg->bytes;
		msg->data = buf + head;
	}
	if (msg->flags & KOFIBLK_CMD_INLINE && msg->bytes > kofiblk_inline_max(msg->op))
		return -EPROTO;
	if (!kofiblk_key_ok(row, row->has & KOFIBLK_HAS_DATA && !(msg->flags & KOFIBLK_CMD_INLINE),
			    msg->addr, msg->key))
		return -EPROTO;
	return len == head + data ? 0 : -EPROTO;
}
EXPORT_SYMBOL_NS_GPL(kofiblk_parse_cmd, KOFIBLK);

/**
 * kofiblk_build_cmd() - build a command
 * @buf: room for KOFIBLK_CMD_MAX(0) bytes
 * @msg: contents of the message; the data isn't accessed
 * Context: Any.
 * Return: length of the command without data.
 */
size_t kofiblk_build_cmd(void *buf, const struct kofiblk_cmd_msg *msg)
{
	struct kofiblk_cmd *wire = buf;

	*wire = (struct kofiblk_cmd) {
		.version	= KOFIBLK_VERSION,
		.op		= msg->op,
		.flags		= cpu_to_le16(msg->flags),
		.queue		= cpu_to_le16(msg->queue),
		.session	= cpu_to_le64(msg->session),
		.id		= cpu_to_le64(msg->id),
		.offset		= cpu_to_le64(msg->offset),
		.bytes		= cpu_to_le64(msg->bytes),
		.addr		= cpu_to_le64(msg->addr),
		.key		= cpu_to_le64(msg->key),
		.tag		= cpu_to_le64(msg->tag),
	};
	return kofiblk_put_word(buf, sizeof(*wire),
				msg->flags & (KOFIBLK_CMD_SUM | KOFIBLK_CMD_IMM),
				msg->flags & KOFIBLK_CMD_IMM ? msg->imm : msg->sum);
}
EXPORT_SYMBOL_NS_GPL(kofiblk_build_cmd, KOFIBLK);

/**
 * kofiblk_parse_reply() - parse a reply
 * @buf: the message
 * @len: length of the message
 * @msg: takes the contents of the message
 * Context: Any.
 * Return: 0, or -EPROTO.
 */
int kofiblk_parse_reply(const void *buf, size_t len, struct kofiblk_reply_msg *msg)
{
	const struct kofiblk_reply *wire = buf;
	const struct kofiblk_op_row *row;
	size_t head, data;

	if (len < sizeof(*wire) || wire->version != KOFIBLK_VERSION)
		return -EPROTO;
	row = kofiblk_op_row(wire->op);
	msg->op = wire->op;
	msg->flags = le16_to_cpu(wire->flags);
	msg->status = le16_to_cpu(wire->status);
	msg->queue = le16_to_cpu(wire->queue);
	msg->session = le64_to_cpu(wire->session);
	msg->id = le64_to_cpu(wire->id);
	msg->bytes = le64_to_cpu(wire->bytes);
	msg->addr = le64_to_cpu(wire->addr);
	msg->key = le64_to_cpu(wire->key);
	msg->tag = le64_to_cpu(wire->tag);
	if (!row || row->has & KOFIBLK_NO_REPLY || msg->flags & ~KOFIBLK_REPLY_FLAGS ||
	    msg->status >= KULP_STATUSES || msg->queue >= KOFIBLK_QUEUES_MAX ||
	    !msg->session || !kofiblk_id_ok(row, msg->id))
		return -EPROTO;
	/* A reply without an error means that all bytes were moved. */
	if (msg->status || !(row->has & KOFIBLK_HAS_DATA)) {
		if (msg->bytes)
			return -EPROTO;
	} else if (!msg->bytes || msg->bytes > KOFIBLK_IO_MAX || msg->bytes % KOFIBLK_SECTOR) {
		return -EPROTO;
	}
	/*
	 * Flags are only valid for a READ whose data isn't transferred by RDMA write. READY
	 * excludes the others, because only the last reply has data or a checksum.
	 */
	if (msg->flags && (msg->op != KOFIBLK_OP_READ || msg->status ||
			   (msg->flags & KOFIBLK_REPLY_READY && msg->flags != KOFIBLK_REPLY_READY)))
		return -EPROTO;
	head = kofiblk_get_word(buf, sizeof(*wire), len, msg->flags & KOFIBLK_REPLY_SUM, &msg->sum);
	if (!head)
		return -EPROTO;
	if (!kofiblk_key_ok(row, msg->flags & KOFIBLK_REPLY_READY, msg->addr, msg->key))
		return -EPROTO;
	data = msg->flags & KOFIBLK_REPLY_INLINE ? msg->bytes : 0;
	msg->data = data ? buf + head : NULL;
	if (data > KOFIBLK_INLINE_READ_MAX)
		return -EPROTO;
	return len == head + data ? 0 : -EPROTO;
}
EXPORT_SYMBOL_NS_GPL(kofiblk_parse_reply, KOFIBLK);

/**
 * kofiblk_build_reply() - build a reply
 * @buf: room for KOFIBLK_REPLY_MAX(0) bytes
 * @msg: contents of the message; the data isn't accessed
 * Context: Any.
 * Return: length of the reply without data.
 */
size_t kofiblk_build_reply(void *buf, const struct kofiblk_reply_msg *msg)
{
	struct kofiblk_reply *wire = buf;

	*wire = (struct kofiblk_reply) {
		.version	= KOFIBLK_VERSION,
		.op		= msg->op,
		.flags		= cpu_to_le16(msg->flags),
		.status		= cpu_to_le16(msg->status),
		.queue		= cpu_to_le16(msg->queue),
		.session	= cpu_to_le64(msg->session),
		.id		= cpu_to_le64(msg->id),
		.bytes		= cpu_to_le64(msg->bytes),
		.addr		= cpu_to_le64(msg->addr),
		.key		= cpu_to_le64(msg->key),
		.tag		= cpu_to_le64(msg->tag),
	};
	return kofiblk_put_word(buf, sizeof(*wire), msg->flags & KOFIBLK_REPLY_SUM, msg->sum);
}
EXPORT_SYMBOL_NS_GPL(kofiblk_build_reply, KOFIBLK);
