// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Parsers and builders of messages: see wire.h. */
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire.h"

static_assert(sizeof(struct krc_wire_side) == 32);
static_assert(sizeof(struct krc_wire_reject) == 8);
static_assert(sizeof(struct krc_wire_dgram) == 48);
static_assert(sizeof(struct krc_wire_key) == 24);
static_assert(KRC_HDR_SHORT == 16);

/* Fields that a type of datagram has besides seq and total; those that it lacks are 0. */
#define KRC_HAS_SEQ	BIT(0)
#define KRC_HAS_NUMBER	BIT(1)
#define KRC_HAS_OFFSET	BIT(2)
#define KRC_HAS_ADDR	BIT(3)	/* with the key */
#define KRC_HAS_DATA	BIT(4)
#define KRC_HAS_ZERO	BIT(5)	/* the whole may be empty */
#define KRC_HAS_KEYS	BIT(6)

static const struct {
	u8	flags;
	u8	has;
} krc_types[KRC_TYPES] = {
	[KRC_SEND]	= { KRC_LAST | KRC_INV, KRC_HAS_SEQ | KRC_HAS_NUMBER | KRC_HAS_OFFSET |
			    KRC_HAS_DATA | KRC_HAS_ZERO | KRC_HAS_KEYS },
	[KRC_WRITE]	= { KRC_LAST, KRC_HAS_SEQ | KRC_HAS_OFFSET | KRC_HAS_ADDR | KRC_HAS_DATA },
	[KRC_READ]	= { 0, KRC_HAS_SEQ | KRC_HAS_NUMBER | KRC_HAS_ADDR },
	[KRC_DATA]	= { KRC_LAST | KRC_FAILED, KRC_HAS_NUMBER | KRC_HAS_OFFSET | KRC_HAS_DATA },
	[KRC_KEYS]	= { 0, KRC_HAS_SEQ | KRC_HAS_ZERO | KRC_HAS_KEYS },
};

/**
 * krc_parse_side() - parse the private data of a session's first or second message
 * @buf: the private data
 * @len: its length
 * @msg: result
 *
 * Return: 0 or -EPROTO.
 */
int krc_parse_side(const void *buf, size_t len, struct krc_side *msg)
{
	struct krc_wire_side wire;

	if (len < sizeof(wire))
		return -EPROTO;
	memcpy(&wire, buf, sizeof(wire));
	*msg = (struct krc_side) {
		.cookie		= le64_to_cpu(wire.cookie),
		.credits	= le32_to_cpu(wire.credits),
		.datagram	= le32_to_cpu(wire.datagram),
		.window		= le16_to_cpu(wire.window),
		.ird		= le16_to_cpu(wire.ird),
		.ord		= le16_to_cpu(wire.ord),
		.port		= le16_to_cpu(wire.port),
		.features	= wire.features,
		.priv_len	= wire.priv_len,
		.priv		= (const u8 *)buf + sizeof(wire),
	};
	if (!msg->cookie || memchr_inv(wire.reserved, 0, sizeof(wire.reserved)) ||
	    msg->datagram < KRC_DATAGRAM_MIN || msg->datagram > KRC_DATAGRAM_MAX ||
	    msg->window < KRC_WINDOW_MIN || msg->window > KRC_WINDOW_MAX ||
	    !is_power_of_2(msg->window) || msg->ird > KRC_READS_MAX || msg->ord > KRC_READS_MAX ||
	    len != sizeof(wire) + msg->priv_len)
		return -EPROTO;
	return 0;
}

/**
 * krc_build_side() - build the private data of a session's first or second message
 * @wire: result, without the ULP's private data
 * @msg: contents
 *
 * Return: length of @wire.
 */
size_t krc_build_side(struct krc_wire_side *wire, const struct krc_side *msg)
{
	*wire = (struct krc_wire_side) {
		.cookie		= cpu_to_le64(msg->cookie),
		.credits	= cpu_to_le32(msg->credits),
		.datagram	= cpu_to_le32(msg->datagram),
		.window		= cpu_to_le16(msg->window),
		.ird		= cpu_to_le16(msg->ird),
		.ord		= cpu_to_le16(msg->ord),
		.port		= cpu_to_le16(msg->port),
		.features	= msg->features,
		.priv_len	= msg->priv_len,
	};
	return sizeof(*wire);
}

/**
 * krc_parse_reject() - parse the private data of a refusal
 * @buf: the private data
 * @len: its length
 * @msg: result
 *
 * Return: 0 or -EPROTO.
 */
int krc_parse_reject(const void *buf, size_t len, struct krc_reject *msg)
{
	struct krc_wire_reject wire;

	if (len < sizeof(wire))
		return -EPROTO;
	memcpy(&wire, buf, sizeof(wire));
	*msg = (struct krc_reject) {
		.by_ulp		= wire.by_ulp,
		.priv_len	= wire.priv_len,
		.priv		= (const u8 *)buf + sizeof(wire),
	};
	if (wire.by_ulp > 1 || memchr_inv(wire.reserved, 0, sizeof(wire.reserved)) ||
	    (msg->priv_len && !msg->by_ulp) || len != sizeof(wire) + msg->priv_len)
		return -EPROTO;
	return 0;
}

/**
 * krc_build_reject() - build the private data of a refusal
 * @wire: result, without the ULP's private data
 * @msg: contents
 *
 * Return: length of @wire.
 */
size_t krc_build_reject(struct krc_wire_reject *wire, const struct krc_reject *msg)
{
	*wire = (struct krc_wire_reject) {
		.by_ulp		= msg->by_ulp,
		.priv_len	= msg->priv_len,
	};
	return sizeof(*wire);
}

