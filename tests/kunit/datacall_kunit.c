// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A data call always reaches the provider, with unchanged arguments. So the core refuses
 * objects whose op vectors are incomplete.
 */
#include <linux/args.h>
#include <linux/string.h>
#include "fake.h"

static u8 buf[64];
static struct kvec iov[3];
static void *descs[3];
static struct fi_msg msg;
static struct fi_msg_tagged tmsg;
static struct fi_msg_rma rmsg;
static struct fi_msg_atomic amsg;
static struct fi_ioc ioc[3], cioc[3], rioc[3];

/* Distinct values for all arguments, so that exchanged arguments are detected. */
#define LEN	17
#define DESC	((void *)0x1111)
#define TAG_DESC	((void *)0xaaaa)
#define DATA_DESC	((void *)0xbbbb)
#define COUNT	3
#define PEER	0x22ULL
#define CTX	((void *)0x3333)
#define DATA	0x4444444444444444ULL
#define TAG	0x5555555555555555ULL
#define IGNORE	0x6666ULL
#define ADDR	0x7777777777777777ULL
#define KEY	0x8888888888888888ULL
#define FLAGS	0x9999999999999999ULL
#define TYPE	FI_DOUBLE
#define OP	FI_LXOR

#define A1(x)		((u64)(unsigned long)(x))
#define A2(x, ...)	A1(x), A1(__VA_ARGS__)
#define A3(x, ...)	A1(x), A2(__VA_ARGS__)
#define A4(x, ...)	A1(x), A3(__VA_ARGS__)
#define A5(x, ...)	A1(x), A4(__VA_ARGS__)
#define A6(x, ...)	A1(x), A5(__VA_ARGS__)
#define A7(x, ...)	A1(x), A6(__VA_ARGS__)
#define A8(x, ...)	A1(x), A7(__VA_ARGS__)
#define A(...)		CONCATENATE(A, COUNT_ARGS(__VA_ARGS__))(__VA_ARGS__)

/* Call @fn; @want takes the expected arguments, which are @list, in parentheses. */
#define EXPAND(...)	__VA_ARGS__
#define CALL_AS(fn, list, ...)						\
static ssize_t call_##fn(struct fid_ep *ep, u64 *want)			\
{									\
	const u64 arg[KOFI_FAKE_ARGS] = { EXPAND list };		\
									\
	memcpy(want, arg, sizeof(arg));					\
	return fn(ep, __VA_ARGS__);					\
}

#define CALL(fn, ...)	CALL_AS(fn, (A(__VA_ARGS__)), __VA_ARGS__)
/* The same for a call with more arguments than A() can count, of which @... are the last. */
#define CALL_TO(fn, list, first, ...)					\
	CALL_AS(fn, (EXPAND list, A(__VA_ARGS__)), EXPAND first, __VA_ARGS__)

CALL(fi_recv, buf, LEN, DESC, PEER, CTX)
CALL(fi_recvv, iov, descs, COUNT, PEER, CTX)
CALL(fi_recvmsg, &msg, FLAGS)
CALL(fi_send, buf, LEN, DESC, PEER, CTX)
CALL(fi_sendv, iov, descs, COUNT, PEER, CTX)
CALL(fi_sendmsg, &msg, FLAGS)
CALL(fi_inject, buf, LEN, PEER)
CALL(fi_senddata, buf, LEN, DESC, DATA, PEER, CTX)
CALL(fi_injectdata, buf, LEN, DATA, PEER)
CALL(fi_recvfrom, buf, LEN, DESC, PEER, CTX)
CALL(fi_sendto, buf, LEN, DESC, PEER, CTX)
CALL(fi_trecv, buf, LEN, DESC, PEER, TAG, IGNORE, CTX)
CALL(fi_trecvv, iov, descs, COUNT, PEER, TAG, IGNORE, CTX)
CALL(fi_trecvmsg, &tmsg, FLAGS)
CALL(fi_tsend, buf, LEN, DESC, PEER, TAG, CTX)
CALL(fi_tsendv, iov, descs, COUNT, PEER, TAG, CTX)
CALL(fi_tsendmsg, &tmsg, FLAGS)
CALL(fi_tinject, buf, LEN, PEER, TAG)
CALL(fi_tsenddata, buf, LEN, DESC, DATA, PEER, TAG, CTX)
CALL(fi_tinjectdata, buf, LEN, DATA, PEER, TAG)
CALL(fi_read, buf, LEN, DESC, PEER, ADDR, KEY, CTX)
CALL(fi_readv, iov, descs, COUNT, PEER, ADDR, KEY, CTX)
CALL(fi_readmsg, &rmsg, FLAGS)
CALL(fi_write, buf, LEN, DESC, PEER, ADDR, KEY, CTX)
CALL(fi_writev, iov, descs, COUNT, PEER, ADDR, KEY, CTX)
CALL(fi_writemsg, &rmsg, FLAGS)
CALL(fi_inject_write, buf, LEN, PEER, ADDR, KEY)
CALL(fi_writedata, buf, LEN, DESC, DATA, PEER, ADDR, KEY, CTX)
CALL(fi_inject_writedata, buf, LEN, DATA, PEER, ADDR, KEY)

