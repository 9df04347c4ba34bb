// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that the device can't reach is refused for good, wherever it comes in: that of other PCI
 * devices, and memory that can't be mapped. Only a lack of space is -EAGAIN.
 */
#include <linux/bvec.h>
#include <linux/scatterlist.h>
#include "efa_rdm_scene.h"

#define REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)

/**
 * struct reach - memory of another PCI device, and memory beside it
 * @scene: an endpoint of efa-direct
 * @mr: a region of its domain
 * @own: region of the endpoint
 * @pages: four pages, of which the third is that of a PCI device. No list below has two that are
 *	adjacent
 * @bv: segments of messages and regions
 * @sg: the same for scatterlists
 */
struct reach {
	struct efa_scene	*scene;
	struct fid_mr		*mr;
	struct fid_mr		*own;
	struct page		*pages;
	struct bio_vec		bv[2];
	struct scatterlist	sg[2];
};

static void reach_free(void *data)
{
	struct reach *r = data;

	efake_p2p(NULL);
	if (r->pages)
		__free_pages(r->pages, 2);
}

/* Segments from the RAM, or the device's page, on. */
static void reach_use(struct reach *r, bool first)
{
	struct page *ram = &r->pages[0], *p2p = &r->pages[2];

	bvec_set_page(&r->bv[0], first ? p2p : ram, PAGE_SIZE, 0);
	bvec_set_page(&r->bv[1], first ? ram : p2p, PAGE_SIZE, 0);
	sg_init_table(r->sg, 2);
	sg_set_page(&r->sg[0], first ? p2p : ram, PAGE_SIZE, 0);
	sg_set_page(&r->sg[1], first ? ram : p2p, PAGE_SIZE, 0);
}

static struct reach *reach_make(struct kunit *test)
{
	struct reach *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct fi_mr_alloc_attr attr = { .max_pages = 4, .access = REMOTE };

	KUNIT_ASSERT_NOT_NULL(test, r);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, reach_free, r), 0);
	r->scene = efa_scene_new(test, NULL);
	r->pages = alloc_pages(GFP_KERNEL, 2);
	KUNIT_ASSERT_NOT_NULL(test, r->pages);
	attr.cq = r->scene->cq;
	KUNIT_ASSERT_EQ(test, fi_mr_alloc(r->scene->domain, &attr, &r->mr, NULL), 0);
	attr.ep = r->scene->ep;
	KUNIT_ASSERT_EQ(test, fi_mr_alloc(r->scene->domain, &attr, &r->own, NULL), 0);
	efake_p2p(&r->pages[2]);
	return r;
}

/* Nothing was posted or mapped, and nothing is reserved. */
static void reach_done(struct kunit *test, struct reach *r, unsigned int maps)
{
	struct kefa_ep *ep = efa_ep(r->scene);

	efa_expect_nothing(test, r->scene);
	KUNIT_EXPECT_EQ(test, r->scene->fake->nmaps, maps);
	KUNIT_EXPECT_EQ(test, ep->tx.nfree, ep->tx.base.size);
	KUNIT_EXPECT_EQ(test, ep->rx.nfree, ep->rx.base.size);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(r->scene)->credits),
			efa_cq(r->scene)->attr.size);
	KUNIT_EXPECT_EQ(test, fi_close(&r->mr->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&r->own->fid), 0);
}

/* Send, receive, read or write segments with a call that has an iterator. */
static ssize_t reach_msg(struct reach *r, u64 what, size_t n, size_t len, u64 flags)
{
	struct fi_rma_iov rma = { EFA_RADDR, len, EFA_KEY };
	struct fi_msg_rma rma_msg = {
		.addr = r->scene->peer, .rma_iov = &rma, .rma_iov_count = 1,
	};
	struct fi_msg msg = { .addr = r->scene->peer };

	iov_iter_bvec(&msg.msg_iter, what & (FI_READ | FI_RECV) ? ITER_DEST : ITER_SOURCE, r->bv,
		      n, len);
	rma_msg.msg_iter = msg.msg_iter;
	switch (what) {
	case FI_SEND:
		return fi_sendmsg(r->scene->ep, &msg, flags);
	case FI_RECV:
		return fi_recvmsg(r->scene->ep, &msg, flags);
	case FI_READ:
		return fi_readmsg(r->scene->ep, &rma_msg, flags);
	default:
		return fi_writemsg(r->scene->ep, &rma_msg, flags);
	}
}

