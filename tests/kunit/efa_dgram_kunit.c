// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Datagrams of fabric efa: what fi_getinfo() says of them, what the device is asked to send and
 * receive with and without a prefix, and the ends of their operations.
 */
#include <linux/bvec.h>
#include <kofi/atomic.h>
#include "crew.h"
#include "efa_scene.h"

#define PREFIX	40

static struct efa_scene *dgram_new(struct kunit *test, u32 prefix)
{
	return efa_scene_new(test, &(struct efa_opts) { .dgram = true, .prefix = prefix });
}

/* --- fi_getinfo() --- */

static const struct asked {
	const char	*desc;
	bool		dgram;		/* the device has datagrams */
	u32		prefix;
	enum fi_ep_type	type;
	u64		mode;
	u64		caps;
	size_t		size;		/* of messages */
	int		entries;	/* direct and efa's RDM are two */
	bool		found;		/* the last entry is the datagrams' */
} asked[] = {
	{ "datagrams", true, PREFIX, FI_EP_DGRAM, FI_MSG_PREFIX, .entries = 1, .found = true },
	{ "datagrams without the mode", true, PREFIX, FI_EP_DGRAM },
	{ "datagrams, no prefix", true, 0, FI_EP_DGRAM, .entries = 1, .found = true },
	{ "datagrams, not offered", false, 0, FI_EP_DGRAM, FI_MSG_PREFIX },
	{ "datagrams of the limit", true, PREFIX, FI_EP_DGRAM, FI_MSG_PREFIX, FI_MSG, EFAKE_MTU,
	  1, true },
	{ "datagrams above the limit", true, PREFIX, FI_EP_DGRAM, FI_MSG_PREFIX, FI_MSG,
	  EFAKE_MTU + 1 },
	{ "datagrams with RMA", true, PREFIX, FI_EP_DGRAM, FI_MSG_PREFIX, FI_RMA },
	{ "datagrams with tags", true, PREFIX, FI_EP_DGRAM, FI_MSG_PREFIX, FI_TAGGED },
	{ "datagrams with sources", true, PREFIX, FI_EP_DGRAM, FI_MSG_PREFIX, FI_MSG | FI_SOURCE },
	{ "any type", true, PREFIX, FI_EP_UNSPEC, .entries = 2 },
	{ "any type, with the mode", true, PREFIX, FI_EP_UNSPEC, FI_MSG_PREFIX, .entries = 3,
	  .found = true },
	{ "any type, no prefix", true, 0, FI_EP_UNSPEC, .entries = 3, .found = true },
	{ "reliable", true, PREFIX, FI_EP_RDM, FI_MSG_PREFIX, .entries = 2 },
};

KUNIT_ARRAY_PARAM_DESC(asked, asked, desc);

static void expect_entry(struct kunit *test, const struct fi_info *info, const struct asked *row)
{
	const u64 mode = row->prefix ? FI_MSG_PREFIX : 0;

	KUNIT_EXPECT_STREQ(test, info->fabric_attr->name, FI_EFA_FABRIC);
	KUNIT_EXPECT_STREQ(test, info->domain_attr->name, EFA_DEVICE);
	KUNIT_EXPECT_EQ(test, info->ep_attr->type, FI_EP_DGRAM);
	KUNIT_EXPECT_EQ(test, info->ep_attr->max_msg_size, EFAKE_MTU);
	KUNIT_EXPECT_EQ(test, info->ep_attr->msg_prefix_size, row->prefix);
	KUNIT_EXPECT_EQ(test, info->mode, mode);
	KUNIT_EXPECT_EQ(test, info->tx_attr->mode, mode);
	KUNIT_EXPECT_EQ(test, info->rx_attr->mode, mode);
	KUNIT_EXPECT_EQ(test, info->caps & ~(FI_LOCAL_COMM | FI_REMOTE_COMM),
			FI_MSG | FI_SEND | FI_RECV);
	KUNIT_EXPECT_EQ(test, info->tx_attr->msg_order | info->rx_attr->msg_order, 0);
	KUNIT_EXPECT_EQ(test, info->tx_attr->inject_size, KEFA_INJECT);
}