#define WHERE	PEER, ADDR, KEY, TYPE, OP

CALL_TO(fi_atomic, (A3(buf, LEN, DESC)), (buf, LEN, DESC), WHERE, CTX)
CALL_TO(fi_atomicv, (A3(ioc, descs, COUNT)), (ioc, descs, COUNT), WHERE, CTX)
CALL(fi_atomicmsg, &amsg, FLAGS)
CALL_TO(fi_inject_atomic, (A2(buf, LEN)), (buf, LEN), WHERE)
CALL_TO(fi_fetch_atomic, (A5(buf, LEN, DESC, &rioc[1], TAG_DESC)),
	(buf, LEN, DESC, &rioc[1], TAG_DESC), WHERE, CTX)
CALL_TO(fi_fetch_atomicv, (A6(ioc, descs, COUNT, rioc, descs + 1, 2)),
	(ioc, descs, COUNT, rioc, descs + 1, 2), WHERE, CTX)
CALL(fi_fetch_atomicmsg, &amsg, rioc, descs + 1, 2, FLAGS)
CALL_TO(fi_compare_atomic,
	(A7(buf, LEN, DESC, &cioc[1], DATA_DESC, &rioc[1], TAG_DESC)),
	(buf, LEN, DESC, &cioc[1], DATA_DESC, &rioc[1], TAG_DESC), WHERE, CTX)
CALL_TO(fi_compare_atomicv,
	(A5(ioc, descs, COUNT, cioc, descs + 2), A4(1, rioc, descs + 1, 2)),
	(ioc, descs, COUNT, cioc, descs + 2, 1, rioc, descs + 1, 2), WHERE, CTX)
CALL(fi_compare_atomicmsg, &amsg, cioc, descs + 2, 1, rioc, descs + 1, 2, FLAGS)

/* In the order of the vectors, so that the op of a row is an offset in its vector. */
static const struct call {
	const char *desc;
	enum kofi_fake_op op;
	ssize_t (*call)(struct fid_ep *ep, u64 *want);
} calls[] = {
#define ROW(fn, op)	{ #fn, FAKE_ ## op, call_ ## fn }
	ROW(fi_recv, RECV), ROW(fi_recvv, RECVV), ROW(fi_recvmsg, RECVMSG),
	ROW(fi_send, SEND), ROW(fi_sendv, SENDV), ROW(fi_sendmsg, SENDMSG),
	ROW(fi_inject, INJECT), ROW(fi_senddata, SENDDATA),
	ROW(fi_injectdata, INJECTDATA),
	ROW(fi_trecv, TRECV), ROW(fi_trecvv, TRECVV),
	ROW(fi_trecvmsg, TRECVMSG), ROW(fi_tsend, TSEND),
	ROW(fi_tsendv, TSENDV), ROW(fi_tsendmsg, TSENDMSG),
	ROW(fi_tinject, TINJECT), ROW(fi_tsenddata, TSENDDATA),
	ROW(fi_tinjectdata, TINJECTDATA),
	ROW(fi_read, READ), ROW(fi_readv, READV), ROW(fi_readmsg, READMSG),
	ROW(fi_write, WRITE), ROW(fi_writev, WRITEV),
	ROW(fi_writemsg, WRITEMSG), ROW(fi_inject_write, INJECT_WRITE),
	ROW(fi_writedata, WRITEDATA),
	ROW(fi_inject_writedata, INJECT_WRITEDATA),
	ROW(fi_atomic, ATOMIC), ROW(fi_atomicv, ATOMICV), ROW(fi_atomicmsg, ATOMICMSG),
	ROW(fi_inject_atomic, INJECT_ATOMIC), ROW(fi_fetch_atomic, FETCH_ATOMIC),
	ROW(fi_fetch_atomicv, FETCH_ATOMICV), ROW(fi_fetch_atomicmsg, FETCH_ATOMICMSG),
	ROW(fi_compare_atomic, COMPARE_ATOMIC), ROW(fi_compare_atomicv, COMPARE_ATOMICV),
	ROW(fi_compare_atomicmsg, COMPARE_ATOMICMSG),
	/* the names of 2015 */
	ROW(fi_recvfrom, RECV), ROW(fi_sendto, SEND),
#undef ROW
};

