// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event queues: order, errors, room, sleepers, handlers. eq_device_kunit.c tests events of
 * devices and of closed objects.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>
#include "crew.h"
#include "eq_test.h"

#define EQ_SHORT_MS	30

static void eq_attributes(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct fi_eq_attr attr = { };
	struct fid_eq *eq;

	KUNIT_EXPECT_EQ(test, fi_eq_open(NULL, &attr, &eq, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_eq_open(bench->fabric, NULL, &eq, NULL),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_eq_open(bench->fabric, &attr, NULL, NULL),
			-EINVAL);
	attr.size = 4097;
	KUNIT_EXPECT_EQ(test, fi_eq_open(bench->fabric, &attr, &eq, NULL),
			-EINVAL);
	attr.size = 0;
	attr.wait_obj = FI_WAIT_UNSPEC + 1;
	KUNIT_EXPECT_EQ(test, fi_eq_open(bench->fabric, &attr, &eq, NULL),
			-EINVAL);
	attr.wait_obj = FI_WAIT_NONE;
	attr.flags = FI_READ;
	KUNIT_EXPECT_EQ(test, fi_eq_open(bench->fabric, &attr, &eq, NULL),
			-FI_EBADFLAGS);
	attr.flags = 0;
	KUNIT_ASSERT_EQ(test, fi_eq_open(bench->fabric, &attr, &eq, bench), 0);
	KUNIT_EXPECT_GT(test, attr.size, 0);
	KUNIT_EXPECT_PTR_EQ(test, eq->fid.context, bench);
	KUNIT_EXPECT_EQ(test, fi_eq_sread(eq, NULL, NULL, 0, -1, 0),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_close(&eq->fid), 0);
	attr.size = 4096;
	KUNIT_ASSERT_EQ(test, fi_eq_open(bench->fabric, &attr, &eq, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&eq->fid), 0);
}

static void eq_user_writes(struct kunit *test)
{
	struct fid_eq *eq = eq_bench(test)->eq;
	struct fi_eq_device_entry big = { };
	struct fi_eq_entry entry = eq_entry((struct fid *)&big, 5), got;
	u32 event = 77;

	/* Any fid is accepted, because the core doesn't dereference it. */
	KUNIT_EXPECT_EQ(test, fi_eq_write(eq, 9, &entry, sizeof(entry), 0),
			sizeof(entry));
	KUNIT_EXPECT_EQ(test, fi_eq_write(eq, 9, &entry, sizeof(entry), 1),
			-FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_eq_write(eq, 9, &entry, sizeof(entry) - 1, 0),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_eq_write(eq, 9, &big, sizeof(big), 0),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_eq_write(eq, FI_DEVICE_REMOVED, &entry,
					  sizeof(entry), 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_eq_write(eq, FI_DEVICE_ARRIVED, &entry,
					  sizeof(entry), 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &got, sizeof(got), 0),
			sizeof(got));
	KUNIT_EXPECT_EQ(test, event, 9);
	KUNIT_EXPECT_MEMEQ(test, &got, &entry, sizeof(got));
	KUNIT_EXPECT_EQ(test, eq_get(eq), -EAGAIN);
}

static void eq_user_must_not_write(struct kunit *test)
{
	struct fid_eq *eq = eq_bench_attr(test, (struct fi_eq_attr) { })->eq;
	struct fi_eq_entry entry = { };

	KUNIT_EXPECT_EQ(test, fi_eq_write(eq, 0, &entry, sizeof(entry), 0),
			-EINVAL);
	/* A provider may write such an event. */
	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 1), 0);
	KUNIT_EXPECT_EQ(test, kofi_eq_write_event(eq, NULL, FI_DEVICE_REMOVED, &entry,
						  sizeof(entry), NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, kofi_eq_write_event(eq, NULL, 0, &entry, 1, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, eq_get(eq), 1);
	KUNIT_EXPECT_EQ(test, eq_get(eq), -EAGAIN);
}

static void eq_order(struct kunit *test)
{
	struct fid_eq *eq = eq_bench(test)->eq;

	KUNIT_EXPECT_EQ(test, eq_get(eq), -EAGAIN);
	KUNIT_EXPECT_EQ(test, eq_get_err(eq), -EAGAIN);
	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 1), 0);
	KUNIT_EXPECT_EQ(test, eq_put_err(eq, NULL, 2), 0);
	KUNIT_EXPECT_EQ(test, eq_put_err(eq, NULL, 3), 0);
	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 4), 0);
	KUNIT_EXPECT_EQ(test, eq_get_err(eq), -EAGAIN);
	KUNIT_EXPECT_EQ(test, eq_get(eq), 1);
	KUNIT_EXPECT_EQ(test, eq_get(eq), -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, eq_get_err(eq), 2);
	KUNIT_EXPECT_EQ(test, eq_get(eq), -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, eq_get_err(eq), 3);
	KUNIT_EXPECT_EQ(test, eq_get_err(eq), -EAGAIN);
	KUNIT_EXPECT_EQ(test, eq_get(eq), 4);
	KUNIT_EXPECT_EQ(test, eq_get(eq), -EAGAIN);
}

