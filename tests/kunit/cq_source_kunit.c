// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues whose readers poll sources, such as the endpoints of a device. */
#include "../../kofi/queue/queue.h"
#include "cq_test.h"
#include "crew.h"

/* Duration of tests for races that occur only in some rounds. */
#define SOURCE_HUNT_MS	400

/* A model of a device with completions, which raises an event if it is armed. */
struct source_device {
	struct kofi_cq		*cq;
	struct kofi_side	tx, rx;
	atomic_t		has;
	atomic_t		armed;
	unsigned long		id;
	unsigned int		polls;
};

static bool device_take(struct source_device *dev)
{
	if (!atomic_xchg(&dev->has, 0))
		return false;
	cq_write(dev->cq, dev->id);
	return true;
}

static bool device_poll(void *arg, bool last, struct kofi_cq_reader *reader)
{
	struct source_device *dev = arg;

	dev->polls++;
	if (device_take(dev))
		return true;
	if (!last)
		return false;
	atomic_set(&dev->armed, 1);
	/* Completions from before arming have raised no event. */
	smp_mb();
	return device_take(dev);
}

/* Return: whether an event was raised that no sleeper handled. */
static bool device_event(struct source_device *dev)
{
	atomic_set(&dev->has, 1);
	/* The reader polls again after it has armed the device. */
	smp_mb();
	return atomic_xchg(&dev->armed, 0) && !kofi_cq_poke(dev->cq);
}

static void device_init(struct kunit *test, struct source_device *dev)
{
	dev->cq = cq_make(test);
	dev->tx.cq = dev->cq;
	dev->rx.cq = dev->cq;
	kofi_ep_add_source(&dev->tx, &dev->rx, device_poll, dev);
}

static void device_fini(struct source_device *dev)
{
	kofi_ep_del_source(&dev->tx, &dev->rx);
	synchronize_rcu();
}

/* An endpoint with a queue for each direction is a source of both, until it is closed. */
static void source_of_two(struct kunit *test)
{
	struct source_device dev = { };
	struct kofi_cq *rx = cq_make(test);

	dev.cq = cq_make(test);
	dev.tx.cq = dev.cq;
	dev.rx.cq = rx;
	kofi_ep_add_source(&dev.tx, &dev.rx, device_poll, &dev);
	KUNIT_EXPECT_EQ(test, dev.cq->nsources, 1U);
	KUNIT_EXPECT_EQ(test, rx->nsources, 1U);
	device_fini(&dev);
	KUNIT_EXPECT_EQ(test, dev.cq->nsources, 0U);
	KUNIT_EXPECT_EQ(test, rx->nsources, 0U);
	KUNIT_EXPECT_TRUE(test, list_empty(&dev.cq->sources));
	KUNIT_EXPECT_TRUE(test, list_empty(&rx->sources));
}

static void source_read(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_device dev = { };

	device_init(test, &dev);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&dev.cq->cq_fid, &entry, 1), -EAGAIN);
	/* The device is polled once, although it is the source of both directions. */
	KUNIT_EXPECT_EQ(test, dev.polls, 1U);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(dev.cq), 0);
	device_event(&dev);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&dev.cq->cq_fid, &entry, 1), 1);
	KUNIT_EXPECT_EQ(test, dev.polls, 2U);
	/* Completions in the queue are read without polling. */
	cq_add(test, dev.cq, 1);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&dev.cq->cq_fid, &entry, 1), 1);
	KUNIT_EXPECT_EQ(test, dev.polls, 2U);
	device_fini(&dev);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&dev.cq->cq_fid, &entry, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, dev.polls, 2U);
	KUNIT_EXPECT_FALSE(test, kofi_cq_poke(dev.cq));
}

static void source_sleep_once(struct kofi_thread *thread)
{
	struct kofi_cq *cq = thread->arg;
	struct fi_cq_tagged_entry entry;

	thread->ret = fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, -1);
}

static void source_start(struct kunit *test, struct kofi_thread *thread, struct kofi_cq *cq)
{
	kofi_thread_start(test, thread, source_sleep_once, cq);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&cq->notifier.wait) == 1));
}

