// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reads, writes and atomic operations of connections, and counters. */
#include <linux/sizes.h>
#include <kofi/atomic.h>
#include <kofi/rma.h>
#include "../../cm/msg/msg.h"
#include "msg_test.h"

#define CTX(n)		((void *)(unsigned long)(n))
#define REMOTE		(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define DIRS		(FI_READ | FI_WRITE | REMOTE)

/* Writes that wait at a target that doesn't read its completions: more than its reserve. */
#define MANY		150
#define FEW		10

static void region_close(void *mr)
{
	WARN_ON(fi_close(&((struct fid_mr *)mr)->fid));
}

/* A region with the server's memory. */
static struct fid_mr *region(struct kunit *test, struct msg_scene *s, u64 access)
{
	struct fid_mr *mr = NULL;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(s->domain, s->server.buf, MSG_BUF, access, 0, 0, 0, &mr,
					NULL), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, region_close, mr), 0);
	return mr;
}

/* Where the calls below go: an offset in the region. The peer's address isn't used. */
#define AT(mr, off)	0, (mr)->base_addr + (off), fi_mr_key(mr)

/* Wait for a completion, which has no tag. */
static void expect(struct kunit *test, struct msg_end *end, unsigned long ctx, u64 flags,
		   size_t len)
{
	struct msg_comp comp;

	KUNIT_EXPECT_TRUE(test, kofi_soon(msg_read(end, &comp) > 0));
	KUNIT_EXPECT_PTR_EQ(test, comp.entry.op_context, CTX(ctx));
	KUNIT_EXPECT_EQ(test, comp.entry.flags, flags);
	KUNIT_EXPECT_EQ(test, comp.entry.len, len);
	KUNIT_EXPECT_EQ(test, comp.entry.tag, 0);
	KUNIT_EXPECT_EQ(test, comp.error.err, 0);
}

static void expect_error(struct kunit *test, struct msg_end *end, unsigned long ctx, u64 flags,
			 int err)
{
	struct msg_comp comp;

	KUNIT_EXPECT_TRUE(test, kofi_soon(msg_read(end, &comp) > 0));
	KUNIT_EXPECT_EQ(test, comp.error.err, err);
	KUNIT_EXPECT_PTR_EQ(test, comp.error.op_context, CTX(ctx));
	KUNIT_EXPECT_EQ(test, comp.error.flags, flags);
	KUNIT_EXPECT_EQ(test, comp.error.tag, 0);
}

static void expect_nothing(struct kunit *test, struct msg_end *end)
{
	struct msg_comp comp;

	KUNIT_EXPECT_EQ(test, msg_read(end, &comp), 0);
}

static void fill(u8 *buf, size_t len, u8 seed)
{
	for (; len; len--)
		*buf++ = seed++;
}

/* Connect an endpoint of the client. The server's is of the default kind. */
static void meet(struct kunit *test, struct msg_scene *s, struct fid_ep *client)
{
	struct msg_event event;

	s->client.ep = client;
	KUNIT_ASSERT_EQ(test, fi_connect(client, &s->addr, NULL, 0), 0);
	event = msg_next(test, s->eq);
	KUNIT_ASSERT_EQ(test, event.what, FI_CONNREQ);
	s->server.ep = msg_ep(test, s, event.info, &s->server);
	fi_freeinfo(event.info);
	KUNIT_ASSERT_EQ(test, fi_accept(s->server.ep, NULL, 0), 0);
	MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep);
	MSG_EXPECT(s->server.eq, FI_CONNECTED, s->server.ep);
}

/* Open an endpoint of the client with other capabilities. */
static struct fid_ep *ep_with(struct kunit *test, struct msg_scene *s, u64 caps)
{
	struct fi_info *info = fi_dupinfo(s->info);
	struct fid_ep *ep;

	KUNIT_ASSERT_NOT_NULL(test, info);
	info->caps = caps;
	ep = msg_ep(test, s, info, &s->client);
	fi_freeinfo(info);
	return ep;
}

/* --- entries --- */

