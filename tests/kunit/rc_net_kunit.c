// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory that kofi_rc hands to a device: of writes, and of regions that a peer's device reaches. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <kofi/domain.h>
#include <kofi/endpoint.h>
#include <kunit/test.h>

/* There is no provider. */
static int scene_mr_alloc(struct fid_domain *domain, const struct fi_mr_alloc_attr *attr,
			  struct fid_mr **mr, void *context);
#define fi_mr_alloc scene_mr_alloc
#include "../../ulp/rc/net.c"
#undef fi_mr_alloc

#define PAGES	8
#define PIECES	8

static struct scene {
	struct fi_domain_attr	domain_attr;
	struct fi_info		info;
	struct fid_domain	domain;
	struct fid_ep		ep;
	struct kulp_fabric	fabric;
	struct kulp_queue	kulp;
	struct krc_queue	q;
	struct krc_conn		c;
	struct krc_mr		mr;
	struct krc_grant	g;
	struct fid_mr		fid;
	u8			*memory;
	/* Arguments of calls of the provider. */
	struct fi_mr_alloc_attr	alloc;
	struct fi_mr_attr	reg;
	struct bio_vec		pieces[PIECES];
	unsigned int		regs;
	u64			flags;
	struct kulp_rma		*submitted;
} *scene;

/* --- the rest of kofi_rc and kofi_ulp --- */

void krc_queue_init(struct krc_queue *q)
{
}

void krc_queue_run(struct krc_queue *q)
{
}

void krc_message(struct krc_queue *q, const void *buf, size_t len)
{
}

void krc_link_gone(struct krc_link *link)
{
}

void krc_sent(struct krc_buf *buf, int err)
{
}

void krc_rma_done(struct krc_swr *w, int err)
{
}

void krc_granted(struct krc_grant *g, int err)
{
}

void krc_grant_revoked(struct krc_grant *g, int err)
{
}

void krc_grants_fini(struct krc_queue *q)
{
}

struct kulp_fabric *kulp_fabric_get(const struct kulp_role *role, const struct kulp_select *select)
{
	return ERR_PTR(-ENODATA);
}

void kulp_fabric_put(struct kulp_fabric *f)
{
}

void kulp_fabric_lost(struct kulp_fabric *f)
{
}

void kulp_submit(struct kulp_queue *q, struct kulp_op *op)
{
}

void kulp_rma_submit(struct kulp_queue *q, struct kulp_rma *rma)
{
	scene->submitted = rma;
}

/* --- the provider --- */

static int scene_mr_alloc(struct fid_domain *domain, const struct fi_mr_alloc_attr *attr,
			  struct fid_mr **mr, void *context)
{
	scene->alloc = *attr;
	*mr = &scene->fid;
	return 0;
}

static int scene_post_reg(struct fid_mr *mr, const struct fi_mr_attr *attr, u64 flags)
{
	scene->regs++;
	scene->reg = *attr;
	scene->flags = flags;
	memcpy(scene->pieces, attr->bvec,
	       min_t(size_t, attr->iov_count, PIECES) * sizeof(*attr->bvec));
	return 0;
}

static const struct fi_ops_mr scene_mr_ops = {
	.post_reg = scene_post_reg,
};

/* --- cases --- */

static void expect_piece(struct kunit *test, const struct bio_vec *bv, const u8 *mem, u32 len)
{
	KUNIT_EXPECT_PTR_EQ(test, (u8 *)page_address(bv->bv_page) + bv->bv_offset, (u8 *)mem);
	KUNIT_EXPECT_LT(test, bv->bv_offset, (unsigned int)PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, bv->bv_len, len);
}

/**
 * struct pieces - local memory of a write
 * @desc: description
 * @sge: offsets in the scene's memory, and lengths
 * @want: what the device gets
 * @nsge: number of @sge
 * @nwant: number of @want
 */
struct pieces {
	const char	*desc;
	u32		sge[PIECES][2];
	u32		want[PIECES][2];
	u8		nsge;
	u8		nwant;
};

