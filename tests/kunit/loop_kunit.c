// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages of the loopback provider: guarantees for ULPs, full queues, missing receives, and
 * endpoints that are closed.
 */
#include <linux/bvec.h>
#include <linux/xarray.h>
#include "crew.h"
#include "loop_test.h"
#include <kofi/provider.h>

static void loop_fill(u8 *buf, size_t len, u8 from)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = from + i;
}

static void loop_message(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;

	loop_fill(p->a.buf, 1000, 1);
	KUNIT_ASSERT_EQ(test, fi_recv(p->b.ep, p->b.buf, LOOP_BUF, NULL,
				      FI_ADDR_UNSPEC, loop_ctx(1)), 0);
	KUNIT_ASSERT_EQ(test, fi_senddata(p->a.ep, p->a.buf, 1000, NULL,
					  U64_MAX - 1, p->b.addr, loop_ctx(2)),
			0);
	loop_await_ok(test, &p->a, loop_ctx(2),
		      FI_MSG | FI_SEND | FI_REMOTE_CQ_DATA);
	loop_await(test, &p->b, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.entry.flags,
			FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 1000);
	KUNIT_EXPECT_EQ(test, comp.entry.data, U64_MAX - 1);
	KUNIT_EXPECT_EQ(test, comp.src, p->a.addr);
	KUNIT_EXPECT_MEMEQ(test, p->b.buf, p->a.buf, 1000);
}

/* Segments of pages on one side and of kernel addresses on the other. */
static void loop_segments(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct page *page = alloc_pages(GFP_KERNEL, 1);
	struct bio_vec bvec[2];
	struct kvec kvec[3] = {
		{ p->b.buf + 2000, 700 }, { p->b.buf, 0 }, { p->b.buf, 2000 },
	};
	struct fi_msg msg = { .addr = p->b.addr, .context = loop_ctx(2) };

	KUNIT_ASSERT_NOT_NULL(test, page);
	loop_fill(page_address(page), 2 * PAGE_SIZE, 3);
	bvec_set_page(&bvec[0], page, 1500, PAGE_SIZE - 1000);
	bvec_set_page(&bvec[1], page, 1000, 5);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, bvec, 2, 2500);
	iov_iter_advance(&msg.msg_iter, 100);
	KUNIT_ASSERT_EQ(test, fi_recvv(p->b.ep, kvec, NULL, 3, FI_ADDR_UNSPEC,
				       loop_ctx(1)), 0);
	KUNIT_ASSERT_EQ(test, fi_sendmsg(p->a.ep, &msg, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&msg.msg_iter), 2400);
	loop_await_ok(test, &p->a, loop_ctx(2), FI_MSG | FI_SEND);
	loop_await_ok(test, &p->b, loop_ctx(1), FI_MSG | FI_RECV);
	KUNIT_EXPECT_MEMEQ(test, p->b.buf + 2000,
			   page_address(page) + PAGE_SIZE - 900, 700);
	KUNIT_EXPECT_MEMEQ(test, p->b.buf,
			   page_address(page) + PAGE_SIZE - 200, 700);
	KUNIT_EXPECT_MEMEQ(test, p->b.buf + 700, page_address(page) + 5, 1000);
	__free_pages(page, 1);
}

