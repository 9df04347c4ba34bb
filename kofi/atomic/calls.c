// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Atomic calls: those that form a request, as in kofi/calls.c, and those that tell what a provider
 * supports.
 */
#include <linux/overflow.h>
#include "../kofi.h"

/* --- requests --- */

/* An overflowing sum becomes SIZE_MAX, which every provider refuses as too long. */
static size_t kofi_ioc_count(const struct fi_ioc *iov, size_t count)
{
	size_t i, n = 0;

	for (i = 0; iov && i < count; i++)
		n = size_add(n, iov[i].count);
	return n;
}

static ssize_t kofi_atomic_post(struct fid_ep *ep, struct kofi_atomic_req *areq)
{
	return ep->req->tx(ep, &areq->req);
}

/* The peer's memory is one segment with as many elements as @n. */
static ssize_t kofi_atomic_plain(struct fid_ep *ep, struct kofi_atomic_req *areq, size_t n,
				 u64 addr, u64 key)
{
	const struct fi_rma_ioc rma = { addr, n, key };

	areq->rma = &rma;
	areq->rma_count = 1;
	return kofi_atomic_post(ep, areq);
}

#define IOCS(_iov, _desc, _count)	{ .iov = _iov, .desc = _desc, .count = _count }

/* Requests of calls without flags, and of calls with a message and flags. */
#define REQ(_what, ...)							\
	(&(struct kofi_atomic_req) {					\
		.req = { .what = FI_ATOMIC | (_what), .defaults = true,	\
			 .addr = dest_addr, .context = context },	\
		.datatype = datatype, .op = op, ##__VA_ARGS__ })
#define MSG(_what, ...)							\
	(&(struct kofi_atomic_req) {					\
		.req = { .what = FI_ATOMIC | (_what), .flags = flags,	\
			 .addr = msg->addr, .context = msg->context },	\
		.datatype = msg->datatype, .op = msg->op,		\
		.rma = msg->rma_iov, .rma_count = msg->rma_iov_count,	\
		.operand = IOCS(msg->msg_iov, msg->desc, msg->iov_count), ##__VA_ARGS__ })

ssize_t kofi_req_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			 fi_addr_t dest_addr, u64 addr, u64 key, enum fi_datatype datatype,
			 enum fi_op op, void *context)
{
	return kofi_atomic_plain(ep, REQ(FI_WRITE, .operand = IOCS(iov, desc, count)),
				 kofi_ioc_count(iov, count), addr, key);
}
EXPORT_SYMBOL_NS_GPL(kofi_req_atomicv, KOFI_PROVIDER);

ssize_t kofi_req_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			fi_addr_t dest_addr, u64 addr, u64 key, enum fi_datatype datatype,
			enum fi_op op, void *context)
{
	const struct fi_ioc ioc = { (void *)buf, count };

	return kofi_req_atomicv(ep, &ioc, &desc, 1, dest_addr, addr, key, datatype, op, context);
}
EXPORT_SYMBOL_NS_GPL(kofi_req_atomic, KOFI_PROVIDER);

ssize_t kofi_req_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, u64 flags)
{
	return kofi_atomic_post(ep, MSG(FI_WRITE));
}
EXPORT_SYMBOL_NS_GPL(kofi_req_atomicmsg, KOFI_PROVIDER);

ssize_t kofi_req_inject_atomic(struct fid_ep *ep, const void *buf, size_t count,
			       fi_addr_t dest_addr, u64 addr, u64 key, enum fi_datatype datatype,
			       enum fi_op op)
{
	const struct fi_ioc ioc = { (void *)buf, count };
	struct kofi_atomic_req areq = {
		.req = { .what = FI_ATOMIC | FI_WRITE, .flags = FI_INJECT, .quiet = true,
			 .addr = dest_addr },
		.datatype = datatype, .op = op, .operand = IOCS(&ioc, NULL, 1),
	};

	return kofi_atomic_plain(ep, &areq, count, addr, key);
}
EXPORT_SYMBOL_NS_GPL(kofi_req_inject_atomic, KOFI_PROVIDER);

/* An atomic read needs no operands, so the old values determine the number of elements. */
ssize_t kofi_req_fetch_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
			       size_t count, struct fi_ioc *resultv, void **result_desc,
			       size_t result_count, fi_addr_t dest_addr, u64 addr, u64 key,
			       enum fi_datatype datatype, enum fi_op op, void *context)
{
	return kofi_atomic_plain(ep, REQ(FI_READ, .operand = IOCS(iov, desc, count),
					 .result = IOCS(resultv, result_desc, result_count)),
				 kofi_ioc_count(resultv, result_count), addr, key);
}
EXPORT_SYMBOL_NS_GPL(kofi_req_fetch_atomicv, KOFI_PROVIDER);

