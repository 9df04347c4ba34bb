// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions of an endpoint, which its own queue pair registers and invalidates, in order with
 * its sends.
 */
#include "crew.h"
#include "efa_scene.h"

#define REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct kefa_mr *kmr(struct fid_mr *mr)
{
	return container_of(mr, struct kefa_mr, mr_fid);
}

static int try_alloc(struct efa_scene *scene, struct fid_mr **mr)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 4, .access = REMOTE, .cq = scene->cq, .ep = scene->ep,
	};

	return fi_mr_alloc(scene->domain, &attr, mr, NULL);
}

static struct fid_mr *alloc(struct kunit *test, struct efa_scene *scene)
{
	struct fid_mr *mr = NULL;

	KUNIT_ASSERT_EQ(test, try_alloc(scene, &mr), 0);
	return mr;
}

static int post_reg(struct efa_scene *scene, struct fid_mr *mr, long ctx, u64 flags)
{
	const struct kvec iov = { scene->buf + 16, PAGE_SIZE };
	const struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &iov, .iov_count = 1,
		.access = FI_REMOTE_READ, .context = (void *)ctx,
	};

	return fi_mr_post_reg(mr, &attr, flags);
}

static int post_inval(struct fid_mr *mr, long ctx, u64 flags)
{
	return fi_mr_post_inval(mr, flags, (void *)ctx);
}

/* The domain's queue pair, which completes at once, closes regions. */
static void expect_closed(struct kunit *test, struct efa_scene *scene, struct fid_mr *mr)
{
	struct kefa_ep *ep = efa_ep(scene);

	scene->fake->manual_mr = false;
	KUNIT_EXPECT_EQ(test, ep->tx.nfree, ep->tx.base.size);
	KUNIT_EXPECT_EQ(test, ep->nregs, ep->nregs_done);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits),
			efa_cq(scene)->attr.size);
}

static void by_its_endpoint(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);
	unsigned int maps = scene->fake->nmaps;
	struct efake_wr *wr;
	u32 key;

	scene->fake->manual_mr = true;
	KUNIT_ASSERT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	wr = efake_sent(scene->qp, 0);
	KUNIT_ASSERT_NOT_NULL(test, wr);
	KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_REG_MR);
	KUNIT_EXPECT_EQ(test, wr->access, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 9, 0), -EBUSY);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 9, 0), -EINVAL);
	efa_expect_nothing(test, scene);
	efake_wr_done(wr, 0);
	efa_expect_done(test, scene, 1);
	key = fi_mr_key(mr);
	KUNIT_EXPECT_TRUE(test, efake_valid(scene->fake, key));
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps + 1);

	KUNIT_ASSERT_EQ(test, post_inval(mr, 2, FI_COMPLETION), 0);
	wr = efake_sent(scene->qp, 0);
	KUNIT_ASSERT_NOT_NULL(test, wr);
	KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_LOCAL_INV);
	efake_wr_done(wr, 0);
	efa_expect_done(test, scene, 2);
	KUNIT_EXPECT_FALSE(test, efake_valid(scene->fake, key));
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps);
	expect_closed(test, scene, mr);
}

/* Without FI_COMPLETION only failures are reported. */
static void quietly(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);

	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, 0), 0);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, kmr(mr)->state, KEFA_MR_VALID);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 2, 0), 0);
	efa_expect_nothing(test, scene);
	scene->fake->status = 3;
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 3, 0), 0);
	efa_expect_error(test, scene, 3, kefa_status_errno(3), 3);
	KUNIT_EXPECT_EQ(test, kmr(mr)->nsegs, 0);
	KUNIT_EXPECT_EQ(test, fi_mr_key(mr), FI_KEY_NOTAVAIL);
	scene->fake->status = 0;
	expect_closed(test, scene, mr);
}

