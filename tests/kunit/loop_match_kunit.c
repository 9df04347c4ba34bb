// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Matching of receives and messages in the loopback provider: directed receives, multi-receive
 * buffers, peek, claim and discard.
 */
#include <kofi/provider.h>
#include "loop_test.h"

static void post_directed(struct kunit *test, struct loop_end *end, fi_addr_t from,
			  void *context)
{
	KUNIT_ASSERT_EQ(test, fi_recv(end->ep, end->buf, 8, NULL, from, context), 0);
}

static void directed(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {
		.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV,
	});
	struct loop_comp comp;

	KUNIT_EXPECT_EQ(test, fi_recv(p->b.ep, p->b.buf, 8, NULL, 77, NULL),
			-EHOSTUNREACH);
	/* Messages of the other sender don't match, whether they come before or after. */
	KUNIT_ASSERT_EQ(test, fi_inject(p->b.ep, p->b.buf, 1, p->b.addr), 0);
	post_directed(test, &p->b, p->a.addr, loop_ctx(1));
	KUNIT_ASSERT_EQ(test, fi_inject(p->b.ep, p->b.buf, 2, p->b.addr), 0);
	loop_expect_quiet(test, &p->b);
	KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, p->a.buf, 3, p->b.addr), 0);
	loop_await(test, &p->b, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 3);
	KUNIT_EXPECT_EQ(test, comp.src, p->a.addr);

	KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, p->a.buf, 4, p->b.addr), 0);
	loop_expect_quiet(test, &p->b);
	post_directed(test, &p->b, p->a.addr, loop_ctx(2));
	loop_await(test, &p->b, loop_ctx(2), &comp);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 4);
	post_directed(test, &p->b, p->b.addr, loop_ctx(3));
	loop_await(test, &p->b, loop_ctx(3), &comp);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 1);
	post_directed(test, &p->b, FI_ADDR_UNSPEC, loop_ctx(4));
	loop_await(test, &p->b, loop_ctx(4), &comp);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 2);

	/* A receive that ignores bits of the tag is directed as well. */
	KUNIT_ASSERT_EQ(test, fi_trecv(p->b.ep, p->b.buf, 8, NULL, p->a.addr, 0, U64_MAX,
				       loop_ctx(5)), 0);
	KUNIT_ASSERT_EQ(test, fi_tinject(p->b.ep, p->b.buf, 5, p->b.addr, 9), 0);
	KUNIT_ASSERT_EQ(test, fi_tinject(p->a.ep, p->a.buf, 6, p->b.addr, 9), 0);
	loop_await(test, &p->b, loop_ctx(5), &comp);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 6);
}

/* Without FI_DIRECTED_RECV the address is ignored. */
static void undirected(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;

	post_directed(test, &p->b, 77, loop_ctx(1));
	KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, p->a.buf, 3, p->b.addr), 0);
	loop_await(test, &p->b, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, 0);
}

/* --- multi-receive --- */

static void post_multi(struct kunit *test, struct loop_end *end, void *buf, size_t len,
		       void *context)
{
	struct kvec kvec = { buf, len };
	struct fi_msg msg = { .addr = FI_ADDR_UNSPEC, .context = context };

	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &kvec, 1, len);
	KUNIT_ASSERT_EQ(test, fi_recvmsg(end->ep, &msg, FI_MULTI_RECV | FI_COMPLETION), 0);
}

static void set_min(struct kunit *test, struct loop_end *end, size_t min)
{
	KUNIT_ASSERT_EQ(test, fi_setopt(&end->ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)), 0);
}

static void send_filled(struct kunit *test, struct loop_pair *p, u8 value, size_t len)
{
	memset(p->a.buf, value, len);
	KUNIT_ASSERT_EQ(test, fi_send(p->a.ep, p->a.buf, len, NULL, p->b.addr,
				      loop_ctx(100)), 0);
}

static void await_piece(struct kunit *test, struct loop_end *end, void *context, u8 *at,
			u8 value, size_t len, u64 flags)
{
	struct loop_comp comp;

	loop_await(test, end, context, &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, 0);
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_MSG | FI_RECV | flags);
	KUNIT_EXPECT_EQ(test, comp.entry.len, len);
	KUNIT_EXPECT_PTR_EQ(test, comp.entry.buf, (void *)at);
	KUNIT_EXPECT_NULL(test, memchr_inv(at, value, len));
}

