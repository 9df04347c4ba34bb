// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Names, status, commands and replies: see wire.h. */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire.h"

static_assert(sizeof(struct kb_cmd) == 56);
static_assert(sizeof(struct kb_reply) == 48);
static_assert(sizeof(struct kb_word) == 8);

/* --- names, status --- */

/**
 * kb_name_ok() - check the name of a client or export
 * @name: the name, NUL-terminated
 *
 * Names are configfs directories and are printed. So they consist of visible ASCII
 * characters without the slash, at least one and less than KB_NAME_MAX, and aren't . or ..
 * Context: Any.
 * Return: whether it is valid.
 */
bool kb_name_ok(const char *name)
{
	size_t len = 0;

	for (; name[len]; len++)
		if (len == KB_NAME_MAX - 1 || name[len] <= ' ' ||
		    name[len] > '~' || name[len] == '/')
			return false;
	return len && strcmp(name, ".") && strcmp(name, "..");
}
EXPORT_SYMBOL_NS_GPL(kb_name_ok, KOFIBLK);

/* Several errnos may map to one status, but each status maps to one errno. */
static const int kb_errnos[KB_STATUSES] = {
	[KB_OK]			= 0,
	[KB_IO]			= -EIO,
	[KB_NOTSUPP]		= -EOPNOTSUPP,
	[KB_TIMEOUT]		= -ETIMEDOUT,
	[KB_NOSPC]		= -ENOSPC,
	[KB_TRANSPORT]		= -ENOLINK,
	[KB_TARGET]		= -EREMOTEIO,
	[KB_RESV_CONFLICT]	= -EBADE,
	[KB_MEDIUM]		= -ENODATA,
	[KB_PROTECTION]		= -EILSEQ,
	[KB_NOMEM]		= -ENOMEM,
	[KB_INVAL]		= -EINVAL,
	[KB_READ_ONLY]		= -EROFS,
	[KB_NODEV]		= -ENODEV,
	[KB_NOENT]		= -ENOENT,
	[KB_ACCESS]		= -EACCES,
	[KB_BUSY]		= -EBUSY,
	[KB_STALE]		= -ESTALE,
	[KB_PROTO]		= -EPROTO,
};

/**
 * kb_status_errno() - errno of a status
 * @status: enum kb_status
 * Context: Any.
 * Return: 0, or a negative errno; -EIO for an unknown status.
 */
int kb_status_errno(u16 status)
{
	return status < KB_STATUSES ? kb_errnos[status] : -EIO;
}
EXPORT_SYMBOL_NS_GPL(kb_status_errno, KOFIBLK);

/**
 * kb_errno_status() - status of an errno
 * @err: 0, or a negative errno
 * Context: Any.
 * Return: enum kb_status; KB_IO for an errno that has none.
 */
u16 kb_errno_status(int err)
{
	u16 i;

	for (i = 0; i < KB_STATUSES; i++)
		if (kb_errnos[i] == err)
			return i;
	return KB_IO;
}
EXPORT_SYMBOL_NS_GPL(kb_errno_status, KOFIBLK);

/* --- commands and replies --- */

#define KB_HAS_RANGE	0x1	/* offset and bytes; else both are 0 */
#define KB_HAS_DATA	0x2	/* at most KB_IO_MAX bytes at addr; else addr is 0 */
#define KB_NO_REPLY	0x4	/* the command has no reply of its own */

static const struct kb_op_row {
	const char	*name;
	u16		flags;	/* valid KB_CMD bits */
	u16		has;
} kb_ops[] = {
	[KB_OP_READ]		= { "READ", KB_CMD_INLINE | KB_CMD_SUM | KB_CMD_IMM,
				    KB_HAS_RANGE | KB_HAS_DATA },
	[KB_OP_WRITE]		= { "WRITE", KB_CMD_FUA | KB_CMD_INLINE | KB_CMD_SUM,
				    KB_HAS_RANGE | KB_HAS_DATA },
	[KB_OP_FLUSH]		= { "FLUSH", KB_CMD_SUM },
	[KB_OP_DISCARD]		= { "DISCARD", KB_CMD_SUM, KB_HAS_RANGE },
	[KB_OP_WRITE_ZEROES]	= { "WRITE_ZEROES",
				    KB_CMD_FUA | KB_CMD_NOUNMAP | KB_CMD_SUM,
				    KB_HAS_RANGE },
	[KB_OP_KEEP_ALIVE]	= { "KEEP_ALIVE" },
	[KB_OP_FETCHED]		= { "FETCHED", 0, KB_NO_REPLY },
};

static const struct kb_op_row *kb_op_row(u8 op)
{
	return op < ARRAY_SIZE(kb_ops) && kb_ops[op].name ? &kb_ops[op] : NULL;
}