KUNIT_ARRAY_PARAM_DESC(call, calls, desc);

static void open_ep(struct kunit *test, struct kofi_fake *fake,
		    struct kofi_fake_set *set, bool enable)
{
	kofi_fake_open_all(test, fake, set);
	kofi_fake_bind_ep(test, set);
	if (enable)
		KUNIT_ASSERT_EQ(test, fi_enable(set->ep), 0);
}

static void reaches_provider(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	const struct call *call = test->param_value;
	u64 want[KOFI_FAKE_ARGS];
	struct kofi_fake_set set;
	unsigned int i;

	open_ep(test, fake, &set, true);
	KUNIT_EXPECT_EQ(test, call->call(set.ep, want), 0);
	KUNIT_EXPECT_PTR_EQ(test, fake->call[call->op].object, &set.ep->fid);
	for (i = 0; i < KOFI_FAKE_ARGS; i++)
		KUNIT_EXPECT_EQ_MSG(test, fake->call[call->op].arg[i], want[i],
				    "argument %u", i);
	fake->call[call->op].ret = -EAGAIN;
	KUNIT_EXPECT_EQ(test, call->call(set.ep, want), -EAGAIN);
	/* No other op was called. */
	for (i = FAKE_RECV; i < FAKE_OPS; i++)
		KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, i),
				i == call->op ? 2 : 0);
}

/*
 * A peer may cause a call of a handler before the provider's enable has returned. Posts of
 * that handler must not be refused.
 */
static void post_while_enabling(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	u64 want[KOFI_FAKE_ARGS];

	*(ssize_t *)arg = call_fi_send(container_of(fid, struct fid_ep, fid), want);
}

static void posted_while_enabling(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set set;
	ssize_t posted = -EIO;

	fake->call[FAKE_CONTROL].hook = post_while_enabling;
	fake->call[FAKE_CONTROL].hook_arg = &posted;
	open_ep(test, fake, &set, true);
	KUNIT_EXPECT_EQ(test, posted, 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_SEND), 1);
}

/* Op vectors that lack one op. */
struct vectors {
	union {
		void *ops[FAKE_POST_REG - FAKE_RECV];
		struct {
			struct fi_ops_msg msg;
			struct fi_ops_tagged tagged;
			struct fi_ops_rma rma;
			struct fi_ops_atomic atomic;
		};
	};
};

/* Calls don't check ops, so an endpoint must not lack any. */
static void one_missing(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	const struct call *missing = test->param_value;
	struct kofi_fake_set set;
	struct vectors *vectors;
	struct fid_ep *ep;

	kofi_fake_open_all(test, fake, &set);
	vectors = kunit_kzalloc(test, sizeof(*vectors), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, vectors);
	vectors->msg = *fake->msg_ops;
	vectors->tagged = *fake->tagged_ops;
	vectors->rma = *fake->rma_ops;
	vectors->atomic = *fake->atomic_ops;
	vectors->ops[missing->op - FAKE_RECV] = NULL;
	fake->msg_ops = &vectors->msg;
	fake->tagged_ops = &vectors->tagged;
	fake->rma_ops = &vectors->rma;
	fake->atomic_ops = &vectors->atomic;
	KUNIT_EXPECT_EQ(test, fi_endpoint(set.domain, fake->info, &ep, NULL), -EPROTO);
	/* The refused object is closed. */
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_CLOSE), 1);
}

