// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions that the device fails to invalidate: they are destroyed instead, and their users
 * get the right result.
 */
#include <linux/mm.h>
#include "crew.h"
#include "efa_scene.h"

#define REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)

/**
 * struct revoked - a valid region of a page
 * @scene: scene that the region belongs to
 * @page: registered memory
 * @mr: the region
 * @key: key of the region
 */
struct revoked {
	struct efa_scene	*scene;
	struct page		*page;
	struct fid_mr		*mr;
	u32			key;
};

static int post_reg(struct revoked *r, long ctx)
{
	const struct kvec iov = { page_address(r->page), PAGE_SIZE };
	const struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &iov, .iov_count = 1,
		.access = REMOTE, .context = (void *)ctx,
	};

	return fi_mr_post_reg(r->mr, &attr, FI_COMPLETION);
}

static int post_inval(struct revoked *r, long ctx)
{
	return fi_mr_post_inval(r->mr, FI_COMPLETION, (void *)ctx);
}

/* The suite runs twice: regions of the domain, and of an endpoint. */
static bool by_ep;

static struct revoked *revoked_make_with(struct kunit *test, u64 flags)
{
	struct revoked *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct fi_mr_alloc_attr attr = { .max_pages = 2, .access = REMOTE, .flags = flags };

	KUNIT_ASSERT_NOT_NULL(test, r);
	/* A reader that may sleep, so that the worker notices failures without a read. */
	r->scene = efa_scene_new(test, &(struct efa_opts) { .cq.wait_obj = FI_WAIT_UNSPEC });
	r->page = alloc_page(GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->page);
	attr.cq = r->scene->cq;
	attr.ep = by_ep ? r->scene->ep : NULL;
	KUNIT_ASSERT_EQ(test, fi_mr_alloc(r->scene->domain, &attr, &r->mr, NULL),
			0);
	KUNIT_ASSERT_EQ(test, post_reg(r, 1), 0);
	efa_expect_done(test, r->scene, 1);
	r->key = fi_mr_key(r->mr);
	return r;
}

static struct revoked *revoked_make(struct kunit *test)
{
	return revoked_make_with(test, 0);
}

/* The region can be reused, and peers can't reach it by the old key. */
static void expect_usable(struct kunit *test, struct revoked *r)
{
	struct efa_scene *scene = r->scene;

	KUNIT_EXPECT_EQ(test, fi_mr_key(r->mr), FI_KEY_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, post_reg(r, 3), 0);
	efa_expect_done(test, scene, 3);
	KUNIT_EXPECT_NE(test, fi_mr_key(r->mr), r->key);
	KUNIT_EXPECT_FALSE(test, efake_valid(scene->fake, r->key));
	KUNIT_EXPECT_TRUE(test, efake_valid(scene->fake, fi_mr_key(r->mr)));
	KUNIT_EXPECT_EQ(test, post_inval(r, 4), 0);
	efa_expect_done(test, scene, 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits),
			efa_cq(scene)->attr.size);
}

static void close_all(struct kunit *test, struct revoked *r)
{
	KUNIT_EXPECT_EQ(test, fi_close(&r->mr->fid), 0);
	KUNIT_EXPECT_EQ(test, page_ref_count(r->page), 1);
	put_page(r->page);
}

/* Post an invalidation, and complete it with a status. */
static void answer(struct kunit *test, struct revoked *r, u32 status)
{
	r->scene->fake->status = status;
	KUNIT_EXPECT_EQ(test, post_inval(r, 2), 0);
	r->scene->fake->status = 0;
	efake_settle_all();
}

static void not_taken_back(struct kunit *test)
{
	struct revoked *r = revoked_make(test);

	answer(test, r, 2);
	efa_expect_done(test, r->scene, 2);
	KUNIT_EXPECT_EQ(test, by_ep ? efa_ep(r->scene)->stats.revoked :
				      efa_dom(r->scene)->mrq.stats.revoked, 1);
	KUNIT_EXPECT_EQ(test, r->scene->fake->mrs, 1);
	expect_usable(test, r);
	close_all(test, r);
}

static void not_posted(struct kunit *test)
{
	struct revoked *r = revoked_make(test);

	efake_fail(r->scene->fake, EFAKE_POST_SEND, 1, -EINVAL);
	KUNIT_EXPECT_EQ(test, post_inval(r, 2), 0);
	efake_settle_all();
	efa_expect_done(test, r->scene, 2);
	expect_usable(test, r);
	close_all(test, r);
}

