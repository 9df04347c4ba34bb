// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: end a reads and writes memory of end b, by the devices or by packets, whichever the
 * parameter rdma of the provider permits. So a refusal has one of two errors.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include "efa.h"

#define ETF_REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct fid_mr *etf_reg(struct et *t, void *buf, size_t len)
{
	struct fid_mr *mr = NULL;

	ET_EXPECT_EQ(t, fi_mr_reg(t->b.domain, buf, len, ETF_REMOTE, 0, 0, 0, &mr, NULL), 0);
	return mr;
}

/* Read or write; @iov and @rma stay valid until the completion. */
static ssize_t etf_post(struct et *t, struct kvec *iov, struct fi_rma_iov *rma, bool read,
			u64 flags, u64 data, void *context)
{
	struct fi_msg_rma msg = {
		.addr = t->a.peer, .rma_iov = rma, .rma_iov_count = 1, .data = data,
		.context = context,
	};

	iov_iter_kvec(&msg.msg_iter, read ? ITER_DEST : ITER_SOURCE, iov, 1, iov->iov_len);
	return read ? fi_readmsg(t->a.ep, &msg, flags | FI_COMPLETION) :
		      fi_writemsg(t->a.ep, &msg, flags | FI_COMPLETION);
}

static void etf_expect(struct et *t, struct et_end *end, u64 flags)
{
	struct fi_cq_data_entry entry = { };

	ET_EXPECT_EQ(t, et_wait(end, &entry), 0);
	ET_EXPECT_EQ(t, entry.flags, flags);
}

static void etf_at(struct et *t, struct fid_mr *mr, u8 *remote, size_t off, size_t len)
{
	struct kvec iov = { t->a.buf + 77, len };
	struct fi_rma_iov rma = { mr->base_addr + off, len, fi_mr_key(mr) };
	const u8 seed = off + len;

	memset(remote + off, 0, len);
	et_fill(iov.iov_base, len, seed);
	ET_EXPECT_EQ(t, etf_post(t, &iov, &rma, false, FI_DELIVERY_COMPLETE, 0, NULL), 0);
	etf_expect(t, &t->a, FI_RMA | FI_WRITE);
	ET_EXPECT(t, et_filled(remote + off, len, seed));
	memset(iov.iov_base, 0, len);
	ET_EXPECT_EQ(t, etf_post(t, &iov, &rma, true, 0, 0, NULL), 0);
	etf_expect(t, &t->a, FI_RMA | FI_READ);
	ET_EXPECT(t, et_filled(iov.iov_base, len, seed));
}

static void etf_sizes(struct et *t)
{
	const size_t sizes[] = { 0, 1, 33, 4096, 9000, 40000, SZ_64K, SZ_1M - 1 };
	struct fid_mr *mr = etf_reg(t, t->b.buf + 123, SZ_1M);
	int i;

	if (!mr)
		return;
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		etf_at(t, mr, t->b.buf + 123, 1, sizes[i]);
	etf_at(t, mr, t->b.buf + 123, SZ_1M - 777, 777);
	ET_EXPECT(t, et_quiet(&t->b));
	ET_EXPECT_EQ(t, fi_close(&mr->fid), 0);
}

/* Data that comes with a write is reported when all of the write is in the memory. */
static void etf_data(struct et *t)
{
	const size_t sizes[] = { 0, 5000, SZ_256K };
	struct fid_mr *mr = etf_reg(t, t->b.buf, SZ_1M);
	struct fi_cq_data_entry entry = { };
	struct kvec iov = { t->a.buf, 0 };
	struct fi_rma_iov rma;
	int i;

	if (!mr)
		return;
	rma = (struct fi_rma_iov) { mr->base_addr, 0, fi_mr_key(mr) };
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		iov.iov_len = sizes[i];
		rma.len = sizes[i];
		et_fill(t->a.buf, sizes[i], i);
		ET_EXPECT_EQ(t, etf_post(t, &iov, &rma, false, FI_REMOTE_CQ_DATA, 0xf00 + i, NULL),
			     0);
		ET_EXPECT_EQ(t, et_wait(&t->b, &entry), 0);
		ET_EXPECT_EQ(t, entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		ET_EXPECT_EQ(t, entry.data, 0xf00 + i);
		ET_EXPECT(t, et_filled(t->b.buf, sizes[i], i));
		etf_expect(t, &t->a, FI_RMA | FI_WRITE | FI_REMOTE_CQ_DATA);
	}
	ET_EXPECT_EQ(t, fi_close(&mr->fid), 0);
}

