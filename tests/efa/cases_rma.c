// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* RMA and memory regions. End a reads and writes memory of end b. */
#include <linux/delay.h>
#include <linux/scatterlist.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include "efa.h"

#define ET_REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct fid_mr *et_reg(struct et *t, void *buf, size_t len, u64 access)
{
	struct fid_mr *mr = NULL;

	ET_EXPECT_EQ(t, fi_mr_reg(t->b.domain, buf, len, access, 0, 0, 0, &mr,
				  NULL), 0);
	return mr;
}

static void et_dereg(struct et *t, struct fid_mr *mr)
{
	ET_EXPECT_EQ(t, fi_close(&mr->fid), 0);
}

/* A region's address must not be a kernel pointer. */
static void et_expect_base(struct et *t, struct fid_mr *mr)
{
	ET_EXPECT(t, mr->base_addr < SZ_1G);
	ET_EXPECT(t, fi_mr_key(mr) <= U32_MAX);
}

static void et_expect_rma(struct et *t, u64 dir)
{
	struct fi_cq_data_entry entry = { };

	ET_EXPECT_EQ(t, et_wait(&t->a, &entry), 0);
	ET_EXPECT_EQ(t, entry.flags, FI_RMA | dir);
	ET_EXPECT_EQ(t, (long)entry.op_context, 9);
}

static void et_rma_at(struct et *t, struct fid_mr *mr, u8 *local, u8 *remote,
		      size_t off, size_t len)
{
	u8 seed = off + len;

	et_fill(local, len, seed);
	ET_EXPECT_EQ(t, fi_write(t->a.ep, local, len, NULL, t->a.peer,
				 mr->base_addr + off, fi_mr_key(mr),
				 (void *)9), 0);
	et_expect_rma(t, FI_WRITE);
	memset(local, 0, len);
	ET_EXPECT_EQ(t, fi_read(t->a.ep, local, len, NULL, t->a.peer,
				mr->base_addr + off, fi_mr_key(mr),
				(void *)9), 0);
	et_expect_rma(t, FI_READ);
	ET_EXPECT(t, et_filled(local, len, seed));
}

static void et_rma(struct et *t)
{
	const size_t sizes[] = { 0, 1, 33, 4096, 40000, SZ_64K };
	struct fid_mr *mr = et_reg(t, t->b.buf + 123, SZ_1M, ET_REMOTE);
	int i;

	if (!mr)
		return;
	et_expect_base(t, mr);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		et_rma_at(t, mr, t->a.small, t->b.buf + 123, 0, sizes[i]);
	et_rma_at(t, mr, t->a.small, t->b.buf + 123, SZ_1M - 777, 777);
	et_dereg(t, mr);
	/* The device has written, and the region is closed. */
	ET_EXPECT(t, et_filled(t->b.buf + 123 + SZ_1M - 777, 777,
			       (SZ_1M - 777 + 777) & 0xff));
}

#define ET_PIECES	40
#define ET_PIECE	600
#define ET_APART	1600

