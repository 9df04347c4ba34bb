// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Connections over fabric efa: all endpoints are on one fake device, which a thread runs. */
#define MSG_PROVIDER	FI_EFA_PROV_NAME

#include "efa_rdm_scene.h"
#include "msg_test.h"

#define MSG_BIG		SZ_1M
/* A message that its receiver grants part by part. */
#define MSG_LATE	100000
/* Most messages that a lane can have outstanding. */
#define MSG_MANY	200

/**
 * struct wire - the device, and the thread that runs it
 * @fake: the device
 * @task: the thread
 * @lost: packets aren't delivered
 */
struct wire {
	struct efake		*fake;
	struct task_struct	*task;
	bool			lost;
};

static int net_run(void *data)
{
	struct wire *wire = data;

	while (!kthread_should_stop())
		if (READ_ONCE(wire->lost) || !efake_move(wire->fake, RDM_SLID))
			usleep_range(50, 100);
	return 0;
}

static void net_stop(void *data)
{
	struct wire *wire = data;

	kthread_stop(wire->task);
}

/* The thread ends before the device does, and after the endpoints. */
static struct wire *net_start(struct kunit *test)
{
	struct wire *wire = kunit_kzalloc(test, sizeof(*wire), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, wire);
	wire->fake = efake_make(test, EFA_DEVICE);
	efake_publish(wire->fake);
	wire->task = kthread_run(net_run, wire, "kofi-net");
	KUNIT_ASSERT_FALSE(test, IS_ERR(wire->task));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, net_stop, wire), 0);
	return wire;
}

static struct msg_scene *net_scene(struct kunit *test, struct wire **wire)
{
	*wire = net_start(test);
	return msg_scene_at(test, EFA_DEVICE, "127.0.0.1");
}

static struct msg_scene *connected(struct kunit *test, struct wire **wire)
{
	struct msg_scene *s = net_scene(test, wire);

	msg_connect(test, s);
	return s;
}

static void entry(struct kunit *test)
{
	struct fi_info *info;

	net_start(test);
	info = msg_find(test, EFA_DEVICE, "127.0.0.1");
	KUNIT_EXPECT_NULL(test, info->next);
	KUNIT_EXPECT_STREQ(test, info->fabric_attr->name, FI_EFA_FABRIC);
	KUNIT_EXPECT_EQ(test, info->ep_attr->protocol, FI_PROTO_KOFI_MSG);
	KUNIT_EXPECT_EQ(test, info->caps & FI_MSG, FI_MSG);
	KUNIT_EXPECT_EQ(test, info->caps & (FI_RMA | FI_ATOMIC | FI_FENCE),
			FI_RMA | FI_ATOMIC | FI_FENCE);
	KUNIT_EXPECT_EQ(test, info->caps & (FI_TAGGED | FI_MULTI_RECV), 0);
	fi_freeinfo(info);
}

static void echo(struct kunit *test, struct msg_scene *s, size_t len)
{
	struct msg_comp comp;

	efa_fill(s->client.buf, len, len + 1);
	memset(s->server.buf, 0, len);
	KUNIT_ASSERT_EQ(test, fi_recv(s->server.ep, s->server.buf, len, NULL, 0, (void *)1), 0);
	MSG_SEND(s->client.ep, s->client.buf, len, 2);
	KUNIT_EXPECT_TRUE(test, kofi_soon(msg_read(&s->server, &comp) > 0));
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_MSG | FI_RECV);
	KUNIT_EXPECT_EQ(test, comp.entry.tag, 0);
	KUNIT_EXPECT_EQ(test, comp.entry.len, len);
	KUNIT_EXPECT_TRUE(test, efa_filled(s->server.buf, len, len + 1));
	MSG_DONE(&s->client, 2, 0);
	memset(s->client.buf, 0, len);
	KUNIT_ASSERT_EQ(test, fi_recv(s->client.ep, s->client.buf, len, NULL, 0, (void *)3), 0);
	MSG_SEND(s->server.ep, s->server.buf, len, 4);
	MSG_DONE(&s->client, 3, 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(msg_read(&s->server, &comp) > 0));
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_MSG | FI_SEND);
	KUNIT_EXPECT_TRUE(test, efa_filled(s->client.buf, len, len + 1));
}

