// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions of the EFA provider: registering, invalidating and closing, with a device
 * that answers, fails or is silent.
 */
#include <linux/interrupt.h>
#include <linux/scatterlist.h>
#include "crew.h"
#include "efa_scene.h"

#define REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct efake_qp *mr_qp(struct efa_scene *scene)
{
	return efake_qp(scene->fake, efa_dom(scene)->mrq.hq.qpn);
}

static struct kefa_mr *kmr(struct fid_mr *mr)
{
	return container_of(mr, struct kefa_mr, mr_fid);
}

static int reg_len(struct efa_scene *scene, size_t len, struct fid_mr **mr)
{
	return fi_mr_reg(scene->domain, scene->buf, len, REMOTE, 0, 0, 0, mr,
			 NULL);
}

static struct fid_mr *reg(struct kunit *test, struct efa_scene *scene)
{
	struct fid_mr *mr = NULL;

	KUNIT_ASSERT_EQ(test, reg_len(scene, EFA_BUF, &mr), 0);
	return mr;
}

static struct fid_mr *alloc(struct kunit *test, struct efa_scene *scene)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 4, .access = REMOTE, .cq = scene->cq,
	};
	struct fid_mr *mr = NULL;

	KUNIT_ASSERT_EQ(test, fi_mr_alloc(scene->domain, &attr, &mr, NULL), 0);
	return mr;
}

static int post_reg(struct efa_scene *scene, struct fid_mr *mr, long ctx,
		    u64 flags)
{
	static struct kvec iov;
	struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &iov, .iov_count = 1,
		.access = REMOTE, .context = (void *)ctx,
	};
	int ret;

	iov = (struct kvec) { scene->buf + 16, PAGE_SIZE };
	ret = fi_mr_post_reg(mr, &attr, flags);
	/* The caller may free its arrays now. */
	iov = (struct kvec) { (void *)8, SIZE_MAX };
	return ret;
}

static int post_inval(struct fid_mr *mr, long ctx, u64 flags)
{
	return fi_mr_post_inval(mr, flags, (void *)ctx);
}

/* Check that a region holds no resources but its object. */
static void expect_idle(struct kunit *test, struct efa_scene *scene,
			struct fid_mr *mr)
{
	KUNIT_EXPECT_EQ(test, fi_mr_key(mr), FI_KEY_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, kmr(mr)->state, KEFA_MR_IDLE);
	KUNIT_EXPECT_EQ(test, kmr(mr)->nsegs, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits),
			efa_cq(scene)->attr.size);
}

/* --- registering --- */

static void mr_registered(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	unsigned int maps = scene->fake->nmaps;
	u64 base, raw = 0;
	size_t size = sizeof(raw);
	struct fid_mr *mr;
	u32 key;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(scene->domain, scene->buf + 24, 100,
					FI_REMOTE_READ, 0, 0, 0, &mr, NULL),
			0);
	key = fi_mr_key(mr);
	KUNIT_EXPECT_TRUE(test, efake_valid(scene->fake, key));
	KUNIT_EXPECT_EQ(test, mr_qp(scene)->access,
			IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, fi_mr_raw_attr(mr, &base, (u8 *)&raw, &size, 0),
			0);
	KUNIT_EXPECT_EQ(test, raw, key);
	KUNIT_EXPECT_EQ(test, base, 24);
	KUNIT_EXPECT_EQ(test, kmr(mr)->dir, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps + 1);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_FALSE(test, efake_valid(scene->fake, key));
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps);
	KUNIT_EXPECT_EQ(test, efa_dom(scene)->mrq.stats.regs, 1);
	KUNIT_EXPECT_EQ(test, efa_dom(scene)->mrq.stats.invals, 1);
}

/* A region without remote access needs no region of the device. */
static void mr_local(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(scene->domain, scene->buf, 100,
					FI_SEND | FI_RECV | FI_READ | FI_WRITE,
					0, 0, 0, &mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, scene->fake->mrs, 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, efake_calls(scene->fake, EFAKE_MR_CREATE), 0);
}

