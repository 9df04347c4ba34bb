// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sessions of kofiblk's client: set-up, notes during a session, end, and the next session. */
#include "kofiblk_setup_scene.c"

/* --- sessions --- */

static void sessions(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;
	int i;

	for (i = 0; i < 3; i++) {
		scene->id++;
		KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
		KUNIT_EXPECT_EQ(test, d->session.id, scene->id);
		KUNIT_EXPECT_PTR_EQ(test, kbc_session_find(d->session.id), d);
		KUNIT_EXPECT_EQ(test, d->nqueues, 1);
		KUNIT_EXPECT_EQ(test, d->made.depth, 8);
		KUNIT_EXPECT_EQ(test, scene->credits, 9U);
		KUNIT_EXPECT_EQ(test, d->session.geometry.bytes, DISK);
		ends(test);
		KUNIT_EXPECT_NULL(test, kbc_session_find(scene->id));
	}
	KUNIT_EXPECT_EQ(test, kbc_count(d, KBC_STAT(connects)), 3UL);
	KUNIT_EXPECT_EQ(test, refused(), 0UL);
	KUNIT_EXPECT_FALSE(test, d->final);
	/* A session that the client ends isn't final either, though it is for kofi_cm. */
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	kbc_session_fail(d, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, run(), -ECONNRESET);
	kbc_disconnect(d);
	KUNIT_EXPECT_FALSE(test, d->final);
	KUNIT_EXPECT_EQ(test, scene->byes, 4U);
	/* The end of the disk is kofi_cm's BYE. */
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	d->stopping = true;
	KUNIT_EXPECT_EQ(test, run(), -ESHUTDOWN);
	kbc_disconnect(d);
	KUNIT_EXPECT_EQ(test, scene->byes, 4U);
	KUNIT_EXPECT_EQ(test, kbc_connect(d), -ESHUTDOWN);
}

/* The server learns the client's fabric, which doesn't change with the device. */
static void fabrics(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;

	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_EQ(test, d->link.addrs.format, (u32)FI_ADDR_EFA);
	KUNIT_EXPECT_EQ(test, scene->hello.protocol, FI_PROTO_EFA << 16 | 4U);
	scene->fabric.gone = 1;
	kbc_disconnect(d);
	KUNIT_EXPECT_NULL(test, d->fabric);
	scene->fabric.gone = 0;
	scene->ep_attr.protocol_version = 1;
	KUNIT_EXPECT_EQ(test, kbc_connect(d), -ENODATA);
	KUNIT_EXPECT_NULL(test, d->fabric);
	scene->ep_attr.protocol_version = 4;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	kbc_disconnect(d);
}

/* There is no session if the endpoints can't be reached, and no loss is noted. */
static void deaf_endpoints(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;

	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_EQ(test, scene->proves, 1U);
	kbc_epoch_wrote(&d->epoch);
	kbc_disconnect(d);
	scene->deaf = true;
	scene->accept.limits.keep_alive = 100;
	scene->accept.epoch++;
	KUNIT_EXPECT_EQ(test, kbc_connect(d), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, d->session.id, 0ULL);
	KUNIT_EXPECT_NULL(test, kbc_session_find(scene->id));
	KUNIT_EXPECT_FALSE(test, d->epoch.lost);
	/* Before that, regions are renewed whose keys the server before it may use. */
	KUNIT_EXPECT_EQ(test, scene->renewed, 2ULL);
	KUNIT_EXPECT_EQ(test, scene->replaced, 1ULL);
	/* It isn't tried again while the device still has many messages to the endpoints. */
	scene->full = true;
	scene->connects = 0;
	KUNIT_EXPECT_EQ(test, kbc_connect(d), -EBUSY);
	KUNIT_EXPECT_EQ(test, scene->connects, 0U);
	scene->full = false;
	scene->deaf = false;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_TRUE(test, d->epoch.lost);
	kbc_disconnect(d);
	/* Each session has messages that an earlier one may have set aside. */
	KUNIT_EXPECT_EQ(test, scene->signals, 3U);
}