static void eq_peek(struct kunit *test)
{
	struct fid_eq *eq = eq_bench(test)->eq;
	struct fi_eq_err_entry err = { };
	struct fi_eq_entry entry;
	u32 event;
	int i;

	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &entry, sizeof(entry),
					 FI_PEEK), -EAGAIN);
	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 1), 0);
	KUNIT_EXPECT_EQ(test, eq_put_err(eq, NULL, 2), 0);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &entry,
						 sizeof(entry), FI_PEEK),
				sizeof(entry));
		KUNIT_EXPECT_PTR_EQ(test, entry.context, (void *)1);
	}
	KUNIT_EXPECT_EQ(test, eq_get(eq), 1);
	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &entry, sizeof(entry),
					 FI_PEEK), -FI_EAVAIL);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, fi_eq_readerr(eq, &err, FI_PEEK),
				sizeof(err));
		KUNIT_EXPECT_PTR_EQ(test, err.context, (void *)2);
	}
	KUNIT_EXPECT_EQ(test, eq_get_err(eq), 2);
	KUNIT_EXPECT_EQ(test, fi_eq_readerr(eq, &err, FI_PEEK), -EAGAIN);
}

static void eq_arguments(struct kunit *test)
{
	struct fid_eq *eq = eq_bench(test)->eq;
	struct fi_eq_err_entry err = { };
	struct fi_eq_entry entry;
	u32 event;

	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &entry, sizeof(entry),
					 FI_READ), -FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_eq_readerr(eq, &err, FI_READ), -FI_EBADFLAGS);
	/* An event that doesn't fit into the buffer stays in the queue. */
	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &entry, sizeof(entry) - 1,
					 0), -FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, fi_eq_sread(eq, &event, &entry, 0, -1, 0),
			-FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, eq_get(eq), 1);
}

static void eq_full(struct kunit *test)
{
	struct fid_eq *eq = eq_bench(test)->eq;
	struct fi_eq_entry entry = { };
	int i;

	for (i = 0; i < 3; i++) {
		eq_fill(test, eq, EQ_SIZE);
		KUNIT_EXPECT_EQ(test, eq_put_err(eq, NULL, 1), -EAGAIN);
		KUNIT_EXPECT_EQ(test, fi_eq_write(eq, 0, &entry, sizeof(entry),
						  0), -EAGAIN);
		KUNIT_EXPECT_EQ(test, eq_get(eq), 1000);
		KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 1000 + EQ_SIZE), 0);
		KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 1), -EAGAIN);
		KUNIT_EXPECT_EQ(test, eq_get(eq), 1001);
		KUNIT_EXPECT_EQ(test, eq_put_err(eq, NULL, 9), 0);
		while (eq_get(eq) >= 0)
			;
		/* All events that were accepted are read. */
		KUNIT_EXPECT_EQ(test, eq_get(eq), -FI_EAVAIL);
		KUNIT_EXPECT_EQ(test, eq_get_err(eq), 9);
		KUNIT_EXPECT_EQ(test, eq_get(eq), -EAGAIN);
	}
}