static void mr_unable(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr;

	scene->fake->dev->rdma_write = false;
	KUNIT_EXPECT_EQ(test, reg_len(scene, 100, &mr), -EOPNOTSUPP);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(scene->domain, scene->buf, 100,
					FI_REMOTE_READ, 0, 0, 0, &mr, NULL),
			0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	scene->fake->bounce = true;
	KUNIT_EXPECT_EQ(test, fi_mr_reg(scene->domain, scene->buf, 100,
					FI_REMOTE_READ, 0, 0, 0, &mr, NULL),
			-EOPNOTSUPP);
}

/* Cases of kefa_bounced(). */
static void mr_bounced(struct kunit *test)
{
	static const struct {
		const char *what;
		bool sync;
		bool iommu;
		phys_addr_t reached;
		bool bounced;
	} cases[] = {
		{ "direct", false, false, 0, false },
		{ "direct, swiotlb=force", true, false, 0, true },
		{ "IOMMU, 6.12", false, true, SZ_1M, false },
		{ "IOMMU, 6.1", true, true, SZ_1M, false },
		{ "IOMMU, untrusted device, bounced", true, true, SZ_2M, true },
		{ "IOMMU, untrusted device, whole pages", true, true, SZ_1M, false },
		{ "IOMMU passed through, swiotlb=force", true, true, SZ_2M, true },
		{ "IOMMU that maps nothing there", true, true, 0, true },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, kefa_bounced(cases[i].sync,
						       cases[i].iommu,
						       cases[i].reached, SZ_1M),
				    cases[i].bounced, "%s", cases[i].what);
}

