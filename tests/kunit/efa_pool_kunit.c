// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The EFA provider's pool of the device's regions. */
#include <linux/bvec.h>
#include <linux/prandom.h>
#include <linux/scatterlist.h>
#include "efa_scene.h"

#define REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)
/* Number of generations of a key. */
#define GENERATIONS	16

static int alloc(struct efa_scene *scene, size_t pages, struct fid_mr **mr)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = pages, .access = REMOTE, .cq = scene->cq,
	};

	return fi_mr_alloc(scene->domain, &attr, mr, NULL);
}

static int reg(struct efa_scene *scene, struct fid_mr **mr)
{
	return fi_mr_reg(scene->domain, scene->buf, 100, REMOTE, 0, 0, 0, mr,
			 NULL);
}

/* Open and close a region, whose device region is idle then. */
static void once(struct kunit *test, struct efa_scene *scene, size_t pages)
{
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, alloc(scene, pages, &mr), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* Open @n regions at once and close them, so that their device regions are idle. */
static void several(struct kunit *test, struct efa_scene *scene, size_t pages,
		    int n)
{
	static struct fid_mr *mr[EFAKE_MAX_MR];
	int i;

	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(test, alloc(scene, pages, &mr[i]), 0);
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, fi_close(&mr[i]->fid), 0);
}

static struct kefa_domain *dom_of(struct efa_scene *scene)
{
	return efa_dom(scene);
}

static u32 room_of(struct fid_mr *mr)
{
	struct kefa_mr *kmr = container_of(mr, struct kefa_mr, mr_fid);

	return efake_mr_room(kmr->fr->mr);
}

static void pool_orders(struct kunit *test)
{
	static const struct {
		size_t pages;
		u32 room;
	} cases[] = {
		{ 1, 16 }, { 15, 16 }, { 16, 16 }, { 17, 32 }, { 32, 32 },
		{ 33, 64 }, { 513, 1024 }, { 1024, 1024 },
	};
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		KUNIT_ASSERT_EQ(test, alloc(scene, cases[i].pages, &mr), 0);
		KUNIT_EXPECT_EQ(test, room_of(mr), cases[i].room);
		KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	}
	KUNIT_EXPECT_EQ(test, alloc(scene, 1025, &mr), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, dom_of(scene)->nidle[4], 3);
	KUNIT_EXPECT_EQ(test, dom_of(scene)->nidle[5], 2);
	KUNIT_EXPECT_EQ(test, dom_of(scene)->nidle[6], 1);
	KUNIT_EXPECT_EQ(test, dom_of(scene)->nidle[10], 2);
	KUNIT_EXPECT_EQ(test, dom_of(scene)->nfrmrs, 8);
	KUNIT_EXPECT_EQ(test, scene->fake->mrs, 8);
}