static void multi(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	u8 *buf = p->b.buf;
	int i;

	set_min(test, &p->b, 200);
	post_multi(test, &p->b, buf, 1000, loop_ctx(1));
	for (i = 0; i < 4; i++) {
		send_filled(test, p, i + 1, 300);
		loop_await_ok(test, &p->a, loop_ctx(100), FI_MSG | FI_SEND);
		if (i == 2)
			post_multi(test, &p->b, buf + 1000, 1000, loop_ctx(2));
	}
	await_piece(test, &p->b, loop_ctx(1), buf, 1, 300, 0);
	await_piece(test, &p->b, loop_ctx(1), buf + 300, 2, 300, 0);
	/* 100 bytes are left, less than the minimum. */
	await_piece(test, &p->b, loop_ctx(1), buf + 600, 3, 300, FI_MULTI_RECV);
	await_piece(test, &p->b, loop_ctx(2), buf + 1000, 4, 300, 0);
	loop_expect_quiet(test, &p->b);
}

/* Waiting messages are received in order while the buffer has room. */
static void multi_late(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	u8 *buf = p->b.buf;
	u8 byte;
	int i;

	for (i = 0; i < 3; i++) {
		byte = i + 1;
		KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, &byte, 1, p->b.addr), 0);
	}
	set_min(test, &p->b, 0);
	loop_expect_quiet(test, &p->b);
	post_multi(test, &p->b, buf, 2, loop_ctx(1));
	await_piece(test, &p->b, loop_ctx(1), buf, 1, 1, 0);
	await_piece(test, &p->b, loop_ctx(1), buf + 1, 2, 1, FI_MULTI_RECV);
	loop_expect_quiet(test, &p->b);
	post_multi(test, &p->b, buf, 100, loop_ctx(2));
	await_piece(test, &p->b, loop_ctx(2), buf, 3, 1, 0);
}

#define MANY	100	/* more than the reserve for unsolicited completions */

static void read_many(struct kunit *test, struct loop_pair *p, int from)
{
	int i;

	for (i = from; i < MANY; i++)
		await_piece(test, &p->b, loop_ctx(1), p->b.buf + i, i, 1, 0);
}

/* If the queue isn't read for a while, no message is lost or overtaken. */
static void multi_unread(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;
	u8 i;

	post_multi(test, &p->b, p->b.buf, 1000, loop_ctx(1));
	for (i = 0; i < MANY; i++)
		KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, &i, 1, p->b.addr), 0);
	msleep(50);
	read_many(test, p, 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&p->b.ep->fid, loop_ctx(1)), 0);
	loop_await_err(test, &p->b, loop_ctx(1), ECANCELED);

	/* If the messages came first, the next receive doesn't take them. */
	for (i = 0; i < MANY; i++)
		KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, &i, 1, p->b.addr), 0);
	msleep(50);
	post_multi(test, &p->b, p->b.buf, 1000, loop_ctx(1));
	KUNIT_ASSERT_EQ(test, fi_recv(p->b.ep, p->b.buf + 2000, 8, NULL, FI_ADDR_UNSPEC,
				      loop_ctx(2)), 0);
	read_many(test, p, 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&p->b.ep->fid, loop_ctx(1)), 0);
	loop_await(test, &p->b, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, ECANCELED);
	KUNIT_EXPECT_EQ(test, comp.error.flags, FI_MSG | FI_RECV | FI_MULTI_RECV);
	KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, p->a.buf, 5, p->b.addr), 0);
	loop_await(test, &p->b, loop_ctx(2), &comp);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 5);
}

