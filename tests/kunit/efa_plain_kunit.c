// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Plain calls and messages in one piece take the fast path. Their results are those of the
 * slow path: in each format, and with the current flags.
 */
#include <linux/bvec.h>
#include "efa_scene.h"

/* Descriptions of a message's memory. */
enum shape {
	TWO_PIECES,	/* takes the slow path, though they are adjacent */
	ONE_KVEC,
	ONE_BVEC,
	SHAPES,
};

struct memory {
	struct kvec	kvec[2];
	struct bio_vec	bvec;
};

/* Start at byte 16 of the buffer, by an offset of the iterator if it has one. */
static void set_iter(struct efa_scene *scene, struct iov_iter *iter, struct memory *mem,
		     enum shape shape, unsigned int dir, size_t len)
{
	mem->kvec[0] = (struct kvec) { scene->buf, shape == TWO_PIECES ? 17 : 16 + len };
	mem->kvec[1] = (struct kvec) { scene->buf + 17, len - 1 };
	bvec_set_page(&mem->bvec, virt_to_page(scene->buf), 16 + len,
		      offset_in_page(scene->buf));
	if (shape == ONE_BVEC)
		iov_iter_bvec(iter, dir, &mem->bvec, 1, 16 + len);
	else
		iov_iter_kvec(iter, dir, mem->kvec, shape == TWO_PIECES ? 2 : 1, 16 + len);
	iov_iter_advance(iter, 16);
}

static ssize_t send_flags(struct efa_scene *scene, enum shape shape, size_t len, long ctx,
			  u64 flags)
{
	struct fi_msg msg = { .addr = scene->peer, .context = (void *)ctx };
	struct memory mem;

	set_iter(scene, &msg.msg_iter, &mem, shape, ITER_SOURCE, len);
	return fi_sendmsg(scene->ep, &msg, flags);
}

static ssize_t send_msg(struct efa_scene *scene, enum shape shape, size_t len, long ctx)
{
	return send_flags(scene, shape, len, ctx, FI_COMPLETION);
}

static ssize_t recv_flags(struct efa_scene *scene, enum shape shape, size_t len, long ctx,
			  u64 flags)
{
	struct fi_msg msg = { .addr = FI_ADDR_UNSPEC, .context = (void *)ctx };
	struct memory mem;

	set_iter(scene, &msg.msg_iter, &mem, shape, ITER_DEST, len);
	return fi_recvmsg(scene->ep, &msg, flags);
}

static ssize_t recv_msg(struct efa_scene *scene, enum shape shape, size_t len, long ctx)
{
	return recv_flags(scene, shape, len, ctx, FI_COMPLETION);
}

static ssize_t rma_key(struct efa_scene *scene, enum shape shape, bool write, size_t len,
		       long ctx, size_t there, u64 key)
{
	struct fi_rma_iov rma = { EFA_RADDR, there, key };
	struct fi_msg_rma msg = {
		.addr = scene->peer, .rma_iov = &rma, .rma_iov_count = 1,
		.context = (void *)ctx,
	};
	struct memory mem;

	set_iter(scene, &msg.msg_iter, &mem, shape, write ? ITER_SOURCE : ITER_DEST, len);
	return write ? fi_writemsg(scene->ep, &msg, FI_COMPLETION) :
		       fi_readmsg(scene->ep, &msg, FI_COMPLETION);
}

static ssize_t rma_msg(struct efa_scene *scene, enum shape shape, bool write, size_t len,
		       long ctx)
{
	return rma_key(scene, shape, write, len, ctx, len, EFA_KEY);
}

/* --- contents of completions, in each format --- */

static const struct format {
	const char		*desc;
	enum fi_cq_format	format;
	size_t			size;
} formats[] = {
	{ "context", FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry) },
	{ "msg", FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry) },
	{ "data", FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry) },
	{ "tagged", FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry) },
};

KUNIT_ARRAY_PARAM_DESC(format, formats, desc);

#define CTX(n)	((void *)(n))

