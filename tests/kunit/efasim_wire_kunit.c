// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets of the software EFA device: built packets parse to the same, and invalid ones are
 * refused with the right reason.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

/* Include a copy, as the functions are private to the module. */
#include "../../sim/wire.c"

#define ROOM	(sizeof(struct efasim_wire_hdr) + \
		 sizeof(struct efasim_wire_req) + EFASIM_MAX_PAYLOAD)

static struct efasim_pkt good(enum efasim_pkt_type type, u32 length)
{
	struct efasim_pkt pkt = {
		.type = type, .lane = efasim_wire_lane(type),
		.src_gid = { 0xfe, 0x80, 1, 2, 3 },
		.src_inc = 0x1122334455667788, .dst_inc = 0x99aa,
		.sack = { 5, 1ULL << 63 }, .ack = { 7, U32_MAX },
		.seq = 63, .base = 0, .length = length,
	};

	if (type == EFASIM_PKT_ACK)
		return pkt;
	pkt.op = 0xfedcba9876543210;
	pkt.seg = 3;
	if (type == EFASIM_PKT_RESP || type == EFASIM_PKT_DATA) {
		pkt.status = type == EFASIM_PKT_RESP ? 18 : 0;
		return pkt;
	}
	pkt.src_qpn = 0xffff;
	pkt.dst_qpn = 2;
	pkt.qkey = 0x7fffffff;
	pkt.imm = 0x01020304;
	pkt.rkey = 0x00f00001;
	pkt.raddr = 0x123456789abc;
	pkt.rlen = type == EFASIM_PKT_READ ? EFASIM_MAX_PAYLOAD : length;
	return pkt;
}

static u8 *buffer(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, ROOM, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	return buf;
}

static bool has_payload(enum efasim_pkt_type type)
{
	return type != EFASIM_PKT_ACK && type != EFASIM_PKT_READ &&
	       type != EFASIM_PKT_RESP;
}

static void wire_round_trip(struct kunit *test)
{
	struct efasim_pkt out, back;
	u8 *buf = buffer(test);
	size_t len;
	int type;

	for (type = 0; type < EFASIM_PKT_TYPES; type++) {
		out = good(type, has_payload(type) ? 100 : 0);
		len = efasim_wire_build(buf, &out);
		KUNIT_EXPECT_EQ(test, len, efasim_wire_hdr_len(type));
		KUNIT_ASSERT_EQ(test, efasim_wire_parse(buf, len + out.length,
							&back), 0);
		KUNIT_EXPECT_PTR_EQ(test, back.payload, (const void *)buf + len);
		back.payload = NULL;
		KUNIT_EXPECT_MEMEQ(test, &back, &out, sizeof(out));
	}
}

/* A packet isn't longer than the datagram, and may be followed by another. */
static void wire_lengths(struct kunit *test)
{
	struct efasim_pkt out, back;
	u8 *buf = buffer(test);
	size_t len, n;
	int type;

	for (type = 0; type < EFASIM_PKT_TYPES; type++) {
		out = good(type, has_payload(type) ? 40 : 0);
		len = efasim_wire_build(buf, &out) + out.length;
		for (n = 0; n < len + 50; n++)
			KUNIT_EXPECT_EQ(test, n >= len,
					!efasim_wire_parse(buf, n, &back));
		KUNIT_EXPECT_EQ(test, back.length, out.length);
	}
}

struct bad_field {
	const char *name;
	enum efasim_pkt_type type;
	u32 offset;
	u8 size;
	u64 value;
	enum efasim_wire_err err;
};

#define HDR(member) \
	offsetof(struct efasim_wire_hdr, member), \
	sizeof_field(struct efasim_wire_hdr, member)
#define REQ(member) \
	sizeof(struct efasim_wire_hdr) + \
	offsetof(struct efasim_wire_req, member), \
	sizeof_field(struct efasim_wire_req, member)
#define RESP(member) \
	sizeof(struct efasim_wire_hdr) + \
	offsetof(struct efasim_wire_resp, member), \
	sizeof_field(struct efasim_wire_resp, member)