static void multi_truncated(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;

	memset(p->b.buf, 0xa5, 200);
	post_multi(test, &p->b, p->b.buf, 100, loop_ctx(1));
	send_filled(test, p, 1, 10);
	send_filled(test, p, 1, 150);
	await_piece(test, &p->b, loop_ctx(1), p->b.buf, 1, 10, 0);
	loop_await(test, &p->b, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, comp.error.flags, FI_MSG | FI_RECV | FI_MULTI_RECV);
	KUNIT_EXPECT_EQ(test, comp.error.len, 90);
	KUNIT_EXPECT_EQ(test, comp.error.olen, 60);
	KUNIT_EXPECT_EQ(test, p->b.buf[100], 0xa5);
}

/* The release of the buffer is always reported. */
static void multi_selective(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {
		.bind = FI_SELECTIVE_COMPLETION,
	});
	struct kvec kvec = { p->b.buf, 100 };
	struct fi_msg msg = { .addr = FI_ADDR_UNSPEC, .context = loop_ctx(1) };
	int i;

	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &kvec, 1, 100);
	KUNIT_ASSERT_EQ(test, fi_recvmsg(p->b.ep, &msg, FI_MULTI_RECV), 0);
	memset(p->a.buf, 7, 20);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, p->a.buf, 20, p->b.addr), 0);
	await_piece(test, &p->b, loop_ctx(1), p->b.buf + 20, 7, 20, FI_MULTI_RECV);
}

/* Many messages wait for a buffer whose pieces aren't reported. */
static void multi_selective_many(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {
		.bind = FI_SELECTIVE_COMPLETION,
	});
	struct kvec kvec = { p->b.buf, MANY * 20 };
	struct fi_msg msg = { .addr = FI_ADDR_UNSPEC, .context = loop_ctx(1) };
	int i;

	set_min(test, &p->b, 1);
	memset(p->a.buf, 7, 20);
	for (i = 0; i < MANY; i++)
		KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, p->a.buf, 20, p->b.addr), 0);
	msleep(50);
	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &kvec, 1, kvec.iov_len);
	KUNIT_ASSERT_EQ(test, fi_recvmsg(p->b.ep, &msg, FI_MULTI_RECV), 0);
	await_piece(test, &p->b, loop_ctx(1), p->b.buf + 20 * (MANY - 1), 7, 20, FI_MULTI_RECV);
}

static void multi_bad_calls(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_pair *without = loop_pair(test, (struct loop_opts) {
		.caps = FI_MSG, .undirected = true,
	});
	struct kvec kvec[2] = { { p->b.buf, 8 }, { p->b.buf + 8, 8 } };
	struct fi_msg_tagged tagged = { .addr = FI_ADDR_UNSPEC };
	struct fi_msg msg = { .addr = FI_ADDR_UNSPEC };

	iov_iter_kvec(&msg.msg_iter, ITER_DEST, kvec, 2, 16);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(p->b.ep, &msg, FI_MULTI_RECV), -EINVAL);
	iov_iter_kvec(&msg.msg_iter, ITER_DEST, kvec, 1, 8);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(p->b.ep, &msg, FI_MULTI_RECV | FI_PEEK),
			-FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(without->b.ep, &msg, FI_MULTI_RECV), -EOPNOTSUPP);
	tagged.msg_iter = msg.msg_iter;
	KUNIT_EXPECT_EQ(test, fi_trecvmsg(p->b.ep, &tagged, FI_MULTI_RECV), -FI_EBADFLAGS);
}

/* --- peek, claim, discard --- */

static void look(struct kunit *test, struct loop_end *end, u64 tag, u64 ignore, u64 flags,
		 void *context, struct loop_comp *comp)
{
	struct kvec kvec = { end->buf, LOOP_BUF };
	struct fi_msg_tagged msg = {
		.addr = FI_ADDR_UNSPEC, .tag = tag, .ignore = ignore, .context = context,
	};

	/* A peek needs no buffer. */
	if (!(flags & (FI_PEEK | FI_DISCARD)))
		iov_iter_kvec(&msg.msg_iter, ITER_DEST, &kvec, 1, LOOP_BUF);
	KUNIT_ASSERT_EQ(test, fi_trecvmsg(end->ep, &msg, flags | FI_COMPLETION), 0);
	loop_await(test, end, context, comp);
}

