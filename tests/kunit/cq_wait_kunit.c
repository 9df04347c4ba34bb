// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues with sleeping readers, and with several readers and writers
 * in process and softirq context at a time.
 */
#include <linux/bitmap.h>
#include "../../kofi/queue/queue.h"
#include "cq_test.h"
#include "crew.h"

#define WAIT_SHORT_MS	30
/* Duration of tests for races that occur only in some rounds. */
#define WAIT_HUNT_MS	400

/* A thread that reads once. */
struct wait_reader {
	struct kofi_thread	thread;
	struct kofi_cq		*cq;
	size_t			cond;
	int			timeout;
	struct fi_cq_tagged_entry entry[CQ_ALL];
};

static void wait_read(struct kofi_thread *thread)
{
	struct wait_reader *reader = thread->arg;

	thread->ret = fi_cq_sread(&reader->cq->cq_fid, reader->entry, CQ_ALL,
				  (void *)reader->cond, reader->timeout);
}

static struct wait_reader *wait_start(struct kunit *test, struct kofi_cq *cq,
				      size_t cond, int timeout)
{
	struct wait_reader *reader;

	reader = kunit_kzalloc(test, sizeof(*reader), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, reader);
	reader->cq = cq;
	reader->cond = cond;
	reader->timeout = timeout;
	kofi_thread_start(test, &reader->thread, wait_read, reader);
	return reader;
}

static ssize_t wait_end(struct kunit *test, struct wait_reader *reader)
{
	kofi_thread_join(test, &reader->thread);
	return reader->thread.ret;
}

static void wait_asleep(struct kunit *test, struct kofi_cq *cq,
			unsigned int count)
{
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&cq->notifier.wait) ==
					  count));
}

static void wait_timeout(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct fi_cq_tagged_entry entry;
	unsigned long start = jiffies;

	KUNIT_EXPECT_EQ(test, fi_cq_sread(&cq->cq_fid, &entry, 1, NULL,
					  WAIT_SHORT_MS), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, kofi_waited(start, WAIT_SHORT_MS));
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, 0),
			-EAGAIN);
	cq_add(test, cq, 1);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, 0), 1);
}

static void wait_completion(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct wait_reader *reader = wait_start(test, cq, 0, -1);

	wait_asleep(test, cq, 1);
	cq_add(test, cq, 1);
	kofi_cq_notify(cq);
	KUNIT_EXPECT_EQ(test, wait_end(test, reader), 1);
	KUNIT_EXPECT_TRUE(test, cq_entry_ok(&reader->entry[0]));
}

static void wait_error(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	/* The threshold doesn't count for errors. */
	struct wait_reader *reader = wait_start(test, cq, 3, -1);

	wait_asleep(test, cq, 1);
	cq_add_err(test, cq, 1);
	kofi_cq_notify(cq);
	KUNIT_EXPECT_EQ(test, wait_end(test, reader), -FI_EAVAIL);
}

static void wait_threshold(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct wait_reader *reader = wait_start(test, cq, 3, -1);

	wait_asleep(test, cq, 1);
	cq_add(test, cq, 1);
	kofi_cq_notify(cq);
	cq_add(test, cq, 2);
	kofi_cq_notify(cq);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&reader->thread,
						 WAIT_SHORT_MS));
	cq_add(test, cq, 3);
	kofi_cq_notify(cq);
	KUNIT_EXPECT_EQ(test, wait_end(test, reader), 3);
}

/* A threshold of more than the queue can hold means a full queue. */
static void wait_threshold_limit(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct wait_reader *reader = wait_start(test, cq, SIZE_MAX, -1);
	int i;

	for (i = 0; i < CQ_SIZE; i++)
		cq_add(test, cq, i);
	kofi_cq_notify(cq);
	KUNIT_EXPECT_EQ(test, wait_end(test, reader), CQ_SIZE);
}

/* After a time-out below the threshold, the present completions are returned. */
static void wait_threshold_timeout(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct fi_cq_tagged_entry entry[4];

	cq_add(test, cq, 1);
	cq_add(test, cq, 2);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&cq->cq_fid, entry, 4, (void *)3,
					  WAIT_SHORT_MS), 2);
}