static void grow(struct kunit *test, struct msg_end *end)
{
	kfree(end->buf);
	end->buf = kzalloc(MSG_BIG, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, end->buf);
}

static void messages(struct kunit *test)
{
	static const size_t lens[] = { 0, 8, 4096, 30000, 100000, MSG_BIG };
	struct msg_scene *s;
	struct wire *wire;
	int i;

	s = connected(test, &wire);
	grow(test, &s->client);
	grow(test, &s->server);
	for (i = 0; i < ARRAY_SIZE(lens); i++)
		echo(test, s, lens[i]);
	KUNIT_EXPECT_EQ(test, fi_inject(s->client.ep, s->client.buf, 8, 0), -EAGAIN);
	KUNIT_ASSERT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, (void *)5), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(!fi_inject(s->client.ep, s->client.buf, 8, 0)));
	MSG_DONE(&s->server, 5, 0);
}

/* More messages than the receiver has told of at a time, in order. */
static void stream(struct kunit *test)
{
	struct msg_scene *s;
	u64 *in, *out;
	struct wire *wire;
	long i;

	s = connected(test, &wire);
	grow(test, &s->client);
	grow(test, &s->server);
	in = (u64 *)s->server.buf;
	out = (u64 *)s->client.buf;
	for (i = 0; i < 2 * MSG_MANY; i++) {
		out[i] = i;
		if (i < MSG_MANY)
			KUNIT_ASSERT_EQ(test, fi_recv(s->server.ep, &in[i], 8, NULL, 0,
						      (void *)i), 0);
	}
	for (i = 0; i < 2 * MSG_MANY; i++) {
		MSG_SEND(s->client.ep, &out[i], 8, i);
		MSG_DONE(&s->client, i, 0);
		MSG_DONE(&s->server, i, 0);
		KUNIT_EXPECT_EQ(test, in[i], i);
		if (i < MSG_MANY)
			KUNIT_ASSERT_EQ(test, fi_recv(s->server.ep, &in[i + MSG_MANY], 8, NULL, 0,
						      (void *)(i + MSG_MANY)), 0);
	}
}

/* The end of a connection ends its operations, and no others of its lane. */
static void ends(struct kunit *test)
{
	struct msg_end other = {}, peer = {};
	struct fid_ep *first[2];
	struct msg_scene *s;
	struct wire *wire;

	s = connected(test, &wire);
	first[0] = s->client.ep;
	first[1] = s->server.ep;
	other = s->client;
	peer = s->server;
	msg_connect(test, s);
	KUNIT_EXPECT_EQ(test, fi_recv(first[1], peer.buf, 8, NULL, 0, (void *)1), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(first[0], other.buf, 8, NULL, 0, (void *)2), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(s->client.ep, s->client.buf, 8, NULL, 0, (void *)3), 0);
	/* Nor does fi_cancel() find those of another one. */
	KUNIT_EXPECT_EQ(test, fi_cancel(&first[0]->fid, (void *)3), -ENOENT);
	KUNIT_EXPECT_EQ(test, fi_recv(first[0], other.buf, 8, NULL, 0, (void *)3), 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&first[0]->fid, (void *)3), 0);
	MSG_DONE(&s->client, 3, ECANCELED);
	KUNIT_EXPECT_EQ(test, fi_shutdown(first[0], 0), 0);
	MSG_DONE(&s->client, 2, ECANCELED);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, first[1]);
	MSG_DONE(&s->server, 1, ECANCELED);
	MSG_CLOSE(first[0]);
	MSG_CLOSE(first[1]);
	MSG_SEND(s->server.ep, s->server.buf, 8, 4);
	MSG_DONE(&s->server, 4, 0);
	MSG_DONE(&s->client, 3, 0);
}

/* Return: the endpoint that a connection uses. */
static struct fid_ep *lane_of(struct efake *fake)
{
	struct kefa_ep *ep = container_of(efake_last_qp(fake)->hq, struct kefa_ep, hq);

	return &ep->ep_fid;
}

/*
 * A peer that can't be reached any more is dead for ever in fabric efa. Its connections end, and
 * the first attempt to connect again succeeds, because it gets another lane.
 */
