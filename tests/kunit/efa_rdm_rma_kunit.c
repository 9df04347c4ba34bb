// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: reads and writes by packets. The first endpoint reads and writes memory of the second
 * one over the network; or a case makes up what the peer of the second endpoint answers.
 */
#include <linux/bvec.h>
#include <linux/vmalloc.h>
#include "crew.h"
#include "efa_rdm_far.h"

#define DATA	KEFA_REQ_OPT_CQ_DATA_HDR
#define EAGER_MOST	(EFAKE_MTU - 8 - 24 - 4)

static ssize_t do_write(struct far *far, u64 at, size_t len, u64 flags, long ctx)
{
	struct kvec iov = { far->data, len };
	const struct fi_rma_iov rma = far_piece(far, at, len);
	struct fi_msg_rma msg = {
		.addr = far->pair->end[0].peer, .rma_iov = &rma, .rma_iov_count = 1,
		.context = (void *)ctx, .data = 0x1122334455667788ULL + ctx,
	};

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, len);
	return fi_writemsg(far->pair->end[0].ep, &msg, flags | FI_COMPLETION);
}

static ssize_t do_read(struct far *far, u64 at, size_t len, long ctx)
{
	const struct fi_rma_iov rma = far_piece(far, at, len);

	return fi_read(far->pair->end[0].ep, far->data, len, NULL, far->pair->end[0].peer,
		       rma.addr, rma.key, (void *)ctx);
}

static void expect_flags(struct far *far, long ctx, size_t len, u64 flags)
{
	struct rdm_comp comp = rdm_read(&far->pair->end[0]);

	KUNIT_EXPECT_EQ(far->test, comp.ret, 1);
	KUNIT_EXPECT_EQ(far->test, (long)comp.entry.op_context, ctx);
	KUNIT_EXPECT_EQ(far->test, comp.entry.len, len);
	KUNIT_EXPECT_EQ(far->test, comp.entry.flags, flags);
}

/* --- over the network --- */

static const size_t sizes[] = {
	0, 1, 8, 500, 4096, EAGER_MOST - 8, EAGER_MOST, EAGER_MOST + 1, 20001, 100000,
};

/* Return: the type of request that one of these endpoints selects. */
static u8 write_type(size_t len, bool dc)
{
	if (len <= EAGER_MOST - (dc ? 8 : 0))
		return dc ? KEFA_DC_EAGER_RTW_PKT : KEFA_EAGER_RTW_PKT;
	return dc ? KEFA_DC_LONGCTS_RTW_PKT : KEFA_LONGCTS_RTW_PKT;
}

static void rma_writes(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	const struct kefa_rdm_stats *st = &rdm_of(&far->pair->end[0])->stats;
	unsigned int i, dc, n = 0;
	u64 was;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (dc = 0; dc < 2; dc++) {
			memset(far->pages, 0xa5, FAR_BYTES);
			efa_fill(far->data, sizes[i], i + dc);
			was = st->sent[write_type(sizes[i], dc)];
			KUNIT_EXPECT_EQ(test, do_write(far, 4091, sizes[i], dc ?
						       FI_DELIVERY_COMPLETE : 0, ++n), 0);
			rdm_run(far->pair);
			expect_flags(far, n, sizes[i], FI_RMA | FI_WRITE);
			KUNIT_EXPECT_EQ(test, st->sent[write_type(sizes[i], dc)], was + 1);
			KUNIT_ASSERT_EQ(test, memcmp(far->mem + 4091, far->data, sizes[i]), 0);
			KUNIT_EXPECT_EQ(test, far->mem[4090], 0xa5);
			KUNIT_EXPECT_EQ(test, far->mem[4091 + sizes[i]], 0xa5);
		}
	}
	rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[0].far), n);
	rdm_expect_whole(test, far->pair);
}

static void rma_reads(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	const struct kefa_rdm_stats *st = &rdm_of(&far->pair->end[0])->stats;
	u64 all = 0, shorts = 0;
	unsigned int i, credits, n = 0;

	efa_fill(far->mem, FAR_BYTES, 3);
	for (credits = 1; credits < 4; credits++) {
		rdm_of(&far->pair->end[0])->lim.credits = credits;
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			memset(far->data, 0xa5, sizes[i] + 1);
			KUNIT_EXPECT_EQ(test, do_read(far, 4091, sizes[i], ++n), 0);
			rdm_run(far->pair);
			expect_flags(far, n, sizes[i], FI_RMA | FI_READ);
			KUNIT_ASSERT_EQ(test, memcmp(far->data, far->mem + 4091, sizes[i]), 0);
			KUNIT_EXPECT_EQ(test, far->data[sizes[i]], 0xa5);
			all += sizes[i];
			shorts += sizes[i] <= EFAKE_MTU - 24;
		}
	}
	KUNIT_EXPECT_EQ(test, st->sent[KEFA_SHORT_RTR_PKT], shorts);
	KUNIT_EXPECT_EQ(test, st->sent[KEFA_LONGCTS_RTR_PKT], n - shorts);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[1].remote), all);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(far->pair->end[0].far), n);
	rdm_expect_whole(test, far->pair);
}