/* Peek until the message has arrived. */
static void look_until(struct kunit *test, struct loop_end *end, u64 tag, u64 ignore,
		       u64 flags, void *context, struct loop_comp *comp)
{
	KUNIT_ASSERT_TRUE(test, kofi_soon(({
		look(test, end, tag, ignore, flags, context, comp);
		!comp->error.err;
	})));
	KUNIT_EXPECT_EQ(test, comp->entry.flags & (FI_TAGGED | FI_RECV), FI_TAGGED | FI_RECV);
}

static void expect_none(struct kunit *test, struct loop_end *end, u64 tag, u64 flags,
			void *context)
{
	struct loop_comp comp;

	look(test, end, tag, 0, flags, context, &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, FI_ENOMSG);
	KUNIT_EXPECT_EQ(test, comp.error.flags, FI_TAGGED | FI_RECV);
}

static void tsend(struct kunit *test, struct loop_pair *p, u64 tag, size_t len, void *context)
{
	KUNIT_ASSERT_EQ(test, fi_tsend(p->a.ep, p->a.buf, len, NULL, p->b.addr, tag,
				       context), 0);
}

static void peek(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;
	int i;

	expect_none(test, &p->b, 5, FI_PEEK, loop_ctx(1));
	KUNIT_ASSERT_EQ(test, fi_tsenddata(p->a.ep, p->a.buf, 300, NULL, 0xda7a, p->b.addr,
					   5, loop_ctx(9)), 0);
	tsend(test, p, 6, 40, loop_ctx(10));
	look_until(test, &p->b, 6, 0, FI_PEEK, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 40);
	/* A peek returns the oldest message, which stays. */
	for (i = 0; i < 2; i++) {
		look(test, &p->b, 0, U64_MAX, FI_PEEK, loop_ctx(1), &comp);
		KUNIT_EXPECT_EQ(test, comp.error.err, 0);
		KUNIT_EXPECT_EQ(test, comp.entry.flags,
				FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA);
		KUNIT_EXPECT_EQ(test, comp.entry.len, 300);
		KUNIT_EXPECT_EQ(test, comp.entry.tag, 5);
		KUNIT_EXPECT_EQ(test, comp.entry.data, 0xda7a);
		KUNIT_EXPECT_EQ(test, comp.src, p->a.addr);
	}
	expect_none(test, &p->b, 7, FI_PEEK, loop_ctx(1));
	loop_expect_quiet(test, &p->a);
	KUNIT_ASSERT_EQ(test, fi_trecv(p->b.ep, p->b.buf, 300, NULL, FI_ADDR_UNSPEC, 5, 0,
				       loop_ctx(2)), 0);
	loop_await_ok(test, &p->b, loop_ctx(2), FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA);
	loop_await_ok(test, &p->a, loop_ctx(9), FI_TAGGED | FI_SEND | FI_REMOTE_CQ_DATA);
	expect_none(test, &p->b, 5, FI_PEEK, loop_ctx(1));
}

/* Untagged messages can be peeked at, too. */
static void peek_untagged(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct fi_msg msg = { .addr = FI_ADDR_UNSPEC, .context = loop_ctx(1) };
	struct loop_comp comp;

	send_filled(test, p, 1, 30);
	KUNIT_ASSERT_TRUE(test, kofi_soon(({
		KUNIT_ASSERT_EQ(test, fi_recvmsg(p->b.ep, &msg, FI_PEEK), 0);
		loop_await(test, &p->b, loop_ctx(1), &comp);
		!comp.error.err;
	})));
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_MSG | FI_RECV);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 30);
}