static void vectors_missing(struct kunit *test)
{
	static const struct kofi_req_ops half = { .tx = NULL };
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	const struct fi_ops_tagged *tagged = fake->tagged_ops;
	const struct kofi_req_ops *req = fake->req_ops;
	const struct fi_ops_msg *msg = fake->msg_ops;
	const struct fi_ops_atomic *atomic = fake->atomic_ops;
	const struct fi_ops_rma *rma = fake->rma_ops;
	struct kofi_fake_set set;
	struct fid_ep *ep;
	unsigned int i;

	kofi_fake_open_all(test, fake, &set);
	for (i = 0; i < 6; i++) {
		fake->msg_ops = i == 0 ? NULL : msg;
		fake->tagged_ops = i == 1 ? NULL : tagged;
		fake->rma_ops = i == 2 ? NULL : rma;
		fake->atomic_ops = i == 5 ? NULL : atomic;
		fake->req_ops = i == 3 ? NULL : i == 4 ? &half : req;
		KUNIT_EXPECT_EQ_MSG(test, fi_endpoint(set.domain, fake->info, &ep, NULL),
				    -EPROTO, "%u", i);
		KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_CLOSE), i + 1);
	}
}

/* A provider's op vectors aren't copied, so they can be in read-only memory. */
static void vectors_in_place(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set set;

	open_ep(test, fake, &set, true);
	KUNIT_EXPECT_PTR_EQ(test, set.ep->msg, fake->msg_ops);
	kofi_device_removed(&set.domain->fid, "fake-dev0");
	KUNIT_EXPECT_PTR_EQ(test, set.ep->msg, fake->msg_ops);
	KUNIT_EXPECT_PTR_EQ(test, set.ep->tagged, fake->tagged_ops);
	KUNIT_EXPECT_PTR_EQ(test, set.ep->rma, fake->rma_ops);
	KUNIT_EXPECT_PTR_EQ(test, set.ep->atomic, fake->atomic_ops);
	KUNIT_EXPECT_PTR_EQ(test, set.pool_mr->ops, fake->mr_ops);
}

/* An endpoint without request ops refuses unsupported calls. */
static void no_requests(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set set;
	u64 want[KOFI_FAKE_ARGS];
	unsigned int i;

	fake->msg_ops = &kofi_req_msg_ops;
	fake->tagged_ops = &kofi_req_tagged_ops;
	fake->rma_ops = &kofi_req_rma_ops;
	fake->atomic_ops = &kofi_req_atomic_ops;
	open_ep(test, fake, &set, true);
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		KUNIT_EXPECT_EQ_MSG(test, calls[i].call(set.ep, want), -EOPNOTSUPP,
				    "%s", calls[i].desc);
}