/* Write @seed's pattern from many pieces, with data, and read it back into them. */
static void et_rma_apart(struct et *t, struct fid_mr *mr, struct kvec *apart, u8 seed)
{
	const size_t len = ET_PIECES * ET_PIECE;
	struct fi_rma_iov rma = {
		.addr = mr->base_addr, .len = len, .key = fi_mr_key(mr),
	};
	struct fi_msg_rma msg = {
		.addr = t->a.peer, .rma_iov = &rma, .rma_iov_count = 1,
		.context = (void *)9, .data = seed,
	};
	struct fi_cq_data_entry entry = { };
	int i;

	for (i = 0; i < ET_PIECES; i++)
		et_fill(apart[i].iov_base, ET_PIECE, seed + i);
	ET_EXPECT_EQ(t, fi_recv(t->b.ep, t->b.buf, 64, NULL, FI_ADDR_UNSPEC, NULL), 0);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, apart, ET_PIECES, len);
	ET_EXPECT_EQ(t, fi_writemsg(t->a.ep, &msg, FI_COMPLETION | FI_REMOTE_CQ_DATA), 0);
	/* CQ data arrives after all of the write, in whatever order packets travelled. */
	ET_EXPECT_EQ(t, et_wait(&t->b, &entry), 0);
	ET_EXPECT_EQ(t, entry.data, seed);
	for (i = 0; i < ET_PIECES; i++)
		ET_EXPECT(t, et_filled(t->b.small + i * ET_PIECE, ET_PIECE, seed + i));
	et_expect_rma(t, FI_WRITE);
	for (i = 0; i < ET_PIECES; i++)
		memset(apart[i].iov_base, 0, ET_PIECE);
	ET_EXPECT_EQ(t, fi_readv(t->a.ep, apart, NULL, ET_PIECES, t->a.peer,
				 mr->base_addr, fi_mr_key(mr), (void *)9), 0);
	et_expect_rma(t, FI_READ);
	for (i = 0; i < ET_PIECES; i++)
		ET_EXPECT(t, et_filled(apart[i].iov_base, ET_PIECE, seed + i));
}

/* RMA with local memory in more pieces than the endpoint posts at once. */
static void et_rma_pieces(struct et *t)
{
	struct fid_mr *mr = et_reg(t, t->b.small, SZ_64K, ET_REMOTE);
	struct kvec *apart;
	int i;

	if (!mr)
		return;
	et_rma_at(t, mr, t->a.buf + 77, t->b.small, 5, SZ_32K);
	apart = kcalloc(ET_PIECES, sizeof(*apart), GFP_KERNEL);
	ET_EXPECT(t, apart);
	for (i = 0; apart && i < ET_PIECES; i++) {
		apart[i].iov_base = t->a.small + i * ET_APART;
		apart[i].iov_len = ET_PIECE;
	}
	for (i = 0; apart && i < 5; i++)
		et_rma_apart(t, mr, apart, 10 * i);
	kfree(apart);
	et_dereg(t, mr);
}

/* More operations than a completion queue of the device has entries. */
#define ET_LAPS	1500

/*
 * Copy buffers become free when the sender reaps its completions, which it does when none
 * is left. So the receiver may be that many operations ahead of it.
 */
static ssize_t et_inject_lap(struct et *t, struct fid_mr *mr, int lap)
{
	unsigned long stop = jiffies + msecs_to_jiffies(ET_TIMEOUT);
	struct fi_cq_data_entry entry;
	ssize_t ret;

	do {
		cond_resched();
		ret = fi_inject_writedata(t->a.ep, t->a.small, 200, lap, t->a.peer,
					  mr->base_addr, fi_mr_key(mr));
	} while (ret == -EAGAIN && time_before(jiffies, stop) &&
		 fi_cq_read(t->a.cq, &entry, 1) == -EAGAIN);
	return ret;
}

/*
 * More operations than the completion queue has entries: once entries are reused, the
 * driver reports the length of a write with bits of another entry.
 */
static void et_rma_data_laps(struct et *t)
{
	struct fid_mr *mr = et_reg(t, t->b.buf, SZ_64K, ET_REMOTE);
	struct fi_cq_data_entry entry = { };
	int i, wrong = 0;

	if (!mr)
		return;
	for (i = 0; i < ET_LAPS && !wrong; i++) {
		wrong += fi_recv(t->b.ep, t->b.small, 64, NULL, FI_ADDR_UNSPEC, t) != 0;
		wrong += et_inject_lap(t, mr, i) != 0;
		wrong += et_wait(&t->b, &entry) != 0 || entry.len || entry.data != i;
	}
	ET_EXPECT_EQ(t, wrong, 0);
	et_dereg(t, mr);
}