/* Each format is a prefix of the longest. */
static const struct fi_cq_tagged_entry said[] = {
	{ CTX(1), FI_MSG | FI_SEND, 100 },
	{ CTX(2), FI_MSG | FI_SEND, 200 },
	{ CTX(3), FI_RMA | FI_WRITE, 300 },
	{ CTX(4), FI_RMA | FI_WRITE, 400 },
	{ CTX(5), FI_RMA | FI_READ, 500 },
	{ CTX(6), FI_RMA | FI_READ, 600 },
	{ CTX(7), FI_MSG | FI_RECV, 33 },
	{ CTX(8), FI_MSG | FI_RECV, 44 },
	{ CTX(9), FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA, 0, NULL, 0x89abcdef },
	{ CTX(10), FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, 0, NULL, 7 },
	{ CTX(11), FI_MSG | FI_RECV, 1 },
};

#define RECVS	5

static void post_all(struct kunit *test, struct efa_scene *scene, enum shape shape)
{
	long i;

	KUNIT_EXPECT_EQ(test, efa_send(scene, 100, 1), 0);
	KUNIT_EXPECT_EQ(test, send_msg(scene, shape, 200, 2), 0);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 300, 3), 0);
	KUNIT_EXPECT_EQ(test, rma_msg(scene, shape, true, 400, 4), 0);
	KUNIT_EXPECT_EQ(test, efa_get(scene, 500, 5), 0);
	KUNIT_EXPECT_EQ(test, rma_msg(scene, shape, false, 600, 6), 0);
	for (i = 7; i < 7 + RECVS; i++)
		KUNIT_EXPECT_EQ(test, i % 2 ? efa_recv(scene, 64, i) :
					      recv_msg(scene, shape, 64, i), 0);
}

static void complete_all_posted(struct efa_scene *scene)
{
	static const struct kefa_wc wcs[RECVS] = {
		{ .len = 33 }, { .len = 44 },
		{ .has_imm = true, .imm = 0x89abcdef },
		{ .len = 4096, .has_imm = true, .write = true, .imm = 7 },
		{ .len = 1 },
	};
	int i;

	while (scene->qp->nsent)
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	for (i = 0; i < RECVS; i++)
		efake_recv_done(efake_recv(scene->qp, 0), &wcs[i]);
	efake_settle();
}

static void plain_says(struct kunit *test)
{
	const struct format *format = test->param_value;
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.format = format->format,
	});
	u8 *got = kunit_kzalloc(test, sizeof(said) + 1, GFP_KERNEL);
	enum shape shape;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, got);
	for (shape = 0; shape < SHAPES; shape++) {
		post_all(test, scene, shape);
		complete_all_posted(scene);
		memset(got, 0x5a, sizeof(said) + 1);
		KUNIT_ASSERT_EQ(test, fi_cq_read(scene->cq, got, ARRAY_SIZE(said)),
				ARRAY_SIZE(said));
		for (i = 0; i < ARRAY_SIZE(said); i++)
			KUNIT_EXPECT_MEMEQ(test, got + i * format->size, &said[i],
					   format->size);
		KUNIT_EXPECT_EQ(test, got[i * format->size], 0x5a);
	}
}

/* The memory of a message is that of its iterator, inline or mapped. */
static void plain_memory(struct kunit *test)
{
	static const size_t lens[] = { 8, KEFA_MAX_INLINE, KEFA_MAX_INLINE + 1, 3000 };
	struct efa_scene *scene = efa_scene_new(test, NULL);
	unsigned int maps = scene->fake->nmaps;
	struct efake_wr *wr;
	enum shape shape;
	u8 got[64];
	int i;

	for (shape = 0; shape < SHAPES; shape++) {
		for (i = 0; i < ARRAY_SIZE(lens); i++) {
			efa_fill(scene->buf, 4096, shape + i);
			KUNIT_ASSERT_EQ(test, send_msg(scene, shape, lens[i], 1), 0);
			wr = efake_sent(scene->qp, 0);
			KUNIT_EXPECT_EQ(test, wr->len, lens[i]);
			KUNIT_EXPECT_EQ(test, scene->fake->nmaps,
					maps + (lens[i] > KEFA_MAX_INLINE));
			efake_wr_read(wr, got, sizeof(got));
			KUNIT_EXPECT_MEMEQ(test, got, scene->buf + 16,
					   min(lens[i], sizeof(got)));
			efake_wr_done(wr, 0);
			efa_expect_done(test, scene, 1);

			KUNIT_ASSERT_EQ(test, recv_msg(scene, shape, lens[i], 2), 0);
			wr = efake_recv(scene->qp, 0);
			KUNIT_EXPECT_EQ(test, wr->len, lens[i]);
			efake_wr_write(wr, "here", 4);
			efake_wr_done(wr, 0);
			efa_expect_done(test, scene, 2);
			KUNIT_EXPECT_MEMEQ(test, scene->buf + 16, "here", 4);
		}
	}
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps);
}

