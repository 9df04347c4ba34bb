// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a data call reaches when it isn't the provider: an op that the provider
 * lacks, an endpoint that isn't enabled yet, a device that went away. With
 * these behind every pointer, no data call needs a branch.
 */
#include "kofi.h"

#define STUB(set, op, rc, ...) \
	static ssize_t set##_##op(__VA_ARGS__) { return rc; }
#define INT_STUB(set, op, rc, ...) \
	static int set##_##op(__VA_ARGS__) { return rc; }

#define EP	struct fid_ep *ep
#define BUF	void *buf, size_t len
#define CBUF	const void *buf, size_t len
#define IOV	const struct kvec *iov, void **desc, size_t count
#define TO	fi_addr_t addr
#define RMT	u64 raddr, u64 key

#define MSG_STUBS(set, rc)						\
STUB(set, recv, rc, EP, BUF, void *desc, TO, void *context)		\
STUB(set, iov, rc, EP, IOV, TO, void *context)				\
STUB(set, msg, rc, EP, const struct fi_msg *msg, u64 flags)		\
STUB(set, send, rc, EP, CBUF, void *desc, TO, void *context)		\
STUB(set, inject, rc, EP, CBUF, TO)					\
STUB(set, senddata, rc, EP, CBUF, void *desc, u64 data, TO,		\
	void *context)							\
STUB(set, injectdata, rc, EP, CBUF, u64 data, TO)			\
const struct fi_ops_msg set = {						\
	.recv = set##_recv, .recvv = set##_iov, .recvmsg = set##_msg,	\
	.send = set##_send, .sendv = set##_iov, .sendmsg = set##_msg,	\
	.inject = set##_inject, .senddata = set##_senddata,		\
	.injectdata = set##_injectdata,					\
}

#define TAGGED_STUBS(set, rc)						\
STUB(set, recv, rc, EP, BUF, void *desc, TO, u64 tag,			\
	u64 ignore, void *context)					\
STUB(set, recvv, rc, EP, IOV, TO, u64 tag, u64 ignore,			\
	void *context)							\
STUB(set, msg, rc, EP, const struct fi_msg_tagged *msg,			\
	u64 flags)							\
STUB(set, send, rc, EP, CBUF, void *desc, TO, u64 tag,			\
	void *context)							\
STUB(set, sendv, rc, EP, IOV, TO, u64 tag, void *context)		\
STUB(set, inject, rc, EP, CBUF, TO, u64 tag)				\
STUB(set, senddata, rc, EP, CBUF, void *desc, u64 data, TO,		\
	u64 tag, void *context)						\
STUB(set, injectdata, rc, EP, CBUF, u64 data, TO, u64 tag)		\
const struct fi_ops_tagged set = {					\
	.recv = set##_recv, .recvv = set##_recvv, .recvmsg = set##_msg,	\
	.send = set##_send, .sendv = set##_sendv, .sendmsg = set##_msg,	\
	.inject = set##_inject, .senddata = set##_senddata,		\
	.injectdata = set##_injectdata,					\
}

#define RMA_STUBS(set, rc)						\
STUB(set, read, rc, EP, BUF, void *desc, TO, RMT, void *context) \
STUB(set, iov, rc, EP, IOV, TO, RMT, void *context)			\
STUB(set, msg, rc, EP, const struct fi_msg_rma *msg, u64 flags) \
STUB(set, write, rc, EP, CBUF, void *desc, TO, RMT,			\
	void *context)							\
STUB(set, inject, rc, EP, CBUF, TO, RMT)				\
STUB(set, writedata, rc, EP, CBUF, void *desc, u64 data, TO,		\
	RMT, void *context)						\
STUB(set, injectdata, rc, EP, CBUF, u64 data, TO, RMT)			\
const struct fi_ops_rma set = {						\
	.read = set##_read, .readv = set##_iov, .readmsg = set##_msg,	\
	.write = set##_write, .writev = set##_iov, .writemsg = set##_msg, \
	.inject = set##_inject, .writedata = set##_writedata,		\
	.injectdata = set##_injectdata,					\
}

#define MR_STUBS(set, rc)						\
INT_STUB(set, reg, rc, struct fid_mr *mr,				\
	const struct fi_mr_attr *attr, u64 flags)			\
INT_STUB(set, inval, rc, struct fid_mr *mr, u64 flags, void *context)	\
const struct fi_ops_mr set = {						\
	.post_reg = set##_reg, .post_inval = set##_inval,		\
}

MSG_STUBS(kofi_msg_none, -EOPNOTSUPP);
MSG_STUBS(kofi_msg_early, -FI_EOPBADSTATE);
MSG_STUBS(kofi_msg_dead, -ENODEV);
TAGGED_STUBS(kofi_tagged_none, -EOPNOTSUPP);
TAGGED_STUBS(kofi_tagged_early, -FI_EOPBADSTATE);
TAGGED_STUBS(kofi_tagged_dead, -ENODEV);
RMA_STUBS(kofi_rma_none, -EOPNOTSUPP);
RMA_STUBS(kofi_rma_early, -FI_EOPBADSTATE);
RMA_STUBS(kofi_rma_dead, -ENODEV);
MR_STUBS(kofi_mr_none, -EOPNOTSUPP);
MR_STUBS(kofi_mr_dead, -ENODEV);

#define CQ	struct fid_cq *cq, void *buf, size_t count
#define CQ_ERR	struct fid_cq *cq, struct fi_cq_err_entry *buf, u64 flags
#define WAIT	const void *cond, int timeout
#define CNTR	struct fid_cntr *cntr

STUB(cq_none, read, -EOPNOTSUPP, CQ)
STUB(cq_none, readfrom, -EOPNOTSUPP, CQ, fi_addr_t *src)
STUB(cq_none, readerr, -EOPNOTSUPP, CQ_ERR)
STUB(cq_none, sread, -EOPNOTSUPP, CQ, WAIT)
STUB(cq_none, sreadfrom, -EOPNOTSUPP, CQ, fi_addr_t *src, WAIT)
INT_STUB(cq_none, signal, -EOPNOTSUPP, struct fid_cq *cq)

static const struct fi_ops_cq kofi_cq_none = {
	.read = cq_none_read, .readfrom = cq_none_readfrom,
	.readerr = cq_none_readerr, .sread = cq_none_sread,
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

/* A kind of calls that an endpoint has gets its gaps filled with the core's. */
#define KOFI_EP_FILL(room, ep, set)					\
	((ep)->set && (ep)->calls ?					\
	 KOFI_FILL(room, (ep)->set, kofi_##set##_calls) :		\
	 KOFI_FILL(room, (ep)->set, kofi_##set##_none))

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
		node->msg = KOFI_EP_FILL(&room, ep, msg);
		node->tagged = KOFI_EP_FILL(&room, ep, tagged);
		node->rma = KOFI_EP_FILL(&room, ep, rma);
		ep->msg = &kofi_msg_early;
		ep->tagged = &kofi_tagged_early;
		ep->rma = &kofi_rma_early;
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
