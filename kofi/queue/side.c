// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Directions of endpoints: their bindings and default flags. */
#include "queue.h"

static int kofi_ep_bind_cntr(struct kofi_side *tx, struct kofi_side *rx,
			     struct kofi_cntr *cntr, u64 flags)
{
	if (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) && !rx->events)
		return -EOPNOTSUPP;
	if (flags & FI_SEND)
		tx->cntr[KOFI_CNTR_MSG] = cntr;
	if (flags & FI_READ)
		tx->cntr[KOFI_CNTR_READ] = cntr;
	if (flags & FI_WRITE)
		tx->cntr[KOFI_CNTR_WRITE] = cntr;
	if (flags & FI_RECV)
		rx->cntr[KOFI_CNTR_MSG] = cntr;
	if (flags & FI_REMOTE_READ)
		rx->cntr[KOFI_CNTR_READ] = cntr;
	if (flags & FI_REMOTE_WRITE)
		rx->cntr[KOFI_CNTR_WRITE] = cntr;
	tx->counted |= flags & (FI_SEND | FI_READ | FI_WRITE);
	rx->counted |= flags & FI_RECV;
	return 0;
}

/**
 * kofi_ep_bind() - bind an endpoint to a completion queue, counter or event queue
 * @tx: the endpoint's sending side
 * @rx: the endpoint's receiving side
 * @bfid: the completion queue, counter or event queue
 * @flags: flags, checked by fi_ep_bind()
 *
 * The common part of fi_ops.bind for providers without connections. Accepts and ignores
 * event queues. The provider binds address vectors itself.
 *
 * Context: Process context, before the endpoint is enabled.
 * Return: 0, or -EOPNOTSUPP, also for counters of reads and writes by peers without FI_RMA_EVENT.
 */
int kofi_ep_bind(struct kofi_side *tx, struct kofi_side *rx, struct fid *bfid,
		 u64 flags)
{
	struct kofi_side *sides[] = {
		flags & FI_TRANSMIT ? tx : NULL, flags & FI_RECV ? rx : NULL,
	};
	int i;

	if (bfid->fclass == FI_CLASS_CNTR)
		return kofi_ep_bind_cntr(tx, rx, container_of(bfid, struct kofi_cntr,
							      cntr_fid.fid), flags);
	if (bfid->fclass != FI_CLASS_CQ)
		return bfid->fclass == FI_CLASS_EQ ? 0 : -EOPNOTSUPP;
	for (i = 0; i < ARRAY_SIZE(sides); i++) {
		if (sides[i]) {
			sides[i]->cq = container_of(bfid, struct kofi_cq, cq_fid.fid);
			sides[i]->selective = flags & FI_SELECTIVE_COMPLETION;
			sides[i]->lazy = flags & FI_LAZY_COMPLETION;
		}
	}
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kofi_ep_bind, KOFI_PROVIDER);

/**
 * kofi_ep_opsflag() - get or set the default flags of a direction
 * @tx: the endpoint's sending side
 * @rx: the endpoint's receiving side
 * @command: FI_GETOPSFLAG or FI_SETOPSFLAG; others fail with -EOPNOTSUPP
 * @arg: FI_TRANSMIT or FI_RECV, together with the flags to set; takes the flags
 *
 * fi_endpoint(3). Data calls may read kofi_side.op_flags concurrently.
 *
 * Context: Any.
 * Return: 0, -EINVAL, -FI_EBADFLAGS, -EOPNOTSUPP.
 */
int kofi_ep_opsflag(struct kofi_side *tx, struct kofi_side *rx, int command,
		    u64 *arg)
{
	const u64 which = FI_TRANSMIT | FI_RECV;
	struct kofi_side *side;

	if (command != FI_GETOPSFLAG && command != FI_SETOPSFLAG)
		return -EOPNOTSUPP;
	if (!arg || !(*arg & which) || !(~*arg & which))
		return -EINVAL;
	side = *arg & FI_TRANSMIT ? tx : rx;
	if (command == FI_SETOPSFLAG && *arg & ~which & ~side->known)
		return -FI_EBADFLAGS;
	if (command == FI_SETOPSFLAG)
		WRITE_ONCE(side->op_flags, *arg & ~which);
	else
		*arg = side->op_flags;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kofi_ep_opsflag, KOFI_PROVIDER);
