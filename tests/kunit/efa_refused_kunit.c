// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Objects that the device refuses to destroy: the provider keeps using the device. For a dead
 * admin queue see efa_life_kunit.c.
 */
#include <linux/mm.h>
#include "efa_scene.h"

#define REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)

/* The errno that the driver returns for any refusal of the device. */
static void refuse(struct efa_scene *scene, u32 calls)
{
	scene->fake->pci = true;
	scene->fake->refusal = -EINVAL;
	scene->fake->refuse = calls;
}

static void try_again(struct efa_scene *scene)
{
	struct work_struct *watch = &efa_dom(scene)->mrq.watch.work;

	watch->func(watch);
}

/* Check that the device still works. */
static void expect_alive(struct kunit *test, struct efa_scene *scene)
{
	struct fi_info *info = efa_info(test, EFA_DEVICE);
	struct fid_domain *domain = NULL;

	efake_settle_all();
	KUNIT_EXPECT_TRUE(test, scene->fake->master);
	KUNIT_EXPECT_EQ(test, fi_domain(scene->fabric, info, &domain, NULL), 0);
	if (domain)
		KUNIT_EXPECT_EQ(test, fi_close(&domain->fid), 0);
	fi_freeinfo(info);
}

static void expect_counts(struct kunit *test, struct efa_scene *scene,
			  u32 refused, u32 set_aside)
{
	KUNIT_EXPECT_EQ(test, scene->fake->dev->refused, refused);
	KUNIT_EXPECT_EQ(test, scene->fake->dev->set_aside, set_aside);
}

/* One endpoint of two. */
static struct page *refuse_endpoint(struct kunit *test, struct efa_scene *scene)
{
	struct fid_ep *other = efa_scene_ep(test, scene, 0);
	struct page *page = alloc_page(GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_EQ(test, fi_enable(other), 0);
	KUNIT_EXPECT_EQ(test, fi_recv(scene->ep, page_address(page), 64, NULL,
				      FI_ADDR_UNSPEC, (void *)5), 0);
	refuse(scene, BIT(EFAKE_QP_DESTROY));
	KUNIT_EXPECT_EQ(test, fi_close(&scene->ep->fid), 0);
	scene->ep = other;
	scene->qp = efake_last_qp(scene->fake);
	efa_expect_error(test, scene, 5, ECANCELED, 0);
	return page;
}

static void refused_endpoint(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct page *page = refuse_endpoint(test, scene);

	expect_counts(test, scene, 1, 1);
	/* The device may still write to it. */
	put_page(page);
	KUNIT_EXPECT_EQ(test, efake_haunt(scene->fake), 1);
	KUNIT_EXPECT_EQ(test, page_ref_count(page), 1);
	put_page(page);
	scene->fake->refuse = 0;
	expect_alive(test, scene);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 1);
	try_again(scene);
	expect_counts(test, scene, 1, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&scene->fake->broken));
	KUNIT_EXPECT_FALSE(test, efa_dom(scene)->refused.broken);
}

/* An object is refused to the end, and abandoned with its protection domain. */
static void refused_for_good(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct efake *fake = scene->fake;
	int refs = module_refcount(THIS_MODULE);

	/* The page is leaked to the device. */
	refuse_endpoint(test, scene);
	try_again(scene);
	expect_counts(test, scene, 1, 1);
	EFA_CLOSE(test, scene->ep);
	EFA_CLOSE(test, scene->cq);
	EFA_CLOSE(test, scene->av);
	EFA_CLOSE(test, scene->domain);
	/* The queue pairs of both endpoints and of the domain. */
	expect_counts(test, scene, 3, 0);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&fake->broken), 3);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&fake->lost), 1);
	fake->refuse = 0;
	expect_alive(test, scene);
	/* The driver may still call the module's handlers, so the module is pinned. */
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs + 1);
	efake_remove(fake);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs);
}

static void refused_once(struct kunit *test)
{
	static const enum efake_call calls[] = {
		EFAKE_QP_DESTROY, EFAKE_MR_DESTROY, EFAKE_AH_DESTROY,
	};
	struct efa_scene *scene = efa_scene_new(test, NULL);
	int i;

	scene->fake->pci = true;
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		efake_fail(scene->fake, calls[i], 1, -EINVAL);
	EFA_CLOSE(test, scene->ep);
	EFA_CLOSE(test, scene->cq);
	EFA_CLOSE(test, scene->av);
	EFA_CLOSE(test, scene->domain);
	expect_counts(test, scene, 0, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&scene->fake->lost));
	expect_alive(test, scene);
}

static int alloc(struct efa_scene *scene, size_t pages, struct fid_mr **mr)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = pages, .access = REMOTE, .cq = scene->cq,
	};

	return fi_mr_alloc(scene->domain, &attr, mr, NULL);
}

/* With a full pool, a refusal to destroy an idle region doesn't end the search. */
static void refused_idle_region(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *small[3], *large;
	int i;

	scene->fake->dev->max_mr = 3;
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, alloc(scene, 1, &small[i]), 0);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, fi_close(&small[i]->fid), 0);
	refuse(scene, BIT(EFAKE_MR_DESTROY));
	KUNIT_ASSERT_EQ(test, alloc(scene, 500, &large), 0);
	expect_counts(test, scene, 1, 1);
	expect_alive(test, scene);
	scene->fake->refuse = 0;
	try_again(scene);
	expect_counts(test, scene, 1, 0);
	KUNIT_EXPECT_EQ(test, fi_close(&large->fid), 0);
}

/* Refusals at removal: all other objects are destroyed. */
static void refused_at_removal(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, fi_mr_reg(scene->domain, scene->buf, 64, REMOTE,
					0, 0, 0, &mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	refuse(scene, EFAKE_REFUSE_ALL);
	efake_remove(scene->fake);
	KUNIT_EXPECT_TRUE(test, scene->fake->master);
	efa_expect_error(test, scene, 1, ENODEV, 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
}

static struct kunit_case refused_cases[] = {
	KUNIT_CASE(refused_endpoint),
	KUNIT_CASE(refused_for_good),
	KUNIT_CASE(refused_once),
	KUNIT_CASE(refused_idle_region),
	KUNIT_CASE(refused_at_removal),
	{}
};

static struct kunit_suite refused_suite = {
	.name = "kefa_refused",
	.test_cases = refused_cases,
};

kunit_test_suite(refused_suite);