static void claim(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;

	p->a.buf[0] = 0x11;
	tsend(test, p, 5, 100, loop_ctx(9));
	look_until(test, &p->b, 5, 0, FI_PEEK | FI_CLAIM, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 100);
	/* A claimed message matches no receive, and its sender can't cancel it. */
	expect_none(test, &p->b, 5, FI_PEEK, loop_ctx(2));
	expect_none(test, &p->b, 5, FI_CLAIM, loop_ctx(2));
	KUNIT_EXPECT_EQ(test, fi_cancel(&p->a.ep->fid, loop_ctx(9)), -ENOENT);
	KUNIT_ASSERT_EQ(test, fi_trecv(p->b.ep, p->b.buf, 200, NULL, FI_ADDR_UNSPEC, 5, 0,
				       loop_ctx(3)), 0);
	tsend(test, p, 5, 101, loop_ctx(10));
	loop_await(test, &p->b, loop_ctx(3), &comp);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 101);
	loop_await_ok(test, &p->a, loop_ctx(10), FI_TAGGED | FI_SEND);

	p->b.buf[0] = 0;
	look(test, &p->b, 0, 0, FI_CLAIM, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, 0);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 100);
	KUNIT_EXPECT_EQ(test, comp.entry.tag, 5);
	KUNIT_EXPECT_EQ(test, p->b.buf[0], 0x11);
	loop_await_ok(test, &p->a, loop_ctx(9), FI_TAGGED | FI_SEND);
	expect_none(test, &p->b, 0, FI_CLAIM, loop_ctx(1));
}

static void discard(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;

	memset(p->b.buf, 0xa5, 100);
	tsend(test, p, 5, 100, loop_ctx(9));
	look_until(test, &p->b, 5, 0, FI_PEEK | FI_DISCARD, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 100);
	loop_await_ok(test, &p->a, loop_ctx(9), FI_TAGGED | FI_SEND);
	expect_none(test, &p->b, 5, FI_PEEK, loop_ctx(1));

	tsend(test, p, 6, 50, loop_ctx(10));
	look_until(test, &p->b, 6, 0, FI_PEEK | FI_CLAIM, loop_ctx(1), &comp);
	loop_expect_quiet(test, &p->a);
	look(test, &p->b, 0, 0, FI_CLAIM | FI_DISCARD, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, 0);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 50);
	loop_await_ok(test, &p->a, loop_ctx(10), FI_TAGGED | FI_SEND);
	expect_none(test, &p->b, 0, FI_CLAIM, loop_ctx(1));
	KUNIT_EXPECT_NULL(test, memchr_inv(p->b.buf, 0xa5, 100));
}

/* A message stays in its sender's memory until it is received. */
static void sender_leaves(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;

	tsend(test, p, 5, 100, loop_ctx(9));
	tsend(test, p, 6, 100, loop_ctx(10));
	look_until(test, &p->b, 6, 0, FI_PEEK, loop_ctx(1), &comp);
	look(test, &p->b, 5, 0, FI_PEEK | FI_CLAIM, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, fi_cancel(&p->a.ep->fid, loop_ctx(10)), 0);
	loop_await_err(test, &p->a, loop_ctx(10), ECANCELED);
	expect_none(test, &p->b, 6, FI_PEEK, loop_ctx(1));
	LOOP_CLOSE(p->a.ep);
	loop_await_err(test, &p->a, loop_ctx(9), ECANCELED);
	expect_none(test, &p->b, 0, FI_CLAIM, loop_ctx(1));
}

static void receiver_leaves(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;

	tsend(test, p, 5, 100, loop_ctx(9));
	tsend(test, p, 6, 100, loop_ctx(10));
	look_until(test, &p->b, 6, 0, FI_PEEK | FI_CLAIM, loop_ctx(1), &comp);
	post_multi(test, &p->b, p->b.buf, 1000, loop_ctx(2));
	send_filled(test, p, 1, 10);
	await_piece(test, &p->b, loop_ctx(2), p->b.buf, 1, 10, 0);
	loop_await_ok(test, &p->a, loop_ctx(100), FI_MSG | FI_SEND);
	LOOP_CLOSE(p->b.ep);
	loop_await_err(test, &p->a, loop_ctx(9), EHOSTUNREACH);
	loop_await_err(test, &p->a, loop_ctx(10), EHOSTUNREACH);
	loop_await_err(test, &p->b, loop_ctx(2), ECANCELED);
	loop_expect_quiet(test, &p->a);
	loop_expect_quiet(test, &p->b);
}

