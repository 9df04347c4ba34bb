// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Doorbells of queues, and events of completion queues.
 *
 * The device sees only the last value written to a doorbell. That suffices for send and
 * receive queues, whose doorbells are counters. A write to the doorbell of a completion queue
 * arms the queue, and the write of the next poll may overwrite it. So the device sends one
 * event for each serial number, even if it hasn't seen the queue armed; the host changes the
 * serial number when it handles an event. All event queues share one register for arming, so
 * they are treated as always armed. The host may get a superfluous event, but never misses
 * one.
 */
#include <linux/bitfield.h>
#include <linux/io.h>

#include "pci.h"

static bool qp_doorbell(struct efasim_pqp *qp)
{
	u16 sq = readl(qp->db), rq = readl(qp->db + 4);
	bool rang = false;

	if (qp->has_rq && rq != qp->rq_seen) {
		qp->rq_seen = rq;
		efasim_rq_doorbell(qp->hw, rq);
		rang = true;
	}
	if (sq != qp->sq_seen) {
		qp->sq_seen = sq;
		efasim_sq_doorbell(qp->hw, sq);
		rang = true;
	}
	return rang;
}

/* Read the doorbells of all send and receive queues. Return: whether one has changed. */
bool efasim_fn_doorbells(struct efasim_fn *fn)
{
	struct efasim_pqp *qp;
	unsigned long flags;
	bool rang = false;

	spin_lock_irqsave(&fn->lock, flags);
	list_for_each_entry(qp, &fn->qps, node)
		rang |= qp_doorbell(qp);
	spin_unlock_irqrestore(&fn->lock, flags);
	return rang;
}

static void put_event(struct efasim_fn *fn, const struct efasim_pcq *cq)
{
	struct efasim_peq *eq = &fn->eqs[cq->eq];
	struct efasim_eqe eqe = { .cq = cpu_to_le16(cq->hw->index) };
	u64 addr;

	lockdep_assert_held(&fn->lock);
	if (!eq->depth)
		return;
	addr = eq->addr + (eq->prod & (eq->depth - 1)) * sizeof(eqe);
	eqe.common = cpu_to_le32(!(eq->prod & eq->depth));
	efasim_dev_dma(&fn->eng, addr + sizeof(eqe.common), &eqe.reserved,
		       sizeof(eqe) - sizeof(eqe.common), EFASIM_MR_WRITE_TO);
	/* The host reads the phase before the rest. */
	dma_wmb();
	efasim_dev_dma(&fn->eng, addr, &eqe.common, sizeof(eqe.common),
		       EFASIM_MR_WRITE_TO);
	eq->prod++;
	efasim_fn_raise(fn, eq->vector);
}

static u16 posted(const struct efasim_cq *cq)
{
	u16 n = 0;
	u32 i;

	for (i = 0; i < cq->dev->limits.subs; i++)
		n += READ_ONCE(cq->sub[i].prod);
	return n;
}

/* Send events for completion queues with entries that the host hasn't consumed. */
void efasim_fn_events(struct efasim_fn *fn)
{
	struct efasim_pcq *cq;
	unsigned long flags;
	u32 db;

	spin_lock_irqsave(&fn->lock, flags);
	list_for_each_entry(cq, &fn->cqs, node) {
		db = readl(cq->db);
		if (cq->told == FIELD_GET(EFASIM_CQ_DB_SN, db) ||
		    posted(cq->hw) == FIELD_GET(EFASIM_CQ_DB_CONSUMER, db))
			continue;
		cq->told = FIELD_GET(EFASIM_CQ_DB_SN, db);
		put_event(fn, cq);
	}
	spin_unlock_irqrestore(&fn->lock, flags);
}

static void fetch(struct efasim_dev *eng)
{
	efasim_fn_doorbells(to_fn(eng));
}

static void notify(struct efasim_dev *eng)
{
	efasim_fn_events(to_fn(eng));
}

/* The engine's queues are never armed, because efasim_fn_events() sends the events. */
const struct efasim_fe_ops efasim_pci_fe_ops = {
	.fetch = fetch,
	.notify = notify,
	.host_waits = true,
};
