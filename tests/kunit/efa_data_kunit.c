// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Transfer of data: the device reads the data that was sent, and writes received data to the
 * right memory, in each way that the provider supports.
 */
#include <linux/bvec.h>
#include <linux/vmalloc.h>
#include "efa_scene.h"

/* Kinds of memory that the data is in. */
enum place {
	ONE,		/* one contiguous piece */
	TWO,		/* two pieces that aren't adjacent */
	THREE,
	SEVENTEEN,
	SCATTERED,	/* virtually contiguous, with no adjacent pages */
	BVEC_TWO,
	BVEC_THREE,
	NOWHERE,	/* not kernel memory */
};

enum way {
	DO_SEND,
	DO_SEND_INJECT,
	DO_RECV,
	DO_READ,
	DO_WRITE,
	DO_WRITE_DATA,
	DO_WRITE_INJECT,
};

/**
 * struct transfer - a transfer, and the work requests that it needs
 * @desc: name of the transfer
 * @way: kind of the call
 * @place: kind of memory
 * @len: length in bytes
 * @ret: expected return value of the call
 * @wrs: expected number of work requests
 * @sges: expected number of SGEs of all work requests; 0 for inline data
 * @copied: the data is copied to a copy buffer
 */
struct transfer {
	const char	*desc;
	enum way	way;
	enum place	place;
	size_t		len;
	int		ret;
	int		wrs;
	int		sges;
	bool		copied;
};

static const struct transfer transfers[] = {
	{ "send of nothing", DO_SEND, ONE, 0, 0, 1, 1 },
	{ "send of 1 byte", DO_SEND, ONE, 1, 0, 1, 0 },
	{ "send, inline", DO_SEND, ONE, 32, 0, 1, 0 },
	{ "send of 3 pieces, inline", DO_SEND, THREE, 32, 0, 1, 0 },
	{ "send, inline, bvec", DO_SEND, BVEC_THREE, 32, 0, 1, 0 },
	{ "send, too long for inline", DO_SEND, ONE, 33, 0, 1, 1 },
	{ "send of a message", DO_SEND, ONE, EFAKE_MTU, 0, 1, 1 },
	{ "send too long", DO_SEND, ONE, EFAKE_MTU + 1, -EMSGSIZE },
	{ "send of 2 pieces", DO_SEND, TWO, 1000, 0, 1, 2 },
	{ "send of 3 pieces", DO_SEND, THREE, 1000, 0, 1, 1, true },
	{ "send of 3 pieces, longest", DO_SEND, THREE, EFAKE_MTU, 0, 1, 1, true },
	{ "send of 17 pieces", DO_SEND, SEVENTEEN, 1700, 0, 1, 1, true },
	{ "send, vmalloc, 1 page", DO_SEND, SCATTERED, 100, 0, 1, 1 },
	{ "send, vmalloc, 2 pages", DO_SEND, SCATTERED, 5000, 0, 1, 2 },
	{ "send, vmalloc, 3 pages", DO_SEND, SCATTERED, EFAKE_MTU, 0, 1, 1, true },
	{ "send of 2 pieces, bvec", DO_SEND, BVEC_TWO, 1000, 0, 1, 2 },
	{ "send of 3 pieces, bvec", DO_SEND, BVEC_THREE, 1000, 0, 1, 1, true },
	{ "send from nowhere", DO_SEND, NOWHERE, 100, -EINVAL },
	{ "inject, inline", DO_SEND_INJECT, ONE, 32, 0, 1, 0 },
	{ "inject", DO_SEND_INJECT, ONE, 33, 0, 1, 1, true },
	{ "inject, longest", DO_SEND_INJECT, THREE, KEFA_INJECT, 0, 1, 1, true },
	{ "inject too long", DO_SEND_INJECT, ONE, KEFA_INJECT + 1, -EMSGSIZE },
	{ "receive of nothing", DO_RECV, ONE, 0, 0, 1, 1 },
	{ "receive", DO_RECV, ONE, 100, 0, 1, 1 },
	{ "receive of a message", DO_RECV, ONE, EFAKE_MTU, 0, 1, 1 },
	{ "receive of 2 pieces", DO_RECV, TWO, 1000, 0, 1, 2 },
	{ "receive of 3 pieces", DO_RECV, THREE, 1000, -EMSGSIZE },
	{ "receive, vmalloc, 2 pages", DO_RECV, SCATTERED, 5000, 0, 1, 2 },
	{ "receive, bvec", DO_RECV, BVEC_TWO, 1000, 0, 1, 2 },
	{ "receive to nowhere", DO_RECV, NOWHERE, 100, -EINVAL },
	{ "read of nothing", DO_READ, ONE, 0, 0, 1, 1 },
	{ "read", DO_READ, ONE, 1, 0, 1, 1 },
	{ "read, long", DO_READ, ONE, EFA_BUF, 0, 1, 1 },
	{ "read of 3 pieces", DO_READ, THREE, 1000, 0, 3, 3 },
	{ "read, vmalloc", DO_READ, SCATTERED, 12000, 0, 4, 4 },
	{ "read, bvec", DO_READ, BVEC_THREE, 1000, 0, 3, 3 },
	{ "read to nowhere", DO_READ, NOWHERE, 100, -EINVAL },
	{ "write of nothing", DO_WRITE, ONE, 0, 0, 1, 1 },
	{ "write of 1 byte", DO_WRITE, ONE, 1, 0, 1, 1 },
	{ "write, long", DO_WRITE, ONE, EFA_BUF, 0, 1, 1 },
	{ "write of 3 pieces", DO_WRITE, THREE, EFA_BUF / 2, 0, 3, 3 },
	{ "write, vmalloc", DO_WRITE, SCATTERED, 12000, 0, 4, 4 },
	{ "write, bvec", DO_WRITE, BVEC_TWO, 1000, 0, 2, 2 },
	{ "write of 17 pieces", DO_WRITE, SEVENTEEN, 1700, 0, 1, 1, true },
	{ "write from nowhere", DO_WRITE, NOWHERE, 100, -EINVAL },
	{ "write with data", DO_WRITE_DATA, ONE, EFA_BUF, 0, 1, 1 },
	{ "write of nothing with data", DO_WRITE_DATA, ONE, 0, 0, 1, 1 },
	{ "write with data of 3 pieces", DO_WRITE_DATA, THREE, 1000, 0, 1, 1,
	  true },
	{ "inject write of nothing", DO_WRITE_INJECT, ONE, 0, 0, 1, 1 },
	{ "inject write", DO_WRITE_INJECT, ONE, 1, 0, 1, 1, true },
	{ "inject write too long", DO_WRITE_INJECT, ONE, KEFA_INJECT + 1,
	  -EMSGSIZE },
};