static void rma_writedata(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct rdm_comp comp;
	unsigned int i, dc;
	long n = 0;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (dc = 0; dc < 2; dc++) {
			efa_fill(far->data, sizes[i], i);
			KUNIT_EXPECT_EQ(test, do_write(far, 0, sizes[i], FI_REMOTE_CQ_DATA |
						       (dc ? FI_DELIVERY_COMPLETE : 0), ++n), 0);
			rdm_run(far->pair);
			expect_flags(far, n, sizes[i], FI_RMA | FI_WRITE | FI_REMOTE_CQ_DATA);
			comp = rdm_read(&far->pair->end[1]);
			KUNIT_EXPECT_EQ(test, comp.ret, 1);
			KUNIT_EXPECT_EQ(test, comp.entry.len, sizes[i]);
			KUNIT_EXPECT_EQ(test, comp.entry.data, 0x1122334455667788ULL + n);
			KUNIT_EXPECT_EQ(test, comp.src, far->pair->end[1].peer);
			KUNIT_ASSERT_EQ(test, memcmp(far->mem, far->data, sizes[i]), 0);
		}
	}
	rdm_expect_whole(test, far->pair);
}

/* Several pieces here and there, of kernel addresses and of pages. */
static void rma_pieces(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct fi_rma_iov rma[KEFA_IOV_MAX];
	struct bio_vec bvec[3];
	struct kvec kvec[3];
	struct fi_msg_rma msg = {
		.addr = far->pair->end[0].peer, .rma_iov = rma, .context = (void *)7,
	};
	const size_t total = 11000;
	unsigned int n, i, pages, read;
	u8 *here = far->pair->out;
	size_t at;

	for (i = 0; i < 3; i++) {
		kvec[i] = (struct kvec) { here + 5000 * i, i < 2 ? 4000 : total - 8000 };
		bvec_set_page(&bvec[i], virt_to_page(kvec[i].iov_base), kvec[i].iov_len,
			      offset_in_page(kvec[i].iov_base));
	}
	for (n = 1; n <= KEFA_IOV_MAX; n++) {
		for (i = 0, at = 0; i < n; i++, at += rma[i - 1].len)
			rma[i] = far_piece(far, 20000 * i + 7,
					   i + 1 < n ? 1000 * (i + 1) : total - at);
		msg.rma_iov_count = n;
		for (read = 0; read < 2; read++) {
			for (pages = 0; pages < 2; pages++) {
				const unsigned int dir = read ? ITER_DEST : ITER_SOURCE;

				efa_fill(here, 15000, n);
				efa_fill(far->mem, FAR_BYTES, n + 100);
				if (pages)
					iov_iter_bvec(&msg.msg_iter, dir, bvec, 3, total);
				else
					iov_iter_kvec(&msg.msg_iter, dir, kvec, 3, total);
				KUNIT_EXPECT_EQ(test, read ?
					fi_readmsg(far->pair->end[0].ep, &msg, FI_COMPLETION) :
					fi_writemsg(far->pair->end[0].ep, &msg, FI_COMPLETION), 0);
				rdm_run(far->pair);
				rdm_expect(test, &far->pair->end[0], 7, total);
				for (i = 0, at = 0; i < total; i++) {
					const unsigned int seg = min(i / 4000, 2U);
					unsigned int j;

					for (j = 0, at = i; at >= rma[j].len; j++)
						at -= rma[j].len;
					if (here[5000 * seg + i - 4000 * seg] ==
					    far->mem[20000 * j + 7 + at])
						continue;
					KUNIT_FAIL(test, "byte %u of %u pieces differs", i, n);
					break;
				}
			}
		}
	}
	rdm_expect_whole(test, far->pair);
}

static void rma_inject(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	const size_t most = kefa_inject_size(far->pair->fake->dev);
	struct fi_rma_iov to = far_piece(far, 50, most);
	struct rdm_end *end = &far->pair->end[0];
	struct rdm_comp comp;

	efa_fill(far->data, most, 1);
	KUNIT_EXPECT_EQ(test, fi_inject_write(end->ep, far->data, most, end->peer, to.addr,
					      to.key), 0);
	memset(far->data, 0, most);
	rdm_run(far->pair);
	KUNIT_EXPECT_TRUE(test, efa_filled(far->mem + 50, most, 1));
	KUNIT_EXPECT_EQ(test, fi_inject_write(end->ep, far->data, most + 1, end->peer, to.addr,
					      to.key), -EMSGSIZE);
	efa_fill(far->data, 10, 2);
	KUNIT_EXPECT_EQ(test, fi_inject_writedata(end->ep, far->data, 10, 99, end->peer, to.addr,
						  to.key), 0);
	memset(far->data, 0, 10);
	rdm_run(far->pair);
	KUNIT_EXPECT_TRUE(test, efa_filled(far->mem + 50, 10, 2));
	comp = rdm_read(&far->pair->end[1]);
	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_EQ(test, comp.entry.data, 99ULL);
	rdm_expect_nothing(test, end);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(end->far), 2ULL);
	rdm_expect_whole(test, far->pair);
}

static const struct wrong {
	const char	*name;
	size_t		count;
	size_t		off;	/* added to the length of the first piece */
	u64		key;	/* exclusive-ored with the key */
	u64		addr;	/* added to the address */
	u64		flags;
	bool		read;
	int		ret;
} wrongs[] = {
	{ "right", 2, 0, 0, 0, FI_COMPLETION, false, 0 },
	{ "no pieces", 0, 0, 0, 0, 0, false, -EINVAL },
	{ "too many pieces", KEFA_IOV_MAX + 1, 0, 0, 0, 0, false, -EINVAL },
	{ "too short", 2, -1, 0, 0, 0, false, -EINVAL },
	{ "too long", 2, 1, 0, 0, 0, false, -EINVAL },
	{ "sum wraps", 2, SIZE_MAX - 20, 0, 0, 0, false, -EINVAL },
	{ "address wraps", 2, 0, 0, U64_MAX - 3, 0, false, -EINVAL },
	{ "read with inject", 2, 0, 0, 0, FI_INJECT, true, -FI_EBADFLAGS },
	{ "read with data", 2, 0, 0, 0, FI_REMOTE_CQ_DATA, true, -FI_EBADFLAGS },
	{ "unknown flag", 2, 0, 0, 0, FI_MULTI_RECV, false, -FI_EBADFLAGS },
};