/* The keys of tags are those of the session, and are forgotten after it. */
static void keys_of_tags(struct kunit *test)
{
	const struct kofiblk_keys none = {};
	struct kbc_disk *d = &scene->d;
	struct kofiblk_keys keys;

	scene->mac_key[3] = 1;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	kofiblk_keys_make(scene->mac_key, &keys);
	KUNIT_EXPECT_EQ(test, memcmp(&keys, &d->session.keys, sizeof(keys)), 0);
	kbc_disconnect(d);
	KUNIT_EXPECT_EQ(test, memcmp(&d->session.keys, &none, sizeof(none)), 0);
	scene->mac_key[3] = 2;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_NE(test, memcmp(&keys, &d->session.keys, sizeof(keys)), 0);
	kbc_disconnect(d);
}

/* Of several sizes, the last one counts; and none of an earlier session. */
static void resizes(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;
	unsigned int updates;
	int i;

	for (i = 0; i < 3; i++) {
		updates = scene->updates;
		KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
		KUNIT_EXPECT_EQ(test, d->session.geometry.bytes, DISK);
		say_resize(2 * DISK);
		say_resize(DISK + 4096);
		lose(-ECONNRESET);
		KUNIT_EXPECT_EQ(test, run(), -ECONNRESET);
		KUNIT_EXPECT_EQ(test, d->session.geometry.bytes, DISK + 4096);
		flush_work(&d->update);
		KUNIT_EXPECT_GT(test, scene->updates, updates);
		say_resize(2 * DISK);
		kbc_disconnect(d);
	}
	KUNIT_EXPECT_EQ(test, refused(), 0UL);
}

static void wrong_resizes(struct kunit *test)
{
	static const u64 wrong[] = { DISK + 512, DISK + 1, KOFIBLK_OFFSET_MAX };
	struct kbc_disk *d = &scene->d;
	int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
		say_resize(wrong[i]);
		KUNIT_EXPECT_EQ_MSG(test, run(), -EPROTO, "RESIZE %d", i);
		KUNIT_EXPECT_EQ(test, d->session.geometry.bytes, DISK);
		kbc_disconnect(d);
		KUNIT_EXPECT_EQ(test, refused(), i + 1UL);
	}
}

/*
 * Uevents of the new size may wait for a task that waits for this disk. The thread must be free
 * to end the session then.
 */
static void updates_outside_the_thread(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;

	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	say_resize(2 * DISK);
	lose(-ECONNRESET);
	KUNIT_EXPECT_EQ(test, run(), -ECONNRESET);
	flush_work(&d->update);
	KUNIT_EXPECT_EQ(test, scene->updates, 1U);
	KUNIT_EXPECT_PTR_NE(test, scene->updater, current);
	kbc_disconnect(d);
}

/* --- ends of sessions --- */

/* An end is final if kofi_cm says so, which knows whether the server has proved who it is. */
static void byes(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;
	int again;

	for (again = 1; again >= 0; again--) {
		KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
		say_bye(again, true);
		KUNIT_EXPECT_EQ(test, run(), -ECONNABORTED);
		KUNIT_EXPECT_TRUE(test, d->session.flushed);
		KUNIT_EXPECT_EQ(test, d->final, !again);
		kbc_disconnect(d);
		KUNIT_EXPECT_FALSE(test, d->session.flushed);
	}
	/* A bad message is counted. */
	KUNIT_EXPECT_EQ(test, refused(), 0UL);
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	lose(-EPROTO);
	KUNIT_EXPECT_EQ(test, run(), -EPROTO);
	kbc_disconnect(d);
	KUNIT_EXPECT_EQ(test, refused(), 1UL);
}

/* The same for a server that refuses the client. */
static void refusals(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;
	int again;

	for (again = 1; again >= 0; again--) {
		scene->end = (struct kcm_end) {
			.err = -EBUSY, .refused = true, .final = !again, .why = "why",
		};
		d->final = false;
		KUNIT_EXPECT_EQ(test, kbc_connect(d), -EBUSY);
		KUNIT_EXPECT_EQ(test, d->final, !again);
	}
	KUNIT_EXPECT_EQ(test, refused(), 0UL);
	KUNIT_EXPECT_EQ(test, d->session.id, 0ULL);
}

