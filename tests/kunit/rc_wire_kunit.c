// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kofi_rc's parsers: valid messages are accepted, and each invalid field is refused. */
#include <kunit/test.h>
#include <linux/slab.h>
#include "../../ulp/rc/wire.h"

#define DATA	100
#define KEY	sizeof(struct krc_wire_key)

/**
 * struct wire_case - a datagram
 * @name: name
 * @ok: it is valid
 * @d: its header; krc_dgram.len is the number of bytes that follow
 */
struct wire_case {
	const char		*name;
	bool			ok;
	struct krc_dgram	d;
};

#define A_SEND(...)	{ .type = KRC_SEND, .seq = 7, .number = 3, __VA_ARGS__ }
#define A_WRITE(...)	{ .type = KRC_WRITE, .seq = 7, .rkey = 9, .addr = 4096, __VA_ARGS__ }
#define A_READ(...)	{ .type = KRC_READ, .seq = 7, .number = 3, .rkey = 9, __VA_ARGS__ }
#define A_REPLY(...)	{ .type = KRC_DATA, .number = 3, __VA_ARGS__ }

#define A_KEYS(...)	{ .type = KRC_KEYS, .seq = 7, ##__VA_ARGS__ }

static const struct wire_case wire_cases[] = {
	{ "send", true, A_SEND(.flags = KRC_LAST, .total = DATA, .len = DATA) },
	{ "empty send", true, A_SEND(.flags = KRC_LAST) },
	{ "first of a send", true, A_SEND(.total = DATA + 1, .len = DATA) },
	{ "last of a send", true, A_SEND(.flags = KRC_LAST | KRC_INV, .arg = 5, .offset = 1,
				       .total = DATA + 1, .len = DATA) },
	{ "longest send", true, A_SEND(.total = KRC_TOTAL_MAX, .len = DATA) },
	{ "too long a send", false, A_SEND(.total = KRC_TOTAL_MAX + 1, .len = DATA) },
	{ "last isn't the end", false, A_SEND(.flags = KRC_LAST, .total = DATA + 1, .len = DATA) },
	{ "end isn't last", false, A_SEND(.total = DATA, .len = DATA) },
	{ "beyond the end", false, A_SEND(.offset = 1, .total = DATA, .len = DATA) },
	{ "offset overflows", false, A_SEND(.offset = U32_MAX, .total = DATA, .len = DATA) },
	{ "part without data", false, A_SEND(.total = DATA) },
	{ "end without data", false, A_SEND(.flags = KRC_LAST, .offset = DATA, .total = DATA) },
	{ "key without flag", false, A_SEND(.flags = KRC_LAST, .arg = 5, .total = 1, .len = 1) },
	{ "flag before the end", false, A_SEND(.flags = KRC_INV, .arg = 5, .total = 2, .len = 1) },
	{ "send with a key", false, A_SEND(.flags = KRC_LAST, .rkey = 5, .total = 1, .len = 1) },
	{ "send with an address", false, A_SEND(.flags = KRC_LAST, .addr = 5, .total = 1,
						.len = 1) },
	{ "send with a flag of data", false, A_SEND(.flags = KRC_FAILED, .total = 2, .len = 1) },
	{ "unknown flag", false, A_SEND(.flags = 0x8, .total = 2, .len = 1) },
	{ "write", true, A_WRITE(.flags = KRC_LAST, .total = DATA, .len = DATA) },
	{ "empty write", false, A_WRITE(.flags = KRC_LAST) },
	{ "write with a number", false, A_WRITE(.number = 1, .total = 2, .len = 1) },
	{ "write that invalidates", false, A_WRITE(.flags = KRC_LAST | KRC_INV, .arg = 1,
						 .total = 1, .len = 1) },
	{ "addresses overflow", false, { .type = KRC_WRITE, .rkey = 1, .addr = U64_MAX,
					 .total = 2, .len = 1 } },
	{ "read", true, A_READ(.total = KRC_TOTAL_MAX) },
	{ "empty read", false, A_READ(.total = 0) },
	{ "read with data", false, A_READ(.total = 1, .len = 1) },
	{ "read of a part", false, A_READ(.offset = 1, .total = 2) },
	{ "read with a flag", false, A_READ(.flags = KRC_LAST, .total = 1) },
	{ "data", true, A_REPLY(.total = DATA + 1, .len = DATA) },
	{ "last data", true, A_REPLY(.flags = KRC_LAST, .offset = 8, .total = DATA + 8,
				   .len = DATA) },
	{ "refusal", true, A_REPLY(.flags = KRC_FAILED, .total = 8) },
	{ "refusal with data", false, A_REPLY(.flags = KRC_FAILED, .total = 8, .len = 1) },
	{ "refusal at the end", false, A_REPLY(.flags = KRC_FAILED | KRC_LAST, .total = 8) },
	{ "data without bytes", false, A_REPLY(.total = 8) },
	{ "data with a sequence number", false, A_REPLY(.seq = 1, .total = 8, .len = 1) },
	{ "data with a key", false, A_REPLY(.rkey = 1, .total = 8, .len = 1) },
	{ "send with keys", true, A_SEND(.flags = KRC_LAST, .nkeys = KRC_KEYS_MAX, .total = DATA,
				       .len = DATA) },
	{ "empty send with a key", true, A_SEND(.flags = KRC_LAST, .nkeys = 1) },
	{ "send with too many keys", false, A_SEND(.flags = KRC_LAST, .nkeys = KRC_KEYS_MAX + 1,
						   .total = DATA, .len = DATA) },
	{ "write with keys", false, A_WRITE(.flags = KRC_LAST, .nkeys = 1, .total = 1, .len = 1) },
	{ "data with keys", false, A_REPLY(.nkeys = 1, .total = 8, .len = 1) },
	{ "keys", true, A_KEYS(.nkeys = 1) },
	{ "no keys", false, A_KEYS() },
	{ "keys and data", false, A_KEYS(.nkeys = 1, .len = 1) },
	{ "keys and a length", false, A_KEYS(.nkeys = 1, .total = 1) },
	{ "keys with a number", false, A_KEYS(.nkeys = 1, .number = 1) },
	{ "no type", false, { .type = 0, .total = 8, .len = 1 } },
	{ "unknown type", false, { .type = KRC_TYPES, .total = 8, .len = 1 } },
};

