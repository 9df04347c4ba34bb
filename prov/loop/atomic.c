// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomic operations. They wait for the target's worker as reads and writes do. It gathers the
 * operands in its page, has the core do the arithmetic in the target's memory, and scatters the old
 * values.
 */
#include "loop.h"

/* Where a worker has its operands, the values to compare with, and the old values. */
enum {
	LOOP_OPERAND	= 0,
	LOOP_COMPARAND	= LOOP_MAX_ATOMIC,
	LOOP_RESULT	= 2 * LOOP_MAX_ATOMIC,
};

static_assert(LOOP_RESULT + LOOP_MAX_ATOMIC <= PAGE_SIZE);

/**
 * loop_atomic_ok() - check an atomic request
 * @req: the request
 *
 * Context: Any.
 * Return: 0, or a negative errno.
 */
int loop_atomic_ok(const struct kofi_req *req)
{
	size_t len;
	int ret;

	ret = kofi_atomic_check(loop_atomic_req(req), LOOP_RMA_IOV, LOOP_MAX_ATOMIC, &len);
	if (ret)
		return ret;
	return req->flags & FI_INJECT && len > LOOP_INJECT ? -EMSGSIZE : 0;
}

/**
 * loop_atomic_hold() - store an atomic request in its operation
 * @op: the operation
 * @req: the request
 *
 * Context: Any.
 */
void loop_atomic_hold(struct loop_op *op, const struct kofi_req *req)
{
	const struct kofi_atomic_req *areq = loop_atomic_req(req);
	const size_t size = kofi_arith_size(areq->datatype);
	struct loop_atomic *atomic = &op->atomic;
	size_t i, n = 0;

	atomic->datatype = areq->datatype;
	atomic->op = areq->op;
	kofi_elements_hold(&atomic->operand, &areq->operand);
	kofi_elements_hold(&atomic->comparand, &areq->comparand);
	kofi_elements_hold(&atomic->result, &areq->result);
	for (i = 0; i < areq->rma_count; i++) {
		op->rma[i] = (struct fi_rma_iov) {
			.addr	= areq->rma[i].addr,
			.len	= areq->rma[i].count * size,
			.key	= areq->rma[i].key,
		};
		n += areq->rma[i].count;
	}
	if (req->flags & FI_INJECT) {
		kofi_elements_get(&atomic->operand, size, op->inject);
		atomic->operand.one = (struct fi_ioc) { op->inject, n };
		atomic->operand.iov = &atomic->operand.one;
		atomic->operand.count = 1;
	}
	op->req.rma = op->rma;
	op->req.rma_count = areq->rma_count;
}

/**
 * loop_atomic_access() - get the access that an atomic operation needs
 * @op: the operation
 *
 * Context: Any.
 * Return: FI_REMOTE_READ and FI_REMOTE_WRITE, or one of them.
 */
u64 loop_atomic_access(const struct loop_op *op)
{
	if (op->req.what & FI_WRITE)
		return FI_REMOTE_WRITE;
	return FI_REMOTE_READ | (op->atomic.op == FI_ATOMIC_READ ? 0 : FI_REMOTE_WRITE);
}

/* Carry out an operation on a part of a region. */
static void loop_atomic_run(const struct loop_mr *mr, const struct loop_atomic *atomic, u64 off,
			    size_t len, void *page)
{
	const size_t size = kofi_arith_size(atomic->datatype);
	const struct bio_vec *bv;
	size_t n;

	for (bv = mr->pages; len; bv++) {
		if (off >= bv->bv_len) {
			off -= bv->bv_len;
			continue;
		}
		n = min_t(size_t, len, bv->bv_len - off);
		kofi_arith(atomic->datatype, atomic->op, bv->bv_page, bv->bv_offset + off,
			   atomic->op == FI_ATOMIC_READ ? NULL : page + LOOP_OPERAND,
			   atomic->comparand.count ? page + LOOP_COMPARAND : NULL,
			   page + LOOP_RESULT, n / size);
		page += n;
		len -= n;
		off = 0;
	}
}

/**
 * loop_move_atomic() - carry out an atomic operation
 * @ep: the target
 * @op: the operation, whose regions are pinned
 *
 * Context: Process context, the target's worker.
 */
void loop_move_atomic(struct loop_ep *ep, struct loop_op *op)
{
	const struct loop_atomic *atomic = &op->atomic;
	const size_t size = kofi_arith_size(atomic->datatype);
	const struct fi_rma_iov *rma;
	struct loop_mr *mr;
	size_t i;

	if (atomic->op != FI_ATOMIC_READ)
		kofi_elements_get(&atomic->operand, size, ep->page + LOOP_OPERAND);
	kofi_elements_get(&atomic->comparand, size, ep->page + LOOP_COMPARAND);
	for (i = 0; i < op->req.rma_count; i++) {
		rma = &op->req.rma[i];
		mr = op->mrs[i];
		loop_atomic_run(mr, atomic, rma->addr - mr->mr_fid.base_addr, rma->len,
				ep->page + op->len);
		op->len += rma->len;
	}
	kofi_elements_put(&atomic->result, size, ep->page + LOOP_RESULT);
}

/**
 * loop_query_atomic() - get the limits of an atomic operation
 * @domain: the domain
 * @datatype: type of the elements
 * @op: the operation
 * @attr: takes the limits
 * @flags: FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC, or 0
 *
 * Serves as fi_ops_domain.query_atomic.
 *
 * Context: Any.
 * Return: 0, or -EOPNOTSUPP.
 */
int loop_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		      struct fi_atomic_attr *attr, u64 flags)
{
	return kofi_arith_query(datatype, op, flags, LOOP_MAX_ATOMIC, attr);
}
