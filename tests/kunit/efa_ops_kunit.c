// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations of the EFA provider: each operation that was accepted completes once, whatever
 * the device does with its work requests.
 */
#include <linux/completion.h>
#include "crew.h"
#include "efa_scene.h"

#define GAP	1024

/* A list of @n pieces of memory that aren't adjacent. */
static void pieces(struct efa_scene *scene, struct kvec *iov, int n, size_t len)
{
	int i;

	for (i = 0; i < n; i++) {
		iov[i].iov_base = scene->buf + i * GAP;
		iov[i].iov_len = len + i;
	}
}

static ssize_t rma(struct efa_scene *scene, bool write, const struct kvec *iov,
		   int n, u64 flags, long ctx)
{
	size_t i, len = 0;
	struct fi_rma_iov rma = { .addr = EFA_RADDR, .key = EFA_KEY };
	struct fi_msg_rma msg = {
		.addr = scene->peer, .rma_iov = &rma, .rma_iov_count = 1,
		.context = (void *)ctx,
	};

	for (i = 0; i < n; i++)
		len += iov[i].iov_len;
	rma.len = len;
	iov_iter_kvec(&msg.msg_iter, write ? ITER_SOURCE : ITER_DEST, iov, n,
		      len);
	return write ? fi_writemsg(scene->ep, &msg, flags) :
		       fi_readmsg(scene->ep, &msg, flags);
}

static ssize_t send_more(struct efa_scene *scene, long ctx, u64 flags)
{
	struct kvec iov = { scene->buf + ctx * 64, 64 };
	struct fi_msg msg = { .addr = scene->peer, .context = (void *)ctx };

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 64);
	return fi_sendmsg(scene->ep, &msg, flags | FI_COMPLETION);
}

/* A free slot has the values that new operations rely on. */
static bool slot_is_clean(const struct kefa_op *op)
{
	return op->state == KEFA_OP_FREE && op->head == op && op->parts == 1 &&
	       !op->more && !op->copy && !op->err && !op->prov_errno;
}

static void expect_idle(struct kunit *test, struct efa_scene *scene)
{
	struct kefa_ep *ep = efa_ep(scene);
	struct kefa_direct *direct = to_kefa_direct(ep);
	unsigned int i, clean = 0;

	efa_expect_nothing(test, scene);
	for (i = 0; i < direct->nops; i++)
		clean += slot_is_clean(&direct->ops[i]);
	KUNIT_EXPECT_EQ(test, clean, direct->nops);
	KUNIT_EXPECT_EQ(test, ep->tx.nfree, ep->tx.base.size);
	KUNIT_EXPECT_EQ(test, ep->rx.nfree, ep->rx.base.size);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&ep->copies), KEFA_COPIES);
	KUNIT_EXPECT_EQ(test, ep->ncopies, (u32)KEFA_COPIES);
	KUNIT_EXPECT_EQ(test, atomic_read(&efa_cq(scene)->credits),
			efa_cq(scene)->attr.size);
}

/* --- several work requests --- */

static void parts_posted(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kvec iov[3];
	struct efake_wr *wr;
	u64 raddr = EFA_RADDR;
	struct efa_comp comp;
	int i;

	pieces(scene, iov, 3, 100);
	KUNIT_EXPECT_EQ(test, rma(scene, true, iov, 3, FI_COMPLETION, 5), 0);
	KUNIT_EXPECT_EQ(test, scene->qp->doorbells, 1);
	for (i = 0; i < 3; i++) {
		wr = efake_sent(scene->qp, i);
		KUNIT_ASSERT_NOT_NULL(test, wr);
		KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_RDMA_WRITE);
		KUNIT_EXPECT_EQ(test, wr->len, 100 + i);
		KUNIT_EXPECT_EQ(test, wr->raddr, raddr);
		KUNIT_EXPECT_EQ(test, wr->rkey, EFA_KEY);
		raddr += wr->len;
	}
	KUNIT_EXPECT_NULL(test, efake_sent(scene->qp, 3));
	for (i = 0; i < 3; i++) {
		efa_expect_nothing(test, scene);
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	}
	efake_settle();
	comp = efa_read(scene);
	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, 5);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 303);
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_RMA | FI_WRITE);
	expect_idle(test, scene);
}