static void reconnects(struct kunit *test)
{
	struct fid_ep *lane, *old[2] = {};
	struct msg_scene *s;
	struct wire *wire;
	int i;

	s = connected(test, &wire);
	for (i = 0; i < 5; i++) {
		echo(test, s, 8);
		lane = lane_of(wire->fake);
		spin_lock_bh(&to_kefa_ep(lane)->lock);
		kefa_rdm_kill(to_kefa_rdm(to_kefa_ep(lane)),
			      kefa_peers_at(&to_kefa_rdm(to_kefa_ep(lane))->peers, 0), EIO, 0);
		spin_unlock_bh(&to_kefa_ep(lane)->lock);
		MSG_EXPECT(s->client.eq, FI_SHUTDOWN, s->client.ep);
		MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
		KUNIT_EXPECT_EQ(test, fi_send(s->client.ep, s->client.buf, 8, NULL, 0, NULL),
				-ENOTCONN);
		/* The old endpoints may still be open. */
		MSG_CLOSE(old[0]);
		MSG_CLOSE(old[1]);
		old[0] = s->client.ep;
		old[1] = s->server.ep;
		s->client.ep = NULL;
		s->server.ep = NULL;
		msg_connect(test, s);
	}
	echo(test, s, 8);
	MSG_CLOSE(old[0]);
	MSG_CLOSE(old[1]);
}

static void close_ep(struct kofi_thread *thread)
{
	thread->ret = fi_close(thread->arg);
}

/* A message that the device has when its connection is closed is delivered before the end. */
static void closes(struct kunit *test)
{
	struct kofi_thread thread;
	struct msg_scene *s;
	struct wire *wire;

	s = connected(test, &wire);
	echo(test, s, 8);
	KUNIT_ASSERT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, (void *)1), 0);
	MSG_SEND(s->client.ep, s->client.buf, 8, 2);
	MSG_DONE(&s->server, 1, 0);
	MSG_DONE(&s->client, 2, 0);
	KUNIT_ASSERT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, (void *)3), 0);
	WRITE_ONCE(wire->lost, true);
	MSG_SEND(s->client.ep, s->client.buf, 8, 4);
	kofi_thread_start(test, &thread, close_ep, &s->client.ep->fid);
	msleep(50);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 0));
	WRITE_ONCE(wire->lost, false);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
	s->client.ep = NULL;
	MSG_DONE(&s->client, 4, 0);
	MSG_DONE(&s->server, 3, 0);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
}

/*
 * A message that arrives after the end of its connection is dropped. Otherwise it would never be
 * answered, and its sender would declare the peer dead, which ends other connections of the lane.
 */
static void late_message(struct kunit *test)
{
	struct fid_ep *first[2];
	struct msg_scene *s;
	struct wire *wire;

	s = connected(test, &wire);
	grow(test, &s->client);
	grow(test, &s->server);
	echo(test, s, 8);
	first[0] = s->client.ep;
	first[1] = s->server.ep;
	msg_connect(test, s);
	KUNIT_EXPECT_EQ(test, fi_recv(first[0], s->client.buf, MSG_LATE, NULL, 0, (void *)1), 0);
	WRITE_ONCE(wire->lost, true);
	MSG_SEND(first[1], s->server.buf, MSG_LATE, 2);
	MSG_CLOSE(first[0]);
	MSG_DONE(&s->client, 1, ECANCELED);
	WRITE_ONCE(wire->lost, false);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, first[1]);
	MSG_DONE(&s->server, 2, 0);
	MSG_CLOSE(first[1]);
	echo(test, s, 8);
	msg_quiet(test, s->server.eq);
}

/* --- reads and writes --- */

/* A region with the server's memory, which is larger afterwards. The caller closes it. */
static struct fid_mr *region(struct kunit *test, struct msg_scene *s)
{
	struct fid_mr *mr = NULL;

	grow(test, &s->client);
	grow(test, &s->server);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(s->domain, s->server.buf, MSG_BIG,
					FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL), 0);
	return mr;
}