static void loop_bad_calls(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {
		.cq_size = 1,
	});
	size_t max = p->info->ep_attr->max_msg_size;
	size_t inject = p->info->tx_attr->inject_size;
	static const struct kvec kvec[17];
	struct fi_msg msg = { .addr = p->b.addr };
	struct xarray xa;

	KUNIT_EXPECT_EQ(test, fi_send(p->a.ep, p->a.buf, max + 1, NULL,
				      p->b.addr, NULL), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, fi_inject(p->a.ep, p->a.buf, inject + 1,
					p->b.addr), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, fi_send(p->a.ep, p->a.buf, 1, NULL, 77, NULL),
			-EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, fi_send(p->a.ep, p->a.buf, 1, NULL,
				      FI_ADDR_UNSPEC, NULL), -EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, fi_sendv(p->a.ep, kvec, NULL, 17, p->b.addr,
				       NULL), -EINVAL);

	iov_iter_kvec(&msg.msg_iter, ITER_DEST, kvec, 1, 0);
	KUNIT_EXPECT_EQ(test, fi_sendmsg(p->a.ep, &msg, 0), -EINVAL);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, kvec, 1, 0);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(p->a.ep, &msg, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_sendmsg(p->a.ep, &msg, FI_PEEK),
			-FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(p->a.ep, &msg, FI_MULTI_RECV), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(p->a.ep, &msg, FI_INJECT), -FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(p->a.ep, &msg, FI_DISCARD), -FI_EBADFLAGS);
	/* A buffer is needed except with FI_PEEK. */
	memset(&msg.msg_iter, 0, sizeof(msg.msg_iter));
	KUNIT_EXPECT_EQ(test, fi_recvmsg(p->a.ep, &msg, 0), -EINVAL);
	xa_init(&xa);
	iov_iter_xarray(&msg.msg_iter, ITER_SOURCE, &xa, 0, 1);
	KUNIT_EXPECT_EQ(test, fi_sendmsg(p->a.ep, &msg, 0), -EINVAL);
	loop_expect_quiet(test, &p->a);
	/* None of the refused calls has used the only entry of the completion queue. */
	KUNIT_EXPECT_EQ(test, fi_inject(p->a.ep, p->a.buf, 1, p->b.addr), 0);
}

static void loop_caps(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {
		.caps = FI_MSG | FI_SEND,
	});

	KUNIT_EXPECT_EQ(test, fi_recv(p->a.ep, p->a.buf, 1, NULL,
				      FI_ADDR_UNSPEC, NULL), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_tsend(p->a.ep, p->a.buf, 1, NULL, p->b.addr,
				       0, NULL), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_write(p->a.ep, p->a.buf, 1, NULL, p->b.addr,
				       0, 0, NULL), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_inject(p->a.ep, p->a.buf, 1, p->b.addr), 0);
}

/* Capabilities without a direction mean both; without any, all are set. */
static void loop_caps_either_way(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {
		.caps = FI_MSG, .undirected = true,
	});
	struct loop_pair *all = loop_pair(test, (struct loop_opts) {
		.undirected = true,
	});

	KUNIT_EXPECT_EQ(test, fi_recv(p->a.ep, p->a.buf, 1, NULL,
				      FI_ADDR_UNSPEC, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_inject(p->a.ep, p->a.buf, 1, p->b.addr), 0);
	KUNIT_EXPECT_EQ(test, fi_tsend(p->a.ep, p->a.buf, 1, NULL, p->b.addr,
				       0, NULL), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_write(p->a.ep, p->a.buf, 1, NULL, p->b.addr,
				       0, 0, NULL), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_tinject(all->a.ep, all->a.buf, 1, all->b.addr,
					 0), 0);
}

/* Sends wait for receives until the queue is full. */
static struct kofi_cq *loop_cq(struct fid_cq *cq)
{
	return container_of(cq, struct kofi_cq, cq_fid);
}

static void loop_full(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {
		.tx_size = 8,
	});
	struct loop_comp comp;
	int i;

	for (i = 0; i < 8; i++)
		KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, &i, sizeof(i),
						p->b.addr), 0);
	KUNIT_EXPECT_EQ(test, fi_inject(p->a.ep, &i, sizeof(i), p->b.addr),
			-EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_send(p->a.ep, p->a.buf, 1, NULL, p->b.addr,
				      NULL), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(loop_cq(p->a.cq)->room));
	for (i = 0; i < 8; i++) {
		KUNIT_ASSERT_EQ(test, fi_recv(p->b.ep, p->b.buf, sizeof(i),
					      NULL, FI_ADDR_UNSPEC,
					      loop_ctx(i)), 0);
		loop_await(test, &p->b, loop_ctx(i), &comp);
		KUNIT_EXPECT_EQ(test, *(int *)p->b.buf, i);
	}
	/* The refused sender was notified, and its slot is free when the message is received. */
	KUNIT_EXPECT_TRUE(test, READ_ONCE(loop_cq(p->a.cq)->room));
	KUNIT_EXPECT_EQ(test, fi_inject(p->a.ep, &i, sizeof(i), p->b.addr), 0);
	loop_expect_quiet(test, &p->a);
}