static void source_sleep(struct kunit *test)
{
	struct source_device dev = { };
	struct kofi_thread thread;

	device_init(test, &dev);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(dev.cq), 0);
	source_start(test, &thread, dev.cq);
	KUNIT_EXPECT_FALSE(test, device_event(&dev));
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 1);
	device_fini(&dev);
}

/* A device that has a completion at the nth poll. */
static bool device_poll_nth(void *arg, bool last, struct kofi_cq_reader *reader)
{
	struct source_device *dev = arg;

	if (last)
		atomic_set(&dev->armed, 1);
	if (++dev->polls != 20)
		return false;
	cq_write(dev->cq, dev->id);
	return true;
}

/* A reader that polls for a while before it sleeps finds an early completion. */
static void source_spin(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_device dev = { };
	int i;

	if (num_online_cpus() == 1)
		kunit_skip(test, "readers don't poll on a machine with one CPU");
	dev.cq = cq_make(test);
	dev.tx.cq = dev.cq;
	kofi_ep_add_source(&dev.tx, &dev.rx, device_poll_nth, &dev);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(dev.cq), 0);
	/* Longer than any delay in a virtual machine. */
	dev.cq->spin_ns = U32_MAX;
	for (i = 0; i < 100 && dev.polls < 20; i++)
		if (fi_cq_sread(&dev.cq->cq_fid, &entry, 1, NULL, 1) == 1)
			break;
	KUNIT_EXPECT_EQ(test, dev.polls, 20U);
	device_fini(&dev);
}

/* A queue polls before sleeping only while its completions come soon. */
static void source_spin_learns(struct kunit *test)
{
	const u32 max = 20000;
	u32 spin = 0;
	int i;

	KUNIT_EXPECT_EQ(test, kofi_spin_next(0, max, max), 0U);
	KUNIT_EXPECT_EQ(test, kofi_spin_next(0, max, max - 1), 2000U);
	KUNIT_EXPECT_EQ(test, kofi_spin_next(2000, max, 0), 4000U);
	for (i = 0; i < 7; i++)
		spin = kofi_spin_next(spin, max, 0);
	KUNIT_EXPECT_EQ(test, spin, max);
	KUNIT_EXPECT_EQ(test, kofi_spin_next(max, max, max), max / 2);
	for (i = 0; i < 7; i++)
		spin = kofi_spin_next(spin, max, NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, spin, 0U);
	/* The administrator disables polling. */
	KUNIT_EXPECT_EQ(test, kofi_spin_next(U32_MAX, max, 0), max);
}

static void source_doze(struct kofi_thread *thread)
{
	struct source_device *dev = thread->arg;
	struct fi_cq_tagged_entry entry;

	while (!signal_pending(current))
		if (fi_cq_sread(&dev->cq->cq_fid, &entry, 1, NULL,
				thread->ret % 3) == 1)
			WRITE_ONCE(thread->ret, thread->ret + 1);
}

/* Sleepers and events race: each event wakes a sleeper or queues the worker. */
static void source_lost_event(struct kunit *test)
{
	unsigned long start, id, worker = 0;
	struct source_device dev = { };
	struct kofi_thread thread;
	bool caught = true;

	device_init(test, &dev);
	kofi_thread_start(test, &thread, source_doze, &dev);
	start = jiffies;
	for (id = 0; caught && kofi_hunting(start, SOURCE_HUNT_MS, id); id++) {
		KUNIT_EXPECT_EQ(test, kofi_cq_reserve(dev.cq), 0);
		dev.id = id;
		/* Do what a worker would do. */
		if (device_event(&dev) && device_take(&dev)) {
			kofi_cq_notify(dev.cq);
			worker++;
		}
		caught = kofi_soon(READ_ONCE(thread.ret) == id + 1);
	}
	kofi_thread_kill(&thread);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_TRUE(test, caught);
	KUNIT_EXPECT_GE(test, id, KOFI_ROUNDS_MIN);
	kunit_info(test, "%lu rounds, %lu of them a worker's\n", id, worker);
	device_fini(&dev);
}