static void entries(struct kunit *test)
{
	struct fi_info *hints = msg_hints(test, "loop0"), *info;
	const u32 version = fi_version();

	hints->caps = FI_RMA | FI_ATOMIC;
	KUNIT_ASSERT_EQ(test, fi_getinfo(version, NULL, NULL, 0, hints, &info), 0);
	KUNIT_EXPECT_EQ(test, info->caps, FI_RMA | FI_ATOMIC | DIRS | FI_RMA_EVENT |
					  FI_LOCAL_COMM);
	KUNIT_EXPECT_EQ(test, info->tx_attr->caps, FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE);
	KUNIT_EXPECT_EQ(test, info->rx_attr->caps, FI_RMA | FI_ATOMIC | REMOTE | FI_RMA_EVENT);
	KUNIT_EXPECT_EQ(test, info->tx_attr->rma_iov_limit, 4);
	KUNIT_EXPECT_EQ(test, info->ep_attr->max_order_waw_size, SZ_1M);
	fi_freeinfo(info);
	hints->caps = FI_MSG | FI_RMA | FI_WRITE;
	KUNIT_ASSERT_EQ(test, fi_getinfo(version, NULL, NULL, 0, hints, &info), 0);
	KUNIT_EXPECT_EQ(test, info->caps & (FI_RMA | FI_ATOMIC | DIRS), FI_RMA | FI_WRITE);
	fi_freeinfo(info);
	hints->caps = FI_MSG;
	KUNIT_ASSERT_EQ(test, fi_getinfo(version, NULL, NULL, 0, hints, &info), 0);
	KUNIT_EXPECT_EQ(test, info->caps & (FI_RMA | FI_ATOMIC | DIRS), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static size_t option(struct kunit *test, struct fid_ep *ep, int name)
{
	size_t value = 1, len = sizeof(value);

	KUNIT_EXPECT_EQ(test, fi_getopt(&ep->fid, FI_OPT_ENDPOINT, name, &value, &len), 0);
	return value;
}

static void options(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_ep *ep;

	ep = msg_ep(test, s, s->info, &s->client);
	s->client.ep = ep;
	KUNIT_EXPECT_EQ(test, option(test, ep, FI_OPT_MAX_RMA_SIZE), SZ_1M);
	KUNIT_EXPECT_EQ(test, option(test, ep, FI_OPT_INJECT_RMA_SIZE),
			s->info->tx_attr->inject_size);
	KUNIT_EXPECT_EQ(test, option(test, ep, FI_OPT_INJECT_ATOMIC_SIZE),
			s->info->tx_attr->inject_size);
	MSG_CLOSE(s->client.ep);
	ep = ep_with(test, s, FI_MSG);
	s->client.ep = ep;
	KUNIT_EXPECT_EQ(test, option(test, ep, FI_OPT_MAX_RMA_SIZE), 0);
	KUNIT_EXPECT_EQ(test, option(test, ep, FI_OPT_INJECT_RMA_SIZE), 0);
	KUNIT_EXPECT_EQ(test, option(test, ep, FI_OPT_INJECT_ATOMIC_SIZE), 0);
}

/* --- transfers --- */

/* Reads and writes need no receive, and complete at the side that calls them. */
static void transfers(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_mr *mr = region(test, s, REMOTE);
	u8 *here = s->client.buf, *there = s->server.buf;
	const struct kvec iov[] = { { here, 50 }, { here + 200, 30 } };
	struct fi_rma_iov rma[] = {
		{ mr->base_addr + 1000, 60, fi_mr_key(mr) },
		{ mr->base_addr + 2000, 20, fi_mr_key(mr) },
	};
	struct fi_msg_rma msg = { .rma_iov = rma, .rma_iov_count = 2, .context = CTX(5) };
	struct fid_ep *ep;

	msg_connect(test, s);
	ep = s->client.ep;
	fill(here, 300, 1);
	KUNIT_EXPECT_EQ(test, fi_write(ep, here, 100, NULL, AT(mr, 8), CTX(1)), 0);
	expect(test, &s->client, 1, FI_RMA | FI_WRITE, 100);
	KUNIT_EXPECT_MEMEQ(test, there + 8, here, 100);
	KUNIT_EXPECT_EQ(test, fi_read(ep, here + 1000, 100, NULL, AT(mr, 8), CTX(2)), 0);
	expect(test, &s->client, 2, FI_RMA | FI_READ, 100);
	KUNIT_EXPECT_MEMEQ(test, here + 1000, here, 100);
	memset(there, 0, 200);
	KUNIT_EXPECT_EQ(test, fi_writev(ep, iov, NULL, 2, AT(mr, 8), CTX(3)), 0);
	expect(test, &s->client, 3, FI_RMA | FI_WRITE, 80);
	KUNIT_EXPECT_MEMEQ(test, there + 8, here, 50);
	KUNIT_EXPECT_MEMEQ(test, there + 58, here + 200, 30);
	fill(there, 200, 77);
	KUNIT_EXPECT_EQ(test, fi_readv(ep, iov, NULL, 2, AT(mr, 16), CTX(4)), 0);
	expect(test, &s->client, 4, FI_RMA | FI_READ, 80);
	KUNIT_EXPECT_MEMEQ(test, here, there + 16, 50);
	KUNIT_EXPECT_MEMEQ(test, here + 200, there + 66, 30);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, iov, 2, 80);
	KUNIT_EXPECT_EQ(test, fi_writemsg(ep, &msg, FI_DELIVERY_COMPLETE), 0);
	expect(test, &s->client, 5, FI_RMA | FI_WRITE, 80);
	KUNIT_EXPECT_MEMEQ(test, there + 1000, here, 50);
	KUNIT_EXPECT_MEMEQ(test, there + 1050, here + 200, 10);
	KUNIT_EXPECT_MEMEQ(test, there + 2000, here + 210, 20);
	fill(there + 1000, 60, 99);
	iov_iter_kvec(&msg.msg_iter, ITER_DEST, iov, 2, 80);
	KUNIT_EXPECT_EQ(test, fi_readmsg(ep, &msg, 0), 0);
	expect(test, &s->client, 5, FI_RMA | FI_READ, 80);
	KUNIT_EXPECT_MEMEQ(test, here, there + 1000, 50);
	KUNIT_EXPECT_EQ(test, fi_inject_write(ep, here, 64, AT(mr, 3000)), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(!memcmp(there + 3000, here, 64)));
	expect_nothing(test, &s->client);
	expect_nothing(test, &s->server);
	/* The other side can do the same. */
	KUNIT_EXPECT_EQ(test, fi_write(s->server.ep, there + 3000, 64, NULL, AT(mr, 3500), CTX(6)),
			0);
	expect(test, &s->server, 6, FI_RMA | FI_WRITE, 64);
	KUNIT_EXPECT_MEMEQ(test, there + 3500, here, 64);
}

/*
 * Data of a write is a completion of the target's queue without a context, fi_cq(3). It takes no
 * receive.
 */
static void remote_data(struct kunit *test)
{
	const u64 flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
	struct msg_scene *s = msg_scene(test);
	struct fid_mr *mr = region(test, s, REMOTE);
	struct msg_comp comp;
	struct fid_ep *ep;
	int i;

	msg_connect(test, s);
	ep = s->client.ep;
	KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf + 1000, 8, NULL, 0, CTX(9)), 0);
	KUNIT_EXPECT_EQ(test, fi_writedata(ep, s->client.buf, 100, NULL, 70, AT(mr, 0), CTX(1)), 0);
	expect(test, &s->client, 1, FI_RMA | FI_WRITE | FI_REMOTE_CQ_DATA, 100);
	KUNIT_EXPECT_EQ(test, fi_inject_writedata(ep, s->client.buf, 50, 71, AT(mr, 0)), 0);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_TRUE(test, kofi_soon(msg_read(&s->server, &comp) > 0));
		KUNIT_EXPECT_NULL(test, comp.entry.op_context);
		KUNIT_EXPECT_EQ(test, comp.entry.flags, flags);
		KUNIT_EXPECT_EQ(test, comp.entry.data, 70 + i);
		KUNIT_EXPECT_EQ(test, comp.entry.len, i ? 50 : 100);
	}
	expect_nothing(test, &s->client);
	MSG_SEND(ep, s->client.buf, 8, 2);
	MSG_DONE(&s->client, 2, 0);
	MSG_DONE(&s->server, 9, 0);
}