KUNIT_ARRAY_PARAM_DESC(transfer, transfers, desc);

#define PIECES		17
#define SPACE		SZ_256K
#define PAGES		4

/**
 * struct memory - memory of a transfer
 * @space: room for PIECES pieces, and more
 * @block: contiguous pages
 * @pages: pages of @block, in the order of @scattered
 * @scattered: virtually contiguous mapping of @pages
 * @iov: pieces as kvecs
 * @bv: pieces as bio_vecs
 * @n: number of pieces
 * @iter: iterator over all pieces
 */
struct memory {
	u8		*space;
	struct page	*block;
	struct page	*pages[PAGES];
	u8		*scattered;
	struct kvec	iov[PIECES];
	struct bio_vec	bv[PIECES];
	unsigned int	n;
	struct iov_iter	iter;
};

static void memory_free(void *data)
{
	struct memory *mem = data;

	vunmap(mem->scattered);
	if (mem->block)
		__free_pages(mem->block, get_order(2 * PAGES * PAGE_SIZE));
	kfree(mem->space);
}

static struct memory *memory_make(struct kunit *test)
{
	struct memory *mem = kunit_kzalloc(test, sizeof(*mem), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, memory_free, mem),
			0);
	mem->space = kzalloc(SPACE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem->space);
	mem->block = alloc_pages(GFP_KERNEL, get_order(2 * PAGES * PAGE_SIZE));
	KUNIT_ASSERT_NOT_NULL(test, mem->block);
	for (i = 0; i < PAGES; i++)
		mem->pages[i] = mem->block + 2 * (PAGES - 1 - i);
	mem->scattered = vmap(mem->pages, PAGES, VM_MAP, PAGE_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem->scattered);
	return mem;
}