/* Without FI_CQ_COND_THRESHOLD the argument is ignored. */
static void wait_no_threshold(struct kunit *test)
{
	struct fi_cq_tagged_entry entry[4];
	struct kofi_cq *cq;

	cq = cq_make_attr(test, (struct fi_cq_attr) {
		.format		= FI_CQ_FORMAT_TAGGED,
		.wait_obj	= FI_WAIT_UNSPEC,
	});
	cq_add(test, cq, 1);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&cq->cq_fid, entry, 4, (void *)3, -1),
			1);
}

static void wait_interrupted(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct wait_reader *reader = wait_start(test, cq, 0, -1);

	wait_asleep(test, cq, 1);
	kofi_thread_kill(&reader->thread);
	KUNIT_EXPECT_EQ(test, wait_end(test, reader), -EINTR);
	wait_asleep(test, cq, 0);
}

static void wait_signal(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct wait_reader *reader = wait_start(test, cq, 3, -1);

	wait_asleep(test, cq, 1);
	KUNIT_EXPECT_EQ(test, fi_cq_signal(&cq->cq_fid), 0);
	KUNIT_EXPECT_EQ(test, wait_end(test, reader), -EAGAIN);
}

/* A signal that precedes the wait isn't lost, and ends one wait. */
static void wait_signal_early(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct fi_cq_tagged_entry entry;
	unsigned long start;

	KUNIT_EXPECT_EQ(test, fi_cq_signal(&cq->cq_fid), 0);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, -1),
			-EAGAIN);
	start = jiffies;
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&cq->cq_fid, &entry, 1, NULL,
					  WAIT_SHORT_MS), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, kofi_waited(start, WAIT_SHORT_MS));
}

/* Room after a refused post makes one sleeper return, or the next reader that would sleep. */
static void wait_room(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct fi_cq_tagged_entry entry;
	struct wait_reader *reader;
	int i;

	for (i = 0; i < CQ_SIZE; i++)
		KUNIT_EXPECT_EQ(test, kofi_cq_reserve(cq), 0);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(cq), -EAGAIN);
	reader = wait_start(test, cq, 0, -1);
	wait_asleep(test, cq, 1);
	kofi_cq_unreserve(cq);
	KUNIT_EXPECT_EQ(test, wait_end(test, reader), -EAGAIN);

	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(cq), 0);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(cq), -EAGAIN);
	kofi_cq_unreserve_some(cq, 2);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, -1), -EAGAIN);
	reader = wait_start(test, cq, 0, WAIT_SHORT_MS);
	KUNIT_EXPECT_EQ(test, wait_end(test, reader), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, cq->room);
}

/* The notification of room isn't consumed by a reader that finds completions. */
static void wait_room_full(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct fi_cq_tagged_entry entry;
	unsigned long start;
	int i, n = 0;

	for (i = 0; i < CQ_SIZE; i++)
		cq_add(test, cq, i);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(cq), -EAGAIN);
	/* This read frees an entry, so that the refused post may succeed. */
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, -1), 1);
	for (i = 1; i < CQ_SIZE + 1; i++) {
		start = jiffies;
		if (fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, 10 * WAIT_SHORT_MS) == -EAGAIN &&
		    !kofi_waited(start, 10 * WAIT_SHORT_MS))
			n++;
	}
	KUNIT_EXPECT_EQ(test, n, 1);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&cq->cq_fid, &entry, 1), -EAGAIN);
}

/* Each fi_cq_signal() ends one wait, so that a ULP can stop all its threads. */
static void wait_signal_each(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct wait_reader *reader[3];
	int i;

	for (i = 0; i < ARRAY_SIZE(reader); i++)
		reader[i] = wait_start(test, cq, 0, -1);
	wait_asleep(test, cq, ARRAY_SIZE(reader));
	KUNIT_EXPECT_EQ(test, fi_cq_signal(&cq->cq_fid), 0);
	wait_asleep(test, cq, ARRAY_SIZE(reader) - 1);

	/* Also if the second signal comes before the first waiter has woken up. */
	preempt_disable();
	for (i = 1; i < ARRAY_SIZE(reader); i++)
		KUNIT_EXPECT_EQ(test, fi_cq_signal(&cq->cq_fid), 0);
	preempt_enable();
	for (i = 0; i < ARRAY_SIZE(reader); i++)
		KUNIT_EXPECT_EQ(test, wait_end(test, reader[i]), -EAGAIN);
}