/* --- the order of a sleeper's steps --- */

/* A device that runs a step of the test at each poll of a reader that is about to sleep. */
struct source_steps {
	struct kofi_cq		*cq;
	struct kofi_side	tx, rx;
	unsigned int		looks;
	bool			poked;
};

static void steps_init(struct kunit *test, struct source_steps *dev,
		       bool (*poll)(void *arg, bool last, struct kofi_cq_reader *reader))
{
	dev->cq = cq_make(test);
	dev->tx.cq = dev->cq;
	KUNIT_ASSERT_EQ(test, kofi_cq_reserve(dev->cq), 0);
	KUNIT_ASSERT_EQ(test, kofi_cq_reserve(dev->cq), 0);
	kofi_ep_add_source(&dev->tx, &dev->rx, poll, dev);
}

static void steps_fini(struct source_steps *dev)
{
	kofi_ep_del_source(&dev->tx, &dev->rx);
	synchronize_rcu();
}

/* A device that has a completion for another queue, then one for this queue. */
static bool steps_found(void *arg, bool last, struct kofi_cq_reader *reader)
{
	struct source_steps *dev = arg;

	if (!last)
		return false;
	if (++dev->looks == 2)
		cq_write(dev->cq, 1);
	return dev->looks <= 2;
}

/* A source isn't armed after finding a completion, so a reader polls again before sleeping. */
static void source_found(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_steps dev = { };

	steps_init(test, &dev, steps_found);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&dev.cq->cq_fid, &entry, 1, NULL, 200), 1);
	KUNIT_EXPECT_EQ(test, dev.looks, 2U);
	steps_fini(&dev);
}

/* A device that has a completion, and raises an event while the reader counts as a sleeper. */
static bool steps_event(void *arg, bool last, struct kofi_cq_reader *reader)
{
	struct source_steps *dev = arg;

	if (!last || ++dev->looks > 2)
		return false;
	cq_write(dev->cq, dev->looks);
	if (dev->looks == 1)
		dev->poked = kofi_cq_poke(dev->cq);
	return dev->looks == 2;
}

/*
 * An event that finds a sleeping reader leaves the completions to that reader, even if the
 * reader has enough completions by then and doesn't sleep.
 */
static void source_event_at_end(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_steps dev = { };

	steps_init(test, &dev, steps_event);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&dev.cq->cq_fid, &entry, 1, NULL, 200), 1);
	/* The reader counted itself before it polled, or the event would have found no sleeper. */
	KUNIT_EXPECT_TRUE(test, dev.poked);
	KUNIT_EXPECT_EQ(test, dev.looks, 2U);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&dev.cq->cq_fid, &entry, 1), 1);
	steps_fini(&dev);
}

/* Like steps_event(), for the second reader. The event hasn't woken a reader yet. */
static bool steps_event_of_second(void *arg, bool last, struct kofi_cq_reader *reader)
{
	struct source_steps *dev = arg;

	if (!last || ++dev->looks == 1 || dev->looks > 3)
		return false;
	cq_write(dev->cq, dev->looks);
	if (dev->looks == 2)
		WRITE_ONCE(dev->cq->poked, true);
	return dev->looks == 3;
}

/* A reader that has enough completions notifies a sleeping reader of the others. */
static void source_found_for_sleeper(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_steps dev = { };
	struct kofi_thread thread;

	steps_init(test, &dev, steps_event_of_second);
	source_start(test, &thread, dev.cq);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&dev.cq->cq_fid, &entry, 1, NULL, 200), 1);
	/* The other reader may have polled, too. */
	KUNIT_EXPECT_GE(test, dev.looks, 3U);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 1);
	steps_fini(&dev);
}

/* As steps_event_of_second(), but the second reader's last poll finds nothing for this queue. */
static bool steps_found_for_others(void *arg, bool last, struct kofi_cq_reader *reader)
{
	struct source_steps *dev = arg;
	unsigned int look;

	if (!last)
		return false;
	look = ++dev->looks;
	if (look == 2) {
		cq_write(dev->cq, look);
		WRITE_ONCE(dev->cq->poked, true);
	}
	return look == 3;
}