/* Requests of all kinds of an endpoint share a doorbell. */
static void one_doorbell(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr[2] = { alloc(test, scene), alloc(test, scene) };
	unsigned int doorbells;

	KUNIT_EXPECT_EQ(test, post_reg(scene, mr[1], 1, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 1);
	scene->fake->manual_mr = true;
	doorbells = scene->qp->doorbells;
	/* Hold the lock, so that the worker doesn't post the held requests. */
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr[0], 2, FI_COMPLETION | FI_MORE), 0);
	KUNIT_EXPECT_EQ(test, post_inval(mr[1], 3, FI_COMPLETION | FI_MORE), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 8, 4), 0);
	local_bh_enable();
	efake_settle();
	KUNIT_EXPECT_EQ(test, scene->qp->nsent, 3);
	KUNIT_EXPECT_LE(test, scene->qp->doorbells, doorbells + 2);
	while (scene->qp->nsent)
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 2);
	efa_expect_done(test, scene, 3);
	efa_expect_done(test, scene, 4);
	expect_closed(test, scene, mr[0]);
	expect_closed(test, scene, mr[1]);
}

/* --- the fast path --- */

static unsigned int slow_posts;

static int slow_reg(struct kefa_mr *mr, u64 access, u64 flags, void *context)
{
	slow_posts++;
	return kefa_direct_mr_reg(mr, access, flags, context);
}

static int slow_inval(struct kefa_mr *mr, u64 flags, void *context)
{
	slow_posts++;
	return kefa_direct_mr_inval(mr, flags, context);
}

static struct kefa_ep_kind counted_kind;

/* Count the requests of an endpoint's regions that take the slow path. */
static void count_slow(struct efa_scene *scene)
{
	counted_kind = *efa_ep(scene)->kind;
	counted_kind.reg = slow_reg;
	counted_kind.inval = slow_inval;
	efa_ep(scene)->kind = &counted_kind;
	slow_posts = 0;
}

static int post_reg_pages(struct efa_scene *scene, struct fid_mr *mr, long ctx, unsigned int n)
{
	struct fi_mr_attr attr = {
		.type = FI_MR_BVEC, .iov_count = n, .access = REMOTE, .context = (void *)ctx,
	};
	struct bio_vec bvec[2];

	/* The first page comes last. */
	bvec_set_page(&bvec[0], virt_to_page(scene->buf + PAGE_SIZE), PAGE_SIZE, 0);
	bvec_set_page(&bvec[1], virt_to_page(scene->buf), PAGE_SIZE, 0);
	attr.bvec = bvec;
	return fi_mr_post_reg(mr, &attr, FI_COMPLETION);
}

static const struct plain {
	const char	*desc;
	unsigned int	pages;	/* the region has so many bio_vecs; 0 for a kvec */
	u64		flags;
	unsigned int	slow;	/* requests that take the slow path, of two */
} plains[] = {
	{ "kvec", 0, FI_COMPLETION, 0 },
	{ "quiet", 0, 0, 0 },
	{ "page", 1, FI_COMPLETION, 0 },
	{ "pages", 2, FI_COMPLETION, 1 },
	{ "more", 0, FI_COMPLETION | FI_MORE, 2 },
};

KUNIT_ARRAY_PARAM_DESC(plain, plains, desc);

static void in_one_go(struct kunit *test)
{
	const struct plain *plain = test->param_value;
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);
	unsigned int maps = scene->fake->nmaps;

	count_slow(scene);
	if (plain->pages)
		KUNIT_EXPECT_EQ(test, post_reg_pages(scene, mr, 1, plain->pages), 0);
	else
		KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, plain->flags), 0);
	if (plain->flags)
		efa_expect_done(test, scene, 1);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_TRUE(test, efake_valid(scene->fake, fi_mr_key(mr)));
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps + max(plain->pages, 1U));
	KUNIT_EXPECT_EQ(test, post_inval(mr, 2, plain->flags), 0);
	if (plain->flags)
		efa_expect_done(test, scene, 2);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, fi_mr_key(mr), FI_KEY_NOTAVAIL);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps);
	KUNIT_EXPECT_EQ(test, slow_posts, plain->slow);
	expect_closed(test, scene, mr);
}

