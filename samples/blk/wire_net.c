// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages of set-up: see wire.h. */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire.h"

static_assert(sizeof(struct kb_net_hdr) == 16);
static_assert(sizeof(struct kb_hello) == 240);
static_assert(sizeof(struct kb_challenge) == 120);
static_assert(sizeof(struct kb_auth) == 48);
static_assert(sizeof(struct kb_disk) == 48);
static_assert(sizeof(struct kb_accept) == 152);
static_assert(sizeof(struct kb_reject) == 120);
static_assert(sizeof(struct kb_resize) == 64);
static_assert(sizeof(struct kb_bye) == 56);
/* kb_auth_sign() relies on this position of the MAC. */
static_assert(offsetof(struct kb_auth, mac) == sizeof(struct kb_net_hdr));
static_assert(offsetof(struct kb_accept, mac) == sizeof(struct kb_net_hdr));
static_assert(offsetof(struct kb_reject, mac) == sizeof(struct kb_net_hdr));
static_assert(offsetof(struct kb_resize, mac) == sizeof(struct kb_net_hdr));
static_assert(offsetof(struct kb_bye, mac) == sizeof(struct kb_net_hdr));
static_assert(sizeof(struct kb_hello) + KB_QUEUES_MAX * KB_ADDR_MAX <=
	      KB_NET_MAX);
static_assert(sizeof(struct kb_accept) + KB_QUEUES_MAX * KB_ADDR_MAX <=
	      KB_NET_MAX);

static bool kb_is_zero(const void *buf, size_t len)
{
	const u8 *p = buf;

	while (len--)
		if (*p++)
			return false;
	return true;
}

static bool kb_power_of_two(u32 n)
{
	return n && !(n & (n - 1));
}

/* Copy a text from the wire. Return: false unless it has a NUL and zeroes after it. */
static bool kb_get_text(char *to, const char *from)
{
	size_t len = 0;

	while (len < KB_NAME_MAX && from[len])
		len++;
	if (!kb_is_zero(from + len, KB_NAME_MAX - len) || len == KB_NAME_MAX)
		return false;
	memcpy(to, from, KB_NAME_MAX);
	return true;
}

static bool kb_get_name(char *to, const char *from)
{
	return kb_get_text(to, from) && kb_name_ok(to);
}

static void kb_put_text(char *to, const char *from)
{
	size_t len = 0;

	while (len < KB_NAME_MAX - 1 && from[len])
		len++;
	memset(to, 0, KB_NAME_MAX);
	memcpy(to, from, len);
}

/* --- limits --- */

static bool kb_limits_ok(const struct kb_limits *l)
{
	return l->max_io >= KB_IO_MIN && l->max_io <= KB_IO_MAX &&
	       l->max_io % KB_IO_MIN == 0 && l->inline_max <= KB_INLINE_MAX &&
	       l->inline_read <= KB_INLINE_READ_MAX &&
	       l->keep_alive >= KB_KEEP_ALIVE_MIN &&
	       l->keep_alive <= KB_KEEP_ALIVE_MAX &&
	       l->queues && l->queues <= KB_QUEUES_MAX &&
	       l->depth && l->depth <= KB_DEPTH_MAX;
}

/**
 * kb_limits_within() - compare granted with requested limits
 * @granted: limits that the server granted
 * @asked: limits that the client requested
 * Context: Any.
 * Return: true if no limit of @granted exceeds that of @asked.
 */
bool kb_limits_within(const struct kb_limits *granted,
		      const struct kb_limits *asked)
{
	return !(granted->caps & ~asked->caps) &&
	       granted->max_io <= asked->max_io &&
	       granted->inline_max <= asked->inline_max &&
	       granted->inline_read <= asked->inline_read &&
	       granted->keep_alive <= asked->keep_alive &&
	       granted->queues <= asked->queues &&
	       granted->depth <= asked->depth;
}
EXPORT_SYMBOL_NS_GPL(kb_limits_within, KOFIBLK);

/* --- set-up --- */