/* A connection event, which is longer than most and owns memory. */
struct eq_cm_entry {
	struct fid	*fid;
	void		*owned;
	u8		data[200];
};

static atomic_t eq_released;

static void eq_release(void *entry)
{
	/* Providers may sleep here. */
	might_sleep();
	kfree(((struct eq_cm_entry *)entry)->owned);
	atomic_inc(&eq_released);
}

static struct eq_cm_entry *eq_cm_entry(struct kunit *test, struct fid *fid, u8 fill)
{
	struct eq_cm_entry *entry = kunit_kzalloc(test, sizeof(*entry), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, entry);
	entry->fid = fid;
	entry->owned = kmalloc(32, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, entry->owned);
	memset(entry->data, fill, sizeof(entry->data));
	return entry;
}

static void eq_expect_cm(struct kunit *test, struct fid_eq *eq, u32 what, size_t len,
			 const struct eq_cm_entry *want)
{
	struct eq_cm_entry got = { };
	u32 event = 0;

	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &got, len - 1, 0), -FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, fi_eq_read(eq, &event, &got, sizeof(got), 0), (ssize_t)len);
	KUNIT_EXPECT_EQ(test, event, what);
	KUNIT_EXPECT_MEMEQ(test, &got, want, len);
	kfree(got.owned);
}

/* Entries of several lengths; reading an event passes its memory to the reader. */
static void eq_lengths(struct kunit *test)
{
	static const size_t lens[] = {
		offsetof(struct eq_cm_entry, data), offsetof(struct eq_cm_entry, data[77]),
		sizeof(struct eq_cm_entry),
	};
	struct fid_eq *eq = eq_bench(test)->eq;
	struct eq_cm_entry *entry[ARRAY_SIZE(lens)];
	int i;

	atomic_set(&eq_released, 0);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		entry[i] = eq_cm_entry(test, &eq->fid, 0x40 + i);
		KUNIT_EXPECT_EQ(test, kofi_eq_write_event(eq, NULL, 0x20000 + i, entry[i], lens[i],
							  eq_release), 0);
	}
	for (i = 0; i < ARRAY_SIZE(lens); i++)
		eq_expect_cm(test, eq, 0x20000 + i, lens[i], entry[i]);
	KUNIT_EXPECT_EQ(test, eq_get(eq), -EAGAIN);
	KUNIT_EXPECT_EQ(test, atomic_read(&eq_released), 0);
}

/* An unread event is released with the object that it is about, or with the queue. */
static void eq_releases(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct fid_domain *domain = kofi_fake_domain(test, bench->fake, bench->fabric);
	struct fid *about[] = { &domain->fid, NULL, &domain->fid, NULL };
	struct eq_cm_entry *entry;
	int i;

	atomic_set(&eq_released, 0);
	for (i = 0; i < ARRAY_SIZE(about); i++) {
		entry = eq_cm_entry(test, about[i], i);
		KUNIT_EXPECT_EQ(test, kofi_eq_write_event(bench->eq, NULL, FI_NOTIFY, entry,
							  sizeof(*entry), eq_release), 0);
	}
	kofi_fake_close(test, &domain->fid);
	KUNIT_EXPECT_EQ(test, atomic_read(&eq_released), 2);
	/* An event that is refused for lack of room still belongs to the writer. */
	for (i = 2; i < EQ_SIZE; i++)
		KUNIT_EXPECT_EQ(test, eq_put(bench->eq, NULL, i), 0);
	entry = eq_cm_entry(test, NULL, 0);
	KUNIT_EXPECT_EQ(test, kofi_eq_write_event(bench->eq, NULL, FI_NOTIFY, entry, sizeof(*entry),
						  eq_release), -EAGAIN);
	kfree(entry->owned);
	kofi_fake_close(test, &bench->eq->fid);
	KUNIT_EXPECT_EQ(test, atomic_read(&eq_released), 4);
}