/*
 * A source that found completions hasn't enabled events. If that was the last poll of a reader that
 * leaves, another reader must poll again before it goes on sleeping.
 */
static void source_left_unarmed(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_steps dev = { };
	struct kofi_thread thread;
	ssize_t ret;

	steps_init(test, &dev, steps_found_for_others);
	source_start(test, &thread, dev.cq);
	KUNIT_EXPECT_EQ(test, dev.looks, 1U);
	/* The other reader may be faster, and take the completion. */
	ret = fi_cq_sread(&dev.cq->cq_fid, &entry, 1, NULL, 200);
	KUNIT_EXPECT_TRUE(test, ret == 1 || ret == -EAGAIN);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(dev.looks) >= 4));
	kofi_thread_kill(&thread);
	kofi_thread_join(test, &thread);
	steps_fini(&dev);
}

/* The directions of other endpoints. */
static struct kofi_side others[4][2];

static bool others_poll(void *arg, bool last, struct kofi_cq_reader *reader)
{
	return false;
}

/* A device that raises an event, after which the queue gets too many sources to be polled. */
static bool steps_event_then_others(void *arg, bool last, struct kofi_cq_reader *reader)
{
	struct source_steps *dev = arg;
	int i;

	if (!last)
		return false;
	if (++dev->looks == 2)
		cq_write(dev->cq, 1);
	if (dev->looks > 1)
		return false;
	dev->poked = kofi_cq_poke(dev->cq);
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		others[i][0].cq = dev->cq;
		kofi_ep_add_source(&others[i][0], &others[i][1], others_poll, NULL);
	}
	return false;
}

/* A reader that was told of an event polls, even if sources were added in between. */
static void source_event_then_others(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_steps dev = { };
	int i;

	steps_init(test, &dev, steps_event_then_others);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&dev.cq->cq_fid, &entry, 1, NULL, 200), 1);
	KUNIT_EXPECT_TRUE(test, dev.poked);
	KUNIT_EXPECT_EQ(test, dev.looks, 2U);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		kofi_ep_del_source(&others[i][0], &others[i][1]);
	steps_fini(&dev);
}

/* A device that always has a completion for another queue. */
static bool device_of_others(void *arg, bool last, struct kofi_cq_reader *reader)
{
	struct source_device *dev = arg;

	dev->polls++;
	return true;
}

/* The time-out and signals end a sleep even if a source always has completions of others. */
static void source_never_mine(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_device dev = { };
	struct kofi_thread thread;

	dev.cq = cq_make(test);
	dev.tx.cq = dev.cq;
	kofi_ep_add_source(&dev.tx, &dev.rx, device_of_others, &dev);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&dev.cq->cq_fid, &entry, 1, NULL, 20), -EAGAIN);
	KUNIT_EXPECT_GT(test, dev.polls, 1U);
	kofi_thread_start(test, &thread, source_sleep_once, dev.cq);
	msleep(20);
	kofi_thread_kill(&thread);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, -EINTR);
	device_fini(&dev);
}

/* A reader that leaves with a completion has another one go on polling, and arm the device. */
static void source_hand_over(struct kunit *test)
{
	struct source_device dev = { };
	struct kofi_thread first, second;

	device_init(test, &dev);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(dev.cq), 0);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(dev.cq), 0);
	source_start(test, &first, dev.cq);
	kofi_thread_start(test, &second, source_sleep_once, dev.cq);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&dev.cq->notifier.wait) == 2));
	KUNIT_EXPECT_FALSE(test, device_event(&dev));
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&dev.cq->notifier.wait) == 1 &&
					  atomic_read(&dev.armed)));
	device_event(&dev);
	kofi_thread_join(test, &first);
	kofi_thread_join(test, &second);
	KUNIT_EXPECT_EQ(test, first.ret + second.ret, 2);
	device_fini(&dev);
}

