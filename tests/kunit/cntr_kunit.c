// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Counters: values, and tasks that wait for them. */
#include "crew.h"
#include <kofi/provider.h>

#define CNTR_SHORT_MS	30
#define CNTR_HUNT_MS	300

static struct kofi_cntr *cntr_make_attr(struct kunit *test,
					struct fi_cntr_attr attr)
{
	struct kofi_cntr *cntr = kunit_kzalloc(test, sizeof(*cntr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cntr);
	kofi_cntr_init(cntr, &attr);
	return cntr;
}

static struct kofi_cntr *cntr_make(struct kunit *test)
{
	return cntr_make_attr(test, (struct fi_cntr_attr) {
		.wait_obj = FI_WAIT_UNSPEC,
	});
}

static void cntr_values(struct kunit *test)
{
	struct fid_cntr *cntr = &cntr_make(test)->cntr_fid;

	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(cntr), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_add(cntr, 3), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_adderr(cntr, 5), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_add(cntr, 4), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr), 7);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(cntr), 5);
	KUNIT_EXPECT_EQ(test, fi_cntr_set(cntr, U64_MAX), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_seterr(cntr, U64_MAX - 1), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr), U64_MAX);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(cntr), U64_MAX - 1);
	KUNIT_EXPECT_EQ(test, fi_cntr_add(cntr, 2), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr), 1);
}

static void cntr_completions(struct kunit *test)
{
	struct kofi_cntr *cntr = cntr_make(test);

	kofi_cntr_done(cntr, 100);
	kofi_cntr_done(cntr, 0);
	kofi_cntr_failed(cntr);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(&cntr->cntr_fid), 2);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(&cntr->cntr_fid), 1);
}

static void cntr_bytes(struct kunit *test)
{
	struct kofi_cntr *cntr;

	cntr = cntr_make_attr(test, (struct fi_cntr_attr) {
		.events = FI_CNTR_EVENTS_BYTES,
	});
	kofi_cntr_done(cntr, 100);
	kofi_cntr_done(cntr, 0);
	kofi_cntr_done(cntr, 1ULL << 33);
	kofi_cntr_failed(cntr);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(&cntr->cntr_fid),
			(1ULL << 33) + 100);
	/* Each failure counts as one, because its bytes are unknown. */
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(&cntr->cntr_fid), 1);
}

static void cntr_open_plain(struct kunit *test)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_BYTES };
	struct fid_cntr *cntr;

	KUNIT_ASSERT_EQ(test, kofi_cntr_open(NULL, &attr, &cntr, NULL), 0);
	kofi_cntr_done(container_of(cntr, struct kofi_cntr, cntr_fid), 9);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr), 9);
	KUNIT_EXPECT_EQ(test, cntr->fid.ops->close(&cntr->fid), 0);
}

struct cntr_waiter {
	struct kofi_thread	thread;
	struct kofi_cntr	*cntr;
	u64			threshold;
};

static void cntr_wait(struct kofi_thread *thread)
{
	struct cntr_waiter *waiter = thread->arg;

	thread->ret = fi_cntr_wait(&waiter->cntr->cntr_fid, waiter->threshold,
				   -1);
}

static void cntr_wait_start(struct kunit *test, struct cntr_waiter *waiter,
			    struct kofi_cntr *cntr, u64 threshold)
{
	waiter->cntr = cntr;
	waiter->threshold = threshold;
	kofi_thread_start(test, &waiter->thread, cntr_wait, waiter);
}

static int cntr_wait_end(struct kunit *test, struct cntr_waiter *waiter)
{
	kofi_thread_join(test, &waiter->thread);
	return waiter->thread.ret;
}

static void cntr_asleep(struct kunit *test, struct kofi_cntr *cntr,
			unsigned int count)
{
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&cntr->wait) == count));
}

static void cntr_wait_no_object(struct kunit *test)
{
	struct kofi_cntr *cntr;

	cntr = cntr_make_attr(test, (struct fi_cntr_attr) { });
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(&cntr->cntr_fid, 0, 0), -EOPNOTSUPP);
}

static void cntr_wait_over(struct kunit *test)
{
	struct fid_cntr *cntr = &cntr_make(test)->cntr_fid;
	unsigned long start;

	KUNIT_EXPECT_EQ(test, fi_cntr_wait(cntr, 0, -1), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(cntr, 1, 0), -ETIMEDOUT);
	start = jiffies;
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(cntr, 1, CNTR_SHORT_MS), -ETIMEDOUT);
	KUNIT_EXPECT_TRUE(test, kofi_waited(start, CNTR_SHORT_MS));
	fi_cntr_add(cntr, 2);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(cntr, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(cntr, 2, -1), 0);
}