/* The invalidation doesn't complete before the region was destroyed. */
static void in_between(struct kunit *test)
{
	struct revoked *r = revoked_make(test);
	struct kefa_dev *dev = r->scene->fake->dev;

	kefa_dev_lock(dev);
	r->scene->fake->status = 2;
	KUNIT_EXPECT_EQ(test, post_inval(r, 2), 0);
	efa_expect_nothing(test, r->scene);
	KUNIT_EXPECT_EQ(test, fi_mr_key(r->mr), FI_KEY_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, post_reg(r, 3), -EBUSY);
	KUNIT_EXPECT_EQ(test, post_inval(r, 3), -EINVAL);
	r->scene->fake->status = 0;
	kefa_dev_unlock(dev);
	efake_settle_all();
	efa_expect_done(test, r->scene, 2);
	close_all(test, r);
}

/* The memory is leaked, and the invalidation completes with an error. */
static void refused(struct kunit *test)
{
	struct revoked *r = revoked_make(test);
	struct efake *fake = r->scene->fake;

	fake->pci = true;
	fake->refusal = -EINVAL;
	fake->refuse = BIT(EFAKE_MR_DESTROY);
	answer(test, r, 2);
	efa_expect_error(test, r->scene, 2, EIO, 2);
	KUNIT_EXPECT_TRUE(test, fake->master);
	KUNIT_EXPECT_EQ(test, page_ref_count(r->page), 2);
	KUNIT_EXPECT_EQ(test, efake_haunt(fake), 1);
	fake->refuse = 0;
	expect_usable(test, r);
	/* The owner's reference, and the one that leaks the page. */
	put_page(r->page);
	close_all(test, r);
}

static void dead(struct kunit *test, bool pci)
{
	struct revoked *r = revoked_make(test);
	struct efake *fake = r->scene->fake;

	fake->pci = pci;
	fake->refusal = -ETIME;
	fake->refuse = EFAKE_REFUSE_ALL;
	answer(test, r, 2);
	efa_expect_error(test, r->scene, 2, pci ? ENODEV : EIO, 2);
	KUNIT_EXPECT_EQ(test, fake->master, !pci);
	KUNIT_EXPECT_EQ(test, page_ref_count(r->page), pci ? 1 : 2);
	KUNIT_EXPECT_EQ(test, fi_close(&r->mr->fid), 0);
	if (!pci)
		put_page(r->page);
	put_page(r->page);
}

static void dead_pci(struct kunit *test)
{
	dead(test, true);
}

static void dead_otherwise(struct kunit *test)
{
	dead(test, false);
}

/* An invalidation is outstanding at removal, and the device refuses to destroy the region. */
static void refused_at_removal(struct kunit *test)
{
	struct revoked *r = revoked_make(test);

	r->scene->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, post_inval(r, 2), 0);
	r->scene->fake->refusal = -ETIME;
	r->scene->fake->refuse = EFAKE_REFUSE_ALL;
	efake_remove(r->scene->fake);
	efa_expect_error(test, r->scene, 2, EIO, 0);
	KUNIT_EXPECT_EQ(test, page_ref_count(r->page), 2);
	KUNIT_EXPECT_EQ(test, fi_close(&r->mr->fid), 0);
	put_page(r->page);
	put_page(r->page);
}

/* The first fi_close() tells that the memory is reachable, the second one closes. */
static void closes_at_last(struct kunit *test, struct revoked *r)
{
	KUNIT_EXPECT_EQ(test, fi_close(&r->mr->fid), -EIO);
	KUNIT_EXPECT_EQ(test, page_ref_count(r->page), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_dom(r->scene)->nopen), 1);
	KUNIT_EXPECT_EQ(test, post_reg(r, 3), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, post_inval(r, 3), -EOPNOTSUPP);
	r->scene->fake->status = 0;
	r->scene->fake->refuse = 0;
	KUNIT_EXPECT_EQ(test, fi_close(&r->mr->fid), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_dom(r->scene)->nopen), 0);
	put_page(r->page);
	put_page(r->page);
}

/* A region that retires is closed while it is valid, so no completion tells. */
static void refused_at_close(struct kunit *test)
{
	struct revoked *r = revoked_make_with(test, FI_RETIRE);
	struct efake *fake = r->scene->fake;

	fake->pci = true;
	fake->refusal = -EINVAL;
	fake->refuse = BIT(EFAKE_MR_DESTROY);
	fake->status = 2;
	closes_at_last(test, r);
}