/* Behind an IOMMU, where dma_need_sync() doesn't distinguish bounce buffers. */
static void mr_iommu(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kvec iov[2] = {
		{ scene->buf + 100, PAGE_SIZE - 100 },
		{ scene->buf + 3 * PAGE_SIZE, PAGE_SIZE },
	};
	struct fid_mr *mr;

	scene->fake->iommu = true;
	KUNIT_ASSERT_EQ(test, reg_len(scene, 100, &mr), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_ASSERT_EQ(test, fi_mr_regv(scene->domain, iov, 2, REMOTE, 0, 0, 0,
					 &mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	scene->fake->bounce = true;
	KUNIT_EXPECT_EQ(test, reg_len(scene, 100, &mr), -EOPNOTSUPP);
}

/* A region has few large pages, and a base address below their size. */
static void mr_page_sizes(struct kunit *test)
{
	static const struct {
		u64 off;
		size_t len;
		u32 page_size;
		u32 pages;
	} cases[] = {
		{ 0, 1, SZ_4K, 1 },
		{ SZ_4K - 1, 2, SZ_4K, 2 },
		{ 0, SZ_64K, SZ_64K, 1 },
		{ 1, SZ_64K - 1, SZ_64K, 1 },
		{ SZ_32K, SZ_64K, SZ_64K, 2 },
		{ 0, SZ_2M, SZ_2M, 1 },
		{ SZ_64K - 1, SZ_1M, SZ_64K, 17 },
	};
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct page *pages = alloc_pages(GFP_KERNEL, get_order(SZ_4M));
	const struct ib_mr *ibmr;
	struct fid_mr *mr;
	u8 *mem;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	mem = page_address(pages);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		KUNIT_EXPECT_EQ(test, fi_mr_reg(scene->domain,
						mem + cases[i].off,
						cases[i].len, REMOTE, 0, 0, 0,
						&mr, NULL), 0);
		ibmr = efake_mr(scene->fake, fi_mr_key(mr));
		KUNIT_EXPECT_EQ(test, ibmr->page_size, cases[i].page_size);
		KUNIT_EXPECT_EQ(test, efake_mr_pages(ibmr), cases[i].pages);
		KUNIT_EXPECT_EQ(test, mr->base_addr,
				cases[i].off & (cases[i].page_size - 1));
		KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	}
	__free_pages(pages, get_order(SZ_4M));
}

/* Pieces must meet at page boundaries. */
static void mr_gaps(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	u8 *buf = scene->buf;
	struct fid_mr *mr;
	struct kvec iov[3] = {
		{ buf + 100, PAGE_SIZE - 100 },
		{ buf + 3 * PAGE_SIZE, PAGE_SIZE },
		{ buf + 5 * PAGE_SIZE, 10 },
	};

	KUNIT_EXPECT_EQ(test, fi_mr_regv(scene->domain, iov, 3, REMOTE, 0, 0, 0,
					 &mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, efake_mr_pages(efake_mr(scene->fake,
						      fi_mr_key(mr))), 3);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	iov[1].iov_len--;
	KUNIT_EXPECT_EQ(test, fi_mr_regv(scene->domain, iov, 3, REMOTE, 0, 0, 0,
					 &mr, NULL), -EINVAL);
	iov[1].iov_len++;
	iov[2].iov_base++;
	KUNIT_EXPECT_EQ(test, fi_mr_regv(scene->domain, iov, 3, REMOTE, 0, 0, 0,
					 &mr, NULL), -EINVAL);
	/* Adjacent pieces are merged. */
	iov[1] = (struct kvec){ buf + PAGE_SIZE, 10 };
	iov[2] = (struct kvec){ buf + PAGE_SIZE + 10, 20 };
	KUNIT_EXPECT_EQ(test, fi_mr_regv(scene->domain, iov, 3, REMOTE, 0, 0, 0,
					 &mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static void mr_types(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_mr_attr attr = { .iov_count = 2, .access = REMOTE };
	struct scatterlist sg[2];
	struct bio_vec bv[2];
	struct fid_mr *mr;
	int i;

	sg_init_table(sg, 2);
	for (i = 0; i < 2; i++) {
		sg_set_buf(&sg[i], scene->buf + 2 * i * PAGE_SIZE, PAGE_SIZE);
		bvec_set_page(&bv[i], sg_page(&sg[i]), PAGE_SIZE, 0);
	}
	attr.type = FI_MR_SGL;
	attr.sgl = sg;
	KUNIT_EXPECT_EQ(test, fi_mr_regattr(scene->domain, &attr, 0, &mr), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	attr.type = FI_MR_BVEC;
	attr.bvec = bv;
	KUNIT_EXPECT_EQ(test, fi_mr_regattr(scene->domain, &attr, 0, &mr), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* Pages of a large folio may be given as offsets from its first page. */
static void mr_large_pages(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_mr_attr attr = { .iov_count = 3, .access = REMOTE };
	struct page *first = virt_to_page(scene->buf);
	struct scatterlist sg[3];
	struct bio_vec bv[3];
	struct fid_mr *mr;
	int i;

	sg_init_table(sg, 3);
	for (i = 0; i < 3; i++) {
		sg_set_page(&sg[i], first, PAGE_SIZE, 2 * i * PAGE_SIZE);
		bvec_set_page(&bv[i], first, PAGE_SIZE, 2 * i * PAGE_SIZE);
	}
	attr.type = FI_MR_SGL;
	attr.sgl = sg;
	KUNIT_ASSERT_EQ(test, fi_mr_regattr(scene->domain, &attr, 0, &mr), 0);
	KUNIT_EXPECT_EQ(test, efake_mr_pages(efake_mr(scene->fake,
						      fi_mr_key(mr))), 3);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	attr.type = FI_MR_BVEC;
	attr.bvec = bv;
	KUNIT_ASSERT_EQ(test, fi_mr_regattr(scene->domain, &attr, 0, &mr), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	bv[1].bv_offset++;
	KUNIT_EXPECT_EQ(test, fi_mr_regattr(scene->domain, &attr, 0, &mr),
			-EINVAL);
}

/* --- failing --- */

static void mr_reg_fails(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct efake *fake = scene->fake;
	struct fid_mr *mr;

	fake->status = 5;
	KUNIT_EXPECT_EQ(test, reg_len(scene, 100, &mr), -EINVAL);
	fake->status = 0;
	efake_fail(fake, EFAKE_POST_SEND, 1, -EIO);
	KUNIT_EXPECT_EQ(test, reg_len(scene, 100, &mr), -EIO);
	efake_fail(fake, EFAKE_MR_MAP, 1, -EINVAL);
	KUNIT_EXPECT_EQ(test, reg_len(scene, 100, &mr), -EINVAL);
	efake_fail(fake, EFAKE_MR_MAP, 1, 0);
	KUNIT_EXPECT_EQ(test, reg_len(scene, 100, &mr), -EINVAL);
	efake_fail(fake, EFAKE_DMA_MAP, 1, 0);
	KUNIT_EXPECT_EQ(test, reg_len(scene, 100, &mr), -EOPNOTSUPP);
	/* All regions of the device are idle, none is lost. */
	KUNIT_EXPECT_EQ(test, fake->mrs, 4);
	KUNIT_EXPECT_EQ(test, efa_dom(scene)->nidle[KEFA_MR_MIN_ORDER], 4);
}

/* A region whose invalidation fails, in each way, is destroyed instead of reused. */
static void mr_stuck(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = reg(test, scene);

	scene->fake->status = 2;
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, scene->fake->mrs, 0);
	scene->fake->status = 0;
	mr = reg(test, scene);
	efake_fail(scene->fake, EFAKE_POST_SEND, 1, -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, scene->fake->mrs, 0);
	KUNIT_EXPECT_EQ(test, efa_dom(scene)->nfrmrs, 0);
	KUNIT_EXPECT_FALSE(test, efa_dom(scene)->refused.broken);
}

static void mr_stuck_and_refused(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = reg(test, scene);

	scene->fake->status = 2;
	efake_fail(scene->fake, EFAKE_MR_DESTROY, 1, -ENODEV);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_TRUE(test, efa_dom(scene)->refused.broken);
}

/* --- without waiting --- */

static void post_life(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);
	struct efa_comp comp;
	u32 key[3];
	int i;

	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
		efake_settle();
		comp = efa_read(scene);
		KUNIT_EXPECT_EQ(test, comp.ret, 1);
		KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, 1);
		KUNIT_EXPECT_EQ(test, comp.entry.len, PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, kmr(mr)->dir, DMA_BIDIRECTIONAL);
		key[i] = fi_mr_key(mr);
		KUNIT_EXPECT_TRUE(test, efake_valid(scene->fake, key[i]));
		KUNIT_EXPECT_EQ(test, mr->base_addr, 16);
		KUNIT_EXPECT_EQ(test, post_inval(mr, 2, FI_COMPLETION), 0);
		efa_expect_done(test, scene, 2);
		KUNIT_EXPECT_FALSE(test, efake_valid(scene->fake, key[i]));
		expect_idle(test, scene, mr);
	}
	/* A key has a generation of 4 bits. */
	KUNIT_EXPECT_EQ(test, key[1] - key[0], BIT(20));
	KUNIT_EXPECT_EQ(test, key[2] - key[1], BIT(20));
	/* Without FI_COMPLETION success isn't reported. */
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, 0), 0);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 2, 0), 0);
	efa_expect_nothing(test, scene);
	expect_idle(test, scene, mr);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static void post_states(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);
	struct efake_qp *qp = mr_qp(scene);

	scene->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, post_inval(mr, 1, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_INJECT),
			-FI_EBADFLAGS);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 2, 0), -EBUSY);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 2, 0), -EINVAL);
	efake_wr_done(efake_sent(qp, 0), 0);
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 2, 0), -EBUSY);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 3, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 2, 0), -EBUSY);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 2, 0), -EINVAL);
	efake_wr_done(efake_sent(qp, 0), 0);
	efa_expect_done(test, scene, 3);
	expect_idle(test, scene, mr);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static void post_bad(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);
	struct kvec iov = { scene->buf, 5 * PAGE_SIZE };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = FI_REMOTE_READ,
	};
	struct scatterlist sg;

	iov.iov_len = 17 * PAGE_SIZE;
	iov.iov_base = (void *)0x1000;
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr, &attr, 0), -EINVAL);
	iov.iov_base = scene->buf;
	iov.iov_len = PAGE_SIZE;
	attr.access = FI_READ;
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr, &attr, 0), -EINVAL);
	attr.access = FI_REMOTE_READ;
	attr.iov_count = 0;
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr, &attr, 0), -EINVAL);
	attr.iov_count = 1;
	iov.iov_len = 0;
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr, &attr, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr, NULL, 0), -EINVAL);
	iov.iov_len = PAGE_SIZE;
	attr.offset = 8;
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr, &attr, 0), -EINVAL);
	attr.offset = 0;
	sg_init_one(&sg, scene->buf, PAGE_SIZE);
	attr.type = FI_MR_SGL + 1;
	attr.sgl = &sg;
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr, &attr, 0), -EINVAL);
	expect_idle(test, scene, mr);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static void post_fails(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);
	struct efake *fake = scene->fake;

	efake_fail(fake, EFAKE_DMA_MAP, 1, 0);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, 0), -EOPNOTSUPP);
	efake_fail(fake, EFAKE_MR_MAP, 1, -EINVAL);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, 0), -EINVAL);
	efake_fail(fake, EFAKE_POST_SEND, 1, -EIO);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, 0), -EIO);
	expect_idle(test, scene, mr);
	/* A failure is reported also without FI_COMPLETION. */
	fake->status = 3;
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, 0), 0);
	efa_expect_error(test, scene, 1, EOPNOTSUPP, 3);
	expect_idle(test, scene, mr);
	fake->status = 0;
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* The ULP is notified when to retry, also for resources that no completion frees. */
static void post_room_told(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {});
	struct kefa_mrq *mrq = &efa_dom(scene)->mrq;
	struct fid_mr *mr = alloc(test, scene), *other;
	struct kofi_cq *cq = efa_cq(scene);
	u32 nbusy;

	scene->fake->iommu = true;
	scene->fake->refuse = BIT(EFAKE_DMA_MAP);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, 0), -EAGAIN);
	scene->fake->refuse = 0;
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(cq->room)));
	cq->room = false;

	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 1);
	spin_lock_bh(&mrq->lock);
	nbusy = mrq->nbusy;
	mrq->nbusy = mrq->depth;
	spin_unlock_bh(&mrq->lock);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 2, 0), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, list_empty(&mrq->wanting));
	spin_lock_bh(&mrq->lock);
	mrq->nbusy = nbusy;
	spin_unlock_bh(&mrq->lock);
	/* The completion of another region. */
	other = alloc(test, scene);
	KUNIT_EXPECT_EQ(test, post_reg(scene, other, 3, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 3);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(cq->room)));
	KUNIT_EXPECT_TRUE(test, list_empty(&mrq->wanting));
	KUNIT_EXPECT_EQ(test, fi_close(&other->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static void post_cq_full(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.size = 1,
	});
	struct fid_mr *mr = alloc(test, scene);

	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 2, 0), -EAGAIN);
	efake_wr_done(efake_recv(scene->qp, 0), 0);
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 2, FI_COMPLETION), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, post_inval(mr, 3, 0), -EAGAIN);
	efa_expect_done(test, scene, 2);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 3, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 3);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* Completions that are late, repeated, or for no request. */
