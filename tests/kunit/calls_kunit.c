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

static ssize_t note(struct kofi_req *req, bool tx)
{
	seen = *req;
	seen_tx = tx;
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
