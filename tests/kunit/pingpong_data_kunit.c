// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Pingpong's data: the check detects every difference. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "../../samples/pingpong/data.c"

#define SEED	0x0123456789abcdefULL
#define SEQ	41

static const u32 sizes[] = { 0, 1, 3, 7, 8, 9, 15, 16, 17, 64, 255, 1000 };

static u8 *filled(struct kunit *test, u32 size)
{
	u8 *buf = kunit_kzalloc(test, size + PP_GUARD, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	memset(buf, PP_POISON, size + PP_GUARD);
	pp_fill(buf, size, SEED, SEQ);
	return buf;
}

static void good_data_is_good(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		KUNIT_EXPECT_TRUE_MSG(test, pp_verify(filled(test, sizes[i]),
						      sizes[i], SEED, SEQ),
				      "%u bytes", sizes[i]);
}

static void each_bit_counts(struct kunit *test)
{
	u32 i, bit, missed = 0;
	u8 *buf;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		buf = filled(test, sizes[i]);
		for (bit = 0; bit < 8 * (sizes[i] + PP_GUARD); bit++) {
			buf[bit / 8] ^= BIT(bit % 8);
			missed += pp_verify(buf, sizes[i], SEED, SEQ);
			buf[bit / 8] ^= BIT(bit % 8);
		}
		KUNIT_EXPECT_TRUE(test, pp_verify(buf, sizes[i], SEED, SEQ));
	}
	KUNIT_EXPECT_EQ(test, missed, 0);
}

static void nothing_arrived(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, 1000 + PP_GUARD, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	memset(buf, PP_POISON, 1000 + PP_GUARD);
	KUNIT_EXPECT_FALSE(test, pp_verify(buf, 1000, SEED, SEQ));
	KUNIT_EXPECT_FALSE(test, pp_verify(buf, 1, SEED, SEQ));
}

static void other_messages_are_bad(struct kunit *test)
{
	u8 *buf = filled(test, 64);

	KUNIT_EXPECT_FALSE(test, pp_verify(buf, 64, SEED + 1, SEQ));
	KUNIT_EXPECT_FALSE(test, pp_verify(buf, 64, SEED, SEQ + 1));
	KUNIT_EXPECT_FALSE(test, pp_verify(buf, 63, SEED, SEQ));
	/* The same number with the data of another message. */
	pp_fill(buf, 64, SEED, SEQ + 1);
	*(__le32 *)buf = cpu_to_le32(SEQ);
	KUNIT_EXPECT_FALSE(test, pp_verify(buf, 64, SEED, SEQ));
}

static void messages_say_which(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pp_seq_of(filled(test, 8), 8), SEQ);
	KUNIT_EXPECT_EQ(test, pp_seq_of(filled(test, 1000), 1000), SEQ);
	KUNIT_EXPECT_EQ(test, pp_seq_of(filled(test, 7), 7), 0);
	KUNIT_EXPECT_EQ(test, pp_seq_of(filled(test, 0), 0), 0);
}

static void fill_stays_inside(struct kunit *test)
{
	u8 *buf;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		buf = filled(test, sizes[i]);
		KUNIT_EXPECT_NULL(test, memchr_inv(buf + sizes[i], PP_POISON,
						   PP_GUARD));
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(good_data_is_good),
	KUNIT_CASE(each_bit_counts),
	KUNIT_CASE(nothing_arrived),
	KUNIT_CASE(other_messages_are_bad),
	KUNIT_CASE(messages_say_which),
	KUNIT_CASE(fill_stays_inside),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofi_pingpong_data",
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of pingpong's data");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