KUNIT_ARRAY_PARAM_DESC(wrong, wrongs, name);

static void rma_refused(struct kunit *test)
{
	const struct wrong *w = test->param_value;
	struct far *far = far_new(test, NULL);
	struct fi_rma_iov rma[KEFA_IOV_MAX + 1] = { far_piece(far, 0, 50), far_piece(far, 60, 50) };
	struct kvec iov = { far->data, 100 };
	struct fi_msg_rma msg = {
		.addr = far->pair->end[0].peer, .rma_iov = rma, .rma_iov_count = w->count,
	};

	rma[0].len += w->off;
	rma[0].key ^= w->key;
	rma[0].addr += w->addr;
	iov_iter_kvec(&msg.msg_iter, w->read ? ITER_DEST : ITER_SOURCE, &iov, 1, 100);
	KUNIT_EXPECT_EQ(test, w->read ? fi_readmsg(far->pair->end[0].ep, &msg, w->flags) :
					fi_writemsg(far->pair->end[0].ep, &msg, w->flags), w->ret);
	/* A buffer of the other direction. */
	iov_iter_kvec(&msg.msg_iter, w->read ? ITER_SOURCE : ITER_DEST, &iov, 1, 100);
	KUNIT_EXPECT_NE(test, w->read ? fi_readmsg(far->pair->end[0].ep, &msg, w->flags) :
					fi_writemsg(far->pair->end[0].ep, &msg, w->flags), 0);
	rdm_run(far->pair);
	rdm_read_all(&far->pair->end[0], 0);
	rdm_expect_whole(test, far->pair);
}

/* libfabric gives memory that its device can't reach a key of more than 32 bits. */
static void rma_long_key(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .rdma = true });
	const struct fi_rma_iov rma = { 0x1000, 100, (1ULL << 32) + 5 };
	struct rdm_end *end = &far->pair->end[1];

	KUNIT_EXPECT_EQ(test, fi_write(end->ep, far->data, 100, NULL, end->peer, rma.addr, rma.key,
				       (void *)1), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_EAGER_RTW_PKT, 0));
	KUNIT_EXPECT_EQ(test, le64_to_cpu(far->hdr.rma_iov[0].key), rma.key);
	rdm_expect(test, end, 1, 100);
	KUNIT_EXPECT_EQ(test, fi_read(end->ep, far->data, 100, NULL, end->peer, rma.addr, rma.key,
				      (void *)2), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_SHORT_RTR_PKT, 0));
	KUNIT_EXPECT_EQ(test, le64_to_cpu(far->hdr.rma_iov[0].key), rma.key);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.reads + far->rdm->stats.writes, 0ULL);
}

/* Endpoints that were opened for messages alone. */
static void rma_without(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct rdm_end *end = &pair->end[0];

	KUNIT_EXPECT_EQ(test, fi_write(end->ep, pair->out, 1, NULL, end->peer, 0, 1, NULL),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_read(end->ep, pair->out, 1, NULL, end->peer, 0, 1, NULL),
			-EOPNOTSUPP);
}

static void expect_flag(struct kunit *test, struct fid_ep *ep, int name, bool value)
{
	size_t len = sizeof(bool);
	bool flag = !value;

	KUNIT_EXPECT_EQ(test, fi_getopt(&ep->fid, FI_OPT_ENDPOINT, name, &flag, &len), 0);
	KUNIT_EXPECT_EQ(test, len, sizeof(bool));
	KUNIT_EXPECT_EQ(test, flag, value);
	KUNIT_EXPECT_EQ(test, fi_setopt(&ep->fid, FI_OPT_ENDPOINT, name, &flag, sizeof(flag)),
			-ENOPROTOOPT);
}

static size_t size_option(struct kunit *test, struct fid_ep *ep, int name)
{
	size_t value, len = sizeof(value);

	KUNIT_EXPECT_EQ(test, fi_getopt(&ep->fid, FI_OPT_ENDPOINT, name, &value, &len), 0);
	return value;
}

/* The options about RMA, with and without support by the device, and without RMA. */
static void rma_options(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .rdma = true });
	struct rdm_pair *pair = far->pair;
	struct fid_ep *ep = pair->end[0].ep;

	KUNIT_EXPECT_EQ(test, size_option(test, ep, FI_OPT_MAX_RMA_SIZE), KEFA_RDM_MAX_MSG);
	KUNIT_EXPECT_EQ(test, size_option(test, ep, FI_OPT_INJECT_RMA_SIZE),
			kefa_inject_size(pair->fake->dev));
	expect_flag(test, ep, FI_OPT_EFA_EMULATED_READ, false);
	expect_flag(test, ep, FI_OPT_EFA_EMULATED_WRITE, false);
	expect_flag(test, ep, FI_OPT_EFA_EMULATED_ATOMICS, true);
	pair->fake->dev->rdma_write = false;
	expect_flag(test, ep, FI_OPT_EFA_EMULATED_READ, false);
	expect_flag(test, ep, FI_OPT_EFA_EMULATED_WRITE, true);
	pair->fake->dev->rdma_write = true;
	rdm_of(&pair->end[0])->use_rdma = false;
	expect_flag(test, ep, FI_OPT_EFA_EMULATED_READ, true);
	expect_flag(test, ep, FI_OPT_EFA_EMULATED_WRITE, true);
	pair->info->caps = FI_MSG;
	KUNIT_ASSERT_EQ(test, fi_endpoint(pair->domain, pair->info, &ep, NULL), 0);
	KUNIT_EXPECT_EQ(test, size_option(test, ep, FI_OPT_MAX_RMA_SIZE), 0);
	KUNIT_EXPECT_EQ(test, size_option(test, ep, FI_OPT_INJECT_RMA_SIZE), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
}

