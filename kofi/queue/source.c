// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sources of completions. A reader that finds a completion queue empty makes the queue's
 * sources poll their devices, and before it sleeps it makes them enable events. So reading
 * a completion that the device already has takes no interrupt and no other task.
 *
 * Readers walk the sources under RCU. A source serializes its readers with its own lock,
 * which it takes before kofi_cq.lock.
 */
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include "queue.h"

/* Of more sources most are idle, so that polling all of them costs more than events. */
#define KOFI_SOURCES_MAX	4

/* For kofi_cq.busy. */
const u32 kofi_never_busy;

static bool kofi_cq_walk(struct kofi_cq *cq, bool last, struct kofi_cq_reader *reader)
{
	struct kofi_source *source;
	bool found = false;

	rcu_read_lock();
	list_for_each_entry_rcu(source, &cq->sources, list)
		found |= source->poll(source->arg, last, reader);
	rcu_read_unlock();
	return found;
}

/**
 * kofi_cq_poll_shared() - kofi_cq_poll() that polls the shared source as well
 * @cq: the completion queue, with a shared source
 * @buf: buffer of the reader
 * @count: number of completions that fit into @buf
 * @src_addr: the reader's buffer for senders, or NULL
 *
 * A function of its own, so that other readers don't pay for it. In softirq context it polls only
 * the shared source: endpoints report completions to such a reader by events, and those of sends
 * that nobody waits for a little later.
 *
 * Context: Process or softirq context.
 * Return: number of completions that the reader was given.
 */
noinline size_t kofi_cq_poll_shared(struct kofi_cq *cq, void *buf, size_t count,
				    fi_addr_t *src_addr)
{
	struct kofi_cq_reader reader = kofi_cq_reader_init(cq, buf, count, src_addr);

	cq->shared->poll(cq->shared->arg, false, &reader);
	if (in_task() && READ_ONCE(cq->nsources) <= KOFI_SOURCES_MAX)
		kofi_cq_walk(cq, false, &reader);
	kofi_cq_unreserve_some(cq, count - reader.room);
	return count - reader.room;
}

static __always_inline size_t kofi_cq_poll_endpoints(struct kofi_cq *cq, void *buf, size_t count,
						     fi_addr_t *src_addr)
{
	struct kofi_cq_reader reader = kofi_cq_reader_init(cq, buf, count, src_addr);

	if (READ_ONCE(cq->nsources) <= KOFI_SOURCES_MAX)
		kofi_cq_walk(cq, false, &reader);
	count -= reader.room;
	kofi_cq_unreserve_some(cq, count);
	return count;
}

/**
 * kofi_cq_poll() - make the sources of a completion queue write or give their completions
 * @cq: the completion queue
 * @buf: buffer of the reader, unused if @count is 0
 * @count: number of completions that fit into @buf
 * @src_addr: the reader's buffer for senders, or NULL
 *
 * Endpoints aren't polled if there are more than KOFI_SOURCES_MAX of them.
 *
 * Context: Process context, atomic or not.
 * Return: number of completions that the reader was given.
 */
size_t kofi_cq_poll(struct kofi_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	if (unlikely(kofi_cq_shared_busy(cq)))
		return kofi_cq_poll_shared(cq, buf, count, src_addr);
	return kofi_cq_poll_endpoints(cq, buf, count, src_addr);
}

/**
 * kofi_cq_is_polled() - check whether readers poll a completion queue's endpoints
 * @cq: the completion queue
 *
 * Context: Any.
 * Return: whether they do; if not, they rely on events.
 */
bool kofi_cq_is_polled(const struct kofi_cq *cq)
{
	return READ_ONCE(cq->nsources) <= KOFI_SOURCES_MAX;
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_is_polled, KOFI_PROVIDER);

/**
 * kofi_cq_poll_last() - poll for the last time before a reader sleeps
 * @cq: the completion queue
 * @always: poll any number of sources: at least one of them relies on it, because kofi_cq_poke()
 *	returned true or because the last poll found completions
 *
 * Context: Process context, counted in kofi_cq.sleepers.
 * Return: whether there were completions. If not, the sources report the next one with
 * kofi_cq_poke() or kofi_cq_notify().
 */
bool kofi_cq_poll_last(struct kofi_cq *cq, bool always)
{
	if (!always && READ_ONCE(cq->nsources) > KOFI_SOURCES_MAX)
		return false;
	return kofi_cq_walk(cq, true, NULL);
}

/* Longest time in microseconds for which a reader polls before it sleeps. */
static unsigned int kofi_spin_us = 20;
module_param_named(spin_us, kofi_spin_us, uint, 0644);
MODULE_PARM_DESC(spin_us, "longest time in microseconds that fi_cq_sread() polls before it sleeps; 0 disables polling");

/* Upper limit of spin_us. */
#define KOFI_SPIN_MOST_US	1000

/**
 * kofi_cq_spin_max() - longest time for which a reader may poll before it sleeps
 *
 * Context: Any.
 * Return: nanoseconds; 0 with one CPU, because other tasks may need the CPU to complete
 * operations.
 */
u32 kofi_cq_spin_max(void)
{
	if (num_online_cpus() == 1)
		return 0;
	return min_t(u32, READ_ONCE(kofi_spin_us), KOFI_SPIN_MOST_US) * NSEC_PER_USEC;
}