/* Lengths of the messages. Those with addresses are longer than their minimum. */
static const struct kb_net_type_row {
	const char	*name;
	u16		min;
	u16		addrs;
} kb_net_types[] = {
	[KB_HELLO]	= { "HELLO", sizeof(struct kb_hello),
			    KB_QUEUES_MAX * KB_ADDR_MAX },
	[KB_CHALLENGE]	= { "CHALLENGE", sizeof(struct kb_challenge) },
	[KB_AUTH]	= { "AUTH", sizeof(struct kb_auth) },
	[KB_ACCEPT]	= { "ACCEPT", sizeof(struct kb_accept),
			    KB_QUEUES_MAX * KB_ADDR_MAX },
	[KB_REJECT]	= { "REJECT", sizeof(struct kb_reject) },
	[KB_RESIZE]	= { "RESIZE", sizeof(struct kb_resize) },
	[KB_BYE]	= { "BYE", sizeof(struct kb_bye) },
};

/**
 * kb_net_type_name() - get the name of a message type for log messages
 * @type: enum kb_net_type
 * Context: Any.
 * Return: the name, or "?" for an unknown type.
 */
const char *kb_net_type_name(u16 type)
{
	return type < ARRAY_SIZE(kb_net_types) && kb_net_types[type].name ?
		       kb_net_types[type].name : "?";
}
EXPORT_SYMBOL_NS_GPL(kb_net_type_name, KOFIBLK);

/**
 * kb_parse_net() - parse the header of a message
 * @buf: a struct kb_net_hdr, or more of the message
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
	const struct kb_net_hdr *hdr = buf;

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
	if (!row->name || *whole < row->min || *whole > row->min + row->addrs)
		return -EPROTO;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kb_parse_net, KOFIBLK);

/* Return: 0 if @buf is exactly one message of type @want, else -EPROTO. */
static int kb_net_is(const void *buf, size_t len, u16 want)
{
	size_t whole;
	u16 type;

	if (kb_parse_net(buf, len, &type, &whole) || type != want ||
	    whole != len)
		return -EPROTO;
	return 0;
}

/* Fill in the header, and zero the rest of the message except addresses. */
static void kb_put_hdr(void *buf, u16 type, size_t len)
{
	struct kb_net_hdr *hdr = buf;

	memset(buf, 0, kb_net_types[type].min);
	hdr->magic = cpu_to_le32(KB_MAGIC);
	hdr->version = cpu_to_le16(KB_VERSION);
	hdr->type = cpu_to_le16(type);
	hdr->len = cpu_to_le32(len);
}

static bool kb_addrs_ok(u16 queues, u16 addr_len, size_t room)
{
	return addr_len && addr_len <= KB_ADDR_MAX &&
	       (size_t)queues * addr_len == room;
}

/**
 * kb_parse_hello() - parse KB_HELLO
 * @buf: the message
 * @len: length of the message
 * @msg: takes the contents of the message
 * Context: Any.
 * Return: 0, or -EPROTO.
 */
int kb_parse_hello(const void *buf, size_t len, struct kb_hello_msg *msg)
{
	const struct kb_hello *wire = buf;

	if (kb_net_is(buf, len, KB_HELLO) ||
	    !kb_get_name(msg->client, wire->client) ||
	    !kb_get_name(msg->export, wire->export) ||
	    !kb_is_zero(wire->reserved, sizeof(wire->reserved)) ||
	    kb_is_zero(wire->host, sizeof(wire->host)))
		return -EPROTO;
	memcpy(msg->nonce, wire->nonce, sizeof(msg->nonce));
	memcpy(msg->host, wire->host, sizeof(msg->host));
	memcpy(msg->content, wire->content, sizeof(msg->content));
	/* Ignore unknown capabilities, which newer clients may ask for but don't need. */
	msg->limits.caps = le32_to_cpu(wire->caps) & KB_CAPS;
	msg->limits.max_io = le32_to_cpu(wire->max_io);
	msg->limits.inline_max = le32_to_cpu(wire->inline_max);
	msg->limits.keep_alive = le32_to_cpu(wire->keep_alive);
	msg->limits.queues = le16_to_cpu(wire->queues);
	msg->limits.depth = le16_to_cpu(wire->depth);
	msg->limits.inline_read = le16_to_cpu(wire->inline_read);
	msg->addr_format = le32_to_cpu(wire->addr_format);
	msg->addr_len = le16_to_cpu(wire->addr_len);
	msg->addr = (const u8 *)(wire + 1);
	if (!kb_limits_ok(&msg->limits) ||
	    !kb_addrs_ok(msg->limits.queues, msg->addr_len,
			 len - sizeof(*wire)))
		return -EPROTO;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kb_parse_hello, KOFIBLK);