/* A device that gives its completions to a reader if it can. */
struct source_giver {
	struct kofi_cq		*cq;
	struct kofi_side	tx, rx;
	unsigned long		id;		/* of the next completion */
	unsigned int		n;		/* number of completions of the next poll */
	bool			writes;		/* write the first of them to the queue */
	unsigned int		given;
	unsigned long		quiet;		/* this completion isn't reported */
	bool			notify;		/* from the last report */
};

static void giver_write(struct source_giver *dev)
{
	cq_write(dev->cq, dev->id++);
	dev->n--;
}

static void giver_add(struct kofi_cq_batch *batch, void *arg, unsigned int n)
{
	struct fi_cq_tagged_entry entry;
	struct source_giver *dev = arg;

	for (; n; n--) {
		if (dev->id == dev->quiet) {
			dev->id++;
			batch->quiet++;
			continue;
		}
		entry = cq_entry(dev->id);
		kofi_cq_batch_add(batch, &entry, dev->id++ * 13 + 5);
		dev->given += !!batch->to;
	}
}

static bool giver_poll(void *arg, bool last, struct kofi_cq_reader *reader)
{
	struct source_giver *dev = arg;
	bool found = dev->n;

	if (dev->n && dev->writes)
		giver_write(dev);
	dev->notify = false;
	local_bh_disable();
	kofi_cq_report(dev->cq, reader, dev->n, &dev->notify, giver_add, dev);
	local_bh_enable();
	dev->n = 0;
	return found;
}

static void giver_init(struct kunit *test, struct source_giver *dev, enum fi_cq_format format)
{
	*dev = (struct source_giver) {
		.cq	= cq_make_attr(test, (struct fi_cq_attr) {
			.format		= format,
			.wait_obj	= FI_WAIT_UNSPEC,
		}),
		.id	= 1,
	};
	dev->tx.cq = dev->cq;
	kofi_ep_add_source(&dev->tx, &dev->rx, giver_poll, dev);
}

static void giver_fini(struct kunit *test, struct source_giver *dev)
{
	KUNIT_EXPECT_EQ(test, dev->n, 0U);
	cq_expect_idle(test, dev->cq);
	kofi_ep_del_source(&dev->tx, &dev->rx);
	synchronize_rcu();
}

static void giver_post(struct kunit *test, struct source_giver *dev, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(test, kofi_cq_reserve(dev->cq), 0);
	dev->n = n;
}

static void give_of_size(struct kunit *test, enum fi_cq_format format, size_t size, bool sources)
{
	struct fi_cq_tagged_entry want;
	struct source_giver dev;
	fi_addr_t src[4] = { };
	u8 buf[4 * sizeof(want)] __aligned(8);
	int i;

	giver_init(test, &dev, format);
	giver_post(test, &dev, 3);
	memset(buf, 0xa5, sizeof(buf));
	KUNIT_EXPECT_EQ(test, fi_cq_readfrom(&dev.cq->cq_fid, buf, 4, sources ? src : NULL), 3);
	KUNIT_EXPECT_EQ(test, dev.given, 3U);
	for (i = 0; i < 3; i++) {
		want = cq_entry(i + 1);
		KUNIT_EXPECT_MEMEQ(test, buf + i * size, &want, size);
		KUNIT_EXPECT_EQ(test, src[i], sources ? (i + 1) * 13 + 5 : 0);
	}
	KUNIT_EXPECT_EQ(test, src[3], 0);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(buf + 3 * size, 0xa5, sizeof(buf) - 3 * size), NULL);
	giver_fini(test, &dev);
}

/* A reader takes completions of each format directly, and no byte behind them is written. */
static void source_gives(struct kunit *test)
{
	int sources;

	for (sources = 0; sources < 2; sources++) {
		give_of_size(test, FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry), sources);
		give_of_size(test, FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry), sources);
		give_of_size(test, FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry), sources);
		give_of_size(test, FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry),
			     sources);
	}
}

