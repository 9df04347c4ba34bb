// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The request that each data call passes to a provider that takes requests. */
#include <linux/slab.h>
#include <linux/uio.h>
#include "fake.h"

#define LEN	17
#define PEER	0x22ULL
#define CTX	((void *)0x3333)
#define DATA	0x4444ULL
#define TAG	0x5555ULL
#define IGNORE	0x6666ULL
#define ADDR	0x7777ULL
#define KEY	0x8888ULL
#define FLAGS	FI_COMPLETION

static u8 buf[LEN];
static struct kvec iov[2] = { { buf, 8 }, { buf + 8, LEN - 8 } };
static const struct fi_rma_iov rma = { .addr = ADDR, .len = LEN, .key = KEY };

/* The request that arrived, copied. */
static struct kofi_req seen;
static struct fi_rma_iov seen_rma;
static bool seen_tx;
static void *seen_desc[2];

/* The rest of an atomic request, with the first segment of each kind. */
static struct kofi_atomic_req seen_atomic;
static struct fi_rma_ioc seen_far;
static struct fi_ioc seen_operand, seen_comparand, seen_result;

static void note_atomic(const struct kofi_atomic_req *areq)
{
	const struct fi_ioc none = { };

	seen_atomic = *areq;
	seen_far = *areq->rma;
	seen_operand = areq->operand.count ? *areq->operand.iov : none;
	seen_comparand = areq->comparand.count ? *areq->comparand.iov : none;
	seen_result = areq->result.count ? *areq->result.iov : none;
}

static ssize_t note(struct kofi_req *req, bool tx)
{
	seen = *req;
	seen_tx = tx;
	if (req->what & FI_ATOMIC) {
		note_atomic(container_of(req, struct kofi_atomic_req, req));
		return 0;
	}
	if (req->rma_count == 1)
		seen_rma = *req->rma;
	memset(seen_desc, 0, sizeof(seen_desc));
	if (req->desc)
		memcpy(seen_desc, req->desc, req->iter.nr_segs * sizeof(*req->desc));
	return 0;
}

static ssize_t note_tx(struct fid_ep *ep, struct kofi_req *req)
{
	return note(req, true);
}

static ssize_t note_rx(struct fid_ep *ep, struct kofi_req *req)
{
	return note(req, false);
}

static const struct kofi_req_ops note_ops = { .tx = note_tx, .rx = note_rx };

static struct iov_iter whole(unsigned int direction)
{
	struct iov_iter iter;

	iov_iter_kvec(&iter, direction, iov, 2, LEN);
	return iter;
}

/* Calls with flags pass the ULP's iterator, whose direction must match. */
static ssize_t msg_call(struct fid_ep *ep, bool send)
{
	const struct fi_msg msg = {
		.msg_iter = whole(send ? ITER_SOURCE : ITER_DEST),
		.addr = PEER, .context = CTX, .data = DATA,
	};

	return send ? fi_sendmsg(ep, &msg, FLAGS) : fi_recvmsg(ep, &msg, FLAGS);
}

static ssize_t tagged_call(struct fid_ep *ep, bool send)
{
	const struct fi_msg_tagged msg = {
		.msg_iter = whole(send ? ITER_SOURCE : ITER_DEST),
		.addr = PEER, .tag = TAG, .ignore = IGNORE, .context = CTX,
		.data = DATA,
	};

	return send ? fi_tsendmsg(ep, &msg, FLAGS) :
		      fi_trecvmsg(ep, &msg, FLAGS);
}

static ssize_t rma_call(struct fid_ep *ep, bool write)
{
	const struct fi_msg_rma msg = {
		.msg_iter = whole(write ? ITER_SOURCE : ITER_DEST),
		.addr = PEER, .rma_iov = &rma, .rma_iov_count = 1,
		.context = CTX, .data = DATA,
	};

	return write ? fi_writemsg(ep, &msg, FLAGS) :
		       fi_readmsg(ep, &msg, FLAGS);
}

#define RECV	false, ITER_DEST
#define SEND	true, ITER_SOURCE
#define FETCH	true, ITER_DEST
#define PLAIN	0, true, false
#define GIVEN	FLAGS, false, false
#define CQ_DATA	FI_REMOTE_CQ_DATA, true, false
#define INJECT	FI_INJECT, false, true
#define BOTH	FI_INJECT | FI_REMOTE_CQ_DATA, false, true