/* --- a model --- */

#define OPS	24
#define SLICE	5000

/* One of the operations of a round, each of which has a slice of both memories. */
struct op {
	size_t	len;
	bool	read;
	bool	data;
};

static void post_some(struct far *far, struct op *op, unsigned int i)
{
	struct rnd_state *rnd = &far->pair->net.rnd;
	const struct fi_rma_iov rma = far_piece(far, i * SLICE + 1, op->len);
	u8 *here = far->data + i * SLICE;
	struct rdm_end *end = &far->pair->end[0];
	u64 flags = FI_COMPLETION;
	struct kvec iov = { here, op->len };
	struct fi_msg_rma msg = {
		.addr = end->peer, .rma_iov = &rma, .rma_iov_count = 1,
		.context = (void *)(long)(i + 1), .data = i,
	};

	if (op->data)
		flags |= FI_REMOTE_CQ_DATA;
	if (prandom_u32_state(rnd) % 2 && !op->read)
		flags |= FI_DELIVERY_COMPLETE;
	iov_iter_kvec(&msg.msg_iter, op->read ? ITER_DEST : ITER_SOURCE, &iov, 1, op->len);
	KUNIT_EXPECT_EQ(far->test, op->read ? fi_readmsg(end->ep, &msg, flags) :
					      fi_writemsg(end->ep, &msg, flags), 0);
}

static void chaos_round(struct far *far, u32 round)
{
	struct rnd_state *rnd = &far->pair->net.rnd;
	struct kunit *test = far->test;
	struct rdm_comp comp;
	static struct op op[OPS];
	u32 i, seen = 0, told = 0;

	for (i = 0; i < OPS; i++) {
		op[i].len = 1 + prandom_u32_state(rnd) % (SLICE - 1);
		if (i % 3 == 0)
			op[i].len = 1 + prandom_u32_state(rnd) % 20;
		op[i].read = prandom_u32_state(rnd) % 2;
		op[i].data = !op[i].read && prandom_u32_state(rnd) % 2;
		efa_fill((op[i].read ? far->mem + 1 : far->data) + i * SLICE, op[i].len, round + i);
		memset((op[i].read ? far->data : far->mem + 1) + i * SLICE, 0xa5, SLICE);
	}
	for (i = 0; i < OPS; i++)
		post_some(far, &op[i], i);
	rdm_run(far->pair);
	while ((comp = rdm_read(&far->pair->end[0])).ret == 1)
		seen |= BIT((long)comp.entry.op_context - 1);
	KUNIT_EXPECT_EQ(test, seen, (u32)BIT(OPS) - 1);
	while ((comp = rdm_read(&far->pair->end[1])).ret == 1) {
		KUNIT_EXPECT_TRUE(test, op[comp.entry.data].data);
		KUNIT_EXPECT_EQ(test, comp.entry.len, op[comp.entry.data].len);
		told |= BIT(comp.entry.data);
	}
	for (i = 0; i < OPS; i++) {
		u8 *to = (op[i].read ? far->data : far->mem + 1) + i * SLICE;

		KUNIT_EXPECT_EQ(test, !!(told & BIT(i)), op[i].data);
		KUNIT_EXPECT_TRUE(test, efa_filled(to, op[i].len, round + i));
		KUNIT_EXPECT_EQ(test, to[op[i].len], 0xa5);
	}
}

static void rma_chaos(struct kunit *test)
{
	struct far *far = far_new(test, &(struct rdm_opts) { .mtu = 512 });
	u32 round;

	far->pair->net.reorder = 400;
	far->pair->net.rnr = 30;
	far->pair->net.late = 200;
	for (round = 0; round < (rdm_long ? 100 : 12); round++) {
		rdm_of(&far->pair->end[0])->lim.credits = 1 + round % 5;
		rdm_of(&far->pair->end[1])->lim.credits = 1 + round % 3;
		chaos_round(far, round);
	}
	KUNIT_EXPECT_EQ(test, rdm_of(&far->pair->end[0])->stats.deaths, 0ULL);
	KUNIT_EXPECT_EQ(test, rdm_of(&far->pair->end[1])->stats.deaths, 0ULL);
	KUNIT_EXPECT_GT(test, far->rdm->stats.waited, 0ULL);
	rdm_expect_whole(test, far->pair);
}

/* --- by hand: the second endpoint is the initiator --- */

static ssize_t hand_write(struct far *far, size_t len, u64 flags, long ctx)
{
	static const struct fi_rma_iov rma[] = { { 0x1000, 100, 5 }, { 0x2000, 0, 6 } };
	struct fi_rma_iov one = { 0x1000, len, 5 };
	struct rdm_end *end = &far->pair->end[1];
	struct kvec iov = { far->data, len };
	struct fi_msg_rma msg = {
		.addr = end->peer, .rma_iov = len == 100 ? rma : &one,
		.rma_iov_count = len == 100 ? 2 : 1, .context = (void *)ctx,
	};

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, len);
	return fi_writemsg(end->ep, &msg, flags | FI_COMPLETION);
}