static const struct bad_field bad_fields[] = {
	{ "magic", EFASIM_PKT_SEND, HDR(magic), 1, EFASIM_WIRE_MAGIC_BAD },
	{ "version", EFASIM_PKT_SEND, HDR(version), EFASIM_WIRE_VERSION - 1,
	  EFASIM_WIRE_VERSION_BAD },
	{ "type", EFASIM_PKT_SEND, HDR(type), EFASIM_PKT_TYPES,
	  EFASIM_WIRE_TYPE_BAD },
	{ "type, far", EFASIM_PKT_SEND, HDR(type), 255, EFASIM_WIRE_TYPE_BAD },
	{ "flags", EFASIM_PKT_SEND, HDR(flags), 2, EFASIM_WIRE_FLAGS_BAD },
	{ "imm in READ", EFASIM_PKT_READ, HDR(flags), 1,
	  EFASIM_WIRE_FLAGS_BAD },
	{ "imm in ACK", EFASIM_PKT_ACK, HDR(flags), 1, EFASIM_WIRE_FLAGS_BAD },
	{ "reserved", EFASIM_PKT_SEND, HDR(reserved), 1,
	  EFASIM_WIRE_FIELD_BAD },
	{ "reserved2", EFASIM_PKT_SEND, HDR(reserved2), 1,
	  EFASIM_WIRE_FIELD_BAD },
	{ "incarnation", EFASIM_PKT_SEND, HDR(src_inc), 0,
	  EFASIM_WIRE_FIELD_BAD },
	{ "seq beyond window", EFASIM_PKT_SEND, HDR(seq), EFASIM_WINDOW,
	  EFASIM_WIRE_FIELD_BAD },
	{ "seq before base", EFASIM_PKT_SEND, HDR(base), 64,
	  EFASIM_WIRE_FIELD_BAD },
	{ "length", EFASIM_PKT_SEND, HDR(length), 11, EFASIM_WIRE_LENGTH_BAD },
	{ "absurd length", EFASIM_PKT_SEND, HDR(length), U32_MAX,
	  EFASIM_WIRE_LENGTH_BAD },
	{ "src_qpn", EFASIM_PKT_SEND, REQ(src_qpn), 0x10000,
	  EFASIM_WIRE_FIELD_BAD },
	{ "dst_qpn", EFASIM_PKT_UD, REQ(dst_qpn), 0x10000,
	  EFASIM_WIRE_FIELD_BAD },
	{ "request reserved", EFASIM_PKT_SEND, REQ(reserved), 1,
	  EFASIM_WIRE_FIELD_BAD },
	{ "read too long", EFASIM_PKT_READ, REQ(rlen), EFASIM_MAX_PAYLOAD + 1,
	  EFASIM_WIRE_FIELD_BAD },
	{ "write shorter than payload", EFASIM_PKT_WRITE, REQ(rlen), 9,
	  EFASIM_WIRE_FIELD_BAD },
	{ "address wraps", EFASIM_PKT_WRITE, REQ(raddr), U64_MAX - 3,
	  EFASIM_WIRE_FIELD_BAD },
	{ "status", EFASIM_PKT_RESP, RESP(status), 19, EFASIM_WIRE_FIELD_BAD },
	{ "a huge status", EFASIM_PKT_RESP, RESP(status), 0x80000007,
	  EFASIM_WIRE_FIELD_BAD },
	{ "a local status: flushed", EFASIM_PKT_RESP, RESP(status), 1,
	  EFASIM_WIRE_FIELD_BAD },
	{ "a local status: lkey", EFASIM_PKT_RESP, RESP(status), 5,
	  EFASIM_WIRE_FIELD_BAD },
	{ "a local status: length", EFASIM_PKT_RESP, RESP(status), 6,
	  EFASIM_WIRE_FIELD_BAD },
	{ "a local status: silence", EFASIM_PKT_RESP, RESP(status), 13,
	  EFASIM_WIRE_FIELD_BAD },
	{ "a local status: out of reach", EFASIM_PKT_RESP, RESP(status), 15,
	  EFASIM_WIRE_FIELD_BAD },
	{ "no status of the device's", EFASIM_PKT_RESP, RESP(status), 16,
	  EFASIM_WIRE_FIELD_BAD },
	{ "nor is the next", EFASIM_PKT_RESP, RESP(status), 17,
	  EFASIM_WIRE_FIELD_BAD },
	{ "data with status", EFASIM_PKT_DATA, RESP(status), 1,
	  EFASIM_WIRE_FIELD_BAD },
};

static void bad_field_name(const struct bad_field *bad, char *desc)
{
	strscpy(desc, bad->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bad_field, bad_fields, bad_field_name);

static void wire_bad_field(struct kunit *test)
{
	const struct bad_field *bad = test->param_value;
	struct efasim_pkt out, back;
	u8 *buf = buffer(test);
	size_t len;
	int i;

	out = good(bad->type, has_payload(bad->type) ? 10 : 0);
	len = efasim_wire_build(buf, &out) + out.length;
	KUNIT_ASSERT_EQ(test, efasim_wire_parse(buf, len, &back), 0);
	for (i = 0; i < bad->size; i++)
		buf[bad->offset + i] = bad->value >> 8 * (bad->size - 1 - i);
	KUNIT_EXPECT_EQ(test, efasim_wire_parse(buf, len, &back), bad->err);
}

/* Accepted packets point into the buffer and satisfy the invariants of wire.h. */
static void wire_random(struct kunit *test)
{
	struct efasim_pkt out, pkt;
	u8 *buf = buffer(test);
	struct rnd_state rnd;
	int i, passed = 0;

	prandom_seed_state(&rnd, 7);
	for (i = 0; i < 20000; i++) {
		u32 type = prandom_u32_state(&rnd) % EFASIM_PKT_TYPES;
		u32 flips = prandom_u32_state(&rnd) % 4, room;
		size_t len;

		out = good(type, has_payload(type) ? 20 : 0);
		len = efasim_wire_build(buf, &out) + out.length;
		while (flips--)
			buf[prandom_u32_state(&rnd) % len] ^=
				BIT(prandom_u32_state(&rnd) % 8);
		if (efasim_wire_parse(buf, len, &pkt))
			continue;
		passed++;
		room = buf + len - (const u8 *)pkt.payload;
		KUNIT_EXPECT_GE(test, room, pkt.length);
		KUNIT_EXPECT_LE(test, pkt.src_qpn, 0xffff);
		KUNIT_EXPECT_LE(test, pkt.dst_qpn, 0xffff);
		KUNIT_EXPECT_LE(test, pkt.status, 18);
		KUNIT_EXPECT_TRUE(test, pkt.lane == EFASIM_LANE_NONE ||
				  pkt.seq - pkt.base < EFASIM_WINDOW);
	}
	KUNIT_EXPECT_GT(test, passed, 1000);
}

static struct kunit_case efasim_wire_cases[] = {
	KUNIT_CASE(wire_round_trip),
	KUNIT_CASE(wire_lengths),
	KUNIT_CASE_PARAM(wire_bad_field, bad_field_gen_params),
	KUNIT_CASE(wire_random),
	{ }
};

static struct kunit_suite efasim_wire_suite = {
	.name = "efasim_wire",
	.test_cases = efasim_wire_cases,
};

kunit_test_suite(efasim_wire_suite);

MODULE_DESCRIPTION("KUnit tests of the software EFA device's packets");
MODULE_LICENSE("Dual BSD/GPL");