/* DMA from the stack is refused, but data that is copied may be on the stack. */
static void stack_buffers(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	int ret = IS_ENABLED(CONFIG_DMA_API_DEBUG) ? -EINVAL : 0;
	struct kofi_fake_set set;
	struct fid_ep *ep;
	u8 here[8] = {};

	open_ep(test, fake, &set, true);
	ep = set.ep;
#define EXPECT(value, call)	KUNIT_EXPECT_EQ_MSG(test, call, value, #call)
	EXPECT(ret, fi_recv(ep, here, 8, NULL, 0, NULL));
	EXPECT(ret, fi_send(ep, here, 8, NULL, 0, NULL));
	EXPECT(ret, fi_senddata(ep, here, 8, NULL, 0, 0, NULL));
	EXPECT(ret, fi_recvfrom(ep, here, 8, NULL, 0, NULL));
	EXPECT(ret, fi_sendto(ep, here, 8, NULL, 0, NULL));
	EXPECT(ret, fi_trecv(ep, here, 8, NULL, 0, 0, 0, NULL));
	EXPECT(ret, fi_tsend(ep, here, 8, NULL, 0, 0, NULL));
	EXPECT(ret, fi_tsenddata(ep, here, 8, NULL, 0, 0, 0, NULL));
	EXPECT(ret, fi_read(ep, here, 8, NULL, 0, 0, 0, NULL));
	EXPECT(ret, fi_write(ep, here, 8, NULL, 0, 0, 0, NULL));
	EXPECT(ret, fi_writedata(ep, here, 8, NULL, 0, 0, 0, 0, NULL));
	EXPECT(ret, fi_atomic(ep, here, 1, NULL, 0, 0, 0, TYPE, OP, NULL));
	EXPECT(ret, fi_fetch_atomic(ep, here, 1, NULL, buf, NULL, 0, 0, 0, TYPE, OP, NULL));
	EXPECT(ret, fi_fetch_atomic(ep, buf, 1, NULL, here, NULL, 0, 0, 0, TYPE, OP, NULL));
	EXPECT(ret, fi_compare_atomic(ep, buf, 1, NULL, here, NULL, buf, NULL, 0, 0, 0, TYPE, OP,
				      NULL));
	EXPECT(0, fi_inject_atomic(ep, here, 1, 0, 0, 0, TYPE, OP));
	EXPECT(0, fi_inject(ep, here, 8, 0));
	EXPECT(0, fi_injectdata(ep, here, 8, 0, 0));
	EXPECT(0, fi_tinject(ep, here, 8, 0, 0));
	EXPECT(0, fi_tinjectdata(ep, here, 8, 0, 0, 0));
	EXPECT(0, fi_inject_write(ep, here, 8, 0, 0, 0));
	EXPECT(0, fi_inject_writedata(ep, here, 8, 0, 0, 0, 0));
#undef EXPECT
}

/* A domain tells which operations it has. An endpoint's calls ask its domain. */
static void queries(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	const struct kofi_fake_call *query = &fake->call[FAKE_QUERY_ATOMIC];
	struct fi_ops_domain none = *fake->domain_ops;
	struct fi_atomic_attr attr = { };
	struct kofi_fake_set set;
	size_t count = 0;

	fake->info->caps |= FI_ATOMIC;
	open_ep(test, fake, &set, false);
#define EXPECT(value, call)	KUNIT_EXPECT_EQ_MSG(test, call, value, #call)
	EXPECT(0, fi_query_atomic(set.domain, TYPE, OP, &attr, FI_FETCH_ATOMIC));
	KUNIT_EXPECT_PTR_EQ(test, query->object, &set.domain->fid);
	KUNIT_EXPECT_EQ(test, query->arg[0], (u64)TYPE);
	KUNIT_EXPECT_EQ(test, query->arg[1], (u64)OP);
	KUNIT_EXPECT_EQ(test, query->arg[3], FI_FETCH_ATOMIC);
	KUNIT_EXPECT_EQ(test, attr.size, (size_t)7);
	EXPECT(0, fi_atomicvalid(set.ep, TYPE, OP, &count));
	KUNIT_EXPECT_EQ(test, count, (size_t)10 * TYPE + OP);
	KUNIT_EXPECT_EQ(test, query->arg[3], 0ULL);
	EXPECT(0, fi_fetch_atomicvalid(set.ep, TYPE, OP, &count));
	KUNIT_EXPECT_EQ(test, query->arg[3], FI_FETCH_ATOMIC);
	EXPECT(0, fi_compare_atomicvalid(set.ep, TYPE, OP, &count));
	KUNIT_EXPECT_EQ(test, query->arg[3], FI_COMPARE_ATOMIC);
	EXPECT(-EINVAL, fi_query_atomic(NULL, TYPE, OP, &attr, 0));
	EXPECT(-EINVAL, fi_query_atomic(set.domain, TYPE, OP, NULL, 0));
	EXPECT(-FI_EBADFLAGS, fi_query_atomic(set.domain, TYPE, OP, &attr, FI_TAGGED));
	EXPECT(-FI_EBADFLAGS, fi_query_atomic(set.domain, TYPE, OP, &attr,
					      FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC));
	EXPECT(-EINVAL, fi_atomicvalid(NULL, TYPE, OP, &count));
	EXPECT(-EINVAL, fi_atomicvalid(set.ep, TYPE, OP, NULL));
	fake->call[FAKE_QUERY_ATOMIC].ret = -EOPNOTSUPP;
	EXPECT(-EOPNOTSUPP, fi_atomicvalid(set.ep, TYPE, OP, &count));
	none.query_atomic = NULL;
	set.domain->ops = &none;
	EXPECT(-EOPNOTSUPP, fi_query_atomic(set.domain, TYPE, OP, &attr, 0));
	set.domain->ops = fake->domain_ops;
	kofi_device_removed(&set.domain->fid, "fake-dev0");
	EXPECT(-ENODEV, fi_query_atomic(set.domain, TYPE, OP, &attr, 0));
#undef EXPECT
}