static void p2p_messages(struct kunit *test)
{
	static const u64 kinds[] = { FI_SEND, FI_RECV, FI_READ, FI_WRITE };
	struct reach *r = reach_make(test);
	unsigned int maps = r->scene->fake->nmaps;
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		reach_use(r, true);
		KUNIT_EXPECT_EQ(test, reach_msg(r, kinds[i], 1, 100, FI_COMPLETION), -EOPNOTSUPP);
		KUNIT_EXPECT_EQ(test, reach_msg(r, kinds[i], 2, 5000, FI_COMPLETION), -EOPNOTSUPP);
		reach_use(r, false);
		KUNIT_EXPECT_EQ(test, reach_msg(r, kinds[i], 2, 5000, FI_COMPLETION), -EOPNOTSUPP);
		KUNIT_EXPECT_EQ(test, reach_msg(r, kinds[i], 2, 5000, FI_COMPLETION | FI_MORE),
				-EOPNOTSUPP);
	}
	reach_done(test, r, maps);
}

/* Memory that the CPU copies need not be within the device's reach. */
static void p2p_copied(struct kunit *test)
{
	struct reach *r = reach_make(test);
	unsigned int maps = r->scene->fake->nmaps;

	reach_use(r, true);
	KUNIT_EXPECT_EQ(test, reach_msg(r, FI_SEND, 1, 8, FI_COMPLETION), 0);
	efake_wr_done(efake_sent(r->scene->qp, 0), 0);
	efa_expect_done(test, r->scene, 0);
	KUNIT_EXPECT_EQ(test, reach_msg(r, FI_SEND, 1, 100, FI_COMPLETION | FI_INJECT), 0);
	efake_wr_done(efake_sent(r->scene->qp, 0), 0);
	efa_expect_done(test, r->scene, 0);
	reach_done(test, r, maps);
}

/* Kernel addresses are checked where buffers on the stack are. */
static void p2p_plain(struct kunit *test)
{
	struct reach *r = reach_make(test);
	unsigned int maps = r->scene->fake->nmaps;
	u8 *buf = r->scene->buf;

	if (!IS_ENABLED(CONFIG_DMA_API_DEBUG))
		kunit_skip(test, "not checked in this kernel");
	r->scene->buf = page_address(&r->pages[2]);
	KUNIT_EXPECT_EQ(test, efa_send(r->scene, 100, 1), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, efa_recv(r->scene, 100, 1), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, efa_get(r->scene, 100, 1), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, efa_write(r->scene, 100, 1), -EOPNOTSUPP);
	r->scene->buf = buf;
	reach_done(test, r, maps);
}

static void p2p_regions(struct kunit *test)
{
	struct reach *r = reach_make(test);
	struct efa_scene *scene = r->scene;
	const struct kvec iov = { page_address(&r->pages[2]), PAGE_SIZE };
	struct fi_mr_attr attr = { .access = REMOTE };
	unsigned int maps = scene->fake->nmaps, refused = 0;
	struct fid_mr *mr;
	int i, n;

	/* Kernel addresses are checked only in some kernels, see p2p_plain(). */
	for (i = IS_ENABLED(CONFIG_DMA_API_DEBUG) ? FI_MR_KVEC : FI_MR_BVEC; i <= FI_MR_SGL; i++) {
		attr.type = i;
		for (n = 1; n <= (i == FI_MR_KVEC ? 1 : 3); n++, refused += 3) {
			/* The device's page, with RAM behind it, and the other way round. */
			reach_use(r, n < 3);
			attr.iov_count = min(n, 2);
			if (i == FI_MR_KVEC)
				attr.mr_iov = &iov;
			else if (i == FI_MR_BVEC)
				attr.bvec = r->bv;
			else
				attr.sgl = r->sg;
			KUNIT_EXPECT_EQ_MSG(test, fi_mr_post_reg(r->mr, &attr, FI_COMPLETION),
					    -EOPNOTSUPP, "%d %d", i, n);
			KUNIT_EXPECT_EQ_MSG(test, fi_mr_post_reg(r->own, &attr, FI_COMPLETION),
					    -EOPNOTSUPP, "%d %d", i, n);
			KUNIT_EXPECT_EQ_MSG(test, fi_mr_regattr(scene->domain, &attr, 0, &mr),
					    -EOPNOTSUPP, "%d %d", i, n);
		}
	}
	KUNIT_EXPECT_EQ(test, efa_dom(scene)->mrq.stats.unreachable, refused);
	KUNIT_EXPECT_EQ(test, efa_dom(scene)->mrq.stats.map_failed, 0);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.again, 0);
	reach_done(test, r, maps);
}

static void rdm_pages_free(void *pages)
{
	efake_p2p(NULL);
	__free_pages(pages, 1);
}