/**
 * kofi_cq_spin() - poll for a while before sleeping
 * @cq: the completion queue, empty
 * @max: from kofi_cq_spin_max()
 *
 * Sleeping takes a context switch and an event of the device, which often take longer than
 * the completion.
 *
 * Context: Process context.
 * Return: whether the queue has an entry.
 */
bool kofi_cq_spin(struct kofi_cq *cq, u32 max)
{
	u32 spin = min(READ_ONCE(cq->spin_ns), max);
	u64 end;

	if (!spin)
		return false;
	end = ktime_get_ns() + spin;
	do {
		kofi_cq_poll(cq, NULL, 0, NULL);
		if (READ_ONCE(cq->head) != READ_ONCE(cq->tail))
			return true;
		cpu_relax();
	} while (!need_resched() && !signal_pending(current) && ktime_get_ns() < end);
	return false;
}

/**
 * kofi_cq_poke() - wake a sleeping reader so that it polls the sources
 * @cq: the completion queue
 *
 * Called by a source when its device has completions.
 *
 * Context: Any, hard interrupt included.
 * Return: true if a reader will poll all sources, so no other task needs to.
 */
bool kofi_cq_poke(struct kofi_cq *cq)
{
	if (!atomic_read(&cq->sleepers) || READ_ONCE(cq->nsources) > KOFI_SOURCES_MAX)
		return false;
	WRITE_ONCE(cq->poked, true);
	/* Pairs with kofi_cq_doze(), which lowers sleepers and then looks at poked. */
	smp_mb();
	if (!atomic_read(&cq->sleepers))
		return false;
	wake_up_all(&cq->notifier.wait);
	return true;
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_poke, KOFI_PROVIDER);

/**
 * kofi_cq_share() - have readers poll a source that several completion queues have in common
 * @cq: the completion queue
 * @source: the source, the same in each call for @cq. Valid until @cq is closed
 * @busy: its number of outstanding operations, which readers read without a lock. Valid as @source
 *
 * The source's poll is called in softirq context as well, and without RCU; never with last. Readers
 * don't call it while nothing is outstanding, but they do however many endpoints the queue has. A
 * reader that sleeps doesn't rely on it: the source calls kofi_cq_notify().
 *
 * Context: Process context.
 * Return: whether this is the only use of the source by @cq.
 */
bool kofi_cq_share(struct kofi_cq *cq, struct kofi_source *source, const u32 *busy)
{
	bool first;

	spin_lock(&cq->sources_lock);
	first = !cq->nshared++;
	cq->shared = source;
	/* Pairs with kofi_cq_shared_busy(), after which readers use the source. */
	smp_store_release(&cq->busy, busy);
	spin_unlock(&cq->sources_lock);
	return first;
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_share, KOFI_PROVIDER);

/**
 * kofi_cq_unshare() - undo one kofi_cq_share()
 * @cq: the completion queue
 *
 * Readers may be polling the source until @cq is closed.
 *
 * Context: Process context.
 * Return: whether it was the last use.
 */
bool kofi_cq_unshare(struct kofi_cq *cq)
{
	bool last;

	spin_lock(&cq->sources_lock);
	last = !--cq->nshared;
	if (last)
		WRITE_ONCE(cq->busy, &kofi_never_busy);
	spin_unlock(&cq->sources_lock);
	return last;
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_unshare, KOFI_PROVIDER);

static void kofi_source_add(struct kofi_cq *cq, struct kofi_source *source)
{
	spin_lock(&cq->sources_lock);
	list_add_tail_rcu(&source->list, &cq->sources);
	WRITE_ONCE(cq->nsources, cq->nsources + 1);
	spin_unlock(&cq->sources_lock);
}

static void kofi_source_del(struct kofi_cq *cq, struct kofi_source *source)
{
	spin_lock(&cq->sources_lock);
	list_del_rcu(&source->list);
	WRITE_ONCE(cq->nsources, cq->nsources - 1);
	spin_unlock(&cq->sources_lock);
}

/**
 * kofi_ep_add_source() - make an endpoint a source of its completion queues
 * @tx: the endpoint's sending side, with all its bindings
 * @rx: the endpoint's receiving side, with all its bindings
 * @poll: see struct kofi_source
 * @arg: for @poll
 *
 * Context: Process context.
 */
void kofi_ep_add_source(struct kofi_side *tx, struct kofi_side *rx,
			bool (*poll)(void *arg, bool last, struct kofi_cq_reader *reader),
			void *arg)
{
	tx->source = (struct kofi_source) { .poll = poll, .arg = arg };
	rx->source = tx->source;
	if (tx->cq)
		kofi_source_add(tx->cq, &tx->source);
	if (rx->cq && rx->cq != tx->cq)
		kofi_source_add(rx->cq, &rx->source);
}
EXPORT_SYMBOL_NS_GPL(kofi_ep_add_source, KOFI_PROVIDER);

/**
 * kofi_ep_del_source() - undo kofi_ep_add_source()
 * @tx: the endpoint's sending side
 * @rx: the endpoint's receiving side
 *
 * Context: Process context. A poll may be running until an RCU grace period has passed, so
 * the endpoint's memory must stay valid until then.
 */
void kofi_ep_del_source(struct kofi_side *tx, struct kofi_side *rx)
{
	if (tx->cq)
		kofi_source_del(tx->cq, &tx->source);
	if (rx->cq && rx->cq != tx->cq)
		kofi_source_del(rx->cq, &rx->source);
}
EXPORT_SYMBOL_NS_GPL(kofi_ep_del_source, KOFI_PROVIDER);