static void wire_datagrams(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, KRC_HDR + (KRC_KEYS_MAX + 1) * KEY + DATA, GFP_KERNEL);
	const struct wire_case *w;
	struct krc_dgram d, out;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (w = wire_cases; w < wire_cases + ARRAY_SIZE(wire_cases); w++) {
		d = w->d;
		d.cookie = 0x1234567890abcdef;
		d.credits = 77;
		KUNIT_ASSERT_EQ(test, krc_build((struct krc_wire_dgram *)buf, &d), KRC_HDR);
		ret = krc_parse(buf, KRC_HDR + d.nkeys * KEY + d.len, &out);
		KUNIT_EXPECT_EQ_MSG(test, ret, w->ok ? 0 : -EPROTO, "%s", w->name);
		if (ret)
			continue;
		KUNIT_EXPECT_PTR_EQ(test, out.keys, (const void *)(buf + KRC_HDR));
		KUNIT_EXPECT_PTR_EQ(test, out.data, out.keys + d.nkeys * KEY);
		out.keys = NULL;
		out.data = NULL;
		KUNIT_EXPECT_EQ_MSG(test, memcmp(&out, &d, sizeof(d)), 0, "%s", w->name);
		/* A header that isn't complete, and bytes that aren't 0. */
		KUNIT_EXPECT_EQ(test, krc_parse(buf, KRC_HDR - 1, &out), -EPROTO);
		buf[offsetof(struct krc_wire_dgram, reserved)] = 1;
		KUNIT_EXPECT_EQ(test, krc_parse(buf, KRC_HDR + d.nkeys * KEY + d.len, &out),
				-EPROTO);
	}
}

static void wire_credit(struct kunit *test)
{
	const struct krc_dgram d = { .type = KRC_CREDIT, .cookie = 5, .credits = 9 };
	struct krc_wire_dgram wire = {};
	struct krc_dgram out;

	KUNIT_ASSERT_EQ(test, krc_build(&wire, &d), KRC_HDR_SHORT);
	KUNIT_EXPECT_EQ(test, krc_parse(&wire, KRC_HDR_SHORT, &out), 0);
	KUNIT_EXPECT_EQ(test, out.credits, 9U);
	KUNIT_EXPECT_EQ(test, krc_parse(&wire, KRC_HDR_SHORT - 1, &out), -EPROTO);
	KUNIT_EXPECT_EQ(test, krc_parse(&wire, KRC_HDR, &out), -EPROTO);
	wire.flags = KRC_LAST;
	KUNIT_EXPECT_EQ(test, krc_parse(&wire, KRC_HDR_SHORT, &out), -EPROTO);
	wire.flags = 0;
	wire.nkeys = 1;
	KUNIT_EXPECT_EQ(test, krc_parse(&wire, KRC_HDR_SHORT, &out), -EPROTO);
}

static void wire_keys(struct kunit *test)
{
	struct krc_key key = { .rkey = 0x1234567, .gen = 8, .key = 1ULL << 40, .delta = -5ULL };
	struct krc_key out;
	struct krc_wire_key wire;

	krc_build_key(&wire, &key);
	KUNIT_EXPECT_EQ(test, krc_parse_key(&wire, &out), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&key, &out, sizeof(key)), 0);
	key.key = KRC_NO_KEY;
	krc_build_key(&wire, &key);
	KUNIT_EXPECT_EQ(test, krc_parse_key(&wire, &out), -EPROTO);
	key.delta = 0;
	krc_build_key(&wire, &key);
	KUNIT_EXPECT_EQ(test, krc_parse_key(&wire, &out), 0);
}