/* Each post reserves an entry of the completion queue, or fails. */
static void loop_cq_full(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {
		.cq_size = 4,
	});
	struct loop_comp comp;
	int i;

	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_EQ(test, fi_recv(p->b.ep, p->b.buf, 8, NULL,
					      FI_ADDR_UNSPEC, loop_ctx(i)), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(p->b.ep, p->b.buf, 8, NULL,
				      FI_ADDR_UNSPEC, NULL), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_inject(p->b.ep, p->b.buf, 8, p->a.addr),
			-EAGAIN);
	KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, p->a.buf, 8, p->b.addr), 0);
	loop_await(test, &p->b, loop_ctx(0), &comp);
	KUNIT_EXPECT_EQ(test, fi_recv(p->b.ep, p->b.buf, 8, NULL,
				      FI_ADDR_UNSPEC, NULL), 0);
}

static void loop_truncated(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;

	memset(p->b.buf, 0xa5, 200);
	KUNIT_ASSERT_EQ(test, fi_recv(p->b.ep, p->b.buf, 100, NULL,
				      FI_ADDR_UNSPEC, loop_ctx(1)), 0);
	KUNIT_ASSERT_EQ(test, fi_send(p->a.ep, p->a.buf, 150, NULL, p->b.addr,
				      loop_ctx(2)), 0);
	loop_await_ok(test, &p->a, loop_ctx(2), FI_MSG | FI_SEND);
	loop_await(test, &p->b, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, FI_ETRUNC);
	KUNIT_EXPECT_EQ(test, comp.error.len, 100);
	KUNIT_EXPECT_EQ(test, comp.error.olen, 50);
	KUNIT_EXPECT_EQ(test, comp.error.src_addr, p->a.addr);
	KUNIT_EXPECT_EQ(test, p->b.buf[99], 0);
	KUNIT_EXPECT_EQ(test, p->b.buf[100], 0xa5);
}

/* A tagged message matches the first receive with its tag, whatever was posted before. */
static void loop_tags(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	static const struct {
		u64 tag, ignore;
	} recvs[] = { { 0x100, 0 }, { 0x200, 0xff }, { 0x222, 0 }, { 0, ~0ULL } };
	static const struct {
		u64 tag;
		int recv;
	} sends[] = { { 0x222, 1 }, { 0x222, 2 }, { 0x222, 3 }, { 0x100, 0 } };
	struct loop_comp comp;
	int i;

	KUNIT_ASSERT_EQ(test, fi_recv(p->b.ep, p->b.buf, 8, NULL,
				      FI_ADDR_UNSPEC, loop_ctx(99)), 0);
	for (i = 0; i < ARRAY_SIZE(recvs); i++)
		KUNIT_ASSERT_EQ(test, fi_trecv(p->b.ep, p->b.buf, 8, NULL,
					       FI_ADDR_UNSPEC, recvs[i].tag,
					       recvs[i].ignore, loop_ctx(i)),
				0);
	for (i = 0; i < ARRAY_SIZE(sends); i++) {
		KUNIT_ASSERT_EQ(test, fi_tinject(p->a.ep, &i, sizeof(i),
						 p->b.addr, sends[i].tag), 0);
		loop_await(test, &p->b, loop_ctx(sends[i].recv), &comp);
		KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_TAGGED | FI_RECV);
		KUNIT_EXPECT_EQ(test, comp.entry.tag, sends[i].tag);
		KUNIT_EXPECT_EQ(test, *(int *)p->b.buf, i);
	}
	/* The untagged receive only takes untagged messages. */
	loop_expect_quiet(test, &p->b);
	KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, &i, sizeof(i), p->b.addr), 0);
	loop_await_ok(test, &p->b, loop_ctx(99), FI_MSG | FI_RECV);
}