static void offered(struct kunit *test)
{
	const struct asked *row = test->param_value;
	struct fi_fabric_attr fabric = { .prov_name = FI_EFA_PROV_NAME };
	struct fi_ep_attr ep = { .type = row->type, .max_msg_size = row->size };
	struct fi_info hints = {
		.fabric_attr = &fabric, .ep_attr = &ep, .caps = row->caps, .mode = row->mode,
	};
	struct efake *fake = efake_make(test, EFA_DEVICE);
	struct fi_info *list, *info, *last = NULL;
	int n = 0;

	fake->dev->dgram = row->dgram;
	fake->dev->ud_prefix = row->prefix;
	efake_publish(fake);
	KUNIT_EXPECT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, &hints, &list),
			row->entries ? 0 : -ENODATA);
	if (!row->entries)
		return;
	for (info = list; info; info = info->next, n++)
		last = info;
	KUNIT_EXPECT_EQ(test, n, row->entries);
	KUNIT_EXPECT_EQ(test, last->ep_attr->type, row->found ? FI_EP_DGRAM : FI_EP_RDM);
	if (row->found)
		expect_entry(test, last, row);
	fi_freeinfo(list);
}

/* --- endpoints --- */

static int open_as(struct efa_scene *scene, enum fi_ep_type type, u64 mode)
{
	struct fi_info *info = fi_dupinfo(scene->info);
	struct fid_ep *ep;
	int ret = -ENOMEM;

	if (!info)
		return ret;
	info->ep_attr->type = type;
	info->mode = mode;
	ret = fi_endpoint(scene->domain, info, &ep, NULL);
	if (!ret)
		ret = fi_close(&ep->fid);
	fi_freeinfo(info);
	return ret;
}

