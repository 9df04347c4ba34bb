// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory of the loopback provider: regions, access to them, and its limits. */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>
#include <kofi/provider.h>
#include "loop_test.h"

#define LOOP_REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct loop_pair *loop_rma_pair(struct kunit *test)
{
	return loop_pair(test, (struct loop_opts) {});
}

static void loop_region(struct kunit *test, struct loop_pair *p, void *buf,
			size_t len, u64 access)
{
	KUNIT_ASSERT_EQ(test, fi_mr_reg(p->domain, buf, len, access, 0, 0, 0,
					&p->mr, NULL), 0);
}

static void loop_write_read(struct kunit *test)
{
	struct loop_pair *p = loop_rma_pair(test);
	u8 *remote = vmalloc(LOOP_BUF);
	size_t i, at = 3 * PAGE_SIZE - 5, len = 2 * PAGE_SIZE + 9;

	KUNIT_ASSERT_NOT_NULL(test, remote);
	memset(remote, 0xa5, LOOP_BUF);
	for (i = 0; i < len; i++)
		p->a.buf[i] = i * 3;
	loop_region(test, p, remote + 11, LOOP_BUF - 11, LOOP_REMOTE);
	KUNIT_EXPECT_EQ(test, fi_write(p->a.ep, p->a.buf, len, NULL, p->b.addr,
				       p->mr->base_addr + at,
				       fi_mr_key(p->mr), loop_ctx(1)), 0);
	loop_await_ok(test, &p->a, loop_ctx(1), FI_RMA | FI_WRITE);
	KUNIT_EXPECT_MEMEQ(test, remote + 11 + at, p->a.buf, len);
	KUNIT_EXPECT_EQ(test, remote[11 + at - 1], 0xa5);
	KUNIT_EXPECT_EQ(test, remote[11 + at + len], 0xa5);

	memset(p->a.buf, 0, len);
	KUNIT_EXPECT_EQ(test, fi_read(p->a.ep, p->a.buf, len, NULL, p->b.addr,
				      p->mr->base_addr + at, fi_mr_key(p->mr),
				      loop_ctx(2)), 0);
	loop_await_ok(test, &p->a, loop_ctx(2), FI_RMA | FI_READ);
	KUNIT_EXPECT_MEMEQ(test, p->a.buf, remote + 11 + at, len);
	/* The target gets no completions. */
	loop_expect_quiet(test, &p->b);
	LOOP_CLOSE(p->mr);
	vfree(remote);
}

/* Transfers between several local segments and several remote pieces. */
static void loop_scattered(struct kunit *test)
{
	struct loop_pair *p = loop_rma_pair(test);
	struct kvec kvec[2] = { { p->a.buf, 300 }, { p->a.buf + 1000, 500 } };
	struct fi_rma_iov rma[3];
	struct fi_msg_rma msg = {
		.addr = p->b.addr, .rma_iov = rma, .rma_iov_count = 3,
		.context = loop_ctx(1),
	};
	size_t i;

	for (i = 0; i < 1500; i++)
		p->a.buf[i] = i * 7;
	loop_region(test, p, p->b.buf, LOOP_BUF, FI_REMOTE_WRITE);
	for (i = 0; i < 3; i++) {
		rma[i].addr = p->mr->base_addr + i * 5000;
		rma[i].key = fi_mr_key(p->mr);
		rma[i].len = i < 2 ? 100 : 600;
	}
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, kvec, 2, 800);
	KUNIT_ASSERT_EQ(test, fi_writemsg(p->a.ep, &msg, FI_COMPLETION), 0);
	loop_await_ok(test, &p->a, loop_ctx(1), FI_RMA | FI_WRITE);
	KUNIT_EXPECT_MEMEQ(test, p->b.buf, p->a.buf, 100);
	KUNIT_EXPECT_MEMEQ(test, p->b.buf + 5000, p->a.buf + 100, 100);
	KUNIT_EXPECT_MEMEQ(test, p->b.buf + 10000, p->a.buf + 200, 100);
	KUNIT_EXPECT_MEMEQ(test, p->b.buf + 10100, p->a.buf + 1000, 500);

	rma[2].len--;
	KUNIT_EXPECT_EQ(test, fi_writemsg(p->a.ep, &msg, 0), -EINVAL);
	rma[2].len = SIZE_MAX;
	KUNIT_EXPECT_EQ(test, fi_writemsg(p->a.ep, &msg, 0), -EINVAL);
	msg.rma_iov_count = 5;
	KUNIT_EXPECT_EQ(test, fi_writemsg(p->a.ep, &msg, 0), -EINVAL);
	msg.rma_iov_count = 0;
	KUNIT_EXPECT_EQ(test, fi_writemsg(p->a.ep, &msg, 0), -EINVAL);
}