static void et_rma_data(struct et *t)
{
	struct fid_mr *mr = et_reg(t, t->b.buf, SZ_64K, ET_REMOTE);
	struct fi_cq_data_entry entry = { };

	if (!mr)
		return;
	memset(t->b.small, 0x5a, 64);
	et_fill(t->a.small, 5000, 2);
	ET_EXPECT_EQ(t, fi_recv(t->b.ep, t->b.small, 64, NULL, FI_ADDR_UNSPEC,
				(void *)7), 0);
	ET_EXPECT_EQ(t, fi_writedata(t->a.ep, t->a.small, 5000, NULL, 0xfeed,
				     t->a.peer, mr->base_addr, fi_mr_key(mr),
				     (void *)9), 0);
	et_expect_rma(t, FI_WRITE);
	ET_EXPECT_EQ(t, et_wait(&t->b, &entry), 0);
	ET_EXPECT_EQ(t, entry.flags,
		     FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	/* The driver's length is unreliable, so the provider reports 0. */
	ET_EXPECT_EQ(t, entry.len, 0);
	ET_EXPECT_EQ(t, entry.data, 0xfeed);
	ET_EXPECT_EQ(t, (long)entry.op_context, 7);
	ET_EXPECT_EQ(t, t->b.small[0], 0x5a);

	/* A write without data. */
	ET_EXPECT_EQ(t, fi_recv(t->b.ep, t->b.small, 64, NULL, FI_ADDR_UNSPEC,
				(void *)7), 0);
	ET_EXPECT_EQ(t, fi_inject_writedata(t->a.ep, t->a.small, 0, 1,
					    t->a.peer, mr->base_addr,
					    fi_mr_key(mr)), 0);
	ET_EXPECT_EQ(t, et_wait(&t->b, &entry), 0);
	ET_EXPECT_EQ(t, entry.data, 1);
	ET_EXPECT(t, et_quiet(&t->a));
	et_dereg(t, mr);
	ET_EXPECT(t, et_filled(t->b.buf, 5000, 2));
}

/* Wait for a write without a completion, by waiting for the pattern of @seed. */
static bool et_await_written(struct et *t, struct fid_mr *mr, size_t len,
			     u8 seed)
{
	unsigned long end = jiffies + msecs_to_jiffies(ET_TIMEOUT);
	u8 *copy = t->a.small + SZ_32K;

	do {
		ET_EXPECT_EQ(t, fi_read(t->a.ep, copy, len, NULL, t->a.peer,
					mr->base_addr, fi_mr_key(mr),
					(void *)9), 0);
		et_expect_rma(t, FI_READ);
		if (et_filled(copy, len, seed))
			return true;
		msleep(20);
	} while (!t->failed && time_before(jiffies, end));
	return false;
}

static void et_rma_inject(struct et *t)
{
	struct fid_mr *mr = et_reg(t, t->b.small, SZ_8K, ET_REMOTE);

	if (!mr)
		return;
	et_fill(t->a.small, 4096, 6);
	ET_EXPECT_EQ(t, fi_inject_write(t->a.ep, t->a.small, 4096, t->a.peer,
					mr->base_addr, fi_mr_key(mr)), 0);
	memset(t->a.small, 0xee, 4096);
	/* An inject isn't ordered with anything, so read until the data is there. */
	ET_EXPECT(t, et_await_written(t, mr, 4096, 6));
	ET_EXPECT(t, et_quiet(&t->a));
	et_dereg(t, mr);
	ET_EXPECT(t, et_filled(t->b.small, 4096, 6));
}

static void et_expect_status(struct et *t, int err, int status)
{
	struct fi_cq_err_entry error = { };

	ET_EXPECT_EQ(t, et_wait_err(&t->a, &error), 0);
	ET_EXPECT_EQ(t, error.err, err);
	ET_EXPECT_EQ(t, error.prov_errno, status);
	ET_EXPECT_EQ(t, (long)error.op_context, 9);
	ET_EXPECT(t, strlen(fi_cq_strerror(t->a.cq, status, NULL, NULL, 0)) > 4);
}

static void et_read_at(struct et *t, u64 addr, u64 key, size_t len)
{
	ET_EXPECT_EQ(t, fi_read(t->a.ep, t->a.small, len, NULL, t->a.peer,
				addr, key, (void *)9), 0);
}

/* A peer can access only the memory that its key is for. */
static void et_rma_refused(struct et *t)
{
	struct fid_mr *mr = et_reg(t, t->b.small, SZ_8K, FI_REMOTE_READ);
	u64 key, base;

	if (!mr)
		return;
	key = fi_mr_key(mr);
	base = mr->base_addr;
	et_read_at(t, base + 1, key, SZ_8K);
	et_expect_status(t, EACCES, 7);
	et_read_at(t, base - 1, key, 4);
	et_expect_status(t, EACCES, 7);
	et_read_at(t, base, key ^ 1, 4);
	et_expect_status(t, EACCES, 7);
	et_read_at(t, base, key ^ 0x00100000, 4);
	et_expect_status(t, EACCES, 7);
	ET_EXPECT_EQ(t, fi_write(t->a.ep, t->a.small, 4, NULL, t->a.peer, base,
				 key, (void *)9), 0);
	et_expect_status(t, EACCES, 7);
	et_read_at(t, base, key, 64);
	et_expect_rma(t, FI_READ);
	et_dereg(t, mr);
	et_read_at(t, base, key, 4);
	et_expect_status(t, EACCES, 7);
	ET_EXPECT_EQ(t, fi_read(t->a.ep, t->a.small, 4, NULL, t->a.peer, base,
				BIT_ULL(32) | key, NULL), -EINVAL);
}

static void et_mr_bad(struct et *t)
{
	struct kvec gap[2] = {
		{ t->b.small, 100 }, { t->b.small + SZ_8K, 100 },
	};
	struct fid_mr *mr;

	ET_EXPECT_EQ(t, fi_mr_regv(t->b.domain, gap, 2, ET_REMOTE, 0, 0, 0,
				   &mr, NULL), -EINVAL);
	ET_EXPECT_EQ(t, fi_mr_reg(t->b.domain, (void *)64, 100, ET_REMOTE, 0,
				  0, 0, &mr, NULL), -EINVAL);
	/* A region without remote access is allowed, and has no key. */
	mr = et_reg(t, t->b.small, 100, FI_SEND | FI_RECV);
	ET_EXPECT(t, fi_mr_key(mr) == FI_KEY_NOTAVAIL);
	et_dereg(t, mr);
}

static void et_mr_kinds(struct et *t)
{
	struct kvec iov[2] = {
		{ t->b.small + 100, SZ_4K - 100 },
		{ t->b.small + SZ_4K, SZ_4K },
	};
	struct bio_vec bv[2] = {
		{ virt_to_page(t->b.small), SZ_4K - 8, 8 },
		{ virt_to_page(t->b.small + SZ_8K), 100, 0 },
	};
	struct scatterlist sg[2];
	struct fi_mr_attr attr = {
		.iov_count	= 2,
		.access		= ET_REMOTE,
	};
	struct fid_mr *mr;
	int i;

	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], t->b.small + SZ_4K + 1, SZ_4K - 1);
	sg_set_buf(&sg[1], t->b.small, 200);
	for (i = 0; i < 3; i++) {
		attr.type = i == 0 ? FI_MR_KVEC : i == 1 ? FI_MR_BVEC :
			    FI_MR_SGL;
		if (i == 0)
			attr.mr_iov = iov;
		else if (i == 1)
			attr.bvec = bv;
		else
			attr.sgl = sg;
		mr = NULL;
		ET_EXPECT_EQ(t, fi_mr_regattr(t->b.domain, &attr, 0, &mr), 0);
		if (!mr)
			return;
		et_rma_at(t, mr, t->a.small, NULL, SZ_4K - 200, 250);
		et_dereg(t, mr);
	}
}