/* With selective completion, only requested completions and errors are reported. */
static void loop_selective(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {
		.bind = FI_SELECTIVE_COMPLETION, .cq_size = 4,
	});
	struct kvec kvec = { p->a.buf, 8 };
	struct fi_msg msg = { .addr = p->b.addr, .context = loop_ctx(3) };
	u64 flags = FI_RECV | FI_COMPLETION;
	int i;

	KUNIT_ASSERT_EQ(test, fi_control(&p->b.ep->fid, FI_SETOPSFLAG, &flags),
			0);
	/* Post more than the queue's size, because quiet operations release their entries. */
	for (i = 0; i < 10; i++) {
		KUNIT_ASSERT_EQ(test, fi_recv(p->b.ep, p->b.buf, 8, NULL,
					      FI_ADDR_UNSPEC, loop_ctx(1)), 0);
		KUNIT_ASSERT_EQ(test, fi_send(p->a.ep, p->a.buf, 8, NULL,
					      p->b.addr, loop_ctx(2)), 0);
		loop_await_ok(test, &p->b, loop_ctx(1), FI_MSG | FI_RECV);
	}
	loop_expect_quiet(test, &p->a);

	KUNIT_ASSERT_EQ(test, fi_recv(p->b.ep, p->b.buf, 8, NULL,
				      FI_ADDR_UNSPEC, loop_ctx(1)), 0);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &kvec, 1, 8);
	KUNIT_ASSERT_EQ(test, fi_sendmsg(p->a.ep, &msg, FI_COMPLETION), 0);
	loop_await_ok(test, &p->a, loop_ctx(3), FI_MSG | FI_SEND);

	KUNIT_ASSERT_EQ(test, fi_send(p->a.ep, p->a.buf, 8, NULL, p->b.addr,
				      loop_ctx(4)), 0);
	LOOP_CLOSE(p->b.ep);
	loop_await_err(test, &p->a, loop_ctx(4), EHOSTUNREACH);
}

static void loop_counters(struct kunit *test)
{
	struct loop_pair *p = loop_pair_open(test, (struct loop_opts) {});
	struct fi_cntr_attr attr = {
		.events		= FI_CNTR_EVENTS_BYTES,
		.wait_obj	= FI_WAIT_UNSPEC,
	};

	KUNIT_ASSERT_EQ(test, fi_cntr_open(p->domain, &attr, &p->cntr, NULL),
			0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(p->b.ep, &p->cntr->fid, FI_RECV), 0);
	loop_end_enable(test, p, &p->a);
	loop_end_enable(test, p, &p->b);
	KUNIT_ASSERT_EQ(test, fi_recv(p->b.ep, p->b.buf, 50, NULL,
				      FI_ADDR_UNSPEC, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, p->a.buf, 40, p->b.addr), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(p->cntr, 40, KOFI_NEVER_MS), 0);
	KUNIT_ASSERT_EQ(test, fi_recv(p->b.ep, p->b.buf, 50, NULL,
				      FI_ADDR_UNSPEC, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, p->a.buf, 60, p->b.addr), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(fi_cntr_readerr(p->cntr) == 1));
	KUNIT_EXPECT_EQ(test, fi_cntr_read(p->cntr), 40);
}

static void loop_taken_back(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});

	KUNIT_EXPECT_EQ(test, fi_cancel(&p->a.ep->fid, loop_ctx(1)), -ENOENT);
	KUNIT_ASSERT_EQ(test, fi_recv(p->a.ep, p->a.buf, 8, NULL,
				      FI_ADDR_UNSPEC, loop_ctx(1)), 0);
	KUNIT_ASSERT_EQ(test, fi_send(p->a.ep, p->a.buf, 8, NULL, p->b.addr,
				      loop_ctx(2)), 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&p->a.ep->fid, loop_ctx(2)), 0);
	loop_await_err(test, &p->a, loop_ctx(2), ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_cancel(&p->a.ep->fid, loop_ctx(1)), 0);
	loop_await_err(test, &p->a, loop_ctx(1), ECANCELED);

	/* The canceled receive takes no message, and the canceled send doesn't reach the peer. */
	KUNIT_ASSERT_EQ(test, fi_recv(p->b.ep, p->b.buf, 8, NULL,
				      FI_ADDR_UNSPEC, loop_ctx(3)), 0);
	KUNIT_ASSERT_EQ(test, fi_inject(p->b.ep, p->b.buf, 8, p->a.addr), 0);
	loop_expect_quiet(test, &p->a);
	loop_expect_quiet(test, &p->b);
}

