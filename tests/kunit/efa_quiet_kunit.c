// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ending the operations with one peer of fabric efa-direct, fi_flush(). */
#include <linux/workqueue.h>
#include "crew.h"
#include "efa_scene.h"

#define RNR	10
#define SHORT_MS	20
#define LONG_MS		20000

/* A flush on another thread, because it sleeps until the test completes something. */
struct flush {
	struct work_struct	work;
	struct fid_ep		*ep;
	fi_addr_t		addr;
	int			ret;
	bool			done;
};

static void flush_work_fn(struct work_struct *work)
{
	struct flush *flush = container_of(work, struct flush, work);

	flush->ret = fi_flush(flush->ep, flush->addr, LONG_MS);
	WRITE_ONCE(flush->done, true);
}

static void flush_begin(struct flush *flush, struct efa_scene *scene)
{
	*flush = (struct flush) { .ep = scene->ep, .addr = scene->peer };
	INIT_WORK_ONSTACK(&flush->work, flush_work_fn);
	queue_work(system_unbound_wq, &flush->work);
}

static int flush_end(struct flush *flush)
{
	flush_work(&flush->work);
	destroy_work_on_stack(&flush->work);
	return flush->ret;
}

static struct efa_scene *quiet_scene(struct kunit *test, size_t rnr_ms, size_t tx_size)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true, .tx_size = tx_size,
	});

	if (rnr_ms)
		KUNIT_ASSERT_EQ(test, fi_setopt(&scene->ep->fid, FI_OPT_ENDPOINT,
						FI_OPT_RNR_TIMEOUT, &rnr_ms, sizeof(rnr_ms)), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	return scene;
}

static void quiet_refused(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) { .idle = true });

	KUNIT_EXPECT_EQ(test, fi_flush(NULL, 0, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_flush(scene->ep, scene->peer, 0), -FI_EOPBADSTATE);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	KUNIT_EXPECT_EQ(test, fi_flush(scene->ep, 77, 0), -EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, fi_flush(scene->ep, FI_ADDR_UNSPEC, 0), -EHOSTUNREACH);
	/* Receives aren't directed to a peer. */
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_flush(scene->ep, scene->peer, 0), 0);
	efa_expect_nothing(test, scene);
}

/* The device has the operations: the call waits for them, and for nothing else. */
static void quiet_waits(struct kunit *test)
{
	struct efa_scene *scene = quiet_scene(test, 0, 8);
	fi_addr_t other = efa_insert(test, scene, 9, 9), sick = scene->peer;
	struct flush flush;

	scene->peer = other;
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	scene->peer = sick;
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 5000, 3), 0);
	KUNIT_EXPECT_EQ(test, fi_flush(scene->ep, sick, SHORT_MS), -ETIMEDOUT);
	flush_begin(&flush, scene);
	efake_wr_done(efake_sent(scene->qp, 1), 0);
	efa_expect_done(test, scene, 2);
	msleep(SHORT_MS);
	KUNIT_EXPECT_EQ(test, fi_close(&scene->ep->fid), -EBUSY);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(flush.done));
	/* Later operations aren't waited for, even in a slot that was waited for. */
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 4), 0);
	efake_wr_done(efake_sent(scene->qp, 1), 13);
	KUNIT_EXPECT_EQ(test, flush_end(&flush), 0);
	efa_expect_error(test, scene, 3, ETIMEDOUT, 13);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 1);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 4);
}

/* Held work requests go out first; nobody else would post them. */
static void quiet_held(struct kunit *test)
{
	struct efa_scene *scene = quiet_scene(test, 0, 8);
	struct kvec iov = { scene->buf, 64 };
	struct fi_msg msg = { .addr = scene->peer, .context = (void *)1 };
	struct flush flush;

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 64);
	KUNIT_EXPECT_EQ(test, fi_sendmsg(scene->ep, &msg, FI_COMPLETION | FI_MORE), 0);
	flush_begin(&flush, scene);
	KUNIT_ASSERT_TRUE(test, kofi_soon(READ_ONCE(scene->qp->nsent)));
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	KUNIT_EXPECT_EQ(test, flush_end(&flush), 0);
	efa_expect_done(test, scene, 1);
}