static void post_stale(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);
	struct efake_qp *qp = mr_qp(scene);
	struct kefa_wc wc = { };

	scene->fake->manual_mr = true;
	efake_qp_push(qp, &wc);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	wc.id = efake_sent(qp, 0)->id;
	efake_qp_push(qp, &(struct kefa_wc){ .id = wc.id + 1 });
	efake_qp_push(qp, &(struct kefa_wc){ .id = wc.id | KEFA_MR_DEPTH });
	efake_qp_push(qp, &(struct kefa_wc){ .id = wc.id + (1ULL << 32) });
	efa_expect_nothing(test, scene);
	efake_wr_done(efake_sent(qp, 0), 0);
	efake_qp_push(qp, &wc);
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 2, FI_COMPLETION), 0);
	/* A repeated completion of the registration isn't taken for the invalidation's. */
	efake_qp_push(qp, &wc);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, efa_dom(scene)->mrq.stats.stale, 6);
	efake_wr_done(efake_sent(qp, 0), 0);
	efa_expect_done(test, scene, 2);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* A region is reused for more and for fewer pieces. */
static void post_pieces(struct kunit *test)
{
	static const int pieces[] = { 3, 1, 4, 2, 1, 4 };
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);
	struct kvec iov[4];
	struct fi_mr_attr attr = { .mr_iov = iov, .access = REMOTE };
	int i;

	for (i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = (struct kvec){ scene->buf + 2 * i * PAGE_SIZE,
					PAGE_SIZE };
	for (i = 0; i < ARRAY_SIZE(pieces); i++) {
		attr.iov_count = pieces[i];
		KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr, &attr, FI_COMPLETION),
				0);
		efa_expect_done(test, scene, 0);
		KUNIT_EXPECT_EQ(test,
				efake_mr_pages(efake_mr(scene->fake,
							fi_mr_key(mr))),
				pieces[i]);
		KUNIT_EXPECT_EQ(test, post_inval(mr, 2, FI_COMPLETION), 0);
		efa_expect_done(test, scene, 2);
		expect_idle(test, scene, mr);
	}
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* Contiguous, but in more pages than the region has. */
static void post_too_long(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);
	struct page *pages = alloc_pages(GFP_KERNEL, get_order(SZ_128K));
	struct kvec iov = { .iov_len = 17 * PAGE_SIZE };
	const struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = REMOTE,
	};

	KUNIT_ASSERT_NOT_NULL(test, pages);
	iov.iov_base = page_address(pages);
	scene->fake->dev->page_sizes = PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr, &attr, FI_COMPLETION),
			-EMSGSIZE);
	expect_idle(test, scene, mr);
	iov.iov_len = 16 * PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr, &attr, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	__free_pages(pages, get_order(SZ_128K));
}