/* An event with reserved room is accepted by a full queue. */
static void eq_reserved(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct fid_domain *domain = kofi_fake_domain(test, bench->fake, bench->fabric);
	struct eq_cm_entry *connected = eq_cm_entry(test, &domain->fid, 1);
	struct eq_cm_entry *shutdown = eq_cm_entry(test, &domain->fid, 2);
	struct kofi_eq_event *room[3];
	int i;

	atomic_set(&eq_released, 0);
	for (i = 0; i < ARRAY_SIZE(room); i++) {
		room[i] = kofi_eq_reserve(sizeof(struct eq_cm_entry));
		KUNIT_ASSERT_NOT_NULL(test, room[i]);
	}
	eq_fill(test, bench->eq, EQ_SIZE);
	KUNIT_EXPECT_EQ(test, kofi_eq_write_event(bench->eq, room[0], 0x20001, connected,
						  sizeof(*connected), eq_release), 0);
	KUNIT_EXPECT_EQ(test, kofi_eq_write_event(bench->eq, room[1], 0x20002, shutdown,
						  sizeof(*shutdown) + 1, eq_release),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, kofi_eq_write_event(bench->eq, room[1], 0x20002, shutdown,
						  offsetof(struct eq_cm_entry, data),
						  eq_release), 0);
	eq_expect_filled(test, bench->eq, EQ_SIZE);
	eq_expect_cm(test, bench->eq, 0x20001, sizeof(*connected), connected);
	/* The reserved events used no other room, and are dropped when their object is closed. */
	eq_fill(test, bench->eq, EQ_SIZE);
	kofi_fake_close(test, &domain->fid);
	KUNIT_EXPECT_EQ(test, atomic_read(&eq_released), 1);
	eq_expect_filled(test, bench->eq, EQ_SIZE);
	KUNIT_EXPECT_EQ(test, eq_get(bench->eq), -EAGAIN);
	kofi_eq_unreserve(room[2]);
}

static int eq_put_err_data(struct fid_eq *eq, struct fid *fid, u8 fill, size_t len)
{
	struct fi_eq_err_entry entry = { .fid = fid, .err = EIO, .err_data_size = len };
	int ret;

	entry.err_data = kmalloc(len, GFP_KERNEL);
	if (!entry.err_data)
		return -ENOMEM;
	memset(entry.err_data, fill, len);
	ret = kofi_eq_write_err(eq, NULL, &entry);
	if (ret)
		kfree(entry.err_data);
	return ret;
}