static const struct pieces pieces[] = {
	{ "one", { { 3, 9000 } }, { { 3, 9000 } }, 1, 1 },
	{ "apart", { { 0, 100 }, { 101, 100 } }, { { 0, 100 }, { 101, 100 } }, 2, 2 },
	{ "empty first", { { 64, 0 }, { 64, 10 } }, { { 64, 10 } }, 2, 1 },
	{ "empty between", { { 64, 10 }, { 900, 0 }, { 74, 10 } }, { { 64, 10 }, { 74, 10 } },
	  3, 2 },
	{ "empty last", { { 64, 10 }, { 74, 0 } }, { { 64, 10 } }, 2, 1 },
	{ "empty between all", { { 0, 8192 }, { 9, 0 }, { 12288, 4097 }, { 5, 0 }, { 0, 5 } },
	  { { 0, 8192 }, { 12288, 4097 }, { 0, 5 } }, 5, 3 },
};

KUNIT_ARRAY_PARAM_DESC(pieces, pieces, desc);

/* The pieces of a write take the place of the ULP's. */
static void net_write(struct kunit *test)
{
	const struct pieces *p = test->param_value;
	struct krc_swr *w = kunit_kzalloc(test, struct_size(w, sge, PIECES), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->conn = &scene->c;
	w->nsge = p->nsge;
	for (i = 0; i < p->nsge; i++) {
		w->sge[i].addr = (uintptr_t)scene->memory + p->sge[i][0];
		w->sge[i].len = p->sge[i][1];
		w->total += p->sge[i][1];
	}
	krc_net_rma(w);
	KUNIT_ASSERT_PTR_EQ(test, scene->submitted, &w->rma);
	KUNIT_EXPECT_EQ(test, w->rma.peer, 77ULL);
	KUNIT_EXPECT_EQ(test, iov_iter_rw(&w->rma.iter), WRITE);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&w->rma.iter), (size_t)w->total);
	KUNIT_ASSERT_EQ(test, w->rma.iter.nr_segs, (unsigned long)p->nwant);
	for (i = 0; i < p->nwant; i++)
		expect_piece(test, &w->rma.iter.bvec[i], scene->memory + p->want[i][0],
			     p->want[i][1]);
}

/**
 * struct mapped - a mapping that the device registers
 * @desc: description
 * @iova: address of the first byte
 * @length: bytes
 * @shift: log2 of the size of a page
 * @npages: number of pages that were mapped
 * @want: lengths of the pieces
 * @nwant: number of these
 */
struct mapped {
	const char	*desc;
	u64		iova;
	u32		length;
	u8		shift;
	u32		npages;
	u32		want[PIECES];
	u32		nwant;
};

static const struct mapped mappings[] = {
	{ "a page", 0x5000, 4096, 12, 1, { 4096 }, 1 },
	{ "part of a page", 0x5123, 100, 12, 1, { 100 }, 1 },
	{ "two parts", 0x5ff0, 32, 12, 2, { 16, 16 }, 2 },
	{ "begins within", 0x5010, 8192, 12, 3, { 4080, 4096, 16 }, 3 },
	{ "fewer bytes than pages", 0x5000, 4097, 12, 8, { 4096, 1 }, 2 },
	{ "large pages", 0x30000 + 12345, 16384 - 12345 + 7, 14, 2, { 16384 - 12345, 7 }, 2 },
};

KUNIT_ARRAY_PARAM_DESC(mapped, mappings, desc);