/* Send two pieces of the buffer, the second of which begins after a gap. */
static ssize_t send_two(struct efa_scene *scene, size_t len, size_t gap, size_t len2)
{
	struct fi_msg msg = { .addr = scene->peer, .context = (void *)1 };
	struct bio_vec bvec[2];

	bvec_set_page(&bvec[0], virt_to_page(scene->buf), len, offset_in_page(scene->buf));
	bvec_set_page(&bvec[1], virt_to_page(scene->buf + len + gap), len2,
		      offset_in_page(scene->buf + len + gap));
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, bvec, 2, len + len2);
	return fi_sendmsg(scene->ep, &msg, FI_COMPLETION);
}

/*
 * A header and data take the fast path, which doesn't look whether they are adjacent. A piece that
 * can't be mapped there leaves nothing mapped.
 */
static void plain_two(struct kunit *test)
{
	static const struct {
		size_t		len, gap, len2;
		unsigned int	fail;	/* mapping that fails */
		unsigned int	maps;
	} cases[] = {
		{ 48, 0, 1000, 0, 2 },
		{ 48, 96, 1000, 0, 2 },
		{ 48, 96, 1, 0, 2 },
		{ 1, 96, KEFA_MAX_INLINE, 0, 2 },
		{ 0, 96, 1000, 0, 1 },
		{ 1, 96, KEFA_MAX_INLINE - 1, 0, 0 },
		{ 48, 96, 1000, 1, 2 },
		{ 48, 96, 1000, 2, 2 },
	};
	struct efa_scene *scene = efa_scene_new(test, NULL);
	unsigned int maps = scene->fake->nmaps;
	struct efake_wr *wr;
	u8 *got = kunit_kzalloc(test, 1100, GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, got);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		efa_fill(scene->buf, 4096, i);
		if (cases[i].fail)
			efake_fail(scene->fake, EFAKE_DMA_MAP, cases[i].fail, -EIO);
		KUNIT_ASSERT_EQ(test, send_two(scene, cases[i].len, cases[i].gap, cases[i].len2),
				0);
		wr = efake_sent(scene->qp, 0);
		KUNIT_EXPECT_EQ(test, wr->len, cases[i].len + cases[i].len2);
		KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps + cases[i].maps);
		efake_wr_read(wr, got, 1100);
		KUNIT_EXPECT_MEMEQ(test, got, scene->buf, cases[i].len);
		KUNIT_EXPECT_MEMEQ(test, got + cases[i].len,
				   scene->buf + cases[i].len + cases[i].gap, cases[i].len2);
		efake_wr_done(wr, 0);
		efa_expect_done(test, scene, 1);
		KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps);
	}
	KUNIT_EXPECT_EQ(test, send_two(scene, 48, 96, EFAKE_MTU - 47), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps);
}

static ssize_t write_data(struct efa_scene *scene, enum shape shape, u64 data, u64 flags)
{
	struct fi_rma_iov rma = { EFA_RADDR, 1000, EFA_KEY };
	struct fi_msg_rma msg = {
		.addr = scene->peer, .rma_iov = &rma, .rma_iov_count = 1, .context = (void *)1,
		.data = data,
	};
	struct memory mem;

	set_iter(scene, &msg.msg_iter, &mem, shape, ITER_SOURCE, 1000);
	return fi_writemsg(scene->ep, &msg, flags | FI_COMPLETION);
}