/**
 * kb_build_hello() - build KB_HELLO
 * @buf: room for KB_NET_MAX bytes
 * @msg: contents of the message
 * Context: Any.
 * Return: length of the message.
 */
size_t kb_build_hello(void *buf, const struct kb_hello_msg *msg)
{
	size_t addrs = (size_t)msg->limits.queues * msg->addr_len;
	struct kb_hello *wire = buf;

	kb_put_hdr(buf, KB_HELLO, sizeof(*wire) + addrs);
	memcpy(wire->nonce, msg->nonce, sizeof(wire->nonce));
	kb_put_text(wire->client, msg->client);
	kb_put_text(wire->export, msg->export);
	memcpy(wire->host, msg->host, sizeof(wire->host));
	memcpy(wire->content, msg->content, sizeof(wire->content));
	wire->caps = cpu_to_le32(msg->limits.caps);
	wire->max_io = cpu_to_le32(msg->limits.max_io);
	wire->inline_max = cpu_to_le32(msg->limits.inline_max);
	wire->keep_alive = cpu_to_le32(msg->limits.keep_alive);
	wire->addr_format = cpu_to_le32(msg->addr_format);
	wire->queues = cpu_to_le16(msg->limits.queues);
	wire->depth = cpu_to_le16(msg->limits.depth);
	wire->addr_len = cpu_to_le16(msg->addr_len);
	wire->inline_read = cpu_to_le16(msg->limits.inline_read);
	memcpy(wire + 1, msg->addr, addrs);
	return sizeof(*wire) + addrs;
}
EXPORT_SYMBOL_NS_GPL(kb_build_hello, KOFIBLK);

/**
 * kb_parse_challenge() - parse KB_CHALLENGE
 * @buf: the message
 * @len: length of the message
 * @msg: takes the contents of the message
 * Context: Any.
 * Return: 0, or -EPROTO.
 */
int kb_parse_challenge(const void *buf, size_t len,
		       struct kb_challenge_msg *msg)
{
	const struct kb_challenge *wire = buf;

	if (kb_net_is(buf, len, KB_CHALLENGE) || wire->auth > 1 ||
	    !kb_is_zero(wire->reserved, sizeof(wire->reserved)))
		return -EPROTO;
	/* Without a secret there are no proofs. */
	if (!wire->auth && !kb_is_zero(wire->macs, sizeof(wire->macs)))
		return -EPROTO;
	memcpy(msg->nonce, wire->nonce, sizeof(msg->nonce));
	memcpy(msg->macs, wire->macs, sizeof(msg->macs));
	msg->auth = wire->auth;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kb_parse_challenge, KOFIBLK);

/**
 * kb_build_challenge() - build KB_CHALLENGE
 * @buf: room for KB_NET_MAX bytes
 * @msg: contents of the message
 * Context: Any.
 * Return: length of the message.
 */
size_t kb_build_challenge(void *buf, const struct kb_challenge_msg *msg)
{
	struct kb_challenge *wire = buf;

	kb_put_hdr(buf, KB_CHALLENGE, sizeof(*wire));
	memcpy(wire->nonce, msg->nonce, sizeof(wire->nonce));
	memcpy(wire->macs, msg->macs, sizeof(wire->macs));
	wire->auth = msg->auth;
	return sizeof(*wire);
}
EXPORT_SYMBOL_NS_GPL(kb_build_challenge, KOFIBLK);