/* An operation that the target refuses fails at the initiator, and the connection goes on. */
static void refused(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_mr *mr = region(test, s, FI_REMOTE_WRITE);
	struct fid_ep *ep;
	u8 *buf;

	msg_take(test, s);
	ep = s->client.ep;
	buf = s->client.buf;
	KUNIT_EXPECT_EQ(test, fi_write(ep, buf, 8, NULL, AT(mr, 0), CTX(1)), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_read(s->server.ep, buf, 8, NULL, AT(mr, 0), CTX(1)),
			-FI_EOPBADSTATE);
	KUNIT_ASSERT_EQ(test, fi_accept(s->server.ep, NULL, 0), 0);
	MSG_EXPECT(s->client.eq, FI_CONNECTED, ep);
	MSG_EXPECT(s->server.eq, FI_CONNECTED, s->server.ep);
	KUNIT_EXPECT_EQ(test, fi_write(ep, buf, 8, NULL, 0, mr->base_addr, fi_mr_key(mr) + 1000,
				       CTX(1)), 0);
	expect_error(test, &s->client, 1, FI_RMA | FI_WRITE, EKEYREJECTED);
	KUNIT_EXPECT_EQ(test, fi_read(ep, buf, 8, NULL, AT(mr, 0), CTX(2)), 0);
	expect_error(test, &s->client, 2, FI_RMA | FI_READ, EACCES);
	KUNIT_EXPECT_EQ(test, fi_inject_write(ep, buf, 8, AT(mr, MSG_BUF)), 0);
	expect_error(test, &s->client, 0, FI_RMA | FI_WRITE, EACCES);
	KUNIT_EXPECT_EQ(test, fi_write(ep, buf, SZ_1M + 1, NULL, AT(mr, 0), CTX(3)), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, fi_inject_write(ep, buf, 129, AT(mr, 0)), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, fi_write(ep, buf, 8, NULL, AT(mr, 0), CTX(4)), 0);
	expect(test, &s->client, 4, FI_RMA | FI_WRITE, 8);
	KUNIT_EXPECT_EQ(test, fi_shutdown(ep, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_write(ep, buf, 8, NULL, AT(mr, 0), CTX(5)), -ENOTCONN);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
	KUNIT_EXPECT_EQ(test, fi_read(s->server.ep, buf, 8, NULL, AT(mr, 0), CTX(5)), -ENOTCONN);
}

/* An endpoint has the calls of its capabilities. */
static void capabilities(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_mr *mr = region(test, s, REMOTE);
	struct fid_ep *ep;
	u8 *buf = s->client.buf;

	meet(test, s, ep_with(test, s, FI_MSG));
	ep = s->client.ep;
	KUNIT_EXPECT_EQ(test, fi_write(ep, buf, 8, NULL, AT(mr, 0), CTX(1)), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_read(ep, buf, 8, NULL, AT(mr, 0), CTX(1)), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_atomic(ep, buf, 1, NULL, AT(mr, 0), FI_UINT64, FI_SUM, CTX(1)),
			-EOPNOTSUPP);
	/* Nor may its peers. */
	KUNIT_EXPECT_EQ(test, fi_write(s->server.ep, buf, 8, NULL, AT(mr, 0), CTX(1)), 0);
	expect_error(test, &s->server, 1, FI_RMA | FI_WRITE, EACCES);
	MSG_CLOSE(s->client.ep);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
	MSG_CLOSE(s->server.ep);

	/* Of two endpoints with the same queues, this one has no messages. */
	meet(test, s, ep_with(test, s, FI_RMA | FI_WRITE));
	ep = s->client.ep;
	KUNIT_EXPECT_EQ(test, fi_send(ep, buf, 8, NULL, 0, NULL), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_recv(ep, buf, 8, NULL, 0, NULL), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_read(ep, buf, 8, NULL, AT(mr, 0), CTX(1)), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_write(ep, buf, 8, NULL, AT(mr, 0), CTX(2)), 0);
	expect(test, &s->client, 2, FI_RMA | FI_WRITE, 8);
}

/* Completions on request, and data that is copied. */
static void selective(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_mr *mr = region(test, s, REMOTE);
	struct fi_rma_iov rma = { mr->base_addr, 8, fi_mr_key(mr) };
	struct kvec iov = { s->client.buf, 8 };
	struct fi_msg_rma msg = { .rma_iov = &rma, .rma_iov_count = 1, .context = CTX(1) };
	struct fid_ep *ep = NULL;

	KUNIT_ASSERT_EQ(test, fi_endpoint(s->domain, s->info, &ep, NULL), 0);
	s->client.ep = ep;
	KUNIT_ASSERT_EQ(test, fi_ep_bind(ep, &s->client.eq->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(ep, &s->client.cq->fid, FI_TRANSMIT | FI_RECV |
								  FI_SELECTIVE_COMPLETION), 0);
	meet(test, s, ep);
	KUNIT_EXPECT_EQ(test, fi_write(ep, s->client.buf, 8, NULL, AT(mr, 0), CTX(2)), 0);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 8);
	KUNIT_EXPECT_EQ(test, fi_writemsg(ep, &msg, FI_COMPLETION | FI_INJECT), 0);
	expect(test, &s->client, 1, FI_RMA | FI_WRITE, 8);
	expect_nothing(test, &s->client);
	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, 8);
	KUNIT_EXPECT_EQ(test, fi_readmsg(ep, &msg, FI_INJECT), -FI_EBADFLAGS);
	/* A failure is reported in any case. */
	rma.key += 1000;
	KUNIT_EXPECT_EQ(test, fi_readmsg(ep, &msg, 0), 0);
	expect_error(test, &s->client, 1, FI_RMA | FI_READ, EKEYREJECTED);
}