/* A domain of fabric efa has endpoints of both types. Those of datagrams have no atomics. */
static void types(struct kunit *test)
{
	struct efa_scene *scene = dgram_new(test, PREFIX);
	struct fi_atomic_attr attr;
	struct fid_ep *ep;

	KUNIT_EXPECT_TRUE(test, scene->qp->attr.ud);
	KUNIT_EXPECT_EQ(test, fi_query_atomic(scene->domain, FI_UINT8, FI_SUM, &attr, 0),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, open_as(scene, FI_EP_RDM, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_query_atomic(scene->domain, FI_UINT8, FI_SUM, &attr, 0), 0);
	KUNIT_EXPECT_EQ(test, open_as(scene, FI_EP_UNSPEC, 0), 0);
	KUNIT_EXPECT_EQ(test, open_as(scene, FI_EP_DGRAM, FI_MSG_PREFIX), 0);
	/* The buffers would lack the room that the device takes. */
	KUNIT_EXPECT_EQ(test, open_as(scene, FI_EP_DGRAM, 0), -EINVAL);
	scene->info->ep_attr->type = FI_EP_RDM;
	ep = efa_scene_ep(test, scene, 0);
	KUNIT_EXPECT_EQ(test, fi_enable(ep), 0);
	KUNIT_EXPECT_FALSE(test, efake_last_qp(scene->fake)->attr.ud);
	EFA_CLOSE(test, ep);
	scene->info->ep_attr->type = FI_EP_DGRAM;
	scene->info->tx_attr->size = EFAKE_TX_DEPTH + 1;
	KUNIT_EXPECT_EQ(test, open_as(scene, FI_EP_DGRAM, FI_MSG_PREFIX), -EINVAL);
	scene->info->tx_attr->size = 0;
	scene->info->tx_attr->op_flags |= FI_DELIVERY_COMPLETE;
	KUNIT_EXPECT_EQ(test, open_as(scene, FI_EP_DGRAM, FI_MSG_PREFIX), -EINVAL);
	scene->info->tx_attr->op_flags = 0;
	scene->info->caps |= FI_RMA;
	KUNIT_EXPECT_EQ(test, open_as(scene, FI_EP_DGRAM, FI_MSG_PREFIX), -EINVAL);
	scene->info->caps = 0;
	scene->fake->dev->dgram = false;
	KUNIT_EXPECT_EQ(test, open_as(scene, FI_EP_DGRAM, FI_MSG_PREFIX), -EINVAL);
}

static size_t option(struct efa_scene *scene, int name)
{
	size_t value = 0, len = sizeof(value);
	int ret = fi_getopt(&scene->ep->fid, FI_OPT_ENDPOINT, name, &value, &len);

	return ret ?: value;
}

static void options(struct kunit *test)
{
	struct efa_scene *scene = dgram_new(test, PREFIX);
	size_t times = 3;

	KUNIT_EXPECT_EQ(test, option(scene, FI_OPT_MAX_MSG_SIZE), EFAKE_MTU);
	KUNIT_EXPECT_EQ(test, option(scene, FI_OPT_INJECT_MSG_SIZE), KEFA_INJECT);
	KUNIT_EXPECT_EQ(test, option(scene, FI_OPT_TX_SIZE), EFAKE_TX_DEPTH);
	KUNIT_EXPECT_EQ(test, option(scene, FI_OPT_RX_SIZE), EFAKE_RX_DEPTH);
	/* Nobody retries a datagram. */
	KUNIT_EXPECT_EQ(test, option(scene, FI_OPT_EFA_RNR_RETRY), -ENOPROTOOPT);
	KUNIT_EXPECT_NE(test, fi_setopt(&scene->ep->fid, FI_OPT_ENDPOINT, FI_OPT_EFA_RNR_RETRY,
					&times, sizeof(times)), 0);
	KUNIT_EXPECT_EQ(test, scene->qp->attr.rnr_retry, KEFA_RNR_UNSET);
}

/* A queue pair of datagrams can't register memory, so the domain's does. */
static void regions(struct kunit *test)
{
	struct efa_scene *scene = dgram_new(test, PREFIX);
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 4, .access = FI_REMOTE_READ, .cq = scene->cq, .ep = scene->ep,
	};
	struct kvec iov = { scene->buf, 100 };
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, fi_mr_alloc(scene->domain, &attr, &mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr, &(struct fi_mr_attr) {
		.mr_iov = &iov, .iov_count = 1, .access = FI_REMOTE_READ,
		.context = (void *)3,
	}, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 3);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* --- sending --- */

enum way { SEND, INJECT, KVEC, BVEC, PIECES, THREE, DATA, MORE };

static const struct sent {
	const char	*desc;
	enum way	way;
	size_t		len;		/* without the prefix */
	int		ret;
	bool		copied;
} sends[] = {
	{ "nothing", SEND, 0 },
	{ "1 byte", SEND, 1 },
	{ "inline", SEND, 32 },
	{ "too long for inline", SEND, 33 },
	{ "the longest", SEND, EFAKE_MTU },
	{ "too long", SEND, EFAKE_MTU + 1, -EMSGSIZE },
	{ "inject of nothing", INJECT, 0 },
	{ "inject, inline", INJECT, 32 },
	{ "inject", INJECT, 33, .copied = true },
	{ "inject, the longest", INJECT, KEFA_INJECT, .copied = true },
	{ "inject too long", INJECT, KEFA_INJECT + 1, -EMSGSIZE },
	{ "message of nothing", KVEC, 0 },
	{ "message", KVEC, 100 },
	{ "message, the longest", KVEC, EFAKE_MTU },
	{ "message too long", KVEC, EFAKE_MTU + 1, -EMSGSIZE },
	{ "message, bvec, inline", BVEC, 8 },
	{ "message, bvec", BVEC, 3000 },
	{ "two pieces", PIECES, 1000 },
	{ "two pieces, inline", PIECES, 20 },
	{ "three pieces", THREE, 1000 },
	{ "three pieces, inline", THREE, 30 },
	{ "remote CQ data", DATA, 100 },
	{ "more to come", MORE, 100 },
};

KUNIT_ARRAY_PARAM_DESC(sent, sends, desc);

#define SEED	5
#define CTX	((void *)7)

/* Move the buffer to pieces that aren't adjacent. The prefix needn't be in one of them. */
static void scatter(struct efa_scene *scene, struct kvec *iov, int n, size_t whole)
{
	const size_t part = to_kefa_direct(efa_ep(scene))->prefix / 2 + 4;
	size_t at = 0;
	int i;

	for (i = 0; i < n; i++) {
		iov[i].iov_base = scene->buf + (i + 1) * EFA_BUF / 4;
		iov[i].iov_len = i == n - 1 ? whole - at : part;
		memcpy(iov[i].iov_base, scene->buf + at, iov[i].iov_len);
		at += iov[i].iov_len;
	}
}

static ssize_t send_iter(struct efa_scene *scene, enum way way, size_t whole)
{
	struct fi_msg msg = { .addr = scene->peer, .context = CTX };
	struct kvec iov[3] = { { scene->buf, whole } };
	const int n = way == THREE ? 3 : way == PIECES ? 2 : 1;
	struct bio_vec bv;

	if (n > 1)
		scatter(scene, iov, n, whole);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, iov, n, whole);
	bvec_set_page(&bv, virt_to_page(scene->buf), whole, offset_in_page(scene->buf));
	if (way == BVEC)
		iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, &bv, 1, whole);
	return fi_sendmsg(scene->ep, &msg, way == MORE ? FI_COMPLETION | FI_MORE : FI_COMPLETION);
}

