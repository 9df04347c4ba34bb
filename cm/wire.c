// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages of a session: pure functions, see wire.h. */
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire.h"

static_assert(sizeof(struct kcm_wire_hello) == 248);
static_assert(sizeof(struct kcm_wire_accept) == 72);
static_assert(sizeof(struct kcm_wire_ready) == 48);
static_assert(sizeof(struct kcm_wire_reject) == 128);
static_assert(sizeof(struct kcm_wire_note) == 56);
static_assert(sizeof(struct kcm_wire_bye) == 64);

#define KCM_FIELD(how, msg, field) \
	KULP_FIELD(how, struct kcm_wire_##msg, field, struct kcm_##msg##_msg, field)
#define KCM_NUMBER(msg, field)	KCM_FIELD(KULP_NUMBER, msg, field)

static const struct kulp_field kcm_hello_fields[] = {
	KCM_FIELD(KULP_BYTES, hello, nonce), KCM_FIELD(KULP_TEXT, hello, service),
	KCM_FIELD(KULP_TEXT, hello, name), KCM_FIELD(KULP_TEXT, hello, instance),
	KCM_FIELD(KULP_BYTES, hello, host), KCM_NUMBER(hello, keep_alive),
	KCM_NUMBER(hello, addr_format), KCM_NUMBER(hello, addr_len),
	KCM_NUMBER(hello, addr_count), KCM_NUMBER(hello, priv_len),
	KCM_NUMBER(hello, version_min), KCM_NUMBER(hello, version),
	KULP_RESERVED(struct kcm_wire_hello, reserved),
	{}
};

static const struct kulp_field kcm_accept_fields[] = {
	KCM_NUMBER(accept, session), KCM_NUMBER(accept, keep_alive),
	KCM_NUMBER(accept, addr_format), KCM_NUMBER(accept, addr_len),
	KCM_NUMBER(accept, addr_count), KCM_NUMBER(accept, priv_len),
	KCM_NUMBER(accept, version),
	{}
};

/* Its MAC is checked before it is parsed, and is 0 then. */
static const struct kulp_field kcm_ready_fields[] = {
	KULP_RESERVED(struct kcm_wire_ready, mac),
	{}
};

static const struct kulp_field kcm_reject_fields[] = {
	KCM_NUMBER(reject, after_ms), KCM_NUMBER(reject, status), KCM_NUMBER(reject, version_min),
	KCM_NUMBER(reject, version), KCM_NUMBER(reject, priv_len),
	KCM_FIELD(KULP_FLAG, reject, again), KULP_RESERVED(struct kcm_wire_reject, reserved),
	KCM_FIELD(KULP_TEXT, reject, why),
	{}
};

static const struct kulp_field kcm_note_fields[] = {
	KCM_NUMBER(note, number),
	{}
};

static const struct kulp_field kcm_bye_fields[] = {
	KCM_NUMBER(bye, number), KCM_FIELD(KULP_BYTES, bye, reason),
	KCM_FIELD(KULP_FLAG, bye, again), KULP_RESERVED(struct kcm_wire_bye, reserved),
	{}
};

static bool kcm_tail_ok(u16 addr_len, u16 count, u16 priv_len, size_t len)
{
	if (addr_len > KULP_ADDR_MAX || count > KCM_ADDRS || !addr_len != !count ||
	    priv_len > KCM_PRIV_MAX)
		return false;
	return len == addr_len * count + priv_len;
}

/* Names are printed, so they must not contain anything that a log or a terminal interprets. */
static bool kcm_text_ok(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text >= 0x7f)
			return false;
	return true;
}

static bool kcm_keep_alive_ok(u32 ms)
{
	return ms >= KCM_KEEP_ALIVE_MIN && ms <= KCM_KEEP_ALIVE_MAX;
}

