// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages about connections: all fields, all lengths, and what a parser must refuse. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include "../../cm/msg/wire.c"

#define ROUNDS	20000

static const size_t room = KMSG_WIRE_MAX;

/* Too large for a stack. */
static struct kmsg_msg msg, out;

static void make(enum kmsg_type type)
{
	msg = (struct kmsg_msg) {
		.type = type, .id = 0x01020304, .side = {
			.format = 7, .protocol = 0x11223344, .tag = 0x1122334455667788,
			.posted = 0x99, .addrlen = 8, .len = 5,
		},
	};
	memcpy(msg.side.addr, "address!", 8);
	memcpy(msg.side.data, "hello", 5);
}

static bool has_side(enum kmsg_type type)
{
	return type == KMSG_CONN || type == KMSG_ACCEPT;
}

/* The side that gets a message. */
static bool to_active(enum kmsg_type type)
{
	return type == KMSG_ACCEPT || type == KMSG_REJECT;
}

static void there_and_back(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, room, GFP_KERNEL);
	enum kmsg_type type;
	size_t len;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (type = KMSG_CONN; type < KMSG_TYPES; type++) {
		make(type);
		memset(&out, 0xa5, sizeof(out));
		len = kmsg_msg_build(&msg, buf);
		KUNIT_ASSERT_LE(test, len, room);
		KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, len, to_active(type), &out), (int)len);
		/* Others may follow. */
		KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, room, to_active(type), &out), (int)len);
		KUNIT_EXPECT_EQ(test, out.type, type);
		KUNIT_EXPECT_EQ(test, out.id, msg.id);
		KUNIT_EXPECT_EQ(test, out.why, 0);
		if (type == KMSG_REJECT || has_side(type)) {
			KUNIT_EXPECT_EQ(test, out.side.len, 5);
			KUNIT_EXPECT_EQ(test, memcmp(out.side.data, "hello", 5), 0);
		}
		if (type == KMSG_CREDIT || has_side(type))
			KUNIT_EXPECT_EQ(test, out.side.posted, msg.side.posted);
		if (!has_side(type))
			continue;
		KUNIT_EXPECT_EQ(test, out.side.tag, msg.side.tag);
		KUNIT_EXPECT_EQ(test, out.side.format, msg.side.format);
		KUNIT_EXPECT_EQ(test, out.side.protocol, msg.side.protocol);
		KUNIT_EXPECT_EQ(test, out.side.addrlen, 8);
		KUNIT_EXPECT_EQ(test, memcmp(out.side.addr, "address!", 8), 0);
	}
}

/* Every length but the right one, and every direction but the right one. */
static void lengths(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, room + 1, GFP_KERNEL);
	struct kmsg_wire_hdr *hdr = (void *)buf;
	enum kmsg_type type;
	size_t len, n;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (type = KMSG_CONN; type < KMSG_TYPES; type++) {
		make(type);
		len = kmsg_msg_build(&msg, buf);
		for (n = 0; n < len; n++)
			KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, n, to_active(type), &out),
					-EPROTO);
		if (type != KMSG_CREDIT && type != KMSG_DISC)
			KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, len, !to_active(type), &out),
					-EPROTO);
		for (n = 0; n < sizeof(*hdr); n++) {
			hdr->len = cpu_to_le16(n);
			KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, room, to_active(type), &out),
					-EPROTO);
		}
		hdr->len = cpu_to_le16(room + 1);
		KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, room + 1, to_active(type), &out),
				-EPROTO);
	}
}

/* Values that no message has. */
static void values(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, room, GFP_KERNEL);
	struct kmsg_wire_side *side = (void *)buf;
	size_t len;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	make(KMSG_CONN);
	len = kmsg_msg_build(&msg, buf);
	side->hdr.type = 0;
	KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, len, false, &out), -EPROTO);
	side->hdr.type = KMSG_TYPES;
	KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, len, false, &out), -EPROTO);
	side->hdr.type = KMSG_CONN;
	side->hdr.why = 1;
	KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, len, false, &out), -EPROTO);
	side->hdr.why = 0;
	side->addrlen = 0;
	KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, len, false, &out), -EPROTO);
	side->addrlen = cpu_to_le16(8 + 5 + 1);
	KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, len, false, &out), -EPROTO);
	side->addrlen = cpu_to_le16(KULP_ADDR_MAX + 1);
	side->hdr.len = cpu_to_le16(room);
	KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, room, false, &out), -EPROTO);
	side->addrlen = cpu_to_le16(KULP_ADDR_MAX - 1);
	KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, room, false, &out), -EPROTO);
	side->addrlen = cpu_to_le16(KULP_ADDR_MAX);
	KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, room, false, &out), (int)room);
	make(KMSG_REJECT);
	msg.why = KMSG_BUSY;
	len = kmsg_msg_build(&msg, buf);
	KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, len, true, &out), (int)len);
	KUNIT_EXPECT_EQ(test, out.why, KMSG_BUSY);
	side->hdr.why = KMSG_WHYS;
	KUNIT_EXPECT_EQ(test, kmsg_msg_parse(buf, len, true, &out), -EPROTO);
}

/* Whatever arrives, nothing beyond it is read, and the result is within bounds. */
static void noise(struct kunit *test)
{
	struct rnd_state rnd;
	size_t len;
	u8 *buf;
	int i, ret;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < ROUNDS; i++) {
		len = prandom_u32_state(&rnd) % 64;
		/* Of exactly this size, so that KASAN sees reads beyond it. */
		buf = kmalloc(len, GFP_KERNEL);
		if (!buf)
			continue;
		prandom_bytes_state(&rnd, buf, len);
		if (len > 3) {
			buf[0] %= KMSG_TYPES + 1;
			buf[1] %= KMSG_WHYS + 1;
			buf[2] = len;
			buf[3] = 0;
		}
		ret = kmsg_msg_parse(buf, len, i & 1, &out);
		if (ret != -EPROTO) {
			KUNIT_EXPECT_LE(test, ret, (int)len);
			KUNIT_EXPECT_GE(test, ret, (int)sizeof(struct kmsg_wire_hdr));
			KUNIT_EXPECT_LE(test, out.side.len, KMSG_DATA_MAX);
		}
		kfree(buf);
	}
}

static struct kunit_case msg_wire_cases[] = {
	KUNIT_CASE(there_and_back),
	KUNIT_CASE(lengths),
	KUNIT_CASE(values),
	KUNIT_CASE(noise),
	{}
};

static struct kunit_suite msg_wire_suite = {
	.name		= "kofi_msg_wire",
	.test_cases	= msg_wire_cases,
};

kunit_test_suite(msg_wire_suite);

MODULE_DESCRIPTION("KUnit suite of messages about connections");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