/**
 * kb_parse_auth() - parse KB_AUTH
 * @buf: the message
 * @len: length of the message
 * @msg: takes the contents of the message
 * Context: Any.
 * Return: 0, or -EPROTO.
 */
int kb_parse_auth(const void *buf, size_t len, struct kb_auth_msg *msg)
{
	const struct kb_auth *wire = buf;

	if (kb_net_is(buf, len, KB_AUTH))
		return -EPROTO;
	memcpy(msg->mac, wire->mac, sizeof(msg->mac));
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kb_parse_auth, KOFIBLK);

/**
 * kb_build_auth() - build KB_AUTH
 * @buf: room for KB_NET_MAX bytes
 * @msg: contents of the message
 * Context: Any.
 * Return: length of the message.
 */
size_t kb_build_auth(void *buf, const struct kb_auth_msg *msg)
{
	struct kb_auth *wire = buf;

	kb_put_hdr(buf, KB_AUTH, sizeof(*wire));
	memcpy(wire->mac, msg->mac, sizeof(wire->mac));
	return sizeof(*wire);
}
EXPORT_SYMBOL_NS_GPL(kb_build_auth, KOFIBLK);

static int kb_parse_disk(const struct kb_disk *wire, u32 caps,
			 struct kb_disk_msg *msg)
{
	msg->bytes = le64_to_cpu(wire->bytes);
	msg->flags = le32_to_cpu(wire->flags);
	msg->logical_block = le32_to_cpu(wire->logical_block);
	msg->physical_block = le32_to_cpu(wire->physical_block);
	msg->io_min = le32_to_cpu(wire->io_min);
	msg->io_opt = le32_to_cpu(wire->io_opt);
	msg->discard_granularity = le32_to_cpu(wire->discard_granularity);
	msg->discard_max = le64_to_cpu(wire->discard_max);
	msg->zeroes_max = le64_to_cpu(wire->zeroes_max);
	if (msg->flags & ~KB_DISK_FLAGS ||
	    !kb_power_of_two(msg->logical_block) ||
	    msg->logical_block < KB_SECTOR || msg->logical_block > KB_IO_MIN ||
	    !kb_power_of_two(msg->physical_block) ||
	    msg->physical_block < msg->logical_block)
		return -EPROTO;
	if (msg->bytes >= KB_OFFSET_MAX ||
	    msg->bytes & (msg->logical_block - 1) ||
	    msg->io_min & (msg->logical_block - 1) ||
	    msg->io_opt & (msg->logical_block - 1) ||
	    msg->discard_granularity & (msg->logical_block - 1) ||
	    msg->discard_max & (msg->logical_block - 1) ||
	    msg->zeroes_max & (msg->logical_block - 1))
		return -EPROTO;
	if (!(caps & KB_CAP_DISCARD) != !msg->discard_max ||
	    !(caps & KB_CAP_WRITE_ZEROES) != !msg->zeroes_max ||
	    (msg->discard_max && !msg->discard_granularity))
		return -EPROTO;
	return 0;
}

static void kb_build_disk(struct kb_disk *wire, const struct kb_disk_msg *msg)
{
	wire->bytes = cpu_to_le64(msg->bytes);
	wire->flags = cpu_to_le32(msg->flags);
	wire->logical_block = cpu_to_le32(msg->logical_block);
	wire->physical_block = cpu_to_le32(msg->physical_block);
	wire->io_min = cpu_to_le32(msg->io_min);
	wire->io_opt = cpu_to_le32(msg->io_opt);
	wire->discard_granularity = cpu_to_le32(msg->discard_granularity);
	wire->discard_max = cpu_to_le64(msg->discard_max);
	wire->zeroes_max = cpu_to_le64(msg->zeroes_max);
}

/**
 * kb_parse_accept() - parse KB_ACCEPT
 * @buf: the message
 * @len: length of the message
 * @msg: takes the contents of the message
 * Context: Any.
 * Return: 0, or -EPROTO.
 */