/* Remote CQ data goes with a write, and not with the next one, on either path. */
static void plain_write_data(struct kunit *test)
{
	const u64 flags = FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE;
	struct efa_scene *scene = efa_scene_new(test, NULL);
	unsigned int maps = scene->fake->nmaps, i;
	struct efake_wr *wr;
	u8 *got = kunit_kzalloc(test, 1000, GFP_KERNEL);
	enum shape shape;

	KUNIT_ASSERT_NOT_NULL(test, got);
	for (shape = 0; shape < SHAPES; shape++) {
		for (i = 0; i < 2; i++) {
			efa_fill(scene->buf, 4096, shape + i);
			/* Memory that the fast path can't map. */
			if (i && shape == TWO_PIECES)
				break;
			if (i)
				efake_fail(scene->fake, EFAKE_DMA_MAP, 1, -EIO);
			KUNIT_ASSERT_EQ(test, write_data(scene, shape, 0x89abcdef, flags), 0);
			wr = efake_sent(scene->qp, 0);
			KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_RDMA_WRITE_WITH_IMM);
			KUNIT_EXPECT_EQ(test, wr->imm, 0x89abcdefU);
			KUNIT_EXPECT_EQ(test, wr->raddr, EFA_RADDR);
			KUNIT_EXPECT_EQ(test, wr->rkey, EFA_KEY);
			efake_wr_read(wr, got, 1000);
			KUNIT_EXPECT_MEMEQ(test, got, scene->buf + 16, 1000);
			efake_wr_done(wr, 0);
			efa_expect_done(test, scene, 1);
		}
		KUNIT_ASSERT_EQ(test, write_data(scene, shape, 0x89abcdef, 0), 0);
		wr = efake_sent(scene->qp, 0);
		KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_RDMA_WRITE);
		efake_wr_done(wr, 0);
		efa_expect_done(test, scene, 1);
		KUNIT_EXPECT_EQ(test, write_data(scene, shape, BIT_ULL(32), flags), -EINVAL);
		KUNIT_EXPECT_EQ(test, write_data(scene, shape, 7, flags | FI_PEEK), -FI_EBADFLAGS);
		KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps);
	}
}

/* Both paths refuse the same messages, and a refused message leaves nothing behind. */
static void plain_refuses(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.tx_size = 1, .rx_size = 1,
	});
	const fi_addr_t peer = scene->peer;
	unsigned int maps = scene->fake->nmaps;
	enum shape shape;

	for (shape = 0; shape < SHAPES; shape++) {
		KUNIT_EXPECT_EQ(test, send_flags(scene, shape, 100, 1, FI_PEEK), -FI_EBADFLAGS);
		KUNIT_EXPECT_EQ(test, recv_flags(scene, shape, 100, 1, FI_INJECT),
				-FI_EBADFLAGS);
		KUNIT_EXPECT_EQ(test, send_msg(scene, shape, EFAKE_MTU + 1, 1), -EMSGSIZE);
		KUNIT_EXPECT_EQ(test, rma_key(scene, shape, true, 64, 1, 63, EFA_KEY), -EINVAL);
		KUNIT_EXPECT_EQ(test, rma_key(scene, shape, false, 64, 1, 64, BIT_ULL(32)),
				-EINVAL);
		scene->peer = 77;
		KUNIT_EXPECT_EQ(test, send_msg(scene, shape, 100, 1), -EHOSTUNREACH);
		KUNIT_EXPECT_EQ(test, rma_msg(scene, shape, true, 100, 1), -EHOSTUNREACH);
		scene->peer = peer;
		KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps);

		KUNIT_EXPECT_EQ(test, send_msg(scene, shape, 100, 1), 0);
		KUNIT_EXPECT_EQ(test, recv_msg(scene, shape, 100, 2), 0);
		KUNIT_EXPECT_EQ(test, send_msg(scene, shape, 100, 3), -EAGAIN);
		KUNIT_EXPECT_EQ(test, efa_send(scene, 100, 3), -EAGAIN);
		KUNIT_EXPECT_EQ(test, recv_msg(scene, shape, 100, 3), -EAGAIN);
		KUNIT_EXPECT_EQ(test, efa_recv(scene, 100, 3), -EAGAIN);
		KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps + 2);
		efake_wr_done(efake_sent(scene->qp, 0), 0);
		efake_wr_done(efake_recv(scene->qp, 0), 0);
		efake_settle();
		KUNIT_EXPECT_EQ(test, efa_drain(scene), 2);
		KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits), efa_cq(scene)->attr.size);
}