/* When fi_close() returns, all completions of the endpoint are in the queue. */
static void loop_close(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;
	int i;

	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, fi_trecv(p->a.ep, p->a.buf, 8, NULL,
					       FI_ADDR_UNSPEC, 1, 0,
					       loop_ctx(10)), 0);
		KUNIT_ASSERT_EQ(test, fi_send(p->a.ep, p->a.buf, 8, NULL,
					      p->b.addr, loop_ctx(20)), 0);
		KUNIT_ASSERT_EQ(test, fi_send(p->b.ep, p->b.buf, 8, NULL,
					      p->a.addr, loop_ctx(30)), 0);
	}
	LOOP_CLOSE(p->a.ep);
	for (i = 0; i < 6; i++) {
		KUNIT_ASSERT_EQ(test, loop_read(&p->a, &comp), 1);
		KUNIT_EXPECT_EQ(test, comp.error.err, ECANCELED);
		KUNIT_EXPECT_PTR_EQ(test, comp.error.op_context,
				    loop_ctx(i < 3 ? 20 : 10));
	}
	KUNIT_EXPECT_EQ(test, loop_read(&p->a, &comp), 0);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, loop_read(&p->b, &comp), 1);
		KUNIT_EXPECT_EQ(test, comp.error.err, EHOSTUNREACH);
		KUNIT_EXPECT_STREQ(test, fi_cq_strerror(p->b.cq,
							comp.error.prov_errno,
							NULL, NULL, 0),
				   "The peer's endpoint went away");
	}
	/* Its waiting messages are dropped, and its address is unreachable. */
	KUNIT_ASSERT_EQ(test, fi_recv(p->b.ep, p->b.buf, 8, NULL,
				      FI_ADDR_UNSPEC, NULL), 0);
	loop_expect_quiet(test, &p->b);
	KUNIT_EXPECT_EQ(test, fi_inject(p->b.ep, p->b.buf, 8, p->a.addr),
			-EHOSTUNREACH);
}

/* When fi_disable() returns, all completions are in the queue, and the endpoint stays open. */
static void loop_disable(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;
	int i;

	KUNIT_ASSERT_EQ(test, fi_recv(p->a.ep, p->a.buf, 8, NULL, FI_ADDR_UNSPEC,
				      loop_ctx(1)), 0);
	KUNIT_ASSERT_EQ(test, fi_send(p->a.ep, p->a.buf, 8, NULL, p->b.addr, loop_ctx(2)), 0);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, fi_disable(p->a.ep), 0);
	for (i = 2; i > 0; i--) {
		KUNIT_ASSERT_EQ(test, loop_read(&p->a, &comp), 1);
		KUNIT_EXPECT_EQ(test, comp.error.err, ECANCELED);
		KUNIT_EXPECT_PTR_EQ(test, comp.error.op_context, loop_ctx(i));
	}
	KUNIT_EXPECT_EQ(test, loop_read(&p->a, &comp), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(p->a.ep, p->a.buf, 8, NULL, FI_ADDR_UNSPEC, NULL),
			-FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_send(p->a.ep, p->a.buf, 8, NULL, p->b.addr, NULL),
			-FI_EOPBADSTATE);
	LOOP_CLOSE(p->a.ep);
	KUNIT_EXPECT_EQ(test, loop_read(&p->a, &comp), 0);
}

/* Arguments of fi_getinfo(), and the number of devices found. */
static const struct asked {
	const char	*desc;
	const char	*node;
	const char	*service;
	u64		flags;
	bool		src;		/* hints have a source address */
	bool		dest;		/* hints have a peer's address */
	size_t		len;		/* length of these, if it is wrong */
	int		ret;
	int		found;
	u32		peer;		/* id of the entries' dest_addr, or 0 */
} askeds[] = {
	{ "nothing", .found = 2 },
	{ "device", "loop1", NULL, FI_SOURCE, .found = 1 },
	{ "device as a peer", "loop1", .ret = -ENODATA },
	{ "no device", "loop2", NULL, FI_SOURCE, .ret = -ENODATA },
	{ "peer", "loop:7", .found = 2, .peer = 7 },
	{ "peer, text behind", "loop:7x", .ret = -ENODATA },
	{ "peer, long number", "loop:4294967303", .ret = -ENODATA },
	{ "peer, longer number", "loop:18446744073709551623", .ret = -ENODATA },
	{ "address as a device", "loop:7", NULL, FI_SOURCE, .ret = -ENODATA },
	{ "service", NULL, "7", .ret = -ENODATA },
	{ "peer in the hints", .dest = true, .found = 2, .peer = 9 },
	{ "peer in the hints, and device", "loop1", NULL, FI_SOURCE, .dest = true, .found = 1,
	  .peer = 9 },
	{ "peer, and another in the hints", "loop:7", .dest = true, .found = 2, .peer = 7 },
	{ "long peer in the hints", .dest = true, .len = 9, .ret = -ENODATA },
	{ "source in the hints", .src = true, .ret = -ENODATA },
	{ "source in the hints, and device", "loop1", NULL, FI_SOURCE, .src = true, .found = 1 },
};