static const struct loop_bad {
	const char	*name;
	u64		addr;		/* added to the base */
	size_t		len;
	u64		key;		/* added to the key */
	bool		read;
	int		err;
	const char	*why;
} loop_bads[] = {
	{ "all", 0, 4096, 0, false, 0 },
	{ "nothing at the end", 4096, 0, 0, false, 0 },
	{ "one too many", 0, 4097, 0, false, EACCES, "Outside of the region" },
	{ "one too far", 1, 4096, 0, false, EACCES, "Outside of the region" },
	{ "before", -1, 1, 0, false, EACCES, "Outside of the region" },
	{ "behind", 4097, 0, 0, false, EACCES, "Outside of the region" },
	{ "wraps", U64_MAX - 10, 100, 0, false, EACCES,
	  "Outside of the region" },
	{ "read", 0, 1, 0, true, EACCES, "The region doesn't allow this access" },
	{ "no such slot", 0, 1, 1000, false, EKEYREJECTED,
	  "No region has this key" },
	{ "old generation", 0, 1, -(1ULL << 32), false, EKEYREJECTED,
	  "No region has this key" },
	{ "no key", 0, 1, U64_MAX / 2, false, EKEYREJECTED,
	  "No region has this key" },
};

KUNIT_ARRAY_PARAM_DESC(loop_bad, loop_bads, name);

/* Addresses and keys of a peer are validated. */
static void loop_access(struct kunit *test)
{
	const struct loop_bad *bad = test->param_value;
	struct loop_pair *p = loop_rma_pair(test);
	struct loop_comp comp;
	u64 addr, key;

	memset(p->b.buf, 0xa5, LOOP_BUF);
	loop_region(test, p, p->b.buf + 4096, 4096, FI_REMOTE_WRITE);
	addr = p->mr->base_addr + bad->addr;
	key = fi_mr_key(p->mr) + bad->key;
	KUNIT_ASSERT_EQ(test, bad->read ?
			      fi_read(p->a.ep, p->a.buf, bad->len, NULL,
				      p->b.addr, addr, key, loop_ctx(1)) :
			      fi_write(p->a.ep, p->a.buf, bad->len, NULL,
				       p->b.addr, addr, key, loop_ctx(1)), 0);
	loop_await(test, &p->a, loop_ctx(1), &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, bad->err);
	if (!bad->err)
		return;
	KUNIT_EXPECT_STREQ(test, fi_cq_strerror(p->a.cq, comp.error.prov_errno,
						NULL, NULL, 0), bad->why);
	KUNIT_EXPECT_NULL(test, memchr_inv(p->b.buf, 0xa5, LOOP_BUF));
}

/* Wait until the target's worker has used the reserve of unsolicited completions. */
static void loop_starves(struct kunit *test, struct loop_end *end)
{
	struct kofi_cq *cq = container_of(end->cq, struct kofi_cq, cq_fid);

	KUNIT_EXPECT_TRUE(test, kofi_soon(!atomic_read(&cq->reserve)));
	/* Long enough for further completions, if they came in error. */
	msleep(50);
}

/*
 * Writes with data wait while the target's queue isn't read, continue when it is read, and
 * keep their order.
 */
static void loop_held_back(struct kunit *test)
{
	struct loop_pair *p = loop_rma_pair(test);
	struct loop_comp comp;
	unsigned int done, i;

	loop_region(test, p, p->b.buf, LOOP_BUF, FI_REMOTE_WRITE);
	for (i = 0; i < 100; i++)
		KUNIT_ASSERT_EQ(test, fi_writedata(p->a.ep, p->a.buf, 4, NULL,
						   i, p->b.addr,
						   p->mr->base_addr,
						   fi_mr_key(p->mr),
						   loop_ctx(1)), 0);
	/* Some writes are delivered. The others had enough time, if the target delivered them. */
	loop_await_ok(test, &p->a, loop_ctx(1),
		      FI_RMA | FI_WRITE | FI_REMOTE_CQ_DATA);
	loop_starves(test, &p->b);
	for (done = 1; loop_read(&p->a, &comp); done++)
		;
	KUNIT_EXPECT_LT(test, done, 100);
	for (i = 0; i < 100; i++) {
		loop_await(test, &p->b, NULL, &comp);
		KUNIT_ASSERT_EQ(test, comp.entry.data, i);
		KUNIT_EXPECT_EQ(test, comp.entry.len, 4);
		KUNIT_EXPECT_EQ(test, comp.src, p->a.addr);
		KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_RMA |
				FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	}
	for (; done < 100; done++)
		loop_await_ok(test, &p->a, loop_ctx(1),
			      FI_RMA | FI_WRITE | FI_REMOTE_CQ_DATA);
	loop_expect_quiet(test, &p->b);
}