int kb_parse_accept(const void *buf, size_t len, struct kb_accept_msg *msg)
{
	const struct kb_accept *wire = buf;

	if (kb_net_is(buf, len, KB_ACCEPT) ||
	    kb_is_zero(wire->content, sizeof(wire->content)))
		return -EPROTO;
	memcpy(msg->mac, wire->mac, sizeof(msg->mac));
	memcpy(msg->content, wire->content, sizeof(msg->content));
	msg->session = le64_to_cpu(wire->session);
	msg->epoch = le64_to_cpu(wire->epoch);
	msg->limits.caps = le32_to_cpu(wire->caps);
	msg->limits.max_io = le32_to_cpu(wire->max_io);
	msg->limits.inline_max = le32_to_cpu(wire->inline_max);
	msg->limits.keep_alive = le32_to_cpu(wire->keep_alive);
	msg->limits.queues = le16_to_cpu(wire->queues);
	msg->limits.depth = le16_to_cpu(wire->depth);
	msg->limits.inline_read = le16_to_cpu(wire->inline_read);
	msg->addr_len = le16_to_cpu(wire->addr_len);
	msg->addr = (const u8 *)(wire + 1);
	if (!msg->session || !msg->epoch || msg->limits.caps & ~KB_CAPS ||
	    !kb_limits_ok(&msg->limits) ||
	    !kb_addrs_ok(msg->limits.queues, msg->addr_len,
			 len - sizeof(*wire)))
		return -EPROTO;
	return kb_parse_disk(&wire->disk, msg->limits.caps, &msg->disk);
}
EXPORT_SYMBOL_NS_GPL(kb_parse_accept, KOFIBLK);

/**
 * kb_build_accept() - build KB_ACCEPT
 * @buf: room for KB_NET_MAX bytes
 * @msg: contents of the message
 * Context: Any.
 * Return: length of the message.
 */
size_t kb_build_accept(void *buf, const struct kb_accept_msg *msg)
{
	size_t addrs = (size_t)msg->limits.queues * msg->addr_len;
	struct kb_accept *wire = buf;

	kb_put_hdr(buf, KB_ACCEPT, sizeof(*wire) + addrs);
	memcpy(wire->mac, msg->mac, sizeof(wire->mac));
	memcpy(wire->content, msg->content, sizeof(wire->content));
	wire->session = cpu_to_le64(msg->session);
	wire->epoch = cpu_to_le64(msg->epoch);
	wire->caps = cpu_to_le32(msg->limits.caps);
	wire->max_io = cpu_to_le32(msg->limits.max_io);
	wire->inline_max = cpu_to_le32(msg->limits.inline_max);
	wire->keep_alive = cpu_to_le32(msg->limits.keep_alive);
	wire->queues = cpu_to_le16(msg->limits.queues);
	wire->depth = cpu_to_le16(msg->limits.depth);
	wire->addr_len = cpu_to_le16(msg->addr_len);
	wire->inline_read = cpu_to_le16(msg->limits.inline_read);
	kb_build_disk(&wire->disk, &msg->disk);
	memcpy(wire + 1, msg->addr, addrs);
	return sizeof(*wire) + addrs;
}
EXPORT_SYMBOL_NS_GPL(kb_build_accept, KOFIBLK);

/**
 * kb_parse_reject() - parse KB_REJECT
 * @buf: the message
 * @len: length of the message
 * @msg: takes the contents of the message
 * Context: Any.
 * Return: 0, or -EPROTO.
 */
int kb_parse_reject(const void *buf, size_t len, struct kb_reject_msg *msg)
{
	const struct kb_reject *wire = buf;
	const char *c;

	if (kb_net_is(buf, len, KB_REJECT) || wire->again > 1 ||
	    !kb_is_zero(wire->reserved, sizeof(wire->reserved)) ||
	    !kb_get_text(msg->why, wire->why))
		return -EPROTO;
	/* The client prints the text to its log. */
	for (c = msg->why; *c; c++)
		if (*c < ' ' || *c > '~')
			return -EPROTO;
	memcpy(msg->mac, wire->mac, sizeof(msg->mac));
	msg->status = le16_to_cpu(wire->status);
	msg->again = wire->again;
	return msg->status && msg->status < KB_STATUSES ? 0 : -EPROTO;
}
EXPORT_SYMBOL_NS_GPL(kb_parse_reject, KOFIBLK);