/* After 16 are idle, the one that was idle longest is reused. */
static void pool_rest(struct kunit *test)
{
	static u32 key[GENERATIONS * GENERATIONS];
	struct efa_scene *scene = efa_scene_new(test, NULL);
	u32 i, j, same = 0;
	struct fid_mr *mr;

	for (i = 0; i < ARRAY_SIZE(key); i++) {
		KUNIT_ASSERT_EQ(test, reg(scene, &mr), 0);
		key[i] = fi_mr_key(mr);
		KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	}
	KUNIT_EXPECT_EQ(test, efake_calls(scene->fake, EFAKE_MR_CREATE),
			GENERATIONS);
	/* A key is repeated after the maximum number of registrations, not earlier. */
	for (i = 0; i < ARRAY_SIZE(key); i++)
		for (j = 0; j < i; j++)
			same += key[i] == key[j];
	KUNIT_EXPECT_EQ(test, same, 0);
	for (i = GENERATIONS; i < ARRAY_SIZE(key); i++)
		same += (key[i] - key[i - GENERATIONS]) % EFA_MR_GEN_MASK !=
			BIT(EFA_MR_GEN_SHIFT);
	KUNIT_EXPECT_EQ(test, same, 0);
	KUNIT_ASSERT_EQ(test, reg(scene, &mr), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_key(mr), key[0]);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* Return: the key. */
static u32 post_reg(struct kunit *test, struct efa_scene *scene, struct fid_mr *mr)
{
	const struct kvec iov = { scene->buf, PAGE_SIZE };
	const struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &iov, .iov_count = 1, .access = REMOTE,
	};

	KUNIT_ASSERT_EQ(test, fi_mr_post_reg(mr, &attr, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 0);
	return fi_mr_key(mr);
}

/* The same, and invalidate it. */
static u32 key_of(struct kunit *test, struct efa_scene *scene, struct fid_mr *mr)
{
	u32 key = post_reg(test, scene, mr);

	KUNIT_ASSERT_EQ(test, fi_mr_post_inval(mr, FI_COMPLETION, NULL), 0);
	efa_expect_done(test, scene, 0);
	return key;
}

/* A region that retires isn't reused, so its keys don't come back, however many follow. */
static void pool_retires(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_mr_alloc_attr attr = {
		.max_pages = 1, .access = REMOTE, .cq = scene->cq, .flags = FI_RETIRE,
	};
	struct efake *fake = scene->fake;
	u32 i, retired, same = 0;
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, fi_mr_alloc(scene->domain, &attr, &mr, NULL), 0);
	retired = key_of(test, scene, mr);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, efake_calls(fake, EFAKE_MR_DESTROY), 1);
	KUNIT_EXPECT_EQ(test, fake->mrs, 0);
	attr.flags = 0;
	for (i = 0; i < 2 * GENERATIONS * GENERATIONS; i++) {
		KUNIT_ASSERT_EQ(test, fi_mr_alloc(scene->domain, &attr, &mr, NULL), 0);
		same += key_of(test, scene, mr) == retired;
		KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	}
	KUNIT_EXPECT_EQ(test, same, 0);
	KUNIT_EXPECT_EQ(test, efake_calls(fake, EFAKE_MR_DESTROY), 1);
	/* One that is closed while it is valid, and one that the device doesn't destroy. */
	attr.flags = FI_RETIRE;
	KUNIT_ASSERT_EQ(test, fi_mr_alloc(scene->domain, &attr, &mr, NULL), 0);
	retired = post_reg(test, scene, mr);
	fake->refusal = -EINVAL;
	fake->refuse = BIT(EFAKE_MR_DESTROY);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	fake->refuse = 0;
	KUNIT_EXPECT_FALSE(test, efake_valid(fake, retired));
	KUNIT_EXPECT_EQ(test, dom_of(scene)->nfrmrs, GENERATIONS - 1);
	KUNIT_EXPECT_EQ(test, dom_of(scene)->nidle[4], GENERATIONS - 1);
}

static void pool_full(struct kunit *test)
{
	static struct fid_mr *mr[EFAKE_MAX_MR];
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *more;
	int i;

	for (i = 0; i < EFAKE_MAX_MR; i++)
		KUNIT_ASSERT_EQ(test, alloc(scene, 1 << (i % 6), &mr[i]), 0);
	KUNIT_EXPECT_EQ(test, alloc(scene, 1, &more), -FI_ENOMR);
	KUNIT_EXPECT_EQ(test, reg(scene, &more), -FI_ENOMR);
	/* An idle region of the same size is reused, one of another size is destroyed. */
	KUNIT_EXPECT_EQ(test, fi_close(&mr[0]->fid), 0);
	KUNIT_ASSERT_EQ(test, alloc(scene, 1, &mr[0]), 0);
	KUNIT_EXPECT_EQ(test, efake_calls(scene->fake, EFAKE_MR_CREATE),
			EFAKE_MAX_MR);
	KUNIT_EXPECT_EQ(test, fi_close(&mr[1]->fid), 0);
	KUNIT_ASSERT_EQ(test, alloc(scene, 500, &mr[1]), 0);
	KUNIT_EXPECT_EQ(test, efake_calls(scene->fake, EFAKE_MR_DESTROY), 1);
	KUNIT_EXPECT_EQ(test, scene->fake->mrs, EFAKE_MAX_MR);
	KUNIT_EXPECT_EQ(test, alloc(scene, 1, &more), -FI_ENOMR);
	for (i = 0; i < EFAKE_MAX_MR; i++)
		KUNIT_EXPECT_EQ(test, fi_close(&mr[i]->fid), 0);
	KUNIT_EXPECT_EQ(test, dom_of(scene)->nfrmrs, EFAKE_MAX_MR);
}