/*
 * A waiter returns for an error that the ULP hasn't read, even if the error came before the
 * call. A threshold that is reached takes precedence.
 */
static void cntr_wait_errors(struct kunit *test)
{
	struct kofi_cntr *cntr = cntr_make(test);
	struct cntr_waiter waiter[2];

	kofi_cntr_failed(cntr);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(&cntr->cntr_fid, 1, 0), -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(&cntr->cntr_fid), 1);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(&cntr->cntr_fid, 1, 0), -ETIMEDOUT);
	cntr_wait_start(test, &waiter[0], cntr, 1);
	cntr_asleep(test, cntr, 1);
	kofi_cntr_failed(cntr);
	KUNIT_EXPECT_EQ(test, cntr_wait_end(test, &waiter[0]), -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(&cntr->cntr_fid), 2);

	cntr_wait_start(test, &waiter[0], cntr, 1);
	cntr_wait_start(test, &waiter[1], cntr, 2);
	cntr_asleep(test, cntr, 2);
	atomic64_set(&cntr->value, 1);
	kofi_cntr_failed(cntr);
	KUNIT_EXPECT_EQ(test, cntr_wait_end(test, &waiter[0]), 0);
	KUNIT_EXPECT_EQ(test, cntr_wait_end(test, &waiter[1]), -FI_EAVAIL);
}

/* fi_cntr_seterr() by the ULP doesn't make a waiter return. */
static void cntr_wait_error_set(struct kunit *test)
{
	struct fid_cntr *cntr = &cntr_make(test)->cntr_fid;

	KUNIT_EXPECT_EQ(test, fi_cntr_seterr(cntr, 7), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(cntr, 1, 0), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, fi_cntr_adderr(cntr, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(cntr, 1, 0), -FI_EAVAIL);
}

/* One fi_cntr_wait() reports that a refused post may succeed: a sleeping one, or the next. */
static void cntr_wait_room(struct kunit *test)
{
	struct kofi_cntr *cntr = cntr_make(test);
	struct cntr_waiter waiter;

	cntr_wait_start(test, &waiter, cntr, 1);
	cntr_asleep(test, cntr, 1);
	kofi_cntr_tell_room(cntr);
	KUNIT_EXPECT_EQ(test, cntr_wait_end(test, &waiter), -EAGAIN);
	kofi_cntr_tell_room(cntr);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(&cntr->cntr_fid, 1, -1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(&cntr->cntr_fid, 1, 0), -ETIMEDOUT);
	kofi_cntr_tell_room(cntr);
	kofi_cntr_done(cntr, 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(&cntr->cntr_fid, 1, -1), 0);
}

static void cntr_wait_interrupted(struct kunit *test)
{
	struct kofi_cntr *cntr = cntr_make(test);
	struct cntr_waiter waiter;

	cntr_wait_start(test, &waiter, cntr, 1);
	cntr_asleep(test, cntr, 1);
	kofi_thread_kill(&waiter.thread);
	KUNIT_EXPECT_EQ(test, cntr_wait_end(test, &waiter), -EINTR);
}

/* Each waiter returns exactly at its own threshold. */
static void cntr_wait_many(struct kunit *test)
{
	struct kofi_cntr *cntr = cntr_make(test);
	struct cntr_waiter *waiter;
	int i, count = 8;

	waiter = kunit_kcalloc(test, count, sizeof(*waiter), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, waiter);
	for (i = 0; i < count; i++)
		cntr_wait_start(test, &waiter[i], cntr, i / 2 + 1);
	cntr_asleep(test, cntr, count);
	for (i = 0; i < count; i += 2) {
		kofi_cntr_done(cntr, 1);
		cntr_asleep(test, cntr, count - i - 2);
		KUNIT_EXPECT_EQ(test, cntr_wait_end(test, &waiter[i]), 0);
		KUNIT_EXPECT_EQ(test, cntr_wait_end(test, &waiter[i + 1]), 0);
	}
}

/* A thread and a softirq add concurrently: no addition and no wake-up is lost. */
struct cntr_game {
	struct kofi_cntr	*mine;
	struct kofi_cntr	*yours;
	struct tasklet_struct	soft;
	atomic_t		over;
};

/* A waiter that isn't woken finds the value as well, but only after its time-out. */
static bool cntr_told(struct kofi_cntr *cntr, u64 threshold)
{
	unsigned long start = jiffies;

	return !fi_cntr_wait(&cntr->cntr_fid, threshold, KOFI_NEVER_MS) &&
	       !kofi_waited(start, KOFI_NEVER_MS);
}

static void cntr_play(struct kofi_thread *thread)
{
	struct cntr_game *game = thread->arg;
	u64 i;

	for (i = 1; cntr_told(game->mine, i); i++) {
		if (atomic_read(&game->over))
			break;
		tasklet_schedule(&game->soft);
	}
	thread->ret = i;
}

static void cntr_soft(struct tasklet_struct *soft)
{
	struct cntr_game *game = container_of(soft, struct cntr_game, soft);

	kofi_cntr_done(game->yours, 1);
}

static void cntr_lost_wakeup(struct kunit *test)
{
	struct cntr_game game = {
		.mine = cntr_make(test), .yours = cntr_make(test),
	};
	struct kofi_thread thread;
	unsigned long start;
	bool told = true;
	u64 i;

	tasklet_setup(&game.soft, cntr_soft);
	kofi_thread_start(test, &thread, cntr_play, &game);
	start = jiffies;
	for (i = 1; told && kofi_hunting(start, CNTR_HUNT_MS, i - 1); i++) {
		kofi_cntr_done(game.mine, 1);
		told = cntr_told(game.yours, i);
	}
	atomic_set(&game.over, 1);
	kofi_cntr_done(game.mine, 1);
	kofi_thread_join(test, &thread);
	tasklet_kill(&game.soft);
	KUNIT_EXPECT_TRUE(test, told);
	KUNIT_EXPECT_GE(test, i - 1, KOFI_ROUNDS_MIN);
	KUNIT_EXPECT_EQ(test, thread.ret, i);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(&game.yours->cntr_fid), i - 1);
	kunit_info(test, "%llu rounds\n", i);
}

