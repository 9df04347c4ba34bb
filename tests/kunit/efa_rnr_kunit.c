// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Resending to receivers that aren't ready. */
#include "crew.h"
#include "efa_scene.h"

#define RNR	10

static struct efa_scene *rnr_scene(struct kunit *test, size_t ms)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true, .tx_size = 4,
	});

	KUNIT_ASSERT_EQ(test, fi_setopt(&scene->ep->fid, FI_OPT_ENDPOINT,
					FI_OPT_RNR_TIMEOUT, &ms, sizeof(ms)), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	return scene;
}

static bool rnr_sent(struct efa_scene *scene)
{
	return kofi_soon(READ_ONCE(scene->qp->nsent));
}

static void rnr_option(struct kunit *test)
{
	struct efa_scene *scene = rnr_scene(test, 700);
	struct fid *fid = &scene->ep->fid;
	size_t ms = 0, len = sizeof(ms);

	KUNIT_EXPECT_EQ(test, fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_RNR_TIMEOUT,
					&ms, &len), 0);
	KUNIT_EXPECT_EQ(test, ms, 700);
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_RNR_TIMEOUT,
					&ms, sizeof(ms)), -FI_EOPBADSTATE);
	/* The device gives up after a few retries, so that it isn't blocked. */
	KUNIT_EXPECT_EQ(test, scene->qp->attr.rnr_retry, KEFA_RNR_TRIES);
	ms = SIZE_MAX;
	KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_RNR_TIMEOUT,
					&ms, sizeof(ms)), -EINVAL);
}

/* Each kind of operation is resent unchanged, though the caller's inline data may be gone. */
static void rnr_sent_again(struct kunit *test)
{
	struct efa_scene *scene = rnr_scene(test, 60000);
	struct efake_wr *wr;
	u64 id;
	int i;

	memset(scene->buf, 0x5a, 16);
	KUNIT_EXPECT_EQ(test, fi_senddata(scene->ep, scene->buf, 16, NULL, 77,
					  scene->peer, (void *)1), 0);
	memset(scene->buf, 0, 16);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_TRUE(test, rnr_sent(scene));
		wr = efake_sent(scene->qp, 0);
		KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_SEND_WITH_IMM);
		KUNIT_EXPECT_EQ(test, wr->imm, 77);
		KUNIT_EXPECT_EQ(test, wr->len, 16);
		KUNIT_EXPECT_EQ(test, wr->data[0], 0x5a);
		KUNIT_EXPECT_EQ(test, wr->data[15], 0x5a);
		id = wr->id;
		efake_wr_done(wr, i < 2 ? RNR : 0);
		efake_settle();
	}
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.rnr, 2);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.errors, 0);

	/* Late completions of former uses of the slot are ignored. */
	efake_qp_push(scene->qp, &(struct kefa_wc){ .id = id - KEFA_OP_USE });
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.stale, 1);

	KUNIT_EXPECT_EQ(test, efa_write(scene, 5000, 2), 0);
	efake_wr_done(efake_sent(scene->qp, 0), RNR);
	KUNIT_ASSERT_TRUE(test, rnr_sent(scene));
	wr = efake_sent(scene->qp, 0);
	KUNIT_EXPECT_EQ(test, wr->raddr, EFA_RADDR);
	KUNIT_EXPECT_EQ(test, wr->sge[0].length, 5000);
	efake_wr_done(wr, 0);
	efa_expect_done(test, scene, 2);
}

/* Other operations aren't delayed, and a full queue is resent. */
static void rnr_many(struct kunit *test)
{
	struct efa_scene *scene = rnr_scene(test, 60000);
	int i;

	for (i = 1; i <= 3; i++)
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i), 0);
	for (i = 0; i < 3; i++)
		efake_wr_done(efake_sent(scene->qp, 0), RNR);
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 4), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 5), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->qp->nsent) == 4));
	while (scene->qp->nsent)
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_drain(scene), 4);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->tx.nfree, 4);
}

static void rnr_time_is_over(struct kunit *test)
{
	struct efa_scene *scene = rnr_scene(test, 50);
	int i;

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	for (i = 0; i < 1000 && rnr_sent(scene); i++) {
		efake_wr_done(efake_sent(scene->qp, 0), RNR);
		efake_settle();
		if (efa_ep(scene)->stats.errors)
			break;
	}
	efa_expect_error(test, scene, 1, EAGAIN, RNR);
	KUNIT_EXPECT_GT(test, efa_ep(scene)->stats.rnr, 0);
	/* The next operation of the slot has its own time-out. */
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	efake_wr_done(efake_sent(scene->qp, 0), RNR);
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.errors, 1);
}

static void rnr_closed_meanwhile(struct kunit *test)
{
	struct efa_scene *scene = rnr_scene(test, 60000);

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	efake_wr_done(efake_sent(scene->qp, 0), RNR);
	efake_settle();
	EFA_CLOSE(test, scene->ep);
	efa_expect_error_now(test, scene, 1, ECANCELED, 0);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, 1);
}

/* Without the option only the device retries, if at all. */
static void rnr_off(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	efake_wr_done(efake_sent(scene->qp, 0), RNR);
	efa_expect_error(test, scene, 1, EAGAIN, RNR);
}

static struct kunit_case rnr_cases[] = {
	KUNIT_CASE(rnr_option),
	KUNIT_CASE(rnr_sent_again),
	KUNIT_CASE(rnr_many),
	KUNIT_CASE(rnr_time_is_over),
	KUNIT_CASE(rnr_closed_meanwhile),
	KUNIT_CASE(rnr_off),
	{}
};

static struct kunit_suite rnr_suite = {
	.name		= "kefa_rnr",
	.test_cases	= rnr_cases,
};

kunit_test_suite(rnr_suite);