/* fi_cancel() cancels the oldest operation with a context. */
static void cancel_oldest(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	static const u64 ignore[] = { 0xff, 0, 0 };
	struct loop_comp comp;
	int i;

	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, fi_trecv(p->b.ep, p->b.buf + 100 * i, 8, NULL,
					       FI_ADDR_UNSPEC, 0x100, ignore[i],
					       loop_ctx(1)), 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&p->b.ep->fid, loop_ctx(1)), 0);
	loop_await(test, &p->b, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, ECANCELED);
	p->b.buf[100] = 0;
	p->a.buf[0] = 0x77;
	KUNIT_ASSERT_EQ(test, fi_tinject(p->a.ep, p->a.buf, 1, p->b.addr, 0x100), 0);
	loop_await_ok(test, &p->b, loop_ctx(1), FI_TAGGED | FI_RECV);
	KUNIT_EXPECT_EQ(test, p->b.buf[100], 0x77);
}

/* --- fi_flush() --- */

#define FLUSH_MS	20000

/* All that waits for one peer ends; what waits for the other one stays. */
static void flush_waiting(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {
		.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV,
	});
	struct loop_comp comp;
	int i;

	KUNIT_EXPECT_EQ(test, fi_flush(p->a.ep, 77, 0), -EHOSTUNREACH);
	tsend(test, p, 5, 100, loop_ctx(1));
	tsend(test, p, 6, 100, loop_ctx(2));
	look_until(test, &p->b, 6, 0, FI_PEEK | FI_CLAIM, loop_ctx(20), &comp);
	KUNIT_ASSERT_EQ(test, fi_tsend(p->a.ep, p->a.buf, 7, NULL, p->a.addr, 7, loop_ctx(3)), 0);
	post_directed(test, &p->a, p->b.addr, loop_ctx(4));
	post_directed(test, &p->a, p->a.addr, loop_ctx(5));
	KUNIT_EXPECT_EQ(test, fi_flush(p->a.ep, p->b.addr, FLUSH_MS), 0);
	for (i = 0; i < 3; i++) {
		loop_await(test, &p->a, loop_ctx(i < 2 ? i + 1 : 4), &comp);
		KUNIT_EXPECT_EQ(test, comp.error.err, ECANCELED);
	}
	loop_expect_quiet(test, &p->a);
	expect_none(test, &p->b, 5, FI_PEEK, loop_ctx(21));
	expect_none(test, &p->b, 0, FI_CLAIM, loop_ctx(20));
	/* The peer can be used afterwards. */
	tsend(test, p, 8, 100, loop_ctx(6));
	KUNIT_ASSERT_EQ(test, fi_trecv(p->b.ep, p->b.buf, 200, NULL, FI_ADDR_UNSPEC, 8, 0,
				       loop_ctx(22)), 0);
	loop_await(test, &p->b, loop_ctx(22), &comp);
	loop_await_ok(test, &p->a, loop_ctx(6), FI_TAGGED | FI_SEND);
}

/* When the call returns, no worker uses the sender's memory, whatever was in progress. */
static void flush_moving(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;
	int i, ret;

	for (i = 0; i < 200; i++) {
		memset(p->a.buf, 1, LOOP_BUF);
		KUNIT_ASSERT_EQ(test, fi_trecv(p->b.ep, p->b.buf, LOOP_BUF, NULL, FI_ADDR_UNSPEC,
					       i, 0, loop_ctx(20)), 0);
		tsend(test, p, i, LOOP_BUF, loop_ctx(1));
		ret = fi_flush(p->a.ep, p->b.addr, FLUSH_MS);
		memset(p->a.buf, 2, LOOP_BUF);
		KUNIT_EXPECT_EQ(test, ret, 0);
		loop_await(test, &p->a, loop_ctx(1), &comp);
		if (comp.error.err) {
			KUNIT_EXPECT_EQ(test, comp.error.err, ECANCELED);
			KUNIT_EXPECT_EQ(test, fi_cancel(&p->b.ep->fid, loop_ctx(20)), 0);
		}
		loop_await(test, &p->b, loop_ctx(20), &comp);
		if (!comp.error.err)
			KUNIT_EXPECT_NULL(test, memchr_inv(p->b.buf, 1, LOOP_BUF));
	}
}

/* --- connections --- */

