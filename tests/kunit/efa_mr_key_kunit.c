// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Regions of fabric efa by their keys, and access to them by the CPU. */
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>
#include "crew.h"
#include "efa_rdm_scene.h"

#define REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define KEY_BYTES	(6 * PAGE_SIZE)

/* A region of pieces that a case registers, and the same memory in one piece. */
struct key_scene {
	struct kunit		*test;
	struct rdm_pair		*pair;
	struct kefa_domain	*dom;
	u8			*pages;
	u8			*mem;
	struct fid_mr		*mr;
};

static void key_free(void *data)
{
	struct key_scene *s = data;

	if (s->mr)
		WARN_ON(fi_close(&s->mr->fid));
	vunmap(s->mem);
	free_pages_exact(s->pages, KEY_BYTES);
}

static struct key_scene *key_scene(struct kunit *test)
{
	struct key_scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->test = test;
	s->pair = rdm_pair_new(test, NULL);
	s->dom = to_kefa_domain(s->pair->domain);
	s->pages = alloc_pages_exact(KEY_BYTES, GFP_KERNEL | __GFP_ZERO);
	KUNIT_ASSERT_NOT_NULL(test, s->pages);
	s->mem = rdm_scattered(test, s->pages, KEY_BYTES);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, key_free, s), 0);
	return s;
}

static struct kefa_named key_named(struct key_scene *s, u64 off, u64 len)
{
	return (struct kefa_named) {
		.addr = s->mr->base_addr + off, .len = len, .key = fi_mr_key(s->mr),
	};
}

static void key_reg(struct key_scene *s, void *buf, size_t len, u64 access)
{
	KUNIT_ASSERT_EQ(s->test, fi_mr_reg(s->pair->domain, buf, len, access, 0, 0, 0, &s->mr,
					   NULL), 0);
}

static void key_close(struct key_scene *s)
{
	KUNIT_EXPECT_EQ(s->test, fi_close(&s->mr->fid), 0);
	s->mr = NULL;
}

/* --- memory of all kinds --- */

enum kind { ONE, PIECES, BVEC, SGL };

static const struct kind_case {
	const char	*name;
	enum kind	kind;
	size_t		skip;	/* bytes before the region */
} kinds[] = {
	{ "one piece", ONE, 0 },
	{ "one piece, odd", ONE, 13 },
	{ "pieces", PIECES, 0 },
	{ "pieces, odd", PIECES, PAGE_SIZE - 1 },
	{ "bvec", BVEC, 77 },
	{ "sgl", SGL, 4000 },
};

KUNIT_ARRAY_PARAM_DESC(kind, kinds, name);

/* Register @mem of the scene in the form of a case. Return: the region's first byte. */
static u8 *key_reg_kind(struct key_scene *s, const struct kind_case *c, size_t len)
{
	u8 *first = (c->kind == ONE ? s->pages : s->mem) + c->skip;
	struct bio_vec bvec[KEY_BYTES / PAGE_SIZE];
	struct scatterlist sgl[KEY_BYTES / PAGE_SIZE];
	struct fi_mr_attr attr = { .access = REMOTE };
	size_t done, n;

	if (c->kind == ONE || c->kind == PIECES) {
		key_reg(s, first, len, REMOTE);
		return first;
	}
	sg_init_table(sgl, ARRAY_SIZE(sgl));
	for (done = 0; done < len; done += n, attr.iov_count++) {
		n = min_t(size_t, len - done, PAGE_SIZE - offset_in_page(first + done));
		bvec_set_page(&bvec[attr.iov_count], vmalloc_to_page(first + done), n,
			      offset_in_page(first + done));
		sg_set_page(&sgl[attr.iov_count], vmalloc_to_page(first + done), n,
			    offset_in_page(first + done));
	}
	attr.type = c->kind == BVEC ? FI_MR_BVEC : FI_MR_SGL;
	attr.bvec = bvec;
	if (c->kind == SGL)
		attr.sgl = sgl;
	KUNIT_ASSERT_EQ(s->test, fi_mr_regattr(s->pair->domain, &attr, 0, &s->mr), 0);
	return first;
}