static void atomics(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_mr *mr = region(test, s, REMOTE);
	u64 *here = (u64 *)s->client.buf, *there = (u64 *)s->server.buf;
	struct fi_atomic_attr attr;
	struct fid_ep *ep;

	msg_connect(test, s);
	ep = s->client.ep;
	here[0] = 5;
	there[0] = 100;
	KUNIT_EXPECT_EQ(test, fi_query_atomic(s->domain, FI_UINT64, FI_SUM, &attr, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_atomic(ep, here, 1, NULL, AT(mr, 0), FI_UINT64, FI_SUM, CTX(1)),
			0);
	expect(test, &s->client, 1, FI_ATOMIC | FI_WRITE, 8);
	KUNIT_EXPECT_EQ(test, there[0], 105);
	KUNIT_EXPECT_EQ(test, fi_fetch_atomic(ep, here, 1, NULL, here + 1, NULL, AT(mr, 0),
					      FI_UINT64, FI_SUM, CTX(2)), 0);
	expect(test, &s->client, 2, FI_ATOMIC | FI_READ, 8);
	KUNIT_EXPECT_EQ(test, here[1], 105);
	here[2] = 110;
	KUNIT_EXPECT_EQ(test, fi_compare_atomic(ep, here, 1, NULL, here + 2, NULL, here + 1, NULL,
						AT(mr, 0), FI_UINT64, FI_CSWAP, CTX(3)), 0);
	expect(test, &s->client, 3, FI_ATOMIC | FI_READ, 8);
	KUNIT_EXPECT_EQ(test, here[1], 110);
	KUNIT_EXPECT_EQ(test, there[0], 5);
	KUNIT_EXPECT_EQ(test, fi_inject_atomic(ep, here, 1, AT(mr, 0), FI_UINT64, FI_SUM), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(there[0]) == 10));
	KUNIT_EXPECT_EQ(test, fi_atomic(ep, here, 1, NULL, 0, mr->base_addr, fi_mr_key(mr) + 1000,
					FI_UINT64, FI_SUM, CTX(4)), 0);
	expect_error(test, &s->client, 4, FI_ATOMIC | FI_WRITE, EKEYREJECTED);
	expect_nothing(test, &s->client);
	expect_nothing(test, &s->server);
}