static ssize_t send_way(struct efa_scene *scene, enum way way, size_t whole)
{
	switch (way) {
	case SEND:
		return fi_send(scene->ep, scene->buf, whole, NULL, scene->peer, CTX);
	case INJECT:
		return fi_inject(scene->ep, scene->buf, whole, scene->peer);
	case DATA:
		return fi_senddata(scene->ep, scene->buf, whole, NULL, 0x89abcdef, scene->peer,
				   CTX);
	default:
		return send_iter(scene, way, whole);
	}
}

static void expect_sent(struct kunit *test, struct efa_scene *scene, const struct sent *row,
			bool bare)
{
	struct efake_wr *wr = efake_sent(scene->qp, 0);
	u8 *got = kunit_kzalloc(test, EFA_BUF, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, got);
	KUNIT_ASSERT_NOT_NULL(test, wr);
	KUNIT_EXPECT_EQ(test, wr->opcode, row->way == DATA ? IB_WR_SEND_WITH_IMM : IB_WR_SEND);
	KUNIT_EXPECT_EQ(test, wr->imm, row->way == DATA ? 0x89abcdef : 0);
	KUNIT_EXPECT_EQ(test, wr->qpn, 7);
	KUNIT_EXPECT_EQ(test, wr->qkey, 0x107);
	KUNIT_EXPECT_EQ(test, efake_ah_gid(wr->ah)[FI_EFA_GID_LEN - 1], 2);
	KUNIT_EXPECT_EQ(test, wr->len, row->len);
	efake_wr_read(wr, got, row->len);
	KUNIT_EXPECT_TRUE(test, efa_filled(got, row->len, SEED));
	/* With a prefix, the first of three pieces has nothing to send. */
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.bounced,
			row->copied || (row->way == THREE && row->len > KEFA_MAX_INLINE && bare));
	efake_wr_done(wr, 0);
	if (row->way == INJECT)
		efa_expect_nothing(test, scene);
	else
		efa_expect_done(test, scene, 7);
}

static void send_one(struct kunit *test, const struct sent *row, u32 prefix)
{
	struct efa_scene *scene = dgram_new(test, prefix);

	/* The bytes of the prefix aren't sent. */
	memset(scene->buf, 0xee, prefix);
	efa_fill(scene->buf + prefix, row->len, SEED);
	KUNIT_EXPECT_EQ(test, send_way(scene, row->way, prefix + row->len), row->ret);
	/* The worker posts what another post should have followed. */
	efake_settle();
	if (!row->ret)
		expect_sent(test, scene, row, !prefix);
	else
		KUNIT_EXPECT_EQ(test, scene->qp->nsent, 0);
}

static void sending(struct kunit *test)
{
	send_one(test, test->param_value, PREFIX);
}

static void sending_bare(struct kunit *test)
{
	send_one(test, test->param_value, 0);
}

/* A buffer without the whole prefix is refused, and so is what isn't a message. */
static void refused(struct kunit *test)
{
	struct efa_scene *scene = dgram_new(test, PREFIX);
	struct kvec iov = { scene->buf, PREFIX - 1 };
	struct fi_msg msg = { .addr = scene->peer };
	int len;

	for (len = 0; len < PREFIX; len += PREFIX - 1) {
		iov.iov_len = len;
		KUNIT_EXPECT_EQ(test, efa_send(scene, len, 1), -EINVAL);
		KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, len, scene->peer), -EINVAL);
		KUNIT_EXPECT_EQ(test, fi_sendv(scene->ep, &iov, NULL, 1, scene->peer, NULL),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, efa_recv(scene, len, 1), -EINVAL);
		KUNIT_EXPECT_EQ(test, fi_recvv(scene->ep, &iov, NULL, 1, FI_ADDR_UNSPEC, NULL),
				-EINVAL);
		iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, len);
		KUNIT_EXPECT_EQ(test, fi_sendmsg(scene->ep, &msg, 0), -EINVAL);
		iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, len);
		KUNIT_EXPECT_EQ(test, fi_recvmsg(scene->ep, &msg, 0), -EINVAL);
	}
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &(struct kvec) { scene->buf, 100 }, 1, 100);
	KUNIT_EXPECT_EQ(test, fi_sendmsg(scene->ep, &msg, FI_DELIVERY_COMPLETE), -FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 100, 1), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, efa_get(scene, 100, 1), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_send(scene->ep, scene->buf, 100, NULL, scene->peer + 9, NULL),
			-EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, scene->qp->nsent + scene->qp->nrecvs, 0);
	efa_expect_nothing(test, scene);
}