/* A domain allows as many open regions as the ULP asked for; idle regions don't count. */
static void pool_asked_for(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) { .mr_cnt = 3 });
	const struct kefa_mrq *mrq = &dom_of(scene)->mrq;
	struct fid_mr *mr[3], *more;
	int i;

	several(test, scene, 1, 3);
	KUNIT_ASSERT_EQ(test, alloc(scene, 500, &mr[0]), 0);
	KUNIT_ASSERT_EQ(test, reg(scene, &mr[1]), 0);
	KUNIT_ASSERT_EQ(test, fi_mr_reg(scene->domain, scene->buf, 100, FI_SEND, 0, 0, 0,
					&mr[2], NULL), 0);
	KUNIT_EXPECT_EQ(test, alloc(scene, 1, &more), -FI_ENOMR);
	KUNIT_EXPECT_EQ(test, reg(scene, &more), -FI_ENOMR);
	KUNIT_EXPECT_EQ(test, mrq->stats.dry, 2ULL);
	/* Failed registrations don't count. */
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, fi_close(&mr[i]->fid), 0);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, alloc(scene, EFAKE_MR_PAGES + 1, &more), -EMSGSIZE);
		scene->fake->status = 3;
		KUNIT_EXPECT_LT(test, reg(scene, &more), 0);
		scene->fake->status = 0;
	}
	several(test, scene, 1, 3);
}

/* A domain can't be opened for more regions than the device has. */
static void pool_asked_too_much(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_domain *domain;

	KUNIT_EXPECT_EQ(test, efa_dom(scene)->max_open, EFAKE_MAX_MR);
	scene->info->domain_attr->mr_cnt = EFAKE_MAX_MR + 1;
	KUNIT_EXPECT_EQ(test, fi_domain(scene->fabric, scene->info, &domain, NULL), -EINVAL);
	scene->info->domain_attr->mr_cnt = 0;
	KUNIT_ASSERT_EQ(test, fi_domain(scene->fabric, scene->info, &domain, NULL), 0);
	KUNIT_EXPECT_EQ(test, container_of(domain, struct kefa_domain, domain_fid)->max_open,
			EFAKE_MAX_MR);
	KUNIT_EXPECT_EQ(test, fi_close(&domain->fid), 0);
}

/* If the device can't create a region, an idle one is reused. */
static void pool_has_one(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr, *more;

	once(test, scene, 1);
	efake_fail(scene->fake, EFAKE_MR_CREATE, 1, -ENOSPC);
	KUNIT_ASSERT_EQ(test, alloc(scene, 1, &mr), 0);
	efake_fail(scene->fake, EFAKE_MR_CREATE, 1, -ENOSPC);
	KUNIT_EXPECT_EQ(test, alloc(scene, 1, &more), -ENOSPC);
	KUNIT_EXPECT_EQ(test, alloc(scene, 1, &more), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&more->fid), 0);
	KUNIT_EXPECT_EQ(test, dom_of(scene)->nfrmrs, 2);
}

/* Without an idle region of the size, one of another size is destroyed. */
static void pool_gives_up_others(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr[5], *more;
	int i;

	scene->fake->max_mrs = 20;
	several(test, scene, 1, 16);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, alloc(scene, 500, &mr[i]), 0);
	KUNIT_EXPECT_EQ(test, dom_of(scene)->nfrmrs, 20);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, fi_close(&mr[i]->fid), 0);
	/* The device's error is returned if that doesn't help. */
	scene->fake->max_mrs = 0;
	KUNIT_EXPECT_EQ(test, alloc(scene, 100, &more), -ENOSPC);
	KUNIT_EXPECT_EQ(test, dom_of(scene)->nfrmrs, 0);
}

/* The maximum of a device may be small, and needn't be a power of two. */
static void pool_limits(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr;

	scene->fake->dev->max_mr_pages = 600;
	KUNIT_ASSERT_EQ(test, alloc(scene, 600, &mr), 0);
	KUNIT_EXPECT_EQ(test, room_of(mr), 600);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, alloc(scene, 601, &mr), -EMSGSIZE);
	scene->fake->dev->max_mr_pages = 4;
	KUNIT_ASSERT_EQ(test, alloc(scene, 1, &mr), 0);
	KUNIT_EXPECT_EQ(test, room_of(mr), 4);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* A region's list of memory has the right end, whatever it held before. */