/**
 * kb_build_reject() - build KB_REJECT
 * @buf: room for KB_NET_MAX bytes
 * @msg: contents of the message
 * Context: Any.
 * Return: length of the message.
 */
size_t kb_build_reject(void *buf, const struct kb_reject_msg *msg)
{
	struct kb_reject *wire = buf;

	kb_put_hdr(buf, KB_REJECT, sizeof(*wire));
	memcpy(wire->mac, msg->mac, sizeof(wire->mac));
	wire->status = cpu_to_le16(msg->status);
	wire->again = msg->again;
	kb_put_text(wire->why, msg->why);
	return sizeof(*wire);
}
EXPORT_SYMBOL_NS_GPL(kb_build_reject, KOFIBLK);

/**
 * kb_parse_resize() - parse KB_RESIZE
 * @buf: the message
 * @len: length of the message
 * @msg: takes the contents of the message
 * Context: Any.
 * Return: 0, or -EPROTO.
 */
int kb_parse_resize(const void *buf, size_t len, struct kb_resize_msg *msg)
{
	const struct kb_resize *wire = buf;

	if (kb_net_is(buf, len, KB_RESIZE))
		return -EPROTO;
	memcpy(msg->mac, wire->mac, sizeof(msg->mac));
	msg->number = le64_to_cpu(wire->number);
	msg->bytes = le64_to_cpu(wire->bytes);
	if (!msg->number || msg->bytes >= KB_OFFSET_MAX ||
	    msg->bytes % KB_SECTOR)
		return -EPROTO;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kb_parse_resize, KOFIBLK);

/**
 * kb_build_resize() - build KB_RESIZE
 * @buf: room for KB_NET_MAX bytes
 * @msg: contents of the message
 * Context: Any.
 * Return: length of the message.
 */
size_t kb_build_resize(void *buf, const struct kb_resize_msg *msg)
{
	struct kb_resize *wire = buf;

	kb_put_hdr(buf, KB_RESIZE, sizeof(*wire));
	memcpy(wire->mac, msg->mac, sizeof(wire->mac));
	wire->number = cpu_to_le64(msg->number);
	wire->bytes = cpu_to_le64(msg->bytes);
	return sizeof(*wire);
}
EXPORT_SYMBOL_NS_GPL(kb_build_resize, KOFIBLK);

/**
 * kb_parse_bye() - parse KB_BYE
 * @buf: the message
 * @len: length of the message
 * @msg: takes the contents of the message
 * Context: Any.
 * Return: 0, or -EPROTO.
 */
int kb_parse_bye(const void *buf, size_t len, struct kb_bye_msg *msg)
{
	const struct kb_bye *wire = buf;

	if (kb_net_is(buf, len, KB_BYE) || wire->again > 1 ||
	    wire->flushed > 1 ||
	    !kb_is_zero(wire->reserved, sizeof(wire->reserved)))
		return -EPROTO;
	memcpy(msg->mac, wire->mac, sizeof(msg->mac));
	msg->again = wire->again;
	msg->flushed = wire->flushed;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kb_parse_bye, KOFIBLK);

/**
 * kb_build_bye() - build KB_BYE
 * @buf: room for KB_NET_MAX bytes
 * @msg: contents of the message
 * Context: Any.
 * Return: length of the message.
 */
size_t kb_build_bye(void *buf, const struct kb_bye_msg *msg)
{
	struct kb_bye *wire = buf;

	kb_put_hdr(buf, KB_BYE, sizeof(*wire));
	memcpy(wire->mac, msg->mac, sizeof(wire->mac));
	wire->again = msg->again;
	wire->flushed = msg->flushed;
	return sizeof(*wire);
}
EXPORT_SYMBOL_NS_GPL(kb_build_bye, KOFIBLK);