/* --- receiving --- */

static const struct got {
	const char	*desc;
	u32		prefix;
	bool		iter;		/* the slow path */
	size_t		room;		/* of the buffer */
	size_t		posted;		/* of it, to the device */
	u32		len;		/* of the datagram */
} gots[] = {
	{ "only a prefix", PREFIX, false, PREFIX, PREFIX, 0 },
	{ "some", PREFIX, false, 140, 140, 100 },
	{ "a longest datagram", PREFIX, false, EFAKE_MTU + PREFIX, EFAKE_MTU + PREFIX, EFAKE_MTU },
	{ "a large buffer", PREFIX, false, EFA_BUF, EFAKE_MTU + PREFIX, EFAKE_MTU },
	{ "two pieces", PREFIX, true, EFAKE_MTU + PREFIX, EFAKE_MTU + PREFIX, EFAKE_MTU },
	{ "two pieces of a large buffer", PREFIX, true, EFA_BUF, EFAKE_MTU + PREFIX, 33 },
	{ "nothing, no prefix", 0, false, 0, 0, 0 },
	{ "a longest datagram, no prefix", 0, false, EFAKE_MTU, EFAKE_MTU, EFAKE_MTU },
	{ "a large buffer, no prefix", 0, true, EFA_BUF, EFAKE_MTU, EFAKE_MTU },
};

KUNIT_ARRAY_PARAM_DESC(got, gots, desc);

static void receiving(struct kunit *test)
{
	const struct got *row = test->param_value;
	struct efa_scene *scene = dgram_new(test, row->prefix);
	struct kvec iov[] = {
		{ scene->buf, 10 }, { scene->buf + 10, row->room - 10 },
	};
	u8 *wire = kunit_kzalloc(test, EFA_BUF, GFP_KERNEL);
	struct efake_wr *wr;
	struct efa_comp comp;

	KUNIT_ASSERT_NOT_NULL(test, wire);
	KUNIT_EXPECT_EQ(test, row->iter ?
			fi_recvv(scene->ep, iov, NULL, 2, FI_ADDR_UNSPEC, CTX) :
			efa_recv(scene, row->room, 7), 0);
	wr = efake_recv(scene->qp, 0);
	KUNIT_ASSERT_NOT_NULL(test, wr);
	KUNIT_EXPECT_EQ(test, wr->len, row->posted);
	efa_fill(wire + row->prefix, row->len, SEED);
	efake_wr_write(wr, wire, row->prefix + row->len);
	efake_recv_done(wr, &(struct kefa_wc) {
		.len = row->prefix + row->len, .src_qpn = 7, .imm = 12, .has_imm = true,
	});
	efake_settle();
	comp = efa_read(scene);
	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_PTR_EQ(test, comp.entry.op_context, CTX);
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA);
	KUNIT_EXPECT_EQ(test, comp.entry.len, row->prefix + row->len);
	KUNIT_EXPECT_EQ(test, comp.entry.data, 12);
	KUNIT_EXPECT_TRUE(test, efa_filled(scene->buf + row->prefix, row->len, SEED));
}

/* --- completions --- */

/* fi_efa(7) of libfabric has no counters, sleeping readers or protection of the queue here. */
static void counted(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.dgram = true, .prefix = PREFIX, .idle = true,
	});
	struct fi_cntr_attr attr = {
		.wait_obj = FI_WAIT_UNSPEC, .events = FI_CNTR_EVENTS_COMP,
	};
	struct fid_cntr *sent, *got;

	KUNIT_ASSERT_EQ(test, fi_cntr_open(scene->domain, &attr, &sent, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_cntr_open(scene->domain, &attr, &got, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(scene->ep, &sent->fid, FI_SEND), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(scene->ep, &got->fid, FI_RECV), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 100, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 50, scene->peer), 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 100, 2), 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 100, 3), 0);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efake_recv_done(efake_recv(scene->qp, 0), &(struct kefa_wc) { .len = PREFIX });
	/* A datagram that is longer than the buffer. */
	efake_wr_done(efake_recv(scene->qp, 0), 11);
	KUNIT_EXPECT_EQ(test, fi_cntr_wait(sent, 2, 1000), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, fi_cntr_read(got), 1);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(got), 1);
	EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_EQ(test, fi_close(&sent->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&got->fid), 0);
}