/* Waiting writes complete when the target is closed. */
static void loop_held_back_close(struct kunit *test)
{
	struct loop_pair *p = loop_rma_pair(test);
	unsigned int i, refused = 0;
	struct loop_comp comp;

	loop_region(test, p, p->b.buf, LOOP_BUF, FI_REMOTE_WRITE);
	for (i = 0; i < 50; i++)
		KUNIT_ASSERT_EQ(test, fi_inject_writedata(p->a.ep, p->a.buf, 4,
							  i, p->b.addr,
							  p->mr->base_addr,
							  fi_mr_key(p->mr)),
				0);
	loop_starves(test, &p->b);
	LOOP_CLOSE(p->b.ep);
	while (loop_read(&p->a, &comp)) {
		KUNIT_EXPECT_EQ(test, comp.error.err, EHOSTUNREACH);
		refused++;
	}
	KUNIT_EXPECT_GT(test, refused, 0);
	KUNIT_EXPECT_LT(test, refused, 50);
	/* Reading the completions of delivered writes doesn't access the closed endpoint. */
	for (i = 0; loop_read(&p->b, &comp); i++)
		KUNIT_EXPECT_EQ(test, comp.entry.data, i);
	KUNIT_EXPECT_EQ(test, i + refused, 50);
}

/* Counters of reads and writes by peers. Refused ones don't count. */
static void loop_events(struct kunit *test)
{
	struct loop_pair *p = loop_pair_open(test, (struct loop_opts) {});
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_BYTES };
	struct fid_cntr *writes;
	struct loop_comp comp;

	KUNIT_ASSERT_EQ(test, fi_cntr_open(p->domain, &attr, &p->cntr, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_cntr_open(p->domain, &attr, &writes, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(p->b.ep, &p->cntr->fid, FI_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(p->b.ep, &writes->fid, FI_REMOTE_WRITE), 0);
	loop_end_enable(test, p, &p->a);
	loop_end_enable(test, p, &p->b);
	loop_region(test, p, p->b.buf, 100, LOOP_REMOTE);
	KUNIT_ASSERT_EQ(test, fi_read(p->a.ep, p->a.buf, 30, NULL, p->b.addr, p->mr->base_addr,
				      fi_mr_key(p->mr), loop_ctx(1)), 0);
	loop_await_ok(test, &p->a, loop_ctx(1), FI_RMA | FI_READ);
	KUNIT_ASSERT_EQ(test, fi_write(p->a.ep, p->a.buf, 7, NULL, p->b.addr, p->mr->base_addr,
				       fi_mr_key(p->mr), loop_ctx(2)), 0);
	loop_await_ok(test, &p->a, loop_ctx(2), FI_RMA | FI_WRITE);
	KUNIT_ASSERT_EQ(test, fi_write(p->a.ep, p->a.buf, 101, NULL, p->b.addr,
				       p->mr->base_addr, fi_mr_key(p->mr), loop_ctx(3)), 0);
	loop_await(test, &p->a, loop_ctx(3), &comp);
	KUNIT_EXPECT_EQ(test, comp.error.err, EACCES);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(p->cntr), 30ULL);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(writes), 7ULL);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(writes), 0ULL);
	/* The target still gets no completions. */
	loop_expect_quiet(test, &p->b);
	LOOP_CLOSE(p->b.ep);
	LOOP_CLOSE(writes);
}