static void list_ends(struct kunit *test)
{
	static const unsigned int pages[] = { 1, 3, 2, 4, 1, 4 };
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_mr_attr attr = { .access = REMOTE };
	struct bio_vec bv[4];
	struct kvec iov = { };
	struct kefa_mr *kmr;
	struct fid_mr *mr;
	int i, type;

	for (i = 0; i < ARRAY_SIZE(bv); i++)
		bvec_set_page(&bv[i], virt_to_page(scene->buf), PAGE_SIZE,
			      2 * i * PAGE_SIZE);
	iov.iov_base = scene->buf;
	iov.iov_len = PAGE_SIZE;
	KUNIT_ASSERT_EQ(test, alloc(scene, 4, &mr), 0);
	kmr = container_of(mr, struct kefa_mr, mr_fid);
	KUNIT_EXPECT_EQ(test, sg_nents(kmr->sg), 4);
	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		for (type = 0; type < 2; type++) {
			attr.type = type ? FI_MR_BVEC : FI_MR_KVEC;
			attr.iov_count = type ? pages[i] : 1;
			if (type)
				attr.bvec = bv;
			else
				attr.mr_iov = &iov;
			KUNIT_ASSERT_EQ(test, fi_mr_post_reg(mr, &attr, FI_COMPLETION), 0);
			efa_expect_done(test, scene, 0);
			KUNIT_EXPECT_EQ(test, sg_nents(kmr->sg), attr.iov_count);
			KUNIT_EXPECT_EQ(test, kmr->nents, attr.iov_count);
			KUNIT_ASSERT_EQ(test, fi_mr_post_inval(mr, FI_COMPLETION, NULL), 0);
			efa_expect_done(test, scene, 0);
		}
	}
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* Adjacent pieces aren't merged into one whose length overflows. Their memory isn't accessed. */
static void pool_gathers_4g(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct page *page = virt_to_page(scene->buf);
	struct bio_vec bvec[] = {
		{ page, SZ_2G, 0 }, { page + (SZ_2G >> PAGE_SHIFT), SZ_2G, 0 },
	};
	const struct fi_mr_attr attr = { .type = FI_MR_BVEC, .bvec = bvec, .iov_count = 2 };
	struct kefa_mr *kmr;
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, alloc(scene, 4, &mr), 0);
	kmr = container_of(mr, struct kefa_mr, mr_fid);
	KUNIT_EXPECT_EQ(test, kefa_mr_gather(kmr, &attr), 0);
	KUNIT_EXPECT_EQ(test, kmr->nents, 2);
	KUNIT_EXPECT_EQ(test, kmr->sg[0].length, (unsigned int)SZ_2G);
	KUNIT_EXPECT_EQ(test, kmr->len, (size_t)SZ_4G);
	kmr->nents = 0;
	kmr->len = 0;
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* --- lists at random, and what they must become, by the plain rule --- */

#define GATHER_MAX	6	/* pieces of memory */
#define GATHER_ENTS	4	/* entries of a region */

static u32 gather_below(struct rnd_state *rnd, u32 n)
{
	return prandom_u32_state(rnd) % n;
}

/* Choose pieces of a few pages, of which some are empty, adjacent or not aligned. */
static unsigned int gather_choose(struct rnd_state *rnd, struct page *page, struct bio_vec *bvec)
{
	unsigned int i, n = 1 + gather_below(rnd, GATHER_MAX), next = gather_below(rnd, 8);
	u32 off, len;

	for (i = 0; i < n; i++) {
		off = gather_below(rnd, 6) || i ? 0 : 512;
		len = (1 + gather_below(rnd, 2)) * PAGE_SIZE - off;
		if (!gather_below(rnd, 8))
			len = 0;
		else if (i == n - 1 || !gather_below(rnd, 12))
			len -= 512 * gather_below(rnd, 4);
		bvec_set_page(&bvec[i], page + next, len, off);
		next = gather_below(rnd, 2) ? next + DIV_ROUND_UP(off + len, PAGE_SIZE) :
					      gather_below(rnd, 8);
	}
	return n;
}

/* Return: number of entries, or a negative errno. */
static int gather_model(const struct bio_vec *bvec, unsigned int n, struct kefa_seg *ents)
{
	phys_addr_t phys, end = 0;
	int count = 0;

	for (; n; n--, bvec++) {
		if (!bvec->bv_len)
			continue;
		phys = page_to_phys(bvec->bv_page) + bvec->bv_offset;
		if (!count || phys != end) {
			if (count && (phys % PAGE_SIZE || end % PAGE_SIZE))
				return -EINVAL;
			if (count == GATHER_ENTS)
				return -EMSGSIZE;
			ents[count++] = (struct kefa_seg) { .phys = phys };
		}
		ents[count - 1].len += bvec->bv_len;
		end = phys + bvec->bv_len;
	}
	return count ?: -EINVAL;
}

