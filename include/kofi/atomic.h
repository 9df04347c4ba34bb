/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Atomic operations on a peer's memory: fi_atomic(3). */
#ifndef KOFI_ATOMIC_H
#define KOFI_ATOMIC_H

#include <kofi/endpoint.h>

/* Flags of fi_query_atomic(). They reuse the bits of capabilities. */
#define FI_FETCH_ATOMIC		BIT_ULL(58)
#define FI_COMPARE_ATOMIC	BIT_ULL(59)

/**
 * enum fi_datatype - type of elements
 * @FI_INT8: 8 bits, signed
 * @FI_UINT8: 8 bits, unsigned
 * @FI_INT16: 16 bits, signed
 * @FI_UINT16: 16 bits, unsigned
 * @FI_INT32: 32 bits, signed
 * @FI_UINT32: 32 bits, unsigned
 * @FI_INT64: 64 bits, signed
 * @FI_UINT64: 64 bits, unsigned
 * @FI_FLOAT: floating point of 32 bits
 * @FI_DOUBLE: floating point of 64 bits
 * @FI_FLOAT_COMPLEX: two FI_FLOAT: the real part, and the imaginary part
 * @FI_DOUBLE_COMPLEX: two FI_DOUBLE
 * @FI_LONG_DOUBLE: has no operations
 * @FI_LONG_DOUBLE_COMPLEX: has no operations
 * @FI_DATATYPE_LAST: end of the types that libfabric had first
 * @FI_INT128: 128 bits, signed
 * @FI_UINT128: 128 bits, unsigned
 *
 * The values are libfabric's, and are sent to peers.
 */
enum fi_datatype {
	FI_INT8,
	FI_UINT8,
	FI_INT16,
	FI_UINT16,
	FI_INT32,
	FI_UINT32,
	FI_INT64,
	FI_UINT64,
	FI_FLOAT,
	FI_DOUBLE,
	FI_FLOAT_COMPLEX,
	FI_DOUBLE_COMPLEX,
	FI_LONG_DOUBLE,
	FI_LONG_DOUBLE_COMPLEX,
	FI_DATATYPE_LAST,
	FI_INT128		= FI_DATATYPE_LAST,
	FI_UINT128,
};

/**
 * enum fi_op - atomic operation
 * @FI_MIN: the smaller one of a and b
 * @FI_MAX: the larger one of a and b
 * @FI_SUM: a + b
 * @FI_PROD: a * b
 * @FI_LOR: a || b
 * @FI_LAND: a && b
 * @FI_BOR: a | b
 * @FI_BAND: a & b
 * @FI_LXOR: !a != !b
 * @FI_BXOR: a ^ b
 * @FI_ATOMIC_READ: a; only fi_fetch_atomic() has it
 * @FI_ATOMIC_WRITE: b
 * @FI_CSWAP: c == a ? b : a
 * @FI_CSWAP_NE: c != a ? b : a
 * @FI_CSWAP_LE: c <= a ? b : a
 * @FI_CSWAP_LT: c < a ? b : a
 * @FI_CSWAP_GE: c >= a ? b : a
 * @FI_CSWAP_GT: c > a ? b : a
 * @FI_MSWAP: (b & c) | (a & ~c)
 * @FI_ATOMIC_OP_LAST: number of operations
 *
 * Each is the new value of an element, where a is the old one, b the operand, and c the value to
 * compare with. Those from FI_CSWAP on are for fi_compare_atomic(), all others for fi_atomic() and
 * fi_fetch_atomic(). Complex numbers have no order, and only integers have bits.
 *
 * The values are libfabric's, and are sent to peers.
 */
enum fi_op {
	FI_MIN,
	FI_MAX,
	FI_SUM,
	FI_PROD,
	FI_LOR,
	FI_LAND,
	FI_BOR,
	FI_BAND,
	FI_LXOR,
	FI_BXOR,
	FI_ATOMIC_READ,
	FI_ATOMIC_WRITE,
	FI_CSWAP,
	FI_CSWAP_NE,
	FI_CSWAP_LE,
	FI_CSWAP_LT,
	FI_CSWAP_GE,
	FI_CSWAP_GT,
	FI_MSWAP,
	FI_ATOMIC_OP_LAST,
};

/**
 * struct fi_ioc - a segment of elements
 * @addr: a kernel address
 * @count: number of elements
 */
struct fi_ioc {
	void	*addr;
	size_t	count;
};