/* Fabric efa refuses such pages although it could copy the data of some messages. */
static void p2p_rdm(struct kunit *test)
{
	struct page *pages = alloc_pages(GFP_KERNEL, 1);
	struct fi_msg_tagged msg = { };
	struct bio_vec bv[2];
	struct rdm_pair *pair;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	/* After the endpoints are closed. */
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rdm_pages_free, pages), 0);
	pair = rdm_pair_new(test, NULL);
	msg.addr = pair->end[0].peer;
	bvec_set_page(&bv[0], &pages[0], 100, 0);
	bvec_set_page(&bv[1], &pages[1], 100, 0);
	efake_p2p(&pages[1]);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, bv, 2, 200);
	KUNIT_EXPECT_EQ(test, fi_tsendmsg(pair->end[0].ep, &msg, FI_COMPLETION), -EOPNOTSUPP);
	iov_iter_bvec(&msg.msg_iter, ITER_DEST, bv, 2, 200);
	KUNIT_EXPECT_EQ(test, fi_trecvmsg(pair->end[0].ep, &msg, FI_COMPLETION), -EOPNOTSUPP);
	/* Of a message that ends before the page, only the first segment counts. */
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, bv, 2, 100);
	KUNIT_EXPECT_EQ(test, fi_tsendmsg(pair->end[0].ep, &msg, FI_COMPLETION), 0);
}

/* --- mappings that fail --- */

static const struct unmapped {
	const char	*desc;
	unsigned int	n;	/* number of pieces */
	int		err;	/* of dma_map_sgtable() */
	bool		iommu;
	int		ret;
} unmappeds[] = {
	{ "no memory", 2, -ENOMEM, false, -EAGAIN },
	{ "no IOVA", 2, -ENOMEM, true, -EAGAIN },
	{ "no reason, IOMMU", 2, -EIO, true, -EAGAIN },
	{ "one piece, IOMMU", 1, 0, true, -EAGAIN },
	{ "no bounce buffer", 2, -EIO, false, -EOPNOTSUPP },
	{ "one piece, no bounce buffer", 1, 0, false, -EOPNOTSUPP },
	{ "bad memory", 2, -EINVAL, true, -EOPNOTSUPP },
	{ "memory of another device", 2, -EREMOTEIO, true, -EOPNOTSUPP },
};

KUNIT_ARRAY_PARAM_DESC(unmapped, unmappeds, desc);

static void unmapped_regions(struct kunit *test)
{
	const struct unmapped *row = test->param_value;
	struct reach *r = reach_make(test);
	struct efake *fake = r->scene->fake;
	const struct fi_mr_attr attr = {
		.type = FI_MR_BVEC, .bvec = r->bv, .iov_count = row->n, .access = REMOTE,
	};
	struct kefa_mr_stats *stats = &efa_dom(r->scene)->mrq.stats;
	unsigned int maps = fake->nmaps;
	struct fid_mr *mr;

	efake_p2p(NULL);
	reach_use(r, false);
	fake->iommu = row->iommu;
	efake_fail(fake, EFAKE_DMA_MAP, 1, row->err);
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(r->mr, &attr, FI_COMPLETION), row->ret);
	/* If the fast path can't map a piece, the slow path tries to. */
	fake->refusal = row->err;
	fake->refuse = BIT(EFAKE_DMA_MAP);
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(r->own, &attr, FI_COMPLETION), row->ret);
	fake->refuse = 0;
	efake_fail(fake, EFAKE_DMA_MAP, 1, row->err);
	KUNIT_EXPECT_EQ(test, fi_mr_regattr(r->scene->domain, &attr, 0, &mr),
			row->ret == -EAGAIN ? -ENOMEM : row->ret);
	KUNIT_EXPECT_EQ(test, stats->map_failed, row->ret == -EAGAIN ? 3 : 0);
	KUNIT_EXPECT_EQ(test, stats->bounced + stats->unreachable, row->ret == -EAGAIN ? 0 : 3);
	reach_done(test, r, maps);
}

static struct kunit_case reach_cases[] = {
	KUNIT_CASE(p2p_messages),
	KUNIT_CASE(p2p_copied),
	KUNIT_CASE(p2p_plain),
	KUNIT_CASE(p2p_regions),
	KUNIT_CASE(p2p_rdm),
	KUNIT_CASE_PARAM(unmapped_regions, unmapped_gen_params),
	{}
};

static struct kunit_suite reach_suite = {
	.name = "kefa_reach",
	.test_cases = reach_cases,
};

kunit_test_suite(reach_suite);