/* The last piece has the remainder. */
static void cut(struct memory *mem, unsigned int n, size_t len)
{
	size_t each = len / n;
	u8 *at = mem->space + 8;
	unsigned int i;

	mem->n = n;
	for (i = 0; i < n; i++) {
		mem->iov[i].iov_base = at;
		mem->iov[i].iov_len = i + 1 < n ? each : len - each * (n - 1);
		bvec_set_page(&mem->bv[i], virt_to_page(at),
			      mem->iov[i].iov_len, offset_in_page(at));
		at += mem->iov[i].iov_len + 512;
	}
}

static void lay_out(struct memory *mem, enum place place, unsigned int dir,
		    size_t len)
{
	static const u8 counts[] = {
		[ONE] = 1, [TWO] = 2, [THREE] = 3, [SEVENTEEN] = 17,
		[SCATTERED] = 1, [BVEC_TWO] = 2, [BVEC_THREE] = 3,
		[NOWHERE] = 1,
	};

	cut(mem, counts[place], len);
	if (place == SCATTERED)
		mem->iov[0].iov_base = mem->scattered + 300;
	if (place == NOWHERE)
		mem->iov[0].iov_base = (void *)0x1000;
	if (place == BVEC_TWO || place == BVEC_THREE)
		iov_iter_bvec(&mem->iter, dir, mem->bv, mem->n, len);
	else
		iov_iter_kvec(&mem->iter, dir, mem->iov, mem->n, len);
}

static void memory_fill(struct memory *mem, u8 *flat, u8 seed)
{
	size_t len = 0;
	unsigned int i;

	for (i = 0; i < mem->n; len += mem->iov[i++].iov_len)
		;
	efa_fill(flat, len, seed);
	for (i = 0; i < mem->n; flat += mem->iov[i++].iov_len)
		memcpy(mem->iov[i].iov_base, flat, mem->iov[i].iov_len);
}

static bool memory_filled(struct memory *mem, const u8 *flat)
{
	unsigned int i;

	for (i = 0; i < mem->n; flat += mem->iov[i++].iov_len)
		if (memcmp(mem->iov[i].iov_base, flat, mem->iov[i].iov_len))
			return false;
	return true;
}

static bool is_rx(enum way way)
{
	return way == DO_RECV || way == DO_READ;
}

static ssize_t transfer_post(struct efa_scene *scene,
			     const struct transfer *t, struct memory *mem)
{
	struct fi_rma_iov rma = { EFA_RADDR, t->len, EFA_KEY };
	struct fi_msg_rma rma_msg = {
		.msg_iter = mem->iter, .addr = scene->peer, .rma_iov = &rma,
		.rma_iov_count = 1, .data = 0xabcd,
	};
	struct fi_msg msg = { .msg_iter = mem->iter, .addr = scene->peer };
	u64 flags = FI_COMPLETION;

	switch (t->way) {
	case DO_SEND_INJECT:
		flags |= FI_INJECT;
		fallthrough;
	case DO_SEND:
		return fi_sendmsg(scene->ep, &msg, flags);
	case DO_RECV:
		return fi_recvmsg(scene->ep, &msg, flags);
	case DO_READ:
		return fi_readmsg(scene->ep, &rma_msg, flags);
	case DO_WRITE_INJECT:
		flags |= FI_INJECT;
		break;
	case DO_WRITE_DATA:
		flags |= FI_REMOTE_CQ_DATA;
		break;
	default:
		break;
	}
	return fi_writemsg(scene->ep, &rma_msg, flags);
}

static struct efake_wr *transfer_wr(struct efa_scene *scene, enum way way,
				    int n)
{
	return way == DO_RECV ? efake_recv(scene->qp, n) :
			     efake_sent(scene->qp, n);
}

