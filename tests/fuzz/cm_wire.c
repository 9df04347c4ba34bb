// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_cm's parser in user space, with sanitizers. An accepted message must be built to the same
 * bytes, but for its MAC, which is checked elsewhere: the parser ignores no field.
 */
#include "kernel.h"

#define BIT(n)		(1U << (n))
#define EXPORT_SYMBOL_NS_GPL(sym, ns)	extern int kcm_unused

#include "../../ulp/lib/msg.c"
#include "../../cm/wire.c"

#define ROOM	(KCM_MSG_MAX + 64)

/* Number of messages of each type that were accepted. */
#define PASSED	KCM_TYPES
static unsigned long passed[PASSED];

union message {
	struct kcm_hello_msg		hello;
	struct kulp_challenge_msg	challenge;
	struct kulp_proof_msg		auth;
	struct kcm_accept_msg		accept;
	struct kcm_reject_msg		reject;
	struct kcm_note_msg		note;
	struct kcm_bye_msg		bye;
};

static void check_tail(const u8 *in, size_t len, const u8 *tail, size_t n)
{
	if (tail < in || tail + n > in + len)
		abort();
}

static void check_tails(u16 type, const u8 *in, size_t len, const union message *msg)
{
	switch (type) {
	case KCM_HELLO:
		check_tail(in, len, msg->hello.addrs, msg->hello.addr_len * msg->hello.addr_count);
		check_tail(in, len, msg->hello.priv, msg->hello.priv_len);
		break;
	case KCM_ACCEPT:
		check_tail(in, len, msg->accept.addrs,
			   msg->accept.addr_len * msg->accept.addr_count);
		check_tail(in, len, msg->accept.priv, msg->accept.priv_len);
		break;
	case KCM_REJECT:
		check_tail(in, len, msg->reject.priv, msg->reject.priv_len);
		break;
	case KCM_NOTE:
		check_tail(in, len, msg->note.data, msg->note.len);
		break;
	case KCM_BYE:
		check_tail(in, len, msg->bye.data, msg->bye.len);
	}
}

static void parse(const u8 *in, size_t len)
{
	static u8 out[ROOM];
	union message msg;
	u32 expected;
	size_t n;
	u16 type;

	if (kulp_parse_hdr(&kcm_proto, in, len, &type))
		return;
	/* A receiver must expect each message that the parser accepts. */
	if (kcm_wire_expect((const struct kulp_hdr *)in, BIT(type), &expected) || expected != len ||
	    !kcm_wire_expect((const struct kulp_hdr *)in, ~BIT(type), &expected))
		abort();
	if (kulp_parse(&kcm_proto, type, in, len, &msg))
		return;
	passed[type]++;
	check_tails(type, in, len, &msg);
	n = kcm_proto.types[type].len;
	memset(out, 0xa5, sizeof(out));
	if (kulp_build(&kcm_proto, type, out, &msg, in + n, len - n) != len)
		abort();
	if (type > KCM_AUTH)
		memcpy(out + sizeof(struct kulp_hdr), in + sizeof(struct kulp_hdr), KULP_MAC);
	if (memcmp(in, out, len))
		abort();
}

#include "drive.h"