static ssize_t hand_read(struct far *far, size_t len, long ctx)
{
	struct rdm_end *end = &far->pair->end[1];

	memset(far->data, 0xa5, len);
	return fi_read(end->ep, far->data, len, NULL, end->peer, 0x1000, 5, (void *)ctx);
}

static void answer(struct far *far, u8 type, u32 to, u64 off, size_t len)
{
	const bool cts = type == KEFA_CTS_PKT;

	far_send(far, &(struct far_pkt) {
		.type = type, .to = to, .off = off, .data = far->mem + off,
		.len = cts ? 0 : len, .window = len,
	});
}

static void rma_requests(struct kunit *test)
{
	struct far *far = far_new(test, NULL);

	KUNIT_EXPECT_EQ(test, hand_write(far, 100, 0, 1), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_EAGER_RTW_PKT, 0));
	KUNIT_EXPECT_EQ(test, far->hdr.rma_iov_count, 2U);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(far->hdr.rma_iov[0].addr), 0x1000ULL);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(far->hdr.rma_iov[1].key), 6ULL);
	rdm_expect(test, &far->pair->end[1], 1, 100);
	KUNIT_EXPECT_EQ(test, hand_read(far, 200, 2), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_SHORT_RTR_PKT, 0));
	KUNIT_EXPECT_EQ(test, le64_to_cpu(far->hdr.rma_iov[0].len), 200ULL);
	KUNIT_EXPECT_EQ(test, far->hdr.recv_length, 200ULL);
	rdm_expect_nothing(test, &far->pair->end[1]);
	answer(far, KEFA_READRSP_PKT, far->hdr.recv_id, 0, 200);
	rdm_expect(test, &far->pair->end[1], 2, 200);
	rdm_expect_whole(test, far->pair);
}

/* The answer overtakes the completion of the request, which the read still waits for. */
static void rma_answer_first(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u8 hdr[KEFA_HDR_ROOM] __aligned(8);
	struct efake_wr *wr;
	struct kefa_pkt pkt;
	size_t len;

	efa_fill(far->mem, 200, 4);
	KUNIT_EXPECT_EQ(test, hand_read(far, 200, 2), 0);
	wr = efake_sent(far->pair->end[1].qp, 0);
	len = efake_wr_read(wr, hdr, sizeof(hdr));
	KUNIT_ASSERT_EQ(test, kefa_parse(hdr, len, &pkt), KEFA_OK);
	answer(far, KEFA_READRSP_PKT, pkt.recv_id, 0, 200);
	rdm_expect_nothing(test, &far->pair->end[1]);
	answer(far, KEFA_READRSP_PKT, pkt.recv_id, 0, 200);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE), 1ULL);
	efake_wr_done(wr, 0);
	efake_settle_all();
	rdm_expect(test, &far->pair->end[1], 2, 200);
	KUNIT_EXPECT_TRUE(test, efa_filled(far->data, 200, 4));
	rdm_expect_whole(test, far->pair);
}

/* Data overtakes the READRSP, whose id the next CTS needs. */
static void rma_overtaken(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	const u64 total = 40000;
	u64 window;
	u32 id;

	far->rdm->lim.credits = 1;
	efa_fill(far->mem, total, 4);
	KUNIT_EXPECT_EQ(test, hand_read(far, total, 2), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_LONGCTS_RTR_PKT, 0));
	id = far->hdr.recv_id;
	window = far->hdr.recv_length;
	/* It fills a READRSP at least, because libfabric's does whatever the window is. */
	KUNIT_EXPECT_EQ(test, window, EFAKE_MTU - 24ULL);
	answer(far, KEFA_CTSDATA_PKT, id, 0, 4000);
	answer(far, KEFA_CTSDATA_PKT, id, 4000, window - 4000);
	KUNIT_EXPECT_FALSE(test, far_take(far, KEFA_CTS_PKT, 0));
	answer(far, KEFA_READRSP_PKT, id, 0, 0);
	while (window < total) {
		KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_CTS_PKT, 0));
		KUNIT_EXPECT_EQ(test, far->hdr.send_id, (u32)FAR_ID);
		KUNIT_EXPECT_EQ(test, far->hdr.recv_id, id);
		KUNIT_EXPECT_TRUE(test, far->hdr.flags & KEFA_CTS_READ_REQ);
		KUNIT_ASSERT_LE(test, far->hdr.recv_length, total - window);
		answer(far, KEFA_CTSDATA_PKT, id, window, far->hdr.recv_length);
		window += far->hdr.recv_length;
	}
	rdm_expect(test, &far->pair->end[1], 2, total);
	KUNIT_EXPECT_TRUE(test, efa_filled(far->data, total, 4));
	rdm_expect_whole(test, far->pair);
}