static void key_kinds(struct kunit *test)
{
	static const size_t offs[] = { 0, 1, 83, PAGE_SIZE - 1, PAGE_SIZE, 2 * PAGE_SIZE + 5 };
	static const size_t lens[] = { 1, 8, 4095, 2 * PAGE_SIZE + 3 };
	const struct kind_case *c = test->param_value;
	struct key_scene *s = key_scene(test);
	const size_t len = 5 * PAGE_SIZE - 9;
	u8 *first = key_reg_kind(s, c, len);
	u8 *data = s->pair->out, *copy = s->pair->in;
	struct kefa_named mem;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(offs); i++) {
		for (j = 0; j < ARRAY_SIZE(lens); j++) {
			memset(s->pages, 0xa5, KEY_BYTES);
			efa_fill(data, lens[j], i + j);
			/* The access begins behind the beginning of what was checked. */
			mem = key_named(s, offs[i], len - offs[i]);
			KUNIT_ASSERT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_WRITE),
					KEFA_FAULT_NONE);
			KUNIT_EXPECT_EQ(test, kefa_mr_write(s->dom, &mem, 2, data, lens[j]),
					KEFA_FAULT_NONE);
			KUNIT_EXPECT_MEMEQ(test, first + offs[i] + 2, data, lens[j]);
			KUNIT_EXPECT_EQ(test, first[offs[i] + 1], 0xa5);
			KUNIT_EXPECT_EQ(test, first[offs[i] + 2 + lens[j]], 0xa5);
			KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_READ),
					KEFA_FAULT_NONE);
			KUNIT_EXPECT_EQ(test, kefa_mr_read(s->dom, &mem, 2, copy, lens[j]),
					KEFA_FAULT_NONE);
			KUNIT_EXPECT_MEMEQ(test, copy, data, lens[j]);
		}
	}
	/* The last byte. */
	mem = key_named(s, len - 1, 1);
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_WRITE), KEFA_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, kefa_mr_write(s->dom, &mem, 0, "x", 1), KEFA_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, first[len - 1], 'x');
	KUNIT_EXPECT_EQ(test, first[len], 0xa5);
}

/* The device grants what it can; by the same key the CPU does the rest. */
static void key_device(struct kunit *test)
{
	struct key_scene *s = key_scene(test);
	struct efake_qp *qp = efake_qp(s->pair->fake, s->dom->mrq.hq.qpn);
	struct kefa_named mem;
	unsigned int can;

	for (can = 0; can < 4; can++) {
		s->pair->fake->dev->rdma_read = can & 1;
		s->pair->fake->dev->rdma_write = can & 2;
		key_reg(s, s->mem, 100, REMOTE);
		KUNIT_EXPECT_EQ(test, qp->access, IB_ACCESS_LOCAL_WRITE |
				(can & 1 ? IB_ACCESS_REMOTE_READ : 0) |
				(can & 2 ? IB_ACCESS_REMOTE_WRITE : 0));
		mem = key_named(s, 0, 1);
		KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_WRITE),
				KEFA_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, kefa_mr_write(s->dom, &mem, 0, "x", 1), KEFA_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_READ),
				KEFA_FAULT_NONE);
		key_close(s);
	}
}

/* --- refusals --- */

static const struct fault_case {
	const char	*name;
	s64		addr;	/* added to the base */
	u64		len;
	u64		key;	/* exclusive-ored with the key */
	u64		access;
	enum kefa_fault	fault;
} faults[] = {
	{ "all", 0, 1000, 0, FI_REMOTE_WRITE, KEFA_FAULT_NONE },
	{ "nothing at the end", 1000, 0, 0, FI_REMOTE_WRITE, KEFA_FAULT_NONE },
	{ "one too many", 0, 1001, 0, FI_REMOTE_WRITE, KEFA_FAULT_RANGE },
	{ "one too far", 1, 1000, 0, FI_REMOTE_WRITE, KEFA_FAULT_RANGE },
	{ "before", -1, 1, 0, FI_REMOTE_WRITE, KEFA_FAULT_RANGE },
	{ "behind", 1001, 0, 0, FI_REMOTE_WRITE, KEFA_FAULT_RANGE },
	{ "wraps", 10, U64_MAX - 5, 0, FI_REMOTE_WRITE, KEFA_FAULT_RANGE },
	{ "read", 0, 1, 0, FI_REMOTE_READ, KEFA_FAULT_ACCESS },
	{ "no region", 0, 1, 0x40, FI_REMOTE_WRITE, KEFA_FAULT_KEY },
	{ "other generation", 0, 1, 0x100000, FI_REMOTE_WRITE, KEFA_FAULT_KEY },
	{ "upper half", 0, 1, 1ULL << 32, FI_REMOTE_WRITE, KEFA_FAULT_KEY },
	{ "highest bit", 0, 1, 1ULL << 63, FI_REMOTE_WRITE, KEFA_FAULT_KEY },
};

KUNIT_ARRAY_PARAM_DESC(fault, faults, name);

static void key_faults(struct kunit *test)
{
	const struct fault_case *c = test->param_value;
	struct key_scene *s = key_scene(test);
	struct kefa_named mem;

	key_reg(s, s->pages + 100, 1000, FI_REMOTE_WRITE);
	mem = key_named(s, c->addr, c->len);
	mem.key ^= c->key;
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, c->access), c->fault);
	key_close(s);
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, c->access), KEFA_FAULT_KEY);
}