/* An endpoint that was opened without atomics has none. */
static void queries_without(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set set;
	size_t count = 5;

	fake->info->caps = FI_MSG;
	open_ep(test, fake, &set, false);
	KUNIT_EXPECT_EQ(test, fi_atomicvalid(set.ep, TYPE, OP, &count), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_QUERY_ATOMIC), 0);
}

/* Regions */

static void regions(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	const struct kofi_fake_call *reg = &fake->call[FAKE_POST_REG];
	const struct kofi_fake_call *inval = &fake->call[FAKE_POST_INVAL];
	const struct fi_ops_mr half = { .post_reg = fake->mr_ops->post_reg };
	struct fi_mr_alloc_attr alloc = { .max_pages = 1, .access = FI_REMOTE_READ };
	struct fi_mr_attr attr = {};
	struct kofi_fake_set set;
	struct fid_mr *mr;

	kofi_fake_open_all(test, fake, &set);
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(set.pool_mr, &attr, FLAGS), 0);
	KUNIT_EXPECT_PTR_EQ(test, reg->object, &set.pool_mr->fid);
	KUNIT_EXPECT_EQ(test, reg->arg[0], A(&attr));
	KUNIT_EXPECT_EQ(test, reg->arg[1], FLAGS);
	KUNIT_EXPECT_EQ(test, fi_mr_post_inval(set.pool_mr, FLAGS, CTX), 0);
	KUNIT_EXPECT_PTR_EQ(test, inval->object, &set.pool_mr->fid);
	KUNIT_EXPECT_EQ(test, inval->arg[0], FLAGS);
	KUNIT_EXPECT_EQ(test, inval->arg[1], A(CTX));

	/* A region of fi_mr_reg() doesn't have these calls. */
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(set.mr, &attr, FLAGS), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_mr_post_inval(set.mr, FLAGS, CTX), -EOPNOTSUPP);

	alloc.cq = set.cq;
	fake->mr_ops = NULL;
	KUNIT_EXPECT_EQ(test, fi_mr_alloc(set.domain, &alloc, &mr, NULL), -EPROTO);
	fake->mr_ops = &half;
	KUNIT_EXPECT_EQ(test, fi_mr_alloc(set.domain, &alloc, &mr, NULL), -EPROTO);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_CLOSE), 2);
}

static void region_values(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set set;
	u64 base = 0, key = 0;
	size_t size;
	u8 raw[16];

	kofi_fake_open_all(test, fake, &set);
	set.mr->mem_desc = DESC;
	set.mr->key = KEY;
	set.mr->base_addr = ADDR;
	KUNIT_EXPECT_PTR_EQ(test, fi_mr_desc(set.mr), DESC);
	KUNIT_EXPECT_EQ(test, fi_mr_key(set.mr), KEY);
	memset(raw, 0xa5, sizeof(raw));
	size = sizeof(raw);
	KUNIT_EXPECT_EQ(test, fi_mr_raw_attr(set.mr, &base, raw, &size, 0), 0);
	memcpy(&key, raw, sizeof(key));
	KUNIT_EXPECT_EQ(test, key, KEY);
	KUNIT_EXPECT_EQ(test, base, ADDR);
	KUNIT_EXPECT_EQ(test, size, sizeof(key));
	KUNIT_EXPECT_NULL(test, memchr_inv(raw + 8, 0xa5, 8));

	memset(raw, 0xa5, sizeof(raw));
	size = sizeof(key) - 1;
	KUNIT_EXPECT_EQ(test, fi_mr_raw_attr(set.mr, &base, raw, &size, 0),
			-FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, size, sizeof(key));
	KUNIT_EXPECT_NULL(test, memchr_inv(raw, 0xa5, sizeof(raw)));
	KUNIT_EXPECT_EQ(test, fi_mr_raw_attr(set.mr, &base, raw, &size, 1),
			-FI_EBADFLAGS);
}