/**
 * struct fi_rma_ioc - elements in a peer's memory
 * @addr: remote address: the region's base address plus an offset, a multiple of an element's size
 * @count: number of elements
 * @key: the region's key
 */
struct fi_rma_ioc {
	u64	addr;
	size_t	count;
	u64	key;
};

/**
 * struct fi_msg_atomic - an atomic operation with flags, fi_atomic(3)
 * @msg_iov: segments with the operands; they and their array stay valid until the completion. May
 *	be NULL for FI_ATOMIC_READ
 * @desc: descriptors from fi_mr_desc(), one per segment of @msg_iov, or NULL
 * @iov_count: number of entries of @msg_iov
 * @addr: the peer
 * @rma_iov: the peer's memory; the array stays valid until the completion
 * @rma_iov_count: number of entries of @rma_iov
 * @datatype: type of the elements
 * @op: the operation
 * @context: the caller's context, returned in the completion
 */
struct fi_msg_atomic {
	const struct fi_ioc	*msg_iov;
	void			**desc;
	size_t			iov_count;
	fi_addr_t		addr;
	const struct fi_rma_ioc	*rma_iov;
	size_t			rma_iov_count;
	enum fi_datatype	datatype;
	enum fi_op		op;
	void			*context;
};

/**
 * struct fi_atomic_attr - limits of an atomic operation
 * @count: maximum number of elements
 * @size: size of an element in bytes
 */
struct fi_atomic_attr {
	size_t	count;
	size_t	size;
};

/**
 * struct fi_ops_atomic - atomic calls of a provider
 * @write: see fi_atomic()
 * @writev: see fi_atomicv()
 * @writemsg: see fi_atomicmsg()
 * @inject: see fi_inject_atomic()
 * @readwrite: see fi_fetch_atomic()
 * @readwritev: see fi_fetch_atomicv()
 * @readwritemsg: see fi_fetch_atomicmsg()
 * @compwrite: see fi_compare_atomic()
 * @compwritev: see fi_compare_atomicv()
 * @compwritemsg: see fi_compare_atomicmsg()
 *
 * A vector is const and has no NULL members: see struct kofi_atomic_req in <kofi/provider.h>.
 */
struct fi_ops_atomic {
	ssize_t (*write)(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			 fi_addr_t dest_addr, u64 addr, u64 key, enum fi_datatype datatype,
			 enum fi_op op, void *context);
	ssize_t (*writev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
			  size_t count, fi_addr_t dest_addr, u64 addr, u64 key,
			  enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*writemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg, u64 flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t count,
			  fi_addr_t dest_addr, u64 addr, u64 key, enum fi_datatype datatype,
			  enum fi_op op);
	ssize_t (*readwrite)(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			     void *result, void *result_desc, fi_addr_t dest_addr, u64 addr,
			     u64 key, enum fi_datatype datatype, enum fi_op op,
			     void *context);
	ssize_t (*readwritev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
			      size_t count, struct fi_ioc *resultv, void **result_desc,
			      size_t result_count, fi_addr_t dest_addr, u64 addr, u64 key,
			      enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*readwritemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				struct fi_ioc *resultv, void **result_desc,
				size_t result_count, u64 flags);
	ssize_t (*compwrite)(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			     const void *compare, void *compare_desc, void *result,
			     void *result_desc, fi_addr_t dest_addr, u64 addr, u64 key,
			     enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*compwritev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
			      size_t count, const struct fi_ioc *comparev,
			      void **compare_desc, size_t compare_count,
			      struct fi_ioc *resultv, void **result_desc,
			      size_t result_count, fi_addr_t dest_addr, u64 addr, u64 key,
			      enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*compwritemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				const struct fi_ioc *comparev, void **compare_desc,
				size_t compare_count, struct fi_ioc *resultv,
				void **result_desc, size_t result_count, u64 flags);
};

