// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What kofiblk's client concludes from what a server says. */
#include <kunit/test.h>
#include <linux/module.h>
#include "../../samples/blk/blk_epoch.c"

static bool flush(struct kbc_epoch *e, bool succeeds)
{
	bool unflushed = kbc_epoch_flush(e);

	if (!succeeds)
		kbc_epoch_flush_failed(e, unflushed);
	return unflushed;
}

/* The server crashed between a write's reply and the flush: that one must not succeed. */
static void loses_unflushed_writes(struct kunit *test)
{
	struct kbc_epoch e = {};

	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 1));
	kbc_epoch_wrote(&e);
	KUNIT_EXPECT_TRUE(test, kbc_epoch_begin(&e, 2));
	/* Each fails once; what isn't to be in stable storage doesn't. */
	KUNIT_EXPECT_FALSE(test, kbc_epoch_fails(&e, false, false));
	KUNIT_EXPECT_TRUE(test, kbc_epoch_fails(&e, true, false));
	KUNIT_EXPECT_FALSE(test, kbc_epoch_fails(&e, true, false));
	KUNIT_EXPECT_TRUE(test, kbc_epoch_fails(&e, false, true));
	KUNIT_EXPECT_FALSE(test, kbc_epoch_fails(&e, false, true));
	/* And it is said once. */
	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 3));
	KUNIT_EXPECT_FALSE(test, kbc_epoch_fails(&e, true, true));
}

static void loses_nothing(struct kunit *test)
{
	struct kbc_epoch e = {};

	/* The first session, and another without a write. */
	kbc_epoch_begin(&e, 1);
	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 2));
	/* The store was open all the time. */
	kbc_epoch_wrote(&e);
	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 2));
	/* All was flushed, by the client or by the server as it left. */
	KUNIT_EXPECT_TRUE(test, flush(&e, true));
	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 3));
	kbc_epoch_wrote(&e);
	kbc_epoch_flushed(&e);
	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 4));
	KUNIT_EXPECT_FALSE(test, kbc_epoch_fails(&e, true, true));
}

/* A flush that failed, or that the session's end left without a reply, did nothing. */
static void flush_does_nothing(struct kunit *test)
{
	struct kbc_epoch e = {};

	kbc_epoch_begin(&e, 1);
	kbc_epoch_wrote(&e);
	flush(&e, false);
	KUNIT_EXPECT_TRUE(test, kbc_epoch_begin(&e, 2));
	/* Where there was nothing to flush, there is nothing to lose. */
	flush(&e, false);
	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 3));
}

/* Its reply came after the flush began, which needn't have covered it. */
static void write_beside_a_flush(struct kunit *test)
{
	struct kbc_epoch e = {};
	bool unflushed;

	kbc_epoch_begin(&e, 1);
	kbc_epoch_wrote(&e);
	unflushed = kbc_epoch_flush(&e);
	KUNIT_EXPECT_TRUE(test, unflushed);
	kbc_epoch_wrote(&e);
	KUNIT_EXPECT_TRUE(test, kbc_epoch_begin(&e, 2));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(loses_unflushed_writes),
	KUNIT_CASE(loses_nothing),
	KUNIT_CASE(flush_does_nothing),
	KUNIT_CASE(write_beside_a_flush),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_client",
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of kofiblk's client");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