/* Nothing is mapped for an endpoint that isn't enabled, nor after a removal. */
static void plain_maps_nothing(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) { .idle = true });
	unsigned int mapped = efake_calls(scene->fake, EFAKE_DMA_MAP);
	enum shape shape;

	for (shape = 0; shape < SHAPES; shape++) {
		KUNIT_EXPECT_EQ(test, send_msg(scene, shape, 100, 1), -FI_EOPBADSTATE);
		KUNIT_EXPECT_EQ(test, recv_msg(scene, shape, 100, 1), -FI_EOPBADSTATE);
	}
	KUNIT_EXPECT_EQ(test, efa_send(scene, 100, 1), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, efake_calls(scene->fake, EFAKE_DMA_MAP), mapped);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	efake_remove(scene->fake);
	mapped = efake_calls(scene->fake, EFAKE_DMA_MAP);
	for (shape = 0; shape < SHAPES; shape++)
		KUNIT_EXPECT_EQ(test, send_msg(scene, shape, 100, 1), -ENODEV);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 100, 1), -ENODEV);
	KUNIT_EXPECT_EQ(test, efake_calls(scene->fake, EFAKE_DMA_MAP), mapped);
}

/* The next operation of a slot inherits nothing, whichever path posts it. */
static void plain_slot_again(struct kunit *test)
{
	const struct kefa_wc written = {
		.len = 4096, .has_imm = true, .write = true, .imm = 7,
	};
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.rx_size = 1,
	});
	struct efa_comp comp;
	int i;

	for (i = 0; i < 2 * (SHAPES + 1); i++) {
		KUNIT_EXPECT_EQ(test, i < 2 ? efa_recv(scene, 64, i) :
					      recv_msg(scene, i / 2 - 1, 64, i), 0);
		if (i % 2)
			efake_wr_done(efake_recv(scene->qp, 0), 0);
		else
			efake_recv_done(efake_recv(scene->qp, 0), &written);
		efake_settle();
		comp = efa_read(scene);
		KUNIT_EXPECT_EQ(test, comp.ret, 1);
		KUNIT_EXPECT_EQ(test, comp.entry.data, i % 2 ? 0 : 7);
		KUNIT_EXPECT_EQ(test, comp.entry.len, 0);
		KUNIT_EXPECT_EQ(test, comp.entry.flags, i % 2 ?
				FI_MSG | FI_RECV :
				FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	}
}

/* --- changes while the endpoint is in use --- */

static int set_flags(struct efa_scene *scene, u64 flags)
{
	return fi_control(&scene->ep->fid, FI_SETOPSFLAG, &flags);
}

/* Return: whether the data of a send is copied, as an inject's must be. */
static bool send_copies(struct efa_scene *scene)
{
	unsigned int before = efa_ep(scene)->stats.bounced;
	bool copied;

	WARN_ON(efa_send(scene, 200, 1));
	copied = efa_ep(scene)->stats.bounced != before;
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efake_settle();
	return copied;
}

static void plain_flags_inject(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);

	KUNIT_EXPECT_EQ(test, set_flags(scene, FI_TRANSMIT), 0);
	KUNIT_EXPECT_FALSE(test, send_copies(scene));
	KUNIT_EXPECT_EQ(test, set_flags(scene, FI_TRANSMIT | FI_INJECT), 0);
	KUNIT_EXPECT_TRUE(test, send_copies(scene));
	KUNIT_EXPECT_EQ(test, set_flags(scene, FI_TRANSMIT), 0);
	KUNIT_EXPECT_FALSE(test, send_copies(scene));
	KUNIT_EXPECT_EQ(test, efa_drain(scene), 3);
}

static void plain_flags_completion(struct kunit *test)
{
	static const u64 sides[] = { FI_TRANSMIT, FI_RECV };
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.bind = FI_SELECTIVE_COMPLETION,
	});
	int side, told;

	for (side = 0; side < 2; side++)
		KUNIT_EXPECT_EQ(test, set_flags(scene, sides[side]), 0);
	for (told = 1; told >= 0; told--) {
		for (side = 0; side < 2; side++)
			KUNIT_EXPECT_EQ(test,
					set_flags(scene, sides[side] |
						  (told ? FI_COMPLETION : 0)),
					0);
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
		KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 2), 0);
		/* A message uses its own flags. */
		KUNIT_EXPECT_EQ(test, send_flags(scene, ONE_BVEC, 64, 3, FI_COMPLETION), 0);
		KUNIT_EXPECT_EQ(test, send_flags(scene, ONE_BVEC, 64, 4, 0), 0);
		KUNIT_EXPECT_EQ(test, recv_flags(scene, ONE_BVEC, 64, 5, FI_COMPLETION), 0);
		KUNIT_EXPECT_EQ(test, recv_flags(scene, ONE_BVEC, 64, 6, 0), 0);
		while (scene->qp->nsent)
			efake_wr_done(efake_sent(scene->qp, 0), 0);
		while (scene->qp->nrecvs)
			efake_wr_done(efake_recv(scene->qp, 0), 0);
		efake_settle();
		KUNIT_EXPECT_EQ(test, efa_drain(scene), 2 * told + 2);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits),
			efa_cq(scene)->attr.size);
}

