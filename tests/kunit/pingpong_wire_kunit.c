// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Pingpong's wire parser: valid messages are accepted, and each invalid field is refused. */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/random.h>
#include "../../ulp/lib/msg.c"
#include "../../samples/pingpong/wire.c"

static const struct pp_msg good[] = {
	{
		.type = PP_HELLO,
		.hello = {
			.max_msg	= 8192,
			.max_rma	= 1 << 20,
			.memory		= 1 << 21,
			.depth		= PP_DEPTH_MAX,
			.can		= PP_CAN_ALL,
		},
	},
	{
		.type = PP_TEST,
		.test = {
			.op	= PP_SEND,
			.mode	= PP_STREAM,
			.size	= PP_SIZE_MAX,
			.count	= PP_COUNT_MAX,
			.depth	= PP_DEPTH_MAX,
			.seed	= U64_MAX,
		},
	},
	{
		.type = PP_READY,
		.ready = { .base = U64_MAX, .key = 0x0123456789abcdef },
	},
	{
		.type = PP_DONE,
		.done = {
			.arrived = PP_COUNT_MAX,
			.checked = PP_COUNT_MAX,
			.bad	 = PP_COUNT_MAX,
		},
	},
};

static const struct pp_msg *good_one(enum pp_type type)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(good); i++)
		if (good[i].type == type)
			return &good[i];
	return NULL;
}

static void round_trip(struct kunit *test)
{
	u8 buf[PP_WIRE_MAX] __aligned(8), again[PP_WIRE_MAX] __aligned(8);
	struct pp_msg msg;
	size_t len;
	int i;

	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(good), PP_TYPES - 1);
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		len = pp_wire_build(&good[i], buf);
		KUNIT_ASSERT_LE(test, len, sizeof(buf));
		KUNIT_ASSERT_EQ(test, pp_wire_parse(buf, len, &msg), 0);
		KUNIT_EXPECT_EQ(test, msg.type, good[i].type);
		KUNIT_EXPECT_EQ(test, pp_wire_build(&msg, again), len);
		KUNIT_EXPECT_MEMEQ(test, buf, again, len);
	}
}

/* The layout is a protocol: the other side may run another build of the module. */
static void little_endian(struct kunit *test)
{
	static const u8 want[] = {
		'o', 'k', 'i', 'p', 3, 0, 2, 0, 40, 0, 0, 0, 0, 0, 0, 0,
		3, 0, 2, 0, 0x04, 0x03, 0x02, 0x01, 8, 0, 0, 0, 4, 0, 0, 0,
		0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01,
	};
	const struct pp_msg msg = {
		.type = PP_TEST,
		.test = {
			.op	= PP_WRITEDATA,
			.mode	= PP_STREAM,
			.size	= 0x01020304,
			.count	= 8,
			.depth	= 4,
			.seed	= 0x0123456789abcdef,
		},
	};
	u8 buf[PP_WIRE_MAX] __aligned(8);

	KUNIT_ASSERT_EQ(test, pp_wire_build(&msg, buf), sizeof(want));
	KUNIT_EXPECT_MEMEQ(test, buf, want, sizeof(want));
}

static void lengths(struct kunit *test)
{
	u8 buf[PP_WIRE_MAX + 1] __aligned(8) = {};
	struct pp_msg msg;
	size_t len, n;
	int i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		len = pp_wire_build(&good[i], buf);
		for (n = 0; n <= sizeof(buf); n++)
			KUNIT_EXPECT_EQ_MSG(test, pp_wire_parse(buf, n, &msg),
					    n == len ? 0 : -EPROTO,
					    "type %u, %zu bytes", good[i].type,
					    n);
	}
}

/* A field of a valid message is overwritten; the expected result. */
struct change {
	const char	*what;
	enum pp_type	type;
	size_t		offset;
	size_t		size;
	u64		value;
	int		ret;
};

