// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a data call reaches when it isn't the provider: an op that the provider
 * lacks, an endpoint that isn't enabled yet, a device that went away. With
 * these behind every pointer, no data call needs a branch. Those of an endpoint all
 * come down to two calls, see calls.c.
 */
#include "kofi.h"

#define STUB(set, op, rc, ...) \
	static ssize_t set##_##op(__VA_ARGS__) { return rc; }
#define INT_STUB(set, op, rc, ...) \
	static int set##_##op(__VA_ARGS__) { return rc; }

#define CALLS_STUB(set, rc)						\
STUB(set, call, rc, struct fid_ep *ep, struct kofi_req *req)		\
const struct kofi_calls set = { .tx = set##_call, .rx = set##_call }

#define MR_STUBS(set, rc)						\
INT_STUB(set, reg, rc, struct fid_mr *mr,				\
	const struct fi_mr_attr *attr, u64 flags)			\
INT_STUB(set, inval, rc, struct fid_mr *mr, u64 flags, void *context)	\
const struct fi_ops_mr set = {						\
	.post_reg = set##_reg, .post_inval = set##_inval,		\
}

CALLS_STUB(kofi_calls_none, -EOPNOTSUPP);
CALLS_STUB(kofi_calls_early, -FI_EOPBADSTATE);
CALLS_STUB(kofi_calls_dead, -ENODEV);
MR_STUBS(kofi_mr_none, -EOPNOTSUPP);
MR_STUBS(kofi_mr_dead, -ENODEV);

#define CQ	struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src
#define CQ_ERR	struct fid_cq *cq, struct fi_cq_err_entry *buf, u64 flags
#define CNTR	struct fid_cntr *cntr

STUB(cq_none, readfrom, -EOPNOTSUPP, CQ)
STUB(cq_none, readerr, -EOPNOTSUPP, CQ_ERR)
STUB(cq_none, sreadfrom, -EOPNOTSUPP, CQ, const void *cond, int timeout)
INT_STUB(cq_none, signal, -EOPNOTSUPP, struct fid_cq *cq)

static const struct fi_ops_cq kofi_cq_none = {
	.readfrom = cq_none_readfrom, .readerr = cq_none_readerr,
	.sreadfrom = cq_none_sreadfrom, .signal = cq_none_signal,
};

static u64 cntr_none_read(CNTR)
{
	return 0;
}

INT_STUB(cntr_none, set, -EOPNOTSUPP, CNTR, u64 value)
INT_STUB(cntr_none, wait, -EOPNOTSUPP, CNTR, u64 threshold, int timeout)

static const struct fi_ops_cntr kofi_cntr_none = {
	.read = cntr_none_read, .readerr = cntr_none_read,
	.add = cntr_none_set, .adderr = cntr_none_set,
	.set = cntr_none_set, .seterr = cntr_none_set,
	.wait = cntr_none_wait,
};

#define KOFI_OPS(type) (sizeof(type) / sizeof(kofi_fn))

/**
 * kofi_fill_room() - entries of kofi_node.fns that an object may need
 * @fclass: what it is
 *
 * Context: Any.
 * Return: how many.
 */
unsigned int kofi_fill_room(enum fi_class fclass)
{
	switch (fclass) {
	case FI_CLASS_EP:
		return (sizeof(struct fi_ops_msg) +
			sizeof(struct fi_ops_tagged) +
			sizeof(struct fi_ops_rma)) / sizeof(kofi_fn);
	case FI_CLASS_MR:
		return KOFI_OPS(struct fi_ops_mr);
	case FI_CLASS_CQ:
		return KOFI_OPS(struct fi_ops_cq);
	case FI_CLASS_CNTR:
		return KOFI_OPS(struct fi_ops_cntr);
	default:
		return 0;
	}
}

/*
 * A vector is only pointers to functions. One that is whole is used where it
 * is, in read-only memory; another is copied and the gaps are filled.
 */
static const void *kofi_fill(kofi_fn **room, const void *ops, const void *none,
			     unsigned int count)
{
	const kofi_fn *from = ops, *stub = none;
	kofi_fn *to = *room;
	bool whole = true;
	unsigned int i;

	if (!from)
		return none;
	for (i = 0; i < count; i++) {
		to[i] = from[i] ?: stub[i];
		whole = whole && from[i];
	}
	*room += count;
	return whole ? ops : to;
}

#define KOFI_FILL(room, ops, none) \
	kofi_fill(room, ops, &(none), KOFI_OPS(typeof(none)))

/**
 * kofi_fill_ops() - put something behind every data call of an object
 * @node: its node, made for its class
 * @fid: the object, as the provider returned it
 *
 * Context: Process context.
 */
void kofi_fill_ops(struct kofi_node *node, struct fid *fid)
{
	kofi_fn *room = node->fns;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;

	switch (fid->fclass) {
	case FI_CLASS_EP:
		ep = kofi_to_ep(fid);
		node->calls = ep->calls ?: &kofi_calls_none;
		node->msg = KOFI_FILL(&room, ep->msg, kofi_msg_calls);
		node->tagged = KOFI_FILL(&room, ep->tagged, kofi_tagged_calls);
		node->rma = KOFI_FILL(&room, ep->rma, kofi_rma_calls);
		kofi_ep_set_calls(node, ep, KOFI_OPEN);
		break;
	case FI_CLASS_MR:
		mr = container_of(fid, struct fid_mr, fid);
		mr->ops = KOFI_FILL(&room, mr->ops, kofi_mr_none);
		break;
	case FI_CLASS_CQ:
		cq = container_of(fid, struct fid_cq, fid);
		cq->ops = KOFI_FILL(&room, cq->ops, kofi_cq_none);
		break;
	case FI_CLASS_CNTR:
		cntr = container_of(fid, struct fid_cntr, fid);
		cntr->ops = KOFI_FILL(&room, cntr->ops, kofi_cntr_none);
		break;
	default:
		break;
	}
}