/* Wrong answers change nothing, and the right ones still end the operations. */
static void rma_hostile(struct kunit *test)
{
	static const u8 others[] = {
		KEFA_CTS_PKT, KEFA_RECEIPT_PKT, KEFA_EOR_PKT, KEFA_READ_NACK_PKT,
	};
	struct far *far = far_new(test, NULL);
	u64 drops = 0;
	unsigned int i;
	u32 id;

	/* A read. */
	KUNIT_EXPECT_EQ(test, hand_read(far, 300, 1), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_SHORT_RTR_PKT, 0));
	id = far->hdr.recv_id;
	for (i = 0; i < ARRAY_SIZE(others); i++, drops++)
		answer(far, others[i], id, 0, 0 + (others[i] == KEFA_CTS_PKT));
	answer(far, KEFA_READRSP_PKT, id ^ 1, 0, 300);
	answer(far, KEFA_READRSP_PKT, id ^ 0x10000, 0, 300);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE), drops += 2);
	answer(far, KEFA_READRSP_PKT, id, 0, 301);
	answer(far, KEFA_CTSDATA_PKT, id, 299, 2);
	answer(far, KEFA_CTSDATA_PKT, id, 0, 301);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_LENGTH), 3ULL);
	KUNIT_EXPECT_NULL(test, memchr_inv(far->data, 0xa5, 300));
	rdm_expect_nothing(test, &far->pair->end[1]);
	answer(far, KEFA_READRSP_PKT, id, 0, 300);
	rdm_expect(test, &far->pair->end[1], 1, 300);
	/* A write that waits for a RECEIPT; and one that waits for a CTS. */
	KUNIT_EXPECT_EQ(test, hand_write(far, 200, FI_DELIVERY_COMPLETE, 2), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_DC_EAGER_RTW_PKT, 0));
	id = far->hdr.send_id;
	answer(far, KEFA_READRSP_PKT, id, 0, 10);
	answer(far, KEFA_CTSDATA_PKT, id, 0, 10);
	answer(far, KEFA_CTS_PKT, id, 0, 1);
	answer(far, KEFA_EOR_PKT, id, 0, 0);
	answer(far, KEFA_READ_NACK_PKT, id, 0, 0);
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE), drops += 5);
	rdm_expect_nothing(test, &far->pair->end[1]);
	answer(far, KEFA_RECEIPT_PKT, id, 0, 0);
	rdm_expect(test, &far->pair->end[1], 2, 200);
	KUNIT_EXPECT_EQ(test, hand_write(far, 20000, 0, 3), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_LONGCTS_RTW_PKT, 0));
	id = far->hdr.send_id;
	answer(far, KEFA_READRSP_PKT, id, 0, 10);
	answer(far, KEFA_CTSDATA_PKT, id, 0, 10);
	answer(far, KEFA_RECEIPT_PKT, id, 0, 0);
	far_send(far, &(struct far_pkt) {
		.type = KEFA_CTS_PKT, .to = id, .window = 5, .flags = KEFA_CTS_READ_REQ,
	});
	KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE), drops += 4);
	far_send(far, &(struct far_pkt) { .type = KEFA_CTS_PKT, .to = id, .window = U64_MAX });
	far_take_all(far);
	rdm_expect(test, &far->pair->end[1], 3, 20000);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	rdm_expect_whole(test, far->pair);
}

/* libfabric's RECEIPTs of writes have any msg_id. */
static void rma_stale_receipt(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	u8 packet[32] __aligned(8);
	struct kefa_pkt pkt = {
		.row = kefa_row_of(KEFA_RECEIPT_PKT), .flags = KEFA_PKT_CONNID_HDR,
		.has_connid = true, .connid = far->pair->end[0].name.qkey, .msg_id = 4711,
	};

	KUNIT_EXPECT_EQ(test, hand_write(far, 200, FI_DELIVERY_COMPLETE, 2), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_DC_EAGER_RTW_PKT, 0));
	pkt.send_id = far->hdr.send_id;
	rdm_inject(far->pair, packet, kefa_build(&pkt, packet, sizeof(packet)));
	rdm_expect(test, &far->pair->end[1], 2, 200);
	rdm_expect_whole(test, far->pair);
}

/* --- ends --- */

/* States in which an operation waits for its peer. */
enum wait { WAIT_READ, WAIT_MORE, WAIT_RECEIPT, WAIT_CTS, WAITS };

/* Return: the id of the second endpoint's only operation. */
static u32 op_id(struct far *far)
{
	struct kefa_rops *rops = &far->rdm->rops;
	u32 i, id = 0;

	spin_lock_bh(rops->lock);
	for (i = 0; i < rops->size; i++)
		if (rops->ops[i].state != KEFA_ROP_FREE)
			id = kefa_rop_id(rops, &rops->ops[i]);
	spin_unlock_bh(rops->lock);
	return id;
}

static void make_wait(struct far *far, enum wait wait)
{
	switch (wait) {
	case WAIT_READ:
		KUNIT_EXPECT_EQ(far->test, hand_read(far, 100, 9), 0);
		break;
	case WAIT_MORE:
		KUNIT_EXPECT_EQ(far->test, hand_read(far, 50000, 9), 0);
		break;
	case WAIT_RECEIPT:
		KUNIT_EXPECT_EQ(far->test, hand_write(far, 100, FI_DELIVERY_COMPLETE, 9), 0);
		break;
	default:
		KUNIT_EXPECT_EQ(far->test, hand_write(far, 20000, 0, 9), 0);
	}
	far_take_all(far);
	if (wait == WAIT_MORE)
		answer(far, KEFA_READRSP_PKT, op_id(far), 0, 8000);
	far_take_all(far);
	rdm_expect_nothing(far->test, &far->pair->end[1]);
}

/*
 * A peer that doesn't answer ends the operation after a time, if there is a limit, and its late
 * answer does nothing.
 */
