// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Doorbells of queues, and events of completion queues.
 *
 * Of what was written to a doorbell only the last is seen. That is enough for send and
 * receive queues, whose doorbells count. That of a completion queue arms, and the next
 * poll writes over it: so each of its serial numbers, which the host changes when it
 * takes an event, is good for one event, whether or not its being armed was seen. The
 * register by which event queues are armed is one for all, so they count as armed. A
 * host may get an event too many, but never waits for one that doesn't come.
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

/* Look at all send and receive queues. Return: whether one has something new. */
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
	/* The host reads the rest after the phase. */
	dma_wmb();
	efasim_dev_dma(&fn->eng, addr, &eqe.common, sizeof(eqe.common),
		       EFASIM_MR_WRITE_TO);
	eq->prod++;
	efasim_fn_raise(fn, eq->vector);
}

static u16 posted(const struct efasim_cq *cq)
{
	return READ_ONCE(cq->sub[EFASIM_SUB_SEND].prod) +
	       READ_ONCE(cq->sub[EFASIM_SUB_RECV].prod);
}

/* Tell the host of queues that have something which it hasn't taken. */
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

/* Nobody arms the engine's queues: events are made above. */
const struct efasim_fe_ops efasim_pci_fe_ops = {
	.fetch = fetch,
	.notify = notify,
	.host_waits = true,
};