/* --- the end --- */

/* Operations end with their connection, and those of another one of the lane go on. */
static void ends(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_mr *mr = region(test, s, REMOTE);
	int done[2] = {}, canceled = 0, i, own;
	struct fid_ep *first[2];
	struct msg_comp comp;

	msg_connect(test, s);
	first[0] = s->client.ep;
	first[1] = s->server.ep;
	msg_connect(test, s);
	for (i = 0; i < MANY; i++)
		KUNIT_ASSERT_EQ(test, fi_writedata(first[0], s->client.buf, 8, NULL, i, AT(mr, 0),
						   CTX(1)), 0);
	for (i = 0; i < FEW; i++)
		KUNIT_ASSERT_EQ(test, fi_writedata(s->client.ep, s->client.buf, 8, NULL, i,
						   AT(mr, 0), CTX(2)), 0);
	/* The target has taken what it has room for. */
	msleep(20);
	KUNIT_EXPECT_EQ(test, fi_shutdown(first[0], 0), 0);
	while (msg_read(&s->client, &comp) > 0) {
		own = comp.error.err ? (long)comp.error.op_context == 1 :
				       (long)comp.entry.op_context == 1;
		KUNIT_EXPECT_TRUE(test, own);
		KUNIT_EXPECT_TRUE(test, !comp.error.err || comp.error.err == ECANCELED);
		canceled += comp.error.err == ECANCELED;
		done[0]++;
	}
	KUNIT_EXPECT_EQ(test, done[0], MANY);
	KUNIT_EXPECT_GT(test, canceled, 0);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, first[1]);
	for (i = 0; i < MANY - canceled + FEW; i++)
		KUNIT_EXPECT_TRUE(test, kofi_soon(msg_read(&s->server, &comp) > 0));
	for (i = 0; i < FEW; i++)
		expect(test, &s->client, 2, FI_RMA | FI_WRITE | FI_REMOTE_CQ_DATA, 8);
	expect_nothing(test, &s->client);
	expect_nothing(test, &s->server);
	MSG_CLOSE(first[0]);
	MSG_CLOSE(first[1]);
}