/* A field that the type lacks is 0. */
static bool krc_fields_ok(const struct krc_dgram *msg, u8 has)
{
	return (has & KRC_HAS_SEQ || !msg->seq) && (has & KRC_HAS_NUMBER || !msg->number) &&
	       (has & KRC_HAS_OFFSET || !msg->offset) &&
	       (has & KRC_HAS_ADDR || (!msg->rkey && !msg->addr)) &&
	       (msg->flags & KRC_INV || !msg->arg);
}

/* The whole, and the piece of it. */
static bool krc_range_ok(const struct krc_dgram *msg, u8 has)
{
	u64 end = (u64)msg->offset + msg->len, past;
	bool last = msg->flags & KRC_LAST;

	if (msg->total > KRC_TOTAL_MAX || end > msg->total ||
	    (!msg->total && !(has & KRC_HAS_ZERO)) ||
	    check_add_overflow(msg->addr, (u64)msg->total, &past))
		return false;
	if (!(has & KRC_HAS_DATA))
		return !msg->len && !(has & KRC_HAS_KEYS && (msg->total || !msg->nkeys));
	/* A refusal to read has neither data nor an end. */
	if (msg->flags & KRC_FAILED)
		return !msg->len && !msg->offset && !last;
	return last == (end == msg->total) && (msg->len || !msg->total) &&
	       (last || !(msg->flags & KRC_INV));
}

/* Return: 0, or -EPROTO if there are fewer bytes than keys need. */
static int krc_parse_body(const struct krc_wire_dgram *wire, size_t len, u8 has,
			  struct krc_dgram *msg)
{
	size_t keys = msg->nkeys * sizeof(struct krc_wire_key);

	if (msg->nkeys > (has & KRC_HAS_KEYS ? KRC_KEYS_MAX : 0) || len < KRC_HDR + keys)
		return -EPROTO;
	msg->keys = wire + 1;
	msg->len = len - KRC_HDR - keys;
	msg->data = msg->keys + keys;
	return 0;
}

/**
 * krc_parse() - parse a datagram
 * @buf: the datagram
 * @len: its length
 * @msg: result
 *
 * Return: 0 or -EPROTO.
 */
int krc_parse(const void *buf, size_t len, struct krc_dgram *msg)
{
	const struct krc_wire_dgram *wire = buf;
	u8 has;

	if (len < KRC_HDR_SHORT || wire->reserved)
		return -EPROTO;
	msg->cookie = le64_to_cpu(wire->cookie);
	msg->type = wire->type;
	msg->flags = wire->flags;
	msg->nkeys = wire->nkeys;
	msg->credits = le32_to_cpu(wire->credits);
	if (msg->type == KRC_CREDIT)
		return len == KRC_HDR_SHORT && !msg->flags && !msg->nkeys ? 0 : -EPROTO;
	if (!msg->type || msg->type >= KRC_TYPES || len < KRC_HDR ||
	    msg->flags & ~krc_types[msg->type].flags)
		return -EPROTO;
	msg->seq = le32_to_cpu(wire->seq);
	msg->number = le32_to_cpu(wire->number);
	msg->offset = le32_to_cpu(wire->offset);
	msg->total = le32_to_cpu(wire->total);
	msg->arg = le32_to_cpu(wire->arg);
	msg->rkey = le32_to_cpu(wire->rkey);
	msg->addr = le64_to_cpu(wire->addr);
	has = krc_types[msg->type].has;
	if (krc_parse_body(wire, len, has, msg))
		return -EPROTO;
	return krc_fields_ok(msg, has) && krc_range_ok(msg, has) ? 0 : -EPROTO;
}

/**
 * krc_build() - build the header of a datagram
 * @wire: result
 * @msg: contents; @keys, @len and @data are ignored
 *
 * Return: bytes of the header.
 */
size_t krc_build(struct krc_wire_dgram *wire, const struct krc_dgram *msg)
{
	wire->cookie = cpu_to_le64(msg->cookie);
	wire->type = msg->type;
	wire->flags = msg->flags;
	wire->nkeys = msg->nkeys;
	wire->reserved = 0;
	wire->credits = cpu_to_le32(msg->credits);
	if (msg->type == KRC_CREDIT)
		return KRC_HDR_SHORT;
	wire->seq = cpu_to_le32(msg->seq);
	wire->number = cpu_to_le32(msg->number);
	wire->offset = cpu_to_le32(msg->offset);
	wire->total = cpu_to_le32(msg->total);
	wire->arg = cpu_to_le32(msg->arg);
	wire->rkey = cpu_to_le32(msg->rkey);
	wire->addr = cpu_to_le64(msg->addr);
	return KRC_HDR;
}

/**
 * krc_parse_key() - parse a key of a datagram
 * @wire: the key
 * @key: result
 *
 * Return: 0 or -EPROTO.
 */
int krc_parse_key(const struct krc_wire_key *wire, struct krc_key *key)
{
	key->rkey = le32_to_cpu(wire->rkey);
	key->gen = le32_to_cpu(wire->gen);
	key->key = le64_to_cpu(wire->key);
	key->delta = le64_to_cpu(wire->delta);
	key->written = false;
	return key->key == KRC_NO_KEY && key->delta ? -EPROTO : 0;
}

/**
 * krc_build_key() - build a key of a datagram
 * @wire: result
 * @key: contents
 */
void krc_build_key(struct krc_wire_key *wire, const struct krc_key *key)
{
	wire->rkey = cpu_to_le32(key->rkey);
	wire->gen = cpu_to_le32(key->gen);
	wire->key = cpu_to_le64(key->key);
	wire->delta = cpu_to_le64(key->delta);
}
