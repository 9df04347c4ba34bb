// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ending the operations with one peer of fabric efa, fi_flush(). */
#include "crew.h"
#include "efa_rdm_scene.h"

#define SHORT_MS	20
#define LONG_MS		20000

static int flush(struct rdm_pair *pair, int at)
{
	return fi_flush(pair->end[at].ep, pair->end[at].peer, SHORT_MS);
}

static void flush_long(struct kofi_thread *thread)
{
	struct rdm_end *end = thread->arg;

	thread->ret = fi_flush(end->ep, end->peer, LONG_MS);
}

static void send_works(struct kunit *test, struct rdm_pair *pair, u64 tag)
{
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, tag, 11), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 100, tag, 12), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 12, 100);
	rdm_expect(test, &pair->end[1], 11, 100);
}

/* A peer without operations isn't affected, nor are receives from anybody. */
static void quiet_idle(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);

	KUNIT_EXPECT_EQ(test, fi_flush(pair->end[0].ep, 77, 0), -EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 0), 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 1), 0);
	rdm_expect_nothing(test, &pair->end[1]);
	send_works(test, pair, 2);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->stats.deaths, 0);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.deaths, 0);
}

/* Receives that are directed to the peer end, which doesn't hurt the peer. */
static void quiet_directed(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct rdm_end *end = &pair->end[1];

	KUNIT_EXPECT_EQ(test, fi_trecv(end->ep, pair->in, 100, NULL, end->peer, 1, 0, (void *)1),
			0);
	KUNIT_EXPECT_EQ(test, flush(pair, 1), 0);
	rdm_expect_error(test, end, 1, ECANCELED);
	send_works(test, pair, 1);
}

/* The device has a message, so the call waits for it, and the peer is dead. */
static void quiet_sent(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);

	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 100, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 0), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 100, 1, 2), -EHOSTUNREACH);
	rdm_finish_sent(pair, 0, 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 0), 0);
	rdm_expect_error(test, &pair->end[0], 1, ECANCELED);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[0])->stats.deaths, 1);
	rdm_expect_whole(test, pair);
}

/* A message that waits for the peer's HANDSHAKE was never sent. */
static void quiet_waiting(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct kvec iov = { pair->out, 100 };
	struct fi_msg_tagged msg = {
		.addr = pair->end[0].peer, .tag = 5, .context = (void *)1,
	};

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 100);
	KUNIT_EXPECT_EQ(test, fi_tsendmsg(pair->end[0].ep, &msg, FI_DELIVERY_COMPLETE), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, flush(pair, 0), 0);
	rdm_expect_error(test, &pair->end[0], 1, ECANCELED);
	rdm_finish_sent(pair, 0, 0);
	rdm_expect_whole(test, pair);
}

/* Peers may read the memory of a message until its registration was invalidated. */
static void quiet_readable(struct kunit *test)
{
	struct rdm_pair *pair = rdm_reading_pair(test);
	u32 regions = rdm_regions(&pair->end[0]);
	struct efake_wr *wr;

	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, RDM_READ_FROM, 1, 1), 0);
	wr = rdm_run_until(pair, 0, KEFA_LONGREAD_TAGRTM_PKT);
	KUNIT_ASSERT_NOT_NULL(test, wr);
	pair->fake->manual_mr = true;
	KUNIT_EXPECT_EQ(test, flush(pair, 0), -ETIMEDOUT);
	efake_wr_done(wr, 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 0), -ETIMEDOUT);
	rdm_expect_nothing(test, &pair->end[0]);
	rdm_finish_sent(pair, 0, 0);
	KUNIT_EXPECT_EQ(test, flush(pair, 0), 0);
	rdm_expect_error(test, &pair->end[0], 1, ECANCELED);
	KUNIT_EXPECT_EQ(test, rdm_regions(&pair->end[0]), regions);
}

/* A receive that has completed uses no memory, though its RECEIPT is still due. */
static void quiet_owing(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kvec iov = { pair->out, 100 };
	struct fi_msg_tagged msg = {
		.addr = pair->end[0].peer, .tag = 1, .context = (void *)2,
	};

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 100);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 100, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_tsendmsg(pair->end[0].ep, &msg, FI_DELIVERY_COMPLETE), 0);
	KUNIT_ASSERT_NOT_NULL(test, rdm_run_until(pair, 1, KEFA_RECEIPT_PKT));
	rdm_expect(test, &pair->end[1], 1, 100);
	KUNIT_EXPECT_EQ(test, flush(pair, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.deaths, 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, 100);
	send_works(test, pair, 3);
}

/* The device is removed at any time while the call waits. */
static void quiet_removed(struct kunit *test)
{
	struct kofi_thread thread;
	struct rdm_pair *pair;
	unsigned int i;

	for (i = 0; i < 10; i++) {
		pair = rdm_ready_pair(test, NULL);
		KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 100, 1, 1), 0);
		kofi_thread_start(test, &thread, flush_long, &pair->end[0]);
		usleep_range(100 * i, 100 * i + 100);
		efake_remove(pair->fake);
		kofi_thread_join(test, &thread);
		KUNIT_EXPECT_TRUE(test, !thread.ret || thread.ret == -ENODEV);
		KUNIT_EXPECT_EQ(test, rdm_read(&pair->end[0]).ret, -FI_EAVAIL);
		EFA_CLOSE(test, pair->end[0].ep);
		EFA_CLOSE(test, pair->end[1].ep);
	}
}

/* A receive whose message has begun ends, and nothing is written to its buffer any more. */
static void quiet_arriving(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);

	efa_fill(pair->out, 20000, 3);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 20000, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 20000, 1, 2), 0);
	KUNIT_ASSERT_TRUE(test, rdm_deliver(pair, 0));
	efake_settle();
	KUNIT_EXPECT_EQ(test, flush(pair, 1), 0);
	rdm_expect_error(test, &pair->end[1], 1, ECANCELED);
	memset(pair->in, 0, 20000);
	rdm_run(pair);
	KUNIT_EXPECT_NULL(test, memchr_inv(pair->in, 0, 20000));
}

static struct kunit_case rdm_quiet_cases[] = {
	KUNIT_CASE(quiet_idle),
	KUNIT_CASE(quiet_directed),
	KUNIT_CASE(quiet_sent),
	KUNIT_CASE(quiet_waiting),
	KUNIT_CASE(quiet_readable),
	KUNIT_CASE(quiet_owing),
	KUNIT_CASE(quiet_removed),
	KUNIT_CASE(quiet_arriving),
	{}
};

static struct kunit_suite rdm_quiet_suite = {
	.name		= "kefa_rdm_quiet",
	.test_cases	= rdm_quiet_cases,
};

kunit_test_suite(rdm_quiet_suite);