/* Error data goes to the reader's buffer as far as it fits, or stays until the next read. */
static void eq_err_data(struct kunit *test)
{
	struct eq_bench *bench = eq_bench(test);
	struct fid_domain *domain = kofi_fake_domain(test, bench->fake, bench->fabric);
	struct fi_eq_err_entry err = { };
	struct fid_eq *eq = bench->eq;
	u8 buf[24] = { };
	int i;

	for (i = 1; i <= 4; i++)
		KUNIT_ASSERT_EQ(test, eq_put_err_data(eq, NULL, i, 16), 0);
	for (i = 0; i < 2; i++) {
		err.err_data_size = 0;
		KUNIT_EXPECT_EQ(test, fi_eq_readerr(eq, &err, i ? 0 : FI_PEEK), sizeof(err));
		KUNIT_ASSERT_EQ(test, err.err_data_size, 16);
		KUNIT_EXPECT_EQ(test, ((u8 *)err.err_data)[15], 1);
	}
	for (i = 0; i < 2; i++) {
		err.err_data = buf;
		err.err_data_size = i ? sizeof(buf) : 8;
		KUNIT_EXPECT_EQ(test, fi_eq_readerr(eq, &err, 0), sizeof(err));
		KUNIT_EXPECT_PTR_EQ(test, err.err_data, (void *)buf);
		KUNIT_EXPECT_EQ(test, err.err_data_size, i ? 16 : 8);
		KUNIT_EXPECT_EQ(test, buf[err.err_data_size - 1], 2 + i);
		KUNIT_EXPECT_EQ(test, buf[err.err_data_size], 0);
	}
	/* Unread error data is freed with the queue, and with the object. */
	KUNIT_ASSERT_EQ(test, eq_put_err_data(eq, &domain->fid, 5, 16), 0);
	kofi_fake_close(test, &domain->fid);
	err.err_data_size = 0;
	KUNIT_EXPECT_EQ(test, fi_eq_readerr(eq, &err, FI_PEEK), sizeof(err));
	KUNIT_EXPECT_EQ(test, ((u8 *)err.err_data)[15], 4);
}

/* Sleepers */

static void eq_sread(struct kofi_thread *thread)
{
	struct fi_eq_entry entry;
	u32 event;

	thread->ret = fi_eq_sread(thread->arg, &event, &entry, sizeof(entry),
				  -1, 0);
	if (thread->ret == sizeof(entry))
		thread->ret = (long)entry.context;
}

static void eq_wait_timeout(struct kunit *test)
{
	struct fid_eq *eq = eq_bench(test)->eq;
	unsigned long start = jiffies;
	struct fi_eq_entry entry;
	u32 event;

	KUNIT_EXPECT_EQ(test, fi_eq_sread(eq, &event, &entry, sizeof(entry),
					  EQ_SHORT_MS, 0), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, kofi_waited(start, EQ_SHORT_MS));
	KUNIT_EXPECT_EQ(test, fi_eq_sread(eq, &event, &entry, sizeof(entry), 0,
					  0), -EAGAIN);
	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_eq_sread(eq, &event, &entry, sizeof(entry), 0,
					  FI_PEEK), sizeof(entry));
	KUNIT_EXPECT_EQ(test, eq_get(eq), 1);
}

static void eq_wait_wakes(struct kunit *test)
{
	struct fid_eq *eq = eq_bench(test)->eq;
	int i, sum = 0, errors = 0, count = 3;
	struct kofi_thread *thread;

	thread = kunit_kcalloc(test, count, sizeof(*thread), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, thread);
	for (i = 0; i < count; i++)
		kofi_thread_start(test, &thread[i], eq_sread, eq);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread[0], EQ_SHORT_MS));
	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 3), 0);
	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 5), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(completion_done(&thread[0].done) +
					  completion_done(&thread[1].done) +
					  completion_done(&thread[2].done) ==
					  2));
	/* The third one still sleeps, or sleeps again. */
	KUNIT_EXPECT_EQ(test, eq_put_err(eq, NULL, 9), 0);
	for (i = 0; i < count; i++) {
		kofi_thread_join(test, &thread[i]);
		if (thread[i].ret == -FI_EAVAIL)
			errors++;
		else
			sum += thread[i].ret;
	}
	KUNIT_EXPECT_EQ(test, sum, 8);
	KUNIT_EXPECT_EQ(test, errors, 1);
}

static void eq_wait_interrupted(struct kunit *test)
{
	struct fid_eq *eq = eq_bench(test)->eq;
	struct kofi_thread thread;

	kofi_thread_start(test, &thread, eq_sread, eq);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, EQ_SHORT_MS));
	kofi_thread_kill(&thread);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, -EINTR);
}

/* Handlers */

struct eq_hand {
	struct completion	entered;
	struct completion	leave;
	atomic_t		calls;
	atomic_t		inside;
};