/* The device refuses a key with EACCES; nothing answers a packet with it. */
static void etf_expect_refused(struct et *t)
{
	struct fi_cq_err_entry error = { };

	ET_EXPECT_EQ(t, et_wait_err(&t->a, &error), 0);
	ET_EXPECT(t, error.err == EACCES || error.err == ETIMEDOUT);
	ET_EXPECT_EQ(t, (long)error.op_context, 9);
}

static void etf_refused(struct et *t)
{
	static const struct {
		s64	addr;
		u64	key;
		size_t	len;
		bool	read;
	} wrong[] = {
		{ 1, 0, SZ_8K, true }, { 1, 0, SZ_8K, false }, { 0, 1, 4, true },
		{ 0, 0x00100000, 4, true }, { 0, 0x00100000, SZ_8K, false },
	};
	struct fid_mr *mr = etf_reg(t, t->b.small, SZ_8K);
	struct kvec iov = { t->a.buf };
	struct fi_rma_iov rma;
	int i;

	if (!mr)
		return;
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		iov.iov_len = wrong[i].len;
		rma = (struct fi_rma_iov) {
			mr->base_addr + wrong[i].addr, wrong[i].len, fi_mr_key(mr) ^ wrong[i].key,
		};
		ET_EXPECT_EQ(t, etf_post(t, &iov, &rma, wrong[i].read, wrong[i].read ? 0 :
					 FI_DELIVERY_COMPLETE, 0, (void *)9), 0);
		etf_expect_refused(t);
	}
	/* Neither end is dead. */
	etf_at(t, mr, t->b.small, 0, SZ_8K);
	ET_EXPECT_EQ(t, fi_close(&mr->fid), 0);
}

#define ETF_AT_ONCE	16
#define ETF_SLOT	SZ_64K

/**
 * struct etf_load - reads and writes of several lengths, as many at a time as there are slots
 * @iov: local memory by slot
 * @rma: the region's memory by slot
 * @busy: slots in use
 * @posted: number of operations that were posted
 * @done: number of completions
 * @failed: number of those with an error
 */
struct etf_load {
	struct kvec		iov[ETF_AT_ONCE];
	struct fi_rma_iov	rma[ETF_AT_ONCE];
	unsigned long		busy;
	unsigned int		posted;
	unsigned int		done;
	unsigned int		failed;
};

static void etf_load(struct et *t, struct etf_load *l, u64 base, u64 key)
{
	static const size_t lens[] = { 1, 500, 9000, 4000, ETF_SLOT };
	unsigned int i;

	for (i = 0; i < ETF_AT_ONCE; i++) {
		if (l->busy & BIT(i))
			continue;
		l->iov[i] = (struct kvec) { t->a.buf + i * ETF_SLOT, lens[l->posted % 5] };
		l->rma[i] = (struct fi_rma_iov) { base + i * ETF_SLOT, l->iov[i].iov_len, key };
		if (etf_post(t, &l->iov[i], &l->rma[i], l->posted % 4 == 3, l->posted % 4 == 1 ?
			     FI_DELIVERY_COMPLETE : 0, 0, (void *)(long)i))
			return;
		l->busy |= BIT(i);
		l->posted++;
	}
}

static void etf_drain(struct et *t, struct etf_load *l)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry error = { };
	ssize_t ret;

	while ((ret = fi_cq_read(t->a.cq, &entry, 1)) != -EAGAIN) {
		if (ret == -FI_EAVAIL) {
			ret = fi_cq_readerr(t->a.cq, &error, 0);
			entry.op_context = error.op_context;
			l->failed++;
		}
		if (!ET_EXPECT_EQ(t, ret, 1))
			return;
		ET_EXPECT(t, l->busy & BIT((long)entry.op_context));
		l->busy &= ~BIT((long)entry.op_context);
		l->done++;
	}
}