static void post_bounces(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);

	scene->fake->bounce = true;
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, 0), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, efa_dom(scene)->mrq.stats.bounced, 1);
	expect_idle(test, scene, mr);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* Memory that no bounce buffer can hold fails at once, as it would be bounced. */
static void post_too_long_to_bounce(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_mrq *mrq = &efa_dom(scene)->mrq;
	struct fid_mr *mr = alloc(test, scene), *reg;
	struct kvec iov = { scene->buf, SZ_32K };
	const struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = REMOTE };

	scene->fake->bounce = true;
	scene->fake->max_map = SZ_16K;
	KUNIT_EXPECT_EQ(test, fi_mr_post_reg(mr, &attr, FI_COMPLETION), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, reg_len(scene, SZ_32K, &reg), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, mrq->stats.bounced, 2);
	KUNIT_EXPECT_EQ(test, mrq->stats.map_failed, 0);
	expect_idle(test, scene, mr);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static atomic_t calls, told;	/* one call may read the next completion, too */

static void count_told(struct fid_cq *cq, void *context)
{
	struct fi_cq_data_entry entry;

	atomic_inc(&calls);
	while (fi_cq_read(cq, &entry, 1) == 1)
		atomic_inc(&told);
}

/* A handler is called for completions only. */
static void post_told(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq = { .wait_obj = FI_WAIT_UNSPEC, .handler = count_told },
	});
	struct fid_mr *mr = alloc(test, scene);

	atomic_set(&calls, 0);
	atomic_set(&told, 0);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, 0), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, post_inval(mr, 2, 0), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&calls), 0);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&told) == 1));
	KUNIT_EXPECT_EQ(test, post_inval(mr, 2, FI_COMPLETION), 0);
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&told) == 2));
	efake_settle();
	expect_idle(test, scene, mr);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/*
 * An invalidation without FI_COMPLETION isn't reported, so the owner retries registering. When
 * that succeeds, the old memory is unmapped, and the new memory stays mapped.
 */