/* If the fast path fails, it leaves nothing mapped or reserved, and the slow path decides. */
static void declined(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);
	unsigned int maps = scene->fake->nmaps;
	int credits = atomic_read(&efa_cq(scene)->credits);

	count_slow(scene);
	/* The slow path maps at the second attempt. */
	efake_fail(scene->fake, EFAKE_DMA_MAP, 1, 0);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 9, FI_COMPLETION), -EBUSY);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 2, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 2);
	efake_fail(scene->fake, EFAKE_MR_MAP, 1, -EIO);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 3, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 3);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 4, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 4);
	KUNIT_EXPECT_EQ(test, slow_posts, 2U);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 9, FI_COMPLETION), -EINVAL);
	scene->fake->bounce = true;
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 9, FI_COMPLETION), -EOPNOTSUPP);
	scene->fake->bounce = false;
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits), credits);
	expect_closed(test, scene, mr);
}

/* Requests of all kinds that end together are reported in order, and their slots are like new. */
static void end_together(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) { .tx_size = 4 });
	struct fid_mr *mr[2] = { alloc(test, scene), alloc(test, scene) };
	struct efake_wr *wr[4];
	int i, round;

	KUNIT_EXPECT_EQ(test, post_reg(scene, mr[1], 9, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 9);
	scene->fake->manual_mr = true;
	for (round = 0; round < 2; round++) {
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
		KUNIT_EXPECT_EQ(test, post_reg(scene, mr[round], 2, FI_COMPLETION), 0);
		KUNIT_EXPECT_EQ(test, post_inval(mr[!round], 3, FI_COMPLETION), 0);
		KUNIT_EXPECT_EQ(test, efa_send(scene, 8, 4), 0);
		/* Nothing polls until all four have ended. */
		spin_lock_bh(&efa_ep(scene)->lock);
		for (i = 0; i < 4; i++)
			wr[i] = efake_sent(scene->qp, i);
		for (i = 0; i < 4; i++)
			efake_wr_done(wr[i], 0);
		spin_unlock_bh(&efa_ep(scene)->lock);
		for (i = 1; i <= 4; i++)
			efa_expect_done(test, scene, i);
		efa_expect_nothing(test, scene);
	}
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, efa_write(scene, 64, i), 0);
	KUNIT_EXPECT_EQ(test, post_inval(mr[1], 9, FI_COMPLETION), -EAGAIN);
	for (i = 0; i < 4; i++)
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	for (i = 0; i < 4; i++)
		efa_expect_done(test, scene, i);
	expect_closed(test, scene, mr[0]);
	expect_closed(test, scene, mr[1]);
}

/* --- without room --- */

static void no_slot(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) { .tx_size = 4 });
	struct fid_mr *mr = alloc(test, scene);
	int i;

	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, efa_send(scene, 8, i), 0);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 9, FI_COMPLETION), -EAGAIN);
	KUNIT_EXPECT_EQ(test, kmr(mr)->nsegs, 0);
	KUNIT_EXPECT_TRUE(test, efa_ep(scene)->tx.wanted);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 0);
	KUNIT_EXPECT_FALSE(test, efa_ep(scene)->tx.wanted);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 9, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 9);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 8, 5), 0);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 8, FI_COMPLETION), -EAGAIN);
	KUNIT_EXPECT_EQ(test, kmr(mr)->state, KEFA_MR_VALID);
	while (scene->qp->nsent)
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_drain(scene), 4);
	expect_closed(test, scene, mr);
}