/* The provider's own regions are for the device, and regions of efa-direct, too. */
static void key_of_others(struct kunit *test)
{
	struct efa_scene *direct = efa_scene_new(test, NULL);
	struct kefa_named mem = { .len = 1 };
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(direct->domain, direct->buf, 10, REMOTE, 0, 0, 0, &mr,
					NULL), 0);
	mem.addr = mr->base_addr;
	mem.key = fi_mr_key(mr);
	KUNIT_EXPECT_EQ(test, kefa_mr_check(efa_dom(direct), &mem, FI_REMOTE_READ),
			KEFA_FAULT_KEY);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static void key_own(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	struct kefa_domain *dom = to_kefa_domain(pair->domain);
	struct kefa_named mem = { .len = 1 };
	struct efake_wr *wr;

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, RDM_READ_FROM, 6, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, RDM_READ_FROM, 6, 2), 0);
	wr = rdm_run_until(pair, 1, 0);
	KUNIT_ASSERT_NOT_NULL(test, wr);
	mem.addr = wr->raddr;
	mem.key = wr->rkey;
	KUNIT_EXPECT_TRUE(test, efake_valid(pair->fake, wr->rkey));
	KUNIT_EXPECT_EQ(test, kefa_mr_check(dom, &mem, FI_REMOTE_READ), KEFA_FAULT_KEY);
	rdm_run(pair);
}

/* The CPU doesn't access regions if the device wouldn't see that. */
static void key_incoherent(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct fid_domain *domain;

	KUNIT_EXPECT_TRUE(test, to_kefa_domain(pair->domain)->cpu_rma);
	pair->fake->incoherent = true;
	KUNIT_ASSERT_EQ(test, fi_domain(pair->fabric, pair->info, &domain, NULL), 0);
	KUNIT_EXPECT_FALSE(test, to_kefa_domain(domain)->cpu_rma);
	KUNIT_EXPECT_EQ(test, fi_close(&domain->fid), 0);
}

/* A device that gives two regions one key gets no further region with it. */
static void key_clash(struct kunit *test)
{
	struct key_scene *s = key_scene(test);
	struct efake *fake = s->pair->fake;
	struct fid_mr *mr;

	key_reg(s, s->pages, 100, REMOTE);
	fake->next_key = (kefa_hw_key_slot(fi_mr_key(s->mr)) | 0x300000) - 1;
	KUNIT_EXPECT_EQ(test, fi_mr_reg(s->pair->domain, s->pages, 100, REMOTE, 0, 0, 0, &mr,
					NULL), -FI_ENOMR);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(s->pair->domain, s->pages, 100, REMOTE, 0, 0, 0, &mr,
					NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* --- the end of registrations --- */

static struct fid_mr *key_alloc(struct key_scene *s)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 8, .access = REMOTE, .cq = s->pair->end[0].cq,
	};
	struct fid_mr *mr = NULL;

	KUNIT_ASSERT_EQ(s->test, fi_mr_alloc(s->pair->domain, &attr, &mr, NULL), 0);
	return mr;
}

static void key_post_reg(struct key_scene *s, u64 access)
{
	struct kvec iov = { s->mem + 5, 2 * PAGE_SIZE };
	const struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &iov, .iov_count = 1, .access = access,
	};

	KUNIT_EXPECT_EQ(s->test, fi_mr_post_reg(s->mr, &attr, 0), 0);
	efake_settle();
}

static void key_post_inval(struct key_scene *s)
{
	KUNIT_EXPECT_EQ(s->test, fi_mr_post_inval(s->mr, 0, NULL), 0);
	efake_settle();
}

/* Keys repeat after 16 registrations, but an old access doesn't become valid again. */
static void key_generations(struct kunit *test)
{
	struct key_scene *s = key_scene(test);
	struct kefa_named first, now;
	unsigned int i;

	s->mr = key_alloc(s);
	key_post_reg(s, FI_REMOTE_WRITE);
	first = key_named(s, 0, 10);
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &first, FI_REMOTE_WRITE), KEFA_FAULT_NONE);
	for (i = 1; i <= 16; i++) {
		key_post_inval(s);
		KUNIT_EXPECT_EQ(test, kefa_mr_write(s->dom, &first, 0, "x", 1), KEFA_FAULT_KEY);
		key_post_reg(s, FI_REMOTE_WRITE);
		KUNIT_EXPECT_EQ(test, fi_mr_key(s->mr) == first.key, i == 16);
		KUNIT_EXPECT_EQ(test, kefa_mr_write(s->dom, &first, 0, "x", 1), KEFA_FAULT_KEY);
	}
	now = first;
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &now, FI_REMOTE_WRITE), KEFA_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, kefa_mr_write(s->dom, &now, 0, "x", 1), KEFA_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, s->mem[5], 'x');
	key_post_inval(s);
}