static void post_when_idle(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);
	unsigned long end;
	int i, ret = 0;

	for (i = 0; i < 500 && !ret; i++) {
		end = jiffies + msecs_to_jiffies(KOFI_NEVER_MS);
		do {
			ret = post_reg(scene, mr, 1, 0);
		} while (ret == -EBUSY && time_before(jiffies, end));
		while (!ret && READ_ONCE(kmr(mr)->state) != KEFA_MR_VALID &&
		       time_before(jiffies, end))
			cpu_relax();
		ret = ret ?: post_inval(mr, 2, 0);
	}
	KUNIT_EXPECT_EQ(test, ret, 0);
	efa_expect_nothing(test, scene);
	expect_idle(test, scene, mr);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* Contexts in which I/O paths post. */
static struct efa_scene *softirq_scene;
static struct fid_mr *softirq_mr;
static int softirq_ret[2];

static void post_both(struct tasklet_struct *unused)
{
	softirq_ret[0] = post_reg(softirq_scene, softirq_mr, 1, FI_COMPLETION);
	softirq_ret[1] = post_inval(softirq_mr, 2, FI_COMPLETION);
}

static void post_in_softirq(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct tasklet_struct tasklet;

	softirq_scene = scene;
	softirq_mr = alloc(test, scene);
	scene->fake->manual_mr = true;
	kofi_in_softirq(&tasklet, post_both);
	KUNIT_EXPECT_EQ(test, softirq_ret[0], 0);
	KUNIT_EXPECT_EQ(test, softirq_ret[1], -EINVAL);
	efake_wr_done(efake_sent(mr_qp(scene), 0), 0);
	efa_expect_done(test, scene, 1);
	scene->fake->manual_mr = false;
	kofi_in_softirq(&tasklet, post_both);
	KUNIT_EXPECT_EQ(test, softirq_ret[0], -EBUSY);
	KUNIT_EXPECT_EQ(test, softirq_ret[1], 0);
	efa_expect_done(test, scene, 2);
	KUNIT_EXPECT_EQ(test, fi_close(&softirq_mr->fid), 0);
}