/* Messages and transfers to dead peers leave slots, so that regions can be invalidated. */
static void slots_kept(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) { .tx_size = 64 });
	struct fid_mr *mr[9];
	int i;

	KUNIT_EXPECT_EQ(test, efa_ep(scene)->tx.kept, 0U);
	for (i = 0; i < 9; i++)
		mr[i] = alloc(test, scene);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->tx.kept, 8U);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr[0], 99, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 99);
	for (i = 0; i < 56; i++)
		KUNIT_ASSERT_EQ(test, i & 1 ? efa_send(scene, 8, i) : efa_write(scene, 64, i), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 8, 56), -EAGAIN);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 64, 56), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, efa_ep(scene)->tx.wanted);
	KUNIT_EXPECT_EQ(test, post_inval(mr[0], 99, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 99);
	/* None of the sends has ended. */
	KUNIT_EXPECT_EQ(test, efa_send(scene, 8, 56), -EAGAIN);
	scene->fake->manual_mr = true;
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, post_reg(scene, mr[i], 100 + i, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr[8], 108, FI_COMPLETION), -EAGAIN);
	for (i = 0; i < 8; i++) {
		efake_wr_done(efake_sent(scene->qp, 56), 0);
		efa_expect_done(test, scene, 100 + i);
	}
	KUNIT_EXPECT_EQ(test, efa_write(scene, 64, 56), -EAGAIN);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 0);
	KUNIT_EXPECT_FALSE(test, efa_ep(scene)->tx.wanted);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 64, 0), 0);
	while (scene->qp->nsent)
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_drain(scene), 56);
	for (i = 0; i < 9; i++)
		expect_closed(test, scene, mr[i]);
}

/* A region can be closed while the endpoint has other operations. */
static void closed_amid_sends(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);

	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 2);
	efa_expect_nothing(test, scene);
}

static void no_dma_space(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);

	scene->fake->iommu = true;
	scene->fake->refuse = BIT(EFAKE_DMA_MAP);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), -EAGAIN);
	scene->fake->refuse = 0;
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.map_failed, 1ULL);
	/* No operation completes, but a timer notifies the ULP, maybe already. */
	flush_delayed_work(&efa_ep(scene)->map_retry);
	efake_settle();
	KUNIT_EXPECT_FALSE(test, efa_ep(scene)->tx.wanted);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 2, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 2);
	expect_closed(test, scene, mr);
}

/* The work request can't be posted. */
static void not_posted(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);

	efake_fail(scene->fake, EFAKE_POST_SEND, 1, -EIO);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	efa_expect_error(test, scene, 1, EIO, 0);
	KUNIT_EXPECT_EQ(test, kmr(mr)->nsegs, 0);
	expect_closed(test, scene, mr);
}

/* Only sends to receivers that weren't ready are resent, not registrations. */
static void no_receiver(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) { .idle = true });
	const size_t ms = 1000;
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, fi_setopt(&scene->ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_RNR_TIMEOUT, &ms, sizeof(ms)), 0);
	mr = alloc(test, scene);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, 0), -FI_EOPBADSTATE);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	scene->fake->status = KEFA_STATUS_RNR;
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	efa_expect_error(test, scene, 1, kefa_status_errno(KEFA_STATUS_RNR), KEFA_STATUS_RNR);
	scene->fake->status = 0;
	expect_closed(test, scene, mr);
}

/* A registration has no peer, so it delays no address handle. */
static void handle_goes_meanwhile(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);

	scene->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, scene->fake->ahs, 1);
	KUNIT_EXPECT_EQ(test, fi_av_remove(scene->av, &scene->peer, 1, 0), 0);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, scene->fake->ahs, 0);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 1);
	expect_closed(test, scene, mr);
}

static void pins_its_endpoint(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = alloc(test, scene);

	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, fi_close(&scene->ep->fid), -EBUSY);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	EFA_CLOSE(test, scene->ep);
}

/* --- an endpoint that ends before its regions --- */

static const struct ending {
	const char		*desc;
	enum kefa_mr_state	state;
	int			err;	/* expected errno of the outstanding request */
} endings[] = {
	{ "idle", KEFA_MR_IDLE },
	{ "registering", KEFA_MR_REGISTERING, ECANCELED },
	{ "valid", KEFA_MR_VALID },
	{ "invalidating", KEFA_MR_INVALIDATING, ECANCELED },
};

KUNIT_ARRAY_PARAM_DESC(ending, endings, desc);

/* Create a region in a state. The context of an outstanding request is 3. */
static struct fid_mr *mr_in(struct kunit *test, struct efa_scene *scene,
			    enum kefa_mr_state state)
{
	struct fid_mr *mr = alloc(test, scene);

