// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues whose readers poll sources, such as the endpoints of a device. */
#include "../../kofi/queue/queue.h"
#include "cq_test.h"
#include "crew.h"

/* How long to hunt for what may happen once in many rounds. */
#define SOURCE_HUNT_MS	400

/* A device: has something, raises events if they are on, is polled by whom it can be. */
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

static bool device_poll(void *arg, bool last)
{
	struct source_device *dev = arg;

	dev->polls++;
	if (device_take(dev))
		return true;
	if (!last)
		return false;
	atomic_set(&dev->armed, 1);
	/* What came before that raised no event. */
	smp_mb();
	return device_take(dev);
}

/* Return: an event was raised, and nobody who slept saw to it. */
static bool device_event(struct source_device *dev)
{
	atomic_set(&dev->has, 1);
	/* Who arms it looks afterwards. */
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

static void source_read(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_device dev = { };

	device_init(test, &dev);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&dev.cq->cq_fid, &entry, 1), -EAGAIN);
	/* Once, though it is the source of both directions. */
	KUNIT_EXPECT_EQ(test, dev.polls, 1U);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(dev.cq), 0);
	device_event(&dev);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&dev.cq->cq_fid, &entry, 1), 1);
	KUNIT_EXPECT_EQ(test, dev.polls, 2U);
	/* What is there already is read without a look. */
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

/* Has something when it is asked for the nth time. */
static bool device_poll_nth(void *arg, bool last)
{
	struct source_device *dev = arg;

	if (last)
		atomic_set(&dev->armed, 1);
	if (++dev->polls != 20)
		return false;
	cq_write(dev->cq, dev->id);
	return true;
}

/* A reader who polls for a while first finds what comes soon, and doesn't sleep. */
static void source_spin(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_device dev = { };
	int i;

	if (num_online_cpus() == 1)
		kunit_skip(test, "others may need the CPU");
	dev.cq = cq_make(test);
	dev.tx.cq = dev.cq;
	kofi_ep_add_source(&dev.tx, &dev.rx, device_poll_nth, &dev);
	KUNIT_EXPECT_EQ(test, kofi_cq_reserve(dev.cq), 0);
	/* Longer than any delay of a guest. */
	dev.cq->spin_ns = U32_MAX;
	for (i = 0; i < 100 && dev.polls < 20; i++)
		if (fi_cq_sread(&dev.cq->cq_fid, &entry, 1, NULL, 1) == 1)
			break;
	KUNIT_EXPECT_EQ(test, dev.polls, 20U);
	device_fini(&dev);
}

/* Polling first is for queues whose completions come soon. */
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
	/* The administrator takes it back. */
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

/* Sleepers come and go as events do: none is lost, or is told to a worker. */
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
		/* As a worker would. */
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

/* A device that does something of its own each time that a reader looks before it sleeps. */
struct source_steps {
	struct kofi_cq		*cq;
	struct kofi_side	tx, rx;
	unsigned int		looks;
	bool			poked;
};

static void steps_init(struct kunit *test, struct source_steps *dev,
		       bool (*poll)(void *arg, bool last))
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

/* Finds a completion that isn't for this queue, then one that is, and arms for neither. */
static bool steps_found(void *arg, bool last)
{
	struct source_steps *dev = arg;

	if (!last)
		return false;
	if (++dev->looks == 2)
		cq_write(dev->cq, 1);
	return dev->looks <= 2;
}

/* A source that has found something isn't armed, so a reader looks again before it sleeps. */
static void source_found(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_steps dev = { };

	steps_init(test, &dev, steps_found);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&dev.cq->cq_fid, &entry, 1, NULL, 200), 1);
	KUNIT_EXPECT_EQ(test, dev.looks, 2U);
	steps_fini(&dev);
}

/* Has a completion of its own, and an event while the reader still counts as a sleeper. */
static bool steps_event(void *arg, bool last)
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
 * An event that counts on a reader leaves the completions to it, also if the reader has
 * what it wants by then and doesn't sleep.
 */
static void source_event_at_end(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_steps dev = { };

	steps_init(test, &dev, steps_event);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&dev.cq->cq_fid, &entry, 1, NULL, 200), 1);
	/* The reader is counted before it looks, or the event would find nobody. */
	KUNIT_EXPECT_TRUE(test, dev.poked);
	KUNIT_EXPECT_EQ(test, dev.looks, 2U);
	KUNIT_EXPECT_EQ(test, fi_cq_read(&dev.cq->cq_fid, &entry, 1), 1);
	steps_fini(&dev);
}

/* As steps_event(), for the second reader; its event hasn't woken anybody yet. */
static bool steps_event_of_second(void *arg, bool last)
{
	struct source_steps *dev = arg;

	if (!last || ++dev->looks == 1 || dev->looks > 3)
		return false;
	cq_write(dev->cq, dev->looks);
	if (dev->looks == 2)
		WRITE_ONCE(dev->cq->poked, true);
	return dev->looks == 3;
}

/* What a reader finds when it has what it wants is told to another one, who sleeps. */
static void source_found_for_sleeper(struct kunit *test)
{
	struct fi_cq_tagged_entry entry;
	struct source_steps dev = { };
	struct kofi_thread thread;

	steps_init(test, &dev, steps_event_of_second);
	source_start(test, &thread, dev.cq);
	KUNIT_EXPECT_EQ(test, fi_cq_sread(&dev.cq->cq_fid, &entry, 1, NULL, 200), 1);
	KUNIT_EXPECT_EQ(test, dev.looks, 3U);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 1);
	steps_fini(&dev);
}

static struct kunit_case source_cases[] = {
	KUNIT_CASE(source_read),
	KUNIT_CASE(source_spin),
	KUNIT_CASE(source_spin_learns),
	KUNIT_CASE(source_sleep),
	KUNIT_CASE(source_lost_event),
	KUNIT_CASE(source_found),
	KUNIT_CASE(source_event_at_end),
	KUNIT_CASE(source_found_for_sleeper),
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