/**
 * kb_op_name() - get a command's name for messages
 * @op: KB_OP_*
 * Context: Any.
 * Return: the name, or "?" for an unknown command.
 */
const char *kb_op_name(u8 op)
{
	const struct kb_op_row *row = kb_op_row(op);

	return row ? row->name : "?";
}
EXPORT_SYMBOL_NS_GPL(kb_op_name, KOFIBLK);

static bool kb_id_ok(u8 op, u64 id)
{
	u16 slot = KB_ID_SLOT(id);

	return op == KB_OP_KEEP_ALIVE ? slot == KB_SLOT_KEEP_ALIVE :
					slot < KB_DEPTH_MAX;
}

static bool kb_range_ok(const struct kb_op_row *row, const struct kb_cmd_msg *msg)
{
	if (!(row->has & KB_HAS_RANGE))
		return !msg->offset && !msg->bytes;
	if (row->has & KB_HAS_DATA && msg->bytes > KB_IO_MAX)
		return false;
	return msg->bytes && msg->bytes < KB_OFFSET_MAX &&
	       msg->offset < KB_OFFSET_MAX - msg->bytes &&
	       !((msg->offset | msg->bytes) & (KB_SECTOR - 1));
}

/*
 * Parse the word after a command or reply of @head bytes, if it is @there.
 * Return: the length with the word, at most @len; or 0 if the word is invalid.
 */
static size_t kb_get_word(const void *buf, size_t head, size_t len, bool there, u32 *value)
{
	const struct kb_word *word = buf + head;

	*value = 0;
	if (!there)
		return head;
	if (len < head + sizeof(*word) || word->reserved)
		return 0;
	*value = le32_to_cpu(word->value);
	return head + sizeof(*word);
}

static size_t kb_put_word(void *buf, size_t head, bool there, u32 value)
{
	struct kb_word *word = buf + head;

	if (!there)
		return head;
	*word = (struct kb_word) { .value = cpu_to_le32(value) };
	return head + sizeof(*word);
}

static u64 kb_inline_max(u8 op)
{
	return op == KB_OP_READ ? KB_INLINE_READ_MAX : KB_INLINE_MAX;
}

/**
 * kb_parse_cmd() - parse a command
 * @buf: the message
 * @len: length of the message
 * @msg: takes the contents of the message
 * Context: Any.
 * Return: 0, or -EPROTO.
 */
int kb_parse_cmd(const void *buf, size_t len, struct kb_cmd_msg *msg)
{
	const struct kb_cmd *wire = buf;
	const struct kb_op_row *row;
	size_t head, data = 0;
	u32 word;

	if (len < sizeof(*wire) || wire->version != KB_VERSION || wire->reserved)
		return -EPROTO;
	row = kb_op_row(wire->op);
	msg->op = wire->op;
	msg->flags = le16_to_cpu(wire->flags);
	msg->queue = le16_to_cpu(wire->queue);
	msg->session = le64_to_cpu(wire->session);
	msg->id = le64_to_cpu(wire->id);
	msg->offset = le64_to_cpu(wire->offset);
	msg->bytes = le64_to_cpu(wire->bytes);
	msg->addr = le64_to_cpu(wire->addr);
	msg->key = le64_to_cpu(wire->key);
	msg->data = NULL;
	if (!row || msg->flags & ~row->flags || msg->queue >= KB_QUEUES_MAX ||
	    !msg->session || !kb_id_ok(msg->op, msg->id) ||
	    !kb_range_ok(row, msg) || (msg->flags & KB_CMD_IMM && msg->flags != KB_CMD_IMM))
		return -EPROTO;
	head = kb_get_word(buf, sizeof(*wire), len, msg->flags & (KB_CMD_SUM | KB_CMD_IMM), &word);
	if (!head)
		return -EPROTO;
	msg->sum = msg->flags & KB_CMD_SUM ? word : 0;
	msg->imm = msg->flags & KB_CMD_IMM ? word : 0;
	if (msg->flags & KB_CMD_INLINE && msg->op == KB_OP_WRITE) {
		data = msg->bytes;
		msg->data = buf + head;
	}
	if (msg->flags & KB_CMD_INLINE && msg->bytes > kb_inline_max(msg->op))
		return -EPROTO;
	if ((msg->flags & KB_CMD_INLINE || !(row->has & KB_HAS_DATA)) && (msg->addr || msg->key))
		return -EPROTO;
	return len == head + data ? 0 : -EPROTO;
}
EXPORT_SYMBOL_NS_GPL(kb_parse_cmd, KOFIBLK);

/**
 * kb_build_cmd() - build a command
 * @buf: room for KB_CMD_MAX(0) bytes
 * @msg: contents of the message; the data isn't accessed
 * Context: Any.
 * Return: length of the command without data.
 */