ssize_t kofi_req_fetch_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			      void *result, void *result_desc, fi_addr_t dest_addr, u64 addr,
			      u64 key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct fi_ioc ioc = { (void *)buf, count };
	struct fi_ioc res = { result, count };

	return kofi_req_fetch_atomicv(ep, &ioc, &desc, 1, &res, &result_desc, 1, dest_addr, addr,
				      key, datatype, op, context);
}
EXPORT_SYMBOL_NS_GPL(kofi_req_fetch_atomic, KOFI_PROVIDER);

ssize_t kofi_req_fetch_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				 struct fi_ioc *resultv, void **result_desc, size_t result_count,
				 u64 flags)
{
	return kofi_atomic_post(ep, MSG(FI_READ,
					.result = IOCS(resultv, result_desc, result_count)));
}
EXPORT_SYMBOL_NS_GPL(kofi_req_fetch_atomicmsg, KOFI_PROVIDER);

ssize_t kofi_req_compare_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				 size_t count, const struct fi_ioc *comparev, void **compare_desc,
				 size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest_addr, u64 addr, u64 key,
				 enum fi_datatype datatype, enum fi_op op, void *context)
{
	return kofi_atomic_plain(ep, REQ(FI_READ, .operand = IOCS(iov, desc, count),
					 .comparand = IOCS(comparev, compare_desc, compare_count),
					 .compare = true,
					 .result = IOCS(resultv, result_desc, result_count)),
				 kofi_ioc_count(iov, count), addr, key);
}
EXPORT_SYMBOL_NS_GPL(kofi_req_compare_atomicv, KOFI_PROVIDER);

ssize_t kofi_req_compare_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				const void *compare, void *compare_desc, void *result,
				void *result_desc, fi_addr_t dest_addr, u64 addr, u64 key,
				enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct fi_ioc ioc = { (void *)buf, count }, cmp = { (void *)compare, count };
	struct fi_ioc res = { result, count };

	return kofi_req_compare_atomicv(ep, &ioc, &desc, 1, &cmp, &compare_desc, 1, &res,
					&result_desc, 1, dest_addr, addr, key, datatype, op,
					context);
}
EXPORT_SYMBOL_NS_GPL(kofi_req_compare_atomic, KOFI_PROVIDER);

ssize_t kofi_req_compare_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				   const struct fi_ioc *comparev, void **compare_desc,
				   size_t compare_count, struct fi_ioc *resultv,
				   void **result_desc, size_t result_count, u64 flags)
{
	return kofi_atomic_post(ep, MSG(FI_READ, .compare = true,
					.comparand = IOCS(comparev, compare_desc, compare_count),
					.result = IOCS(resultv, result_desc, result_count)));
}
EXPORT_SYMBOL_NS_GPL(kofi_req_compare_atomicmsg, KOFI_PROVIDER);

const struct fi_ops_atomic kofi_req_atomic_ops = {
	.write		= kofi_req_atomic,
	.writev		= kofi_req_atomicv,
	.writemsg	= kofi_req_atomicmsg,
	.inject		= kofi_req_inject_atomic,
	.readwrite	= kofi_req_fetch_atomic,
	.readwritev	= kofi_req_fetch_atomicv,
	.readwritemsg	= kofi_req_fetch_atomicmsg,
	.compwrite	= kofi_req_compare_atomic,
	.compwritev	= kofi_req_compare_atomicv,
	.compwritemsg	= kofi_req_compare_atomicmsg,
};
EXPORT_SYMBOL_NS_GPL(kofi_req_atomic_ops, KOFI_PROVIDER);