/* Work requests that wait to be resent end, but not those to other endpoints of that device. */
static void quiet_not_ready(struct kunit *test)
{
	struct efa_scene *scene = quiet_scene(test, 60000, 8);
	fi_addr_t sick = scene->peer, neighbour;
	struct fi_efa_addr name;
	size_t len = sizeof(name);
	struct flush flush;

	KUNIT_ASSERT_EQ(test, fi_av_lookup(scene->av, sick, &name, &len), 0);
	name.qpn++;
	KUNIT_ASSERT_EQ(test, fi_av_insert(scene->av, &name, 1, &neighbour, 0, NULL), 1);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	efake_wr_done(efake_sent(scene->qp, 0), RNR);
	scene->peer = neighbour;
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	efake_settle();
	scene->peer = sick;
	KUNIT_EXPECT_EQ(test, fi_flush(scene->ep, sick, 0), 0);
	efa_expect_error(test, scene, 1, ECANCELED, 0);
	KUNIT_EXPECT_EQ(test, scene->qp->nsent, 1);

	/* The device has this one when the flush begins. It isn't resent. */
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 3), 0);
	flush_begin(&flush, scene);
	msleep(SHORT_MS);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(flush.done));
	efake_wr_done(efake_sent(scene->qp, 1), RNR);
	KUNIT_EXPECT_EQ(test, flush_end(&flush), 0);
	efa_expect_error(test, scene, 3, EAGAIN, RNR);

	/* The neighbour's is resent as ever. */
	efake_wr_done(efake_sent(scene->qp, 0), RNR);
	KUNIT_ASSERT_TRUE(test, kofi_soon(READ_ONCE(scene->qp->nsent)));
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 2);
}

/* The list of what waits to be resent stays whole, whichever entries leave it. */
static void quiet_not_ready_many(struct kunit *test)
{
	struct efa_scene *scene = quiet_scene(test, 60000, 16);
	fi_addr_t peers[2] = { scene->peer, efa_insert(test, scene, 9, 9) };
	unsigned int i;

	for (i = 0; i < 8; i++) {
		scene->peer = peers[i / 3 % 2];
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i + 1), 0);
	}
	for (i = 0; i < 8; i++)
		efake_wr_done(efake_sent(scene->qp, 0), RNR);
	efake_settle();
	KUNIT_EXPECT_EQ(test, fi_flush(scene->ep, peers[0], LONG_MS), 0);
	for (i = 0; i < 5; i++)
		efa_expect_error(test, scene, i < 3 ? i + 1 : i + 4, ECANCELED, 0);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_TRUE(test, kofi_soon(READ_ONCE(scene->qp->nsent)));
		efake_wr_done(efake_sent(scene->qp, 0), 0);
		efa_expect_done(test, scene, i + 4);
	}
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->tx.nfree, 16);
}

/* No further piece of a long transfer is posted. */
static void quiet_pieces(struct kunit *test)
{
	struct efa_scene *scene = quiet_scene(test, 0, 4);
	struct page *page = virt_to_page(scene->buf);
	struct bio_vec bvec[12];
	struct fi_rma_iov rma = { .addr = EFA_RADDR, .len = 12 * 1024, .key = EFA_KEY };
	struct fi_msg_rma msg = {
		.addr = scene->peer, .rma_iov = &rma, .rma_iov_count = 1, .context = (void *)1,
	};
	unsigned int i, posted;
	struct flush flush;

	/* Parts of pages that aren't adjacent, and together are longer than a copy buffer. */
	for (i = 0; i < ARRAY_SIZE(bvec); i++)
		bvec_set_page(&bvec[i], page + i, 1024, 0);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, bvec, ARRAY_SIZE(bvec), 12 * 1024);
	KUNIT_ASSERT_EQ(test, fi_writemsg(scene->ep, &msg, FI_COMPLETION), 0);
	efake_settle();
	posted = scene->qp->nsent;
	KUNIT_ASSERT_GT(test, posted, 0);
	KUNIT_ASSERT_LT(test, posted, ARRAY_SIZE(bvec));
	flush_begin(&flush, scene);
	msleep(SHORT_MS);
	for (i = 0; i < posted; i++)
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	KUNIT_EXPECT_EQ(test, flush_end(&flush), 0);
	KUNIT_EXPECT_EQ(test, scene->qp->nsent, 0);
	efa_expect_error(test, scene, 1, ECANCELED, 0);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->tx.nfree, 4);
}

/* A removal ends the operations, and so the wait. */
static void quiet_removed(struct kunit *test)
{
	struct efa_scene *scene = quiet_scene(test, 0, 8);
	struct flush flush;

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	flush_begin(&flush, scene);
	msleep(SHORT_MS);
	efake_remove(scene->fake);
	KUNIT_EXPECT_EQ(test, flush_end(&flush), 0);
	efa_expect_error(test, scene, 1, ENODEV, 0);
	KUNIT_EXPECT_EQ(test, fi_flush(scene->ep, scene->peer, 0), -ENODEV);
}

static struct kunit_case quiet_cases[] = {
	KUNIT_CASE(quiet_refused),
	KUNIT_CASE(quiet_waits),
	KUNIT_CASE(quiet_held),
	KUNIT_CASE(quiet_not_ready),
	KUNIT_CASE(quiet_not_ready_many),
	KUNIT_CASE(quiet_pieces),
	KUNIT_CASE(quiet_removed),
	{}
};

static struct kunit_suite quiet_suite = {
	.name		= "kefa_quiet",
	.test_cases	= quiet_cases,
};

kunit_test_suite(quiet_suite);