/* The order in which three work requests complete. */
static const struct order {
	const char *desc;
	int nth[3];
} orders[] = {
	{ "0 1 2", { 0, 1, 2 } }, { "0 2 1", { 0, 2, 1 } },
	{ "1 0 2", { 1, 0, 2 } }, { "1 2 0", { 1, 2, 0 } },
	{ "2 0 1", { 2, 0, 1 } }, { "2 1 0", { 2, 1, 0 } },
};

KUNIT_ARRAY_PARAM_DESC(order, orders, desc);

/* Each set of failures. The status of a failure is 7 plus its position in the order. */
static void parts_fail_as(struct kunit *test, struct efa_scene *scene,
			  const struct order *order, unsigned int failures)
{
	struct efake_wr *wr[3];
	int i, first = -1;
	struct kvec iov[3];

	pieces(scene, iov, 3, 10);
	KUNIT_ASSERT_EQ(test, rma(scene, failures & 1, iov, 3, FI_COMPLETION,
				  1), 0);
	for (i = 0; i < 3; i++)
		wr[i] = efake_sent(scene->qp, i);
	for (i = 0; i < 3; i++) {
		efa_expect_nothing(test, scene);
		efake_wr_done(wr[order->nth[i]],
			      failures & BIT(i) ? 7 + i : 0);
		if (first < 0 && failures & BIT(i))
			first = i;
	}
	if (first < 0)
		efa_expect_done(test, scene, 1);
	else
		efa_expect_error(test, scene, 1, kefa_status_errno(7 + first),
				 7 + first);
	expect_idle(test, scene);
}

static void parts_in_any_order(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	unsigned int failures;

	for (failures = 0; failures < 8; failures++)
		parts_fail_as(test, scene, test->param_value, failures);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.errors, 7);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.stale, 0);
}

/* An operation is posted completely or not at all. */
static void parts_want_room(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.tx_size = 4,
	});
	struct kvec iov[3];

	pieces(scene, iov, 3, 10);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	KUNIT_EXPECT_EQ(test, rma(scene, true, iov, 3, FI_COMPLETION, 3),
			-EAGAIN);
	KUNIT_EXPECT_EQ(test, scene->qp->nsent, 2);
	/* Two free slots are no room for three pieces: the ULP would retry in a loop. */
	efake_settle();
	KUNIT_EXPECT_TRUE(test, efa_ep(scene)->tx.wanted);
	KUNIT_EXPECT_FALSE(test, efa_cq(scene)->room);
	efake_wr_done(efake_sent(scene->qp, 1), 0);
	efake_settle();
	KUNIT_EXPECT_TRUE(test, efa_cq(scene)->room);
	efa_expect_done(test, scene, 2);
	KUNIT_EXPECT_EQ(test, rma(scene, true, iov, 3, FI_COMPLETION, 3), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 4), -EAGAIN);
	while (scene->qp->nsent)
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 1);
	efa_expect_done(test, scene, 3);
	expect_idle(test, scene);
}

/* Complete all work requests, in random order, including those posted meanwhile. */
static unsigned int complete_sent(struct efa_scene *scene)
{
	unsigned int n = 0;

	for (;;) {
		while (scene->qp->nsent) {
			n++;
			efake_wr_done(efake_sent(scene->qp, scene->qp->nsent - 1), 0);
		}
		efake_settle();
		if (!scene->qp->nsent)
			return n;
	}
}

/* More pieces than are posted at once, with any number of slots. */
static const struct many {
	const char	*desc;
	bool		write;
	u64		flags;
	unsigned int	tx_size;
	unsigned int	n;
	unsigned int	at_once;
} many[] = {
	{ "read", false, 0, 64, 40, 16 },
	{ "write", true, 0, 64, 40, 16 },
	{ "write with data", true, FI_REMOTE_CQ_DATA, 64, 40, 16 },
	{ "read in 4 slots", false, 0, 4, 40, 4 },
	{ "read in 1 slot", false, 0, 1, 40, 1 },
	{ "write with data in 1 slot", true, FI_REMOTE_CQ_DATA, 1, 40, 1 },
};

KUNIT_ARRAY_PARAM_DESC(many, many, desc);

static struct kvec many_iov[40];
static u32 many_len[40];