/* Setting a counter back while a task waits is no error. */
static void cntr_toggle(struct kofi_thread *thread)
{
	struct kofi_cntr *cntr = thread->arg;

	while (!signal_pending(current)) {
		fi_cntr_set(&cntr->cntr_fid, 1);
		fi_cntr_set(&cntr->cntr_fid, 0);
		WRITE_ONCE(thread->ret, thread->ret + 1);
	}
}

static void cntr_set_back(struct kunit *test)
{
	struct kofi_cntr *cntr = cntr_make(test);
	struct kofi_thread thread;
	int ret = 0, rounds = 0;
	unsigned long start;

	kofi_thread_start(test, &thread, cntr_toggle, cntr);
	start = jiffies;
	while ((!ret || ret == -ETIMEDOUT) &&
	       kofi_hunting(start, CNTR_HUNT_MS,
			    min_t(ssize_t, rounds, READ_ONCE(thread.ret)))) {
		ret = fi_cntr_wait(&cntr->cntr_fid, 1, 0);
		rounds++;
	}
	kofi_thread_kill(&thread);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_TRUE(test, !ret || ret == -ETIMEDOUT);
	KUNIT_EXPECT_GE(test, rounds, KOFI_ROUNDS_MIN);
	KUNIT_EXPECT_GE(test, thread.ret, KOFI_ROUNDS_MIN);
	kunit_info(test, "%d rounds, set back %zd times\n", rounds, thread.ret);
}

static struct kunit_case cntr_cases[] = {
	KUNIT_CASE(cntr_values),
	KUNIT_CASE(cntr_completions),
	KUNIT_CASE(cntr_bytes),
	KUNIT_CASE(cntr_open_plain),
	KUNIT_CASE(cntr_wait_no_object),
	KUNIT_CASE(cntr_wait_over),
	KUNIT_CASE(cntr_wait_errors),
	KUNIT_CASE(cntr_wait_error_set),
	KUNIT_CASE(cntr_wait_room),
	KUNIT_CASE(cntr_wait_interrupted),
	KUNIT_CASE(cntr_wait_many),
	KUNIT_CASE(cntr_lost_wakeup),
	KUNIT_CASE(cntr_set_back),
	{}
};

static struct kunit_suite cntr_suite = {
	.name		= "kofi_cntr",
	.test_cases	= cntr_cases,
};

kunit_test_suite(cntr_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's counters");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