static const struct krc_side good_side = {
	.cookie = 5, .credits = 1, .datagram = KRC_DATAGRAM_MIN, .window = KRC_WINDOW_MAX,
	.ird = KRC_READS_MAX, .ord = KRC_READS_MAX, .port = 4420, .priv_len = 8,
};

/* Sides that differ from the good one in a field, and are wrong. */
static const struct krc_side bad_sides[] = {
	{ .cookie = 0, .datagram = 4096, .window = 64, .priv_len = 8 },
	{ .cookie = 1, .datagram = KRC_DATAGRAM_MIN - 1, .window = 64, .priv_len = 8 },
	{ .cookie = 1, .datagram = KRC_DATAGRAM_MAX + 1, .window = 64, .priv_len = 8 },
	{ .cookie = 1, .datagram = 4096, .window = KRC_WINDOW_MIN / 2, .priv_len = 8 },
	{ .cookie = 1, .datagram = 4096, .window = KRC_WINDOW_MAX * 2, .priv_len = 8 },
	{ .cookie = 1, .datagram = 4096, .window = 65, .priv_len = 8 },
	{ .cookie = 1, .datagram = 4096, .window = 64, .ird = KRC_READS_MAX + 1, .priv_len = 8 },
	{ .cookie = 1, .datagram = 4096, .window = 64, .ord = KRC_READS_MAX + 1, .priv_len = 8 },
	{ .cookie = 1, .datagram = 4096, .window = 64, .priv_len = 7 },
	{ .cookie = 1, .datagram = 4096, .window = 64, .priv_len = 9 },
};

static void wire_sides(struct kunit *test)
{
	u8 buf[sizeof(struct krc_wire_side) + 8] __aligned(8) = {};
	struct krc_side out;
	int i;

	krc_build_side((struct krc_wire_side *)buf, &good_side);
	KUNIT_ASSERT_EQ(test, krc_parse_side(buf, sizeof(buf), &out), 0);
	KUNIT_EXPECT_PTR_EQ(test, out.priv, (const u8 *)buf + sizeof(struct krc_wire_side));
	out.priv = NULL;
	KUNIT_EXPECT_EQ(test, memcmp(&out, &good_side, sizeof(out)), 0);
	KUNIT_EXPECT_EQ(test, krc_parse_side(buf, sizeof(struct krc_wire_side) - 1, &out), -EPROTO);
	buf[offsetof(struct krc_wire_side, reserved)] = 1;
	KUNIT_EXPECT_EQ(test, krc_parse_side(buf, sizeof(buf), &out), -EPROTO);
	for (i = 0; i < ARRAY_SIZE(bad_sides); i++) {
		krc_build_side((struct krc_wire_side *)buf, &bad_sides[i]);
		KUNIT_EXPECT_EQ_MSG(test, krc_parse_side(buf, sizeof(buf), &out), -EPROTO, "%d", i);
	}
}

static void wire_rejects(struct kunit *test)
{
	u8 buf[sizeof(struct krc_wire_reject) + 8] __aligned(8) = {};
	struct krc_reject reject = { .by_ulp = true, .priv_len = 8 }, out;

	krc_build_reject((struct krc_wire_reject *)buf, &reject);
	KUNIT_EXPECT_EQ(test, krc_parse_reject(buf, sizeof(buf), &out), 0);
	KUNIT_EXPECT_TRUE(test, out.by_ulp);
	KUNIT_EXPECT_EQ(test, out.priv_len, 8);
	KUNIT_EXPECT_EQ(test, krc_parse_reject(buf, sizeof(buf) - 1, &out), -EPROTO);
	KUNIT_EXPECT_EQ(test, krc_parse_reject(buf, 7, &out), -EPROTO);
	reject.by_ulp = false;
	krc_build_reject((struct krc_wire_reject *)buf, &reject);
	KUNIT_EXPECT_EQ(test, krc_parse_reject(buf, sizeof(buf), &out), -EPROTO);
	buf[0] = 2;
	KUNIT_EXPECT_EQ(test, krc_parse_reject(buf, sizeof(buf), &out), -EPROTO);
}

static struct kunit_case wire_suite_cases[] = {
	KUNIT_CASE(wire_datagrams),
	KUNIT_CASE(wire_credit),
	KUNIT_CASE(wire_keys),
	KUNIT_CASE(wire_sides),
	KUNIT_CASE(wire_rejects),
	{}
};

static struct kunit_suite wire_suite = {
	.name		= "kofi_rc_wire",
	.test_cases	= wire_suite_cases,
};

kunit_test_suite(wire_suite);