	scene->fake->manual_mr = true;
	if (state == KEFA_MR_IDLE)
		return mr;
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 3, FI_COMPLETION), 0);
	if (state == KEFA_MR_REGISTERING)
		return mr;
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 3);
	if (state == KEFA_MR_VALID)
		return mr;
	KUNIT_EXPECT_EQ(test, post_inval(mr, 3, FI_COMPLETION), 0);
	return mr;
}

/*
 * All operations end, also those of regions. Registered regions stay registered until they
 * are closed.
 */
static void ends_before_regions(struct kunit *test)
{
	const struct ending *ending = test->param_value;
	struct efa_scene *scene = efa_scene_new(test, NULL);
	/* The endpoint's copy buffer is freed with its queue pair. */
	unsigned int maps = scene->fake->nmaps - 1;
	struct fid_mr *mr = mr_in(test, scene, ending->state);
	u32 key = fi_mr_key(mr);

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 2), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&scene->ep->fid), -EBUSY);
	KUNIT_EXPECT_EQ(test, fi_disable(scene->ep), 0);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->tx.nfree, efa_ep(scene)->tx.base.size);
	KUNIT_EXPECT_EQ(test, kmr(mr)->state, ending->err ? KEFA_MR_IDLE : ending->state);
	efa_expect_error_now(test, scene, 1, ECANCELED, 0);
	efa_expect_error_now(test, scene, 2, ECANCELED, 0);
	if (ending->err)
		efa_expect_error_now(test, scene, 3, ending->err, 0);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps + (ending->state == KEFA_MR_VALID));
	KUNIT_EXPECT_EQ(test, efake_mr(scene->fake, key) && efake_valid(scene->fake, key),
			ending->state == KEFA_MR_VALID);

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 4), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 4), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, post_inval(mr, 4, FI_COMPLETION), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 4, FI_COMPLETION), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_disable(scene->ep), 0);
	/* Closing invalidates a valid region by the domain's queue pair. */
	scene->fake->manual_mr = false;
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, maps);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits), efa_cq(scene)->attr.size);
	EFA_CLOSE(test, scene->ep);
}

/* If the device refuses to destroy a region, its operation completes with an error. */
static void ends_but_is_reached(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct page *page = alloc_page(GFP_KERNEL);
	struct fid_mr *mr = alloc(test, scene);
	u8 *buf = scene->buf;

	KUNIT_ASSERT_NOT_NULL(test, page);
	scene->fake->manual_mr = true;
	scene->buf = page_address(page);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 3, FI_COMPLETION), 0);
	scene->buf = buf;
	scene->fake->refuse = BIT(EFAKE_MR_DESTROY);
	scene->fake->refusal = -EBUSY;
	KUNIT_EXPECT_EQ(test, fi_disable(scene->ep), 0);
	efa_expect_error_now(test, scene, 3, EIO, 0);
	KUNIT_EXPECT_TRUE(test, kmr(mr)->exposed);
	/* The page is leaked. */
	KUNIT_EXPECT_EQ(test, page_count(page), 2);
	scene->fake->refuse = 0;
	scene->fake->manual_mr = false;
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	EFA_CLOSE(test, scene->ep);
	put_page(page);
	put_page(page);
}

/* The device is removed after the endpoint was disabled, and the other way round. */
static void ends_and_is_removed(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *mr = mr_in(test, scene, KEFA_MR_VALID);

	KUNIT_EXPECT_EQ(test, fi_disable(scene->ep), 0);
	efake_remove(scene->fake);
	KUNIT_EXPECT_EQ(test, kmr(mr)->nsegs, 0);
	KUNIT_EXPECT_EQ(test, fi_disable(scene->ep), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&mr->fid), 0);
	EFA_CLOSE(test, scene->ep);
}

struct gone {
	struct efa_scene	*scene;
	unsigned int		ended;	/* operations that had completed then */
};

static void disable_when_dead(struct kofi_thread *thread)
{
	struct gone *gone = thread->arg;

	while (!READ_ONCE(gone->scene->ep->fid.dead))
		cpu_relax();
	thread->ret = fi_disable(gone->scene->ep);
	gone->ended = efa_drain(gone->scene);
}

