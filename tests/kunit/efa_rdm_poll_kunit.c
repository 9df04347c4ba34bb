// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fabric efa: readers that find an empty queue poll the device, and take completions directly. */
#include <linux/preempt.h>
#include "efa_rdm_scene.h"

static int cq_used(struct rdm_end *end)
{
	struct kofi_cq *cq = container_of(end->cq, struct kofi_cq, cq_fid);

	return cq->attr.size - atomic_read(&cq->credits);
}

static ssize_t receive_loud(struct rdm_pair *pair, long ctx)
{
	struct kvec iov = { pair->in, 8 };
	struct fi_msg_tagged msg = {
		.addr = FI_ADDR_UNSPEC, .tag = 5, .context = (void *)ctx,
	};

	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, iov.iov_len);
	return fi_trecvmsg(pair->end[1].ep, &msg, FI_COMPLETION);
}

/* Deliver two messages, read both queues. Return: ten times the first result plus the second. */
static ssize_t read_polled(struct rdm_pair *pair, int end, struct fi_cq_tagged_entry *entry)
{
	struct fi_cq_tagged_entry other[4];
	ssize_t n[2];
	int i;

	for (i = 0; i < 4 && rdm_step(pair); i++)
		;
	n[end] = fi_cq_read(pair->end[end].cq, entry, 4);
	n[!end] = fi_cq_read(pair->end[!end].cq, other, ARRAY_SIZE(other));
	return max(n[0], 0) * 10 + max(n[1], 0);
}

/* An inject gives its entry back, when a reader takes completions directly. */
static void poll_inject(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kofi_cq *cq = container_of(pair->end[0].cq, struct kofi_cq, cq_fid);
	struct fi_cq_tagged_entry entry[4] = { };
	struct rdm_end *end = &pair->end[0];
	ssize_t n, sent, injected;
	u32 tail = cq->tail;
	int used;

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 2), 0);
	used = cq_used(end);
	efake_settle_all();
	preempt_disable();
	injected = fi_tinject(end->ep, pair->out, 8, end->peer, 5);
	sent = rdm_tsend(pair, 8, 5, 7);
	n = read_polled(pair, 0, entry);
	preempt_enable();
	KUNIT_EXPECT_EQ(test, injected, 0);
	KUNIT_EXPECT_EQ(test, sent, 0);
	KUNIT_EXPECT_EQ(test, n, 12);
	KUNIT_EXPECT_EQ(test, (long)entry[0].op_context, 7L);
	KUNIT_EXPECT_EQ(test, cq->tail, tail);
	KUNIT_EXPECT_EQ(test, cq_used(end), used);
	rdm_expect_whole(test, pair);
}

/* The same for a receive without a completion. */
static void poll_receive(struct kunit *test)
{
	const struct rdm_opts opts = { .cq_size = 16, .selective = true };
	struct rdm_pair *pair = rdm_ready_pair(test, &opts);
	struct kofi_cq *cq = container_of(pair->end[1].cq, struct kofi_cq, cq_fid);
	struct fi_cq_tagged_entry entry[4] = { };
	ssize_t n, sent[2];
	int used[2];
	u32 tail = cq->tail;

	used[0] = cq_used(&pair->end[0]);
	used[1] = cq_used(&pair->end[1]);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, receive_loud(pair, 2), 0);
	KUNIT_EXPECT_EQ(test, cq_used(&pair->end[1]), used[1] + 2);
	efake_settle_all();
	preempt_disable();
	sent[0] = rdm_tsend(pair, 8, 5, 3);
	sent[1] = rdm_tsend(pair, 8, 5, 4);
	n = read_polled(pair, 1, entry);
	preempt_enable();
	KUNIT_EXPECT_EQ(test, sent[0], 0);
	KUNIT_EXPECT_EQ(test, sent[1], 0);
	KUNIT_EXPECT_EQ(test, n, 1);
	KUNIT_EXPECT_EQ(test, (long)entry[0].op_context, 2L);
	KUNIT_EXPECT_EQ(test, cq->tail, tail);
	KUNIT_EXPECT_EQ(test, cq_used(&pair->end[0]), used[0]);
	KUNIT_EXPECT_EQ(test, cq_used(&pair->end[1]), used[1]);
	rdm_expect_whole(test, pair);
}

static struct kunit_case poll_cases[] = {
	KUNIT_CASE(poll_inject),
	KUNIT_CASE(poll_receive),
	{}
};

static struct kunit_suite poll_suite = {
	.name		= "kefa_rdm_poll",
	.test_cases	= poll_cases,
};

kunit_test_suite(poll_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, readers that poll");
MODULE_LICENSE("Dual BSD/GPL");