static void eq_handler(struct fid_eq *eq, void *context)
{
	struct eq_hand *hand = context;

	might_sleep();
	atomic_inc(&hand->inside);
	atomic_inc(&hand->calls);
	complete(&hand->entered);
	wait_for_completion(&hand->leave);
	atomic_dec(&hand->inside);
}

static struct eq_bench *eq_hand_bench(struct kunit *test, struct eq_hand **hand)
{
	*hand = kunit_kzalloc(test, sizeof(**hand), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, *hand);
	init_completion(&(*hand)->entered);
	init_completion(&(*hand)->leave);
	return eq_bench_attr(test, (struct fi_eq_attr) {
		.handler = eq_handler, .handler_context = *hand,
	});
}

static bool eq_hand_called(struct eq_hand *hand, unsigned int msecs)
{
	return wait_for_completion_timeout(&hand->entered,
					   msecs_to_jiffies(msecs));
}

static void eq_handler_once(struct kunit *test)
{
	struct eq_hand *hand;
	struct fid_eq *eq = eq_hand_bench(test, &hand)->eq;

	complete_all(&hand->leave);
	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 1), 0);
	KUNIT_EXPECT_TRUE(test, eq_hand_called(hand, KOFI_NEVER_MS));
	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 2), 0);
	KUNIT_EXPECT_EQ(test, eq_get(eq), 1);
	KUNIT_EXPECT_EQ(test, eq_get(eq), 2);
	KUNIT_EXPECT_EQ(test, eq_put_err(eq, NULL, 3), 0);
	KUNIT_EXPECT_EQ(test, eq_get(eq), -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, eq_get_err(eq), 3);
	KUNIT_EXPECT_FALSE(test, eq_hand_called(hand, EQ_SHORT_MS));
	/* Only a read of an empty queue arms the handler. */
	KUNIT_EXPECT_EQ(test, eq_get(eq), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, eq_hand_called(hand, EQ_SHORT_MS));
	KUNIT_EXPECT_EQ(test, eq_put_err(eq, NULL, 4), 0);
	KUNIT_EXPECT_TRUE(test, eq_hand_called(hand, KOFI_NEVER_MS));
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 2);
}

static void eq_close_thread(struct kofi_thread *thread)
{
	thread->ret = fi_close(thread->arg);
}

static void eq_close_waits(struct kunit *test)
{
	struct eq_hand *hand;
	struct fid_eq *eq = eq_hand_bench(test, &hand)->eq;
	struct kofi_thread thread;

	KUNIT_EXPECT_EQ(test, eq_put(eq, NULL, 1), 0);
	KUNIT_EXPECT_TRUE(test, eq_hand_called(hand, KOFI_NEVER_MS));
	kofi_fake_closed(test, &eq->fid);
	kofi_thread_start(test, &thread, eq_close_thread, &eq->fid);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, EQ_SHORT_MS));
	complete_all(&hand->leave);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->inside), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->calls), 1);
}

/* Two threads and a tasklet write, two threads read: each event is read once. */
#define EQ_CROWD_EACH	600
#define EQ_CROWD_ALL	(3 * EQ_CROWD_EACH)

struct eq_crowd {
	struct fid_eq		*eq;
	struct tasklet_struct	soft;
	struct kofi_thread	writer[2];
	struct kofi_thread	reader[2];
	atomic_t		writers;
	atomic_t		count;
	atomic_t		bad;
	unsigned int		soft_id;
	DECLARE_BITMAP(seen, EQ_CROWD_ALL);
};

static bool eq_crowd_put(struct eq_crowd *crowd, unsigned long id)
{
	return !(id % 4 ? eq_put(crowd->eq, NULL, id) :
			  eq_put_err(crowd->eq, NULL, id));
}

static void eq_crowd_write(struct kofi_thread *thread)
{
	struct eq_crowd *crowd = thread->arg;
	unsigned long id = atomic_inc_return(&crowd->writers) * EQ_CROWD_EACH;
	unsigned long end = id + EQ_CROWD_EACH;

	while (id < end && !signal_pending(current)) {
		if (eq_crowd_put(crowd, id))
			id++;
		else
			usleep_range(10, 20);
	}
}