static void post_writes(struct kofi_thread *thread)
{
	struct msg_scene *s = thread->arg;
	struct fid_ep *ep = s->client.ep;
	ssize_t ret;

	do {
		ret = fi_inject_write(ep, s->client.buf, 8, 0, 0, U64_MAX);
		cond_resched();
	} while (!ret || ret == -EAGAIN);
	thread->ret = ret;
}

#define ROUNDS	20

/* Posts race with the end of their connection, after which nothing of them is left. */
static void races(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct kofi_thread thread;
	struct msg_comp comp;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		msg_connect(test, s);
		kofi_thread_start(test, &thread, post_writes, s);
		usleep_range(50 * i, 50 * i + 50);
		KUNIT_EXPECT_EQ(test, fi_shutdown(i % 2 ? s->client.ep : s->server.ep, 0), 0);
		for (;;) {
			/* Each has failed, because there is no such key. */
			while (msg_read(&s->client, &comp) > 0)
				;
			if (completion_done(&thread.done))
				break;
			usleep_range(50, 100);
		}
		kofi_thread_join(test, &thread);
		KUNIT_EXPECT_EQ(test, thread.ret, -ENOTCONN);
		MSG_CLOSE(s->client.ep);
		while (msg_read(&s->client, &comp) > 0)
			;
		MSG_CLOSE(s->server.ep);
		expect_nothing(test, &s->client);
	}
}

/* --- counters --- */

static struct fid_cntr *counter(struct kunit *test, struct msg_scene *s)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr = NULL;

	KUNIT_ASSERT_EQ(test, fi_cntr_open(s->domain, &attr, &cntr, NULL), 0);
	return cntr;
}

static bool counts_to(struct fid_cntr *cntr, u64 n)
{
	return kofi_soon(fi_cntr_read(cntr) == n);
}