/* Queues and counters that lack some of their calls, or have none */

static struct fid_cntr plain_cntr;
static struct fid_cq plain_cq;
static unsigned int plain_closed;

/* That of the last queue fails. */
static int plain_close(struct fid *fid)
{
	return ++plain_closed == 2 ? -EBUSY : 0;
}

static const struct fi_ops plain_ops = { .close = plain_close };
static const struct fi_ops_cq *plain_cq_ops;
static const struct fi_ops_cntr *plain_cntr_ops;

static int plain_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
			 struct fid_cq **cq, void *context)
{
	plain_cq.fid = (struct fid){ .ops = &plain_ops };
	plain_cq.ops = plain_cq_ops;
	*cq = &plain_cq;
	return 0;
}

static int plain_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
			   struct fid_cntr **cntr, void *context)
{
	plain_cntr.fid = (struct fid){ .ops = &plain_ops };
	plain_cntr.ops = plain_cntr_ops;
	*cntr = &plain_cntr;
	return 0;
}

static const struct fi_ops_domain plain_domain_ops = {
	.cq_open	= plain_cq_open,
	.cntr_open	= plain_cntr_open,
};

static void queues_missing(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_cq_attr cq_attr = {};
	struct fi_ops_cntr some_cntr;
	struct fi_ops_cq some_cq;
	struct kofi_fake_set set;
	struct fid_domain *domain;
	struct fid_cntr *cntr;
	struct fid_cq *cq;

	kofi_fake_open_all(test, fake, &set);
	some_cq = *set.cq->ops;
	some_cq.signal = NULL;
	some_cntr = *set.cntr->ops;
	some_cntr.wait = NULL;
	fake->domain_ops = &plain_domain_ops;
	plain_closed = 0;
	domain = kofi_fake_domain(test, fake, kofi_fake_fabric(test, fake));
#define EXPECT(value, call)	KUNIT_EXPECT_EQ_MSG(test, call, value, #call)
	plain_cq_ops = NULL;
	EXPECT(-EPROTO, fi_cq_open(domain, &cq_attr, &cq, NULL));
	plain_cq_ops = &some_cq;
	EXPECT(-EPROTO, fi_cq_open(domain, &cq_attr, &cq, NULL));
	plain_cntr_ops = NULL;
	EXPECT(-EPROTO, fi_cntr_open(domain, &cntr_attr, &cntr, NULL));
	plain_cntr_ops = &some_cntr;
	EXPECT(-EPROTO, fi_cntr_open(domain, &cntr_attr, &cntr, NULL));
	EXPECT(4U, plain_closed);
#undef EXPECT
}

static struct kunit_case datacall_cases[] = {
	KUNIT_CASE_PARAM(reaches_provider, call_gen_params),
	KUNIT_CASE(posted_while_enabling),
	KUNIT_CASE_PARAM(one_missing, call_gen_params),
	KUNIT_CASE(vectors_missing),
	KUNIT_CASE(vectors_in_place),
	KUNIT_CASE(no_requests),
	KUNIT_CASE(stack_buffers),
	KUNIT_CASE(queries),
	KUNIT_CASE(queries_without),
	KUNIT_CASE(regions),
	KUNIT_CASE(region_values),
	KUNIT_CASE(queues_missing),
	{}
};

static struct kunit_suite datacall_suite = {
	.name = "kofi_datacall",
	.test_cases = datacall_cases,
};

kunit_test_suite(datacall_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's data calls");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