static void parts_many(struct kunit *test)
{
	const struct many *m = test->param_value;
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.tx_size = m->tx_size,
	});
	u32 *len = many_len, done = 0;
	bool imm = false;
	struct efake_wr *wr;
	struct kvec *iov = many_iov;
	unsigned int i;

	memset(many_len, 0, sizeof(many_len));
	pieces(scene, iov, m->n, 400);
	KUNIT_ASSERT_EQ(test, rma(scene, m->write, iov, m->n,
				  FI_COMPLETION | m->flags, 5), 0);
	KUNIT_EXPECT_EQ(test, scene->qp->nsent, m->at_once);
	for (i = 0; i < m->n; i++)
		done += 400 + i;
	while (scene->qp->nsent) {
		/* Complete the newest first, while earlier ones are outstanding. */
		wr = efake_sent(scene->qp, scene->qp->nsent - 1);
		for (i = 0; i < m->n && len[i]; i++)
			;
		KUNIT_ASSERT_LT(test, i, m->n);
		len[i] = wr->sge[0].length;
		imm = wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
		/* The work request with CQ data is the last. */
		if (imm) {
			KUNIT_EXPECT_EQ(test, scene->qp->nsent, 1);
			KUNIT_EXPECT_EQ(test, i, m->n - 1);
			KUNIT_EXPECT_EQ(test, wr->raddr + len[i], EFA_RADDR + done);
		}
		efa_expect_nothing(test, scene);
		efake_wr_done(wr, 0);
		efake_settle();
	}
	for (i = 0; i < m->n; i++)
		done -= len[i];
	KUNIT_EXPECT_EQ(test, done, 0);
	KUNIT_EXPECT_EQ(test, !!m->flags, imm);
	efa_expect_done(test, scene, 5);
	expect_idle(test, scene);
}

static void parts_many_fail(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kvec *iov = many_iov;

	pieces(scene, iov, 40, 400);
	KUNIT_EXPECT_EQ(test, rma(scene, false, iov, 40, FI_COMPLETION, 1), 0);
	efake_wr_done(efake_sent(scene->qp, 3), 7);
	efake_settle();
	/* No more pieces are posted, and those with the device are waited for. */
	KUNIT_EXPECT_EQ(test, scene->qp->nsent, 15);
	efa_expect_nothing(test, scene);
	complete_sent(scene);
	efa_expect_error(test, scene, 1, EACCES, 7);
	expect_idle(test, scene);
}

/* During a long transfer DMA space runs out, a post fails, or the endpoint is closed. */
static void parts_many_short(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kvec *iov = many_iov;

	pieces(scene, iov, 40, 400);
	KUNIT_EXPECT_EQ(test, rma(scene, false, iov, 40, FI_COMPLETION, 1), 0);
	scene->fake->refuse = BIT(EFAKE_DMA_MAP);
	complete_sent(scene);
	efa_expect_nothing(test, scene);
	scene->fake->refuse = 0;
	/* No work request is outstanding. */
	KUNIT_EXPECT_TRUE(test, kofi_soon(scene->qp->nsent));
	KUNIT_EXPECT_EQ(test, complete_sent(scene), 24);
	efa_expect_done(test, scene, 1);

	KUNIT_EXPECT_EQ(test, rma(scene, false, iov, 40, FI_COMPLETION, 2), 0);
	scene->fake->bad = 0;
	efake_fail(scene->fake, EFAKE_POST_SEND, 1, -ENOMEM);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efake_settle();
	complete_sent(scene);
	efa_expect_error(test, scene, 2, ENOMEM, 0);
	expect_idle(test, scene);

	KUNIT_EXPECT_EQ(test, rma(scene, true, iov, 40, FI_COMPLETION, 3), 0);
	EFA_CLOSE(test, scene->ep);
	efa_expect_error_now(test, scene, 3, ECANCELED, 0);
	KUNIT_EXPECT_EQ(test, scene->fake->nmaps, 1);
}

/* --- FI_MORE --- */

/* Block the endpoint's worker in a handler. */
static struct completion worker_stops, worker_goes;
static bool worker_held;

static void hold_worker(struct fid_cq *cq, void *context)
{
	struct fi_cq_data_entry entry;

	while (fi_cq_read(cq, &entry, 1) == 1)
		;
	if (!READ_ONCE(worker_held))
		return;
	complete(&worker_stops);
	wait_for_completion(&worker_goes);
}

static void release_worker(void *unused)
{
	WRITE_ONCE(worker_held, false);
	complete_all(&worker_goes);
}

static struct efa_scene *scene_with_held_worker(struct kunit *test)
{
	struct efa_scene *scene;