/* Check the work requests. */
static void expect_wrs(struct kunit *test, struct efa_scene *scene,
		       const struct transfer *t)
{
	unsigned int copies = list_count_nodes(&efa_ep(scene)->copies);
	struct efake_wr *wr;
	int i, sges = 0;
	size_t len = 0;

	for (i = 0; i < t->wrs; i++) {
		wr = transfer_wr(scene, t->way, i);
		KUNIT_ASSERT_NOT_NULL(test, wr);
		sges += wr->flags & IB_SEND_INLINE ? 0 : wr->num_sge;
		if (t->way != DO_RECV && t->way != DO_SEND && t->way != DO_SEND_INJECT)
			KUNIT_EXPECT_EQ(test, wr->raddr, EFA_RADDR + len);
		len += wr->len;
	}
	KUNIT_EXPECT_NULL(test, transfer_wr(scene, t->way, i));
	KUNIT_EXPECT_EQ(test, len, t->len);
	KUNIT_EXPECT_EQ(test, sges, t->sges);
	KUNIT_EXPECT_EQ(test, copies, KEFA_COPIES - t->copied);
	if (t->way == DO_WRITE_DATA) {
		KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_RDMA_WRITE_WITH_IMM);
		KUNIT_EXPECT_EQ(test, wr->imm, 0xabcd);
	}
}

/* Transfer the data as the device would, as the work requests describe it. */
static void carry_out(struct efa_scene *scene, const struct transfer *t,
		      u8 *flat)
{
	struct efake_wr *wr;
	int i;

	for (i = 0; i < t->wrs; i++) {
		wr = transfer_wr(scene, t->way, i);
		if (is_rx(t->way))
			efake_wr_write(wr, flat, wr->len);
		else
			efake_wr_read(wr, flat, wr->len);
		flat += wr->len;
	}
	for (i = 0; i < t->wrs; i++)
		efake_recv_done(transfer_wr(scene, t->way, 0),
				&(struct kefa_wc){ .len = t->len });
}

static void data_moves(struct kunit *test)
{
	const struct transfer *t = test->param_value;
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct memory *mem = memory_make(test);
	u8 *flat = kunit_kzalloc(test, EFA_BUF, GFP_KERNEL);
	u8 *seen = kunit_kzalloc(test, EFA_BUF, GFP_KERNEL);
	bool early = t->copied || !t->sges;

	KUNIT_ASSERT_NOT_NULL(test, flat);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	lay_out(mem, t->place, is_rx(t->way) ? ITER_DEST : ITER_SOURCE, t->len);
	if (t->place != NOWHERE)
		memory_fill(mem, flat, 3);
	KUNIT_EXPECT_EQ(test, transfer_post(scene, t, mem), t->ret);
	if (t->ret) {
		KUNIT_EXPECT_EQ(test, scene->qp->doorbells, 0);
		KUNIT_EXPECT_EQ(test, scene->qp->nrecvs, 0);
		return;
	}
	expect_wrs(test, scene, t);
	if (is_rx(t->way))
		efa_fill(flat, t->len, 99);
	/* Data that was copied may be overwritten after the post. */
	if (early && !is_rx(t->way))
		memory_fill(mem, seen, 0);
	carry_out(scene, t, is_rx(t->way) ? flat : seen);
	efa_expect_done(test, scene, 0);
	if (is_rx(t->way))
		KUNIT_EXPECT_TRUE(test, memory_filled(mem, flat));
	else
		KUNIT_EXPECT_MEMEQ(test, seen, flat, t->len);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.bounced, t->copied);
}

/* An iterator with an offset, which ends within its last piece. */
static void data_part_of_iter(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct memory *mem = memory_make(test);
	struct fi_msg msg = { .addr = scene->peer };
	u8 *flat = kunit_kzalloc(test, 900, GFP_KERNEL);
	u8 *seen = kunit_kzalloc(test, 900, GFP_KERNEL);
	int bvec;

	KUNIT_ASSERT_NOT_NULL(test, flat);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	for (bvec = 0; bvec < 2; bvec++) {
		lay_out(mem, bvec ? BVEC_THREE : THREE, ITER_SOURCE, 900);
		memory_fill(mem, flat, 40 + bvec);
		iov_iter_advance(&mem->iter, 350);
		iov_iter_truncate(&mem->iter, 400);
		msg.msg_iter = mem->iter;
		KUNIT_EXPECT_EQ(test, fi_sendmsg(scene->ep, &msg, 0), 0);
		KUNIT_EXPECT_EQ(test, efake_sent(scene->qp, 0)->num_sge, 2);
		KUNIT_EXPECT_EQ(test, efake_wr_read(efake_sent(scene->qp, 0),
						    seen, 900), 400);
		KUNIT_EXPECT_MEMEQ(test, seen, flat + 350, 400);
		efake_wr_done(efake_sent(scene->qp, 0), 0);
		efa_expect_done(test, scene, 0);
	}
}