KUNIT_ARRAY_PARAM_DESC(asked, askeds, desc);

static void loop_getinfo(struct kunit *test)
{
	const struct asked *asked = test->param_value;
	struct fi_fabric_attr fabric = { .prov_name = "loop" };
	u32 addr[4] = { 0x706f6f6c, 9 };	/* struct loop_addr */
	struct fi_info hints = { .fabric_attr = &fabric }, *list, *info;
	int found = 0;

	hints.src_addr = asked->src ? addr : NULL;
	hints.src_addrlen = 8;
	hints.dest_addr = asked->dest ? addr : NULL;
	hints.dest_addrlen = asked->len ?: 8;
	KUNIT_EXPECT_EQ(test, fi_getinfo(fi_version(), asked->node, asked->service, asked->flags,
					 &hints, &list), asked->ret);
	for (info = list; info; info = info->next, found++) {
		KUNIT_EXPECT_EQ(test, !!info->dest_addr, !!asked->peer);
		KUNIT_EXPECT_EQ(test, info->dest_addrlen, asked->peer ? 8 : 0);
		if (info->dest_addr)
			KUNIT_EXPECT_EQ(test, ((u32 *)info->dest_addr)[1], asked->peer);
	}
	KUNIT_EXPECT_EQ(test, found, asked->found);
	fi_freeinfo(list);
}

/* The registrations of an endpoint's regions are operations, too. */
static void loop_disable_regions(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	const struct kvec iov = { p->a.buf, 8 };
	const struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &iov, .iov_count = 1, .access = FI_REMOTE_READ,
	};
	const struct fi_mr_alloc_attr alloc = {
		.max_pages = 1, .access = FI_REMOTE_READ, .cq = p->a.cq, .ep = p->a.ep,
	};
	struct fid_mr *mr[16];
	struct loop_comp comp;
	int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(mr); i++)
		KUNIT_ASSERT_EQ(test, fi_mr_alloc(p->domain, &alloc, &mr[i], NULL), 0);
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr[i], &attr, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, fi_disable(p->a.ep), 0);
	while (loop_read(&p->a, &comp))
		n++;
	KUNIT_EXPECT_EQ(test, n, ARRAY_SIZE(mr));
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		KUNIT_EXPECT_EQ(test, fi_close(&mr[i]->fid), 0);
}

static const struct loop_av_param {
	const char	*name;
	enum fi_av_type	type;
} loop_av_params[] = {
	{ "table", FI_AV_TABLE }, { "map", FI_AV_MAP },
};

KUNIT_ARRAY_PARAM_DESC(loop_av, loop_av_params, name);

