// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages about connections: parsing and building. */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/string.h>
#include "wire.h"

static_assert(KMSG_WIRE_MAX <= KCM_NOTE_MAX);

/* Lengths of each kind of message, and the sides that get it. */
static const struct {
	u16	min;
	u16	max;
	bool	active;
	bool	passive;
} kmsg_types[KMSG_TYPES] = {
	[KMSG_CONN]	= { sizeof(struct kmsg_wire_side), KMSG_WIRE_MAX, false, true },
	[KMSG_ACCEPT]	= { sizeof(struct kmsg_wire_side), KMSG_WIRE_MAX, true, false },
	[KMSG_REJECT]	= { sizeof(struct kmsg_wire_hdr),
			    sizeof(struct kmsg_wire_hdr) + KMSG_DATA_MAX, true, false },
	[KMSG_LIVE]	= { sizeof(struct kmsg_wire_hdr), sizeof(struct kmsg_wire_hdr),
			    false, true },
	[KMSG_CREDIT]	= { sizeof(struct kmsg_wire_credit), sizeof(struct kmsg_wire_credit),
			    true, true },
	[KMSG_DISC]	= { sizeof(struct kmsg_wire_hdr), sizeof(struct kmsg_wire_hdr),
			    true, true },
};

static int kmsg_side_parse(const struct kmsg_wire_side *wire, size_t len, struct kmsg_hello *side)
{
	const u8 *rest = (const u8 *)(wire + 1);

	side->addrlen = le16_to_cpu(wire->addrlen);
	len -= sizeof(*wire);
	if (!side->addrlen || side->addrlen > sizeof(side->addr) || side->addrlen > len ||
	    len - side->addrlen > KMSG_DATA_MAX)
		return -EPROTO;
	side->protocol = le32_to_cpu(wire->protocol);
	side->format = le32_to_cpu(wire->format);
	side->tag = le64_to_cpu(wire->tag);
	side->posted = le64_to_cpu(wire->posted);
	side->len = len - side->addrlen;
	memcpy(side->addr, rest, side->addrlen);
	memcpy(side->data, rest + side->addrlen, side->len);
	return 0;
}

/**
 * kmsg_msg_parse() - parse the first message of a note
 * @buf: the note, or what is left of it
 * @len: its bytes
 * @active: the receiver is the link's active side
 * @msg: takes the message
 *
 * Context: Any.
 * Return: bytes of the message, or -EPROTO.
 */
int kmsg_msg_parse(const void *buf, size_t len, bool active, struct kmsg_msg *msg)
{
	const struct kmsg_wire_hdr *hdr = buf;
	size_t n;

	if (len < sizeof(*hdr) || !hdr->type || hdr->type >= KMSG_TYPES)
		return -EPROTO;
	n = le16_to_cpu(hdr->len);
	if (n > len || n < kmsg_types[hdr->type].min || n > kmsg_types[hdr->type].max ||
	    !(active ? kmsg_types[hdr->type].active : kmsg_types[hdr->type].passive))
		return -EPROTO;
	if (hdr->why >= KMSG_WHYS || (hdr->why && hdr->type != KMSG_REJECT))
		return -EPROTO;
	msg->type = hdr->type;
	msg->why = hdr->why;
	msg->id = le32_to_cpu(hdr->id);
	msg->side.len = 0;
	if (hdr->type == KMSG_CREDIT) {
		msg->side.posted = le64_to_cpu(((const struct kmsg_wire_credit *)buf)->posted);
	} else if (hdr->type == KMSG_REJECT) {
		msg->side.len = n - sizeof(*hdr);
		memcpy(msg->side.data, hdr + 1, msg->side.len);
	} else if (hdr->type == KMSG_CONN || hdr->type == KMSG_ACCEPT) {
		if (kmsg_side_parse(buf, n, &msg->side))
			return -EPROTO;
	}
	return n;
}

static size_t kmsg_side_build(const struct kmsg_hello *side, struct kmsg_wire_side *wire)
{
	u8 *rest = (u8 *)(wire + 1);

	wire->protocol = cpu_to_le32(side->protocol);
	wire->format = cpu_to_le32(side->format);
	wire->tag = cpu_to_le64(side->tag);
	wire->posted = cpu_to_le64(side->posted);
	wire->addrlen = cpu_to_le16(side->addrlen);
	memcpy(rest, side->addr, side->addrlen);
	memcpy(rest + side->addrlen, side->data, side->len);
	return sizeof(*wire) + side->addrlen + side->len;
}

/**
 * kmsg_msg_build() - build a message
 * @msg: the message
 * @buf: takes it, at most KMSG_WIRE_MAX bytes
 *
 * Context: Any.
 * Return: its bytes.
 */
size_t kmsg_msg_build(const struct kmsg_msg *msg, void *buf)
{
	struct kmsg_wire_credit *credit = buf;
	struct kmsg_wire_hdr *hdr = buf;
	size_t len = sizeof(*hdr);

	if (msg->type == KMSG_CONN || msg->type == KMSG_ACCEPT) {
		len = kmsg_side_build(&msg->side, buf);
	} else if (msg->type == KMSG_CREDIT) {
		credit->posted = cpu_to_le64(msg->side.posted);
		len = sizeof(*credit);
	} else if (msg->type == KMSG_REJECT) {
		memcpy(hdr + 1, msg->side.data, msg->side.len);
		len += msg->side.len;
	}
	hdr->type = msg->type;
	hdr->why = msg->why;
	hdr->len = cpu_to_le16(len);
	hdr->id = cpu_to_le32(msg->id);
	return len;
}