/* The same for a device that was removed, and whose access to memory can't be blocked. */
static void refused_before_close(struct kunit *test)
{
	struct revoked *r = revoked_make_with(test, FI_RETIRE);

	r->scene->fake->refusal = -ETIME;
	r->scene->fake->refuse = EFAKE_REFUSE_ALL;
	efake_remove(r->scene->fake);
	KUNIT_EXPECT_EQ(test, post_inval(r, 2), -ENODEV);
	closes_at_last(test, r);
}

static void no_other_region(struct kunit *test)
{
	struct revoked *r = revoked_make(test);
	struct efake *fake = r->scene->fake;
	struct kofi_cq *cq = efa_cq(r->scene);

	fake->max_mrs = 0;
	answer(test, r, 2);
	efa_expect_done(test, r->scene, 2);
	KUNIT_EXPECT_EQ(test, post_reg(r, 3), -EAGAIN);
	KUNIT_EXPECT_EQ(test, post_inval(r, 3), -EINVAL);
	/* The ULP is told to try again, also while the device has no other region. */
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(cq->room)));
	WRITE_ONCE(cq->room, false);
	efake_settle_all();
	fake->max_mrs = 1;
	KUNIT_EXPECT_EQ(test, post_reg(r, 3), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(cq->room)));
	WRITE_ONCE(cq->room, false);
	expect_usable(test, r);
	close_all(test, r);
}

static void no_other_region_at_close(struct kunit *test)
{
	struct revoked *r = revoked_make(test);

	r->scene->fake->max_mrs = 0;
	answer(test, r, 2);
	efa_expect_done(test, r->scene, 2);
	close_all(test, r);
}

static void remove_device(struct kofi_thread *thread)
{
	efake_remove(thread->arg);
}

/* Revocation and removal race: the invalidation completes once. */
static void removed_meanwhile(struct kunit *test)
{
	struct revoked *r = revoked_make(test);
	struct efake *fake = r->scene->fake;
	struct kefa_dev *dev = fake->dev;
	struct kofi_thread thread;
	struct efa_comp comp;

	kefa_dev_lock(dev);
	fake->status = 2;
	KUNIT_EXPECT_EQ(test, post_inval(r, 2), 0);
	efa_expect_nothing(test, r->scene);
	kofi_thread_start(test, &thread, remove_device, fake);
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 20));
	kefa_dev_unlock(dev);
	kofi_thread_join(test, &thread);
	flush_workqueue(kefa_cmd_wq);
	comp = efa_read(r->scene);
	if (comp.ret == 1) {
		KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, 2);
	} else {
		KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
		KUNIT_EXPECT_EQ(test, (long)comp.error.op_context, 2);
		KUNIT_EXPECT_EQ(test, comp.error.err, ENODEV);
	}
	efa_expect_nothing(test, r->scene);
	close_all(test, r);
}

#define REVOKE_CASES \
	KUNIT_CASE(not_taken_back), \
	KUNIT_CASE(not_posted), \
	KUNIT_CASE(in_between), \
	KUNIT_CASE(refused), \
	KUNIT_CASE(dead_pci), \
	KUNIT_CASE(dead_otherwise), \
	KUNIT_CASE(refused_at_removal), \
	KUNIT_CASE(refused_at_close), \
	KUNIT_CASE(refused_before_close), \
	KUNIT_CASE(no_other_region), \
	KUNIT_CASE(no_other_region_at_close), \
	KUNIT_CASE(removed_meanwhile), \
	{}

static struct kunit_case revoke_cases[] = { REVOKE_CASES };
static struct kunit_case revoke_ep_cases[] = { REVOKE_CASES };

static int by_ep_init(struct kunit_suite *suite)
{
	by_ep = true;
	return 0;
}

static void by_ep_exit(struct kunit_suite *suite)
{
	by_ep = false;
}

static struct kunit_suite revoke_suite = {
	.name = "kefa_revoke",
	.test_cases = revoke_cases,
};

static struct kunit_suite revoke_ep_suite = {
	.name = "kefa_revoke_ep",
	.suite_init = by_ep_init,
	.suite_exit = by_ep_exit,
	.test_cases = revoke_ep_cases,
};

kunit_test_suites(&revoke_suite, &revoke_ep_suite);
