// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Checks of kofiblk's client: lost writes, granted limits. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include "../../ulp/blk/cli_rules.c"

static bool flush(struct kbc_epoch *e, bool succeeds)
{
	bool unflushed = kbc_epoch_flush(e);

	if (!succeeds)
		kbc_epoch_flush_failed(e, unflushed);
	return unflushed;
}

/* If the server crashed between a write's reply and the flush, the flush must fail. */
static void loses_unflushed_writes(struct kunit *test)
{
	struct kbc_epoch e = {};

	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 1));
	kbc_epoch_wrote(&e);
	KUNIT_EXPECT_TRUE(test, kbc_epoch_begin(&e, 2));
	/* Flushes and writes with FUA of all users fail; other writes don't. */
	KUNIT_EXPECT_FALSE(test, kbc_epoch_fails(&e, false, false));
	KUNIT_EXPECT_TRUE(test, kbc_epoch_fails(&e, true, false));
	KUNIT_EXPECT_TRUE(test, kbc_epoch_fails(&e, false, true));
	KUNIT_EXPECT_TRUE(test, kbc_epoch_fails(&e, true, true));
	/* Another session doesn't change that, and isn't another loss. */
	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 3));
	KUNIT_EXPECT_TRUE(test, kbc_epoch_fails(&e, true, false));
	kbc_epoch_accept(&e);
	KUNIT_EXPECT_FALSE(test, kbc_epoch_fails(&e, true, true));
}

static void loses_nothing(struct kunit *test)
{
	struct kbc_epoch e = {};

	/* The first session, and another one without a write in between. */
	kbc_epoch_begin(&e, 1);
	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 2));
	/* The server's store stayed open. */
	kbc_epoch_wrote(&e);
	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 2));
	/* All writes were flushed, by the client, or by the server at the end of the session. */
	KUNIT_EXPECT_TRUE(test, flush(&e, true));
	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 3));
	kbc_epoch_wrote(&e);
	kbc_epoch_flushed(&e);
	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 4));
	KUNIT_EXPECT_FALSE(test, kbc_epoch_fails(&e, true, true));
}

/* After a flush that failed or got no reply, the writes count as unflushed. */
static void flush_does_nothing(struct kunit *test)
{
	struct kbc_epoch e = {};

	kbc_epoch_begin(&e, 1);
	kbc_epoch_wrote(&e);
	flush(&e, false);
	KUNIT_EXPECT_TRUE(test, kbc_epoch_begin(&e, 2));
	/* Without unflushed writes nothing can be lost. */
	flush(&e, false);
	KUNIT_EXPECT_FALSE(test, kbc_epoch_begin(&e, 3));
}

/* A flush may not cover a write whose reply came after the flush began. */
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

/* --- two disks of one export --- */

static struct kbc_disk *disk_of(struct kunit *test, u64 epoch, const char *export,
				const char *client, u8 host, u8 content)
{
	struct kbc_disk *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, d);
	d->epoch.epoch = epoch;
	strscpy(d->options.export, export, sizeof(d->options.export));
	strscpy(d->options.client, client, sizeof(d->options.client));
	d->options.host[0] = host;
	d->made.accept.content[15] = content;
	d->state = KBC_LIVE;
	init_completion(&d->created);
	complete(&d->created);
	return d;
}

/* By another address it is the same session, but by another server with the same store it isn't. */
static void two_disks(struct kunit *test)
{
	struct kbc_disk *d = disk_of(test, 1, "e", "c", 1, 1);

	KUNIT_EXPECT_EQ(test, kbc_twins(d, disk_of(test, 1, "e", "c", 1, 1)), -EALREADY);
	KUNIT_EXPECT_EQ(test, kbc_twins(d, disk_of(test, 2, "e", "c", 1, 1)), 0);
	KUNIT_EXPECT_EQ(test, kbc_twins(d, disk_of(test, 1, "f", "c", 1, 1)), 0);
	KUNIT_EXPECT_EQ(test, kbc_twins(d, disk_of(test, 1, "e", "d", 1, 1)), 0);
	KUNIT_EXPECT_EQ(test, kbc_twins(d, disk_of(test, 1, "e", "c", 2, 1)), 0);
	KUNIT_EXPECT_EQ(test, kbc_twins(d, disk_of(test, 1, "e", "c", 1, 2)), 0);
	/* A disk without a session doesn't know whether its server has another epoch now. */
	d->state = KBC_CONNECTING;
	KUNIT_EXPECT_EQ(test, kbc_twins(d, disk_of(test, 2, "e", "c", 1, 1)), -EBUSY);
	KUNIT_EXPECT_EQ(test, kbc_twins(d, disk_of(test, 1, "e", "c", 1, 1)), -EALREADY);
	KUNIT_EXPECT_EQ(test, kbc_twins(d, disk_of(test, 2, "f", "c", 1, 1)), 0);
	/* One that isn't attached yet may never be. */
	reinit_completion(&d->created);
	KUNIT_EXPECT_EQ(test, kbc_twins(d, disk_of(test, 1, "e", "c", 1, 1)), -EBUSY);
}