static void data_directions(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct memory *mem = memory_make(test);
	struct fi_rma_iov rma = { EFA_RADDR, 100, EFA_KEY };
	struct fi_msg msg = { .addr = scene->peer };
	struct fi_msg_rma rma_msg = {
		.addr = scene->peer, .rma_iov = &rma, .rma_iov_count = 1,
	};

	lay_out(mem, ONE, ITER_DEST, 100);
	msg.msg_iter = mem->iter;
	rma_msg.msg_iter = mem->iter;
	KUNIT_EXPECT_EQ(test, fi_sendmsg(scene->ep, &msg, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_writemsg(scene->ep, &rma_msg, 0), -EINVAL);
	rma_msg.rma_iov_count = 2;
	KUNIT_EXPECT_EQ(test, fi_readmsg(scene->ep, &rma_msg, 0), -EINVAL);
	rma_msg.rma_iov_count = 1;
	rma.len = 99;
	KUNIT_EXPECT_EQ(test, fi_readmsg(scene->ep, &rma_msg, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_readmsg(scene->ep, &rma_msg, FI_INJECT),
			-FI_EBADFLAGS);
	lay_out(mem, ONE, ITER_SOURCE, 100);
	msg.msg_iter = mem->iter;
	KUNIT_EXPECT_EQ(test, fi_recvmsg(scene->ep, &msg, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_sendmsg(scene->ep, &msg, 1ULL << 63),
			-FI_EBADFLAGS);
	iov_iter_discard(&msg.msg_iter, ITER_DEST, 100);
	KUNIT_EXPECT_EQ(test, fi_recvmsg(scene->ep, &msg, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, scene->qp->doorbells, 0);
}

/*
 * A receive buffer longer than the longest message is truncated, because the device has only
 * 16 bits for the length.
 */
static void data_long_receives(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct memory *mem = memory_make(test);
	struct fi_msg msg = { };
	struct efake_wr *wr;

	KUNIT_EXPECT_EQ(test, efa_recv(scene, EFA_BUF, 1), 0);
	wr = efake_recv(scene->qp, 0);
	KUNIT_EXPECT_EQ(test, wr->num_sge, 1);
	KUNIT_EXPECT_EQ(test, wr->len, EFAKE_MTU);
	/* The unused part of the buffer may have any number of pieces. */
	lay_out(mem, SEVENTEEN, ITER_DEST, 17 * (EFAKE_MTU - 1000));
	msg.msg_iter = mem->iter;
	KUNIT_ASSERT_EQ(test, fi_recvmsg(scene->ep, &msg, 0), 0);
	wr = efake_recv(scene->qp, 1);
	KUNIT_EXPECT_EQ(test, wr->num_sge, 2);
	KUNIT_EXPECT_EQ(test, wr->len, EFAKE_MTU);
	lay_out(mem, SEVENTEEN, ITER_DEST, EFAKE_MTU);
	msg.msg_iter = mem->iter;
	KUNIT_EXPECT_EQ(test, fi_recvmsg(scene->ep, &msg, 0), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->rx.nfree,
			efa_ep(scene)->rx.base.size - 2);
}

/* Remote CQ data of 4 bytes, in host byte order. */
static void data_remote(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct efake_wr *wr;

	KUNIT_EXPECT_EQ(test, fi_senddata(scene->ep, scene->buf, 4, NULL,
					  0x01020304, scene->peer, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_injectdata(scene->ep, scene->buf, 100,
					    0xfffffffe, scene->peer), 0);
	wr = efake_sent(scene->qp, 0);
	KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_SEND_WITH_IMM);
	KUNIT_EXPECT_EQ(test, wr->imm, 0x01020304);
	wr = efake_sent(scene->qp, 1);
	KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_SEND_WITH_IMM);
	KUNIT_EXPECT_EQ(test, wr->imm, 0xfffffffe);
}

/* Execute a write in order. Return: number of pieces, or 0 if the work requests are wrong. */
static unsigned int written(struct kunit *test, struct efa_scene *scene, size_t len,
			    u8 seed)
{
	u8 *got = kunit_kzalloc(test, len, GFP_KERNEL);
	struct efake_wr *wr;
	unsigned int n;
	size_t done = 0;

	KUNIT_ASSERT_NOT_NULL(test, got);
	for (n = 0; scene->qp->nsent; n++) {
		wr = efake_sent(scene->qp, 0);
		KUNIT_EXPECT_EQ(test, wr->raddr, EFA_RADDR + done);
		done += efake_wr_read(wr, got + done, len - done);
		efake_wr_done(wr, 0);
		efake_settle();
	}
	return done == len && efa_filled(got, len, seed) ? n : 0;
}

/* The kvec of a plain call is on the stack, but later pieces are posted after its return. */
static void data_plain_pieces(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct page *pages[40];
	const size_t len = ARRAY_SIZE(pages) * PAGE_SIZE;
	u8 *block = kunit_kmalloc(test, len, GFP_KERNEL), *mem;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, block);
	/* In reverse order, so that no page is adjacent to the previous one. */
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		pages[i] = virt_to_page(block + len - (i + 1) * PAGE_SIZE);
	mem = vmap(pages, ARRAY_SIZE(pages), VM_MAP, PAGE_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	efa_fill(mem, len, 7);
	KUNIT_EXPECT_EQ(test, fi_write(scene->ep, mem, len, NULL, scene->peer,
				       EFA_RADDR, EFA_KEY, (void *)1), 0);
	KUNIT_EXPECT_EQ(test, written(test, scene, len, 7), ARRAY_SIZE(pages));
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, fi_writedata(scene->ep, mem + 1, len - 1, NULL, 5,
					   scene->peer, EFA_RADDR, EFA_KEY, (void *)2),
			0);
	efa_fill(mem + 1, len - 1, 8);
	KUNIT_EXPECT_EQ(test, written(test, scene, len - 1, 8), ARRAY_SIZE(pages));
	efa_expect_done(test, scene, 2);
	vunmap(mem);
}

/* An IOMMU or bounce buffers limit the size of a mapping. */
static const struct longest {
	const char	*desc;
	size_t		max_map;
	size_t		len;
	size_t		slots;
	unsigned int	pieces;
} longest[] = {
	{ "fits", SZ_16K, SZ_16K, 64, 1 },
	{ "one byte more", SZ_16K, SZ_16K + 1, 64, 2 },
	{ "in 4", SZ_16K, EFA_BUF, 64, 4 },
	{ "not in pages", 10000, EFA_BUF, 64, 7 },
	{ "more than are posted at once", SZ_8K, EFA_BUF, 4, 8 },
};

KUNIT_ARRAY_PARAM_DESC(longest, longest, desc);

static void data_longest_map(struct kunit *test)
{
	const struct longest *l = test->param_value;
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.tx_size = l->slots, .idle = true,
	});

	scene->fake->max_map = l->max_map;
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	efa_fill(scene->buf, l->len, 3);
	KUNIT_EXPECT_EQ(test, efa_write(scene, l->len, 1), 0);
	KUNIT_EXPECT_EQ(test, scene->qp->nsent, min_t(size_t, l->pieces, l->slots));
	KUNIT_EXPECT_EQ(test, written(test, scene, l->len, 3), l->pieces);
	efa_expect_done(test, scene, 1);
}

static struct kunit_case data_cases[] = {
	KUNIT_CASE_PARAM(data_moves, transfer_gen_params),
	KUNIT_CASE(data_part_of_iter),
	KUNIT_CASE(data_directions),
	KUNIT_CASE(data_long_receives),
	KUNIT_CASE(data_remote),
	KUNIT_CASE(data_plain_pieces),
	KUNIT_CASE_PARAM(data_longest_map, longest_gen_params),
	{}
};

static struct kunit_suite data_suite = {
	.name = "kefa_data",
	.test_cases = data_cases,
};

kunit_test_suite(data_suite);