static int et_mr_wait(struct et *t, long context)
{
	struct fi_cq_data_entry entry = { };
	int ret = et_wait(&t->b, &entry);

	ET_EXPECT_EQ(t, (long)entry.op_context, context);
	return ret;
}

/* Register many times with fi_mr_post_reg(): keys must not repeat soon. */
static void et_mr_post(struct et *t)
{
	struct fi_mr_alloc_attr alloc = {
		.max_pages	= 6,
		.access		= ET_REMOTE,
		.cq		= t->b.cq,
	};
	struct kvec iov = { t->b.small + 40, SZ_16K };
	struct fi_mr_attr attr = {
		.type		= FI_MR_KVEC,
		.mr_iov		= &iov,
		.iov_count	= 1,
		.access		= ET_REMOTE,
		.context	= (void *)3,
	};
	struct kvec apart[7];
	struct fid_mr *mr;
	u64 last = 0;
	int i;

	if (!ET_EXPECT_EQ(t, fi_mr_alloc(t->b.domain, &alloc, &mr, NULL), 0))
		return;
	ET_EXPECT_EQ(t, fi_mr_post_inval(mr, FI_COMPLETION, NULL), -EINVAL);
	for (i = 0; i < 40; i++) {
		ET_EXPECT_EQ(t, fi_mr_post_reg(mr, &attr, FI_COMPLETION), 0);
		ET_EXPECT_EQ(t, fi_mr_post_reg(mr, &attr, FI_COMPLETION),
			     -EBUSY);
		if (!ET_EXPECT_EQ(t, et_mr_wait(t, 3), 0))
			break;
		ET_EXPECT(t, fi_mr_key(mr) != last);
		last = fi_mr_key(mr);
		et_rma_at(t, mr, t->a.small, NULL, i, 100);
		ET_EXPECT_EQ(t, fi_mr_post_inval(mr, FI_COMPLETION, (void *)4),
			     0);
		ET_EXPECT_EQ(t, et_mr_wait(t, 4), 0);
		ET_EXPECT(t, fi_mr_key(mr) == FI_KEY_NOTAVAIL);
	}
	for (i = 0; i < ARRAY_SIZE(apart); i++) {
		apart[i].iov_base = t->b.small + i * SZ_8K;
		apart[i].iov_len = SZ_4K;
	}
	attr.mr_iov = apart;
	attr.iov_count = ARRAY_SIZE(apart);
	ET_EXPECT_EQ(t, fi_mr_post_reg(mr, &attr, 0), -EMSGSIZE);
	attr.mr_iov = &iov;
	attr.iov_count = 1;
	attr.access |= FI_SEND;
	ET_EXPECT_EQ(t, fi_mr_post_reg(mr, &attr, 0), -EINVAL);
	attr.access = FI_REMOTE_READ;
	ET_EXPECT_EQ(t, fi_mr_post_reg(mr, &attr, 0), 0);
	/* Closing a region waits for its registration. */
	et_dereg(t, mr);
	ET_EXPECT(t, et_quiet(&t->b));
}