static void giver_expect(struct kunit *test, struct source_giver *dev, size_t count, int from,
			 int n)
{
	struct fi_cq_tagged_entry entry[4];
	int i;

	KUNIT_ASSERT_EQ(test, fi_cq_read(&dev->cq->cq_fid, entry, count), n);
	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_PTR_EQ(test, entry[i].op_context, (void *)(long)(from + i));
		KUNIT_EXPECT_TRUE(test, cq_entry_ok(&entry[i]));
	}
}

/* Completions that a reader can't take directly are in the queue, in order. */
static void source_gives_no(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_giver dev;
	struct kofi_cq *other;

	giver_init(test, &dev, FI_CQ_FORMAT_TAGGED);
	/* More completions than fit into the reader's buffer. */
	giver_post(test, &dev, 3);
	giver_expect(test, &dev, 2, 1, 2);
	giver_expect(test, &dev, 2, 3, 1);
	/* A completion that was written first. */
	giver_post(test, &dev, 3);
	dev.writes = true;
	giver_expect(test, &dev, 4, 4, 3);
	dev.writes = false;
	KUNIT_EXPECT_EQ(test, dev.given, 0U);
	/* A reader of another queue. */
	other = cq_make(test);
	kofi_ep_del_source(&dev.tx, &dev.rx);
	synchronize_rcu();
	dev.rx.cq = other;
	kofi_ep_add_source(&dev.tx, &dev.rx, giver_poll, &dev);
	giver_post(test, &dev, 1);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&other->cq_fid, &entry, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, dev.n, 0U);
	giver_expect(test, &dev, 4, 7, 1);
	KUNIT_EXPECT_EQ(test, dev.given, 0U);
	giver_fini(test, &dev);
}

/* A quiet operation gives its entry back, and readers are notified only of what is written. */
static void source_gives_quiet(struct kunit *test)
{
	struct fi_cq_tagged_entry entry[4];
	struct source_giver dev;

	giver_init(test, &dev, FI_CQ_FORMAT_TAGGED);
	dev.quiet = 2;
	giver_post(test, &dev, 3);
	KUNIT_ASSERT_EQ(test, fi_cq_read(&dev.cq->cq_fid, entry, 4), 2);
	KUNIT_EXPECT_PTR_EQ(test, entry[1].op_context, (void *)3L);
	KUNIT_EXPECT_EQ(test, dev.given, 2U);
	KUNIT_EXPECT_FALSE(test, dev.notify);
	cq_expect_idle(test, dev.cq);

	dev.quiet = 5;
	giver_post(test, &dev, 3);
	giver_poll(&dev, false, NULL);
	KUNIT_EXPECT_TRUE(test, dev.notify);
	KUNIT_ASSERT_EQ(test, fi_cq_read(&dev.cq->cq_fid, entry, 4), 2);
	KUNIT_EXPECT_PTR_EQ(test, entry[1].op_context, (void *)6L);
	KUNIT_EXPECT_EQ(test, dev.given, 2U);

	dev.quiet = 7;
	giver_post(test, &dev, 1);
	giver_poll(&dev, false, NULL);
	KUNIT_EXPECT_FALSE(test, dev.notify);
	giver_fini(test, &dev);
}

static struct kunit_case source_cases[] = {
	KUNIT_CASE(source_of_two),
	KUNIT_CASE(source_gives),
	KUNIT_CASE(source_gives_no),
	KUNIT_CASE(source_gives_quiet),
	KUNIT_CASE(source_never_mine),
	KUNIT_CASE(source_hand_over),
	KUNIT_CASE(source_read),
	KUNIT_CASE(source_spin),
	KUNIT_CASE(source_spin_learns),
	KUNIT_CASE(source_sleep),
	KUNIT_CASE(source_lost_event),
	KUNIT_CASE(source_found),
	KUNIT_CASE(source_event_at_end),
	KUNIT_CASE(source_event_then_others),
	KUNIT_CASE(source_found_for_sleeper),
	KUNIT_CASE(source_left_unarmed),
	{}
};

static struct kunit_suite source_suite = {
	.name		= "kofi_cq_source",
	.test_cases	= source_cases,
};

kunit_test_suite(source_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's completion queues with sources");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