/* An endpoint of the client with queues, and a counter. */
static struct fid_ep *counted(struct kunit *test, struct msg_scene *s, struct fid_cntr *cntr,
			      u64 flags)
{
	struct fid_ep *ep = msg_ep(test, s, s->info, &s->client);

	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &cntr->fid, flags), 0);
	return ep;
}

/* Each purpose has its counter, also for what the peer reads and writes. */
static void counters(struct kunit *test)
{
	static const u64 flags[] = {
		FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE,
	};
	static const u64 client[] = { 3, 1, 2, 1, 0, 1 };
	struct msg_scene *s = msg_scene(test);
	struct fid_cntr *cntr[ARRAY_SIZE(flags)];
	struct fid_mr *mr = NULL;
	struct fid_ep *ep;
	u8 *buf = s->client.buf;
	int i;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(s->domain, s->server.buf, MSG_BUF, REMOTE, 0, 0, 0, &mr,
					NULL), 0);
	ep = msg_ep(test, s, s->info, &s->client);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		cntr[i] = counter(test, s);
		KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &cntr[i]->fid, flags[i]), 0);
		KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &cntr[i]->fid, flags[i]), -EBUSY);
	}
	meet(test, s, ep);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, CTX(9)), 0);
		MSG_SEND(ep, buf, 8, 1);
		MSG_DONE(&s->server, 9, 0);
	}
	KUNIT_EXPECT_EQ(test, fi_recv(ep, buf, 8, NULL, 0, CTX(2)), 0);
	MSG_SEND(s->server.ep, s->server.buf, 8, 3);
	KUNIT_EXPECT_EQ(test, fi_read(ep, buf, 8, NULL, AT(mr, 0), CTX(4)), 0);
	KUNIT_EXPECT_EQ(test, fi_fetch_atomic(ep, buf, 1, NULL, buf + 8, NULL, AT(mr, 0),
					      FI_UINT64, FI_SUM, CTX(4)), 0);
	KUNIT_EXPECT_EQ(test, fi_write(ep, buf, 8, NULL, AT(mr, 0), CTX(5)), 0);
	/* One that fails. */
	KUNIT_EXPECT_EQ(test, fi_write(ep, buf, 8, NULL, AT(mr, MSG_BUF), CTX(6)), 0);
	/* Through which connection a peer accesses memory doesn't depend on whose it is. */
	KUNIT_EXPECT_EQ(test, fi_write(s->server.ep, s->server.buf, 8, NULL, AT(mr, 8), CTX(7)),
			0);
	for (i = 0; i < ARRAY_SIZE(flags); i++)
		KUNIT_EXPECT_TRUE(test, counts_to(cntr[i], client[i]));
	KUNIT_EXPECT_TRUE(test, kofi_soon(fi_cntr_readerr(cntr[3]) == 1));
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(cntr[2]), 0);
	MSG_CLOSE(s->client.ep);
	MSG_CLOSE(s->server.ep);
	for (i = 0; i < ARRAY_SIZE(flags); i++)
		MSG_CLOSE(cntr[i]);
	MSG_CLOSE(mr);
}

/* An endpoint can do without queues. Its counter tells when a send may be tried again. */
static void only_counters(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_cntr *tx = counter(test, s), *rx = counter(test, s);
	struct fid_ep *ep = NULL;
	u8 *buf = s->client.buf;

	KUNIT_ASSERT_EQ(test, fi_endpoint(s->domain, s->info, &ep, NULL), 0);
	s->client.ep = ep;
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &s->client.eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &tx->fid, FI_SEND | FI_READ | FI_WRITE), 0);
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, NULL, 0), -FI_ENOCQ);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &rx->fid, FI_RECV), 0);
	meet(test, s, ep);
	KUNIT_EXPECT_EQ(test, fi_send(ep, buf, 8, NULL, 0, CTX(1)), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, CTX(9)), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(tx, 1, MSG_WAIT_MS), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_send(ep, buf, 8, NULL, 0, CTX(1)), 0);
	/* It may be told once more than it was refused. */
	KUNIT_EXPECT_TRUE(test, kofi_soon(!fi_cntr_wait(tx, 1, MSG_WAIT_MS)));
	MSG_DONE(&s->server, 9, 0);
	KUNIT_EXPECT_EQ(test, fi_recv(ep, buf, 8, NULL, 0, CTX(2)), 0);
	MSG_SEND(s->server.ep, s->server.buf, 8, 3);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(rx, 1, MSG_WAIT_MS), 0);
	/* An operation that is outstanding at the end has failed. */
	KUNIT_EXPECT_EQ(test, fi_recv(ep, buf, 8, NULL, 0, CTX(4)), 0);
	KUNIT_EXPECT_EQ(test, fi_shutdown(ep, 0), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(fi_cntr_readerr(rx) == 1));
	MSG_CLOSE(s->client.ep);
	MSG_CLOSE(tx);
	MSG_CLOSE(rx);
}