static void wait_two_for_one(struct kunit *test)
{
	struct kofi_cq *cq = cq_make(test);
	struct wait_reader *a = wait_start(test, cq, 0, -1);
	struct wait_reader *b = wait_start(test, cq, 0, -1);

	wait_asleep(test, cq, 2);
	cq_add(test, cq, 1);
	kofi_cq_notify(cq);
	wait_asleep(test, cq, 1);
	KUNIT_EXPECT_TRUE(test, kofi_soon(completion_done(&a->thread.done) ||
					  completion_done(&b->thread.done)));
	cq_add(test, cq, 2);
	kofi_cq_notify(cq);
	KUNIT_EXPECT_EQ(test, wait_end(test, a), 1);
	KUNIT_EXPECT_EQ(test, wait_end(test, b), 1);
	KUNIT_EXPECT_PTR_NE(test, a->entry[0].op_context,
			    b->entry[0].op_context);
}

/* Two threads complete operations for each other in turn: a lost wake-up stops both. */
struct wait_game {
	struct kofi_cq		*mine;
	struct kofi_cq		*yours;
	atomic_t		over;
};

static bool wait_throw(struct kofi_cq *to, unsigned long id)
{
	if (kofi_cq_reserve(to))
		return false;
	cq_write(to, id);
	kofi_cq_notify(to);
	return true;
}

/* A reader that isn't woken finds the completion as well, but only after its time-out. */
static bool wait_catch(struct kofi_cq *from, unsigned long id)
{
	struct fi_cq_tagged_entry entry;
	unsigned long start = jiffies;

	return fi_cq_sread(&from->cq_fid, &entry, 1, NULL, KOFI_NEVER_MS) == 1 &&
	       entry.op_context == (void *)id &&
	       !kofi_waited(start, KOFI_NEVER_MS);
}

static void wait_play(struct kofi_thread *thread)
{
	struct wait_game *game = thread->arg;
	unsigned long id = 0;

	while (!atomic_read(&game->over) && wait_catch(game->mine, id) &&
	       wait_throw(game->yours, id))
		id++;
	thread->ret = id;
}

static void wait_lost_wakeup(struct kunit *test)
{
	struct wait_game game = {
		.mine = cq_make(test), .yours = cq_make(test),
	};
	struct kofi_thread thread;
	unsigned long start, id;
	bool caught = true;

	kofi_thread_start(test, &thread, wait_play, &game);
	start = jiffies;
	for (id = 0; caught && kofi_hunting(start, WAIT_HUNT_MS, id); id++)
		caught = wait_throw(game.mine, id) && wait_catch(game.yours, id);
	atomic_set(&game.over, 1);
	fi_cq_signal(&game.mine->cq_fid);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_TRUE(test, caught);
	KUNIT_EXPECT_GE(test, id, KOFI_ROUNDS_MIN);
	KUNIT_EXPECT_EQ(test, thread.ret, id);
	kunit_info(test, "%lu rounds\n", id);
}

static void wait_eat(struct kofi_thread *thread)
{
	struct cq_hungry *hungry = thread->arg;
	struct fi_cq_tagged_entry entry;

	while (!signal_pending(current))
		if (fi_cq_read(&hungry->cq.cq_fid, &entry, 1) == 1)
			thread->ret++;
}

/* Spin, because the notification usually comes from another CPU within microseconds. */
static bool wait_fed(struct cq_hungry *hungry)
{
	int i;

	for (i = 0; i < 50; i++) {
		if (try_wait_for_completion(&hungry->more))
			return true;
		udelay(1);
	}
	return kofi_completed(&hungry->more);
}