	init_completion(&worker_stops);
	init_completion(&worker_goes);
	scene = efa_scene_new(test, &(struct efa_opts) {
		.cq = { .wait_obj = FI_WAIT_UNSPEC, .handler = hold_worker },
	});
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, release_worker,
							NULL), 0);
	WRITE_ONCE(worker_held, true);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 1, 0), 0);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	wait_for_completion(&worker_stops);
	scene->qp->doorbells = 0;
	return scene;
}

static void more_is_held(struct kunit *test)
{
	struct efa_scene *scene = scene_with_held_worker(test);
	struct efake_qp *qp = scene->qp;
	int i;

	for (i = 1; i <= 3; i++) {
		KUNIT_EXPECT_EQ(test, send_more(scene, i, FI_MORE), 0);
		KUNIT_EXPECT_EQ(test, qp->doorbells, 0);
	}
	KUNIT_EXPECT_EQ(test, send_more(scene, 4, 0), 0);
	KUNIT_EXPECT_EQ(test, qp->doorbells, 1);
	KUNIT_EXPECT_EQ(test, qp->nsent, 4);
	/* They are posted when the maximum of held ones is reached. */
	for (i = 5; i < 5 + KEFA_HELD_MAX - 1; i++)
		KUNIT_EXPECT_EQ(test, send_more(scene, i, FI_MORE), 0);
	KUNIT_EXPECT_EQ(test, qp->doorbells, 1);
	KUNIT_EXPECT_EQ(test, send_more(scene, i, FI_MORE), 0);
	KUNIT_EXPECT_EQ(test, qp->doorbells, 2);
	KUNIT_EXPECT_EQ(test, qp->nsent, 4 + KEFA_HELD_MAX);
}

/* No further post follows, so the worker posts the held ones. */
static void more_by_worker(struct kunit *test)
{
	struct efa_scene *scene = scene_with_held_worker(test);
	struct efake_qp *qp = scene->qp;

	KUNIT_EXPECT_EQ(test, send_more(scene, 1, FI_MORE), 0);
	KUNIT_EXPECT_EQ(test, send_more(scene, 2, FI_MORE), 0);
	KUNIT_EXPECT_EQ(test, qp->doorbells, 0);
	release_worker(NULL);
	efake_settle();
	KUNIT_EXPECT_EQ(test, qp->doorbells, 1);
	KUNIT_EXPECT_EQ(test, qp->nsent, 2);
}

/* A plain call is posted after the held ones, together with them. */
static void more_then_plain(struct kunit *test)
{
	struct efa_scene *scene = scene_with_held_worker(test);
	struct efake_qp *qp = scene->qp;
	int i;

	KUNIT_EXPECT_EQ(test, send_more(scene, 1, FI_MORE), 0);
	KUNIT_EXPECT_EQ(test, send_more(scene, 2, FI_MORE), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 65, 3), 0);
	KUNIT_EXPECT_EQ(test, qp->doorbells, 1);
	KUNIT_ASSERT_EQ(test, qp->nsent, 3);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, efake_sent(qp, i)->len, i < 2 ? 64 : 65);
	KUNIT_EXPECT_EQ(test, send_more(scene, 4, FI_MORE), 0);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 66, 5), 0);
	KUNIT_EXPECT_EQ(test, qp->doorbells, 2);
	KUNIT_EXPECT_EQ(test, qp->nsent, 5);
	/* Nothing is held any more. */
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 6), 0);
	KUNIT_EXPECT_EQ(test, qp->doorbells, 3);
	KUNIT_EXPECT_EQ(test, qp->nsent, 6);
}

/* The work requests of an RMA are posted together. */
static void more_and_parts(struct kunit *test)
{
	struct efa_scene *scene = scene_with_held_worker(test);
	struct efake_qp *qp = scene->qp;
	struct kvec iov[4];
	int i;

	pieces(scene, iov, 4, 10);
	for (i = 1; i <= KEFA_HELD_MAX - 3; i++)
		KUNIT_EXPECT_EQ(test, send_more(scene, i, FI_MORE), 0);
	KUNIT_EXPECT_EQ(test, rma(scene, true, iov, 4, FI_MORE, 50), 0);
	KUNIT_EXPECT_EQ(test, qp->doorbells, 1);
	KUNIT_EXPECT_EQ(test, qp->nsent, KEFA_HELD_MAX - 3);
	KUNIT_EXPECT_EQ(test, rma(scene, true, iov, 4, 0, 51), 0);
	KUNIT_EXPECT_EQ(test, qp->doorbells, 2);
	KUNIT_EXPECT_EQ(test, qp->nsent, KEFA_HELD_MAX + 5);
}