/* Pages are in reverse order, so that none is the neighbour of the one before. */
static void net_register(struct kunit *test)
{
	const struct mapped *m = test->param_value;
	u32 size = 1U << m->shift, first = m->iova & (size - 1), i;
	u64 pages[PIECES];

	for (i = 0; i < m->npages; i++)
		pages[i] = (uintptr_t)scene->memory + (m->npages - 1 - i) * size;
	scene->mr.pages = pages;
	scene->mr.npages = m->npages;
	scene->mr.state = KRC_MR_VALID;
	scene->mr.map = (struct krc_mr_map) {
		.iova = m->iova, .length = m->length, .shift = m->shift,
	};
	scene->g.state = KRC_GRANT_REGISTERING;
	KUNIT_ASSERT_EQ(test, scene->g.op.post(&scene->kulp, &scene->g.op), 0);
	KUNIT_EXPECT_EQ(test, scene->regs, 1U);
	KUNIT_EXPECT_EQ(test, scene->flags, FI_COMPLETION);
	KUNIT_EXPECT_EQ(test, scene->reg.type, FI_MR_BVEC);
	KUNIT_EXPECT_EQ(test, scene->reg.access, FI_REMOTE_WRITE);
	KUNIT_EXPECT_PTR_EQ(test, scene->reg.context, (void *)&scene->g.op);
	KUNIT_ASSERT_EQ(test, scene->reg.iov_count, (size_t)m->nwant);
	for (i = 0; i < m->nwant; i++, first = 0)
		expect_piece(test, &scene->pieces[i], (u8 *)(uintptr_t)pages[i] + first,
			     m->want[i]);
}

/* The ULP has invalidated the region before its turn came. */
static void net_register_late(struct kunit *test)
{
	scene->g.state = KRC_GRANT_REGISTERING;
	scene->mr.state = KRC_MR_INVALIDATING;
	KUNIT_EXPECT_EQ(test, scene->g.op.post(&scene->kulp, &scene->g.op), -ECANCELED);
	KUNIT_EXPECT_EQ(test, scene->regs, 0U);
}

/* Transfers leave slots for all datagrams, registrations and invalidations. */
static void net_slots(struct kunit *test)
{
	struct fi_tx_attr tx = { .size = 512 };
	const struct fi_info info = { .tx_attr = &tx };

	KUNIT_EXPECT_EQ(test, krc_slots_for_rma(&info) + KRC_QUEUE_BUFS + KRC_GRANTS_MAX, 512U);
	/* A transfer of as many pieces as any has some of them. */
	tx.size = 64;
	KUNIT_EXPECT_GE(test, krc_slots_for_rma(&info), KRC_RMA_PIECES + 0U);
}

/* A grant's keys end with it. Peers can do only what devices can, and its queue registers. */
static void net_grant(struct kunit *test)
{
	KUNIT_EXPECT_PTR_EQ(test, scene->alloc.ep, &scene->ep);
	KUNIT_EXPECT_EQ(test, scene->alloc.flags, FI_RETIRE);
	KUNIT_EXPECT_EQ(test, scene->alloc.access, FI_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, scene->alloc.max_pages, (size_t)KRC_MR_PAGES);
	scene->q.can_read = true;
	KUNIT_ASSERT_EQ(test, krc_net_open_grant(&scene->g), 0);
	KUNIT_EXPECT_EQ(test, scene->alloc.access, FI_REMOTE_WRITE | FI_REMOTE_READ);
}

/* The peer's device can do with a region what the ULP and the devices allow. */
static void net_access(struct kunit *test)
{
	static const struct {
		u8	access;
		u64	wanted;
	} rows[] = {
		{ KRC_ACCESS_REMOTE_READ, FI_REMOTE_READ },
		{ KRC_ACCESS_REMOTE_WRITE, FI_REMOTE_WRITE },
		{ KRC_ACCESS_REMOTE, FI_REMOTE_READ | FI_REMOTE_WRITE },
	};
	u64 page = (uintptr_t)scene->memory;
	int i;

	scene->g.state = KRC_GRANT_REGISTERING;
	scene->mr.state = KRC_MR_VALID;
	scene->mr.map = (struct krc_mr_map){ .length = 100, .shift = PAGE_SHIFT };
	scene->mr.pages = &page;
	scene->mr.npages = 1;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		scene->g.access = rows[i].access;
		KUNIT_ASSERT_EQ(test, scene->g.op.post(&scene->kulp, &scene->g.op), 0);
		KUNIT_EXPECT_EQ(test, scene->reg.access, rows[i].wanted);
	}
}