/* A provider that finds the reserve empty is notified when the next entry is read. */
static void wait_replenished(struct kunit *test)
{
	struct cq_hungry *hungry = cq_make_hungry(test);
	unsigned long start, written = 0, empty = 0;
	struct kofi_thread thread;
	bool lost = false;

	kofi_thread_start(test, &thread, wait_eat, hungry);
	start = jiffies;
	while (!lost && kofi_hunting(start, WAIT_HUNT_MS, empty)) {
		if (!cq_reserve_or_starve(hungry)) {
			cq_write_unsolicited(&hungry->cq, written++);
			continue;
		}
		empty++;
		lost = !wait_fed(hungry);
	}
	KUNIT_EXPECT_FALSE(test, lost);
	KUNIT_EXPECT_GE(test, empty, KOFI_ROUNDS_MIN);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(thread.ret) == written));
	kofi_thread_kill(&thread);
	kofi_thread_join(test, &thread);
	kunit_info(test, "%lu completions, %lu times empty\n", written, empty);
}

/*
 * Three threads and a tasklet write, three threads and a tasklet read. Each completion has a
 * number, and exactly one reader must get it, intact.
 */
#define CROWD_EACH	1500
#define CROWD_BATCH	8
#define CROWD_WRITERS	4
#define CROWD_READERS	3
#define CROWD_ALL	(CROWD_EACH * CROWD_WRITERS)

struct crowd {
	struct kofi_cq		*cq;
	unsigned long		*seen;
	atomic_t		writers;
	atomic_t		count;
	atomic_t		twice;
	atomic_t		broken;
	unsigned int		soft_id;
	struct tasklet_struct	soft;
	struct kofi_thread	writer[CROWD_WRITERS - 1];
	struct kofi_thread	reader[CROWD_READERS];
};

static void crowd_see(struct crowd *crowd, unsigned long id, bool ok)
{
	if (!ok || id >= CROWD_ALL)
		atomic_inc(&crowd->broken);
	else if (test_and_set_bit(id, crowd->seen))
		atomic_inc(&crowd->twice);
	else
		atomic_inc(&crowd->count);
}

static void crowd_take(struct crowd *crowd,
		       const struct fi_cq_tagged_entry *entry, ssize_t n)
{
	struct fi_cq_err_entry err = { };
	int i;

	for (i = 0; i < n; i++)
		crowd_see(crowd, (long)entry[i].op_context,
			  cq_entry_ok(&entry[i]));
	if (n == -FI_EAVAIL && fi_cq_readerr(&crowd->cq->cq_fid, &err, 0) == 1)
		crowd_see(crowd, (long)err.op_context, cq_err_entry_ok(&err));
}

/* One in eight completions is an error, and one in eight is unsolicited. */
static bool crowd_put(struct crowd *crowd, unsigned long id)
{
	bool unsolicited = id % 8 == 3;

	if (unsolicited ? kofi_cq_reserve_unsolicited(crowd->cq) :
		      kofi_cq_reserve(crowd->cq))
		return false;
	if (unsolicited)
		cq_write_unsolicited(crowd->cq, id);
	else if (id % 8 == 5)
		cq_write_err(crowd->cq, id);
	else
		cq_write(crowd->cq, id);
	kofi_cq_notify(crowd->cq);
	return true;
}

static void crowd_write(struct kofi_thread *thread)
{
	struct crowd *crowd = thread->arg;
	unsigned long id = atomic_inc_return(&crowd->writers) * CROWD_EACH;
	unsigned long end = id + CROWD_EACH;
	unsigned long stop = jiffies + msecs_to_jiffies(KOFI_NEVER_MS);

	while (id < end && time_before(jiffies, stop)) {
		if (crowd_put(crowd, id))
			id++;
		else
			usleep_range(10, 20);
	}
}

static bool crowd_goes_on(struct crowd *crowd)
{
	return atomic_read(&crowd->count) + atomic_read(&crowd->twice) +
	       atomic_read(&crowd->broken) < CROWD_ALL;
}