static void loop_addresses(struct kunit *test)
{
	const struct loop_av_param *param = test->param_value;
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {
		.av_type = param->type,
	});
	size_t len, text_len = 32;
	fi_addr_t addr[2];
	char text[32];
	u8 name[16];

	len = 4;
	KUNIT_EXPECT_EQ(test, fi_getname(&p->a.ep->fid, name, &len),
			-FI_ETOOSMALL);
	KUNIT_ASSERT_EQ(test, len, 8);
	KUNIT_ASSERT_EQ(test, fi_getname(&p->a.ep->fid, name, &len), 0);
	KUNIT_EXPECT_PTR_EQ(test, fi_av_straddr(p->av, name, text, &text_len),
			    (const char *)text);
	KUNIT_EXPECT_EQ(test, text_len, strlen(text) + 1);
	KUNIT_EXPECT_EQ(test, strncmp(text, "loop:", 5), 0);

	/* Insert the address again, together with an invalid one. */
	memset(name + 8, 0xff, 8);
	KUNIT_EXPECT_EQ(test, fi_av_insert(p->av, name, 2, addr, 0, NULL), 1);
	KUNIT_EXPECT_EQ(test, addr[0], p->a.addr);
	KUNIT_EXPECT_EQ(test, addr[1], FI_ADDR_NOTAVAIL);
	/* If nothing was inserted, the reason is returned instead of 0. */
	KUNIT_EXPECT_EQ(test, fi_av_insert(p->av, name + len, 1, addr, 0, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, addr[0], FI_ADDR_NOTAVAIL);
	if (param->type == FI_AV_TABLE)
		KUNIT_EXPECT_LT(test, p->a.addr + p->b.addr, 2);

	len = sizeof(name);
	KUNIT_EXPECT_EQ(test, fi_av_lookup(p->av, p->a.addr, name + 8, &len),
			0);
	KUNIT_EXPECT_EQ(test, len, 8);
	KUNIT_EXPECT_MEMEQ(test, name + 8, name, 8);

	/* The address was inserted twice, so it can be removed twice. */
	KUNIT_EXPECT_EQ(test, fi_av_remove(p->av, &p->a.addr, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_av_lookup(p->av, p->a.addr, name, &len), 0);
	KUNIT_EXPECT_EQ(test, fi_av_remove(p->av, &p->a.addr, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_av_remove(p->av, &p->a.addr, 1, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_av_lookup(p->av, p->a.addr, name, &len),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_inject(p->b.ep, p->b.buf, 1, p->a.addr),
			-EHOSTUNREACH);
}

/* An endpoint that isn't in the address vector can send, but has no source address. */
static void loop_stranger(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	struct loop_comp comp;

	KUNIT_ASSERT_EQ(test, fi_av_remove(p->av, &p->a.addr, 1, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_recv(p->b.ep, p->b.buf, 8, NULL,
				      FI_ADDR_UNSPEC, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_inject(p->a.ep, p->a.buf, 8, p->b.addr), 0);
	loop_await(test, &p->b, NULL, &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, 0);
	KUNIT_EXPECT_EQ(test, comp.src, FI_ADDR_NOTAVAIL);
}

static void loop_options(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {
		.tx_size = 8,
	});
	size_t value = 0, len = sizeof(value);
	u64 flags = FI_TRANSMIT;

	KUNIT_EXPECT_EQ(test, fi_getopt(&p->a.ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_TX_SIZE, &value, &len), 0);
	KUNIT_EXPECT_EQ(test, value, 8);
	len = 1;
	KUNIT_EXPECT_EQ(test, fi_getopt(&p->a.ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_MAX_MSG_SIZE, &value, &len),
			-FI_ETOOSMALL);
	KUNIT_EXPECT_EQ(test, len, sizeof(value));
	KUNIT_EXPECT_EQ(test, fi_getopt(&p->a.ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_RNR_TIMEOUT, &value, &len),
			-ENOPROTOOPT);
	value = 1000;
	KUNIT_EXPECT_EQ(test, fi_setopt(&p->a.ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_RX_SIZE, &value, len),
			-ENOPROTOOPT);
	KUNIT_EXPECT_EQ(test, fi_setopt(&p->a.ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_MIN_MULTI_RECV, &value, 4),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, fi_setopt(&p->a.ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_MIN_MULTI_RECV, &value, len), 0);
	value = 0;
	KUNIT_EXPECT_EQ(test, fi_getopt(&p->a.ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_MIN_MULTI_RECV, &value, &len), 0);
	KUNIT_EXPECT_EQ(test, value, 1000);
	KUNIT_EXPECT_EQ(test, fi_control(&p->a.ep->fid, FI_GETOPSFLAG, &flags),
			0);
	KUNIT_EXPECT_EQ(test, flags, 0);
	flags = FI_TRANSMIT | FI_MULTI_RECV;
	KUNIT_EXPECT_EQ(test, fi_control(&p->a.ep->fid, FI_SETOPSFLAG, &flags),
			-FI_EBADFLAGS);
	flags = FI_TRANSMIT | FI_RECV;
	KUNIT_EXPECT_EQ(test, fi_control(&p->a.ep->fid, FI_GETOPSFLAG, &flags),
			-EINVAL);
}

static void loop_too_early(struct kunit *test)
{
	struct loop_pair *p = loop_pair(test, (struct loop_opts) {});
	u8 *buf = p->a.buf;
	struct fid_ep *ep;

	KUNIT_ASSERT_EQ(test, fi_endpoint(p->domain, p->info, &ep, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL),
			-FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_send(ep, buf, 8, NULL, p->b.addr, NULL),
			-FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_tsend(ep, buf, 8, NULL, p->b.addr, 1, NULL),
			-FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_write(ep, buf, 8, NULL, p->b.addr, 0, 1, NULL),
			-FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
}

/* Completions that a handler with FI_CQ_SOFTIRQ reads, and the contexts of its calls. */
struct loop_soft {
	struct tasklet_struct	tasklet;
	struct loop_pair	*pair;
	struct kofi_contexts	where;
	atomic_t		got;
	ssize_t			ret;
};

static void loop_soft_handler(struct fid_cq *cq, void *context)
{
	struct loop_end end = { .cq = cq };
	struct loop_soft *soft = context;
	struct loop_comp comp;

	kofi_context_note(&soft->where);
	while (loop_read(&end, &comp) == 1)
		atomic_inc(&soft->got);
}

/* Post a message and its receive, and cancel another receive. */
static void loop_soft_post(struct tasklet_struct *tasklet)
{
	struct loop_soft *soft = container_of(tasklet, struct loop_soft, tasklet);
	struct loop_pair *p = soft->pair;

	soft->ret = fi_send(p->a.ep, p->a.buf, 8, NULL, p->b.addr, loop_ctx(1)) ?:
		    fi_recv(p->b.ep, p->b.buf, 8, NULL, FI_ADDR_UNSPEC, loop_ctx(2)) ?:
		    fi_recv(p->a.ep, p->a.buf, 8, NULL, FI_ADDR_UNSPEC, loop_ctx(3)) ?:
		    fi_cancel(&p->a.ep->fid, loop_ctx(3));
}

/* It is called in process context with softirqs off, for what a softirq posts, too. */
static void loop_softirq(struct kunit *test)
{
	struct loop_soft *soft = kunit_kzalloc(test, sizeof(*soft), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, soft);
	soft->pair = loop_pair(test, (struct loop_opts) {
		.handler = loop_soft_handler, .context = soft,
	});
	for (i = 1; i <= 3; i++) {
		kofi_in_softirq(&soft->tasklet, loop_soft_post);
		KUNIT_EXPECT_EQ(test, soft->ret, 0);
		KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&soft->got) == 3 * i));
	}
	KUNIT_EXPECT_GE(test, atomic_read(&soft->where.off), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&soft->where.softirq), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&soft->where.on), 0);
}