static void far_done(struct kunit *test, struct msg_end *end, unsigned long ctx, u64 flags,
		     int err)
{
	struct msg_comp comp;

	KUNIT_EXPECT_TRUE(test, kofi_soon(msg_read(end, &comp) > 0));
	KUNIT_EXPECT_EQ(test, comp.error.err, err);
	if (err) {
		KUNIT_EXPECT_EQ(test, (unsigned long)comp.error.op_context, ctx);
		KUNIT_EXPECT_EQ(test, comp.error.flags, flags);
		KUNIT_EXPECT_EQ(test, comp.error.tag, 0);
	} else {
		KUNIT_EXPECT_EQ(test, (unsigned long)comp.entry.op_context, ctx);
		KUNIT_EXPECT_EQ(test, comp.entry.flags, flags);
		KUNIT_EXPECT_EQ(test, comp.entry.tag, 0);
	}
}

/* Return: number of completions and errors. */
static int msg_reads(struct msg_end *end)
{
	struct msg_comp comp;
	int n = 0;

	while (msg_read(end, &comp) > 0)
		n++;
	return n;
}

static void far_len(struct kunit *test, struct msg_scene *s, struct fid_mr *mr, size_t len)
{
	const u64 data = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, key = fi_mr_key(mr);
	struct fid_ep *ep = s->client.ep;
	struct msg_comp comp;

	efa_fill(s->client.buf, len, len + 1);
	memset(s->server.buf, 0, len);
	KUNIT_EXPECT_EQ(test, fi_write(ep, s->client.buf, len, NULL, 0, mr->base_addr, key,
				       (void *)1), 0);
	far_done(test, &s->client, 1, FI_RMA | FI_WRITE, 0);
	/* It is there when a read has seen it: a write may complete before. */
	memset(s->client.buf, 0, len);
	KUNIT_EXPECT_TRUE(test, kofi_soon(efa_filled(s->server.buf, len, len + 1)));
	KUNIT_EXPECT_EQ(test, fi_read(ep, s->client.buf, len, NULL, 0, mr->base_addr, key,
				      (void *)2), 0);
	far_done(test, &s->client, 2, FI_RMA | FI_READ, 0);
	KUNIT_EXPECT_TRUE(test, efa_filled(s->client.buf, len, len + 1));
	KUNIT_EXPECT_EQ(test, fi_writedata(ep, s->client.buf, len, NULL, 70, 0, mr->base_addr, key,
					   (void *)3), 0);
	far_done(test, &s->client, 3, FI_RMA | FI_WRITE | FI_REMOTE_CQ_DATA, 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(msg_read(&s->server, &comp) > 0));
	KUNIT_EXPECT_NULL(test, comp.entry.op_context);
	KUNIT_EXPECT_EQ(test, comp.entry.flags, data);
	KUNIT_EXPECT_EQ(test, comp.entry.data, 70);
	/* A device doesn't tell the length of its writes. */
	KUNIT_EXPECT_TRUE(test, comp.entry.len == len || !comp.entry.len);
}

/* The device reads and writes with kind 0, reads only with 1, and does neither with 2. */
static void far_device(struct wire *wire, int kind)
{
	wire->fake->dev->rdma_write = kind < 1;
	wire->fake->dev->rdma_read = kind < 2;
}

/* By the device, and by packets. */
static void transfers(struct kunit *test)
{
	static const size_t lens[] = { 8, 5000, 100000, MSG_BIG };
	struct fid_mr *mr;
	struct msg_scene *s;
	struct wire *wire;
	int i, kind;

	s = net_scene(test, &wire);
	for (kind = 0; kind < 3; kind++) {
		far_device(wire, kind);
		mr = region(test, s);
		msg_connect(test, s);
		for (i = 0; i < ARRAY_SIZE(lens); i++)
			far_len(test, s, mr, lens[i]);
		/* Messages and these don't mind each other. */
		echo(test, s, 100000);
		MSG_CLOSE(mr);
		MSG_CLOSE(s->client.ep);
		MSG_CLOSE(s->server.ep);
	}
}

static void fetch(struct kunit *test)
{
	struct fid_mr *mr;
	struct msg_scene *s;
	struct wire *wire;
	u64 *here, *there;

	s = connected(test, &wire);
	mr = region(test, s);
	here = (u64 *)s->client.buf;
	there = (u64 *)s->server.buf;
	here[0] = 5;
	there[0] = 100;
	KUNIT_EXPECT_EQ(test, fi_fetch_atomic(s->client.ep, here, 1, NULL, here + 1, NULL, 0,
					      mr->base_addr, fi_mr_key(mr), FI_UINT64, FI_SUM,
					      (void *)1), 0);
	far_done(test, &s->client, 1, FI_ATOMIC | FI_READ, 0);
	KUNIT_EXPECT_EQ(test, here[1], 100);
	KUNIT_EXPECT_EQ(test, there[0], 105);
	MSG_CLOSE(mr);
}