static void rma_timeout(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	unsigned int wait, i;
	u32 id;

	for (wait = WAIT_READ; wait < WAITS; wait++) {
		u64 drops = far_dropped(far, KEFA_DROP_STATE);

		make_wait(far, wait);
		id = op_id(far);
		far->rdm->far_checks = 0;
		for (i = 0; i < 5; i++)
			rdm_check_peers(far->rdm);
		far_take_all(far);
		far->rdm->far_checks = 3;
		for (i = 0; i < 3; i++) {
			rdm_expect_nothing(test, &far->pair->end[1]);
			rdm_check_peers(far->rdm);
			far_take_all(far);
		}
		rdm_expect_error(test, &far->pair->end[1], 9, ETIMEDOUT);
		KUNIT_EXPECT_EQ(test, far->rdm->stats.timed_out, wait + 1ULL);
		answer(far, KEFA_READRSP_PKT, id, 0, 10);
		answer(far, KEFA_RECEIPT_PKT, id, 0, 0);
		answer(far, KEFA_CTS_PKT, id, 0, 1);
		KUNIT_EXPECT_EQ(test, far_dropped(far, KEFA_DROP_STATE), drops + 3);
	}
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	rdm_expect_whole(test, far->pair);
}

static u64 nsent(struct far *far)
{
	return far->pair->end[1].qp->nsent;
}

/* FI_FENCE: an operation, and those after it, wait for all earlier ones to the peer. */
static void rma_fence(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct rdm_end *end = &far->pair->end[1];
	u32 id;

	/* A message of the fast path. */
	KUNIT_EXPECT_EQ(test, fi_send(end->ep, far->data, 8, NULL, end->peer, (void *)1), 0);
	KUNIT_EXPECT_EQ(test, hand_write(far, 100, FI_FENCE | FI_DELIVERY_COMPLETE, 2), 0);
	KUNIT_EXPECT_EQ(test, fi_send(end->ep, far->data, 8, NULL, end->peer, (void *)3), 0);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, nsent(far), 1ULL);
	rdm_expect_nothing(test, end);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_EAGER_MSGRTM_PKT, 0));
	rdm_expect(test, end, 1, 8);
	/* The fence is for what comes before it. */
	KUNIT_EXPECT_EQ(test, nsent(far), 2ULL);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_DC_EAGER_RTW_PKT, 0));
	id = far->hdr.send_id;
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_EAGER_MSGRTM_PKT, 0));
	rdm_expect(test, end, 3, 8);
	/* The write waits for its RECEIPT. */
	KUNIT_EXPECT_EQ(test, hand_write(far, 100, FI_FENCE, 4), 0);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, nsent(far), 0ULL);
	answer(far, KEFA_RECEIPT_PKT, id, 0, 0);
	rdm_expect(test, end, 2, 100);
	efake_settle_all();
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_EAGER_RTW_PKT, 0));
	rdm_expect(test, end, 4, 100);
	/* Nothing to wait for. */
	KUNIT_EXPECT_EQ(test, hand_write(far, 100, FI_FENCE, 5), 0);
	KUNIT_EXPECT_EQ(test, nsent(far), 1ULL);
	/* Cancelling one that waits lets the next one go. */
	KUNIT_EXPECT_EQ(test, hand_write(far, 100, FI_FENCE, 6), 0);
	KUNIT_EXPECT_EQ(test, fi_cancel(&end->ep->fid, (void *)6), 0);
	rdm_expect_error(test, end, 6, ECANCELED);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_EAGER_RTW_PKT, 0));
	rdm_expect(test, end, 5, 100);
	rdm_expect_whole(test, far->pair);
}

static void rma_fence_without(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kvec iov = { pair->out, 1 };
	struct fi_msg msg = { .addr = pair->end[0].peer };
	struct fid_ep *ep;

	pair->info->caps &= ~FI_FENCE;
	KUNIT_ASSERT_EQ(test, fi_endpoint(pair->domain, pair->info, &ep, NULL), 0);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 1);
	KUNIT_EXPECT_EQ(test, fi_sendmsg(ep, &msg, FI_FENCE), -FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
}

enum ending { DIES, REMOVED, CLOSES, GOES };

static void rma_ends(struct kunit *test)
{
	static const int errs[] = { ECONNRESET, ECANCELED, ECANCELED, ENODEV };
	unsigned int wait, how;
	struct rdm_comp comp;

	for (wait = WAIT_READ; wait < WAITS; wait++) {
		for (how = DIES; how <= GOES; how++) {
			struct far *far = far_new(test, NULL);
			struct rdm_end *end = &far->pair->end[1];

			make_wait(far, wait);
			if (how == DIES) {
				spin_lock_bh(&far->rdm->ep.lock);
				kefa_rdm_kill(far->rdm, kefa_peers_at(&far->rdm->peers,
								      end->peer), ECONNRESET, 0);
				spin_unlock_bh(&far->rdm->ep.lock);
			} else if (how == REMOVED) {
				KUNIT_EXPECT_EQ(test, fi_av_remove(end->av, &end->peer, 1, 0), 0);
			} else if (how == CLOSES) {
				EFA_CLOSE(test, end->ep);
			} else {
				efake_remove(far->pair->fake);
			}
			efake_settle_all();
			comp = rdm_read(end);
			KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
			KUNIT_EXPECT_EQ(test, (long)comp.error.op_context, 9L);
			KUNIT_EXPECT_EQ(test, comp.error.err, errs[how]);
			KUNIT_EXPECT_NE(test, rdm_read(end).ret, 1);
			if (how < CLOSES)
				rdm_expect_whole(test, far->pair);
			far_end(far);
		}
	}
}

