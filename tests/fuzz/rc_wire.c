// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_rc's parsers in user space, with sanitizers. An accepted message must be built to the same
 * bytes: the parsers ignore no field. The first byte of an input selects the parser.
 */
#include "kernel.h"

#define BIT(n)		(1U << (n))

#include "../../ulp/rc/wire.c"

#define ROOM	(1 + KRC_DATAGRAM_MAX + 64)

/* Counters of accepted datagrams by type, of struct krc_wire_side and of struct krc_wire_reject. */
#define SIDES	(KRC_TYPES + 0)
#define REJECTS	(KRC_TYPES + 1)
#define PASSED	(KRC_TYPES + 2)
static unsigned long passed[PASSED];

static void check_tail(const u8 *in, size_t len, const void *tail, size_t n)
{
	if ((const u8 *)tail < in || (const u8 *)tail + n != in + len)
		abort();
}

static void check_key(const struct krc_wire_key *wire)
{
	struct krc_wire_key out;
	struct krc_key key;

	if (krc_parse_key(wire, &key))
		return;
	krc_build_key(&out, &key);
	if (memcmp(wire, &out, sizeof(out)))
		abort();
}

static void parse_dgram(const u8 *in, size_t len)
{
	struct krc_wire_dgram out;
	struct krc_dgram msg;
	size_t n;

	if (krc_parse(in, len, &msg))
		return;
	passed[msg.type]++;
	memset(&out, 0xa5, sizeof(out));
	n = krc_build(&out, &msg);
	if (memcmp(in, &out, n))
		abort();
	if (msg.type == KRC_CREDIT)
		return;
	check_tail(in, len, msg.data, msg.len);
	for (n = 0; n < msg.nkeys; n++)
		check_key((const struct krc_wire_key *)msg.keys + n);
}

static void parse_side(const u8 *in, size_t len)
{
	struct krc_wire_side out;
	struct krc_side msg;

	if (krc_parse_side(in, len, &msg))
		return;
	passed[SIDES]++;
	if (memcmp(in, &out, krc_build_side(&out, &msg)))
		abort();
	check_tail(in, len, msg.priv, msg.priv_len);
}

static void parse_reject(const u8 *in, size_t len)
{
	struct krc_wire_reject out;
	struct krc_reject msg;

	if (krc_parse_reject(in, len, &msg))
		return;
	passed[REJECTS]++;
	if (memcmp(in, &out, krc_build_reject(&out, &msg)))
		abort();
	check_tail(in, len, msg.priv, msg.priv_len);
}

static void parse(const u8 *in, size_t len)
{
	static void (* const parsers[])(const u8 *in, size_t len) = {
		parse_dgram, parse_side, parse_reject,
	};
	u64 *copy;

	if (!len || in[0] >= ARRAY_SIZE(parsers))
		return;
	/* Datagrams are aligned. The copy ends where the input does, for the sanitizer. */
	copy = malloc(len - 1 ?: 1);
	if (!copy)
		abort();
	memcpy(copy, in + 1, len - 1);
	parsers[in[0]]((const u8 *)copy, len - 1);
	free(copy);
}

#include "drive.h"