static bool eq_crowd_goes_on(struct eq_crowd *crowd)
{
	return atomic_read(&crowd->count) + atomic_read(&crowd->bad) <
	       EQ_CROWD_ALL;
}

static void eq_crowd_read(struct kofi_thread *thread)
{
	struct eq_crowd *crowd = thread->arg;
	long id;

	while (eq_crowd_goes_on(crowd) && !signal_pending(current)) {
		id = eq_get(crowd->eq);
		if (id == -EAGAIN) {
			fi_eq_sread(crowd->eq, NULL, NULL, 0, 20, 0);
			continue;
		}
		if (id == -FI_EAVAIL)
			id = eq_get_err(crowd->eq);
		if (id == -EAGAIN)
			continue;
		if (id < 0 || id >= EQ_CROWD_ALL ||
		    test_and_set_bit(id, crowd->seen))
			atomic_inc(&crowd->bad);
		else
			atomic_inc(&crowd->count);
	}
}

static void eq_crowd_soft(struct tasklet_struct *soft)
{
	struct eq_crowd *crowd = container_of(soft, struct eq_crowd, soft);

	while (crowd->soft_id < EQ_CROWD_EACH &&
	       eq_crowd_put(crowd, crowd->soft_id))
		crowd->soft_id++;
}

static void eq_crowd(struct kunit *test)
{
	unsigned long stop = jiffies + msecs_to_jiffies(KOFI_NEVER_MS);
	struct eq_crowd *crowd = kunit_kzalloc(test, sizeof(*crowd),
					       GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, crowd);
	crowd->eq = eq_bench(test)->eq;
	tasklet_setup(&crowd->soft, eq_crowd_soft);
	for (i = 0; i < 2; i++) {
		kofi_thread_start(test, &crowd->reader[i], eq_crowd_read,
				  crowd);
		kofi_thread_start(test, &crowd->writer[i], eq_crowd_write,
				  crowd);
	}
	while (eq_crowd_goes_on(crowd) && time_before(jiffies, stop)) {
		tasklet_schedule(&crowd->soft);
		usleep_range(10, 20);
	}
	for (i = 0; i < 2; i++) {
		kofi_thread_join(test, &crowd->writer[i]);
		kofi_thread_join(test, &crowd->reader[i]);
	}
	tasklet_kill(&crowd->soft);
	KUNIT_EXPECT_EQ(test, atomic_read(&crowd->count), EQ_CROWD_ALL);
	KUNIT_EXPECT_EQ(test, atomic_read(&crowd->bad), 0);
	KUNIT_EXPECT_EQ(test, eq_get(crowd->eq), -EAGAIN);
}

static struct kunit_case eq_cases[] = {
	KUNIT_CASE(eq_attributes),
	KUNIT_CASE(eq_user_writes),
	KUNIT_CASE(eq_user_must_not_write),
	KUNIT_CASE(eq_order),
	KUNIT_CASE(eq_peek),
	KUNIT_CASE(eq_arguments),
	KUNIT_CASE(eq_full),
	KUNIT_CASE(eq_lengths),
	KUNIT_CASE(eq_releases),
	KUNIT_CASE(eq_reserved),
	KUNIT_CASE(eq_err_data),
	KUNIT_CASE(eq_wait_timeout),
	KUNIT_CASE(eq_wait_wakes),
	KUNIT_CASE(eq_wait_interrupted),
	KUNIT_CASE(eq_handler_once),
	KUNIT_CASE(eq_close_waits),
	KUNIT_CASE(eq_crowd),
	{}
};

static struct kunit_suite eq_suite = {
	.name		= "kofi_eq",
	.test_cases	= eq_cases,
};

kunit_test_suite(eq_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's event queues");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