/* --- checks of requests --- */

static int kofi_iocs_check(const struct kofi_iocs *iocs, size_t count, size_t limit)
{
	size_t i, n = 0;

	if (!iocs->iov || !iocs->count || iocs->count > limit)
		return -EINVAL;
	for (i = 0; i < iocs->count; i++) {
		if (iocs->iov[i].count && !iocs->iov[i].addr)
			return -EINVAL;
		n = size_add(n, iocs->iov[i].count);
	}
	return n == count ? 0 : -EINVAL;
}

/* Return: the number of elements in the peer's memory; 0 if it isn't valid. */
static size_t kofi_atomic_elements(const struct kofi_atomic_req *areq, size_t size, size_t limit)
{
	size_t i, n = 0, len;
	u64 end;

	if (!areq->rma || areq->rma_count > limit)
		return 0;
	for (i = 0; i < areq->rma_count; i++) {
		if (areq->rma[i].addr % size ||
		    check_mul_overflow(areq->rma[i].count, size, &len) ||
		    check_add_overflow(areq->rma[i].addr, (u64)len, &end))
			return 0;
		n = size_add(n, areq->rma[i].count);
	}
	return n;
}

/**
 * kofi_atomic_check() - check the parts of an atomic request that don't depend on the provider
 * @areq: the request
 * @limit: maximum number of segments, of operands and so on as well as of the peer's memory
 * @bytes: maximum length in bytes of the operands together with the values to compare with
 * @len: takes the length of the elements in bytes
 *
 * Context: Any.
 * Return: 0; -EOPNOTSUPP if there is no such operation for the type; -EMSGSIZE for too many
 * elements; -FI_EBADFLAGS; -EINVAL.
 */
int kofi_atomic_check(const struct kofi_atomic_req *areq, size_t limit, size_t bytes, size_t *len)
{
	const size_t size = kofi_arith_size(areq->datatype);
	const enum kofi_arith_kind kind = kofi_atomic_kind(areq);
	size_t n;
	int ret = 0;

	if (!kofi_arith_valid(kind, areq->datatype, areq->op))
		return -EOPNOTSUPP;
	/* Only constant buffers can be injected, and only messages and writes carry data. */
	if (areq->req.flags & FI_REMOTE_CQ_DATA ||
	    (kind != KOFI_ARITH_WRITE && areq->req.flags & FI_INJECT))
		return -FI_EBADFLAGS;
	n = kofi_atomic_elements(areq, size, limit);
	if (!n)
		return -EINVAL;
	if (n > bytes / size / (kind == KOFI_ARITH_COMPARE ? 2 : 1))
		return -EMSGSIZE;
	*len = n * size;
	if (areq->op != FI_ATOMIC_READ)
		ret = kofi_iocs_check(&areq->operand, n, limit);
	if (!ret && kind == KOFI_ARITH_COMPARE)
		ret = kofi_iocs_check(&areq->comparand, n, limit);
	if (!ret && kind != KOFI_ARITH_WRITE)
		ret = kofi_iocs_check(&areq->result, n, limit);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kofi_atomic_check, KOFI_PROVIDER);

/* --- segments that operations hold --- */

/**
 * kofi_elements_hold() - store the segments of a request in its operation
 * @elements: takes the segments; it must not be moved or copied afterwards
 * @iocs: the segments
 *
 * Context: Any.
 */
void kofi_elements_hold(struct kofi_elements *elements, const struct kofi_iocs *iocs)
{
	elements->count = iocs->iov ? iocs->count : 0;
	elements->iov = iocs->iov;
	if (elements->count != 1)
		return;
	elements->one = *iocs->iov;
	elements->iov = &elements->one;
}
EXPORT_SYMBOL_NS_GPL(kofi_elements_hold, KOFI_PROVIDER);

/**
 * kofi_elements_get() - copy elements from their segments
 * @elements: the segments
 * @size: size of an element
 * @to: takes all elements
 *
 * Context: Any.
 */