static void loop_no_events(struct kunit *test)
{
	struct loop_pair *p = loop_pair_open(test, (struct loop_opts) {
		.caps = FI_MSG | FI_RMA, .undirected = true,
	});
	struct fi_cntr_attr attr = { };

	KUNIT_ASSERT_EQ(test, fi_cntr_open(p->domain, &attr, &p->cntr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(p->a.ep, &p->cntr->fid, FI_REMOTE_READ), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(p->a.ep, &p->cntr->fid, FI_REMOTE_WRITE), -EOPNOTSUPP);
}

/* Shapes of memory: valid regions, and those with gaps. */
static void loop_shapes(struct kunit *test)
{
	struct loop_pair *p = loop_rma_pair(test);
	u8 *buf = (u8 *)__get_free_pages(GFP_KERNEL, 2);
	struct kvec kvec[2] = {
		{ buf + 100, PAGE_SIZE - 100 }, { buf + 2 * PAGE_SIZE, 50 },
	};
	struct bio_vec bvec[2];
	struct scatterlist sgl[2];
	struct fi_mr_attr attr = {
		.iov_count = 2, .access = FI_REMOTE_READ,
	};
	u8 base[8];
	size_t size = sizeof(base);
	u64 addr;
	int type;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	get_random_bytes(buf, 4 * PAGE_SIZE);
	bvec_set_page(&bvec[0], virt_to_page(buf), PAGE_SIZE - 100, 100);
	bvec_set_page(&bvec[1], virt_to_page(buf), 50, 2 * PAGE_SIZE);
	sg_init_table(sgl, 2);
	sg_set_buf(&sgl[0], buf + 100, PAGE_SIZE - 100);
	sg_set_buf(&sgl[1], buf + 2 * PAGE_SIZE, 50);
	for (type = FI_MR_KVEC; type <= FI_MR_SGL; type++) {
		attr.type = type;
		if (type == FI_MR_KVEC)
			attr.mr_iov = kvec;
		else if (type == FI_MR_BVEC)
			attr.bvec = bvec;
		else
			attr.sgl = sgl;
		KUNIT_ASSERT_EQ(test, fi_mr_regattr(p->domain, &attr, 0,
						    &p->mr), 0);
		KUNIT_EXPECT_EQ(test, fi_mr_raw_attr(p->mr, &addr, base, &size,
						     0), 0);
		KUNIT_EXPECT_EQ(test, fi_read(p->a.ep, p->a.buf,
					      PAGE_SIZE - 50, NULL, p->b.addr,
					      addr, *(u64 *)base, NULL), 0);
		loop_await_ok(test, &p->a, NULL, FI_RMA | FI_READ);
		KUNIT_EXPECT_MEMEQ(test, p->a.buf, buf + 100, PAGE_SIZE - 100);
		KUNIT_EXPECT_MEMEQ(test, p->a.buf + PAGE_SIZE - 100,
				   buf + 2 * PAGE_SIZE, 50);
		LOOP_CLOSE(p->mr);
	}

	attr.type = FI_MR_KVEC;
	attr.mr_iov = kvec;
	kvec[0].iov_len--;
	KUNIT_EXPECT_EQ(test, fi_mr_regattr(p->domain, &attr, 0, &p->mr),
			-EINVAL);
	kvec[0].iov_len++;
	kvec[1].iov_base++;
	KUNIT_EXPECT_EQ(test, fi_mr_regattr(p->domain, &attr, 0, &p->mr),
			-EINVAL);
	kvec[1].iov_len = 0;
	KUNIT_EXPECT_EQ(test, fi_mr_regattr(p->domain, &attr, 0, &p->mr),
			-EINVAL);
	attr.iov_count = 1;
	attr.type = FI_MR_BVEC;
	attr.bvec = bvec;
	bvec_set_page(&bvec[0], virt_to_page(buf), UINT_MAX, 0);
	KUNIT_EXPECT_EQ(test, fi_mr_regattr(p->domain, &attr, 0, &p->mr),
			-EMSGSIZE);
	free_pages((unsigned long)buf, 2);
}

static void loop_post_reg(struct kunit *test)
{
	struct loop_pair *p = loop_rma_pair(test);
	struct kvec kvec = { p->b.buf, PAGE_SIZE };
	struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &kvec, .iov_count = 1,
		.access = FI_REMOTE_WRITE, .context = loop_ctx(1),
	};
	const struct fi_mr_alloc_attr alloc = {
		.max_pages = 2, .access = FI_REMOTE_WRITE, .cq = p->b.cq,
	};
	u64 key;

	KUNIT_ASSERT_EQ(test, fi_mr_alloc(p->domain, &alloc, &p->mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_key(p->mr), FI_KEY_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, fi_mr_post_inval(p->mr, 0, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(p->mr, &attr, FI_SEND),
			-FI_EBADFLAGS);
	attr.access = FI_REMOTE_READ;
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(p->mr, &attr, 0), -EINVAL);
	attr.access = FI_REMOTE_WRITE;
	kvec.iov_len = 2 * PAGE_SIZE + 1;
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(p->mr, &attr, 0), -EMSGSIZE);
	kvec.iov_len = PAGE_SIZE;

	KUNIT_ASSERT_EQ(test, fi_mr_post_reg(p->mr, &attr, FI_COMPLETION), 0);
	/* The caller may reuse its list. */
	kvec = (struct kvec) { };
	loop_await_ok(test, &p->b, loop_ctx(1), 0);
	kvec = (struct kvec) { p->b.buf, PAGE_SIZE };
	key = fi_mr_key(p->mr);
	KUNIT_EXPECT_NE(test, key, FI_KEY_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(p->mr, &attr, 0), -EBUSY);
	KUNIT_ASSERT_EQ(test, fi_mr_post_inval(p->mr, FI_COMPLETION,
					       loop_ctx(2)), 0);
	loop_await_ok(test, &p->b, loop_ctx(2), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_key(p->mr), FI_KEY_NOTAVAIL);

	/* Register the region again, which gives it another key, and without a completion. */
	KUNIT_ASSERT_EQ(test, fi_mr_post_reg(p->mr, &attr, 0), 0);
	loop_expect_quiet(test, &p->b);
	KUNIT_EXPECT_NE(test, fi_mr_key(p->mr), FI_KEY_NOTAVAIL);
	KUNIT_EXPECT_NE(test, fi_mr_key(p->mr), key);
	KUNIT_ASSERT_EQ(test, fi_write(p->a.ep, p->a.buf, 1, NULL, p->b.addr,
				       p->mr->base_addr, key, loop_ctx(3)), 0);
	loop_await_err(test, &p->a, loop_ctx(3), EKEYREJECTED);
}

