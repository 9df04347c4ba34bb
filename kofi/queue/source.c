// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where completions come from: a reader who finds a completion queue empty has its
 * sources look at their devices, and one about to sleep has them turn events on. So
 * nobody needs an interrupt, or another task, to read what is there already.
 *
 * Readers walk the sources under RCU. A source keeps its readers apart by a lock of its
 * own, which it takes before kofi_cq.lock.
 */
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include "queue.h"

/* Of more than that, most have nothing, and looking at all costs more than events do. */
#define KOFI_SOURCES_MAX	4

/**
 * kofi_cq_poll() - have the sources of a completion queue write what there is
 * @cq: the completion queue
 *
 * Does nothing if there are many sources.
 *
 * Context: Process context, atomic or not.
 */
void kofi_cq_poll(struct kofi_cq *cq)
{
	struct kofi_source *source;

	if (READ_ONCE(cq->nsources) > KOFI_SOURCES_MAX)
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(source, &cq->sources, list)
		source->poll(source->arg, false);
	rcu_read_unlock();
}

/**
 * kofi_cq_poll_last() - the same for a reader that sleeps if there is nothing
 * @cq: the completion queue
 *
 * Context: Process context, with kofi_cq.sleepers raised.
 * Return: whether there was something; if not the next completion is told of.
 */
bool kofi_cq_poll_last(struct kofi_cq *cq)
{
	struct kofi_source *source;
	bool found = false;

	if (READ_ONCE(cq->nsources) > KOFI_SOURCES_MAX)
		return false;
	rcu_read_lock();
	list_for_each_entry_rcu(source, &cq->sources, list)
		found |= source->poll(source->arg, true);
	rcu_read_unlock();
	return found;
}

/* How long a sleeper polls first, if that has been of use; microseconds. */
static unsigned int kofi_spin_us = 20;
module_param_named(spin_us, kofi_spin_us, uint, 0644);
MODULE_PARM_DESC(spin_us, "longest time that fi_cq_sread() polls before it sleeps, in microseconds; 0: it doesn't");

/* The most that makes sense. */
#define KOFI_SPIN_MOST_US	1000

/**
 * kofi_cq_spin_max() - how long may a sleeper poll first?
 *
 * Context: Any.
 * Return: nanoseconds; 0 with one CPU, which others may need in order to complete anything.
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
 * Sleeping costs a switch of tasks and an event of the device, which takes longer than many
 * a completion does.
 *
 * Context: Process context.
 * Return: whether there is something to be read.
 */
bool kofi_cq_spin(struct kofi_cq *cq, u32 max)
{
	u32 spin = min(READ_ONCE(cq->spin_ns), max);
	u64 end;

	if (!spin)
		return false;
	end = ktime_get_ns() + spin;
	do {
		kofi_cq_poll(cq);
		if (READ_ONCE(cq->head) != READ_ONCE(cq->tail))
			return true;
		cpu_relax();
	} while (!need_resched() && !signal_pending(current) && ktime_get_ns() < end);
	return false;
}

/**
 * kofi_cq_poke() - have somebody who sleeps poll
 * @cq: the completion queue
 *
 * For a source whose device has something.
 *
 * Context: Any, hard interrupt included.
 * Return: whether somebody will. All sources are polled then, so that no other task
 * need be.
 */
bool kofi_cq_poke(struct kofi_cq *cq)
{
	if (!atomic_read(&cq->sleepers) || READ_ONCE(cq->nsources) > KOFI_SOURCES_MAX)
		return false;
	WRITE_ONCE(cq->poked, true);
	/* Pairs with kofi_cq_doze(): the last sleeper sees it, or isn't seen here. */
	smp_mb();
	if (!atomic_read(&cq->sleepers))
		return false;
	wake_up_all(&cq->notifier.wait);
	return true;
}
EXPORT_SYMBOL_NS_GPL(kofi_cq_poke, KOFI_PROVIDER);

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
 * kofi_ep_add_source() - have readers of an endpoint's completion queues poll it
 * @tx: its sending side, with all that is bound to it
 * @rx: its receiving side, likewise
 * @poll: see struct kofi_source
 * @arg: for @poll
 *
 * Context: Process context.
 */
void kofi_ep_add_source(struct kofi_side *tx, struct kofi_side *rx,
			bool (*poll)(void *arg, bool last), void *arg)
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
 * @tx: its sending side
 * @rx: its receiving side
 *
 * Context: Process context. A poll may be under way until the next RCU grace period is
 * over; the endpoint's memory stays that long.
 */
void kofi_ep_del_source(struct kofi_side *tx, struct kofi_side *rx)
{
	if (tx->cq)
		kofi_source_del(tx->cq, &tx->source);
	if (rx->cq && rx->cq != tx->cq)
		kofi_source_del(rx->cq, &rx->source);
}
EXPORT_SYMBOL_NS_GPL(kofi_ep_del_source, KOFI_PROVIDER);