static struct kunit_case loop_cases[] = {
	KUNIT_CASE(loop_message),
	KUNIT_CASE(loop_segments),
	KUNIT_CASE(loop_bad_calls),
	KUNIT_CASE(loop_caps),
	KUNIT_CASE(loop_caps_either_way),
	KUNIT_CASE(loop_full),
	KUNIT_CASE(loop_cq_full),
	KUNIT_CASE(loop_truncated),
	KUNIT_CASE(loop_tags),
	KUNIT_CASE(loop_selective),
	KUNIT_CASE(loop_counters),
	KUNIT_CASE(loop_taken_back),
	KUNIT_CASE(loop_close),
	KUNIT_CASE_PARAM(loop_getinfo, asked_gen_params),
	KUNIT_CASE(loop_disable),
	KUNIT_CASE(loop_disable_regions),
	KUNIT_CASE_PARAM(loop_addresses, loop_av_gen_params),
	KUNIT_CASE(loop_stranger),
	KUNIT_CASE(loop_options),
	KUNIT_CASE(loop_too_early),
	KUNIT_CASE(loop_softirq),
	{}
};

static struct kunit_suite loop_suite = {
	.name		= "kofi_loop",
	.test_cases	= loop_cases,
};

kunit_test_suite(loop_suite);

MODULE_DESCRIPTION("KUnit suite of the loopback provider's messages");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
