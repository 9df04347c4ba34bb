/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For providers only: the queue and counters of each direction of an endpoint, and its
 * options. Symbols are in the namespace KOFI_PROVIDER.
 */
#ifndef KOFI_SIDE_H
#define KOFI_SIDE_H

#include <linux/string.h>
#include <kofi/queue.h>

/**
 * enum kofi_side_cntr - the counters of a direction
 * @KOFI_CNTR_MSG: counts messages
 * @KOFI_CNTR_READ: counts reads; for the receiving direction, reads by peers
 * @KOFI_CNTR_WRITE: counts writes; for the receiving direction, writes by peers
 * @KOFI_CNTRS: number of counters
 */
enum kofi_side_cntr {
	KOFI_CNTR_MSG,
	KOFI_CNTR_READ,
	KOFI_CNTR_WRITE,
	KOFI_CNTRS,
};

/**
 * struct kofi_side - one direction of an endpoint, for providers to embed
 * @cq: completion queue of the direction's operations, or NULL
 * @op_flags: default flags, for calls without a flags argument
 * @known: flags that @op_flags may have
 * @cntr: counters by enum kofi_side_cntr, each may be NULL
 * @size: maximum number of outstanding operations
 * @selective: successful operations have a completion only with FI_COMPLETION
 * @lazy: for the sending direction, nobody waits for operations without FI_COMPLETION: their
 *	completions may be reported late, see FI_LAZY_COMPLETION in fi_ep_bind()
 * @counted: at least one counter of the direction's own operations is bound
 * @events: for the receiving direction, FI_RMA_EVENT was granted, so counters of reads and writes
 *	by peers may be bound
 * @source: the endpoint as a source of @cq, from kofi_ep_add_source() on
 *
 * The provider sets @op_flags, @known, @size and @events; kofi_ep_bind() sets the other members.
 */
struct kofi_side {
	struct kofi_cq		*cq;
	u64			op_flags;
	u64			known;
	struct kofi_cntr	*cntr[KOFI_CNTRS];
	u32			size;
	bool			selective;
	bool			lazy;
	bool			counted;
	bool			events;
	struct kofi_source	source;
};

int kofi_ep_bind(struct kofi_side *tx, struct kofi_side *rx, struct fid *bfid,
		 u64 flags);
int kofi_ep_opsflag(struct kofi_side *tx, struct kofi_side *rx, int command,
		    u64 *arg);
void kofi_ep_add_source(struct kofi_side *tx, struct kofi_side *rx,
			bool (*poll)(void *arg, bool last, struct kofi_cq_reader *reader),
			void *arg);
void kofi_ep_del_source(struct kofi_side *tx, struct kofi_side *rx);

/**
 * kofi_side_quiet() - check whether an operation has no completion on success
 * @side: the operation's direction
 * @flags: the operation's flags, including those from kofi_req_flags()
 *
 * Context: Any.
 * Return: true if it has no completion. With kofi_req.quiet an operation never has one.
 */
static inline bool kofi_side_quiet(const struct kofi_side *side, u64 flags)
{
	return side->selective && !(flags & FI_COMPLETION);
}

/**
 * kofi_side_reserve() - reserve an entry for an operation's completion
 * @side: the operation's direction
 *
 * Context: As kofi_cq_reserve().
 * Return: 0, or -EAGAIN.
 */
static inline int kofi_side_reserve(const struct kofi_side *side)
{
	return side->cq ? kofi_cq_reserve(side->cq) : 0;
}

/**
 * kofi_side_unreserve() - undo kofi_side_reserve()
 * @side: the direction
 *
 * Context: As kofi_cq_unreserve_some().
 */
static inline void kofi_side_unreserve(const struct kofi_side *side)
{
	if (side->cq)
		kofi_cq_unreserve(side->cq);
}

/**
 * kofi_copy_out() - copy an option's value or an address to the caller
 * @to: the caller's buffer
 * @len: size of @to; takes the size of the value
 * @from: the value
 * @size: size of the value
 *
 * For fi_getopt() and fi_getname(). Copies the whole value or nothing.
 *
 * Context: Any.
 * Return: 0, or -FI_ETOOSMALL.
 */
static inline int kofi_copy_out(void *to, size_t *len, const void *from, size_t size)
{
	size_t room = *len;

	*len = size;
	if (room < size)
		return -FI_ETOOSMALL;
	memcpy(to, from, size);
	return 0;
}

/**
 * struct kofi_opt - an option that an endpoint has, and its value
 * @name: FI_OPT_TX_SIZE and so on
 * @value: the value
 */
struct kofi_opt {
	int	name;
	size_t	value;
};

/**
 * kofi_getopt() - get an option from a table
 * @opts: all options of the endpoint whose values are of type size_t
 * @count: number of @opts
 * @optname: as for fi_getopt()
 * @optval: as for fi_getopt()
 * @optlen: as for fi_getopt()
 *
 * Context: Any.
 * Return: 0, -ENOPROTOOPT, -FI_ETOOSMALL.
 */
static inline int kofi_getopt(const struct kofi_opt *opts, size_t count, int optname,
			      void *optval, size_t *optlen)
{
	for (; count; count--, opts++)
		if (opts->name == optname)
			return kofi_copy_out(optval, optlen, &opts->value, sizeof(opts->value));
	return -ENOPROTOOPT;
}

/**
 * kofi_side_count() - count an operation in the counter for it, if there is one
 * @side: the operation's direction
 * @what: kofi_req.what of the operation; for a peer's read or write, what it is for the peer
 * @len: number of bytes transferred
 * @failed: whether the operation failed
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_side_count(const struct kofi_side *side, u64 what, size_t len,
				   bool failed)
{
	struct kofi_cntr *cntr = side->cntr[what & FI_READ ? KOFI_CNTR_READ :
					    what & FI_WRITE ? KOFI_CNTR_WRITE :
							      KOFI_CNTR_MSG];

	if (cntr && failed)
		kofi_cntr_failed(cntr);
	else if (cntr)
		kofi_cntr_done(cntr, len);
}

/**
 * kofi_side_tell_room() - notify a ULP that a refused post may succeed now
 * @side: the direction whose posts were refused
 *
 * Notifies through the completion queue, or without one through the counters.
 *
 * Context: Process or softirq context; doesn't sleep.
 */
static inline void kofi_side_tell_room(const struct kofi_side *side)
{
	int i;

	if (side->cq)
		kofi_cq_tell_room(side->cq);
	for (i = 0; !side->cq && i < KOFI_CNTRS; i++)
		if (side->cntr[i])
			kofi_cntr_tell_room(side->cntr[i]);
}

#endif /* KOFI_SIDE_H */