/* Work requests are held when the device is removed or the endpoint closed. */
static void more_then_removal(struct kunit *test)
{
	struct efa_scene *scene = scene_with_held_worker(test);

	KUNIT_EXPECT_EQ(test, send_more(scene, 1, FI_MORE), 0);
	KUNIT_EXPECT_EQ(test, send_more(scene, 2, FI_MORE), 0);
	efake_remove(scene->fake);
	efa_expect_error_now(test, scene, 1, ENODEV, 0);
	efa_expect_error_now(test, scene, 2, ENODEV, 0);
	KUNIT_EXPECT_EQ(test, efa_read(scene).ret, -EAGAIN);
}

/* --- completions that match no operation --- */

static void stale_ids(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_ep *ep = efa_ep(scene);
	u64 id;
	int i;
	const u64 slots[] = {
		ep->tx.base.size + ep->rx.base.size, U16_MAX, U16_MAX + 1, U32_MAX,
		BIT_ULL(31), 5, ep->tx.base.size - 1, ep->tx.base.size,
		ep->tx.base.size + ep->rx.base.size - 1,
	};

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	id = efake_sent(scene->qp, 0)->id;
	for (i = 0; i < ARRAY_SIZE(slots); i++)
		efake_qp_push(scene->qp, &(struct kefa_wc){ .id = slots[i] });
	/* Another use of the slot. */
	for (i = 1; i < 5; i++)
		efake_qp_push(scene->qp, &(struct kefa_wc) {
			.id = id ^ (0x10000000ULL << (i * 8)),
		});
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, ep->stats.stale, ARRAY_SIZE(slots) + 4);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 1);
	expect_idle(test, scene);
}

static void done_twice(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_ep *ep = efa_ep(scene);
	struct kefa_wc wc = { };
	unsigned int i;

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	wc.id = efake_sent(scene->qp, 0)->id;
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efake_qp_push(scene->qp, &wc);
	efa_expect_done(test, scene, 1);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, ep->stats.stale, 1);
	/* Repeated when the slot is in use again. */
	for (i = 0; i < ep->tx.base.size; i++)
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 2), 0);
	wc.status = 9;
	efake_qp_push(scene->qp, &wc);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, ep->stats.stale, 2);
	while (scene->qp->nsent)
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_drain(scene), ep->tx.base.size);
	expect_idle(test, scene);
}

/* The completion of the first of several work requests is repeated. */
static void part_done_twice(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_wc head, part;
	struct kvec iov[3];

	pieces(scene, iov, 3, 10);
	KUNIT_EXPECT_EQ(test, rma(scene, false, iov, 3, FI_COMPLETION, 1), 0);
	head = (struct kefa_wc){ .id = efake_sent(scene->qp, 0)->id };
	part = (struct kefa_wc){ .id = efake_sent(scene->qp, 1)->id };
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efake_qp_push(scene->qp, &head);
	efake_qp_push(scene->qp, &head);
	efa_expect_nothing(test, scene);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efake_qp_push(scene->qp, &part);
	efake_qp_push(scene->qp, &head);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.stale, 4);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 1);
	expect_idle(test, scene);
}

/* Completions of one poll are reported in order: successes, failures, parts. */
static void batch_in_order(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_ep *ep = efa_ep(scene);
	unsigned int polled;
	struct kvec iov[3];
	int i;

	for (i = 1; i <= 3; i++)
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i), 0);
	pieces(scene, iov, 3, 10);
	KUNIT_EXPECT_EQ(test, rma(scene, true, iov, 3, FI_COMPLETION, 4), 0);
	for (i = 5; i <= 8; i++)
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i), 0);
	spin_lock_bh(&ep->lock);
	for (i = 0; i < 10; i++)
		efake_wr_done(efake_sent(scene->qp, 0), i == 1 ? 9 : 0);
	polled = kefa_direct_poll(ep, KEFA_POLL_BUDGET);
	spin_unlock_bh(&ep->lock);
	KUNIT_EXPECT_EQ(test, polled, 10);
	efa_expect_done(test, scene, 1);
	efa_expect_error(test, scene, 2, kefa_status_errno(9), 9);
	for (i = 3; i <= 8; i++)
		efa_expect_done(test, scene, i);
	expect_idle(test, scene);
}