static bool kcm_hello_ok(void *parsed, const void *tail, size_t len)
{
	struct kcm_hello_msg *msg = parsed;

	if (!kcm_tail_ok(msg->addr_len, msg->addr_count, msg->priv_len, len))
		return false;
	msg->addrs = tail;
	msg->priv = tail + msg->addr_len * msg->addr_count;
	return *msg->service && *msg->name && kcm_text_ok(msg->service) && kcm_text_ok(msg->name) &&
	       kcm_text_ok(msg->instance) && kcm_keep_alive_ok(msg->keep_alive) &&
	       msg->version_min <= msg->version;
}

static bool kcm_accept_ok(void *parsed, const void *tail, size_t len)
{
	struct kcm_accept_msg *msg = parsed;

	if (!kcm_tail_ok(msg->addr_len, msg->addr_count, msg->priv_len, len))
		return false;
	msg->addrs = tail;
	msg->priv = tail + msg->addr_len * msg->addr_count;
	return msg->session && kcm_keep_alive_ok(msg->keep_alive);
}

static bool kcm_reject_ok(void *parsed, const void *tail, size_t len)
{
	struct kcm_reject_msg *msg = parsed;
	char *c;

	msg->priv = tail;
	for (c = msg->why; *c; c++)
		if (*c < ' ' || *c >= 0x7f)
			return false;
	return msg->status && msg->priv_len == len && msg->version_min <= msg->version;
}

static bool kcm_note_ok(void *parsed, const void *tail, size_t len)
{
	struct kcm_note_msg *msg = parsed;

	msg->data = tail;
	msg->len = len;
	return msg->number;
}

static bool kcm_bye_ok(void *parsed, const void *tail, size_t len)
{
	struct kcm_bye_msg *msg = parsed;

	msg->data = tail;
	msg->len = len;
	return msg->number && msg->reason < KCM_BYES;
}

static const struct kulp_type kcm_types[KCM_TYPES] = {
	[KCM_HELLO]	= { kcm_hello_fields, kcm_hello_ok, sizeof(struct kcm_wire_hello),
			    KCM_TAIL_MAX },
	[KCM_CHALLENGE]	= KULP_CHALLENGE_TYPE,
	[KCM_AUTH]	= KULP_PROOF_TYPE,
	[KCM_ACCEPT]	= { kcm_accept_fields, kcm_accept_ok, sizeof(struct kcm_wire_accept),
			    KCM_TAIL_MAX },
	[KCM_READY]	= { kcm_ready_fields, NULL, sizeof(struct kcm_wire_ready) },
	[KCM_REJECT]	= { kcm_reject_fields, kcm_reject_ok, sizeof(struct kcm_wire_reject),
			    KCM_PRIV_MAX },
	[KCM_NOTE]	= { kcm_note_fields, kcm_note_ok, sizeof(struct kcm_wire_note),
			    KCM_NOTE_MAX },
	[KCM_BYE]	= { kcm_bye_fields, kcm_bye_ok, sizeof(struct kcm_wire_bye), KCM_BYE_MAX },
	[KCM_PING]	= { kcm_note_fields, kcm_note_ok, sizeof(struct kcm_wire_note) },
	[KCM_PONG]	= { kcm_note_fields, kcm_note_ok, sizeof(struct kcm_wire_note) },
};

const struct kulp_proto kcm_proto = {
	.magic		= KCM_MAGIC,
	.version	= KCM_VERSION,
	.ntypes		= KCM_TYPES,
	.types		= kcm_types,
};

/**
 * kcm_wire_expect() - check a header before the rest of its message is received
 * @hdr: the header
 * @types: BIT() of each type that may come now
 * @len: takes the length of the message
 *
 * Return: 0, or -EPROTO.
 */
int kcm_wire_expect(const struct kulp_hdr *hdr, u32 types, u32 *len)
{
	u16 type = le16_to_cpu(hdr->type);

	if (le32_to_cpu(hdr->magic) != KCM_MAGIC || le16_to_cpu(hdr->version) != KCM_VERSION ||
	    hdr->reserved || type >= KCM_TYPES || !(types & BIT(type)))
		return -EPROTO;
	*len = le32_to_cpu(hdr->len);
	return *len >= kcm_types[type].len && *len <= kcm_types[type].len + kcm_types[type].tail ?
	       0 : -EPROTO;
}