/* Each key grants access to its own memory only, even within one page. */
static void et_mr_many(struct et *t)
{
	struct fid_mr *mrs[64];
	int i, n;

	for (n = 0; n < ARRAY_SIZE(mrs); n++) {
		mrs[n] = et_reg(t, t->b.small + n * 512, 512, ET_REMOTE);
		if (!mrs[n])
			break;
	}
	for (i = 0; i < n; i++) {
		et_fill(t->a.small, 512, i);
		ET_EXPECT_EQ(t, fi_write(t->a.ep, t->a.small, 512, NULL,
					 t->a.peer, mrs[i]->base_addr,
					 fi_mr_key(mrs[i]), (void *)9), 0);
		et_expect_rma(t, FI_WRITE);
	}
	for (i = 0; i < n; i++)
		et_dereg(t, mrs[i]);
	for (i = 0; i < n; i++)
		ET_EXPECT(t, et_filled(t->b.small + i * 512, 512, i));
}

const struct et_case et_rma_cases[] = {
	{ "rma", et_rma },
	{ "rma_pieces", et_rma_pieces },
	{ "rma_data", et_rma_data },
	{ "rma_data_laps", et_rma_data_laps },
	{ "rma_inject", et_rma_inject },
	{ "rma_refused", et_rma_refused },
	{ "mr_bad", et_mr_bad },
	{ "mr_kinds", et_mr_kinds },
	{ "mr_post", et_mr_post },
	{ "mr_many", et_mr_many },
	{ }
};