/* Users know these errors; those of kofi_cm tell which side lacks the secret. */
static void errors(struct kunit *test)
{
	static const int errs[][2] = {
		{ -ENOKEY, -EACCES }, { -ENODATA, -EACCES }, { -EKEYREJECTED, -EACCES },
		{ -ECONNREFUSED, -ECONNREFUSED }, { -ETIMEDOUT, -ETIMEDOUT },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errs); i++) {
		scene->end.err = errs[i][0];
		KUNIT_EXPECT_EQ(test, kbc_connect(&scene->d), errs[i][1]);
		KUNIT_EXPECT_FALSE(test, scene->d.final);
	}
	/* The server's own status isn't about secrets. */
	scene->end = (struct kcm_end) { .err = -ENODATA, .refused = true };
	KUNIT_EXPECT_EQ(test, kbc_connect(&scene->d), -ENODATA);
}

/* Each answer over the fabric shows kofi_cm that the server lives, until there are no more. */
static void heard_over_the_fabric(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;

	scene->accept.limits.keep_alive = 100;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_EQ(test, run(), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, scene->keep_alives, 3U);
	KUNIT_EXPECT_EQ(test, scene->cm.heards, 2U);
	kbc_disconnect(d);
	/* Nothing is sent, and kofi_cm sees alone that the server doesn't live. */
	scene->stuck = true;
	scene->keep_alives = 0;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_EQ(test, run(), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, scene->cm.heards, 0U);
	kbc_disconnect(d);
}

/* --- lost writes --- */

/* Write, and have the next session begin with another epoch. Return: whether a loss is noted. */
static bool loses(struct kunit *test, bool writes, bool flushed)
{
	struct kbc_disk *d = &scene->d;
	unsigned long before;

	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	if (writes)
		kbc_epoch_wrote(&d->epoch);
	say_bye(true, flushed);
	KUNIT_EXPECT_EQ(test, run(), -ECONNABORTED);
	kbc_disconnect(d);
	scene->accept.epoch++;
	before = kbc_count(d, KBC_STAT(losses));
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_EQ(test, kbc_epoch_fails(&d->epoch, true, false), d->epoch.lost);
	KUNIT_EXPECT_EQ(test, kbc_count(d, KBC_STAT(losses)), before + d->epoch.lost);
	kbc_disconnect(d);
	return d->epoch.lost;
}

static void losses(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;

	KUNIT_EXPECT_FALSE(test, loses(test, false, false));
	/* The server says that it has flushed all writes, at the end of the session. */
	KUNIT_EXPECT_FALSE(test, loses(test, true, true));
	KUNIT_EXPECT_TRUE(test, loses(test, true, false));
	kbc_epoch_accept(&d->epoch);
	KUNIT_EXPECT_FALSE(test, loses(test, false, false));
	/* The flushes of one server don't count for a later session. */
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	say_bye(true, true);
	run();
	kbc_disconnect(d);
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	kbc_epoch_wrote(&d->epoch);
	ends(test);
	scene->accept.epoch++;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_TRUE(test, d->epoch.lost);
	kbc_disconnect(d);
}

/* Write in a session that ends without a flush. */
static void wrote(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;

	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	kbc_epoch_wrote(&d->epoch);
	ends(test);
}

/* The server reopens its store. Return: whether a loss is noted, which is accepted. */
static bool lost_by_reopening(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;
	bool lost;

	scene->accept.epoch++;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	lost = d->epoch.lost;
	kbc_epoch_accept(&d->epoch);
	ends(test);
	return lost;
}

/* A server that stops during set-up has flushed what it has open now, and no other session's. */
static void flushed_too_early(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;

	/* It has crashed since the writes. */
	wrote(test);
	scene->parts = true;
	scene->accept.epoch++;
	KUNIT_EXPECT_EQ(test, kbc_connect(d), -ECONNABORTED);
	scene->parts = false;
	KUNIT_EXPECT_TRUE(test, lost_by_reopening(test));
	/* It still has the store open that it had then. */
	wrote(test);
	scene->parts = true;
	KUNIT_EXPECT_EQ(test, kbc_connect(d), -ECONNABORTED);
	scene->parts = false;
	KUNIT_EXPECT_FALSE(test, lost_by_reopening(test));
	/* It was before the writes. */
	scene->leaves = true;
	KUNIT_EXPECT_EQ(test, kbc_connect(d), -ECONNABORTED);
	scene->leaves = false;
	wrote(test);
	KUNIT_EXPECT_TRUE(test, lost_by_reopening(test));
}