/* An event without completions, and several events at once. */
static void events_without_work(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	int i;

	for (i = 0; i < 100; i++)
		efake_qp_event(scene->qp);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	efake_wr_done(efake_sent(scene->qp, 0), 0);
	efa_expect_done(test, scene, 1);
}

/* --- posts that fail --- */

static void post_fails_midway(struct kunit *test)
{
	struct efa_scene *scene = scene_with_held_worker(test);
	struct efake *fake = scene->fake;
	int i;

	for (i = 1; i <= 4; i++)
		KUNIT_EXPECT_EQ(test, send_more(scene, i, FI_MORE), 0);
	fake->bad = 3;
	efake_fail(fake, EFAKE_POST_SEND, 1, -EIO);
	KUNIT_EXPECT_EQ(test, send_more(scene, 5, 0), 0);
	KUNIT_EXPECT_EQ(test, scene->qp->nsent, 3);
	efa_expect_error_now(test, scene, 4, EIO, 0);
	efa_expect_error_now(test, scene, 5, EIO, 0);
	KUNIT_EXPECT_EQ(test, efa_read(scene).ret, -EAGAIN);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->tx.nfree,
			efa_ep(scene)->tx.base.size - 3);
}

/* If an RMA is posted partly, its posted work requests are waited for. */
static void post_fails_amid_parts(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kvec iov[3];

	pieces(scene, iov, 3, 10);
	scene->fake->bad = 1;
	efake_fail(scene->fake, EFAKE_POST_SEND, 1, -ENOMEM);
	KUNIT_EXPECT_EQ(test, rma(scene, true, iov, 3, FI_COMPLETION, 1), 0);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, scene->qp->nsent, 1);
	efake_wr_done(efake_sent(scene->qp, 0), 9);
	efa_expect_error(test, scene, 1, ENOMEM, 0);
	expect_idle(test, scene);
	/* None of them is posted. */
	scene->fake->bad = 0;
	efake_fail(scene->fake, EFAKE_POST_SEND, 1, -EINVAL);
	KUNIT_EXPECT_EQ(test, rma(scene, false, iov, 3, FI_COMPLETION, 2), 0);
	efa_expect_error(test, scene, 2, EINVAL, 0);
	expect_idle(test, scene);
}

static void recv_fails(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);

	efake_fail(scene->fake, EFAKE_POST_RECV, 2, -EINVAL);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 2), 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 3), 0);
	efa_expect_error(test, scene, 2, EINVAL, 0);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, scene->qp->nrecvs, 2);
	efake_wr_done(efake_recv(scene->qp, 1), 0);
	efa_expect_done(test, scene, 3);
	efake_wr_done(efake_recv(scene->qp, 0), 0);
	efa_expect_done(test, scene, 1);
	expect_idle(test, scene);
}

/* Lack of DMA space at each of the mappings of a call. */
static void no_dma_room(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_ep *ep = efa_ep(scene);
	struct kvec iov[3];
	int i;

	pieces(scene, iov, 3, 100);
	for (i = 1; i <= 3; i++) {
		efake_fail(scene->fake, EFAKE_DMA_MAP, i, -EIO);
		KUNIT_EXPECT_EQ(test, rma(scene, true, iov, 3, 0, 1), -EAGAIN);
		expect_idle(test, scene);
	}
	for (i = 1; i <= 2; i++) {
		efake_fail(scene->fake, EFAKE_DMA_MAP, i, -EIO);
		KUNIT_EXPECT_EQ(test, fi_recvv(scene->ep, iov, NULL, 2,
					       FI_ADDR_UNSPEC, NULL), -EAGAIN);
		efake_fail(scene->fake, EFAKE_DMA_MAP, i, -EIO);
		KUNIT_EXPECT_EQ(test, fi_sendv(scene->ep, iov, NULL, 2,
					       scene->peer, NULL), -EAGAIN);
		expect_idle(test, scene);
	}
	KUNIT_EXPECT_EQ(test, ep->stats.map_failed, 7);
	KUNIT_EXPECT_EQ(test, ep->stats.again, 7);
	KUNIT_EXPECT_EQ(test, scene->qp->doorbells, 0);
}

/* --- slots and buffers --- */