static const struct kmsg_lane *lane(struct fid_ep *ep)
{
	return container_of(ep, struct kmsg_ep, ep_fid)->lane;
}

/* Connections with the same queues and counters share a lane, and others don't. */
static void counted_lanes(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_mr *mr = region(test, s, REMOTE);
	struct fid_cntr *cntr[2] = { counter(test, s), counter(test, s) };
	struct fid_ep *ep[4], *peer[4];
	int i;

	for (i = 0; i < 4; i++) {
		ep[i] = i == 3 ? msg_ep(test, s, s->info, &s->client) :
				 counted(test, s, cntr[i / 2], FI_WRITE);
		meet(test, s, ep[i]);
		peer[i] = s->server.ep;
		KUNIT_EXPECT_EQ(test, fi_write(ep[i], s->client.buf, 8, NULL, AT(mr, 0), CTX(1)),
				0);
		MSG_DONE(&s->client, 1, 0);
	}
	KUNIT_EXPECT_PTR_EQ(test, lane(ep[0]), lane(ep[1]));
	KUNIT_EXPECT_PTR_NE(test, lane(ep[1]), lane(ep[2]));
	KUNIT_EXPECT_PTR_NE(test, lane(ep[0]), lane(ep[3]));
	KUNIT_EXPECT_PTR_NE(test, lane(ep[2]), lane(ep[3]));
	KUNIT_EXPECT_PTR_EQ(test, lane(peer[0]), lane(peer[3]));
	KUNIT_EXPECT_TRUE(test, counts_to(cntr[0], 2));
	KUNIT_EXPECT_TRUE(test, counts_to(cntr[1], 1));
	for (i = 0; i < 4; i++) {
		MSG_CLOSE(ep[i]);
		MSG_CLOSE(peer[i]);
	}
	s->client.ep = NULL;
	s->server.ep = NULL;
	MSG_CLOSE(cntr[0]);
	MSG_CLOSE(cntr[1]);
}

/* Counters of what peers do need FI_RMA_EVENT. */
static void counters_refused(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_cntr *cntr = counter(test, s);
	struct fid_ep *ep = ep_with(test, s, FI_MSG | FI_RMA);

	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &cntr->fid, FI_REMOTE_WRITE), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &cntr->fid, FI_REMOTE_READ | FI_READ), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &cntr->fid, FI_READ), 0);
	/* The endpoint is as it was. */
	meet(test, s, ep);
	MSG_CLOSE(s->client.ep);
	MSG_CLOSE(cntr);
}

static struct kunit_case msg_rma_cases[] = {
	KUNIT_CASE(entries),
	KUNIT_CASE(options),
	KUNIT_CASE(transfers),
	KUNIT_CASE(remote_data),
	KUNIT_CASE(refused),
	KUNIT_CASE(capabilities),
	KUNIT_CASE(selective),
	KUNIT_CASE(atomics),
	KUNIT_CASE(ends),
	KUNIT_CASE(races),
	KUNIT_CASE(counters),
	KUNIT_CASE(only_counters),
	KUNIT_CASE(counted_lanes),
	KUNIT_CASE(counters_refused),
	{}
};

static struct kunit_suite msg_rma_suite = {
	.name = "kofi_msg_rma",
	.test_cases = msg_rma_cases,
};

kunit_test_suite(msg_rma_suite);

MODULE_DESCRIPTION("KUnit tests of reads and writes of connections");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