/* Posted requests complete before fi_close() of the region returns. */
static void loop_region_close(struct kunit *test)
{
	struct loop_pair *p = loop_rma_pair(test);
	struct kvec kvec = { p->b.buf, PAGE_SIZE };
	const struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &kvec, .iov_count = 1,
		.access = FI_REMOTE_WRITE, .context = loop_ctx(1),
	};
	const struct fi_mr_alloc_attr alloc = {
		.max_pages = 2, .access = FI_REMOTE_WRITE, .cq = p->b.cq,
	};
	struct loop_comp comp;

	KUNIT_ASSERT_EQ(test, fi_mr_alloc(p->domain, &alloc, &p->mr, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_mr_post_reg(p->mr, &attr, FI_COMPLETION), 0);
	LOOP_CLOSE(p->mr);
	KUNIT_EXPECT_EQ(test, loop_read(&p->b, &comp), 1);
	KUNIT_EXPECT_EQ(test, comp.error.err, 0);
	KUNIT_EXPECT_PTR_EQ(test, comp.entry.op_context, loop_ctx(1));
}

/* A domain has at most as many regions as it was opened for. */
static void loop_region_count(struct kunit *test)
{
	struct loop_pair *p = loop_rma_pair(test);
	const size_t most = p->info->domain_attr->mr_cnt;
	struct fid_domain *domain;
	struct fid_mr *mr[2], *more;

	p->info->domain_attr->mr_cnt = most + 1;
	KUNIT_EXPECT_EQ(test, fi_domain(p->fabric, p->info, &domain, NULL), -EINVAL);
	p->info->domain_attr->mr_cnt = 2;
	KUNIT_ASSERT_EQ(test, fi_domain(p->fabric, p->info, &domain, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(domain, p->b.buf, 1, FI_REMOTE_READ, 0, 0, 0,
					&mr[0], NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(domain, p->b.buf, 1, FI_REMOTE_READ, 0, 0, 0,
					&mr[1], NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_reg(domain, p->b.buf, 1, FI_REMOTE_READ, 0, 0, 0,
					&more, NULL), -FI_ENOMR);
	KUNIT_EXPECT_EQ(test, fi_close(&mr[0]->fid), 0);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(domain, p->b.buf, 1, FI_REMOTE_READ, 0, 0, 0,
					&mr[0], NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr[0]->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr[1]->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&domain->fid), 0);
	p->info->domain_attr->mr_cnt = 0;
	KUNIT_ASSERT_EQ(test, fi_domain(p->fabric, p->info, &domain, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&domain->fid), 0);
}

static struct kunit_case loop_rma_cases[] = {
	KUNIT_CASE(loop_write_read),
	KUNIT_CASE(loop_scattered),
	KUNIT_CASE_PARAM(loop_access, loop_bad_gen_params),
	KUNIT_CASE(loop_held_back),
	KUNIT_CASE(loop_held_back_close),
	KUNIT_CASE(loop_events),
	KUNIT_CASE(loop_no_events),
	KUNIT_CASE(loop_shapes),
	KUNIT_CASE(loop_post_reg),
	KUNIT_CASE(loop_region_close),
	KUNIT_CASE(loop_region_count),
	{}
};

static struct kunit_suite loop_rma_suite = {
	.name		= "kofi_loop_rma",
	.test_cases	= loop_rma_cases,
};

kunit_test_suite(loop_rma_suite);

MODULE_DESCRIPTION("KUnit suite of the loopback provider's memory");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