/* --- granted limits --- */

#define FULL	(KOFIBLK_CAP_DISCARD | KOFIBLK_CAP_WRITE_ZEROES | KOFIBLK_CAP_FUA)

/* Properties of an export in consecutive sessions. */
static const struct grant {
	const char	*name;
	u32		flags;
	u32		caps;
	u16		depth;
	u32		block;
	u8		content;
	bool		fine;
} grants[] = {
	{ "the same", KOFIBLK_DISK_WRITE_CACHE, FULL, 64, 512, 1, true },
	{ "read-only now", KOFIBLK_DISK_WRITE_CACHE | KOFIBLK_DISK_READ_ONLY, KOFIBLK_CAP_FUA,
	  64, 512, 1, true },
	{ "to be written to again", KOFIBLK_DISK_WRITE_CACHE, FULL, 64, 512, 1, true },
	{ "without its cache", 0, FULL, 64, 512, 1, true },
	{ "with it again", KOFIBLK_DISK_WRITE_CACHE, FULL, 64, 512, 1, true },
	{ "more depth", KOFIBLK_DISK_WRITE_CACHE, FULL, 128, 512, 1, true },
	{ "as much as at first", KOFIBLK_DISK_WRITE_CACHE, FULL, 64, 512, 1, true },
	{ "less depth", KOFIBLK_DISK_WRITE_CACHE, FULL, 63, 512, 1 },
	{ "no discards", KOFIBLK_DISK_WRITE_CACHE, FULL & ~KOFIBLK_CAP_DISCARD, 64, 512, 1 },
	{ "other blocks", KOFIBLK_DISK_WRITE_CACHE, FULL, 64, 4096, 1 },
	{ "another disk", KOFIBLK_DISK_WRITE_CACHE, FULL, 64, 512, 2 },
};

static struct kofiblk_accept_msg granted(const struct grant *grant)
{
	return (struct kofiblk_accept_msg) {
		.content = { grant->content },
		.limits = {
			.caps	= grant->caps,
			.max_io	= SZ_1M,
			.queues	= 2,
			.depth	= grant->depth,
		},
		.disk = {
			.flags		= grant->flags,
			.logical_block	= grant->block,
		},
	};
}

static void grants_are_compared_with_the_first(struct kunit *test)
{
	struct kofiblk_accept_msg accept, made = granted(&grants[0]);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(grants); i++) {
		accept = granted(&grants[i]);
		KUNIT_EXPECT_EQ_MSG(test, !kbc_made_differs(&made, &accept),
				    grants[i].fine, "%s", grants[i].name);
	}
}

/* A disk made without discards doesn't need them, even if a session in between had them. */
static void made_read_only(struct kunit *test)
{
	static const struct grant first = {
		"", KOFIBLK_DISK_READ_ONLY, KOFIBLK_CAP_FUA, 64, 512, 1
	};
	static const struct grant writable = { "", 0, FULL, 64, 512, 1 };
	static const struct grant cached = {
		"", KOFIBLK_DISK_WRITE_CACHE, FULL, 64, 512, 1
	};
	struct kofiblk_accept_msg accept, made = granted(&first);

	accept = granted(&writable);
	KUNIT_EXPECT_NULL(test, kbc_made_differs(&made, &accept));
	accept = granted(&first);
	KUNIT_EXPECT_NULL(test, kbc_made_differs(&made, &accept));
	/* The block layer wouldn't flush the new cache. */
	accept = granted(&cached);
	KUNIT_EXPECT_NOT_NULL(test, kbc_made_differs(&made, &accept));
}

static void short_of_something(struct kunit *test)
{
	u16 status;

	for (status = 0; status < KULP_STATUSES; status++)
		KUNIT_EXPECT_EQ(test, kbc_transient(status),
				status == KULP_STS_NOMEM || status == KULP_STS_BUSY);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(loses_unflushed_writes),
	KUNIT_CASE(loses_nothing),
	KUNIT_CASE(flush_does_nothing),
	KUNIT_CASE(write_beside_a_flush),
	KUNIT_CASE(two_disks),
	KUNIT_CASE(grants_are_compared_with_the_first),
	KUNIT_CASE(made_read_only),
	KUNIT_CASE(short_of_something),
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