static void slots_come_back(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_ep *ep = efa_ep(scene);
	unsigned int i, again = 0;

	for (i = 0; i < ep->tx.base.size; i++)
		again += efa_send(scene, 64, i) != 0;
	for (i = 0; i < ep->rx.base.size; i++)
		again += efa_recv(scene, 64, 1000 + i) != 0;
	KUNIT_EXPECT_EQ(test, again, 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i), -EAGAIN);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, i), -EAGAIN);
	KUNIT_EXPECT_EQ(test, ep->stats.again, 2);
	/* Complete one from the middle. */
	efake_wr_done(efake_sent(scene->qp, 30), 0);
	efa_expect_done(test, scene, 30);
	efake_wr_done(efake_recv(scene->qp, 40), 0);
	efa_expect_done(test, scene, 1040);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 5000), 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 6000), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i), -EAGAIN);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, i), -EAGAIN);
	while (scene->qp->nsent)
		efake_wr_done(efake_sent(scene->qp, scene->qp->nsent - 1), 0);
	while (scene->qp->nrecvs)
		efake_wr_done(efake_recv(scene->qp, scene->qp->nrecvs - 1), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_drain(scene), ep->tx.base.size + ep->rx.base.size);
	expect_idle(test, scene);
}

/* An inject that doesn't fit into a work request needs a copy buffer. */
static void buffers_come_back(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	u8 got[200];
	int i;

	for (i = 0; i < KEFA_COPIES; i++) {
		efa_fill(scene->buf, 200, i);
		KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 200,
						scene->peer), 0);
	}
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 200,
					scene->peer), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_inject_write(scene->ep, scene->buf, 1,
					      scene->peer, EFA_RADDR, EFA_KEY),
			-EAGAIN);
	/* These need no copy buffer. */
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, KEFA_MAX_INLINE,
					scene->peer), 0);
	KUNIT_EXPECT_EQ(test, fi_inject_write(scene->ep, scene->buf, 0,
					      scene->peer, EFA_RADDR, EFA_KEY),
			0);
	for (i = 0; i < KEFA_COPIES; i++) {
		KUNIT_EXPECT_EQ(test, efake_wr_read(efake_sent(scene->qp, i),
						    got, 200), 200);
		KUNIT_EXPECT_TRUE(test, efa_filled(got, 200, i));
	}
	efake_wr_done(efake_sent(scene->qp, 3), 0);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, fi_inject_write(scene->ep, scene->buf, 64,
					      scene->peer, EFA_RADDR, EFA_KEY),
			0);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 200,
					scene->peer), -EAGAIN);
	while (scene->qp->nsent)
		efake_wr_done(efake_sent(scene->qp, 0), 0);
	expect_idle(test, scene);
}

/* A post without a peer gives its copy buffer back. */
static void buffer_of_refused(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	int i;

	for (i = 0; i < 2 * KEFA_COPIES; i++)
		KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 200,
						55), -EHOSTUNREACH);
	expect_idle(test, scene);
}

static struct kunit_case ops_cases[] = {
	KUNIT_CASE(parts_posted),
	KUNIT_CASE_PARAM(parts_in_any_order, order_gen_params),
	KUNIT_CASE(parts_want_room),
	KUNIT_CASE_PARAM(parts_many, many_gen_params),
	KUNIT_CASE(parts_many_fail),
	KUNIT_CASE(parts_many_short),
	KUNIT_CASE(more_is_held),
	KUNIT_CASE(more_by_worker),
	KUNIT_CASE(more_then_plain),
	KUNIT_CASE(more_and_parts),
	KUNIT_CASE(more_then_removal),
	KUNIT_CASE(stale_ids),
	KUNIT_CASE(done_twice),
	KUNIT_CASE(part_done_twice),
	KUNIT_CASE(batch_in_order),
	KUNIT_CASE(events_without_work),
	KUNIT_CASE(post_fails_midway),
	KUNIT_CASE(post_fails_amid_parts),
	KUNIT_CASE(recv_fails),
	KUNIT_CASE(no_dma_room),
	KUNIT_CASE(slots_come_back),
	KUNIT_CASE(buffers_come_back),
	KUNIT_CASE(buffer_of_refused),
	{}
};

static struct kunit_suite ops_suite = {
	.name = "kefa_ops",
	.test_cases = ops_cases,
};

kunit_test_suite(ops_suite);