/* Each registration may grant less than the region can have. */
static void key_granted(struct kunit *test)
{
	struct key_scene *s = key_scene(test);
	struct kefa_named mem;

	s->mr = key_alloc(s);
	key_post_reg(s, FI_REMOTE_READ);
	mem = key_named(s, 0, 10);
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_WRITE), KEFA_FAULT_ACCESS);
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_READ), KEFA_FAULT_NONE);
	key_post_inval(s);
}

/* While the device registers or invalidates, nobody has access. */
static void key_between(struct kunit *test)
{
	struct key_scene *s = key_scene(test);
	struct efake_qp *qp = efake_qp(s->pair->fake, s->dom->mrq.hq.qpn);
	struct kefa_named mem;

	s->pair->fake->manual_mr = true;
	s->mr = key_alloc(s);
	key_post_reg(s, FI_REMOTE_WRITE);
	mem = key_named(s, 0, 10);
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_WRITE), KEFA_FAULT_KEY);
	efake_wr_done(efake_sent(qp, 0), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_WRITE), KEFA_FAULT_NONE);
	key_post_inval(s);
	KUNIT_EXPECT_EQ(test, kefa_mr_write(s->dom, &mem, 0, "x", 1), KEFA_FAULT_KEY);
	/* The device fails to invalidate it, so it is destroyed, and replaced by another one. */
	efake_wr_done(efake_sent(qp, 0), 7);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_WRITE), KEFA_FAULT_KEY);
	s->pair->fake->manual_mr = false;
	key_post_reg(s, FI_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_WRITE), KEFA_FAULT_KEY);
	mem = key_named(s, 0, 10);
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_WRITE), KEFA_FAULT_NONE);
	key_post_inval(s);
}

static void key_removed(struct kunit *test)
{
	struct key_scene *s = key_scene(test);
	struct kefa_named mem;

	key_reg(s, s->mem, KEY_BYTES, FI_REMOTE_WRITE);
	mem = key_named(s, 0, KEY_BYTES);
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_WRITE), KEFA_FAULT_NONE);
	efake_remove(s->pair->fake);
	KUNIT_EXPECT_EQ(test, kefa_mr_write(s->dom, &mem, 0, "x", 1), KEFA_FAULT_KEY);
	KUNIT_EXPECT_EQ(test, kefa_mr_check(s->dom, &mem, FI_REMOTE_WRITE), KEFA_FAULT_KEY);
}

struct key_writer {
	struct key_scene	*s;
	struct kefa_named	mem;
	unsigned long		done;
	bool			stop;
};

static void key_writes(struct kofi_thread *thread)
{
	struct key_writer *w = thread->arg;
	struct kefa_named mem;

	while (!READ_ONCE(w->stop)) {
		mem = w->mem;
		if (kefa_mr_check(w->s->dom, &mem, FI_REMOTE_WRITE) ||
		    kefa_mr_write(w->s->dom, &mem, 3, w->s->pair->out, 2 * PAGE_SIZE))
			break;
		WRITE_ONCE(w->done, w->done + 1);
		cond_resched();
	}
}

/* After fi_close() has returned nothing is written any more. */
static void key_race(struct kunit *test)
{
	struct key_scene *s = key_scene(test);
	struct key_writer w = { .s = s };
	struct kofi_thread thread;
	unsigned int i;

	memset(s->pair->out, 0x11, 2 * PAGE_SIZE);
	for (i = 0; i < KOFI_ROUNDS_MIN; i++) {
		key_reg(s, s->mem, KEY_BYTES, FI_REMOTE_WRITE);
		w.mem = key_named(s, 0, 3 * PAGE_SIZE);
		w.done = 0;
		kofi_thread_start(test, &thread, key_writes, &w);
		KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(w.done)));
		key_close(s);
		memset(s->pages, 0x22, KEY_BYTES);
		kofi_thread_join(test, &thread);
		KUNIT_ASSERT_NULL(test, memchr_inv(s->pages, 0x22, KEY_BYTES));
	}
}

static struct kunit_case key_cases[] = {
	KUNIT_CASE_PARAM(key_kinds, kind_gen_params),
	KUNIT_CASE(key_device),
	KUNIT_CASE_PARAM(key_faults, fault_gen_params),
	KUNIT_CASE(key_of_others),
	KUNIT_CASE(key_own),
	KUNIT_CASE(key_incoherent),
	KUNIT_CASE(key_clash),
	KUNIT_CASE(key_generations),
	KUNIT_CASE(key_granted),
	KUNIT_CASE(key_between),
	KUNIT_CASE(key_removed),
	KUNIT_CASE(key_race),
	{}
};

static struct kunit_suite key_suite = {
	.name		= "kefa_mr_key",
	.test_cases	= key_cases,
};

kunit_test_suite(key_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, regions by their keys");
MODULE_LICENSE("Dual BSD/GPL");