static bool gather_is(const struct kefa_mr *mr, const struct kefa_seg *ents, int count)
{
	size_t len = 0;
	int i;

	for (i = 0; i < count; i++) {
		if (sg_phys(&mr->sg[i]) != ents[i].phys || mr->sg[i].length != ents[i].len)
			return false;
		len += ents[i].len;
	}
	return mr->nents == count && sg_nents(mr->sg) == count && mr->len == len;
}

static void pool_gathers_all(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_mr_attr attr = { .type = FI_MR_BVEC };
	struct kefa_seg ents[GATHER_ENTS];
	struct bio_vec bvec[GATHER_MAX];
	unsigned int i, full = 0, gaps = 0, lists = 0;
	struct rnd_state rnd;
	struct kefa_mr *kmr;
	struct fid_mr *mr;
	int wanted, got;

	prandom_seed_state(&rnd, 44);
	KUNIT_ASSERT_EQ(test, alloc(scene, GATHER_ENTS, &mr), 0);
	kmr = container_of(mr, struct kefa_mr, mr_fid);
	for (i = 0; i < 20000; i++) {
		attr.iov_count = gather_choose(&rnd, virt_to_page(scene->buf), bvec);
		attr.bvec = bvec;
		wanted = gather_model(bvec, attr.iov_count, ents);
		got = kefa_mr_gather(kmr, &attr);
		KUNIT_ASSERT_EQ(test, got, min(wanted, 0));
		if (!got)
			KUNIT_ASSERT_TRUE(test, gather_is(kmr, ents, wanted));
		full += got == -EMSGSIZE;
		gaps += got == -EINVAL;
		lists += wanted > 1;
	}
	KUNIT_EXPECT_GT(test, full, 100U);
	KUNIT_EXPECT_GT(test, gaps, 100U);
	KUNIT_EXPECT_GT(test, lists, 1000U);
	kmr->nents = 0;
	kmr->len = 0;
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

/* The largest size of the device's that divides all addresses at which pieces meet. */
static u64 page_size_model(const struct kefa_dev *dev, const struct scatterlist *sg,
			   unsigned int n, size_t len)
{
	u64 size = roundup_pow_of_two(len);
	unsigned int i;

	for (; size > PAGE_SIZE; size /= 2) {
		for (i = 0; i < n - 1; i++)
			if ((sg_dma_address(&sg[i]) + sg_dma_len(&sg[i])) % size ||
			    sg_dma_address(&sg[i + 1]) % size)
				break;
		if (i == n - 1 && dev->page_sizes & size)
			break;
	}
	return size;
}

static void pool_page_sizes(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	const struct kefa_dev *dev = scene->fake->dev;
	unsigned int i, j, n, large = 0;
	struct scatterlist sg[4];
	struct rnd_state rnd;
	u64 size, unit;
	size_t len;

	prandom_seed_state(&rnd, 44);
	sg_init_table(sg, ARRAY_SIZE(sg));
	for (i = 0; i < 20000; i++) {
		unit = PAGE_SIZE << gather_below(&rnd, 3);
		n = 1 + gather_below(&rnd, ARRAY_SIZE(sg));
		for (j = 0, len = 0; j < n; j++) {
			sg_dma_address(&sg[j]) = SZ_1G + unit * gather_below(&rnd, 64);
			sg_dma_len(&sg[j]) = unit * (1 + gather_below(&rnd, 4));
			len += sg_dma_len(&sg[j]);
		}
		size = kefa_page_size(dev, sg, n, len);
		KUNIT_ASSERT_EQ(test, size, page_size_model(dev, sg, n, len));
		large += size > PAGE_SIZE && n > 1;
	}
	KUNIT_EXPECT_GT(test, large, 100U);
}

static struct kunit_case pool_cases[] = {
	KUNIT_CASE(pool_gathers_all),
	KUNIT_CASE(pool_page_sizes),
	KUNIT_CASE(pool_gathers_4g),
	KUNIT_CASE(list_ends),
	KUNIT_CASE(pool_orders),
	KUNIT_CASE(pool_rest),
	KUNIT_CASE(pool_retires),
	KUNIT_CASE(pool_full),
	KUNIT_CASE(pool_asked_for),
	KUNIT_CASE(pool_asked_too_much),
	KUNIT_CASE(pool_has_one),
	KUNIT_CASE(pool_gives_up_others),
	KUNIT_CASE(pool_limits),
	{}
};

static struct kunit_suite pool_suite = {
	.name = "kefa_pool",
	.test_cases = pool_cases,
};

kunit_test_suite(pool_suite);