/* The thread waits for the server's answer no longer if its own device goes. */
static void removed_during_set_up(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;

	scene->removed = true;
	KUNIT_EXPECT_EQ(test, kbc_connect(d), -ENODEV);
	KUNIT_EXPECT_EQ(test, scene->byes, 1U);
	scene->removed = false;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	kbc_disconnect(d);
}

/* --- what a server may grant --- */

/* Return: the error of a session with what @scene->accept says, which is restored. */
static int granted(struct kofiblk_accept_msg *good)
{
	int ret = kbc_connect(&scene->d);

	scene->accept = *good;
	scene->addr_len = ADDRLEN;
	scene->addr_count = 1;
	if (!ret)
		kbc_disconnect(&scene->d);
	return ret;
}

static void wrong_grants(struct kunit *test)
{
	struct kofiblk_accept_msg good = scene->accept;
	struct kofiblk_accept_msg *now = &scene->accept;

#define REFUSED(change, err)							\
	do {									\
		change;								\
		KUNIT_EXPECT_EQ_MSG(test, granted(&good), err, "%s", #change);	\
	} while (0)
	/* More than was requested. */
	REFUSED(now->limits.caps |= KOFIBLK_CAP_CHECKSUM, -EPROTO);
	REFUSED(now->limits.max_io = SZ_2M, -EPROTO);
	REFUSED(now->limits.keep_alive = 10001, -EPROTO);
	REFUSED(now->limits.queues = scene->addr_count = 3, -EPROTO);
	REFUSED(now->limits.depth = 17, -EPROTO);
	/* Other addresses than it says, or of another kind. */
	REFUSED(scene->addr_count = 2, -EPROTO);
	REFUSED(scene->addr_len = ADDRLEN - 1, -EPROTO);
	REFUSED(now->epoch = 0, -EPROTO);
	KUNIT_EXPECT_FALSE(test, scene->d.made.known);
	KUNIT_EXPECT_EQ(test, refused(), 8UL);
	kbc_setup_free(&scene->d);
	REFUSED(scene->d.options.checksum = true, -EOPNOTSUPP);
	scene->d.options.checksum = false;
	/* A later session must be as good as the first. */
	KUNIT_EXPECT_EQ(test, granted(&good), 0);
	REFUSED(now->content[1] = 1, -ESTALE);
	REFUSED(now->disk.logical_block = 512, -ESTALE);
	REFUSED(now->limits.depth--, -ESTALE);
	REFUSED(now->limits.max_io -= 4096, -ESTALE);
	REFUSED(now->limits.max_io += 4096, -EPROTO);
	REFUSED(now->limits.queues = scene->addr_count = 2, -EPROTO);
#undef REFUSED
	KUNIT_EXPECT_EQ(test, granted(&good), 0);
}

/* Have the device's last queues be polled. */
static void polls_on(unsigned int queues, unsigned int polled)
{
	unsigned int i;

	scene->fabric.nqueues = queues;
	scene->fabric.npolled = polled;
	for (i = 0; i < queues; i++)
		scene->q[i].polled = i >= queues - polled;
}

static void asks_for(unsigned int queues, unsigned int polled, unsigned int granted)
{
	scene->d.options.queues = queues;
	scene->d.options.select.polled = polled;
	scene->accept.limits.queues = granted;
	scene->addr_count = granted;
}

/* A server that grants less than was asked for leaves at least one queue that isn't polled. */
static void polled_queues(struct kunit *test)
{
	static const struct {
		unsigned int	queues, polled, asked, granted, npolled;
		int		q[4];	/* of the device, by queue of the disk */
	} rows[] = {
		{ 2, 0, 2, 2, 0, { 0, 1 } },
		{ 2, 2, 4, 4, 2, { 0, 2, 3, 1 } },
		{ 2, 1, 3, 3, 1, { 0, 2, 1 } },
		{ 1, 15, 3, 3, 2, { 0, 2, 3 } },
		{ 2, 2, 4, 3, 2, { 0, 2, 3 } },
		{ 2, 2, 4, 2, 1, { 0, 2 } },
		{ 2, 2, 4, 1, 0, { 0 } },
	};
	struct kbc_disk *d = &scene->d;
	unsigned int i, j;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		polls_on(4, 2);
		asks_for(rows[i].queues, rows[i].polled, rows[i].granted);
		d->made.known = false;
		KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
		KUNIT_EXPECT_EQ(test, scene->hello.limits.queues, rows[i].asked);
		KUNIT_EXPECT_EQ(test, d->nqueues, rows[i].granted);
		KUNIT_EXPECT_EQ(test, d->npolled, rows[i].npolled);
		for (j = 0; j < d->nqueues; j++)
			KUNIT_EXPECT_PTR_EQ(test, d->queues[j].q, &scene->q[rows[i].q[j]]);
		/* The block layer's queues of a kind follow each other. */
		for (j = 0; j < d->nqueues; j++)
			KUNIT_EXPECT_EQ(test, kbc_hctx_queue(d, j)->q->polled,
					j >= d->nqueues - d->npolled);
		ends(test);
		/* With another device, which has none to poll, the disk keeps its queues. */
		kbc_setup_free(d);
		polls_on(1, 0);
		KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
		for (j = 0; j < d->nqueues; j++)
			KUNIT_EXPECT_PTR_EQ(test, d->queues[j].q, &scene->q[0]);
		ends(test);
		kbc_setup_free(d);
	}
}