size_t kb_build_cmd(void *buf, const struct kb_cmd_msg *msg)
{
	struct kb_cmd *wire = buf;

	*wire = (struct kb_cmd) {
		.version	= KB_VERSION,
		.op		= msg->op,
		.flags		= cpu_to_le16(msg->flags),
		.queue		= cpu_to_le16(msg->queue),
		.session	= cpu_to_le64(msg->session),
		.id		= cpu_to_le64(msg->id),
		.offset		= cpu_to_le64(msg->offset),
		.bytes		= cpu_to_le64(msg->bytes),
		.addr		= cpu_to_le64(msg->addr),
		.key		= cpu_to_le64(msg->key),
	};
	return kb_put_word(buf, sizeof(*wire), msg->flags & (KB_CMD_SUM | KB_CMD_IMM),
			   msg->flags & KB_CMD_IMM ? msg->imm : msg->sum);
}
EXPORT_SYMBOL_NS_GPL(kb_build_cmd, KOFIBLK);

/**
 * kb_parse_reply() - parse a reply
 * @buf: the message
 * @len: length of the message
 * @msg: takes the contents of the message
 * Context: Any.
 * Return: 0, or -EPROTO.
 */
int kb_parse_reply(const void *buf, size_t len, struct kb_reply_msg *msg)
{
	const struct kb_reply *wire = buf;
	const struct kb_op_row *row;
	size_t head, data;

	if (len < sizeof(*wire) || wire->version != KB_VERSION)
		return -EPROTO;
	row = kb_op_row(wire->op);
	msg->op = wire->op;
	msg->flags = le16_to_cpu(wire->flags);
	msg->status = le16_to_cpu(wire->status);
	msg->queue = le16_to_cpu(wire->queue);
	msg->session = le64_to_cpu(wire->session);
	msg->id = le64_to_cpu(wire->id);
	msg->bytes = le64_to_cpu(wire->bytes);
	msg->addr = le64_to_cpu(wire->addr);
	msg->key = le64_to_cpu(wire->key);
	if (!row || row->has & KB_NO_REPLY || msg->flags & ~KB_REPLY_FLAGS ||
	    msg->status >= KB_STATUSES || msg->queue >= KB_QUEUES_MAX ||
	    !msg->session || !kb_id_ok(msg->op, msg->id))
		return -EPROTO;
	/* A reply without an error means that all bytes were moved. */
	if (msg->status || !(row->has & KB_HAS_DATA)) {
		if (msg->bytes)
			return -EPROTO;
	} else if (!msg->bytes || msg->bytes > KB_IO_MAX ||
		   msg->bytes % KB_SECTOR) {
		return -EPROTO;
	}
	/*
	 * Flags are only valid for a READ whose data isn't transferred by RDMA write. READY
	 * excludes the others, because only the last reply has data or a checksum.
	 */
	if (msg->flags && (msg->op != KB_OP_READ || msg->status ||
			   (msg->flags & KB_REPLY_READY && msg->flags != KB_REPLY_READY)))
		return -EPROTO;
	head = kb_get_word(buf, sizeof(*wire), len, msg->flags & KB_REPLY_SUM, &msg->sum);
	if (!head)
		return -EPROTO;
	if (!(msg->flags & KB_REPLY_READY) && (msg->addr || msg->key))
		return -EPROTO;
	data = msg->flags & KB_REPLY_INLINE ? msg->bytes : 0;
	msg->data = data ? buf + head : NULL;
	if (data > KB_INLINE_READ_MAX)
		return -EPROTO;
	return len == head + data ? 0 : -EPROTO;
}
EXPORT_SYMBOL_NS_GPL(kb_parse_reply, KOFIBLK);

/**
 * kb_build_reply() - build a reply
 * @buf: room for KB_REPLY_MAX(0) bytes
 * @msg: contents of the message; the data isn't accessed
 * Context: Any.
 * Return: length of the reply without data.
 */
size_t kb_build_reply(void *buf, const struct kb_reply_msg *msg)
{
	struct kb_reply *wire = buf;

	*wire = (struct kb_reply) {
		.version	= KB_VERSION,
		.op		= msg->op,
		.flags		= cpu_to_le16(msg->flags),
		.status		= cpu_to_le16(msg->status),
		.queue		= cpu_to_le16(msg->queue),
		.session	= cpu_to_le64(msg->session),
		.id		= cpu_to_le64(msg->id),
		.bytes		= cpu_to_le64(msg->bytes),
		.addr		= cpu_to_le64(msg->addr),
		.key		= cpu_to_le64(msg->key),
	};
	return kb_put_word(buf, sizeof(*wire), msg->flags & KB_REPLY_SUM, msg->sum);
}
EXPORT_SYMBOL_NS_GPL(kb_build_reply, KOFIBLK);