/* Load a region for some time. */
static void etf_go_on(struct et *t, struct etf_load *l, u64 base, u64 key, unsigned int msecs)
{
	const unsigned long end = jiffies + msecs_to_jiffies(msecs);

	while (time_before(jiffies, end) && !t->failed) {
		etf_load(t, l, base, key);
		etf_drain(t, l);
		usleep_range(100, 500);
	}
}

/*
 * A region is closed under load. When fi_close() has returned, nothing reaches its memory any more,
 * whatever is under way and comes later. At last the memory is freed, so that KASAN reports
 * accesses by the CPU and, as the devices are software, by them.
 */
static void etf_closed(struct et *t)
{
	const size_t len = ETF_AT_ONCE * ETF_SLOT;
	struct etf_load *l = kzalloc(sizeof(*l), GFP_KERNEL);
	u8 *mem = vmalloc(len);
	struct fid_mr *mr = mem ? etf_reg(t, mem, len) : NULL;
	unsigned int failed, i;
	unsigned long end;
	u64 base, key;

	if (!ET_EXPECT(t, mr && l))
		goto out;
	base = mr->base_addr;
	key = fi_mr_key(mr);
	memset(t->a.buf, 1, len);
	for (i = 0; i < ET_TIMEOUT / 500 && l->done < ETF_AT_ONCE; i++)
		etf_go_on(t, l, base, key, 500);
	ET_EXPECT(t, l->done >= ETF_AT_ONCE);
	failed = l->failed;
	etf_load(t, l, base, key);
	ET_EXPECT_EQ(t, fi_close(&mr->fid), 0);
	memset(mem, 0x6b, len);
	etf_go_on(t, l, base, key, 500);
	ET_EXPECT(t, !memchr_inv(mem, 0x6b, len));
	vfree(mem);
	mem = NULL;
	etf_go_on(t, l, base, key, 500);
	end = jiffies + msecs_to_jiffies(ET_TIMEOUT);
	while (l->busy && time_before(jiffies, end)) {
		etf_drain(t, l);
		msleep(20);
	}
	ET_EXPECT_EQ(t, l->busy, 0);
	ET_EXPECT(t, l->failed > failed);
out:
	vfree(mem);
	kfree(l);
}

/* Where memory is bounced there are no regions, also not for packets, and messages arrive. */
static void etf_bounced(struct et *t)
{
	struct fid_mr *mr;
	int i;

	for (i = 0; i < 3; i++) {
		ET_EXPECT_EQ(t, fi_mr_reg(t->b.domain, t->b.small, SZ_4K, ETF_REMOTE, 0, 0, 0, &mr,
					  NULL), -EOPNOTSUPP);
		ET_EXPECT_EQ(t, fi_mr_reg(t->b.domain, t->b.buf, SZ_1M, FI_REMOTE_READ, 0, 0, 0,
					  &mr, NULL), -EOPNOTSUPP);
		et_fill(t->a.buf, SZ_256K, i);
		ET_EXPECT_EQ(t, fi_recv(t->b.ep, t->b.buf, SZ_256K, NULL, FI_ADDR_UNSPEC, NULL), 0);
		ET_EXPECT_EQ(t, fi_send(t->a.ep, t->a.buf, SZ_256K, NULL, t->a.peer, NULL), 0);
		etf_expect(t, &t->b, FI_MSG | FI_RECV);
		etf_expect(t, &t->a, FI_MSG | FI_SEND);
		ET_EXPECT(t, et_filled(t->b.buf, SZ_256K, i));
	}
}

const struct et_case et_far_cases[] = {
	{ "far_sizes", etf_sizes, .rdm = true, .caps = FI_RMA },
	{ "far_data", etf_data, .rdm = true, .caps = FI_RMA },
	{ "far_refused", etf_refused, .rdm = true, .caps = FI_RMA },
	{ "far_closed", etf_closed, .rdm = true, .caps = FI_RMA },
	{ "far_bounced", etf_bounced, .rdm = true, .caps = FI_RMA, .alone = true },
	{ }
};