/* The disk's thread reads polled queues, also while nothing happens. */
static void polls_for_itself(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;
	unsigned int polls;

	polls_on(2, 1);
	asks_for(1, 1, 2);
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	polls = scene->polls;
	KUNIT_EXPECT_EQ(test, kbc_session_wait(d, msecs_to_jiffies(3 * KBC_UNREAD_MS / 2)), 0);
	KUNIT_EXPECT_GE(test, scene->polls, polls + 2);
	KUNIT_EXPECT_LE(test, scene->polls, polls + 3);
	ends(test);
}

/* Sizes that some drives report would make the block layer read 4 GiB ahead. */
static void limits_nonsense(struct kunit *test)
{
	struct kbc_disk *d = &scene->d;

	scene->accept.disk.io_opt = 0xfffff000;
	scene->accept.disk.io_min = 0xfffff000;
	scene->accept.disk.physical_block = 1U << 31;
	KUNIT_ASSERT_EQ(test, kbc_connect(d), 0);
	KUNIT_EXPECT_EQ(test, d->session.geometry.io_opt, (u32)SZ_64K);
	KUNIT_EXPECT_EQ(test, d->session.geometry.io_min, (u32)SZ_1M);
	KUNIT_EXPECT_EQ(test, d->session.geometry.physical_block, (u32)SZ_1M);
	kbc_disconnect(d);
}

/* An ID that another disk's session has, perhaps with another server, is refused. */
static void used_id(struct kunit *test)
{
	struct kbc_disk *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_ASSERT_EQ(test, kbc_publish(other, scene->id), 0);
	KUNIT_EXPECT_EQ(test, kbc_connect(&scene->d), -EPROTO);
	KUNIT_EXPECT_PTR_EQ(test, kbc_session_find(scene->id), other);
	KUNIT_EXPECT_EQ(test, refused(), 1UL);
	kbc_unpublish(other);
	KUNIT_ASSERT_EQ(test, kbc_connect(&scene->d), 0);
	kbc_disconnect(&scene->d);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(sessions),
	KUNIT_CASE(fabrics),
	KUNIT_CASE(deaf_endpoints),
	KUNIT_CASE(keys_of_tags),
	KUNIT_CASE(resizes),
	KUNIT_CASE(wrong_resizes),
	KUNIT_CASE(updates_outside_the_thread),
	KUNIT_CASE(byes),
	KUNIT_CASE(refusals),
	KUNIT_CASE(errors),
	KUNIT_CASE(heard_over_the_fabric),
	KUNIT_CASE(losses),
	KUNIT_CASE(flushed_too_early),
	KUNIT_CASE(removed_during_set_up),
	KUNIT_CASE(wrong_grants),
	KUNIT_CASE(polled_queues),
	KUNIT_CASE(polls_for_itself),
	KUNIT_CASE(limits_nonsense),
	KUNIT_CASE(used_id),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_setup",
	.init		= setup_init,
	.exit		= setup_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of kofiblk's client: sessions");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI_ULP);