/**
 * fi_atomic() - change elements of a peer's memory
 * @ep: the endpoint
 * @buf: the operands; a kernel address, but not on the stack
 * @count: number of elements
 * @desc: descriptor from fi_mr_desc(), or NULL: local memory needs no registration
 * @dest_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset, a multiple of an element's
 *	size
 * @key: the remote region's key
 * @datatype: type of the elements
 * @op: the operation
 * @context: the caller's context, returned in the completion
 *
 * The buffer stays valid until the completion.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_atomic(struct fid_ep *ep, const void *buf, size_t count,
				void *desc, fi_addr_t dest_addr, u64 addr, u64 key,
				enum fi_datatype datatype, enum fi_op op, void *context)
{
	if (!kofi_buf_ok(buf))
		return -EINVAL;
	return ep->atomic->write(ep, buf, count, desc, dest_addr, addr, key, datatype, op,
				 context);
}

/**
 * fi_atomicv() - change elements of a peer's memory, with operands in several segments
 * @ep: the endpoint
 * @iov: segments with the operands; they and their array stay valid until the completion
 * @desc: descriptors from fi_mr_desc(), one per segment, or NULL
 * @count: number of segments
 * @dest_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset, a multiple of an element's
 *	size
 * @key: the remote region's key
 * @datatype: type of the elements
 * @op: the operation
 * @context: the caller's context, returned in the completion
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				 size_t count, fi_addr_t dest_addr, u64 addr, u64 key,
				 enum fi_datatype datatype, enum fi_op op, void *context)
{
	return ep->atomic->writev(ep, iov, desc, count, dest_addr, addr, key, datatype, op,
				  context);
}

/**
 * fi_atomicmsg() - change elements of a peer's memory, with flags
 * @ep: the endpoint
 * @msg: operands, the peer's memory, the operation, and context
 * @flags: operation flags; they replace the endpoint's defaults
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				   u64 flags)
{
	return ep->atomic->writemsg(ep, msg, flags);
}

/**
 * fi_inject_atomic() - copy a few operands, and change elements of a peer's memory
 * @ep: the endpoint
 * @buf: the operands, copied before the call returns
 * @count: number of elements
 * @dest_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset, a multiple of an element's
 *	size
 * @key: the remote region's key
 * @datatype: type of the elements
 * @op: the operation
 *
 * There is no completion on success; a failure is reported.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_inject_atomic(struct fid_ep *ep, const void *buf, size_t count,
				       fi_addr_t dest_addr, u64 addr, u64 key,
				       enum fi_datatype datatype, enum fi_op op)
{
	return ep->atomic->inject(ep, buf, count, dest_addr, addr, key, datatype, op);
}

/**
 * fi_fetch_atomic() - change elements of a peer's memory, and get their old values
 * @ep: the endpoint
 * @buf: the operands, or NULL for FI_ATOMIC_READ; a kernel address, but not on the stack
 * @count: number of elements
 * @desc: descriptor from fi_mr_desc(), or NULL: local memory needs no registration
 * @result: takes the old values
 * @result_desc: as @desc, for @result
 * @dest_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset, a multiple of an element's
 *	size
 * @key: the remote region's key
 * @datatype: type of the elements
 * @op: the operation
 * @context: the caller's context, returned in the completion
 *
 * The buffers stay valid until the completion.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_fetch_atomic(struct fid_ep *ep, const void *buf, size_t count,
				      void *desc, void *result, void *result_desc,
				      fi_addr_t dest_addr, u64 addr, u64 key,
				      enum fi_datatype datatype, enum fi_op op,
				      void *context)
{
	if (!kofi_buf_ok(buf) || !kofi_buf_ok(result))
		return -EINVAL;
	return ep->atomic->readwrite(ep, buf, count, desc, result, result_desc, dest_addr,
				     addr, key, datatype, op, context);
}

/**
 * fi_fetch_atomicv() - fi_fetch_atomic() with several segments
 * @ep: the endpoint
 * @iov: segments with the operands, or NULL for FI_ATOMIC_READ; they and their array stay
 *	valid until the completion
 * @desc: descriptors from fi_mr_desc(), one per segment, or NULL
 * @count: number of segments
 * @resultv: segments that take the old values
 * @result_desc: as @desc, for @resultv
 * @result_count: number of entries of @resultv
 * @dest_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset, a multiple of an element's
 *	size
 * @key: the remote region's key
 * @datatype: type of the elements
 * @op: the operation
 * @context: the caller's context, returned in the completion
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_fetch_atomicv(struct fid_ep *ep, const struct fi_ioc *iov,
				       void **desc, size_t count, struct fi_ioc *resultv,
				       void **result_desc, size_t result_count,
				       fi_addr_t dest_addr, u64 addr, u64 key,
				       enum fi_datatype datatype, enum fi_op op,
				       void *context)
{
	return ep->atomic->readwritev(ep, iov, desc, count, resultv, result_desc,
				      result_count, dest_addr, addr, key, datatype, op,
				      context);
}

/**
 * fi_fetch_atomicmsg() - fi_fetch_atomic() with flags
 * @ep: the endpoint
 * @msg: operands, the peer's memory, the operation, and context
 * @resultv: segments that take the old values
 * @result_desc: as @desc, for @resultv
 * @result_count: number of entries of @resultv
 * @flags: operation flags; they replace the endpoint's defaults
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_fetch_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
					 struct fi_ioc *resultv, void **result_desc,
					 size_t result_count, u64 flags)
{
	return ep->atomic->readwritemsg(ep, msg, resultv, result_desc, result_count, flags);
}

/**
 * fi_compare_atomic() - compare elements of a peer's memory, change some, and get the old values
 * @ep: the endpoint
 * @buf: the operands; a kernel address, but not on the stack
 * @count: number of elements
 * @desc: descriptor from fi_mr_desc(), or NULL: local memory needs no registration
 * @compare: the values to compare with, as many as operands
 * @compare_desc: as @desc, for @compare
 * @result: takes the old values
 * @result_desc: as @desc, for @result
 * @dest_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset, a multiple of an element's
 *	size
 * @key: the remote region's key
 * @datatype: type of the elements
 * @op: the operation
 * @context: the caller's context, returned in the completion
 *
 * The buffers stay valid until the completion.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_compare_atomic(struct fid_ep *ep, const void *buf, size_t count,
					void *desc, const void *compare, void *compare_desc,
					void *result, void *result_desc,
					fi_addr_t dest_addr, u64 addr, u64 key,
					enum fi_datatype datatype, enum fi_op op,
					void *context)
{
	if (!kofi_buf_ok(buf) || !kofi_buf_ok(compare) || !kofi_buf_ok(result))
		return -EINVAL;
	return ep->atomic->compwrite(ep, buf, count, desc, compare, compare_desc, result,
				     result_desc, dest_addr, addr, key, datatype, op,
				     context);
}

/**
 * fi_compare_atomicv() - fi_compare_atomic() with several segments
 * @ep: the endpoint
 * @iov: segments with the operands; they and their array stay valid until the completion
 * @desc: descriptors from fi_mr_desc(), one per segment, or NULL
 * @count: number of segments
 * @comparev: segments with the values to compare with, as many as operands
 * @compare_desc: as @desc, for @comparev
 * @compare_count: number of entries of @comparev
 * @resultv: segments that take the old values
 * @result_desc: as @desc, for @resultv
 * @result_count: number of entries of @resultv
 * @dest_addr: the peer, from fi_av_insert()
 * @addr: remote address: the region's base address plus an offset, a multiple of an element's
 *	size
 * @key: the remote region's key
 * @datatype: type of the elements
 * @op: the operation
 * @context: the caller's context, returned in the completion
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_compare_atomicv(struct fid_ep *ep, const struct fi_ioc *iov,
					 void **desc, size_t count,
					 const struct fi_ioc *comparev, void **compare_desc,
					 size_t compare_count, struct fi_ioc *resultv,
					 void **result_desc, size_t result_count,
					 fi_addr_t dest_addr, u64 addr, u64 key,
					 enum fi_datatype datatype, enum fi_op op,
					 void *context)
{
	return ep->atomic->compwritev(ep, iov, desc, count, comparev, compare_desc,
				      compare_count, resultv, result_desc, result_count,
				      dest_addr, addr, key, datatype, op, context);
}

/**
 * fi_compare_atomicmsg() - fi_compare_atomic() with flags
 * @ep: the endpoint
 * @msg: operands, the peer's memory, the operation, and context
 * @comparev: segments with the values to compare with, as many as operands
 * @compare_desc: as @desc, for @comparev
 * @compare_count: number of entries of @comparev
 * @resultv: segments that take the old values
 * @result_desc: as @desc, for @resultv
 * @result_count: number of entries of @resultv
 * @flags: operation flags; they replace the endpoint's defaults
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or a negative errno: see :ref:`data-call-errors`.
 */
static inline ssize_t fi_compare_atomicmsg(struct fid_ep *ep,
					   const struct fi_msg_atomic *msg,
					   const struct fi_ioc *comparev,
					   void **compare_desc, size_t compare_count,
					   struct fi_ioc *resultv, void **result_desc,
					   size_t result_count, u64 flags)
{
	return ep->atomic->compwritemsg(ep, msg, comparev, compare_desc, compare_count,
					resultv, result_desc, result_count, flags);
}

/* Reference: page api/atomic of kOFI's documentation; libfabric's fi_atomic(3) */
int fi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		    struct fi_atomic_attr *attr, u64 flags);
int fi_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count);
int fi_fetch_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			 size_t *count);
int fi_compare_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			   size_t *count);

#endif /* KOFI_ATOMIC_H */