static void sleep_once(struct kofi_thread *thread)
{
	struct fi_cq_data_entry entry;

	thread->ret = fi_cq_sread(thread->arg, &entry, 1, NULL, KOFI_NEVER_MS);
}

static void sleeping(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.dgram = true, .prefix = PREFIX, .cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct kofi_thread thread;

	KUNIT_EXPECT_EQ(test, efa_recv(scene, 100, 2), 0);
	kofi_thread_start(test, &thread, sleep_once, scene->cq);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 20));
	efake_recv_done(efake_recv(scene->qp, 0), &(struct kefa_wc) { .len = PREFIX + 1 });
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 1);
}

/* A post reserves its entry of the queue. */
static void no_overrun(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.dgram = true, .prefix = PREFIX, .cq.size = 2,
	});
	int i, n = 0;

	while (n < EFAKE_RX_DEPTH && !efa_recv(scene, 100, n + 1))
		n++;
	KUNIT_EXPECT_LT(test, n, EFAKE_RX_DEPTH);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 100, 90), -EAGAIN);
	for (i = 0; i < n; i++)
		efake_recv_done(efake_recv(scene->qp, 0), &(struct kefa_wc) { .len = PREFIX });
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_drain(scene), n);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 100, 90), 0);
}

static void post_some(struct kunit *test, struct efa_scene *scene)
{
	KUNIT_EXPECT_EQ(test, efa_send(scene, 100, 1), 0);
	KUNIT_EXPECT_EQ(test, send_iter(scene, PIECES, 1000), 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 100, 3), 0);
}

static void expect_ended(struct kunit *test, struct efa_scene *scene, int err)
{
	struct efa_comp comp;
	int n = 0;

	while ((comp = efa_read(scene)).ret == -FI_EAVAIL) {
		KUNIT_EXPECT_EQ(test, comp.error.err, err);
		n++;
	}
	KUNIT_EXPECT_EQ(test, comp.ret, -EAGAIN);
	KUNIT_EXPECT_EQ(test, n, 3);
}

static void closed(struct kunit *test)
{
	struct efa_scene *scene = dgram_new(test, PREFIX);

	post_some(test, scene);
	EFA_CLOSE(test, scene->ep);
	expect_ended(test, scene, ECANCELED);
}

static void removed(struct kunit *test)
{
	struct efa_scene *scene = dgram_new(test, PREFIX);

	post_some(test, scene);
	efake_remove(scene->fake);
	expect_ended(test, scene, ENODEV);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 100, 1), -ENODEV);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 100, 1), -ENODEV);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 50, scene->peer), -ENODEV);
}

/* The device says what was wrong; a peer's address handle isn't kept by a datagram. */
static void failed(struct kunit *test)
{
	struct efa_scene *scene = dgram_new(test, PREFIX);

	KUNIT_EXPECT_EQ(test, efa_send(scene, 100, 1), 0);
	efake_wr_done(efake_sent(scene->qp, 0), 5);
	efa_expect_error(test, scene, 1, kefa_status_errno(5), 5);
	efake_fail(scene->fake, EFAKE_POST_SEND, 1, -ENOMEM);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 100, 2), 0);
	efa_expect_error(test, scene, 2, ENOMEM, 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 100, 3), 0);
	KUNIT_EXPECT_EQ(test, fi_av_remove(scene->av, &scene->peer, 1, 0), 0);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 3);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 100, 4), -EHOSTUNREACH);
}

static struct kunit_case dgram_cases[] = {
	KUNIT_CASE_PARAM(offered, asked_gen_params),
	KUNIT_CASE(types),
	KUNIT_CASE(options),
	KUNIT_CASE(regions),
	KUNIT_CASE_PARAM(sending, sent_gen_params),
	KUNIT_CASE_PARAM(sending_bare, sent_gen_params),
	KUNIT_CASE(refused),
	KUNIT_CASE_PARAM(receiving, got_gen_params),
	KUNIT_CASE(counted),
	KUNIT_CASE(sleeping),
	KUNIT_CASE(no_overrun),
	KUNIT_CASE(closed),
	KUNIT_CASE(removed),
	KUNIT_CASE(failed),
	{}
};

static struct kunit_suite dgram_suite = {
	.name = "kefa_dgram",
	.test_cases = dgram_cases,
};

kunit_test_suite(dgram_suite);