/* The device reads into the pieces of memory. */
static void net_read(struct kunit *test)
{
	struct krc_swr *w = kunit_kzalloc(test, struct_size(w, sge, 2), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	*w = (struct krc_swr){ .op = KRC_OP_READ, .nsge = 2, .total = 5000, .conn = &scene->c };
	w->sge[0] = (struct krc_sge){ .addr = (uintptr_t)scene->memory, .len = 4096 };
	w->sge[1] = (struct krc_sge){ .addr = (uintptr_t)scene->memory + 8192, .len = 904 };
	krc_net_rma(w);
	KUNIT_ASSERT_PTR_EQ(test, scene->submitted, &w->rma);
	KUNIT_EXPECT_EQ(test, iov_iter_rw(&w->rma.iter), READ);
	KUNIT_EXPECT_EQ(test, iov_iter_count(&w->rma.iter), (size_t)5000);
	expect_piece(test, &w->rma.iter.bvec[0], scene->memory, 4096);
	expect_piece(test, &w->rma.iter.bvec[1], scene->memory + 8192, 904);
}

/* Devices have second queues, for initiators, whose handlers need no worker, unless told not to. */
static void net_softirq(struct kunit *test)
{
	struct kulp_role role = krc_role;

	KUNIT_EXPECT_TRUE(test, krc_softirq_initiators);
	krc_role_limit(&role);
	KUNIT_EXPECT_FALSE(test, role.softirq);
	KUNIT_EXPECT_TRUE(test, role.softirq_too);
	KUNIT_EXPECT_EQ(test, role.max_queues, krc_max_queues);
	krc_softirq_initiators = false;
	krc_role_limit(&role);
	krc_softirq_initiators = true;
	KUNIT_EXPECT_FALSE(test, role.softirq);
	KUNIT_EXPECT_FALSE(test, role.softirq_too);
	/* Nor on a fabric whose endpoints always have workers. */
	krc_fabric = "efa";
	krc_role_limit(&role);
	krc_fabric = KRC_DIRECT;
	KUNIT_EXPECT_FALSE(test, role.softirq_too);
	KUNIT_EXPECT_EQ(test, role.max_queues, krc_max_queues);
}

static int net_init(struct kunit *test)
{
	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	scene->memory = kunit_kzalloc(test, PAGES * PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene->memory);
	scene->info.domain_attr = &scene->domain_attr;
	scene->fabric.info = &scene->info;
	scene->fabric.domain = &scene->domain;
	scene->kulp.fabric = &scene->fabric;
	scene->kulp.ep = &scene->ep;
	spin_lock_init(&scene->q.bvecs_lock);
	scene->q.kulp = &scene->kulp;
	scene->q.bvecs = kunit_kcalloc(test, KRC_MR_PAGES, sizeof(*scene->q.bvecs), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene->q.bvecs);
	scene->c.queue = &scene->q;
	scene->c.peer = 77;
	scene->fid.ops = &scene_mr_ops;
	scene->q.can_write = true;
	scene->g.queue = &scene->q;
	scene->g.mr = &scene->mr;
	scene->g.access = KRC_ACCESS_REMOTE_WRITE;
	return krc_net_open_grant(&scene->g);
}

static struct kunit_case net_cases[] = {
	KUNIT_CASE_PARAM(net_write, pieces_gen_params),
	KUNIT_CASE_PARAM(net_register, mapped_gen_params),
	KUNIT_CASE(net_register_late),
	KUNIT_CASE(net_slots),
	KUNIT_CASE(net_grant),
	KUNIT_CASE(net_access),
	KUNIT_CASE(net_read),
	KUNIT_CASE(net_softirq),
	{}
};

static struct kunit_suite net_suite = {
	.name		= "kofi_rc_net",
	.init		= net_init,
	.test_cases	= net_cases,
};

kunit_test_suite(net_suite);

MODULE_DESCRIPTION("KUnit tests of the memory that kofi_rc hands to devices");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