static void crowd_sread(struct kofi_thread *thread)
{
	struct crowd *crowd = thread->arg;
	struct fi_cq_tagged_entry entry[3];

	while (crowd_goes_on(crowd) && !signal_pending(current))
		crowd_take(crowd, entry,
			   fi_cq_sread(&crowd->cq->cq_fid, entry, 3, NULL, 20));
}

static void crowd_read(struct kofi_thread *thread)
{
	struct crowd *crowd = thread->arg;
	struct fi_cq_tagged_entry entry[3];
	ssize_t n;

	while (crowd_goes_on(crowd) && !signal_pending(current)) {
		n = fi_cq_read(&crowd->cq->cq_fid, entry, 3);
		crowd_take(crowd, entry, n);
		if (n == -EAGAIN)
			usleep_range(10, 20);
	}
}

static void crowd_soft(struct tasklet_struct *soft)
{
	struct crowd *crowd = container_of(soft, struct crowd, soft);
	struct fi_cq_tagged_entry entry[2];
	int i;

	for (i = 0; i < CROWD_BATCH; i++) {
		crowd_take(crowd, entry,
			   fi_cq_read(&crowd->cq->cq_fid, entry, 2));
		if (crowd->soft_id < CROWD_EACH &&
		    crowd_put(crowd, crowd->soft_id))
			crowd->soft_id++;
	}
}

static void crowd_meet(struct kunit *test, struct crowd *crowd)
{
	unsigned long stop = jiffies + msecs_to_jiffies(KOFI_NEVER_MS);
	int i;

	for (i = 0; i < CROWD_READERS; i++)
		kofi_thread_start(test, &crowd->reader[i],
				  i ? crowd_read : crowd_sread, crowd);
	for (i = 0; i < CROWD_WRITERS - 1; i++)
		kofi_thread_start(test, &crowd->writer[i], crowd_write, crowd);
	while (crowd_goes_on(crowd) && time_before(jiffies, stop)) {
		tasklet_schedule(&crowd->soft);
		usleep_range(10, 20);
	}
	for (i = 0; i < CROWD_WRITERS - 1; i++)
		kofi_thread_join(test, &crowd->writer[i]);
	for (i = 0; i < CROWD_READERS; i++)
		kofi_thread_join(test, &crowd->reader[i]);
	tasklet_kill(&crowd->soft);
}

static void wait_crowd(struct kunit *test)
{
	struct crowd *crowd = kunit_kzalloc(test, sizeof(*crowd), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, crowd);
	crowd->cq = cq_make(test);
	crowd->seen = kunit_kcalloc(test, BITS_TO_LONGS(CROWD_ALL),
				    sizeof(long), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, crowd->seen);
	tasklet_setup(&crowd->soft, crowd_soft);
	crowd_meet(test, crowd);
	KUNIT_EXPECT_EQ(test, atomic_read(&crowd->count), CROWD_ALL);
	KUNIT_EXPECT_EQ(test, atomic_read(&crowd->twice), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&crowd->broken), 0);
	cq_expect_idle(test, crowd->cq);
}

static struct kunit_case wait_cases[] = {
	KUNIT_CASE(wait_timeout),
	KUNIT_CASE(wait_completion),
	KUNIT_CASE(wait_error),
	KUNIT_CASE(wait_threshold),
	KUNIT_CASE(wait_threshold_limit),
	KUNIT_CASE(wait_threshold_timeout),
	KUNIT_CASE(wait_no_threshold),
	KUNIT_CASE(wait_interrupted),
	KUNIT_CASE(wait_signal),
	KUNIT_CASE(wait_signal_early),
	KUNIT_CASE(wait_room),
	KUNIT_CASE(wait_room_full),
	KUNIT_CASE(wait_signal_each),
	KUNIT_CASE(wait_two_for_one),
	KUNIT_CASE(wait_lost_wakeup),
	KUNIT_CASE(wait_replenished),
	KUNIT_CASE(wait_crowd),
	{}
};

static struct kunit_suite wait_suite = {
	.name		= "kofi_cq_wait",
	.test_cases	= wait_cases,
};

kunit_test_suite(wait_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's completion queues with sleepers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