void kofi_elements_get(const struct kofi_elements *elements, size_t size, void *to)
{
	size_t i, len;

	for (i = 0; i < elements->count; i++, to += len) {
		len = elements->iov[i].count * size;
		memcpy(to, elements->iov[i].addr, len);
	}
}
EXPORT_SYMBOL_NS_GPL(kofi_elements_get, KOFI_PROVIDER);

/**
 * kofi_elements_put() - copy elements to their segments
 * @elements: the segments
 * @size: size of an element
 * @from: all elements
 *
 * Context: Any.
 */
void kofi_elements_put(const struct kofi_elements *elements, size_t size, const void *from)
{
	size_t i, len;

	for (i = 0; i < elements->count; i++, from += len) {
		len = elements->iov[i].count * size;
		memcpy(elements->iov[i].addr, from, len);
	}
}
EXPORT_SYMBOL_NS_GPL(kofi_elements_put, KOFI_PROVIDER);

/* --- what a provider supports --- */

/**
 * fi_query_atomic() - get the limits of an atomic operation
 * @domain: the domain
 * @datatype: type of the elements
 * @op: the operation
 * @attr: takes the limits
 * @flags: FI_FETCH_ATOMIC for fi_fetch_atomic(), FI_COMPARE_ATOMIC for fi_compare_atomic(), 0 for
 *	fi_atomic()
 *
 * fi_atomic(3).
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0; -EOPNOTSUPP if the domain has no such operation; -FI_EBADFLAGS, -ENODEV, -EINVAL.
 */
int fi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		    struct fi_atomic_attr *attr, u64 flags)
{
	if (!domain || domain->fid.fclass != FI_CLASS_DOMAIN || !attr)
		return -EINVAL;
	if (flags && flags != FI_FETCH_ATOMIC && flags != FI_COMPARE_ATOMIC)
		return -FI_EBADFLAGS;
	if (kofi_fid_dead(&domain->fid))
		return -ENODEV;
	if (!domain->ops || !domain->ops->query_atomic)
		return -EOPNOTSUPP;
	return domain->ops->query_atomic(domain, datatype, op, attr, flags);
}
EXPORT_SYMBOL_NS_GPL(fi_query_atomic, KOFI);

static int kofi_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			    size_t *count, u64 flags)
{
	struct fi_atomic_attr attr;
	int ret;

	if (!ep || ep->fid.fclass != FI_CLASS_EP || !count)
		return -EINVAL;
	if (!(ep->fid.node->caps & FI_ATOMIC))
		return -EOPNOTSUPP;
	ret = fi_query_atomic(container_of(ep->fid.node->parent->fid, struct fid_domain, fid),
			      datatype, op, &attr, flags);
	if (!ret)
		*count = attr.count;
	return ret;
}

/**
 * fi_atomicvalid() - check whether fi_atomic() has an operation
 * @ep: the endpoint
 * @datatype: type of the elements
 * @op: the operation
 * @count: takes the maximum number of elements
 *
 * fi_atomic(3).
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0; -EOPNOTSUPP if it hasn't; -ENODEV, -EINVAL.
 */
int fi_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return kofi_atomicvalid(ep, datatype, op, count, 0);
}
EXPORT_SYMBOL_NS_GPL(fi_atomicvalid, KOFI);

/**
 * fi_fetch_atomicvalid() - check whether fi_fetch_atomic() has an operation
 * @ep: the endpoint
 * @datatype: type of the elements
 * @op: the operation
 * @count: takes the maximum number of elements
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: as fi_atomicvalid().
 */
int fi_fetch_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			 size_t *count)
{
	return kofi_atomicvalid(ep, datatype, op, count, FI_FETCH_ATOMIC);
}
EXPORT_SYMBOL_NS_GPL(fi_fetch_atomicvalid, KOFI);

/**
 * fi_compare_atomicvalid() - check whether fi_compare_atomic() has an operation
 * @ep: the endpoint
 * @datatype: type of the elements
 * @op: the operation
 * @count: takes the maximum number of elements
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: as fi_atomicvalid().
 */
int fi_compare_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			   size_t *count)
{
	return kofi_atomicvalid(ep, datatype, op, count, FI_COMPARE_ATOMIC);
}
EXPORT_SYMBOL_NS_GPL(fi_compare_atomicvalid, KOFI);