#define HEADER(field)	offsetof(struct kulp_hdr, field), sizeof_field(struct kulp_hdr, field)
#define BODY(type, field) \
	offsetof(struct pp_wire_##type, field), sizeof_field(struct pp_wire_##type, field)

static const struct change changes[] = {
	{ "magic", PP_DONE, HEADER(magic), PP_MAGIC + 1, -EPROTO },
	{ "magic swapped", PP_DONE, HEADER(magic), 0x6f6b6970, -EPROTO },
	{ "version 0", PP_DONE, HEADER(version), 0, -EPROTO },
	{ "version to come", PP_DONE, HEADER(version), PP_VERSION + 1, -EPROTO },
	{ "type 0", PP_DONE, HEADER(type), 0, -EPROTO },
	{ "type one too high", PP_DONE, HEADER(type), PP_TYPES, -EPROTO },
	{ "type highest", PP_DONE, HEADER(type), U16_MAX, -EPROTO },
	{ "another type", PP_DONE, HEADER(type), PP_TEST, -EPROTO },
	{ "length 0", PP_DONE, HEADER(len), 0, -EPROTO },
	{ "length short", PP_DONE, HEADER(len), sizeof(struct pp_wire_done) - 1, -EPROTO },
	{ "length long", PP_DONE, HEADER(len), sizeof(struct pp_wire_done) + 1, -EPROTO },
	{ "length highest", PP_DONE, HEADER(len), U32_MAX, -EPROTO },
	{ "reserved", PP_DONE, HEADER(reserved), 1, -EPROTO },

	{ "no memory", PP_HELLO, BODY(hello, memory), 0, -EPROTO },
	{ "memory for guard bytes", PP_HELLO, BODY(hello, memory), PP_GUARD, -EPROTO },
	{ "memory for no slot", PP_HELLO, BODY(hello, memory), PP_SLOT_ALIGN - 1, -EPROTO },
	{ "memory for a slot", PP_HELLO, BODY(hello, memory), PP_SLOT_ALIGN, 0 },
	{ "much memory", PP_HELLO, BODY(hello, memory), U64_MAX, 0 },
	{ "no limits", PP_HELLO, BODY(hello, max_msg), 0, 0 },
	{ "no depth", PP_HELLO, BODY(hello, depth), 0, -EPROTO },
	{ "depth too high", PP_HELLO, BODY(hello, depth), PP_DEPTH_MAX + 1,
	  -EPROTO },
	{ "datagrams", PP_HELLO, BODY(hello, can), 8, 0 },
	{ "connections", PP_HELLO, BODY(hello, can), 16, 0 },
	{ "ability unknown", PP_HELLO, BODY(hello, can), 32, -EPROTO },
	{ "no abilities", PP_HELLO, BODY(hello, can), 0, 0 },

	{ "operation", PP_TEST, BODY(test, op), PP_OPS, -EPROTO },
	{ "operation highest", PP_TEST, BODY(test, op), U16_MAX, -EPROTO },
	{ "mode", PP_TEST, BODY(test, mode), PP_MODES, -EPROTO },
	{ "mode highest", PP_TEST, BODY(test, mode), U16_MAX, -EPROTO },
	{ "size 0", PP_TEST, BODY(test, size), 0, 0 },
	{ "size too big", PP_TEST, BODY(test, size), PP_SIZE_MAX + 1,
	  -EPROTO },
	{ "size wraps", PP_TEST, BODY(test, size), U32_MAX, -EPROTO },
	{ "no operations", PP_TEST, BODY(test, count), 0, -EPROTO },
	{ "too many", PP_TEST, BODY(test, count), PP_COUNT_MAX + 1, -EPROTO },
	{ "far too many", PP_TEST, BODY(test, count), U32_MAX, -EPROTO },
	{ "depth 0", PP_TEST, BODY(test, depth), 0, -EPROTO },
	{ "too deep", PP_TEST, BODY(test, depth), PP_DEPTH_MAX + 1, -EPROTO },
	{ "latency at depth", PP_TEST, BODY(test, mode), PP_LATENCY, -EPROTO },
	{ "checked send", PP_TEST, BODY(test, mode), PP_CHECK, 0 },

	{ "arrived", PP_DONE, BODY(done, arrived), PP_COUNT_MAX + 1, -EPROTO },
	{ "checked", PP_DONE, BODY(done, checked), PP_COUNT_MAX + 1, -EPROTO },
	{ "more bad than checked", PP_DONE, BODY(done, checked),
	  PP_COUNT_MAX - 1, -EPROTO },
	{ "bad", PP_DONE, BODY(done, bad), PP_COUNT_MAX + 1, -EPROTO },
	{ "none bad", PP_DONE, BODY(done, bad), 0, 0 },
};

static void change_name(const struct change *change, char *name)
{
	strscpy(name, change->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(changes, changes, change_name);

static void changed_field(struct kunit *test)
{
	const struct change *change = test->param_value;
	__le64 value = cpu_to_le64(change->value);
	u8 buf[PP_WIRE_MAX] __aligned(8);
	struct pp_msg msg;
	size_t len;

	len = pp_wire_build(good_one(change->type), buf);
	memcpy(buf + change->offset, &value, change->size);
	KUNIT_EXPECT_EQ(test, pp_wire_parse(buf, len, &msg), change->ret);
}

static void checked_rma_uses_slots_once(struct kunit *test)
{
	struct pp_msg msg = {
		.type = PP_TEST,
		.test = { .op = PP_WRITE, .mode = PP_CHECK, .count = 5,
			  .depth = 5 },
	};
	u8 buf[PP_WIRE_MAX] __aligned(8);
	size_t len;

	len = pp_wire_build(&msg, buf);
	KUNIT_EXPECT_EQ(test, pp_wire_parse(buf, len, &msg), 0);
	msg.test.count = 6;
	len = pp_wire_build(&msg, buf);
	KUNIT_EXPECT_EQ(test, pp_wire_parse(buf, len, &msg), -EPROTO);
}

/* Accepted messages are valid arguments of the other functions. */
static void noise(struct kunit *test)
{
	u8 buf[PP_WIRE_MAX] __aligned(8), again[PP_WIRE_MAX] __aligned(8);
	struct rnd_state rnd;
	struct pp_msg msg;
	int i, k, passed = 0;
	size_t len;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < 20000; i++) {
		len = pp_wire_build(&good[i % ARRAY_SIZE(good)], buf);
		for (k = prandom_u32_state(&rnd) % 4; k >= 0; k--)
			buf[prandom_u32_state(&rnd) % len] =
				prandom_u32_state(&rnd);
		if (pp_wire_parse(buf, len, &msg))
			continue;
		passed++;
		KUNIT_ASSERT_EQ(test, pp_wire_build(&msg, again), len);
		KUNIT_ASSERT_MEMEQ(test, buf, again, len);
	}
	KUNIT_EXPECT_GT(test, passed, 0);
	KUNIT_EXPECT_LT(test, passed, 20000);
}

struct fit {
	const char	*what;
	struct pp_test	test;
	int		ret;
};

/* Limits of a side: 1 MiB, 16 slots, messages of 8192 bytes, RMA of 65536 bytes. */
static const struct fit fits[] = {
	{ "nothing", { PP_SEND, PP_STREAM, 0, 1, 1 }, 0 },
	{ "limit", { PP_SEND, PP_STREAM, 8192, 1, 16 }, 0 },
	{ "message over", { PP_SEND, PP_STREAM, 8193, 1, 1 }, -EMSGSIZE },
	{ "RMA limit", { PP_READ, PP_STREAM, 65536, 1, 15 }, 0 },
	{ "RMA over", { PP_WRITE, PP_STREAM, 65537, 1, 1 }, -EMSGSIZE },
	{ "memory over", { PP_WRITE, PP_STREAM, 65536, 1, 16 }, -EMSGSIZE },
	{ "depth over", { PP_SEND, PP_STREAM, 0, 1, 17 }, -EMSGSIZE },
	{ "all over", { PP_SEND, PP_STREAM, PP_SIZE_MAX, 1, PP_DEPTH_MAX },
	  -EMSGSIZE },
	{ "no CQ data", { PP_WRITEDATA, PP_STREAM, 0, 1, 1 }, -EOPNOTSUPP },
};

static void fit_name(const struct fit *fit, char *name)
{
	strscpy(name, fit->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(fits, fits, fit_name);

static void test_fits(struct kunit *test)
{
	const struct fit *fit = test->param_value;
	struct pp_hello side = {
		.max_msg	= 8192,
		.max_rma	= 65536,
		.memory		= 1 << 20,
		.depth		= 16,
		.can		= PP_CAN_RMA,
	};

	KUNIT_EXPECT_EQ(test, pp_test_fits(&fit->test, &side), fit->ret);
	side.can = 0;
	if (fit->test.op != PP_SEND)
		KUNIT_EXPECT_EQ(test, pp_test_fits(&fit->test, &side),
				-EOPNOTSUPP);
}

static void slots(struct kunit *test)
{
	u32 size;

	for (size = 0; size < 1000; size++) {
		KUNIT_EXPECT_GE(test, pp_stride(size), size + PP_GUARD);
		KUNIT_EXPECT_LT(test, pp_stride(size),
				size + PP_GUARD + PP_SLOT_ALIGN);
		KUNIT_EXPECT_EQ(test, pp_stride(size) % PP_SLOT_ALIGN, 0);
	}
	KUNIT_EXPECT_GT(test, pp_stride(PP_SIZE_MAX), PP_SIZE_MAX);
}

/* A sender that waits for replies gets enough of them. */
static void answers_suffice(struct kunit *test)
{
	struct pp_test t = {};
	u32 every, answers;

	for (t.depth = 1; t.depth < 40; t.depth++) {
		every = pp_ack_every(&t);
		for (t.count = 1; t.count < 200; t.count++) {
			answers = t.count / every;
			KUNIT_ASSERT_GE(test, t.depth + answers * every,
					t.count);
		}
		/* The number of the client's receives. */
		KUNIT_ASSERT_LE(test, t.depth / every, min(t.depth, 2U));
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(round_trip),
	KUNIT_CASE(little_endian),
	KUNIT_CASE(lengths),
	KUNIT_CASE_PARAM(changed_field, changes_gen_params),
	KUNIT_CASE(checked_rma_uses_slots_once),
	KUNIT_CASE(noise),
	KUNIT_CASE_PARAM(test_fits, fits_gen_params),
	KUNIT_CASE(slots),
	KUNIT_CASE(answers_suffice),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofi_pingpong_wire",
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of pingpong's wire parser");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