/*
 * The device goes away with operations of each kind outstanding. When fi_disable() returns, also
 * in the middle of the removal, all of them have completed, and the ULP may free their memory.
 */
static void removed_while_outstanding(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fid_mr *registering = mr_in(test, scene, KEFA_MR_REGISTERING);
	struct fid_mr *other = alloc(test, scene);
	struct gone gone = { .scene = scene };
	struct kofi_thread thread;
	int i;

	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 10 + i), 0);
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 20 + i), 0);
		KUNIT_EXPECT_EQ(test, efa_write(scene, 64, 30 + i), 0);
	}
	KUNIT_EXPECT_EQ(test, post_reg(scene, other, 4, FI_COMPLETION), 0);
	kofi_thread_start(test, &thread, disable_when_dead, &gone);
	efake_remove(scene->fake);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 0);
	KUNIT_EXPECT_EQ(test, gone.ended, 3 * 8 + 2);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->tx.nfree, efa_ep(scene)->tx.base.size);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->rx.nfree, efa_ep(scene)->rx.base.size);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 9), -ENODEV);
	KUNIT_EXPECT_EQ(test, fi_disable(scene->ep), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&registering->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&other->fid), 0);
	EFA_CLOSE(test, scene->ep);
}

static void other_queue(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_mr_alloc_attr attr = {
		.max_pages = 4, .access = REMOTE, .ep = scene->ep,
	};
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA };
	struct fid_mr *mr;

	KUNIT_EXPECT_EQ(test, fi_mr_alloc(scene->domain, &attr, &mr, NULL), -FI_ENOCQ);
	KUNIT_ASSERT_EQ(test, fi_cq_open(scene->domain, &cq_attr, &attr.cq, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_mr_alloc(scene->domain, &attr, &mr, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_close(&attr.cq->fid), 0);
	/* The region doesn't keep the endpoint. */
	EFA_CLOSE(test, scene->ep);
}

/* Counters count transfers, not registrations. */
static void not_counted(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) { .idle = true });
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;
	struct fid_mr *mr;

	KUNIT_ASSERT_EQ(test, fi_cntr_open(scene->domain, &attr, &cntr, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(scene->ep, &cntr->fid, FI_SEND | FI_WRITE), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	mr = alloc(test, scene);
	KUNIT_EXPECT_EQ(test, post_reg(scene, mr, 1, FI_COMPLETION), 0);
	efa_expect_done(test, scene, 1);
	scene->fake->status = 3;
	KUNIT_EXPECT_EQ(test, post_inval(mr, 2, FI_COMPLETION), 0);
	scene->fake->status = 0;
	efake_settle_all();
	efa_expect_done(test, scene, 2);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr), 0);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(cntr), 0);
	expect_closed(test, scene, mr);
	EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_EQ(test, fi_close(&cntr->fid), 0);
}

static struct kunit_case mr_ep_cases[] = {
	KUNIT_CASE(by_its_endpoint),
	KUNIT_CASE(quietly),
	KUNIT_CASE(one_doorbell),
	KUNIT_CASE_PARAM(in_one_go, plain_gen_params),
	KUNIT_CASE(declined),
	KUNIT_CASE(end_together),
	KUNIT_CASE(no_slot),
	KUNIT_CASE(slots_kept),
	KUNIT_CASE(closed_amid_sends),
	KUNIT_CASE(no_dma_space),
	KUNIT_CASE(not_posted),
	KUNIT_CASE(no_receiver),
	KUNIT_CASE(handle_goes_meanwhile),
	KUNIT_CASE(pins_its_endpoint),
	KUNIT_CASE_PARAM(ends_before_regions, ending_gen_params),
	KUNIT_CASE(ends_but_is_reached),
	KUNIT_CASE(ends_and_is_removed),
	KUNIT_CASE(removed_while_outstanding),
	KUNIT_CASE(other_queue),
	KUNIT_CASE(not_counted),
	{}
};

static struct kunit_suite mr_ep_suite = {
	.name = "kefa_mr_ep",
	.test_cases = mr_ep_cases,
};

kunit_test_suite(mr_ep_suite);