/* All operations with a tag end, and no others, whoever the peer is. */
static void flush_tag(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	const struct fi_ops_ep *ops = p->a.ep->ops;
	struct loop_comp comp;
	int i;

	tsend(test, p, 5, 100, loop_ctx(1));
	tsend(test, p, 6, 100, loop_ctx(2));
	KUNIT_ASSERT_EQ(test, fi_tsend(p->a.ep, p->a.buf, 7, NULL, p->a.addr, 5, loop_ctx(3)), 0);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, fi_trecv(p->a.ep, p->a.buf, 8, NULL, FI_ADDR_UNSPEC, 50 + i,
					       0, loop_ctx(10 + i)), 0);
	/* An untagged receive has no tag, not even 0. */
	KUNIT_ASSERT_EQ(test, fi_recv(p->a.ep, p->a.buf, 8, NULL, FI_ADDR_UNSPEC, loop_ctx(12)), 0);
	KUNIT_EXPECT_EQ(test, ops->flush_tag(p->a.ep, 0, FLUSH_MS), 0);
	KUNIT_EXPECT_EQ(test, ops->flush_tag(p->a.ep, 7, FLUSH_MS), 0);
	loop_expect_quiet(test, &p->a);
	KUNIT_EXPECT_EQ(test, ops->flush_tag(p->a.ep, 5, FLUSH_MS), 0);
	for (i = 0; i < 2; i++) {
		loop_await(test, &p->a, loop_ctx(i ? 3 : 1), &comp);
		KUNIT_EXPECT_EQ(test, comp.error.err, ECANCELED);
	}
	KUNIT_EXPECT_EQ(test, ops->flush_tag(p->a.ep, 51, FLUSH_MS), 0);
	loop_await_err(test, &p->a, loop_ctx(11), ECANCELED);
	loop_expect_quiet(test, &p->a);
	expect_none(test, &p->b, 5, FI_PEEK, loop_ctx(21));
	KUNIT_ASSERT_EQ(test, fi_trecv(p->b.ep, p->b.buf, 200, NULL, FI_ADDR_UNSPEC, 6, 0,
				       loop_ctx(22)), 0);
	loop_await(test, &p->b, loop_ctx(22), &comp);
	loop_await_ok(test, &p->a, loop_ctx(2), FI_TAGGED | FI_SEND);
}

/* When the call returns, nobody reads the buffer of a send, or writes that of a receive. */
static void flush_tag_moving(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;
	int i;

	for (i = 0; i < 200; i++) {
		memset(p->a.buf, 1, LOOP_BUF);
		memset(p->b.buf, 3, LOOP_BUF);
		KUNIT_ASSERT_EQ(test, fi_trecv(p->b.ep, p->b.buf, LOOP_BUF, NULL, FI_ADDR_UNSPEC,
					       i, 0, loop_ctx(20)), 0);
		tsend(test, p, i, LOOP_BUF, loop_ctx(1));
		KUNIT_EXPECT_EQ(test, p->b.ep->ops->flush_tag(p->b.ep, i, FLUSH_MS), 0);
		loop_await(test, &p->b, loop_ctx(20), &comp);
		KUNIT_EXPECT_NULL(test, memchr_inv(p->b.buf, comp.error.err ? 3 : 1, LOOP_BUF));
		KUNIT_EXPECT_EQ(test, p->a.ep->ops->flush_tag(p->a.ep, i, FLUSH_MS), 0);
		memset(p->a.buf, 2, LOOP_BUF);
		KUNIT_EXPECT_EQ(test, loop_read(&p->a, &comp), 1);
	}
}