static struct kunit_case mr_cases[] = {
	KUNIT_CASE(mr_registered),
	KUNIT_CASE(mr_local),
	KUNIT_CASE(mr_unable),
	KUNIT_CASE(mr_bounced),
	KUNIT_CASE(mr_iommu),
	KUNIT_CASE(mr_page_sizes),
	KUNIT_CASE(mr_gaps),
	KUNIT_CASE(mr_types),
	KUNIT_CASE(mr_large_pages),
	KUNIT_CASE(mr_reg_fails),
	KUNIT_CASE(mr_stuck),
	KUNIT_CASE(mr_stuck_and_refused),
	KUNIT_CASE(post_life),
	KUNIT_CASE(post_states),
	KUNIT_CASE(post_bad),
	KUNIT_CASE(post_fails),
	KUNIT_CASE(post_room_told),
	KUNIT_CASE(post_cq_full),
	KUNIT_CASE(post_stale),
	KUNIT_CASE(post_pieces),
	KUNIT_CASE(post_too_long),
	KUNIT_CASE(post_bounces),
	KUNIT_CASE(post_too_long_to_bounce),
	KUNIT_CASE(post_told),
	KUNIT_CASE(post_when_idle),
	KUNIT_CASE(post_in_softirq),
	{}
};

static struct kunit_suite mr_suite = {
	.name = "kefa_mr",
	.test_cases = mr_cases,
};

kunit_test_suite(mr_suite);