/* A peer that is busy with earlier operations of the endpoint is no reason for others to fail. */
static void rma_busy(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	unsigned int i;
	u32 id;

	far->rdm->far_checks = 3;
	KUNIT_EXPECT_EQ(test, hand_read(far, 8000 + 12, 9), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_SHORT_RTR_PKT, 0));
	id = far->hdr.recv_id;
	rdm_check_peers(far->rdm);
	KUNIT_EXPECT_EQ(test, hand_read(far, 100, 8), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_SHORT_RTR_PKT, 0));
	/* The first one gets its data bit by bit. */
	for (i = 0; i < 12; i++) {
		answer(far, KEFA_CTSDATA_PKT, id, i, 1);
		rdm_check_peers(far->rdm);
		far_take_all(far);
	}
	rdm_expect_nothing(test, &far->pair->end[1]);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.timed_out, 0ULL);
	answer(far, KEFA_CTSDATA_PKT, id, 12, 8000);
	rdm_expect(test, &far->pair->end[1], 9, 8012);
	for (i = 0; i < 4; i++) {
		rdm_check_peers(far->rdm);
		far_take_all(far);
	}
	rdm_expect_error(test, &far->pair->end[1], 8, ETIMEDOUT);
	rdm_expect_whole(test, far->pair);
}

/* An operation that later ones overtake was dropped by the peer, however busy that is. */
static void rma_dropped(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	unsigned int i;

	far->rdm->far_checks = 3;
	KUNIT_EXPECT_EQ(test, hand_read(far, 100, 8), 0);
	KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_SHORT_RTR_PKT, 0));
	for (i = 0; i < 5 && !far->rdm->stats.timed_out; i++) {
		KUNIT_EXPECT_EQ(test, hand_read(far, 200, 9), 0);
		KUNIT_ASSERT_TRUE(test, far_take(far, KEFA_SHORT_RTR_PKT, 0));
		answer(far, KEFA_READRSP_PKT, far->hdr.recv_id, 0, 200);
		rdm_expect(test, &far->pair->end[1], 9, 200);
		rdm_check_peers(far->rdm);
		far_take_all(far);
	}
	rdm_expect_error(test, &far->pair->end[1], 8, ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
	rdm_expect_whole(test, far->pair);
}

/* A write without a number is no message that a peer would wait for. */
static void rma_removed(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct rdm_end *end = &far->pair->end[1];

	far->rdm->backoffs.first_us = 10 * USEC_PER_SEC;
	far->rdm->backoffs.max_us = 10 * USEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, hand_write(far, 100, 0, 1), 0);
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_EAGER_RTW_PKT, KEFA_STATUS_RNR));
	KUNIT_EXPECT_TRUE(test, far_take(far, KEFA_EAGER_RTW_PKT, KEFA_STATUS_RNR));
	KUNIT_EXPECT_FALSE(test, list_empty(&far->rdm->parked));
	KUNIT_EXPECT_EQ(test, fi_av_remove(end->av, &end->peer, 1, 0), 0);
	efake_settle_all();
	rdm_expect_error(test, end, 1, ECANCELED);
	KUNIT_ASSERT_EQ(test, fi_av_insert(end->av, &far->pair->end[0].name, 1, &end->peer, 0,
					   NULL), 1);
	KUNIT_EXPECT_EQ(test, fi_send(end->ep, far->data, 8, NULL, end->peer, (void *)2), 0);
	rdm_run(far->pair);
	rdm_expect(test, end, 2, 8);
	KUNIT_EXPECT_EQ(test, far->rdm->stats.deaths, 0ULL);
}

/* A write whose data the device still reads doesn't complete before that, whatever happens. */
static void rma_quiet(struct kunit *test)
{
	struct far *far = far_new(test, NULL);
	struct rdm_end *end = &far->pair->end[1];

	KUNIT_EXPECT_EQ(test, hand_write(far, 7000, 0, 9), 0);
	spin_lock_bh(&far->rdm->ep.lock);
	kefa_rdm_kill(far->rdm, kefa_peers_at(&far->rdm->peers, end->peer), ECONNRESET, 0);
	spin_unlock_bh(&far->rdm->ep.lock);
	efake_settle_all();
	rdm_expect_nothing(test, end);
	far_take_all(far);
	rdm_expect_error(test, end, 9, ECONNRESET);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(end->far), 1ULL);
	rdm_expect_whole(test, far->pair);
}

static struct kunit_case rma_cases[] = {
	KUNIT_CASE(rma_writes),
	KUNIT_CASE(rma_reads),
	KUNIT_CASE(rma_writedata),
	KUNIT_CASE(rma_pieces),
	KUNIT_CASE(rma_inject),
	KUNIT_CASE_PARAM(rma_refused, wrong_gen_params),
	KUNIT_CASE(rma_long_key),
	KUNIT_CASE(rma_without),
	KUNIT_CASE(rma_options),
	KUNIT_CASE(rma_chaos),
	KUNIT_CASE(rma_requests),
	KUNIT_CASE(rma_answer_first),
	KUNIT_CASE(rma_overtaken),
	KUNIT_CASE(rma_hostile),
	KUNIT_CASE(rma_stale_receipt),
	KUNIT_CASE(rma_timeout),
	KUNIT_CASE(rma_fence),
	KUNIT_CASE(rma_fence_without),
	KUNIT_CASE(rma_busy),
	KUNIT_CASE(rma_dropped),
	KUNIT_CASE(rma_removed),
	KUNIT_CASE(rma_ends),
	KUNIT_CASE(rma_quiet),
	{}
};

static struct kunit_suite rma_suite = {
	.name		= "kefa_rdm_rma",
	.test_cases	= rma_cases,
};

kunit_test_suite(rma_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, reads and writes by packets");
MODULE_LICENSE("Dual BSD/GPL");