/* Completions say that tagged messages are untagged ones. */
static void as_messages(struct kunit *test)
{
	struct loop_pair *p = loop_pair_open(test, (struct loop_opts) {});
	struct loop_comp comp;
	size_t on = 1;

	KUNIT_EXPECT_EQ(test, fi_setopt(&p->a.ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_AS_MSG, &on,
					sizeof(on) - 1), -EINVAL);
	KUNIT_ASSERT_EQ(test, fi_setopt(&p->a.ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_AS_MSG, &on,
					sizeof(on)), 0);
	loop_end_enable(test, p, &p->a);
	loop_end_enable(test, p, &p->b);
	KUNIT_ASSERT_EQ(test, fi_trecv(p->a.ep, p->a.buf, 8, NULL, FI_ADDR_UNSPEC, 9, 0,
				       loop_ctx(1)), 0);
	KUNIT_ASSERT_EQ(test, fi_tsend(p->b.ep, p->b.buf, 8, NULL, p->a.addr, 9, loop_ctx(2)), 0);
	loop_await(test, &p->a, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_MSG | FI_RECV);
	KUNIT_EXPECT_EQ(test, comp.entry.tag, 0);
	loop_await_ok(test, &p->b, loop_ctx(2), FI_TAGGED | FI_SEND);
	KUNIT_ASSERT_EQ(test, fi_trecv(p->b.ep, p->b.buf, 8, NULL, FI_ADDR_UNSPEC, 9, 0,
				       loop_ctx(3)), 0);
	KUNIT_ASSERT_EQ(test, fi_tsend(p->a.ep, p->a.buf, 8, NULL, p->b.addr, 9, loop_ctx(4)), 0);
	loop_await(test, &p->b, loop_ctx(3), &comp);
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_TAGGED | FI_RECV);
	KUNIT_EXPECT_EQ(test, comp.entry.tag, 9);
	loop_await_ok(test, &p->a, loop_ctx(4), FI_MSG | FI_SEND);
}

/* Receives of connections are tagged ones, of any peer, in the order in which they were posted. */
static void recv_tag(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	const struct fi_ops_ep *ops = p->b.ep->ops;
	struct loop_comp comp;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, ops->recv_tag);
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, ops->recv_tag(p->b.ep, p->b.buf, 8, 5, loop_ctx(10 + i)), 0);
	KUNIT_ASSERT_EQ(test, ops->recv_tag(p->b.ep, p->b.buf, 8, 6, loop_ctx(20)), 0);
	KUNIT_EXPECT_EQ(test, ops->cancel_tag(p->b.ep, 5, loop_ctx(11)), 0);
	loop_await_err(test, &p->b, loop_ctx(11), ECANCELED);
	for (i = 0; i < 3; i += 2) {
		tsend(test, p, 5, 8, loop_ctx(1));
		loop_await(test, &p->b, loop_ctx(10 + i), &comp);
		KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_TAGGED | FI_RECV);
		KUNIT_EXPECT_EQ(test, comp.entry.tag, 5);
		loop_await_ok(test, &p->a, loop_ctx(1), FI_TAGGED | FI_SEND);
	}
	tsend(test, p, 6, 8, loop_ctx(2));
	loop_await(test, &p->b, loop_ctx(20), &comp);
	loop_await_ok(test, &p->a, loop_ctx(2), FI_TAGGED | FI_SEND);
	loop_expect_quiet(test, &p->b);
}

static struct kunit_case loop_match_cases[] = {
	KUNIT_CASE(directed),
	KUNIT_CASE(undirected),
	KUNIT_CASE(multi),
	KUNIT_CASE(multi_late),
	KUNIT_CASE(multi_unread),
	KUNIT_CASE(multi_truncated),
	KUNIT_CASE(multi_selective),
	KUNIT_CASE(multi_selective_many),
	KUNIT_CASE(multi_bad_calls),
	KUNIT_CASE(peek),
	KUNIT_CASE(peek_untagged),
	KUNIT_CASE(claim),
	KUNIT_CASE(discard),
	KUNIT_CASE(sender_leaves),
	KUNIT_CASE(receiver_leaves),
	KUNIT_CASE(cancel_oldest),
	KUNIT_CASE(flush_waiting),
	KUNIT_CASE(flush_moving),
	KUNIT_CASE(flush_tag),
	KUNIT_CASE(flush_tag_moving),
	KUNIT_CASE(as_messages),
	KUNIT_CASE(recv_tag),
	{}
};

static struct kunit_suite loop_match_suite = {
	.name		= "kofi_loop_match",
	.test_cases	= loop_match_cases,
};

kunit_test_suite(loop_match_suite);

MODULE_DESCRIPTION("KUnit suite of the loopback provider's matching");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