/* No call takes the fast path before the endpoint is enabled, nor after a removal. */
static void plain_limits(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true,
	});
	const struct kefa_limits none = { }, all = {
		EFAKE_MTU + 1, KEFA_MAX_INLINE + 1, KEFA_MAX_RDMA + 1,
		KEFA_MAX_RDMA + 1, EFAKE_MTU + 1,
	};

	KUNIT_EXPECT_MEMEQ(test, &efa_ep(scene)->limits, &none, sizeof(none));
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	KUNIT_EXPECT_MEMEQ(test, &efa_ep(scene)->limits, &all, sizeof(all));
	efake_remove(scene->fake);
	KUNIT_EXPECT_MEMEQ(test, &efa_ep(scene)->limits, &none, sizeof(none));
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), -ENODEV);
}

/* No call takes the fast path without the endpoint's capability. */
static void plain_caps(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_ep *ep, *first = scene->ep;

	scene->info->caps = FI_MSG | FI_RECV | FI_RMA | FI_READ;
	ep = efa_scene_ep(test, scene, 0);
	KUNIT_ASSERT_EQ(test, fi_enable(ep), 0);
	scene->ep = ep;
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_inject(ep, scene->buf, 8, scene->peer),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 64, 1), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_get(scene, 64, 2), 0);
	scene->ep = first;
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	KUNIT_EXPECT_EQ(test, efa_drain(scene), 2);
}

/* Without a direction, the endpoint is opened for both. */
static void plain_caps_either_way(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_ep *ep, *first = scene->ep;

	scene->info->caps = FI_MSG;
	ep = efa_scene_ep(test, scene, 0);
	KUNIT_ASSERT_EQ(test, fi_enable(ep), 0);
	scene->ep = ep;
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 2), 0);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 64, 3), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, efa_get(scene, 64, 4), -EOPNOTSUPP);
	scene->ep = first;
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	KUNIT_EXPECT_EQ(test, efa_drain(scene), 2);
}

/*
 * The memory of a copy buffer is allocated at its first use. If that fails, posts are refused
 * until the buffer that always has memory is free again.
 */
static void buffers_on_first_use(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	unsigned int maps = scene->fake->nmaps;

	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 200, scene->peer), 0);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps);
	efake_fail(scene->fake, EFAKE_DMA_MAP, 1, -EIO);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 200, scene->peer),
			-EAGAIN);
	efake_settle();
	KUNIT_EXPECT_FALSE(test, efa_ep(scene)->tx.room);
	KUNIT_EXPECT_TRUE(test, efa_ep(scene)->tx.wanted);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efake_settle();
	KUNIT_EXPECT_FALSE(test, efa_ep(scene)->tx.wanted);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 200, scene->peer), 0);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 200, scene->peer), 0);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps + 1);
	while (scene->qp->nsent)
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_nothing(test, scene);
}

static struct kunit_case plain_cases[] = {
	KUNIT_CASE(buffers_on_first_use),
	KUNIT_CASE_PARAM(plain_says, format_gen_params),
	KUNIT_CASE(plain_memory),
	KUNIT_CASE(plain_two),
	KUNIT_CASE(plain_write_data),
	KUNIT_CASE(plain_refuses),
	KUNIT_CASE(plain_maps_nothing),
	KUNIT_CASE(plain_slot_again),
	KUNIT_CASE(plain_flags_inject),
	KUNIT_CASE(plain_flags_completion),
	KUNIT_CASE(plain_limits),
	KUNIT_CASE(plain_caps),
	KUNIT_CASE(plain_caps_either_way),
	{}
};

static struct kunit_suite plain_suite = {
	.name = "kefa_plain",
	.test_cases = plain_cases,
};

kunit_test_suite(plain_suite);