/* A call and the expected request, described by the words above. */
#define CHECK(call, ...) CHECK_WORDS(call, __VA_ARGS__)
#define CHECK_WORDS(call, what_, tx_, dir_, flags_, defaults_, quiet_, ...)	\
do {									\
	const struct kofi_req want = { __VA_ARGS__ };			\
									\
	memset(&seen, 0xa5, sizeof(seen));				\
	KUNIT_EXPECT_EQ_MSG(test, call, 0, #call);			\
	KUNIT_EXPECT_EQ_MSG(test, seen.what, what_, #call);		\
	KUNIT_EXPECT_EQ_MSG(test, seen_tx, tx_, #call);			\
	KUNIT_EXPECT_EQ_MSG(test, iov_iter_rw(&seen.iter), dir_, #call); \
	KUNIT_EXPECT_EQ_MSG(test, iov_iter_count(&seen.iter), LEN, #call); \
	KUNIT_EXPECT_EQ_MSG(test, seen.flags, flags_, #call);		\
	KUNIT_EXPECT_EQ_MSG(test, seen.defaults, defaults_, #call);	\
	KUNIT_EXPECT_EQ_MSG(test, seen.quiet, quiet_, #call);		\
	KUNIT_EXPECT_EQ_MSG(test, seen.addr, want.addr, #call);		\
	KUNIT_EXPECT_EQ_MSG(test, seen.tag, want.tag, #call);		\
	KUNIT_EXPECT_EQ_MSG(test, seen.ignore, want.ignore, #call);	\
	KUNIT_EXPECT_EQ_MSG(test, seen.data, want.data, #call);		\
	KUNIT_EXPECT_PTR_EQ_MSG(test, seen.context, want.context, #call); \
} while (0)

#define TO	.addr = PEER
#define DONE	.context = CTX
#define WITH	.data = DATA
#define TAGS	.tag = TAG, .ignore = IGNORE

static struct fid_ep *calls_ep(struct kunit *test)
{
	struct fid_ep *ep = kunit_kzalloc(test, sizeof(*ep), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ep);
	ep->msg = &kofi_req_msg_ops;
	ep->tagged = &kofi_req_tagged_ops;
	ep->rma = &kofi_req_rma_ops;
	ep->atomic = &kofi_req_atomic_ops;
	ep->req = &note_ops;
	return ep;
}

static void calls_msg(struct kunit *test)
{
	const u64 in = FI_MSG | FI_RECV, out = FI_MSG | FI_SEND;
	struct fid_ep *ep = calls_ep(test);

	CHECK(fi_recv(ep, buf, LEN, NULL, PEER, CTX), in, RECV, PLAIN, TO, DONE);
	CHECK(fi_recvv(ep, iov, NULL, 2, PEER, CTX), in, RECV, PLAIN, TO, DONE);
	CHECK(msg_call(ep, false), in, RECV, GIVEN, TO, DONE);
	CHECK(fi_send(ep, buf, LEN, NULL, PEER, CTX), out, SEND, PLAIN, TO, DONE);
	CHECK(fi_sendv(ep, iov, NULL, 2, PEER, CTX), out, SEND, PLAIN, TO, DONE);
	CHECK(msg_call(ep, true), out, SEND, GIVEN, TO, DONE, WITH);
	CHECK(fi_inject(ep, buf, LEN, PEER), out, SEND, INJECT, TO);
	CHECK(fi_senddata(ep, buf, LEN, NULL, DATA, PEER, CTX), out, SEND,
	      CQ_DATA, TO, DONE, WITH);
	CHECK(fi_injectdata(ep, buf, LEN, DATA, PEER), out, SEND, BOTH, TO, WITH);
}

static void calls_tagged(struct kunit *test)
{
	const u64 in = FI_TAGGED | FI_RECV, out = FI_TAGGED | FI_SEND;
	struct fid_ep *ep = calls_ep(test);

	CHECK(fi_trecv(ep, buf, LEN, NULL, PEER, TAG, IGNORE, CTX), in, RECV,
	      PLAIN, TO, DONE, TAGS);
	CHECK(fi_trecvv(ep, iov, NULL, 2, PEER, TAG, IGNORE, CTX), in, RECV,
	      PLAIN, TO, DONE, TAGS);
	CHECK(tagged_call(ep, false), in, RECV, GIVEN, TO, DONE, TAGS);
	CHECK(fi_tsend(ep, buf, LEN, NULL, PEER, TAG, CTX), out, SEND, PLAIN,
	      TO, DONE, .tag = TAG);
	CHECK(fi_tsendv(ep, iov, NULL, 2, PEER, TAG, CTX), out, SEND, PLAIN,
	      TO, DONE, .tag = TAG);
	CHECK(tagged_call(ep, true), out, SEND, GIVEN, TO, DONE, WITH,
	      .tag = TAG);
	CHECK(fi_tinject(ep, buf, LEN, PEER, TAG), out, SEND, INJECT, TO,
	      .tag = TAG);
	CHECK(fi_tsenddata(ep, buf, LEN, NULL, DATA, PEER, TAG, CTX), out, SEND,
	      CQ_DATA, TO, DONE, WITH, .tag = TAG);
	CHECK(fi_tinjectdata(ep, buf, LEN, DATA, PEER, TAG), out, SEND, BOTH,
	      TO, WITH, .tag = TAG);
}

/* The expected address in the peer's memory. */
#define CHECK_RMA(call, ...)						\
do {									\
	memset(&seen_rma, 0, sizeof(seen_rma));				\
	CHECK(call, __VA_ARGS__);					\
	KUNIT_EXPECT_EQ_MSG(test, seen_rma.addr, ADDR, #call);		\
	KUNIT_EXPECT_EQ_MSG(test, seen_rma.len, LEN, #call);		\
	KUNIT_EXPECT_EQ_MSG(test, seen_rma.key, KEY, #call);		\
} while (0)

static void calls_rma(struct kunit *test)
{
	const u64 in = FI_RMA | FI_READ, out = FI_RMA | FI_WRITE;
	struct fid_ep *ep = calls_ep(test);

	CHECK_RMA(fi_read(ep, buf, LEN, NULL, PEER, ADDR, KEY, CTX), in, FETCH,
		  PLAIN, TO, DONE);
	CHECK_RMA(fi_readv(ep, iov, NULL, 2, PEER, ADDR, KEY, CTX), in, FETCH,
		  PLAIN, TO, DONE);
	CHECK_RMA(rma_call(ep, false), in, FETCH, GIVEN, TO, DONE);
	CHECK_RMA(fi_write(ep, buf, LEN, NULL, PEER, ADDR, KEY, CTX), out, SEND,
		  PLAIN, TO, DONE);
	CHECK_RMA(fi_writev(ep, iov, NULL, 2, PEER, ADDR, KEY, CTX), out, SEND,
		  PLAIN, TO, DONE);
	CHECK_RMA(rma_call(ep, true), out, SEND, GIVEN, TO, DONE, WITH);
	CHECK_RMA(fi_inject_write(ep, buf, LEN, PEER, ADDR, KEY), out, SEND,
		  INJECT, TO);
	CHECK_RMA(fi_writedata(ep, buf, LEN, NULL, DATA, PEER, ADDR, KEY, CTX),
		  out, SEND, CQ_DATA, TO, DONE, WITH);
	CHECK_RMA(fi_inject_writedata(ep, buf, LEN, DATA, PEER, ADDR, KEY), out,
		  SEND, BOTH, TO, WITH);
}

#define TYPE	FI_INT16
#define OP	FI_BXOR
#define WHERE	PEER, ADDR, KEY, TYPE, OP

/* A call, what it is, and the number of segments of each kind. */
#define CHECK_ATOMIC(call, _what, _flags, _defaults, _quiet, _n, _ncmp, _nres)	\
do {									\
	memset(&seen, 0xa5, sizeof(seen));				\
	KUNIT_EXPECT_EQ_MSG(test, call, 0, #call);			\
	KUNIT_EXPECT_EQ_MSG(test, seen.what, FI_ATOMIC | (_what), #call);	\
	KUNIT_EXPECT_EQ_MSG(test, seen.flags, (u64)(_flags), #call);	\
	KUNIT_EXPECT_EQ_MSG(test, seen.defaults, _defaults, #call);	\
	KUNIT_EXPECT_EQ_MSG(test, seen.quiet, _quiet, #call);		\
	KUNIT_EXPECT_EQ_MSG(test, seen.addr, PEER, #call);		\
	KUNIT_EXPECT_PTR_EQ_MSG(test, seen.context, (_quiet) ? NULL : CTX, #call);	\
	KUNIT_EXPECT_EQ_MSG(test, seen_atomic.datatype, TYPE, #call);	\
	KUNIT_EXPECT_EQ_MSG(test, seen_atomic.op, OP, #call);		\
	KUNIT_EXPECT_EQ_MSG(test, seen_atomic.compare, (_ncmp) > 0, #call);	\
	KUNIT_EXPECT_EQ_MSG(test, seen_atomic.operand.count, (size_t)(_n), #call);	\
	KUNIT_EXPECT_EQ_MSG(test, seen_atomic.comparand.count, (size_t)(_ncmp), #call);	\
	KUNIT_EXPECT_EQ_MSG(test, seen_atomic.result.count, (size_t)(_nres), #call);	\
	KUNIT_EXPECT_PTR_EQ_MSG(test, seen_operand.addr, (void *)buf, #call);	\
	KUNIT_EXPECT_PTR_EQ_MSG(test, seen_comparand.addr,		\
				(_ncmp) ? (void *)(buf + 2) : NULL, #call);	\
	KUNIT_EXPECT_PTR_EQ_MSG(test, seen_result.addr,			\
				(_nres) ? (void *)(buf + 4) : NULL, #call);	\
	KUNIT_EXPECT_EQ_MSG(test, seen_atomic.rma_count, (size_t)1, #call);	\
	KUNIT_EXPECT_EQ_MSG(test, seen_far.addr, ADDR, #call);		\
	KUNIT_EXPECT_EQ_MSG(test, seen_far.count, (size_t)6, #call);	\
	KUNIT_EXPECT_EQ_MSG(test, seen_far.key, KEY, #call);		\
} while (0)

static void calls_atomic(struct kunit *test)
{
	const struct fi_ioc ioc[2] = { { buf, 2 }, { buf, 4 } };
	const struct fi_ioc cmp[3] = { { buf + 2, 1 }, { buf, 2 }, { buf, 3 } };
	struct fi_ioc res[2] = { { buf + 4, 5 }, { buf, 1 } };
	const struct fi_rma_ioc far = { ADDR, 6, KEY };
	const struct fi_msg_atomic msg = {
		.msg_iov = ioc, .iov_count = 2, .addr = PEER, .rma_iov = &far,
		.rma_iov_count = 1, .datatype = TYPE, .op = OP, .context = CTX,
	};
	void *desc[2] = { (void *)0x9999, (void *)0xaaaa };
	struct fid_ep *ep = calls_ep(test);

	CHECK_ATOMIC(fi_atomic(ep, buf, 6, desc[0], WHERE, CTX), FI_WRITE, 0, true, false, 1, 0, 0);
	CHECK_ATOMIC(fi_atomicv(ep, ioc, desc, 2, WHERE, CTX), FI_WRITE, 0, true, false, 2, 0, 0);
	KUNIT_EXPECT_PTR_EQ(test, seen_atomic.operand.desc, (void **)desc);
	CHECK_ATOMIC(fi_atomicmsg(ep, &msg, FLAGS), FI_WRITE, FLAGS, false, false, 2, 0, 0);
	CHECK_ATOMIC(fi_inject_atomic(ep, buf, 6, WHERE), FI_WRITE, FI_INJECT, false, true, 1, 0,
		     0);
	CHECK_ATOMIC(fi_fetch_atomic(ep, buf, 6, NULL, buf + 4, NULL, WHERE, CTX), FI_READ, 0, true,
		     false, 1, 0, 1);
	CHECK_ATOMIC(fi_fetch_atomicv(ep, ioc, NULL, 2, res, desc, 2, WHERE, CTX), FI_READ, 0, true,
		     false, 2, 0, 2);
	KUNIT_EXPECT_PTR_EQ(test, seen_atomic.result.desc, (void **)desc);
	CHECK_ATOMIC(fi_fetch_atomicmsg(ep, &msg, res, NULL, 2, FLAGS), FI_READ, FLAGS, false,
		     false, 2, 0, 2);
	CHECK_ATOMIC(fi_compare_atomic(ep, buf, 6, NULL, buf + 2, NULL, buf + 4, NULL, WHERE, CTX),
		     FI_READ, 0, true, false, 1, 1, 1);
	CHECK_ATOMIC(fi_compare_atomicv(ep, ioc, NULL, 2, cmp, desc, 3, res, NULL, 2, WHERE, CTX),
		     FI_READ, 0, true, false, 2, 3, 2);
	KUNIT_EXPECT_PTR_EQ(test, seen_atomic.comparand.desc, (void **)desc);
	CHECK_ATOMIC(fi_compare_atomicmsg(ep, &msg, cmp, NULL, 3, res, NULL, 2, FLAGS), FI_READ,
		     FLAGS, false, false, 2, 3, 2);
	/* An atomic read without operands. */
	KUNIT_EXPECT_EQ(test, fi_fetch_atomicv(ep, NULL, NULL, 0, res, NULL, 2, PEER, ADDR, KEY,
					       TYPE, FI_ATOMIC_READ, CTX), 0);
	KUNIT_EXPECT_EQ(test, seen_far.count, (size_t)6);
}

/* One change of a valid request, and the result of its check. */
static const struct atomic_wrong {
	const char	*name;
	u32		datatype, op;
	u64		kind;		/* FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC, or 0 */
	u64		flags;
	size_t		n, ncmp, nres, nrma, len;	/* 0 for what a valid request has */
	u64		addr;
	bool		nowhere;
	int		ret;
} atomic_wrongs[] = {
	{ "right write", FI_UINT32, FI_SUM },
	{ "right fetch", FI_UINT32, FI_SUM, FI_FETCH_ATOMIC },
	{ "right compare", FI_UINT32, FI_CSWAP, FI_COMPARE_ATOMIC },
	{ "right read", FI_UINT32, FI_ATOMIC_READ, FI_FETCH_ATOMIC, .n = SIZE_MAX },
	{ "right inject", FI_UINT32, FI_SUM, .flags = FI_INJECT },
	{ "longest write", FI_UINT32, FI_SUM, .len = 25 },
	{ "too long write", FI_UINT32, FI_SUM, .len = 26, .ret = -EMSGSIZE },
	{ "longest compare", FI_UINT32, FI_MSWAP, FI_COMPARE_ATOMIC, .len = 12 },
	{ "too long compare", FI_UINT32, FI_MSWAP, FI_COMPARE_ATOMIC, .len = 13, .ret = -EMSGSIZE },
	{ "type", FI_UINT128 + 1, FI_SUM, .ret = -EOPNOTSUPP },
	{ "long double", FI_LONG_DOUBLE, FI_SUM, .ret = -EOPNOTSUPP },
	{ "op", FI_UINT32, FI_ATOMIC_OP_LAST, .ret = -EOPNOTSUPP },
	{ "read without fetch", FI_UINT32, FI_ATOMIC_READ, .ret = -EOPNOTSUPP },
	{ "swap without compare", FI_UINT32, FI_CSWAP, FI_FETCH_ATOMIC, .ret = -EOPNOTSUPP },
	{ "sum with compare", FI_UINT32, FI_SUM, FI_COMPARE_ATOMIC, .ret = -EOPNOTSUPP },
	{ "data", FI_UINT32, FI_SUM, .flags = FI_REMOTE_CQ_DATA, .ret = -FI_EBADFLAGS },
	{ "inject fetch", FI_UINT32, FI_SUM, FI_FETCH_ATOMIC, FI_INJECT, .ret = -FI_EBADFLAGS },
	{ "misaligned", FI_UINT32, FI_SUM, .addr = 2, .ret = -EINVAL },
	{ "wraps", FI_UINT32, FI_SUM, .addr = -8ULL - (ADDR & ~3ULL), .ret = -EINVAL },
	{ "no elements", FI_UINT32, FI_SUM, .len = SIZE_MAX, .ret = -EINVAL },
	{ "too many pieces", FI_UINT32, FI_SUM, .nrma = 5, .ret = -EINVAL },
	{ "no pieces", FI_UINT32, FI_SUM, .nrma = SIZE_MAX, .ret = -EINVAL },
	{ "few operands", FI_UINT32, FI_SUM, .n = 2, .ret = -EINVAL },
	{ "no operands", FI_UINT32, FI_SUM, .n = SIZE_MAX, .ret = -EINVAL },
	{ "few comparands", FI_UINT32, FI_CSWAP, FI_COMPARE_ATOMIC, .ncmp = 2, .ret = -EINVAL },
	{ "no comparands", FI_UINT32, FI_CSWAP, FI_COMPARE_ATOMIC, .ncmp = SIZE_MAX,
	  .ret = -EINVAL },
	{ "few results", FI_UINT32, FI_SUM, FI_FETCH_ATOMIC, .nres = 2, .ret = -EINVAL },
	{ "no results", FI_UINT32, FI_ATOMIC_READ, FI_FETCH_ATOMIC, .nres = SIZE_MAX,
	  .ret = -EINVAL },
	{ "nowhere", FI_UINT32, FI_SUM, .nowhere = true, .ret = -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(atomic_wrong, atomic_wrongs, name);

/* @n elements; SIZE_MAX for none. */
static size_t pick(size_t n, size_t len)
{
	return n == SIZE_MAX ? 0 : n ?: len;
}

static void calls_atomic_check(struct kunit *test)
{
	const struct atomic_wrong *w = test->param_value;
	const size_t len = pick(w->len, 3);
	const struct fi_ioc ioc = { w->nowhere ? NULL : buf, pick(w->n, len) };
	const struct fi_ioc cmp = { buf, pick(w->ncmp, len) }, res = { buf, pick(w->nres, len) };
	const struct fi_rma_ioc far[5] = {
		{ (ADDR & ~3ULL) + w->addr, len, KEY }, { 0, 0, KEY }, { 0, 0, KEY }, { 0, 0, KEY },
	};
	const struct kofi_atomic_req areq = {
		.req = { .what = FI_ATOMIC | (w->kind ? FI_READ : FI_WRITE), .flags = w->flags },
		.datatype = w->datatype, .op = w->op, .compare = w->kind == FI_COMPARE_ATOMIC,
		.operand = { .iov = &ioc, .count = 1 }, .comparand = { .iov = &cmp, .count = 1 },
		.result = { .iov = &res, .count = 1 },
		.rma = far, .rma_count = w->nrma == SIZE_MAX ? 0 : w->nrma ?: 4,
	};
	size_t got = 0;

	KUNIT_EXPECT_EQ(test, kofi_atomic_check(&areq, 4, 100, &got), w->ret);
	if (!w->ret)
		KUNIT_EXPECT_EQ(test, got, 4 * len);
}

/* Lengths whose sum overflows are refused, not truncated. */
static void calls_too_long(struct kunit *test)
{
	const struct kvec long_iov[2] = { { buf, SIZE_MAX }, { buf, LEN + 1 } };
	struct fid_ep *ep = calls_ep(test);

	KUNIT_EXPECT_EQ(test, fi_sendv(ep, long_iov, NULL, 2, PEER, CTX), 0);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&seen.iter), SIZE_MAX);
	KUNIT_EXPECT_EQ(test, fi_readv(ep, long_iov, NULL, 2, PEER, ADDR, KEY,
				       CTX), 0);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&seen.iter), SIZE_MAX);
	KUNIT_EXPECT_EQ(test, seen_rma.len, SIZE_MAX);
}

/* Calls without flags use the endpoint's. Reads ignore FI_INJECT. */
static void calls_flags(struct kunit *test)
{
	struct kofi_req given = { .what = FI_MSG | FI_SEND, .flags = FI_MORE };
	struct kofi_req send = { .what = FI_MSG | FI_SEND, .defaults = true,
				 .flags = FI_REMOTE_CQ_DATA };
	struct kofi_req read = { .what = FI_RMA | FI_READ, .defaults = true };

	kofi_req_flags(&given, FI_COMPLETION | FI_INJECT);
	KUNIT_EXPECT_EQ(test, given.flags, FI_MORE);
	kofi_req_flags(&send, FI_COMPLETION | FI_INJECT);
	KUNIT_EXPECT_EQ(test, send.flags,
			FI_REMOTE_CQ_DATA | FI_COMPLETION | FI_INJECT);
	kofi_req_flags(&read, FI_COMPLETION | FI_INJECT);
	KUNIT_EXPECT_EQ(test, read.flags, FI_COMPLETION);
}

/* A provider that needs descriptors gets one per segment. */
static void calls_desc(struct kunit *test)
{
	void *desc[2] = { (void *)0x9999, (void *)0xaaaa };
	const struct fi_msg_tagged tagged = {
		.msg_iter = whole(ITER_SOURCE), .desc = desc,
	};
	const struct fi_msg_rma rma_msg = {
		.msg_iter = whole(ITER_DEST), .desc = desc,
		.rma_iov = &rma, .rma_iov_count = 1,
	};
	const struct fi_msg msg = { .msg_iter = whole(ITER_DEST), .desc = desc };
	struct fid_ep *ep = calls_ep(test);

#define DESC(first, second, call)					\
do {									\
	KUNIT_EXPECT_EQ_MSG(test, call, 0, #call);			\
	KUNIT_EXPECT_PTR_EQ_MSG(test, seen_desc[0], first, #call);	\
	KUNIT_EXPECT_PTR_EQ_MSG(test, seen_desc[1], second, #call);	\
} while (0)
	DESC(desc[0], NULL, fi_recv(ep, buf, LEN, desc[0], PEER, CTX));
	DESC(desc[0], NULL, fi_send(ep, buf, LEN, desc[0], PEER, CTX));
	DESC(desc[0], NULL, fi_senddata(ep, buf, LEN, desc[0], DATA, PEER, CTX));
	DESC(desc[0], NULL, fi_trecv(ep, buf, LEN, desc[0], PEER, TAG, IGNORE, CTX));
	DESC(desc[0], NULL, fi_tsend(ep, buf, LEN, desc[0], PEER, TAG, CTX));
	DESC(desc[0], NULL, fi_read(ep, buf, LEN, desc[0], PEER, ADDR, KEY, CTX));
	DESC(desc[0], NULL, fi_write(ep, buf, LEN, desc[0], PEER, ADDR, KEY, CTX));
	DESC(desc[0], NULL, fi_writedata(ep, buf, LEN, desc[0], DATA, PEER, ADDR, KEY, CTX));
	DESC(desc[0], desc[1], fi_recvv(ep, iov, desc, 2, PEER, CTX));
	DESC(desc[0], desc[1], fi_sendv(ep, iov, desc, 2, PEER, CTX));
	DESC(desc[0], desc[1], fi_trecvv(ep, iov, desc, 2, PEER, TAG, IGNORE, CTX));
	DESC(desc[0], desc[1], fi_writev(ep, iov, desc, 2, PEER, ADDR, KEY, CTX));
	DESC(desc[0], desc[1], fi_recvmsg(ep, &msg, 0));
	DESC(desc[0], desc[1], fi_tsendmsg(ep, &tagged, 0));
	DESC(desc[0], desc[1], fi_readmsg(ep, &rma_msg, 0));
	DESC(NULL, NULL, fi_sendv(ep, iov, NULL, 2, PEER, CTX));
	DESC(NULL, NULL, fi_inject(ep, buf, LEN, PEER));
#undef DESC
}

static struct kunit_case calls_cases[] = {
	KUNIT_CASE(calls_msg),
	KUNIT_CASE(calls_tagged),
	KUNIT_CASE(calls_rma),
	KUNIT_CASE(calls_atomic),
	KUNIT_CASE_PARAM(calls_atomic_check, atomic_wrong_gen_params),
	KUNIT_CASE(calls_too_long),
	KUNIT_CASE(calls_flags),
	KUNIT_CASE(calls_desc),
	{}
};

static struct kunit_suite calls_suite = {
	.name = "kofi_calls",
	.test_cases = calls_cases,
};

kunit_test_suite(calls_suite);

MODULE_DESCRIPTION("KUnit tests of requests made of data calls");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