static ssize_t write_fenced(struct msg_scene *s, const struct fid_mr *mr, long ctx)
{
	const struct fi_rma_iov rma = { mr->base_addr, 8, fi_mr_key((struct fid_mr *)mr) };
	const struct kvec iov = { s->client.buf, 8 };
	struct fi_msg_rma msg = { .rma_iov = &rma, .rma_iov_count = 1, .context = (void *)ctx };

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 8);
	return fi_writemsg(s->client.ep, &msg, FI_FENCE);
}

/* Of those that are outstanding at the end, the ones that the device has are finished. */
static void closes_kind(struct kunit *test, struct msg_scene *s, struct wire *wire)
{
	struct fid_ep *other, *first;
	struct kofi_thread thread;
	struct fid_mr *mr;

	mr = region(test, s);
	msg_connect(test, s);
	other = s->client.ep;
	first = s->server.ep;
	msg_connect(test, s);
	echo(test, s, 8);
	swap(other, s->client.ep);
	WRITE_ONCE(wire->lost, true);
	KUNIT_EXPECT_EQ(test, fi_read(s->client.ep, s->client.buf, 8, NULL, 0, mr->base_addr,
				      fi_mr_key(mr), (void *)1), 0);
	KUNIT_EXPECT_EQ(test, write_fenced(s, mr, 2), 0);
	kofi_thread_start(test, &thread, close_ep, &s->client.ep->fid);
	far_done(test, &s->client, 2, FI_RMA | FI_WRITE, ECANCELED);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 0));
	WRITE_ONCE(wire->lost, false);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
	far_done(test, &s->client, 1, FI_RMA | FI_READ, 0);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, first);
	MSG_CLOSE(first);
	/* The other connection of the lane goes on. */
	s->client.ep = other;
	echo(test, s, 8);
	far_len(test, s, mr, 8);
	MSG_CLOSE(mr);
	MSG_CLOSE(s->client.ep);
	MSG_CLOSE(s->server.ep);
}

static void closes_far(struct kunit *test)
{
	struct msg_scene *s;
	struct wire *wire;
	int kind;

	s = net_scene(test, &wire);
	for (kind = 0; kind < 3; kind++) {
		far_device(wire, kind);
		closes_kind(test, s, wire);
	}
}

/* Counters of both sides, with the queues, by the device and by packets. */
static void counters(struct kunit *test)
{
	struct fid_cntr *cntr[3] = {};
	struct fi_cntr_attr attr = {};
	struct msg_event event;
	struct msg_scene *s;
	struct wire *wire;
	struct fid_mr *mr;
	int i, kind;

	s = net_scene(test, &wire);
	for (kind = 0; kind < 3; kind++) {
		far_device(wire, kind);
		mr = region(test, s);
		for (i = 0; i < ARRAY_SIZE(cntr); i++)
			KUNIT_ASSERT_EQ(test, fi_cntr_open(s->domain, &attr, &cntr[i], NULL), 0);
		s->client.ep = msg_ep(test, s, s->info, &s->client);
		KUNIT_EXPECT_EQ(test, fi_ep_bind(s->client.ep, &cntr[0]->fid, FI_SEND | FI_RECV),
				0);
		KUNIT_EXPECT_EQ(test, fi_ep_bind(s->client.ep, &cntr[1]->fid, FI_READ | FI_WRITE),
				0);
		KUNIT_ASSERT_EQ(test, fi_connect(s->client.ep, &s->addr, NULL, 0), 0);
		event = msg_next(test, s->eq);
		KUNIT_ASSERT_EQ(test, event.what, FI_CONNREQ);
		s->server.ep = msg_ep(test, s, event.info, &s->server);
		fi_freeinfo(event.info);
		KUNIT_EXPECT_EQ(test, fi_ep_bind(s->server.ep, &cntr[2]->fid, FI_REMOTE_READ |
						 FI_REMOTE_WRITE), 0);
		KUNIT_ASSERT_EQ(test, fi_accept(s->server.ep, NULL, 0), 0);
		MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep);
		MSG_EXPECT(s->server.eq, FI_CONNECTED, s->server.ep);
		echo(test, s, 8);
		far_len(test, s, mr, 8);
		KUNIT_EXPECT_TRUE(test, kofi_soon(fi_cntr_read(cntr[0]) == 2));
		KUNIT_EXPECT_TRUE(test, kofi_soon(fi_cntr_read(cntr[1]) == 3));
		/* The device reads and writes without the provider. */
		KUNIT_EXPECT_TRUE(test, kofi_soon(fi_cntr_read(cntr[2]) >= kind));
		MSG_CLOSE(s->client.ep);
		MSG_CLOSE(s->server.ep);
		for (i = 0; i < ARRAY_SIZE(cntr); i++)
			MSG_CLOSE(cntr[i]);
		MSG_CLOSE(mr);
	}
}

/* A peer that dies with a read outstanding. */
static void dies_far(struct kunit *test)
{
	struct fid_ep *lane;
	struct fid_mr *mr;
	struct msg_scene *s;
	struct wire *wire;

	s = connected(test, &wire);
	mr = region(test, s);
	far_len(test, s, mr, 8);
	lane = lane_of(wire->fake);
	WRITE_ONCE(wire->lost, true);
	KUNIT_EXPECT_EQ(test, fi_read(s->client.ep, s->client.buf, 8, NULL, 0, mr->base_addr,
				      fi_mr_key(mr), (void *)1), 0);
	KUNIT_EXPECT_EQ(test, fi_read(s->server.ep, s->client.buf + 8, 8, NULL, 0, mr->base_addr,
				      fi_mr_key(mr), (void *)2), 0);
	spin_lock_bh(&to_kefa_ep(lane)->lock);
	kefa_rdm_kill(to_kefa_rdm(to_kefa_ep(lane)),
		      kefa_peers_at(&to_kefa_rdm(to_kefa_ep(lane))->peers, 0), EIO, 0);
	spin_unlock_bh(&to_kefa_ep(lane)->lock);
	WRITE_ONCE(wire->lost, false);
	MSG_EXPECT(s->client.eq, FI_SHUTDOWN, s->client.ep);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
	KUNIT_EXPECT_EQ(test, fi_read(s->client.ep, s->client.buf, 8, NULL, 0, mr->base_addr,
				      fi_mr_key(mr), NULL), -ENOTCONN);
	MSG_CLOSE(s->client.ep);
	MSG_CLOSE(s->server.ep);
	/* Each had one completion. */
	KUNIT_EXPECT_EQ(test, msg_reads(&s->client), 1);
	KUNIT_EXPECT_EQ(test, msg_reads(&s->server), 1);
	MSG_CLOSE(mr);
	mr = region(test, s);
	msg_connect(test, s);
	far_len(test, s, mr, 8);
	MSG_CLOSE(mr);
}

static void device_gone(struct kunit *test)
{
	struct msg_scene *s;
	struct wire *wire;

	s = connected(test, &wire);
	echo(test, s, 8);
	KUNIT_ASSERT_EQ(test, fi_recv(s->server.ep, s->server.buf, 8, NULL, 0, (void *)1), 0);
	efake_remove(wire->fake);
	MSG_EXPECT(s->client.eq, FI_SHUTDOWN, s->client.ep);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, s->server.ep);
	MSG_DONE(&s->server, 1, ENODEV);
	KUNIT_EXPECT_EQ(test, fi_send(s->client.ep, s->client.buf, 8, NULL, 0, NULL), -ENODEV);
}

static struct kunit_case efa_msg_cases[] = {
	KUNIT_CASE(entry),
	KUNIT_CASE(messages),
	KUNIT_CASE(stream),
	KUNIT_CASE(ends),
	KUNIT_CASE(reconnects),
	KUNIT_CASE(closes),
	KUNIT_CASE(late_message),
	KUNIT_CASE(transfers),
	KUNIT_CASE(fetch),
	KUNIT_CASE(closes_far),
	KUNIT_CASE(counters),
	KUNIT_CASE(dies_far),
	KUNIT_CASE(device_gone),
	{}
};

static struct kunit_suite efa_msg_suite = {
	.name		= "kefa_msg",
	.test_cases	= efa_msg_cases,
};

kunit_test_suite(efa_msg_suite);
